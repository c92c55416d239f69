//! Simulated counters compared with real ones, with a verdict from the run's class.
//!
//! A class with `phases` is an envelope. Inputs that the recording leaves open differ from simulation to simulation (`rig`). Every
//! real counter must lie inside the span of the simulations, widened by the span of the kernel's own repeats. The median
//! simulation (by misses) must agree with the run as well as the repeats do. Its misses, refaults and stolen pages must lie
//! within the class's fraction of the repeats' span.

mod balancing; // figures of memory tiering
mod compressed; // figures of pages that are compressed on their way to swap
mod dirtied; // figures of pages of files that are written
mod machine; // figures of a whole machine
mod median; // several simulations, judged like one

use pageout_workload::Access;
use serde::Serialize;

use super::account::Account;
use super::answers::{Answer, Answers, MissMap, REMOVED};
use super::class::{Class, Envelope, Limits, Same, Single, Tolerances};
use super::difference::Difference;
use super::reads;
use super::recording::Run;
use super::rig::{Played, Unplayable};

/// A run's comparison.
#[derive(Debug, Serialize)]
pub struct Judged {
    /// The run, by its id.
    pub run: String,
    /// The class that it is judged by; of a run that was not replayed, none.
    pub class: Option<String>,
    /// The reason why it could not be replayed.
    pub not_played: Option<String>,
    /// The unmodelled mechanisms that it needs.
    pub skipped: Option<String>,
    /// A field of its answer that is empty, so that no comparison is possible.
    pub blank: Option<&'static str>,
    /// Simulations made of it.
    pub simulations: usize,
    /// Its figures, side by side.
    pub rows: Vec<Row>,
    /// The state of its inputs, if it was replayed.
    pub inputs: Account,
    /// The first difference between simulation and kernel, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<Difference>,
}

/// A figure of a run: recorded, simulated, and its limit.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The name.
    pub name: &'static str,
    /// The figure of the median simulation where there are several.
    pub simulated: f64,
    /// Minimum and maximum of several simulations.
    pub envelope: Option<[f64; 2]>,
    /// The kernel's figure.
    pub real: f64,
    /// The limits of the simulated figure (or, of an envelope, of the real one).
    pub limit: Option<[f64; 2]>,
    /// `None` where the class doesn't judge it.
    pub passes: Option<bool>,
    /// It is a share of 1, rather than a count.
    #[serde(skip)]
    pub is_share: bool,
}

impl Row {
    fn not_judged(self) -> Row {
        Row { limit: None, passes: None, ..self }
    }
}

/// What kind of figure, as the classes group them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Misses,
    Activity,
    /// What goes to swap and comes from there; judged where pages are compressed on the way, too.
    Swapped,
    /// Rotations, judged by a limit of their own.
    Rotated,
    /// Figures of dirty pages of files; judged if the class has limits for them.
    Dirtied,
    /// Judged by the exact class and by envelopes only.
    Other,
    /// Shown only: what other groups and programs have is counted in it, too.
    Gauge,
}

/// The counters compared: the key counters of the recordings. What the classes call refaults, scanned and stolen pages are
/// those of both types together; how they divide is judged by the exact class and by envelopes.
const COUNTERS: &[(&str, Group)] = &[
    (SCANNED, Group::Misses),
    (STOLEN, Group::Misses),
    (REFAULTS, Group::Misses),
    ("pgscan_anon", Group::Other),
    ("pgscan_file", Group::Other),
    ("pgsteal_anon", Group::Other),
    ("pgsteal_file", Group::Other),
    ("pgrefill", Group::Activity),
    ("pgactivate", Group::Activity),
    ("pgdeactivate", Group::Activity),
    ("pgrotated", Group::Rotated),
    ("workingset_refault_anon", Group::Other),
    ("workingset_refault_file", Group::Other),
    ("workingset_activate_anon", Group::Other),
    ("workingset_activate_file", Group::Other),
    ("workingset_restore_anon", Group::Activity),
    ("workingset_restore_file", Group::Activity),
    ("pgmajfault", Group::Other),
    ("pswpin", Group::Swapped),
    ("pswpout", Group::Swapped),
    ("zswpin", Group::Swapped),
    ("zswpout", Group::Swapped),
    ("zswpwb", Group::Swapped),
    ("slabs_scanned", Group::Gauge),
    ("nr_vmscan_write", Group::Other),
    (IMMEDIATE, Group::Dirtied),
    ("nr_dirtied", Group::Dirtied),
    ("nr_written", Group::Dirtied),
    ("nr_anon_pages", Group::Gauge),
    ("nr_mapped", Group::Gauge),
    ("nr_file_pages", Group::Gauge),
    ("nr_swapcached", Group::Gauge),
    ("workingset_nodes", Group::Gauge),
];

