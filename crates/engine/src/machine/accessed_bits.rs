//! Accessed bits that a host's processor sets: pages that tasks use by plain loads and stores, of which the engine is not notified.
//!
//! ```text
//!   walk         a table of 512 entries is due ─▶ gather: its pages ──────┐
//!   reverse map  a folio's entry is looked at  ─▶ gather: its page        ├─▶ the host's sample ─▶ young bits in the words, as of an access
//!   look-around  its neighbours are looked at  ─▶ gather: up to 64 pages ─┘
//! ```
//! The engine asks where a kernel would read page-table entries, and at no other time. The host answers with the pages that were used since it was last
//! asked about them, and clears its own bits. The words then have the young bits, and all rules apply to them as to those of a simulated machine. An
//! address space of this kind counts as having run in each walk: the engine does not see its hits. [live-3 2.4]

use std::ops::Range;

use crate::units::MmId;

/// A host that knows which pages of an address space were used.
pub trait AccessedBits: Send + Sync {
    /// Adds those of these pages to `accessed` that were used since the last call about them. Later calls do not report them for the same use.
    fn gather(&mut self, mm: MmId, pages: Range<u64>, accessed: &mut Vec<u64>);
}

/// The host's callback, and a buffer for its answer.
pub(crate) struct Sampler {
    pub(crate) bits: Box<dyn AccessedBits>,
    pub(crate) accessed: Vec<u64>,
}

impl Sampler {
    pub(crate) fn new(bits: Box<dyn AccessedBits>) -> Sampler {
        Sampler { bits, accessed: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Advice, Config, CpuId, Engine, MemcgId, Policy, Served, Stat, Step};
    use std::sync::{Arc, Mutex};

    /// The pages that were used, and the questions.
    #[derive(Default)]
    struct Host {
        used: Vec<u64>,
        asked: Vec<Range<u64>>,
    }

    struct Bits(Arc<Mutex<Host>>);

    impl AccessedBits for Bits {
        fn gather(&mut self, _: MmId, pages: Range<u64>, accessed: &mut Vec<u64>) {
            let mut host = self.0.lock().unwrap();
            host.asked.push(pages.clone());
            let (told, rest) = host.used.iter().partition(|page| pages.contains(page));
            host.used = rest;
            accessed.extend::<Vec<u64>>(told);
        }
    }

    const HOT: Range<u64> = 0..512;

    /// A task that uses its hot pages all the time, and is seen by the engine only where it faults.
    struct Job {
        engine: Engine,
        task: crate::TaskId,
        heap: crate::ObjectId,
        host: Arc<Mutex<Host>>,
    }

    impl Job {
        fn new(policy: &str, is_sampled: bool) -> Job {
            let config =
                Config { policy: Policy::by_name(policy).unwrap(), kmem: false, ..Config::default() };
            let mut builder = Engine::builder(config).unwrap();
            let host = Arc::new(Mutex::new(Host::default()));
            builder.set_accessed_bits(Box::new(Bits(Arc::clone(&host))));
            builder.swap_on(crate::SwapSpec { pages: 32_768, kind: crate::SwapKind::Synchronous }).unwrap();
            let mut engine = builder.build();
            let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
            let mm = engine.process_create(group);
            let task = engine.task_create(mm, CpuId(0));
            let step = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", "4194304").unwrap();
            assert!(matches!(step, Step::Done(_)), "{step:?}");
            engine.sample_accessed_bits(mm, is_sampled);
            let heap = engine.map_anon(task, 16_384, Advice::Normal).unwrap();
            Job { engine, task, heap, host }
        }

        fn fault(&mut self, page: u64) {
            let mut step = self.engine.start(self.task, Access::new(self.heap, page, true));
            let mut ops = Vec::new();
            loop {
                self.engine.take_ops(&mut ops);
                ops.clear();
                step = match step {
                    Step::Done(Served::Failed(error)) => panic!("{error}"),
                    Step::Done(_) => break,
                    _ => self.engine.resume(self.task),
                };
            }
        }

        /// Uses the hot pages. Returns how many of them were not in memory.
        fn use_hot(&mut self) -> u64 {
            let there = self.engine.anon_frames(self.task, self.heap, HOT).unwrap();
            for &(page, pfn) in &there {
                assert_eq!(self.engine.anon_page_of(pfn).map(|(_, page)| page), Some(page));
            }
            self.host.lock().unwrap().used = HOT.collect();
            let missing = HOT.filter(|page| there.iter().all(|(at, _)| at != page));
            missing.map(|page| self.fault(page)).count() as u64
        }
    }

    /// Faults of hot pages while a task writes sixteen times as much as its group may have.
    fn faults_of_hot_pages(policy: &str, is_sampled: bool) -> u64 {
        let mut job = Job::new(policy, is_sampled);
        let mut faults = 0;
        for page in HOT.end..16_384 {
            if page % 16 == 0 {
                faults += job.use_hot();
            }
            job.fault(page);
        }
        assert!(job.engine.figures().vmstat(Stat::Pswpout) > 0, "{policy}: nothing was evicted");
        job.engine.check_invariants();
        assert_eq!(is_sampled, !job.host.lock().unwrap().asked.is_empty(), "{policy}: who is asked");
        faults
    }

    #[test]
    fn page_used_without_the_engine_stays_by_the_hosts_bits() {
        for policy in ["mglru@6.12", "classic@6.12"] {
            let [with, without] = [true, false].map(|is_sampled| faults_of_hot_pages(policy, is_sampled));
            assert!(3 * with <= without, "{policy}: {with} faults with the host's bits, {without} without");
        }
    }
}
