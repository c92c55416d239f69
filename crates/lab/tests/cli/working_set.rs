//! `pageout working-set`: brackets that hold, machines told apart, an order for a job, and no answer from half a dump.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{check_failure, check_success, pageout};

const GIB: u64 = 1 << 18;

/// One group beside the root, whose four generations (age in ms, anonymous pages, file pages) begin with number `seq`.
fn dump(seq: u64, rows: [(u64, u64, u64); 4]) -> String {
    let mut text = String::from("memcg     1 /\n node     0\n");
    for (at, age) in (seq..).zip([90_000, 60_000, 50_000, 40_000]) {
        text += &format!(" {at:10} {age:10} {:10}  {:10} \n", 0, 0);
    }
    text += "memcg    29 /web\n node     0\n";
    for (at, (age, anon, file)) in (seq..).zip(rows) {
        text += &format!(" {at:10} {age:10} {anon:10}  {file:10} \n");
    }
    text
}

/// `in_use` GiB in use within 2 minutes, `open` GiB perhaps, `idle` GiB (some, for the oldest generation is never sure)
/// not; half of each is anonymous.
fn machine(seq: u64, in_use: u64, open: u64, idle: u64) -> String {
    let half = |gib: u64| gib * GIB / 2;
    dump(
        seq,
        [
            (900_000, half(idle), half(idle)),
            (300_000, half(open), half(open)),
            (100_000, half(in_use), half(in_use)),
            (20_000, 0, 0),
        ],
    )
}

