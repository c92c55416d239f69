//! Replays without a clock: what they print, what they leave out, and what they refuse.

use std::path::Path;

use serde_json::Value;

use super::{check_failure, check_success, pageout};

/// A folder with a trace: a hot set, a loop, and pages that are read once.
fn folder() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let pages = (0..60_000_u32).map(|at| match at % 3 {
        0 => (at ^ (at >> 5)).wrapping_mul(2_654_435_761) >> 25,
        1 => 200 + at / 3 % 700,
        _ => 1_000 + at / 3,
    });
    std::fs::write(directory.path().join("a.u32"), pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
        .unwrap();
    directory
}

fn replay(at: &Path, more: &[&str]) -> std::process::Output {
    pageout(at, &[&["replay", "a.u32", "--untimed", "--quiet"], more].concat())
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&check_success(output)).unwrap()
}

#[test]
fn untimed_replay_counts_and_names_what_it_leaves_out() {
    let folder = folder();
    let of = json(&replay(folder.path(), &["--memory", "2MiB,4MiB", "--json"]));
    assert_eq!((&of["untimed"], &of["device"]), (&Value::Bool(true), &Value::Null));
    let named: Vec<&str> =
        of["left_out"].as_array().unwrap().iter().map(|of| of["what"].as_str().unwrap()).collect();
    assert_eq!(named, ["times", "old statistics", "free pages", "readahead in flight"]);
    assert_eq!(of["left_out"][1]["setting"], "kernel.memcg.stat_flush = live");
    for point in of["points"].as_array().unwrap() {
        let stat = &point["result"]["memcgs"][0]["counters"];
        assert!(stat["workingset_refault_file"].as_u64() == point["refaults"].as_u64(), "{stat}");
        assert!(point["misses"].as_u64().unwrap() > 1_000 && point["runtime_ns"].is_null(), "{point}");
    }
    let text = check_success(&replay(folder.path(), &["--memory", "2MiB,4MiB", "--read-ahead-kb", "0"]));
    assert!(text.contains("  times: nothing takes time") && text.contains("  old statistics: "), "{text}");
    assert!(text.contains("other misses (`kernel.memcg.stat_flush = live`)\n"), "{text}");
    assert!(!text.contains("in flight") && !text.contains("runtime  ") && !text.contains("nvme"), "{text}");
}

#[test]
fn untimed_replay_of_several_policies_repeats_to_the_byte() {
    let folder = folder();
    let options =
        ["--memory", "2MiB,4MiB", "--policy", "lru,classic@6.12,mglru@6.12", "--read-ahead-kb", "0"];
    let first = check_success(&replay(folder.path(), &options));
    assert!(first.contains("untimed: ") && first.contains("refaults") && !first.contains("p99"), "{first}");
    assert_eq!(first, check_success(&replay(folder.path(), &[&options[..], &["--jobs", "1"]].concat())));
    let of = json(&replay(folder.path(), &[&options[..], &["--json"]].concat()));
    let alone = json(&replay(folder.path(), &["--memory", "4MiB", "--read-ahead-kb", "0", "--json"]));
    let cells = of["traces"][0]["cells"].as_array().unwrap();
    let same = cells.iter().find(|cell| cell["policy"] == "classic@6.12" && cell["memory_pages"] == 1_024);
    assert_eq!(same.unwrap()["misses"], alone["points"][0]["misses"]);
}

#[test]
fn untimed_replay_refuses_what_has_no_meaning_without_a_clock() {
    let folder = folder();
    for (more, says) in [
        (&["--device", "hdd"][..], "--untimed: found --device as well"),
        (&["--think-time", "1us"], "--untimed: found --think-time as well"),
        (&["--writes"], "--untimed: found --writes, expected reads of files"),
        (&["--channel", "anonymous", "--swap", "zram"], "found --channel anonymous, expected reads of files"),
        (&["--timed"], "--untimed and --timed: found both, expected one"),
        (&["--print-scenario"], "--untimed and --print-scenario: found both"),
    ] {
        check_failure(&replay(folder.path(), more), 2, &[says]);
    }
}

#[test]
fn untimed_sweep_has_the_misses_of_an_untimed_replay() {
    let folder = folder();
    let plan = "traces = ['a.u32']\npolicy = ['classic@6.12']\nmemory = ['4MiB']\nread_ahead_kb = 0\nuntimed = true\n";
    std::fs::write(folder.path().join("plan.toml"), plan).unwrap();
    check_success(&pageout(folder.path(), &["sweep", "plan.toml", "--into", "rows", "--quiet"]));
    let rows = json(&pageout(folder.path(), &["sweep", "--collect", "rows", "--json", "--quiet"]));
    let rows = rows.as_array().or_else(|| rows["rows"].as_array()).unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    let alone = json(&replay(folder.path(), &["--memory", "4MiB", "--read-ahead-kb", "0", "--json"]));
    assert_eq!((&row["misses"], &row["untimed"]), (&alone["points"][0]["misses"], &Value::Bool(true)));
    assert!(row["runtime_ns"].is_null() && row["reclaim_p99_ns"].is_null(), "{row}");
}
