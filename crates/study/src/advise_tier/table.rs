//! The advice as rows of tables, points of a chart and JSON.

use serde_json::{Value, json};

use super::sources::SOURCES;
use super::{Advice, Cell, Loss, Ratio, is_any, signed};
use crate::figures;
use crate::json::merged;
use crate::result::run_result::{RunResult, TiersResult};
use crate::result::spread::Spread;
use crate::result::variants::NOT_RUN;

/// The loss of one source, by share of slow memory.
pub struct Line {
    /// The source's name.
    pub name: &'static str,
    /// Its place among all sources, by which it is coloured.
    pub source: usize,
    /// Percent that it takes longer at each share of slow memory; none where a run has no figures.
    pub losses: Vec<Option<f64>>,
}

/// The CPU time that it took to find hot pages, in percent of one CPU, with half of its 95 % interval if there are several seeds.
fn tracking(runs: &[RunResult]) -> Option<String> {
    let share = |run: &RunResult| {
        let tiers = run.tiers.as_ref()?;
        (run.end_ns > 0).then(|| tiers.tracker_ns as f64 / run.end_ns as f64 * 100.0)
    };
    let shares: Vec<f64> = runs.iter().filter_map(share).collect();
    let spread = (!shares.is_empty()).then(|| Spread::of(&shares))?;
    Some(match spread.half_width() {
        Some(width) => format!("{:.2} ± {width:.2} %", spread.mean),
        None => format!("{:.2} %", spread.mean),
    })
}

/// What a run of one seed came to.
fn of_seed(run: &RunResult) -> Value {
    let tiers = run.tiers.as_ref();
    json!({
        "end_ns": run.end_ns,
        "fast_hit_ratio": tiers.and_then(|tiers| tiers.fast_hit_ratio),
        "promoted": tiers.map(|tiers| tiers.promoted),
        "demoted": tiers.map(|tiers| tiers.demoted),
        "tracker_ns": tiers.map(|tiers| tiers.tracker_ns),
    })
}

/// The mean of some figures, with half of its 95 % interval if there are several and it is visible.
fn with_interval(figures: &[f64], show: fn(f64) -> String) -> Option<String> {
    let spread = (!figures.is_empty()).then(|| Spread::of(figures))?;
    let width = spread.half_width().map(show).filter(|width| *width != show(0.0));
    Some(width.map_or_else(|| show(spread.mean), |width| format!("{} ± {width}", show(spread.mean))))
}

impl Advice {
    /// The shares of slow memory of a device in percent, and a line a source that was tried; nothing of a single share.
    pub fn lines(&self, device: &str) -> Option<(Vec<f64>, Vec<Line>)> {
        let mut ratios = self.tried(device);
        ratios.sort_by(|one, other| other.share().total_cmp(&one.share()));
        if ratios.len() < 2 {
            return None;
        }
        let line = |source: usize| {
            let loss = |&ratio: &Ratio| {
                let cell = self.here(ratio, device).find(|cell| cell.source == source)?;
                self.cell_loss(cell)
            };
            let losses: Vec<Option<f64>> = ratios.iter().map(loss).collect();
            let is_known = losses.iter().any(Option::is_some);
            is_known.then(|| Line { name: SOURCES[source].name, source, losses })
        };
        let shares = ratios.iter().map(|ratio| (1.0 - ratio.share()) * 100.0).collect();
        Some((shares, (0..SOURCES.len()).filter_map(line).collect()))
    }

    /// The classes of slow memory, in the order in which they were asked for.
    pub fn devices(&self) -> &[String] {
        &self.asked.devices
    }

    /// Returns the place where knobs were turned: ratio, device and source.
    pub fn knobs_at(&self) -> String {
        self.cells[self.at].name()
    }

    /// Returns the overview: one row per ratio, one column per device.
    pub fn overview(&self) -> Vec<Vec<String>> {
        let heading =
            std::iter::once("fast:slow".to_string()).chain(self.asked.devices.iter().cloned()).collect();
        let row = |ratio: Ratio| {
            let of_device = |device: &String| match self.best(ratio, device) {
                Some((at, _)) => {
                    let cell = &self.cells[at];
                    let loss = self.interval(&cell.runs).map_or(String::new(), Loss::show);
                    format!("{loss} ({})", SOURCES[cell.source].name)
                }
                None => self
                    .here(ratio, device)
                    .find(|cell| cell.runs.was_made())
                    .map_or(NOT_RUN.to_string(), |cell| self.missing(cell)),
            };
            std::iter::once(ratio.to_string()).chain(self.asked.devices.iter().map(of_device)).collect()
        };
        std::iter::once(heading).chain(self.ratios().into_iter().map(row)).collect()
    }

    /// A row a run.
    pub fn details(&self) -> Vec<Vec<String>> {
        let heading = [
            "fast:slow",
            "memory",
            "source",
            "takes longer",
            "fast hits",
            "at best",
            "promoted",
            "demoted",
            "CPU to find them",
        ];
        let prices = self.asked.prices.is_some();
        let row = |cell: &Cell| {
            let tiers = cell.result().and_then(|result| result.tiers.as_ref());
            let show = |value: Option<f64>| value.map_or("-".to_string(), figures::percent);
            let mut row = vec![
                cell.ratio.to_string(),
                cell.device.clone(),
                SOURCES[cell.source].name.to_string(),
                self.cell_interval(cell).map_or_else(|| self.missing(cell), Loss::show),
                show(tiers.and_then(|tiers| tiers.fast_hit_ratio)),
                show(tiers.and_then(|tiers| tiers.offline_fast_hit_ratio)),
                tiers.map_or("-".to_string(), |tiers| figures::count(tiers.promoted)),
                tiers.map_or("-".to_string(), |tiers| figures::count(tiers.demoted)),
                tracking(&cell.runs.results).unwrap_or_else(|| "-".to_string()),
            ];
            row.extend(prices.then(|| self.saved_money(cell.ratio, &cell.device)));
            row
        };
        let mut heading = heading.map(str::to_string).to_vec();
        heading.extend(prices.then(|| "money saved".to_string()));
        std::iter::once(heading).chain(self.cells.iter().map(row)).collect()
    }

