//! `pageout crossover`: the mechanisms of the two families of Linux exchanged one for the other, in all combinations.
//!
//! ```text
//!                  classic                                                        MGLRU
//!   lists          two_lists                                                      generations
//!   harvest        rmap        walk        walk + bloom        walk + bloom + look-around
//!   workingset     distance                                                       oldest_generation
//!   balance        cost                                                           feedback
//! ```
//! Each of the 32 combinations is a policy; the two natural ones are the corners. Everything else that the scenario's profile and
//! switches say holds for all of them. If mechanisms were independent, their effects would add up. The last line of each figure,
//! the interaction, says how far they don't.

mod over;

use std::fmt::Write;

use pageout_engine::Switch;
use pageout_sim::scenario::Scenario;
use pageout_study::Failed;
use pageout_study::result::caveats;
use pageout_study::result::effect::{self, FIGURES, Figure};
use pageout_study::result::run_result::RunResult;
use pageout_study::result::spread::Paired;
use pageout_study::result::variants::{Extent, Made, Runs};
use pageout_study::scenario::grid::{self, Point};
use pageout_study::scenario::source::{OVER, Source};
use pageout_study::scenario::switches;
use pageout_study::scenario::variation::{Variation, one_way_to_vary_the_seed};
use serde_json::{Map, Value, json};

use crate::cli::CrossoverArgs;
use crate::commands::ablate::untouched;
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::summary::percentages;
use crate::print::{output, remarks, table};

/// What is exchanged at one seam, from classic's choice to MGLRU's.
struct Seam {
    name: &'static str,
    choices: &'static [Choice],
}

/// A choice at a seam: its name, and what it sets.
struct Choice {
    name: &'static str,
    sets: &'static [(&'static str, &'static str)],
}

