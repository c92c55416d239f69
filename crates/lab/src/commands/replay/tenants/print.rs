//! Tenants as text, as JSON and as a page.

use std::fmt::Write;

use pageout_cache::curve::split::Split;
use pageout_study::bench::Shares;
use pageout_study::result::requests;
use serde_json::{Value, json};

use super::{Cell, Found, OfTrace};
use crate::commands::replay::{
    are_deletes_played, doubts, loop_line, machine, percentages, readahead, requests_lines, touched,
};
use crate::print::progress::name_of;
use crate::print::{figures, output, table};
use crate::report::{Axis, Chart, Colour, Line, Page, Part, Shape, Table, Unit};

pub(super) fn text(found: &Found) -> String {
    let mut text = String::new();
    if let Some(interrupted) = &found.interrupted {
        let says = format!("Not complete: {interrupted}; what was not run is marked so.");
        text += &output::wrap(&says, output::width(), "");
    }
    for of in &found.traces {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &heading(found, of);
        for cell in &of.cells {
            let window = match cell.policy.textbook() {
                Some(_) => String::new(),
                None => format!(", readahead {}", readahead::shown(found.args, of.has_neighbours)),
            };
            let _ = write!(text, "\n{}{window}\n", cell.name());
            match &cell.shares {
                Some(shares) => {
                    text += &table::layout(&rows(of, shares), 1);
                    text += &verdict(shares);
                }
                None => text += "not run\n",
            }
        }
    }
    text
}

impl Cell {
    fn name(&self) -> String {
        format!("{}, {}", self.policy.label(), figures::bytes(self.pages * 4096))
    }
}

impl OfTrace {
    /// Accesses of a tenant that count.
    fn counted(&self, tenant: usize) -> u64 {
        self.tenants.own()[tenant].accesses - self.warm_up[tenant]
    }

    fn all_counted(&self) -> u64 {
        (0..self.names.len()).map(|tenant| self.counted(tenant)).sum()
    }
}

fn heading(found: &Found, of: &OfTrace) -> String {
    let args = found.args;
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
        text += &loop_line(args);
        text += &machine(args, all.writes, of.has_neighbours);
    }
    text += &requests_lines(of.requests.as_ref(), machines.is_empty() || are_deletes_played(args));
    if of.cells.iter().any(|cell| matches!(cell.limit, pageout_sim::scenario::keys::Limit::Percent(_))) {
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

/// Over all tenants.
struct Sums {
    shared: u64,
    split: u64,
    split_pages: u64,
    /// What no tenant has a use for.
    unused_pages: u64,
}

impl Sums {
    fn of(shares: &Shares) -> Sums {
        let Split { parts, misses } = shares.split();
        Sums {
            shared: shares.shared.iter().sum(),
            split: misses,
            split_pages: parts.iter().map(|&part| u64::from(shares.sizes[part])).sum(),
            unused_pages: shares.sizes[shares.sizes.len() - 1 - parts.iter().sum::<usize>()].into(),
        }
    }
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
        unused => format!("; {} of it would earn nobody anything", figures::bytes(unused * 4096)),
    };
    format!("the best split, in steps of 1/{parts} of the memory, {differs} the shared memory{unused}\n")
}

pub(super) fn json(found: &Found) -> Value {
    let traces = found.traces.iter().map(|of| {
        let cells = of.cells.iter().map(|cell| {
            let window_kb = found.args.window_kb(of.has_neighbours);
            let mut json = cell_json(of, cell);
            json["read_ahead_kb"] = json!(if cell.policy.textbook().is_some() { 0 } else { window_kb });
            json
        });
        let all = of.tenants.all();
        json!({
            "trace": all.path.to_string_lossy(),
            "by": found.by,
            "accesses": all.accesses,
            "accesses_not_counted": of.warm_up.iter().sum::<u64>(),
            "distinct_pages": all.distinct_pages,
            "tenants_share_pages": of.shares_pages,
            "doubts": doubts(&of.interpretation, of.requests.as_ref()),
            "requests": of.requests.as_ref().map(requests::json),
            "has_neighbours": of.has_neighbours,
            "cells": cells.collect::<Vec<_>>(),
        })
    });
    json!({ "complete": found.interrupted.is_none(), "traces": traces.collect::<Vec<_>>() })
}

fn cell_json(of: &OfTrace, cell: &Cell) -> Value {
    let mut json = json!({
        "policy": cell.policy.name(),
        "is_textbook": cell.policy.textbook().is_some(),
        "is_bound": cell.policy.is_bound(),
        "memory_pages": cell.pages,
        "memory_bytes": cell.pages * 4096,
        "complete": cell.shares.is_some(),
    });
    let Some(shares) = &cell.shares else { return json };
    let (Split { parts, .. }, Sums { shared, split, unused_pages, .. }) = (shares.split(), Sums::of(shares));
    json["shared_misses"] = json!(shared);
    json["shared_miss_ratio"] = json!(figures::share(shared, of.all_counted()));
    json["split_misses"] = json!(split);
    json["split_miss_ratio"] = json!(figures::share(split, of.all_counted()));
    json["split_unused_pages"] = json!(unused_pages);
    let tenants = of.names.iter().enumerate().map(|(tenant, name)| {
        let (counted, curve) = (of.counted(tenant), &shares.curves[tenant]);
        let (alone, own) = (curve[curve.len() - 1], curve[parts[tenant]]);
        json!({
            "tenant": name,
            "tenant_accesses": counted,
            "tenant_pages": of.tenants.own()[tenant].distinct_pages,
            "misses": shares.shared[tenant],
            "miss_ratio": figures::share(shares.shared[tenant], counted),
            "misses_alone": alone,
            "miss_ratio_alone": figures::share(alone, counted),
            "own_pages": shares.sizes[parts[tenant]],
            "own_bytes": u64::from(shares.sizes[parts[tenant]]) * 4096,
            "misses_split": own,
            "miss_ratio_split": figures::share(own, counted),
            "curve_pages": shares.sizes,
            "curve_misses": curve,
        })
    });
    json["tenants"] = tenants.collect();
    json
}

pub(super) fn page(found: &Found) -> Page {
    let names: Vec<String> = found.traces.iter().map(|of| name_of(&of.tenants.all().path)).collect();
    let policies: Vec<String> = found.policies.iter().map(|policy| policy.label()).collect();
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
            page.story.push(format!("{}: {}", cell.name(), verdict(shares).trim_end()));
            let lines = of.names.iter().enumerate().map(|(tenant, name)| Line {
                name: name.clone(),
                colour: Colour::nth(tenant),
                ys: shares.curves[tenant]
                    .iter()
                    .map(|&misses| Some(figures::share(misses, of.counted(tenant))))
                    .collect(),
            });
            page.parts.push(Part::Chart(Chart {
                title: format!("Miss ratio of each tenant alone, {name}, {}", cell.name()),
                says: "Where a tenant's line falls steeply, memory earns most.".to_string(),
                x: Axis::linear("memory", Unit::Bytes),
                y: Axis::linear("miss ratio", Unit::Number),
                xs: shares.sizes.iter().map(|&pages| f64::from(pages) * 4096.0).collect(),
                lines: lines.collect(),
                shape: Shape::Points,
            }));
            page.parts.push(Part::Table(Table {
                title: format!("Tenants, {name}, {}", cell.name()),
                says: verdict(shares).trim_end().to_string(),
                rows: rows(of, shares),
                words: 1,
                last_words: 0,
            }));
        }
    }
    page
}
