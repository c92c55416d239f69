//! The tables of `vmscan-report`: stalled tasks, kswapd, what became of the pages, the longest calls, the summary, what is uncertain.

use std::cmp::Reverse;

use pageout_kerneltext::ftrace::CallKind;
use pageout_kerneltext::vmscan::{EventKind, Process, Reclaimer, Stall, Work};

use pageout_study::vmscan_report::Reading;
use pageout_study::vmscan_report::story::{how_to_record, story};
use pageout_study::vmscan_report::summary::{
    KSWAPD_EDGES, MEMCG_ROWS, Value, edges, is_rare, known, ratio, seconds, verdict,
};
use pageout_study::vmscan_report::why::why;

use super::Report;
use crate::print::figures::counted;
use crate::print::{Layout, figures};
use crate::report::Table;

/// Rows of a table without `--all`.
const ROWS: usize = 12;

/// Events of one trace are never further out of order than that, unless its CPUs lie one behind the other.
const ONE_TRACE_NS: u64 = 1_000_000_000;

impl Report<'_> {
    pub(super) fn to_text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        // Side by side, the sums are what is compared; who did it is in each trace's own report.
        if let [reading] = self.readings {
            parts.push(self.layout.wrap(&heading(reading), ""));
            if reading.totals.events > 0 {
                let story = story(reading).into_iter();
                parts.push(story.map(|says| self.layout.wrap(&says, "")).collect());
            }
            parts.extend(self.tables(reading).iter().map(|table| to_text(table, self.layout)));
        } else {
            let headings = self.readings.iter().map(heading);
            parts.push(headings.map(|heading| self.layout.wrap(&heading, "")).collect());
        }
        parts.push(to_text(&self.summary(), self.layout));
        if let [reading] = self.readings {
            parts.push(how_to_record(reading));
        }
        parts.push(self.remarks().iter().map(|remark| self.layout.wrap(remark, "")).collect());
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    /// The rows per caller, without empty ones.
    pub(super) fn tables(&self, reading: &Reading) -> Vec<Table> {
        let kinds = [
            (CallKind::Direct, "Direct reclaim: tasks that the whole machine's shortage stalled"),
            (CallKind::Memcg, "Memcg reclaim: tasks that a cgroup's limit stalled"),
            (CallKind::SoftLimit, "Soft limit reclaim, within other calls"),
            (CallKind::Node, "Node reclaim: tasks whose own node was short"),
        ];
        let mut tables: Vec<Option<Table>> =
            kinds.into_iter().map(|(kind, title)| self.callers(reading, kind, title)).collect();
        tables.extend([kswapds(reading), fates(reading), self.longest(reading)]);
        tables.into_iter().flatten().collect()
    }

    /// What makes the figures of all traces uncertain.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.readings.iter().flat_map(|reading| self.remarks_of(reading)).collect()
    }

    /// The tasks that made calls of one kind, those stalled longest first.
    fn callers(&self, reading: &Reading, kind: CallKind, title: &str) -> Option<Table> {
        let made = |process: &&Process| {
            let calls = process.calls(kind);
            calls.begun.total() + calls.without_begin > 0
        };
        let mut processes: Vec<&Process> = reading.sums.processes.iter().filter(made).collect();
        processes.sort_by_key(|process| Reverse(process.calls(kind).latency.total_ns()));
        if processes.is_empty() {
            return None;
        }
        let is_direct = kind == CallKind::Direct;
        let mut rows = vec![row([
            "task",
            "calls",
            "stalled",
            "of the time",
            "median",
            "p99",
            "longest",
            "scanned",
            "reclaimed",
            "written",
        ])];
        if is_direct {
            rows[0].push("wakes kswapd".to_string());
        }
        let shown = if self.all { processes.len() } else { processes.len().min(ROWS) };
        for process in &processes[..shown] {
            let (calls, work) = (process.calls(kind), process.work_by(kind.into()));
            let sums = &reading.sums;
            let latency = calls.latency.summary();
            // Calls of which no one has both of its ends have no durations.
            let lasted = verdict(sums, edges(kind), |_| latency.count > 0).unwrap_or(false);
            let time = |ns: u64| if lasted { figures::time(ns) } else { Value::Unknown.text() };
            let share = Value::Share(ratio(latency.total_ns as f64, reading.elapsed_ns()));
            let mut cells = vec![
                process.name(),
                figures::count(sums.calls_of(process, kind)),
                time(latency.total_ns),
                if lasted { share } else { Value::Unknown }.text(),
                time(latency.p50_ns),
                time(latency.p99_ns),
                time(latency.max_ns),
                Value::from(sums.scanned(kind.into(), work)).text(),
                Value::from(sums.freed_of(process, kind)).text(),
                Value::from(sums.written(kind.into(), work.written())).text(),
            ];
            if is_direct {
                let asked = Value::Count(process.wake_requests.total());
                cells.push(known(sums, [EventKind::WakeRequests], asked).text());
            }
            rows.push(cells);
        }
        let mut says = String::new();
        if shown < processes.len() {
            let rest = &processes[shown..];
            let calls: u64 = rest.iter().map(|process| reading.sums.calls_of(process, kind)).sum();
            let stalled = rest.iter().map(|process| process.calls(kind).latency.total_ns());
            let stalled = Value::Milliseconds(stalled.fold(0, u64::saturating_add));
            let stalled = match known(&reading.sums, edges(kind), stalled) {
                Value::Milliseconds(ns) => figures::time(ns),
                _ => "for a time that is unknown".to_string(),
            };
            says = format!("{} more tasks: {} calls, {stalled} (--all)\n", rest.len(), figures::count(calls));
        }
        let orders: Vec<String> =
            orders(processes.iter().flat_map(|process| process.calls(kind).begun.iter()));
        says += &format!("calls by order: {}", orders.join(", "));
        Some(Table { title: title.to_string(), says, rows, words: 1, last_words: 0 })
    }

    /// The longest calls, and what took the time.
    fn longest(&self, reading: &Reading) -> Option<Table> {
        let stalls = &reading.sums.stalls;
        if stalls.is_empty() {
            return None;
        }
        let shown = if self.all { stalls.len() } else { stalls.len().min(ROWS) };
        let mut rows = vec![row([
            "at (s)",
            "lasted",
            "order",
            "task",
            "call",
            "what took the time, as far as events say",
        ])];
        for stall in &stalls[..shown] {
            let Stall { begin_ns, lasted_ns, order, is_over, .. } = stall;
            let atleast = if *is_over { "" } else { "> " };
            rows.push(vec![
                seconds(*begin_ns),
                format!("{atleast}{}", figures::time(*lasted_ns)),
                order.to_string(),
                reading.sums.processes[stall.process].name(),
                stall.reclaimer.name().to_string(),
                why(stall),
            ]);
        }
        let title = "The longest calls".to_string();
        Some(Table { title, says: String::new(), rows, words: 0, last_words: 3 })
    }

    /// The rows of the seed, for all traces side by side.
    pub(super) fn summary(&self) -> Table {
        let summaries: Vec<Vec<(&str, Value)>> = self.readings.iter().map(Reading::summary).collect();
        let has_memcg = summaries.iter().any(|rows| !value(rows, MEMCG_ROWS[0]).is_zero());
        let has_cpu_time = self.readings.iter().any(|reading| reading.times.cpu_s.is_some());
        let mut rows = Vec::new();
        if self.readings.len() > 1 {
            let names = self.readings.iter().map(|reading| short(&reading.name));
            rows.push(std::iter::once(String::new()).chain(names).collect());
        }
        for (at, (label, _)) in summaries[0].iter().enumerate() {
            let values: Vec<Value> = summaries.iter().map(|rows| rows[at].1).collect();
            let is_left_out = is_rare(label) && values.iter().all(|value| value.is_zero())
                || MEMCG_ROWS.contains(label) && !has_memcg
                || (label.starts_with("User/Sys")
                    || label.ends_with("direct reclaim") && label.starts_with("Percentage"))
                    && !has_cpu_time;
            if !is_left_out {
                let values = values.iter().map(|value| value.text());
                rows.push(std::iter::once(label.to_string()).chain(values).collect());
            }
        }
        Table { title: "Summary".to_string(), says: String::new(), rows, words: 1, last_words: 0 }
    }

    /// Remarks on one trace.
    fn remarks_of(&self, reading: &Reading) -> Vec<String> {
        let (totals, sums) = (&reading.totals, &reading.sums);
        let name = &reading.name;
        let mut remarks = Vec::new();
        if totals.events == 0 {
            remarks.push(format!(
                "{name} has no event of reclaim. Either nothing was reclaimed, or the events were not on: echo 1 > \
                 /sys/kernel/tracing/events/vmscan/enable"
            ));
        }
        if totals.events > 0
            && let Err(unknown) = verdict(sums, [EventKind::Scans, EventKind::Batches], |_| ())
            && !sums.has_work_events
        {
            remarks.push(format!("{name}: the pages scanned, freed and written are {unknown}."));
        }
        if sums.coverage.scans_by_batches() {
            remarks.push(format!(
                "{name}: it has no isolations (mm_vmscan_lru_isolate), so pages scanned are those that batches judged. MGLRU looks at \
                 more."
            ));
        }
        if totals.lost + totals.losses > 0 {
            let uncounted = match (totals.lost, totals.losses) {
                (_, 0) => String::new(),
                (0, times) => format!("events it did not count, {}", counted(times, "time")),
                (_, times) => format!(", and for events it did not count, {}", counted(times, "time")),
            };
            let counted = match totals.lost {
                0 => String::new(),
                lost => counted(lost, "event"),
            };
            remarks.push(format!(
                "{name}: the kernel lost {counted}{uncounted}. Their calls and pages are missing; use a larger buffer_size_kb."
            ));
        }
        if !totals.unknown.is_empty() {
            let names =
                totals.unknown.iter().map(|(name, count)| format!("{name} ({})", figures::count(*count)));
            let names: Vec<String> = names.collect();
            remarks.push(format!(
                "{name}: events of reclaim that are not known, and not counted: {}",
                names.join(", ")
            ));
        }
        if totals.displaced > totals.late {
            let displaced = figures::count(totals.displaced - totals.late);
            remarks.push(format!(
                "{name}: {displaced} events came after later ones, and were put in their place by time."
            ));
        }
        if let Some((back_ns, line)) = totals.back.filter(|&(back_ns, _)| back_ns > ONE_TRACE_NS) {
            remarks.push(format!(
                "{name}: in line {} time goes back by {}. If another trace begins there, of another boot, both are taken for one \
                 here: make it a file of its own.",
                figures::count(line),
                figures::time(back_ns)
            ));
        }
        for process in &sums.processes {
            self.remarks_on(reading, process, &mut remarks);
        }
        let outside = sums.work(Reclaimer::Outside);
        if outside.scanned.total() + outside.written() > 0 {
            let begins = [CallKind::Direct, CallKind::Memcg].map(EventKind::Begins);
            let whose = match verdict(sums, begins, |_| ()) {
                Ok(()) => " outside of any call that the trace shows: madvise, or calls that began before it"
                    .to_string(),
                Err(unknown) => format!("; in which calls is {unknown}"),
            };
            remarks.push(format!(
                "{name}: {} pages scanned, {} reclaimed and {} written by tasks{whose}.",
                Value::from(sums.scanned(Reclaimer::Outside, &outside)).text(),
                Value::from(sums.freed_in_batches(&outside)).text(),
                Value::from(sums.written(Reclaimer::Outside, outside.written())).text()
            ));
        }
        remarks
    }

    fn remarks_on(&self, reading: &Reading, process: &Process, remarks: &mut Vec<String>) {
        let (end_ns, name) = (reading.sums.end_ns, process.name());
        for kind in [CallKind::Direct, CallKind::Memcg, CallKind::SoftLimit, CallKind::Node] {
            let calls = process.calls(kind);
            let what = Reclaimer::from(kind).name();
            if let Some((_, since_ns)) = calls.unfinished {
                let lasts = figures::time(end_ns.saturating_sub(since_ns));
                remarks.push(format!(
                    "{name} was still in {what} reclaim when the trace ended, for {lasts}: not in its sums."
                ));
            }
            let (without_end, without_begin) = (calls.without_end, calls.without_begin);
            let lacking = [
                (without_end, counted(without_end, "call") + " of " + what + " reclaim without an end"),
                (without_begin, counted(without_begin, "end") + " of " + what + " reclaim without a begin"),
            ];
            let lacking: Vec<_> =
                lacking.into_iter().filter(|&(times, _)| times > 0).map(|(_, words)| words).collect();
            if lacking.is_empty() {
                continue;
            }
            let lacking = lacking.join(" and ");
            remarks.push(format!("{name}: {lacking}; their time is not counted."));
        }
        if let Some(kswapd) = &process.kswapd {
            if let Some(until_ns) = kswapd.awake_before_ns {
                let first_ns = reading.totals.span_ns.map_or(0, |(first, _)| first);
                let lasts = figures::time(until_ns.saturating_sub(first_ns));
                remarks.push(format!(
                    "{name} was awake when the trace began, for {lasts} more: not in its sums."
                ));
            }
            if let Some((since_ns, _)) = kswapd.since {
                let lasts = figures::time(end_ns.saturating_sub(since_ns));
                remarks.push(format!(
                    "{name} was still awake when the trace ended, for {lasts}: not in its sums."
                ));
            }
        }
    }
}

