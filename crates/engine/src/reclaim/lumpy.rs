//! Lumpy reclaim: how kernels before 2012 made a free block of 2^order pages, by taking whole aligned blocks off the LRU lists.
//!
//! ```text
//!   tail of the inactive list ─▶ a page, the tag        frames   ├──▒▒─t──▒──┤ the aligned block of the wanted size around it
//!                                                                 all of it that is on a list is taken, active or not
//!   batch ─▶ judged, whether used or not ─▶ what is left, unless the reclaimer is kswapd:
//!              ▲                              a tenth of a second for the device, and once more,
//!              └──────────────────────────────  waiting for each page that is being written
//! ```
//! A block is of use only as a whole. So no page's age counts here except the tag's, and one page that stays behind has cost all of its
//! neighbours for nothing. That is why the second pass waits. It is slow, and a process that needed a large block noticed it when memory
//! was full of dirty pages. Compaction, which moves pages instead of dropping them, replaced lumpy reclaim in 2012.
//!
//! Lumpy reclaim is on for blocks above order 3, and for smaller ones once a call has reached a low priority. The walk over a block ends
//! at the first page that can't be isolated: the rest of the block would be of no use.
//!
//! **A reclaimer that may not write** (`FileWriteback::NotDirect`) has flushers write the batch's dirty pages, waits, and judges them
//! again, 50 times at most. Pages of anonymous memory are among them in the series of 2010, although no flusher writes those.
//!
//! The folios that a reclaimer holds while it waits are on no list. Each has an additional reference, so that it outlives its owner.
//!
//! **A large request continues** as long as reclaim for it has freed something, and fewer pages than the block holds. kswapd continues for
//! a block until a whole run has freed less than a batch, or until there is such a block and eight times the high watermark is free. Then
//! single pages are enough. [reclaim 5.5, 5.6; machine 9.3, 9.4]

use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::{Folio, FolioFlags, UseBits};
use crate::page_alloc::request::{Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::reclaim::ScanControl;
use crate::reclaim::shrink::ReclaimStat;
use crate::reclaim::tally::Stall;
use crate::stat::{ByType, PGSTEAL, Stat};
use crate::state::State;
use crate::story::{Contig, PageEvent};
use crate::units::ZoneType;
use crate::units::{LruType, MemcgId, NodeId, Pfn};
use crate::writeback::WritebackReason;
use pageout_rules::lru::Lru;

/// How often the flushers are asked for what a reclaimer may not write itself. [machine 9.4]
const CLEAN_WAITS: u32 = 50;
/// How often one run waits for a folio: for a write in flight, and for a write that the run begins.
const WAITS_FOR_A_FOLIO: u32 = 2;
/// A zone that meets this multiple of its high watermark, for the block that is wanted, is left alone.
const PLENTY: u64 = 8;

/// The kind of a batch: single pages or blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Lumpy {
    /// Single pages: reclaim makes no blocks.
    #[default]
    Off,
    /// Blocks: the pages around the oldest, whether they are used or not.
    Async,
    /// Blocks, and each write is waited for.
    Sync,
}

/// The pages of blocks that are left after a first pass, held by a reclaimer that waits. Each folio has a reference for that.
#[derive(Debug)]
pub(crate) struct HeldBlocks {
    lruvec: LruvecId,
    /// Waits for a device before it goes on.
    waits: u32,
    /// Folios to be judged again, the next one last, and how often the reclaimer has waited for that one.
    todo: Vec<Pfn>,
    waited_for_next: u32,
    /// Dirty pages that the reclaimer may not write, and how often it has asked the flushers to.
    refused: Vec<Pfn>,
    asked: u32,
    /// Pages that stay.
    done: Vec<Pfn>,
}

impl Core {
    /// Takes blocks around up to `n` pages from the cold end of a list, and reclaims the pages that it can. Holds the rest if they must be
    /// judged again; returns the pages reclaimed.
    pub(crate) fn shrink_blocks(
        &mut self,
        lruvec: LruvecId,
        list: LruList,
        n: u64,
        sc: &mut ScanControl,
    ) -> u64 {
        let mut taken = self.isolate_blocks(lruvec, list, n, sc);
        let pages: u64 = taken.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
        self.mm.lruvecs[lruvec].walk.scanned_since += pages;
        sc.hands.lumpy = Lumpy::Async;
        let (mut reclaimed, mut left) = (0, Vec::new());
        for kind in LruType::BOTH {
            let is_of_kind = |pfn: &mut Pfn| self.mm.memory.folios[*pfn].lru_type() == kind;
            let mut batch: Vec<Pfn> = taken.extract_if(.., is_of_kind).collect();
            let pages = batch.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
            let stat = self.judge_batch(Lru::TwoLists, lruvec, kind, &mut batch, pages, sc);
            self.count_stolen(lruvec, PGSTEAL.of(kind), stat.reclaimed, sc);
            self.note_cost(lruvec, kind, stat.written, stat.taken - stat.reclaimed);
            reclaimed += stat.reclaimed;
            left.append(&mut batch);
        }
        sc.hands.lumpy = Lumpy::Off;
        if left.is_empty() || sc.by.is_kswapd() {
            left.into_iter().for_each(|pfn| self.put_back(pfn));
            return reclaimed;
        }
        // A device that has just been asked for more is waited for in its own right.
        let waits = u32::from(sc.waits.stall.is_some());
        sc.waits.stall = Some(Stall::Congestion);
        left.iter().for_each(|&pfn| self.mm.memory.folios[pfn].refs += 1);
        left.reverse();
        let held = HeldBlocks {
            lruvec,
            waits,
            todo: left,
            waited_for_next: 0,
            refused: Vec::new(),
            asked: 0,
            done: Vec::new(),
        };
        sc.hands.held_blocks = Some(Box::new(held));
        reclaimed
    }

