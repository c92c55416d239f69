//! `pageout replay`: the shortest way from a trace to an answer. Each size is a scenario made in memory.

pub(crate) mod args; // what can be asked
mod bench; // textbook policies, and several policies or traces in one table
mod tenants; // several that share a memory
mod curve;
pub(super) mod readahead; // what is read ahead, and figures below a bound for it
#[cfg(target_os = "linux")]
mod live; // on real files
mod page; // the curves as pictures
pub(super) mod setup; // the scenario of a size

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{Problem, Size};
use pageout_sim::{Cause, Pace};
use pageout_study::Failed;
use pageout_study::bench::{Policy, parse_policies, parse_sizes};
use pageout_study::result::notes::{self, Note};
use pageout_study::result::own_policies;
use pageout_study::result::requests;
use pageout_study::result::run_result::{RunResult, TaskResult, counter};
use pageout_study::result::variants::{Extent, Made, Plan, Runs};
use pageout_study::scenario::nearest::nearest;
use pageout_workload::trace::{self, Footprint, Interpretation, Loaded, Part, Requests};
use pageout_workload::{ReadOptions, TraceError};
use serde_json::{Value, json};

use crate::commands::trace::{read_table, remark_interpretation};
use crate::failure::{Failure, Outcome};
use crate::own;
use crate::print::progress::{Terminal, name_of};
use crate::print::{figures, output, progress, remarks, table};
use crate::report::{Picture, check_name};
use args::{ChannelArg, ReplayArgs, SwapArg};
use readahead::Bound;
use setup::{Accesses, Setup};

/// Least memory that is worth simulating: one batch of reclaim and the page being read.
pub(super) const PAGES_MIN: u64 = 64;

/// More percentages than these are not told one by one what they come to.
const PERCENTAGES_TOLD: usize = 12;

/// Replays traces under every policy at every size, and prints the table, or the curve.
pub(crate) fn run(args: &ReplayArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let read = read_table(&args.reading)?;
    let policies = own::policies(parse_policies(&args.policy))?;
    // The options are checked before a trace is read, which may take a while.
    for policy in &policies {
        let Policy::Machine { profile, .. } = policy else { continue };
        let setup = Setup { args, trace: &args.traces[0], profile, read: &read, has_neighbours: true };
        let mut template = setup.scenario(&Footprint::default(), PAGES_MIN)?;
        template.task[0].object.push(setup.object(Some(1)));
        check(&template.validate())?;
    }
    let limits = parse_sizes(&args.memory)?;
    if !args.live.is_empty() {
        return on_files(args, &policies, &limits);
    }
    if let Some(by) = &args.by {
        return tenants::tenants(args, by, &read, &policies, &limits);
    }
    match (&args.traces[..], &policies[..]) {
        ([trace], [Policy::Machine { name, profile }]) if args.warm_up.is_none() && args.sample.is_none() => {
            let has_neighbours = has_neighbours(trace, &read)?;
            alone(name, Setup { args, trace, profile, read: &read, has_neighbours }, &limits)
        }
        _ => {
            let policies = readahead::with_bound(args, &read, policies)?;
            bench::bench(args, &read, &policies, &limits)
        }
    }
}

#[cfg(target_os = "linux")]
fn on_files(args: &ReplayArgs, policies: &[Policy], limits: &[Limit]) -> Outcome {
    live::replay(args, policies, limits)
}

#[cfg(not(target_os = "linux"))]
fn on_files(_: &ReplayArgs, _: &[Policy], _: &[Limit]) -> Outcome {
    Err(Failure::Input(anyhow::anyhow!("--live: the live page cache is for Linux")))
}

/// Whether pages of a trace have neighbours. Pages of a program's memory have.
fn has_neighbours(trace: &Path, read: &pageout_sim::scenario::Table) -> anyhow::Result<bool> {
    if pageout_study::bench::kept(trace).is_some() {
        return Ok(true);
    }
    let options = read.options().map_err(|error| anyhow::anyhow!("--read: {}", error.message))?;
    Ok(trace::has_neighbours(trace, &options)?)
}

