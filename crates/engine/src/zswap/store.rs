//! zswap stores and loads: a page that is swapped out goes into the pool or is rejected, and a swap-in takes it out again.
//!
//! ```text
//!   over memory.zswap.max ─► write one entry of the group back; none ─► rejected
//!   over the pool's limit ─► rejected until the pool has shrunk to the accept threshold, and the worker is asked
//!   does not shrink       ─► rejected, or stored as it is
//!   no page for the pool  ─► rejected
//!   else                  ─► stored: the page needs no write and is freed in the same pass
//! ```
//! All this happens within reclaim, so nothing here waits, and the charge for the bytes passes over limits: a store frees a page
//! and takes about half a one. So who reclaims at a limit gets less than it counts. [tiering-zswap-6.12 1.1 to 1.3]

use super::{Entry, EntryId, Zswap, ZswapPool};
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::machine::op::{Compressed, Op};
use crate::memory::folio::FolioFlags;
use crate::memory::table::SwapEntry;
use crate::mthp::MthpStat;
use crate::stat::Stat;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::{MemcgId, NodeId, PAGE_SIZE, Pfn};
use pageout_rules::folio::ZswapLarge;
use pageout_rules::zswap::{Incompressible, WorkerWalk, ZswapProtection};

/// Pages of a full pool, beyond those at which it takes pages again, that one step may free.
const SOON: u64 = 4;

impl Core {
    /// Stores a page that is about to be written to its slot. False if it has to be written.
    pub(crate) fn zswap_store(&mut self, pfn: Pfn, slot: SwapEntry) -> bool {
        let is_stored = self.mm.config.zswap_enabled && self.zswap_try_store(pfn, slot);
        if !is_stored {
            // The slot's old contents must not be written over the new ones.
            self.zswap_invalidate(slot);
            if self.mm.zswap_asks_worker() {
                self.zswap_wake_worker();
            }
        }
        is_stored
    }

    /// Stores a large folio that is about to be written to its slots, page by page. False if all of it has to be written: if one page is rejected, none
    /// stays. [folios 3.6]
    #[cold]
    pub(crate) fn zswap_store_large(&mut self, pfn: Pfn) -> bool {
        let folio = self.mm.memory.folios[pfn];
        let slots = folio.slots().map(|slot| SwapEntry { swap: folio.swap, slot });
        let is_offered = self.mm.config.zswap_enabled
            && self.mm.config.policy.machine.zswap_large == ZswapLarge::Pages
            && self.zswap_admits(pfn);
        let is_stored =
            is_offered && (0..).zip(slots.clone()).all(|(at, slot)| self.zswap_store_page(pfn, at, slot));
        if is_stored {
            self.count_mthp(folio.node, folio.order, MthpStat::Zswpout);
            return true;
        }
        // Old contents of a slot must not be written over new ones.
        slots.for_each(|slot| self.zswap_invalidate(slot));
        if self.mm.zswap_asks_worker() {
            self.zswap_wake_worker();
        }
        false
    }

    fn zswap_try_store(&mut self, pfn: Pfn, slot: SwapEntry) -> bool {
        self.zswap_admits(pfn) && self.zswap_store_page(pfn, 0, slot)
    }

    /// Returns true if the limits of the pool and of the folio's group let pages in.
    fn zswap_admits(&mut self, pfn: Pfn) -> bool {
        self.last_swapped = Some(self.mm.lruvec_of(pfn));
        let payer = self.mm.zswap_payer_of(pfn);
        (self.may_zswap(payer) || self.zswap_shrink_memcg(payer)) && self.mm.zswap_has_room()
    }

