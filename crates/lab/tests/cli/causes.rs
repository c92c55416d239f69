//! How long accesses took and why, and where old numbers decided.

use serde_json::Value;

use super::{GOOD, check_success, pageout, with_scenario};
use crate::results::json;

/// A machine whose dirty limits one writer fills, while another writes a page now and then.
const WRITERS: &str = r#"
until = "12s"

[machine]
cpus = 2
memory = "1GiB"

[sysctl]
vm.dirty_bytes = 8388608
vm.dirty_background_bytes = 4194304

[[device]]
name = "disk"
preset = "virtio"
write_bandwidth = "1MB/s"

[[task]]
name = "noisy"

[[task.object]]
channel = "file"
size = "4GiB"
workload = { pattern = "sequential", write_ratio = 1.0 }

[[task]]
name = "victim"
think_time = "8ms"
start = "6s"

[[task.object]]
channel = "file"
size = "15MiB"
workload = { pattern = "sequential", write_ratio = 1.0 }

[[variant]]
name = "contended"

[[variant]]
name = "solo"
set = { task.noisy.start = "1000s" }
"#;

#[test]
fn a_comparison_shows_how_long_a_writers_calls_take_and_why() {
    let directory = with_scenario(WRITERS);
    let printed = check_success(&pageout(directory.path(), &["compare", "scenario.toml"]));
    let (_, victim) = printed.split_once("task victim").expect("it has its rows");
    for row in ["access p50", "access p99 ", "access p99.9", "access longest", "lost to dirty limits, p99"] {
        assert!(victim.contains(row), "expected {row:?} in:\n{printed}");
    }
    assert!(!victim.contains("lost to swap-in"), "only what there was:\n{printed}");
    let compared = json(directory.path(), &["compare", "scenario.toml", "--all"]);
    let figure = |variant: usize, name: &str| {
        compared["variants"][variant]["metrics"][format!("task victim: {name}")]["mean"].as_f64().unwrap()
    };
    let [contended, solo] = [0, 1].map(|variant| figure(variant, "access p99_ns"));
    assert!(contended > 20e6 && solo < 1e6, "{contended} {solo}");
    assert!(figure(0, "of the slowest 1%, lost to dirty limits") > 0.9);
    assert!(
        figure(0, "lost to dirty limits, in all_ns") > 1e9 && figure(0, "lost to dirty limits, count") > 9.0
    );
}

/// Causes and own work make the sum of all, in every object of this form that a result has; returns how many there are.
fn check_access(access: &Value) {
    let total = |latency: &Value| latency["total_ns"].as_u64().unwrap();
    let causes = access["by_cause"].as_object().unwrap();
    let lost: u64 = causes.values().map(total).sum();
    assert_eq!(lost + access["own_work_ns"].as_u64().unwrap(), total(access), "{access}");
    for latency in causes.values().chain([access]) {
        let quantiles = ["p50_ns", "p99_ns", "p999_ns", "max_ns"].map(|name| latency[name].as_u64().unwrap());
        assert!(quantiles.is_sorted() && latency["count"].as_u64().unwrap() > 0, "{latency}");
        assert!(total(latency) >= quantiles[3], "{latency}");
    }
    let slowest = &access["slowest"];
    let count = access["count"].as_u64().unwrap();
    assert!(slowest["count"].as_u64().unwrap() >= count.div_ceil(100), "{slowest}");
    let lost: u64 =
        slowest["by_cause_ns"].as_object().unwrap().values().map(|lost| lost.as_u64().unwrap()).sum();
    assert!(lost <= total(slowest), "{slowest}");
}

