//! The reference of keys and what scenarios really accept: generated from the declarations.

use pageout_sim::scenario::keys::{Accepts, KEYS, Key, WORKLOAD_KEYS};

use super::{check_success, pageout, text, with_scenario};

/// Everything that a key may be under, once.
const BASE: &str = r#"
[machine]
cpus = 4
[[memcg]]
path = "/a"
[[device]]
name = "d"
[[swap]]
size = "1GiB"
[[file]]
name = "f"
size = "1MiB"
[[task]]
name = "t"
[[task.object]]
channel = "anonymous"
workload = { pattern = "sequential" }
size = "1MiB"
[[event]]
at = "1s"
read = "/proc/vmstat"
"#;

/// The patterns, complete.
const PATTERNS: &[(&str, &str)] = &[
    ("sequential", "pages = 9"),
    ("loop", "pages = 9, ops = 9"),
    ("uniform", "pages = 9, ops = 9"),
    ("zipf", "pages = 9, ops = 9"),
    ("hot_set", "pages = 9, ops = 9"),
    ("zipf_scan", "pages = 9, ops = 9, scan_every = 9, scan_length = 1, scan_pages = 1"),
    ("phase_shift", "phases = [{ pages = 9, ops = 9 }]"),
    ("fill", "pages = 9"),
    ("runs", "pages = 9, ops = 9"),
    ("index", "pages = 9, ops = 9"),
    ("mix", "parts = [{ of = { pattern = \"fill\", pages = 9 } }]"),
    ("chain", "parts = [{ of = { pattern = \"fill\", pages = 9 } }]"),
    ("repeat", "times = 9, of = { pattern = \"fill\", pages = 9 }"),
    ("limit", "ops = 9, of = { pattern = \"fill\", pages = 9 }"),
];

/// A workload that outlasts any session.
const ENDLESS: &str = "task.t.object.0.workload={ pattern = \"uniform\", ops = 2000000000000000000 }";

/// A machine that pages can be promoted on.
const TWO_TIERS: &str = "machine.node=[{ memory = \"1GiB\" }, { memory = \"1GiB\", preset = \"cxl-1.1\" }]";

/// A machine of two sockets.
const TWO_SOCKETS: &str = "machine.node=[{ memory = \"1GiB\", cpus = 1 }, { memory = \"1GiB\", cpus = 1 }]";

macro_rules! eight_times {
    ($($text:tt)*) => {
        concat!(
            $($text)*, $($text)*, $($text)*, $($text)*, $($text)*, $($text)*, $($text)*, $($text)*
        )
    };
}

/// A machine with as many nodes as there may be.
const NODES: &str = concat!("machine.node=[", eight_times!(eight_times!("{ memory = \"1GiB\" }, ")), "]");

/// The schemes of [`DAMON`] with an entry of a list.
const GOAL: &str = "damon.0.scheme.0.quotas.goal=[{ target_value = 1 }]";
const NODE_GOAL: &str =
    "damon.0.scheme.0.quotas.goal=[{ target_value = 1, target_metric = \"node_mem_used_bp\", nid = 0 }]";
const ADDRESSES: &str =
    "damon.0.scheme.0.filter=[{ kind = \"addr\", addr_start = \"0\", addr_end = \"4TiB\" }]";
const FOLIO_SIZES: &str =
    "damon.0.scheme.0.filter=[{ kind = \"hugepage_size\", min = \"0\", max = \"4TiB\" }]";

/// A kdamond with a scheme.
const DAMON: &str = "[[damon]]\n[[damon.scheme]]\n";

