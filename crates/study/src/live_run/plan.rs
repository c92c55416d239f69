//! What the live machine has of a scenario. A key that it lacks is an error, never ignored.

use pageout_live::engine::PAGE_SIZE;
use pageout_sim::device::{IoScheduler, Latency};
use pageout_sim::scenario::{Advice, Channel, Device, File, Machine, Object, Scenario, Size};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, bail, ensure};

/// A scenario in the live machine's terms.
pub(super) struct Plan<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) policy: String,
    pub(super) rules: Vec<(String, String)>,
    pub(super) sysctls: Vec<(String, String)>,
    /// Paths and values of kernel files that are switches in a scenario.
    pub(super) kernel_files: Vec<(String, String)>,
    /// Bytes of frames, slow ones included.
    pub(super) memory: u64,
    pub(super) slow: Option<Slow>,
    pub(super) swap: u64,
    /// The swap file is in memory, as on a device of preset `pmem`.
    pub(super) swaps_in_memory: bool,
    pub(super) zswap: bool,
    /// The emulated disk of all files.
    pub(super) disk: Option<Head>,
    pub(super) read_ahead: u64,
    pub(super) groups: Vec<Group>,
}

/// Emulated slow memory.
#[derive(Clone, Copy)]
pub(super) struct Slow {
    pub(super) bytes: u64,
    /// What a page costs more there.
    pub(super) delay_ns: u64,
}

/// An emulated disk with a head.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) latency_ns: u64,
    pub(super) follows_ns: u64,
    pub(super) seek_ns: u64,
    pub(super) seek_span: u64,
    pub(super) bytes_per_second: u64,
}

impl Head {
    /// The emulated disk of a device that seeks by distance; nothing for another one. Errors: a figure that the emulated disk lacks.
    fn of(at: usize, device: &Device) -> Result<Option<Head>, Error> {
        let spec = device
            .spec()
            .map_err(|problem| Error::Asked(format!("device[{at}]{}: {}", problem.key, problem.message)))?;
        let Some(seek) = spec.seek else { return Ok(None) };
        let expected =
            |what: &str| format!("device[{at}]: {what}, as the live machine emulates a disk with a head");
        let (Latency::Constant(read), Latency::Constant(write)) = (spec.read, spec.write) else {
            bail!("{}", expected("expected read_p99 = read_latency and write_p99 = write_latency"));
        };
        ensure!(read == write, "{}", expected("expected equal latencies of reads and writes"));
        ensure!(
            spec.read_bandwidth == spec.write_bandwidth,
            "{}",
            expected("expected equal bandwidths of reads and writes")
        );
        ensure!(spec.queue_depth == 1, "{}", expected("expected queue_depth = 1"));
        ensure!(
            spec.scheduler == IoScheduler::MqDeadline,
            "{}",
            expected("expected scheduler = \"mq-deadline\"")
        );
        Ok(Some(Head {
            latency_ns: read.0,
            follows_ns: spec.sequential.unwrap_or(read).0,
            seek_ns: seek.longest.0,
            seek_span: seek.span * PAGE_SIZE,
            bytes_per_second: spec.read_bandwidth,
        }))
    }
}

/// A cgroup, by its name without the slash, and the values written to its files.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) files: Vec<(String, String)>,
}

/// Kernel switches of a scenario that are files of the machine.
const KERNEL_FILES: [(&str, &str); 2] = [
    ("numa.pagecache_promotion_enabled", "/sys/kernel/mm/numa/pagecache_promotion_enabled"),
    ("numa.demotion_enabled", "/sys/kernel/mm/numa/demotion_enabled"),
];

/// Kernel switches that are parameters of zswap.
const ZSWAP: [&str; 3] =
    ["zswap.max_pool_percent", "zswap.accept_threshold_percent", "zswap.shrinker_enabled"];

/// The kernel switch for the age of statistics.
const STAT_FLUSH: &str = "memcg.stat_flush";

/// Kernel switches under this name are files of this folder.
const SCHED: (&str, &str) = ("sched.numa_balancing.", "/sys/kernel/debug/sched/numa_balancing/");

/// The sysctl that lets pages of slow memory be promoted.
const BALANCING: &str = "kernel.numa_balancing";

