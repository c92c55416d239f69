//! The output of runs without faults.

use super::{GOOD, check_failure, check_success, pageout, run_with, scenarios, text, with_scenario};

pub(crate) fn json(directory: &std::path::Path, arguments: &[&str]) -> serde_json::Value {
    let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    serde_json::from_str(&check_success(&pageout(directory, &arguments))).unwrap()
}

#[test]
fn a_summary_has_the_question_the_tasks_and_the_kernels_counters() {
    let directory = with_scenario(GOOD);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    for part in [
        "Does it run?",
        "reader",
        "hit ratio",
        "memcg /web",
        "pgscan",
        "workingset_refault_file",
        "device nvme",
    ] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
}

#[test]
fn the_same_scenario_and_seed_print_the_same_bytes() {
    let directory = with_scenario(GOOD);
    let run = |seed: &str| {
        check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json", "--seed", seed]))
    };
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn a_result_says_what_work_the_kernel_did() {
    let directory = with_scenario(&GOOD.replace("\"file\"", "\"mapped\""));
    let without_fault_around = ["run", "scenario.toml", "--set", "kernel.fault_around_bytes=4096"];
    let result = json(directory.path(), &without_fault_around);
    for unit in ["faults", "list_moves", "scanned", "rmap_steps", "reclaimed"] {
        assert!(result["work"][unit].as_u64().unwrap() > 0, "{unit}: {}", result["work"]);
    }
    assert_eq!(result["work"]["ptes_walked"], 0, "two lists ask the reverse map alone");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_run_says_for_what_its_tasks_were_throttled_and_for_what_reclaim_waited() {
    let scenario = scenarios().join("regressions/c6-too-many-isolated.toml");
    let scenario = scenario.to_str().unwrap();
    let directory = std::path::Path::new(".");
    let result = json(directory, &["run", scenario, "--variant", "new"]);
    let waits = &result["writeback"]["waits_of_reclaim"];
    for reason in ["writeback", "isolated", "no_progress", "congested", "congestion_wait"] {
        assert!(waits[reason].is_u64(), "{reason}: {waits}");
    }
    assert!(waits["isolated"].as_u64().unwrap() > 1_000, "{waits}");
    let tasks = result["tasks"].as_array().unwrap();
    for task in tasks {
        let by = task["delayed_by"].as_object().unwrap();
        let all: u64 = by.values().map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!(task["delayed_ns"], all, "{task}");
        assert_eq!((&by["memory_high_ns"], &by["dirty_pages_ns"]), (&0.into(), &0.into()), "{task}");
    }
    assert!(tasks.iter().any(|task| task["delayed_by"]["reclaim_ns"].as_u64() > Some(0)));
    let printed = check_success(&pageout(directory, &["run", scenario, "--variant", "new"]));
    let told = printed.lines().find(|line| line.starts_with("  tasks, all together, were throttled: "));
    assert!(told.is_some_and(|told| told.ends_with(" in reclaim")), "{printed}");
}

#[test]
fn a_comparison_does_not_depend_on_how_many_run_at_the_same_time() {
    let directory = with_scenario(GOOD);
    let compare = |jobs: &str| {
        let vary = "memcg./web.memory.max=512KiB,1MiB,2MiB";
        check_success(&pageout(
            directory.path(),
            &["compare", "scenario.toml", "--vary", vary, "--repeat", "3", "--jobs", jobs],
        ))
    };
    let printed = compare("1");
    assert_eq!(printed, compare("4"));
    assert!(printed.contains("512KiB") && printed.contains('±') && printed.contains('%'), "{printed}");
    let change = printed.lines().find(|line| line.contains("hit ratio")).unwrap();
    assert!(change.ends_with(" pp"), "a percentage changes in points: {change}");
}

#[test]
fn a_variant_that_fails_is_marked_and_the_others_are_shown() {
    let directory = with_scenario(&GOOD.replace("\"file\"", "\"anonymous\""));
    let arguments = ["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,8MiB"];
    let output = pageout(directory.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1MiB (failed)"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 2 runs failed"));
}

#[test]
fn more_memory_gives_a_falling_curve() {
    let directory = tempfile::tempdir().unwrap();
    // A page's number is the number of trailing zeroes of the access, spread out: popular and unpopular pages.
    let words = (1..40_000u32)
        .flat_map(|access| (access.wrapping_mul(2_654_435_761) % (access % 700 + 1)).to_le_bytes());
    std::fs::write(directory.path().join("a.u32"), words.collect::<Vec<u8>>()).unwrap();
    let result = json(directory.path(), &["replay", "a.u32", "--memory", "15%,30%,60%,100%"]);
    let ratios: Vec<f64> = result["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["miss_ratio"].as_f64().unwrap())
        .collect();
    assert_eq!(ratios.len(), 4);
    assert!(ratios.is_sorted_by(|a, b| a > b), "{ratios:?}");
    let printed = check_success(&pageout(directory.path(), &["replay", "a.u32", "--memory", "15%,100%"]));
    assert!(printed.contains("miss ratio over memory") && printed.contains('*'), "{printed}");
}

/// A trace of every format, all of the same 9,000 accesses: three objects in those that have objects.
fn write_traces(directory: &std::path::Path) -> Vec<&'static str> {
    let access = |at: u32| (at % 3, at.wrapping_mul(2_654_435_761) % (at % 700 + 1), at.is_multiple_of(11));
    let accesses = || (0..4000).map(access);
    let bytes = |of: fn((u32, u32, bool)) -> Vec<u8>| accesses().flat_map(of).collect::<Vec<u8>>();
    let word = |(object, page, write): (u32, u32, bool)| {
        ((u32::from(write) << 31) | (object << 28) | page).to_le_bytes().to_vec()
    };
    let record = |(_, page, _): (u32, u32, bool)| {
        let next = (-1i64).to_le_bytes();
        [&[0; 4][..], &u64::from(page).to_le_bytes(), &8192u32.to_le_bytes(), &next].concat()
    };
    let line = |(object, page, write): (u32, u32, bool)| {
        format!("f{object},{},{}\n", u64::from(page) << 20, if write { "w" } else { "r" }).into_bytes()
    };
    let csv = [b"file,offset,op\n".to_vec(), bytes(line)].concat();
    let traces = [
        ("a.u32", bytes(word)),
        ("a.u64", bytes(|(_, page, _)| (u64::from(page) << 8).to_le_bytes().to_vec())),
        ("a.oracleGeneral", bytes(record)),
        ("a.csv", csv),
    ];
    for (name, bytes) in &traces {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
    check_success(&pageout(directory, &["trace", "convert", "a.csv", "a.pgt"]));
    traces.iter().map(|(name, _)| *name).chain(["a.pgt"]).collect()
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_trace_past_its_memory_is_read_again_with_the_same_figures_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    for trace in write_traces(directory.path()) {
        let arguments = ["replay", trace, "--memory", "20%,60%", "--channel", "mapped"];
        let short = [&arguments[..], &["--trace-memory", "8KiB"]].concat();
        let kept = json(directory.path(), &arguments);
        let mut again = json(directory.path(), &short);
        assert_eq!((&kept["trace_in_memory"], &again["trace_in_memory"]), (&true.into(), &false.into()));
        again["trace_in_memory"] = true.into();
        assert_eq!(kept, again, "{trace}");
        let told = "takes more than --trace-memory 8KiB, so it was read again for each size";
        let printed = check_success(&pageout(directory.path(), &short));
        assert!(printed.contains(told), "{printed}");
        assert!(!check_success(&pageout(directory.path(), &arguments)).contains("--trace-memory"));
    }
}

#[test]
fn a_percentage_has_one_meaning_and_tells_its_base() {
    let directory = tempfile::tempdir().unwrap();
    // 333 pages of 3,321: what the trace spans is ten times what it touches.
    let words = (0..1800u32).flat_map(|access| ((access * 7 % 333) * 10).to_le_bytes());
    std::fs::write(directory.path().join("a.u32"), words.collect::<Vec<u8>>()).unwrap();
    let run = |arguments: &str| {
        check_success(&pageout(directory.path(), &arguments.split(' ').collect::<Vec<&str>>()))
    };
    let base = "50% of 333 distinct pages = 167 pages";
    assert!(run("replay a.u32 --memory 50%").contains(base));
    let scenario = run("replay a.u32 --memory 50% --print-scenario");
    assert!(scenario.starts_with(&format!("# memory.max is {base}.\n")), "{scenario}");
    std::fs::write(directory.path().join("replay.toml"), &scenario).unwrap();
    let by_percent = ["run", "replay.toml", "--set", "memcg./replay.memory.max=50%"];
    let mut result = json(directory.path(), &by_percent);
    assert_eq!(result["percentages"][0]["distinct_pages"], 333);
    result.as_object_mut().unwrap().remove("percentages");
    assert_eq!(result, json(directory.path(), &["run", "replay.toml"]), "as the size that replay made of it");
    assert!(run(&by_percent.join(" ")).contains(&format!("memory.max of /replay: {base}")));
    let compared = run("compare replay.toml --vary memcg./replay.memory.max=50%,80%");
    for base in [base, "80% of 333 distinct pages = 266 pages"] {
        assert!(compared.contains(&format!("memory.max of /replay: {base}")), "{compared}");
    }
    let ablated = run("ablate replay.toml --set memcg./replay.memory.max=50% --repeat 2 --switch balance");
    assert!(ablated.contains(base), "{ablated}");
}

#[test]
fn of_several_sizes_that_fail_the_others_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let pages = (0..6000u64).flat_map(|access| (access * 7 % 2000).to_le_bytes());
    std::fs::write(directory.path().join("a.pages64"), pages.collect::<Vec<u8>>()).unwrap();
    let replay = |memory: &str, more: &[&str]| {
        let arguments = ["replay", "a.pages64", "--channel", "anonymous", "--memory", memory];
        pageout(directory.path(), &[&arguments[..], more].concat())
    };
    let output = replay("10%,200%,300%", &[]);
    assert_eq!(output.status.code(), Some(1), "as of a comparison");
    let (printed, told) = (text(&output.stdout), text(&output.stderr));
    let rows: Vec<&str> = printed.lines().filter(|line| line.contains(" failed ")).collect();
    assert!(rows.len() == 1 && rows[0].contains("10.00%") && printed.contains("300.00%"), "{printed}");
    for part in ["1 of 3 runs failed", "of memory: task `replay`", "out of memory", "add --swap"] {
        assert!(told.contains(part), "expected {part:?} in:\n{told}");
    }
    let output = replay("10%,200%,300%", &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["complete"], &result["points"]), (&false.into(), &serde_json::Value::Null));
    let points = &result["so_far"]["points"];
    assert_eq!((&points[0]["complete"], &points[0]["misses"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!((&points[2]["complete"], points[2]["misses"].is_u64()), (&true.into(), true));
    let output = replay("10%,20%", &[]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(text(&output.stderr).contains("every size failed"), "{}", text(&output.stderr));
}

#[test]
fn every_channel_and_swap_replays() {
    let directory = tempfile::tempdir().unwrap();
    let words = (0..5000u32)
        .flat_map(|access| ((access * 7 % 500) | if access % 5 == 0 { 1 << 31 } else { 0 }).to_le_bytes());
    std::fs::write(directory.path().join("a.u32"), words.collect::<Vec<u8>>()).unwrap();
    for (channel, swap) in
        [("file", "none"), ("mapped", "none"), ("anonymous", "disk"), ("anonymous", "zram")]
    {
        let arguments = ["replay", "a.u32", "--memory", "50%", "--channel", channel, "--swap", swap];
        let result = json(directory.path(), &arguments);
        assert!(result["points"][0]["misses"].as_u64().unwrap() >= 500, "{channel} {swap}: {result}");
    }
}

#[test]
fn a_replay_can_be_written_down_as_a_scenario() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("a.u32"),
        (0..900u32).flat_map(|page| (page % 300).to_le_bytes()).collect::<Vec<u8>>(),
    )
    .unwrap();
    let arguments = ["replay", "a.u32", "--memory", "50%"];
    let direct = json(directory.path(), &arguments);
    let printed = check_success(&pageout(
        directory.path(),
        &["replay", "a.u32", "--memory", "50%", "--print-scenario"],
    ));
    std::fs::write(directory.path().join("replay.toml"), printed).unwrap();
    let by_scenario = json(directory.path(), &["run", "replay.toml"]);
    assert_eq!(direct["points"][0]["result"]["tasks"], by_scenario["tasks"]);
}

#[test]
fn files_take_what_the_kernels_take() {
    let directory = with_scenario(&format!(
        "{GOOD}\n[[event]]\nat = \"10ms\"\nwrite = \"/sys/fs/cgroup/web/memory.max\"\nvalue = \"1m\"\n\
         [[event]]\nat = \"10ms\"\nwrite = \"/sys/fs/cgroup/web/memory.high\"\nvalue = \"0x400k\"\n\
         [[event]]\nat = \"10ms\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"64k swappiness=0\"\n\
         [[event]]\nat = \"10ms\"\nwrite = \"/proc/sys/vm/swappiness\"\nvalue = \"100\"\n\
         [[event]]\nat = \"10ms\"\nwrite = \"/proc/sys/vm/compact_memory\"\nvalue = 1\n\
         [[event]]\nat = \"20ms\"\nread = \"/proc/sys/vm/swappiness\"\n\
         [[event]]\nat = \"20ms\"\nread = \"/sys/fs/cgroup/web/memory.high\"\n"
    ));
    let result = json(directory.path(), &["run", "scenario.toml", "--set", "memcg./web.memory.low=1P"]);
    assert_eq!(result["writes"][0]["value"], "1048576");
    assert_eq!(result["writes"][2]["value"], "65536 swappiness=0");
    assert_eq!(
        (&result["reads"][0]["text"], &result["reads"][1]["text"]),
        (&"100\n".into(), &"1048576\n".into())
    );
}

#[test]
fn a_time_to_live_that_has_no_effect_is_remarked_on() {
    let run = |value: &str| {
        let directory = with_scenario(&format!(
            "{GOOD}\n[[event]]\nat = \"10ms\"\nwrite = \"/sys/kernel/mm/lru_gen/min_ttl_ms\"\nvalue = {value}\n"
        ));
        let checked = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--check"]));
        let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
        let told =
            |text: &str| text.contains("Note: 1000 in /sys/kernel/mm/lru_gen/min_ttl_ms has no effect");
        (told(&checked), told(&printed))
    };
    assert_eq!(run("1000"), (true, true));
    assert_eq!((run("0"), run("\"0x0\"")), ((false, false), (false, false)));
    let keys = check_success(&pageout(&scenarios(), &["keys", "event[].write"]));
    assert!(keys.contains("min_ttl_ms"), "{keys}");
}

#[test]
fn a_comparison_of_seeds_and_of_copies_says_what_its_figures_are() {
    let directory = with_scenario(&GOOD.replace("memcg = \"/web\"", "memcg = \"/web\"\ncopies = 2"));
    let compare =
        |vary: &str| check_success(&pageout(directory.path(), &["compare", "scenario.toml", "--vary", vary]));
    let printed = compare("seed=1,2");
    assert!(printed.contains("scenario.toml by seed\n"), "{printed}");
    assert!(
        printed.contains("of a task's copies: accesses, misses and throughput of all together"),
        "{printed}"
    );
    let help = check_success(&pageout(directory.path(), &["compare", "--help"]));
    assert!(help.contains("Copies of a task count as one"), "{help}");
}

#[test]
fn a_request_that_falls_short_says_so() {
    let directory = with_scenario(&format!(
        "{GOOD}\n[[event]]\nat = \"10ms\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"1GiB\"\n\
         [[event]]\nat = \"20ms\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"64KiB\"\n"
    ));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    let error = result["writes"][0]["error"].as_str().unwrap();
    assert!(error.contains("of 262144 pages reclaimed (EAGAIN)"), "{error}");
    assert_eq!(result["writes"][1]["error"], serde_json::Value::Null);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("(EAGAIN)") && printed.contains("group's refaults to the end"), "{printed}");
}

#[test]
fn a_request_whose_timeout_is_over_says_so_where_that_ends_it() {
    let directory = with_scenario(&format!(
        "{GOOD}\n[[event]]\nat = \"10ms\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"1GiB\"\n\
         timeout = \"5us\"\n"
    ));
    let error = |rule: &str| {
        let set = format!("kernel.reclaim.on_signal={rule}");
        let result = json(directory.path(), &["run", "scenario.toml", "--set", &set]);
        result["writes"][0]["error"].as_str().unwrap().to_string()
    };
    assert!(error("ends").contains("of 262144 pages reclaimed (EINTR: timeout)"), "{}", error("ends"));
    assert!(error("goes_on").contains("of 262144 pages reclaimed (EAGAIN)"), "{}", error("goes_on"));
}

#[test]
fn limits_of_nothing_and_protection_of_everything_are_told() {
    let directory = with_scenario(GOOD);
    let run = |set: &str| {
        check_success(&pageout(
            directory.path(),
            &["run", "scenario.toml", "--set", "memcg./web.memory.max=max", "--set", set],
        ))
    };
    let line = |printed: &str| {
        printed.lines().find(|line| line.starts_with("memcg /web")).map(str::to_string).unwrap_or_default()
    };
    assert!(line(&run("memcg./web.memory.min=max")).ends_with("in use, memory.min max"));
    assert!(line(&run("memcg./web.memory.swap.max=0")).ends_with("in use, memory.swap.max 0 B"));
    assert!(line(&run("memcg./web.memory.min=0")).ends_with("in use"), "{}", run("memcg./web.memory.min=0"));
}

#[test]
fn reclaim_below_a_group_is_not_denied_by_it() {
    let directory = with_scenario(
        &GOOD
            .replace("[[task]]", "[[memcg]]\npath = \"/web/a\"\n[[task]]")
            .replace("memcg = \"/web\"", "memcg = \"/web/a\""),
    );
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    let parent = printed.split("memcg /web/a (").next().unwrap();
    assert!(parent.contains("pgscan") && parent.contains("no direct reclaim by its own tasks"), "{printed}");
}

#[test]
fn events_write_and_read_while_it_runs() {
    let directory = with_scenario(&format!(
        "{GOOD}\n[[event]]\nat = \"10ms\"\nwrite = \"/sys/fs/cgroup/web/memory.max\"\nvalue = \"512KiB\"\n\
         [[event]]\nat = \"20ms\"\nread = \"/sys/fs/cgroup/web/memory.max\"\n\
         [[event]]\nat = \"20ms\"\nread = \"/proc/vmstat\"\nshow = [\"pgscan_file\"]\n\
         [[event]]\nat = \"30ms\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"128KiB\"\n"
    ));
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    for part in ["524,288", "pgscan_file", "/sys/fs/cgroup/web/memory.reclaim", "128 KiB"] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
}

#[test]
fn an_event_with_a_condition_happens_when_it_holds_and_says_how_often_that_was() {
    let reclaim = |when: &str| {
        format!(
            "{GOOD}\n[[event]]\n{when}\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"128KiB\"\n"
        )
    };
    let result = |when: &str| json(with_scenario(&reclaim(when)).path(), &["run", "scenario.toml"]);
    // Once, and not before there is so much; of all lines of a file, in all units.
    for when in [
        "memory.current > 50%",
        "memory.current >= 512KiB",
        "memory.stat file > 131072",
        "/sys/fs/cgroup/web/memory.stat file > 10%",
        "/proc/meminfo Cached > 128KiB",
        "/proc/vmstat pgfault >= 0",
    ] {
        let result = result(&format!("when = \"{when}\""));
        assert_eq!(result["writes"].as_array().unwrap().len(), 1, "{when}: {}", result["writes"]);
        assert_eq!(result["conditions"][0]["held"], 1, "{when}");
        assert_eq!(result["events_not_reached"], 0);
    }
    let again = result("when = \"memory.current > 50%\"\nevery = \"100us\"");
    let held = again["conditions"][0]["held"].as_u64().unwrap();
    assert!(held > 1 && held == again["writes"].as_array().unwrap().len() as u64, "{}", again["conditions"]);
    // By then it is over: told where results are read, and not only left out.
    let directory = with_scenario(&reclaim("when = \"memory.current > 200%\""));
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        printed
            .contains("The event with when = \"memory.current > 200%\" did nothing: it was false at each of"),
        "{printed}"
    );
}

