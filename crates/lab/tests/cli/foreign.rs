//! `pageout validate` on a folder that somebody else recorded: docs/reference/recordings.md, field by field.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{check_failure, check_success, pageout, text};

const ACCESSES: u64 = 1200;
const TOLERANCES: &str = "floor = 2
[class.close]
misses = 0.001
activity = 0.005
disagreement = 0.01
[class.range]
phases = 4
misses = 0.01
[[run]]
workload = 'loop'
policy = 'mglru*'
class = 'close'
[[run]]
workload = 'loop'
policy = '*'
class = 'range'
";

/// A loop over more pages of a file than fit: with two lists as with generations each access misses.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for name in ["sequences", "misses"] {
            fs::create_dir(folder.0.path().join(name)).unwrap();
        }
        folder.write(json!([Folder::run("mglru"), Folder::run("classic")]));
        fs::write(folder.0.path().join("tolerances.toml"), TOLERANCES).unwrap();
        let words: Vec<u8> = (0..ACCESSES).flat_map(|k| ((k % 400) as u32).to_le_bytes()).collect();
        folder.compress("sequences/loop.u32.zst", &words);
        folder.compress("misses/loop.u8.zst", &[4; ACCESSES as usize]);
        folder
    }

    /// Everything that is asked for, and nothing that is optional but the kernel.
    fn run(policy: &str) -> Value {
        json!({
            "id": format!("loop.{policy}.1"), "workload": "loop", "policy": policy, "rep": "1",
            "kernel": if policy == "mglru" { "6.16.3" } else { "6.12.48" },
            "sequence": "loop", "ops": ACCESSES, "objects": ["read:400:/mnt/f"], "limit_pages": 300,
            "swap": "none", "swappiness": 60, "cmdline": "quiet cgroup.memory=nokmem",
            "mem_total_kb": 1_000_000, "cpus": 1,
            "windows": [{ "op": 600, "t": 1.5 }, { "op": ACCESSES, "t": 2.25 }],
            "vmstat_delta": { "pgscan_file": 1 }, "memcg_delta": { "pgrefill": 0 },
            "misses_file": "misses/loop.u8.zst",
        })
    }

    fn write(&self, runs: Value) {
        fs::write(self.0.path().join("ground-truth.json"), json!({ "runs": runs }).to_string()).unwrap();
    }

    fn compress(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), zstd::encode_all(bytes, 1).unwrap()).unwrap();
    }

    fn validate(&self, arguments: &[&str]) -> std::process::Output {
        let dir = self.0.path().to_str().unwrap();
        pageout(Path::new("."), &[&["validate", dir], arguments].concat())
    }

    /// What one run says, with one field as given, or left out.
    fn with(&self, field: &str, value: Option<Value>) -> std::process::Output {
        let mut run = Folder::run("mglru");
        match value {
            Some(value) => run[field] = value,
            None => drop(run.as_object_mut().unwrap().remove(field)),
        }
        self.write(json!([run]));
        self.validate(&["--json"])
    }

    /// The simulated figures as if they had been recorded.
    fn answer(&self, policy: &str) -> Value {
        let mut run = Folder::run(policy);
        self.write(json!([run]));
        let judged: Value = serde_json::from_str(&text(&self.validate(&["--json"]).stdout)).unwrap();
        for row in judged[0]["rows"].as_array().unwrap() {
            let name = row["name"].as_str().unwrap();
            let place = if name == "pgrefill" { "memcg_delta" } else { "vmstat_delta" };
            run[place][name] = json!(row["simulated"].as_f64().unwrap() as i64);
        }
        run
    }
}