const SEAMS: [Seam; 4] = [
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
type Combination = [usize; SEAMS.len()];

const CLASSIC: Combination = [0; SEAMS.len()];

fn mglru() -> Combination {
    std::array::from_fn(|seam| SEAMS[seam].choices.len() - 1)
}

/// All combinations, the last seam's choices changing fastest.
fn combinations() -> Vec<Combination> {
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

fn names(combination: Combination) -> [&'static str; SEAMS.len()] {
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

/// Runs all combinations and prints how they compare with both corners; all that at every point of a grid, if one is asked for.
pub(crate) fn crossover(args: &CrossoverArgs) -> Outcome {
    let source = Source::read(&args.scenario)?;
    refuse_exchanged(&args.over)?;
    one_way_to_vary_the_seed(OVER, &args.over, args.runs.repeat)?;
    let terminal = Terminal::new(&args.options.output);
    let points = grid::points(&source, &args.options.changes(), &args.over, OVER, &terminal)?;
    let plan = args.runs.plan(&args.scenario, &terminal);
    let combinations = combinations();
    let scenarios: Vec<Scenario> = points
        .iter()
        .flat_map(|point| combinations.iter().map(|&combination| scenario_of(&point.scenario, combination)))
        .collect();
    let Made { variants, extent } = plan.run(&scenarios)?;
    let mut runs = variants.into_iter();
    let points: Vec<Crossover> = points
        .into_iter()
        .map(|point| {
            let cells = combinations.iter().copied().zip(runs.by_ref()).collect();
            Crossover { args, point, extent: &extent, cells }
        })
        .collect();
    let failures: Vec<Failed> = points.iter().flat_map(Crossover::failures).collect();
    if points.iter().flat_map(|point| &point.cells).all(|(_, runs)| runs.results.is_empty()) {
        let failure = extent.nothing("every combination failed", &failures);
        return output::no_result(&args.options.output, failure.into(), Value::Null);
    }
    let is_grid = !args.over.is_empty();
    if args.options.output.is_data() {
        let json = if is_grid { over::to_json(&points) } else { points[0].to_json() };
        output::print_json(&json)?;
    } else {
        let text = if is_grid { over::to_text(&points) } else { points[0].to_text() };
        output::print_text(&text)?;
    }
    Ok(extent.verdict(&failures)?)
}

/// What the combinations set themselves would be the same at every point.
fn refuse_exchanged(over: &[Variation]) -> Result<(), Failure> {
    let is_exchanged = |key: &&str| {
        let sets = SEAMS.iter().flat_map(|seam| seam.choices).flat_map(|choice| choice.sets);
        sets.into_iter().any(|(switch, _)| key.strip_prefix("kernel.") == Some(switch))
    };
    let Some(key) = over.iter().map(|variation| variation.key.as_str()).find(is_exchanged) else {
        return Ok(());
    };
    let message = format!("--over {key}: the combinations set this switch themselves");
    Err(Failure::Input(anyhow::anyhow!(message)))
}

/// All that was found out at one point.
struct Crossover<'a> {
    args: &'a CrossoverArgs,
    point: Point,
    extent: &'a Extent,
    cells: Vec<(Combination, Runs)>,
}

/// What it changes to go from classic's choice to MGLRU's at one seam.
struct Step {
    name: String,
    in_classic: Option<Paired>,
    in_mglru: Option<Paired>,
    /// Wherever the other seams stand, at either family's choice.
    everywhere: Vec<Paired>,
    /// In so many places that would be.
    places: usize,
}

impl Step {
    /// The least and the greatest effect anywhere, and in how many places that is if some have no figures.
    fn range(&self, figure: &Figure) -> String {
        let by_size = |a: &&Paired, b: &&Paired| a.difference.total_cmp(&b.difference);
        let effects = self.everywhere.iter();
        let (Some(least), Some(most)) = (effects.clone().min_by(by_size), effects.max_by(by_size)) else {
            return "-".to_string();
        };
        let range = format!("{} to {}", figure.show_effect_alone(least), figure.show_effect_alone(most));
        match self.everywhere.len() {
            known if known == self.places => range,
            known => format!("{range} ({known} of {})", self.places),
        }
    }
}

impl Crossover<'_> {
    /// The failures of all runs, saying whose they are.
    fn failures(&self) -> Vec<Failed> {
        let at = match self.point.settings.is_empty() {
            true => String::new(),
            false => format!(" at {}", grid::label(&self.point.settings)),
        };
        let cells = self.cells.iter();
        cells.flat_map(|(cell, runs)| runs.failures_of(&format!("{}{at}", names(*cell).join(" ")))).collect()
    }

    /// All runs by the name of their combination.
    fn sides(&self) -> impl Iterator<Item = (String, &[RunResult])> {
        self.cells.iter().map(|(cell, runs)| (names(*cell).join(" "), &runs.results[..]))
    }

    /// Whether all runs asked for are there.
    fn is_whole(&self) -> bool {
        !self.extent.is_interrupted() && self.failures().is_empty()
    }

    /// A figure in which nothing differs from 0 tells nothing.
    fn is_shown(&self, figure: &Figure) -> bool {
        (self.args.all || DEFAULT_FIGURES.contains(&figure.name))
            && self.cells.iter().any(|(_, runs)| figure.values(runs).iter().any(|value| *value != 0.0))
    }

    fn runs(&self, combination: Combination) -> &Runs {
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

    fn steps(&self, figure: &Figure) -> Vec<Step> {
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
    fn sums(&self, figure: &Figure) -> Option<[Paired; 3]> {
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

    fn to_text(&self) -> String {
        let mut text = String::new();
        if !self.point.scenario.question.is_empty() {
            text += &output::wrap(&self.point.scenario.question, output::width(), "");
            text.push('\n');
        }
        let seeds = self.extent.seeds_from(self.point.scenario.seed);
        let _ = writeln!(
            text,
            "{}: classic's and MGLRU's choices at the four seams in all combinations, {seeds};\nall else as in {}. A cell: \
             difference to classic / to MGLRU.",
            self.args.scenario.display(),
            self.point.scenario.kernel.name()
        );
        text += &remarks::warning(self.extent);
        text += &remarks::caveats(&caveats::of_rules(&self.sides().collect::<Vec<_>>()));
        text += &percentages(&self.point.scenario.percentages());
        text += &untouched(&self.point.scenario);
        for figure in FIGURES.iter().filter(|figure| self.is_shown(figure)) {
            let corner = |combination| {
                let runs = self.runs(combination);
                if runs.is_whole() { figure.show(runs) } else { runs.missing() }
            };
            let _ = writeln!(
                text,
                "\n{}: classic {}, MGLRU {}\n",
                effect::capitalised(figure.title),
                corner(CLASSIC),
                corner(mglru())
            );
            text += &table::layout(&self.matrix(figure), 2);
            text.push('\n');
            text += &table::layout(&self.step_table(figure), 1);
        }
        let failed = self.cells.iter().filter(|(_, runs)| !runs.failures.is_empty());
        text += &output::failed(
            failed.map(|(cell, runs)| format!("{}: {}", names(*cell).join(", "), runs.failures[0])),
        );
        text.push('\n');
        let noted = self.cells.iter().find_map(|(_, runs)| runs.results.first());
        text += &noted.map_or(String::new(), |run| remarks::notes(&run.notes));
        text + &effect::legend(self.extent.seeds, false)
    }

    fn matrix(&self, figure: &Figure) -> Vec<Vec<String>> {
        let mglru = mglru();
        lay_out(|combination| {
            let runs = self.runs(combination);
            let against = |corner: Combination, name: &str| {
                if combination == corner {
                    return name.to_string();
                }
                let effect = figure.effect(self.runs(corner), runs);
                effect.map_or("-".to_string(), |effect| figure.show_effect_alone(&effect))
            };
            if runs.is_whole() {
                format!("{} / {}", against(CLASSIC, "CLASSIC"), against(mglru, "MGLRU"))
            } else {
                runs.missing()
            }
        })
    }

    fn step_table(&self, figure: &Figure) -> Vec<Vec<String>> {
        let show = |effect: &Paired| figure.show_effect(effect);
        let mut rows = vec![
            ["one step, in parts of classic's figure", "from classic", "to MGLRU", "anywhere"]
                .map(str::to_string)
                .to_vec(),
        ];
        for step in self.steps(figure) {
            let show = |effect: &Option<Paired>| effect.as_ref().map_or("-".to_string(), show);
            rows.push(vec![
                format!("  {}", step.name),
                show(&step.in_classic),
                show(&step.in_mglru),
                step.range(figure),
            ]);
        }
        let sums = self.sums(figure);
        let lines = ["the four from classic, added up", "the four together", "  interaction: the difference"];
        for (at, line) in lines.into_iter().enumerate() {
            rows.push(vec![line.to_string(), sums.as_ref().map_or("-".to_string(), |sums| show(&sums[at]))]);
        }
        rows
    }

    fn to_json(&self) -> Value {
        output::merged(self.head(), self.found())
    }

    /// What was asked, whatever the point.
    fn head(&self) -> Value {
        let head = json!({
            "scenario": self.args.scenario.to_string_lossy(),
            "profile": self.point.scenario.kernel.name(),
            "not_applied_to": switches::untouched(&self.point.scenario),
            "seed": self.point.scenario.seed,
            "criterion": effect::CRITERION,
        });
        output::merged(head, self.extent.json())
    }

    /// What was found out at this point.
    fn found(&self) -> Value {
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
            "complete": self.is_whole(),
            "caveats": caveats::of_rules(&self.sides().collect::<Vec<_>>()),
            "cells": cells,
            "steps": steps,
        })
    }
}

/// Lists and harvest downwards, workingset and balance to the right.
fn lay_out(cell: impl Fn(Combination) -> String) -> Vec<Vec<String>> {
    let mut heading = vec![String::new(); 2];
    for workingset in SEAMS[2].choices {
        heading
            .extend(SEAMS[3].choices.iter().map(|balance| format!("{}\n{}", workingset.name, balance.name)));
    }
    let mut rows = vec![heading];
    for combination in combinations() {
        let [lists, harvest, ..] = names(combination);
        if combination[2..] == [0, 0] {
            let is_first = combination[1] == 0;
            rows.push(vec![if is_first { lists.to_string() } else { String::new() }, harvest.to_string()]);
        }
        rows.last_mut().expect("the heading is there").push(cell(combination));
    }
    rows
}

/// Figures that are printed without `--all`.
const DEFAULT_FIGURES: [&str; 4] = ["pages_read", "throughput", "scanned_per_reclaimed", "reclaim_p99"];

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_engine::Policy;

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
