//! Deferred compaction: a zone remembers runs that did not help, and they put off the next ones. [machine 2.11]

use crate::page_alloc::request::MigrateType;
use crate::units::ZoneType;

/// When a zone is compacted again after runs that did not help.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferral {
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
    /// Of so many tries in a row, the longest deferral lets one run.
    pub(crate) const LONGEST: u32 = 1 << Self::SHIFT_MAX;

    /// Whether a run for this order is left out; it counts as considered.
    #[doc(alias = "compaction_deferred")]
    pub(crate) fn puts_off(&mut self, order: u8) -> bool {
        if order < self.order_failed {
            return false;
        }
        self.considered = (self.considered + 1).min(1 << self.shift);
        self.considered < 1 << self.shift
    }

    /// A run for this order has gone through the zone and made no block.
    #[doc(alias = "defer_compaction")]
    pub(crate) fn failed(&mut self, order: u8) {
        self.considered = 0;
        self.shift = (self.shift + 1).min(Self::SHIFT_MAX);
        self.order_failed = self.order_failed.min(order);
    }

    /// A run for this order has made a block.
    pub(crate) fn succeeded(&mut self, order: u8) {
        (self.considered, self.shift) = (0, 0);
        if order >= self.order_failed {
            self.order_failed = order + 1;
        }
    }
}

/// The block that a run of compaction wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    pub(crate) order: u8,
    pub(crate) migrate_type: MigrateType,
    pub(crate) class: ZoneType,
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
