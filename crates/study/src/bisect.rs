//! Bisecting versions of the kernel: which rule changed a figure between two of them.
//!
//! ```text
//!   from ─────────────────────────────────────────────► to          the whole change of the figure
//!   from + rule ──────► brought alone                               every rule that differs, by the date at which it came
//!                                 to - rule ──────────► gone without it
//! ```
//! A rule is the cause if it causes the change alone, and the change is gone without it. If no rule is, smaller and smaller sets of rules
//! are tried in the older version (`search.rs`), until each rule of a set is needed. The scenario's own settings hold in both versions, so
//! they do not differ.

mod measure; // what is measured, and shares of its change
mod rules; // rules that differ
mod search; // the smallest set that does it

use std::path::PathBuf;

use pageout_engine::{Kernel, Lists, Version};
use pageout_sim::scenario::Scenario;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::check::holds;
use crate::error::Error;
use crate::figures;
use crate::json::merged;
use crate::result::effect;
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::load::{Changes, load};
use crate::scenario::own_variants;
use crate::scenario::source::{Setting, Source};
use crate::watch::{Watcher, name_of};
use measure::{HALF, MOST, telling_figure};
use rules::{Differing, kernel_of, rules_between};

pub use measure::{Measure, Share};
pub use rules::Rule;

/// The versions of the kernel to compare, and the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, or `-`, standard input.
    pub scenario: PathBuf,
    /// The changes of the scenario, in both versions.
    pub changes: Changes,
    /// A variant of the scenario, by its name. Default: the scenario unchanged.
    pub variant: Option<String>,
    /// The older version, such as `6.1`.
    pub from: String,
    /// The newer version.
    pub to: String,
    /// The lists in both versions, `classic` or `mglru`. Default: the scenario's, or the version's own.
    pub lists: Option<String>,
    /// The figure to judge by, or `fails`. Default: the one that differs most.
    pub judge_by: Option<String>,
    /// Runs of each side, with seeds counted up from the scenario's. 1 or more; default 5.
    pub repeat: u32,
    /// Runs at the same time; 0, the default, is one per CPU.
    pub jobs: usize,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            scenario: PathBuf::new(),
            changes: Changes::default(),
            variant: None,
            from: String::new(),
            to: String::new(),
            lists: None,
            judge_by: None,
            repeat: 5,
            jobs: 0,
        }
    }
}

impl Ask {
    /// Both versions. Errors: one is not known; they are not in the order of time.
    pub fn versions(&self) -> Result<[Version; 2], Error> {
        let version = |option: &str, text: &str| {
            let wrong = || format!("{option}: unknown kernel version `{text}`; {}", Version::KNOWN);
            Version::parse(text).ok_or_else(|| Error::Asked(wrong()))
        };
        let [from, to] = [version("--from", &self.from)?, version("--to", &self.to)?];
        let is_set = |key: &str| self.changes.settings.iter().any(|setting| setting.key == key);
        let undone =
            [("kernel.version", true, "--from and --to"), ("kernel.lists", self.lists.is_some(), "--lists")];
        if let Some((key, _, by)) = undone.into_iter().find(|&(key, is_given, _)| is_given && is_set(key)) {
            return Err(Error::Asked(format!("{key} is set, and {by} would undo it: leave one of them out")));
        }
        match from.cmp(&to) {
            std::cmp::Ordering::Less => Ok([from, to]),
            std::cmp::Ordering::Equal => Err(Error::Asked(format!(
                "--from and --to: found {from} twice, expected two versions\nhelp: for example --from 6.1 --to 6.12"
            ))),
            std::cmp::Ordering::Greater => {
                Err(Error::Asked(format!("--from {from} is later than --to {to}\nhelp: exchange them")))
            }
        }
    }

