//! The keys that the engine declares: its parameters, the switches of its policies, and the files of a cgroup. A new one of
//! these is a key of a scenario without an edit here.

use pageout_engine::{
    CGROUP_FILES, CgroupFile, Config, Holds, PARAMETERS, Parameter, SWITCHES, Section, Shown, Switch, Values,
};

use super::{Accepts, Key};
use crate::scenario::Scale;

/// The keys of `[kernel]` except the profile: parameters, switches, and the one that the machine adds.
pub(in crate::scenario) fn kernel_keys() -> Vec<Key> {
    let (memcg, mut keys): (Vec<Key>, Vec<Key>) =
        parameter_keys(Section::Kernel, "kernel").partition(|key| key.path.starts_with("kernel.memcg."));
    keys.extend(SWITCHES.iter().map(switch_key));
    for key in memcg {
        let is_flush = key.path == "kernel.memcg.stat_flush";
        keys.push(key);
        if is_flush {
            keys.push(stat_flush_phase());
        }
    }
    keys
}

/// The keys of `[sysctl]`.
pub(in crate::scenario) fn sysctl_keys() -> Vec<Key> {
    parameter_keys(Section::Sysctl, "sysctl").collect()
}

/// The range of a parameter that a table of the scenario has a field for.
pub(in crate::scenario) fn range_of(parameter: &str) -> Accepts {
    let parameter =
        Parameter::by_name(parameter).expect("the field is named after a parameter of the engine");
    accepted(parameter.values)
}

/// The machine flushes, so the engine has no parameter for when.
fn stat_flush_phase() -> Key {
    Key {
        path: "kernel.memcg.stat_flush_phase".to_string(),
        accepts: Accepts::Time(0, 3_000_000_000),
        scale: Scale::Same,
        default: "\"0s\"".to_string(),
        meaning: "Time of the first periodic flush. On a running kernel the period of 2.016s counts from boot, so any value below it can occur."
            .to_string(),
        versions: Vec::new(),
    }
}

/// Treatment of parameters that count memory. An amount in a scenario counts the scenario's own memory; batches and windows are the kernel's,
/// whatever the memory.
const OF_MEMORY: &[(&str, Scale)] = &[
    ("sched.numa_balancing.scan_size_mb", Scale::Twice),
    ("kernel.numa_balancing_promote_rate_limit_MBps", Scale::Twice),
    ("vm.min_free_kbytes", Scale::Twice),
    ("damon_reclaim.quota_sz", Scale::Twice),
    ("vm.dirty_bytes", Scale::Twice),
    ("vm.dirty_background_bytes", Scale::Twice),
    // What one load brings in, as readahead is what one read does.
    ("fault_around_bytes", Scale::Same),
    // A system call, whose size stays.
    ("numa.pagecache_promote_pages_per_work", Scale::Same),
    // A huge page has 512 pages at any scale.
    ("khugepaged.max_ptes_none", Scale::Same),
    ("charge_stock", Scale::Same),
    ("folio_batch", Scale::Same),
    ("reclaim_batch", Scale::Same),
    ("pghot.kmigrated_batch_nr", Scale::Same),
    ("pghot.klruscand_buffer", Scale::Same),
];

/// Units that count no memory: what is in one of them stays.
const NO_MEMORY: &[&str] = &[
    "",
    "%",
    "1/10000",
    "1/1000",
    "1/100 s",
    "us",
    "ms",
    "s",
    "bits",
    "CPUs",
    "ticks a second",
    "translations",
    "requests",
];

/// Treatment of a parameter.
const fn scale_of(parameter: &Parameter) -> Option<Scale> {
    let mut at = 0;
    while at < OF_MEMORY.len() {
        if is_same(OF_MEMORY[at].0, parameter.name) {
            return Some(OF_MEMORY[at].1);
        }
        at += 1;
    }
    let mut at = 0;
    while at < NO_MEMORY.len() {
        if is_same(NO_MEMORY[at], parameter.unit) {
            return Some(Scale::Same);
        }
        at += 1;
    }
    None
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

// A parameter that counts memory and is in no row above does not compile.
const _: () = {
    let mut at = 0;
    while at < PARAMETERS.len() {
        assert!(scale_of(&PARAMETERS[at]).is_some(), "a parameter counts memory: give it a row in OF_MEMORY");
        at += 1;
    }
};

fn parameter_keys(section: Section, table: &'static str) -> impl Iterator<Item = Key> {
    PARAMETERS.iter().filter(move |parameter| parameter.section == section).map(move |parameter| {
        let Parameter { name, values, doc, reason, .. } = parameter;
        let default = parameter.get(&Config::default());
        let is_word = matches!(values, Values::Choice(_));
        let path = format!("{table}.{name}");
        let shown = parameter.mechanism.as_ref().and_then(|mechanism| mechanism.shown_by.as_ref());
        let shown = shown.map(|Shown { scenario, variant, value }| {
            let variant = variant.map(|variant| format!(" --variant {variant}")).unwrap_or_default();
            format!(" Shown by `pageout run scenarios/{scenario}{variant} --set {path}={value}`.")
        });
        Key {
            accepts: accepted(*values),
            scale: scale_of(parameter).expect("a parameter without one does not compile"),
            default: if is_word { format!("\"{default}\"") } else { default },
            meaning: format!("{doc} {reason}{}", shown.unwrap_or_default()),
            versions: parameter.history().iter().map(ToString::to_string).collect(),
            path,
        }
    })
}

fn switch_key(switch: &Switch) -> Key {
    let path = format!("kernel.{}", switch.name);
    let shown = switch.shown_by.map(|(scenario, value)| {
        format!(" Shown by `pageout run scenarios/{scenario} --set {path}={value}`.")
    });
    Key {
        accepts: accepted(switch.values),
        // A rule is the same whatever the memory.
        scale: Scale::Same,
        default: "that of the profile".to_string(),
        meaning: switch.doc.to_string() + &shown.unwrap_or_default(),
        versions: switch.history().iter().map(ToString::to_string).collect(),
        path,
    }
}

/// The files of a cgroup that a scenario may set.
pub(in crate::scenario) fn memcg_keys() -> Vec<Key> {
    let settings = CGROUP_FILES.iter().filter_map(|file| match file.holds {
        Holds::Limit(initial) => Some((file, initial, Accepts::Limit, Scale::Twice)),
        Holds::Switch(initial) => Some((file, initial, Accepts::Integer(0, 1), Scale::Same)),
        Holds::Nodes => Some((file, "\"\"", Accepts::Text, Scale::Same)),
        _ => None,
    });
    let key = |(file, initial, accepts, scale): (&CgroupFile, &str, Accepts, Scale)| Key {
        path: format!("memcg[].{}", file.name),
        accepts,
        scale,
        default: if initial == "max" { "\"max\"".to_string() } else { initial.to_string() },
        meaning: file.doc.to_string(),
        versions: Vec::new(),
    };
    settings.map(key).collect()
}

fn accepted(values: Values) -> Accepts {
    match values {
        Values::Bool => Accepts::Bool,
        Values::Choice(words) => Accepts::Choice(words),
        Values::Number(least, most) => Accepts::Integer(least.into(), most.into()),
    }
}
