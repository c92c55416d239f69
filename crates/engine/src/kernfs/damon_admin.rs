//! Settings and results of kdamonds: `/sys/kernel/mm/damon/admin/kdamonds`. [access-aware 3.1]
//!
//! A row has a path below that directory, in which each `*` is a number. All files are read only. Results are always up to date: Linux updates them
//! on a command to `state`, or every `refresh_ms`.

use crate::access::engine::Engine;
use crate::damon::{KdamondFigures, SchemeFigures};
use crate::units::MemcgId;
use pageout_damon::{Action, CoreFilter, Goal, Metric, OpsFilter, Range, Tuner, WatermarkMetric};
use std::fmt::Display;

/// The directory of kdamonds.
pub(super) const ADMIN: &str = "/sys/kernel/mm/damon/admin/kdamonds/";

/// A file of kdamonds.
pub struct DamonFile {
    /// Its path in the directory of kdamonds, with `*` for numbers: of the kdamond, the scheme, and what the scheme has several of.
    pub path: &'static str,
    /// Meaning of the file's contents.
    pub doc: &'static str,
    show: Show,
}

/// What a file belongs to.
enum Show {
    All(fn(&Engine) -> String),
    Kdamond(fn(&KdamondFigures) -> String),
    Region(fn(&Range) -> String),
    Scheme(fn(&SchemeFigures) -> String),
    Goal(fn(&Engine, &Goal, u64) -> String),
    Filter(Layer, fn(&Engine, &Filter) -> String),
}

/// The list that a filter is in.
#[derive(Clone, Copy)]
enum Layer {
    Core,
    Ops,
}

/// A filter with what its files show.
#[derive(Default)]
struct Filter {
    kind: &'static str,
    matching: bool,
    allow: bool,
    memcg: Option<u16>,
    addresses: Range,
    size: (u64, u64),
    target: usize,
}

macro_rules! scheme {
    ($path:literal, $show:expr, $doc:literal) => {
        DamonFile {
            path: concat!("*/contexts/0/schemes/*/", $path),
            doc: $doc,
            show: Show::Scheme(|scheme| {
                let show: fn(&SchemeFigures) -> _ = $show;
                line(show(scheme))
            }),
        }
    };
}

macro_rules! goal {
    ($path:literal, $show:expr, $doc:literal) => {
        DamonFile {
            path: concat!("*/contexts/0/schemes/*/quotas/goals/*/", $path),
            doc: $doc,
            show: Show::Goal($show),
        }
    };
}

macro_rules! filters {
    ($layer:ident, $directory:literal, [$($path:literal: $show:expr, $doc:literal;)*]) => {
        [$(DamonFile {
            path: concat!("*/contexts/0/schemes/*/", $directory, "/*/", $path),
            doc: $doc,
            show: Show::Filter(Layer::$layer, $show),
        }),*]
    };
}

const fn of_kdamond(path: &'static str, show: fn(&KdamondFigures) -> String, doc: &'static str) -> DamonFile {
    DamonFile { path, doc, show: Show::Kdamond(show) }
}

const fn of_region(path: &'static str, show: fn(&Range) -> String, doc: &'static str) -> DamonFile {
    DamonFile { path, doc, show: Show::Region(show) }
}

