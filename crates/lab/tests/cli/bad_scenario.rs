//! Scenarios and settings that can't be run.

use super::{GOOD, check_failure, check_success, pageout, run_with, with_scenario};

#[test]
fn a_misspelt_key_names_file_line_and_nearest_match() {
    let output = run_with("memory.max", "memory.mxa", &[]);
    check_failure(
        &output,
        2,
        &["unknown key `memory.mxa`", "scenario.toml:5:", "did you mean `memory.max`?"],
    );
    let output = run_with("channel", "chanel", &[]);
    check_failure(&output, 2, &["unknown key `chanel`", "scenario.toml:12:1", "did you mean `channel`?"]);
    let output = run_with("ops", "opps", &[]);
    check_failure(&output, 2, &["unknown key `opps`", "scenario.toml:14:", "did you mean `ops`?"]);
    let output = run_with("[[memcg]]", "[sysctl]\nvm.swapiness = 10\n\n[[memcg]]", &[]);
    check_failure(
        &output,
        2,
        &["unknown key `vm.swapiness`", "scenario.toml:4:", "did you mean `vm.swappiness`?"],
    );
    let output = run_with("[[task]]", "[[taks]]", &[]);
    check_failure(&output, 2, &["scenario.toml:7:", "did you mean `task`?"]);
}

#[test]
fn an_unknown_key_of_the_kernel_shows_its_neighbours_or_where_it_belongs_and_not_all_keys() {
    for (key, parts) in [
        (
            "sysctl.vm.swappiness = 10",
            ["`sysctl.vm.swappiness` is a key of the scenario, not of `kernel`", "above all sections"],
        ),
        ("lru.agin = 1", ["did you mean `lru.aging`?", "keys here: lru.lists, "]),
        ("colour = 1", ["keys here: profile, ", "lru.*, reclaim.*"]),
    ] {
        let output = run_with("[[memcg]]", &format!("[kernel]\n{key}\n\n[[memcg]]"), &[]);
        check_failure(&output, 2, &[&["unknown key", "scenario.toml:4:"], &parts[..]].concat());
        let message = super::text(&output.stderr);
        assert!(message.len() < 1500, "{message}");
    }
}

#[test]
fn a_value_that_had_another_name_is_refused_with_the_new_one() {
    let output = run_with("[[memcg]]", "[kernel]\nlru.lists = \"single_list\"\n\n[[memcg]]", &[]);
    check_failure(&output, 2, &["`single_list` is called lru", "scenario.toml:4:"]);
}

#[test]
fn a_misspelt_name_is_answered_with_the_nearest() {
    let output = run_with("memcg = \"/web\"", "memcg = \"/wbe\"", &[]);
    check_failure(
        &output,
        2,
        &["there is no memcg called `/wbe`", "scenario.toml:9:", "did you mean `/web`?"],
    );
    let output = run_with("\"zipf\"", "\"zpif\"", &[]);
    check_failure(&output, 2, &["`zpif` is none of the allowed values", "did you mean `zipf`?"]);
    let output = run_with("[[memcg]]", "[[device]]\nname = \"d\"\npreset = \"nvmee\"\n\n[[memcg]]", &[]);
    check_failure(&output, 2, &["`nvmee`", "scenario.toml:5:", "did you mean `nvme`?"]);
    let output = run_with("[[memcg]]", "[kernel]\nprofile = \"classic@6.21\"\n\n[[memcg]]", &[]);
    check_failure(&output, 2, &["scenario.toml:4:", "did you mean `classic@6.12`?"]);
    let event = "[[event]]\nat = \"1s\"\nread = \"/sys/fs/cgroup/web/memory.stats\"\n\n[[memcg]]";
    check_failure(
        &run_with("[[memcg]]", event, &[]),
        2,
        &["did you mean `memory.stat`?", "scenario.toml:5:"],
    );
}

#[test]
fn sizes_and_durations_that_are_none_are_refused() {
    let output = run_with("\"4MiB\"", "\"4MX\"", &[]);
    check_failure(&output, 2, &["`4MX` is not a size: unknown unit `MX`", "scenario.toml:13:8", "256MiB"]);
    let output = run_with("\"4MiB\"", "\"much\"", &[]);
    check_failure(&output, 2, &["`much` is not a size"]);
    let output = run_with("memcg = \"/web\"", "memcg = \"/web\"\nthink_time = \"5\"", &[]);
    check_failure(&output, 2, &["`5` is not a duration: the unit is missing", "scenario.toml:10:"]);
}

