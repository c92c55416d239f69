//! `pageout coverletter`: what a change helps and hurts over several scenarios, as plain text that a mailing list takes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::results::json;
use super::{GOOD, binary, check_failure, check_success, pageout, text, with_scenario};

/// Twice the memory.
const MORE: &str = "memcg./web.memory.max=2MiB";

/// A folder with a scenario that more memory helps, one that has it, one whose cgroup has another name, and one that does not read much.
fn folder() -> tempfile::TempDir {
    let directory = with_scenario(GOOD);
    let write = |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
    write("more.toml", GOOD.replace("1MiB", "2MiB"));
    write("other.toml", GOOD.replace("/web", "/other"));
    write("small.toml", GOOD.replace("4MiB", "512KiB"));
    directory
}

fn letter(directory: &Path, more: &[&str]) -> std::process::Output {
    let asked = ["coverletter", "--quiet", "--repeat", "3", "--switch", MORE];
    pageout(directory, &[&asked[..], more].concat())
}

#[test]
fn a_letter_says_what_helps_and_what_is_the_same_and_what_was_not_run_in_72_columns() {
    let directory = folder();
    let printed = check_success(&letter(directory.path(), &["."]));
    assert!(printed.lines().all(|line| line.chars().count() <= 72), "{printed}");
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "memcg./web.memory.max=2MiB, over 2 scenarios",
        "patched the same with memcg./web.memory.max=2MiB",
        "3 of each, seeds from 1 on, in pairs of the same seed; 12 runs",
        "would exclude 0 by chance",
        "base patched scenario accesses a second",
        "the same in every run: small",
        "Not run: 2 scenarios It already has the new value: more The change has no effect:",
        "2 scenarios compared; 1 not run.",
    ] {
        assert!(words.contains(said), "{said} in:\n{printed}");
    }
    let read = printed.lines().find(|line| line.starts_with("  pages read")).unwrap();
    assert!(read.contains("(-") && read.ends_with("* helps"), "{read}");
    let again = check_success(&letter(directory.path(), &[".", "--jobs", "1"]));
    assert_eq!(printed, again, "whatever runs first");
}

#[test]
fn rows_are_means_of_runs_in_pairs_and_their_data_has_every_value() {
    let directory = folder();
    let asked = ["coverletter", "--quiet", "--repeat", "2", "--switch", MORE, "scenario.toml"];
    let found = json(directory.path(), &asked);
    let row = |figure: &str| {
        let mut rows = found["rows"].as_array().unwrap().iter();
        rows.find(|row| row["figure"] == figure).unwrap().clone()
    };
    let runs = |setting: &[&str]| {
        let run = |seed: &str| {
            let run =
                json(directory.path(), &[&["run", "scenario.toml", "--seed", seed][..], setting].concat());
            run["devices"][0]["pages_read"].as_f64().unwrap()
        };
        [run("1"), run("2")]
    };
    let (base, patched) = (runs(&[]), runs(&["--set", MORE]));
    let read = row("pages_read");
    assert_eq!(read["base_values"], serde_json::json!(base));
    assert_eq!(read["patched_values"], serde_json::json!(patched));
    assert_eq!(read["base"].as_f64().unwrap(), (base[0] + base[1]) / 2.0);
    let percent = (patched[0] + patched[1]) / (base[0] + base[1]) * 100.0 - 100.0;
    assert!((read["difference_percent"].as_f64().unwrap() - percent).abs() < 1e-3, "{read}");
    assert_eq!((&found["complete"], &found["seeds_at_most"]), (&Value::Bool(true), &2.into()));
    let csv = [&asked[..], &["--format", "csv", "--figure", "kind,scenario,figure,says"]].concat();
    let csv = check_success(&pageout(directory.path(), &csv));
    assert!(csv.contains("\nfigure,scenario,accesses_per_s,helps\n"), "{csv}");
}

