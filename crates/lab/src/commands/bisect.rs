//! `pageout bisect`: which rule changed the result between two versions of the kernel ([`pageout_study::bisect`]), as a table, JSON and a page.

pub(crate) mod args; // what can be asked
mod page; // a bar a rule

use std::fmt::Write;

use pageout_study::bisect::{self, Answer, Ask, Measure, Rule, Share};
use pageout_study::result::effect;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::{Layout, Terminal, figures};
use crate::report::{Picture, check_name};
use args::BisectArgs;

/// Runs both versions, finds the figure that differs, turns every rule that differs, and prints what each brings.
pub(crate) fn run(args: &BisectArgs, cx: &Context) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let ask = Ask {
        scenario: args.scenario.clone(),
        changes: args.options.changes(),
        variant: args.variant.name.clone(),
        from: args.from.to_string(),
        to: args.to.to_string(),
        lists: args.lists.map(|lists| lists.name().to_string()),
        judge_by: args.judge_by.clone(),
        repeat: args.runs.repeat,
        jobs: args.runs.parallel.jobs,
    };
    ask.versions()?;
    if let ([name], None) = (&args.options.output.figure[..], &args.judge_by)
        && Measure::called(name).is_ok()
    {
        let message = format!(
            "--figure selects the columns of the result\nhelp: select the figure to explain with --judge-by {name}"
        );
        return Err(Failure::Input(anyhow::anyhow!(message)));
    }
    let found = bisect::ask(&ask, &Terminal::new(&cx.output))?;
    if cx.output.is_data() {
        cx.output.print_json(&found)?;
    } else {
        cx.output.print_text(&to_text(args, &found, cx.layout()))?;
    }
    if let Some(path) = &args.page.report {
        page::page(args, &found).write(path, &cx.output)?;
    }
    // A version in which the scenario fails is a result.
    Ok(found.extent.verdict(&[])?)
}

/// One row per rule that changes the figure.
fn rows(found: &Answer) -> Vec<Vec<String>> {
    let heading = ["rule", "from", "to", "since", "alone it\nbrings", "gone\nwithout it"];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for (at, rule) in found.rules.iter().enumerate().filter(|(at, _)| !found.is_idle(*at)) {
        let [alone, without] = found.shares(at).map(|share| share.map_or("-".to_string(), Share::show));
        let Rule { knob, from, to, .. } = rule;
        let since = rule.since_text().unwrap_or("not known".to_string());
        rows.push(vec![knob.name().to_string(), from.clone(), to.clone(), since, alone, without]);
    }
    rows
}

/// The rules that the table omits.
fn left_out(found: &Answer) -> Vec<String> {
    let idle: Vec<&str> = (found.rules.iter().enumerate())
        .filter(|(at, _)| found.is_idle(*at))
        .map(|(_, rule)| rule.knob.name())
        .collect();
    let rules = |names: &[&str]| figures::counted(names.len() as u64, "rule");
    let mut lines = Vec::new();
    if !idle.is_empty() {
        lines.push(format!("{} changed nothing in any run: {}", rules(&idle), idle.join(", ")));
    }
    if !found.unread.is_empty() {
        lines.push(format!(
            "{} not run, as only other lists than the scenario's read them: {}",
            rules(&found.unread),
            found.unread.join(", ")
        ));
    }
    lines
}

fn heading(args: &BisectArgs, found: &Answer) -> String {
    let (from, to) = (found.from.kernel.name(), found.to.kernel.name());
    let seeds = found.extent.seeds_from(found.from.seed);
    format!("{}: what changed from {from} to {to}; {seeds}", args.scenario.display())
}

/// The figure in both versions.
fn change_text(found: &Answer) -> Option<String> {
    let measure = found.measure?;
    let [before, after] = [0, 1].map(|end: usize| measure.show(&found.ends[end]));
    let [from, to] = found.versions();
    let title = effect::capitalised(measure.title());
    Some(format!("{title}: {before} in {from}, {after} in {to}"))
}

fn to_text(args: &BisectArgs, found: &Answer, layout: Layout) -> String {
    let mut text = format!("{}\n", heading(args, found));
    text += &layout.warning(&found.extent);
    if let Some(change) = change_text(found) {
        let _ = writeln!(text, "{change}");
    }
    if found.rules.is_empty() {
        text += match found.unread.is_empty() {
            true => "No rule that is known differs between them.\n",
            false => "No rule that the lists in use read differs between them.\n",
        };
    }
    let rows = rows(found);
    if rows.len() > 1 {
        let _ = write!(text, "\n{}", layout.table(&rows, 4));
    }
    left_out(found).iter().for_each(|line| text += &layout.wrap(line, ""));
    text.push('\n');
    found.verdict().iter().for_each(|says| text += &layout.wrap(says, ""));
    let doubts = found.doubts();
    if !doubts.is_empty() {
        text += "\nNot known\n";
        doubts.iter().for_each(|doubt| text += &layout.wrap(doubt, "  "));
    }
    text
}
