//! Machines with more than one tier of memory.

use super::{check_failure, check_success, pageout, scenarios, text, with_scenario};

/// A node with all processors and a slower one without any.
const TIERS: &str = r#"
[machine]
cpus = 2

[[machine.node]]
memory = "64MiB"

[[machine.node]]
memory = "128MiB"
preset = "cxl-1.1"

[[task]]
name = "reader"

[[task.object]]
channel = "anonymous"
size = "96MiB"
workload = { pattern = "uniform", ops = 100000 }
"#;

#[track_caller]
fn refused(scenario: &str, arguments: &[&str], parts: &[&str]) {
    let directory = with_scenario(scenario);
    check_failure(&pageout(directory.path(), &[&["run", "scenario.toml"], arguments].concat()), 2, parts);
}

#[test]
fn what_moves_pages_between_tiers_is_refused_where_there_is_one() {
    for key in [
        "kernel.numa.demotion_enabled=true",
        "sysctl.kernel.numa_balancing=2",
        "sysctl.vm.pghot_record_hwhints_enable=1",
        "sysctl.vm.pghot_record_hintfaults_enable=1",
        "sysctl.vm.pghot_record_fma_enable=1",
    ] {
        let name = key.split('=').next().unwrap();
        let one_node = TIERS.replace("preset = \"cxl-1.1\"", "");
        let parts = &["all memory of this machine is in its top tier", name, "preset = \"cxl-1.1\""];
        refused(&one_node, &["--set", key], parts);
        let directory = with_scenario(TIERS);
        check_success(&pageout(directory.path(), &["run", "scenario.toml", "--check", "--set", key]));
    }
}

#[test]
fn memory_without_bandwidth_or_latency_is_refused() {
    let zero = TIERS.replace("preset = \"cxl-1.1\"", "read_bandwidth = \"0B/s\"");
    refused(&zero, &[], &["read_bandwidth", "0B/s is too small: the least is 1B/s", "scenario.toml:10"]);
    let zero = TIERS.replace("preset = \"cxl-1.1\"", "read_latency = \"0ns\"");
    refused(&zero, &[], &["read_latency", "too small", "scenario.toml:10"]);
    let misspelt = TIERS.replace("\"cxl-1.1\"", "\"cxl-1.2\"");
    refused(&misspelt, &[], &["`cxl-1.2`", "did you mean `cxl-1.1`?", "scenario.toml:10"]);
}

#[test]
fn nodes_have_no_processors_that_the_machine_lacks() {
    let many = TIERS.replace("preset = \"cxl-1.1\"", "cpus = 3");
    refused(
        &many,
        &[],
        &["the nodes up to here have 3 processors, and machine.cpus is 2", "scenario.toml:10"],
    );
}

/// Kernel files of tiers are read as on a running system; one that is not there is answered with those that are.
#[test]
fn tiers_list_their_nodes_and_a_tier_that_is_not_there_is_refused() {
    let event = |path: &str| format!("{TIERS}\n[[event]]\nat = \"1ms\"\nread = \"{path}\"\nshow = [\"*\"]\n");
    let tier = |number: u32| format!("/sys/devices/virtual/memory_tiering/memory_tier{number}/nodelist");
    let directory = with_scenario(&event(&tier(47)));
    let output = pageout(directory.path(), &["run", "scenario.toml", "--json"]);
    let told = check_success(&output);
    let run: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(run.to_string().contains("\"1\\n\""), "{}", text(&output.stdout));
    refused(
        &event(&tier(5)),
        &[],
        &["memory_tier5/nodelist", "known: memory_tier4/nodelist, memory_tier47/nodelist"],
    );
}

