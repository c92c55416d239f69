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
        "kernel.numa.pagecache_promotion_enabled=true",
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
    refused(&zero, &[], &["read_bandwidth", "0B/s is too small: the minimum is 1B/s", "scenario.toml:10"]);
    let zero = TIERS.replace("preset = \"cxl-1.1\"", "read_latency = \"0ns\"");
    refused(&zero, &[], &["read_latency", "too small", "scenario.toml:10"]);
    let misspelt = TIERS.replace("\"cxl-1.1\"", "\"cxl-1.2\"");
    refused(&misspelt, &[], &["`cxl-1.2`", "did you mean `cxl-1.1`?", "scenario.toml:10"]);
}

/// Only what has to be there before the run begins: a file that is read may be larger than memory, which is what reclaim is for.
#[test]
fn what_is_larger_than_all_nodes_cannot_be_there_before_the_run_begins() {
    let populated = |channel: &str, size: &str, node: u8| {
        let of = TIERS.replace("\"anonymous\"", &format!("\"{channel}\"")).replace("96MiB", size);
        of.replace("channel", &format!("populate_node = {node}\nchannel"))
    };
    for channel in ["mapped", "anonymous"] {
        let parts = ["193MiB do not fit on all nodes together, which have 192MiB", "scenario.toml:16"];
        refused(&populated(channel, "193MiB", 1), &["--check"], &parts);
    }
    let swap = "[[swap]]\nsize = \"64MiB\"\n";
    let fits = format!("{}{swap}", populated("anonymous", "193MiB", 1));
    check_success(&pageout(with_scenario(&fits).path(), &["run", "scenario.toml", "--check"]));
    refused(&populated("mapped", "8MiB", 2), &["--check"], &["there is no node 2", "nodes 0 to 1"]);
    let read = TIERS.replace("\"anonymous\"", "\"file\"").replace("96MiB", "193MiB");
    check_success(&pageout(with_scenario(&read).path(), &["run", "scenario.toml", "--check"]));
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
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
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
    let pghot = |name: &str| format!("/sys/kernel/debug/pghot/{name}");
    let written = [
        event("/proc/sys/vm/pghot_promote_rate_limit_MBps", "100"),
        event("/proc/sys/vm/pghot_enabled_sources", "1"),
        event(&pghot("enabled_sources"), "8"),
        event(&pghot("kmigrated_sleep_ms"), "50"),
        event(&pghot("kmigrated_batch_nr"), "64"),
    ];
    let directory = with_scenario(&format!("{TIERS}{}", written.concat()));
    check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    refused(
        &format!("{TIERS}{}", event(&pghot("kmigrated_sleep_ms"), "7")),
        &[],
        &["value = 7", "the minimum is 50"],
    );
    refused(&format!("{TIERS}{}", event(&pghot("target_nid"), "1")), &[], &["node 1 is of a lower tier"]);
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
    refused(TIERS, &unit, &["machine.hints.unit", "not a power of two"]);
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
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
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
    assert_eq!(still["tiers"]["offline_fast_hit_ratio"].as_f64(), Some(0.0), "and nothing may leave it");
    let told = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(told.contains("0.00% at best (offline, without promotion)"), "{told}");
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

/// One access in twenty goes to memory that is 230 ns further away: the median knows nothing of it, and the 99th percentile is it.
#[test]
fn the_99th_percentile_of_accesses_is_that_of_the_slow_ones() {
    let objects = r#"
[[task.object]]
channel = "anonymous"
size = "16MiB"
populate_node = 0
share = 95
workload = { pattern = "uniform", ops = 950000 }

[[task.object]]
channel = "anonymous"
size = "16MiB"
populate_node = 1
share = 5
workload = { pattern = "uniform", ops = 50000 }
"#;
    let (machine, _) = HOT_ON_SLOW.split_once("[[task.object]]").unwrap();
    let machine = machine.replace("cxl-1.1", "cxl-2.0-switch");
    let directory = with_scenario(&(machine + objects));
    let run = |settings: &[&str]| -> serde_json::Value {
        let arguments = [&["run", "scenario.toml", "--json"], settings].concat();
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
    };
    let access = |run: &serde_json::Value| run["tiers"]["access"].clone();
    let nanos = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap();
    let all = access(&run(&[]));
    assert_eq!(all["count"], 1_000_000);
    assert!((170..180).contains(&nanos(&all, "p50_ns")), "{all}");
    assert!((396..412).contains(&nanos(&all, "p99_ns")), "173 + 230: {all}");
    assert!(nanos(&all, "total_ns").abs_diff(1_000_000 * 173 + 50_000 * 230) < 100_000, "{all}");
    let thinking = access(&run(&["--set", "task.reader.think_time=1us"]));
    assert_eq!([&thinking["p50_ns"], &thinking["p99_ns"]], [&all["p50_ns"], &all["p99_ns"]]);
}

/// Sampling is off in the kernel, and a device counts whatever reaches it. [tiering 5.1, 5.4]
#[test]
fn what_read_copies_is_seen_by_memory_that_counts_and_by_no_processor_that_samples() {
    let (machine, _) = HOT_ON_SLOW.split_once("[[task.object]]").unwrap();
    let file = r#"
membind = "1"

[[task.object]]
channel = "file"
file = "data"
workload = { pattern = "uniform", ops = 1000000 }

[[file]]
name = "data"
size = "16MiB"
"#;
    let directory = with_scenario(&(machine.to_string() + file));
    let seen = |settings: &[&str]| -> u64 {
        let always = ["sysctl.vm.pghot_record_hwhints_enable=1"];
        let arguments = always.iter().chain(settings).flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["run", "scenario.toml", "--json"].into_iter().chain(arguments).collect();
        let run: serde_json::Value =
            serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
        run["vmstat"]["pghot_recorded_hwhints"].as_u64().unwrap()
    };
    for preset in ["machine.hints.preset=ibs", "machine.hints.preset=pebs"] {
        assert_eq!(seen(&[preset, "machine.hints.period=100"]), 0, "{preset}");
        let mapped = "task.reader.object.0.channel=mapped";
        assert!(seen(&[preset, "machine.hints.period=100", mapped]) > 1000, "{preset}, loads");
    }
    assert!(seen(&["machine.hints.preset=cxl-hmu"]) > 1000);
}

/// Memory that counts accesses by 2 MiB, on which a process begins.
const COUNTED: &str = r#"
[machine]
cpus = 1
hints.preset = "cxl-hmu"
hints.unit = "2MiB"

[[machine.node]]
memory = "64MiB"
cpus = 1

[[machine.node]]
memory = "64MiB"
preset = "cxl-1.1"

[kernel]
transparent_hugepage = "always"

[sysctl]
vm.pghot_record_hwhints_enable = 1

[[task]]
name = "job"

[[task.object]]
channel = "anonymous"
size = "16MiB"
populate_node = 1
workload = { pattern = "uniform", ops = 2_000_000 }
"#;

#[test]
fn a_huge_page_is_one_report_of_a_device_that_counts_units_of_pages_and_single_pages_are_one_each() {
    let directory = with_scenario(COUNTED);
    let reports = |huge: &str| {
        let huge = format!("kernel.transparent_hugepage={huge}");
        let told =
            check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json", "--set", &huge]));
        let vmstat = &serde_json::from_str::<serde_json::Value>(&told).unwrap()["vmstat"];
        assert_eq!(vmstat["pgpromote_success"], 4096, "all of it is in use");
        vmstat["pghot_recorded_hwhints"].as_u64().unwrap()
    };
    assert_eq!(reports("always"), 8, "of huge pages");
    assert!(reports("never") >= 4096);
}

#[test]
fn what_the_other_socket_costs_is_refused_where_there_is_none() {
    let sockets = TIERS.replace("memory = \"64MiB\"", "memory = \"64MiB\"\ncpus = 1");
    let sockets = sockets.replace("preset = \"cxl-1.1\"", "cpus = 1");
    for key in ["remote_latency=62ns", "remote_bandwidth=96GB/s"] {
        let key = format!("machine.{key}");
        refused(TIERS, &["--check", "--set", &key], &["fewer than two nodes", "two [[machine.node]] cpus"]);
    }
    let bandwidth = |rate: &str| format!("machine.remote_bandwidth={rate}");
    let no_effect = &["has no effect", "leave remote_latency at its 62ns"];
    let free = ["--check", "--set", "machine.remote_latency=0s", "--set"];
    refused(&sockets, &[&free[..], &[&bandwidth("96GB/s")]].concat(), no_effect);
    let both = ["--check", "--set", "machine.remote_latency=62ns", "--set"];
    refused(&sockets, &[&both[..], &[&bandwidth("0B/s")]].concat(), &["remote_bandwidth"]);
    refused(&sockets, &["--check", "--set", "machine.remote_latency=1h"], &["remote_latency"]);
    let directory = with_scenario(&sockets);
    check_success(&pageout(directory.path(), &[&["run", "scenario.toml"], &both[..3]].concat()));
}

/// Ordinary memory of two sockets: with nothing to pay for the other one it is all the same who accesses what. Else it costs 62 ns, with or
/// without memory of another kind beside it.
#[test]
fn an_access_is_priced_by_the_sockets_of_its_processor_and_its_memory() {
    let text = TIERS.replace("memory = \"64MiB\"", "memory = \"64MiB\"\ncpus = 1");
    let text = text.replace("preset = \"cxl-1.1\"", "cpus = 1");
    let text = text.replace("size = \"96MiB\"", "size = \"32MiB\"\npopulate_node = 1");
    let directory = with_scenario(&text);
    let run = |settings: &[&str]| -> f64 {
        let arguments = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["run", "scenario.toml", "--json"].into_iter().chain(arguments).collect();
        let run: serde_json::Value =
            serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
        run["tasks"][0]["runtime_ns"].as_f64().unwrap()
    };
    let [west, east] = ["task.reader.cpu=0", "task.reader.cpu=1"];
    let free = "machine.remote_latency=0s";
    let alike = run(&[west, free]);
    assert_eq!(alike, run(&[east, free]));
    assert_eq!(alike, run(&[east]), "it is beside its memory");
    assert_eq!(run(&[west]), alike + 62.0 * 100_000.0);
    assert_eq!(run(&[west]), run(&[west, "machine.remote_latency=62ns"]));
    let narrow = run(&[west, "machine.remote_bandwidth=100MB/s"]);
    assert!(narrow > 1.5 * alike, "6.4 MB through 100 MB/s are 64 ms: {narrow}, alone {alike}");
}

/// 16 MiB are eight scans of 2 MiB, so a first thread is scanned for every 125 ms.
#[test]
fn workers_of_a_process_whose_first_thread_waits_are_scanned_for_once_in_a_delay() {
    let directory = with_scenario(HOT_ON_SLOW);
    let run = |settings: &[&str]| -> serde_json::Value {
        let always = ["sysctl.kernel.numa_balancing=2", "kernel.sched.numa_balancing.scan_size_mb=2"];
        let longer = ["task.reader.stands_for=8", "task.reader.object.0.workload.ops=2000000"];
        let arguments = always.iter().chain(&longer).chain(settings).flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["run", "scenario.toml", "--json"].into_iter().chain(arguments).collect();
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
    };
    let promoted = |run: &serde_json::Value| run["tiers"]["promoted"].as_u64().unwrap();
    let works = run(&[]);
    assert_eq!(promoted(&works), 4096, "all of it");
    let waits = run(&["task.reader.first_thread=waits"]);
    let seconds = waits["end_ns"].as_u64().unwrap() / 1_000_000_000;
    assert!((2..8).contains(&seconds), "{seconds}");
    // The first second is over before anything is scanned.
    assert_eq!(promoted(&waits), (seconds - 1) * 512, "a scan a second");
    assert_eq!(waits["tasks"].as_array().unwrap().len(), 1, "it is nobody who runs");
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

/// A figure of a million accesses that stand for eight million says so, wherever it is.
#[test]
fn a_run_says_how_many_accesses_one_of_its_own_stands_for() {
    let directory = with_scenario(HOT_ON_SLOW);
    let few = ["--set", "task.reader.object.0.workload.ops=1000"];
    let run = |arguments: &[&str]| {
        check_success(&pageout(directory.path(), &[&["run", "scenario.toml"], &few[..], arguments].concat()))
    };
    let eight = ["--set", "task.reader.stands_for=8"];
    let told = run(&[&eight[..], &["--report", "page.html"]].concat());
    let page = std::fs::read_to_string(directory.path().join("page.html")).unwrap();
    for text in [&told, &page] {
        assert!(text.contains("1,000 accesses with a scale factor of 8, in "), "{text}");
        assert!(text.contains("Accesses have a scale factor: reader of 8."), "{text}");
    }
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&run(&[arguments, &["--json"]].concat())).unwrap()
    };
    let result = json(&eight);
    assert_eq!(result["tasks"][0]["stands_for"], 8);
    assert_eq!(result["notes"][0]["about"], "stands_for");
    assert!(!run(&[]).contains("scale factor"), "one is one");
    assert!(json(&[])["tasks"][0].get("stands_for").is_none());
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

/// A row of the firmware's table: memory that a node lacks comes from the nearest one as seen from there, whatever it looks like from others.
#[test]
fn a_row_of_distances_says_which_node_is_nearest_from_there() {
    let nodes = |row: &str| {
        let third = "preset = \"cxl-1.1\"\n\n[[machine.node]]\nmemory = \"128MiB\"\npreset = \"cxl-1.1\"";
        let text = TIERS.replace("preset = \"cxl-1.1\"", third);
        text.replacen("memory = \"64MiB\"", &format!("memory = \"64MiB\"\n{row}"), 1)
    };
    let by_node = |row: &str| -> Vec<u64> {
        let directory = with_scenario(&nodes(row));
        let told = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]));
        let run: serde_json::Value = serde_json::from_str(&told).unwrap();
        serde_json::from_value(run["tiers"]["accesses_by_node"].clone()).unwrap()
    };
    let (near, far) = (by_node("distances = [10, 32, 60]"), by_node("distances = [10, 60, 32]"));
    assert!(near[1] > 10_000 && near[2] == 0, "{near:?}");
    assert!(far[2] > 10_000 && far[1] == 0, "{far:?}");
    let key = "machine.node.1.distances";
    let from_another = ["run", "scenario.toml", "--json", "--set", "machine.node.1.distances=[60, 10, 11]"];
    let directory = with_scenario(&nodes("distances = [10, 32, 60]"));
    let run: serde_json::Value =
        serde_json::from_str(&check_success(&pageout(directory.path(), &from_another))).unwrap();
    assert_eq!(run["tiers"]["accesses_by_node"][2], 0, "{key} says nothing of the way from node 0");
    for (row, part) in [
        ("distances = [10, 32]", "found 2 distances, expected one for each of the 3 nodes"),
        ("distances = [11, 32, 60]", "found distance 11 to node 0"),
        ("distances = [10, 10, 60]", "found distance 10 to node 1"),
        ("distance = 32\ndistances = [10, 32, 60]", "`distance` is given, too"),
    ] {
        refused(
            &nodes(row),
            &["--check"],
            &[part, "10 for the node itself, 11 to 254 for others", "scenario.toml"],
        );
    }
}

