//! `[[task]]` and `[[task.object]]`: who accesses what, through which channel, in which order.
//!
//! ```text
//!   task ──┬── object 0   channel, size or file ──── workload or trace      each object has its own stream;
//!          ├── object 1                                                      the task takes the next access from
//!          └── object 2                                                      one of them, in proportion to `share`
//! ```
//!
//! The channel decides which part of the kernel sees the accesses. `file` is read(2) and write(2), which call mark_accessed and never touch a page
//! table. The other channels are faults and accessed bits that only a scan finds.

use std::path::PathBuf;
use std::sync::Arc;

use pageout_engine::{MemPolicy, NodeId, Nodemask};
use pageout_workload::ReadOptions;
use pageout_workload::trace::{Loaded, PlacedCall};
use serde::{Deserialize, Serialize};

use super::compressed::{CONTENTS_NAMES, Deciles};
use super::keys::{Accepts, SIZE_MAX, TIME};
use super::section::{from_nothing, section, words};
use super::{Share, Size, Table, TableError, TimeSpan};
use crate::pace::Pace;

section! {
    /// One task, `copies` of it, or the threads of each copy.
    pub struct Task {
        name: String, [required] in Accepts::Text => Same,
            "Name of the task in the result.";
        memcg: String, [default "/".to_string()] in Accepts::NameOf("memcg") => Same,
            "The cgroup it runs in.";
        cpu: Option<u16>, [absent "dealt out in turn"] in Accepts::Integer(0, CPU_MAX as i64) => Same,
            "The CPU it is bound to, or starts on if it migrates.";
        migrates: bool, [unless false] in Accepts::Bool => Same,
            "It may run on any CPU: its last one if idle, otherwise an idle one, otherwise the one with the fewest waiting tasks. Off, because a task that stays on its CPU is easier to follow.";
        nice: i8, [unless 0] in Accepts::Integer(-20, 19) => Same,
            "Its claim to a CPU that other tasks need, too: each step below 0 gives it a quarter more of the time.";
        rt_priority: u8, [unless 0] in Accepts::Integer(0, 99) => Same,
            "Its real-time priority (SCHED_FIFO, as `chrt -f`): it runs before all tasks without or with a lower one, until it sleeps. It may use half of the reserve of free memory, and dirty a quarter more than others before it is throttled. 0: it shares its CPU, by nice.";
        start: TimeSpan, [default TimeSpan(0)] in TIME => Same,
            "Start of the task; with `after`, the delay after the end of that task.";
        after: Option<String>, [absent "no other task"] in Accepts::NameOf("task") => Same,
            "The task that it waits for; all copies and threads of that task must have ended.";
        think_time: TimeSpan, [default TimeSpan(0)] in Accepts::Time(0, 3_600_000_000_000) => Half,
            "Time it computes between two accesses. 0 makes memory the bottleneck.";
        stands_for: u32, [default 1] in Accepts::Integer(1, 1_000_000) => Same,
            "Accesses that each of its accesses stands for, in a run that would otherwise be too long. Each then takes N times as long, loads memory N times as much, and is N times as likely to be sampled. The additional accesses go to other pages of the same kind, so events of the page itself, such as a fault, happen once. The result is sound if a page is still used more often than anything checks it. Compare it with half of N.";
        copies: u32, [default 1] in Accepts::Integer(1, 10_000) => Same,
            "Number of such tasks that run. Each is a process with its own mappings and random numbers; files are shared.";
        threads: u32, [default 1] in Accepts::Integer(1, 10_000) => Same,
            "Threads of each process. They share its address space, so a page that one thread brings in is present for all. Each thread makes the accesses below, with its own random numbers. Results cover all threads together.";
        first_thread: FirstThread, [unless FirstThread::Works] in Accepts::Choice(FirstThread::WORDS) => Same,
            "Role of the first thread of a process. works: it is one of `threads`. waits: it starts them, and then waits for them, as in programs with a pool of workers. NUMA balancing scans for the first thread as often as the size of the process requires. For others it scans once in scan_delay_ms of CPU time until faults change that.";
        depth: u32, [default 1] in Accepts::Integer(1, 4096) => Same,
            "Reads of each thread that may wait for a device at the same time, as with io_uring: N workers process the accesses of one stream in turn, all on the thread's CPU. For open files only, because a fault stops its thread. A wait costs a context switch; batched submission is not modelled.";
        oom_score_adj: i16, [unless 0] in Accepts::Integer(-1000, 1000) => Same,
            "Preference of the OOM killer for it, in thousandths of the memory and swap of the machine or of its cgroup. With 500, it counts as if it held half of that in addition to its own memory. -1000: never killed. With machine.oom = \"kill\".";
        io_flusher: bool, [unless false] in Accepts::Bool => Same,
            "I/O may wait for this task, so reclaim for its memory starts none and enters no file system, as with prctl(PR_SET_IO_FLUSHER). For tasks that serve a block device or a file system.";
        preferred_node: Option<u16>, [absent "that of its CPU"] in Accepts::Integer(0, 63) => Same,
            "The NUMA node that its pages come from first, including file pages, as with `numactl --preferred`. If it has none left, other nodes.";
        membind: Option<String>, [absent "all nodes"] in Accepts::Text => Same,
            "The only NUMA nodes that its pages come from, as \"0-1,3\" (numactl --membind). A task has at most one of preferred_node, membind, interleave and weighted_interleave. With any of them NUMA balancing leaves its memory alone, and page cache that it reads is not promoted.";
        interleave: Option<String>, [absent "none"] in Accepts::Text => Same,
            "NUMA nodes that its pages come from in turn, as long as they have free pages (numactl --interleave).";
        weighted_interleave: Option<String>, [absent "none"] in Accepts::Text => Same,
            "The same, with machine.node.interleave_weight pages from each node in a row (numactl --weighted-interleave).";
        cpunodebind: Option<String>, [absent "all nodes"] in Accepts::Text => Same,
            "NUMA nodes on whose CPUs it runs; copies and threads are dealt out to these CPUs in turn (numactl --cpunodebind). Not with cpu or migrates.";
        lifetime: Lifetime, [default Lifetime::Run] in Accepts::Choice(Lifetime::WORDS) => Same,
            "How long its memory lives. run: to the end of the run, as if the task slept after its last access. task: it exits, and its anonymous memory is freed. loop: each of its loops is a new process, which starts with an empty address space and exits, as compilers under make do.";
        loops: u32, [default 1] in Accepts::Integer(1, 4_000_000_000) => Same,
            "Number of passes through its accesses; random ones differ from pass to pass. A large number makes a background task that never ends.";
        background: bool, [unless false] in Accepts::Bool => Same,
            "The run does not wait for this task: it ends when all other tasks have ended.";
        timed: f64, [unless 0.0] in Accepts::Number(0.0, 1e9) => Same,
            "Factor by which the trace's times are accelerated: an open loop. Each access starts at its time in the trace, counted from the first, divided by this factor. An access that can't start then waits for its turn, and the wait counts as part of it. 0: each starts when the previous one has ended, a closed loop, because most traces have no times. For a task whose accesses are all from one trace with times.";
        session: Session, [unless Session::default()] table Session,
            "A user who uses one copy at a time.";
        recorded: Option<PathBuf>, [absent "given by its `object` entries"] in Accepts::HostPath => Never,
            "Use the objects and files of a recording: the path of `accesses.pgt` or `before.pgt` in a folder of `pageout record`. Its recording.toml describes each file and its use. A relative path starts at the scenario file. Not with objects of its own.";
        object: Vec<Object>, [default Vec::new()] each Object,
            "What it accesses.";
    }
}

