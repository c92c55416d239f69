//! The description of a device: its parameters, and the check that they make sense.

use pageout_engine::{Nanos, PAGE_SIZE};

use super::{Direction, Fault, FaultRule, Latency, Tail};

/// Requests are counted in blocks of a page.
pub(super) const BLOCK_BYTES: u64 = PAGE_SIZE;

/// The I/O scheduler, which puts requests that wait for a device in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoScheduler {
    /// None: they wait in order of arrival.
    None,
    /// Reads before writes, in order of their places, and neighbours as one.
    MqDeadline,
    /// Tasks that read in turns, and all writes together in theirs.
    Cfq,
}

/// The time of a seek by its distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seek {
    /// The time of the longest seek.
    pub longest: Nanos,
    /// Blocks from which on a seek is the longest; greater than 0.
    pub span: u64,
}

impl Seek {
    /// The time of a seek over so many blocks; of `None`, the longest.
    pub(super) fn time(self, distance: Option<u64>) -> Nanos {
        let far = distance.map_or(self.span, |blocks| blocks.min(self.span));
        Nanos((u128::from(self.longest.0) * u128::from(far) / u128::from(self.span)) as u64)
    }
}

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
    /// What a seek costs in addition to the latencies; `None`: the latencies are those of any seek.
    pub seek: Option<Seek>,
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
    /// Requests in service or waiting at a time, under a scheduler for each direction; a task that submits one more waits. The block layer's
    /// `nr_requests`, 128 by default (reclaim 9, row 13). A value below `queue_depth` counts as that.
    pub nr_requests: u32,
    /// Maximum blocks in one request (`max_sectors_kb`); greater than 0. Larger requests are submitted in pieces. 320 by default.
    pub request_pages_max: u32,
    /// In which order it gets the requests that wait.
    pub scheduler: IoScheduler,
    /// Bytes whose transfer the latencies above contain already, because they were measured with requests of that size.
    pub latency_covers: u64,
    /// Requests that fail; none by default.
    pub faults: Vec<Fault>,
    /// Share of requests, 0 to 1, that complete on another CPU than the one that submitted them; none by default, as if each CPU has a queue with its
    /// own interrupt.
    pub remote_completions: f64,
}

impl DeviceSpec {
    /// For pages that stand for so many each: it moves as many fewer of them.
    pub fn of_pages(self, stands_for: u64) -> DeviceSpec {
        DeviceSpec {
            read_bandwidth: (self.read_bandwidth / stands_for).max(1),
            write_bandwidth: (self.write_bandwidth / stands_for).max(1),
            latency_covers: self.latency_covers / stands_for,
            ..self
        }
    }

    /// How long a request of so many bytes holds the bus.
    #[inline(never)]
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
        if self.seek.is_some_and(|seek| seek.span == 0) {
            return refuse(Problem::NoSpan);
        }
        if self.queue_depth == 0 {
            return refuse(Problem::ZeroQueueDepth);
        }
        if self.request_pages_max == 0 {
            return refuse(Problem::EmptyRequests);
        }
        if let Some(tail) = self.tail
            && (tail.one_in == 0 || tail.times == 0)
        {
            return refuse(Problem::BadTail { tail });
        }
        if !(0.0..=1.0).contains(&self.remote_completions) {
            return refuse(Problem::BadShare { share: self.remote_completions });
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
    #[error("the longest seek goes over 0 blocks; it must be at least 1")]
    NoSpan,
    #[error("the queue depth is 0; it must be at least 1 request")]
    ZeroQueueDepth,
    #[error("its largest request has no pages; it must have at least 1")]
    EmptyRequests,
    #[error("a tail of one in {} at {} times the median; both must be at least 1", tail.one_in, tail.times)]
    BadTail { tail: Tail },
    #[error("a fault probability of {probability} is not between 0 and 1")]
    BadProbability { probability: f64 },
    #[error("a share of remote completions of {share} is not between 0 and 1")]
    BadShare { share: f64 },
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