fn with_files(files: &[(&str, String)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn working_set(directory: &Path, arguments: &[&str]) -> Output {
    let arguments: Vec<&str> = ["working-set"].iter().chain(arguments).copied().collect();
    pageout(directory, &arguments)
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    serde_json::from_str(&check_success(&working_set(directory, &arguments))).unwrap()
}

/// The machines of a ranking, best first.
fn ranked(result: &Value) -> Vec<&str> {
    result["ranking"].as_array().unwrap().iter().map(|row| row["machine"].as_str().unwrap()).collect()
}

#[test]
fn a_working_set_is_what_is_certainly_and_what_is_possibly_in_use() {
    let directory = with_files(&[("web1.lru_gen", machine(5, 4, 1, 2))]);
    let printed = check_success(&working_set(directory.path(), &["web1.lru_gen"]));
    for line in [
        "memcg          in use              anon              file            idle  total",
        "/web   4 GiB to 5 GiB  2 GiB to 2.5 GiB  2 GiB to 2.5 GiB  2 GiB to 3 GiB  7 GiB",
        "total  4 GiB to 5 GiB  2 GiB to 2.5 GiB  2 GiB to 2.5 GiB  2 GiB to 3 GiB  7 GiB",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "expected {line:?} in:\n{printed}");
    }
    let result = json(directory.path(), &["web1.lru_gen"]);
    assert_eq!(result["complete"], true);
    let total = &result["machines"][0]["total"];
    assert_eq!(
        (&total["in_use"]["at_least"], &total["in_use"]["at_most"]),
        (&(4 * GIB).into(), &(5 * GIB).into())
    );
    assert_eq!(total["idle_anon"]["at_least"], GIB);
    assert_eq!(result["machines"][0]["memcgs"][1]["path"], "/web");
    // Where a generation begins with the window nothing is open.
    let exact = json(directory.path(), &["web1.lru_gen", "--within", "5m"]);
    let in_use = &exact["machines"][0]["total"]["in_use"];
    assert_eq!((&in_use["at_least"], &in_use["at_most"]), (&(5 * GIB).into(), &(5 * GIB).into()));
}

#[test]
fn a_window_that_nobody_looked_in_is_told_with_what_to_do() {
    let directory = with_files(&[("web1.lru_gen", machine(5, 4, 1, 2))]);
    let printed = check_success(&working_set(directory.path(), &["web1.lru_gen", "--within", "10s"]));
    assert!(printed.contains("0 B to 7 GiB"), "{printed}");
    assert!(printed.contains("\necho '+ 29 0 8' > /sys/kernel/debug/lru_gen\n"), "{printed}");
    // A window beyond the oldest birth: what is in the oldest generation has no known age.
    let printed = check_success(&working_set(directory.path(), &["web1.lru_gen", "--within", "1h"]));
    assert!(printed.contains("5 GiB to 7 GiB") && printed.contains("web1 (2 GiB)"), "{printed}");
}

#[test]
fn dumps_of_a_machine_are_a_history_in_the_order_of_their_names() {
    let directory = with_files(&[
        ("web1@10:00.lru_gen", machine(9, 6, 1, 2)),
        ("web1@9:00.lru_gen", machine(5, 1, 1, 2)),
        ("web1@9:30.lru_gen", machine(7, 3, 1, 2)),
    ]);
    let files = ["web1@10:00.lru_gen", "web1@9:30.lru_gen", "web1@9:00.lru_gen"];
    let printed = check_success(&working_set(directory.path(), &files));
    assert!(printed.contains("machine web1, web1@10:00.lru_gen"), "{printed}");
    assert!(printed.contains("trend: up 4 GiB to 6 GiB"), "{printed}");
    let result = json(directory.path(), &files);
    let dumps = result["machines"][0]["dumps"].as_array().unwrap();
    let order: Vec<&str> = dumps.iter().map(|dump| dump["file"].as_str().unwrap()).collect();
    assert_eq!(order, ["web1@9:00.lru_gen", "web1@9:30.lru_gen", "web1@10:00.lru_gen"]);
}

#[test]
fn a_restart_ends_a_history() {
    let directory = with_files(&[
        ("m@1", machine(70, 9, 0, 1)),
        ("m@2", machine(5, 1, 0, 1)),
        ("m@3", machine(6, 2, 0, 1)),
    ]);
    let printed = check_success(&working_set(directory.path(), &["m@1", "m@2", "m@3"]));
    assert!(printed.contains("trend: up 1 GiB\n"), "{printed}");
    assert!(printed.contains("smaller numbers in m@2 than in m@1"), "{printed}");
}

#[test]
fn where_names_are_times_a_directory_is_a_machine_and_so_is_standard_input() {
    let directory = with_files(&[
        ("web1/2026-11-21", machine(5, 1, 1, 2)),
        ("web1/2026-11-22", machine(9, 6, 1, 2)),
        ("web2/lru_gen", machine(9, 6, 1, 2)),
    ]);
    let result = json(directory.path(), &["web2/lru_gen", "web1"]);
    let machines = result["machines"].as_array().unwrap();
    assert_eq!(
        (&machines[0]["machine"], machines[0]["dumps"].as_array().unwrap().len()),
        (&"web1".into(), 2)
    );
    assert_eq!(machines[1]["machine"], "web2");

    let mut command = Command::new(super::binary());
    command.args(["working-set", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(machine(9, 6, 1, 2).as_bytes()).unwrap();
    let result: Value = serde_json::from_str(&check_success(&child.wait_with_output().unwrap())).unwrap();
    assert_eq!(result["machines"][0]["machine"], "stdin");
}

#[test]
fn different_names_in_a_directory_are_different_machines() {
    let directory = with_files(&[
        ("fleet/web1.lru_gen", machine(5, 4, 0, 2)),
        ("fleet/web2.lru_gen", machine(9, 6, 0, 2)),
        ("fleet/10.0.0.7.lru_gen", machine(5, 1, 0, 2)),
        ("fleet/db@9:00", machine(5, 1, 0, 2)),
        ("fleet/db@10:00", machine(6, 3, 0, 2)),
        ("fleet/2026-11-22T10:00.lru_gen", machine(6, 3, 0, 2)),
    ]);
    let result = json(directory.path(), &["fleet"]);
    let machines = result["machines"].as_array().unwrap();
    let names: Vec<(&str, usize)> = machines
        .iter()
        .map(|machine| (machine["machine"].as_str().unwrap(), machine["dumps"].as_array().unwrap().len()))
        .collect();
    assert_eq!(names, [("db", 2), ("fleet", 1), ("web1", 1), ("web2", 1), ("10.0.0.7", 1)]);
    assert_eq!(machines[3]["total"]["in_use"]["at_least"], 6 * GIB);
}

#[test]
fn a_bad_dump_is_left_out_and_named_if_that_is_wanted() {
    let good = machine(5, 4, 1, 2);
    let directory = with_files(&[
        ("fleet/web1.lru_gen", good.clone()),
        ("fleet/web2.lru_gen", good[..good.len() - 13].to_string()),
        ("bad/web3.lru_gen", "0x0007\n".into()),
    ]);
    check_failure(&working_set(directory.path(), &["fleet"]), 2, &["web2.lru_gen:12:"]);
    let output = working_set(directory.path(), &["fleet", "--skip-bad"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("left out: ") && told.contains("web2.lru_gen:12:"), "{told}");
    let printed = check_success(&output);
    assert!(printed.contains("machine web1, "), "{printed}");
    assert!(
        printed.contains("Ignored because they are not complete dumps: fleet/web2.lru_gen."),
        "{printed}"
    );
    let result = json(directory.path(), &["fleet", "--skip-bad"]);
    assert_eq!(result["complete"], false);
    assert_eq!(result["skipped"][0]["file"], "fleet/web2.lru_gen");
    assert_eq!(result["machines"].as_array().unwrap().len(), 1);
    check_failure(&working_set(directory.path(), &["bad", "--skip-bad"]), 2, &["not a dump of lru_gen"]);
}

#[test]
fn memory_without_a_job_says_what_is_free() {
    let directory =
        with_files(&[("web1.lru_gen", machine(5, 4, 1, 2)), ("web2.lru_gen", machine(5, 4, 1, 2))]);
    let files = ["web1.lru_gen", "web2.lru_gen", "--memory", "web1=16GiB"];
    let printed = check_success(&working_set(directory.path(), &files));
    let row = |name: &str| {
        let line = printed.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().take(5).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("machine"), "machine memory free in use");
    assert_eq!(row("web1"), "web1 16 GiB 9 GiB");
    assert_eq!(row("web2"), "web2 - - 4 GiB");
    let reserve = [&files[..], &["--reserve", "1GiB"]].concat();
    let result = json(directory.path(), &reserve);
    assert_eq!(
        (&result["machines"][0]["free"], &result["machines"][0]["reserved"]),
        (&(8 * GIB).into(), &GIB.into())
    );
    assert_eq!(result["machines"][1]["memory"], Value::Null);
}

#[test]
fn a_job_lands_where_it_pushes_out_the_least_that_is_in_use() {
    let directory = with_files(&[
        ("roomy.lru_gen", machine(5, 4, 0, 1)),
        ("idle.lru_gen", machine(5, 4, 0, 10)),
        ("open.lru_gen", machine(5, 4, 8, 2)),
        ("busy.lru_gen", machine(5, 13, 0, 1)),
        ("small.lru_gen", machine(5, 1, 0, 1)),
    ]);
    let files = ["busy.lru_gen", "idle.lru_gen", "open.lru_gen", "roomy.lru_gen", "small.lru_gen"];
    let rank = |more: &[&str]| {
        let job = ["--job", "6GiB", "--memory", "16GiB,small=4GiB"];
        let arguments: Vec<&str> = files.iter().chain(&job).chain(more).copied().collect();
        working_set(directory.path(), &arguments)
    };
    let printed = check_success(&rank(&[]));
    let rows: Vec<&str> = printed.lines().skip(3).take(5).collect();
    for (row, (machine, verdict)) in rows.iter().zip([
        ("roomy", "in free memory"),
        ("idle", "evicts 4 GiB, all idle"),
        ("open", "evicts 4 GiB, up to 2 GiB in use"),
        ("busy", "evicts 4 GiB, 3 GiB in use"),
        ("small", "does not fit: 2 GiB short with all evicted"),
    ]) {
        assert!(row.starts_with(machine) && row.contains(&format!("{verdict}  ")), "{row:?} in:\n{printed}");
    }
    let result: Value = serde_json::from_str(&check_success(&rank(&["--json"]))).unwrap();
    assert_eq!(ranked(&result), ["roomy", "idle", "open", "busy", "small"]);
    assert_eq!(result["ranking"][2]["pushed_out"]["at_most"], 2 * GIB);
    assert_eq!(result["ranking"][4]["fits"], false);
    // Half of what is idle needs swap to leave; what is reserved is not free.
    let printed = check_success(&rank(&["--no-swap", "--reserve", "2GiB"]));
    assert!(printed.contains("evicts 6 GiB, 1 GiB in use"), "{printed}");
}

#[test]
fn the_memory_of_every_machine_must_be_known_and_be_that_of_a_machine() {
    let directory =
        with_files(&[("web1.lru_gen", machine(5, 4, 1, 2)), ("web2.lru_gen", machine(5, 4, 1, 2))]);
    let fails = |arguments: &[&str], parts: &[&str]| {
        let arguments: Vec<&str> =
            ["web1.lru_gen", "web2.lru_gen"].iter().chain(arguments).copied().collect();
        check_failure(&working_set(directory.path(), &arguments), 2, parts);
    };
    fails(&["--job", "1GiB"], &["--memory web1=16GiB,web2=16GiB"]);
    fails(&["--job", "1GiB", "--memory", "web1=16GiB"], &["--memory web2=16GiB"]);
    fails(&["--job", "1GiB", "--memory", "wbe1=16GiB"], &["`wbe1`", "did you mean `web1`?"]);
    fails(
        &["--job", "1GiB", "--memory", "4GiB"],
        &["`web1`", "7 GiB", "more than its memory of 4 GiB", "--page-size"],
    );
    fails(&["--job", "much", "--memory", "16GiB"], &["--job much", "not a size"]);
    fails(&["--job", "1GiB", "--memory", "16GiB", "--reserve", "max"], &["--reserve max"]);
    fails(&["--job", "1GiB", "--memory", "16GiB", "--reserve", "100%"], &["leaves nothing"]);
    fails(&["--memory", "wbe1=16GiB"], &["`wbe1`", "did you mean `web1`?"]);
    fails(&["--reserve", "5%"], &["--memory"]);
    fails(&["--within", "2"], &["--within 2", "unit is missing"]);
    fails(&["--page-size", "5KiB"], &["--page-size 5KiB", "64KiB"]);
    fails(&["web1.lru_gen"], &["web1.lru_gen: found twice"]);
    fails(&["web3.lru_gen"], &["web3.lru_gen", "No such file"]);
}

#[test]
fn a_simulated_machine_may_keep_more_generations_if_that_is_said() {
    let five = format!("{}          9       9000          0         100 \n", machine(5, 4, 1, 2));
    let directory = with_files(&[("a.lru_gen", five)]);
    let output = working_set(directory.path(), &["a.lru_gen"]);
    check_failure(&output, 2, &["a.lru_gen:13:", "more than 4 generations", "--generations"]);
    check_success(&working_set(directory.path(), &["a.lru_gen", "--generations", "5"]));
    check_failure(
        &working_set(directory.path(), &["a.lru_gen", "--generations", "65"]),
        2,
        &["--generations"],
    );
}

#[test]
fn one_bad_dump_is_an_error_for_all_with_its_line() {
    let good = machine(5, 4, 1, 2);
    let cut = good[..good.len() - 13].to_string();
    let other = good.replacen("      90000 ", "      90000 17 ", 1);
    let directory = with_files(&[
        ("good.lru_gen", good.clone()),
        ("cut.lru_gen", cut),
        ("other.lru_gen", other),
        ("negative.lru_gen", good.replacen(" 0  ", "-1  ", 1)),
        ("empty.lru_gen", String::new()),
        ("enabled.lru_gen", "0x0007\n".into()),
        ("binary.lru_gen", "\u{0}\u{1b}[31m\u{7}".into()),
        ("twice.lru_gen", good.repeat(2)),
        ("empty_machine/.keep", String::new()),
    ]);
    for (bad, parts) in [
        ("cut.lru_gen", &["cut.lru_gen:12:", "4 columns, this one has 3", "expected"][..]),
        ("other.lru_gen", &["other.lru_gen:3:", "4 columns, this one has 5", "another version"]),
        ("negative.lru_gen", &["negative.lru_gen:3:", "-1 is negative"]),
        ("empty.lru_gen", &["--> empty.lru_gen", "empty file"]),
        ("enabled.lru_gen", &["enabled.lru_gen:1:1", "not a dump of lru_gen", "/sys/kernel/debug/lru_gen"]),
        ("binary.lru_gen", &["binary.lru_gen:1", "not a dump of lru_gen"]),
        ("twice.lru_gen", &["twice.lru_gen:13:1", "duplicate memcg 1"]),
        ("empty_machine", &["empty_machine: found an empty directory"]),
    ] {
        let output = working_set(directory.path(), &["good.lru_gen", bad]);
        check_failure(&output, 2, parts);
        assert!(!output.stderr.contains(&0x1b), "a file does not command the terminal");
    }
    let output = working_set(directory.path(), &["cut.lru_gen", "good.lru_gen", "other.lru_gen"]);
    check_failure(&output, 2, &["cut.lru_gen:12:", "other.lru_gen:3:", "2 problems"]);
}

#[test]
fn groups_beyond_the_ten_largest_are_summed_unless_all_are_asked_for() {
    let mut text = String::new();
    for id in 2..14 {
        text += &format!("memcg {id} /g{id}\n node 0\n 7 90000 0 0\n 8 60000 0 {}\n 9 1000 0 0\n", id * 256);
    }
    // An empty group is not shown.
    text += "memcg 99 /empty\n node 0\n 0 9 0 0\n 1 9 0 0\n";
    let directory = with_files(&[("part.lru_gen", text)]);
    let few = check_success(&working_set(directory.path(), &["part.lru_gen", "--within", "1min"]));
    assert!(few.contains("\n2 more (--all)   0 B to 5 MiB ") && few.contains("\n/g4 "), "{few}");
    assert!(!few.contains("/g3 ") && !few.contains("/empty"), "{few}");
    assert!(few.contains("no group `/`"), "{few}");
    let all = check_success(&working_set(directory.path(), &["part.lru_gen", "--within", "1min", "--all"]));
    assert!(all.contains("\n/g2 ") && !all.contains("more"), "{all}");
    let total = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("total")).unwrap();
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(total(&few), total(&all));
}

#[test]
fn the_order_of_arguments_changes_nothing() {
    let directory = with_files(&[
        ("a@1", machine(5, 1, 1, 2)),
        ("a@2", machine(9, 6, 1, 2)),
        ("b", machine(9, 6, 1, 2)),
        ("c", machine(9, 6, 1, 2)),
    ]);
    let job = ["--job", "8GiB", "--memory", "16GiB", "--all"];
    let print = |files: [&str; 4]| {
        let arguments: Vec<&str> = files.iter().chain(&job).copied().collect();
        check_success(&working_set(directory.path(), &arguments))
    };
    assert_eq!(print(["a@1", "a@2", "b", "c"]), print(["c", "a@2", "b", "a@1"]));
}

/// `lru_gen_full` up to 6.8: marks blank where a generation has no figure, and six figures of walks.
#[test]
fn a_full_dump_of_a_kernel_before_6_9_is_read() {
    let none = "          0           0           0           0           0           0 \n";
    let tiers: String = (0..4).map(|tier| format!("                     {tier}{none}")).collect();
    let text = format!(
        "memcg     7 /a\n node     0\n          3       3000          0          9 \n{tiers}                     {none}"
    );
    let directory = with_files(&[("piece.lru_gen", text)]);
    let said = check_success(&working_set(directory.path(), &["piece.lru_gen"]));
    assert!(said.contains("piece.lru_gen has one generation, and Linux always has two or more"), "{said}");
}
