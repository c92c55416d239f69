//! `--report`: a page is one file that needs nothing else, says what the terminal says, and lets no name in it become anything but text.

use std::fs;
use std::path::Path;

use super::{check_failure, check_success, pageout, scenarios, text, with_scenario};

/// Runs `pageout` with `--report`, and returns the page.
#[track_caller]
fn page(directory: &Path, arguments: &[&str]) -> String {
    let arguments: Vec<&str> = arguments.iter().chain(&["--report", "page.html"]).copied().collect();
    let output = pageout(directory, &arguments);
    let printed = check_success(&output);
    assert!(!printed.is_empty(), "the page is made beside what is printed");
    assert!(text(&output.stderr).contains("report written to page.html"));
    let page = fs::read_to_string(directory.join("page.html")).unwrap();
    check_page(&page);
    page
}

/// Whole, by itself, and with nothing in it that would load anything.
#[track_caller]
fn check_page(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let (markup, scripts) = page.split_once("<script type=\"application/json\"").unwrap();
    let markup = &markup[markup.find("</style>").unwrap()..];
    for loading in [" src=", "url(", "@import", "<iframe", "<object", "http:", "https:"] {
        assert!(!markup.contains(loading), "{loading}");
    }
    assert_eq!(page.matches("<script").count(), 3, "the data, the library, our own");
    assert!(page.contains("default-src 'none'") && scripts.contains("Copyright (c) 2022 Leon Sorokin"));
    let (data, _) = scripts.split_once('>').unwrap().1.split_once("</script>").unwrap();
    let charts: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(page.matches("data-chart=").count(), charts.as_array().unwrap().len());
}

const ABLATE: [&str; 6] = ["ablate", "scenario.toml", "--switch", "balance", "--repeat", "2"];

/// A group under pressure by two kinds of memory.
const MIXED: &str = r#"question = "Who <b>waits</b>?"
[[memcg]]
path = "/web"
memory.max = "2MiB"
[[swap]]
size = "64MiB"
kind = "disk"
[[task]]
name = "reader"
memcg = "/web"
[[task.object]]
channel = "file"
size = "4MiB"
workload = { pattern = "zipf", ops = 3000 }
[[task.object]]
channel = "anonymous"
size = "3MiB"
workload = { pattern = "zipf", ops = 3000 }
"#;

#[test]
fn every_command_with_a_page_writes_one_that_stands_by_itself() {
    let directory = with_scenario(MIXED);
    let of_run = page(directory.path(), &["run", "scenario.toml"]);
    for part in [
        "Who &lt;b&gt;waits&lt;/b&gt;?",
        "reader waited longest",
        "What tasks waited for",
        "What memory holds",
        "Memory pressure",
        "Refaults a second",
        "pgscan",
        "pattern = &quot;zipf&quot;",
    ] {
        assert!(of_run.contains(part), "{part}");
    }
    let vary =
        ["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB,4MiB", "--repeat", "2"];
    let of_compare = page(directory.path(), &vary);
    assert!(of_compare.contains("2MiB against 1MiB") && of_compare.matches("class=\"bars\"").count() == 2);
    let of_ablate = page(directory.path(), &ABLATE);
    assert!(of_ablate.contains("Effects of the mechanisms of classic@6.12"));
    let trace: Vec<u8> = (0..20_000u32).flat_map(|at| (at * 7919 % 900).to_le_bytes()).collect();
    fs::write(directory.path().join("a.u32"), trace).unwrap();
    let of_replay = page(directory.path(), &["replay", "a.u32", "--memory", "10%,50%,90%"]);
    assert!(
        of_replay.contains("Miss ratio over memory")
            && of_replay.contains("How much memory does a.u32 want?")
    );
}

#[test]
fn the_page_of_a_trace_says_who_waited_when_and_why() {
    let trace =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth/ftrace/ft-global.classic.t.txt.zst");
    let directory = tempfile::tempdir().unwrap();
    let page = page(directory.path(), &["vmscan-report", trace.to_str().unwrap()]);
    for part in [
        "Who: wl-160 was stalled longest, 91.4 ms in 34 calls of reclaim (0.78% of the time), because the machine was short of \
         memory. No other task was stalled.",
        "When: the longest call lasted 34.6 ms, from 210.022524 s (wl-160): 33.8 ms probably off the CPU; freed 34 of 34, priority 9. \
         Half of all calls took less than 807 us. Half of the stall time is between 210.02 and 210.75 s.",
        "Why: 6 of the longest calls did little work for their time and were probably off the CPU for 59.8 ms, and pages were easy to find: \
         98.66% of 1,572 pages scanned were freed.",
        "Next: mm_filemap_add_to_page_cache and mm_filemap_delete_from_page_cache would show the freed pages that are needed again",
        "<td class=\"n\">1,572</td>",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_page_changes_no_figure_of_its_run() {
    let directory = with_scenario(MIXED);
    let alone = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]));
    let with_page = ["run", "scenario.toml", "--json", "--report", "page.html", "--timeline", "run.csv"];
    assert_eq!(check_success(&pageout(directory.path(), &with_page)), alone);
    assert!(fs::read_to_string(directory.path().join("run.csv")).unwrap().lines().count() > 2);
}

