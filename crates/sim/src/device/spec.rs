//! What a device is like: its parameters, the presets, and which parameters make no sense.
//!
//! The presets are the rows of the device table in `docs/spec/costs.md`; M is measured on one virtual
//! machine, T typical of the class. Where a row gives a single latency the preset is constant: a spread would be invented.

use pageout_engine::{Nanos, PAGE_SIZE};

use super::{Direction, Fault, FaultRule, Latency, Tail};

/// Requests are counted in blocks of a page.
pub(super) const BLOCK_BYTES: u64 = PAGE_SIZE;

/// One in 10,000 requests of an SSD takes 10 times the median (T).
const SSD_TAIL: Tail = Tail { one_in: 10_000, times: 10 };

const MICROSECOND: u64 = 1_000;
const MEGABYTE: u64 = 1_000_000;
const GIGABYTE: u64 = 1_000_000_000;

/// The parameters of a block device. Any value is possible; [`super::Device::new`] refuses those that make no sense.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceSpec {
    /// Named in reports and errors.
    pub name: String,
    /// Read latency at queue depth 1.
    pub read: Latency,
    /// Write latency at queue depth 1.
    pub write: Latency,
    /// Latency of a request that begins where the previous one ended, on a device that has to seek otherwise.
    pub sequential: Option<Nanos>,
    /// Rare long latencies, for reads and writes alike.
    pub tail: Option<Tail>,
    /// Bytes a second when reading; greater than 0.
    pub read_bandwidth: u64,
    /// Bytes a second when writing; greater than 0.
    pub write_bandwidth: u64,
    /// Requests a second that the device can't exceed however deep its queue.
    pub iops_max: Option<u64>,
    /// Requests in service at a time; greater than 0.
    pub queue_depth: u32,
    /// Requests in service or waiting at a time; whoever submits one more waits. The block layer's `nr_requests`, 128 by default
    /// (reclaim 9, row 13). Less than `queue_depth` is as much as that.
    pub nr_requests: u32,
    /// Bytes whose transfer the latencies above contain already, because they were measured with requests of that size.
    pub latency_covers: u64,
    /// Requests that fail; none by default.
    pub faults: Vec<Fault>,
}

/// What the block layer sets where nobody asks for something else.
const NR_REQUESTS: u32 = 128;

impl DeviceSpec {
    /// The names [`DeviceSpec::preset`] knows.
    pub const PRESETS: &[&str] = &["virtio", "hdd", "sata-ssd", "nvme", "pmem"];

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<DeviceSpec> {
        match name {
            "virtio" => Some(DeviceSpec::virtio()),
            "hdd" => Some(DeviceSpec::hdd()),
            "sata-ssd" => Some(DeviceSpec::sata_ssd()),
            "nvme" => Some(DeviceSpec::nvme()),
            "pmem" => Some(DeviceSpec::pmem()),
            _ => None,
        }
    }

    /// The virtio disk of the machine that the M rows were measured on. Row "virtio disk of the measured machine", M: 30 us p50 and 75 us p99
    /// read, 31 and 97 us write, 0.62 GB/s read, 1.3 GB/s write, 72 K IOPS at depth 32.
    pub fn virtio() -> DeviceSpec {
        DeviceSpec {
            name: "virtio".to_string(),
            read: Latency::Lognormal { median: Nanos(30 * MICROSECOND), p99: Nanos(75 * MICROSECOND) },
            write: Latency::Lognormal { median: Nanos(31 * MICROSECOND), p99: Nanos(97 * MICROSECOND) },
            sequential: None,
            tail: None,
            read_bandwidth: 620 * MEGABYTE,
            write_bandwidth: 1_300 * MEGABYTE,
            iops_max: Some(72_000),
            queue_depth: 32,
            nr_requests: NR_REQUESTS,
            latency_covers: BLOCK_BYTES,
            faults: Vec::new(),
        }
    }

    /// A 7,200 rpm disk. Row "hdd", T: 8 ms random (4.2 rotation + 4 seek), 0.1 ms sequential, 150 MB/s, one at a time.
    pub fn hdd() -> DeviceSpec {
        DeviceSpec {
            name: "hdd".to_string(),
            read: Latency::Constant(Nanos(8_000 * MICROSECOND)),
            write: Latency::Constant(Nanos(8_000 * MICROSECOND)),
            sequential: Some(Nanos(100 * MICROSECOND)),
            tail: None,
            read_bandwidth: 150 * MEGABYTE,
            write_bandwidth: 150 * MEGABYTE,
            iops_max: None,
            queue_depth: 1,
            nr_requests: NR_REQUESTS,
            latency_covers: BLOCK_BYTES,
            faults: Vec::new(),
        }
    }

    /// Row "sata-ssd", T: 90 us read, 40 us write, 530 MB/s, 32 at a time, 90 K IOPS.
    pub fn sata_ssd() -> DeviceSpec {
        DeviceSpec {
            name: "sata-ssd".to_string(),
            read: Latency::Constant(Nanos(90 * MICROSECOND)),
            write: Latency::Constant(Nanos(40 * MICROSECOND)),
            sequential: None,
            tail: Some(SSD_TAIL),
            read_bandwidth: 530 * MEGABYTE,
            write_bandwidth: 530 * MEGABYTE,
            iops_max: Some(90_000),
            queue_depth: 32,
            nr_requests: NR_REQUESTS,
            latency_covers: BLOCK_BYTES,
            faults: Vec::new(),
        }
    }

