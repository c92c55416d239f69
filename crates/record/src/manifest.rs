//! `recording.toml`: the description of a recording, for people and for a twin on another machine.
//!
//! It is written last. A folder without it is a recording that was cut short, and so is one whose `accesses.pgt` has no end.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, read};
use crate::regular::{self, TEXT_MAX};

/// The manifest's name in the folder of a recording,
pub const MANIFEST: &str = "recording.toml";
/// that of the accesses,
pub const ACCESSES: &str = "accesses.pgt";
/// that of the pages that were in memory when the recording began,
pub const BEFORE: &str = "before.pgt";
/// that of what was done with whole files meanwhile,
pub const FILE_CALLS: &str = "file_calls.csv";
/// that of when pages of mapped files were evicted that came back,
pub const EVICTIONS: &str = "evictions.csv";
/// that of how much files had when the group was full,
pub const ROOMS: &str = "rooms.csv";
/// and that of what the group held from time to time.
pub const SAMPLES: &str = "samples.csv";

/// CPU time that an event takes from the recorded program, if it could not be measured: what a cached read of 4 KiB took longer on a quiet machine.
pub const EVENT_NS: u64 = 110;

/// Without events: figures of processes,
pub const PROCESSES: &str = "processes.csv";
/// pages of named files in memory,
pub const RESIDENT: &str = "resident.csv";
/// regions of DAMON,
pub const REGIONS: &str = "regions.csv";
/// and MGLRU's generations at the begin
pub const BEGIN_GENERATIONS: &str = "begin.lru_gen";
/// and at the end.
pub const END_GENERATIONS: &str = "end.lru_gen";

/// The columns of [`EVICTIONS`],
pub(crate) const EVICTION_COLUMNS: &str = "access,evicted";
/// and of [`ROOMS`].
pub(crate) const ROOM_COLUMNS: &str = "access,pages";

/// Minimum change of the files' memory that is recorded, in pages: a part of what a reclaim call frees.
pub const ROOM_STEP: u64 = 8;

/// Bytes of a page, on any machine.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 4096..=1 << 18;

/// The version of the form of recordings. It rises when something goes or means something else.
pub const FORMAT_VERSION: u32 = 1;

/// The description of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of its form.
    pub format_version: u32,
    /// The program that wrote it.
    pub pageout: String,
    /// The recorded machine or cgroup.
    pub recording: Recorded,
    /// The source of accesses, and the missing events.
    pub source: SourceRecord,
    /// The sums of events.
    pub sums: Sums,
    /// The kernel and the machine.
    pub kernel: KernelRecord,
    /// The group that paid.
    pub group: GroupRecord,
    /// What the recording cost. Earlier versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostRecord>,
    /// What processes read, if no events were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<ProcessRecord>,
    /// Settings of the kernel, by their names below `/proc/sys` with dots.
    #[serde(default)]
    pub sysctl: BTreeMap<String, i64>,
    /// Disks that files are on.
    #[serde(default)]
    pub device: Vec<DeviceRecord>,
    /// Files, in the order of their first access.
    #[serde(default)]
    pub file: Vec<FileRecord>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_success(code: &u8) -> bool {
    *code == 0
}

/// The recorded machine or cgroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The target.
    pub target: String,
    /// The command, unless it is anonymous.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The time of its start, in seconds since 1970.
    pub began_s: u64,
    /// The duration.
    pub duration_ns: u64,
    /// The reason of its end.
    pub ended: String,
    /// The exit code of the command, as a shell has it: 128 and N if signal N ended it. 0 if something else ended the recording.
    #[serde(default, skip_serializing_if = "is_success")]
    pub command_code: u8,
    /// Accesses in `accesses.pgt`.
    pub accesses: u64,
    /// Accesses that the trace could not hold.
    #[serde(default)]
    pub accesses_beyond: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// One page of so many was recorded.
    pub sample: u64,
    /// True if names were left out.
    #[serde(default)]
    pub is_anonymous: bool,
}

