//! Migration: a folio's contents move to another frame, and everything that leads to it follows. [tiering 6; machine 2.11]
//!
//! ```text
//!   isolated folio ─▶ may it move? ─▶ page tables, index, swap cache lead to the new frame ─▶ Op::Copy ─▶ add batch
//!                         │ no: a transfer, a reference, a pin                                            ▲
//!                         └──────────── put back, to be found there again ────────────────────────────────┘
//! ```
//! Afterwards only the frame differs: accessed and dirty bits, use bits, the slot and the charge move along. The old frame is free when the copy has
//! been carried out. The folio enters its lists through the add batch like a new one, so it ends at the head.
//!
//! A machine prices each page-table entry by itself, and all else with the copy.
//!
//! Within a node, compaction moves them (`compaction.rs`). To another node, gauges that are counted by node move as well (`nodes.rs`).

mod compaction; // large blocks out of scattered free pages
mod direct; // a request makes its block itself
mod kcompactd; // a thread a node makes blocks for requests to come
mod nodes; // folios go to another node
mod offline; // a node leaves the machine
mod promote; // to one of the top tier
mod refusal; // failures on demand, at each step

pub(crate) use compaction::{CompactMemory, CompactMode, CompactStep, Compacted, Compaction, Goal};
pub(crate) use direct::{DirectCompactStep, DirectCompaction};
pub(crate) use kcompactd::{Kcompactd, KcompactdThread};
pub(crate) use nodes::BATCH_MAX;
pub(crate) use nodes::NotMigrated;
pub use refusal::MigrateStep;
#[cfg(any(test, feature = "fault-injection"))]
pub(crate) use refusal::Refusals;

use crate::audit::Transition;
use crate::core::Core;
use crate::lru::AddedFor;
use crate::machine::op::Op;
use crate::memory::folio::{Folio, FolioFlags, HUGE_PAGE_ORDER, HUGE_PAGE_PAGES};
use crate::memory::table::Word;
use crate::stat::{ByType, ISOLATED, Stat};
use crate::state::State;
use crate::story::{MigrateReason, MigrateRefusal, PageEvent};
use crate::units::{FileId, Pfn};

impl Core {
    /// Takes a folio off its list for migration; false where it is on none.
    pub(crate) fn migrate_isolate(&mut self, pfn: Pfn) -> bool {
        if !self.mm.memory.folios[pfn].has(FolioFlags::LRU) || self.is_refused(MigrateStep::Isolate) {
            return false;
        }
        self.tell(pfn, |_| PageEvent::IsolatedToMove);
        self.lru_unlink(pfn);
        self.mm.count_isolated(pfn, 1);
        true
    }

    /// Gives a folio that was isolated for migration back to its lists.
    pub(crate) fn migrate_put_back(&mut self, pfn: Pfn) {
        self.mm.count_isolated(pfn, -1);
        self.lru_add(pfn, AddedFor::Other);
        if self.is_refused(MigrateStep::PutBack) {
            self.lru_add_drain();
        }
    }

    /// Moves an isolated folio to a free frame of its size, and puts it back. If it can't move, it is put back unchanged, and the frame stays free:
    /// false.
    pub(crate) fn migrate_folio(&mut self, from: Pfn, to: Pfn, why: MigrateReason) -> bool {
        let is_moved = self.move_folio(from, to, why);
        if !is_moved {
            let folio = self.mm.memory.folios[from];
            self.mm.count_unmoved(&folio);
        }
        self.migrate_put_back(if is_moved { to } else { from });
        is_moved
    }

    /// Moves an isolated folio to a frame that was found for it. If the folio stays where it is, the frame is free again.
    pub(super) fn migrate_folio_or_free(&mut self, from: Pfn, to: Pfn, why: MigrateReason) -> bool {
        let (node, pages) = (self.mm.memory.folios[to].node, self.mm.memory.folios[to].pages());
        let is_moved = self.migrate_folio(from, to, why);
        if !is_moved {
            // Only now: a folio that is put back is freed if it is not needed any more.
            let free = self.mm.memory.zones.all_free(node);
            self.free_folio(to);
            debug_assert_eq!(
                self.mm.memory.zones.all_free(node),
                free + pages,
                "free pages of {node:?}, and {to:?}, to which no folio has moved"
            );
        }
        is_moved
    }

