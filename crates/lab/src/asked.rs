//! Questions for programs: a study's `Ask` as JSON in, its answer as JSON out. The functions of the Python package are these.

use pageout_sim::scenario::TimeSpan;
use pageout_study::{Answered, Watcher};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Context;
use crate::failure::Failure;
use crate::own::{CALL_LIMIT, OwnOptions, Watchdog};
use crate::print::csv;
use crate::print::output::to_json;

/// A study that programs may ask.
#[derive(Clone, Copy)]
pub struct Question {
    /// The function of the Python package.
    pub python: &'static str,
    /// Answers an `Ask`.
    pub(crate) ask: fn(&Context, Value, &dyn Watcher) -> Asked,
    /// The `Ask` that names nothing, with the default of each field.
    pub default: fn() -> Value,
}

/// What a question came to.
#[derive(Debug, Default)]
pub struct Asked {
    /// The answer as the command prints it with `--json`: there may be some of it where it has failed.
    pub json: Option<String>,
    /// Its rows, with the names of their columns.
    pub rows: Rows,
    /// Why not all is there, with the exit code of the command.
    pub failure: Option<(u8, String)>,
}

/// Names of columns, and rows of as many values.
pub type Rows = (Vec<String>, Vec<Vec<Value>>);

/// What policies of the user's own may do.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnPolicies {
    /// Policies that are shared libraries run. Default false: they have the user's rights.
    pub allow_plugins: bool,
    /// A wrong answer counts, and the page that came first goes in its place. Default false: it ends the run.
    pub fallback: bool,
    /// A call that takes longer ends the run. Default 10 s.
    pub call_limit: Option<TimeSpan>,
}

impl OwnPolicies {
    /// Looks for calls of these policies that begin from now on and do not return.
    pub fn watchdog(&self) -> Watchdog {
        Watchdog::new(self.call_limit.unwrap_or(CALL_LIMIT))
    }
}

/// Asks a study.
pub(crate) fn ask<A: DeserializeOwned, R: Answered, E: Into<Failure>>(
    question: Value,
    watcher: &dyn Watcher,
    study: impl FnOnce(&A, &dyn Watcher) -> Result<R, E>,
) -> Asked {
    let failed = |failure: Failure| Some((failure.code(), failure.to_string().trim_end().to_string()));
    let question: A = match serde_json::from_value(question) {
        Ok(question) => question,
        Err(error) => return Asked { failure: failed(Failure::Input(error.into())), ..Asked::default() },
    };
    let mut answer = match study(&question, watcher) {
        Ok(answer) => answer,
        Err(error) => return Asked { failure: failed(error.into()), ..Asked::default() },
    };
    let json = serde_json::to_value(&answer).expect("results hold nothing that JSON can't");
    let is_nothing = answer.is_nothing();
    let failure = answer.failure().and_then(|error| failed(error.into()));
    if is_nothing {
        return Asked { failure, ..Asked::default() };
    }
    let rows = rows(&answer.rows().map_or_else(|| json.clone(), Value::Array));
    Asked { json: Some(to_json(&json)), rows, failure }
}

/// The `Ask` that names nothing.
pub(crate) fn default<A: Default + Serialize>() -> Value {
    serde_json::to_value(A::default()).expect("questions hold nothing that JSON can't")
}

/// A result that is JSON in rows, as `--format csv` has them.
fn rows(result: &Value) -> Rows {
    match csv::cells(result, &[]) {
        Ok(cells) => (cells.columns, cells.rows),
        Err(_) => Rows::default(),
    }
}

impl From<OwnPolicies> for OwnOptions {
    fn from(own: OwnPolicies) -> OwnOptions {
        let OwnPolicies { allow_plugins, fallback, call_limit } = own;
        OwnOptions { allow_plugins, fallback, call_limit: call_limit.unwrap_or(CALL_LIMIT) }
    }
}