#[test]
fn zero_and_impossible_sizes_are_refused() {
    check_failure(&run_with("\"4MiB\"", "0", &[]), 2, &["0B is too small", "scenario.toml:13:8"]);
    check_failure(&run_with("\"1MiB\"", "\"8KiB\"", &[]), 2, &["below what one fault needs", "from 128KiB"]);
    check_failure(
        &run_with("\"1MiB\"", "\"1%\"", &[]),
        2,
        &["below what one fault needs", "scenario.toml:5:14"],
    );
    check_failure(&run_with("\"1MiB\"", "\"0%\"", &[]), 2, &["`0%` is not a percentage above 0"]);
    let output = run_with("[[memcg]]", "[machine]\ncpus = 0\nmemory = 0\n\n[[memcg]]", &[]);
    check_failure(
        &output,
        2,
        &["`machine.cpus`: 0 is too small: the minimum is 1", "0B is too small", "2 problems"],
    );
    let output = run_with("[[memcg]]", "[machine]\nmemory = \"99999TiB\"\n\n[[memcg]]", &[]);
    check_failure(&output, 2, &["too large", "scenario.toml:4:10"]);
    let nodes = "[machine]\ninit_memory = \"1GiB\"\n[[machine.node]]\nmemory = \"1GiB\"\nmovable = \"2GiB\"\n\n[[memcg]]";
    let output = run_with("[[memcg]]", nodes, &[]);
    check_failure(
        &output,
        2,
        &[
            "2GiB of zone Movable exceed the 1GiB of the node",
            "1GiB are the complete 1GiB of the first node",
            "2 problems",
        ],
    );
    for (memory, parts) in [
        ("64MiB", ["33 blocks of 2 MiB exceed the 32", "scenario.toml:6:20"]),
        ("65GiB", ["a node of 65GiB is too large for scattered unmovable pages", "the limit is 64GiB"]),
    ] {
        let node =
            format!("[machine]\n[[machine.node]]\nmemory = \"{memory}\"\nunmovable_blocks = 33\n\n[[memcg]]");
        check_failure(&run_with("[[memcg]]", &node, &[]), 2, &parts);
    }
    check_failure(&run_with("memcg = \"/web\"", "memcg = \"/web\"\ncopies = 0", &[]), 2, &["0 is too small"]);
    check_failure(
        &run_with("memcg = \"/web\"", "memcg = \"/web\"\ncpu = 4", &[]),
        2,
        &["no CPU 4", "0 to 3"],
    );
}

#[test]
fn a_page_beyond_the_file_is_refused() {
    let output = run_with("ops = 5000", "ops = 5000, pages = 1025", &[]);
    check_failure(&output, 2, &["reaches page 1024, beyond the object's 1024 pages", "scenario.toml:14:"]);
}

#[test]
fn parameters_of_a_pattern_are_checked() {
    let output = run_with("ops = 5000", "ops = 5000, alpha = -2.0", &[]);
    check_failure(&output, 2, &["`alpha` must be a number in 0..=100, got -2", "scenario.toml:14:"]);
    check_failure(
        &run_with(", ops = 5000", "", &[]),
        2,
        &["the key `ops` is missing", "scenario.toml:14:", "help: `ops` (number from 0): Accesses"],
    );
}

#[test]
fn a_scenario_that_is_missing_or_no_toml_is_told() {
    let directory = with_scenario("[[memcg]\npath = 1\n");
    check_failure(
        &pageout(directory.path(), &["run", "scenario.toml"]),
        2,
        &["invalid TOML", "scenario.toml:1:"],
    );
    check_failure(&pageout(directory.path(), &["run", "nothing.toml"]), 2, &["nothing.toml", "No such file"]);
    check_failure(&pageout(directory.path(), &["run", "."]), 2, &["cannot read scenario"]);
    std::fs::write(directory.path().join("latin.toml"), b"seed = 1\nquestion = \"caf\xe9\"\n").unwrap();
    check_failure(
        &pageout(directory.path(), &["run", "latin.toml"]),
        2,
        &["invalid UTF-8", "0xe9", "--> latin.toml:2", "a scenario is a text file in UTF-8"],
    );
}

