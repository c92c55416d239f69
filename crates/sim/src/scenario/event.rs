//! `[[event]]`: writing a kernel file, reading one, removing a cgroup, or syncing file systems, at a given time.
//!
//! Paths are those of a running kernel, so one line of a shell script becomes one event. `docs/reference/kernel-files.md` lists them. The engine serves all of
//! them except those of pressure stall information, which the machine serves. A separate task writes `memory.reclaim`.
//!
//! A signal ends a write to `memory.reclaim`. It is sent by a `timeout` of the write, as from timeout(1), and not by a separate event. An event of
//! the same shell would wait for the write that it should end. An event of another shell could not name a write whose shell has no name, nor one of
//! many writes.

use super::keys::{Accepts, TIME, TIME_MAX};
use super::section::{section, words};
use super::{Condition, Scalar, TimeSpan};

section! {
    /// One action, at a time or when a file shows enough: a `write` of `value`, a `read`, a `rmdir`, a `sync`, a `syncfs` or a `madvise`.
    pub struct Event {
        at: Option<TimeSpan>, [absent "0s with `when`; otherwise required"] in TIME => Same,
            "Time of the event, from the start of the run. With `when`: the time from which its file is checked.";
        when: Option<Condition>, [absent "whatever files show"] in Accepts::Condition => Same,
            "Condition on a kernel file for the event to happen: \"memory.current > 95%\". It has a file, a word of its line if the file has several (two for a figure of memory.pressure: \"memory.pressure some avg10 > 20\"), an operator (>, >=, <, <=), and a number, size or percentage. A bare name is a file of the cgroup that the event's own file belongs to. A percentage is of the cgroup's memory.max (memory.swap.max for swap, all memory if there is no limit), or of MemTotal in /proc/meminfo. The file is checked every 10 ms, or at each `every`. Without `every` the event happens once; with it, at each check at which the condition holds. Reading memory.stat flushes its statistics, as for every reader.";
        every: Option<TimeSpan>, [absent "once"] in Accepts::Time(1_000, TIME_MAX) => Same,
            "Period after which the event repeats, until the run ends.";
        until: Option<TimeSpan>, [absent "the end of the run"] in TIME => Same,
            "With `every`: the last time at which it may repeat.";
        times: Option<u64>, [absent "no loop"] in Accepts::Integer(1, 1 << 32) => Same,
            "With `every`: a loop of its shell. It repeats N times in total, and `every` is the pause between the end of one and the next. Other events of the shell wait for the end of the loop.";
        shell: Option<String>, [absent "a shell of its own"] in Accepts::Text => Same,
            "The shell that does it. Events of the same shell run one after the other: while it is in the middle of a write that takes time, other due events wait. Of a repeating event one repetition waits, and further ones are skipped.";
        write: Option<String>, [absent ""] in Accepts::KernelFile => Same,
            "The kernel file to write, as on a running system: \"/sys/fs/cgroup/web/memory.high\". Either this or read. /sys/kernel/mm/lru_gen/min_ttl_ms needs machine.oom = \"kill\": kswapd then has a process killed before it evicts generations younger than that.";
        value: Option<Scalar>, [absent ""] in Accepts::Scalar => ByFile,
            "The value to write; sizes as elsewhere (\"64MiB\").";
        add: Option<u64>, [absent ""] in Accepts::Integer(1, 1 << 32) => ByFile,
            "For a write to a sysctl or to nr_hugepages, instead of `value`: the number to add to the file's current value, as by echo $(($(cat FILE) + 1)).";
        timeout: Option<TimeSpan>, [absent "none"] in Accepts::Time(1_000, TIME_MAX) => Same,
            "For a write to memory.reclaim: its maximum duration, as with timeout(1). Its shell then gets a signal, and kernel.reclaim.on_signal decides what follows. Either the request ends and its write fails with EINTR, or it continues.";
        read: Option<String>, [absent ""] in Accepts::KernelFile => Same,
            "The kernel file to read: \"/proc/vmstat\".";
        rmdir: Option<String>, [absent ""] in Accepts::KernelFile => Same,
            "The directory of a cgroup to remove: \"/sys/fs/cgroup/web\". All its tasks must have exited by then (their `lifetime`), and its child cgroups must be removed before. The pages that it leaves stay charged until they are reclaimed; cgroup.stat of its parent counts such groups as nr_dying_descendants. Repeating events on its files end.";
        sync: bool, [unless false] in Accepts::Bool => Same,
            "Write all dirty data, and make the shell wait until the devices have it: sync(1). All flushers are woken. Then the files of each file system in turn are written completely, one after the other, and its flusher waits for each. Data that becomes dirty meanwhile is left. sync reports no errors.";
        syncfs: Option<String>, [absent ""] in Accepts::NameOf("device") => Same,
            "The same for the file system on one device: sync -f. Its result is EIO if a write there has failed and the error was not reported yet.";
        madvise: Option<PageAdvice>, [absent ""] in Accepts::Choice(PageAdvice::WORDS) => Same,
            "Advice on the mappings of `task`, as by process_madvise(2) of a manager or by madvise(2) of the task itself. cold: pages in use become inactive. pageout: pages are reclaimed now, used or not, without demotion; they count in no pgscan. free: anonymous pages lose their contents unless they are written again before reclaim finds them; only for the task's own call in Linux. Pages that several mappings show are left alone. The shell's CPU time pays for it. The summary shows the pages freed.";
        task: Option<String>, [absent ""] in Accepts::NameOf("task") => Same,
            "With `madvise`: the task whose mappings are advised, all copies of it.";
        object: Option<u32>, [absent "all that are mapped"] in Accepts::Integer(0, i64::MAX) => Same,
            "With `madvise`: the task's object to advise, counted from 0 in the order of the file.";
        show: Vec<String>, [unless Vec::new()] in Accepts::Texts => Same,
            "Lines of a file that the summary shows, by their first word. [\"*\"] shows the complete file; lru_gen needs this, because its lines have no names. --json always has all lines.";
    }
}

