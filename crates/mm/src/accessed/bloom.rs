//! The Bloom filter of page tables: which ones the next walk goes into, as the last walk, or look-around, has found young entries there.
//!
//! Two filters take turns. The last walk, and look-around since, have filled one. The next walk reads that one and fills the
//! other. A filter has 2^15 bits and two keys: 4 KiB. The price is walks in vain: with 10,000 tables in it, a fifth of all other
//! tables is walked too; with 20,000, a half. [reclaim 4.7]

use crate::units::MmId;

const BITS: usize = 1 << 15;

/// One filter.
struct Filter(Box<[u64; BITS / 64]>);

/// The two filters of an lruvec.
#[derive(Default)]
pub struct BloomFilters {
    filters: [Option<Filter>; 2],
}

/// Two bit numbers of 15 bits, from one multiplicative hash.
fn keys(mm: MmId, leaf: u64) -> [usize; 2] {
    let name = (u64::from(mm.0) << 32) ^ leaf;
    let hash = name.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34;
    [(hash & (BITS as u64 - 1)) as usize, (hash >> 15) as usize]
}

impl BloomFilters {
    /// Empties the filter that a walk of this sequence number fills.
    pub fn reset(&mut self, seq: u64) {
        match &mut self.filters[(seq % 2) as usize] {
            Some(filter) => filter.0.fill(0),
            none => *none = Some(Filter(Box::new([0; BITS / 64]))),
        }
    }

    /// A filter that was never filled knows nothing, and nothing is passed by.
    pub fn may_contain(&self, seq: u64, mm: MmId, leaf: u64) -> bool {
        let Some(filter) = &self.filters[(seq % 2) as usize] else { return true };
        keys(mm, leaf).iter().all(|&key| filter.0[key / 64] >> (key % 64) & 1 != 0)
    }

    /// Notes that a walk found enough in a page table.
    pub fn insert(&mut self, seq: u64, mm: MmId, leaf: u64) {
        if let Some(filter) = &mut self.filters[(seq % 2) as usize] {
            for key in keys(mm, leaf) {
                filter.0[key / 64] |= 1 << (key % 64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_inserted_is_always_found(tables in prop::collection::vec((0u32..50, 0u64..1 << 20), 1..500)) {
            let mut filters = BloomFilters::default();
            filters.reset(7);
            tables.iter().for_each(|&(mm, leaf)| filters.insert(7, MmId(mm), leaf));
            prop_assert!(tables.iter().all(|&(mm, leaf)| filters.may_contain(7, MmId(mm), leaf)));
        }
    }

    #[test]
    fn ten_thousand_tables_let_about_a_fifth_of_the_others_through() {
        let mut filters = BloomFilters::default();
        filters.reset(0);
        (0..10_000).for_each(|leaf| filters.insert(0, MmId(1), leaf));
        let wrong = (10_000..20_000).filter(|&leaf| filters.may_contain(0, MmId(1), leaf)).count();
        assert!((1_500..2_700).contains(&wrong), "{wrong} of 10,000");
    }

    #[test]
    fn a_filter_that_was_never_filled_passes_nothing_by() {
        let mut filters = BloomFilters::default();
        assert!(filters.may_contain(3, MmId(0), 0));
        filters.reset(3);
        assert!(!filters.may_contain(3, MmId(0), 0) && filters.may_contain(4, MmId(0), 0));
    }
}