#[test]
fn a_scenario_without_a_task_is_told_where_to_start() {
    for text in ["", "seed=1", "# nothing yet\nseed = 1\n[machine]\ncpus = 1\n"] {
        let directory = with_scenario(text);
        check_failure(
            &pageout(directory.path(), &["run", "scenario.toml"]),
            2,
            &[
                "the scenario has no [[task]]",
                "--> scenario.toml\n",
                "pageout keys task",
                "scenarios/zipf-under-limit.toml",
            ],
        );
    }
}

#[test]
fn names_have_no_control_characters() {
    let file = "[[file]]\nname = \"a\\u001b[2J\"\nsize = \"1MiB\"\n\n[[memcg]]";
    for (from, to, line) in [
        ("\"reader\"", "\"red\\u001b[31mder\"", "scenario.toml:8:8"),
        ("\"reader\"", "\"two\\nlines\"", "scenario.toml:8:8"),
        ("path = \"/web\"", "path = \"/we\\u009bb\"", "scenario.toml:4:8"),
        ("[[memcg]]", file, "scenario.toml:4:8"),
        ("\"Does it run?\"", "\"\\u0007\"", "scenario.toml:1:12"),
    ] {
        let output = run_with(from, to, &["--check"]);
        check_failure(&output, 2, &["control character U+00", line]);
        assert!(!super::text(&output.stderr).contains('\u{1b}'));
    }
    check_success(&run_with("\"Does it run?\"", "\"Does it\\nrun?\"", &["--check"]));
    let unknown = run_with("ops = 5000", "ops = 5000, \"o\\u001bps\" = 1", &[]);
    check_failure(&unknown, 2, &["unknown key"]);
    assert!(
        !super::text(&unknown.stderr).contains('\u{1b}'),
        "an error doesn't reach the terminal's controls, either"
    );
}

#[test]
fn a_path_of_a_cgroup_has_no_dots_for_steps() {
    for path in ["/a/../b", "/..", "/./a", "/a//b", "/a/"] {
        let output = run_with("path = \"/web\"", &format!("path = \"{path}\""), &[]);
        check_failure(&output, 2, &[&format!("`{path}` is not a path of a cgroup"), "scenario.toml:4:8"]);
    }
}

#[test]
fn an_object_without_a_size_is_one_problem() {
    let output = run_with("size = \"4MiB\"", "size = 0", &[]);
    check_failure(&output, 2, &["`size`: 0B is too small", "scenario.toml:13:"]);
    assert!(!super::text(&output.stderr).contains("problems"), "{}", super::text(&output.stderr));
}

#[test]
fn a_fault_of_a_variant_is_shown_at_its_line() {
    for (set, parts) in [
        (
            "\"kernel.profle\" = \"lru\"",
            ["unknown key `profle`", "scenario.toml:18:", "did you mean `profile`?"],
        ),
        ("kernel.profile = \"lur\"", ["`lur`", "scenario.toml:18:", "did you mean `lru`?"]),
        (
            "\"memcg./wbe.memory.max\" = \"1MiB\"",
            ["without an element `/wbe`", "scenario.toml:18:", "`memcg./web`"],
        ),
        (
            "\"memcg./web.memory.max\" = \"1KiB\"",
            ["below what one fault needs", "scenario.toml:18:", "128KiB"],
        ),
    ] {
        let directory = with_scenario(&format!("{GOOD}\n[[variant]]\nname = \"a\"\nset = {{ {set} }}\n"));
        for command in ["run scenario.toml --check", "run scenario.toml --variant a", "compare scenario.toml"]
        {
            let arguments: Vec<&str> = command.split(' ').collect();
            check_failure(&pageout(directory.path(), &arguments), 2, &parts);
        }
    }
}

#[test]
fn writes_to_a_file_run_whole_or_partial_and_what_can_not_be_partial_is_refused() {
    check_success(&run_with("ops = 5000", "ops = 5000, write_ratio = 0.1", &[]));
    let writes = "ops = 5000, write_ratio = 0.1 }\n";
    check_success(&run_with("ops = 5000 }", &format!("{writes}partial_writes = true"), &[]));
    check_success(&run_with("ops = 5000 }", &format!("{writes}read_only = true"), &[]));
    let mapped = format!("{writes}partial_writes = true\nlocked = true");
    check_failure(&run_with("ops = 5000 }", &mapped, &[]), 2, &["only a mapping can be locked"]);
}

