//! Compressed swap: what pages come to, what it takes, and when there is no memory for it.

use crate::results::json;
use crate::{check_failure, check_success, pageout, text, with_scenario};

/// A heap of twice its group's memory.
fn heap(swap: &str, object: &str, machine: &str) -> String {
    format!(
        r#"{machine}
[[memcg]]
path = "/app"
memory.max = "2MiB"

[[swap]]
size = "16MiB"
{swap}

[[task]]
name = "app"
memcg = "/app"

[[task.object]]
channel = "anonymous"
size = "4MiB"
{object}
workload = {{ pattern = "sequential" }}

[[event]]
at = "3ms"
every = "1ms"
read = "/sys/block/zram0/mm_stat"
"#
    )
}

#[test]
fn what_compressed_pages_take_goes_by_their_region_and_then_by_the_swap_area() {
    let stored = |swap: &str, object: &str| {
        let directory = with_scenario(&heap(&format!("kind = \"zram\"\n{swap}"), object, ""));
        let result = json(directory.path(), &["run", "scenario.toml"]);
        let reads = result["reads"].as_array().unwrap();
        let last = reads.last().expect("it ran for some milliseconds")["text"].as_str().unwrap().to_string();
        last.split_whitespace().map(|number| number.parse().unwrap()).collect::<Vec<u64>>()
    };
    let usual = stored("", "");
    let share = usual[1] as f64 / usual[0] as f64;
    assert!(usual[0] > 0 && (0.39..0.44).contains(&share), "{usual:?}");
    let packed = stored("compressed_min = 0.25\ncompressed_max = \"25%\"", "");
    assert_eq!(packed[1] * 4, packed[0], "{packed:?}");
    assert!(packed[2] >= packed[1] && packed[2] < packed[1] * 105 / 100 + 32_768, "{packed:?}");
    let region = stored("compressed_min = 0.25\ncompressed_max = 0.25", "same_filled = 1");
    assert_eq!((region[1], region[2], region[5] * 4096), (0, 0, region[0]), "{region:?}");
}

#[test]
fn a_zram_area_without_memory_is_a_shortage_and_not_a_panic() {
    let limited = heap("kind = \"zram\"\nmemory_limit = \"256KiB\"", "", "");
    let directory = with_scenario(&limited);
    let output = pageout(directory.path(), &["run", "scenario.toml"]);
    let stderr = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("page writes failed") && !stderr.contains("panicked"), "{stderr}");
}

#[test]
fn keys_of_compression_that_do_not_go_together_are_refused() {
    for (swap, object, parts) in [
        (
            "kind = \"disk\"\ncompressed_min = 0.2",
            "",
            &["`compressed_min` is for zram", "kind = \"zram\""][..],
        ),
        ("kind = \"disk\"\nmemory_limit = \"1MiB\"", "", &["`memory_limit` is for zram"]),
        ("kind = \"zram\"\ncompressed_min = 0.9\ncompressed_max = 0.5", "", &["range from 90% to 50%"]),
        ("kind = \"zram\"\ncompressed_max = 1.5", "", &["compressed_max"]),
        ("kind = \"zram\"", "compressed_min = 0.8\ncompressed_max = 0.2", &["range from 80% to 20%"]),
    ] {
        let directory = with_scenario(&heap(swap, object, ""));
        let output = pageout(directory.path(), &["run", "scenario.toml"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{swap}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{swap} {object}: expected {part:?} in {stderr}");
        }
    }
    let file = heap("kind = \"zram\"", "same_filled = 0.5", "").replace("anonymous", "file");
    let directory = with_scenario(&file);
    check_failure(
        &pageout(directory.path(), &["run", "scenario.toml"]),
        2,
        &["is for pages that are swapped out"],
    );
    let none = heap("kind = \"disk\"", "", "");
    let directory = with_scenario(&none);
    check_failure(
        &pageout(directory.path(), &["run", "scenario.toml"]),
        2,
        &["there is no file of a compressed swap area called `zram0/mm_stat`"],
    );
    let good = heap("kind = \"zram\"", "", "");
    check_success(&pageout(with_scenario(&good).path(), &["run", "scenario.toml"]));
}
