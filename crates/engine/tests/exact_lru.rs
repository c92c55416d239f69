//! The textbook LRU beside the engine's: with every batch size at 1, the policy `lru` misses where a naive LRU does, to the
//! request.

mod reader;

use pageout_engine::{Config, Policy};
use proptest::prelude::*;
use reader::{Reader, file_pages, pages, stretch};
use std::collections::VecDeque;

/// Pages in order of access, the coldest first.
struct NaiveLru {
    capacity: usize,
    pages: VecDeque<u64>,
}

impl NaiveLru {
    /// True if the page wasn't there.
    fn read(&mut self, page: u64) -> bool {
        let found = self.pages.iter().position(|&other| other == page);
        match found {
            Some(at) => drop(self.pages.remove(at)),
            None if self.pages.len() == self.capacity => drop(self.pages.pop_front()),
            None => {}
        }
        self.pages.push_back(page);
        found.is_none()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_single_page_batches_it_misses_where_a_naive_lru_does(
        limit in 4..200u64,
        stretches in prop::collection::vec(stretch(), 1..12),
    ) {
        let config = Config {
            policy: Policy::exact_lru(),
            folio_batch: 1,
            charge_stock: 1,
            reclaim_batch: 1,
            ..Config::default()
        };
        let mut reader = Reader::new(config, limit, file_pages(limit));
        let mut naive = NaiveLru { capacity: limit as usize, pages: VecDeque::new() };
        let accesses = stretches.iter().flat_map(|stretch| pages(stretch, limit));
        for (at, page) in accesses.enumerate() {
            prop_assert_eq!(reader.read(page), naive.read(page), "access {}, of page {}", at, page);
        }
        reader.engine.check_invariants();
    }
}