#[test]
fn running_out_of_memory_is_an_exit_code_and_a_story() {
    let output = run_with("\"file\"", "\"anonymous\"", &[]);
    check_failure(
        &output,
        1,
        &["not complete", "task `reader` at access", "out of memory in /web", "add swap"],
    );
}

#[test]
fn a_disk_that_fails_ends_the_run() {
    let output = run_with("[[memcg]]", "[[device]]\nname = \"d\"\nfail_reads = 0.5\n\n[[memcg]]", &[]);
    check_failure(&output, 1, &["the device failed to read the page (EIO)"]);
}

#[test]
fn the_command_line_itself_is_checked() {
    let directory = with_scenario(GOOD);
    let run = |arguments: &[&str]| pageout(directory.path(), arguments);
    check_failure(&run(&["run"]), 2, &["pageout run: missing <SCENARIO>"]);
    check_failure(
        &run(&["rnu"]),
        2,
        &["pageout: unknown command: found `rnu`", "`pageout -h` lists the commands"],
    );
    check_failure(&run(&["run", "scenario.toml", "--set", "x"]), 2, &["found `x`, expected KEY=VALUE"]);
    check_failure(&run(&["compare", "scenario.toml", "--vary", "seed=1"]), 2, &["fewer than two values"]);
    check_failure(&run(&["compare", "scenario.toml"]), 2, &["--vary"]);
    check_failure(&run(&["keys", "swapiness"]), 2, &["did you mean `sysctl.vm.swappiness`?"]);
}

#[test]
fn settings_are_told_apart_from_the_file() {
    let directory = with_scenario(GOOD);
    let run = |setting: &str| pageout(directory.path(), &["run", "scenario.toml", "--set", setting]);
    check_failure(
        &run("memcg./web.memory.max=1KiB"),
        2,
        &["--> --set memcg./web.memory.max=1KiB", "below what one fault needs"],
    );
    check_failure(
        &run("memcg./wbe.memory.max=1MiB"),
        2,
        &["without an element `/wbe`", "did you mean `memcg./web`?"],
    );
    check_failure(&run("machine.cpsu=2"), 2, &["--> --set machine.cpsu=2", "did you mean `cpus`?"]);
    check_failure(&run("swap.0.size=1GiB"), 2, &["this scenario has no [[swap]]"]);
    check_success(&run("task.*.think_time=1us"));
    let arguments = ["compare", "scenario.toml", "--vary", "kernel.profile=classic@6.12,mru"];
    let output = pageout(directory.path(), &arguments);
    check_failure(&output, 2, &["--> --vary kernel.profile=mru", "allowed: classic@6.12 | "]);
}

#[test]
fn a_key_is_varied_once_whatever_it_is_called() {
    let directory = with_scenario(GOOD);
    for (first, second, key) in [
        ("seed=1,2", "seed=3,4", "seed"),
        ("memcg./web.memory.max=1MiB,2MiB", "memcg.0.memory.max=3MiB,4MiB", "memcg[0].memory.max"),
        ("memcg.*.memory.max=1MiB,2MiB", "memcg[0].memory.max=3MiB,4MiB", "memcg[0].memory.max"),
        ("task.reader.copies=1,2", "task.*.copies=3,4", "task[0].copies"),
        ("kernel.profile=lru,sieve", "kernel={},{profile=\"lru\"}", "kernel"),
    ] {
        let arguments = ["compare", "scenario.toml", "--vary", first, "--vary", second];
        let message = format!("`{key}` is varied twice");
        check_failure(
            &pageout(directory.path(), &arguments),
            2,
            &[&message, "--> --vary", "give all values"],
        );
    }
    let others = ["memcg./web.memory.max=1MiB,2MiB", "memcg./web.memory.high=1MiB,2MiB"];
    let arguments = ["compare", "scenario.toml", "--vary", others[0], "--vary", others[1]];
    check_success(&pageout(directory.path(), &arguments));
}

