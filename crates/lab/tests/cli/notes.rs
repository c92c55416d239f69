//! What a run leaves out is said, every time it matters and only then; and what it shows instead of all.

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, run_with, text, with_scenario};

#[track_caller]
fn check(scenario: &str, arguments: &[&str]) -> String {
    check_success(&pageout(with_scenario(scenario).path(), arguments))
}

/// The notes of a run by what they are about.
#[track_caller]
fn notes(scenario: &str) -> Vec<(String, String)> {
    let result: Value = serde_json::from_str(&check(scenario, &["run", "scenario.toml", "--json"])).unwrap();
    let notes = result["notes"].as_array().unwrap();
    let words = |note: &Value, key: &str| note[key].as_str().unwrap().to_string();
    notes.iter().map(|note| (words(note, "about"), words(note, "text"))).collect()
}

/// Subjects of a run's notes, but for "statistics": all of these runs are short.
fn about(scenario: &str) -> Vec<String> {
    notes(scenario).into_iter().map(|(about, _)| about).filter(|about| about != "statistics").collect()
}

#[test]
fn a_run_that_ends_before_statistics_are_flushed_says_that_lists_hardly_aged() {
    let with = |more: &str| notes(&format!("{GOOD}\n{more}"));
    let [(about, text)] = &with("")[..] else { panic!("{:?}", with("")) };
    assert_eq!(about, "statistics");
    assert!(
        text.starts_with("Reclaim's statistics are flushed every 2.02 s, but the run ended after "),
        "{text}"
    );
    assert_eq!(with("[kernel]\nmemcg.stat_flush = \"live\""), []);
    assert_eq!(
        with("[kernel]\nprofile = \"mglru@6.12\""),
        [],
        "generations are not told apart by sizes of lists"
    );
    let roomy = GOOD.replace("memory.max = \"1MiB\"", "memory.max = \"512MiB\"");
    assert_eq!(notes(&roomy), [], "nothing was reclaimed");
    let longer = GOOD.replace("[[task.object]]", "think_time = \"1ms\"\n[[task.object]]");
    assert_eq!(notes(&longer), []);
}

#[test]
fn without_readahead_a_sequential_read_says_so() {
    let by_default = GOOD.replace("{ pattern = \"zipf\", ops = 5000 }", "{ pattern = \"sequential\" }");
    assert_eq!(about(&by_default), Vec::<String>::new(), "it is on unless it is turned off");
    let off = "[[device]]\nname = \"nvme\"\nread_ahead_kb = 0\n";
    let sequential = format!("{by_default}{off}");
    let printed = check(&sequential, &["run", "scenario.toml"]);
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "Note: Readahead is off: 99.90% of the pages read from files follow an earlier page, but each was a separate \
                request, ";
    assert!(printed.contains(note) && printed.contains(" MB/s in total"), "{printed}");
    assert_eq!(about(&sequential), ["readahead"]);
    assert_eq!(about(&format!("{GOOD}{off}")), Vec::<String>::new(), "nobody reads ahead of random reads");
    let random = sequential.replace("channel = \"file\"", "channel = \"mapped\"\nadvice = \"random\"");
    assert_eq!(about(&random), Vec::<String>::new(), "nor of who says that they are");
    let compared =
        check(&sequential, &["compare", "scenario.toml", "--vary", "kernel.profile=classic@6.12,lru"]);
    assert_eq!(compared.matches("Readahead is off").count(), 1, "{compared}");
    assert!(compared.contains("Note: classic@6.12: Readahead is off"), "{compared}");
}

