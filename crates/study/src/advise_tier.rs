//! Advice on tiers: how much of its memory a workload can have on slower memory, what has to find its hot pages there, and which knobs matter.
//!
//! ```text
//!   the workload with all its memory fast                              what everything is compared with
//!   ratio x device x source                                            one run each, on all CPUs
//!     ─▶ of each device the least fast memory that loses little enough: the advice
//!        ─▶ each knob of the best source that promotes turned there, one at a time: by how much each matters
//!   the same at half of the scale, on request                          whether the advice is that of the machine
//! ```
//! All of it is run with each seed, and a loss is taken seed by seed: what a seed's own luck is drops out. The first part of each run is left out
//! of it (`warm_up`): as many accesses everywhere, those that all memory fast makes in the warm-up.
//!
//! A source notices that a page of slow memory is in use. The scenario's own settings of nodes, demotion and promotion are ignored.

mod ask; // the whole study, asked and answered
mod nodes; // what the scenario says of its own
mod gain; // why slower memory may gain
mod price; // what memory costs
mod table; // the advice as rows of tables, points of a picture and JSON
mod scale; // the same at half of the scale
mod sources; // who finds hot pages, and the knobs of each
mod story; // the advice in sentences
mod warm_up; // the part of each run that is left out

use std::collections::BTreeSet;

use pageout_sim::scenario::{Node, Scalar, Scenario, Size};
use serde_json::{Value, json};

use crate::error::{Error, Failed, ensure};
use crate::figures;
use crate::result::run_result::RunResult;
use crate::result::spread::Paired;
use crate::result::variants::{Extent, Plan, Runs};
use crate::scenario::switches::{Table, policy_of};
pub use ask::{Answer, Ask, ask};
use price::Prices;
use scale::AtHalf;
use sources::{Knob, SOURCES};
use warm_up::WarmUp;

/// The number of listed knobs.
const KNOBS_TOLD: usize = 3;

/// What is asked, read.
#[derive(Clone, Debug)]
struct Asked {
    /// Total memory, fast and slow, instead of the scenario's.
    memory: Option<Size>,
    /// Classes of slow memory: names of presets.
    devices: Vec<String>,
    /// Fast to slow memory.
    ratios: Vec<Ratio>,
    /// How much longer than with fast memory alone is too long, in percent.
    loss: f64,
    /// What is left out of losses at the beginning of each run.
    warm_up: WarmUp,
    /// What memory costs, if money is asked about.
    prices: Option<Prices>,
    /// True if all is asked again at half of the scale.
    checks_scale: bool,
    /// True if all sources are compared, and no knob is changed.
    every_source: bool,
}

/// Fast to slow memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ratio {
    fast: u64,
    slow: u64,
}

impl Ratio {
    /// The part of fast memory.
    fn share(self) -> f64 {
        self.fast as f64 / (self.fast + self.slow) as f64
    }

    /// Fast and slow memory, in whole mebibytes as far as that goes.
    fn of(self, memory: Size) -> (Size, Size) {
        const UNIT: u64 = 1 << 20;
        let fast = memory.0 / (self.fast + self.slow) * self.fast / UNIT * UNIT;
        (Size(fast), Size(memory.0 - fast))
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.fast, self.slow)
    }
}

impl std::str::FromStr for Ratio {
    type Err = String;

    /// `1:2`.
    fn from_str(text: &str) -> Result<Ratio, String> {
        let parts =
            text.split_once(':').and_then(|(fast, slow)| Some((fast.parse().ok()?, slow.parse().ok()?)));
        match parts {
            Some((fast @ 1..=1000, slow @ 1..=1000)) => Ok(Ratio { fast, slow }),
            _ => {
                Err(format!("{text}: expected FAST:SLOW, each from 1 to 1000\nhelp: for example --ratio 1:2"))
            }
        }
    }
}

/// A run, and what it says.
struct Cell {
    ratio: Ratio,
    device: String,
    source: usize,
    runs: Runs,
}

/// A knob at another value.
struct Turned {
    knob: Knob,
    runs: Runs,
}

/// What is to be run: a part of memory slow, and a source on.
struct Question {
    ratio: Ratio,
    device: String,
    source: usize,
    scenario: Scenario,
}