/// Counted in `memory.stat` only. Its last reading lags by up to this number of events.
const MEMORY_STAT_ONLY: &[&str] = &["pgrefill"];
const MEMORY_STAT_LAG: f64 = 64.0;

/// Sums over both types.
const SUMS: &[(&str, [&str; 2])] = &[
    (SCANNED, ["pgscan_anon", "pgscan_file"]),
    (STOLEN, ["pgsteal_anon", "pgsteal_file"]),
    (REFAULTS, ["workingset_refault_anon", "workingset_refault_file"]),
];

/// Rows of `lru_gen` from the youngest: anonymous pages, file pages, age in milliseconds.
const GENERATIONS: &[[&str; 3]] = &[
    ["youngest anon", "youngest file", "youngest age"],
    ["2nd youngest anon", "2nd youngest file", "2nd youngest age"],
    ["3rd youngest anon", "3rd youngest file", "3rd youngest age"],
    ["4th youngest anon", "4th youngest file", "4th youngest age"],
];

/// Dirty pages that reclaim met, and wants rotated when they are written.
const IMMEDIATE: &str = "nr_vmscan_immediate_reclaim";
const SCANNED: &str = "scanned";
const STOLEN: &str = "stolen";
const REFAULTS: &str = "refaults";
const MISSED: &str = "missed";
const DISAGREEMENT: &str = "disagreement";
const AGREEMENT: &str = "agreement";
const INSERTIONS: &str = "accesses with other insertions";
const REQUESTS: &str = "accesses with other requests";
const VICTIMS: &str = "victims that differ";
/// Insertions and removals in the recorded order, from the first on.
const STREAM: &str = "stream alike up to";

impl Judged {
    pub(crate) fn not_played(run: &Run, reason: &Unplayable) -> Judged {
        let (not_played, skipped) = match reason {
            Unplayable::Missing(_) => (None, Some(reason.to_string())),
            Unplayable::Bad(_) => (Some(reason.to_string()), None),
        };
        Judged {
            run: run.id.clone(),
            class: None,
            not_played,
            skipped,
            blank: None,
            simulations: 0,
            rows: Vec::new(),
            inputs: Account::default(),
            first_difference: None,
        }
    }

    fn is_played(&self) -> bool {
        self.not_played.is_none() && self.skipped.is_none()
    }

    /// Returns true if it was replayed, and every figure that its class judges is within its limit.
    pub fn passes(&self) -> bool {
        self.is_played() && self.rows.iter().all(|row| row.passes != Some(false))
    }

    /// Returns true if it was replayed, and a figure is beyond its limit.
    pub fn falls_short(&self) -> bool {
        self.is_played() && !self.passes()
    }

    /// Checks what a comparison satisfies. Errors: the first that is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let run = &self.run;
        if self.not_played.is_some() && self.skipped.is_some() {
            return Err(format!("{run} is both skipped and not simulated"));
        }
        if self.is_played() != (self.simulations > 0) || self.is_played() != self.class.is_some() {
            return Err(format!("{run}: only simulated runs have simulations and a class"));
        }
        if let Some(row) = self.rows.iter().find(|row| row.passes.is_some() && row.limit.is_none()) {
            return Err(format!("{run}: `{}` has a verdict without a limit", row.name));
        }
        if let Some(row) = self.rows.iter().find(|row| row.envelope.is_some_and(|[least, most]| least > most))
        {
            return Err(format!("{run}: `{}` has a minimum above its maximum", row.name));
        }
        Ok(())
    }
}

