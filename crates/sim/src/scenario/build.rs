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

mod damon; // kdamonds
mod device; // a preset with what is overridden of it
mod files; // files, and the devices that they are on
mod process; // the processes of a task, and their threads
mod settings; // what is written to the kernel's files before anything runs

use std::collections::BTreeMap;
use std::ops::Range;

use pageout_engine::{
    Config, ConfigError, CpuId, Engine, EngineBuilder, MemcgId, MmId, Nanos, Nodemask, ObjectId, Parameter,
    PghotPosting, Policy, Section, SwapId, SwapKind as EngineSwapKind, SwapSpec, Switch, TransparentHugepage,
    parameters_of,
};
use pageout_workload::generator::ZipfTables;

use self::files::OpenFiles;
use self::process::Run;
use self::settings::{memcg_value, reclaim_value};
use super::compressed::Compressed;
use super::measure::Touchable;
use super::{
    DEFAULT_DEVICE, Device, Event, KernelFile, Migration, OomRule, PageAdvice, Problem, Scenario, Size,
    SwapKind, Task, TimeSpan,
};
use crate::cost::{COPIED_BY_16_THREADS, COPIED_BY_DMA, Costs};
use crate::device::DeviceSpec;
use crate::{Machine, MachineSpec, Repeat, SchedRules, TimedAction, TimedEvent, Value, When};

/// How often an event's condition is checked where `every` does not say.
const LOOK: Nanos = Nanos(10_000_000);