/// The source of accesses, and the missing events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    /// The kind of accesses: `reads` with hits, `insertions` alone, or `none`.
    pub accesses: String,
    /// Tracepoints that were read.
    pub events: Vec<String>,
    /// Tracepoints that were asked for and that this kernel lacks.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Events that buffers could not hold.
    pub lost_events: u64,
    /// Pages of the buffer before which the kernel says that events are missing.
    pub lost_before_pages: u64,
    /// Events that were not read, as they were shorter than their format or of none that was asked for.
    #[serde(default)]
    pub unread_events: u64,
    /// Events that a CPU's clock gave an earlier time than the one before.
    pub clock_went_back: u64,
    /// Events that came too late to be put in order.
    pub out_of_order: u64,
    /// Files by name, if only these were recorded.
    #[serde(default)]
    pub only_files: Vec<String>,
    /// Further remarks for readers of the recording.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// The sums of all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sums {
    /// Tasks that used files,
    pub tasks: u64,
    /// and how often an access was of another task than the one before.
    pub turns: u64,
    /// Reads, each once however often it looked for pages.
    pub requests: u64,
    /// Pages that reads asked for.
    pub pages_read: u64,
    /// Part of these: pages that the read itself had brought in.
    pub read_misses: u64,
    /// Events that were the same read going on.
    pub continued: u64,
    /// Pages that writes touched.
    pub pages_written: u64,
    /// Calls of fsync(2) and fdatasync(2).
    pub syncs: u64,
    /// Faults of mapped files that found no page in memory nearby.
    pub faults: u64,
    /// Faults that looked for pages in memory around the address; the requested page among them is unknown.
    pub faults_around: u64,
    /// Page faults of programs, of any kind of memory.
    pub user_faults: u64,
    /// Part of these: first touches and swap-ins of memory of programs. The page was not mapped, and belonged to no file.
    pub memory_faults: u64,
    /// Pages that came into the page cache.
    pub insertions: u64,
    /// Part of these: first insertions since the start of the recording, of pages that were not in memory then.
    pub insertions_first: u64,
    /// Part of all: pages in folios of several pages.
    pub insertions_large: u64,
    /// Pages of the largest folio that came in right after a reclaim call, which made space for it.
    pub charged_largest: u64,
    /// Part of these: pages that reads had not requested.
    pub read_ahead: u64,
    /// Pages that left the page cache while one of the tasks was running.
    pub evictions: u64,
    /// Part of these: pages removed outside of reclaim calls, because their files were deleted or truncated.
    pub truncated: u64,
    /// Pages that the tasks had brought in, and kernel threads took who reclaim from the whole machine.
    pub taken: u64,
    /// Calls of reclaim at a group's limit by the tasks.
    pub reclaim_calls: u64,
    /// Pages that these freed.
    pub reclaimed: u64,
    /// Pages that were in memory when the recording began.
    pub resident_at_start: u64,
    /// Pages that are neither read, written nor faulted, though they came in.
    pub inserted_unused: u64,
    /// Requests of several pages of which a sample has only the first.
    pub sampled_long: u64,
}

/// What a recording cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostRecord {
    /// Events that the kernel wrote for it, those lost included.
    pub events: u64,
    /// CPU time of one event in the recorded program, measured before the recording; 0 if it could not be.
    pub event_ns: u64,
    /// CPU time of the recorder.
    pub recorder_ns: u64,
}

impl CostRecord {
    /// CPU time of one event: as measured, or else [`EVENT_NS`].
    pub fn one_event_ns(self) -> u64 {
        if self.event_ns > 0 { self.event_ns } else { EVENT_NS }
    }

    /// CPU time that events took from the recorded programs, as an estimate.
    pub fn events_ns(self) -> u64 {
        self.events.saturating_mul(self.one_event_ns())
    }
}

/// What the recorded processes read and wrote, by `/proc/PID/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessRecord {
    /// The most processes at a time.
    pub most: u64,
    /// Processes whose figures may not be read.
    pub unreadable: u64,
    /// Bytes that calls read, of files, pipes and sockets.
    pub rchar: u64,
    /// Bytes that calls wrote.
    pub wchar: u64,
    /// Bytes that came from disks for them.
    pub read_bytes: u64,
    /// Bytes that they have to write to disks.
    pub write_bytes: u64,
}

