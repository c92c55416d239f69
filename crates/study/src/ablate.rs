//! Ablation: every mechanism of a policy turned alone, and what that changes.
//!
//! One factor at a time: the unchanged scenario runs against the scenario with one switch at another value, for every switch and every
//! value, seed by seed. The difference is the value of a mechanism *among the others*. A grid of points shows whether the mechanism has the
//! same value in another scenario. Mechanisms of memory tiers are parameters of the machine, and are changed too if the machine has tiers.

pub mod crossover; // whole seams exchanged, in all combinations

use std::path::PathBuf;

use pageout_engine::{Config, SWITCHES};
use pageout_sim::scenario::Scenario;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::check::holds;
use crate::error::{Error, Failed};
use crate::json::merged;
use crate::result::caveats;
use crate::result::effect::{self, Figure, figures_of};
use crate::result::run_result::RunResult;
use crate::result::sign::Signs;
use crate::result::spread::Paired;
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::grid::{self, Point};
use crate::scenario::load::Changes;
use crate::scenario::own_variants;
use crate::scenario::source::{OVER, Source};
use crate::scenario::switches::{self, Turn, Wanted};
use crate::scenario::variation::{Variation, one_way_to_vary_the_seed};
use crate::watch::{Watcher, name_of};

/// A turn that makes no sense in the scenario, and why.
pub type Refused = (Turn, String);

/// The switches to turn, and the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, or `-`, standard input.
    pub scenario: PathBuf,
    /// The changes of the scenario.
    pub changes: Changes,
    /// A variant of the scenario, by its name. Default: the scenario unchanged.
    pub variant: Option<String>,
    /// Keys and their values: the switches are turned at each combination of them. Default: one point, the scenario.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub over: Vec<Variation>,
    /// Switches or seams, with or without values. Default: all that do something there.
    #[serde(rename = "switch", deserialize_with = "crate::json::one_or_more")]
    pub switches: Vec<Wanted>,
    /// Runs of each value, with seeds counted up from the scenario's. 1 or more; default 5.
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
            over: Vec::new(),
            switches: Vec::new(),
            repeat: 5,
            jobs: 0,
        }
    }
}

/// The effect of each turned switch.
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The scenario's file.
    pub source: Source,
    /// The switches that cannot be turned here.
    pub refused: Vec<Refused>,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// Each point of the grid; one where there is none.
    pub points: Vec<Ablation>,
}

/// The results at one point.
pub struct Ablation {
    /// The point.
    pub point: Point,
    /// The machine's settings there.
    pub config: Config,
    /// The unchanged scenario.
    pub base: Runs,
    /// Each turn, the same ones at all points.
    pub rows: Vec<Row>,
}

/// One switch at one value.
pub struct Row {
    /// The switch and its value.
    pub turn: Turn,
    /// The scenario with that.
    pub runs: Runs,
}

/// Runs a scenario unchanged and with each switch turned, all that at every point of a grid. Values that fail are part of the answer.
/// Errors: the scenario makes no sense; a point changes what the switches are; no switch that is asked for can be turned; as of
/// [`Plan::run`].
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let (source, wanted) = (Source::read(&ask.scenario)?, &ask.switches[..]);
    let points = points(ask, &source, watcher)?;
    let configs: Vec<Config> = points.iter().map(config_of).collect();
    let Some((config, first)) = configs.first().zip(points.first()) else {
        return Err(Error::asked("no switch can be changed at any point"));
    };
    let turns = turns(config, &first.scenario, wanted)?;
    for (other, point) in configs.iter().zip(&points) {
        if other.policy != config.policy || self::turns(other, &point.scenario, wanted)? != turns {
            let by = point.settings.first().map_or("a point", |setting| setting.option);
            let why = "changes the set of switches, but ablate changes one switch at a time\nhelp: give this key by --set";
            return Err(Error::Asked(format!("{by} {why}")));
        }
    }
    let (turns, refused) = possible(turns, &points)?;
    let scenarios: Vec<Scenario> = points
        .iter()
        .flat_map(|Point { scenario, .. }| {
            let turned = turns.iter().map(|turn| turn.applied(scenario.clone()));
            std::iter::once(scenario.clone()).chain(turned)
        })
        .collect();
    let plan = Plan { name: name_of(&ask.scenario), repeat: ask.repeat, jobs: ask.jobs, watcher };
    let Made { variants, extent } = plan.run(&scenarios)?;
    let mut results = variants.into_iter();
    let points = points.into_iter().zip(configs).map(|(point, config)| {
        let base = results.next().expect("the scenario as it is was run first");
        let rows = turns.iter().cloned().zip(results.by_ref());
        let rows = rows.map(|(turn, runs)| Row { turn, runs }).collect();
        Ablation { point, config, base, rows }
    });
    let answer = Answer { ask: ask.clone(), source, refused, extent, points: points.collect() };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// The scenario, or its variant, at every point of the grid.
