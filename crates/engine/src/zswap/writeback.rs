//! zswap writeback: an entry of the pool is decompressed and written to the swap device behind it, step by step.
//!
//! ```text
//!   swap cache has a page of the slot ─► EEXIST: it is in use
//!   a page, charged beyond limits     ─► swap cache, shadow evaluated, this CPU's add batch
//!   decompress, free the entry        ─► a clean page under writeback, with RECLAIM
//!   I/O end                           ─► to the cold end of its list, if it is on one (`lru/batch.rs: lru_rotate`)
//! ```
//! So memory has to be taken to free some, and the page that was taken lies in the add batch first: on no list. If its write
//! ends before the batch is drained, nothing brings it to the cold end, and it enters its list at the hot one. Its shadow is
//! evaluated as if the page had been requested, so it may even become active. [tiering-zswap-6.12 1.6; reclaim 6.6, 6.7]
//!
//! *Failing devices:* with `writeback.failed_write=dirty`, one entry is tried every 50 ms after 16 failed writes (`io.rs`).
//!
//! *Where no source says more:* an entry stays where it is if the device behind it is a compressed one without space for
//! it. Its page would only be stored again, and reclaim and the worker would loop forever.

use super::store::compressed;
use super::{Entry, EntryId};
use crate::audit::Transition;
use crate::config::SwapKind;
use crate::core::Core;
use crate::lru::AddedFor;
use crate::machine::op::Op;
use crate::memory::folio::FolioFlags;
use crate::memory::table::Word;
use crate::page_alloc::request::{Gfp, Request};
use crate::stat::Stat;
use crate::story::PageEvent;
use crate::units::{MemcgId, PAGE_SIZE};
use pageout_rules::zswap::WritebackRotation;

/// What became of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Writeback {
    Begun,
    /// The page is in the swap cache: someone uses it.
    Exists,
    NoMemory,
}

impl Core {
    /// Begins to write an entry back.
    #[doc(alias = "zswap_writeback_entry")]
    pub(super) fn zswap_write_back(&mut self, id: EntryId) -> Writeback {
        let written = self.zswap_try_write_back(id);
        match written {
            Writeback::Begun => self.mm.zswap.stat.written_back_pages += 1,
            Writeback::Exists | Writeback::NoMemory => self.mm.zswap.stat.reject_reclaim_fail += 1,
        }
        written
    }

