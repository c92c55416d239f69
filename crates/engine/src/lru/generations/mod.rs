//! Generations: pages of about the same age together, as many generations as are worth telling apart.
//!
//! ```text
//!   seq      min_seq                              max_seq
//!            oldest ─────────────────────────────► youngest        each generation: a list a type, a birth
//!              │  ▲  protected (tiers)                  ▲
//!              ▼  └── tail of the next          young ──┘          page-table walk (aging), look-around (eviction)
//!           evicted
//! ```
//! *Aging* (`aging.rs`) opens a new youngest generation, after a walk of page tables has moved what it found young there.
//! *Eviction* (`eviction.rs`) takes from the oldest generation, and closes it when it is empty. A page found young carries
//! its new generation in its record at once and is moved to that generation's list when the evictor meets it on the old one:
//! promotion costs no list move under a lock, which is why a hit or a walk never touches a list.
//!
//! Both types share `max_seq`; each has its own `min_seq`. At most [`GenerationRules::count_max`] generations exist (4 in
//! Linux), and eviction leaves the two youngest alone: a page must have the time between two agings to be used again.
//!
//! **Other numbers of generations.** The rules with a 4 in them mean *the window is full*; the one with a 3 (whether to age,
//! by sizes) means *neither full nor used up*, which with Linux's four is three; eviction spares the two youngest, or with a
//! count of 2, where nothing would be left to evict, only the youngest. So 2 generations are an inactive list without a
//! second chance for what is mapped, and aging happens as soon as the old one is used up. [reclaim 4.1 to 4.9 and their 6.12 form]
//!
//! *When not to use it:* where reuse distances exceed memory, all file pages pass through the oldest generation alike.

mod aging;
mod eviction;
mod references;
mod user;

use super::{Arrival, Lru, PlaceRule, Switching};
use crate::core::Core;
use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::Memory;
use crate::memory::folio::{FolioFlags, UseBits};
use crate::memory::list::List;
use crate::reclaim::ScanControl;
use crate::story::{PageEvent, Whereabouts};
use crate::switch::choice;
use crate::units::{LruType, Nanos, Pfn};
use crate::workingset::Restore;
pub(crate) use aging::Aging;
pub(crate) use eviction::GenerationsPass;
pub use references::References;
pub use user::GenerationInfo;
pub(crate) use user::{GenerationRequest, GenerationWork, Refused, Requested, WorkStep};

choice! {
    /// Where a page goes that was added inside a fault, and so is known to be in use.
    FaultIn {
        /// 6.12: to the youngest generation.
        Youngest = "youngest",
        /// 6.16: to the second youngest; to the youngest only if it was in use when it was evicted.
        SecondYoungest = "second_youngest",
        /// Nowhere special: it may have been mapped by readahead and never be used (Barry Song's proposal of 2026).
        LikeRead = "like_read",
    }
}

choice! {
    /// Where a page goes that reclaim had in its hands and could not free.
    Rejected {
        /// 6.12: to the youngest generation, out of the way for as long as possible.
        Youngest = "youngest",
        /// 6.16: to the second youngest.
        SecondYoungest = "second_youngest",
    }
}

choice! {
    /// Where a new page goes that nobody has mapped: one read through a file descriptor.
    NewFile {
        /// Before 6.7: to the oldest generation.
        Oldest = "oldest",
        /// 6.7 to 6.12: to the second oldest while the window is full, so that the feedback loop has time to see its refault.
        SecondOldest = "second_oldest",
        /// 6.16: to the oldest, but to the second oldest if it was in use when it was evicted.
        ByWorkingset = "by_workingset",
    }
}

choice! {
    /// Where a page goes that needs a write before it can be freed: anonymous and not in the swap cache, or waiting for its
    /// writeback.
    NewAnon {
        /// Before 6.7: to the second oldest generation, which of a full window may be evicted next.
        SecondOldest = "second_oldest",
        /// Since 6.7: to the second youngest, which eviction spares.
        SecondYoungest = "second_youngest",
    }
}

choice! {
    /// Which end of the next generation protected pages go to.
    ProtectTo {
        /// 6.12: to the tail, so that they are looked at first when that generation is the oldest: they were spared, not used, and
        /// have to earn it again.
        Tail = "tail",
        /// 6.16: to the head, behind whatever that generation holds already.
        Head = "head",
    }
}

