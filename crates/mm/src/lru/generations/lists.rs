//! The lists of one lruvec's generations (the kernel's `lru_gen_folio`), and the record of a folio's place among them. [reclaim 4.1]

use crate::memory::Memory;
use crate::memory::list::List;
use crate::units::{LruType, Nanos, Pfn};
use bytemuck::Zeroable;
use pageout_rules::lru::spared;

/// A folio's place in MGLRU: two bytes in a side array, which only groups under MGLRU fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Zeroable)]
pub struct Place {
    /// The folio's generation, as slot plus 1; 0 on no list of generations. May be ahead of the list that it is on.
    pub generation: u8,
    /// The group of lists that contains it, and whether the gauges count it as active, if they use its count. Others may change that while it is
    /// listed here, because its group is switched to the classic LRU.
    list_and_gauge: u8,
}

/// Above the numbers of lists, of which there are two for each of 64 generations.
const COUNTED_ACTIVE: u8 = 1 << 7;

impl Place {
    /// Returns whether the folio is on a list of generations.
    pub fn is_listed(self) -> bool {
        self.generation != 0
    }

    /// The group of lists that the folio is on one of.
    pub fn list(self) -> usize {
        usize::from(self.list_and_gauge & !COUNTED_ACTIVE)
    }

    /// Notes on which group of lists the folio is.
    pub fn set_list(&mut self, list: usize) {
        debug_assert!(
            list < usize::from(COUNTED_ACTIVE),
            "group {list} of lists exceeds what a place can store"
        );
        self.list_and_gauge = self.list_and_gauge & COUNTED_ACTIVE | list as u8;
    }

    /// Returns whether the gauges count it as active.
    pub fn is_counted_active(self) -> bool {
        self.list_and_gauge & COUNTED_ACTIVE != 0
    }

    /// Notes whether the gauges count it as active.
    pub fn set_counted_active(&mut self, is_active: bool) {
        self.list_and_gauge = self.list() as u8 | if is_active { COUNTED_ACTIVE } else { 0 };
    }
}

/// The generations of one lruvec.
pub struct GenerationLists {
    /// The sequence number of the youngest generation.
    pub max_seq: u64,
    /// The sequence number of the oldest generation, by type.
    pub min_seq: [u64; 2],
    /// By slot: time at which the generation was opened.
    pub births: Vec<Nanos>,
    /// By slot and type: pages that carry the generation, on whatever list.
    pub pages: Vec<[u64; 2]>,
    /// By slot, type and zone: see [`GenerationLists::list_of`].
    pub lists: Vec<List>,
    /// Zones of the node: a generation has a list for each.
    zones: usize,
    /// Pages taken lately from each type, if shares rather than the controller choose the type.
    pub taken: [u64; 2],
}

impl GenerationLists {
    /// A full window of empty generations, born now.
    pub fn new(count: u8, zones: usize, now: Nanos) -> GenerationLists {
        let count = usize::from(count);
        GenerationLists {
            max_seq: count as u64 - 1,
            min_seq: [0; 2],
            births: vec![now; count],
            pages: vec![[0; 2]; count],
            lists: vec![List::default(); 2 * count * zones],
            zones,
            taken: [0; 2],
        }
    }

    /// Slots are reused: at most so many generations exist at a time.
    pub fn slot(&self, seq: u64) -> usize {
        (seq % self.births.len() as u64) as usize
    }

    /// The slot of a type's oldest generation.
    pub fn oldest(&self, kind: LruType) -> usize {
        self.slot(self.min_seq[kind as usize])
    }

    /// Names the lists of a generation and type, as a folio's place does: which of them it is on follows from its frame.
    pub fn group_of(&self, slot: usize, kind: LruType) -> usize {
        kind as usize * self.births.len() + slot
    }

    /// One of these lists: that of the zone of this rank.
    pub fn list_of(&self, group: usize, rank: usize) -> usize {
        group * self.zones + rank
    }

    /// The lists of a generation and type, from that of the highest zone down.
    pub fn lists_of(&self, slot: usize, kind: LruType) -> &[List] {
        let first = self.list_of(self.group_of(slot, kind), 0);
        &self.lists[first..first + self.zones]
    }

    /// Folios on the lists of a slot and type.
    pub fn listed(&self, slot: usize, kind: LruType) -> u64 {
        self.lists_of(slot, kind).iter().map(List::len).sum()
    }

