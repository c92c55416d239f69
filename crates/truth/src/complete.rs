//! Checks that recorded inputs are complete: the kernel's own counts give the number of entries that a list should have.
//!
//! A list that was cut short is well-formed, and replays like a kernel that did less from then on. So each is held against what counts the same
//! events from another side:
//!
//! ```text
//!   flushes        the flushes of `events_file`; without them, who has read `memory.stat` since, and the worker's two seconds
//!   agings         the youngest generation of `lru_gen`, which each aging raises by one
//!   mapped_file    the accesses that faulted, by `misses_file`: each has mapped its page at least
//!   trace_file     `pageoutrun`: kswapd runs as often as it wakes
//! ```
//! These are answers: they are read after the simulation, and change none of its figures. What a group held (`group_at_start`) nothing else counts.

use super::answers::{Answer, Answers, MissMap};
use super::inputs::Inputs;
use super::object::Kind;
use super::recording::Flush;
use super::rig::Playable;
use crate::input::Input;

/// A list that ends before this share of its run has lost its end, if nothing counts its entries. Spontaneous events such as wake-ups come
/// more often than that.
pub(super) const END: f64 = 0.9;

/// Updates that wait before a reader of `memory.stat` flushes them, on one CPU. A miss makes one at least.
const UPDATES: usize = 64;

/// The worker flushes every two seconds. Times of accesses are interpolated, so that twice as long may seem to pass.
const UNFLUSHED_SECONDS: f64 = 4.0;

/// The youngest generation of a group that is new.
const FIRST_MAX_SEQ: u64 = 3;

/// How many runs of kswapd may have begun before the trace did, or follow without a sleep.
const RUNS_AT_ENDS: u64 = 2;

/// Returns the inputs of a run that cannot be complete.
pub(super) fn doubts(
    playable: &Playable,
    answers: &Answers,
    misses: Option<&MissMap>,
) -> anyhow::Result<Vec<String>> {
    let answer = answers.of(&playable.run.id);
    let inputs = &playable.inputs;
    let doubts = [
        match inputs.flushes {
            Some(flushes) if !flushes.is_empty() => of_flushes(playable, flushes, answers, misses)?,
            _ => None,
        },
        of_agings(playable, answers.generations(answer).last().map(|youngest| youngest.seq)),
        of_mapped(playable, answers.faults(answer, playable.sequence.len())?),
        of_stream(playable, answers, answer)?,
        of_wakes(inputs, answer),
    ];
    Ok(doubts.into_iter().flatten().collect())
}

fn of_flushes(
    playable: &Playable,
    flushes: &[Flush],
    answers: &Answers,
    misses: Option<&MissMap>,
) -> anyhow::Result<Option<String>> {
    let (name, run) = (Input::Flushes.field(), playable.run);
    let named = flushes.len() as u64;
    // A recording with flushes in its events has all of them.
    if let Some(counted) = answers.flushes(answers.of(&run.id))?.filter(|&counted| counted > 0) {
        let why = || format!("`{name}` lists {named} of the {counted} flushes in `events_file`");
        return Ok((named != counted).then(why));
    }
    let last = flushes.last().map_or(0, |flush| flush.before);
    let ends = run.windows.iter().map(|window| window.op).filter(|&op| op > last && op < run.ops);
    let missed_until =
        |op: u64| misses.map(|map| map[last as usize..op as usize].iter().filter(|&&missed| missed).count());
    let unflushed =
        ends.filter_map(|op| Some((op, missed_until(op)?))).find(|&(_, missed)| missed >= UPDATES);
    if let Some((op, missed)) = unflushed {
        return Ok(Some(format!(
            "`{name}` ends before access {last} of {}, but the read of `memory.stat` at access {op}, after \
             {missed} misses, flushes: the simulated statistics get no later flush",
            run.ops
        )));
    }
    let times = flushes.iter().map(|flush| flush.before).chain([run.ops]).map(|op| playable.seconds_at(op));
    let mut before = 0.0;
    let gap = times.map(|at| (std::mem::replace(&mut before, at), at));
    let gap = gap.max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)));
    Ok(gap.filter(|(from, to)| to - from > UNFLUSHED_SECONDS).map(|(from, to)| {
        format!("`{name}` lists no flush from {from:.3} s to {to:.3} s, but the kernel's worker flushes every two seconds")
    }))
}

