//! Sweeps: killed and resumed, in shards, with cells that fail.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, text};

const PLAN: &str = r#"
traces = ["*.u32"]
policy = ["lru", "arc", "random", "opt", "classic@6.12"]
memory = ["20%..100%/8"]
seeds = 2
[vary]
"task.replay.think_time" = ["0s", "1us"]
[[except]]
trace = "b.u32"
policy = "arc"
"#;

/// A folder with two traces and the plan.
fn folder(plan: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, factor) in [("a.u32", 2_654_435_761_u32), ("b.u32", 2_246_822_519)] {
        let pages = (0..30_000_u32).map(|at| (at ^ (at >> 5)).wrapping_mul(factor) >> (22 + at % 3));
        std::fs::write(directory.path().join(name), pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
            .unwrap();
    }
    std::fs::write(directory.path().join("plan.toml"), plan).unwrap();
    directory
}

fn sweep(directory: &Path, more: &[&str]) -> std::process::Output {
    pageout(directory, &[&["sweep", "--quiet"], more].concat())
}

fn collected(directory: &Path, into: &str) -> String {
    check_success(&sweep(directory, &["--collect", into, "--format", "csv"]))
}

/// A is 2 x (lru 8, random 8 x 2, opt 8, classic 8 x 2 x 2), and arc's 8 of one trace.
const CELLS: usize = 2 * (8 + 16 + 8 + 32) + 8;

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_sweep_that_was_killed_goes_on_and_comes_to_what_an_undisturbed_one_does() {
    let folder = folder(PLAN);
    let at = folder.path();
    check_success(&sweep(at, &["plan.toml", "--into", "whole"]));
    let whole = collected(at, "whole");
    assert_eq!(whole.lines().count(), 1 + CELLS, "{whole}");
    let parts = || std::fs::read_dir(at.join("killed")).map_or(0, Iterator::count);
    for enough in [1, 4, 9] {
        let arguments =
            ["sweep", "plan.toml", "--into", "killed", "--part-every", "0s", "--jobs", "1", "--quiet"];
        let mut program = Command::new(super::binary());
        program.args(arguments).current_dir(at).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = program.spawn().unwrap();
        while parts() < enough && program.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Somewhere between two parts, or within one.
        std::thread::sleep(Duration::from_millis(enough as u64));
        let _ = program.kill();
        program.wait().unwrap();
        assert!(parts() >= enough);
    }
    check_success(&sweep(at, &["plan.toml", "--into", "killed"]));
    assert_eq!(collected(at, "killed"), whole);
    let again = check_success(&sweep(at, &["plan.toml", "--into", "killed"]));
    assert!(again.starts_with(&format!("0 of {CELLS} cells run, {CELLS} found, 0 failed")), "{again}");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn shards_together_are_the_whole_and_a_damaged_part_is_run_again() {
    let folder = folder(PLAN);
    let at = folder.path();
    check_success(&sweep(at, &["plan.toml", "--into", "whole", "--shard", "0/1"]));
    for shard in ["2/3", "0/3", "1/3"] {
        check_success(&sweep(at, &["plan.toml", "--into", "shards", "--shard", shard]));
    }
    let whole = collected(at, "whole");
    assert_eq!(collected(at, "shards"), whole);
    let part = std::fs::read_dir(at.join("shards")).unwrap().map(|entry| entry.unwrap().path());
    let part =
        part.into_iter().find(|path| path.extension().is_some_and(|suffix| suffix == "jsonl")).unwrap();
    let rows = std::fs::read(&part).unwrap();
    std::fs::write(&part, &rows[..rows.len() - 9]).unwrap();
    let status = check_success(&sweep(at, &["--status", "shards"]));
    assert!(
        status.contains(&format!("of {CELLS} cells done, 0 failed")) && status.contains("is damaged"),
        "{status}"
    );
    let again = sweep(at, &["plan.toml", "--into", "shards"]);
    assert!(
        text(&again.stderr).contains("is damaged: sweep runs its cells again"),
        "{}",
        text(&again.stderr)
    );
    check_success(&again);
    assert!(collected(at, "shards") == whole);
    check_failure(&sweep(at, &["plan.toml", "--into", "x", "--shard", "3/3"]), 2, &["3/3", "0/4"]);
}

#[test]
fn a_cell_of_a_sweep_is_what_replay_finds() {
    let folder = folder(PLAN);
    let at = folder.path();
    check_success(&sweep(at, &["plan.toml", "--into", "whole"]));
    let rows: Value =
        serde_json::from_str(&check_success(&sweep(at, &["--collect", "whole", "--json"]))).unwrap();
    let rows = rows.as_array().unwrap();
    for (policy, more) in [("arc", &[][..]), ("classic@6.12", &["--think-time", "1us", "--seed", "2"])] {
        let asked = ["replay", "a.u32", "--memory", "20%", "--policy", policy, "--json", "--quiet"];
        let found: Value =
            serde_json::from_str(&check_success(&pageout(at, &[&asked[..], more].concat()))).unwrap();
        let misses = found["traces"][0]["cells"][0].get("misses").unwrap_or(&found["points"][0]["misses"]);
        let is_it = |row: &&Value| {
            let is_set = row.get("task.replay.think_time").is_none_or(|time| time == "1us");
            let is_seed = row["seed"] == if more.is_empty() { 1 } else { 2 };
            row["input"] == "a.u32" && row["policy"] == policy && row["memory"] == "20%" && is_set && is_seed
        };
        let row = rows.iter().find(is_it).unwrap();
        assert_eq!((&row["misses"], &row["complete"]), (misses, &true.into()), "{policy}");
    }
}

#[test]
fn table_of_ten_traces_and_eight_policies_is_one_command() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for trace in 0..10_u32 {
        let pages = (0..4_000_u32)
            .map(|at| (at ^ (at >> 5)).wrapping_mul(2_654_435_761 ^ trace << 20) >> (23 + at % 4));
        std::fs::write(
            at.join(format!("{trace}.u32")),
            pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>(),
        )
        .unwrap();
    }
    let policies = "fifo,lru,clock,sieve,arc,s3-fifo,lhd,lecar";
    let asked = ["--traces", "*.u32", "--policy", policies, "--memory", "10%,50%", "--into", "out"];
    let summary = ["--summary", "fifo", "--format", "csv"];
    let csv = check_success(&sweep(at, &[&asked[..], &summary].concat()));
    let heading = "version,base,memory,policy,traces,traces_missing,miss_ratio_mean,reduction_mean,reduction_low,reduction_high,\
                   reduction_p10,reduction_p25,reduction_p50,reduction_p75,reduction_p90,wins,ties,losses,best,p";
    assert_eq!(csv.lines().next(), Some(heading));
    assert_eq!(csv.lines().count(), 1 + 2 * 7, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.contains(",fifo,") && line.contains(",10,0,")), "{csv}");
    // The rows of the folder are the same, and the reduction is that of their miss ratios.
    let again = ["--collect", "out", "--summary", "fifo", "--format", "csv"];
    assert_eq!(check_success(&sweep(at, &again)), csv);
    let rows: Value =
        serde_json::from_str(&check_success(&sweep(at, &["--collect", "out", "--json"]))).unwrap();
    let ratio = |policy: &str, trace: u32| {
        let is_it = |row: &&Value| {
            let is_trace =
                row["input"].as_str().is_some_and(|input| input.ends_with(&format!("{trace}.u32")));
            is_trace && row["policy"] == policy && row["memory"] == "10%"
        };
        rows.as_array().unwrap().iter().find(is_it).unwrap()["miss_ratio"].as_f64().unwrap()
    };
    let reductions = (0..10).map(|trace| 1.0 - ratio("lhd", trace) / ratio("fifo", trace));
    let mean = reductions.sum::<f64>() / 10.0;
    let line = csv.lines().find(|line| line.contains(",10%,lhd,")).unwrap();
    let told: f64 = line.split(',').nth(7).unwrap().parse().unwrap();
    assert!((told - mean).abs() < 1e-9, "{told} {mean}");
    let text = check_success(&sweep(at, &["out/plan.toml", "--into", "out", "--summary", "fifo"]));
    assert!(text.starts_with("reduction of the miss ratio against fifo"), "{text}");
    assert!(text.contains("95 % interval") && text.contains(" wins "), "{text}");
    let unknown = sweep(at, &["--collect", "out", "--summary", "mru"]);
    check_failure(&unknown, 2, &["--summary mru", "its policies are arc, clock, fifo"]);
}

