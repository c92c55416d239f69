//! Seam 2, order: which lists an lruvec has, where a folio goes, and who is looked at next.
//!
//! An order answers five questions; everything else about reclaim is shared:
//!
//! | question | asked by |
//! |---|---|
//! | how many lists, and which one is a folio's? | `lru_place`, `lru_unlink` |
//! | what does an access through a file descriptor mean? | `mark_of`, `order_accessed` |
//! | what may passes do, given the target's state? | `order_prepare` |
//! | how is a pass over the lruvec made, round by round? | `begin_pass`, `pass_round` |
//! | what follows from a reference found by reclaim? | the order's own file |
//!
//! To add one: a file beside `two_lists.rs` with its pass, and an arm in each `match` below; the compiler names them.

mod single_list;
mod two_lists;

use crate::engine::Engine;
use crate::folio::{FolioFlags, Heat};
use crate::lruvec::{LruList, LruvecId};
use crate::reclaim::ScanControl;
use crate::stat::Stat;
use crate::table::Mark;
use crate::units::{LruType, Pfn};
pub(crate) use two_lists::TwoListsPass;

/// Which lists there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Active and inactive, for each type: the classic LRU of Linux.
    TwoLists,
    /// One list in order of access: the textbook LRU.
    SingleList,
}

impl Order {
    pub(crate) fn lists(self) -> usize {
        match self {
            Order::TwoLists => LruList::EVICTABLE.len(),
            Order::SingleList => 1,
        }
    }

    /// Whether a list counts as active.
    pub(crate) fn is_active(self, list: usize) -> bool {
        match self {
            Order::TwoLists => LruList::EVICTABLE[list].is_active(),
            Order::SingleList => false,
        }
    }

    fn list_of(self, kind: LruType, active: bool) -> usize {
        match self {
            Order::TwoLists => LruList::new(kind, active) as usize,
            Order::SingleList => 0,
        }
    }
}

/// Which end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Hot.
    Head,
    /// Cold.
    Tail,
}

/// A pass over one lruvec, made in rounds of a batch or two.
pub(crate) enum Pass {
    TwoLists(TwoListsPass),
    SingleList { remaining: u64 },
}

/// Whether a pass goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Round {
    More,
    Last,
}

impl Engine {
    pub(crate) fn order_of(&self, lruvec: LruvecId) -> Order {
        self.memcgs[self.lruvecs[lruvec].memcg].policy.order
    }

    /// What the order wants to know of accesses through file descriptors.
    pub(crate) fn mark_of(&self, lruvec: LruvecId) -> Mark {
        match self.order_of(lruvec) {
            Order::TwoLists => Mark::Classic,
            Order::SingleList => Mark::EveryAccess,
        }
    }

    /// Tells an order that asked for it of an access.
    pub(crate) fn order_accessed(&mut self, pfn: Pfn) {
        match self.order_of(self.lruvec_of(pfn)) {
            Order::TwoLists => {}
            Order::SingleList => self.single_list_accessed(pfn),
        }
    }

    /// Decides, by the lruvec of the group on whose behalf reclaim runs, what its passes over this node may do.
    pub(crate) fn order_prepare(&mut self, target: LruvecId, sc: &mut ScanControl) {
        match self.order_of(target) {
            Order::TwoLists => self.two_lists_prepare(target, sc),
            // It has no opinion on how a descendant with other lists should age its pages.
            Order::SingleList => {
                sc.may_deactivate = [true; 2];
                sc.cache_trim_mode = false;
            }
        }
    }

    pub(crate) fn begin_pass(&mut self, lruvec: LruvecId, sc: &mut ScanControl) -> Pass {
        match self.order_of(lruvec) {
            Order::TwoLists => Pass::TwoLists(self.two_lists_begin(lruvec, sc)),
            Order::SingleList => Pass::SingleList { remaining: self.single_list_begin(lruvec, sc) },
        }
    }

    pub(crate) fn pass_round(&mut self, lruvec: LruvecId, pass: &mut Pass, sc: &mut ScanControl) -> Round {
        match pass {
            Pass::TwoLists(pass) => self.two_lists_round(lruvec, pass, sc),
            Pass::SingleList { remaining } => self.single_list_round(lruvec, remaining, sc),
        }
    }

    /// Puts a folio that is on no list where its state says it belongs, and makes it isolatable.
    pub(crate) fn lru_place(&mut self, pfn: Pfn, end: End) {
        let lruvec = self.lruvec_of(pfn);
        let folio = self.memory.folios[pfn];
        debug_assert!(!folio.has(FolioFlags::LRU), "{pfn:?} is on a list already");
        let was_unevictable = folio.has(FolioFlags::UNEVICTABLE);
        if folio.has(FolioFlags::MLOCKED) {
            // Only counted: reclaim has no use for a list of what it can't take.
            self.memory.cool_down(pfn, Heat::ACTIVE);
            self.memory.folios[pfn].flags |= FolioFlags::LRU | FolioFlags::UNEVICTABLE;
            self.update_size(lruvec, LruList::Unevictable, folio.pages() as i64);
            if !was_unevictable {
                self.count_node(folio.node, Stat::UnevictablePgsCulled, folio.pages() as i64);
            }
            return;
        }
        if was_unevictable {
            self.memory.folios[pfn].flags -= FolioFlags::UNEVICTABLE;
            self.count_node(folio.node, Stat::UnevictablePgsRescued, folio.pages() as i64);
        }
        let (list, gauge) = self.list_of(lruvec, pfn);
        let links = &mut self.memory.folios;
        match end {
            End::Head => self.lruvecs[lruvec].lists[list].push_head(links, pfn.0),
            End::Tail => self.lruvecs[lruvec].lists[list].push_tail(links, pfn.0),
        }
        self.memory.folios[pfn].flags |= FolioFlags::LRU;
        self.work.list_moves += 1;
        self.update_size(lruvec, gauge, folio.pages() as i64);
    }

    /// Takes a folio off its list; the caller owns its place from now on.
    pub(crate) fn lru_unlink(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        let folio = self.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::LRU), "{pfn:?} is on no list");
        self.memory.folios[pfn].flags -= FolioFlags::LRU;
        if folio.has(FolioFlags::UNEVICTABLE) {
            self.update_size(lruvec, LruList::Unevictable, -(folio.pages() as i64));
            return;
        }
        let (list, gauge) = self.list_of(lruvec, pfn);
        self.lruvecs[lruvec].lists[list].remove(&mut self.memory.folios, pfn.0);
        self.update_size(lruvec, gauge, -(folio.pages() as i64));
    }

    /// The list on which a folio's state puts it, and the gauge that counts it there.
    fn list_of(&self, lruvec: LruvecId, pfn: Pfn) -> (usize, LruList) {
        let (order, kind) = (self.order_of(lruvec), self.memory.folios[pfn].lru_type());
        let list = order.list_of(kind, self.memory.is_hot(pfn, Heat::ACTIVE));
        (list, LruList::new(kind, order.is_active(list)))
    }

    pub(crate) fn update_size(&mut self, lruvec: LruvecId, list: LruList, pages: i64) {
        let size = &mut self.lruvecs[lruvec].sizes[list as usize];
        *size = size.checked_add_signed(pages).expect("a list holds no fewer than no pages");
        self.count(lruvec, list.stat(), pages);
    }
}
