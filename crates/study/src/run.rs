//! One scenario, run once.

use std::path::PathBuf;

use pageout_sim::scenario::Scenario;
use pageout_sim::{Machine, Observer};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::error::Error;
use crate::json::merged;
use crate::result::notes::{self, Note};
use crate::result::run_result::{RunResult, TaskResult};
use crate::result::simulate::{Stopped, accesses, simulate_on};
use crate::scenario::diagnostic::Diagnostics;
use crate::scenario::interpretation;
use crate::scenario::load::{Changes, load};
use crate::scenario::own_variants;
use crate::scenario::source::Source;
use crate::watch::{Stage, Watcher, name_of};

/// The scenario to run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, or `-` for standard input.
    pub scenario: PathBuf,
    /// The changes of the scenario.
    pub changes: Changes,
    /// A variant of the scenario, one of its `[[variant]]`. Default: the unchanged scenario.
    pub variant: Option<String>,
}

/// The result of a run.
#[derive(Debug)]
pub struct Answer {
    /// The figures, up to where it failed if it did.
    pub result: RunResult,
    /// The reason why it did not reach its end.
    pub failed: Option<Error>,
}

/// A scenario that is loaded and ready to run. Its traces can be opened.
#[derive(Debug)]
pub struct Ready {
    /// The file.
    pub source: Source,
    /// The scenario, with the changes and the variant of the [`Ask`].
    pub scenario: Scenario,
    name: String,
}

/// Runs a scenario. A run that fails is an answer, with its figures up to then. Errors: the scenario makes no sense, or has no such variant.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    ready(ask, watcher)?.ask_with(watcher, |_| Ok(Vec::new()))
}

/// Checks a scenario with all its variants, and returns the notes about its keys. It runs nothing. Errors: as [`ask`].
pub fn check(ask: &Ask, watcher: &dyn Watcher) -> Result<Vec<Note>, Error> {
    let (source, scenario) = read(ask, watcher)?;
    own_variants::all(&source, &ask.changes, &scenario, watcher)?;
    Ok(notes::of_scenario(&scenario))
}

/// Loads a scenario. Errors: as [`ask`].
pub fn ready(ask: &Ask, watcher: &dyn Watcher) -> Result<Ready, Error> {
    let (source, mut scenario) = read(ask, watcher)?;
    if let Some(name) = &ask.variant {
        scenario = own_variants::one(&source, &ask.changes, &scenario, name, &[], watcher)?;
    }
    Ok(Ready { source, scenario, name: name_of(&ask.scenario) })
}

fn read(ask: &Ask, watcher: &dyn Watcher) -> Result<(Source, Scenario), Error> {
    let source = Source::read(&ask.scenario)?;
    let scenario = load(&source, &ask.changes, &[], watcher)?;
    for object in scenario.task.iter().flat_map(|task| &task.object) {
        let Some(trace) = &object.trace else { continue };
        let read = object.read_options().map_err(|error| Error::asked(error.to_string()))?;
        interpretation::remark(&trace.path, &read, watcher)?;
    }
    Ok((source, scenario))
}

impl Ready {
    /// Runs the scenario with observers. `observe` receives the machine before the run: it requests samples or tracepoints, and returns the
    /// observers. Errors: those of `observe`, or the machine cannot be built.
    pub fn ask_with<'a, E: From<Error>>(
        &self,
        watcher: &dyn Watcher,
        observe: impl FnOnce(&mut Machine) -> Result<Vec<&'a mut dyn Observer>, E>,
    ) -> Result<Answer, E> {
        let accesses = watcher.is_seen().then(|| accesses(&self.scenario)).flatten();
        watcher.begin(&Stage::Running { name: &self.name, runs: 1, accesses });
        let done = self.run(watcher, observe);
        watcher.end();
        let answer = match done? {
            Ok(result) => Answer { result, failed: None },
            Err(Stopped::NotBuilt(problem)) => {
                return Err(Error::Scenario(Diagnostics(vec![self.source.locate(problem)])).into());
            }
            Err(Stopped::Failed(error, partial)) => {
                Answer { result: *partial, failed: Some(Error::Run(error)) }
            }
            Err(Stopped::Interrupted(by, partial)) => {
                let told = format!("interrupted by {by}");
                Answer { result: *partial, failed: Some(Error::Interrupted(told)) }
            }
        };
        debug_assert_eq!(answer.check(), Ok(()));
        Ok(answer)
    }

    fn run<'a, E>(
        &self,
        watcher: &dyn Watcher,
        observe: impl FnOnce(&mut Machine) -> Result<Vec<&'a mut dyn Observer>, E>,
    ) -> Result<Result<RunResult, Stopped>, E> {
        let mut machine = match self.scenario.build() {
            Ok(machine) => machine,
            Err(problem) => return Ok(Err(Stopped::NotBuilt(problem))),
        };
        let mut observers = observe(&mut machine)?;
        Ok(simulate_on(machine, &self.scenario, watcher, &mut observers))
    }
}

impl Answer {
    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let of_tasks: u64 = self.result.tasks.iter().map(|task| task.accesses).sum();
        if of_tasks != self.result.accesses {
            let all = self.result.accesses;
            return Err(format!("the run has {all} accesses, but its tasks have {of_tasks}"));
        }
        match self.result.tasks.iter().find(|task| TaskResult::misses(task) > task.accesses) {
            Some(task) => Err(format!("{} has more misses than accesses", task.name)),
            None => Ok(()),
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.failed {
            None => self.result.serialize(serializer),
            Some(error) => {
                let head = json!({ "complete": false, "error": error.to_string() });
                merged(head, json!({ "so_far": self.result })).serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        let file = "[[task]]\nname = \"reader\"\nobject = [{ channel = \"file\", size = \"1MiB\", workload = { pattern = \"uniform\", ops = 500 } }]\n";
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("web.toml");
        std::fs::write(&scenario, file).unwrap();
        let mut answer = ask(&Ask { scenario, ..Ask::default() }, &()).unwrap();
        assert_eq!(answer.check(), Ok(()));
        answer.result.accesses += 1;
        assert!(answer.check().unwrap_err().contains("but its tasks have"));
        (answer.result.accesses, answer.result.tasks[0].accesses) = (1, 1);
        assert!(answer.check().unwrap_err().contains("more misses than accesses"));
    }
}
