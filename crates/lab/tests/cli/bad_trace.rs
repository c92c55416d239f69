//! Traces that can't be read, or not to their end.

use std::fs;
use std::path::Path;

use super::{check_failure, check_success, pageout};

/// A directory with a good trace of `accesses` words: pages 0, 1, 2, ... modulo 300.
fn with_words(accesses: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..accesses).flat_map(|access| (access % 300).to_le_bytes()).collect();
    fs::write(directory.path().join("good.u32"), bytes).unwrap();
    directory
}

fn cut(directory: &Path, from: &str, to: &str, bytes: usize) {
    let content = fs::read(directory.join(from)).unwrap();
    fs::write(directory.join(to), &content[..content.len() - bytes]).unwrap();
}

#[test]
fn a_truncated_trace_names_record_and_offset_and_how_much_was_read() {
    let directory = with_words(1000);
    cut(directory.path(), "good.u32", "cut.u32", 2);
    let parts = ["cut.u32", "record 999", "byte 3996", "999 records were read"];
    for command in [&["trace", "info"][..], &["replay"]] {
        let arguments: Vec<&str> = command.iter().chain(&["cut.u32"]).copied().collect();
        check_failure(&pageout(directory.path(), &arguments), 2, &parts);
    }
    let output = pageout(directory.path(), &["trace", "convert", "cut.u32", "out.pgt"]);
    check_failure(&output, 2, &parts);
    assert!(!directory.path().join("out.pgt").exists(), "half a trace takes no name");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "and leaves nothing behind");
}

#[test]
fn a_corrupt_trace_is_found_by_its_checksum() {
    let directory = with_words(1000);
    check_success(&pageout(directory.path(), &["trace", "convert", "good.u32", "good.pgt"]));
    let mut content = fs::read(directory.path().join("good.pgt")).unwrap();
    content[70] ^= 0x20;
    fs::write(directory.path().join("bad.pgt"), content).unwrap();
    check_failure(&pageout(directory.path(), &["trace", "info", "bad.pgt"]), 2, &["bad.pgt", "byte"]);
    cut(directory.path(), "good.pgt", "short.pgt", 30);
    check_failure(&pageout(directory.path(), &["replay", "short.pgt"]), 2, &["short.pgt"]);
}

#[test]
fn a_damaged_oracle_general_is_refused_and_never_runs_away() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, size: u32, lost: usize| {
        let record = |id: u64| {
            [&100u32.to_le_bytes()[..], &id.to_le_bytes(), &size.to_le_bytes(), &(-1i64).to_le_bytes()]
                .concat()
        };
        let bytes: Vec<u8> = (0..2000).flat_map(record).collect();
        let padding = if lost > 0 { 24 - lost } else { 0 };
        fs::write(directory.path().join(name), &bytes[lost..bytes.len() - padding]).unwrap();
    };
    write("shifted.oracleGeneral", 4096, 1);
    write("swollen.oracleGeneral", u32::MAX, 0);
    write("good.oracleGeneral", 4096, 0);
    for command in ["trace info", "replay", "trace convert"] {
        let run = |name: &str| {
            let mut arguments: Vec<&str> = command.split(' ').collect();
            arguments.push(name);
            arguments.extend((command == "trace convert").then_some("out.pgt"));
            pageout(directory.path(), &arguments)
        };
        check_failure(
            &run("shifted.oracleGeneral"),
            2,
            &["next access", "lost or gained bytes", "`implausible_ok`"],
        );
        check_failure(
            &run("swollen.oracleGeneral"),
            2,
            &["record 1 at byte 24", "`ignore_size`", "`implausible_ok`"],
        );
        check_success(&run("good.oracleGeneral"));
    }
}

