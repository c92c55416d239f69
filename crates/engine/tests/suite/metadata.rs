//! The engine's metadata of each page of memory.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::{
    Access, Advice, Bdi, Config, CpuId, Engine, FileKind, FileSpec, MemcgId, Op, Policy, Served, Step,
};

/// A whole number of sections, so that no record lies beyond the last frame.
const FRAMES: u64 = 1 << 18;

/// Frames that the kernel takes for itself and keeps free.
const KERNEL: u64 = FRAMES / 32;

/// Bytes that an engine keeps where pages of one file fill all memory, and all are mapped.
fn metadata(policy: Policy) -> f64 {
    let config = Config { node_pages: vec![FRAMES], policy, ..Config::default() };
    let mut engine = Engine::new(config).unwrap();
    let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = engine.process_create(group);
    let task = engine.task_create(mm, CpuId(0));
    let spec =
        FileSpec { name: "data".to_owned(), pages: FRAMES, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let file = engine.file_create(spec).unwrap();
    let object = engine.map_file(task, file, Advice::Normal, false).unwrap();
    let mut ops = Vec::new();
    for page in 0..FRAMES - KERNEL {
        let mut step = engine.start(task, Access::new(object, page, false));
        engine.take_ops(&mut ops);
        for op in ops.drain(..) {
            let Op::ReadFile { io, .. } = op else { panic!("a first read asks for {op:?}") };
            engine.io_done(io, CpuId(0), Ok(()));
            step = engine.resume(task);
        }
        assert!(matches!(step, Step::Done(Served::Major(_))), "{step:?}");
    }
    engine.figures().metadata_bytes() as f64
}

#[test]
fn a_frame_costs_32_bytes_and_a_word_of_page_table_or_index_8_and_a_bit() {
    let words = 2 * FRAMES;
    let most = 32.0 * FRAMES as f64 + (8.0 + 1.0 / 8.0) * words as f64;
    let classic = metadata(Policy::of("classic@6.12"));
    assert!(classic <= most, "{classic} bytes, {most} at most");
    let mglru = metadata(Policy::of("mglru@6.12"));
    let most = most + 2.0 * FRAMES as f64;
    assert!(mglru <= most, "{mglru} bytes under generations, {most} at most");
}
