//! Simulations of recorded runs: counters compared with those of a real kernel for the recorded accesses.
//!
//! ```text
//!   recording  (sequences, objects, limits, clock) ──▶ rig ──▶ simulated figures ──┐
//!   answers    (counters, misses, evictions)   read only after the simulation ─────┼──▶ judge ──▶ Answer
//!   tolerances.toml                            likewise ───────────────────────────┘
//! ```
//! The two readers are separate so that no simulated figure can depend on an answer: what `recording` deserialises has no
//! field for one. The format of the folder is described in docs/reference/recordings.md.

use std::fs;
use std::path::{Path, PathBuf};

use pageout_study::Answered;
use pageout_study::json::one_or_more;
use pageout_study::result::parallel;
use pageout_study::{Stage, Watcher};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answers::Answers;
use crate::class::{Class, Limits, Tolerances};
use crate::complete;
use crate::difference::Difference;
use crate::error::Error;
use crate::folios;
use crate::input::Input;
use crate::judge::{self, Judged, judge};
use crate::outcomes;
use crate::reads;
use crate::recording::{Recording, Run};
use crate::rig::{Playable, Played, Unplayable, Unrecorded};

/// The recorded runs to compare, and the options.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The folder with the recorded runs.
    pub dir: PathBuf,
    /// Only these runs, by id or pattern (`fr-*.classic.*`); all of them without any.
    #[serde(deserialize_with = "one_or_more")]
    pub runs: Vec<String>,
    /// Runs that are expected to fail, by id. It is an error if one of them passes.
    #[serde(deserialize_with = "one_or_more")]
    pub expect_short: Vec<String>,
    /// The file of limits. Default: the folder's tolerances.toml.
    pub tolerances: Option<PathBuf>,
    /// Inputs that are left out, as if they were not recorded.
    #[serde(deserialize_with = "one_or_more")]
    pub without: Vec<Input>,
    /// Simulations of a run where something was not recorded, 2 or more; nothing stands for as many as its class says.
    pub simulations: Option<u16>,
    /// True if the first access is searched at which simulation and kernel part.
    pub first_difference: bool,
    /// Simulations at the same time; 0 is one a CPU.
    pub jobs: usize,
}

impl Ask {
    /// Checks that the runs expected to fail are among the selected ones.
    pub(crate) fn check_expected<'a>(
        &self,
        runs: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), Error> {
        match self.expect_short.iter().find(|id| !runs.clone().any(|run| run == **id)) {
            None => Ok(()),
            Some(stranger) => {
                Err(Error::asked(format!("--expect-short: found `{stranger}`, expected the name of a run")))
            }
        }
    }
}

/// The runs that were asked for, compared.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The results.
    pub compared: Compared,
}

/// Recorded runs compared with their simulations, in the order of the recording.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Compared {
    /// Runs with counters.
    Runs(Vec<Judged>),
    /// Runs of which it is known whether they were killed.
    Outcomes(Vec<outcomes::Judged>),
    /// Runs of which each folio that entered or left the page cache is known.
    Folios(Vec<folios::Judged>),
}

/// Compares the recorded runs of a folder with simulated ones. Runs that fail or cannot be simulated are part of the answer. Errors: the
/// folder, its tolerances or an answer is unreadable or invalid; there is no such run.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    if let Some(few @ ..2) = ask.simulations {
        return Err(Error::asked(format!("found {few} simulations per run, expected 2 or more")));
    }
    if ask.dir.as_os_str().is_empty() {
        return Err(Error::asked("dir: found no path, expected the folder of recorded runs"));
    }
    let compared = if outcomes::are_in(&ask.dir) {
        Compared::Outcomes(outcomes::ask(ask, watcher)?)
    } else if folios::are_in(&ask.dir) {
        Compared::Folios(folios::ask(ask, watcher)?)
    } else {
        Compared::Runs(compare(ask, watcher)?)
    };
    let answer = Answer { ask: ask.clone(), compared };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answered for Answer {
    /// A run that fails is part of the answer, and not an error.
    fn failure(&mut self) -> Option<pageout_study::Error> {
        match self.verdict() {
            Ok(()) | Err(Error::Unexpected(_)) => None,
            Err(Error::Study(error)) => Some(error),
            Err(error) => Some(pageout_study::Error::Asked(error.to_string())),
        }
    }
}

