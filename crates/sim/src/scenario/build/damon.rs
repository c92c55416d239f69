//! From `[[damon]]` to the kdamonds of the engine. The checks are those of `validate/damon.rs`.

use std::collections::BTreeMap;

use pageout_engine::damos::{
    self, Action, Attrs, CoreFilter, FailCharge, Goal, IntervalsGoal, Metric, OpsFilter, Pattern,
    QuotaLimits, SchemeSpec, Tuner, Weights,
};
use pageout_engine::{Engine, KdamondSpec, MemcgId, MmId, NodeId};

use super::problem;
use crate::scenario::damon::{
    CountBounds, Damon, DamonState, Filter, FilterKind, GoalMetric, GoalTuner, QuotaGoal, Quotas, Scheme,
    SchemeAction, SizeBounds, WatermarkMetric, Watermarks,
};
use crate::scenario::{Problem, Scenario};

impl Scenario {
    /// The kdamonds that are on.
    pub(super) fn create_kdamonds(
        &self,
        engine: &mut Engine,
        processes: &BTreeMap<&str, Vec<MmId>>,
    ) -> Result<(), Problem> {
        for (index, damon) in self.damon.iter().enumerate() {
            if damon.state == DamonState::Off {
                continue;
            }
            let key = format!("damon[{index}]");
            let mut schemes = Vec::new();
            for (at, scheme) in damon.scheme.iter().enumerate() {
                schemes.push(scheme_spec(scheme, engine, &format!("{key}.scheme[{at}]"))?);
            }
            let of_node = damon.numa_node.map(|node| engine.figures().addresses_of_node(NodeId(node)));
            let given = damon.region.iter().map(|range| range.start.0..range.end.0);
            let ranges = of_node.into_iter().chain(given).collect();
            let of_tasks = damon.target.iter().filter_map(|name| processes.get(name.as_str()));
            let processes = of_tasks.flatten().copied().collect();
            let spec = KdamondSpec { attrs: damon.attrs(), processes, ranges, schemes };
            engine.kdamond_add(spec).map_err(|error| problem(&key, error))?;
        }
        Ok(())
    }
}

impl Damon {
    /// Its intervals and limits, as a kdamond takes them.
    pub(in crate::scenario) fn attrs(&self) -> Attrs {
        let intervals = &self.intervals;
        Attrs {
            sample_us: intervals.sample_us,
            aggr_us: intervals.aggr_us,
            update_us: intervals.update_us,
            min_regions: self.nr_regions.min,
            max_regions: self.nr_regions.max,
            intervals_goal: IntervalsGoal {
                access_bp: intervals.access_bp,
                aggrs: intervals.aggrs,
                min_sample_us: intervals.min_sample_us,
                max_sample_us: intervals.max_sample_us,
            },
            ..Attrs::default()
        }
    }
}

fn scheme_spec(scheme: &Scheme, engine: &Engine, key: &str) -> Result<SchemeSpec, Problem> {
    let pattern = &scheme.access_pattern;
    let SizeBounds { min, max } = &pattern.sz;
    let pattern = Pattern {
        size: min.0..=max.map_or(u64::MAX, |max| max.0),
        nr_accesses: bounds(&pattern.nr_accesses),
        age: bounds(&pattern.age),
    };
    let (mut core_filters, mut ops_filters) = (Vec::new(), Vec::new());
    for (at, filter) in scheme.filter.iter().enumerate() {
        let Filter { matching, allow, .. } = *filter;
        match filter_kind(filter, engine, &format!("{key}.filter[{at}]"))? {
            Kind::Core(kind) => core_filters.push(damos::Filter { kind, matching, allow }),
            Kind::Ops(kind) => ops_filters.push(damos::Filter { kind, matching, allow }),
        }
    }
    Ok(SchemeSpec {
        apply_interval_us: scheme.apply_interval_us,
        quota: quota(&scheme.quotas, engine, key)?,
        watermarks: watermarks(&scheme.watermarks),
        core_filters,
        ops_filters,
        max_nr_snapshots: scheme.max_nr_snapshots,
        ..SchemeSpec::new(pattern, action(scheme, key)?)
    })
}

fn bounds(bounds: &CountBounds) -> std::ops::RangeInclusive<u32> {
    bounds.min..=bounds.max.unwrap_or(u32::MAX)
}

fn action(scheme: &Scheme, key: &str) -> Result<Action, Problem> {
    let target = || {
        let missing = || problem(&format!("{key}.target_nid"), "found no node, expected one to migrate to");
        scheme.target_nid.ok_or_else(missing)
    };
    Ok(match scheme.action {
        SchemeAction::Stat => Action::Stat,
        SchemeAction::Pageout => Action::Pageout,
        SchemeAction::Cold => Action::Cold,
        SchemeAction::LruPrio => Action::LruPrio,
        SchemeAction::LruDeprio => Action::LruDeprio,
        SchemeAction::MigrateHot => Action::MigrateHot(target()?),
        SchemeAction::MigrateCold => Action::MigrateCold(target()?),
    })
}

