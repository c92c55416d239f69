//! Lists as they were found on a machine, in place of those that its pages came to by the rules.
//!
//! The uses of pages, and the cost of their reclaim, happened before the recording began. Their traces are the order of pages, their bits and some
//! sums; from there on the rules decide again.

use crate::core::Core;
use crate::lru::Arrival;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::{FolioFlags, UseBits};
use crate::units::{CpuId, Pfn};
use pageout_mm::balance::TIERS;

/// A list, or a generation of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartList {
    /// The generation; without it the active or inactive list that each folio's bits name.
    pub seq: Option<u64>,
    /// The folios, oldest first.
    pub folios: Vec<StartFolio>,
}

/// A folio on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartFolio {
    /// Its frame.
    pub pfn: Pfn,
    /// It is on the active list.
    pub is_active: bool,
    /// It was accessed once through a file descriptor, or found with an accessed bit.
    pub is_referenced: bool,
    /// It was hot in this residency, or in the one before.
    pub is_workingset: bool,
}

/// The window of generations, and what their controller remembers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartGenerations {
    /// The youngest.
    pub max_seq: u64,
    /// The oldest, by type.
    pub min_seq: [u64; 2],
    /// By type and tier: averages of pages that came back, and of all that could.
    pub averages: [[(u64, u64); TIERS]; 2],
    /// The same of the oldest generation: pages that came back, and pages evicted.
    pub present: [[(u64, u64); TIERS]; 2],
}

/// The lists of a group on a node, and what belongs to them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartLruvec {
    /// All that reclaim scans.
    pub lists: Vec<StartList>,
    /// The recent cost of reclaiming each type.
    pub cost: [u64; 2],
    /// The clock of evictions and activations.
    pub nonresident_age: u64,
    /// Pages on the four lists by the statistics, in the order of [`LruList::EVICTABLE`]: decisions use these until they are flushed. The actual
    /// pages if the statistics are unknown.
    pub counted: Option<[u64; 4]>,
    /// By type, whether refaults have activated pages since a call of reclaim was over.
    pub refaulted: [bool; 2],
    /// The generations, if the lists have them.
    pub generations: Option<StartGenerations>,
}

impl StartFolio {
    fn use_bits(self) -> UseBits {
        let bits = [
            (self.is_active, UseBits::ACTIVE),
            (self.is_referenced, UseBits::REFERENCED),
            (self.is_workingset, UseBits::WORKINGSET),
        ];
        bits.into_iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).collect()
    }
}

impl Core {
    /// Puts folios on lists as they were found. All of the lruvec's have to be named, and once.
    pub(crate) fn set_lists(&mut self, lruvec: LruvecId, found: &StartLruvec) -> Result<(), String> {
        for cpu in 0..self.mm.config.cpus {
            self.lru_add_drain_cpu(CpuId(cpu));
        }
        for folio in found.lists.iter().flat_map(|list| &list.folios) {
            let is_listed = self.mm.memory.folios.get(folio.pfn).has(FolioFlags::LRU)
                && self.mm.lruvec_of(folio.pfn) == lruvec;
            if !is_listed {
                return Err(format!("frame {} is on none of the group's lists, or on two", folio.pfn.0));
            }
            self.lru_unlink(folio.pfn);
        }
        let left = self.mm.lruvecs[lruvec].evictable();
        if left > 0 {
            return Err(format!(
                "{left} pages of the group are on lists, but not on any of those that were found"
            ));
        }
        self.set_generations(lruvec, found)?;
        for list in &found.lists {
            for folio in &list.folios {
                self.mm.memory.set_use_bits(folio.pfn, folio.use_bits());
                match list.seq {
                    Some(seq) => self.generations_place_in(lruvec, folio.pfn, seq),
                    None => self.lru_place(folio.pfn, Arrival::PutBack),
                }
            }
        }
        let of = &mut self.mm.lruvecs[lruvec];
        of.cost = found.cost;
        of.nonresident_age = found.nonresident_age;
        self.flush_stats();
        let of = &mut self.mm.lruvecs[lruvec];
        let is_stale = self.mm.config.stat_flush != crate::StatFlush::Live;
        let counted = found.counted.filter(|_| is_stale);
        for (list, count) in LruList::EVICTABLE.into_iter().zip(counted.into_iter().flatten()) {
            of.stat_flushed[list.stat() as usize] = count as i64;
        }
        for (refaults, _) in of.refaults.iter_mut().zip(found.refaulted).filter(|(_, refaulted)| *refaulted) {
            // Any other number than the present one.
            *refaults = u64::MAX;
        }
        Ok(())
    }

    /// The window, while nothing is in it.
    fn set_generations(&mut self, lruvec: LruvecId, found: &StartLruvec) -> Result<(), String> {
        let is_kept = self.mm.kept_generations(lruvec).is_some();
        let of = &mut self.mm.lruvecs[lruvec];
        let generations = of.generations.as_mut().filter(|_| is_kept);
        let (Some(generations), Some(window)) = (generations, &found.generations) else {
            return match found.lists.iter().find_map(|list| list.seq) {
                Some(seq) => Err(format!("there is a generation {seq}, but the group does not use MGLRU")),
                None => Ok(()),
            };
        };
        let count = generations.births.len() as u64;
        let StartGenerations { max_seq, min_seq, averages, present } = window;
        if let Some(min) = min_seq.iter().find(|&min| min > max_seq || max_seq - min >= count) {
            return Err(format!("generations {min} to {max_seq} are not a window of up to {count}"));
        }
        let known = *min_seq.iter().min().expect("there are two types")..=*max_seq;
        if let Some(seq) = found.lists.iter().filter_map(|list| list.seq).find(|seq| !known.contains(seq)) {
            return Err(format!("generation {seq} is not in the window"));
        }
        (generations.max_seq, generations.min_seq) = (*max_seq, *min_seq);
        let oldest = min_seq.map(|seq| generations.slot(seq));
        of.feedback.set(oldest, averages, present);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lru::two_lists::Deactivation;
    use crate::*;

    #[test]
    fn decisions_go_by_statistics_as_they_were_found_until_these_are_flushed() {
        let policy = Policy::by_name("classic@6.12").unwrap();
        let mut engine = Engine::new(Config { policy, ..Config::default() }).unwrap();
        let found = StartLruvec {
            lists: Vec::new(),
            cost: [0; 2],
            nonresident_age: 0,
            counted: Some([7, 3, 300, 40]),
            refaulted: [false, true],
            generations: None,
        };
        engine.set_lists(MemcgId::ROOT, NodeId(0), &found).unwrap();
        let lruvec = engine.core.mm.lruvecs.id(MemcgId::ROOT, NodeId(0));
        let known = |core: &Core| LruList::EVICTABLE.map(|list| core.mm.stale(lruvec, list.stat()));
        let is_due = |core: &Core| {
            LruType::BOTH.map(|kind| Deactivation::of(core.mm.view(lruvec), kind, false).is_due())
        };
        assert_eq!((known(&engine.core), is_due(&engine.core)), ([7, 3, 300, 40], [false, true]));
        engine.core.workingset_end_cycle(lruvec);
        assert_eq!(is_due(&engine.core), [false, false], "refaults are those since the last call");
        engine.core.flush_stats();
        assert_eq!(known(&engine.core), [0; 4]);
    }
}