/// What it costs to find pages in use is one figure, and its parts; each source has its own.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_run_with_tiers_tells_what_tracking_took_and_how_much_its_records_take() {
    let directory = with_scenario(HOT_ON_SLOW);
    let run = |settings: &[&str]| -> serde_json::Value {
        let arguments: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        let arguments = [&["run", "scenario.toml", "--json"], &arguments[..]].concat();
        let run: serde_json::Value =
            serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
        run["tiers"].clone()
    };
    let still = run(&[]);
    assert_eq!((&still["tracker_ns"], &still["hotness_bytes_per_slow_gib"]), (&0.into(), &0.into()));
    let parts = |tiers: &serde_json::Value| -> Vec<String> {
        let parts = tiers["tracker_by_part_ns"].as_object().unwrap();
        let times = parts.values().map(|time| time.as_u64().unwrap());
        assert_eq!(Some(times.sum::<u64>()), tiers["tracker_ns"].as_u64(), "{tiers}");
        parts.iter().filter(|(_, time)| **time != 0).map(|(part, _)| part.clone()).collect()
    };
    let often = "task.reader.object.0.workload.ops=15000000";
    let balancing = run(&["sysctl.kernel.numa_balancing=2", often]);
    assert_eq!(parts(&balancing), ["scans", "hint_faults"]);
    let walked = run(&["sysctl.vm.pghot_record_pgtscans_enable=1"]);
    assert_eq!(parts(&walked), ["klruscand", "kmigrated"]);
    let per_gib = walked["hotness_bytes_per_slow_gib"].as_u64().unwrap();
    assert!((1 << 18..1 << 20).contains(&per_gib), "a byte a page, in whole sections: {per_gib}");
    let sampled = run(&["sysctl.vm.pghot_record_hwhints_enable=1", "machine.hints.period=100"]);
    assert_eq!(parts(&sampled), ["records", "kmigrated", "samples"]);
    let text = check_success(&pageout(
        directory.path(),
        &["run", "scenario.toml", "--set", "sysctl.vm.pghot_record_pgtscans_enable=1"],
    ));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("for each GiB of slow memory; to find pages in use took"), "{text}");
}