impl Plan<'_> {
    /// Errors: the first key that the live machine lacks.
    pub(super) fn of(scenario: &Scenario) -> Result<Plan<'_>, Error> {
        ensure!(scenario.event.is_empty(), "[[event]]: the live machine has no events");
        ensure!(scenario.damon.is_empty(), "[[damon]]: the live machine has no kdamonds");
        ensure!(scenario.until.is_none(), "until: the live machine ends with the last task");
        ensure!(scenario.swap.len() <= 1, "[[swap]]: found {}, expected at most one", scenario.swap.len());
        refuse("machine", &scenario.machine, &Machine::default(), MACHINE_KEYS)?;
        for (at, swap) in scenario.swap.iter().enumerate() {
            refuse(&format!("swap[{at}]"), swap, &blank(json!({ "size": 4096 })), &["size", "device"])?;
        }
        for (at, file) in scenario.file.iter().enumerate() {
            let blank: File = blank(json!({ "name": "", "size": 1 }));
            refuse(&format!("file[{at}]"), file, &blank, &["name", "size", "device"])?;
        }
        for (at, task) in scenario.task.iter().enumerate() {
            refuse(&format!("task[{at}]"), task, &blank(json!({ "name": "" })), TASK_KEYS)?;
            let has_group = scenario.memcg.iter().any(|group| group.path == task.memcg);
            ensure!(
                task.preferred_node.is_none() || has_group,
                "task[{at}].preferred_node: the task needs a [[memcg]]: its cpuset.mems selects the node"
            );
            let repeats = |object: &Object| {
                object
                    .workload
                    .as_ref()
                    .is_some_and(|table| table.0.get("pattern") == Some(&json!("sequential")))
            };
            ensure!(
                task.loops == 1 || task.object.iter().all(repeats),
                "task[{at}].loops: random accesses differ from loop to loop in the simulator, and not here; expected 1"
            );
            for (object_at, object) in task.object.iter().enumerate() {
                let key = format!("task[{at}].object[{object_at}]");
                refuse(&key, object, &blank(json!({ "channel": "file" })), OBJECT_KEYS)?;
                let is_known = matches!(object.channel, Channel::File | Channel::Anonymous);
                ensure!(is_known, "{key}.channel: the live machine has files and anonymous memory");
                let is_known = matches!(object.advice, Advice::Normal | Advice::Random);
                ensure!(is_known, "{key}.advice: found a hint, expected random or none");
                ensure!(object.workload.is_some(), "{key}: found no workload, expected one");
                ensure!(
                    object.populate_node.is_none() || has_group,
                    "{key}.populate_node: the task needs a [[memcg]]: its cpuset.mems selects the node"
                );
            }
        }
        let slow = match &scenario.machine.node[..] {
            [] | [_] => None,
            [fast, slow] => {
                let (Some(fast), Some(delayed)) = (fast.read_latency, slow.read_latency) else {
                    bail!(
                        "[[machine.node]]: expected a read_latency of each: their difference is the emulated delay"
                    );
                };
                let (fast, delayed) = (fast.0, delayed.0);
                ensure!(delayed > fast, "machine.node[1].read_latency: expected more than that of node 0");
                // The first line of a page waits; the processor fetches those behind it ahead.
                Some(Slow { bytes: slow.memory.0, delay_ns: delayed - fast })
            }
            more => bail!("[[machine.node]]: found {}, expected at most two", more.len()),
        };
        let memory = scenario.machine.node_sizes().iter().map(|size| size.0).sum();
        let swap = scenario.swap.first().map_or(0, |area| area.size.0);
        let (mut swaps_in_memory, mut disk) = (false, None);
        for (at, device) in scenario.device.iter().enumerate() {
            let of_swap = scenario.swap.iter().any(|swap| swap.device.as_deref() == Some(&device.name));
            if of_swap {
                swaps_in_memory = device.preset == "pmem";
                ensure!(
                    device.seek_latency.is_none(),
                    "device[{at}].seek_latency: the live machine's swap has no head"
                );
                continue;
            }
            let of_files = scenario.device.len() == 1
                || scenario.file.iter().all(|file| file.device.as_deref() == Some(&device.name));
            let head = Head::of(at, device)?;
            ensure!(
                head.is_none() || of_files,
                "device[{at}].seek_latency: expected all [[file]] on this device"
            );
            disk = disk.or(head);
        }
        let flush = scenario.kernel.switches.iter().find(|(name, _)| *name == STAT_FLUSH);
        ensure!(
            flush.is_none_or(|(_, value)| value.to_string() == "live"),
            "kernel.{STAT_FLUSH}: the live machine's statistics are always current; expected \"live\""
        );
        let is_own = |name: &str| name == STAT_FLUSH || name == "zswap.enabled" || ZSWAP.contains(&name);
        let given = |name: &str| {
            let found = scenario.kernel.switches.iter().find(|(switch, _)| *switch == name);
            found.map(|(_, value)| value.to_string())
        };
        let zswap = given("zswap.enabled").is_some_and(|value| value == "true");
        let text =
            |(name, value): (&str, &pageout_sim::scenario::Scalar)| (name.to_string(), value.to_string());
        let (switches, rules): (Vec<_>, Vec<_>) = (scenario.kernel.switches.iter().map(text))
            .filter(|(name, _)| !is_own(name))
            .partition(|(name, _)| {
                name.starts_with(SCHED.0) || KERNEL_FILES.iter().any(|(switch, _)| switch == name)
            });
        ensure!(
            slow.is_some() || switches.is_empty(),
            "kernel.{}: expected two [[machine.node]], as the live machine has it with slow memory only",
            switches[0].0
        );
        let mut sysctls: Vec<_> = scenario.sysctl.iter().map(text).collect();
        if zswap {
            ensure!(swap > 0, "kernel.zswap.enabled: expected a [[swap]]");
            // A live machine has the kernel's defaults, as a scenario has, except for the shrinker.
            let usual =
                |name: &str| if name == "zswap.shrinker_enabled" { Some("false".to_string()) } else { None };
            let parameters = ZSWAP
                .iter()
                .filter_map(|name| Some(((*name).to_string(), given(name).or_else(|| usual(name))?)));
            sysctls.extend(parameters.map(|(name, value)| {
                let value = match value.as_str() {
                    "true" => "1".to_string(),
                    "false" => "0".to_string(),
                    _ => value,
                };
                (name, value)
            }));
        }
        let mut kernel_files = Vec::new();
        if slow.is_some() {
            // A live machine with slow memory has all of these on, a scenario has them off.
            let is_on = |name: &str| switches.iter().any(|(switch, value)| switch == name && value == "true");
            let file = |(name, path): &(&str, &str)| ((*path).to_string(), u8::from(is_on(name)).to_string());
            kernel_files.extend(KERNEL_FILES.iter().map(file));
            kernel_files.extend(switches.iter().filter_map(|(name, value)| {
                Some((format!("{}{}", SCHED.1, name.strip_prefix(SCHED.0)?), value.clone()))
            }));
            if sysctls.iter().all(|(name, _)| name != BALANCING) {
                sysctls.push((BALANCING.to_string(), "0".to_string()));
            }
        }
        let groups = scenario.memcg.iter().map(|memcg| {
            ensure!(memcg.policy.is_none(), "memcg {}: the live machine has one policy", memcg.path);
            let name = memcg.path.trim_start_matches('/').to_string();
            let files = memcg.files.iter().map(|(file, value)| {
                let value = value.to_string();
                let bytes = value.parse::<Size>().map(|size| size.0.to_string());
                ensure!(!value.ends_with('%'), "memcg {}.{file}: expected a size", memcg.path);
                Ok((file.to_string(), bytes.unwrap_or(value)))
            });
            Ok(Group { name, files: files.collect::<Result<_, Error>>()? })
        });
        let read_ahead = scenario.device.first().and_then(|device| device.read_ahead_kb).unwrap_or(128);
        Ok(Plan {
            scenario,
            policy: scenario.kernel.name(),
            rules,
            sysctls,
            kernel_files,
            memory,
            slow,
            swap,
            swaps_in_memory,
            zswap,
            disk,
            read_ahead: u64::from(read_ahead) << 10,
            groups: groups.collect::<Result<_, Error>>()?,
        })
    }

    /// Pages of all files and regions.
    pub(super) fn pages(&self) -> u64 {
        let scenario = self.scenario;
        let shared = scenario.file.iter().map(|file| file.size.pages_ceil());
        let own = scenario.task.iter().flat_map(|task| &task.object).filter_map(|object| object.size);
        shared.chain(own.map(Size::pages_ceil)).sum()
    }
}