impl Scenario {
    /// The machine with everything in it, at time 0. Traces are opened when their task starts to run.
    pub fn build(&self) -> Result<Machine, Problem> {
        let mut builder = Engine::builder(self.config()?).map_err(|error| problem("machine", error))?;
        let bdis = self.register_bdis(&mut builder)?;
        let swaps = self.create_swap(&mut builder)?;
        let mut engine = builder.build();
        // Pages have no contents here that another task could see too early.
        engine.writes_whole_calls();
        self.create_memcgs(&mut engine)?;
        let sizes = self.files();
        let files = self.create_files(&mut engine, &bdis, &sizes)?;
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
            kswapd_wake_ups: Vec::new(),
            stat_flush_phase: self.time_switch("memcg.stat_flush_phase")?,
            devices: self.device_specs()?,
            files: files.values().filter_map(|file| Some((file.id, file.device?))).collect(),
            swaps,
            memory: self.machine.memory_specs(),
            links: self.machine.links(),
            hindsight: self.machine.hindsight,
            times_accesses: self.machine.access_times,
            hints: self.machine.hints.spec(),
        };
        let mut machine = Machine::new(engine, spec).map_err(|error| problem("device", error))?;
        let positions = self.positions();
        let mut cpu_next = 0;
        let tables = ZipfTables::default();
        let mut processes: BTreeMap<&str, Vec<MmId>> = BTreeMap::new();
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
                let process = self.add_process(&mut machine, index, &run, &cpus, &files)?;
                processes.entry(&task.name).or_default().push(process);
            }
        }
        self.create_kdamonds(machine.engine_mut(), &processes)?;
        for (index, event) in self.event.iter().enumerate() {
            let key = format!("event[{index}]");
            let event = self.timed_event(event, &touchable, &files, &key)?;
            machine.event_add(event).map_err(|error| problem(&key, error))?;
        }
        Ok(machine)
    }

    /// Adds an event of this scenario to a machine that was built from the same scenario without it, and that may have run. Errors: the event
    /// syncs one file system, or the machine refuses it.
    pub fn insert_event(&self, index: usize, machine: &mut Machine) -> Result<(), Problem> {
        let key = format!("event[{index}]");
        let event = &self.event[index];
        if event.syncfs.is_some() {
            return Err(problem(&key, "found `syncfs`, expected an event that names no device"));
        }
        let event = self.timed_event(event, &Touchable::of(self), &OpenFiles::default(), &key)?;
        machine.event_insert(event).map_err(|error| problem(&key, error))
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
            policy: policy("kernel.profile", &self.kernel.name())?,
            ..Config::default()
        };
        let of_profile = parameters_of(&self.kernel.name());
        for (name, value) in of_profile.into_iter().chain(self.pghot_posting().parameters().copied()) {
            let parameter = Parameter::by_name(name).expect("a profile and a posting name parameters");
            assert!(parameter.set(&mut config, value), "{name} takes {value}");
        }
        // Values that are given explicitly override the rest.
        for (name, value) in switches.iter() {
            // The machine's period: it notifies the engine when to flush.
            if name == "memcg.stat_flush_phase" {
                continue;
            }
            let value = value.to_string();
            let is_set = match Parameter::by_name(name).filter(|known| known.section == Section::Kernel) {
                Some(parameter) => parameter.set(&mut config, &value),
                None => Switch::by_name(name).is_some_and(|switch| switch.set(&mut config.policy, &value)),
            };
            if !is_set {
                let message = format!("the engine has no setting `{name}` that accepts `{value}`");
                return Err(problem(&format!("kernel.{name}"), message));
            }
        }
        if self.machine.page_stands_for > 1 {
            if config.transparent_hugepage != TransparentHugepage::Never {
                return Err(Problem::huge_of_many("kernel.transparent_hugepage"));
            }
            let size = (2..=9).find(|&order| config.anon_folio_orders(true) >> order & 1 == 1);
            if let Some(order) = size {
                return Err(Problem::huge_of_many(&format!("kernel.hugepages_{}kB", 4 << order)));
            }
        }
        Ok(config)
    }

    /// Returns the configuration of the engine: `[machine]`, `[kernel]` and `[sysctl]`. Errors: a key that the check rejects, too.
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
            let parent = engine.figures().memcg_by_path(if parent.is_empty() { "/" } else { parent });
            let parent = parent.unwrap_or(MemcgId::ROOT);
            let created = match index.and_then(|index| self.memcg[index].policy.as_deref()) {
                Some(own) => {
                    engine.memcg_create_with(parent, name, policy(&format!("{key}.policy"), own)?.group)
                }
                None => engine.memcg_create(parent, name),
            };
            created.map_err(|error| problem(&key, error))?;
        }
        Ok(())
    }

    fn create_swap(&self, builder: &mut EngineBuilder) -> Result<Vec<(SwapId, usize)>, Problem> {
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
                builder.swap_on_at(spec, swap.priority.map(|priority| priority as u16)).map_err(refuse)?;
            let compressed = Compressed::of_swap(swap).engine();
            if let Some(compressed) =
                compressed.map_err(|message| problem(&format!("swap[{index}]"), message))?
            {
                builder.swap_compressibility(id, compressed).map_err(refuse)?;
            }
            match swap.kind {
                SwapKind::Disk => {
                    let device = self.device_index(swap.device.as_deref());
                    if self.device_specs()?[device].sequential.is_some() {
                        builder
                            .swap_rotational(id)
                            .map_err(|error| problem(&format!("swap[{index}]"), error))?;
                    }
                    on_devices.push((id, device));
                }
                SwapKind::Zram => {
                    builder.zram_limit(id, swap.memory_limit.map(Size::pages_floor)).map_err(refuse)?;
                }
            }
        }
        Ok(on_devices)
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
            _ if let Some(advice) = event.madvise => madvise(event, advice, key)?,
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
                    Some(KernelFile::Node(name)) if name.ends_with("/reclaim") => {
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
        let when = event.when.clone().map(|condition| When {
            path: condition.path(event.file()).expect("checked: its file is known"),
            condition,
            look: event.every.map_or(LOOK, nanos),
        });
        let at = event.at.map_or(Nanos::ZERO, nanos);
        Ok(TimedEvent { at, when, repeat, shell: event.shell.clone(), action })
    }
}

/// The action of an event with advice.
fn madvise(event: &Event, advice: PageAdvice, key: &str) -> Result<TimedAction, Problem> {
    let task = event.task.clone();
    let task =
        task.ok_or_else(|| problem(&format!("{key}.task"), "found no task, expected the one to advise"))?;
    let advice = match advice {
        PageAdvice::Cold => pageout_engine::PageAdvice::Cold,
        PageAdvice::Pageout => pageout_engine::PageAdvice::Pageout,
        PageAdvice::Free => pageout_engine::PageAdvice::Free,
    };
    Ok(TimedAction::Madvise { task, object: event.object.map(ObjectId), advice })
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
        let loaded = Some(Arc::new(Loaded::of(footprint, None)));
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
