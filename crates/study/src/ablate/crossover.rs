//! Crossover: the mechanisms of the two families of Linux exchanged one for the other, in all combinations.
//!
//! ```text
//!                  classic                                                        MGLRU
//!   lists          two_lists                                                      generations
//!   harvest        rmap        walk        walk + bloom        walk + bloom + look-around
//!   workingset     distance                                                       oldest_generation
//!   balance        cost                                                           feedback
//! ```
//! An ablation changes one switch and leaves the others unchanged. A crossover changes complete seams, and all of them together. Each of
//! the 32 combinations is a policy; the two natural ones are the corners. Everything else in the scenario's profile and switches is the
//! same in all of them. If mechanisms were independent, their effects would add up. The interaction shows how far they do not.

use std::path::PathBuf;

use pageout_engine::Switch;
use pageout_sim::scenario::Scenario;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::error::{Error, Failed, bail};
use crate::json::merged;
use crate::result::caveats;
use crate::result::effect::{self, FIGURES, Figure};
use crate::result::run_result::RunResult;
use crate::result::sign::Signs;
use crate::result::spread::Paired;
use crate::result::variants::{Extent, Made, Plan, Runs};
use crate::scenario::grid::{self, Point};
use crate::scenario::load::Changes;
use crate::scenario::source::{OVER, Source};
use crate::scenario::switches;
use crate::scenario::variation::{Variation, one_way_to_vary_the_seed};
use crate::watch::{Watcher, name_of};

/// The exchange at one seam, from classic's choice to MGLRU's.
pub struct Seam {
    /// Its name.
    pub name: &'static str,
    /// The choices, from classic's to MGLRU's.
    pub choices: &'static [Choice],
}

/// A choice at a seam: its name, and what it sets.
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

/// The seams, in the order of a combination.
pub const SEAMS: [Seam; 4] = [
    Seam {
        name: "lists",
        choices: &[
            Choice {
                name: "two_lists",
                sets: &[
                    ("lru.lists", "two_lists"),
                    ("reclaim.flusher_wake", "batch"),
                    ("reclaim.batch_tallies", "true"),
                    ("reclaim.v1_throttle", "batch"),
                ],
            },
            Choice {
                name: "generations",
                sets: &[
                    ("lru.lists", "generations"),
                    ("reclaim.flusher_wake", "pass"),
                    ("reclaim.batch_tallies", "false"),
                    ("reclaim.v1_throttle", "after_pass"),
                ],
            },
        ],
    },
    Seam {
        name: "harvest",
        choices: &[
            Choice {
                name: "rmap",
                sets: &[
                    ("harvest.page_table_walk", "false"),
                    ("harvest.non_leaf_young", "false"),
                    ("harvest.look_around", "false"),
                ],
            },
            Choice {
                name: "walk",
                sets: &[
                    ("harvest.page_table_walk", "true"),
                    ("harvest.non_leaf_young", "true"),
                    ("harvest.bloom_filter", "false"),
                    ("harvest.look_around", "false"),
                ],
            },
            Choice {
                name: "walk+bloom",
                sets: &[
                    ("harvest.page_table_walk", "true"),
                    ("harvest.non_leaf_young", "true"),
                    ("harvest.bloom_filter", "true"),
                    ("harvest.look_around", "false"),
                ],
            },
            Choice {
                name: "walk+bloom+around",
                sets: &[
                    ("harvest.page_table_walk", "true"),
                    ("harvest.non_leaf_young", "true"),
                    ("harvest.bloom_filter", "true"),
                    ("harvest.look_around", "true"),
                ],
            },
        ],
    },
    Seam {
        name: "workingset",
        choices: &[
            Choice { name: "distance", sets: &[("workingset.recency", "distance")] },
            Choice { name: "oldest_generation", sets: &[("workingset.recency", "oldest_generation")] },
        ],
    },
    Seam {
        name: "balance",
        choices: &[
            Choice { name: "cost", sets: &[("balance.rule", "cost")] },
            Choice { name: "feedback", sets: &[("balance.rule", "feedback")] },
        ],
    },
];

/// A choice at each seam, by number.
pub type Combination = [usize; SEAMS.len()];

/// The corner that is classic.
pub const CLASSIC: Combination = [0; SEAMS.len()];

