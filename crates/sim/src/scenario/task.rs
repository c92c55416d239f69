//! `[[task]]` and `[[task.object]]`: who accesses what, through which channel, in which order.
//!
//! ```text
//!   task ──┬── object 0   channel, size or file ──── workload or trace      each object has its own stream;
//!          ├── object 1                                                      the task takes the next access from
//!          └── object 2                                                      one of them, in proportion to `share`
//! ```
//!
//! The channel decides which part of the kernel sees the accesses: `file` is read(2) and write(2), which call
//! mark_accessed and never touch a page table; the other channels are faults and accessed bits that only a scan finds.

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
            "Its name in the result.";
        memcg: String, [default "/".to_string()] in Accepts::NameOf("memcg") => Same,
            "The cgroup it runs in.";
        cpu: Option<u16>, [absent "dealt out in turn"] in Accepts::Integer(0, CPU_MAX as i64) => Same,
            "The CPU it is bound to, or starts on if it migrates.";
        migrates: bool, [unless false] in Accepts::Bool => Same,
            "It may run on any CPU: where it was if that is idle, else on an idle one, else where fewest wait. Off, because what stays on its CPU is easier to follow.";
        nice: i8, [unless 0] in Accepts::Integer(-20, 19) => Same,
            "Its claim to a CPU that others want, too: each step below 0 is worth a quarter more of it.";
        rt_priority: u8, [unless 0] in Accepts::Integer(0, 99) => Same,
            "Its real-time priority (SCHED_FIFO, as `chrt -f`): it runs before all tasks that have none or a lower one, until it sleeps. It may use half of the reserve of free memory, and dirty a quarter more than others before it is held up. 0: it shares its CPU, by nice.";
        start: TimeSpan, [default TimeSpan(0)] in TIME => Same,
            "When it starts; with `after`, how long after the end of that task.";
        after: Option<String>, [absent "nothing to wait for"] in Accepts::NameOf("task") => Same,
            "The task whose end it waits for; all copies and threads of it have to end.";
        think_time: TimeSpan, [default TimeSpan(0)] in Accepts::Time(0, 3_600_000_000_000) => Half,
            "Time it computes between two accesses. 0 makes memory the bottleneck.";
        stands_for: u32, [default 1] in Accepts::Integer(1, 1_000_000) => Same,
            "Accesses that each of its own stands for, in a run that would be too long otherwise: it takes so many times as long, loads memory so many times as much, and is so many times as likely to be sampled. The others go to other pages of the same kind, so what happens to a page, such as a fault, happens once. Sound where a page is still used more often than anybody looks; half as many is a check.";
        copies: u32, [default 1] in Accepts::Integer(1, 10_000) => Same,
            "How many such tasks run: each a process with mappings and random numbers of its own; files are shared.";
        threads: u32, [default 1] in Accepts::Integer(1, 10_000) => Same,
            "Threads of each process. They share its address space, so what one has brought in is there for all; each makes the accesses below, with random numbers of its own. Results tell of all threads together.";
        first_thread: FirstThread, [unless FirstThread::Works] in Accepts::Choice(FirstThread::WORDS) => Same,
            "What the thread does that a process begins with. works: it is one of `threads`. waits: it starts them, and then waits for them, as in programs with a pool of workers. NUMA balancing scans for the first thread as often as the size of the process asks, for others once in scan_delay_ms of CPU time until faults say otherwise.";
        depth: u32, [default 1] in Accepts::Integer(1, 4096) => Same,
            "Reads of each thread that may wait for a device at once, as with io_uring: so many workers take the accesses of one stream in turn, all on the thread's CPU. For open files only, because a fault stops its thread. What a worker's wait costs is a context switch, and a batch of submissions saves nothing.";
        oom_score_adj: i16, [unless 0] in Accepts::Integer(-1000, 1000) => Same,
            "How much rather than others it is killed when memory runs out, in thousandths of the machine's memory and swap, or of its cgroup's: with 500, as if it had half of that besides what it has. -1000: never. With machine.oom = \"kill\".";
        io_flusher: bool, [unless false] in Accepts::Bool => Same,
            "I/O may wait for it, so reclaim for its memory starts none and enters no file system, as with prctl(PR_SET_IO_FLUSHER): who serves a block device or a file system.";
        preferred_node: Option<u16>, [absent "that of its CPU"] in Accepts::Integer(0, 63) => Same,
            "The NUMA node from which pages come first that it brings in, of files, too, as with `numactl --preferred`; where that has none left, from others.";
        membind: Option<String>, [absent "all nodes"] in Accepts::Text => Same,
            "The only NUMA nodes that its pages come from, as \"0-1,3\" (numactl --membind). Of preferred_node, membind, interleave and weighted_interleave a task has one at most. With any of them NUMA balancing leaves its memory alone, and page cache that it reads is not promoted.";
        interleave: Option<String>, [absent "none"] in Accepts::Text => Same,
            "NUMA nodes that its pages come from in turn, as long as they have some (numactl --interleave).";
        weighted_interleave: Option<String>, [absent "none"] in Accepts::Text => Same,
            "The same, as many pages from each node in a row as its machine.node.interleave_weight (numactl --weighted-interleave).";
        cpunodebind: Option<String>, [absent "all nodes"] in Accepts::Text => Same,
            "NUMA nodes on whose CPUs it runs, dealt out in turn among those (numactl --cpunodebind). Not with cpu or migrates.";
        lifetime: Lifetime, [default Lifetime::Run] in Accepts::Choice(Lifetime::WORDS) => Same,
            "How long its memory lives. run: to the end of the run, as if the task slept after its last access. task: it exits, and its anonymous memory is freed. loop: each of its loops is a process of its own, which starts with an empty address space and exits, as compilers under make do.";
        loops: u32, [default 1] in Accepts::Integer(1, 4_000_000_000) => Same,
            "How often it runs through its accesses; random ones differ from loop to loop. A large number makes a background task that never ends.";
        background: bool, [unless false] in Accepts::Bool => Same,
            "The run does not wait for this task: it ends when all others have.";
        timed: f64, [unless 0.0] in Accepts::Number(0.0, 1e9) => Same,
            "Each access starts at the time that its trace has for it, counted from the first, so many times as fast: an open loop. What can't start then waits for its turn, and the wait counts as part of it. 0: each starts when the one before has ended, a closed loop, because most traces have no times. For a task whose accesses are all from one trace that has times.";
        session: Session, [unless Session::default()] table Session,
            "A user who looks at one copy at a time.";
        recorded: Option<PathBuf>, [absent "its objects are told here"] in Accepts::HostPath => Never,
            "Its objects, and their files, are those of a recording: the path of `accesses.pgt` or `before.pgt` in a folder of `pageout record`, whose recording.toml says what each file is and how it is used. A relative path starts at the scenario file. Not with objects of its own.";
        object: Vec<Object>, [default Vec::new()] each Object,
            "What it accesses.";
    }
}

