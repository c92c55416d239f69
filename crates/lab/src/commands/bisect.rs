//! `pageout bisect`: which rule changed the result between two versions of the kernel.
//!
//! ```text
//!   from ─────────────────────────────────────────────► to          the whole change of the figure
//!   from + rule ──────► brought alone                               every rule that differs, by the date at which it came
//!                                 to - rule ──────────► gone without it
//! ```
//! A rule that brings the change alone, and without which it is gone, did it. Where none does, sets of rules are tried in the older
//! version, smaller and smaller ones (`search.rs`), until none of a set can be left out. The scenario's own settings hold in both versions,
//! so what it sets itself does not differ.

mod page; // a bar a rule
mod search; // the smallest set that does it

use std::fmt::Write;

use pageout_engine::{Config, Kernel, PARAMETERS, Parameter, SWITCHES, Version, When};
use pageout_sim::scenario::Scenario;
use pageout_study::result::better::Better;
use pageout_study::result::effect::{self, Figure, figures_of};
use pageout_study::result::spread::Paired;
use pageout_study::result::variants::{Extent, Made, Plan, Runs};
use pageout_study::scenario::nearest::nearest;
use pageout_study::scenario::own_variants;
use pageout_study::scenario::source::{Setting, Source};
use pageout_study::scenario::switches::{Knob, Turn};
use serde_json::{Value, json};

use crate::cli::BisectArgs;
use crate::cli::load;
use crate::commands::keys::at;
use crate::failure::{Failure, Outcome};
use crate::print::progress::{Terminal, name_of};
use crate::print::{output, remarks, table};
use crate::report::check_name;

/// Share of the whole change from which on a rule, or a set of rules, counts as having brought it.
const MOST: f64 = 0.8;

/// The name of the figure that says whether the scenario fails.
const FAILS: &str = "fails";

/// Runs both versions, finds the figure that differs, turns every rule that differs, and prints what each brings.
pub(crate) fn bisect(args: &BisectArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path)?;
    }
    check_versions(args)?;
    let figure = args.figure.as_deref().map(measure_called).transpose()?;
    let source = Source::read(&args.scenario)?;
    let from = scenario_at(args, &source, args.from)?;
    let to = scenario_at(args, &source, args.to)?;
    let rules = rules_between(&from, &to);
    let terminal = Terminal::new(&args.options.output);
    let plan = Plan {
        name: name_of(&args.scenario),
        repeat: args.repeat,
        jobs: args.parallel.jobs,
        watcher: &terminal,
    };
    let Made { variants, extent } = plan.run(&[from.clone(), to.clone()])?;
    let ends: [Runs; 2] = variants.try_into().expect("two scenarios were run");
    let measure = figure.or_else(|| telling_figure(&ends));
    let mut found = Bisection { args, from, to, rules, ends, extent, measure, sides: Vec::new(), set: None };
    if let Some(measure) = found.measure
        && !found.extent.is_interrupted()
        && measure.change(&found.ends).is_ok()
    {
        found.turn_each(&plan)?;
        found.search(&plan, measure)?;
    }
    if args.options.output.json {
        output::print_json(&found.to_json())?;
    } else {
        output::print_text(&found.to_text())?;
    }
    if let Some(path) = &args.page.report {
        page::page(&source, &found).write(path)?;
    }
    // A version in which the scenario fails is a result.
    Ok(found.extent.verdict(&[])?)
}

fn check_versions(args: &BisectArgs) -> Result<(), Failure> {
    let (from, to) = (args.from, args.to);
    if from < to {
        return Ok(());
    }
    let message = match from == to {
        true => format!("--from and --to are the same version, {from}"),
        false => format!("--from {from} is later than --to {to}: exchange them"),
    };
    Err(Failure::Input(anyhow::anyhow!(message)))
}

/// The scenario, or the variant that was asked for, in a version.
fn scenario_at(args: &BisectArgs, source: &Source, version: Version) -> Result<Scenario, Failure> {
    let setting = |key: &str, value: String, option: &'static str| Setting {
        key: key.to_string(),
        value,
        option,
        written_at: None,
    };
    let option = if version == args.from { "--from" } else { "--to" };
    let mut more = vec![setting("kernel.version", version.to_string(), option)];
    more.extend(args.lists.map(|lists| setting("kernel.lists", lists.name().to_string(), "--lists")));
    let scenario = load(source, &args.options, &more)?;
    match &args.variant {
        Some(name) => Ok(own_variants::one(
            source,
            &args.options.changes(),
            &scenario,
            name,
            &more,
            &Terminal::new(&args.options.output),
        )?),
        None => Ok(scenario),
    }
}

