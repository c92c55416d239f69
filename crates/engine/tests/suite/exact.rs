//! Guests beside themselves: with every batch size at 1, a policy in the engine misses where the same policy over bare page numbers does, to
//! the request. Those are compared with the plainest forms of their algorithms where they are (`crates/policy/tests/exact.rs`).

use crate::reader::{Reader, Stretch, file_pages, pages, stretch};
use pageout_engine::*;
use pageout_policy::{Cache, Listed, POLICIES, Telling};
use proptest::prelude::*;

fn check(listed: &Listed, limit: u64, stretches: &[Stretch]) -> Result<(), TestCaseError> {
    let policy = Policy::of(listed.name);
    let config = Config { policy, folio_batch: 1, charge_stock: 1, reclaim_batch: 1, ..Config::default() };
    let mut reader = Reader::new(config, limit, file_pages(limit));
    let mut bare = Cache::new((listed.make)(0), limit as u32, Telling::Batches(1));
    let accesses = stretches.iter().flat_map(|stretch| pages(stretch, limit));
    for (at, page) in accesses.enumerate() {
        let is_miss = !bare.access(page as u32, false, 1).expect("it keeps the contract");
        prop_assert_eq!(reader.read(page), is_miss, "{:?}: access {}, of page {}", listed, at, page);
    }
    reader.engine.check_invariants();
    prop_assert_eq!(reader.engine.guest_fault(), None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_single_page_batches_a_guest_misses_where_it_does_over_bare_page_numbers(
        limit in 4..200u64,
        stretches in prop::collection::vec(stretch(), 1..12),
    ) {
        for listed in POLICIES {
            check(listed, limit, &stretches)?;
        }
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