/// One policy of the machine and one trace: all that is known of each size.
fn alone(policy: &str, setup: Setup, limits: &[Limit]) -> Outcome {
    let Setup { args, trace, .. } = setup;
    let options = setup.object(Some(1)).read_options().map_err(|error| anyhow::anyhow!("{error}"))?;
    let interpretation =
        remark_interpretation(trace, &options).map_err(|error| anyhow::anyhow!("{error}"))?;
    let terminal = Terminal::new(&args.output);
    let Some(accesses) = accesses(args, trace, limits.len(), &options, &terminal)? else {
        let told = "interrupted while the trace was read".to_string();
        return output::no_result(&args.output, pageout_study::Error::Interrupted(told).into(), Value::Null);
    };
    let loaded = &accesses.loaded;
    let footprint = &loaded.footprint;
    if footprint.accesses == 0 {
        return Err(Failure::Input(anyhow::anyhow!("{} has no accesses to replay", trace.display())));
    }
    remark_later(trace, &interpretation, loaded.requests.as_ref());

    let sizes = limits
        .iter()
        .map(|limit| pages(*limit, footprint.distinct_pages(), PAGES_MIN))
        .collect::<anyhow::Result<Vec<u64>>>()?;
    let runs =
        sizes.iter().map(|&pages| setup.replaying(&accesses, pages)).collect::<anyhow::Result<Vec<_>>>()?;
    for run in &runs {
        check(&run.validate())?;
    }
    if args.print_scenario {
        if runs.len() > 1 {
            let message = "--print-scenario prints one scenario: give --memory one size";
            return Err(Failure::Input(anyhow::anyhow!(message)));
        }
        let text =
            toml_edit::ser::to_string_pretty(&runs[0]).context("the scenario can't be written as TOML")?;
        let base = match limits[0] {
            Limit::Percent(percent) => {
                let share = figures::share_of_pages(percent, footprint.distinct_pages(), sizes[0]);
                format!("# memory.max is {share}.\n")
            }
            _ => String::new(),
        };
        return output::print(&format!("{base}{text}"));
    }
    let plan = Plan { name: name_of(trace), repeat: 1, jobs: args.parallel.jobs, watcher: &terminal };
    let Made { variants, extent } = plan.run(&runs)?;
    let bounds = readahead::bounds(setup, loaded, &options, &sizes, &terminal)?;
    let points = sizes.into_iter().zip(limits).zip(variants);
    let points = points.map(|((pages, &limit), runs)| Point { pages, limit, runs });
    let replayed = Replayed {
        setup,
        policy,
        interpretation: &interpretation,
        loaded,
        extent,
        points: points.collect(),
        bounds,
    };

    let mut failures: Vec<Failed> = replayed.points.iter().flat_map(|point| point.failures(args)).collect();
    if replayed.points.iter().all(|point| point.result().is_none()) {
        let failure: Failure = match failures.len() {
            1 if replayed.points.len() == 1 => failures.remove(0).into(),
            _ => replayed.extent.nothing("every size failed", &failures).into(),
        };
        return output::no_result(&args.output, failure, Value::Null);
    }
    if let Some(path) = &args.page.report {
        page::page(&replayed, &runs[0])?.write(path)?;
    }
    match replayed.extent.verdict(&failures) {
        Err(failure) if args.output.is_data() => {
            output::no_result(&args.output, failure.into(), to_json(&replayed))
        }
        Ok(()) if args.output.is_data() => output::print_json(&to_json(&replayed)),
        // As in a comparison, the sizes that can be simulated have their figures.
        outcome => output::print_text(&to_text(&replayed)).and(outcome.map_err(Failure::from)),
    }
}

/// What the trace touches, and its accesses if it is to be replayed more than once. A `.pgt` says what it touches, so that one replay
/// can begin at once and read as it goes.
fn loaded(
    args: &ReplayArgs,
    path: &Path,
    replays: usize,
    options: &ReadOptions,
) -> Result<Loaded, TraceError> {
    let replays = if args.print_scenario { 0 } else { replays };
    if replays <= 1
        && let Some(footprint) = trace::header(path, options)?.and_then(|header| header.footprint)
    {
        return Ok(Loaded {
            has_neighbours: trace::has_neighbours(path, options)?,
            ..Loaded::of(footprint, None)
        });
    }
    let bar = progress::bar(&args.output, None, &format!("reading {}", name_of(path)));
    let loaded = trace::load(path, options, args.trace_memory.0, &mut |accesses| {
        bar.set_position(accesses);
    });
    bar.finish_and_clear();
    loaded
}

