//! Every key of a scenario: what it means, in which unit, what it accepts, what it is when absent and why.
//!
//! One table serves four readers: the checks take their ranges from here, messages take the allowed values, the command
//! line prints it as reference, and a test compares it with what the types really accept. A new key is one row.
//!
//! `[]` stands for an element of a list: `memcg[].memory.max` is the key `memory.max` of any `[[memcg]]`.

/// The keys of tables that the workload crate defines.
mod workload;

use std::fmt;
use std::sync::LazyLock;

use pageout_engine::{CGROUP_FILES, Config, Holds, PARAMETERS, Parameter, SWITCHES, Section, Switch, Values};

pub use workload::WORKLOAD_KEYS;

use super::{Scalar, Size, TimeSpan};
use crate::cost::Costs;
use crate::device::DeviceSpec;

/// What a key accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accepts {
    /// Any text.
    Text,
    /// A text that something else defines: a task names a cgroup, a file names a device.
    NameOf(&'static str),
    /// The path of a kernel file.
    KernelFile,
    /// A path in the file system of the user.
    HostPath,
    /// A list of texts.
    Texts,
    /// `true` or `false`.
    Bool,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// The name of a reclaim policy of the engine.
    Policy,
    /// A whole number.
    Integer(i64, i64),
    /// A size from so many to so many bytes.
    Size(u64, u64),
    /// A size, a percentage of what the cgroup's tasks can touch, or `max`.
    Limit,
    /// A duration from so many to so many nanoseconds.
    Time(u64, u64),
    /// Bytes a second.
    Bandwidth,
    /// A number between 0 and 1, or a percentage.
    Share,
    /// A table that the workload library defines, with its own reference.
    Table(&'static str),
    /// Any number, text or boolean.
    Scalar,
    /// A number whose range others check, in words.
    Range(&'static str),
}

impl Accepts {
    /// The words that are right here, when they are few.
    pub fn words(self) -> Vec<String> {
        match self {
            Accepts::Bool => vec!["true".into(), "false".into()],
            Accepts::Choice(words) => words.iter().map(|word| (*word).to_string()).collect(),
            Accepts::Policy => {
                pageout_engine::PROFILES.iter().map(|profile| profile.name.to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Checks a value; the error says what is wrong with it, without naming the key.
    pub fn check(self, value: &Scalar) -> Result<(), String> {
        match (self, value) {
            (Accepts::Bool, Scalar::Bool(_)) => Ok(()),
            // `6.12` without quotes is a number to TOML, and the name of an era here.
            (Accepts::Choice(_) | Accepts::Policy, Scalar::Text(_) | Scalar::Float(_)) => {
                let text = value.to_string();
                match self.words().contains(&text) {
                    true => Ok(()),
                    false => Err(format!("`{text}` is none of the allowed values")),
                }
            }
            (Accepts::Integer(min, max), Scalar::Integer(number)) => {
                in_range(*number, min, max, |n| n.to_string())
            }
            (Accepts::Size(min, max), Scalar::Text(_) | Scalar::Integer(_)) => {
                let size: Size = value.to_string().parse().map_err(|error| format!("{error}"))?;
                in_range(size.0, min, max, |bytes| Size(bytes).to_string())
            }
            (Accepts::Time(min, max), Scalar::Text(_) | Scalar::Integer(_)) => {
                let time: TimeSpan = value.to_string().parse().map_err(|error| format!("{error}"))?;
                in_range(time.0, min, max, |ns| TimeSpan(ns).to_string())
            }
            (Accepts::Limit, Scalar::Text(_) | Scalar::Integer(_)) => {
                value.to_string().parse::<Limit>().map(|_| ())
            }
            (
                Accepts::Text | Accepts::NameOf(_) | Accepts::KernelFile | Accepts::HostPath,
                Scalar::Text(_),
            ) => Ok(()),
            (Accepts::Scalar, _) => Ok(()),
            _ => Err(format!("`{value}` has the wrong type")),
        }
    }
}

fn in_range<T: PartialOrd + Copy>(
    value: T,
    min: T,
    max: T,
    show: impl Fn(T) -> String,
) -> Result<(), String> {
    if value < min {
        Err(format!("{} is too small: the least is {}", show(value), show(min)))
    } else if value > max {
        Err(format!("{} is too large: the most is {}", show(value), show(max)))
    } else {
        Ok(())
    }
}

impl fmt::Display for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Accepts::Text => f.write_str("text"),
            Accepts::NameOf(what) => write!(f, "name of a {what}"),
            Accepts::KernelFile => f.write_str("path of a kernel file"),
            Accepts::HostPath => f.write_str("path of a file"),
            Accepts::Texts => f.write_str("list of texts"),
            Accepts::Bool | Accepts::Choice(_) | Accepts::Policy => f.write_str(&self.words().join(" | ")),
            Accepts::Integer(min, i64::MAX) => write!(f, "number from {min}"),
            Accepts::Integer(min, max) => write!(f, "number from {min} to {max}"),
            Accepts::Size(min, max) => write!(f, "size from {} to {}", Size(min), Size(max)),
            Accepts::Limit => {
                f.write_str("size, percentage of what the cgroup's tasks can touch, or \"max\"")
            }
            Accepts::Time(0, max) => write!(f, "duration up to {}", TimeSpan(max)),
            Accepts::Time(min, max) => write!(f, "duration from {} to {}", TimeSpan(min), TimeSpan(max)),
            Accepts::Bandwidth => f.write_str("bandwidth, such as \"3.5GB/s\""),
            Accepts::Share => f.write_str("share between 0 and 1, such as 0.001 or \"0.1%\""),
            Accepts::Table(what) | Accepts::Range(what) => f.write_str(what),
            Accepts::Scalar => f.write_str("number or text, as the file takes it"),
        }
    }
}

/// A value of a `memory.*` limit or protection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// So many bytes.
    Size(Size),
    /// So many percent of the pages that the tasks in the cgroup can touch.
    Percent(f64),
    /// No limit.
    Max,
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        if text == "max" {
            return Ok(Limit::Max);
        }
        if let Some(number) = text.trim().strip_suffix('%') {
            return match number.trim().parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent <= 10_000.0 => Ok(Limit::Percent(percent)),
                _ => Err(format!("`{text}` is no percentage above 0")),
            };
        }
        text.parse().map(Limit::Size).map_err(|error| error.to_string())
    }
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Its path, with `[]` for list elements.
    pub path: &'static str,
    /// What it accepts.
    pub accepts: Accepts,
    /// What it is when absent; empty when it must be given.
    pub default: &'static str,
    /// What it means, and why the default is what it is.
    pub meaning: &'static str,
}