choice! {
    /// What commands written to `lru_gen` may say and what they mean.
    Interface {
        /// 6.12: `+` of a generation that is there already does nothing; without force it is refused while the window is full.
        Linux6_12 = "6.12",
        /// 6.16: `+` opens a generation after whichever is the youngest, and fails if someone else did; swappiness may be `max`.
        Linux6_16 = "6.16",
    }
}

choice! {
    /// When eviction stops to age instead.
    AgingRule {
        /// 6.1 to 6.13: always when only the generations that eviction spares are left; never while the window is full; between
        /// the two (three of Linux's four) if the youngest holds more than half of all pages, so that ages say little, or the
        /// youngest that may be evicted less than a quarter, so that soon there is nothing to choose from.
        Linux6_12 = "6.12",
        /// 6.16: always unless the window is full.
        Linux6_16 = "6.16",
    }
}

impl AgingRule {
    /// Whether to age while the window is neither full nor used up, by pages of generations and of all of them.
    fn is_due(self, youngest: u64, youngest_evictable: u64, total: u64) -> bool {
        match self {
            AgingRule::Linux6_12 => 2 * youngest > total || 4 * youngest_evictable < total,
            AgingRule::Linux6_16 => true,
        }
    }
}

/// A swappiness for which only anonymous memory is evicted: what 6.16 takes for `max` in a command.
pub(crate) const SWAPPINESS_ANON_ONLY: u8 = 201;

/// How generations are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GenerationRules {
    /// At most so many exist. Range 2 to 64, default 4.
    pub count_max: u8,
    /// Pages that were read repeatedly are spared where the controller says so; else all pages of a generation are alike.
    pub tiers: bool,
    /// How accesses are counted.
    pub references: References,
    /// Where a page goes that was added inside a fault.
    pub fault_in: FaultIn,
    /// Where a page goes that could not be freed.
    pub rejected: Rejected,
    /// Where a page goes that was read.
    pub new_file: NewFile,
    /// Where a page goes that needs a write first.
    pub new_anon: NewAnon,
    /// A page whose count is full is spared whatever the controller says, for a further access could not show; else its tier
    /// decides, as for all others.
    pub full_count: bool,
    /// What a page that comes back soon is given of the count that it had.
    pub restore: Restore,
    /// Where a protected page goes.
    pub protect_to: ProtectTo,
    /// When eviction ages.
    pub aging: AgingRule,
    /// What `lru_gen` takes and shows.
    pub interface: Interface,
    /// What reclaim walks while the group is switched between generations and two lists.
    pub switching: Switching,
}

impl GenerationRules {
    pub(crate) fn linux_6_12() -> GenerationRules {
        GenerationRules {
            count_max: 4,
            tiers: true,
            references: References::Linux6_12,
            fault_in: FaultIn::Youngest,
            rejected: Rejected::Youngest,
            new_file: NewFile::SecondOldest,
            new_anon: NewAnon::SecondYoungest,
            full_count: true,
            restore: Restore::NearlyFull,
            protect_to: ProtectTo::Tail,
            aging: AgingRule::Linux6_12,
            interface: Interface::Linux6_12,
            switching: Switching::Both,
        }
    }

    pub(crate) fn linux_6_16() -> GenerationRules {
        GenerationRules {
            count_max: 4,
            tiers: true,
            references: References::Linux6_16,
            fault_in: FaultIn::SecondYoungest,
            rejected: Rejected::SecondYoungest,
            new_file: NewFile::ByWorkingset,
            new_anon: NewAnon::SecondYoungest,
            full_count: true,
            restore: Restore::NearlyFull,
            protect_to: ProtectTo::Head,
            aging: AgingRule::Linux6_16,
            interface: Interface::Linux6_16,
            switching: Switching::Both,
        }
    }

    /// Youngest generations that eviction leaves alone.
    fn spared(self) -> u64 {
        spared(u64::from(self.count_max))
    }
}

/// Youngest generations that eviction leaves alone where there can be so many.
fn spared(most: u64) -> u64 {
    (most - 1).min(2)
}

/// Where a folio is among the generations: two bytes in a side array, which only groups that keep generations fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    /// Its generation, as slot plus 1; 0 on no list of generations. May be ahead of the list that it is on.
    generation: u8,
    /// The list that it is on.
    list: u8,
}

impl Place {
    pub(crate) fn is_listed(self) -> bool {
        self.generation != 0
    }
}