/// The corner that is MGLRU.
pub fn mglru() -> Combination {
    std::array::from_fn(|seam| SEAMS[seam].choices.len() - 1)
}

/// All combinations, the last seam's choices changing fastest.
pub fn combinations() -> Vec<Combination> {
    SEAMS.iter().enumerate().fold(vec![CLASSIC], |before, (at, seam)| {
        let with = |combination: Combination, choice: usize| {
            let mut next = combination;
            next[at] = choice;
            next
        };
        before
            .into_iter()
            .flat_map(|combination| (0..seam.choices.len()).map(move |choice| with(combination, choice)))
            .collect()
    })
}

/// The names of a combination's choices.
pub fn names(combination: Combination) -> [&'static str; SEAMS.len()] {
    std::array::from_fn(|seam| SEAMS[seam].choices[combination[seam]].name)
}

fn sets(combination: Combination) -> impl Iterator<Item = (&'static str, &'static str)> {
    SEAMS.iter().zip(combination).flat_map(|(seam, choice)| seam.choices[choice].sets.iter().copied())
}

fn scenario_of(base: &Scenario, combination: Combination) -> Scenario {
    sets(combination).fold(base.clone(), |scenario, (name, value)| {
        let switch = Switch::by_name(name).expect("the table above names switches of the engine");
        switches::with_switch(scenario, switch, value)
    })
}

/// The scenario and the points at which seams are exchanged.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, or `-` for standard input.
    pub scenario: PathBuf,
    /// The changes of the scenario.
    pub changes: Changes,
    /// Keys with several values each: all is done at each combination of them. Default none.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub over: Vec<Variation>,
    /// Seeds, counted up from the scenario's. 1 or more; default 5.
    pub repeat: u32,
    /// Runs at the same time; 0, the default, is one for each CPU.
    pub jobs: usize,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask { scenario: PathBuf::new(), changes: Changes::default(), over: Vec::new(), repeat: 5, jobs: 0 }
    }
}

/// All that was found out.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The completed runs, of those that were requested.
    pub extent: Extent,
    /// Each point of the grid; one where there is none.
    pub points: Vec<Crossover>,
}

/// All that was found out at one point.
#[derive(Debug)]
pub struct Crossover {
    /// The point.
    pub point: Point,
    /// All combinations with their runs.
    pub cells: Vec<(Combination, Runs)>,
}

/// Runs all combinations, at every point of a grid if one is asked for. Runs that fail are part of the answer. Errors: the scenario makes no
/// sense, or a point changes what the combinations set.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let source = Source::read(&ask.scenario)?;
    refuse_exchanged(&ask.over)?;
    one_way_to_vary_the_seed(OVER, &ask.over, ask.repeat)?;
    let points = grid::points(&source, &ask.changes, &ask.over, OVER, watcher)?;
    let plan = Plan { name: name_of(&ask.scenario), repeat: ask.repeat, jobs: ask.jobs, watcher };
    let combinations = combinations();
    let scenarios: Vec<Scenario> = points
        .iter()
        .flat_map(|point| combinations.iter().map(|&combination| scenario_of(&point.scenario, combination)))
        .collect();
    let Made { variants, extent } = plan.run(&scenarios)?;
    let mut runs = variants.into_iter();
    let points = points.into_iter().map(|point| {
        let cells = combinations.iter().copied().zip(runs.by_ref()).collect();
        Crossover { point, cells }
    });
    let answer = Answer { ask: ask.clone(), extent, points: points.collect() };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// Switches that the combinations set would have the same value at every point.
fn refuse_exchanged(over: &[Variation]) -> Result<(), Error> {
    let is_exchanged = |key: &&str| {
        let sets = SEAMS.iter().flat_map(|seam| seam.choices).flat_map(|choice| choice.sets);
        sets.into_iter().any(|(switch, _)| key.strip_prefix("kernel.") == Some(switch))
    };
    let Some(key) = over.iter().map(|variation| variation.key.as_str()).find(is_exchanged) else {
        return Ok(());
    };
    bail!("--over {key}: the combinations already set this switch")
}

