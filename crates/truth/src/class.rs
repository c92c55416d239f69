//! Tolerances: the classes of `tolerances.toml`, the runs that belong to each, and how close a class asks a run to be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::Deserialize;

use super::recording::{Recording, Run};

/// The tolerances of a folder of recordings (`tolerances.toml`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tolerances {
    /// For messages.
    #[serde(skip)]
    path: PathBuf,
    /// No limit is tighter than so many events.
    pub(crate) floor: f64,
    class: BTreeMap<String, Keys>,
    run: Vec<Rule>,
}

/// The keys of a class: fractions of the real count, unless they say otherwise. What is absent isn't judged.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Keys {
    /// The limit on each counter.
    counters: Option<f64>,
    /// On accesses that hit here and missed there, or the reverse.
    disagreement: Option<f64>,
    /// `same`: the evicted pages and their order.
    victims: Option<Same>,
    /// On misses, refaults, scanned and stolen pages (of an envelope: of its median run).
    misses: Option<f64>,
    /// On activated, deactivated, refilled and restored pages.
    activity: Option<f64>,
    /// Simulations, what the recording leaves open (the phase of the statistics worker, and more: see `rig`) being spread evenly
    /// over them; counters are judged by their envelope.
    phases: Option<usize>,
    /// Simulations of a run that was recorded once: no range of the kernel's own widens its envelope. `phases` if absent.
    phases_single: Option<usize>,
    /// How much less than the kernel's repeats with each other the median simulation may agree with the run.
    agreement_slack: Option<f64>,
    /// `same`: the pages that each access brings into the page cache, in order.
    insertions: Option<Same>,
    /// `same`: the reads of the device that each access causes.
    requests: Option<Same>,
    /// A factor on shares of reclaim, counts of stalls and of kswapd's runs, free pages.
    shares: Option<f64>,
    /// A factor on the time that all tasks lost, to the time that some did.
    pressure: Option<f64>,
    /// On the key counters of compressed swap, by the family of the run's policy.
    classic: Option<f64>,
    mglru: Option<f64>,
    /// On rotations under the classic LRU, which depend on how fast the disk was.
    pgrotated: Option<f64>,
    /// On pages that are promoted.
    promoted: Option<f64>,
    /// On hint faults.
    faults: Option<f64>,
    /// On pages dirtied, written, met by reclaim and rotated, by the family of the run's policy.
    activity_classic: Option<f64>,
    activity_mglru: Option<f64>,
}

/// A kind of run, what it is called, and the keys by which it is judged.
struct Kind {
    name: &'static str,
    /// Keys that no other kind has.
    own: &'static [&'static str],
    /// Keys that it has in common with others.
    shared: &'static [&'static str],
}

/// The first kind of which a class has an own key is that of the class; the last, if there is none.
const KINDS: [Kind; 6] = [
    Kind { name: "an envelope", own: &["phases", "phases_single", "agreement_slack"], shared: &["misses"] },
    Kind { name: "a whole machine", own: &["shares", "pressure"], shared: &["misses"] },
    Kind { name: "memory tiering", own: &["promoted", "faults"], shared: &[] },
    Kind { name: "compressed swap", own: &["classic", "mglru", "pgrotated"], shared: &["activity"] },
    Kind {
        name: "files that are written",
        own: &["activity_classic", "activity_mglru"],
        shared: &["misses", "activity"],
    },
    Kind {
        name: "a single simulation",
        own: &["counters", "disagreement", "victims", "insertions", "requests"],
        shared: &["misses", "activity"],
    },
];

