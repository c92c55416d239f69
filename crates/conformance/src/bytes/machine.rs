//! The machine: an engine, what is built around it, and what must hold after each action. It sees no more of the engine than any
//! machine does.

mod act; // what happens, one action after the other
mod counters; // what must hold of counters
mod ending; // everything comes to rest and is read back
mod objects; // objects and files that come, go and change
mod groups; // groups and the processes in them
mod tasks; // what each is doing, and what its accesses find

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageout_engine::*;

use super::contents::{Contents, Page};
use super::gate::Gate;
use super::input::{Action, Group, HUGE_PAGE_PAGES, Setup};
use super::store::{Store, race};
use tasks::{Doing, State, Task};

/// Pages of a pageblock: the maximum that compaction isolates.
const PAGEBLOCK_PAGES: i64 = 512;

pub(super) struct ByteMachine {
    engine: Engine,
    cpus: u16,
    frames_total: u64,
    anon_pages: u64,
    advice: Advice,
    bdi: Bdi,
    files: Vec<(FileId, FileKind, u64)>,
    /// How long each file has been at most.
    longest: Vec<u64>,
    /// Those that have had another length.
    resized: BTreeSet<usize>,
    groups: Vec<(MemcgId, String)>,
    /// Processes with the group that each is in, and the process of each task that has one.
    processes: Vec<(MmId, usize)>,
    runs_in: Vec<(usize, MmId)>,
    tasks: Vec<Task>,
    store: Store,
    contents: Contents,
    now: Nanos,
    /// `memory.high` was used: a page can leave memory between the end of an access and the return from it.
    high_used: bool,
    /// A page stays dirty whose write has failed.
    keeps_failed_writes: bool,
    /// An access has failed for lack of memory.
    is_out_of_memory: bool,
    actions: u32,
    /// Counters as of the last action.
    counted: Vec<i64>,
    /// Frames whose accesses hardware has sampled and not yet reported.
    hints: Vec<Pfn>,
    /// Tasks that were killed in the present step.
    killed: Vec<usize>,
    /// Writes have ended in the present step, before their batch was over.
    ended_early: Arc<AtomicBool>,
    /// Pages of the fast node, whose last frames the balloon takes.
    fast_pages: u64,
    /// The task that resized the balloon last.
    balloons: Option<usize>,
    show: bool,
}

impl ByteMachine {
    pub(super) fn new(setup: &Setup, gate: Gate, show: bool) -> ByteMachine {
        let mut builder = Engine::builder(setup.config.clone()).expect("every setup is in range");
        let ended_early = Arc::default();
        builder.set_full_plug(race(setup.writes_won, Arc::clone(&ended_early)));
        builder.set_frame_gate(Box::new(gate.clone()));
        for &spec in &setup.swap {
            builder.swap_on(spec).expect("every swap device is in range");
        }
        let mut engine = builder.build();
        engine.record_page_cache_events();
        let mut machine = ByteMachine {
            engine,
            cpus: setup.config.cpus,
            frames_total: setup.config.node_pages.iter().sum(),
            anon_pages: setup.anon_pages,
            advice: setup.advice,
            bdi: setup.bdi,
            files: Vec::new(),
            longest: Vec::new(),
            resized: BTreeSet::new(),
            groups: vec![(MemcgId::ROOT, String::new())],
            processes: Vec::new(),
            runs_in: Vec::new(),
            tasks: Vec::new(),
            store: Store::behind(gate),
            contents: Contents::default(),
            now: Nanos::ZERO,
            high_used: false,
            keeps_failed_writes: setup.config.policy.machine.writeback.failed_write == FailedWrite::Dirty,
            is_out_of_memory: false,
            actions: 0,
            counted: vec![0; Stat::ALL.len()],
            hints: Vec::new(),
            killed: Vec::new(),
            ended_early,
            fast_pages: setup.config.node_pages[0],
            balloons: None,
            show,
        };
        for (at, &(kind, pages)) in setup.files.iter().enumerate() {
            let spec = FileSpec { name: format!("file{at}"), pages, kind, bdi: setup.bdi };
            // Every other regular file is on a device that is registered after the machine was built.
            let file = match kind {
                FileKind::Regular if at % 2 == 1 => {
                    let bdi = machine.engine.bdi_register(&at.to_string()).expect("there are few");
                    machine.engine.file_create_on(spec, bdi)
                }
                _ => machine.engine.file_create(spec),
            };
            let file = file.expect("every file is in range");
            // Files of both kinds have large folios, or none has.
            if kind == FileKind::Tmpfs && setup.bdi.file_system == FileSystem::Xfs {
                machine.engine.set_tmpfs_huge(file, TmpfsHuge::Always).expect("it is a file of tmpfs");
            }
            machine.files.push((file, kind, pages));
            machine.longest.push(pages);
        }
        for group in &setup.groups {
            machine.create_group(group.parent, group.policy);
        }
        let mms: Vec<MmId> =
            setup.processes.iter().map(|&(group, _)| machine.create_process(group.into())).collect();
        for (&mm, &(_, adj)) in mms.iter().zip(&setup.processes) {
            machine.engine.set_oom_score_adj(mm, adj);
        }
        for &(process, cpu) in &setup.tasks {
            machine.create_task(mms[usize::from(process)], cpu);
        }
        for ThreadInfo { task, wait, .. } in machine.engine.start_kernel_threads() {
            assert_eq!(task, TaskId(machine.tasks.len() as u32));
            machine.tasks.push(Task::new(State::Idle));
            machine.advanced(task.0 as usize, Doing::Thread, Step::Wait(wait), false);
        }
        for (at, Group { knobs, .. }) in setup.groups.iter().enumerate() {
            for &(knob, limit) in knobs {
                machine.write_limit(0, at + 1, knob, limit);
                machine.take_ops();
            }
        }
        machine.engine.check_invariants();
        machine
    }

