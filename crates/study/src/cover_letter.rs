//! A cover letter: what a change helps and hurts over many scenarios, beyond noise.
//!
//! ```text
//!   case: a scenario, base and patched ──▶ both run with the same seeds ──▶ figures, from the run's JSON ──▶ rows, judged
//!                                          first all with the first seed, then more of each: a fixed number,
//!                                          or until the interval of each row is narrow
//! ```
//! Sides are whatever can be run with a seed: a scenario here, or the same scenario in another build of the program. So figures are read from
//! JSON, which both have. A row pairs runs of the same seed; `judge.rs` says when it is more than noise, and corrects for there being many.

pub mod figures; // what a run comes to
pub mod judge; // which of it is more than noise
pub mod gather; // which scenarios, and what the change makes of each
pub mod build; // another build of the program, run as a process
mod json; // the answer as JSON

use std::collections::BTreeMap;
use std::path::PathBuf;

use pageout_sim::scenario::Scenario;
use serde::{Serialize, Serializer};
use serde_json::to_value;

use crate::error::{Error, Failed};
use crate::result::parallel;
use crate::result::simulate::{self, Stopped};
use crate::scenario::load::Changes;
use crate::scenario::source::Setting;
use crate::{Stage, Watcher};
use build::Build;
use figures::Outcome;
use gather::{Gathered, Left, Written};
use judge::Judged;

/// Accesses of a run of unknown length, for progress only.
const UNKNOWN: u64 = 1_000_000;

/// The half of an interval, in percent of the base, at which repeating runs stops.
pub const NARROW_PERCENT: f64 = 1.0;

/// Seeds to begin with where their number is found out.
pub const FIRST_SEEDS: u32 = 5;

/// The change, and the scenarios.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Scenario files or folders of them; none means all bundled scenarios.
    pub paths: Vec<PathBuf>,
    /// The change; several settings are one.
    pub switches: Vec<Setting>,
    /// The changes of every scenario, base and patched.
    pub changes: Changes,
    /// Another build of the program, which runs the base.
    pub against: Option<PathBuf>,
    /// With how many seeds.
    pub repeat: Repeat,
    /// Runs at the same time; 0 is one a CPU.
    pub jobs: usize,
    /// Take only as many scenarios, the shortest first, as run in about five minutes.
    pub fast: bool,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            paths: Vec::new(),
            switches: Vec::new(),
            changes: Changes::default(),
            against: None,
            repeat: Repeat::Fixed(FIRST_SEEDS),
            jobs: 0,
            fast: false,
        }
    }
}

/// All that was found out.
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The version of the build that runs the base, if it is another build.
    pub base_build: Option<String>,
    /// The results of each scenario.
    pub found: Found,
    /// Scenarios that were not run, and why.
    pub left: Vec<Left>,
    /// Group and name of scenarios that are expected to fail unchanged.
    pub fails_as_known: Vec<(String, String)>,
    /// Accesses of all runs that [`Ask::fast`] lets in, if it is set.
    pub accesses: Option<u64>,
}

/// Runs every scenario without the change and with it. Errors: there is no scenario, or none can be run; the other build has results that
/// can't be compared. Scenarios that can't be read and runs that fail are part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let build = ask.against.as_deref().map(Build::find).transpose()?;
    let Gathered { cases, left, fails_as_known, accesses } = gather::gather(ask, build.as_ref(), watcher)?;
    let found = run(&cases, ask.repeat, ask.jobs, watcher);
    let base_build = build.as_ref().map(|build| build.version.clone());
    let answer = Answer { ask: ask.clone(), base_build, found, left, fails_as_known, accesses };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// A runner of one seed.
pub enum Runner<'a> {
    /// A scenario in this program.
    Here(Box<Scenario>),
    /// A scenario in another build.
    There {
        /// The build.
        build: &'a Build,
        /// The scenario, to be read there.
        scenario: Written,
        /// How many accesses it makes, where that is known.
        accesses: Option<u64>,
    },
}