    /// Takes the blocks around pages from the tail of a list until `n` pages are taken.
    fn isolate_blocks(&mut self, lruvec: LruvecId, list: LruList, n: u64, sc: &ScanControl) -> Vec<Pfn> {
        let (mut folios, mut contig, mut taken) = (Vec::new(), Contig::default(), 0);
        while taken < n {
            let Some(tag) = self.mm.lruvecs[lruvec].lists[list as usize].tail().map(Pfn) else { break };
            taken += self.isolate_for_block(tag, &mut folios);
            let before = contig.taken;
            self.isolate_around(tag, sc.by.order, &mut folios, &mut contig);
            taken += contig.taken - before;
        }
        self.out.count.scanned(taken);
        self.looked_at += taken;
        self.out.count.list_moves(folios.len() as u64);
        self.trace_isolated_blocks(lruvec, list, [n, taken, 0, taken], contig, sc);
        folios
    }

    /// Takes what is on any list within the block around a folio.
    #[doc(alias = "isolate_lru_pages")]
    fn isolate_around(&mut self, tag: Pfn, order: u8, folios: &mut Vec<Pfn>, contig: &mut Contig) {
        let node = self.mm.memory.folios[tag].node;
        let zone = self.mm.memory.zones.zone_of(node, tag);
        let (used, zone_end) = (zone.used_so_far(), zone.end());
        let first = tag.0 & !((1 << order) - 1);
        let mut at = first;
        while at < first + (1 << order) {
            let pfn = Pfn(at);
            if at >= used.end {
                // Free from here on, or beyond the end of the zone.
                contig.failed += u64::from(first + (1 << order) > zone_end);
                return;
            }
            if let Some(order) = self.mm.memory.folios.free_order(pfn) {
                at += 1 << order;
                continue;
            }
            let folio = self.mm.memory.folios[pfn];
            if pfn == tag {
                at += folio.pages() as u32;
            } else if folio.has(FolioFlags::LRU)
                && !folio.has(FolioFlags::UNEVICTABLE)
                && self.mm.may_leave(&folio)
            {
                let pages = self.isolate_for_block(pfn, folios);
                contig.taken += pages;
                contig.dirty += if folio.has(FolioFlags::DIRTY) { pages } else { 0 };
                at += pages as u32;
            } else if is_unused(&folio) {
                at += 1;
            } else {
                contig.failed += 1;
                return;
            }
        }
    }

    /// Takes a folio off its list. It goes back to an inactive one, if it does.
    fn isolate_for_block(&mut self, pfn: Pfn, folios: &mut Vec<Pfn>) -> u64 {
        self.tell(pfn, |_| PageEvent::Isolated);
        self.lru_unlink(pfn);
        self.mm.assert_isolated(pfn);
        self.clear_active(pfn);
        self.mm.prefetch_words(&self.mm.memory.folios[pfn]);
        folios.push(pfn);
        self.mm.memory.folios[pfn].pages()
    }

    fn clear_active(&mut self, pfn: Pfn) {
        if self.mm.memory.has_use(pfn, UseBits::ACTIVE) {
            self.mm.memory.remove_use(pfn, UseBits::ACTIVE);
            self.count(self.mm.lruvec_of(pfn), Stat::Pgdeactivate, self.mm.memory.folios[pfn].pages() as i64);
        }
    }

