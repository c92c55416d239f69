//! `/sys/kernel/mm/lru_gen`: which parts of the multi-generational LRU are on (`enabled`), and the age that `min_ttl_ms` protects.
//!
//! `enabled` is the machine's. Reading it shows the root's policy. Writing it changes every group whose policy is one of Linux's; a textbook policy
//! stays unchanged. [reclaim 4.12]

use super::lru_gen::parse_c_integer;
use super::{WRITTEN, WriteError, invalid};
use crate::access::engine::Engine;
use crate::machine::step::Step;
use crate::units::{MemcgId, TaskId};
use pageout_rules::lru::Lru;

/// Generations rather than two lists.
const CORE: u32 = 0x1;
/// Page-table walks.
const MM_WALK: u32 = 0x2;
/// Walks pass by what the upper entries' accessed bits say was not used.
const NONLEAF_YOUNG: u32 = 0x4;

/// What was written last, or what the profile of the root comes to.
pub(super) fn enabled_show(engine: &mut Engine) -> String {
    let policy = engine.core.mm.memcgs[MemcgId::ROOT].policy;
    let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
    let caps = engine.core.mm.lru_gen_enabled.unwrap_or_else(|| {
        bit(policy.lru == Lru::Generations, CORE)
            | bit(policy.harvest.page_table_walk, MM_WALK)
            | bit(policy.harvest.non_leaf_young, NONLEAF_YOUNG)
    });
    format!("0x{caps:04x}\n")
}

/// The lists change hands in steps: see `lru/switching.rs`. How generations are harvested is of no concern to those who
/// keep none.
pub(super) fn enabled_store(engine: &mut Engine, task: TaskId, value: &str) -> Result<Step, WriteError> {
    let caps = match value.as_bytes().first() {
        Some(b'y' | b'Y') => CORE | MM_WALK | NONLEAF_YOUNG,
        Some(b'n' | b'N') => 0,
        _ => parse_c_integer(value).map_err(|_| invalid("an integer, `y` or `n`"))?,
    };
    if engine.core.mm.memcgs[MemcgId::ROOT].policy.lru.may_be_switched() {
        engine.core.mm.lru_gen_enabled = Some(caps & (CORE | MM_WALK | NONLEAF_YOUNG));
    }
    engine.core.mm.switch_lru(caps & CORE != 0);
    for memcg in engine.core.mm.memcgs.ids() {
        if engine.core.mm.memcgs[memcg].policy.lru != Lru::Generations {
            continue;
        }
        let harvest = &mut engine.core.mm.memcgs[memcg].policy.harvest;
        harvest.page_table_walk = caps & MM_WALK != 0;
        harvest.non_leaf_young = caps & NONLEAF_YOUNG != 0;
    }
    engine.core.mm.config.policy.group = engine.core.mm.memcgs[MemcgId::ROOT].policy;
    let is_switching = engine.core.mm.memcgs.ids().any(|memcg| engine.core.mm.lruvecs.is_switching(memcg));
    // The first chunk is moved when others have had their turn: they see the new policy before they see any folio of it.
    Ok(if is_switching { engine.current(task).suspend_switch() } else { WRITTEN })
}

pub(super) fn min_ttl_ms_show(engine: &mut Engine) -> String {
    format!("{}\n", engine.core.mm.min_ttl_ms)
}

pub(super) fn min_ttl_ms_store(engine: &mut Engine, _: TaskId, value: &str) -> Result<Step, WriteError> {
    engine.core.mm.min_ttl_ms = parse_c_integer(value).map_err(|_| invalid("milliseconds"))?.into();
    Ok(WRITTEN)
}