/// Settings that the ends of a key's range need to make sense.
const COMPANIONS: &[(&str, &str)] = &[
    ("task[].cpu", "machine.cpus=4096"),
    ("machine.timeslice", "machine.price.context_switch=0s"),
    ("machine.price.context_switch", "machine.timeslice=1s"),
    ("sysctl.vm.min_free_kbytes", "machine.memory=8TiB"),
    ("task[].session.visits", ENDLESS),
    ("task[].session.dwell", "task.t.session.visits=1"),
    ("task[].session.dwell", ENDLESS),
    ("task[].session.busy", "task.t.session.visits=1"),
    ("task[].session.busy", ENDLESS),
    ("task[].session.recency", "task.t.session.visits=1"),
    ("task[].session.recency", ENDLESS),
    ("task[].session.first_ops", "task.t.session.visits=1"),
    ("task[].session.first_ops", ENDLESS),
    ("task[].session.visit_ops", "task.t.session.visits=1"),
    ("task[].session.visit_ops", ENDLESS),
    ("task[].depth", "task.t.object.0.channel=tmpfs"),
    (
        "kernel.sched.numa_balancing.scan_period_min_ms",
        "kernel.sched.numa_balancing.scan_period_max_ms=1000000",
    ),
    ("kernel.sched.numa_balancing.scan_period_max_ms", "kernel.sched.numa_balancing.scan_period_min_ms=1"),
    ("event[].times", "event.0.every=1s"),
    ("event[].add", "event=[{ at = \"1s\", write = \"/proc/sys/vm/swappiness\" }]"),
    ("event[].object", "event=[{ at = \"1s\", madvise = \"cold\", task = \"t\" }]"),
    ("event[].object", "task.t.object.0.channel=anonymous"),
    ("event[].until", "event.0.every=1s"),
    ("event[].until", "event.0.at=0ns"),
    ("task[].object[].request_size", "task.t.object.0.channel=tmpfs"),
    ("task[].object[].fsync_every", "task.t.object.0.channel=file"),
    ("task[].object[].copies_per_file", "task.t.object.0.channel=file"),
    ("task[].object[].truncate_every", "task.t.object.0.channel=file"),
    ("task[].object[].delete_every", "task.t.object.0.channel=file"),
    ("device[].read_ahead_kb", "device.d.max_sectors_kb=4194304"),
    ("device[].optimal_io_kb", "device.d.max_sectors_kb=4194304"),
    ("device[].read_p99", "device.d.read_latency=1ns"),
    ("device[].write_p99", "device.d.write_latency=1ns"),
    ("machine.node[].memory", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].movable", "machine.node=[{ memory = \"8TiB\" }]"),
    ("machine.node[].reserved", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].unmovable_blocks", "machine.node=[{ memory = \"64GiB\" }]"),
    ("machine.node[].distance", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].cpus", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].interleave_weight", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].cpus", "machine.cpus=4096"),
    ("machine.node[].read_latency", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].write_latency", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].read_bandwidth", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].write_bandwidth", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.node[].adistance", "machine.node=[{ memory = \"1GiB\" }]"),
    ("machine.remote_latency", TWO_SOCKETS),
    ("machine.remote_bandwidth", TWO_SOCKETS),
    ("machine.remote_bandwidth", "machine.remote_latency=62ns"),
    ("sysctl.kernel.numa_balancing", TWO_TIERS),
    ("sysctl.vm.pghot_record_hwhints_enable", TWO_TIERS),
    ("sysctl.vm.pghot_record_pgtscans_enable", TWO_TIERS),
    ("sysctl.vm.pghot_record_pgtscans_enable", "kernel.profile=mglru@6.12"),
    ("sysctl.vm.pghot_record_hintfaults_enable", TWO_TIERS),
    ("sysctl.vm.pghot_record_fma_enable", TWO_TIERS),
    ("machine.hints.unit", "machine.hints.preset=cxl-hmu"),
    ("machine.hints.counters", "machine.hints.preset=cxl-hmu"),
    ("machine.hints.threshold", "machine.hints.preset=cxl-hmu"),
    ("machine.hints.epoch", "machine.hints.preset=cxl-hmu"),
    ("machine.init_memory", "machine.memory=2GiB"),
    ("swap[].compressed_deciles", "swap.0.kind=zram"),
    ("swap[].contents", "swap.0.kind=zram"),
    ("swap[].compressed_min", "swap.0.kind=zram"),
    ("swap[].compressed_max", "swap.0.kind=zram"),
    ("swap[].same_filled", "swap.0.kind=zram"),
    ("swap[].memory_limit", "swap.0.kind=zram"),
    ("task[].object[].compressed_deciles", "task.t.object.0.channel=tmpfs"),
    ("task[].object[].contents", "task.t.object.0.channel=tmpfs"),
    ("task[].object[].compressed_min", "task.t.object.0.channel=tmpfs"),
    ("task[].object[].compressed_max", "task.t.object.0.channel=tmpfs"),
    ("task[].object[].same_filled", "task.t.object.0.channel=tmpfs"),
    ("task[].object[].zero_filled", "task.t.object.0.channel=tmpfs"),
    ("event[].every", "event.0.at=0s"),
    ("damon[].numa_node", NODES),
    ("damon[].intervals.sample_us", "damon.0.intervals.aggr_us=1000000000000"),
    ("damon[].intervals.aggr_us", "damon.0.intervals.sample_us=1"),
    ("damon[].nr_regions.min", "damon.0.nr_regions.max=1048576"),
    ("damon[].nr_regions.max", "damon.0.nr_regions.min=3"),
    ("damon[].region[].start", "damon.0.region=[{ start = \"0\", end = \"4TiB\" }]"),
    ("damon[].region[].end", "damon.0.region=[{ start = \"0\", end = \"4TiB\" }]"),
    ("damon[].scheme[].access_pattern.nr_accesses.min", "damon.0.intervals.sample_us=1"),
    ("damon[].scheme[].access_pattern.nr_accesses.min", "damon.0.intervals.aggr_us=4294967295"),
    ("damon[].scheme[].quotas.fail_charge_num", "damon.0.scheme.0.quotas.fail_charge_denom=4294967295"),
    ("damon[].scheme[].target_nid", "damon.0.scheme.0.action=migrate_hot"),
    ("damon[].scheme[].target_nid", NODES),
    ("damon[].scheme[].quotas.ms", "damon.0.scheme.0.quotas.reset_interval_ms=1"),
    ("damon[].scheme[].quotas.bytes", "damon.0.scheme.0.quotas.reset_interval_ms=1"),
    ("damon[].scheme[].quotas.goal[].target_value", GOAL),
    ("damon[].scheme[].quotas.goal[].target_value", "damon.0.scheme.0.quotas.reset_interval_ms=1"),
    ("damon[].scheme[].quotas.goal[].current_value", GOAL),
    ("damon[].scheme[].quotas.goal[].current_value", "damon.0.scheme.0.quotas.reset_interval_ms=1"),
    ("damon[].scheme[].quotas.goal[].nid", NODE_GOAL),
    ("damon[].scheme[].quotas.goal[].nid", "damon.0.scheme.0.quotas.reset_interval_ms=1"),
    ("damon[].scheme[].quotas.goal[].nid", NODES),
    ("damon[].scheme[].watermarks.high", "damon.0.scheme.0.watermarks.metric=free_mem_rate"),
    ("damon[].scheme[].watermarks.high", "damon.0.scheme.0.watermarks.interval_us=1"),
    ("damon[].scheme[].watermarks.mid", "damon.0.scheme.0.watermarks.metric=free_mem_rate"),
    ("damon[].scheme[].watermarks.mid", "damon.0.scheme.0.watermarks.interval_us=1"),
    ("damon[].scheme[].watermarks.mid", "damon.0.scheme.0.watermarks.high=1000"),
    ("damon[].scheme[].watermarks.low", "damon.0.scheme.0.watermarks.metric=free_mem_rate"),
    ("damon[].scheme[].watermarks.low", "damon.0.scheme.0.watermarks.interval_us=1"),
    ("damon[].scheme[].watermarks.low", "damon.0.scheme.0.watermarks.high=1000"),
    ("damon[].scheme[].watermarks.low", "damon.0.scheme.0.watermarks.mid=1000"),
    ("damon[].scheme[].filter[].addr_start", ADDRESSES),
    ("damon[].scheme[].filter[].addr_end", ADDRESSES),
    ("damon[].scheme[].filter[].damon_target_idx", "damon.0.scheme.0.filter=[{ kind = \"target\" }]"),
    ("damon[].scheme[].filter[].damon_target_idx", "damon.0.operations=vaddr"),
    ("damon[].scheme[].filter[].damon_target_idx", "damon.0.target=[\"t\"]"),
    ("damon[].scheme[].filter[].damon_target_idx", "task.t.copies=10000"),
    ("damon[].scheme[].filter[].min", FOLIO_SIZES),
    ("damon[].scheme[].filter[].max", FOLIO_SIZES),
    (
        "event[].timeout",
        "event=[{ at = \"1s\", write = \"/sys/fs/cgroup/memory.reclaim\", value = \"1MiB\" }]",
    ),
];

