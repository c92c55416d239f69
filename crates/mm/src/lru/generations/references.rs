//! How often a page was used through file descriptors, in three bits, and the tier that this puts it in.
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
//! page is being used: isolation clears it where REFERENCED is clear. [reclaim 4.2; reclaim-6.12 4.2]
//!
//! MGLRU-FG has one number instead, R + 2 W + 4 C, that every access adds to and that moves pages (the engine's `frequency.rs`).

use crate::memory::folio::UseBits;
use pageout_rules::lru::{References, RmapPromote};

/// Largest count of [`References::Frequency`].
pub const FREQUENCY_MAX: u8 = 7;
/// Accesses from which on a page is active, and as many as one that moves to a younger generation takes along.
pub const ACTIVE_FROM: u8 = 3;

/// The next step of the ladder.
const fn accessed(references: References, use_bits: UseBits) -> UseBits {
    if matches!(references, References::Frequency) {
        let refs = frequency(use_bits);
        return with_frequency(use_bits, if refs < FREQUENCY_MAX { refs + 1 } else { refs });
    }
    let (referenced, workingset) =
        (use_bits.contains(UseBits::REFERENCED), use_bits.contains(UseBits::WORKINGSET));
    let count = use_bits.counter();
    let counts_on = match references {
        References::Linux6_12 => workingset,
        References::Linux6_16 | References::Frequency => true,
    };
    if !referenced {
        let use_bits = use_bits.union(UseBits::REFERENCED);
        return match references {
            References::Linux6_12 => use_bits,
            References::Linux6_16 | References::Frequency => use_bits.with_counter(0),
        };
    }
    if !counts_on || count == UseBits::COUNTER_MAX {
        return use_bits.union(UseBits::WORKINGSET);
    }
    use_bits.with_counter(count + 1)
}

/// [`CountsUse::accessed`] of every combination of use bits.
pub const fn ladder(references: References) -> [u8; 32] {
    let mut steps = [0; 32];
    let mut bits = 0;
    while bits < 32 {
        steps[bits as usize] = accessed(references, UseBits::from_bits_truncate(bits)).bits();
        bits += 1;
    }
    steps
}

/// The count of [`References::Frequency`].
const fn frequency(use_bits: UseBits) -> u8 {
    use_bits.contains(UseBits::REFERENCED) as u8
        + 2 * use_bits.contains(UseBits::WORKINGSET) as u8
        + 4 * (use_bits.counter() & 1)
}

/// These bits with another count of [`References::Frequency`].
pub const fn with_frequency(use_bits: UseBits, refs: u8) -> UseBits {
    let mut counted = use_bits.difference(UseBits::REFERENCED.union(UseBits::WORKINGSET));
    if refs & 1 != 0 {
        counted = counted.union(UseBits::REFERENCED);
    }
    if refs & 2 != 0 {
        counted = counted.union(UseBits::WORKINGSET);
    }
    counted.with_counter(refs >> 2)
}

/// Interpretation of a page's use bits by each kernel.
pub trait CountsUse: Copy {
    /// The next step of the ladder.
    #[doc(alias = "folio_inc_refs")]
    fn accessed(self, use_bits: UseBits) -> UseBits;

    /// What the bits count: 0 to 4, or to 7.
    fn refs(self, use_bits: UseBits) -> u8;

    /// The tier (0 to 3) of a page, from how often it was read and whether it is of the working set.
    #[doc(alias = "lru_tier_from_refs")]
    fn tier(self, refs: u8, workingset: bool) -> usize;

    /// At the top of the ladder, where a further access could not show.
    fn is_full(self, use_bits: UseBits) -> bool;

    /// The use bits of a page that moves to a younger generation without being used. It must reach its tier again; under MGLRU-FG the upper two.
    fn aged(self, use_bits: UseBits) -> UseBits;

    /// The use bits of a page whose page-table entry was found young, and whether that makes it youngest. In 6.16 a page that was only mapped has to
    /// be found young twice, because the fault that maps a page leaves its entry young. `is_code`: one use is enough if it is a program's code (7.3).
    /// MGLRU-FG asks this of pages that reclaim has isolated.
    fn found_young(self, use_bits: UseBits, is_code: bool) -> (UseBits, bool);

    /// The use bits of a page whose entry reclaim found young through the reverse map, and whether that activates it. Since 6.16.
    /// [mglru-2026 2.10, 2.11, 3.2]
    fn found_referenced(self, use_bits: UseBits, rule: RmapPromote, is_code: bool) -> (UseBits, bool);

    /// The use bits of a page that reclaim isolates.
    fn isolated(self, use_bits: UseBits) -> UseBits;
}

