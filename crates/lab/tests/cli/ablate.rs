//! Mechanisms turned one by one, and exchanged between the families.

use serde_json::Value;

use super::{GOOD, check_failure, check_success, pageout, with_scenario};

/// Anonymous, mapped and read pages in one group, small enough for hundreds of runs.
const MIXED: &str = r#"
[kernel]
fault_around_bytes = 4096

[[memcg]]
path = "/app"
memory.max = "1MiB"

[[swap]]
size = "4MiB"

[[task]]
name = "app"
memcg = "/app"

[[task.object]]
channel = "anonymous"
size = "768KiB"
workload = { pattern = "hot_set", ops = 2000, move_every = 700, write_ratio = 0.3 }

[[task.object]]
channel = "mapped"
size = "1MiB"
workload = { pattern = "zipf", ops = 3000 }

[[task.object]]
channel = "file"
size = "1MiB"
workload = { pattern = "zipf", ops = 3000 }
"#;

/// More anonymous memory than classic needs swap for, and than generations find a way to evict.
const NARROW: &str = r#"
[[memcg]]
path = "/app"
memory.max = "1MiB"

[[swap]]
size = "600KiB"
kind = "zram"

[[task]]
name = "app"
memcg = "/app"

[[task.object]]
channel = "anonymous"
size = "1400KiB"
workload = { pattern = "uniform", ops = 5000 }
"#;

/// Runs the command on the scenario and returns what was printed.
#[track_caller]
fn printed(scenario: &str, command: &str) -> String {
    let directory = with_scenario(scenario);
    let arguments: Vec<&str> = command.split_whitespace().collect();
    check_success(&pageout(directory.path(), &arguments))
}

#[track_caller]
fn json(scenario: &str, command: &str) -> Value {
    serde_json::from_str(&printed(scenario, &format!("{command} --json"))).unwrap()
}

