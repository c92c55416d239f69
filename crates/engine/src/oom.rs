//! The OOM killer: which process is killed when no memory can be allocated in any other way.
//!
//! ```text
//!   a charge at its limit, 16 attempts in vain ─┐                  ┌─ of the group and those below it
//!   an allocation, 16 rounds in vain ───────────┼─▶ the worst of ──┤
//!   kswapd, nothing older than min_ttl_ms ──────┘                  └─ the whole machine
//!                                                    │
//!                                                    ▼
//!        somebody is dying already: wait     its group is one (memory.oom.group): all of it      nobody may be killed: a report
//! ```
//! The worst process is the one that frees most. Its score is its mapped pages, its swap entries and its page tables, plus `oom_score_adj` in
//! thousandths of all memory that its kind may have. The end of a victim's tasks is in `access/dying.rs`. Until the victim's memory is free, the
//! killer chooses no other process. A task without memory waits, a tick at a time. [machine 2.10; reclaim 4.10]
//!
//! Not modelled: the reaper, which takes the memory of a victim that has not ended after two seconds. Here all waits of a victim end immediately, so
//! it needs no more than its turn on a CPU.

use crate::core::Core;
use crate::machine::step::{DelayReason, OomReport, Unrelieved, Wait};
use crate::memcg::{MemcgEvent, UNLIMITED};
use crate::memory::folio::FolioFlags;
use crate::memory::table::Entry;
use crate::stat::Stat;
use crate::state::State;
use crate::units::{MemcgId, MmId, Nanos, TaskId};

/// The least `oom_score_adj`: never to be killed.
pub(crate) const OOM_SCORE_ADJ_MIN: i16 = -1000;
/// The most: killed before all others.
pub(crate) const OOM_SCORE_ADJ_MAX: i16 = 1000;

/// A process's memory in pages, and the score that the OOM killer makes of it (`oom_badness`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Badness {
    /// Pages of the process's mappings.
    pub total_vm: u64,
    /// Anonymous pages that it maps.
    pub anon: u64,
    /// Pages of files that it maps.
    pub file: u64,
    /// Pages of tmpfs files that it maps.
    pub shmem: u64,
    /// The process's anonymous pages on swap.
    pub swap: u64,
    /// The process's page tables.
    pub page_tables: u64,
    /// The process's `oom_score_adj`.
    pub oom_score_adj: i16,
    /// The sum, and the adjustment in pages. The process with the highest score is killed.
    pub score: i64,
}

impl Badness {
    /// Pages that the process maps (its resident set).
    pub fn rss(&self) -> u64 {
        self.anon + self.file + self.shmem
    }

    /// It is not exempt.
    fn may_be_killed(&self) -> bool {
        self.oom_score_adj > OOM_SCORE_ADJ_MIN
    }
}

/// The reason for a kill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OomCause {
    /// A page did not fit under a group's limit, or no zone had one.
    Allocation(Box<OomReport>),
    /// kswapd found nothing to reclaim on a node that was older than so many milliseconds (`min_ttl_ms`).
    WorkingSet {
        /// The working set is to live so long.
        min_ttl_ms: u64,
    },
}

/// A process that the OOM killer has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OomKill {
    /// The time of the kill.
    pub at: Nanos,
    /// The address space of the process that is killed.
    pub victim: MmId,
    /// The process's tasks. Whatever they do or wait for, those that have not begun to exit are to be resumed now.
    pub tasks: Vec<TaskId>,
    /// The path of its group.
    pub memcg: String,
    /// The memory that the process had.
    pub badness: Badness,
    /// The task that ran out of memory.
    pub invoked_by: TaskId,
    /// The reason why a process had to be killed.
    pub cause: OomCause,
    /// The candidates, including the victim: their groups' paths and their memory.
    pub candidates: Vec<(MmId, String, Badness)>,
    /// The process goes with others because the group of this path is killed as a whole.
    pub with_group: Option<String>,
}

impl OomKill {
    /// The path of the group whose limit could not be kept; `None` when the machine had no page to spare.
    pub fn limited(&self) -> Option<&str> {
        match &self.cause {
            OomCause::Allocation(report) => report.max.map(|_| report.path.as_str()),
            OomCause::WorkingSet { .. } => None,
        }
    }

    /// The process was chosen for what it has; others go because it does.
    pub fn is_worst(&self) -> bool {
        worst_of(&self.candidates) == Some(self.victim)
    }
}

/// The process with the highest score among those that may be killed; the first of equals.
fn worst_of(candidates: &[(MmId, String, Badness)]) -> Option<MmId> {
    let may_be_killed = candidates.iter().filter(|(.., badness)| badness.may_be_killed());
    may_be_killed.rev().max_by_key(|(.., badness)| badness.score).map(|&(mm, ..)| mm)
}

/// Actions of the OOM killer, until the machine is notified.
#[derive(Default)]
pub(crate) struct OomKills {
    pub(crate) pending: Vec<OomKill>,
}

/// What became of a call for the OOM killer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Relief {
    /// Memory is about to be free.
    Coming,
    /// No process can be killed for it.
    None(Unrelieved),
}