#[test]
fn memory_tiering_promotes_a_hot_set_and_its_knobs_can_be_written_while_it_runs() {
    check_success(&pageout(&scenarios(), &["compare", "hot-set-on-slow-memory.toml"]));
    let event =
        |path: &str, value: &str| format!("[[event]]\nat = \"0ms\"\nwrite = \"{path}\"\nvalue = {value}\n");
    let knob = |name: &str| format!("/sys/kernel/debug/sched/numa_balancing/{name}");
    let written = [
        event("/proc/sys/kernel/numa_balancing", "2"),
        event("/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps", "100"),
        event(&knob("scan_size_mb"), "16"),
        event(&knob("hot_threshold_ms"), "500"),
    ];
    let directory = with_scenario(&format!("{TIERS}{}", written.concat()));
    check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    let unknown = format!("{TIERS}{}", event(&knob("scan_size_gb"), "1"));
    check_failure(&pageout(with_scenario(&unknown).path(), &["run", "scenario.toml"]), 2, &["scan_size_gb"]);
    refused(TIERS, &["--set", "kernel.sched.numa_balancing.scan_size_mb=0"], &["scan_size_mb", "1"]);
}

/// A source of hot-page tracking that could see nothing is refused, and so is a figure that hardware of a class does not have.
#[test]
fn sources_of_hot_pages_are_refused_where_they_are_blind() {
    let scan = ["--set", "sysctl.vm.pghot_record_pgtscans_enable=1"];
    refused(TIERS, &scan, &["walks page tables", "mglru@6.12"]);
    let directory = with_scenario(TIERS);
    let generations = ["run", "scenario.toml", "--check", "--set", "kernel.profile=mglru@6.12"];
    check_success(&pageout(directory.path(), &[&generations[..], &scan].concat()));
    refused(TIERS, &["--set", "machine.hints.counters=9"], &["counters", "class ibs", "cxl-hmu"]);
    refused(TIERS, &["--set", "machine.hints.preset=ibm"], &["`ibm`", "ibs"]);
    refused(TIERS, &["--set", "task.reader.object.0.populate_node=2"], &["populate_node", "node"]);
    let read =
        ["--set", "task.reader.object.0.populate_node=1", "--set", "task.reader.object.0.channel=file"];
    refused(TIERS, &read, &["only a mapping can be populated"]);
    let unit = ["--set", "machine.hints.preset=cxl-hmu", "--set", "machine.hints.unit=12KiB"];
    refused(TIERS, &unit, &["machine.hints.unit", "no power of two"]);
    let told = check_success(&pageout(directory.path(), &["keys", "machine.hints.preset"]));
    assert!(
        told.contains("ibs: AMD processors") && told.contains("ring = 150: the posting's driver"),
        "{told}"
    );
}

/// Pages that lie on slow memory while the fast node has room, and a task that uses some of them more than others.
const HOT_ON_SLOW: &str = r#"
[machine]
cpus = 2

[[machine.node]]
memory = "128MiB"

[[machine.node]]
memory = "128MiB"
preset = "cxl-1.1"

[kernel]
profile = "mglru@6.12"

[[task]]
name = "reader"

[[task.object]]
channel = "anonymous"
size = "16MiB"
populate_node = 1
workload = { pattern = "uniform", ops = 8000000 }
"#;

