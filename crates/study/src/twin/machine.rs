//! The differences between the twin and its variants, and the scenario made of them: a text that can be read, kept and changed.
//!
//! Files and their accesses stay in the recording, which a task names. Default values are omitted.

use std::fmt::Write;
use std::path::Path;

use pageout_engine::Version;
use pageout_record::{ACCESSES, BEFORE, DeviceRecord};

use super::recording::{Held, Recording};

/// The group that the twin's tasks run in.
pub(super) const GROUP: &str = "/twin";
/// The group that pays for what was in memory before, where that is another.
const OTHERS: &str = "/others";
/// Tasks: what fills memory before, and what was recorded.
pub(super) const BEFORE_TASK: &str = "before";
pub(super) const TASK: &str = "recorded";

/// Time that a read of a cached page takes, which is part of the time between accesses.
const HIT_NS: u64 = 860;
/// If chance decides, variants of the group also hold N pages less and more. A CPU charges 64 pages in one batch, and the recording does
/// not show how many of them are in use when the group counts as full.
const CHANCES: [u64; 3] = [4, 12, 24];
/// Memory in addition to the group: the machine's own need.
const ROOM: u64 = 256 << 20;

/// The file system that a device has if files came in large folios and the recording names no file system with such folios. XFS and ext4 choose the same.
const ASSUMED_FILE_SYSTEM: &str = "xfs";

/// What is assumed of the devices of a recording: a line each.
pub fn assumptions(recording: &Recording) -> Vec<String> {
    let devices = recording.manifest.device.iter();
    let is_guessed = |device: &&DeviceRecord| {
        recording.manifest.sums.insertions_large > 0 && device.large_folios().is_none()
    };
    let text = |device: &DeviceRecord| {
        let number = &device.number;
        format!(
            "device {number}: files came in large folios. No file system that has them is recorded: {ASSUMED_FILE_SYSTEM} is assumed; \
             to use another, set `file_system` of this device in recording.toml to ext4, xfs or btrfs"
        )
    };
    devices.filter(is_guessed).map(text).collect()
}

/// The machine of the twin.
#[derive(Clone, Debug, PartialEq)]
pub struct TwinMachine {
    /// Memory of the group, all of it, in bytes.
    pub limit: u64,
    /// `memory.high`, likewise.
    pub high: Option<u64>,
    /// The constant part that does not belong to files.
    pub held: u64,
    /// and what of it is none's now and then, at most.
    pub moving: u64,
    /// The amount by which both may be smaller, because memory of programs goes to swap.
    pub swappable: u64,
    /// The part of it that is in swap, which files have in addition.
    pub in_swap: u64,
    /// Lists and version.
    pub profile: String,
    /// A class of devices instead of the recorded disks.
    pub device: Option<String>,
    /// The readahead window of all files, in KiB, instead of the recorded one.
    pub read_ahead_kb: Option<u64>,
    /// The number of tasks that each repeat the recorded accesses.
    pub readers: u32,
    /// The placement of these tasks in CPUs and time.
    pub placed: Readers,
    /// The time of the first periodic flush of statistics, in milliseconds.
    pub flush_phase_ms: u64,
}

/// The relation of several readers of the same pages. They run in step, because a later reader hits the pages that the first one has missed, unless it starts so late that what
/// the first has read is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// All on one: a kernel that wakes them for one page has them mostly there. The second use of a page that has just come finds it in the CPU's
    /// batch, and activates it.
    OnOneCpu,
    /// From another CPU it does not.
    OnCpusOfTheirOwn,
    /// Each starts when the one before is as far as it can be from those that follow.
    Apart,
}

impl TwinMachine {
    /// That of the recording.
    pub fn of(recording: &Recording) -> TwinMachine {
        TwinMachine {
            limit: recording.limit(),
            high: recorded_high(recording),
            held: recording.held().constant,
            moving: recording.held().moving,
            swappable: 0,
            in_swap: 0,
            profile: profile(recording),
            device: None,
            read_ahead_kb: None,
            readers: 1,
            placed: Readers::OnOneCpu,
            flush_phase_ms: 0,
        }
    }

