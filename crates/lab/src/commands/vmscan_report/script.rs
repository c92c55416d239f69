//! The text that the kernel's `trace-vmscan-postprocess` prints, column by column, for programs that read it.
//!
//! Calls at a cgroup's limit are unknown to that script and omitted. Three of its defects are not copied. Rows of newer kernels have their figures
//! under the right titles, a comm with `/ : _` is not cut, and with --ignore-pid no call is lost. If a table has no row, the script prints no counts
//! for it, and neither does this module.

use std::fmt::Write;

use pageout_kerneltext::ftrace::CallKind;
use pageout_kerneltext::vmscan::{ByOrder, ByType, Item, Process, Reclaimer, Work};

use pageout_study::vmscan_report::Reading;

use super::Report;

impl Report<'_> {
    pub(super) fn to_script(&self) -> String {
        let reading = &self.readings[0];
        let processes = &reading.sums.processes;
        let width = processes.iter().map(|process| process.name().chars().count()).max().unwrap_or(0) + 2;
        let mut text = String::new();
        if !self.ignore_pid {
            text += "\nReclaim latencies expressed as order-latency_in_ms\n";
            for process in processes {
                latencies(process, width, &mut text);
            }
        }
        let callers: Vec<&Process> =
            processes.iter().filter(|process| process.calls(CallKind::Direct).begun.total() > 0).collect();
        let kswapds: Vec<&Process> = processes
            .iter()
            .filter(|process| process.kswapd.as_ref().is_some_and(|kswapd| kswapd.wakes.total() > 0))
            .collect();
        process_table(reading, &callers, width, &mut text);
        kswapd_table(&kswapds, width, &mut text);
        summary(reading, &callers, &kswapds, &mut text);
        text
    }
}

/// Each call as order and milliseconds; the n-th is a call of direct reclaim if there is one, else kswapd's n-th time awake.
fn latencies(process: &Process, width: usize, text: &mut String) {
    let [direct, kswapd] = &process.items;
    let items: Vec<&Item> = direct.iter().chain(kswapd.iter().skip(direct.len())).collect();
    if items.is_empty() {
        return;
    }
    _ = write!(text, "{:<width$} ", process.name());
    for Item { order, span_ns: (begin_ns, end_ns) } in items {
        let milliseconds = |ns: u64| ns as f64 / 1e6;
        _ = write!(text, "{order}-{} ", shortest(milliseconds(*end_ns) - milliseconds(*begin_ns)));
    }
    text.push('\n');
}