/// Files of all kdamonds, of one, and of its schemes and their goals.
#[rustfmt::skip]
const FILES: &[DamonFile] = &[
    DamonFile { path: "nr_kdamonds", doc: "Number of kdamonds.", show: Show::All(|engine| line(engine.kdamonds().len())) },
    of_kdamond("*/state", |_| line("on"), "on: a kdamond exists while it runs."),
    of_kdamond("*/contexts/nr_contexts", |_| line(1), "1: a kdamond has one context."),
    of_kdamond("*/contexts/0/avail_operations", |_| line("vaddr\npaddr"), "The operations that exist here, one per line."),
    of_kdamond("*/contexts/0/operations", |of| line(if of.processes.is_empty() { "paddr" } else { "vaddr" }), "The addresses that are monitored."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/sample_us", |of| line(of.attrs.sample_us), "The sample interval, as tuned."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/aggr_us", |of| line(of.attrs.aggr_us), "The aggregation interval, as tuned."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/update_us", |of| line(of.attrs.update_us), "The interval at which address ranges are looked up."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/intervals_goal/access_bp", |of| line(of.attrs.intervals_goal.access_bp), "The wanted share of samples that find an access, in 1/10000."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/intervals_goal/aggrs", |of| line(of.attrs.intervals_goal.aggrs), "Windows after which the intervals are tuned."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/intervals_goal/min_sample_us", |of| line(of.attrs.intervals_goal.min_sample_us), "The shortest tuned sample interval."),
    of_kdamond("*/contexts/0/monitoring_attrs/intervals/intervals_goal/max_sample_us", |of| line(of.attrs.intervals_goal.max_sample_us), "The longest tuned sample interval."),
    of_kdamond("*/contexts/0/monitoring_attrs/nr_regions/min", |of| line(of.attrs.min_regions), "The minimum number of regions."),
    of_kdamond("*/contexts/0/monitoring_attrs/nr_regions/max", |of| line(of.attrs.max_regions), "The maximum number of regions."),
    of_kdamond("*/contexts/0/targets/nr_targets", |of| line(of.processes.len().max(1)), "Number of targets: processes, or 1 for physical memory."),
    of_kdamond("*/contexts/0/targets/0/regions/nr_regions", |of| line(of.ranges.len()), "Number of address ranges that were given."),
    of_region("*/contexts/0/targets/0/regions/*/start", |range| line(range.start), "First address of a range."),
    of_region("*/contexts/0/targets/0/regions/*/end", |range| line(range.end), "The address behind a range."),
    of_kdamond("*/contexts/0/schemes/nr_schemes", |of| line(of.schemes.len()), "Number of schemes."),
    scheme!("action", |of: &SchemeFigures| of.spec.action.name(), "What the scheme does."),
    scheme!("target_nid", target_nid, "The node to which it migrates; -1: none."),
    scheme!("apply_interval_us", |of: &SchemeFigures| of.spec.apply_interval_us, "Microseconds between two applications; 0: the aggregation interval."),
    scheme!("access_pattern/sz/min", |of: &SchemeFigures| *of.spec.pattern.size.start(), "The smallest region."),
    scheme!("access_pattern/sz/max", |of: &SchemeFigures| *of.spec.pattern.size.end(), "The largest region."),
    scheme!("access_pattern/nr_accesses/min", |of: &SchemeFigures| *of.spec.pattern.nr_accesses.start(), "The smallest number of samples with an access."),
    scheme!("access_pattern/nr_accesses/max", |of: &SchemeFigures| *of.spec.pattern.nr_accesses.end(), "The largest number of samples with an access."),
    scheme!("access_pattern/age/min", |of: &SchemeFigures| *of.spec.pattern.age.start(), "The lowest age, in windows."),
    scheme!("access_pattern/age/max", |of: &SchemeFigures| *of.spec.pattern.age.end(), "The highest age, in windows."),
    scheme!("quotas/ms", |of: &SchemeFigures| of.spec.quota.ms, "CPU time per interval; 0: any."),
    scheme!("quotas/bytes", |of: &SchemeFigures| of.spec.quota.bytes, "Bytes per interval; 0: any."),
    scheme!("quotas/reset_interval_ms", |of: &SchemeFigures| of.spec.quota.reset_interval_ms, "The interval of the quota."),
    scheme!("quotas/effective_bytes", |of: &SchemeFigures| of.effective_bytes, "The size that time, bytes and goals have become."),
    scheme!("quotas/goal_tuner", goal_tuner, "How the size follows the goals."),
    scheme!("quotas/fail_charge_num", |of: &SchemeFigures| of.spec.quota.fail_charge.num, "Numerator of the charge without effect."),
    scheme!("quotas/fail_charge_denom", |of: &SchemeFigures| of.spec.quota.fail_charge.denom, "Denominator of the charge without effect; 0: all is charged."),
    scheme!("quotas/weights/sz_permil", |of: &SchemeFigures| of.spec.quota.weights.size, "Weight of the size. It has no effect."),
    scheme!("quotas/weights/nr_accesses_permil", |of: &SchemeFigures| of.spec.quota.weights.nr_accesses, "Weight of the accesses."),
    scheme!("quotas/weights/age_permil", |of: &SchemeFigures| of.spec.quota.weights.age, "Weight of the age."),
    scheme!("quotas/goals/nr_goals", |of: &SchemeFigures| of.spec.quota.goals.len(), "Number of goals."),
    goal!("target_metric", |_, goal, _| line(metric(goal.metric)), "What the goal measures."),
    goal!("target_value", |_, goal, _| line(goal.target_value), "The value to reach."),
    goal!("current_value", |_, _, current| line(current), "The value of the last interval."),
    goal!("nid", |_, goal, _| line(goal_place(goal.metric).0), "The node that is measured."),
    goal!("path", |engine, goal, _| line(path_of(engine, goal_place(goal.metric).1)), "The cgroup that is measured."),
    scheme!("watermarks/metric", watermark_metric, "The figure that is compared with the watermarks."),
    scheme!("watermarks/interval_us", |of: &SchemeFigures| of.spec.watermarks.interval_us, "Microseconds between two checks while inactive."),
    scheme!("watermarks/high", |of: &SchemeFigures| of.spec.watermarks.high, "Above it the scheme is inactive."),
    scheme!("watermarks/mid", |of: &SchemeFigures| of.spec.watermarks.mid, "Below it an inactive scheme becomes active."),
    scheme!("watermarks/low", |of: &SchemeFigures| of.spec.watermarks.low, "Below it the scheme is inactive."),
    scheme!("core_filters/nr_filters", |of: &SchemeFigures| of.spec.core_filters.len(), "Number of filters by address."),
    scheme!("ops_filters/nr_filters", |of: &SchemeFigures| of.spec.ops_filters.len(), "Number of filters by page."),
    scheme!("stats/nr_tried", |of: &SchemeFigures| of.stats.nr_tried, "Regions that the scheme was tried on."),
    scheme!("stats/sz_tried", |of: &SchemeFigures| of.stats.sz_tried, "Bytes of these regions."),
    scheme!("stats/nr_applied", |of: &SchemeFigures| of.stats.nr_applied, "Regions in which it had an effect."),
    scheme!("stats/sz_applied", |of: &SchemeFigures| of.stats.sz_applied, "Bytes that it had an effect on."),
    scheme!("stats/sz_ops_filter_passed", |of: &SchemeFigures| of.stats.sz_ops_filter_passed, "Bytes that the filters by page let through."),
    scheme!("stats/qt_exceeds", |of: &SchemeFigures| of.stats.qt_exceeds, "Intervals in which the quota was used up."),
    scheme!("stats/nr_snapshots", |of: &SchemeFigures| of.stats.nr_snapshots, "Applications of the scheme."),
    scheme!("stats/max_nr_snapshots", |of: &SchemeFigures| of.spec.max_nr_snapshots, "Applications after which it does nothing more; 0: no limit."),
    scheme!("tried_regions/total_bytes", |of: &SchemeFigures| of.tried_bytes, "Bytes that it was tried on in its last application."),
];

