//! `bisect`, and a version of the kernel as a value: `kernel.version`, `--kernel`, `keys --at`.

use super::{check_failure, check_success, pageout, with_scenario};

/// Anonymous memory that turns over faster than statistics are flushed, at a third of the size of the shipped scenario.
const TURNS_OVER: &str = r#"
[kernel]
memcg.kmem = false
[sysctl]
vm.page-cluster = 0
[[swap]]
size = "512MiB"
kind = "zram"
[[memcg]]
path = "/job"
memory.max = "400 pages"
[[task]]
name = "job"
memcg = "/job"
think_time = "140us"
[[task.object]]
channel = "anonymous"
size = "1024 pages"
workload = { pattern = "uniform", ops = 70_000, write_ratio = 0.3 }
"#;

fn json(scenario: &str, command: &str) -> serde_json::Value {
    let directory = with_scenario(scenario);
    let arguments: Vec<&str> = command.split_whitespace().chain(["--json"]).collect();
    serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
}

fn failed(scenario: &str, command: &str, says: &[&str]) {
    let directory = with_scenario(scenario);
    let arguments: Vec<&str> = command.split_whitespace().collect();
    check_failure(&pageout(directory.path(), &arguments), 2, says);
}

fn rule<'a>(found: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let rules = found["rules"].as_array().unwrap();
    rules.iter().find(|rule| rule["rule"] == name).unwrap_or_else(|| panic!("{name} does not differ"))
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn bisect_names_the_rate_limit_of_flushes_for_a_premature_out_of_memory() {
    let found = json(TURNS_OVER, "bisect scenario.toml --from 6.1 --to 6.12 --repeat 2");
    assert_eq!(found["figure"], "fails");
    assert_eq!(found["verdict"]["rules"], serde_json::json!(["reclaim.stat_flush"]));
    assert_eq!(found["verdict"]["is_one"], true);
    let flush = rule(&found, "reclaim.stat_flush");
    assert_eq!(
        (&flush["from"], &flush["to"], &flush["since"]),
        (&"6.1".into(), &"6.12".into(), &"6.12".into())
    );
    assert_eq!(flush["alone"]["brings"]["share"], 1.0);
    assert_eq!(flush["without"]["gone"]["share"], 1.0);
    assert_eq!(rule(&found, "folio_batch")["alone"]["brings"]["share"], 0.0);
}