/// Lines in this order, whatever is between them.
#[track_caller]
fn check_order(printed: &str, parts: &[&str]) {
    let mut rest = printed;
    for part in parts {
        let Some(at) = rest.find(part) else {
            panic!("expected {part:?} after the parts before it in:\n{printed}")
        };
        rest = &rest[at + part.len()..];
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn an_ablation_has_a_line_for_every_value_below_its_seam() {
    let text = printed(MIXED, "ablate scenario.toml --repeat 2 --set kernel.profile=mglru@6.12");
    check_order(
        &text,
        &[
            "seeds 1 to 2",
            "Results",
            "pages read",
            "mglru@6.12",
            "\nharvest",
            "\n  rmap=false",
            "\n  page_table_walk=false",
            "\nlru",
            "\n  lists (generations)",
            "\n    two_lists",
            "\n    lru",
            "\n  tiers=false",
            "\nworkingset",
            "\n  recency (oldest_generation)",
            "\n    count_only",
            "\nbalance",
            "\n  rule (feedback)",
            "Work of reclaim",
            "scanned per",
            "rmap",
            "PTEs",
            "\nharvest",
            "± half of the 95 %",
            "~ may be noise",
        ],
    );
}

#[test]
fn an_effect_within_noise_is_marked_and_one_seed_has_no_noise_to_go_by() {
    let result = json(MIXED, "ablate scenario.toml --repeat 3 --switch harvest.look_around");
    let effects = result["variants"][0]["effects"].as_object().unwrap();
    for (name, effect) in effects {
        let number = |key: &str| effect[key].as_f64().unwrap();
        let contains_nothing = number("difference").abs() <= number("half_width");
        let expected = contains_nothing && effect["same_in_every_run"] == false;
        assert_eq!(effect["within_noise"], expected, "{name}: {effect}");
    }
    let is_noise = |effect: &Value| effect["within_noise"] == true;
    assert!(effects.values().any(is_noise) && !effects.values().all(is_noise), "{effects:?}");
    let text = printed(MIXED, "ablate scenario.toml --repeat 3 --switch harvest.look_around");
    assert!(text.contains("look_around=true") && text.contains('~'), "{text}");
    let text = printed(MIXED, "ablate scenario.toml --repeat 1 --switch harvest.look_around");
    assert!(!text.contains('~') && !text.contains('±') && text.contains("One seed"), "{text}");
}

#[test]
fn a_switch_of_the_other_family_is_said_to_have_no_effect() {
    let text = printed(GOOD, "ablate scenario.toml --repeat 2 --switch lru.tiers --switch balance.smoothing");
    check_order(&text, &["Without any effect", "lru.tiers=false, balance.smoothing=false"]);
}

/// Fast memory that is too small, and slow memory behind it.
const TIERS: &str = r#"
[machine]
cpus = 2
hindsight = false

[[machine.node]]
memory = "8MiB"
cpus = 2

[[machine.node]]
memory = "24MiB"
preset = "cxl-1.1"

[kernel]
numa.demotion_enabled = true

[[task]]
name = "server"
stands_for = 1024

[[task.object]]
channel = "anonymous"
size = "12MiB"
workload = { pattern = "hot_set", ops = 15_000, hot_pages_fraction = 0.2 }

[[variant]]
name = "on"
set = { sysctl.kernel.numa_balancing = 2, sysctl.vm.pghot_record_hintfaults_enable = 1 }
"#;

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn mechanisms_of_tiers_are_turned_with_figures_of_tiers_from_the_variant_that_is_asked_for() {
    let text = printed(TIERS, "ablate scenario.toml --variant on --repeat 1");
    check_order(
        &text,
        &[
            "in fast",
            "promoted",
            "demoted",
            "\nharvest",
            "\nkernel",
            "numa_balancing (2)",
            "\nnuma",
            "demotion_enabled=false",
            "\nvm",
            "pghot_record_hintfaults_enable (1)",
            "\n    0",
            "tracker",
            "Not possible here",
            "pghot.quirks=v3: the third posting has records of 8 bytes",
        ],
    );
    let result = json(TIERS, "ablate scenario.toml --variant on --repeat 1 --switch pghot --switch numa");
    let row = |switch: &str| {
        let rows = result["variants"].as_array().unwrap();
        rows.iter().find(|row| row["switch"] == switch).unwrap_or_else(|| panic!("{switch}: {result}"))
    };
    assert!(row("numa.demotion_enabled")["effects"]["demoted"]["difference"].as_f64().unwrap() < 0.0);
    assert_eq!(result["switches"]["pghot.walk"], "blocks");
    assert_eq!(result["refused"][0]["switch"], "pghot.quirks");
    // As with --set on the command line of `run`.
    let alone = json(TIERS, "run scenario.toml --variant on --set kernel.pghot.refused=forget");
    assert_eq!(row("pghot.refused")["runs"][0]["vmstat"], alone["vmstat"]);
    let over = "ablate scenario.toml --variant on --repeat 1 --switch pghot.refused --over sysctl.vm.swappiness=1,60";
    let over = json(TIERS, over);
    assert_eq!(over["points"][1]["variants"][0]["runs"][0]["vmstat"], alone["vmstat"]);
    let text = printed(GOOD, "ablate scenario.toml --repeat 1");
    assert!(!text.contains("\npghot") && !text.contains("promoted"), "{text}");
}

#[test]
fn a_value_that_makes_no_sense_in_the_scenario_is_refused_if_nothing_else_is_asked_for() {
    let directory = with_scenario(TIERS);
    let refused = |switch: &str, parts: &[&str]| {
        let output =
            pageout(directory.path(), &["ablate", "scenario.toml", "--repeat", "1", "--switch", switch]);
        check_failure(&output, 2, parts);
    };
    refused("pghot.quirks=v3", &["pghot.quirks=v3 has no effect in this scenario", "records of 8 bytes"]);
    refused("sysctl.vm.pghot_record_pgtscans_enable", &["walks page tables"]);
    refused("pghot.walk=some", &["`pghot.walk`: invalid value `some`", "all, sections, blocks"]);
    refused("pghot=true", &["group of switches"]);
}

#[test]
fn an_unknown_switch_is_refused_with_the_nearest() {
    let directory = with_scenario(GOOD);
    for (switch, meant) in [
        ("harvest.bloom_fliter", "did you mean `harvest.bloom_filter`?"),
        ("bloom_filter", "did you mean `harvest.bloom_filter`?"),
        ("harvset", "unknown switch `harvset`"),
    ] {
        let output = pageout(directory.path(), &["ablate", "scenario.toml", "--switch", switch]);
        check_failure(&output, 2, &["unknown switch", meant]);
    }
}

#[test]
fn a_bad_value_of_a_switch_is_refused_with_what_it_takes() {
    let directory = with_scenario(GOOD);
    for (switch, parts) in [
        ("balance.rule=costs", ["invalid value `costs`", "did you mean `cost`?"]),
        ("lru.generations=1", ["invalid value `1`", "2 to 64"]),
        ("harvest.rmap=perhaps", ["invalid value `perhaps`", "true, false"]),
        ("harvest.rmap=true", ["nothing to compare", "`harvest.rmap` is already `true`"]),
    ] {
        let output = pageout(directory.path(), &["ablate", "scenario.toml", "--switch", switch]);
        check_failure(&output, 2, &parts);
    }
    for command in ["ablate", "crossover"] {
        let output = pageout(directory.path(), &[command, "scenario.toml", "--repeat", "0"]);
        check_failure(&output, 2, &["--repeat"]);
    }
}

#[test]
fn a_value_that_fails_is_shown_and_not_dropped() {
    let directory = with_scenario(NARROW);
    let arguments = ["ablate", "scenario.toml", "--repeat", "2", "--switch", "lru.lists=lru,generations"];
    let output = pageout(directory.path(), &arguments);
    let (stdout, stderr) = (super::text(&output.stdout), super::text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    check_order(
        &stdout,
        &["    lru", "generations", "failed 2 of 2", "\nFailed", "lru.lists=generations: seed 1"],
    );
    assert!(stderr.contains("2 of 6 runs failed") && stderr.contains("out of memory"), "{stderr}");
    let output = pageout(directory.path(), &[&arguments[..], &["--json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["complete"], &result["variants"][1]["complete"]), (&false.into(), &false.into()));
    assert_eq!(result["variants"][0]["complete"], true);
}

#[test]
fn a_scenario_that_fails_as_it_is_has_no_ablation() {
    let directory = with_scenario(NARROW);
    let settings = ["ablate", "scenario.toml", "--set", "kernel.profile=mglru@6.12", "--repeat", "1"];
    check_failure(
        &pageout(directory.path(), &settings),
        1,
        &["the unchanged scenario fails", "out of memory"],
    );
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn ablation_and_crossover_do_not_depend_on_how_many_run_at_the_same_time() {
    for command in ["ablate scenario.toml --switch harvest --switch balance", "crossover scenario.toml"] {
        let with_jobs = |jobs: &str| printed(MIXED, &format!("{command} --repeat 2 --json --jobs {jobs}"));
        assert!(with_jobs("1") == with_jobs("2"), "{command}");
    }
}

#[test]
fn a_crossover_marks_its_corners_and_they_are_the_profiles() {
    let text = printed(MIXED, "crossover scenario.toml --repeat 2");
    check_order(
        &text,
        &[
            "Pages read from devices",
            "oldest_generation",
            "two_lists",
            "rmap",
            "CLASSIC /",
            "walk+bloom+around",
            "generations",
            "/ MGLRU",
            "lists: two_lists to generations",
            "the four together",
            "interaction",
            "Accesses a second",
        ],
    );
    let result = json(MIXED, "crossover scenario.toml --repeat 1");
    let cells = result["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 32);
    for (corner, profile) in [("classic", "classic@6.12"), ("mglru", "mglru@6.12")] {
        let cell = cells.iter().find(|cell| cell["corner"] == corner).unwrap();
        let alone = json(MIXED, &format!("run scenario.toml --set kernel.profile={profile}"));
        for part in ["vmstat", "work", "tasks", "devices"] {
            assert_eq!(cell["runs"][0][part], alone[part], "{corner}: {part}");
        }
    }
}

/// A cell of the cross-over by its choices.
fn cell<'a>(result: &'a Value, choices: [&str; 4]) -> &'a Value {
    let names = ["lists", "harvest", "workingset", "balance"];
    let is_meant = |cell: &&Value| names.iter().zip(choices).all(|(name, choice)| cell[*name] == choice);
    result["cells"].as_array().unwrap().iter().find(is_meant).unwrap()
}

#[test]
fn page_tables_are_walked_on_two_lists_and_costs_noted_on_generations() {
    let result = json(MIXED, "crossover scenario.toml --repeat 1");
    let walked = |harvest: &str| {
        let cell = cell(&result, ["two_lists", harvest, "distance", "cost"]);
        cell["figures"]["ptes_walked"]["mean"].as_f64().unwrap()
    };
    assert_eq!(walked("rmap"), 0.0);
    assert!(walked("walk") > 0.0 && walked("walk+bloom") > 0.0 && walked("walk+bloom") <= walked("walk"));
    let by_cost = cell(&result, ["generations", "walk+bloom+around", "oldest_generation", "cost"]);
    let by_swappiness =
        json(MIXED, "run scenario.toml --set kernel.profile=mglru@6.12 --set kernel.balance.rule=swappiness");
    assert_ne!(by_cost["runs"][0]["vmstat"], by_swappiness["vmstat"]);
}

#[test]
fn groups_with_a_policy_of_their_own_are_said_to_be_left_alone() {
    let scenario = GOOD.replace("path = \"/web\"", "path = \"/web\"\npolicy = \"lru\"");
    for command in ["ablate scenario.toml --switch harvest.rmap", "crossover scenario.toml"] {
        let text = printed(&scenario, &format!("{command} --repeat 1"));
        assert!(text.contains("Not turned for /web"), "{text}");
    }
}

/// Two sizes of memory and two numbers of accesses: four points.
const OVER: &str = "--over memcg./app.memory.max=768KiB,1MiB --over task.app.object.2.workload.ops=1000,3000";

#[test]
fn an_ablation_over_a_grid_is_the_ablation_at_each_of_its_points() {
    let command = "ablate scenario.toml --repeat 2 --set kernel.profile=mglru@6.12 --switch balance.controller \
                   --switch lru.lists=two_lists,lru";
    let over = json(MIXED, &format!("{command} {OVER}"));
    let points = over["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    let (limits, ops) = (["768KiB", "1MiB"], ["1000", "3000"]);
    for (at, point) in points.iter().enumerate() {
        let [limit, ops] = [limits[at / 2], ops[at % 2]];
        let settings = &point["settings"];
        assert_eq!(
            (&settings["memcg./app.memory.max"], &settings["task.app.object.2.workload.ops"]),
            (&limit.into(), &ops.into())
        );
        let set = format!("--set memcg./app.memory.max={limit} --set task.app.object.2.workload.ops={ops}");
        let alone = json(MIXED, &format!("{command} {set}"));
        assert_eq!(
            (&point["base"], &point["variants"]),
            (&alone["base"], &alone["variants"]),
            "{limit} {ops}"
        );
    }
    for (row, signs) in over["signs"].as_array().unwrap().iter().enumerate() {
        for (name, figure) in signs["figures"].as_object().unwrap() {
            let letters = figure["signs"].as_str().unwrap();
            let expected: String =
                points.iter().map(|point| letter(&point["variants"][row]["effects"][name])).collect();
            assert_eq!(letters, expected, "{} {name}", signs["switch"]);
            assert_eq!(figure["turns"], letters.contains('-') && letters.contains('+'));
        }
    }
}

/// The sign of an effect, going by its numbers.
fn letter(effect: &Value) -> char {
    match (effect["same_in_every_run"] == true, effect["within_noise"] == true) {
        (true, _) => '=',
        (_, true) => '~',
        _ if effect["difference"].as_f64().unwrap() < 0.0 => '-',
        _ => '+',
    }
}

#[test]
fn a_grid_of_ablations_prints_its_points_signs_sizes_and_what_turns() {
    let text = printed(
        MIXED,
        &format!("ablate scenario.toml --repeat 2 --set kernel.profile=mglru@6.12 --switch harvest {OVER}"),
    );
    check_order(
        &text,
        &[
            "at 4 points; seeds 1 to 2",
            "\n   1  memcg./app.memory.max=768KiB  task.app.object.2.workload.ops=1000",
            "\n   4  memcg./app.memory.max=1MiB  task.app.object.2.workload.ops=3000",
            "Results: signs",
            "\nharvest",
            "\n  rmap=false",
            "Work of reclaim: signs",
            "Pages read from devices",
            "768KiB",
            "mglru@6.12",
            "More at one point and less at another",
            "signs: one letter per point",
            "~ may be noise",
        ],
    );
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn a_crossover_over_a_grid_is_the_crossover_at_each_of_its_points() {
    let over = json(MIXED, "crossover scenario.toml --repeat 2 --over memcg./app.memory.max=768KiB,1MiB");
    let points = over["points"].as_array().unwrap();
    let alone = json(MIXED, "crossover scenario.toml --repeat 2");
    assert_eq!((&points[1]["cells"], &points[1]["steps"]), (&alone["cells"], &alone["steps"]));
    assert_ne!(points[0]["cells"], points[1]["cells"]);
    let signs = &over["signs"]["pages_read"];
    for (at, cell) in signs["cells"].as_array().unwrap().iter().enumerate() {
        for corner in ["against_classic", "against_mglru"] {
            let expected: String =
                points.iter().map(|point| letter(&point["cells"][at][corner]["pages_read"])).collect();
            assert_eq!(cell[corner]["signs"], expected);
        }
    }
    let text = printed(MIXED, "crossover scenario.toml --repeat 2 --over memcg./app.memory.max=768KiB,1MiB");
    check_order(
        &text,
        &[
            "at 2 points, seeds 1 to 2",
            "\n   2  memcg./app.memory.max=1MiB",
            "Pages read from devices",
            "\nclassic",
            "\nMGLRU",
            "CLASSIC / ",
            " / MGLRU",
            "one step, in parts of classic's figure",
            "lists: two_lists to generations",
            "from classic",
            "to MGLRU",
            "signs: one letter per point",
        ],
    );
}

#[test]
fn a_grid_does_not_depend_on_how_many_run_at_the_same_time() {
    let command =
        "ablate scenario.toml --switch balance --repeat 2 --over memcg./app.memory.max=768KiB,1MiB --json";
    let with_jobs = |jobs: &str| printed(MIXED, &format!("{command} --jobs {jobs}"));
    assert!(with_jobs("1") == with_jobs("3"));
}

#[test]
fn a_grid_that_makes_no_sense_is_refused() {
    let directory = with_scenario(MIXED);
    for (command, parts) in [
        ("ablate scenario.toml --over memcg./app.memory.max=1MiB", &["fewer than two values", "--set"][..]),
        ("ablate scenario.toml --over memcg./ap.memory.max=1MiB,2MiB", &["did you mean `memcg./app`?"]),
        (
            "ablate scenario.toml --over kernel.profile=classic@6.12,mglru@6.12",
            &["--over changes the set of switches"],
        ),
        ("ablate scenario.toml --over kernel.lru.tiers=true,false", &["--over changes the set of switches"]),
        (
            "ablate scenario.toml --over seed=1,2",
            &["--over seed and --repeat: found both, expected one source of seeds"],
        ),
        (
            "ablate scenario.toml --over memcg./app.memory.max=1MiB,2MiB --set memcg./app.memory.max=3MiB",
            &["both set and varied", "--over memcg./app.memory.max overrides it"],
        ),
        (
            "crossover scenario.toml --over memcg./app.memory.max=1MiB,2MiB --over memcg.0.memory.max=1MiB,3MiB",
            &["varied twice", "give all values to one --over"],
        ),
        (
            "crossover scenario.toml --over kernel.lru.lists=two_lists,generations",
            &["--over kernel.lru.lists", "the combinations already set this switch"],
        ),
        ("crossover scenario.toml --over seed=1,2", &["--over seed and --repeat: found both"]),
    ] {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        check_failure(&pageout(directory.path(), &arguments), 2, parts);
    }
}

#[test]
fn a_point_where_the_scenario_fails_is_missing_and_the_others_are_shown() {
    let directory = with_scenario(NARROW);
    let arguments = "ablate scenario.toml --repeat 2 --set kernel.profile=mglru@6.12 --switch lru.tiers \
                     --switch lru.lists=lru --over memcg./app.memory.max=1MiB,2MiB";
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = pageout(directory.path(), &arguments);
    let (stdout, stderr) = (super::text(&output.stdout), super::text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    check_order(
        &stdout,
        &["Results: signs", "    lru", "x", "\nFailed", "the unchanged scenario at 1MiB: seed 1"],
    );
    assert!(stderr.contains("out of memory"), "{stderr}");
    let output = pageout(directory.path(), &[&arguments[..], &["--json"]].concat());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["complete"], false);
    assert_eq!(
        (&result["points"][0]["complete"], &result["points"][1]["complete"]),
        (&false.into(), &true.into())
    );
    let everywhere =
        ["ablate", "scenario.toml", "--set", "kernel.profile=mglru@6.12", "--repeat", "1", "--over"];
    let everywhere = [&everywhere[..], &["memcg./app.memory.max=1MiB,900KiB"]].concat();
    check_failure(
        &pageout(directory.path(), &everywhere),
        1,
        &["the unchanged scenario fails", "out of memory"],
    );
}
