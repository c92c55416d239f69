//! A run whose outcome was recorded, replayed to the engine.
//!
//! - **Clock.** The times of single accesses are unknown. On the recording machine about 2,500 accesses per second missed, and the cost of
//!   hits was small compared with that: a miss takes 400 us, a hit no time. If a run's duration is known, it is distributed over its
//!   accesses. A traced run is slower: its clock follows the pages that its reclaim calls freed.
//! - **Statistics.** The worker's phase is not recorded, so it is different in each simulation. The program reads its group's
//!   `memory.stat` 20 times; someone else may read it more often.
//! - **Base pages.** None: the group holds no page of a file.
//! - **Stores.** A store loads first, except for a page's first touch (`validate/script.rs` describes how it is known).
//! - **Swap.** Transfers end immediately, because the disk is a file in memory next to an emulated CPU.
//! - **Linux 6.1** is `classic` with 6.1's rule of when to flush. Its MGLRU is assumed to be that of 6.12.

use anyhow::bail;
use pageout_engine::{
    Access, AccessError, Advice, Config, CpuId, Engine, FlushRule, MemcgId, Nanos, ObjectId, Policy, Served,
    Step, SwapKind, SwapSpec, TaskId,
};
use pageout_workload as workload;

use super::super::object::{Kind, Object};
use super::super::rig::transfer_of;

/// The duration of a miss, if the run does not have it.
pub(super) const MISS: Nanos = Nanos(400_000);

const HZ: u32 = 250;
const MEMORY_PAGES: u64 = 1 << 18;
const SWAP_PAGES: u64 = 131_072;
/// How often the program reads its group's statistics while it runs.
const OWN_READS: usize = 20;
const STAT_FILE: &str = "/sys/fs/cgroup/job/memory.stat";

/// The minimum period of reading statistics.
const READER_LEAST: Nanos = Nanos(1_000_000);

/// When accesses happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    PerAccess(Nanos),
    PerMiss(Nanos),
}

/// What a run is made of.
pub(super) struct Setting<'a> {
    pub(super) kernel: &'a str,
    pub(super) policy: &'a str,
    pub(super) objects: &'a [String],
    pub(super) limit_pages: u64,
    pub(super) swap: &'a str,
    /// How often another process reads the group's statistics.
    pub(super) stat_reader: Option<Nanos>,
    pub(super) clock: Clock,
    pub(super) sequence: Vec<workload::Access>,
}

/// A run that can be replayed.
pub(super) struct Play {
    config: Config,
    swap: SwapKind,
    limit_pages: u64,
    object_pages: u64,
    stat_reader: Option<Nanos>,
    clock: Clock,
    sequence: Vec<workload::Access>,
}

/// How a simulation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Done,
    Killed {
        after: Nanos,
        /// Calls of reclaim, the last ones, that looked at nothing.
        blind_calls: u64,
    },
}

/// The result of a simulation.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) ending: Ending,
    pub(super) major_faults: u64,
}

impl Play {
    pub(super) fn new(setting: Setting) -> anyhow::Result<Play> {
        let mut policy = match setting.policy {
            "classic" => Policy::of("classic@6.12"),
            "mglru" => Policy::of("mglru@6.12"),
            other => bail!("policy `{other}` is not modelled"),
        };
        match setting.kernel.split('.').take(2).collect::<Vec<_>>()[..] {
            ["6", "1"] => policy.group.reclaim.stat_flush = FlushRule::Updates,
            ["6", "12"] => {}
            _ => bail!("kernel `{}` is not modelled", setting.kernel),
        }
        let swap = match setting.swap {
            "zram" => SwapKind::Synchronous,
            "disk" => SwapKind::Device,
            other => bail!("swap `{other}` is not modelled"),
        };
        if let Some(period) = setting.stat_reader.filter(|&period| period < READER_LEAST) {
            bail!("`stat_reader_s`: found {period}, expected {READER_LEAST} or more");
        }
        let [object] = setting.objects else {
            bail!("found {} objects, expected one", setting.objects.len())
        };
        let object = Object::parse(object)?;
        if object.kind != Kind::Anon {
            bail!("object `{}` is not anonymous", object.text);
        }
        if let Some(access) =
            setting.sequence.iter().find(|access| access.object() != 0 || access.page() >= object.pages)
        {
            bail!(
                "found an access to page {} of object {}, which is outside of the object",
                access.page(),
                access.object()
            );
        }
        Ok(Play {
            config: Config {
                node_pages: vec![MEMORY_PAGES],
                hz: HZ,
                kmem: false,
                page_cluster: 0,
                policy,
                ..Config::default()
            },
            swap,
            limit_pages: setting.limit_pages,
            object_pages: object.pages,
            stat_reader: setting.stat_reader,
            clock: setting.clock,
            sequence: setting.sequence,
        })
    }