/// The kernel and the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// As `uname -r` says.
    pub release: String,
    /// As `uname -m` says.
    pub machine: String,
    /// CPUs that were running.
    pub cpus: u32,
    /// `MemTotal`.
    pub memory_bytes: u64,
    /// `/sys/kernel/mm/lru_gen/enabled`, if this kernel has generations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lru_gen: Option<String>,
    /// Transparent huge pages, as the kernel writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transparent_hugepage: Option<String>,
    /// zswap's switch, if this kernel has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap: Option<String>,
    /// Swap areas: name and bytes.
    #[serde(default)]
    pub swap: BTreeMap<String, u64>,
    /// Lines of the configuration that are about memory.
    #[serde(default)]
    pub config: Vec<String>,
}

/// The group that paid for memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRecord {
    /// Version of the hierarchy: 1 or 2; 0 without a memory controller.
    pub version: u8,
    /// From the root of the hierarchy.
    pub path: String,
    /// The lowest limit of the group and its parents, in bytes; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Its limit files with their values at the start.
    #[serde(default)]
    pub limits: BTreeMap<String, String>,
    /// Limits that were others at the end.
    #[serde(default)]
    pub limits_changed: Vec<String>,
    /// The interval between readings of its counters, in nanoseconds.
    pub stat_every_ns: u64,
    /// Stalls for memory on the whole machine meanwhile, if the kernel counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_stalled_us: Option<u64>,
    /// The events of its limits, and killed processes, by the names of `memory.events`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u64>,
    /// `memory.stat` when the recording began,
    #[serde(default)]
    pub stat_begin: BTreeMap<String, u64>,
    /// and when it ended.
    #[serde(default)]
    pub stat_end: BTreeMap<String, u64>,
}

impl DeviceRecord {
    /// The file system by its name alone, if it is one that may keep files in large folios.
    pub fn large_folios(&self) -> Option<&str> {
        self.file_system.split(' ').next().filter(|name| ["ext4", "xfs", "btrfs"].contains(name))
    }
}

/// A disk that files are on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// Its numbers, as `254:0`.
    pub number: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The file system and its options.
    #[serde(default)]
    pub file_system: String,
    /// The readahead window of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kb: Option<u64>,
    /// The block layer's scheduler.
    #[serde(default)]
    pub scheduler: String,
    /// True if it turns.
    #[serde(default)]
    pub rotational: bool,
    /// Reads that ended meanwhile, of anyone,
    pub reads: u64,
    /// and the mean time that one took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_ns: Option<u64>,
    /// Writes that ended meanwhile, of anyone,
    pub writes: u64,
    /// and the mean time that one took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_latency_ns: Option<u64>,
}

/// The way in which a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// By read(2) and write(2), or their like.
    File,
    /// Through a mapping.
    Mapped,
}

/// Advice on a mapping, by the flags `rr` and `sr` of `smaps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MappedAdvice {
    /// Neither flag.
    Normal,
    /// `MADV_RANDOM`.
    Random,
    /// `MADV_SEQUENTIAL`.
    Sequential,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRecord {
    /// Its name, or `inode N` if that could not be found out.
    pub name: String,
    /// The numbers of its device, as `254:0`.
    pub device: String,
    /// Its inode; 0 if names are left out.
    pub inode: u64,
    /// Its size when it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// True if it had no name any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
    /// Another name that its inode had: it was renamed, or the inode was used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<String>,
    /// Its object in `accesses.pgt` when read or written,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<u32>,
    /// and when mapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_object: Option<u32>,
    /// Pages read,
    #[serde(default)]
    pub pages_read: u64,
    /// written,
    #[serde(default)]
    pub pages_written: u64,
    /// and faulted.
    #[serde(default)]
    pub faults: u64,
    /// Calls of fsync(2).
    #[serde(default)]
    pub syncs: u64,
    /// How often it was deleted, and another came with its inode,
    #[serde(default, skip_serializing_if = "is_none")]
    pub deletions: u64,
    /// and how often truncated.
    #[serde(default, skip_serializing_if = "is_none")]
    pub truncations: u64,
    /// Pages that came into memory.
    #[serde(default)]
    pub insertions: u64,
    /// Part of these: pages brought in by reads,
    #[serde(default)]
    pub read_insertions: u64,
    /// and of these, pages that no read had asked for.
    #[serde(default)]
    pub read_ahead: u64,
    /// Pages that were in memory when the recording began.
    #[serde(default)]
    pub resident_at_start: u64,
    /// Pages of most reads.
    #[serde(default)]
    pub request_pages: u64,
    /// Advice on its mapping, if that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped_advice: Option<MappedAdvice>,
    /// True if most of its faults fetched instructions.
    #[serde(default, skip_serializing_if = "is_false")]
    pub executable: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A sample of the group's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Since the recording began.
    pub time_ns: u64,
    /// All that it pays for.
    pub usage_bytes: u64,
    /// Of that, files,
    pub file_bytes: u64,
    /// memory of programs, with shared memory,
    pub anon_bytes: u64,
    /// and the kernel's own.
    pub kernel_bytes: u64,
    /// In swap.
    pub swap_bytes: u64,
    /// Not yet written back.
    pub dirty_bytes: u64,
    /// Refaults of files so far.
    pub refaults: u64,
    /// Pages swapped in so far.
    pub swap_ins: u64,
    /// Time that tasks were stalled so far, if the kernel counts it.
    pub stalled_us: Option<u64>,
}

