//! The scenarios of a cover letter, and the effect of the change on each.

use std::path::{Path, PathBuf};

use pageout_sim::scenario::Scenario;

use super::build::Build;
use super::{Ask, Case, Runner, Side};
use crate::error::{Error, Failed};
use crate::result::simulate;
use crate::scenario::load::load;
use crate::scenario::own_variants;
use crate::scenario::source::{Setting, Source};
use crate::scenario::switches::Turn;
use crate::shipped::FILES;
use crate::watch::Watcher;

/// Groups of the shipped scenarios with their titles, in the order of a cover letter.
pub const GROUPS: [(&str, &str); 7] = [
    ("scenarios", "Workloads"),
    ("scenarios/mglru-v4", "Tests published with MGLRU"),
    ("scenarios/no-writeback", "Tests of the series against writes from reclaim"),
    ("scenarios/pghot", "Tests of hot-page tracking"),
    ("scenarios/zswap-lru", "A kernel build behind zswap"),
    ("scenarios/regressions", "Known bugs and complaints"),
    ("scenarios/predictions", "Predictions for a real kernel"),
];

/// The position of a group among others.
fn place(group: &str) -> usize {
    GROUPS.iter().position(|(name, _)| *name == group).unwrap_or(GROUPS.len())
}

/// Accesses that two CPUs simulate within five minutes with a release, at up to 2 us of CPU time each.
const FAST_ACCESSES: u64 = 300_000_000;

/// The folder that shipped scenarios are called by.
const SHIPPED: &str = "scenarios";

/// What is to be run, and what is not.
pub(super) struct Gathered<'a> {
    pub(super) cases: Vec<Case<Runner<'a>>>,
    pub(super) left: Vec<Left>,
    pub(super) fails_as_known: Vec<(String, String)>,
    pub(super) accesses: Option<u64>,
}

/// A scenario that is not run.
pub struct Left {
    /// The group that it belongs to.
    pub group: String,
    /// The name within the group.
    pub name: String,
    /// The reason why it is not run.
    pub why: Why,
    /// The failure, where the scenario was asked for by name and can't be read.
    pub failed: Option<Failed>,
}

/// The reason why a scenario is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It can't be read, or what is set makes no sense in it.
    Bad(String),
    /// The change makes no sense in it.
    Impossible(String),
    /// It is so already.
    Already,
    /// It is too long for --fast.
    TooLong,
    /// Its smaller form is there as well, or it is kept for long runs.
    Large,
}

/// A scenario as another build reads it.
pub struct Written {
    /// The text of its file.
    pub text: String,
    /// The folder that its relative paths start from.
    pub folder: PathBuf,
    /// The settings that change it.
    pub settings: Vec<Setting>,
    /// The seed that others are counted up from.
    pub first_seed: u64,
}

impl Why {
    /// Returns the reason in words.
    pub fn told(&self) -> String {
        match self {
            Why::Bad(why) => format!("not read: {}", why.lines().next().unwrap_or_default()),
            Why::Impossible(why) => format!("the change has no effect: {why}"),
            Why::Already => "it already has the new value".to_string(),
            Why::TooLong => "too long for --fast".to_string(),
            Why::Large => "a smaller form is run, or it takes hours; give its file to run it".to_string(),
        }
    }
}

/// A scenario file.
struct File {
    group: String,
    name: String,
    source: Result<Source, Error>,
}

/// Reads all scenarios, and makes the change in each. Errors: there are none, or none can be run.
pub(super) fn gather<'a>(
    ask: &Ask,
    build: Option<&'a Build>,
    watcher: &dyn Watcher,
) -> Result<Gathered<'a>, Error> {
    let mut left = Vec::new();
    let files = if ask.paths.is_empty() { shipped(&mut left) } else { named(&ask.paths)? };
    let mut gathered = Gathered { cases: Vec::new(), left, fails_as_known: Vec::new(), accesses: None };
    for file in files {
        let (group, name) = (file.group.clone(), file.name.clone());
        match sides(ask, file, build, watcher) {
            Ok((sides, first_seed, is_known_to_fail)) => {
                if is_known_to_fail {
                    gathered.fails_as_known.push((group.clone(), name.clone()));
                }
                gathered.cases.push(Case { group, name, first_seed, sides });
            }
            Err((why, failed)) => gathered.left.push(Left { group, name, why, failed }),
        }
    }
    if ask.fast {
        gathered.shorten(ask.repeat.most());
    }
    if gathered.cases.is_empty() {
        return Err(gathered.nothing(ask));
    }
    Ok(gathered)
}