#[test]
fn the_same_result_is_the_same_page() {
    let directory = with_scenario(MIXED);
    assert_eq!(page(directory.path(), &ABLATE), page(directory.path(), &ABLATE));
}

#[test]
fn a_name_in_a_trace_stays_a_name() {
    let evil = "</script><i>";
    let mut trace = String::new();
    for (at, event) in ["begin: order=0 gfp_flags=x", "end: nr_reclaimed=1"].into_iter().enumerate() {
        trace += &format!(" {evil}-7 [000] .....  1.00000{at}: mm_vmscan_direct_reclaim_{event}\n");
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("trace.txt"), trace).unwrap();
    let page = page(directory.path(), &["vmscan-report", "trace.txt"]);
    assert!(page.contains("&lt;/script&gt;&lt;i&gt;-7") && page.contains("\\u003c/script\\u003e"));
    assert!(!page.contains("<i>"));
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_or_after_the_work() {
    let directory = with_scenario(MIXED);
    let report = |name: &str| pageout(directory.path(), &["run", "scenario.toml", "--report", name]);
    check_failure(
        &report("scenario.toml"),
        2,
        &["--report: unknown suffix: found `scenario.toml`, expected .html"],
    );
    check_failure(&report("nowhere/page.html"), 3, &["no such directory: `nowhere`"]);
    let before = fs::read_to_string(directory.path().join("scenario.toml")).unwrap();
    assert_eq!(before, MIXED);
    #[cfg(target_os = "linux")]
    {
        let output = report("/dev/full");
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("cannot write the result"));
    }
}