impl Sample {
    /// The columns of `samples.csv`.
    pub const COLUMNS: &str = "time_ns,usage_bytes,file_bytes,anon_bytes,kernel_bytes,swap_bytes,dirty_bytes,refaults,swap_ins,stalled_us";

    /// Its line.
    #[cfg(target_os = "linux")]
    pub(crate) fn line(&self) -> String {
        let stalled = self.stalled_us.map_or_else(String::new, |us| us.to_string());
        format!(
            "{},{},{},{},{},{},{},{},{},{stalled}\n",
            self.time_ns,
            self.usage_bytes,
            self.file_bytes,
            self.anon_bytes,
            self.kernel_bytes,
            self.swap_bytes,
            self.dirty_bytes,
            self.refaults,
            self.swap_ins
        )
    }

    fn parse(line: &str) -> Option<Sample> {
        let mut fields = line.split(',');
        let mut number = || fields.next()?.parse::<u64>().ok();
        let sample = Sample {
            time_ns: number()?,
            usage_bytes: number()?,
            file_bytes: number()?,
            anon_bytes: number()?,
            kernel_bytes: number()?,
            swap_bytes: number()?,
            dirty_bytes: number()?,
            refaults: number()?,
            swap_ins: number()?,
            stalled_us: number(),
        };
        Some(sample)
    }
}