/// All that was found out.
pub struct Advice {
    asked: Asked,
    /// Total memory.
    pub memory: Size,
    /// The scenario with all its memory fast.
    pub scenario: Scenario,
    /// Keys of the scenario that name nodes, which are others here.
    put_aside: BTreeSet<&'static str>,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    all_fast: Runs,
    /// Accesses of each seed that are left out of what is compared.
    warm_up: Vec<u64>,
    cells: Vec<Cell>,
    /// The cell whose knobs were changed: the advised one, or the best one if all lose too much. If nothing is promoted there, it is the
    /// best one with promotions.
    at: usize,
    turned: Vec<Turned>,
    /// The same at half of the scale, where that was asked for.
    at_half: Option<AtHalf>,
}

/// Why nothing can be compared with runs in which all memory was fast, if nothing can.
fn no_base(all_fast: &Runs, extent: &Extent) -> Option<Error> {
    if let Some(failure) = all_fast.failures.first() {
        return Some(Error::Failed(failure.of("the workload fails with fast memory only")));
    }
    if was_killed(all_fast) {
        let message = "the OOM killer ends tasks of the workload even with fast memory only\nhelp: give it more memory (--memory)";
        return Some(Error::Failed(Failed { is_input: false, message: message.to_string() }));
    }
    (!all_fast.is_whole()).then(|| extent.nothing("nothing was run", &[]))
}

/// The workload with all its memory on one fast node, how much that is, and what of the scenario named its own nodes.
fn all_fast(asked: &Asked, mut base: Scenario) -> Result<(Scenario, Size, BTreeSet<&'static str>), Error> {
    let own = || Size(base.machine.node_sizes().iter().map(|size| size.0).sum());
    let memory = asked.memory.unwrap_or_else(own);
    let put_aside = nodes::put_aside(&mut base);
    let base = with_memory(&base, &[json!({ "memory": memory.to_string(), "cpus": base.machine.cpus })]);
    let problems = base.validate();
    let told = || {
        let problem = &problems[0];
        format!(
            "with all memory on one fast node: `{}`: {}\nhelp: remove this key from the scenario, because advise-tier replaces the scenario's nodes",
            problem.key, problem.message
        )
    };
    ensure!(problems.is_empty(), "{}", told());
    Ok((base, memory, put_aside))
}

/// Every source that the kernel of the scenario has, on every device at every ratio.
fn questions(asked: &Asked, base: &Scenario, memory: Size) -> Result<Vec<Question>, Error> {
    let mut questions = Vec::new();
    for device in &asked.devices {
        for &ratio in &asked.ratios {
            for source in tried(base) {
                let scenario = divided(base, memory, ratio, device, source)?;
                questions.push(Question { ratio, device: device.clone(), source, scenario });
            }
        }
    }
    Ok(questions)
}

/// The sources that can be tried.
fn tried(base: &Scenario) -> Vec<usize> {
    (0..SOURCES.len()).filter(|&source| why_not(base, source).is_none()).collect()
}

/// Why a source can't be tried, if it can't: page tables are scanned if some policy walks them, and a module of DAMON runs alone.
fn why_not(base: &Scenario, source: usize) -> Option<String> {
    let source = &SOURCES[source];
    if source.walks_page_tables() && !policy_of(base).group.harvest.page_table_walk {
        let kernel = base.kernel.name();
        return Some(format!(
            "{kernel} does not walk page tables; mglru@6.12 does (--set kernel.profile=mglru@6.12)"
        ));
    }
    let is_on = |name: &&str| base.kernel.switches.get(name) == Some(&Scalar::Bool(true));
    let module = DAMON_MODULES.into_iter().find(is_on).filter(|_| source.uses_damon())?;
    Some(format!("kernel.{module} is on, and a module of DAMON runs alone"))
}

/// The switches of modules of DAMON.
const DAMON_MODULES: [&str; 3] = ["damon_reclaim.enabled", "damon_lru_sort.enabled", "damon_stat.enabled"];

/// The scenario with these nodes, and nothing turned on that is about tiers.
fn with_memory(scenario: &Scenario, nodes: &[Value]) -> Scenario {
    let mut scenario = scenario.clone();
    let node = |node: &Value| -> Node {
        serde_json::from_value(node.clone()).expect("a size, and a number of CPUs or a preset that is known")
    };
    scenario.machine.node = nodes.iter().map(node).collect();
    scenario.machine.memory = None;
    scenario.kernel.switches.0.retain(|(name, _)| !sources::is_ours(Table::Kernel, name));
    scenario.sysctl.0.retain(|(name, _)| !sources::is_ours(Table::Sysctl, name));
    scenario
}

