//! Tracepoints of a run: the text is that of a real kernel, and what it adds up to is what the run itself has counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, run_with, scenarios, text, with_scenario};

/// Two groups and more tasks than CPUs, one of them with threads; swap, so that reclaim writes.
const BUSY: &str = r#"
[machine]
cpus = 2
memory = "64MiB"

[[memcg]]
path = "/web"
memory.max = "2MiB"

[[device]]
name = "nvme"

[[swap]]
size = "64MiB"
kind = "disk"

[[task]]
name = "kworker/0:1 [x]"
memcg = "/web"

[[task.object]]
channel = "file"
size = "4MiB"
workload = { pattern = "zipf", ops = 8000 }

[[task]]
name = "anonymous"
memcg = "/web"
threads = 2

[[task.object]]
channel = "anonymous"
size = "2MiB"
workload = { pattern = "uniform", ops = 3000, write_ratio = 0.5 }

[[task]]
name = "reader"

[[task.object]]
channel = "file"
size = "128MiB"
workload = { pattern = "zipf", alpha = 0.9, ops = 60000 }
"#;

/// A task that dirties pages faster than its device writes them.
const WRITER: &str = r#"
[machine]
cpus = 2
memory = "128MiB"

[[device]]
name = "disk"
preset = "hdd"

[[task]]
name = "writer"

[[task.object]]
channel = "file"
size = "48MiB"
workload = { pattern = "uniform", ops = 30000, write_ratio = 1.0 }
"#;

/// Anonymous memory on zram, whose pool has holes when it is read back.
const COMPRESSED: &str = r#"
[machine]
cpus = 1
memory = "64MiB"

[[swap]]
size = "128MiB"
kind = "zram"

[[task]]
name = "anonymous"

[[task.object]]
channel = "anonymous"
size = "80MiB"
workload = { pattern = "zipf", ops = 200000, write_ratio = 0.5 }
"#;

/// Events that kernels have for reclaim, DAMON and writeback, and whether a run tells them. Nothing is modelled that would tell the others: a
/// device's own pages, which hold metadata, and a flusher that waits for somebody else who is at a file's inode. Who calls fsync(2) writes
/// the file's pages beside it, and keeps no flusher from the inode.
const LISTED: &[(&str, bool)] = &[
    ("mm_vmscan_kswapd_sleep", true),
    ("mm_vmscan_kswapd_wake", true),
    ("mm_vmscan_wakeup_kswapd", true),
    ("mm_vmscan_direct_reclaim_begin", true),
    ("mm_vmscan_direct_reclaim_end", true),
    ("mm_vmscan_memcg_reclaim_begin", true),
    ("mm_vmscan_memcg_reclaim_end", true),
    ("mm_vmscan_memcg_softlimit_reclaim_begin", true),
    ("mm_vmscan_memcg_softlimit_reclaim_end", true),
    ("mm_vmscan_node_reclaim_begin", true),
    ("mm_vmscan_node_reclaim_end", true),
    ("damon_aggregated", true),
    ("damos_before_apply", true),
    ("mm_shrink_slab_start", true),
    ("mm_shrink_slab_end", true),
    ("mm_vmscan_lru_isolate", true),
    ("mm_vmscan_lru_shrink_inactive", true),
    ("mm_vmscan_lru_shrink_active", true),
    ("mm_vmscan_write_folio", true),
    ("mm_vmscan_throttled", true),
    ("writeback_dirty_folio", true),
    ("folio_wait_writeback", true),
    ("global_dirty_state", true),
    ("balance_dirty_pages", true),
    ("bdi_dirty_ratelimit", true),
    ("wbc_writepage", false),
    ("writeback_wake_background", true),
    ("writeback_queue", true),
    ("writeback_exec", true),
    ("writeback_start", true),
    ("writeback_written", true),
    ("writeback_wait", false),
    ("writeback_pages_written", true),
    ("writeback_queue_io", true),
    ("writeback_single_inode_start", true),
    ("writeback_single_inode", true),
    ("writeback_write_inode_start", true),
    ("writeback_write_inode", true),
    ("writeback_mark_inode_dirty", true),
    ("writeback_dirty_inode_start", true),
    ("writeback_dirty_inode", true),
    ("writeback_dirty_inode_enqueue", true),
    ("sb_mark_inode_writeback", true),
    ("sb_clear_inode_writeback", true),
];