#[test]
fn every_source_of_hot_pages_promotes_what_is_in_use() {
    let directory = with_scenario(HOT_ON_SLOW);
    let run = |settings: &[&str]| -> serde_json::Value {
        let arguments: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let arguments = [&["run", "scenario.toml", "--json"], &arguments[..]].concat();
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
    };
    let promoted = |run: &serde_json::Value| run["tiers"]["promoted"].as_u64().unwrap();
    let counter = |run: &serde_json::Value, name: &str| run["vmstat"][name].as_u64().unwrap();
    let still = run(&[]);
    assert_eq!(promoted(&still), 0);
    assert_eq!(still["tiers"]["fast_hit_ratio"].as_f64(), Some(0.0), "all of it was put on slow memory");
    assert_eq!(still["tasks"][0]["minor"].as_u64(), Some(0), "and was there from the start");
    let hardware = "sysctl.vm.pghot_record_hwhints_enable=1";
    let sampled = run(&[hardware, "machine.hints.period=100"]);
    assert!(promoted(&sampled) > 3500, "{}", sampled["tiers"]);
    assert!(counter(&sampled, "hwhint_nr_events") > 70_000, "{}", sampled["vmstat"]);
    assert_eq!(sampled, run(&[hardware, "machine.hints.period=100"]), "sampled alike each time");
    let counted = run(&[hardware, "machine.hints.preset=cxl-hmu"]);
    assert!(promoted(&counted) > 3500, "{}", counted["tiers"]);
    let scanned = run(&["sysctl.vm.pghot_record_pgtscans_enable=1"]);
    assert!(promoted(&scanned) > 3500, "{}", scanned["tiers"]);
    assert!(counter(&scanned, "pghot_recorded_pgtscans") >= 2 * promoted(&scanned), "{}", scanned["vmstat"]);
    let lossy = run(&[hardware, "machine.hints.period=100", "machine.hints.ring=1"]);
    assert!(counter(&lossy, "hwhint_buffer_full") > 0, "{}", lossy["vmstat"]);
}

/// One access for many: a run is as long as with all of them, and hardware samples as often.
#[test]
fn accesses_that_stand_for_others_take_their_time_and_are_sampled_as_often() {
    let directory = with_scenario(HOT_ON_SLOW);
    let run = |settings: &[&str]| -> serde_json::Value {
        let always = ["sysctl.vm.pghot_record_hwhints_enable=1", "machine.hints.period=1000"];
        let arguments = always.iter().chain(settings).flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["run", "scenario.toml", "--json"].into_iter().chain(arguments).collect();
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
    };
    let each = run(&[]);
    let ops = "task.reader.object.0.workload.ops=1000000";
    let eight = run(&["task.reader.stands_for=8", ops]);
    let (one, other) = (each["end_ns"].as_f64().unwrap(), eight["end_ns"].as_f64().unwrap());
    assert!((0.95..1.1).contains(&(other / one)), "{other} and {one}");
    let samples = |run: &serde_json::Value| run["vmstat"]["hwhint_nr_events"].as_f64().unwrap();
    assert!(
        (0.95..1.1).contains(&(samples(&eight) / samples(&each))),
        "{} {}",
        eight["vmstat"],
        each["vmstat"]
    );
}

/// Slow memory is slower: the same accesses take longer where more of them reach it, and the result says how many did.
#[test]
fn a_run_with_tiers_tells_where_accesses_found_their_pages() {
    let directory = with_scenario(TIERS);
    let run = |settings: &[&str]| -> serde_json::Value {
        let arguments = [&["run", "scenario.toml", "--json"], settings].concat();
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
    };
    let slow = run(&[]);
    let tiers = &slow["tiers"];
    let ratio = tiers["fast_hit_ratio"].as_f64().unwrap();
    assert!((0.5..0.8).contains(&ratio), "64 MiB of 96 are fast: {tiers}");
    let by_node: Vec<u64> = serde_json::from_value(tiers["accesses_by_node"].clone()).unwrap();
    assert_eq!(by_node.iter().sum::<u64>(), 100_000);
    let slower =
        run(&["--set", "machine.node.1.read_latency=2us", "--set", "machine.node.1.write_latency=2us"]);
    // Time moves a page or two: allocations meet other marks.
    let still: Vec<u64> = serde_json::from_value(slower["tiers"]["accesses_by_node"].clone()).unwrap();
    assert!(still[0].abs_diff(by_node[0]) < 100, "{still:?}, not {by_node:?}");
    assert!(slower["end_ns"].as_u64() > slow["end_ns"].as_u64());
    let p99 = |run: &serde_json::Value| run["tiers"]["access"]["p99_ns"].as_u64().unwrap();
    assert!(p99(&slower) > p99(&slow));
    let alike = run(&["--set", "machine.node.1.preset=dram"]);
    assert!(alike.get("tiers").is_none(), "ordinary memory has no tiers to tell of");
    let told = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(told.contains("of accesses in the top tier"), "{told}");
}
