//! Sources of promotion: the mechanisms that may find hot pages on slower memory, and the knobs of each.

use std::collections::BTreeMap;

use crate::basis::{Evidence, Verdict, verdict};
use crate::result::run_result::{RunResult, counter};
use crate::scenario::switches::{Table, with_knob};
use pageout_sim::scenario::Damon;
use pageout_sim::scenario::{PAGE_SIZE, Scenario};
use serde_json::{Value, json};

/// A source of hot pages: it notices that a page of slow memory is in use. With the settings that enable it.
pub(super) struct Noticing {
    pub(super) name: &'static str,
    pub(super) sets: &'static [Knob],
    /// Knobs that act where it is on.
    acts_on: &'static [&'static [Knob]],
    /// Counters of which at least one grows when it looks for hot pages; none if it does not look for them.
    looks: &'static [&'static str],
    /// The intervals of DAMON, if that is the source.
    damon: Option<Watch>,
}

/// Two kdamonds, as `mem_tier.sh` of the tool `damo` sets them up: that of fast memory demotes idle pages, and that of slow memory promotes
/// pages in use. Their goals overlap by 0.2 % of fast memory, so that some pages always move. [access-aware 2.8]
///
/// Two settings differ, because runs here are short and nodes are small. The tuner is `temporal`: with the default one a quota grows from 1 byte for
/// most of a run. And 4 % of fast memory are to be free, where the tool has 0.5 %: the watermarks of a small node keep more than that free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Watch {
    sample_us: u64,
    aggr_us: u64,
    /// The intervals follow the goal that the kernel's documentation recommends.
    is_tuned: bool,
}

impl Watch {
    /// Bytes that each scheme may move per second, on a machine at full size.
    const QUOTA: u64 = 200 << 20;
    /// The share of fast memory that is to be free, and the share that is to be used, in 1/10,000.
    const GOALS: [u64; 2] = [400, 9_620];

    const fn every(sample_us: u64, aggr_us: u64) -> Option<Watch> {
        Some(Watch { sample_us, aggr_us, is_tuned: false })
    }

    /// The kdamonds of fast and of slow memory.
    fn kdamonds(self, page_stands_for: u32) -> [Damon; 2] {
        let mut intervals = json!({ "sample_us": self.sample_us, "aggr_us": self.aggr_us });
        if self.is_tuned {
            intervals = json!({
                "sample_us": self.sample_us, "aggr_us": self.aggr_us,
                "access_bp": 400, "aggrs": 3, "min_sample_us": 5_000, "max_sample_us": 10_000_000,
            });
        }
        let bytes = (Watch::QUOTA / u64::from(page_stands_for)).max(PAGE_SIZE);
        let kdamond = |node: u8, action: &str, accesses: Value, goal: Value, takes_young: bool| {
            let damon = json!({
                "numa_node": node,
                "intervals": intervals,
                "scheme": [{
                    "action": action, "target_nid": 1 - node, "apply_interval_us": self.aggr_us.max(1_000_000),
                    "access_pattern": { "nr_accesses": accesses },
                    "filter": [{ "kind": "young", "matching": !takes_young }],
                    "quotas": {
                        "bytes": bytes.to_string(), "reset_interval_ms": 1_000, "goal_tuner": "temporal",
                        "weights": { "nr_accesses_permil": 1, "age_permil": 1 }, "goal": [goal],
                    },
                }],
            });
            serde_json::from_value(damon).expect("a kdamond, whose keys are known")
        };
        let free = json!({ "target_metric": "node_mem_free_bp", "target_value": Watch::GOALS[0], "nid": 0 });
        let used = json!({ "target_metric": "node_mem_used_bp", "target_value": Watch::GOALS[1], "nid": 0 });
        [
            kdamond(0, "migrate_cold", json!({ "max": 0 }), free, false),
            kdamond(1, "migrate_hot", json!({ "min": 1 }), used, true),
        ]
    }
}

/// A knob and what it is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Knob {
    at: At,
    name: &'static str,
    pub(super) value: &'static str,
}

/// The table of a knob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Table(Table),
    /// `machine.hints.period`.
    HintsPeriod,
}

impl Knob {
    const fn kernel(name: &'static str, value: &'static str) -> Knob {
        Knob { at: At::Table(Table::Kernel), name, value }
    }

    const fn sysctl(name: &'static str, value: &'static str) -> Knob {
        Knob { at: At::Table(Table::Sysctl), name, value }
    }

    const fn hints_period(value: &'static str) -> Knob {
        Knob { at: At::HintsPeriod, name: "period", value }
    }

    /// As it is written in a scenario.
    pub(super) fn key(&self) -> String {
        let table = match self.at {
            At::Table(Table::Kernel) => "kernel",
            At::Table(Table::Sysctl) => "sysctl",
            At::HintsPeriod => "machine.hints",
        };
        format!("{table}.{}", self.name)
    }

