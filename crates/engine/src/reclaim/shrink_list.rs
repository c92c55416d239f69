//! The verdict on each isolated folio: free it, start writing it, keep it, or activate it.
//!
//! The tests go from cheap to expensive, and each has a reason for its place. `judge` makes them in the order of [reclaim 2.8, 2.9, 5.1,
//! 5.2; reclaim-6.12 2.9, 5]. Whatever the verdict, a folio leaves here either freed or in the caller's batch. The caller puts the batch
//! back on the lists, each folio by its state.
//!
//! `pageout.rs` handles dirty pages of files, and pages under writeback; `large.rs` large folios on their way to swap.

use crate::audit::{Paid, Transition};
use crate::config::SwapKind;
use crate::core::Core;
use crate::lru::FolioReferences;
use crate::lru::lruvec::LruvecId;
use crate::machine::op::Op;
use crate::memcg::SwapEvent;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::table::{SwapEntry, Word};
use crate::reclaim::next_batch::NextBatch;
use crate::reclaim::shrink::ReclaimStat;
use crate::reclaim::{Lumpy, ScanControl, Why};
use crate::stat::Stat;
use crate::state::State;
use crate::story::{Because, PageEvent, Tracepoint, Verdict};
use crate::swap::Owner;
use crate::units::{FileId, LruType, MemcgId, PAGE_SIZE, Pfn};

/// What became of an attempt to write a folio out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pageout {
    Keep,
    Activate,
    /// The write is in flight; the folio can be freed when it is done.
    Started,
    /// The write is done already.
    Clean,
    /// A synchronous device has no memory for it.
    NoRoom,
    /// zswap has not taken it, and its group may use nothing else.
    MayNotWrite,
    /// Its device fails all writes, and is tried seldom.
    Fails,
}

impl Core {
    /// Judges a batch and frees what it can, on behalf of `sc.by.target`. Leaves the others in `folios`, in order.
    pub(super) fn shrink_folio_list(
        &mut self,
        lruvec: LruvecId,
        folios: &mut Vec<Pfn>,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) {
        let reclaimed_before = stat.reclaimed;
        let before = self.mm.pages_in_hand(folios) + stat.reclaimed;
        if self.mm.can_demote_from(lruvec) {
            self.demote_or_shrink(lruvec, folios, sc, stat);
        } else {
            let kind = folios.first().map(|&pfn| self.mm.memory.folios[pfn].lru_type());
            let mut next = NextBatch::new(kind.and_then(|kind| self.mm.coldest(lruvec, kind)));
            folios.retain(|&pfn| {
                next.step(self);
                !self.shrink_folio(lruvec, pfn, sc, stat)
            });
        }
        if !sc.hands.split.is_empty() {
            self.shrink_split(lruvec, folios, sc, stat);
        }
        // Uncharged all at once, when the batch is over.
        let freed = stat.reclaimed - reclaimed_before;
        if freed > 0 {
            self.note_updates(self.mm.lruvecs[lruvec].memcg, freed);
        }
        let after = self.mm.pages_in_hand(folios) + stat.reclaimed;
        debug_assert_eq!(after, before, "pages of a batch that are left, and those that are free now");
    }

    /// Judges the single pages that huge ones of the batch have become.
    #[cold]
    fn shrink_split(
        &mut self,
        lruvec: LruvecId,
        folios: &mut Vec<Pfn>,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) {
        let mut single = std::mem::take(&mut sc.hands.split);
        single.retain(|&pfn| !self.shrink_folio(lruvec, pfn, sc, stat));
        folios.append(&mut single);
    }

