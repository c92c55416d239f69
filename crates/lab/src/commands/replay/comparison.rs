//! A comparison of policies or traces: policies by sizes, or all that is known of each where there is one of either.

pub(super) mod page; // the curves as pictures

use std::fmt::Write;

use pageout_sim::scenario::keys::Limit;
use pageout_study::bench::Policy;
use pageout_study::replay::{Cell, Comparison, OfTrace, PAGES_MIN};

use super::{
    OPEN_LOOP, curve, loop_line, machine, open_loop_cells, own_figures, percentages, readahead,
    requests_lines, touched,
};
use crate::print::{Layout, figures, remarks};

/// With more sizes than this, a row is a size.
const COLUMNS_MAX: usize = 12;

/// `has_page`: the curves are on a page.
pub(super) fn text(bench: &Comparison, has_page: bool, layout: Layout) -> String {
    let mut text = String::new();
    if let Some(interrupted) = &bench.interrupted {
        let part = match bench.cells().any(|cell| cell.partial_accesses.is_some()) {
            true => " A figure `of` a share refers to that share of the accesses, from the first.",
            false => "",
        };
        let says = format!("Not complete: {interrupted}; what was not run is marked so.{part}");
        text += &layout.wrap(&says, "");
    }
    for of in &bench.traces {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &heading(bench, of);
        text.push('\n');
        text += &layout.table(&rows(bench, of), 1);
        text += &readahead::below_text(
            &of.below(&bench.policies),
            bench.ask.window_kb(of.has_neighbours),
            layout,
        );
        if let Some(rows) = machine_rows(bench, of) {
            let _ = write!(text, "\n{}", layout.table(&rows, 1));
        }
        text += &of_themselves(bench, of);
        text += &plot(of, has_page);
    }
    text
}

/// What was replayed, and what the figures are.
pub(super) fn heading(bench: &Comparison, of: &OfTrace) -> String {
    let (ask, policies) = (&bench.ask, &bench.policies);
    let distinct = of.trace.distinct_pages.into();
    let mut text = touched(&of.trace.path, of.trace.accesses, distinct) + "\n";
    let has_book = policies.iter().any(|policy| policy.textbook().is_some());
    let machines: Vec<String> =
        policies.iter().filter(|policy| policy.textbook().is_none()).map(|policy| policy.name()).collect();
    if has_book {
        text += "textbook policies see page numbers alone: no time, no devices, a write is an access\n";
    }
    if !machines.is_empty() {
        let on = if ask.untimed { String::new() } else { format!(", on {}", ask.device) };
        let _ = writeln!(text, "{} run in the machine{on}:", machines.join(", "));
        text += &loop_line(ask, &of.left_out(ask));
        text += &machine(ask, of.trace.writes, of.has_neighbours);
    }
    text += &requests_lines(of.trace.requests.as_ref(), ask.deletes(!machines.is_empty(), has_book));
    if of.sampled.is_some() && of.trace.has_removals() {
        text += "estimates leave deletes out\n";
    }
    if of.sizes.iter().any(|(limit, _)| matches!(limit, Limit::Percent(_))) {
        text += &percentages(distinct);
    }
    if of.warm_up > 0 {
        let _ = writeln!(
            text,
            "the first {} accesses warm up and don't count; {} do",
            figures::count(of.warm_up),
            figures::count(of.trace.accesses - of.warm_up)
        );
    }
    if let Some(sampled) = &of.sampled {
        let _ = writeln!(text, "{}", remarks::sampled(sampled.rate, sampled.pages));
    }
    if of.trace.pages.is_none() {
        let _ = writeln!(
            text,
            "the trace takes more than --trace-memory {}, so it was read again for what is here",
            ask.trace_memory
        );
    }
    let bounds: Vec<String> =
        policies.iter().filter(|policy| policy.is_bound()).map(|policy| policy.name()).collect();
    if !bounds.is_empty() {
        let over = if of.warm_up > 0 { " over all accesses, with those that warm up" } else { "" };
        let _ =
            writeln!(text, "{} knows the future: a bound on misses{over}, and no policy", bounds.join(", "));
        if of.trace.pages.is_none() && ask.sample.is_none() {
            let why = match of.sampled {
                Some(_) => "so it is estimated (~)",
                None => "and a sample that would fit has too few pages",
            };
            let _ = writeln!(
                text,
                "it needs all accesses in memory, which exceeds the limit, {why}: increase --trace-memory"
            );
        }
    }
    for policy in policies {
        if let Some(hash) = policy.hash() {
            let _ = writeln!(
                text,
                "{} is a custom policy: BLAKE3 {hash} of the file with its code",
                policy.name()
            );
        }
    }
    if !machines.is_empty() && has_book && of.sizes.iter().any(|(_, pages)| *pages < PAGES_MIN) {
        let _ = writeln!(text, "- below {PAGES_MIN} pages, the minimum of the simulated machine");
    }
    text
}

