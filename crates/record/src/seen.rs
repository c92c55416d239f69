//! Sets of pages of a file, which may be large and have few pages touched.

use std::collections::BTreeMap;

const PIECE: u64 = 4096;

/// Pages by their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pieces: BTreeMap<u64, Box<[u64; PIECE as usize / 64]>>,
    count: u64,
}

impl Seen {
    /// Inserts a page. Returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, page: u64) -> bool {
        let piece = self.pieces.entry(page / PIECE).or_insert_with(|| Box::new([0; PIECE as usize / 64]));
        let (word, bit) = ((page % PIECE / 64) as usize, 1u64 << (page % 64));
        let is_new = piece[word] & bit == 0;
        piece[word] |= bit;
        self.count += u64::from(is_new);
        is_new
    }

    /// Removes a page. Returns whether it was in the set.
    #[inline]
    pub(crate) fn remove(&mut self, page: u64) -> bool {
        let Some(piece) = self.pieces.get_mut(&(page / PIECE)) else { return false };
        let (word, bit) = ((page % PIECE / 64) as usize, 1u64 << (page % 64));
        let was_there = piece[word] & bit != 0;
        piece[word] &= !bit;
        self.count -= u64::from(was_there);
        was_there
    }

    /// Takes the pages from this one on out; returns how many there were.
    pub(crate) fn cut(&mut self, end: u64) -> u64 {
        let gone: Vec<u64> = self.pages().filter(|&page| page >= end).collect();
        for page in &gone {
            let piece = self.pieces.get_mut(&(page / PIECE)).expect("the page is in it");
            piece[(page % PIECE / 64) as usize] &= !(1 << (page % 64));
        }
        self.count -= gone.len() as u64;
        gone.len() as u64
    }

    /// How many pages there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The pages in order.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> {
        self.pieces.iter().flat_map(|(piece, words)| {
            let bits = move |(at, word): (usize, &u64)| {
                let word = *word;
                (0..64)
                    .filter(move |bit| word >> bit & 1 != 0)
                    .map(move |bit| piece * PIECE + at as u64 * 64 + bit)
            };
            words.iter().enumerate().flat_map(bits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_out_in_order_and_once() {
        let mut seen = Seen::default();
        let fresh: Vec<bool> = [70_000, 3, 64, 3, 1 << 39].map(|page| seen.insert(page)).into();
        assert_eq!(fresh, [true, true, true, false, true]);
        assert_eq!(seen.pages().collect::<Vec<_>>(), [3, 64, 70_000, 1 << 39]);
        assert_eq!(seen.count(), 4);
        assert!(seen.remove(70_000) && !seen.remove(70_000) && !seen.remove(9_000_000));
        assert_eq!(seen.cut(64), 2);
        assert_eq!((seen.pages().collect::<Vec<_>>(), seen.count()), (vec![3], 1));
    }
}