impl Keys {
    /// Keys that are set, with their numbers; those of `same` have none.
    fn set(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        let fractions = [
            ("counters", self.counters),
            ("disagreement", self.disagreement),
            ("misses", self.misses),
            ("activity", self.activity),
            ("agreement_slack", self.agreement_slack),
            ("shares", self.shares),
            ("pressure", self.pressure),
            ("classic", self.classic),
            ("mglru", self.mglru),
            ("pgrotated", self.pgrotated),
            ("promoted", self.promoted),
            ("faults", self.faults),
            ("activity_classic", self.activity_classic),
            ("activity_mglru", self.activity_mglru),
            ("phases", self.phases.map(|phases| phases as f64)),
            ("phases_single", self.phases_single.map(|phases| phases as f64)),
        ];
        let words = [("victims", self.victims), ("insertions", self.insertions), ("requests", self.requests)];
        let fractions = fractions.into_iter().filter(|(_, limit)| limit.is_some());
        fractions.chain(words.into_iter().filter_map(|(key, same)| same.map(|_| (key, None))))
    }

    fn kind(&self) -> &'static Kind {
        let has_own = |kind: &&Kind| self.set().any(|(key, _)| kind.own.contains(&key));
        KINDS.iter().find(has_own).unwrap_or(&KINDS[KINDS.len() - 1])
    }

    /// Errors: a number that nothing can be compared with, or a key that the class's kind does not read.
    fn check(&self) -> Result<(), String> {
        for (key, limit) in self.set() {
            // Infinite limits would let everything pass, negative ones nothing, and what is not a number compares with nothing.
            if let Some(limit) = limit.filter(|limit| !limit.is_finite() || *limit < 0.0) {
                return Err(format!(": `{key}`: found {limit}, expected a number from 0"));
            }
        }
        for (key, phases) in [("phases", self.phases), ("phases_single", self.phases_single)] {
            if phases == Some(0) {
                return Err(format!(": `{key}`: found 0 simulations, expected 1 or more"));
            }
        }
        if self.phases.is_none() && self.phases_single.is_some() {
            return Err(": `phases_single` needs `phases`".to_string());
        }
        let kind = self.kind();
        let is_read = |key: &str| kind.own.contains(&key) || kind.shared.contains(&key);
        match self.set().find(|(key, _)| !is_read(key)) {
            Some((key, _)) => Err(format!(
                ": `{key}` is not a limit for {}, the kind of a class with one of {}",
                kind.name,
                kind.own.join(", ")
            )),
            None => Ok(()),
        }
    }

    /// What is asked of a run. Errors: the key that is missing, and what is judged by it.
    fn limits(&self, run: &Run, is_repeated: bool) -> Result<Limits, String> {
        let needed = |key: &str, limit: Option<f64>, what: &str| {
            limit.ok_or_else(|| format!("no limit `{key}`, which {what} needs"))
        };
        if run.is_of_balancing() {
            let promoted = needed("promoted", self.promoted, "memory tiering")?;
            let faults = needed("faults", self.faults, "memory tiering")?;
            return Ok(Limits::Tiering(Tiering { promoted, faults }));
        }
        if run.is_of_machine() {
            let shares = needed("shares", self.shares, "a whole machine")?;
            return Ok(Limits::Machine(MachineLimits {
                shares,
                pressure: self.pressure,
                misses: self.misses,
            }));
        }
        let is_mglru = run.policy.starts_with("mglru");
        let (swapped, dirtied) = match is_mglru {
            true => (self.mglru, self.activity_mglru),
            false => (self.classic, self.activity_classic),
        };
        let single = Single {
            misses: self.counters.or(self.misses).or(swapped),
            activity: self.counters.or(self.activity),
            swapped: self.counters.or(swapped),
            rotated: self.counters.or(swapped.and(self.pgrotated)).or(dirtied),
            dirtied,
            others: self.counters,
            disagreement: self.disagreement,
            victims: self.victims,
            insertions: self.insertions,
            requests: self.requests,
        };
        let phases = if is_repeated { self.phases } else { self.phases_single.or(self.phases) };
        Ok(match (phases, swapped, dirtied) {
            (Some(phases), ..) => Limits::Envelope(Envelope {
                phases,
                misses: self.misses,
                agreement_slack: self.agreement_slack,
            }),
            (None, Some(_), _) => Limits::Compressed(single),
            (None, None, Some(_)) => Limits::Dirtied(single),
            (None, None, None) => Limits::Single(single),
        })
    }
}