#[test]
fn a_page_does_not_grow_with_the_trace() {
    let mut trace = String::new();
    for call in 0..30_000u64 {
        for (at, event) in [(0, "begin: order=0 gfp_flags=x"), (400, "end: nr_reclaimed=1")] {
            let us = call * 1000 + at;
            let (s, us) = (us / 1_000_000, us % 1_000_000);
            trace +=
                &format!(" cc1-{} [000] .....  {s}.{us:06}: mm_vmscan_direct_reclaim_{event}\n", call % 500);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("trace.txt"), trace).unwrap();
    let page = page(directory.path(), &["vmscan-report", "trace.txt"]);
    assert!(page.len() < 400_000, "{} bytes of 60,000 events", page.len());
}

#[test]
fn a_shipped_scenario_has_its_page() {
    let scenario = scenarios().join("scan-and-hot-set.toml");
    let directory = tempfile::tempdir().unwrap();
    let page = page(directory.path(), &["run", scenario.to_str().unwrap()]);
    assert!(page.contains("Does a hot set survive a scan four times the size of memory?"));
}

#[test]
fn a_page_tells_first_who_was_killed_and_why() {
    let directory = crate::with_scenario(
        "[machine]\noom = \"kill\"\n[[memcg]]\npath = \"/job\"\nmemory.max = \"8MiB\"\n\
         [[task]]\nname = \"hog\"\nmemcg = \"/job\"\n\
         object = [{ channel = \"anonymous\", size = \"16MiB\", workload = { pattern = \"fill\" } }]\n",
    );
    let page = page(directory.path(), &["run", "scenario.toml"]);
    let killed = page.find("killed hog of /job: /job at its limit; hog ran out of memory").expect(&page);
    let waited = page.find("waited longest").or(page.find("No task waited")).expect(&page);
    assert!(killed < waited, "first of all");
}

/// A machine that is short of memory as a whole, and writes.
const SHORT: &str = r#"
[machine]
cpus = 2
memory = "64MiB"
[[device]]
name = "nvme"
[[swap]]
size = "64MiB"
kind = "disk"
[[event]]
at = "500ms"
write = "/sys/fs/cgroup/memory.reclaim"
value = "1M"
[[task]]
name = "reader"
[[task.object]]
channel = "file"
size = "128MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 60000 }
[[task]]
name = "writer"
[[task.object]]
channel = "file"
size = "16MiB"
workload = { pattern = "uniform", ops = 8000, write_ratio = 0.5 }
"#;

#[test]
fn the_page_of_a_run_shows_who_waited_when_and_why_on_one_axis_of_time() {
    let directory = with_scenario(SHORT);
    let page = page(directory.path(), &["run", "scenario.toml"]);
    for part in [
        "was stalled longest",
        "When: the longest call lasted",
        "kswapd, for which no task waits",
        "Who waited, and when",
        "What happened to memory, and when",
        "kswapd woken",
        "Free memory and watermarks",
        "Dirty pages",
        "Pages freed per second, by task",
        "on request (memory.reclaim)",
        "Memory pressure",
        "I/O pressure",
        "Devices at work",
        "What devices move a second",
        "How long a call takes",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let data = page.split_once("id=\"charts\">").unwrap().1.split_once("</script>").unwrap().0;
    let charts: Vec<serde_json::Value> = serde_json::from_str(data).unwrap();
    let marks = charts.iter().find(|chart| chart["title"] == "Free memory and watermarks").unwrap();
    let names: Vec<&str> =
        marks["lines"].as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["free", "high", "low", "min"]);
    let level = |at: usize, row: usize| marks["lines"][at]["ys"][row].as_f64().unwrap();
    assert!(level(1, 0) > level(2, 0) && level(2, 0) > level(3, 0) && level(3, 0) > 0.0);
    // All that has a time is on the same axis.
    let timed = charts.iter().filter(|chart| chart["x"]["unit"] == "s").count();
    assert!(timed >= 10, "{timed} of {} charts over time", charts.len());
}

#[test]
fn the_page_of_a_run_shows_what_zswap_holds_and_its_limits() {
    let directory = with_scenario(
        r#"
[machine]
memory = "64MiB"
[kernel]
zswap.enabled = true
[[device]]
name = "disk"
preset = "nvme"
[[swap]]
size = "128MiB"
device = "disk"
[[task]]
name = "anonymous"
[[task.object]]
channel = "anonymous"
size = "80MiB"
workload = { pattern = "uniform", ops = 60000, write_ratio = 0.5 }
"#,
    );
    let page = page(directory.path(), &["run", "scenario.toml"]);
    let of_zswap = ["What zswap holds", "accept threshold", "pages stored in it", "loaded (zswpin)"];
    for part in of_zswap {
        assert!(page.contains(part), "{part}");
    }
    let without = with_scenario(SHORT);
    let page = self::page(without.path(), &["run", "scenario.toml"]);
    assert!(of_zswap.iter().all(|part| !page.contains(part)), "a machine without zswap");
}

#[test]
fn the_page_of_a_run_tells_of_writers_that_slept_for_dirty_pages() {
    let directory = with_scenario(
        r#"
[machine]
memory = "64MiB"
[[device]]
name = "disk"
preset = "hdd"
[[task]]
name = "writer"
[[task.object]]
channel = "file"
size = "48MiB"
workload = { pattern = "sequential", write_ratio = 1.0 }
"#,
    );
    let page = page(directory.path(), &["run", "scenario.toml"]);
    for part in [
        "asleep for dirty pages",
        "Writers: writer slept longest until pages were written",
        "writers asleep",
        "a writer slept for dirty pages",
        "background limit",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["No task waited", "slowed by memory.high"] {
        assert!(!page.contains(part), "{part}");
    }
}

/// Also on a machine with one kind of memory.
#[test]
fn the_page_of_a_run_maps_accesses_by_address_and_has_them_as_a_table() {
    let directory = with_scenario(MIXED);
    let page = page(directory.path(), &["run", "scenario.toml"]);
    let (_, map) = page.split_once("<svg class=\"heat\"").expect("a map");
    let (map, rest) = map.split_once("</svg>").unwrap();
    assert!(
        map.contains("aria-label=\"Accesses by address") && map.contains("<rect class=\"warm\""),
        "{map}"
    );
    let (table, _) = rest.split_once("</table>").unwrap();
    assert!(table.contains("<summary>The same as a table</summary>"), "{table}");
    assert!(
        table.contains("reader, object 0, page ") && table.contains("reader, object 1, page "),
        "{table}"
    );
    let counts = table.split("<td class=\"n\">").skip(1).map(|cell| {
        let digits: String =
            cell.chars().take_while(|&letter| letter != '<').filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), 6000, "each access once");
}

#[test]
fn the_page_of_a_run_does_not_grow_with_the_run() {
    let length = |ops: &str| {
        let directory = with_scenario(&MIXED.replace("ops = 3000", ops));
        let arguments = ["run", "scenario.toml", "--timeline-every", "100us"];
        page(directory.path(), &arguments).len()
    };
    let (short, long) = (length("ops = 20000"), length("ops = 200000"));
    assert!(long < 400_000 && long < 2 * short, "{short} and {long} bytes");
}

/// The text between the first `<name` after which there is a `>` and its end.
fn elements<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    svg.split(&open).skip(1).map(|rest| rest.split_once(&close).unwrap().0).collect()
}

/// Every element that is opened is closed, in order, and text has nothing in it that would open another.
#[track_caller]
fn check_xml(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = svg.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    for tag in body.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap();
        assert!(!text.contains('>'), "{text}");
        assert!(tag.matches('"').count() % 2 == 0, "{tag}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match (tag.starts_with('/'), tag.ends_with('/')) {
            (true, _) => assert_eq!(open.pop(), Some(name)),
            (false, false) => open.push(name),
            (false, true) => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let is_entity =
        |rest: &str| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|entity| rest.starts_with(entity));
    assert!(svg.split('&').skip(1).all(is_entity));
}

#[test]
fn curves_are_a_picture_for_a_paper_whose_numbers_are_those_of_the_csv() {
    let directory = tempfile::tempdir().unwrap();
    let trace = format!("{}/../../ground-truth/sequences/shift.u32.zst", env!("CARGO_MANIFEST_DIR"));
    let policies = "lru,fifo,sieve,arc,opt";
    let asked = ["replay", &trace, "--memory", "1%..50%/9log", "--policy", policies, "--quiet"];
    check_success(&pageout(directory.path(), &[&asked[..], &["--report", "curves.svg"]].concat()));
    let csv = check_success(&pageout(
        directory.path(),
        &[&asked[..], &["--format", "csv", "--figure", "policy,memory_bytes,miss_ratio"]].concat(),
    ));
    let svg = fs::read_to_string(directory.path().join("curves.svg")).unwrap();
    check_xml(&svg);
    assert_eq!(svg.matches("<polyline").count(), 5, "one a policy");
    for said in [
        "Miss ratio over memory",
        "memory, logarithmic",
        ">miss ratio<",
        "opt (bound)",
        "fill=\"#ffffff\"",
        "4 MiB",
    ] {
        assert!(svg.contains(said), "{said}");
    }
    for loading in ["<script", "href", "url(http", "@import"] {
        assert!(!svg.contains(loading), "{loading}");
    }
    let lines: Vec<(&str, &str)> = svg
        .split("<g stroke=")
        .filter(|group| group.contains("<polyline"))
        .map(|group| (elements(group, "title")[0], group))
        .collect();
    for (policy, group) in &lines {
        let exact: Vec<(f64, f64)> = elements(group, "desc")[0]
            .split(", ")
            .map(|point| point.split_once(' ').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        let of_csv: Vec<(f64, f64)> = csv
            .lines()
            .filter_map(|line| line.strip_prefix(&format!("{},", policy.split(' ').next().unwrap())))
            .map(|rest| rest.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert_eq!((exact.len(), &exact), (9, &of_csv), "{policy}");
        // And they are drawn where they are: heights by one scale, distances by one logarithmic scale.
        let (points, _) = group.split_once("points=\"").unwrap().1.split_once('"').unwrap();
        let drawn: Vec<(f64, f64)> = points
            .split(' ')
            .map(|point| point.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        let (first, last) = (0, exact.len() - 1);
        for at in 0..exact.len() {
            let height = (exact[at].1 - exact[first].1) / (exact[last].1 - exact[first].1);
            let y = drawn[first].1 + height * (drawn[last].1 - drawn[first].1);
            assert!((drawn[at].1 - y).abs() < 0.1, "{policy}, {at}: {} for {y}", drawn[at].1);
            let along = (exact[at].0 / exact[first].0).ln() / (exact[last].0 / exact[first].0).ln();
            let x = drawn[first].0 + along * (drawn[last].0 - drawn[first].0);
            assert!((drawn[at].0 - x).abs() < 0.1, "{policy}, {at}: {} for {x}", drawn[at].0);
        }
    }
    assert_eq!(lines.len(), 5);
}

#[test]
fn a_comparison_is_bars_with_their_intervals_as_a_picture_and_a_run_has_none() {
    let directory = with_scenario(MIXED);
    let vary = ["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB", "--repeat", "2"];
    check_success(&pageout(directory.path(), &[&vary[..], &["--report", "bars.svg"]].concat()));
    let svg = fs::read_to_string(directory.path().join("bars.svg")).unwrap();
    check_xml(&svg);
    for said in [
        "2MiB against 1MiB",
        "task reader: runtime",
        "change in percent",
        "may be noise",
        "Who &lt;b&gt;waits",
    ] {
        assert!(svg.contains(said), "{said}");
    }
    let run = ["run", "scenario.toml", "--report", "run.svg"];
    check_failure(&pageout(directory.path(), &run), 2, &["a name that ends in .html"]);
    let other = [&vary[..], &["--report", "bars.png"]].concat();
    check_failure(&pageout(directory.path(), &other), 2, &["expected .html (report) or .svg"]);
}
