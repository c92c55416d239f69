//! The HTML page of `vmscan-report`: which tasks were stalled, when and why, in sentences, then over time, then the tables.

use pageout_kerneltext::vmscan::{Reclaimer, Slice, Stall};

use pageout_study::vmscan_report::Reading;
use pageout_study::vmscan_report::story::{next, story};
use pageout_study::vmscan_report::summary::seconds;
use pageout_study::vmscan_report::why::why;

use super::Report;
use super::text::{heading, short};
use crate::print::figures;
use crate::report::{Axis, Chart, Colour, Lanes, Line, Page, Part, Shape, Span, Unit};

/// The maximum number of lanes; further tasks share the last one.
const LANES: usize = 12;

impl Report<'_> {
    pub(super) fn to_page(&self) -> Page {
        let names: Vec<String> = self.readings.iter().map(|reading| short(&reading.name)).collect();
        let is_one = self.readings.len() == 1;
        let mut page = Page {
            title: format!("Reclaim in {}", names.join(", ")),
            of: self.readings.iter().map(heading).collect::<Vec<_>>().join("; "),
            story: Vec::new(),
            parts: Vec::new(),
        };
        let mut summary = self.summary();
        if is_one {
            summary.rows.insert(0, vec![String::new(), names[0].clone()]);
        } else {
            page.parts.push(Part::Table(summary.clone()));
        }
        for (reading, name) in self.readings.iter().zip(&names) {
            let of = if is_one { String::new() } else { format!("{name}: ") };
            page.story
                .extend(story(reading).into_iter().chain(next(reading)).map(|says| format!("{of}{says}")));
            page.parts.extend(pictures(reading, &of));
            let tables = self.tables(reading).into_iter();
            page.parts.extend(tables.map(|mut table| {
                table.title = format!("{of}{}", table.title);
                Part::Table(table)
            }));
        }
        if is_one {
            page.parts.push(Part::Table(summary));
        }
        let faults = self.readings.iter().flat_map(|reading| reading.faults.iter());
        let remarks: Vec<String> = self.remarks().into_iter().chain(faults.cloned()).collect();
        if !remarks.is_empty() {
            let title = "What makes these figures uncertain".to_string();
            page.parts.push(Part::Prose { title, text: remarks.join("\n") });
        }
        page
    }
}

pub(super) fn pictures(reading: &Reading, of: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    parts.extend(lanes(reading, of).map(Part::Lanes));
    let over_time = OverTime::new(reading);
    let tasks = [Reclaimer::Direct, Reclaimer::Memcg, Reclaimer::Node];
    let all = [Reclaimer::Direct, Reclaimer::Memcg, Reclaimer::Node, Reclaimer::Kswapd, Reclaimer::Outside];
    parts.extend(over_time.chart(
        of,
        "Tasks stalled at a time",
        "On average over each step of the axis: 1 is one task that does nothing but wait for reclaim.",
        &tasks,
        |slice, step_s| slice.busy_ns as f64 / 1e9 / step_s,
    ));
    parts.extend(over_time.chart(
        of,
        "Pages scanned per second, by task",
        "High while few pages are freed: reclaim is inefficient.",
        &all,
        |slice, step_s| slice.scanned as f64 / step_s,
    ));
    parts.extend(over_time.chart(
        of,
        "Pages freed per second, by task",
        "No task waits for pages that kswapd frees.",
        &all,
        |slice, step_s| slice.reclaimed as f64 / step_s,
    ));
    parts.extend(over_time.chart(
        of,
        "Pages written by reclaim per second, by task",
        "A task that writes pages itself waits for a disk.",
        &all,
        |slice, step_s| slice.written as f64 / step_s,
    ));
    parts.extend(latencies(reading, of).map(Part::Chart));
    parts
}

