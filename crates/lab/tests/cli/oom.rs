//! Memory that is not available: which task is killed, and what is printed; and machines on which nothing helps.

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, text, with_scenario};

/// Two tasks that together want more than their cgroup may have, and one outside that wants more than either.
const SHORT: &str = r#"
[machine]
oom = "kill"

[[memcg]]
path = "/job"
memory.max = "8MiB"

[[task]]
name = "hog"
memcg = "/job"
object = [{ channel = "anonymous", size = "6MiB", workload = { pattern = "fill" } }]

[[task]]
name = "worker"
memcg = "/job"
start = "20ms"
object = [{ channel = "anonymous", size = "4MiB", workload = { pattern = "zipf", ops = 20000 } }]

[[task]]
name = "outside"
object = [{ channel = "anonymous", size = "16MiB", workload = { pattern = "fill" } }]
"#;

fn run(scenario: &str, more: &[&str]) -> std::process::Output {
    let directory = with_scenario(scenario);
    pageout(directory.path(), &[&["run", "scenario.toml"], more].concat())
}

fn json(scenario: &str) -> Value {
    serde_json::from_str(&check_success(&run(scenario, &["--json"]))).unwrap()
}

#[test]
fn a_kill_is_told_with_who_when_and_why_and_the_run_goes_on() {
    let result = json(SHORT);
    let [kill] = &result["kills"].as_array().unwrap()[..] else { panic!("{}", result["kills"]) };
    assert_eq!((&kill["task"], &kill["invoked_by"]), (&"hog".into(), &"worker".into()));
    assert_eq!((&kill["limited_memcg"], &kill["was_at_rest"]), (&"/job".into(), &true.into()));
    assert_eq!(kill["anon_pages"], 1536, "all of its 6 MiB: it sleeps after its last access");
    let log = kill["log"].as_array().unwrap();
    assert!(
        log[0]
            .as_str()
            .unwrap()
            .starts_with("worker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0")
    );
    let last = log[log.len() - 1].as_str().unwrap();
    assert!(
        last.starts_with("Memory cgroup out of memory: Killed process ")
            && last.contains(" (hog) total-vm:6144kB, anon-rss:6144kB"),
        "{last}"
    );
    let task = |at: usize| &result["tasks"][at];
    assert_eq!((&task(0)["finished"], &task(1)["finished"]), (&true.into(), &true.into()));
    assert_eq!(task(1)["accesses"], 20_000);
    assert_eq!(result["vmstat"]["oom_kill"], 1);
    assert_eq!(result["memcgs"][0]["events"]["oom_kill"], 1);
    assert_eq!(result["ended"], "all tasks were done");
    let summary = check_success(&run(SHORT, &[]));
    assert!(summary.contains("out of memory: 1 killed\n  at "), "{summary}");
    assert!(
        summary.contains("killed hog of /job, which had made all its accesses: /job at its limit;"),
        "{summary}"
    );
}

#[test]
fn the_same_run_kills_the_same_at_the_same_time() {
    assert_eq!(check_success(&run(SHORT, &["--json"])), check_success(&run(SHORT, &["--json"])));
}

#[test]
fn oom_score_adj_and_groups_decide_who_goes() {
    let spared = SHORT.replace("name = \"hog\"", "name = \"hog\"\noom_score_adj = -1000");
    let result = json(&spared);
    assert_eq!(result["kills"][0]["task"], "worker");
    assert_eq!(result["tasks"][1]["finished"], false);
    assert_eq!(result["tasks"][1]["killed_at_ns"], result["kills"][0]["at_ns"]);
    assert_eq!(result["ended"], "all tasks were done or killed");
    let summary = check_success(&run(&spared, &[]));
    assert!(
        summary.contains("killed worker of /job: /job at its limit; worker ran out of memory"),
        "{summary}"
    );

    let together = SHORT.replace("memory.max = \"8MiB\"", "memory.max = \"8MiB\"\nmemory.oom.group = 1");
    let result = json(&together);
    let killed: Vec<&Value> = result["kills"].as_array().unwrap().iter().map(|kill| &kill["task"]).collect();
    assert_eq!(killed, ["hog", "worker"]);
    assert_eq!(result["kills"][1]["with_group"], "/job");
    assert_eq!(result["memcgs"][0]["events"]["oom_group_kill"], 1);
    assert_eq!(result["tasks"][2]["finished"], true, "another cgroup's");
}