impl Task {
    /// The task's memory policy; invalid lists, which the check has found, have no effect.
    pub(super) fn mempolicy(&self) -> MemPolicy {
        let nodes = |list: &Option<String>| list.as_deref().and_then(Nodemask::parse);
        let preferred = self.preferred_node.map(|node| MemPolicy::Preferred(NodeId(node as u8)));
        preferred
            .or(nodes(&self.membind).map(MemPolicy::Bind))
            .or(nodes(&self.interleave).map(MemPolicy::Interleave))
            .or(nodes(&self.weighted_interleave).map(MemPolicy::WeightedInterleave))
            .unwrap_or_default()
    }
}

/// The last CPU of the largest machine.
pub(super) const CPU_MAX: u16 = 4095;

impl Task {
    /// What the machine runs of it: copies, their threads, and workers of those.
    pub(crate) fn runners(&self) -> usize {
        self.copies as usize * self.threads as usize * self.depth as usize
    }

    /// The name of a copy of the task in results: `NAME`, or `NAME.COPY` where there are several.
    pub fn copy_name(&self, copy: u32) -> String {
        if self.copies == 1 { self.name.clone() } else { format!("{}.{copy}", self.name) }
    }
}

section! {
    /// The times in which each copy of a task is in the foreground: tabs of a browser, apps of a phone.
    pub struct Session {
        visits: u32, [default 0] in Accepts::Integer(0, 1_000_000) => Same,
            "Total number of visits, each to one copy. The first visits open one copy each, in turn. 0: there is no user, and all copies run at the same time.";
        dwell: TimeSpan, [default TimeSpan(10_000_000_000)] in Accepts::Time(1_000_000, 86_400_000_000_000) => Same,
            "Mean time of a visit, evenly distributed from half to one and a half times this. Seconds, because people read what they open.";
        recency: f64, [default 1.0] in Accepts::Number(0.0, 100.0) => Same,
            "How strongly the next copy is a recently used one: the k-th last has a probability proportional to k^-recency; 0 is any copy. No measured law of it is published; at 1 each doubling of k is equally likely.";
        first_ops: u64, [default 10_000] in Accepts::Integer(1, 1 << 40) => Twice,
            "Accesses of a copy's first visit, during which it starts.";
        visit_ops: u64, [default 1_000] in Accepts::Integer(1, 1 << 40) => Twice,
            "Accesses of each later visit.";
        busy: TimeSpan, [default TimeSpan(1_000_000_000)] in Accepts::Time(0, 86_400_000_000_000) => Same,
            "Time over which the accesses of a visit are spread, from its start; then the copy idles. Accesses that take longer continue after the user has left.";
    }
}

