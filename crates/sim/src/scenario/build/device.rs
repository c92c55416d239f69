//! From a `[[device]]` to the machine's device: a preset, with the figures that the scenario overrides.

use pageout_engine::{Nanos, PAGE_SIZE};

use super::{nanos, problem};
use crate::device::{DeviceError, DeviceSpec, Direction, Fault, FaultRule, IoScheduler, Latency, Seek};
use crate::scenario::{Device, Problem, Size, TimeSpan};

/// The distance of the longest seek where a scenario does not say it: 1 GiB.
const SEEK_SPAN_PAGES: u64 = (1 << 30) / PAGE_SIZE;

impl Device {
    /// Returns the machine's specification of this device. The problem's key is relative to the device.
    pub fn spec(&self) -> Result<DeviceSpec, Problem> {
        // Taken apart, so that a key without a use does not compile.
        let Device {
            name,
            preset,
            read_latency,
            read_p99,
            write_latency,
            write_p99,
            sequential_latency,
            seek_latency,
            seek_span,
            read_bandwidth,
            write_bandwidth,
            queue_depth,
            nr_requests,
            scheduler,
            iops,
            fail_reads,
            fail_writes,
            remote_completions,
            read_ahead_kb: _, // the engine's: see `bdi`
            optimal_io_kb: _,
            rotational: _,
            max_sectors_kb: _,
            file_system: _,
            min_ratio: _,
            max_ratio: _,
            strict_limit: _,
        } = self;
        let mut spec = DeviceSpec::preset(preset)
            .ok_or_else(|| problem(".preset", format!("there is no device preset called `{preset}`")))?;
        spec.name.clone_from(name);
        spec.read = latency(spec.read, *read_latency, *read_p99);
        spec.write = latency(spec.write, *write_latency, *write_p99);
        spec.sequential = sequential_latency.map(nanos).or(spec.sequential);
        spec.seek = match (*seek_latency, *seek_span) {
            (Some(longest), span) => {
                let span = span.map_or(SEEK_SPAN_PAGES, Size::pages_ceil);
                Some(Seek { longest: nanos(longest), span })
            }
            (None, Some(_)) => {
                return Err(problem(".seek_span", "it has no effect without `seek_latency`".to_string()));
            }
            (None, None) => None,
        };
        spec.read_bandwidth = read_bandwidth.map_or(spec.read_bandwidth, |rate| rate.0);
        spec.write_bandwidth = write_bandwidth.map_or(spec.write_bandwidth, |rate| rate.0);
        spec.queue_depth = queue_depth.unwrap_or(spec.queue_depth);
        spec.nr_requests = nr_requests.unwrap_or(spec.nr_requests);
        spec.scheduler = scheduler.map_or(spec.scheduler, IoScheduler::from);
        spec.iops_max = iops.or(spec.iops_max);
        spec.request_pages_max = self.bdi().io_pages;
        spec.remote_completions = remote_completions.map_or(0.0, |share| share.0);
        for (direction, share) in [(Direction::Read, fail_reads), (Direction::Write, fail_writes)] {
            if let Some(share) = share.filter(|share| share.0 > 0.0) {
                spec.faults.push(Fault { direction, rule: FaultRule::Random(share.0) });
            }
        }
        spec.validate().map_err(|error: DeviceError| problem("", error))?;
        Ok(spec)
    }
}

/// A preset's latency with its median or its tail replaced; equal ones leave no tail.
fn latency(preset: Latency, median: Option<TimeSpan>, p99: Option<TimeSpan>) -> Latency {
    if median.is_none() && p99.is_none() {
        return preset;
    }
    let median = median.map_or(preset.median(), nanos);
    let p99 = match (p99, preset) {
        (Some(p99), _) => nanos(p99),
        (None, Latency::Constant(_)) => median,
        // The tail keeps its length relative to the median, which is what a slower device of the same class has.
        (None, Latency::Lognormal { median: was, p99 }) => {
            Nanos((u128::from(p99.0) * u128::from(median.0) / u128::from(was.0.max(1))) as u64)
        }
    };
    Latency::new(median, p99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_its_preset_with_what_was_overridden() {
        let device: Device = serde_json::from_str(
            r#"{"name": "d", "preset": "virtio", "read_latency": "60us", "fail_reads": 0.5}"#,
        )
        .unwrap();
        let (spec, preset) = (device.spec().unwrap(), DeviceSpec::preset("virtio").unwrap());
        assert_eq!(
            spec.read,
            Latency::Lognormal { median: Nanos(60_000), p99: Nanos(150_000) },
            "the tail is stretched"
        );
        assert_eq!((spec.write, spec.queue_depth), (preset.write, preset.queue_depth));
        assert_eq!(spec.faults.len(), 1);
        let device: Device =
            serde_json::from_str(r#"{"name": "d", "read_latency": "9us", "read_p99": "1us"}"#).unwrap();
        assert!(device.spec().unwrap_err().message.contains("below the median"));
        let device: Device =
            serde_json::from_str(r#"{"name": "d", "seek_latency": "8ms", "seek_span": "1MiB"}"#).unwrap();
        assert_eq!(device.spec().unwrap().seek, Some(Seek { longest: Nanos(8_000_000), span: 256 }));
        let device: Device = serde_json::from_str(r#"{"name": "d", "seek_span": "1MiB"}"#).unwrap();
        assert!(device.spec().unwrap_err().message.contains("without `seek_latency`"));
    }
}