    /// Row "nvme", T: 80 us read, 20 us write, 3.5 and 3.0 GB/s, 64 at a time, 600 K IOPS.
    pub fn nvme() -> DeviceSpec {
        DeviceSpec {
            name: "nvme".to_string(),
            read: Latency::Constant(Nanos(80 * MICROSECOND)),
            write: Latency::Constant(Nanos(20 * MICROSECOND)),
            sequential: None,
            tail: Some(SSD_TAIL),
            read_bandwidth: 3_500 * MEGABYTE,
            write_bandwidth: 3_000 * MEGABYTE,
            iops_max: Some(600_000),
            queue_depth: 64,
            nr_requests: NR_REQUESTS,
            latency_covers: BLOCK_BYTES,
            faults: Vec::new(),
        }
    }

    /// Row "pmem", T: 0.3 us read, 0.1 us write, 6 and 2 GB/s, no queue. The latencies are those of a cache line, so the
    /// transfer of a page comes on top; only bandwidth limits how much is in flight.
    pub fn pmem() -> DeviceSpec {
        DeviceSpec {
            name: "pmem".to_string(),
            read: Latency::Constant(Nanos(300)),
            write: Latency::Constant(Nanos(100)),
            sequential: None,
            tail: None,
            read_bandwidth: 6 * GIGABYTE,
            write_bandwidth: 2 * GIGABYTE,
            iops_max: None,
            queue_depth: u32::MAX,
            nr_requests: u32::MAX,
            latency_covers: 0,
            faults: Vec::new(),
        }
    }

    /// How long a request of so many bytes holds the bus.
    pub(super) fn occupancy(&self, direction: Direction, bytes: u64) -> Nanos {
        let bandwidth = match direction {
            Direction::Read => self.read_bandwidth,
            Direction::Write => self.write_bandwidth,
        };
        let interval = self.iops_max.map_or(0, |iops| time_at_rate(1, iops));
        Nanos(time_at_rate(bytes, bandwidth).max(interval))
    }

    /// Refuses parameters that make no sense, naming the device and the parameter.
    pub fn validate(&self) -> Result<(), DeviceError> {
        let refuse = |problem| Err(DeviceError { device: self.name.clone(), problem });
        for (direction, latency) in [(Direction::Read, self.read), (Direction::Write, self.write)] {
            if let Latency::Lognormal { median, p99 } = latency {
                if median == Nanos::ZERO {
                    return refuse(Problem::ZeroMedian { direction });
                }
                if p99 < median {
                    return refuse(Problem::P99BelowMedian { direction, median, p99 });
                }
            }
        }
        for (direction, bandwidth) in
            [(Direction::Read, self.read_bandwidth), (Direction::Write, self.write_bandwidth)]
        {
            if bandwidth == 0 {
                return refuse(Problem::ZeroBandwidth { direction });
            }
        }
        if self.iops_max == Some(0) {
            return refuse(Problem::ZeroIops);
        }
        if self.queue_depth == 0 {
            return refuse(Problem::ZeroQueueDepth);
        }
        if let Some(tail) = self.tail
            && (tail.one_in == 0 || tail.times == 0)
        {
            return refuse(Problem::BadTail { tail });
        }
        for fault in &self.faults {
            match &fault.rule {
                FaultRule::Random(probability) if !(0.0..=1.0).contains(probability) => {
                    return refuse(Problem::BadProbability { probability: *probability });
                }
                FaultRule::EveryNth(0) => return refuse(Problem::EveryZeroth),
                FaultRule::Blocks { blocks, .. } if blocks.is_empty() => return refuse(Problem::NoBlocks),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A device whose parameters make no sense.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("device `{device}`: {problem}")]
pub struct DeviceError {
    device: String,
    problem: Problem,
}

#[derive(Clone, PartialEq, Debug, thiserror::Error)]
enum Problem {
    #[error("the median {} latency is 0, which no lognormal has; use a constant", name(*direction))]
    ZeroMedian { direction: Direction },
    #[error("the p99 {} latency of {p99} is below the median of {median}", name(*direction))]
    P99BelowMedian { direction: Direction, median: Nanos, p99: Nanos },
    #[error("the {} bandwidth is 0; it must be at least 1 byte a second", name(*direction))]
    ZeroBandwidth { direction: Direction },
    #[error("the greatest number of requests a second is 0; leave it out for no limit")]
    ZeroIops,
    #[error("the queue depth is 0; it must be at least 1 request")]
    ZeroQueueDepth,
    #[error("a tail of one in {} at {} times the median; both must be at least 1", tail.one_in, tail.times)]
    BadTail { tail: Tail },
    #[error("a fault probability of {probability} is not between 0 and 1")]
    BadProbability { probability: f64 },
    #[error("a fault every 0th request; counting starts at 1")]
    EveryZeroth,
    #[error("a fault in an empty range of blocks")]
    NoBlocks,
}

fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}

/// Nanoseconds for `amount` at `rate` a second.
fn time_at_rate(amount: u64, rate: u64) -> u64 {
    const SECOND: u64 = Nanos::SECOND.0;
    match amount.checked_mul(SECOND) {
        Some(product) => product / rate,
        // More than 18 GB in one request: lose the fraction of a nanosecond rather than the magnitude.
        None => (amount / rate).saturating_mul(SECOND),
    }
}
