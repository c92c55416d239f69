//! What each rule was in a version of the kernel, and how that is known.

use pageout_engine::{
    Config, Era, Held, Kernel, Lists, PARAMETERS, SWITCHES, UNMODELLED, Unmodelled, Version, between_trees,
    held,
};
use serde_json::{Value, json};

/// A rule in a version.
pub struct Row {
    /// Its name below `kernel`.
    pub name: &'static str,
    /// All that is known of it, over all versions.
    pub eras: &'static [Era],
    /// The knowledge about it in that version.
    pub held: Held,
    /// The value that the simulator takes, whatever is known.
    pub taken: String,
}

/// Every rule and parameter that has eras.
pub fn rows(kernel: Kernel) -> Vec<Row> {
    let policy = kernel.policy();
    let switches = SWITCHES.iter().map(|switch| Row {
        name: switch.name,
        eras: switch.eras,
        held: switch.held(kernel.version, kernel.lists),
        taken: switch.get(&policy),
    });
    let others = kernel.parameters();
    let default = Config::default();
    let parameters = PARAMETERS.iter().filter(|parameter| !parameter.eras.is_empty());
    let parameters = parameters.map(|parameter| Row {
        name: parameter.name,
        eras: parameter.eras,
        held: held(parameter.eras, kernel.version, kernel.lists),
        taken: others
            .iter()
            .find(|(name, _)| *name == parameter.name)
            .map_or_else(|| parameter.get(&default), |(_, value)| (*value).to_string()),
    });
    switches.chain(parameters).collect()
}

/// Returns the behaviours of that version that a run with its rules lacks.
pub fn unmodelled(kernel: Kernel) -> impl Iterator<Item = &'static Unmodelled> {
    UNMODELLED.iter().filter(move |row| row.holds(kernel.version, kernel.lists))
}

impl Row {
    /// Its key in a scenario.
    pub fn key(&self) -> String {
        let is_sysctl = self.name.starts_with("vm.");
        format!("{}.{}", if is_sysctl { "sysctl" } else { "kernel" }, self.name)
    }

    /// Returns the source of its value in its version.
    pub fn how(&self, version: Version) -> String {
        match self.held {
            Held::Value(_, known) => {
                let era = self.eras.iter().find(|era| era.value == self.taken && era.covers(version));
                let span = era.map(Era::span).filter(|span| span != "..");
                span.map_or_else(|| known.name().to_string(), |span| format!("{}, {span}", known.name()))
            }
            Held::NotKnown { before: Some(before), next } => {
                format!("not known between {before} and {next}; treated as {next}")
            }
            Held::NotKnown { before: None, next } => format!("not known; treated as {next}, which is later"),
            Held::Rests(_) => "unused: no rule of this version reads it".to_string(),
        }
    }

    /// All of it.
    pub fn json(&self, version: Version) -> Value {
        let (known, before, next) = match self.held {
            Held::Value(_, known) => (known.name(), None, None),
            Held::NotKnown { before, next } => ("not known", before, Some(next)),
            Held::Rests(_) => ("rests", None, None),
        };
        json!({
            "key": self.key(),
            "value": self.taken,
            "known": known,
            "before": before,
            "next": next,
            "how": self.how(version),
            "eras": self.eras.iter().map(|era| json!({
                "value": era.value,
                "lists": era.lists.map(Lists::name),
                "versions": era.span(),
            })).collect::<Vec<Value>>(),
        })
    }
}

/// Returns a sentence about the nearest version whose sources were read.
pub fn read_near(version: Version) -> String {
    match between_trees(version) {
        (Some(tree), _) if tree.series() == version.series() => format!("The source of {tree} was read."),
        (Some(before), Some(after)) => {
            format!("Between {before} and {after}, the nearest versions whose sources were read.")
        }
        (None, Some(after)) => format!("Before {after}, the first version whose source was read."),
        (Some(before), None) => format!("After {before}, the last version whose source was read."),
        (None, None) => String::new(),
    }
}