/// The effect of one step: from classic's choice to MGLRU's at one seam.
pub struct Step {
    /// The seam, and both choices.
    pub name: String,
    /// With classic's choices at all other seams.
    pub in_classic: Option<Paired>,
    /// With MGLRU's choices there.
    pub in_mglru: Option<Paired>,
    /// Wherever the other seams stand, at either family's choice.
    pub everywhere: Vec<Paired>,
    /// In so many places that would be.
    pub places: usize,
}

impl Crossover {
    /// The failures of all runs, saying whose they are.
    pub fn failures(&self) -> Vec<Failed> {
        let at = match self.point.settings.is_empty() {
            true => String::new(),
            false => format!(" at {}", grid::label(&self.point.settings)),
        };
        let cells = self.cells.iter();
        cells.flat_map(|(cell, runs)| runs.failures_of(&format!("{}{at}", names(*cell).join(" ")))).collect()
    }

    /// All runs by the name of their combination.
    pub fn sides(&self) -> impl Iterator<Item = (String, &[RunResult])> {
        self.cells.iter().map(|(cell, runs)| (names(*cell).join(" "), &runs.results[..]))
    }

    /// Returns true if no part of a figure differs from 0.
    pub fn is_idle(&self, figure: &Figure) -> bool {
        self.cells.iter().all(|(_, runs)| figure.values(runs).iter().all(|value| *value == 0.0))
    }

    /// The runs of a combination.
    pub fn runs(&self, combination: Combination) -> &Runs {
        let cell = self.cells.iter().find(|(known, _)| *known == combination);
        &cell.expect("every combination was run").1
    }

    /// A figure of a combination, seed by seed; nothing where a run failed or was not made.
    fn values(&self, figure: &Figure, combination: Combination) -> Option<Vec<f64>> {
        let runs = self.runs(combination);
        runs.is_whole().then(|| figure.values(runs))
    }

    /// From one combination to another, as a part of classic's figure.
    fn step(&self, figure: &Figure, from: Combination, to: Combination) -> Option<Paired> {
        let base = self.values(figure, CLASSIC)?;
        let (from, to) = (self.values(figure, from)?, self.values(figure, to)?);
        let differences: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
        Some(Paired::of_differences(&differences, &base))
    }

    /// The step at each seam.
    pub fn steps(&self, figure: &Figure) -> Vec<Step> {
        let mglru = mglru();
        let steps = SEAMS.iter().enumerate().map(|(at, seam)| {
            let [first, last] = [CLASSIC, mglru].map(|corner| seam.choices[corner[at]].name);
            let with = |mut combination: Combination, choice: usize| {
                combination[at] = choice;
                combination
            };
            let step = |context: Combination| {
                self.step(figure, with(context, CLASSIC[at]), with(context, mglru[at]))
            };
            let mut contexts = combinations();
            contexts.retain(|context| {
                context[at] == CLASSIC[at]
                    && (0..SEAMS.len()).all(|seam| [CLASSIC[seam], mglru[seam]].contains(&context[seam]))
            });
            Step {
                name: format!("{}: {first} to {last}", seam.name),
                in_classic: step(CLASSIC),
                in_mglru: step(mglru),
                places: contexts.len(),
                everywhere: contexts.into_iter().filter_map(step).collect(),
            }
        });
        steps.collect()
    }

    /// The four steps alone, added up; all of them together; and by how much that is more.
    pub fn sums(&self, figure: &Figure) -> Option<[Paired; 3]> {
        let base = self.values(figure, CLASSIC)?;
        let mglru = mglru();
        let end = self.values(figure, mglru)?;
        let mut alone = vec![0.0; base.len()];
        for at in 0..SEAMS.len() {
            let mut combination = CLASSIC;
            combination[at] = mglru[at];
            for (sum, (to, from)) in alone.iter_mut().zip(self.values(figure, combination)?.iter().zip(&base))
            {
                *sum += to - from;
            }
        }
        let together: Vec<f64> = end.iter().zip(&base).map(|(end, base)| end - base).collect();
        let beyond: Vec<f64> = together.iter().zip(&alone).map(|(all, alone)| all - alone).collect();
        Some([&alone, &together, &beyond].map(|differences| Paired::of_differences(differences, &base)))
    }