impl Side for Runner<'_> {
    fn run(&self, nth: u32, watcher: &dyn Watcher) -> Option<Result<Outcome, Failed>> {
        match self {
            Runner::Here(scenario) => {
                let seed = scenario.seed + u64::from(nth);
                let scenario = Scenario { seed, ..(**scenario).clone() };
                match simulate::simulate(&scenario, watcher) {
                    Ok(result) => Some(Ok(Outcome::of(&to_value(&result).expect("a result is data")))),
                    Err(Stopped::Interrupted(..)) => None,
                    Err(stopped) => Some(Err(Failed::from(Error::from(stopped)))),
                }
            }
            Runner::There { build, scenario, accesses } => {
                let ended = build.run(scenario, nth, watcher);
                watcher.advance(accesses.unwrap_or(0));
                ended
            }
        }
    }

    fn accesses(&self) -> Option<u64> {
        match self {
            Runner::Here(scenario) => simulate::accesses(scenario),
            Runner::There { accesses, .. } => *accesses,
        }
    }
}

impl Answer {
    /// Runs that failed although their scenario does not know that they do, saying whose they are.
    pub fn failures(&self) -> Vec<Failed> {
        let unknown = self.found.cases.iter().filter(|case| !self.is_known_to_fail(case));
        let told = unknown.flat_map(|case| {
            let of_side = |side: usize| {
                let side_name = ["base", "patched"][side];
                case.failed[side].first().map(|failed| failed.of(&format!("{}, {side_name}", case.name)))
            };
            [of_side(0), of_side(1)].into_iter().flatten()
        });
        let unreadable =
            self.left.iter().filter_map(|left| left.failed.as_ref().map(|failed| failed.of(&left.name)));
        told.chain(unreadable).collect()
    }

    /// Returns true if a scenario is expected to fail unchanged, and the change makes that no worse.
    fn is_known_to_fail(&self, case: &Judged) -> bool {
        let is_known =
            self.fails_as_known.iter().any(|(group, name)| *group == case.group && *name == case.name);
        is_known && case.failed[1].len() <= case.failed[0].len()
    }

    /// `interrupted by SIGINT after 3 of 10 runs`.
    pub fn interrupted(&self) -> Option<String> {
        let (by, asked) = self.found.interruption?;
        let [made, asked] = [self.found.made, asked].map(|runs| crate::figures::count(runs as u64));
        Some(format!("interrupted by {by} after {made} of {asked} runs"))
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        for case in &self.found.cases {
            let seeds = case.seeds as usize;
            let failed = case.failed.iter().map(Vec::len).max().unwrap_or(0);
            if failed > seeds {
                return Err(format!(
                    "{}: {failed} runs of one side failed, but it has {seeds} runs",
                    case.name
                ));
            }
            let wrong = case.rows.iter().find(|row| row.values[0].len() != row.values[1].len());
            if let Some(row) = wrong {
                return Err(format!("{}: {} has unpaired values", case.name, row.figure.name));
            }
            let is_left = |left: &Left| left.group == case.group && left.name == case.name;
            if self.left.iter().any(is_left) {
                return Err(format!("{}: listed both as run and as not run", case.name));
            }
        }
        Ok(())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// Cases by group, in their order.
pub fn groups(cases: &[Judged]) -> Vec<(&str, Vec<&Judged>)> {
    let mut groups: Vec<(&str, Vec<&Judged>)> = Vec::new();
    for case in cases {
        match groups.iter_mut().find(|(group, _)| *group == case.group) {
            Some((_, cases)) => cases.push(case),
            None => groups.push((&case.group, vec![case])),
        }
    }
    groups
}

/// A side that runs one seed after the other.
pub trait Side: Sync {
    /// The run with the n-th seed from 0 on; nothing if the watcher has it end before its time.
    fn run(&self, nth: u32, watcher: &dyn Watcher) -> Option<Result<Outcome, Failed>>;

    /// How many accesses it makes, where that is known beforehand.
    fn accesses(&self) -> Option<u64>;
}

/// A scenario, before and after.
pub struct Case<S> {
    /// The group that it belongs to.
    pub group: String,
    /// The name within the group.
    pub name: String,
    /// The seed that others are counted up from.
    pub first_seed: u64,
    /// Base and patched.
    pub sides: [S; 2],
}

/// With how many seeds each case runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// With this number of seeds.
    Fixed(u32),
    /// Until each interval is narrow, with at most this number of seeds.
    Auto(u32),
}

impl Repeat {
    /// The most seeds that a case may run with.
    pub fn most(self) -> u32 {
        let (Repeat::Fixed(most) | Repeat::Auto(most)) = self;
        most
    }