fn colour(class: Reclaimer) -> Colour {
    match class {
        Reclaimer::Direct => Colour::HARM,
        Reclaimer::Memcg => Colour::MEMCG,
        Reclaimer::Kswapd => Colour::KSWAPD,
        Reclaimer::SoftLimit => Colour::nth(3),
        Reclaimer::Node => Colour::nth(4),
        Reclaimer::Outside => Colour::nth(5),
    }
}

fn reclaimer_name(class: Reclaimer, reading: &Reading) -> &'static str {
    match class {
        Reclaimer::Direct => "tasks, direct reclaim",
        Reclaimer::Memcg => "tasks, at a cgroup's limit",
        Reclaimer::SoftLimit => "soft limit",
        Reclaimer::Node => "tasks, node reclaim",
        Reclaimer::Kswapd => "kswapd",
        Reclaimer::Outside => reading.outside,
    }
}

/// The longest calls and kswapd's longest times awake, a lane for each task.
fn lanes(reading: &Reading, of: &str) -> Option<Lanes> {
    let sums = &reading.sums;
    let spans = sums.stalls.iter().chain(&sums.awake);
    let (first, last) = reading.totals.span_ns?;
    let mut tasks: Vec<(usize, u64, bool)> = Vec::new();
    for stall in spans.clone() {
        let is_kswapd = stall.reclaimer == Reclaimer::Kswapd;
        match tasks.iter_mut().find(|(process, ..)| *process == stall.process) {
            Some((_, lasted, _)) => *lasted = lasted.saturating_add(stall.lasted_ns),
            None => tasks.push((stall.process, stall.lasted_ns, is_kswapd)),
        }
    }
    if tasks.is_empty() {
        return None;
    }
    // Tasks first, those that waited longest on top; kswapd below them.
    tasks.sort_by_key(|&(process, lasted, is_kswapd)| (is_kswapd, std::cmp::Reverse(lasted), process));
    let kswapds = tasks.iter().filter(|(.., is_kswapd)| *is_kswapd).count().min(LANES / 2);
    let shown = LANES - kswapds;
    let (waiting, awake): (Vec<_>, Vec<_>) = tasks.into_iter().partition(|(.., is_kswapd)| !is_kswapd);
    let mut order: Vec<usize> = waiting.iter().take(shown).map(|(process, ..)| *process).collect();
    let mut names: Vec<String> = order.iter().map(|at| sums.processes[*at].name()).collect();
    let rest = (waiting.len() > shown).then_some(names.len());
    if rest.is_some() {
        names.push(format!("{} more tasks", waiting.len() - shown));
        order.push(usize::MAX);
    }
    for (process, ..) in awake.iter().take(kswapds) {
        order.push(*process);
        names.push(sums.processes[*process].name());
    }
    let spans = spans.filter_map(|stall| {
        let lane = order.iter().position(|at| *at == stall.process).or(rest)?;
        Some(span(reading, stall, lane))
    });
    Some(Lanes {
        title: format!("{of}Who waited, and when"),
        says: "Each bar is a call of reclaim; for kswapd, a time that it was awake. Point at a bar to see its phases. At most \
               the 200 longest are shown."
            .to_string(),
        x: (first as f64 / 1e9, last as f64 / 1e9),
        spans: spans.collect(),
        names,
    })
}

fn span(reading: &Reading, stall: &Stall, lane: usize) -> Span {
    let name = reading.sums.processes[stall.process].name();
    let lasted = figures::time(stall.lasted_ns);
    let says = match stall.reclaimer {
        Reclaimer::Kswapd => format!("{name} awake for {lasted} from {} s", seconds(stall.begin_ns)),
        class => format!(
            "{name}: {} reclaim for {lasted} from {} s, order {}: {}{}",
            class.name(),
            seconds(stall.begin_ns),
            stall.order,
            why(stall),
            if stall.is_over { "" } else { "; not over when the trace ends" }
        ),
    };
    let from = stall.begin_ns as f64 / 1e9;
    let to = stall.begin_ns.saturating_add(stall.lasted_ns) as f64 / 1e9;
    Span { lane, from, to, colour: colour(stall.reclaimer), says }
}