    /// Judges a batch whose pages may go to slower memory.
    fn demote_or_shrink(
        &mut self,
        lruvec: LruvecId,
        folios: &mut Vec<Pfn>,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) {
        let mut to_demote = Vec::new();
        folios.retain(|&pfn| match self.judge(pfn, true, sc, stat) {
            Verdict::Demote => {
                to_demote.push(pfn);
                false
            }
            verdict => !self.carry_out(lruvec, pfn, verdict, stat),
        });
        if to_demote.is_empty() {
            return;
        }
        self.demote_folios(lruvec, &mut to_demote, sc, stat);
        // Folios for which slower memory had no free page leave memory like any other, so that pressure makes progress. In a user's
        // request they stay: it must not swap more than it needs.
        if sc.by.why != Why::Requested {
            to_demote.retain(|&pfn| !self.shrink_folio(lruvec, pfn, sc, stat));
        }
        folios.append(&mut to_demote);
    }

    /// Judges a folio, with demotion off; true if it is free now.
    #[inline]
    pub(super) fn shrink_folio(
        &mut self,
        lruvec: LruvecId,
        pfn: Pfn,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
    ) -> bool {
        let verdict = self.judge(pfn, false, sc, stat);
        self.carry_out(lruvec, pfn, verdict, stat)
    }

    /// Does what was judged of a folio; true if it is free now.
    #[inline(always)]
    fn carry_out(&mut self, lruvec: LruvecId, pfn: Pfn, verdict: Verdict, stat: &mut ReclaimStat) -> bool {
        match verdict {
            Verdict::Free => {
                let folio = &self.mm.memory.folios[pfn];
                debug_assert!(
                    !folio.has(FolioFlags::WRITEBACK),
                    "{pfn:?} is reclaimed while it is being written"
                );
                debug_assert!(
                    !folio.has(FolioFlags::MLOCKED),
                    "{pfn:?} is reclaimed while it is locked into memory"
                );
                let pages = self.mm.memory.folios[pfn].pages();
                self.free_folio(pfn);
                stat.reclaimed += pages;
                // A demoted page is not removed, remembered and freed: its move has a cost of its own.
                self.out.count.reclaimed(pages);
                return true;
            }
            Verdict::Keep | Verdict::Demote => {}
            Verdict::Activate => self.activate_rejected(lruvec, pfn),
        }
        false
    }

