//! The kernel log of an OOM kill, line by line in its format.

use crate::access::figures::Figures;
use crate::memcg::{MemcgEvent, SwapEvent};
use crate::oom::{Badness, OomCause, OomKill};
use crate::units::{MmId, PAGE_SIZE, TaskId};
use std::fmt::Write;

/// The log's figure for "no limit": the largest number of pages that the kernel counts to, in kB.
const UNLIMITED_KB: u64 = 9_007_199_254_740_988;

impl Figures<'_> {
    /// The lines of the kernel's log about a kill, from the task that invoked the OOM killer to the process that was killed. A
    /// process has the number of its first task; `comm` returns a process's name for that task.
    pub fn oom_log(self, kill: &OomKill, comm: impl Fn(TaskId) -> String) -> String {
        let mut text = String::new();
        let name = |mm: MmId| self.first_task(mm).map_or_else(|| "?".to_owned(), &comm);
        let pid = |mm: MmId| self.first_task(mm).map_or(0, |task| task.0);
        if kill.with_group.is_none() || kill.is_worst() {
            self.log_header(&mut text, kill, &comm);
            let _ = writeln!(text, "Tasks state (memory values in pages):");
            let _ = writeln!(
                text,
                "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name"
            );
            for (mm, _, badness) in &kill.candidates {
                let Badness { total_vm, anon, file, shmem, swap, oom_score_adj, .. } = *badness;
                let (pid, rss, tables) = (pid(*mm), badness.rss(), badness.page_tables * PAGE_SIZE);
                let _ = writeln!(
                    text,
                    "[{pid:7}] {:5} {pid:5} {total_vm:8} {rss:8} {anon:8} {file:8} {shmem:9} {tables:8} {swap:8} {oom_score_adj:13} {}",
                    0,
                    name(*mm)
                );
            }
            let _ = writeln!(
                text,
                "oom-kill:constraint={},nodemask=(null),cpuset=/,mems_allowed=0,{},task_memcg={},task={},pid={},uid=0",
                if kill.limited().is_some() { "CONSTRAINT_MEMCG" } else { "CONSTRAINT_NONE" },
                kill.limited().map_or_else(|| "global_oom".to_owned(), |path| format!("oom_memcg={path}")),
                kill.memcg,
                name(kill.victim),
                pid(kill.victim)
            );
        }
        let kb = |pages: u64| pages * PAGE_SIZE / 1024;
        let Badness { total_vm, anon, file, shmem, page_tables, oom_score_adj, .. } = kill.badness;
        let _ = writeln!(
            text,
            "{}: Killed process {} ({}) total-vm:{}kB, anon-rss:{}kB, file-rss:{}kB, shmem-rss:{}kB, UID:0 pgtables:{}kB oom_score_adj:{oom_score_adj}",
            if kill.limited().is_some() { "Memory cgroup out of memory" } else { "Out of memory" },
            pid(kill.victim),
            name(kill.victim),
            kb(total_vm),
            kb(anon),
            kb(file),
            kb(shmem),
            kb(page_tables)
        );
        if let Some(group) = kill.with_group.as_ref().filter(|_| kill.is_worst()) {
            let _ = writeln!(text, "Tasks in {group} are going to be killed due to memory.oom.group set");
        }
        text
    }

    /// The head of the log: the task that invoked the OOM killer, its limits, and how the memory in question is used.
    fn log_header(self, text: &mut String, kill: &OomKill, comm: &impl Fn(TaskId) -> String) {
        let by = self.mm_if_any(kill.invoked_by);
        let adj = by.map_or(0, |mm| self.core.mm.memory.mm(mm).oom_score_adj);
        // A charge is for the kernel's own memory as well; a page of the machine is one of a process or a file.
        let gfp = match &kill.cause {
            OomCause::Allocation(report) if report.max.is_none() => {
                "0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP)"
            }
            OomCause::Allocation(_) | OomCause::WorkingSet { .. } => "0xcc0(GFP_KERNEL)",
        };
        let _ = writeln!(
            text,
            "{} invoked oom-killer: gfp_mask={gfp}, order=0, oom_score_adj={adj}",
            comm(kill.invoked_by)
        );
        let OomCause::Allocation(report) = &kill.cause else { return };
        let kb = |pages: u64| pages * PAGE_SIZE / 1024;
        let [inactive_anon, active_anon, inactive_file, active_file, unevictable] = report.lists;
        if let Some(max) = report.max {
            let group = &self.core.mm.memcgs[report.memcg];
            let failed = group.events_local[MemcgEvent::Max as usize];
            let _ =
                writeln!(text, "memory: usage {}kB, limit {}kB, failcnt {failed}", kb(report.usage), kb(max));
            let swap_max = kb(group.swap_max.min(UNLIMITED_KB * 1024 / PAGE_SIZE));
            let failed = group.swap_events[SwapEvent::Max as usize];
            let _ = writeln!(
                text,
                "swap: usage {}kB, limit {swap_max}kB, failcnt {failed}",
                kb(group.swap_usage)
            );
            let _ = writeln!(text, "Memory cgroup stats for {}:", report.path);
            let lists = [
                ("inactive_anon", inactive_anon),
                ("active_anon", active_anon),
                ("inactive_file", inactive_file),
                ("active_file", active_file),
                ("unevictable", unevictable),
            ];
            for (list, pages) in lists {
                let _ = writeln!(text, "{list} {}", pages * PAGE_SIZE);
            }
        } else {
            let _ = writeln!(text, "Mem-Info:");
            let _ = writeln!(
                text,
                "active_anon:{active_anon} inactive_anon:{inactive_anon} active_file:{active_file} \
                 inactive_file:{inactive_file} unevictable:{unevictable}"
            );
        }
    }
}