impl Answer {
    /// Checks that all results are expected. Errors: runs cannot be simulated, or none was; runs fail unexpectedly, or pass unexpectedly
    /// ([`Error::Unexpected`]).
    pub fn verdict(&self) -> Result<(), Error> {
        match &self.compared {
            Compared::Runs(judged) => self.verdict_on_runs(judged),
            Compared::Outcomes(judged) => {
                let runs = judged.iter().map(|run| (run.run.as_str(), run.passes, !run.passes));
                self.verdict_on(runs)
            }
            Compared::Folios(judged) => {
                let compared = judged.iter().filter(|run| run.skipped.is_none());
                let runs = compared.map(|run| (run.run.as_str(), run.passes(), !run.passes()));
                if runs.clone().next().is_none() {
                    return Err(Error::asked("no run was simulated: none is of a kind that is compared"));
                }
                self.verdict_on(runs)
            }
        }
    }

    fn verdict_on_runs(&self, judged: &[Judged]) -> Result<(), Error> {
        let all = judged.len();
        let not_played = judged.iter().filter(|run| run.not_played.is_some()).count();
        if not_played > 0 {
            return Err(Error::asked(format!("{not_played} of {all} runs cannot be simulated")));
        }
        if judged.iter().all(|run| run.skipped.is_some()) {
            return Err(Error::asked("no run was simulated: each needs a feature that is not modelled"));
        }
        if let Some(run) = judged.iter().find(|run| run.skipped.is_some() && self.is_expected(&run.run)) {
            return Err(Error::Unexpected(format!("{} is expected to fail, but it is skipped", run.run)));
        }
        self.verdict_on(judged.iter().map(|run| (run.run.as_str(), run.passes(), run.falls_short())))
    }

    /// The verdict on runs, given whether each passes and whether it fails.
    fn verdict_on<'a>(&self, runs: impl Iterator<Item = (&'a str, bool, bool)> + Clone) -> Result<(), Error> {
        let short = runs.clone().filter(|&(run, _, is_short)| is_short && !self.is_expected(run)).count();
        if short > 0 {
            let all = runs.count();
            return Err(Error::Unexpected(format!("{short} of {all} runs fail")));
        }
        match runs.clone().find(|&(run, passes, _)| passes && self.is_expected(run)) {
            Some((run, ..)) => Err(Error::Unexpected(format!("{run} is expected to fail, but it passes"))),
            None => Ok(()),
        }
    }

    fn is_expected(&self, run: &str) -> bool {
        self.ask.expect_short.iter().any(|expected| expected == run)
    }

    /// Checks what an answer satisfies. Errors: the first that is wrong.
    pub fn check(&self) -> Result<(), String> {
        match &self.compared {
            Compared::Runs(judged) => judged.iter().try_for_each(Judged::check),
            Compared::Outcomes(judged) => judged.iter().try_for_each(outcomes::Judged::check),
            Compared::Folios(judged) => judged.iter().try_for_each(folios::Judged::check),
        }
    }

    /// As JSON: a list of runs.
    pub fn json(&self) -> Value {
        serde_json::to_value(&self.compared).expect("names are texts, and figures have JSON's forms")
    }
}

impl Serialize for Answer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.compared.serialize(serializer)
    }
}

