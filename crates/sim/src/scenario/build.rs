//! From a scenario to a machine that is ready to run it.
//!
//! ```text
//!   kernel, sysctl, machine ─▶ Config ─▶ Engine ─┬─ memcgs, parents first, then what is written to their files
//!                                                ├─ files, those of single objects included
//!                                                ├─ swap areas
//!   device ─────────────────▶ MachineSpec ───────┴─▶ Machine ◀─ tasks with their objects and streams ◀─ events
//! ```
//!
//! [`Scenario::validate`] is expected to have found nothing before. If the engine or the machine still refuses something, a
//! [`Problem`] names the key, as there.

mod device; // a preset with what is overridden of it

use std::collections::BTreeMap;
use std::ops::Range;

use pageout_engine::{
    Bdi, BdiId, CgroupFile, Config, ConfigError, CpuId, Engine, FileId, FileKind as EngineFileKind, FileSpec,
    Holds, HugeAdvice, MemcgId, Nanos, NodeId, Nodemask, ObjectId, Parameter, PghotPosting, Policy, Profile,
    Section, Served, Step, SwapId, SwapKind as EngineSwapKind, SwapSpec, Switch, TaskId, TransparentHugepage,
};
use pageout_workload::generator::ZipfTables;
use pageout_workload::rng::SplitMix64;

use super::compressed::Compressed;
use super::keys::Limit;
use super::measure::Touchable;
use super::populate::populate;
use super::streams::{self, Origin, OriginKind};
use super::validate::LIMIT_PAGES_MIN;
use super::visits::Visits;
use super::{
    Advice, Channel, DEFAULT_DEVICE, Device, Event, FileKind, Files, FirstThread, KernelFile, Lifetime,
    Migration, Object, OomRule, OpenedBy, Problem, Scalar, Scenario, Size, SwapKind, Task, TimeSpan,
};
use crate::cost::{self, COPIED_BY_16_THREADS, COPIED_BY_DMA, Costs};
use crate::device::DeviceSpec;
use crate::pace::Pace;
use crate::{Calls, StreamSource, TaskSpec};
use crate::{Machine, MachineSpec, Repeat, SchedRules, TimedAction, TimedEvent, Value};

impl Scenario {
    /// The machine with everything in it, at time 0. Traces are opened when their task starts to run.
    pub fn build(&self) -> Result<Machine, Problem> {
        let mut engine = Engine::new(self.config()?).map_err(|error| problem("machine", error))?;
        self.create_memcgs(&mut engine)?;
        let sizes = self.files();
        let files = self.create_files(&mut engine, &sizes)?;
        let swaps = self.create_swap(&mut engine)?;
        let touchable = Touchable::of(self);
        self.write_settings(&mut engine, &touchable)?;
        let spec = MachineSpec {
            seed: self.seed,
            costs: self.costs()?.of_pages(self.machine.page_stands_for.into()),
            page_stands_for: self.machine.page_stands_for.into(),
            quantum: nanos(self.machine.quantum),
            sched: SchedRules {
                timeslice: nanos(self.machine.timeslice),
                wakeup_granularity: nanos(self.machine.wakeup_granularity),
            },
            stat_flush_phase: self.time_switch("memcg.stat_flush_phase")?,
            devices: self.device_specs()?,
            files: files.values().filter_map(|file| Some((file.id, file.device?))).collect(),
            swaps,
            memory: self.machine.node.iter().map(super::Node::spec).collect(),
            links: self.machine.links(),
            hindsight: self.machine.hindsight,
            hints: self.machine.hints.spec(),
        };
        let mut machine = Machine::new(engine, spec).map_err(|error| problem("device", error))?;
        let positions = self.positions();
        let mut cpu_next = 0;
        let tables = ZipfTables::default();
        for (index, task) in self.task.iter().enumerate() {
            let seed = self.task_seed(index);
            let mut visits = task.visits(seed);
            let bound = task.cpunodebind.as_deref().and_then(Nodemask::parse);
            let bound = bound.map(|nodes| self.machine.cpus_of(nodes)).filter(|cpus| !cpus.is_empty());
            for copy in 0..task.copies {
                let mut cpu = || {
                    let dealt = cpu_next;
                    cpu_next = if task.cpu.is_none() { (dealt + 1) % self.machine.cpus } else { dealt };
                    match &bound {
                        Some(cpus) => CpuId(cpus[usize::from(dealt) % cpus.len()]),
                        None => CpuId(task.cpu.unwrap_or(dealt)),
                    }
                };
                let cpus: Vec<CpuId> = (0..task.threads).map(|_| cpu()).collect();
                let after = task.after.as_deref().and_then(|name| positions.get(name)).cloned();
                let after = after.unwrap_or_default();
                let run =
                    Run { sizes: &sizes, seed, copy, after, visits: visits.remove(&copy), tables: &tables };
                self.add_process(&mut machine, index, &run, &cpus, &files)?;
            }
        }
        for (index, event) in self.event.iter().enumerate() {
            let key = format!("event[{index}]");
            let event = self.timed_event(event, &touchable, &files, &key)?;
            machine.event_add(event).map_err(|error| problem(&key, error))?;
        }
        Ok(machine)
    }

