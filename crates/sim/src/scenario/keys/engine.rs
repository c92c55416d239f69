//! The keys that the engine declares: its parameters, the switches of its policies, and the files of a cgroup. A new one of
//! these is a key of a scenario without an edit here.

use pageout_engine::{
    CGROUP_FILES, CgroupFile, Config, Holds, PARAMETERS, Parameter, SWITCHES, Section, Shown, Switch, Values,
};

use super::{Accepts, Key};

/// The keys of `[kernel]` beside the profile: parameters, switches, and the one that the machine adds.
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
        default: "\"0s\"".to_string(),
        meaning: "When the first periodic flush falls after the start. On a running kernel it counts from boot and is any \
                  number below the period of 2.016s."
            .to_string(),
    }
}

fn parameter_keys(section: Section, table: &'static str) -> impl Iterator<Item = Key> {
    PARAMETERS.iter().filter(move |parameter| parameter.section == section).map(move |parameter| {
        let Parameter { name, values, doc, reason, .. } = parameter;
        let default = parameter.get(&Config::default());
        let is_word = matches!(values, Values::Choice(_));
        let path = format!("{table}.{name}");
        let shown = parameter.mechanism.as_ref().and_then(|mechanism| mechanism.shown_by.as_ref());
        let shown = shown.map(|Shown { scenario, variant, value }| {
            let variant = variant.map(|variant| format!(" --variant {variant}")).unwrap_or_default();
            format!(" Shown by scenarios/{scenario} with{variant} --set {path}={value}.")
        });
        Key {
            accepts: accepted(*values),
            default: if is_word { format!("\"{default}\"") } else { default },
            meaning: format!("{doc} {reason}{}", shown.unwrap_or_default()),
            path,
        }
    })
}

fn switch_key(switch: &Switch) -> Key {
    let path = format!("kernel.{}", switch.name);
    let shown = switch
        .shown_by
        .map(|(scenario, value)| format!(" Shown by scenarios/{scenario} with --set {path}={value}."));
    Key {
        accepts: accepted(switch.values),
        default: "as the profile has it".to_string(),
        meaning: switch.doc.to_string() + &shown.unwrap_or_default(),
        path,
    }
}

/// The files of a cgroup that a scenario may set.
pub(in crate::scenario) fn memcg_keys() -> Vec<Key> {
    let settings = CGROUP_FILES.iter().filter_map(|file| match file.holds {
        Holds::Limit(initial) => Some((file, initial, Accepts::Limit)),
        Holds::Switch(initial) => Some((file, initial, Accepts::Integer(0, 1))),
        Holds::Nodes => Some((file, "\"\"", Accepts::Text)),
        _ => None,
    });
    let key = |(file, initial, accepts): (&CgroupFile, &str, Accepts)| Key {
        path: format!("memcg[].{}", file.name),
        accepts,
        default: if initial == "max" { "\"max\"".to_string() } else { initial.to_string() },
        meaning: file.doc.to_string(),
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
