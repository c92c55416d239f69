//! The plan of a sweep: lists whose product are its cells, less what `[[except]]` names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pageout_record::regular;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{SEED_MAX, Scalar, Table};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::bench::{Policy, parse_policies, parse_sizes};
use crate::error::told;
use crate::scenario::source::Setting;

/// How the key of a window ends.
const READ_AHEAD_KB: &str = ".read_ahead_kb";

/// Cells that a plan has at most.
const CELLS_MAX: usize = 10_000_000;

/// As the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    traces: Vec<String>,
    #[serde(default)]
    scenarios: Vec<String>,
    #[serde(default)]
    policy: Vec<String>,
    #[serde(default)]
    memory: Vec<String>,
    read_ahead_kb: Option<u32>,
    #[serde(default)]
    untimed: bool,
    #[serde(default = "one")]
    seeds: u64,
    #[serde(default)]
    read: Table,
    #[serde(default)]
    vary: BTreeMap<String, Vec<Scalar>>,
    #[serde(default)]
    except: Vec<Except>,
}

fn one() -> u64 {
    1
}

/// Excluded cells: those that match all given values.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Except {
    trace: Option<String>,
    scenario: Option<String>,
    policy: Option<String>,
    memory: Option<String>,
    seed: Option<u64>,
}

/// The input of a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// As the plan has it, from the plan's folder.
    pub name: String,
    /// The path.
    pub path: PathBuf,
    /// A trace or a scenario.
    pub kind: InputKind,
    /// The hash of its bytes; nothing if it can't be read.
    pub hash: Option<String>,
}

/// An input with the bytes of an earlier one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct EqualInput {
    /// The input, as the plan has it.
    #[serde(rename = "input")]
    pub name: String,
    /// The earlier one, whose name the rows have.
    #[serde(rename = "equals")]
    pub first: String,
}

/// The kind of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputKind {
    /// Accesses, for textbook policies and for the machine.
    Trace,
    /// A machine with its load.
    Scenario,
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// A hash of all that its result depends on.
    pub key: String,
    /// The number of its input in the plan.
    pub input: usize,
    /// The policy; that of the scenario where none is named.
    pub policy: Option<Policy>,
    /// The memory of a trace.
    pub memory: Option<Limit>,
    /// The seed of every random choice.
    pub seed: u64,
    /// Keys that are set.
    pub settings: Vec<Setting>,
}

/// A plan with its cells.
pub struct Plan {
    /// Version and commit of the program that runs it.
    pub build: String,
    /// The read options of traces.
    pub read: Table,
    /// The readahead of files in the machine, in KiB; that of the trace if the plan does not specify it.
    pub read_ahead_kb: Option<u32>,
    /// True if kernel policies replay traces without a clock.
    pub untimed: bool,
    /// Traces and scenarios, in the order of their names.
    pub inputs: Vec<Input>,
    /// All cells, those of an input one after the other.
    pub cells: Vec<Cell>,
}

impl EqualInput {
    /// Says what the equal bytes lead to.
    pub fn note(&self) -> String {
        let EqualInput { name, first } = self;
        format!("note: {name} has the same bytes as {first}: the rows of {first} stand for both")
    }
}

