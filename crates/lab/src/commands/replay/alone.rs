//! One kernel policy over one trace: a line for each size, and the curves in characters.

pub(super) mod page; // the curves as pictures

use std::fmt::Write;

use pageout_sim::scenario::keys::Limit;
use pageout_study::replay::{Alone, Figures};
use pageout_study::result::notes::{self, Note};

use super::{
    OPEN_LOOP, curve, loop_line, machine, open_loop_cells, own_figures, percentages, readahead,
    requests_lines, touched,
};
use crate::print::{Layout, figures};

/// The maximum number of percentages that are printed with their sizes.
const PERCENTAGES_TOLD: usize = 12;

/// What was replayed, on what, and what each percentage is of.
fn heading(answer: &Alone) -> String {
    let Alone { ask, policy, loaded, points, .. } = answer;
    let footprint = &loaded.footprint;
    let mut text = format!(
        "{}, channel {}, {policy}{}\n",
        touched(answer.trace(), footprint.accesses, footprint.distinct_pages()),
        ask.channel.name(),
        if ask.untimed { String::new() } else { format!(", {}", ask.device) }
    );
    text += &loop_line(ask, &answer.left_out());
    text += &machine(ask, footprint.writes(), answer.has_neighbours);
    text += &requests_lines(loaded.requests.as_ref(), ask.deletes(true, false));
    if points.len() > PERCENTAGES_TOLD {
        text += &percentages(footprint.distinct_pages());
    } else {
        for point in points {
            if let Limit::Percent(percent) = point.limit {
                let share = figures::share_of_pages(percent, footprint.distinct_pages(), point.pages);
                let _ = writeln!(text, "{share}");
            }
        }
    }
    if loaded.accesses.is_none() && points.len() > 1 {
        let _ = writeln!(
            text,
            "the trace takes more than --trace-memory {}, so it was read again for each size",
            ask.trace_memory
        );
    }
    text
}

/// The column of the bound: right behind the miss ratio.
const BOUND_COLUMN: usize = 4;

/// Columns that only a timed run has.
const TIMES: [&str; 3] = ["runtime", "accesses/s", "reclaim p99"];

/// A line for each size.
fn rows(answer: &Alone) -> Vec<Vec<String>> {
    let Alone { ask, loaded, points, bounds, .. } = answer;
    let heading = [
        "memory",
        "of pages",
        "readahead",
        "miss ratio",
        "misses",
        "runtime",
        "accesses/s",
        "pages read",
        "refaults",
        "reclaim p99",
    ];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    if bounds.is_some() {
        rows[0].insert(BOUND_COLUMN, "opt".to_string());
    }
    if ask.timed.is_some() {
        rows[0].extend(OPEN_LOOP.map(str::to_string));
    }
    if ask.untimed {
        rows[0].retain(|column| !TIMES.contains(&column.as_str()));
    }
    let columns = rows[0].len();
    for (at, point) in points.iter().enumerate() {
        let mut row = vec![
            figures::bytes(point.pages * 4096),
            figures::percent(figures::share(point.pages, loaded.footprint.distinct_pages())),
            readahead::shown(ask, answer.has_neighbours),
        ];
        match point.figures() {
            Some(of) => {
                row.extend([format!("{:.4}", of.miss_ratio), figures::count(of.misses)]);
                if !ask.untimed {
                    row.push(figures::time(of.end_ns));
                    row.push(
                        figures::rate(of.throughput_per_s).trim_end_matches("/s").trim_end().to_string(),
                    );
                }
                row.extend([figures::count(of.device_pages_read), figures::count(of.refaults)]);
                if !ask.untimed {
                    row.push(figures::time(of.reclaim_p99_ns));
                }
                if let Some(bounds) = bounds {
                    row.insert(BOUND_COLUMN, bounds[at].as_ref().map_or("-".to_string(), readahead::bound));
                }
                row.extend(of.open_loop.iter().flat_map(open_loop_cells));
            }
            None => {
                row.push(point.runs.missing());
                row.resize(columns, "-".to_string());
            }
        }
        rows.push(row);
    }
    rows
}

pub(super) fn text(answer: &Alone, layout: Layout) -> String {
    let points = &answer.points;
    let mut text = heading(answer);
    text += &layout.warning(&answer.extent);
    text.push('\n');
    text += &layout.table(&rows(answer), 0);
    text += &readahead::below_text(&answer.below(), answer.window_kb(), layout);
    let noted: Vec<(String, &[Note])> = points
        .iter()
        .filter_map(|point| Some((figures::bytes(point.pages * 4096), point.result()?.notes.as_slice())))
        .collect();
    let noted = layout.notes(&notes::of_several(noted.iter().map(|(size, notes)| (size.as_str(), *notes))));
    if !noted.is_empty() {
        let _ = write!(text, "\n{noted}");
    }
    let measured: Vec<(u64, Figures)> =
        points.iter().filter_map(|point| Some((point.pages, point.figures()?))).collect();
    let own = measured.iter().map(|(pages, of)| (figures::bytes(pages * 4096), &of.own[..]));
    let own = own_figures(&answer.policy, own);
    if !own.is_empty() {
        let _ = write!(text, "\n{own}");
    }
    if measured.len() > 1 {
        let curve = |of: fn(&Figures) -> f64| {
            measured.iter().map(|(pages, figures)| (*pages as f64, of(figures))).collect::<Vec<_>>()
        };
        let memory = |pages: f64| figures::bytes(pages as u64 * 4096);
        text += "\nmiss ratio over memory\n";
        text += &curve::plot(&curve(|of| of.miss_ratio), memory, |ratio| format!("{ratio:.3}"));
        if !answer.ask.untimed {
            text += "\nruntime over memory\n";
            text += &curve::plot(&curve(|of| of.end_ns as f64), memory, |ns| figures::time(ns as u64));
        }
    }
    text
}
