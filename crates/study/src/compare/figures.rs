//! Figures of a variant over its seeds, and how each differs from the base.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Value, json};

use crate::result::metrics::{Metric, Unit, metrics};
use crate::result::spread::{Paired, Spread};
use crate::result::variants::Runs;

/// The figures of a variant, and where each is.
#[derive(Debug, Default)]
pub struct Figures {
    /// The figures, in the order of the first run that has them.
    pub cells: Vec<Cell>,
    places: BTreeMap<(String, String), usize>,
}

impl Figures {
    /// Every figure; nothing when any run failed, since a mean of the survivors would be a wrong one.
    pub(super) fn of(runs: &Runs, all: bool) -> Figures {
        let mut figures = Figures::default();
        if !runs.is_whole() {
            return figures;
        }
        for metric in runs.results.iter().flat_map(|result| metrics(result, all)) {
            let at = figures.cells.len();
            match figures.places.entry(metric.place()) {
                Entry::Occupied(place) => figures.cells[*place.get()].add(&metric),
                Entry::Vacant(place) => {
                    place.insert(at);
                    figures.cells.push(Cell::new(metric));
                }
            }
        }
        figures
    }

    /// The figure at the place of a metric.
    pub fn find(&self, metric: &Metric) -> Option<&Cell> {
        self.places.get(&metric.place()).map(|&at| &self.cells[at])
    }

    pub(super) fn values(&self, metric: &Metric) -> Option<&[f64]> {
        self.find(metric).map(|cell| cell.values.as_slice())
    }
}

/// One figure of a variant, by seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The measured figure, with its value in the first run.
    pub metric: Metric,
    /// The values of all runs that have it.
    pub values: Vec<f64>,
    /// True if in some run the measured span had not ended.
    pub is_truncated: bool,
}

impl Cell {
    fn new(metric: Metric) -> Cell {
        Cell { values: vec![metric.value], is_truncated: metric.is_truncated, metric }
    }

    fn add(&mut self, metric: &Metric) {
        self.values.push(metric.value);
        self.is_truncated |= metric.is_truncated;
    }

    /// The spread over the seeds.
    pub fn spread(&self) -> Spread {
        Spread::of(&self.values)
    }

    /// The difference to a base, seed by seed. None where not every run has the figure, nor where it was cut off: the end that
    /// a scenario gives its runs is the same for all.
    pub fn difference(&self, base: &Cell) -> Option<Paired> {
        let is_whole = !self.is_truncated && !base.is_truncated;
        (is_whole && self.values.len() == base.values.len()).then(|| Paired::of(&base.values, &self.values))
    }

    pub(super) fn json(&self, base: Option<&Cell>) -> Value {
        let (spread, paired) = (self.spread(), base.and_then(|base| self.difference(base)));
        let (of_difference, difference) = match self.metric.unit {
            Unit::Share => ("difference_points", paired.map(|paired| paired.difference * 100.0)),
            _ => ("difference_percent", paired.and_then(|paired| paired.percent_of_base())),
        };
        let scaled = |difference: f64| match (self.metric.unit, paired) {
            (Unit::Share, _) => Some(difference * 100.0),
            (_, paired) => paired.and_then(|paired| paired.percent(difference)),
        };
        let bound = |sign: f64| {
            let paired = paired.filter(|paired| !paired.is_same)?;
            scaled(paired.difference + sign * paired.half_width?)
        };
        let mut json = json!({
            "mean": spread.mean,
            "deviation": spread.deviation,
            of_difference: difference,
            "difference_low": bound(-1.0),
            "difference_high": bound(1.0),
            "p": paired.and_then(|paired| paired.p),
            "within_noise": paired.is_some_and(|paired| paired.is_within_noise()),
            "values": self.values,
        });
        if self.is_truncated {
            json["truncated"] = true.into();
        }
        json
    }
}
