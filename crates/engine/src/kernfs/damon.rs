//! Results of DAMON's modules: `/sys/module/NAME/parameters/`. [access-aware 3.3]

use crate::access::engine::Engine;
use crate::damon::KdamondFigures;
use pageout_damon::SchemeStats;
use pageout_damon::modules::Stat;
use std::fmt::Display;

/// A figure of a module: those of a scheme by its number, as far as the module is enabled.
fn of_scheme(engine: &Engine, is_enabled: bool, scheme: usize, figure: fn(&SchemeStats) -> u64) -> String {
    let scheme = of_module(engine).and_then(|kdamond| kdamond.schemes.get(scheme)).filter(|_| is_enabled);
    line(scheme.map_or(0, |scheme| figure(&scheme.stats)))
}

/// The kdamond of the enabled module, which runs alone.
fn of_module(engine: &Engine) -> Option<&KdamondFigures> {
    engine.kdamonds().first()
}

/// What DAMON_STAT shows, if it is enabled.
fn stat(engine: &Engine) -> Option<&Stat> {
    of_module(engine).and_then(|kdamond| kdamond.stat.as_ref()).filter(|_| engine.core.mm.config.damon_stat)
}

fn line(value: impl Display) -> String {
    format!("{value}\n")
}

/// A figure of DAMON_RECLAIM.
pub(super) fn reclaim(engine: &Engine, figure: fn(&SchemeStats) -> u64) -> String {
    of_scheme(engine, engine.core.mm.config.damon_reclaim, 0, figure)
}

/// A figure of one of the schemes of DAMON_LRU_SORT: 0 for hot regions, 1 for cold ones.
pub(super) fn lru_sort(engine: &Engine, scheme: usize, figure: fn(&SchemeStats) -> u64) -> String {
    of_scheme(engine, engine.core.mm.config.damon_lru_sort, scheme, figure)
}

/// Bytes per second that DAMON_STAT estimates to be accessed.
pub(super) fn bandwidth(engine: &Engine) -> String {
    line(stat(engine).map_or(0, |stat| stat.estimated_memory_bandwidth))
}

/// Idle times of DAMON_STAT by percent of the memory, separated by commas.
pub(super) fn idle_percentiles(engine: &Engine) -> String {
    let shown = stat(engine).map_or(vec![0; 101], |stat| stat.memory_idle_ms_percentiles.clone());
    line(shown.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// The aggregation interval that DAMON_STAT has tuned, in microseconds.
pub(super) fn aggr_interval(engine: &Engine) -> String {
    let kdamond = of_module(engine).filter(|_| engine.core.mm.config.damon_stat);
    line(kdamond.map_or(0, |kdamond| kdamond.attrs.aggr_us))
}
