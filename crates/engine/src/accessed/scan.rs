//! A scan: a page-table walk that finds the pages in use now and ages nothing. [tiering 4]
//!
//! A scan uses the same address spaces, mappings, upper entries and filter as the walk of aging (`walk.rs`). It clears the same accessed
//! bits. A bit can be read only once, so the scan reports each young page to the LRU.
//!
//! A scan does not change the iteration that the walkers of aging share. It completes no walk and opens no generation. It gives up if
//! another walker has completed the iteration.
//!
//! So a scan misses the same pages as that walk, and for longer. It skips a table in which the last aging found too few young pages, until
//! the next aging. If the lruvec was never aged, there is no filter, and the scan skips nothing.

use super::walk::{InHand, Walk};
use crate::core::Core;
use crate::lru::lruvec::LruvecId;
use crate::state::State;
use crate::units::{MmId, Pfn};

/// Not the swappiness of a group: the scan also visits pages that can't be evicted.
const BOTH_TYPES: u8 = 100;

/// A scan in progress.
pub(crate) struct Scan {
    lruvec: LruvecId,
    walk: Walk,
    /// The address spaces still to be scanned, the last one first, and whether the filter still has to be updated for each.
    mms: Vec<(MmId, bool)>,
}

impl Scan {
    /// Frames of the entries found young so far, each as often as it was found; they are forgotten.
    pub(crate) fn take_found(&mut self) -> Vec<Pfn> {
        self.walk.found.replace(Vec::new()).unwrap_or_default()
    }

    /// How many young pages the scan has found.
    pub(crate) fn found(&self) -> usize {
        self.walk.found.as_ref().map_or(0, Vec::len)
    }
}

impl Core {
    /// Scans some tables; false when nothing is left to be scanned.
    pub(crate) fn scan_step(&mut self, scan: &mut Scan) -> bool {
        let lruvec = scan.lruvec;
        let has_aged = self.mm.lruvecs[lruvec].walk.seq >= scan.walk.seq;
        if has_aged || !self.mm.memcgs[self.mm.lruvecs[lruvec].memcg].policy.harvest.page_table_walk {
            return false;
        }
        let Some(in_hand) = scan.walk.in_hand.or_else(|| self.mm.scan_take(scan)) else { return false };
        let next = self.walk_tables(lruvec, &mut scan.walk, in_hand);
        scan.walk.in_hand = next.map(|from| InHand { from, ..in_hand });
        true
    }
}

impl State {
    /// Begins to scan what a group has on a node; `None` where it has no address space, or its policy walks no page tables.
    pub(crate) fn scan_begin(&self, lruvec: LruvecId) -> Option<Scan> {
        let memcg = &self.memcgs[self.lruvecs[lruvec].memcg];
        if memcg.mms.is_empty() || !memcg.policy.harvest.page_table_walk {
            return None;
        }
        let known = self.lruvecs[lruvec].walk.known;
        let mms = memcg.mms.iter().enumerate().map(|(at, &mm)| (mm, at >= known)).rev().collect();
        let mut walk = self.walk_begin(lruvec, BOTH_TYPES, false);
        walk.found = Some(Vec::new());
        Some(Scan { lruvec, walk, mms })
    }

    /// Takes the next address space that has run since the last walk or scan of it.
    fn scan_take(&mut self, scan: &mut Scan) -> Option<InHand> {
        let memcg = self.lruvecs[scan.lruvec].memcg;
        let node = self.lruvecs[scan.lruvec].node;
        let skips = self.memcgs[memcg].policy.harvest.mm_skip;
        while let Some((mm, is_new)) = scan.mms.pop() {
            if !self.memcgs[memcg].mms.contains(&mm) {
                continue;
            }
            let used = &mut self.memory.mms[mm.index()].used_on_nodes;
            let has_run = *used >> node.0 & 1 != 0;
            *used &= !(1 << node.0);
            if has_run || !skips {
                return Some(InHand { mm, from: 0, is_forced: false, is_new });
            }
        }
        None
    }
}
