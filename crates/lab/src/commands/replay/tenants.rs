//! Tenants of one memory, as text and as a page.

use std::fmt::Write;

use pageout_cache::curve::split::Split;
use pageout_sim::scenario::keys::Limit;
use pageout_study::bench::{Policy, Shares};
use pageout_study::replay::{Sums, Tenants, TenantsCell as Cell, TenantsOfTrace as OfTrace};

use super::{loop_line, machine, percentages, readahead, requests_lines, touched};
use crate::print::progress::name_of;
use crate::print::{Layout, figures};
use crate::report::{Axis, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(super) fn text(found: &Tenants, layout: Layout) -> String {
    let mut text = String::new();
    if let Some(interrupted) = &found.interrupted {
        let says = format!("Not complete: {interrupted}; what was not run is marked so.");
        text += &layout.wrap(&says, "");
    }
    for of in &found.traces {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &heading(found, of);
        for cell in &of.cells {
            let window = match cell.policy.textbook() {
                Some(_) => String::new(),
                None => format!(", readahead {}", readahead::shown(&found.ask, of.has_neighbours)),
            };
            let _ = write!(text, "\n{}{window}\n", label(cell));
            match &cell.shares {
                Some(shares) => {
                    text += &layout.table(&rows(of, shares), 1);
                    text += &verdict(shares);
                }
                None => text += "not run\n",
            }
        }
    }
    text
}

fn label(cell: &Cell) -> String {
    format!("{}, {}", cell.policy.label(), figures::bytes(cell.pages * 4096))
}

fn heading(found: &Tenants, of: &OfTrace) -> String {
    let ask = &found.ask;
    let all = of.tenants.all();
    let mut text = touched(&all.path, all.accesses, all.distinct_pages.into());
    let _ = writeln!(text, ", {} by {}", figures::counted(of.names.len() as u64, "tenant"), found.by);
    let machines: Vec<String> = of
        .cells
        .iter()
        .filter(|cell| cell.policy.textbook().is_none())
        .map(|cell| cell.policy.name())
        .collect();
    if machines.len() < of.cells.len() {
        text += "textbook policies see page numbers alone: no time, no devices, a write is an access\n";
    }
    if let Some(name) = machines.first() {
        let _ = writeln!(
            text,
            "in the machine ({name}{}) each tenant is a cgroup under one parent, which has the limit",
            if machines.iter().any(|other| other != name) { ", ..." } else { "" }
        );
        text += &loop_line(ask, &[]);
        text += &machine(ask, all.writes, of.has_neighbours);
    }
    text += &requests_lines(
        of.requests.as_ref(),
        ask.deletes(!machines.is_empty(), machines.len() < of.cells.len()),
    );
    if of.cells.iter().any(|cell| matches!(cell.limit, Limit::Percent(_))) {
        text += &percentages(all.distinct_pages.into());
    }
    let warm_up: u64 = of.warm_up.iter().sum();
    if warm_up > 0 {
        let _ = writeln!(text, "the first {} accesses warm up and don't count", figures::count(warm_up));
    }
    text += "shared: in one memory; alone: in as much memory of its own; split: in its part of the memory, which is split so that all miss least\n";
    if of.shares_pages {
        text += "some pages are several tenants': alone and in a split memory each has a copy, and misses it itself\n";
    }
    text
}

/// A row a tenant, and one of all.
fn rows(of: &OfTrace, shares: &Shares) -> Vec<Vec<String>> {
    let Split { parts, .. } = shares.split();
    let heading = [
        "tenant",
        "accesses",
        "pages",
        "shared: misses",
        "ratio",
        "alone: ratio",
        "split: memory",
        "misses",
        "ratio",
    ];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    let ratio = |misses: u64, of: u64| format!("{:.4}", figures::share(misses, of));
    let size = |part: usize| figures::bytes(u64::from(shares.sizes[part]) * 4096);
    for (tenant, name) in of.names.iter().enumerate() {
        let (counted, curve) = (of.counted(tenant), &shares.curves[tenant]);
        let split = curve[parts[tenant]];
        rows.push(vec![
            name.clone(),
            figures::count(counted),
            figures::count(of.tenants.own()[tenant].distinct_pages.into()),
            figures::count(shares.shared[tenant]),
            ratio(shares.shared[tenant], counted),
            ratio(curve[curve.len() - 1], counted),
            size(parts[tenant]),
            figures::count(split),
            ratio(split, counted),
        ]);
    }
    let sums = Sums::of(shares);
    let all = of.all_counted();
    rows.push(vec![
        "all".to_string(),
        figures::count(all),
        figures::count(of.tenants.all().distinct_pages.into()),
        figures::count(sums.shared),
        ratio(sums.shared, all),
        "-".to_string(),
        figures::bytes(sums.split_pages * 4096),
        figures::count(sums.split),
        ratio(sums.split, all),
    ]);
    rows
}

fn verdict(shares: &Shares) -> String {
    let Sums { shared, split, unused_pages, .. } = Sums::of(shares);
    let parts = shares.sizes.len() - 1;
    let differs = match split.cmp(&shared) {
        std::cmp::Ordering::Less => {
            format!("misses {} less than", figures::percent(figures::share(shared - split, shared)))
        }
        std::cmp::Ordering::Greater => {
            format!("misses {} more than", figures::percent(figures::share(split - shared, shared)))
        }
        std::cmp::Ordering::Equal => "misses as often as".to_string(),
    };
    let unused = match unused_pages {
        0 => String::new(),
        unused => format!("; {} of it would not reduce misses", figures::bytes(unused * 4096)),
    };
    format!("the best split, in steps of 1/{parts} of the memory, {differs} the shared memory{unused}\n")
}

pub(super) fn page(found: &Tenants) -> Page {
    let names: Vec<String> = found.traces.iter().map(|of| name_of(&of.tenants.all().path)).collect();
    let policies: Vec<String> = found.policies.iter().map(Policy::label).collect();
    let mut page = Page {
        title: format!("Tenants of {} by {}", names.join(", "), found.by),
        of: policies.join(", "),
        story: found.interrupted.iter().map(|told| format!("Not complete: {told}.")).collect(),
        parts: Vec::new(),
    };
    for (of, name) in found.traces.iter().zip(&names) {
        page.story.push(heading(found, of).trim_end().replace('\n', "; "));
        for cell in &of.cells {
            let Some(shares) = &cell.shares else { continue };
            page.story.push(format!("{}: {}", label(cell), verdict(shares).trim_end()));
            let lines = of.names.iter().enumerate().map(|(tenant, name)| Line {
                name: name.clone(),
                colour: Colour::nth(tenant),
                ys: shares.curves[tenant]
                    .iter()
                    .map(|&misses| Some(figures::share(misses, of.counted(tenant))))
                    .collect(),
            });
            page.parts.push(Part::Chart(Chart {
                title: format!("Miss ratio of each tenant alone, {name}, {}", label(cell)),
                says: "More memory helps most if a tenant's line falls steeply.".to_string(),
                x: Axis::linear("memory", Unit::Bytes),
                y: Axis::linear("miss ratio", Unit::Number),
                xs: shares.sizes.iter().map(|&pages| f64::from(pages) * 4096.0).collect(),
                lines: lines.collect(),
                shape: Shape::Points,
            }));
            page.parts.push(Part::Table(Table {
                title: format!("Tenants, {name}, {}", label(cell)),
                says: verdict(shares).trim_end().to_string(),
                rows: rows(of, shares),
                words: 1,
                last_words: 0,
            }));
        }
    }
    page
}
