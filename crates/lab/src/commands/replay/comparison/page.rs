//! The comparison as a page: a chart of curves a trace, a line a policy.

use pageout_study::bench::Policy;
use pageout_study::replay::{Comparison, OfTrace};

use super::{heading, machine_rows, readahead, rows, with_window};
use crate::print::progress::name_of;
use crate::print::remarks;
use crate::report::{Axis, Band, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(in crate::commands::replay) fn page(bench: &Comparison) -> Page {
    let names: Vec<String> = bench.traces.iter().map(|of| name_of(&of.trace.path)).collect();
    let policies: Vec<String> = bench.policies.iter().map(Policy::label).collect();
    let of = match names.len() {
        0..=3 => names.join(", "),
        count => format!("{count} traces"),
    };
    let mut page = Page {
        title: format!("Misses of {} policies on {of}", policies.len()),
        of: policies.join(", "),
        story: bench.interrupted.iter().map(|told| format!("Not complete: {told}.")).collect(),
        parts: Vec::new(),
    };
    for (of, name) in bench.traces.iter().zip(&names) {
        page.story.push(heading(bench, of).trim_end().replace('\n', "; "));
        page.story
            .extend(readahead::below(&of.below(&bench.policies), bench.ask.window_kb(of.has_neighbours)));
        if of.sizes.len() > 1 {
            page.parts.push(chart(bench, of, name));
        }
        let table = |title: &str, rows, words| {
            Part::Table(Table {
                title: format!("{title}, {name}"),
                says: String::new(),
                rows,
                words,
                last_words: 0,
            })
        };
        page.parts.push(table("Misses", rows(bench, of), 1));
        page.parts.extend(machine_rows(bench, of).map(|rows| table("In the machine", rows, 1)));
    }
    page
}

fn chart(bench: &Comparison, of: &OfTrace, name: &str) -> Part {
    let mut order: Vec<usize> = (0..of.sizes.len()).collect();
    order.sort_by_key(|&at| of.sizes[at].1);
    order.dedup_by_key(|at| of.sizes[*at].1);
    let pages = |at: &usize| of.sizes[*at].1;
    let is_wide = pages(&order[order.len() - 1]) / pages(&order[0]).max(1) > 10;
    let memory = if is_wide { Axis::logarithmic } else { Axis::linear };
    let mut bands = Vec::new();
    for (line, cells) in of.cells.iter().enumerate() {
        let ends: Vec<Option<(f64, f64)>> = order.iter().map(|&at| cells[at].spread).collect();
        if ends.iter().any(Option::is_some) {
            bands.push(Band { line, ends });
        }
    }
    let is_estimate = |line: usize| bands.iter().any(|band| band.line == line);
    let estimated = |line: usize| if is_estimate(line) { ", estimated" } else { "" };
    let lines = bench.policies.iter().zip(&of.cells).enumerate().map(|(number, (policy, cells))| Line {
        name: with_window(bench, of, policy) + estimated(number),
        colour: Colour::nth(number),
        ys: order.iter().map(|&at| cells[at].miss_ratio).collect(),
    });
    let sampled = of
        .sampled
        .as_ref()
        .filter(|_| !bands.is_empty())
        .map(|sampled| remarks::sampled(sampled.rate, sampled.pages));
    let chart = Chart {
        title: format!("Miss ratio over memory, {name}{}", if bands.is_empty() { "" } else { ", estimated" }),
        says: format!(
            "If a line is flat, more memory does not help. OPT is a lower bound for policies that read only requested pages.{}",
            sampled.map(|told| format!(" {told}.")).unwrap_or_default()
        ),
        x: memory("memory", Unit::Bytes),
        y: Axis::linear("miss ratio", Unit::Number),
        xs: order.iter().map(|at| (pages(at) * 4096) as f64).collect(),
        lines: lines.collect(),
        shape: Shape::Points,
    };
    match bands.is_empty() {
        true => Part::Chart(chart),
        false => Part::Estimates { chart, bands },
    }
}
