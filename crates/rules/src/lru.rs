//! Rules of the LRU: which lists there are, and how generations are kept. [reclaim 2, 4]

mod generations; // how each era keeps its generations
mod pass; // how each era makes a pass over them

pub use generations::*;
pub use pass::*;

use crate::choice::choice;
use crate::era::Era;
use pageout_policy::{Listed, POLICIES};

/// The lists that an LRU keeps its folios on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lru {
    /// Active and inactive, for each type: the classic LRU of Linux.
    TwoLists,
    /// Pages of about the same age together: the multi-generational LRU of Linux.
    Generations,
    /// No lists: a policy that is a guest keeps the pages of each lruvec in its own way.
    Guest(&'static Listed),
}

/// The kinds of lists that Linux has.
const FAMILIES: [Era; 2] = [
    Era::new("two_lists", "two_lists ..", "A B C D"),
    Era::new("generations", "generations 6.1..", "A B C D M"),
];

/// When there was which: a guest never.
pub(crate) const LISTS: [Era; FAMILIES.len() + POLICIES.len()] = {
    let mut eras = [FAMILIES[0]; FAMILIES.len() + POLICIES.len()];
    let mut at = 1;
    while at < eras.len() {
        eras[at] = match at < FAMILIES.len() {
            true => FAMILIES[at],
            false => Era::new(POLICIES[at - FAMILIES.len()].name, "never", ""),
        };
        at += 1;
    }
    eras
};

const NAMES: [&str; LISTS.len()] = {
    let mut names = [""; LISTS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = LISTS[at].value;
        at += 1;
    }
    names
};

choice! {
    /// Which lists reclaim walks while a group is switched between MGLRU and the classic LRU.
    Switching {
        /// Reclaim walks both, so that no page is ever out of reach.
        Both = "both",
        /// Reclaim walks the new lists only, which ends in a false OOM if the group is at its limit. The fix
        /// was merged in March 2026.
        NewOnly = "new_only",
    }
}

choice! {
    /// How accesses are counted, and what a young page-table entry does.
    References {
        /// The second access sets WORKINGSET. A walk that finds a page young makes it youngest directly.
        Linux6_12 = "6.12",
        /// The fifth access sets WORKINGSET. A page that was only mapped becomes youngest when it is found
        /// young twice.
        Linux6_16 = "6.16",
        /// Three bits are one number, 0 to 7, to which every access adds, read or mapped. It promotes the page
        /// by itself. MGLRU-FG, as posted for the third time in October 2026.
        Frequency = "fg3",
    }
}

choice! {
    /// What the gauges of active and inactive pages count of generations.
    Gauges {
        /// The two youngest generations are active: when one is opened, a complete generation becomes inactive in one step.
        Generations = "generations",
        /// Pages that were accessed three times are active. Only with the references of MGLRU-FG.
        Count = "count",
    }
}

impl Lru {
    /// The words of all values, in order.
    pub const NAMES: &[&str] = &NAMES;

    /// The word of the value.
    #[inline]
    pub const fn name(self) -> &'static str {
        match self {
            Lru::TwoLists => "two_lists",
            Lru::Generations => "generations",
            Lru::Guest(listed) => listed.name,
        }
    }

    /// The value of a word.
    pub fn by_name(name: &str) -> Option<Lru> {
        match name {
            "two_lists" => Some(Lru::TwoLists),
            "generations" => Some(Lru::Generations),
            _ => Listed::by_name(name).map(Lru::Guest),
        }
    }

    /// Returns whether `lru_gen/enabled` applies: only to the two LRUs of Linux.
    #[inline]
    pub fn may_be_switched(self) -> bool {
        matches!(self, Lru::TwoLists | Lru::Generations)
    }
}
