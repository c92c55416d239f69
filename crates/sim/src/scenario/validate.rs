//! Checks of a scenario as a whole: ranges, names that refer to each other, keys that exclude each other.
//!
//! A malformed value (an invalid size) is rejected while reading. The checks here need a key's declared range or a second key. They find all problems
//! in one pass, in the order of the file, so that the author can fix them in one pass, too.

mod damon;
mod event;
mod expect;
mod machine;
mod storage;
mod task;

use std::collections::BTreeSet;

use super::keys::{Accepts, Key};
use super::{DEFAULT_DEVICE, Files, Knobs, Scalar, Scenario, Section, TableError};

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The key, from the top of the file: `task[0].object[1].size`.
    pub key: String,
    /// The problem, with the value.
    pub message: String,
    /// The text that was probably meant to be one of `candidates`.
    pub given: Option<String>,
    /// The valid names at this place, if they are a list.
    pub candidates: Vec<String>,
    /// The help.
    pub help: Option<String>,
}

impl Problem {
    /// `message` about `key`, with nothing to suggest.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { key: key.into(), message: message.into(), given: None, candidates: Vec::new(), help: None }
    }

    /// Pages that stand for many, where they may be huge.
    pub(super) fn huge_of_many(key: &str) -> Problem {
        Problem::new(key, "a huge page has 512 pages of 4 KiB, so a page must stand for exactly one").help(
            "leave `machine.page_stands_for` at 1, or transparent_hugepage and hugepages_<N>kB at \"never\"",
        )
    }

    /// A fault inside a table that another crate defines.
    pub fn in_table(prefix: &str, error: TableError) -> Problem {
        let mut problem = Problem::new(format!("{prefix}{}", error.path), error.message.clone());
        problem.help = error.missing.map(Key::advice);
        if !error.candidates.is_empty() {
            problem.help = Some(format!("allowed here: {}", error.candidates.join(", ")));
        }
        problem.given = error.message.split('`').rev().nth(1).map(str::to_string);
        problem.candidates = error.candidates;
        problem
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    fn nearest(mut self, given: &str, candidates: Vec<String>) -> Problem {
        self.given = Some(given.to_string());
        self.candidates = candidates;
        self
    }
}

impl Scenario {
    /// Everything that keeps this scenario from being run; empty means it can be.
    pub fn validate(&self) -> Vec<Problem> {
        let known = Known::of(self);
        let mut check = Check { scenario: self, files: self.files(), known: &known, problems: Vec::new() };
        for (path, text) in [("question", &self.question), ("look_at", &self.look_at)] {
            check.no_control_characters(path, text, &['\n', '\t']);
        }
        check.ranges("", self);
        check.machine();
        check.kernel();
        check.memcgs();
        check.names("device", self.device.iter().map(|device| device.name.as_str()));
        for (index, device) in self.device.iter().enumerate() {
            check.device(&format!("device[{index}]"), device);
        }
        check.min_ratios();
        for (index, swap) in self.swap.iter().enumerate() {
            check.swap(&format!("swap[{index}]"), swap);
        }
        check.names("file", self.file.iter().map(|file| file.name.as_str()));
        for (index, file) in self.file.iter().enumerate() {
            check.file(&format!("file[{index}]"), file);
        }
        for (index, damon) in self.damon.iter().enumerate() {
            check.damon(&format!("damon[{index}]"), damon);
        }
        check.names("task", self.task.iter().map(|task| task.name.as_str()));
        for (index, task) in self.task.iter().enumerate() {
            check.task(&format!("task[{index}]"), task);
        }
        check.waits();
        check.has_an_end();
        for (index, event) in self.event.iter().enumerate() {
            check.event(&format!("event[{index}]"), event);
        }
        check.variants();
        check.expectations();
        if check.problems.is_empty()
            && let Err(problem) = self.check_room()
        {
            check.report(problem);
        }
        check.problems
    }
}

/// Keys that are shown one by one; of more, groups are.
const SHOWN_MAX: usize = 24;

/// Keys of a section, for who has written one that is none of them: those of its group, or each group as one.
fn shown(given: &str, known: &[String]) -> String {
    let group = |name: &str| name.split_once('.').map(|(group, _)| format!("{group}."));
    let is_beside = |name: &&String| group(given).is_some_and(|group| name.starts_with(&group));
    if known.len() <= SHOWN_MAX {
        return known.join(", ");
    }
    let beside: Vec<&str> = known.iter().filter(is_beside).map(String::as_str).collect();
    if !beside.is_empty() {
        return beside.join(", ");
    }
    let mut names: Vec<String> =
        known.iter().map(|name| group(name).map_or_else(|| name.clone(), |group| group + "*")).collect();
    // A group is named where its first key stands.
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.join(", ")
}

/// A limit below this can't hold the pages of one fault and one batch of reclaim; the kernel would immediately loop into OOM.
pub(super) const LIMIT_PAGES_MIN: u64 = 32;

/// Number of problems that are reported. The list stays readable even if a script repeats one mistake a hundred thousand times.
const PROBLEMS_MAX: usize = 100;

struct Check<'a> {
    scenario: &'a Scenario,
    files: Files<'a>,
    known: &'a Known,
    problems: Vec<Problem>,
}

