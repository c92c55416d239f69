//! Runs without a clock: what they count is what a timed run of the same machine counts.

use pageout_engine::{Advice, Nanos, PROFILES, Policy, Served, StatFlush};
use pageout_sim::cost::Channel;
use pageout_sim::{Ended, Machine, Observer, RunError};
use pageout_workload::Access;
use pageout_workload::rng::SplitMix64;

use crate::rig::{Rig, pages};
use crate::timed;

const LIMIT: u64 = 300;
const PAGES: u64 = 900;

/// Reads of a file and of a mapping: some in order, most of few pages, some of any.
fn accesses(seed: u64, count: usize) -> Vec<Access> {
    let mut random = SplitMix64::new(seed);
    let mut next = 0;
    let access = |_| {
        let object = u32::from(random.below(3) == 0);
        let page = match random.below(4) {
            0 => random.below(PAGES),
            1 => {
                next = (next + 1) % PAGES;
                next
            }
            _ => random.below(PAGES / 6),
        };
        Access::new(object, page, false)
    };
    (0..count).map(access).collect()
}

/// A reader of both at a limit that is a third of them.
fn rig(policy: Policy, ra_pages: u32, accesses: Vec<Access>) -> Rig {
    rig_with(policy, StatFlush::Live, ra_pages, accesses)
}

fn rig_with(policy: Policy, stat_flush: StatFlush, ra_pages: u32, accesses: Vec<Access>) -> Rig {
    let mut rig = Rig::with_stats(policy, stat_flush);
    rig.limit("/job", LIMIT);
    let (file, mapped) = (rig.file_read_ahead(PAGES, ra_pages), rig.file_read_ahead(PAGES, ra_pages));
    rig.reader("reader", "/job", file, accesses, 1);
    let task = &mut rig.tasks[0];
    rig.engine.map_file(task.task, mapped, Advice::Normal, false).unwrap();
    task.channels.push(Channel::Mapped);
    rig
}

/// All that is counted.
#[derive(PartialEq, Debug, Default)]
struct Counted {
    files: Vec<String>,
    hits: u64,
    faults: [u64; 2],
    misses: [u64; 2],
    requests: u64,
    pages_read: u64,
    missed: Vec<(u64, bool)>,
}

#[derive(Default)]
struct Missed(Vec<(u64, bool)>);

impl Observer for Missed {
    fn access(&mut self, _: usize, index: u64, served: &Served) {
        self.0.push((index, matches!(served, Served::Major(_))));
    }
}

fn counted(mut machine: Machine, missed: Missed) -> Counted {
    machine.engine().check_invariants();
    let report = machine.report();
    let files = ["/proc/vmstat", "/sys/fs/cgroup/job/memory.stat", "/sys/fs/cgroup/job/memory.events"];
    let files = files.map(|path| machine.engine_mut().read_file(path).unwrap());
    // The vmstat worker goes by time, and the thresholds are shares of the free pages.
    let by_time = ["nr_free_pages", "nr_dirty_threshold", "nr_dirty_background_threshold"];
    let is_counted = |line: &&str| !by_time.iter().any(|name| line.starts_with(name));
    let files = files.map(|text| text.lines().filter(is_counted).collect::<Vec<_>>().join("\n"));
    let task = &report.tasks[0];
    Counted {
        files: files.to_vec(),
        hits: task.hits,
        faults: [task.minor, task.major],
        misses: [task.read_misses, task.read_misses_io],
        requests: report.devices[0].read.count,
        pages_read: report.devices[0].pages_read,
        missed: missed.0,
    }
}

fn both(make: impl Fn() -> Rig) -> [Counted; 2] {
    [false, true].map(|is_untimed| {
        let (mut machine, mut missed) = (make().machine(), Missed::default());
        let ended = match is_untimed {
            false => machine.run(&mut missed),
            true => machine.run_untimed(&mut missed),
        };
        assert_eq!(ended.unwrap(), Ended::Complete);
        assert_eq!(machine.report().end == Nanos::ZERO, is_untimed);
        counted(machine, missed)
    })
}

#[test]
fn random_reads_count_the_same_without_a_clock_under_every_profile() {
    for (profile, seed) in PROFILES.iter().zip(1..) {
        let policy = Policy::by_name(profile.name).unwrap();
        let [timed, untimed] = both(|| rig(policy, 0, accesses(seed, 6_000)));
        assert_eq!(timed, untimed, "{}, seed {seed}", profile.name);
        assert!(untimed.misses[1] > 500 && untimed.faults[1] > 200, "{untimed:?}");
    }
}