words! {
    /// Advice on pages that acts immediately.
    pub enum PageAdvice {
        /// Pages in use become inactive.
        Cold = "cold",
        /// Pages are reclaimed now.
        Pageout = "pageout",
        /// Contents may be dropped.
        Free = "free",
    }
}

/// Where nodes are.
const NODES: &str = "/sys/devices/system/node/";

impl Event {
    /// The path that is written, read or removed.
    pub fn file(&self) -> Option<&str> {
        self.write.as_deref().or(self.read.as_deref()).or(self.rmdir.as_deref())
    }
}

/// The kernel file that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelFile {
    /// A file directly under `/proc`, such as `vmstat`.
    Proc(String),
    /// A sysctl by its dotted name, such as `vm.swappiness`.
    Sysctl(String),
    /// A file of a block device, such as `zram0/mm_stat`.
    Block(String),
    /// A file of the pools of huge pages, such as `hugepages-2048kB/nr_hugepages`.
    Hugepages(String),
    /// Which mappings have transparent huge pages: `enabled`.
    TransparentHugepage(String),
    /// A figure of zswap, such as `stored_pages`.
    Zswap(String),
    /// A parameter of it, such as `max_pool_percent`.
    ZswapParameter(String),
    /// A result of a module of DAMON, such as `damon_reclaim/parameters/nr_quota_exceeds`.
    Damon(String),
    /// A file of a kdamond, such as `0/contexts/0/schemes/0/stats/nr_tried`.
    DamonAdmin(String),
    /// How memory tiering scans, such as `scan_size_mb`.
    NumaBalancing(String),
    /// How hot-page tracking promotes, such as `kmigrated_sleep_ms`.
    Pghot(String),
    /// A switch of demotion: `demotion_enabled`.
    Numa(String),
    /// A file of a tier of memory, such as `memory_tier4/nodelist`.
    MemoryTier(String),
    /// A file of a node: `node1/memory*/online`, whether all its memory blocks are in use, or counters, such as `node1/numastat`.
    Node(String),
    /// A file of the multi-generational LRU, such as `lru_gen` or `enabled`.
    LruGen(String),
    /// A file of a memory cgroup.
    Memcg {
        /// The cgroup's path from the root; the root itself is `/`.
        path: String,
        /// The file's name, such as `memory.high`.
        file: String,
    },
}

/// Directory of the pools of huge pages.
pub(super) const HUGEPAGES: &str = "/sys/kernel/mm/hugepages/";

/// Where the files of transparent huge pages are.
pub(super) const TRANSPARENT_HUGEPAGE: &str = "/sys/kernel/mm/transparent_hugepage/";