fn points(ask: &Ask, source: &Source, watcher: &dyn Watcher) -> Result<Vec<Point>, Error> {
    one_way_to_vary_the_seed(OVER, &ask.over, ask.repeat)?;
    let points = grid::points(source, &ask.changes, &ask.over, OVER, watcher)?;
    let Some(name) = &ask.variant else { return Ok(points) };
    let varied = points.into_iter().map(|Point { settings, scenario }| {
        let scenario = own_variants::one(source, &ask.changes, &scenario, name, &settings, watcher)?;
        Ok(Point { settings, scenario })
    });
    varied.collect()
}

fn config_of(point: &Point) -> Config {
    point.scenario.engine_config().expect("the scenario was checked")
}

fn turns(config: &Config, scenario: &Scenario, wanted: &[Wanted]) -> Result<Vec<Turn>, Error> {
    let has_tiers = scenario.machine.tiers().is_ok_and(|tiers| tiers.has_lower_tier());
    switches::turns(config, has_tiers, wanted)
}

/// Turns that every point can do with, and why it can't do with the others: some values make sense with others alone. Errors: none is left.
fn possible(turns: Vec<Turn>, points: &[Point]) -> Result<(Vec<Turn>, Vec<Refused>), Error> {
    let problem = |turn: &Turn| -> Option<String> {
        let turned = points.iter().map(|point| turn.applied(point.scenario.clone()));
        turned.flat_map(|scenario| scenario.validate()).next().map(|problem| problem.message)
    };
    let (mut left, mut refused) = (Vec::new(), Vec::new());
    for turn in turns {
        match problem(&turn) {
            None => left.push(turn),
            Some(why) => refused.push((turn, why)),
        }
    }
    match refused.first().filter(|_| left.is_empty()) {
        Some((turn, why)) => Err(Error::Asked(format!("{turn} has no effect in this scenario: {why}"))),
        None => Ok((left, refused)),
    }
}

impl Row {
    /// Returns true if no figure differs in any run.
    pub fn changes_nothing(&self, base: &Runs) -> bool {
        figures_of(base).all(|figure| figure.effect(base, &self.runs).is_some_and(|effect| effect.is_same))
    }
}

impl Ablation {
    /// The failures of all runs, saying whose they are.
    pub fn failures(&self) -> Vec<Failed> {
        let at = match self.point.settings.is_empty() {
            true => String::new(),
            false => format!(" at {}", grid::label(&self.point.settings)),
        };
        let base = self.base.failures_of(&format!("the unchanged scenario{at}"));
        let turned = self.rows.iter().flat_map(|row| row.runs.failures_of(&format!("{}{at}", row.turn)));
        base.into_iter().chain(turned).collect()
    }

    /// All runs by what was turned.
    pub fn sides(&self) -> impl Iterator<Item = (String, &[RunResult])> {
        let base = (self.point.scenario.kernel.name(), &self.base.results[..]);
        let turned = self.rows.iter().map(|row| (row.turn.to_string(), &row.runs.results[..]));
        std::iter::once(base).chain(turned)
    }
}

