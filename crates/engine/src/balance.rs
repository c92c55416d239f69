//! Seam 4, balance: how much to take from anonymous and how much from file memory. [reclaim 2.3, 4.9]
//!
//! Anonymous memory costs a write, and a read when it is needed again. File memory costs only a read. The user sets their
//! relative price (`vm.swappiness`: 100 makes them equal). There are two ways to learn from what reclaim has cost lately:
//!
//! - `cost.rs`, from the classic LRU: each type's running cost in I/O and rotations divides a pass between the two.
//! - `pageout_mm::balance` (counts) and `controller.rs` (decisions), from the multi-generational LRU: refaults per eviction, a
//!   controller that picks one type at a time.
//!
//! Each works on the other's lists as well. On two lists the controller gives the whole of a pass to one type; on
//! generations the costs become shares, and the type that is behind its share is next.

mod cost;
mod controller;

pub use cost::ScanBalance;
use pageout_rules::balance::TypeRule;

pub(crate) use pageout_mm::balance::*;

/// Keeps the types' oldest generations, about to go from `old` to `new`, comparable.
///
/// 6.12: file generations never end before the anonymous ones of the same age. 6.16: they may be one apart.
pub(crate) fn keep_in_step(
    rule: TypeRule,
    old: [u64; 2],
    new: [u64; 2],
    max_seq: u64,
    spared: u64,
) -> [u64; 2] {
    let [anon, file] = new;
    match rule {
        TypeRule::Linux6_12 => {
            let anon = anon.min(file).max(old[0]);
            [anon, anon.max(old[1])]
        }
        TypeRule::Linux6_16 => {
            let latest = max_seq.saturating_sub(spared);
            match (anon > latest && file < latest, file > latest && anon < latest) {
                (true, _) => [latest.max(old[0]), file],
                (_, true) => [anon, latest.max(old[1])],
                _ => new,
            }
        }
    }
}
