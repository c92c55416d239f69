//! `pageout ablate`: every mechanism of a policy turned alone, and what that changes.
//!
//! One factor at a time: the scenario as it is stands against the scenario with one switch at another value, for every switch
//! and every value, seed by seed. It tells what a mechanism is worth *among the others*; what it would be worth with other
//! lists or another balance is `crossover.rs`'s business.

use std::fmt::Write;

use pageout_engine::{Policy, Values};
use pageout_sim::scenario::Scenario;
use serde_json::{Map, Value, json};

use crate::cli::AblateArgs;
use crate::failure::{Failure, Outcome};
use crate::print::progress::name_of;
use crate::print::{output, table};
use crate::result::effect::{self, FIGURES, Figure};
use crate::result::variants::{Plan, Runs, verdict};
use crate::scenario::load::load;
use crate::scenario::source::Source;
use crate::scenario::switches::{self, Turn, seam};

/// Runs the scenario as it is and with each switch turned, and prints the effects. Values that fail are shown as such, and the
/// exit code says that not everything is there.
pub(crate) fn ablate(args: &AblateArgs) -> Outcome {
    let source = Source::read(&args.scenario)?;
    let scenario = load(&source, &args.options, &[])?;
    let policy = switches::policy_of(&scenario);
    let turns = switches::turns(&policy, &args.switches)?;
    let plan = Plan {
        name: name_of(&args.scenario),
        repeat: args.repeat,
        jobs: args.jobs,
        output: &args.options.output,
    };
    let turned = turns.iter().map(|turn| switches::with_switch(scenario.clone(), turn.switch(), &turn.value));
    let scenarios: Vec<Scenario> = std::iter::once(scenario.clone()).chain(turned).collect();
    let mut results = plan.run(&scenarios)?.into_iter();
    let base = results.next().expect("the scenario as it is was run first");
    if !base.failures.is_empty() {
        let failure = Failure::several("the scenario fails as it is", &base.failures);
        return output::no_result(&args.options.output, failure, Value::Null);
    }
    let rows: Vec<Row> = turns.into_iter().zip(results).map(|(turn, runs)| Row { turn, runs }).collect();
    let ablation = Ablation { args, scenario: &scenario, policy, plan: &plan, base, rows };
    if args.options.output.json {
        output::print_json(&ablation.to_json())?;
    } else {
        output::print(&ablation.to_text())?;
    }
    let failures: Vec<Failure> =
        ablation.rows.iter().flat_map(|row| row.runs.failures_of(&row.turn.to_string())).collect();
    verdict(&failures, scenarios.len() * args.repeat as usize)
}

/// All that was found out.
struct Ablation<'a> {
    args: &'a AblateArgs,
    scenario: &'a Scenario,
    policy: Policy,
    plan: &'a Plan<'a>,
    base: Runs,
    rows: Vec<Row>,
}

/// One switch at one value.
struct Row {
    turn: Turn,
    runs: Runs,
}

impl Row {
    /// Whether no figure differs in any run.
    fn changes_nothing(&self, base: &Runs) -> bool {
        FIGURES.iter().all(|figure| figure.effect(base, &self.runs).is_some_and(|effect| effect.is_same))
    }
}