#[test]
fn seeds_end_where_the_numbers_of_a_scenario_do() {
    let directory = with_scenario(GOOD);
    let run = |command: &str| pageout(directory.path(), &command.split(' ').collect::<Vec<_>>());
    let (last, beyond) = ("9223372036854775807", "9223372036854775808");
    for command in
        ["run scenario.toml --seed", "compare scenario.toml --vary kernel.profile=lru,sieve --seed"]
    {
        check_success(&run(&format!("{command} {last}")));
        check_failure(&run(&format!("{command} {beyond}")), 2, &["--seed", beyond, last]);
    }
    check_failure(&run(&format!("replay a.u32 --seed {beyond}")), 2, &["--seed", beyond, last]);
    for option in ["run scenario.toml --set seed=", "compare scenario.toml --vary seed=1,"] {
        check_failure(&run(&format!("{option}{beyond}")), 2, &[beyond, last, "expected at most"]);
    }
    for command in [
        "compare scenario.toml --vary kernel.profile=lru,sieve",
        "ablate scenario.toml",
        "crossover scenario.toml",
    ] {
        let output = run(&format!("{command} --repeat 2 --seed {last}"));
        check_failure(
            &output,
            2,
            &["found 2 seeds", &format!("from `{last}`"), "help: use a smaller --seed"],
        );
    }
}

#[test]
fn a_setting_nested_too_deep_is_refused() {
    let key = format!("a{}=1", ".b".repeat(200));
    let output = run_with("ops", "ops", &["--set", &key]);
    check_failure(&output, 2, &["this setting makes the scenario invalid TOML", "--set a.b.b"]);
}

#[test]
fn a_timeout_of_what_no_signal_ends_is_refused_before_the_run() {
    for (event, does) in [
        (
            "write = \"/sys/fs/cgroup/web/memory.max\"\nvalue = \"1MiB\"",
            "writes /sys/fs/cgroup/web/memory.max",
        ),
        ("read = \"/proc/vmstat\"", "reads"),
        ("rmdir = \"/sys/fs/cgroup/web\"", "removes"),
    ] {
        let event = format!("{GOOD}\n[[event]]\nat = \"1ms\"\n{event}\ntimeout = \"1ms\"\n");
        let directory = with_scenario(&event);
        let line = event.lines().count();
        check_failure(
            &pageout(directory.path(), &["run", "scenario.toml", "--check"]),
            2,
            &[
                &format!("`timeout` is only for writes to memory.reclaim; this event {does}"),
                &format!("scenario.toml:{line}"),
                "leave it out",
            ],
        );
    }
}

#[test]
fn a_loop_without_a_rest_and_a_sum_where_there_is_no_number_are_refused() {
    let sum = "write = \"/proc/sys/vm/swappiness\"\nadd = 1";
    let to_a_limit = "write = \"/sys/fs/cgroup/web/memory.max\"\nadd = 1";
    for (event, says) in [
        (format!("{sum}\ntimes = 3"), "it needs `every`"),
        (format!("{sum}\ntimes = 3\nevery = \"1ms\"\nuntil = \"1s\""), "found both"),
        (format!("{sum}\nvalue = 3"), "found both `value` and `add`"),
        (to_a_limit.to_string(), "memory.max does not contain a single number"),
        ("read = \"/proc/vmstat\"\nadd = 1".to_string(), "`add` is only for writes; this event reads"),
    ] {
        let directory = with_scenario(&format!("{GOOD}\n[[event]]\nat = \"1ms\"\n{event}\n"));
        check_failure(&pageout(directory.path(), &["run", "scenario.toml", "--check"]), 2, &[says]);
    }
}

#[test]
fn an_event_on_a_limit_of_the_root_is_refused_before_the_run() {
    for event in
        ["write = \"/sys/fs/cgroup/memory.max\"\nvalue = \"1M\"", "read = \"/sys/fs/cgroup/memory.current\""]
    {
        let directory = with_scenario(&format!("{GOOD}\n[[event]]\nat = \"1ms\"\n{event}\n"));
        let output = pageout(directory.path(), &["run", "scenario.toml", "--check"]);
        check_failure(
            &output,
            2,
            &["the root, which has no limits", "scenario.toml:", "memory.stat, cgroup.stat, memory.reclaim"],
        );
    }
}