impl Core {
    /// Only a process that ends can free memory of a group, or of the machine.
    pub(crate) fn out_of_memory(&mut self, domain: MemcgId, cause: impl FnOnce(&Core) -> OomCause) -> Relief {
        let groups = self.mm.memcgs.subtree(domain);
        let mut mms: Vec<MmId> =
            groups.iter().flat_map(|&id| self.mm.memcgs[id].mms.iter().copied()).collect();
        mms.sort_unstable();
        if mms.iter().any(|&mm| self.mm.memory.mm(mm).is_ending()) {
            return Relief::Coming;
        }
        let total_pages = self.mm.oom_total_pages(domain);
        let alive = mms.iter().copied().filter(|&mm| self.mm.memory.mm(mm).is_running);
        let candidates: Vec<(MmId, String, Badness)> = alive
            .map(|mm| {
                (mm, self.mm.memcgs.path(self.mm.memory.mm(mm).memcg), self.mm.badness(mm, total_pages))
            })
            .collect();
        let Some(worst) = worst_of(&candidates) else {
            return Relief::None(match candidates.is_empty() {
                true => Unrelieved::NoProcess,
                false => Unrelieved::AllExempt { processes: candidates.len() },
            });
        };
        let cause = cause(self);
        let group = self.mm.oom_group(self.mm.memory.mm(worst).memcg, domain);
        let mut victims = vec![worst];
        if let Some(group) = group {
            self.mm.memcgs.event(group, MemcgEvent::OomGroupKill);
            let of_group = candidates.iter().filter(|(mm, ..)| {
                *mm != worst && self.mm.memcgs.is_below(self.mm.memory.mm(*mm).memcg, group)
            });
            victims.extend(of_group.filter(|(.., badness)| badness.may_be_killed()).map(|&(mm, ..)| mm));
        }
        for victim in victims {
            self.oom_kill(victim, &cause, &candidates, group);
        }
        Relief::Coming
    }

    fn oom_kill(
        &mut self,
        victim: MmId,
        cause: &OomCause,
        candidates: &[(MmId, String, Badness)],
        group: Option<MemcgId>,
    ) {
        let memcg = self.mm.memory.mm(victim).memcg;
        self.mm.memory.mm_mut(victim).is_oom_victim = true;
        self.mm.memcgs.event(memcg, MemcgEvent::OomKill);
        self.mm.count_node(self.current_node(), Stat::OomKill, 1);
        let of_victim = candidates.iter().find(|(mm, ..)| *mm == victim);
        let (_, path, badness) = of_victim.expect("it was chosen among them").clone();
        self.oom_kills.pending.push(OomKill {
            at: self.by.now,
            victim,
            tasks: Vec::new(),
            memcg: path,
            badness,
            invoked_by: self.by.task,
            cause: cause.clone(),
            candidates: candidates.to_vec(),
            with_group: group.map(|group| self.mm.memcgs.path(group)),
        });
    }
}

impl State {
    /// Returns true if a process is to end, so that its tasks need no memory any more.
    #[inline]
    pub(crate) fn is_oom_victim(&self, mm: MmId) -> bool {
        self.memory.mm(mm).is_oom_victim
    }

    /// How long who has called for the OOM killer leaves others to make use of it.
    pub(crate) fn oom_wait(&self) -> Wait {
        Wait::WokenOr(Nanos::from_ticks(1, self.config.hz), DelayReason::Oom)
    }

    /// The largest group with the victim in it that is killed as a whole, as far as memory is short.
    #[doc(alias = "mem_cgroup_get_oom_group")]
    fn oom_group(&self, memcg: MemcgId, domain: MemcgId) -> Option<MemcgId> {
        let mut within = self.memcgs.ancestors(memcg).collect::<Vec<_>>();
        let end = within.iter().position(|&id| id == domain).map_or(within.len(), |at| at + 1);
        within.truncate(end);
        within.into_iter().rev().find(|&id| id != MemcgId::ROOT && self.memcgs[id].oom_group)
    }

    /// All memory that a group may have with swap, or that the machine has.
    fn oom_total_pages(&self, domain: MemcgId) -> u64 {
        let swap = self.memory.swap.total_pages();
        let ram: u64 = self.memory.zones.info().map(|zone| zone.managed).sum();
        let group = &self.memcgs[domain];
        match group.max {
            UNLIMITED => ram + swap,
            max => max.min(ram) + group.swap_max.min(swap),
        }
    }

    #[doc(alias = "oom_badness")]
    fn badness(&self, mm: MmId, total_pages: u64) -> Badness {
        let mm = self.memory.mm(mm);
        let mut badness = Badness {
            total_vm: mm.vmas.iter().filter(|vma| vma.mapped).map(|vma| vma.pages).sum(),
            page_tables: mm.nodes.iter().count() as u64,
            oom_score_adj: mm.oom_score_adj,
            ..Badness::default()
        };
        for (_, word) in mm.table.iter() {
            match word.decode() {
                Entry::Present(pfn) if !word.is_zero_page() => {
                    let folio = &self.memory.folios[pfn];
                    let kind = match (folio.has(FolioFlags::ANON), folio.has(FolioFlags::SWAPBACKED)) {
                        (true, _) => &mut badness.anon,
                        (false, true) => &mut badness.shmem,
                        (false, false) => &mut badness.file,
                    };
                    *kind += 1;
                }
                Entry::Swap(_) => badness.swap += 1,
                Entry::Present(_) | Entry::Empty | Entry::Shadow(_) => {}
            }
        }
        let adjustment = i64::from(mm.oom_score_adj) * total_pages as i64 / 1000;
        badness.score = (badness.rss() + badness.swap + badness.page_tables) as i64 + adjustment;
        badness
    }
}