/// Compares the simulations of a run with what the kernel did.
pub(crate) fn judge(
    run: &Run,
    class: &Class,
    tolerances: &Tolerances,
    played: &[Played],
    answers: &Answers,
) -> anyhow::Result<Judged> {
    let answer = answers.of(&run.id);
    // Which accesses of a run of memory tiering faulted depends on its scans to the millisecond.
    let is_of_balancing = matches!(class.limits, Limits::Tiering(_));
    let real_map = if is_of_balancing { None } else { answers.misses(answer, &played[0])? };
    let comparison = Comparison { floor: tolerances.floor, played, answer, answers, real_map };
    let mut rows = match &class.limits {
        Limits::Tiering(limits) => comparison.balancing(limits),
        Limits::Machine(limits) => comparison.machine(limits)?,
        Limits::Compressed(limits) => comparison.compressed(limits)?,
        Limits::Dirtied(limits) => comparison.dirtied(limits)?,
        Limits::Envelope(limits) => comparison.envelope(limits)?,
        Limits::Single(limits) => comparison.single(limits, median_of(played).1)?,
    };
    let blank = answer.blank(comparison.real_map.as_ref());
    if blank.is_some() {
        // An envelope widened by such a repeat would let it pass.
        rows.iter_mut().filter(|row| row.passes.is_some()).for_each(|row| row.passes = Some(false));
    }
    let (run, class, simulations) = (run.id.clone(), Some(class.name.clone()), played.len());
    Ok(Judged {
        run,
        class,
        not_played: None,
        skipped: None,
        blank,
        simulations,
        rows,
        inputs: Account::default(),
        first_difference: None,
    })
}

/// The median simulation, by misses, and its number; mostly there is but one.
pub(super) fn median_of(played: &[Played]) -> (usize, &Played) {
    let mut order: Vec<(usize, &Played)> = played.iter().enumerate().collect();
    order.sort_by_key(|(_, played)| played.missed.iter().filter(|&&missed| missed).count());
    order[order.len() / 2]
}

/// Simulated misses as the recording would have seen them: a map of blocks read knows nothing of a hole at page 0.
pub(super) fn comparable_misses(played: &Played, real: Option<&MissMap>) -> MissMap {
    let is_hole = |access: &Access| access.page() == 0 && played.hole == Some(access.object());
    // The first access to a page always misses; if no block was read for it, there is none. But what was written has one.
    let first = played.sequence.iter().position(is_hole);
    let first = first.filter(|&at| !played.sequence[at].is_write());
    let is_unseen = first.zip(real).is_some_and(|(first, real)| !real[first]);
    let accesses = played.missed.iter().zip(played.sequence.iter());
    accesses.map(|(&missed, access)| missed && !(is_unseen && is_hole(access))).collect()
}

struct Comparison<'a> {
    floor: f64,
    played: &'a [Played],
    answer: &'a Answer,
    answers: &'a Answers,
    real_map: Option<MissMap>,
}

impl Single {
    /// The limit on the counters of a group.
    fn fraction(&self, group: Group) -> Option<f64> {
        match group {
            Group::Misses => self.misses,
            Group::Activity => self.activity,
            Group::Swapped => self.swapped,
            Group::Rotated => self.rotated,
            Group::Dirtied => self.dirtied,
            Group::Other => self.others,
            Group::Gauge => None,
        }
    }
}

