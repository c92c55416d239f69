//! The same study at half of the scale (`--check-scale`): whether the advice is that of the machine, or of how small it was written.
//!
//! ```text
//!   each page stands for 1,024    loss at each ratio ──┐
//!   each page stands for   512    loss at each ratio ──┴─ difference, and how much of it is explained
//! ```
//! A machine with twice the pages and twice the accesses, each with half the scale factor, is the same machine (`Scenario::halved`).
//!
//! Two causes explain a part of a difference: the noise of seeds, if there are several, and costs per call. These are five costs that
//! `page_stands_for` does not multiply (reclaim call, batch drain, statistics flush, wake-up, context switch). With twice the pages there
//! are at most twice the calls, so at half the scale factor up to half of their time is new. If they take a share `d` of a run, its time
//! differs by at most `d / 2`. A loss of `L` percent then differs by at most `(100 + L) * d / 2` points, with the larger `d` of the two
//! compared runs.

use std::fmt::Write;

use crate::error::{Error, Failed};
use crate::result::run_result::RunResult;
use crate::result::variants::{Extent, Made, NOT_RUN, Plan, Runs};
use crate::scenario::source::{Setting, Source};
use pageout_sim::scenario::{PAGE_SIZE, Scenario, Size};
use serde_json::{Value, json};

use super::{Advice, Asked, Cell, Loss, Question, Ratio, SOURCES, no_base, questions};
use crate::figures;

/// How many times as long a check takes as the study without its knobs: twice the accesses, of twice the pages.
pub(super) const TIMES_AS_LONG: f64 = 2.0;

/// Fewer points than this are reported as "less than".
const LEAST: f64 = 0.01;

/// The study at half of the scale, before it is made.
pub(super) struct Half {
    scenario: Scenario,
    memory: Size,
    questions: Vec<Question>,
}

impl Half {
    /// Errors name the keys that have no half or no double.
    pub(super) fn of(
        asked: &Asked,
        source: &Source,
        settings: &[Setting],
        base: &Scenario,
        memory: Size,
    ) -> Result<Half, Error> {
        let scenario = base.halved().map_err(|problems| {
            let told = source.locate_with(settings, problems);
            Error::Asked(format!("--check-scale: the scenario cannot run at half its scale factor: {told}"))
        })?;
        let memory = Size(memory.0 * 2);
        let questions = questions(asked, &scenario, memory)?;
        Ok(Half { scenario, memory, questions })
    }

    /// Makes the study, with as much left out as the whole leaves out.
    pub(super) fn run(self, plan: &Plan, whole: &Advice) -> Result<AtHalf, Error> {
        let Half { scenario, memory, questions } = self;
        let Made { variants, extent } = plan.run_with_trails(std::slice::from_ref(&scenario))?;
        let all_fast = variants.into_iter().next().expect("one was asked for");
        let accesses = || whole.asked.warm_up.accesses(&all_fast);
        let begun = no_base(&all_fast, &extent).map_or_else(accesses, Err);
        let warm_up = match begun {
            Ok(warm_up) => warm_up,
            Err(error) => return Ok(AtHalf::Failed { error, extent }),
        };
        let (asked, put_aside) = (whole.asked.clone(), whole.put_aside.clone());
        let mut half = Advice::begun(asked, scenario, memory, put_aside, extent, all_fast, warm_up);
        half.ask(plan, &questions)?;
        Ok(AtHalf::Made(Box::new(half)))
    }
}

/// The result of the study at half the scale factor.
pub(super) enum AtHalf {
    Made(Box<Advice>),
    /// With all its memory fast, the workload came to no figures.
    Failed {
        error: Error,
        extent: Extent,
    },
}

impl AtHalf {
    pub(super) fn extent(&self) -> &Extent {
        match self {
            AtHalf::Made(half) => &half.extent,
            AtHalf::Failed { extent, .. } => extent,
        }
    }