/// What is replayed, with its times in an open loop. Nothing if a signal came meanwhile.
fn accesses(
    args: &ReplayArgs,
    path: &Path,
    replays: usize,
    options: &ReadOptions,
    terminal: &Terminal,
) -> anyhow::Result<Option<Accesses>> {
    let Some(speed) = args.timed else {
        let loaded = loaded(args, path, replays, options)?;
        return Ok(Some(Accesses { loaded: Arc::new(loaded), pace: None }));
    };
    let Some(parted) = tenants::parted(args, path, options, None, terminal)? else { return Ok(None) };
    if parted.went_back > 0 {
        output::remark(&format!(
            "note: {}: the times of {} go back; those start with the one before",
            path.display(),
            figures::counted(parted.went_back, "access")
        ));
    }
    let whole = parted.parts.into_iter().next();
    Ok(Some(match whole {
        Some(Part { loaded, times, .. }) => {
            let times = times.expect("times were asked for");
            let loaded = Loaded { requests: parted.requests, ..(*loaded).clone() };
            Accesses { loaded: Arc::new(loaded), pace: Some(Pace::arrivals(&times, speed)) }
        }
        None => {
            let loaded = Loaded::of(Footprint::default(), None);
            Accesses { loaded: Arc::new(loaded), pace: None }
        }
    }))
}

/// All that was found out.
struct Replayed<'a> {
    setup: Setup<'a>,
    /// The policy, as it was asked for.
    policy: &'a str,
    interpretation: &'a Interpretation,
    loaded: &'a Loaded,
    extent: Extent,
    points: Vec<Point>,
    /// Misses of the bound at each size, where the policy reads ahead; none where there is no need of one.
    bounds: Option<Vec<Option<Bound>>>,
}

/// One size and what came of it.
pub(super) struct Point {
    pub(super) pages: u64,
    /// As it was asked for.
    pub(super) limit: Limit,
    /// One, unless a signal came before it.
    pub(super) runs: Runs,
}

impl Point {
    /// Why it has no result, with what helps.
    fn failures(&self, args: &ReplayArgs) -> Vec<Failed> {
        let size = figures::bytes(self.pages * 4096);
        let failures = self.runs.failures.iter();
        let told = failures.map(|failure| {
            let mut failure = failure.of(&format!("with {size} of memory"));
            failure.message += advice(args);
            failure
        });
        told.collect()
    }

    fn result(&self) -> Option<&RunResult> {
        self.runs.results.first()
    }

    pub(super) fn figures(&self) -> Option<Figures> {
        let result = self.result()?;
        let sum = |name: &str| -> u64 {
            result.memcgs.iter().map(|memcg| counter(&memcg.counters, name).max(0) as u64).sum()
        };
        let misses = result.tasks.iter().map(TaskResult::misses).sum();
        Some(Figures {
            misses,
            miss_ratio: figures::share(misses, result.accesses),
            refaults: sum("workingset_refault_file") + sum("workingset_refault_anon"),
            device_pages_read: result.devices.iter().map(|device| device.pages_read).sum(),
            throughput_per_s: result.tasks.iter().map(|task| task.throughput_per_s).sum(),
            end_ns: result.end_ns,
            reclaim_p99_ns: result.reclaim.p99_ns,
            open_loop: OpenLoop::of(result),
            own: own_policies::named(&result.own_policies),
        })
    }
}

/// What only an open loop tells: how long accesses took from the time at which they arrived.
pub(super) struct OpenLoop {
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    /// Of those that waited for their turn, the share of all.
    waited_share: f64,
    /// Time that accesses waited for their turn, over all of them.
    wait_mean_ns: f64,
    /// Time that the task was busy with accesses.
    busy_ns: u64,
    busy_share: f64,
}

impl OpenLoop {
    /// Of the one task of a replay; nothing in a closed loop, where nobody finds out how long accesses take.
    fn of(result: &RunResult) -> Option<OpenLoop> {
        let [task] = &result.tasks[..] else { return None };
        let access = task.access.as_ref()?;
        let (waited, wait_ns) =
            access.by_cause.get(Cause::Turn).map_or((0, 0), |turn| (turn.count, turn.total_ns));
        let busy_ns = access.all.total_ns - wait_ns;
        Some(OpenLoop {
            p50_ns: access.all.p50_ns,
            p99_ns: access.all.p99_ns,
            p999_ns: access.all.p999_ns,
            waited_share: figures::share(waited, access.all.count),
            wait_mean_ns: wait_ns as f64 / access.all.count.max(1) as f64,
            busy_ns,
            busy_share: figures::share(busy_ns, result.end_ns),
        })
    }

    /// Headings of what a table shows of it.
    pub(super) const HEADINGS: [&str; 5] = ["p50", "p99", "p99.9", "waited", "busy"];