type Sides<'a> = ([Runner<'a>; 2], u64, bool);

/// A scenario without and with the change, its first seed, and whether it is expected to fail unchanged.
fn sides<'a>(
    ask: &Ask,
    file: File,
    build: Option<&'a Build>,
    watcher: &dyn Watcher,
) -> Result<Sides<'a>, (Why, Option<Failed>)> {
    let is_named = !ask.paths.is_empty();
    let bad = |error: Error| {
        let failed = Failed::from(error);
        (Why::Bad(failed.message.clone()), is_named.then_some(failed))
    };
    let source = file.source.map_err(bad)?;
    let changes = &ask.changes;
    let base = load(&source, changes, &[], watcher).map_err(bad)?;
    let impossible = |error: Error| (Why::Impossible(first_fault(&error)), None);
    let patched = load(&source, changes, &ask.switches, watcher).map_err(impossible)?;
    // A variant without settings is the unchanged scenario.
    let mut is_known_to_fail = false;
    if base.variant.iter().any(|variant| !variant.fails.is_empty()) {
        let variants = own_variants::all(&source, changes, &base, watcher).map_err(bad)?;
        is_known_to_fail = variants.iter().any(|variant| variant.fails.is_some() && variant.scenario == base);
    }
    let first_seed = base.seed;
    let base = match build {
        None if base == patched || is_already(&base, &ask.switches) => return Err((Why::Already, None)),
        None => Runner::Here(Box::new(base)),
        Some(build) => Runner::There {
            build,
            accesses: simulate::accesses(&base),
            scenario: Written {
                text: source.text().to_string(),
                folder: source.directory().to_path_buf(),
                settings: changes.settings.clone(),
                first_seed,
            },
        },
    };
    Ok(([base, Runner::Here(Box::new(patched))], first_seed, is_known_to_fail))
}

/// Returns true if every switch already has its new value in the unchanged scenario.
fn is_already(scenario: &Scenario, switches: &[Setting]) -> bool {
    let Ok(config) = scenario.engine_config() else { return false };
    let is = |setting: &Setting| {
        let turn: Option<Turn> = setting.to_string().parse().ok();
        turn.is_some_and(|turn| turn.knob.get(&config) == turn.value)
    };
    switches.iter().all(is)
}

/// The first thing that is wrong, in a line.
fn first_fault(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string()
}

/// All bundled scenarios, except large ones that have a smaller form.
fn shipped(left: &mut Vec<Left>) -> Vec<File> {
    let mut files = Vec::new();
    for (path, text) in FILES {
        let path = Path::new(path);
        let folder = path.parent().map(Path::to_string_lossy).unwrap_or_default();
        if path.starts_with("chapters") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let group = if folder.is_empty() { SHIPPED.to_string() } else { format!("{SHIPPED}/{folder}") };
        let small = path.with_file_name(format!("{name}-small.toml"));
        let is_large = folder == "large" || FILES.iter().any(|(other, _)| Path::new(other) == small);
        if is_large {
            left.push(Left { group, name, why: Why::Large, failed: None });
            continue;
        }
        let source = Source::parse(&Path::new(SHIPPED).join(path), text.to_string());
        files.push(File { group, name, source });
    }
    // Workloads first, then tests of publications, then what is known to go wrong.
    files.sort_by_key(|file| (place(&file.group), file.group.clone(), file.name.clone()));
    files
}

