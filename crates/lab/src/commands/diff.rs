//! `pageout diff`: what happened between two snapshots of a kernel's counters ([`pageout_study::diff`]), as sentences, tables and JSON.

pub(crate) mod args; // what can be asked
mod report; // sentences and tables

use anyhow::anyhow;
use pageout_study::diff::{self, Ask};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use args::DiffArgs;
use report::Report;

/// Reads both snapshots and prints what happened between them.
pub(crate) fn run(args: &DiffArgs, cx: &Context) -> Outcome {
    let ask = Ask {
        before: args.before.clone(),
        after: args.after.clone(),
        interval: args.interval.clone(),
        by_mtime: args.by_mtime,
        page_size: args.page_size.clone(),
    };
    let answer = diff::ask(&ask, &())?;
    match cx.output.is_data() {
        true => {
            let json = serde_json::to_value(&answer).expect("results hold nothing that JSON can't");
            cx.output.print_json_or_rows(&json, || answer.rows())?;
        }
        false => {
            cx.output.print(&Report { answer: &answer, all: args.all, layout: cx.layout() }.to_text())?
        }
    }
    let fell = &answer.change.fell;
    if fell.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = fell.iter().map(|counter| counter.name.as_str()).collect();
    Err(Failure::Input(anyhow!(
        "counters decreased: lower in {} than in {}, so their changes are unknown: {}",
        answer.after.name,
        answer.before.name,
        names.join(", ")
    )))
}