#[test]
fn reading_from_a_swap_disk_says_that_nothing_is_read_ahead() {
    let anonymous = |kind: &str, cluster: u8| {
        let swap = format!(
            "channel = \"anonymous\"\nsize = \"4MiB\"\nworkload = {{ pattern = \"zipf\", ops = 5000 }}\n[[swap]]\nsize = \"8MiB\"\nkind = \"{kind}\"\n[sysctl]\nvm.page-cluster = {cluster}\n"
        );
        let at = GOOD.find("channel").unwrap();
        format!("{}{swap}", &GOOD[..at])
    };
    assert_eq!(about(&anonymous("disk", 0)), ["swap readahead"]);
    assert_eq!(about(&anonymous("zram", 0)), Vec::<String>::new(), "zram has none on Linux either");
    assert_eq!(about(&anonymous("disk", 3)), Vec::<String>::new());
    let by_default = anonymous("disk", 0).replace("[sysctl]\nvm.page-cluster = 0\n", "");
    assert_eq!(about(&by_default), Vec::<String>::new(), "it is on unless it is turned off");
}

#[test]
fn a_limit_beyond_the_machine_is_told_by_check_and_run() {
    let beyond = GOOD.replace("memory.max = \"1MiB\"", "memory.max = \"1MiB\"\nmemory.high = \"8GiB\"");
    let told = "so never reached: memory.high of /web (8 GiB of 1 GiB)";
    for more in [&["--check"][..], &[]] {
        let printed = check(&beyond, &[&["run", "scenario.toml"], more].concat());
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains(told), "{printed}");
    }
    assert_eq!(about(&beyond), ["limits"]);
    let written = format!(
        "{GOOD}\n[[event]]\nat = \"1ms\"\nwrite = \"/sys/fs/cgroup/web/memory.max\"\nvalue = \"2GiB\"\n"
    );
    assert_eq!(about(&written), ["limits"]);
    let within = GOOD.replace("\"1MiB\"", "\"1GiB\"\nmemory.high = \"max\"\nmemory.low = \"8GiB\"");
    assert_eq!(about(&within), Vec::<String>::new(), "`max` is meant, and protection of all is usual");
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn readings_beyond_what_a_result_holds_are_thinned_and_it_says_so() {
    let often = |every: &str| {
        format!(
            "{}\n[[event]]\nat = \"0s\"\nevery = \"{every}\"\nread = \"/sys/fs/cgroup/web/memory.stat\"\nshow = [\"pgscan\"]\n",
            GOOD.replace("[[task.object]]", "think_time = \"10us\"\n[[task.object]]")
        )
    };
    let run = |scenario: &str| -> Value {
        serde_json::from_str(&check(scenario, &["run", "scenario.toml", "--json"])).unwrap()
    };
    let seldom = run(&often("1ms"));
    assert_eq!(seldom["reads_thinned"], Value::Array(Vec::new()));
    assert!(!seldom["notes"].to_string().contains("\"readings\""), "{}", seldom["notes"]);
    let scenario = often("2us");
    let result = run(&scenario);
    let thinned = &result["reads_thinned"][0];
    let (taken, every) = (thinned["taken"].as_u64().unwrap(), thinned["every"].as_u64().unwrap());
    assert!(taken > 20_000 && every > 1, "{thinned}");
    let reads = result["reads"].as_array().unwrap();
    let bytes: usize = reads.iter().map(|read| read["text"].as_str().unwrap().len()).sum();
    assert!(bytes < 17 << 20, "{bytes}");
    assert_eq!(thinned["kept"].as_u64().unwrap(), reads.len() as u64);
    let at = |index: usize| reads[index]["at_ns"].as_u64().unwrap();
    assert_eq!((at(0), at(1), at(2)), (0, 2_000 * every, 4_000 * every));
    assert_eq!(at(reads.len() - 1), 2_000 * (taken - 1), "the last reading is always there");
    let printed = check(&scenario, &["run", "scenario.toml"]);
    assert!(printed.contains("more than a result stores: it keeps 1 of"), "{printed}");
}

#[test]
fn lru_gen_is_shown_whole_if_asked_for() {
    let scenario = format!(
        "{}\n[kernel]\nprofile = \"mglru@6.12\"\n[[event]]\nat = \"20ms\"\nread = \"/sys/kernel/debug/lru_gen\"\nshow = [\"*\"]\n",
        GOOD
    );
    let printed = check(&scenario, &["run", "scenario.toml"]);
    let (_, shown) = printed.split_once("\n/sys/kernel/debug/lru_gen\nat 20.0 ms\n").expect(&printed);
    let shown = shown.split("\n\n").next().unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("memcg     1 /") && lines[1] == " node     0", "{shown}");
    assert!(lines.iter().any(|line| line.starts_with("memcg     2 /web")), "{shown}");
    let result: Value = serde_json::from_str(&check(&scenario, &["run", "scenario.toml", "--json"])).unwrap();
    assert_eq!(result["reads"][0]["text"].as_str().unwrap().trim_end(), shown.trim_end());
}