/// The generations of one lruvec.
pub(crate) struct GenerationLists {
    pub(crate) max_seq: u64,
    /// By type.
    pub(crate) min_seq: [u64; 2],
    /// By slot: when the generation was opened.
    births: Vec<Nanos>,
    /// By slot and type: pages that carry the generation, on whatever list.
    pages: Vec<[u64; 2]>,
    /// By slot and type: see [`GenerationLists::list_of`].
    pub(crate) lists: Vec<List>,
    /// What was taken lately from each type, where shares rather than the controller choose the type.
    taken: [u64; 2],
}

impl GenerationLists {
    /// A full window of empty generations, born now.
    pub(crate) fn new(count: u8, now: Nanos) -> GenerationLists {
        let count = usize::from(count);
        GenerationLists {
            max_seq: count as u64 - 1,
            min_seq: [0; 2],
            births: vec![now; count],
            pages: vec![[0; 2]; count],
            lists: vec![List::default(); 2 * count],
            taken: [0; 2],
        }
    }

    /// Slots are reused: at most so many generations exist at a time.
    pub(crate) fn slot(&self, seq: u64) -> usize {
        (seq % self.births.len() as u64) as usize
    }

    /// The slot of a type's oldest generation.
    pub(crate) fn oldest(&self, kind: LruType) -> usize {
        self.slot(self.min_seq[kind as usize])
    }

    pub(super) fn list_of(&self, slot: usize, kind: LruType) -> usize {
        kind as usize * self.births.len() + slot
    }

    /// How many generations of a type there are.
    fn count(&self, kind: LruType) -> u64 {
        self.max_seq - self.min_seq[kind as usize] + 1
    }

    fn is_full(&self, kind: LruType) -> bool {
        self.count(kind) == self.births.len() as u64
    }

    /// The two youngest generations are what the gauges call active.
    fn is_active(&self, slot: usize) -> bool {
        slot == self.slot(self.max_seq) || slot == self.slot(self.max_seq - 1)
    }

    pub(crate) fn birth(&self, seq: u64) -> Nanos {
        self.births[self.slot(seq)]
    }

    /// Where a listed folio is, in sequence numbers.
    pub(crate) fn whereabouts(&self, place: Place, kind: LruType) -> Whereabouts {
        // Slots are told apart by how far they are behind the youngest one.
        let count = self.births.len();
        let seq_of = |slot: usize| {
            self.max_seq.saturating_sub(((self.slot(self.max_seq) + count - slot) % count) as u64)
        };
        Whereabouts::Generation {
            seq: seq_of(usize::from(place.generation - 1)),
            listed: seq_of(usize::from(place.list) % count),
            oldest: self.min_seq[kind as usize],
            youngest: self.max_seq,
        }
    }

    /// The oldest that a window with this youngest one can hold.
    pub(crate) fn oldest_that_can_exist(&self) -> u64 {
        (self.max_seq + 1).saturating_sub(self.births.len() as u64)
    }

    /// Pages of a generation: anonymous, file.
    pub(crate) fn pages(&self, seq: u64) -> [u64; 2] {
        self.pages[self.slot(seq)]
    }

    /// Panics unless a listed folio's place agrees with where it is; tells whether it counts as active.
    pub(crate) fn check_place(&self, pfn: Pfn, place: Place, kind: LruType) -> bool {
        assert!(place.is_listed(), "{pfn:?} is on a list of generations and doesn't know it");
        let slot = usize::from(place.generation - 1);
        assert_eq!(
            usize::from(place.list) / self.births.len(),
            kind as usize,
            "{pfn:?} is on the other type's list"
        );
        self.is_active(slot)
    }

