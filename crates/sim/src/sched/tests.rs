use super::*;

const CPU: CpuId = CpuId(0);
const SLICE: u64 = 3_000_000;
/// A task's action between two checks for preemption.
const STEP: u64 = 100_000;

fn scheduler(cpus: u16) -> Scheduler {
    Scheduler::new(cpus, SchedRules { timeslice: Nanos(SLICE), wakeup_granularity: Nanos(1_000_000) })
}

fn pinned(cpu: u16, nice: i8) -> Placement {
    Placement { cpu: CpuId(cpu), allowed: CpuRow::single(CpuId(cpu)), nice, rt_priority: 0 }
}

fn anywhere(cpus: u16) -> Placement {
    Placement { cpu: CPU, allowed: (CPU..CpuId(cpus)).into(), nice: 0, rt_priority: 0 }
}

/// CPU time of each of some hogs after `until`: tasks that never sleep.
fn hogs(cpus: u16, placements: &[Placement], until: u64) -> Vec<u64> {
    let mut sched = scheduler(cpus);
    let mut ran = vec![0; placements.len()];
    let mut running = vec![None; usize::from(cpus)];
    for (&placement, id) in placements.iter().zip(0..) {
        sched.add(TaskId(id), placement);
        if let Turn::Now(cpu) = sched.ready(TaskId(id), Nanos(0)) {
            running[usize::from(cpu.0)] = Some(TaskId(id));
        }
    }
    for now in (STEP..=until).step_by(STEP as usize) {
        for task in running.iter().flatten() {
            ran[task.0 as usize] += STEP;
        }
        for cpu in 0..cpus {
            let at = usize::from(cpu);
            if running[at].is_some() && sched.is_yielding(CpuId(cpu), Nanos(now)) {
                let last = running[at].expect("it is yielding");
                let Rotated { next, leaves } = sched.rotate(CpuId(cpu), Nanos(now));
                running[at] = Some(next);
                if leaves && let Turn::Now(home) = sched.ready(last, Nanos(now)) {
                    running[usize::from(home.0)] = Some(last);
                }
            }
        }
    }
    ran
}

/// Shares of the available time, in percent.
fn shares(ran: &[u64], until: u64) -> Vec<f64> {
    ran.iter().map(|&ran| ran as f64 * 100.0 / until as f64).collect()
}

#[test]
fn the_longest_waiting_of_equals_is_next() {
    let mut sched = scheduler(1);
    (0..3).for_each(|id| sched.add(TaskId(id), pinned(0, 0)));
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.ready(TaskId(1), Nanos(0)), Turn::Waits(CPU));
    assert_eq!(sched.ready(TaskId(2), Nanos(0)), Turn::Waits(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(10)), Some(TaskId(1)));
    assert_eq!(sched.ready(TaskId(1), Nanos(10)), Turn::Now(CPU));
    assert_eq!((sched.pass_on(CPU, Nanos(20)), sched.pass_on(CPU, Nanos(30))), (Some(TaskId(2)), None));
    assert_eq!(sched.switches(), 2);
}

#[test]
fn a_slice_ends_only_when_someone_waits() {
    let mut sched = scheduler(1);
    (0..2).for_each(|id| sched.add(TaskId(id), pinned(0, 0)));
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert!(!sched.is_yielding(CPU, Nanos(10 * SLICE)));
    assert_eq!(sched.ready(TaskId(1), Nanos(0)), Turn::Waits(CPU));
    assert!(!sched.is_yielding(CPU, Nanos(SLICE - 1)) && sched.is_yielding(CPU, Nanos(SLICE)));
    assert_eq!(sched.rotate(CPU, Nanos(SLICE)), Rotated { next: TaskId(1), leaves: false });
}

#[test]
fn equal_hogs_share_their_cpu_equally() {
    for count in [2, 3, 7] {
        let until = SLICE * 420;
        let ran = hogs(1, &vec![pinned(0, 0); count], until);
        assert!(ran.iter().all(|&ran| ran == until / count as u64), "{ran:?}");
    }
}

#[test]
fn hogs_share_their_cpu_by_the_weights_of_their_nice_values() {
    for (nice, percent) in [(1, 4.0 / 9.0), (5, 24.7 / 100.0), (-5, 75.3 / 100.0), (19, 1.44 / 100.0)] {
        let until = SLICE * 10_000;
        let ran = hogs(1, &[pinned(0, 0), pinned(0, nice)], until);
        let share = ran[1] as f64 / until as f64;
        assert!((share - percent).abs() < 0.005, "nice {nice}: {share}");
    }
}

