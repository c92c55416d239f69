//! Notes on what a run leaves out or does not do. A result has a note wherever its user would miss something.

use std::collections::BTreeSet;

use pageout_engine::{CgroupFile, Config, Engine, Holds, Lru, MthpStat, Parameter, SWITCHES, kernel_bool};
use pageout_sim::scenario::keys::{KEYS, Limit};
use pageout_sim::scenario::{
    Advice, Channel, Device, FileKind, KernelFile, Object, OomRule, Scalar, Scenario, SwapKind,
};
use pageout_sim::{Report, TaskReport, Watched};
use serde::Serialize;
use serde_json::Value;

use super::requests::{self, Deletes};
use super::run_result::{Counters, counter};
use crate::figures;
use crate::scenario::nearest::nearest;
use crate::scenario::switches;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The topic, in a word.
    pub about: &'static str,
    /// All of it, in a sentence or two.
    pub text: String,
}

/// Limits that are named; more than that are counted.
const NAMED: usize = 3;

/// Shares of the read pages below which there is no note on readahead.
const FILE_SHARE: f64 = 0.1;
const SWAP_SHARE: f64 = 0.01;

/// Share of the scanned pages that is activated, below which it hardly matters that active ones don't age.
const ACTIVATED_SHARE: f64 = 0.05;

/// Share of the accesses to slow memory above which its promotion matters, and of hot pages below which it does not happen.
const SLOW_SHARE: f64 = 0.01;
const PROMOTED_SHARE: f64 = 0.1;

