//! Presets of devices (NVMe, SSD, disk ...): every figure with its source.
//!
//! The figures are the rows of the device table in `docs/spec/costs.md`. `pageout keys device` prints them.

use pageout_engine::{Bdi, Nanos};

use super::spec::BLOCK_BYTES;
use super::{DeviceSpec, IoScheduler, Latency, Tail};

/// A value, and where it comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure<T> {
    /// The value of the figure.
    pub value: T,
    /// The source.
    pub source: &'static str,
}

/// A class of devices.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// The preset's name.
    pub name: &'static str,
    /// The class of devices.
    pub class: &'static str,
    /// Median read latency.
    pub read: Figure<Nanos>,
    /// 99th percentile of the same.
    pub read_p99: Figure<Nanos>,
    /// Median write latency.
    pub write: Figure<Nanos>,
    /// 99th percentile of the same.
    pub write_p99: Figure<Nanos>,
    /// Latency of a request that follows the one before, where that differs.
    pub sequential: Option<Figure<Nanos>>,
    /// Rare long latencies.
    pub tail: Option<Figure<Tail>>,
    /// Bytes a second when reading.
    pub read_bandwidth: Figure<u64>,
    /// Bytes a second when writing.
    pub write_bandwidth: Figure<u64>,
    /// Requests a second at most.
    pub iops: Option<Figure<u64>>,
    /// Requests in service at a time; `None` where nothing queues.
    pub queue_depth: Option<Figure<u32>>,
    /// Requests in service or waiting; `None` where nothing queues.
    pub nr_requests: Option<Figure<u32>>,
    /// The scheduler of waiting requests.
    pub scheduler: Figure<IoScheduler>,
    /// Bytes whose transfer the latencies contain.
    pub latency_covers: u64,
}

const fn us(value: u64, source: &'static str) -> Figure<Nanos> {
    Figure { value: Nanos(value * 1_000), source }
}

const fn mb(value: u64, source: &'static str) -> Figure<u64> {
    Figure { value: value * 1_000_000, source }
}

const fn figure<T: Copy>(value: T, source: &'static str) -> Figure<T> {
    Figure { value, source }
}

const MEASURED: &str = "measured with one request at a time, on the machine of docs/spec/costs.md";
const MEASURED_BULK: &str = "measured on the same machine";
const MEASURED_DEEP: &str = "measured on the same machine with 32 requests at a time";
const TYPICAL: &str = "typical of the class, rounded";
const NO_SPREAD: &str = "no spread is known: equal to the median";
/// Flash reads differ by the page's place in its cell, and wait for a write in progress; writes wait for space in the cache.
const TYPICAL_P99: &str = "typical of the class with one request at a time, rounded: an order of magnitude";
/// Distance between two random places: density 2(1-x); time: 7.5ms * sqrt(x), whose mean is 4ms. Plus 0 to 8.3ms. Its 99th
/// percentile is 14.2ms, its median 8.2ms.
const SEEK_P99: &str =
    "computed: between zero and one revolution, and a seek in proportion to the root of a random distance";
const BLOCK_LAYER: Option<Figure<u32>> = Some(figure(128, "the default of the block layer"));
/// The scheduler of a disk with one queue.
const ONE_QUEUE: Figure<IoScheduler> =
    figure(IoScheduler::MqDeadline, "it has one queue, for which the block layer's default is mq-deadline");