fn of_agings(playable: &Playable, youngest: Option<u64>) -> Option<String> {
    let agings = playable.inputs.agings.as_ref().filter(|agings| !agings.is_empty())?;
    let (name, ops) = (Input::Agings.field(), playable.run.ops);
    let named: u64 = agings.values().map(|walked| walked.len() as u64).sum();
    if let Some(counted) = youngest.map(|youngest| youngest.saturating_sub(FIRST_MAX_SEQ)) {
        let why = || {
            format!(
                "`{name}` lists {named} agings, but `lru_gen` counts {counted}: the simulator decides by rule which of the others walk page tables"
            )
        };
        return (named != counted).then(why);
    }
    let last = *agings.keys().next_back()?;
    let why = || {
        format!(
            "`{name}` ends with access {last} of {ops}: the simulator decides by rule which later agings walk page tables"
        )
    };
    is_early(last, ops).then(why)
}

fn of_mapped(playable: &Playable, faults: Option<Vec<bool>>) -> Option<String> {
    let mapped = playable.inputs.mapped.as_ref().filter(|mapped| !mapped.is_empty())?;
    let (name, ops) = (Input::MappedFile.field(), playable.run.ops);
    let is_of_mapping = |at: usize| {
        let object = &playable.objects[playable.sequence[at].object() as usize];
        matches!(object.kind, Kind::MappedReadahead(_))
    };
    let others = "these simulated faults map only the accessed page";
    if let Some(faults) = faults.filter(|faults| faults.contains(&true)) {
        let faulted = (0..faults.len()).filter(|&at| faults[at] && is_of_mapping(at));
        let lacking: Vec<usize> = faulted.filter(|&at| !mapped.contains_key(&(at as u64))).collect();
        let first = lacking.first()?;
        return Some(format!(
            "`{name}` has no line for {} accesses that faulted according to `misses_file`, first {first}: {others}",
            lacking.len()
        ));
    }
    let last = *mapped.keys().next_back()?;
    let why = || {
        format!(
            "`{name}` ends with access {last} of {ops}: later simulated faults map only the accessed page"
        )
    };
    is_early(last, ops).then(why)
}

/// Without a miss map the stream must cover each access, otherwise it is rejected. With a miss map it is a separate answer.
fn of_stream(playable: &Playable, answers: &Answers, answer: &Answer) -> anyhow::Result<Option<String>> {
    let is_told_by_access = playable.objects.len() == 1 && !playable.objects[0].is_read_ahead();
    if !is_told_by_access || !answer.has_both_maps() {
        return Ok(None);
    }
    let broken = answers.missed_by_stream(answer, &playable.sequence)?.err();
    Ok(broken.map(|error| format!("`page_cache_stream` does not cover all accesses: {error:#}")))
}

fn of_wakes(inputs: &Inputs, answer: &Answer) -> Option<String> {
    let wakes = inputs.trace_wakes.filter(|&wakes| wakes > 0)?;
    let runs = answer.vmstat_delta.get("pageoutrun").map_or(0, |&runs| runs.unsigned_abs());
    let why = || {
        format!(
            "`trace_file` has {wakes} `mm_vmscan_kswapd_wake`, but `pageoutrun` counts {runs} runs of \
             kswapd: other work of the kernel in the missing runs is not simulated"
        )
    };
    (runs > wakes + RUNS_AT_ENDS).then(why)
}

fn is_early(last: u64, ops: u64) -> bool {
    (last as f64) < END * ops as f64
}
