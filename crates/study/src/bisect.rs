//! Bisecting versions of the kernel: which rule changed a figure between two of them.
//!
//! ```text
//!   from ─────────────────────────────────────────────► to          the whole change of the figure
//!   from + rule ──────► brought alone                               every rule that differs, by the date at which it came
//!                                 to - rule ──────────► gone without it
//! ```
//! A rule that brings the change alone, and without which it is gone, did it. Where none does, sets of rules are tried in the older
//! version, smaller and smaller ones (`search.rs`), until none of a set can be left out. The scenario's own settings hold in both versions,
//! so what it sets itself does not differ.

mod search; // the smallest set that does it

use pageout_engine::{Config, Kernel, Lists, PARAMETERS, Parameter, SWITCHES, Version, When};
use pageout_sim::scenario::Scenario;
use serde_json::{Value, json};

use crate::error::Error;
use crate::figures;
use crate::json::merged;
use crate::known::{self, Row};
use crate::result::better::Better;
use crate::result::effect::{self, Figure, figures_of};
use crate::result::spread::{Paired, values_for};
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::nearest::nearest;
use crate::scenario::switches::{Knob, Turn};

/// Share of the whole change from which on a rule, or a set of rules, counts as having brought it.
const MOST: f64 = 0.8;

/// A share that is named is not sure where its interval reaches below this.
const HALF: f64 = 0.5;

/// The name of the figure that says whether the scenario fails.
const FAILS: &str = "fails";

/// A rule that differs between the two versions, where the scenario leaves it to them.
pub struct Rule {
    /// The rule.
    pub knob: Knob,
    /// Its value in the older version.
    pub from: String,
    /// Its value in the newer one.
    pub to: String,
    /// The version with which the later value came, if that is known.
    pub since: Option<Version>,
    /// How both values are known.
    pub known: [String; 2],
}

impl Rule {
    /// The version with which the later value came: a series where it is its first.
    pub fn since_text(&self) -> Option<String> {
        let text = self.since?.to_string();
        Some(
            text.strip_suffix(".0")
                .filter(|series| series.contains('.'))
                .map_or(text.clone(), str::to_string),
        )
    }

    /// The rule at one of its two values.
    fn turn(&self, is_later: bool) -> Turn {
        let value = if is_later { &self.to } else { &self.from };
        Turn { knob: self.knob, value: value.clone() }
    }
}

/// Rules that differ between two versions.
struct Differing {
    /// Those that may change something, in the order in which they came. Rules without a known date come last.
    rules: Vec<Rule>,
    /// Names of the others: rules that only the lists read which the scenario does not have.
    unread: Vec<&'static str>,
}

/// The lists that a scenario has in both versions; nothing where it may have both kinds.
fn lists_of(from: &Scenario, to: &Scenario, configs: [&Config; 2]) -> Option<Lists> {
    let [before, after] = configs.map(|config| config.policy.natural_lists());
    let has_both = [from, to].iter().any(|scenario| {
        let is_of_lists = |path: &String| path.contains("lru_gen");
        scenario.memcg.iter().any(|memcg| memcg.policy.is_some())
            || scenario.event.iter().any(|event| event.write.as_ref().is_some_and(is_of_lists))
    });
    before.filter(|_| before == after && !has_both)
}

