//! The figures of a moment: counters, groups, tasks, zones, devices. Reading them changes nothing.

use pageout_engine::{Figures, Stat};
use pageout_sim::{Ended, Machine, Report};
use serde_json::{Map, Value, json};

/// All figures of a machine now.
pub(crate) fn status(machine: &Machine) -> Value {
    let report = machine.report();
    let figures = machine.engine().figures();
    let vmstat = Stat::ALL.iter().filter(|stat| stat.is_in_vmstat());
    let vmstat: Map<String, Value> =
        vmstat.map(|&stat| (stat.name().to_string(), figures.vmstat(stat).into())).collect();
    json!({
        "at_ns": report.end.0,
        "next_ns": machine.next_at().map(|at| at.0),
        "ended": match report.ended {
            Ended::NotYet | Ended::Interrupted => Value::Null,
            Ended::Complete => "complete".into(),
            Ended::TimeUp => "time up".into(),
            Ended::Failed => "failed".into(),
        },
        "accesses": report.accesses,
        "vmstat": vmstat,
        "swap_used": figures.swap_used(),
        "zswap": { "stored": figures.zswap_pool().stored, "pool": figures.zswap_pool().pages },
        "groups": groups(figures, &report),
        "tasks": tasks(&report),
        "zones": zones(figures),
        "threads": report.threads.iter().map(|thread| json!({ "name": thread.name, "cpu_ns": thread.cpu_time.0 })).collect::<Vec<_>>(),
        "devices": report.devices.iter().map(|device| json!({
            "name": device.name, "read": device.pages_read, "written": device.pages_written,
        })).collect::<Vec<_>>(),
        "kills": report.kills.len(),
    })
}

fn groups(figures: Figures<'_>, report: &Report) -> Vec<Value> {
    let row = |(id, path): (_, String)| {
        let stall = report.pressure.iter().find(|pressure| pressure.group == path);
        let stall = |of: fn(&pageout_sim::Pressure) -> u64| stall.map_or(0, of);
        let now = |stat| figures.memcg_stat_now(id, stat);
        json!({
            "path": path,
            "usage": figures.memcg_usage(id),
            "swap": figures.memcg_swap_usage(id),
            "refaults": now(Stat::WorkingsetRefaultAnon) + now(Stat::WorkingsetRefaultFile),
            "memory_some_ns": stall(|pressure| pressure.memory.some.0),
            "memory_full_ns": stall(|pressure| pressure.memory.full.0),
            "io_some_ns": stall(|pressure| pressure.io.some.0),
        })
    };
    figures.memcgs().map(row).collect()
}

fn tasks(report: &Report) -> Vec<Value> {
    let row = |task: &pageout_sim::TaskReport| {
        json!({
            "name": task.name, "group": task.memcg, "accesses": task.accesses, "hits": task.hits,
            "cpu_ns": task.cpu_time.0, "cpu_wait_ns": task.cpu_wait.0, "reclaim_ns": task.reclaim_time.0,
            "io_ns": task.io_wait.0, "delays_ns": task.delays.total().0, "idle_ns": task.idle.0,
            "killed": task.killed.is_some(), "ended": task.ended.is_some(),
        })
    };
    report.tasks.iter().map(row).collect()
}

fn zones(figures: Figures<'_>) -> Vec<Value> {
    let row = |zone: pageout_engine::ZoneInfo| {
        json!({
            "node": zone.node.0, "zone": format!("{:?}", zone.zone), "free": zone.free, "min": zone.min, "low": zone.low,
            "high": zone.high, "managed": zone.managed, "present": zone.present,
        })
    };
    figures.zones().map(row).collect()
}