/// Where a task's memory is to be, and what is wrong about it: file, line, key, and the fix.
#[test]
fn memory_policies_are_keys_and_nodes_that_are_not_there_are_refused() {
    let with = |keys: &str| TIERS.replace("name = \"reader\"", &format!("name = \"reader\"\n{keys}"));
    let by_node = |keys: &str| -> Vec<u64> {
        let directory = with_scenario(&with(keys).replace("96MiB", "24MiB"));
        let told = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]));
        let run: serde_json::Value = serde_json::from_str(&told).unwrap();
        serde_json::from_value(run["tiers"]["accesses_by_node"].clone()).unwrap()
    };
    assert_eq!(by_node("")[1], 0);
    assert_eq!(by_node("membind = \"1\"")[0], 0);
    assert_eq!(by_node("preferred_node = 1")[0], 0);
    let halves = by_node("interleave = \"0-1\"");
    assert!(halves[0].abs_diff(halves[1]) < 5_000, "{halves:?}");
    let thirds = by_node("weighted_interleave = \"0-1\"");
    assert!(thirds[0].abs_diff(thirds[1]) < 5_000, "weights are 1 each: {thirds:?}");
    for (keys, parts) in [
        ("membind = \"0,2\"", &["membind = ", "there is no node 2", "nodes 0 to 1", "scenario.toml:14"][..]),
        ("interleave = \"1-0\"", &["`1-0` is not a list of nodes", "for example", "scenario.toml:14"]),
        ("preferred_node = 5", &["preferred_node = 5", "there is no node 5"]),
        (
            "membind = \"1\"\ninterleave = \"0\"",
            &["more than one memory policy: membind, interleave", "keep one"],
        ),
        ("cpunodebind = \"1\"", &["no CPU belongs to node 1", "cpus = 2"]),
        ("cpunodebind = \"0\"\ncpu = 0", &["keep one of them"]),
        (
            "membind = \"0\"",
            &["96MiB of anonymous memory and tmpfs do not fit on node 0, which has 64MiB", "more nodes"],
        ),
    ] {
        refused(&with(keys), &["--check"], parts);
    }
    let bound = with("membind = \"0\"").replace("\"anonymous\"", "\"tmpfs\"");
    refused(&bound, &["--check"], &["96MiB of anonymous memory and tmpfs do not fit on node 0"]);
    let file = bound.replace("\"tmpfs\"", "\"file\"");
    check_success(&pageout(with_scenario(&file).path(), &["run", "scenario.toml", "--check"]));
    let grouped = format!("{TIERS}\n[[memcg]]\npath = \"/web\"\n\"cpuset.mems\" = \"7\"\n");
    refused(&grouped, &["--check"], &["there is no node 7"]);
}