    /// Seeds that each case runs with in any case.
    fn least(self) -> u32 {
        match self {
            Repeat::Fixed(seeds) => seeds,
            Repeat::Auto(most) => most.min(FIRST_SEEDS),
        }
    }
}

/// The results of all cases, in their order.
pub struct Found {
    /// A case each.
    pub cases: Vec<Judged>,
    /// Runs that came to their end, good or bad.
    pub made: usize,
    /// The signal that ended it early, and the planned number of runs.
    pub interruption: Option<(&'static str, usize)>,
}

/// How a run ended.
type Ended = Result<Outcome, Failed>;

/// Runs of both sides by the number of their seed.
type Sides = [BTreeMap<u32, Ended>; 2];

/// One run: its seed, its case and its side.
type Run = (u32, usize, usize);

/// Runs all cases, both sides with the same seeds, and judges the results. Without an interruption the answer depends only on the cases.
pub fn run<S: Side>(cases: &[Case<S>], repeat: Repeat, jobs: usize, watcher: &dyn Watcher) -> Found {
    let mut ended: Vec<Sides> = cases.iter().map(|_| Sides::default()).collect();
    let mut until: Vec<u32> = vec![1; cases.len()];
    let (mut from, mut asked, mut interruption) = (vec![0; cases.len()], 0, None);
    loop {
        let runs = runs(&from, &until);
        asked += runs.len();
        if !stage(cases, &runs, &mut ended, jobs, watcher) {
            interruption = watcher.stop().map(|by| (by, asked));
            break;
        }
        from.clone_from(&until);
        until = next(&from, &ended, repeat);
        if until == from {
            break;
        }
    }
    let made = ended.iter().flatten().map(BTreeMap::len).sum();
    let judged = cases.iter().zip(ended).map(|(case, sides)| {
        let [base, patched] = in_pairs(&sides);
        Judged::of(&case.group, &case.name, case.first_seed, base, patched)
    });
    let mut judged: Vec<Judged> = judged.collect();
    judge::correct(&mut judged);
    Found { cases: judged, made, interruption }
}

/// The runs that are to be made next, seed by seed, so that each is compared early.
fn runs(from: &[u32], until: &[u32]) -> Vec<Run> {
    let cases = from.iter().zip(until).enumerate();
    let mut runs: Vec<Run> = cases
        .flat_map(|(case, (&from, &until))| {
            (from..until).flat_map(move |nth| [(nth, case, 0), (nth, case, 1)])
        })
        .collect();
    runs.sort_unstable();
    runs
}

/// How many seeds each case is to have next: as many as it has, once there are enough.
fn next(from: &[u32], ended: &[Sides], repeat: Repeat) -> Vec<u32> {
    let more = |(&seeds, sides): (&u32, &Sides)| {
        // An invalid input fails with any seed.
        let is_hopeless =
            sides.iter().any(|side| side.values().any(|run| matches!(run, Err(why) if why.is_input)));
        if is_hopeless {
            return seeds;
        }
        if seeds < repeat.least() {
            return repeat.least();
        }
        let [base, patched] = in_pairs(sides);
        let is_narrow = || Judged::of("", "", 0, base, patched).is_narrow();
        match repeat {
            Repeat::Auto(most) if seeds < most && !is_narrow() => (2 * seeds).min(most),
            _ => seeds,
        }
    };
    from.iter().zip(ended).map(more).collect()
}

/// Makes these runs. Says whether all came to their end.
fn stage<S: Side>(
    cases: &[Case<S>],
    runs: &[Run],
    ended: &mut [Sides],
    jobs: usize,
    watcher: &dyn Watcher,
) -> bool {
    let accesses = |&(_, case, side): &Run| {
        // A seed changes little in how many there are.
        let known = ended[case][side].values().next().and_then(|run| run.as_ref().ok());
        let known = known.map(|outcome| outcome.accesses);
        known.or_else(|| cases[case].sides[side].accesses()).unwrap_or(UNKNOWN)
    };
    let accesses = runs.iter().map(accesses).fold(0, u64::saturating_add);
    let name = match runs.first() {
        Some((0, ..)) => "the first seed",
        _ => "more seeds",
    };
    watcher.begin(&Stage::Running { name, runs: runs.len(), accesses: Some(accesses) });
    let results = parallel::map_while(runs.len(), jobs, |at| {
        let (nth, case, side) = runs[at];
        if watcher.stop().is_some() {
            return None;
        }
        cases[case].sides[side].run(nth, watcher)
    });
    watcher.end();
    let is_all = results.len() == runs.len();
    for (at, run) in results {
        let (nth, case, side) = runs[at];
        ended[case][side].insert(nth, run);
    }
    is_all
}

/// The runs of the first seeds that both sides have.
fn in_pairs([base, patched]: &Sides) -> [Vec<&Ended>; 2] {
    let pairs = (0..).map_while(|nth| Some((base.get(&nth)?, patched.get(&nth)?)));
    let (base, patched) = pairs.unzip();
    [base, patched]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A side whose speed is drawn anew for each seed.
    struct Drawn(fn(u32) -> f64);

    impl Side for Drawn {
        fn run(&self, nth: u32, _: &dyn Watcher) -> Option<Ended> {
            let speed = (self.0)(nth);
            Some(Ok(Outcome::of(
                &json!({ "accesses": 1000, "end_ns": 1e9 / speed, "vmstat": {}, "tasks": [] }),
            )))
        }

        fn accesses(&self) -> Option<u64> {
            Some(1000)
        }
    }

    fn case(base: fn(u32) -> f64, patched: fn(u32) -> f64) -> Case<Drawn> {
        let sides = [Drawn(base), Drawn(patched)];
        Case { group: "a".to_string(), name: "b".to_string(), first_seed: 1, sides }
    }

    #[test]
    fn runs_are_repeated_until_the_interval_is_narrow_and_no_further() {
        // Luck that grows smaller nowhere: only many seeds help.
        fn wide(nth: u32) -> f64 {
            100.0 + f64::from(nth % 2) * 5.0
        }
        let cases = [case(|_| 100.0, |_| 90.0), case(|_| 100.0, wide)];
        let seeds =
            |repeat| run(&cases, repeat, 1, &()).cases.iter().map(|case| case.seeds).collect::<Vec<u32>>();
        assert_eq!(seeds(Repeat::Auto(1000)), [5, 40]);
        assert_eq!(seeds(Repeat::Auto(20)), [5, 20], "no more than that");
        assert_eq!(seeds(Repeat::Fixed(3)), [3, 3]);
    }

    #[test]
    fn all_cases_run_with_the_first_seed_before_any_runs_with_the_second() {
        assert_eq!(
            runs(&[0, 0], &[1, 2]),
            [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]
        );
    }

    #[test]
    fn an_answer_is_checked_by_its_sums() {
        const SCENARIO: &str = r#"
            [machine]
            memory = "64MiB"
            [[memcg]]
            path = "/web"
            memory.max = "1MiB"
            [[task]]
            name = "reader"
            memcg = "/web"
            object = [{ channel = "file", size = "4MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 2_000 } }]
        "#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.toml");
        std::fs::write(&path, SCENARIO).unwrap();
        let asked = Ask {
            paths: vec![path],
            switches: vec!["kernel.profile=mglru@6.12".parse().unwrap()],
            repeat: Repeat::Fixed(2),
            ..Ask::default()
        };
        let answer = || ask(&asked, &()).unwrap();
        assert_eq!(answer().check(), Ok(()));
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 3] = [
            (
                |answer| {
                    let failed = Failed { is_input: false, message: String::new() };
                    answer.found.cases[0].failed[0] = vec![failed; 3];
                },
                "3 runs of one side failed, but it has 2 runs",
            ),
            (|answer| answer.found.cases[0].rows[0].values[0].clear(), "has unpaired values"),
            (
                |answer| {
                    let Judged { group, name, .. } = &answer.found.cases[0];
                    let (group, name) = (group.clone(), name.clone());
                    answer.left.push(Left { group, name, why: gather::Why::Already, failed: None });
                },
                "listed both as run and as not run",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
