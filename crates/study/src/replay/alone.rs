//! One kernel policy and one trace: all that is known of each size.

use std::path::Path;
use std::sync::Arc;

use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{Channel, Scenario};
use pageout_workload::trace::{Interpretation, Loaded};
use serde_json::{Value, json};

use super::ask::Ask;
use super::bound::{Below, Bound, bounds};
use super::point::{Figures, OpenLoop, Point, own_json};
use super::reading::{self, doubts};
use super::setup::{PAGES_MIN, Setup, check, pages};
use super::untimed::{self, LeftOut};
use crate::check::holds;
use crate::error::{Error, Failed};
use crate::figures;
use crate::result::requests;
use crate::result::variants::{Extent, Made, Plan};
use crate::watch::{Watcher, name_of};

/// Sizes of memory under one kernel policy.
#[derive(Debug)]
pub struct Alone {
    /// The question.
    pub ask: Ask,
    /// The policy, as it was asked for.
    pub policy: String,
    /// True if page numbers are places, so that consecutive numbers are neighbours.
    pub has_neighbours: bool,
    /// The interpretation of the trace.
    pub interpretation: Interpretation,
    /// The pages that it touches, and its accesses if they were kept.
    pub loaded: Arc<Loaded>,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// The sizes, in the order in which they were asked for.
    pub points: Vec<Point>,
    /// The bound at each size, where the policy reads ahead; none where there is no need of one.
    pub bounds: Option<Vec<Option<Bound>>>,
    /// The scenario of the first size.
    pub scenario: Scenario,
}

/// What a replay by one kernel policy came to.
pub(super) enum Came {
    /// Figures.
    Figures(Box<Alone>),
    /// The scenario, as a text: nothing was run.
    Scenario(String),
}

/// Replays one trace under one policy at each size. Errors: the trace can't be read, or the options make no scenario.
pub(super) fn alone(
    ask: &Ask,
    policy: &str,
    profile: &str,
    limits: &[Limit],
    watcher: &dyn Watcher,
) -> Result<Came, Error> {
    let trace = ask.traces[0].as_path();
    let has_neighbours = reading::has_neighbours(ask, trace)?;
    let setup = Setup { ask, trace, profile, has_neighbours };
    let options = setup.read_options()?;
    let interpretation = reading::interpreted(trace, &options, watcher)?;
    let Some(accesses) = reading::accesses(ask, trace, limits.len(), &options, watcher)? else {
        return Err(Error::Interrupted("interrupted while reading the trace".to_string()));
    };
    let loaded = &accesses.loaded;
    let distinct_pages = loaded.footprint.distinct_pages();
    if loaded.footprint.accesses == 0 {
        return Err(Error::asked(format!("{} has no accesses to replay", trace.display())));
    }
    reading::remark_later(trace, &interpretation, loaded.requests.as_ref(), watcher);
    let sizes = limits.iter().map(|limit| pages(*limit, distinct_pages, PAGES_MIN));
    let sizes = sizes.collect::<Result<Vec<u64>, Error>>()?;
    let runs = sizes.iter().map(|&pages| setup.replaying(&accesses, pages));
    let runs = runs.collect::<Result<Vec<Scenario>, Error>>()?;
    runs.iter().try_for_each(check)?;
    if ask.print_scenario {
        return Ok(Came::Scenario(written(&runs, limits[0], sizes[0], distinct_pages)?));
    }
    let plan = Plan { name: name_of(trace), repeat: 1, jobs: ask.jobs, watcher };
    let Made { variants, extent } = plan.run_in(&runs, ask.untimed)?;
    let bounds = bounds(setup, loaded, &options, &sizes, watcher)?;
    let points = sizes.into_iter().zip(limits).zip(variants);
    let points = points.map(|((pages, &limit), runs)| Point { pages, limit, runs });
    let answer = Alone {
        ask: ask.clone(),
        policy: policy.to_string(),
        has_neighbours,
        interpretation,
        extent,
        points: points.collect(),
        bounds,
        scenario: runs.into_iter().next().expect("there is a size, so there is a run"),
        loaded: accesses.loaded,
    };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(Came::Figures(Box::new(answer)))
}

