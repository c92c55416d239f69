//! Every key of a scenario: what it means, in which unit, what it accepts, what it is when absent and why.
//!
//! A key is declared next to its table (`section.rs`), or by the engine or the workload library (`keys/engine.rs`, `keys/workload.rs`). This module
//! collects the keys for four readers. The checks use them, and messages list allowed values. The command line prints them as reference, and the
//! tests try the ends of every range.
//!
//! `[]` stands for an element of a list: `memcg[].memory.max` is the key `memory.max` of any `[[memcg]]`.

mod engine; // keys that the engine declares
/// The keys of tables that the workload crate defines.
mod workload;

use std::fmt;
use std::sync::LazyLock;

pub(super) use engine::{kernel_keys, memcg_keys, range_of, sysctl_keys};
pub use workload::WORKLOAD_KEYS;

use super::compressed::Deciles;
use pageout_engine::{Kernel, Values, Version};

use super::{Bandwidth, Scalar, Scale, Scenario, Section, Share, Size, TimeSpan};

/// The values that a key accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Accepts {
    /// The key takes any text.
    Text,
    /// A text that something else defines: a task names a cgroup, a file names a device.
    NameOf(&'static str),
    /// The path of a kernel file.
    KernelFile,
    /// A kernel file, and what it has to show.
    Condition,
    /// A path in the file system of the user.
    HostPath,
    /// A list of texts.
    Texts,
    /// A list of whole numbers, whose ranges others check.
    Numbers,
    /// The key takes `true` or `false`.
    Bool,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// The name of a reclaim policy of the engine: of a profile, or of a version with its lists.
    Policy,
    /// A version of the kernel.
    Version,
    /// The key takes a whole number within these limits.
    Integer(i64, i64),
    /// A number that may have a fraction.
    Number(f64, f64),
    /// A size in this range of bytes.
    Size(u64, u64),
    /// A size, a percentage of the distinct pages that the cgroup's tasks can touch, or `max`.
    Limit,
    /// A duration in this range of nanoseconds.
    Time(u64, u64),
    /// The key takes bytes a second.
    Bandwidth,
    /// A number between 0 and 1, or a percentage.
    Share,
    /// Lengths of compressed pages.
    Deciles,
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
            (Accepts::Version, Scalar::Text(_)) => {
                let text = value.to_string();
                match Version::parse(&text) {
                    Some(_) => Ok(()),
                    None => Err(format!("`{text}` is not a known kernel version")),
                }
            }
            // `6.12` and `12` without quotes are numbers to TOML, and names here.
            (
                Accepts::Choice(_) | Accepts::Policy,
                Scalar::Text(_) | Scalar::Float(_) | Scalar::Integer(_),
            ) => {
                let text = value.to_string();
                if self == Accepts::Policy && !self.words().contains(&text) {
                    return match pageout_engine::Policy::by_name(&text) {
                        Some(_) => Ok(()),
                        None => Err(Kernel::why_not(&text)
                            .unwrap_or_else(|| format!("`{text}` is none of the allowed values"))),
                    };
                }
                if self.words().contains(&text) {
                    return Ok(());
                }
                let now = if let Accepts::Choice(words) = self {
                    Values::Choice(words).renamed(&text)
                } else {
                    None
                };
                Err(match now {
                    Some(now) => format!("`{text}` is called {now}"),
                    None => format!("`{text}` is none of the allowed values"),
                })
            }
            (Accepts::Integer(min, max), Scalar::Integer(number)) => {
                in_range(*number, min, max, |n| n.to_string())
            }
            (Accepts::Number(min, max), Scalar::Float(number)) if !number.is_nan() => {
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
                Accepts::Text
                | Accepts::NameOf(_)
                | Accepts::KernelFile
                | Accepts::Condition
                | Accepts::HostPath,
                Scalar::Text(_),
            ) => Ok(()),
            (Accepts::Bandwidth, _) => {
                let rate: Bandwidth = value.to_string().parse().map_err(|error| format!("{error}"))?;
                in_range(rate.0, 1, u64::MAX, |bytes| Bandwidth(bytes).to_string())
            }
            (Accepts::Share, _) => {
                value.to_string().parse::<Share>().map(|_| ()).map_err(|error| error.to_string())
            }
            (Accepts::Deciles, _) => value.to_string().parse::<Deciles>().map(|_| ()),
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
        Err(format!("{} is too small: the minimum is {}", show(value), show(min)))
    } else if value > max {
        Err(format!("{} is too large: the maximum is {}", show(value), show(max)))
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
            Accepts::Condition => f.write_str("condition on a kernel file"),
            Accepts::HostPath => f.write_str("path of a file"),
            Accepts::Texts => f.write_str("list of texts"),
            Accepts::Numbers => f.write_str("list of numbers"),
            Accepts::Policy => write!(f, "{} | classic@VERSION | mglru@VERSION", self.words().join(" | ")),
            Accepts::Version => f.write_str(
                "kernel version in quotes: 2.6.35 to 7.3, as 6.12.117, or as 6.12 for the newest of a series",
            ),
            Accepts::Bool | Accepts::Choice(_) => f.write_str(&self.words().join(" | ")),
            Accepts::Integer(min, i64::MAX) => write!(f, "number from {min}"),
            Accepts::Integer(min, max) => write!(f, "number from {min} to {max}"),
            Accepts::Number(min, max) => write!(f, "number from {min} to {max}"),
            Accepts::Size(min, max) => write!(f, "size from {} to {}", Size(min), Size(max)),
            Accepts::Limit => f.write_str(
                "size, percentage of the distinct pages that the cgroup's tasks can access, or \"max\"",
            ),
            Accepts::Time(0, max) => write!(f, "duration up to {}", TimeSpan(max)),
            Accepts::Time(min, max) => write!(f, "duration from {} to {}", TimeSpan(min), TimeSpan(max)),
            Accepts::Bandwidth => f.write_str("bandwidth from 1B/s, such as \"3.5GB/s\""),
            Accepts::Share => f.write_str("share from 0 to 1, such as 0.001 or \"0.1%\""),
            Accepts::Deciles => f.write_str("eleven lengths from 1 to 4096, separated by blanks"),
            Accepts::Table(what) | Accepts::Range(what) => f.write_str(what),
            Accepts::Scalar => f.write_str("number or text, in the format of the file"),
        }
    }
}