/// What was read.
pub(super) fn heading(reading: &Reading) -> String {
    let totals = &reading.totals;
    let (first, last) = totals.span_ns.unwrap_or_default();
    let mut dialect = totals.dialect().map_or(String::new(), |dialect| format!(", {dialect} dialect"));
    if totals.is_perf {
        dialect += ", of perf script";
    }
    format!(
        "{}: {} events of reclaim and {} others in {}, from {} to {} s, on {}{dialect}",
        reading.name,
        figures::count(totals.events),
        figures::count(totals.others),
        figures::time(last - first),
        seconds(first),
        seconds(last),
        match totals.cpus {
            0 => "an unknown number of CPUs".to_string(),
            1 => "1 CPU".to_string(),
            cpus => format!("{cpus} CPUs"),
        },
    )
}

fn kswapds(reading: &Reading) -> Option<Table> {
    let mut rows = vec![row([
        "kswapd",
        "wakeups",
        "while awake",
        "sleeps",
        "awake",
        "of the time",
        "median",
        "longest",
        "scanned",
        "reclaimed",
        "written",
    ])];
    let mut by_order = Vec::new();
    for process in &reading.sums.processes {
        let Some(kswapd) = &process.kswapd else { continue };
        let (work, awake) = (process.work_by(Reclaimer::Kswapd), kswapd.awake.summary());
        by_order.extend(kswapd.wakes.iter());
        let sums = &reading.sums;
        let count = |need: EventKind, count: u64| known(sums, [need], Value::Count(count)).text();
        let has_edges = verdict(sums, KSWAPD_EDGES, |_| ()).is_ok();
        let time = |ns: u64| if has_edges { figures::time(ns) } else { Value::Unknown.text() };
        let share = Value::Share(ratio(awake.total_ns as f64, reading.elapsed_ns()));
        rows.push(vec![
            process.name(),
            count(EventKind::KswapdWakes, kswapd.wakes.total()),
            count(EventKind::KswapdWakes, kswapd.rewakes.total()),
            count(EventKind::KswapdSleeps, kswapd.sleeps),
            time(awake.total_ns),
            known(sums, KSWAPD_EDGES, share).text(),
            time(awake.p50_ns),
            time(awake.max_ns),
            Value::from(sums.scanned(Reclaimer::Kswapd, work)).text(),
            Value::from(sums.freed_in_batches(work)).text(),
            Value::from(sums.written(Reclaimer::Kswapd, work.written())).text(),
        ]);
    }
    if rows.len() == 1 {
        return None;
    }
    let orders = orders(by_order.into_iter());
    let says =
        if orders.is_empty() { String::new() } else { format!("wakeups by order: {}", orders.join(", ")) };
    let title = "kswapd: reclaim that no task waits for".to_string();
    Some(Table { title, says, rows, words: 1, last_words: 0 })
}

