//! Another build of this program, as the base: it runs the same scenarios, each in a process, and returns the results as JSON.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::figures::Outcome;
use super::gather::Written;
use crate::error::{Error, Failed};
use crate::json::FORMAT_VERSION;
use crate::watch::Watcher;

/// How often it is asked whether the process has ended, or is to end.
const POLL: Duration = Duration::from_millis(5);

/// A scenario that ends immediately.
const NOTHING: &str = "[[task]]\nname = \"a\"\nobject = [{ channel = \"file\", size = \"4KiB\", workload = { pattern = \"sequential\" } }]\n";

/// A build.
pub struct Build {
    binary: PathBuf,
    /// Its description of itself.
    pub version: String,
}

/// What a process left.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Build {
    /// Checks that there is a build with comparable results. Errors: it cannot run, it is not a build of pageout, or its JSON has another
    /// form.
    pub(super) fn find(path: &Path) -> Result<Build, Error> {
        let told = |why: String| Error::Asked(format!("--against {}: {why}", path.display()));
        let failed = |error: io::Error| told(error.to_string());
        // A name alone would be looked for among the system's programs.
        let binary = path.canonicalize().map_err(failed)?;
        if !binary.is_file() {
            return Err(told("this is not a program".to_string()));
        }
        let version = Command::new(&binary).arg("--version").stdin(Stdio::null()).output().map_err(failed)?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_string();
        if !version.starts_with("pageout ") {
            return Err(told(format!("this is not a build of pageout: --version prints {version:?}")));
        }
        let build = Build { binary, version };
        let written = Written {
            text: NOTHING.to_string(),
            folder: PathBuf::from("."),
            settings: Vec::new(),
            first_seed: 1,
        };
        let ended = build.start(&written, 0, &()).map_err(failed)?;
        let result: Value =
            ended.as_ref().and_then(|ended| serde_json::from_str(&ended.stdout).ok()).unwrap_or_default();
        let told_version = match &result["format_version"] {
            Value::Null => "none".to_string(),
            version => version.to_string(),
        };
        if result["format_version"] != FORMAT_VERSION {
            return Err(told(format!(
                "cannot compare figures of {}: found format_version {told_version}, expected {FORMAT_VERSION}",
                build.version
            )));
        }
        Ok(build)
    }

    /// Runs a scenario with its n-th seed; nothing if the watcher had it end.
    pub(super) fn run(
        &self,
        scenario: &Written,
        nth: u32,
        watcher: &dyn Watcher,
    ) -> Option<Result<Outcome, Failed>> {
        let failed = |is_input: bool, message: String| Some(Err(Failed { is_input, message }));
        let ended = match self.start(scenario, nth, watcher) {
            Ok(ended) => ended?,
            Err(error) => return failed(true, error.to_string()),
        };
        let result: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
        match (ended.code, &result["error"]) {
            (Some(0), _) if result.is_object() => Some(Ok(Outcome::of(&result))),
            (code, Value::String(error)) => failed(code == Some(2), error.clone()),
            (code, _) => {
                let why =
                    ended.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
                failed(code == Some(2), format!("the other build: {}", why.trim_start_matches("error: ")))
            }
        }
    }

    fn start(&self, scenario: &Written, nth: u32, watcher: &dyn Watcher) -> io::Result<Option<Ended>> {
        let mut input = tempfile::tempfile()?;
        input.write_all(scenario.text.as_bytes())?;
        input.rewind()?;
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut command = Command::new(&self.binary);
        command.args(["run", "-", "--json", "--quiet", "--seed"]);
        command.arg((scenario.first_seed + u64::from(nth)).to_string());
        for setting in scenario.settings.iter().filter(|setting| setting.key != "seed") {
            command.arg("--set").arg(setting.to_string());
        }
        if scenario.folder.is_dir() {
            command.current_dir(&scenario.folder);
        }
        let mut process =
            command.stdin(input).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).spawn()?;
        let code = loop {
            if let Some(status) = process.try_wait()? {
                break status.code();
            }
            if watcher.stop().is_some() {
                let _ = process.kill();
                process.wait()?;
                return Ok(None);
            }
            std::thread::sleep(POLL);
        };
        // A signal of the terminal goes to both.
        if watcher.stop().is_some() {
            return Ok(None);
        }
        Ok(Some(Ended { code, stdout: all_of(&mut stdout)?, stderr: all_of(&mut stderr)? }))
    }
}

fn all_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
