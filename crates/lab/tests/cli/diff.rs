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
    of_topic.map_or(String::new(), |meaning| match meaning["says"].as_str() {
        Some(says) => says.to_string(),
        None => format!("unknown: {}", meaning["unknown"]),
    })
}

/// Lines of names and values.
fn stat(values: &[(&str, u64)]) -> String {
    values.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

/// Two snapshots that differ by how much each name grew.
fn grown(values: &[(&str, u64)], more: &[&str]) -> Output {
    let before: Vec<_> = values.iter().map(|(name, _)| (*name, 1000)).collect();
    let after: Vec<_> = values.iter().map(|(name, change)| (*name, 1000 + change)).collect();
    diff(&stat(&before), &stat(&after), more)
}

#[test]
fn what_happened_is_told_with_what_it_means_and_the_figures_it_rests_on() {
    let result = read(&diff(BEFORE, AFTER, &["--interval", "10s", "--json"]));
    assert_eq!(
        says(&result, "reclaim"),
        "Reclaim scanned 40,000 pages (4.00 k/s) and freed 10,000 of them (1.00 k/s), 25.00%. It frees few of them: most scanned \
         pages are in use, dirty or protected. The number of pages freed at cgroup limits is unknown: no pgsteal_anon; a kernel before 7.1 does not \
         count them above."
    );
    let who = says(&result, "who");
    assert!(who.starts_with("Tasks freed 4,000 pages (40.00%) in direct reclaim, in 100 calls (allocstall); kswapd freed 6,000."), "{who}");
    assert!(who.contains("watermark_scale_factor"), "{who}");
    assert_eq!(
        says(&result, "refaults of files"),
        "6,000 pages of files returned after eviction (600 /s), compared with 10,000 freed: 60.00%. 50.00% of them returned soon enough \
         to be activated immediately, 25.00% were active before their eviction. Freed pages are needed again: memory is too small \
         for the pages in use."
    );
    assert!(says(&result, "swap").contains(
        "1,000 pages were written to swap (100 /s) and 600 read back (60.0 /s). Swap traffic goes both ways"
    ));
    assert_eq!(says(&result, "major faults"), "60 major faults of 100 faults waited for a device (6.00 /s).");
    assert_eq!(
        says(&result, "huge pages"),
        "4 faults asked for a huge page, 3 of them did not get one (75.00%)."
    );
    let compaction = says(&result, "compaction");
    assert!(
        compaction
            .contains("10 times (1.00 /s): 2 got a block, 8 did not, so most of the waits gained nothing"),
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
    assert!(text(&output.stderr).contains("changes are unknown: pswpin"), "{}", text(&output.stderr));
    let result = read(&output);
    assert_eq!(
        (&result["complete"], &result["went_back"]["pswpin"]),
        (&false.into(), &json!({"before": 7, "after": 0}))
    );
    assert_eq!(
        (&result["counters"]["pswpin"], says(&result, "swap").as_str()),
        (&Value::Null, r#"unknown: ["pswpin went back"]"#)
    );
    let said = text(&diff(&BEFORE.replace("pswpin 0", "pswpin 7"), &one, &[]).stdout);
    assert!(said.contains("WARNING: counters went back"), "{said}");
    // A reboot, or the wrong order: nothing can be told.
    check_failure(
        &diff(AFTER, BEFORE, &[]),
        2,
        &["changed counters are lower in after than in before", "exchange the files", "restart"],
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
    assert_eq!(says(&result, "refaults of files"), r#"unknown: ["no workingset_refault_file"]"#);
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
            .starts_with("Reclaim scanned 100 pages and freed 90 of them, 90.00%. It is easy")
    );
    assert!(says(&result, "refaults of files").contains(
        "compared with 90 freed of any type: 88.89%. Freed pages are needed again: the cgroup's limit is too small"
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

#[test]
fn reclaim_at_limits_before_7_1_is_what_types_have_beyond_reclaimers() {
    let counters = [
        ("pgscan_kswapd", 10),
        ("pgscan_direct", 0),
        ("pgscan_khugepaged", 0),
        ("pgsteal_kswapd", 7),
        ("pgsteal_direct", 0),
        ("pgsteal_khugepaged", 0),
        ("pgscan_anon", 0),
        ("pgscan_file", 1010),
        ("pgsteal_anon", 3),
        ("pgsteal_file", 904),
    ];
    let result = read(&grown(&counters, &["--json"]));
    let reclaim = says(&result, "reclaim");
    assert!(reclaim.starts_with("Reclaim scanned 1,010 pages and freed 907 of them"), "{reclaim}");
    assert!(reclaim.contains("900 of the freed pages were freed at cgroup limits"), "{reclaim}");
    // Without the counters by type nothing is said of limits, and by type alone the total is known all the same.
    let result = read(&grown(&counters[..6], &["--json"]));
    let reclaim = says(&result, "reclaim");
    assert!(reclaim.contains("freed 7 of them"), "{reclaim}");
    assert!(!reclaim.contains("limits"), "{reclaim}");
    let by_type = read(&grown(&counters[6..], &["--json"]));
    assert!(says(&by_type, "reclaim").starts_with("Reclaim scanned 1,010 pages and freed 907"), "{by_type}");
}

#[test]
fn counters_by_zone_are_summed_over_every_zone_or_unknown() {
    let families = ["pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct"];
    let zones = ["dma", "dma32", "normal", "high", "movable", "device"];
    let names: Vec<String> =
        families.iter().flat_map(|family| zones.map(|zone| format!("{family}_{zone}"))).collect();
    let mut counters: Vec<(&str, u64)> = vec![("allocstall", 5)];
    counters.extend(names.iter().map(|name| (name.as_str(), 100)));
    let result = read(&grown(&counters, &["--json"]));
    assert!(says(&result, "reclaim").starts_with("Reclaim scanned 1,200 pages and freed 1,200"), "{result}");
    let who = says(&result, "who");
    assert!(who.contains("vm.min_free_kbytes") && !who.contains("watermark_scale_factor"), "{who}");
    for missing in ["pgsteal_kswapd_high", "pgsteal_direct_device"] {
        let part: Vec<_> = counters.iter().copied().filter(|(name, _)| *name != missing).collect();
        let result = read(&grown(&part, &["--json"]));
        let expected = format!("unknown: [\"no {missing}\"]");
        assert_eq!([says(&result, "reclaim"), says(&result, "who")], [expected.clone(), expected]);
    }
}

#[test]
fn sum_with_a_missing_part_is_unknown_and_names_it() {
    let all = [
        ("pgscan_kswapd", 10),
        ("pgscan_direct", 10),
        ("pgscan_khugepaged", 10),
        ("pgsteal_kswapd", 5),
        ("pgsteal_direct", 5),
        ("pgsteal_khugepaged", 5),
    ];
    for missing in 0..all.len() {
        let part: Vec<_> = all.into_iter().filter(|(name, _)| *name != all[missing].0).collect();
        let result = read(&grown(&part, &["--json"]));
        assert!(
            says(&result, "reclaim").starts_with(&format!("unknown: [\"no {}\"", all[missing].0)),
            "{result}"
        );
    }
    // In one file alone, or gone back.
    let (before, after): (Vec<_>, Vec<_>) =
        all.iter().map(|(name, change)| ((*name, 1000), (*name, 1000 + change))).unzip();
    let output = diff(&stat(&before), &stat(&after[..5]), &[]);
    let said = check_success(&output);
    assert!(said.contains("Reclaim: unknown: pgsteal_khugepaged is in one file only."), "{said}");
    let mut back = after.clone();
    back[4].1 = 3;
    let said = text(&diff(&stat(&before), &stat(&back), &[]).stdout);
    assert!(said.contains("Reclaim: unknown: pgsteal_direct went back."), "{said}");
    assert!(said.contains("Who: unknown: pgsteal_direct went back."), "{said}");
}

#[test]
fn excerpt_of_a_file_is_judged_by_what_it_has() {
    let result = read(&grown(
        &[("pswpin", 100), ("pswpout", 100), ("nr_free_pages", 1)],
        &["--interval", "1s", "--json"],
    ));
    assert_eq!(
        (result["kind"].as_str().unwrap(), result["means"].as_array().unwrap().len()),
        ("/proc/vmstat", 1)
    );
    // Nothing tells whether these are the machine's or a cgroup's.
    let result = read(&grown(&[("pgsteal_kswapd", 1), ("pgsteal_direct", 100)], &["--json"]));
    let who = says(&result, "who");
    assert!(who.contains("It is unknown if the machine or a cgroup was short of memory"), "{who}");
    assert!(!who.contains("watermark"), "{who}");
}

#[test]
fn pressure_is_read_as_two_snapshots_or_one() {
    let pressure = |some: u64, full: u64| {
        format!(
            "some avg10=0.00 avg60=0.12 avg300=0.17 total={some}\nfull avg10=0.00 avg60=0.00 avg300=1.00 total={full}\n"
        )
    };
    let two = diff(&pressure(1_086_220, 197_216), &pressure(7_086_220, 1_197_216), &["--interval", "60s"]);
    let said = check_success(&two);
    assert!(said.contains("For 6.00 s (10.00% of the time) at least one task waited"), "{said}");
    let said = said.replace('\n', " ");
    assert!(said.contains("for 1.00 s (1.67% of the time) of this time all non-idle tasks"), "{said}");
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("memory.pressure"), pressure(1_086_220, 197_216)).unwrap();
    let said = check_success(&pageout(directory.path(), &["diff", "memory.pressure"]));
    assert!(said.contains("since the boot of the machine") && said.contains("For 1.09 s"), "{said}");
    assert!(said.contains("0.17 %"), "{said}");
    fs::write(directory.path().join("one"), BEFORE).unwrap();
    check_failure(
        &pageout(directory.path(), &["diff", "one"]),
        2,
        &["one: found one snapshot", "expected two"],
    );
}

#[test]
fn gauge_below_zero_is_reported_with_its_sign() {
    let below = AFTER.replace("nr_inactive_file 5000", "nr_inactive_file 18446744073709551613");
    let output = diff(BEFORE, &below, &["--json"]);
    let result = read(&output);
    assert_eq!(result["gauges_below_zero"], json!(["nr_inactive_file"]));
    assert_eq!(result["gauges"]["nr_inactive_file"]["change"], -5003);
    let said = check_success(&diff(BEFORE, &below, &[]));
    assert!(said.contains("Gauges below zero") && said.contains("-12 KiB"), "{said}");
}
