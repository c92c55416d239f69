//! sync(1) and `sync -f` as timed events.

use serde_json::Value;

use crate::results::json;
use crate::{check_failure, check_success, pageout, text, with_scenario};

/// A task that writes each page of a file of 16 MiB once, at once, and is there for two seconds. It dirties less than starts the flusher.
const WRITER: &str = r#"
until = "2s"

[machine]
memory = "512MiB"

[[device]]
name = "disk"
preset = "sata-ssd"
write_bandwidth = "40MB/s"

[[device]]
name = "other"
preset = "sata-ssd"

[[task]]
name = "writer"

[[task.object]]
channel = "file"
size = "16MiB"
device = "disk"
workload = { pattern = "sequential", write_ratio = 1 }

[[task.object]]
channel = "file"
size = "4KiB"
device = "other"
workload = { pattern = "sequential", write_ratio = 1 }

[[task]]
name = "idle"
think_time = "100ms"

[[task.object]]
channel = "anonymous"
size = "4KiB"
workload = { pattern = "uniform", ops = 25 }
"#;

fn with_events(events: &str, replaced: (&str, &str)) -> tempfile::TempDir {
    with_scenario(&format!("{}\n{events}", WRITER.replace(replaced.0, replaced.1)))
}

#[test]
fn a_sync_takes_as_long_as_the_device_for_what_is_dirty() {
    let events = "[[event]]\nat = \"1s\"\nsync = true\n\n[[event]]\nat = \"1900ms\"\nsync = true\n";
    let directory = with_events(events, ("", ""));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let syncs = result["writes"].as_array().unwrap();
    assert_eq!(syncs.iter().map(|sync| sync["path"].as_str().unwrap()).collect::<Vec<_>>(), ["sync", "sync"]);
    let took: Vec<f64> = syncs.iter().map(|sync| sync["took_ns"].as_f64().unwrap() / 1e9).collect();
    assert!((0.41..0.5).contains(&took[0]), "16 MiB at 40 MB a second: {took:?}");
    assert!(took[1] < 1e-3, "nothing is dirty: {took:?}");
    assert_eq!(result["writeback"]["pages_by_reason"]["sync"], 4097);
    assert_eq!(result["vmstat"]["nr_dirty"], 0);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.lines().any(|line| line.starts_with("sync ") && line.contains("1.00 s")), "{printed}");
}

#[test]
fn a_sync_is_told_by_the_flushers_that_carry_it_out() {
    let directory = with_events("[[event]]\nat = \"1s\"\nsync = true\n", ("", ""));
    let path = directory.path();
    check_success(&pageout(path, &["run", "scenario.toml", "--trace", "t.txt"]));
    let trace = std::fs::read_to_string(path.join("t.txt")).unwrap();
    let of = |event: &str| -> Vec<&str> {
        trace.lines().filter_map(|line| Some(line.split_once(&format!(" {event}: "))?.1)).collect()
    };
    let asked = |bdi: &str| {
        format!(
            "bdi {bdi}: sb_dev 0:0 nr_pages=9223372036854775807 sync_mode=1 kupdate=0 range_cyclic=0 background=0 \
             reason=sync cgroup_ino=1"
        )
    };
    assert_eq!(
        of("writeback_queue"),
        [asked("254:0")],
        "the other one's flusher was woken, and has done it already"
    );
    assert_eq!(of("writeback_exec"), [asked("254:0")]);
    assert!(!of("folio_wait_writeback").is_empty(), "a flusher waits, and nobody else");
    let waiting = trace.lines().filter(|line| line.contains(" folio_wait_writeback: "));
    waiting.for_each(|line| assert!(line.trim_start().starts_with("flush-disk-"), "{line}"));
    let woken =
        "bdi 254:16: sb_dev 0:0 nr_pages=4097 sync_mode=0 kupdate=0 range_cyclic=1 background=0 reason=sync";
    assert!(of("writeback_start").iter().any(|fields| fields.starts_with(woken)), "{trace}");
}

#[test]
fn syncing_one_file_system_leaves_others_and_tells_of_a_failed_write_once() {
    let events = "[[event]]\nat = \"1s\"\nsyncfs = \"disk\"\nevery = \"700ms\"\n";
    let directory = with_events(events, ("write_bandwidth = \"40MB/s\"", "fail_writes = 1"));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    assert_eq!(result["writeback"]["pages_by_reason"]["sync"], 4096);
    assert_eq!(result["vmstat"]["nr_dirty"], 1, "the other file system's");
    let syncs = result["writes"].as_array().unwrap();
    assert_eq!(syncs[0]["error"], "syncfs disk: a write has failed (EIO)");
    assert_eq!(syncs[1]["error"], Value::Null);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("at 1.00 s: syncfs disk: a write has failed (EIO)"), "{printed}");
}

#[test]
fn a_sync_of_nothing_or_of_two_things_is_refused_before_the_run() {
    for (event, says) in [
        ("syncfs = \"dusk\"", "there is no device called `dusk`"),
        ("sync = true\nsyncfs = \"disk\"", "expected one per event"),
        ("sync = true\nread = \"/proc/vmstat\"", "expected one per event"),
        ("sync = true\nvalue = 1", "`value` is only for writes; this event syncs"),
        ("sync = true\ntimeout = \"1s\"", "no signal ends a sync"),
        ("sync = false", "something to `sync`"),
    ] {
        let directory = with_events(&format!("[[event]]\nat = \"1s\"\n{event}\n"), ("", ""));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml", "--check"]), 2, &[says]);
    }
    let without_files = ("device = \"other\"", "device = \"disk\"");
    let directory = with_events("[[event]]\nat = \"1s\"\nsyncfs = \"other\"\n", without_files);
    let output = pageout(directory.path(), &["run", "scenario.toml"]);
    assert!(text(&output.stderr).contains("there is no file on `other`"), "{}", text(&output.stderr));
}
