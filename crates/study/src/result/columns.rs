//! Columns: chosen figures of a machine, by name, at any time of its run.
//!
//! Figures are counted from the start of the run, in the kernel's names and units where it has them. Looking at them changes nothing in the
//! run. So counters of cgroups are live ones, and not those of `memory.stat`, whose reader makes reclaim see newer numbers.

use pageout_engine::{Engine, MEMORY_EVENTS, MemcgId, Nanos, NodeId, PAGE_SIZE, Stat};
use pageout_sim::device::DeviceReport;
use pageout_sim::{Machine, Resource};

use crate::error::Error;
use crate::scenario::nearest::nearest;

/// The default columns.
pub const DEFAULT_COLUMNS: &str = "accesses,nr_free_pages,nr_inactive_anon,nr_active_anon,nr_inactive_file,\
     nr_active_file,pgscan_direct,pgsteal_direct,workingset_refault_anon,workingset_refault_file,pswpin,pswpout,\
     pressure.memory.some,pressure.memory.full,pressure.io.some,pressure.cpu.some";

/// Figures by their names.
pub struct Columns(Vec<(String, Column)>);

impl Columns {
    /// Returns the columns of this machine with the comma-separated `names`. Errors: an unknown figure, or an unknown task, cgroup, device
    /// or node.
    pub fn parse(names: &str, machine: &Machine) -> Result<Columns, Error> {
        let columns = names.split(',').map(str::trim).map(|name| {
            let column = Column::parse(name, machine).map_err(Error::Asked)?;
            Ok((name.to_string(), column))
        });
        columns.collect::<Result<_, _>>().map(Columns)
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Their values by a time that the machine has come to, in the same order.
    pub fn values(&self, at: Nanos, machine: &Machine) -> impl Iterator<Item = i64> {
        self.0.iter().map(move |(_, column)| column.value(at, machine))
    }
}

/// What a column shows.
enum Column {
    Accesses,
    Vmstat(Stat),
    Usage(MemcgId),
    Counter(MemcgId, Stat),
    Pressure(MemcgId, Resource, bool),
    /// A counter of `memory.events`, which has the position among [`MEMORY_EVENTS`].
    Event(MemcgId, usize),
    Swap(MemcgId),
    Task(String, TaskFigure),
    Device(String, DeviceFigure),
    Node(NodeId, Stat),
    /// CPU time of a kernel thread.
    Thread(String),
}

/// A figure of a task.
#[derive(Clone, Copy)]
enum TaskFigure {
    Accesses,
    Misses,
    Major,
    CpuTime,
    CpuWait,
    IoWait,
    ReclaimTime,
    /// 1 from when it was killed on.
    Killed,
}

const TASK_FIGURES: [(&str, TaskFigure); 8] = [
    ("accesses", TaskFigure::Accesses),
    ("misses", TaskFigure::Misses),
    ("major", TaskFigure::Major),
    ("cpu_ns", TaskFigure::CpuTime),
    ("cpu_wait_ns", TaskFigure::CpuWait),
    ("io_wait_ns", TaskFigure::IoWait),
    ("reclaim_ns", TaskFigure::ReclaimTime),
    ("killed", TaskFigure::Killed),
];

/// A figure of a device, since the run began.
type DeviceFigure = fn(&DeviceReport) -> u64;

const DEVICE_FIGURES: [(&str, DeviceFigure); 7] = [
    ("reads", |device| device.read.count),
    ("writes", |device| device.write.count),
    ("pages_read", |device| device.pages_read),
    ("pages_written", |device| device.pages_written),
    ("busy_ns", |device| device.busy.0),
    ("queue_wait_ns", |device| device.queue_wait.0),
    ("errors", |device| device.errors),
];

impl Column {
    fn parse(name: &str, machine: &Machine) -> Result<Column, String> {
        let engine = machine.engine();
        if let Some((group, name)) = name.strip_prefix('/').and_then(|_| name.split_once(':')) {
            let Some(memcg) = engine.figures().memcg_by_path(group) else {
                let known: Vec<String> = engine.figures().memcgs().map(|(_, path)| path).collect();
                return Err(format!("unknown cgroup `{group}`{}", meant(group, &known)));
            };
            return Column::of_group(memcg, name);
        }
        if let Some((task, figure)) = name.strip_prefix("task.").and_then(|name| name.rsplit_once('.')) {
            return Column::of_task(task, figure, machine);
        }
        if let Some((device, figure)) = name.strip_prefix("device.").and_then(|name| name.rsplit_once('.')) {
            return Column::of_device(device, figure, machine);
        }
        if let Some((node, name)) = name.strip_prefix("node.").and_then(|name| name.split_once('.')) {
            return Column::of_node(node, name, engine);
        }
        if let Some(thread) = name.strip_prefix("thread.").and_then(|name| name.strip_suffix(".cpu_ns")) {
            return Ok(Column::Thread(thread.to_string()));
        }
        match name {
            "accesses" => Ok(Column::Accesses),
            _ => match (pressure(name)?, stat(name)) {
                (Some((resource, full)), _) => Ok(Column::Pressure(MemcgId::ROOT, resource, full)),
                (None, Some(stat)) => Ok(Column::Vmstat(stat)),
                (None, None) => Err(unknown(name, &["accesses"])),
            },
        }
    }