impl Ablation<'_> {
    fn to_text(&self) -> String {
        let width = output::width();
        let mut text = String::new();
        if !self.scenario.question.is_empty() {
            text += &output::wrap(&self.scenario.question, width, "");
            text.push('\n');
        }
        let seeds = self.plan.seeds(self.scenario.seed);
        let _ = writeln!(
            text,
            "{}: {}, and what changes when one switch is turned; {seeds}",
            self.args.scenario.display(),
            self.scenario.kernel.profile
        );
        text += &untouched(self.scenario);
        for (title, is_outcome) in [("What comes of it", true), ("What reclaim does for it", false)] {
            let figures: Vec<&Figure> =
                FIGURES.iter().filter(|figure| figure.is_outcome == is_outcome).collect();
            let _ = write!(text, "\n{title}\n{}", table::layout(&self.table(&figures), 1));
        }
        let idle: Vec<&Row> = self.rows.iter().filter(|row| row.changes_nothing(&self.base)).collect();
        if !idle.is_empty() {
            let names: Vec<String> = idle.iter().map(|row| row.turn.to_string()).collect();
            text += "\nWithout any effect on these figures, in any run\n";
            text += &output::wrap(&names.join(", "), width, "  ");
        }
        let failed: Vec<&Row> = self.rows.iter().filter(|row| !row.runs.failures.is_empty()).collect();
        if !failed.is_empty() {
            text += "\nFailed\n";
        }
        for row in failed {
            let why = row.runs.failures[0].to_string();
            let why = why.lines().next().unwrap_or_default();
            text += &output::wrap(&format!("{}: {why}", row.turn), width, "  ");
        }
        text.push('\n');
        text + &effect::legend(self.args.repeat, true)
    }

    /// A line for every value of every switch, below its seam; those of a choice below its name.
    fn table(&self, figures: &[&Figure]) -> Vec<Vec<String>> {
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(figures.iter().map(|figure| figure.heading.to_string()));
        let mut base = vec![self.scenario.kernel.profile.clone()];
        base.extend(figures.iter().map(|figure| figure.show(&self.base)));
        rows.push(base);
        let (mut last_seam, mut last_switch) = ("", "");
        for row in self.rows.iter().filter(|row| !row.changes_nothing(&self.base)) {
            let switch = row.turn.switch();
            let short = switch.name.split_once('.').map_or(switch.name, |(_, name)| name);
            if seam(switch) != last_seam {
                last_seam = seam(switch);
                rows.push(vec![last_seam.to_string()]);
            }
            let is_bool = switch.values == Values::Bool;
            if !is_bool && switch.name != last_switch {
                rows.push(vec![format!("  {short} ({})", switch.get(&self.policy))]);
            }
            last_switch = switch.name;
            let label = if is_bool {
                format!("  {short}={}", row.turn.value)
            } else {
                format!("    {}", row.turn.value)
            };
            let mut cells = vec![label];
            if row.runs.failures.is_empty() {
                cells.extend(figures.iter().map(|figure| {
                    figure
                        .effect(&self.base, &row.runs)
                        .map_or("-".to_string(), |effect| figure.show_effect(&effect))
                }));
            } else {
                cells.push(format!("failed {} of {}", row.runs.failures.len(), self.args.repeat));
            }
            rows.push(cells);
        }
        rows
    }

    fn to_json(&self) -> Value {
        let switches: Map<String, Value> = pageout_engine::SWITCHES
            .iter()
            .map(|switch| (switch.name.to_string(), switch.get(&self.policy).into()))
            .collect();
        let variants: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let switch = row.turn.switch();
                json!({
                    "switch": switch.name,
                    "seam": seam(switch),
                    "value": row.turn.value,
                    "own_value": switch.get(&self.policy),
                    "meaning": switch.doc,
                    "complete": row.runs.failures.is_empty(),
                    "failures": row.runs.failures,
                    "changes_nothing": row.changes_nothing(&self.base),
                    "figures": effect::figures_json(&row.runs),
                    "effects": effect::effects_json(&self.base, &row.runs),
                    "runs": row.runs.results,
                })
            })
            .collect();
        json!({
            "complete": self.rows.iter().all(|row| row.runs.failures.is_empty()),
            "scenario": self.args.scenario.to_string_lossy(),
            "profile": self.scenario.kernel.profile,
            "switches": switches,
            "not_applied_to": switches::untouched(self.scenario),
            "seed": self.scenario.seed,
            "repeat": self.args.repeat,
            "criterion": effect::CRITERION,
            "base": { "figures": effect::figures_json(&self.base), "runs": self.base.results },
            "variants": variants,
        })
    }
}

/// A line about cgroups that the switches leave alone.
pub(crate) fn untouched(scenario: &Scenario) -> String {
    match switches::untouched(scenario).as_slice() {
        [] => String::new(),
        paths => format!("Not turned for {}: a policy of their own\n", paths.join(", ")),
    }
}