/// A value of a `memory.*` limit or protection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// So many bytes.
    Size(Size),
    /// So many percent of the distinct pages that the tasks in the cgroup can touch.
    Percent(f64),
    /// No limit: `max`.
    Max,
}

impl Limit {
    /// The limit in whole pages, where a percentage is of `distinct_pages`; `None` if there is none.
    pub fn pages(self, distinct_pages: u64) -> Option<u64> {
        match self {
            Limit::Size(size) => Some(size.pages_floor()),
            Limit::Percent(percent) => Some((distinct_pages as f64 * percent / 100.0).round() as u64),
            Limit::Max => None,
        }
    }
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        if text == "max" {
            return Ok(Limit::Max);
        }
        if let Some(number) = text.trim().strip_suffix('%') {
            return match number.trim().parse::<f64>() {
                Ok(percent) if percent > 10_000.0 => Err(format!("`{text}` is more than 10000%")),
                Ok(percent) if percent > 0.0 => Ok(Limit::Percent(percent)),
                _ => Err(format!("`{text}` is not a percentage above 0")),
            };
        }
        text.parse().map(Limit::Size).map_err(|error| error.to_string())
    }
}

/// A key of a scenario: path, what it accepts, default, meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The key's path, with `[]` for list elements.
    pub path: String,
    /// The values that the key accepts.
    pub accepts: Accepts,
    /// Treatment of the key's value in a machine whose pages stand for half as many.
    pub scale: Scale,
    /// The key's value when it is absent; empty when it must be given.
    pub default: String,
    /// The key's meaning, and the reason of its default.
    pub meaning: String,
    /// The value in each span of versions of the kernel, one line per span; empty for a key without eras.
    pub versions: Vec<String>,
}

