//! The controller of the multi-generational LRU: refaults per eviction as the error signal of a feedback loop.
//!
//! Pages accessed through file descriptors belong to tiers, by how often they were (`lru/generations/references.rs`). For each
//! type and tier the controller counts the pages evicted and those that came back:
//!
//! ```text
//!              refaulted                      a tier whose share is worse than that of tier 0 by more than its gain is
//!   share =  ─────────────                    protected; a type whose share is worse than the other's by more than
//!             evicted (+ protected)           swappiness allows is spared
//! ```
//! The counts of the oldest generation are the proportional term. The integral term is an average of the generations before it: each weighs half as
//! much as the one after it. Fewer refaults than [`Position::NOISE`] do not count as a signal. [reclaim 4.9; reclaim-6.12 4.9]
//!
//! *When it misleads:* a generation that ends too soon for its pages to come back teaches nothing.

use crate::units::LruType;

/// Tiers of a generation.
pub const TIERS: usize = 4;

/// Events of the pages of a tier while one generation was the oldest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Pages of it that came back.
    pub refaulted: u64,
    /// Pages of it that were evicted.
    pub evicted: u64,
    /// Pages of it that eviction passed by.
    pub protected: u64,
}

/// What happened in the generations before, each weighing half as much as the one after it.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    /// Pages that came back.
    pub refaulted: u64,
    total: u64,
}

/// State of the controller of one lruvec.
#[derive(Debug)]
pub struct Feedback {
    /// By generation, type and tier.
    pub tallies: Vec<[[Tally; TIERS]; 2]>,
    averages: [[Average; TIERS]; 2],
    /// Pages evicted since the last carry-over, where no generations mark the time.
    pub evicted_since: [u64; 2],
}

/// Refaults of so many pages, and the weight that an excess of them has.
#[doc(alias = "read_ctrl_pos")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// Pages that came back.
    pub refaulted: u64,
    /// Pages that were evicted or protected: those that could come back.
    pub total: u64,
    /// The weight that an excess of refaults has.
    pub gain: u64,
}

impl Position {
    /// Fewer refaults than this may be chance.
    pub const NOISE: u64 = 64;

    /// Returns whether evicting these pages is no more expensive than evicting those of the reference: their refaults per page, weighted, are
    /// no more.
    #[doc(alias = "positive_ctrl_err")]
    pub fn is_cheaper_than(self, reference: Position) -> bool {
        let product = |a: u64, b: u64, c: u64| u128::from(a) * u128::from(b) * u128::from(c);
        self.refaulted < Position::NOISE
            || product(self.refaulted, reference.total + Position::NOISE, reference.gain)
                <= product(reference.refaulted + 1, self.total, self.gain)
    }
}

/// The limit up to which tiers of a type are evicted, and the comparison that set it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefTierLimit {
    /// The highest tier that isn't protected.
    pub highest: usize,
    /// The refaults that the tiers are compared with; `None` where refaults protect nothing.
    pub reference: Option<Position>,
    /// True if `reference` is tier 0 of the other type; else it is of the same type.
    pub is_other_type: bool,
    /// Weight of the tiers' own refaults.
    pub gain: u64,
}

/// The reason why a round takes its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeReason {
    /// A swappiness of 0, or too little swap for a batch: file memory only.
    NoSwap,
    /// The oldest anonymous generation is older than the oldest one of files.
    AnonIsOlder {
        /// Oldest generations of anonymous and file memory.
        oldest: [u64; 2],
    },
    /// A swappiness of 1 takes files, one of 200 anonymous memory.
    Swappiness(u8),
    /// Refaults: file memory, unless it fares worse than anonymous memory by more than swappiness allows.
    Refaults {
        /// The refaults of anonymous memory.
        anon: Position,
        /// The refaults of file memory.
        file: Position,
    },
    /// The type that is behind its share.
    Shares {
        /// Pages of each type taken lately.
        taken: [u64; 2],
        /// Share that each type should give, relative to the other.
        weights: [u64; 2],
    },
    /// The type that was chosen first had nothing to give.
    OtherHadNothing {
        /// The generations of the type: with no more than eviction spares, none is checked.
        generations: u64,
        /// Pages on the list of its oldest.
        oldest: u64,
        /// Pages in the youngest generation of the type.
        youngest: u64,
        /// Pages in all of them.
        all: u64,
    },
}

/// Comparison of the two types by their refaults.
pub struct CheaperType {
    /// The type to take from.
    pub kind: LruType,
    /// The tiers that may be evicted.
    pub limit: RefTierLimit,
    /// The comparison that chose it.
    pub reason: TypeReason,
}

