//! `pageout diff`: what happened between two snapshots, what it means, and what is not known.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use super::{check_failure, check_success, pageout, text};

const BEFORE: &str = "nr_free_pages 100000\nnr_inactive_file 5000\nnr_dirtied 10\nworkingset_nodes 4\nworkingset_refault_file 100\n\
workingset_activate_file 50\nworkingset_restore_file 10\npgsteal_file 1000\npgscan_kswapd 1000\npgscan_direct 0\npgscan_direct_throttle 0\n\
pgsteal_kswapd 900\npgsteal_direct 0\nallocstall_normal 0\nallocstall_movable 1\npswpin 0\npswpout 0\npgfault 9\npgmajfault 1\n\
thp_fault_alloc 0\nthp_fault_fallback 0\ncompact_stall 0\ncompact_fail 0\ncompact_success 0\ncompact_migrate_scanned 0\n";
const AFTER: &str = "nr_free_pages 90000\nnr_inactive_file 5000\nnr_dirtied 70\nworkingset_nodes 3\nworkingset_refault_file 6100\n\
workingset_activate_file 3050\nworkingset_restore_file 1510\npgsteal_file 11000\npgscan_kswapd 21000\npgscan_direct 20000\npgscan_direct_throttle 5\n\
pgsteal_kswapd 6900\npgsteal_direct 4000\nallocstall_normal 20\nallocstall_movable 81\npswpin 600\npswpout 1000\npgfault 109\npgmajfault 61\n\
thp_fault_alloc 1\nthp_fault_fallback 3\ncompact_stall 10\ncompact_fail 8\ncompact_success 2\ncompact_migrate_scanned 5000\n";

fn diff(before: &str, after: &str, more: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("before"), before).unwrap();
    fs::write(directory.path().join("after"), after).unwrap();
    let arguments: Vec<&str> = ["diff", "before", "after"].iter().chain(more).copied().collect();
    pageout(directory.path(), &arguments)
}

#[track_caller]
fn read(output: &Output) -> Value {
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

/// What is said of a subject, in one line.
fn says(result: &Value, topic: &str) -> String {
    let means = result["means"].as_array().unwrap();
    let of_topic = means.iter().find(|meaning| meaning["topic"] == topic);
    of_topic.map_or(String::new(), |meaning| meaning["says"].as_str().unwrap().to_string())
}

#[test]
fn what_happened_is_told_with_what_it_means_and_the_figures_it_rests_on() {
    let result = read(&diff(BEFORE, AFTER, &["--interval", "10s", "--json"]));
    assert_eq!(
        says(&result, "reclaim"),
        "Reclaim looked at 40,000 pages (4.00 k/s) and freed 10,000 of them (1.00 k/s), 25.00%. It works hard for little: most of what it \
         looks at is in use, dirty or protected."
    );
    let who = says(&result, "who");
    assert!(who.starts_with("Tasks freed 4,000 pages (40.00%) themselves, while they waited, in 100 calls (allocstall); kswapd freed 6,000."), "{who}");
    assert!(who.contains("watermark_scale_factor"), "{who}");
    assert_eq!(
        says(&result, "refaults of files"),
        "6,000 pages of files came back after they had been freed (600 /s), for 10,000 freed: 60.00%. 50.00% of them had been away for so \
         short a time that they became active at once, 25.00% had been active before. What is freed is needed again: memory is too small \
         for what is in use."
    );
    assert!(says(&result, "swap").contains(
        "1,000 pages were written to swap (100 /s) and 600 read back (60.0 /s). It goes both ways"
    ));
    assert_eq!(says(&result, "major faults"), "60 major faults of 100 faults waited for a device (6.00 /s).");
    assert_eq!(says(&result, "huge pages"), "Of 4 faults that wanted a huge page, 3 got none (75.00%).");
    let compaction = says(&result, "compaction");
    assert!(
        compaction.contains(
            "10 times (1.00 /s): 2 got their block, 8 did not, so most of the waiting was for nothing"
        ),
        "{compaction}"
    );
    assert_eq!(
        result["counters"]["nr_dirtied"],
        json!({"before": 10, "after": 70, "happened": 60, "per_second": 6.0})
    );
    assert_eq!(
        result["gauges"]["nr_free_pages"],
        json!({"before": 100000, "after": 90000, "change": -10000, "unit": "pages"})
    );
    assert_eq!(result["gauges"]["workingset_nodes"]["unit"], "number");
    assert_eq!(result["means"][1]["rests_on"]["allocstall_movable"], 80);
    let said = check_success(&diff(BEFORE, AFTER, &["--interval", "10s"]));
    for line in [
        "nr_free_pages 391 MiB 352 MiB -39.1 MiB",
        "pgscan_kswapd 20,000 2.00 k/s",
        "1 other did not change (--all).",
    ] {
        assert!(
            said.lines().any(|said| said.split_whitespace().eq(line.split_whitespace())),
            "expected {line:?} in:\n{said}"
        );
    }
    assert!(said.contains("[pgscan_kswapd +20,000, pgscan_direct +20,000, pgsteal_kswapd +6,000"), "{said}");
}

#[test]
fn rates_need_a_time_that_is_told() {
    let result = read(&diff(BEFORE, AFTER, &["--json"]));
    assert_eq!(
        (&result["seconds"], &result["counters"]["pgfault"]["per_second"]),
        (&Value::Null, &Value::Null)
    );
    let said = check_success(&diff(BEFORE, AFTER, &[]));
    assert!(
        said.contains("the time between them is not known (--interval)") && !said.contains("/s"),
        "{said}"
    );
    for interval in ["10", "10s", "0.1667min"] {
        assert!(
            read(&diff(BEFORE, AFTER, &["--interval", interval, "--json"]))["seconds"].as_f64().unwrap()
                > 9.9
        );
    }
    assert_eq!(read(&diff(BEFORE, AFTER, &["--seconds", "4", "--json"]))["seconds"], 4.0);
    check_failure(&diff(BEFORE, AFTER, &["--interval", "0"]), 2, &["--interval 0", "above 0"]);
    check_failure(&diff(BEFORE, AFTER, &["--interval", "soon"]), 2, &["--interval soon"]);
    let directory = tempfile::tempdir().unwrap();
    for (name, text, age) in [("a", BEFORE, 70), ("b", AFTER, 10)] {
        let file = fs::File::create(directory.path().join(name)).unwrap();
        fs::write(directory.path().join(name), text).unwrap();
        file.set_modified(
            std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age),
        )
        .unwrap();
    }
    let by_mtime = |a: &str, b: &str| pageout(directory.path(), &["diff", a, b, "--by-mtime", "--json"]);
    assert_eq!(read(&by_mtime("a", "b"))["seconds"], 60.0);
    check_failure(&by_mtime("a", "a"), 2, &["not modified later", "--interval"]);
}