    /// Lets an action happen.
    pub(super) fn perform(&mut self, action: Action) {
        if self.show {
            eprintln!("{action:?}");
        }
        self.tell_hints();
        self.act(action);
        self.take_ops();
        self.store.keep_up();
        if self.show {
            let states: Vec<State> = self.tasks.iter().map(|task| task.state).collect();
            eprintln!("    {states:?}");
        }
        // Walking all tables takes longer than most actions, and a broken state seldom repairs itself.
        self.actions += 1;
        if self.show || self.actions <= 32 || self.actions.is_multiple_of(8) {
            self.engine.check_invariants();
        }
        for (pfn, page) in self.store.gate.looked_at() {
            assert_eq!(
                self.store.home(page),
                Some(pfn),
                "{page:?}, which somebody looks at, has left {pfn:?}"
            );
        }
        self.check_counters();
        let kernel = self.kernel_frames();
        let free = self.engine.figures().vmstat(Stat::NrFreePages);
        // A task that is charging a page holds its frame, and nothing in it, and so do the pages that it has gathered to be read ahead.
        // One that compacts holds the free pages of a pageblock; it stops between two steps only, and waits for nothing.
        let may_compact = self.tasks.iter().filter(|task| matches!(task.state, State::Runnable(_))).count();
        let unfilled =
            (self.frames_total - self.store.frames() as u64) as i64 - free - kernel - self.frames_of_cpus();
        let gathered = i64::from(self.bdi.ra_pages.max(self.bdi.io_pages));
        let huge = if self.anon_pages > HUGE_PAGE_PAGES { HUGE_PAGE_PAGES as i64 } else { 0 };
        assert!(
            (0..=self.tasks.len() as i64 * (1 + gathered + huge) + may_compact as i64 * PAGEBLOCK_PAGES)
                .contains(&unfilled),
            "{unfilled} frames handed out and not filled"
        );
    }

    /// Hardware has seen an access to a frame. It reports that later, or its buffer is full.
    pub(super) fn sample(&mut self, pfn: Pfn) {
        if !self.engine.wants_hardware_hints() || !self.engine.hardware_sampled(pfn, NodeId(0)) {
            return;
        }
        let has_room = self.hints.len() < 4;
        self.engine.hardware_kept(NodeId(0), has_room);
        if has_room {
            self.hints.push(pfn);
        }
    }

    /// Whatever has become of the frames meanwhile.
    fn tell_hints(&mut self) {
        for (at, pfn) in std::mem::take(&mut self.hints).into_iter().enumerate() {
            let nid = at.is_multiple_of(2).then_some(NodeId(0));
            self.engine.hardware_hinted(pfn, nid, at as u32 % 3 + 1);
        }
    }

    /// Frames that are free, but on the lists of CPUs, where no counter sees them.
    fn frames_of_cpus(&self) -> i64 {
        self.engine
            .figures()
            .zones()
            .flat_map(|zone| zone.pagesets)
            .map(|pageset| i64::from(pageset.count))
            .sum()
    }

    /// Frames that the kernel says it has taken for itself.
    fn kernel_frames(&mut self) -> i64 {
        let in_pools = self.pool_frames();
        let gauge = |stat| self.engine.figures().vmstat(stat);
        let stacks = gauge(Stat::NrKernelStack) * 1024 / PAGE_SIZE as i64;
        gauge(Stat::NrPageTablePages)
            + gauge(Stat::NrSlabReclaimable)
            + gauge(Stat::NrZspages)
            + stacks
            + in_pools
    }

    /// Frames in the pools of huge pages, which nothing counts but the pools themselves.
    fn pool_frames(&mut self) -> i64 {
        let blocks = |order: u32| {
            let path = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", 4 << order);
            let text = self.engine.read_file(&path).expect("every order has its pool");
            text.trim().parse::<i64>().expect("it holds a number") << order
        };
        (1..=10).map(blocks).sum()
    }

    /// Takes what the engine has decided.
    fn take_ops(&mut self) {
        assert_eq!(self.hand_over(), 0, "tasks are woken though no transfer has ended");
        self.release_killed();
    }

    /// The same; returns how many tasks were woken out of a wait for a transfer although none has ended.
    fn hand_over(&mut self) -> usize {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        let ended_early = self.ended_early.swap(false, Relaxed);
        for op in ops {
            if self.show {
                eprintln!("    {op:?}");
            }
            self.store.submit(&self.engine, op);
        }
        let mut events = Vec::new();
        self.engine.take_page_cache_events(&mut events);
        events.into_iter().for_each(|event| self.store.note_page_cache(event));
        let woken = self.wake(false);
        self.note_kills();
        if ended_early { 0 } else { woken }
    }

    /// A transfer ends, and the engine is notified.
    fn complete(&mut self, at: usize, fails: bool, early: bool, cpu: u8) {
        let transfer = self.store.end(at, fails, early);
        if self.show {
            eprintln!("    {transfer:?} ends");
        }
        // What could not be written is kept in memory, or may be lost from now on.
        if !(fails && self.keeps_failed_writes) {
            for (file, page) in transfer.written_pages() {
                self.contents.reached_device(Page::Regular(file, page), fails, self.store.block(file, page));
            }
        }
        let result = if fails { Err(IoError::Device) } else { Ok(()) };
        self.engine.io_done(transfer.io, CpuId(u16::from(cpu) % self.cpus), result);
        self.wake(fails && !transfer.is_write && !transfer.is_readahead);
        self.take_ops();
    }
}
