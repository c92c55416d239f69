//! Traces that a program has in its memory: known by a name in place of a file's, and simulated where they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The page of each access, as numbers with few gaps.
#[derive(Clone)]
pub struct InMemory {
    pages: Arc<dyn AsRef<[u32]> + Send + Sync>,
    /// The number of distinct pages.
    pub distinct_pages: u32,
}

static KEPT: Mutex<BTreeMap<PathBuf, InMemory>> = Mutex::new(BTreeMap::new());

/// Makes accesses known by a name.
pub fn keep(name: PathBuf, of: InMemory) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(name, of);
}

/// Takes a name back.
pub fn forget(name: &Path) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
}

/// The accesses of a name.
pub fn kept(name: &Path) -> Option<InMemory> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

impl InMemory {
    /// Uses page numbers unchanged if at least half of those up to the largest occur. Otherwise it numbers pages again, which makes a copy.
    /// Returns which of both it did.
    pub fn of(pages: Arc<dyn AsRef<[u32]> + Send + Sync>) -> (InMemory, bool) {
        let numbers = (*pages).as_ref();
        let most = numbers.iter().copied().max().unwrap_or(0);
        if u64::from(most) < 2 * numbers.len() as u64 && most < u32::MAX {
            let mut seen = vec![0_u64; most as usize / 64 + 1];
            numbers.iter().for_each(|page| seen[*page as usize / 64] |= 1 << (page % 64));
            let distinct_pages = seen.iter().map(|word| word.count_ones()).sum();
            if u64::from(most) < 2 * u64::from(distinct_pages) {
                return (InMemory { pages, distinct_pages }, false);
            }
        }
        (InMemory::numbered(numbers.iter().map(|page| u64::from(*page))), true)
    }

    /// Pages of any name, numbered in the order in which they first come.
    pub fn numbered(pages: impl Iterator<Item = u64>) -> InMemory {
        let mut numbers: BTreeMap<u64, u32> = BTreeMap::new();
        let number = |page| {
            let next = numbers.len() as u32;
            *numbers.entry(page).or_insert(next)
        };
        let pages: Vec<u32> = pages.map(number).collect();
        InMemory { pages: Arc::new(pages), distinct_pages: numbers.len() as u32 }
    }

    /// The page of each access.
    pub fn pages(&self) -> &[u32] {
        (*self.pages).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pages: &[u32]) -> (InMemory, bool) {
        InMemory::of(Arc::new(pages.to_vec()))
    }

    #[test]
    fn numbers_with_few_gaps_stay_where_they_are_and_others_are_numbered_anew() {
        let (dense, is_copied) = of(&[3, 0, 1, 3, 1]);
        assert_eq!((dense.pages(), dense.distinct_pages, is_copied), (&[3, 0, 1, 3, 1][..], 3, false));
        for sparse in [&[7, 4_000_000_000, 7, 9][..], &[0, 0, 0, 0, 0, 7]] {
            let (renumbered, is_copied) = of(sparse);
            assert!(is_copied);
            assert_eq!(renumbered.pages()[..2], if sparse[1] == 0 { [0, 0] } else { [0, 1] });
        }
        assert_eq!(InMemory::numbered([1 << 40, 5, 1 << 40].into_iter()).pages(), [0, 1, 0]);
    }
}
