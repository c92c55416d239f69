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
    class: BTreeMap<String, Limits>,
    run: Vec<Rule>,
}

/// Limits of a class, as fractions of the real count; what is absent isn't judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// The limit on each counter.
    pub(crate) counters: Option<f64>,
    /// On accesses that hit here and missed there, or the reverse.
    pub(crate) disagreement: Option<f64>,
    /// `same`: the evicted pages and their order.
    pub(crate) victims: Option<Same>,
    /// On misses, refaults, scanned and stolen pages (of an envelope: of its median run).
    pub(crate) misses: Option<f64>,
    /// On activated, deactivated, refilled and restored pages.
    pub(crate) activity: Option<f64>,
    /// Simulations, what the recording leaves open (the phase of the statistics worker, and more: see `rig`) being spread evenly
    /// over them; counters are judged by their envelope.
    pub(crate) phases: Option<usize>,
    /// Simulations of a run that was recorded once: no range of the kernel's own widens its envelope. `phases` if absent.
    phases_single: Option<usize>,
    /// How much less than the kernel's repeats with each other the median simulation may agree with the run.
    pub(crate) agreement_slack: Option<f64>,
    /// `same`: the pages that each access brings into the page cache, in order.
    pub(crate) insertions: Option<Same>,
    /// `same`: the reads of the device that each access causes.
    pub(crate) requests: Option<Same>,
    /// Runs of a whole machine: a factor on shares of reclaim, counts of stalls and of kswapd's runs, free pages.
    pub(crate) shares: Option<f64>,
    /// Runs of a whole machine: a factor on the time that all tasks lost, to the time that some did.
    pub(crate) pressure: Option<f64>,
    /// Runs with compressed swap: on the key counters, by the family of the run's policy.
    pub(crate) classic: Option<f64>,
    pub(crate) mglru: Option<f64>,
    /// On rotations under the classic LRU, which depend on how fast the disk was.
    pub(crate) pgrotated: Option<f64>,
    /// Runs of memory tiering: on pages that are promoted.
    pub(crate) promoted: Option<f64>,
    /// The limit on hint faults.
    pub(crate) faults: Option<f64>,
    /// Which of `classic` and `mglru` it is, for a run.
    #[serde(skip)]
    pub(crate) swapped: Option<f64>,
    /// Runs that write to files: on pages dirtied, written, met by reclaim and rotated, by the family of the run's policy.
    activity_classic: Option<f64>,
    activity_mglru: Option<f64>,
    /// Which of these two it is, for a run.
    #[serde(skip)]
    pub(crate) dirtied: Option<f64>,
}

impl Limits {
    /// Limits that are set, by their keys.
    fn fractions(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
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
        ];
        all.into_iter().filter_map(|(key, limit)| Some((key, limit?)))
    }
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
        let of_machine = self.limits.shares.map(|_| MACHINES);
        let of_balancing = self.limits.promoted.map(|_| BALANCED);
        let of_compressed = self.limits.swapped.map(|_| COMPRESSED);
        let of_dirtied = self.limits.dirtied.map(|_| DIRTIED);
        let all = [self.limits.phases, of_machine, of_balancing, of_compressed, of_dirtied];
        all.into_iter().flatten().next().unwrap_or(1)
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
                return Err(anyhow!(
                    "{}: a rule names the class `{}`, which isn't there",
                    path.display(),
                    rule.class
                ));
            }
        }
        // Infinite limits would let everything pass, negative ones nothing, and what is not a number compares with nothing.
        let require = |whose: &str, key: &str, limit: f64| {
            if limit.is_finite() && limit >= 0.0 {
                return Ok(());
            }
            Err(anyhow!("{}: {whose}`{key}` is {limit}, and must be a number from 0", path.display()))
        };
        require("", "floor", tolerances.floor)?;
        for (name, limits) in &tolerances.class {
            for (key, limit) in limits.fractions() {
                require(&format!("class `{name}`: "), key, limit)?;
            }
            for (key, phases) in [("phases", limits.phases), ("phases_single", limits.phases_single)] {
                if phases == Some(0) {
                    return Err(anyhow!(
                        "{}: class `{name}` asks for no simulation ({key} = 0)",
                        path.display()
                    ));
                }
            }
            if limits.phases.is_none() && limits.phases_single.is_some() {
                return Err(anyhow!(
                    "{}: class `{name}` has `phases_single`, but no `phases`",
                    path.display()
                ));
            }
        }
        Ok(tolerances)
    }

    pub(crate) fn class_of(&self, recording: &Recording, run: &Run) -> anyhow::Result<Class> {
        for rule in &self.run {
            if rule.workload.matches(&run.workload)
                && rule.policy.matches(&run.policy)
                && rule.rep.as_ref().is_none_or(|rep| rep.matches(&run.rep))
                && rule.traced.is_none_or(|traced| traced == (run.rep == "t"))
            {
                let mut limits = self.class[&rule.class].clone();
                let is_mglru = run.policy.starts_with("mglru");
                limits.swapped = if is_mglru { limits.mglru } else { limits.classic };
                limits.dirtied = if is_mglru { limits.activity_mglru } else { limits.activity_classic };
                limits.misses = limits.misses.or(limits.swapped);
                if !recording.is_repeated(run) {
                    limits.phases = limits.phases_single.or(limits.phases);
                }
                return Ok(Class { name: rule.class.clone(), limits });
            }
        }
        Err(anyhow!("{} has no rule for {}: none of its `[[run]]` matches", self.path.display(), run.id))
    }
}

fn pattern_or_none<'de, D: serde::Deserializer<'de>>(text: D) -> Result<Option<glob::Pattern>, D::Error> {
    pattern(text).map(Some)
}

/// Reads a glob.
fn pattern<'de, D: serde::Deserializer<'de>>(text: D) -> Result<glob::Pattern, D::Error> {
    let text = String::deserialize(text)?;
    glob::Pattern::new(&text).map_err(|error| {
        serde::de::Error::custom(format!("the pattern `{text}` is malformed: {}", error.msg))
    })
}