    /// Replays it; the worker's phase is the `simulation`-th of `simulations`.
    pub(super) fn perform(&self, simulation: u64, simulations: u64) -> anyhow::Result<Played> {
        let mut builder = Engine::builder(self.config.clone())?;
        builder.swap_on(SwapSpec { pages: SWAP_PAGES, kind: self.swap })?;
        let mut engine = builder.build();
        let group = engine.memcg_create(MemcgId::ROOT, "job")?;
        let process = engine.process_create(group);
        let task = engine.task_create(process, CpuId(0));
        let limit = self.limit_pages.saturating_mul(pageout_engine::PAGE_SIZE).to_string();
        let _ = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit)?;
        let object = engine.map_anon(task, self.object_pages, Advice::Normal)?;

        let period = self.config.stat_flush_period();
        let mut worker = Recurring { next: Nanos(period.0 * simulation / simulations), period };
        let mut reader = self.stat_reader.map(|period| Recurring { next: Nanos::ZERO, period });
        let reads_every = (self.sequence.len() / OWN_READS).max(1);
        let mut touched = vec![false; self.object_pages as usize];
        let (mut now, mut major_faults) = (Nanos::ZERO, 0);
        for (number, access) in self.sequence.iter().enumerate() {
            engine.set_now(now);
            if worker.is_due(now) {
                engine.flush_stats();
            }
            if reader.as_mut().is_some_and(|reader| reader.is_due(now)) || number % reads_every == 0 {
                engine.read_file(STAT_FILE)?;
            }
            let is_first = !std::mem::replace(&mut touched[access.page() as usize], true);
            let write = access.is_write() || is_first;
            let loads: &[bool] = if write && !is_first { &[false, true] } else { &[write] };
            for &write in loads {
                let (served, blind_calls) = serve(&mut engine, task, object, access.page(), write);
                match served {
                    Served::Failed(AccessError::Oom(_)) => {
                        return Ok(Played {
                            ending: Ending::Killed { after: now, blind_calls },
                            major_faults,
                        });
                    }
                    Served::Failed(error) => return Err(error.into()),
                    Served::Refused(refused) => bail!("access {number} was refused: {refused:?}"),
                    Served::Hit(_)
                    | Served::Written { .. }
                    | Served::Interrupted { .. }
                    | Served::Synced(_)
                    | Served::Truncated
                    | Served::Exited
                    | Served::Opened
                    | Served::Advised => {}
                    Served::Minor(_) | Served::Major(_) => {
                        major_faults += u64::from(matches!(served, Served::Major(_)));
                        if let Clock::PerMiss(time) = self.clock {
                            now += time;
                        }
                    }
                }
            }
            if let Clock::PerAccess(time) = self.clock {
                now += time;
            }
        }
        Ok(Played { ending: Ending::Done, major_faults })
    }
}

/// Something that happens every so often.
struct Recurring {
    next: Nanos,
    period: Nanos,
}

impl Recurring {
    fn is_due(&mut self, now: Nanos) -> bool {
        let is_due = now >= self.next;
        while self.next <= now {
            self.next += self.period;
        }
        is_due
    }
}

/// Serves an access to its end; transfers take no time. Says how many of its last calls of reclaim looked at nothing.
fn serve(engine: &mut Engine, task: TaskId, object: ObjectId, page: u64, write: bool) -> (Served, u64) {
    let (mut ops, mut blind_calls, mut is_looking) = (Vec::new(), 0, false);
    let mut before = *engine.work();
    let mut step = engine.start(task, Access::new(object, page, write));
    loop {
        let work = *engine.work() - before;
        before = *engine.work();
        if work.scanned > 0 {
            // The call goes on after this step: it is the first that ends in a later one.
            (blind_calls, is_looking) = (0, true);
        } else if work.reclaim_calls > 0 {
            blind_calls += work.reclaim_calls - u64::from(std::mem::take(&mut is_looking));
        }
        ops.clear();
        engine.take_ops(&mut ops);
        for io in ops.iter().filter_map(transfer_of) {
            engine.io_done(io, CpuId(0), Ok(()));
        }
        engine.take_woken(&mut Vec::new());
        step = match step {
            Step::Done(served) => return (served, blind_calls),
            Step::Again | Step::Wait(_) => engine.resume(task),
        };
    }
}