#[test]
fn a_condition_that_can_never_be_looked_at_is_refused() {
    for (event, message) in [
        ("read = \"/proc/vmstat\"", "an event needs `at`"),
        ("when = \"memory.current > 5%\"\nread = \"/proc/vmstat\"", "the cgroup is unknown"),
        ("when = \"memory.curent > 5%\"\nread = \"/sys/fs/cgroup/web/memory.stat\"", "memory.current"),
        ("when = \"memory.reclaim > 5\"\nread = \"/sys/fs/cgroup/web/memory.stat\"", "is write-only"),
        ("when = \"/proc/vmstat pgfault > 5%\"\nread = \"/proc/vmstat\"", "the value of 100 %"),
        (
            "when = \"memory.stat files > 5\"\nread = \"/sys/fs/cgroup/web/memory.stat\"",
            "begin with anon, file,",
        ),
        ("when = \"/sys/fs/cgroup/memory.stat file > 5%\"\nread = \"/proc/vmstat\"", "memory.max"),
        ("when = \"memory.stat > 5\"\nread = \"/sys/fs/cgroup/web/memory.stat\"", "not a single number"),
        ("when = \"memory.current is large\"\nread = \"/proc/vmstat\"", "compares nothing"),
        (
            "when = \"memory.current > 5%\"\nevery = \"1s\"\ntimes = 3\nread = \"/sys/fs/cgroup/web/memory.stat\"",
            "`times` and `when`",
        ),
    ] {
        let directory = with_scenario(&format!("{GOOD}\n[[event]]\n{event}\n"));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 2, &[message, "scenario.toml:"]);
    }
}