#[test]
fn a_node_leaves_and_comes_back_while_tasks_run() {
    let event = |at: &str, node: u8, value: u8| {
        let path = format!("/sys/devices/system/node/node{node}/memory*/online");
        format!("[[event]]\nat = \"{at}\"\nwrite = \"{path}\"\nvalue = {value}\n")
    };
    let small =
        TIERS.replace("96MiB", "24MiB").replace("name = \"reader\"", "name = \"reader\"\npreferred_node = 1");
    let small = small.replace("memory = \"128MiB\"", "memory = \"128MiB\"\nmovable = \"128MiB\"");
    let directory = with_scenario(&format!("{small}{}{}", event("10ms", 1, 0), event("12ms", 1, 1)));
    let told = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]));
    let run: serde_json::Value = serde_json::from_str(&told).unwrap();
    let by_node: Vec<u64> = serde_json::from_value(run["tiers"]["accesses_by_node"].clone()).unwrap();
    assert!(by_node.iter().all(|&accesses| accesses > 1000), "{by_node:?}");
    let bound = small.replace("preferred_node = 1", "membind = \"1\"");
    let directory = with_scenario(&format!("{bound}{}", event("2ms", 1, 0)));
    let parts = &["on node 1, where the task is bound (membind, cpuset.mems) and which is offline", "online"];
    check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 1, parts);
    for (event, parts) in [
        (event("1ms", 0, 0), &["memory of a node with CPUs can't go offline", "without cpus"][..]),
        (event("1ms", 9, 0), &["there is no file of a node", "node1/memory*/online"]),
        (event("1ms", 1, 2), &["value", "2"]),
    ] {
        refused(&format!("{small}{event}"), &["--check"], parts);
    }
}

