//! Dense page numbers for sparse ids, in order of first appearance within each object.
//!
//! One hash-table entry a distinct page (35 to 70 bytes, and half as much again while the table grows) is the only
//! memory of a reader that grows with the trace. Nothing is allocated ahead on the word of a file.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A page as the trace calls it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PageName {
    id: u64,
    /// Which page of the id; the top bit tells ids that were text from those that were numbers.
    index: u64,
    object: u32,
}

const WAS_TEXT: u64 = 1 << 63;

/// What a page of a converted trace was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginalId {
    /// The id, or the page number within the object.
    pub id: u64,
    /// Which page of the id, from 0; 0 where the trace gave page numbers or offsets.
    pub index: u64,
}

/// Gives pages their numbers.
pub(super) struct Interner {
    numbers: HashMap<PageName, u64, FixedState>,
    /// Pages so far, by object.
    pages: Vec<u64>,
    /// By object and page, if they are to be kept.
    originals: Option<Vec<Vec<OriginalId>>>,
}

impl Interner {
    pub(super) fn new(keep_originals: bool) -> Interner {
        Interner {
            numbers: HashMap::with_hasher(FixedState::default()),
            pages: Vec::new(),
            originals: keep_originals.then(Vec::new),
        }
    }

    /// The number of a page; a new one if it has not been seen. Objects are themselves numbered densely.
    pub(super) fn number(&mut self, object: u32, id: u64, index: u64, was_text: bool) -> u64 {
        let flag = if was_text { WAS_TEXT } else { 0 };
        let name = PageName { id, index: index | flag, object };
        *self.numbers.entry(name).or_insert_with(|| {
            let slot = object as usize;
            if slot >= self.pages.len() {
                self.pages.resize(slot + 1, 0);
            }
            if let Some(originals) = &mut self.originals {
                originals.resize_with(self.pages.len(), Vec::new);
                originals[slot].push(OriginalId { id, index });
            }
            self.pages[slot] += 1;
            self.pages[slot] - 1
        })
    }

    pub(super) fn originals(&self) -> Option<&[Vec<OriginalId>]> {
        self.originals.as_deref()
    }
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

    /// For names that only need to be told apart.
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
    use super::*;

    #[test]
    fn pages_are_numbered_by_first_appearance_within_their_object() {
        let mut interner = Interner::new(true);
        let mut number = |object, id, index| interner.number(object, id, index, false);
        assert_eq!([number(0, 900, 0), number(0, 900, 1), number(1, 900, 0), number(0, 7, 0)], [0, 1, 0, 2]);
        assert_eq!([number(0, 7, 0), number(0, 900, 1)], [2, 1]);
        assert_eq!(interner.number(0, 7, 0, true), 3);
        let originals = interner.originals().unwrap();
        assert_eq!(originals[0][1], OriginalId { id: 900, index: 1 });
        assert_eq!(originals[1], [OriginalId { id: 900, index: 0 }]);
    }
}
