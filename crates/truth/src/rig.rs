//! A recording, replayed to the simulator: each recorded run becomes the machine that its README describes.
//!
//! Memory of the recording machine other than the objects is declared here by kind of run. It is the same for all runs of a kind. Each
//! class of recordings has its file, which lists the assumptions.

mod balancing; // runs of memory tiering
mod base_pages; // what a group holds besides the objects
mod start_state; // a whole machine as a snapshot found it
mod group; // runs of one group, by the recorded clock
mod machine; // runs of a whole machine
mod readahead; // runs with readahead, call by call
mod access; // accesses outside any machine
mod snapshot; // counters at a moment
mod stage; // the engine before the first access
mod writers; // runs that write to files

use std::fmt;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use pageout_engine::{
    Config, Engine, FlushRule, GenerationInfo, Nanos, ObjectId, PROFILES, PageName, Parameter, Policy,
    StoryEvent, StoryFilter, parameters_of,
};
use pageout_sim::Stall;
use pageout_study::Watcher;
use pageout_workload as workload;

pub(crate) use self::access::transfer_of;
use self::stage::Stage;
use super::account::Account;
use super::inputs::Inputs;
use super::missing;
use super::object::{Kind, Object};
use super::reads::Reads;
use super::recording::{BasePage, Recording, Run, Window};
use super::story::Story;