/// Notes that are known before the run.
pub fn of_scenario(scenario: &Scenario) -> Vec<Note> {
    [
        no_min_ttl(scenario),
        no_lower_tier(scenario),
        without_effect(scenario),
        unseen(scenario),
        limits_out_of_reach(scenario),
        limits_of_nobody(scenario),
        pages_of_many(scenario),
        accesses_of_many(scenario),
        ids_not_read_ahead(scenario),
        requests_of_traces(scenario),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Notes that the run adds to those known before it.
pub fn of_run(scenario: &Scenario, report: &Report, engine: &Engine, vmstat: &Counters) -> Vec<Note> {
    let mut notes = of_scenario(scenario);
    notes.extend(no_access(scenario, report));
    notes.extend(no_readahead(scenario, report));
    notes.extend(textbook_with_readahead(scenario, report));
    notes.extend(no_swap_readahead(scenario, report, counter(vmstat, "pswpin").unsigned_abs()));
    notes.extend(no_flush(scenario, report, engine, vmstat));
    notes.extend(no_promotion(scenario, report, vmstat));
    notes.extend(pages_alone_move(scenario, vmstat));
    notes.extend(large_anonymous(engine));
    notes.extend(no_such_line(scenario, report));
    notes.extend(report.reads_thinned.iter().map(|thinned| {
        let text = format!(
            "{} was read {} times, more than a result stores: it keeps 1 of {} readings and the last one.",
            thinned.path,
            figures::count(thinned.taken),
            figures::count(thinned.every),
        );
        Note { about: "readings", text }
    }));
    notes.extend(never_held(report));
    notes
}

/// Events whose condition held at no look did nothing, which a list of what was done does not show.
fn never_held(report: &Report) -> impl Iterator<Item = Note> {
    report.watched.iter().filter(|watched| watched.held == 0).map(
        |Watched { condition, path, looks, .. }| {
            let looked = match looks {
                0 => "the run ended before the first check".to_string(),
                _ => format!("it was false at each of {}", figures::counted(*looks, "check")),
            };
            let text = format!("The event with when = \"{condition}\" did nothing: {looked} at {path}.");
            Note { about: "conditions", text }
        },
    )
}

/// Lines that an event is to show and that were in none of its readings: a slip of the pen would be a column of dashes.
fn no_such_line(scenario: &Scenario, report: &Report) -> Vec<Note> {
    let mut notes = Vec::new();
    for event in &scenario.event {
        let of_event =
            || report.reads.iter().filter(|read| Some(read.path.as_str()) == event.read.as_deref());
        let lines = || of_event().flat_map(|read| read.text.lines()).map(str::trim_start);
        let words: BTreeSet<&str> = lines().filter_map(|line| line.split([' ', ':']).next()).collect();
        let begins = |name: &str| {
            lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', ':'])))
        };
        for name in event.show.iter().filter(|name| *name != "*") {
            if words.is_empty() || begins(name) {
                continue;
            }
            let path = event.read.as_deref().unwrap_or_default();
            let meant = nearest(name, words.iter().copied());
            let meant = meant.map_or(String::new(), |meant| format!(": did you mean `{meant}`?"));
            let text = format!("No line of {path} begins with `{name}`, which an event reads{meant}");
            notes.push(Note { about: "readings", text });
        }
    }
    notes
}

/// The notes of several runs, each thing once, with the name of the first run that has it.
pub fn of_several<'a>(runs: impl Iterator<Item = (&'a str, &'a [Note])>) -> Vec<Note> {
    let mut told: Vec<Note> = Vec::new();
    for (name, notes) in runs {
        let new = notes.iter().filter(|note| !told.iter().any(|known| known.about == note.about));
        let new: Vec<Note> =
            new.map(|note| Note { text: format!("{name}: {}", note.text), ..note.clone() }).collect();
        told.extend(new);
    }
    told
}

/// The subject of a note on tasks without an access: if no task made an access, no figure of the run is meaningful.
pub const NO_ACCESS: &str = "accesses";

/// Tasks that made no access, and why not.
fn no_access(scenario: &Scenario, report: &Report) -> Option<Note> {
    let mut idle: Vec<String> = Vec::new();
    for task in report.tasks.iter().filter(|task| task.accesses == 0 && task.killed.is_none()) {
        let says = format!("{} made no access: {}", task.name, why_no_access(scenario, report, task));
        if !idle.contains(&says) {
            idle.push(says);
        }
    }
    let more = idle.len().saturating_sub(NAMED);
    idle.truncate(NAMED);
    idle.extend((more > 0).then(|| figures::counted(more as u64, "more task")));
    (!idle.is_empty()).then(|| Note { about: NO_ACCESS, text: format!("Task {}.", idle.join("; ")) })
}

fn why_no_access(scenario: &Scenario, report: &Report, task: &TaskReport) -> String {
    let end = figures::time(report.end.0);
    let Some(of) = scenario.task.iter().find(|of| of.name == task.name) else { return String::new() };
    match &of.after {
        _ if task.is_finished => "its objects have no accesses".to_string(),
        Some(before) if task.started >= report.end => {
            format!("it waits for the end of {before}, but the run ended first, after {end}")
        }
        None if task.started >= report.end => {
            format!("it starts after {}, but the run ended after {end}", figures::time(of.start.0))
        }
        _ if of.think_time.0 > 0 => format!(
            "the run ended after {end}, before its first access; its think_time is {}",
            figures::time(of.think_time.0)
        ),
        _ => format!("the run ended after {end}, while it waited for its first page"),
    }
}

fn pages_of_many(scenario: &Scenario) -> Option<Note> {
    let stands_for = scenario.machine.page_stands_for;
    let text =
        format!("each page and each access has a scale factor of {}.", figures::count(stands_for.into()));
    (stands_for > 1).then_some(Note { about: "page_stands_for", text })
}

fn accesses_of_many(scenario: &Scenario) -> Option<Note> {
    let tasks = || scenario.task.iter().filter(|task| task.stands_for > 1);
    let mut told: Vec<String> = tasks()
        .take(NAMED)
        .map(|task| format!("{} of {}", task.name, figures::count(task.stands_for.into())))
        .collect();
    let more = tasks().count().saturating_sub(NAMED);
    told.extend(
        (more > 0).then(|| format!("other factors of {}", figures::counted(more as u64, "more task"))),
    );
    let text = format!("Accesses have a scale factor: {}.", told.join(", "));
    (!told.is_empty()).then_some(Note { about: "stands_for", text })
}

fn no_min_ttl(scenario: &Scenario) -> Option<Note> {
    if scenario.machine.oom == OomRule::Kill {
        return None;
    }
    let is_ttl = |path: &str| matches!(KernelFile::parse(path), Some(KernelFile::LruGen(name)) if name == "min_ttl_ms");
    let is_set =
        |value: &Scalar| !value.to_string().trim_start_matches("0x").chars().all(|digit| digit == '0');
    let mut writes =
        scenario.event.iter().filter_map(|event| event.write.as_deref().zip(event.value.as_ref()));
    let (path, value) = writes.find(|(path, value)| is_ttl(path) && is_set(value))?;
    let text = format!(
        "{value} in {path} has no effect: kswapd enforces it by killing a process, which needs machine.oom = \"kill\"."
    );
    Some(Note { about: "min_ttl_ms", text })
}

/// A value that a scenario accepts and that has no effect.
struct WithoutEffect {
    /// The key, as `pageout keys` prints it. `[0]` is the first element of a list. With a dot at its end: all keys of the table.
    key: &'static str,
    /// When a value of the key has no effect.
    is: Idle,
    /// Why it has none, and what the result lacks.
    says: &'static str,
}

/// When a value has no effect.
enum Idle {
    /// In every scenario.
    Value(fn(&str) -> bool),
    /// Next to other keys of the scenario.
    Beside(fn(&Set) -> bool),
}

/// A key that a scenario sets.
struct Set<'a> {
    scenario: &'a Scenario,
    /// With the indices of lists: `swap[0].priority`.
    path: String,
    value: String,
}