    /// Returns this machine and variants for the unknowns: the other memory of the group, the phase of statistics flushes, and the places
    /// and times of readers. The last variant has all memory of programs in swap, if it may be there.
    pub(super) fn spread(&self, held: &Held) -> Vec<TwinMachine> {
        let holds = |held| TwinMachine { held, ..self.clone() };
        let (least, most) = (holds(self.held.saturating_sub(held.less)), holds(self.held + held.more));
        let later = |flush_phase_ms| TwinMachine { flush_phase_ms, ..self.clone() };
        let mut spread = vec![self.clone(), least, most, later(700), later(1400)];
        if held.is_chancy {
            let by =
                |pages: u64| [holds(self.held.saturating_sub(pages * 4096)), holds(self.held + pages * 4096)];
            spread.extend(CHANCES.into_iter().flat_map(by));
        }
        if self.readers > 1 {
            let placed = |placed| TwinMachine { placed, ..self.clone() };
            spread.extend([placed(Readers::OnCpusOfTheirOwn), placed(Readers::Apart)]);
        }
        if self.swappable > 0 {
            spread.push(TwinMachine { in_swap: self.swappable, ..self.clone() });
        }
        spread
    }

    /// Memory that files can have of this much.
    fn for_files(&self, bytes: u64) -> u64 {
        // Moving memory is simulated as memory of programs. Files therefore get the part that swap takes, instead of the constant part.
        (bytes + self.in_swap).saturating_sub(self.held).max(64 * 4096) / 4096 * 4096
    }

    /// The scenario. Paths of traces start at `from`.
    pub fn scenario(&self, recording: &Recording, from: &Path) -> String {
        let manifest = &recording.manifest;
        let moving = match self.moving {
            0 => String::new(),
            moving => format!(", and up to {} more at recorded times", crate::figures::bytes(moving)),
        };
        let mut text = format!(
            "# The twin of a recording of {}, on Linux {}.\n# Memory is {}. The group's programs and the \
             kernel hold {} of it{moving}; the rest is for files.\n",
            manifest.recording.target,
            manifest.kernel.release,
            crate::figures::bytes(self.limit),
            crate::figures::bytes(self.held),
        );
        let _ = writeln!(text, "question = \"Which misses do the recorded accesses cause?\"");
        let sample = manifest.recording.sample.max(1);
        let limit = self.for_files(self.limit) / sample / 4096 * 4096;
        let before = recording.before * 4096;
        let touched = recording
            .header
            .as_ref()
            .map_or(0, |header| header.objects.iter().map(|object| object.pages).sum::<u64>());
        let memory = (limit * 2).max(limit + ROOM) + before + touched / 64 * 4096 / 8;
        let cpus = manifest.kernel.cpus.clamp(1, 64).max(self.readers.min(64));
        let _ = write!(
            text,
            "\n[machine]\ncpus = {cpus}\nmemory = \"{}KiB\"\naccess_times = false\n\n[kernel]\nprofile = \
             \"{}\"\n# The held memory includes the group's kernel memory.\nmemcg.kmem = false\n# Shadow \
             nodes are charged separately, as on the recorded machine.\nmemcg.kmem_counted = true\n",
            memory.div_ceil(1024).next_multiple_of(4),
            self.profile
        );
        if manifest.group.version == 1 {
            text += "memcg.cgroup_version = 1\n";
        }
        if self.flush_phase_ms > 0 {
            let _ = writeln!(text, "memcg.stat_flush_phase = \"{}ms\"", self.flush_phase_ms);
        }
        let _ = write!(text, "\n[[memcg]]\npath = \"{GROUP}\"\nmemory.max = \"{}KiB\"\n", limit / 1024);
        if let Some(high) = self.high {
            let _ = writeln!(text, "memory.high = \"{}KiB\"", self.for_files(high) / sample / 4096 * 4);
        }
        if recording.before > 0 && recording.before_is_elsewhere() {
            let _ = write!(
                text,
                "\n# These pages are charged to another group, which had them in memory.\n[[memcg]]\npath = \"{OTHERS}\"\n"
            );
        }
        for device in &manifest.device {
            self.device_text(recording, device, &mut text);
        }
        self.tasks(recording, from, &mut text);
        let every = manifest.group.stat_every_ns.max(10_000_000);
        let _ = write!(
            text,
            "\n# The recorder did the same: this read flushes statistics.\n[[event]]\nat = \
             \"{every}ns\"\nevery = \"{every}ns\"\nread = \"/sys/fs/cgroup{GROUP}/memory.stat\"\n",
        );
        text
    }

