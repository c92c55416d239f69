//! Figures of a run on tmpfs or anonymous memory, which have no event for a new folio. They are the folios that a mapping shows, counters by order, and sizes of the group.
//!
//! Both sides are texts by name, so that a figure that one side lacks differs, too. A counter that is 0 is not recorded.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow};
use pageout_engine::{
    Engine, MEMORY_EVENTS, MappedFolio, MemcgId, MthpStat, ObjectId, PAGE_SIZE, Stat, TaskId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Recorded;

/// Figures by name.
pub(super) type Figures = BTreeMap<String, String>;

/// The name of calls of reclaim at the group's limit.
pub(super) const RECLAIM_CALLS: &str = "calls of reclaim";

/// Puts the calls of reclaim of a simulation at its end.
pub(super) fn put_reclaim_calls(engine: &Engine, group: MemcgId, into: &mut Figures) {
    let at = MEMORY_EVENTS.iter().position(|&event| event == "max").expect("it is an event of a group");
    into.insert(RECLAIM_CALLS.to_owned(), engine.figures().memcg_events(group)[at].to_string());
}

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
        put("folios".to_owned(), text_of(figures.mapped_folios(task, object)));
    }
    Ok(())
}

/// What is compared of a run on anonymous memory, at its end: faults and what they brought in.
const AT_FAULT: [MthpStat; 3] =
    [MthpStat::AnonFaultAlloc, MthpStat::AnonFaultFallback, MthpStat::AnonFaultFallbackCharge];

/// What is shown besides: what swap did.
const OF_SWAP: [MthpStat; 9] = [
    MthpStat::Swpin,
    MthpStat::SwpinFallback,
    MthpStat::SwpinFallbackCharge,
    MthpStat::Swpout,
    MthpStat::SwpoutFallback,
    MthpStat::Zswpout,
    MthpStat::Split,
    MthpStat::SplitDeferred,
    MthpStat::NrAnon,
];
const OF_SWAP_PAGES: [Stat; 4] = [Stat::Pswpin, Stat::Pswpout, Stat::SwpinZero, Stat::SwpoutZero];

/// Returns whether a figure of a run on anonymous memory decides whether the run passes: what faults brought in, and how many there were.
pub(super) fn is_at_fault(name: &str) -> bool {
    name.ends_with("faults") || AT_FAULT.iter().any(|stat| name.ends_with(&format!(".{}", stat.name())))
}

/// The figures of the simulation of a run on anonymous memory.
pub(super) fn simulated_anon(
    engine: &Engine,
    map: Option<(TaskId, ObjectId)>,
    [minor, major]: [u64; 2],
    into: &mut Figures,
) {
    let figures = engine.figures();
    let mut put = |name: String, count: u64| _ = (count > 0).then(|| into.insert(name, count.to_string()));
    put("minor faults".to_owned(), minor);
    put("major faults".to_owned(), major);
    for order in 2..=9 {
        for stat in AT_FAULT.into_iter().chain(OF_SWAP) {
            put(format!("{}kB.{}", 4 << order, stat.name()), figures.mthp(order, stat));
        }
    }
    for stat in OF_SWAP_PAGES {
        put(stat.name().to_owned(), figures.vmstat(stat).max(0) as u64);
    }
    if let Some((task, object)) = map {
        into.insert("folios".to_owned(), text_of(figures.mapped_folios(task, object)));
    }
}