impl Set<'_> {
    /// The index in the last list of the path.
    fn index(&self) -> usize {
        let index = self.path.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']'));
        index.and_then(|(index, _)| index.parse().ok()).unwrap_or(0)
    }

    /// Returns true if a row of the table is about the key.
    fn is_of(&self, key: &str) -> bool {
        let is_it = |path: &str| path == key || (key.ends_with('.') && path.starts_with(key));
        is_it(&self.path) || is_it(&any_element(&self.path))
    }

    /// Returns true if something of the device is the same without the key.
    fn keeps<T: PartialEq>(&self, unset: fn(&mut Device), what: fn(&Device) -> T) -> bool {
        let device = &self.scenario.device[self.index()];
        let mut without = device.clone();
        unset(&mut without);
        what(&without) == what(device)
    }
}

/// The path of a key without the indices of lists, as in [`KEYS`].
fn any_element(path: &str) -> String {
    let parts = path.split('[').map(|part| part.trim_start_matches(|of: char| of.is_ascii_digit()));
    parts.collect::<Vec<_>>().join("[")
}

/// Number of requests that a device can queue beyond those in service. Fewer `nr_requests` than `queue_depth` count as `queue_depth`.
fn room_for_requests(device: &Device) -> Option<u32> {
    let spec = device.spec().ok()?;
    Some(spec.nr_requests.saturating_sub(spec.queue_depth))
}

/// Returns true if a file or a swap area is on a device.
fn is_used(scenario: &Scenario, device: &Device) -> bool {
    let is_it = |name: Option<&String>| name.map_or(scenario.device.len() == 1, |name| *name == device.name);
    let is_on = |object: &Object| {
        let is_regular = matches!(object.channel, Channel::File | Channel::Mapped);
        is_regular && object.file.is_none() && is_it(object.device.as_ref())
    };
    let mut files = scenario.file.iter().filter(|file| file.kind == FileKind::Regular);
    let mut swap = scenario.swap.iter().filter(|swap| swap.kind == SwapKind::Disk);
    files.any(|file| is_it(file.device.as_ref()))
        || swap.any(|swap| is_it(swap.device.as_ref()))
        || scenario.task.iter().any(|task| task.recorded.is_some() || task.object.iter().any(is_on))
}