/// The one scenario as TOML, with what its memory is a percentage of.
fn written(runs: &[Scenario], limit: Limit, pages: u64, distinct_pages: u64) -> Result<String, Error> {
    let [run] = runs else {
        return Err(Error::asked("--print-scenario needs one size of --memory"));
    };
    let text = toml(run)?;
    Ok(match limit {
        Limit::Percent(percent) => {
            let share = figures::share_of_pages(percent, distinct_pages, pages);
            format!("# memory.max is {share}.\n{text}")
        }
        _ => text,
    })
}

fn toml(scenario: &Scenario) -> Result<String, Error> {
    let cannot = |error| Error::asked(format!("cannot write the scenario as TOML: {error}"));
    toml_edit::ser::to_string_pretty(scenario).map_err(cannot)
}

impl Alone {
    /// The trace.
    pub fn trace(&self) -> &Path {
        &self.ask.traces[0]
    }

    /// The largest readahead window, in KiB.
    pub fn window_kb(&self) -> u32 {
        self.ask.window_kb(self.has_neighbours)
    }

    /// The scenario of the first size, as TOML. Errors: it can't be written.
    pub fn toml(&self) -> Result<String, Error> {
        toml(&self.scenario)
    }

    /// Returns true if no run has a result.
    pub(super) fn is_nothing(&self) -> bool {
        self.points.iter().all(|point| point.result().is_none())
    }

    /// Why the answer is incomplete: runs failed, or a signal came.
    pub(super) fn failure(&self) -> Option<Error> {
        let mut failures: Vec<Failed> =
            self.points.iter().flat_map(|point| point.failures(&self.ask)).collect();
        match (self.is_nothing(), failures.len(), self.points.len()) {
            (true, 1, 1) => Some(Error::Failed(failures.remove(0))),
            (true, ..) => Some(self.extent.nothing("every size failed", &failures)),
            _ => self.extent.verdict(&failures).err(),
        }
    }