impl Key {
    /// The key of this path, list indices ignored: `task[3].object[0].size`.
    pub fn find(path: &str) -> Option<&'static Key> {
        let general = without_indices(path);
        KEYS.iter().find(|key| key.path == general)
    }

    /// Names of the keys right under `prefix`, such as `vm.swappiness` under `sysctl.`.
    pub fn names_under(prefix: &str) -> Vec<String> {
        KEYS.iter().filter_map(|key| key.path.strip_prefix(prefix)).map(str::to_string).collect()
    }
}

/// `task[3].object[0].size` as `task[].object[].size`.
pub fn without_indices(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|&c| {
            if c == ']' {
                inside = false;
            }
            let keep = !inside;
            if c == '[' {
                inside = true;
            }
            keep
        })
        .collect()
}

const TIB: u64 = 1 << 40;
/// What the engine has tables for.
const SIZE_MAX: u64 = 4 * TIB;
const ANY: Accepts = Accepts::Integer(0, i64::MAX);
/// The statistics of a machine are flushed every two seconds, idle or not: more is hours of nothing to simulate.
const TIME_MAX: u64 = 10_000 * 3_600_000_000_000;
const TIME: Accepts = Accepts::Time(0, TIME_MAX);
const LATENCY: Accepts = Accepts::Time(1, 60_000_000_000);

const fn key(path: &'static str, accepts: Accepts, default: &'static str, meaning: &'static str) -> Key {
    Key { path, accepts, default, meaning }
}

/// All keys in the order a scenario is written.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = ROWS.to_vec();
    let at = keys.iter().position(|key| key.path == "kernel.profile").expect("a key of the kernel");
    let engine = kernel_keys().into_iter().chain(parameter_keys(Section::Sysctl));
    keys.splice(at + 1..at + 1, engine);
    let at = keys.iter().position(|key| key.path == "memcg[].policy").expect("a key of a cgroup");
    keys.splice(at + 1..at + 1, memcg_keys());
    keys
});

