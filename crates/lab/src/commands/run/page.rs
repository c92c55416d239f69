//! The HTML page of `run`: where the time of the tasks went, the machine over time, what the terminal says, and the scenario.
//!
//! ```text
//!   samples ─────▶ what memory holds, free memory and its marks, dirty pages, pressure, devices ──┐
//!   tracepoints ─▶ who waited and when, reclaim by whom, how long calls took (as vmscan-report) ──┼─▶ one axis of time
//!              └─▶ marks: kswapd woken, throttled, killed ────────────────────────────────────────┘
//! ```

use std::cmp::Reverse;

use pageout_engine::{PAGE_SIZE, Stat};
use pageout_sim::scenario::Scenario;
use pageout_sim::{DamonMap, DamonWindow, Resource};
use pageout_study::result::access::AccessResult;
use pageout_study::result::better::Verdict;
use pageout_study::result::marks::{Mark, Marked};
use pageout_study::result::run_result::{DelaysResult, RunResult, TaskResult, TiersResult};
use pageout_study::result::samples::{Extent, Level, Load, Sampled, Samples, ZswapSize};
use pageout_study::scenario::source::Source;

use crate::commands::run::args::RunArgs;
use crate::commands::vmscan_report::Heard;
use crate::print::summary::{kill_told, summary};
use crate::print::{Layout, figures};
use crate::report::{
    Axis, Bar, Bars, Chart, Colour, Heat, HeatRegion, Lanes, Line, Page, Part, Regions, RegionsAt, Shape,
    Span, Unit, scenario,
};

/// The maximum number of tasks in the chart.
const TASKS: usize = 12;

/// Kills in the story; all of them are among the figures.
const KILLS: usize = 3;

/// The samples and the reclaim calls of a run.
pub(super) struct Seen {
    pub(super) samples: Samples,
    pub(super) heard: Heard,
}

pub(super) fn page(
    source: &Source,
    args: &RunArgs,
    of: &Scenario,
    result: &RunResult,
    seen: &Seen,
    layout: Layout,
) -> Page {
    let name = args.scenario.display().to_string();
    let variant = args.variant.name.as_ref().map_or(String::new(), |variant| format!(", variant {variant}"));
    let title = if result.question.is_empty() { name.clone() } else { result.question.clone() };
    let text = summary(of, result, layout);
    let mut parts = vec![Part::Bars(waits(&result.tasks))];
    parts.extend(over_time(seen, result.end_ns));
    parts.extend(result.tiers.iter().flat_map(tiers));
    parts.extend(heat(result));
    parts.extend(result.damon_maps.iter().enumerate().filter_map(|(number, map)| damon_map(number, map)));
    parts.push(Part::Text { title: "All figures".to_string(), text, is_open: true });
    parts.push(scenario(source, &args.options.changes(), &[]));
    Page {
        title,
        of: format!(
            "{name}{variant}: {} in {} of simulated time, {}, seed {}",
            result.accesses_told(),
            figures::time(result.end_ns),
            result.profile,
            result.seed
        ),
        story: story(of, result, seen),
        parts,
    }
}

/// The summary of the page: killed processes, the longest wait, stalls by reclaim, throttled writers, and `look_at` of the scenario.
fn story(of: &Scenario, result: &RunResult, seen: &Seen) -> Vec<String> {
    let reclaim = if seen.heard.is_silent() { Vec::new() } else { seen.heard.story() };
    let look_at = (!of.look_at.is_empty()).then(|| format!("Look at: {}", of.look_at));
    let writers = writers_slowed(result, &seen.samples);
    killed(result)
        .into_iter()
        .chain([longest_wait(result)])
        .chain(reclaim)
        .chain(writers)
        .chain(look_at)
        .collect()
}

/// The processes that the OOM killer ended, with time and reason.
fn killed(result: &RunResult) -> Vec<String> {
    let mut told: Vec<String> =
        result.kills.iter().take(KILLS).map(|kill| format!("Out of memory {}.", kill_told(kill))).collect();
    if result.kills.len() > KILLS {
        told.push(format!("{} were killed in total.", figures::count(result.kills.len() as u64)));
    }
    told
}

