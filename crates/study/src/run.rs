//! One scenario, run once.

use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::error::Error;
use crate::json::merged;
use crate::result::run_result::{RunResult, TaskResult};
use crate::result::simulate::{Stopped, simulate};
use crate::scenario::diagnostic::Diagnostics;
use crate::scenario::interpretation;
use crate::scenario::load::{Changes, load};
use crate::scenario::own_variants;
use crate::scenario::source::Source;
use crate::watch::{Stage, Watcher, name_of};

/// Which scenario is run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, or `-` for standard input.
    pub scenario: PathBuf,
    /// What is changed in the scenario.
    pub changes: Changes,
    /// A variant of the scenario, one of its `[[variant]]`. Default: the unchanged scenario.
    pub variant: Option<String>,
}

/// The result.
#[derive(Debug)]
pub struct Answer {
    /// The figures, up to where it failed if it did.
    pub result: RunResult,
    /// Why it did not come to its end.
    pub failed: Option<Error>,
}

/// Runs a scenario. A run that fails is an answer, with its figures up to then. Errors: the scenario makes no sense, or has no such variant.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let source = Source::read(&ask.scenario)?;
    let mut scenario = load(&source, &ask.changes, &[], watcher)?;
    for object in scenario.task.iter().flat_map(|task| &task.object) {
        let Some(trace) = &object.trace else { continue };
        let read = object.read_options().map_err(|error| Error::asked(error.to_string()))?;
        interpretation::remark(&trace.path, &read, watcher)
            .map_err(|error| Error::asked(error.to_string()))?;
    }
    if let Some(name) = &ask.variant {
        scenario = own_variants::one(&source, &ask.changes, &scenario, name, &[], watcher)?;
    }
    watcher.begin(&Stage::Running { name: &name_of(&ask.scenario), runs: 1, accesses: None });
    let done = simulate(&scenario, watcher);
    watcher.end();
    let answer = match done {
        Ok(result) => Answer { result, failed: None },
        Err(Stopped::NotBuilt(problem)) => {
            return Err(Error::Scenario(Diagnostics(vec![source.locate(problem)])));
        }
        Err(Stopped::Failed(error, partial)) => Answer { result: *partial, failed: Some(Error::Run(error)) },
        Err(Stopped::Interrupted(by, partial)) => {
            let told = format!("interrupted by {by}");
            Answer { result: *partial, failed: Some(Error::Interrupted(told)) }
        }
    };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
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