    /// What was found out at this point.
    fn found(&self, is_whole: bool) -> Value {
        let cells: Vec<Value> = self
            .cells
            .iter()
            .map(|(combination, runs)| {
                let [lists, harvest, workingset, balance] = names(*combination);
                let settings: Map<String, Value> =
                    sets(*combination).map(|(name, value)| (name.to_string(), value.into())).collect();
                json!({
                    "lists": lists,
                    "harvest": harvest,
                    "workingset": workingset,
                    "balance": balance,
                    "corner": match *combination {
                        CLASSIC => Some("classic"),
                        combination if combination == mglru() => Some("mglru"),
                        _ => None,
                    },
                    "switches": settings,
                    "complete": runs.is_whole(),
                    "failures": runs.failures,
                    "figures": effect::figures_json(runs),
                    "against_classic": effect::effects_json(self.runs(CLASSIC), runs),
                    "against_mglru": effect::effects_json(self.runs(mglru()), runs),
                    "runs": runs.results,
                })
            })
            .collect();
        let effect = |effect: &Option<Paired>| effect.as_ref().map(effect::effect_json);
        let steps: Map<String, Value> = FIGURES
            .iter()
            .map(|figure| {
                let seams: Vec<Value> = self
                    .steps(figure)
                    .iter()
                    .map(|step| {
                        json!({
                            "step": step.name,
                            "from_classic": effect(&step.in_classic),
                            "to_mglru": effect(&step.in_mglru),
                            "anywhere": step.everywhere.iter().map(effect::effect_json).collect::<Vec<_>>(),
                        })
                    })
                    .collect();
                let sums = self.sums(figure).map(|sums| sums.map(|sum| effect::effect_json(&sum)));
                let [added_up, together, interaction] = match sums {
                    Some(sums) => sums.map(Some),
                    None => [const { None }; 3],
                };
                let value = json!({
                    "steps": seams,
                    "added_up": added_up,
                    "together": together,
                    "interaction": interaction,
                });
                (figure.name.to_string(), value)
            })
            .collect();
        json!({
            "complete": is_whole,
            "caveats": caveats::of_rules(&self.sides().collect::<Vec<_>>()),
            "cells": cells,
            "steps": steps,
        })
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_grid = !self.ask.over.is_empty();
        let json = if is_grid { self.grid_json() } else { self.json() };
        json.serialize(serializer)
    }
}

impl Answer {
    /// The failures of all runs.
    pub fn failures(&self) -> Vec<Failed> {
        self.points.iter().flat_map(Crossover::failures).collect()
    }

    /// Returns true if no run has a result.
    pub fn is_nothing(&self) -> bool {
        self.points.iter().flat_map(|point| &point.cells).all(|(_, runs)| runs.results.is_empty())
    }

    /// Returns true if all requested runs have results.
    fn is_whole(&self, point: &Crossover) -> bool {
        !self.extent.is_interrupted() && point.failures().is_empty()
    }