/// What the simulator made of a run.
pub(crate) struct Played {
    /// Changes of counters while the sequence ran: `/proc/vmstat`, and where it has none the group's live one.
    pub(crate) vmstat: Vec<(&'static str, i64)>,
    pub(crate) memcg: Vec<(&'static str, i64)>,
    /// By access of the sequence.
    pub(crate) missed: Vec<bool>,
    /// What entered and left the page cache of the run's last file, which in traced runs is the only one.
    pub(crate) stream: Vec<u32>,
    /// By access of the sequence, what it brought into the page cache; of runs that are replayed call by call.
    pub(crate) reads: Vec<Reads>,
    /// The group's generations after the process has ended, oldest first.
    pub(crate) generations: Vec<GenerationInfo>,
    /// The sequence it replayed.
    pub(crate) sequence: Arc<[workload::Access]>,
    /// The object whose file may have a hole at page 0: reading it misses, but needs no block.
    pub(crate) hole: Option<u32>,
    /// By object, whether it is written in whole pages by write(2).
    pub(crate) whole_writes: Vec<bool>,
    /// What is known of a whole machine.
    pub(crate) machine: Option<OfMachine>,
    /// How many pages more the fast node holds at the end of a run of memory tiering.
    pub(crate) moved_to_fast_node: Option<i64>,
}

impl Played {
    /// An access writes a whole page, so that nothing of it has to be read.
    pub(crate) fn is_written_whole(&self, access: &workload::Access) -> bool {
        access.is_write() && self.whole_writes.get(access.object() as usize).copied().unwrap_or(false)
    }
}

/// What only a whole machine has.
pub(crate) struct OfMachine {
    /// Free pages at the end of each window.
    pub(crate) free: Vec<u64>,
    /// Time lost because of a shortage of memory, I/O and CPUs.
    pub(crate) pressure: [Stall; 3],
    /// By access of the second program's sequence, as far as it came before the first one ended.
    pub(crate) missed_by_second: Option<Vec<bool>>,
}

/// Why a run could not be replayed.
#[derive(Debug)]
pub(crate) enum Unplayable {
    /// The run needs mechanisms that are not modelled.
    Missing(Vec<String>),
    /// What was recorded of it makes no sense, or the simulator came to no end with it.
    Bad(anyhow::Error),
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unplayable::Missing(mechanisms) => write!(f, "not modelled: {}", mechanisms.join(", ")),
            Unplayable::Bad(error) => f.write_str(&pageout_study::told(error.as_ref())),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Unplayable {
    fn from(error: E) -> Unplayable {
        Unplayable::Bad(error.into())
    }
}

/// What a recording leaves open. Each simulation of an envelope supposes something else, spread evenly over what can be.
#[derive(Clone, Copy)]
pub(crate) struct Unrecorded {
    /// From 0.
    pub(crate) simulation: usize,
    pub(crate) simulations: usize,
}

impl Unrecorded {
    /// When the statistics worker ran first: it counts from the boot.
    fn flush_phase(self, period: Nanos) -> Nanos {
        Nanos(period.0 * self.simulation as u64 / self.simulations as u64)
    }

    /// How many of a hundred races the disk wins against the rest of the batch in whose middle it was given a full plug:
    /// from none to all.
    fn writes_won(self) -> u8 {
        (100 * self.simulation / (self.simulations - 1).max(1)) as u8
    }

    /// Pages that zswap begins to write back while the disk writes one: where the disk was a file in memory and the CPU emulated, a
    /// few. A write that ends before its page is on a list does not rotate it. Fitted (see `group`).
    fn writes_behind(self) -> u64 {
        6 + self.simulation as u64 % 4
    }

    /// Folios of other groups in the CPU's add batch, as earlier programs left it. The steps are wide so that this and the
    /// flush phase, which creeps, go through all combinations of early and late.
    fn queued_folios(self, capacity: usize) -> u64 {
        const STEP: usize = 7;
        (self.simulation * STEP % capacity) as u64
    }

    /// Times that follow each other as recorded, but whose first one is open: what happens here does not happen as often.
    fn turned(self, times: &[Nanos]) -> Vec<Nanos> {
        let mut turned = times.to_vec();
        turned.rotate_left(times.len() * self.simulation / self.simulations);
        turned
    }

    /// Seed of the interruptions of reclaim by other threads, where it is open whether there were any; 0 for none.
    fn interruptions(self, run: &Run) -> u32 {
        if self.simulations > 1 && run.swap == "zram" { self.simulation as u32 + 1 } else { 0 }
    }
}

/// A page that is followed up to an access.
struct Told {
    page: PageName,
    title: String,
    /// The engine's story of it.
    events: Vec<StoryEvent>,
    /// The last access that is replayed.
    until: u64,
    /// The result.
    story: Option<Story>,
}

impl Told {
    /// Accesses that are replayed.
    fn accesses(told: Option<&mut Told>, sequence: &Arc<[workload::Access]>) -> Arc<[workload::Access]> {
        told.map_or_else(|| sequence.clone(), |told| sequence[..=told.until as usize].into())
    }

    fn filter(&self) -> StoryFilter {
        StoryFilter::Pages([self.page].into())
    }

    /// The last access is over.
    fn end(&mut self, engine: &Engine, policy: &str, now: Nanos) {
        self.story = Some(Story {
            page: self.page,
            title: self.title.clone(),
            events: std::mem::take(&mut self.events),
            now: engine.figures().page_state(self.page),
            groups: engine.figures().memcgs().collect(),
            policy: policy.to_string(),
            accesses: self.until + 1,
            end: now,
        });
    }
}

/// A run that can be replayed, as often as is asked.
pub(crate) struct Playable<'a> {
    pub(super) run: &'a Run,
    pub(super) objects: Vec<Object>,
    /// The kernel's rules, and the parameters that are others in it than by default.
    policy: Policy,
    parameters: Vec<(&'static str, &'static str)>,
    pub(super) sequence: Arc<[workload::Access]>,
    second: Option<(Vec<Object>, Arc<[workload::Access]>)>,
    /// Memory of the group other than the objects, if known.
    base_pages: Option<&'a [BasePage]>,
    pub(super) inputs: Inputs<'a>,
    account: Account,
}

impl<'a> Playable<'a> {
    /// Reads what a run accesses, if everything that it needs is modelled.
    pub(crate) fn new(
        recording: &'a Recording,
        run: &'a Run,
        watcher: &dyn Watcher,
    ) -> Result<Playable<'a>, Unplayable> {
        if run.objects.is_empty() {
            return Err(anyhow!("the run has no objects").into());
        }
        let parse = |texts: &[String]| {
            texts.iter().map(|text| Object::parse(text)).collect::<anyhow::Result<Vec<Object>>>()
        };
        let objects = parse(&run.objects)?;
        let mut missing = missing::mechanisms(run, &objects);
        let second = run.second.as_ref().map(|second| parse(&second.objects)).transpose()?;
        missing.extend(second.iter().flat_map(|objects| missing::mechanisms(run, objects)));
        missing.dedup();
        if !missing.is_empty() {
            return Err(Unplayable::Missing(missing));
        }
        let (policy, parameters) = kernel_of(run)?;
        let read = |objects: &[Object], sequence: &str, ops| {
            let sequence = recording.sequence(&run.id, sequence, ops)?;
            check_sequence(objects, &sequence)?;
            match missing::mechanisms_of_accesses(run, objects, &sequence) {
                Some(missing) => Err(Unplayable::Missing(vec![missing.to_string()])),
                None => Ok(sequence),
            }
        };
        let sequence = read(&objects, &run.sequence, run.ops / run.loops())?;
        let second = match run.second.as_ref().zip(second) {
            Some((second, objects)) => {
                let sequence = read(&objects, &second.sequence, second.ops)?;
                Some((objects, sequence))
            }
            None => None,
        };
        let mut inputs = Inputs::read(recording, run, &objects, &sequence)?;
        if policy.group.reclaim.stat_flush == FlushRule::Updates {
            // Passes flush by themselves there, twice a call: that is a rule, and no input.
            inputs.flushes = None;
        }
        if !objects.iter().any(Object::is_read_ahead) {
            let unheard = [("agings", inputs.agings.is_some()), ("mapped_file", inputs.mapped.is_some())];
            for (input, _) in unheard.into_iter().filter(|&(_, is_there)| is_there) {
                watcher.remark(&format!(
                    "{}: `{input}` is ignored, because only runs with readahead use it",
                    run.id
                ));
            }
        }
        let base_pages = recording.base_pages(run);
        let account = Account::of(recording, run, &policy, &objects, &inputs);
        Ok(Playable { run, objects, policy, parameters, sequence, second, base_pages, inputs, account })
    }

    /// What became of its inputs.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    pub(crate) fn play(&self, unrecorded: Unrecorded) -> Result<Played, Unplayable> {
        if self.run.is_of_balancing() {
            return balancing::perform(self, unrecorded);
        }
        if self.run.is_of_machine() {
            return machine::perform(self, unrecorded);
        }
        let stage = Stage::build(self, unrecorded)?;
        if self.is_read_ahead() {
            stage.perform_calls(self, unrecorded, None)
        } else {
            stage.perform(self, unrecorded, None)
        }
    }

