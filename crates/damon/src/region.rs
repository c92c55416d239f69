//! A region: a range of addresses that is sampled as one, with its count of accesses and its age. [access-aware 1.1, 1.5]

/// The count that is seen between two window ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// That of the finished window: schemes run at its end only.
    Finished,
    /// A sum that loses a sample's share of the last window with each new sample.
    MovingSum,
    /// The count so far, and the last window's in proportion to the samples that are left.
    Weighted,
}

/// Parts of a count: 10,000 are one access.
pub(crate) const PARTS: u64 = 10_000;

/// A range of addresses that is sampled as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its first address.
    pub start: u64,
    /// The address behind its last one.
    pub end: u64,
    /// The address that is sampled now.
    pub sampled: u64,
    /// Samples of this window that found an access.
    pub nr_accesses: u32,
    /// The moving sum of accesses, in 1/10,000.
    pub(crate) moving: u64,
    /// Samples of the last window that found an access.
    pub last_nr_accesses: u32,
    /// Windows for which its accesses have been about the same.
    pub age: u32,
}

impl Region {
    /// A range that has not been sampled yet.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn new(start: u64, end: u64) -> Region {
        assert!(start < end, "a region of {start:#x}..{end:#x} has no address");
        Region { start, end, sampled: start, nr_accesses: 0, moving: 0, last_nr_accesses: 0, age: 0 }
    }

    /// Its size in addresses.
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Its accesses as schemes see them, when `left` of the `samples` of a window are still to come.
    pub fn accesses(&self, between: Between, samples: u32, left: u32) -> u32 {
        match between {
            Between::Finished => self.nr_accesses,
            Between::MovingSum => (self.moving / PARTS) as u32,
            Between::Weighted => {
                let rest = u64::from(self.last_nr_accesses) * u64::from(left) / u64::from(samples.max(1));
                self.nr_accesses + rest as u32
            }
        }
    }

    /// A sample is over.
    pub(crate) fn sampled(&mut self, is_young: bool, samples: u32) {
        let share = u64::from(self.last_nr_accesses) * PARTS / u64::from(samples.max(1));
        self.moving = self.moving.saturating_sub(share) + if is_young { PARTS } else { 0 };
        self.nr_accesses += u32::from(is_young);
    }

    /// A window is over: its count becomes the last one.
    pub(crate) fn reset(&mut self) {
        self.last_nr_accesses = self.nr_accesses;
        self.nr_accesses = 0;
    }

    /// Takes the address range behind it in: counts and ages are means, weighted by size.
    pub(crate) fn join(&mut self, right: &Region) {
        debug_assert_eq!(self.end, right.start, "regions that do not touch are joined");
        let (left_size, right_size) = (u128::from(self.size()), u128::from(right.size()));
        let mean = |left: u64, right: u64| {
            (u128::from(left) * left_size + u128::from(right) * right_size) / (left_size + right_size)
        };
        self.nr_accesses = mean(self.nr_accesses.into(), right.nr_accesses.into()) as u32;
        self.moving = mean(self.moving, right.moving) as u64;
        self.age = mean(self.age.into(), right.age.into()) as u32;
        self.end = right.end;
    }

    /// Cuts it after `left_size` addresses, and returns the right part.
    pub(crate) fn cut(&mut self, left_size: u64, copies_count: bool) -> Region {
        debug_assert!(0 < left_size && left_size < self.size(), "{left_size} of {self:?} is cut off");
        let start = self.start + left_size;
        let right = Region { start, sampled: start, ..*self };
        self.end = start;
        match copies_count {
            true => right,
            false => Region { nr_accesses: 0, moving: 0, ..right },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64, nr_accesses: u32, age: u32) -> Region {
        Region {
            nr_accesses,
            moving: u64::from(nr_accesses) * PARTS,
            last_nr_accesses: start as u32 + 1,
            age,
            ..Region::new(start, end)
        }
    }

    #[test]
    fn join_weights_counts_and_ages_by_size() {
        let mut left = region(0, 100, 4, 7);
        left.join(&region(100, 400, 9, 2));
        // (4 * 100 + 9 * 300) / 400 = 7.75, (7 * 100 + 2 * 300) / 400 = 3.25
        assert_eq!((left.start, left.end, left.nr_accesses, left.age), (0, 400, 7, 3));
        assert_eq!(left.last_nr_accesses, 1, "that of the left one stays");
    }

    #[test]
    fn cut_copies_age_and_count_by_rule() {
        for copies in [false, true] {
            let mut left = region(0, 100, 4, 7);
            let right = left.cut(30, copies);
            assert_eq!((left.end, right.start, right.end, right.age), (30, 30, 100, 7));
            assert_eq!(right.last_nr_accesses, left.last_nr_accesses);
            assert_eq!(right.nr_accesses, if copies { 4 } else { 0 });
        }
    }

    #[test]
    fn count_between_windows_follows_each_rule() {
        let mut region = Region { last_nr_accesses: 10, moving: 10 * PARTS, ..Region::new(0, 4096) };
        for _ in 0..5 {
            region.sampled(true, 20);
        }
        // Five of twenty samples: 10 - 5 * 10 / 20 + 5, and 5 + 10 * 15 / 20.
        assert_eq!(region.accesses(Between::MovingSum, 20, 15), 12);
        assert_eq!(region.accesses(Between::Weighted, 20, 15), 12);
        assert_eq!(region.accesses(Between::Finished, 20, 15), 5);
        region.sampled(false, 20);
        assert_eq!(region.accesses(Between::MovingSum, 20, 14), 12, "12.0, from 12.5");
        assert_eq!(region.accesses(Between::Weighted, 20, 14), 12);
    }

    #[test]
    fn weighted_count_starts_and_ends_at_whole_windows() {
        let mut region = Region { nr_accesses: 13, last_nr_accesses: 4, ..Region::new(0, 4096) };
        assert_eq!(region.accesses(Between::Weighted, 20, 0), 13);
        region.reset();
        assert_eq!(region.accesses(Between::Weighted, 20, 20), 13);
    }
}