impl Comparison<'_> {
    /// The generations at the end, from the youngest: numbers and pages have to be the same where the class is exact. Ages are
    /// shown only, as the time of an access is interpolated.
    fn generations(&self, played: &Played, is_exact: bool) -> Vec<Row> {
        let real = self.answers.generations(self.answer);
        let (Some(oldest), Some(youngest)) = (real.first(), real.last()) else { return Vec::new() };
        let row = |name, simulated: u64, real: u64, is_judged: bool| Row {
            name,
            simulated: simulated as f64,
            envelope: None,
            real: real as f64,
            limit: is_judged.then_some([real as f64; 2]),
            passes: is_judged.then_some(simulated == real),
            is_share: false,
        };
        let simulated = |seq: u64| played.generations.iter().find(|one| one.seq == seq);
        let numbers = played.generations.first().zip(played.generations.last());
        let (first, last) = numbers.map_or((0, 0), |(first, last)| (first.seq, last.seq));
        let mut rows = vec![
            row("lru_gen oldest", first, oldest.seq, is_exact),
            row("lru_gen youngest", last, youngest.seq, is_exact),
        ];
        for (names, real) in GENERATIONS.iter().zip(real.iter().rev()) {
            let (anon, file, age) =
                simulated(real.seq).map_or((0, 0, 0), |one| (one.anon, one.file, one.age_ms));
            rows.push(row(names[0], anon, real.anon, is_exact));
            rows.push(row(names[1], file, real.file, is_exact));
            rows.push(row(names[2], age, real.age_ms, false));
        }
        rows
    }

    /// One simulation: each figure within its fraction of the real one.
    fn single(&self, limits: &Single, played: &Played) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        if let Some(real) = &self.real_map {
            let simulated = self.comparable_misses(played);
            rows.push(self.within(MISSED, misses(&simulated), misses(real), limits.misses, 0.0));
            let differing = differing(&simulated, real) as f64;
            let allowed = limits.disagreement.map(|share| (share * real.len() as f64).max(self.floor));
            rows.push(Row {
                name: DISAGREEMENT,
                simulated: differing / real.len() as f64,
                envelope: None,
                real: 0.0,
                limit: allowed.map(|allowed| [0.0, allowed / real.len() as f64]),
                passes: allowed.map(|allowed| differing <= allowed),
                is_share: true,
            });
        }
        for &(name, group) in COUNTERS {
            let (simulated, real) = (counter(played, name), self.real_counter(self.answer, name));
            if simulated != 0.0 || real != 0.0 {
                rows.push(self.within(name, simulated, real, limits.fraction(group), lag(name)));
            }
        }
        rows.extend(self.generations(played, limits.is_exact()));
        if limits.victims == Some(Same::Same)
            && let Some(real) = self.answers.stream(self.answer)?
        {
            let differing = differing_victims(&played.stream, &real) as f64;
            rows.push(Row {
                name: VICTIMS,
                simulated: differing,
                envelope: None,
                real: 0.0,
                limit: Some([0.0, 0.0]),
                passes: Some(differing == 0.0),
                is_share: false,
            });
        }
        if let Some(real) = self.answers.reads(self.answer)? {
            let judged = [
                (INSERTIONS, limits.insertions, reads::differing_insertions(&played.reads, &real)),
                (REQUESTS, limits.requests, reads::differing_requests(&played.reads, &real)),
            ];
            for (name, limit, differing) in judged {
                rows.push(Row {
                    name,
                    simulated: differing as f64,
                    envelope: None,
                    real: 0.0,
                    limit: limit.map(|Same::Same| [0.0, 0.0]),
                    passes: limit.map(|Same::Same| differing == 0),
                    is_share: false,
                });
            }
        }
        if let Some(real) = self.answers.stream(self.answer)? {
            let (simulated, real) = (up_to_last_added(&played.stream), up_to_last_added(&real));
            let alike = simulated.iter().zip(real).take_while(|(a, b)| a == b).count();
            rows.push(self.within(STREAM, alike as f64, real.len() as f64, None, 0.0));
        }
        Ok(rows)
    }

    fn within(&self, name: &'static str, simulated: f64, real: f64, fraction: Option<f64>, lag: f64) -> Row {
        let allowed = fraction.map(|fraction| (real * fraction).max(self.floor).max(lag));
        Row {
            name,
            simulated,
            envelope: None,
            real,
            limit: allowed.map(|allowed| [real - allowed, real + allowed]),
            passes: allowed.map(|allowed| (simulated - real).abs() <= allowed),
            is_share: false,
        }
    }

    /// Many simulations: the real figures inside their envelope, widened by the kernel's own range; the median close.
    fn envelope(&self, limits: &Envelope) -> anyhow::Result<Vec<Row>> {
        let maps: Vec<MissMap> = self.played.iter().map(|played| self.comparable_misses(played)).collect();
        let missed: Vec<f64> = maps.iter().map(misses).collect();
        let mut order: Vec<usize> = (0..missed.len()).collect();
        order.sort_by(|&a, &b| missed[a].total_cmp(&missed[b]));
        let median = order[order.len() / 2];

        let mut rows = Vec::new();
        if let Some(real) = &self.real_map {
            let repeats = self.repeats(|_, map| map.map(misses))?;
            rows.push(self.enclosed(MISSED, &missed, median, misses(real), repeats, limits.misses));
            rows.push(self.agreement(&maps, real, limits.agreement_slack)?);
        }
        for &(name, group) in COUNTERS {
            let simulated: Vec<f64> = self.played.iter().map(|played| counter(played, name)).collect();
            let real = self.real_counter(self.answer, name);
            if real != 0.0 || simulated.iter().any(|&count| count != 0.0) {
                let repeats = self.repeats(|answer, _| Some(self.real_counter(answer, name)))?;
                // For scanned pages only the envelope is checked.
                let close = limits.misses.filter(|_| group == Group::Misses && name != SCANNED);
                let row = self.enclosed(name, &simulated, median, real, repeats, close);
                let is_shown = matches!(group, Group::Gauge | Group::Dirtied);
                rows.push(if is_shown { row.not_judged() } else { row });
            }
        }
        rows.extend(self.generations(&self.played[median], false));
        Ok(rows)
    }

    /// `close`: the median simulation must also be within this fraction of what the kernel's repeats span. (Within
    /// that fraction of each repeat is more than can be asked: the repeats themselves lie further apart than that.)
    fn enclosed(
        &self,
        name: &'static str,
        simulated: &[f64],
        median: usize,
        real: f64,
        repeats: [f64; 2],
        close: Option<f64>,
    ) -> Row {
        let [least, largest] = span(simulated.iter().copied());
        let room = (repeats[1] - repeats[0]).max(self.floor).max(lag(name));
        let limit = [least - room, largest + room];
        let mut passes = (limit[0]..=limit[1]).contains(&real);
        if let Some(fraction) = close {
            let room = (real * fraction).max(self.floor);
            passes &= (repeats[0] - room..=repeats[1] + room).contains(&simulated[median]);
        }
        Row {
            name,
            simulated: simulated[median],
            envelope: Some([least, largest]),
            real,
            limit: Some(limit),
            passes: Some(passes),
            is_share: false,
        }
    }

    /// The share of accesses with the same outcome, and that of the kernel's repeats with each other.
    fn agreement(&self, maps: &[MissMap], real: &MissMap, slack: Option<f64>) -> anyhow::Result<Row> {
        let share = |a: &MissMap, b: &MissMap| 1.0 - differing(a, b) as f64 / a.len() as f64;
        let mut shares: Vec<f64> = maps.iter().map(|map| share(map, real)).collect();
        shares.sort_by(f64::total_cmp);
        let mut repeats = Vec::new();
        for repeat in self.answers.repeats(self.answer) {
            if repeat.id != self.answer.id {
                repeats.extend(self.answers.misses(repeat, &self.played[0])?);
            }
        }
        let with_repeats: Vec<f64> = repeats.iter().map(|repeat| share(repeat, real)).collect();
        let kernel = with_repeats.iter().sum::<f64>() / with_repeats.len().max(1) as f64;
        let least = slack.filter(|_| !with_repeats.is_empty()).map(|slack| kernel - slack);
        let median = shares[shares.len() / 2];
        Ok(Row {
            name: AGREEMENT,
            simulated: median,
            envelope: Some([shares[0], shares[shares.len() - 1]]),
            real: if with_repeats.is_empty() { f64::NAN } else { kernel },
            limit: least.map(|least| [least, 1.0]),
            passes: least.map(|least| median >= least),
            is_share: true,
        })
    }

    /// What the kernel's repeats of this run span, itself included.
    fn repeats(&self, of: impl Fn(&Answer, Option<&MissMap>) -> Option<f64>) -> anyhow::Result<[f64; 2]> {
        let mut values = Vec::new();
        for repeat in self.answers.repeats(self.answer) {
            let map = self.answers.misses(repeat, &self.played[0])?;
            values.extend(of(repeat, map.as_ref()));
        }
        // A run recorded once, with a trace, has no repeats: it stands for itself.
        if values.is_empty() {
            let map = self.answers.misses(self.answer, &self.played[0])?;
            values.extend(of(self.answer, map.as_ref()));
        }
        Ok(span(values.into_iter()))
    }

    fn comparable_misses(&self, played: &Played) -> MissMap {
        comparable_misses(played, self.real_map.as_ref())
    }

    fn real_counter(&self, answer: &Answer, name: &str) -> f64 {
        if let Some((_, parts)) = SUMS.iter().find(|(sum, _)| *sum == name) {
            return parts.iter().map(|part| self.real_counter(answer, part)).sum();
        }
        let places = if MEMORY_STAT_ONLY.contains(&name) {
            [&answer.memcg_delta, &answer.vmstat_delta]
        } else {
            [&answer.vmstat_delta, &answer.memcg_delta]
        };
        places.iter().find_map(|place| place.get(name)).copied().unwrap_or(0) as f64
    }
}