impl Default for Session {
    fn default() -> Session {
        from_nothing()
    }
}

section! {
    /// One mapping or open file of a task, and the accesses to it.
    pub struct Object {
        channel: Channel, [required] in Accepts::Choice(Channel::WORDS) => Same,
            "file: read(2) and write(2) of a regular file. mapped: a shared mapping of one. anonymous: private memory. tmpfs: read(2) and write(2) of a tmpfs file.";
        file: Option<String>, [absent "a file of its own"] in Accepts::NameOf("file") => Same,
            "The [[file]] behind a file, mapped or tmpfs object, when several objects share it.";
        size: Option<Size>, [absent "the trace's"] in Accepts::Size(1, SIZE_MAX) => Twice,
            "Size of an anonymous mapping or of an own file.";
        device: Option<String>, [absent "the only device"] in Accepts::NameOf("device") => Same,
            "The device of an own file, for file and mapped objects.";
        // A call of the unscaled machine: one stands for as many calls as a page stands for pages.
        request_size: Option<Size>, [absent "one page"] in Accepts::Size(4096, (2 << 30) - 4096) => Same,
            "Size of each read(2) and write(2), rounded down to pages: fio's bs. The workload then generates requests of adjacent pages, and its `pages` and `ops` count requests; each page of a request is an access. Readahead uses the size, and the pages of a large request cost less, because they share a call. For workloads on file and tmpfs objects.";
        advice: Advice, [default Advice::Normal] in Accepts::Choice(Advice::WORDS) => Same,
            "Hint to the kernel before the first access: madvise for a mapping, posix_fadvise for a file. sequential: an open file's readahead window is twice as large, and a mapped file is read ahead as if it were read in order. random: only the requested pages are read. willneed: the beginning of the file is read, up to the size of the largest window or request. noreuse: accesses through a mapping of this open file do not count as recent use. The same is true for a mapping that is sequential or random.";
        read_ahead: Option<bool>, [absent "false for a trace of opaque ids, else true"] in Accepts::Bool => Same,
            "Whether the object's file is read ahead, within the limits of its device. A trace of opaque ids (oracleGeneral, lcs, keys and ids of a CSV, or pages renumbered by page_ids = \"dense\") is numbered in order of first appearance. The next page number is then the next request, and readahead would know the future. Swap is read ahead by vm.page-cluster, whose default is 0 if all anonymous objects use such traces.";
        opened_by: OpenedBy, [default OpenedBy::Process] in Accepts::Choice(OpenedBy::WORDS) => Same,
            "What opens a file or tmpfs object. process: one open file for all threads, which share its position and readahead window, as in a server. thread: one per thread.";
        per_copy: bool, [unless false] in Accepts::Bool => Same,
            "Each copy of the task has its own file, as each job of fio does by default. Without it all copies share the object's file. For objects that name no file; anonymous memory is per copy in any case.";
        copies_per_file: Option<u32>, [absent "all of them"] in Accepts::Integer(1, 10_000) => Same,
            "Number of consecutive copies of the task that share a file, as the compilers of one build share its tree. 1 is `per_copy`. For objects that name no file.";
        end_fsync: bool, [unless false] in Accepts::Bool => Same,
            "After all its accesses, the task writes all dirty pages of the file and waits until the device has them: fsync(2), as dd does with conv=fsync and fio with end_fsync. The time counts. If a write failed, whatever started it, this is an error. For regular files.";
        fsync_every: Option<u32>, [absent "never"] in Accepts::Integer(1, 1 << 30) => Twice,
            "Number of writes to the object after which a task, or each thread, writes all dirty pages of the file and waits until the device has them, before its next access: fsync(2), as a database does at each commit and fio with fsync. Of a large request each page counts. The wait is a wait for I/O. If a write failed, whatever started it, this is an error. For regular files.";
        truncate_every: Option<u32>, [absent "never"] in Accepts::Integer(1, 1 << 30) => Twice,
            "Number of accesses to the object after which a task, or each thread, truncates the file to nothing before its next access: ftruncate(2), as for a log that starts over. Dirty pages are not written. For its flusher, the file's age is still that of its first dirty page. Later reads of such a page find zeroes. For file, mapped and tmpfs objects.";
        delete_every: Option<u32>, [absent "never"] in Accepts::Integer(1, 1 << 30) => Twice,
            "Number of accesses to the object after which a task, or each thread, deletes the file and creates an empty one in its place before its next access: unlink(2), as for a temporary file. Dirty pages are not written, and the new file's pages age from their own first write. For file, mapped and tmpfs objects.";
        populate_node: Option<u16>, [absent "nothing is there"] in Accepts::Integer(0, 63) => Same,
            "All its pages are present before the run begins, on this NUMA node if it has free memory: mmap with MAP_POPULATE by a process whose policy prefers that node during the call. It takes no time; its work and counters are part of the run. For mappings.";
        hugepage: Option<bool>, [absent "machine-wide setting"] in Accepts::Bool => Same,
            "Hint about huge pages, before the first access. true: madvise(MADV_HUGEPAGE). With `kernel.transparent_hugepage` at madvise or always, the fault then reclaims and compacts for them, unless `kernel.transparent_hugepage_defrag` is set otherwise. false: MADV_NOHUGEPAGE, none. Without a hint, only always gives huge pages, if a block is free. An anonymous object of less than 2 MiB has none. A fault on a mapped file with true reads 2 MiB or more at a time (`kernel.readahead.huge_advice`). For anonymous and mapped objects.";
        locked: bool, [unless false] in Accepts::Bool => Same,
            "Locked by mlock2(MLOCK_ONFAULT): pages that were accessed once stay. For mappings, not for read(2).";
        executable: bool, [unless false] in Accepts::Bool => Same,
            "A mapping with execute permission, which reclaim spares longer.";
        share: u32, [default 1] in Accepts::Integer(1, 1_000_000) => Same,
            "Its share of the task's accesses, relative to the task's other objects.";
        read_only: bool, [unless false] in Accepts::Bool => Same,
            "Writes become reads. Shows the cost of the accesses without any writeback.";
        partial_writes: bool, [unless false] in Accepts::Bool => Same,
            "write(2) writes less than a page each time, so that a missing page is read first. For channel \"file\".";
        write_first: Option<bool>, [absent "true for anonymous and tmpfs"] in Accepts::Bool => Same,
            "The first access to each page becomes a write. Programs write their memory before they read it. Reading memory that was never written only maps the zero page and takes no memory.";
        contents: Option<String>, [absent "that of the swap area"] in Accepts::Choice(CONTENTS_NAMES) => Same,
            "Measured contents of its pages: shares of zeroes and of one word, and lengths, with the compressor after the @. For anonymous and tmpfs objects.";
        compressed_deciles: Option<Deciles>, [absent "that of the swap area"] in Accepts::Deciles => Same,
            "Compressed sizes of its pages, in bytes: the shortest, the nine deciles, and the longest. `pageout trace compressibility` measures them for a file or process. For anonymous and tmpfs objects.";
        compressed_min: Option<Share>, [absent "that of the swap area"] in Accepts::Share => Same,
            "Best compressed size of its pages on zram, as a share of their size. For anonymous and tmpfs objects. If one of these keys is given, the others have the defaults of a [[swap]].";
        compressed_max: Option<Share>, [absent "that of the swap area"] in Accepts::Share => Same,
            "Worst compressed size of its pages on zram.";
        same_filled: Option<Share>, [absent "that of the swap area"] in Accepts::Share => Same,
            "Share of its pages that are one repeated word, which take no memory on zram.";
        zero_filled: Option<Share>, [absent "that of the swap area"] in Accepts::Share => Same,
            "Share of its pages that are all zeroes, which are never written to swap.";
        workload: Option<Table>, [absent ""] in Accepts::Table("access pattern") => Inside,
            "Accesses made by a generator: { pattern = \"zipf\", ... }. Either this or a trace.";
        trace: Option<TraceFile>, [absent ""] in Accepts::HostPath => Never,
            "Accesses from a recorded trace. A relative path starts at the scenario file.";
        read: Option<Table>, [absent "{}"] in Accepts::Table("options of the trace reader") => Same,
            "How the trace is read: its format if the name does not show it, whether sizes count, and so on.";
        file_calls: Option<CallsFile>, [absent "none are known"] in Accepts::HostPath => Never,
            "Calls on files between the accesses of the trace, as `pageout record` writes them. Each line is `access,object,call`: the number of the access that follows, from 0, the trace's object, and the call. A call is `fsync`, `delete`, `truncate,FIRST` or `truncate,FIRST,END` in pages, or `evict,FIRST,END` for pages that others reclaimed. `read,FIRST,END` and `write,BYTE,END` are calls that the next accesses belong to: in pages, and in bytes. For a trace that has all accesses of its task, once. A relative path starts at the scenario file.";
    }
}