/// The scenario with this part of its memory slow, and a source enabled.
fn divided(
    base: &Scenario,
    memory: Size,
    ratio: Ratio,
    device: &str,
    source: usize,
) -> Result<Scenario, Error> {
    let (fast, slow) = ratio.of(memory);
    let nodes = [
        json!({ "memory": fast.to_string(), "cpus": base.machine.cpus }),
        json!({ "memory": slow.to_string(), "preset": device }),
    ];
    let scenario = SOURCES[source].set_in(with_memory(base, &nodes));
    let problems = scenario.validate();
    let told = || format!("{ratio} of {memory} on {device}: {}", problems[0].message);
    ensure!(problems.is_empty(), "{}", told());
    Ok(scenario)
}

impl Cell {
    fn name(&self) -> String {
        format!("{} {}, {}", self.ratio, self.device, SOURCES[self.source].name)
    }

    fn result(&self) -> Option<&RunResult> {
        self.runs.results.first()
    }
}

/// Returns true if the OOM killer ended a task: then there is no work to compare.
fn was_killed(runs: &Runs) -> bool {
    runs.results.iter().any(|run| !run.kills.is_empty())
}

/// How much longer runs take than others of the same seeds, in percent.
#[derive(Clone, Copy)]
struct Loss {
    percent: f64,
    /// Half of its 95 % interval; nothing with one seed.
    half_width: Option<f64>,
}

impl Loss {
    /// Computed from rates of work, seed by seed.
    fn of(base: &[f64], runs: &[f64]) -> Loss {
        let losses: Vec<f64> = base.iter().zip(runs).map(|(base, run)| (base / run - 1.0) * 100.0).collect();
        let paired = Paired::of_differences(&losses, base);
        Loss { percent: paired.difference, half_width: paired.half_width }
    }

    /// The most that may be noise.
    fn noise(self) -> f64 {
        self.half_width.unwrap_or(0.0)
    }

    fn show(self) -> String {
        match self.half_width {
            Some(width) => format!("{} ± {width:.1}", signed(self.percent)),
            None => signed(self.percent),
        }
    }
}

/// In percent, with a sign.
fn signed(percent: f64) -> String {
    if is_any(percent) { format!("{percent:+.1} %") } else { "0.0 %".to_string() }
}

/// Returns true if a loss of this percentage is visible.
fn is_any(percent: f64) -> bool {
    percent.abs() >= 0.05
}

/// How much longer, in words.
fn longer(percent: f64) -> String {
    match is_any(percent) {
        true if percent > 0.0 => format!("takes {percent:.1} % longer than"),
        true => format!("takes {:.1} % less time than", -percent),
        false => "takes as long as".to_string(),
    }
}

impl Advice {
    /// The results that are known after the runs with fast memory only.
    fn begun(
        asked: Asked,
        scenario: Scenario,
        memory: Size,
        put_aside: BTreeSet<&'static str>,
        extent: Extent,
        all_fast: Runs,
        warm_up: Vec<u64>,
    ) -> Advice {
        let (cells, at, turned, at_half) = (Vec::new(), 0, Vec::new(), None);
        Advice { asked, memory, scenario, put_aside, extent, all_fast, warm_up, cells, at, turned, at_half }
    }

    /// Runs every question.
    fn ask(&mut self, plan: &Plan, questions: &[Question]) -> Result<(), Error> {
        let divided: Vec<Scenario> = questions.iter().map(|question| question.scenario.clone()).collect();
        let made = plan.run_with_trails(&divided)?;
        let answered = |(question, runs): (&Question, Runs)| Cell {
            ratio: question.ratio,
            device: question.device.clone(),
            source: question.source,
            runs,
        };
        self.cells = questions.iter().zip(made.variants).map(answered).collect();
        self.extent = self.extent.and(&made.extent);
        Ok(())
    }
}

impl Advice {
    /// How much longer a run takes than with fast memory alone, in percent.
    fn interval(&self, runs: &Runs) -> Option<Loss> {
        self.between(&self.all_fast, runs)
    }