/// The keys of `[kernel]` beside the profile: the engine's parameters, the switches of its policy, and the machine's.
fn kernel_keys() -> Vec<Key> {
    let (memcg, mut keys): (Vec<Key>, Vec<Key>) =
        parameter_keys(Section::Kernel).partition(|key| key.path.starts_with("kernel.memcg."));
    keys.extend(SWITCHES.iter().map(switch_key));
    for key in memcg {
        keys.push(key);
        if key.path == "kernel.memcg.stat_flush" {
            keys.push(STAT_FLUSH_PHASE);
        }
    }
    keys
}

/// The machine flushes, so the engine has no parameter for when.
const STAT_FLUSH_PHASE: Key = key(
    "kernel.memcg.stat_flush_phase",
    Accepts::Time(0, 3_000_000_000),
    "\"0s\"",
    "When the first periodic flush falls after the start. On a running kernel it counts from boot and is any number below the \
     period of 2.016s.",
);

/// The engine's own reference says what a parameter is.
fn parameter_keys(section: Section) -> impl Iterator<Item = Key> {
    let prefix = match section {
        Section::Kernel => "kernel",
        Section::Sysctl => "sysctl",
        Section::Machine | Section::Recording => unreachable!("no table of a scenario is only those"),
    };
    PARAMETERS.iter().filter(move |parameter| parameter.section == section).map(move |parameter| {
        let Parameter { name, values, doc, reason, .. } = parameter;
        let default = parameter.get(&Config::default());
        let default = if matches!(values, Values::Choice(_)) { format!("\"{default}\"") } else { default };
        Key {
            path: String::leak(format!("{prefix}.{name}")),
            accepts: values_of(*values),
            default: String::leak(default),
            meaning: String::leak(format!("{doc} {reason}")),
        }
    })
}

/// The files of a cgroup that a scenario may set.
fn memcg_keys() -> impl Iterator<Item = Key> {
    CGROUP_FILES.iter().filter_map(|file| {
        let Holds::Limit(initial) = file.holds else { return None };
        Some(Key {
            path: String::leak(format!("memcg[].{}", file.name)),
            accepts: Accepts::Limit,
            default: if initial == "max" { "\"max\"" } else { initial },
            meaning: file.doc,
        })
    })
}

fn values_of(values: Values) -> Accepts {
    match values {
        Values::Bool => Accepts::Bool,
        Values::Choice(words) => Accepts::Choice(words),
        Values::Number(least, most) => Accepts::Integer(least.into(), most.into()),
    }
}

/// The engine's own reference says what a switch does.
fn switch_key(switch: &'static Switch) -> Key {
    let path = String::leak(format!("kernel.{}", switch.name));
    let meaning = match switch.shown_by {
        None => switch.doc,
        Some((scenario, value)) => {
            let doc = switch.doc;
            String::leak(format!("{doc} Shown by scenarios/{scenario} with --set {path}={value}."))
        }
    };
    Key { path, accepts: values_of(switch.values), default: "as the profile has it", meaning }
}

