//! The format as which a trace is read, and the line that reports it.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

fn run(directory: &Path, command: &str) -> Output {
    pageout(directory, &command.split(' ').collect::<Vec<_>>())
}

fn json(directory: &Path, command: &str) -> Value {
    serde_json::from_str(&check_success(&run(directory, command))).unwrap()
}

/// 4 disks of 2 hosts, each with 250 pages of its own that are read 4 times round, all at the same offsets.
fn of_disks() -> String {
    let mut lines = String::new();
    for access in 0..4000u64 {
        let (disk, page) = (access % 4, access / 4 % 250);
        let host = ["usr", "src"][disk as usize / 2];
        let _ = writeln!(lines, "{access},{host},{},Read,{},4096,100", disk % 2, page * 4096);
    }
    lines
}

const MSR_HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

#[test]
fn disks_of_a_csv_are_not_merged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("disks.csv"), format!("{MSR_HEADER}\n{}", of_disks())).unwrap();
    let told = "object `Hostname`, `DiskNumber`; offset `Offset` in bytes; size `Size` in bytes; op `Type`; \
                time `Timestamp`; ignored `ResponseTime`";
    let printed = check_success(&run(path, "trace info disks.csv"));
    assert!(printed.contains(told), "{printed}");
    assert!(printed.contains("1,000 pages") && !printed.contains("Note:"), "{printed}");
    let info = &json(path, "trace info disks.csv --json")[0];
    assert_eq!((&info["objects"], &info["distinct_pages"]), (&4.into(), &1000.into()));
    assert_eq!(info["columns"][4]["unit_bytes"], 1);
    assert_eq!(
        (&info["columns"][2]["name"], &info["columns"][2]["holds"]),
        (&"DiskNumber".into(), &"object".into())
    );

    // 300 pages of memory hold a round of merged disks, and no round of 4 disks.
    let output =
        run(path, "replay disks.csv --memory 300pages --policy lru@machine --read-ahead-kb 0 --json");
    let replayed: Value = serde_json::from_str(&check_success(&output)).unwrap();
    assert_eq!(replayed["points"][0]["miss_ratio"], 1.0);
    assert!(
        text(&output.stderr).contains(&format!("note: disks.csv: columns: {told}")),
        "{}",
        text(&output.stderr)
    );
    let merged = pageout(
        path,
        &[
            "replay",
            "disks.csv",
            "--memory=300pages",
            "--policy=lru@machine",
            "--json",
            "--read-ahead-kb=0",
            "--read=csv.object=[]",
        ],
    );
    let merged: Value = serde_json::from_str(&check_success(&merged)).unwrap();
    assert_eq!((&merged["distinct_pages"], &merged["points"][0]["misses"]), (&250.into(), &250.into()));
}

#[test]
fn a_published_collection_is_read_by_its_name_and_suggested_without() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("usr_0.csv"), of_disks()).unwrap();
    let parts =
        ["usr_0.csv", "line 1", "looks like one of the MSR Cambridge traces; use the format `msr` for it"];
    for command in ["trace info usr_0.csv", "replay usr_0.csv", "trace convert usr_0.csv usr_0.pgt"] {
        check_failure(&run(path, command), 2, &parts);
    }
    let info = &json(path, "trace info usr_0.csv --trace-format msr --json")[0];
    assert_eq!(
        (&info["format"], &info["objects"], &info["records"]),
        (&"msr".into(), &4.into(), &4000.into())
    );
    assert_eq!(info["time_span"]["unit"], "x 100 ns");

    fs::write(path.join("cbs.csv"), "1538323200,16,8,0,1283\n1538323201,16,16,1,1360\n").unwrap();
    let printed = check_success(&run(path, "trace info cbs.csv --trace-format tencent"));
    let told = "object `volumeid`; offset `offset` in units of 512 bytes; size `size` in units of 512 bytes; op `iotype`";
    assert!(printed.contains(told), "{printed}");
    assert!(printed.contains("distinct pages      3 pages"), "{printed}");
    check_success(&run(path, "trace convert usr_0.csv usr_0.pgt --trace-format msr"));
    let converted =
        json(path, "replay usr_0.pgt --memory 300pages --policy lru@machine --read-ahead-kb 0 --json");
    assert_eq!(
        (&converted["distinct_pages"], &converted["points"][0]["miss_ratio"]),
        (&1000.into(), &1.0.into())
    );
}