/// The files at these paths, folders' in order of their names. Errors: there is nothing at a path.
fn named(paths: &[PathBuf]) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let mut found = Vec::new();
        if path.is_dir() {
            below(path, &mut found)?;
            if found.is_empty() {
                let folder = path.display();
                return Err(Error::Asked(format!("{folder}: found no scenario, expected *.toml files")));
            }
        } else {
            found.push(path.clone());
        }
        found.sort();
        files.extend(found);
    }
    let mut known: Vec<PathBuf> = Vec::new();
    files.retain(|path| {
        let is_new = !known.contains(path);
        known.push(path.clone());
        is_new
    });
    let file = |path: PathBuf| {
        let group = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File {
            group: group.to_string_lossy().into_owned(),
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            source: Source::read(&path),
        }
    };
    let mut files: Vec<File> = files.into_iter().map(file).collect();
    files.sort_by(|one, other| one.group.cmp(&other.group));
    Ok(files)
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let told = |error: std::io::Error| Error::Asked(format!("cannot read {}: {error}", folder.display()));
    for entry in std::fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.is_dir() {
            below(&path, found)?;
        } else if path.extension().is_some_and(|suffix| suffix == "toml") {
            found.push(path);
        }
    }
    Ok(())
}

impl Gathered<'_> {
    /// Keeps only the shortest scenarios that run in some minutes with N seeds.
    fn shorten(&mut self, seeds: u32) {
        let work = |case: &Case<Runner>| {
            let [base, patched] = [0, 1].map(|side: usize| case.sides[side].accesses());
            Some((base? + patched?) * u64::from(seeds))
        };
        let mut order: Vec<(Option<u64>, usize)> = self.cases.iter().map(work).zip(0..).collect();
        // Scenarios of unknown length come last.
        order.sort_by_key(|(work, at)| (work.unwrap_or(u64::MAX), *at));
        let mut all = 0u64;
        let mut is_in = vec![false; self.cases.len()];
        for (work, at) in order {
            let Some(sum) = work.and_then(|work| all.checked_add(work)).filter(|sum| *sum <= FAST_ACCESSES)
            else {
                break;
            };
            all = sum;
            is_in[at] = true;
        }
        let mut at = 0..;
        let cases = std::mem::take(&mut self.cases);
        for case in cases {
            if is_in[at.next().expect("it has no end")] {
                self.cases.push(case);
            } else {
                let Case { group, name, .. } = case;
                self.left.push(Left { group, name, why: Why::TooLong, failed: None });
            }
        }
        self.accesses = Some(all);
    }

    /// Why there is nothing to run.
    fn nothing(&self, ask: &Ask) -> Error {
        let switches: Vec<String> = ask.switches.iter().map(ToString::to_string).collect();
        let why = self.left.iter().find_map(|left| match &left.why {
            Why::Bad(why) => Some(why.clone()),
            _ => None,
        });
        let why = why.or_else(|| {
            self.left.iter().find_map(|left| match &left.why {
                Why::Impossible(why) => Some(format!("{}: {why}", switches.join(", "))),
                _ => None,
            })
        });
        let seeds = ask.repeat.most();
        let is_long = self.left.iter().any(|left| left.why == Why::TooLong);
        let why = why.or_else(|| {
            is_long.then(|| {
                format!("no scenario is short enough for --fast with {seeds} seeds\nhelp: remove --fast")
            })
        });
        let why = why.unwrap_or_else(|| {
            format!("nothing to compare: every scenario already has {}", switches.join(", "))
        });
        Error::Asked(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_the_program_brings_along_is_whole_and_of_two_sizes_the_smaller_is_run() {
        let mut left = Vec::new();
        let files = shipped(&mut left);
        assert!(files.len() > 80, "{}", files.len());
        for file in &files {
            let source = file.source.as_ref().unwrap_or_else(|error| panic!("{}: {error}", file.name));
            source.scenario(&[]).unwrap_or_else(|error| panic!("{}: {error}", file.name));
        }
        let is_left = |name: &str| left.iter().any(|left| left.name == name && left.why == Why::Large);
        assert!(is_left("linear-read-1tb") && is_left("mode1") && !is_left("mode1-small"));
        assert!(files.iter().any(|file| file.name == "mode1-small") && files[0].group == SHIPPED);
    }
}