#[test]
fn another_kernels_recordings_are_judged_as_the_projects_are() {
    let folder = Folder::new();
    let runs = [folder.answer("mglru"), folder.answer("classic")];
    folder.write(json!(runs));
    let printed = check_success(&folder.validate(&[]));
    assert!(printed.contains("loop.mglru.1    close  ok"), "{printed}");
    assert!(printed.contains("loop.classic.1  range  ok"), "{printed}");
    assert!(printed.contains("2 of 2 runs passed"), "{printed}");
    // Another answer is another verdict.
    let mut wrong = runs.clone();
    wrong[0]["vmstat_delta"]["pgsteal_file"] = 1.into();
    folder.write(json!(wrong));
    let output = folder.validate(&[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("loop.mglru.1    close  FALLS SHORT  stolen"));
}

#[test]
fn the_kernels_version_says_whose_rules_are_compared() {
    let folder = Folder::new();
    let parts = [
        "unknown profile `mglru@5.15`",
        "set `policy` to the profile",
        "mglru@v4-2021, mglru@6.12, mglru@6.16, mglru@7.1, mglru@2026",
    ];
    for (kernel, parts) in [
        (Some(json!("5.15.7")), &parts[..]),
        (None, &["missing `kernel`, the version of `mglru`", "use a profile"][..]),
    ] {
        let output = folder.with("kernel", kernel);
        assert_eq!(output.status.code(), Some(2));
        let printed = text(&output.stdout);
        parts.iter().for_each(|part| assert!(printed.contains(part), "{part:?} is not in {printed}"));
    }
    let output = folder.with("policy", Some(json!("mglru@6.12")));
    assert!(text(&output.stdout).contains("\"simulated\""), "{}", text(&output.stderr));
}

#[test]
fn a_field_that_is_missing_is_named_by_file_and_line() {
    let folder = Folder::new();
    for field in [
        "id",
        "workload",
        "policy",
        "rep",
        "sequence",
        "ops",
        "objects",
        "limit_pages",
        "swap",
        "swappiness",
        "cmdline",
        "mem_total_kb",
        "cpus",
        "windows",
        "vmstat_delta",
    ] {
        let missing = format!("missing field `{field}`");
        check_failure(&folder.with(field, None), 2, &["ground-truth.json is malformed", &missing, "line 1"]);
    }
    let told = text(&folder.with("memcg_delta", None).stderr);
    assert!(told.contains("loop.mglru.1: `memcg_delta` is empty"), "{told}");
    let told = text(&folder.with("misses_file", None).stderr);
    assert!(told.contains("loop.mglru.1: no `misses_file` and no `page_cache_stream`"), "{told}");
}

#[test]
fn a_field_out_of_its_range_is_named_with_its_run() {
    let folder = Folder::new();
    let windows = |points: &[(u64, f64)]| {
        json!(points.iter().map(|(op, t)| json!({ "op": op, "t": t })).collect::<Vec<Value>>())
    };
    for (field, value, told) in [
        ("ops", json!(0), "run loop.mglru.1: `ops`: found 0"),
        ("windows", json!([]), "run loop.mglru.1: missing `windows`"),
        (
            "windows",
            windows(&[(600, 1.0), (600, 2.0)]),
            "`windows[1]`: `op`: found 600, expected more than 600",
        ),
        (
            "windows",
            windows(&[(1201, 1.0)]),
            "`windows[0]`: `op`: found 1201, expected more than 0 and at most `ops`",
        ),
        (
            "windows",
            windows(&[(600, 2.0), (1200, 1.0)]),
            "`windows[1]`: `t`: found 1 s, expected at least 2 s",
        ),
        ("base_pages", json!(["heap"]), "found page `heap`, expected `flags`, `data`, `text` or `device`"),
        (
            "group_at_start",
            json!(["text:34", "device:x"]),
            "found page `device:x`, expected `flags`, `data`, `text` or `device`, the last three optionally with a number",
        ),
        ("swappiness", json!(300), "ground-truth.json is malformed"),
    ] {
        check_failure(&folder.with(field, Some(value)), 2, &["ground-truth.json", told]);
    }
    for (field, value, told) in [
        ("ops", json!(1201), "found 1200 accesses, but loop.mglru.1 made 1201"),
        ("sequence", json!("lop"), "sequences/lop.u32.zst"),
        ("objects", json!([]), "the run has no objects"),
        ("objects", json!(["raed:400"]), "unknown kind `raed`"),
        (
            "objects",
            json!(["read:300:/mnt/f"]),
            "access 300 is to page 300, which is outside of read:300:/mnt/f",
        ),
        ("swap", json!("tape"), "found swap `tape`, expected none, disk or zram"),
        ("swappiness", json!(201), "vm.swappiness: 201 is not in the range 0 to 200"),
        ("hz", json!(0), "hz: 0 is not in the range 1 to 1000"),
        ("tlb_entries", json!(3), "tlb_entries: found 3, expected a power of two"),
        ("mem_total_kb", json!(0), "pages of a node: 0 is not in the range"),
        ("group_at_start", json!(["text:34", "text:34"]), "`base_pages`: duplicate Text page 34"),
        ("agings", json!([[1200, 1]]), "`agings[0]`: found access 1200, expected one of 1200 from 0"),
        ("agings", json!([[3, 0], [3, 2]]), "`agings[1]`: found 2 walked address spaces, expected at most 1"),
        ("access_times", json!("misses/loop.u8.zst"), "misses/loop.u8.zst: found 300 times, expected 1200"),
        ("mapped_file", json!("sequences/none.zst"), "cannot open"),
        (
            "base_pages",
            json!(["flags"]),
            "`base_pages` has `flags` of first touches, but no object is anonymous",
        ),
    ] {
        let output = folder.with(field, Some(value));
        assert_eq!(output.status.code(), Some(2), "{field}");
        let printed = text(&output.stdout);
        assert!(
            printed.contains("\"not_played\": \"") && printed.contains(told),
            "{told:?} is not in {printed}"
        );
    }
}

#[test]
fn optional_fields_change_what_is_simulated() {
    let folder = Folder::new();
    let figures = |output: std::process::Output| {
        let judged: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
        assert!(judged[0]["rows"].as_array().is_some_and(|rows| rows.len() > 5), "{judged}");
        judged[0]["rows"].to_string()
    };
    let plain = figures(folder.with("rep", Some(json!("1"))));
    assert_ne!(figures(folder.with("base_pages", Some(json!([])))), plain);
    assert_ne!(figures(folder.with("limit_pages", Some(json!(310)))), plain);
    for (field, value) in [
        ("base_pages", json!(["data", "text", "device"])),
        ("hz", json!(250)),
        ("tlb_entries", json!(0)),
        ("exit_pages", json!(13)),
        ("swap_pages", json!(131_072)),
        ("zswap", json!(0)),
        ("wl_options", json!("")),
        ("read_ahead_kb", json!(0)),
        ("fault_around_bytes", json!(4096)),
    ] {
        assert_eq!(figures(folder.with(field, Some(value))), plain, "the default of {field}");
    }
}

#[test]
fn a_misspelt_field_is_told_with_the_one_that_was_meant() {
    let folder = Folder::new();
    let told = text(&folder.with("base_page", Some(json!([]))).stderr);
    assert!(told.contains("the field `base_page` of runs is ignored; did you mean `base_pages`?"), "{told}");
}

#[test]
fn a_form_of_another_version_is_refused_and_none_is_the_first() {
    let folder = Folder::new();
    let write = |format: Value| {
        let truth = json!({ "format": format, "runs": [Folder::run("mglru")] }).to_string();
        fs::write(folder.0.path().join("ground-truth.json"), truth).unwrap();
        folder.validate(&[])
    };
    for unknown in [json!(4), json!(0), json!("1"), json!(1.5)] {
        let told = format!("found `format` {unknown}, expected 1 to 3");
        check_failure(&write(unknown), 2, &["ground-truth.json: ", &told]);
    }
    folder.write(json!([Folder::run("mglru")]));
    let unnamed = folder.validate(&[]);
    for known in [1, 2, 3] {
        let named = write(json!(known));
        assert_eq!((named.status.code(), &named.stdout), (unnamed.status.code(), &unnamed.stdout));
    }
}

#[test]
fn two_runs_of_one_name_and_a_run_without_a_rule_are_refused() {
    let folder = Folder::new();
    folder.write(json!([Folder::run("mglru"), Folder::run("mglru")]));
    check_failure(&folder.validate(&[]), 2, &["ground-truth.json: duplicate run loop.mglru.1"]);
    let output = folder.with("workload", Some(json!("lop")));
    check_failure(&output, 2, &["tolerances.toml: no rule for loop.mglru.1", "no `[[run]]` matches"]);
}

#[test]
fn runs_may_be_compressed_but_not_be_there_twice() {
    let folder = Folder::new();
    let plain = folder.validate(&["--json"]);
    assert_eq!(plain.status.code(), Some(4), "{}", text(&plain.stderr));
    let path = folder.0.path().join("ground-truth.json");
    folder.compress("ground-truth.json.zst", &fs::read(&path).unwrap());
    check_failure(
        &folder.validate(&[]),
        2,
        &["ground-truth.json.zst: found both this file and", "remove one"],
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(text(&folder.validate(&["--json"]).stdout), text(&plain.stdout));
    fs::write(path.with_extension("json.zst"), "{}").unwrap();
    check_failure(&folder.validate(&[]), 2, &["ground-truth.json.zst: damaged"]);
}

#[test]
fn a_set_within_another_can_use_its_sequences() {
    let folder = Folder::new();
    let alone = folder.validate(&["--json"]);
    assert_eq!(alone.status.code(), Some(4), "{}", text(&alone.stderr));
    let within = folder.0.path().join("within");
    fs::create_dir(&within).unwrap();
    for name in ["ground-truth.json", "tolerances.toml"] {
        fs::copy(folder.0.path().join(name), within.join(name)).unwrap();
    }
    fs::create_dir(within.join("misses")).unwrap();
    fs::copy(folder.0.path().join("misses/loop.u8.zst"), within.join("misses/loop.u8.zst")).unwrap();
    let validate_within = || pageout(&within, &["validate", ".", "--json"]);
    assert_eq!(text(&validate_within().stdout), text(&alone.stdout));
    fs::remove_file(folder.0.path().join("sequences/loop.u32.zst")).unwrap();
    let told = text(&validate_within().stdout);
    assert!(told.contains("\"not_played\": \"") && told.contains("./sequences/loop.u32.zst"), "{told}");
}

/// A mapping of which more is used than fits, with readahead and fault-around: a hit from time to time, and what the simulator
/// makes of it as the answer.
fn mapping(folder: &Folder, policy: &str) -> Value {
    let page = |k: u64| if k.is_multiple_of(3) { k * 7 % 900 } else { k * k % 150 };
    let words: Vec<u8> = (0..ACCESSES).flat_map(|k| (page(k) as u32).to_le_bytes()).collect();
    folder.compress("sequences/loop.u32.zst", &words);
    let mut run = Folder::run(policy);
    run["objects"] = json!(["ram:1000:/mnt/x"]);
    run["wl_options"] = json!("-m");
    run["read_ahead_kb"] = json!(32);
    run["fault_around_bytes"] = json!(65536);
    run["limit_pages"] = json!(256);
    run
}

/// Figures by name of the only run of a folder.
fn figures(folder: &Folder, run: &Value, arguments: &[&str]) -> String {
    folder.write(json!([run]));
    fs::write(folder.0.path().join("flushes.json"), json!({ "loop.classic.1": [[700, 0, 0]] }).to_string())
        .unwrap();
    let tolerances = TOLERANCES.replace("'range'", "'close'");
    fs::write(folder.0.path().join("tolerances.toml"), tolerances).unwrap();
    let output = folder.validate(&[&["--json"], arguments].concat());
    let judged: Value =
        serde_json::from_str(&text(&output.stdout)).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    assert!(judged[0]["rows"].as_array().is_some_and(|rows| rows.len() > 5), "{judged}");
    let rows = judged[0]["rows"].as_array().unwrap().iter();
    rows.map(|row| format!("{}={} ", row["name"], row["simulated"])).collect()
}

#[test]
fn each_recorded_input_is_played_and_left_out_when_asked() {
    let folder = Folder::new();
    let times: Vec<u8> = (0..ACCESSES).flat_map(|_| 100_000_u32.to_le_bytes()).collect();
    folder.compress("times.u32.zst", &times);
    folder.compress("maps.txt.zst", b"0 0 0 0\n3 0 21 21\n");
    for (policy, input, value) in [
        ("mglru", "group_at_start", json!(["text:34", "text:56", "text:29", "device:6459"])),
        ("classic", "group_at_start", json!(["text", "text"])),
        ("mglru", "base_pages", json!(["text", "text", "text"])),
        ("mglru", "mapped_file", json!("maps.txt.zst")),
        ("classic", "mapped_file", json!("maps.txt.zst")),
        // A second aging in a call of reclaim walks, as if something else had run meanwhile.
        ("mglru", "agings", json!((0..ACCESSES).flat_map(|k| [[k, 0], [k, 1]]).collect::<Vec<_>>())),
        // The ages of generations go by the clock.
        ("mglru", "access_times", json!("times.u32.zst")),
    ] {
        let mut run = mapping(&folder, policy);
        run["lru_gen"] = json!(["28 9 0 9", "31 9 0 9"]);
        let before = figures(&folder, &run, &[]);
        run[input] = value;
        assert_ne!(figures(&folder, &run, &[]), before, "{policy}: {input} is not played");
        let left_out = figures(&folder, &run, &["--without", input]);
        assert_eq!(left_out, before, "{policy}: {input} is played though it is left out");
    }
    // Pages read twice are active, and how many are inactive is as old as the last flush.
    let mut run = mapping(&folder, "classic");
    run["objects"] = json!(["read:1000:/mnt/f"]);
    let twice: Vec<u8> = (0..ACCESSES).flat_map(|k| ((k / 4 * 2 + k % 2) as u32).to_le_bytes()).collect();
    folder.compress("sequences/loop.u32.zst", &twice);
    let (with, without) =
        (figures(&folder, &run, &[]), figures(&folder, &run, &["--without", "flushes,agings"]));
    assert_ne!(with, without, "flushes");
    check_failure(
        &folder.validate(&["--without", "flush"]),
        2,
        &["invalid value: found `flush`", "flushes", "mapped_file"],
    );
}

#[test]
fn an_input_that_holds_nothing_or_not_all_is_told_with_the_result() {
    let folder = Folder::new();
    let times = |us: u32| (0..ACCESSES).flat_map(|_| us.to_le_bytes()).collect::<Vec<u8>>();
    folder.compress("at-once.u32.zst", &times(0));
    folder.compress("times.u32.zst", &times(1875));
    folder.compress("empty.txt.zst", b"");
    folder.compress("half.txt.zst", b"0 0 0 7\n600 0 21 28\n");
    folder.compress("whole.txt.zst", b"0 0 0 7\n1180 0 21 28\n");
    fs::write(folder.0.path().join("zero.zst"), b"").unwrap();
    let told = |policy: &str, input: &str, value: Value, arguments: &[&str]| {
        let mut run = mapping(&folder, policy);
        run[input] = value;
        figures(&folder, &run, arguments);
        text(&folder.validate(arguments).stdout)
    };
    for (policy, input, value, why) in [
        ("mglru", "group_at_start", json!([]), "`group_at_start` lists no page"),
        ("mglru", "base_pages", json!([]), "`base_pages` lists no page"),
        ("mglru", "mapped_file", json!("empty.txt.zst"), "`mapped_file` has no line"),
        ("mglru", "mapped_file", json!("half.txt.zst"), "`mapped_file` ends with access 600 of 1200"),
        ("mglru", "agings", json!([]), "`agings` lists no aging"),
        (
            "mglru",
            "access_times",
            json!("at-once.u32.zst"),
            "`access_times` end at 0.000 s, but the run took 2.250 s",
        ),
    ] {
        let printed = told(policy, input, value.clone(), &[]);
        assert!(printed.contains(&format!("\nloop.{policy}.1: {why}")), "{why}: {printed}");
        let printed = told(policy, input, value, &["--without", input]);
        assert!(!printed.contains(why), "what is left out is in no doubt: {printed}");
    }
    for (input, value) in [
        ("group_at_start", json!(["text:34"])),
        ("mapped_file", json!("whole.txt.zst")),
        ("agings", json!([[3, 1], [1180, 1]])),
        ("access_times", json!("times.u32.zst")),
    ] {
        let printed = told("mglru", input, value, &["--verbose"]);
        assert!(!printed.contains("loop.mglru.1: `"), "{printed}");
        assert!(printed.contains("\ninputs: played ") && printed.contains(input), "{printed}");
    }
    let printed = told("mglru", "hz", json!(250), &[]);
    let absent = "not recorded, by runs: access_times of 1, agings of 1, base_pages of 1, group_at_start of 1, mapped_file of 1\n";
    assert!(printed.contains(absent), "{printed}");
    // The same of two lists, which go by flushed statistics.
    figures(&folder, &mapping(&folder, "classic"), &[]);
    fs::write(folder.0.path().join("flushes.json"), json!({ "loop.classic.1": [] }).to_string()).unwrap();
    let printed = text(&folder.validate(&[]).stdout);
    assert!(printed.contains("\nloop.classic.1: `flushes` lists no flush"), "{printed}");
    // A file without a byte holds not even nothing.
    let mut run = mapping(&folder, "mglru");
    for (name, why) in [
        ("zero.zst", "zero.zst: empty file: truncated or never written"),
        ("cut.zst", "cut.zst:2: the last line has no end"),
    ] {
        folder.compress("cut.zst", b"0 0 0 7\n1180 0 21 2");
        run["mapped_file"] = json!(name);
        folder.write(json!([run]));
        let output = folder.validate(&[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stdout).contains(why), "{}", text(&output.stdout));
    }
}

#[test]
fn a_field_that_is_there_twice_is_refused_with_its_line() {
    let folder = Folder::new();
    for (file, text) in [
        ("flushes.json", r#"{"loop.classic.1": [[700, 0, 0]], "loop.classic.1": []}"#.to_string()),
        ("ground-truth.json", {
            let truth = json!({ "runs": [Folder::run("mglru")] }).to_string();
            truth.replace(r#""pgscan_file":1"#, "\"pgscan_file\":1,\n\"pgscan_file\":2")
        }),
    ] {
        fs::write(folder.0.path().join(file), text).unwrap();
        let name = if file == "flushes.json" { "loop.classic.1" } else { "pgscan_file" };
        check_failure(
            &folder.validate(&[]),
            2,
            &[file, "is malformed", &format!("duplicate key `{name}` at line ")],
        );
        fs::remove_file(folder.0.path().join(file)).unwrap();
    }
}

/// What a run of the folder says in text and in data: the same of its inputs in both.
fn doubts(folder: &Folder, arguments: &[&str]) -> Vec<String> {
    let printed = text(&folder.validate(arguments).stdout);
    let data: Value =
        serde_json::from_str(&text(&folder.validate(&[&["--json"], arguments].concat()).stdout)).unwrap();
    let (run, doubts) = (data[0]["run"].as_str().unwrap(), data[0]["inputs"]["doubts"].as_array().unwrap());
    let doubts: Vec<String> = doubts.iter().map(|doubt| doubt.as_str().unwrap().to_string()).collect();
    for doubt in &doubts {
        assert!(printed.contains(&format!("\n{run}: {doubt}\n")), "{doubt}: {printed}");
    }
    assert_eq!(printed.matches(&format!("\n{run}: ")).count(), doubts.len(), "{printed}");
    doubts
}

/// Every list of a recording, whole and then without its end: each is well-formed. What else was counted tells.
#[test]
fn an_input_that_was_cut_short_and_is_still_well_formed_is_told_with_the_result() {
    let folder = Folder::new();
    let of = |policy: &str, field: &str, value: Value| {
        let mut run = mapping(&folder, policy);
        run["windows"] =
            json!([{ "op": 600, "t": 6.0 }, { "op": 900, "t": 7.5 }, { "op": ACCESSES, "t": 9.0 }]);
        run[field] = value;
        figures(&folder, &run, &[]);
        run
    };
    let flushes = |rows: &[[u64; 3]]| {
        let by_run = json!({ "loop.classic.1": rows }).to_string();
        fs::write(folder.0.path().join("flushes.json"), by_run).unwrap();
    };
    let check = |arguments: &[&str], why: Option<&str>| {
        let doubts = doubts(&folder, arguments);
        match why {
            Some(why) => assert!(matches!(&doubts[..], [doubt] if doubt.contains(why)), "{why}: {doubts:?}"),
            None => assert!(doubts.is_empty(), "{doubts:?}"),
        }
    };
    let whole = [[300, 0, 0], [599, 0, 0], [899, 0, 0]];

    // Flushes, by who read statistics after misses.
    of("classic", "swap", json!("none"));
    flushes(&whole);
    check(&[], None);
    flushes(&whole[..2]);
    let read = "`flushes` ends before access 600 of 1200, but the read of `memory.stat` at access 900, after 300 misses";
    check(&[], Some(read));
    check(&["--without", "flushes"], None);
    // By the worker's two seconds, from the first access on and to the end.
    let mut hits = of("classic", "misses_file", Value::Null);
    hits.as_object_mut().unwrap().remove("misses_file");
    folder.write(json!([hits]));
    flushes(&whole[1..]);
    check(&[], Some("`flushes` lists no flush from 0.000 s to 6.000 s"));
    hits["windows"] = json!([{ "op": 600, "t": 3.0 }, { "op": ACCESSES, "t": 9.0 }]);
    folder.write(json!([hits]));
    check(&[], None);
    flushes(&whole[1..2]);
    check(&[], Some("`flushes` lists no flush from 3.000 s to 9.000 s"));
    // By the flushes among the events, to the flush.
    let event = |kind: u32| (kind << 28).to_le_bytes();
    let events = |accesses: u64| {
        let accesses = (0..accesses).flat_map(|_| event(1));
        folder.compress("events.u32.zst", &accesses.chain(event(4)).chain(event(4)).collect::<Vec<u8>>());
    };
    events(ACCESSES);
    of("classic", "events_file", json!("events.u32.zst"));
    flushes(&whole[1..]);
    check(&[], None);
    flushes(&whole[1..2]);
    check(&[], Some("`flushes` lists 1 of the 2 flushes in `events_file`"));
    flushes(&[whole[1], whole[0]]);
    check_failure(
        &folder.validate(&[]),
        2,
        &["the flushes of loop.classic.1 go back from access 600 to 301"],
    );

    // Agings, by the youngest generation; where nobody has read it, by the end of the run.
    let agings = |count: u64| json!((0..count).map(|k| [k * 100, 0]).collect::<Vec<_>>());
    for (count, youngest, why) in [
        (12, Some(15), None),
        (11, Some(15), Some("`agings` lists 11 agings, but `lru_gen` counts 12")),
        (12, None, None),
        (11, None, Some("`agings` ends with access 1000 of 1200")),
    ] {
        let mut run = of("mglru", "agings", agings(count));
        if let Some(youngest) = youngest {
            run["lru_gen"] = json!([format!("{} 9 0 9", youngest - 1), format!("{youngest} 9 0 9")]);
            folder.write(json!([run]));
        }
        check(&[], why);
    }

    // Mapped pages, by the accesses that faulted: each third one here.
    let faulted: Vec<u8> = (0..ACCESSES).map(|k| if k.is_multiple_of(3) { 1 } else { 4 }).collect();
    folder.compress("misses/faults.u8.zst", &faulted);
    let mapped = |to: u64| {
        let words: Vec<String> = (0..to).step_by(3).map(|k| format!("{k} 0 0 0\n")).collect();
        folder.compress("maps.txt.zst", words.concat().as_bytes());
    };
    let mut run = of("mglru", "mapped_file", Value::Null);
    run["mapped_file"] = json!("maps.txt.zst");
    run["misses_file"] = json!("misses/faults.u8.zst");
    folder.write(json!([run]));
    mapped(ACCESSES);
    check(&[], None);
    mapped(ACCESSES - 3);
    check(
        &[],
        Some("`mapped_file` has no line for 1 accesses that faulted according to `misses_file`, first 1197"),
    );

    // The clock.
    let mut run = of("mglru", "swap", json!("none"));
    run["windows"] = json!([{ "op": 600, "t": 1.5 }]);
    folder.write(json!([run]));
    check(&[], Some("`windows` ends with access 600 of 1200: the simulated clock stops there"));

    // Answers by access: a miss map and events have a place for each, and a stream leaves no access out.
    of("mglru", "events_file", json!("events.u32.zst"));
    check(&[], None);
    events(ACCESSES - 1);
    check_failure(&folder.validate(&[]), 2, &["events.u32.zst: found 1199 accesses, expected 1200"]);
    let mut run = Folder::run("mglru");
    run["page_cache_stream"] = json!("stream.u32.zst");
    folder.compress("sequences/loop.u32.zst", &(0..1200_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
    run["objects"] = json!(["read:1200:/mnt/f"]);
    for (pages, why) in
        [(1200, None), (1199, Some("access 1199 adds page 1199, but the stream ends before it"))]
    {
        folder.compress("stream.u32.zst", &(0..pages).flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        folder.write(json!([run]));
        check(&[], why);
    }
}

#[test]
fn a_line_of_mapped_pages_that_makes_no_sense_is_named_by_its_number() {
    let folder = Folder::new();
    for (line, told) in [
        ("7 0 3", "found `7 0 3`, expected `ACCESS OBJECT FIRST LAST`"),
        ("7 0 3 x", "found `7 0 3 x`, expected `ACCESS OBJECT FIRST LAST`"),
        ("1200 0 3 4", "unknown access 1200"),
        ("7 1 3 4", "access 7 is to object 0, but maps pages of object 1"),
        ("7 0 9 8", "pages 9 to 8 are not a range of the object's 1000"),
        ("7 0 9 1000", "pages 9 to 1000 are not a range of the object's 1000"),
    ] {
        let mut run = mapping(&folder, "mglru");
        folder.compress("maps.txt.zst", format!("0 0 0 15\n{line}\n").as_bytes());
        run["mapped_file"] = json!("maps.txt.zst");
        folder.write(json!([run]));
        let output = folder.validate(&[]);
        assert_eq!(output.status.code(), Some(2));
        let printed = text(&output.stdout);
        assert!(
            printed.contains("maps.txt.zst:2: ") && printed.contains(told),
            "{told:?} is not in {printed}"
        );
    }
}

#[test]
fn the_first_difference_is_named_with_the_story_of_a_page_that_it_is_about() {
    let folder = Folder::new();
    folder.write(json!([Folder::run("mglru")]));
    let same = text(&folder.validate(&["--first-difference"]).stdout);
    assert!(!same.contains("same as recorded before"), "{same}");
    // The kernel had page 300 in memory the second time.
    let mut misses = [4; ACCESSES as usize];
    misses[700] = 0;
    folder.compress("misses/loop.u8.zst", &misses);
    let printed = text(&folder.validate(&["--first-difference"]).stdout);
    for part in [
        "loop.mglru.1: same as recorded before access 700, to page 300 of read:400:/mnt/f\n",
        "  this access misses in the simulator and hits in the kernel\n",
        "Page 300 of /job, mglru\n",
        "evicted from generation",
        "missing; read from its file for a task",
        "So: it is in memory, ",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    assert!(!text(&folder.validate(&[]).stdout).contains("same as recorded before"));
    let judged: Value =
        serde_json::from_str(&text(&folder.validate(&["--first-difference", "--json"]).stdout)).unwrap();
    let difference = &judged[0]["first_difference"];
    assert_eq!((&difference["access"], &difference["explained"]), (&json!(700), &json!(300)), "{judged}");
    assert_eq!(difference["missed"], json!([true, false]));
}

#[test]
fn a_page_that_came_on_one_side_alone_is_a_difference_before_anybody_needs_it() {
    let folder = Folder::new();
    let mut run = mapping(&folder, "mglru");
    // Each access begins, and the first brings in page 1 alone.
    let words = (0..ACCESSES).flat_map(|k| if k == 0 { vec![1_u32 << 28, 1] } else { vec![1 << 28] });
    folder.compress("events.u32.zst", &words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    run["events_file"] = json!("events.u32.zst");
    folder.write(json!([run]));
    let printed = text(&folder.validate(&["--first-difference"]).stdout);
    for part in [
        "loop.mglru.1: same as recorded before access 0, to page 0 of ram:1000:/mnt/x\n",
        "  the simulator alone brings in 0, 2 to 7\n",
        "Page 0 of /job, mglru\n",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
}