    /// Stores a page of a folio, unless it does not shrink or there is no memory for it.
    fn zswap_store_page(&mut self, pfn: Pfn, at: u32, slot: SwapEntry) -> bool {
        let (payer, frame) = (self.mm.zswap_payer_of(pfn), Pfn(pfn.0 + at));
        let rules = self.mm.config.policy.machine.zswap;
        let word = if rules.same_filled { self.repeated_word(frame, slot) } else { None };
        let length = if word.is_some() { 0 } else { self.compressed_bytes(frame, slot) };
        let is_incompressible = u64::from(length) == PAGE_SIZE;
        if is_incompressible
            && (rules.incompressible == Incompressible::Reject || !self.mm.may_write_back(payer))
        {
            self.mm.zswap.stat.reject_compress_poor += 1;
            return false;
        }
        assert!(u64::from(length) <= PAGE_SIZE, "a page comes to {length} bytes");
        assert!(self.mm.memory.swap.is_taken(slot), "an entry is made for slot {}, which is free", slot.slot);
        assert_eq!(
            self.mm.memory.swap.cached(slot),
            Some(pfn),
            "slot {} is another page's than is stored",
            slot.slot
        );
        let mut handle = None;
        if length > 0 {
            let wanted = self.mm.zswap.pool.wanted(length);
            let Some(pages) = self.zspool_pages(wanted) else {
                self.mm.zswap.stat.reject_alloc_fail += 1;
                return false;
            };
            handle = Some(self.mm.zswap.pool.store(length, &pages));
        }
        if let Some(replaced) = self.mm.zswap.find(slot) {
            self.mm.zswap.stat.duplicate_entry += 1;
            self.zswap_drop(replaced);
        }
        let before = self.mm.entries_counted(payer, self.mm.memory.folios[pfn].node);
        self.mm.zswap.stat.same_filled_pages += u64::from(length == 0);
        self.mm.zswap.stat.stored_incompressible_pages += u64::from(is_incompressible);
        let folio = &self.mm.memory.folios[pfn];
        let (node, is_anon) = (folio.node, folio.has(FolioFlags::ANON));
        let entry = Entry {
            slot,
            handle,
            word: word.unwrap_or(0),
            payer,
            node,
            referenced: rules.protection == ZswapProtection::SecondChance,
            is_anon,
            owner: folio.owner,
            index: folio.index + at,
            links: (0, 0),
        };
        let [_, slots] = self.mm.memory.swap.used_of(slot.swap);
        let id = self.mm.zswap.insert(entry, slots);
        assert_eq!(
            self.mm.zswap.find(slot),
            Some(id),
            "slot {} does not lead to the entry that was made",
            slot.slot
        );
        self.mm.zswap.assert_counted();
        assert!(!self.mm.memory.swap.holds_zeroes(slot), "slot {} holds zeroes and gets an entry", slot.slot);
        let to = compressed(&self.mm.zswap, id);
        self.out.push(Op::ZswapStore { swap: slot.swap, slot: slot.slot, pfn: frame, to });
        self.tell(pfn, |_| PageEvent::ZswapStored { bytes: length });
        self.zswap_charge(payer, node, length.into(), 1);
        self.zswap_count(payer, node, Stat::Zswpout);
        if handle.is_some() {
            self.mm.zswap_list_add(id);
        }
        self.mm.assert_entry_counted(before, &entry, 1);
        if rules.proactive_shrink && self.mm.zswap.pool.pages() > self.mm.zswap_pages(1) {
            self.zswap_wake_worker();
        }
        true
    }

    /// Fills a page from the entry of its slot, if there is one. Then the entry is gone: the only copy is the page, which is dirty.
    pub(crate) fn zswap_load(&mut self, pfn: Pfn, slot: SwapEntry) -> bool {
        let Some(id) = self.mm.zswap.find(slot) else { return false };
        let &Entry { payer, node, slot: of_entry, .. } = self.mm.zswap.entry(id);
        assert_eq!(of_entry, slot, "a page is filled from the entry of another slot");
        assert_eq!(self.mm.memory.folios[pfn].mapped, 0, "{pfn:?} is filled while it is mapped");
        let from = compressed(&self.mm.zswap, id);
        self.out.push(Op::ZswapLoad { swap: slot.swap, slot: slot.slot, pfn, from });
        self.tell(pfn, |_| PageEvent::ZswapLoaded);
        self.zswap_count(payer, node, Stat::Zswpin);
        self.zswap_free(id);
        assert_eq!(
            self.mm.zswap.find(slot),
            None,
            "slot {} has an entry, and its page is in memory",
            slot.slot
        );
        true
    }

    /// The contents of a slot are of no use any more.
    pub(crate) fn zswap_invalidate(&mut self, slot: SwapEntry) {
        let Some(id) = self.mm.zswap.find(slot) else { return };
        mutant!(self, EntryInvalidatedLate => return);
        self.zswap_free(id);
    }

    pub(super) fn zswap_free(&mut self, id: EntryId) {
        self.zswap_drop(id);
        self.mm.zswap.assert_counted();
    }

