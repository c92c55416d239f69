use pageout_workload::rng::SplitMix64;

use super::state::{IOWAIT, MEMSTALL, NONIDLE, ON_CPU, RUNNABLE, STATES, state};
use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HZ: u32 = 250;
/// Two seconds and a tick.
const PERIOD: u64 = 2 * SECOND + 4 * MS;
const JOB: MemcgId = MemcgId(1);

const RUNS: Doing = Doing::RUNS;
const QUEUES: Doing = Doing::QUEUES;
const RECLAIMS: Doing = RUNS.stalled_if(true);
const ASLEEP: Doing = Doing::SLEEPS;
const STALLED: Doing = ASLEEP.stalled_if(true);
const READS: Doing = Doing::AWAITS_IO;
const REFAULTS: Doing = READS.stalled_if(true);

/// A machine with tasks in one group, each on the CPU of its place here.
fn psi(cpus: &[u16]) -> Psi {
    let mut psi = Psi::new(4, HZ);
    psi.group_add(JOB, Some(MemcgId::ROOT));
    for (&cpu, id) in cpus.iter().zip(0..) {
        psi.task_add(TaskId(id), JOB, CpuId(cpu));
    }
    psi
}

/// Reports a task's state from `at` on, at the time of the last report.
fn tell(psi: &mut Psi, at: Nanos, task: TaskId, cpu: CpuId, doing: Doing) {
    psi.tell(psi.now, at, task, cpu, doing);
}

/// What each does from then on, in milliseconds; the totals of memory after two seconds.
fn memory_after(cpus: &[u16], history: &[(u64, u32, Doing)]) -> [u64; 2] {
    let mut psi = psi(cpus);
    for &(at, task, doing) in history {
        psi.set_now(Nanos(at * MS));
        tell(&mut psi, Nanos(at * MS), TaskId(task), CpuId(cpus[task as usize]), doing);
    }
    psi.set_now(Nanos(2 * SECOND));
    let totals = psi.totals(JOB).unwrap()[Resource::Memory as usize];
    assert_eq!(psi.totals(MemcgId::ROOT).unwrap()[Resource::Memory as usize], totals);
    totals.map(|total| total.0 / MS)
}

#[test]
fn one_stalled_beside_one_running_on_the_same_cpu_is_some_and_never_full() {
    assert_eq!(memory_after(&[0, 0], &[(0, 0, RUNS), (0, 1, STALLED)]), [2000, 0]);
}

#[test]
fn one_stalled_beside_one_running_on_another_cpu_is_half_of_the_time_some_and_full() {
    assert_eq!(memory_after(&[0, 1], &[(0, 0, RUNS), (0, 1, STALLED)]), [1000, 1000]);
}

#[test]
fn a_cpu_weighs_as_much_as_it_was_not_idle() {
    // The example of [machine 4.3]: 2 s busy with 1 s stalled, plus half a second without stalls, are 0.8 s.
    let history = [(0, 0, RUNS), (0, 1, RUNS), (500, 1, ASLEEP), (1000, 0, STALLED)];
    assert_eq!(memory_after(&[0, 1], &history), [800, 800]);
}

#[test]
fn who_reclaims_on_a_cpu_stalls_all_that_wait_for_it() {
    assert_eq!(memory_after(&[0, 0], &[(0, 0, RECLAIMS), (0, 1, QUEUES)]), [2000, 2000]);
}

#[test]
fn who_waits_for_a_cpu_in_a_memstall_section_is_not_all_there_is() {
    let stalled = QUEUES.stalled_if(true);
    assert_eq!(memory_after(&[0, 0], &[(0, 0, RUNS), (0, 1, stalled)]), [2000, 0]);
}