impl KernelFile {
    /// Takes a path apart; `None` when it lies under none of the trees above.
    pub fn parse(path: &str) -> Option<KernelFile> {
        if let Some(name) = path.strip_prefix("/proc/sys/") {
            return Some(KernelFile::Sysctl(name.replace('/', ".")));
        }
        if let Some(name) = path.strip_prefix("/proc/") {
            return Some(KernelFile::Proc(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/block/") {
            return Some(KernelFile::Block(name.to_string()));
        }
        if let Some(name) = path.strip_prefix(HUGEPAGES) {
            return Some(KernelFile::Hugepages(name.to_string()));
        }
        if let Some(name) = path.strip_prefix(TRANSPARENT_HUGEPAGE) {
            return Some(KernelFile::TransparentHugepage(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/kernel/debug/zswap/") {
            return Some(KernelFile::Zswap(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/module/zswap/parameters/") {
            return Some(KernelFile::ZswapParameter(name.to_string()));
        }
        let module = path.strip_prefix("/sys/module/").filter(|name| name.starts_with("damon_"));
        if let Some(name) = module {
            return Some(KernelFile::Damon(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/kernel/mm/damon/admin/kdamonds/") {
            return Some(KernelFile::DamonAdmin(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/kernel/debug/sched/numa_balancing/") {
            return Some(KernelFile::NumaBalancing(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/kernel/debug/pghot/") {
            return Some(KernelFile::Pghot(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/kernel/mm/numa/") {
            return Some(KernelFile::Numa(name.to_string()));
        }
        if let Some(name) = path.strip_prefix("/sys/devices/virtual/memory_tiering/") {
            return Some(KernelFile::MemoryTier(name.to_string()));
        }
        if let Some(name) = path.strip_prefix(NODES) {
            return Some(KernelFile::Node(name.to_string()));
        }
        let settings =
            path.strip_prefix("/sys/kernel/mm/lru_gen/").filter(|name| !name.starts_with("lru_gen"));
        let debug = path.strip_prefix("/sys/kernel/debug/").filter(|name| name.starts_with("lru_gen"));
        if let Some(name) = settings.or(debug) {
            return Some(KernelFile::LruGen(name.to_string()));
        }
        let (memcg, file) = path.strip_prefix("/sys/fs/cgroup")?.rsplit_once('/')?;
        let path = if memcg.is_empty() { "/" } else { memcg };
        Some(KernelFile::Memcg { path: path.to_string(), file: file.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_running_kernel_are_understood() {
        let memcg = |path: &str, file: &str| KernelFile::Memcg { path: path.into(), file: file.into() };
        for (path, meaning) in [
            ("/proc/vmstat", KernelFile::Proc("vmstat".into())),
            ("/proc/sys/vm/swappiness", KernelFile::Sysctl("vm.swappiness".into())),
            ("/sys/kernel/debug/lru_gen", KernelFile::LruGen("lru_gen".into())),
            ("/sys/kernel/mm/lru_gen/enabled", KernelFile::LruGen("enabled".into())),
            ("/sys/kernel/debug/zswap/stored_pages", KernelFile::Zswap("stored_pages".into())),
            ("/sys/module/zswap/parameters/enabled", KernelFile::ZswapParameter("enabled".into())),
            (
                "/sys/kernel/debug/sched/numa_balancing/scan_size_mb",
                KernelFile::NumaBalancing("scan_size_mb".into()),
            ),
            ("/sys/kernel/mm/numa/demotion_enabled", KernelFile::Numa("demotion_enabled".into())),
            (
                "/sys/module/damon_stat/parameters/aggr_interval_us",
                KernelFile::Damon("damon_stat/parameters/aggr_interval_us".into()),
            ),
            (
                "/sys/kernel/mm/damon/admin/kdamonds/0/contexts/0/schemes/0/stats/nr_tried",
                KernelFile::DamonAdmin("0/contexts/0/schemes/0/stats/nr_tried".into()),
            ),
            ("/sys/kernel/debug/pghot/kmigrated_sleep_ms", KernelFile::Pghot("kmigrated_sleep_ms".into())),
            (
                "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
                KernelFile::MemoryTier("memory_tier4/nodelist".into()),
            ),
            (
                "/sys/devices/system/node/node1/memory*/online",
                KernelFile::Node("node1/memory*/online".into()),
            ),
            ("/sys/devices/system/node/node0/vmstat", KernelFile::Node("node0/vmstat".into())),
            ("/sys/block/zram0/mm_stat", KernelFile::Block("zram0/mm_stat".into())),
            (
                "/sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages",
                KernelFile::Hugepages("hugepages-64kB/nr_hugepages".into()),
            ),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                KernelFile::TransparentHugepage("enabled".into()),
            ),
            ("/sys/fs/cgroup/memory.stat", memcg("/", "memory.stat")),
            ("/sys/fs/cgroup/job/web/memory.high", memcg("/job/web", "memory.high")),
        ] {
            assert_eq!(KernelFile::parse(path), Some(meaning), "{path}");
        }
        assert_eq!(KernelFile::parse("/etc/passwd"), None);
        assert_eq!(KernelFile::parse("memory.high"), None);
    }
}