    pub(super) fn set_in(&self, mut scenario: Scenario) -> Scenario {
        match self.at {
            At::Table(table) => with_knob(scenario, table, self.name, self.value),
            At::HintsPeriod => {
                scenario.machine.hints.period = Some(self.value.parse().expect("periods here are numbers"));
                scenario
            }
        }
    }

    /// Returns true if it turns something on, rather than saying how much of it there is: that stays the scenario's own.
    fn is_switch(&self) -> bool {
        !self.name.starts_with("sched.")
    }
}

const DEMOTION: Knob = Knob::kernel("numa.demotion_enabled", "true");
const TIERING: Knob = Knob::sysctl("kernel.numa_balancing", "2");
/// Room for promoted pages is made only where balancing is on. Its own scans are put off for longer than most runs take, so that hot pages
/// are found by someone else alone.
const NO_SCANS: Knob = Knob::kernel("sched.numa_balancing.scan_delay_ms", "1000000");

/// Knobs of demotion, with values on one side or both of what they are.
const OF_DEMOTION: &[Knob] = &[
    Knob::kernel("reclaim.demotion_full", "reclaim_target"),
    Knob::sysctl("vm.watermark_scale_factor", "100"),
];
/// Knobs of promotion, for any source of hot pages.
const OF_PROMOTION: &[Knob] = &[
    Knob::kernel("numa.promotion_threshold", "capacity"),
    Knob::kernel("numa.promotion_governor_ms", "1000"),
    Knob::sysctl("kernel.numa_balancing_promote_rate_limit_MBps", "16"),
    Knob::sysctl("kernel.numa_balancing_promote_rate_limit_MBps", "256"),
];
/// Knobs of scans that mark page-table entries.
const OF_SCANS: &[Knob] = &[
    Knob::kernel("sched.numa_balancing.scan_period_max_ms", "1000"),
    Knob::kernel("sched.numa_balancing.scan_period_max_ms", "5000"),
    Knob::kernel("sched.numa_balancing.scan_period_min_ms", "250"),
    Knob::kernel("sched.numa_balancing.hot_threshold_ms", "250"),
    Knob::kernel("sched.numa_balancing.hot_threshold_ms", "4000"),
    Knob::kernel("sched.numa_balancing.scan_size_mb", "64"),
    Knob::kernel("sched.numa_balancing.scan_size_mb", "1024"),
];
/// Knobs of records of hot pages.
const OF_RECORDS: &[Knob] = &[
    Knob::sysctl("vm.pghot_freq_threshold", "1"),
    Knob::sysctl("vm.pghot_freq_threshold", "3"),
    Knob::sysctl("vm.pghot_promote_freq_window_ms", "1000"),
];
/// Knobs of klruscand.
const OF_KLRUSCAND: &[Knob] = &[
    Knob::kernel("pghot.klruscand_interval_ms", "100"),
    Knob::kernel("pghot.klruscand_interval_ms", "2000"),
];
/// Knobs of processors that sample.
const OF_SAMPLES: &[Knob] = &[Knob::hints_period("1000"), Knob::hints_period("100000")];

pub(super) const SOURCES: [Noticing; 10] = [
    Noticing { name: "no migration", sets: &[], acts_on: &[], looks: &[], damon: None },
    Noticing { name: "demotion only", sets: &[DEMOTION], acts_on: &[OF_DEMOTION], looks: &[], damon: None },
    Noticing {
        name: "hint faults",
        sets: &[DEMOTION, TIERING],
        acts_on: &[OF_DEMOTION, OF_PROMOTION, OF_SCANS],
        looks: &["numa_pte_updates"],
        damon: None,
    },
    Noticing {
        name: "hint faults and reads",
        sets: &[DEMOTION, TIERING, Knob::kernel("numa.pagecache_promotion_enabled", "true")],
        acts_on: &[OF_DEMOTION, OF_PROMOTION, OF_SCANS],
        looks: &["numa_pte_updates", "numa_hint_page_cache", "pgpromote_success"],
        damon: None,
    },
    Noticing {
        name: "pghot",
        sets: &[
            DEMOTION,
            TIERING,
            Knob::sysctl("vm.pghot_record_hintfaults_enable", "1"),
            Knob::sysctl("vm.pghot_record_fma_enable", "1"),
        ],
        acts_on: &[OF_DEMOTION, OF_PROMOTION, OF_SCANS, OF_RECORDS],
        looks: &["numa_pte_updates", "pghot_recorded_fma"],
        damon: None,
    },
    Noticing {
        name: "page-table scan",
        sets: &[DEMOTION, TIERING, NO_SCANS, Knob::sysctl(PGTSCANS, "1")],
        acts_on: &[OF_DEMOTION, OF_PROMOTION, OF_RECORDS, OF_KLRUSCAND],
        looks: &["pghot_recorded_pgtscans"],
        damon: None,
    },
    Noticing {
        name: "hardware",
        sets: &[DEMOTION, TIERING, NO_SCANS, Knob::sysctl("vm.pghot_record_hwhints_enable", "1")],
        acts_on: &[OF_DEMOTION, OF_PROMOTION, OF_RECORDS, OF_SAMPLES],
        looks: &["hwhint_nr_events"],
        damon: None,
    },
    Noticing {
        name: "DAMON, windows of 100 ms",
        sets: &[DEMOTION],
        acts_on: &[OF_DEMOTION],
        looks: &[WINDOWS],
        damon: Watch::every(5_000, 100_000),
    },
    Noticing {
        name: "DAMON, windows of 2 s",
        sets: &[DEMOTION],
        acts_on: &[OF_DEMOTION],
        looks: &[WINDOWS],
        damon: Watch::every(100_000, 2_000_000),
    },
    Noticing {
        name: "DAMON, tuned windows",
        sets: &[DEMOTION],
        acts_on: &[OF_DEMOTION],
        looks: &[WINDOWS],
        damon: Some(Watch { sample_us: 5_000, aggr_us: 100_000, is_tuned: true }),
    },
];