#[test]
fn times_beyond_what_can_be_simulated_are_refused() {
    let directory = with_scenario(&format!("{GOOD}\n[[event]]\nat = \"1s\"\nread = \"/proc/vmstat\"\n"));
    for key in ["until", "task.reader.start", "event.0.at", "event.0.every"] {
        let set = format!("{key}=1000000h");
        let output = pageout(directory.path(), &["run", "scenario.toml", "--set", &set]);
        check_failure(&output, 2, &["1000000h is too large: the maximum is 10000h", &set]);
    }
    let keys = check_success(&pageout(directory.path(), &["keys", "task[].think_time"]));
    assert!(keys.contains("duration up to 1h"), "{keys}");
}

#[test]
fn what_is_varied_is_not_set_as_well() {
    let directory = with_scenario(GOOD);
    let compare =
        |arguments: &[&str]| pageout(directory.path(), &[&["compare", "scenario.toml"], arguments].concat());
    let vary = ["--vary", "memcg./web.memory.max=1MiB,2MiB"];
    let parts =
        ["`memcg[0].memory.max` is both set and varied", "--> --set memcg.*.memory.max=3MiB", "remove one"];
    check_failure(&compare(&[&vary[..], &["--set", "memcg.*.memory.max=3MiB"]].concat()), 2, &parts);
    // A part of what is set may be varied.
    let workload = "task.reader.object.0.workload={ pattern = \"zipf\", ops = 3000 }";
    let printed =
        check_success(&compare(&["--set", workload, "--vary", "task.reader.object.0.workload.alpha=0.5,1"]));
    assert!(printed.contains("3,000"), "{printed}");
}

#[test]
fn a_key_that_stands_elsewhere_is_found_there() {
    let directory = with_scenario(GOOD);
    for (set, parts) in [
        (
            "kernel.vm.swappiness=10",
            ["unknown key `vm.swappiness`", "elsewhere there is `sysctl.vm.swappiness`"],
        ),
        ("vm.swappiness=10", ["unknown key `vm`", "elsewhere there is `sysctl.vm`"]),
        ("swappiness=10", ["unknown key `swappiness`", "elsewhere there is `sysctl.vm.swappiness`"]),
        ("cpus=4", ["unknown key `cpus`", "elsewhere there is `machine.cpus` and `machine.node[].cpus`"]),
        ("sysctl.memory.max=1MiB", ["unknown key `memory.max`", "elsewhere there is `memcg[].memory.max`"]),
    ] {
        check_failure(&pageout(directory.path(), &["run", "scenario.toml", "--set", set]), 2, &parts);
    }
}

#[test]
fn a_fault_in_a_workload_names_its_key_and_where_it_was_set() {
    let directory = with_scenario(GOOD);
    let set = |setting: &str| pageout(directory.path(), &["run", "scenario.toml", "--set", setting]);
    let setting = "task.reader.object.0.workload.alpha=abc";
    check_failure(
        &set(setting),
        2,
        &["`alpha`: invalid type: string \"abc\"", "a number\n --> --set", setting],
    );
    check_failure(&set("foo.bar=1"), 2, &["unknown key `foo`\n --> --set foo.bar=1"]);
    check_failure(&set("task.reader.object.0={}"), 2, &["`task[0].object.0` is an element of a list"]);
    check_success(&set("sysctl.\"vm.swappiness\"=5"));
}

#[test]
fn out_of_memory_with_free_swap_for_stale_statistics_says_so() {
    let scenario = r#"
        [[memcg]]
        path = "/w"
        memory.max = "20MiB"
        [[swap]]
        size = "1GiB"
        kind = "zram"
        [[task]]
        name = "t"
        memcg = "/w"
        [[task.object]]
        channel = "anonymous"
        size = "64MiB"
        workload = { pattern = "hot_set", hot_pages_fraction = 0.2, hot_access_fraction = 0.95, ops = 250_000, move_every = 100_000 }
    "#;
    let directory = with_scenario(scenario);
    let parts = ["all anonymous pages are active", "reclaim's statistics are ", "do not show it"];
    check_failure(&pageout(directory.path(), &["run", "scenario.toml"]), 1, &parts);
    let live = ["run", "scenario.toml", "--set", "kernel.memcg.stat_flush=live"];
    check_success(&pageout(directory.path(), &live));
}

