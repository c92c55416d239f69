//! Recordings of this machine, where it lets itself be recorded; what is refused, anywhere.
//!
//! A live test needs root, tracefs and Linux 6.12. Where these are missing it says so on standard error, and there is nothing that it could find.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

/// Whether reads can be recorded here; if not, says which test was left out and why.
#[track_caller]
fn can_record() -> bool {
    let output = pageout(Path::new("."), &["record", "--check", "--json"]);
    let found: Value = serde_json::from_str(&check_success(&output)).unwrap();
    let missing = found["sources"].as_array().unwrap().iter().find(|source| {
        let name = source["source"].as_str().unwrap();
        ["tracefs instance", "filemap:mm_filemap_get_pages", "memory.stat"].contains(&name)
            && source["is_there"] == false
    });
    if let Some(missing) = missing {
        eprintln!("left out: {} is missing here: {}", missing["source"], missing["remark"]);
    }
    missing.is_none()
}

/// Instances of recorders of this test's processes.
fn instances() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A folder with a file of `pages` pages that are on the disk.
fn with_file(pages: usize) -> tempfile::TempDir {
    // Not below /tmp, which may have no disk.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(directory.path().join("data"), vec![7; pages * 4096]).unwrap();
    std::fs::File::open(directory.path().join("data")).unwrap().sync_all().unwrap();
    directory
}

#[test]
fn what_cannot_be_recorded_is_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let arguments = [&["record", "--into", "rec"], arguments].concat();
        check_failure(&pageout(directory.path(), &arguments), 2, parts);
        assert!(!directory.path().join("rec").exists(), "{arguments:?} left a folder");
    };
    refused(&["--events", "reads,everything"], &["everything", "insertions"]);
    refused(&["--sample", "1/3"], &["1/3", "power of two"]);
    refused(&["--for", "0s"], &["--for: found 0, expected a time above 0"]);
    refused(&["--for", "fast"], &["--for fast"]);
    refused(&["--stat-every", "1ms"], &["10ms"]);
    refused(&["--cgroup", "no/such/group"], &["no/such/group"]);
    if cfg!(target_os = "linux") {
        refused(&["--pid", "4194303"], &["4194303"]);
        // The error is the command's, and not that of a shell which can't start it.
        refused(&["--events", "none", "--", "/nosuch"], &["cannot start /nosuch: No such file or directory"]);
        refused(&["--events", "none", "--", "no-such-program"], &["cannot start no-such-program"]);
    }
    std::fs::create_dir(directory.path().join("full")).unwrap();
    std::fs::write(directory.path().join("full/x"), "").unwrap();
    check_failure(&pageout(directory.path(), &["record", "--into", "full"]), 2, &["full", "not empty"]);
    check_failure(&pageout(directory.path(), &["record"]), 2, &["--into"]);
}

#[test]
fn each_read_of_a_program_is_recorded_in_its_order() {
    if !can_record() {
        return;
    }
    const PAGES: usize = 50_000;
    let directory = with_file(PAGES);
    // Twice, so that the second half are hits.
    let script = "dd if=data of=/dev/null bs=4096 2>/dev/null; dd if=data of=/dev/null bs=4096 2>/dev/null";
    let arguments = ["record", "--into", "rec", "--json", "--", "sh", "-c", script];
    let recorded: Value =
        serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
    assert_eq!(recorded["source"]["lost_events"], 0, "the buffers hold this");
    let files = recorded["file"].as_array().unwrap();
    let file = files
        .iter()
        .find(|file| file["name"].as_str().unwrap().ends_with("/data"))
        .expect("it was open for long");
    assert_eq!(file["pages_read"], 2 * PAGES);
    assert_eq!(file["bytes"], PAGES * 4096);
    let object = file["object"].as_u64().unwrap() as u32;
    let mut stream = pageout_workload::trace::open(
        &directory.path().join("rec/accesses.pgt"),
        &pageout_workload::ReadOptions::default(),
    )
    .unwrap();
    let mut accesses = Vec::new();
    while stream.fill(&mut accesses, 1 << 16).unwrap() > 0 {}
    let pages: Vec<u64> =
        accesses.iter().filter(|access| access.object() == object).map(|access| access.page()).collect();
    let list: Vec<u64> = (0..2 * PAGES as u64).map(|at| at % PAGES as u64).collect();
    assert!(pages == list, "the list is the program's own");
    let replayed =
        check_success(&pageout(directory.path(), &["replay", "rec/accesses.pgt", "--memory", "50%"]));
    assert!(replayed.contains("misses"), "{replayed}");
}