#[test]
fn an_unknown_format_is_answered_with_those_there_are() {
    let directory = with_words(10);
    fs::write(directory.path().join("what.bin"), b"????????").unwrap();
    check_failure(
        &pageout(directory.path(), &["trace", "info", "what.bin"]),
        2,
        &["unknown trace format", "oracle-general"],
    );
    fs::write(directory.path().join("empty.bin"), b"").unwrap();
    let output = pageout(directory.path(), &["trace", "info", "empty.bin"]);
    check_failure(&output, 2, &["empty.bin: found an empty file, expected accesses"]);
    let output = pageout(directory.path(), &["replay", "what.bin", "--trace-format", "orcale-general"]);
    check_failure(&output, 2, &["did you mean `oracle-general`?"]);
    let output = pageout(directory.path(), &["replay", "good.u32", "--read", "ignore_sise=true"]);
    check_failure(&output, 2, &["`ignore_sise`", "did you mean `ignore_size`?"]);
}

#[test]
fn an_option_of_another_format_is_refused() {
    let directory = with_words(1000);
    for (option, part) in [
        ("--ignore-size", "`ignore_size` is for oracle-general, lcs, csv"),
        ("--read=csv.delimiter=;", "`csv.delimiter` is for csv"),
        (
            "--read=unterminated_ok=true",
            "`unterminated_ok` is for csv, msr, alibaba, tencent, spc, lis, twitter, wikipedia, lrb, fio-iolog",
        ),
    ] {
        for command in [&["trace", "info"][..], &["replay"], &["trace", "convert"]] {
            let to = (command == ["trace", "convert"]).then_some("good.pgt");
            let arguments: Vec<&str> =
                command.iter().copied().chain(["good.u32"]).chain(to).chain([option]).collect();
            check_failure(&pageout(directory.path(), &arguments), 2, &["good.u32", part]);
        }
    }
}

#[test]
fn a_converted_trace_keeps_its_page_size() {
    let directory = with_words(0);
    let lines: String = (0..4000).map(|line| format!("{}\n", line % 1000 * 16384)).collect();
    fs::write(directory.path().join("large.csv"), format!("offset\n{lines}")).unwrap();
    let run = |command: &str| pageout(directory.path(), &command.split(' ').collect::<Vec<_>>());
    check_success(&run("trace convert large.csv large.pgt --read page_size=16384"));
    let printed = check_success(&run("trace info large.pgt"));
    assert!(printed.contains("page size           16 KiB"), "{printed}");
    assert!(printed.contains("1,000 pages (15.6 MiB)"), "{printed}");
    let info: serde_json::Value =
        serde_json::from_str(&check_success(&run("trace info large.pgt --json"))).unwrap();
    assert_eq!(info[0]["page_bytes"], 16384);

    let scenario = replaying("large.pgt").replace("300 pages", "1000 pages");
    fs::write(directory.path().join("scenario.toml"), scenario).unwrap();
    for command in ["replay large.pgt", "run scenario.toml"] {
        let output = run(command);
        check_success(&output);
        let stderr = super::text(&output.stderr);
        assert!(stderr.contains("large.pgt: pages of 16 KiB are replayed as pages of 4 KiB"), "{stderr}");
    }
    check_success(&run("replay large.pgt --read page_size=16384"));
    check_success(&run("replay large.pgt --read page_size=16KiB"));
    check_failure(&run("trace info large.pgt --read page_size=16XB"), 2, &["page_size", "unknown unit `XB`"]);
    for command in ["replay", "trace info"] {
        let output = run(&format!("{command} large.pgt --read page_size=4096"));
        check_failure(
            &output,
            2,
            &["`page_size` is 4096", "converted to pages of 16384 bytes", "convert the original"],
        );
    }
}

#[test]
fn a_missing_trace_is_told() {
    let directory = with_words(10);
    check_failure(&pageout(directory.path(), &["replay", "none.pgt"]), 2, &["none.pgt", "No such file"]);
    check_failure(
        &pageout(directory.path(), &["trace", "info", "none.pgt"]),
        2,
        &["none.pgt", "No such file"],
    );
}