/// A run of `scenario` with `--trace NAME` and more options: its result, and the trace.
#[track_caller]
fn traced(scenario: &str, name: &str, more: &[&str]) -> (Value, Vec<u8>) {
    let directory = with_scenario(scenario);
    let arguments = [&["run", "scenario.toml", "--json", "--trace", name], more].concat();
    let result = check_success(&pageout(directory.path(), &arguments));
    let trace = fs::read(directory.path().join(name)).unwrap();
    (serde_json::from_str(&result).unwrap(), trace)
}

/// What vmscan-report makes of a trace.
#[track_caller]
fn report(trace: &[u8]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("trace.txt"), trace).unwrap();
    let report = check_success(&pageout(directory.path(), &["vmscan-report", "trace.txt", "--json"]));
    serde_json::from_str::<Value>(&report).unwrap()["traces"][0].take()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The report of a trace says of each task, of kswapd and of the whole what the run says of itself.
#[track_caller]
fn check_round_trip(scenario: &str, more: &[&str]) {
    let (result, trace) = traced(scenario, "trace.txt", &[&["--trace-nanoseconds"], more].concat());
    let report = report(&trace);
    let processes = report["processes"].as_array().unwrap();
    let of_class = |class: &str, figure: &dyn Fn(&Value) -> u64| -> u64 {
        processes.iter().map(|process| figure(&process[class])).sum()
    };
    // Stalls: each task's time, and all calls.
    for task in result["tasks"].as_array().unwrap() {
        let name: String = task["name"].as_str().unwrap().chars().take(15).collect();
        let own = processes.iter().filter(|process| process["comm"] == name.as_str());
        let stalled: u64 = own
            .flat_map(|process| {
                ["direct", "memcg"].map(|class| number(&process[class]["stalled"]["total_ns"]))
            })
            .sum();
        assert_eq!(stalled, task["reclaim_time_ns"], "{name}");
    }
    let calls = ["direct", "memcg"].map(|class| of_class(class, &|of| number(&of["calls"])));
    assert_eq!(calls.iter().sum::<u64>(), result["reclaim"]["count"], "calls");
    let stalls: u64 = ["allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable"]
        .iter()
        .map(|zone| number(&result["vmstat"][zone]))
        .sum();
    assert_eq!(calls[0], stalls, "direct calls");
    // Pages looked at and freed, by whom. Those of groups are in the groups' counters alone.
    let pages = |class: &str, what: &str| of_class(class, &|of| number(&of["work"][what]["total"]));
    let vmstat = |name: &str| number(&result["vmstat"][name]);
    let groups = |name: &str| -> u64 {
        let groups = result["memcgs"].as_array().unwrap().iter();
        groups.filter(|group| group["path"] == "/web").map(|group| number(&group["counters"][name])).sum()
    };
    for (of_global, of_groups, what) in [("pgscan", "pgscan", "taken"), ("pgsteal", "pgsteal", "reclaimed")] {
        assert_eq!(pages("direct", what), vmstat(&format!("{of_global}_direct")), "{what}");
        let kswapd = pages("kswapd", what);
        assert_eq!(kswapd, vmstat(&format!("{of_global}_kswapd")), "{what} by kswapd");
        if calls[1] > 0 {
            // kswapd and direct reclaim come by the group as well.
            let of_machine = pages("direct", what) + kswapd;
            let all = groups(of_groups);
            assert!(
                (pages("memcg", what)..=pages("memcg", what) + of_machine).contains(&all),
                "{what} of groups"
            );
        }
    }
    let written = ["direct", "memcg", "kswapd"]
        .map(|class| of_class(class, &|of| number(&of["work"]["written_async"]["total"])));
    assert_eq!(written.iter().sum::<u64>(), vmstat("nr_vmscan_write"), "pages written");
    // kswapd: as often to work as it says.
    let wakes = of_class("kswapd", &|of| number(&of["wakeups"]) + number(&of["wakeups_while_awake"]));
    assert_eq!(wakes, vmstat("pageoutrun"), "kswapd's runs");
}