fn longest_wait(result: &RunResult) -> String {
    let Some(worst) =
        result.tasks.iter().max_by_key(|task| task.stalled_ns()).filter(|task| task.stalled_ns() > 0)
    else {
        return "No task waited for memory or devices.".to_string();
    };
    let DelaysResult { memory_high_ns, dirty_pages_ns, .. } = worst.delayed_by;
    let parts = [
        ("in direct reclaim", worst.reclaim_time_ns),
        ("waiting for devices", worst.io_wait_ns),
        ("slowed by memory.high", memory_high_ns),
        ("asleep for dirty pages", dirty_pages_ns),
    ];
    let parts: Vec<String> = parts
        .iter()
        .enumerate()
        // Reclaim and devices are common questions, so their absence is stated, too.
        .filter(|(at, (_, ns))| *at < 2 || *ns > 0)
        .map(|(_, (what, ns))| {
            let share = figures::percent(figures::share(*ns, worst.thread_time_ns));
            format!("{} {what} ({share})", figures::time(*ns))
        })
        .collect();
    let (last, others) = parts.split_last().expect("two are always told");
    format!(
        "{} waited longest: of {} it was {} and {last}. {} of its {} accesses missed.",
        worst.name,
        figures::time(worst.thread_time_ns),
        others.join(", "),
        figures::count(worst.misses()),
        figures::count(worst.accesses),
    )
}

/// The throttled writers, the times, and the amount of dirty pages.
fn writers_slowed(result: &RunResult, samples: &Samples) -> Option<String> {
    let slept = |task: &TaskResult| task.delayed_by.dirty_pages_ns;
    let worst = result.tasks.iter().max_by_key(|task| slept(task)).filter(|task| slept(task) > 0)?;
    let others = result.tasks.iter().filter(|task| slept(task) > 0).count() as u64 - 1;
    let mut says = format!(
        "Writers: {} slept longest until pages were written, {} ({} of its time)",
        worst.name,
        figures::time(slept(worst)),
        figures::percent(figures::share(slept(worst), worst.thread_time_ns)),
    );
    if others > 0 {
        says += &format!("; {} slept, too", figures::counted(others, "other task"));
    }
    let sleeps = samples.marks.of(Mark::WriterSleeps);
    if let (Some(first), Some(last)) = (sleeps.first(), sleeps.last()) {
        let count = sleeps.iter().map(|sleep| sleep.count).sum();
        let (from, to) = (figures::time(first.from.0), figures::time(last.to.0.min(result.end_ns)));
        says += &format!("; {} between {from} and {to}", figures::counted(count, "sleep"));
    }
    let dirty = unwritten(samples);
    let limits = samples.bytes(Sampled::Vmstat(Stat::NrDirtyThreshold));
    let most = dirty.into_iter().zip(limits).max_by(|one, other| one.0.total_cmp(&other.0));
    // If almost no dirty pages are allowed, each sample may find all of them written.
    if let Some((dirty, limit)) = most.filter(|(dirty, _)| *dirty > 0.0) {
        says += &format!(
            ". When most was dirty or being written, that was {}; the machine's limit was {} then",
            figures::bytes(dirty as u64),
            figures::bytes(limit as u64)
        );
    }
    Some(says + ".")
}

/// Bytes that are dirty or being written, in each row.
fn unwritten(samples: &Samples) -> Vec<f64> {
    let [dirty, writeback] =
        [Stat::NrDirty, Stat::NrWriteback].map(|stat| samples.bytes(Sampled::Vmstat(stat)));
    dirty.into_iter().zip(writeback).map(|(dirty, writeback)| dirty + writeback).collect()
}

