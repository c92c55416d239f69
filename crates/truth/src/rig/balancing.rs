//! A run of memory tiering by NUMA balancing. The machine has a fast node with the CPUs, and a slow one. The program's memory is on the
//! slow node at its first access. [tiering-zswap-6.12 3.8, 3.10]
//!
//! - **Memory.** Two nodes, the second of 256 MiB. So much is free that nothing is reclaimed.
//! - **Clock.** Each window lasts as long as it was recorded. Faults and scans take what they take on an emulated processor, and the rest of
//!   the window goes evenly to its accesses. How much of each window faults take is known from a first round in which they take nothing.
//!   The program is the only one that runs, so its CPU time passes with the clock.
//! - **Mappings.** The object lies between the program's own: data, bss and heap below, stack and vdso above. Scans pass these by until
//!   their turn comes, and the object waits for that. A buffer whose protection changes all the time is new to each scan and left out.
//! - **Left open:** the phase of the first access in the program's periods of CPU time; the hot threshold at that time, which rises by one
//!   step per minute of uptime, and the recorded runs followed each other; and the part of a window that faults took. All of them vary over
//!   the simulations.

use std::sync::Arc;

use anyhow::anyhow;
use pageout_engine::{
    ADISTANCE_DAX_KMEM, Access, Advice, Config, CpuId, Engine, Layout, MemcgId, MemoryType, MmId, Nanos,
    NodeId, ObjectId, Op, PAGE_SIZE, Stat, TaskId,
};
use pageout_sim::cost::Costs;

use super::super::object::{Kind, Object};
use super::super::recording::Window;
use super::access::{serve, serve_step};
use super::snapshot::Snapshot;
use super::{Playable, Played, Unplayable, Unrecorded};

/// The slow node: 256 MiB.
const SLOW_PAGES: u64 = 65_536;
const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);
/// Free on both nodes before the first access.
const FREE_PAGES: u64 = 99_500;
/// The program's own mappings, of some pages each: data, bss and heap, then stack and vdso.
const BELOW: usize = 3;
const ABOVE: usize = 2;
const OWN_PAGES: u64 = 2;
/// Steps by which the threshold had risen, at most: the minutes that the recorded runs took.
const STEPS: usize = 5;

/// How many times slower than `qemu-tcg` the emulator was, at most, with the load of its host.
const SLOWNESS: usize = 4;

const SECOND: u64 = Nanos::SECOND.0;

pub(super) fn perform(playable: &Playable, unrecorded: Unrecorded) -> Result<Played, Unplayable> {
    let nothing = vec![0; playable.run.windows.len()];
    let (_, held_up) = round(playable, unrecorded, nothing)?;
    Ok(round(playable, unrecorded, held_up)?.0)
}

/// Simulates the run, with these durations of faults and scans in its windows. Returns their measured durations.
fn round(
    playable: &Playable,
    unrecorded: Unrecorded,
    held_up: Vec<u64>,
) -> Result<(Played, Vec<u64>), Unplayable> {
    let Playable { run, objects, sequence, .. } = playable;
    let [object] = &objects[..] else {
        return Err(
            anyhow!("found another number of objects, expected one for a run of NUMA balancing").into()
        );
    };
    if object.kind != Kind::Anon {
        return Err(
            anyhow!("object {}: only anonymous memory can start on the slow node", object.text).into()
        );
    }
    let mut stage = Stage {
        engine: Engine::new(config(playable))?,
        costs: Costs::qemu_tcg().scaled(1 + (unrecorded.simulation % SLOWNESS) as u64, 1),
        now: Nanos::ZERO,
    };
    let (task, id) = stage.start_program(object)?;
    let filler = stage.fill_fast_node()?;
    stage.raise_threshold(unrecorded.simulation % STEPS)?;
    for page in 0..object.pages {
        serve(&mut stage.engine, task, Access::new(id, page, true))?;
    }
    stage.engine.process_exit(filler);
    let free: u64 = stage.engine.figures().zones().map(|zone| zone.free).sum();
    stage.engine.hold_kernel_memory(free.saturating_sub(FREE_PAGES))?;

    let before = Snapshot::take(&stage.engine, MemcgId::ROOT);
    let on_fast_node = stage.engine.figures().node_stat(FAST, Stat::NrAnonPages);
    let used = Nanos(SECOND * unrecorded.simulation as u64 / unrecorded.simulations as u64);
    let mut clock = Clock::new(&run.windows, stage.now, held_up);
    let accesses: Vec<Access> =
        sequence.iter().map(|access| Access::new(id, access.page(), access.is_write())).collect();
    for time in 0..run.loops() {
        stage.play(task, &accesses, &mut clock, time * accesses.len() as u64, used)?;
    }
    let after = Snapshot::take(&stage.engine, MemcgId::ROOT);
    let moved = stage.engine.figures().node_stat(FAST, Stat::NrAnonPages) - on_fast_node;
    let played = Played {
        vmstat: before.to(&after, |snapshot| &snapshot.vmstat),
        memcg: before.to(&after, |snapshot| &snapshot.memcg),
        missed: Vec::new(),
        stream: Vec::new(),
        reads: Vec::new(),
        generations: Vec::new(),
        sequence: Arc::clone(sequence),
        hole: None,
        whole_writes: playable.whole_writes(),
        machine: None,
        moved_to_fast_node: Some(moved),
    };
    Ok((played, clock.held_up))
}