/// Files of filters by address.
#[rustfmt::skip]
const CORE_FILTERS: &[DamonFile] = &filters!(Core, "core_filters", [
    "type": |_, filter| line(filter.kind), "What the filter matches.";
    "matching": |_, filter| line(flag(filter.matching)), "Y: it is about what matches.";
    "allow": |_, filter| line(flag(filter.allow)), "Y: it lets these regions through; N: it rejects them.";
    "addr_start": |_, filter| line(filter.addresses.start), "First address.";
    "addr_end": |_, filter| line(filter.addresses.end), "The address behind the last one.";
    "damon_target_idx": |_, filter| line(filter.target), "The target.";
]);

/// Files of filters by page.
#[rustfmt::skip]
const OPS_FILTERS: &[DamonFile] = &filters!(Ops, "ops_filters", [
    "type": |_, filter| line(filter.kind), "What the filter matches.";
    "matching": |_, filter| line(flag(filter.matching)), "Y: it is about what matches.";
    "allow": |_, filter| line(flag(filter.allow)), "Y: it lets these pages through; N: it rejects them.";
    "memcg_path": |engine, filter| line(path_of(engine, filter.memcg)), "The cgroup that pages are charged to.";
    "min": |_, filter| line(filter.size.0), "The smallest folio.";
    "max": |_, filter| line(filter.size.1), "The largest folio.";
]);

/// The files of kdamonds.
pub fn damon_files() -> impl Iterator<Item = &'static DamonFile> {
    [FILES, CORE_FILTERS, OPS_FILTERS].into_iter().flatten()
}

impl DamonFile {
    /// The numbers in a path, if it is one of this file.
    fn numbers(&self, path: &str) -> Option<[usize; 3]> {
        let (mut numbers, mut found) = ([0; 3], 0);
        let mut given = path.split('/');
        for part in self.path.split('/') {
            let name = given.next()?;
            if part != "*" {
                if part != name {
                    return None;
                }
                continue;
            }
            let number: usize = name.parse().ok()?;
            // As the kernel writes it: without a sign or zeroes in front.
            if number.to_string() != name {
                return None;
            }
            numbers[found] = number;
            found += 1;
        }
        given.next().is_none().then_some(numbers)
    }