#[test]
fn options_of_a_replay_are_checked() {
    let directory = with_words(1000);
    let replay = |more: &[&str]| {
        let arguments: Vec<&str> = ["replay", "good.u32"].iter().chain(more).copied().collect();
        pageout(directory.path(), &arguments)
    };
    check_failure(&replay(&["--memory", "lots"]), 2, &["--memory lots", "not a size", "30%"]);
    check_failure(&replay(&["--memory", "0"]), 2, &["0 pages", "expected at least 64 pages"]);
    check_failure(&replay(&["--memory", "10%"]), 2, &["30 pages of the trace's 300", "64 pages"]);
    check_failure(&replay(&["--memory", "max"]), 2, &["--memory max: expected a size"]);
    check_failure(&replay(&["--policy", "clasic@6.12"]), 2, &["--policy", "did you mean `classic@6.12`?"]);
    check_failure(&replay(&["--device", "nvm"]), 2, &["--device", "did you mean `nvme`?"]);
    check_failure(&replay(&["--think-time", "5"]), 2, &["--think-time", "unit is missing"]);
    check_failure(
        &replay(&["--memory", "50%", "--channel", "anonymous"]),
        1,
        &["out of memory", "--swap zram"],
    );
    check_success(&replay(&["--memory", "50%"]));
}

#[test]
fn a_trace_that_leaves_its_file_is_told_with_page_and_size() {
    let directory = with_words(1000);
    let scenario = "[[task]]\nname = \"t\"\n[[task.object]]\nchannel = \"file\"\nsize = \"200 pages\"\nadvice = \"random\"\ntrace = \"good.u32\"\n";
    fs::write(directory.path().join("beyond.toml"), scenario).unwrap();
    let output = pageout(directory.path(), &["run", "beyond.toml"]);
    check_failure(&output, 1, &["task `t` at access 200", "page 200", "200 pages"]);
    // Without a size it is the trace's.
    fs::write(directory.path().join("fits.toml"), scenario.replace("size = \"200 pages\"\n", "")).unwrap();
    let printed = check_success(&pageout(directory.path(), &["run", "fits.toml"]));
    assert!(printed.contains("70.00%"), "300 of 1,000 accesses are first ones:\n{printed}");
}

#[test]
fn a_trace_that_breaks_off_in_a_run_is_a_fault_of_the_input() {
    let directory = with_words(1000);
    // A name that can't be page numbers: such a trace is not read before the run.
    cut(directory.path(), "good.u32", "cut.words", 2);
    fs::write(directory.path().join("cut.toml"), replaying("cut.words")).unwrap();
    let parts = ["task `t`", "record 999", "byte 3996"];
    for command in [
        "run cut.toml",
        "compare cut.toml --vary seed=1,2",
        "ablate cut.toml --repeat 1 --switch lru",
        "crossover cut.toml --repeat 1",
        "explain cut.toml --page t/0:1",
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        check_failure(&pageout(directory.path(), &arguments), 2, &parts);
    }
}

/// A scenario that replays a trace.
fn replaying(trace: &str) -> String {
    format!(
        "[[task]]\nname = \"t\"\n[[task.object]]\nchannel = \"file\"\nsize = \"300 pages\"\ntrace = \"{trace}\"\n"
    )
}

#[test]
fn traces_are_looked_at_before_anything_runs() {
    let directory = with_words(1000);
    let path = directory.path().join("scenario.toml");
    fs::write(directory.path().join("what.bin"), b"????????").unwrap();
    let damaged = [b"\x89PGT\r\n\x1a\n".as_slice(), &[7; 100]].concat();
    fs::write(directory.path().join("damaged.pgt"), damaged).unwrap();
    let check = ["run", "scenario.toml", "--check"];
    for (trace, part) in [
        ("none.u32", "No such file"),
        ("what.bin", "unknown trace format"),
        ("damaged.pgt", "corrupt"),
        (".", "directory"),
    ] {
        let sized = replaying(trace);
        for scenario in [sized.replace("size = \"300 pages\"\n", "\n"), sized] {
            fs::write(&path, scenario).unwrap();
            check_failure(&pageout(directory.path(), &check), 2, &[trace, part, "scenario.toml:6:9"]);
        }
    }
    fs::write(&path, replaying("good.u32")).unwrap();
    check_success(&pageout(directory.path(), &check));
    let setting = "task.t.object.0.trace=none.u32";
    let output = pageout(directory.path(), &[&check[..], &["--set", setting]].concat());
    check_failure(&output, 2, &["none.u32: No such file", &format!("--> --set {setting}")]);
}

