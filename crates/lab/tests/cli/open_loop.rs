//! Open loops: accesses that start at the trace's own times, and wait where they can't.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use pageout_policy::check::Random;
use serde_json::Value;

use super::{check_failure, check_success, pageout};

fn replay(directory: &Path, arguments: &[&str]) -> std::process::Output {
    pageout(directory, &[&["replay", "--quiet"], arguments].concat())
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&check_success(output)).unwrap()
}

/// Arrivals with exponential gaps, each of another page: all miss.
fn poisson(seed: u64, count: usize, gap_ns: f64) -> Vec<u64> {
    let mut draws = Random::new(seed);
    let mut now = 0.0;
    let arrivals = (0..count).map(|_| {
        let share = ((draws.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        now -= share.ln() * gap_ns;
        now as u64
    });
    arrivals.collect()
}

/// A task that reads pages one by one from a device that takes 1 ms for each, whatever else there is.
fn scenario(timed: f64, pages: usize) -> String {
    format!(
        r#"
        until = "100000s"
        machine.memory = "2GiB"
        machine.cpus = 1
        [[device]]
        name = "disk"
        preset = "pmem"
        read_latency = "1ms"
        read_p99 = "1ms"
        read_ahead_kb = 0
        [[task]]
        name = "reader"
        timed = {timed}
        [[task.object]]
        channel = "file"
        size = "{pages} pages"
        trace = "poisson.csv"
        read = {{ csv = {{ time_unit = "ns" }} }}
        "#
    )
}

#[test]
fn with_a_fixed_service_time_and_random_arrivals_the_mean_wait_is_that_of_queueing_theory() {
    let (count, directory) = (200_000, tempfile::tempdir().unwrap());
    let run = |timed: f64| -> Value {
        fs::write(directory.path().join("open.toml"), scenario(timed, count)).unwrap();
        json(&pageout(directory.path(), &["run", "open.toml", "--json", "--quiet"]))["tasks"][0].clone()
    };
    for load in [0.5, 0.8] {
        // The service time is that of a closed loop.
        let mut text = "time,page\n".to_string();
        let arrivals = poisson(5, count, 1e6 / load);
        arrivals.iter().enumerate().for_each(|(page, time)| _ = writeln!(text, "{time},{page}"));
        fs::write(directory.path().join("poisson.csv"), text).unwrap();
        let closed = run(0.0);
        assert_eq!(closed["read_misses"], count as u64);
        let service = closed["runtime_ns"].as_f64().unwrap() / count as f64;
        // So much faster or slower that the load is right for this service time.
        let open = run(1e6 / service);
        let turn = &open["access"]["by_cause"]["turn"];
        let wait = turn["total_ns"].as_f64().unwrap() / count as f64;
        // Access by access: who comes waits until those before it are done.
        let (mut free, mut sum) = (0.0_f64, 0.0);
        for arrival in arrivals.iter().map(|&time| (time - arrivals[0]) as f64 * service / 1e6) {
            sum += (free - arrival).max(0.0);
            free = free.max(arrival) + service;
        }
        assert!(
            (wait / (sum / count as f64) - 1.0).abs() < 0.005,
            "load {load}: {wait} ns, {} by hand",
            sum / count as f64
        );
        let theory = load * service / (2.0 * (1.0 - load));
        assert!((wait / theory - 1.0).abs() < 0.02, "load {load}: {wait} ns, and {theory} expected");
        // Whoever comes while another is served waits: as many as the load says.
        let waited = turn["count"].as_f64().unwrap() / count as f64;
        assert!((waited - load).abs() < 0.01, "load {load}: {waited} waited");
    }
}

#[test]
fn a_replay_in_an_open_loop_tells_who_waited_and_how_busy_it_was() {
    let directory = tempfile::tempdir().unwrap();
    // Pairs of new pages at the same time, a second apart: the second of each waits for the first.
    let mut text = "ts,page\n".to_string();
    (0..200).for_each(|page| _ = writeln!(text, "{},{page}", 1_700_000_000 + page / 2));
    fs::write(directory.path().join("pairs.csv"), text).unwrap();
    let asked = ["pairs.csv", "--read", "csv.time_unit=s", "--memory", "100%", "--read-ahead-kb", "0"];
    let with = |more: &[&str]| replay(directory.path(), &[&asked[..], more].concat());
    let open = json(&with(&["--timed", "--json"]));
    assert_eq!(open["timed"], 1.0);
    let point = &open["points"][0];
    let of = |key: &str| point["open_loop"][key].as_f64().unwrap();
    assert!((of("waited_share") - 0.5).abs() < 1e-9, "{point}");
    assert!(point["runtime_ns"].as_u64().unwrap() >= 99_000_000_000);
    assert!(of("busy_share") < 0.01 && of("p99_ns") > of("p50_ns"), "{point}");
    assert!(of("p50_ns") > of("wait_mean_ns") && of("wait_mean_ns") > 20_000.0, "{point}");
    let faster = json(&with(&["--timed=100", "--json"]));
    let runtime = faster["points"][0]["runtime_ns"].as_u64().unwrap();
    assert!((990_000_000..1_010_000_000).contains(&runtime), "{runtime}");
    let printed = check_success(&with(&["--timed=100"]));
    assert!(
        printed.contains("open loop: an access starts at its time in the trace, 100 times as fast;"),
        "{printed}"
    );
    assert!(printed.contains("p99.9  waited") && printed.contains("50.00%"), "{printed}");
    let closed = check_success(&with(&[]));
    assert!(closed.contains("closed loop: an access starts when the one before has ended\n"), "{closed}");
    let both = check_success(&with(&["--timed", "--policy", "classic@6.12,mglru@6.12"]));
    assert!(both.contains("p99.9  waited"), "{both}");
    let scenario = check_success(&with(&["--timed=100", "--print-scenario"]));
    assert!(scenario.contains("timed = 100.0"), "{scenario}");
    fs::write(directory.path().join("again.toml"), &scenario).unwrap();
    let again = json(&pageout(directory.path(), &["run", "again.toml", "--json", "--quiet"]));
    assert_eq!(again["end_ns"].as_u64(), Some(runtime), "the scenario is the replay");
    let by = json(&with(&["--timed=100", "--by", "ts", "--json"]));
    assert_eq!(by["traces"][0]["cells"][0]["tenants"].as_array().unwrap().len(), 100);
}

#[test]
fn what_has_no_times_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("no.csv", "page\n1\n2\n");
    write("unit.csv", "time,page\n1,1\n2,2\n");
    write("p.pages", "1\n2\n");
    write("waits.iolog", "fio version 2 iolog\n/x add\n/x read 0 4096\n");
    let fails = |arguments: &[&str], parts: &[&str]| {
        check_failure(&replay(directory.path(), &[arguments, &["--timed"]].concat()), 2, parts);
    };
    fails(&["no.csv"], &["its accesses have no times", "--read csv.time=NAME"]);
    fails(&["unit.csv"], &["the unit of its times is unknown", "--read csv.time_unit=s"]);
    fails(&["p.pages"], &["its accesses have no times"]);
    fails(&["waits.iolog"], &["none of its records has a time"]);
    fails(&["unit.csv", "--read", "csv.time_unit=h"], &["csv.time_unit"]);
    let slow = replay(directory.path(), &["unit.csv", "--timed=0"]);
    check_failure(&slow, 2, &["expected a speed from 1e-9 to 1e9"]);
    check_success(&pageout(directory.path(), &["trace", "convert", "unit.csv", "a.pgt"]));
    fails(&["a.pgt"], &[".pgt files and page lists do not store them"]);
    let back = "time,page\n5,1\n3,2\n9,3\n";
    write("back.csv", back);
    let output = replay(
        directory.path(),
        &["back.csv", "--timed", "--read", "csv.time_unit=us", "--memory", "64pages"],
    );
    let told = super::text(&output.stderr);
    assert!(told.contains("1 access go back") || told.contains("of 1 access"), "{told}");
}

#[test]
fn an_open_loop_needs_one_trace_and_one_thread() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("poisson.csv"), "time,page\n1,1\n").unwrap();
    let fails = |from: &str, to: &str, parts: &[&str]| {
        let text = scenario(1.0, 10).replace(from, to);
        fs::write(directory.path().join("open.toml"), text).unwrap();
        check_failure(&pageout(directory.path(), &["run", "open.toml"]), 2, parts);
    };
    fails("timed = 1", "loops = 2\ntimed = 1", &["with `timed` a trace is replayed once"]);
    fails("timed = 1", "threads = 2\ntimed = 1", &["a single thread makes one access at a time"]);
    let workload = "workload = { pattern = \"zipf\", ops = 10 }";
    let trace = "trace = \"poisson.csv\"\n        read = { csv = { time_unit = \"ns\" } }";
    fails(trace, workload, &["are not all from one trace"]);
}

#[test]
fn gap_longer_than_the_rest_of_a_trace_is_told_before_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let trace = |jump: u64| {
        let row = |at: u64| format!("{},a,{}\n", at * 1_000 + if at > 90 { jump } else { 0 }, at % 40);
        "time,host,page\n".to_string() + &(0..100).map(row).collect::<String>()
    };
    let told = |jump: u64, more: &[&str]| {
        fs::write(directory.path().join("t.csv"), trace(jump)).unwrap();
        let arguments = ["t.csv", "--timed", "--read", "csv.time_unit=us", "--memory", "64pages"];
        let output = replay(directory.path(), &[&arguments, more].concat());
        assert!(output.status.success(), "{}", super::text(&output.stderr));
        super::text(&output.stderr)
    };
    for more in [&[][..], &["--by", "host"]] {
        let said = told(1_000_000, more);
        assert!(said.contains("a gap of 1.00 s before the last 9 accesses is longer"), "{said}");
        assert!(!told(2_000, more).contains("a gap of"));
    }
}
