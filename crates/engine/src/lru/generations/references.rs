//! How often a page was used through file descriptors, told by three bits, and the tier that this puts it in.
//!
//! ```text
//!                    6.12                    6.16
//!   1st access       R          refs 0       R          refs 1        R  REFERENCED
//!   2nd              R, W       refs 1       R, C=1     refs 2        W  WORKINGSET
//!   3rd              R, W, C=1  refs 2       R, C=2     refs 3        C  the counter, two bits
//!   4th              R, W, C=2  refs 3       R, C=3     refs 4
//!   5th              R, W, C=3  refs 4       and W      tier 3
//! ```
//! Nothing moves on a list for it: eviction reads the bits when it meets the page. A tier is the logarithm of the count,
//! because the difference between one use and two says more than that between three and four. A count survives only while the
//! page is being used: isolation clears it where REFERENCED is clear. [reclaim 4.2 and its 6.12 form]

use super::RmapPromote;
use crate::memory::folio::UseBits;
use crate::switch::choice;

choice! {
    /// How accesses are counted, and what a young page-table entry does.
    References {
        /// WORKINGSET is set by the second access; a walk that finds a page young makes it youngest at once.
        Linux6_12 = "6.12",
        /// WORKINGSET is set by the fifth access; a page that was only mapped is made youngest when found young twice.
        Linux6_16 = "6.16",
    }
}

impl References {
    /// The next step of the ladder.
    pub(crate) const fn accessed(self, use_bits: UseBits) -> UseBits {
        let (referenced, workingset) =
            (use_bits.contains(UseBits::REFERENCED), use_bits.contains(UseBits::WORKINGSET));
        let count = use_bits.counter();
        let counts_on = match self {
            References::Linux6_12 => workingset,
            References::Linux6_16 => true,
        };
        if !referenced {
            let use_bits = use_bits.union(UseBits::REFERENCED);
            return match self {
                References::Linux6_12 => use_bits,
                References::Linux6_16 => use_bits.with_counter(0),
            };
        }
        if !counts_on || count == UseBits::COUNTER_MAX {
            return use_bits.union(UseBits::WORKINGSET);
        }
        use_bits.with_counter(count + 1)
    }

    /// [`References::accessed`] of every combination of use bits.
    pub(crate) const fn ladder(self) -> [u8; 32] {
        let mut steps = [0; 32];
        let mut bits = 0;
        while bits < 32 {
            steps[bits as usize] = self.accessed(UseBits::from_bits_truncate(bits)).bits();
            bits += 1;
        }
        steps
    }

    /// What the bits count: 0 to 4.
    pub(crate) fn refs(self, use_bits: UseBits) -> u8 {
        match self {
            References::Linux6_12 => use_bits.counter() + u8::from(use_bits.contains(UseBits::WORKINGSET)),
            References::Linux6_16 if use_bits.contains(UseBits::REFERENCED) => use_bits.counter() + 1,
            References::Linux6_16 => 0,
        }
    }

    /// 0 to 3.
    pub(crate) fn tier(self, refs: u8, workingset: bool) -> usize {
        match self {
            References::Linux6_12 => [0, 1, 2, 2, 3][usize::from(refs)],
            References::Linux6_16 if workingset => 3,
            References::Linux6_16 => [0, 0, 1, 2, 2][usize::from(refs)],
        }
    }

    /// At the top of the ladder, where a further access could not show.
    pub(crate) fn is_full(self, use_bits: UseBits) -> bool {
        match self {
            References::Linux6_12 => self.refs(use_bits) == 4,
            References::Linux6_16 => self.refs(use_bits) == 4 && use_bits.contains(UseBits::WORKINGSET),
        }
    }

    /// Of a page that moves on to a younger generation without being used: it has to earn its tier again.
    pub(crate) fn aged(self, use_bits: UseBits) -> UseBits {
        match self {
            References::Linux6_12 => {
                use_bits - (UseBits::REFERENCED | UseBits::COUNTER | UseBits::WORKINGSET)
            }
            References::Linux6_16 => use_bits - (UseBits::REFERENCED | UseBits::COUNTER),
        }
    }

