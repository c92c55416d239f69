//! Compressed lengths of pages: measured from files and processes, and read by a scenario.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, with_scenario};

fn run(directory: &Path, arguments: &[&str]) -> Output {
    pageout(directory, &[&["trace", "compressibility"], arguments].concat())
}

fn json(directory: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&check_success(&run(directory, &arguments))).unwrap()
}

/// Ten pages: five of zeroes, two of one word, two of text, and noise.
fn ten_pages() -> Vec<u8> {
    let mut bytes = vec![0; 5 * 4096];
    bytes.extend(b"oneword!".repeat(2 * 512));
    bytes.extend((0..).flat_map(|line: u32| format!("line {line}\n").into_bytes()).take(2 * 4096));
    let mut state = 1_u64;
    bytes.extend((0..4096).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    }));
    bytes
}

#[test]
fn what_was_measured_of_a_file_are_keys_that_a_scenario_takes() {
    let directory = with_scenario(GOOD);
    let path = directory.path();
    std::fs::write(path.join("data"), ten_pages()).unwrap();
    let measured = &json(path, &["data"])[0];
    assert_eq!((&measured["region"], &measured["pages"]), (&"data".into(), &10.into()));
    assert_eq!((&measured["zero_filled"], &measured["same_filled"]), (&0.5.into(), &0.2.into()));
    for lengths in measured["lengths"].as_array().unwrap() {
        let deciles: Vec<u64> = lengths["deciles_bytes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bytes| bytes.as_u64().unwrap())
            .collect();
        assert_eq!((deciles.len(), deciles[10]), (11, 4096), "noise does not shrink: {lengths}");
        assert!(deciles[0] < 3000 && deciles.is_sorted(), "{lengths}");
        assert!((lengths["incompressible"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9);
    }
    let printed = check_success(&run(path, &["data", "--compressor", "zstd"]));
    let keys = printed.split_once("# data, 10 pages, zstd\n").unwrap_or_else(|| panic!("{printed}")).1;
    assert_eq!(keys.lines().count(), 3, "{keys}");
    let heap = format!(
        "{GOOD}\n[[task]]\nname = \"heap\"\n[[task.object]]\nchannel = \"anonymous\"\nsize = \"1MiB\"\n{keys}workload = {{ pattern = \"fill\" }}\n"
    );
    std::fs::write(path.join("heap.toml"), heap).unwrap();
    check_success(&pageout(path, &["run", "heap.toml", "--check"]));
    // A last page that is not full is filled up, and a sample says how much was compressed.
    std::fs::write(path.join("short"), &ten_pages()[..4097]).unwrap();
    assert_eq!(json(path, &["short"])[0]["pages"], 2);
    assert_eq!(json(path, &["data", "--sample", "3"])[0]["pages_compressed"], 3);
}

#[test]
#[cfg(target_os = "linux")]
fn of_a_process_what_could_be_swapped_out_is_measured_by_kind() {
    let directory = with_scenario(GOOD);
    let pid = std::process::id().to_string();
    let held: Vec<u64> = (0..1_000_000).map(|number| number * number).collect();
    let output = run(directory.path(), &[&pid, "--json"]);
    if output.status.code() == Some(2) {
        // A machine may forbid children to look into their parents.
        return check_failure(&output, 2, &["not permitted to read the memory of process"]);
    }
    let measured: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let pages: u64 =
        measured.as_array().unwrap().iter().map(|region| region["pages"].as_u64().unwrap()).sum();
    assert!(pages * 4096 > 8 * held.len() as u64, "{measured}");
    assert!(measured.as_array().unwrap().iter().any(|region| region["region"] == format!("stack of {pid}")));
}

#[test]
fn what_can_not_be_measured_says_why() {
    let directory = with_scenario(GOOD);
    let path = directory.path();
    std::fs::write(path.join("empty"), "").unwrap();
    std::fs::create_dir(path.join("folder")).unwrap();
    check_failure(&run(path, &["empty"]), 2, &["empty: found an empty file"]);
    check_failure(&run(path, &["folder"]), 2, &["folder: found a folder or a device, expected a file"]);
    check_failure(&run(path, &["none"]), 2, &["cannot read none"]);
    check_failure(&run(path, &["scenario.toml", "empty"]), 2, &["empty: found an empty file"]);
    check_failure(&run(path, &["scenario.toml", "--sample", "0"]), 2, &["--sample"]);
    check_failure(&run(path, &["scenario.toml", "--compressor", "lzo"]), 2, &["--compressor", "lz4", "zstd"]);
    check_failure(&run(path, &[]), 2, &["FILE|PID"]);
    if cfg!(target_os = "linux") {
        check_failure(&run(path, &["4194305"]), 2, &["no process 4194305", "./4194305"]);
        // Threads of the kernel have no memory; in a container there may be none of them.
        if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.starts_with("kthreadd")) {
            check_failure(&run(path, &["2"]), 2, &["process 2"]);
        }
    }
}

#[test]
fn contents_that_were_measured_are_shown_with_their_source_and_keys_that_say_it_twice_are_refused() {
    let directory = with_scenario(GOOD);
    let path = directory.path();
    let printed = check_success(&pageout(path, &["keys", "task[].object[].contents"]));
    for part in ["python-heap@zstd", "measured: ", "compressed_deciles = \"24 232", "zero_filled = 0.011"] {
        assert!(printed.contains(part), "{part:?} is not in:\n{printed}");
    }
    let heap = |keys: &str| {
        let heap = format!(
            "{GOOD}\n[[task]]\nname = \"heap\"\n[[task.object]]\nchannel = \"anonymous\"\nsize = \"1MiB\"\nworkload = {{ pattern = \"fill\" }}\n{keys}\n"
        );
        std::fs::write(path.join("heap.toml"), heap).unwrap();
        pageout(path, &["run", "heap.toml", "--check"])
    };
    check_success(&heap("contents = \"c-source@lz4\"\nzero_filled = 0.1"));
    check_failure(&heap("contents = \"c-sauce@lz4\""), 2, &["c-sauce@lz4", "c-source@lz4"]);
    check_failure(&heap("compressed_deciles = \"1 2 3\""), 2, &["has 3 lengths", "trace compressibility"]);
    check_failure(
        &heap("contents = \"c-source@lz4\"\ncompressed_min = 0.2"),
        2,
        &["both `contents` and `compressed_min`", "keep one"],
    );
}
