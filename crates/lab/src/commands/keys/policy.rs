//! `pageout keys policy`: the textbook policies of `replay --policy`, what can be chosen about each, and where it was published.

use pageout_cache::{POLICIES, Parameter, Row};
use serde_json::{Value, json};

use crate::print::Layout;

/// What all of them are called together, and what their names follow: `policy.s3-fifo`.
const GROUP: &str = "policy";

/// The policies that are asked for: all by `policy`, one by its name with or without that before it.
pub(super) fn called(wanted: &str) -> Vec<&'static Row> {
    let name = wanted.strip_prefix(GROUP).and_then(|name| name.strip_prefix('.')).unwrap_or(wanted);
    POLICIES.iter().filter(|row| wanted == GROUP || row.name == name).collect()
}

pub(super) fn describe(row: &Row, layout: Layout) -> String {
    let mut text = format!("{GROUP}.{}\n", row.name);
    text += &layout.wrap(&format!("{}.", row.doc), "    ");
    text += &layout.wrap(&format!("not for: {}", row.not_for), "    ");
    text += &layout.wrap(&format!("source: {}", row.source), "    ");
    for parameter in row.parameters {
        let Parameter { name, doc, default, reason, .. } = parameter;
        text += &layout.wrap(&format!("{}:{name}", row.name), "    ");
        text += &layout.wrap(doc, "        ");
        text += &layout.wrap(&format!("allowed: {}", parameter.range()), "        ");
        text += &layout.wrap(&format!("default: {default} ({reason})"), "        ");
    }
    text
}

pub(super) fn json(row: &Row) -> Value {
    let parameters = row.parameters.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "meaning": parameter.doc,
            "allowed": parameter.range(),
            "default": parameter.default,
            "reason": parameter.reason,
        })
    });
    json!({
        "policy": row.name,
        "meaning": row.doc,
        "not_for": row.not_for,
        "source": row.source,
        "parameters": parameters.collect::<Vec<_>>(),
    })
}