    /// What happens to a page of an object up to an access, that one included.
    pub(crate) fn story(
        &self,
        unrecorded: Unrecorded,
        object: u32,
        page: u64,
        access: u64,
    ) -> Result<Option<Story>, Unplayable> {
        let stage = Stage::build(self, unrecorded)?;
        let name = stage.engine.figures().page_name(stage.task, ObjectId(stage.first + object), page)?;
        let title = format!("Page {page}");
        let mut told = Told { page: name, title, events: Vec::new(), until: access, story: None };
        if self.is_read_ahead() {
            stage.perform_calls(self, unrecorded, Some(&mut told))?;
        } else {
            stage.perform(self, unrecorded, Some(&mut told))?;
        }
        Ok(told.story)
    }

    /// A kernel of the run's version, as it is by default.
    fn config(&self) -> Config {
        let mut config = Config { policy: self.policy, ..Config::default() };
        for &(name, value) in &self.parameters {
            let is_set = Parameter::by_name(name).is_some_and(|parameter| parameter.set(&mut config, value));
            assert!(is_set, "{name} takes {value}, as its eras say");
        }
        config
    }

    fn is_read_ahead(&self) -> bool {
        self.objects.iter().any(Object::is_read_ahead)
    }

    /// When some accesses begin, the first one and the end among them: as recorded by access, or by window. Between two of them time
    /// passes evenly.
    fn clock(&self) -> Vec<(u64, Nanos)> {
        let point = |window: &Window| (window.op, Nanos((window.t * 1e9) as u64));
        match &self.inputs.times {
            Some(times) if !self.dirties_files() => {
                let mut points: Vec<(u64, Nanos)> = (0..).zip(times.iter().copied()).collect();
                let last = points.last().map_or(Nanos::ZERO, |&(_, at)| at);
                points.extend(self.run.windows.last().map(point).map(|(op, at)| (op, at.max(last))));
                points
            }
            _ => std::iter::once((0, Nanos::ZERO)).chain(self.run.windows.iter().map(point)).collect(),
        }
    }