    /// The scenario, or its variant, in a version that an option names.
    fn scenario_in(
        &self,
        source: &Source,
        version: Version,
        option: &'static str,
        watcher: &dyn Watcher,
    ) -> Result<Scenario, Error> {
        let setting = |key: &str, value: String, option: &'static str| Setting {
            key: key.to_string(),
            value,
            option,
            written_at: None,
        };
        let mut more = vec![setting("kernel.version", version.to_string(), option)];
        if let Some(lists) = &self.lists {
            let wrong = || format!("--lists {lists}: expected `classic` or `mglru`");
            let lists = Lists::by_name(lists).ok_or_else(|| Error::Asked(wrong()))?;
            more.push(setting("kernel.lists", lists.name().to_string(), "--lists"));
        }
        let scenario = load(source, &self.changes, &more, watcher)?;
        match &self.variant {
            Some(name) => own_variants::one(source, &self.changes, &scenario, name, &more, watcher),
            None => Ok(scenario),
        }
    }
}

/// What one rule brings.
struct Side {
    /// The older version with this rule of the newer one.
    alone: Runs,
    /// The newer version with this rule of the older one.
    without: Runs,
}

/// The share of the change that each differing rule causes.
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The scenario's file.
    pub source: Source,
    /// The scenario in the older version.
    pub from: Scenario,
    /// The scenario in the newer version.
    pub to: Scenario,
    /// The rules that differ, in the order in which they came.
    pub rules: Vec<Rule>,
    /// Rules that differ, but are not read with the lists that the scenario has: they are not run.
    pub unread: Vec<&'static str>,
    /// The runs of both versions.
    pub ends: [Runs; 2],
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// The requested figure, or the figure that distinguishes the versions.
    pub measure: Option<Measure>,
    /// By rule; empty where nothing differs.
    sides: Vec<Side>,
    /// Rules that bring it together, where none does alone, and how much of it.
    set: Option<(Vec<usize>, Option<Share>)>,
}

