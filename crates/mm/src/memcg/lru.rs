//! The memcg LRU: in which order reclaim for the whole machine visits memcgs that keep generations.
//!
//! ```text
//!   young   8 bins of groups ◀── gave pages and was aged, or has nothing worth a visit
//!           8 bins
//!   old     8 bins ──▶ visited from the first to the last of each bin ─┬─ still has enough: stays where it is
//!                                                                      └─ is protected: goes to the end once, then it is its turn
//! ```
//! A walk over all groups of a large machine for each few pages would cost more than the reclaim. So groups are kept in two
//! generations (a third place is being emptied or filled meanwhile), each a few queues of which a walk begins with any. A group
//! that was aged goes to the young one. When the old one is empty the young one is old. Thus each walk finds groups that have
//! waited, without looking for them, and fairness is a matter of time rather than of each call. [reclaim 4.11]
//!
//! The bin of a group is random in the kernel, so that reclaimers spread. Here it follows a sequence that is the same in every run.

use crate::memory::list::{Links, List, NONE, UNLISTED};
use crate::units::MemcgId;

/// Places for generations of groups.
const GENERATIONS: u64 = 3;
/// Queues (bins) in each generation of the memcg LRU.
const BINS: u8 = 8;

/// Segment of its generation to which a group was moved on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Segment {
    /// At its current position.
    #[default]
    Anywhere,
    /// Behind the others, to be spared if they suffice.
    Tail,
}

/// Target of a group's move in the memcg LRU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// Behind the others of its generation.
    Tail,
    /// To the old generation: the group is removed, and its remaining pages should be reclaimed soon.
    Old,
    /// To the young generation.
    Young,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    generation: u8,
    bin: u8,
    segment: Segment,
    /// Towards the first, towards the last.
    links: (u32, u32),
}

/// The generation of a group that nothing is left of.
const RELEASED: u8 = u8::MAX;

/// The groups of one node in the order in which reclaim for the machine comes by. A list's tail is who is first.
pub struct MemcgLru {
    seq: u64,
    queues: [[List; BINS as usize]; GENERATIONS as usize],
    /// Groups in each generation.
    counts: [u64; GENERATIONS as usize],
    /// Generation, bin and links of each group, by its id.
    entries: Entries,
    draws: u64,
}

struct Entries(Vec<Entry>);

impl Links for Entries {
    fn links(&self, item: u32) -> (u32, u32) {
        self.0[item as usize].links
    }

    fn links_mut(&mut self, item: u32) -> &mut (u32, u32) {
        &mut self.0[item as usize].links
    }
}

/// A visit of the old generation's queues in progress.
#[derive(Clone, Copy, Debug)]
pub struct MemcgLruWalk {
    generation: u8,
    bin: u8,
    /// Bins to come after this one.
    bins_left: u8,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Start,
    /// The group being visited.
    Group(MemcgId),
    /// The group before which the visit goes on.
    Before(Option<MemcgId>),
}

impl Default for MemcgLru {
    fn default() -> MemcgLru {
        let queues = Default::default();
        MemcgLru { seq: 0, queues, counts: [0; GENERATIONS as usize], entries: Entries(Vec::new()), draws: 0 }
    }
}

impl MemcgLru {
    fn old(&self) -> u8 {
        (self.seq % GENERATIONS) as u8
    }

    fn young(&self) -> u8 {
        ((self.seq + 1) % GENERATIONS) as u8
    }