/// All rules that differ.
fn rules_between(from: &Scenario, to: &Scenario) -> Differing {
    let config = |scenario: &Scenario| scenario.engine_config().expect("the scenario was checked");
    let (before, after): (Config, Config) = (config(from), config(to));
    let (old, new) = (kernel_of(from), kernel_of(to));
    let [rows_old, rows_new] = [old, new].map(known::rows);
    let parameters = PARAMETERS.iter().filter(|parameter| !parameter.eras.is_empty());
    let knobs = SWITCHES.iter().map(Knob::Switch).chain(parameters.map(Knob::Parameter));
    let differing = knobs.filter(|knob| knob.get(&before) != knob.get(&after));
    let mut rules: Vec<Rule> = differing
        .map(|knob| {
            let row = |rows: &[Row], kernel: Kernel| {
                let row = rows.iter().find(|row| row.name == knob.name()).expect("every rule has a row");
                row.how(kernel.version)
            };
            let eras = match knob {
                Knob::Switch(switch) => switch.eras,
                Knob::Parameter(Parameter { eras, .. }) => eras,
            };
            let later = knob.get(&after);
            let era = eras.iter().find(|era| era.value == later && era.holds(new.version, new.lists));
            let since = era.and_then(|era| match era.when {
                When::Versions(from, _) if from > old.version => Some(from),
                _ => None,
            });
            let known = [row(&rows_old, old), row(&rows_new, new)];
            Rule { knob, from: knob.get(&before), to: knob.get(&after), since, known }
        })
        .collect();
    rules.sort_by_key(|rule| (rule.since.is_none(), rule.since));
    let lists = lists_of(from, to, [&before, &after]);
    let is_read = |rule: &Rule| match rule.knob {
        Knob::Switch(switch) => lists.is_none_or(|lists| switch.only_with().is_none_or(|only| only == lists)),
        Knob::Parameter(_) => true,
    };
    let (rules, unread): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(is_read);
    Differing { rules, unread: unread.iter().map(|rule| rule.knob.name()).collect() }
}

/// The kernel that a scenario names.
fn kernel_of(scenario: &Scenario) -> Kernel {
    Kernel::of_name(&scenario.kernel.name()).expect("versions alone are bisected")
}

/// What is measured: a figure of every run, or whether it fails.
#[derive(Clone, Copy)]
pub enum Measure {
    /// The figure, of runs that don't fail.
    Figure(&'static Figure),
    /// Whether it fails.
    Fails,
}

/// The figure that tells the two versions apart: whether the scenario fails, or the outcome that differs most beyond noise, or, where none does,
/// what reclaim does for it. `None`: nothing differs.
fn telling_figure(ends: &[Runs; 2]) -> Option<Measure> {
    if fails(&ends[0]) != fails(&ends[1]) {
        return Some(Measure::Fails);
    }
    let size = |figure: &Figure| -> Option<f64> {
        let effect = figure.effect(&ends[0], &ends[1])?;
        let is_certain = !effect.is_same && !effect.is_within_noise();
        is_certain.then(|| effect.percent(effect.difference).map_or(f64::MAX, f64::abs))
    };
    let largest = |is_outcome: bool| {
        let figures = figures_of(&ends[0]).filter(|figure| figure.is_outcome == is_outcome);
        figures.filter_map(|figure| Some((figure, size(figure)?))).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    largest(true).or_else(|| largest(false)).map(|(figure, _)| Measure::Figure(figure))
}

/// The share of runs that fail.
fn fails(runs: &Runs) -> f64 {
    runs.failures.len() as f64 / (runs.failures.len() + runs.results.len()).max(1) as f64
}

/// A share of the whole change, with half of its interval over the seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share {
    /// The share; all of it is 1.
    pub share: f64,
    /// Half of its 95 % interval; nothing of one seed, nor where seeds are counted.
    pub half_width: Option<f64>,
}

impl Share {
    fn is_most(self) -> bool {
        self.share >= MOST
    }

    /// How many seeds it would take for the interval to keep above half of the change, if it goes on as with so many; nothing where it does.
    fn seeds_missing(self, seeds: u32) -> Option<u32> {
        let width = self.half_width.filter(|width| self.share - width < HALF)?;
        Some(values_for(self.share - HALF, width, seeds))
    }

    /// `105 % ± 63`.
    pub fn show(self) -> String {
        let spread = self.half_width.filter(|width| *width >= 0.005);
        let spread = spread.map(|width| format!(" ± {:.0}", width * 100.0)).unwrap_or_default();
        // Without a minus before nothing.
        let percent = (self.share * 100.0).round() + 0.0;
        format!("{percent:.0} %{spread}")
    }

    fn json(self) -> Value {
        json!({ "share": self.share, "half_width": self.half_width })
    }
}

impl Measure {
    /// The measure of that name: a figure's, or `fails`. Errors: there is none.
    pub fn called(name: &str) -> Result<Measure, Error> {
        if name == FAILS {
            return Ok(Measure::Fails);
        }
        let known = || effect::all_figures().map(|figure| figure.name).chain([FAILS]);
        Figure::called(name).map(Measure::Figure).ok_or_else(|| {
            let meant = nearest(name, known()).map(|meant| format!("did you mean `{meant}`? "));
            let known: Vec<&str> = known().collect();
            Error::Asked(format!(
                "there is no figure `{name}`; {}Figures are: {}",
                meant.unwrap_or_default(),
                known.join(", ")
            ))
        })
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Figure(figure) => figure.name,
            Measure::Fails => FAILS,
        }
    }

