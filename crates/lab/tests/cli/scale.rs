//! Large scenarios: what is large but possible takes time in proportion, and what is not is refused with a reason.

use std::fmt::Write;
use std::process::Command;

use super::{GOOD, check_failure, check_success, pageout, text, with_scenario};

#[track_caller]
fn run(scenario: &str, more: &[&str]) -> String {
    let arguments: Vec<&str> = ["run", "scenario.toml"].iter().chain(more).copied().collect();
    check_success(&pageout(with_scenario(scenario).path(), &arguments))
}

/// Were any step of these quadratic, the test would not end: such a run took half a minute with a tenth of the tasks.
#[test]
fn many_groups_and_tasks_side_by_side_are_run() {
    const MANY: usize = 4_000;
    let mut scenario = "[machine]\nmemory = \"4GiB\"\n".to_string();
    for group in 0..MANY {
        let _ = write!(
            scenario,
            "[[memcg]]\npath = \"/g{group}\"\nmemory.max = \"50%\"\n\
             [[task]]\nname = \"t{group}\"\nmemcg = \"/g{group}\"\n\
             [[task.object]]\nchannel = \"file\"\nsize = \"512KiB\"\nworkload = {{ pattern = \"uniform\", ops = 2 }}\n"
        );
    }
    let printed = run(&scenario, &[]);
    assert!(printed.contains("8,000 accesses"), "{}", &printed[..500]);
    assert!(printed.contains("... and 3,976 more; --json has them all"));
    assert!(printed.contains("... and 3,976 cgroups more; --json has them all"));
    assert!(printed.lines().count() < 500, "what is shown is to be read");
}

/// As a twin of a program that reads many small files: one trace, and an object for each file. Were building it quadratic, or the price of a hit asked of
/// all objects for each access, the test would take minutes.
#[test]
fn many_files_of_one_task_are_read() {
    const FILES: usize = 100_000;
    let directory = tempfile::tempdir().unwrap();
    let accesses = (0..20_000u32).flat_map(|access| (access * 7 % 400).to_le_bytes());
    std::fs::write(directory.path().join("one.u32"), accesses.collect::<Vec<u8>>()).unwrap();
    let mut scenario = "[machine]\nmemory = \"256MiB\"\n[[task]]\nname = \"reader\"\n".to_string();
    scenario += "[[task.object]]\nchannel = \"anonymous\"\ntrace = \"one.u32\"\n";
    for file in 0..FILES {
        let _ = write!(
            scenario,
            "[[file]]\nname = \"f{file}\"\nsize = \"4KiB\"\n[[task.object]]\nchannel = \"file\"\nfile = \"f{file}\"\n"
        );
    }
    std::fs::write(directory.path().join("scenario.toml"), scenario).unwrap();
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("20,000 accesses"), "{printed}");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_hundred_thousand_tasks_are_run() {
    let task = |index: usize| {
        format!(
            "[[task]]\nname = \"t{index}\"\ncopies = 10000\n[[task.object]]\nchannel = \"anonymous\"\nsize = \"4KiB\"\nworkload = {{ pattern = \"sequential\" }}\n"
        )
    };
    // A stack of 16 KiB each, and page tables.
    let scenario = "[machine]\nmemory = \"8GiB\"\n".to_string() + &(0..10).map(task).collect::<String>();
    let printed = run(&scenario, &[]);
    assert!(printed.contains("100,000 accesses"), "{}", &printed[..500]);
}

#[test]
fn groups_nested_beyond_what_linux_takes_are_refused_shortly() {
    let deep = "/a".repeat(60_000);
    let nested = GOOD.replace("/web", &deep);
    let output = pageout(with_scenario(&nested).path(), &["run", "scenario.toml"]);
    check_failure(
        &output,
        2,
        &["a path of 120000 bytes is too long for a cgroup", "to 4081 bytes", "scenario.toml:4:"],
    );
    assert!(output.stderr.len() < 5_000, "the line itself is not shown whole");
    // As deep as a path can be.
    let printed = run(&GOOD.replace("/web", &"/a".repeat(2040)), &["--json"]);
    assert!(printed.contains("\"complete\": true"));
}