const SSD_TAIL: Option<Figure<Tail>> = Some(figure(Tail { one_in: 10_000, times: 10 }, TYPICAL));

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "virtio",
        class: "the virtual disk of the machine on which the costs were measured",
        read: us(30, MEASURED),
        read_p99: us(75, MEASURED),
        write: us(31, MEASURED),
        write_p99: us(97, MEASURED),
        sequential: None,
        tail: None,
        read_bandwidth: mb(620, MEASURED_BULK),
        write_bandwidth: mb(1_300, MEASURED_BULK),
        iops: Some(figure(72_000, MEASURED_DEEP)),
        queue_depth: Some(figure(32, MEASURED_DEEP)),
        nr_requests: BLOCK_LAYER,
        scheduler: figure(IoScheduler::MqDeadline, "it has one queue, with mq-deadline"),
        latency_covers: BLOCK_BYTES,
    },
    Preset {
        name: "hdd",
        class: "a disk of 7,200 revolutions a minute",
        read: us(8_000, "half a revolution of 8.3ms, and a typical seek of 4ms"),
        read_p99: us(14_000, SEEK_P99),
        write: us(8_000, "as a read"),
        write_p99: us(14_000, SEEK_P99),
        sequential: Some(us(100, TYPICAL)),
        tail: None,
        read_bandwidth: mb(150, TYPICAL),
        write_bandwidth: mb(150, TYPICAL),
        iops: None,
        queue_depth: Some(figure(1, "one set of heads")),
        nr_requests: BLOCK_LAYER,
        scheduler: ONE_QUEUE,
        latency_covers: BLOCK_BYTES,
    },
    Preset {
        name: "sata-ssd",
        class: "flash behind SATA",
        read: us(90, TYPICAL),
        read_p99: us(180, TYPICAL_P99),
        write: us(40, "typical of the class, rounded: into the drive's cache"),
        write_p99: us(100, TYPICAL_P99),
        sequential: None,
        tail: SSD_TAIL,
        read_bandwidth: mb(530, "typical of the class: the bandwidth of the link"),
        write_bandwidth: mb(530, "typical of the class: the bandwidth of the link"),
        iops: Some(figure(90_000, TYPICAL)),
        queue_depth: Some(figure(32, "the command queue of the link")),
        nr_requests: BLOCK_LAYER,
        scheduler: ONE_QUEUE,
        latency_covers: BLOCK_BYTES,
    },
    Preset {
        name: "nvme",
        class: "flash behind PCIe 3, as in a server",
        read: us(80, TYPICAL),
        read_p99: us(120, TYPICAL_P99),
        write: us(20, "typical of the class, rounded: into the drive's cache"),
        write_p99: us(40, TYPICAL_P99),
        sequential: None,
        tail: SSD_TAIL,
        read_bandwidth: mb(3_500, TYPICAL),
        write_bandwidth: mb(3_000, TYPICAL),
        iops: Some(figure(600_000, TYPICAL)),
        queue_depth: Some(figure(64, TYPICAL)),
        nr_requests: BLOCK_LAYER,
        scheduler: figure(IoScheduler::None, "one queue per CPU, without a scheduler by default"),
        latency_covers: BLOCK_BYTES,
    },
    Preset {
        name: "pmem",
        class: "persistent memory on the memory bus: the latency is that of a cache line, plus a page's transfer",
        read: figure(Nanos(300), TYPICAL),
        read_p99: figure(Nanos(300), NO_SPREAD),
        write: figure(Nanos(100), TYPICAL),
        write_p99: figure(Nanos(100), NO_SPREAD),
        sequential: None,
        tail: None,
        read_bandwidth: mb(6_000, TYPICAL),
        write_bandwidth: mb(2_000, TYPICAL),
        iops: None,
        queue_depth: None,
        nr_requests: None,
        scheduler: figure(IoScheduler::None, "nothing queues"),
        latency_covers: 0,
    },
];

