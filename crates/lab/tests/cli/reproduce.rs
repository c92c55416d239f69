//! Published tables beside ours: which rows hold, which don't, and that none is hidden.

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, scenarios, text, with_scenario};

/// Half the memory against all of it; what is "published" of it is right in the first row, too large in the second and the
/// wrong way round in the third.
const CHAPTER: &str = r#"
title = "What memory is worth"
source = "https://example.org/"

[[side]]
name = "small"

[[side]]
name = "large"
set = { "memcg./web.memory.max" = "2MiB" }
note = "twice the memory"

[[experiment]]
name = "reader"
title = "a reader and its limit"
scenario = "scenario.toml"
scaled = { short = "short.toml" }

[[experiment.claim]]
row = "misses"
figures = ["task reader: misses"]
published = { change = -0.3 }

[[experiment.claim]]
row = "misses, exaggerated"
figures = ["task reader: misses"]
published = { change = -0.99 }
because = "no memory of this size does that"
shown_by = ["pageout compare scenario.toml --vary memcg./web.memory.max=1MiB,4MiB"]

[[experiment.claim]]
row = "misses, the wrong way"
figures = ["task reader: misses"]
published = { direction = "more" }

[[experiment.claim]]
row = "share of misses"
figures = ["task reader: misses"]
per = ["task reader: accesses"]
"#;

fn with_chapter(chapter: &str) -> tempfile::TempDir {
    let directory = with_scenario(GOOD);
    std::fs::write(directory.path().join("chapter.toml"), chapter).unwrap();
    let short = GOOD.replace("ops = 5000", "ops = 2000");
    std::fs::write(directory.path().join("short.toml"), short).unwrap();
    directory
}