impl Key {
    /// The key of this path, list indices ignored: `task[3].object[0].size`.
    pub fn find(path: &str) -> Option<&'static Key> {
        let general = without_indices(path);
        KEYS.iter().find(|key| key.path == general)
    }

    /// Advice for where the key is missing: its name, the values that it accepts, and its meaning.
    pub fn advice(&self) -> String {
        let name = self.path.rsplit('.').next().expect("a split has a part");
        format!("`{name}` ({}): {}", self.accepts, self.meaning)
    }

    /// Returns other places of keys of this name, or below it: `sysctl.vm` for `vm`, `sysctl.vm.swappiness` for `swappiness`. Nothing where it is
    /// a name of too many to be of help.
    pub fn elsewhere(name: &str) -> Vec<String> {
        const MOST: usize = 3;
        let (middle, end) = (format!(".{name}."), format!(".{name}"));
        let mut places: Vec<String> = Vec::new();
        for key in KEYS.iter() {
            let at = key.path.find(&middle).or_else(|| key.path.strip_suffix(&end).map(str::len));
            let place = at.map(|at| key.path[..at + end.len()].to_owned());
            places.extend(place.filter(|place| !places.contains(place)));
        }
        if places.len() > MOST { Vec::new() } else { places }
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

/// All keys in the order a scenario is written.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    Scenario::rows("", &mut keys);
    keys
});