    /// How much longer some runs take than others for what comes after the warm-up.
    fn between(&self, base: &Runs, runs: &Runs) -> Option<Loss> {
        Some(Loss::of(&self.rates(base)?, &self.rates(runs)?))
    }

    /// Work done in a time, after the warm-up, by each seed; nothing where a run is missing, did none, or has lost a task.
    fn rates(&self, runs: &Runs) -> Option<Vec<f64>> {
        self.rates_of_part(runs, |_, warm_up| (warm_up, u64::MAX))
    }

    /// The same from one access to another, which come from all accesses of the run with all memory fast and those of the warm-up.
    fn rates_of_part(&self, runs: &Runs, part: impl Fn(u64, u64) -> (u64, u64)) -> Option<Vec<f64>> {
        if was_killed(runs) || !runs.is_whole() {
            return None;
        }
        let seeds = runs.results.iter().zip(&self.all_fast.results).zip(&self.warm_up);
        let rate = |((run, fast), &warm_up): ((&RunResult, &RunResult), &u64)| {
            let (from, to) = part(fast.accesses, warm_up);
            warm_up::rate(run, from, to)
        };
        seeds.map(rate).collect()
    }

    /// The loss over the first half of the work that is compared, and over the second.
    fn halves(&self, runs: &Runs) -> Option<[f64; 2]> {
        let middle = |all: u64, warm_up: u64| warm_up + (all - warm_up) / 2;
        let first = |runs| self.rates_of_part(runs, |all, warm_up| (warm_up, middle(all, warm_up)));
        let second = |runs| self.rates_of_part(runs, |all, warm_up| (middle(all, warm_up), u64::MAX));
        Some([
            Loss::of(&first(&self.all_fast)?, &first(runs)?).percent,
            Loss::of(&second(&self.all_fast)?, &second(runs)?).percent,
        ])
    }

    /// The reason why a cell does not show its source, if that did not act during the run.
    fn not_tried(&self, cell: &Cell) -> Option<String> {
        let unknown = SOURCES[cell.source].acted(&cell.runs.results).err()?;
        let run = cell.result()?;
        Some(format!(
            "it scanned no page in {} ({})",
            figures::time(run.end_ns),
            unknown.lacking().join(", ")
        ))
    }

    /// How much longer a cell takes than with fast memory alone, if its source acted.
    fn cell_interval(&self, cell: &Cell) -> Option<Loss> {
        self.interval(&cell.runs).filter(|_| self.not_tried(cell).is_none())
    }

    fn cell_loss(&self, cell: &Cell) -> Option<f64> {
        Some(self.cell_interval(cell)?.percent)
    }

    /// What stands where the figures of a cell would be.
    fn missing(&self, cell: &Cell) -> String {
        match cell.runs.is_whole() {
            true if self.interval(&cell.runs).is_some() => "not tried".to_string(),
            true if self.is_in_warm_up(cell) => "not past warm-up".to_string(),
            true => "killed".to_string(),
            false => cell.runs.missing(),
        }
    }

    /// Returns true if a run, which ends at a time, did no more than what is left out.
    fn is_in_warm_up(&self, cell: &Cell) -> bool {
        cell.runs.is_whole() && !was_killed(&cell.runs) && self.rates(&cell.runs).is_none()
    }

    /// When the warm-up of the first seed's run was over, if it came to that.
    fn warm_up_ends(&self, run: &RunResult) -> Option<u64> {
        let accesses = *self.warm_up.first()?;
        (accesses < run.accesses).then(|| warm_up::over_at(run, accesses))
    }

    /// What is left out of losses, in a sentence.
    fn left_out(&self) -> String {
        let (Some(run), Some(&accesses)) = (self.all_fast.results.first(), self.warm_up.first()) else {
            return String::new();
        };
        if accesses == 0 {
            return "No warm-up is excluded: each loss includes the time to fill memory and to place pages."
                .to_string();
        }
        format!(
            "Each loss excludes a warm-up of {} accesses ({} of the work; {} with fast memory only), the \
             same number at each ratio. Hits and moved pages are those of complete runs.",
            figures::count(accesses),
            figures::percent(figures::share(accesses, run.accesses)),
            figures::time(warm_up::over_at(run, accesses)),
        )
    }