    /// Panics unless the window is within its bounds and the counts agree with the folios listed.
    pub(crate) fn check_invariants(&self, memory: &Memory) {
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

impl Core {
    /// The generations of an lruvec. Panics where it has none; those that it is being switched away from are still there.
    pub(crate) fn generations(&self, lruvec: LruvecId) -> &GenerationLists {
        self.lruvecs[lruvec].generations.as_ref().expect("the LRU is generations")
    }

    /// The same, or `None` unless generations are what its group keeps now.
    pub(crate) fn kept_generations(&self, lruvec: LruvecId) -> Option<&GenerationLists> {
        let is_kept = self.lru_of(lruvec) == Lru::Generations;
        self.lruvecs[lruvec].generations.as_deref().filter(|_| is_kept)
    }

    fn generations_mut(&mut self, lruvec: LruvecId) -> &mut GenerationLists {
        self.lruvecs[lruvec].generations.as_mut().expect("the LRU is generations")
    }

    pub(crate) fn generation_rules(&self, lruvec: LruvecId) -> GenerationRules {
        self.memcgs[self.lruvecs[lruvec].memcg].policy.generations
    }

    /// The generation that a folio on no list belongs to, and by which rule; adjusts its bits for the stay there.
    fn generation_for(&mut self, lruvec: LruvecId, pfn: Pfn, arrival: Arrival) -> (u64, PlaceRule) {
        let rules = self.generation_rules(lruvec);
        let folio = self.memory.folios[pfn];
        let kind = folio.lru_type();
        let generations = self.generations(lruvec);
        let (min, max) = (generations.min_seq[kind as usize], generations.max_seq);
        let below_max = |distance: u64| max.saturating_sub(distance).max(min);
        let use_bits = self.memory.use_bits(pfn);
        if use_bits.contains(UseBits::ACTIVE) {
            self.memory
                .set_use_bits(pfn, use_bits - (UseBits::ACTIVE | UseBits::REFERENCED | UseBits::COUNTER));
            let is_youngest = match arrival {
                Arrival::PutBack => rules.rejected == Rejected::Youngest,
                Arrival::Added | Arrival::Rotated => rules.fault_in != FaultIn::SecondYoungest,
            };
            let was_in_use = use_bits.contains(UseBits::WORKINGSET);
            return (if is_youngest || was_in_use { max } else { below_max(1) }, PlaceRule::InUse);
        }
        // Needs a write before it can go, so it is of no use at the old end.
        let is_unwritten_anon = kind == LruType::Anon && !folio.has(FolioFlags::SWAPCACHE);
        let is_being_written = folio.has(FolioFlags::RECLAIM)
            && folio.flags.intersects(FolioFlags::DIRTY | FolioFlags::WRITEBACK);
        if is_unwritten_anon || is_being_written {
            let seq = match rules.new_anon {
                NewAnon::SecondOldest => (min + 1).min(max),
                NewAnon::SecondYoungest => below_max(1),
            };
            return (seq, PlaceRule::NeedsWrite);
        }
        if arrival == Arrival::Rotated {
            return (min, PlaceRule::Rotated);
        }
        let rule = match rules.new_file {
            NewFile::SecondOldest if generations.is_full(kind) => PlaceRule::WindowFull,
            NewFile::ByWorkingset if use_bits.contains(UseBits::WORKINGSET) => PlaceRule::WasInUse,
            NewFile::Oldest | NewFile::SecondOldest | NewFile::ByWorkingset => PlaceRule::Oldest,
        };
        // Short of the generations that eviction spares.
        let last_evictable = max.saturating_sub(rules.spared()).max(min);
        (if rule == PlaceRule::Oldest { min } else { (min + 1).min(last_evictable) }, rule)
    }

    /// Puts a folio that is on no list into its generation.
    pub(super) fn generations_place(&mut self, lruvec: LruvecId, pfn: Pfn, arrival: Arrival) -> PlaceRule {
        let (seq, rule) = self.generation_for(lruvec, pfn, arrival);
        self.memory.places.populate(pfn);
        let slot = self.generations(lruvec).slot(seq);
        self.generation_list_add(lruvec, pfn, slot, rule == PlaceRule::Rotated);
        self.generation_count(lruvec, pfn, slot, 1);
        rule
    }

    /// Links a folio into the list of a generation, of which its record is made to speak.
    fn generation_list_add(&mut self, lruvec: LruvecId, pfn: Pfn, slot: usize, to_tail: bool) {
        let kind = self.memory.folios[pfn].lru_type();
        let generations = self.lruvecs[lruvec].generations.as_mut().expect("only generations place here");
        let list = generations.list_of(slot, kind);
        self.memory.places[pfn] = Place { generation: slot as u8 + 1, list: list as u8 };
        let links = &mut self.memory.folios;
        if to_tail {
            generations.lists[list].push_tail(links, pfn.0);
        } else {
            generations.lists[list].push_head(links, pfn.0);
        }
        self.work.list_moves += 1;
    }

    /// Unlinks a folio from the list that it is on, which need not be that of its generation.
    fn generation_list_remove(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let place = self.memory.places[pfn];
        let generations =
            self.lruvecs[lruvec].generations.as_mut().expect("a folio on a list of generations has one");
        generations.lists[usize::from(place.list)].remove(&mut self.memory.folios, pfn.0);
    }

    /// Counts a folio in or out of a generation and of the gauges.
    fn generation_count(&mut self, lruvec: LruvecId, pfn: Pfn, slot: usize, sign: i64) {
        let folio = self.memory.folios[pfn];
        let (kind, pages) = (folio.lru_type(), sign * folio.pages() as i64);
        let generations = self.generations_mut(lruvec);
        let count = &mut generations.pages[slot][kind as usize];
        *count = count.checked_add_signed(pages).expect("a generation holds no fewer than no pages");
        let is_active = generations.is_active(slot);
        self.update_size(lruvec, LruList::new(kind, is_active), pages);
    }

    /// Takes a folio out of its generation. Not for reclaim: whoever takes a young page away on the page's behalf wants to
    /// find it young again.
    pub(super) fn generations_unlink(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let slot = usize::from(self.memory.places[pfn].generation - 1);
        if self.generations(lruvec).is_active(slot) {
            self.memory.add_use(pfn, UseBits::ACTIVE);
        }
        self.generations_forget(lruvec, pfn);
    }

    /// Takes a folio out of its generation.
    fn generations_forget(&mut self, lruvec: LruvecId, pfn: Pfn) {
        let slot = usize::from(self.memory.places[pfn].generation - 1);
        self.generation_list_remove(lruvec, pfn);
        self.memory.places[pfn] = Place::default();
        self.generation_count(lruvec, pfn, slot, -1);
    }

    /// Makes a folio belong to another generation, wherever it is listed.
    fn generation_update(&mut self, lruvec: LruvecId, pfn: Pfn, slot: usize) {
        let old = usize::from(self.memory.places[pfn].generation - 1);
        if old != slot {
            self.generation_count(lruvec, pfn, old, -1);
            self.memory.places[pfn].generation = slot as u8 + 1;
            self.generation_count(lruvec, pfn, slot, 1);
        }
    }

    /// A page-table entry that maps this folio was found young, in a walk or with a walk's buffer at hand.
    pub(super) fn generations_young(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        let references = self.generation_rules(lruvec).references;
        let use_bits = self.memory.use_bits(pfn);
        if !self.memory.places.get(pfn).is_listed() {
            // In someone's hands, or not there yet: who places it will see that it was used.
            self.memory.set_use_bits(pfn, use_bits | UseBits::REFERENCED);
            return;
        }
        let (use_bits, is_youngest) = references.found_young(use_bits);
        self.memory.set_use_bits(pfn, use_bits);
        if !is_youngest {
            return;
        }
        let seq = self.generations(lruvec).max_seq;
        self.tell(pfn, |_| PageEvent::MadeYoungest { seq });
        self.generation_update(lruvec, pfn, self.generations(lruvec).slot(seq));
    }

    /// The same without a walk's buffer, from a look around: the folio is promoted through the activation batch.
    pub(super) fn generations_young_nearby(&mut self, pfn: Pfn) {
        let lruvec = self.lruvec_of(pfn);
        let references = self.generation_rules(lruvec).references;
        let place = self.memory.places.get(pfn);
        let use_bits = self.memory.use_bits(pfn);
        if !place.is_listed() {
            self.memory.set_use_bits(pfn, use_bits | UseBits::REFERENCED);
            return;
        }
        let generations = self.generations(lruvec);
        if usize::from(place.generation - 1) == generations.slot(generations.max_seq) {
            return;
        }
        let (use_bits, is_youngest) = references.found_young(use_bits);
        self.memory.set_use_bits(pfn, use_bits);
        if is_youngest {
            self.lru_activate(pfn);
        }
    }

    /// Types that may be evicted: without swap, or with a swappiness of 0, file memory only.
    pub(super) fn evictable_types(swappiness: u8) -> &'static [LruType] {
        match swappiness {
            0 => &[LruType::File],
            SWAPPINESS_ANON_ONLY => &[LruType::Anon],
            _ => &LruType::BOTH,
        }
    }

    /// Swappiness as it can be lived up to: 0 while there is too little swap for a batch.
    fn effective_swappiness(&self, lruvec: LruvecId, sc: &ScanControl) -> u8 {
        if self.has_swap_for_a_batch(lruvec) { sc.swappiness } else { 0 }
    }
}
