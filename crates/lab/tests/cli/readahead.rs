//! Readahead as a scenario describes it: windows, calls, advice, who has the file open, and what of it was of no use.

use serde_json::Value;

use super::{check_failure, check_success, pageout, run_with, with_scenario};

/// A reader of 1,000 pages in order, with room for all; what stands in `device` and `object` is added there.
fn reader(device: &str, object: &str) -> String {
    format!(
        "[[device]]\nname = \"disk\"\npreset = \"nvme\"\nread_ahead_kb = 128\n{device}\n\
         [[task]]\nname = \"reader\"\n[[task.object]]\nchannel = \"file\"\nsize = \"1000 pages\"\n\
         workload = {{ pattern = \"sequential\" }}\n{object}\n"
    )
}

#[track_caller]
fn run(scenario: &str) -> Value {
    let output = pageout(with_scenario(scenario).path(), &["run", "scenario.toml", "--json"]);
    serde_json::from_str(&check_success(&output)).unwrap()
}

/// Requests that the device read, pages of them, and pages that nobody had asked for.
fn read(result: &Value) -> (u64, u64, u64) {
    let device = &result["devices"][0];
    let number = |value: &Value| value.as_u64().unwrap();
    (number(&device["reads"]["count"]), number(&device["pages_read"]), number(&result["readahead"]["pages"]))
}

#[test]
fn window_comes_from_what_the_device_says() {
    let seen = |device: &str, kb: u64| {
        let result = run(&reader(device, "").replace("read_ahead_kb = 128", ""));
        assert_eq!(result["readahead"]["read_ahead_kb"]["disk"], kb, "{device}");
        read(&result).0
    };
    let usual = seen("", 128);
    assert_eq!(seen("optimal_io_kb = 4", 128), usual, "as zram: a page at a time is no reason for less");
    // As a disk of 6.18.44 with 1,280 KiB a request: 2,560; without being rotational it had 128.
    let (large, rotational) = (seen("optimal_io_kb = 1280", 2560), seen("rotational = true", 2560));
    assert!(large < usual && rotational == large, "{large} and {rotational} of {usual} requests");
    seen("rotational = true\nmax_sectors_kb = 4096", 8192);
    seen("rotational = true\noptimal_io_kb = 256", 512);
    let set = reader("rotational = true\noptimal_io_kb = 256", "");
    assert_eq!(run(&set)["readahead"]["read_ahead_kb"]["disk"], 128, "what is set counts");
}

#[test]
fn a_file_read_in_order_comes_in_windows_and_off_page_by_page() {
    // 4, 8, 16 and then 32 pages at a time.
    assert_eq!(read(&run(&reader("", ""))), (34, 1000, 999));
    let off = reader("", "").replace("read_ahead_kb = 128", "read_ahead_kb = 0");
    assert_eq!(read(&run(&off)), (1000, 1000, 0));
    let result = run(&reader("", ""));
    assert!(result["tasks"][0]["hit_ratio"].as_f64().unwrap() > 0.9, "most of it is there when it is wanted");
    assert_eq!(result["readahead"]["unused_pages"], 0);
}

#[test]
fn a_request_larger_than_the_device_takes_is_several() {
    let calls = "request_size = \"400KiB\"";
    // 100 pages at a time: more than the window, so that each call and the one after it are read in one go.
    let (requests, pages, _) = read(&run(&reader("", calls)));
    assert_eq!((requests, pages), (10, 1000));
    let (requests, pages, _) = read(&run(&reader("max_sectors_kb = 64", calls)));
    assert_eq!((requests, pages), (63, 1000), "requests of 16 pages, pieces of windows of 32");
}

#[test]
fn calls_of_several_pages_draw_requests_and_cost_less_a_page() {
    let random = |object: &str| {
        reader("", object).replace("pattern = \"sequential\"", "pattern = \"uniform\", ops = 50")
    };
    let calls = run(&random("request_size = \"16KiB\"\nadvice = \"random\""));
    assert_eq!(calls["accesses"], 200, "fifty requests of four pages");
    let (requests, pages, _) = read(&calls);
    assert!(
        requests <= 50 && pages == 4 * requests,
        "each request is read in one piece: {requests}, {pages}"
    );
    let system = |result: &Value| result["tasks"][0]["system_time_ns"].as_u64().unwrap();
    let cached = |object: &str| {
        run(&reader("", &format!("share = 1\n{object}"))
            .replace("[[task.object]]", "loops = 20\n[[task.object]]"))
    };
    assert!(10 * system(&cached("request_size = \"1MiB\"")) < 8 * system(&cached("")));
}

