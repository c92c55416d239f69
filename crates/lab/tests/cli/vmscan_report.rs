//! `pageout vmscan-report`: recorded traces give the figures that others counted in them, both dialects are read, and what cannot be
//! read is counted and told.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ground-truth/ftrace").join(format!("{name}.t.txt.zst"))
}

/// A report of `trace`, which is written to a file.
fn report(trace: &[u8], more: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("trace.txt"), trace).unwrap();
    let arguments: Vec<&str> = ["vmscan-report", "trace.txt"].iter().chain(more).copied().collect();
    pageout(directory.path(), &arguments)
}

/// The one trace of a report that succeeds.
#[track_caller]
fn json(trace: &[u8]) -> Value {
    parsed(&check_success(&report(trace, &["--json"])))
}

#[track_caller]
fn parsed(report: &str) -> Value {
    serde_json::from_str::<Value>(report).unwrap()["traces"][0].take()
}

#[track_caller]
fn recorded_json(name: &str) -> Value {
    let path = recorded(name);
    parsed(&check_success(&pageout(Path::new("."), &["vmscan-report", path.to_str().unwrap(), "--json"])))
}

/// Lines of today's dialect: CPU, time in microseconds, task, event with its fields.
fn lines(events: &[(u32, u64, &str, &str)]) -> String {
    let line = |(cpu, us, task, event): &(u32, u64, &str, &str)| {
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        format!("{task:>20}     [{cpu:03}] .....  {s:4}.{us:06}: {event}\n")
    };
    events.iter().map(line).collect()
}

const BEGIN: &str = "mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL";
const END: &str = "mm_vmscan_direct_reclaim_end: nr_reclaimed=7";
const ISOLATE: &str = "mm_vmscan_lru_isolate: classzone=2 order=0 nr_requested=9 nr_scanned=9 nr_skipped=0 nr_taken=9 lru=inactive_file";

#[test]
fn recorded_traces_give_the_counts_that_were_made_of_them_elsewhere() {
    // Calls, scanned, taken, reclaimed, stalled (ms); then of kswapd: wakes, sleeps, scanned, taken, reclaimed.
    let check = |name: &str, class: &str, calls: [u64; 4], stalled: &str, wakes: u64, kswapd: [u64; 5]| {
        let report = recorded_json(name);
        let mut sum = [0; 4];
        let (mut stalled_ns, mut woken) = (0, [0; 2]);
        for process in report["processes"].as_array().unwrap() {
            let of_class = &process[class];
            let pages = |of: &str| of_class["work"][of]["total"].as_u64().unwrap_or(0);
            sum[0] += of_class["calls"].as_u64().unwrap_or(0);
            sum[1] += pages("scanned");
            sum[2] += pages("taken");
            sum[3] += pages("reclaimed");
            stalled_ns += of_class["stalled"]["total_ns"].as_u64().unwrap_or(0);
            let count = |of: &str| process["kswapd"][of].as_u64().unwrap_or(0);
            woken[0] += count("wakeups") + count("wakeups_while_awake");
            woken[1] += count("sleeps");
        }
        let requests: u64 = report["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["wake_requests"].as_u64().unwrap())
            .sum();
        assert_eq!((sum, requests), (calls, wakes), "{name}");
        assert_eq!(format!("{:.2}", stalled_ns as f64 / 1e6), stalled, "{name}");
        let of_kswapd = |of: &str| report["work"]["kswapd"][of]["total"].as_u64().unwrap();
        let counted = [woken[0], woken[1], of_kswapd("scanned"), of_kswapd("taken"), of_kswapd("reclaimed")];
        assert_eq!(counted, kswapd, "{name}");
        assert_eq!(
            (&report["complete"], &report["read"]["skipped_lines"]),
            (&true.into(), &0.into()),
            "{name}"
        );
    };
    check("ft-global.classic", "direct", [34, 1572, 1572, 1551], "91.38", 51, [53, 8, 11714, 11714, 11661]);
    check("ft-global.mglru", "direct", [11, 840, 704, 700], "142.09", 58, [63, 12, 16982, 14976, 14975]);
    check("ft-zipf099.classic", "memcg", [24, 1198, 1198, 1196], "13.00", 0, [0; 5]);
    check("ft-mixed.classic", "memcg", [99, 8459, 8459, 4484], "76.61", 0, [0; 5]);
    let scanned = &recorded_json("ft-mixed.classic")["work"]["memcg"]["scanned"];
    assert_eq!((&scanned["anon"], &scanned["file"]), (&3972.into(), &4487.into()));
}

#[test]
fn the_text_says_who_was_stalled_when_and_why() {
    let path = recorded("ft-global.classic");
    let printed = check_success(&pageout(Path::new("."), &["vmscan-report", path.to_str().unwrap()]));
    for line in [
        "wl-160     34  91.4 ms        0.78%  807 us  34.6 ms  34.6 ms    1,572      1,551        0            51",
        "kswapd0-32        8           45       8  3.21 s       27.35%  264 ms   1.06 s   11,714     11,661        0",
        "207.727380  12.3 ms      0  wl-160  direct  10.5 ms probably off the CPU; freed 59 of 80, priority 8, 20 activated, 1 in use",
        "Time stalled direct reclaim (ms)    91.38",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "expected {line:?} in:\n{printed}");
    }
}