#[test]
fn the_timeline_has_who_was_killed() {
    let directory = with_scenario(SHORT);
    let columns = "oom_kill,task.hog.killed,task.worker.killed";
    let arguments =
        ["run", "scenario.toml", "--timeline", "-", "--timeline-every", "1ms", "--timeline-columns", columns];
    let table = check_success(&pageout(directory.path(), &arguments));
    let rows: Vec<&str> = table.lines().skip(1).map(|row| row.split_once(',').unwrap().1).collect();
    assert_eq!((rows[0], rows[rows.len() - 1]), ("0,0,0", "1,1,0"));
    assert!(rows.is_sorted(), "{table}");
}

#[test]
fn a_machine_out_of_memory_kills_too_and_each_in_turn() {
    let scenario = r#"
[machine]
memory = "32MiB"
oom = "kill"

[[task]]
name = "leak"
copies = 3
object = [{ channel = "anonymous", size = "20MiB", workload = { pattern = "fill" } }]
"#;
    let result = json(scenario);
    let kills = result["kills"].as_array().unwrap();
    assert!(kills.len() >= 2, "60 MiB in 32: {kills:?}");
    assert!(kills.iter().all(|kill| kill["limited_memcg"].is_null()));
    let log = kills[0]["log"].as_array().unwrap();
    assert!(log.iter().any(|line| line.as_str().unwrap().contains("constraint=CONSTRAINT_NONE")
        && line.as_str().unwrap().contains(",global_oom,")));
    assert!(log[log.len() - 1].as_str().unwrap().starts_with("Out of memory: Killed process "));
}

#[test]
fn nothing_is_killed_where_nobody_asked_for_it() {
    let ends = SHORT.replace("oom = \"kill\"", "oom = \"end\"");
    check_failure(&run(&ends, &[]), 1, &["task `worker`", "out of memory in /job"]);
    check_failure(&run(&SHORT.replace("oom = \"kill\"", ""), &[]), 1, &["out of memory in /job"]);
}

#[test]
fn out_of_memory_that_no_kill_can_relieve_is_an_error_that_says_why() {
    let exempt = SHORT.replace("memcg = \"/job\"", "memcg = \"/job\"\noom_score_adj = -1000");
    let parts = [
        "out of memory in /job",
        "none of the 2 processes in /job may be killed: their oom_score_adj is -1000",
    ];
    check_failure(&run(&exempt, &[]), 1, &parts);
    let shm = r#"
[machine]
oom = "kill"

[[memcg]]
path = "/job"
memory.max = "1MiB"

[[task]]
name = "writer"
memcg = "/job"
lifetime = "task"
object = [{ channel = "tmpfs", file = "shm", workload = { pattern = "fill" } }]

[[task]]
name = "next"
memcg = "/job"
after = "writer"
oom_score_adj = -1000
object = [{ channel = "tmpfs", file = "shm", workload = { pattern = "fill" } }]

[[file]]
name = "shm"
kind = "tmpfs"
size = "4MiB"
"#;
    check_failure(&run(shm, &[]), 1, &["task `next`", "the only process in /job may not be killed"]);
}

/// Under MGLRU pages that are all in use leave nothing that is older than ten minutes.
#[test]
fn min_ttl_ms_rather_kills_than_thrashes() {
    let scenario = |oom: &str, ttl: &str| {
        format!(
            r#"
[machine]
memory = "64MiB"
oom = "{oom}"

[kernel]
profile = "mglru@6.12"

[[task]]
name = "reader"
object = [{{ channel = "file", size = "256MiB", workload = {{ pattern = "zipf", ops = 60000 }} }}]

[[task]]
name = "other"
object = [{{ channel = "anonymous", size = "8MiB", workload = {{ pattern = "fill" }} }}]

[[event]]
at = "1us"
write = "/sys/kernel/mm/lru_gen/min_ttl_ms"
value = {ttl}
"#
        )
    };
    let kept = json(&scenario("kill", "600000"));
    assert_eq!(kept["kills"][0]["min_ttl_ms"], 600_000);
    assert_eq!(kept["kills"][0]["invoked_by"], "kswapd0");
    let summary = check_success(&run(&scenario("kill", "600000"), &[]));
    assert!(summary.contains("nothing older than min_ttl_ms = 600000 was left to reclaim"), "{summary}");
    let without = json(&scenario("kill", "0"));
    assert!(without.get("kills").is_none(), "{}", without["kills"]);
    let noted = text(&run(&scenario("end", "600000"), &[]).stdout);
    assert!(noted.replace("\n", " ").contains("which needs machine.oom = \"kill\""), "{noted}");
}