    /// Any bin: the next number of a fixed sequence (splitmix64).
    fn draw_bin(&mut self) -> u8 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.draws ^ (self.draws >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % u64::from(BINS)) as u8
    }

    /// A new group, whose number is the next or that of a released one: to the end of the old generation.
    pub fn add(&mut self, memcg: MemcgId) {
        let (generation, bin) = (self.old(), self.draw_bin());
        let entry = Entry { generation, bin, segment: Segment::Anywhere, links: UNLISTED };
        match self.entries.0.get_mut(memcg.index()) {
            Some(released) => {
                assert_eq!(released.generation, RELEASED, "{memcg:?} joins twice");
                *released = entry;
            }
            None => {
                assert_eq!(self.entries.0.len(), memcg.index(), "groups join in the order of their numbers");
                self.entries.0.push(entry);
            }
        }
        self.queues[generation as usize][bin as usize].push_head(&mut self.entries, memcg.0.into());
        self.counts[generation as usize] += 1;
    }

    /// The segment of a group.
    pub fn segment(&self, memcg: MemcgId) -> Segment {
        self.entries.0[memcg.index()].segment
    }

    /// Sends a group elsewhere. An old generation that is left empty by that makes way for the next.
    #[doc(alias = "lru_gen_rotate_memcg")]
    pub fn rotate(&mut self, memcg: MemcgId, to: Move) {
        let Entry { generation: from, bin, .. } = self.entries.0[memcg.index()];
        if from == RELEASED {
            return;
        }
        self.queues[from as usize][bin as usize].remove(&mut self.entries, memcg.0.into());
        let (generation, segment) = match to {
            Move::Tail => (from, Segment::Tail),
            Move::Old => (self.old(), Segment::Anywhere),
            Move::Young => (self.young(), Segment::Anywhere),
        };
        let bin = self.draw_bin();
        assert!(
            generation != RELEASED && bin < BINS,
            "{memcg:?} is sent to bin {bin} of generation {generation}"
        );
        let entry = &mut self.entries.0[memcg.index()];
        (entry.generation, entry.bin, entry.segment) = (generation, bin, segment);
        let queue = &mut self.queues[generation as usize][bin as usize];
        match to {
            Move::Old => queue.push_tail(&mut self.entries, memcg.0.into()),
            Move::Tail | Move::Young => queue.push_head(&mut self.entries, memcg.0.into()),
        }
        assert!(self.counts[from as usize] > 0, "{memcg:?} leaves a generation that counts no group");
        self.counts[from as usize] -= 1;
        self.counts[generation as usize] += 1;
        self.assert_count(from, bin);
        self.pass_empty_generation();
    }

    /// Nothing is left of a group that was removed.
    pub fn release(&mut self, memcg: MemcgId) {
        let Entry { generation, bin, .. } = self.entries.0[memcg.index()];
        assert_ne!(generation, RELEASED, "{memcg:?} is released twice");
        self.queues[generation as usize][bin as usize].remove(&mut self.entries, memcg.0.into());
        assert!(self.counts[generation as usize] > 0, "{memcg:?} leaves a generation that counts no group");
        self.counts[generation as usize] -= 1;
        self.assert_count(generation, bin);
        self.entries.0[memcg.index()].generation = RELEASED;
        self.pass_empty_generation();
    }

    fn pass_empty_generation(&mut self) {
        if self.counts[self.old() as usize] == 0 {
            let queues = &self.queues[self.old() as usize];
            assert!(queues.iter().all(List::is_empty), "a generation is passed by that groups are in");
            self.seq += 1;
        }
    }

    /// A group has left a bin.
    fn assert_count(&self, generation: u8, bin: u8) {
        let (of_bin, of_all) =
            (self.queues[generation as usize][bin as usize].len(), self.counts[generation as usize]);
        assert!(of_bin <= of_all, "a bin has {of_bin} groups, all of its generation {of_all}");
    }

    /// Begins to visit the old generation at any of its bins.
    pub fn walk(&mut self) -> MemcgLruWalk {
        MemcgLruWalk { generation: self.old(), bin: self.draw_bin(), bins_left: BINS - 1, at: At::Start }
    }

    /// Returns whether another generation is old than when a walk began: the one that it visits was emptied.
    pub fn has_gone_on(&self, walk: &MemcgLruWalk) -> bool {
        self.old() != walk.generation
    }

    /// The next group to visit.
    pub fn next(&self, walk: &mut MemcgLruWalk) -> Option<MemcgId> {
        loop {
            let queue = &self.queues[walk.generation as usize][walk.bin as usize];
            let next = match walk.at {
                At::Start => first_of(queue),
                At::Group(last) => self.after(walk, last),
                // It may have been sent elsewhere meanwhile: then the bin is begun again.
                At::Before(Some(next)) if !self.is_in(walk, next) => first_of(queue),
                At::Before(next) => next,
            };
            if let Some(next) = next {
                walk.at = At::Group(next);
                return Some(next);
            }
            walk.bins_left = walk.bins_left.checked_sub(1)?;
            walk.bin = (walk.bin + 1) % BINS;
            walk.at = At::Start;
        }
    }

    /// A visit is over; the walk must be notified before its group is moved elsewhere.
    pub fn visited(&self, walk: &mut MemcgLruWalk) {
        if let At::Group(last) = walk.at {
            walk.at = At::Before(self.after(walk, last));
        }
    }

    /// The group that follows another in the bin being visited; the first of the bin, if the other has left it.
    fn after(&self, walk: &MemcgLruWalk, last: MemcgId) -> Option<MemcgId> {
        if !self.is_in(walk, last) {
            return first_of(&self.queues[walk.generation as usize][walk.bin as usize]);
        }
        let (towards_last, _) = self.entries.links(last.0.into());
        (towards_last != NONE).then_some(MemcgId(towards_last as u16))
    }

    fn is_in(&self, walk: &MemcgLruWalk, memcg: MemcgId) -> bool {
        let entry = &self.entries.0[memcg.index()];
        (entry.generation, entry.bin) == (walk.generation, walk.bin)
    }

    /// Panics unless every group is in exactly one queue, the one it says.
    pub fn check_invariants(&self) {
        let mut seen = 0;
        for (generation, bins) in self.queues.iter().enumerate() {
            let mut count = 0;
            for (bin, queue) in bins.iter().enumerate() {
                queue.check_invariants(&self.entries);
                for item in queue.iter_from_tail(&self.entries) {
                    let entry = &self.entries.0[item as usize];
                    assert_eq!((usize::from(entry.generation), usize::from(entry.bin)), (generation, bin));
                    count += 1;
                }
            }
            assert_eq!(count, self.counts[generation], "groups of a generation");
            seen += count;
        }
        let kept = self.entries.0.iter().filter(|entry| entry.generation != RELEASED).count();
        assert_eq!(seen, kept as u64, "groups in the memcg LRU");
    }
}