/// All of them.
const WITHOUT_EFFECT: &[WithoutEffect] = &[
    WithoutEffect {
        key: "sysctl.kernel.numa_balancing",
        is: Idle::Beside(|set| set.value == "1" && set.scenario.machine.node.len() < 2),
        says: ONE_NODE,
    },
    WithoutEffect {
        key: "sysctl.vm.zone_reclaim_mode",
        is: Idle::Value(|value| value.parse::<u8>().is_ok_and(|bits| bits != 0 && bits & 1 == 0)),
        says: "bits 2 and 4 select what node reclaim may do, but bit 1, which enables it, is not set",
    },
    WithoutEffect {
        key: "machine.node[0].cpus",
        is: Idle::Beside(|set| {
            let named: u64 =
                set.scenario.machine.node.iter().map(|node| u64::from(node.cpus.unwrap_or(0))).sum();
            named < u64::from(set.scenario.machine.cpus)
        }),
        says: "the nodes have fewer CPUs than machine.cpus, and the first node gets the rest",
    },
    WithoutEffect {
        key: "machine.node[].adistance",
        is: Idle::Beside(|set| set.scenario.machine.node.len() == 1),
        says: ONE_NODE,
    },
    WithoutEffect {
        key: "machine.node[].distance",
        is: Idle::Beside(|set| set.scenario.machine.node.len() == 1),
        says: ONE_NODE,
    },
    WithoutEffect {
        key: "machine.node[].reserved",
        is: Idle::Beside(|set| {
            let machine = &set.scenario.machine;
            let end: u64 = machine.node.iter().map(|node| node.memory.0 + node.reserved.0).sum();
            !machine.zone_dma && end <= DMA32_END && machine.node.iter().all(|node| node.movable.0 == 0)
        }),
        says: "it moves zone limits, but each node has one zone: no zone DMA or Movable, and no memory above 4 GiB",
    },
    WithoutEffect {
        key: "machine.node[].interleave_weight",
        is: Idle::Beside(|set| set.scenario.task.iter().all(|task| task.weighted_interleave.is_none())),
        says: "no task has weighted_interleave",
    },
    WithoutEffect {
        key: "machine.hints.",
        is: Idle::Beside(|set| !may_listen(set.scenario)),
        says: "nothing enables vm.pghot_record_hwhints_enable",
    },
    WithoutEffect {
        key: "machine.tlb_entries",
        is: Idle::Beside(|set| {
            let mut tasks = set.scenario.task.iter();
            let reads = |object: &Object| matches!(object.channel, Channel::File | Channel::Tmpfs);
            tasks.all(|task| task.recorded.is_none() && task.object.iter().all(reads))
        }),
        says: "no access goes through a page table: all of them are read(2) and write(2)",
    },
    WithoutEffect {
        key: "device[].name",
        is: Idle::Beside(|set| !is_used(set.scenario, &set.scenario.device[set.index()])),
        says: "no file and no swap area uses this device; its other keys have no effect either",
    },
    WithoutEffect {
        key: "device[].nr_requests",
        is: Idle::Beside(|set| set.keeps(|device| device.nr_requests = None, room_for_requests)),
        says: "the device serves at least this number of requests at the same time (queue_depth)",
    },
    WithoutEffect {
        key: "device[].optimal_io_kb",
        is: Idle::Beside(|set| set.keeps(|device| device.optimal_io_kb = 0, Device::window_kb)),
        says: WINDOW,
    },
    WithoutEffect {
        key: "device[].rotational",
        is: Idle::Beside(|set| set.keeps(|device| device.rotational = false, Device::window_kb)),
        says: WINDOW,
    },
    WithoutEffect {
        key: "swap[].priority",
        is: Idle::Beside(|set| set.scenario.swap.len() == 1),
        says: "the machine has one swap area",
    },
    WithoutEffect {
        key: "swap[].zero_filled",
        is: Idle::Beside(|set| {
            let keeps_slots = |config: Config| !config.zero_map;
            set.scenario.swap[set.index()].kind == SwapKind::Disk
                && set.scenario.engine_config().is_ok_and(keeps_slots)
        }),
        says: "a disk stores zero-filled pages like others if kernel.swap.zero_map is false",
    },
];

const ONE_NODE: &str = "the machine has one node";
const WINDOW: &str = "it sets the default of read_ahead_kb, which is unchanged or set explicitly";

/// The end of zone DMA32, in bytes.
const DMA32_END: u64 = 4 << 30;

/// Returns true if hot-page tracking takes hints of hardware at any time.
fn may_listen(scenario: &Scenario) -> bool {
    const SWITCH: &str = "vm.pghot_record_hwhints_enable";
    let is_switch = |path: &str| match KernelFile::parse(path) {
        Some(KernelFile::Sysctl(name)) => name == SWITCH || name == "vm.pghot_enabled_sources",
        Some(KernelFile::Pghot(name)) => name == "enabled_sources",
        _ => false,
    };
    let is_on = |value: Option<&Scalar>| value.is_some_and(|value| value.to_string() != "0");
    let mut writes = scenario.event.iter().filter(|event| event.write.as_deref().is_some_and(is_switch));
    is_on(scenario.sysctl.get(SWITCH))
        || writes.any(|event| event.add.is_some() || is_on(event.value.as_ref()))
}

