//! `pageout keys --at VERSION`: what each rule was in a version of the kernel, and how that is known.

use pageout_engine::{GENERATIONS_SINCE, Kernel, Lists, Version};
use pageout_study::known::{read_near, rows};
use serde_json::{Value, json};

use crate::cli::OutputOptions;
use crate::failure::{Failure, Outcome};
use crate::print::{output, table};

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
    rows.retain(|row| row.key().contains(wanted));
    if rows.is_empty() {
        return Err(Failure::Input(anyhow::anyhow!("no rule of the kernel contains `{wanted}`")));
    }
    if options.json {
        let rules: Vec<Value> = rows.iter().map(|row| row.json(version)).collect();
        return output::print_json(
            &json!({ "kernel": kernel.to_string(), "read": read_near(version), "rules": rules }),
        );
    }
    let mut text = output::wrap(&format!("{kernel}. {}", read_near(version)), output::width(), "");
    let mut cells = vec![["rule", "value", "how it is known"].map(str::to_string).to_vec()];
    cells.extend(rows.iter().map(|row| vec![row.key(), row.taken.clone(), row.how(version)]));
    text += &table::layout(&cells, 3);
    output::print_text(&text)
}
