//! Real files through the live page cache: traces replayed beside the simulator, and measured beside what the kernel offers.
#![cfg(target_os = "linux")]

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{check_failure, check_success, pageout, text};

const PAGE: u64 = 4096;

/// A folder with a trace over 600 pages, hot ones and runs, and a file as long.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 7_u64;
    let mut draw = |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let mut pages = vec![599];
    for _ in 0..1500 {
        match draw(8) {
            0 => {
                let first = draw(560);
                pages.extend(first..first + draw(40));
            }
            _ => pages.extend([draw(90); 2]),
        }
    }
    let lines: String = pages.iter().map(|page| format!("{page}\n")).collect();
    std::fs::write(folder.path().join("trace.txt"), lines).unwrap();
    std::fs::write(folder.path().join("data.bin"), vec![1; 600 * PAGE as usize]).unwrap();
    folder
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let printed = check_success(&pageout(folder, &[arguments, &["--json", "--quiet"]].concat()));
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn a_trace_on_a_real_file_leaves_the_counters_of_the_simulator() {
    let folder = folder();
    for (policy, ahead) in
        [("classic@6.12", "128"), ("mglru@6.12", "128"), ("mglru@7.1", "0"), ("lru@machine", "0")]
    {
        let replay = [
            "replay",
            "trace.txt",
            "--live",
            "data.bin",
            "--memory",
            "30%",
            "--policy",
            policy,
            "--read-ahead-kb",
            ahead,
        ];
        let result = json(folder.path(), &replay);
        assert_eq!(result["equal"], true, "{policy}: {result:#}");
        let counters = result["counters"].as_array().unwrap();
        let of =
            |name: &str| counters.iter().find(|row| row["name"] == name).unwrap()["live"].as_u64().unwrap();
        assert!(of("memory.stat workingset_refault_file") > 100, "{policy}: {result:#}");
        assert!(of("pages read from the device") > 600, "{policy}");
    }
    let told = check_success(&pageout(folder.path(), &["replay", "trace.txt", "--live", "data.bin"]));
    assert!(told.contains("all are equal"), "{told}");
}

