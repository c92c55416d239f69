//! Scan control (the kernel's `struct scan_control`): how much a reclaim call must free, what it may do, and what it has done so far.
//! [reclaim 2.1]

use crate::lru::two_lists::AgingPlan;
use crate::page_alloc::request::COSTLY_ORDER;
use crate::reclaim::tally::Stall;
use crate::reclaim::throttle::ThrottleReason;
use crate::reclaim::{HeldBlocks, Lumpy, Reclaimer, Tally};
use crate::swap::plug::Plug;
use crate::units::{Nanos, NodeId, Pfn};
use pageout_rules::reclaim::TreeWalk;

/// Below this priority reclaim for any block goes to lengths; for a large one it does so from the start.
const PRIORITY_FOR_BLOCKS: u8 = PRIORITY_DEFAULT - 2;

/// First priority: lists are scanned by a 4096th of their size.
pub(crate) const PRIORITY_DEFAULT: u8 = 12;

/// State of a reclaim call that all levels below it read.
#[derive(Debug)]
pub(crate) struct ScanControl {
    /// The reclaimer: why it reclaims, and what it may do.
    pub(crate) by: Reclaimer,
    pub(crate) nr_to_reclaim: u64,
    /// A signal ends the call: it must drop its isolated folios and end.
    pub(crate) is_interrupted: bool,
    pub(crate) means: Means,
    /// Lists are scanned by size >> priority; falls from 12 to 0 as long as the target isn't reached.
    pub(crate) priority: u8,
    pub(crate) effort: Effort,
    pub(crate) plan: Plan,
    pub(crate) nr_reclaimed: u64,
    /// Pages taken from lists to be judged.
    pub(crate) nr_scanned: u64,
    /// Pages taken before the present priority.
    pub(crate) scanned_before: u64,
    /// Enough is free for compaction to make the block that is wanted.
    pub(crate) compaction_ready: bool,
    /// The pages that the pass over a pool has met so far.
    pub(crate) tally: Tally,
    pub(crate) hands: InHand,
    pub(crate) waits: Waits,
}

/// By what means a call may free a page.
#[derive(Debug)]
pub(crate) struct Means {
    /// Anonymous pages may be swapped out, what is dirty may be written, and what is mapped may be taken from those who map it.
    pub(crate) may_swap: bool,
    pub(crate) may_write: bool,
    pub(crate) may_unmap: bool,
    /// Laptop mode: it does not write as yet.
    pub(crate) spares_disk: bool,
    /// True if accessed bits are ignored, as the owner does not need the pages soon.
    pub(crate) ignores_use: bool,
}

/// The measures that a call takes in addition to a lower priority, one after the other ([`ScanControl::try_harder`]), and the groups and
/// pages that it has left alone so far.
#[derive(Debug, Default)]
pub(crate) struct Effort {
    /// Visit every group rather than stopping when the target is reached.
    pub(crate) all_groups: bool,
    /// Groups below their effective `memory.low` are reclaimed too.
    pub(crate) low_reclaim: bool,
    pub(crate) low_skipped: bool,
    /// The call has emptied its CPU's batches because it had found nothing.
    pub(crate) has_drained: bool,
    /// Trimming the page cache alone was tried for the whole machine, and there was nothing to trim.
    pub(crate) no_cache_trim_mode: bool,
}

/// What the state of the target's lruvec has the passes over a node do, as the first of them begins.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Which active lists are aged.
    pub(crate) aging: AgingPlan,
    /// Only file pages are taken: there are enough unused ones.
    pub(crate) cache_trim_mode: bool,
    /// Only anonymous pages are taken: with all its file pages the machine would be short of free ones.
    pub(crate) file_is_tiny: bool,
    /// The target's running costs by type.
    pub(crate) cost: [u64; 2],
}

/// The folios and writes that a reclaimer holds between two steps of a call, or for as long as its last batch takes.
#[derive(Debug, Default)]
pub(crate) struct InHand {
    /// By type: pages taken from lists.
    pub(crate) isolated: [u64; 2],
    /// The node that they are counted on.
    pub(crate) isolated_on: NodeId,
    /// The kind of its batch, and the blocks that it holds while it waits.
    pub(crate) lumpy: Lumpy,
    pub(crate) held_blocks: Option<Box<HeldBlocks>>,
    /// Single pages that huge ones of its batch have become, and that it has yet to judge.
    pub(crate) split: Vec<Pfn>,
    /// Swap writes that the present pass has begun.
    pub(crate) plug: Plug,
    /// The present pass has walked page tables and continues, so a walk's buffer is available.
    pub(crate) has_walked: bool,
}