/// What tasks waited for, as shares of their time.
fn waits(tasks: &[TaskResult]) -> Bars {
    let timed = tasks.iter().filter_map(|task| Some((task, task.access.as_ref()?)));
    let timed: Vec<(&TaskResult, &AccessResult)> = timed.collect();
    let lost = |at: usize| timed[at].1.lost_ns().saturating_add(timed[at].1.fsync.total_ns);
    let mut shown: Vec<usize> = (0..timed.len()).filter(|&at| lost(at) > 0).collect();
    let waiting = shown.len();
    shown.sort_by_key(|&at| Reverse(lost(at)));
    shown.truncate(TASKS);
    shown.sort_unstable();
    let mut bars = Vec::new();
    for (task, access) in shown.into_iter().map(|at| timed[at]) {
        let causes = access.by_cause.0.iter().map(|(cause, lost)| (cause.title(), lost));
        let fsync = Some(("fsync(2)", &access.fsync)).filter(|(_, calls)| calls.count > 0);
        for (cause, lost) in causes.chain(fsync) {
            let share = figures::share(lost.total_ns, task.thread_time_ns);
            let [p99, longest] = [lost.p99_ns, lost.max_ns].map(figures::time);
            bars.push(Bar {
                name: format!("{}, {cause}", task.name),
                percent: share * 100.0,
                half_width: None,
                is_noise: false,
                verdict: Verdict::Worse,
                text: format!("{}, p99 {p99}, longest {longest}", figures::percent(share)),
            });
        }
    }
    let more = waiting.saturating_sub(TASKS);
    let more = if more > 0 {
        format!(" These {TASKS} tasks lost most; {} lost less.", figures::counted(more as u64, "other"))
    } else {
        String::new()
    };
    Bars {
        title: "What tasks waited for".to_string(),
        says: format!(
            "Shares of each task's time that its accesses lost, by cause, each nanosecond to one; p99 and the longest are of the accesses that \
             lost any time to it.{more}"
        ),
        bars,
    }
}

/// What each node held over time, and which pages were accessed and promoted when.
fn tiers(tiers: &TiersResult) -> Vec<Part> {
    let span = tiers.residency.span.0 as f64 / 1e9;
    let times = 0..tiers.residency.pages.len();
    let line = |node: usize| {
        let tier = if tiers.top_tier[node] { "top tier" } else { "slower" };
        let ys = tiers
            .residency
            .pages
            .iter()
            .map(|pages| pages.get(node).map(|&pages| (pages * PAGE_SIZE) as f64));
        Line { name: format!("node {node}, {tier}"), colour: Colour::nth(node), ys: ys.collect() }
    };
    let residency = Chart {
        title: "Where pages are".to_string(),
        says: "Pages of processes and files on each node.".to_string(),
        x: Axis::linear("time", Unit::Seconds),
        y: Axis::linear("memory", Unit::Bytes),
        xs: times.clone().map(|at| at as f64 * span).collect(),
        lines: (0..tiers.top_tier.len()).map(line).collect(),
        shape: Shape::Stacked,
    };
    (times.len() >= 2).then_some(Part::Chart(residency)).into_iter().collect()
}

/// Which pages were accessed when, and on a machine with tiers which were promoted.
fn heat(result: &RunResult) -> Option<Part> {
    let map = &result.heat;
    let dots = if result.tiers.is_some() { " Dots: pages promoted to the top tier." } else { "" };
    let heat = Heat {
        title: "Accesses by address".to_string(),
        says: format!(
            "Darker: more accesses. One row per {} in use, in order of address: anonymous memory by process, then files by offset. With \
             more than 16,384 pages a sample stands for all.{dots}",
            figures::counted(map.row_pages, "page")
        ),
        span_ns: map.span.0,
        rows: map.rows.clone(),
        accesses: map.accesses.clone(),
        promoted: map.promoted.clone(),
        regions: None,
    };
    (!heat.accesses.is_empty()).then_some(Part::Heat(heat))
}

/// The accesses to what a kdamond monitors, and the regions that it found there.
fn damon_map(number: usize, map: &DamonMap) -> Option<Part> {
    let row_of = |address: u64| address.saturating_sub(map.first) as f64 / map.row_bytes as f64;
    let regions_at = |window: &DamonWindow| {
        let regions = window.regions.iter().map(|region| HeatRegion {
            from: row_of(region.start),
            to: row_of(region.end),
            share: f64::from(region.nr_accesses) / f64::from(window.samples.max(1)),
        });
        RegionsAt { at_ns: window.at.0, regions: regions.collect() }
    };
    let last = map.windows.last()?;
    let columns = map.accesses.first().map_or(0, Vec::len);
    let heat = Heat {
        title: format!("Regions of {}", map.name),
        says: format!(
            "Darker: more accesses. One row per {} of addresses. Lines: edges of DAMON's regions, {} at the end. A line below a row is as long as the share \
             of its samples that found an access. A window is drawn up to its end; {} are shown.",
            figures::bytes(map.row_bytes),
            figures::count(last.regions.len() as u64),
            figures::counted(map.windows.len() as u64, "window"),
        ),
        span_ns: map.span.0,
        rows: (0..map.accesses.len() as u64)
            .map(|row| format!("{:#x}", map.first + row * map.row_bytes))
            .collect(),
        accesses: map.accesses.clone(),
        promoted: vec![vec![0; columns]; map.accesses.len()],
        regions: Some(Regions { number, windows: map.windows.iter().map(regions_at).collect() }),
    };
    (columns > 0).then_some(Part::Heat(heat))
}