/// What the engine has tables for.
pub(super) const SIZE_MAX: u64 = 4 << 40;
/// The statistics of a machine are flushed every two seconds, idle or not: more is hours of nothing to simulate.
pub(super) const TIME_MAX: u64 = 10_000 * 3_600_000_000_000;
pub(super) const TIME: Accepts = Accepts::Time(0, TIME_MAX);
pub(super) const LATENCY: Accepts = Accepts::Time(1, 60_000_000_000);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Something that the key takes and that is not left out of what is written.
    fn sample(key: &Key) -> Value {
        match key.accepts {
            Accepts::Bool => json!(key.default != "true"),
            Accepts::Choice(words) => json!(words.last()),
            Accepts::Policy => json!("lru"),
            Accepts::Version => json!("6.8"),
            // Not the least, which often is the default that need not be written.
            Accepts::Integer(min, max) => json!(max.min(min + 1)),
            Accepts::Size(min, _) => json!(min),
            Accepts::Time(min, _) => json!(TimeSpan(min).to_string()),
            Accepts::Number(min, max) => json!(f64::midpoint(min, max.min(min + 1.0))),
            Accepts::Limit => json!("max"),
            Accepts::Bandwidth => json!("1GB/s"),
            Accepts::Share => json!("50%"),
            Accepts::Deciles => json!("1 2 3 4 5 6 7 8 9 10 11"),
            Accepts::Texts => json!(["a"]),
            Accepts::Numbers => json!([1]),
            Accepts::Condition => json!("memory.current > 95%"),
            Accepts::Table(_) if key.path == "expect[].holds" => json!("v == 1"),
            Accepts::Table(_) => json!({ "a": 1 }),
            Accepts::Text
            | Accepts::NameOf(_)
            | Accepts::KernelFile
            | Accepts::HostPath
            | Accepts::Scalar
            | Accepts::Range(_) => json!("a"),
        }
    }

    /// Puts a value where its path says; `[]` is the one element of a list.
    fn put(into: &mut Value, path: &str, value: Value) {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let place = match first.strip_suffix("[]") {
            Some(list) => {
                if into[list].is_null() {
                    into[list] = json!([{}]);
                }
                &mut into[list][0]
            }
            None => &mut into[first],
        };
        match rest {
            Some(rest) => put(place, rest, value),
            None => *place = value,
        }
    }

    /// A scenario with every key of the reference in it once.
    fn full() -> Scenario {
        let mut full = json!({});
        for key in KEYS.iter() {
            put(&mut full, &key.path, sample(key));
        }
        serde_json::from_value(full).unwrap()
    }

    /// All values and their paths; tables that other crates define count as values.
    fn leaves(value: &Value, path: String, into: &mut Vec<(String, Value)>) {
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
            _ => into.push((path, value.clone())),
        }
    }

    fn values(scenario: &Scenario) -> Vec<(String, Value)> {
        let mut values = Vec::new();
        leaves(&serde_json::to_value(scenario).unwrap(), String::new(), &mut values);
        values
    }

    #[test]
    fn every_key_of_the_reference_is_read_and_written_where_it_stands() {
        let mut written: Vec<String> = values(&full()).into_iter().map(|(path, _)| path).collect();
        let mut listed: Vec<String> = KEYS.iter().map(|key| key.path.clone()).collect();
        written.sort();
        listed.sort();
        assert_eq!(listed, written);
    }

    #[test]
    fn what_a_key_says_of_half_the_scale_is_what_becomes_of_it() {
        let mut whole = full();
        // Half of it is written, too.
        whole.machine.page_stands_for = 8;
        let mut halved = whole.clone();
        halved.halve("", &mut super::super::scale::Halving::default());
        let amount = |value: &Value| -> u64 {
            let text = value.as_str().map_or(value.to_string(), str::to_string);
            text.parse::<Size>()
                .map(|size| size.0)
                .or(text.parse::<TimeSpan>().map(|time| time.0))
                .unwrap_or(0)
        };
        let mut doubled = 0;
        for ((path, before), (of, after)) in values(&whole).into_iter().zip(values(&halved)) {
            assert_eq!(path, of);
            match Key::find(&path).unwrap().scale {
                Scale::Twice => {
                    doubled += u32::from(amount(&before) > 0);
                    assert_eq!(amount(&after), 2 * amount(&before), "{path}: {before} {after}");
                }
                Scale::Half => assert_eq!(2 * amount(&after), amount(&before), "{path}: {before} {after}"),
                _ => assert_eq!(after, before, "{path}"),
            }
        }
        assert!(doubled > 15, "{doubled} keys have an amount to double");
    }

    #[test]
    fn what_was_read_is_written_and_read_alike() {
        let again: Scenario = serde_json::from_str(&serde_json::to_string(&full()).unwrap()).unwrap();
        assert_eq!(full(), again);
    }

    /// Something of everything, with too little memory; nothing in it that has a default.
    fn small() -> Value {
        json!({
            "memcg": [{ "path": "/a" }, { "path": "/a/b", "memory.max": "60 pages" }],
            "device": [{ "name": "d" }],
            "swap": [{ "size": "1MiB" }],
            "file": [{ "name": "f", "size": "100 pages" }],
            "task": [{ "name": "t", "object": [
                { "channel": "file", "file": "f", "workload": { "pattern": "zipf", "ops": 500 } },
                { "channel": "anonymous", "size": "100 pages", "workload": { "pattern": "uniform", "ops": 500 } },
            ] }, { "name": "u", "memcg": "/a/b", "object": [
                { "channel": "file", "size": "100 pages", "workload": { "pattern": "uniform", "ops": 500 } },
                { "channel": "anonymous", "size": "30 pages", "workload": { "pattern": "uniform", "ops": 500 } },
            ] }],
            "event": [{ "at": "1ms", "read": "/proc/vmstat" }],
            "variant": [{ "name": "v" }],
            "expect": [{ "figure": "f", "holds": "v == 1" }],
        })
    }

    #[test]
    fn what_the_reference_calls_the_default_is_what_a_key_is_when_absent() {
        let report = |scenario: &Scenario| {
            let mut machine = scenario.build().unwrap();
            machine.run(&mut ()).unwrap();
            machine.report()
        };
        let absent: Scenario = serde_json::from_value(small()).unwrap();
        let expected = report(&absent);
        let mut compared = 0;
        // A node or a kdamond changes the run by being there.
        let is_alone =
            |key: &&Key| !["machine.node[].", "damon[]."].iter().any(|of| key.path.starts_with(of));
        for key in KEYS.iter().filter(is_alone) {
            // Others are words about where a default comes from.
            let Ok(default) = serde_json::from_str::<Value>(&key.default) else { continue };
            let mut with = small();
            put(&mut with, &key.path, default);
            if key.path == "memcg[].memory.soft_limit_in_bytes" {
                // Nothing else in it asks for the version.
                put(&mut with, "kernel.memcg.cgroup_version", json!(1));
            }
            let with: Scenario = serde_json::from_value(with).unwrap();
            assert!(with == absent || report(&with) == expected, "{} = {}", key.path, key.default);
            compared += 1;
        }
        assert!(compared > 30, "{compared} defaults");
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