#[test]
fn events_age_and_evict_generations_and_show_which_command_was_refused() {
    let directory = with_scenario(&format!(
        "{}\n[[event]]\nat = \"10ms\"\nwrite = \"/sys/kernel/debug/lru_gen\"\nvalue = \"+ 2 0 3; - 2 0 1 60 64\"\n\
         [[event]]\nat = \"20ms\"\nwrite = \"/sys/kernel/debug/lru_gen\"\nvalue = \"+ 2 0 4, + 2 0 9\"\n\
         [[event]]\nat = \"30ms\"\nread = \"/sys/kernel/debug/lru_gen\"\n\
         [[event]]\nat = \"30ms\"\nread = \"/sys/kernel/mm/lru_gen/enabled\"\n",
        GOOD.replacen("[[memcg]]", "[kernel]\nprofile = \"mglru@6.12\"\n\n[[memcg]]", 1)
    ));
    let result = json(directory.path(), &["run", "scenario.toml"]);
    assert!(result["writes"][0]["reclaimed_pages"].as_u64().unwrap() >= 64, "{}", result["writes"]);
    assert!(result["writes"][1]["error"].as_str().unwrap().contains("command 2, `+ 2 0 9`"));
    let dump = result["reads"][0]["text"].as_str().unwrap();
    std::fs::write(directory.path().join("machine.lru_gen"), dump).unwrap();
    let printed = check_success(&pageout(directory.path(), &["working-set", "machine.lru_gen"]));
    assert!(printed.contains("machine"), "our text is what the kernel's readers read: {printed}");
    assert_eq!(result["reads"][1]["text"], "0x0007\n");
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml"]));
    assert!(printed.contains("refused") && printed.contains("EINVAL"), "{printed}");
}