/// All that one key can name in another's value.
struct Known {
    devices: Names,
    memcgs: Names,
    files: Names,
    tasks: Names,
    variants: Names,
}

impl Known {
    fn of(scenario: &Scenario) -> Known {
        let devices = match &scenario.device[..] {
            [] => vec![DEFAULT_DEVICE.to_string()],
            devices => devices.iter().map(|device| device.name.clone()).collect(),
        };
        let files = scenario.file.iter().map(|file| file.name.clone()).collect();
        let tasks = scenario.task.iter().map(|task| task.name.clone()).collect();
        let variants = scenario.variant.iter().map(|variant| variant.name.clone()).collect();
        Known {
            devices: Names::new("device", devices),
            memcgs: Names::new("memcg", scenario.memcg_paths()),
            files: Names::new("file", files),
            tasks: Names::new("task", tasks),
            variants: Names::new("variant", variants),
        }
    }
}

/// The names of one kind.
struct Names {
    what: &'static str,
    /// In the order of the file.
    listed: Vec<String>,
    sorted: BTreeSet<String>,
}

impl Names {
    fn new(what: &'static str, listed: Vec<String>) -> Names {
        let sorted = listed.iter().cloned().collect();
        Names { what, listed, sorted }
    }

    fn contains(&self, name: &str) -> bool {
        self.sorted.contains(name)
    }

    /// All of them if they are few, else the first.
    fn told(&self) -> String {
        const TOLD: usize = 20;
        let told = self.listed[..self.listed.len().min(TOLD)].join(", ");
        match self.listed.len().saturating_sub(TOLD) {
            0 => told,
            more => format!("{told} and {more} more"),
        }
    }
}

impl Check<'_> {
    fn report(&mut self, problem: Problem) {
        match self.problems.len() {
            count if count < PROBLEMS_MAX => self.problems.push(problem),
            PROBLEMS_MAX => {
                let message =
                    "there are more problems than this, but they are not shown; fix those above first";
                self.problems.push(Problem::new(problem.key, message));
            }
            _ => {}
        }
    }

    /// Checks every value of a table against its declaration; `prefix` is the way to the table, with its dot.
    fn ranges(&mut self, prefix: &str, section: &impl Section) {
        section.values(&mut |key, accepts, value| self.value(&format!("{prefix}{key}"), accepts, value));
    }

    fn value(&mut self, path: &str, accepts: Accepts, value: &Scalar) {
        if let Err(message) = accepts.check(value) {
            let name = path.rsplit_once("].").map_or(path, |(_, name)| name);
            let mut problem = Problem::new(path, format!("`{name}`: {message}"));
            problem.help = Some(format!("allowed: {accepts}"));
            if let (words, Scalar::Text(text)) = (accepts.words(), value) {
                problem = problem.nearest(text, words);
            }
            self.report(problem);
        }
    }

    /// A reference to something by name.
    fn reference(&mut self, path: &str, known: &Names, name: &str) {
        if known.contains(name) {
            return;
        }
        let what = known.what;
        let mut problem = Problem::new(path, format!("there is no {what} called `{name}`"));
        if known.listed.is_empty() {
            problem = problem.help(format!("this scenario has no [[{what}]] at all"));
        } else {
            problem = problem.help(format!("known: {}", known.told())).nearest(name, known.listed.clone());
        }
        self.report(problem);
    }

    fn names<'n>(&mut self, list: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (index, name) in names.enumerate() {
            let path = format!("{list}[{index}].name");
            if name.is_empty() {
                self.report(Problem::new(&path, format!("every {list} needs a non-empty name")));
            } else if !seen.insert(name) {
                self.report(Problem::new(&path, format!("there are two {list}s called `{name}`")));
            }
            self.no_control_characters(&path, name, &[]);
        }
    }

    /// Printed text must not move the cursor, nor change the text above it.
    fn no_control_characters(&mut self, path: &str, text: &str, but: &[char]) {
        if let Some(control) = text.chars().find(|c| c.is_control() && !but.contains(c)) {
            let message =
                format!("`{}` has the control character U+{:04X}", text.escape_debug(), u32::from(control));
            self.report(Problem::new(path, message).help("remove it: a terminal would interpret it"));
        }
    }

    fn settings(&mut self, prefix: &str, entries: &Knobs) {
        let general = super::keys::without_indices(prefix);
        for (name, value) in entries.iter() {
            let path = format!("{prefix}.{name}");
            if let Some(key) = Key::find(&path) {
                self.value(&path, key.accepts, value);
            } else {
                let known = Key::names_under(&format!("{general}."));
                let elsewhere = Key::elsewhere(name);
                let problem = Problem::new(path, format!("unknown key `{name}`"));
                let problem = match Key::find(name) {
                    Some(_) => problem.help(format!(
                        "`{name}` is a key of the scenario, not of `{prefix}`: write it above all sections"
                    )),
                    None if (prefix, name) == ("kernel", "lru") => problem.help(
                        "the LRU of a version is `kernel.lists`; `kernel.lru` contains single switches",
                    ),
                    None if !elsewhere.is_empty() => {
                        problem.help(format!("elsewhere there is `{}`", elsewhere.join("` and `")))
                    }
                    None => problem.help(format!("keys here: {}", shown(name, &known))),
                };
                self.report(problem.nearest(name, known));
            }
        }
    }
}