#[test]
fn threads_depth_and_lifetime_that_exclude_each_other_are_refused() {
    let with = |keys: &str| run_with("memcg = \"/web\"", &format!("memcg = \"/web\"\n{keys}"), &[]);
    check_failure(
        &with("lifetime = \"loop\"\nthreads = 2"),
        2,
        &["`threads`: each loop of task `reader` is a process of its own", "scenario.toml:11:"],
    );
    check_failure(
        &with("lifetime = \"loop\"\nfirst_thread = \"waits\""),
        2,
        &["`first_thread`: each loop of task `reader`"],
    );
    check_failure(&with("lifetime = \"loop\"\ndepth = 2"), 2, &["`depth`: each loop of task `reader`"]);
    check_failure(&with("threads = 0"), 2, &["`threads`", "1 to 10000"]);
    check_failure(&with("depth = 5000"), 2, &["`depth`", "1 to 4096"]);
    check_failure(
        &with("threads = 1000\ndepth = 1000"),
        2,
        &["copies, threads and depth make 1000000 of task `reader`", "100000 in total"],
    );
    check_failure(&with("lifetime = \"lop\""), 2, &["`lop`", "did you mean `loop`?"]);
    let mapped = GOOD.replace("channel = \"file\"", "channel = \"mapped\"");
    let mapped = mapped.replace("memcg = \"/web\"", "memcg = \"/web\"\ndepth = 2");
    let directory = with_scenario(&mapped);
    check_failure(
        &pageout(directory.path(), &["run", "scenario.toml"]),
        2,
        &["`depth`: object 0 of task `reader` is a mapping", "scenario.toml:10:", "use `threads`"],
    );
    let own = GOOD.replace("channel = \"file\"", "channel = \"mapped\"\nopened_by = \"thread\"");
    check_failure(
        &pageout(with_scenario(&own).path(), &["run", "scenario.toml"]),
        2,
        &["only an open file can belong to one thread", "scenario.toml:13:"],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"anonymous\"\nend_fsync = true", &[]),
        2,
        &["only a regular file has a device", "scenario.toml:13:"],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"anonymous\"\nfsync_every = 8", &[]),
        2,
        &["only a regular file has a device", "scenario.toml:13:"],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"anonymous\"\ntruncate_every = 8", &[]),
        2,
        &["not a file that could be truncated", "scenario.toml:13:", "\"tmpfs\""],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"anonymous\"\nper_copy = true", &[]),
        2,
        &["per copy in any case", "scenario.toml:13:", "leave it out"],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"anonymous\"\ncopies_per_file = 4", &[]),
        2,
        &["per copy in any case", "scenario.toml:13:", "leave it out"],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"file\"\nper_copy = true\ncopies_per_file = 4", &[]),
        2,
        &["already has its own file", "scenario.toml:14:", "leave out one of"],
    );
    check_failure(
        &run_with("channel = \"file\"", "channel = \"file\"\nopened_by = \"treads\"", &[]),
        2,
        &["did you mean `thread`?"],
    );
}

#[test]
fn a_task_waits_only_for_one_that_exists_and_ends() {
    let with = |keys: &str| run_with("memcg = \"/web\"", &format!("memcg = \"/web\"\n{keys}"), &[]);
    check_failure(
        &with("after = \"raeder\""),
        2,
        &["there is no task called `raeder`", "scenario.toml:10:", "did you mean `reader`?"],
    );
    check_failure(&with("after = \"reader\""), 2, &["tasks wait for each other: reader after reader"]);
    let task = |name: &str, keys: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\n{keys}\n[[task.object]]\nchannel = \"file\"\nsize = \"1MiB\"\nworkload = {{ pattern = \"sequential\" }}\n"
        )
    };
    let two = |first: &str, second: &str| {
        let directory = with_scenario(&(task("a", first) + &task("b", second)));
        pageout(directory.path(), &["run", "scenario.toml"])
    };
    check_failure(
        &two("after = \"b\"", "after = \"a\""),
        2,
        &["tasks wait for each other: a after b after a", "give one of them a `start` instead"],
    );
    check_failure(
        &two("background = true", "after = \"a\""),
        2,
        &["task `a` is in the background and may never end", "scenario.toml:"],
    );
    check_success(&two("", "after = \"a\"\nstart = \"1ms\""));
    let into = with_scenario(
        &(task("c", "after = \"a\"") + &task("a", "after = \"b\"") + &task("b", "after = \"a\"")),
    );
    let output = pageout(into.path(), &["run", "scenario.toml"]);
    check_failure(&output, 2, &["tasks wait for each other: a after b after a"]);
}