    fn zswap_try_write_back(&mut self, id: EntryId) -> Writeback {
        // Its slot may be free.
        mutant!(self, EntryInvalidatedLate => return Writeback::NoMemory);
        let Entry { slot, payer, node, is_anon, owner, index, .. } = *self.mm.zswap.entry(id);
        if self.mm.memory.swap.cached(slot).is_some() {
            return Writeback::Exists;
        }
        if !self.may_write_back_now() {
            return Writeback::NoMemory;
        }
        if !self.mm.zram_has_room(slot, self.mm.zswap.entry(id).length() as u16) {
            return Writeback::NoMemory;
        }
        assert!(
            self.mm.memory.swap.is_taken(slot),
            "slot {} is free, and its entry is written back",
            slot.slot
        );
        let memcg = self.mm.memcgs.online(self.mm.memory.swap.memcg_of(slot));
        let request = Request::movable(Gfp::MEMALLOC | Gfp::NOWARN, self.current_node());
        let Some(pfn) = self.alloc_pages_now(&request, memcg) else { return Writeback::NoMemory };
        self.charge_now(memcg);
        self.folio_charged(pfn);
        let shadow = self.mm.memory.swap.shadow(slot);
        let folio = &mut self.mm.memory.folios[pfn];
        folio.refs = 1;
        (folio.owner, folio.index) = (owner, index);
        folio.set(FolioFlags::SWAPBACKED | FolioFlags::LOCKED);
        folio.change(FolioFlags::ANON, is_anon);
        self.swap_cache_insert(pfn, slot);
        let left_behind = match self.mm.config.policy.machine.zswap.writeback_rotation {
            WritebackRotation::Baseline | WritebackRotation::RotateUnlisted => None,
            WritebackRotation::Dropbehind => Some(Word::EMPTY),
            WritebackRotation::KeepShadow => Some(shadow),
        };
        if left_behind.is_none_or(|left| left == Word::EMPTY) {
            self.workingset_refault(pfn, shadow, AddedFor::Other);
        }
        self.lru_add(pfn, AddedFor::Other);
        let from = compressed(&self.mm.zswap, id);
        self.out.push(Op::ZswapLoad { swap: slot.swap, slot: slot.slot, pfn, from });
        self.zswap_count(payer, node, Stat::Zswpwb);
        self.tell(pfn, |_| PageEvent::ZswapWrittenBack);
        self.zswap_free(id);
        self.mm.memory.folios[pfn].clear(FolioFlags::LOCKED);
        assert_eq!(
            self.mm.zswap.find(slot),
            None,
            "slot {} is written to its device, and has an entry",
            slot.slot
        );
        let mut written = Writeback::Begun;
        let of_page = self.mm.memory.folios[pfn].node;
        self.mm.count_node(of_page, Stat::Pswpout, 1);
        self.mm.count_node(of_page, Stat::Pgpgout, (PAGE_SIZE / 1024) as i64);
        if self.mm.memory.swap.kind(slot.swap) == SwapKind::Synchronous {
            self.mm.count_node(of_page, Stat::NrWritten, 1);
            if self.zram_store(pfn, slot) {
                self.out.push(Op::WriteSwapNow { swap: slot.swap, slot: slot.slot, pfn });
                self.lru_rotate(pfn);
            } else {
                // The only copy is in memory still.
                self.mm.memory.folios[pfn].set(FolioFlags::DIRTY);
                self.io.write_failed(1);
                written = Writeback::NoMemory;
            }
        } else {
            let books = self.open_audit(Transition::BeginWrite, [pfn]);
            self.mm.memory.folios[pfn].set(FolioFlags::WRITEBACK | FolioFlags::RECLAIM);
            self.count(self.mm.lruvec_of(pfn), Stat::NrWriteback, 1);
            self.close_audit(books);
            self.start_write_at_once(pfn, slot, left_behind);
            self.assert_writeback_counted();
        }
        assert!(self.mm.memory.folios[pfn].refs > 0, "{pfn:?} is let go of, and nobody holds it");
        self.mm.memory.folios[pfn].refs -= 1;
        written
    }

    /// Makes room in the pool for a group at its `memory.zswap.max`: offers its oldest entry of each node. Whether one was written.
    #[doc(alias = "shrink_memcg")]
    pub(super) fn zswap_shrink_memcg(&mut self, memcg: MemcgId) -> bool {
        self.zswap_shrink_by(memcg, 1).is_some_and(|written| written > 0)
    }

    /// Offers so many entries of each node of a group for writeback, oldest first; how many were written. `None`: it has none.
    pub(super) fn zswap_shrink_by(&mut self, memcg: MemcgId, entries: u64) -> Option<u64> {
        if !self.mm.may_write_back(memcg) {
            return None;
        }
        let (mut offered, mut written) = (0, 0);
        for node in self.mm.lruvecs.nodes() {
            let lruvec = self.mm.lruvecs.id(memcg, node);
            for _ in 0..entries.min(self.mm.lruvecs[lruvec].zswap.list.len()) {
                let Some(number) = self.mm.lruvecs[lruvec].zswap.list.head() else { break };
                offered += 1;
                written += u64::from(self.zswap_offer(EntryId(number)) == Some(Writeback::Begun));
            }
        }
        (offered > 0).then_some(written)
    }

    /// One step of a walk: an entry that was stored since the last one comes last once more, another is written back. `None`: it was
    /// spared.
    pub(super) fn zswap_offer(&mut self, id: EntryId) -> Option<Writeback> {
        assert!(self.mm.zswap.entry(id).handle.is_some(), "an entry is offered that is on no list");
        self.mm.zswap_list_rotate(id);
        if std::mem::take(&mut self.mm.zswap.entry_mut(id).referenced) {
            return None;
        }
        Some(self.zswap_write_back(id))
    }
}