/// What became of the pages that each class looked at.
fn fates(reading: &Reading) -> Option<Table> {
    let classes: Vec<(Reclaimer, Work)> = Reclaimer::ALL
        .into_iter()
        .map(|class| (class, reading.sums.work(class)))
        .filter(|(_, work)| work.batches > 0)
        .collect();
    if classes.is_empty() {
        return None;
    }
    let mut rows = vec![row([
        "by",
        "scanned",
        "of file",
        "taken",
        "reclaimed",
        "of file",
        "activated",
        "in use",
        "dirty",
        "writeback",
        "mapped",
        "throttled",
    ])];
    for (class, work) in classes {
        let kept = work.kept();
        let kept = |reason: usize| kept[reason].map_or("-".to_string(), figures::count);
        rows.push(vec![
            class.name().to_string(),
            figures::count(work.scanned.total()),
            figures::percent(figures::share(work.scanned.file, work.scanned.total())),
            work.taken().map_or("-".to_string(), |taken| figures::count(taken.total())),
            figures::count(work.reclaimed.total()),
            figures::percent(figures::share(work.reclaimed.file, work.reclaimed.total())),
            kept(0),
            kept(1),
            kept(2),
            kept(3),
            kept(5),
            match known(&reading.sums, [EventKind::Throttles], Value::Count(work.throttled_us)) {
                Value::Count(us) => figures::time(us.saturating_mul(1000)),
                _ => "-".to_string(),
            },
        ]);
    }
    let title = "What became of the pages".to_string();
    Some(Table { title, says: String::new(), rows, words: 1, last_words: 0 })
}

fn to_text(table: &Table, layout: Layout) -> String {
    let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let laid_out =
        layout.table_by(&table.rows, |column| column >= table.words && column + table.last_words < columns);
    let says = if table.says.is_empty() { String::new() } else { format!("{}\n", table.says) };
    format!("{}\n{laid_out}{says}", table.title)
}

fn orders(counts: impl Iterator<Item = (usize, u64)>) -> Vec<String> {
    let mut sums = std::collections::BTreeMap::<usize, u64>::new();
    counts.for_each(|(order, count)| *sums.entry(order).or_default() += count);
    sums.into_iter().map(|(order, count)| format!("{order}: {}", figures::count(count))).collect()
}

fn value(rows: &[(&str, Value)], label: &str) -> Value {
    rows.iter().find(|(known, _)| *known == label).map_or(Value::Unknown, |(_, value)| *value)
}

/// A file's name without its directory.
pub(super) fn short(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_string()
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_string).to_vec()
}
