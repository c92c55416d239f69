//! Advice on the memory of a task, as timed events.

use serde_json::Value;

use crate::results::json;
use crate::{check_failure, check_success, pageout, with_scenario};

/// A server fills 16 MiB of anonymous memory, maps a file of 4 MiB, and then uses the first MiB for two seconds. It has two copies.
const SERVER: &str = r#"
[machine]
memory = "128MiB"

[[swap]]
size = "64MiB"
kind = "zram"

[[task]]
name = "server"
copies = 2
think_time = "100us"

[[task.object]]
channel = "anonymous"
size = "16MiB"
workload = { pattern = "chain", parts = [{ of = { pattern = "fill" } }, { of = { pattern = "loop", pages = 256, ops = 15_000 } }] }

[[task.object]]
channel = "file"
size = "4KiB"
workload = { pattern = "sequential" }

[[task]]
name = "maps"
background = true
loops = 100_000
think_time = "1ms"

[[task.object]]
channel = "mapped"
size = "1MiB"
workload = { pattern = "sequential" }
"#;

fn result_of(event: &str, more: &str) -> Value {
    let events = format!("[[event]]\nat = \"1500ms\"\nmadvise = \"{event}\"\n{more}\n");
    json(with_scenario(&format!("{SERVER}\n{events}")).path(), &["run", "scenario.toml"])
}

fn counter(result: &Value, name: &str) -> u64 {
    result["vmstat"][name].as_u64().unwrap()
}

#[test]
fn pageout_takes_all_pages_of_each_copy_without_scanning_lists() {
    let result = result_of("pageout", "task = \"server\"");
    let call = &result["writes"][0];
    assert_eq!((&call["path"], &call["value"]), (&"process_madvise".into(), &"pageout server".into()));
    assert_eq!(call["error"], Value::Null);
    assert!(call["took_ns"].as_u64().unwrap() > 100_000, "the shell pays for it: {call}");
    assert_eq!(counter(&result, "pswpout"), 2 * 4096, "both copies");
    assert_eq!(counter(&result, "pswpin"), 2 * 256, "pages in use come back");
    for scans in ["pgscan_direct", "pgscan_kswapd", "pgscan_proactive"] {
        assert_eq!(counter(&result, scans), 0, "{scans}");
    }
    let object = result_of("pageout", "task = \"server\"\nobject = 0");
    assert_eq!(counter(&object, "pswpout"), 2 * 4096, "the only mapping");
    let file = result_of("pageout", "task = \"maps\"");
    let dropped = file["writes"][0]["reclaimed_pages"].as_u64().unwrap();
    assert!((225..=256).contains(&dropped), "a clean file, but what waits in a batch of its CPU: {dropped}");
    assert_eq!(counter(&file, "pswpout"), 0);
}

#[test]
fn cold_frees_nothing_and_free_forgets_what_is_not_written_again() {
    let cold = result_of("cold", "task = \"server\"");
    assert_eq!((&cold["writes"][0]["reclaimed_pages"], counter(&cold, "pswpout")), (&0.into(), 0));
    let free = result_of("free", "task = \"server\"");
    let lazy = counter(&free, "pglazyfree");
    assert!((2 * 4096 - 30..=2 * 4096).contains(&lazy), "all but what waits in a batch: {lazy}");
    assert_eq!(counter(&free, "pswpout"), 0);
}

#[test]
fn advice_for_a_process_that_has_ended_fails_with_esrch() {
    let event = "[[event]]\nat = \"4s\"\nmadvise = \"pageout\"\ntask = \"server\"\n";
    let server = SERVER.replace("background = true\n", "");
    let directory = with_scenario(&format!("until = \"5s\"\n{server}\n{event}"));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let error = result["writes"][0]["error"].as_str().unwrap();
    assert!(error.contains("`pageout server`") && error.contains("ESRCH"), "{error}");
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("ESRCH"), "{printed}");
}

#[test]
fn advice_that_linux_rejects_is_refused_before_the_run() {
    for (event, says) in [
        ("madvise = \"pageout\"", "found advice without `task`"),
        ("madvise = \"pageout\"\ntask = \"sever\"", "there is no task called `sever`"),
        ("madvise = \"pageout\"\ntask = \"server\"\nobject = 1", "object 1 of `server` is not a mapping"),
        ("madvise = \"pageout\"\ntask = \"server\"\nobject = 7", "object 7 of `server` is not a mapping"),
        ("madvise = \"free\"\ntask = \"maps\"", "`free` is for anonymous memory (EINVAL)"),
        ("madvise = \"dontneed\"\ntask = \"maps\"", "dontneed"),
        ("task = \"maps\"", "found `task` or `object` without `madvise`"),
        ("madvise = \"cold\"\ntask = \"maps\"\nsync = true", "expected one per event"),
        ("madvise = \"cold\"\ntask = \"maps\"\nvalue = 1", "`value` is only for writes; this event advises"),
        ("madvise = \"cold\"\ntask = \"maps\"\ntimeout = \"1s\"", "no signal ends advice"),
    ] {
        let directory = with_scenario(&format!("{SERVER}\n[[event]]\nat = \"1s\"\n{event}\n"));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml", "--check"]), 2, &[says]);
    }
}
