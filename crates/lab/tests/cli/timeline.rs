//! The figures of a run over time.

use super::{GOOD, check_failure, check_success, pageout, run_with, text, with_scenario};

/// Rows of a table, without its heading, by the names in it.
fn rows(table: &str) -> (Vec<&str>, Vec<Vec<f64>>) {
    let mut lines = table.lines();
    let names = lines.next().unwrap().split(',').collect();
    let row = |line: &str| line.split(',').map(|value| value.parse().unwrap()).collect();
    (names, lines.map(row).collect())
}

#[test]
fn a_run_with_a_timeline_is_the_same_run() {
    let directory = with_scenario(GOOD);
    let run = |more: &[&str]| {
        let output = pageout(directory.path(), &[&["run", "scenario.toml", "--json"], more].concat());
        check_success(&output)
    };
    assert_eq!(run(&[]), run(&["--timeline", "t.csv", "--timeline-every", "100us"]));
    let table = std::fs::read_to_string(directory.path().join("t.csv")).unwrap();
    let (names, rows) = rows(&table);
    assert_eq!(names[..3], ["time_ms", "accesses", "nr_free_pages"]);
    let json: serde_json::Value = serde_json::from_str(&run(&[])).unwrap();
    // One at the start, and one whenever the time is over.
    let end = json["end_ns"].as_u64().unwrap();
    assert!((rows.len() as u64).abs_diff(end / 100_000 + 1) <= 1, "{} rows of {end} ns", rows.len());
    assert!(rows.iter().zip(0..).all(|(row, number)| row[0] == f64::from(number) / 10.0));
    let accesses: Vec<f64> = rows.iter().map(|row| row[1]).collect();
    assert!(
        accesses.is_sorted() && accesses[0] == 0.0 && accesses[accesses.len() - 1] > 4_000.0,
        "{accesses:?}"
    );
}

#[test]
fn hits_that_run_ahead_count_when_they_are_over() {
    // One task that hits for a second: between two flushes of statistics there is no event.
    let scenario = GOOD.replace("ops = 5000", "ops = 1000000").replace("memory.max = \"1MiB\"\n", "");
    let directory = with_scenario(&scenario.replace("\"4MiB\"", "\"64KiB\""));
    let arguments =
        ["run", "scenario.toml", "--timeline", "-", "--timeline-columns", "accesses,task.reader.cpu_ns"];
    let output = pageout(directory.path(), &arguments);
    let table = check_success(&output);
    let (_, rows) = rows(&table);
    assert!(rows.len() > 80, "{table}");
    // 860 ns each.
    let steps: Vec<f64> = rows.windows(2).skip(1).map(|two| two[1][1] - two[0][1]).collect();
    assert!(steps.iter().all(|step| (step - 10e6 / 860.0).abs() < 3.0), "{steps:?}");
    assert!(rows.iter().skip(1).all(|row| (row[2] / 1e6 - row[0]).abs() < 1.5), "{table}");
}

#[test]
fn a_table_on_standard_output_has_it_for_itself() {
    let columns =
        "/web:memory.current,/web:nr_active_file,/web:pressure.io.some,task.reader.misses,pgscan_direct";
    let output = run_with("[[memcg]]", "[[memcg]]", &["--timeline", "-", "--timeline-columns", columns]);
    let table = check_success(&output);
    let (names, rows) = rows(&table);
    assert_eq!(names.join(","), format!("time_ms,{columns}"));
    let last = rows.last().unwrap();
    assert!(last[1] <= 1_048_576.0 && last[1] > 800_000.0 && last[4] > 256.0, "{last:?}");
    let summary = text(&output.stderr);
    assert!(summary.contains("5,000 accesses in "), "{summary}");
}

#[test]
fn figures_of_devices_nodes_and_groups_end_where_the_run_does() {
    let columns = [
        "device.nvme.pages_read",
        "device.nvme.busy_ns",
        "/web:memory.events.max",
        "/web:memory.swap.current",
        "node.0.nr_inactive_file",
        "nr_inactive_file",
        "task.reader.major",
    ];
    let directory = with_scenario(GOOD);
    let columns = columns.join(",");
    let arguments = ["run", "scenario.toml", "--json", "--timeline", "t.csv", "--timeline-columns", &columns];
    let json: serde_json::Value =
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
    let table = std::fs::read_to_string(directory.path().join("t.csv")).unwrap();
    let (_, rows) = rows(&table);
    let last = rows.last().unwrap();
    let all = json["devices"][0]["pages_read"].as_f64().unwrap();
    assert!(last[1] <= all && last[1] > all * 0.9, "{last:?} of {all}");
    assert!(last[2] > 0.0 && last[2] / 1e6 <= last[0] && last[3] > 10.0, "{last:?}");
    assert_eq!((last[4], last[5], last[7]), (0.0, last[6], 0.0), "no swap, one node, nothing mapped");
}

#[test]
fn lines_of_json_are_objects_of_the_same_names() {
    let directory = with_scenario(GOOD);
    let arguments =
        ["run", "scenario.toml", "--timeline", "t.jsonl", "--timeline-columns", "pressure.memory.full"];
    check_success(&pageout(directory.path(), &arguments));
    let lines = std::fs::read_to_string(directory.path().join("t.jsonl")).unwrap();
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row["time_ms"].is_number() && row["pressure.memory.full"].is_u64(), "{line}");
    }
    assert!(lines.lines().count() > 1);
}

#[test]
fn what_cannot_be_sampled_is_refused_before_the_run() {
    let refused = |more: &[&str], parts: &[&str]| {
        check_failure(&run_with("[[memcg]]", "[[memcg]]", &[&["--timeline"], more].concat()), 2, parts);
    };
    refused(&["t.txt"], &["--timeline: unknown suffix: found `t.txt`", ".csv, .jsonl"]);
    let unwritten = run_with("[[memcg]]", "[[memcg]]", &["--timeline", "nowhere/t.csv"]);
    check_failure(&unwritten, 3, &["--timeline nowhere/t.csv", "no such directory: `nowhere`"]);
    refused(&["t.csv", "--timeline-every", "0ms"], &["--timeline-every: too short: found `0"]);
    refused(&["t.csv", "--timeline-every", "1ns"], &["found `1ns`, expected at least 1us"]);
    refused(&["-", "--json"], &["only one of them can use standard output"]);
    let column = |name: &str, parts: &[&str]| refused(&["t.csv", "--timeline-columns", name], parts);
    column("nr_fre_pages", &["unknown figure `nr_fre_pages` (did you mean `nr_free_pages`?)"]);
    column("/wbe:memory.current", &["unknown cgroup `/wbe` (did you mean `/web`?)"]);
    column("/web:memory.curent", &["unknown figure `memory.curent` (did you mean `memory.current`?)"]);
    column("pressure.memory", &["`pressure.memory.some`"]);
    column("task.raeder.accesses", &["unknown task `raeder` (did you mean `reader`?)"]);
    column("device.nvm.reads", &["unknown device `nvm` (did you mean `nvme`?)"]);
    column("device.nvme.speed", &["unknown figure `speed` of a device; known: reads, writes, "]);
    column("node.1.nr_free_pages", &["unknown node `1`, expected 0 to 0"]);
    column("/web:memory.events.mx", &["unknown event `mx` of memory.events; known: low, high, max, "]);
    column("task.reader.speed", &["unknown figure `speed` of a task; known: accesses, misses, "]);
}