/// A recorded trace; in a scenario its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TraceFile {
    /// The path of the trace.
    pub path: PathBuf,
    /// The trace's accesses, if it has been read already: then it is replayed from memory as far as it was kept there.
    #[serde(skip)]
    pub loaded: Option<Arc<Loaded>>,
    /// The start times of its accesses, if the task does not specify them: of a trace whose parts belong to several tasks.
    #[serde(skip)]
    pub pace: Option<Pace>,
    /// True if it is of opaque ids, so that a page's number has no relation to its neighbours.
    #[serde(skip)]
    pub is_of_ids: bool,
}

/// A list of calls on whole files; in a scenario its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallsFile {
    /// The path of the list.
    pub path: PathBuf,
    /// The calls, if they are known already: then nothing is read.
    #[serde(skip)]
    pub loaded: Option<Arc<[PlacedCall]>>,
}

impl From<PathBuf> for TraceFile {
    fn from(path: PathBuf) -> TraceFile {
        TraceFile { path, loaded: None, pace: None, is_of_ids: false }
    }
}

impl Task {
    /// Pages that deletes in a trace end, if the task makes the trace's accesses and no others: places of deletes count those.
    pub fn removals(&self) -> Option<(usize, &[PlacedCall])> {
        let has_accesses = |object: &Object| object.trace.is_some() || object.workload.is_some();
        let mut with = self.object.iter().enumerate().filter(|(_, object)| has_accesses(object));
        let (Some((at, object)), None) = (with.next(), with.next()) else { return None };
        let is_once = self.loops == 1 && self.threads == 1 && self.depth == 1;
        let removals = &object.trace.as_ref()?.loaded.as_ref()?.removals;
        (is_once && !removals.is_empty()).then_some((at, &removals[..]))
    }
}

