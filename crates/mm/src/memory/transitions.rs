//! Which flags of a folio may change where: one row a flag and direction, asserted at every change in debug and fuzz builds.
//!
//! A row says what must be so, and what must not, when the flag is set or cleared. The folio is checked after setting and before
//! clearing. Changes made together are checked together.

use crate::memory::folio::{Folio, FolioFlags};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    Set,
    Cleared,
}

struct Transition {
    flag: FolioFlags,
    to: To,
    needs: FolioFlags,
    forbids: FolioFlags,
    why: &'static str,
}

const fn row(
    flag: FolioFlags,
    to: To,
    needs: FolioFlags,
    forbids: FolioFlags,
    why: &'static str,
) -> Transition {
    Transition { flag, to, needs, forbids, why }
}

const NOTHING: FolioFlags = FolioFlags::empty();

/// A flag without a row in a direction may change that way at any time.
#[rustfmt::skip]
const TRANSITIONS: &[Transition] = &[
    row(FolioFlags::LRU, To::Cleared, FolioFlags::LRU, NOTHING,
        "a folio is taken off its list once, and the task that takes it owns its place"),
    row(FolioFlags::UNEVICTABLE, To::Set, FolioFlags::LRU, NOTHING,
        "being counted as unevictable is a folio's place, as a list is"),
    row(FolioFlags::UNEVICTABLE, To::Cleared, FolioFlags::UNEVICTABLE, FolioFlags::LRU,
        "it is rescued on its way from there to a list"),
    row(FolioFlags::LRU, To::Set, FolioFlags::CHARGED, NOTHING,
        "lists are a group's, and hold what it pays for"),
    row(FolioFlags::ANON, To::Set, NOTHING, FolioFlags::INDEXED.union(FolioFlags::LRU),
        "whose page it is, is known before it can be found"),
    row(FolioFlags::SWAPBACKED, To::Cleared, FolioFlags::ANON, FolioFlags::SWAPCACHE,
        "only anonymous contents may be forgotten, and only where no slot keeps them"),
    row(FolioFlags::SWAPCACHE, To::Set, FolioFlags::SWAPBACKED, NOTHING,
        "a slot is backing store for what swap backs"),
    row(FolioFlags::SWAPCACHE, To::Cleared, FolioFlags::SWAPCACHE, FolioFlags::LOCKED,
        "a slot that is being read stays with its folio until the read ends"),
    row(FolioFlags::WRITEBACK, To::Set, NOTHING, FolioFlags::LOCKED.union(FolioFlags::DIRTY),
        "a write takes the page as it is and leaves it clean; what is changed meanwhile is dirty again"),
    row(FolioFlags::WRITEBACK, To::Cleared, FolioFlags::WRITEBACK, NOTHING,
        "a write ends once"),
    row(FolioFlags::LOCKED, To::Set, NOTHING, FolioFlags::LRU.union(FolioFlags::DIRTY).union(FolioFlags::WRITEBACK),
        "a page is read in before anyone can find or change it"),
    row(FolioFlags::LOCKED, To::Cleared, FolioFlags::LOCKED, NOTHING,
        "a read ends once"),
    row(FolioFlags::INDEXED, To::Set, NOTHING, FolioFlags::ANON,
        "anonymous memory is in no file's index"),
    row(FolioFlags::INDEXED, To::Cleared, FolioFlags::INDEXED, NOTHING,
        "a page leaves its index once"),
    row(FolioFlags::RECLAIM, To::Set, FolioFlags::CHARGED, NOTHING,
        "it is about a folio's place on a group's lists, or about reading on behind it: of a free frame it means nothing"),
    row(FolioFlags::DEPARTED, To::Set, FolioFlags::CHARGED, NOTHING,
        "it is about whose page it is: a free frame has left nothing"),
    row(FolioFlags::PINNED, To::Set, FolioFlags::INDEXED, NOTHING,
        "buffers and devices hold pages of files"),
];

/// What a flag's row of a direction needs and forbids, by the flag's bit: found without a search, as changes are many.
type Rules = [(FolioFlags, FolioFlags); FolioFlags::all().bits().count_ones() as usize];

const fn rules(to: To) -> Rules {
    let (mut rules, mut at): (Rules, _) = ([(NOTHING, NOTHING); _], 0);
    while at < TRANSITIONS.len() {
        let row = &TRANSITIONS[at];
        if row.to as u8 == to as u8 {
            rules[row.flag.bits().trailing_zeros() as usize] = (row.needs, row.forbids);
        }
        at += 1;
    }
    rules
}

static RULES: [Rules; 2] = [rules(To::Set), rules(To::Cleared)];

impl Folio {
    /// Sets flags.
    #[inline]
    pub fn set(&mut self, flags: FolioFlags) {
        self.flags |= flags;
        check(self, flags, To::Set);
    }

    /// Clears flags.
    #[inline]
    pub fn clear(&mut self, flags: FolioFlags) {
        check(self, flags & self.flags, To::Cleared);
        self.flags -= flags;
    }

    /// Sets or clears flags.
    pub fn change(&mut self, flags: FolioFlags, is_set: bool) {
        if is_set { self.set(flags) } else { self.clear(flags) }
    }
}

#[inline]
fn check(folio: &Folio, changed: FolioFlags, to: To) {
    if cfg!(debug_assertions) {
        let mut left = changed.bits();
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let (needs, forbids) = RULES[to as usize][bit as usize];
            if !folio.has(needs) || folio.flags().intersects(forbids) {
                refuse(folio, FolioFlags::from_bits_retain(1 << bit), to);
            }
        }
    }
}

#[cold]
fn refuse(folio: &Folio, flag: FolioFlags, to: To) -> ! {
    let row = TRANSITIONS.iter().find(|row| row.flag == flag && row.to == to);
    panic!("{flag:?} can't be {to:?}: {}; {folio:?}", row.map_or("", |row| row.why));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a write takes the page as it is")]
    fn a_dirty_page_is_not_being_written() {
        let mut folio = Folio::default();
        folio.set(FolioFlags::SWAPBACKED | FolioFlags::SWAPCACHE | FolioFlags::DIRTY);
        folio.set(FolioFlags::WRITEBACK);
    }

    #[test]
    fn what_is_not_set_may_be_cleared_without_a_word() {
        let mut folio = Folio::default();
        folio.clear(FolioFlags::all());
        assert_eq!(folio.flags(), FolioFlags::empty());
    }

    #[test]
    fn a_flag_has_one_row_a_direction() {
        for (at, row) in TRANSITIONS.iter().enumerate() {
            let same = |other: &Transition| other.flag == row.flag && other.to == row.to;
            assert_eq!(TRANSITIONS.iter().position(same), Some(at), "{:?} to {:?}", row.flag, row.to);
        }
    }
}
