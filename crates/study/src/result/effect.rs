//! The effect of turning a rule of reclaim, in figures that every run has: refaults, pages read, and the work of reclaim.
//!
//! Differences are taken run by run, between runs of one seed, and their mean is held against their own spread. A seed's own
//! luck (an unlucky order of accesses, a slow device) is in both runs of a pair and drops out.

use serde_json::{Map, Value, json};

use crate::figures;
use crate::result::better::Better;
use crate::result::metrics::Unit;
use crate::result::run_result::{RunResult, TiersResult, counter};
use crate::result::spread::{Paired, Spread};
use crate::result::variants::Runs;

/// One figure of a run.
pub struct Figure {
    /// The figure's name in JSON.
    pub name: &'static str,
    /// The name within a sentence.
    pub title: &'static str,
    /// The heading of its column, in two lines.
    pub heading: &'static str,
    /// The unit in which the figure is printed.
    pub unit: Unit,
    /// The direction in which the figure is better.
    pub better: Better,
    /// True if it is an outcome of reclaim's choices, rather than a cost of them.
    pub is_outcome: bool,
    of: fn(&RunResult) -> f64,
}

/// Figures of every run.
pub const FIGURES: &[Figure] = &[
    Figure {
        name: "refaults_anon",
        title: "refaults of anonymous pages",
        heading: "refaults,\nanonymous",
        unit: Unit::Count,
        better: Better::Less,
        is_outcome: true,
        of: |run| counter(&run.vmstat, "workingset_refault_anon") as f64,
    },
    Figure {
        name: "refaults_file",
        title: "refaults of file pages",
        heading: "refaults,\nfile",
        unit: Unit::Count,
        better: Better::Less,
        is_outcome: true,
        of: |run| counter(&run.vmstat, "workingset_refault_file") as f64,
    },
    Figure {
        name: "pages_read",
        title: "pages read from devices",
        heading: "pages read\nfrom devices",
        unit: Unit::Count,
        better: Better::Less,
        is_outcome: true,
        of: |run| run.devices.iter().map(|device| device.pages_read).sum::<u64>() as f64,
    },
    Figure {
        name: "throughput",
        title: "accesses a second",
        heading: "accesses\na second",
        unit: Unit::PerSecond,
        better: Better::More,
        is_outcome: true,
        of: |run| run.accesses as f64 / (run.end_ns.max(1) as f64 / 1e9),
    },
    Figure {
        name: "scanned_per_reclaimed",
        title: "pages scanned per page reclaimed",
        heading: "scanned per\nreclaimed",
        unit: Unit::Ratio,
        better: Better::Less,
        is_outcome: false,
        of: |run| figures::share(work(run, "scanned"), work(run, "reclaimed")),
    },
    Figure {
        name: "reclaim_p99",
        title: "99th percentile of direct reclaim calls",
        heading: "reclaim call\np99",
        unit: Unit::Nanoseconds,
        better: Better::Less,
        is_outcome: false,
        of: |run| run.reclaim.p99_ns as f64,
    },
    Figure {
        name: "rmap_steps",
        title: "steps through the reverse map",
        heading: "rmap\nsteps",
        unit: Unit::Count,
        better: Better::Less,
        is_outcome: false,
        of: |run| work(run, "rmap_steps") as f64,
    },
    Figure {
        name: "ptes_walked",
        title: "page-table entries walked",
        heading: "PTEs\nwalked",
        unit: Unit::Count,
        better: Better::Less,
        is_outcome: false,
        of: |run| work(run, "ptes_walked") as f64,
    },
    Figure {
        name: "list_moves",
        title: "list moves",
        heading: "list\nmoves",
        unit: Unit::Count,
        better: Better::Less,
        is_outcome: false,
        of: |run| work(run, "list_moves") as f64,
    },
];

/// Additional figures of runs with several kinds of memory.
const TIER_FIGURES: &[Figure] = &[
    Figure {
        name: "fast_hit_ratio",
        title: "accesses in fast memory",
        heading: "in fast\nmemory",
        unit: Unit::Share,
        better: Better::More,
        is_outcome: true,
        of: |run| of_tiers(run, |tiers| tiers.fast_hit_ratio.unwrap_or(0.0)),
    },
    Figure {
        name: "promoted",
        title: "pages promoted",
        heading: "pages\npromoted",
        unit: Unit::Count,
        better: Better::Neither,
        is_outcome: true,
        of: |run| of_tiers(run, |tiers| tiers.promoted as f64),
    },
    Figure {
        name: "demoted",
        title: "pages demoted",
        heading: "pages\ndemoted",
        unit: Unit::Count,
        better: Better::Neither,
        is_outcome: true,
        of: |run| of_tiers(run, |tiers| tiers.demoted as f64),
    },
    Figure {
        name: "tracker_cpu",
        title: "CPU time of page-access tracking",
        heading: "tracker\nCPU",
        unit: Unit::Nanoseconds,
        better: Better::Less,
        is_outcome: false,
        of: |run| of_tiers(run, |tiers| tiers.tracker_ns as f64),
    },
];

/// The figures that these runs have.
pub fn figures_of(runs: &Runs) -> impl Iterator<Item = &'static Figure> + use<> {
    let has_tiers = runs.results.iter().any(|run| run.tiers.is_some());
    FIGURES.iter().chain(TIER_FIGURES.iter().filter(move |_| has_tiers))
}

/// All figures that runs may have.
pub fn all_figures() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().chain(TIER_FIGURES)
}

