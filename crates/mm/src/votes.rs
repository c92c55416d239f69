//! Votes on an inode's owner: each round of writing a file counts which memcg most of its pages belong to. [machine 5.8]
//!
//! The past of a file is 16 slots of an eighth of a second of the device's time. A round of writing fills some: a long one several, a
//! short one a single one. Each belongs to who had most pages of its round. One round says little, so more than half of the slots must be
//! foreign before the file becomes another's.
//!
//! A vote stores one name, however many groups dirty the file. If no group has half of the pages, it may end with none; so the group that the last
//! vote ended with is counted separately. The source is an outline and leaves two things open. Here the most pages of three win a round (the owner,
//! the one carried over, the one voted for), and no round is too short to count.

use crate::units::{MemcgId, Nanos};

/// Whose pages a round of writing a file consists of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Votes {
    owner: MemcgId,
    of_owner: u64,
    /// The group that the last round's vote ended with, and how many pages of this round are its.
    carried: Option<MemcgId>,
    of_carried: u64,
    /// The vote of this round: by pages, each against each of another group. The group with the majority is left at the end.
    candidate: Option<MemcgId>,
    lead: u64,
}

impl Votes {
    /// No page was written yet; `carried`: the group that the last round's vote ended with.
    pub fn new(owner: MemcgId, carried: Option<MemcgId>) -> Votes {
        Votes { owner, of_owner: 0, carried, of_carried: 0, candidate: None, lead: 0 }
    }

    /// A page is written that is charged to this group.
    pub fn count(&mut self, memcg: MemcgId) {
        if memcg == self.owner {
            self.of_owner += 1;
            return;
        }
        self.of_carried += u64::from(self.carried == Some(memcg));
        if self.lead == 0 {
            self.candidate = Some(memcg);
        }
        if self.candidate == Some(memcg) { self.lead += 1 } else { self.lead -= 1 }
    }

    /// The group that has won, with how many pages; `None`: nothing was written.
    fn winner(&self) -> Option<(MemcgId, u64)> {
        let foreign = [(self.carried, self.of_carried), (self.candidate, self.lead)];
        let foreign = foreign.into_iter().filter_map(|(memcg, pages)| Some((memcg?, pages)));
        let mut all = std::iter::once((self.owner, self.of_owner)).chain(foreign);
        let first = all.next()?;
        let (memcg, pages) = all.fold(first, |most, other| if other.1 > most.1 { other } else { most });
        (pages > 0).then_some((memcg, pages))
    }
}

/// The history of which group dirties a file, from the rounds of writing it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ForeignHistory {
    /// A bit a slot, the latest lowest: set where another group than the owner had won.
    slots: u16,
    /// The group that the last round's vote ended with.
    carried: Option<MemcgId>,
}

impl ForeignHistory {
    const SLOTS: u32 = u16::BITS;
    /// The device's time that a slot stands for.
    const SLOT: Nanos = Nanos(Nanos::SECOND.0 / 8);
    /// A file changes its owner where more slots than these are foreign.
    const HALF: u32 = 8;

    /// The group that the last round's vote ended with.
    pub fn carried(&self) -> Option<MemcgId> {
        self.carried
    }

    /// Adds a round. `bandwidth`: pages that the device writes in a second. Returns the new owner of the file, if it should change.
    pub fn add(&mut self, votes: &Votes, bandwidth: u64) -> Option<MemcgId> {
        let (winner, pages) = votes.winner()?;
        self.carried = votes.candidate.filter(|_| votes.lead > 0);
        let took = pages * Nanos::SECOND.0 / bandwidth.max(1);
        let slots = took.div_ceil(Self::SLOT.0).min(Self::SLOTS.into()) as u32;
        let shifted = u32::from(self.slots) << slots;
        let is_foreign = winner != votes.owner;
        self.slots = (shifted | if is_foreign { (1 << slots) - 1 } else { 0 }) as u16;
        (is_foreign && self.slots.count_ones() > Self::HALF).then_some(winner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: MemcgId = MemcgId(1);
    const OTHER: MemcgId = MemcgId(2);
    const THIRD: MemcgId = MemcgId(3);

    fn votes(carried: Option<MemcgId>, pages: &[(MemcgId, u64)]) -> Votes {
        let mut votes = Votes::new(OWNER, carried);
        for &(memcg, pages) in pages {
            (0..pages).for_each(|_| votes.count(memcg));
        }
        votes
    }

    #[test]
    fn a_round_is_won_by_who_has_most_of_its_pages() {
        assert_eq!(votes(None, &[]).winner(), None);
        assert_eq!(votes(None, &[(OTHER, 3), (OWNER, 3)]).winner(), Some((OWNER, 3)));
        assert_eq!(votes(None, &[(OTHER, 4), (OWNER, 3)]).winner(), Some((OTHER, 4)));
        // Two others outvote each other, but whoever had won before is counted for itself.
        assert_eq!(votes(None, &[(OTHER, 4), (THIRD, 3)]).winner(), Some((OTHER, 1)));
        assert_eq!(votes(Some(THIRD), &[(OTHER, 4), (THIRD, 3)]).winner(), Some((THIRD, 3)));
    }

    #[test]
    fn more_than_eight_of_sixteen_slots_have_to_be_foreign() {
        let bandwidth = 8_000; // a thousand pages a slot
        let mut history = ForeignHistory::default();
        let foreign = votes(None, &[(OTHER, 1000)]);
        for _ in 0..8 {
            assert_eq!(history.add(&foreign, bandwidth), None);
        }
        assert_eq!(history.add(&foreign, bandwidth), Some(OTHER));
        // A long round of the owner's pushes the past out.
        assert_eq!(history.add(&votes(None, &[(OWNER, 12_000)]), bandwidth), None);
        assert_eq!(history.slots.count_ones(), 4);
        assert_eq!(history.add(&votes(None, &[(OTHER, 9_000)]), bandwidth), Some(OTHER));
        assert_eq!(history.slots.count_ones(), 9, "and the four before have gone");
    }
}