/// What a class asks of a run, by the run's kind. Fractions are of the real count; of what is `None` nothing is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limits {
    /// It is simulated once.
    Single(Single),
    /// Unrecorded conditions vary over the simulations. Their envelope must contain each real figure.
    Envelope(Envelope),
    /// A whole machine, whose tasks compete.
    Machine(MachineLimits),
    /// Memory tiering.
    Tiering(Tiering),
    /// Pages are compressed on their way to swap.
    Compressed(Single),
    /// Files are written.
    Dirtied(Single),
}

/// Limits on one simulation, or on the median of several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Single {
    /// Misses, refaults, scanned and stolen pages.
    pub(crate) misses: Option<f64>,
    /// Activated, deactivated, refilled and restored pages.
    pub(crate) activity: Option<f64>,
    /// What goes to swap and comes from there.
    pub(crate) swapped: Option<f64>,
    /// Rotated pages.
    pub(crate) rotated: Option<f64>,
    /// Figures of dirty pages.
    pub(crate) dirtied: Option<f64>,
    /// All other counters.
    pub(crate) others: Option<f64>,
    /// Accesses that hit here and missed there, or the reverse.
    pub(crate) disagreement: Option<f64>,
    /// The evicted pages and their order.
    pub(crate) victims: Option<Same>,
    /// The pages that each access brings into the page cache, in order.
    pub(crate) insertions: Option<Same>,
    /// The reads of the device that each access causes.
    pub(crate) requests: Option<Same>,
}

impl Single {
    /// Returns true if no counter may differ.
    pub(crate) fn is_exact(&self) -> bool {
        self.others == Some(0.0)
    }
}

/// Limits on an envelope of simulations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// Simulations.
    phases: usize,
    /// Misses, refaults and stolen pages of the median simulation.
    pub(crate) misses: Option<f64>,
    /// How much less than the kernel's repeats with each other the median simulation may agree with the run.
    pub(crate) agreement_slack: Option<f64>,
}

/// Limits on a whole machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineLimits {
    /// A factor on shares of reclaim, counts of stalls and of kswapd's runs, free pages.
    pub(crate) shares: f64,
    /// A factor on the time that all tasks lost, to the time that some did.
    pub(crate) pressure: Option<f64>,
    /// Misses.
    pub(crate) misses: Option<f64>,
}

/// Limits on memory tiering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiering {
    /// Pages that are promoted.
    pub(crate) promoted: f64,
    /// Hint faults.
    pub(crate) faults: f64,
}

/// What is asked of pages and their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Same {
    Same,
}

/// The first rule that matches decides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(deserialize_with = "pattern")]
    workload: glob::Pattern,
    #[serde(deserialize_with = "pattern")]
    policy: glob::Pattern,
    #[serde(default, deserialize_with = "pattern_or_none")]
    rep: Option<glob::Pattern>,
    /// Short for a `rep` of `t` or not.
    traced: Option<bool>,
    class: String,
}

/// Simulations of a whole machine: what the recording leaves open is spread over them, and the median of each figure is judged.
const MACHINES: usize = 5;

/// Simulations of a run of memory tiering: each threshold that may have been in force, with several phases of its scans.
const BALANCED: usize = 20;

/// Simulations of a run whose pages are compressed on their way to swap: as many as of an envelope.
const COMPRESSED: usize = 16;

/// Simulations of a run that writes to files.
const DIRTIED: usize = 32;

/// The class of a run: which limits it is judged by.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) limits: Limits,
}

impl Class {
    /// How many simulations it takes.
    pub(crate) fn simulations(&self) -> usize {
        match self.limits {
            Limits::Single(_) => 1,
            Limits::Envelope(Envelope { phases, .. }) => phases,
            Limits::Machine(_) => MACHINES,
            Limits::Tiering(_) => BALANCED,
            Limits::Compressed(_) => COMPRESSED,
            Limits::Dirtied(_) => DIRTIED,
        }
    }
}

