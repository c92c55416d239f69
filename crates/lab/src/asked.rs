//! Questions for programs: a study's `Ask` as JSON in, its answer as JSON out. The functions of the Python package are these.

use pageout_sim::scenario::TimeSpan;
use pageout_study::{Answered, Watcher};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::Failure;
use crate::print::csv::{self, Cells};
use crate::print::output::to_json;
use crate::user_policy::{CALL_LIMIT, UserPolicyArgs, Watchdog};

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

/// The result of a question.
#[derive(Debug, Default)]
pub struct Asked {
    /// The answer as the command prints it with `--json`: there may be some of it where it has failed.
    pub json: Option<String>,
    /// Its rows, with the names of their columns.
    pub rows: Rows,
    /// The reason why the result is not complete, with the exit code of the command.
    pub failure: Option<(u8, String)>,
}

/// Names of columns, and rows of as many values.
pub type Rows = (Vec<String>, Vec<Vec<Value>>);

/// Options of custom policies.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UserPolicyOptions {
    /// Policies that are shared libraries run. Default false: they have the user's rights.
    pub allow_plugins: bool,
    /// Replaces an invalid answer by the oldest page, and counts it. Default false: an invalid answer ends the run.
    pub fallback: bool,
    /// A call that takes longer ends the run. Default 10 s.
    pub call_limit: Option<TimeSpan>,
}

impl UserPolicyOptions {
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
    let question: A = match A::deserialize(&question) {
        Ok(question) => question,
        Err(error) => {
            let error = Failure::Input(anyhow::Error::msg(wrong_field::<A>(&question, &error)));
            return Asked { failure: failed(error), ..Asked::default() };
        }
    };
    let mut answer = match study(&question, watcher) {
        Ok(answer) => answer,
        Err(error) => return Asked { failure: failed(error.into()), ..Asked::default() },
    };
    let json = match serde_json::to_value(&answer) {
        Ok(json) => json,
        Err(error) => {
            let error = Failure::Output(std::io::Error::other(error));
            return Asked { failure: failed(error), ..Asked::default() };
        }
    };
    let is_nothing = answer.is_nothing();
    let failure = answer.failure().and_then(|error| failed(error.into()));
    if is_nothing {
        return Asked { failure, ..Asked::default() };
    }
    let Cells { columns, rows } = csv::all_cells(&answer.rows().map_or_else(|| json.clone(), Value::Array));
    Asked { json: Some(to_json(&json)), rows: (columns, rows), failure }
}

/// The field of a question that is wrong, and why. Each field is read alone, which works as all have defaults.
fn wrong_field<A: DeserializeOwned>(question: &Value, error: &serde_json::Error) -> String {
    fn find<A: DeserializeOwned>(path: &[&str], value: &Value) -> Option<(String, String)> {
        let Value::Object(members) = value else { return None };
        members.iter().find_map(|(name, member)| {
            let path: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            let alone = path.iter().rfold(member.clone(), |value, name| json!({ *name: value }));
            let error = A::deserialize(&alone).err()?.to_string();
            // A field within that has no default is not wrong for being alone.
            let is_wrong = !error.starts_with("missing field");
            find::<A>(&path, member).or_else(|| is_wrong.then(|| (name.clone(), error)))
        })
    }
    match find::<A>(&[], question) {
        Some((field, why)) => format!("{field}: {}", plain(&why)),
        None => plain(&error.to_string()),
    }
}

/// An error of reading JSON without names of Rust's types.
fn plain(error: &str) -> String {
    let invalid = error.strip_prefix("invalid type: ").or(error.strip_prefix("invalid value: "));
    let Some((found, expected)) = invalid.and_then(|error| error.rsplit_once(", expected ")) else {
        return error.to_string();
    };
    let expected = match expected {
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "a boolean" => "true or false",
        "a string" | "string or map" => "a text",
        "path string" => "a path",
        "a sequence" => "a list",
        expected => expected,
    };
    format!("found {found}, expected {expected}")
}

/// The `Ask` that names nothing.
pub(crate) fn default<A: Default + Serialize>() -> Value {
    serde_json::to_value(A::default()).expect("questions hold nothing that JSON can't")
}

impl From<UserPolicyOptions> for UserPolicyArgs {
    fn from(options: UserPolicyOptions) -> UserPolicyArgs {
        let UserPolicyOptions { allow_plugins, fallback, call_limit } = options;
        UserPolicyArgs { allow_plugins, fallback, call_limit: call_limit.unwrap_or(CALL_LIMIT) }
    }
}

#[cfg(test)]
mod tests {
    use pageout_study::Error;
    use serde::Serializer;
    use serde::ser::Error as _;

    use super::*;
    use crate::program::Program;

    /// What was asked, as its own answer.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Plain {
        runs: u32,
        share: Option<f64>,
        names: Vec<String>,
        limit: Option<TimeSpan>,
        within: Within,
        about: Option<About>,
    }

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Within {
        seed: Option<u64>,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum About {
        Last { count: u32, group: Option<String> },
    }

    impl Answered for Plain {
        fn failure(&mut self) -> Option<Error> {
            None
        }
    }

    /// An answer that JSON has no form for.
    struct Formless;

    impl Serialize for Formless {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("path contains invalid UTF-8 characters"))
        }
    }

    impl Answered for Formless {
        fn failure(&mut self) -> Option<Error> {
            None
        }
    }

    #[test]
    fn wrong_field_is_named_with_what_it_should_be() {
        for (question, told) in [
            (json!({ "runs": 1, "share": true }), "share: found boolean `true`, expected a number"),
            (json!({ "runs": -1 }), "runs: found integer `-1`, expected a whole number from 0"),
            (json!({ "runs": 1, "names": ["a", 5] }), "names: found integer `5`, expected a text"),
            (json!({ "names": "a" }), "names: found string \"a\", expected a list"),
            (
                json!({ "runs": 1, "within": { "seed": "x" } }),
                "seed: found string \"x\", expected a whole number from 0",
            ),
            (
                json!({ "about": { "last": { "group": 7, "count": 1 } } }),
                "group: found integer `7`, expected a text",
            ),
            (json!({ "about": { "last": { "group": "a" } } }), "missing field `count`"),
            (json!({ "limit": "5" }), "limit: `5` is not a duration: the unit is missing"),
            (json!({ "run": 1 }), "run: unknown field `run`, expected one of"),
        ] {
            let asked = ask::<Plain, Plain, Error>(question.clone(), &(), |_, _| Ok(Plain::default()));
            let (code, why) = asked.failure.unwrap();
            assert!(code == 2 && why.starts_with(told), "{question}: {code} {why}");
        }
    }

    #[test]
    fn answer_that_json_cannot_hold_is_an_error() {
        let asked = ask::<Plain, Formless, Error>(json!({}), &(), |_, _| Ok(Formless));
        let (code, why) = asked.failure.unwrap();
        assert!(code == 3 && why.contains("path contains invalid UTF-8 characters"), "{code} {why}");
        assert_eq!((asked.json, asked.rows), (None, Rows::default()));
    }

    #[test]
    fn study_that_nobody_knows_is_an_error() {
        let asked = crate::answer("runn", json!({}), UserPolicyOptions::default(), Program::default(), &());
        let (code, why) = asked.failure.unwrap();
        assert_eq!(code, 2);
        assert!(why.starts_with("unknown study `runn`; known: run, compare, explain"), "{why}");
    }
}