#[test]
fn traces_stand_side_by_side_with_the_share_of_time_that_direct_reclaim_took() {
    let (one, other) = (recorded("ft-global.classic"), recorded("ft-global.mglru"));
    let arguments = [
        "vmscan-report",
        one.to_str().unwrap(),
        other.to_str().unwrap(),
        "--cpu-time",
        "0.9,1.8",
        "--elapsed",
        "10,20",
    ];
    let printed = check_success(&pageout(Path::new("."), &arguments));
    let row = |label: &str| {
        let line =
            printed.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{printed}"));
        line[label.len()..].split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("Direct reclaims "), ["34", "11"]);
    // 91.38 of 991.38 ms, 142.09 of 1942.09 ms; 3.21 of 10 s, 4.44 of 20 s.
    assert_eq!(row("Percentage time direct reclaim"), ["9.22%", "7.32%"]);
    assert_eq!(row("Percentage time kswapd awake"), ["32.11%", "22.21%"]);
}

#[test]
fn the_layout_of_the_kernels_script_is_kept_column_by_column() {
    let path = recorded("ft-global.classic");
    let arguments = ["vmscan-report", path.to_str().unwrap(), "--layout", "script"];
    let printed = check_success(&pageout(Path::new("."), &arguments));
    let tables = printed.split_once("Process ").unwrap().1;
    assert_eq!(
        format!("Process {tables}"),
        "Process        Direct     Wokeup      Pages    Pages     Pages    Pages     Time         \n\
         details         Rclms     Kswapd    Scanned   Rclmed   Sync-IO ASync-IO  Stalled         \n\
         wl-160             34         51       1572     1551         0        0    0.091      direct-0=34       wakeup-0=51 \n\
         \n\
         Kswapd         Kswapd      Order      Pages      Pages    Pages    Pages         \n\
         Instance      Wakeups  Re-wakeup    Scanned     Rclmed  Sync-IO ASync-IO         \n\
         kswapd0-32          8         45      11714    11661         0        0      wake-0=8       rewake-0=45 \n\
         \n\
         Summary\n\
         Direct reclaims:     \t\t\t34\n\
         Direct reclaim pages scanned:\t\t1572\n\
         Direct reclaim file pages scanned:\t1572\n\
         Direct reclaim anon pages scanned:\t0\n\
         Direct reclaim pages reclaimed:\t\t1551\n\
         Direct reclaim file pages reclaimed:\t1551\n\
         Direct reclaim anon pages reclaimed:\t0\n\
         Direct reclaim write file sync I/O:\t0\n\
         Direct reclaim write anon sync I/O:\t0\n\
         Direct reclaim write file async I/O:\t0\n\
         Direct reclaim write anon async I/O:\t0\n\
         Wake kswapd requests:\t\t\t51\n\
         Time stalled direct reclaim: \t\t0.09 seconds\n\
         \n\
         Kswapd wakeups:\t\t\t\t8\n\
         Kswapd pages scanned:\t\t\t11714\n\
         Kswapd file pages scanned:\t\t11714\n\
         Kswapd anon pages scanned:\t\t0\n\
         Kswapd pages reclaimed:\t\t\t11661\n\
         Kswapd file pages reclaimed:\t\t11661\n\
         Kswapd anon pages reclaimed:\t\t0\n\
         Kswapd reclaim write file sync I/O:\t0\n\
         Kswapd reclaim write anon sync I/O:\t0\n\
         Kswapd reclaim write file async I/O:\t0\n\
         Kswapd reclaim write anon async I/O:\t0\n\
         Time kswapd awake:\t\t\t3.21 seconds\n"
    );
    // Reclaim at a cgroup's limit is nothing that script knows.
    let path = recorded("ft-mixed.classic");
    let printed = check_success(&pageout(
        Path::new("."),
        &["vmscan-report", path.to_str().unwrap(), "--layout", "script"],
    ));
    assert!(printed.contains("Direct reclaims:     \t\t\t\n"), "{printed}");
}

/// A trace as the kernel of 2010 wrote it: no flag column, other fields, no word of what a batch freed.
const OF_2010: &str = "\
# tracer: nop
#
#           TASK-PID    CPU#    TIMESTAMP  FUNCTION
#              | |       |          |         |
              dd-2201  [003]   100.000000: mm_vmscan_wakeup_kswapd: nid=0 zid=2 order=9
              dd-2201  [003]   100.000010: mm_vmscan_direct_reclaim_begin: order=9 may_writepage=1 gfp_flags=GFP_KERNEL
         kswapd0-31    [000]   100.000020: mm_vmscan_kswapd_wake: nid=0 order=9
         kswapd0-31    [000]   100.000030: mm_vmscan_lru_isolate: isolate_mode=1 order=9 nr_requested=32 nr_scanned=64 nr_taken=32 contig_taken=0 contig_dirty=0 contig_failed=0
              dd-2201  [003]   100.000040: mm_vmscan_lru_isolate: isolate_mode=2 order=0 nr_requested=32 nr_scanned=32 nr_taken=32 contig_taken=0 contig_dirty=0 contig_failed=0
              dd-2201  [003]   100.000050: mm_vmscan_lru_isolate: isolate_mode=3 order=9 nr_requested=32 nr_scanned=48 nr_taken=40 contig_taken=8 contig_dirty=3 contig_failed=1
              dd-2201  [003]   100.000060: mm_vmscan_writepage: page=ffffea0001 pfn=4711 sync_io=1
              dd-2201  [003]   100.000070: mm_vmscan_writepage: page=ffffea0002 pfn=4712 sync_io=0
         kswapd0-31    [000]   100.000080: mm_vmscan_writepage: page=ffffea0003 pfn=4713 flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC
              dd-2201  [003]   100.250010: mm_vmscan_direct_reclaim_end: nr_reclaimed=36
         kswapd0-31    [000]   101.000020: mm_vmscan_kswapd_sleep: nid=0