/// Returns true if a value of a key is one that a result reports as without effect, whatever the rest of the scenario is.
pub fn is_without_effect(key: &str, value: &str) -> bool {
    let is_idle = |row: &WithoutEffect| matches!(row.is, Idle::Value(is) if is(value));
    WITHOUT_EFFECT.iter().any(|row| row.key == key && is_idle(row))
}

/// Switches whose reference names no scenario, because none changes its counters by the switch alone. Other figures of a shipped scenario change, or
/// its counters do with other settings.
const SEEN_OTHERWISE: &[&str] = &[
    "reclaim.clean_only",
    "reclaim.congested_queue",
    "reclaim.gives_up",
    "reclaim.machine_counts",
    "reclaim.swap_ahead_drain",
    "reclaim.writepage",
];

/// Returns true if no shipped scenario shows an effect of a key, as its reference says.
pub fn is_unseen(key: &str) -> bool {
    let Some(name) = key.strip_prefix("kernel.") else { return false };
    if SEEN_OTHERWISE.contains(&name) {
        return false;
    }
    let is_unseen = |parameter: &Parameter| {
        parameter.mechanism.as_ref().is_some_and(|mechanism| mechanism.shown_by.is_none())
    };
    SWITCHES.iter().any(|switch| switch.name == name && switch.shown_by.is_none())
        || Parameter::by_name(name).is_some_and(is_unseen)
}

/// Keys that the scenario sets and that no shipped scenario shows.
fn unseen(scenario: &Scenario) -> Option<Note> {
    let set = scenario.kernel.switches.iter().map(|(name, _)| format!("kernel.{name}"));
    let set: Vec<String> = set.filter(|key| is_unseen(key)).collect();
    let first = set.first()?;
    let text = format!(
        "No shipped scenario shows an effect of {}: `pageout keys {first}` describes when the key has one.",
        set.join(", ")
    );
    Some(Note { about: "keys that nothing shows", text })
}

/// The keys of the machine and the sysctls that a scenario sets to other values than the default, at its start or by an event.
fn keys_set(scenario: &Scenario) -> Vec<Set<'_>> {
    let mut found = Vec::new();
    let tables = [
        ("machine", serde_json::to_value(&scenario.machine)),
        ("device", serde_json::to_value(&scenario.device)),
        ("swap", serde_json::to_value(&scenario.swap)),
    ];
    for (table, value) in tables {
        flatten(table.to_string(), &value.unwrap_or_default(), &mut found);
    }
    let is_default = |path: &str, value: &str| {
        let path = any_element(path);
        KEYS.iter().any(|key| key.path == path && key.default == value)
    };
    found.retain(|(path, value)| !is_default(path, value));
    for (name, value) in scenario.sysctl.iter() {
        found.push((format!("sysctl.{name}"), value.to_string()));
    }
    for (path, value) in
        scenario.event.iter().filter_map(|event| event.write.as_deref().zip(event.value.as_ref()))
    {
        if let Some(KernelFile::Sysctl(name)) = KernelFile::parse(path) {
            found.push((format!("sysctl.{name}"), value.to_string()));
        }
    }
    let set =
        |(path, value): (String, String)| Set { scenario, path, value: value.trim_matches('"').to_string() };
    found.into_iter().map(set).collect()
}

/// The values below a table, each with its path.
fn flatten(path: String, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(name, value)| flatten(format!("{path}.{name}"), value, found));
        }
        Value::Array(list) if list.iter().all(Value::is_object) => {
            list.iter().enumerate().for_each(|(at, value)| flatten(format!("{path}[{at}]"), value, found));
        }
        value => found.push((path, value.to_string())),
    }
}

/// Values without effect that the scenario sets.
fn without_effect(scenario: &Scenario) -> Option<Note> {
    let set = keys_set(scenario);
    let told: Vec<String> = WITHOUT_EFFECT
        .iter()
        .filter_map(|row| {
            let is_idle = |set: &&Set| match row.is {
                Idle::Value(is) => is(&set.value),
                Idle::Beside(is) => is(set),
            };
            let Set { path, value, .. } = set.iter().filter(|set| set.is_of(row.key)).find(is_idle)?;
            let name = path.strip_prefix("sysctl.").unwrap_or(path);
            Some(format!("{name} = {value} has no effect here: {}.", row.says))
        })
        .collect();
    (!told.is_empty()).then(|| Note { about: "values without effect", text: told.join(" ") })
}