    pub(super) fn cells(&self) -> [String; 5] {
        [
            figures::time(self.p50_ns),
            figures::time(self.p99_ns),
            figures::time(self.p999_ns),
            figures::percent(self.waited_share),
            figures::percent(self.busy_share),
        ]
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "p50_ns": self.p50_ns,
            "p99_ns": self.p99_ns,
            "p999_ns": self.p999_ns,
            "waited_share": self.waited_share,
            "wait_mean_ns": self.wait_mean_ns,
            "busy_ns": self.busy_ns,
            "busy_share": self.busy_share,
        })
    }
}

/// What a line of the table shows.
pub(super) struct Figures {
    pub(super) misses: u64,
    pub(super) miss_ratio: f64,
    pub(super) refaults: u64,
    pub(super) device_pages_read: u64,
    throughput_per_s: f64,
    pub(super) end_ns: u64,
    pub(super) reclaim_p99_ns: u64,
    pub(super) open_loop: Option<OpenLoop>,
    /// What an own policy tells of itself.
    pub(super) own: Vec<(String, f64)>,
}

/// Figures that a policy tells of itself, with the size at which it does: a line a figure.
fn own_figures<'a>(
    policy: &str,
    sizes: impl Iterator<Item = (String, &'a [(String, f64)])> + Clone,
) -> String {
    let mut text = String::new();
    let Some((_, first)) = sizes.clone().find(|(_, own)| !own.is_empty()) else { return text };
    for (name, _) in first {
        let value = |(size, own): (String, &[(String, f64)])| {
            let (_, value) = own.iter().find(|(other, _)| other == name)?;
            Some(format!("{value} ({size})"))
        };
        let values: Vec<String> = sizes.clone().filter_map(value).collect();
        let _ = writeln!(text, "{policy} tells {name}: {}", values.join(", "));
    }
    text
}

/// The same as data.
pub(super) fn own_json(own: &[(String, f64)]) -> Value {
    own.iter().map(|(name, of)| (name.clone(), json!(of))).collect()
}

/// A limit in pages, `least` of them at least; a percentage is of the distinct pages that the trace touches.
pub(super) fn pages(limit: Limit, distinct_pages: u64, least: u64) -> anyhow::Result<u64> {
    let pages = limit.pages(distinct_pages).expect("no limit was refused when the option was read");
    let given = match limit {
        Limit::Percent(percent) => format!("{percent}%"),
        Limit::Size(size) => size.to_string(),
        Limit::Max => "max".to_string(),
    };
    anyhow::ensure!(
        pages >= least,
        "--memory {given} is {} of the {} distinct pages that the trace touches; the least that can be simulated is {} ({})",
        figures::counted(pages, "page"),
        figures::count(distinct_pages),
        figures::counted(least, "page"),
        Size::from_pages(least)
    );
    Ok(pages)
}

/// Problems of a scenario that nobody wrote, told in terms of the options that it was made of.
pub(super) fn check(problems: &[Problem]) -> anyhow::Result<()> {
    let Some(problem) = problems.first() else { return Ok(()) };
    let option = match problem.key.as_str() {
        "kernel.profile" => "--policy",
        "device[0].preset" => "--device",
        "device[0].read_ahead_kb" => "--read-ahead-kb",
        "task[0].think_time" => "--think-time",
        key if key.contains(".read") => "--read",
        key if key.ends_with(".size") => "the trace's pages (try --read page_ids=dense)",
        key if key.contains("memory") => "--memory",
        key => key,
    };
    let hint = problem
        .given
        .as_deref()
        .and_then(|given| nearest(given, problem.candidates.iter().map(String::as_str)));
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    anyhow::bail!("{option}: {}{hint}{help}", problem.message)
}

/// What helps against running out of memory.
fn advice(args: &ReplayArgs) -> &'static str {
    if args.channel == ChannelArg::Anonymous && args.swap == SwapArg::None {
        "\n  anonymous pages can only leave memory by swap: add --swap disk or --swap zram"
    } else {
        ""
    }
}

/// What was replayed, on what, and what each percentage is of.
fn heading(replayed: &Replayed) -> String {
    let Replayed { setup, policy, loaded, points, .. } = replayed;
    let (args, footprint) = (setup.args, &loaded.footprint);
    let mut text = format!(
        "{}, channel {}, {policy}, {}\n",
        touched(setup.trace, footprint.accesses, footprint.distinct_pages()),
        setup.object(None).channel.name(),
        args.device
    );
    text += &loop_line(args);
    text += &machine(args, footprint.writes(), setup.has_neighbours);
    text += &requests_lines(loaded.requests.as_ref(), are_deletes_played(args));
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
            args.trace_memory
        );
    }
    text
}