#[test]
fn a_side_that_ends_out_of_memory_is_a_row_and_another_exit_code_and_the_others_are_compared() {
    let directory = folder();
    let heap = GOOD.replace("\"file\"", "\"anonymous\"").replace("1MiB", "8MiB");
    fs::write(directory.path().join("heap.toml"), &heap).unwrap();
    let switch = ["coverletter", "--quiet", "--repeat", "2", "--switch", "memcg./web.memory.max=1MiB"];
    let paths = ["heap.toml", "more.toml"];
    let output = pageout(directory.path(), &[&switch[..], &paths].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "heap runs that fail 0 of 2 2 of 2 hurts patched: task `reader` at access ",
        "more accesses a second",
        "2 scenarios",
    ] {
        assert!(words.contains(said), "{said} in:\n{printed}");
    }
    assert!(printed.trim_end().ends_with("1 scenario compared; 1 failed."), "{printed}");
    assert!(text(&output.stderr).contains("heap, patched: "), "{}", text(&output.stderr));
    // A scenario that knows it is no surprise.
    let known = heap.replace("8MiB", "1MiB")
        + "[[variant]]\nname = \"old\"\nfails = \"out of memory\"\n[[variant]]\nname = \"new\"\nset = { memcg.0.memory.max = \"8MiB\" }\n";
    fs::write(directory.path().join("heap.toml"), known).unwrap();
    let helps =
        ["coverletter", "--quiet", "--repeat", "2", "--switch", "memcg./web.memory.max=8MiB", "heap.toml"];
    let printed = check_success(&pageout(directory.path(), &helps));
    assert!(printed.contains("2 of 2     0 of 2") && printed.contains("helps"), "{printed}");
}

#[test]
fn a_file_that_can_not_be_read_is_named_and_the_others_are_compared() {
    let directory = folder();
    fs::write(directory.path().join("bad.toml"), GOOD.replace("ops =", "opps =")).unwrap();
    let output = letter(directory.path(), &["bad.toml", "scenario.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("pages read") && printed.contains("Not read: unknown key `opps`"), "{printed}");
    assert!(text(&output.stderr).contains("bad: "), "{}", text(&output.stderr));
}

#[test]
fn switches_are_what_ablate_calls_them_and_have_one_value() {
    let directory = folder();
    let asked = |switch: &str| {
        pageout(
            directory.path(),
            &["coverletter", "--quiet", "--repeat", "2", "--switch", switch, "scenario.toml"],
        )
    };
    let named = ["reclaim.force_active_anon=true", "kernel.reclaim.force_active_anon=true"].map(|name| {
        let printed = check_success(&asked(name));
        assert!(printed.contains("the same in every run: scenario"), "{printed}");
        printed
    });
    assert_eq!(named[0], named[1]);
    check_failure(&asked("reclaim.force_active_anon"), 2, &["missing value", "allowed: true, false"]);
    check_failure(
        &asked("reclaim.force_active_anon=false"),
        2,
        &["nothing to compare: every scenario already has"],
    );
    check_failure(
        &asked("reclaim.force_active_annon=true"),
        2,
        &["did you mean `reclaim.force_active_anon`?"],
    );
    check_failure(&asked("reclaim.stat_flush=6.1,6.8"), 2, &["found 2 values", "expected one"]);
    check_failure(&asked("lru"), 2, &["a group of switches"]);
    check_failure(&asked("memcg./none.memory.max=1MiB"), 2, &["/none"]);
    check_failure(&pageout(directory.path(), &["coverletter", "scenario.toml"]), 2, &["--switch"]);
    check_failure(&letter(directory.path(), &["none.toml"]), 2, &["none.toml"]);
    let one = ["coverletter", "--switch", MORE, "--repeat", "1", "scenario.toml"];
    check_failure(&pageout(directory.path(), &one), 2, &["--repeat", "auto", "one seed does not show noise"]);
}

#[test]
fn two_builds_run_the_same_scenarios_and_equal_ones_have_equal_figures() {
    let directory = folder();
    let against =
        ["coverletter", "--quiet", "--repeat", "2", "--against", &binary(), "scenario.toml", "small.toml"];
    let printed = check_success(&pageout(directory.path(), &against));
    for said in [
        "Two builds of pageout, over 2 scenarios",
        "by another build, pageout",
        "the same in every run: scenario, small",
    ] {
        assert!(
            printed.split_whitespace().collect::<Vec<_>>().join(" ").contains(said),
            "{said} in:\n{printed}"
        );
    }
    let changed = check_success(&pageout(directory.path(), &[&against[..], &["--switch", MORE]].concat()));
    let alone = ["coverletter", "--quiet", "--repeat", "2", "--switch", MORE, "scenario.toml", "small.toml"];
    let alone = check_success(&pageout(directory.path(), &alone));
    let rows = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.ends_with("helps")).map(str::to_string).collect()
    };
    assert_eq!(rows(&changed), rows(&alone), "a process tells what a run here does");
}