/// The whole machine over time: who waited and what happened first, then what memory held, what reclaim did, and what it cost.
fn over_time(seen: &Seen, end_ns: u64) -> Vec<Part> {
    let (mut lanes, mut reclaim, mut latencies) = (Vec::new(), Vec::new(), Vec::new());
    let pictures = if seen.heard.is_silent() { Vec::new() } else { seen.heard.pictures() };
    for part in pictures {
        match &part {
            Part::Lanes(_) => lanes.push(part),
            Part::Chart(chart) if chart.shape == Shape::Points => latencies.push(part),
            _ => reclaim.push(part),
        }
    }
    let samples = &seen.samples;
    let mut parts = lanes;
    parts.extend(marks(samples, end_ns).map(Part::Lanes));
    // Two rows make a step.
    if samples.times().len() >= 2 {
        let over_time = OverTime { samples, xs: samples.times() };
        parts.extend(over_time.memory().into_iter().flatten());
        parts.append(&mut reclaim);
        parts.extend(over_time.zswap().into_iter().flatten());
        parts.extend(over_time.pressure_and_load().into_iter().flatten());
    }
    parts.append(&mut reclaim);
    parts.append(&mut latencies);
    parts
}

/// What happened at single moments, a lane for each kind.
fn marks(samples: &Samples, end_ns: u64) -> Option<Lanes> {
    let kinds = Mark::ALL.into_iter().filter(|mark| !samples.marks.of(*mark).is_empty());
    let (mut names, mut spans) = (Vec::new(), Vec::new());
    for mark in kinds {
        let (name, what, colour) = match mark {
            Mark::KswapdWoken => ("kswapd woken", "kswapd was woken", Colour::KSWAPD),
            Mark::Throttled => ("reclaim throttled", "a reclaimer waited for others", Colour::MEMCG),
            Mark::WriterSleeps => ("writers asleep", "a writer slept for dirty pages", Colour::nth(3)),
            Mark::OomKill => ("out of memory", "the OOM killer ended a task", Colour::HARM),
        };
        let lane = names.len();
        names.push(name.to_string());
        spans.extend(samples.marks.of(mark).iter().map(|marked| {
            let Marked { from, to, count } = *marked;
            // A sleep need not be over when the run is.
            let at = |time: pageout_engine::Nanos| time.0.min(end_ns) as f64 / 1e9;
            let says = match count {
                1 if from == to => format!("{what} at {:.6} s", at(from)),
                1 => format!("{what} from {:.6} to {:.6} s", at(from), at(to)),
                _ => {
                    format!("{what} {} times from {:.6} to {:.6} s", figures::count(count), at(from), at(to))
                }
            };
            Span { lane, from: at(from), to: at(to), colour, says }
        }));
    }
    (!names.is_empty()).then(|| Lanes {
        title: "What happened to memory, and when".to_string(),
        says: "Each mark is a moment, or as long as a writer slept; of very many, neighbours are joined. Point at one to see how many it stands for."
            .to_string(),
        x: (0.0, end_ns as f64 / 1e9),
        names,
        spans,
    })
}

/// Limits that are not far above all there ever was of what they limit; `top` stands for what of them is.
fn near(limits: [(&str, Colour, Vec<f64>); 2], top: f64) -> impl Iterator<Item = (&str, Colour, Vec<f64>)> {
    let near = limits.into_iter().filter(move |(.., ys)| ys.iter().any(|y| *y < top));
    near.map(move |(name, colour, ys)| (name, colour, ys.into_iter().map(|y| y.min(top)).collect()))
}

/// Samples, as charts want them.
struct OverTime<'a> {
    samples: &'a Samples,
    xs: Vec<f64>,
}