#[test]
fn hot_pages_are_not_sent_to_a_node_that_is_not_there_or_not_fast() {
    let target = |node: &str| format!("sysctl.vm.pghot_target_nid={node}");
    refused(TIERS, &["--check", "--set", &target("7")], &["there is no node 7", "nodes of the top tier: 0"]);
    refused(TIERS, &["--check", "--set", &target("1")], &["node 1 is of a lower tier", "top tier: 0"]);
    let written = |node: &str| {
        format!("{TIERS}[[event]]\nat = \"1ms\"\nwrite = \"/proc/sys/vm/pghot_target_nid\"\nvalue = {node}\n")
    };
    refused(&written("7"), &[], &["value = 7", "there is no node 7", "nodes of the top tier: 0"]);
    refused(&written("1"), &[], &["node 1 is of a lower tier", "nodes of the top tier: 0"]);
    check_success(&pageout(with_scenario(&written("0")).path(), &["run", "scenario.toml"]));
}

#[test]
fn slips_of_the_third_posting_are_refused_with_records_that_it_has_not() {
    let quirks = ["--check", "--set", "kernel.pghot.quirks=v3"];
    refused(TIERS, &quirks, &["kernel.pghot.quirks", "records of 8 bytes", "kernel.pghot.record = \"u64\""]);
    let posted = ["run", "scenario.toml", "--check", "--set", "kernel.pghot.record=u64"];
    check_success(&pageout(with_scenario(TIERS).path(), &[&posted[..], &quirks[1..]].concat()));
}