#[test]
fn a_task_without_accesses_has_no_hit_ratio() {
    let idle = GOOD.replace("memcg = \"/web\"", "memcg = \"/web\"\nstart = \"1s\"\nbackground = true");
    let scenario = format!(
        "{idle}\n[[task]]\nname = \"other\"\n[[task.object]]\nchannel = \"file\"\nsize = \"1MiB\"\nworkload = {{ pattern = \"zipf\", ops = 10 }}\n"
    );
    let printed = check(&scenario, &["run", "scenario.toml"]);
    let row = printed.lines().find(|line| line.starts_with("reader")).expect(&printed);
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[..4], ["reader", "/web", "0", "-"], "{printed}");
    let result: Value = serde_json::from_str(&check(&scenario, &["run", "scenario.toml", "--json"])).unwrap();
    assert_eq!(result["tasks"][0]["hit_ratio"], Value::Null);
    assert!(result["tasks"][1]["hit_ratio"].is_number());
}

#[test]
fn a_read_that_misses_is_no_major_fault() {
    let random = GOOD.replace("channel = \"file\"", "channel = \"file\"\nadvice = \"random\"");
    let file: Value = serde_json::from_str(&check(&random, &["run", "scenario.toml", "--json"])).unwrap();
    let task = &file["tasks"][0];
    assert_eq!((&task["minor"], &task["major"]), (&0.into(), &0.into()));
    let misses = task["accesses"].as_u64().unwrap() - task["hits"].as_u64().unwrap();
    assert_eq!((&task["read_misses"], &task["read_misses_io"]), (&misses.into(), &misses.into()));
    assert_eq!(file["vmstat"]["pgmajfault"], 0);
    let mapped = GOOD.replace("channel = \"file\"", "channel = \"mapped\"");
    let mapped: Value = serde_json::from_str(&check(&mapped, &["run", "scenario.toml", "--json"])).unwrap();
    let task = &mapped["tasks"][0];
    assert_eq!((&task["read_misses"], &task["major"]), (&0.into(), &mapped["vmstat"]["pgmajfault"]));
    assert!(task["major"].as_u64().unwrap() > 0);
}

#[test]
fn a_runtime_that_was_cut_off_is_in_parentheses_in_comparisons_too() {
    let cut = format!("until = \"5ms\"\n{GOOD}");
    let printed = check(&cut, &["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB"]);
    let row = printed.lines().find(|line| line.trim_start().starts_with("runtime")).expect(&printed);
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["runtime", "(5.00", "ms)", "(5.00", "ms)", "-"]);
    assert!(printed.contains("A runtime in parentheses: the task was not done"), "{printed}");
    let arguments = ["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB", "--json"];
    let result: Value = serde_json::from_str(&check(&cut, &arguments)).unwrap();
    let runtime = &result["variants"][1]["metrics"]["task reader: runtime_ns"];
    assert_eq!((&runtime["truncated"], &runtime["difference_percent"]), (&true.into(), &Value::Null));
    let whole = check(GOOD, &["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB"]);
    assert!(!whole.contains("(") || !whole.contains("parentheses"), "{whole}");
}

#[test]
fn numbers_that_are_none_are_refused_by_name() {
    let nan = run_with("ops = 5000", "ops = 5000, alpha = nan", &[]);
    check_failure(&nan, 2, &["`alpha`: found NaN, expected a finite number", "scenario.toml:14:"]);
    let set = run_with("ops = 5000", "ops = 5000", &["--set", "task.reader.object.0.workload.alpha=inf"]);
    check_failure(
        &set,
        2,
        &["`alpha`: found inf, expected a finite number", "--set task.reader.object.0.workload.alpha=inf"],
    );
}

