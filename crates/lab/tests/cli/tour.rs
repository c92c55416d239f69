//! The tour: each publication with its claim, its rows beside ours, what holds, and what can't be said at that size.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, with_scenario};

/// Half the memory against all of it. What is published is right, too large, not decided by so few seeds (a bound at the mean of ours), and a level.
pub(crate) const CHAPTER: &str = r#"
title = "What memory is worth"
source = "https://example.org/letter"

[[side]]
name = "small"

[[side]]
name = "large"
set = { "memcg./web.memory.max" = "2MiB" }

[[side]]
name = "unused"
set = { "memcg./web.memory.max" = "no size" }

[[experiment]]
name = "reader"
title = "a reader and its limit"
scenario = "scenario.toml"

[[experiment.claim]]
row = "misses"
figures = ["task reader: misses"]
levels = { small = 2000, large = 1500 }

[[experiment.claim]]
row = "misses: direction"
figures = ["task reader: misses"]
holds = "large < small"

[[experiment.claim]]
row = "misses: at least"
figures = ["task reader: misses"]
holds = "large >= 0.1 * small"

[[experiment.claim]]
row = "accesses"
figures = ["task reader: accesses"]
levels = [5000]
holds = "small == 5000"

[[experiment.claim]]
row = "misses, exaggerated"
figures = ["task reader: misses"]
per = ["task reader: accesses"]
published = { change = -0.99 }
because = "no memory of this size does that"
shown_by = ["pageout compare scenario.toml --vary memcg./web.memory.max=1MiB,4MiB"]

[[experiment.claim]]
row = "time from the first access of the reader to its last one, waits included"
figures = ["task reader: runtime_ns"]
holds = "large < small"

[[experiment.claim]]
row = "of a side that is not run"
figures = ["task reader: misses"]
holds = "unused < small"
"#;

const LONG: &str = "time from the first access of the reader to its last one, waits included";

pub(crate) const TOUR: &str = r#"
[[stop]]
name = "first"
title = "A letter on memory"
author = "Somebody, 1 April 2020"
claim = "Twice the memory, a quarter of the misses less."
published_on = "a machine with little."
ours_on = "one with less."
chapter = "chapter.toml"
experiment = "reader"
sides = ["small", "large"]
seeds = 3
more = "pageout reproduce chapter.toml"

[[stop]]
name = "second"
title = "The same once more"
author = "Nobody, 2 April 2020"
claim = "It can be said <b>twice</b>."
published_on = "the same machine."
ours_on = "the same."
chapter = "chapter.toml"
experiment = "reader"
sides = ["small", "large"]
seeds = 1
more = "pageout reproduce chapter.toml --seeds 5"
[stop.picture]
title = "Levels"
x = "row"
rows = ["accesses"]
"#;

pub(crate) fn with_tour(tour: &str, chapter: &str) -> tempfile::TempDir {
    let directory = with_scenario(GOOD);
    std::fs::write(directory.path().join("chapter.toml"), chapter).unwrap();
    std::fs::write(directory.path().join("tour.toml"), tour).unwrap();
    directory
}

fn tour(directory: &Path, more: &[&str]) -> String {
    check_success(&pageout(directory, &[&["tour", "tour.toml"], more].concat()))
}

#[test]
fn each_stop_tells_claim_machine_rows_and_the_command_for_more_in_80_columns() {
    let directory = with_tour(TOUR, CHAPTER);
    let printed = tour(directory.path(), &[]);
    for part in [
        "1 of 2: A letter on memory",
        "Somebody, 1 April 2020",
        "https://example.org/letter",
        "Claimed: Twice the memory",
        "Published on: a machine with little.",
        "Ours: one with less. Means of seeds 1 to 3.",
        "NOT HELD",
        "Why, misses, exaggerated: no memory of this size does that",
        "pageout compare scenario.toml --vary memcg./web.memory.max=1MiB,4MiB",
        "More: pageout reproduce chapter.toml\n",
        "2 of 2: The same once more",
        "All in all: ",
    ] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let first = printed.split("2 of 2").next().unwrap();
    let row = |name: &str| first.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("misses  ").contains("-25%"), "rows of one figure are one line: {first}");
    assert_eq!(first.lines().filter(|line| line.starts_with("misses ")).count(), 1, "{first}");
    assert!(row("accesses").contains("5,000") && row("accesses").ends_with("held: = 5,000"), "{first}");
    assert!(row("time from").ends_with("held: < small"), "a long name goes on in the next line: {first}");
    assert!(!first.contains("of a side that is not run"), "{first}");
    assert!(
        printed.lines().all(|line| line.chars().count() <= 80 || line.trim().starts_with("pageout")),
        "{printed}"
    );
}

