//! Figures of a complete machine compared with the recorded ones.
//!
//! Two runs of the same machine differ by the times of reclaimers. Shares and counts must therefore be within a factor of the recorded
//! ones, and a value between two repeats always passes. Misses are closer to each other. Waits can depend more on the recording host than
//! on the kernel. In this case only the share of full stalls among all is judged, and totals are shown.

use super::super::answers::{Answer, Answers, Stalls};
use super::super::class::MachineLimits;
use super::super::rig::{OfMachine, Played};
use super::{Comparison, Row, counter, span};

/// A figure of a run, from its counters.
struct Figure {
    name: &'static str,
    is_share: bool,
    /// Only where there is swap.
    of_swap: bool,
    is_judged: bool,
    of: Of,
}

/// A figure from a run's counters, which are found by their names.
type Of = fn(&dyn Fn(&str) -> f64) -> f64;

const fn judged(name: &'static str, of: Of) -> Figure {
    Figure { name, is_share: false, of_swap: false, is_judged: true, of }
}

const FIGURES: &[Figure] = &[
    Figure {
        is_share: true,
        ..judged("direct share of steals", |count| share(count("pgsteal_direct"), count("pgsteal_kswapd")))
    },
    judged("stalls", stalls),
    judged("pages a stall", |count| count("pgsteal_direct") / stalls(count).max(1.0)),
    judged("pageoutrun", |count| count("pageoutrun")),
    judged("low_wmark_hit_quickly", |count| count("kswapd_low_wmark_hit_quickly")),
    Figure {
        is_judged: false,
        ..judged("high_wmark_hit_quickly", |count| count("kswapd_high_wmark_hit_quickly"))
    },
    Figure { is_judged: false, ..judged("pgscan_direct_throttle", |count| count("pgscan_direct_throttle")) },
    Figure {
        is_share: true,
        of_swap: true,
        ..judged("anonymous share of steals", |count| share(count("pgsteal_anon"), count("pgsteal_file")))
    },
    Figure { of_swap: true, ..judged("pswpin", |count| count("pswpin")) },
    Figure { of_swap: true, ..judged("pswpout", |count| count("pswpout")) },
    Figure { is_judged: false, of_swap: true, ..judged("nr_zspages", |count| count("nr_zspages")) },
    Figure { is_judged: false, ..judged("scanned", |count| count("pgscan_anon") + count("pgscan_file")) },
    Figure { is_judged: false, ..judged("stolen", |count| count("pgsteal_anon") + count("pgsteal_file")) },
    Figure { is_judged: false, ..judged("pgactivate", |count| count("pgactivate")) },
    Figure {
        is_judged: false,
        ..judged("workingset_refault_file", |count| count("workingset_refault_file"))
    },
    Figure {
        is_judged: false,
        of_swap: true,
        ..judged("workingset_refault_anon", |count| count("workingset_refault_anon"))
    },
];

const MISSED_BY_SECOND: &str = "missed by the second";
const MEAN_FREE: &str = "mean free pages";

/// Names of rows, by resource: full to some, and both totals in microseconds.
const PRESSURE: [[&str; 3]; 3] = [
    ["memory pressure, full to some", "memory some (us)", "memory full (us)"],
    ["io pressure, full to some", "io some (us)", "io full (us)"],
    ["cpu pressure, full to some", "cpu some (us)", "cpu full (us)"],
];

fn share(part: f64, rest: f64) -> f64 {
    part / (part + rest).max(1.0)
}

fn stalls(count: &dyn Fn(&str) -> f64) -> f64 {
    ["allocstall_dma", "allocstall_dma32", "allocstall_normal", "allocstall_movable"].map(count).iter().sum()
}