/// The timeline, as charts want it.
struct OverTime<'a> {
    reading: &'a Reading,
    /// The starts of the steps in seconds, and the end of the last one.
    xs: Vec<f64>,
    step_s: f64,
}

impl OverTime<'_> {
    fn new(reading: &Reading) -> OverTime<'_> {
        let timeline = &reading.sums.timeline;
        let begin_ns = timeline.begin_ns.unwrap_or(0);
        // Rounded, because insignificant digits would double the size of the page.
        let at = |step: usize| ((begin_ns + step as u64 * timeline.step_ns) as f64 / 1e3).round() / 1e6;
        let xs = (0..=timeline.steps.len()).map(at).collect();
        OverTime { reading, xs, step_s: timeline.step_ns as f64 / 1e9 }
    }

    /// A stack of what classes did; nothing where none did.
    fn chart(
        &self,
        of: &str,
        title: &str,
        says: &str,
        classes: &[Reclaimer],
        value: impl Fn(&Slice, f64) -> f64,
    ) -> Option<Part> {
        let steps = &self.reading.sums.timeline.steps;
        let lines = classes.iter().filter_map(|class| {
            let mut ys: Vec<Option<f64>> = steps
                .iter()
                .map(|step| Some((value(&step[*class as usize], self.step_s) * 1e4).round() / 1e4))
                .collect();
            let is_empty = ys.iter().all(|y| *y == Some(0.0));
            // The last step ends where the next would begin.
            ys.push(ys.last().copied().flatten());
            let name = reclaimer_name(*class, self.reading).to_string();
            (!is_empty).then_some(Line { name, colour: colour(*class), ys })
        });
        let lines: Vec<Line> = lines.collect();
        (!lines.is_empty()).then(|| {
            Part::Chart(Chart {
                title: format!("{of}{title}"),
                says: says.to_string(),
                x: Axis::linear("time (s)", Unit::Seconds),
                y: Axis::linear("", Unit::Count),
                xs: self.xs.clone(),
                lines,
                shape: Shape::Stacked,
            })
        })
    }
}

/// How long the slowest one in so many calls took.
fn latencies(reading: &Reading, of: &str) -> Option<Chart> {
    let classes = [Reclaimer::Direct, Reclaimer::Memcg, Reclaimer::Node];
    let most = classes.iter().map(|class| reading.sums.latency(*class).count()).max()?;
    if most < 2 {
        return None;
    }
    let mut one_in: Vec<u64> = Vec::new();
    let mut decade: u64 = 1;
    while decade <= most {
        one_in.extend([1, 2, 5].map(|factor| factor * decade).into_iter().filter(|one| *one <= most));
        decade = decade.saturating_mul(10);
    }
    if one_in.last() != Some(&most) {
        one_in.push(most);
    }
    let lines = classes.into_iter().filter_map(|class| {
        let latency = reading.sums.latency(class);
        let ys = one_in.iter().map(|one| {
            // Just beyond the share that is faster.
            let quantile = (1.0 - (1.0 - 1e-9) / *one as f64).min(1.0);
            (*one <= latency.count()).then(|| latency.quantile_ns(quantile) as f64).filter(|ns| *ns > 0.0)
        });
        (latency.count() > 1).then(|| Line {
            name: reclaimer_name(class, reading).to_string(),
            colour: colour(class),
            ys: ys.collect(),
        })
    });
    Some(Chart {
        title: format!("{of}How long a call takes"),
        says:
            "To the right the rare, long ones: at 1 in 100, one call in a hundred takes that long or longer."
                .to_string(),
        x: Axis::logarithmic("one call in so many", Unit::OneIn),
        y: Axis::logarithmic("time stalled in a call", Unit::Nanoseconds),
        xs: one_in.iter().map(|one| *one as f64).collect(),
        lines: lines.collect(),
        shape: Shape::Points,
    })
}