#[test]
fn keys_of_the_kill_are_checked() {
    let wrong = SHORT.replace("oom = \"kill\"", "oom = \"panic\"");
    check_failure(&run(&wrong, &[]), 2, &["`panic` is none of the allowed values", "end, kill"]);
    let wrong = SHORT.replace("name = \"hog\"", "name = \"hog\"\noom_score_adj = 1001");
    check_failure(&run(&wrong, &[]), 2, &["`oom_score_adj`", "-1000 to 1000"]);
    let wrong = SHORT.replace("memory.max = \"8MiB\"", "memory.max = \"8MiB\"\nmemory.oom.group = 2");
    check_failure(&run(&wrong, &[]), 2, &["memory.oom.group", "0 to 1"]);
    let event =
        "\n[[event]]\nat = \"1ms\"\nwrite = \"/sys/fs/cgroup/job/memory.oom.group\"\nvalue = \"yes\"\n";
    check_failure(&run(&format!("{SHORT}{event}"), &[]), 2, &["`value`"]);
    check_success(&run(&format!("{SHORT}{}", event.replace("\"yes\"", "\"1\"")), &[]));
}

/// A machine on which no task can start is refused, and the message names the key and its line.
#[test]
fn a_machine_on_which_nothing_can_run_is_refused_by_the_key() {
    let with = |machine: &str| {
        let scenario = GOOD.replace("[[memcg]]", &format!("{machine}\n\n[[memcg]]"));
        run(&scenario.replace("memory.max = \"1MiB\"\n", ""), &["--check"])
    };
    check_failure(&with("[machine]\nmemory = \"1MiB\""), 2, &["`machine.memory`: 1MiB is too small", "4MiB"]);
    check_failure(
        &with("[sysctl]\nvm.min_free_kbytes = 2000000"),
        2,
        &["`vm.min_free_kbytes`: no task can run", "the machine has 1GiB", "scenario.toml:4:"],
    );
    check_failure(
        &with(
            "[machine]\nmemory = \"16MiB\"\n[sysctl]\nvm.watermark_scale_factor = 3000\nvm.min_free_kbytes = 12000",
        ),
        2,
        &["watermarks keep", "the machine has 16MiB"],
    );
    let later = "[machine]\nmemory = \"64MiB\"\n[[event]]\nat = \"1ms\"\nwrite = \"/proc/sys/vm/min_free_kbytes\"\nvalue = 60000";
    check_failure(
        &with(later),
        2,
        &["`vm.min_free_kbytes`: no task can run", "the machine has 64MiB", "scenario.toml:8:"],
    );
    let movable = "[[machine.node]]\nmemory = \"64MiB\"\nmovable = \"64MiB\"";
    check_failure(&with(movable), 2, &["all 64MiB of the machine are zone Movable", "scenario.toml:5:"]);
}

#[test]
fn a_file_that_only_takes_writes_is_not_read() {
    for path in
        ["/proc/sys/vm/compact_memory", "/proc/sys/vm/drop_caches", "/sys/fs/cgroup/web/memory.reclaim"]
    {
        let event = format!("\n[[event]]\nat = \"1ms\"\nread = \"{path}\"\n");
        check_failure(
            &run(&format!("{GOOD}{event}"), &["--check"]),
            2,
            &[&format!("{path} is write-only"), "scenario.toml:"],
        );
    }
}