#[rustfmt::skip]
const ROWS: &[Key] = &[
    key("question", Accepts::Text, "\"\"", "The question the scenario answers; shown above the result."),
    key("look_at", Accepts::Text, "\"\"", "What to look at in the result; shown below it."),
    key("seed", ANY, "1", "Seed of every random choice. Same scenario, same seed: same bytes. A fixed default, so that a run without a seed is repeatable too."),
    key("until", TIME, "when the last task is done", "Simulated time at which the run ends even if tasks still run. Needed when every task is in the background or a workload has no end."),

    key("machine.cpus", Accepts::Integer(1, 4096), "4", "Processors. Tasks and kernel threads compete for them; each has its own folio batches and charge stock. Four, so that a few tasks and kswapd do not queue for one CPU."),
    key("machine.hz", Accepts::Integer(1, 1000), "250", "Timer ticks a second (CONFIG_HZ). The statistics flush and the throttles count in ticks. 250 is what Debian builds."),
    key("machine.memory", Accepts::Size(4 << 20, 8 * TIB), "\"1GiB\"", "Memory of a machine with one node. Small, because a limit on a cgroup usually is what a scenario is about."),
    key("machine.node[].memory", Accepts::Size(4 << 20, 8 * TIB), "", "Memory of this NUMA node; nodes are numbered in the order of the file. Instead of machine.memory."),
    key("machine.quantum", Accepts::Time(1_000, 1_000_000_000), "\"100us\"", "How far a task runs ahead on its own clock through hits before others get their turn. Longer is faster to simulate and coarser in who comes first; 100us is about one device read."),
    key("machine.tlb_entries", Accepts::Integer(0, 65_536), "0", "Translations that a processor holds for an address space, a power of two. An access through one of them leaves no accessed bit, so pages used all the time may look idle: x86 Linux does not flush translations when it clears the bits. 0: every access shows, as with a small cache that is flushed often."),
    key("machine.costs", Accepts::Choice(Costs::PROFILES), "\"xeon-vm\"", "The table of CPU costs. xeon-vm is measured; the others are scaled from it."),

    key("kernel.profile", Accepts::Policy, "\"classic@6.12\"", "Policy and era whose rules apply, a bundle of switches. 6.12 is the long-term kernel whose counters this project is compared with."),


    key("memcg[].path", Accepts::Text, "", "Where the cgroup is, from the root: \"/job/web\". Parents that are not listed exist without limits."),
    key("memcg[].policy", Accepts::Policy, "the kernel's profile", "The reclaim policy of this cgroup alone, as the profile has it: the kernel's single switches do not apply."),

    key("device[].name", Accepts::Text, "", "The name files and swap areas refer to. Without any [[device]] there is one called \"nvme\"."),
    key("device[].preset", Accepts::Choice(DeviceSpec::PRESETS), "\"nvme\"", "The class of device that gives every figure not overridden here. nvme, because most machines have one."),
    key("device[].read_latency", LATENCY, "the preset's", "Median latency of a random read with nothing else queued."),
    key("device[].read_p99", LATENCY, "the preset's", "99th percentile of the same; the tail is lognormal. Equal to the median: no tail."),
    key("device[].write_latency", LATENCY, "the preset's", "Median latency of a write."),
    key("device[].write_p99", LATENCY, "the preset's", "99th percentile of the same."),
    key("device[].sequential_latency", LATENCY, "the preset's", "Latency of a request that begins where the one before ended, on a device that seeks."),
    key("device[].read_bandwidth", Accepts::Bandwidth, "the preset's", "Bytes a second that reads share."),
    key("device[].write_bandwidth", Accepts::Bandwidth, "the preset's", "Bytes a second that writes share."),
    key("device[].queue_depth", Accepts::Integer(1, 65_536), "the preset's", "Requests served at the same time; more wait."),
    key("device[].nr_requests", Accepts::Integer(1, 65_536), "128 (pmem: no limit)", "Requests served and waiting at the same time; whoever submits one more, as reclaim does when it swaps out, sleeps until there is room. The block layer's nr_requests."),
    key("device[].iops", Accepts::Integer(1, 1_000_000_000), "the preset's", "Requests a second that the device can't exceed however deep its queue."),
    key("device[].fail_reads", Accepts::Share, "0", "Share of reads that end in an I/O error, drawn from the seed."),
    key("device[].fail_writes", Accepts::Share, "0", "Share of writes that end in an I/O error, drawn from the seed."),

    key("swap[].size", Accepts::Size(4096, SIZE_MAX), "", "How much the area holds, uncompressed."),
    key("swap[].kind", Accepts::Choice(&["disk", "zram"]), "\"disk\"", "disk waits for a device. zram compresses into memory and is done when the call returns."),
    key("swap[].device", Accepts::NameOf("device"), "the only device", "The device of kind \"disk\"."),

    key("file[].name", Accepts::Text, "", "The name objects refer to."),
    key("file[].size", Accepts::Size(1, SIZE_MAX), "", "Its size; the last page counts whole."),
    key("file[].kind", Accepts::Choice(&["regular", "tmpfs"]), "\"regular\"", "regular lives on a device, tmpfs in memory and swap."),
    key("file[].device", Accepts::NameOf("device"), "the only device", "The device a regular file lives on."),

    key("task[].name", Accepts::Text, "", "The name the result speaks of."),
    key("task[].memcg", Accepts::NameOf("memcg"), "\"/\"", "The cgroup it runs in."),
    key("task[].cpu", Accepts::Integer(0, 4095), "dealt out in turn", "The CPU it is bound to."),
    key("task[].start", TIME, "\"0s\"", "When it starts."),
    key("task[].think_time", Accepts::Time(0, 3_600_000_000_000), "\"0s\"", "Time it computes between two accesses. 0 makes memory the bottleneck."),
    key("task[].copies", Accepts::Integer(1, 10_000), "1", "How many such tasks run: each a process with mappings and random numbers of its own; files are shared."),
    key("task[].loops", Accepts::Integer(1, 4_000_000_000), "1", "How often it runs through its accesses; random ones differ from loop to loop. A large number makes a background task that never ends."),
    key("task[].background", Accepts::Bool, "false", "The run does not wait for this task: it ends when all others have."),
    key("task[].object[].channel", Accepts::Choice(&["file", "mapped", "anonymous", "tmpfs"]), "", "file: read(2) and write(2) of a regular file. mapped: a shared mapping of one. anonymous: private memory. tmpfs: read(2) and write(2) of a tmpfs file."),
    key("task[].object[].file", Accepts::NameOf("file"), "a file of its own", "The [[file]] behind a file, mapped or tmpfs object, when several objects share it."),
    key("task[].object[].size", Accepts::Size(1, SIZE_MAX), "the trace's", "Size of an anonymous mapping or of a file of its own."),
    key("task[].object[].advice", Accepts::Choice(&["normal", "random", "sequential", "noreuse"]), "\"normal\"", "What the task tells the kernel by madvise. random and noreuse keep a mapping's accesses from counting as recent use. For read(2) only sequential matters: pages come in large buffers, which is cheaper a page."),
    key("task[].object[].locked", Accepts::Bool, "false", "Locked by mlock2(MLOCK_ONFAULT): what was touched once stays. For mappings, not for read(2)."),
    key("task[].object[].executable", Accepts::Bool, "false", "A mapping with execute permission, which reclaim spares longer."),
    key("task[].object[].share", Accepts::Integer(1, 1_000_000), "1", "Its part of the task's accesses relative to the task's other objects."),
    key("task[].object[].read_only", Accepts::Bool, "false", "Accesses that would write are made as reads: for traces with writes on files, whose writeback is not modelled yet."),
    key("task[].object[].write_first", Accepts::Bool, "true for anonymous and tmpfs", "The first access to each page is made a write. Programs write their memory before they read it; reading memory that was never written only maps the zero page and takes no memory at all."),
    key("task[].object[].workload", Accepts::Table("access pattern"), "", "Accesses made by a generator: { pattern = \"zipf\", ... }. Either this or a trace."),
    key("task[].object[].trace", Accepts::HostPath, "", "Accesses from a recorded trace; a relative path starts at the scenario file."),
    key("task[].object[].read", Accepts::Table("options of the trace reader"), "{}", "How the trace is read: its format when the name does not tell, whether sizes count."),

    key("event[].at", TIME, "", "When, from the start of the run."),
    key("event[].every", Accepts::Time(1_000, TIME_MAX), "once", "Again after every such period until the run ends."),
    key("event[].write", Accepts::KernelFile, "", "The kernel file to write, as on a running system: \"/sys/fs/cgroup/web/memory.high\". Either this or read. /sys/kernel/mm/lru_gen/min_ttl_ms can be written and has no effect yet: it acts in kswapd."),
    key("event[].value", Accepts::Scalar, "", "What is written; sizes as elsewhere (\"64MiB\")."),
    key("event[].read", Accepts::KernelFile, "", "The kernel file to read: \"/proc/vmstat\"."),
    key("event[].show", Accepts::Texts, "[]", "Of a file that is read, the lines to show in the summary, by their first word; --json has all of it."),

    key("variant[].name", Accepts::Text, "", "What the variant's column is called in `pageout compare`, and expectations call it."),
    key("variant[].set", Accepts::Table("keys and values, as --set takes them"), "{}", "What is different in this variant: { kernel.lru.aging = \"6.12\" }. Lists as in --set: \"memcg./web.memory.max\"."),
    key("expect[].figure", Accepts::Text, "", "A figure of the result, under the name that `pageout compare --all --json` gives it: \"task reader: misses\", \"memcg /web: pgscan\"."),
    key("expect[].holds", Accepts::Table("relation, such as \"old > 2 * new\" or \"new == 0\""), "", "What is true of the figure: variants, numbers, and numbers times variants, compared by < <= == != >= or >. `pageout compare` without --vary checks it."),
    key("expect[].because", Accepts::Text, "\"\"", "Why it should be; shown where it isn't."),
];

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::*;
    use std::collections::BTreeMap;

    /// A scenario with every key in it once.
    const FULL: &str = r#"{
        "question": "q", "look_at": "l", "seed": 2, "until": "1s",
        "machine": {"cpus": 1, "hz": 100, "memory": "1GiB", "node": [{"memory": "1GiB"}], "quantum": "1us", "tlb_entries": 4, "costs": "xeon-vm"},
        "kernel": {"profile": "lru", "folio_batch": 1, "charge_stock": 1, "reclaim_batch": 1, "plug_requests": 1, SWITCHES
            "memcg": {"stat_flush": "live", "stat_flush_phase": "1s", "kernel_memory": true}},
        "sysctl": {"vm.swappiness": 1},
        "memcg": [{"path": "/a", "policy": "lru", "memory": {"max": "max", "high": 0, "low": 0, "min": 0, "swap": {"max": 0}}}],
        "device": [{"name": "d", "preset": "nvme", "read_latency": "1us", "read_p99": "1us", "write_latency": "1us", "write_p99": "1us",
            "sequential_latency": "1us", "read_bandwidth": "1GB/s", "write_bandwidth": "1GB/s", "queue_depth": 1, "nr_requests": 2, "iops": 5,
            "fail_reads": 0.5, "fail_writes": "50%"}],
        "swap": [{"size": "1GiB", "kind": "disk", "device": "d"}],
        "file": [{"name": "f", "size": "1GiB", "kind": "regular", "device": "d"}],
        "task": [{"name": "t", "memcg": "/a", "cpu": 0, "start": "1s", "think_time": "1us", "copies": 2, "loops": 2, "background": true,
            "object": [{"channel": "mapped", "file": "f", "size": "1MiB", "advice": "random", "locked": true, "executable": true,
                "share": 3, "read_only": true, "write_first": true, "workload": {"pattern": "zipf"}, "trace": "t", "read": {"a": 1}}]}],
        "event": [{"at": "1s", "every": "1s", "write": "/proc/sys/vm/swappiness", "value": 1, "read": "/proc/vmstat", "show": ["a"]}],
        "variant": [{"name": "v", "set": {"kernel.profile": "lru"}}],
        "expect": [{"figure": "f", "holds": "v == 1", "because": "b"}]
    }"#;

    /// With every switch of the engine.
    fn full() -> String {
        let mut switches: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for switch in SWITCHES {
            let (seam, name) = switch.name.split_once('.').unwrap();
            switches.entry(seam).or_default().push(format!("\"{name}\": true"));
        }
        let tables: Vec<String> =
            switches.iter().map(|(seam, names)| format!("\"{seam}\": {{{}}},", names.join(", "))).collect();
        FULL.replace("SWITCHES", &tables.concat())
    }

    /// Paths of all values; tables that other crates define count as values.
    fn leaves(value: &serde_json::Value, path: String, into: &mut Vec<String>) {
        let is_foreign = path.ends_with(".workload")
            || path.ends_with(".read") && path.contains("object")
            || path.ends_with(".set");
        match value {
            serde_json::Value::Object(table) if !is_foreign => {
                for (key, value) in table {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    leaves(value, path, into);
                }
            }
            serde_json::Value::Array(items) if items.iter().all(serde_json::Value::is_object) => {
                items.iter().for_each(|item| leaves(item, format!("{path}[]"), into));
            }
            _ => into.push(path),
        }
    }

    #[test]
    fn the_reference_lists_exactly_the_keys_there_are() {
        let full: Scenario = serde_json::from_str(&full()).unwrap();
        let mut written = Vec::new();
        leaves(&serde_json::to_value(&full).unwrap(), String::new(), &mut written);
        let mut listed: Vec<String> = KEYS.iter().map(|key| key.path.to_string()).collect();
        written.sort();
        listed.sort();
        assert_eq!(listed, written);
    }

    #[test]
    fn what_was_read_is_written_and_read_alike() {
        let full: Scenario = serde_json::from_str(&full()).unwrap();
        let again: Scenario = serde_json::from_str(&serde_json::to_string(&full).unwrap()).unwrap();
        assert_eq!(full, again);
    }

    #[test]
    fn an_era_needs_no_quotes() {
        let aging = Key::find("kernel.lru.aging").unwrap().accepts;
        assert_eq!(aging.check(&Scalar::Float(6.16)), Ok(()));
        assert_eq!(aging.check(&Scalar::Text("6.16".into())), Ok(()));
        assert!(aging.check(&Scalar::Float(6.99)).is_err());
    }

    #[test]
    fn limits_are_sizes_percentages_or_none() {
        assert_eq!("max".parse(), Ok(Limit::Max));
        assert_eq!("30%".parse(), Ok(Limit::Percent(30.0)));
        assert_eq!("1MiB".parse(), Ok(Limit::Size(Size(1 << 20))));
        assert!("0%".parse::<Limit>().is_err() && "-5%".parse::<Limit>().is_err());
    }
}