impl Task {
    /// The task's memory policy; lists that are none, which the check has found, say nothing.
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
    /// When each copy of a task is in the foreground: tabs of a browser, apps of a phone.
    pub struct Session {
        visits: u32, [default 0] in Accepts::Integer(0, 1_000_000) => Same,
            "Visits in all, each to one copy: the first ones open one copy each, in turn. 0: there is no user, and all copies run at once.";
        dwell: TimeSpan, [default TimeSpan(10_000_000_000)] in Accepts::Time(1_000_000, 86_400_000_000_000) => Same,
            "Mean time of a visit, drawn evenly from half to one and a half times this. Seconds, because people read what they go to.";
        recency: f64, [default 1.0] in Accepts::Number(0.0, 100.0) => Same,
            "How much the next copy is one used lately: the k-th last with probability proportional to k^-recency; 0 is any. No law of it is published; at 1 each doubling of k is as likely as the one before.";
        first_ops: u64, [default 10_000] in Accepts::Integer(1, 1 << 40) => Twice,
            "Accesses of a copy's first visit, in which it starts.";
        visit_ops: u64, [default 1_000] in Accepts::Integer(1, 1 << 40) => Twice,
            "Accesses of each later visit.";
        busy: TimeSpan, [default TimeSpan(1_000_000_000)] in Accepts::Time(0, 86_400_000_000_000) => Same,
            "Time over which the accesses of a visit are spread, from its start; then the copy idles. What takes longer goes on when the user has left.";
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
            "Size of an anonymous mapping or of a file of its own.";
        device: Option<String>, [absent "the only device"] in Accepts::NameOf("device") => Same,
            "The device of a file of its own, for file and mapped objects.";
        // A call of the machine as it is: one stands for as many calls as a page for pages.
        request_size: Option<Size>, [absent "one page"] in Accepts::Size(4096, (2 << 30) - 4096) => Same,
            "Size of each read(2) and write(2), of which whole pages count: fio's bs. The workload then draws requests, which lie one behind the other, and its `pages` and `ops` count them; each of their pages is an access. Readahead goes by the size, and the pages of a large request are cheaper, as they share a call. For workloads on file and tmpfs objects.";
        advice: Advice, [default Advice::Normal] in Accepts::Choice(Advice::WORDS) => Same,
            "What the task tells the kernel before its first access: of a mapping by madvise, of a file by posix_fadvise. sequential: an open file's readahead window is twice as large, and a mapped file is read ahead as if it were read in order. random: nothing is read but what is asked for. willneed: as much of the file's beginning is read as the largest window or request holds, however much more there is. noreuse: nothing that is accessed through a mapping of this open file counts as recent use, nor does it in a mapping that is sequential or random.";
        read_ahead: Option<bool>, [absent "false for a trace of opaque ids, else true"] in Accepts::Bool => Same,
            "Whether the object's file is read ahead, as far as its device says. A trace of opaque ids (oracleGeneral, lcs, keys and ids of a CSV, or pages numbered anew by page_ids = \"dense\") is numbered in order of first appearance: what lies behind a page is what is asked for next, and readahead would know the future. Swap is read ahead by vm.page-cluster, whose default is 0 if all anonymous objects are of such traces.";
        opened_by: OpenedBy, [default OpenedBy::Process] in Accepts::Choice(OpenedBy::WORDS) => Same,
            "Who opens a file or tmpfs object. process: once for all threads, which then share its position and readahead window, as those of a server do. thread: each for itself.";
        per_copy: bool, [unless false] in Accepts::Bool => Same,
            "Each copy of the task has a file of its own, as each job of fio does that is not told one. Without it all copies share the object's file. For objects that name no file; anonymous memory is each copy's own anyway.";
        copies_per_file: Option<u32>, [absent "all of them"] in Accepts::Integer(1, 10_000) => Same,
            "So many copies of the task in a row share a file, and the next ones have another, as the compilers of one build share its tree. 1 is `per_copy`. For objects that name no file.";
        end_fsync: bool, [unless false] in Accepts::Bool => Same,
            "When the task has made all its accesses, it has what is dirty of the file written and waits until the device has it: fsync(2), as dd does with conv=fsync and fio with end_fsync. The time counts. A write that failed, whoever began it, is an error then. For regular files.";
        fsync_every: Option<u32>, [absent "never"] in Accepts::Integer(1, 1 << 30) => Twice,
            "After so many of its writes to the object a task, or each thread, has what is dirty of the file written and waits until the device has it, before its next access: fsync(2), as a database does at each commit and fio with fsync. Of a large request each page counts. The wait is one for I/O. A write that failed, whoever began it, is an error then. For regular files.";
        truncate_every: Option<u32>, [absent "never"] in Accepts::Integer(1, 1 << 30) => Twice,
            "After so many of its accesses to the object a task, or each thread, takes all pages of the file away, before its next access: ftruncate(2) to nothing, as of a log that begins again. What was dirty is not written. To its flusher the file is as old as its first dirty page all the same. Whoever reads such a page later finds zeroes. For file, mapped and tmpfs objects.";
        delete_every: Option<u32>, [absent "never"] in Accepts::Integer(1, 1 << 30) => Twice,
            "After so many of its accesses to the object a task, or each thread, deletes the file and makes an empty one in its place, before its next access: unlink(2), as of a temporary file. What was dirty is not written, and the new file's pages age from their own first write. For file, mapped and tmpfs objects.";
        populate_node: Option<u16>, [absent "nothing is there"] in Accepts::Integer(0, 63) => Same,
            "All its pages are there before the run begins, on this NUMA node as far as it has room: mmap with MAP_POPULATE by a process whose policy prefers that node, and is back to what it was when the run begins. It takes no time; its work and counters are those of the run. For mappings.";
        hugepage: Option<bool>, [absent "as the machine has it"] in Accepts::Bool => Same,
            "Whether it is worth huge pages, told to the kernel before the first access. true: madvise(MADV_HUGEPAGE), and with `kernel.transparent_hugepage` at madvise or always the fault reclaims and compacts for them, unless `kernel.transparent_hugepage_defrag` says otherwise. false: MADV_NOHUGEPAGE, none. Said of nothing they are had by always alone, where a block is free. For anonymous objects; one of less than 2 MiB has none.";
        locked: bool, [unless false] in Accepts::Bool => Same,
            "Locked by mlock2(MLOCK_ONFAULT): what was touched once stays. For mappings, not for read(2).";
        executable: bool, [unless false] in Accepts::Bool => Same,
            "A mapping with execute permission, which reclaim spares longer.";
        share: u32, [default 1] in Accepts::Integer(1, 1_000_000) => Same,
            "Its part of the task's accesses relative to the task's other objects.";
        read_only: bool, [unless false] in Accepts::Bool => Same,
            "Writes become reads: what would the accesses cost if nothing had to be written back?";
        partial_writes: bool, [unless false] in Accepts::Bool => Same,
            "write(2) writes less than a page each time, so that a page that is not in memory is read first. For channel \"file\".";
        write_first: Option<bool>, [absent "true for anonymous and tmpfs"] in Accepts::Bool => Same,
            "The first access to each page is made a write. Programs write their memory before they read it; reading memory that was never written only maps the zero page and takes no memory at all.";
        contents: Option<String>, [absent "as the swap area says"] in Accepts::Choice(CONTENTS_NAMES) => Same,
            "What its pages hold, of what was measured: shares of zeroes and of one word, and lengths, with the compressor behind the @. For anonymous and tmpfs objects.";
        compressed_deciles: Option<Deciles>, [absent "as the swap area says"] in Accepts::Deciles => Same,
            "What its pages compress to, in bytes: the shortest, the nine below which a tenth, two tenths, ... of the pages stay, and the longest. `pageout trace compressibility` measures them of a file or process. For anonymous and tmpfs objects.";
        compressed_min: Option<Share>, [absent "as the swap area says"] in Accepts::Share => Same,
            "What its pages compress to at best on zram, as a share of their size. For anonymous and tmpfs objects. Where one of these keys is given, the others are those of a [[swap]] that says nothing.";
        compressed_max: Option<Share>, [absent "as the swap area says"] in Accepts::Share => Same,
            "What its pages compress to at worst on zram.";
        same_filled: Option<Share>, [absent "as the swap area says"] in Accepts::Share => Same,
            "Share of its pages that are one word repeated, which take no memory on zram.";
        zero_filled: Option<Share>, [absent "as the swap area says"] in Accepts::Share => Same,
            "Share of its pages that are all zeroes, which are never written to swap.";
        workload: Option<Table>, [absent ""] in Accepts::Table("access pattern") => Inside,
            "Accesses made by a generator: { pattern = \"zipf\", ... }. Either this or a trace.";
        trace: Option<TraceFile>, [absent ""] in Accepts::HostPath => Never,
            "Accesses from a recorded trace; a relative path starts at the scenario file.";
        read: Option<Table>, [absent "{}"] in Accepts::Table("options of the trace reader") => Same,
            "How the trace is read: its format when the name does not tell, whether sizes count.";
        file_calls: Option<CallsFile>, [absent "none are known"] in Accepts::HostPath => Never,
            "What the recorded task did with whole files between the accesses of the trace, as `pageout record` writes it: lines `access,object,call`, where a call is `fsync`, `delete`, `truncate,FIRST` or `truncate,FIRST,END` in pages, or `evict,FIRST,END` where others reclaimed these, before the access of that number, from 0. Objects are the trace's. For a trace that has all of its task's accesses, once. A relative path starts at the scenario file.";
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
    /// When its accesses start, where the task does not say: of a trace whose parts are several tasks'.
    #[serde(skip)]
    pub pace: Option<Pace>,
    /// Whether it is of opaque ids, so that a page's number says nothing of its neighbours.
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
    /// Whether the first access to each page writes. Programs write their memory before they read it, and reading memory
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

    /// How its trace is to be read.
    pub fn read_options(&self) -> Result<ReadOptions, TableError> {
        self.read.as_ref().map_or_else(|| Ok(ReadOptions::default()), Table::options)
    }
}

words! {
    /// Who has a file open.
    pub enum OpenedBy {
        /// All threads of the process together.
        Process = "process",
        /// Each thread for itself.
        Thread = "thread",
    }
}

words! {
    /// What the thread does that a process begins with.
    pub enum FirstThread {
        /// The first thread works, as the others do.
        Works = "works",
        /// The first thread starts the others, and waits for them.
        Waits = "waits",
    }
}

words! {
    /// How long a task's memory lives.
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
    /// How an object is accessed.
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
    /// What the kernel was told to expect.
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