#[test]
fn the_examples_in_the_help_name_keys_that_there_are() {
    let swap = "\n[[swap]]\nsize = \"64MiB\"\n";
    let directory = with_scenario(&format!("{GOOD}{swap}"));
    let mut tried = 0;
    for command in ["run", "compare", "ablate", "crossover"] {
        let help = check_success(&pageout(directory.path(), &[command, "--help"])).replace("\\\n", " ");
        for line in help.lines().filter(|line| line.trim_start().starts_with("pageout ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| ["--set", "--vary"].contains(&pair[0])) {
                let (key, values) = pair[1].trim_matches('\'').split_once('=').unwrap();
                let setting = format!("{key}={}", values.split(',').next().unwrap());
                check_success(&pageout(
                    directory.path(),
                    &["run", "scenario.toml", "--check", "--set", &setting],
                ));
                tried += 1;
            }
        }
    }
    assert!(tried >= 10, "{tried} settings found in the help");
    let help = check_success(&pageout(directory.path(), &["compare", "--help"]));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("marked `~` if the 95 % confidence interval of its mean contains 0"), "{help}");
}

#[test]
fn the_version_says_commit_and_profile() {
    let directory = with_scenario(GOOD);
    let output = pageout(directory.path(), &["--version"]);
    let version = check_success(&output);
    let (_, build) = version.trim_end().split_once(" (profile ").expect(&version);
    let (profile, commit) = build.strip_suffix(')').unwrap().split_once(", commit ").expect(&version);
    assert!(version.starts_with("pageout ") && !profile.is_empty() && !commit.is_empty(), "{version}");
    assert!(profile != "dev" || commit == "unknown", "a build for development asks for no commit: {version}");
    assert_eq!(text(&output.stderr), "");
}

const TWO_TIERS: &str = r#"
[[machine.node]]
cpus = 4
memory = "16MiB"
[[machine.node]]
memory = "64MiB"
cpus = 0
preset = "cxl-1.1"
[sysctl]
kernel.numa_balancing = 2
[kernel]
sched.numa_balancing.scan_delay_ms = 10
sched.numa_balancing.scan_period_min_ms = 10
[[task]]
name = "kv"
[[task.object]]
channel = "anonymous"
size = "40MiB"
workload = { pattern = "zipf", ops = 600_000 }
"#;

#[test]
fn hot_pages_that_nothing_makes_room_for_are_told() {
    let [(subject, text)] = &notes(TWO_TIERS)[..] else { panic!("{:?}", notes(TWO_TIERS)) };
    assert_eq!(subject, "promotion");
    assert!(text.contains("kernel.numa.demotion_enabled = true"), "{text}");
    let demoting = TWO_TIERS.replace("[kernel]", "[kernel]\nnuma.demotion_enabled = true");
    assert_eq!(about(&demoting), Vec::<String>::new());
    let roomy = TWO_TIERS.replace("16MiB", "128MiB");
    assert_eq!(notes(&roomy), [], "all of it is on fast memory");
    let balancing_is_off = TWO_TIERS.replace("numa_balancing = 2", "numa_balancing = 0");
    assert_eq!(notes(&balancing_is_off), []);
}

#[test]
fn a_run_that_ends_before_memory_is_looked_at_for_the_first_time_is_told() {
    let late = TWO_TIERS.replace("scan_delay_ms = 10", "scan_delay_ms = 60000");
    let [(about, text)] = &notes(&late)[..] else { panic!("{:?}", notes(&late)) };
    assert_eq!(about, "promotion");
    assert!(text.starts_with("NUMA balancing scanned no memory"), "{text}");
}

