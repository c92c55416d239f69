//! `pageout explain`.

use super::{GOOD, check_failure, check_success, pageout, with_scenario};

/// A file four times as large as its group may keep, and a heap.
const SMALL: &str = r#"
[kernel]
profile = "PROFILE"

[[memcg]]
path = "/web"
memory.max = "256 pages"

[[swap]]
size = "16MiB"
kind = "disk"

[[file]]
name = "data"
size = "1024 pages"

[[task]]
name = "reader"
memcg = "/web"

[[task.object]]
channel = "file"
file = "data"
workload = { pattern = "zipf", alpha = 0.9, ops = 20_000 }

[[task.object]]
channel = "anonymous"
size = "128 pages"
workload = { pattern = "zipf", alpha = 0.6, ops = 4_000, write_ratio = 0.3 }
"#;

#[track_caller]
fn explain(profile: &str, arguments: &[&str]) -> String {
    explain_scenario(&SMALL.replace("PROFILE", profile), arguments)
}

#[track_caller]
fn explain_scenario(scenario: &str, arguments: &[&str]) -> String {
    let directory = with_scenario(scenario);
    let arguments: Vec<&str> = ["explain", "scenario.toml"].iter().chain(arguments).copied().collect();
    check_success(&pageout(directory.path(), &arguments))
}

#[track_caller]
fn explain_json(profile: &str, arguments: &[&str]) -> serde_json::Value {
    let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    serde_json::from_str(&explain(profile, &arguments)).unwrap()
}

/// The printed text, its lines joined: wrapping breaks phrases anywhere.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Names of the events of all kept steps.
fn events(story: &serde_json::Value) -> Vec<String> {
    ["first", "last"]
        .iter()
        .flat_map(|part| {
            story["pages"].as_array().unwrap().iter().flat_map(|page| page[*part].as_array().unwrap())
        })
        .map(|step| step["event"].as_str().unwrap().to_string())
        .collect()
}

#[test]
fn a_page_read_twice_under_classic_tells_of_its_activation_and_of_the_active_lists_aging() {
    // A page that is read ahead comes back before it is missed.
    let scenario = SMALL
        .replace("PROFILE", "classic@6.12")
        .replace("file = \"data\"", "file = \"data\"\nadvice = \"random\"");
    let last = ["--evictions", "2000", "--steps", "100", "--json"];
    let last: serde_json::Value = serde_json::from_str(&explain_scenario(&scenario, &last)).unwrap();
    let activated = last["pages"].as_array().unwrap().iter().find(|page| {
        let events: Vec<&str> =
            page["first"].as_array().unwrap().iter().map(|step| step["event"].as_str().unwrap()).collect();
        events.contains(&"second_access") && events.contains(&"deactivated") && events.contains(&"refaulted")
    });
    let name = activated.expect("some page refaulted, was active, and was evicted")["page"].as_str().unwrap();
    let text = unwrapped(&explain_scenario(&scenario, &["--page", name, "--steps", "1000"]));
    for part in [
        "missing; read from its file for reader",
        "refault: distance",
        "activated: second access",
        "waits to be activated",
        "added at the head of the active file list",
        "taken off the tail of the active list to be aged",
        "active file ages because",
        "put back at the head of the inactive file list",
        "evicted from the inactive file list",
        "by swappiness and costs of",
        "So: it is",
    ] {
        assert!(text.contains(part), "expected {part:?} in:\n{text}");
    }
}

#[test]
fn a_page_under_mglru_tells_of_its_generation_tier_and_the_type_that_was_chosen() {
    let text = unwrapped(&explain("mglru@6.12", &["--evictions", "40", "--memcg", "/web"]));
    for part in [
        "The last 40 of",
        "added to generation",
        "(the oldest of",
        "to be judged",
        "evicted from generation",
        "of file: ",
    ] {
        assert!(text.contains(part), "expected {part:?} in:\n{text}");
    }
    let every: Vec<String> = (0..1024).step_by(64).map(|page| format!("data:{page}")).collect();
    let told: Vec<String> = every.iter().map(|page| explain("mglru@6.12", &["--page", page])).collect();
    assert!(told.iter().any(|text| text.contains("refault: evicted with generation")));
}

