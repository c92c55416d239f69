//! `pageout check-policy`: whether a policy of the user's own keeps the contract (`pageout_policy::check`).

pub(crate) mod args; // what can be asked
use std::path::Path;

use pageout_policy::Listed;
use pageout_policy::check::check;
use pageout_study::scenario::nearest::nearest;
use serde_json::json;

use crate::api;
use crate::failure::{Failure, Outcome};
use crate::own;
use crate::print::output;
use args::CheckPolicyArgs;

/// Checks a policy, and says what it does wrong.
pub(crate) fn run(args: &CheckPolicyArgs) -> Outcome {
    if !api::is_call() {
        own::guard();
    }
    let name = args.policy.as_str();
    let listed = match Listed::by_name(name) {
        Some(listed) => listed,
        None if pageout_policy::is_file(name) || Path::new(name).is_file() => {
            own::named_library(name).map_err(anyhow::Error::msg)?
        }
        None => return Err(Failure::Input(unknown(name))),
    };
    if let Err(broken) = check(listed.make) {
        let failure = Failure::Input(anyhow::anyhow!("policy {name}: {broken}"));
        let so_far = json!({ "policy": name, "policy_hash": listed.hash, "keeps_contract": false });
        return output::no_result(&args.output, failure, so_far);
    }
    if args.output.is_data() {
        return output::print_json(&json!({
            "complete": true,
            "policy": name,
            "policy_hash": listed.hash,
            "keeps_contract": true,
        }));
    }
    let hash = listed.hash.map(|hash| format!("; BLAKE3 {hash}")).unwrap_or_default();
    output::print_text(&format!(
        "{name} keeps the contract: on 24 random traces, in memories of 1, 2, 7 and all pages, with uses told one by one and 256 at once{hash}\n"
    ))
}

fn unknown(name: &str) -> anyhow::Error {
    let known: Vec<&str> =
        pageout_policy::POLICIES.iter().chain(Listed::brought()).map(|listed| listed.name).collect();
    let hint = nearest(name, known.iter().copied());
    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    anyhow::anyhow!(
        "{name} is no file, and no policy over slots is called so{hint} This program knows {}",
        known.join(", ")
    )
}