fn config(playable: &Playable) -> Config {
    let run = playable.run;
    let managed = run.mem_total_kb.saturating_mul(1024) / PAGE_SIZE;
    let layout = Layout {
        zone_dma: true,
        memory_types: vec![MemoryType::Dram, MemoryType::Adistance(ADISTANCE_DAX_KMEM)],
        ..Layout::default()
    };
    Config {
        node_pages: vec![managed.saturating_sub(SLOW_PAGES).max(1), SLOW_PAGES],
        layout,
        cpus: run.cpus,
        hz: run.hz,
        swappiness: run.swappiness,
        numa_balancing: 2,
        ..playable.config()
    }
}

struct Stage {
    engine: Engine,
    costs: Costs,
    now: Nanos,
}

impl Stage {
    /// The program's own memory is on the fast node, that of its object is laid out and not there yet.
    fn start_program(&mut self, object: &Object) -> Result<(TaskId, ObjectId), Unplayable> {
        let mm = self.engine.process_create(MemcgId::ROOT);
        let task = self.engine.task_create(mm, CpuId(0));
        let mut own = Vec::new();
        let mut id = ObjectId(0);
        for at in 0..=BELOW + ABOVE {
            if at == BELOW {
                id = self.engine.map_anon(task, object.pages, Advice::Normal)?;
            } else {
                own.push(self.engine.map_anon(task, OWN_PAGES, Advice::Normal)?);
            }
        }
        for mapping in own {
            for page in 0..OWN_PAGES {
                serve(&mut self.engine, task, Access::new(mapping, page, true))?;
            }
        }
        Ok((task, id))
    }

    /// Foreign memory, so that later allocations use the slow node.
    fn fill_fast_node(&mut self) -> Result<MmId, Unplayable> {
        let mm = self.engine.process_create(MemcgId::ROOT);
        let task = self.engine.task_create(mm, CpuId(0));
        let pages = self.engine.figures().zones().map(|zone| zone.managed).sum::<u64>();
        let memory = self.engine.map_anon(task, pages, Advice::Normal)?;
        let mut page = 0;
        while self.engine.figures().node_stat(SLOW, Stat::NrAnonPages) == 0 {
            serve(&mut self.engine, task, Access::new(memory, page, true))?;
            page += 1;
        }
        Ok(mm)
    }

    /// Minutes go by, in each of which a page of slow memory is used that is not hot.
    fn raise_threshold(&mut self, steps: usize) -> Result<(), Unplayable> {
        let mm = self.engine.process_create(MemcgId::ROOT);
        let task = self.engine.task_create(mm, CpuId(0));
        let memory = self.engine.map_anon(task, 1, Advice::Normal)?;
        serve(&mut self.engine, task, Access::new(memory, 0, true))?;
        for _ in 0..steps {
            self.pass(61 * SECOND);
            let marked = self.engine.figures().vmstat(Stat::NumaPteUpdates);
            while self.engine.figures().vmstat(Stat::NumaPteUpdates) == marked {
                self.pass(SECOND);
                self.engine.scan_tick(task, self.now);
            }
            self.pass(2 * SECOND);
            serve(&mut self.engine, task, Access::new(memory, 0, false))?;
        }
        self.engine.process_exit(mm);
        Ok(())
    }

    fn pass(&mut self, span: u64) {
        self.advance(self.now + Nanos(span));
    }

    fn advance(&mut self, to: Nanos) {
        self.now = self.now.max(to);
        self.engine.set_now(self.now);
    }

    /// Replays a sequence whose first access is the `first` of the run's. The program had used so much CPU time before that.
    fn play(
        &mut self,
        task: TaskId,
        accesses: &[Access],
        clock: &mut Clock,
        first: u64,
        used: Nanos,
    ) -> Result<(), Unplayable> {
        let tick = Nanos::from_ticks(1, self.engine.figures().hz()).0;
        let mut next = 0;
        while next < accesses.len() {
            clock.reach(first + next as u64);
            let due = self.engine.scan_due(task).map_or(u64::MAX / 2, |due| due.0);
            let at = (due + 1).saturating_sub(used.0).next_multiple_of(tick);
            let tick_at = Nanos(clock.start.0 + at);
            let until =
                clock.accesses_before(tick_at).saturating_sub(first).min(accesses.len() as u64) as usize;
            if until <= next {
                self.advance(tick_at);
                clock.hold_up(self.scan(task, Nanos(used.0 + at)));
                continue;
            }
            next += self.engine.run_hits(task, &accesses[next..until], |access| access);
            if next < until {
                self.advance(clock.time_of(first + next as u64));
                clock.hold_up(self.fault(task, accesses[next])?);
                next += 1;
            }
        }
        Ok(())
    }