#[test]
fn a_report_of_the_trace_says_what_the_run_itself_has_counted() {
    check_round_trip(BUSY, &[]);
    check_round_trip(BUSY, &["--set", "kernel.profile=mglru@6.12"]);
    let machine = fs::read_to_string(scenarios().join("whole-machine.toml")).unwrap();
    check_round_trip(&machine, &["--set", "machine.cpus=1"]);
}

#[test]
fn the_dialect_of_2010_says_the_same() {
    let (_, modern) = traced(BUSY, "trace.txt", &[]);
    let (_, early) = traced(BUSY, "trace.txt", &["--trace-dialect", "2010"]);
    let [modern, early] = [modern, early].map(|trace| report(&trace));
    assert_eq!((&early["read"]["dialect"], &modern["read"]["dialect"]), (&"2010".into(), &"modern".into()));
    for (one, other) in
        modern["processes"].as_array().unwrap().iter().zip(early["processes"].as_array().unwrap())
    {
        for class in ["direct", "memcg", "kswapd"] {
            for figure in ["calls", "reclaimed", "stalled", "wakeups"] {
                assert_eq!(one[class][figure], other[class][figure], "{class} {figure}");
            }
            // Isolation did not tell types then; what is written did.
            let total = |of: &Value, what: &str| number(&of[class]["work"][what]["total"]);
            for what in ["scanned", "reclaimed", "written_async"] {
                assert_eq!(total(one, what), total(other, what), "{class} {what}");
            }
        }
    }
}

/// A line's parts: what stands before the time by place, and the event with the names of its fields in order.
fn shape(line: &str) -> Option<(String, Vec<String>)> {
    let (head, rest) = line.split_once(": ")?;
    let (event, fields) = rest.split_once(": ")?;
    assert!(!head.is_empty());
    // Some lines have their fields as words: `dev 254,0 ino 12`.
    let is_word = |field: &&str| field.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let names = fields.split(' ').filter_map(|field| match field.split_once('=') {
        Some((name, _)) => Some(name),
        None => Some(field).filter(|field| !field.is_empty()).filter(is_word),
    });
    Some((event.to_string(), names.map(str::to_string).collect()))
}

#[test]
fn events_have_the_fields_of_recorded_ones_in_their_order() {
    let mut recorded: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth/ftrace");
    for file in fs::read_dir(directory).unwrap() {
        let bytes = zstd::decode_all(fs::File::open(file.unwrap().path()).unwrap()).unwrap();
        let trace = text(&bytes);
        recorded.extend(trace.lines().filter(|line| !line.starts_with('#')).filter_map(shape));
    }
    recorded.extend(INODE_EVENTS.rsplit("\n\n").next().unwrap().lines().filter_map(shape));
    let mut met = BTreeSet::new();
    let generations: &[&str] = &["--set", "kernel.profile=mglru@6.12"];
    for (scenario, more) in [(BUSY, &[][..]), (BUSY, generations), (WRITER, &[]), (HELD_UP, &[])] {
        let (_, trace) = traced(scenario, "trace.txt", more);
        for line in text(&trace).lines().filter(|line| !line.starts_with('#')) {
            let (event, names) = shape(line).expect(line);
            if let Some(of_kernel) = recorded.get(&event) {
                assert_eq!(&names, of_kernel, "{line}");
                met.insert(event);
            }
        }
    }
    let expected = [
        "mm_vmscan_direct_reclaim_begin",
        "mm_vmscan_direct_reclaim_end",
        "mm_vmscan_kswapd_wake",
        "mm_vmscan_lru_isolate",
        "mm_vmscan_lru_shrink_active",
        "mm_vmscan_lru_shrink_inactive",
        "mm_vmscan_memcg_reclaim_begin",
        "mm_vmscan_memcg_reclaim_end",
        "mm_vmscan_wakeup_kswapd",
        "mm_vmscan_write_folio",
        "global_dirty_state",
        "sb_clear_inode_writeback",
        "sb_mark_inode_writeback",
        "writeback_dirty_folio",
        "writeback_dirty_inode",
        "writeback_dirty_inode_enqueue",
        "writeback_dirty_inode_start",
        "writeback_mark_inode_dirty",
        "writeback_queue_io",
        "writeback_single_inode",
        "writeback_single_inode_start",
        "writeback_start",
        "writeback_write_inode",
        "writeback_write_inode_start",
        "writeback_written",
    ];
    for event in expected {
        assert!(met.contains(event), "{event} is not in the trace, or was not recorded");
    }
}