/// For what a reclaimer has to wait, and for what it has waited.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Until fewer pages are in reclaimers' hands.
    pub(crate) must_wait: bool,
    /// It has waited for that, and goes on whatever it finds.
    pub(crate) has_waited: bool,
    /// With others of this node, until it goes on.
    pub(crate) throttled_on: Option<NodeId>,
    /// The traced fields of that wait: when it began, how long it may last, and its reason.
    pub(crate) throttled: Option<(Nanos, Nanos, ThrottleReason)>,
    /// For what the last batch has left, and whether it has waited for such.
    pub(crate) stall: Option<Stall>,
    pub(crate) has_stalled: bool,
}

impl ScanControl {
    pub(crate) fn new(by: Reclaimer, nr_to_reclaim: u64) -> ScanControl {
        ScanControl {
            by,
            nr_to_reclaim,
            is_interrupted: false,
            means: Means {
                may_swap: true,
                may_write: true,
                may_unmap: true,
                spares_disk: false,
                ignores_use: false,
            },
            priority: PRIORITY_DEFAULT,
            effort: Effort::default(),
            plan: Plan::default(),
            nr_reclaimed: 0,
            nr_scanned: 0,
            scanned_before: 0,
            compaction_ready: false,
            tally: Tally::default(),
            hands: InHand::default(),
            waits: Waits::default(),
        }
    }

    /// Returns whether dirty pages may be written now.
    pub(crate) fn may_write_now(&self) -> bool {
        self.means.may_write && !self.means.spares_disk
    }

    pub(crate) fn is_satisfied(&self) -> bool {
        self.nr_reclaimed >= self.nr_to_reclaim
    }

    /// Returns true if the block that is wanted is worth more than single pages would be.
    pub(crate) fn is_in_earnest_for_block(&self) -> bool {
        self.by.order > COSTLY_ORDER || self.priority < PRIORITY_FOR_BLOCKS
    }

    /// A write has begun, or was in flight: a pass that waits for each write must wait for it.
    pub(crate) fn wait_if_sync(&mut self, pfn: Pfn) {
        if self.hands.lumpy == Lumpy::Sync {
            self.waits.stall = Some(Stall::Folio(pfn));
        }
    }

    /// Nothing was reclaimed at any priority. Picks the next thing that was held back, gentlest first, and starts over;
    /// false when nothing is left to try, or a signal has ended the call.
    pub(crate) fn try_harder(&mut self, walk: TreeWalk) -> bool {
        if self.is_interrupted {
            return false;
        }
        if !self.effort.all_groups && walk == TreeWalk::Shared {
            // The walk is shared: the part that this call got may have had nothing to give.
            self.effort.all_groups = true;
        } else if self.plan.aging.has_skipped && !self.plan.aging.is_forced {
            self.plan.aging.is_forced = true;
            self.plan.aging.has_skipped = false;
        } else if self.effort.low_skipped && !self.effort.low_reclaim {
            self.plan.aging.is_forced = false;
            self.effort.low_reclaim = true;
            self.effort.low_skipped = false;
        } else {
            return false;
        }
        self.priority = PRIORITY_DEFAULT;
        true
    }
}

/// One and a half times as many. A user may ask for all there is.
pub(super) fn half_more(pages: u64) -> u64 {
    pages.saturating_add(pages / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::Why;
    use crate::units::MemcgId;

    #[test]
    fn what_was_held_back_is_tried_in_order_and_each_once() {
        let mut sc = ScanControl::new(Reclaimer::new(MemcgId(1), Why::Limit, 60), 32);
        sc.plan.aging.has_skipped = true;
        sc.effort.low_skipped = true;
        assert!(sc.try_harder(TreeWalk::Shared) && sc.effort.all_groups && !sc.plan.aging.is_forced);
        assert!(sc.try_harder(TreeWalk::Shared) && sc.plan.aging.is_forced && !sc.effort.low_reclaim);
        assert!(sc.try_harder(TreeWalk::Shared) && sc.effort.low_reclaim);
        assert!(!sc.try_harder(TreeWalk::Shared));
    }
}
