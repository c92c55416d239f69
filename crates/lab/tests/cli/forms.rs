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
    check_failure(&unknown, 2, &["--figure: unknown figure `mises`", "did you mean `misses`?"]);
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
            text(&output.stderr).contains(&format!("result written to {name}")),
            "{}",
            text(&output.stderr)
        );
        assert!(at(name).unwrap().starts_with(starts), "{name}: {}", at(name).unwrap());
    }
    check_failure(&replay(directory.path(), &["--out", "b.html"]), 2, &["--report"]);
    check_failure(
        &replay(directory.path(), &["--out", "b"]),
        2,
        &["expected .csv, .md, .json, .txt or .parquet", "help: select the form with --format"],
    );
    check_failure(
        &replay(directory.path(), &["--out", "b.csv", "--figure", "x"]),
        2,
        &["--figure: unknown figure `x`"],
    );
    check_failure(
        &replay(directory.path(), &["--out", "none/b.csv"]),
        3,
        &["--out none/b.csv", "no such directory"],
    );
    assert!(at("b.csv").is_err());
    std::fs::copy(sequence("shift"), directory.path().join("shift.u32.zst")).unwrap();
    let over = ["replay", "shift.u32.zst", "--out", "./shift.u32.zst", "--format", "csv"];
    check_failure(&pageout(directory.path(), &over), 2, &["would be lost"]);
}

/// Commands that print no result.
const WITHOUT: [&str; 4] = ["completions", "help", "new-policy", "play"];

/// Each command of `pageout --help`, with something small to do, and whether what it prints has a table.
fn every_command() -> Vec<(Vec<String>, bool)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let table = [
        ("run scenario.toml", true),
        ("compare scenario.toml --vary memcg./web.memory.max=1MiB,2MiB", true),
        ("ablate scenario.toml --repeat 1 --switch lru.lists", true),
        ("bisect scenario.toml --from 6.1 --to 6.12 --repeat 2", true),
        ("coverletter scenario.toml --repeat 2 --switch memcg./web.memory.max=2MiB", true),
        ("crossover scenario.toml --repeat 1", true),
        ("predict scenario.toml --repeat 2", true),
        ("advise-tier scenario.toml --ratio 1:1 --device cxl-1.1", true),
        ("reproduce chapter.toml --seeds 1", true),
        ("reproduce --list", true),
        ("tour tour.toml", true),
        ("replay ROOT/ground-truth/sequences/shift.u32.zst --memory 20%", true),
        ("replay ROOT/ground-truth/sequences/shift.u32.zst --memory 20%,30% --policy lru,opt", true),
        ("sweep plan.toml --dry-run", true),
        ("sweep --collect swept", true),
        ("sweep --status swept", false),
        ("explain scenario.toml --evictions 2", false),
        ("validate ROOT/ground-truth mm-zipf099.mglru.t", true),
        ("working-set ROOT/docs/examples/db1.lru_gen", true),
        ("vmscan-report ROOT/ground-truth/ftrace/ft-glmix.mglru.t.txt.zst", true),
        ("diff before after", true),
        ("record --check", true),
        ("twin ROOT/crates/lab/tests/fixtures/twin/reads", true),
        (
            "import lines.txt --source lines --pattern {time}|{op}|{file}|{offset}|{bytes} -o imported.pgt --force",
            false,
        ),
        ("trace info ROOT/ground-truth/sequences/shift.u32.zst", false),
        ("trace convert ROOT/ground-truth/sequences/shift.u32.zst converted.pgt --force", false),
        ("trace compressibility lines.txt", true),
        ("bench --folder . --size 16MiB --budget 8MiB --reads 500 --rounds 1 --beside none", true),
        ("check-policy lru", false),
        ("keys memory.high", false),
        ("keys policy", false),
        ("keys reclaim --at 6.8", true),
    ];
    let words = |line: &str| line.split(' ').map(|word| word.replace("ROOT", root)).collect();
    table.into_iter().map(|(line, has_table)| (words(line), has_table)).collect()
}

/// A folder with what these commands read.
fn with_inputs() -> tempfile::TempDir {
    let directory =
        super::tour::with_tour(super::tour::TOUR, &super::tour::CHAPTER.replace("no size", "3MiB"));
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("before", "nr_free_pages 100\npgscan_direct 1\npgsteal_direct 1\npgfault 10\n");
    write("after", "nr_free_pages 90\npgscan_direct 5\npgsteal_direct 3\npgfault 20\n");
    write("lines.txt", "1|R|f|0|4096\n2|R|f|4096|4096\n");
    let trace = sequence("shift");
    write("plan.toml", &format!("traces = [{trace:?}]\npolicy = [\"lru\"]\nmemory = [\"20%\"]\n"));
    check_success(&pageout(directory.path(), &["sweep", "plan.toml", "--into", "swept", "--quiet"]));
    directory
}

#[test]
fn every_command_is_one_whose_forms_are_looked_at_or_known_to_have_none() {
    let commands = every_command();
    let help = check_success(&pageout(Path::new("."), &["--help"]));
    let (_, names) = help.split_once("Commands:\n").unwrap();
    let names = names.split("\n\n").next().unwrap().lines().filter(|line| !line.starts_with("   "));
    for name in names.map(|line| line.split_whitespace().next().unwrap()) {
        let is_known = WITHOUT.contains(&name) || commands.iter().any(|(command, _)| command[0] == name);
        assert!(is_known, "{name} is in no row of the table");
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn every_command_has_its_result_in_every_form_and_in_a_file() {
    let directory = with_inputs();
    for (command, has_table) in &every_command() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let printed = |more: &[&str]| {
            let output = pageout(directory.path(), &[&command[..], &["--quiet"], more].concat());
            // Predictions of `validate` need not hold, and counters may go back: the result is there.
            assert!(
                matches!(output.status.code(), Some(0 | 4)),
                "{command:?} {more:?}: {}",
                text(&output.stderr)
            );
            text(&output.stdout)
        };
        // A prediction says when it was made, and what was measured is another each time.
        let differs = ["predict", "bench"].contains(&command[0]);
        let csv = printed(&["--format", "csv"]);
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.starts_with("version,") && csv.lines().count() > 1 && columns > 1, "{command:?}: {csv}");
        let json: serde_json::Value = serde_json::from_str(&printed(&["--format", "json"])).unwrap();
        assert!(
            differs || serde_json::from_str::<serde_json::Value>(&printed(&["--json"])).unwrap() == json,
            "{command:?}"
        );
        let markdown = printed(&["--format", "markdown"]);
        let has_rule = markdown.lines().any(|line| {
            line.starts_with('|') && line.contains("--") && !line.contains(|c: char| !" |-:".contains(c))
        });
        assert_eq!(has_rule, *has_table, "{command:?}: {markdown}");
        assert!(!printed(&["--format", "plain"]).is_empty(), "{command:?}");
        let chosen = printed(&["--figure", "version"]);
        assert!(chosen.starts_with("version\n"), "{command:?}: {chosen}");
        let name = format!("out-{}.csv", command[0]);
        assert_eq!(printed(&["--out", &name]), "", "{command:?}");
        let written = std::fs::read_to_string(directory.path().join(&name)).unwrap();
        assert!(
            differs && written.lines().next() == csv.lines().next() || written == csv,
            "{command:?}: {written}"
        );
    }
}

#[test]
fn a_format_of_traces_is_told_to_be_one() {
    let output = replay(Path::new("."), &["--format", "msr"]);
    check_failure(&output, 2, &["--format", "msr", "csv", "markdown"]);
    assert!(text(&output.stderr).contains("--trace-format"), "{}", text(&output.stderr));
}
