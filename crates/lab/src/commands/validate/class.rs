//! How close is close enough: the classes of `tolerances.toml`, which class is whose, and what each asks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use serde::Deserialize;

use super::recording::Run;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tolerances {
    /// No limit is tighter than so many events.
    pub(crate) floor: f64,
    class: BTreeMap<String, Limits>,
    run: Vec<Rule>,
}

/// Limits of a class, as fractions of the real count; what is absent isn't judged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// On each counter.
    pub(crate) counters: Option<f64>,
    /// On accesses that hit here and missed there, or the reverse.
    pub(crate) disagreement: Option<f64>,
    /// `same`: the evicted pages and their order.
    pub(crate) victims: Option<Victims>,
    /// On misses, refaults, scanned and stolen pages (of an envelope: of its median run).
    pub(crate) misses: Option<f64>,
    /// On activated, deactivated, refilled and restored pages.
    pub(crate) activity: Option<f64>,
    /// Simulations, what the recording leaves open (the phase of the statistics worker, and more: see `rig`) being spread evenly
    /// over them; counters are judged by their envelope.
    pub(crate) phases: Option<usize>,
    /// How much less than the kernel's repeats with each other the median simulation may agree with the run.
    pub(crate) agreement_slack: Option<f64>,
}

impl Limits {
    /// Those that are set, by their keys.
    fn fractions(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = [
            ("counters", self.counters),
            ("disagreement", self.disagreement),
            ("misses", self.misses),
            ("activity", self.activity),
            ("agreement_slack", self.agreement_slack),
        ];
        all.into_iter().filter_map(|(key, limit)| Some((key, limit?)))
    }
}

/// What is asked of the evicted pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Victims {
    Same,
}

/// The first rule that matches decides.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    workload: String,
    policy: String,
    traced: Option<bool>,
    class: String,
}

/// A run's class.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) limits: Limits,
}

impl Class {
    /// How many simulations it takes.
    pub(crate) fn simulations(&self) -> usize {
        self.limits.phases.unwrap_or(1)
    }
}

impl Tolerances {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Tolerances> {
        let path = dir.join("tolerances.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let tolerances: Tolerances =
            toml_edit::de::from_str(&text).with_context(|| format!("{} is malformed", path.display()))?;
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
            if limits.phases == Some(0) {
                return Err(anyhow!(
                    "{}: class `{name}` asks for no simulation (phases = 0)",
                    path.display()
                ));
            }
        }
        Ok(tolerances)
    }

    pub(crate) fn class_of(&self, run: &Run) -> anyhow::Result<Class> {
        for rule in &self.run {
            if matches(&rule.workload, &run.workload)?
                && matches(&rule.policy, &run.policy)?
                && rule.traced.is_none_or(|traced| traced == run.is_traced())
            {
                return Ok(Class { name: rule.class.clone(), limits: self.class[&rule.class].clone() });
            }
        }
        Err(anyhow!("tolerances.toml has no rule for {}", run.id))
    }
}

fn matches(pattern: &str, name: &str) -> anyhow::Result<bool> {
    let pattern = glob::Pattern::new(pattern);
    Ok(pattern.with_context(|| "tolerances.toml holds a malformed pattern")?.matches(name))
}
