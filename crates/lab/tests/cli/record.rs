//! Recordings of this machine, where it lets itself be recorded; what is refused, anywhere.
//!
//! A live test needs root, tracefs and Linux 6.12. Where these are missing it says so on standard error, and there is nothing that it could find.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

/// Returns true if reads can be recorded here; if not, says which test was left out and why.
#[track_caller]
fn can_record() -> bool {
    let output = pageout(Path::new("."), &["record", "--check", "--json"]);
    let found: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
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
        // Its price is measured before, by reads that are in no recording.
        assert!(
            output.contains("ns each on this machine") || output.contains("not measured here"),
            "{output}"
        );
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

/// Files of a machine of another kind, below a folder.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join("root").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

const IO: &str = "rchar: 40960\nwchar: 0\nsyscr: 1\nsyscw: 0\nread_bytes: 8192\nwrite_bytes: 0\n";
const ROLLUP: &str =
    "Rss: 12 kB\nPss_Anon: 4 kB\nPss_File: 8 kB\nPss_Shmem: 0 kB\nReferenced: 8 kB\nSwapPss: 0 kB\n";

/// A container of cgroup v2 on a kernel with MGLRU, without tracefs.
fn second_version() -> tempfile::TempDir {
    machine(&[
        ("proc/self/io", IO),
        ("proc/self/cgroup", "0::/app\n"),
        ("proc/sys/kernel/osrelease", "6.8.0\n"),
        ("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 400 kB\nCached: 300 kB\nAnonPages: 200 kB\n"),
        ("proc/vmstat", "workingset_refault_file 77\npswpin 3\n"),
        ("proc/812/io", IO),
        ("proc/812/smaps_rollup", ROLLUP),
        ("proc/812/status", "Name: db\nTgid: 812\n"),
        ("proc/812/cgroup", "0::/app\n"),
        ("proc/812/task/812/comm", "db\n"),
        ("sys/kernel/mm/lru_gen/enabled", "0x0007\n"),
        (
            "sys/kernel/debug/lru_gen",
            "memcg     1 /app\n node     0\n          3        500          6          7\n",
        ),
        ("sys/fs/cgroup/app/memory.stat", "anon 4096\nfile 8192\nworkingset_refault_file 5\n"),
        ("sys/fs/cgroup/app/memory.max", "1048576\n"),
        ("sys/fs/cgroup/app/memory.current", "20480\n"),
        ("sys/fs/cgroup/app/cgroup.threads", "812\n"),
    ])
}

#[test]
fn container_without_tracefs_is_recorded_by_counters() {
    let directory = second_version();
    let path = directory.path();
    std::fs::write(path.join("data"), vec![7; 3 * 4096]).unwrap();
    let arguments = ["record", "--root", "root", "--into", "rec", "--cgroup", "app", "--file", "data"];
    let output = pageout(path, &[&arguments[..], &["--for", "250ms", "--stat-every", "100ms"]].concat());
    let told = check_success(&output);
    let warning = text(&output.stderr);
    assert!(
        warning.contains("warning: no events are recorded, only counters: this kernel has no tracefs"),
        "{warning}"
    );
    assert!(told.contains("read by calls") && told.contains("note: no events"), "{told}");
    let read = |name: &str| std::fs::read_to_string(path.join("rec").join(name)).unwrap();
    assert!(read("processes.csv").contains(",812,40960,0,8192,0,12288,4096,8192,0,0,8192,0\n"));
    assert!(read("resident.csv").contains("\n0,0,3,3,0\n"), "{}", read("resident.csv"));
    assert!(read("samples.csv").contains(",20480,8192,4096,0,0,0,5,0,"), "{}", read("samples.csv"));
    assert_eq!(read("begin.lru_gen"), read("end.lru_gen"));
    let manifest = read("recording.toml");
    assert!(manifest.contains("lru_gen = \"0x0007\"") && manifest.contains("version = 2"), "{manifest}");
    let ages = check_success(&pageout(path, &["working-set", "rec/end.lru_gen"]));
    assert!(ages.contains("/app"), "{ages}");
    let twin = check_success(&pageout(path, &["twin", "rec", "--ask", "memory=-10%"]));
    assert!(twin.contains("By /proc/PID/io: calls read 0 B") && twin.contains("as mglru@6.8"), "{twin}");
    assert!(twin.contains("memory=-10%: not answered, as a recording of counters only"), "{twin}");
}

#[test]
fn events_that_are_asked_for_by_name_are_refused_with_the_next_way() {
    let directory = second_version();
    let asked = ["record", "--root", "root", "--into", "rec", "--pid", "812", "--events"];
    let refused = |kind: &str, parts: &[&str]| {
        check_failure(&pageout(directory.path(), &[&asked[..], &[kind]].concat()), 2, parts);
        assert!(!directory.path().join("rec").exists(), "nothing is left");
    };
    refused("reads", &["no tracefs", "help: record counters only", "--events none"]);
    refused("regions", &["CONFIG_DAMON_SYSFS is off", "help: record counters only"]);
    refused("reads,none", &["found `none`, expected reads, faults"]);
    let group = ["record", "--root", "root", "--into", "rec", "--cgroup", "other", "--for", "1s"];
    check_failure(&pageout(directory.path(), &group), 2, &["no such cgroup", "by --pid"]);
}

#[test]
fn machine_without_a_controller_is_recorded_by_its_processes() {
    let directory = second_version();
    let path = directory.path();
    std::fs::remove_dir_all(path.join("root/sys/fs")).unwrap();
    let record = |into: &str, more: &[&str]| {
        let arguments = ["record", "--root", "root", "--into", into, "--for", "50ms", "--events", "none"];
        let told = check_success(&pageout(path, &[&arguments[..], more].concat()));
        assert!(told.contains("note: no memory controller"), "{told}");
        std::fs::read_to_string(path.join(into).join("samples.csv")).unwrap()
    };
    // The sum over processes: 12 KiB, of which 8 KiB are of files.
    let samples = record("one", &["--pid", "812"]);
    assert!(samples.contains("\n0,12288,8192,4096,0,0,0,0,0,\n"), "{samples}");
    // The machine's own counters.
    let samples = record("all", &[]);
    assert!(samples.contains("\n0,614400,307200,204800,0,0,0,77,3,\n"), "{samples}");
    let twin = check_success(&pageout(path, &["twin", "one"]));
    assert!(twin.contains("refaults: unknown: no workingset_refault_file in memory.stat"), "{twin}");
}

#[test]
fn check_lists_the_ways_and_says_by_its_code_which_are_open() {
    let directory = second_version();
    let check = |more: &[&str]| {
        let output =
            pageout(directory.path(), &[&["record", "--check", "--root", "root"][..], more].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, told, error) = check(&[]);
    assert_eq!(code, Some(4), "{error}");
    assert!(error.contains("no events, only counters") && error.contains("--events none"), "{error}");
    let (open, closed) = told.split_once("closed, and how to open it:").unwrap();
    let open = open.split_once("you can:").unwrap().1;
    for way in ["residency", "processes", "group", "generations"] {
        assert!(open.contains(&format!("  {way}: ")) && !closed.contains(&format!("  {way}: ")), "{told}");
    }
    for part in [
        "events: ",
        "mount: mount -t tracefs",
        "capability: ",
        "docker: docker run --pid host",
        "kubernetes: hostPID",
    ] {
        assert!(closed.contains(part), "{part:?} is not in {told}");
    }
    let found: Value = serde_json::from_str(&check(&["--json"]).1).unwrap();
    let ways: Vec<(&str, bool)> = found["ways"]
        .as_array()
        .unwrap()
        .iter()
        .map(|way| (way["way"].as_str().unwrap(), way["is_open"].as_bool().unwrap()))
        .collect();
    let expected = [("events", false), ("regions", false), ("residency", true), ("processes", true)];
    assert_eq!(ways, [&expected[..], &[("group", true), ("generations", true)]].concat());
    std::fs::remove_dir_all(directory.path().join("root")).unwrap();
    let (code, told, error) = check(&[]);
    assert_eq!((code, told.contains("  nothing\n")), (Some(2), true), "{error}");
}

#[test]
fn what_a_command_read_is_known_without_events() {
    let directory = with_file(100);
    let script = "cat data data > /dev/null; (cat data > /dev/null) & wait";
    let arguments =
        ["record", "--into", "rec", "--events", "none", "--file", "data", "--", "sh", "-c", script];
    let told = check_success(&pageout(directory.path(), &arguments));
    assert!(told.contains("(the command has ended)"), "{told}");
    let manifest = std::fs::read_to_string(directory.path().join("rec/recording.toml")).unwrap();
    let read = manifest.lines().find_map(|line| line.strip_prefix("rchar = ")).unwrap();
    let read: u64 = read.parse().unwrap();
    // What the shells and the loader read comes on top.
    assert!((3 * 409_600..3 * 409_600 + 200_000).contains(&read), "{read}");
    let resident = std::fs::read_to_string(directory.path().join("rec/resident.csv")).unwrap();
    assert!(resident.lines().last().unwrap().contains(",0,100,"), "{resident}");
}

#[test]
fn exit_code_of_the_command_is_passed_on() {
    let directory = with_file(1);
    for (into, script, code) in [("three", "exit 3", 3), ("signal", "kill -TERM $$", 128 + 15)] {
        let arguments = ["record", "--into", into, "--events", "none", "--", "sh", "-c", script];
        let output = pageout(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        let told = text(&output.stderr);
        assert!(told.contains("error: the command ") && told.contains("the recording is complete"), "{told}");
        let manifest = std::fs::read_to_string(directory.path().join(into).join("recording.toml")).unwrap();
        assert!(manifest.contains(&format!("command_code = {code}\n")), "{manifest}");
    }
    // A command that the recorder ends has not failed.
    let endless = ["record", "--into", "time", "--events", "none", "--for", "200ms", "--", "sleep", "60"];
    check_success(&pageout(directory.path(), &endless));
}

#[test]
fn what_a_command_read_is_known_without_rights() {
    let directory = with_file(100);
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory.path(), everyone).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", &super::binary()])
        .args(["record", "--into", "rec", "--events", "none", "--", "sh", "-c", "cat data data > /dev/null"])
        .current_dir(directory.path())
        .output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        eprintln!("left out: this user cannot become another one, or that one cannot run the program");
        return;
    };
    assert!(text(&output.stdout).contains("read by calls"), "{}", text(&output.stdout));
    let manifest = std::fs::read_to_string(directory.path().join("rec/recording.toml")).unwrap();
    let read = manifest.lines().find_map(|line| line.strip_prefix("rchar = ")).unwrap();
    let read: u64 = read.parse().unwrap();
    assert!((2 * 409_600..2 * 409_600 + 200_000).contains(&read), "{read}");
}

#[test]
fn command_is_recorded_once_per_limit() {
    if !can_record() {
        return;
    }
    let directory = with_file(2000);
    let script = "cat data data > /dev/null";
    let arguments =
        ["record", "--into", "rec", "--limits", "4M,6M,16M", "--cold", "data", "--", "sh", "-c", script];
    let output = pageout(directory.path(), &arguments);
    if text(&output.stderr).contains("no cgroup with a limit can be made") {
        eprintln!("left out: {}", text(&output.stderr));
        return;
    }
    let told = check_success(&output);
    assert!(told.contains("next: pageout twin rec/6M --against rec/4M,rec/16M"), "{told}");
    let sums = |name: &str| {
        let manifest =
            std::fs::read_to_string(directory.path().join("rec").join(name).join("recording.toml"));
        manifest.unwrap().parse::<toml_edit::DocumentMut>().unwrap()
    };
    for (name, limit) in [("4M", 4 << 20), ("6M", 6 << 20), ("16M", 16 << 20)] {
        let found = sums(name);
        assert_eq!(found["group"]["limit_bytes"].as_integer(), Some(limit), "{name}");
        // Each run starts cold: it brings in what the first one did, at least once.
        assert!(found["sums"]["insertions"].as_integer().unwrap() >= 2000, "{name}");
    }
    let small = sums("4M")["sums"]["insertions"].as_integer().unwrap();
    assert!(small > sums("16M")["sums"]["insertions"].as_integer().unwrap() + 1500);
    // No program starts within two pages.
    let killed = ["record", "--into", "killed", "--limits", "8K", "--", "true"];
    let output = pageout(directory.path(), &killed);
    let told = text(&output.stdout);
    assert!(told.contains("note: the limit killed 1 task: the recording ends early"), "{told}");
    assert_eq!(output.status.code(), Some(128 + 9), "{}", text(&output.stderr));
    for limits in ["4M,4096KiB", "0,4M", "much"] {
        let arguments = ["record", "--into", "other", "--limits", limits, "--", "true"];
        check_failure(&pageout(directory.path(), &arguments), 2, &["--limits"]);
    }
}