impl Plan {
    /// Reads a plan. `build` says which program runs it: another may have other rules. Errors: the plan can't be read or makes no sense; a trace
    /// that can't be read is none.
    pub fn read(path: &Path, build: &str) -> Result<Plan, Error> {
        let wrong = |why: String| Error::asked(format!("{}: {why}", path.display()));
        let text = regular::read_text(path, PLAN_MAX)
            .map_err(|error| wrong(format!("cannot read the plan: {}", told(&error))))?;
        let written: Written = toml_edit::de::from_str(&text)
            .map_err(|error| wrong(format!("{}\nhelp: {HELP}", error.to_string().trim_end())))?;
        let seeds = written.seeds;
        if !(1..=10_000).contains(&seeds) {
            return Err(wrong(format!("seeds: found {seeds}, expected a whole number from 1 to 10000")));
        }
        if written.traces.is_empty() == written.scenarios.is_empty() {
            return Err(wrong(format!(
                "expected either `traces` or `scenarios`, with files or patterns such as [\"traces/*.pgt\"]\nhelp: {HELP}"
            )));
        }
        let is_of_traces = !written.traces.is_empty();
        if is_of_traces && (written.policy.is_empty() || written.memory.is_empty()) {
            return Err(wrong(
                "traces need `policy` and `memory`, for example policy = [\"lru\", \"opt\"], memory = [\"1%..80%/12log\"]".to_string(),
            ));
        }
        if !is_of_traces && !written.memory.is_empty() {
            return Err(wrong(
                "`memory` works with traces only; scenarios have their own limits: [vary] \"memcg./web.memory.max\" = [\"1GiB\", \"2GiB\"]".to_string(),
            ));
        }
        let within = |key: &'static str| {
            move |error: Error| {
                wrong(format!(
                    "{key}: {}",
                    error.to_string().replacen("--policy: ", "", 1).replacen("--memory ", "", 1)
                ))
            }
        };
        let policies = parse_policies(&written.policy).map_err(within("policy"))?;
        let limits = parse_sizes(&written.memory).map_err(within("memory"))?;
        if let Some(policy) = policies.iter().find(|policy| !is_of_traces && policy.textbook().is_some()) {
            return Err(wrong(format!(
                "policy: `{}` is a textbook policy, but scenarios need one of the full simulator, for example classic@6.12 or lru@machine",
                policy.name()
            )));
        }
        let (patterns, kind) = match is_of_traces {
            true => (&written.traces, InputKind::Trace),
            false => (&written.scenarios, InputKind::Scenario),
        };
        let inputs = inputs(path, patterns, kind).map_err(wrong)?;
        let combinations = combinations(&written.vary).map_err(wrong)?;
        if !is_of_traces && written.read_ahead_kb.is_some() {
            return Err(wrong(
                "`read_ahead_kb` works with traces only; a scenario sets it per device: [vary] \"device.nvme.read_ahead_kb\" = [0, 128]".to_string(),
            ));
        }
        written.check_untimed().map_err(wrong)?;
        let mut policies = policies;
        let (own, read_ahead_kb) = (policies.len(), written.read_ahead_kb);
        let build = build.to_string();
        let (read, untimed) = (written.read, written.untimed);
        let mut plan = Plan { build, read, read_ahead_kb, untimed, inputs, cells: Vec::new() };
        let has_bound = policies.iter().any(Policy::is_bound);
        if is_of_traces && !has_bound && policies.iter().any(|policy| policy.textbook().is_none()) {
            policies.push(Policy::Textbook("opt".parse().expect("it is a policy")));
        }
        let policies: Vec<Option<Policy>> = match policies.is_empty() {
            true => vec![None],
            false => policies.into_iter().map(Some).collect(),
        };
        let limits: Vec<Option<Limit>> = match limits.is_empty() {
            true => vec![None],
            false => limits.into_iter().map(Some).collect(),
        };
        let most = plan.inputs.len() * policies.len() * limits.len() * combinations.len() * seeds as usize;
        if most > CELLS_MAX {
            return Err(wrong(format!("found {most} cells, expected at most {CELLS_MAX}: split the plan")));
        }
        let mut is_used = vec![false; written.except.len()];
        // Inputs of equal bytes have the same cells, which run once.
        let mut shared = BTreeSet::new();
        for input in 0..plan.inputs.len() {
            let is_shared = plan.is_shared(input);
            // The bound is listed next to policies that read ahead.
            let reads_ahead = has_bound || plan.reads_ahead(input, &combinations);
            for (at, policy) in policies.iter().enumerate() {
                if at >= own.max(1) && !reads_ahead {
                    continue;
                }
                let textbook = policy.as_ref().and_then(Policy::textbook);
                // What sees pages alone knows no key of a machine, and only who draws has several seeds.
                let combinations = if textbook.is_some() { &combinations[..0] } else { &combinations[..] };
                let none = [Vec::new()];
                let combinations = if combinations.is_empty() { &none[..] } else { combinations };
                let seeds = if textbook.is_some_and(|choice| !choice.may_draw()) { 1 } else { seeds };
                for memory in &limits {
                    for settings in combinations {
                        for seed in (1..=seeds).filter(|seed| *seed <= SEED_MAX) {
                            let cell = Cell {
                                key: String::new(),
                                input,
                                policy: policy.clone(),
                                memory: *memory,
                                seed,
                                settings: settings.clone(),
                            };
                            let excepted = written
                                .except
                                .iter()
                                .position(|except| except.names(&cell, &plan.inputs[input]));
                            match excepted {
                                Some(at) => is_used[at] = true,
                                None => {
                                    let key = plan.key(&cell);
                                    if !is_shared || shared.insert(key.clone()) {
                                        plan.cells.push(Cell { key, ..cell });
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        if let Some(at) = is_used.iter().position(|is_used| !is_used) {
            return Err(wrong(format!("[[except]] number {} excludes no cell: is a name misspelt?", at + 1)));
        }
        if plan.cells.is_empty() {
            return Err(wrong("[[except]]: found no cell left, expected at least one".to_string()));
        }
        Ok(plan)
    }

    /// Returns true if another input has the same bytes.
    fn is_shared(&self, input: usize) -> bool {
        let hash = &self.inputs[input].hash;
        hash.is_some() && self.inputs.iter().filter(|other| other.hash == *hash).count() > 1
    }

    /// Inputs that have the bytes of an earlier one, which stands for them in all rows.
    pub fn equal_inputs(&self) -> Vec<EqualInput> {
        let equal = |(at, input): (usize, &Input)| {
            let first =
                self.inputs[..at].iter().find(|other| other.hash.is_some() && other.hash == input.hash)?;
            Some(EqualInput { name: input.name.clone(), first: first.name.clone() })
        };
        self.inputs.iter().enumerate().filter_map(equal).collect()
    }

    /// Returns true if policies of the machine read a trace ahead in some cell.
    fn reads_ahead(&self, input: usize, combinations: &[Vec<Setting>]) -> bool {
        let window =
            |setting: &Setting| setting.key.ends_with(READ_AHEAD_KB).then(|| setting.value.to_string());
        let mut varied = combinations.iter().flatten().filter_map(window).peekable();
        if varied.peek().is_some() {
            return varied.any(|kib| kib != "0");
        }
        let has_neighbours = || {
            let options = self.read.options().unwrap_or_default();
            // What can't be read fails in its cells.
            pageout_workload::trace::has_neighbours(&self.inputs[input].path, &options).unwrap_or(false)
        };
        self.read_ahead_kb.map_or_else(has_neighbours, |kib| kib > 0)
    }

    fn key(&self, cell: &Cell) -> String {
        let mut hash = blake3::Hasher::new();
        let mut add = |part: &str| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        let input = &self.inputs[cell.input];
        add(&self.build);
        // The bytes, whatever they are called; what can't be read has but its name.
        add(input.hash.as_deref().unwrap_or(&input.name));
        add(&serde_json::to_string(&self.read).expect("a table is JSON"));
        add(&cell.policy.as_ref().map(Policy::name).unwrap_or_default());
        // The code of what was brought may be another under the same name.
        cell.policy.as_ref().and_then(Policy::hash).into_iter().for_each(&mut add);
        add(&cell.memory.map(label).unwrap_or_default());
        add(&cell.seed.to_string());
        cell.settings.iter().for_each(|setting| add(&setting.to_string()));
        let is_machine = cell.policy.as_ref().is_some_and(|policy| policy.textbook().is_none());
        if self.untimed && is_machine {
            add("untimed");
        }
        self.read_ahead_kb.filter(|_| is_machine).iter().for_each(|kib| add(&format!("read_ahead_kb {kib}")));
        hash.finalize().to_hex()[..32].to_string()
    }
}

impl Written {
    /// Refuses what has no effect without a clock.
    fn check_untimed(&self) -> Result<(), String> {
        if !self.untimed {
            return Ok(());
        }
        if self.traces.is_empty() {
            return Err("`untimed` works with traces only, which one task reads".to_string());
        }
        match self.vary.keys().find(|key| needs_clock(key)) {
            None => Ok(()),
            Some(key) => Err(format!(
                "[vary] {key}: found `untimed = true` as well, with which this key has no effect\nhelp: remove one of them"
            )),
        }
    }
}

/// Returns true if a key changes nothing but times.
fn needs_clock(key: &str) -> bool {
    let is_of_device = key.starts_with("device.") && !key.ends_with(READ_AHEAD_KB);
    is_of_device
        || key.starts_with("machine.price.")
        || key == "machine.costs"
        || key.ends_with(".think_time")
}

impl Cell {
    /// Returns true if it is one of this shard, of so many, from 0 on. Each shard has some cells of each trace.
    pub fn is_of(&self, shard: u32, of: u32) -> bool {
        let start = u64::from_str_radix(&self.key[..16], 16).expect("a key is of hexadecimal digits");
        start % u64::from(of) == u64::from(shard)
    }

    /// Its memory as the plan has it.
    pub fn memory(&self) -> Option<String> {
        self.memory.map(label)
    }
}

impl Except {
    fn names(&self, cell: &Cell, input: &Input) -> bool {
        let is_input = |name: &Option<String>, kind: InputKind| {
            name.as_ref().is_none_or(|name| kind == input.kind && *name == input.name)
        };
        let policy = cell.policy.as_ref().map(Policy::name);
        let is_memory = |memory: &String| cell.memory.is_some_and(|limit| memory.parse() == Ok(limit));
        is_input(&self.trace, InputKind::Trace)
            && is_input(&self.scenario, InputKind::Scenario)
            && self.policy.as_ref().is_none_or(|name| policy.as_ref() == Some(name))
            && self.memory.as_ref().is_none_or(is_memory)
            && self.seed.is_none_or(|seed| seed == cell.seed)
    }
}

fn label(limit: Limit) -> String {
    match limit {
        Limit::Percent(percent) => format!("{percent}%"),
        Limit::Size(size) => size.to_string(),
        Limit::Max => "max".to_string(),
    }
}

/// The files of all patterns, each once. A name without a pattern need not be there: its cells fail.
fn inputs(plan: &Path, patterns: &[String], kind: InputKind) -> Result<Vec<Input>, String> {
    let folder = plan.parent().unwrap_or(Path::new(""));
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for pattern in patterns {
        if !pattern.contains(['*', '?', '[']) {
            found.insert(pattern.clone(), folder.join(pattern));
            continue;
        }
        let paths = matching(&folder.join(pattern).to_string_lossy())?;
        if paths.is_empty() {
            return Err(format!("no file matches `{pattern}` (from {})", folder.join(".").display()));
        }
        for path in paths {
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            found.insert(name, path);
        }
    }
    let input = |(name, path): (String, PathBuf)| {
        let hash = content_hash(&path);
        Input { name, path, kind, hash }
    };
    Ok(found.into_iter().map(input).collect())
}

/// The files of a pattern, in the order of their names. Errors: the pattern is invalid, or a folder can't be read.
pub fn matching(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let paths = glob::glob(pattern).map_err(|error| format!("invalid pattern `{pattern}`: {error}"))?;
    paths.map(|path| path.map_err(|error| error.to_string())).collect()
}

/// Bytes that a plan has at most.
const PLAN_MAX: u64 = 16 << 20;

/// Where the keys of a plan are described.
const HELP: &str = "`pageout help sweep` shows a plan with its keys";

/// The hash of a file's bytes, as in rows; nothing if it cannot be read.
pub fn content_hash(path: &Path) -> Option<String> {
    let mut hash = blake3::Hasher::new();
    regular::check(path, u64::MAX).ok()?;
    let mut file = fs::File::open(path).ok()?;
    std::io::copy(&mut file, &mut hash).ok()?;
    Some(hash.finalize().to_hex()[..32].to_string())
}

/// All combinations of the values of all keys.
fn combinations(vary: &BTreeMap<String, Vec<Scalar>>) -> Result<Vec<Vec<Setting>>, String> {
    let mut all: Vec<Vec<Setting>> = vec![Vec::new()];
    for (key, values) in vary {
        if values.is_empty() {
            return Err(format!("[vary] {key}: found an empty list"));
        }
        let mut next = Vec::with_capacity(all.len() * values.len());
        for before in &all {
            for value in values {
                let setting =
                    format!("{key}={value}").parse().map_err(|why| format!("[vary] {key}: {why}"))?;
                next.push(before.iter().cloned().chain([setting]).collect());
            }
        }
        all = next;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Plan, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.toml");
        fs::write(directory.path().join("a.u32"), [1, 0, 0, 0]).unwrap();
        fs::write(&path, text).unwrap();
        Plan::read(&path, "build").map_err(|error| error.to_string())
    }

    const PLAN: &str = "traces = ['a.u32']\npolicy = ['lru', 'random', 'classic@6.12']\nmemory = ['10%', '20%']\nseeds = 3\n\
        vary.\"task.replay.think_time\" = ['1us', '2us']\n";

    #[test]
    fn a_plan_is_the_product_of_its_lists_as_far_as_they_matter() {
        let plan = read(PLAN).unwrap();
        // Two sizes: of lru one seed, of random three, of the machine three with two settings, and of the bound, as that reads ahead, one.
        assert_eq!(plan.cells.len(), 2 * (1 + 3 + 3 * 2 + 1));
        let mut keys: Vec<&str> = plan.cells.iter().map(|cell| cell.key.as_str()).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), plan.cells.len());
        for of in 1..5 {
            let shard = |shard| plan.cells.iter().filter(|cell| cell.is_of(shard, of)).count();
            assert_eq!((0..of).map(shard).sum::<usize>(), plan.cells.len());
        }
    }

    #[test]
    fn bound_is_added_only_where_a_machine_reads_ahead() {
        let policies = |more: &str| {
            let text = format!("traces = ['a.u32']\npolicy = ['classic@6.12']\nmemory = ['10%']\n{more}");
            let plan = read(&text).unwrap();
            plan.cells.iter().filter_map(|cell| cell.policy.as_ref().map(Policy::name)).collect::<Vec<_>>()
        };
        assert_eq!(policies(""), ["classic@6.12", "opt"]);
        assert_eq!(policies("read_ahead_kb = 0\n"), ["classic@6.12"]);
        assert_eq!(policies("read_ahead_kb = 64\n"), ["classic@6.12", "opt"]);
        assert_eq!(policies("read.page_ids = 'dense'\n"), ["classic@6.12"]);
        let both = policies("read_ahead_kb = 0\nvary.'device.nvme.read_ahead_kb' = [0, 128]\n");
        assert_eq!(both, ["classic@6.12", "classic@6.12", "opt"]);
        let untimed = read(&format!("{PLAN}untimed = true\n").replace("vary", "#"));
        let timed = read(&PLAN.replace("vary", "#")).unwrap();
        let is_known = |cell: &Cell| timed.cells.iter().any(|other| other.key == cell.key);
        assert!(
            untimed
                .unwrap()
                .cells
                .iter()
                .all(|cell| is_known(cell) == cell.policy.as_ref().unwrap().textbook().is_some())
        );
        let refused = read("scenarios = ['s.toml']\nread_ahead_kb = 0\n").err().unwrap();
        assert!(refused.contains("`read_ahead_kb` works with traces only"), "{refused}");
    }

    #[test]
    fn keys_do_not_depend_on_the_order_of_the_plan() {
        let one = read(PLAN).unwrap();
        let other = read(&PLAN.replace("'lru', 'random'", "'random', 'lru'")).unwrap();
        let keys = |plan: &Plan| {
            plan.cells.iter().map(|cell| cell.key.clone()).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(keys(&one), keys(&other));
    }

    #[test]
    fn inputs_of_equal_bytes_are_named_and_run_once() {
        let directory = tempfile::tempdir().unwrap();
        for (name, page) in [("a.u32", 1), ("b.u32", 2), ("c.u32", 1)] {
            fs::write(directory.path().join(name), [page, 0, 0, 0]).unwrap();
        }
        let path = directory.path().join("plan.toml");
        let plan = |more: &str| {
            let text =
                format!("traces = ['*.u32']\npolicy = ['lru', 'fifo']\nmemory = ['10%', '20%']\n{more}");
            fs::write(&path, text).unwrap();
            Plan::read(&path, "build").unwrap()
        };
        let equal = |plan: &Plan| {
            plan.equal_inputs().into_iter().map(|equal| (equal.name, equal.first)).collect::<Vec<_>>()
        };
        let all = plan("");
        assert_eq!(equal(&all), [("c.u32".to_string(), "a.u32".to_string())]);
        assert_eq!(all.cells.len(), 2 * 2 * 2);
        // An excluded cell of the first is still one of the second.
        let part = plan("[[except]]\ntrace = 'a.u32'\npolicy = 'lru'\n");
        assert_eq!(part.cells.iter().filter(|cell| cell.input == 2).count(), 2);
        assert_eq!(part.cells.len(), 2 * 2 * 2);
    }

    #[test]
    fn what_is_excepted_is_left_out() {
        let plan = read(&format!("{PLAN}[[except]]\npolicy = 'lru'\nmemory = '20%'\n")).unwrap();
        assert_eq!(plan.cells.len(), 21);
        let nothing = read(&format!("{PLAN}[[except]]\npolicy = 'lur'\n")).err().unwrap();
        assert!(nothing.contains("[[except]] number 1 excludes no cell"), "{nothing}");
    }

    #[test]
    fn a_plan_that_makes_no_sense_says_why() {
        for (text, why) in [
            ("traces = ['a.u32']", "need `policy` and `memory`"),
            ("policy = ['lru']", "either `traces` or `scenarios`"),
            ("traces = ['a.u32']\npolcy = ['lru']", "line 2"),
            ("traces = ['a.u32']\npolicy = ['lur']\nmemory = ['1%']", "did you mean `lru`?"),
            ("traces = ['a.u32']\npolicy = ['lru']\nmemory = ['1x']", "memory: 1x"),
            ("traces = ['a.u32']\npolicy = ['lru']\nmemory = ['1%']\nseeds = 0", "seeds: found 0"),
            ("traces = ['*.pgt']\npolicy = ['lru']\nmemory = ['1%']", "no file matches `*.pgt`"),
            ("scenarios = ['a.toml']\npolicy = ['lru']", "scenarios need one of the full simulator"),
            ("scenarios = ['a.toml']\nmemory = ['1%']", "`memory` works with traces only"),
            ("scenarios = ['a.toml']\nuntimed = true", "`untimed` works with traces only"),
            (
                "traces = ['a.u32']\npolicy = ['lru']\nmemory = ['1%']\nuntimed = true\nvary.'task.replay.think_time' = ['1us']",
                "[vary] task.replay.think_time: found `untimed = true` as well",
            ),
        ] {
            let told = read(text).err().unwrap();
            assert!(told.contains(why) && told.contains("plan.toml"), "{why}: {told}");
        }
    }
}