/// Runs with counters.
fn compare(ask: &Ask, watcher: &dyn Watcher) -> Result<Vec<Judged>, Error> {
    tell_of_folders_within(&ask.dir, watcher);
    let recording = Recording::open(&ask.dir, &ask.without, watcher)?;
    let runs = recording.select(&ask.runs)?;
    ask.check_expected(runs.iter().map(|run| run.id.as_str()))?;
    let tolerances = ask.tolerances.clone().unwrap_or_else(|| ask.dir.join("tolerances.toml"));
    let tolerances = Tolerances::open(&tolerances)?;

    let mut plans: Vec<Result<Plan, Unplayable>> = Vec::new();
    for &run in &runs {
        plans.push(match Playable::new(&recording, run, watcher) {
            Ok(playable) => Plan::new(&recording, run, playable, &tolerances, ask.simulations)?,
            Err(reason) => Err(reason),
        });
    }
    let jobs: Vec<(&Playable, Unrecorded)> = (plans.iter().flatten())
        .flat_map(|plan| {
            let simulations = plan.simulations;
            (0..simulations).map(move |simulation| (&plan.playable, Unrecorded { simulation, simulations }))
        })
        .collect();
    watcher.begin(&Stage::Playing { simulations: jobs.len() });
    let played = parallel::map(&jobs, ask.jobs, |&(playable, unrecorded)| {
        let played = playable.play(unrecorded);
        watcher.advance(1);
        played
    });
    watcher.end();

    // From here on the answers are known.
    let answers = Answers::open(&ask.dir)?;
    let mut played = played.into_iter();
    let mut judged: Vec<Judged> = Vec::new();
    for (&run, plan) in runs.iter().zip(plans) {
        let simulated = plan.and_then(|plan| {
            // All of them are taken even if the first is an error: the next run's come after them.
            let simulations: Vec<Result<Played, _>> = played.by_ref().take(plan.simulations).collect();
            Ok((plan, simulations.into_iter().collect::<Result<Vec<Played>, _>>()?))
        });
        judged.push(match simulated {
            Ok((plan, simulations)) => {
                let mut judged = judge(run, &plan.class, &tolerances, &simulations, &answers)?;
                judged.inputs = plan.playable.account().clone();
                if !run.is_of_balancing() {
                    let misses = answers.misses(answers.of(&run.id), &simulations[0])?;
                    let doubts = complete::doubts(&plan.playable, &answers, misses.as_ref())?;
                    judged.inputs.doubts.extend(doubts);
                }
                if ask.first_difference {
                    judged.first_difference =
                        first_difference(run, &plan.playable, &simulations, &answers, watcher)?;
                }
                judged
            }
            Err(reason) => Judged::not_played(run, &reason),
        });
    }
    for (run, field) in judged.iter().filter_map(|run| Some((&run.run, run.blank?))) {
        watcher.remark(&format!("{run}: `{field}` is empty, so no comparison is possible"));
    }
    for run in judged.iter().filter(|run| !run.rows.is_empty() && !answers.of(&run.run).tells_of_accesses()) {
        let what = "no `misses_file` and no `page_cache_stream`: only its counters are compared";
        watcher.remark(&format!("{}: {what}", run.run));
    }
    Ok(judged)
}

/// Where a run's median simulation and the kernel part, with the story of a page that it is about.
fn first_difference(
    run: &Run,
    playable: &Playable,
    played: &[Played],
    answers: &Answers,
    watcher: &dyn Watcher,
) -> anyhow::Result<Option<Difference>> {
    if run.is_of_machine() {
        watcher.remark(&format!(
            "{}: --first-difference works with runs of a group only, because a complete machine has several concurrent event sequences",
            run.id
        ));
        return Ok(None);
    }
    let (simulation, median) = judge::median_of(played);
    let answer = answers.of(&run.id);
    let missed = answers.misses(answer, median)?;
    let missed = missed.map(|real| [judge::comparable_misses(median, Some(&real)), real]);
    let events = answers.reads(answer)?.filter(|_| !median.reads.is_empty());
    let of_stream = |stream: &[u32]| reads::of_stream(stream, &median.sequence);
    let both = match events {
        Some(real) => Some([median.reads.clone(), real]),
        None => answers.stream(answer)?.map(|real| [of_stream(&median.stream), of_stream(&real)]),
    };
    let reads = both.as_ref().map(|both| both.each_ref().map(Vec::as_slice));
    let Some(mut difference) = Difference::first(median, &run.objects, missed.as_ref(), reads) else {
        return Ok(None);
    };
    let unrecorded = Unrecorded { simulation, simulations: played.len() };
    let (object, page, access) = (difference.object, difference.explained, difference.access as u64);
    match playable.story(unrecorded, object, page, access) {
        Ok(story) => difference.told = story,
        Err(reason) => return Err(anyhow::anyhow!("{}: {reason}", run.id)),
    }
    Ok(Some(difference))
}

/// A folder within that has recordings of its own is a call of its own: other tolerances hold there.
fn tell_of_folders_within(dir: &Path, watcher: &dyn Watcher) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut within: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| outcomes::are_in(path) || Recording::is_in(path))
        .collect();
    within.sort();
    for path in within {
        let path = path.display();
        watcher.remark(&format!("{path} has more recordings: pageout validate {path}"));
    }
}