#[test]
fn columns_of_a_scenarios_trace_are_told_and_ones_like_ids_doubted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("shards.csv"), "offset,shard\n0,1\n4096,2\n".replace("shard", "shard_id")).unwrap();
    let scenario = "[[task]]\nname = \"t\"\n[[task.object]]\nchannel = \"file\"\ntrace = \"shards.csv\"\n";
    fs::write(path.join("scenario.toml"), scenario).unwrap();
    let doubt = "the column `shard_id` is ignored, but its name suggests volumes or files";
    for command in ["run scenario.toml", "replay shards.csv --memory 64pages"] {
        let output = run(path, command);
        check_success(&output);
        let stderr = text(&output.stderr);
        assert!(stderr.contains("all one object; offset `offset` in bytes; ignored `shard_id`"), "{stderr}");
        assert!(stderr.contains(doubt), "{stderr}");
    }
    let printed = check_success(&run(path, "trace info shards.csv"));
    assert!(printed.contains("Note: the column `shard_id` is ignored"), "{printed}");
    assert!(json(path, "trace info shards.csv --json")[0]["doubts"][0].as_str().unwrap().contains(doubt));
}

#[test]
fn times_of_a_fio_log_are_told_in_microseconds() {
    let directory = tempfile::tempdir().unwrap();
    let log = "fio version 3 iolog\n0 /a add\n1500 /a read 0 1\n2000000 /a read 4096 1\n";
    fs::write(directory.path().join("job.iolog"), log).unwrap();
    let printed = check_success(&run(directory.path(), "trace info job.iolog"));
    assert!(printed.contains("time                0 to 2000000 us"), "{printed}");
}

#[test]
fn numbers_of_2_to_the_28_and_more_are_told_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let write = |name: &str, numbers: &mut dyn Iterator<Item = u32>| {
        fs::write(path.join(name), numbers.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    };
    write("both.u32", &mut (0..1000).map(|access| (access % 100) | ((access % 2) << 28)));
    let scenario = "[[task]]\nname = \"t\"\n[[task.object]]\nchannel = \"file\"\ntrace = \"TRACE\"\n";
    let two = format!(
        "{scenario}[[task.object]]\nchannel = \"file\"\nworkload = {{ pattern = \"fill\", pages = 1 }}\n"
    );
    fs::write(path.join("both.toml"), two.replace("TRACE", "both.u32").replace("fill", "sequential"))
        .unwrap();
    let note = "some numbers are 2^28 or larger, and are read as words";
    for command in ["replay both.u32 --memory 64pages", "run both.toml"] {
        let output = run(path, command);
        check_success(&output);
        assert!(text(&output.stderr).contains(note), "{}", text(&output.stderr));
    }
    assert!(
        check_success(&run(path, "trace info both.u32")).contains("Note: some numbers are 2^28 or larger")
    );
    let named = run(path, "replay both.u32 --memory 64pages --trace-format words");
    check_success(&named);
    assert_eq!(text(&named.stderr), "");

    write("pages.u32", &mut (0..1000).map(|access| (1 << 28) - 300 + access % 500));
    fs::write(path.join("pages.toml"), scenario.replace("TRACE", "pages.u32")).unwrap();
    for command in [
        "replay pages.u32",
        "trace info pages.u32",
        "trace convert pages.u32 pages.pgt",
        "run pages.toml --check",
    ] {
        check_failure(&run(path, command), 2, &["pages.u32", "one has page 268435455", "`pages-u32`"]);
    }
    let info = &json(path, "trace info pages.u32 --trace-format pages-u32 --json")[0];
    assert_eq!((&info["objects"], &info["distinct_pages"]), (&1.into(), &500.into()));
}