/// A size as it was asked for.
fn label((limit, pages): &(Limit, u64)) -> String {
    match limit {
        Limit::Percent(percent) => format!("{percent}%"),
        _ => figures::bytes(pages * 4096),
    }
}

fn miss_ratio(cell: &Cell) -> String {
    match (cell.miss_ratio, cell.spread) {
        (Some(ratio), None) if cell.partial_accesses.is_some() => {
            format!("{ratio:.4} of {}", cell.missing.as_deref().unwrap_or_default())
        }
        (Some(ratio), None) => format!("{ratio:.4}"),
        (Some(ratio), Some((least, most))) => remarks::estimated(ratio, least, most),
        (None, _) => cell.missing.clone().unwrap_or_else(|| "-".to_string()),
    }
}

fn misses(cell: &Cell) -> String {
    cell.misses.map_or("-".to_string(), figures::count)
}

/// The table: policies by sizes, or all that is known of each where there is one of either.
pub(super) fn rows(bench: &Comparison, of: &OfTrace) -> Vec<Vec<String>> {
    let names = || bench.policies.iter().map(|policy| policy.label());
    let windows = || bench.policies.iter().map(|policy| window(bench, of, policy));
    let has_machine = bench.policies.iter().any(|policy| policy.textbook().is_none());
    if of.sizes.len() == 1 {
        let mut heading = vec!["policy", "memory", "miss ratio", "misses"];
        if has_machine {
            heading.insert(1, "readahead");
            heading.extend(machine_headings(bench));
        }
        let heading = heading.into_iter().map(str::to_string).collect();
        let row = |((name, window), cells): ((String, String), &Vec<Cell>)| {
            let cell = &cells[0];
            let mut row = vec![name, figures::bytes(of.sizes[0].1 * 4096), miss_ratio(cell), misses(cell)];
            if has_machine {
                row.insert(1, window);
                row.extend(of_machine(bench, cell));
            }
            row
        };
        let named = names().zip(windows());
        return std::iter::once(heading).chain(named.zip(&of.cells).map(row)).collect();
    }
    if bench.policies.len() == 1 {
        let heading = ["memory", "of pages", "miss ratio", "misses"].map(str::to_string).to_vec();
        let row = |(size, cell): (&(Limit, u64), &Cell)| {
            vec![figures::bytes(size.1 * 4096), share(of, size.1), miss_ratio(cell), misses(cell)]
        };
        return std::iter::once(heading).chain(of.sizes.iter().zip(&of.cells[0]).map(row)).collect();
    }
    if of.sizes.len() > COLUMNS_MAX {
        let names = bench.policies.iter().map(|policy| with_window(bench, of, policy));
        let heading = ["memory".to_string(), "of pages".to_string()].into_iter().chain(names).collect();
        let row = |(at, size): (usize, &(Limit, u64))| {
            let front = [figures::bytes(size.1 * 4096), share(of, size.1)];
            front.into_iter().chain(of.cells.iter().map(|row| miss_ratio(&row[at]))).collect()
        };
        return std::iter::once(heading).chain(of.sizes.iter().enumerate().map(row)).collect();
    }
    let mut heading: Vec<String> =
        std::iter::once("miss ratio".to_string()).chain(of.sizes.iter().map(label)).collect();
    if has_machine {
        heading.insert(1, "readahead".to_string());
    }
    let row = |((name, window), cells): ((String, String), &Vec<Cell>)| {
        let front = std::iter::once(name).chain(has_machine.then_some(window));
        front.chain(cells.iter().map(miss_ratio)).collect()
    };
    std::iter::once(heading).chain(names().zip(windows()).zip(&of.cells).map(row)).collect()
}

