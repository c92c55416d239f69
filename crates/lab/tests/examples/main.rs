//! Every command line that the program shows runs: those of help, of the reference of keys, of hints, and of the documentation of the sources.
//!
//! `cargo test` calls each of them in a folder that has what it names. What takes longer than a moment is ended then: all that the line says was
//! read by that time, since only runs can be ended. Lines that need root, or input from another program, are read by the command line's parser
//! alone. `ci/slow/tests.sh` runs all of them to their end, with a shell.

// Tests write the files they need, and a test that can't is a failed test.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod help; // the size of help
mod extract; // where command lines are written
mod shell; // their words
mod fixture; // what they name

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use extract::{Found, Line};
use pageout_lab::Program;
use pageout_lab::api::{self, Called};

/// An example is ended after so long.
const MOMENT: Duration = Duration::from_millis(20);

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The program: the one built with the tests, or the release that `ci/slow/tests.sh` names.
fn binary() -> String {
    std::env::var("PAGEOUT_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_pageout").to_string())
}

fn found() -> Found {
    let mut found = Found::default();
    for (name, text) in extract::helps() {
        found.help(&name, &text);
    }
    found.keys();
    for (name, text) in extract::files(&["crates", "bindings", "fuzz/src"], ".rs") {
        // Tests call commands as nobody should.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        found.source(&name, code);
    }
    for (name, text) in extract::files(&["scenarios"], ".toml") {
        found.scenario(&name, &text);
    }
    found
}

/// Calls a command in a folder, and has it end after a time. This process is in that folder then: one test alone may call.
fn call(folder: &Path, words: &[&str], limit: Option<Duration>) -> Called {
    std::env::set_current_dir(folder).unwrap();
    let words: Vec<std::ffi::OsString> = ["pageout"].iter().chain(words).map(Into::into).collect();
    let stop = Arc::new(AtomicBool::new(limit == Some(Duration::ZERO)));
    let (done, waited) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        if let Some(limit) = limit {
            let stop = Arc::clone(&stop);
            scope.spawn(move || {
                // Ended by the other side going away.
                let _ = waited.recv_timeout(limit);
                stop.store(true, Relaxed);
            });
        }
        let called = api::call(&words, Program::started_by(vec![binary().into()]), &stop);
        drop(done);
        called
    })
}

