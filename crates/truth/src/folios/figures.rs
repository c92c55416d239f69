//! Figures of a run on tmpfs, which has no event for a folio that comes: the folios that a mapping shows, counters by order, and sizes of the group.
//!
//! Both sides are texts by name, so that a figure that one side lacks differs, too. A counter that is 0 is not recorded.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow};
use pageout_engine::{Engine, MappedFolio, MemcgId, MthpStat, ObjectId, PAGE_SIZE, Stat, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Figures by name.
pub(super) type Figures = BTreeMap<String, String>;

/// Counters of `/proc/vmstat` that are compared.
const VMSTAT: [Stat; 5] = [
    Stat::ThpFileAlloc,
    Stat::ThpFileFallback,
    Stat::ThpFileFallbackCharge,
    Stat::ThpFileMapped,
    Stat::ThpSplitPage,
];

/// Sizes of the group. The inactive list is left out: a CPU's batch holds up to 30 more pages of it, and what it held at the start was not recorded.
const SIZES: [(&str, Stat); 3] =
    [("cache", Stat::NrFilePages), ("mapped_file", Stat::NrMapped), ("active_anon", Stat::NrActiveAnon)];

/// A figure that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Where it was read, and what it is: `#8 cache`.
    pub name: String,
    /// What the kernel had; nothing if it was not recorded.
    pub recorded: Option<String>,
    /// What the simulation had, likewise.
    pub simulated: Option<String>,
}

/// What the kernel said at an operation.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Snapshot {
    op: usize,
    #[serde(default)]
    memory: BTreeMap<String, u64>,
    #[serde(default)]
    mthp: BTreeMap<String, Value>,
    #[serde(default)]
    vmstat: BTreeMap<String, Value>,
    #[serde(default)]
    folios: Vec<(String, u64)>,
}

/// The recorded figures of a run. Counters of other kinds of memory are left out: they may be those of other programs.
pub(super) fn recorded(snapshots: &[Snapshot]) -> anyhow::Result<Figures> {
    let mut all = Figures::new();
    for Snapshot { op, memory, mthp, vmstat, folios } in snapshots {
        for (name, _) in SIZES {
            let bytes = memory.get(name).ok_or_else(|| anyhow!("snapshot {op}: no `{name}` in `memory`"))?;
            all.insert(format!("#{op} {name}"), bytes.to_string());
        }
        for (name, count) in mthp {
            let (_, event) = name.split_once('.').with_context(|| format!("snapshot {op}: `{name}`"))?;
            if MthpStat::ALL.iter().any(|stat| stat.name() == event) {
                all.insert(format!("#{op} {name}"), count.to_string());
            }
        }
        for stat in VMSTAT.iter().filter_map(|stat| vmstat.get_key_value(stat.name())) {
            all.insert(format!("#{op} {}", stat.0), stat.1.to_string());
        }
        if !folios.is_empty() {
            let text: Vec<String> = folios.iter().map(|(what, count)| format!("{what}x{count}")).collect();
            all.insert(format!("#{op} folios"), text.join(" "));
        }
    }
    Ok(all)
}

/// The same of the simulation, at an operation.
pub(super) fn simulated(
    engine: &mut Engine,
    group: MemcgId,
    map: Option<(TaskId, ObjectId)>,
    op: usize,
    into: &mut Figures,
) -> anyhow::Result<()> {
    // Sizes are those of the last flush, which a reader causes only if enough has changed.
    engine.read_file(&format!("/sys/fs/cgroup{}/memory.stat", engine.figures().memcg_path(group)))?;
    let figures = engine.figures();
    let mut put = |name: String, value: String| into.insert(format!("#{op} {name}"), value);
    for (name, stat) in SIZES {
        put(name.to_owned(), (figures.memcg_stat(group, stat) * PAGE_SIZE as i64).to_string());
    }
    for stat in MthpStat::ALL {
        for order in 1..=9 {
            let count = figures.mthp(order, stat);
            if count > 0 {
                put(format!("{}kB.{}", 4 << order, stat.name()), count.to_string());
            }
        }
    }
    for stat in VMSTAT.into_iter().filter(|&stat| figures.vmstat(stat) > 0) {
        put(stat.name().to_owned(), figures.vmstat(stat).to_string());
    }
    if let Some((task, object)) = map {
        let folios = figures.mapped_folios(task, object);
        let text: Vec<String> =
            folios.into_iter().map(|(what, count)| format!("{}x{count}", word(what))).collect();
        put("folios".to_owned(), text.join(" "));
    }
    Ok(())
}

/// How the recordings name what a mapping shows.
fn word(folio: MappedFolio) -> String {
    match folio {
        MappedFolio::Nothing => "-".to_owned(),
        MappedFolio::Zeroes => "z".to_owned(),
        MappedFolio::Swapped => "s".to_owned(),
        MappedFolio::Whole(order) => order.to_string(),
        MappedFolio::Part(order) => format!("p{order}"),
    }
}

/// The figures that differ. Folios that one side did not look at are not compared.
pub(super) fn differing(recorded: &Figures, simulated: &Figures) -> Vec<Figure> {
    let names = recorded.keys().chain(simulated.keys().filter(|name| !recorded.contains_key(*name)));
    names
        .filter(|name| !name.ends_with(" folios") || recorded.contains_key(*name))
        .filter(|name| recorded.get(*name) != simulated.get(*name))
        .map(|name| Figure {
            name: name.clone(),
            recorded: recorded.get(name).cloned(),
            simulated: simulated.get(name).cloned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_that_one_side_lacks_differs() {
        let of = |pairs: &[(&str, &str)]| -> Figures {
            pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let real = of(&[("#1 cache", "4096"), ("#1 64kB.split", "1")]);
        let ours = of(&[("#1 cache", "4096"), ("#1 folios", "0x1"), ("#1 thp_split_page", "2")]);
        let names: Vec<String> = differing(&real, &ours).into_iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["#1 64kB.split", "#1 thp_split_page"]);
    }
}