    /// Seconds from the first access to another one, or to the end.
    pub(super) fn seconds_at(&self, access: u64) -> f64 {
        let clock = self.clock();
        let after = clock.partition_point(|&(op, _)| op < access).clamp(1, clock.len() - 1);
        let ((first, from), (end, to)) = (clock[after - 1], clock[after]);
        let share = (access - first) as f64 / (end - first).max(1) as f64;
        (from.0 as f64 + (to.0 - from.0) as f64 * share.min(1.0)) / 1e9
    }

    fn whole_writes(&self) -> Vec<bool> {
        self.objects.iter().map(|object| object.kind == Kind::Read).collect()
    }

    /// Returns true if the run writes to files, whose pages are written back.
    fn dirties_files(&self) -> bool {
        let is_of_file = |access: &workload::Access| self.objects[access.object() as usize].is_regular_file();
        self.sequence.iter().any(|access| access.is_write() && is_of_file(access))
    }
}

fn check_sequence(objects: &[Object], sequence: &[workload::Access]) -> anyhow::Result<()> {
    for (number, access) in sequence.iter().enumerate() {
        match objects.get(access.object() as usize) {
            None => {
                bail!(
                    "access {number} is to object {}, but the run has {} objects",
                    access.object(),
                    objects.len()
                )
            }
            Some(object) if access.page() >= object.units() => {
                bail!("access {number} is to page {}, which is outside of {}", access.page(), object.text)
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The rules and parameters of a profile by its name, or of the kernel's version: `mglru` of 6.12.117 is `mglru@6.12.117`. An unreleased
/// version, such as 6.12.117-1, is treated as the newest of its series.
fn kernel_of(run: &Run) -> anyhow::Result<(Policy, Vec<(&'static str, &'static str)>)> {
    let by_name = |name: &str| Some((Policy::by_name(name)?, parameters_of(name)));
    if let Some(kernel) = by_name(&run.policy) {
        return Ok(kernel);
    }
    let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
    let known = known.join(", ");
    let Some(kernel) = &run.kernel else {
        bail!(
            "missing `kernel`, the version of `{}`; add it, or use a profile as `policy`: {known}",
            run.policy
        );
    };
    let era: Vec<&str> = kernel.split('.').take(2).collect();
    let name = format!("{}@{}", run.policy, era.join("."));
    by_name(&format!("{}@{kernel}", run.policy)).or_else(|| by_name(&name)).ok_or_else(|| {
        anyhow!("unknown profile `{name}`; set `policy` to the profile to compare with: {known}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn run(change: serde_json::Value) -> Run {
        let mut run = serde_json::json!({
            "id": "w.mglru.1", "workload": "w", "policy": "mglru", "rep": "1", "sequence": "s", "limit_pages": 100,
            "objects": [], "swap": "none", "swappiness": 60, "cmdline": "", "mem_total_kb": 4096, "cpus": 1,
            "ops": 1, "windows": [],
        });
        run.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn only_simulations_of_an_envelope_with_synchronous_swap_are_interrupted() {
        let seed = |swap: &str, simulation, simulations| {
            let run = run(serde_json::json!({ "swap": swap }));
            Unrecorded { simulation, simulations }.interruptions(&run)
        };
        assert_eq!(
            [seed("disk", 0, 16), seed("disk", 15, 16), seed("none", 3, 16), seed("zram", 0, 1)],
            [0; 4]
        );
        // Zero would be none, and two alike would be the same simulation twice.
        assert_eq!([seed("zram", 0, 16), seed("zram", 15, 16)], [1, 16]);
    }
}