#[test]
fn a_session_that_makes_no_sense_is_refused_by_key() {
    let with = |keys: &str| run_with("memcg = \"/web\"", &format!("memcg = \"/web\"\n{keys}"), &[]);
    check_failure(
        &with("copies = 5\nsession.visits = 4"),
        2,
        &["`visits` must open all 5 programs, got 4", "scenario.toml:11:"],
    );
    check_failure(
        &with("session.dwell = \"1s\""),
        2,
        &["`session` without visits has no effect", "give it `visits`"],
    );
    check_failure(
        &with("session.visits = 2\nsession.recency = -1"),
        2,
        &["`session.recency`: -1 is too small", "0 to 100"],
    );
    check_failure(&with("session.visits = 2\nsession.dwel = \"1s\""), 2, &["did you mean `dwell`?"]);
    check_failure(
        &with("session = { visits = 2, first_ops = 1000 }\ndepth = 2\nloops = 2"),
        2,
        &[
            "`depth`: in a session each thread makes one access at a time",
            "`loops`: a session decides when each copy runs, once",
        ],
    );
    check_failure(
        &with("session = { visits = 2, first_ops = 3000, visit_ops = 3000 }"),
        2,
        &[
            "the workload ends after 5000 accesses, but a copy's visits need 6000",
            "give the workload more `ops`",
        ],
    );
    check_success(&with("session = { visits = 2, first_ops = 3000, visit_ops = 2000 }"));
}

#[test]
fn a_family_of_policies_without_its_era_means_that_of_the_default() {
    for (given, meant) in [("mglru", "`mglru@6.12`"), ("classic", "`classic@6.12`")] {
        let setting = format!("kernel.profile={given}");
        let output = run_with("[[memcg]]", "[[memcg]]", &["--set", &setting]);
        check_failure(&output, 2, &[&format!("did you mean {meant}?")]);
    }
}

#[test]
fn a_machine_has_less_memory_than_frames_have_numbers() {
    let nodes = "[[machine.node]]\nmemory = \"4TiB\"\n".repeat(4) + "[[memcg]]";
    let output = run_with("[[memcg]]", &nodes, &["--check"]);
    check_failure(
        &output,
        2,
        &["all nodes together have 16TiB, but a machine must have less than 16TiB", "scenario.toml:10:10"],
    );
    check_success(&run_with("[[memcg]]", &nodes.replacen("4TiB", "3TiB", 1), &["--check"]));
}

#[test]
fn a_check_says_so_as_json_too() {
    let output = check_success(&run_with("1MiB", "8GiB", &["--check", "--json"]));
    let told: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(told["scenario"], "scenario.toml");
    assert!(told["notes"][0]["text"].is_string(), "{output}");
}

#[test]
fn a_number_below_nothing_is_no_option_of_its_own() {
    for option in [["--seed", "-1"], ["--jobs", "-1"]] {
        let output =
            pageout(std::path::Path::new("."), &[&["compare", "scenario.toml"][..], &option].concat());
        check_failure(&output, 2, &["invalid value: found `-1`", option[0]]);
    }
}

#[test]
fn a_value_without_its_quotes_is_told_what_to_write() {
    for value in
        ["1G", "64MiB", "max", "50%", "1 GiB", "2.5GiB", "/dev/sda", "mglru@6.12", "1GiB # as on web1"]
    {
        let output = run_with("\"1MiB\"", value, &[]);
        let quoted = format!("write \"{}\"", value.split(" #").next().unwrap());
        check_failure(&output, 2, &["scenario.toml:5:", &quoted, "need quotes"]);
    }
    let output = run_with("\"zipf\"", "zipf", &[]);
    check_failure(&output, 2, &["write \"zipf\""]);
    // On the command line no quotes are needed.
    for setting in ["memcg./web.memory.max=1G", "memcg./web.memory.max=50%", "task.reader.think_time=10us"] {
        check_success(&run_with("5000", "100", &["--set", setting]));
    }
}