/// The figures of the recording of such a run. Counters that other programs may have moved are left out: those of runs for which all memory has folios of a
/// size, and splits of other sizes than the run's.
pub(super) fn recorded_anon(
    run: &Recorded,
    faults: &[Vec<u64>],
    sizes: &[u64],
    is_for_all: bool,
) -> anyhow::Result<Figures> {
    let mut all = Figures::new();
    let number = |name: &str, value: &Value| {
        value.as_i64().ok_or_else(|| anyhow!("{}: `{name}`: found {value}, expected a number", run.id))
    };
    for (name, count) in &run.mthp {
        let (size, event) = name.split_once("kB.").with_context(|| format!("{}: `{name}`", run.id))?;
        let is_known = AT_FAULT.iter().chain(&OF_SWAP).any(|stat| stat.name() == event);
        let is_own = size.parse().is_ok_and(|size: u64| sizes.contains(&size));
        let is_shared =
            is_for_all && matches!(event, "anon_fault_alloc" | "nr_anon" | "split_deferred" | "split");
        if is_known && is_own && !is_shared && number(name, count)? > 0 {
            all.insert(name.clone(), number(name, count)?.to_string());
        }
    }
    for stat in OF_SWAP_PAGES {
        if let Some(count) = run.vmstat.get(stat.name()) {
            all.insert(stat.name().to_owned(), number(stat.name(), count)?.to_string());
        }
    }
    let sum = |at: usize| -> u64 { faults.iter().filter_map(|fault| fault.get(at)).sum() };
    for (name, count) in [("minor faults", sum(1)), ("major faults", sum(2))] {
        if count > 0 {
            all.insert(name.to_owned(), count.to_string());
        }
    }
    let text: Vec<String> = run.folios_at_end.iter().map(|(what, count)| format!("{what}x{count}")).collect();
    all.insert("folios".to_owned(), text.join(" "));
    Ok(all)
}

/// The figures of a run on anonymous memory that differ from those of all repeats. A number that lies between those of the repeats does not.
pub(super) fn differing_anon(repeats: &[Figures], simulated: &Figures, is_for_all: bool) -> Vec<Figure> {
    let names: BTreeSet<&String> = repeats.iter().flat_map(Figures::keys).chain(simulated.keys()).collect();
    let is_left_out = |name: &str| {
        is_for_all
            && ["anon_fault_alloc", "nr_anon", "split_deferred", "split"]
                .iter()
                .any(|end| name.ends_with(&format!(".{end}")))
    };
    names
        .into_iter()
        .filter(|name| !is_left_out(name))
        .filter_map(|name| {
            let ours = simulated.get(name);
            let real: Vec<Option<&String>> = repeats.iter().map(|figures| figures.get(name)).collect();
            let number = |text: Option<&String>| text.map_or(Some(0), |text| text.parse::<u64>().ok());
            let numbers: Option<Vec<u64>> = real.iter().map(|text| number(*text)).collect();
            let is_between = numbers.zip(number(ours)).is_some_and(|(real, ours)| {
                real.iter().min() <= Some(&ours) && Some(&ours) <= real.iter().max()
            });
            let is_equal = is_between || real.contains(&ours);
            (!is_equal).then(|| Figure {
                name: name.clone(),
                recorded: real.first().copied().flatten().cloned(),
                simulated: ours.cloned(),
            })
        })
        .collect()
}

fn text_of(folios: Vec<(MappedFolio, u64)>) -> String {
    let text: Vec<String> =
        folios.into_iter().map(|(what, count)| format!("{}x{count}", word(what))).collect();
    text.join(" ")
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

/// The figures that differ. Folios that one side did not look at are not compared, and calls of reclaim decide nothing.
pub(super) fn differing(recorded: &Figures, simulated: &Figures) -> Vec<Figure> {
    let names = recorded.keys().chain(simulated.keys().filter(|name| !recorded.contains_key(*name)));
    names
        .filter(|name| *name != RECLAIM_CALLS && (!name.ends_with(" folios") || recorded.contains_key(*name)))
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
        let ours = of(&[
            ("#1 cache", "4096"),
            ("#1 folios", "0x1"),
            ("#1 thp_split_page", "2"),
            (RECLAIM_CALLS, "3"),
        ]);
        let names: Vec<String> = differing(&real, &ours).into_iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["#1 64kB.split", "#1 thp_split_page"]);
    }
}
