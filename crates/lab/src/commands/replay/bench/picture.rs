//! The comparison as a page: a chart of curves a trace, a line a policy.

use super::{Bench, OfTrace, print};
use crate::print::progress::name_of;
use crate::report::{Axis, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(super) fn page(bench: &Bench) -> Page {
    let names: Vec<String> = bench.traces.iter().map(|of| name_of(&of.trace.path)).collect();
    let policies: Vec<String> = bench.policies.iter().map(|policy| policy.label()).collect();
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
        page.story.push(print::heading(bench, of).trim_end().replace('\n', "; "));
        if of.sizes.len() > 1 {
            page.parts.push(Part::Chart(chart(bench, of, name)));
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
        page.parts.push(table("Misses", print::rows(bench, of), 1));
        page.parts.extend(print::machine_rows(bench, of).map(|rows| table("In the machine", rows, 1)));
    }
    page
}

fn chart(bench: &Bench, of: &OfTrace, name: &str) -> Chart {
    let mut order: Vec<usize> = (0..of.sizes.len()).collect();
    order.sort_by_key(|&at| of.sizes[at].1);
    order.dedup_by_key(|at| of.sizes[*at].1);
    let pages = |at: &usize| of.sizes[*at].1;
    let is_wide = pages(&order[order.len() - 1]) / pages(&order[0]).max(1) > 10;
    let memory = if is_wide { Axis::logarithmic } else { Axis::linear };
    let lines = bench.policies.iter().zip(&of.cells).enumerate().map(|(number, (policy, cells))| Line {
        name: policy.label(),
        colour: Colour::nth(number),
        ys: order.iter().map(|&at| cells[at].miss_ratio).collect(),
    });
    Chart {
        title: format!("Miss ratio over memory, {name}"),
        says: "Where a line stops falling, more memory earns nothing; a bound is what no policy can pass."
            .to_string(),
        x: memory("memory", Unit::Bytes),
        y: Axis::linear("miss ratio", Unit::Number),
        xs: order.iter().map(|at| (pages(at) * 4096) as f64).collect(),
        lines: lines.collect(),
        shape: Shape::Points,
    }
}