/// How far `cargo test` goes with a command.
#[derive(Debug, PartialEq, Eq)]
enum Depth {
    /// It runs, for a moment at most.
    Run,
    /// It runs to its end: a later line reads what it has made.
    Whole,
    /// All that it says is read, and nothing runs.
    Read,
    /// The command line's parser alone: for this reason.
    Parse(&'static str),
}

fn depth(words: &[String], from: &Line) -> Depth {
    let has = |word: &str| words.iter().any(|other| other == word);
    match words[1].as_str() {
        "record" if has("--check") => Depth::Parse("its exit code says what the machine lacks"),
        "record" => Depth::Read,
        _ if has("-") => Depth::Parse("reads what another program prints"),
        "check-policy" if has("./libmine.so") => Depth::Parse("a library that is to be built"),
        "diff" if has("/proc/pressure/memory") => Depth::Parse("not every kernel counts pressure"),
        "play" => Depth::Parse("its module is made by ci/play.sh"),
        "validate" => Depth::Parse("nothing ends it before its last run"),
        "trace" if has("$$") => Depth::Parse("a process of the user's"),
        _ if from.place.starts_with("scenarios/") || from.place.starts_with("keys ") => Depth::Read,
        "sweep" if has("--into") => Depth::Whole,
        _ => Depth::Run,
    }
}

/// The words of one command, with files for patterns.
fn expanded(folder: &Path, words: &[String]) -> Vec<String> {
    let expand = |word: &String| -> Vec<String> {
        let word =
            word.replacen("~/", &format!("{}/", folder.display()), usize::from(word.starts_with("~/")));
        let is_pattern = word.contains('*') && !word.contains('=') && !word.starts_with('/');
        let pattern = folder.join(&word);
        let paths = is_pattern.then(|| glob::glob(pattern.to_str().unwrap()).unwrap());
        let names = paths
            .into_iter()
            .flatten()
            .map(|path| path.unwrap().strip_prefix(folder).unwrap().to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        if names.is_empty() { vec![word] } else { names }
    };
    words.iter().flat_map(expand).collect()
}

/// Does what the commands of a line say, as far as a test goes; what went wrong.
fn check(folder: &Path, line: &Line) -> Result<(), String> {
    for simple in shell::commands(&line.text)? {
        let words = &simple.words;
        if words[0] != "pageout" {
            continue;
        }
        if words.len() == 1 {
            return Err("no command is named".to_string());
        }
        let words = expanded(folder, words);
        let parsed = api::command_line().try_get_matches_from(&words);
        parsed.map_err(|error| error.to_string())?;
        let limit = match depth(&words, line) {
            Depth::Run => Some(MOMENT),
            Depth::Whole => None,
            Depth::Read => Some(Duration::ZERO),
            Depth::Parse(_) => continue,
        };
        if words[1] == "new-policy" {
            let _ = std::fs::remove_dir_all(folder.join(&words[2]));
        }
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let called = call(folder, &arguments, limit);
        match called.failure {
            None | Some((130, _)) => {}
            Some((code, why)) => {
                return Err(format!("exit code {code}: {why}\n{}", called.remarks.join("\n")));
            }
        }
    }
    Ok(())
}

/// What stands in a line for what a user would write: by the command, as hints fill it in.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let command = text.split_whitespace().nth(1).unwrap_or_default();
    let of_hint = match command {
        "replay" => "a.pgt --memory 10%",
        "sweep" => "made/results",
        "twin" => "rec",
        "validate" => "ground-truth/zswap",
        "keys" => "lru.tiers",
        "vmscan-report" => "trace.txt",
        other => other,
    };
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((_, after)) = behind.split_once('}') else { break };
        filled += before;
        filled += of_hint;
        rest = after;
    }
    filled += rest;
    let words = filled.split(' ').map(|word| match word {
        "FILE" if command == "compare" => "scenarios/regressions/m12-idle-memory-out-of-reach.toml",
        "FILE" if command == "replay" => of_hint,
        "FILE" => "web.toml",
        "PLAN.toml" => "plan.toml",
        "DIR" => "written",
        "NAME" => "mine",
        "COMMAND" => "run",
        "VERSION" => "6.8",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns true if a text names a command, and says nothing of how it is called: `pageout trace convert`.
fn is_name(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut command = api::command_line();
    words[0] == "pageout"
        && words[1..].iter().all(|word| match command.find_subcommand(word).cloned() {
            Some(found) => {
                command = found;
                true
            }
            None => false,
        })
}

#[test]
fn command_lines_stand_in_backticks_or_among_examples() {
    let found = found();
    assert!(found.bare.is_empty(), "{:#?}", found.bare);
    // A place where nothing is found is one that is not looked at any more.
    let some = [found.inline.len(), found.hints.len(), found.scenarios.len()];
    assert!(
        found.examples.len() > 90 && some.iter().all(|many| *many > 10),
        "{} {some:?}",
        found.examples.len()
    );
}

/// Does something with each line of help in a folder of the lines of its text, which build on each other. What went wrong is told together.
fn each<'a>(lines: impl Iterator<Item = &'a Line>, does: fn(&Path, &Line) -> Result<(), String>) {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fixture::make(root.path());
    let mut wrong = Vec::new();
    let mut place: Option<(String, (tempfile::TempDir, PathBuf))> = None;
    for line in lines {
        // Others don't, and share one.
        let name = if line.place.ends_with("--help") { line.place.as_str() } else { "others" };
        if place.as_ref().is_none_or(|(last, _)| last != name) {
            place = Some((name.to_string(), fixture::scratch(root.path())));
        }
        let (_, (_, folder)) = place.as_ref().expect("it was just made");
        if let Err(why) = does(folder, line) {
            let why = why.trim_end().replace('\n', "\n    ");
            wrong.push(format!("{}: {}\n    {why}", line.place, line.text));
        }
    }
    assert!(wrong.is_empty(), "{} of these lines fail:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn command_lines_of_help_keys_hints_docs_and_scenarios_run() {
    let found = found();
    // The texts of switches are read where `keys` prints them, with names and values.
    let is_pattern = |line: &Line| line.place == "crates/sim/src/scenario/keys/engine.rs";
    let others =
        found.inline.iter().chain(&found.hints).filter(|line| !is_name(&line.text) && !is_pattern(line));
    let others: Vec<Line> = others.map(|line| Line { text: filled(&line.text), ..line.clone() }).collect();
    let scenarios = found.scenarios.iter().filter(|line| !is_name(&line.text));
    each(found.examples.iter().chain(&others).chain(scenarios), check);
}

/// A line of help by a shell, to its end. What this machine lacks for it is told on standard error.
fn run_whole(folder: &Path, line: &Line) -> Result<(), String> {
    const MOST: &str = "600";
    let commands = shell::commands(&line.text)?;
    if commands.iter().all(|simple| simple.words[0] != "pageout") {
        return Ok(());
    }
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let is_there = |program: &str| {
        path.split(':').any(|folder| Path::new(folder).join(program).exists())
            || ["cd", "echo"].contains(&program)
    };
    let leave_out = |why: &str| {
        eprintln!("left out: {}: {why}", line.text);
        Ok(())
    };
    if let Some(missing) = commands.iter().map(|simple| &simple.words[0]).find(|program| !is_there(program)) {
        return leave_out(&format!("there is no {missing} here"));
    }
    let source = commands.iter().flat_map(|simple| &simple.words).find(|word| {
        ["/sys/", "/proc/"].iter().any(|root| word.starts_with(root)) && std::fs::File::open(word).is_err()
    });
    if let Some(missing) = source {
        return leave_out(&format!("there is no {missing} here"));
    }
    let run = |text: &str| {
        let mut command = Command::new("timeout");
        command.args(["--signal=INT", MOST, "sh", "-c", text]).current_dir(folder);
        command.env("PATH", &path).env("HOME", folder).stdin(std::process::Stdio::null()).output().unwrap()
    };
    let mut text = line.text.clone();
    match commands[0].words[1..].first().map(String::as_str) {
        Some("record") if !text.contains("--check") => {
            let _ = std::fs::remove_dir_all(folder.join("rec"));
            let _ = std::fs::remove_file(folder.join("rec"));
            text = text.replace("--for 60s", "--for 1s").replace("--for 10min", "--for 1s");
            text = text.replace("812,813", "$$");
            let check = String::from_utf8_lossy(&run("pageout record --check --json").stdout).into_owned();
            let check: serde_json::Value = serde_json::from_str(&check).map_err(|error| error.to_string())?;
            let sources = check["sources"].as_array().ok_or("no sources are told")?;
            if let Some(missing) = sources.iter().find(|source| source["is_there"] == false) {
                return leave_out(&format!("{} can't be recorded here", missing["source"]));
            }
            if text.contains("--cgroup") {
                return leave_out("it records a group of the user's");
            }
        }
        Some("new-policy") => _ = std::fs::remove_dir_all(folder.join("mine")),
        Some("check-policy") if text.contains("libmine.so") => {
            let made =
                run("rm -rf mine && pageout new-policy mine --c && cd mine && make && cp libmine.so ..");
            if !made.status.success() {
                return Err(String::from_utf8_lossy(&made.stderr).into_owned());
            }
        }
        Some("completions") => {
            let home = folder;
            for folder in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
                std::fs::create_dir_all(home.join(folder)).map_err(|error| error.to_string())?;
            }
        }
        _ => {}
    }
    let output = run(&text);
    // 124: it had its time.
    match output.status.code() {
        Some(0 | 124) => Ok(()),
        // There are only counters here.
        Some(4) if text.contains("record --check") => Ok(()),
        code => Err(format!("exit code {code:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn command_lines_of_help_run_to_their_end() {
    each(found().examples.iter(), run_whole);
}
