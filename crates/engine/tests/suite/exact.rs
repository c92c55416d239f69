//! The textbooks beside the engine: with every batch size at 1, the policies `lru` and `sieve` miss where the plainest form of
//! their algorithm does, to the request.

use crate::reader::{Reader, Stretch, file_pages, pages, stretch};
use pageout_engine::*;
use proptest::prelude::*;
use std::collections::VecDeque;

trait Naive {
    /// True if the page wasn't there.
    fn read(&mut self, page: u64) -> bool;
}

/// Pages in order of access, the coldest first.
struct NaiveLru {
    capacity: usize,
    pages: VecDeque<u64>,
}

impl Naive for NaiveLru {
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

/// Pages in order of arrival, the oldest first, and whether they were visited since the hand came by.
struct NaiveSieve {
    capacity: usize,
    pages: Vec<(u64, bool)>,
    /// Where the hand is; nowhere before the first eviction, and when it has gone past the newest page.
    hand: Option<usize>,
}

impl NaiveSieve {
    fn evict(&mut self) {
        let mut at = self.hand.unwrap_or(0);
        while self.pages[at].1 {
            self.pages[at].1 = false;
            at = (at + 1) % self.pages.len();
        }
        self.pages.remove(at);
        self.hand = (at < self.pages.len()).then_some(at);
    }
}

impl Naive for NaiveSieve {
    fn read(&mut self, page: u64) -> bool {
        if let Some((_, visited)) = self.pages.iter_mut().find(|(other, _)| *other == page) {
            *visited = true;
            return false;
        }
        if self.pages.len() == self.capacity {
            self.evict();
        }
        self.pages.push((page, false));
        true
    }
}

fn check(
    policy: Policy,
    mut naive: impl Naive,
    limit: u64,
    stretches: &[Stretch],
) -> Result<(), TestCaseError> {
    let config = Config { policy, folio_batch: 1, charge_stock: 1, reclaim_batch: 1, ..Config::default() };
    let mut reader = Reader::new(config, limit, file_pages(limit));
    let accesses = stretches.iter().flat_map(|stretch| pages(stretch, limit));
    for (at, page) in accesses.enumerate() {
        prop_assert_eq!(reader.read(page), naive.read(page), "access {}, of page {}", at, page);
    }
    reader.engine.check_invariants();
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_single_page_batches_it_misses_where_a_naive_lru_does(
        limit in 4..200u64,
        stretches in prop::collection::vec(stretch(), 1..12),
    ) {
        let naive = NaiveLru { capacity: limit as usize, pages: VecDeque::new() };
        check(Policy::of("lru"), naive, limit, &stretches)?;
    }

    #[test]
    fn with_single_page_batches_it_misses_where_a_naive_sieve_does(
        limit in 4..200u64,
        stretches in prop::collection::vec(stretch(), 1..12),
    ) {
        let naive = NaiveSieve { capacity: limit as usize, pages: Vec::new(), hand: None };
        check(Policy::of("sieve"), naive, limit, &stretches)?;
    }
}

#[test]
fn a_list_of_pages_that_were_all_used_is_gone_round_before_memory_is_out() {
    const PAGES: u64 = 20_000;
    let mut engine = Engine::new(Config { policy: Policy::of("lru"), ..Config::default() }).unwrap();
    let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = engine.process_create(memcg);
    let task = engine.task_create(mm, CpuId(0));
    let spec =
        FileSpec { name: "data".to_owned(), pages: PAGES, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let file = engine.file_create(spec).unwrap();
    let object = engine.map_file(task, file, Advice::Normal, false).unwrap();
    let limit = (PAGES * 3 / 4 * PAGE_SIZE).to_string();
    assert!(engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit).is_ok());
    for page in 0..PAGES {
        let mut step = engine.start(task, Access::new(object, page, false));
        while !matches!(step, Step::Done(_)) {
            let mut ops = Vec::new();
            engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, .. } = op {
                    engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            step = engine.resume(task);
        }
        assert!(matches!(step, Step::Done(Served::Major(_))), "{step:?}");
    }
}