    /// Moves an isolated folio to a free frame and leaves it with who isolated it, who counts it if it has not moved.
    pub(crate) fn move_folio(&mut self, from: Pfn, to: Pfn, why: MigrateReason) -> bool {
        let folio = self.mm.memory.folios[from];
        let pages = folio.pages() as i64;
        if self.is_held(&folio) || !self.gate_close(from) {
            let to = self.mm.memory.folios[to].node;
            self.tell(from, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::Held });
            return false;
        }
        if self.is_refused(MigrateStep::Unmap) {
            self.folio_unfreeze(from);
            return false;
        }
        self.mm.assert_may_move(from, to);
        let books = self.open_audit(Transition::Migrate, [from, to]);
        self.move_mappings(&folio, from, to);
        if self.is_refused(MigrateStep::Copy) {
            self.move_mappings(&folio, to, from);
            self.folio_unfreeze(from);
            self.mm.assert_found(from);
            self.close_audit(books);
            return false;
        }
        self.mm.memory.move_in_caches(&folio, to);
        if self.is_refused(MigrateStep::Remap) {
            self.mm.memory.move_in_caches(&folio, from);
            self.move_mappings(&folio, to, from);
            self.folio_unfreeze(from);
            self.mm.assert_found(from);
            self.close_audit(books);
            return false;
        }
        let node = self.mm.memory.folios[to].node;
        debug_assert_eq!(
            node,
            self.mm.memory.zones.node_of(to),
            "{to:?} has a record that names another node"
        );
        self.mm.memory.folios[to] = folio;
        self.mm.memory.folios[to].node = node;
        mutant!(self, DirtyLostAtMigration if folio.has(FolioFlags::SWAPBACKED) => self.mm.memory.folios[to].clear(FolioFlags::DIRTY));
        if node != folio.node {
            self.mm.memory.folios[to].clear(FolioFlags::DEPARTED);
            self.move_gauges(to, &folio);
        }
        if self.keeps_user(folio.node, node) {
            self.mm.numa_balancing.copy_user(from, to);
        }
        self.tell(to, |_| PageEvent::Migrated { from: folio.node, to: node, why });
        self.mm.assert_found(to);
        self.mm.guest_forget(from);
        self.mm.memory.folios[from] = Folio::new(folio.node, folio.order);
        self.close_audit(books);
        self.out.push(Op::Copy { from, to, pages: pages as u32 });
        mutant!(self, WrittenDuringCopy if folio.refs > 0 => return self.mm.left_to_its_holder(from, to, folio.refs));
        self.out.push(Op::FreeFrame { pfn: from, pages: pages as u32 });
        mutant!(self, FrameFreedBeforeCopied => self.out.swap_last_two());
        self.free_folio(from);
        self.mm.count_node(folio.node, Stat::PgmigrateSuccess, pages);
        if folio.is_large_anon() {
            let queue = self.mm.split_queue_of(&self.mm.memory.folios[to]);
            self.mm.deferred_splits.moved(from, to, queue);
            if folio.order == HUGE_PAGE_ORDER {
                self.mm.count_node(folio.node, Stat::ThpMigrationSuccess, 1);
            }
        }
        true
    }

    /// Returns true if someone knows the folio by its frame: a device, a task in the middle of an access, a CPU's batch.
    pub(crate) fn is_held(&self, folio: &Folio) -> bool {
        let held = FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::PINNED | FolioFlags::KERNEL;
        mutant!(self, WrittenDuringCopy => return folio.flags().intersects(held));
        folio.refs > 0 || folio.flags().intersects(held)
    }

    /// Makes every page-table entry lead to the new frame, otherwise unchanged.
    fn move_mappings(&mut self, folio: &Folio, from: Pfn, to: Pfn) {
        if folio.mapped == 0 {
            return;
        }
        mutant!(self, OldFrameFreedWhileMapped => return);
        let (mut is_marked, mut moved) = (false, 0);
        for at in 0..self.mm.memory.rmap_len(folio) {
            let (mm_id, page) = self.mm.rmap_entry(folio, at);
            let word: Word = self.mm.memory.mm(mm_id).table.word_if_any(page);
            if !word.is_present() || word.pfn() != from {
                continue;
            }
            is_marked |= word.is_prot_none();
            moved += if word.is_huge() { HUGE_PAGE_PAGES as u16 } else { 1 };
            self.out.count.entries_migrated(1);
            let mm = self.mm.memory.mm_mut(mm_id);
            if word.is_huge() {
                self.mm.update_huge(mm_id, page, |word| *word = word.with_pfn(to));
                continue;
            }
            mm.table.update(page, |word| *word = word.with_pfn(to));
            mutant!(self, DirtyLostAtMigration if folio.has(FolioFlags::SWAPBACKED) => mm.table.update(page, Word::clear_dirty));
            if let Some(tlb) = &mut mm.tlb {
                tlb.drop_page(page);
            }
        }
        assert_eq!(moved, folio.mapped, "entries that lead to a folio's new frame, and those that map it");
        if is_marked {
            // A task that meets the mark asks when it was made.
            self.mm.numa_balancing.copy_access_time(from, to);
        }
    }
}

