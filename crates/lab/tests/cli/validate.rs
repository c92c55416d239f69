//! `pageout validate`: what it accepts, what it refuses, and that no simulated figure knows the answers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

/// The part of the recordings that ships with the project.
pub(super) fn ground_truth() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth")
}

/// A copy of the recordings to spoil, each of whose runs is simulated twice where tolerances ask for more: what is spoilt shows as well.
fn copy_of_ground_truth() -> tempfile::TempDir {
    let copy = copy_of(&ground_truth());
    simulate_as_often_as(copy.path(), "phases = 2");
    copy
}

/// Puts other numbers of simulations into a copy's tolerances.
fn simulate_as_often_as(copy: &Path, phases: &str) {
    let path = copy.join("tolerances.toml");
    let tolerances = fs::read_to_string(ground_truth().join("tolerances.toml")).unwrap();
    let shipped = "phases = 16\nphases_single = 64      # of a run that was recorded once";
    assert!(tolerances.contains(shipped), "{tolerances}");
    fs::write(path, tolerances.replace(shipped, phases)).unwrap();
}

/// A copy of a set of recordings by itself, its runs as a text that a test can change.
fn copy_of(set: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(set, copy.path());
    let sequences = copy.path().join("sequences");
    if !sequences.exists() {
        fs::create_dir(&sequences).unwrap();
        copy_folder(&set.join("../sequences"), &sequences);
    }
    let compressed = copy.path().join("ground-truth.json.zst");
    if compressed.exists() {
        let text = zstd::decode_all(fs::File::open(&compressed).unwrap()).unwrap();
        fs::write(copy.path().join("ground-truth.json"), text).unwrap();
        fs::remove_file(compressed).unwrap();
    }
    copy
}

/// Copies what is in a folder, folders in it included.
pub(super) fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&to).unwrap();
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, to).unwrap();
        }
    }
}

pub(super) fn validate(dir: &Path, arguments: &[&str]) -> std::process::Output {
    let dir = dir.to_str().unwrap();
    pageout(Path::new("."), &[&["validate", dir], arguments].concat())
}