#[test]
fn a_cell_that_fails_is_a_row_with_its_error_and_takes_nothing_from_the_others() {
    let plan = "traces = ['a.u32', 'none.u32', 'cut.pgt']\npolicy = ['lru', 'classic@6.12']\nmemory = ['1pages', '50%']\n";
    let folder = folder(plan);
    let at = folder.path();
    std::fs::write(at.join("cut.pgt"), "PGT1").unwrap();
    let dry = check_success(&sweep(at, &["plan.toml", "--dry-run"]));
    assert!(dry.contains("none.u32 (cannot be read: its cells will fail)"), "{dry}");
    let output = sweep(at, &["plan.toml", "--into", "rows"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("9 cells failed; each has a row with its error"),
        "{}",
        text(&output.stderr)
    );
    let rows: Value =
        serde_json::from_str(&check_success(&sweep(at, &["--collect", "rows", "--json"]))).unwrap();
    let told = |input: &str, memory: &str, policy: &str| {
        let is_it =
            |row: &&Value| row["input"] == input && row["memory"] == memory && row["policy"] == policy;
        rows.as_array().unwrap().iter().find(is_it).unwrap()["error"].as_str().unwrap_or_default().to_string()
    };
    // Two of them are of the bound: the machine reads `a.u32` ahead.
    assert_eq!(rows.as_array().unwrap().len(), 14);
    assert!(told("none.u32", "50%", "lru").contains("No such file"));
    assert!(told("cut.pgt", "50%", "classic@6.12").contains("cut.pgt"));
    assert!(told("a.u32", "4KiB", "classic@6.12").contains("64 pages"), "{rows:#}");
    assert_eq!(told("a.u32", "50%", "classic@6.12"), "");
}

#[test]
fn scenarios_are_swept_over_kernels_seeds_and_keys() {
    let plan = "scenarios = ['s.toml']\npolicy = ['classic@6.12', 'mglru@6.12']\nseeds = 2\n[vary]\n'memcg./web.memory.max' = ['1MiB', '2MiB']\n";
    let folder = folder(plan);
    let at = folder.path();
    std::fs::write(at.join("s.toml"), GOOD).unwrap();
    check_success(&sweep(at, &["plan.toml", "--into", "rows"]));
    let rows: Value =
        serde_json::from_str(&check_success(&sweep(at, &["--collect", "rows", "--json"]))).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 8);
    let run = [
        "run",
        "s.toml",
        "--set",
        "memcg./web.memory.max=2MiB",
        "--set",
        "kernel.profile=mglru@6.12",
        "--seed",
        "2",
        "--json",
    ];
    let run: Value = serde_json::from_str(&check_success(&pageout(at, &run))).unwrap();
    let is_it = |row: &&Value| {
        row["policy"] == "mglru@6.12" && row["memcg./web.memory.max"] == "2MiB" && row["seed"] == 2
    };
    let row = rows.as_array().unwrap().iter().find(is_it).unwrap();
    assert_eq!((&row["runtime_ns"], &row["accesses"]), (&run["end_ns"], &run["accesses"]));
}

#[test]
fn traces_of_equal_bytes_are_named_in_each_result() {
    let folder = folder("traces = ['*.u32']\npolicy = ['lru', 'fifo']\nmemory = ['50%']\n");
    let at = folder.path();
    std::fs::copy(at.join("a.u32"), at.join("c.u32")).unwrap();
    let note = "c.u32 has the same bytes as a.u32";
    for more in [&["plan.toml", "--dry-run"][..], &["plan.toml", "--into", "rows"]] {
        let told = check_success(&sweep(at, more));
        assert!(told.contains(note), "{told}");
    }
    let json: Value =
        serde_json::from_str(&check_success(&sweep(at, &["plan.toml", "--into", "rows", "--json"]))).unwrap();
    assert_eq!(json["equal_inputs"], serde_json::json!([{ "input": "c.u32", "equals": "a.u32" }]));
    let status = check_success(&sweep(at, &["--status", "rows"]));
    assert!(status.starts_with("4 of 4 cells done"), "{status}");
    for more in [&["--collect", "rows"][..], &["--collect", "rows", "--summary", "fifo"]] {
        let told = pageout(at, &[&["sweep"], more].concat());
        check_success(&told);
        assert!(text(&told.stderr).contains(note), "{}", text(&told.stderr));
    }
}