#[test]
fn a_task_that_may_not_enter_file_systems_is_told_when_nobody_frees_anything_for_it() {
    let alone = r#"
[machine]
memory = "64MiB"

[[task]]
name = "flusher"
io_flusher = true
object = [{ channel = "anonymous", size = "80MiB", workload = { pattern = "fill" } }]
"#;
    for oom in ["end", "kill"] {
        let output = run(alone, &["--set", &format!("machine.oom={oom}")]);
        check_failure(
            &output,
            1,
            &["out of memory", "no process is killed for a task that may not enter file systems"],
        );
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_swap_device_that_fails_every_write_ends_in_want_of_memory() {
    let failing = r#"
[[memcg]]
path = "/job"
memory.max = "16MiB"

[[device]]
name = "full"
preset = "nvme"

[[device]]
name = "broken"
preset = "nvme"
fail_writes = 1

[[swap]]
size = "8MiB"
device = "full"
priority = 10

[[swap]]
size = "64MiB"
device = "broken"
priority = 10

[[task]]
name = "heap"
memcg = "/job"
object = [{ channel = "anonymous", size = "64MiB", workload = { pattern = "uniform", ops = 30000 } }]
"#;
    check_failure(&run(failing, &[]), 1, &["out of memory in /job", "page writes failed"]);
    let of_the_machine = failing
        .replace("memory.max = \"16MiB\"", "")
        .replace("[[memcg]]", "[machine]\nmemory = \"32MiB\"\n\n[[memcg]]");
    check_failure(&run(&of_the_machine, &[]), 1, &["out of memory: the machine", "page writes failed"]);
}

/// Swap is free, and nothing is to be swapped.
const NO_SWAPPINESS: &str = r#"
[machine]
memory = "96MiB"

[sysctl]
vm.swappiness = 0

[[swap]]
kind = "zram"
size = "512MiB"

[[task]]
name = "heap"

[[task.object]]
channel = "anonymous"
size = "96MiB"
workload = { pattern = "uniform", ops = 100_000, write_ratio = 1.0 }
"#;

#[test]
fn swappiness_zero_kills_under_mglru_and_swaps_under_classic() {
    let cause = "vm.swappiness is 0, so anonymous memory is not swapped out although swap is free";
    let of = |profile: &str, scenario: &str| run(scenario, &["--set", &format!("kernel.profile={profile}")]);
    check_failure(&of("mglru@6.12", NO_SWAPPINESS), 1, &[cause]);
    // With nearly no file pages left, the classic lists swap for the machine.
    let swapped = check_success(&of("classic@6.12", NO_SWAPPINESS));
    assert!(swapped.contains("swap-in"), "{swapped}");
    // For a limit, neither swaps.
    let limited = NO_SWAPPINESS
        .replace("memory = \"96MiB\"", "memory = \"1GiB\"")
        .replace("name = \"heap\"", "name = \"heap\"\nmemcg = \"/a\"")
        + "[[memcg]]\npath = \"/a\"\nmemory.max = \"64MiB\"\n";
    for profile in ["mglru@6.12", "classic@6.12"] {
        check_failure(&of(profile, &limited), 1, &[cause]);
    }
    // At a swappiness of 1 both have swap.
    for profile in ["mglru@6.12", "classic@6.12"] {
        check_success(&of(profile, &limited.replace("swappiness = 0", "swappiness = 1")));
    }
}

/// Seven threads use all that a library has, and a heap needs what little is left.
const ALL_IN_USE: &str = r#"
[machine]
cpus = 8
memory = "256MiB"

[[memcg]]
path = "/a"
memory.max = "64MiB"

[[swap]]
kind = "disk"
size = "512MiB"

[[task]]
name = "lib"
memcg = "/a"
threads = 7
background = true

[[task.object]]
channel = "mapped"
executable = true
size = "54MiB"
workload = { pattern = "uniform", ops = 40_000_000 }

[[task]]
name = "heap"
memcg = "/a"

[[task.object]]
channel = "anonymous"
size = "10MiB"
workload = { pattern = "uniform", ops = 100_000, write_ratio = 1.0 }
"#;

#[test]
fn calls_free_little_if_pages_are_used_between_scans() {
    let freed = |scenario: &str| {
        let result = json(scenario);
        let counters = &result["memcgs"].as_array().unwrap().last().unwrap()["counters"];
        let counter = |name: &str| counters[name].as_f64().unwrap();
        (counter("pgsteal") / counter("pgscan"), result["reclaim"]["p99_ns"].as_u64().unwrap())
    };
    let (all_in_use, longest) = freed(ALL_IN_USE);
    // More than fits: a page is often gone before it is used again, and what is scanned is freed.
    let (more_than_fits, shorter) = freed(&ALL_IN_USE.replace("54MiB", "70MiB"));
    assert!(all_in_use < 0.1 && more_than_fits > 0.2, "{all_in_use} and {more_than_fits}");
    assert!(longest > 10 * shorter, "a call that finds nothing goes on: {longest} and {shorter} ns");
}