#[test]
fn in_json_the_causes_of_each_task_and_group_make_the_sum_of_its_accesses() {
    let mapped = GOOD.replace("channel = \"file\"", "channel = \"mapped\"");
    let slow_node = "[machine]\ncpus = 2\n[[machine.node]]\nmemory = \"64MiB\"\ncpus = 2\n[[machine.node]]\nmemory = \"64MiB\"\npreset = \"cxl-1.1\"\n";
    let calls =
        GOOD.replace("size = \"4MiB\"", "size = \"4MiB\"\nrequest_size = \"64KiB\"").replace("5000", "500");
    let swap = format!(
        "{}\n[[swap]]\nkind = \"zram\"\nsize = \"64MiB\"\n",
        GOOD.replace("\"file\"", "\"anonymous\"")
    );
    for scenario in [GOOD, &mapped, &format!("{GOOD}\n{slow_node}"), &calls, &swap] {
        let directory = with_scenario(scenario);
        let result = json(directory.path(), &["run", "scenario.toml"]);
        let task = &result["tasks"][0];
        check_access(&task["access"]);
        assert_eq!(task["access"], result["memcgs"][0]["access"], "there is one task in it");
        let by_call = scenario.contains("request_size");
        let accesses = task["accesses"].as_u64().unwrap() / if by_call { 16 } else { 1 };
        assert_eq!(task["access"]["count"].as_u64().unwrap(), accesses, "{scenario}");
    }
}

#[test]
fn a_run_that_does_not_time_its_accesses_tells_no_times_of_them() {
    let directory = with_scenario(GOOD);
    let arguments = ["run", "scenario.toml", "--set", "machine.access_times=false"];
    let printed = check_success(&pageout(directory.path(), &arguments));
    assert!(!printed.contains("accesses of"), "{printed}");
    let (without, with) = (json(directory.path(), &arguments), json(directory.path(), &arguments[..2]));
    assert!(without["tasks"][0].get("access").is_none() && without["memcgs"][0].get("access").is_none());
    assert_eq!(without["vmstat"], with["vmstat"], "it changes nothing else");
    assert_eq!(without["end_ns"], with["end_ns"]);
}

#[test]
fn a_group_is_told_of_in_the_summary_where_several_tasks_are_in_it() {
    let one = with_scenario(GOOD);
    let printed = check_success(&pageout(one.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("  device read") && printed.contains("  own work"), "{printed}");
    assert!(!printed.contains("tasks in /web") && !printed.contains("  swap-in"), "{printed}");
    let (_, task) = GOOD.split_once("[[task]]").unwrap();
    let two = with_scenario(&format!("{GOOD}\n[[task]]{}", task.replace("reader", "other")));
    let printed = check_success(&pageout(two.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("tasks in /web "), "{printed}");
}

#[test]
fn where_nothing_waits_there_is_no_table_of_what_accesses_waited_for() {
    let hits = GOOD.replace("channel = \"file\"", "channel = \"anonymous\"").replace("1MiB", "64MiB");
    let printed = check_success(&pageout(with_scenario(&hits).path(), &["run", "scenario.toml"]));
    assert!(!printed.contains("accesses of"), "{printed}");
}

#[test]
fn the_legend_says_that_an_access_stands_for_several() {
    let scenario =
        format!("[machine]\npage_stands_for = 16\n{}", GOOD.replace("question = \"Does it run?\"", ""));
    let printed = check_success(&pageout(with_scenario(&scenario).path(), &["run", "scenario.toml"]));
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("A page stands for 16, and what an access to it takes is what all of these take."),
        "{printed}"
    );
}

/// A writer that dirties some MB a second on a fast disk, alone in a group.
const LOG: &str = r#"
until = "8s"

[[memcg]]
path = "/a"
memory.max = "60MiB"

[[task]]
name = "log"
memcg = "/a"
think_time = "40us"

[[task.object]]
channel = "file"
size = "1GiB"
workload = { pattern = "sequential", write_ratio = 0.3 }
"#;

#[test]
fn a_writer_that_sleeps_for_a_dirty_count_of_long_ago_is_told_with_the_count_its_age_and_the_true_one() {
    let directory = with_scenario(LOG);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, told) =
        words.split_once("throttle checks of cgroup writers: ").unwrap_or_else(|| panic!("{printed}"));
    for part in [
        "throttled a writer below its limit, for ",
        " because of statistics up to ",
        " nr_dirty of /a was ",
        " but the statistics had ",
    ] {
        assert!(told.contains(part), "expected {part:?} in:\n{printed}");
    }
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let writers = &result["stale_decisions"]["dirty_throttle"];
    let slept = writers["slept_ns"].as_u64().unwrap();
    let all = result["tasks"][0]["delayed_by"]["dirty_pages_ns"].as_u64().unwrap();
    assert!(slept * 10 > all * 9, "{slept} of {all} would not have been");
    let number = &writers["yes_for_no"]["furthest"];
    assert!(number["stale"].as_u64() > number["live"].as_u64(), "{number}");
    let oldest = writers["yes_for_no"]["oldest_ns"].as_u64().unwrap();
    assert!(
        (1_000_000_000..=4_100_000_000).contains(&oldest) && number["age_ns"].as_u64().unwrap() <= oldest
    );
}