    /// Frees an entry, whose slot may get another in the same breath.
    fn zswap_drop(&mut self, id: EntryId) {
        let entry = *self.mm.zswap.entry(id);
        let before = self.mm.entries_counted(entry.payer, entry.node);
        if let Some(handle) = entry.handle {
            self.mm.zswap_list_remove(id);
            if let Some((pages, count)) = self.mm.zswap.pool.free(handle) {
                pages[..count].iter().for_each(|&pfn| self.zspage_free(pfn));
            }
        }
        self.mm.assert_zspages_counted();
        self.mm.zswap.remove(id);
        let (is_same, is_whole) = (entry.handle.is_none(), entry.length() == PAGE_SIZE);
        assert!(
            !is_whole || self.mm.zswap.stat.stored_incompressible_pages > 0,
            "an entry of a page is not counted"
        );
        self.mm.zswap.stat.same_filled_pages -= u64::from(is_same);
        self.mm.zswap.stat.stored_incompressible_pages -= u64::from(is_whole);
        self.zswap_uncharge(entry.payer, entry.node, entry.length());
        self.mm.assert_entry_counted(before, &entry, -1);
        self.out.push(Op::ZswapFree { swap: entry.slot.swap, slot: entry.slot.slot });
    }

    /// Counts an event of an entry: of the machine, and of who pays for it.
    pub(super) fn zswap_count(&mut self, payer: MemcgId, node: NodeId, stat: Stat) {
        self.mm.count_node(node, stat, 1);
        if payer != MemcgId::ROOT {
            let lruvec = self.mm.lruvecs.id(self.mm.memcgs.online(payer), node);
            self.count_memcg(lruvec, stat, 1);
        }
    }

    fn zswap_charge(&mut self, payer: MemcgId, node: NodeId, bytes: u64, pages: i64) {
        if payer != MemcgId::ROOT {
            self.objcg_charge_now(payer, bytes);
            self.zswap_gauge(payer, node, bytes as i64, pages);
        }
    }

    fn zswap_uncharge(&mut self, payer: MemcgId, node: NodeId, bytes: u64) {
        if payer != MemcgId::ROOT {
            let payer = self.mm.memcgs.online(payer);
            self.zswap_gauge(payer, node, -(bytes as i64), -1);
            self.objcg_uncharge_bytes(payer, bytes);
        }
    }

    fn zswap_gauge(&mut self, payer: MemcgId, node: NodeId, bytes: i64, pages: i64) {
        let lruvec = self.mm.lruvecs.id(payer, node);
        self.count_memcg_bytes(lruvec, Stat::Zswap, bytes);
        self.count_memcg(lruvec, Stat::Zswapped, pages);
        if cfg!(debug_assertions) {
            let local = &self.mm.lruvecs[lruvec].stat_local;
            let (bytes, stored) = (local[Stat::Zswap as usize], local[Stat::Zswapped as usize]);
            assert!(
                stored <= self.mm.zswap.stored() as i64,
                "a group has {stored} compressed pages, of {}",
                self.mm.zswap.stored()
            );
            assert!(
                bytes <= stored * PAGE_SIZE as i64,
                "{stored} compressed pages of a group come to {bytes} bytes"
            );
        }
    }

    /// Returns true if a group and those above it may have more in the pool, by numbers that are brought up to date for it.
    fn may_zswap(&mut self, payer: MemcgId) -> bool {
        let ancestors: Vec<MemcgId> = self.mm.memcgs.ancestors(payer).collect();
        ancestors.into_iter().all(|memcg| match self.mm.memcgs[memcg].zswap_max {
            crate::memcg::UNLIMITED => true,
            0 => false,
            max => {
                self.flush_memcg_stats(memcg);
                (self.mm.memcg_stat(memcg, Stat::Zswap).max(0) as u64) / PAGE_SIZE < max
            }
        })
    }
}

/// What is kept of an entry's page, and where.
pub(super) fn compressed(zswap: &Zswap, id: EntryId) -> Compressed {
    let entry = zswap.entry(id);
    entry.handle.map_or(Compressed::Word(entry.word), |handle| Compressed::At(zswap.pool.place(handle)))
}

/// What counts entries: those stored, those of one word, those of a page; of who pays, on their node: bytes, entries, those on its list.
type EntryCounts = [i64; 6];

impl State {
    /// What counts the entries of who pays for them; for assertions.
    #[inline(always)]
    fn entries_counted(&self, payer: MemcgId, node: NodeId) -> EntryCounts {
        if !cfg!(debug_assertions) {
            return EntryCounts::default();
        }
        let stat = &self.zswap.stat;
        let of = &self.lruvecs[self.lruvecs.id(self.memcgs.online(payer), node)];
        [
            self.zswap.stored() as i64,
            stat.same_filled_pages as i64,
            stat.stored_incompressible_pages as i64,
            of.stat_local[Stat::Zswap as usize],
            of.stat_local[Stat::Zswapped as usize],
            of.zswap.list.len() as i64,
        ]
    }