    pub(super) fn config(&self) -> Result<Config, Problem> {
        let switches = &self.kernel.switches;
        let mut config = Config {
            node_pages: self.machine.node_sizes().into_iter().map(Size::pages_floor).collect(),
            layout: self.machine.layout(),
            cpus: self.machine.cpus,
            hz: self.machine.hz,
            tlb_entries: self.machine.tlb_entries,
            oom_kill: self.machine.oom == OomRule::Kill,
            policy: policy("kernel.profile", &self.kernel.profile)?,
            ..Config::default()
        };
        let of_profile =
            Profile::by_name(&self.kernel.profile).map_or(&[][..], |known| known.parameters).iter();
        for (name, value) in of_profile.chain(self.pghot_posting().parameters()) {
            let parameter = Parameter::by_name(name).expect("a profile and a posting name parameters");
            assert!(parameter.set(&mut config, value), "{name} takes {value}");
        }
        // What is given itself has the last word.
        for (name, value) in switches.iter() {
            // The machine's: the engine is told when to flush.
            if name == "memcg.stat_flush_phase" {
                continue;
            }
            let value = value.to_string();
            let is_set = match Parameter::by_name(name).filter(|known| known.section == Section::Kernel) {
                Some(parameter) => parameter.set(&mut config, &value),
                None => Switch::by_name(name).is_some_and(|switch| switch.set(&mut config.policy, &value)),
            };
            if !is_set {
                let message = format!("the engine has no setting `{name}` that takes `{value}`");
                return Err(problem(&format!("kernel.{name}"), message));
            }
        }
        if config.transparent_hugepage != TransparentHugepage::Never && self.machine.page_stands_for > 1 {
            return Err(Problem::huge_of_many("kernel.transparent_hugepage"));
        }
        Ok(config)
    }

    /// What the engine begins with: `[machine]`, `[kernel]` and `[sysctl]`. Errors: a key that the check refuses, too.
    pub fn engine_config(&self) -> Result<Config, Problem> {
        let mut config = self.config()?;
        for (name, value) in self.sysctl.iter() {
            if let Some(parameter) = Parameter::by_name(name) {
                parameter.set(&mut config, &value.to_string());
            }
        }
        Ok(config)
    }

    /// The posting that gives other keys. One that is none is refused with its key, as any other word.
    fn pghot_posting(&self) -> PghotPosting {
        const KEY: &str = "pghot.posting";
        let (parameter, mut named) = (Parameter::by_name(KEY).expect("a parameter"), Config::default());
        if let Some(posting) = self.kernel.switches.get(KEY) {
            parameter.set(&mut named, &posting.to_string());
        }
        named.pghot_posting
    }

    /// The table of costs, with the prices that the scenario has itself.
    pub(super) fn costs(&self) -> Result<Costs, Problem> {
        let unknown =
            || problem("machine.costs", format!("there are no costs called `{}`", self.machine.costs));
        let costs = Costs::profile(&self.machine.costs).ok_or_else(unknown)?;
        let mut costs = match self.machine.migration {
            Migration::OneThread => costs,
            Migration::SixteenThreads => costs.copying(COPIED_BY_16_THREADS),
            Migration::Dma => costs.copying(COPIED_BY_DMA),
        };
        for (name, value) in self.machine.price.iter() {
            let key = format!("machine.price.{name}");
            let price = value.to_string().parse::<TimeSpan>().map_err(|error| problem(&key, error))?;
            *costs.row(name).ok_or_else(|| problem(&key, "there is no such price"))? = price.0;
        }
        Ok(costs)
    }

    fn time_switch(&self, name: &str) -> Result<Nanos, Problem> {
        let Some(value) = self.kernel.switches.get(name) else { return Ok(Nanos::ZERO) };
        let time = value.to_string().parse::<TimeSpan>();
        time.map(nanos).map_err(|error| problem(&format!("kernel.{name}"), error))
    }

    fn create_memcgs(&self, engine: &mut Engine) -> Result<(), Problem> {
        let listed: BTreeMap<&str, usize> =
            self.memcg.iter().enumerate().map(|(index, memcg)| (memcg.path.as_str(), index)).collect();
        for path in self.memcg_paths().into_iter().skip(1) {
            let (parent, name) = path.rsplit_once('/').expect("paths of cgroups begin with a slash");
            let index = listed.get(path.as_str()).copied();
            let key = index.map_or("memcg".to_string(), |index| format!("memcg[{index}]"));
            let parent = engine.memcg_by_path(if parent.is_empty() { "/" } else { parent });
            let parent = parent.unwrap_or(MemcgId::ROOT);
            let created = match index.and_then(|index| self.memcg[index].policy.as_deref()) {
                Some(own) => engine.memcg_create_with(parent, name, policy(&format!("{key}.policy"), own)?),
                None => engine.memcg_create(parent, name),
            };
            created.map_err(|error| problem(&key, error))?;
        }
        Ok(())
    }