    /// What it is called in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Measure::Figure(figure) => figure.title,
            Measure::Fails => "runs that fail",
        }
    }

    /// Which way it is better.
    pub fn better(self) -> Better {
        match self {
            Measure::Figure(figure) => figure.better,
            Measure::Fails => Better::Less,
        }
    }

    /// The figure of a side.
    pub fn show(self, runs: &Runs) -> String {
        match self {
            _ if !runs.was_made() => runs.missing(),
            Measure::Fails => {
                format!("{} of {}", runs.failures.len(), runs.failures.len() + runs.results.len())
            }
            Measure::Figure(figure) if runs.is_whole() => figure.show(runs),
            Measure::Figure(_) => runs.missing(),
        }
    }

    /// The difference between two sides.
    fn difference(self, base: &Runs, runs: &Runs) -> Option<Paired> {
        match self {
            Measure::Figure(figure) => figure.effect(base, runs),
            Measure::Fails if base.was_made() && runs.was_made() => {
                let (before, after) = (fails(base), fails(runs));
                let is_same = before == after;
                Some(Paired { base: before, difference: after - before, half_width: None, is_same })
            }
            Measure::Fails => None,
        }
    }

    /// The whole change. Errors: there is none, or a side has no figure.
    fn change(self, ends: &[Runs; 2]) -> Result<f64, String> {
        match self.difference(&ends[0], &ends[1]) {
            Some(change) if change.is_same || change.difference == 0.0 => {
                Err(format!("{} is the same in both versions", self.name()))
            }
            Some(change) => Ok(change.difference),
            None => Err(format!(
                "{} can't be compared: runs fail in one of the versions, which the figure `{FAILS}` asks about",
                self.name()
            )),
        }
    }

    /// The share of the change between a base and other runs.
    fn share(self, base: &Runs, runs: &Runs, change: f64) -> Option<Share> {
        let part = self.difference(base, runs)?;
        let half_width = part.half_width.map(|width| width / change.abs());
        Some(Share { share: part.difference / change, half_width })
    }
}

/// What one rule brings.
struct Side {
    /// The older version with this rule of the newer one.
    alone: Runs,
    /// The newer version with this rule of the older one.
    without: Runs,
}

/// All that was found out.
pub struct Bisection {
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
    /// How many of the runs asked for there are.
    pub extent: Extent,
    /// The figure that was asked about, or else the one that tells the versions apart.
    pub measure: Option<Measure>,
    /// By rule; empty where nothing differs.
    sides: Vec<Side>,
    /// Rules that bring it together, where none does alone, and how much of it.
    set: Option<(Vec<usize>, Option<Share>)>,
}

/// Runs both versions of a scenario, finds the figure that differs unless one is asked for, and turns every rule that differs. A version in
/// which the scenario fails is a result. Errors: one of them is no version of the
/// kernel, and as of [`Plan::run`].
pub fn bisect(
    plan: &Plan,
    from: Scenario,
    to: Scenario,
    figure: Option<Measure>,
) -> Result<Bisection, Error> {
    for scenario in [&from, &to] {
        let name = scenario.kernel.name();
        if Kernel::of_name(&name).is_none() {
            return Err(Error::Asked(format!(
                "`{name}` is no version of the kernel, so it has no rules of its own"
            )));
        }
    }
    let Differing { rules, unread } = rules_between(&from, &to);
    let Made { variants, extent } = plan.run(&[from.clone(), to.clone()])?;
    let ends: [Runs; 2] = variants.try_into().expect("two scenarios were run");
    let measure = figure.or_else(|| telling_figure(&ends));
    let mut found =
        Bisection { from, to, rules, unread, ends, extent, measure, sides: Vec::new(), set: None };
    if let Some(measure) = found.measure
        && !found.extent.is_interrupted()
        && measure.change(&found.ends).is_ok()
    {
        found.turn_each(plan)?;
        found.search(plan, measure)?;
    }
    Ok(found)
}