/// Runs both versions of a scenario, finds the figure that differs unless one is asked for, and turns every rule that differs. A version in
/// which the scenario fails is a result. Errors: a version, the figure or the scenario makes no sense; a version of the scenario is none of
/// the kernel; as of [`Plan::run`].
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let [from, to] = ask.versions()?;
    let figure = ask.judge_by.as_deref().map(Measure::called).transpose()?;
    let source = Source::read(&ask.scenario)?;
    let from = ask.scenario_in(&source, from, "--from", watcher)?;
    let to = ask.scenario_in(&source, to, "--to", watcher)?;
    for scenario in [&from, &to] {
        let name = scenario.kernel.name();
        if Kernel::of_name(&name).is_none() {
            return Err(Error::Asked(format!(
                "`{name}` is not a kernel version, so it has no rules to compare"
            )));
        }
    }
    let plan = Plan { name: name_of(&ask.scenario), repeat: ask.repeat, jobs: ask.jobs, watcher };
    let Differing { rules, unread } = rules_between(&from, &to);
    watcher.heed_stop();
    let Made { variants, extent } = plan.run(&[from.clone(), to.clone()])?;
    let ends: [Runs; 2] = variants.try_into().expect("two scenarios were run");
    let measure = figure.or_else(|| telling_figure(&ends));
    let (ask, sides, set) = (ask.clone(), Vec::new(), None);
    let mut answer = Answer { ask, source, from, to, rules, unread, ends, extent, measure, sides, set };
    if let Some(measure) = answer.measure
        && !answer.extent.is_interrupted()
        && measure.change(&answer.ends).is_ok()
    {
        answer.turn_each(&plan)?;
        answer.search(&plan, measure)?;
    }
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// Runs every rule alone, and all but it.
    fn turn_each(&mut self, plan: &Plan) -> Result<(), Error> {
        let alone = self.rules.iter().map(|rule| rule.turn(true).applied(self.from.clone()));
        let without = self.rules.iter().map(|rule| rule.turn(false).applied(self.to.clone()));
        let scenarios: Vec<Scenario> = alone.chain(without).collect();
        let Made { variants, extent } = plan.run(&scenarios)?;
        self.extent = self.extent.and(&extent);
        let mut variants = variants.into_iter();
        let alone: Vec<Runs> = variants.by_ref().take(self.rules.len()).collect();
        self.sides =
            alone.into_iter().zip(variants).map(|(alone, without)| Side { alone, without }).collect();
        Ok(())
    }

    /// Looks for rules that do it together, unless one does it alone.
    fn search(&mut self, plan: &Plan, measure: Measure) -> Result<(), Error> {
        if self.extent.is_interrupted() || self.culprits().next().is_some() {
            return Ok(());
        }
        let change = measure.change(&self.ends).expect("the versions differ in it");
        let mut shares: Vec<(Vec<usize>, Option<Share>)> = Vec::new();
        let all: Vec<usize> = (0..self.rules.len()).collect();
        let set = search::smallest(&all, |set| {
            let turned = set
                .iter()
                .fold(self.from.clone(), |scenario, &at| self.rules[at].turn(true).applied(scenario));
            let Made { variants, extent } = plan.run(&[turned])?;
            self.extent = self.extent.and(&extent);
            if extent.is_interrupted() {
                return Ok(None);
            }
            let share = measure.share(&self.ends[0], &variants[0], change);
            shares.push((set.to_vec(), share));
            Ok::<_, Error>(Some(share.is_some_and(Share::is_most)))
        })?;
        self.set = set.map(|set| {
            let share = shares.iter().find(|(of, _)| *of == set).and_then(|(_, share)| *share);
            (set, share)
        });
        Ok(())
    }

    /// Returns the share that a rule brings alone, and the share that is gone without it.
    pub fn shares(&self, at: usize) -> [Option<Share>; 2] {
        let (Some(measure), Some(change), Some(side)) = (self.measure, self.change(), self.sides.get(at))
        else {
            return [None, None];
        };
        [
            measure.share(&self.ends[0], &side.alone, change),
            // The share that is gone: the change from `without` to the newer version.
            measure.share(&side.without, &self.ends[1], change),
        ]
    }

    /// Returns true if turning a rule, by its place, changes the figure in no run at all.
    pub fn is_idle(&self, at: usize) -> bool {
        let is_nothing = |share: &Option<Share>| {
            share.is_some_and(|share| share.share == 0.0 && share.half_width.is_none_or(|width| width == 0.0))
        };
        self.shares(at).iter().all(is_nothing)
    }

    /// Rules, by their places, that bring most of the change alone, and without which most of it is gone.
    pub fn culprits(&self) -> impl Iterator<Item = usize> {
        (0..self.rules.len())
            .filter(|&at| self.shares(at).iter().all(|share| share.is_some_and(Share::is_most)))
    }

    /// The index of the rule of a set that is the main cause: without it most of the change is gone, alone it causes at least half, and no
    /// other rule causes a fifth alone.
    fn main(&self) -> Option<usize> {
        let (set, _) = self.set.as_ref()?;
        let alone = |at: usize| self.shares(at)[0].map_or(0.0, |share| share.share);
        let is_main = |&at: &usize| {
            let is_gone_without = self.shares(at)[1].is_some_and(Share::is_most);
            let others = (0..self.rules.len()).filter(|&other| other != at);
            is_gone_without && alone(at) >= HALF && others.map(alone).all(|share| share < 1.0 - MOST)
        };
        set.iter().copied().find(is_main)
    }

    /// The whole change of the figure; nothing where there is none, or a version has no figure.
    pub fn change(&self) -> Option<f64> {
        self.measure?.change(&self.ends).ok()
    }

    /// Returns the number of seeds that would confirm the named rule; `None` if the seeds are enough, or no rule is named.
    pub fn seeds_missing(&self) -> Option<u32> {
        let of_one = self.culprits().flat_map(|at| self.shares(at));
        let of_set = self.set.as_ref().and_then(|(_, share)| *share);
        let shares = of_one.flatten().chain(of_set);
        shares.filter_map(|share| share.seeds_missing(self.extent.seeds)).max()
    }

    /// That these shares take more seeds to be sure of, in a sentence; nothing where they don't.
    fn more_seeds(&self, shares: impl IntoIterator<Item = Share>) -> String {
        let seeds = shares.into_iter().filter_map(|share| share.seeds_missing(self.extent.seeds)).max();
        seeds.map_or(String::new(), |seeds| {
            format!(
                " More seeds are needed to confirm it: with {}, the interval includes less than half of the change. Try --repeat {seeds}.",
                figures::counted(self.extent.seeds.into(), "seed")
            )
        })
    }

    /// Returns the verdict in sentences.
    pub fn verdict(&self) -> Vec<String> {
        let Some(measure) = self.measure else {
            let seeds = self.extent.seeds_from(self.from.seed);
            return vec![format!("No figure differs between the two versions beyond noise ({seeds}).")];
        };
        if let Err(why) = measure.change(&self.ends)
            && !self.extent.is_interrupted()
        {
            return vec![format!("{}.", effect::capitalised(&why))];
        }
        let mut says: Vec<String> = self
            .culprits()
            .map(|at| {
                let shares = self.shares(at).map(|share| share.expect("it is most"));
                let [alone, without] = shares.map(Share::show);
                let open = self.more_seeds(shares);
                let did = if open.is_empty() { "caused it" } else { "may have caused it" };
                format!(
                    "{} {did} ({} → {}): alone it causes {alone} of the change in {}; without it {without} of the change is gone.{open} {}",
                    self.rules[at].knob.name(),
                    self.rules[at].from,
                    self.rules[at].to,
                    measure.title(),
                    self.rules[at].knob.doc()
                )
            })
            .collect();
        if let Some((set, share)) = &self.set {
            let names: Vec<&str> = set.iter().map(|&at| self.rules[at].knob.name()).collect();
            let open = self.more_seeds(*share);
            let share = share.map(|share| format!(" {} of the change", share.show())).unwrap_or_default();
            says.push(match (names.as_slice(), self.main()) {
                ([one], _) => format!("{one} causes{share} alone, but other rules cause it as well: without {one} most of the change remains.{open}"),
                (_, Some(main)) => {
                    let rule = &self.rules[main];
                    let [alone, without] = self.shares(main).map(|share| share.map(Share::show).unwrap_or_default());
                    let others: Vec<&str> =
                        set.iter().filter(|&&at| at != main).map(|&at| self.rules[at].knob.name()).collect();
                    format!(
                        "{} caused it ({} → {}): without it {without} of the change in {} is gone. Alone it \
                         causes {alone}, together with {}{share}.{open} {}",
                        rule.knob.name(),
                        rule.from,
                        rule.to,
                        measure.title(),
                        others.join(" and "),
                        rule.knob.doc()
                    )
                }
                (names, None) => format!(
                    "No single rule caused it. Together {} cause{share}; each of them is needed.{open}",
                    names.join(" and ")
                ),
            });
        }
        if says.is_empty() {
            says.push(match self.extent.is_interrupted() {
                true => "The cause was not found.".to_string(),
                false => {
                    "No set of rules causes most of the change: it may be noise, or its cause is not modelled."
                        .to_string()
                }
            });
        }
        says
    }

    /// Rules whose value in one of the versions is not known.
    pub fn doubts(&self) -> Vec<String> {
        let doubts = self.rules.iter().flat_map(|rule| {
            let versions = self.versions();
            let told = rule.known.iter().zip(versions).filter(|(how, _)| how.starts_with("not known"));
            told.map(|(how, version)| format!("{} in {version}: {how}", rule.knob.name()))
        });
        doubts.collect()
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let (rules, sides) = (self.rules.len(), self.sides.len());
        holds!(sides == 0 || sides == rules, "{rules} rules differ, but {sides} were changed");
        let has_change = self.change().is_some() && !self.extent.is_interrupted();
        holds!(!has_change || sides == rules, "the figure changes, but no rule was changed");
        let same = self.rules.iter().find(|rule| rule.from == rule.to);
        holds!(same.is_none(), "the list has a rule that does not differ");
        let since = self.rules.iter().map(|rule| (rule.since.is_none(), rule.since));
        holds!(since.is_sorted(), "rules are not in the order of their versions");
        let twice = self.rules.iter().any(|rule| self.unread.contains(&rule.knob.name()));
        holds!(!twice, "a rule was changed, but it is listed as unread");
        let Some((set, _)) = &self.set else { return Ok(()) };
        holds!(set.iter().all(|&at| at < rules), "a set has a rule that is not in the list");
        holds!(
            self.culprits().next().is_none(),
            "a set is listed, although one rule causes the change alone"
        );
        Ok(())
    }

    /// Both versions.
    pub fn versions(&self) -> [Version; 2] {
        [&self.from, &self.to].map(|scenario| kernel_of(scenario).version)
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let rules: Vec<Value> = (self.rules.iter().enumerate())
            .map(|(at, rule)| {
                let [alone, without] = self.shares(at).map(|share| share.map(Share::json));
                let shown = |side: fn(&Side) -> &Runs| {
                    self.measure.zip(self.sides.get(at)).map(|(measure, of)| measure.show(side(of)))
                };
                json!({
                    "rule": rule.knob.name(),
                    "from": rule.from,
                    "to": rule.to,
                    "since": rule.since_text(),
                    "known": { "from": rule.known[0], "to": rule.known[1] },
                    "alone": { "brings": alone, "figure": shown(|side| &side.alone) },
                    "without": { "gone": without, "figure": shown(|side| &side.without) },
                })
            })
            .collect();
        let named = |at: usize| self.rules[at].knob.name();
        let found: Vec<&str> = match &self.set {
            Some((set, _)) => set.iter().copied().map(named).collect(),
            None => self.culprits().map(named).collect(),
        };
        let head = json!({
            "scenario": self.ask.scenario.to_string_lossy(),
            "from": self.from.kernel.name(),
            "to": self.to.kernel.name(),
            "seed": self.from.seed,
            "figure": self.measure.map(Measure::name),
            "figure_from": self.measure.map(|measure| measure.show(&self.ends[0])),
            "figure_to": self.measure.map(|measure| measure.show(&self.ends[1])),
            "complete": !self.extent.is_interrupted(),
            "rules": rules,
            "rules_not_read": self.unread,
            "verdict": {
                "rules": found,
                "is_one": self.set.is_none() && found.len() == 1,
                "main": self.main().map(named),
                "seeds_to_be_sure": self.seeds_missing(),
                "says": self.verdict(),
            },
            "not_known": self.doubts(),
        });
        merged(head, self.extent.json())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::Stage;

    /// Ends what runs when the second stage has looked at it for the so-and-so-many-th time.
    struct Ends {
        stages: AtomicUsize,
        looks: AtomicUsize,
        at: usize,
    }

    impl Watcher for Ends {
        fn begin(&self, stage: &Stage<'_>) {
            if matches!(stage, Stage::Running { .. }) {
                self.stages.fetch_add(1, Relaxed);
            }
        }

        fn stop(&self) -> Option<&'static str> {
            let looks = match self.stages.load(Relaxed) {
                0 | 1 => 0,
                _ => self.looks.fetch_add(1, Relaxed),
            };
            (looks >= self.at).then_some("SIGINT")
        }
    }

    #[test]
    fn setting_that_a_version_would_undo_is_refused() {
        let between = |setting: &str, lists: Option<&str>| {
            let changes = Changes { settings: vec![setting.parse().unwrap()], seed: None };
            let (from, to) = ("6.1".to_string(), "6.12".to_string());
            Ask { changes, from, to, lists: lists.map(str::to_string), ..Ask::default() }.versions()
        };
        for (setting, lists, by) in [
            ("kernel.version=6.8", None, "kernel.version is set, and --from and --to would undo it"),
            ("kernel.lists=mglru", Some("classic"), "kernel.lists is set, and --lists would undo it"),
        ] {
            let error = between(setting, lists).unwrap_err().to_string();
            assert!(error.starts_with(by), "{error}");
        }
        assert!(between("kernel.lists=mglru", None).is_ok());
    }

    const SCENARIO: &str = r#"
