//! `[[device]]`, `[[swap]]` and `[[file]]`: where pages that are not in memory live.

use pageout_engine::{Bdi, BdiLimits, Nanos, PAGE_SIZE};

use super::compressed::{CONTENTS_NAMES, Contents, Deciles};
use super::keys::{Accepts, LATENCY, SIZE_MAX};
use super::section::{from_texts, section, words};
use super::{Bandwidth, DEFAULT_DEVICE, Share, Size, TimeSpan};
use crate::device::{DeviceSpec, Figure, IoScheduler, Preset, Tail};

section! {
    /// A block device: a preset by class, and what differs from it.
    pub struct Device {
        name: String, [required] in Accepts::Text => Same,
            "Name by which files and swap areas refer to the device. Without any [[device]] there is one called \"nvme\".";
        preset: String, [default DEFAULT_DEVICE.to_string()] in Accepts::Choice(DeviceSpec::PRESETS) => Same,
            "The class of device; it sets every figure not overridden here. nvme, because most machines have one.";
        read_latency: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "Median latency of a random read with no other request queued.";
        read_p99: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "99th percentile of the same; the tail is lognormal. Equal to the median: no tail.";
        write_latency: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "Median latency of a write.";
        write_p99: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "99th percentile of the same.";
        sequential_latency: Option<TimeSpan>, [absent "the preset's"] in LATENCY => Same,
            "Latency of a request that begins where the previous one ended, on a device that seeks.";
        seek_latency: Option<TimeSpan>, [absent "none"] in LATENCY => Same,
            "Time that the longest seek adds to a request that does not follow the previous one. A seek within a file adds it in proportion to its distance, and at most all of it. A seek to another file adds all of it.";
        seek_span: Option<Size>, [absent "1GiB"] in Accepts::Size(4096, SIZE_MAX) => Twice,
            "Distance within a file from which on a seek takes all of seek_latency.";
        read_bandwidth: Option<Bandwidth>, [absent "the preset's"] in Accepts::Bandwidth => Same,
            "Bytes per second, shared by reads.";
        write_bandwidth: Option<Bandwidth>, [absent "the preset's"] in Accepts::Bandwidth => Same,
            "Bytes per second, shared by writes.";
        queue_depth: Option<u32>, [absent "the preset's"] in Accepts::Integer(1, 65_536) => Same,
            "Requests served at the same time; further ones wait.";
        nr_requests: Option<u32>, [absent "128 (pmem: no limit)"] in Accepts::Integer(1, 65_536) => Same,
            "Requests served and waiting at the same time; under a scheduler, of each direction. A task that submits one more sleeps until a slot is free, including reclaim that swaps out. The block layer's nr_requests.";
        scheduler: Option<DiskScheduler>, [absent "mq-deadline where there is one queue (hdd, sata-ssd, virtio)"] in Accepts::Choice(DiskScheduler::WORDS) => Same,
            "The scheduler: in which order waiting requests get a slot. mq-deadline: reads before writes, each sorted by position, and adjacent requests are merged. cfq: each reading task has a share of the disk's time, and all writes together have one (the default from 2006 to 2018). none: in order of arrival. The block layer's queue/scheduler.";
        // A window, and a request, of the unscaled machine: one stands for as many as a page stands for.
        read_ahead_kb: Option<u32>, [absent "twice optimal_io_kb, at least 128"] in Accepts::Integer(0, KB_MAX) => Same,
            "How far a file is read ahead at most while it is read in order, in KiB, rounded down to pages. The block layer's read_ahead_kb. 0: no readahead.";
        optimal_io_kb: u32, [unless 0] in Accepts::Integer(0, KB_MAX) => Same,
            "Request size that the device reports as best, in KiB, such as the stripe of a RAID; 0: it reports none. /sys/block/DEVICE/queue/optimal_io_size, which is in bytes. The default of read_ahead_kb is twice this value, at least 128.";
        rotational: bool, [unless false] in Accepts::Bool => Same,
            "Set it if /sys/block/DEVICE/queue/rotational is 1, which also holds for virtual disks, and the kernel uses it for readahead, as 6.18.44 does. Without optimal_io_kb, the default of read_ahead_kb is then twice max_sectors_kb. It is not known which kernels do this: leave it out for a kernel that shows 128. It changes nothing else; a disk's seeks come with preset = \"hdd\".";
        max_sectors_kb: u32, [unless Device::MAX_SECTORS_KB] in Accepts::Integer(4, KB_MAX) => Same,
            "Size of the largest request, in KiB, rounded down to pages; larger requests are split. A read(2) larger than the readahead window is read in pieces of this size. The block layer's max_sectors_kb and its default.";
        file_system: FileSystem, [unless FileSystem::None] in Accepts::Choice(FileSystem::WORDS) => Same,
            "File system of the device's files, which decides in which folios they are kept: ext4 (large ones since 6.16), xfs (since 5.18) or btrfs (since 7.2). A large folio is read, written, used and reclaimed as a whole. none: single pages in every version, because large folios need a file system that has them. The version is that of the machine's rules.";
        min_ratio: u32, [unless 0] in Accepts::Integer(0, 100) => Same,
            "Minimum share of the dirty limit for this device, in percent, however little it has written lately compared with others. /sys/class/bdi/8:0/min_ratio and its default.";
        max_ratio: u32, [unless 100] in Accepts::Integer(0, 100) => Same,
            "Maximum share of the dirty limit for this device, in percent. /sys/class/bdi/8:0/max_ratio and its default.";
        strict_limit: bool, [unless false] in Accepts::Bool => Same,
            "Tasks that dirty its pages are throttled by the device's own share, even while the machine has few dirty pages. For a slow device whose max_ratio must hold at all times. /sys/class/bdi/8:0/strict_limit; FUSE sets it.";
        iops: Option<u64>, [absent "the preset's"] in Accepts::Integer(1, 1_000_000_000) => Same,
            "Maximum requests per second of the device, at any queue depth.";
        fail_reads: Option<Share>, [absent "0"] in Accepts::Share => Same,
            "Share of reads that end in an I/O error, chosen by the seed.";
        fail_writes: Option<Share>, [absent "0"] in Accepts::Share => Same,
            "Share of writes that end in an I/O error, chosen by the seed.";
        remote_completions: Option<Share>, [absent "0"] in Accepts::Share => Same,
            "Share of requests that complete on another CPU than the one that submitted them, chosen by the seed. Folios in the submitting CPU's batches are then out of reach.";
    }
}