impl CountsUse for References {
    #[inline]
    fn accessed(self, use_bits: UseBits) -> UseBits {
        accessed(self, use_bits)
    }

    fn refs(self, use_bits: UseBits) -> u8 {
        match self {
            References::Frequency => frequency(use_bits),
            References::Linux6_12 => use_bits.counter() + u8::from(use_bits.contains(UseBits::WORKINGSET)),
            References::Linux6_16 if use_bits.contains(UseBits::REFERENCED) => use_bits.counter() + 1,
            References::Linux6_16 => 0,
        }
    }

    fn tier(self, refs: u8, workingset: bool) -> usize {
        match self {
            // A shadow may have been left by other references.
            References::Frequency => [0, 0, 1, 2, 2, 3, 3, 3][usize::from(refs)],
            References::Linux6_12 => [0, 1, 2, 2, 3][usize::from(refs.min(4))],
            References::Linux6_16 if workingset => 3,
            References::Linux6_16 => [0, 0, 1, 2, 2][usize::from(refs.min(4))],
        }
    }

    fn is_full(self, use_bits: UseBits) -> bool {
        match self {
            // Such a page has moved on by itself.
            References::Frequency => false,
            References::Linux6_12 => self.refs(use_bits) == 4,
            References::Linux6_16 => self.refs(use_bits) == 4 && use_bits.contains(UseBits::WORKINGSET),
        }
    }

    fn aged(self, use_bits: UseBits) -> UseBits {
        match self {
            References::Frequency => with_frequency(use_bits, self.refs(use_bits).min(2)),
            References::Linux6_12 => {
                use_bits - (UseBits::REFERENCED | UseBits::COUNTER | UseBits::WORKINGSET)
            }
            References::Linux6_16 => use_bits - (UseBits::REFERENCED | UseBits::COUNTER),
        }
    }

    fn found_young(self, use_bits: UseBits, is_code: bool) -> (UseBits, bool) {
        match self {
            References::Frequency => {
                let refs = self.refs(use_bits) + 1;
                (with_frequency(use_bits, refs.min(ACTIVE_FROM)), refs > 1 || is_code)
            }
            References::Linux6_12 => (self.aged(use_bits), true),
            References::Linux6_16
                if is_code || use_bits.intersects(UseBits::REFERENCED | UseBits::WORKINGSET) =>
            {
                (self.aged(use_bits) | UseBits::WORKINGSET, true)
            }
            References::Linux6_16 => ((use_bits | UseBits::REFERENCED) - UseBits::COUNTER, false),
        }
    }

    fn found_referenced(self, use_bits: UseBits, rule: RmapPromote, is_code: bool) -> (UseBits, bool) {
        let was_seen = use_bits.intersects(UseBits::REFERENCED | UseBits::WORKINGSET);
        let is_gradual = self == References::Linux6_16 && rule == RmapPromote::RefsOverOne;
        if is_gradual && was_seen && self.refs(use_bits) <= 1 {
            return (self.accessed(use_bits), true);
        }
        self.found_young(use_bits, is_code)
    }

    fn isolated(self, use_bits: UseBits) -> UseBits {
        let is_used = use_bits.contains(UseBits::REFERENCED);
        match self {
            References::Frequency => use_bits,
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
    fn the_count_of_fg_is_one_number_and_tells_tiers_by_its_logarithm() {
        let of = |refs: u8| with_frequency(UseBits::ACTIVE, refs);
        let fg = References::Frequency;
        for refs in 0..=7 {
            assert_eq!(fg.refs(of(refs)), refs);
            assert_eq!(fg.isolated(of(refs)), of(refs));
            assert_eq!(fg.refs(fg.accessed(of(refs))), (refs + 1).min(7));
            assert_eq!(fg.refs(fg.aged(of(refs))), refs.min(2));
            assert!(of(refs).contains(UseBits::ACTIVE));
        }
        assert_eq!((0..=7).map(|refs| fg.tier(refs, true)).collect::<Vec<_>>(), [0, 0, 1, 2, 2, 3, 3, 3]);
    }

    /// Kept with the first, activated with the second; of code with the first.
    #[test]
    fn reclaim_takes_a_page_for_used_by_fg_once_it_was_accessed_before() {
        let found = |refs: u8, is_code: bool| {
            let use_bits = with_frequency(UseBits::empty(), refs);
            let rule = RmapPromote::RefsOverOne;
            let (use_bits, is_used) = References::Frequency.found_referenced(use_bits, rule, is_code);
            (References::Frequency.refs(use_bits), is_used)
        };
        assert_eq!(found(0, false), (1, false));
        assert_eq!(found(0, true), (1, true));
        assert_eq!(found(1, false), (2, true));
        assert_eq!(found(6, false), (3, true));
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