#[test]
fn what_the_runs_are_too_few_for_is_not_decided_and_does_not_count_as_held() {
    let directory = with_tour(TOUR, CHAPTER);
    let result: Value = serde_json::from_str(&tour(directory.path(), &["--json"])).unwrap();
    let verdict = |stop: usize, row: &str| {
        let lines = result["stops"][stop]["lines"].as_array().unwrap();
        lines.iter().find(|line| line["row"] == row).unwrap()["verdict"].as_str().unwrap().to_string()
    };
    assert_eq!(verdict(0, "misses"), "held");
    assert_eq!(verdict(0, "misses, exaggerated"), "not_held");
    for row in ["misses", "misses, exaggerated", LONG] {
        assert_eq!(verdict(1, row), "not_decided", "one seed has no interval: {row}");
    }
    assert_eq!(verdict(1, "accesses"), "held", "what is counted takes no interval");
    let tally = |of: &Value| ["held", "not_held", "not_decided"].map(|key| of[key].as_u64().unwrap());
    assert_eq!(tally(&result["stops"][0]), [3, 1, 0]);
    assert_eq!(tally(&result["stops"][1]), [1, 0, 3]);
    assert_eq!(tally(&result), [4, 1, 3]);
    let printed = tour(directory.path(), &[]);
    assert!(printed.contains("1 of 4 holds, 3 are not decided at this size."), "{printed}");
    assert!(
        printed.contains("All in all: 4 of 8 hold, 1 does not, 3 are not decided at this size."),
        "{printed}"
    );
}

#[test]
fn the_same_bytes_come_out_on_one_thread_and_on_two() {
    let directory = with_tour(TOUR, CHAPTER);
    for form in [&["--json"][..], &[]] {
        let run = |jobs| tour(directory.path(), &[form, &["--jobs", jobs]].concat());
        assert_eq!(run("1"), run("2"));
    }
    let page = |jobs, name: &str| {
        tour(directory.path(), &["--jobs", jobs, "--report", name]);
        std::fs::read(directory.path().join(name)).unwrap()
    };
    assert_eq!(page("1", "one.html"), page("2", "two.html"));
}

#[test]
fn json_has_every_row_of_the_experiment_with_every_value() {
    let directory = with_tour(TOUR, CHAPTER);
    let result: Value =
        serde_json::from_str(&tour(directory.path(), &["--json", "--only", "first"])).unwrap();
    assert_eq!(result["complete"], true);
    assert_eq!(result["stops"].as_array().unwrap().len(), 1);
    let stop = &result["stops"][0];
    assert_eq!(stop["machine"]["published"], "a machine with little.");
    assert_eq!(stop["source"], "https://example.org/letter");
    assert_eq!(stop["rows"].as_array().unwrap().len(), 6, "but for that of a side that is not run");
    assert_eq!(stop["rows"][1]["sides"][1]["values"].as_array().unwrap().len(), 3);
    let line = &stop["lines"][0];
    assert_eq!(line["published_change_percent"], -25.0);
    assert!(line["change_percent"].as_f64().unwrap() < 0.0);
}