question = "What changed?"
[machine]
memory = "32MiB"
[[memcg]]
path = "/web"
memory.max = "1MiB"
[[task]]
name = "reader"
memcg = "/web"
[[task.object]]
channel = "file"
size = "4MiB"
workload = { pattern = "zipf", ops = 3000 }
"#;

    fn asked(watcher: &dyn Watcher, repeat: u32) -> Answer {
        let directory = tempfile::tempdir().unwrap();
        let scenario = directory.path().join("scenario.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let asked = format!(
            r#"{{ "scenario": {scenario:?}, "from": "6.1", "to": "6.12", "judge_by": "refaults_file", "repeat": {repeat}, "jobs": 1 }}"#
        );
        let asked: Ask = serde_json::from_str(&asked).unwrap();
        assert_eq!(serde_json::from_value::<Ask>(serde_json::to_value(&asked).unwrap()).unwrap(), asked);
        ask(&asked, watcher).unwrap()
    }

    #[test]
    fn interrupted_rules_are_compared_by_the_seeds_there_are() {
        let ending_at = |at_look| {
            let watcher = Ends { stages: AtomicUsize::new(0), looks: AtomicUsize::new(0), at: at_look };
            (asked(&watcher, 5), watcher.looks.into_inner())
        };
        let (whole, looks) = ending_at(usize::MAX);
        assert!(!whole.extent.is_interrupted());
        for at_look in [1, looks / 10, looks / 3, looks * 2 / 3] {
            let (found, _) = ending_at(at_look);
            assert!(found.extent.is_interrupted(), "after {at_look} looks");
            assert_eq!(found.json()["complete"], false);
        }
    }

    #[test]
    fn bisection_with_a_wrong_sum_is_refused() {
        let whole = asked(&(), 1);
        assert_eq!(whole.check(), Ok(()));
        assert!(whole.sides.len() > 1 && whole.rules[0].since.is_some());
        assert_eq!(serde_json::to_value(&whole).unwrap(), whole.json());
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 7] = [
            (|answer| drop(answer.sides.pop()), "were changed"),
            (|answer| answer.sides.clear(), "the figure changes, but no rule was changed"),
            (
                |answer| answer.rules[0].to = answer.rules[0].from.clone(),
                "the list has a rule that does not differ",
            ),
            (|answer| answer.rules[0].since = None, "rules are not in the order of their versions"),
            (
                |answer| answer.unread.push(answer.rules[0].knob.name()),
                "a rule was changed, but it is listed as unread",
            ),
            (|answer| answer.set = Some((vec![answer.rules.len()], None)), "a rule that is not in the list"),
            (
                |answer| {
                    // Each rule does all that the newer version does.
                    for side in &mut answer.sides {
                        side.alone.clone_from(&answer.ends[1]);
                        side.without.clone_from(&answer.ends[0]);
                    }
                    answer.set = Some((vec![0], None));
                },
                "although one rule causes the change alone",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = asked(&(), 1);
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}, expected {told}");
        }
    }

    #[test]
    fn bisect_versions_out_of_order_are_refused() {
        let wrong = |from: &str, to: &str| {
            let asked = Ask { from: from.to_string(), to: to.to_string(), ..Ask::default() };
            asked.versions().unwrap_err().to_string()
        };
        assert!(wrong("6.12", "6.1").contains("is later than --to"));
        assert!(wrong("6.12.3", "6.12.3").starts_with("--from and --to: found "));
        assert!(wrong("9.1", "6.1").starts_with("--from: unknown kernel version `9.1`"));
    }
}