#[test]
fn of_numbers_that_are_never_old_nothing_is_told() {
    let directory = with_scenario(LOG);
    let arguments = ["run", "scenario.toml", "--set", "kernel.memcg.stat_flush=live"];
    let printed = check_success(&pageout(directory.path(), &arguments));
    assert!(!printed.contains("up-to-date statistics"), "{printed}");
    assert!(json(directory.path(), &arguments).get("stale_decisions").is_none());
}

#[test]
fn a_run_that_does_not_look_at_decisions_by_old_numbers_says_so_in_the_summary_and_in_json() {
    let directory = with_scenario(LOG);
    let line =
        "outdated statistics: their effect on decisions was not measured (machine.access_times = false)";
    let is_said = |sets: &[&str]| {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = ["run", "scenario.toml"].into_iter().chain(sets).collect();
        let printed = check_success(&pageout(directory.path(), &arguments));
        let result = json(directory.path(), &arguments);
        let by_json = result.get("stale_decisions_compared").map(|compared| compared.as_bool().unwrap());
        assert_ne!(by_json, Some(true), "it is there where it is news");
        assert_eq!(printed.contains(line), by_json.is_some(), "{printed}");
        assert!(by_json.is_none() || result.get("stale_decisions").is_none());
        by_json.is_some()
    };
    assert!(!is_said(&[]), "they were compared");
    assert!(is_said(&["machine.access_times=false"]));
    let never_old = ["machine.access_times=false", "kernel.memcg.stat_flush=live"];
    assert!(!is_said(&never_old), "nothing to compare");
}

/// A heap that asks for huge pages on a machine full of page cache, with kernel pages strewn over it.
const HEAP: &str = r#"
[machine]
cpus = 4

[[machine.node]]
memory = "512MiB"
cpus = 4
unmovable_blocks = 60

[kernel]
transparent_hugepage = "madvise"

[[task]]
name = "cache"
background = true

[[task.object]]
channel = "file"
size = "800MiB"
workload = { pattern = "loop", ops = 1_000_000_000 }

[[task]]
name = "heap"
start = "2s"

[[task.object]]
channel = "anonymous"
size = "200MiB"
hugepage = true
workload = { pattern = "fill" }
"#;

#[test]
fn tasks_that_stall_in_compaction_are_told_how_often_and_for_how_long() {
    let directory = with_scenario(HEAP);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("\ncompaction by tasks: ") && printed.contains("\n  compaction "), "{printed}");
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let stalls = result["vmstat"]["compact_stall"].as_u64().unwrap();
    let heap = &result["tasks"][1];
    let compaction = &heap["access"]["by_cause"]["compaction"];
    // An access that stalls twice is one that was held up.
    let held_up = compaction["count"].as_u64().unwrap();
    assert!(held_up <= stalls && held_up * 5 > stalls * 4 && stalls > 10, "{stalls} stalls: {compaction}");
    let (took, runtime) = (compaction["total_ns"].as_u64().unwrap(), heap["runtime_ns"].as_u64().unwrap());
    assert!(took * 4 > runtime, "{took} of {runtime}: more than a quarter");
    let stalled = result["pressure"]["memory"]["some_ns"].as_u64().unwrap();
    assert!(stalled >= took, "pressure has it, too: {stalled} of {took}");
}