words! {
    /// The file system of a device's files.
    pub enum FileSystem {
        /// One with single pages.
        None = "none",
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// btrfs.
        Btrfs = "btrfs",
    }
}

impl From<FileSystem> for pageout_engine::FileSystem {
    fn from(file_system: FileSystem) -> pageout_engine::FileSystem {
        match file_system {
            FileSystem::None => pageout_engine::FileSystem::None,
            FileSystem::Ext4 => pageout_engine::FileSystem::Ext4,
            FileSystem::Xfs => pageout_engine::FileSystem::Xfs,
            FileSystem::Btrfs => pageout_engine::FileSystem::Btrfs,
        }
    }
}

words! {
    /// The scheduler that orders waiting requests of a device.
    pub enum DiskScheduler {
        /// Requests are served as they come.
        None = "none",
        /// Reads before writes, in order of their places, and neighbours as one.
        MqDeadline = "mq-deadline",
        /// Tasks that read in turns, and all writes together in theirs.
        Cfq = "cfq",
    }
}

impl DiskScheduler {
    fn of(scheduler: IoScheduler) -> DiskScheduler {
        match scheduler {
            IoScheduler::None => DiskScheduler::None,
            IoScheduler::MqDeadline => DiskScheduler::MqDeadline,
            IoScheduler::Cfq => DiskScheduler::Cfq,
        }
    }
}

impl From<DiskScheduler> for IoScheduler {
    fn from(scheduler: DiskScheduler) -> IoScheduler {
        match scheduler {
            DiskScheduler::None => IoScheduler::None,
            DiskScheduler::MqDeadline => IoScheduler::MqDeadline,
            DiskScheduler::Cfq => IoScheduler::Cfq,
        }
    }
}

/// The largest window and the largest request: 4 GiB.
const KB_MAX: i64 = Bdi::PAGES_MAX as i64 * KB_A_PAGE as i64;

const KB_A_PAGE: u32 = (PAGE_SIZE >> 10) as u32;

impl Device {
    /// The readahead of a device that does not define it.
    pub const READ_AHEAD_KB: u32 = 128;

    /// The largest request of a device that does not define it.
    pub const MAX_SECTORS_KB: u32 = Bdi::NO_READAHEAD.io_pages * KB_A_PAGE;

    /// A device that is its preset and nothing else.
    pub fn of_preset(name: &str, preset: &str) -> Device {
        from_texts(&[("name", name), ("preset", preset)])
    }

    /// How much of what may be dirty may be its own.
    pub(super) fn limits(&self) -> BdiLimits {
        // They are percent, as has been checked.
        let [min_ratio, max_ratio] = [self.min_ratio, self.max_ratio].map(|percent| percent as u8);
        BdiLimits { min_ratio, max_ratio, strict_limit: self.strict_limit }
    }