#[test]
fn the_page_begins_with_the_claims_and_what_holds_of_them_and_loads_nothing() {
    let directory = with_tour(TOUR, CHAPTER);
    tour(directory.path(), &["--report", "page.html"]);
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    for part in [
        "<a href=\"#first\">A letter on memory</a>",
        "<section id=\"first\">",
        "<span class=\"held\">3 held</span><span class=\"not-held\">1 not held</span>",
        "<span class=\"not-decided\">3 not decided</span>",
        "It can be said &lt;b&gt;twice&lt;/b&gt;.",
        "<a href=\"https://example.org/letter\" rel=\"noreferrer\">",
        "misses: published",
        "pageout reproduce chapter.toml --seeds 5",
        "Why, misses, exaggerated: no memory",
    ] {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    assert_eq!(page.matches("data-chart=").count(), 1, "levels are a curve");
    let markup = page.split("<script type=\"application/json\"").next().unwrap();
    for loading in [" src=", "<iframe", "<object", "@import"] {
        assert!(!markup.contains(loading), "{loading}");
    }
}

#[test]
fn what_is_not_there_is_an_error_before_anything_runs() {
    let empty = tempfile::tempdir().unwrap();
    let shipped = pageout(empty.path(), &["tour", "--only", "mglrv"]);
    let stops = "mglru, page-cache-promotion, pghot, no-writeback, zswap-lru";
    check_failure(&shipped, 2, &["--only mglrv: unknown stop", "did you mean `mglru`?", stops]);
    check_failure(&pageout(empty.path(), &["tour", "none.toml"]), 2, &["cannot read none.toml"]);
    for (from, to, parts) in [
        ("seeds = 3", "seeds = 0", &["stop `first`", "1 to 1000"][..]),
        ("seeds = 3", "seed = 3", &["tour.toml: invalid tour", "unknown field `seed`"]),
        ("name = \"second\"", "name = \"first\"", &["duplicate [[stop]] `first`"]),
        ("\"large\"]", "\"larger\"]", &["stop `first`", "unknown side `larger`", "small, large"]),
        ("\"reader\"", "\"writer\"", &["no experiment `writer`"]),
        ("chapter = \"chapter.toml\"", "chapter = \"mglro\"", &["stop `first`", "did you mean `mglru`?"]),
        ("chapter = \"chapter.toml\"", "chapter = \"no.toml\"", &["cannot read chapter no.toml"]),
    ] {
        assert!(TOUR.contains(from), "{from}");
        let directory = with_tour(&TOUR.replacen(from, to, 1), CHAPTER);
        check_failure(&pageout(directory.path(), &["tour", "tour.toml"]), 2, parts);
    }
}

#[test]
fn an_interrupted_tour_has_the_stops_that_are_done_and_names_the_others() {
    let endless = TOUR.replacen("experiment = \"reader\"", "experiment = \"endless\"", 2);
    let endless = endless.replacen("experiment = \"endless\"", "experiment = \"reader\"", 1);
    let more = format!(
        "{}{}{}",
        CHAPTER,
        "[[experiment]]\nname = \"endless\"\ntitle = \"e\"\nscenario = \"endless.toml\"\n",
        "[[experiment.claim]]\nrow = \"misses\"\nfigures = [\"task reader: misses\"]\nholds = \"large < small\"\n"
    );
    let directory = with_tour(&endless, &more);
    let long = GOOD.replace("ops = 5000", "ops = 100000000000");
    std::fs::write(directory.path().join("endless.toml"), long).unwrap();
    let mut run = Command::new("env");
    run.args(["--default-signal=INT", &super::binary(), "tour", "tour.toml", "--report", "page.html"]);
    let mut run = run.current_dir(&directory).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("More: ") {
        line.clear();
        assert!(printed.read_line(&mut line).unwrap() > 0, "the first stop is printed while the second runs");
    }
    assert!(Command::new("kill").args(["-s", "INT", &run.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(rest.contains("interrupted by SIGINT after 6 of 8 runs. Not run: second."), "{rest}");
    assert!(rest.contains("All in all: 3 of 4 hold, 1 does not."), "{rest}");
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains("Not run: second."));
}
