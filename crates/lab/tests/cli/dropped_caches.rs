//! `/proc/sys/vm/drop_caches`: what goes, and what stays.

use serde_json::Value;

use crate::results::json;
use crate::{check_failure, pageout, with_scenario};

/// A task touches this object in a group of 4 MiB, and is done before the number is written.
fn dropped(number: &str, object: &str) -> String {
    format!(
        r#"
until = "2s"

[machine]
memory = "64MiB"

[[memcg]]
path = "/job"
memory.max = "4MiB"

[[task]]
name = "job"
memcg = "/job"

[[task.object]]
{object}

[[task]]
name = "clock"
think_time = "1s"

[[task.object]]
channel = "anonymous"
size = "4KiB"
workload = {{ pattern = "uniform", ops = 3 }}

[[event]]
at = "1s"
write = "/proc/sys/vm/drop_caches"
value = {number}
"#
    )
}

fn job_after(number: &str, object: &str) -> Value {
    let directory = with_scenario(&dropped(number, object));
    json(directory.path(), &["run", "scenario.toml"])["memcgs"][0]["counters"].clone()
}

const READ: &str = r#"channel = "file"
size = "8MiB"
workload = { pattern = "sequential" }"#;

#[test]
fn clean_pages_of_files_go_with_1_and_3_and_leave_no_shadow() {
    let bytes = |number, name: &str| job_after(number, READ)[name].as_u64().unwrap();
    assert!(bytes("2", "file") > 3 << 20, "2 is slab objects alone");
    for number in ["1", "3"] {
        assert_eq!(bytes(number, "file"), 0, "{number}");
        assert_eq!(
            bytes(number, "slab_reclaimable"),
            0,
            "{number}: the index has no node left, not even of shadows"
        );
    }
}

#[test]
fn mapped_anonymous_tmpfs_and_dirty_pages_stay() {
    let stay = [
        ("channel = \"mapped\"", "file_mapped"),
        ("channel = \"anonymous\"", "anon"),
        ("channel = \"tmpfs\"", "shmem"),
        ("channel = \"file\"", "file_dirty"),
    ];
    for (channel, name) in stay {
        let object =
            format!("{channel}\nsize = \"1MiB\"\nworkload = {{ pattern = \"sequential\", write_ratio = 1 }}");
        assert_eq!(job_after("3", &object)[name], 1 << 20, "{channel}");
    }
}

#[test]
fn a_number_that_stands_for_nothing_is_refused_before_the_run() {
    for (number, why) in [("0", "the minimum is 1"), ("4", "the maximum is 3"), ("\"all\"", "wrong type")] {
        let directory = with_scenario(&dropped(number, READ));
        let output = pageout(directory.path(), &["run", "scenario.toml"]);
        check_failure(&output, 2, &["scenario.toml:32:", why]);
    }
}