impl Tolerances {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Tolerances> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut tolerances: Tolerances =
            toml_edit::de::from_str(&text).with_context(|| format!("{} is malformed", path.display()))?;
        tolerances.path = path.to_owned();
        for rule in &tolerances.run {
            if !tolerances.class.contains_key(&rule.class) {
                return Err(anyhow!("{}: unknown class `{}` in a rule", path.display(), rule.class));
            }
        }
        if !tolerances.floor.is_finite() || tolerances.floor < 0.0 {
            return Err(anyhow!(
                "{}: `floor`: found {}, expected a number from 0",
                path.display(),
                tolerances.floor
            ));
        }
        for (name, keys) in &tolerances.class {
            keys.check().map_err(|why| anyhow!("{}: class `{name}`{why}", path.display()))?;
        }
        Ok(tolerances)
    }

    /// The class of a run, or what its class lacks to judge it. Errors: it has none.
    pub(crate) fn class_of(&self, recording: &Recording, run: &Run) -> anyhow::Result<Result<Class, String>> {
        for rule in &self.run {
            if rule.workload.matches(&run.workload)
                && rule.policy.matches(&run.policy)
                && rule.rep.as_ref().is_none_or(|rep| rep.matches(&run.rep))
                && rule.traced.is_none_or(|traced| traced == (run.rep == "t"))
            {
                let name = rule.class.clone();
                let limits = self.class[&name].limits(run, recording.is_repeated(run));
                return Ok(match limits {
                    Ok(limits) => Ok(Class { name, limits }),
                    Err(lacking) => Err(format!("class `{name}` has {lacking}")),
                });
            }
        }
        Err(anyhow!("{}: no rule for {}: no `[[run]]` matches", self.path.display(), run.id))
    }
}

fn pattern_or_none<'de, D: serde::Deserializer<'de>>(text: D) -> Result<Option<glob::Pattern>, D::Error> {
    pattern(text).map(Some)
}

/// Reads a glob.
fn pattern<'de, D: serde::Deserializer<'de>>(text: D) -> Result<glob::Pattern, D::Error> {
    let text = String::deserialize(text)?;
    glob::Pattern::new(&text)
        .map_err(|error| serde::de::Error::custom(format!("invalid pattern `{text}`: {}", error.msg)))
}

#[cfg(test)]
mod tests {
    use super::Keys;

    fn check(keys: &str) -> Result<(), String> {
        toml_edit::de::from_str::<Keys>(keys).unwrap().check()
    }

    #[test]
    fn class_with_keys_of_one_kind_is_taken() {
        for keys in [
            "counters = 0.0\nvictims = 'same'\nmisses = 0.1",
            "phases = 2\nphases_single = 3\nmisses = 0.1",
            "shares = 1.5\npressure = 2\nmisses = 0.1",
            "promoted = 0.1\nfaults = 0.2",
            "classic = 0.1\nmglru = 0.2\npgrotated = 0.3",
            "activity_classic = 0.1\nmisses = 0.2",
        ] {
            assert_eq!(check(keys), Ok(()), "{keys}");
        }
    }

    #[test]
    fn key_that_the_kind_does_not_read_is_refused() {
        for (keys, unread) in [
            ("phases = 2\nshares = 1.5", "`shares` is not a limit for an envelope"),
            ("shares = 1.5\ninsertions = 'same'", "`insertions` is not a limit for a whole machine"),
            ("promoted = 0.1\nfaults = 0.2\nmisses = 0.1", "`misses` is not a limit for memory tiering"),
            ("classic = 0.1\ncounters = 0.1", "`counters` is not a limit for compressed swap"),
        ] {
            let refused = check(keys).unwrap_err();
            assert!(refused.contains(unread), "{keys}: {refused}");
        }
    }
}