#[test]
fn a_page_of_the_working_set_that_is_read_is_want_of_memory_and_of_io() {
    let mut psi = psi(&[0]);
    tell(&mut psi, Nanos(0), TaskId(0), CpuId(0), RUNS);
    tell(&mut psi, Nanos(100 * MS), TaskId(0), CpuId(0), REFAULTS);
    tell(&mut psi, Nanos(300 * MS), TaskId(0), CpuId(0), READS);
    psi.set_now(Nanos(SECOND));
    let of = |resource: Resource| psi.totals(JOB).unwrap()[resource as usize].map(|total| total.0 / MS);
    assert_eq!((of(Resource::Memory), of(Resource::Io), of(Resource::Cpu)), ([200, 200], [900, 900], [0, 0]));
}

#[test]
fn a_group_that_is_kept_from_its_cpu_is_full_and_the_machine_is_not() {
    let mut psi = psi(&[0]);
    psi.task_add(TaskId(1), MemcgId::ROOT, CpuId(0));
    tell(&mut psi, Nanos(0), TaskId(1), CpuId(0), RUNS);
    tell(&mut psi, Nanos(0), TaskId(0), CpuId(0), QUEUES);
    psi.set_now(Nanos(SECOND));
    let of = |group| psi.totals(group).unwrap()[Resource::Cpu as usize];
    assert_eq!((of(JOB), of(MemcgId::ROOT)), ([Nanos(SECOND); 2], [Nanos(SECOND), Nanos(0)]));
}

#[test]
fn averages_approach_the_share_as_exponentials_do() {
    // A quarter of each 100 ms is stalled, for four minutes.
    let mut psi = psi(&[0]);
    let mut read = Vec::new();
    for step in 0..2_400u64 {
        let at = step * 100 * MS;
        psi.set_now(Nanos(at));
        tell(&mut psi, Nanos(at), TaskId(0), CpuId(0), RUNS);
        tell(&mut psi, Nanos(at + 75 * MS), TaskId(0), CpuId(0), STALLED);
        if step % 300 == 299 {
            read.push((at, psi.text(JOB, Resource::Memory).unwrap()));
        }
    }
    for (at, text) in read {
        let some = text.lines().next().unwrap();
        for (name, horizon) in [("avg10=", 10.0), ("avg60=", 60.0), ("avg300=", 300.0)] {
            let average: f64 = some.split(name).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            let periods = (at / PERIOD) as f64;
            let expected = 25.0 * (1.0 - libm::exp(-2.0 * periods / horizon));
            // A share is fed in whole percents.
            assert!((average - expected).abs() < 1.0, "{name} after {at}: {average}, not {expected}");
        }
    }
}

#[test]
fn a_file_has_the_kernels_format_and_totals_as_of_the_last_collection() {
    let mut psi = psi(&[0]);
    tell(&mut psi, Nanos(0), TaskId(0), CpuId(0), STALLED);
    psi.set_now(Nanos(SECOND));
    let nothing =
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    assert_eq!(psi.text(JOB, Resource::Memory).unwrap(), nothing);
    psi.set_now(Nanos(PERIOD));
    // 100 * (2048 - 1677) / 2048 = 18.115...
    let line = "avg10=18.11 avg60=3.27 avg300=0.68 total=2004000";
    assert_eq!(psi.text(JOB, Resource::Memory).unwrap(), format!("some {line}\nfull {line}\n"));
    assert_eq!(psi.text(MemcgId(7), Resource::Memory), None);
}

#[test]
fn averages_fall_over_periods_that_were_missed() {
    let mut psi = psi(&[0]);
    tell(&mut psi, Nanos(0), TaskId(0), CpuId(0), STALLED);
    psi.set_now(Nanos(PERIOD));
    psi.text(JOB, Resource::Memory);
    tell(&mut psi, Nanos(PERIOD), TaskId(0), CpuId(0), ASLEEP);
    // No task wakes for 61 s: 29 periods are made up for together, and the last one is fed with nothing, too.
    psi.set_now(Nanos(31 * PERIOD));
    let text = psi.text(JOB, Resource::Memory).unwrap();
    let mut average = 37_099u64;
    (0..30).for_each(|_| average = average * 1677 / 2048);
    let expected = format!("some avg10=0.{:02} ", (average * 100) >> 11);
    assert!(text.starts_with(&expected), "{text} {expected}");
}

