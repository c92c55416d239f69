//! One task that reads one file through a descriptor, on a device that answers at once; and what it may read.

#![allow(clippy::unwrap_used)] // a test helper: failing is what it is for

use pageout_engine::{
    Access, Bdi, Config, CpuId, Engine, FileKind, FileSpec, MemcgId, MmId, ObjectId, Op, Served, Step,
    TaskId, Wait,
};
use proptest::prelude::*;

/// The reader, and the engine it drives.
pub(crate) struct Reader {
    pub(crate) engine: Engine,
    mm: MmId,
    task: TaskId,
    object: ObjectId,
    ops: Vec<Op>,
}

impl Reader {
    /// A reader of a file of so many pages, in a group of at most `limit` pages.
    pub(crate) fn new(config: Config, limit: u64, pages: u64) -> Reader {
        // What these tests compare with counts pages of the file alone.
        let mut engine = Engine::new(Config { kmem: false, ..config }).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let file = engine
            .file_create(FileSpec {
                name: "data".to_owned(),
                pages,
                kind: FileKind::Regular,
                bdi: Bdi::NO_READAHEAD,
            })
            .unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.open(task, file).unwrap();
        let bytes = (limit * pageout_engine::PAGE_SIZE).to_string();
        let step = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &bytes).unwrap();
        assert_eq!(step, Step::Done(Served::Written { reclaimed: 0 }));
        Reader { engine, mm, task, object, ops: Vec::new() }
    }

    /// The reader's address space.
    pub(crate) fn mm(&self) -> MmId {
        self.mm
    }

    /// Drops all pages that are not in use.
    pub(crate) fn drop_caches(&mut self) {
        let mut step = self.engine.write_file(self.task, "/proc/sys/vm/drop_caches", "1").unwrap();
        while step == Step::Again {
            step = self.engine.resume(self.task);
        }
        assert!(matches!(step, Step::Done(_)), "{step:?}");
        self.engine.take_ops(&mut self.ops);
        self.ops.clear();
    }

    /// Reads a page; true if it had to be read from the device.
    pub(crate) fn read(&mut self, page: u64) -> bool {
        let mut missed = false;
        let mut step = self.engine.start(self.task, Access::new(self.object, page, false));
        loop {
            self.engine.take_ops(&mut self.ops);
            for op in self.ops.drain(..) {
                if let Op::ReadFile { io, .. } = op {
                    missed = true;
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            match step {
                Step::Done(Served::Failed(error)) => panic!("reading page {page}: {error}"),
                Step::Done(_) => return missed,
                Step::Again | Step::Wait(Wait::Io(_)) => step = self.engine.resume(self.task),
                Step::Wait(wait) => panic!("a reader has no reason for {wait:?}"),
            }
        }
    }
}

/// A stretch of a workload; lengths are in percent of the limit, so that they matter at any.
#[derive(Clone, Debug)]
pub(crate) enum Stretch {
    /// Reads pages in order, again and again.
    Loop { start: u64, len: u64, times: u64 },
    /// Reads low pages far more often than high ones.
    Skewed { count: u64, range: u64, seed: u64 },
    /// Reads pages at random.
    Uniform { count: u64, range: u64, seed: u64 },
    /// Reads one page several times in a row.
    Repeated { page: u64, times: u64 },
}

pub(crate) fn stretch() -> impl Strategy<Value = Stretch> {
    prop_oneof![
        2 => (0..300u64, 1..150u64, 1..4u64).prop_map(|(start, len, times)| Stretch::Loop { start, len, times }),
        3 => (1..400u64, 20..400u64, any::<u64>())
            .prop_map(|(count, range, seed)| Stretch::Skewed { count, range, seed }),
        1 => (1..200u64, 20..400u64, any::<u64>())
            .prop_map(|(count, range, seed)| Stretch::Uniform { count, range, seed }),
        1 => (0..400u64, 2..5u64).prop_map(|(page, times)| Stretch::Repeated { page, times }),
    ]
}

/// Pages that a file needs for any stretch at this limit.
pub(crate) fn file_pages(limit: u64) -> u64 {
    limit * 5
}

/// The pages that a stretch reads, in order.
pub(crate) fn pages(stretch: &Stretch, limit: u64) -> Vec<u64> {
    let scale = |percent: u64| (percent * limit / 100).max(1);
    match *stretch {
        Stretch::Loop { start, len, times } => {
            (0..times).flat_map(|_| scale(start)..scale(start) + scale(len)).collect()
        }
        Stretch::Skewed { count, range, mut seed } => (0..scale(count))
            .map(|_| {
                // The lowest of three: a heavy head and a long tail, without a power law's arithmetic.
                let draws = [(); 3].map(|()| random(&mut seed) % scale(range));
                *draws.iter().min().expect("three")
            })
            .collect(),
        Stretch::Uniform { count, range, mut seed } => {
            (0..scale(count)).map(|_| random(&mut seed) % scale(range)).collect()
        }
        Stretch::Repeated { page, times } => vec![scale(page); times as usize],
    }
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
