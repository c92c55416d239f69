//! The minimum number of misses: with knowledge of the future, the page whose next use is furthest away is evicted. (L. A. Belady, *A Study of
//! Replacement Algorithms for a Virtual-Storage Computer*, IBM Systems Journal 5(2), 1966, <https://doi.org/10.1147/sj.52.0078>.)

use std::collections::BTreeMap;

/// Returns the minimum number of misses of these accesses with this capacity, in pages.
pub fn least_misses(accesses: &[u32], capacity: usize) -> usize {
    let mut next_use = vec![usize::MAX; accesses.len()];
    let mut seen = BTreeMap::new();
    for (at, page) in accesses.iter().enumerate().rev() {
        next_use[at] = seen.insert(page, at).unwrap_or(usize::MAX);
    }
    // By page in memory: when it is used next.
    let mut memory: BTreeMap<u32, usize> = BTreeMap::new();
    let mut misses = 0;
    for (at, &page) in accesses.iter().enumerate() {
        if !memory.contains_key(&page) {
            misses += 1;
            if memory.len() == capacity {
                let last = memory.iter().max_by_key(|(_, next)| **next).map(|(&page, _)| page);
                last.map(|page| memory.remove(&page));
            }
        }
        memory.insert(page, next_use[at]);
    }
    misses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least misses, by trying every page at every eviction.
    fn by_trying(accesses: &[u32], capacity: usize, memory: &[u32]) -> usize {
        let Some((&page, rest)) = accesses.split_first() else { return 0 };
        if memory.contains(&page) {
            return by_trying(rest, capacity, memory);
        }
        if memory.len() < capacity {
            return 1 + by_trying(rest, capacity, &[memory, &[page]].concat());
        }
        let without = |at| -> Vec<u32> {
            let mut memory = memory.to_vec();
            memory[at] = page;
            memory
        };
        let tried = (0..capacity).map(|at| by_trying(rest, capacity, &without(at)));
        1 + tried.min().expect("memory has room for a page")
    }

    #[test]
    fn no_choice_of_victims_has_fewer_misses() {
        let mut random = super::super::Random::new(7);
        for capacity in [1, 2, 3] {
            for _ in 0..200 {
                let accesses: Vec<u32> = (0..12).map(|_| random.below(5) as u32).collect();
                let least = by_trying(&accesses, capacity, &[]);
                assert_eq!(least_misses(&accesses, capacity), least, "{accesses:?}, room for {capacity}");
            }
        }
    }
}