/// A file that is read at random in a group, for so short a time that seeds differ by as much as versions do.
const SHORT: &str = r#"
[[memcg]]
path = "/web"
memory.max = "8MiB"
[[task]]
name = "reader"
memcg = "/web"
[[task.object]]
channel = "file"
size = "16MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 40_000 }
"#;

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_rule_is_named_without_a_doubt_only_where_its_interval_keeps_above_half_of_the_change() {
    let directory = with_scenario(SHORT);
    let bisect = |more: &str| {
        let command = format!("bisect scenario.toml --from 6.1 --to 6.12 --judge-by refaults_file {more}");
        let output = pageout(directory.path(), &command.split_whitespace().collect::<Vec<_>>());
        check_success(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let doubt = "reclaim.stat_flush may have caused it";
    let more = "More seeds are needed to confirm it: with 2 seeds, the interval includes less than half of the change. Try --repeat 4.";
    let text = bisect("--repeat 2 --report page.html");
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    for told in [&text, &page] {
        assert!(told.contains(doubt) && told.contains(more), "{told}");
    }
    let verdict = |more: &str| {
        let found: serde_json::Value = serde_json::from_str(&bisect(&format!("{more} --json"))).unwrap();
        (found["verdict"]["seeds_to_be_sure"].as_u64(), found["verdict"]["says"][0].to_string())
    };
    let (seeds, says) = verdict("--repeat 2");
    assert_eq!(seeds, Some(4));
    assert!(says.contains(doubt) && says.contains(more), "{says}");
    let (seeds, says) = verdict("--repeat 10");
    assert_eq!(seeds, None);
    assert!(says.contains("reclaim.stat_flush caused it (6.1") && !says.contains("More seeds"), "{says}");
}

#[test]
fn a_rule_that_the_scenario_sets_itself_does_not_differ_between_versions() {
    let fixed = TURNS_OVER.replace("memcg.kmem = false", "memcg.kmem = false\nreclaim.stat_flush = \"6.1\"");
    let found = json(&fixed, "bisect scenario.toml --from 6.1 --to 6.12 --repeat 1 --judge-by pages_read");
    assert!(found["rules"].as_array().unwrap().iter().all(|rule| rule["rule"] != "reclaim.stat_flush"));
    assert_ne!(found["figure_to"], "failed 1 of 1");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn rules_stand_in_the_order_in_which_they_came_and_the_page_has_a_bar_a_rule() {
    let directory = with_scenario(TURNS_OVER);
    let command = "bisect scenario.toml --from 6.1 --to 6.12 --repeat 1 --report page.html";
    let output = pageout(directory.path(), &command.split(' ').collect::<Vec<_>>());
    let printed = check_success(&output);
    let at = |name: &str| printed.find(&format!("\n{name} ")).unwrap_or_else(|| panic!("{name}: {printed}"));
    assert!(
        at("folio_batch") < at("reclaim.tree_walk") && at("reclaim.tree_walk") < at("reclaim.stat_flush")
    );
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("reclaim.stat_flush=6.12") && page.contains("What each rule brings alone"));
}

#[test]
fn bisect_refuses_what_makes_no_sense() {
    for (command, says) in [
        (
            "bisect scenario.toml --from 6.12 --to 6.1",
            &["--from 6.12 is later than --to 6.1", "exchange"][..],
        ),
        ("bisect scenario.toml --from 6.12 --to 6.12", &["found 6.12 twice, expected two versions"]),
        (
            "bisect scenario.toml --from 6.21 --to 7.1",
            &["--from: found `6.21`: unknown kernel version", "2.6.35 to 7.3"],
        ),
        (
            "bisect scenario.toml --from 5.15 --to 6.1 --lists mglru",
            &["mglru@5.15 does not have MGLRU", "6.1"],
        ),
        ("bisect scenario.toml --from 6.1 --to 6.12 --judge-by pages_raed", &["did you mean `pages_read`?"]),
    ] {
        failed(TURNS_OVER, command, says);
    }
}

#[test]
fn a_version_is_a_value_wherever_a_profile_may_stand() {
    let by_key = json(TURNS_OVER, "run scenario.toml --set kernel.version=6.1");
    assert_eq!(by_key["profile"], "classic@6.1");
    for same in ["--kernel 6.1", "--set kernel.profile=classic@6.1"] {
        assert_eq!(json(TURNS_OVER, &format!("run scenario.toml {same}")), by_key, "{same}");
    }
    let generations = json(TURNS_OVER, "run scenario.toml --kernel 6.6 --set kernel.lists=mglru");
    assert_eq!(generations["profile"], "mglru@6.6");
    // 6.10 is no 6.1.
    let ten = json(TURNS_OVER, "run scenario.toml --set kernel.version=6.10");
    assert_eq!(ten["profile"], "classic@6.10");
    let group = json(TURNS_OVER, "run scenario.toml --set memcg./job.policy=mglru@6.18");
    assert_eq!(group["memcgs"][0]["policy"], "mglru@6.18");
    let directory = with_scenario(TURNS_OVER);
    let versions = ["compare", "scenario.toml", "--vary", "kernel.version=5.16,6.1,6.6,6.7", "--json"];
    let compared: serde_json::Value =
        serde_json::from_str(&check_success(&pageout(directory.path(), &versions))).unwrap();
    assert_eq!(compared["variants"].as_array().unwrap().len(), 4);
}

#[test]
fn a_version_that_is_none_is_refused_with_what_there_is() {
    for (setting, says) in [
        ("kernel.version=6.21", &["`6.21` is not a known kernel version", "2.6.35 to 7.3"][..]),
        ("kernel.version=latest", &["`latest` is not a known kernel version"]),
        ("kernel.profile=classic@6.21", &["`6.21` is not a known kernel version"]),
        ("kernel.profile=mglru@5.15", &["does not have MGLRU, which came with 6.1"]),
        ("kernel.profile=classic@2.6.35-nodirect", &["is called classic@2010-nodirect"]),
        ("kernel.lru=mglru", &["`kernel.lists`"]),
    ] {
        failed(TURNS_OVER, &format!("run scenario.toml --set {setting}"), says);
    }
    failed(
        TURNS_OVER,
        "run scenario.toml --set kernel.version=6.8 --set kernel.profile=sieve",
        &["`sieve` (kernel.profile) is not a kernel version"],
    );
    failed(
        TURNS_OVER,
        "run scenario.toml --kernel 5.15 --set kernel.lists=mglru",
        &["does not have MGLRU, which came with 6.1"],
    );
    failed(
        TURNS_OVER,
        "run scenario.toml --kernel 6.8.1.2",
        &["--kernel: found `6.8.1.2`: unknown kernel version"],
    );
    let unquoted = TURNS_OVER.replace("memcg.kmem = false", "memcg.kmem = false\nversion = 6.10");
    failed(&unquoted, "run scenario.toml", &["kernel version in quotes"]);
}

#[test]
fn keys_at_a_version_say_what_held_and_how_it_is_known() {
    let at = |arguments: &str| json(TURNS_OVER, &format!("keys kernel {arguments}"));
    let of = |found: &serde_json::Value, key: &str| {
        let rules = found["rules"].as_array().unwrap();
        rules.iter().find(|rule| rule["key"] == key).unwrap().clone()
    };
    // A rule that came to stable versions: three numbers matter, and a series alone is its newest.
    let dirty = |version: &str| of(&at(&format!("--at {version} --lists mglru")), "kernel.lru.dirty");
    assert_eq!(dirty("6.12.0")["value"], "next_generation");
    assert_eq!(dirty("6.12.117")["value"], "isolate");
    assert_eq!(dirty("6.12"), dirty("6.12.117"));
    let between = dirty("6.12.50");
    assert_eq!((&between["known"], &between["before"]), (&"not known".into(), &"next_generation".into()));
    assert_eq!(dirty("6.12.117")["known"], "recorded");
    let at_6_8 = at("--at 6.8");
    assert!(at_6_8["read"].as_str().unwrap().contains("Between 6.1.192 and 6.12.117"));
    assert_eq!(of(&at_6_8, "kernel.reclaim.tree_walk")["value"], "full");
    let flush = of(&at_6_8, "kernel.reclaim.stat_flush");
    assert_eq!((&flush["value"], &flush["known"]), (&"6.8".into(), &"documented".into()));
    assert_eq!(of(&at_6_8, "kernel.folio_batch")["value"], "15");
    assert_eq!(of(&at_6_8, "kernel.lru.read_promotion")["known"], "rests");
    // What no rule has is said, too, for the lists that it is of.
    let not_modelled = |arguments: &str| -> Vec<String> {
        let found = at(arguments);
        let rows = found["not_modelled"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_string()).collect()
    };
    let walkers = "MGLRU: walkers that wait".to_string();
    assert!(not_modelled("--at 6.1 --lists mglru").contains(&walkers));
    assert!(!not_modelled("--at 6.1").contains(&walkers));
    assert!(!not_modelled("--at 6.12 --lists mglru").contains(&walkers));
    assert!(not_modelled("--at 6.1").contains(&"readahead: no memory".to_string()));
    failed(TURNS_OVER, "keys kernel --at 5.15 --lists mglru", &["--lists mglru: not in `5.15"]);
    failed(TURNS_OVER, "keys nothing --at 6.8", &["found `nothing`, expected a part of a kernel rule"]);
}

#[test]
fn bisect_leaves_out_rules_of_other_lists_and_joins_idle_ones() {
    let directory = with_scenario(&SHORT.replace("40_000", "4_000"));
    let run = |more: &[&str]| {
        let command = ["bisect", "scenario.toml", "--from", "6.1", "--to", "7.3", "--repeat", "2"];
        check_success(&pageout(directory.path(), &[&command, more].concat()))
    };
    // Whatever the figure comes to: what is turned is decided before.
    for (lists, read, unread) in
        [("classic", "reclaim.clean_only", "lru.fault_in"), ("mglru", "lru.fault_in", "reclaim.clean_only")]
    {
        let printed = run(&["--lists", lists, "--judge-by", "scanned_per_reclaimed"]);
        let joined = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, left_out) =
            joined.split_once("not run, as only other lists than the scenario's read them:").unwrap();
        assert!(left_out.contains(unread) && !left_out.contains(read), "{printed}");
        assert!(!printed.contains(" 0 %         0 %"), "{printed}");
        let found: serde_json::Value =
            serde_json::from_str(&run(&["--lists", lists, "--judge-by", "scanned_per_reclaimed", "--json"]))
                .unwrap();
        let names: Vec<&str> =
            found["rules"].as_array().unwrap().iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
        assert!(names.contains(&read) && !names.contains(&unread), "{names:?}");
    }
    // A scenario that sets a seam itself may have rules of both.
    let both =
        run(&["--judge-by", "scanned_per_reclaimed", "--set", "kernel.workingset.recency=oldest_generation"]);
    assert!(!both.contains("not run, as only other lists"), "{both}");
}

#[test]
fn names_of_rules_are_the_same_in_all_commands() {
    let directory = with_scenario(&SHORT.replace("40_000", "400"));
    let run = |arguments: &[&str]| pageout(directory.path(), arguments);
    let found: serde_json::Value = serde_json::from_str(&check_success(&run(&[
        "bisect",
        "scenario.toml",
        "--from",
        "4.14",
        "--to",
        "7.3",
        "--repeat",
        "1",
        "--judge-by",
        "refaults_file",
        "--json",
    ])))
    .unwrap();
    let named = found["rules"].as_array().unwrap().iter().map(|rule| (&rule["rule"], &rule["to"]));
    let named: Vec<(&str, &str)> =
        named.map(|(rule, to)| (rule.as_str().unwrap(), to.as_str().unwrap())).collect();
    assert!(named.iter().any(|(rule, _)| *rule == "folio_batch"), "a parameter is among them: {named:?}");
    for (rule, _) in &named {
        check_success(&run(&["keys", rule]));
        check_success(&run(&["keys", rule, "--at", "6.12"]));
    }
    let (rule, to) = named.iter().find(|(rule, _)| *rule == "folio_batch").unwrap();
    for name in [rule.to_string(), format!("kernel.{rule}")] {
        let switch = format!("{name}=15");
        assert_ne!(*to, "15");
        check_success(&run(&["ablate", "scenario.toml", "--repeat", "1", "--switch", &switch]));
        check_success(&run(&["coverletter", "scenario.toml", "--repeat", "2", "--switch", &switch]));
    }
    let misspelt = [
        &["keys", "reclaim.stat_flsh"][..],
        &["keys", "reclaim.stat_flsh", "--at", "6.12"],
        &["ablate", "scenario.toml", "--switch", "reclaim.stat_flsh=6.1"],
        &["coverletter", "scenario.toml", "--switch", "reclaim.stat_flsh=6.1"],
        &["coverletter", "scenario.toml", "--switch", "kernel.reclaim.stat_flsh=6.1"],
        &[
            "bisect",
            "scenario.toml",
            "--from",
            "6.1",
            "--to",
            "6.12",
            "--set",
            "kernel.reclaim.stat_flsh=6.1",
        ],
    ];
    for arguments in misspelt {
        check_failure(&run(arguments), 2, &["did you mean", "reclaim.stat_flush"]);
    }
}