/// Pressure written a second time: what each task did when is a list, and every figure is computed from the lists.
mod reference {
    use super::*;

    /// What a task did from when on which CPU.
    pub(super) type List = Vec<(u64, u16, Doing)>;

    pub(super) struct History {
        /// By task: its group, and what it did.
        pub(super) tasks: Vec<(MemcgId, List)>,
        /// All times at which anything changes, in order.
        pub(super) times: Vec<u64>,
    }

    impl History {
        fn of_group(&self, group: MemcgId) -> impl Iterator<Item = &List> {
            self.tasks
                .iter()
                .filter(move |(of, _)| group == MemcgId::ROOT || *of == group)
                .map(|(_, list)| list)
        }

        /// What the tasks of a group do on a CPU at a time.
        fn doing(&self, group: MemcgId, cpu: u16, at: u64) -> Vec<Doing> {
            let current = |list: &List| {
                list.iter()
                    .rev()
                    .find(|(since, ..)| *since <= at)
                    .filter(|(_, on, _)| *on == cpu)
                    .map(|entry| entry.2)
            };
            self.of_group(group).filter_map(current).collect()
        }

        /// Time that a group spends in each state on a CPU between two moments.
        fn times(&self, group: MemcgId, cpu: u16, from: u64, to: u64) -> [u64; STATES + 1] {
            let mut sums = [0; STATES + 1];
            let inner = self.times.iter().copied().filter(|&at| from < at && at < to);
            let edges: Vec<u64> = std::iter::once(from).chain(inner).chain([to]).collect();
            for edge in edges.windows(2) {
                let doing = self.doing(group, cpu, edge[0]);
                let count = |is: fn(&Doing) -> bool| doing.iter().filter(|doing| is(doing)).count();
                let (running, stalled) = (count(|d| d.is(RUNNABLE)), count(|d| d.is(MEMSTALL)));
                let (waiting, on_cpu) = (count(|d| d.is(IOWAIT)), count(|d| d.is(ON_CPU)));
                let running_stalled = count(|d| d.is(RUNNABLE | MEMSTALL));
                let current_stalled = count(|d| d.is(ON_CPU | MEMSTALL)) > 0;
                let is = [
                    stalled > 0,
                    stalled > 0 && (running == running_stalled || current_stalled),
                    waiting > 0,
                    waiting > 0 && running == 0,
                    running > on_cpu,
                    running > 0 && on_cpu == 0 && group != MemcgId::ROOT,
                    waiting + stalled + running > 0,
                ];
                sums.iter_mut().zip(is).for_each(|(sum, is)| *sum += if is { edge[1] - edge[0] } else { 0 });
            }
            sums
        }

        /// When a group is collected until `end`.
        fn collections(&self, group: MemcgId, cpus: u16, end: u64) -> Vec<u64> {
            let mut collections = Vec::new();
            let mut last = 0;
            let wakes = |after: u64| {
                let all = self.of_group(group).flatten().filter(|entry| entry.2.is(RUNNABLE));
                all.map(|entry| entry.0).filter(|&at| at >= after).min()
            };
            let mut due = wakes(0).map(|at| at + PERIOD);
            while let Some(at) = due.filter(|&at| at <= end) {
                collections.push(at);
                let busy: u64 = (0..cpus).map(|cpu| self.times(group, cpu, last, at)[NONIDLE]).sum();
                last = at;
                due = if busy > 0 { Some(at + PERIOD) } else { wakes(at + 1).map(|at| at + PERIOD) };
            }
            collections
        }

