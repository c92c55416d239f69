//! What is measured in both versions, and shares of its change.

use serde_json::{Value, json};

use crate::error::Error;
use crate::result::better::Better;
use crate::result::effect::{self, Figure, figures_of};
use crate::result::spread::{Paired, values_for};
use crate::result::variants::Runs;
use crate::scenario::nearest::nearest;

/// Share of the whole change from which on a rule, or a set of rules, counts as having brought it.
pub(super) const MOST: f64 = 0.8;

/// A share that is named is not sure where its interval reaches below this.
pub(super) const HALF: f64 = 0.5;

/// The name of the figure that says whether the scenario fails.
const FAILS: &str = "fails";

/// The measure: a figure of every run, or whether it fails.
#[derive(Clone, Copy)]
pub enum Measure {
    /// The figure, of runs that don't fail.
    Figure(&'static Figure),
    /// The failure of a run.
    Fails,
}

/// The figure that distinguishes the two versions. It is the failure of the scenario, or the outcome that differs most beyond noise, or,
/// without such an outcome, the work of reclaim. `None`: nothing differs.
pub(super) fn telling_figure(ends: &[Runs; 2]) -> Option<Measure> {
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
    pub(super) fn is_most(self) -> bool {
        self.share >= MOST
    }

    /// The number of seeds that would keep the interval above half of the change, if the trend with N seeds continues; nothing if it is
    /// above already.
    pub(super) fn seeds_missing(self, seeds: u32) -> Option<u32> {
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

    pub(super) fn json(self) -> Value {
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
                "unknown figure `{name}`\nhelp: {}figures are: {}",
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

    /// Returns the name within a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Measure::Figure(figure) => figure.title,
            Measure::Fails => "runs that fail",
        }
    }

    /// Returns the direction in which the figure is better.
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
                Some(Paired { base: before, difference: after - before, half_width: None, is_same, p: None })
            }
            Measure::Fails => None,
        }
    }

    /// The whole change. Errors: there is none, or a side has no figure.
    pub(super) fn change(self, ends: &[Runs; 2]) -> Result<f64, String> {
        match self.difference(&ends[0], &ends[1]) {
            Some(change) if change.is_same || change.difference == 0.0 => {
                Err(format!("{} is the same in both versions", self.name()))
            }
            Some(change) => Ok(change.difference),
            None => Err(format!(
                "cannot compare {}: runs of one version fail\nhelp: compare failures by the figure `{FAILS}`",
                self.name()
            )),
        }
    }

    /// The share of the change between a base and other runs.
    pub(super) fn share(self, base: &Runs, runs: &Runs, change: f64) -> Option<Share> {
        let part = self.difference(base, runs)?;
        let half_width = part.half_width.map(|width| width / change.abs());
        Some(Share { share: part.difference / change, half_width })
    }
}