    fn show(&self, engine: &Engine, [of, second, third]: [usize; 3]) -> Option<String> {
        let kdamond = || engine.kdamonds().get(of);
        let scheme = || kdamond()?.schemes.get(second);
        Some(match self.show {
            Show::All(show) => show(engine),
            Show::Kdamond(show) => show(kdamond()?),
            Show::Region(show) => show(kdamond()?.ranges.get(second)?),
            Show::Scheme(show) => show(scheme()?),
            Show::Goal(show) => {
                let goal = scheme()?.spec.quota.goals.get(third)?;
                show(engine, goal, *scheme()?.goals.get(third)?)
            }
            Show::Filter(layer, show) => show(engine, &filter(scheme()?, layer, third)?),
        })
    }
}

impl Engine {
    /// The contents of a file of kdamonds, if there is such a file: those of modules have none.
    pub(super) fn damon_admin_text(&self, path: &str) -> Option<String> {
        let config = &self.core.mm.config;
        if config.damon_reclaim || config.damon_lru_sort || config.damon_stat {
            return None;
        }
        let path = path.strip_prefix(ADMIN)?;
        damon_files().find_map(|file| file.show(self, file.numbers(path)?))
    }
}

fn line(value: impl Display) -> String {
    format!("{value}\n")
}

fn flag(is_set: bool) -> char {
    if is_set { 'Y' } else { 'N' }
}

fn target_nid(of: &SchemeFigures) -> i32 {
    match of.spec.action {
        Action::MigrateHot(node) | Action::MigrateCold(node) => node.into(),
        _ => -1,
    }
}

fn goal_tuner(of: &SchemeFigures) -> &'static str {
    match of.spec.quota.tuner {
        Tuner::Consist => "consist",
        Tuner::Temporal => "temporal",
    }
}

fn watermark_metric(of: &SchemeFigures) -> &'static str {
    match of.spec.watermarks.metric {
        WatermarkMetric::None => "none",
        WatermarkMetric::FreeMemRate => "free_mem_rate",
    }
}

fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::UserInput => "user_input",
        Metric::SomeMemPsiUs => "some_mem_psi_us",
        Metric::NodeMemUsedBp(_) => "node_mem_used_bp",
        Metric::NodeMemFreeBp(_) => "node_mem_free_bp",
        Metric::NodeMemcgUsedBp(..) => "node_memcg_used_bp",
        Metric::NodeMemcgFreeBp(..) => "node_memcg_free_bp",
        Metric::ActiveMemBp => "active_mem_bp",
        Metric::InactiveMemBp => "inactive_mem_bp",
    }
}

/// The node and the cgroup that a metric is about.
fn goal_place(metric: Metric) -> (u8, Option<u16>) {
    match metric {
        Metric::NodeMemUsedBp(node) | Metric::NodeMemFreeBp(node) => (node, None),
        Metric::NodeMemcgUsedBp(node, memcg) | Metric::NodeMemcgFreeBp(node, memcg) => (node, Some(memcg)),
        _ => (0, None),
    }
}

/// The path of a cgroup; nothing without one.
fn path_of(engine: &Engine, memcg: Option<u16>) -> String {
    memcg.map_or(String::new(), |memcg| engine.core.mm.memcgs.path(MemcgId(memcg)))
}

fn filter(scheme: &SchemeFigures, layer: Layer, number: usize) -> Option<Filter> {
    Some(match layer {
        Layer::Core => {
            let of = scheme.spec.core_filters.get(number)?;
            let base = Filter { matching: of.matching, allow: of.allow, ..Filter::default() };
            match &of.kind {
                CoreFilter::Addresses(addresses) => {
                    Filter { kind: "addr", addresses: addresses.clone(), ..base }
                }
                CoreFilter::Target(target) => Filter { kind: "target", target: *target, ..base },
            }
        }
        Layer::Ops => {
            let of = scheme.spec.ops_filters.get(number)?;
            let base = Filter { matching: of.matching, allow: of.allow, ..Filter::default() };
            match of.kind {
                OpsFilter::Anon => Filter { kind: "anon", ..base },
                OpsFilter::Memcg(memcg) => Filter { kind: "memcg", memcg: Some(memcg), ..base },
                OpsFilter::Young => Filter { kind: "young", ..base },
                OpsFilter::HugepageSize(min, max) => {
                    Filter { kind: "hugepage_size", size: (min, max), ..base }
                }
                OpsFilter::Unmapped => Filter { kind: "unmapped", ..base },
                OpsFilter::Active => Filter { kind: "active", ..base },
            }
        }
    })
}