    /// The oldest generation of the types that may be evicted.
    pub fn deciding_min_seq(&self, types: &[LruType]) -> u64 {
        types
            .iter()
            .map(|&kind| self.min_seq[kind as usize])
            .min()
            .expect("memory of some type may always be evicted")
    }

    /// Returns how many generations there are of them.
    pub fn counted(&self, types: &[LruType]) -> u64 {
        self.max_seq - self.deciding_min_seq(types) + 1
    }

    /// Pages of a type.
    pub fn total(&self, kind: LruType) -> u64 {
        (self.min_seq[kind as usize]..=self.max_seq).map(|seq| self.pages(seq)[kind as usize]).sum()
    }

    /// The folio at the tail of the oldest list that has one, anonymous ones first.
    pub fn coldest(&self) -> Option<u32> {
        let seqs = || self.oldest_that_can_exist()..=self.max_seq;
        let lists = LruType::BOTH.into_iter().flat_map(|kind| seqs().map(move |seq| (seq, kind)));
        lists
            .into_iter()
            .find_map(|(seq, kind)| self.lists_of(self.slot(seq), kind).iter().find_map(List::tail))
    }

    /// The tails of a type's lists, from the oldest generation on.
    pub fn tails(&self, kind: LruType) -> impl Iterator<Item = u32> {
        let seqs = self.min_seq[kind as usize]..=self.max_seq;
        seqs.flat_map(move |seq| self.lists_of(self.slot(seq), kind)).filter_map(List::tail)
    }

    /// Returns how many generations of a type there are.
    pub fn count(&self, kind: LruType) -> u64 {
        self.max_seq - self.min_seq[kind as usize] + 1
    }

    /// Returns whether a type has as many generations as there may be.
    pub fn is_full(&self, kind: LruType) -> bool {
        self.count(kind) == self.births.len() as u64
    }

    /// The two youngest generations are what the gauges call active.
    pub fn is_active(&self, slot: usize) -> bool {
        slot == self.slot(self.max_seq) || slot == self.slot(self.max_seq - 1)
    }

    /// Returns the time at which a generation was opened.
    pub fn birth(&self, seq: u64) -> Nanos {
        self.births[self.slot(seq)]
    }

    /// The sequence numbers of a listed folio: of its generation, and of the list that it is on.
    pub fn seqs_of(&self, place: Place) -> (u64, u64) {
        // Slots differ by their distance from the youngest one.
        let count = self.births.len();
        let seq_of = |slot: usize| {
            self.max_seq.saturating_sub(((self.slot(self.max_seq) + count - slot) % count) as u64)
        };
        (seq_of(usize::from(place.generation - 1)), seq_of(place.list() % count))
    }

    /// The oldest that a window with this youngest one can hold.
    pub fn oldest_that_can_exist(&self) -> u64 {
        (self.max_seq + 1).saturating_sub(self.births.len() as u64)
    }

    /// Pages of a generation: anonymous, file.
    pub fn pages(&self, seq: u64) -> [u64; 2] {
        self.pages[self.slot(seq)]
    }

    /// Panics unless a listed folio's place agrees with where it is; tells the slot of its generation.
    pub fn check_place(&self, pfn: Pfn, place: Place, kind: LruType) -> usize {
        assert!(place.is_listed(), "{pfn:?} is on a list of generations and doesn't know it");
        let slot = usize::from(place.generation - 1);
        assert_eq!(place.list() / self.births.len(), kind as usize, "{pfn:?} is on the other type's list");
        slot
    }

    /// Panics unless the window is within its bounds and the counts agree with the folios listed.
    pub fn check_invariants(&self, memory: &Memory) {
        let mut pages = vec![[0; 2]; self.births.len()];
        for list in &self.lists {
            for item in list.iter_from_tail(&memory.folios) {
                let (folio, place) = (memory.folios[Pfn(item)], memory.places[Pfn(item)]);
                pages[usize::from(place.generation - 1)][folio.lru_type() as usize] += folio.pages();
            }
        }
        assert_eq!(pages, self.pages, "pages of the generations");
        for kind in LruType::BOTH {
            let (count, most) = (self.count(kind), self.births.len() as u64);
            assert!((spared(most).max(1)..=most).contains(&count), "{count} generations of {kind:?}");
        }
    }
}
