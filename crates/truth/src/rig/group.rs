//! A run of one group, replayed by the recorded clock.
//!
//! - **Clock.** An access happens at the time interpolated between the recorded windows. Work costs nothing and the disk is
//!   infinitely fast, so time passes only between accesses. Timing decides when statistics are flushed, and those times are
//!   inputs. A swap write ends between two rounds of the reclaim call that started it, if not earlier. So it did on the recording
//!   machine: its CPU was emulated and slow, and its disk was a file in memory.
//! - **Races with the disk.** When a plug is full in the middle of a batch, the disk may write it before the emulated CPU is through
//!   with the batch. How often it wins varies from none to all over the simulations of an envelope: the recorded repeats differ by
//!   a factor of four.
//! - **Interruptions.** MGLRU skips an address space that has not had the CPU since its last walk. Two agings within one reclaim call show
//!   that, unless another thread ran in between. If swap is synchronous, compression gives the scheduler time for it, and the recorded
//!   repeats did both. In an envelope a hash of the numbers of the simulation and of the skip decides on each possible skip. With swap on a
//!   disk, and in a single simulation, no other thread ever runs.
//! - **zswap.** A page that is written back is on no list until its write ends or its batch is drained. The duration of its write was not
//!   recorded. This input is fitted: the disk writes a page while six to nine more are begun, spread over the simulations. It was chosen to
//!   meet one recorded figure, the rotations under the classic LRU (3788 of 15940 writebacks). This figure is therefore not evidence. All
//!   three recorded runs pass with that range; a wider range was not tested. Pages compress to 2213 bytes each, the mean of the recorded
//!   pools.
//! - **The end.** `lru_gen` was read when the process had ended: its mappings are gone, and so are the pages of its program. On
//!   its way out it took a few pages more. Runs that end 1, 9 or 11 pages below their limit show one more batch of reclaim than the
//!   last `memory.stat`; those that end 13 or 24 below show none. Thirteen pages do that, as do twelve.

use pageout_engine::{Access, Advice, Bdi, FileId, Nanos, NodeId, PageCacheEvent, Served, StoryEvent};
use pageout_sim::cost::Costs;
use pageout_sim::device::{DeviceSpec, IoScheduler, Latency};
use pageout_sim::{Machine, MachineSpec, Observer, Pace, TaskSpec};
use pageout_workload as workload;

use super::super::answers::REMOVED;
use super::super::script::Script;
use super::access::serve;
use super::snapshot::Snapshot;
use super::stage::Stage;
use super::{Playable, Played, Told, Unplayable, Unrecorded, writers};

const GROUP_PATH: &str = "/job";
const STAT_FILE: &str = "/sys/fs/cgroup/job/memory.stat";

/// The clock of a replay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// The recorded one.
    Recorded,
    /// None: the accesses are made one after the other.
    #[cfg(test)]
    None,
}

impl Stage {
    pub(super) fn perform(
        self,
        playable: &Playable,
        unrecorded: Unrecorded,
        told: Option<&mut Told>,
    ) -> Result<Played, Unplayable> {
        self.perform_by(Clock::Recorded, playable, unrecorded, told)
    }

    fn perform_by(
        self,
        clock: Clock,
        playable: &Playable,
        unrecorded: Unrecorded,
        mut told: Option<&mut Told>,
    ) -> Result<Played, Unplayable> {
        let run = playable.run;
        let sequence = &Told::accesses(told.as_deref_mut(), &playable.sequence);
        let (group, process, task, program) = (self.group, self.process, self.task, self.program);
        let program_pages = self.program_pages;
        let script = Script::new(sequence, self.first, self.flags, |access| self.flag_of(access));
        let times = playable.clock().into_iter().map(|(access, at)| (script.start_of(access), at));
        let mut points: Vec<(u64, Nanos)> = times.collect();
        points.dedup_by_key(|&mut (index, _)| index);

        let (mut costs, mut disk) = (Costs::free(), instant_disk());
        if run.zswap != 0 {
            costs.decompress = 1;
            // Nothing of it is hidden behind the transfer.
            disk.latency_covers = 0;
            disk.write = Latency::Constant(Nanos(unrecorded.writes_behind()));
        }
        let mut spec = MachineSpec { costs, devices: vec![disk], ..MachineSpec::default() };
        if let Some(period) = self.engine.stat_flush_period() {
            spec.stat_flush_phase = unrecorded.flush_phase(period);
        }
        spec.files = self.files.iter().map(|&file| (file, 0)).collect();
        if run.swap == "disk" {
            spec.swaps = self.swap.into_iter().map(|swap| (swap, 0)).collect();
        }
        let dirties = playable.dirties_files();
        if dirties {
            spec.costs = writers::costs();
        }
        let before = Snapshot::take(&self.engine, self.group);
        let stream = script.stream();
        let source = Box::new(move |_| Ok(Box::new(stream.clone()) as Box<dyn workload::AccessStream>));
        let mut player = TaskSpec::new(self.task, &run.workload, GROUP_PATH, self.channels, source);
        if dirties {
            player.think_time = writers::pace(run);
            points = writers::window_starts(&points);
        }
        if clock == Clock::Recorded {
            player.pace = Pace::Timetable(points);
        }
        add_flushes(&mut player, playable, &script, sequence.len() as u64);
        let mut machine = Machine::new(self.engine, spec)?;
        machine.record_page_cache_events();
        if let Some(told) = &told {
            machine.tell_story(told.filter());
        }
        machine.task_add(player)?;
        let mut watcher = Watcher {
            missed: vec![false; script.len()],
            file: *self.files.last().expect("there are base pages"),
            stream: Vec::new(),
            told,
        };
        match clock {
            Clock::Recorded => machine.run(&mut watcher)?,
            #[cfg(test)]
            Clock::None => machine.run_untimed(&mut watcher)?,
        };
        let Watcher { missed, stream, told, .. } = watcher;
        if let Some(told) = told {
            told.end(machine.engine(), &run.policy, machine.report().end);
        }
        let after = Snapshot::take(machine.engine(), group);
        let engine = machine.engine_mut();
        if run.exit_pages > 0 {
            let last = engine.map_anon(task, run.exit_pages, Advice::Normal)?;
            for page in 0..run.exit_pages {
                serve(engine, task, Access::new(last, page, true))?;
            }
        }
        engine.process_exit(process);
        if program_pages > 0 {
            engine.fadvise_dontneed(task, program, 0..program_pages)?;
        }
        let generations = engine.figures().lru_gen(group, NodeId(0));
        Ok(Played {
            vmstat: before.to(&after, |snapshot| &snapshot.vmstat),
            memcg: before.to(&after, |snapshot| &snapshot.memcg),
            missed: script.fold(&missed),
            stream,
            reads: Vec::new(),
            generations,
            sequence: sequence.clone(),
            hole: self.hole,
            whole_writes: playable.whole_writes(),
            machine: None,
            moved_to_fast_node: None,
        })
    }