#[test]
fn three_hogs_on_two_cpus_get_two_thirds_each() {
    let until = SLICE * 3_000;
    let shares = shares(&hogs(2, &[anywhere(2); 3], until), until);
    assert!(shares.iter().all(|share| (share - 200.0 / 3.0).abs() < 1.0), "{shares:?}");
}

#[test]
fn as_many_hogs_as_cpus_are_alone_each() {
    let until = SLICE * 10;
    assert_eq!(hogs(4, &[anywhere(4); 4], until), [until; 4]);
}

#[test]
fn a_hog_that_may_migrate_leaves_a_cpu_to_one_that_may_not() {
    let until = SLICE * 10;
    assert_eq!(hogs(2, &[anywhere(2), pinned(0, 0)], until), [until, until - SLICE]);
}

#[test]
fn a_sleeper_that_wakes_preempts_a_hog_at_the_end_of_its_step() {
    let mut sched = scheduler(1);
    (0..2).for_each(|id| sched.add(TaskId(id), pinned(0, 0)));
    let (sleeper, hog) = (TaskId(0), TaskId(1));
    assert_eq!(sched.ready(sleeper, Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(STEP)), None);
    assert_eq!(sched.ready(hog, Nanos(STEP)), Turn::Now(CPU));
    let woken = Nanos(STEP + 2_000_000);
    assert!(!sched.is_yielding(CPU, woken));
    assert_eq!(sched.ready(sleeper, woken), Turn::Waits(CPU));
    assert!(sched.is_yielding(CPU, woken));
    assert_eq!(sched.rotate(CPU, woken).next, sleeper);
    assert!(!sched.is_yielding(CPU, woken));
}

#[test]
fn a_sleeper_that_is_hardly_behind_waits_for_the_end_of_the_slice() {
    let mut sched = scheduler(1);
    (0..2).for_each(|id| sched.add(TaskId(id), pinned(0, 0)));
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(STEP)), None);
    assert_eq!(sched.ready(TaskId(1), Nanos(STEP)), Turn::Now(CPU));
    let woken = Nanos(STEP + 1_000_000);
    assert_eq!(sched.ready(TaskId(0), woken), Turn::Waits(CPU));
    assert!(!sched.is_yielding(CPU, woken) && sched.is_yielding(CPU, Nanos(STEP + SLICE)));
}

#[test]
fn a_long_sleep_is_worth_one_slice_and_no_more() {
    let mut sched = scheduler(1);
    (0..2).for_each(|id| sched.add(TaskId(id), pinned(0, 0)));
    let (sleeper, hog) = (TaskId(0), TaskId(1));
    assert_eq!(sched.ready(sleeper, Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(STEP)), None);
    assert_eq!(sched.ready(hog, Nanos(STEP)), Turn::Now(CPU));
    let woken = Nanos(1_000 * SLICE);
    assert_eq!(sched.ready(sleeper, woken), Turn::Waits(CPU));
    assert_eq!(sched.rotate(CPU, woken).next, sleeper);
    let back = Nanos(woken.0 + SLICE);
    assert!(sched.is_yielding(CPU, back));
    assert_eq!(sched.rotate(CPU, back).next, hog);
}

#[test]
fn who_wakes_takes_its_own_cpu_if_that_is_idle_and_else_the_first_idle_one() {
    let mut sched = scheduler(4);
    (0..5).for_each(|id| sched.add(TaskId(id), Placement { cpu: CpuId(2), ..anywhere(4) }));
    let woken: Vec<Turn> = (0..5).map(|id| sched.ready(TaskId(id), Nanos(0))).collect();
    let now = |cpu| Turn::Now(CpuId(cpu));
    assert_eq!(woken, [now(2), now(0), now(1), now(3), Turn::Waits(CpuId(2))]);
    // The first CPU that becomes idle takes the one that waits.
    assert_eq!(sched.pass_on(CpuId(1), Nanos(5)), Some(TaskId(4)));
    assert_eq!(sched.ready(TaskId(4), Nanos(5)), now(1));
}