/// The scenario in which `path` is tried, and the key to set in it.
fn place_of(path: &str) -> (String, String) {
    let traced = |csv: &str| {
        let trace = format!(
            "trace = \"t.csv\"\nread = {{ format = \"csv\", csv = {{ page = \"#1\", header = false{csv} }} }}"
        );
        BASE.replace("workload = { pattern = \"sequential\" }\nsize = \"1MiB\"", &trace)
    };
    if let Some(option) = path.strip_prefix("read.") {
        return (traced(""), format!("task.t.object.0.read.{option}"));
    }
    if path == "task[].timed" {
        return (traced(", time = \"#2\", time_unit = \"s\""), "task.t.timed".to_owned());
    }
    if path.starts_with("damon[]") {
        return (BASE.to_string() + DAMON, path.replace("[]", ".0"));
    }
    let Some(parameter) = path.strip_prefix("workload.") else {
        return (BASE.to_string(), path.replace("[]", ".0"));
    };
    let (pattern, key) = parameter.split_once('.').expect("a key of a pattern");
    let known = PATTERNS.iter().find(|(name, _)| *name == pattern);
    let keys = known.unwrap_or_else(|| panic!("{path}: how is this pattern made?")).1;
    let table = format!("pattern = \"{pattern}\", {keys}");
    let text =
        BASE.replace("pattern = \"sequential\"", &table).replace("size = \"1MiB\"\n[[event]]", "[[event]]");
    (text, format!("task.t.object.0.workload.{}", key.replace("[]", ".0")))
}