/// What is read ahead under a policy; a textbook policy reads what is asked for.
fn window(bench: &Comparison, of: &OfTrace, policy: &Policy) -> String {
    match policy.textbook() {
        Some(_) => "-".to_string(),
        None => readahead::shown(&bench.ask, of.has_neighbours),
    }
}

/// A policy with what is read ahead under it.
pub(super) fn with_window(bench: &Comparison, of: &OfTrace, policy: &Policy) -> String {
    match policy.textbook() {
        Some(_) => policy.label(),
        None => format!("{}, readahead {}", policy.label(), readahead::shown(&bench.ask, of.has_neighbours)),
    }
}

fn share(of: &OfTrace, pages: u64) -> String {
    figures::percent(figures::share(pages, of.trace.distinct_pages.into()))
}

fn machine_headings(bench: &Comparison) -> Vec<&'static str> {
    if bench.ask.untimed {
        return vec!["pages read", "refaults"];
    }
    let mut headings = vec!["runtime", "pages read", "refaults", "reclaim p99"];
    if bench.ask.timed.is_some() {
        headings.extend(OPEN_LOOP);
    }
    headings
}

/// What only the machine can tell.
fn of_machine(bench: &Comparison, cell: &Cell) -> Vec<String> {
    let Some(of) = &cell.machine else { return vec!["-".to_string(); machine_headings(bench).len()] };
    let counts = [figures::count(of.device_pages_read), figures::count(of.refaults)];
    if bench.ask.untimed {
        return counts.to_vec();
    }
    let [pages_read, refaults] = counts;
    let mut cells = vec![figures::time(of.end_ns), pages_read, refaults, figures::time(of.reclaim_p99_ns)];
    cells.extend(of.open_loop.iter().flat_map(open_loop_cells));
    cells
}

/// Figures of the simulated machine that the first table does not contain.
pub(super) fn machine_rows(bench: &Comparison, of: &OfTrace) -> Option<Vec<Vec<String>>> {
    if of.sizes.len() == 1 {
        return None;
    }
    let heading = ["policy", "readahead", "memory", "misses"].into_iter().chain(machine_headings(bench));
    let mut rows = vec![heading.map(str::to_string).collect::<Vec<_>>()];
    for (policy, cells) in bench.policies.iter().zip(&of.cells) {
        for (size, cell) in of.sizes.iter().zip(cells).filter(|(_, cell)| cell.machine.is_some()) {
            let mut row = vec![policy.name(), window(bench, of, policy), label(size), misses(cell)];
            row.extend(of_machine(bench, cell));
            rows.push(row);
        }
    }
    (rows.len() > 1).then_some(rows)
}

/// Figures that policies report.
fn of_themselves(bench: &Comparison, of: &OfTrace) -> String {
    let of_policy = |(policy, cells): (&Policy, &Vec<Cell>)| {
        let sizes = of.sizes.iter().map(label).zip(cells.iter().map(|cell| &cell.own[..]));
        own_figures(&policy.name(), sizes)
    };
    let text: String = bench.policies.iter().zip(&of.cells).map(of_policy).collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// The curve in characters, where there is one; of several a page is the place.
fn plot(of: &OfTrace, has_page: bool) -> String {
    let ([cells], 2..) = (&of.cells[..], of.sizes.len()) else {
        let hint = of.sizes.len() > 2 && !has_page;
        return if hint { "\n--report FILE.html draws the curves\n".to_string() } else { String::new() };
    };
    let points =
        of.sizes.iter().zip(cells).filter_map(|((_, pages), cell)| Some((*pages as f64, cell.miss_ratio?)));
    let points: Vec<(f64, f64)> = points.collect();
    if points.len() < 2 {
        return String::new();
    }
    let memory = |pages: f64| figures::bytes(pages as u64 * 4096);
    format!("\nmiss ratio over memory\n{}", curve::plot(&points, memory, |ratio| format!("{ratio:.3}")))
}