#[test]
fn each_event_that_kernels_have_is_told_or_is_of_what_is_not_modelled() {
    let told: BTreeSet<&str> = LISTED.iter().filter(|(_, is_told)| *is_told).map(|&(name, _)| name).collect();
    assert_eq!(told, pageout_engine::Tracepoint::names().collect());
}

/// What a kernel has told of a file that is written.
const INODE_EVENTS: &str = include_str!("recorded-inode-events.txt");

/// The events of an inode with the flags of their lines, and which follows which in the same task.
fn inode_events(trace: &str, ino: u32) -> BTreeSet<String> {
    let (as_field, as_word) = (format!("ino={ino} "), format!(" ino {ino} "));
    let mut last: BTreeMap<&str, String> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for line in trace.lines().filter(|line| line.contains(&as_field) || line.contains(&as_word)) {
        let (head, said) = line.split_once(": ").unwrap();
        let (event, fields) = said.split_once(": ").unwrap();
        let flags = fields.split(' ').filter(|word| word.contains("I_DIRTY") || word.contains("I_SYNC"));
        let told = flags.clone().fold(event.to_string(), |told, flag| format!("{told} {flag}"));
        found.insert(told);
        // Whoever runs is interrupted by the device.
        if event != "sb_clear_inode_writeback" {
            let added = flags.filter(|flag| flag.starts_with("flags="));
            let step = added.fold(event.to_string(), |step, flag| format!("{step} {flag}"));
            let task = head.split_once('[').unwrap().0;
            if let Some(before) = last.insert(task, step.clone()) {
                found.insert(format!("{before} > {step}"));
            }
        }
    }
    found
}

/// A file of a group that is held to its dirty limit, as in the recorded run.
const HELD_UP: &str = r#"
[machine]
cpus = 1
memory = "1GiB"

[[device]]
name = "disk"
preset = "nvme"

[[memcg]]
path = "/writers"
memory.max = "26MiB"

[[task]]
name = "writer"
memcg = "/writers"
think_time = "100us"

[[task.object]]
channel = "file"
size = "64MiB"
advice = "random"
workload = { pattern = "uniform", ops = 40000, write_ratio = 0.7 }
"#;

#[test]
fn what_happens_to_a_file_that_is_written_is_told_as_recorded() {
    let recorded: BTreeSet<String> = INODE_EVENTS.lines().map(str::to_string).collect();
    let (_, trace) = traced(HELD_UP, "trace.txt", &[]);
    let simulated = inode_events(&text(&trace), 12);
    let unknown: Vec<_> = simulated.difference(&recorded).collect();
    assert!(unknown.is_empty(), "not in the recorded traces: {unknown:#?}");
    assert!(simulated.len() >= 48, "{simulated:#?}");
}

#[test]
fn what_is_asked_of_the_flusher_of_another_group_is_taken_up() {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = fs::read_to_string(scenarios.join("files-of-another-group.toml")).unwrap();
    let (_, trace) = traced(&scenario, "trace.txt", &["--trace-events", "writeback_queue,writeback_exec"]);
    let trace = text(&trace);
    let events = trace.lines().filter(|line| !line.starts_with('#'));
    let asked: Vec<bool> = events
        .inspect(|line| assert!(line.contains("reason=foreign_flush"), "{line}"))
        .map(|line| line.contains(" writeback_queue: "))
        .collect();
    assert!(asked.len() > 100);
    assert!(asked.chunks(2).all(|pair| pair == [true, false]), "asked for once, then taken up");
}