#[test]
fn a_switch_at_the_limit_is_a_false_oom_only_while_reclaim_looks_at_the_new_lists_only() {
    let run = |switching: &str| {
        let set = format!("kernel.lru.switching={switching}");
        pageout(
            &scenarios(),
            &["run", "regressions/m5-switch-at-the-limit.toml", "--seed", "7", "--set", &set],
        )
    };
    let printed = check_success(&run("both"));
    assert!(printed.contains("0x0007"), "{printed}");
    let output = run("new_only");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("out of memory in /job") && error.contains("reclaim attempts freed too little"),
        "{error}"
    );
}

#[test]
fn what_proactive_reclaim_took_and_what_came_back_are_beside_the_request() {
    let arguments = ["run", "proactive-reclaim-lru-gen.toml"];
    let result = json(&scenarios(), &arguments);
    let evictions: Vec<(u64, u64)> = (result["writes"].as_array().unwrap().iter())
        .filter_map(|write| {
            Some((write["reclaimed_pages"].as_u64()?, write["refaulted_pages_since"].as_u64()?))
        })
        .collect();
    let [(first, back_of_first), (second, back_of_second)] = evictions[..] else { panic!("{evictions:?}") };
    assert!((2048..2048 + 64).contains(&first) && second > 10_000, "{evictions:?}");
    assert!(back_of_second <= back_of_first && back_of_first < first / 10, "{evictions:?}");
    assert!(check_success(&pageout(&scenarios(), &arguments)).contains("group's refaults to the end"));
    // memory.reclaim likewise; there the working set is taken too in the end, and comes back.
    let result = json(&scenarios(), &["run", "proactive-reclaim.toml"]);
    let came_back = result["writes"][0]["refaulted_pages_since"].as_u64().unwrap();
    let counted = ["anon", "file"].map(|kind| {
        let counter = format!("workingset_refault_{kind}");
        result["memcgs"][0]["counters"][counter.as_str()].as_u64().unwrap()
    });
    assert!(came_back > 0 && came_back <= counted[0] + counted[1] + 64, "{came_back} of {counted:?}");
}