    /// Sysctls and the files of cgroups, through the files themselves.
    fn write_settings(&self, engine: &mut Engine, touchable: &Touchable) -> Result<(), Problem> {
        let process = engine.process_create(MemcgId::ROOT);
        let shell = engine.task_create(process, CpuId(0));
        let mut write =
            |key: String, path: String, value: String| match engine.write_file(shell, &path, &value) {
                Ok(Step::Done(_)) => Ok(()),
                Ok(step) => {
                    unreachable!("nothing is in memory yet, but a write to {path} wants to reclaim: {step:?}")
                }
                Err(error) => Err(problem(&key, error)),
            };
        for (name, value) in self.sysctl.iter() {
            write(
                format!("sysctl.{name}"),
                format!("/proc/sys/{}", name.replace('.', "/")),
                value.to_string(),
            )?;
        }
        for (index, memcg) in self.memcg.iter().enumerate() {
            for (name, value) in memcg.files.iter() {
                let key = format!("memcg[{index}].{name}");
                let written = memcg_value(touchable, &memcg.path, name, value, &key)?;
                let is_tiny =
                    written.parse::<u64>().is_ok_and(|bytes| Size(bytes).pages_floor() < LIMIT_PAGES_MIN);
                if is_tiny && matches!(name, "memory.max" | "memory.high") {
                    let touched = touchable.pages(&memcg.path).unwrap_or(0);
                    let message = format!(
                        "`{name}`: {value} of the {touched} distinct pages that tasks in {} can touch is",
                        memcg.path
                    );
                    return Err(problem(&key, format!("{message} below what one fault needs")));
                }
                write(key, format!("/sys/fs/cgroup{}/{name}", memcg.path), written)?;
            }
        }
        Ok(())
    }

    fn create_files(&self, engine: &mut Engine, sizes: &Files<'_>) -> Result<OpenFiles, Problem> {
        let mut files = OpenFiles::new();
        let bdis = self.register_bdis(engine)?;
        for (index, file) in self.file.iter().enumerate() {
            let kind = match file.kind {
                FileKind::Regular => EngineFileKind::Regular,
                FileKind::Tmpfs => EngineFileKind::Tmpfs,
            };
            let spec = FileSpec {
                name: file.name.clone(),
                pages: file.size.pages_ceil(),
                kind,
                bdi: self.bdi(kind, file.device.as_deref()),
            };
            let device = (kind == EngineFileKind::Regular).then(|| self.device_index(file.device.as_deref()));
            let id = engine.file_create_on(spec, bdis[device.unwrap_or(0)]);
            let id = id.map_err(|error| problem(&format!("file[{index}].size"), error))?;
            files.insert(file.name.clone(), OpenFile { id, device });
        }
        for (task_index, task) in self.task.iter().enumerate() {
            for (index, object) in task.object.iter().enumerate() {
                if object.file.is_some() || object.channel == Channel::Anonymous {
                    continue;
                }
                let key = format!("task[{task_index}].object[{index}]");
                let pages = sizes
                    .pages_of(task, index)
                    .ok_or_else(|| problem(&key, "nothing says how large it is"))?;
                let kind = match object.channel {
                    Channel::Tmpfs => EngineFileKind::Tmpfs,
                    _ => EngineFileKind::Regular,
                };
                let bdi = self.bdi(kind, object.device.as_deref());
                let device =
                    (kind == EngineFileKind::Regular).then(|| self.device_index(object.device.as_deref()));
                for copy in 0..if object.per_copy { task.copies } else { 1 } {
                    let name = own_file_name(task, index, copy);
                    let spec = FileSpec { name: name.clone(), pages, kind, bdi };
                    let id = engine.file_create_on(spec, bdis[device.unwrap_or(0)]);
                    let id = id.map_err(|error| problem(&key, error))?;
                    files.insert(name, OpenFile { id, device });
                }
            }
        }
        Ok(files)
    }

    /// What readahead knows of the device of a file; tmpfs is on none.
    fn bdi(&self, kind: EngineFileKind, device: Option<&str>) -> Bdi {
        match (kind, self.device.get(self.device_index(device))) {
            (EngineFileKind::Tmpfs, _) => Bdi::NO_READAHEAD,
            (EngineFileKind::Regular, Some(device)) => device.bdi(),
            (EngineFileKind::Regular, None) => Device::of_preset(DEFAULT_DEVICE, DEFAULT_DEVICE).bdi(),
        }
    }

