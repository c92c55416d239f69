//! `/sys/kernel/mm/lru_gen`: which parts of the multi-generational LRU are on (`enabled`), and the age that `min_ttl_ms` protects.
//!
//! `enabled` is the machine's. Reading it shows the root's policy. Writing it changes every group whose policy is one of
//! Linux's; a textbook policy stays as it is. [reclaim 4.12]

use super::lru_gen::parse_c_integer;
use crate::machine::step::{Served, Step};
use crate::serve::engine::Engine;
use crate::units::{MemcgId, TaskId};
use pageout_rules::lru::Lru;

/// Generations rather than two lists.
const CORE: u32 = 0x1;
/// Page-table walks.
const MM_WALK: u32 = 0x2;
/// Walks pass by what the upper entries' accessed bits say was not used.
const NONLEAF_YOUNG: u32 = 0x4;

pub(super) fn parse_enabled(value: &str) -> Option<u32> {
    match value.as_bytes().first()? {
        b'y' | b'Y' => Some(CORE | MM_WALK | NONLEAF_YOUNG),
        b'n' | b'N' => Some(0),
        _ => parse_c_integer(value).ok(),
    }
}

pub(super) fn parse_min_ttl(value: &str) -> Option<u64> {
    parse_c_integer(value).ok().map(u64::from)
}

impl Engine {
    /// What was written last, or what the profile of the root comes to.
    pub(super) fn enabled_text(&self) -> String {
        let policy = self.core.memcgs[MemcgId::ROOT].policy;
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let caps = self.core.lru_gen_enabled.unwrap_or_else(|| {
            bit(policy.lru == Lru::Generations, CORE)
                | bit(policy.harvest.page_table_walk, MM_WALK)
                | bit(policy.harvest.non_leaf_young, NONLEAF_YOUNG)
        });
        format!("0x{caps:04x}\n")
    }

    /// The lists change hands in steps: see `lru/switching.rs`. How generations are harvested is of no concern to those who
    /// keep none.
    pub(super) fn set_enabled(&mut self, task: TaskId, caps: u32) -> Step {
        if self.core.memcgs[MemcgId::ROOT].policy.lru.may_be_switched() {
            self.core.lru_gen_enabled = Some(caps & (CORE | MM_WALK | NONLEAF_YOUNG));
        }
        self.core.switch_lru(caps & CORE != 0);
        for memcg in self.core.memcgs.ids() {
            if self.core.memcgs[memcg].policy.lru != Lru::Generations {
                continue;
            }
            let harvest = &mut self.core.memcgs[memcg].policy.harvest;
            harvest.page_table_walk = caps & MM_WALK != 0;
            harvest.non_leaf_young = caps & NONLEAF_YOUNG != 0;
        }
        self.core.config.policy.group = self.core.memcgs[MemcgId::ROOT].policy;
        let is_switching = self.core.memcgs.ids().any(|memcg| self.core.is_switching(memcg));
        // The first chunk is moved when others have had their turn: they see the new policy before they see any folio of it.
        if is_switching {
            self.current(task).suspend_switch()
        } else {
            Step::Done(Served::Written { reclaimed: 0 })
        }
    }
}