    #[doc(alias = "shrink_folio_list")]
    #[inline]
    fn judge(&mut self, pfn: Pfn, demotes: bool, sc: &mut ScanControl, stat: &mut ReclaimStat) -> Verdict {
        let folio = self.mm.memory.folios[pfn];
        self.mm.assert_isolated(pfn);
        // Someone is reading into it or holds it locked: not worth waiting for.
        if folio.has(FolioFlags::LOCKED) {
            return self.verdict(pfn, Verdict::Keep, Because::BeingRead);
        }
        if folio.has(FolioFlags::MLOCKED) {
            return self.verdict(pfn, Verdict::Activate, Because::Locked);
        }
        if folio.mapped > 0 && self.mm.was_looked_at(&folio) {
            return self.verdict(pfn, Verdict::Keep, Because::NeighbourLooked);
        }
        self.mm.tally_folio(&folio, stat);
        if folio.has(FolioFlags::WRITEBACK) {
            return self.judge_writeback(pfn, sc, stat);
        }
        let references = match sc.hands.lumpy {
            _ if sc.means.ignores_use => FolioReferences::Reclaim,
            Lumpy::Off => self.folio_check_references(pfn, sc),
            // Without this page its neighbours are worth nothing, so its own use doesn't count.
            Lumpy::Async | Lumpy::Sync => FolioReferences::Reclaim,
        };
        match references {
            FolioReferences::Activate(because) => return self.verdict(pfn, Verdict::Activate, because),
            FolioReferences::Keep(because) => return self.verdict(pfn, Verdict::Keep, because),
            FolioReferences::Reclaim | FolioReferences::ReclaimClean => {}
        }
        if demotes && self.mm.is_to_demote(pfn) {
            return self.verdict(pfn, Verdict::Demote, Because::SlowerMemory);
        }
        if folio.has(FolioFlags::ANON | FolioFlags::SWAPBACKED) && !folio.has(FolioFlags::SWAPCACHE) {
            if folio.mapped == 0 && folio.refs == 0 {
                return self.judge_left_over(pfn);
            }
            if !sc.by.may_do_io {
                return self.verdict(pfn, Verdict::Keep, Because::MayDoNoIo);
            }
            if !sc.may_write_now() {
                // A slot that nothing may be written to is of no use.
                return self.verdict(pfn, Verdict::Keep, Because::MayNotWrite);
            }
            if folio.order == 0 {
                if !self.add_to_swap(pfn) {
                    return self.verdict(pfn, Verdict::Activate, Because::NoSwapSlot);
                }
            } else if let Some(verdict) = self.prepare_large_for_swap(pfn, sc) {
                return verdict;
            }
        }
        let is_forgettable = folio.has(FolioFlags::ANON) && !folio.has(FolioFlags::SWAPBACKED);
        if is_forgettable && !self.may_forget(pfn) {
            self.mm.memory.folios[pfn].set(FolioFlags::SWAPBACKED);
            return self.verdict(pfn, Verdict::Activate, Because::WrittenSince);
        }
        self.unmap_all(pfn);
        let folio = self.mm.memory.folios[pfn];
        debug_assert!(
            !folio.has(FolioFlags::WRITEBACK),
            "{pfn:?} is being written, and is judged as if it were not"
        );
        if folio.mapped > 0 || folio.has(FolioFlags::PINNED) {
            if is_forgettable {
                self.folio_unfreeze(pfn);
            }
            let because = if folio.mapped > 0 { Because::StillMapped } else { Because::Pinned };
            return self.verdict(pfn, Verdict::Activate, because);
        }
        if folio.has(FolioFlags::DIRTY) && folio.lru_type() == LruType::Anon {
            // A folio in the swap cache needs only the swap device; moving a tmpfs folio there is the file system's work.
            let may_enter = sc.by.may_enter_fs || sc.by.may_do_io && folio.has(FolioFlags::SWAPCACHE);
            if references == FolioReferences::ReclaimClean {
                return self.verdict(pfn, Verdict::Keep, Because::NotWorthAWrite);
            }
            if !may_enter {
                return self.verdict(pfn, Verdict::Keep, Because::MayNotEnterFileSystem);
            }
            if !self.mm.may_write_anon(folio.pages(), sc, stat) {
                return self.verdict(pfn, Verdict::Keep, Because::MayNotWrite);
            }
            if folio.order > 0 && folio.has(FolioFlags::INDEXED) && !self.prepare_tmpfs_for_swap(pfn, sc) {
                return self.verdict(pfn, Verdict::Keep, Because::Held { references: folio.refs });
            }
            let folio = self.mm.memory.folios[pfn];
            // Anyone else's reference may be used to change the page under the write.
            let written = if self.folio_freeze(pfn) { self.pageout(pfn, sc) } else { Pageout::Keep };
            match written {
                Pageout::Keep => {
                    return self.verdict(pfn, Verdict::Keep, Because::Held { references: folio.refs });
                }
                Pageout::NoRoom => return self.verdict(pfn, Verdict::Keep, Because::NoRoomToCompress),
                Pageout::Fails => return self.verdict(pfn, Verdict::Keep, Because::SwapFails),
                Pageout::MayNotWrite => {
                    return self.verdict(pfn, Verdict::Activate, Because::NoZswapWriteback);
                }
                Pageout::Activate => return self.verdict(pfn, Verdict::Activate, Because::NoSwapSlot),
                Pageout::Started => {
                    stat.written += folio.pages();
                    self.count_pageout(folio.pages(), sc);
                    sc.wait_if_sync(pfn);
                    return self.verdict(pfn, Verdict::Keep, Because::WriteBegun);
                }
                Pageout::Clean => {
                    stat.written += folio.pages();
                    self.count_pageout(folio.pages(), sc);
                }
            }
        }
        if folio.has(FolioFlags::DIRTY) && folio.has(FolioFlags::INDEXED) && folio.lru_type() == LruType::File
        {
            mutant!(self, DirtyFilePageFreed => {
                self.clear_dirty(pfn);
                return if self.remove_mapping(pfn, sc) { Verdict::Free } else { Verdict::Keep };
            });
            return self.judge_dirty_file(pfn, references, sc, stat);
        }
        if folio.has(FolioFlags::ANON) && !folio.has(FolioFlags::SWAPBACKED) {
            self.count(self.mm.lruvec_of(pfn), Stat::Pglazyfreed, folio.pages() as i64);
            return self.verdict(pfn, Verdict::Free, Because::Forgettable);
        }
        if self.remove_mapping(pfn, sc) { Verdict::Free } else { Verdict::Keep }
    }