    fn flag_of(&self, access: &workload::Access) -> Option<u64> {
        self.first_flags[access.object() as usize].map(|first| first + access.page())
    }
}

/// Has a program's statistics flushed as recorded, or read where the program reads them.
fn add_flushes(player: &mut TaskSpec, playable: &Playable, script: &Script, accesses: u64) {
    match playable.inputs.flushes {
        Some(flushes) => {
            player.flush_before = flushes.iter().map(|flush| script.start_of(flush.before)).collect();
        }
        // The program reads its group's memory.stat at the end of each window.
        None => {
            let reads = playable.run.windows.iter().filter(|window| window.op < accesses);
            player.stat_reads_at =
                reads.map(|window| (script.start_of(window.op), STAT_FILE.to_string())).collect();
        }
    }
}

/// Notes what missed and what came and went.
struct Watcher<'a> {
    missed: Vec<bool>,
    file: FileId,
    stream: Vec<u32>,
    told: Option<&'a mut Told>,
}

impl Observer for Watcher<'_> {
    fn story(&mut self, event: &StoryEvent) {
        if let Some(told) = &mut self.told {
            told.events.push(event.clone());
        }
    }

    fn access(&mut self, _task: usize, index: u64, served: &Served) {
        if matches!(served, Served::Major(_)) {
            self.missed[index as usize] = true;
        }
    }

    fn page_cache(&mut self, _now: Nanos, event: PageCacheEvent) {
        if event.file == self.file {
            self.stream.push(event.page as u32 | if event.removed { REMOVED } else { 0 });
        }
    }
}

/// A request that ends immediately.
pub(super) fn instant_disk() -> DeviceSpec {
    DeviceSpec {
        name: "disk".to_string(),
        read: Latency::Constant(Nanos::ZERO),
        write: Latency::Constant(Nanos::ZERO),
        sequential: None,
        seek: None,
        tail: None,
        read_bandwidth: u64::MAX,
        write_bandwidth: u64::MAX,
        iops_max: None,
        queue_depth: u32::MAX,
        nr_requests: u32::MAX,
        scheduler: IoScheduler::None,
        request_pages_max: Bdi::NO_READAHEAD.io_pages,
        latency_covers: u64::MAX,
        faults: Vec::new(),
        remote_completions: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::recording::Recording;
    use super::*;

    /// These recordings say before which accesses statistics were flushed, so nothing in them goes by time.
    #[test]
    fn recorded_reads_of_files_count_the_same_without_a_clock() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ground-truth");
        let recording = Recording::open(dir.as_ref(), &[], &()).unwrap();
        let mut played = BTreeSet::new();
        for run in recording.select(&[]).unwrap() {
            let reads_files = run.objects.iter().all(|object| object.ends_with(":/mnt/f"));
            let Ok(playable) = Playable::new(&recording, run, &()) else { continue };
            let goes_by_time = !reads_files || playable.inputs.flushes.is_none();
            let kind = run.objects.join(" ");
            if goes_by_time || !played.insert((run.sequence.clone(), run.policy.clone(), kind)) {
                continue;
            }
            let unrecorded = Unrecorded { simulation: 3, simulations: 16 };
            let [timed, untimed] = [Clock::Recorded, Clock::None].map(|clock| {
                let stage = Stage::build(&playable, unrecorded).ok().unwrap();
                stage.perform_by(clock, &playable, unrecorded, None).ok().unwrap()
            });
            // Free pages that a CPU holds back return to the node by time, and thresholds are shares of the free ones.
            let is_counted = |(name, _): &(&str, i64)| {
                !["nr_free_pages", "nr_dirty_"].iter().any(|of| name.starts_with(of))
            };
            let counted = |played: &Played| {
                let vmstat: Vec<_> = played.vmstat.iter().copied().filter(is_counted).collect();
                (vmstat, played.memcg.clone())
            };
            assert_eq!(counted(&timed), counted(&untimed), "{}", run.id);
            let order = |played: &Played| (played.missed.clone(), played.stream.clone());
            assert!(order(&timed) == order(&untimed), "{}: other pages miss", run.id);
            assert!(untimed.missed.contains(&true), "{}", run.id);
        }
        assert!(played.len() >= 6, "{played:?}");
    }
}