/// A rule that differs between the two versions, where the scenario leaves it to them.
struct Rule {
    knob: Knob,
    from: String,
    to: String,
    /// The version with which the later value came, if that is known.
    since: Option<Version>,
    /// How both values are known.
    known: [String; 2],
}

impl Rule {
    /// The rule at one of its two values.
    fn turn(&self, is_later: bool) -> Turn {
        let value = if is_later { &self.to } else { &self.from };
        Turn { knob: self.knob, value: value.clone() }
    }
}

/// All rules that differ, in the order in which they came. Rules without a known date come last.
fn rules_between(from: &Scenario, to: &Scenario) -> Vec<Rule> {
    let config = |scenario: &Scenario| scenario.engine_config().expect("the scenario was checked");
    let kernel = |scenario: &Scenario| Kernel::of_name(&scenario.kernel.name()).expect("it has a version");
    let (before, after): (Config, Config) = (config(from), config(to));
    let (old, new) = (kernel(from), kernel(to));
    let [rows_old, rows_new] = [old, new].map(at::rows);
    let parameters = PARAMETERS.iter().filter(|parameter| !parameter.eras.is_empty());
    let knobs = SWITCHES.iter().map(Knob::Switch).chain(parameters.map(Knob::Parameter));
    let differing = knobs.filter(|knob| knob.get(&before) != knob.get(&after));
    let mut rules: Vec<Rule> = differing
        .map(|knob| {
            let row = |rows: &[at::Row], kernel: Kernel| {
                let row = rows.iter().find(|row| row.name == knob.name()).expect("every rule has a row");
                at::how(row, kernel.version)
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
    rules
}

/// What is measured: a figure of every run, or whether it fails.
#[derive(Clone, Copy)]
enum Measure {
    Figure(&'static Figure),
    Fails,
}

fn measure_called(name: &str) -> Result<Measure, Failure> {
    if name == FAILS {
        return Ok(Measure::Fails);
    }
    let known = || effect::all_figures().map(|figure| figure.name).chain([FAILS]);
    match effect::all_figures().find(|figure| figure.name == name) {
        Some(figure) => Ok(Measure::Figure(figure)),
        None => {
            let meant = nearest(name, known()).map(|meant| format!("did you mean `{meant}`? "));
            let known: Vec<&str> = known().collect();
            Err(Failure::Input(anyhow::anyhow!(
                "there is no figure `{name}`; {}Figures are: {}",
                meant.unwrap_or_default(),
                known.join(", ")
            )))
        }
    }
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
#[derive(Clone, Copy)]
struct Share {
    share: f64,
    half_width: Option<f64>,
}

impl Share {
    fn is_most(self) -> bool {
        self.share >= MOST
    }

    fn show(self) -> String {
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
    fn name(self) -> &'static str {
        match self {
            Measure::Figure(figure) => figure.name,
            Measure::Fails => FAILS,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Measure::Figure(figure) => figure.title,
            Measure::Fails => "runs that fail",
        }
    }

    fn better(self) -> Better {
        match self {
            Measure::Figure(figure) => figure.better,
            Measure::Fails => Better::Less,
        }
    }

    /// The figure of a side.
    fn show(self, runs: &Runs) -> String {
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
                "{} can't be compared: runs fail in one of the versions, which --figure {FAILS} asks about",
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

struct Bisection<'a> {
    args: &'a BisectArgs,
    from: Scenario,
    to: Scenario,
    rules: Vec<Rule>,
    ends: [Runs; 2],
    extent: Extent,
    measure: Option<Measure>,
    /// By rule; empty where nothing differs.
    sides: Vec<Side>,
    /// Rules that bring it together, where none does alone, and how much of it.
    set: Option<(Vec<usize>, Option<Share>)>,
}

impl Bisection<'_> {
    /// Runs every rule alone, and all but it.
    fn turn_each(&mut self, plan: &Plan) -> Result<(), Failure> {
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
    fn search(&mut self, plan: &Plan, measure: Measure) -> Result<(), Failure> {
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
            Ok::<_, Failure>(Some(share.is_some_and(Share::is_most)))
        })?;
        self.set = set.map(|set| {
            let share = shares.iter().find(|(of, _)| *of == set).and_then(|(_, share)| *share);
            (set, share)
        });
        Ok(())
    }

    /// What a rule brings alone, and what is gone without it.
    fn shares(&self, at: usize) -> [Option<Share>; 2] {
        let change = self.measure.and_then(|measure| Some((measure, measure.change(&self.ends).ok()?)));
        let (Some((measure, change)), Some(side)) = (change, self.sides.get(at)) else { return [None, None] };
        [
            measure.share(&self.ends[0], &side.alone, change),
            // What is gone is the way back.
            measure.share(&side.without, &self.ends[1], change),
        ]
    }

    /// Rules that bring most of the change alone, and without which most of it is gone.
    fn culprits(&self) -> impl Iterator<Item = usize> {
        (0..self.rules.len())
            .filter(|&at| self.shares(at).iter().all(|share| share.is_some_and(Share::is_most)))
    }

    /// What it comes to, in sentences.
    fn verdict(&self) -> Vec<String> {
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
                let [alone, without] = self.shares(at).map(|share| share.expect("it is most").show());
                format!(
                    "{} did it ({} → {}): alone it brings {alone} of the change in {}, and without it {without} of it is gone. {}",
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
            let share = share.map(|share| format!(" {} of the change", share.show())).unwrap_or_default();
            says.push(match names.as_slice() {
                [one] => format!("{one} brings{share} alone, but others would bring it as well: without it most of it is still there."),
                names => format!(
                    "No rule did it alone. Together {} bring{share}; none of them can be left out.",
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

    fn table(&self) -> Vec<Vec<String>> {
        let heading = ["rule", "from", "to", "since", "alone it\nbrings", "gone\nwithout it"];
        let mut rows = vec![heading.map(str::to_string).to_vec()];
        for (at, rule) in self.rules.iter().enumerate() {
            let [alone, without] = self.shares(at).map(|share| share.map_or("-".to_string(), Share::show));
            let since = rule.since.map_or("not known".to_string(), since_text);
            rows.push(vec![
                rule.knob.name().to_string(),
                rule.from.clone(),
                rule.to.clone(),
                since,
                alone,
                without,
            ]);
        }
        rows
    }

    /// Rules whose value in one of the versions is not known.
    fn doubts(&self) -> Vec<String> {
        let doubts = self.rules.iter().flat_map(|rule| {
            let versions = [self.args.from, self.args.to];
            let told = rule.known.iter().zip(versions).filter(|(how, _)| how.starts_with("not known"));
            told.map(|(how, version)| format!("{} in {version}: {how}", rule.knob.name()))
        });
        doubts.collect()
    }

    fn heading(&self) -> String {
        let (from, to) = (self.from.kernel.name(), self.to.kernel.name());
        let seeds = self.extent.seeds_from(self.from.seed);
        format!("{}: what changed from {from} to {to}; {seeds}", self.args.scenario.display())
    }

    /// The figure in both versions.
    fn change_text(&self) -> Option<String> {
        let measure = self.measure?;
        let [before, after] = [0, 1].map(|end: usize| measure.show(&self.ends[end]));
        Some(format!(
            "{}: {before} in {}, {after} in {}",
            effect::capitalised(measure.title()),
            self.args.from,
            self.args.to
        ))
    }

    fn to_text(&self) -> String {
        let width = output::width();
        let mut text = format!("{}\n", self.heading());
        text += &remarks::warning(&self.extent);
        if let Some(change) = self.change_text() {
            let _ = writeln!(text, "{change}");
        }
        if self.rules.is_empty() {
            text += "No rule that is known differs between them.\n";
        } else {
            let _ = write!(text, "\n{}", table::layout(&self.table(), 4));
        }
        text.push('\n');
        self.verdict().iter().for_each(|says| text += &output::wrap(says, width, ""));
        let doubts = self.doubts();
        if !doubts.is_empty() {
            text += "\nNot known\n";
            doubts.iter().for_each(|doubt| text += &output::wrap(doubt, width, "  "));
        }
        text
    }

    fn to_json(&self) -> Value {
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
                    "since": rule.since.map(since_text),
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
            "scenario": self.args.scenario.to_string_lossy(),
            "from": self.from.kernel.name(),
            "to": self.to.kernel.name(),
            "seed": self.from.seed,
            "figure": self.measure.map(Measure::name),
            "figure_from": self.measure.map(|measure| measure.show(&self.ends[0])),
            "figure_to": self.measure.map(|measure| measure.show(&self.ends[1])),
            "complete": !self.extent.is_interrupted(),
            "rules": rules,
            "verdict": {
                "rules": found,
                "is_one": self.set.is_none() && found.len() == 1,
                "says": self.verdict(),
            },
            "not_known": self.doubts(),
        });
        output::merged(head, self.extent.json())
    }
}

/// A version with which something came: a series where it is its first.
fn since_text(since: Version) -> String {
    let text = since.to_string();
    text.strip_suffix(".0").filter(|series| series.contains('.')).map_or(text.clone(), str::to_string)
}