    pub(crate) fn verdict(&mut self, pfn: Pfn, verdict: Verdict, because: Because) -> Verdict {
        if self.out.story.is_some() {
            self.tell(pfn, |_| PageEvent::Judged { verdict, because });
            self.note_verdict(pfn, verdict, because);
        }
        verdict
    }

    /// The verdict of a folio's LRU on its uses since reclaim last scanned it.
    fn folio_check_references(&mut self, pfn: Pfn, sc: &ScanControl) -> FolioReferences {
        let referenced = self.folio_referenced(pfn, sc.by.has_table_walk_buffer() || sc.hands.has_walked);
        if referenced.locked {
            self.mm.memory.remove_use(pfn, UseBits::REFERENCED);
            return FolioReferences::Activate(Because::Locked);
        }
        self.lru_referenced(pfn, referenced)
    }

    /// A folio that can't be reclaimed although it should goes to the active list, so that the next batch doesn't meet it
    /// again. If swap is nearly full, it gives its slot up: the slot is better used by a page outside.
    fn activate_rejected(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let folio = self.mm.memory.folios[pfn];
        let locked = folio.has(FolioFlags::MLOCKED);
        if folio.has(FolioFlags::SWAPCACHE) && (locked || self.mm.is_swap_full(folio.memcg)) {
            self.free_swap(pfn);
        }
        if !locked {
            self.mm.memory.add_use(pfn, UseBits::ACTIVE);
            self.count(lruvec, Stat::Pgactivate, folio.pages() as i64);
        }
    }

    /// Gives an anonymous or tmpfs folio a swap slot; false where there is none.
    #[inline(never)]
    pub(super) fn add_to_swap(&mut self, pfn: Pfn) -> bool {
        self.mm.assert_isolated(pfn);
        assert_eq!(self.mm.memory.folios[pfn].order, 0, "{pfn:?} is no single page, and gets a slot");
        assert!(
            !self.mm.memory.folios[pfn].has(FolioFlags::SWAPCACHE),
            "{pfn:?} has a slot, and gets another"
        );
        let memcg = self.mm.memory.folios[pfn].memcg;
        let charges = self.open_charges(Transition::TakeSlot, memcg);
        let entry = self.take_slot(memcg);
        self.close_charges(charges, Paid::slots(entry.is_some().into()));
        let Some(entry) = entry else { return false };
        self.note_updates(memcg, 1);
        // The slot holds nothing yet.
        self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
        self.swap_cache_insert(pfn, entry);
        let folio = &mut self.mm.memory.folios[pfn];
        folio.set(FolioFlags::SWAPBACKED);
        let owner = Owner { is_anon: folio.has(FolioFlags::ANON), owner: folio.owner, index: folio.index };
        self.mm.memory.swap.set_owner(entry, owner);
        assert_eq!(self.mm.memory.swap.memcg(entry), memcg, "a slot is another group's than the page in it");
        self.mm.assert_slots_charged();
        true
    }

    /// Takes a slot that a group pays for, if it may have one and one is free.
    fn take_slot(&mut self, memcg: MemcgId) -> Option<SwapEntry> {
        if !self.mm.memcgs.charge_swap(memcg) {
            return None;
        }
        let entry = self.mm.memory.swap.take(memcg, self.by.cpu);
        if entry.is_none() {
            self.mm.memcgs.swap_event(memcg, SwapEvent::Fail);
            self.mm.memcgs.uncharge_swap(memcg);
        }
        entry
    }