/// One switch at one value, at all points.
pub struct Turned<'a> {
    /// The switch and its value.
    pub turn: &'a Turn,
    at: usize,
    points: &'a [Ablation],
}

impl Turned<'_> {
    /// Returns its effect on a figure, point by point.
    pub fn effects(&self, figure: &Figure) -> Vec<Option<Paired>> {
        self.points.iter().map(|point| figure.effect(&point.base, &point.rows[self.at].runs)).collect()
    }

    /// Returns true if it was run at any point.
    pub fn was_made(&self) -> bool {
        self.points.iter().any(|point| point.rows[self.at].runs.was_made())
    }

    /// Returns the direction of its effect on a figure, point by point.
    pub fn signs(&self, figure: &Figure) -> Signs {
        Signs::of(self.effects(figure).iter().map(Option::as_ref))
    }

    /// Returns true if no figure differs at any point.
    pub fn changes_nothing(&self) -> bool {
        figures_of(&self.points[0].base).all(|figure| self.signs(figure).is_same())
    }
}

impl Answer {
    /// Returns true if there is nothing to compare with: at no point the scenario ran to its end unchanged.
    pub fn is_nothing(&self) -> bool {
        !self.points.iter().any(|point| point.base.is_whole())
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let points = self.ask.over.iter().map(|over| over.values.len()).product::<usize>();
        let told = self.points.len();
        holds!(told == points, "found {told} points, expected {points}");
        let of = |point: &Ablation| point.rows.iter().map(|row| row.turn.clone()).collect::<Vec<_>>();
        let turns = of(&self.points[0]);
        holds!(self.points.iter().all(|point| of(point) == turns), "points change different switches");
        let twice = self.refused.iter().find(|(turn, _)| turns.contains(turn));
        holds!(twice.is_none(), "a switch is both changed and rejected");
        let runs = self
            .points
            .iter()
            .flat_map(|point| std::iter::once(&point.base).chain(point.rows.iter().map(|row| &row.runs)));
        let made = runs.map(Runs::count).sum();
        holds!(self.extent.is_of(made), "the answer lists {made} runs, but the study made another number");
        Ok(())
    }

    /// As JSON: of a grid all points, and the signs of each figure over them.
    pub fn json(&self) -> Value {
        let head = json!({ "scenario": self.ask.scenario.to_string_lossy() });
        let found = match self.ask.over.is_empty() {
            true => merged(self.head(), self.found(&self.points[0])),
            false => self.grid_json(),
        };
        merged(head, found)
    }

