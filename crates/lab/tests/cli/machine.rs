//! What a machine says of its CPUs, and of what its tasks lack.

use super::{check_failure, check_success, pageout, run_with, scenarios, text};

#[test]
fn pressure_is_read_by_events_and_told_at_the_end() {
    let events = "[[event]]\nat = \"1ms\"\nread = \"/proc/pressure/memory\"\n\n\
                  [[event]]\nat = \"1ms\"\nread = \"/sys/fs/cgroup/web/cpu.pressure\"\n\n[[memcg]]";
    let output = run_with("[[memcg]]", events, &["--json"]);
    check_success(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let line = "avg10=0.00 avg60=0.00 avg300=0.00 total=0";
    for read in json["reads"].as_array().unwrap() {
        assert_eq!(read["text"], format!("some {line}\nfull {line}\n"), "no two seconds are over: {read}");
    }
    let io = &json["memcgs"][0]["pressure"]["io"];
    assert_eq!(io["some_ns"], json["tasks"][0]["io_wait_ns"]);
    assert_eq!(io, &json["pressure"]["io"]);
    let summary = text(&run_with("[[memcg]]", "[[memcg]]", &[]).stdout);
    assert!(summary.contains("  pressure: ") && summary.contains("io some "), "{summary}");
}

#[test]
fn pressure_of_what_is_not_there_is_refused() {
    let read = |path: &str| format!("[[event]]\nat = \"1ms\"\nread = \"{path}\"\n\n[[memcg]]");
    let output = run_with("[[memcg]]", &read("/proc/pressure/memry"), &[]);
    check_failure(&output, 2, &["did you mean `pressure/memory`?", "scenario.toml:5:"]);
    let output = run_with("[[memcg]]", &read("/sys/fs/cgroup/web/memory.presure"), &[]);
    check_failure(&output, 2, &["did you mean `memory.pressure`?"]);
    let output = run_with("[[memcg]]", &read("/sys/fs/cgroup/gone/memory.pressure"), &[]);
    check_failure(&output, 2, &["there is no cgroup `/gone`", "known: "]);
    let write = "[[event]]\nat = \"1ms\"\nwrite = \"/proc/pressure/memory\"\nvalue = \"some 150000 1000000\"\n\n[[memcg]]";
    check_failure(&run_with("[[memcg]]", write, &[]), 2, &["/proc/pressure/memory can't be written"]);
}

#[test]
fn a_machine_without_cpus_and_nice_values_that_do_not_exist_are_refused() {
    let output = run_with("[[memcg]]", "[machine]\ncpus = 0\n\n[[memcg]]", &[]);
    check_failure(&output, 2, &["`machine.cpus`: 0 is too small", "scenario.toml:4:", "1 to 4096"]);
    let output = run_with("memcg = \"/web\"", "memcg = \"/web\"\nnice = 20", &[]);
    check_failure(&output, 2, &["`nice`", "-20 to 19"]);
}

#[test]
fn cpu_time_is_told_by_user_space_and_kernel_and_by_cpu() {
    let output = run_with("memcg = \"/web\"", "memcg = \"/web\"\nthink_time = \"1us\"\ncpu = 2", &["--json"]);
    check_success(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let task = &json["tasks"][0];
    let figure = |name: &str| task[name].as_u64().unwrap();
    assert!(figure("user_time_ns") >= figure("accesses") * 1_000, "{task}");
    assert_eq!(figure("user_time_ns") + figure("system_time_ns"), figure("cpu_time_ns"));
    assert_eq!(json["cpus"][2]["busy_ns"], task["cpu_time_ns"]);
    assert_eq!(json["cpus"][1]["busy_ns"], 0);
}

#[test]
fn a_price_of_the_scenario_takes_the_place_of_that_of_the_table_and_only_there() {
    let of = |price: &str| {
        let alone = ["--set", "machine.costs=free", "--set", price, "--json"];
        let output = run_with("[[task]]", "[[task]]", &alone);
        check_success(&output);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let task = &json["tasks"][0];
        (task["system_time_ns"].as_u64().unwrap(), task["accesses"].as_u64().unwrap())
    };
    let (time, accesses) = of("machine.price.file_hit=2us");
    assert_eq!(time, 2_000 * accesses);
    assert_eq!(of("machine.price.compress=2us"), (0, accesses), "nobody compresses anything");
    let shown = check_success(&run_with("[[task]]", "[[task]]", &["--set", "machine.price.scan=1us"]));
    assert!(shown.contains("costs xeon-vm but for 1 price; "), "{shown}");
    for (wrong, message) in [
        ("machine.price.list_mvoe=1ns", "did you mean `list_move`?"),
        ("machine.price.list_move=11ms", "11ms is too large: the maximum is 10ms"),
        ("machine.price.list_move=60", "the unit is missing"),
    ] {
        check_failure(&run_with("[[task]]", "[[task]]", &["--set", wrong]), 2, &[message]);
    }
}

#[test]
fn what_kernel_threads_spent_adds_up_to_their_cpu_time_and_the_rest_is_the_tasks() {
    let short = ["--set", "task.tab.session.visits=20", "--json"];
    let run = [&["run", "mglru-v4/browser-small.toml"], &short[..]].concat();
    let output = pageout(&scenarios(), &run);
    check_success(&output);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let threads = json["threads"].as_array().unwrap();
    for thread in threads {
        let spent: u64 =
            thread["spent_ns"].as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!(thread["cpu_time_ns"], spent, "{thread}");
    }
    let kswapd = threads.iter().find(|thread| thread["name"] == "kswapd0").unwrap();
    for part in ["scanned", "rmap_steps", "compressed"] {
        assert!(kswapd["spent_ns"][part].as_u64().unwrap() > 0, "{part}: {kswapd}");
    }
    // What is no thread's is the tasks'.
    let tasks = &json["spent_by_tasks"];
    let of_threads = |of: &dyn Fn(&serde_json::Value) -> u64| threads.iter().map(of).sum::<u64>();
    for (part, all) in json["spent_ns"].as_object().unwrap() {
        let of = |who: &serde_json::Value| who["spent_ns"][part].as_u64().unwrap();
        assert_eq!(of(tasks) + of_threads(&of), all.as_u64().unwrap(), "{part}");
    }
    for part in ["marking_ns", "aging_ns"] {
        let of = |who: &serde_json::Value| who[part].as_u64().unwrap();
        assert_eq!(of(tasks) + of_threads(&of), of(&json), "{part}");
    }
    assert!(kswapd["aging_ns"].as_u64().unwrap() > 0, "{kswapd}");
}

#[test]
fn an_event_shows_lines_that_are_indented_or_have_a_colon() {
    let event =
        |path: &str, show: &str| format!("[[event]]\nat = \"1ms\"\nread = \"{path}\"\nshow = [{show}]\n");
    let events = event("/proc/zoneinfo", "\"pages free\", \"min\"") + &event("/proc/meminfo", "\"MemFree\"");
    let printed = check_success(&run_with("[[memcg]]", &(events + "[[memcg]]"), &[]));
    assert!(!printed.contains("No line of"), "{printed}");
    let row = |heading: &str| {
        let line = printed.lines().skip_while(|line| *line != heading).nth(2).unwrap_or_default();
        line.split_whitespace().skip(2).map(str::to_string).collect::<Vec<_>>()
    };
    let [free, min] = &row("/proc/zoneinfo")[..] else { panic!("{printed}") };
    assert!(free.replace(',', "").parse::<u64>().unwrap() > min.replace(',', "").parse::<u64>().unwrap());
    assert!(row("/proc/meminfo").contains(&"kB".to_string()), "{printed}");
}

#[test]
fn meminfo_and_zoneinfo_are_read_by_events() {
    let read = |path: &str| format!("[[event]]\nat = \"1ms\"\nread = \"{path}\"\n\n");
    let events = read("/proc/meminfo") + &read("/proc/zoneinfo") + "[[memcg]]";
    let json: serde_json::Value =
        serde_json::from_str(&check_success(&run_with("[[memcg]]", &events, &["--json"]))).unwrap();
    let [meminfo, zoneinfo] = [0, 1].map(|read: usize| json["reads"][read]["text"].as_str().unwrap());
    assert!(meminfo.starts_with("MemTotal:       ") && meminfo.contains("\nActive(file):   "), "{meminfo}");
    assert!(
        zoneinfo.starts_with("Node 0, zone ") && zoneinfo.contains("\n        protection: ("),
        "{zoneinfo}"
    );
    let write = "[[event]]\nat = \"1ms\"\nwrite = \"/proc/meminfo\"\nvalue = 1\n\n[[memcg]]";
    check_failure(&run_with("[[memcg]]", write, &[]), 2, &["/proc/meminfo can't be written"]);
}

#[test]
fn pressure_of_a_group_that_is_gone_ends_the_run_with_the_reason() {
    let events = "[[memcg]]\npath = \"/old\"\n\n[[event]]\nat = \"1ms\"\nrmdir = \"/sys/fs/cgroup/old\"\n\n\
                  [[event]]\nat = \"2ms\"\nread = \"/sys/fs/cgroup/old/memory.pressure\"\n\n[[memcg]]";
    let output = run_with("[[memcg]]", events, &[]);
    check_failure(
        &output,
        2,
        &["2.000 ms into the run", "/sys/fs/cgroup/old/memory.pressure: its cgroup was removed before"],
    );
}

#[test]
fn one_cpu_is_one() {
    let of = |cpus: &str| {
        check_success(&run_with("[[task]]", "[[task]]", &["--set", &format!("machine.cpus={cpus}")]))
    };
    assert!(of("1").contains("machine: 1 CPU, ") && of("2").contains("machine: 2 CPUs, "));
}

#[test]
fn reading_with_several_matches_shows_all_of_them() {
    let event =
        "[[event]]\nat = \"1ms\"\nread = \"/proc/zoneinfo\"\nshow = [\"pages free\", \"min\"]\n\n[[memcg]]";
    let scenario = super::GOOD.replacen("[[memcg]]", event, 1);
    let two = "[[machine.node]]\nmemory = \"64MiB\"\ncpus = 1\ndistance = 20\n\n[[machine.node]]\nmemory = \"64MiB\"\ncpus = 1\ndistance = 20\n";
    let scenario = format!("{scenario}\n{two}");
    let printed = check_success(&pageout(super::with_scenario(&scenario).path(), &["run", "scenario.toml"]));
    for node in ["Node 0, zone", "Node 1, zone"] {
        assert!(printed.contains(node), "{node} is not in:\n{printed}");
    }
}