fn json(arguments: &[&str]) -> Value {
    let directory = with_chapter(CHAPTER);
    let arguments: Vec<&str> =
        ["reproduce", "chapter.toml", "--json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
}

#[test]
fn each_row_is_shown_beside_what_was_published_whether_it_holds_or_not() {
    let directory = with_chapter(CHAPTER);
    let printed = check_success(&pageout(directory.path(), &["reproduce", "chapter.toml", "--seeds", "3"]));
    for part in [
        "What memory is worth",
        "seeds 1 to 3",
        "large: twice the memory",
        "a reader and its limit (scenario.toml)",
        "-30%",
        "held",
        "3 of 3",
        "not held: size",
        "0 of 3",
        "not held: sign",
        "misses, exaggerated, where it is not held: no memory of this size does that",
        "pageout compare scenario.toml --vary memcg./web.memory.max=1MiB,4MiB",
        "large: 1 of 3 rows held.",
    ] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let one = check_success(&pageout(directory.path(), &["reproduce", "chapter.toml", "--seeds", "1"]));
    assert!(one.contains("1 of 1") && !one.contains(" ± 0"), "one seed has no spread:\n{one}");
}

#[test]
fn json_has_every_value_and_verdict_and_does_not_depend_on_jobs() {
    let result = json(&["--seeds", "3", "--jobs", "1"]);
    assert_eq!(result, json(&["--seeds", "3", "--jobs", "2"]));
    assert_eq!(result["complete"], true);
    let rows = result["experiments"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let sides = |row: usize| rows[row]["sides"].as_array().unwrap();
    assert_eq!(sides(0)[1]["values"].as_array().unwrap().len(), 3);
    let holds: Vec<&Value> = (0..4).map(|row| &sides(row)[1]["holds"]).collect();
    assert_eq!(holds, [&Value::Bool(true), &Value::Bool(false), &Value::Bool(false), &Value::Null]);
    assert!(sides(0).iter().all(|side| side["side"] == "small" || side["side"] == "large"));
    let share = sides(3)[0]["mean"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.0, "{share}");
    let change = sides(0)[1]["change_percent"].as_f64().unwrap();
    let size = sides(0)[1]["size_by_the_published"].as_f64().unwrap();
    assert!((change / -30.0 - size).abs() < 1e-9);
}

#[test]
fn a_smaller_size_and_a_setting_change_what_is_run() {
    let mean = |arguments: &[&str]| {
        let result = json(arguments);
        result["experiments"][0]["rows"][0]["sides"][0]["mean"].as_f64().unwrap()
    };
    let full = mean(&["--seeds", "1"]);
    assert!(mean(&["--seeds", "1", "--scale", "short"]) < full);
    assert!(mean(&["--seeds", "1", "--set", "memcg./web.memory.max=3MiB"]) < full);
    assert_ne!(mean(&["--seeds", "1", "--seed", "7"]), full);
    assert_eq!(mean(&["--seeds", "1", "--experiment", "reader"]), full);
}

#[test]
fn an_experiment_may_set_keys_of_its_own_and_a_sides_come_last() {
    let set = CHAPTER.replace(
        "title = \"a reader and its limit\"",
        "title = \"a reader and its limit\"\nset = { \"memcg./web.memory.max\" = \"3MiB\" }",
    );
    let directory = with_chapter(&set);
    let run = || {
        let output = pageout(directory.path(), &["reproduce", "chapter.toml", "--seeds", "1", "--json"]);
        serde_json::from_str::<Value>(&check_success(&output)).unwrap()
    };
    let mean = |result: &Value, side: usize| {
        result["experiments"][0]["rows"][0]["sides"][side]["mean"].as_f64().unwrap()
    };
    let (set, plain) = (run(), json(&["--seeds", "1"]));
    assert!(mean(&set, 0) < mean(&plain, 0), "the base has the experiment's memory");
    assert_eq!(mean(&set, 1), mean(&plain, 1), "the other side has its own");
}

/// Rows that say what is to hold instead of what was published of a change.
const RELATIONS: &str = r#"
[[experiment.claim]]
row = "fewer misses"
figures = ["task reader: misses"]
levels = [4000, 3000]
holds = "large < small"

[[experiment.claim]]
row = "more misses"
figures = ["task reader: misses"]
levels = [4000]
holds = "large >= small"
because = "memory helps"
"#;

#[test]
fn a_row_may_say_what_is_to_hold_and_what_was_published_of_each_side() {
    let directory = with_chapter(&(CHAPTER.to_string() + RELATIONS));
    let run = |arguments: &[&str]| {
        let all = [&["reproduce", "chapter.toml", "--seeds", "2"], arguments].concat();
        check_success(&pageout(directory.path(), &all))
    };
    let printed = run(&[]);
    for part in [
        "fewer misses: to hold is large < small",
        "more misses: to hold is large >= small",
        "more misses, where it is not held: memory helps",
        "large: 2 of 5 rows held.",
    ] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let levels: Vec<&str> = printed.lines().filter(|line| line.contains("000")).collect();
    assert!(levels.iter().any(|line| line.contains("fewer misses") && line.contains("4,000")), "{printed}");
    assert!(levels.iter().any(|line| line.contains("large") && line.contains("3,000")), "{printed}");
    let result: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let rows = result["experiments"][0]["rows"].as_array().unwrap();
    let held = |row: usize| &rows[row]["sides"][1]["holds"];
    assert_eq!((held(4), held(5)), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(rows[5]["levels"], serde_json::json!([4000.0]));
    for (from, to, part) in [
        ("levels = [4000]", "levels = [1, 2, 3]", "3 levels"),
        ("large < small", "larger < small", "unknown side `larger`"),
        ("large < small", "large smaller", "holds"),
    ] {
        assert!(RELATIONS.contains(from));
        let directory = with_chapter(&(CHAPTER.to_string() + &RELATIONS.replacen(from, to, 1)));
        check_failure(&pageout(directory.path(), &["reproduce", "chapter.toml"]), 2, &[part]);
    }
}

#[test]
fn the_page_has_the_published_changes_beside_ours() {
    let directory = with_chapter(CHAPTER);
    let arguments = ["reproduce", "chapter.toml", "--seeds", "2", "--report", "page.html"];
    check_success(&pageout(directory.path(), &arguments));
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    for part in [
        "Reproduced: What memory is worth",
        "misses: published",
        "not held: size",
        "large: 1 of 3 rows held.",
    ] {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
}

#[test]
fn what_is_not_there_is_an_error_that_names_what_is() {
    let directory = with_chapter(CHAPTER);
    let run = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["reproduce"].iter().chain(arguments).copied().collect();
        pageout(directory.path(), &arguments)
    };
    check_failure(
        &run(&["mglro"]),
        2,
        &["unknown chapter: found `mglro`", "did you mean `mglru`?", "--list"],
    );
    check_failure(&run(&["none.toml"]), 2, &["cannot read chapter none.toml"]);
    check_failure(&run(&[]), 2, &["CHAPTER"]);
    check_failure(
        &run(&["chapter.toml", "--scale", "tiny"]),
        2,
        &["--scale tiny", "experiment `reader` has short"],
    );
    check_failure(
        &run(&["chapter.toml", "--experiment", "writer"]),
        2,
        &["no experiment `writer`", "reader"],
    );
    check_failure(&run(&["chapter.toml", "--set", "a.b=1"]), 2, &["unknown key `a`", "--set a.b=1"]);
    check_failure(
        &run(&["scenario.toml"]),
        2,
        &["scenario.toml: invalid chapter", "unknown field `question`"],
    );
    let with = |from: &str, to: &str| {
        assert!(CHAPTER.contains(from));
        let directory = with_chapter(&CHAPTER.replacen(from, to, 1));
        pageout(directory.path(), &["reproduce", "chapter.toml", "--seeds", "1"])
    };
    let figure = with("task reader: misses", "task reader: mises");
    check_failure(
        &figure,
        2,
        &["row `misses`: no figure `task reader: mises` in the runs", "did you mean `task reader: misses`?"],
    );
    let side = with("memcg./web.memory.max", "memcg./web.memory.mxa");
    check_failure(&side, 2, &["unknown key `memory.mxa`", "[[side]] set"]);
    check_failure(&with("scenario.toml", "nowhere.toml"), 2, &["cannot read scenario nowhere.toml"]);
}

#[test]
fn a_side_whose_runs_fail_is_shown_as_failed_and_holds_nothing() {
    let directory = with_chapter(&CHAPTER.replace("[[side]]\nname = \"large\"", "[[side]]\nname = \"bad\"\nset = { task.reader.object.0.channel = \"anonymous\" }\n\n[[side]]\nname = \"large\""));
    let output = pageout(directory.path(), &["reproduce", "chapter.toml", "--seeds", "2"]);
    assert_eq!(output.status.code(), Some(1));
    let (printed, stderr) = (text(&output.stdout), text(&output.stderr));
    for part in ["failed", "bad: 0 of 3 rows held", "large: 1 of 3 rows held"] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    assert!(stderr.contains("2 of 6 runs failed") && stderr.contains("reader, bad: seed 1"), "{stderr}");
}

#[test]
fn the_shipped_chapters_are_listed_with_their_experiments_and_sizes() {
    let printed = check_success(&pageout(&scenarios(), &["reproduce", "--list"]));
    let live = ["mglru", "no-writeback", "zswap-lru", "page-cache-promotion", "pghot"]
        .map(|name| format!("{name} --live"));
    let live = live.each_ref().map(String::as_str);
    for part in
        ["mglru", "Multigenerational LRU Framework", "fio", "browser", "full, small"].into_iter().chain(live)
    {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let list: Value =
        serde_json::from_str(&check_success(&pageout(&scenarios(), &["reproduce", "--list", "--json"])))
            .unwrap();
    assert!(list[0]["experiments"][0]["rows"].as_u64().unwrap() > 0);
    let live = list.as_array().unwrap().iter().filter(|chapter| chapter["live"] == true).count();
    assert_eq!(live, 5, "chapters of --live");
}

/// A chapter that real memory can run.
const LIVE: &str = r#"
title = "What memory is worth, on real memory"
source = "https://example.org/"

[[side]]
name = "small"

[[side]]
name = "large"
set = { "memcg./web.memory.max" = "8MiB" }

[[experiment]]
name = "reader"
title = "a reader and its limit"
scenario = "live.toml"

[[experiment.claim]]
row = "accesses"
figures = ["task reader: accesses"]
holds = "large == small"

[[experiment.claim]]
row = "pages scanned"
figures = ["memcg /web: pgscan"]
holds = "large < 0.5 * small"
"#;

const LIVE_SCENARIO: &str = r#"
[machine]
memory = "32MiB"
[[memcg]]
path = "/web"
memory.max = "4MiB"
[[task]]
name = "reader"
memcg = "/web"
[[task.object]]
channel = "file"
size = "8MiB"
advice = "random"
workload = { pattern = "zipf", alpha = 0.8, ops = 6_000 }
"#;

fn live(chapter: &str, scenario: &str, arguments: &[&str]) -> std::process::Output {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("chapter.toml"), chapter).unwrap();
    std::fs::write(directory.path().join("live.toml"), scenario).unwrap();
    let fixed = ["reproduce", "chapter.toml", "--live", "--folder", ".", "--rounds", "5"];
    let arguments: Vec<&str> = fixed.iter().chain(arguments).copied().collect();
    let output = pageout(directory.path(), &arguments);
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 2, "files of a live run stay");
    output
}

#[test]
#[cfg(target_os = "linux")]
fn live_rows_stand_beside_simulated_ones_with_the_verdict() {
    let text = check_success(&live(LIVE, LIVE_SCENARIO, &[]));
    for part in [
        "simulated",
        "live",
        "(min to max)",
        "6,000",
        "(6,000 to 6,000)",
        "held, 5 of 5",
        "to hold is large == small",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let json = check_success(&live(LIVE, LIVE_SCENARIO, &["--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["experiments"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["holds_live"] == true && row["holds_simulated"] == true), "{rows:?}");
    assert_eq!(json["not_held"], serde_json::json!([]));
}

#[test]
#[cfg(target_os = "linux")]
fn live_experiments_have_their_own_seeds() {
    let (_, second) = LIVE.split_at(LIVE.find("[[experiment]]").unwrap());
    let second = second.replace("name = \"reader\"", "name = \"second\"\nset = { seed = 7 }");
    let both = format!("{LIVE}\n{second}");
    let text = check_success(&live(&both, LIVE_SCENARIO, &[]));
    assert!(text.contains("live.toml, from seed 1)") && text.contains("live.toml, from seed 7)"), "{text}");
    let json: Value = serde_json::from_str(&check_success(&live(&both, LIVE_SCENARIO, &["--json"]))).unwrap();
    let seeds: Vec<Option<u64>> =
        json["experiments"].as_array().unwrap().iter().map(|of| of["seed"].as_u64()).collect();
    assert_eq!(seeds, [Some(1), Some(7)]);
}

#[test]
#[cfg(target_os = "linux")]
fn live_relation_that_does_not_hold_ends_with_4() {
    let output = live(&LIVE.replace("large == small", "large > small"), LIVE_SCENARIO, &[]);
    let (printed, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(
        told.contains("not held: reader, accesses, simulated; reader, accesses, live (0 of 5 rounds)"),
        "{told}"
    );
    assert!(printed.contains("to hold is large > small"), "the table is printed nevertheless: {printed}");
}

#[test]
#[cfg(target_os = "linux")]
fn live_relation_of_few_rounds_is_undecided() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("chapter.toml"), LIVE).unwrap();
    std::fs::write(directory.path().join("live.toml"), LIVE_SCENARIO).unwrap();
    let arguments = ["reproduce", "chapter.toml", "--live", "--folder", ".", "--rounds", "2"];
    let printed = check_success(&pageout(directory.path(), &arguments));
    assert!(printed.contains("undecided, 2 of 2") && !printed.contains("held, "), "{printed}");
}

#[test]
#[cfg(target_os = "linux")]
fn live_run_refuses_what_it_lacks_and_what_it_would_ignore() {
    let thinks = LIVE_SCENARIO.replace("memcg = \"/web\"", "memcg = \"/web\"\nthink_time = \"1us\"");
    check_failure(&live(LIVE, &thinks, &[]), 2, &["task[0].think_time", "the live machine does not have it"]);
    check_failure(&live(LIVE, LIVE_SCENARIO, &["--set", "seed=2"]), 2, &["--set", "--live"]);
    check_failure(&live(LIVE, LIVE_SCENARIO, &["--scale", "small"]), 2, &["--scale", "--live"]);
    let nowhere =
        pageout(std::path::Path::new("."), &["reproduce", "mglru", "--live", "--folder", "/nowhere"]);
    check_failure(&nowhere, 2, &["/nowhere"]);
}