#[test]
fn a_protected_page_says_which_tiers_were_compared_and_where_it_went() {
    // As swappiness is low, files are taken by choice, and their tiers are compared with anonymous memory.
    let told = (0..1024).find_map(|page| {
        let page = format!("data:{page}");
        let arguments = ["--page", &page, "--steps", "1000", "--set", "sysctl.vm.swappiness=5"];
        let text = unwrapped(&explain("mglru@6.12", &arguments));
        text.contains("protected: file's tier").then_some(text)
    });
    let text = told.expect("some page was protected");
    for part in [
        ", anon's tier 0 0 of 0, gains 5:195",
        ": to generation ",
        "its count cleared",
        "gains 195:5: file costs no more (",
    ] {
        assert!(text.contains(part), "expected {part:?} in:\n{text}");
    }
}

#[test]
fn an_anonymous_page_tells_of_swap() {
    let text = unwrapped(&explain("classic@6.12", &["--page", "reader/1:5", "--steps", "1000"]));
    for part in
        ["first touched, by reader: a new page of zeroes", "inactive anon", "its first use: another round"]
    {
        assert!(text.contains(part), "expected {part:?} in:\n{text}");
    }
    let swapped = (0..128).map(|page| format!("reader/1:{page}")).find_map(|page| {
        let text = unwrapped(&explain("classic@6.12", &["--page", &page, "--steps", "1000"]));
        text.contains("its write to swap has ended").then_some(text)
    });
    let text = swapped.expect("some page was swapped out");
    assert!(text.contains("its write has begun"), "{text}");
    assert!(text.contains("(it is on swap)") || text.contains("read back from swap"), "{text}");
}

#[test]
fn a_long_story_keeps_its_first_and_last_steps_and_counts_the_others() {
    let short = explain_json("classic@6.12", &["--page", "data:1", "--steps", "3"]);
    let page = &short["pages"][0];
    assert_eq!(page["first"].as_array().unwrap().len(), 3);
    assert_eq!(page["last"].as_array().unwrap().len(), 3);
    let whole = explain_json("classic@6.12", &["--page", "data:1", "--steps", "10000"]);
    let (first, all) = (&whole["pages"][0]["first"], whole["pages"][0]["first"].as_array().unwrap().len());
    assert_eq!(page["left_out"].as_u64().unwrap() as usize, all - 6);
    assert_eq!(page["first"][2], first[2]);
    assert_eq!(page["last"][2]["event"], first[all - 1]["event"]);
    assert!(explain("classic@6.12", &["--page", "data:1", "--steps", "3"]).contains("steps left out"));
}

#[test]
fn the_last_evictions_each_end_where_their_page_was_evicted() {
    for profile in ["classic@6.12", "mglru@v4-2021", "mglru@6.12", "mglru@6.16", "mglru@2026", "lru"] {
        let json = explain_json(profile, &["--evictions", "50"]);
        let pages = json["pages"].as_array().unwrap();
        assert_eq!(pages.len(), 50);
        assert!(json["evictions"].as_u64().unwrap() > 1000, "{profile}");
        for page in pages {
            let last = page["last"].as_array().unwrap().last().or(page["first"].as_array().unwrap().last());
            let last = last.expect("an eviction has a story");
            assert_eq!(last["event"], "evicted", "{profile}: {page}");
            assert_eq!(last["at_ns"], page["evicted_at_ns"], "{profile}");
            assert_eq!(page["first"][0]["event"], "filled", "{profile}: {page}");
        }
        assert!(events(&json).contains(&"isolated".to_string()));
    }
}

#[test]
fn a_story_is_the_same_each_time() {
    let arguments = ["--page", "data:3", "--json"];
    assert_eq!(explain("mglru@6.12", &arguments), explain("mglru@6.12", &arguments));
}

#[test]
fn a_page_that_nobody_needed_says_so() {
    let directory = with_scenario(
        &GOOD.replace("pattern = \"zipf\", ops = 5000", "pattern = \"sequential\", pages = 10"),
    );
    let arguments = ["explain", "scenario.toml", "--page", "reader/0:1000"];
    let text = check_success(&pageout(directory.path(), &arguments));
    assert!(text.contains("no task has needed it"), "{text}");
    let arguments = ["explain", "scenario.toml", "--evictions", "3"];
    check_failure(&pageout(directory.path(), &arguments), 2, &["no page was evicted during the run"]);
}