/// Migration between tiers can be enabled during a run on a machine with one tier: Linux accepts it, and so does the simulator. Before a
/// run it is rejected.
fn no_lower_tier(scenario: &Scenario) -> Option<Note> {
    let moves_pages = |path: &str, value: &Scalar| match KernelFile::parse(path) {
        Some(KernelFile::Numa(_)) => kernel_bool(&value.to_string()) == Some(true),
        Some(KernelFile::Sysctl(name)) if name == "kernel.numa_balancing" => value.to_string() == "2",
        Some(KernelFile::Sysctl(name)) if name.starts_with("vm.pghot_record_") => value.to_string() == "1",
        Some(KernelFile::Sysctl(name)) if name == "vm.pghot_enabled_sources" => value.to_string() != "0",
        Some(KernelFile::Pghot(name)) if name == "enabled_sources" => value.to_string() != "0",
        _ => false,
    };
    let mut writes =
        scenario.event.iter().filter_map(|event| event.write.as_deref().zip(event.value.as_ref()));
    let (path, value) = writes.find(|(path, value)| moves_pages(path, value))?;
    if scenario.machine.tiers().is_ok_and(|tiers| tiers.has_lower_tier()) {
        return None;
    }
    let text = format!(
        "{value} in {path} has no effect: all memory of this machine is in its top tier. A \
         [[machine.node]] without cpus and with slower memory (preset = \"cxl-1.1\") adds another memory \
         tier."
    );
    Some(Note { about: "tiers", text })
}

/// A limit beyond what there is never binds. Linux takes it, and so do we; but what it was meant to do does not happen.
fn limits_out_of_reach(scenario: &Scenario) -> Option<Note> {
    let memory: u64 = scenario.machine.node_sizes().iter().map(|size| size.0).sum();
    let swap: u64 = scenario.swap.iter().map(|swap| swap.size.0).sum();
    let listed = scenario.memcg.iter().flat_map(|memcg| {
        memcg.files.iter().map(|(file, value)| (memcg.path.clone(), file.to_string(), value.clone()))
    });
    let written = scenario.event.iter().filter_map(|event| {
        let (path, value) = event.write.as_deref().zip(event.value.clone())?;
        let KernelFile::Memcg { path, file } = KernelFile::parse(path)? else { return None };
        Some((path, file, value))
    });
    let mut beyond = Vec::new();
    for (path, file, value) in listed.chain(written) {
        let most = match file.as_str() {
            "memory.max" | "memory.high" => memory,
            "memory.swap.max" if swap > 0 => swap,
            _ => continue,
        };
        let is_limit = CgroupFile::by_name(&file).is_some_and(|file| matches!(file.holds, Holds::Limit(_)));
        if let Ok(Limit::Size(size)) = value.to_string().parse()
            && is_limit
            && size.0 > most
        {
            beyond.push(format!("{file} of {path} ({} of {})", figures::bytes(size.0), figures::bytes(most)));
        }
    }
    let told = match beyond.len() {
        0 => return None,
        count if count <= NAMED => beyond.join(", "),
        count => format!("{} and {} more", beyond[..NAMED].join(", "), count - NAMED),
    };
    let text =
        format!("Larger than the machine's memory, so never reached: {told}. Global reclaim starts first.");
    Some(Note { about: "limits", text })
}