/// A number with 15 significant digits and no zeros at its end.
fn shortest(value: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", usize::try_from(14 - exponent).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

fn process_table(reading: &Reading, callers: &[&Process], width: usize, text: &mut String) {
    let heading =
        |text: &mut String, [name, direct, wokeup, scanned, freed, sync, not_sync, stalled]: [&str; 8]| {
            _ = writeln!(
                text,
                "{name:<width$} {direct:>8} {wokeup:>10}   {scanned:>8} {freed:>8}  {sync:>8} {not_sync:>8} {stalled:>8} {:>8}",
                ""
            );
        };
    text.push('\n');
    heading(text, ["Process", "Direct", "Wokeup", "Pages", "Pages", "Pages", "Pages", "Time"]);
    heading(text, ["details", "Rclms", "Kswapd", "Scanned", "Rclmed", "Sync-IO", "ASync-IO", "Stalled"]);
    for process in callers {
        let (calls, work) = (process.calls(CallKind::Direct), process.work_by(Reclaimer::Direct));
        _ = write!(
            text,
            "{:<width$} {:>8} {:>10}   {:>8} {:>8}  {:>8} {:>8} {:>8.3}",
            process.name(),
            calls.begun.total(),
            process.wake_requests.total(),
            work.scanned.total(),
            reading.sums.freed_of(process, CallKind::Direct).unwrap_or(0),
            work.written_sync.total(),
            work.written_async.total(),
            calls.latency.total_ns() as f64 / 1e9,
        );
        by_order("direct", &calls.begun, text);
        by_order("wakeup", &process.wake_requests, text);
        if is_of_2010(reading) && work.contig_dirty > 0 {
            _ = write!(text, "      contig-dirty={} ", work.contig_dirty);
        }
        text.push('\n');
    }
}

fn kswapd_table(kswapds: &[&Process], width: usize, text: &mut String) {
    let heading = |text: &mut String, [name, wakeups, again, scanned, freed, sync, not_sync]: [&str; 7]| {
        _ = writeln!(
            text,
            "{name:<width$} {wakeups:>8} {again:>10}   {scanned:>8}   {freed:>8} {sync:>8} {not_sync:>8} {:>8}",
            ""
        );
    };
    text.push('\n');
    heading(text, ["Kswapd", "Kswapd", "Order", "Pages", "Pages", "Pages", "Pages"]);
    heading(text, ["Instance", "Wakeups", "Re-wakeup", "Scanned", "Rclmed", "Sync-IO", "ASync-IO"]);
    for process in kswapds {
        let kswapd = process.kswapd.as_ref().expect("it was chosen for that");
        let work = process.work_by(Reclaimer::Kswapd);
        _ = write!(
            text,
            "{:<width$} {:>8} {:>10}   {:>8} {:>8}  {:>8} {:>8}",
            process.name(),
            kswapd.wakes.total(),
            kswapd.rewakes.total(),
            work.scanned.total(),
            work.reclaimed.total(),
            work.written_sync.total(),
            work.written_async.total(),
        );
        by_order("wake", &kswapd.wakes, text);
        by_order("rewake", &kswapd.rewakes, text);
        text.push('\n');
    }
}

fn by_order(what: &str, counts: &ByOrder, text: &mut String) {
    if counts.total() > 0 {
        text.push_str("      ");
        counts.iter().for_each(|(order, count)| _ = write!(text, "{what}-{order}={count} "));
    }
}

fn summary(reading: &Reading, callers: &[&Process], kswapds: &[&Process], text: &mut String) {
    let has_types = !is_of_2010(reading);
    let mut row = |label: &str, is_there: bool, value: u64| {
        let value = if is_there { value.to_string() } else { String::new() };
        _ = writeln!(text, "{label}{value}");
    };
    row("\nSummary", false, 0);
    let sum = |class: Reclaimer, of: &[&Process]| {
        let mut sum = Work::default();
        of.iter().for_each(|process| sum.add(process.work_by(class)));
        sum
    };
    let (direct, is_there) = (sum(Reclaimer::Direct, callers), !callers.is_empty());
    let count = |of: fn(&Process) -> u64| callers.iter().map(|process| of(process)).sum();
    row(
        "Direct reclaims:     \t\t\t",
        is_there,
        count(|process| process.calls(CallKind::Direct).begun.total()),
    );
    types(&mut row, ["Direct reclaim", "\t\t", "\t", "scanned"], is_there, has_types, direct.scanned);
    let freed: u64 =
        callers.iter().filter_map(|process| reading.sums.freed_of(process, CallKind::Direct).ok()).sum();
    let freed = ByType { unknown: freed, ..ByType::default() };
    let freed = if direct.batches > 0 { direct.reclaimed } else { freed };
    types(&mut row, ["Direct reclaim", "\t\t", "\t", "reclaimed"], is_there, has_types, freed);
    writes(&mut row, "Direct reclaim", is_there, &direct);
    row("Wake kswapd requests:\t\t\t", is_there, count(|process| process.wake_requests.total()));
    let stalled =
        callers.iter().map(|process| process.calls(CallKind::Direct).latency.total_ns() as f64 / 1e9);
    let stalled: f64 = stalled.sum();
    row(&format!("Time stalled direct reclaim: \t\t{stalled:.2} seconds"), false, 0);
    let (work, is_there) = (sum(Reclaimer::Kswapd, kswapds), !kswapds.is_empty());
    let all = kswapds.iter().filter_map(|process| process.kswapd.as_deref());
    let (wakeups, awake_s) = all.fold((0, 0.0), |(wakeups, awake_s), kswapd| {
        (wakeups + kswapd.wakes.total(), awake_s + kswapd.awake.total_ns() as f64 / 1e9)
    });
    row("\nKswapd wakeups:\t\t\t\t", is_there, wakeups);
    types(&mut row, ["Kswapd", "\t\t\t", "\t\t", "scanned"], is_there, has_types, work.scanned);
    types(&mut row, ["Kswapd", "\t\t\t", "\t\t", "reclaimed"], is_there, has_types, work.reclaimed);
    writes(&mut row, "Kswapd reclaim", is_there, &work);
    row(&format!("Time kswapd awake:\t\t\t{awake_s:.2} seconds"), false, 0);
}

/// `Direct reclaim pages scanned:` and, on newer kernels, the same by type.
fn types(
    row: &mut impl FnMut(&str, bool, u64),
    [who, tabs, fewer_tabs, what]: [&str; 4],
    is_there: bool,
    has_types: bool,
    pages: ByType,
) {
    row(&format!("{who} pages {what}:{tabs}"), is_there, pages.total());
    if has_types {
        row(&format!("{who} file pages {what}:{fewer_tabs}"), is_there, pages.file);
        row(&format!("{who} anon pages {what}:{fewer_tabs}"), is_there, pages.anon);
    }
}

fn writes(row: &mut impl FnMut(&str, bool, u64), who: &str, is_there: bool, work: &Work) {
    row(
        &format!("{who} write file sync I/O:\t"),
        is_there,
        work.written_sync.file + work.written_sync.unknown,
    );
    row(&format!("{who} write anon sync I/O:\t"), is_there, work.written_sync.anon);
    row(
        &format!("{who} write file async I/O:\t"),
        is_there,
        work.written_async.file + work.written_async.unknown,
    );
    row(&format!("{who} write anon async I/O:\t"), is_there, work.written_async.anon);
}

/// The script's first generation knew no types.
fn is_of_2010(reading: &Reading) -> bool {
    reading.totals.dialect() == Some("2010")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_have_fifteen_digits_as_a_subtraction_leaves_them() {
        assert_eq!(shortest(0.0), "0");
        assert_eq!(shortest(5.0), "5");
        assert_eq!(shortest(1141.5), "1141.5");
        assert_eq!(shortest(210_057.103 - 210_022.524), "34.5789999999979");
        assert_eq!(shortest(0.25), "0.25");
    }
}
