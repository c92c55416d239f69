//! Every switch of a policy, and every mechanism of memory tiers, does something that a shipped scenario shows.

use std::collections::BTreeMap;

use pageout_engine::{Lists, PARAMETERS, Parameter, Policy, SWITCHES, Section, Shown};
use serde_json::{Value, json};

use super::{check_success, pageout, scenarios, text};

/// The result of a run, or how it failed, which is a difference, too.
fn result_of(scenario: &str, options: &[&str]) -> Result<Value, Value> {
    let arguments: Vec<&str> =
        ["run", scenario, "--json"].into_iter().chain(options.iter().copied()).collect();
    let output = pageout(&scenarios(), &arguments);
    if !output.status.success() {
        // A scenario that can't be read shows nothing.
        assert_ne!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stderr));
        return Err(json!(text(&output.stderr)));
    }
    Ok(serde_json::from_str(&text(&output.stdout)).unwrap())
}

/// What was missed, and the kernel's counters; no times, so that a difference is one of decisions.
fn figures(scenario: &str, settings: &[&str]) -> Value {
    let options: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let result = match result_of(scenario, &options) {
        Ok(result) => result,
        Err(failure) => return failure,
    };
    let each = |list: &str, keys: &[&str]| -> Value {
        let items = result[list].as_array().unwrap();
        items.iter().map(|item| keys.iter().map(|key| item[*key].clone()).collect::<Value>()).collect()
    };
    let tasks = each("tasks", &["hits", "minor", "major", "read_misses"]);
    json!([tasks, each("memcgs", &["counters"]), result["vmstat"]])
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn each_switch_changes_the_result_of_the_scenario_that_is_said_to_show_it() {
    let mut unchanged: BTreeMap<&str, Value> = BTreeMap::new();
    for switch in SWITCHES {
        let Some((scenario, value)) = switch.shown_by else { continue };
        let base = unchanged.entry(scenario).or_insert_with(|| figures(scenario, &[]));
        // Out of memory is a result, where that is what the scenario is about.
        let is_result = base.as_str().is_none_or(|failure| failure.contains("out of memory"));
        assert!(is_result, "{scenario} fails: {base}");
        let changed = figures(scenario, &[&format!("kernel.{}={value}", switch.name)]);
        assert_ne!(*base, changed, "{} = {value} changes nothing in {scenario}", switch.name);
    }
}

/// Tiers are the machine's, and so are the counters that tell of them.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn each_mechanism_of_tiers_changes_the_counters_of_the_run_that_is_said_to_show_it() {
    let mut unchanged: BTreeMap<(&str, Option<&str>), Value> = BTreeMap::new();
    let mut same = Vec::new();
    for parameter in PARAMETERS {
        let shown = parameter.mechanism.as_ref().and_then(|mechanism| mechanism.shown_by.as_ref());
        let Some(Shown { scenario, variant, value }) = shown else { continue };
        let of_variant = variant.iter().flat_map(|name| ["--variant", name]);
        let of_variant: Vec<&str> =
            ["--set", "machine.hindsight=false"].into_iter().chain(of_variant).collect();
        let counters = |more: &[&str]| {
            let result = result_of(scenario, &[&of_variant[..], more].concat());
            result.unwrap_or_else(|failure| panic!("{scenario} fails: {failure}"))["vmstat"].clone()
        };
        let base = unchanged.entry((scenario, *variant)).or_insert_with(|| counters(&[]));
        let table = if parameter.section == Section::Sysctl { "sysctl" } else { "kernel" };
        if *base == counters(&["--set", &format!("{table}.{}={value}", parameter.name)]) {
            same.push(format!("{} = {value} changes nothing in {scenario}, {variant:?}", parameter.name));
        }
    }
    assert!(same.is_empty(), "{}", same.join("\n"));
}

#[test]
fn no_switch_is_without_a_scenario_that_shows_it() {
    let without: Vec<&str> =
        SWITCHES.iter().filter(|switch| switch.shown_by.is_none()).map(|switch| switch.name).collect();
    assert_eq!(
        without,
        [
            "lru.interface",
            "lru.age_at_default",
            "lru.offline_aging",
            "reclaim.batch_tallies",
            "reclaim.congested_queue",
            "reclaim.writepage",
            "reclaim.clean_only",
            "reclaim.machine_counts",
            "reclaim.swap_ahead_drain",
            "reclaim.gives_up",
            "folio.truncate_split",
            "folio.tmpfs_swap_in",
            "folio.tmpfs_reads_once",
            "folio.split_first",
            "folio.deferred_queue",
            "folio.pageout",
            "damon.window",
            "damon.accesses",
        ],
        "a switch that nothing shows says so in its documentation, and is listed here"
    );
    let is_unseen = |parameter: &&Parameter| {
        parameter.mechanism.as_ref().is_some_and(|mechanism| mechanism.shown_by.is_none())
    };
    let unseen: Vec<&str> = PARAMETERS.iter().filter(is_unseen).map(|parameter| parameter.name).collect();
    assert_eq!(unseen, ["pghot.batch_by_memcg"], "likewise");
}

#[test]
fn the_three_ways_to_weigh_the_types_differ_over_generations() {
    let by = |rule: &str| figures("mechanisms.toml", &[&format!("kernel.balance.rule={rule}")]);
    let (cost, feedback, swappiness) = (by("cost"), by("feedback"), by("swappiness"));
    assert!(cost != feedback && feedback != swappiness && swappiness != cost);
}

#[test]
fn the_reference_names_the_scenario_that_shows_a_switch() {
    let printed = check_success(&pageout(&scenarios(), &["keys", "kernel.harvest.bloom_filter"]));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected =
        ". Shown by `pageout run scenarios/mechanisms.toml --set kernel.harvest.bloom_filter=false`.";
    assert!(printed.contains(expected), "{printed}");
    let printed = check_success(&pageout(&scenarios(), &["keys", "kernel.pghot.window_by_node"]));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "Shown by `pageout run scenarios/mechanisms-tiers.toml --variant counted --set kernel.pghot.window_by_node=true`.";
    assert!(printed.contains(expected), "{printed}");
}

/// A rule that only the other lists read is left out of `bisect` before it runs. It is tried where it is said to show.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn rules_that_only_other_lists_read_change_nothing() {
    let mut unchanged: BTreeMap<(&str, &str), Value> = BTreeMap::new();
    let mut changing = Vec::new();
    for switch in SWITCHES {
        let Some(only) = switch.only_with() else { continue };
        let lists = if only == Lists::Mglru { "classic" } else { "mglru" };
        for scenario in [switch.shown_by.map_or("mechanisms.toml", |shown| shown.0), "whole-machine.toml"] {
            // Profiles of its own would be other lists; those that write lru_gen have both.
            let text = std::fs::read_to_string(scenarios().join(scenario)).unwrap();
            if text.contains("lru_gen") || text.contains("policy =") {
                continue;
            }
            let profile = format!("kernel.profile={lists}@6.12");
            let base = unchanged.entry((scenario, lists)).or_insert_with(|| figures(scenario, &[&profile]));
            for value in switch.alternatives(&Policy::of(&format!("{lists}@6.12"))) {
                let changed = figures(scenario, &[&profile, &format!("kernel.{}={value}", switch.name)]);
                if *base != changed {
                    changing.push(format!("{} = {value} in {scenario} with {lists}", switch.name));
                }
            }
        }
    }
    assert!(changing.is_empty(), "{}", changing.join("\n"));
}
