//! `pageout keys --at VERSION`: what each rule was in a version of the kernel, how that is known, and what is not modelled of it.

use pageout_engine::{GENERATIONS_SINCE, Kernel, Lists, Version};
use pageout_study::known::{read_near, rows, unmodelled};
use pageout_study::scenario::switches::Knob;
use serde_json::{Value, json};

use super::none_contains;
use crate::context::Context;
use crate::failure::{Failure, Outcome};

/// Prints the rules whose key contains `wanted`.
pub(super) fn print(version: Version, lists: Option<Lists>, wanted: &str, cx: &Context) -> Outcome {
    let kernel = Kernel { version, lists: lists.unwrap_or(Lists::Classic) };
    if !kernel.exists() {
        let since = GENERATIONS_SINCE.series();
        return Err(Failure::Input(anyhow::anyhow!(
            "--lists mglru: not in `{version}`: expected {since} or later"
        )));
    }
    let mut rows = rows(kernel);
    rows.retain(|row| row.key().contains(wanted));
    let mut unmodelled: Vec<_> = unmodelled(kernel).collect();
    unmodelled.retain(|row| format!("kernel.{}", row.name()).contains(wanted));
    if rows.is_empty() && unmodelled.is_empty() {
        return Err(none_contains(
            "kernel rule",
            wanted,
            Knob::meant(wanted),
            "without FILTER, all rules are listed",
        ));
    }
    if cx.output.is_data() {
        let rules: Vec<Value> = rows.iter().map(|row| row.json(version)).collect();
        return cx.output.print_json(&json!({
            "kernel": kernel.to_string(),
            "read": read_near(version),
            "rules": rules,
            "not_modelled": unmodelled.iter().map(|row| json!({
                "name": row.name(),
                "versions": row.span(),
                "known": row.known_at(version).name(),
                "doc": row.doc,
            })).collect::<Vec<Value>>(),
        }));
    }
    let mut text = cx.layout().wrap(&format!("{kernel}. {}", read_near(version)), "");
    if !rows.is_empty() {
        let mut cells = vec![["rule", "value", "how it is known"].map(str::to_string).to_vec()];
        cells.extend(rows.iter().map(|row| vec![row.key(), row.taken.clone(), row.how(version)]));
        text += &cx.layout().table(&cells, 3);
    }
    if !unmodelled.is_empty() {
        text += &cx.layout().wrap("\nnot modelled: what this version did otherwise", "");
    }
    for row in unmodelled {
        let known = row.known_at(version).name();
        let told = format!("{} ({}, {known}): {}", row.name(), row.span(), row.doc);
        text += &cx.layout().wrap(&told, "  ");
    }
    cx.output.print_text(&text)
}