#[test]
fn copies_and_objects_of_a_task_share_what_they_name() {
    let text = GOOD
        .replace("[[memcg]]", "[[file]]\nname = \"data\"\nsize = \"4MiB\"\n\n[[memcg]]")
        .replace("size = \"4MiB\"\nworkload", "file = \"data\"\nworkload")
        .replace("memcg = \"/web\"", "memcg = \"/web\"\ncopies = 3");
    let directory = with_scenario(&text);
    let result = json(directory.path(), &["run", "scenario.toml"]);
    assert_eq!(result["tasks"].as_array().unwrap().len(), 3);
    assert_eq!(result["tasks"][2]["name"], "reader.2");
    assert_eq!(result["accesses"], 15_000);
}

#[test]
fn an_example_answers_its_question() {
    let printed = check_success(&pageout(
        &scenarios(),
        &["run", "swap-disk-or-zram.toml", "--set", "swap.0.kind=zram"],
    ));
    assert!(printed.contains("pswpin") && printed.contains("Look at:"), "{printed}");
}

#[test]
fn a_trace_of_several_objects_runs_over_as_many_objects() {
    let directory = tempfile::tempdir().unwrap();
    let words = (0..6000u32).flat_map(|access| ((access * 7 % 400) | (access % 2) << 28).to_le_bytes());
    std::fs::write(directory.path().join("two.u32"), words.collect::<Vec<u8>>()).unwrap();
    let result = json(directory.path(), &["replay", "two.u32", "--memory", "50%"]);
    assert_eq!(result["distinct_pages"], 400, "each object has every other page");
    let task = "[[task]]\nname = \"t\"\n[[task.object]]\nchannel = \"anonymous\"\ntrace = \"two.u32\"\n";
    let scenario = format!("{task}[[task.object]]\nchannel = \"tmpfs\"\n");
    std::fs::write(directory.path().join("two.toml"), scenario).unwrap();
    assert_eq!(json(directory.path(), &["run", "two.toml"])["accesses"], 6000);
    std::fs::write(directory.path().join("one.toml"), task).unwrap();
    let output = pageout(directory.path(), &["run", "one.toml"]);
    check_failure(&output, 2, &["the trace has 2 objects", "the task has 1", "add a [[task.object]]"]);
}