    /// That what is compared begins on one side of the limit and ends on the other.
    fn unsettled(&self, cell: &Cell) -> Option<String> {
        let [first, second] = self.halves(&cell.runs)?;
        ((first < self.asked.loss) != (second < self.asked.loss)).then(|| {
            format!(
                "{}: the loss is {} in the first half of the compared work and {} in the second half. The \
                 advice depends on the half. Use a longer workload or a longer --warm-up to decide.",
                cell.name(),
                signed(first),
                signed(second)
            )
        })
    }

    /// Fast memory that a ratio does without, of the machine that pages stand for.
    fn saved(&self, ratio: Ratio) -> u64 {
        ratio.of(self.memory).1.0 * u64::from(self.scenario.machine.page_stands_for)
    }

    /// Every source at a ratio on a device.
    fn here(&self, ratio: Ratio, device: &str) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.ratio == ratio && cell.device == device)
    }

    /// The source that loses least at a ratio on a device.
    fn best(&self, ratio: Ratio, device: &str) -> Option<(usize, f64)> {
        let here =
            self.cells.iter().enumerate().filter(|(_, cell)| cell.ratio == ratio && cell.device == device);
        let losses = here.filter_map(|(at, cell)| Some((at, self.cell_loss(cell)?)));
        losses.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Returns the failures of all runs, with the name of the run.
    pub fn failures(&self) -> Vec<Failed> {
        let of_cells = self.cells.iter().flat_map(|cell| cell.runs.failures_of(&cell.name()));
        let of_turned = |turned: &Turned| {
            turned.runs.failures_of(&format!("{} = {}", turned.knob.key(), turned.knob.value))
        };
        let at_half = self.at_half.iter().flat_map(AtHalf::failures);
        of_cells.chain(self.turned.iter().flat_map(of_turned)).chain(at_half).collect()
    }

    fn ratios(&self) -> Vec<Ratio> {
        let mut ratios: Vec<Ratio> = Vec::new();
        for cell in &self.cells {
            if !ratios.contains(&cell.ratio) {
                ratios.push(cell.ratio);
            }
        }
        ratios
    }

    /// The least fast memory of a device that loses little enough.
    fn advised(&self, device: &str) -> Option<(usize, f64)> {
        let good = self.ratios().into_iter().filter_map(|ratio| Some((ratio, self.best(ratio, device)?)));
        let good = good.filter(|(_, (_, loss))| *loss < self.asked.loss);
        good.min_by(|(one, _), (other, _)| one.share().total_cmp(&other.share())).map(|(_, best)| best)
    }

    /// The first device's advice, or else what loses least.
    fn chosen(&self) -> usize {
        let advised = self.asked.devices.iter().find_map(|device| self.advised(device));
        let all = self.cells.iter().enumerate().filter_map(|(at, cell)| Some((at, self.cell_loss(cell)?)));
        advised.or(all.min_by(|(_, one), (_, other)| one.total_cmp(other))).map_or(0, |(at, _)| at)
    }

    /// A cell, or, if it promotes nothing, the best one at its ratio on its device that does: most knobs would change nothing otherwise.
    fn promoting_beside(&self, at: usize) -> usize {
        let here = &self.cells[at];
        if SOURCES[here.source].promotes() {
            return at;
        }
        let is_beside = |cell: &Cell| {
            (cell.ratio, &cell.device) == (here.ratio, &here.device) && SOURCES[cell.source].promotes()
        };
        let beside = self.cells.iter().enumerate().filter(|(_, cell)| is_beside(cell));
        let losses = beside.filter_map(|(at, cell)| Some((at, self.cell_loss(cell)?)));
        losses.min_by(|(_, one), (_, other)| one.total_cmp(other)).map_or(at, |(at, _)| at)
    }

    /// What each knob changes at the advised point, in percent of the time, the largest first.
    fn knobs(&self) -> Vec<(&Turned, f64)> {
        let here = &self.cells[self.at].runs;
        let change = |turned: &Turned| Some(self.between(here, &turned.runs)?.percent);
        let mut knobs: Vec<(&Turned, f64)> =
            self.turned.iter().filter_map(|turned| Some((turned, change(turned)?))).collect();
        knobs.sort_by(|(_, one), (_, other)| other.abs().total_cmp(&one.abs()));
        knobs
    }
}