/// The published case, at 1/1024.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn where_all_is_hot_promotion_thrashes_and_the_governor_slows_it_down() {
    let directory = scenarios();
    let times = |settings: &[&str]| -> Vec<f64> {
        let arguments = [&["compare", "hot-beyond-fast-memory.toml", "--json"], settings].concat();
        let result: serde_json::Value =
            serde_json::from_str(&check_success(&pageout(&directory, &arguments))).unwrap();
        let variants = result["variants"].as_array().unwrap();
        let time = |variant: &serde_json::Value| {
            variant["metrics"]["task job-1: runtime_ns"]["mean"].as_f64().unwrap()
        };
        variants.iter().map(|variant| time(variant) / time(&variants[0])).collect()
    };
    // As the scenario has it, over a third of its passes.
    let passes = [1, 2, 3, 4].map(|job| format!("task.job-{job}.loops=6"));
    let settings: Vec<&str> = passes.iter().flat_map(|passes| ["--set", passes]).collect();
    let whole = times(&settings);
    assert!(whole[1] > 1.05 && whole[2] < whole[1], "{whole:?}");
}

/// Hot memory of several sizes beside fast memory of 128 MiB, from one that fits to one that does not, each page standing for some.
#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_governor_promotes_no_more_than_there_would_be_and_costs_no_throughput() {
    let text = |size: u32, hot: &str, stands_for: u32| {
        format!(
            r#"
until = "5s"
[machine]
cpus = 2
page_stands_for = {stands_for}
costs = "tiered-2025"
[[machine.node]]
memory = "128MiB"
cpus = 2
[[machine.node]]
memory = "256MiB"
preset = "cxl-1.1"
[kernel]
numa.demotion_enabled = true
[sysctl]
kernel.numa_balancing = 2
[[task]]
name = "app"
threads = 2
[[task.object]]
channel = "anonymous"
size = "{size}MiB"
workload = {{ pattern = "chain", parts = [{{ of = {{ pattern = "fill" }} }}, {{ of = {{ pattern = "hot_set", hot_pages_fraction = {hot}, hot_access_fraction = 0.95, ops = 1_000_000_000 }} }}] }}
"#
        )
    };
    for (size, hot, stands_for) in [
        (160, "0.75", 64),
        (220, "0.3", 64),
        (220, "0.75", 64),
        (220, "0.75", 16),
        (300, "0.3", 64),
        (300, "0.9", 64),
    ] {
        let directory = with_scenario(&text(size, hot, stands_for));
        let run = |window: &str| -> [f64; 3] {
            let governor = format!("kernel.numa.promotion_governor_ms={window}");
            let arguments = ["run", "scenario.toml", "--json", "--set", &governor];
            let run: serde_json::Value =
                serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
            let accesses =
                run["tasks"].as_array().unwrap().iter().map(|task| task["accesses"].as_f64().unwrap());
            let accesses: f64 = accesses.sum();
            let count = |name: &str| run["vmstat"][name].as_f64().unwrap();
            [accesses, count("pgpromote_success"), count("numa_hint_faults") / accesses]
        };
        let ([accesses, promoted, faults], governed) = (run("0"), run("1000"));
        let told = format!("{size} MiB, {hot} of it hot, each stands for {stands_for}: {governed:?}");
        assert!(governed[0] >= 0.999 * accesses, "{told}, {accesses} accesses without");
        assert!(governed[1] <= promoted, "{told}, {promoted} promoted without");
        assert!(governed[2] <= 1.02 * faults, "{told}, {faults} faults an access without");
    }
}