#[test]
fn a_signal_ends_a_recording_whole_and_leaves_nothing_behind() {
    if !can_record() {
        return;
    }
    for signal in ["INT", "TERM", "HUP"] {
        let directory = with_file(100);
        let script = "while :; do cat data > /dev/null; sleep 0.05; done";
        // Whoever runs the tests in the background may have signals ignored.
        let mut recorder = Command::new("env")
            .args(["--default-signal=HUP,INT,TERM", &super::binary()])
            .args(["record", "--into", "rec", "--", "sh", "-c", script])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let name = format!("pageout-record-{}", recorder.id());
        let since = Instant::now();
        while !instances().contains(&name) && since.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(500));
        let kill =
            Command::new("kill").args([&format!("-{signal}"), &recorder.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert!(recorder.wait().unwrap().success(), "{signal}");
        assert!(!instances().contains(&name), "{signal} left an instance");
        let manifest = std::fs::read_to_string(directory.path().join("rec/recording.toml")).unwrap();
        assert!(manifest.contains(&format!("ended = \"SIG{signal}\"")), "{manifest}");
        let info = check_success(&pageout(directory.path(), &["trace", "info", "rec/accesses.pgt"]));
        assert!(info.contains("accesses"), "{info}");
    }
}

#[test]
fn names_are_left_out_if_asked() {
    if !can_record() {
        return;
    }
    let directory = with_file(100);
    let arguments =
        ["record", "--into", "rec", "--anonymize", "--", "sh", "-c", "cat data data data >/dev/null"];
    let output = pageout(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let manifest = std::fs::read_to_string(directory.path().join("rec/recording.toml")).unwrap();
    assert!(
        manifest.contains("name = \"file-1\"") && !manifest.contains("/data") && !manifest.contains("cat "),
        "{manifest}"
    );
    let header = pageout(directory.path(), &["trace", "info", "rec/accesses.pgt", "--json"]);
    assert!(!check_success(&header).contains("/data"));
}

#[test]
fn a_recording_ends_at_its_size_and_its_time() {
    if !can_record() {
        return;
    }
    let directory = with_file(2000);
    let script = "while :; do dd if=data of=/dev/null bs=4096 2>/dev/null; done";
    for (name, option, value, told) in
        [("a", "--max-size", "1KiB", "size is reached"), ("b", "--for", "300ms", "time is over")]
    {
        let arguments = ["record", "--into", name, option, value, "--", "sh", "-c", script];
        let output = check_success(&pageout(directory.path(), &arguments));
        assert!(output.contains(&format!("the requested {told}")), "{output}");
    }
}

#[test]
fn a_full_disk_is_named_and_leaves_no_half_recording() {
    if !can_record() || !Path::new("/dev/full").exists() {
        return;
    }
    let directory = with_file(10);
    let full = directory.path().join("small");
    std::fs::create_dir(&full).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8k", "none"]).arg(&full).status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("left out: nothing can be mounted here");
        return;
    }
    let output = pageout(
        directory.path(),
        &["record", "--into", "small/rec", "--", "sh", "-c", "cat data >/dev/null"],
    );
    let left = std::fs::read_dir(&full).unwrap().count();
    let unmounted = Command::new("umount").arg(&full).status().unwrap();
    assert!(unmounted.success());
    check_failure(&output, 3, &["No space left", "there is no recording in small/rec"]);
    assert_eq!(left, 0, "what could not be finished is removed");
}