    /// Each device has a flusher thread of its own.
    fn register_bdis(&self, engine: &mut Engine) -> Result<Vec<BdiId>, Problem> {
        let mut names: Vec<&str> = self.device.iter().map(|device| device.name.as_str()).collect();
        if names.is_empty() {
            names.push(DEFAULT_DEVICE);
        }
        let bdis = names.into_iter().map(|name| engine.bdi_register(name));
        let bdis: Vec<BdiId> = bdis.collect::<Result<_, _>>().map_err(|error| problem("device", error))?;
        for (index, (device, &bdi)) in self.device.iter().zip(&bdis).enumerate() {
            let set = engine.bdi_set_limits(bdi, device.limits());
            set.map_err(|error| problem(&format!("device[{index}]"), error))?;
        }
        Ok(bdis)
    }

    fn create_swap(&self, engine: &mut Engine) -> Result<Vec<(SwapId, usize)>, Problem> {
        let mut on_devices = Vec::new();
        for (index, swap) in self.swap.iter().enumerate() {
            let kind = match swap.kind {
                SwapKind::Disk => EngineSwapKind::Device,
                SwapKind::Zram => EngineSwapKind::Synchronous,
            };
            let spec = SwapSpec { pages: swap.size.pages_floor(), kind };
            let refuse = |error: ConfigError| problem(&format!("swap[{index}]"), error);
            // The check has bounded it.
            let id =
                engine.swap_on_at(spec, swap.priority.map(|priority| priority as u16)).map_err(refuse)?;
            let compressed = Compressed::of_swap(swap).engine();
            if let Some(compressed) =
                compressed.map_err(|message| problem(&format!("swap[{index}]"), message))?
            {
                engine.swap_compressibility(id, compressed).map_err(refuse)?;
            }
            match swap.kind {
                SwapKind::Disk => {
                    let device = self.device_index(swap.device.as_deref());
                    if self.device_specs()?[device].sequential.is_some() {
                        engine
                            .swap_rotational(id)
                            .map_err(|error| problem(&format!("swap[{index}]"), error))?;
                    }
                    on_devices.push((id, device));
                }
                SwapKind::Zram => {
                    engine.zram_limit(id, swap.memory_limit.map(Size::pages_floor)).map_err(refuse)?;
                }
            }
        }
        Ok(on_devices)
    }

    /// Position of the device called `name`; without a name the first, which validation makes sure is the only one.
    fn device_index(&self, name: Option<&str>) -> usize {
        name.and_then(|name| self.device.iter().position(|device| device.name == name)).unwrap_or(0)
    }

    fn device_specs(&self) -> Result<Vec<DeviceSpec>, Problem> {
        if self.device.is_empty() {
            let spec = Device::of_preset(DEFAULT_DEVICE, DEFAULT_DEVICE).spec()?;
            return Ok(vec![spec.of_pages(self.machine.page_stands_for.into())]);
        }
        let specs = self.device.iter().enumerate().map(|(index, device)| {
            device
                .spec()
                .map(|spec| spec.of_pages(self.machine.page_stands_for.into()))
                .map_err(|problem| Problem { key: format!("device[{index}]{}", problem.key), ..problem })
        });
        specs.collect()
    }