    /// Writes a frozen folio to its swap slot, or begins to, and unfreezes it.
    #[inline(never)]
    fn pageout(&mut self, pfn: Pfn, sc: &mut ScanControl) -> Pageout {
        let written = self.write_to_swap(pfn, sc);
        self.folio_unfreeze(pfn);
        written
    }

    fn write_to_swap(&mut self, pfn: Pfn, sc: &mut ScanControl) -> Pageout {
        if self.mm.memory.folios[pfn].has(FolioFlags::INDEXED) && !self.tmpfs_to_swap_cache(pfn) {
            return Pageout::Activate;
        }
        if self.mm.memory.folios[pfn].order > 0 {
            return self.write_large_to_swap(pfn, sc);
        }
        let entry = self.mm.memory.swap_entry(pfn);
        assert_eq!(
            self.mm.memory.swap.cached(entry),
            Some(pfn),
            "slot {} leads to another folio",
            entry.slot
        );
        let folio = &mut self.mm.memory.folios[pfn];
        assert_eq!(folio.mapped, 0, "{pfn:?} is written to swap while it is mapped");
        assert!(folio.has(FolioFlags::DIRTY), "{pfn:?} is written to swap, and is clean");
        folio.clear(FolioFlags::DIRTY);
        self.mm.memory.swap.note_written(entry, false);
        let folio = &self.mm.memory.folios[pfn];
        let (node, memcg, pages) = (folio.node, folio.memcg, folio.pages() as i64);
        self.mm.count_node(node, Stat::NrVmscanWrite, pages);
        self.trace(node, |_| Tracepoint::WriteFolio {
            pfn,
            kind: LruType::Anon,
            is_sync: sc.hands.lumpy == Lumpy::Sync,
        });
        if self.swap_zeroes_out(pfn, entry) {
            // What the slot held of the page before is of no use any more.
            self.zswap_invalidate(entry);
            self.zram_free(entry);
            return Pageout::Clean;
        }
        if self.zswap_store(pfn, entry) {
            self.zram_free(entry);
            return Pageout::Clean;
        }
        if !self.mm.may_write_back(memcg) {
            self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
            return Pageout::MayNotWrite;
        }
        if !self.may_write_swap_now(entry) {
            self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
            return Pageout::Fails;
        }
        self.mm.count_node(node, Stat::Pswpout, pages);
        self.mm.count_node(node, Stat::Pgpgout, pages * (PAGE_SIZE / 1024) as i64);
        if self.mm.memory.swap.kind(entry.swap) == SwapKind::Synchronous {
            self.mm.count_node(node, Stat::NrWritten, pages);
            if !self.zram_store(pfn, entry) {
                mutant!(self, FreedWithoutRoom => return Pageout::Clean);
                // The only copy is in memory still.
                self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
                self.io.write_failed(pages as u64);
                return Pageout::NoRoom;
            }
            self.out.push(Op::WriteSwapNow { swap: entry.swap, slot: entry.slot, pfn });
            return Pageout::Clean;
        }
        mutant!(self, FrameReusedBeforeWritten => {
            self.start_write(pfn, entry, &mut sc.hands.plug);
            return Pageout::Clean;
        });
        self.begin_swap_write(pfn, entry, sc);
        Pageout::Started
    }

    /// Begins a write to a device that reports its end.
    pub(super) fn begin_swap_write(&mut self, pfn: Pfn, entry: SwapEntry, sc: &mut ScanControl) {
        let books = self.open_audit(Transition::BeginWrite, [pfn]);
        let folio = &mut self.mm.memory.folios[pfn];
        folio.set(FolioFlags::WRITEBACK | FolioFlags::RECLAIM);
        let pages = folio.pages() as i64;
        self.count(self.mm.lruvec_of(pfn), Stat::NrWriteback, pages);
        self.close_audit(books);
        self.start_write(pfn, entry, &mut sc.hands.plug);
    }