/// Values that the reference says are accepted, and values next to them that are not.
fn ends(accepts: Accepts) -> Option<(Vec<String>, Vec<String>)> {
    let number = |number: i128| number.to_string();
    let size = |bytes: i128| format!("{bytes}B");
    let time = |ns: i128| format!("{ns}ns");
    let range = |least: i128, most: i128, show: &dyn Fn(i128) -> String| {
        let (mut good, mut bad) = (vec![show(least)], vec![show(least - 1)]);
        // Nothing beyond 2^63 can be written.
        if most < i128::from(i64::MAX) {
            good.push(show(most));
            bad.push(show(most + 1));
        }
        Some((good, bad))
    };
    let words = |good: &[&str], bad: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
        Some((owned(good), owned(bad)))
    };
    match accepts {
        Accepts::Integer(least, most) => range(least.into(), most.into(), &number),
        Accepts::Size(least, most) => range(least.into(), most.into(), &size),
        Accepts::Time(least, most) => range(least.into(), most.into(), &time),
        Accepts::Number(least, most) => {
            let beyond = [least - 0.001, most + 0.001].map(|number| number.to_string());
            Some((vec![least.to_string(), most.to_string()], beyond.to_vec()))
        }
        Accepts::Bandwidth => words(&["1B/s", "1TB/s"], &["0B/s", "-1B/s"]),
        Accepts::Deciles => words(
            &["\"1 1 1 1 1 1 1 1 1 1 1\"", "\"1 2 3 4 5 6 7 8 9 10 4096\""],
            &["\"0 1 1 1 1 1 1 1 1 1 1\"", "\"1 2 3 4 5 6 7 8 9 10 4097\"", "\"1 2\""],
        ),
        Accepts::Share => words(&["0", "1", "100%"], &["-0.001", "1.001", "101%"]),
        Accepts::Bool => words(&["true", "false"], &["1", "maybe"]),
        Accepts::Choice(_) | Accepts::Policy => {
            Some((accepts.words().iter().map(|word| format!("\"{word}\"")).collect(), vec!["maybe".into()]))
        }
        _ => None,
    }
}

fn all_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(WORKLOAD_KEYS.iter())
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn every_range_of_the_reference_is_accepted_to_its_ends_and_nothing_beyond() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for key in all_keys() {
        let is_range = !matches!(key.accepts, Accepts::Bool | Accepts::Choice(_) | Accepts::Policy);
        let Some((good, bad)) = ends(key.accepts).filter(|_| is_range) else { continue };
        let (scenario, path) = place_of(&key.path);
        let directory = with_scenario(&scenario);
        std::fs::write(directory.path().join("t.csv"), "1,1\n2,2\n").unwrap();
        let companions =
            COMPANIONS.iter().filter(|(with, _)| *with == key.path).map(|(_, companion)| *companion);
        let mut arguments = vec!["run", "scenario.toml", "--check"];
        arguments.extend(companions.flat_map(|companion| ["--set", companion]));
        arguments.push("--set");
        for (value, is_good) in
            good.iter().map(|value| (value, true)).chain(bad.iter().map(|value| (value, false)))
        {
            let setting = format!("{path}={value}");
            let output = pageout(directory.path(), &[arguments.as_slice(), &[&setting]].concat());
            let told = text(&output.stderr);
            let name = path.rsplit('.').next().expect("a path has an end");
            let is_named = told.contains(&format!("{name}`")) && told.contains(&format!("--set {setting}"));
            let is_right = match is_good {
                true => output.status.code() == Some(0),
                false => output.status.code() == Some(2) && is_named,
            };
            if !is_right {
                wrong.push(format!(
                    "{setting} should be {}:\n{told}",
                    if is_good { "accepted" } else { "refused by name" }
                ));
            }
        }
        tried += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 80, "{tried} ranges");
}