    /// One copy of a task: its process, and the threads of it, one a CPU of `cpus`.
    fn add_process(
        &self,
        machine: &mut Machine,
        index: usize,
        run: &Run<'_>,
        cpus: &[CpuId],
        files: &OpenFiles,
    ) -> Result<(), Problem> {
        let task = &self.task[index];
        let key = format!("task[{index}]");
        let refuse = |error: ConfigError| problem(&key, error);
        let engine = machine.engine_mut();
        let memcg =
            engine.memcg_by_path(&task.memcg).ok_or_else(|| problem(&key, "its cgroup does not exist"))?;
        let process = engine.process_create(memcg);
        engine.set_oom_score_adj(process, task.oom_score_adj);
        engine.set_io_flusher(process, task.io_flusher);
        engine.set_mempolicy(process, task.mempolicy()).map_err(refuse)?;
        let id = engine.task_create(process, cpus[0]);
        let mut channels = Vec::new();
        for (at, object) in task.object.iter().enumerate() {
            let name = object.file.clone().unwrap_or_else(|| own_file_name(task, at, run.copy));
            let file = files.get(&name).map(|file| file.id);
            let file = file
                .ok_or_else(|| problem(&format!("{key}.object[{at}]"), format!("there is no file `{name}`")));
            let advice = object.advice.of_mapping();
            match object.channel {
                Channel::File | Channel::Tmpfs => engine.open(id, file?),
                Channel::Mapped => engine.map_file(id, file?, advice, object.executable),
                Channel::Anonymous => {
                    let pages = run.sizes.pages_of(task, at);
                    engine.map_anon(id, pages.ok_or_else(|| problem(&key, "a mapping has no size"))?, advice)
                }
            }
            .map_err(refuse)
            .and_then(|id_of| {
                let compressed =
                    Compressed::of_object(object).engine().map_err(|message| problem(&key, message))?;
                compressed.map_or(Ok(()), |compressed| {
                    engine.set_compressibility(id, id_of, compressed).map_err(refuse)
                })?;
                if let Some(hugepage) = object.hugepage {
                    let advice = if hugepage { HugeAdvice::Hugepage } else { HugeAdvice::NoHugepage };
                    engine.madvise_hugepage(id, id_of, advice).map_err(refuse)?;
                }
                if object.locked {
                    engine.mlock(id, id_of).map_err(refuse)?;
                }
                if object.partial_writes {
                    engine.set_partial_writes(id, id_of).map_err(refuse)?;
                }
                Ok(())
            })?;
            channels.push(match object.channel {
                Channel::File | Channel::Tmpfs => {
                    cost::Channel::FileCalls { pages: object.request_pages() as u32 }
                }
                Channel::Mapped | Channel::Anonymous => cost::Channel::Mapped,
            });
        }
        self.populate(machine, task, id, &key)?;
        let calls = calls(task, run.sizes);
        let (advice, will_need) = advice(task);
        let origins = origins(task, run.sizes)
            .map_err(|error| Problem { key: format!("{key}.{}", error.key), ..error })?;
        let write_first: Vec<Option<u64>> = (0..task.object.len())
            .map(|at| {
                let pages = run.sizes.pages_of(task, at).filter(|_| task.object[at].writes_first());
                pages.map(|pages| pages.div_ceil(task.object[at].request_pages()))
            })
            .collect();
        // From the second loop on everything has been touched, but for anonymous memory of a process of its own.
        let lives_on =
            |at: usize| task.lifetime != Lifetime::Loop || task.object[at].channel != Channel::Anonymous;
        let write_first_later: Vec<Option<u64>> =
            write_first.iter().enumerate().map(|(at, pages)| pages.filter(|_| !lives_on(at))).collect();
        let seed = SplitMix64::derive_seed(run.seed, run.copy.into());
        let ops = run.visits.as_ref().map(|visits| visits.ops);
        let mut first = None;
        for (thread, &cpu) in (0..).zip(cpus) {
            let seed = match thread {
                0 => seed,
                // Apart from those of the loops, which are derived from the seed itself.
                thread => SplitMix64::derive_seed(SplitMix64::derive_seed(seed, u64::MAX), thread),
            };
            let (origins, write_first) = (origins.clone(), [write_first.clone(), write_first_later.clone()]);
            let tables = run.tables.clone();
            let source: StreamSource = Box::new(move |turn| {
                let write_first = &write_first[usize::from(turn > 0)];
                streams::stream(&origins, write_first, SplitMix64::derive_seed(seed, turn.into()), &tables)
            });
            // The workers of a thread share all that it has.
            let is_process = thread == 0 && task.first_thread == FirstThread::Works;
            let of_thread = if is_process { id } else { self.add_thread(machine, task, id, cpu) };
            for (worker, source) in streams::in_turn(source, task.depth).into_iter().enumerate() {
                let source = streams::calls(source, &calls, ops);
                let id = match worker {
                    0 => of_thread,
                    _ => machine.engine_mut().thread_create(of_thread, cpu),
                };
                let spec = TaskSpec {
                    cpu,
                    migrates: task.migrates,
                    nice: task.nice,
                    loops: task.loops,
                    start: nanos(task.start),
                    after: run.after.clone().collect(),
                    pace: run.visits.as_ref().map_or(Pace::Costed, |visits| visits.pace.clone()),
                    thread_of: first,
                    lifetime: task.lifetime,
                    think_time: nanos(task.think_time),
                    weight: task.stands_for,
                    background: task.background,
                    end_fsync: (0..)
                        .zip(&task.object)
                        .filter(|(_, object)| object.end_fsync)
                        .map(|(at, _)| ObjectId(at))
                        .collect(),
                    fsync_every: (0..)
                        .zip(&task.object)
                        .filter_map(|(at, object)| Some((ObjectId(at), object.fsync_every?)))
                        .collect(),
                    truncate_every: (0..)
                        .zip(&task.object)
                        .filter_map(|(at, object)| Some((ObjectId(at), object.truncate_every?)))
                        .collect(),
                    delete_every: (0..)
                        .zip(&task.object)
                        .filter_map(|(at, object)| Some((ObjectId(at), object.delete_every?)))
                        .collect(),
                    calls: calls.clone(),
                    advice: advice.clone(),
                    // What a process needs is read once.
                    will_need: if first.is_none() { will_need.clone() } else { Vec::new() },
                    ..TaskSpec::new(id, &task.copy_name(run.copy), &task.memcg, channels.clone(), source)
                };
                let position = machine.task_add(spec).map_err(|error| problem(&key, error))?;
                first.get_or_insert(position);
            }
        }
        if task.first_thread == FirstThread::Waits {
            // It never runs again, and its address space has others.
            assert_eq!(machine.engine_mut().task_exit(id), Step::Done(Served::Exited));
        }
        Ok(())
    }

