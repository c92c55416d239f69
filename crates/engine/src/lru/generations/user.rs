//! Commands of debugfs `lru_gen` on one lruvec: `+` ages it, which opens a generation; `-` evicts its generations up to one.
//!
//! ```text
//!   + memcg node max_gen     walk page tables, then open a generation after max_gen      what is in use, and since when?
//!   - memcg node min_gen     evict generations up to min_gen                             what is idle, given back
//! ```
//! The text of these commands is `kernfs/lru_gen.rs`. Both run with a walk's buffer. They are the aging and the eviction of reclaim,
//! without its priorities: `+` ages although no page is needed, `-` takes all of a generation. In the counters an eviction is direct
//! reclaim in all eras. [reclaim 4.12, 4.8; reclaim-6.12 4.12, 4.8]
//!
//! A given swappiness counts unchanged, so that memory that can't be swapped now can still be aged. A missing one is the system's, or 0 while there
//! is no swap for a batch.

use super::{Aging, GenerationLists, eviction};
use crate::core::Core;
use crate::kernfs::error::Errno;
use crate::lru::lruvec::LruvecId;
use crate::reclaim::{Reclaimer, ScanControl, Why};
use crate::state::State;
use crate::units::{LruType, MemcgId, Nanos, NodeId};
use pageout_rules::lru::{Interface, Lru, RoundSize};

/// One generation of a group on a node, as `lru_gen` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GenerationInfo {
    /// The generation's sequence number: the larger, the younger.
    pub seq: u64,
    /// The time since it was opened, in milliseconds of whole ticks.
    pub age_ms: u64,
    /// Pages of anonymous memory and tmpfs in it.
    pub anon: u64,
    /// Pages of files in it.
    pub file: u64,
}

/// A command written to `lru_gen`: for which group and node, and what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GenerationRequest {
    pub(crate) memcg: MemcgId,
    pub(crate) node: NodeId,
    /// The youngest generation, or the youngest to evict.
    pub(crate) seq: u64,
    pub(crate) swappiness: Option<u8>,
    pub(crate) what: Requested,
}

/// What a command of `lru_gen` asks for: aging or eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Requested {
    Age {
        /// Look at everything, and make room in a full window.
        is_forced: bool,
    },
    Evict {
        nr_to_reclaim: u64,
    },
}

/// A request in progress.
pub(crate) enum GenerationWork {
    Age(LruvecId, Box<Aging>),
    Evict { lruvec: LruvecId, min_gen: u64, sc: Box<ScanControl> },
}

/// Why a request is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub(crate) errno: Errno,
    pub(crate) expected: String,
}

impl Refused {
    pub(crate) fn invalid(expected: impl Into<String>) -> Refused {
        Refused { errno: Errno::Einval, expected: expected.into() }
    }
}

/// The outcome of one step of a command of `lru_gen`.
pub(crate) enum WorkStep {
    Again,
    /// The work is over; this many pages were reclaimed.
    Done(Result<u64, Refused>),
}

impl Core {
    /// Returns the generations of a group on a node, oldest first, as `lru_gen` shows them. Returns none if the group's policy is not one
    /// of Linux's, or if the group or node does not exist. Under the classic LRU, they exist and are empty.
    pub(crate) fn lru_gen(&self, memcg: MemcgId, node: NodeId) -> Vec<GenerationInfo> {
        if !self.mm.has_lruvec(memcg, node) {
            return Vec::new();
        }
        let lruvec = self.mm.lruvecs.id(memcg, node);
        let Some(generations) = &self.mm.lruvecs[lruvec].generations else { return Vec::new() };
        let of = |seq: u64| {
            let [anon, file] = generations.pages(seq);
            GenerationInfo { seq, age_ms: self.age_ms(generations.birth(seq)), anon, file }
        };
        (self.mm.oldest_shown(lruvec, generations)..=generations.max_seq).map(of).collect()
    }

    /// How long ago something happened, in milliseconds of whole ticks.
    pub(crate) fn age_ms(&self, born: Nanos) -> u64 {
        let tick = Nanos::from_ticks(1, self.mm.config.hz).0;
        (self.by.now.0 / tick - born.0 / tick) * tick / 1_000_000
    }

    /// Begins what was asked; `None` where there is nothing to do for it.
    pub(crate) fn generation_work(
        &mut self,
        request: GenerationRequest,
    ) -> Result<Option<GenerationWork>, Refused> {
        let lruvec = self.mm.lruvecs.id(request.memcg, request.node);
        if self.mm.lru_of(lruvec) != Lru::Generations {
            return Err(Refused::invalid("a group under MGLRU"));
        }
        let has_room = self.mm.has_swap_for_a_batch(lruvec) || self.mm.can_demote_from(lruvec);
        let default = if has_room { self.mm.config.swappiness } else { 0 };
        let swappiness = request.swappiness.unwrap_or(default);
        match request.what {
            Requested::Age { is_forced } => {
                self.mm.age_by_request(lruvec, request.seq, swappiness, is_forced)
            }
            Requested::Evict { nr_to_reclaim } => {
                let max_seq = self.mm.generations(lruvec).max_seq;
                if request.seq.saturating_add(self.mm.generation_rules(lruvec).spared()) > max_seq {
                    return Err(Refused::invalid(format!(
                        "a min_gen older than the youngest generations, which are never evicted; max_gen is {max_seq}"
                    )));
                }
                self.lru_add_drain();
                let by = Reclaimer {
                    node: Some(request.node),
                    ..Reclaimer::new(request.memcg, Why::Generations, swappiness)
                };
                let sc = ScanControl::new(by, nr_to_reclaim);
                Ok(Some(GenerationWork::Evict { lruvec, min_gen: request.seq, sc: Box::new(sc) }))
            }
        }
    }

