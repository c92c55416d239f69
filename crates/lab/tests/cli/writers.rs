//! Tasks that write files beside each other: who gets how much of the device.

use crate::results::json;
use crate::with_scenario;

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
