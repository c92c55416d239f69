//! `pageout predict`: a page with what a kernel will do, before it does.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

/// A loop over a file, at a limit that somebody chooses, in a group that holds some pages of text, which nobody knows.
const LOOP: &str = r#"
question = "Does the loop fit?"
[machine]
memory = "64MiB"
cpus = 1
[kernel]
memcg.kmem = false
profile = "mglru@6.12"
[[device]]
name = "disk"
read_ahead_kb = 0
[[memcg]]
path = "/g"
memory.max = "400 pages"
[[file]]
name = "text"
size = "2 pages"
[[task]]
name = "program"
memcg = "/g"
[[task.object]]
channel = "mapped"
file = "text"
locked = true
workload = { pattern = "sequential" }
[[task]]
name = "reader"
memcg = "/g"
after = "program"
[[task.object]]
channel = "file"
size = "398 pages"
workload = { pattern = "loop", ops = 4000 }
[[variant]]
name = "tight"
set = { "memcg./g.memory.max" = "399 pages" }
[[variant]]
name = "wide"
set = { "memcg./g.memory.max" = "500 pages" }
[[expect]]
figure = "task reader: misses"
holds = "tight > wide"
because = "what is needed next is the oldest"
"#;

const UNKNOWN: &[&str] = &["--unknown", "file.text.size=1 pages,20 pages"];

fn predict(dir: &Path, arguments: &[&str]) -> std::process::Output {
    fs::write(dir.join("loop.toml"), LOOP).unwrap();
    pageout(dir, &[&["predict", "loop.toml", "--repeat", "2", "--quiet"], arguments].concat())
}

#[test]
fn a_prediction_has_ranges_over_what_is_not_known_its_time_and_the_commands_to_check_it() {
    let dir = tempfile::tempdir().unwrap();
    let page = check_success(&predict(dir.path(), UNKNOWN));
    for part in [
        "# Does the loop fit?",
        "- **Predicted at 20",
        "before an answer was known**, by pageout ",
        "median of 4 runs",
        "refutes it is unknown: fewer than 5 seeds (--repeat 5).",
        "| `file.text.size` | 1 pages, 20 pages |",
        "| what a generator draws | seeds 1 to 2 |",
        "| | tight | wide |",
        "| task reader: misses |",
        "(398 to 4,000) | 398 |",
        "| `tight > wide` | what is needed next is the oldest | 2 of 4 runs |",
        "cgroup.memory=nokmem",
        "echo 7 > /sys/kernel/mm/lru_gen/enabled",
        "echo 1634304 > /sys/fs/cgroup/g/memory.max",
        "For `wide` replace the differing commands by:",
        "echo 2048000 > /sys/fs/cgroup/g/memory.max",
        "fio --name=reader --ioengine=psync --fadvise_hint=0",
        "Nothing above this line is changed afterwards.",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
}

#[test]
fn the_same_prediction_has_the_same_figures_and_data_say_what_the_page_says() {
    let dir = tempfile::tempdir().unwrap();
    let of = |arguments: &[&str]| -> Value {
        let output = predict(dir.path(), &[UNKNOWN, &["--json"], arguments].concat());
        serde_json::from_str(&check_success(&output)).unwrap()
    };
    let (mut first, mut second) = (of(&["--jobs", "1"]), of(&["--jobs", "2"]));
    for page in [&mut first, &mut second] {
        let at = page.as_object_mut().unwrap().remove("predicted_at").unwrap();
        assert!(at.as_str().unwrap().ends_with(" UTC"), "{at}");
    }
    assert_eq!(first, second);
    let misses = &first["columns"][0]["figures"]["task reader: misses"];
    assert_eq!((&misses["least"], &misses["most"]), (&398.0.into(), &4000.0.into()), "{misses}");
    assert_eq!((&first["claims"][0]["true_for"], &first["runs"]), (&2.into(), &4.into()));
}

/// fio's log holds the accesses, and a trace of it is what the task accesses.
#[test]
fn the_accesses_of_a_prediction_are_a_log_that_fio_and_this_program_read() {
    let dir = tempfile::tempdir().unwrap();
    check_success(&predict(dir.path(), &["--accesses", "made"]));
    let log = fs::read_to_string(dir.path().join("made/reader.iolog")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[..4],
        ["fio version 2 iolog", "/mnt/reader-0 add", "/mnt/reader-0 open", "/mnt/reader-0 read 0 4096"]
    );
    assert_eq!(lines[4], "/mnt/reader-0 read 4096 4096");
    assert_eq!(lines.last(), Some(&"/mnt/reader-0 close"));
    let info = check_success(&pageout(dir.path(), &["trace", "info", "made/reader.iolog", "--json"]));
    let info: Value = serde_json::from_str(&info).unwrap();
    let info = info.as_array().map_or(&info, |infos| &infos[0]);
    assert_eq!(info["accesses"], 4000, "{info}");
}

#[test]
fn what_can_not_be_predicted_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let both = ["--vary", "file.text.size=1 pages,2 pages", "--unknown", "file.text.size=1 pages,2 pages"];
    check_failure(&predict(dir.path(), &both), 2, &["file.text.size: found in both --vary and --unknown"]);
    let output = predict(dir.path(), &["--unknown", "file.text.size=no,1 pages"]);
    check_failure(&output, 2, &["--unknown file.text.size=no"]);
    let output = predict(dir.path(), &["--set", "memcg./g.memory.max=1 pages"]);
    assert!(!output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn range_refutes_from_five_seeds_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("loop.toml"), LOOP).unwrap();
    let page = |seeds: &str| {
        check_success(&pageout(dir.path(), &["predict", "loop.toml", "--quiet", "--repeat", seeds]))
    };
    assert!(page("5").contains("A kernel that is outside of a range refutes it."));
    let few = page("4");
    assert!(few.contains("unknown: fewer than 5 seeds") && !few.contains("range refutes it."), "{few}");
}

#[test]
fn median_of_an_even_number_is_between_the_middle_two() {
    let dir = tempfile::tempdir().unwrap();
    let output = predict(dir.path(), &[UNKNOWN, &["--json"]].concat());
    let page: Value = serde_json::from_str(&check_success(&output)).unwrap();
    // Two worlds of two seeds: 398, 398, 4000 and 4000.
    assert_eq!(page["columns"][0]["figures"]["task reader: misses"]["middle"], 2199.0, "{page}");
}

#[test]
fn commands_to_check_name_what_exists() {
    let dir = tempfile::tempdir().unwrap();
    let scenario =
        LOOP.replace("read_ahead_kb = 0", "read_ahead_kb = 64").replace("mglru@6.12", "classic@5.15")
            + "[[swap]]\nkind = \"disk\"\nsize = \"8MiB\"\n[[swap]]\nkind = \"zram\"\nsize = \"8MiB\"\n";
    fs::write(dir.path().join("loop.toml"), scenario).unwrap();
    let page = check_success(&pageout(dir.path(), &["predict", "loop.toml", "--quiet"]));
    for part in [
        "/sys/class/bdi/$(mountpoint -d /mnt)/read_ahead_kb",
        "[ ! -e /sys/kernel/mm/lru_gen/enabled ]",
        "/dev/zram0",
    ] {
        assert!(page.contains(part), "{part:?} is not in\n{page}");
    }
    for part in ["/sys/block/disk/", "/dev/SWAP", "/dev/zram1"] {
        assert!(!page.contains(part), "{part:?} is in\n{page}");
    }
}