#[cfg(unix)]
#[test]
fn a_build_whose_json_has_another_form_and_what_is_no_build_are_refused() {
    use std::os::unix::fs::PermissionsExt;

    let directory = folder();
    let against = |script: &str| {
        let path = directory.path().join("other");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        pageout(directory.path(), &["coverletter", "--against", "./other", "scenario.toml"])
    };
    let version = "if [ \"$1\" = --version ]; then echo pageout 0.0.9; exit; fi";
    let newer = against(&format!("{version}; echo '{{\"format_version\": 2, \"accesses\": 1}}'"));
    check_failure(&newer, 2, &["--against ./other", "pageout 0.0.9", "format_version 2", "expected 1"]);
    check_failure(&against(&format!("{version}; echo oops >&2; exit 2")), 2, &["format_version none"]);
    check_failure(&against("echo something else"), 2, &["not a build of pageout"]);
    let none = ["coverletter", "--against", "./none", "scenario.toml"];
    check_failure(&pageout(directory.path(), &none), 2, &["--against ./none"]);
}

#[test]
fn a_fast_letter_leaves_out_what_takes_long_and_names_it() {
    let directory = folder();
    fs::write(directory.path().join("long.toml"), GOOD.replace("ops = 5000", "ops = 10000000000")).unwrap();
    let fast = ["coverletter", "--quiet", "--fast", "--switch", MORE, "scenario.toml", "long.toml"];
    let printed = check_success(&pageout(directory.path(), &fast));
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "3 of each",
        "within some five minutes on two CPUs: 30,000 accesses",
        "Too long for --fast: long",
        "1 not run.",
    ] {
        assert!(words.contains(said), "{said} in:\n{printed}");
    }
}

#[test]
fn runs_are_repeated_until_intervals_are_narrow_or_there_are_enough_and_wide_ones_are_named() {
    let directory = folder();
    let auto = |file: &str| {
        let asked = ["coverletter", "--quiet", "--repeat", "auto:6", "--switch", MORE, file];
        check_success(&pageout(directory.path(), &asked))
    };
    let printed = auto("scenario.toml");
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in ["under 1 %, 6 at most", "12 runs", "Not under 1 % with 6 seeds at most: scenario, 6 seeds: "]
    {
        assert!(words.contains(said), "{said} in:\n{printed}");
    }
    assert!(auto("small.toml").contains("Each interval is under 1 %"), "what no seed changes is narrow");
}

#[test]
fn a_fast_letter_that_has_room_for_nothing_says_so() {
    let directory = folder();
    fs::write(directory.path().join("long.toml"), GOOD.replace("ops = 5000", "ops = 10000000000")).unwrap();
    let fast = ["coverletter", "--quiet", "--fast", "--switch", MORE, "long.toml"];
    check_failure(
        &pageout(directory.path(), &fast),
        2,
        &["no scenario is short enough for --fast", "3 seeds"],
    );
}
