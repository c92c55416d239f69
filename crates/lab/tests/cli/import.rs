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