#[test]
fn advice_widens_windows_turns_them_off_or_begins_them() {
    let (sequential, ..) = read(&run(&reader("", "advice = \"sequential\"")));
    assert!(sequential < 25, "windows of 64 pages: {sequential}");
    assert_eq!(read(&run(&reader("", "advice = \"random\""))), (1000, 1000, 0));
    let few = reader("", "advice = \"willneed\"")
        .replace("pattern = \"sequential\"", "pattern = \"uniform\", ops = 1");
    let (requests, pages, ahead) = read(&run(&few));
    assert!(
        (1..=2).contains(&requests) && (320..=321).contains(&pages) && ahead >= 319,
        "{requests} {pages} {ahead}"
    );
    let mapped = |advice: &str| {
        let text = reader("", &format!("advice = \"{advice}\""))
            .replace("channel = \"file\"", "channel = \"mapped\"");
        read(&run(&text))
    };
    assert!(mapped("sequential").0 < 40 && mapped("normal").0 < 40);
    assert_eq!(mapped("random"), (1000, 1000, 0));
}

#[test]
fn what_was_read_for_nothing_is_told() {
    let text = reader("", "").replace(
        "pattern = \"sequential\"",
        "pattern = \"limit\", ops = 10, of = { pattern = \"sequential\" }",
    );
    let result = run(&text);
    let number = |key: &str| result["readahead"][key].as_u64().unwrap();
    assert_eq!((number("pages"), number("unused_pages"), number("dropped_pages")), (27, 18, 0));
    let printed = check_success(&pageout(with_scenario(&text).path(), &["run", "scenario.toml"]));
    assert!(
        printed.contains(
            "readahead: up to 128 KiB; 27 pages before they were asked for, 18 of them never used (66.67%)"
        ),
        "{printed}"
    );
}

#[test]
fn threads_that_share_an_open_file_disturb_each_others_windows() {
    let threads = |opened_by: &str| {
        let text = reader("", &format!("opened_by = \"{opened_by}\""))
            .replace("[[task.object]]", "threads = 2\nthink_time = \"50us\"\n[[task.object]]")
            .replace("pattern = \"sequential\"", "pattern = \"runs\", length = 64, ops = 1000, alpha = 0.0");
        read(&run(&text)).0
    };
    let (shared, own) = (threads("process"), threads("thread"));
    assert!(shared > own, "shared {shared}, each its own {own}");
}

#[test]
fn any_scenario_can_vary_the_readahead_of_the_device_that_is_always_there() {
    let unnamed = reader("", "").split_once("[[task]]").map(|(_, task)| format!("[[task]]{task}")).unwrap();
    let directory = with_scenario(&unnamed);
    let vary = ["compare", "scenario.toml", "--vary", "device.nvme.read_ahead_kb=0,128", "--json"];
    let compared: Value = serde_json::from_str(&check_success(&pageout(directory.path(), &vary))).unwrap();
    let pages = |at: usize| compared["variants"][at]["runs"][0]["readahead"]["pages"].as_u64().unwrap();
    assert_eq!((pages(0), pages(1)), (0, 999), "{compared:#}");
}

#[test]
fn a_replay_reads_ahead_unless_it_is_asked_not_to() {
    let directory = tempfile::tempdir().unwrap();
    let words: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(directory.path().join("in-order.u32"), words).unwrap();
    let replay = |more: &[&str]| {
        let all = [&["replay", "in-order.u32", "--memory", "100%", "--json"][..], more].concat();
        let result: Value = serde_json::from_str(&check_success(&pageout(directory.path(), &all))).unwrap();
        result["points"][0]["misses"].as_u64().unwrap()
    };
    assert!(replay(&[]) < 100);
    assert_eq!(replay(&[]), replay(&["--read-ahead-kb", "128"]));
    assert_eq!(replay(&["--read-ahead-kb", "0"]), 1000);
    check_failure(
        &pageout(directory.path(), &["replay", "in-order.u32", "--read-ahead-kb", "600000"]),
        2,
        &["--read-ahead-kb: `read_ahead_kb`: a window of ", "exceeds the device's capacity"],
    );
}

/// A scenario that plays `a.u32` in a cgroup of 2 MiB.
fn playing(channel: &str, swap: &str) -> String {
    format!(
        "[kernel]\nmemcg.kmem = false\n{swap}\n[[memcg]]\npath = \"/r\"\nmemory.max = \"2MiB\"\n\
         [[task]]\nname = \"t\"\nmemcg = \"/r\"\n[[task.object]]\nchannel = \"{channel}\"\ntrace = \"a.u32\"\n"
    )
}

