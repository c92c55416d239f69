//! A small machine for tests: one 1 GiB node, four CPUs, one NVMe device, memcgs as they are named.

use pageout_engine::{
    Advice, Bdi, Config, CpuId, Engine, FileId, FileKind, FileSpec, MemcgId, Policy, StatFlush, Step,
    SwapKind, SwapSpec, TaskId,
};
use pageout_sim::cost::Channel;
use pageout_sim::device::DeviceSpec;
use pageout_sim::{
    Ended, Machine, MachineSpec, Observer, Report, RunError, StreamSource, TaskSpec, TimedEvent,
};
use pageout_workload::{Access, InMemory};

pub(crate) struct Rig {
    pub(crate) engine: Engine,
    shell: TaskId,
    pub(crate) spec: MachineSpec,
    pub(crate) tasks: Vec<TaskSpec>,
    pub(crate) events: Vec<TimedEvent>,
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig::of(Config::default().policy)
    }

    pub(crate) fn of(policy: Policy) -> Rig {
        Rig::made(policy, StatFlush::Periodic, None)
    }

    /// A machine whose statistics of groups are flushed so.
    pub(crate) fn with_stats(policy: Policy, stat_flush: StatFlush) -> Rig {
        Rig::made(policy, stat_flush, None)
    }

    pub(crate) fn with_swap(kind: SwapKind) -> Rig {
        Rig::made(Config::default().policy, StatFlush::Periodic, Some(kind))
    }

    fn made(policy: Policy, stat_flush: StatFlush, swap: Option<SwapKind>) -> Rig {
        let config =
            Config { cpus: 4, kmem: false, page_cluster: 0, policy, stat_flush, ..Config::default() };
        let mut builder = Engine::builder(config).unwrap();
        let swap = swap.map(|kind| (kind, builder.swap_on(SwapSpec { pages: 10_000, kind }).unwrap()));
        let mut engine = builder.build();
        let mm = engine.process_create(MemcgId::ROOT);
        let shell = engine.task_create(mm, CpuId(0));
        let spec = MachineSpec {
            devices: vec![DeviceSpec::preset("virtio").expect("it is a preset")],
            times_accesses: true,
            swaps: swap
                .filter(|(kind, _)| *kind != SwapKind::Synchronous)
                .map(|(_, swap)| (swap, 0))
                .into_iter()
                .collect(),
            ..MachineSpec::default()
        };
        Rig { engine, shell, spec, tasks: Vec::new(), events: Vec::new() }
    }

    fn memcg(&mut self, path: &str) -> MemcgId {
        let known = self.engine.figures().memcg_by_path(path);
        known.unwrap_or_else(|| self.engine.memcg_create(MemcgId::ROOT, &path[1..]).unwrap())
    }

    pub(crate) fn limit(&mut self, path: &str, pages: u64) {
        self.write_pages(path, "memory.max", pages);
    }

    pub(crate) fn high(&mut self, path: &str, pages: u64) {
        self.write_pages(path, "memory.high", pages);
    }

    fn write_pages(&mut self, path: &str, file: &str, pages: u64) {
        self.memcg(path);
        let file = format!("/sys/fs/cgroup{path}/{file}");
        let step = self.engine.write_file(self.shell, &file, &(pages * 4096).to_string()).unwrap();
        assert!(matches!(step, Step::Done(_)));
    }

    pub(crate) fn file(&mut self, pages: u64) -> FileId {
        self.file_read_ahead(pages, 0)
    }

    /// A file that is read ahead by so many pages at most.
    pub(crate) fn file_read_ahead(&mut self, pages: u64, ra_pages: u32) -> FileId {
        let bdi = Bdi { ra_pages, ..Bdi::NO_READAHEAD };
        let spec = FileSpec { name: "data".to_string(), pages, kind: FileKind::Regular, bdi };
        let file = self.engine.file_create(spec).unwrap();
        self.spec.files.push((file, 0));
        file
    }

    /// A task on CPU 0 that reads these pages of a file, so many times over.
    pub(crate) fn reader(&mut self, name: &str, memcg: &str, file: FileId, pages: Vec<Access>, loops: u32) {
        let id = self.memcg(memcg);
        let mm = self.engine.process_create(id);
        let task = self.engine.task_create(mm, CpuId(0));
        self.engine.open(task, file).unwrap();
        let source = source(pages);
        self.tasks.push(TaskSpec { loops, ..TaskSpec::new(task, name, memcg, vec![Channel::File], source) });
    }

    /// A task on CPU 0 that writes these pages of an anonymous mapping.
    pub(crate) fn anon(&mut self, name: &str, memcg: &str, size: u64, pages: Vec<Access>) {
        let id = self.memcg(memcg);
        let mm = self.engine.process_create(id);
        let task = self.engine.task_create(mm, CpuId(0));
        self.engine.map_anon(task, size, Advice::Normal).unwrap();
        let source = source(pages.iter().map(|read| Access::new(0, read.page(), true)).collect());
        self.tasks.push(TaskSpec::new(task, name, memcg, vec![Channel::Mapped], source));
    }

    pub(crate) fn machine(self) -> Machine {
        let mut machine = Machine::new(self.engine, self.spec).unwrap();
        for event in self.events {
            machine.event_add(event).unwrap();
        }
        for task in self.tasks {
            machine.task_add(task).unwrap();
        }
        machine
    }

    pub(crate) fn start(self) -> (Machine, Result<Ended, RunError>) {
        let mut machine = self.machine();
        let result = machine.run(&mut ());
        (machine, result)
    }

    pub(crate) fn run_observed(self, observer: &mut dyn Observer) -> Result<Report, RunError> {
        let mut machine = self.machine();
        machine.run(observer)?;
        machine.engine().check_invariants();
        Ok(machine.report())
    }

    pub(crate) fn run(self) -> Report {
        self.run_observed(&mut ()).unwrap()
    }
}

/// Reads of these pages of object 0.
pub(crate) fn pages(pages: impl IntoIterator<Item = u64>) -> Vec<Access> {
    pages.into_iter().map(|page| Access::new(0, page, false)).collect()
}

fn source(accesses: Vec<Access>) -> StreamSource {
    let stream = InMemory::new(accesses.into());
    Box::new(move |_| Ok(Box::new(stream.clone())))
}