    /// An entry has come, or gone: each count has moved by what it adds.
    #[inline(always)]
    #[track_caller]
    fn assert_entry_counted(&self, before: EntryCounts, entry: &Entry, sign: i64) {
        if cfg!(debug_assertions) {
            let (is_same, is_paid) = (entry.handle.is_none(), entry.payer != MemcgId::ROOT);
            let paid = |count: i64| if is_paid { count } else { 0 };
            let is_whole = entry.length() == PAGE_SIZE;
            let adds =
                [1, is_same.into(), is_whole.into(), paid(entry.length() as i64), paid(1), (!is_same).into()];
            let mut expected = before;
            expected.iter_mut().zip(adds).for_each(|(count, adds)| *count += sign * adds);
            let after = self.entries_counted(entry.payer, entry.node);
            assert_eq!(after, expected, "counts of entries, and what {entry:?} adds to them");
        }
    }

    /// The group that is charged for a folio's pages in zswap. Pages of a removed group are still swapped out.
    fn zswap_payer_of(&self, pfn: Pfn) -> MemcgId {
        self.zswap_payer(self.memcgs.online(self.memory.folios[pfn].memcg))
    }

    /// A page had to be read from a device although zswap could have kept it: the shrinker has gone too far.
    pub(crate) fn zswap_missed(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        self.lruvecs[lruvec].zswap.disk_swapins += 1;
    }

    /// A page was swapped in, from wherever: it might be the next to be wanted again. (6.8)
    pub(crate) fn zswap_swapped_in(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        self.lruvecs[lruvec].zswap.protected += 1;
    }

    /// The lists that an entry is on: its payer's, or of who stands for one that was removed.
    pub(super) fn zswap_lruvec(&self, id: EntryId) -> LruvecId {
        let &Entry { payer, node, .. } = self.zswap.entry(id);
        self.lruvecs.id(self.memcgs.online(payer), node)
    }

    pub(super) fn zswap_list_add(&mut self, id: EntryId) {
        assert!(self.zswap.entry(id).handle.is_some(), "an entry that takes nothing is put on a list");
        let lruvec = self.zswap_lruvec(id);
        let lru = &mut self.lruvecs[lruvec].zswap;
        lru.list.push_tail(&mut self.zswap.entries, id.0);
        if self.config.policy.machine.zswap.protection == ZswapProtection::Size {
            lru.protected += 1;
            if lru.protected > lru.list.len() / 4 {
                lru.protected /= 2;
            }
        }
    }

    pub(super) fn zswap_list_remove(&mut self, id: EntryId) {
        let lruvec = self.zswap_lruvec(id);
        self.lruvecs[lruvec].zswap.list.remove(&mut self.zswap.entries, id.0);
    }

    /// Puts an entry behind the others of its list.
    pub(super) fn zswap_list_rotate(&mut self, id: EntryId) {
        let lruvec = self.zswap_lruvec(id);
        let list = &mut self.lruvecs[lruvec].zswap.list;
        list.remove(&mut self.zswap.entries, id.0);
        list.push_tail(&mut self.zswap.entries, id.0);
    }

    /// The entries of a removed group are its parent's.
    pub(crate) fn zswap_reparent(&mut self, from: LruvecId, to: LruvecId) {
        let mut list = std::mem::take(&mut self.lruvecs[from].zswap).list;
        assert!(from != to, "a group's entries become its own");
        let all = list.len() + self.lruvecs[to].zswap.list.len();
        while let Some(number) = list.head() {
            list.remove(&mut self.zswap.entries, number);
            self.lruvecs[to].zswap.list.push_tail(&mut self.zswap.entries, number);
        }
        assert_eq!(self.lruvecs[to].zswap.list.len(), all, "entries of a removed group and its parent");
    }

    /// Returns true if pages of a group may leave the pool for a device: what `memory.zswap.writeback` of it and those above it say.
    pub(crate) fn may_write_back(&self, memcg: MemcgId) -> bool {
        self.memcgs.ancestors(memcg).all(|memcg| self.memcgs[memcg].zswap_writeback)
    }

    /// Pages that the pool may take.
    fn zswap_max_pages(&self) -> u64 {
        let managed: u64 = self.memory.zones.info().map(|zone| zone.managed).sum();
        managed * u64::from(self.config.zswap_max_pool_percent) / 100
    }