    fn device_text(&self, recording: &Recording, device: &DeviceRecord, text: &mut String) {
        let class = self.device.as_deref().unwrap_or_else(|| class_of(device));
        let _ =
            write!(text, "\n[[device]]\nname = \"{}\"\npreset = \"{class}\"\n", device_name(&device.number));
        if self.device.is_none()
            && let Some(latency) = device.read_latency_ns.filter(|&latency| latency > 1000)
        {
            let _ = writeln!(
                text,
                "# Measured during the recording.\nread_latency = \"{latency}ns\"\nread_p99 = \"{}ns\"",
                latency * 3
            );
        }
        if let Some(kib) = self.read_ahead_kb.or(device.read_ahead_kb) {
            let _ = writeln!(text, "read_ahead_kb = {}", kib / 4 * 4);
        }
        if recording.manifest.sums.insertions_large > 0 {
            let _ =
                writeln!(text, "file_system = \"{}\"", device.large_folios().unwrap_or(ASSUMED_FILE_SYSTEM));
        }
    }

    fn tasks(&self, recording: &Recording, from: &Path, text: &mut String) {
        let has_before = recording.before > 0;
        let trace = |name: &str| quoted(&from.join(name).to_string_lossy());
        if has_before {
            let group = if recording.before_is_elsewhere() { OTHERS } else { GROUP };
            let _ = write!(
                text,
                "\n# Pages in memory at the start of the recording, in unknown order of use.\n[[task]]\nname \
                 = \"{BEFORE_TASK}\"\nmemcg = \"{group}\"\nrecorded = {}\n",
                trace(BEFORE)
            );
        }
        let (tasks, copies) = match self.placed {
            Readers::Apart => (self.readers, 1),
            Readers::OnOneCpu | Readers::OnCpusOfTheirOwn => (1, self.readers),
        };
        for task in 0..u64::from(tasks) {
            let number = if task == 0 { String::new() } else { format!("-{}", task + 1) };
            let _ = write!(text, "\n[[task]]\nname = \"{TASK}{number}\"\nmemcg = \"{GROUP}\"\n");
            if has_before {
                let _ = writeln!(text, "after = \"{BEFORE_TASK}\"");
            }
            if task > 0 {
                let late = recording.manifest.recording.duration_ns / u64::from(tasks) * task;
                let _ = writeln!(text, "start = \"{late}ns\"");
            }
            if copies > 1 {
                let _ = writeln!(text, "copies = {copies}");
            }
            if copies > 1 && self.placed == Readers::OnOneCpu {
                text.push_str("# They wait for the same pages and wake up together.\ncpu = 0\n");
            }
            let _ = writeln!(text, "think_time = \"{}ns\"", think_time_ns(recording));
            let _ = writeln!(text, "recorded = {}", trace(ACCESSES));
        }
    }
}

/// Time between two accesses that is neither a hit's nor a device's.
fn think_time_ns(recording: &Recording) -> u64 {
    let manifest = &recording.manifest;
    // The replay of the trace reports read errors.
    let accesses =
        manifest.recording.accesses.max(1) + recording.estimated_hits().unwrap_or(0) + recording.moved();
    let latency = manifest.device.iter().filter_map(|device| device.read_latency_ns).max().unwrap_or(0);
    let waited = (manifest.sums.read_misses + manifest.sums.faults) * latency;
    (manifest.recording.duration_ns.saturating_sub(waited) / accesses).saturating_sub(HIT_NS)
}

/// A text of TOML.
pub(super) fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_string()
}

pub(super) fn device_name(number: &str) -> String {
    format!("disk-{}", number.replace(':', "-"))
}

/// The class that a disk is most like. Disks of virtual machines say that they turn, and their latency says otherwise.
fn class_of(device: &DeviceRecord) -> &'static str {
    let is_slow = device.read_latency_ns.is_some_and(|latency| latency > 1_500_000);
    match &device.name {
        name if name.starts_with("vd") => "virtio",
        name if name.starts_with("nvme") => "nvme",
        name if name.starts_with("pmem") => "pmem",
        _ if device.rotational && is_slow => "hdd",
        _ => "sata-ssd",
    }
}

/// `memory.high` of the recorded group.
fn recorded_high(recording: &Recording) -> Option<u64> {
    recording.manifest.group.limits.get("memory.high")?.parse().ok()
}

/// Which lists the kernel kept, and by which version's rules.
fn profile(recording: &Recording) -> String {
    let kernel = &recording.manifest.kernel;
    let has_generations = kernel.lru_gen.as_deref().is_some_and(|enabled| {
        u32::from_str_radix(enabled.trim_start_matches("0x"), 16).is_ok_and(|bits| bits & 1 != 0)
    });
    let lists = if has_generations { "mglru" } else { "classic" };
    let release = kernel.release.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let series: Vec<&str> = release.split('.').take(2).collect();
    match Version::parse(&series.join(".")) {
        Some(_) => format!("{lists}@{}", series.join(".")),
        None => format!("{lists}@6.12"),
    }
}