fn span(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, largest], value| {
        [least.min(value), largest.max(value)]
    })
}

/// The group of a counter; of what is none of them, none.
fn group_of(name: &str) -> Option<Group> {
    COUNTERS.iter().find(|(known, _)| *known == name).map(|&(_, group)| group)
}

fn lag(name: &str) -> f64 {
    if MEMORY_STAT_ONLY.contains(&name) { MEMORY_STAT_LAG } else { 0.0 }
}

fn counter(played: &Played, name: &str) -> f64 {
    if let Some((_, parts)) = SUMS.iter().find(|(sum, _)| *sum == name) {
        return parts.iter().map(|part| counter(played, part)).sum();
    }
    let place = if MEMORY_STAT_ONLY.contains(&name) { &played.memcg } else { &played.vmstat };
    place.iter().find(|(known, _)| *known == name).expect("the counters compared exist").1 as f64
}

fn misses(map: &MissMap) -> f64 {
    map.iter().filter(|&&missed| missed).count() as f64
}

fn differing(a: &MissMap, b: &MissMap) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// An eviction after the last insertion may be later than the end of the recording.
fn up_to_last_added(stream: &[u32]) -> &[u32] {
    &stream[..stream.iter().rposition(|word| word & REMOVED == 0).map_or(0, |at| at + 1)]
}

/// Compared up to the last insertion.
fn differing_victims(simulated: &[u32], real: &[u32]) -> usize {
    let (simulated, real) = (up_to_last_added(simulated), up_to_last_added(real));
    let pairs = simulated.iter().zip(real).filter(|(a, b)| a != b).count();
    pairs + simulated.len().abs_diff(real.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_after_the_last_insertion_are_not_compared() {
        let real = [1, 2, 1 | REMOVED, 3, 2 | REMOVED];
        assert_eq!(differing_victims(&[1, 2, 1 | REMOVED, 3], &real), 0);
        assert_eq!(differing_victims(&[1, 2, 2 | REMOVED, 3, 1 | REMOVED], &real), 1);
        assert_eq!(differing_victims(&[1, 2], &real), 2);
    }
}
