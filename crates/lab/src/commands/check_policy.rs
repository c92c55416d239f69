//! `pageout check-policy`: whether a policy of the user's own keeps the contract (`pageout_policy::check`).

pub(crate) mod args; // what can be asked
use std::path::Path;

use pageout_policy::Listed;
use pageout_policy::check::check;
use pageout_study::scenario::nearest::nearest;
use pageout_study::{Answered, Error, Watcher};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use args::CheckPolicyArgs;

/// Which policy is checked.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ask {
    /// A policy over slots, by its name, or a shared library.
    policy: String,
}

/// What the check came to.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    complete: bool,
    policy: String,
    policy_hash: Option<String>,
    keeps_contract: bool,
    #[serde(skip)]
    broken: Option<String>,
}

impl Answered for Answer {
    fn failure(&mut self) -> Option<Error> {
        let broken = self.broken.take()?;
        Some(Error::Asked(format!("policy {}: {broken}", self.policy)))
    }
}

/// Checks a policy. Errors: there is none of this name, or it may not run.
pub(crate) fn ask(ask: &Ask, cx: &Context, _: &dyn Watcher) -> Result<Answer, Failure> {
    let name = ask.policy.as_str();
    let listed = match Listed::by_name(name) {
        Some(listed) => listed,
        None if pageout_policy::is_file(name) || Path::new(name).is_file() => {
            cx.user_policies.named_library(name).map_err(anyhow::Error::msg)?
        }
        None => return Err(Failure::Input(unknown(name))),
    };
    let broken = check(listed.make).err().map(|broken| broken.to_string());
    Ok(Answer {
        complete: broken.is_none(),
        policy: name.to_string(),
        policy_hash: listed.hash.map(str::to_string),
        keeps_contract: broken.is_none(),
        broken,
    })
}

/// Checks a policy, and says what it does wrong.
pub(crate) fn run(args: &CheckPolicyArgs, cx: &Context) -> Outcome {
    if !cx.output.is_of_a_call() {
        cx.user_policies.guard(&cx.output);
    }
    let name = args.policy.as_str();
    let mut answer = ask(&Ask { policy: name.to_string() }, cx, &())?;
    if let Some(failure) = answer.failure() {
        let so_far = json!({ "policy": name, "policy_hash": answer.policy_hash, "keeps_contract": false });
        return cx.output.no_result(failure.into(), so_far);
    }
    if cx.output.is_data() {
        return cx.output.print_json(&answer);
    }
    let hash = answer.policy_hash.map(|hash| format!("; BLAKE3 {hash}")).unwrap_or_default();
    cx.output.print_text(&format!(
        "{name} keeps the contract: 24 random traces, memories of 1, 2, 7 and all pages, uses reported one by one and 256 at a time{hash}\n"
    ))
}

fn unknown(name: &str) -> anyhow::Error {
    let known: Vec<&str> =
        pageout_policy::POLICIES.iter().chain(Listed::brought()).map(|listed| listed.name).collect();
    let hint = nearest(name, known.iter().copied());
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    anyhow::anyhow!(
        "unknown policy: found `{name}`, expected a library or a built-in policy{hint}\nhelp: the built-in policies are {}",
        known.join(", ")
    )
}