#[test]
fn shrinkers_tell_what_they_were_asked_in_the_words_of_recorded_ones() {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth/ftrace/ft-glmix.mglru.t.txt.zst");
    let recorded = text(&zstd::decode_all(fs::File::open(recorded).unwrap()).unwrap());
    // Words without the numbers, and without the flags of the request and the place of the shrinker.
    let words = |line: &str| -> Option<Vec<String>> {
        let (_, said) = line.split_once(": mm_shrink_slab_")?;
        said.contains("zs_shrinker_scan").then(|| {
            let is_word = |word: &&str| word.parse::<i64>().is_err() && !word.starts_with("GFP_");
            said.split(' ').filter(is_word).filter(|word| word.len() < 17).map(str::to_string).collect()
        })
    };
    let shapes = |trace: &str| -> BTreeSet<Vec<String>> { trace.lines().filter_map(words).collect() };
    let (_, trace) = traced(COMPRESSED, "trace.txt", &[]);
    let trace = text(&trace);
    assert_eq!(shapes(&trace), shapes(&recorded));
    let count = |what: &str| trace.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("mm_shrink_slab_start"), count("mm_shrink_slab_end"));
    // A kernel of 2010 has none of it.
    let (_, early) = traced(COMPRESSED, "trace.txt", &["--trace-dialect", "2010"]);
    assert!(!text(&early).contains("mm_shrink_slab"));
    let (_, perfetto) = traced(COMPRESSED, "trace.json", &[]);
    let events: Value = serde_json::from_slice(&perfetto).unwrap();
    let ends = |event: &&Value| event["name"] == "mm_shrink_slab_end";
    let end = events["traceEvents"].as_array().unwrap().iter().find(ends).unwrap();
    assert!(end["args"]["text"].as_str().unwrap().contains("last shrinker return val"));
}

#[test]
fn lines_have_the_columns_of_recorded_ones() {
    let recorded =
        "         kswapd0-33      [001] d....   245.099401: mm_vmscan_lru_isolate: classzone=2 order=0 ";
    let columns = |line: &str| -> Vec<usize> {
        ["-", "[", "] ", ".", ": mm"].iter().map(|part| line.find(part).expect(line)).collect()
    };
    let (_, trace) = traced(BUSY, "trace.txt", &["--trace-events", "mm_vmscan_lru_isolate"]);
    let trace = text(&trace);
    let line = trace.lines().find(|line| line.contains("kswapd0-")).unwrap();
    assert_eq!(columns(line), columns(recorded), "{line}");
    assert!(trace.starts_with("# tracer: nop\n#\n"), "{trace}");
    // A name of any length stays in front of its number.
    assert!(trace.contains(" kworker/0:1 [x]-1001    [00"), "{trace}");
}

#[test]
fn a_trace_begins_as_recorded_ones_do_and_says_how_many_lines_follow() {
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth/ftrace/ft-global.classic.t.txt.zst");
    let recorded = text(&zstd::decode_all(fs::File::open(recorded).unwrap()).unwrap());
    // Without the numbers, and the blanks that stand for their digits.
    let head = |trace: &str| -> Vec<String> {
        let lines = trace.lines().take_while(|line| line.starts_with('#'));
        lines.map(|line| line.trim_end().replace(|c: char| c.is_ascii_digit(), "")).collect()
    };
    let (_, trace) = traced(BUSY, "trace.txt", &[]);
    let trace = text(&trace);
    assert_eq!(head(&trace), head(&recorded).iter().map(|line| line.trim_end()).collect::<Vec<_>>());
    let lines = trace.lines().count() - 12;
    assert!(
        trace.contains(&format!("entries-written: {lines}/{lines}   #P:2\n#")),
        "{lines} lines\n{}",
        &trace[..400]
    );
    // What can't be gone back to says nothing of it.
    let directory = with_scenario(BUSY);
    let piped = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--trace", "-"]));
    let (_, compressed) = traced(BUSY, "trace.txt.zst", &[]);
    let compressed = text(&zstd::decode_all(&compressed[..]).unwrap());
    for trace in [piped, compressed] {
        assert_eq!(trace.lines().filter(|line| line.starts_with('#')).count(), 10, "{}", &trace[..400]);
    }
    let (_, early) = traced(BUSY, "trace.txt", &["--trace-dialect", "2010"]);
    assert_eq!(text(&early).lines().filter(|line| line.starts_with('#')).count(), 4);
}