impl Comparison<'_> {
    /// The median simulation of each figure compared with the recorded one.
    pub(super) fn machine(&self, limits: &MachineLimits) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        let misses = limits.misses.map(|fraction| 1.0 + fraction);
        let missed = |map: &Vec<bool>| map.iter().filter(|&&missed| missed).count() as f64;
        if let Some(real) = &self.real_map {
            let simulated = self.played.iter().map(|played| missed(&played.missed));
            let repeats = self.repeats(|_, map| map.map(missed))?;
            rows.push(self.near(super::MISSED, simulated, missed(real), repeats, misses));
        }
        if let Some(real) = self.answers.missed_by_second(self.answer)? {
            let maps =
                || self.played.iter().filter_map(|played| of_machine(played).missed_by_second.as_ref());
            // As far as all simulations came.
            let done = maps().map(Vec::len).min().unwrap_or(0).min(real.len());
            let missed = |map: &Vec<bool>| map[..done].iter().filter(|&&missed| missed).count() as f64;
            let mut repeats = vec![missed(&real)];
            for repeat in self.answers.repeats(self.answer) {
                repeats.extend(self.answers.missed_by_second(repeat)?.as_ref().map(missed));
            }
            let repeats = span(repeats.into_iter());
            rows.push(self.near(MISSED_BY_SECOND, maps().map(missed), missed(&real), repeats, misses));
        }
        let has_swap = self.real_counter(self.answer, "pswpout") > 0.0
            || self.played.iter().any(|played| counter(played, "pswpout") > 0.0);
        for figure in FIGURES.iter().filter(|figure| has_swap || !figure.of_swap) {
            let of_answer = |answer: &Answer| (figure.of)(&|name| self.real_counter(answer, name));
            let simulated = self.played.iter().map(|played| (figure.of)(&|name| counter(played, name)));
            let repeats = self.repeats(|answer, _| Some(of_answer(answer)))?;
            let shares = Some(limits.shares).filter(|_| figure.is_judged);
            let row = self.near(figure.name, simulated, of_answer(self.answer), repeats, shares);
            rows.push(Row { is_share: figure.is_share, ..row });
        }
        rows.extend(self.mean_free(limits.shares)?);
        rows.extend(self.pressure(limits.pressure)?);
        Ok(rows)
    }

    /// Free pages at the ends of the windows in which the recorded machine was short of memory.
    fn mean_free(&self, shares: f64) -> anyhow::Result<Option<Row>> {
        let is_short: Vec<bool> = self.answer.windows.iter().map(|window| window.has_reclaimed()).collect();
        let mean = |free: &mut dyn Iterator<Item = f64>| {
            let of: Vec<f64> =
                free.zip(&is_short).filter(|(_, is_short)| **is_short).map(|(free, _)| free).collect();
            of.iter().sum::<f64>() / of.len() as f64
        };
        if !is_short.contains(&true) {
            return Ok(None);
        }
        let of_answer =
            |answer: &Answer| mean(&mut answer.windows.iter().map(|window| window.nr_free_pages as f64));
        let simulated = self
            .played
            .iter()
            .map(|played| mean(&mut of_machine(played).free.iter().map(|&free| free as f64)));
        let repeats = self.repeats(|answer, _| Some(of_answer(answer)))?;
        Ok(Some(self.near(MEAN_FREE, simulated, of_answer(self.answer), repeats, Some(shares))))
    }

    fn pressure(&self, limit: Option<f64>) -> anyhow::Result<Vec<Row>> {
        let Some(real) = Answers::pressure(self.answer) else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        for (at, names) in PRESSURE.iter().enumerate() {
            let figures: [fn(Stalls) -> f64; 3] =
                [|stalls| stalls.full / stalls.some.max(1.0), |stalls| stalls.some, |stalls| stalls.full];
            let simulated = self.played.iter().map(|played| {
                let stall = of_machine(played).pressure[at];
                Stalls { some: stall.some.0 as f64 / 1e3, full: stall.full.0 as f64 / 1e3 }
            });
            for (what, (name, of)) in names.iter().zip(figures).enumerate() {
                let repeats = self.repeats(|answer, _| Some(of(Answers::pressure(answer)?[at])))?;
                // A task that waits for a CPU means that at least one CPU is busy.
                let is_judged = what == 0 && real[at].full > 0.0;
                let limit = limit.filter(|_| is_judged);
                let row = self.near(name, simulated.clone().map(of), of(real[at]), repeats, limit);
                rows.push(Row { is_share: what == 0, ..row });
            }
        }
        Ok(rows)
    }

    /// A figure that must be within a factor of the real one, or within what the repeats span.
    fn near(
        &self,
        name: &'static str,
        simulated: impl Iterator<Item = f64>,
        real: f64,
        repeats: [f64; 2],
        factor: Option<f64>,
    ) -> Row {
        let mut simulated: Vec<f64> = simulated.collect();
        simulated.sort_by(f64::total_cmp);
        let median = simulated[simulated.len() / 2];
        let floor = if real.fract() == 0.0 { self.floor } else { 0.0 };
        let limit = factor.map(|factor| {
            [
                (real / factor).min(real - floor).min(repeats[0]),
                (real * factor).max(real + floor).max(repeats[1]),
            ]
        });
        Row {
            name,
            simulated: median,
            envelope: (simulated.len() > 1).then(|| span(simulated.iter().copied())),
            real,
            limit,
            passes: limit.map(|[least, most]| (least..=most).contains(&median)),
            is_share: false,
        }
    }
}

fn of_machine(played: &Played) -> &OfMachine {
    played.machine.as_ref().expect("a whole machine was played")
}
