//! Destinations of results: pipes, full disks, other programs.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{GOOD, check_failure, check_success, pageout, scenarios, text, with_scenario};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(super::binary());
    command.args(arguments);
    command
}

/// A device that is always full; not every system has one.
fn full_disk() -> Option<File> {
    File::options().write(true).open("/dev/full").ok()
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_figure_is_lost() {
    let scenario = "writeback-from-reclaim.toml";
    let few = ["--set", "task.*.object.*.workload.ops=2000"];
    for arguments in
        [&["compare", scenario, "--vary", "seed=1,2,3,4"][..], &["run", scenario], &["keys", "memcg"]]
    {
        let arguments = match arguments[0] {
            "keys" => arguments.to_vec(),
            _ => [arguments, &few, &["--quiet"]].concat(),
        };
        let at = |columns: &str| {
            let output =
                command(&arguments).current_dir(scenarios()).env("COLUMNS", columns).output().unwrap();
            check_success(&output);
            text(&output.stdout)
        };
        let words = |text: &str| {
            text.split_whitespace().map(str::to_string).collect::<std::collections::BTreeSet<_>>()
        };
        let wide = at("1000");
        for columns in [40, 80, 200] {
            let narrow = at(&columns.to_string());
            // A path or a key is not broken.
            let sentences = narrow.lines().filter(|line| line.trim().contains(' '));
            let longest = sentences.max_by_key(|line| line.chars().count()).unwrap();
            assert!(longest.chars().count() <= columns, "{arguments:?} at {columns}: {longest}");
            // Only names and sentences are broken, at their blanks or where a word is too long.
            let figures = |text: &str| -> Vec<String> {
                words(text)
                    .into_iter()
                    .filter(|word| word.parse::<f64>().is_ok() || word.ends_with('%'))
                    .collect()
            };
            assert_eq!(figures(&narrow), figures(&wide), "{arguments:?} at {columns}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_has_no_colours_for_who_wants_none() {
    // A terminal is what util-linux's script(1) makes.
    let help = |no_colour: &str| {
        let program = format!("{} compare --help", super::binary());
        let mut script = Command::new("script");
        script.args(["-qc", &program, "/dev/null"]).env("NO_COLOR", no_colour).env("TERM", "xterm");
        script.stdin(Stdio::null()).output().ok().map(|output| text(&output.stdout))
    };
    let Some(styled) = help("") else { return };
    assert!(styled.contains("\u{1b}["), "the terminal is one: {styled}");
    assert!(!help("1").unwrap().contains('\u{1b}'));
}

#[cfg(target_os = "linux")]
#[test]
fn a_place_where_no_file_may_be_made_is_named_as_it_was_asked_for() {
    let directory = with_scenario(GOOD);
    // Not even root makes files there.
    if !Path::new("/sys/kernel").is_dir() {
        return;
    }
    for (option, file) in [("--report", "x.html"), ("--trace", "x.txt"), ("--timeline", "x.csv")] {
        let path = format!("/sys/kernel/{file}");
        let output = pageout(directory.path(), &["run", "scenario.toml", option, &path]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(&format!("{option} {path}")) && !said.contains(".tmp"), "{said}");
    }
    std::fs::write(directory.path().join("a.u32"), [0; 4000]).unwrap();
    let output = pageout(directory.path(), &["trace", "convert", "a.u32", "/sys/kernel/a.pgt"]);
    let said = text(&output.stderr);
    assert!(said.contains("/sys/kernel") && !said.contains(".tmp"), "{said}");
}

#[test]
fn a_full_disk_is_an_error_and_not_a_result() {
    let directory = with_scenario(GOOD);
    for arguments in
        [&["run", "scenario.toml"][..], &["run", "scenario.toml", "--json"], &["keys"], &["--help"]]
    {
        let Some(full) = full_disk() else { return };
        let output = command(arguments).current_dir(directory.path()).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("cannot write the result") && stderr.contains("No space left"), "{stderr}");
    }
}

#[test]
fn a_full_disk_is_an_error_of_a_conversion_too() {
    if full_disk().is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.u32"), [0; 4000]).unwrap();
    let output = pageout(directory.path(), &["trace", "convert", "a.u32", "/dev/full", "--force"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let output = pageout(directory.path(), &["trace", "convert", "a.u32", "nowhere/a.pgt"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

#[test]
fn a_result_never_takes_the_place_of_what_was_read_or_of_another() {
    let replaying = GOOD.replace("size = \"4MiB\"\n", "trace = \"pages.csv\"\n");
    let replaying = replaying.replace("workload = { pattern = \"zipf\", ops = 5000 }\n", "");
    let trace = "page\n1\n2\n3\n";
    let directory = with_scenario(&replaying);
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("pages.csv"), trace).unwrap();
    std::fs::hard_link(at("scenario.toml"), at("another-name.json")).unwrap();
    let run = |more: &[&str]| pageout(directory.path(), &[&["run", "scenario.toml"], more].concat());
    check_success(&run(&[]));
    for (more, says) in [
        (&["--trace", "scenario.toml"][..], "this file is an input, and would be lost"),
        (&["--trace", "./scenario.toml"], "this file is an input (as scenario.toml)"),
        (&["--trace", "another-name.json"], "this file is an input (as scenario.toml)"),
        (&["--timeline", "pages.csv"], "this file is an input"),
        (
            &["--timeline", "x.csv", "--trace", "./x.csv"],
            "--trace ./x.csv: --timeline writes to the same file",
        ),
        (&["--report", "x.html", "--trace", "x.html"], "--trace writes to the same file"),
    ] {
        let output = run(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(says), "{more:?}: {}", text(&output.stderr));
        assert!(!at("x.csv").exists() && !at("x.html").exists(), "{more:?}");
    }
    assert_eq!(std::fs::read_to_string(at("scenario.toml")).unwrap(), replaying);
    assert_eq!(std::fs::read_to_string(at("pages.csv")).unwrap(), trace);
    check_success(&run(&["--timeline", "x.csv", "--trace", "x.txt", "--report", "x.html"]));
    check_success(&run(&["--timeline", "x.csv", "--trace", "x.txt", "--report", "x.html"]));
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let directory = with_scenario(GOOD);
    std::fs::write(directory.path().join("a.u32"), [0; 4000]).unwrap();
    for arguments in [
        &["run", "scenario.toml", "--trace", "nowhere/x.txt"][..],
        &["run", "scenario.toml", "--timeline", "nowhere/x.csv"],
        &["run", "scenario.toml", "--report", "nowhere/x.html"],
        &["trace", "convert", "a.u32", "nowhere/a.pgt"],
        &["run", "scenario.toml", "--out", "nowhere/x.json"],
    ] {
        check_failure(&pageout(directory.path(), arguments), 3, &["no such directory: `nowhere`"]);
    }
}

#[test]
fn a_conversion_is_not_called_what_it_is_not() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.u32"), [0; 4000]).unwrap();
    for (name, says) in [
        ("a.csv", "found that of csv"),
        ("b.u32", "that of words"),
        ("a.pgt.zst", "found .zst, expected .pgt"),
    ] {
        let output = pageout(directory.path(), &["trace", "convert", "a.u32", name]);
        check_failure(&output, 2, &[name, says]);
        assert!(!directory.path().join(name).exists());
    }
    check_success(&pageout(directory.path(), &["trace", "convert", "a.u32", "anything"]));
}

#[test]
fn a_scenario_comes_through_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("scenario.toml"), GOOD).unwrap();
    let piped = command(&["run", "-"]).stdin(File::open(at("scenario.toml")).unwrap()).output().unwrap();
    assert_eq!(check_success(&piped), check_success(&pageout(directory.path(), &["run", "scenario.toml"])));
    std::fs::write(at("scenario.toml"), GOOD.replace("ops", "opps")).unwrap();
    let piped = command(&["run", "-"]).stdin(File::open(at("scenario.toml")).unwrap()).output().unwrap();
    check_failure(&piped, 2, &["unknown key `opps`", "--> -:"]);
    check_failure(&pageout(directory.path(), &["trace", "info", "-"]), 2, &["/dev/stdin", "trace convert"]);
}

#[cfg(unix)]
#[test]
fn a_trace_converted_into_a_link_goes_where_it_leads() {
    use std::os::unix::fs::symlink;

    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a.u32"), [0; 4000]).unwrap();
    let convert = |to: &str, more: &[&str]| {
        let output =
            pageout(directory.path(), &[&["trace", "convert", "a.u32", to, "--force"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output
    };
    std::fs::write(at("b.pgt"), "old").unwrap();
    symlink("b.pgt", at("link")).unwrap();
    convert("link", &[]);
    assert!(at("link").is_symlink());
    assert!(check_success(&pageout(directory.path(), &["trace", "info", "b.pgt"])).contains("1,000"));
    // As /dev/stdout is: what is said about the trace may not stand behind it.
    symlink("/proc/self/fd/1", at("stdout")).unwrap();
    if !Path::new("/proc/self/fd/1").exists() {
        return;
    }
    for more in [&[][..], &["--json"]] {
        let output = convert("stdout", more);
        assert!(at("stdout").is_symlink() && text(&output.stderr).contains("stdout"), "{more:?}");
        assert_eq!(output.stdout, std::fs::read(at("b.pgt")).unwrap(), "{more:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = command(&["keys"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn pipes_get_no_colours_and_no_progress() {
    let directory = with_scenario(GOOD);
    for arguments in [&["run", "scenario.toml"][..], &["--help"], &["run", "--help"]] {
        let output = pageout(directory.path(), arguments);
        assert!(!check_success(&output).contains('\u{1b}'), "{arguments:?}");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn json_is_complete_and_parses() {
    let directory = with_scenario(GOOD);
    let printed = check_success(&pageout(directory.path(), &["run", "scenario.toml", "--json"]));
    let result: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(result["complete"], true);
    assert_eq!(result["tasks"][0]["accesses"], 5000);
    assert!(result["memcgs"][0]["counters"]["pgscan"].as_i64().unwrap() > 0);
    let arguments = ["compare", "scenario.toml", "--vary", "kernel.profile=classic@6.12,lru", "--json"];
    let printed = check_success(&pageout(directory.path(), &arguments));
    let result: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(result["variants"][1]["settings"]["kernel.profile"], "lru");
    assert!(
        result["variants"][1]["metrics"]["task reader: runtime_ns"]["difference_percent"].is_number(),
        "{printed}"
    );
    let printed = check_success(&pageout(directory.path(), &["keys", "vm.swappiness", "--json"]));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap()[0]["default"], "60");
}

#[test]
fn every_result_in_json_begins_with_the_version_of_its_form() {
    let directory = with_scenario(GOOD);
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a.txt"), (0..40).map(|page| format!("{}\n", page % 20)).collect::<String>()).unwrap();
    std::fs::write(at("stat"), "anon 4096\nfile 0\npgscan 7\n").unwrap();
    std::fs::write(at("trace"), "  dd-7 [000] ..... 1.000000: mm_vmscan_kswapd_sleep: nid=0\n").unwrap();
    std::fs::write(at("a.lru_gen"), "memcg 1 /\n node 0\n 0 9 0 1\n 1 9 0 1\n").unwrap();
    for command in [
        "run scenario.toml",
        "compare scenario.toml --vary seed=1,2",
        "ablate scenario.toml --switch lru --repeat 1",
        "explain scenario.toml --evictions 1",
        "replay a.txt --memory 1MiB",
        "trace info a.txt",
        "trace convert a.txt a.pgt",
        "trace compressibility a.txt",
        "keys vm.swappiness",
        "working-set a.lru_gen",
        "vmscan-report trace",
        "diff stat stat",
    ] {
        let arguments: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let output = pageout(directory.path(), &arguments);
        let result: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{command}: {}", text(&output.stderr)));
        let objects = result.as_array().cloned().unwrap_or_else(|| vec![result]);
        for object in &objects {
            let first = object.as_object().unwrap().iter().next().unwrap();
            assert_eq!(first, (&"format_version".to_string(), &1.into()), "{command}");
        }
    }
}

#[test]
fn a_workload_that_fails_is_one_object_that_says_so() {
    let directory = with_scenario(&GOOD.replace("\"file\"", "\"anonymous\""));
    std::fs::write(
        directory.path().join("a.pages64"),
        (0..1000u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>(),
    )
    .unwrap();
    for (command, reason) in [
        ("run scenario.toml", "task `reader` at access"),
        ("compare scenario.toml --vary seed=1,2", "every variant failed"),
        ("ablate scenario.toml --switch lru --repeat 1", "the unchanged scenario fails"),
        ("crossover scenario.toml --repeat 1", "every combination failed"),
        ("explain scenario.toml --page reader/0:1", "task `reader` at access"),
        ("explain scenario.toml --evictions 3", "task `reader` at access"),
        ("replay a.pages64 --channel anonymous --memory 50%", "with 1.95 MiB of memory"),
    ] {
        let arguments: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let output = pageout(directory.path(), &arguments);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result["complete"], false, "{command}");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains(reason) && error.contains("out of memory"), "{command}: {error}");
        assert!(text(&output.stderr).contains(reason), "{command}");
    }
}

#[test]
fn how_far_a_failed_run_came_does_not_look_like_a_result() {
    let directory = with_scenario(&GOOD.replace("\"file\"", "\"anonymous\""));
    let output = pageout(directory.path(), &["run", "scenario.toml", "--json"]);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["tasks"], &result["so_far"]["complete"]), (&serde_json::Value::Null, &false.into()));
    assert!(result["so_far"]["tasks"][0]["accesses"].as_u64().unwrap() > 0);
}

#[test]
fn a_bare_command_shows_what_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let printed = check_success(&pageout(directory.path(), &[]));
    for name in ["run", "compare", "replay", "trace", "keys", "completions"] {
        assert!(printed.contains(&format!(" {name}")), "{printed}");
    }
    assert!(check_success(&pageout(directory.path(), &["--help"])).contains("Exit codes:"));
}

#[test]
fn whatever_runs_side_by_side_is_told_how_many_by_j() {
    let directory = tempfile::tempdir().unwrap();
    for command in ["compare", "ablate", "crossover", "replay", "validate"] {
        let help = check_success(&pageout(directory.path(), &[command, "--help"]));
        assert!(help.contains("-j, --jobs <N>"), "{command}: {help}");
    }
}

#[test]
fn completions_and_the_manual_page_are_made_of_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            check_success(&pageout(directory.path(), &["completions", shell])).contains("compare"),
            "{shell}"
        );
    }
    let man = check_success(&pageout(directory.path(), &["man"]));
    assert!(man.contains(".TH pageout") && man.contains("think\\-time"), "{man}");
}

#[test]
fn every_example_in_the_scenarios_directory_is_valid_and_listed() {
    let catalogue = std::fs::read_to_string(scenarios().join("../docs/reference/catalogue.md")).unwrap();
    let mut count = 0;
    for folder in ["", "damon/", "large/", "live/", "mglru-v4/", "no-writeback/", "zswap-lru/"] {
        for entry in std::fs::read_dir(scenarios().join(folder)).unwrap() {
            let name = format!("{folder}{}", entry.unwrap().file_name().to_str().unwrap());
            if name.ends_with(".toml") {
                check_success(&pageout(&scenarios(), &["run", &name, "--check"]));
                assert!(catalogue.contains(&format!("scenarios/{name})")), "{name} is not in the catalogue");
                count += 1;
            }
        }
    }
    assert!(count >= 8, "{count}");
}

/// A trace whose hosts and whose own name have characters that terminals obey.
#[test]
#[cfg(unix)]
fn names_that_a_terminal_would_obey_are_printed_escaped() {
    let directory = tempfile::tempdir().unwrap();
    let evil = "ev\u{1b}[31mil\u{9b}2J\u{202e}\u{7}";
    let name = format!("{evil}.csv");
    let rows: String = (0..400).map(|at| format!("{at},{evil},{},4096\n", at % 90 * 4096)).collect();
    std::fs::write(directory.path().join(&name), format!("time,host,offset,size\n{rows}")).unwrap();
    std::fs::write(directory.path().join(format!("{evil}.toml")), GOOD).unwrap();
    let by = ["replay", &name, "--by", "host", "--memory", "50%", "--policy", "lru"];
    for more in
        [&[][..], &["--json"], &["--format", "csv"], &["--format", "markdown"], &["--out", "result.txt"]]
    {
        let output = pageout(directory.path(), &[&by[..], more].concat());
        let mut said = text(&output.stdout) + &text(&output.stderr);
        if more.contains(&"--out") {
            said += &std::fs::read_to_string(directory.path().join("result.txt")).unwrap();
        }
        assert!(output.status.success(), "{said}");
        let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(obeyed), "{more:?}: {said:?}");
        assert!(said.contains("[31mil"), "{more:?}: {said}");
    }
    let scenario = format!("{evil}.toml");
    for arguments in
        [&["run", &scenario][..], &["replay", &name, "--memory", "50%"], &["run", &format!("no{evil}")]]
    {
        let output = pageout(directory.path(), arguments);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']), "{said:?}");
    }
}