/// A group that no task is in, whatever its limits are.
fn limits_of_nobody(scenario: &Scenario) -> Option<Note> {
    let is_within = |path: &str, group: &str| {
        path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let has_task = |group: &str| scenario.task.iter().any(|task| is_within(&task.memcg, group));
    let empty = scenario.memcg.iter().filter(|memcg| memcg.files.iter().next().is_some());
    let mut empty: Vec<String> =
        empty.filter(|memcg| !has_task(&memcg.path)).map(|memcg| memcg.path.clone()).collect();
    let more = empty.len().saturating_sub(NAMED);
    empty.truncate(NAMED);
    empty.extend((more > 0).then(|| format!("{more} more")));
    let text = format!(
        "No task is in {}, so its settings have no effect (task.*.memcg sets the cgroup of a task).",
        empty.join(", ")
    );
    (!empty.is_empty()).then_some(Note { about: "groups", text })
}

fn no_readahead(scenario: &Scenario, report: &Report) -> Option<Note> {
    let is_off = scenario.readahead().iter().all(|(_, kib)| *kib == 0);
    let files = scenario.task.iter().flat_map(|task| &task.object);
    let mut files = files.filter(|object| matches!(object.channel, Channel::File | Channel::Mapped));
    // Linux does not read ahead for a file that is advised as random either.
    let is_wanted =
        files.any(|object| object.advice != Advice::Random) && scenario.objects_of_ids().is_empty();
    let (pages, in_order) = (report.file_pages_read, report.file_pages_read_in_order);
    let share = figures::share(in_order, pages);
    if !is_off || !is_wanted || share < FILE_SHARE {
        return None;
    }
    let busy: u64 =
        report.devices.iter().filter(|device| device.pages_read > 0).map(|device| device.busy.0).sum();
    let read: u64 = report.devices.iter().map(|device| device.pages_read).sum();
    // Without a clock no device is busy.
    let rate = match busy {
        0 => String::new(),
        _ => format!(", {} in total", figures::bandwidth(read * 4096, busy)),
    };
    let text = format!(
        "Readahead is off: {} of the pages read from files follow an earlier page, but each was a separate \
         request{rate}. Linux reads these pages ahead, 128 KiB at a time by default \
         (device.*.read_ahead_kb, replay --read-ahead-kb), which is faster.",
        figures::percent(share),
    );
    Some(Note { about: "readahead", text })
}

/// Pages of ids have no neighbours.
fn ids_not_read_ahead(scenario: &Scenario) -> Option<Note> {
    let objects = scenario.objects_of_ids();
    let first = objects.first()?;
    let others = match objects.len() {
        1 => String::new(),
        count => format!(" and {}", figures::counted(count as u64 - 1, "other")),
    };
    let text = format!(
        "No readahead for {first}{others}: the trace has opaque ids, which have no neighbours. `read_ahead = true` of the object enables it."
    );
    Some(Note { about: "readahead", text })
}

/// Records of a trace that are not accesses.
fn requests_of_traces(scenario: &Scenario) -> Option<Note> {
    let mut says = Vec::new();
    for task in &scenario.task {
        let traces = task.object.iter().filter_map(|object| object.trace.as_ref());
        for trace in traces {
            let Some(requests) = trace.loaded.as_ref().and_then(|loaded| loaded.requests.as_ref()) else {
                continue;
            };
            let keeps = |at: usize| task.object[at].channel == Channel::Anonymous;
            let deletes = match task.removals() {
                Some((at, _)) if !keeps(at) => Deletes::Played,
                _ => Deletes::Kept,
            };
            says.extend(
                requests::says(requests, deletes).into_iter().map(|of| format!("{}: {of}", task.name)),
            );
        }
    }
    (!says.is_empty()).then(|| Note { about: "trace", text: format!("{}.", says.join(". ")) })
}

/// Figures of others for these policies are of caches that bring in what is asked for and nothing else.
fn textbook_with_readahead(scenario: &Scenario, report: &Report) -> Option<Note> {
    let is_textbook = matches!(switches::policy_of(scenario).group.lru, Lru::Guest(_));
    if !is_textbook || report.readahead.pages == 0 {
        return None;
    }
    let text = format!(
        "{} is a textbook policy, and {} were read ahead for it. Figures of cache simulators are without readahead:          device.*.read_ahead_kb = 0, or replay --read-ahead-kb 0.",
        scenario.kernel.name(),
        figures::counted(report.readahead.pages, "page")
    );
    Some(Note { about: "textbook", text })
}

fn no_swap_readahead(scenario: &Scenario, report: &Report, pages_swapped_in: u64) -> Option<Note> {
    let page_cluster = scenario.sysctl.get("vm.page-cluster").map(ToString::to_string);
    let is_off = page_cluster.unwrap_or_else(|| Config::default().page_cluster.to_string()) == "0";
    let has_disk = scenario.swap.iter().any(|swap| swap.kind == SwapKind::Disk);
    let read: u64 = report.devices.iter().map(|device| device.pages_read).sum();
    if !is_off || !has_disk || figures::share(pages_swapped_in, read) < SWAP_SHARE {
        return None;
    }
    let text = format!(
        "Swap readahead is off (vm.page-cluster = 0): {} pages were read from swap, one at a time. By \
         default Linux reads up to 7 neighbours with each page (vm.page-cluster = 3).",
        figures::count(pages_swapped_in)
    );
    Some(Note { about: "swap readahead", text })
}

/// The classic LRU ages by sizes as of the last flush of statistics. A short run's reclaim therefore uses the sizes of an empty machine.
fn no_flush(scenario: &Scenario, report: &Report, engine: &Engine, vmstat: &Counters) -> Option<Note> {
    let period = engine.stat_flush_period().filter(|&period| report.end < period)?;
    let has_two_lists = switches::policy_of(scenario).group.lru == Lru::TwoLists;
    let of = |name| counter(vmstat, name).unsigned_abs();
    let scanned = of("pgscan_file") + of("pgscan_anon");
    if !has_two_lists || figures::share(of("pgactivate"), scanned) < ACTIVATED_SHARE {
        return None;
    }
    let text = format!(
        "Reclaim's statistics are flushed every {}, but the run ended after {}: reclaim used outdated list \
         sizes, so active pages hardly aged. Use a longer run or kernel.memcg.stat_flush = \"live\" to see \
         the steady state.",
        figures::time(period.0),
        figures::time(report.end.0)
    );
    Some(Note { about: "statistics", text })
}

/// Pages followed the CPUs of their tasks, and Linux would have moved tasks, too.
fn pages_alone_move(scenario: &Scenario, vmstat: &Counters) -> Option<Note> {
    let is_on =
        |set: &Set| set.path == "sysctl.kernel.numa_balancing" && ["1", "3"].contains(&set.value.as_str());
    if !keys_set(scenario).iter().any(is_on) || counter(vmstat, "numa_hint_faults") == 0 {
        return None;
    }
    let text = "kernel.numa_balancing moved pages only. Linux also moves tasks to the node of their memory and treats \
                threads that share pages as a group. Here tasks stay on their CPUs (task.cpunodebind), and a shared page \
                goes to a node that uses it twice in a row.";
    Some(Note { about: "NUMA balancing", text: text.to_string() })
}

/// Large folios of anonymous memory were made, and some of what Linux does with them is not modelled.
fn large_anonymous(engine: &Engine) -> Option<Note> {
    let made: u64 = (1..=9).map(|order| engine.figures().mthp(order, MthpStat::AnonFaultAlloc)).sum();
    let text = format!(
        "{} of anonymous memory made by faults. Not modelled: copies of their pages after fork, khugepaged, which would \
         make more of them later, and the huge zero page. Compaction skips large folios: Linux since 6.9 moves those \
         below the wanted order.",
        figures::counted(made, "large folio")
    );
    (made > 0).then_some(Note { about: "large folios", text })
}

/// NUMA balancing was asked to promote, slow memory was in use, and (nearly) all that was in use there stayed.
fn no_promotion(scenario: &Scenario, report: &Report, vmstat: &Counters) -> Option<Note> {
    let tiers = report.tiers.as_ref()?;
    if !scenario.balances_tiers() || 1.0 - tiers.fast_share()? < SLOW_SHARE {
        return None;
    }
    let of = |name| counter(vmstat, name).unsigned_abs();
    let demotes = scenario.kernel.switches.get("numa.demotion_enabled") == Some(&Scalar::Bool(true));
    let (hot, promoted) = (of("pgpromote_candidate"), of("pgpromote_success"));
    let text = if of("numa_pte_updates") == 0 {
        format!(
            "NUMA balancing scanned no memory: it skips a new thread for some CPU time, by default one \
             second (kernel.sched.numa_balancing.scan_delay_ms), but the run ended after {}.",
            figures::time(report.end.0)
        )
    } else if !demotes && hot > 0 && figures::share(promoted, hot) < PROMOTED_SHARE {
        format!(
            "Pages of slow memory were found hot {} times, and {} were promoted. If fast memory is full, its \
             cold pages are demoted only with kernel.numa.demotion_enabled = true, which is off by default \
             in Linux.",
            figures::count(hot),
            figures::count(promoted)
        )
    } else {
        return None;
    };
    Some(Note { about: "promotion", text })
}