#[test]
fn names_that_there_are_not_are_answered_with_those_that_there_are() {
    let directory = with_scenario(&SMALL.replace("PROFILE", "classic@6.12"));
    for (question, parts) in [
        (["--page", "dta:5"], ["unknown file or object `dta`", "did you mean `data`?"]),
        (["--page", "raeder/1:5"], ["`raeder/1`", "did you mean `reader/1`?"]),
        (["--page", "reader/7:5"], ["unknown object `reader/7`", "`reader/0`, `reader/1`"]),
        (["--page", "reader:5"], ["unknown object `reader`", "`reader/0`, `reader/1`"]),
        (["--page", "data:1024"], ["`data` has 1,024 pages", "data:1023"]),
        (["--page", "data:x"], ["found page `x`", "expected a number from 0"]),
        (["--page", "data"], ["expected FILE:PAGE or TASK/OBJECT:PAGE", "data:17"]),
        (["--evictions", "0"], ["found `0`, expected 1 to 100000", "--evictions"]),
    ] {
        let arguments = ["explain", "scenario.toml", question[0], question[1]];
        check_failure(&pageout(directory.path(), &arguments), 2, &parts);
    }
    let arguments = ["explain", "scenario.toml", "--evictions", "2", "--memcg", "/wbe"];
    check_failure(&pageout(directory.path(), &arguments), 2, &["no such cgroup", "did you mean `/web`?"]);
    check_failure(&pageout(directory.path(), &["explain", "scenario.toml"]), 2, &["--page", "--evictions"]);
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_page_that_came_back_after_an_eviction_is_said_to_have_even_if_it_left_again() {
    let looping = GOOD.replace("pattern = \"zipf\", ops = 5000", "pattern = \"looping\", ops = 5000");
    let directory = with_scenario(&looping);
    let run = |more: &[&str]| {
        let arguments = [&["explain", "scenario.toml", "--evictions", "4000"], more].concat();
        check_success(&pageout(directory.path(), &arguments))
    };
    let result: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let evictions: Vec<&serde_json::Value> =
        result["pages"].as_array().unwrap().iter().filter(|page| page["page"] == "reader/0:10").collect();
    let times = |key: &str| evictions.iter().map(|page| page[key].as_u64()).collect::<Vec<Option<u64>>>();
    let (gone, back) = (times("evicted_at_ns"), times("back_at_ns"));
    assert!(gone.len() >= 3, "{gone:?}");
    for at in 0..gone.len() - 1 {
        assert!(gone[at] < back[at] && back[at] < gone[at + 1], "{gone:?} {back:?}");
    }
    assert_eq!(back.last().unwrap().is_some(), !evictions[0]["now"].is_null());
    let text = run(&[]);
    let told = text.split("reader/0:10 of ").nth(1).unwrap();
    let told = told.split_whitespace().collect::<Vec<&str>>().join(" ");
    let came_back = format!("It came back at {:.6}.", (back[0].unwrap() / 1000) as f64 / 1e6);
    assert!(told.split("So, at").nth(1).unwrap().contains(&came_back), "{came_back}: {told:.900}");
}

#[test]
fn a_run_that_fails_tells_up_to_there_on_standard_error() {
    let directory = with_scenario(&GOOD.replace("\"file\"", "\"anonymous\""));
    let arguments = ["explain", "scenario.toml", "--page", "reader/0:1"];
    check_failure(
        &pageout(directory.path(), &arguments),
        1,
        &["The run failed. Before the failure:", "reader/0:1"],
    );
}

/// A heap of huge pages, used once. Another task goes on for longer.
const HUGE: &str = r#"
[kernel]
profile = "mglru@6.12"
transparent_hugepage = "always"

[[swap]]
size = "16MiB"
kind = "disk"

[[memcg]]
path = "/web"

[[task]]
name = "heap"
memcg = "/web"

[[task.object]]
channel = "anonymous"
size = "4MiB"
workload = { pattern = "sequential", pages = 1024, write_ratio = 1.0 }

[[task]]
name = "later"
start = "5s"

[[task.object]]
channel = "anonymous"
size = "4KiB"
workload = { pattern = "sequential", pages = 1 }
"#;

/// All that is known of a page in the middle of a huge one is known of its head.
#[test]
fn a_page_of_a_huge_one_tells_of_its_head() {
    let text = unwrapped(&explain_scenario(HUGE, &["--page", "heap/0:519"]));
    for part in [
        "first touched, it or another of its 2 MiB, by heap: page 7 of a new huge page of zeroes",
        "as part of the huge page that begins with heap/0:512 and goes where that goes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = |page: &str| -> serde_json::Value {
        serde_json::from_str(&explain_scenario(HUGE, &["--page", page, "--json"])).unwrap()
    };
    let (story, head) = (json("heap/0:519"), json("heap/0:512"));
    let page = &story["pages"][0];
    assert_eq!((&page["huge_page_of"], &page["now"]["huge"]), (&"heap/0:512".into(), &7.into()));
    assert_eq!(events(&head), events(&story));
    assert!(events(&story).contains(&"placed".to_owned()), "{:?}", events(&story));
}

#[test]
fn a_page_of_a_huge_one_that_is_swapped_out_says_when_it_became_one_of_its_own() {
    let reclaim = |second: u64| {
        format!(
            "\n[[event]]\nat = \"{second}s\"\nwrite = \"/sys/fs/cgroup/web/memory.reclaim\"\nvalue = \"4MiB\"\n"
        )
    };
    // Less swap than a huge page needs: it goes there as single pages.
    let reclaims = HUGE.replace("16MiB", "1MiB") + &(1..5).map(reclaim).collect::<String>();
    let text = unwrapped(&explain_scenario(&reclaims, &["--page", "heap/0:7", "--steps", "100"]));
    assert!(text.contains("its huge page was made single pages"), "{text}");
}

/// Words are what a script tells one thing from another by: those of a word's key, wherever it stands.
fn words(value: &serde_json::Value, found: &mut std::collections::BTreeSet<(String, String)>) {
    const KEYS: &[&str] = &[
        "arrival", "balance", "batch", "because", "by", "event", "list", "name", "reason", "rule", "verdict",
        "with",
    ];
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(word) if KEYS.contains(&key.as_str()) => {
                        found.insert((key.clone(), word.to_owned()));
                    }
                    _ => words(value, found),
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| words(value, found)),
        _ => {}
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn the_words_of_the_json_form_are_these() {
    let mut found = std::collections::BTreeSet::new();
    for profile in ["classic@6.12", "mglru@v4-2021", "mglru@6.12", "mglru@6.16", "mglru@2026", "lru", "sieve"]
    {
        for question in [["--evictions", "200"], ["--page", "reader/0:1"], ["--page", "reader/1:5"]] {
            words(&explain_json(profile, &[question[0], question[1], "--steps", "500"]), &mut found);
        }
    }
    let mut by_key = std::collections::BTreeMap::<String, Vec<String>>::new();
    for (key, word) in found {
        by_key.entry(key).or_default().push(word);
    }
    let lines: Vec<String> =
        by_key.iter().map(|(key, words)| format!("{key}: {}", words.join(" "))).collect();
    assert_eq!(
        lines,
        [
            "arrival: added put_back rotated",
            "balance: equal fraction",
            "batch: activate add move_tail",
            "because: held used visited write_begun",
            "by: look_around walk",
            "event: deactivated drained evicted filled found_young isolated judged made_youngest mapped nominated \
             pass_begun placed protected queued read refaulted second_access sorted type_chosen use_told written",
            "list: active generation inactive no_list single_list",
            "name: any_generation count_only distance oldest_generation",
            "reason: other_had_nothing refaults",
            "rule: accessed by_state in_use needs_write oldest rotated was_in_use window_full",
            "verdict: activate keep",
            "with: anon file readahead swap",
        ]
    );
}

/// A process whose memory is on slow memory at first, and fast memory with room for all of it.
const TIERS: &str = r#"
[machine]
cpus = 2

[[machine.node]]
memory = "128MiB"

[[machine.node]]
memory = "128MiB"
preset = "cxl-1.1"

[kernel]
profile = "mglru@6.12"

[[task]]
name = "reader"

[[task.object]]
channel = "anonymous"
size = "16MiB"
populate_node = 1
workload = { pattern = "uniform", ops = 15_000_000 }
"#;

fn with_sysctl(settings: &str) -> String {
    TIERS.replace("[[task]]", &format!("[sysctl]\n{settings}\n\n[[task]]"))
}

#[track_caller]
fn tells(scenario: &str, page: &str, parts: &[&str]) {
    let text = unwrapped(&explain_scenario(scenario, &["--page", page, "--steps", "1000"]));
    let mut rest = &text[..];
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("expected {part:?} next in:\n{text}") };
        rest = after;
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_promoted_page_tells_who_found_it_hot_and_between_which_nodes_it_moved() {
    let balancing = with_sysctl("kernel.numa_balancing = 2");
    let way = [
        "marked by a scan",
        "hint fault: accessed on node 0",
        "hot: ",
        "taken off its list to move",
        "migrated from node 1 to node 0: promoted by a hint fault",
        "So: it is in generation",
        "of node 0, since",
    ];
    tells(&balancing, "reader/0:100", &way);
    let story = explain_scenario(&balancing, &["--page", "reader/0:100", "--json"]);
    let story: serde_json::Value = serde_json::from_str(&story).unwrap();
    let steps = story["pages"][0]["first"].as_array().unwrap();
    let migrated = steps.iter().find(|step| step["event"] == "migrated").unwrap();
    assert_eq!((&migrated["from"], &migrated["to"]), (&1.into(), &0.into()));
    assert_eq!((&migrated["why"], &migrated["node"]), (&"hint_fault".into(), &0.into()));
    let judged = steps.iter().find(|step| step["event"] == "heat_judged").unwrap();
    assert_eq!(judged["is_hot"], true);

    let recorded = with_sysctl("kernel.numa_balancing = 2\nvm.pghot_record_hintfaults_enable = 1");
    let way = [
        "hint fault: accessed on node 0",
        "reported to hot-page tracking by a hint fault",
        "hot: kmigrated is to promote it",
        "migrated from node 1 to node 0: promoted by kmigrated",
    ];
    tells(&recorded, "reader/0:100", &way);
    let scanned = with_sysctl("vm.pghot_record_pgtscans_enable = 1");
    tells(
        &scanned,
        "reader/0:100",
        &["by klruscand, which found its accessed bit set: an access; not hot yet"],
    );
}

/// Fast memory that has no room to spare asks whether a page is hot, and its limit refuses what is.
#[test]
fn a_page_that_is_not_promoted_tells_its_age_and_what_refused_it() {
    let small = with_sysctl("kernel.numa_balancing = 2\nkernel.numa_balancing_promote_rate_limit_MBps = 0");
    let parts = [
        "hot: ",
        "ms since it was marked or last reported, less than the threshold of",
        "not migrated to node 0: enough were promoted this second",
    ];
    tells(&small, "reader/0:100", &parts);
}

#[test]
fn page_cache_that_its_reader_promotes_tells_that_it_was_set_aside() {
    let (machine, _) = TIERS.split_once("[[task]]").unwrap();
    let reads = machine.replace("mglru@6.12\"", "classic@6.12\"\nnuma.pagecache_promotion_enabled = true");
    let reads = reads
        + r#"
[sysctl]
kernel.numa_balancing = 2

[[file]]
name = "data"
size = "4MiB"

[[task]]
name = "filler"
membind = "1"

[[task.object]]
channel = "file"
file = "data"
workload = { pattern = "sequential" }

[[task]]
name = "reader"
after = "filler"

[[task.object]]
channel = "file"
file = "data"
workload = { pattern = "uniform", ops = 20_000 }
"#;
    tells(
        &reads,
        "data:100",
        &[
            "isolated by its reader, for promotion to node 0",
            "migrated from node 1 to node 0: promoted by its reader",
        ],
    );
}

#[test]
fn a_demoted_page_tells_where_it_went() {
    let demotion = TIERS
        .replacen("128MiB", "32MiB", 1)
        .replace("mglru@6.12\"", "classic@6.12\"\nnuma.demotion_enabled = true")
        .replace("populate_node = 1\n", "")
        .replace("size = \"16MiB\"", "size = \"64MiB\"")
        .replace("pattern = \"uniform\", ops = 15_000_000", "pattern = \"sequential\"");
    let way = [
        "first touched, by reader",
        "chosen for demotion: there is slower memory for unused pages",
        "migrated from node 0 to node 1: demoted by reclaim",
        "added at the head of the inactive anon list",
        "So: it is in the inactive anon list of node 1",
    ];
    tells(&demotion, "reader/0:100", &way);
}