fn change_runs(dir: &Path, change: impl Fn(&mut Value)) {
    let path = dir.join("ground-truth.json");
    let mut truth: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    truth["runs"].as_array_mut().unwrap().iter_mut().for_each(change);
    fs::write(path, truth.to_string()).unwrap();
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn recorded_runs_are_reproduced_within_their_tolerances() {
    let of_each_class = [
        "fr-loop.classic.1",
        "fr-loop.classic.t",
        "mm-zipf099.mglru.*",
        "tmpfs.mglru.1",
        "mm-zipf099.classic.f2",
    ];
    let output = validate(&ground_truth(), &of_each_class);
    let text = check_success(&output);
    assert!(text.contains("fr-loop.classic.t") && text.contains("0 failed, 0 not simulated"), "{text}");
}

/// Every simulated figure by run and name.
fn simulated(output: &std::process::Output) -> Vec<(String, Value)> {
    let judged: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let rows = judged.as_array().unwrap().iter().flat_map(|run| {
        run["rows"].as_array().unwrap().iter().map(|row| {
            let figures = serde_json::json!([row["simulated"], row["envelope"]]);
            (format!("{} {}", run["run"], row["name"]), figures)
        })
    });
    rows.collect()
}

#[test]
fn every_page_enters_and_leaves_as_recorded_where_the_flushes_were_traced() {
    let output = validate(&ground_truth(), &["mm-zipf099.classic.f2", "--json"]);
    let judged: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let rows = judged[0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "stream alike up to").expect("it has a stream");
    assert_eq!([row["simulated"].as_f64(), row["real"].as_f64()], [Some(78_543.0); 2]);
    let judged_rows = rows.iter().filter(|row| row["passes"].as_bool().is_some());
    assert!(judged_rows.count() >= 9, "{rows:?}");
}

#[test]
fn traced_flushes_widen_no_range_of_the_repeats_made_without() {
    let copy = copy_of_ground_truth();
    let path = copy.path().join("ground-truth.json");
    let range = |dir: &Path| {
        let output = validate(dir, &["fr-zipf099.classic.1", "--json"]);
        let judged: Value = serde_json::from_str(&check_success(&output)).unwrap();
        judged[0]["rows"].to_string()
    };
    let before = range(copy.path());
    let mut truth: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    truth["runs"].as_array_mut().unwrap().retain(|run| run["id"] != "fr-zipf099.classic.f1");
    fs::write(&path, truth.to_string()).unwrap();
    assert_eq!(range(copy.path()), before);
    truth["runs"].as_array_mut().unwrap().retain(|run| run["id"] != "fr-zipf099.classic.3");
    fs::write(&path, truth.to_string()).unwrap();
    assert_ne!(range(copy.path()), before);
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn blanking_the_answers_changes_no_simulated_figure() {
    let runs = [
        "--json",
        "mm-zipf099.mglru.t",
        "fr-loop.classic.[1t]",
        "an-zipf-disk.classic.1",
        "fr-zipf099.classic.f1",
    ];
    let blank = copy_of_ground_truth();
    let informed = simulated(&validate(blank.path(), &runs));
    blank_answers(blank.path());
    let ignorant = simulated(&validate(blank.path(), &runs));
    let mut compared = 0;
    for (name, figures) in &ignorant {
        let (_, known) = informed.iter().find(|(other, _)| other == name).expect("nothing new appears");
        assert_eq!(figures, known, "{name}");
        compared += 1;
    }
    assert!(compared >= 30, "only {compared} figures were compared");
}

/// Leaves nothing of what the kernel did.
fn blank_answers(dir: &Path) {
    change_runs(dir, |run| {
        for key in ["vmstat_delta", "memcg_delta", "vmstat_end", "memcg_end", "memcg_events", "task", "disk"]
        {
            run[key] = serde_json::json!({});
        }
        for key in ["misses_file", "page_cache_stream", "ops_missed"] {
            run[key] = Value::Null;
        }
        for window in run["windows"].as_array_mut().unwrap() {
            *window = serde_json::json!({ "op": window["op"], "t": window["t"] });
        }
    });
    fs::remove_dir_all(dir.join("misses")).unwrap();
    let _ = fs::remove_dir_all(dir.join("evictions"));
}

fn copy_of_machine() -> tempfile::TempDir {
    copy_of(&ground_truth().join("machine"))
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn blanking_the_answers_of_a_whole_machine_changes_no_simulated_figure() {
    let runs = ["--json", "ft-global.*", "gl-zipf090.mglru.1"];
    let informed = simulated(&validate(&ground_truth().join("machine"), &runs));
    let blank = copy_of_machine();
    blank_answers(blank.path());
    let ignorant = simulated(&validate(blank.path(), &runs));
    for (name, figures) in &ignorant {
        let (_, known) = informed.iter().find(|(other, _)| other == name).expect("nothing new appears");
        assert_eq!(figures, known, "{name}");
    }
    assert!(ignorant.len() >= 30, "only {} figures were compared", ignorant.len());
}

#[test]
fn a_whole_machine_is_played_where_its_class_limits_shares() {
    let json = text(&validate(&ground_truth().join("machine"), &["ft-global.classic.t", "--json"]).stdout);
    let judged: Value = serde_json::from_str(&json).unwrap();
    let rows = judged[0]["rows"].as_array().unwrap();
    for name in ["stalls", "pages a stall", "pageoutrun", "low_wmark_hit_quickly", "mean free pages"] {
        let row = rows.iter().find(|row| row["name"] == name).expect(name);
        assert!(row["passes"].is_boolean() && row["simulated"].as_f64() > Some(0.0), "{row}");
        assert!(row["envelope"].is_array(), "what is not recorded is spread over several simulations: {row}");
    }
    let copy = copy_of_machine();
    let path = copy.path().join("tolerances.toml");
    let without = fs::read_to_string(&path).unwrap().replace("shares = 1.5", "# shares");
    fs::write(path, without).unwrap();
    let output = validate(copy.path(), &["ft-global.classic.t"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("has no limit `shares`"), "{}", text(&output.stdout));
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn memory_tiering_is_as_recorded_and_its_answers_change_no_simulated_figure() {
    let folder = ground_truth().join("tiering");
    let run = "numa-promote.classic.1";
    let played = |folder: &Path| validate(folder, &[run, "--json"]);
    let whole = played(&folder);
    check_success(&whole); // its figures are within their tolerances; ci/gate/validate.sh looks at all runs
    let copy = copy_of(&folder);
    change_runs(copy.path(), |run| run["vmstat_delta"]["pgpromote_success"] = 1_234_567.into());
    let output = played(copy.path());
    assert_eq!(simulated(&output), simulated(&whole));
    check_failure_of(&output, 4, &["1 of 1 runs fail"]);
    // What can't be played as memory on a slow node is not played.
    change_runs(copy.path(), |run| run["objects"] = serde_json::json!(["mmap:16384:/mnt/f"]));
    check_failure_of(&validate(copy.path(), &[run]), 2, &["no run was simulated"]);
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn zswap_is_as_recorded_and_its_sums_are_equal_in_every_simulation() {
    let copy = copy_of(&ground_truth().join("zswap"));
    let played = ["zswap-shrink.classic.2", "--verbose"];
    let judged = check_success(&validate(copy.path(), &played));
    let sums = [
        "missed, not a major fault",
        "swapped in, not missed",
        "refaults without a cause",
        "written, not from zswap",
        "stores without a write",
        "stolen, not stored",
    ];
    for sum in sums {
        let told: Vec<&str> = judged.lines().filter(|line| line.starts_with(sum)).collect();
        let is_none =
            |line: &&str| line[sum.len()..].split_whitespace().next() == Some("0") && line.ends_with("ok");
        assert!(told.len() == 1 && told.iter().all(is_none), "{sum}: {told:?}");
    }
    change_runs(copy.path(), |run| run["vmstat_delta"]["zswpout"] = 90_000.into());
    let output = validate(copy.path(), &played);
    let told = text(&output.stdout);
    let falls_short = |line: &str| line.starts_with("zswpout") && line.ends_with("FALLS SHORT");
    assert!(output.status.code() == Some(4) && told.lines().any(falls_short), "{told}");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn dirty_pages_are_as_recorded_and_none_is_lost() {
    let copy = copy_of(&ground_truth().join("dirty"));
    // Reclaim that met a tenth of the dirty pages more is not this kernel's.
    change_runs(copy.path(), |run| {
        if run["id"] == "dirty.mglru.2" {
            let met = run["vmstat_delta"]["nr_vmscan_immediate_reclaim"].as_i64().unwrap();
            run["vmstat_delta"]["nr_vmscan_immediate_reclaim"] = (met + met / 10).into();
        }
    });
    let output = validate(copy.path(), &["--verbose"]);
    assert_eq!(output.status.code(), Some(4));
    let judged = text(&output.stdout);
    let ends = |figure: &str| -> Vec<&str> {
        let told = judged.lines().filter(|line| line.starts_with(figure));
        told.map(|line| line.rsplit("  ").next().unwrap().trim()).collect()
    };
    for figure in ["missed", "stolen", "pgrotated", "nr_dirtied", "nr_written", "dirtied, gone unwritten"] {
        assert_eq!(ends(figure), ["ok", "ok"], "{figure}: {judged}");
    }
    assert_eq!(ends("nr_vmscan_immediate_reclaim"), ["ok", "FALLS SHORT"], "{judged}");
    // Where a file is read ahead, writes to it are not played.
    change_runs(copy.path(), |run| run["objects"] = serde_json::json!(["ra:16384:/mnt/f"]));
    let output = validate(copy.path(), &["dirty.mglru.2"]);
    check_failure_of(&output, 2, &["no run was simulated"]);
    assert!(text(&output.stdout).contains("not modelled: writes to files with readahead"));
}

#[test]
fn a_wrong_answer_makes_a_run_fall_short() {
    let wrong = copy_of_ground_truth();
    change_runs(wrong.path(), |run| {
        if let Some(count) = run["vmstat_delta"]["pgsteal_file"].as_i64() {
            run["vmstat_delta"]["pgsteal_file"] = (count * 2).into();
        }
    });
    let output = validate(wrong.path(), &["fr-loop.classic.t"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("FALLS SHORT  stolen"), "{}", text(&output.stdout));
}

#[test]
fn a_run_expected_to_fall_short_fails_only_when_it_passes() {
    let passes = validate(&ground_truth(), &["fr-loop.classic.t", "--expect-short", "fr-loop.classic.t"]);
    assert_eq!(passes.status.code(), Some(4));
    assert!(text(&passes.stderr).contains("fr-loop.classic.t is expected to fail, but it passes"));
    let falls_short = ["fr-zipf099.classic.t", "--expect-short", "fr-zipf099.classic.t"];
    check_success(&validate(&ground_truth(), &falls_short));
    let stranger = validate(&ground_truth(), &["fr-loop.classic.t", "--expect-short", "fr-lop.classic.t"]);
    check_failure(&stranger, 2, &["--expect-short: found `fr-lop.classic.t`", "expected the name of a run"]);
}

#[test]
fn a_run_that_can_not_be_played_is_named_with_the_reason_and_fails() {
    let strange = copy_of_ground_truth();
    change_runs(strange.path(), |run| {
        if run["id"] == "fr-loop.classic.1" {
            run["swap"] = "tape".into();
        }
    });
    let output = validate(strange.path(), &["fr-loop.classic.*"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = text(&output.stdout);
    assert!(printed.contains("NOT PLAYED  found swap `tape`, expected none, disk or zram"), "{printed}");
    assert!(printed.contains("0 failed, 1 not simulated"), "{printed}");
}

#[test]
fn recorded_readahead_is_reproduced_page_by_page() {
    let printed = check_success(&validate(&ground_truth().join("readahead"), &["--verbose"]));
    assert!(printed.contains("4 of 4 runs passed, 0 failed, 0 not simulated"), "{printed}");
    assert_eq!(printed.matches("accesses with other insertions").count(), 4, "{printed}");
}

#[test]
fn readahead_with_another_window_than_the_recorded_one_falls_short() {
    let strange = copy_of(&ground_truth().join("readahead"));
    change_runs(strange.path(), |run| run["read_ahead_kb"] = 64.into());
    let output = validate(strange.path(), &["ra-from1.*"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("FALLS SHORT"), "{}", text(&output.stdout));
}

#[test]
fn a_run_that_needs_what_is_not_modelled_is_skipped_by_name() {
    let strange = copy_of_ground_truth();
    change_runs(strange.path(), |run| match run["id"].as_str().unwrap() {
        "fr-loop.classic.1" => run["cpus"] = 2.into(),
        "fr-loop.classic.2" => {
            run["objects"] = serde_json::json!(["ra:10240:/mnt/f:4"]);
            run["limit_pages"] = 0.into();
            run["wl_options"] = "-m -S -l 12 -w 60 -f 8".into();
        }
        _ => {}
    });
    let printed = check_success(&validate(strange.path(), &["fr-loop.classic.*"]));
    assert!(
        printed.contains("fr-loop.classic.1            skipped  not modelled: more than one CPU\n"),
        "{printed}"
    );
    let several = "fr-loop.classic.2            skipped  not modelled: the program's option `-S`, \
                   the program's option `-l 12`, the program's option `-f 8`\n";
    assert!(printed.contains(several), "{printed}");
    assert!(printed.contains("2 of 4 runs passed, 0 failed, 0 not simulated, 2 skipped"), "{printed}");
    // Alone, nothing is left that could have passed, and what is skipped can't be expected to fall short.
    check_failure_of(&validate(strange.path(), &["fr-loop.classic.1"]), 2, &["no run was simulated"]);
    let short = ["fr-loop.classic.*", "--expect-short", "fr-loop.classic.1"];
    check_failure_of(
        &validate(strange.path(), &short),
        4,
        &["fr-loop.classic.1 is expected to fail, but it is skipped"],
    );
}

/// With results on standard output, unlike `check_failure`.
#[track_caller]
fn check_failure_of(output: &std::process::Output, code: i32, parts: &[&str]) {
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    parts.iter().for_each(|part| assert!(told.contains(part), "{part:?} is not in {told}"));
}

#[test]
fn an_unknown_run_is_refused_with_the_nearest_one() {
    let output = validate(&ground_truth(), &["fr-loop.clasic.t"]);
    check_failure(&output, 2, &["no run `fr-loop.clasic.t`", "did you mean `fr-loop.classic.t`?"]);
}

#[test]
fn a_malformed_folder_is_refused_by_file() {
    let copy = copy_of_ground_truth();
    fs::remove_file(copy.path().join("tolerances.toml")).unwrap();
    check_failure(&validate(copy.path(), &[]), 2, &["tolerances.toml"]);

    let copy = copy_of_ground_truth();
    fs::write(copy.path().join("ground-truth.json"), "{\"runs\": [{}]}").unwrap();
    check_failure(
        &validate(copy.path(), &[]),
        2,
        &["ground-truth.json is malformed", "line 1", "missing field"],
    );

    let copy = copy_of_ground_truth();
    fs::write(copy.path().join("tolerances.toml"), "floor = 2\n[class.exact]\ncounter = 1\n").unwrap();
    check_failure(&validate(copy.path(), &[]), 2, &["tolerances.toml is malformed", "counter"]);
    let rule = "floor = 2\n[class.a]\n[[run]]\nworkload = 'fr-['\npolicy = '*'\nclass = 'a'\n";
    fs::write(copy.path().join("tolerances.toml"), rule).unwrap();
    check_failure(
        &validate(copy.path(), &[]),
        2,
        &["tolerances.toml is malformed", "invalid pattern `fr-[`"],
    );
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_run_whose_answer_is_blank_falls_short_by_name_whatever_its_class() {
    for run in ["fr-loop.mglru.1", "fr-loop.classic.1"] {
        for field in ["vmstat_delta", "memcg_delta"] {
            let copy = copy_of_ground_truth();
            change_runs(copy.path(), |other| {
                if other["id"] == run {
                    other[field] = serde_json::json!({});
                }
            });
            let note = format!("{run}: `{field}` is empty");
            check_blank(&validate(copy.path(), &[run]), &note);
        }
        let copy = copy_of_ground_truth();
        let path = copy.path().join(format!("misses/{run}.u8.zst"));
        let flags = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        fs::write(&path, zstd::encode_all(&vec![0; flags.len()][..], 1).unwrap()).unwrap();
        let note = format!("{run}: `misses_file` is empty");
        check_blank(&validate(copy.path(), &[run]), &note);
    }
}

/// The simulated figures are there, and no verdict but that it falls short.
#[track_caller]
fn check_blank(output: &std::process::Output, note: &str) {
    let (printed, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains(note), "{told}");
    assert!(printed.contains("scanned") && !printed.contains(" ok"), "{printed}");
}

#[test]
fn a_tolerance_that_is_no_number_from_0_is_named() {
    let copy = copy_of_ground_truth();
    let path = copy.path().join("tolerances.toml");
    let tolerances = fs::read_to_string(&path).unwrap();
    let spoil = |from: &str, to: &str| {
        assert!(tolerances.contains(from));
        fs::write(&path, tolerances.replacen(from, to, 1)).unwrap();
        validate(copy.path(), &["fr-loop.mglru.1"])
    };
    let parts = ["tolerances.toml", "class `traced`", "`activity`: found -0.1"];
    check_failure(&spoil("activity = 0.005", "activity = -0.1"), 2, &parts);
    let parts = ["tolerances.toml", "class `exact`", "`counters`: found inf"];
    check_failure(&spoil("counters = 0.0", "counters = inf"), 2, &parts);
    check_failure(&spoil("floor = 2", "floor = nan"), 2, &["tolerances.toml: `floor`: found NaN"]);
}

#[test]
fn missing_flushes_are_told_from_a_missing_entry() {
    let copy = copy_of_ground_truth();
    fs::remove_file(copy.path().join("flushes.json")).unwrap();
    let path = copy.path().join("flush-ops.json");
    fs::write(&path, "{}").unwrap();
    let run = || validate(copy.path(), &["fr-loop.classic.t"]);
    check_failure(&run(), 2, &["flush-ops.json: missing entry for fr-loop.classic.t"]);
    fs::remove_file(&path).unwrap();
    let parts = ["flush-ops.json or flushes.json: missing", "fr-loop.classic.t"];
    check_failure(&run(), 2, &parts);
}

#[test]
fn flushes_are_taken_before_the_next_access_than_the_one_that_they_came_in() {
    let copy = copy_of_ground_truth();
    let path = copy.path().join("flush-ops.json");
    let fitted: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let runs = ["--json", "fr-zipf099.classic.t", "--expect-short", "fr-zipf099.classic.t"];
    let as_fitted = simulated(&validate(copy.path(), &runs));
    let before = fitted["fr-zipf099.classic.t"]["flush_before_access"].as_array().unwrap();
    let rows: Vec<Value> =
        before.iter().map(|access| serde_json::json!([access.as_u64().unwrap() - 1, 0, 4])).collect();
    let flushes = serde_json::json!({ "fr-zipf099.classic.t": rows });
    fs::write(copy.path().join("flushes.json"), flushes.to_string()).unwrap();
    let parts = ["flushes.json: the flushes of fr-zipf099.classic.t are also in", "flush-ops.json"];
    check_failure(&validate(copy.path(), &runs), 2, &parts);
    fs::remove_file(&path).unwrap();
    assert_eq!(simulated(&validate(copy.path(), &runs)), as_fitted);
    // One of them elsewhere is another run.
    let moved = flushes.to_string().replacen("[38244,", "[32244,", 1);
    assert_ne!(moved, flushes.to_string());
    fs::write(copy.path().join("flushes.json"), moved).unwrap();
    assert_ne!(simulated(&validate(copy.path(), &runs)), as_fitted);
    let last = before.last().unwrap().as_u64().unwrap() - 1;
    let beyond = flushes.to_string().replacen(&format!("[{last},"), "[300000,", 1);
    fs::write(copy.path().join("flushes.json"), beyond).unwrap();
    let parts =
        ["found a flush of fr-zipf099.classic.t before access 300001, but the run has 300000 accesses"];
    check_failure(&validate(copy.path(), &runs), 2, &parts);
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_run_without_repeats_is_simulated_as_often_as_phases_single_says() {
    let copy = copy_of_ground_truth();
    let simulations = |phases: &str| {
        simulate_as_often_as(copy.path(), phases);
        let runs = ["--json", "an-zipf-disk-noflush.mglru.1", "an-zipf-disk.mglru.1", "fr-loop.mglru.1"];
        let judged: Value = serde_json::from_str(&text(&validate(copy.path(), &runs).stdout)).unwrap();
        let counts = judged.as_array().unwrap().iter().map(|run| run["simulations"].as_u64().unwrap());
        counts.collect::<Vec<u64>>()
    };
    assert_eq!(simulations("phases = 2\nphases_single = 3"), [3, 2, 1]);
    assert_eq!(simulations("phases = 2"), [2, 2, 1]);
    simulate_as_often_as(copy.path(), "phases = 2\nphases_single = 0");
    let output = validate(copy.path(), &["fr-loop.mglru.1"]);
    check_failure(&output, 2, &["class `envelope`: `phases_single`: found 0 simulations"]);
}

#[test]
fn other_tolerances_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strict.toml");
    let strict =
        "floor = 0\nclass.all.activity = 0.0\nrun = [{ workload = '*', policy = '*', class = 'all' }]";
    fs::write(&path, strict).unwrap();
    let run = ["fr-zipf099.classic.t", "--tolerances", path.to_str().unwrap()];
    let output = validate(&ground_truth(), &run);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("(class all)"), "{}", text(&output.stdout));
}

#[test]
fn a_run_named_twice_is_judged_once() {
    let output = validate(&ground_truth(), &["fr-loop.mglru.1", "fr-loop.mglru.1", "fr-l*.mglru.1"]);
    assert!(check_success(&output).contains("1 of 1 runs passed"), "{}", text(&output.stdout));
}

#[test]
fn a_stream_that_does_not_fit_its_run_is_named() {
    let copy = copy_of_ground_truth();
    let evictions = copy.path().join("evictions");
    fs::copy(evictions.join("fr-zipf099.classic.t.u32.zst"), evictions.join("fr-loop.classic.t.u32.zst"))
        .unwrap();
    let output = validate(copy.path(), &["fr-loop.classic.t"]);
    let parts = [
        "fr-loop.classic.t.u32.zst: damaged, or recorded from another run",
        "access 0 adds page 0, but word 0 adds page",
    ];
    check_failure(&output, 2, &parts);
}

#[test]
fn a_truncated_sequence_is_named() {
    let copy = copy_of_ground_truth();
    let path = copy.path().join("sequences/loop.u32.zst");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let output = validate(copy.path(), &["fr-loop.classic.t"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = text(&output.stdout);
    assert!(printed.contains("NOT PLAYED") && printed.contains("loop.u32.zst"), "{printed}");
    assert_eq!(printed.matches("incomplete frame").count(), 1, "a reason is told once: {printed}");
}

/// With what their groups held at the start, all of it agrees in each access: docs/results/data/predictions.md.
#[test]
fn the_limit_at_which_a_loop_stops_hitting_is_the_kernels_to_the_page() {
    let folder = ground_truth().join("predictions");
    let loops = validate(&folder, &["loop-400[0-4].mglru.*", "loop-400[12].classic.i1"]);
    assert!(check_success(&loops).contains("9 of 9 runs passed"));
    // The pages of the program's text decide: a page less, and the loop of 4,002 fits.
    let copy = copy_of(&folder);
    change_runs(copy.path(), |run| run["group_at_start"] = serde_json::json!(["text", "device"]));
    let output = validate(copy.path(), &["loop-4002.mglru.1", "--first-difference"]);
    check_failure_of(&output, 4, &["1 of 1 runs fail"]);
    assert!(
        text(&output.stdout).contains("same as recorded before access 4000, to page 0"),
        "{}",
        text(&output.stdout)
    );
}

/// Whoever finds a page with readahead's mark holds it while the next ones are read. Where reclaim for these could take it, five accesses
/// of this run bring it in once more.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_mapping_with_readahead_and_all_its_inputs_is_as_recorded_page_by_page() {
    let folder = ground_truth().join("inputs");
    let run = "rl-mzipf.classic.w1";
    let judged = check_success(&validate(&folder, &[run, "--verbose", "--first-difference"]));
    // A refault is judged before the flush that came once its page had.
    let other = check_success(&validate(&folder, &["rl-mruns3.classic.w1", "--first-difference"]));
    assert!(!other.contains("same as recorded before"), "{other}");
    let told =
        |name: &str| judged.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{judged}"));
    assert_eq!(told("accesses with other insertions").split_whitespace().nth(4), Some("0"), "{judged}");
    assert!(!judged.contains("same as recorded before"), "{judged}");
    for input in ["flushes", "mapped_file"] {
        check_failure_of(&validate(&folder, &[run, "--without", input]), 4, &["1 of 1 runs fail"]);
    }
}

fn misses_off(output: &std::process::Output) -> f64 {
    let judged: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let rows = judged[0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "missed").expect("misses are judged");
    row["simulated"].as_f64().unwrap() / row["real"].as_f64().unwrap() - 1.0
}

/// What of it lies where before the first access is worth 8 % of the misses of this run.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_whole_machine_goes_on_from_the_state_in_which_it_was_found() {
    let folder = ground_truth().join("machine-inputs");
    let run = "gl-mixb.classic.f1";
    let off = |more: &[&str]| misses_off(&validate(&folder, &[&[run, "--json"], more].concat()));
    assert!(off(&[]).abs() < 0.02, "{}", off(&[]));
    assert!(off(&["--without", "start_state"]) < -0.05, "{}", off(&["--without", "start_state"]));
    for input in ["kswapd_wakes", "kernel_allocations"] {
        assert_ne!(off(&[]), off(&["--without", input]), "{input}");
    }
    check_success(&validate(&folder, &["gl-fileb.*"]));
}

/// The first second of a whole machine's run.
fn short_machine() -> tempfile::TempDir {
    const ACCESSES: usize = 2000;
    let copy = copy_of(&ground_truth().join("machine-inputs"));
    change_runs(copy.path(), |run| {
        let mut window = run["windows"][0].clone();
        (window["op"], window["t"]) = (ACCESSES.into(), 1.0.into());
        run["windows"] = serde_json::json!([window]);
        run["ops"] = ACCESSES.into();
        run.as_object_mut().unwrap().remove("misses_file");
        run["vmstat_delta"]["pageoutrun"] = 1.into();
    });
    for sequence in fs::read_dir(copy.path().join("sequences")).unwrap() {
        let path = sequence.unwrap().path();
        let words = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
        fs::write(&path, zstd::encode_all(&words[..4 * ACCESSES], 1).unwrap()).unwrap();
    }
    copy
}

#[test]
fn a_machines_trace_or_snapshot_of_which_a_part_is_missing_is_told_with_the_result() {
    let copy = short_machine();
    let told = || {
        let output = validate(copy.path(), &["gl-fileb.mglru.1", "--simulations", "2"]);
        text(&output.stdout)
    };
    let write = |name: &str, lines: &str| {
        let path = copy.path().join("inputs").join(format!("gl-fileb.mglru.i1.{name}.txt.zst"));
        fs::write(path, zstd::encode_all(lines.as_bytes(), 1).unwrap()).unwrap();
    };
    let path = copy.path().join("inputs/gl-fileb.mglru.i1.start.txt.zst");
    let snapshot = String::from_utf8(zstd::decode_all(fs::File::open(path).unwrap()).unwrap()).unwrap();
    let asked = "5 1 70 mm_vmscan_wakeup_kswapd nid=0\n9 0 kswapd0 mm_vmscan_kswapd_wake nid=0\n";
    let taken = |at: u64| format!("{at} 0 70 mm_page_alloc pfn=900 order=0 gfp_flags=3264 migratetype=0\n");
    let nobodys = "are simulated by rule: ";
    let all = asked.to_string() + &taken(950_000);
    let doubts = [
        (
            asked.to_string(),
            vec![format!("`kernel_allocations` {nobodys}"), "`trace_file` ends at 0.000 s of 1.000 s".into()],
        ),
        (taken(950_000), vec![format!("`kswapd_wakes` {nobodys}")]),
        (asked.to_string() + &taken(500_000), vec!["`trace_file` ends at 0.500 s of 1.000 s".into()]),
        (
            String::new(),
            vec![
                format!("`kswapd_wakes` {nobodys}"),
                format!("`kernel_allocations` {nobodys}"),
                "`trace_file` ends at 0.000 s of 1.000 s".into(),
            ],
        ),
        (all.clone(), vec![]),
    ];
    for (trace, doubts) in doubts {
        write("trace", &trace);
        let printed = told();
        for doubt in &doubts {
            assert!(printed.contains(&format!("\ngl-fileb.mglru.1: {doubt}")), "{doubt}: {printed}");
        }
        let is_nobodys = |input: &str| {
            let missing = printed.lines().find(|line| line.starts_with("not recorded, by runs: "));
            missing.is_some_and(|line| line.contains(&format!("{input} of 1")))
        };
        for input in ["kswapd_wakes", "kernel_allocations"] {
            let is_in_doubt = doubts.iter().any(|doubt| doubt.starts_with(&format!("`{input}`")));
            assert_eq!(is_nobodys(input), is_in_doubt, "{input}: {printed}");
        }
        let lines = printed.lines().filter(|line| line.starts_with("gl-fileb.mglru.1: ")).count();
        assert_eq!(lines, doubts.len(), "{printed}");
    }
    // Enough at its end, and not in its middle: kswapd ran more often than it woke.
    write("trace", &all);
    change_runs(copy.path(), |run| run["vmstat_delta"]["pageoutrun"] = 4.into());
    let why = "`trace_file` has 1 `mm_vmscan_kswapd_wake`, but `pageoutrun` counts 4 runs of kswapd";
    assert!(told().contains(&format!("\ngl-fileb.mglru.1: {why}")), "{}", told());
    let without = |word: &str| {
        let lines = snapshot.lines().filter(|line| !line.starts_with(word));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    for (word, why) in [
        ("gen index=3 type=file", "anonymous pages and pages of files in `pages`"),
        ("free order=10", "free pages in `pages`"),
    ] {
        write("start", &without(word));
        assert!(told().contains(why), "{word}");
    }
}

#[test]
fn each_part_of_a_snapshot_can_be_left_out_by_itself() {
    let copy = short_machine();
    let trace = copy.path().join("inputs/gl-mixb.mglru.i2.trace.txt.zst");
    fs::write(trace, zstd::encode_all(&b""[..], 1).unwrap()).unwrap();
    let figures = |without: &[&str]| {
        let output =
            validate(copy.path(), &[&["gl-mixb.mglru.2", "--simulations", "2", "--json"], without].concat());
        simulated(&output)
    };
    let all = figures(&[]);
    for part in [
        "free_memory",
        "per_cpu_lists",
        "lru_lists",
        "add_batches",
        "tiers",
        "costs",
        "statistics",
        "statistics_due",
    ] {
        assert_eq!(figures(&["--without", part]).len(), all.len(), "{part}");
    }
}

#[test]
fn a_kernels_trace_that_makes_no_sense_is_told_with_its_line() {
    let told = |line: &str| {
        let copy = copy_of(&ground_truth().join("machine-inputs"));
        let path = copy.path().join("inputs/gl-fileb.mglru.i1.trace.txt.zst");
        let taken = "10 0 70 mm_page_alloc pfn=900 order=0 gfp_flags=3264 migratetype=0";
        fs::write(&path, zstd::encode_all(format!("{taken}\n{line}\n").as_bytes(), 1).unwrap()).unwrap();
        let output = validate(copy.path(), &["gl-fileb.mglru.1"]);
        assert_eq!(output.status.code(), Some(2), "{line}");
        text(&output.stdout) + &text(&output.stderr)
    };
    for (line, why) in [
        ("mm_page_free pfn=900 order=0", "expected `MICROSECONDS CPU TASK EVENT`"),
        ("20 0 70 mm_page_alloc order=0 gfp_flags=3264 migratetype=0", "`mm_page_alloc`: missing `pfn=`"),
        (
            "20 0 70 mm_page_alloc pfn=900 order=0 gfp_flags=3264 migratetype=0",
            "frame 900 is allocated twice without a free in between",
        ),
        (
            "20 0 70 mm_page_alloc pfn=901 order=11 gfp_flags=3264 migratetype=0",
            "found `order=11`, expected at most 10",
        ),
        (
            "20 0 70 mm_page_alloc pfn=901 order=0 gfp_flags=GFP_KERNEL migratetype=0",
            "invalid number `gfp_flags=GFP_KERNEL`",
        ),
        (
            "20 0 70 mm_page_alloc pfn=901 order=0 gfp_flags=3264 migratetype=3",
            "found `migratetype=3`, expected 0, 1 or 2",
        ),
        ("20 0 70 mm_page_free pfn=x", "invalid number `pfn=x`"),
        ("9 0 70 mm_page_free pfn=900 order=0", "is earlier than the previous event, at 10 us"),
    ] {
        let text = told(line);
        assert!(text.contains(why) && text.contains("gl-fileb.mglru.i1.trace.txt.zst:2"), "{why}: {text}");
    }
}

#[test]
fn a_snapshot_that_makes_no_sense_is_told_with_its_line() {
    let run = "gl-fileb.mglru.1";
    let told = |change: &dyn Fn(String) -> String| {
        let copy = copy_of(&ground_truth().join("machine-inputs"));
        let path = copy.path().join("inputs/gl-fileb.mglru.i1.start.txt.zst");
        let snapshot = String::from_utf8(zstd::decode_all(fs::File::open(&path).unwrap()).unwrap()).unwrap();
        fs::write(&path, zstd::encode_all(change(snapshot).as_bytes(), 1).unwrap()).unwrap();
        let output = validate(copy.path(), &[run]);
        assert_eq!(output.status.code(), Some(2));
        text(&output.stdout) + &text(&output.stderr)
    };
    let replaced = |from: &'static str, to: &'static str| {
        move |snapshot: String| {
            assert!(snapshot.contains(from), "{from}");
            snapshot.replacen(from, to, 1)
        }
    };
    for (change, why) in [
        (replaced("\nend\n", "\n"), "missing last line `end`"),
        (replaced("pages: X255", "pages: X25z"), "found `X25z`, expected a letter and a number of frames"),
        (replaced("\nzone node", "\nzones node"), "missing line `zone`"),
        (replaced(" managed=27919", " managed=many"), "invalid number `managed=many`"),
        (replaced("blocks order=9:U", "blocks order=9:Q"), "found pageblock type `Q`"),
        (replaced("free order=10 type=M: ", "free order=10 type=M: 9 "), "the block of order 10"),
        (replaced("free order=10 type=M: ", "free order=10 type=M: 99999999 "), "unknown frame `99999999`"),
        (replaced("pcplist cpu=1", "pcplist cpu=7"), "unknown CPU 7"),
        (replaced("min_seq=", "min_seq=9,9,"), "expected 2 numbers"),
        (replaced("tiers type=1", "tiers type=4"), "unknown type 4"),
        (replaced("aM", "xM"), "found folio"),
    ] {
        let text = told(&change);
        assert!(text.contains(why), "{why}: {text}");
    }
}
