//! How much memory may be slower, and with which knobs.

use pageout_study::scenario::source::Source;

use super::{check_failure, check_success, pageout, scenarios, with_scenario};

/// Pages of a file that come and go, on memory that is too small for them, and some that are used more than others.
const CHURN: &str = r#"
[machine]
cpus = 2
memory = "24MiB"

[[swap]]
size = "64MiB"

[[task]]
name = "reader"
loops = 3

[[task.object]]
channel = "file"
size = "32MiB"
share = 2
workload = { pattern = "zipf", alpha = 0.9, ops = 8000 }

[[task.object]]
channel = "anonymous"
size = "16MiB"
workload = { pattern = "sequential" }
"#;

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn advise_tier_tells_how_much_memory_may_be_slower_and_no_run_is_above_what_is_best() {
    let directory = with_scenario(CHURN);
    let advise = |arguments: &[&str]| {
        let always = ["advise-tier", "scenario.toml", "--ratio", "1:1,1:3", "--device", "cxl-1.1"];
        check_success(&pageout(directory.path(), &[&always, arguments].concat()))
    };
    let told: serde_json::Value = serde_json::from_str(&advise(&["--json", "--loss", "50"])).unwrap();
    let runs = told["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2 * 9, "ratios and sources, but for page tables that nobody walks");
    for run in runs {
        let tiers = &run["tiers"];
        let (hits, best) = (tiers["fast_hit_ratio"].as_f64(), tiers["offline_fast_hit_ratio"].as_f64());
        let (hits, best) = (hits.unwrap(), best.unwrap());
        assert!(0.0 < hits && hits <= best && best <= 1.0, "{run}");
    }
    assert!(runs.iter().any(|run| run["tiers"]["demoted"].as_u64() > Some(100)), "{told}");
    assert_eq!(told["advice"][0]["advised"]["ratio"], "1:3", "the least fast memory that is fast enough");
    let text = advise(&["--loss", "50", "--report", "advice.html"]);
    for part in [
        "24MiB of memory",
        "cxl-1.1: with 6MiB of fast and 18MiB of slow memory (1:3) it takes",
        "No ratio with less fast memory was run.",
    ] {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{text}");
    }
    let page = std::fs::read_to_string(directory.path().join("advice.html")).unwrap();
    assert!(page.contains("By ratio and memory") && page.contains("6MiB of fast"), "{page}");
}

/// A process of a machine with two sockets, on whose slow memory it begins.
const ON_ITS_NODES: &str = r#"
[machine]
cpus = 2

[[machine.node]]
memory = "24MiB"
cpus = 1

[[machine.node]]
memory = "24MiB"
cpus = 1

[[machine.node]]
memory = "48MiB"
preset = "cxl-1.1"

[kernel]
profile = "mglru@6.12"

[sysctl]
kernel.numa_balancing = 2
vm.pghot_target_nid = 1

[[task]]
name = "west"
cpunodebind = "1"
stands_for = 64

[[task.object]]
channel = "anonymous"
size = "32MiB"
populate_node = 2
workload = { pattern = "hot_set", ops = 200_000, hot_pages_fraction = 0.1, hot_access_fraction = 0.9 }
"#;

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn advise_tier_puts_the_scenarios_own_nodes_aside_and_tries_every_source() {
    let directory = with_scenario(ON_ITS_NODES);
    let advise = |arguments: &[&str]| {
        let always =
            ["advise-tier", "scenario.toml", "--ratio", "1:3", "--device", "cxl-1.1", "--memory", "48MiB"];
        check_success(&pageout(directory.path(), &[&always, arguments].concat()))
    };
    let told: serde_json::Value = serde_json::from_str(&advise(&["--json"])).unwrap();
    let put_aside: Vec<&str> =
        told["put_aside"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert_eq!(put_aside, ["sysctl.vm.pghot_target_nid", "task.cpunodebind", "task.object.populate_node"]);
    let promoted = |source: &str| {
        let runs = told["runs"].as_array().unwrap();
        let run = runs.iter().find(|run| run["source"] == source).unwrap();
        run["tiers"]["promoted"].as_u64().unwrap()
    };
    assert_eq!((promoted("no migration"), promoted("demotion only")), (0, 0));
    for source in ["hint faults", "pghot", "page-table scan", "DAMON, windows of 100 ms"] {
        assert!(promoted(source) > 100, "{source}: {}", promoted(source));
    }
    assert!(promoted("hardware") > 0, "one access in ten thousand is sampled");
    let text = advise(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    let aside = "ignored: sysctl.vm.pghot_target_nid, task.cpunodebind, task.object.populate_node.";
    assert!(text.contains(aside) && !text.contains("not run because"), "{text}");
}

/// Where demotion alone is best there is little to turn, so knobs are turned beside it, where something is promoted.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn advise_tier_turns_the_knobs_of_a_source_that_promotes() {
    let directory = with_scenario(CHURN);
    let always = ["advise-tier", "scenario.toml", "--ratio", "1:1", "--device", "cxl-1.1", "--json"];
    let told: serde_json::Value =
        serde_json::from_str(&check_success(&pageout(directory.path(), &always))).unwrap();
    let at = told["knobs_at"].as_str().unwrap();
    assert!(!at.ends_with("no migration") && !at.ends_with("demotion only"), "{at}");
    let keys: Vec<&str> =
        told["knobs"].as_array().unwrap().iter().map(|knob| knob["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"sysctl.kernel.numa_balancing_promote_rate_limit_MBps"), "{keys:?}");
    let story = told["story"].to_string();
    assert!(
        story.contains("page-table scan: not run because classic@6.12 does not walk page tables"),
        "{story}"
    );
}

/// Several loads, all sources: one table, a row each, and no knob is changed.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn every_source_of_several_scenarios_has_one_row_each_with_its_cpu_time() {
    let directory = with_scenario(ON_ITS_NODES);
    std::fs::copy(directory.path().join("scenario.toml"), directory.path().join("other.toml")).unwrap();
    let ask = |arguments: &[&str]| {
        let always = ["advise-tier", "scenario.toml", "other.toml", "--every-source", "--ratio", "1:3"];
        let always = [&always[..], &["--device", "cxl-1.1", "--memory", "48MiB"]].concat();
        check_success(&pageout(directory.path(), &[&always, arguments].concat()))
    };
    let told: serde_json::Value = serde_json::from_str(&ask(&["--json", "--repeat", "2"])).unwrap();
    assert_eq!((&told["complete"], told["studies"].as_array().unwrap().len()), (&true.into(), 2));
    for study in told["studies"].as_array().unwrap() {
        assert_eq!(study["knobs"].as_array().unwrap().len(), 0, "no knob is changed");
        let runs = study["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 10);
        for run in runs.iter().filter(|run| run["source"].as_str().unwrap().starts_with("DAMON")) {
            assert_eq!(run["by_seed"].as_array().unwrap().len(), 2);
            assert!(run["tiers"]["tracker_by_part_ns"]["kdamond"].as_u64().unwrap() > 0, "{run}");
        }
    }
    let table = ask(&["--format", "markdown", "--report", "sources.html"]);
    let rows = table.lines().filter(|line| line.starts_with("| scenario |") || line.starts_with("| other |"));
    assert_eq!(rows.count(), 2 * 10 + 1, "a row per scenario and source, and the heading: {table}");
    let page = std::fs::read_to_string(directory.path().join("sources.html")).unwrap();
    assert!(page.contains("Sources of hotness") && page.contains("DAMON, tuned windows"), "{page}");
}

#[test]
fn what_advise_tier_cannot_do_is_refused() {
    let directory = with_scenario(CHURN);
    let two = ["advise-tier", "scenario.toml", "scenario.toml"];
    check_failure(
        &pageout(directory.path(), &two),
        2,
        &["found 2 scenarios, expected one", "--every-source"],
    );
    let leaves =
        "[[event]]\nat = \"1s\"\nwrite = \"/sys/devices/system/node/node1/memory*/online\"\nvalue = 0\n";
    let leaves = CHURN.replace(
        "memory = \"24MiB\"",
        "[[machine.node]]\nmemory = \"24MiB\"\n[[machine.node]]\nmemory = \"24MiB\"\npreset = \"cxl-1.1\"",
    ) + leaves;
    for (scenario, arguments, parts) in [
        (
            CHURN,
            &["--device", "cxl-9"][..],
            &["--device: found `cxl-9`", "expected one of dram, ", "pmem"][..],
        ),
        (CHURN, &["--device", "dram"], &["on dram", "all memory of this machine is in its top tier"]),
        (CHURN, &["--ratio", "0:1"], &["--ratio 0:1", "expected FAST:SLOW, each from 1 to 1000"]),
        (CHURN, &["--ratio", "1:999"], &["1:999 of 24MiB on cxl-1.1", "too small"]),
        (CHURN, &["--memory", "much"], &["--memory much", "is not a size"]),
        (CHURN, &["--loss", "nan"], &["--loss NaN", "0 or more"]),
        (
            CHURN,
            &["--warm-up", "1h"],
            &["--warm-up 1h: no work is left to compare", "the workload ends after", "or `none`"],
        ),
        (CHURN, &["--warm-up", "100%"], &["--warm-up 100%", "a share of the work below 100%"]),
        (CHURN, &["--warm-up", "20"], &["--warm-up 20", "expected a time such as 10s"]),
        (CHURN, &["--report", "advice.txt"], &["expected .html (report)"]),
        (
            &CHURN.replace("[[swap]]", "[[swpa]]"),
            &[],
            &["unknown key `swpa`", "scenario.toml:6", "did you mean `swap`?"],
        ),
        (&leaves, &[], &["event[0].write", "node1", "help: remove this key from the scenario"]),
    ] {
        let directory = with_scenario(scenario);
        let output = pageout(directory.path(), &[&["advise-tier", "scenario.toml"], arguments].concat());
        check_failure(&output, 2, parts);
    }
    check_failure(&pageout(with_scenario(CHURN).path(), &["advise-tier", "no.toml"]), 2, &["no.toml"]);
}

/// A database of 56 GiB at a 2048th, accesses to which go by Zipf's law: nothing of it is gained by slower memory.
const DATABASE: &str = r#"
[machine]
cpus = 8
memory = "32MiB"
page_stands_for = 2048

[[task]]
name = "db"
threads = 8

[[task.object]]
channel = "anonymous"
size = "28MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 3_000, write_ratio = 0.1 }
"#;

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn less_fast_memory_never_gains_without_a_reason_and_what_it_saves_is_of_the_whole_machine() {
    let directory = with_scenario(DATABASE);
    let always = ["advise-tier", "scenario.toml", "--ratio", "2:1,1:1,1:4", "--device", "cxl-1.1,pmem"];
    let advise = |arguments: &[&str]| {
        check_success(&pageout(directory.path(), &[&always[..], &["--repeat", "2"], arguments].concat()))
    };
    let told: serde_json::Value =
        serde_json::from_str(&advise(&["--json", "--loss", "200", "--report", "advice.html"])).unwrap();
    assert_eq!(told["repeat"], 2);
    let story = told["story"].to_string();
    for device in ["cxl-1.1", "pmem"] {
        let mut before = 0.0;
        for (ratio, saved) in [("2:1", 22u64), ("1:1", 32), ("1:4", 52)] {
            let runs = told["runs"].as_array().unwrap().iter();
            let here = runs.filter(|run| run["ratio"] == ratio && run["device"] == device);
            let losses = here.map(|run| {
                assert!(run["fast_memory_saved_bytes"].as_u64().unwrap() >> 30 == saved, "{run}");
                assert!(run["loss_half_width_percent"].as_f64().unwrap() >= 0.0, "{run}");
                run["loss_percent"].as_f64().unwrap()
            });
            let best = losses.min_by(f64::total_cmp).unwrap();
            let is_told =
                story.contains(&format!("{ratio} {device}")) && story.contains("less fast memory takes");
            assert!(best >= before - 0.05 || is_told, "{ratio} {device}: {best} % after {before} %: {story}");
            before = best;
        }
        assert!(before > 1.0, "{device} costs something: {before}");
    }
    assert!(story.contains("of fast memory, scale factor 2,048"), "{story}");
    let page = std::fs::read_to_string(directory.path().join("advice.html")).unwrap();
    assert!(page.contains("What pmem costs, by how much of the memory it is"), "a chart to buy by");
}

/// Memory is filled, which is faults wherever it is, and then used for a while, much of it on slow memory.
const FILLED_FIRST: &str = r#"
[machine]
cpus = 4
memory = "24MiB"

[[task]]
name = "db"
threads = 4

[[task.object]]
channel = "anonymous"
size = "16MiB"

[task.object.workload]
pattern = "chain"
parts = [{ of = { pattern = "fill" } }, { of = { pattern = "uniform", ops = 50_000 } }]
"#;

fn advised(scenario: &str, arguments: &[&str]) -> serde_json::Value {
    let directory = with_scenario(scenario);
    let always = ["advise-tier", "scenario.toml", "--ratio", "1:3", "--device", "pmem", "--json"];
    serde_json::from_str(&check_success(&pageout(directory.path(), &[&always, arguments].concat()))).unwrap()
}

fn without_migration(told: &serde_json::Value) -> &serde_json::Value {
    told["runs"].as_array().unwrap().iter().find(|run| run["source"] == "no migration").unwrap()
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn an_expensive_beginning_is_left_out_of_the_loss_as_the_same_work_at_each_ratio() {
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let whole = advised(FILLED_FIRST, &["--warm-up", "none"]);
    let after = advised(FILLED_FIRST, &["--warm-up", "30%"]);
    let (with, without) =
        [&whole, &after].map(|told| number(&without_migration(told)["loss_percent"])).into();
    assert!(without > 1.2 * with && with > 1.0, "{with} % with its beginning, {without} % without");
    for told in [&whole, &after] {
        let (fast, slow) = (&told["all_fast"], without_migration(told));
        let rest = |run: &serde_json::Value| number(&run["end_ns"]) - number(&run["warm_up_ends_ns"]);
        let loss = (rest(slow) / rest(fast) - 1.0) * 100.0;
        assert!((loss - number(&slow["loss_percent"])).abs() < 1e-6, "{loss} {slow}");
        assert!(number(&slow["warm_up_ends_ns"]) >= number(&fast["warm_up_ends_ns"]), "{slow}");
    }
    assert_eq!(whole["warm_up"]["accesses"][0], 0);
    let (all, left_out) = (number(&after["all_fast"]["accesses"]), number(&after["warm_up"]["accesses"][0]));
    assert!((left_out / all - 0.3).abs() < 1e-4, "{left_out} of {all}");
    assert_eq!(whole["all_fast"]["end_ns"], after["all_fast"]["end_ns"]);
    // A time leaves out what was done in it.
    let time = format!("{}ns", after["all_fast"]["warm_up_ends_ns"]);
    let timed = advised(FILLED_FIRST, &["--warm-up", &time]);
    let same = number(&timed["warm_up"]["accesses"][0]);
    assert!((same / left_out - 1.0).abs() < 1e-3, "{same} {left_out}");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn what_is_run_for_advice_is_the_run_that_run_shows() {
    for scenario in [FILLED_FIRST, CHURN, DATABASE] {
        let directory = with_scenario(scenario);
        let run: serde_json::Value = serde_json::from_str(&check_success(&pageout(
            directory.path(),
            &["run", "scenario.toml", "--json"],
        )))
        .unwrap();
        let told = advised(scenario, &[]);
        for figure in ["end_ns", "accesses"] {
            assert_eq!(told["all_fast"][figure], run[figure], "{figure}");
        }
        let story = told["story"].to_string();
        assert!(
            story.contains("Each loss excludes a warm-up of") && story.contains("of the work"),
            "{story}"
        );
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn advice_that_half_of_the_work_would_not_give_says_so() {
    let says = |limit: &str| {
        let told = advised(FILLED_FIRST, &["--warm-up", "none", "--loss", limit]);
        assert_eq!(told["advice"][0]["advised"]["source"], "no migration");
        told["story"].to_string().contains("in the first half of the compared work")
    };
    assert!(says("70"), "filling memory loses less than using it");
    assert!(!says("500"), "neither half loses so much");
}

/// What runs until some time loses accesses, not time; and slower memory may not come to the end of the warm-up at all.
#[test]
fn a_run_that_ends_at_a_time_loses_accesses_after_the_same_work() {
    let until = format!("until = \"5ms\"\n{FILLED_FIRST}").replace("ops = 50_000", "ops = 20_000_000");
    let loss = |arguments: &[&str]| {
        let told = advised(&until, arguments);
        (without_migration(&told)["loss_percent"].as_f64(), told)
    };
    let (short, told) = loss(&["--warm-up", "10%"]);
    assert!(short > Some(1.0), "{told}");
    assert_eq!(told["all_fast"]["end_ns"], 5_000_000);
    let (long, told) = loss(&["--warm-up", "99%"]);
    assert_eq!(long, None, "{told}");
    assert!(without_migration(&told)["warm_up_ends_ns"].is_null(), "it is not over: {told}");
    let directory = with_scenario(&until);
    let text = check_success(&pageout(
        directory.path(),
        &["advise-tier", "scenario.toml", "--ratio", "1:3", "--device", "pmem", "--warm-up", "99%"],
    ));
    assert!(text.contains("not past warm-up"), "{text}");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn half_of_the_scale_is_made_again_and_the_verdicts_stand_side_by_side() {
    let database = DATABASE.replace("3_000", "1_000");
    let directory = with_scenario(&database);
    let always = ["advise-tier", "scenario.toml", "--ratio", "2:1,1:4", "--device", "cxl-1.1"];
    let advise = |arguments: &[&str]| {
        let output = pageout(directory.path(), &[&always[..], &["--loss", "200"], arguments].concat());
        check_success(&output)
    };
    let told: serde_json::Value = serde_json::from_str(&advise(&["--check-scale", "--json"])).unwrap();
    let check = &told["scale_check"];
    assert_eq!((&told["page_stands_for"], &check["page_stands_for"]), (&2048.into(), &1024.into()));
    assert_eq!(check["memory_bytes"], 64 << 20);
    let verdict = &check["verdicts"][0];
    assert_eq!((&verdict["advised"], &verdict["advised_at_half"]), (&"1:4".into(), &"1:4".into()));
    assert_eq!(verdict["same"], true);
    for row in check["ratios"].as_array().unwrap() {
        let points = |of: &str| row[of].as_f64().unwrap();
        let loss = |of: &str| row[of]["loss_percent"].as_f64().unwrap();
        let difference = loss("best_at_half") - loss("best");
        assert!(
            (points("difference_points") - difference).abs() < 1e-9 && points("explained_points") >= 0.0,
            "{row}"
        );
    }
    // What is done at half of the scale is what someone would do who wrote the scenario so.
    let half = database
        .replace("2048", "1024")
        .replace("32MiB", "64MiB")
        .replace("28MiB", "56MiB")
        .replace("1_000", "2_000");
    let half = with_scenario(&half);
    let by_hand: serde_json::Value =
        serde_json::from_str(&check_success(&pageout(half.path(), &[&always[..], &["--json"]].concat())))
            .unwrap();
    for row in check["ratios"].as_array().unwrap() {
        let runs = by_hand["runs"].as_array().unwrap().iter();
        let here =
            runs.filter(|run| run["ratio"] == row["ratio"]).map(|run| run["loss_percent"].as_f64().unwrap());
        assert_eq!(here.min_by(f64::total_cmp), row["best_at_half"]["loss_percent"].as_f64(), "{row}");
    }
    let text = advise(&["--check-scale", "--report", "advice.html"]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "cxl-1.1: the verdict is the same at scale factor 1,024 as at 2,048: 1:4.",
        "Losses differ most at",
        "costs per call (reclaim call, batch drain, statistics flush, wake-up, context switch)",
        "at scale factor 2,048 (32MiB) and at scale factor 1,024 (64MiB)",
    ] {
        assert!(words.contains(part), "{part}: {text}");
    }
    let page = std::fs::read_to_string(directory.path().join("advice.html")).unwrap();
    assert!(page.contains("At half of the scale"), "{page}");
}

/// Between the losses at both scales there is a limit by which the verdict is another.
#[test]
fn a_verdict_that_depends_on_the_scale_says_which_to_believe() {
    let database = DATABASE.replace("3_000", "1_000");
    let directory = with_scenario(&database);
    let advise = |limit: &str, arguments: &[&str]| {
        let always = [
            "advise-tier",
            "scenario.toml",
            "--ratio",
            "1:4",
            "--device",
            "pmem",
            "--check-scale",
            "--loss",
            limit,
        ];
        check_success(&pageout(directory.path(), &[&always[..], arguments].concat()))
    };
    let told: serde_json::Value = serde_json::from_str(&advise("5", &["--json"])).unwrap();
    let row = &told["scale_check"]["ratios"][0];
    let loss = |of: &str| row[of]["loss_percent"].as_f64().unwrap();
    let between = (loss("best") + loss("best_at_half")) / 2.0;
    let text = advise(&between.to_string(), &[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("pmem: the verdict depends on the scale factor:"), "{text}");
    let is_explained =
        row["difference_points"].as_f64().unwrap().abs() <= row["explained_points"].as_f64().unwrap();
    let says = if is_explained {
        "more seeds (--repeat)"
    } else {
        "Prefer the second verdict: a smaller scale factor is nearer to the real machine"
    };
    assert!(text.contains(says), "{row} {text}");
}

#[test]
fn what_has_no_half_of_its_scale_is_refused_by_its_key_before_anything_is_run() {
    let event = |path: &str, value: &str| {
        format!("{DATABASE}\n[[event]]\nat = \"1s\"\nwrite = \"{path}\"\nvalue = {value}\n")
    };
    for (scenario, parts) in [
        (CHURN.to_string(), ["page_stands_for", "each page stands for itself"]),
        (DATABASE.replace("2048", "7"), ["page_stands_for = 7", "give an even number"]),
        (
            event("/sys/fs/cgroup/memory.reclaim", "\"1MiB\""),
            ["scenario.toml:19", "remove the event for the check"],
        ),
        (
            event("/sys/kernel/debug/lru_gen", "\"- 1 0 0\""),
            ["value = \"- 1 0 0\"", "has its own unit of memory"],
        ),
    ] {
        let directory = with_scenario(&scenario);
        let output = pageout(directory.path(), &["advise-tier", "scenario.toml", "--check-scale"]);
        check_failure(
            &output,
            2,
            &[&["--check-scale: the scenario cannot run at half its scale factor"][..], &parts].concat(),
        );
    }
    let directory = with_scenario(&DATABASE.replace("workload = {", "trace = \"db.csv\" # {"));
    std::fs::write(directory.path().join("db.csv"), "page,op\n1,r\n2,w\n").unwrap();
    let output = pageout(directory.path(), &["advise-tier", "scenario.toml", "--check-scale"]);
    check_failure(
        &output,
        2,
        &["trace = \"db.csv\"", "a recording has", "describe the accesses by a `workload`"],
    );
}

/// The scenarios that are shipped, as if each page stood for four.
#[test]
fn every_shipped_scenario_is_halved_to_one_that_is_valid_or_says_which_key_cannot_be() {
    let (mut whole, mut refused) = (0, Vec::new());
    for folder in ["", "large", "mglru-v4", "no-writeback", "pghot", "regressions", "zswap-lru"] {
        for entry in std::fs::read_dir(scenarios().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let mut scenario = Source::read(&path).unwrap().scenario(&[]).unwrap();
            scenario.machine.page_stands_for = 4;
            let halved = scenario.halved().and_then(|half| half.halved());
            match halved {
                Ok(quarter) => {
                    assert_eq!(quarter.machine.page_stands_for, 1);
                    whole += 1;
                }
                Err(problems) => refused.extend(problems.into_iter().map(|problem| (path.clone(), problem))),
            }
        }
    }
    assert!(whole > 60, "{whole}");
    for (path, problem) in refused {
        let is_known = [".trace", ".value", ".think_time", "transparent_hugepage"]
            .iter()
            .any(|end| problem.key.ends_with(end))
            || problem.key.starts_with("kernel.hugepages_");
        assert!(is_known, "{}: {problem:?}", path.display());
    }
}

/// Short, with lists whose page tables are walked: every source is tried.
const EVERY_SOURCE: &str = r#"
[machine]
cpus = 2
memory = "24MiB"

[kernel]
profile = "mglru@6.12"

[[task]]
name = "db"
stands_for = 64

[[task.object]]
channel = "anonymous"
size = "16MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 20_000 }
"#;

#[test]
fn advice_with_prices_prints_the_money_saved() {
    let directory = with_scenario(EVERY_SOURCE);
    let prices = "fast=1024,cxl-1.1=512";
    let advise = |prices: &str, arguments: &[&str]| {
        let always = ["advise-tier", "scenario.toml", "--ratio", "1:1,1:2", "--device", "cxl-1.1,pmem"];
        let always = [&always[..], &["--loss", "1000", "--quiet", "--price", prices]].concat();
        pageout(directory.path(), &[&always, arguments].concat())
    };
    let told: serde_json::Value =
        serde_json::from_str(&check_success(&advise(prices, &["--json", "--report", "advice.html"])))
            .unwrap();
    let runs = told["runs"].as_array().unwrap();
    for run in runs {
        // All 24 MiB cost 24; of 8 fast and 16 slow the slow ones cost half.
        let saved = match run["device"] == "cxl-1.1" {
            true => Some(if run["ratio"] == "1:2" { 8.0 } else { 6.0 }),
            false => None,
        };
        assert_eq!(run["cost"]["saved"].as_f64(), saved, "{run}");
    }
    let story = told["story"].to_string();
    for says in [
        "cxl-1.1: at 1024.00 per GiB of fast and 512.00 per GiB of slow memory, 1:2 costs 16.00 and fast memory only 24.00: 8.00 (33.33%) saved.",
        "pmem: the savings are unknown because --price has no pmem=PRICE.",
    ] {
        assert!(story.contains(says), "{says}: {story}");
    }
    let page = std::fs::read_to_string(directory.path().join("advice.html")).unwrap();
    assert!(page.contains("money saved"), "a column of the table");
    // Every source is a line. Two share a colour at most, with different dashes.
    let (_, charts) = page.split_once("id=\"charts\">").unwrap();
    let charts: serde_json::Value = serde_json::from_str(charts.split_once("</script>").unwrap().0).unwrap();
    for chart in charts.as_array().unwrap() {
        let lines = chart["lines"].as_array().unwrap();
        let mut of_colour = std::collections::BTreeMap::new();
        lines.iter().for_each(|line| *of_colour.entry(line["colour"].as_u64().unwrap()).or_insert(0) += 1);
        assert!(lines.len() >= 2 && of_colour.values().all(|&lines| lines <= 2), "{lines:?}");
    }
    let dear = check_success(&advise("fast=512,cxl-1.1=1024", &[]));
    let words = dear.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("8.00 (66.67%) more."), "slow memory may cost more: {words}");
    for (prices, why) in [
        ("fast=1,cxl=2", "--price cxl: expected `fast` or a name of --device"),
        ("cxl-1.1=2", "fast: missing price"),
        ("fast=x", "expected a price per GiB"),
    ] {
        check_failure(&advise(prices, &[]), 2, &[why]);
    }
}