impl Object {
    /// Returns true if the first access to each page writes. Programs write their memory before they read it, and reading memory
    /// that was never written takes none: so it does, unless the object is a regular file.
    pub fn writes_first(&self) -> bool {
        self.write_first.unwrap_or(matches!(self.channel, Channel::Anonymous | Channel::Tmpfs))
    }

    /// How many copies of its task share each of its files; `None`: all of them.
    pub(super) fn copies_per_file(&self) -> Option<u32> {
        if self.per_copy { Some(1) } else { self.copies_per_file }
    }

    /// Pages of each call that accesses it.
    pub fn request_pages(&self) -> u64 {
        self.request_size.map_or(1, Size::pages_ceil).max(1)
    }

    /// Returns the read options of its trace.
    pub fn read_options(&self) -> Result<ReadOptions, TableError> {
        self.read.as_ref().map_or_else(|| Ok(ReadOptions::default()), Table::options)
    }
}

words! {
    /// The owner of an open file.
    pub enum OpenedBy {
        /// All threads of the process together.
        Process = "process",
        /// Each thread for itself.
        Thread = "thread",
    }
}

words! {
    /// The use of the first thread of a process.
    pub enum FirstThread {
        /// The first thread works, as the others do.
        Works = "works",
        /// The first thread starts the others, and waits for them.
        Waits = "waits",
    }
}

words! {
    /// The lifetime of a task's memory.
    pub enum Lifetime {
        /// To the end of the run: a task that has ended is one that sleeps.
        Run = "run",
        /// As long as the task: it exits.
        Task = "task",
        /// As long as one of its loops: each is a process of its own.
        Loop = "loop",
    }
}

words! {
    /// The way in which an object is accessed.
    pub enum Channel {
        /// read(2) and write(2) of pages of a regular file.
        File = "file",
        /// A shared mapping of a regular file.
        Mapped = "mapped",
        /// A private anonymous mapping.
        Anonymous = "anonymous",
        /// read(2) and write(2) of a tmpfs file.
        Tmpfs = "tmpfs",
    }
}

words! {
    /// The hint to the kernel.
    pub enum Advice {
        /// No advice.
        Normal = "normal",
        /// Accesses have no locality: `MADV_RANDOM`, `POSIX_FADV_RANDOM`.
        Random = "random",
        /// Accesses are in order: `MADV_SEQUENTIAL`, `POSIX_FADV_SEQUENTIAL`.
        Sequential = "sequential",
        /// The beginning of it soon.
        WillNeed = "willneed",
        /// Each page is used once: `POSIX_FADV_NOREUSE`.
        NoReuse = "noreuse",
    }
}