#[test]
fn who_may_run_on_some_cpus_waits_there_while_others_are_idle() {
    let mut sched = scheduler(4);
    let here = Placement { cpu: CpuId(2), allowed: (CpuId(2)..CpuId(4)).into(), nice: 0, rt_priority: 0 };
    (0..3).for_each(|id| sched.add(TaskId(id), here));
    let woken: Vec<Turn> = (0..3).map(|id| sched.ready(TaskId(id), Nanos(0))).collect();
    assert_eq!(woken, [Turn::Now(CpuId(2)), Turn::Now(CpuId(3)), Turn::Waits(CpuId(2))]);
    sched.add(TaskId(3), anywhere(4));
    assert_eq!(sched.ready(TaskId(3), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(5)), None, "it may not come here");
    assert_eq!(sched.pass_on(CpuId(3), Nanos(5)), Some(TaskId(2)));
}

#[test]
fn a_cpu_whose_last_task_works_a_little_longer_is_not_idle_yet() {
    let mut sched = scheduler(1);
    (0..2).for_each(|id| sched.add(TaskId(id), pinned(0, 0)));
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(500)), None);
    assert_eq!(sched.ready(TaskId(1), Nanos(200)), Turn::At(CPU, Nanos(500)));
    assert_eq!(sched.ready(TaskId(1), Nanos(500)), Turn::Now(CPU));
    assert_eq!(sched.busy(Nanos(300)).collect::<Vec<_>>(), [Nanos(300)]);
    assert_eq!(sched.busy(Nanos(700)).collect::<Vec<_>>(), [Nanos(700)]);
}

/// At priority `rt_priority`, on CPU 0.
fn real_time(rt_priority: u8) -> Placement {
    Placement { rt_priority, ..pinned(0, 0) }
}

#[test]
fn a_real_time_task_that_wakes_preempts_and_keeps_the_cpu_until_it_sleeps() {
    let mut sched = scheduler(1);
    sched.add(TaskId(0), pinned(0, -20));
    sched.add(TaskId(1), real_time(1));
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.ready(TaskId(1), Nanos(10)), Turn::Waits(CPU));
    assert!(sched.is_yielding(CPU, Nanos(10)), "however little the other has run");
    assert_eq!(sched.rotate(CPU, Nanos(20)).next, TaskId(1));
    assert!(!sched.is_yielding(CPU, Nanos(1_000_000_000)), "it has no slice");
    assert_eq!(sched.pass_on(CPU, Nanos(1_000_000_000)), Some(TaskId(0)));
}

#[test]
fn of_real_time_tasks_the_higher_priority_is_first_and_of_equals_who_came_first() {
    let mut sched = scheduler(1);
    for (id, priority) in [(0, 5), (1, 5), (2, 9), (3, 5)] {
        sched.add(TaskId(id), real_time(priority));
    }
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.ready(TaskId(1), Nanos(1)), Turn::Waits(CPU));
    assert!(!sched.is_yielding(CPU, Nanos(1)), "an equal does not preempt");
    assert_eq!(sched.ready(TaskId(2), Nanos(2)), Turn::Waits(CPU));
    assert!(sched.is_yielding(CPU, Nanos(2)));
    assert_eq!(sched.rotate(CPU, Nanos(3)).next, TaskId(2));
    assert_eq!(sched.ready(TaskId(3), Nanos(4)), Turn::Waits(CPU));
    let order = [5, 6, 7].map(|at| sched.pass_on(CPU, Nanos(at)));
    assert_eq!(order, [0, 1, 3].map(|id| Some(TaskId(id))), "who was preempted goes on first");
}

#[test]
fn who_shares_a_cpu_is_no_further_behind_for_what_a_real_time_task_has_run() {
    let mut sched = scheduler(1);
    sched.add(TaskId(0), real_time(1));
    sched.add(TaskId(1), pinned(0, 0));
    sched.add(TaskId(2), pinned(0, 0));
    assert_eq!(sched.ready(TaskId(0), Nanos(0)), Turn::Now(CPU));
    assert_eq!(sched.ready(TaskId(1), Nanos(0)), Turn::Waits(CPU));
    assert_eq!(sched.pass_on(CPU, Nanos(50_000_000)), Some(TaskId(1)));
    // They begin alike, whenever they came.
    assert_eq!(sched.ready(TaskId(2), Nanos(50_000_001)), Turn::Waits(CPU));
    assert!(!sched.is_yielding(CPU, Nanos(50_000_002)));
    assert!(sched.is_yielding(CPU, Nanos(53_000_000)), "a slice later");
}