/// Memory is used; processors, their prices and clocks are those of this machine.
const MACHINE_KEYS: &[&str] = &["memory", "node", "cpus", "costs", "hz"];
const TASK_KEYS: &[&str] =
    &["name", "memcg", "cpu", "after", "loops", "background", "preferred_node", "object"];
const OBJECT_KEYS: &[&str] = &[
    "channel",
    "file",
    "size",
    "request_size",
    "advice",
    "read_ahead",
    "share",
    "read_only",
    "write_first",
    "populate_node",
    "contents",
    "compressed_deciles",
    "compressed_min",
    "compressed_max",
    "same_filled",
    "zero_filled",
    "workload",
];

/// A table with its required keys alone.
fn blank<T: DeserializeOwned>(required: Value) -> T {
    serde_json::from_value(required).expect("these are the required keys")
}

/// Refuses a table with a key that is neither known nor at its default.
fn refuse<T: Serialize>(at: &str, table: &T, blank: &T, known: &[&str]) -> Result<(), Error> {
    let keys = |table: &T| match serde_json::to_value(table) {
        Ok(Value::Object(keys)) => keys,
        _ => unreachable!("a section is a table"),
    };
    let blank = keys(blank);
    let stranger = keys(table)
        .into_iter()
        .find(|(key, value)| !known.contains(&key.as_str()) && blank.get(key) != Some(value));
    match stranger {
        Some((key, _)) => {
            bail!("{at}.{key}: the live machine does not have it\nhelp: known keys: {}", known.join(", "))
        }
        None => Ok(()),
    }
}