    /// Of a page whose page-table entry was found young, and whether that makes it youngest. In 6.16 a page that was only
    /// mapped has to be found young twice, for the fault that maps a page leaves its entry young; `is_code`: not if it is a program's
    /// code that one use is enough for (7.3).
    pub(crate) fn found_young(self, use_bits: UseBits, is_code: bool) -> (UseBits, bool) {
        match self {
            References::Linux6_12 => (self.aged(use_bits), true),
            References::Linux6_16
                if is_code || use_bits.intersects(UseBits::REFERENCED | UseBits::WORKINGSET) =>
            {
                (self.aged(use_bits) | UseBits::WORKINGSET, true)
            }
            References::Linux6_16 => ((use_bits | UseBits::REFERENCED) - UseBits::COUNTER, false),
        }
    }

    /// Of a page whose page-table entry reclaim has found young through the reverse map, and whether that activates it, by the
    /// references of 6.16. [mglru-2026 2.10, 2.11]
    pub(crate) fn found_referenced(
        self,
        use_bits: UseBits,
        rule: RmapPromote,
        is_code: bool,
    ) -> (UseBits, bool) {
        let was_seen = use_bits.intersects(UseBits::REFERENCED | UseBits::WORKINGSET);
        if rule == RmapPromote::RefsOverOne && was_seen && self.refs(use_bits) <= 1 {
            return (self.accessed(use_bits), true);
        }
        self.found_young(use_bits, is_code)
    }

    /// Of a page that reclaim takes off its list.
    pub(crate) fn isolated(self, use_bits: UseBits) -> UseBits {
        let is_used = use_bits.contains(UseBits::REFERENCED);
        match self {
            References::Linux6_12 if is_used => use_bits - UseBits::REFERENCED,
            References::Linux6_12 => use_bits - (UseBits::COUNTER | UseBits::WORKINGSET),
            References::Linux6_16 if is_used => use_bits,
            References::Linux6_16 => use_bits - UseBits::COUNTER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiers(references: References) -> Vec<(u8, usize)> {
        let climb = |use_bits: &UseBits| Some(references.accessed(*use_bits));
        let accesses = std::iter::successors(Some(UseBits::empty()), climb).skip(1).take(6);
        accesses
            .map(|use_bits| {
                let refs = references.refs(use_bits);
                (refs, references.tier(refs, use_bits.contains(UseBits::WORKINGSET)))
            })
            .collect()
    }

    #[test]
    fn accesses_climb_the_ladder_of_their_era_and_stop_at_its_top() {
        assert_eq!(tiers(References::Linux6_12), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (4, 3)]);
        assert_eq!(tiers(References::Linux6_16), [(1, 0), (2, 1), (3, 2), (4, 2), (4, 3), (4, 3)]);
    }

    /// R with C = 0 becomes C = 1; W alone gains R; R with C > 0 is in use; nothing becomes R, and is kept.
    #[test]
    fn reclaim_takes_a_page_for_used_since_7_2_once_it_was_accessed_more_than_once() {
        let found = |use_bits: UseBits, is_code: bool| {
            References::Linux6_16.found_referenced(use_bits, RmapPromote::RefsOverOne, is_code)
        };
        let (r, w) = (UseBits::REFERENCED, UseBits::WORKINGSET);
        assert_eq!(found(UseBits::empty(), false), (r, false));
        assert_eq!(found(r, false), (r.with_counter(1), true));
        assert_eq!(found(w, false), (w | r, true));
        assert_eq!(found(r.with_counter(1), false), (w, true));
        assert_eq!(found((w | r).with_counter(2), false), (w, true));
        assert_eq!(found(UseBits::empty(), true), (w, true), "code is in use after one use (7.3)");
        let before = References::Linux6_16.found_referenced(r, RmapPromote::SecondSeen, false);
        assert_eq!(before, (w, true));
    }

    #[test]
    fn a_page_not_used_since_it_was_counted_loses_its_count_when_it_is_isolated() {
        let counted = (UseBits::WORKINGSET | UseBits::ACTIVE).with_counter(2);
        assert_eq!(References::Linux6_12.isolated(counted), UseBits::ACTIVE);
        assert_eq!(
            References::Linux6_12.isolated(counted | UseBits::REFERENCED),
            counted,
            "but not if it was"
        );
    }
}