    /// Simulates an access that is not a hit. Returns its duration.
    fn fault(&mut self, task: TaskId, access: Access) -> Result<u64, Unplayable> {
        let begun = self.costs.price(self.engine.work());
        let step = self.engine.start(task, access);
        let mut moved = 0;
        serve_step(&mut self.engine, task, step, |op| {
            moved += if let Op::Copy { pages, .. } = *op { u64::from(pages) } else { 0 };
        })?;
        let worked = self.costs.price(self.engine.work()).0 - begun.0;
        Ok(worked + moved * self.costs.migrate)
    }

    /// A tick at which a scan may be due; returns how long it takes.
    fn scan(&mut self, task: TaskId, runtime: Nanos) -> u64 {
        let begun = self.costs.price(self.engine.work());
        if !self.engine.scan_tick(task, runtime) {
            return 0;
        }
        let tick = Nanos::from_ticks(1, self.engine.figures().hz()).0;
        let took = self.costs.price(self.engine.work()).0 - begun.0;
        self.engine.scan_took(task, Nanos(took / tick * tick));
        took
    }
}

/// The recorded clock.
struct Clock {
    start: Nanos,
    /// Accesses and nanoseconds from the start, rising: the beginnings of windows, and the end of the last.
    points: Vec<(u64, u64)>,
    /// By window, how long the program is expected to be held up.
    expected: Vec<u64>,
    /// How long it was.
    held_up: Vec<u64>,
    /// The current window.
    window: usize,
}

impl Clock {
    fn new(windows: &[Window], start: Nanos, expected: Vec<u64>) -> Clock {
        let ends = windows.iter().map(|window| (window.op, (window.t * 1e9) as u64));
        let points = std::iter::once((0, 0)).chain(ends).collect();
        Clock { start, points, held_up: vec![0; expected.len()], expected, window: 0 }
    }

    /// The next access is this one.
    fn reach(&mut self, access: u64) {
        while self.window + 1 < self.held_up.len() && self.points[self.window + 1].0 <= access {
            self.window += 1;
        }
    }

    fn hold_up(&mut self, span: u64) {
        self.held_up[self.window] += span;
    }

    /// The current window: its first access and start time, the number of its accesses, and their total duration without delays.
    fn line(&self) -> (u64, u64, u128, u128) {
        let [(op, time), (end, end_time)] = [self.points[self.window], self.points[self.window + 1]];
        let span = (end_time - time).saturating_sub(self.expected[self.window]).max(1);
        // In the first round faults of a window may take no time: then there is no delay either.
        let held_up = if self.expected[self.window] > 0 { self.held_up[self.window] } else { 0 };
        (op, time + held_up, u128::from((end - op).max(1)), u128::from(span))
    }

    fn time_of(&self, access: u64) -> Nanos {
        let (first, time, accesses, span) = self.line();
        Nanos(self.start.0 + time + (span * u128::from(access - first) / accesses) as u64)
    }

    /// The number of accesses that begin before a time, none of them beyond the current window.
    fn accesses_before(&self, when: Nanos) -> u64 {
        let (first, time, accesses, span) = self.line();
        let since = u128::from(when.0.saturating_sub(self.start.0).saturating_sub(time));
        first + (accesses * since).div_ceil(span).min(accesses) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(op: u64, t: f64) -> Window {
        Window { op, t }
    }

    #[test]
    fn the_clock_goes_evenly_between_two_windows() {
        let mut clock = Clock::new(&[window(10, 1.0), window(30, 2.0)], Nanos(SECOND), vec![0; 2]);
        let mut time_of = |access| {
            clock.reach(access);
            let time = clock.time_of(access);
            let reached = [clock.accesses_before(time), clock.accesses_before(Nanos(time.0 + 1000))];
            (time.0 / (SECOND / 100), reached)
        };
        assert_eq!(time_of(0), (100, [0, 1]));
        assert_eq!(time_of(5), (150, [5, 6]));
        assert_eq!(time_of(10), (200, [10, 11]));
        assert_eq!(time_of(29), (295, [29, 30]));
    }

    #[test]
    fn what_holds_accesses_up_is_taken_from_the_others_of_its_window() {
        let mut clock = Clock::new(&[window(10, 1.0), window(20, 2.0)], Nanos::ZERO, vec![SECOND / 2, 0]);
        assert_eq!(clock.time_of(5), Nanos(SECOND / 4));
        clock.hold_up(SECOND / 2);
        assert_eq!(clock.time_of(5), Nanos(3 * SECOND / 4));
        clock.reach(10);
        assert_eq!(clock.time_of(10), Nanos(SECOND));
    }
}