#[test]
fn counters_that_go_back_are_named_and_no_zero() {
    let one = AFTER.replace("pswpin 600", "pswpin 0").replace("pswpout 1000", "pswpout 0");
    let output = diff(&BEFORE.replace("pswpin 0", "pswpin 7"), &one, &["--json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("not known: pswpin"), "{}", text(&output.stderr));
    let result = read(&output);
    assert_eq!(
        (&result["complete"], &result["went_back"]["pswpin"]),
        (&false.into(), &json!({"before": 7, "after": 0}))
    );
    assert_eq!((&result["counters"]["pswpin"], says(&result, "swap").as_str()), (&Value::Null, ""));
    let said = text(&diff(&BEFORE.replace("pswpin 0", "pswpin 7"), &one, &[]).stdout);
    assert!(said.contains("WARNING: counters went back"), "{said}");
    // A reboot, or the wrong order: nothing can be told.
    check_failure(
        &diff(AFTER, BEFORE, &[]),
        2,
        &["counters that differ are lower in after than in before", "wrong order", "started anew"],
    );
}

#[test]
fn names_that_are_not_known_or_in_one_file_alone_are_listed() {
    let (before, after) =
        (format!("{BEFORE}of_tomorrow 3\npgold 4\n"), format!("{AFTER}of_tomorrow 9\npgnew 5\n"));
    let result = read(&diff(&before, &after, &["--json"]));
    assert_eq!(result["unknown"], json!({"of_tomorrow": {"before": 3, "after": 9}}));
    assert_eq!((&result["only_before"], &result["only_after"]), (&json!(["pgold"]), &json!(["pgnew"])));
    let said = check_success(&diff(&before, &after, &[]));
    for part in [
        "not known here, as counters or as gauges: of_tomorrow (3 to 9)",
        "Only in before, so without a difference: pgold",
        "Only in after, so without a difference: pgnew",
    ] {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
    // Without counters of refaults nothing is said to have had none.
    let without = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("workingset_refault"))
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let result = read(&diff(&without(BEFORE), &without(AFTER), &["--json"]));
    assert!(says(&result, "refaults of files").starts_with("No counter of refaults tells"));
}

#[test]
fn a_memory_stat_is_read_in_bytes_and_compared_with_its_own_kind_alone() {
    let stat = |anon: u64, scan: u64, steal: u64, refaults: u64| {
        format!(
            "anon {anon}\nfile 8192\npgscan {scan}\npgsteal {steal}\npgscan_kswapd 0\npgscan_direct {scan}\npgsteal_kswapd 0\npgsteal_direct {steal}\nworkingset_refault_anon 0\nworkingset_refault_file {refaults}\n"
        )
    };
    let result = read(&diff(&stat(4096, 0, 0, 0), &stat(1 << 20, 100, 90, 80), &["--json"]));
    assert_eq!(
        result["gauges"]["anon"],
        json!({"before": 4096, "after": 1 << 20, "change": (1 << 20) - 4096, "unit": "bytes"})
    );
    assert!(
        says(&result, "reclaim")
            .starts_with("Reclaim looked at 100 pages and freed 90 of them, 90.00%. That is easy")
    );
    assert!(says(&result, "refaults of files").contains(
        "for 90 freed of any type: 88.89%. What is freed is needed again: the cgroup's limit is too small"
    ));
    check_failure(
        &diff(BEFORE, &stat(0, 0, 0, 0), &[]),
        2,
        &["before is /proc/vmstat, and after is memory.stat"],
    );
    check_failure(&diff(BEFORE, "MemTotal:       16 kB\n", &[]), 2, &["after: line 1", "/proc/meminfo"]);
    check_failure(&diff(BEFORE, AFTER.trim_end(), &[]), 2, &["after: the last line has no end"]);
    check_failure(
        &pageout(std::path::Path::new("."), &["diff", "nowhere", "neither"]),
        2,
        &["cannot read nowhere"],
    );
    let quiet = check_success(&diff(&stat(0, 0, 0, 0), &stat(0, 0, 0, 0), &[]));
    assert!(quiet.contains("Nothing was reclaimed."), "{quiet}");
}