#[test]
fn trace_on_a_region_leaves_the_counters_of_the_simulator() {
    let folder = folder();
    std::fs::write(
        folder.path().join("writes.csv"),
        std::fs::read_to_string(folder.path().join("trace.txt"))
            .unwrap()
            .lines()
            .enumerate()
            .fold("page,op\n".to_string(), |text, (at, page)| {
                text + page + if at % 3 == 0 { ",write\n" } else { ",read\n" }
            }),
    )
    .unwrap();
    for (policy, trace) in
        [("classic@6.12", "trace.txt"), ("mglru@6.12", "writes.csv"), ("mglru@7.1", "trace.txt")]
    {
        let replay = ["replay", trace, "--live", ".", "--region", "--memory", "30%", "--policy", policy];
        let writes: &[&str] = if trace == "writes.csv" { &["--writes"] } else { &[] };
        let result = json(folder.path(), &[&replay, writes].concat());
        assert_eq!(result["equal"], true, "{policy}: {result:#}");
        assert_eq!(result["region_bytes"], 600 * PAGE);
        let counters = result["counters"].as_array().unwrap();
        let of =
            |name: &str| counters.iter().find(|row| row["name"] == name).unwrap()["live"].as_u64().unwrap();
        assert!(of("memory.stat workingset_refault_anon") > 100, "{policy}: {result:#}");
        assert!(of("vmstat pswpin") > 100 && of("vmstat pswpout") > 300, "{policy}: {result:#}");
    }
    let told = check_success(&pageout(folder.path(), &["replay", "trace.txt", "--live", ".", "--region"]));
    assert!(told.contains("on anonymous memory") && told.contains("all are equal"), "{told}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "the swap file is gone");
}

#[test]
fn a_file_that_is_made_for_a_trace_is_as_long_as_that_and_goes_where_the_replay_fails() {
    let folder = folder();
    let replay = |more: &[&str]| {
        pageout(folder.path(), &[&["replay", "trace.txt", "--live", "new.bin", "--quiet"], more].concat())
    };
    check_failure(&replay(&[]), 2, &["new.bin", "--make"]);
    check_failure(&replay(&["--make", "--policy", "mglru@1.0"]), 2, &["--policy"]);
    check_failure(&replay(&["--make", "--memory", "900TiB"]), 2, &["--memory", "available"]);
    assert!(!folder.path().join("new.bin").exists(), "what is made for a replay that fails goes");
    check_success(&replay(&["--make"]));
    assert_eq!(std::fs::metadata(folder.path().join("new.bin")).unwrap().len(), 600 * PAGE);
    // It is there now, and is read as it is.
    check_success(&replay(&["--make"]));
}

#[test]
fn a_live_replay_refuses_what_it_can_not_do() {
    let folder = folder();
    std::fs::write(folder.path().join("short.bin"), vec![1; 599 * PAGE as usize]).unwrap();
    std::fs::write(folder.path().join("two.csv"), "object,page\na,1\nb,2\n").unwrap();
    let refused: [(&[&str], &[&str]); 12] = [
        (&["trace.txt", "--live", "data.bin", "--region"], &["data.bin", "expected the folder"]),
        (
            &["two.csv", "--live", ".", "--region", "--memory", "1MiB"],
            &["2 objects", "1 folder", "one of each"],
        ),
        (&["trace.txt", "--live", ".", "--region", "--swap", "disk"], &["--swap"]),
        (&["trace.txt", "--live", "short.bin"], &["page 599", "2.34 MiB", "short.bin"]),
        (&["trace.txt", "--live", "."], &["found a folder or a device, expected a file"]),
        (&["trace.txt", "--live", "data.bin", "--live", "data.bin"], &["1 object", "2 files"]),
        (
            &["two.csv", "--live", "data.bin", "--memory", "1MiB"],
            &["2 objects", "1 file", "repeat --live for each object"],
        ),
        (&["trace.txt", "--live", "data.bin", "--writes"], &["--writes", "only reads"]),
        (&["trace.txt", "--live", "data.bin", "--channel", "mapped"], &["--channel"]),
        (&["trace.txt", "--live", "data.bin", "--policy", "s3-fifo"], &["one kernel policy"]),
        (&["trace.txt", "--live", "data.bin", "--memory", "10%,20%"], &["one size"]),
        (&["trace.txt", "--live", "data.bin", "--read-ahead-kb", "64"], &["--read-ahead-kb 64"]),
    ];
    for (arguments, parts) in refused {
        check_failure(&pageout(folder.path(), &[&["replay", "--quiet"], arguments].concat()), 2, parts);
    }
}

const SMALL: [&str; 8] = ["--budget", "8MiB", "--size", "12MiB", "--reads", "2000", "--rounds", "2"];

#[test]
fn a_bench_tells_of_all_that_read_and_leaves_nothing_behind() {
    let folder = folder();
    let here = folder.path().join("room");
    std::fs::create_dir(&here).unwrap();
    let result = json(
        folder.path(),
        &[&["bench", "--folder", "room", "--beside", "kernel,memcpy"], &SMALL[..]].concat(),
    );
    let ways = result["ways"].as_array().unwrap();
    let names: Vec<&str> = ways.iter().map(|way| way["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["pageout", "buffered", "mmap", "memcpy"]);
    for way in ways {
        assert!(way["reads_per_s"]["median"].as_f64().unwrap() > 0.0, "{way:#}");
        assert!(way["cpu_ns_per_read"]["least"].as_f64().unwrap() > 0.0, "{way:#}");
        let latency = &way["latency"];
        assert_eq!(latency["calls"], 2000);
        let sum: u64 =
            latency["histogram"].as_array().unwrap().iter().map(|bin| bin["calls"].as_u64().unwrap()).sum();
        assert_eq!(sum, 2000);
    }
    assert_eq!(ways[0]["times_its_cpu"]["median"], 1.0);
    assert!(ways[0]["own"]["misses"].as_u64().unwrap() > 100, "a file of more than the budget: {result:#}");
    assert!(ways[0]["memory_bytes"].as_u64().unwrap() <= 9 << 20, "{result:#}");
    assert_eq!(std::fs::read_dir(&here).unwrap().count(), 0, "the file has no name");
    let told = check_success(&pageout(
        folder.path(),
        &[&["bench", "--quiet", "--beside", "none"], &SMALL[..]].concat(),
    ));
    assert!(told.contains("the engine's lock was taken"), "{told}");
}

#[test]
fn a_bench_reads_batches_by_io_uring_where_the_system_lets_it() {
    use pageout_live::{Backend, Memory};
    let folder = folder();
    // Larger than what is in flight together.
    let arguments = ["bench", "--batch", "100", "--load", "uniform", "--beside", "io_uring"];
    let arguments = [&arguments[..], &SMALL[..]].concat();
    match Memory::builder().budget(8 << 20).backend(Backend::Uring).build() {
        Ok(_) => {
            let result = json(folder.path(), &arguments);
            assert_eq!(result["ways"][1]["name"], "io_uring");
            assert!(result["ways"][1]["reads_per_s"]["least"].as_f64().unwrap() > 0.0, "{result:#}");
        }
        Err(_) => check_failure(&pageout(folder.path(), &arguments), 2, &["io_uring"]),
    }
}

#[test]
fn a_bench_reads_in_other_ways_too() {
    let folder = folder();
    let ways: [&[&str]; 5] = [
        &["--in-place", "--beside", "mmap"],
        &["--batch", "8", "--load", "uniform", "--cold", "--beside", "buffered"],
        &["--threads", "3", "--load", "sequential", "--beside", "none"],
        &["--load", "trace.txt", "--threads", "2", "--policy", "classic@6.12", "--beside", "direct"],
        &["--buffered", "--load", "zipf:0.5", "--beside", "none"],
    ];
    for arguments in ways {
        let result = json(folder.path(), &[&["bench"], arguments, &SMALL[..]].concat());
        assert_eq!(result["rounds"], 2, "{arguments:?}");
    }
    let own =
        ["bench", "data.bin", "--budget", "8MiB", "--reads", "500", "--rounds", "1", "--beside", "mmap"];
    assert_eq!(json(folder.path(), &own)["file_bytes"], 600 * PAGE);
}

#[test]
fn a_bench_refuses_what_can_not_be_read_or_held() {
    let folder = folder();
    std::fs::write(folder.path().join("little"), "a").unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let refused: [(&[&str], &[&str]); 15] = [
        (&["--budget", "1MiB"], &["--budget", "the minimum is"]),
        (&["--budget", "900TiB"], &["--budget", "available"]),
        (&["--policy", "mglru@1.0"], &["mglru@1.0", "pageout keys"]),
        (&["--load", "zip"], &["--load zip", "zipf"]),
        (&["--load", "zipf:many"], &["zipf:many", "0 to 100"]),
        (&["--beside", "bufered"], &["did you mean `buffered`"]),
        (&["--in-place", "--beside", "direct"], &["direct", "--in-place"]),
        (&["--folder", "nowhere"], &["nowhere", "no such folder"]),
        (&["--size", "900GiB", "--budget", "8GiB", "--beside", "none"], &["free", "--size"]),
        (&["--size", "1B"], &["--size", "4 KiB"]),
        (&["--reads", "100000000", "--rounds", "900"], &["--reads", "268,435,456"]),
        (&["."], &["found a folder or a device, expected a file"]),
        (&["pipe"], &["pipe", "found a folder or a device, expected a file"]),
        (&["little"], &["1 byte", "4 KiB"]),
        (&["data.bin", "--load", "far.txt"], &["page 700", "600 whole pages"]),
    ];
    std::fs::write(folder.path().join("far.txt"), "700\n700\n3\n").unwrap();
    for (arguments, parts) in refused {
        check_failure(&pageout(folder.path(), &[&["bench", "--quiet"], arguments].concat()), 2, parts);
    }
}

/// A bench of a file, begun. Two million reads a round would take minutes to draw, and two hundred thousand minutes to make.
fn begun(folder: &Path, reads: &str, more: &[&str]) -> Child {
    let path = folder.join("long.bin");
    std::fs::File::create(path).unwrap().write_all_at(&[1], 40 << 20).unwrap();
    let mut command = Command::new("env");
    command.args([
        "--default-signal=HUP,INT,TERM",
        &super::binary(),
        "bench",
        "long.bin",
        "--budget",
        "8MiB",
    ]);
    command.args(["--load", "uniform", "--reads", reads, "--rounds", "50", "--quiet"]).args(more);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// One that has come to its rounds, on a machine that has other work too.
fn long(folder: &Path, more: &[&str]) -> Child {
    let child = begun(folder, "200000", more);
    std::thread::sleep(Duration::from_secs(2));
    child
}

#[test]
fn a_file_that_becomes_shorter_while_it_is_measured_is_told() {
    let folder = folder();
    let run = long(folder.path(), &["--beside", "none"]);
    std::fs::File::options().write(true).open(folder.path().join("long.bin")).unwrap().set_len(PAGE).unwrap();
    let output = run.wait_with_output().unwrap();
    // Where the machine was so busy that nobody had read a page of it by then, its beginning is what fails.
    let code = if text(&output.stderr).contains("before") { 2 } else { 1 };
    check_failure(&output, code, &["long.bin", "short"]);
}

#[test]
fn a_bench_that_is_interrupted_before_its_rounds_ends_at_once() {
    // While it draws, and while it hands over.
    for after in [300, 1500] {
        let folder = folder();
        let run = begun(folder.path(), "2000000", &["--beside", "none"]);
        std::thread::sleep(Duration::from_millis(after));
        let asked = Instant::now();
        assert!(Command::new("kill").args(["-s", "INT", &run.id().to_string()]).status().unwrap().success());
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("SIGINT"), "{}", text(&output.stderr));
        assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    }
}

#[test]
fn a_bench_that_is_interrupted_leaves_no_process_and_no_group() {
    let folder = folder();
    let run = long(folder.path(), &["--beside", "buffered"]);
    // `env` has become the program.
    let pid = run.id();
    assert!(Command::new("kill").args(["-s", "INT", &pid.to_string()]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("SIGINT"), "{}", text(&output.stderr));
    let found = Command::new("find")
        .args(["/sys/fs/cgroup", "-name", &format!("pageout-bench-{pid}")])
        .output()
        .unwrap();
    assert_eq!(text(&found.stdout), "");
}