    /// What a process has in memory before it begins.
    fn populate(&self, machine: &mut Machine, task: &Task, id: TaskId, key: &str) -> Result<(), Problem> {
        for (at, object) in (0..).zip(&task.object) {
            let Some(node) = object.populate_node else { continue };
            let is_anonymous = object.channel == Channel::Anonymous;
            populate(machine.engine_mut(), id, ObjectId(at), is_anonymous, NodeId(node as u8))
                .map_err(|error| problem(&format!("{key}.object[{at}].populate_node"), error))?;
            machine.forgive_work();
        }
        Ok(())
    }

    /// Another thread beside the first of a process, with the files that it opens for itself.
    fn add_thread(&self, machine: &mut Machine, task: &Task, first: TaskId, cpu: CpuId) -> TaskId {
        let engine = machine.engine_mut();
        let thread = engine.thread_create(first, cpu);
        for (at, object) in (0..).zip(&task.object) {
            if object.opened_by == OpenedBy::Thread {
                engine.open_for_itself(thread, ObjectId(at));
            }
        }
        thread
    }

    /// Where the machine has the copies and threads of each task.
    fn positions(&self) -> BTreeMap<&str, Range<usize>> {
        let mut next = 0;
        let range = |task: &Task| {
            next += task.runners();
            next - task.runners()..next
        };
        self.task.iter().map(|task| task.name.as_str()).zip(self.task.iter().map(range)).collect()
    }

    fn timed_event(
        &self,
        event: &Event,
        touchable: &Touchable,
        files: &OpenFiles,
        key: &str,
    ) -> Result<TimedEvent, Problem> {
        let path = event.file().unwrap_or_default().to_string();
        let timeout = event.timeout.map(nanos);
        let action = match (&event.write, &event.value) {
            _ if event.sync => TimedAction::Sync,
            _ if let Some(device) = &event.syncfs => self.syncfs(device, files, key)?,
            _ if event.rmdir.is_some() => TimedAction::Remove { path },
            (Some(_), None) => {
                let value = Value::Sum(event.add.expect("checked: a write has a value"));
                TimedAction::Write { path, value, timeout }
            }
            (Some(_), Some(value)) => {
                let value = match KernelFile::parse(&path) {
                    Some(KernelFile::Memcg { file, .. }) if file == "memory.reclaim" => {
                        reclaim_value(&value.to_string())
                    }
                    Some(KernelFile::Memcg { path, file }) => {
                        memcg_value(touchable, &path, &file, value, &format!("{key}.value"))?
                    }
                    _ => value.to_string(),
                };
                TimedAction::Write { path, value: Value::Text(value), timeout }
            }
            (None, _) => TimedAction::Read { path },
        };
        let repeat = match (event.every.map(nanos), event.times) {
            (None, _) => Repeat::Never,
            (Some(rest), Some(times)) => Repeat::Loop { times, rest },
            (Some(every), None) => Repeat::Timer { every, until: event.until.map_or(Nanos(u64::MAX), nanos) },
        };
        Ok(TimedEvent { at: nanos(event.at), repeat, shell: event.shell.clone(), action })
    }

    /// Who syncs the file system of a device opens a file there.
    fn syncfs(&self, device: &str, files: &OpenFiles, key: &str) -> Result<TimedAction, Problem> {
        let index = self.device_index(Some(device));
        let Some(file) = files.values().find(|file| file.device == Some(index)) else {
            return Err(problem(&format!("{key}.syncfs"), format!("there is no file on `{device}`")));
        };
        Ok(TimedAction::Syncfs { file: file.id, name: device.to_string() })
    }
}

impl Advice {
    /// What is said of a mapping; the rest is said of a file.
    fn of_mapping(self) -> pageout_engine::Advice {
        match self {
            Advice::Normal | Advice::WillNeed | Advice::NoReuse => pageout_engine::Advice::Normal,
            Advice::Random => pageout_engine::Advice::Random,
            Advice::Sequential => pageout_engine::Advice::Sequential,
        }
    }

    /// What is said of an open file.
    fn of_file(self, channel: Channel) -> Option<pageout_engine::Advice> {
        match self {
            Advice::NoReuse => Some(pageout_engine::Advice::NoReuse),
            Advice::Random | Advice::Sequential if channel != Channel::Mapped => Some(self.of_mapping()),
            _ => None,
        }
    }
}