/// A trace, and what it touches.
fn touched(trace: &Path, accesses: u64, distinct_pages: u64) -> String {
    format!(
        "{}: {} accesses to {} distinct pages ({})",
        trace.display(),
        figures::count(accesses),
        figures::count(distinct_pages),
        figures::bytes(distinct_pages * 4096)
    )
}

/// Lines on what the trace says that is no access.
fn requests_lines(requests: Option<&Requests>, are_deletes_played: bool) -> String {
    let says = requests.map(|of| requests::says(of, are_deletes_played)).unwrap_or_default();
    says.into_iter().map(|says| says + "\n").collect()
}

/// Whether deletes end pages in the machine: files can be truncated.
fn are_deletes_played(args: &ReplayArgs) -> bool {
    args.channel != ChannelArg::Anonymous
}

/// What may have been meant otherwise, as far as was read.
fn doubts(interpretation: &Interpretation, requests: Option<&Requests>) -> Vec<String> {
    let of_all = requests.map(|of| &of.doubts).filter(|doubts| !doubts.is_empty());
    of_all.unwrap_or(&interpretation.doubts).clone()
}

/// Remarks on what only the rest of a trace has shown.
fn remark_later(trace: &Path, interpretation: &Interpretation, requests: Option<&Requests>) {
    let later = requests.into_iter().flat_map(|of| of.doubts.iter().skip(interpretation.doubts.len()));
    later.for_each(|doubt| output::remark(&format!("note: {}: {doubt}", trace.display())));
}

/// A line on what percentages are of.
fn percentages(distinct_pages: u64) -> String {
    format!("percentages are of the {} distinct pages\n", figures::count(distinct_pages))
}

/// A line on when accesses start.
fn loop_line(args: &ReplayArgs) -> String {
    match args.timed {
        None => "closed loop: an access starts when the one before has ended\n".to_string(),
        Some(speed) => format!(
            "open loop: an access starts at its time in the trace{}; what can't waits for its turn{}\n",
            if speed == 1.0 { String::new() } else { format!(", {speed} times as fast") },
            if args.by.is_some() { "" } else { ", and p50, p99, p99.9 contain the wait" }
        ),
    }
}

/// Lines on what the machine makes of a trace.
fn machine(args: &ReplayArgs, writes: u64, has_neighbours: bool) -> String {
    let mut text = String::new();
    if writes > 0 && args.channel != ChannelArg::Anonymous {
        let writes = figures::count(writes);
        let _ = match args.writes {
            true => writeln!(
                text,
                "{writes} writes dirty whole pages, which are written back; metadata, the journal and fsync are not modelled"
            ),
            false => writeln!(text, "{writes} writes are replayed as reads; --writes lets them dirty pages"),
        };
    }
    text += &readahead::line(args, has_neighbours);
    text += "memory is for these pages alone: the kernel's own is not charged (kernel.memcg.kmem = false)\n";
    text
}

/// The column of the bound: right behind the miss ratio.
const BOUND_COLUMN: usize = 4;