    /// Takes a request up to the end of a batch.
    pub(crate) fn generation_work_step(&mut self, work: &mut GenerationWork) -> WorkStep {
        match work {
            GenerationWork::Age(lruvec, aging) => match self.aging_step(*lruvec, aging) {
                None => WorkStep::Again,
                Some(has_opened) => WorkStep::Done(self.mm.aged_by_request(*lruvec, has_opened)),
            },
            GenerationWork::Evict { lruvec, min_gen, sc } => {
                let (lruvec, min_gen) = (*lruvec, *min_gen);
                self.mm.release_isolated(sc);
                let most = match self.mm.generation_rules(lruvec).pass.round {
                    RoundSize::Most4096 => eviction::MAX_LRU_BATCH,
                    RoundSize::Most64 => {
                        eviction::MAX_LRU_BATCH.min(sc.nr_to_reclaim.saturating_sub(sc.nr_reclaimed))
                    }
                };
                if self.mm.has_left(lruvec, min_gen, sc)
                    && self.evict(lruvec, sc.by.swappiness, most, sc).1 > 0
                {
                    return WorkStep::Again;
                }
                self.unplug(&mut sc.hands.plug);
                self.mm.release_isolated(sc);
                WorkStep::Done(Ok(sc.nr_reclaimed))
            }
        }
    }
}

impl State {
    /// Returns true if there is such a group and such a node.
    pub(crate) fn has_lruvec(&self, memcg: MemcgId, node: NodeId) -> bool {
        self.memcgs.contains(memcg) && node.index() < self.config.node_pages.len()
    }

    /// The first generation that `lru_gen` shows: by that of anonymous memory, which in 6.12 is never younger than that of files.
    pub(crate) fn oldest_shown(&self, lruvec: LruvecId, generations: &GenerationLists) -> u64 {
        let [anon, file] = generations.min_seq;
        match self.generation_rules(lruvec).interface {
            Interface::Linux6_12 => anon,
            Interface::Linux6_16 => anon.min(file),
        }
    }

    fn age_by_request(
        &mut self,
        lruvec: LruvecId,
        max_gen: u64,
        swappiness: u8,
        is_forced: bool,
    ) -> Result<Option<GenerationWork>, Refused> {
        let generations = self.generations(lruvec);
        let max_seq = generations.max_seq;
        if max_gen > max_seq {
            return Err(Refused::invalid(format!("a max_gen of at most {max_seq}")));
        }
        let interface = self.generation_rules(lruvec).interface;
        if interface == Interface::Linux6_12 {
            if max_gen < max_seq {
                return Ok(None);
            }
            let decides = if swappiness > 0 { LruType::Anon } else { LruType::File };
            if !is_forced && generations.is_full(decides) {
                let expected = "force_scan, because the maximum number of generations exists".to_owned();
                return Err(Refused { errno: Errno::Erange, expected });
            }
        }
        let aging = self.aging_begin(lruvec, swappiness, is_forced);
        Ok(Some(GenerationWork::Age(lruvec, Box::new(aging))))
    }

    /// An aging that was asked for is over.
    fn aged_by_request(&self, lruvec: LruvecId, has_opened: bool) -> Result<u64, Refused> {
        if !has_opened && self.generation_rules(lruvec).interface == Interface::Linux6_16 {
            let expected = "that no other command opens a generation at the same time".to_owned();
            return Err(Refused { errno: Errno::Eexist, expected });
        }
        Ok(0)
    }

    /// Returns true if there is anything left to evict for a request.
    fn has_left(&self, lruvec: LruvecId, min_gen: u64, sc: &ScanControl) -> bool {
        let Some(generations) = self.kept_generations(lruvec) else { return false };
        let oldest = match self.generation_rules(lruvec).interface {
            Interface::Linux6_12 if sc.by.swappiness > 0 => generations.min_seq[LruType::Anon as usize],
            _ => generations.deciding_min_seq(Core::evictable_types(sc.by.swappiness)),
        };
        oldest <= min_gen && !sc.is_satisfied()
    }

    /// Returns true if there is swap for a batch, without which anonymous memory is left alone; for what a switch has left behind, any.
    pub(super) fn has_swap_for_a_batch(&self, lruvec: LruvecId) -> bool {
        let memcg = self.lruvecs[lruvec].memcg;
        if self.exchanges_full_swap {
            return self.has_slots(lruvec);
        }
        let least = if self.lru_of(lruvec) == Lru::Generations { eviction::MIN_LRU_BATCH } else { 1 };
        self.memcgs.free_swap(memcg, self.memory.swap.free_pages()) >= least
    }
}
