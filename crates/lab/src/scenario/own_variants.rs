//! The variants that a scenario brings along, each as `--set` would make it.

use pageout_sim::scenario::{self, Scenario};

use crate::cli::RunOptions;
use crate::failure::Failure;
use crate::scenario::load::load;
use crate::scenario::nearest::nearest;
use crate::scenario::source::{Setting, Source, written};

/// A scenario and what makes it different.
pub(crate) struct Variant {
    pub(crate) label: String,
    pub(crate) settings: Vec<Setting>,
    pub(crate) scenario: Scenario,
    /// What its failure says, where the scenario knows that it fails.
    pub(crate) fails: Option<String>,
}

/// All variants of `scenario`, which was read from `source`, in its order.
pub(crate) fn all(
    source: &Source,
    options: &RunOptions,
    scenario: &Scenario,
) -> Result<Vec<Variant>, Failure> {
    let variants = scenario.variant.iter().enumerate().map(|(index, variant)| {
        let settings = settings(index, variant);
        let scenario = load(source, options, &settings)?;
        let fails = Some(variant.fails.clone()).filter(|fails| !fails.is_empty());
        Ok(Variant { label: variant.name.clone(), settings, scenario, fails })
    });
    variants.collect()
}

/// The variant called `name`, with `more` settings on top of its own.
pub(crate) fn one(
    source: &Source,
    options: &RunOptions,
    scenario: &Scenario,
    name: &str,
    more: &[Setting],
) -> Result<Scenario, Failure> {
    let found = scenario.variant.iter().enumerate().find(|(_, variant)| variant.name == name);
    let Some((index, variant)) = found else {
        let known: Vec<&str> = scenario.variant.iter().map(|variant| variant.name.as_str()).collect();
        let hint = match (nearest(name, known.iter().copied()), known.is_empty()) {
            (Some(nearest), _) => format!("; did you mean `{nearest}`?"),
            (None, true) => "; it has none at all".to_string(),
            (None, false) => format!("; known: {}", known.join(", ")),
        };
        return Err(Failure::Input(anyhow::anyhow!("the scenario has no [[variant]] called `{name}`{hint}")));
    };
    load(source, options, &[&settings(index, variant)[..], more].concat())
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