fn quota(quotas: &Quotas, engine: &Engine, key: &str) -> Result<QuotaLimits, Problem> {
    let goals = quotas.goal.iter().enumerate();
    let goals = goals.map(|(at, goal)| goal_of(goal, engine, &format!("{key}.quotas.goal[{at}]")));
    Ok(QuotaLimits {
        ms: quotas.ms,
        bytes: quotas.bytes.0,
        reset_interval_ms: quotas.reset_interval_ms,
        goals: goals.collect::<Result<_, _>>()?,
        tuner: match quotas.goal_tuner {
            GoalTuner::Consist => Tuner::Consist,
            GoalTuner::Temporal => Tuner::Temporal,
        },
        weights: Weights {
            size: quotas.weights.sz_permil,
            nr_accesses: quotas.weights.nr_accesses_permil,
            age: quotas.weights.age_permil,
        },
        fail_charge: FailCharge { num: quotas.fail_charge_num, denom: quotas.fail_charge_denom },
    })
}

fn goal_of(goal: &QuotaGoal, engine: &Engine, key: &str) -> Result<Goal, Problem> {
    let node =
        || goal.nid.ok_or_else(|| problem(&format!("{key}.nid"), "found no node, expected that of the goal"));
    let memcg = || memcg(goal.path.as_deref(), engine, &format!("{key}.path"));
    let metric = match goal.target_metric {
        GoalMetric::UserInput => Metric::UserInput,
        GoalMetric::SomeMemPsiUs => Metric::SomeMemPsiUs,
        GoalMetric::NodeMemUsedBp => Metric::NodeMemUsedBp(node()?),
        GoalMetric::NodeMemFreeBp => Metric::NodeMemFreeBp(node()?),
        GoalMetric::NodeMemcgUsedBp => Metric::NodeMemcgUsedBp(node()?, memcg()?),
        GoalMetric::NodeMemcgFreeBp => Metric::NodeMemcgFreeBp(node()?, memcg()?),
        GoalMetric::ActiveMemBp => Metric::ActiveMemBp,
        GoalMetric::InactiveMemBp => Metric::InactiveMemBp,
    };
    let mut made = Goal::new(metric, goal.target_value);
    made.current_value = goal.current_value;
    Ok(made)
}

fn watermarks(watermarks: &Watermarks) -> damos::Watermarks {
    let Watermarks { metric, interval_us, high, mid, low } = *watermarks;
    let metric = match metric {
        WatermarkMetric::None => damos::WatermarkMetric::None,
        WatermarkMetric::FreeMemRate => damos::WatermarkMetric::FreeMemRate,
    };
    damos::Watermarks { metric, interval_us, high, mid, low }
}

/// What a filter looks at: an address, or a folio.
enum Kind {
    Core(CoreFilter),
    Ops(OpsFilter),
}

fn filter_kind(filter: &Filter, engine: &Engine, key: &str) -> Result<Kind, Problem> {
    let missing =
        |name: &str| problem(&format!("{key}.{name}"), "found no value, expected that of the filter");
    Ok(match filter.kind {
        FilterKind::Addr => {
            let start = filter.addr_start.ok_or_else(|| missing("addr_start"))?;
            let end = filter.addr_end.ok_or_else(|| missing("addr_end"))?;
            Kind::Core(CoreFilter::Addresses(start.0..end.0))
        }
        FilterKind::Target => {
            let target = filter.damon_target_idx.ok_or_else(|| missing("damon_target_idx"))?;
            Kind::Core(CoreFilter::Target(target as usize))
        }
        FilterKind::Anon => Kind::Ops(OpsFilter::Anon),
        FilterKind::Memcg => {
            let path = format!("{key}.memcg_path");
            Kind::Ops(OpsFilter::Memcg(memcg(filter.memcg_path.as_deref(), engine, &path)?))
        }
        FilterKind::Young => Kind::Ops(OpsFilter::Young),
        FilterKind::HugepageSize => {
            let min = filter.min.ok_or_else(|| missing("min"))?;
            let max = filter.max.ok_or_else(|| missing("max"))?;
            Kind::Ops(OpsFilter::HugepageSize(min.0, max.0))
        }
        FilterKind::Unmapped => Kind::Ops(OpsFilter::Unmapped),
        FilterKind::Active => Kind::Ops(OpsFilter::Active),
    })
}

/// The number of a cgroup.
fn memcg(path: Option<&str>, engine: &Engine, key: &str) -> Result<u16, Problem> {
    let path = path.ok_or_else(|| problem(key, "found no cgroup, expected its path"))?;
    let memcg = engine.figures().memcg_by_path(path);
    let MemcgId(number) = memcg.ok_or_else(|| problem(key, format!("there is no cgroup `{path}`")))?;
    Ok(number)
}
