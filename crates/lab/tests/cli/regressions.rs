//! The bank of known bugs, and the mechanism that it is kept with: variants of a scenario, and what is expected of them.

use super::{GOOD, check_failure, check_success, pageout, scenarios, text, with_scenario};

/// What is expected holds: `ci/gate/scenarios.sh` compares the variants of each, and fails where it doesn't.
#[test]
fn each_known_bug_has_two_sides_and_says_what_is_expected_of_them_and_why() {
    let directory = scenarios().join("regressions");
    let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let name = path.display();
        let scenario: toml_edit::DocumentMut = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let tables = |key: &str| scenario.get(key).and_then(|item| item.as_array_of_tables());
        assert!(tables("variant").is_some_and(|variants| variants.len() > 1), "{name} has no two sides");
        let fails = tables("variant").into_iter().flatten().any(|variant| variant.contains_key("fails"));
        let expectations = tables("expect");
        assert!(fails || expectations.is_some(), "{name} expects nothing");
        for expectation in expectations.into_iter().flatten() {
            let because = expectation.get("because").and_then(|because| because.as_str());
            assert!(
                because.is_some_and(|because| !because.is_empty()),
                "{name} doesn't say why: {expectation}"
            );
        }
    }
}

/// `ci/gate/scenarios.sh` compares the others, too: docs/results/data/predictions.md.
#[test]
fn what_was_predicted_of_a_kernel_before_it_ran_is_still_predicted() {
    let predictions = scenarios().join("predictions");
    for name in ["01-memory-reclaim.toml", "02-loop-limit.toml", "06-memory-high.toml", "09-noreuse.toml"] {
        let compared = check_success(&pageout(&predictions, &["compare", name]));
        assert!(compared.contains("holds  ") && !compared.contains("FAILS"), "{compared}");
    }
}

/// Two sizes of memory.
const TWO: &str = r#"
[[variant]]
name = "small"

[[variant]]
name = "large"
set = { "memcg./web.memory.max" = "2MiB" }

[[expect]]
figure = "task reader: misses"
holds = "small > 1.1 * large"
because = "more memory holds more of the file"
"#;

fn compare_with(from: &str, to: &str) -> std::process::Output {
    let all = format!("{GOOD}{TWO}");
    assert!(all.contains(from), "{from:?} is not in the scenario");
    let directory = with_scenario(&all.replacen(from, to, 1));
    pageout(directory.path(), &["compare", "scenario.toml", "--repeat", "2"])
}

#[test]
fn without_vary_the_scenarios_own_variants_are_compared_and_its_expectations_checked() {
    let printed = check_success(&compare_with("small > 1.1", "small > 1.1"));
    for part in ["small", "large", "its variants", "holds  task reader: misses", "> 1.1 * "] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    assert!(!printed.contains("because"), "what holds needs no reason:\n{printed}");
}

#[test]
fn an_expectation_that_does_not_hold_is_shown_with_its_reason_and_an_exit_code_of_its_own() {
    let output = compare_with("small > 1.1", "small > 100");
    assert_eq!(output.status.code(), Some(4));
    let printed = text(&output.stdout);
    for part in ["FAILS for 2 of 2 seeds", "> 100 * ", "because more memory holds more of the file"] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let stderr = text(&output.stderr);
    assert!(stderr.contains("1 of 1 expectations of the scenario failed"), "{stderr}");
}

#[test]
fn a_variant_that_fails_as_the_scenario_says_is_as_expected_and_any_other_end_is_not() {
    let known = |fails: &str, size: &str| {
        let small = format!(
            "name = \"small\"\nfails = \"{fails}\"\nset = {{ \"memcg./web.memory.max\" = \"{size}\" }}"
        );
        let anonymous = GOOD.replace("\"file\"", "\"anonymous\"");
        let (variants, _) = TWO.split_once("[[expect]]").unwrap();
        let roomy = variants.replace("\"2MiB\"", "\"max\"");
        let directory =
            with_scenario(&format!("{anonymous}{}", roomy.replacen("name = \"small\"", &small, 1)));
        pageout(directory.path(), &["compare", "scenario.toml", "--repeat", "2"])
    };
    let printed = check_success(&known("out of memory in /web", "1MiB"));
    for part in ["small (fails)", "small fails", "holds", "\"out of memory in /web\""] {
        assert!(printed.contains(part), "expected {part:?} in:\n{printed}");
    }
    let otherwise = known("out of luck", "1MiB");
    assert_eq!(otherwise.status.code(), Some(1));
    let stderr = text(&otherwise.stderr);
    for part in ["2 of 4 runs failed", "small: seed 2", "out of memory"] {
        assert!(stderr.contains(part), "expected {part:?} in:\n{stderr}");
    }
    let survived = known("out of memory", "max");
    assert_eq!(survived.status.code(), Some(4), "{}", text(&survived.stderr));
    assert!(text(&survived.stdout).contains("FAILS for 2 of 2 seeds"), "{}", text(&survived.stdout));
}

#[test]
fn a_mistake_in_an_expectation_is_shown_where_it_is() {
    let figure = compare_with("task reader: misses", "task reader: mises");
    check_failure(
        &figure,
        2,
        &["unknown figure", "scenario.toml:24:", "did you mean `task reader: misses`?"],
    );
    let variant = compare_with("* large", "* larg");
    check_failure(&variant, 2, &["no variant called `larg`", "scenario.toml:25:", "did you mean `large`?"]);
    let relation = compare_with("small > 1.1 *", "small > 1.1");
    check_failure(&relation, 2, &["is not a relation", "scenario.toml:25:", "\"old > 2 * new\""]);
    let setting = compare_with("memcg./web", "memcg./wbe");
    check_failure(
        &setting,
        2,
        &["without an element `/wbe`", "scenario.toml:21:9", "did you mean `memcg./web`?"],
    );
    let name = compare_with("name = \"small\"", "name = \"6.12\"");
    check_failure(
        &name,
        2,
        &["`6.12` can't be distinguished from the rest of a relation", "scenario.toml:17:"],
    );
}

#[test]
fn one_variant_can_be_run_alone() {
    let directory = with_scenario(&format!("{GOOD}{TWO}"));
    let misses = |more: &[&str]| {
        let arguments: Vec<&str> = ["run", "scenario.toml", "--json"].iter().chain(more).copied().collect();
        let result: serde_json::Value =
            serde_json::from_str(&check_success(&pageout(directory.path(), &arguments))).unwrap();
        result["tasks"][0]["read_misses"].as_u64().unwrap()
    };
    assert_eq!(misses(&[]), misses(&["--variant", "small"]));
    assert_eq!(misses(&["--set", "memcg./web.memory.max=2MiB"]), misses(&["--variant", "large"]));
    assert!(misses(&[]) > misses(&["--variant", "large"]));
    let output = pageout(directory.path(), &["run", "scenario.toml", "--variant", "larg"]);
    check_failure(&output, 2, &["no [[variant]] `larg`", "did you mean `large`?"]);
}

#[test]
fn nothing_to_compare_is_an_error() {
    let directory = with_scenario(GOOD);
    let output = pageout(directory.path(), &["compare", "scenario.toml"]);
    check_failure(&output, 2, &["nothing to compare", "has no [[variant]]"]);
}