#[test]
fn run_and_replay_of_a_trace_miss_as_often_and_say_how_far_was_read_ahead() {
    // Short stretches of pages in order, from places without one.
    let stretch = |at: u32| (0..at % 12).map(move |page| at.wrapping_mul(2_654_435_761) % 4000 + page);
    let words: Vec<u8> = (0..5000).flat_map(stretch).flat_map(u32::to_le_bytes).collect();
    let disk = "[[swap]]\nsize = \"64MiB\"";
    for (channel, swap, option) in [("file", "", "none"), ("mapped", "", "none"), ("anonymous", disk, "disk")]
    {
        let directory = with_scenario(&playing(channel, swap));
        std::fs::write(directory.path().join("a.u32"), &words).unwrap();
        let json = |arguments: &[&str]| -> Value {
            serde_json::from_str(&check_success(&pageout(directory.path(), arguments))).unwrap()
        };
        let misses = |more: &[&str], settings: &[&str]| {
            let replay =
                ["replay", "a.u32", "--memory", "2MiB", "--channel", channel, "--swap", option, "--json"];
            let replay = json(&[&replay[..], more].concat());
            let run = json(&[&["run", "scenario.toml", "--json"], settings].concat());
            let [read, task] = [&replay["points"][0], &run["tasks"][0]];
            let misses = task["accesses"].as_u64().unwrap() - task["hits"].as_u64().unwrap();
            assert_eq!(read["misses"].as_u64(), Some(misses), "{channel} {more:?}");
            assert_eq!(read["device_pages_read"], run["devices"][0]["pages_read"], "{channel} {more:?}");
            misses
        };
        let ahead = misses(&[], &[]);
        let off = ["--set", "device.nvme.read_ahead_kb=0", "--set", "sysctl.vm.page-cluster=0"];
        let without = misses(&["--read-ahead-kb", "0"], &off);
        assert!(channel == "anonymous" || ahead < without, "{channel}");
        let told = |arguments: &[&str]| check_success(&pageout(directory.path(), arguments));
        if channel != "anonymous" {
            let replay = told(&["replay", "a.u32", "--memory", "2MiB", "--channel", channel]);
            assert!(replay.contains("\nfiles are read ahead up to 128 KiB, as in a scenario; "), "{replay}");
            let replay = told(&["replay", "a.u32", "--memory", "2MiB", "--read-ahead-kb", "0"]);
            assert!(replay.contains("\nnothing is read ahead (--read-ahead-kb 0)\n"), "{replay}");
            let run = told(&["run", "scenario.toml"]);
            assert!(run.contains("\nreadahead: up to 128 KiB; "), "{run}");
            let run = told(&[&["run", "scenario.toml"], &off[..2]].concat());
            assert!(run.contains("\nreadahead: off; no page before it was asked for\n"), "{run}");
        }
    }
}

#[test]
fn a_textbook_policy_that_reads_ahead_is_told_that_others_do_not() {
    let directory = with_scenario(&reader("", ""));
    let told = |more: &[&str]| {
        let arguments = [&["run", "scenario.toml", "--set", "kernel.profile=lru"], more].concat();
        check_success(&pageout(directory.path(), &arguments)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        told(&[]).contains("lru is a textbook policy, and 999 pages were read ahead for it."),
        "{}",
        told(&[])
    );
    assert!(!told(&["--set", "device.disk.read_ahead_kb=0"]).contains("textbook"));
}

#[test]
fn readahead_that_can_not_be_is_refused_where_it_stands() {
    let bad = |from: &str, to: &str, parts: &[&str]| {
        let directory = with_scenario(&reader("", "").replace(from, to));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 2, parts);
    };
    bad(
        "= 128",
        "= 1_000_000",
        &["scenario.toml:4:", "a window of", "128 requests of 1280KiB", "at most 163840, in KiB"],
    );
    bad("= 128", "= -1", &["scenario.toml:4:"]);
    bad("= 128", "= 128\nmax_sectors_kb = 1", &["max_sectors_kb", "is too small: the minimum is 4"]);
    let mapped = "channel = \"mapped\"\nrequest_size = \"16KiB\"";
    bad(
        "channel = \"file\"",
        mapped,
        &["scenario.toml:10:", "`request_size`: loads and stores request only"],
    );
    let anonymous = |advice: &str| format!("channel = \"anonymous\"\nadvice = \"{advice}\"");
    bad("channel = \"file\"", &anonymous("noreuse"), &["`advice`: noreuse is for a file, but there is none"]);
    bad("channel = \"file\"", &anonymous("willneed"), &["`advice`: willneed reads from a device"]);
    check_failure(
        &run_with(
            "workload = { pattern = \"zipf\", ops = 5000 }",
            "request_size = \"16KiB\"\ntrace = \"a.u32\"",
            &[],
        ),
        2,
        &["`request_size`: a trace itself defines the accesses"],
    );
}