#[test]
fn bad_input_of_one_variant_is_bad_input() {
    let directory = with_words(1000);
    cut(directory.path(), "good.u32", "cut.u32", 2);
    fs::write(directory.path().join("cut.toml"), replaying("cut.u32")).unwrap();
    let arguments = ["compare", "cut.toml", "--vary", "task.t.object.0.trace=good.u32,cut.u32"];
    let output = pageout(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(super::text(&output.stdout).contains("cut.u32 (failed)"));
    assert!(super::text(&output.stderr).contains("1 of 2 runs failed"));
}

#[test]
fn sizes_of_a_replay_that_make_no_curve_are_refused() {
    let directory = with_words(1000);
    for (memory, says) in [
        ("10%,,20%", "--memory: empty size"),
        ("10%,64MiB,10%", "--memory: found 10% twice"),
        ("0%", "--memory 0%: `0%` is not a percentage above 0\n"),
        ("1e9%", "`1e9%` is more than 10000%"),
        ("many", "or a percentage such as 30%"),
    ] {
        check_failure(&pageout(directory.path(), &["replay", "good.u32", "--memory", memory]), 2, &[says]);
    }
}

#[test]
fn columns_between_which_something_else_stands_are_recognised() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.csv"), "time;offset;size\n1;0;4096\n2;4096;4096\n").unwrap();
    let info = |more: &[&str]| pageout(directory.path(), &[&["trace", "info", "a.csv"], more].concat());
    let found = check_success(&info(&[]));
    assert!(found.contains("distinct pages      2 pages"), "{found}");
    assert!(found.contains("Note: `;` is used as the delimiter between columns"), "{found}");
    let chosen = check_success(&info(&["--read", "csv.delimiter=;"]));
    assert!(chosen.contains("distinct pages      2 pages") && !chosen.contains("Note:"), "{chosen}");
    // Of blanks nothing but blanks is left of the option.
    fs::write(directory.path().join("a.csv"), "time offset  size\n1 0 4096\n2 4096 4096\n").unwrap();
    let chosen = check_success(&info(&["--read", "csv.delimiter= "]));
    assert!(chosen.contains("distinct pages      2 pages") && !chosen.contains("Note:"), "{chosen}");
}

#[test]
fn what_is_compressed_otherwise_is_told_and_not_taken_for_pages() {
    let directory = tempfile::tempdir().unwrap();
    let gzip = [&[0x1F, 0x8B, 8, 0, 1, 2, 3, 4][..], &[9; 64]].concat();
    for (name, more) in [
        ("prxy_0.csv.gz", &["--trace-format", "msr"][..]),
        ("prxy_0.csv.gz", &[]),
        ("called.csv", &[]),
        ("pages.u32.gz", &["--trace-format", "words"]),
    ] {
        fs::write(directory.path().join(name), &gzip).unwrap();
        let output = pageout(directory.path(), &[&["trace", "info", name], more].concat());
        check_failure(&output, 2, &[name, "compressed with gzip", "gunzip it first"]);
    }
    // The first page of a list may be any.
    fs::write(directory.path().join("pages.u32"), [&gzip[..4], &[1, 0, 0, 0]].concat()).unwrap();
    check_success(&pageout(directory.path(), &["trace", "info", "pages.u32", "--trace-format", "pages-u32"]));
}