impl Preset {
    /// The preset of this name.
    pub fn by_name(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// A device that is just this.
    pub fn spec(&self) -> DeviceSpec {
        let value = |figure: &Option<Figure<u32>>| figure.map_or(u32::MAX, |figure| figure.value);
        DeviceSpec {
            name: self.name.to_string(),
            read: Latency::new(self.read.value, self.read_p99.value),
            write: Latency::new(self.write.value, self.write_p99.value),
            sequential: self.sequential.map(|figure| figure.value),
            seek: None,
            tail: self.tail.map(|figure| figure.value),
            read_bandwidth: self.read_bandwidth.value,
            write_bandwidth: self.write_bandwidth.value,
            iops_max: self.iops.map(|figure| figure.value),
            queue_depth: value(&self.queue_depth),
            nr_requests: value(&self.nr_requests),
            request_pages_max: Bdi::NO_READAHEAD.io_pages,
            scheduler: self.scheduler.value,
            latency_covers: self.latency_covers,
            faults: Vec::new(),
            remote_completions: 0.0,
        }
    }
}

impl DeviceSpec {
    /// The names [`DeviceSpec::preset`] knows.
    pub const PRESETS: &[&str] = &crate::names_of!(PRESETS);

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<DeviceSpec> {
        Preset::by_name(name).map(Preset::spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of the device table whose first cell begins with `name`, cell by cell, without that one.
    fn row(name: &str) -> Vec<String> {
        let table = include_str!("../../../../docs/spec/costs.md");
        let (_, devices) = table.split_once("## Devices").expect("it has a table of devices");
        let row = devices.lines().find(|line| line.starts_with(&format!("| {name} ")));
        let cells = row.unwrap_or_else(|| panic!("no row of {name}")).trim_matches('|').split('|').skip(1);
        cells.map(|cell| cell.trim().to_string()).collect()
    }

    /// Numbers before `unit` in a cell, in order.
    fn before(unit: &str, cell: &str) -> Vec<f64> {
        let words: Vec<&str> = cell.split([' ', ',', ';', '(']).filter(|word| !word.is_empty()).collect();
        words.windows(2).filter(|pair| pair[1] == unit).filter_map(|pair| pair[0].parse().ok()).collect()
    }

    fn times(cell: &str) -> Vec<u64> {
        let ms = before("ms", cell).into_iter().map(|ms| (ms * 1e6) as u64);
        ms.chain(before("us", cell).into_iter().map(|us| (us * 1e3) as u64)).collect()
    }

    #[test]
    fn every_preset_is_its_row_of_the_table_of_costs() {
        for preset in PRESETS {
            let cells = row(preset.name);
            let [read, write, bandwidth, queue, _] = &cells[..] else { panic!("{cells:?}") };
            let write = if write == "same" { read } else { write };
            let mut told = [times(read), times(write)];
            if let Some(sequential) = preset.sequential {
                told.iter_mut()
                    .for_each(|times| assert_eq!(times.pop(), Some(sequential.value.0), "{}", preset.name));
            }
            let of = |median: Figure<Nanos>, p99: Figure<Nanos>| match median.value == p99.value {
                true => vec![median.value.0],
                false => vec![median.value.0, p99.value.0],
            };
            let own = [of(preset.read, preset.read_p99), of(preset.write, preset.write_p99)];
            assert_eq!(told, own, "latencies of {}", preset.name);

            let (gb, mb) = (before("GB/s", bandwidth), before("MB/s", bandwidth));
            let mut rates: Vec<u64> = gb.iter().map(|gb| (gb * 1e9) as u64).collect();
            rates.extend(mb.iter().map(|mb| (mb * 1e6) as u64));
            // `3.5 / 3.0 GB/s`: the first number has its unit behind the second.
            if let Some((first, _)) = bandwidth.split_once(" / ") {
                rates.insert(0, (first.parse::<f64>().expect("a number") * 1e9) as u64);
            }
            let last = *rates.last().expect("a bandwidth");
            rates.resize(2, last);
            assert_eq!(
                rates,
                [preset.read_bandwidth.value, preset.write_bandwidth.value],
                "of {}",
                preset.name
            );

            let iops = before("K", queue).first().map(|thousands| (thousands * 1e3) as u64);
            assert_eq!(preset.iops.map(|iops| iops.value), iops, "{}", preset.name);
            let depth = match queue.rsplit_once("depth ") {
                Some((_, depth)) => depth.parse().ok(),
                None => queue.split(',').next().and_then(|depth| depth.trim().parse().ok()),
            };
            assert_eq!(preset.queue_depth.map(|depth| depth.value), depth, "{}", preset.name);
        }
    }
}