#[test]
fn a_trace_is_never_converted_onto_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let trace = "offset\n0\n4096\n";
    fs::write(path.join("trace.csv"), trace).unwrap();
    std::os::unix::fs::symlink("trace.csv", path.join("link.pgt")).unwrap();
    fs::hard_link(path.join("trace.csv"), path.join("hard.pgt")).unwrap();
    for to in ["trace.csv", "./trace.csv", "link.pgt", "hard.pgt"] {
        let output = run(path, &format!("trace convert trace.csv {to} --force"));
        check_failure(&output, 2, &[to, "this file is the input trace.csv"]);
        assert_eq!(fs::read_to_string(path.join("trace.csv")).unwrap(), trace);
    }
    assert_eq!(fs::read_dir(path).unwrap().count(), 3, "nothing is left behind");
    // Through a link to another file, that one is replaced and the link stays.
    fs::write(path.join("old.pgt"), "old").unwrap();
    std::os::unix::fs::symlink("old.pgt", path.join("other.pgt")).unwrap();
    check_success(&run(path, "trace convert trace.csv other.pgt --force"));
    assert!(path.join("other.pgt").is_symlink());
    check_success(&run(path, "trace info old.pgt"));
}

/// A conversion that waits for a pipe which the test holds.
struct Waiting {
    directory: tempfile::TempDir,
    program: std::process::Child,
    pipe: fs::File,
}

impl Waiting {
    /// `before` is what the shell does before the program's name; it decides which signals the program gets.
    fn start(before: &str) -> Waiting {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let convert =
            format!("{before} {} trace convert fifo out.pgt --trace-format pages-u32", super::binary());
        let mut program = Command::new("sh");
        program.args(["-c", &convert]).current_dir(&directory).stdout(Stdio::null());
        let program = program.spawn().unwrap();
        // Opened at both ends, both know that the other is there; the output has been created before.
        let mut pipe = fs::File::options().write(true).open(&fifo).unwrap();
        pipe.write_all(&[7; 4000]).unwrap();
        let waiting = Waiting { directory, program, pipe };
        assert_eq!(waiting.files().len(), 2, "{:?}", waiting.files());
        waiting
    }

    fn signal(&self, signal: &str) {
        let id = self.program.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_conversion_ended_by_a_signal_leaves_nothing() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut waiting = Waiting::start("exec env --default-signal=HUP,INT,TERM");
        waiting.signal(signal);
        let status = waiting.program.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "the signal itself has ended it");
        assert_eq!(waiting.files(), ["fifo"]);
    }
}

#[test]
fn a_conversion_that_is_to_ignore_a_signal_goes_on() {
    let mut waiting = Waiting::start("trap '' HUP INT; exec");
    waiting.signal("INT");
    waiting.signal("HUP");
    drop(waiting.pipe);
    assert!(waiting.program.wait().unwrap().success());
    let directory = waiting.directory;
    let info = &json(directory.path(), "trace info out.pgt --json")[0];
    assert_eq!(info["accesses"], 1000);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

/// What is guessed of a trace is in the result for programs, too, and what it does not say is no zero there.
#[test]
fn a_replay_says_in_json_what_it_guessed_and_what_it_does_not_know() {
    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..400).map(|at| format!("{}\n", at * 8)).collect();
    fs::write(directory.path().join("reads.csv"), format!("lba\n{lines}")).unwrap();
    fs::write(directory.path().join("writes.csv"), format!("lba,op\n{}", lines.replace('\n', ",w\n")))
        .unwrap();
    let replay = |name: &str, more: &[&str]| -> serde_json::Value {
        let arguments = [&["replay", name, "--memory", "50%", "--json"], more].concat();
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap()
    };
    let unknown = replay("reads.csv", &[]);
    assert_eq!(
        (&unknown["accesses"], &unknown["writes_replayed_as_reads"]),
        (&400.into(), &serde_json::Value::Null)
    );
    assert!(unknown["doubts"][0].as_str().unwrap().contains("with 512 bytes per sector"), "{unknown}");
    assert_eq!(replay("writes.csv", &[])["writes_replayed_as_reads"], 400);
    assert_eq!(replay("writes.csv", &["--writes"])["writes_replayed_as_reads"], 0);
    let info = check_success(&pageout(directory.path(), &["trace", "info", "reads.csv"]));
    assert!(
        info.contains("400, it is not said which are writes")
            && info.contains("no op, so all accesses are treated as reads"),
        "{info}"
    );
}