#[test]
fn a_run_with_a_trace_is_the_same_run_and_times_go_forwards() {
    let plain = {
        let directory = with_scenario(BUSY);
        check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]))
    };
    let (result, trace) = traced(BUSY, "trace.txt", &[]);
    assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), result);
    let trace = text(&trace);
    let times = trace.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let time = line.split(": ").next().unwrap().rsplit(' ').next().unwrap();
        time.parse::<f64>().expect(line)
    });
    let times: Vec<f64> = times.collect();
    assert!(times.len() > 1000 && times.is_sorted(), "{} lines", times.len());
    assert_eq!(traced(BUSY, "trace.txt", &[]).1, trace.into_bytes(), "same run, same bytes");
}

#[test]
fn only_the_events_that_were_named_are_written() {
    let (_, trace) =
        traced(BUSY, "trace.txt", &["--trace-events", "mm_vmscan_kswapd_*,mm_vmscan_write_folio"]);
    let trace = text(&trace);
    let events: BTreeSet<String> = trace
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(shape)
        .map(|(event, _)| event)
        .collect();
    assert_eq!(Vec::from_iter(&events), ["mm_vmscan_kswapd_wake", "mm_vmscan_write_folio"]);
    let output =
        run_with("[[memcg]]", "[[memcg]]", &["--trace", "t.txt", "--trace-events", "mm_vmscan_kswapd_wak"]);
    check_failure(
        &output,
        2,
        &[
            "--trace-events: unknown tracepoint `mm_vmscan_kswapd_wak`",
            "did you mean `mm_vmscan_kswapd_wake`?",
        ],
    );
}