impl State {
    /// Keeps an isolated folio for longer than a call: it is neither dropped nor moved meanwhile.
    pub(crate) fn migrate_keep(&mut self, pfn: Pfn) {
        self.assert_isolated(pfn);
        self.memory.folios[pfn].refs += 1;
    }

    /// Takes [`State::migrate_keep`] back.
    pub(crate) fn migrate_kept(&mut self, pfn: Pfn) {
        assert!(self.memory.folios[pfn].refs > 0, "{pfn:?} is let go of, and nobody keeps it");
        self.memory.folios[pfn].refs -= 1;
    }

    fn count_isolated(&mut self, pfn: Pfn, sign: i64) {
        let folio = &self.memory.folios[pfn];
        debug_assert!(
            !folio.has(FolioFlags::LRU),
            "{pfn:?} counts as isolated, or no more, and is on a list"
        );
        let (node, kind, pages) = (folio.node, folio.lru_type(), sign * folio.pages() as i64);
        let before = self.isolated_on(node);
        self.count_node(node, ISOLATED.of(kind), pages);
        debug_assert_eq!(
            self.isolated_on(node)[kind as usize],
            before[kind as usize] + pages,
            "isolated pages of {kind:?} on {node:?}"
        );
    }

    /// The holder of the old frame frees it.
    #[cfg(test)]
    fn left_to_its_holder(&mut self, from: Pfn, to: Pfn, refs: u16) -> bool {
        (self.memory.folios[from].refs, self.memory.folios[to].refs) = (refs, 0);
        true
    }

    /// A folio is about to move: it is isolated, and its new frame is unused.
    fn assert_may_move(&self, from: Pfn, to: Pfn) {
        assert_ne!(from, to, "a folio moves to the frame that it is in");
        self.assert_isolated(from);
        let (old, new) = (self.memory.folios[from], self.memory.folios[to]);
        let held = FolioFlags::LOCKED | FolioFlags::WRITEBACK | FolioFlags::PINNED | FolioFlags::KERNEL;
        assert!(!old.flags().intersects(held), "{from:?} moves while its frame is still referenced: {old:?}");
        assert_eq!(old.order, new.order, "a folio moves to a frame of another size");
        assert_eq!(new.mapped, 0, "{from:?} moves to {to:?}, which is mapped");
        let in_use = FolioFlags::LRU | FolioFlags::INDEXED | FolioFlags::SWAPCACHE | FolioFlags::CHARGED;
        assert!(!new.flags().intersects(in_use), "{from:?} moves to {to:?}, which somebody has: {new:?}");
        debug_assert_eq!(self.memory.folios.free_order(to), None, "{from:?} moves to {to:?}, which is free");
    }

    /// A folio has moved: what it holds leads to its new frame.
    #[inline]
    fn assert_found(&self, pfn: Pfn) {
        if cfg!(debug_assertions) {
            let folio = &self.memory.folios[pfn];
            if folio.has(FolioFlags::INDEXED) {
                let word = self.memory.file(FileId(folio.owner)).index.word(folio.index.into());
                assert!(
                    word.is_present() && word.pfn() == pfn,
                    "a file leads to the frame that its page has left"
                );
            }
            if folio.has(FolioFlags::SWAPCACHE) {
                let entry = self.memory.swap_entry(pfn);
                assert_eq!(
                    self.memory.swap.cached(entry),
                    Some(pfn),
                    "a slot leads to the frame that its page has left"
                );
            }
        }
    }

    /// A folio could not be moved.
    pub(crate) fn count_unmoved(&mut self, folio: &Folio) {
        self.count_node(folio.node, Stat::PgmigrateFail, folio.pages() as i64);
        if folio.is_large_anon() && folio.order == HUGE_PAGE_ORDER {
            self.count_node(folio.node, Stat::ThpMigrationFail, 1);
        }
    }
}