    /// Returns the maximum readahead of a file in KiB: as set, or as the block layer derives it from the device.
    pub fn window_kb(&self) -> u32 {
        let optimal = match (self.optimal_io_kb, self.rotational) {
            (0, true) => self.max_sectors_kb,
            (optimal, _) => optimal,
        };
        self.read_ahead_kb.unwrap_or(optimal.saturating_mul(2).clamp(Device::READ_AHEAD_KB, KB_MAX as u32))
    }

    /// What readahead knows of it.
    pub(super) fn bdi(&self) -> Bdi {
        Bdi {
            ra_pages: self.window_kb() / KB_A_PAGE,
            io_pages: self.max_sectors_kb / KB_A_PAGE,
            file_system: self.file_system.into(),
        }
    }
}

/// A figure of a preset, as a scenario would set it.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetFigure {
    /// The key of `[[device]]`; empty for what no key sets.
    pub key: &'static str,
    /// The value of the figure; without a key, words.
    pub value: String,
    /// The source of the figure.
    pub source: &'static str,
}

impl Device {
    /// Every figure that a preset gives, with its source.
    pub fn figures(preset: &Preset) -> Vec<PresetFigure> {
        let time = |figure: Figure<Nanos>| (format!("\"{}\"", TimeSpan(figure.value.0)), figure.source);
        let rate = |figure: Figure<u64>| (format!("\"{}\"", Bandwidth(figure.value)), figure.source);
        let count = |figure: Figure<u64>| (figure.value.to_string(), figure.source);
        let depth = |figure: Figure<u32>| (figure.value.to_string(), figure.source);
        let scheduler = |figure: Figure<IoScheduler>| {
            (format!("\"{}\"", DiskScheduler::of(figure.value).name()), figure.source)
        };
        let rare = |figure: Figure<Tail>| {
            let Tail { one_in, times } = figure.value;
            (format!("one request in {one_in} takes {times} times the median"), figure.source)
        };
        let figures = [
            ("read_latency", Some(time(preset.read))),
            ("read_p99", Some(time(preset.read_p99))),
            ("write_latency", Some(time(preset.write))),
            ("write_p99", Some(time(preset.write_p99))),
            ("sequential_latency", preset.sequential.map(time)),
            ("read_bandwidth", Some(rate(preset.read_bandwidth))),
            ("write_bandwidth", Some(rate(preset.write_bandwidth))),
            ("queue_depth", preset.queue_depth.map(depth)),
            ("nr_requests", preset.nr_requests.map(depth)),
            ("scheduler", Some(scheduler(preset.scheduler))),
            ("iops", preset.iops.map(count)),
            ("", preset.tail.map(rare)),
        ];
        let given = figures.into_iter().filter_map(|(key, figure)| Some((key, figure?)));
        given.map(|(key, (value, source))| PresetFigure { key, value, source }).collect()
    }
}

impl Contents {
    /// Every figure of it, with its source.
    pub fn figures(&self) -> [PresetFigure; 3] {
        let share = |per_mille: u16| (f64::from(per_mille) / 1000.0).to_string();
        let figure = |key, value| PresetFigure { key, value, source: self.source };
        [
            figure("zero_filled", share(self.zero_filled)),
            figure("same_filled", share(self.same_filled)),
            figure("compressed_deciles", format!("\"{}\"", self.deciles)),
        ]
    }
}

section! {
    /// A swap area.
    pub struct Swap {
        size: Size, [required] in Accepts::Size(4096, SIZE_MAX) => Twice,
            "Size of the area, uncompressed.";
        kind: SwapKind, [default SwapKind::Disk] in Accepts::Choice(SwapKind::WORDS) => Same,
            "disk waits for a device. zram compresses into memory synchronously.";
        device: Option<String>, [absent "the only device"] in Accepts::NameOf("device") => Same,
            "The device of an area of kind \"disk\".";
        priority: Option<u32>, [absent "below the previous areas"] in Accepts::Integer(0, 32_767) => Same,
            "Areas of a higher priority are filled first; equal ones take turns of a few pages each. Areas without a priority are filled last, in the order of the file.";
        contents: Option<String>, [absent "by `compressed_min` and `compressed_max`"] in Accepts::Choice(CONTENTS_NAMES) => Same,
            "zram: measured contents of its pages: shares of zeroes and of one word, and lengths, with the compressor after the @.";
        compressed_deciles: Option<Deciles>, [absent "by `compressed_min` and `compressed_max`"] in Accepts::Deciles => Same,
            "zram: compressed sizes of its pages, in bytes: the shortest, the nine deciles, and the longest. `pageout trace compressibility` measures them for a file or process.";
        compressed_min: Option<Share>, [absent "a third"] in Accepts::Share => Same,
            "zram: best compressed size of a page, as a share of its size. Each page has its own size in this range, derived from its identity and the same in every run. lzo-rle compresses usual memory to a third to a half.";
        compressed_max: Option<Share>, [absent "a half"] in Accepts::Share => Same,
            "zram: worst compressed size of a page. Pages above 0.886 are kept uncompressed.";
        same_filled: Option<Share>, [absent "0"] in Accepts::Share => Same,
            "zram: share of pages that are one repeated word, which take no memory.";
        zero_filled: Option<Share>, [absent "0"] in Accepts::Share => Same,
            "Share of pages that are all zeroes: swapped out they are a bit of their slot, on any kind of area (kernel.swap.zero_map).";
        memory_limit: Option<Size>, [absent "no limit"] in Accepts::Size(4096, SIZE_MAX) => Twice,
            "zram: maximum memory of the area (mem_limit). Beyond it, or if the machine has no free memory, a page can't be swapped out and stays.";
    }
}