/// Finished windows of kdamonds, among the counters.
const WINDOWS: &str = "window of DAMON";
const PGTSCANS: &str = "vm.pghot_record_pgtscans_enable";

/// Runs of a source, as evidence that it looked for hot pages at all.
struct Looked<'a>(&'a [RunResult]);

impl Evidence for Looked<'_> {
    type Need = &'static [&'static str];
    type Seen = ();

    fn seen(&self, counters: &Self::Need) -> Result<(), String> {
        let grew = |name: &str| match name {
            WINDOWS => self.0.iter().flat_map(|run| &run.kdamonds).any(|kdamond| kdamond.windows > 0),
            _ => self.0.iter().any(|run| counter(&run.vmstat, name) > 0),
        };
        match counters.is_empty() || counters.iter().any(|name| grew(name)) {
            true => Ok(()),
            false => Err(format!("no {}", counters.join(" and no "))),
        }
    }
}

impl Noticing {
    /// Yes if it acted in these runs. Errors: what it would have counted.
    pub(super) fn acted(&self, runs: &[RunResult]) -> Verdict<()> {
        verdict(&Looked(runs), [self.looks], |_| ())
    }

    /// Returns true if it brings hot pages back.
    pub(super) fn promotes(&self) -> bool {
        self.sets.contains(&TIERING) || self.uses_damon()
    }

    /// Returns true if DAMON is the source. It can't run next to a module of DAMON.
    pub(super) fn uses_damon(&self) -> bool {
        self.damon.is_some()
    }

    /// A scenario with the source enabled.
    pub(super) fn set_in(&self, scenario: Scenario) -> Scenario {
        let mut scenario = self.sets.iter().fold(scenario, |scenario, knob| knob.set_in(scenario));
        if let Some(watch) = self.damon {
            scenario.damon.extend(watch.kdamonds(scenario.machine.page_stands_for));
        }
        scenario
    }

    /// Returns true if it looks at page tables, which not every policy walks.
    pub(super) fn walks_page_tables(&self) -> bool {
        self.sets.iter().any(|knob| knob.name == PGTSCANS)
    }

    /// What is turned on for it, by key; of DAMON the intervals, which both kdamonds have.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> =
            self.sets.iter().map(|knob| (knob.key(), knob.value.to_string())).collect();
        if let Some(Watch { sample_us, aggr_us, is_tuned }) = self.damon {
            settings.insert("damon.*.intervals.sample_us".to_string(), sample_us.to_string());
            settings.insert("damon.*.intervals.aggr_us".to_string(), aggr_us.to_string());
            settings.insert(
                "damon.*.intervals.access_bp".to_string(),
                if is_tuned { "400" } else { "0" }.to_string(),
            );
        }
        settings
    }

    /// The knobs that act where it is on.
    pub(super) fn knobs(&self) -> impl Iterator<Item = Knob> + Clone + use<> {
        self.acts_on.iter().flat_map(|knobs| knobs.iter().copied())
    }
}

/// Settings that enable demotion or promotion for any source.
pub(super) fn is_ours(table: Table, name: &str) -> bool {
    let sets = SOURCES.iter().flat_map(|source| source.sets).chain(OF_PROMOTION);
    let mut switches = sets.filter(|knob| knob.is_switch() && !knob.name.ends_with("MBps"));
    switches.any(|knob| (knob.at, knob.name) == (At::Table(table), name))
}