/// What a task says of its open files before its first access, and which of them it has read ahead.
fn advice(task: &Task) -> (Vec<(ObjectId, pageout_engine::Advice)>, Vec<ObjectId>) {
    let objects =
        (0..).map(ObjectId).zip(&task.object).filter(|(_, object)| object.channel != Channel::Anonymous);
    let said = |(at, object): (ObjectId, &Object)| Some((at, object.advice.of_file(object.channel)?));
    let will_need = objects.clone().filter(|(_, object)| object.advice == Advice::WillNeed);
    (objects.filter_map(said).collect(), will_need.map(|(at, _)| at).collect())
}

/// By how large calls a task accesses its objects.
fn calls(task: &Task, sizes: &Files<'_>) -> Vec<Calls> {
    let calls = |(at, object): (usize, &Object)| Calls {
        pages: object.request_pages() as u32,
        end: sizes.pages_of(task, at).unwrap_or(u64::MAX),
    };
    task.object.iter().enumerate().map(calls).collect()
}

fn origins(task: &Task, sizes: &Files<'_>) -> Result<Vec<Origin>, Problem> {
    let mut origins = Vec::new();
    for (index, object) in task.object.iter().enumerate() {
        let Some(kind) = origin_kind(index, object, sizes)? else { continue };
        origins.push(Origin { object: index as u32, share: object.share, read_only: object.read_only, kind });
    }
    Ok(origins)
}

fn origin_kind(index: usize, object: &Object, sizes: &Files<'_>) -> Result<Option<OriginKind>, Problem> {
    if let Some(pattern) = sizes.pattern_of(object) {
        return match pattern {
            Ok(pattern) => Ok(Some(OriginKind::Pattern(pattern))),
            Err(error) => Err(Problem::in_table(&format!("object[{index}].workload"), error)),
        };
    }
    let Some(trace) = &object.trace else { return Ok(None) };
    let options =
        object.read_options().map_err(|error| Problem::in_table(&format!("object[{index}].read"), error))?;
    let kept = trace.loaded.as_ref().and_then(|loaded| loaded.accesses.clone());
    Ok(Some(kept.map_or_else(|| OriginKind::Trace(trace.path.clone(), options), OriginKind::InMemory)))
}

/// One copy of a task, apart from what it has in common with the others.
struct Run<'a> {
    sizes: &'a Files<'a>,
    /// Of the task.
    seed: u64,
    copy: u32,
    /// The machine's tasks that have to end first.
    after: Range<usize>,
    visits: Option<Visits>,
    /// Of all tasks.
    tables: &'a ZipfTables,
}

/// The files of the engine by name.
type OpenFiles = BTreeMap<String, OpenFile>;

/// A file of the engine, and the device of a regular one.
struct OpenFile {
    id: FileId,
    device: Option<usize>,
}

/// The name of a file that belongs to one object, of this copy if each has its own; the slash keeps it apart from the scenario's own.
fn own_file_name(task: &Task, index: usize, copy: u32) -> String {
    let of = if task.object[index].per_copy { &task.copy_name(copy) } else { &task.name };
    format!("{of}/object[{index}]")
}

/// A value as the kernel's file takes it: bytes in digits, percentages of what the cgroup's tasks can touch.
fn memcg_value(
    touchable: &Touchable,
    memcg: &str,
    file: &str,
    value: &Scalar,
    key: &str,
) -> Result<String, Problem> {
    let is_limit = CgroupFile::by_name(file).is_some_and(|file| matches!(file.holds, Holds::Limit(_)));
    let pages = match value.to_string().parse::<Limit>() {
        Ok(Limit::Size(size)) if is_limit => return Ok(size.0.to_string()),
        Ok(limit @ Limit::Percent(_)) if is_limit => {
            let touched = touchable.pages(memcg);
            limit.pages(touched.ok_or_else(|| {
                problem(key, "a percentage of the pages of a trace, but the trace was not read")
            })?)
        }
        _ => None,
    };
    Ok(pages.map_or(value.to_string(), |pages| Size::from_pages(pages).0.to_string()))
}

/// What is written to `memory.reclaim`: its size as the kernel reads it, the options behind it as they are.
fn reclaim_value(value: &str) -> String {
    // A unit may stand apart from its number, so the size ends where the options begin.
    let options_at = value.find(" swappiness=").unwrap_or(value.len());
    let (size, options) = value.split_at(options_at);
    size.parse::<Size>().map_or(value.to_string(), |size| format!("{}{options}", size.0))
}

fn policy(key: &str, name: &str) -> Result<Policy, Problem> {
    Policy::by_name(name).ok_or_else(|| problem(key, format!("there is no policy called `{name}`")))
}

fn nanos(time: TimeSpan) -> Nanos {
    Nanos(time.0)
}