impl Bisection {
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

    /// What a rule, by its place, brings alone, and what is gone without it.
    pub fn shares(&self, at: usize) -> [Option<Share>; 2] {
        let (Some(measure), Some(change), Some(side)) = (self.measure, self.change(), self.sides.get(at))
        else {
            return [None, None];
        };
        [
            measure.share(&self.ends[0], &side.alone, change),
            // What is gone is the way back.
            measure.share(&side.without, &self.ends[1], change),
        ]
    }

    /// Whether turning a rule, by its place, changes the figure in no run at all.
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

    /// The rule of a set, by its place, that did it with the others' help: without it most of the change is gone, alone it brings at least half,
    /// and no other brings a fifth alone.
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

    /// How many seeds it would take to be sure of what is named; nothing where so many are enough, or where nothing is named.
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
                " More seeds are needed to say so: of {}, the interval reaches below half of the change. Try --repeat {seeds}.",
                figures::counted(self.extent.seeds.into(), "seed")
            )
        })
    }

    /// What it comes to, in sentences.
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
                let did = if open.is_empty() { "did it" } else { "may have done it" };
                format!(
                    "{} {did} ({} → {}): alone it brings {alone} of the change in {}, and without it {without} of it is gone.{open} {}",
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
                ([one], _) => format!("{one} brings{share} alone, but others would bring it as well: without it most of it is still there.{open}"),
                (_, Some(main)) => {
                    let rule = &self.rules[main];
                    let [alone, without] = self.shares(main).map(|share| share.map(Share::show).unwrap_or_default());
                    let others: Vec<&str> =
                        set.iter().filter(|&&at| at != main).map(|&at| self.rules[at].knob.name()).collect();
                    format!(
                        "{} did it ({} → {}): without it {without} of the change in {} is gone. Alone it brings {alone}, together with {}{share}.{open} {}",
                        rule.knob.name(),
                        rule.from,
                        rule.to,
                        measure.title(),
                        others.join(" and "),
                        rule.knob.doc()
                    )
                }
                (names, None) => format!(
                    "No rule did it alone. Together {} bring{share}; none of them can be left out.{open}",
                    names.join(" and ")
                ),
            });
        }
        if says.is_empty() {
            says.push(match self.extent.is_interrupted() {
                true => "What did it was not found out.".to_string(),
                false => {
                    "No set of rules brings most of the change: it may be noise, or in what is not modelled."
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

    /// Both versions.
    pub fn versions(&self) -> [Version; 2] {
        [&self.from, &self.to].map(|scenario| kernel_of(scenario).version)
    }

    /// All of it.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::scenario::source::{Setting, Source};
    use crate::{Stage, Watcher};

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

    const SCENARIO: &str = r#"
question = "What changed?"
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

    #[test]
    fn interrupted_rules_are_compared_by_the_seeds_there_are() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scenario.toml");
        #[allow(clippy::disallowed_methods)]
        std::fs::write(&path, SCENARIO).unwrap();
        let source = Source::read(&path).unwrap();
        let at = |version: &str| {
            let set = |key: &str, value: &str| Setting {
                key: key.to_string(),
                value: value.to_string(),
                option: "--set",
                written_at: None,
            };
            source.scenario(&[set("kernel.version", version)]).unwrap()
        };
        let measure = Measure::called("refaults_file").unwrap();
        let ending_at = |at_look| {
            let watcher = Ends { stages: AtomicUsize::new(0), looks: AtomicUsize::new(0), at: at_look };
            let plan = Plan { name: String::new(), repeat: 5, jobs: 1, watcher: &watcher };
            let found = bisect(&plan, at("6.1"), at("6.12"), Some(measure)).unwrap();
            (found, watcher.looks.into_inner())
        };
        let (whole, looks) = ending_at(usize::MAX);
        assert!(!whole.extent.is_interrupted());
        for at_look in [1, looks / 10, looks / 3, looks * 2 / 3] {
            let (found, _) = ending_at(at_look);
            assert!(found.extent.is_interrupted(), "after {at_look} looks");
            assert_eq!(found.json()["complete"], false);
        }
    }
}