/// A line for each size.
fn rows(Replayed { setup, loaded, points, bounds, .. }: &Replayed) -> Vec<Vec<String>> {
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
    if setup.args.timed.is_some() {
        rows[0].extend(OpenLoop::HEADINGS.map(str::to_string));
    }
    let columns = rows[0].len();
    for (at, point) in points.iter().enumerate() {
        let mut row = vec![
            figures::bytes(point.pages * 4096),
            figures::percent(figures::share(point.pages, loaded.footprint.distinct_pages())),
            readahead::shown(setup.args, setup.has_neighbours),
        ];
        match point.figures() {
            Some(of) => {
                row.extend([
                    format!("{:.4}", of.miss_ratio),
                    figures::count(of.misses),
                    figures::time(of.end_ns),
                    figures::rate(of.throughput_per_s).trim_end_matches("/s").trim_end().to_string(),
                    figures::count(of.device_pages_read),
                    figures::count(of.refaults),
                    figures::time(of.reclaim_p99_ns),
                ]);
                if let Some(bounds) = bounds {
                    row.insert(BOUND_COLUMN, bounds[at].as_ref().map_or("-".to_string(), Bound::shown));
                }
                row.extend(of.open_loop.iter().flat_map(OpenLoop::cells));
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

fn to_text(replayed: &Replayed) -> String {
    let points = &replayed.points;
    let mut text = heading(replayed);
    text += &remarks::warning(&replayed.extent);
    text.push('\n');
    text += &table::layout(&rows(replayed), 0);
    text += &readahead::below(&replayed.below(), setup_window(replayed));
    let noted: Vec<(String, &[Note])> = points
        .iter()
        .filter_map(|point| Some((figures::bytes(point.pages * 4096), point.result()?.notes.as_slice())))
        .collect();
    let noted = remarks::notes(&notes::of_several(noted.iter().map(|(size, notes)| (size.as_str(), *notes))));
    if !noted.is_empty() {
        let _ = write!(text, "\n{noted}");
    }
    let measured: Vec<(u64, Figures)> =
        points.iter().filter_map(|point| Some((point.pages, point.figures()?))).collect();
    let own = measured.iter().map(|(pages, of)| (figures::bytes(pages * 4096), &of.own[..]));
    let own = own_figures(replayed.policy, own);
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
        text += "\nruntime over memory\n";
        text += &curve::plot(&curve(|of| of.end_ns as f64), memory, |ns| figures::time(ns as u64));
    }
    text
}

/// How far ahead it reads at most, in KiB.
fn setup_window(Replayed { setup, .. }: &Replayed) -> u32 {
    setup.args.window_kb(setup.has_neighbours)
}

impl Replayed<'_> {
    /// Where the policy misses less than the bound.
    fn below(&self) -> Vec<readahead::Below> {
        let bounds = self.bounds.iter().flatten();
        let below = |(point, bound): (&Point, &Option<Bound>)| {
            let (of, bound) = (point.figures()?, bound.as_ref()?);
            bound.is_above(of.miss_ratio).then(|| readahead::Below {
                policy: self.policy.to_string(),
                memory: figures::bytes(point.pages * 4096),
                miss_ratio: of.miss_ratio,
                bound: bound.miss_ratio,
            })
        };
        self.points.iter().zip(bounds).filter_map(below).collect()
    }
}

fn to_json(replayed: &Replayed) -> Value {
    let Replayed { setup, policy, interpretation, loaded, points, bounds, .. } = replayed;
    let args = setup.args;
    let footprint = &loaded.footprint;
    let window_kb = setup_window(replayed);
    let list = points.iter().enumerate().map(|(at, point)| {
        let of = point.figures();
        let bound = bounds.as_ref().and_then(|bounds| bounds[at].as_ref());
        let of = of.as_ref();
        let mut json = json!({
            "memory_pages": point.pages,
            "memory_bytes": point.pages * 4096,
            "share_of_pages": figures::share(point.pages, footprint.distinct_pages()),
            "read_ahead_kb": window_kb,
            "complete": of.is_some(),
            "miss_ratio": of.map(|of| of.miss_ratio),
            "bound_miss_ratio": bound.map(|bound| bound.miss_ratio),
            "is_below_bound": bound.zip(of).map(|(bound, of)| bound.is_above(of.miss_ratio)),
            "misses": of.map(|of| of.misses),
            "runtime_ns": of.map(|of| of.end_ns),
            "device_pages_read": of.map(|of| of.device_pages_read),
            "refaults": of.map(|of| of.refaults),
            "open_loop": of.and_then(|of| of.open_loop.as_ref()).map(OpenLoop::json),
            "result": point.result(),
        });
        if let Some(of) = of.filter(|of| !of.own.is_empty()) {
            json["policy_figures"] = own_json(&of.own);
        }
        json
    });
    let are_writes = args.writes || args.channel == ChannelArg::Anonymous;
    let replayed_as_reads = match (interpretation.tells_writes, are_writes) {
        (_, true) => Some(0),
        // Nobody knows which of its accesses write.
        (false, false) => None,
        (true, false) => Some(footprint.writes()),
    };
    json!({
        "complete": points.iter().all(|point| point.result().is_some()),
        "trace": setup.trace.to_string_lossy(),
        "trace_in_memory": loaded.accesses.is_some(),
        "accesses": footprint.accesses,
        "doubts": doubts(interpretation, loaded.requests.as_ref()),
        "requests": loaded.requests.as_ref().map(requests::json),
        "has_neighbours": setup.has_neighbours,
        "writes_replayed_as_reads": replayed_as_reads,
        "distinct_pages": footprint.distinct_pages(),
        "channel": setup.object(None).channel.name(),
        "policy": policy,
        "device": args.device,
        "read_ahead_kb": window_kb,
        "timed": args.timed,
        "points": list.collect::<Vec<_>>(),
    })
}
