//! Classes of devices: every figure with its source beside it.
//!
//! The figures are the rows of the device table in `docs/spec/costs.md`. `pageout keys device` prints them.

use pageout_engine::{Bdi, Nanos};

use super::spec::BLOCK_BYTES;
use super::{DeviceSpec, Latency, Tail};

/// A value, and where it comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: &'static str,
}

/// A class of devices.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
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
const NO_SPREAD: &str = "no spread is known: as the median";
/// Flash reads differ by the page's place in its cell, and wait for a write under way; writes wait for room in the cache.
const TYPICAL_P99: &str = "typical of the class with one request at a time, rounded: an order of magnitude";
/// Distance between two random places: density 2(1-x); time: 7.5ms * sqrt(x), whose mean is 4ms. Plus 0 to 8.3ms. Its 99th
/// percentile is 14.2ms, its median 8.2ms.
const SEEK_P99: &str =
    "computed: any part of a revolution, and a seek that takes the root of a random distance";
const BLOCK_LAYER: Option<Figure<u32>> = Some(figure(128, "the block layer's default"));
const SSD_TAIL: Option<Figure<Tail>> = Some(figure(Tail { one_in: 10_000, times: 10 }, TYPICAL));

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "virtio",
        class: "the virtual disk of the machine on which costs were measured",
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
        latency_covers: BLOCK_BYTES,
    },
    Preset {
        name: "hdd",
        class: "a disk of 7,200 revolutions a minute",
        read: us(8_000, "half a revolution of 8.3ms, and a seek of 4ms, which is typical"),
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
        read_bandwidth: mb(530, "typical of the class: what the link carries"),
        write_bandwidth: mb(530, "typical of the class: what the link carries"),
        iops: Some(figure(90_000, TYPICAL)),
        queue_depth: Some(figure(32, "the link's command queue")),
        nr_requests: BLOCK_LAYER,
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
        latency_covers: BLOCK_BYTES,
    },
    Preset {
        name: "pmem",
        class: "persistent memory on the memory bus: the latency is a cache line's, a page's transfer comes on top",
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
            tail: self.tail.map(|figure| figure.value),
            read_bandwidth: self.read_bandwidth.value,
            write_bandwidth: self.write_bandwidth.value,
            iops_max: self.iops.map(|figure| figure.value),
            queue_depth: value(&self.queue_depth),
            nr_requests: value(&self.nr_requests),
            request_pages_max: Bdi::NO_READAHEAD.io_pages,
            latency_covers: self.latency_covers,
            faults: Vec::new(),
        }
    }
}

impl DeviceSpec {
    /// The names [`DeviceSpec::preset`] knows.
    pub const PRESETS: &[&str] = &{
        let mut names = [""; PRESETS.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = PRESETS[index].name;
            index += 1;
        }
        names
    };

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<DeviceSpec> {
        Preset::by_name(name).map(Preset::spec)
    }
}