/// The first group of a queue.
fn first_of(queue: &List) -> Option<MemcgId> {
    queue.tail().map(|item| MemcgId(item as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_groups(count: u16) -> MemcgLru {
        let mut lru = MemcgLru::default();
        (0..count).for_each(|id| lru.add(MemcgId(id)));
        lru.check_invariants();
        lru
    }

    /// Visits until the walk ends, and sends each group where `to` says.
    fn visit(lru: &mut MemcgLru, mut to: impl FnMut(MemcgId) -> Option<Move>) -> Vec<u16> {
        let mut walk = lru.walk();
        let mut visited = Vec::new();
        while let Some(memcg) = lru.next(&mut walk) {
            visited.push(memcg.0);
            assert!(visited.len() < 1000, "a walk goes on for ever");
            lru.visited(&mut walk);
            if let Some(to) = to(memcg) {
                lru.rotate(memcg, to);
                lru.check_invariants();
            }
        }
        visited
    }

    #[test]
    fn a_walk_comes_by_every_group_of_the_old_generation_once() {
        let mut lru = with_groups(50);
        let mut visited = visit(&mut lru, |_| None);
        visited.sort_unstable();
        assert_eq!(visited, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn who_was_aged_is_not_visited_again_before_all_others_were() {
        let mut lru = with_groups(20);
        let mut first = visit(&mut lru, |memcg| (memcg.0 < 10).then_some(Move::Young));
        first.sort_unstable();
        assert_eq!(first, (0..20).collect::<Vec<_>>());
        let mut rest = visit(&mut lru, |_| Some(Move::Young));
        rest.sort_unstable();
        assert_eq!(rest, (10..20).collect::<Vec<_>>());
        // The old generation is empty: the young one is next.
        let mut all = visit(&mut lru, |_| None);
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn who_is_spared_comes_last_and_is_known_then() {
        let mut lru = with_groups(3);
        assert_eq!(lru.segment(MemcgId(1)), Segment::Anywhere);
        let is_spared = |memcg: MemcgId, lru: &MemcgLru| lru.segment(memcg) == Segment::Tail;
        lru.rotate(MemcgId(1), Move::Tail);
        assert!(is_spared(MemcgId(1), &lru));
        lru.rotate(MemcgId(1), Move::Young);
        assert!(!is_spared(MemcgId(1), &lru));
        lru.rotate(MemcgId(1), Move::Old);
        lru.check_invariants();
    }

    #[test]
    fn nothing_is_visited_of_a_group_that_is_released() {
        let mut lru = with_groups(9);
        lru.rotate(MemcgId(4), Move::Old);
        lru.release(MemcgId(4));
        lru.check_invariants();
        lru.rotate(MemcgId(4), Move::Young);
        lru.check_invariants();
        assert_eq!(visit(&mut lru, |_| None).len(), 8);
    }

    #[test]
    fn a_walk_begins_its_bin_again_when_another_has_moved_the_groups() {
        let mut lru = with_groups(40);
        let mut walk = lru.walk();
        let first = lru.next(&mut walk).unwrap();
        lru.visited(&mut walk);
        for id in (0..40).filter(|&id| id != first.0) {
            lru.rotate(MemcgId(id), Move::Young);
        }
        let left: Vec<MemcgId> = std::iter::from_fn(|| {
            let next = lru.next(&mut walk);
            lru.visited(&mut walk);
            next
        })
        .take(5)
        .collect();
        assert!(left.iter().all(|&memcg| memcg == first), "only {first:?} is still old: {left:?}");
    }
}