";

#[test]
fn the_dialect_of_2010_is_read_as_well() {
    let report = json(OF_2010.as_bytes());
    assert_eq!(report["read"]["dialect"], "2010");
    let expected = [
        ("Direct reclaims", 1.0),
        ("Direct reclaim pages scanned", 48.0),
        ("Direct reclaim pages reclaimed", 36.0),
        ("Direct reclaim write async I/O", 1.0),
        ("Direct reclaim write sync I/O", 1.0),
        ("Wake kswapd requests", 1.0),
        ("Kswapd wakeups", 1.0),
        ("Kswapd pages scanned", 64.0),
        ("Kswapd reclaim write async I/O", 1.0),
        ("Time stalled direct reclaim (ms)", 250.0),
        ("Time kswapd awake (ms)", 1000.0),
    ];
    for (label, value) in expected {
        assert_eq!(report["summary"][label].as_f64(), Some(value), "{label}");
    }
    assert_eq!(report["summary"]["Kswapd pages reclaimed"], Value::Null, "nothing tells it");
    assert_eq!(report["longest_calls"][0]["why"], "wrote 1 page and waited; wrote 1 page; freed 36 of 48");
    let printed = check_success(&self::report(OF_2010.as_bytes(), &["--layout", "script"]));
    assert!(printed.contains("direct-9=1       wakeup-9=1       contig-dirty=3 \n"), "{printed}");
    assert!(!printed.contains("anon pages scanned"), "{printed}");
}

#[test]
fn any_name_is_a_task_of_its_own_and_prints_nothing_that_a_terminal_obeys() {
    let names = ["kworker/0:1-57", "my_app:io_1-9", "Web Content-812", "a-b-3", "x[1]-4", "\u{1b}[2J-5"];
    let events: Vec<_> =
        names.iter().flat_map(|name| [(0, 1_000, *name, BEGIN), (0, 2_000, *name, END)]).collect();
    let report = json(lines(&events).as_bytes());
    let read: Vec<&str> = report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["name"].as_str().unwrap())
        .collect();
    for name in &names[..5] {
        assert!(read.contains(name), "{name} in {read:?}");
    }
    assert_eq!(read.len(), names.len());
    let printed = check_success(&self::report(lines(&events).as_bytes(), &[]));
    assert!(!printed.contains('\u{1b}') && printed.contains("\u{fffd}[2J-5"), "{printed}");
    // Without pids, all of a name are one.
    let two = lines(&[
        (0, 1_000, "cc1-7", BEGIN),
        (1, 1_500, "cc1-8", BEGIN),
        (0, 2_000, "cc1-7", END),
        (1, 4_000, "cc1-8", END),
    ]);
    let report = parsed(&check_success(&self::report(two.as_bytes(), &["--json", "--ignore-pid"])));
    let cc1 = &report["processes"][0];
    assert_eq!((&cc1["name"], &cc1["direct"]["calls"]), (&"cc1".into(), &2.into()));
    assert_eq!(
        cc1["direct"]["stalled"]["total_ns"], 3_500_000,
        "each end belongs to the begin of its own pid"
    );
}

#[test]
fn what_is_not_over_when_the_trace_ends_is_told_and_in_no_sum() {
    let trace = lines(&[
        (0, 1_000_000, "kswapd0-31", "mm_vmscan_kswapd_sleep: nid=0"),
        (0, 1_000_010, "dd-7", END),
        (0, 2_000_000, "dd-7", BEGIN),
        (1, 2_500_000, "kswapd0-31", "mm_vmscan_kswapd_wake: nid=0 order=0"),
        (0, 5_000_000, "dd-7", ISOLATE),
    ]);
    let printed = check_success(&report(trace.as_bytes(), &[]));
    for part in [
        "dd-7 was still in direct reclaim when the trace ended, for 3.00 s",
        "dd-7: 1 end of direct reclaim without a begin",
        "kswapd0-31 was awake when the trace began",
        "kswapd0-31 was still awake when the trace ended, for 2.50 s",
        "2.000000  > 3.00 s      0  dd-7  direct  freed 0 of 9",
    ] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let report = json(trace.as_bytes());
    assert_eq!(report["summary"]["Time stalled direct reclaim (ms)"], 0.0);
    assert_eq!(report["processes"][0]["direct"]["unfinished_since_ns"], 2_000_000_000u64);
    // No event tells here of batches, so the ends say what was freed: but not the one whose begin is missing.
    assert_eq!(report["processes"][0]["direct"]["reclaimed"], 0);
    assert_eq!(report["summary"]["Direct reclaim pages reclaimed"], 0);
}