    /// Checks that the answer agrees with itself. Errors: the sum that does not.
    pub fn check(&self) -> Result<(), String> {
        let all = combinations();
        for point in &self.points {
            if !point.cells.iter().map(|(combination, _)| *combination).eq(all.iter().copied()) {
                return Err("a combination is missing or listed twice".to_string());
            }
            let most = self.extent.seeds as usize;
            if point.cells.iter().any(|(_, runs)| runs.results.len() + runs.failures.len() > most) {
                return Err("a combination has more runs than seeds".to_string());
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        merged(self.head(), self.points[0].found(self.is_whole(&self.points[0])))
    }

    /// What was asked, whatever the point.
    fn head(&self) -> Value {
        let point = &self.points[0].point;
        let head = json!({
            "scenario": self.ask.scenario.to_string_lossy(),
            "profile": point.scenario.kernel.name(),
            "not_applied_to": switches::untouched(&point.scenario),
            "seed": point.scenario.seed,
            "criterion": effect::CRITERION,
        });
        merged(head, self.extent.json())
    }

    /// All points, and the signs of each figure over them.
    fn grid_json(&self) -> Value {
        let points = &self.points[..];
        let by_figure: Map<String, Value> = FIGURES
            .iter()
            .map(|figure| {
                let cells = combinations().into_iter().map(|cell| {
                    let [lists, harvest, workingset, balance] = names(cell);
                    json!({
                        "lists": lists,
                        "harvest": harvest,
                        "workingset": workingset,
                        "balance": balance,
                        "against_classic": signs(points, figure, CLASSIC, cell).json(),
                        "against_mglru": signs(points, figure, mglru(), cell).json(),
                    })
                });
                let steps = steps(points, figure).into_iter().map(|step| {
                    json!({
                        "step": step.name,
                        "from_classic": Signs::of(step.from_classic.iter().map(Option::as_ref)).json(),
                        "to_mglru": Signs::of(step.to_mglru.iter().map(Option::as_ref)).json(),
                    })
                });
                let value = json!({ "cells": cells.collect::<Vec<_>>(), "steps": steps.collect::<Vec<_>>() });
                (figure.name.to_string(), value)
            })
            .collect();
        let found = points
            .iter()
            .map(|point| (&point.point, self.is_whole(point), point.found(self.is_whole(point))));
        grid::points_json(self.head(), found, by_figure.into())
    }
}

/// The signs of a combination against a corner.
pub fn signs(points: &[Crossover], figure: &Figure, corner: Combination, cell: Combination) -> Signs {
    let effects: Vec<Option<Paired>> =
        points.iter().map(|point| figure.effect(point.runs(corner), point.runs(cell))).collect();
    Signs::of(effects.iter().map(Option::as_ref))
}

/// One seam's step at all points: alone out of classic, and the last into MGLRU.
pub struct Steps {
    /// The seam, and both choices.
    pub name: String,
    /// Alone out of classic, at each point.
    pub from_classic: Vec<Option<Paired>>,
    /// The last into MGLRU, at each point.
    pub to_mglru: Vec<Option<Paired>>,
}

/// The step at each seam, at all points.
pub fn steps(points: &[Crossover], figure: &Figure) -> Vec<Steps> {
    let by_point: Vec<_> = points.iter().map(|point| point.steps(figure)).collect();
    let step = |at: usize| Steps {
        name: by_point[0][at].name.clone(),
        from_classic: by_point.iter().map(|steps| steps[at].in_classic).collect(),
        to_mglru: by_point.iter().map(|steps| steps[at].in_mglru).collect(),
    };
    (0..SEAMS.len()).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_engine::Policy;

    fn answer() -> Answer {
        let file = r#"
            [[memcg]]
            path = "/web"
            memory.max = "1MiB"
            [[task]]
            name = "reader"
            memcg = "/web"
            object = [{ channel = "file", size = "2MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 2_000 } }]
        "#;
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("web.toml");
        std::fs::write(&scenario, file).unwrap();
        ask(&Ask { scenario, repeat: 2, ..Ask::default() }, &()).unwrap()
    }

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        let mut answer = answer();
        assert_eq!(answer.check(), Ok(()));
        assert!(!answer.is_nothing() && answer.failures().is_empty());
        let last = answer.points[0].cells.pop().unwrap();
        assert!(answer.check().unwrap_err().contains("a combination is missing or listed twice"));
        answer.points[0].cells.push(last);
        assert_eq!(answer.check(), Ok(()));
        answer.points[0].cells.swap(3, 4);
        assert!(answer.check().unwrap_err().contains("a combination is missing or listed twice"));
        answer.points[0].cells.swap(3, 4);
        let runs = &mut answer.points[0].cells[3].1.results;
        runs.extend_from_within(..1);
        assert!(answer.check().unwrap_err().contains("more runs than seeds"));
    }

    #[test]
    fn every_choice_is_combined_with_every_other_once() {
        let all = combinations();
        assert_eq!(all.len(), 32);
        assert!(all.iter().enumerate().all(|(at, combination)| !all[..at].contains(combination)));
        assert_eq!((all[0], all[31]), (CLASSIC, mglru()));
    }

    #[test]
    fn the_corners_are_the_profiles() {
        let scenario: Scenario = toml_edit::de::from_str("[[task]]\nname = \"t\"\n").unwrap();
        let policy = |combination| switches::policy_of(&scenario_of(&scenario, combination));
        assert_eq!(policy(CLASSIC), Policy::of("classic@6.12"));
        assert_eq!(policy(mglru()), Policy::of("mglru@6.12"));
    }
}
