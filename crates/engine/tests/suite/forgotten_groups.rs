//! Numbers of groups that were removed and forgotten: later groups get them.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::reader::Reader;
use pageout_engine::{Config, Engine, MemcgId, Stat};

/// The group that `Reader` makes.
const JOB: &str = "/sys/fs/cgroup/job";

#[test]
fn forgotten_group_number_is_given_to_the_next_group() {
    let mut reader = Reader::new(Config::default(), 64, 256);
    (0..256).for_each(|page| _ = reader.read(page));
    let job = reader.engine.figures().memcg_by_path("/job").unwrap();
    let mm = reader.mm();
    assert!(!reader.engine.memcg_forget(job), "it is there");
    reader.engine.process_move(mm, MemcgId::ROOT);
    reader.engine.remove_directory(JOB).unwrap();
    assert!(!reader.engine.memcg_forget(job), "its pages are charged to it");
    reader.drop_caches();
    assert!(reader.engine.memcg_forget(job));
    assert!(!reader.engine.memcg_forget(job), "it is forgotten already");
    let steal = |reader: &Reader, memcg| reader.engine.figures().memcg_stat_now(memcg, Stat::PgstealDirect);
    assert!(steal(&reader, MemcgId::ROOT) >= 192, "its events are its parent's");
    let next = reader.engine.memcg_create(MemcgId::ROOT, "next").unwrap();
    assert_eq!(next, job);
    assert_eq!(reader.engine.read_file("/sys/fs/cgroup/next/memory.max").unwrap(), "max\n");
    assert_eq!(steal(&reader, next), 0);
    let events = reader.engine.read_file("/sys/fs/cgroup/next/memory.events").unwrap();
    assert!(events.contains("max 0\n"), "{events}");
    assert!(reader.engine.read_file("/sys/fs/cgroup/job/memory.max").is_err());
    reader.engine.process_move(mm, next);
    (0..256).for_each(|page| _ = reader.read(page));
    assert_eq!(reader.engine.figures().memcg_stat_now(next, Stat::NrFilePages), 256);
    reader.engine.check_invariants();
}

#[test]
fn group_is_not_forgotten_while_kernel_memory_names_it() {
    let config = Config { kmem: true, ..Config::default() };
    let mut engine = Engine::new(config).unwrap();
    let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    engine.remove_directory(JOB).unwrap();
    assert!(!engine.memcg_forget(memcg));
    assert_ne!(engine.memcg_create(MemcgId::ROOT, "next").unwrap(), memcg);
}

#[test]
fn group_numbers_do_not_run_out() {
    let mut reader = Reader::new(Config::default(), 64, 16);
    for turn in 0..70_000 {
        let name = format!("g{turn}");
        let memcg = reader.engine.memcg_create(MemcgId::ROOT, &name).unwrap();
        reader.engine.remove_directory(&format!("/sys/fs/cgroup/{name}")).unwrap();
        assert!(reader.engine.memcg_forget(memcg));
    }
    assert!(reader.engine.memcg_create(MemcgId::ROOT, "last").unwrap().0 < 8);
    reader.engine.check_invariants();
}
