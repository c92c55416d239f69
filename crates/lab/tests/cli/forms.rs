//! Results in other forms and in files: CSV, Markdown, plain text.

use std::path::Path;

use super::{GOOD, check_failure, check_success, pageout, text, with_scenario};

fn sequence(name: &str) -> String {
    format!("{}/../../ground-truth/sequences/{name}.u32.zst", env!("CARGO_MANIFEST_DIR"))
}

fn replay(directory: &Path, more: &[&str]) -> std::process::Output {
    let shift = sequence("shift");
    let asked = ["replay", &shift, "--memory", "5%,20%", "--policy", "lru,opt", "--quiet"];
    pageout(directory, &[&asked[..], more].concat())
}

#[test]
fn a_csv_has_a_row_a_cell_and_columns_that_can_be_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let printed = check_success(&replay(directory.path(), &["--format", "csv"]));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 1 + 4, "{printed}");
    let columns: Vec<&str> = lines[0].split(',').collect();
    for column in ["version", "trace", "policy", "memory_pages", "memory_bytes", "miss_ratio", "misses"] {
        assert!(columns.contains(&column), "{column} in {columns:?}");
    }
    assert!(lines.iter().all(|line| line.split(',').count() == columns.len()), "{printed}");
    let chosen = ["--format", "csv", "--figure", "policy,memory_pages,misses"];
    let chosen = check_success(&replay(directory.path(), &chosen));
    assert_eq!(
        chosen,
        "policy,memory_pages,misses\nlru,799,123574\nlru,3196,71921\nopt,799,76570\nopt,3196,39545\n"
    );
    let unknown = replay(directory.path(), &["--format", "csv", "--figure", "mises"]);
    check_failure(&unknown, 2, &["--figure mises", "did you mean `misses`?"]);
    let before = replay(directory.path(), &["--format", "csv", "--columns", "policy,misses"]);
    check_failure(&before, 2, &["--figure policy,misses"]);
}

#[test]
fn figures_are_chosen_in_every_form() {
    let directory = tempfile::tempdir().unwrap();
    let chosen = |form: &str| {
        let more = ["--format", form, "--figure", "policy,miss_ratio,misses"];
        check_success(&replay(directory.path(), &more))
    };
    assert_eq!(
        chosen("table"),
        "policy  miss_ratio   misses\nlru        0.41191  123,574\nlru        0.23974   71,921\nopt        0.25523   76,570\nopt        0.13182   39,545\n"
    );
    assert_eq!(chosen("plain"), chosen("table"), "where there is no terminal");
    assert!(
        chosen("markdown").starts_with("| policy | miss_ratio | misses |\n| --- | ---: | ---: |\n| lru |")
    );
    let rows: serde_json::Value = serde_json::from_str(&chosen("json")).unwrap();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["misses"]), (4, &123_574.into()));
    assert_eq!(rows[0].as_object().unwrap().len(), 4, "format_version and what was chosen: {rows}");
}

#[test]
fn what_bisect_judges_by_has_a_name_of_its_own() {
    let directory = with_scenario(GOOD);
    let asked = [
        "bisect",
        "scenario.toml",
        "--from",
        "6.1",
        "--to",
        "6.12",
        "--repeat",
        "2",
        "--figure",
        "refaults_file",
    ];
    check_failure(&pageout(directory.path(), &asked), 2, &["--judge-by refaults_file"]);
}

#[test]
fn a_comparison_of_sixteen_variants_is_as_wide_as_the_terminal() {
    let directory = with_scenario(GOOD);
    let sizes: Vec<String> = (1..=16).map(|at| format!("{}KiB", 512 + at * 128)).collect();
    let vary = format!("memcg./web.memory.max={}", sizes.join(","));
    let mut command = std::process::Command::new(super::binary());
    command.current_dir(&directory).args(["compare", "scenario.toml", "--vary", &vary]).env("COLUMNS", "80");
    let printed = check_success(&command.output().unwrap());
    assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    for size in &sizes {
        assert!(printed.contains(size.as_str()), "{size} in:\n{printed}");
    }
}

#[test]
fn a_markdown_table_is_one_and_its_text_stays() {
    let directory = tempfile::tempdir().unwrap();
    let printed = check_success(&replay(directory.path(), &["--format", "markdown"]));
    for said in [
        "| miss ratio | 5% | 20% |\n| --- | ---: | ---: |\n",
        "| opt (bound) | 0.2552 | 0.1318 |\n",
        "distinct pages",
    ] {
        assert!(printed.contains(said), "{said} in:\n{printed}");
    }
}

#[test]
fn a_file_has_the_form_that_its_name_says_and_is_whole_or_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| std::fs::read_to_string(directory.path().join(name));
    for (name, starts) in [("a.csv", "version,"), ("a.json", "{\n"), ("a.md", "/"), ("a.txt", "/")] {
        let output = replay(directory.path(), &["--out", name]);
        assert_eq!(check_success(&output), "", "{name}");
        assert!(
            text(&output.stderr).contains(&format!("the result is in {name}")),
            "{}",
            text(&output.stderr)
        );
        assert!(at(name).unwrap().starts_with(starts), "{name}: {}", at(name).unwrap());
    }
    check_failure(&replay(directory.path(), &["--out", "b.html"]), 2, &["--report"]);
    check_failure(&replay(directory.path(), &["--out", "b"]), 2, &["--format has to say"]);
    check_failure(&replay(directory.path(), &["--out", "b.csv", "--figure", "x"]), 2, &["--figure x"]);
    check_failure(
        &replay(directory.path(), &["--out", "none/b.csv"]),
        3,
        &["--out none/b.csv", "no directory"],
    );
    assert!(at("b.csv").is_err());
    std::fs::copy(sequence("shift"), directory.path().join("shift.u32.zst")).unwrap();
    let over = ["replay", "shift.u32.zst", "--out", "./shift.u32.zst", "--format", "csv"];
    check_failure(&pageout(directory.path(), &over), 2, &["would be lost"]);
}

#[test]
fn every_command_that_prints_a_table_has_it_as_csv_and_as_markdown() {
    let directory = with_scenario(GOOD);
    let shift = sequence("shift");
    let vmstat = directory.path().join("vmstat");
    std::fs::write(&vmstat, "nr_free_pages 100\npgscan_direct 1\npgsteal_direct 1\npgfault 10\n").unwrap();
    let commands: [&[&str]; 9] = [
        &["run", "scenario.toml"],
        &["compare", "scenario.toml", "--vary", "memcg./web.memory.max=1MiB,2MiB"],
        &["ablate", "scenario.toml", "--repeat", "1", "--switch", "lru.lists"],
        &["replay", &shift, "--memory", "20%"],
        &["trace", "info", &shift],
        &["keys", "memory.high"],
        &["keys", "policy"],
        &["crossover", "scenario.toml", "--repeat", "1"],
        &["diff", "vmstat", "vmstat"],
    ];
    for command in commands {
        for form in ["csv", "markdown", "plain"] {
            let output = pageout(directory.path(), &[command, &["--format", form]].concat());
            let printed = check_success(&output);
            assert!(printed.lines().count() > 1, "{command:?} as {form}: {printed}");
            if form == "csv" {
                assert!(printed.starts_with("version,"), "{command:?}: {printed}");
            }
        }
    }
}

#[test]
fn a_format_of_traces_is_told_to_be_one() {
    let output = replay(Path::new("."), &["--format", "msr"]);
    check_failure(&output, 2, &["--format", "msr", "csv", "markdown"]);
    assert!(text(&output.stderr).contains("--trace-format"), "{}", text(&output.stderr));
}
