//! `pageout keys --at VERSION`: what each rule was in a version of the kernel, and how that is known.

use pageout_engine::{
    Era, GENERATIONS_SINCE, Held, Kernel, Lists, PARAMETERS, SWITCHES, Version, between_trees, held,
};
use serde_json::{Value, json};

use crate::cli::OutputOptions;
use crate::failure::{Failure, Outcome};
use crate::print::{output, table};

/// A rule in that version.
pub(crate) struct Row {
    /// Its key below `kernel`.
    pub(crate) name: &'static str,
    pub(crate) eras: &'static [Era],
    pub(crate) held: Held,
    /// The value that the simulator takes, whatever is known.
    pub(crate) taken: String,
}

/// Every rule and parameter that has eras.
pub(crate) fn rows(kernel: Kernel) -> Vec<Row> {
    let policy = kernel.policy();
    let switches = SWITCHES.iter().map(|switch| Row {
        name: switch.name,
        eras: switch.eras,
        held: switch.held(kernel.version, kernel.lists),
        taken: switch.get(&policy),
    });
    let others = kernel.parameters();
    let default = pageout_engine::Config::default();
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

/// Prints the rules whose key contains `wanted`.
pub(super) fn print(
    version: Version,
    lists: Option<Lists>,
    wanted: &str,
    options: &OutputOptions,
) -> Outcome {
    let kernel = Kernel { version, lists: lists.unwrap_or(Lists::Classic) };
    if !kernel.exists() {
        let since = GENERATIONS_SINCE.series();
        return Err(Failure::Input(anyhow::anyhow!("{version} has no generations: they came with {since}")));
    }
    let mut rows = rows(kernel);
    rows.retain(|row| key_of(row).contains(wanted));
    if rows.is_empty() {
        return Err(Failure::Input(anyhow::anyhow!("no rule of the kernel contains `{wanted}`")));
    }
    if options.json {
        let rules: Vec<Value> = rows.iter().map(|row| json_of(row, version)).collect();
        return output::print_json(
            &json!({ "kernel": kernel.to_string(), "read": read_near(version), "rules": rules }),
        );
    }
    let mut text = output::wrap(&format!("{kernel}. {}", read_near(version)), output::width(), "");
    let mut cells = vec![["rule", "value", "how it is known"].map(str::to_string).to_vec()];
    cells.extend(rows.iter().map(|row| vec![key_of(row), row.taken.clone(), how(row, version)]));
    text += &table::layout(&cells, 3);
    output::print_text(&text)
}

fn key_of(row: &Row) -> String {
    let is_sysctl = row.name.starts_with("vm.");
    format!("{}.{}", if is_sysctl { "sysctl" } else { "kernel" }, row.name)
}

/// How near the sources come that were read.
fn read_near(version: Version) -> String {
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

/// How it is known what a rule was.
pub(crate) fn how(row: &Row, version: Version) -> String {
    match row.held {
        Held::Value(_, known) => {
            let era = row.eras.iter().find(|era| era.value == row.taken && era.covers(version));
            let span = era.map(Era::span).filter(|span| span != "..");
            span.map_or_else(|| known.name().to_string(), |span| format!("{}, {span}", known.name()))
        }
        Held::NotKnown { before: Some(before), next } => {
            format!("not known: between {before} and {next}; taken as {next}")
        }
        Held::NotKnown { before: None, next } => format!("not known: later {next}, taken as that"),
        Held::Rests(_) => "rests: nothing in this version asks for it".to_string(),
    }
}

fn json_of(row: &Row, version: Version) -> Value {
    let (known, before, next) = match row.held {
        Held::Value(_, known) => (known.name(), None, None),
        Held::NotKnown { before, next } => ("not known", before, Some(next)),
        Held::Rests(_) => ("rests", None, None),
    };
    json!({
        "key": key_of(row),
        "value": row.taken,
        "known": known,
        "before": before,
        "next": next,
        "how": how(row, version),
        "eras": row.eras.iter().map(|era| json!({
            "value": era.value,
            "lists": era.lists.map(Lists::name),
            "versions": era.span(),
        })).collect::<Vec<Value>>(),
    })
}