    pub(super) fn failures(&self) -> Vec<Failed> {
        const WHOSE: &str = "at half the scale factor";
        match self {
            AtHalf::Made(half) => half.failures().iter().map(|failed| failed.of(WHOSE)).collect(),
            // The signal is reported separately.
            AtHalf::Failed { extent, .. } if extent.is_interrupted() => Vec::new(),
            AtHalf::Failed { error, .. } => {
                vec![Failed { is_input: error.is_input(), message: error.to_string() }.of(WHOSE)]
            }
        }
    }
}

/// The best at a ratio on a device, at both scales.
struct Pair<'a> {
    ratio: Ratio,
    device: &'a str,
    whole: Option<(&'a Cell, Loss)>,
    half: Option<(&'a Cell, Loss)>,
    /// Points of the difference that seeds and calls explain.
    explained: Option<f64>,
}

impl Pair<'_> {
    /// Points that half of the scale loses more.
    fn difference(&self) -> Option<f64> {
        Some(self.half?.1.percent - self.whole?.1.percent)
    }

    fn is_explained(&self) -> Option<bool> {
        Some(self.difference()?.abs() <= self.explained?)
    }

    fn name(&self) -> String {
        format!("{} {}", self.ratio, self.device)
    }
}

impl Advice {
    fn best_with_loss(&self, ratio: Ratio, device: &str) -> Option<(&Cell, Loss)> {
        let (at, _) = self.best(ratio, device)?;
        Some((&self.cells[at], self.interval(&self.cells[at].runs)?))
    }

    /// The share of a run's time that is priced by call, in that of all its tasks together.
    fn by_call(runs: &Runs) -> f64 {
        let sum = |of: fn(&RunResult) -> u64| runs.results.iter().map(of).sum();
        let calls = sum(|run| run.by_call_ns);
        figures::share(calls, sum(|run| run.tasks.iter().map(|task| task.thread_time_ns).sum()))
    }

