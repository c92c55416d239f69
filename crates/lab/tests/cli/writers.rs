//! Tasks that write files beside each other: who gets how much of the device.

use crate::results::json;
use crate::{check_failure, pageout, with_scenario};

/// So many tasks that write a file of their own each, much faster than the device, for a minute.
fn writers(count: usize) -> String {
    let head = r#"
until = "60s"

[machine]
cpus = 8
memory = "256MiB"

[[device]]
name = "disk"
preset = "sata-ssd"
write_bandwidth = "40MB/s"
"#;
    let task = |number| {
        format!(
            r#"
[[task]]
name = "writer{number}"

[[task.object]]
channel = "file"
size = "4GiB"
workload = {{ pattern = "sequential", write_ratio = 1 }}
"#
        )
    };
    (0..count).fold(head.to_string(), |text, number| text + &task(number))
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn equal_writers_get_equal_shares_of_the_device_and_together_all_of_it() {
    // Who is looked at when is chance, and tells in a minute: of 5 to 16 writers one is 1 to 13 % off, in no order.
    for (count, percent) in [(2, 2.0), (4, 5.0), (8, 13.0)] {
        let directory = with_scenario(&writers(count));
        let result = json(directory.path(), &["run", "scenario.toml"]);
        let tasks = result["tasks"].as_array().unwrap();
        let pages: Vec<f64> = tasks.iter().map(|task| task["accesses"].as_f64().unwrap()).collect();
        assert_eq!(pages.len(), count);
        let mean = pages.iter().sum::<f64>() / count as f64;
        let farthest = pages.iter().map(|pages| (pages / mean - 1.0).abs() * 100.0).fold(0.0, f64::max);
        assert!(farthest < percent, "one of {count} is {farthest:.1} % off: {pages:?}");
        let written = mean * count as f64 * 4096.0 / 60.0;
        assert!((0.98..1.05).contains(&(written / 40e6)), "{count} writers, {written:.0} bytes a second");
    }
}

/// A quick device and a slow one, whose writer dirties half a gigabyte at once and is gone; `limits` are keys of the slow one.
fn slow_stick(limits: &str) -> String {
    format!(
        r#"
until = "10s"

[machine]
cpus = 2
memory = "8GiB"

[[device]]
name = "disk"

[[device]]
name = "stick"
preset = "sata-ssd"
write_bandwidth = "10MB/s"
{limits}

[[task]]
name = "cp"

[[task.object]]
channel = "file"
size = "512MiB"
device = "stick"
workload = {{ pattern = "sequential", write_ratio = 1 }}

[[task]]
name = "shell"
think_time = "100ms"

[[task.object]]
channel = "anonymous"
size = "4KiB"
workload = {{ pattern = "uniform", ops = 110 }}

[[event]]
at = "9s"
read = "/proc/vmstat"
show = ["nr_dirty"]
"#
    )
}

#[test]
fn a_strict_limit_keeps_a_slow_device_from_filling_memory_with_what_it_has_yet_to_write() {
    let dirty = |limits: &str| {
        let directory = with_scenario(&slow_stick(limits));
        let result = json(directory.path(), &["run", "scenario.toml"]);
        let text = result["reads"][0]["text"].as_str().unwrap().to_string();
        let of = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
            line.parse().unwrap()
        };
        (of("nr_dirty") + of("nr_writeback"), of("nr_dirty_threshold"))
    };
    let (free, _) = dirty("");
    assert!(free > 120_000, "{free} of 131072 pages, which are fewer than where a writer is held up");
    let (loose, thresh) = dirty("max_ratio = 1");
    assert_eq!(loose, free, "a share alone is asked for only where the machine has too much");
    let (held, _) = dirty("max_ratio = 1\nstrict_limit = true");
    // Its writer looks once in 32 pages.
    assert!(held <= thresh / 100 + 32, "{held} of {thresh} pages");
    assert!(held > thresh / 200, "{held} of {thresh} pages");
}

#[test]
fn limits_of_devices_that_can_not_be_kept_are_refused() {
    for (limits, says) in [
        ("min_ratio = 50\nmax_ratio = 40", "`min_ratio` 50 % is above `max_ratio` 40 %"),
        ("min_ratio = 101", "allowed: number from 0 to 100"),
        ("min_ratio = 60\n\n[[device]]\nname = \"third\"\nmin_ratio = 60", "of all devices is 120 %"),
    ] {
        let directory = with_scenario(&slow_stick(limits));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml", "--check"]), 2, &[says]);
    }
}

/// Two groups on a disk of 64 pages a second: one writes all it can, the other from 5 s on 125 pages a second; `floors` are its files and
/// those of the group above it, as lines of each.
fn beside_a_noisy_writer([of_parent, own]: [&str; 2], kernel: &str) -> String {
    format!(
        r#"
until = "40s"
kernel = {{ {kernel} }}

[machine]
cpus = 2
memory = "1GiB"

[sysctl]
vm.dirty_bytes = 33554432
vm.dirty_background_bytes = 16777216

[[device]]
name = "disk"
preset = "virtio"
write_bandwidth = "262144B/s"

[[memcg]]
path = "/noisy"

[[memcg]]
path = "/polite"
{of_parent}

[[memcg]]
path = "/polite/log"
{own}

[[task]]
name = "noisy"
memcg = "/noisy"

[[task.object]]
channel = "file"
size = "16GiB"
workload = {{ pattern = "sequential", write_ratio = 1 }}

[[task]]
name = "polite"
memcg = "/polite/log"
start = "5s"
think_time = "8ms"

[[task.object]]
channel = "file"
size = "32MiB"
workload = {{ pattern = "sequential", write_ratio = 1 }}
"#
    )
}

