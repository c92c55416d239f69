//! Reparenting of generations: the lists of a removed memcg are spliced behind those of its parent. [`crate::lru`]'s `reparent.rs` says
//! why. [mglru-2026 2.14]

use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::state::State;
use crate::units::LruType;

impl Core {
    /// Puts each of one's generations behind the other's in the same slot.
    pub(in crate::lru) fn generations_splice(&mut self, from: LruvecId, to: LruvecId) {
        self.fill_window(to);
        let gauges_count = self.mm.generation_rules(from).gauges_count();
        for kind in LruType::BOTH {
            for slot in 0..self.mm.generations(from).births.len() {
                for rank in 0..self.mm.lruvecs[from].zones() {
                    let of = self.mm.generations(from);
                    let list = of.list_of(of.group_of(slot, kind), rank);
                    let group = std::mem::take(&mut self.mm.generations_mut(from).lists[list]);
                    let parent = self.mm.lruvecs[to].generations.as_mut().expect("both keep generations");
                    parent.lists[list].append(&mut self.mm.memory.folios, group);
                }
                let pages = std::mem::take(&mut self.mm.generations_mut(from).pages[slot][kind as usize]);
                self.mm.generations_mut(to).pages[slot][kind as usize] += pages;
                if !gauges_count {
                    let gauge = |core: &Core, of| LruList::new(kind, core.mm.generations(of).is_active(slot));
                    let (before, after) = (gauge(self, from), gauge(self, to));
                    self.update_size(from, before, -(pages as i64));
                    self.update_size(to, after, pages as i64);
                }
            }
            if gauges_count {
                for list in [LruList::active(kind), LruList::inactive(kind)] {
                    let pages = self.mm.lruvecs[from].size(list);
                    self.move_size(from, to, list, pages);
                }
            }
        }
    }

    /// Opens generations until each type has as many as there can be, so that every slot is one of the window.
    fn fill_window(&mut self, lruvec: LruvecId) {
        let can_evict_anon = self.mm.has_swap_for_a_batch(lruvec) || self.mm.can_demote_from(lruvec);
        let swappiness = if can_evict_anon { self.mm.config.swappiness } else { 0 };
        while LruType::BOTH.into_iter().any(|kind| !self.mm.generations(lruvec).is_full(kind)) {
            let seq = self.mm.generations(lruvec).max_seq;
            self.open_generation(lruvec, seq, swappiness);
        }
    }
}

impl State {
    /// Returns true if slots of both windows mean the same, and the gauges count by the same rule.
    pub(in crate::lru) fn have_windows_alike(&self, from: LruvecId, to: LruvecId) -> bool {
        let (from, to) = (self.generation_rules(from), self.generation_rules(to));
        from.count_max == to.count_max && from.gauges_count() == to.gauges_count()
    }
}