    fn of_group(memcg: MemcgId, name: &str) -> Result<Column, String> {
        if let Some(event) = name.strip_prefix("memory.events.") {
            let Some(position) = MEMORY_EVENTS.iter().position(|known| *known == event) else {
                return Err(format!(
                    "unknown event `{event}` of memory.events; known: {}",
                    MEMORY_EVENTS.join(", ")
                ));
            };
            return Ok(Column::Event(memcg, position));
        }
        match (name, pressure(name)?, stat(name)) {
            ("memory.current", ..) => Ok(Column::Usage(memcg)),
            ("memory.swap.current", ..) => Ok(Column::Swap(memcg)),
            (_, Some((resource, full)), _) => Ok(Column::Pressure(memcg, resource, full)),
            (_, None, Some(stat)) => Ok(Column::Counter(memcg, stat)),
            (_, None, None) => Err(unknown(name, &["memory.current", "memory.swap.current"])),
        }
    }

    fn of_task(task: &str, figure: &str, machine: &Machine) -> Result<Column, String> {
        let tasks: Vec<String> = machine.tasks_by(Nanos::ZERO).into_iter().map(|task| task.name).collect();
        if !tasks.iter().any(|known| known == task) {
            return Err(format!("unknown task `{task}`{}", meant(task, &tasks)));
        }
        let known = TASK_FIGURES.iter().find(|(name, _)| *name == figure);
        let Some(&(_, figure)) = known else {
            let names: Vec<&str> = TASK_FIGURES.iter().map(|(name, _)| *name).collect();
            return Err(format!("unknown figure `{figure}` of a task; known: {}", names.join(", ")));
        };
        Ok(Column::Task(task.to_string(), figure))
    }

    fn of_device(device: &str, figure: &str, machine: &Machine) -> Result<Column, String> {
        let devices: Vec<String> =
            machine.devices_by(Nanos::ZERO).into_iter().map(|device| device.name).collect();
        if !devices.iter().any(|known| known == device) {
            return Err(format!("unknown device `{device}`{}", meant(device, &devices)));
        }
        let Some(&(_, figure)) = DEVICE_FIGURES.iter().find(|(name, _)| *name == figure) else {
            let names: Vec<&str> = DEVICE_FIGURES.iter().map(|(name, _)| *name).collect();
            return Err(format!("unknown figure `{figure}` of a device; known: {}", names.join(", ")));
        };
        Ok(Column::Device(device.to_string(), figure))
    }

    fn of_node(node: &str, name: &str, engine: &Engine) -> Result<Column, String> {
        let nodes = engine.figures().zones().map(|zone| zone.node.0).max().map_or(0, |last| last + 1);
        let Some(id) = node.parse().ok().filter(|&id| id < nodes) else {
            return Err(format!("unknown node `{node}`, expected 0 to {}", nodes - 1));
        };
        let Some(stat) = stat(name) else { return Err(unknown(name, &[])) };
        Ok(Column::Node(NodeId(id), stat))
    }

