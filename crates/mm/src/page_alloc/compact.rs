//! What compaction asks of a zone, and what the zone remembers of it: runs that did not help put off the next ones. [machine 2.11]

use crate::page_alloc::request::{COSTLY_ORDER, MigrateType, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::page_alloc::zone::Zone;
use crate::units::ZoneType;

/// Above this share, in thousandths, a failure is due to fragmentation rather than to a lack of memory.
const EXTFRAG_THRESHOLD: i64 = 500;

/// Deferral of a zone's compaction after runs that did not help.
#[derive(Clone, Copy, Debug)]
pub struct Deferral {
    considered: u32,
    shift: u32,
    /// The least order for which a run failed.
    order_failed: u8,
}

impl Default for Deferral {
    fn default() -> Deferral {
        Deferral { considered: 0, shift: 0, order_failed: u8::MAX }
    }
}

impl Deferral {
    const SHIFT_MAX: u32 = 6;
    /// The longest deferral lets one in this many consecutive tries run.
    pub const LONGEST: u32 = 1 << Self::SHIFT_MAX;

    /// Returns true if a run for this order is left out; it counts as considered.
    #[doc(alias = "compaction_deferred")]
    pub fn puts_off(&mut self, order: u8) -> bool {
        if order < self.order_failed {
            return false;
        }
        self.considered = (self.considered + 1).min(1 << self.shift);
        self.considered < 1 << self.shift
    }

    /// A run for this order has gone through the zone and made no block.
    #[doc(alias = "defer_compaction")]
    pub fn failed(&mut self, order: u8) {
        assert!(order > 0, "a run made no single page");
        self.considered = 0;
        self.shift = (self.shift + 1).min(Self::SHIFT_MAX);
        self.order_failed = self.order_failed.min(order);
    }

    /// A run for this order has made a block.
    pub fn succeeded(&mut self, order: u8) {
        (self.considered, self.shift) = (0, 0);
        if order >= self.order_failed {
            self.order_failed = order + 1;
        }
    }
}

/// The block that a run of compaction must free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Its order.
    pub order: u8,
    /// Whose pageblocks it may be of.
    pub migrate_type: MigrateType,
    /// The highest zone that it may be in.
    pub class: ZoneType,
}

impl Zone {
    /// Returns whether compaction for a block can help: free pages for the copies, and a lack of the block that is due to how free pages lie.
    pub fn is_suitable(&self, wanted: &Wanted) -> bool {
        if !self.has_room_to_compact(self.free_pages(), wanted) {
            return false;
        }
        let index = self.fragmentation_index(wanted.order);
        wanted.order <= COSTLY_ORDER || !(0..=EXTFRAG_THRESHOLD).contains(&index)
    }

    /// Returns whether reclaim has done its part for a block: the block exists, or compaction can make it and leave the zone above its high watermark.
    pub fn is_ready_to_compact(&self, wanted: &Wanted) -> bool {
        let Wanted { order, class, .. } = *wanted;
        if self.watermark_ok(order, self.mark(Watermark::Min), class, Rights::empty()) {
            return true;
        }
        let mark = self.mark(Watermark::High) + compact_gap(order);
        self.is_suitable(wanted) && self.watermark_ok(0, mark, class, Rights::empty())
    }

    /// Returns whether there would be free pages for the copies if so many were free.
    pub fn has_room_to_compact(&self, free: u64, wanted: &Wanted) -> bool {
        let Wanted { order, class, .. } = *wanted;
        let mark = if order > COSTLY_ORDER { Watermark::Low } else { Watermark::Min };
        self.watermark_ok_with(free, 0, self.mark(mark) + compact_gap(order), class, Rights::empty())
    }
}

/// Free pages that compaction for a block works with: one for each page that moves, and as many again.
pub fn compact_gap(order: u8) -> u64 {
    2 << order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_that_fails_puts_off_twice_as_many() {
        let mut deferral = Deferral::default();
        let tries = |deferral: &mut Deferral| (1..).find(|_| !deferral.puts_off(4)).unwrap();
        assert_eq!(tries(&mut deferral), 1);
        for expected in [2, 4, 8, 16, 32, 64, 64] {
            deferral.failed(4);
            assert!(!deferral.puts_off(3), "a smaller order has not failed");
            assert_eq!(tries(&mut deferral), expected);
        }
        deferral.succeeded(4);
        assert_eq!(tries(&mut deferral), 1);
    }
}