fn of_tiers(run: &RunResult, of: fn(&TiersResult) -> f64) -> f64 {
    run.tiers.as_ref().map_or(0.0, of)
}

fn work(run: &RunResult, unit: &str) -> u64 {
    counter(&run.work, unit).unsigned_abs()
}

impl Figure {
    /// The figure of that name.
    pub fn called(name: &str) -> Option<&'static Figure> {
        all_figures().find(|figure| figure.name == name)
    }

    /// Its values over the seeds; nothing where runs failed or were not made, since a mean of the others would be a wrong one.
    pub fn spread(&self, runs: &Runs) -> Option<Spread> {
        runs.is_whole().then(|| Spread::of(&self.values(runs)))
    }

    /// The figure's value in each run, in order of the seeds.
    pub fn values(&self, runs: &Runs) -> Vec<f64> {
        runs.results.iter().map(self.of).collect()
    }

    /// Mean ± standard deviation.
    pub fn show(&self, runs: &Runs) -> String {
        let spread = Spread::of(&self.values(runs));
        let mean = self.unit.show(spread.mean);
        if spread.count == 1 { mean } else { format!("{mean} ± {}", self.unit.show(spread.deviation)) }
    }

    /// The mean without its deviation.
    pub fn show_alone(&self, runs: &Runs) -> String {
        self.unit.show(Spread::of(&self.values(runs)).mean)
    }

    /// The difference to a base; nothing where runs of either failed or were not made, since pairs are missing then.
    pub fn effect(&self, base: &Runs, runs: &Runs) -> Option<Paired> {
        (base.is_whole() && runs.is_whole()).then(|| {
            let (base, values) = (self.values(base), self.values(runs));
            let pairs = base.len().min(values.len());
            Paired::of(&base[..pairs], &values[..pairs])
        })
    }

    /// An effect in a few characters: `~-0.3% ± 0.5`.
    pub fn show_effect(&self, effect: &Paired) -> String {
        self.short(effect, true)
    }

    /// An effect in a few characters, without its spread.
    pub fn show_effect_alone(&self, effect: &Paired) -> String {
        self.short(effect, false)
    }

    fn short(&self, effect: &Paired, with_spread: bool) -> String {
        if effect.is_same {
            return "=".to_string();
        }
        let mark = if effect.is_within_noise() { "~" } else { "" };
        let Some(percent) = effect.percent(effect.difference) else {
            let sign = if effect.difference < 0.0 { "-" } else { "+" };
            return format!("{mark}{sign}{}", self.unit.show(effect.difference.abs()));
        };
        // Beyond that a factor says more.
        if percent >= 1000.0 {
            return format!("{mark}x{:.0}", percent / 100.0 + 1.0);
        }
        let spread = effect.half_width.filter(|_| with_spread).and_then(|width| effect.percent(width));
        let spread = spread.map(|width| format!(" ± {width:.1}")).unwrap_or_default();
        format!("{mark}{percent:+.1}%{spread}")
    }

    /// Mean, deviation and the value of each run.
    pub fn json(&self, runs: &Runs) -> Value {
        let values = self.values(runs);
        let spread = (!values.is_empty()).then(|| Spread::of(&values));
        json!({
            "mean": spread.map(|spread| spread.mean),
            "deviation": spread.map(|spread| spread.deviation),
            "values": values,
        })
    }
}

/// With a capital, to begin a line.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// An effect as JSON.
pub fn effect_json(effect: &Paired) -> Value {
    json!({
        "difference": effect.difference,
        "half_width": effect.half_width,
        "difference_percent": effect.percent(effect.difference),
        "half_width_percent": effect.half_width.and_then(|width| effect.percent(width)),
        "within_noise": effect.is_within_noise(),
        "same_in_every_run": effect.is_same,
    })
}

/// All figures of a variant, by name.
pub fn figures_json(runs: &Runs) -> Map<String, Value> {
    figures_of(runs).map(|figure| (figure.name.to_string(), figure.json(runs))).collect()
}

/// All effects, by name; none where runs failed.
pub fn effects_json(base: &Runs, runs: &Runs) -> Map<String, Value> {
    let effect = |figure: &Figure| Some((figure.name.to_string(), effect_json(&figure.effect(base, runs)?)));
    figures_of(base).filter_map(effect).collect()
}

/// The criterion, in one sentence for JSON.
pub const CRITERION: &str = "an effect is the mean difference between runs of the same seed; it is within noise if \
     its 95 % confidence interval (Student's t over the seeds) contains 0";

/// Returns the legend of the marks.
pub fn legend(repeat: u32, shows_spread: bool) -> String {
    noise_legend(repeat, shows_spread) + "= the same in every run\n"
}

/// Returns the legend of the mark of noise.
pub fn noise_legend(repeat: u32, shows_spread: bool) -> String {
    const INTERVAL: &str = "95 % confidence interval of the mean difference between runs of the same seed";
    let mut lines = Vec::new();
    if repeat == 1 {
        lines.push("One seed: the noise of an effect is unknown; see --repeat.".to_string());
    } else if shows_spread {
        lines.push(format!("± half of the {INTERVAL}"));
        lines.push("~ may be noise: that interval contains 0".to_string());
    } else {
        lines.push(format!("~ may be noise: the {INTERVAL} contains 0"));
    }
    if repeat > 1 {
        lines.push("  (about one of twenty zero effects misses this mark)".to_string());
    }
    lines.join("\n") + "\n"
}