#[test]
fn a_nodes_preset_is_told_figure_by_figure_with_its_source() {
    let directory = with_scenario("");
    let told = check_success(&pageout(directory.path(), &["keys", "machine.node[].preset"]));
    for line in [
        "    dram: ordinary memory next to the CPU",
        "        read_latency = \"95ns\": middle of 80 to 110",
        "    cxl-1.1: memory behind its own CXL 1.1 link",
        "        read_bandwidth = \"64GB/s\": 16 lanes of PCIe 5.0",
        "    pmem: persistent memory",
        "        write_latency = \"94ns\": into the controller",
    ] {
        assert!(told.contains(line), "{line} is not in\n{told}");
    }
    let told = check_success(&pageout(directory.path(), &["keys", "machine.node[].preset", "--json"]));
    let keys: serde_json::Value = serde_json::from_str(&told).unwrap();
    let presets = keys[0]["presets"].as_array().unwrap();
    assert_eq!(presets.len(), 5);
    assert_eq!(presets[2]["figures"][0]["value"], "\"210ns\"");
}

#[test]
fn a_devices_preset_is_told_figure_by_figure_with_its_source() {
    let directory = with_scenario("");
    let told = check_success(&pageout(directory.path(), &["keys", "device[].preset"]));
    for line in [
        "    virtio: the virtual disk of the machine on which the costs were measured",
        "        read_p99 = \"75us\": measured with one request",
        "    hdd: a disk of 7,200 revolutions a minute",
        "        sequential_latency = \"100us\": typical of the class",
        "    nvme: flash behind PCIe 3, as in a server",
        "        iops = 600000: typical of the class",
        "        one request in 10000 takes 10 times the median: typical",
        "    pmem: persistent memory",
    ] {
        assert!(told.contains(line), "{line} is not in\n{told}");
    }
    let json = check_success(&pageout(directory.path(), &["keys", "device[].preset", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["presets"].as_array().unwrap().len(), 5);
    assert_eq!(json[0]["presets"][3]["figures"][0]["key"], "read_latency");
}

#[test]
fn policies_that_are_no_kernels_are_told_with_their_sources() {
    let directory = tempfile::tempdir().unwrap();
    let told = check_success(&pageout(directory.path(), &["keys", "kernel.profile"]));
    for listed in pageout_policy::POLICIES {
        assert!(told.contains(&format!("{}: ", listed.name)), "{told}");
    }
    assert!(told.contains("https://dl.acm.org/doi/10.1145/3600006.3613147"), "{told}");
}

#[test]
fn a_rules_versions_are_printed_after_its_default() {
    let directory = tempfile::tempdir().unwrap();
    let told = check_success(&pageout(directory.path(), &["keys", "kernel.reclaim.flusher_wake"]));
    let versions = "    default: that of the profile
    versions: scanned: classic LRU up to 2.6.35 (documented)
    versions: not known: classic LRU between 2.6.35 and 6.1.0
    versions: batch: classic LRU of 6.1 and later (read in 6.1.192, 6.12.117, 7.2.13, 7.3.4)
    versions: never: MGLRU of 6.1 to 6.12.0 (read in 6.1.192, 6.6; documented)
    versions: not known: MGLRU between 6.12.0 and 6.12.117
    versions: pass: MGLRU of 6.12.117 to 7.1 (read in 6.12.117; documented)
    versions: batch: MGLRU of 7.2 and later (read in 7.2.13)
";
    assert!(told.ends_with(versions), "{told}");
    let json = |key| -> serde_json::Value {
        let told = check_success(&pageout(directory.path(), &["keys", key, "--json"]));
        serde_json::from_str(&told).unwrap()
    };
    assert_eq!(json("kernel.folio_batch")[0]["versions"][1], "15: 4.15 to 6.8 (read in 6.1.192)");
    assert!(json("sysctl.vm.swappiness")[0].get("versions").is_none());
}
