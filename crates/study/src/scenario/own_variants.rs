//! The variants of a scenario file, each as a list of `--set` settings.

use pageout_sim::scenario::{self, Scenario};

use super::load::{Changes, load};
use super::nearest::nearest;
use super::source::{Setting, Source, written};
use crate::Watcher;
use crate::error::Error;

/// A scenario and what makes it different.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The name.
    pub label: String,
    /// The settings that differ.
    pub settings: Vec<Setting>,
    /// The scenario with that.
    pub scenario: Scenario,
    /// The text of its failure, if the scenario expects that it fails.
    pub fails: Option<String>,
}

/// All variants of `scenario`, which was read from `source`, in its order. Errors: as of [`load`].
pub fn all(
    source: &Source,
    changes: &Changes,
    scenario: &Scenario,
    watcher: &dyn Watcher,
) -> Result<Vec<Variant>, Error> {
    let variants = scenario.variant.iter().enumerate().map(|(index, variant)| {
        let settings = settings(index, variant);
        let scenario = load(source, changes, &settings, watcher)?;
        let fails = Some(variant.fails.clone()).filter(|fails| !fails.is_empty());
        Ok(Variant { label: variant.name.clone(), settings, scenario, fails })
    });
    variants.collect()
}

/// The variant called `name`, with `more` settings on top of its own. Errors: there is none of that name, and as of [`load`].
pub fn one(
    source: &Source,
    changes: &Changes,
    scenario: &Scenario,
    name: &str,
    more: &[Setting],
    watcher: &dyn Watcher,
) -> Result<Scenario, Error> {
    let found = scenario.variant.iter().enumerate().find(|(_, variant)| variant.name == name);
    let Some((index, variant)) = found else {
        let known: Vec<&str> = scenario.variant.iter().map(|variant| variant.name.as_str()).collect();
        let hint = match (nearest(name, known.iter().copied()), known.is_empty()) {
            (Some(nearest), _) => format!("\nhelp: did you mean `{nearest}`?"),
            (None, true) => "; it has no [[variant]]\nhelp: remove --variant, or add a [[variant]] with this name to the file".to_string(),
            (None, false) => format!("\nhelp: known: {}", known.join(", ")),
        };
        return Err(Error::Asked(format!("the scenario has no [[variant]] `{name}`{hint}")));
    };
    load(source, changes, &[&settings(index, variant)[..], more].concat(), watcher)
}

fn settings(index: usize, variant: &scenario::Variant) -> Vec<Setting> {
    let setting = |(key, value): (&str, &scenario::Scalar)| Setting {
        key: key.to_string(),
        value: written(value),
        option: "[[variant]] set",
        written_at: Some(format!("variant[{index}].set.{key}")),
    };
    variant.set.iter().map(setting).collect()
}