    /// Goes on with what a reclaimer holds, up to the next wait; returns the pages reclaimed.
    #[doc(alias = "should_reclaim_stall")]
    pub(crate) fn shrink_held_blocks(&mut self, mut held: Box<HeldBlocks>, sc: &mut ScanControl) -> u64 {
        if held.waits > 0 {
            held.waits -= 1;
            return self.mm.hold_on(held, Stall::Congestion, sc);
        }
        sc.hands.lumpy = Lumpy::Sync;
        let mut reclaimed = 0;
        while let Some(pfn) = held.todo.pop() {
            assert!(self.mm.memory.folios[pfn].refs > 0, "{pfn:?} is held, and has no reference");
            self.mm.memory.folios[pfn].refs -= 1;
            if self.release_if_unused(pfn) {
                continue;
            }
            self.clear_active(pfn);
            let kind = self.mm.memory.folios[pfn].lru_type();
            let pages = self.mm.memory.folios[pfn].pages();
            let mut stat = ReclaimStat::default();
            let is_free = self.shrink_folio(held.lruvec, pfn, sc, &mut stat);
            // If the folio was huge, this is its first page.
            let pages = if sc.hands.split.is_empty() { pages } else { 1 };
            for single in sc.hands.split.drain(..) {
                self.mm.memory.folios[single].refs += 1;
                held.todo.push(single);
            }
            if is_free {
                self.count_stolen(held.lruvec, PGSTEAL.of(kind), pages, sc);
                reclaimed += pages;
                held.waited_for_next = 0;
                continue;
            }
            self.mm.memory.folios[pfn].refs += 1;
            let stall = sc.waits.stall.take();
            if let Some(stall) = stall.filter(|_| held.waited_for_next < WAITS_FOR_A_FOLIO) {
                held.waited_for_next += 1;
                held.todo.push(pfn);
                if !self.mm.memory.folios[pfn].has(FolioFlags::WRITEBACK) {
                    // Its write is over already.
                    continue;
                }
                self.mm.hold_on(held, stall, sc);
                sc.hands.lumpy = Lumpy::Off;
                return reclaimed;
            }
            held.waited_for_next = 0;
            let kept = if stat.tally.refused > 0 { &mut held.refused } else { &mut held.done };
            kept.push(pfn);
        }
        sc.hands.lumpy = Lumpy::Off;
        // A task that is killed has nothing to wait for.
        if !held.refused.is_empty() && held.asked < CLEAN_WAITS && sc.nr_to_reclaim > 0 {
            held.asked += 1;
            held.todo = std::mem::take(&mut held.refused);
            held.todo.reverse();
            let pages = held.todo.iter().map(|&pfn| self.mm.memory.folios[pfn].pages()).sum();
            self.wakeup_flusher_threads_for(WritebackReason::Vmscan, pages);
            self.mm.hold_on(held, Stall::Congestion, sc);
            return reclaimed;
        }
        for pfn in held.done.into_iter().chain(held.refused) {
            assert!(self.mm.memory.folios[pfn].refs > 0, "{pfn:?} is held, and has no reference");
            self.mm.memory.folios[pfn].refs -= 1;
            if !self.release_if_unused(pfn) {
                self.put_back(pfn);
            }
        }
        reclaimed
    }
}

impl State {
    /// Returns true if blocks are made by reclaim alone. Generations know nothing of blocks.
    pub(crate) fn makes_blocks_by_reclaim(&self) -> bool {
        self.config.policy.machine.lumpy && self.memcgs[MemcgId::ROOT].policy.lru == Lru::TwoLists
    }

    /// Returns true if a call takes whole blocks now.
    pub(crate) fn is_lumpy(&self, sc: &ScanControl) -> bool {
        sc.by.order > 0
            && sc.by.is_for_machine()
            && sc.is_in_earnest_for_block()
            && self.makes_blocks_by_reclaim()
    }

    /// Returns true if a large request goes on after a round that has made no block.
    pub(crate) fn is_block_worth_more(&self, request: &Request, reclaimed: u64, in_all: u64) -> bool {
        reclaimed > 0 && (!request.is_costly() || in_all < 1 << request.order)
    }

    /// Returns true if kswapd need not free pages for a block any more, as there are so many. It is the test of a request against a mark: however
    /// much is free in single pages, there is not plenty of what is wanted while there is no block.
    pub(crate) fn has_plenty(&self, node: NodeId, order: u8, class: ZoneType) -> bool {
        let mut zones = self.memory.zones.of_node(node).iter().filter(|zone| zone.kind <= class);
        let mark = |zone: &Zone| PLENTY * zone.mark(Watermark::High);
        zones.all(|zone| zone.watermark_ok(order, mark(zone), class, Rights::empty()))
    }

    /// Returns true if there is anything that a folio could leave memory for.
    fn may_leave(&self, folio: &Folio) -> bool {
        folio.lru_type() == LruType::File
            || folio.has(FolioFlags::SWAPCACHE)
            || self.memory.swap.free_pages() > 0
    }

    /// A reclaimer waits while it holds isolated folios.
    fn hold_on(&mut self, held: Box<HeldBlocks>, stall: Stall, sc: &mut ScanControl) -> u64 {
        for &pfn in held.todo.iter().chain(&held.done).chain(&held.refused) {
            let folio = &self.memory.folios[pfn];
            let (node, kind, pages) = (folio.node, folio.lru_type(), folio.pages());
            self.note_isolated(node, kind, pages, sc);
        }
        sc.waits.stall = Some(stall);
        sc.hands.held_blocks = Some(held);
        0
    }
}

/// Returns true if a frame is free although no free block begins with it: a CPU keeps it.
fn is_unused(folio: &Folio) -> bool {
    let used = FolioFlags::LRU
        | FolioFlags::INDEXED
        | FolioFlags::SWAPCACHE
        | FolioFlags::LOCKED
        | FolioFlags::WRITEBACK
        | FolioFlags::PINNED
        | FolioFlags::KERNEL;
    folio.refs == 0 && folio.mapped == 0 && !folio.flags().intersects(used)
}
