//! Dense page numbers for sparse ids, in order of first appearance within each object.
//!
//! ```text
//!   hash of the name ──▶ slot: tag (32 bits) | entry + 1 (32 bits) ──▶ ids[entry]: the name, to be sure ──▶ page number
//! ```
//!
//! Reading a trace of ids spends most of its time waiting for the memory of this table. So a slot holds a part of the hash, and the names lie apart
//! from the slots. Popular pages appear first, so their names lie together. Names are looked up many at a time, in passes that each read one table
//! and do nothing else: the more reads are in flight, the less each waits.
//!
//! The table is the only memory of a reader that grows with the trace. It takes 24 to 40 bytes per distinct page, and half as much again while it
//! grows. It takes 24 bytes more if ids have several pages, or there are several objects. Nothing is allocated in advance because of a size in the
//! file.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A page as the trace calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageName {
    pub(super) object: u32,
    id: u64,
    /// Which page of the id; the top bit tells ids that were text from those that were numbers.
    index: u64,
}

const WAS_TEXT: u64 = 1 << 63;

impl PageName {
    pub(super) fn new(object: u32, id: u64, index: u64, was_text: bool) -> PageName {
        PageName { object, id, index: if was_text { index | WAS_TEXT } else { index } }
    }

    /// Returns true if its id says it all, as in most traces.
    fn is_plain(&self) -> bool {
        self.index == 0 && self.object == 0
    }

    #[inline]
    fn hash(&self) -> u64 {
        match self.is_plain() {
            true => FixedState::default().hash_one(self.id),
            false => FixedState::default().hash_one((self.id, self.index, self.object)),
        }
    }
}

/// The original name of a page of a converted trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginalId {
    /// The id, or the page number within the object.
    pub id: u64,
    /// The page of the id, from 0; 0 if the trace has page numbers or offsets.
    pub index: u64,
}

/// Gives pages their numbers.
pub(super) struct Interner {
    /// 0 is empty. A power of two, at least half of them empty.
    slots: Box<[u64]>,
    /// How far a hash is shifted to give its slot.
    shift: u32,
    /// By entry.
    ids: Vec<u64>,
    /// The rest of the names and their page numbers, by entry; empty as long as all are plain, and numbered as they come.
    rest: Vec<Rest>,
    /// Pages so far, by object.
    pages: Vec<u64>,
    /// By object and page, if they are to be kept.
    originals: Option<Vec<Vec<OriginalId>>>,
    probes: Probes,
}

/// Names being looked up.
#[derive(Default)]
struct Probes {
    hashes: Vec<u64>,
    /// What is in the slots that the hashes name.
    slots: Vec<u64>,
    /// The ids of the entries there.
    ids: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Rest {
    index: u64,
    page: u64,
    object: u32,
}

const SLOTS_MIN: usize = 1 << 10;
/// An entry and one more are to fit a half of a slot.
const ENTRIES_MAX: usize = u32::MAX as usize;

impl Interner {
    pub(super) fn new(keep_originals: bool) -> Interner {
        Interner {
            slots: vec![0; SLOTS_MIN].into(),
            shift: shift_of(SLOTS_MIN),
            ids: Vec::new(),
            rest: Vec::new(),
            pages: Vec::new(),
            originals: keep_originals.then(Vec::new),
            probes: Probes::default(),
        }
    }

    /// Appends the numbers of pages to `pages`, new ones for those that have not been seen. Objects are themselves numbered
    /// densely. `None` if there are more pages than can be distinguished.
    pub(super) fn number(&mut self, names: &[PageName], pages: &mut Vec<u64>) -> Option<()> {
        let Probes { mut hashes, mut slots, mut ids } = std::mem::take(&mut self.probes);
        hashes.clear();
        slots.clear();
        ids.clear();
        hashes.extend(names.iter().map(PageName::hash));
        slots.extend(hashes.iter().map(|hash| self.slots[(hash >> self.shift) as usize]));
        // An empty slot has no entry, and may contain any id: it has no name.
        ids.extend(slots.iter().map(|&slot| self.ids.get(entry(slot)).copied().unwrap_or(0)));
        for (((name, &hash), &slot), &id) in names.iter().zip(&hashes).zip(&slots).zip(&ids) {
            let page = match id == name.id && self.is_of(slot, hash, name) {
                true => self.page(entry(slot)),
                false => self.find_or_add(hash, name)?,
            };
            pages.push(page);
        }
        self.probes = Probes { hashes, slots, ids };
        Some(())
    }

    /// The number of a page that has one.
    pub(super) fn known(&self, name: &PageName) -> Option<u64> {
        let (hash, mask) = (name.hash(), self.slots.len() - 1);
        let mut at = (hash >> self.shift) as usize;
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            if slot >> 32 == hash >> 32 && self.ids[entry(slot)] == name.id && self.is_of(slot, hash, name) {
                return Some(self.page(entry(slot)));
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Returns true if the slot's entry, which has the name's id, is the name's.
    #[inline]
    fn is_of(&self, slot: u64, hash: u64, name: &PageName) -> bool {
        slot >> 32 == hash >> 32
            && slot != 0
            && match self.rest.get(entry(slot)) {
                None => name.is_plain(),
                Some(rest) => (rest.index, rest.object) == (name.index, name.object),
            }
    }

    #[inline]
    fn page(&self, entry: usize) -> u64 {
        self.rest.get(entry).map_or(entry as u64, |rest| rest.page)
    }

    #[inline(never)]
    fn find_or_add(&mut self, hash: u64, name: &PageName) -> Option<u64> {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> self.shift) as usize;
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            if slot >> 32 == hash >> 32 && self.ids[entry(slot)] == name.id && self.is_of(slot, hash, name) {
                return Some(self.page(entry(slot)));
            }
            at = (at + 1) & mask;
        }
        let new = self.ids.len();
        if new >= ENTRIES_MAX {
            return None;
        }
        self.slots[at] = (hash >> 32 << 32) | (new as u64 + 1);
        let page = self.add(name);
        if self.ids.len() * 2 > self.slots.len() {
            self.grow();
        }
        Some(page)
    }