#[test]
fn cpus_out_of_order_are_put_in_order() {
    let mut events = Vec::new();
    for call in 0..500 {
        let at = call * 1_000;
        events.push((0, at, "dd-7", BEGIN));
        events.push((1, at + 300, "dd-7", ISOLATE));
        events.push((1, at + 600, "dd-7", END));
    }
    let in_order = json(lines(&events).as_bytes());
    assert_eq!(in_order["summary"]["Time stalled direct reclaim (ms)"], 300.0);
    // One CPU after the other: begins first, then what happened in the calls.
    events.sort_by_key(|event| event.0);
    let mut by_cpu = json(lines(&events).as_bytes());
    assert_ne!(by_cpu["read"]["displaced_events"], 0);
    by_cpu["read"]["displaced_events"] = 0.into();
    by_cpu["read"]["back_ns"] = Value::Null;
    assert_eq!(by_cpu, in_order);
}

#[test]
fn what_comes_far_too_late_is_told() {
    let mut events: Vec<_> = (0..40_000).map(|at| (0, 1_000_000 + at, "dd-7", ISOLATE)).collect();
    events.push((1, 5, "dd-7", BEGIN));
    let output = report(lines(&events).as_bytes(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("1 events far out of order"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("40,001 events of reclaim"));
}

#[test]
fn time_that_goes_back_may_be_another_boot_and_is_told() {
    let call = |at: u64| [(0, at, "dd-7", BEGIN), (0, at + 100, "dd-7", END)];
    let (first, second) = (lines(&call(90_000_000)), lines(&call(5_000_000)));
    let told = |trace: &str| check_success(&report(trace.as_bytes(), &[]));
    assert!(told(&format!("{first}{second}")).contains("in line 3 time goes back by 85.0 s"));
    assert!(!told(&format!("{second}{first}")).contains("goes back"));
}

#[test]
fn what_the_kernel_lost_is_told_in_each_of_its_words() {
    let call = lines(&[(0, 1_000, "dd-7", BEGIN), (0, 9_000, "dd-7", END)]);
    for (line, lost, times, says) in [
        ("CPU:1 [LOST 33 EVENTS]", 33, 0, "lost 33 events."),
        ("CPU:0 [LOST EVENTS]", 0, 1, "lost events it did not count, 1 time."),
        ("CPU:1 [7 EVENTS DROPPED]", 7, 0, "lost 7 events."),
        ("CPU:1 [EVENTS DROPPED]", 0, 1, "events it did not count"),
        ("CPU:1 [7 EVENTS DROPPED]\nCPU:1 [LOST EVENTS]", 7, 1, "7 events, and for events it did not count"),
    ] {
        let trace = format!("{call}{line}\n");
        let read = &json(trace.as_bytes())["read"];
        assert_eq!(
            (&read["lost_events"], &read["uncounted_losses"]),
            (&lost.into(), &times.into()),
            "{line}"
        );
        let told = check_success(&report(trace.as_bytes(), &[])).replace('\n', " ");
        assert!(told.contains(says), "{line}: {told}");
    }
}

#[test]
fn damaged_lines_are_skipped_counted_by_reason_and_exit_2() {
    let good = lines(&[(0, 1_000, "dd-7", BEGIN), (0, 2_000, "dd-7", ISOLATE), (0, 9_000, "dd-7", END)]);
    let mut trace = b"# tracer: nop\n#\n".to_vec();
    trace.extend(good.as_bytes());
    trace.extend(b"CPU:1 [LOST 33 EVENTS]\n");
    trace.extend(b"this is something else\n");
    trace.extend(b"\x00\x01\xff\xfe\n");
    trace.extend(lines(&[(0, 9_500, "dd-7", "mm_vmscan_lru_isolate: order=0 nr_scanned=many")]).as_bytes());
    trace.extend(lines(&[(0, 9_600, "dd-7", "mm_vmscan_of_tomorrow: order=0")]).as_bytes());
    trace.extend(vec![b'x'; 100_000]);
    trace.extend(b"\n       dd-7     [000] .....     0.010000: mm_vmscan_direct_reclaim_end: nr_recl");
    let output = report(&trace, &[]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    for part in [
        "1 line skipped, not in the form of a trace (first: line 7)",
        "1 line skipped, binary (first: line 8)",
        "1 line skipped, an event with missing or damaged fields (first: line 9)",
        "1 line skipped, longer than 64 KiB (first: line 11)",
        "1 line skipped, truncated: the end of the line is missing (first: line 12)",
    ] {
        assert!(stderr.contains(part), "expected {part:?} in:\n{stderr}");
    }
    for part in ["lost 33 events", "mm_vmscan_of_tomorrow (1)", "\nDirect reclaims                      1\n"]
    {
        assert!(stdout.contains(part), "expected {part:?} in:\n{stdout}");
    }
    let result: Value = serde_json::from_slice(&report(&trace, &["--json"]).stdout).unwrap();
    assert_eq!(
        (&result["complete"], &result["traces"][0]["read"]["skipped_lines"]),
        (&false.into(), &5.into())
    );
    let output = report(&trace, &["--skip-bad"]);
    assert_eq!(output.status.code(), Some(0), "with --skip-bad that is no error");
    assert!(text(&output.stderr).contains("1 line skipped, binary"), "but it is told");
}

#[test]
fn a_line_cut_in_its_middle_does_not_borrow_from_the_next() {
    let cut =
        "              dd-7     [000] .....     0.002000: mm_vmscan_lru_isolate: classzone=2 order=0 nr_requ";
    let trace =
        format!("{}{cut}{}", lines(&[(0, 1_000, "dd-7", BEGIN)]), lines(&[(0, 2_500, "dd-7", ISOLATE)]));
    let output = report(trace.as_bytes(), &["--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report = parsed(&text(&output.stdout));
    assert_eq!(
        (&report["summary"]["Direct reclaim pages scanned"], &report["read"]["skipped_lines"]),
        (&Value::Null, &1.into())
    );
}

#[test]
fn what_is_no_trace_is_refused_with_what_was_expected() {
    check_failure(&report(b"", &[]), 2, &["found an empty file"]);
    check_failure(
        &report(b"hello\nworld\n", &[]),
        2,
        &["not the text of a trace", "mm_vmscan_direct_reclaim_begin", "2 lines skipped"],
    );
    check_failure(
        &report(b"\x1f\x8b\x08 gzip", &[]),
        2,
        &["compressed with gzip", "zcat trace.txt | pageout vmscan-report -"],
    );
    check_failure(&report(b"PERFILE2 and more", &[]), 2, &["found a perf.data file", "perf script -i"]);
    check_failure(&pageout(Path::new("."), &["vmscan-report", "/"]), 2, &["/: found a directory"]);
    check_failure(
        &pageout(Path::new("."), &["vmscan-report", "nowhere.txt"]),
        2,
        &["cannot read nowhere.txt"],
    );
    check_failure(
        &report(b"# tracer: nop\n", &["--cpu-time", "1,2"]),
        2,
        &["--cpu-time: found 2 values, expected one for each of 1 traces"],
    );
}

#[test]
fn trace_without_reclaim_is_unknown_and_no_zeros() {
    for trace in [
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n",
        "  dd-7 [000] ..... 1.000000: sched_waking: comm=x\n",
    ] {
        let printed = check_success(&report(trace.as_bytes(), &[]));
        assert!(
            printed.contains("\nDirect reclaims                      -\n")
                && printed.contains("events/vmscan/enable"),
            "{printed}"
        );
    }
}

#[test]
fn garbage_without_an_end_is_given_up() {
    let mut command = Command::new(super::binary());
    command.args(["vmscan-report", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let garbage: Vec<u8> = (0..1u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    // The program goes away long before all of 10 GB; that is what ends this.
    let written = (0..10_000).take_while(|_| stdin.write_all(&garbage).is_ok()).count();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(written < 200, "{written} MiB were read");
    check_failure(&output, 2, &["standard input: not the text of a trace", "stopped after 64"]);
}

#[test]
fn a_damaged_zst_gives_what_was_read_and_says_where_it_breaks_off() {
    let mut bytes = fs::read(recorded("ft-global.classic")).unwrap();
    bytes.truncate(bytes.len() - 2000);
    let output = report(&bytes, &[]);
    assert_eq!(output.status.code(), Some(2));
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stderr.contains("it ends after") && stdout.contains("Direct reclaims"), "{stderr}\n{stdout}");
}

/// A `trace-cmd` that prints what it is told, since a real trace.dat takes a kernel that traces.
#[cfg(unix)]
fn with_trace_cmd(script: &str, trace: &[u8]) -> Output {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("trace-cmd");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.path().join("trace.dat"), trace).unwrap();
    let mut command = Command::new(super::binary());
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let path = if script.is_empty() { "/nowhere".to_string() } else { path };
    command
        .current_dir(directory.path())
        .env("PATH", path)
        .args(["vmscan-report", "trace.dat"])
        .output()
        .unwrap()
}

#[test]
#[cfg(unix)]
fn a_trace_dat_goes_through_trace_cmd_or_says_how_to_get_it() {
    const DAT: &[u8] = b"\x17\x08\x44tracing7\0and the rest";
    let text_of_it = lines(&[(0, 1_000, "dd-7", BEGIN), (0, 9_000, "dd-7", END)]);
    let script =
        format!("[ \"$1 $2 $3\" = \"report -i trace.dat\" ] || exit 9\ncat <<X\ncpus=1\n{text_of_it}X");
    let printed = check_success(&with_trace_cmd(&script, DAT));
    assert!(printed.contains("8.00 ms"), "{printed}");
    check_failure(
        &with_trace_cmd("", DAT),
        2,
        &[
            "which converts it to text, is missing",
            "apt-get install trace-cmd",
            "trace-cmd report -i trace.dat > trace.txt",
        ],
    );
    check_failure(
        &with_trace_cmd("echo bad section >&2; exit 3", DAT),
        2,
        &["trace-cmd report -i trace.dat failed", "bad section"],
    );
    check_failure(
        &with_trace_cmd("exit 0", DAT),
        2,
        &["trace-cmd report -i trace.dat printed nothing: the file is truncated"],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(super::binary());
    let output = command.arg("vmscan-report").arg(recorded("ft-global.mglru")).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("cannot write the result"), "{}", text(&output.stderr));
}

#[test]
fn memory_does_not_grow_with_the_number_of_tasks() {
    let mut trace = String::new();
    for pid in 0..9_000 {
        let (name, at) = (format!("cc1-{pid}"), pid * 100);
        trace += &lines(&[(0, at, name.as_str(), BEGIN), (0, at + 50, name.as_str(), END)]);
    }
    let report = json(trace.as_bytes());
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 4097, "those beyond share a row of their name");
    let shared = processes.iter().find(|process| process["pid"].is_null()).unwrap();
    assert_eq!((&shared["name"], &shared["direct"]["calls"]), (&"cc1".into(), &(9_000 - 4096).into()));
    assert_eq!(report["summary"]["Time stalled direct reclaim (ms)"], 450.0);
}

#[test]
fn the_text_of_perf_script_is_read_like_the_kernels() {
    let kernels = lines(&[
        (1, 100_000_000, "dd-2001", BEGIN),
        (1, 100_100_000, "dd-2001", ISOLATE),
        (1, 100_200_000, "dd-2001", END),
    ]);
    let expected = json(kernels.as_bytes());
    let perf = |task: &str, cpu: &str, stack: &str| -> String {
        let line = |time: &str, event: &str| format!("{task} {cpu}   {time}: vmscan:{event}\n{stack}");
        format!(
            "# ========\n# captured on    : today\n#\n{}{}{}",
            line("100.000000", BEGIN),
            line("100.100000", ISOLATE),
            line("100.200000", END)
        )
    };
    const STACK: &str = "\tffffffff8123abcd shrink_node+0x12 ([kernel.kallsyms])\n\t    7f12deadbeef [unknown] (/usr/lib/libc.so.6)\n\n";
    for (task, cpu, stack) in [
        ("              dd  2001", "[001]", ""),
        ("              dd  2001", "", ""),
        ("dd  1999/2001", "[001]", STACK),
        ("dd  1999/2001", "", STACK),
    ] {
        let read = json(perf(task, cpu, stack).as_bytes());
        for part in ["processes", "longest_calls", "summary", "work"] {
            assert_eq!(read[part], expected[part], "{task} {cpu}: {part}");
        }
        assert_eq!(
            (&read["read"]["form"], &read["read"]["skipped_lines"]),
            (&"perf script".into(), &0.into())
        );
        assert_eq!(read["read"]["cpus"], if cpu.is_empty() { Value::Null } else { 1.into() });
    }
    let lost = perf("dd 2001", "[001]", "") + "dd  2001   100.300000: PERF_RECORD_LOST lost 12\n";
    assert_eq!(json(lost.as_bytes())["read"]["lost_events"], 12);
    // A stack belongs to perf's events; below others it is damage.
    let strange = kernels + "\tffffffff8123abcd shrink_node+0x12 ([kernel.kallsyms])\n";
    check_partial(&report(strange.as_bytes(), &[]), "not in the form of a trace");
    let binary = report(b"PERFILE2 and so on", &[]);
    check_failure(&binary, 2, &["perf script -i trace.txt | pageout vmscan-report -"]);
}

#[track_caller]
fn check_partial(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
}

/// An event of the page cache at a page of a file.
fn cached(event: &str, page: u64) -> String {
    format!("mm_filemap_{event}_page_cache: dev 254:1 ino 1a2b pfn=0x4d ofs={} order=0", page * 4096)
}

#[test]
fn pages_that_come_back_say_that_memory_is_too_small() {
    let memcg = |event: &str| event.replace("direct", "memcg");
    let (begin, end) = (memcg(BEGIN), memcg(END));
    let (leaves, enters): (Vec<String>, Vec<String>) =
        (0..8).map(|page| (cached("delete_from", page), cached("add_to", page))).unzip();
    let mut events = vec![(1, 1_000_000, "dd-7", begin.as_str()), (1, 1_000_100, "dd-7", ISOLATE)];
    events.extend(leaves.iter().map(|leaves| (1, 1_000_200, "dd-7", leaves.as_str())));
    events.push((1, 1_000_300, "dd-7", end.as_str()));
    let first = events.len();
    events.extend(enters.iter().map(|enters| (0, 1_500_200, "cat-8", enters.as_str())));
    let report = json(lines(&events[..first + 6]).as_bytes());
    let refaults = &report["refaults"];
    assert_eq!(
        (&refaults["reclaimed"], &refaults["refaulted"], &refaults["entered"]),
        (&8.into(), &6.into(), &6.into())
    );
    let story = report["story"].to_string();
    assert!(
        story.contains("6 (75.00%) of them returned") && story.contains("the cgroup's limit is too small"),
        "{story}"
    );
    let asked: Vec<String> = serde_json::from_value(report["record_next"].clone()).unwrap();
    let named = |name: &str| asked.iter().any(|event| event.contains(name));
    for missing in
        ["direct_reclaim_end", "kswapd_wake", "lru_shrink_inactive", "sched_switch", "sched_wakeup"]
    {
        assert!(named(missing), "{missing} is not in {asked:?}");
    }
    for there in ["memcg_reclaim", "lru_isolate", "filemap"] {
        assert!(!named(there), "{there} is in {asked:?}");
    }
    // Pages that others removed are no refaults, nor are pages that are read for the first time.
    let other: Vec<String> = (100..140).map(|page| cached("add_to", page)).collect();
    events.truncate(first);
    events.extend(other.iter().map(|enters| (0, 1_500_200, "cat-8", enters.as_str())));
    let truncated = cached("delete_from", 100);
    events.push((0, 1_600_000, "rm-9", &truncated));
    events.push((0, 1_600_001, "cat-8", &other[0]));
    let report = json(lines(&events).as_bytes());
    assert_eq!(
        (&report["refaults"]["refaulted"], &report["refaults"]["removed_otherwise"]),
        (&0.into(), &1.into())
    );
    assert!(report["story"].to_string().contains("Few of the freed pages were needed again"));
}

#[test]
fn without_events_of_the_page_cache_it_is_said_what_to_record() {
    let trace = lines(&[(1, 1_000_000, "dd-7", BEGIN), (1, 1_000_300, "dd-7", END)]);
    let read = json(trace.as_bytes());
    assert_eq!(read["refaults"]["refaulted"], Value::Null);
    let said = check_success(&report(trace.as_bytes(), &[])).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "trace-cmd record -e vmscan -e filemap:mm_filemap_add_to_page_cache -e filemap:mm_filemap_delete_from_page_cache -e sched:sched_switch",
        "perf record -a -e 'vmscan:*,filemap:mm_filemap_add_to_page_cache",
        "tee vmscan/enable filemap/mm_filemap_add_to_page_cache/enable",
    ] {
        assert!(said.contains(part), "expected {part:?} in:\n{said}");
    }
}

#[test]
fn a_call_that_did_too_little_for_its_time_was_off_the_cpu() {
    let isolate = ISOLATE.replace("=9", "=42");
    let end = END.replace('7', "42");
    let call = [
        (1, 1_000_000, "dd-7", BEGIN),
        (1, 1_000_100, "dd-7", isolate.as_str()),
        (1, 1_038_000, "dd-7", end.as_str()),
    ];
    let read = json(lines(&call).as_bytes());
    let stall = &read["longest_calls"][0];
    assert!(
        stall["why"].as_str().unwrap().starts_with("37.2 ms probably off the CPU; freed 42 of 42"),
        "{stall}"
    );
    assert_eq!(stall["off_cpu"]["sure"], false);
    // The scheduler knows: asleep for 30 ms, then ready for 5 while another ran.
    let leaves = "sched_switch: prev_comm=dd prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=sh next_pid=8 next_prio=120";
    let back = "sched_switch: prev_comm=sh prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=dd next_pid=7 next_prio=120";
    let woken = "sched_wakeup: comm=dd pid=7 prio=120 target_cpu=001";
    let mut known = call.to_vec();
    known.splice(
        2..2,
        [
            (1, 1_001_000, "dd-7", leaves),
            (0, 1_031_000, "kworker/0:1-5", woken),
            (1, 1_036_000, "sh-8", back),
        ],
    );
    let read = json(lines(&known).as_bytes());
    let stall = &read["longest_calls"][0];
    assert!(
        stall["why"].as_str().unwrap().starts_with("off the CPU: 30.0 ms asleep, 5.00 ms waiting for a CPU"),
        "{stall}"
    );
    assert_eq!((&stall["off_cpu"]["sure"], &stall["off_cpu"]["ns"]), (&true.into(), &35_000_000.into()));
    assert!(
        read["story"].to_string().contains("off the CPU for 92.11% of the stall time"),
        "{}",
        read["story"]
    );
    assert_eq!(read["read"]["events"], 3, "the scheduler's are no events of reclaim");
    // One that was on a CPU all the time worked, however little came of it.
    known.drain(2..5);
    known.insert(0, (0, 999_000, "sh-8", leaves));
    assert_eq!(json(lines(&known).as_bytes())["longest_calls"][0]["why"], "freed 42 of 42");
    // Who wrote pages may have waited for a disk.
    let write = "mm_vmscan_write_folio: page=0 pfn=0x4d flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC";
    let mut writes = call.to_vec();
    writes.insert(2, (1, 1_000_200, "dd-7", write));
    assert_eq!(json(lines(&writes).as_bytes())["longest_calls"][0]["off_cpu"], Value::Null);
    // The time of shrinkers is told as theirs.
    let mut shrinks = call.to_vec();
    let (start, stop) = (
        "mm_shrink_slab_start: super_cache_scan+0x0/0x150",
        "mm_shrink_slab_end: super_cache_scan+0x0/0x150",
    );
    shrinks.splice(2..2, [(1, 1_000_200, "dd-7", start), (1, 1_036_200, "dd-7", stop)]);
    let read = json(lines(&shrinks).as_bytes());
    assert_eq!(read["longest_calls"][0]["why"], "36.0 ms in shrinkers; freed 42 of 42");
}

#[test]
fn begins_and_ends_alone_say_nothing_of_what_was_done() {
    let trace = lines(&[(1, 100_000_000, "dd-2001", BEGIN), (1, 100_200_000, "dd-2001", END)]);
    let read = json(trace.as_bytes());
    assert_eq!(read["summary"]["Direct reclaim pages scanned"], Value::Null);
    assert_eq!(read["summary"]["Direct reclaim pages reclaimed"], 7);
    assert_eq!(read["longest_calls"][0]["why"], "freed 7 pages; no event shows its work");
    let said = check_success(&report(trace.as_bytes(), &[]));
    assert!(said.contains("200 ms        -          7        -             -"), "{said}");
    let asked =
        "\nvmscan:mm_vmscan_lru_isolate, vmscan:mm_vmscan_lru_shrink_inactive: the pages that calls scanned";
    assert!(said.contains(asked), "{said}");
    let said = said.replace('\n', " ");
    assert!(said.contains("the pages scanned, freed and written are unknown: no isolations"), "{said}");
}

#[test]
fn what_a_kernel_does_not_tell_is_no_zero() {
    let shrink = "mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=9 nr_reclaimed=7 nr_dirty=0 priority=12 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC";
    let trace = lines(&[
        (1, 1_000_000, "dd-7", BEGIN),
        (1, 1_000_100, "dd-7", ISOLATE),
        (1, 1_000_100, "dd-7", shrink),
        (1, 1_000_300, "dd-7", END),
    ]);
    let work = &json(trace.as_bytes())["work"]["direct"];
    assert_eq!(
        (&work["dirty"], &work["activated"], &work["writeback"]),
        (&0.into(), &Value::Null, &Value::Null)
    );
    let said = check_success(&report(trace.as_bytes(), &[]));
    let row = said.lines().find(|line| line.starts_with("direct  ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[6..11], ["-", "-", "0", "-", "-"], "{row}");
}

const SHRINK: &str = "mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=9 nr_reclaimed=7 nr_dirty=0 priority=12 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC";

/// What is said of a trace, in one line.
fn story_of(trace: &str) -> String {
    let report = json(trace.as_bytes());
    let says = report["story"].as_array().unwrap().iter().map(|says| says.as_str().unwrap());
    says.collect::<Vec<_>>().join(" ")
}

#[test]
fn batches_alone_say_what_was_scanned_and_nothing_of_stalls() {
    let trace = lines(&[(0, 1_000, "kswapd0-8", SHRINK), (1, 2_000, "dd-7", SHRINK)]);
    let read = json(trace.as_bytes());
    assert_eq!(read["work"]["kswapd"]["scanned"]["total"], 9);
    assert_eq!(read["work"]["outside"]["scanned"]["total"], 9);
    for label in [
        "Direct reclaims",
        "Direct reclaim pages scanned",
        "Time stalled direct reclaim (ms)",
        "Kswapd wakeups",
        "Time kswapd awake (ms)",
        "Percentage time kswapd awake",
        "Kswapd reclaim write async I/O",
    ] {
        assert_eq!(read["summary"][label], Value::Null, "{label}");
    }
    assert_eq!(read["summary"]["Kswapd pages scanned"], 9.0);
    let story = story_of(&trace);
    assert!(!story.contains("no task stalled") && !story.contains("of the time"), "{story}");
    assert!(story.contains("The time that kswapd was awake is unknown: no kswapd wake events"), "{story}");
    let said = check_success(&report(trace.as_bytes(), &[]));
    assert!(said.contains("vmscan:mm_vmscan_kswapd_wake, vmscan:mm_vmscan_kswapd_sleep"), "{said}");
}

#[test]
fn begins_without_ends_have_no_durations() {
    let begin = BEGIN.replace("direct", "memcg");
    let mut events = Vec::new();
    for call in 0..20 {
        let at = call * 1_000;
        events.extend([
            (0, at, "dd-7", begin.as_str()),
            (0, at + 10, "dd-7", ISOLATE),
            (0, at + 20, "dd-7", SHRINK),
        ]);
    }
    let trace = lines(&events);
    let read = json(trace.as_bytes());
    let calls = &read["processes"][0]["memcg"];
    assert_eq!(
        (&calls["calls"], &calls["stalled"], &calls["unfinished_calls"]),
        (&20.into(), &Value::Null, &0.into())
    );
    assert_eq!(read["summary"]["Memcg reclaim pages scanned"], 180.0);
    assert_eq!(read["longest_calls"], serde_json::json!([]));
    let story = story_of(&trace);
    assert!(
        story.contains("he stall time of tasks at a cgroup's limit is unknown: no end events (mm_vmscan_memcg_reclaim_end)"),
        "{story}"
    );
    let said = check_success(&report(trace.as_bytes(), &[]));
    let row = said.lines().find(|line| line.starts_with("dd-7")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..7], ["20", "-", "-", "-", "-", "-"], "{row}");
}

#[test]
fn ends_without_begins_are_counted_with_what_they_freed() {
    let trace = lines(&[(0, 1_000, "dd-7", END), (0, 2_000, "dd-7", END)]);
    let read = json(trace.as_bytes());
    assert_eq!(read["summary"]["Direct reclaims"], 2.0);
    assert_eq!(read["summary"]["Direct reclaim pages reclaimed"], 14.0);
    assert_eq!(read["summary"]["Time stalled direct reclaim (ms)"], Value::Null);
}

#[test]
fn kinds_of_calls_that_were_not_recorded_are_unknown() {
    let trace = lines(&[(0, 1_000, "dd-7", BEGIN), (0, 2_000, "dd-7", END)]);
    let story = story_of(&trace);
    assert!(story.contains("he stall time of tasks at a cgroup's limit is unknown"), "{story}");
    assert!(!story.contains("No other task was stalled."), "{story}");
    // With what vmscan:* has, an event that is missing did not happen.
    let whole = lines(&[
        (0, 1_000, "dd-7", BEGIN),
        (0, 1_100, "dd-7", ISOLATE),
        (0, 1_200, "dd-7", SHRINK),
        (0, 2_000, "dd-7", END),
    ]);
    let story = story_of(&whole);
    assert!(story.contains("No other task was stalled.") && !story.contains("unknown"), "{story}");
    assert_eq!(json(whole.as_bytes())["summary"]["Kswapd wakeups"], 0.0);
}

#[test]
fn advice_of_what_to_record_names_what_the_kernel_has() {
    let said = check_success(&report(OF_2010.as_bytes(), &[]));
    for later in ["filemap", "shrink_inactive", "throttled"] {
        assert!(!said.contains(later), "{later}:\n{said}");
    }
}