    /// The parts of a timed run that it leaves out; nothing if it was timed.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let figures: Vec<Figures> = self.points.iter().filter_map(Point::figures).collect();
        untimed::left_out(&self.ask, self.has_neighbours, figures.iter())
    }

    /// Sizes at which the policy misses less than the bound.
    pub fn below(&self) -> Vec<Below> {
        let bounds = self.bounds.iter().flatten();
        let below = |(point, bound): (&Point, &Option<Bound>)| {
            let (of, bound) = (point.figures()?, bound.as_ref()?);
            bound.is_above(of.miss_ratio).then(|| Below {
                policy: self.policy.clone(),
                pages: point.pages,
                miss_ratio: of.miss_ratio,
                bound: bound.miss_ratio,
            })
        };
        self.points.iter().zip(bounds).filter_map(below).collect()
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let points = self.points.len();
        if let Some(bounds) = &self.bounds {
            holds!(bounds.len() == points, "found {points} sizes, but OPT at {}", bounds.len());
        }
        let distinct_pages = self.loaded.footprint.distinct_pages();
        for point in &self.points {
            let of = format!("{} pages", point.pages);
            let asked = point.limit.pages(distinct_pages);
            holds!(asked == Some(point.pages), "{of}: found another size, expected {:?}", point.limit);
            let (Some(result), Some(figures)) = (point.result(), point.figures()) else { continue };
            let accesses = self.loaded.footprint.accesses;
            let counted = result.accesses;
            holds!(counted == accesses, "{of}: found {counted} accesses, expected {accesses}");
            let hits: u64 = result.tasks.iter().map(|task| task.hits).sum();
            let misses = figures.misses;
            holds!(
                hits + misses == accesses,
                "{of}: {hits} hits and {misses} misses, expected a sum of {accesses}"
            );
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        let Alone { ask, policy, interpretation, loaded, .. } = self;
        let footprint = &loaded.footprint;
        let are_writes = ask.writes || ask.channel == Channel::Anonymous;
        let replayed_as_reads = match (interpretation.tells_writes, are_writes) {
            (_, true) => Some(0),
            // The trace does not mark writes.
            (false, false) => None,
            (true, false) => Some(footprint.writes()),
        };
        let points: Vec<Value> = (0..self.points.len()).map(|at| self.point_json(at)).collect();
        let mut json = json!({
            "complete": self.points.iter().all(|point| point.result().is_some()),
            "trace": self.trace().to_string_lossy(),
            "trace_in_memory": loaded.accesses.is_some(),
            "accesses": footprint.accesses,
            "doubts": doubts(interpretation, loaded.requests.as_ref()),
            "requests": loaded.requests.as_ref().map(requests::json),
            "has_neighbours": self.has_neighbours,
            "writes_replayed_as_reads": replayed_as_reads,
            "distinct_pages": footprint.distinct_pages(),
            "channel": ask.channel.name(),
            "policy": policy,
            "device": ask.device,
            "read_ahead_kb": self.window_kb(),
            "timed": ask.timed,
            "points": points,
        });
        if ask.untimed {
            (json["untimed"], json["device"]) = (json!(true), Value::Null);
            json["left_out"] = untimed::left_out_json(&self.left_out());
        }
        json
    }

    fn point_json(&self, at: usize) -> Value {
        let point = &self.points[at];
        let of = point.figures();
        let of = of.as_ref();
        let bound = self.bounds.as_ref().and_then(|bounds| bounds[at].as_ref());
        let mut json = json!({
            "memory_pages": point.pages,
            "memory_bytes": point.pages * 4096,
            "share_of_pages": figures::share(point.pages, self.loaded.footprint.distinct_pages()),
            "read_ahead_kb": self.window_kb(),
            "complete": of.is_some(),
            "miss_ratio": of.map(|of| of.miss_ratio),
            "bound_miss_ratio": bound.map(|bound| bound.miss_ratio),
            "is_below_bound": bound.zip(of).map(|(bound, of)| bound.is_above(of.miss_ratio)),
            "misses": of.map(|of| of.misses),
            "runtime_ns": of.filter(|_| !self.ask.untimed).map(|of| of.end_ns),
            "device_pages_read": of.map(|of| of.device_pages_read),
            "refaults": of.map(|of| of.refaults),
            "refault_distance_p50_pages": of.and_then(|of| of.refault_distance(0.5)),
            "refault_distance_p90_pages": of.and_then(|of| of.refault_distance(0.9)),
            "open_loop": of.and_then(|of| of.open_loop.as_ref()).map(OpenLoop::json),
        });
        json["result"] = match point.result() {
            Some(result) if self.ask.untimed => untimed::result_json(result),
            result => json!(result),
        };
        if let Some(of) = of.filter(|of| !of.own.is_empty()) {
            json["policy_figures"] = own_json(&of.own);
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Answer, ask};

    /// The answer of a trace in two sizes of memory.
    fn answer() -> Alone {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.u32");
        let pages = (0..3_000_u32).map(|at| at * 7 % 400);
        std::fs::write(&trace, pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        let asked = Ask { traces: vec![trace], memory: vec!["40%".into(), "1MiB".into()], ..Ask::default() };
        match ask(&asked, &()).unwrap() {
            Answer::Alone(answer) => *answer,
            _ => panic!("one kernel policy and one trace have all figures"),
        }
    }

    #[test]
    fn answer_with_a_wrong_sum_is_refused() {
        assert_eq!(answer().check(), Ok(()));
        type Mutant = fn(&mut Alone);
        let mutants: [(Mutant, &str); 4] = [
            (|answer| drop(answer.points.pop()), "found 1 sizes, but OPT at 2"),
            (|answer| answer.points[0].pages += 1, "found another size, expected Percent(40.0)"),
            (|answer| answer.points[1].runs.results[0].accesses -= 1, "found 2999 accesses, expected 3000"),
            (|answer| answer.points[1].runs.results[0].tasks[0].hits += 1, "misses, expected a sum of 3000"),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn scenario_that_is_asked_for_is_not_run() {
        let mut asked = answer().ask;
        let folder = tempfile::tempdir().unwrap();
        asked.traces = vec![folder.path().join("a.u32")];
        std::fs::write(&asked.traces[0], [0_u8; 4 * 256]).unwrap();
        (asked.print_scenario, asked.memory) = (true, vec!["1MiB".into()]);
        let Ok(Answer::Scenario(text)) = ask(&asked, &()) else { panic!("there is one size") };
        assert!(text.contains("memory.max") && text.contains("a.u32"), "{text}");
        asked.memory.push("2MiB".into());
        let error = ask(&asked, &()).err().unwrap().to_string();
        assert!(error.contains("--print-scenario needs one size of --memory"), "{error}");
    }
}