fn problem(key: &str, message: impl std::fmt::Display) -> Problem {
    Problem::new(key, message.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pageout_engine::{PghotQuirks, RecordSize};
    use pageout_workload::trace::{Footprint, Loaded, ObjectFootprint};

    use super::*;

    /// Two tasks in a cgroup: 100 pages of a shared file, and twice 50 pages of anonymous memory.
    fn scenario(more: &str) -> Scenario {
        let text = format!(
            r#"{{
                "memcg": [{{"path": "/a/b", "memory.max": "50%"}}],
                "file": [{{"name": "shared", "size": "100 pages"}}],
                "task": [
                    {{"name": "reader", "memcg": "/a/b", "copies": 2, "object": [
                        {{"channel": "file", "file": "shared", "workload": {{"pattern": "zipf", "ops": 500}}}},
                        {{"channel": "anonymous", "size": "50 pages"}}
                    ]}}
                ]{more}
            }}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_posting_gives_the_keys_that_are_not_given_themselves() {
        let config = |kernel: &str| scenario(&format!(r#", "kernel": {{{kernel}}}"#)).config().unwrap();
        assert_eq!(config("").pghot_record, RecordSize::U8);
        let third = config(r#""pghot.posting": "v3""#);
        assert_eq!((third.pghot_record, third.pghot_quirks), (RecordSize::U64, PghotQuirks::V3));
        let mended = config(r#""pghot.quirks": "none", "pghot.posting": "v3""#);
        assert_eq!(mended, Config { pghot_quirks: PghotQuirks::None, ..third }, "in whichever order");
        assert_eq!(config(r#""pghot.posting": "v6""#).pghot_record, RecordSize::U8);
        let eighth = |sysctl: &str| {
            let more = format!(r#", "kernel": {{"pghot.posting": "v8"}}, "sysctl": {{{sysctl}}}"#);
            scenario(&more).engine_config().unwrap().pghot_record_hintfaults_enable
        };
        assert_eq!([eighth(""), eighth(r#""vm.pghot_record_hintfaults_enable": 0"#)], [1, 0]);
        let wrong = scenario(r#", "kernel": {"pghot.posting": "v2"}"#).validate();
        assert_eq!(wrong[0].key, "kernel.pghot.posting");
    }

    fn report_of(scenario: &Scenario) -> crate::Report {
        assert_eq!(scenario.validate(), []);
        let mut machine = scenario.build().unwrap();
        machine.run(&mut ()).unwrap();
        machine.report()
    }

    #[test]
    fn a_percentage_is_of_what_the_cgroups_tasks_can_touch() {
        let scenario = scenario("");
        let touchable = Touchable::of(&scenario);
        assert_eq!(
            [touchable.pages("/"), touchable.pages("/a"), touchable.pages("/b")],
            [Some(200), Some(200), Some(0)]
        );
        let mut machine = scenario.build().unwrap();
        let max = machine.engine_mut().read_file("/sys/fs/cgroup/a/b/memory.max").unwrap();
        assert_eq!(max.trim(), (100 * 4096).to_string());
        assert_eq!(machine.engine_mut().read_file("/sys/fs/cgroup/a/memory.max").unwrap().trim(), "max");
    }

    #[test]
    fn a_percentage_of_what_a_trace_touches_needs_the_trace_to_be_read() {
        let mut scenario = scenario("");
        scenario.task[0].object[0].workload = None;
        scenario.task[0].object[1].trace = Some(std::path::PathBuf::from("a.u32").into());
        let Err(problem) = scenario.build() else { panic!("nobody knows what 50% are") };
        assert_eq!(problem.key, "memcg[0].memory.max");
        let object = |distinct_pages| ObjectFootprint { pages: 50, distinct_pages, writes: 0 };
        let footprint = Footprint { objects: vec![object(3)], ..Footprint::default() };
        let loaded = Some(Arc::new(Loaded { footprint, accesses: None }));
        scenario.task[0].object[1].trace.as_mut().unwrap().loaded = loaded;
        assert_eq!(Touchable::of(&scenario).pages("/a"), Some(100 + 2 * 3), "anonymous memory once a copy");
        assert_eq!(scenario.percentages()[0].pages, 53);
    }

    #[test]
    fn copies_draw_for_themselves_and_a_seed_repeats_them() {
        let report = report_of(&scenario(""));
        assert_eq!(report.tasks.len(), 2);
        assert_eq!(report, report_of(&scenario("")));
        assert_ne!(report, report_of(&scenario(r#", "seed": 2"#)));
    }

    #[test]
    fn sizes_in_events_become_the_kernels_digits() {
        assert_eq!(reclaim_value("4 MiB"), "4194304");
        assert_eq!(reclaim_value("1MiB swappiness=10"), "1048576 swappiness=10");
        assert_eq!(reclaim_value("4m swappiness=0"), "4194304 swappiness=0");
        let more =
            r#", "event": [{"at": "1us", "write": "/sys/fs/cgroup/a/b/memory.high", "value": "64 pages"}]"#;
        let report = report_of(&scenario(more));
        assert_eq!(report.writes[0].value, "262144");
    }
}