    fn value(&self, at: Nanos, machine: &Machine) -> i64 {
        let engine: &Engine = machine.engine();
        let is_there = |memcg: MemcgId| engine.figures().memcgs().any(|(known, _)| known == memcg);
        match self {
            Column::Accesses => machine.accesses_by(at) as i64,
            Column::Vmstat(stat) => engine.figures().vmstat(*stat),
            // Nothing is known about a removed cgroup.
            Column::Usage(memcg)
            | Column::Counter(memcg, _)
            | Column::Event(memcg, _)
            | Column::Swap(memcg)
                if !is_there(*memcg) =>
            {
                0
            }
            Column::Event(memcg, position) => engine.figures().memcg_events(*memcg)[*position] as i64,
            Column::Swap(memcg) => (engine.figures().memcg_swap_usage(*memcg) * PAGE_SIZE) as i64,
            Column::Device(name, figure) => {
                let devices = machine.devices_by(at);
                devices.iter().find(|device| device.name == *name).map_or(0, |device| figure(device) as i64)
            }
            Column::Node(node, stat) => engine.figures().node_stat(*node, *stat),
            Column::Usage(memcg) => (engine.figures().memcg_usage(*memcg) * PAGE_SIZE) as i64,
            Column::Counter(memcg, stat) => engine.figures().memcg_stat_now(*memcg, *stat),
            Column::Pressure(memcg, resource, full) => {
                (machine.stall_totals(*memcg)[*resource as usize][usize::from(*full)].0 / 1000) as i64
            }
            Column::Task(name, figure) => {
                let tasks = machine.tasks_by(at);
                let task = tasks.iter().find(|task| task.name == *name);
                task.map_or(0, |task| figure.of(task) as i64)
            }
            Column::Thread(name) => {
                let threads = machine.threads();
                threads
                    .iter()
                    .find(|thread| thread.name == *name)
                    .map_or(0, |thread| thread.cpu_time.0 as i64)
            }
        }
    }
}

impl TaskFigure {
    fn of(self, task: &pageout_sim::TaskReport) -> u64 {
        match self {
            TaskFigure::Accesses => task.accesses,
            TaskFigure::Misses => task.minor + task.major + task.read_misses,
            TaskFigure::Major => task.major,
            TaskFigure::CpuTime => task.cpu_time.0,
            TaskFigure::CpuWait => task.cpu_wait.0,
            TaskFigure::IoWait => task.io_wait.0,
            TaskFigure::ReclaimTime => task.reclaim_time.0,
            TaskFigure::Killed => task.killed.is_some().into(),
        }
    }
}

fn stat(name: &str) -> Option<Stat> {
    Stat::ALL.iter().copied().find(|stat| stat.name() == name)
}

/// `pressure.memory.some` and its like; `None` if it is nothing of pressure.
fn pressure(name: &str) -> Result<Option<(Resource, bool)>, String> {
    let Some(rest) = name.strip_prefix("pressure.") else { return Ok(None) };
    let (resource, extent) = rest.split_once('.').unwrap_or((rest, ""));
    let resource = Resource::ALL.into_iter().find(|known| known.name() == resource);
    match (resource, extent) {
        (Some(resource), "some") => Ok(Some((resource, false))),
        (Some(resource), "full") => Ok(Some((resource, true))),
        _ => Err(format!(
            "invalid pressure `{name}`: expected memory, io or cpu, and some or full, for example `pressure.memory.some`"
        )),
    }
}

fn unknown(name: &str, more: &[&'static str]) -> String {
    let known: Vec<String> =
        Stat::ALL.iter().map(|stat| stat.name()).chain(more.iter().copied()).map(str::to_string).collect();
    format!(
        "unknown figure `{name}`{}\nhelp: columns are names of /proc/vmstat, `accesses`, or of the form \
         `pressure.memory.some`, `CGROUP:NAME` (also with `memory.current`, `memory.swap.current` or \
         `memory.events.max`), `node.0.NAME`, `task.NAME.accesses`, `device.NAME.busy_ns` or \
         `thread.NAME.cpu_ns`",
        meant(name, &known)
    )
}

fn meant(given: &str, known: &[String]) -> String {
    let near = nearest(given, known.iter().map(String::as_str));
    near.map_or(String::new(), |near| format!(" (did you mean `{near}`?)"))
}