    /// The size at which a full pool accepts pages again, plus `percent_more` percent of its maximum size.
    pub(super) fn zswap_pages(&self, percent_more: u64) -> u64 {
        let percent = u64::from(self.config.zswap_accept_threshold_percent) + percent_more;
        self.zswap_max_pages() * percent / 100
    }

    /// What it holds, and how much it may.
    pub(crate) fn zswap_pool(&self) -> ZswapPool {
        ZswapPool {
            pages: self.zswap.pool.pages(),
            stored: self.zswap.stored(),
            limit: self.zswap_max_pages(),
            accept: self.zswap_pages(0),
        }
    }

    /// Returns true if the pool takes another page. Once full it takes none until it has shrunk to the threshold: else each page that
    /// leaves it would let one in, and the worker would never be done.
    fn zswap_has_room(&mut self) -> bool {
        let pages = self.zswap.pool.pages();
        if pages >= self.zswap_max_pages() || self.zswap.stored() >= self.config.zswap_pages_max {
            self.zswap.stat.pool_limit_hit += 1;
            self.zswap.is_full = true;
        } else if self.zswap.is_full && pages <= self.zswap_pages(0) {
            self.zswap.is_full = false;
        }
        !self.zswap.is_full
    }

    /// Returns true if a page that was offered now, or after the pool has lost a few pages, would be stored, as far as the pool as a whole decides.
    pub(super) fn zswap_accepts_soon(&self) -> bool {
        let pages = self.zswap.pool.pages();
        let is_full = self.zswap.is_full && pages > self.zswap_pages(0) + SOON;
        let has_room = pages < self.zswap_max_pages() && self.zswap.stored() < self.config.zswap_pages_max;
        self.config.zswap_enabled && !is_full && has_room
    }

    /// Returns true if a page that was rejected wakes the worker: if the pool was full and has not been emptied yet, or, up to 6.4, if it is full.
    fn zswap_asks_worker(&self) -> bool {
        match self.config.policy.machine.zswap.worker {
            WorkerWalk::OnePage => self.zswap.is_full && self.zswap.pool.pages() >= self.zswap_max_pages(),
            WorkerWalk::Restart | WorkerWalk::Cursor | WorkerWalk::Batch => self.zswap.is_full,
        }
    }

    /// Panics unless lists and charges are those of the entries.
    pub(crate) fn check_zswap(&self) {
        self.zswap.check_invariants();
        let mut listed = 0;
        for node in self.lruvecs.nodes() {
            for memcg in self.memcgs.ids() {
                let lruvec = self.lruvecs.id(memcg, node);
                for id in self.zswap.listed(&self.lruvecs[lruvec].zswap) {
                    assert_eq!(
                        self.zswap_lruvec(id),
                        lruvec,
                        "{:?} is on a stranger's list",
                        self.zswap.entry(id)
                    );
                    listed += 1;
                }
            }
        }
        let with_bytes = self.zswap.entries().filter(|entry| entry.handle.is_some());
        assert_eq!(listed, with_bytes.count(), "entries on lists");
        for memcg in self.memcgs.ids() {
            let of_group = || {
                let is_of =
                    |entry: &&Entry| entry.payer != MemcgId::ROOT && self.memcgs.online(entry.payer) == memcg;
                self.zswap.entries().filter(is_of)
            };
            let local = |stat: Stat| -> i64 {
                let nodes = self.lruvecs.nodes();
                nodes.map(|node| self.lruvecs[self.lruvecs.id(memcg, node)].stat_local[stat as usize]).sum()
            };
            let bytes: u64 = of_group().map(Entry::length).sum();
            let path = self.memcgs.path(memcg);
            assert_eq!(local(Stat::Zswap), bytes as i64, "zswap of {path}");
            assert_eq!(local(Stat::Zswapped), of_group().count() as i64, "zswapped of {path}");
        }
        for entry in self.zswap.entries() {
            let slot = entry.slot.slot;
            assert!(self.memory.swap.is_taken(entry.slot), "slot {slot} is free and has an entry");
            assert!(!self.memory.swap.holds_zeroes(entry.slot), "slot {slot} holds zeroes and an entry");
            assert!(self.memory.swap.cached(entry.slot).is_none_or(|pfn| {
                // Stored, and not freed yet because someone has found it meanwhile.
                !self.memory.folios[pfn].has(FolioFlags::LOCKED)
            }));
        }
    }
}