    fn pairs<'s>(&'s self, half: &'s Advice) -> Vec<Pair<'s>> {
        let pair = |device: &'s String, ratio: Ratio| {
            let (whole, at_half) = (self.best_with_loss(ratio, device), half.best_with_loss(ratio, device));
            let explained = whole.zip(at_half).map(|((_, one), (cell, other))| {
                let calls = Self::by_call(&half.all_fast).max(Self::by_call(&cell.runs)) / 2.0;
                one.noise().hypot(other.noise()) + calls * (100.0 + other.percent)
            });
            Pair { ratio, device, whole, half: at_half, explained }
        };
        self.asked
            .devices
            .iter()
            .flat_map(|device| self.ratios().into_iter().map(move |ratio| pair(device, ratio)))
            .collect()
    }

    fn each(&self) -> String {
        figures::count(self.scenario.machine.page_stands_for.into())
    }

    /// A row a ratio and device: what is lost at both scales.
    pub fn scales(&self) -> Option<Vec<Vec<String>>> {
        let AtHalf::Made(half) = self.at_half.as_ref()? else { return None };
        let heading = [
            "fast:slow".to_string(),
            "memory".to_string(),
            format!("{} each", self.each()),
            format!("{} each", half.each()),
            "differ by".to_string(),
            "explained".to_string(),
        ];
        let shown = |best: Option<(&Cell, Loss)>| {
            best.map_or(NOT_RUN.to_string(), |(cell, loss)| {
                format!("{} ({})", loss.show(), SOURCES[cell.source].name)
            })
        };
        let points = |points: Option<f64>, of: fn(f64) -> String| points.map_or("-".to_string(), of);
        let row = |pair: Pair| {
            vec![
                pair.ratio.to_string(),
                pair.device.to_string(),
                shown(pair.whole),
                shown(pair.half),
                points(pair.difference(), |points| format!("{points:+.2}")),
                points(pair.explained, |points| match points < LEAST {
                    true => format!("< {LEAST}"),
                    false => format!("± {points:.2}"),
                }),
            ]
        };
        Some(std::iter::once(heading.to_vec()).chain(self.pairs(half).into_iter().map(row)).collect())
    }

    /// Returns the title of the table.
    pub fn scales_title(&self) -> Option<String> {
        let AtHalf::Made(half) = self.at_half.as_ref()? else { return None };
        Some(format!(
            "Losses at scale factor {} ({}) and at scale factor {} ({}), in percent; differences in percentage points",
            self.each(),
            self.memory,
            half.each(),
            half.memory
        ))
    }

    /// Sentences: whether the verdict is that of the machine.
    pub(super) fn scale_story(&self) -> Vec<String> {
        let half = match &self.at_half {
            None => return Vec::new(),
            Some(AtHalf::Failed { .. }) => {
                return vec!["The effect of the scale factor is unknown: runs at half the scale factor have no figures.".to_string()];
            }
            Some(AtHalf::Made(half)) => half,
        };
        let pairs = self.pairs(half);
        let mut story: Vec<String> =
            self.asked.devices.iter().map(|device| self.verdicts(half, &pairs, device)).collect();
        story.extend(self.largest(half, &pairs));
        story
    }

    /// True if the ratio that is advised for a device is the same at both scales; `None` if a run is missing.
    fn is_same(&self, half: &Advice, device: &str) -> Option<bool> {
        let is_known = |advice: &Advice| advice.tried(device).len() == advice.ratios().len();
        let ratio = |advice: &Advice| advice.advised(device).map(|(at, _)| advice.cells[at].ratio);
        (is_known(self) && is_known(half)).then(|| ratio(self) == ratio(half))
    }

    fn verdicts(&self, half: &Advice, pairs: &[Pair], device: &str) -> String {
        let verdict = |advice: &Advice| {
            let advised = advice.advised(device).map(|(at, _)| advice.cells[at].ratio.to_string());
            advised.unwrap_or_else(|| "none of the ratios".to_string())
        };
        let (one, other) = (verdict(self), verdict(half));
        match self.is_same(half, device) {
            None => {
                format!(
                    "{device}: the effect of the scale factor is unknown because some runs have no figures."
                )
            }
            Some(true) => format!(
                "{device}: the verdict is the same at scale factor {} as at {}: {one}.",
                half.each(),
                self.each()
            ),
            Some(false) => {
                let limit = self.asked.loss;
                let disputed = pairs.iter().filter(|pair| {
                    let is_good = |best: Option<(&Cell, Loss)>| best.map(|(_, loss)| loss.percent < limit);
                    pair.device == device && is_good(pair.whole) != is_good(pair.half)
                });
                let is_noise = disputed.clone().all(|pair| pair.is_explained() == Some(true));
                let loss = |best: Option<(&Cell, Loss)>| best.map_or(0.0, |(_, loss)| loss.percent);
                let shown = |pair: &Pair| {
                    format!("{} loses {:.2} and {:.2} %", pair.ratio, loss(pair.whole), loss(pair.half))
                };
                let at: Vec<String> = disputed.map(shown).collect();
                let advice = match is_noise {
                    true => "The known causes explain this difference. Use the ratio with more fast memory, or run more seeds (--repeat) to decide"
                        .to_string(),
                    false => format!(
                        "Prefer the second verdict: a smaller scale factor is nearer to the real machine, \
                         where kernel batches, defaults and device latencies apply to single pages. Write \
                         the scenario at {} and check again until two verdicts agree",
                        half.each()
                    ),
                };
                format!(
                    "{device}: the verdict depends on the scale factor: {one} at scale factor {}, {other} at \
                     {}. The limit is {limit} %: {}. {advice}.",
                    self.each(),
                    half.each(),
                    at.join(", ")
                )
            }
        }
    }

    /// The cell with the largest difference between the scale factors, its differing figures, and their explained part.
    fn largest(&self, half: &Advice, pairs: &[Pair]) -> Option<String> {
        let size = |pair: &&Pair| pair.difference().map_or(-1.0, f64::abs);
        let most = pairs.iter().max_by(|one, other| size(one).total_cmp(&size(other)))?;
        let (difference, explained) = (most.difference()?, most.explained?);
        let (noise, one_seed) = match self.extent.repeat {
            1 => ("", " The noise of one seed is unknown (--repeat)."),
            _ => ("the noise of seeds and ", ""),
        };
        let explained = match explained < LEAST {
            true => format!("Less than {LEAST} points are"),
            false => format!("Up to {explained:.2} points are"),
        };
        let beyond = pairs.iter().filter(|pair| pair.is_explained() == Some(false)).count();
        let beyond = match beyond {
            0 => "No difference is".to_string(),
            beyond if beyond == pairs.len() => "All differences are".to_string(),
            beyond => format!("{beyond} of {} differences are", pairs.len()),
        };
        Some(format!(
            "Losses differ most at {}: by {difference:+.2} points. {explained} explained by {noise}costs per \
             call (reclaim call, batch drain, statistics flush, wake-up, context switch).{one_seed}{} \
             {beyond} larger than the explained part.",
            most.name(),
            self.what_differs(half, most).unwrap_or_default(),
        ))
    }

    /// Figures of the two best runs at a ratio that show the cause of a difference: accesses by memory, and moved pages.
    fn what_differs(&self, half: &Advice, pair: &Pair) -> Option<String> {
        let figures = |advice: &Advice, best: Option<(&Cell, Loss)>| {
            let tiers = best?.0.result()?.tiers.as_ref()?;
            let each = u64::from(advice.scenario.machine.page_stands_for) * PAGE_SIZE;
            let moved = [tiers.promoted, tiers.demoted].map(|pages| pages * each);
            Some((figures::percent(tiers.fast_hit_ratio?), moved))
        };
        let (hits, moved) = figures(self, pair.whole)?;
        let (hits_at_half, moved_at_half) = figures(half, pair.half)?;
        let [by, by_at_half] = [pair.whole?, pair.half?].map(|(cell, _)| SOURCES[cell.source].name);
        let by = if by == by_at_half { String::new() } else { format!(", with {by} and {by_at_half},") };
        let mut told = format!(" In this cell{by} fast memory serves {hits} and {hits_at_half} of accesses");
        for ((what, bytes), at_half) in ["promoted", "demoted"].iter().zip(moved).zip(moved_at_half) {
            if bytes.max(at_half) > 0 {
                let [bytes, at_half] = [bytes, at_half].map(figures::bytes);
                let _ = write!(told, ", {bytes} and {at_half} of the machine are {what}");
            }
        }
        Some(told + ".")
    }

    /// The check, for JSON; null without --check-scale.
    pub(super) fn scale_json(&self) -> Value {
        let half = match &self.at_half {
            None => return Value::Null,
            Some(AtHalf::Failed { error, .. }) => return json!({ "failure": error.to_string() }),
            Some(AtHalf::Made(half)) => half,
        };
        let verdict = |advice: &Advice, device: &str| {
            advice.advised(device).map(|(at, _)| advice.cells[at].ratio.to_string())
        };
        let verdicts = self.asked.devices.iter().map(|device| {
            json!({
                "device": device,
                "advised": verdict(self, device),
                "advised_at_half": verdict(half, device),
                "same": self.is_same(half, device),
            })
        });
        let best = |best: Option<(&Cell, Loss)>| {
            best.map(
                |(cell, loss)| json!({ "source": SOURCES[cell.source].name, "loss_percent": loss.percent }),
            )
        };
        let ratios = self.pairs(half).into_iter().map(|pair| {
            json!({
                "ratio": pair.ratio.to_string(),
                "device": pair.device,
                "best": best(pair.whole),
                "best_at_half": best(pair.half),
                "difference_points": pair.difference(),
                "explained_points": pair.explained,
            })
        });
        json!({
            "page_stands_for": half.scenario.machine.page_stands_for,
            "memory_bytes": half.memory.0,
            "verdicts": verdicts.collect::<Vec<_>>(),
            "ratios": ratios.collect::<Vec<_>>(),
            "story": self.scale_story(),
        })
    }
}
