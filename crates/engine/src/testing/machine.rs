//! A machine that holds bytes: frames, swap slots, devices and tasks, single-threaded and as adversarial as it may be.
//!
//! ```text
//!   action ─► engine call ─► operations: a queue ───────────────► step
//!                                 │ carried out in any order        │ done: the access touches the frame that its page is in,
//!                                 │ that the queue allows           │ as soon as nothing in the queue names that
//!                                 ▼                                 ▼
//!                            transfers in flight                  model: what must be there
//! ```
//! *Adversarial* means: copies are made and transfers end in any order. A write leaves in its slot the contents of the frame at the start or at the
//! end, as the run says. A failed transfer leaves garbage at its target. A freed frame or slot holds garbage immediately. So memory that is freed,
//! reused or forgotten too early shows as a wrong value: immediately, or at the end of the run, when every page is read back. [`Checks::All`] adds
//! what a machine may expect of the operations themselves.

mod act; // what happens, one action after the other
mod counters; // what must hold of counters
mod ending; // everything comes to rest and is read back
mod tasks; // what each is doing, and what its accesses find
mod transfers; // what frames, slots and devices hold, and what moves between them

use super::actions::{Kind, PAGES, Setup, TASKS};
use super::model::{Model, Page};
use super::mutant::Mutant;
use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::*;
use std::collections::{BTreeMap, BTreeSet};
use tasks::{Doing, State, Task};
use transfers::Transfer;

/// What freed and never used memory holds.
const GARBAGE: u64 = 0xdead_beef_dead_beef;

/// Operations that wait at most.
const WAITING_MAX: usize = 24;

/// The checks during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checks {
    /// Contents only.
    Contents,
    /// Contents, the order of operations, failures, and the engine's own invariants after every action.
    All,
}

/// The machine.
pub(crate) struct ByteMachine {
    pub(crate) engine: Engine,
    checks: Checks,
    advice: Advice,
    /// Pages in a thousand, among those that can be swapped out, that hold nothing but zeroes.
    zero_filled: u16,
    /// Pages that a read of a file brings in at most.
    pages_a_read: u64,
    /// Pages of heaps, only the first of which are accessed.
    heap_pages: u64,
    frames: BTreeMap<Pfn, u64>,
    slots: BTreeMap<(SwapId, u32), u64>,
    /// What was compressed in place of it.
    compressed: BTreeMap<(SwapId, u32), u64>,
    /// Pages of files on their device, as far as they were written.
    blocks: BTreeMap<(FileId, u64), u64>,
    /// Operations that have yet to be carried out.
    queue: OpQueue,
    transfers: Vec<Transfer>,
    tasks: Vec<Task>,
    /// Writes limits while others are busy, and reads files back. It is never killed.
    administrator: TaskId,
    groups: [String; 2],
    regular: FileId,
    tmpfs: FileId,
    model: Model,
    next_value: u64,
    /// Tasks that were killed in the present step.
    killed: Vec<TaskId>,
    /// Values below this were written before the task's fsync or sync began.
    synced_below: BTreeMap<TaskId, u64>,
    /// A page stays dirty whose write has failed, and fsync reports it until that is acknowledged.
    keeps_failed_writes: bool,
    /// Pages of files whose last write has failed.
    not_on_device: BTreeSet<(FileId, u64)>,
    /// A write to a file has failed, and no fsync has reported that, or no syncfs.
    has_untold_error: bool,
    has_untold_fs_error: bool,
    now: Nanos,
    /// `memory.high` was used: a page can leave memory between the end of an access and the return from it.
    high_used: bool,
    /// All of its pages fit into memory, so that only groups are ever short of it.
    has_room: bool,
    /// Counters as of the last action.
    counted: Vec<i64>,
    /// Frames whose records were ready after the last action.
    ready: BTreeSet<Pfn>,
    /// Pages that the engine's events say are in page caches.
    cached: BTreeSet<(FileId, u64)>,
    ops: Vec<Op>,
}