/// A tenth of a process has nine tenths of its accesses, and three times it is another tenth. Fast memory has room for it, and for more.
const SHIFTING: &str = r#"
[sysctl]
kernel.numa_balancing = 2
vm.pghot_record_hintfaults_enable = 1

[kernel]
numa.demotion_enabled = true

[machine]
cpus = 2

[[machine.node]]
memory = "32MiB"
cpus = 2

[[machine.node]]
memory = "64MiB"
preset = "cxl-1.1"

[[task]]
name = "server"
cpu = 0
stands_for = 1024

[[task.object]]
channel = "anonymous"
size = "80MiB"
workload = { pattern = "chain", parts = [{ of = { pattern = "fill" } }, { of = { pattern = "hot_set", ops = 375_000, hot_pages_fraction = 0.1, hot_access_fraction = 0.9, move_every = 125_000, write_ratio = 0.2 } }] }
"#;

/// Both sources of hotness: recorded hint faults, and scans of page tables.
#[test]
fn the_governor_does_not_take_a_hot_set_that_moves_for_thrash() {
    let scans = SHIFTING
        .replace("pghot_record_hintfaults_enable", "pghot_record_pgtscans_enable")
        .replace("[kernel]", "[kernel]\nprofile = \"mglru@6.12\"");
    for scenario in [SHIFTING, &scans] {
        let (without, with) = (governed_time(scenario, 0), governed_time(scenario, 1000));
        assert!(with < 1.03 * without, "{with} ns, {without} without a governor");
    }
}

fn governed_time(scenario: &str, window_ms: u32) -> f64 {
    let directory = with_scenario(scenario);
    let setting = format!("kernel.numa.promotion_governor_ms={window_ms}");
    let arguments = ["run", "scenario.toml", "--json", "--set", &setting];
    let result = check_success(&pageout(directory.path(), &arguments));
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    result["tasks"][0]["runtime_ns"].as_f64().unwrap()
}

#[test]
fn where_nothing_is_promoted_no_time_is_told_by_which_it_was() {
    let run = |name: &str| {
        let path = scenarios().join(name);
        check_success(&pageout(std::path::Path::new("."), &["run", path.to_str().unwrap(), "--quiet"]))
    };
    let demoted = run("demotion.toml");
    assert!(demoted.contains("\n  0 pages promoted to the top tier, 7,767 demoted from it\n"), "{demoted}");
    assert!(!demoted.contains("nine tenths"), "{demoted}");
    let promoted = run("two-sockets.toml").split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["nine tenths of where it ended by", "of them back within 10 s", "bytes moved per useful byte"]
    {
        assert!(promoted.contains(part), "{part}: {promoted}");
    }
}
