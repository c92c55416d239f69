//! `pageout explain`: why a page is where it is, or why the last evicted pages were evicted ([`pageout_study::explain`]), as text and JSON.

pub(crate) mod args; // what can be asked

use std::collections::BTreeMap;

use pageout_study::Error;
use pageout_study::explain::{self, About, Answer, Ask, PageReport, Run};
use pageout_truth::story::Story;
use serde_json::Value;

use crate::context::Context;
use crate::failure::Outcome;
use crate::print::{Layout, Terminal};
use args::ExplainArgs;

/// Runs the scenario as often as the question needs, and prints the stories.
pub(crate) fn run(args: &ExplainArgs, cx: &Context) -> Outcome {
    let about = match &args.page {
        Some(page) => About::Page(page.clone()),
        None => About::Evictions {
            count: args.evictions.expect("one of the two is required"),
            memcg: args.memcg.clone(),
        },
    };
    let ask =
        Ask { scenario: args.scenario.clone(), changes: args.options.changes(), about, steps: args.steps };
    let mut answer = match explain::ask(&ask, &Terminal::new(&cx.output)) {
        Err(error @ Error::Run(_)) => return cx.output.no_result(error.into(), Value::Null),
        answer => answer?,
    };
    let text = |Answer { run, pages, evictions, .. }: &Answer| {
        explain::stories(run, pages, *evictions, cx.layout().width())
    };
    match answer.failed.take() {
        None if cx.output.is_data() => cx.output.print_json(&answer),
        None => cx.output.print_text(&text(&answer)),
        Some(error) => {
            let told = text(&answer);
            cx.output.remark(&format!("The run failed. Before the failure:\n{told}"));
            cx.output.no_result(Error::Run(error).into(), answer.json())
        }
    }
}

/// The story of a page of a recorded run in words.
pub(crate) fn in_words(told: &Story, layout: Layout) -> String {
    let (story, since) = explain::page_story(told.page, &told.events, STEPS);
    let (title, now) = (told.title.clone(), told.now);
    let report = PageReport { title, eviction: None, back: None, story, since, now, head: None };
    let run = Run {
        groups: told.groups.clone(),
        has_nodes: false,
        tasks: BTreeMap::new(),
        policy: told.policy.clone(),
        accesses: told.accesses,
        end: told.end,
    };
    explain::stories(&run, &[report], None, layout.width())
}

/// The number of steps that are printed at each end of a page's life.
const STEPS: u32 = 8;
