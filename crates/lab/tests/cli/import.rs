//! What other tools recorded, as a trace.

use super::{check_failure, check_success, pageout};

/// A folder with a text, imported by these arguments.
fn with_text(text: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("in.txt"), text).unwrap();
    directory
}

#[test]
fn text_of_the_kernel_becomes_a_trace_that_can_be_replayed() {
    let mut text = "# tracer: nop\n".to_string();
    for at in 0..400 {
        let from = at % 200 * 4096;
        let (time, to) = (1.0 + f64::from(at) / 1000.0, from + 4095);
        text += &format!(
            "              dd-7       [001] ..... {time:.6}: mm_filemap_get_pages: dev=254:0 ino=1f ofs={from}-{to}\n"
        );
    }
    text +=
        "              dd  7 [001]     9.000000: filemap:mm_filemap_get_pages: dev=254:0 ino=1f ofs=0-4095\n";
    text +=
        "              dd-7       [001] ..... 9.500000: mm_filemap_get_pages: dev=254:0 ino=? ofs=0-4095\n";
    let directory = with_text(&text);
    let told = check_success(&pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt"]));
    for part in ["401 records", "401 accesses", "1 line could not be read", "line 403"] {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    let replayed = check_success(&pageout(directory.path(), &["replay", "out.pgt", "--memory", "50%"]));
    assert!(replayed.contains("401"), "{replayed}");
    check_failure(
        &pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt"]),
        2,
        &["exists", "--force"],
    );
    check_success(&pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt", "--force"]));
}

#[test]
fn insertions_alone_are_taken_for_accesses_and_that_is_said() {
    let line = |page: u32| {
        format!(
            " dd-7 [000] ..... 1.00000{page}: mm_filemap_add_to_page_cache: dev 254:0 ino 1f pfn=0x5 ofs={} order=0\n",
            page * 4096
        )
    };
    let directory = with_text(&(0..5).map(line).collect::<String>());
    let told = check_success(&pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt"]));
    assert!(told.contains("5 accesses") && told.contains("no hits"), "{told}");
}

/// A zlib stream of one stored block, at most 65,535 bytes.
fn zlib(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in text.bytes() {
        a = (a + u32::from(byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    let mut bytes = vec![0x78, 0x01, 0x01];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend((b << 16 | a).to_be_bytes());
    bytes
}

/// The same recording in all its forms: a hot range of 64 pages, and an idle one of 1024.
#[test]
fn recordings_of_damo_become_accesses_at_the_recorded_rates() {
    let (mut json, mut lines) = (String::new(), String::new());
    for at in 1..=20_u64 {
        let (start, end) = (at * 100_000_000, (at + 1) * 100_000_000);
        let separator = if at > 1 { "," } else { "" };
        json += &format!(
            r#"{separator}{{"start_time": {start}, "end_time": {end}, "regions": [
                {{"start": "4,096", "end": 266240, "nr_accesses": {{"samples": 5, "percent": null}}, "age": {{"usec": null}}}},
                {{"start": 1048576, "end": 5242880, "nr_accesses": {{"samples": 0, "percent": null}}, "age": {{"usec": null}}}}]}}"#
        );
        let head = format!(
            "kdamond.0  1 [000] {}.{:06}: damon:damon_aggregated: target_id=0 nr_regions=2",
            end / 1_000_000_000,
            end / 1000 % 1_000_000
        );
        lines += &format!("{head} 4096-266240: 5 1\n{head} 1048576-5242880: 0 9\n");
    }
    let json = format!(
        r#"[{{"target_id": 0, "intervals": {{"sample_us": "5 ms", "aggr_us": "100 ms"}}, "snapshots": [{json}]}}]"#
    );
    let directory = tempfile::tempdir().unwrap();
    let of = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).unwrap();
        let to = format!("{name}.pgt");
        let told =
            check_success(&pageout(directory.path(), &["import", name, "--source", "damo", "-o", &to]));
        assert!(told.contains("20 records") && told.contains("random ones at the recorded rates"), "{told}");
        let guesses = told.contains("5 ms, DAMON's default, is assumed");
        let info = check_success(&pageout(directory.path(), &["trace", "info", &to, "--json"]));
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        (info[0]["accesses"].as_u64().unwrap(), guesses)
    };
    let (plain, guesses) = of("plain.json", json.as_bytes());
    // -ln(1 - 5/20) / 5 ms for 64 pages and 2 s.
    assert!(plain.abs_diff(7364) < 100 && !guesses, "{plain}");
    assert_eq!(of("damon.data", &zlib(&json)), (plain, false));
    let (of_text, guesses) = of("perf.txt", lines.as_bytes());
    assert!(of_text.abs_diff(7364) < 100 && guesses, "{of_text}");
    let given = ["import", "perf.txt", "--source", "damo", "-o", "given.pgt", "--sample-interval", "5ms"];
    let told = check_success(&pageout(directory.path(), &given));
    assert!(told.contains("20 records") && !told.contains("is assumed"), "{told}");
    for (interval, expected) in [
        ("50ms", "found 5 samples with an access, expected at most 2"),
        ("0s", "--sample-interval: found 0s, expected at least 1us"),
    ] {
        let given = ["import", "perf.txt", "--source", "damo", "-o", "no.pgt", "--sample-interval", interval];
        check_failure(&pageout(directory.path(), &given), 2, &[expected]);
    }
    let given = ["import", "perf.txt", "-o", "no.pgt", "--sample-interval", "5ms"];
    check_failure(&pageout(directory.path(), &given), 2, &["--sample-interval", "expected --source damo"]);

    let broken = json.replacen("266240", "\"x\"", 1);
    std::fs::write(directory.path().join("broken.json"), broken).unwrap();
    let failed = pageout(directory.path(), &["import", "broken.json", "--source", "damo", "-o", "out.pgt"]);
    check_failure(
        &failed,
        2,
        &["broken.json[0].snapshots[0].regions[0].end: found `\"x\"`, expected an address"],
    );
}

/// A window of `damo` as JSON, with its regions: first address, end and samples with an access.
fn window(start: u64, end: u64, regions: &[(u64, u64, u32)]) -> String {
    let region = |&(start, end, samples): &(u64, u64, u32)| {
        format!(r#"{{"start": {start}, "end": {end}, "nr_accesses": {{"samples": {samples}}}}}"#)
    };
    let regions: Vec<String> = regions.iter().map(region).collect();
    format!(r#"{{"start_time": {start}, "end_time": {end}, "regions": [{}]}}"#, regions.join(", "))
}

fn record(intervals: &str, windows: &[String]) -> String {
    format!(r#"[{{"target_id": 0, "intervals": {intervals}, "snapshots": [{}]}}]"#, windows.join(", "))
}

/// What no kdamond can have found is an error that says where, what was found and what was expected.
#[test]
fn damaged_recordings_of_damo_are_an_error_that_names_the_place() {
    const INTERVALS: &str = r#"{"sample_us": 5000, "aggr_us": 100000}"#;
    let good = window(0, 100_000_000, &[(0, 8192, 5), (8192, 16384, 0)]);
    let next = |regions: &[(u64, u64, u32)]| {
        record(INTERVALS, &[good.clone(), window(100_000_000, 200_000_000, regions)])
    };
    let line = |time: &str, rest: &str| {
        format!("kdamond.0 1 [000] {time}: damon:damon_aggregated: target_id=0 {rest}\n")
    };
    let directory = tempfile::tempdir().unwrap();
    for (kind, text, parts) in [
        (
            "overlap",
            next(&[(0, 8192, 0), (4096, 16384, 0)]),
            &["[0].snapshots[1]: found overlapping regions 0-8192 and 4096-16384", "help: "][..],
        ),
        ("twice", next(&[(0, 8192, 0), (0, 8192, 0)]), &["found overlapping regions"]),
        (
            "end first",
            next(&[(8192, 4096, 0)]),
            &["snapshots[1].regions[0].end: found `4096`, expected at least its start, 8192"],
        ),
        (
            "no size",
            next(&[(8192, 8192, 0)]),
            &["regions[0].end: found `8192`, expected more than its start"],
        ),
        (
            "counts",
            next(&[(0, 8192, 21)]),
            &["region 0-8192: found 21 samples with an access, expected at most 20 (aggr_us / sample_us)"],
        ),
        (
            "backwards",
            record(INTERVALS, &[window(5, 9, &[(0, 4096, 0)]), window(4, 9, &[(0, 4096, 0)])]),
            &["snapshots[1].start_time: found `4`, expected at least that of the snapshot before, 5"],
        ),
        (
            "empty list",
            "[]".to_string(),
            &["found no snapshot, expected snapshots of DAMON with regions", "help: "],
        ),
        ("no snapshots", record(INTERVALS, &[]), &["found no snapshot"]),
        (
            "no regions",
            record(INTERVALS, &[window(0, 9, &[])]),
            &["0 incomplete snapshots, 1 without a region"],
        ),
        ("empty file", String::new(), &["found an empty file"]),
        (
            "half",
            next(&[(0, 8192, 0)])[..150].to_string(),
            &["not complete JSON", "line 1", "help: copy the file again"],
        ),
        ("two files", next(&[(0, 8192, 0)]).repeat(2), &["not complete JSON: trailing characters"]),
        ("NaN", next(&[(0, 8192, 0)]).replace("5000", "NaN"), &["not complete JSON"]),
        (
            "NaN as text",
            next(&[(0, 8192, 0)]).replace("5000", "\"NaN\""),
            &["intervals.sample_us: found `\"NaN\"`, expected a time"],
        ),
        (
            "unit",
            next(&[(0, 8192, 0)]).replace("5000", "\"5 MiB\""),
            &["intervals.sample_us: found `\"5 MiB\"`, expected a time"],
        ),
        (
            "huge",
            next(&[(0, 8192, 0)]).replace("100000}", "1e300}"),
            &["intervals.aggr_us: found `1e+300`, expected an interval from 1 us"],
        ),
        (
            "sample above window",
            next(&[(0, 8192, 0)]).replace("5000", "500000"),
            &["sample_us: found `500000`, expected at most aggr_us, 100000 us"],
        ),
        ("all addresses", next(&[(1, u64::MAX, 20)]), &["pages in sum, expected at most"]),
        (
            "text overlap",
            line("1.0", "nr_regions=2 0-8192: 0 1") + &line("1.0", "nr_regions=2 4096-16384: 0 1"),
            &["line 2: found ", "a region that begins at 8192 or above"],
        ),
        (
            "text backwards",
            line("1.1", "nr_regions=1 0-8192: 0 1") + &line("1.0", "nr_regions=1 0-8192: 0 1"),
            &["line 2: found ", "at least the time of the line before"],
        ),
        (
            "text counts",
            line("1.0", "nr_regions=1 0-8192: 99 1") + &line("1.1", "nr_regions=1 0-8192: 0 1"),
            &["line 1: region 0-8192: found 99 samples", "which is assumed", "import damon.data"],
        ),
        ("text, all cut", line("1.0", "nr_regions=9 0-8192: 1 1"), &["found 1 incomplete snapshots"]),
    ] {
        std::fs::write(directory.path().join("in.data"), text).unwrap();
        let failed = pageout(directory.path(), &["import", "in.data", "--source", "damo", "-o", "out.pgt"]);
        check_failure(&failed, 2, &[&["in.data"], parts].concat());
        assert!(!directory.path().join("out.pgt").exists(), "{kind} leaves a trace");
    }
}

/// A recording that was cut or lost lines is used as far as it goes, and what is left out is counted.
#[test]
fn incomplete_snapshots_of_damo_are_left_out_and_counted() {
    let line = |at: u32, range: &str| {
        format!(
            "kdamond.0 1 [000] 1.{at}00000: damon:damon_aggregated: target_id=0 nr_regions=2 {range}: 9 1\n"
        )
    };
    let whole = |at: u32| line(at, "0-8192") + &line(at, "8192-16384");
    let directory = tempfile::tempdir().unwrap();
    let import = |text: &str| {
        std::fs::write(directory.path().join("in.txt"), text).unwrap();
        pageout(directory.path(), &["import", "in.txt", "--source", "damo", "-o", "out.pgt", "--force"])
    };
    let told = check_success(&import(&(whole(1) + &whole(2) + &whole(3))));
    assert!(told.contains("3 records") && !told.contains("left out"), "{told}");
    let cut = whole(1) + &line(2, "0-8192") + &whole(3) + &line(4, "0-8192");
    let told = check_success(&import(&cut));
    assert!(
        told.contains("2 records") && told.contains("note: 2 snapshots left out, with fewer regions"),
        "{told}"
    );
    let told = check_success(&import(&(cut + "kdamond.0 1 [000] 1.5000: damon:damon_aggr")));
    assert!(told.contains("1 line could not be read, the first is line 7"), "{told}");
    let lost = import(&(whole(1) + "PERF_RECORD_LOST lost 12\n" + &whole(2)));
    let (told, error) = (super::text(&lost.stdout), super::text(&lost.stderr));
    assert_eq!(lost.status.code(), Some(2));
    assert!(told.contains("2 records") && error.contains("LOST: 12 events"), "{told}{error}");

    let fake = window(9, 9, &[(0, 0, 0)]);
    let json = record(
        "null",
        &[window(0, 100_000_000, &[(0, 8192, 5)]), fake, window(200_000_000, 200_000_000, &[(0, 8192, 0)])],
    );
    let told = check_success(&import(&json));
    assert!(told.contains("1 snapshot left out, with no region"), "{told}");
    assert!(told.contains("1 snapshot left out, with no time between its start and its end"), "{told}");
}

#[test]
fn what_holds_nothing_is_refused_and_leaves_no_file() {
    let directory = with_text("nothing of the kind\n");
    for (format, part) in
        [("events", "mm_filemap_get_pages"), ("blkparse", "action Q"), ("lackey", "--trace-mem=yes")]
    {
        let arguments = ["import", "in.txt", "--source", format, "-o", "out.pgt"];
        check_failure(&pageout(directory.path(), &arguments), 2, &["in.txt", part]);
    }
    let lines = |pattern: &str| {
        pageout(
            directory.path(),
            &["import", "in.txt", "--source", "lines", "--pattern", pattern, "-o", "out.pgt"],
        )
    };
    check_failure(&lines("{page} {file}"), 2, &["no line matches --pattern"]);
    check_failure(&lines("{file}"), 2, &["{page} or {offset}"]);
    check_failure(&lines("{pgae}"), 2, &["unknown field `pgae`"]);
    check_failure(
        &pageout(directory.path(), &["import", "in.txt", "--source", "lines", "-o", "out.pgt"]),
        2,
        &["found no --pattern"],
    );
    check_failure(
        &pageout(directory.path(), &["import", "missing.txt", "-o", "out.pgt"]),
        2,
        &["missing.txt"],
    );
    check_failure(
        &pageout(directory.path(), &["import", "in.txt", "-o", "out.txt"]),
        2,
        &["wrong suffix: expected .pgt"],
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "only the input is left");
}

#[test]
fn lines_that_report_losses_are_losses_and_no_unread_lines() {
    let text = "Attaching 1 probe...\n4411 R 771751 0 4096\nLost 240000 events\nPossibly lost 2 samples\n4411 R 771751 4096 4096\n";
    let directory = with_text(text);
    let pattern = ["--source", "lines", "--pattern", "{pid} {op} {file} {offset} {bytes}"];
    let import = |more: &[&str]| {
        let arguments = [&["import", "in.txt", "-o", "out.pgt", "--force"], &pattern[..], more].concat();
        pageout(directory.path(), &arguments)
    };
    let output = import(&[]);
    assert_eq!(output.status.code(), Some(2));
    let (told, error) = (super::text(&output.stdout), super::text(&output.stderr));
    assert!(error.contains("LOST: 240,002 events") && error.contains("accesses are missing in"), "{error}");
    assert!(told.contains("2 records") && told.contains("1 line could not be read"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&super::text(&import(&["--json"]).stdout)).unwrap();
    assert_eq!(
        (&json["complete"], &json["lost_events"], &json["lines_skipped"]),
        (&false.into(), &240_002.into(), &1.into())
    );
    // The kernel's own words, in the text of events.
    let kernel = " dd-7 [000] ..... 1.000001: mm_filemap_get_pages: dev=254:0 ino=1f ofs=0-4095\nCPU:1 [LOST EVENTS]\n";
    let directory = with_text(kernel);
    let output = pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt"]);
    let error = super::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("LOST: events that the tool did not count, 1 time"), "{error}");
}

#[test]
fn texts_of_others_are_refused_with_the_command_that_reads_them() {
    let directory = with_text("page,time\n1,2\n");
    let import = pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt"]);
    check_failure(&import, 2, &["`pageout replay in.txt`", "`perf script`"]);
    let directory = with_text("PERFILE2 and more\n");
    let import = pageout(directory.path(), &["import", "in.txt", "-o", "out.pgt"]);
    check_failure(&import, 2, &["perf script -i in.txt > trace.txt"]);
    let directory = with_text(" dd-7 [000] ..... 1.000001: mm_vmscan_kswapd_sleep: nid=0\n");
    let replay = pageout(directory.path(), &["replay", "in.txt", "--memory", "50%"]);
    check_failure(&replay, 2, &["`pageout import`", "`perf script`", "`pageout vmscan-report`"]);
}