    /// The loss of a cell, and that its source saw no page in use, if that is so.
    fn with_what_it_saw(&self, cell: &Cell) -> String {
        let loss = self.interval(&cell.runs).map_or_else(|| self.missing(cell), Loss::show);
        if self.not_tried(cell).is_some() { format!("{loss}, saw nothing") } else { loss }
    }

    /// A row per ratio, device and source, each figure as the mean of all seeds with half of its 95 % interval.
    pub fn sources(&self) -> Vec<Vec<String>> {
        let heading = [
            "fast:slow",
            "memory",
            "source",
            "takes longer",
            "fast hits",
            "promoted",
            "demoted",
            "CPU to find them",
        ];
        let row = |cell: &Cell| {
            let mean = |figure: fn(&TiersResult) -> Option<f64>, show: fn(f64) -> String| {
                let figures = cell.runs.results.iter().filter_map(|run| figure(run.tiers.as_ref()?));
                let figures: Vec<f64> = figures.collect();
                with_interval(&figures, show).unwrap_or_else(|| "-".to_string())
            };
            let pages = |pages: f64| figures::count(pages.round() as u64);
            vec![
                cell.ratio.to_string(),
                cell.device.clone(),
                SOURCES[cell.source].name.to_string(),
                self.with_what_it_saw(cell),
                mean(|tiers| tiers.fast_hit_ratio, figures::percent),
                mean(|tiers| Some(tiers.promoted as f64), pages),
                mean(|tiers| Some(tiers.demoted as f64), pages),
                tracking(&cell.runs.results).unwrap_or_else(|| "-".to_string()),
            ]
        };
        let heading = heading.map(str::to_string).to_vec();
        std::iter::once(heading).chain(self.cells.iter().map(row)).collect()
    }

    /// A row a knob that changes anything.
    pub fn knob_table(&self) -> Vec<Vec<String>> {
        let heading = ["knob", "value", "takes longer"].map(str::to_string).to_vec();
        let rows =
            self.knobs().into_iter().filter(|(_, change)| is_any(*change)).map(|(turned, change)| {
                vec![turned.knob.key(), turned.knob.value.to_string(), signed(change)]
            });
        std::iter::once(heading).chain(rows).collect()
    }

    /// All of it; `name` is what the scenario is called.
    pub fn json(&self, name: &str) -> Value {
        let cell = |cell: &Cell| {
            json!({
                "ratio": cell.ratio.to_string(),
                "device": cell.device,
                "source": SOURCES[cell.source].name,
                "settings": SOURCES[cell.source].settings(),
                "slow_share": 1.0 - cell.ratio.share(),
                "fast_memory_saved_bytes": self.saved(cell.ratio),
                "cost": self.cost(cell.ratio, &cell.device).map(|cost| cost.json()),
                "loss_percent": self.cell_loss(cell),
                "loss_half_width_percent": self.cell_interval(cell).and_then(|loss| loss.half_width),
                "not_tried": self.not_tried(cell),
                "complete": cell.runs.is_whole(),
                "failures": cell.runs.failures,
                "tiers": cell.result().and_then(|result| result.tiers.as_ref()),
                "by_seed": cell.runs.results.iter().map(of_seed).collect::<Vec<_>>(),
                "warm_up_ends_ns": cell.result().and_then(|run| self.warm_up_ends(run)),
                "end_ns": cell.result().map(|result| result.end_ns),
            })
        };
        let advice = self.asked.devices.iter().map(|device| {
            let advised = self.advised(device).map(|(at, _)| cell(&self.cells[at]));
            json!({ "device": device, "advised": advised })
        });
        let knobs = self.knobs().into_iter().map(
            |(turned, change)| json!({ "key": turned.knob.key(), "value": turned.knob.value, "change_percent": change }),
        );
        let first = &self.all_fast.results[0];
        let json = json!({
            "complete": !self.extent.is_interrupted() && self.cells.iter().all(|cell| cell.runs.is_whole()),
            "scenario": name,
            "memory_bytes": self.memory.0,
            "page_stands_for": self.scenario.machine.page_stands_for,
            "seed": self.scenario.seed,
            "warm_up": { "asked_for": self.asked.warm_up.to_string(), "accesses": self.warm_up },
            "all_fast": {
                "end_ns": first.end_ns,
                "accesses": first.accesses,
                "warm_up_ends_ns": self.warm_up_ends(first),
            },
            "loss_limit_percent": self.asked.loss,
            "advice": advice.collect::<Vec<_>>(),
            "story": self.story(),
            "put_aside": self.put_aside,
            "knobs_at": self.cells[self.at].name(),
            "knobs": knobs.collect::<Vec<_>>(),
            "runs": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "scale_check": self.scale_json(),
        });
        merged(json, self.extent.json())
    }
}