impl Manifest {
    /// Reads that of the recording in `folder`. Errors: there is none, or it is of a form that is not known.
    pub fn read(folder: &Path) -> Result<Manifest, Error> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            let what = match (folder.is_dir(), folder.join(format!("{ACCESSES}.part")).exists()) {
                (false, _) if folder.exists() => {
                    "found a file, expected the folder of a recording\nhelp: name the folder of a recording"
                }
                (false, _) => "no such folder\nhelp: `pageout record --into FOLDER -- COMMAND` writes one",
                (true, true) => {
                    "incomplete recording: the recorder was killed before its end\nhelp: remove the folder and record again"
                }
                (true, false) => {
                    "not a recording: found no recording.toml in it\nhelp: `pageout record --into FOLDER -- COMMAND` writes one"
                }
            };
            return Err(Error::Form(format!("{}: {what}", folder.display())));
        }
        // The accesses are read bit by bit, and may be larger than memory.
        for (name, most) in [
            (MANIFEST, TEXT_MAX),
            (SAMPLES, TEXT_MAX),
            (EVICTIONS, TEXT_MAX),
            (ROOMS, TEXT_MAX),
            (FILE_CALLS, TEXT_MAX),
            (ACCESSES, u64::MAX),
            (BEFORE, u64::MAX),
        ] {
            let path = folder.join(name);
            match regular::check(&path, most) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::Form(format!("{}: {error}", path.display())));
                }
                _ => {}
            }
        }
        Manifest::parse(&path.to_string_lossy(), &read(&path)?)
    }

    /// Reads the text of a manifest that errors call `name`.
    pub fn parse(name: &str, text: &str) -> Result<Manifest, Error> {
        let bad =
            |error: &dyn std::fmt::Display| Error::Form(format!("{name}: {}", error.to_string().trim_end()));
        let document: toml_edit::DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| bad(&error))?;
        let version = document.get("format_version").and_then(toml_edit::Item::as_integer);
        match version {
            Some(version) if version == i64::from(FORMAT_VERSION) => {}
            Some(version) => {
                return Err(bad(&format!(
                    "found format_version {version}, expected {FORMAT_VERSION}\nhelp: use the version of pageout that recorded it, or a later one"
                )));
            }
            None => return Err(bad(&"not a recording: missing format_version")),
        }
        let manifest: Manifest = toml_edit::de::from_str(text).map_err(|error| bad(&error))?;
        let Recorded { page_size, sample, .. } = manifest.recording;
        if !page_size.is_power_of_two() || !PAGE_SIZES.contains(&page_size) {
            return Err(bad(&format!(
                "recording.page_size: found {page_size}, expected a power of two from {} to {}",
                PAGE_SIZES.start(),
                PAGE_SIZES.end()
            )));
        }
        if !sample.is_power_of_two() {
            return Err(bad(&format!(
                "recording.sample: found {sample}, expected a power of two (1 is every page)"
            )));
        }
        Ok(manifest)
    }

    /// Its text.
    pub fn text(&self) -> Result<String, Error> {
        toml_edit::ser::to_string_pretty(self).map_err(|error| Error::Form(format!("{MANIFEST}: {error}")))
    }

    /// Returns samples of the memory of the group. Errors: the file, or a line of it, cannot be read.
    pub fn samples(folder: &Path) -> Result<Vec<Sample>, Error> {
        let path = folder.join(SAMPLES);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::Form(format!("{}: {error}; the recording is not complete", path.display()))
        })?;
        let mut samples = Vec::new();
        for (at, line) in text.lines().enumerate().skip(1) {
            let sample = Sample::parse(line).ok_or_else(|| {
                let told = format!(
                    "{}:{}: invalid line: expected ten numbers, {}",
                    path.display(),
                    at + 1,
                    Sample::COLUMNS
                );
                Error::Form(told)
            })?;
            samples.push(sample);
        }
        if samples.is_empty() {
            let none = "no sample; the recording is not complete";
            return Err(Error::Form(format!("{}: {none}", path.display())));
        }
        Ok(samples)
    }

    /// Faults of mapped files that found their page evicted: their place among the accesses, and the number of accesses before the
    /// eviction. Earlier versions did not record them. Errors: the file is unreadable, or a line of it.
    pub fn evictions(folder: &Path) -> Result<Vec<(u64, u64)>, Error> {
        let path = folder.join(EVICTIONS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut evictions: Vec<(u64, u64)> = Vec::new();
        for (at, line) in read(&path)?.lines().enumerate().skip(1) {
            let numbers = line.split_once(',').and_then(|(fault, evicted)| {
                Some((fault.parse::<u64>().ok()?, evicted.parse::<u64>().ok()?))
            });
            let is_later = |&(fault, evicted): &(u64, u64)| {
                evicted <= fault && evictions.last().is_none_or(|(last, _)| *last < fault)
            };
            let numbers = numbers.filter(is_later).ok_or_else(|| {
                let told = format!(
                    "{}:{}: invalid line: expected two numbers, {EVICTION_COLUMNS}; the first must be larger \
                     than in the previous line and not less than the second",
                    path.display(),
                    at + 1
                );
                Error::Form(told)
            })?;
            evictions.push(numbers);
        }
        Ok(evictions)
    }

    /// Pages of files at the limit, if more than at the start: from which access on, and the number. Earlier versions did not record them.
    /// Errors: the file is unreadable, or a line of it.
    pub fn rooms(folder: &Path) -> Result<Vec<(u64, i64)>, Error> {
        let path = folder.join(ROOMS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let mut rooms: Vec<(u64, i64)> = Vec::new();
        for (at, line) in read(&path)?.lines().enumerate().skip(1) {
            let numbers = line
                .split_once(',')
                .and_then(|(access, pages)| Some((access.parse::<u64>().ok()?, pages.parse::<i64>().ok()?)));
            let is_possible = |&(access, pages): &(u64, i64)| {
                pages.unsigned_abs() < 1 << 40 && rooms.last().is_none_or(|(last, _)| *last < access)
            };
            let numbers = numbers.filter(is_possible).ok_or_else(|| {
                let told = format!(
                    "{}:{}: invalid line: expected two numbers, {ROOM_COLUMNS}; the first must be larger than in the previous line",
                    path.display(),
                    at + 1
                );
                Error::Form(told)
            })?;
            rooms.push(numbers);
        }
        Ok(rooms)
    }

    /// Returns true if events are missing that were asked for.
    pub fn has_losses(&self) -> bool {
        self.source.lost_events > 0 || self.source.lost_before_pages > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_is_refused_and_says_what_to_do() {
        let error = Manifest::parse("r.toml", "format_version = 2\nnew = 1\n").unwrap_err().to_string();
        assert!(error.contains("found format_version 2") && error.contains("expected 1"), "{error}");
        let error = Manifest::parse("r.toml", "a = 1").unwrap_err().to_string();
        assert!(error.contains("missing format_version"), "{error}");
        assert!(
            Manifest::parse("r.toml", "format_version = 1\n").unwrap_err().to_string().contains("pageout")
        );
    }

    #[test]
    fn what_is_no_recording_is_told_by_what_it_is() {
        let folder = std::env::temp_dir().join(format!("pageout-no-recording-{}", std::process::id()));
        let said = |path: &Path| Manifest::read(path).unwrap_err().to_string();
        assert!(said(&folder).contains("no such folder\nhelp: "));
        std::fs::create_dir(&folder).unwrap();
        assert!(said(&folder).contains("found no recording.toml in it\nhelp: "));
        std::fs::write(folder.join("file"), "").unwrap();
        assert!(said(&folder.join("file")).contains("found a file, expected the folder"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn file_of_a_recording_that_is_a_device_is_refused() {
        for name in [MANIFEST, ACCESSES, BEFORE, FILE_CALLS, EVICTIONS, ROOMS, SAMPLES] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(MANIFEST), "format_version = 1\n").unwrap();
            let _ = std::fs::remove_file(folder.path().join(name));
            std::os::unix::fs::symlink("/dev/zero", folder.path().join(name)).unwrap();
            let told = Manifest::read(folder.path()).unwrap_err().to_string();
            assert!(told.contains(name) && told.contains("expected a regular file"), "{name}: {told}");
        }
    }

    #[test]
    fn what_no_machine_can_have_is_refused_by_its_key() {
        let manifest = Manifest {
            format_version: FORMAT_VERSION,
            pageout: String::new(),
            recording: Recorded { page_size: 4096, sample: 1, ..Recorded::default() },
            source: SourceRecord::default(),
            sums: Sums::default(),
            kernel: KernelRecord::default(),
            group: GroupRecord::default(),
            cost: None,
            processes: None,
            sysctl: BTreeMap::new(),
            device: Vec::new(),
            file: Vec::new(),
        };
        let text = manifest.text().unwrap();
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{from:?} is not in it");
            Manifest::parse("r.toml", &text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert_eq!(Manifest::parse("r.toml", &text).unwrap(), manifest);
        for wrong in ["0", "4097", "8388608"] {
            let error = refused("page_size = 4096", &format!("page_size = {wrong}"));
            assert!(error.contains(&format!("r.toml: recording.page_size: found {wrong}")), "{error}");
        }
        for wrong in ["0", "3"] {
            let error = refused("sample = 1", &format!("sample = {wrong}"));
            assert!(error.contains(&format!("recording.sample: found {wrong}")), "{error}");
        }
    }

    #[test]
    fn a_sample_survives_its_line() {
        let sample = Sample { time_ns: 1, file_bytes: 5, stalled_us: Some(9), ..Sample::default() };
        assert_eq!(Sample::parse(sample.line().trim_end()), Some(sample));
        let sample = Sample { time_ns: 1, ..Sample::default() };
        assert_eq!(Sample::parse(sample.line().trim_end()), Some(sample));
        assert_eq!(Sample::parse("1,2"), None);
    }
}