    /// Moves a tmpfs folio from its file's index, where its swap entry takes its place, to the swap cache.
    fn tmpfs_to_swap_cache(&mut self, pfn: Pfn) -> bool {
        if !self.add_to_swap(pfn) {
            return false;
        }
        let entry = self.mm.memory.swap_entry(pfn);
        self.page_cache_remove(pfn, Word::swapped(entry));
        assert!(
            self.mm.memory.is_slot_referenced(pfn),
            "a page of tmpfs leaves its file, which leads nowhere"
        );
        true
    }

    /// Takes a clean, unmapped folio out of the place where it can be found, leaving a shadow. False if someone holds a
    /// reference: then the page may be in use by someone who found it earlier.
    #[doc(alias = "__remove_mapping")]
    #[inline]
    fn remove_mapping(&mut self, pfn: Pfn, sc: &ScanControl) -> bool {
        let folio = self.mm.memory.folios[pfn];
        if !self.folio_freeze(pfn) {
            self.verdict(pfn, Verdict::Keep, Because::Held { references: folio.refs });
            return false;
        }
        if folio.has(FolioFlags::DIRTY) {
            self.folio_unfreeze(pfn);
            self.verdict(pfn, Verdict::Keep, Because::Dirty);
            return false;
        }
        debug_assert_eq!(folio.mapped, 0, "{pfn:?} is evicted while it is mapped");
        debug_assert!(!folio.has(FolioFlags::LOCKED), "{pfn:?} is evicted while it is being read");
        self.leave_shadow(pfn, sc.by.target);
        true
    }

    /// Takes a frozen folio out of the place where it can be found. Its shadow is stamped on the clock of `target`'s memory.
    #[inline]
    pub(crate) fn leave_shadow(&mut self, pfn: Pfn, target: MemcgId) {
        let folio = self.mm.memory.folios[pfn];
        let shadow = self.mm.workingset_eviction(pfn, self.mm.lruvecs.id(target, folio.node));
        self.tell_evicted(pfn, target, shadow);
        if folio.has(FolioFlags::SWAPCACHE) {
            let entry = self.mm.memory.swap_entry(pfn);
            if !self.has_known_bug() {
                self.mm.assert_in_slot(pfn);
            }
            self.swap_cache_remove(pfn, Some(shadow));
            debug_assert!(
                self.mm.memory.swap.shadow(entry) == shadow.pack(),
                "{pfn:?} has left memory, and its shadow is not in slot {}",
                entry.slot
            );
            if folio.order > 0 {
                self.free_unreferenced_slots(pfn);
            }
        } else {
            self.mm.memory.file_mut(FileId(folio.owner)).counts.evicted += folio.pages();
            self.page_cache_remove(pfn, shadow.pack());
            debug_assert!(
                self.mm.memory.file(FileId(folio.owner)).index.word(folio.index.into()) == shadow.pack(),
                "{pfn:?} has left memory, and its shadow is not in its file"
            );
        }
    }

    /// The owner said that the folio's contents may be forgotten: whether it was not written since and is not in use. Then it is
    /// frozen. Asked before it is unmapped: after that, nothing leads to its contents any more.
    fn may_forget(&mut self, pfn: Pfn) -> bool {
        let may = !self.mm.memory.folios[pfn].has(FolioFlags::DIRTY) && self.folio_freeze(pfn);
        if may && self.mm.is_mapped_dirty(pfn) {
            self.folio_unfreeze(pfn);
            return false;
        }
        may
    }
}

impl State {
    /// Returns the pages of a batch, for assertions: 0 in builds without them.
    fn pages_in_hand(&self, folios: &[Pfn]) -> u64 {
        match cfg!(debug_assertions) {
            true => folios.iter().map(|&pfn| self.memory.folios[pfn].pages()).sum(),
            false => 0,
        }
    }
}