#[test]
fn a_suffix_compresses_and_a_dash_is_standard_output() {
    let (_, trace) = traced(BUSY, "trace.txt", &[]);
    let (_, compressed) = traced(BUSY, "trace.txt.zst", &[]);
    assert!(compressed.len() * 3 < trace.len());
    let events = |trace: &str| -> String {
        trace.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
    };
    let expected = events(&text(&trace));
    assert!(events(&text(&zstd::decode_all(&compressed[..]).unwrap())) == expected);
    let directory = with_scenario(BUSY);
    let output = pageout(directory.path(), &["run", "scenario.toml", "--trace", "-"]);
    assert!(events(&check_success(&output)) == expected);
    assert!(text(&output.stderr).contains("accesses"), "{}", text(&output.stderr));
    let output = pageout(directory.path(), &["run", "scenario.toml", "--trace", "-", "--json"]);
    check_failure(&output, 2, &["--trace - and --json: only one of them can use standard output"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_trace_that_can_not_be_written_is_told() {
    for arguments in [&["--trace", "/dev/full"][..], &["--trace", "/dev/full", "--trace-events", "*_begin"]] {
        let output = run_with("[[memcg]]", "[[memcg]]", arguments);
        check_failure(&output, 3, &["No space left on device"]);
    }
    let output = run_with("[[memcg]]", "[[memcg]]", &["--trace", "no/such/directory/t.txt"]);
    check_failure(&output, 3, &["--trace no/such/directory/t.txt"]);
    let directory = with_scenario(GOOD);
    check_failure(
        &pageout(directory.path(), &["run", "scenario.toml", "--trace", "."]),
        2,
        &["--trace: found the folder `.`, expected a file"],
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left behind");
}

/// Returns true if it is an event of Chrome's Trace Event Format: what every event has, and what its phase asks for.
fn has_the_form(event: &Value) -> bool {
    let args = event["args"].as_object().unwrap();
    let is_named = event["name"].as_str().is_some_and(|name| !name.is_empty());
    let is_timed = event["ts"].as_f64().is_some_and(|at| at >= 0.0);
    let is_of_a_thread = event["pid"].is_u64() && event["tid"].is_u64();
    match event["ph"].as_str().unwrap() {
        "M" => is_named && event["pid"].is_u64() && args["name"].is_string(),
        "C" => is_named && is_timed && event["pid"].is_u64() && args.values().all(Value::is_number),
        "B" => is_named && is_timed && is_of_a_thread,
        "E" => is_timed && is_of_a_thread,
        "X" => is_named && is_timed && is_of_a_thread && event["dur"].as_f64().is_some_and(|dur| dur >= 0.0),
        // Without a scope it is an instant of its thread.
        "i" => is_named && is_timed && is_of_a_thread && event.get("s").is_none(),
        _ => false,
    }
}

#[test]
fn perfetto_gets_spans_that_are_closed_instants_and_counters() {
    let (result, trace) = traced(BUSY, "trace.json", &["--timeline-every", "5ms"]);
    let trace: Value = serde_json::from_slice(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let mut open: BTreeMap<u64, i64> = BTreeMap::new();
    let mut stalled = 0.0;
    let mut since = BTreeMap::new();
    for event in events {
        assert!(has_the_form(event), "{event}");
        let tid = number(&event["tid"]);
        match event["ph"].as_str().unwrap() {
            "B" => {
                *open.entry(tid).or_default() += 1;
                since.insert(tid, event["ts"].as_f64().unwrap());
            }
            "E" => {
                *open.entry(tid).or_default() -= 1;
                stalled += event["ts"].as_f64().unwrap() - since[&tid];
            }
            _ => {}
        }
        let depth = open.get(&tid).copied().unwrap_or(0);
        assert!((0..=1).contains(&depth), "{event}");
    }
    let tasks = result["tasks"].as_array().unwrap();
    let expected: u64 = tasks.iter().map(|task| number(&task["reclaim_time_ns"])).sum();
    assert!((stalled - expected as f64 / 1000.0).abs() < 1.0, "{stalled} us of {expected} ns");
    let names: BTreeSet<&str> = of("C").iter().map(|event| event["name"].as_str().unwrap()).collect();
    for track in ["free memory", "lists", "dirty", "pressure of memory (%)", "pressure of io (%)"] {
        assert!(names.contains(track), "{track} is not among {names:?}");
    }
    let mut shown = BTreeMap::new();
    for counter in of("C") {
        let before = shown.insert(counter["name"].as_str().unwrap(), &counter["args"]);
        assert_ne!(before, Some(&counter["args"]), "a track shows a value until another one comes");
    }
    let threads: Vec<&str> = of("M").iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    assert!(threads.contains(&"kswapd0") && threads.contains(&"kworker/0:1 [x]"), "{threads:?}");
    let isolated = of("i").into_iter().find(|event| event["name"] == "mm_vmscan_lru_isolate").unwrap();
    assert!(isolated["args"]["nr_taken"].is_u64() && isolated["ts"].is_f64(), "{isolated}");
}

#[test]
fn perfetto_gets_each_field_of_each_line() {
    for scenario in [BUSY, WRITER, COMPRESSED] {
        let (_, lines) = traced(scenario, "trace.txt", &[]);
        let (_, json) = traced(scenario, "trace.json", &[]);
        let json: Value = serde_json::from_slice(&json).unwrap();
        let is_of_a_line = |event: &&Value| event["ph"] != "M" && event["ph"] != "C";
        let events: Vec<&Value> =
            json["traceEvents"].as_array().unwrap().iter().filter(is_of_a_line).collect();
        let lines = text(&lines);
        let lines: Vec<&str> = lines.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(events.len(), lines.len());
        for (event, line) in events.into_iter().zip(lines) {
            let args = event["args"].as_object().unwrap();
            let told = |name: &str| match &args[name] {
                Value::String(word) => word.clone(),
                number => number.to_string(),
            };
            let (_, said) = line.split_once(": ").unwrap();
            let (_, said) = said.split_once(": ").unwrap();
            let fields: Vec<(&str, &str)> =
                said.split(' ').filter_map(|field| field.split_once('=')).collect();
            for (name, value) in &fields {
                assert_eq!(&told(name), value, "{name} of {line}");
            }
            // Lines have the CPU elsewhere, and some words in front of their fields.
            let others: Vec<&str> = args.keys().map(String::as_str).skip(1).collect();
            let others: Vec<&str> =
                others.into_iter().filter(|name| !fields.iter().any(|(known, _)| known == name)).collect();
            for name in others {
                let expected = match name {
                    "text" => said.to_string(),
                    "pages" => format!("{}", args[name]),
                    "bdi" => format!("bdi {}:", told(name)),
                    _ => format!("{name} {}", told(name)),
                };
                assert!(said.contains(&expected), "{name}: {expected} is not in {line}");
            }
        }
    }
}

/// The fields of each line of an event.
fn fields_of(trace: &str, event: &str) -> Vec<BTreeMap<String, String>> {
    let lines = trace.lines().filter(|line| line.contains(&format!(": {event}: ")));
    let of_line = |line: &str| {
        let pairs = line.split(' ').filter_map(|field| field.split_once('='));
        pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    lines.map(of_line).collect()
}

#[test]
fn background_work_counts_its_pages_down_from_a_longs_largest() {
    let (_, trace) = traced(WRITER, "trace.txt", &[]);
    let trace = text(&trace);
    let left = |event: &str| -> Vec<i64> {
        let works = fields_of(&trace, event).into_iter().filter(|work| work["reason"] == "background");
        works.map(|work| work["nr_pages"].parse().unwrap()).collect()
    };
    assert_eq!(left("writeback_start")[0], i64::MAX);
    let written = left("writeback_written")[0];
    assert!(written < i64::MAX && written > i64::MAX - 12_288, "{written}: it has written some of 48 MiB");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_groups_writers_are_told_beside_the_limit_of_the_machine() {
    let grouped = WRITER.replace(
        "[[task]]\nname = \"writer\"\n",
        "[[memcg]]\npath = \"/job\"\nmemory.max = \"16MiB\"\n[[task]]\nname = \"writer\"\nmemcg = \"/job\"\n",
    );
    let (_, trace) = traced(&grouped, "trace.txt", &[]);
    let trace = text(&trace);
    let machines = fields_of(&trace, "global_dirty_state");
    let looks = fields_of(&trace, "balance_dirty_pages");
    let number = |of: &BTreeMap<String, String>, name: &str| of[name].parse::<u64>().unwrap();
    let limit = machines.iter().map(|state| number(state, "limit")).min().unwrap();
    assert!(!looks.is_empty());
    for look in looks {
        assert!(number(&look, "limit") >= limit && limit > 4_096, "{look:?}, the machine's limit is {limit}");
        let freerun = 2 * number(&look, "setpoint") - number(&look, "limit");
        assert!(freerun < 4_096 / 5, "{look:?}: that of a group of 4096 pages");
    }
}

#[test]
fn writeback_tells_of_every_page_dirtied_and_ends_what_it_begins() {
    let (result, trace) = traced(WRITER, "trace.txt", &[]);
    let trace = text(&trace);
    let fields = |event: &str| fields_of(&trace, event);
    let count = |event: &str| fields(event).len();
    assert_eq!(count("writeback_dirty_folio") as u64, number(&result["vmstat"]["nr_dirtied"]));
    assert!(count("writeback_start") > 0);
    // The run may end in the middle of a turn.
    for (begin, end) in
        [("writeback_start", "writeback_written"), ("writeback_single_inode_start", "writeback_single_inode")]
    {
        assert!(count(begin) - count(end) <= 1, "{} of {begin}, {} of {end}", count(begin), count(end));
    }
    let looks = fields("balance_dirty_pages");
    let names = "limit setpoint dirty bdi_setpoint bdi_dirty dirty_ratelimit task_ratelimit dirtied dirtied_pause \
                 paused pause period think cgroup_ino";
    let names: BTreeSet<&str> = names.split(' ').collect();
    let as_number = |look: &BTreeMap<String, String>, name: &str| look[name].parse::<i64>().unwrap();
    assert!(looks.iter().any(|look| as_number(look, "pause") > 0), "nobody was slowed down");
    for look in &looks {
        assert_eq!(look.keys().map(String::as_str).collect::<BTreeSet<_>>(), names);
        assert!(as_number(look, "dirty") <= as_number(look, "limit") + 1000, "{look:?}");
    }
    let rates = fields("bdi_dirty_ratelimit");
    assert!(rates.iter().all(|rate| rate.contains_key("balanced_dirty_ratelimit")) && !rates.is_empty());
}