/// What the polite writer has written, in pages, and for how long it was held up, in seconds.
fn polite(floors: [&str; 2]) -> (u64, f64) {
    let directory = with_scenario(&beside_a_noisy_writer(floors, ""));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let task = &result["tasks"][1];
    (task["accesses"].as_u64().unwrap(), task["delayed_by"]["dirty_pages_ns"].as_f64().unwrap() / 1e9)
}

#[test]
fn a_writer_whose_pages_wait_behind_anothers_is_slow_and_never_stops() {
    let directory = with_scenario(&beside_a_noisy_writer(["", ""], ""));
    let access = &json(directory.path(), &["run", "scenario.toml"])["tasks"][1]["access"];
    let (pages, held_up) = polite(["", ""]);
    // Alone it writes 4375.
    assert!((300..1_000).contains(&pages) && held_up > 25.0, "{pages} pages, {held_up} s");
    assert!(access["p99_ns"].as_u64() <= Some(210_000_000), "{access}");
}

#[test]
fn below_its_floor_a_group_does_not_wait_for_what_others_have_dirtied() {
    let floor = |size| format!("memory.dirty_min = \"{size}\"");
    let (large, small, all) = (floor("32MiB"), floor("4MiB"), floor("max"));
    for floors in [["", &large], [large.as_str(), ""], [small.as_str(), &large], ["", &all]] {
        assert_eq!(polite(floors), (4375, 0.0), "{floors:?}");
    }
    let (none, _) = polite(["", ""]);
    let (some, held_up) = polite(["", &small]);
    assert!((1_024..2_000).contains(&some) && some > none && held_up > 10.0, "{some} pages, {held_up} s");
    assert_eq!(polite(["", &floor("0")]), polite(["", ""]), "0 is no floor");
}

#[test]
fn a_floor_of_dirty_pages_is_told_of_where_it_was_set_and_refused_in_cgroup_v1() {
    let floor = "memory.dirty_min = \"4MiB\"";
    let directory = with_scenario(&beside_a_noisy_writer(["", floor], ""));
    let memcgs = &json(directory.path(), &["run", "scenario.toml"])["memcgs"];
    let of = |path: &str| {
        let group = memcgs.as_array().unwrap().iter().find(|group| group["path"] == path).unwrap();
        group["files"].get("memory.dirty_min").map(|text| text.as_str().unwrap().to_owned())
    };
    assert_eq!([of("/polite"), of("/polite/log")], [None, Some("4194304".to_owned())]);
    let scenario = beside_a_noisy_writer(["", floor], "memcg.cgroup_version = 1");
    let directory = with_scenario(&scenario);
    let words = ["scenario.toml:27:", "memory.dirty_min", "cgroup v2"];
    check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 2, &words);
}

/// Six writers, and a device that takes all that they write.
const FAST_DEVICE: &str = r#"
[machine]
cpus = 8
memory = "4GiB"

[sysctl]
vm.dirty_bytes = 209_715_200
vm.dirty_background_bytes = 104_857_600

[[device]]
name = "fast"
write_bandwidth = "20GB/s"
write_latency = "10us"
write_p99 = "10us"
queue_depth = 1024
iops = 10_000_000

[[task]]
name = "writer"
copies = 6

[[task.object]]
channel = "file"
size = "1GiB"
workload = { pattern = "sequential", write_ratio = 1.0 }
"#;

#[test]
fn flusher_with_no_cpu_left_leaves_its_device_idle() {
    let run = |price: &str| {
        let directory = super::with_scenario(&FAST_DEVICE.replace(
            "memory = \"4GiB\"\n",
            &format!("memory = \"4GiB\"\nprice = {{ write_page = \"{price}\" }}\n"),
        ));
        let printed = super::pageout(directory.path(), &["run", "scenario.toml", "--json"]);
        let result: serde_json::Value = serde_json::from_str(&super::check_success(&printed)).unwrap();
        let end = result["end_ns"].as_f64().unwrap();
        let throttled = result["tasks"].as_array().unwrap().iter().map(|task| task["delayed_ns"].as_u64());
        let flusher = result["threads"].as_array().unwrap().iter();
        let flusher = flusher.filter(|of| of["name"].as_str().unwrap().starts_with("flush"));
        (
            flusher.map(|of| of["cpu_time_ns"].as_f64().unwrap()).sum::<f64>() / end,
            result["devices"][0]["busy_ns"].as_f64().unwrap() / end,
            throttled.flatten().sum::<u64>(),
        )
    };
    let (cpu, _, throttled) = run("300ns");
    assert!(cpu < 0.5 && throttled == 0, "{cpu} of a CPU, {throttled} ns");
    // What a file system with checksums takes for a page: no more than half a million pages a second come to the device.
    let (cpu, busy, throttled) = run("2us");
    assert!(cpu > 0.9 && busy < 0.2, "{cpu} of a CPU, and the device is busy {busy} of the time");
    assert!(throttled > 100_000_000, "{throttled} ns");
}