impl OverTime<'_> {
    /// A chart; nothing where all of its lines are 0 throughout.
    fn chart<N: Into<String>>(
        &self,
        title: &str,
        says: &str,
        unit: Unit,
        shape: Shape,
        lines: Vec<(N, Colour, Vec<f64>)>,
    ) -> Option<Part> {
        let lines = lines.into_iter().filter(|(.., ys)| ys.iter().any(|y| *y != 0.0));
        let lines = lines.map(|(name, colour, ys)| {
            let ys = ys.into_iter().map(|y| Some((y * 1e4).round() / 1e4)).collect();
            Line { name: name.into(), colour, ys }
        });
        let lines: Vec<Line> = lines.collect();
        (!lines.is_empty()).then(|| {
            Part::Chart(Chart {
                title: title.to_string(),
                says: says.to_string(),
                x: Axis::linear("time (s)", Unit::Seconds),
                y: Axis::linear("", unit),
                xs: self.xs.clone(),
                lines,
                shape,
            })
        })
    }

    /// What memory held.
    fn memory(&self) -> [Option<Part>; 3] {
        let bytes = |stat: Stat| self.samples.bytes(Sampled::Vmstat(stat));
        let mark = |level: Level| self.samples.bytes(Sampled::Watermark(level));
        let (free, high) = (bytes(Stat::NrFreePages), mark(Level::High));
        // If only the pages of limited cgroups are in use, free memory is far above the watermarks.
        let top = high.iter().copied().fold(0.0, f64::max) * 3.0;
        let is_near = free.iter().any(|free| *free < top);
        let free = free.into_iter().map(|free| free.min(top)).collect();
        let marks = self.chart(
            "Free memory and watermarks",
            "Below the low watermark kswapd is woken, and frees pages up to the high watermark. Below the minimum, tasks reclaim \
             themselves. The axis ends at three times the high watermark; joined steps show the lowest value.",
            Unit::Bytes,
            Shape::Lowest,
            vec![
                ("free", Colour::nth(5), free),
                ("high", Colour::KSWAPD, high),
                ("low", Colour::MEMCG, mark(Level::Low)),
                ("min", Colour::HARM, mark(Level::Min)),
            ],
        );
        [
            marks.filter(|_| is_near),
            self.chart(
                "What memory holds",
                "The lists of the whole machine, on top of each other.",
                Unit::Bytes,
                Shape::Stacked,
                vec![
                    ("active anon", Colour::nth(0), bytes(Stat::NrActiveAnon)),
                    ("inactive anon", Colour::nth(4), bytes(Stat::NrInactiveAnon)),
                    ("active file", Colour::nth(1), bytes(Stat::NrActiveFile)),
                    ("inactive file", Colour::nth(2), bytes(Stat::NrInactiveFile)),
                ],
            ),
            self.dirty(),
        ]
    }

    /// Dirty pages under the limits of the machine, as far as they came near them.
    fn dirty(&self) -> Option<Part> {
        let bytes = |stat: Stat| self.samples.bytes(Sampled::Vmstat(stat));
        let unwritten = unwritten(self.samples);
        // Compared with a distant limit, dirty pages would be a line on the axis.
        let top = unwritten.iter().copied().fold(0.0, f64::max) * 3.0;
        let limits = [
            ("limit", Colour::HARM, Stat::NrDirtyThreshold),
            ("background limit", Colour::MEMCG, Stat::NrDirtyBackgroundThreshold),
        ];
        let mut lines = vec![
            ("dirty or being written", Colour::nth(3), unwritten),
            ("being written", Colour::nth(6), bytes(Stat::NrWriteback)),
        ];
        lines.extend(near(limits.map(|(name, colour, stat)| (name, colour, bytes(stat))), top));
        self.chart(
            "Dirty pages",
            "Reclaim can't take them before they are written. From the machine's background limit on the flusher writes; half way to the \
             limit and beyond, writers are throttled. A cgroup has limits of its own. Three times as much as ever was \
             dirty stands for any limit beyond that.",
            Unit::Bytes,
            Shape::Levels,
            lines,
        )
        // Without anything dirty there is nothing that limits would be limits of.
        .filter(|_| top > 0.0)
    }

    /// zswap's pool under its limits, as far as it came near them, and what went in and out.
    fn zswap(&self) -> [Option<Part>; 2] {
        let bytes = |size: ZswapSize| self.samples.bytes(Sampled::Zswap(size));
        let rate = |stat: Stat| self.samples.rates(Sampled::Vmstat(stat));
        let stored = bytes(ZswapSize::Stored);
        let top = stored.iter().copied().fold(0.0, f64::max) * 3.0;
        let limits = [
            ("limit", Colour::HARM, bytes(ZswapSize::Limit)),
            ("accept threshold", Colour::MEMCG, bytes(ZswapSize::Accept)),
        ];
        let mut lines = vec![
            ("pool", Colour::nth(5), bytes(ZswapSize::Pool)),
            ("pages stored in it", Colour::nth(4), stored),
        ];
        lines.extend(near(limits, top));
        [
            self.chart(
                "What zswap holds",
                "Memory that its pool takes, and what the pages in it take elsewhere. At its limit it stores nothing more before it has shrunk \
                 to the accept threshold. Three times as much as ever was stored stands for any limit beyond that.",
                Unit::Bytes,
                Shape::Levels,
                lines,
            )
            .filter(|_| top > 0.0),
            self.chart(
                "Pages stored in zswap and loaded a second",
                "Pages that are written back go to the swap device, to free memory.",
                Unit::Count,
                Shape::Stacked,
                vec![
                    ("stored (zswpout)", Colour::nth(3), rate(Stat::Zswpout)),
                    ("loaded (zswpin)", Colour::nth(4), rate(Stat::Zswpin)),
                    ("written back (zswpwb)", Colour::nth(6), rate(Stat::Zswpwb)),
                ],
            ),
        ]
    }

    /// What tasks waited for, and what devices had to do.
    fn pressure_and_load(&self) -> Vec<Option<Part>> {
        let rate = |stat: Stat| self.samples.rates(Sampled::Vmstat(stat));
        let share = |sampled: Sampled| -> Vec<f64> {
            self.samples.rates(sampled).iter().map(|ns| (ns / 1e9).min(1.0)).collect()
        };
        let pressure = |title: &str, says: &str, resource: Resource| {
            let lines = vec![
                ("some", Colour::MEMCG, share(Sampled::Pressure(resource, Extent::Some))),
                ("full", Colour::HARM, share(Sampled::Pressure(resource, Extent::Full))),
            ];
            self.chart(title, says, Unit::Number, Shape::Levels, lines)
        };
        let of_devices = |load: Load| {
            let names = self.samples.devices().iter().enumerate();
            names.map(move |(at, name)| (name.clone(), at, Sampled::Device(at, load)))
        };
        let busy = of_devices(Load::Busy).map(|(name, at, sampled)| (name, Colour::nth(at), share(sampled)));
        let busy: Vec<_> = busy.collect();
        let pages =
            [(Load::Read, "read"), (Load::Written, "written")].into_iter().flat_map(|(load, what)| {
                of_devices(load).map(move |(name, at, sampled)| {
                    // Writes of a device are a colour further than its reads.
                    let colour = Colour::nth(at * 2 + usize::from(load == Load::Written) + 4);
                    let bytes = self.samples.rates(sampled).iter().map(|pages| pages * 4096.0).collect();
                    (format!("{name}, {what}"), colour, bytes)
                })
            });
        let pages: Vec<_> = pages.collect();
        vec![
            pressure(
                "Memory pressure",
                "The share of time in which some task, or every one that had work, waited for memory; 1 is always.",
                Resource::Memory,
            ),
            pressure(
                "I/O pressure",
                "The share of time in which some task, or every one that had work, waited for a device.",
                Resource::Io,
            ),
            pressure("CPU pressure", "The share of time in which some task waited for a CPU.", Resource::Cpu),
            self.chart(
                "Devices at work",
                "Share of time in which a device is busy. At 1, tasks that need it wait in its queue.",
                Unit::Number,
                Shape::Levels,
                busy,
            ),
            self.chart("What devices move a second", "", Unit::Bytes, Shape::Stacked, pages),
            self.chart(
                "Refaults a second",
                "Pages that came back soon after they were evicted.",
                Unit::Count,
                Shape::Stacked,
                vec![
                    ("anon", Colour::nth(0), rate(Stat::WorkingsetRefaultAnon)),
                    ("file", Colour::nth(1), rate(Stat::WorkingsetRefaultFile)),
                ],
            ),
            self.chart(
                "Pages swapped a second",
                "",
                Unit::Count,
                Shape::Stacked,
                vec![
                    ("in", Colour::nth(4), rate(Stat::Pswpin)),
                    ("out", Colour::nth(3), rate(Stat::Pswpout)),
                ],
            ),
        ]
    }
}