/// What is to be done with a run that can be replayed.
struct Plan<'a> {
    playable: Playable<'a>,
    class: Class,
    simulations: usize,
}

impl<'a> Plan<'a> {
    /// The class of a run that can't be replayed doesn't matter, so it is looked for last.
    fn new(
        recording: &Recording,
        run: &Run,
        playable: Playable<'a>,
        tolerances: &Tolerances,
        asked: Option<u16>,
    ) -> anyhow::Result<Result<Plan<'a>, Unplayable>> {
        let class = match tolerances.class_of(recording, run)? {
            Ok(class) => class,
            Err(lacking) => return Ok(Err(Unplayable::Missing(vec![lacking]))),
        };
        let simulations = match recording.simulations(run, &class) {
            1 => 1,
            simulations => asked.map_or(simulations, usize::from),
        };
        // What comes into a cache that nothing is taken from doesn't depend on statistics.
        let is_of_cache = match class.limits {
            Limits::Machine(_) | Limits::Tiering(_) => true,
            Limits::Single(limits) => limits.insertions.is_some(),
            Limits::Envelope(_) | Limits::Compressed(_) | Limits::Dirtied(_) => false,
        };
        if !is_of_cache {
            recording.require_flushes(run, &class)?;
        }
        Ok(Ok(Plan { playable, class, simulations }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn killed(run: &str, simulated_kills: usize) -> outcomes::Judged {
        outcomes::Judged {
            run: run.to_string(),
            killed: true,
            simulated_kills,
            simulations: 4,
            killed_after_ns: (simulated_kills > 0).then_some([1, 2]),
            major_faults: None,
            blind_calls: None,
            passes: simulated_kills == 4,
            doubts: Vec::new(),
        }
    }

    fn answer(runs: Vec<outcomes::Judged>, expect_short: &[&str]) -> Answer {
        let expect_short = expect_short.iter().map(ToString::to_string).collect();
        Answer { ask: Ask { expect_short, ..Ask::default() }, compared: Compared::Outcomes(runs) }
    }

    #[test]
    fn fewer_than_two_simulations_are_refused() {
        for simulations in [0, 1] {
            let ask = Ask { simulations: Some(simulations), ..Ask::default() };
            let error = super::ask(&ask, &()).unwrap_err().to_string();
            assert_eq!(error, format!("found {simulations} simulations per run, expected 2 or more"));
        }
    }

    #[test]
    fn single_text_stands_for_a_list_of_one() {
        let one = r#"{ "runs": "a", "expect_short": "a", "without": "flushes" }"#;
        let ask: Ask = serde_json::from_str(one).unwrap();
        assert_eq!((ask.runs, ask.expect_short), (vec!["a".to_string()], vec!["a".to_string()]));
        assert_eq!(ask.without, [Input::Flushes]);
        let error = serde_json::from_str::<Ask>(r#"{ "without": "x" }"#).unwrap_err().to_string();
        assert!(error.contains("unknown input `x`"), "{error}");
    }

    #[test]
    fn folder_that_is_not_named_is_asked_for() {
        let error = super::ask(&Ask::default(), &()).unwrap_err().to_string();
        assert_eq!(error, "dir: found no path, expected the folder of recorded runs");
    }

    #[test]
    fn short_run_is_unexpected_unless_it_is_named() {
        let runs = || vec![killed("a", 4), killed("b", 3)];
        assert_eq!(answer(runs(), &["b"]).verdict().map_err(|error| error.to_string()), Ok(()));
        for (expected, says) in
            [(&[][..], "1 of 2 runs fail"), (&["a", "b"], "a is expected to fail, but it passes")]
        {
            let error = answer(runs(), expected).verdict().unwrap_err();
            assert!(matches!(&error, Error::Unexpected(told) if told == says), "{error}");
        }
    }

    #[test]
    fn answer_whose_kills_do_not_add_up_fails_its_check() {
        assert_eq!(answer(vec![killed("a", 3)], &[]).check(), Ok(()));
        let wrong = outcomes::Judged { passes: true, ..killed("a", 3) };
        assert_eq!(
            answer(vec![wrong], &[]).check(),
            Err("a: a passed run has 3 kills in 4 simulations".to_string())
        );
    }
}