#[test]
fn random_reads_count_the_same_without_a_clock_for_every_seed() {
    for seed in 100..140 {
        let policy = Policy::of(["classic@6.12", "mglru@6.12"][seed as usize % 2]);
        let [timed, untimed] = both(|| rig(policy, 0, accesses(seed, 2_000)));
        assert_eq!(timed, untimed, "seed {seed}");
    }
}

/// Only a reader that catches up with its readahead finds a page in flight, and in a timed run alone.
#[test]
fn pages_read_ahead_in_order_are_hits_without_a_clock() {
    let order = || pages((0..PAGES).chain(0..PAGES));
    let [timed, untimed] = both(|| rig(Policy::of("classic@6.12"), 32, order()));
    assert!(untimed.hits > timed.hits, "{} hits, {} with a clock", untimed.hits, timed.hits);
    assert!(untimed.misses[1] <= timed.misses[1]);
    assert_eq!(untimed.pages_read, timed.pages_read);
}

#[test]
fn flushes_before_given_accesses_count_the_same_without_a_clock() {
    let make = |flushes: &[u64]| {
        let mut rig = rig_with(Policy::of("classic@6.12"), StatFlush::Manual, 0, accesses(7, 6_000));
        rig.tasks[0].flush_before = flushes.to_vec();
        rig
    };
    let [timed, untimed] = both(|| make(&[0, 1_000, 3_333, 5_999]));
    assert_eq!(timed, untimed);
    assert_ne!(untimed, both(|| make(&[0]))[1], "flushes matter");
}

#[test]
fn run_without_a_clock_repeats_to_the_byte_and_goes_on_after_a_break() {
    struct Once(bool);
    impl Observer for Once {
        fn progress(&mut self, _: pageout_sim::Progress) -> std::ops::ControlFlow<()> {
            match std::mem::replace(&mut self.0, false) {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            }
        }
    }
    let make = || {
        let mut rig = rig(Policy::of("mglru@6.12"), 4, accesses(3, 4_000));
        rig.tasks[0].loops = 80;
        rig.machine()
    };
    let mut whole = make();
    whole.run_untimed(&mut ()).unwrap();
    let mut broken = make();
    assert_eq!(broken.run_untimed(&mut Once(true)).unwrap(), Ended::Interrupted);
    assert_eq!(broken.run_untimed(&mut ()).unwrap(), Ended::Complete);
    assert_eq!(whole.report(), broken.report());
    assert_eq!(counted(whole, Missed::default()), counted(broken, Missed::default()));
}

#[test]
fn what_needs_a_clock_is_refused_with_its_name() {
    let refused = |rig: Rig| match rig.machine().run_untimed(&mut ()) {
        Err(error @ RunError::NeedsClock { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let reads = || rig(Policy::of("classic@6.12"), 0, accesses(1, 100));
    let mut two = reads();
    let file = two.file(10);
    two.reader("second", "/job", file, pages(0..10), 1);
    assert!(refused(two).contains("found 2 tasks, expected one task"));
    let mut events = reads();
    events.events.push(timed::write(5, "/sys/fs/cgroup/job/memory.high", "max"));
    assert!(refused(events).contains("found events"));
    let mut periodic = Rig::new();
    let file = periodic.file(10);
    periodic.reader("reader", "/job", file, pages(0..10), 1);
    assert!(refused(periodic).contains("`memcg.stat_flush` = periodic, expected live"));
    let mut writes = Rig::with_stats(Policy::of("classic@6.12"), StatFlush::Live);
    let file = writes.file(10);
    writes.reader("writer", "/job", file, vec![Access::new(0, 3, false), Access::new(0, 3, true)], 1);
    let told = refused(writes);
    assert!(told.contains("found a write (access 1 of task `writer`), expected reads only"), "{told}");
}

/// The machine is short of memory, so kswapd works.
#[test]
fn woken_kswapd_reaches_its_goal_without_a_clock() {
    let mut rig = Rig::with_stats(Policy::of("classic@6.12"), StatFlush::Live);
    let of = |stat: &str, name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
        line.parse::<u64>().unwrap()
    };
    let memory = of(&rig.engine.read_file("/proc/vmstat").unwrap(), "nr_free_pages");
    let file = rig.file(memory + 50_000);
    rig.reader("reader", "/", file, pages(0..memory + 50_000), 1);
    let mut machine = rig.machine();
    assert_eq!(machine.run_untimed(&mut ()).unwrap(), Ended::Complete);
    machine.engine().check_invariants();
    let stat = machine.engine_mut().read_file("/proc/vmstat").unwrap();
    assert!(of(&stat, "pgsteal_kswapd") > 40_000, "{stat}");
}