/// What is refused before a run is taken while it runs, as Linux takes it; that nothing comes of it is said.
#[test]
fn tiering_that_is_turned_on_where_there_is_one_tier_is_told() {
    let event = |path: &str, value: &str| {
        format!("{GOOD}\n[[event]]\nat = \"1ms\"\nwrite = \"{path}\"\nvalue = {value}\n")
    };
    for (path, on, off) in [
        ("/sys/kernel/mm/numa/demotion_enabled", "\"on\"", "false"),
        ("/sys/kernel/mm/numa/pagecache_promotion_enabled", "\"T\"", "\"N\""),
        ("/proc/sys/kernel/numa_balancing", "2", "0"),
        ("/proc/sys/vm/pghot_record_fma_enable", "1", "0"),
    ] {
        assert_eq!(about(&event(path, on)), ["tiers"], "{path}");
        let notes = notes(&event(path, on));
        let (_, text) = notes.iter().find(|(about, _)| about == "tiers").unwrap();
        assert!(
            text.contains(path) && text.contains("all memory of this machine is in its top tier"),
            "{text}"
        );
        assert_eq!(about(&event(path, off)), Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_line_to_show_that_is_in_no_reading_is_told() {
    let event = "[[event]]\nat = \"1ms\"\nread = \"/sys/fs/cgroup/web/memory.stat\"\nshow = [\"file\", \"inactive_fil\"]\n\n[[task]]";
    let printed = check_success(&run_with("[[task]]", event, &[])).replace('\n', " ");
    assert!(printed.contains("begins with `inactive_fil`"), "{printed}");
    assert!(printed.contains("did you mean `inactive_file`?"), "{printed}");
    let good = event.replace("inactive_fil", "inactive_file");
    assert!(!check_success(&run_with("[[task]]", &good, &[])).contains("begins with"));
}

#[test]
fn background_tasks_alone_run_until_until() {
    let background = GOOD.replace("[[task.object]]", "background = true\nloops = 1000000\n[[task.object]]");
    let lasting = format!("until = \"1s\"\n{background}");
    let json = |scenario: &str| -> Value {
        serde_json::from_str(&check(scenario, &["run", "scenario.toml", "--json"])).unwrap()
    };
    let result = json(&lasting);
    assert_eq!(
        (&result["end_ns"], &result["ended"]),
        (&1_000_000_000.into(), &"the time given was over".into())
    );
    assert!(result["accesses"].as_u64() > Some(10_000), "{result}");
    // What happens at a time happens whether or not anybody is left.
    let brief = lasting.replace("loops = 1000000", "loops = 1");
    let reclaim =
        "[[event]]\nat = \"900ms\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"64K\"\n";
    let result = json(&format!("{brief}{reclaim}"));
    assert_eq!((&result["end_ns"], &result["accesses"]), (&1_000_000_000.into(), &5000.into()));
    assert_eq!(result["writes"][0]["at_ns"], 900_000_000, "{result}");
    let compared =
        check(&lasting, &["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB"]);
    assert!(compared.contains("task reader\n") && compared.contains("throughput"), "{compared}");
    let directory = with_scenario(&background);
    let refused = pageout(directory.path(), &["run", "scenario.toml"]);
    check_failure(&refused, 2, &["every task is in the background, so the run never ends", "set `until`"]);
}

#[test]
fn a_run_without_an_access_says_why_and_no_table_of_it_is_printed_without_that() {
    let late = GOOD.replace("[[task.object]]", "start = \"2s\"\n[[task.object]]");
    let late = format!("until = \"1s\"\n{late}");
    let says = "No access was made, so no figure is meaningful. Task reader made no access: it starts after 2.00 s, but the run \
                ended after 1.00 s.";
    let vary = ["--vary", "memcg./web.memory.max=1MiB,2MiB"];
    for arguments in [
        &["run", "scenario.toml"][..],
        &[&["compare", "scenario.toml"], &vary[..]].concat(),
        &["ablate", "scenario.toml", "--switch", "lru.tiers"],
        &["crossover", "scenario.toml"],
    ] {
        let printed = check(&late, arguments);
        let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(says), "{arguments:?}: {printed}");
    }
    let second = "\n[[task]]\nname = \"second\"\nafter = \"reader\"\n[[task.object]]\nchannel = \"file\"\nsize = \"4MiB\"\n\
                  workload = { pattern = \"zipf\", ops = 5000 }\n";
    let waits = format!("until = \"1ms\"\n{GOOD}{second}");
    let waits = notes(&waits);
    let told =
        "Task second made no access: it waits for the end of reader, but the run ended first, after 1.00 ms.";
    assert!(waits.contains(&("accesses".to_string(), told.to_string())), "{waits:?}");
    assert!(about(GOOD).is_empty());
}

/// The words that a command prints.
#[track_caller]
fn words(scenario: &str, arguments: &[&str]) -> String {
    check(scenario, arguments).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn figures_of_killed_tasks_are_not_compared_without_saying_so() {
    let anonymous = GOOD.replace("channel = \"file\"", "channel = \"anonymous\"");
    let killed = format!("{anonymous}\n[machine]\noom = \"kill\"\n");
    let vary = ["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,8MiB"];
    let says =
        "The OOM killer ended tasks in: 1MiB (1 of 1 run). Rates and totals of these runs are not comparable";
    assert!(words(&killed, &vary).contains(says), "{}", words(&killed, &vary));
    let ablate = ["ablate", "scenario.toml", "--switch", "lru.tiers", "--repeat", "2"];
    let says = "The OOM killer ended tasks in: classic@6.12 (2 of 2 runs), lru.tiers=false (2 of 2 runs).";
    assert!(words(&killed, &ablate).contains(says), "{}", words(&killed, &ablate));
    let directory =
        with_scenario(&killed.replace("1MiB", "max").replace("4MiB", "64MiB").replace("5000", "50000"));
    let advise =
        ["advise-tier", "scenario.toml", "--memory", "32MiB", "--ratio", "1:1", "--device", "cxl-1.1"];
    check_failure(
        &pageout(directory.path(), &advise),
        1,
        &["the OOM killer ends tasks", "with fast memory only"],
    );
}

#[test]
fn what_can_make_no_difference_is_told() {
    let roomy = GOOD.replace("memory.max = \"1MiB\"", "memory.max = \"512MiB\"");
    let says = "Memory was never short: no run scanned a page";
    for arguments in
        [&["ablate", "scenario.toml", "--switch", "lru.tiers"][..], &["crossover", "scenario.toml"]]
    {
        assert!(words(&roomy, arguments).contains(says), "{arguments:?}");
        assert!(!words(GOOD, arguments).contains(says), "{arguments:?}");
    }
    let vary = ["compare", "scenario.toml", "--vary", "kernel.lru.tiers=true,false"];
    assert!(
        words(GOOD, &vary).contains("No figure shown differs from true in any run: false."),
        "{}",
        words(GOOD, &vary)
    );
    let outside = GOOD.replace("memcg = \"/web\"\n", "");
    let [(_, told)] = &notes(&outside)[..] else { panic!("{:?}", notes(&outside)) };
    assert!(told.starts_with("No task is in /web, so its settings have no effect"), "{told}");
    let below = GOOD
        .replace("path = \"/web\"", "path = \"/web\"\nmemory.high = \"max\"\n[[memcg]]\npath = \"/web/a\"");
    assert!(about(&below.replace("memcg = \"/web\"", "memcg = \"/web/a\"")).is_empty());
}

#[test]
fn value_without_effect_is_in_the_result_and_in_keys() {
    let at_start = |value: &str| format!("{GOOD}\n[sysctl]\nkernel.numa_balancing = {value}\n");
    let written = |value: &str| {
        format!(
            "{GOOD}\n[[event]]\nat = \"1ms\"\nwrite = \"/proc/sys/kernel/numa_balancing\"\nvalue = {value}\n"
        )
    };
    for scenario in [at_start("1"), written("1")] {
        assert_eq!(about(&scenario), ["values without effect"]);
        let notes = notes(&scenario);
        let (_, text) = notes.iter().find(|(about, _)| about == "values without effect").unwrap();
        assert!(text.starts_with("kernel.numa_balancing = 1 has no effect here: "), "{text}");
    }
    for scenario in [at_start("0"), written("0")] {
        assert_eq!(about(&scenario), Vec::<String>::new());
    }
    let of_mode = |mode: u8| about(&format!("{GOOD}\n[sysctl]\nvm.zone_reclaim_mode = {mode}\n"));
    for mode in 0..8 {
        let is_idle = [2, 4, 6].contains(&mode);
        assert_eq!(of_mode(mode).contains(&"values without effect".to_string()), is_idle, "mode {mode}");
    }
}

/// With bit 1 and two sockets pages move to their task, and the result says that tasks do not.
#[test]
fn balancing_of_cpus_moves_pages_and_says_that_tasks_stay() {
    let sockets = r#"
[[machine.node]]
cpus = 2
memory = "64MiB"
[[machine.node]]
cpus = 2
memory = "64MiB"
[sysctl]
kernel.numa_balancing = 1
[kernel]
sched.numa_balancing.scan_delay_ms = 5
sched.numa_balancing.scan_period_min_ms = 5
[[task]]
name = "far"
cpunodebind = "0"
[[task.object]]
channel = "anonymous"
size = "16MiB"
populate_node = 1
workload = { pattern = "uniform", ops = 1_000_000 }
"#;
    assert_eq!(about(sockets), ["NUMA balancing"]);
    let notes = notes(sockets);
    assert!(notes[0].1.contains("Here tasks stay on their CPUs"), "{notes:?}");
    let off = sockets.replace("kernel.numa_balancing = 1", "kernel.numa_balancing = 0");
    assert_eq!(about(&off), Vec::<String>::new());
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("s.toml"), sockets).unwrap();
    let json = check_success(&pageout(directory.path(), &["run", "s.toml", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let count = |name: &str| json["vmstat"][name].as_u64().unwrap();
    assert!(
        count("numa_pages_migrated") > 4000,
        "of 4096 pages {} followed the task",
        count("numa_pages_migrated")
    );
    assert!(count("numa_hint_faults") >= count("numa_pages_migrated"));
    assert_eq!(count("pgpromote_success"), 0, "both nodes are equally fast");
}

/// Each key has an effect beside other settings, and none beside those of this scenario.
#[test]
fn key_without_effect_beside_others_is_in_the_result() {
    let nodes = |of_first: &str, of_second: &str| {
        format!(
            "[[machine.node]]\nmemory = \"32MiB\"\n{of_first}\n[[machine.node]]\nmemory = \"32MiB\"\n{of_second}"
        )
    };
    let node = |key: &str| format!("[[machine.node]]\nmemory = \"32MiB\"\n{key}");
    let device = |keys: &str| format!("[[device]]\nname = \"disk\"\n{keys}");
    let swap = |of_first: &str, more: &str| {
        format!(
            "[[swap]]\nsize = \"1MiB\"\n{of_first}\n[[task]]\nname = \"heap\"\n[[task.object]]\nchannel = \"anonymous\"\nsize = \"1MiB\"\nworkload = {{ pattern = \"fill\" }}\n{more}"
        )
    };
    let task = |keys: &str| {
        format!(
            "[[task]]\nname = \"other\"\n{keys}\n[[task.object]]\nchannel = \"anonymous\"\nsize = \"64KiB\"\nworkload = {{ pattern = \"fill\" }}"
        )
    };
    let hints = "[machine.hints]\nperiod = 7\n";
    let slow = |more: &str| format!("{}\n{more}", nodes("cpus = 4", "preset = \"cxl-1.1\""));
    let cases = [
        (nodes("cpus = 1", ""), nodes("cpus = 4", ""), "machine.node[0].cpus = 1"),
        (node("adistance = 600"), nodes("", "adistance = 600"), "machine.node[0].adistance = 600"),
        (node("distance = 30"), nodes("", "distance = 30"), "machine.node[0].distance = 30"),
        (
            node("reserved = \"8MiB\""),
            node("reserved = \"8MiB\"\nmovable = \"8MiB\""),
            "machine.node[0].reserved = 8MiB",
        ),
        (
            nodes("", "interleave_weight = 3"),
            format!("{}\n{}", nodes("", "interleave_weight = 3"), task("weighted_interleave = \"0-1\"")),
            "machine.node[1].interleave_weight = 3",
        ),
        (
            slow(hints),
            slow(&format!("{hints}[sysctl]\nvm.pghot_record_hwhints_enable = 1")),
            "machine.hints.period = 7",
        ),
        (
            "[machine]\ntlb_entries = 64".to_string(),
            format!("[machine]\ntlb_entries = 64\n{}", task("")),
            "machine.tlb_entries = 64",
        ),
        (
            device("queue_depth = 200\nnr_requests = 150"),
            device("queue_depth = 200\nnr_requests = 300"),
            "device[0].nr_requests = 150",
        ),
        (device("optimal_io_kb = 64"), device("optimal_io_kb = 65"), "device[0].optimal_io_kb = 64"),
        (
            device("rotational = true\nread_ahead_kb = 64"),
            device("rotational = true"),
            "device[0].rotational = true",
        ),
        (swap("priority = 3", ""), swap("priority = 3", "[[swap]]\nsize = \"1MiB\""), "swap[0].priority = 3"),
        (
            swap("zero_filled = 0.5", "[kernel]\nswap.zero_map = false"),
            swap("zero_filled = 0.5", ""),
            "swap[0].zero_filled = 50%",
        ),
    ];
    let texts = |scenario: &str| -> String {
        let notes = notes(scenario).into_iter().filter(|(about, _)| about == "values without effect");
        notes.map(|(_, text)| text).collect()
    };
    for (idle, binds, told) in cases {
        let [idle, binds] = [idle, binds].map(|more| texts(&format!("{GOOD}\n{more}")));
        assert!(idle.starts_with(&format!("{told} has no effect here: ")), "{told}: {idle}");
        assert!(!binds.contains(told), "{told}: {binds}");
    }
    let of_heaps = GOOD.replace("\"file\"", "\"anonymous\"").replace("\"1MiB\"", "\"8MiB\"");
    let told = texts(&format!("{of_heaps}\n{}", device("read_latency = \"1ms\"")));
    assert!(told.starts_with("device[0].name = disk has no effect here: no file and no swap area"), "{told}");
    assert!(texts(&format!("{GOOD}\n{}", device("read_latency = \"1ms\""))).is_empty());
}

/// Nothing shows it, whichever value it has: its user would look for an effect in vain.
#[test]
fn key_that_no_scenario_shows_is_in_the_result() {
    let with = |setting: &str| notes(&format!("{GOOD}\n[kernel]\n{setting}\n"));
    let told = with("lru.interface = \"6.16\"");
    let (_, text) = told.iter().find(|(about, _)| about == "keys that nothing shows").unwrap();
    assert!(text.starts_with("No shipped scenario shows an effect of kernel.lru.interface: "), "{text}");
    // Scenarios of 2010 show the second.
    for shown in ["lru.aging = \"6.16\"", "reclaim.writepage = \"redirties\""] {
        let told = with(shown);
        assert!(told.iter().all(|(about, _)| about != "keys that nothing shows"), "{told:?}");
    }
}

#[test]
fn run_with_large_anonymous_folios_says_what_is_not_modelled_of_them() {
    let at = GOOD.find("channel").unwrap();
    let heap = "channel = \"anonymous\"\nsize = \"4MiB\"\nworkload = { pattern = \"sequential\" }\n";
    let with = |kernel: &str| {
        let scenario = GOOD[..at].replace("memory.max = \"1MiB\"", "memory.max = \"64MiB\"");
        notes(&format!("{scenario}{heap}[kernel]\n{kernel}"))
    };
    let told = with("hugepages_64kB = \"always\"\n");
    let of_folios = told.iter().find(|(about, _)| about == "large folios");
    let (_, text) = of_folios.unwrap_or_else(|| panic!("{told:?}"));
    assert!(text.starts_with("64 large folios of anonymous memory made by faults."), "{text}");
    for lack in ["after fork", "khugepaged", "huge zero page", "Compaction skips"] {
        assert!(text.contains(lack), "{lack}: {text}");
    }
    assert!(with("hugepages_64kB = \"never\"\n").iter().all(|(about, _)| about != "large folios"));
}