#[test]
fn more_groups_than_linux_numbers_are_refused() {
    let groups: String = (0..70_000).map(|group| format!("[[memcg]]\npath = \"/g{group}\"\n")).collect();
    let output =
        pageout(with_scenario(&format!("{GOOD}{groups}")).path(), &["run", "scenario.toml", "--check"]);
    check_failure(&output, 2, &["more than 65535 cgroups"]);
}

#[test]
fn a_mistake_made_a_thousand_times_is_told_a_hundred_times() {
    let tasks: String = (0..1_000)
        .map(|task| format!("[[task]]\nname = \"t{task}\"\nmemcg = \"/wbe\"\n[[task.object]]\nchannel = \"file\"\nsize = \"4MiB\"\nworkload = {{ pattern = \"sequential\" }}\n"))
        .collect();
    let output = pageout(with_scenario(&format!("{GOOD}{tasks}")).path(), &["run", "scenario.toml"]);
    check_failure(&output, 2, &["did you mean `/web`?", "there are more problems than this"]);
    assert_eq!(text(&output.stderr).matches("no memcg called `/wbe`").count(), 100);
}

/// Runs the scenario with an address space of so many MiB.
#[cfg(target_os = "linux")]
fn run_within(address_space_mib: u64, scenario: &str) -> std::process::Output {
    let directory = with_scenario(scenario);
    let limited = format!("ulimit -v {} && exec \"$0\" run scenario.toml", address_space_mib << 10);
    let mut command = Command::new("sh");
    command.args(["-c", &limited, &super::binary()]).current_dir(directory.path());
    command.output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn tables_that_the_system_has_no_room_for_are_refused() {
    for (from, to, told) in [
        ("size = \"4MiB\"", "size = \"4TiB\"", "a file of 1073741824 pages"),
        (
            "channel = \"file\"\nsize = \"4MiB\"",
            "channel = \"anonymous\"\nsize = \"4TiB\"",
            "an address space of 1073742336 pages",
        ),
        ("[[task]]", "[[swap]]\nsize = \"4TiB\"\n[[task]]", "a swap device of 1073741824 pages"),
    ] {
        let output = run_within(2048, &GOOD.replacen(from, to, 1));
        check_failure(&output, 2, &[told, "of address space", "ulimit -v"]);
    }
    let output = run_within(2048, GOOD);
    check_success(&output);
}

#[cfg(target_os = "linux")]
#[test]
fn threads_share_the_table_of_what_is_popular() {
    // 16 bytes a page in all, and 4 a thread: with a table each it would be 650 MB.
    let threads = GOOD
        .replacen("name = \"reader\"", "name = \"reader\"\nthreads = 500", 1)
        .replacen("1MiB", "128MiB", 1);
    let scenario = threads.replacen("4MiB", "256MiB", 1).replacen("ops = 5000", "ops = 10", 1);
    assert!(check_success(&run_within(400, &scenario)).contains("5,000 accesses"));
}

#[test]
fn an_object_on_one_of_two_devices_must_say_which() {
    let devices = "\n[[device]]\nname = \"fast\"\n[[device]]\nname = \"slow\"\npreset = \"hdd\"\n";
    let check = |device: &str, channel: &str| {
        let object = format!("{device}channel = \"{channel}\"");
        let scenario = format!("{}{devices}", GOOD.replace("channel = \"file\"", &object));
        pageout(with_scenario(&scenario).path(), &["run", "scenario.toml", "--json"])
    };
    let told = ["no `device` selects one", "device = one of: fast, slow", "scenario.toml:11:"];
    check_failure(&check("", "file"), 2, &told);
    check_failure(&check("", "mapped"), 2, &told);
    check_failure(
        &check("device = \"fats\"\n", "file"),
        2,
        &["no device called `fats`", "did you mean `fast`?"],
    );
    check_failure(&check("device = \"fast\"\n", "anonymous"), 2, &["on no device", "leave `device` out"]);
    let in_memory = GOOD.replace("channel = \"file\"", "channel = \"anonymous\"");
    let output =
        pageout(with_scenario(&format!("{in_memory}{devices}")).path(), &["run", "scenario.toml", "--check"]);
    check_success(&output);
    let result: serde_json::Value =
        serde_json::from_str(&check_success(&check("device = \"slow\"\n", "file"))).unwrap();
    assert_eq!(result["devices"][0]["pages_read"], 0);
    assert!(result["devices"][1]["pages_read"].as_u64().unwrap() > 0);
}
