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
    assert!(held <= thresh / 100 + 8, "{held} of {thresh} pages");
    assert!(held > thresh / 200, "{held} of {thresh} pages");
}

#[test]
fn limits_of_devices_that_can_not_be_kept_are_refused() {
    for (limits, says) in [
        ("min_ratio = 50\nmax_ratio = 40", "50 % at least and 40 % at most"),
        ("min_ratio = 101", "allowed: number from 0 to 100"),
        (
            "min_ratio = 60\n\n[[device]]\nname = \"third\"\nmin_ratio = 60",
            "of all devices together is 120 %",
        ),
    ] {
        let directory = with_scenario(&slow_stick(limits));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml", "--check"]), 2, &[says]);
    }
}