words! {
    /// The kind of a swap area.
    pub enum SwapKind {
        /// A partition or file on a block device: a page out waits for the device.
        Disk = "disk",
        /// Compressed memory with synchronous I/O: a page out costs CPU and is over when the call returns.
        Zram = "zram",
    }
}

section! {
    /// A file that objects refer to by name.
    pub struct File {
        name: String, [required] in Accepts::Text => Same,
            "Name by which objects refer to the file.";
        size: Size, [required] in Accepts::Size(1, SIZE_MAX) => Twice,
            "Its size, rounded up to pages.";
        kind: FileKind, [default FileKind::Regular] in Accepts::Choice(FileKind::WORDS) => Same,
            "regular: on a device. tmpfs: in memory and swap.";
        device: Option<String>, [absent "the only device"] in Accepts::NameOf("device") => Same,
            "The device of a regular file.";
        huge: TmpfsHuge, [default TmpfsHuge::Never] in Accepts::Choice(TmpfsHuge::WORDS) => Same,
            "Mount option of tmpfs: which pages of the file may be in large folios. always: all, even beyond its end. within_size: those of folios that end within the file. advise: those that a fault through a mapping with `hugepage = true` brings in. Such a folio is split when it is swapped out. never is the kernel's default.";
    }
}

words! {
    /// The mount option `huge=` of tmpfs.
    pub enum TmpfsHuge {
        /// Single pages.
        Never = "never",
        /// Large folios anywhere.
        Always = "always",
        /// Large folios within the file.
        WithinSize = "within_size",
        /// Large folios where a mapping has the hint.
        Advise = "advise",
    }
}

impl From<TmpfsHuge> for pageout_engine::TmpfsHuge {
    fn from(huge: TmpfsHuge) -> pageout_engine::TmpfsHuge {
        match huge {
            TmpfsHuge::Never => pageout_engine::TmpfsHuge::Never,
            TmpfsHuge::Always => pageout_engine::TmpfsHuge::Always,
            TmpfsHuge::WithinSize => pageout_engine::TmpfsHuge::WithinSize,
            TmpfsHuge::Advise => pageout_engine::TmpfsHuge::Advise,
        }
    }
}

words! {
    /// The backing of a file.
    pub enum FileKind {
        /// A file system on a block device.
        Regular = "regular",
        /// Memory and swap.
        Tmpfs = "tmpfs",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::device::PRESETS;

    #[test]
    fn what_is_told_of_a_preset_is_what_it_is() {
        for preset in PRESETS {
            // On top of another preset, so that nothing is right because it was left out.
            let other = if preset.queue_depth.is_some() { "virtio" } else { "pmem" };
            let mut given = json!({ "name": preset.name, "preset": other });
            for figure in Device::figures(preset).iter().filter(|figure| !figure.key.is_empty()) {
                assert!(!figure.source.is_empty(), "{} {}", preset.name, figure.key);
                given[figure.key] = serde_json::from_str::<Value>(&figure.value).unwrap();
            }
            let device: Device = serde_json::from_value(given).unwrap();
            let (spec, told) = (preset.spec(), device.spec().unwrap());
            assert_eq!((told.read, told.write, told.sequential), (spec.read, spec.write, spec.sequential));
            assert_eq!(told.read_bandwidth, spec.read_bandwidth);
            assert_eq!(told.write_bandwidth, spec.write_bandwidth);
            assert_eq!((told.queue_depth, told.nr_requests), (spec.queue_depth, spec.nr_requests));
            assert_eq!(told.scheduler, spec.scheduler);
            assert!(spec.iops_max.is_none() || told.iops_max == spec.iops_max);
        }
    }
}