        /// Totals of a group at the end.
        pub(super) fn totals(&self, group: MemcgId, cpus: u16, end: u64) -> [u64; STATES] {
            let mut totals = [0; STATES];
            let mut last = 0;
            for at in self.collections(group, cpus, end).into_iter().chain([end]) {
                let times: Vec<_> = (0..cpus).map(|cpu| self.times(group, cpu, last, at)).collect();
                let weights: Vec<u128> =
                    times.iter().map(|times| u128::from(times[NONIDLE] / (4 * MS))).collect();
                for (state, total) in totals.iter_mut().enumerate() {
                    let sum: u128 =
                        times.iter().zip(&weights).map(|(times, w)| u128::from(times[state]) * w).sum();
                    *total += (sum / weights.iter().sum::<u128>().max(1)) as u64;
                }
                last = at;
            }
            totals
        }
    }
}

#[test]
fn random_histories_add_up_to_what_lists_of_intervals_say() {
    const CPUS: u16 = 3;
    for seed in 0..30 {
        let mut rng = SplitMix64::new(seed);
        let mut psi = Psi::new(CPUS, HZ);
        psi.group_add(JOB, Some(MemcgId::ROOT));
        psi.group_add(MemcgId(2), Some(JOB));
        let groups = [JOB, MemcgId::ROOT, MemcgId(3)];
        psi.group_add(MemcgId(3), Some(MemcgId::ROOT));
        let mut history = reference::History { tasks: Vec::new(), times: Vec::new() };
        for id in 0..5u32 {
            let group = groups[id as usize % 3];
            psi.task_add(TaskId(id), group, CpuId(0));
            history.tasks.push((group, Vec::new()));
        }
        let mut now = 0;
        let mut on_cpu = [None; CPUS as usize];
        for _ in 0..60 {
            // Now and then nothing happens for longer than a period.
            now += 1 + if rng.below(12) == 0 { rng.below(7 * SECOND) } else { rng.below(400 * MS) };
            let task = rng.below(5) as u32;
            let cpu = rng.below(u64::from(CPUS)) as u16;
            on_cpu.iter_mut().filter(|current| **current == Some(task)).for_each(|current| *current = None);
            let free = on_cpu[usize::from(cpu)].is_none();
            let doing = [ASLEEP, STALLED, READS, REFAULTS, QUEUES, RUNS, RECLAIMS][rng.below(7) as usize];
            let doing = if free || !doing.is(ON_CPU) { doing } else { QUEUES.stalled_if(doing.is(MEMSTALL)) };
            if doing.is(ON_CPU) {
                on_cpu[usize::from(cpu)] = Some(task);
            }
            // Half of all changes are reported ahead of time.
            if rng.below(2) == 0 {
                psi.set_now(Nanos(now));
            }
            tell(&mut psi, Nanos(now), TaskId(task), CpuId(cpu), doing);
            history.tasks[task as usize].1.push((now, cpu, doing));
            history.times.push(now);
        }
        let end = now + rng.below(3 * SECOND);
        psi.set_now(Nanos(end));
        for group in [MemcgId::ROOT, JOB, MemcgId(3)] {
            let expected = history.totals(group, CPUS, end);
            for resource in Resource::ALL {
                let of = |full| Nanos(expected[state(resource, full)]);
                let totals = psi.totals(group).unwrap()[resource as usize];
                assert_eq!(totals, [of(false), of(true)], "seed {seed}, group {group:?}, {resource:?}");
            }
        }
    }
}

#[test]
fn what_is_told_between_two_readings_counts_in_its_order_however_much_it_is() {
    let (mut psi, mut at_once) = (psi(&[0]), psi(&[0]));
    for change in 0..3 * LOT as u64 + 1 {
        let (now, doing) = (Nanos(change * MS), [RUNS, REFAULTS, READS][change as usize % 3]);
        for psi in [&mut psi, &mut at_once] {
            psi.tell(now, now + Nanos(MS / 2), TaskId(0), CpuId(0), doing);
        }
        at_once.set_now(now);
    }
    for psi in [&mut psi, &mut at_once] {
        psi.set_now(Nanos(SECOND));
    }
    assert_eq!(psi.totals(JOB), at_once.totals(JOB));
    assert!(psi.totals(JOB).unwrap()[Resource::Memory as usize][0] >= Nanos(60 * MS));
}
