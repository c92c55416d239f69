//! Scan control (the kernel's `struct scan_control`): how much a reclaim call wants, what it may do, and what it has done so far.
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
    /// A signal ends it: it is to let go of what it has in its hands, and be over.
    pub(crate) is_interrupted: bool,
    pub(crate) nr_reclaimed: u64,
    /// Pages taken from lists to be judged.
    pub(crate) nr_scanned: u64,
    /// Pages taken before the present priority.
    pub(crate) scanned_before: u64,
    /// By type: of those, the ones that it has in its hands for as long as its last batch takes.
    pub(crate) isolated: [u64; 2],
    /// The node that they are counted on.
    pub(crate) isolated_on: NodeId,
    /// The reclaimer has waited because too many pages were in reclaimers' hands, and goes on whatever it finds.
    pub(crate) has_waited: bool,
    /// The reclaimer has to wait until fewer pages are in reclaimers' hands.
    pub(crate) must_wait: bool,
    /// The reclaimer waits with others of this node, until it goes on.
    pub(crate) throttled_on: Option<NodeId>,
    /// What is told of that wait: when it began, how long it may last, and for what it is.
    pub(crate) throttled: Option<(Nanos, Nanos, ThrottleReason)>,
    /// Lists are scanned by size >> priority; falls from 12 to 0 as long as the target isn't reached.
    pub(crate) priority: u8,
    /// Which active lists its passes age.
    pub(crate) aging: AgingPlan,
    /// The call has emptied its CPU's batches because it had found nothing.
    pub(crate) has_drained: bool,
    /// Groups below their effective `memory.low` are reclaimed too.
    pub(crate) low_reclaim: bool,
    pub(crate) low_skipped: bool,
    /// Visit every group rather than stopping when the target is reached.
    pub(crate) all_groups: bool,
    /// Only file pages are taken: there are enough unused ones.
    pub(crate) cache_trim_mode: bool,
    /// Trimming the page cache alone was tried for the whole machine, and there was nothing to trim.
    pub(crate) no_cache_trim_mode: bool,
    /// Only anonymous pages are taken: with all its file pages the machine would be short of free ones.
    pub(crate) file_is_tiny: bool,
    /// Anonymous pages may be swapped out, what is dirty may be written, and what is mapped may be taken from those who map it.
    pub(crate) may_swap: bool,
    pub(crate) may_write: bool,
    pub(crate) may_unmap: bool,
    /// Laptop mode: it does not write as yet.
    pub(crate) spares_disk: bool,
    /// The target's running costs by type, as the pass over the node began.
    pub(crate) cost: [u64; 2],
    /// What the pass over a pool has met so far.
    pub(crate) tally: Tally,
    /// What the last batch has left the reclaimer to wait for, and whether it has waited for such.
    pub(crate) stall: Option<Stall>,
    pub(crate) has_stalled: bool,
    /// Whether its batch is of whole blocks, and what it holds of such while it waits.
    pub(crate) lumpy: Lumpy,
    pub(crate) held_blocks: Option<Box<HeldBlocks>>,
    /// Enough is free for compaction to make the block that is wanted.
    pub(crate) compaction_ready: bool,
    /// The pass under way has walked page tables and goes on, so that a walk's buffer is at hand.
    pub(crate) has_walked: bool,
    /// Single pages that huge ones of its batch have become, and that it has yet to judge.
    pub(crate) split: Vec<Pfn>,
    /// Swap writes that the pass under way has begun.
    pub(crate) plug: Plug,
}

impl ScanControl {
    pub(crate) fn new(by: Reclaimer, nr_to_reclaim: u64) -> ScanControl {
        ScanControl {
            by,
            nr_to_reclaim,
            is_interrupted: false,
            nr_reclaimed: 0,
            nr_scanned: 0,
            scanned_before: 0,
            isolated: [0; 2],
            isolated_on: NodeId(0),
            has_waited: false,
            must_wait: false,
            throttled_on: None,
            throttled: None,
            priority: PRIORITY_DEFAULT,
            aging: AgingPlan::default(),
            has_drained: false,
            low_reclaim: false,
            low_skipped: false,
            all_groups: false,
            cache_trim_mode: false,
            no_cache_trim_mode: false,
            file_is_tiny: false,
            may_swap: true,
            may_write: true,
            may_unmap: true,
            spares_disk: false,
            cost: [0; 2],
            tally: Tally::default(),
            stall: None,
            has_stalled: false,
            lumpy: Lumpy::Off,
            held_blocks: None,
            compaction_ready: false,
            has_walked: false,
            split: Vec::new(),
            plug: Plug::default(),
        }
    }

    /// What is dirty may be written now.
    pub(crate) fn may_write_now(&self) -> bool {
        self.may_write && !self.spares_disk
    }

    pub(crate) fn is_satisfied(&self) -> bool {
        self.nr_reclaimed >= self.nr_to_reclaim
    }

    /// Whether the block that is wanted is worth more than single pages would be.
    pub(crate) fn is_in_earnest_for_block(&self) -> bool {
        self.by.order > COSTLY_ORDER || self.priority < PRIORITY_FOR_BLOCKS
    }

    /// A write has begun, or was under way: a pass that waits for each is to wait for it.
    pub(crate) fn wait_if_sync(&mut self, pfn: Pfn) {
        if self.lumpy == Lumpy::Sync {
            self.stall = Some(Stall::Folio(pfn));
        }
    }

    /// Nothing was reclaimed at any priority. Picks the next thing that was held back, gentlest first, and starts over;
    /// false when nothing is left to try, or a signal has ended the call.
    pub(crate) fn try_harder(&mut self, walk: TreeWalk) -> bool {
        if self.is_interrupted {
            return false;
        }
        if !self.all_groups && walk == TreeWalk::Shared {
            // The walk is shared: the part that this call got may have had nothing to give.
            self.all_groups = true;
        } else if self.aging.has_skipped && !self.aging.is_forced {
            self.aging.is_forced = true;
            self.aging.has_skipped = false;
        } else if self.low_skipped && !self.low_reclaim {
            self.aging.is_forced = false;
            self.low_reclaim = true;
            self.low_skipped = false;
        } else {
            return false;
        }
        self.priority = PRIORITY_DEFAULT;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::Why;
    use crate::units::MemcgId;

    #[test]
    fn what_was_held_back_is_tried_in_order_and_each_once() {
        let mut sc = ScanControl::new(Reclaimer::new(MemcgId(1), Why::Limit, 60), 32);
        sc.aging.has_skipped = true;
        sc.low_skipped = true;
        assert!(sc.try_harder(TreeWalk::Shared) && sc.all_groups && !sc.aging.is_forced);
        assert!(sc.try_harder(TreeWalk::Shared) && sc.aging.is_forced && !sc.low_reclaim);
        assert!(sc.try_harder(TreeWalk::Shared) && sc.low_reclaim);
        assert!(!sc.try_harder(TreeWalk::Shared));
    }
}