    /// Each turn over all points.
    pub fn turned(&self) -> Vec<Turned<'_>> {
        let turns = self.points[0].rows.iter().enumerate();
        turns.map(|(at, row)| Turned { turn: &row.turn, at, points: &self.points }).collect()
    }

    /// The failures of all runs.
    pub fn failures(&self) -> Vec<Failed> {
        self.points.iter().flat_map(Ablation::failures).collect()
    }

    /// Reasons why figures are meaningless or misleading.
    pub fn caveats(&self) -> Vec<String> {
        caveats::of_rules(&self.points.iter().flat_map(Ablation::sides).collect::<Vec<_>>())
    }

    /// All points, and the signs of each figure over them.
    fn grid_json(&self) -> Value {
        let figures: Vec<&Figure> = figures_of(&self.points[0].base).collect();
        let signs: Vec<Value> = self
            .turned()
            .iter()
            .map(|turned| {
                let figures = figures.iter();
                let figures: Map<String, Value> =
                    figures.map(|figure| (figure.name.to_string(), turned.signs(figure).json())).collect();
                json!({ "switch": turned.turn.knob.name(), "value": turned.turn.value, "figures": figures })
            })
            .collect();
        let found = self.points.iter().map(|point| (&point.point, self.is_whole(point), self.found(point)));
        grid::points_json(self.head(), found, signs.into())
    }

    /// Returns true if all requested runs have results.
    fn is_whole(&self, point: &Ablation) -> bool {
        !self.extent.is_interrupted() && point.failures().is_empty()
    }

    /// What was asked, whatever the point.
    fn head(&self) -> Value {
        let Ablation { point, config, rows, .. } = &self.points[0];
        let switches = SWITCHES.iter();
        let switches = switches.map(|switch| (switch.name.to_string(), switch.get(&config.policy).into()));
        let mut switches: Map<String, Value> = switches.collect();
        for Row { turn, .. } in rows {
            switches.insert(turn.knob.name().to_string(), turn.knob.get(config).into());
        }
        let refused = self.refused.iter();
        let refused =
            refused.map(|(turn, why)| json!({ "switch": turn.knob.name(), "value": turn.value, "why": why }));
        let head = json!({
            "profile": point.scenario.kernel.name(),
            "switches": switches,
            "not_applied_to": switches::untouched(&point.scenario),
            "refused": refused.collect::<Vec<Value>>(),
            "seed": point.scenario.seed,
            "criterion": effect::CRITERION,
        });
        merged(head, self.extent.json())
    }

    /// What was found out at a point.
    fn found(&self, point: &Ablation) -> Value {
        let variants: Vec<Value> = point
            .rows
            .iter()
            .map(|row| {
                let knob = row.turn.knob;
                json!({
                    "switch": knob.name(),
                    "seam": knob.seam(),
                    "value": row.turn.value,
                    "own_value": knob.get(&point.config),
                    "meaning": knob.doc(),
                    "complete": row.runs.is_whole(),
                    "failures": row.runs.failures,
                    "changes_nothing": row.changes_nothing(&point.base),
                    "figures": effect::figures_json(&row.runs),
                    "effects": effect::effects_json(&point.base, &row.runs),
                    "runs": row.runs.results,
                })
            })
            .collect();
        json!({
            "complete": self.is_whole(point),
            "caveats": caveats::of_rules(&point.sides().collect::<Vec<_>>()),
            "base": { "figures": effect::figures_json(&point.base), "runs": point.base.results },
            "variants": variants,
        })
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        kernel.profile = "mglru@6.12"
        [machine]
        memory = "64MiB"
        [[memcg]]
        path = "/web"
        memory.max = "1MiB"
        [[task]]
        name = "reader"
        memcg = "/web"
        object = [{ channel = "file", size = "4MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 2_000 } }]
    "#;

    fn answer() -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("one.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let asked = format!(
            r#"{{ "scenario": {scenario:?}, "switch": ["lru.generations=3,8"], "over": ["memcg./web.memory.max=1MiB,2MiB"], "repeat": 2 }}"#
        );
        let asked: Ask = serde_json::from_str(&asked).unwrap();
        assert_eq!(serde_json::from_value::<Ask>(serde_json::to_value(&asked).unwrap()).unwrap(), asked);
        ask(&asked, &()).unwrap()
    }

    #[test]
    fn ablation_with_a_wrong_sum_is_refused() {
        let whole = answer();
        assert_eq!((whole.check(), whole.points[0].rows.len()), (Ok(()), 2));
        assert_eq!(serde_json::to_value(&whole).unwrap(), whole.json());
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 4] = [
            (|answer| drop(answer.points.pop()), "found 1 points, expected 2"),
            (|answer| drop(answer.points[1].rows.pop()), "points change different switches"),
            (
                |answer| {
                    let turn = answer.points[0].rows[0].turn.clone();
                    answer.refused.push((turn, String::new()));
                },
                "a switch is both changed and rejected",
            ),
            (
                |answer| drop(answer.points[1].base.results.pop()),
                "the answer lists 11 runs, but the study made another number",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            assert_eq!(mutant.check().unwrap_err(), told);
        }
    }
}
