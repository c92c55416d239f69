//! The live machine's kernel files and the times of its tasks, as metrics with the simulator's names.

use pageout_live::Memory;

use super::plan::Plan;
use super::tasks::Done;
use crate::error::{During as _, Error};
use crate::result::metrics::{Metric, Unit, writeback_metrics};
use crate::result::writeback::WritebackResult;

/// All figures of a run.
pub(super) fn metrics(memory: &Memory, plan: &Plan<'_>, done: &[Done]) -> Result<Vec<Metric>, Error> {
    let mut metrics = Vec::new();
    let mut add = |group: &str, name: &str, value: f64, unit| {
        let (group, name) = (group.to_string(), name.to_string());
        metrics.push(Metric { group, name, value, unit, is_truncated: false });
    };
    for (task, (ended, _)) in plan.scenario.task.iter().zip(done) {
        let group = format!("task {}", task.name);
        let seconds = ended.runtime_ns as f64 / 1e9;
        add(&group, "accesses", ended.accesses as f64, Unit::Count);
        add(&group, "runtime", ended.runtime_ns as f64, Unit::Nanoseconds);
        add(&group, "CPU time", ended.cpu_ns as f64, Unit::Nanoseconds);
        add(&group, "throughput", ended.accesses as f64 / seconds, Unit::PerSecond);
        for (name, part) in [("access p50", 0.5), ("access p99", 0.99), ("access longest", 1.0)] {
            if let Some(time) = ended.percentile_ns(part) {
                add(&group, name, time as f64, Unit::Nanoseconds);
            }
        }
    }
    for memcg in &plan.groups {
        let group = format!("memcg /{}", memcg.name);
        let folder = format!("/sys/fs/cgroup/{}", memcg.name);
        for (name, value) in counters(memory, &format!("{folder}/memory.stat"))? {
            add(&group, &name, value, Unit::Count);
        }
        for (name, value) in counters(memory, &format!("{folder}/memory.events"))? {
            add(&group, &format!("memory.events {name}"), value, Unit::Count);
        }
    }
    for (name, value) in counters(memory, "/proc/vmstat")? {
        add("/proc/vmstat", &name, value, Unit::Count);
    }
    let writeback = memory.look_at_engine(WritebackResult::of).during(|| "writeback".to_string())?;
    let stats = memory.stats().during(|| "stats".to_string())?;
    add("device", "bytes read", stats.device_bytes as f64, Unit::Bytes);
    add("device", "bytes written", stats.device_bytes_written as f64, Unit::Bytes);
    add("tiers", "slow hits", stats.slow_hits as f64, Unit::Count);
    add("zswap", "stores", stats.zswap_stores as f64, Unit::Count);
    metrics.extend(writeback_metrics(&writeback));
    Ok(metrics)
}

/// Names and values of a kernel file that has one of each per line.
fn counters(memory: &Memory, path: &str) -> Result<Vec<(String, f64)>, Error> {
    let text = memory.read(path).during(|| path.to_string())?;
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}