#[test]
fn columns_with_usual_names_are_found_as_the_reference_says() {
    let directory = tempfile::tempdir().unwrap();
    let keys = json(directory.path(), &["keys", "read.csv."]);
    let names = ["time", "object", "id", "page", "offset", "size", "op"];
    let columns = names.map(|name| {
        let key = keys.as_array().unwrap().iter().find(|key| key["key"] == format!("read.csv.{name}"));
        key.unwrap_or_else(|| panic!("{name} is not in {keys}"))
    });
    for key in columns {
        assert!(key["default"].as_str().unwrap().contains("usual names"), "{key}");
    }
    let text = "timestamp,volume,offset,length,rw\n1,a,0,8192,w\n3,b,0,4096,r\n";
    std::fs::write(directory.path().join("a.csv"), text).unwrap();
    let info = json(directory.path(), &["trace", "info", "a.csv"]);
    assert_eq!((&info[0]["accesses"], &info[0]["writes"]), (&3.into(), &2.into()));
    assert_eq!((&info[0]["objects"], &info[0]["time_span"]["last"]), (&2.into(), &3.0.into()));
}

#[test]
fn switches_of_a_group_are_no_bytes() {
    let set = "memory.max = \"1MiB\"\nmemory.oom.group = 1\nmemory.zswap.writeback = 0";
    let printed = check_success(&run_with("memory.max = \"1MiB\"", set, &[]));
    for part in ["memory.max 1 MiB", "memory.oom.group 1", "memory.zswap.writeback 0"] {
        let end = |text: &str| text.starts_with([',', '\n']);
        assert!(printed.split(part).skip(1).any(end), "expected {part:?} in:\n{printed}");
    }
}