impl Feedback {
    /// Nothing has happened yet in so many generations.
    pub fn new(generations: usize) -> Feedback {
        Feedback {
            tallies: vec![[[Tally::default(); TIERS]; 2]; generations],
            averages: Default::default(),
            evicted_since: [0; 2],
        }
    }

    /// Takes over what another has learnt: averages of (refaulted, total) by type and tier, and (refaulted, evicted) of each type's oldest
    /// generation.
    pub fn set(
        &mut self,
        oldest: [usize; 2],
        averages: &[[(u64, u64); TIERS]; 2],
        present: &[[(u64, u64); TIERS]; 2],
    ) {
        for kind in 0..2 {
            self.averages[kind] = averages[kind].map(|(refaulted, total)| Average { refaulted, total });
            self.tallies[oldest[kind]][kind] =
                present[kind].map(|(refaulted, evicted)| Tally { refaulted, evicted, protected: 0 });
        }
    }

    /// Eviction has passed by pages of a tier.
    pub fn note_protected(&mut self, generation: usize, kind: LruType, tier: usize, pages: u64) {
        self.tallies[generation][kind as usize][tier].protected += pages;
    }

    /// Refaults of a generation's tiers, including past generations.
    pub fn position(
        &self,
        generation: usize,
        kind: LruType,
        tiers: std::ops::Range<usize>,
        gain: u64,
    ) -> Position {
        let mut sum = Position { refaulted: 0, total: 0, gain };
        for tier in tiers {
            let tally = self.tallies[generation][kind as usize][tier];
            let average = self.averages[kind as usize][tier];
            sum.refaulted += average.refaulted + tally.refaulted;
            sum.total += average.total + tally.evicted + tally.protected;
        }
        sum
    }

    /// A generation has ended: what happened in it becomes the past.
    #[doc(alias = "reset_ctrl_pos")]
    pub fn carry_over(&mut self, generation: usize, kind: LruType, smoothing: bool) {
        for (average, tally) in
            self.averages[kind as usize].iter_mut().zip(self.tallies[generation][kind as usize])
        {
            let remembered = u64::from(smoothing);
            average.refaulted = (average.refaulted + tally.refaulted) / 2 * remembered;
            average.total = (average.total + tally.evicted + tally.protected) / 2 * remembered;
        }
    }

    /// A new generation begins; nothing has happened in it.
    pub fn clear(&mut self, generation: usize) {
        self.tallies[generation] = Default::default();
    }

    /// (averages of refaults and of totals), for `lru_gen_full`.
    pub fn past(&self, kind: LruType, tier: usize) -> (u64, u64) {
        let average = self.averages[kind as usize][tier];
        (average.refaulted, average.total)
    }

    /// (refaulted, evicted, protected) of a generation, for `lru_gen_full`.
    pub fn present(&self, generation: usize, kind: LruType, tier: usize) -> (u64, u64, u64) {
        let tally = self.tallies[generation][kind as usize][tier];
        (tally.refaulted, tally.evicted, tally.protected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(refaulted: u64, total: u64, gain: u64) -> Position {
        Position { refaulted, total, gain }
    }

    #[test]
    fn few_refaults_are_noise() {
        assert!(position(63, 64, 2).is_cheaper_than(position(0, 1_000_000, 1)));
        assert!(!position(64, 64, 2).is_cheaper_than(position(0, 1_000_000, 1)));
    }

    #[test]
    fn a_tier_is_spared_when_it_refaults_more_than_its_gain_allows() {
        // Tier 0: a tenth comes back. Twice that is the limit at gains 1 : 2.
        let reference = position(1000, 10_000, 1);
        assert!(position(190, 1000, 2).is_cheaper_than(reference));
        assert!(!position(210, 1000, 2).is_cheaper_than(reference));
    }

    #[test]
    fn the_past_weighs_half_as_much_with_each_generation() {
        let mut feedback = Feedback::new(4);
        feedback.tallies[0][1][2] = Tally { refaulted: 80, evicted: 100, protected: 60 };
        feedback.carry_over(0, LruType::File, true);
        assert_eq!(feedback.past(LruType::File, 2), (40, 80));
        feedback.carry_over(1, LruType::File, true);
        assert_eq!(feedback.past(LruType::File, 2), (20, 40));
        feedback.carry_over(1, LruType::File, false);
        assert_eq!(feedback.past(LruType::File, 2), (0, 0));
    }
}