impl ByteMachine {
    pub(crate) fn new(setup: &Setup, mutant: Option<Mutant>, checks: Checks) -> ByteMachine {
        let types = vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)];
        let mut builder = Engine::builder(Config {
            node_pages: match setup.tiers {
                Some(tiers) => vec![tiers.fast, setup.memory],
                None if setup.demotes || setup.spares => vec![setup.memory / 2; 2],
                None => vec![setup.memory],
            },
            layout: match setup.spares {
                true => Layout::default(),
                // A node of one kind has two zones where groups are nested: another choice without a draw of its own.
                false if setup.nested && setup.tiers.is_none() && !setup.demotes => {
                    Layout { movable_pages: vec![setup.memory / 2], ..Layout::default() }
                }
                false => Layout { memory_types: types, ..Layout::default() },
            },
            // Without draws of their own: all modes, with and without a sleeping disk, both versions of cgroups.
            zone_reclaim_mode: if setup.spares { 1 | (setup.limits[0] / 3) as u8 & 6 } else { 0 },
            min_unmapped_ratio: 0,
            laptop_mode: u32::from(setup.spares && setup.limits[1].is_multiple_of(4)),
            cgroup_version: if setup.spares { 1 } else { 2 },
            demotion_enabled: setup.demotes,
            numa_balancing: if setup.tiers.is_some() { 2 } else { 0 },
            promotion_governor_ms: if setup.tiers.is_some_and(|tiers| tiers.governed) { 1000 } else { 0 },
            pagecache_promotion_enabled: setup.tiers.is_some_and(|tiers| tiers.page_cache),
            pghot_record_fma_enable: setup.tiers.map_or(0, |tiers| tiers.tracking.into()),
            pghot_record_hintfaults_enable: setup.tiers.map_or(0, |tiers| tiers.tracking.into()),
            cpus: setup.cpus,
            swappiness: setup.swappiness,
            folio_batch: setup.folio_batch,
            charge_stock: setup.charge_stock,
            reclaim_batch: setup.reclaim_batch,
            plug_requests: setup.plug_requests,
            stat_flush: if setup.live_stats { StatFlush::Live } else { StatFlush::Periodic },
            kmem: setup.kmem,
            oom_kill: setup.oom_kill,
            page_cluster: setup.page_cluster,
            zswap_enabled: setup.zswap,
            zswap_shrinker_enabled: setup.kmem,
            zswap_max_pool_percent: if setup.cpus == 1 { 20 } else { 1 },
            policy: setup.policy,
            transparent_hugepage: match setup.huge {
                true => TransparentHugepage::Always,
                false => TransparentHugepage::Never,
            },
            ..Config::default()
        })
        .unwrap();
        builder.set_full_plug(transfers::race(setup.writes_won));
        for &spec in &setup.swap {
            let swap = builder.swap_on(spec).unwrap();
            if setup.seeks {
                builder.swap_rotational(swap).unwrap();
            }
            if spec.kind == SwapKind::Synchronous {
                builder.zram_limit(swap, setup.zram_limit).unwrap();
            }
        }
        let mut engine = builder.build();
        engine.core.mutant = mutant;
        engine.record_page_cache_events();
        let file = |engine: &mut Engine, name: &str, kind| {
            engine
                .file_create(FileSpec { name: name.to_owned(), pages: PAGES, kind, bdi: setup.bdi })
                .unwrap()
        };
        let regular = file(&mut engine, "data", FileKind::Regular);
        let tmpfs = file(&mut engine, "shm", FileKind::Tmpfs);
        let first = engine.memcg_create(MemcgId::ROOT, "a").unwrap();
        let parent = if setup.nested { first } else { MemcgId::ROOT };
        let second = engine.memcg_create(parent, "b").unwrap();
        let mms = [engine.process_create(first), engine.process_create(second)];
        let groups = [first, second].map(|memcg| {
            let (_, path) = engine.figures().memcgs().find(|(id, _)| *id == memcg).unwrap();
            format!("/sys/fs/cgroup{path}")
        });
        let mut machine = ByteMachine {
            engine,
            checks,
            advice: setup.advice,
            zero_filled: setup.zero_filled,
            pages_a_read: u64::from(setup.bdi.ra_pages.max(setup.bdi.io_pages).max(1)),
            heap_pages: if setup.huge { HUGE_PAGE_PAGES } else { PAGES },
            frames: BTreeMap::new(),
            slots: BTreeMap::new(),
            compressed: BTreeMap::new(),
            blocks: BTreeMap::new(),
            queue: OpQueue::default(),
            transfers: Vec::new(),
            tasks: Vec::new(),
            administrator: TaskId(TASKS as u32),
            groups,
            regular,
            tmpfs,
            model: Model::default(),
            next_value: 0,
            killed: Vec::new(),
            synced_below: BTreeMap::new(),
            keeps_failed_writes: setup.policy.machine.writeback.failed_write == FailedWrite::Dirty,
            not_on_device: BTreeSet::new(),
            has_untold_error: false,
            has_untold_fs_error: false,
            now: Nanos::ZERO,
            high_used: false,
            has_room: setup.memory >= 4096 && setup.tiers.is_none(),
            counted: vec![0; Stat::ALL.len()],
            ready: BTreeSet::new(),
            cached: BTreeSet::new(),
            ops: Vec::new(),
        };
        for at in 0..TASKS {
            let task = machine.engine.task_create(mms[at / 2], CpuId(at as u16 % setup.cpus));
            machine.tasks.push(Task::new(State::Idle));
            for kind in Kind::ALL {
                machine.make_object(task, kind);
            }
        }
        if setup.spares {
            machine.engine.set_real_time(TaskId(0), true);
        }
        let mm = machine.engine.process_create(MemcgId::ROOT);
        machine.engine.set_oom_score_adj(mm, -1000);
        assert_eq!(machine.engine.task_create(mm, CpuId(0)), machine.administrator);
        machine.tasks.push(Task::new(State::Idle));
        for kind in [Kind::OpenRegular, Kind::OpenTmpfs] {
            machine.make_object(machine.administrator, kind);
        }
        for thread in machine.engine.start_kernel_threads() {
            assert_eq!(thread.task.index(), machine.tasks.len());
            machine.tasks.push(Task::new(State::Idle));
            machine.advanced(thread.task, Doing::Thread, Step::Wait(thread.wait), false);
        }
        for group in 0..2 {
            machine.write(TaskId(0), group, "memory.max", setup.limits[group]);
            if setup.spares {
                machine.write(TaskId(0), group, "memory.soft_limit_in_bytes", 8 * group as u64);
            } else if checks == Checks::All && setup.limits[0].is_multiple_of(2) {
                // Half of the machines, without a draw of their own: a part of what each may have is protected.
                machine.write(TaskId(0), group, "memory.min", setup.limits[group] / 8);
                machine.write(TaskId(0), group, "memory.low", setup.limits[group] / 2);
            }
        }
        machine
    }

    fn make_object(&mut self, task: TaskId, kind: Kind) {
        let (regular, tmpfs, advice) = (self.regular, self.tmpfs, self.advice);
        let object = match kind {
            Kind::OpenRegular => self.engine.open(task, regular),
            Kind::OpenTmpfs => self.engine.open(task, tmpfs),
            Kind::MappedRegular => self.engine.map_file(task, regular, advice, task.0 == 0),
            Kind::MappedTmpfs => self.engine.map_file(task, tmpfs, advice, false),
            Kind::Anon => self.engine.map_anon(task, self.heap_pages, advice),
        };
        let object = object.unwrap();
        if matches!(kind, Kind::OpenTmpfs | Kind::Anon) {
            // A third does not shrink, and goes past zswap.
            let lengths = Lengths::Deciles([900, 1000, 1200, 1500, 2000, 2500, 3000, 4096, 4096, 4096, 4096]);
            let contents = Compressibility { zero_filled: self.zero_filled, same_filled: 50, lengths };
            self.engine.set_compressibility(task, object, contents).unwrap();
        }
        self.tasks[task.index()].objects.insert(kind as usize, object);
    }

    fn object(&self, task: TaskId, kind: Kind) -> ObjectId {
        self.tasks[task.index()].objects[&(kind as usize)]
    }

    fn page(&self, task: TaskId, kind: Kind, page: u64) -> Page {
        match kind {
            Kind::OpenRegular | Kind::MappedRegular => Page::Regular(self.regular, page),
            Kind::OpenTmpfs | Kind::MappedTmpfs => Page::Tmpfs(self.tmpfs, page),
            Kind::Anon => Page::Anon(task, self.object(task, Kind::Anon), page),
        }
    }

    /// Takes what the engine has decided.
    fn take_ops(&mut self) {
        let mut ops = std::mem::take(&mut self.ops);
        self.engine.take_ops(&mut ops);
        for op in ops.drain(..) {
            self.submit(op);
        }
        self.ops = ops;
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        let pages = events.into_iter().flat_map(|event| {
            let PageCacheEvent { file, page, order, removed } = event;
            (page..page + (1 << order)).map(move |page| (file, page, removed))
        });
        for (file, page, removed) in pages {
            let changed =
                if removed { self.cached.remove(&(file, page)) } else { self.cached.insert((file, page)) };
            assert!(changed, "{file:?} page {page} enters or leaves the page cache twice");
        }
        self.wake(false);
        self.note_kills();
    }
}