    fn add(&mut self, name: &PageName) -> u64 {
        let object = name.object as usize;
        if object >= self.pages.len() {
            self.pages.resize(object + 1, 0);
        }
        let page = self.pages[object];
        self.pages[object] += 1;
        if self.rest.is_empty() && !name.is_plain() {
            self.rest = (0..self.ids.len() as u64).map(|page| Rest { index: 0, page, object: 0 }).collect();
        }
        if !self.rest.is_empty() || !name.is_plain() {
            self.rest.push(Rest { index: name.index, page, object: name.object });
        }
        self.ids.push(name.id);
        if let Some(originals) = &mut self.originals {
            originals.resize_with(self.pages.len(), Vec::new);
            originals[object].push(OriginalId { id: name.id, index: name.index });
        }
        page
    }

    fn grow(&mut self) {
        let mut slots = vec![0; self.slots.len() * 2].into_boxed_slice();
        let (mask, shift) = (slots.len() - 1, shift_of(slots.len()));
        for &slot in self.slots.iter().filter(|&&slot| slot != 0) {
            // The tag is the upper half of the hash, which is all that a place is made of.
            let mut at = ((slot >> 32 << 32) >> shift) as usize;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
        (self.slots, self.shift) = (slots, shift);
    }

    pub(super) fn originals(&self) -> Option<&[Vec<OriginalId>]> {
        self.originals.as_deref()
    }
}

/// The entry that a slot has; beyond all entries if it is empty.
fn entry(slot: u64) -> usize {
    (slot as u32).wrapping_sub(1) as usize
}

fn shift_of(slots: usize) -> u32 {
    u64::BITS - slots.trailing_zeros()
}

/// Numbers for names, in order of first appearance.
pub(super) struct Names {
    numbers: HashMap<Vec<u8>, u32, FixedState>,
    /// The names by number, if anyone is going to ask.
    names: Option<Vec<String>>,
}

impl Names {
    /// For names that [`Names::names`] lists.
    pub(super) fn listed() -> Names {
        Names { numbers: HashMap::with_hasher(FixedState::default()), names: Some(Vec::new()) }
    }

    /// For names that only need to be distinguished.
    pub(super) fn unlisted() -> Names {
        Names { numbers: HashMap::with_hasher(FixedState::default()), names: None }
    }

    /// The number of a name; `None` when there are more names than `limit`.
    pub(super) fn number(&mut self, name: &[u8], limit: u32) -> Option<u32> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let number = u32::try_from(self.numbers.len()).ok().filter(|&number| number < limit)?;
        self.numbers.insert(name.to_vec(), number);
        if let Some(names) = &mut self.names {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
        Some(number)
    }

    pub(super) fn names(&self) -> &[String] {
        self.names.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn numbers(interner: &mut Interner, names: &[(u32, u64, u64, bool)]) -> Vec<u64> {
        let names: Vec<PageName> = names
            .iter()
            .map(|&(object, id, index, was_text)| PageName::new(object, id, index, was_text))
            .collect();
        let mut pages = Vec::new();
        interner.number(&names, &mut pages).unwrap();
        pages
    }

    #[test]
    fn pages_are_numbered_by_first_appearance_within_their_object() {
        let mut interner = Interner::new(true);
        let names = [(0, 900, 0, false), (0, 900, 1, false), (1, 900, 0, false), (0, 7, 0, false)];
        assert_eq!(numbers(&mut interner, &names), [0, 1, 0, 2]);
        let names = [(0, 7, 0, false), (0, 900, 1, false), (0, 7, 0, true), (0, 7, 0, true)];
        assert_eq!(numbers(&mut interner, &names), [2, 1, 3, 3]);
        let originals = interner.originals().unwrap();
        assert_eq!(originals[0][1], OriginalId { id: 900, index: 1 });
        assert_eq!(originals[1], [OriginalId { id: 900, index: 0 }]);
    }

    proptest! {
        /// Few ids, so that they come back; ids alone at first, so that what else names have begins in the middle.
        #[test]
        fn numbers_are_those_of_a_map(
            plain in proptest::collection::vec(0..3000u64, 0..6000),
            named in proptest::collection::vec((0..3u32, 0..500u64, 0..3u64, any::<bool>()), 0..6000),
            batch in 1..200usize,
        ) {
            let names = plain.into_iter().map(|id| (0, id << 40, 0, false)).chain(named);
            let names: Vec<(u32, u64, u64, bool)> = names.collect();
            let (mut interner, mut pages) = (Interner::new(false), Vec::new());
            names.chunks(batch).for_each(|names| pages.extend(numbers(&mut interner, names)));
            let mut known = BTreeMap::new();
            let mut counts = [0; 3];
            for (name, page) in names.iter().zip(pages) {
                let expected = *known.entry(name).or_insert_with(|| {
                    counts[name.0 as usize] += 1;
                    counts[name.0 as usize] - 1
                });
                prop_assert_eq!(page, expected, "{:?}", name);
            }
        }
    }
}
