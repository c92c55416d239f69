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
    check_failure(&lines("{page} {file}"), 2, &["no line has the form"]);
    check_failure(&lines("{file}"), 2, &["{page} or {offset}"]);
    check_failure(&lines("{pgae}"), 2, &["`pgae` is no field"]);
    check_failure(
        &pageout(directory.path(), &["import", "in.txt", "--source", "lines", "-o", "out.pgt"]),
        2,
        &["needs --pattern"],
    );
    check_failure(
        &pageout(directory.path(), &["import", "missing.txt", "-o", "out.pgt"]),
        2,
        &["missing.txt"],
    );
    check_failure(&pageout(directory.path(), &["import", "in.txt", "-o", "out.txt"]), 2, &["a .pgt"]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "only the input is left");
}
