//! Devices that fail, beside devices that work: who waits, who gets an error and when, in simulated time.

#![allow(clippy::unwrap_used)] // a bench that can't be set up fails its test

use pageout_engine::*;
use std::collections::{BTreeMap, BTreeSet};

const MS: Nanos = Nanos(1_000_000);
/// What an access costs a writer, and how long one waits after an error.
const ACCESS: Nanos = Nanos(2_000);
const RETRY: Nanos = Nanos(10 * MS.0);
/// Pages of memory, and of each file.
const MEMORY: u64 = 1 << 14;
const FILE: u64 = 1 << 15;

fn secs(seconds: u64) -> Nanos {
    Nanos(seconds * Nanos::SECOND.0)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Works,
    Fails,
    /// Takes writes, and ends none.
    Silent,
}

struct Disk {
    mode: Mode,
    /// How long it takes over a page.
    page: Nanos,
    free_at: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Goes on at this time.
    Due(Nanos),
    /// Waits to be woken.
    Asleep,
}

/// A task that writes whole pages of a file, from its first to its last and again.
struct Writer {
    task: TaskId,
    object: ObjectId,
    next: u64,
    in_access: bool,
    state: State,
    /// When accesses went well, and when they got an error.
    written: Vec<Nanos>,
    errors: Vec<Nanos>,
}

struct Bench {
    engine: Engine,
    now: Nanos,
    disks: Vec<Disk>,
    on: BTreeMap<FileId, usize>,
    /// Files of which every write fails.
    broken: BTreeSet<FileId>,
    /// By the time of their ends, in order.
    flights: BTreeMap<(Nanos, u64), (IoId, FileId)>,
    begun: u64,
    /// Writes of each disk that have failed, and gone well.
    failures: Vec<Vec<Nanos>>,
    successes: Vec<u64>,
    threads: BTreeMap<TaskId, (String, State)>,
    /// How often each thread was resumed.
    steps: BTreeMap<String, u64>,
    writers: Vec<Writer>,
    check_at: Nanos,
}

impl Bench {
    fn new(policy: &str, failed_write: FailedWrite) -> Bench {
        Bench::with(Policy::of(policy), failed_write)
    }

    fn with(mut policy: Policy, failed_write: FailedWrite) -> Bench {
        policy.machine.writeback.failed_write = failed_write;
        let stat_flush = StatFlush::Live;
        let config = Config { node_pages: vec![MEMORY], policy, stat_flush, ..Config::default() };
        let mut bench = Bench {
            engine: Engine::new(config).unwrap(),
            now: Nanos::ZERO,
            disks: Vec::new(),
            on: BTreeMap::new(),
            broken: BTreeSet::new(),
            flights: BTreeMap::new(),
            begun: 0,
            failures: Vec::new(),
            successes: Vec::new(),
            threads: BTreeMap::new(),
            steps: BTreeMap::new(),
            writers: Vec::new(),
            check_at: Nanos::ZERO,
        };
        bench.start_threads();
        bench
    }

    /// That of the live cache, with one disk that works and one that fails.
    fn with_full_disk() -> Bench {
        let mut bench = Bench::new("classic@6.12", FailedWrite::Dirty);
        bench.disk(Mode::Works);
        bench.disk(Mode::Fails);
        bench
    }

    fn start_threads(&mut self) -> usize {
        let threads = self.engine.start_kernel_threads();
        let started = threads.len();
        for ThreadInfo { task, name, wait, .. } in threads {
            let state = self.after(wait);
            self.threads.insert(task, (name, state));
        }
        started
    }

    /// A disk that is plugged in while the machine runs, of 100 MiB a second.
    fn disk(&mut self, mode: Mode) -> usize {
        let at = self.disks.len();
        let bdi = self.engine.bdi_register(&at.to_string()).unwrap();
        assert_eq!(bdi, BdiId(at as u16));
        assert_eq!(self.start_threads(), 1, "only its flusher is new");
        self.disks.push(Disk { mode, page: Nanos(40_000), free_at: Nanos::ZERO });
        self.failures.push(Vec::new());
        self.successes.push(0);
        at
    }

    fn group(&mut self, name: &str, max: u64) -> MemcgId {
        let group = self.engine.memcg_create(MemcgId::ROOT, name).unwrap();
        let mm = self.engine.process_create(MemcgId::ROOT);
        let shell = self.engine.task_create(mm, CpuId(0));
        let path = format!("/sys/fs/cgroup/{name}/memory.max");
        let step = self.engine.write_file(shell, &path, &(max * PAGE_SIZE).to_string()).unwrap();
        assert_eq!(step, Step::Done(Served::Written { reclaimed: 0 }));
        group
    }

    /// An administrator lowers the limits, so that more is stuck than may be dirty.
    fn lower_limits(&mut self) {
        let mm = self.engine.process_create(MemcgId::ROOT);
        let shell = self.engine.task_create(mm, CpuId(0));
        for (file, percent) in [("dirty_background_ratio", "5"), ("dirty_ratio", "10")] {
            let step = self.engine.write_file(shell, &format!("/proc/sys/vm/{file}"), percent).unwrap();
            assert!(matches!(step, Step::Done(Served::Written { .. })), "{step:?}");
        }
    }

    /// A writer of a file of its own.
    fn writer(&mut self, disk: usize, group: MemcgId) -> usize {
        let mm = self.engine.process_create(group);
        let task = self.engine.task_create(mm, CpuId(0));
        let name = format!("file{}", self.writers.len());
        let spec = FileSpec { name, pages: FILE, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
        let file = self.engine.file_create_on(spec, BdiId(disk as u16)).unwrap();
        self.on.insert(file, disk);
        let object = self.engine.open(task, file).unwrap();
        self.writers.push(Writer {
            task,
            object,
            next: 0,
            in_access: false,
            state: State::Due(self.now),
            written: Vec::new(),
            errors: Vec::new(),
        });
        self.writers.len() - 1
    }

    fn file_of(&self, writer: usize) -> FileId {
        FileId(writer as u32)
    }

    fn after(&self, wait: Wait) -> State {
        match wait {
            Wait::Io(_) | Wait::Woken => State::Asleep,
            Wait::Delay(span, _) | Wait::WokenOr(span, _) => State::Due(self.now + span),
        }
    }

    fn run(&mut self, until: Nanos) {
        loop {
            let flight = self.flights.keys().next().map(|&(at, _)| at);
            let due = |state: &State| if let State::Due(at) = state { Some(*at) } else { None };
            let threads = self.threads.values().filter_map(|(_, state)| due(state)).min();
            let writers = self.writers.iter().filter_map(|writer| due(&writer.state)).min();
            let next = [flight, threads, writers, Some(self.check_at)].into_iter().flatten().min().unwrap();
            if next > until {
                self.now = until;
                self.engine.set_now(until);
                return self.engine.check_invariants();
            }
            self.now = next.max(self.now);
            self.engine.set_now(self.now);
            if self.check_at <= self.now {
                self.check_at = self.now + secs(2);
                self.engine.check_invariants();
            } else if flight == Some(next) {
                self.end_write();
            } else if threads == Some(next) {
                let (&task, _) =
                    self.threads.iter().find(|(_, (_, state))| due(state) == Some(next)).unwrap();
                self.step_thread(task);
            } else {
                let at = self.writers.iter().position(|writer| due(&writer.state) == Some(next)).unwrap();
                self.step_writer(at);
            }
            self.take_out();
        }
    }

    fn end_write(&mut self) {
        let (_, (io, file)) = self.flights.pop_first().unwrap();
        let disk = self.on[&file];
        let fails = self.disks[disk].mode == Mode::Fails || self.broken.contains(&file);
        let result = if fails { Err(IoError::Device) } else { Ok(()) };
        if fails {
            self.failures[disk].push(self.now);
        } else {
            self.successes[disk] += 1;
        }
        self.engine.io_done(io, CpuId(0), result);
    }

    fn step_thread(&mut self, task: TaskId) {
        *self.steps.entry(self.threads[&task].0.clone()).or_default() += 1;
        let state = match self.engine.resume(task) {
            Step::Again => State::Due(self.now + ACCESS),
            Step::Wait(wait) => self.after(wait),
            Step::Done(served) => panic!("a thread has ended: {served:?}"),
        };
        self.threads.get_mut(&task).unwrap().1 = state;
    }

    fn step_writer(&mut self, at: usize) {
        let Writer { task, object, next, in_access, .. } = self.writers[at];
        let step = match in_access {
            true => self.engine.resume(task),
            false => self.engine.start(task, Access::new(object, next, true)),
        };
        let now = self.now;
        let state = match step {
            Step::Again => State::Due(now + ACCESS),
            Step::Wait(wait) => self.after(wait),
            Step::Done(Served::Failed(AccessError::Writeback)) => {
                self.writers[at].errors.push(now);
                State::Due(now + RETRY)
            }
            Step::Done(Served::Failed(error)) => panic!("{error}"),
            Step::Done(_) => {
                self.writers[at].next = (next + 1) % FILE;
                self.writers[at].written.push(now);
                State::Due(now + ACCESS)
            }
        };
        let writer = &mut self.writers[at];
        writer.in_access = !matches!(step, Step::Done(_));
        writer.state = state;
    }

    fn take_out(&mut self) {
        let mut ops = Vec::new();
        self.engine.take_ops(&mut ops);
        for op in ops {
            let Op::WriteFile { io, file, .. } = op else { continue };
            let disk = &mut self.disks[self.on[&file]];
            disk.free_at = disk.free_at.max(self.now) + disk.page;
            let end = if disk.mode == Mode::Silent { Nanos(u64::MAX) } else { disk.free_at };
            self.flights.insert((end, self.begun), (io, file));
            self.begun += 1;
        }
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        for task in woken {
            match self.writers.iter_mut().find(|writer| writer.task == task) {
                Some(writer) => writer.state = State::Due(self.now),
                None => self.threads.get_mut(&task).unwrap().1 = State::Due(self.now),
            }
        }
    }

    /// Pages that a writer wrote a second between two times.
    fn rate(&self, writer: usize, from: Nanos, to: Nanos) -> f64 {
        let written = self.writers[writer].written.iter().filter(|&&at| at >= from && at < to).count();
        written as f64 * Nanos::SECOND.0 as f64 / (to.0 - from.0) as f64
    }

    fn stop(&mut self, writer: usize) {
        assert!(!self.writers[writer].in_access, "it is in the middle of an access");
        self.writers[writer].state = State::Asleep;
    }

    fn dirty(&self) -> u64 {
        self.engine.figures().vmstat(Stat::NrDirty) as u64
    }
}

/// What a writer of the first disk gets a second, alone and with a writer of a full disk beside it.
#[track_caller]
fn check_rates(policy: &str, groups: impl Fn(&mut Bench) -> [MemcgId; 2]) {
    let rate = |is_alone: bool| {
        let mut bench = Bench::new(policy, FailedWrite::Dirty);
        bench.disk(Mode::Works);
        bench.disk(Mode::Fails);
        let [healthy, full] = groups(&mut bench);
        let writer = bench.writer(0, healthy);
        if !is_alone {
            bench.writer(1, full);
            bench.writer(1, full);
        }
        bench.run(secs(3));
        bench.lower_limits();
        bench.run(secs(14));
        assert_eq!(bench.writers[writer].errors, [], "its disk works");
        for failing in &bench.writers[1..] {
            assert!(failing.errors.len() > 10, "{} errors", failing.errors.len());
        }
        bench.rate(writer, secs(4), secs(14))
    };
    let (alone, beside) = (rate(true), rate(false));
    // The disk does 25,000 a second.
    assert!(alone > 10_000.0, "{alone} pages a second alone");
    assert!(beside > 0.8 * alone, "{beside} pages a second beside a full disk, {alone} alone");
}

#[test]
fn full_disk_leaves_others_their_rate() {
    check_rates("classic@6.12", |_| [MemcgId::ROOT; 2]);
}

#[test]
fn full_disk_leaves_others_their_rate_under_mglru() {
    check_rates("mglru@6.12", |_| [MemcgId::ROOT; 2]);
}

#[test]
fn full_disk_leaves_others_their_rate_in_one_group() {
    check_rates("classic@6.12", |bench| [bench.group("job", MEMORY / 2); 2]);
}

#[test]
fn full_disk_leaves_others_their_rate_in_two_groups() {
    check_rates("classic@6.12", |bench| {
        [("a", MEMORY / 4), ("b", MEMORY / 2)].map(|(name, max)| bench.group(name, max))
    });
}

/// Writers of a full disk get an error within a second after its first failure, and again and again.
#[track_caller]
fn check_error(mut bench: Bench, group: MemcgId) {
    let writers = [(); 3].map(|()| bench.writer(1, group));
    bench.run(secs(12));
    let first = bench.failures[1][0];
    for writer in writers {
        let Writer { errors, written, .. } = &bench.writers[writer];
        // It may go on until as much is dirty as may be.
        let after = written.partition_point(|&at| at < errors[0]);
        assert!(written.len() <= after + 32, "{} pages written, {after} by the first error", written.len());
        let took = errors[0].0 - first.max(written[after - 1]).0;
        assert!(took <= Nanos::SECOND.0, "{} ms from the first failure to the error", took / MS.0);
        let longest = errors.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap();
        assert!(longest <= 400 * MS.0, "{} ms between two errors", longest / MS.0);
    }
    let limit = MEMORY / 5;
    assert!(bench.dirty() <= limit + limit / 4, "{} pages are dirty", bench.dirty());
}

#[test]
fn writer_of_full_disk_gets_error_within_second() {
    check_error(Bench::with_full_disk(), MemcgId::ROOT);
}

#[test]
fn writer_of_full_disk_gets_error_in_group() {
    let mut bench = Bench::with_full_disk();
    let group = bench.group("job", MEMORY / 2);
    check_error(bench, group);
}

#[test]
fn writer_of_full_disk_gets_error_in_2010() {
    let mut bench = Bench::new("classic@2010", FailedWrite::Dirty);
    bench.disk(Mode::Works);
    bench.disk(Mode::Fails);
    check_error(bench, MemcgId::ROOT);
}

#[test]
fn probe_tries_a_plug_of_a_file() {
    let mut bench = Bench::with_full_disk();
    let writer = bench.writer(1, MemcgId::ROOT);
    bench.run(secs(4));
    assert!(bench.dirty() > 2000 && !bench.writers[writer].errors.is_empty());
    let before = bench.failures[1].len();
    bench.run(bench.now + secs(10));
    let (tried, errors) = (bench.failures[1].len() - before, bench.writers[writer].errors.len());
    // Five probes a second at most.
    assert!(
        (10 * 256..=10 * 5 * 256).contains(&tried),
        "{tried} pages tried in vain in 10 s, {errors} errors"
    );
}

#[test]
fn failed_access_changes_no_page() {
    let mut bench = Bench::with_full_disk();
    let writer = bench.writer(1, MemcgId::ROOT);
    bench.run(secs(5));
    while bench.writers[writer].in_access {
        bench.run(bench.now + MS);
    }
    let Writer { object, task, next, .. } = bench.writers[writer];
    let before = bench.dirty();
    bench.run(bench.now + secs(2));
    assert_eq!(bench.writers[writer].next, next, "the page that got the error is tried again");
    let name = bench.engine.figures().page_name(task, object, next);
    assert!(name.is_ok());
    assert!(!bench.engine.words_of(task, object).get(next).is_present(), "page {next} is not there");
    assert_eq!(bench.dirty() + bench.engine.figures().vmstat(Stat::NrWriteback) as u64, before);
}

#[test]
fn disk_with_space_again_is_found_within_half_a_second() {
    for group in [None, Some(MEMORY / 2)] {
        let mut bench = Bench::with_full_disk();
        let group = group.map_or(MemcgId::ROOT, |max| bench.group("job", max));
        let writer = bench.writer(1, group);
        // By then files rest for as long as they ever do.
        bench.run(secs(70));
        let tries = bench.failures[1].iter().filter(|&&at| at >= secs(60)).count();
        assert!(tries > 0, "nobody tries any more");
        bench.disks[1].mode = Mode::Works;
        let (from, before) = (bench.now, bench.writers[writer].written.len());
        bench.run(from + secs(5));
        let took = bench.writers[writer].written[before].0 - from.0;
        assert!(took <= 550 * MS.0, "{} ms until it went on", took / MS.0);
        let last = *bench.writers[writer].errors.last().unwrap();
        assert!(last <= from + Nanos(550 * MS.0), "an error at {last}, the disk had space at {from}");
        let rate = bench.rate(writer, from + secs(1), from + secs(5));
        assert!(rate > 10_000.0, "{rate} pages a second afterwards");
    }
}

#[test]
fn transient_failure_gives_no_error() {
    let mut bench = Bench::with_full_disk();
    bench.disks[1].mode = Mode::Works;
    let [writer, other] = [(); 2].map(|()| bench.writer(1, MemcgId::ROOT));
    bench.run(secs(3));
    bench.disks[1].mode = Mode::Fails;
    bench.run(bench.now + Nanos(100 * MS.0));
    bench.disks[1].mode = Mode::Works;
    let from = bench.now + secs(3);
    bench.run(from + secs(2));
    assert!(!bench.failures[1].is_empty());
    assert_eq!([writer, other].map(|of| bench.writers[of].errors.len()), [0, 0]);
    assert!(bench.rate(writer, from, bench.now) > 5_000.0);
}

#[test]
fn disk_that_does_not_answer_gives_no_error() {
    let mut bench = Bench::with_full_disk();
    bench.disks[1].mode = Mode::Silent;
    let [healthy, writer] = [0, 1].map(|disk| bench.writer(disk, MemcgId::ROOT));
    bench.run(secs(20));
    assert_eq!([healthy, writer].map(|of| bench.writers[of].errors.len()), [0, 0]);
    assert!(bench.writers[writer].written.len() > 1000);
    assert!(bench.writers[writer].written.last() < Some(&secs(15)), "it waits");
}

#[test]
fn truncation_ends_the_errors_of_its_disk() {
    let mut bench = Bench::with_full_disk();
    let [first, second] = [(); 2].map(|()| bench.writer(1, MemcgId::ROOT));
    bench.run(secs(4));
    while bench.writers[first].in_access || bench.writers[second].in_access {
        bench.run(bench.now + MS);
    }
    let errors = bench.writers[second].errors.len();
    assert!(errors > 0);
    for writer in [first, second] {
        let Writer { task, object, .. } = bench.writers[writer];
        bench.stop(writer);
        let mut step = bench.engine.truncate(task, object, 0..FILE).unwrap();
        bench.take_out();
        while step != Step::Done(Served::Truncated) {
            assert_eq!(step, Step::Again, "nothing of it is being written");
            step = bench.engine.resume(task);
            bench.take_out();
        }
        bench.engine.check_invariants();
    }
    assert_eq!(bench.dirty(), 0);
    bench.disks[1].mode = Mode::Works;
    bench.writers[second].state = State::Due(bench.now);
    let from = bench.now;
    bench.run(from + secs(2));
    assert_eq!(bench.writers[second].errors.len(), errors);
    assert!(bench.rate(second, from, bench.now) > 15_000.0, "it writes on");
    let from = bench.successes[1];
    bench.run(bench.now + secs(1));
    assert!(bench.successes[1] > from + 1000, "no file rests from before");
}

#[test]
fn file_that_fails_alone_gives_errors_to_its_writers_alone() {
    for is_in_group in [false, true] {
        let rate = |is_broken: bool| {
            let mut bench = Bench::with_full_disk();
            let group = if is_in_group { bench.group("job", MEMORY / 2) } else { MemcgId::ROOT };
            let healthy = bench.writer(0, group);
            if is_broken {
                let writer = bench.writer(0, group);
                bench.broken.insert(bench.file_of(writer));
            }
            bench.run(secs(3));
            bench.lower_limits();
            bench.run(secs(14));
            assert_eq!(bench.writers[healthy].errors, [], "its file works");
            for broken in &bench.writers[1..] {
                assert!(broken.errors.len() > 100, "{} errors of the file that fails", broken.errors.len());
            }
            bench.rate(healthy, secs(6), secs(14))
        };
        let (alone, beside) = (rate(false), rate(true));
        assert!(beside > 0.7 * alone, "{beside} pages a second beside a file that fails, {alone} alone");
    }
}

#[test]
fn probe_reaches_file_of_another_group() {
    let mut policy = Policy::of("classic@6.12");
    policy.machine.writeback.inode_switching = false;
    let mut bench = Bench::with(policy, FailedWrite::Dirty);
    bench.disk(Mode::Works);
    // The file is that of the machine's wb, which is far below its limits, and its pages are the group's.
    let owner = bench.writer(0, MemcgId::ROOT);
    bench.run(Nanos(10_000));
    bench.stop(owner);
    let group = bench.group("job", MEMORY / 8);
    let writer = bench.writer(0, group);
    let (task, file) = (bench.writers[writer].task, bench.file_of(owner));
    bench.writers[writer].object = bench.engine.open(task, file).unwrap();
    bench.writers[writer].next = 100;
    bench.run(secs(3));
    assert!(bench.writers[writer].errors.is_empty() && bench.successes[0] > 1000);
    bench.disks[0].mode = Mode::Fails;
    bench.run(secs(12));
    assert!(bench.writers[writer].errors.len() > 10);
    bench.disks[0].mode = Mode::Works;
    let (from, before) = (bench.now, bench.writers[writer].written.len());
    bench.run(from + secs(3));
    let took = bench.writers[writer].written.get(before).map(|at| (at.0 - from.0) / MS.0);
    assert!(took.is_some_and(|took| took <= 550), "{took:?} ms until it went on");
}

#[test]
fn stuck_pages_give_flushers_of_other_disks_nothing_to_do() {
    let play = |is_full: bool| {
        let mut bench = Bench::with_full_disk();
        let healthy = bench.writer(0, MemcgId::ROOT);
        // Its device has a share of what may be dirty from then on.
        bench.run(Nanos(50 * MS.0));
        while bench.writers[healthy].in_access {
            bench.run(bench.now + MS);
        }
        bench.stop(healthy);
        bench.run(secs(40));
        assert_eq!(bench.dirty(), 0);
        let full = is_full.then(|| bench.writer(1, MemcgId::ROOT));
        bench.run(secs(44));
        assert!(full.is_none_or(|full| !bench.writers[full].errors.is_empty()));
        let before = bench.steps.clone();
        // Ten pages a second: much less than starts a flusher.
        for _ in 0..10 {
            for _ in 0..10 {
                bench.writers[healthy].state = State::Due(bench.now);
                bench.run(bench.now);
            }
            bench.writers[healthy].state = State::Asleep;
            bench.run(bench.now + secs(1));
        }
        let steps = |name: &str| bench.steps.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
        (bench.dirty() > 90, ["flush-0", "flush-1"].map(steps), bench.successes[0])
    };
    let (alone, [steps_alone, _], written_alone) = play(false);
    let (_, [steps, of_full], written) = play(true);
    assert!(alone, "none of the pages is written for some time");
    assert_eq!(
        (written, steps),
        (written_alone, steps_alone),
        "pages written of the other disk, and its flusher's steps"
    );
    // A writer that tries again a hundred times a second wakes it each time, and it finds resting files.
    assert!(of_full <= 10 * 150, "{of_full} steps of the flusher of a full disk in 10 s");
}

#[test]
fn clean_rule_gives_no_error() {
    let mut bench = Bench::new("classic@6.12", FailedWrite::Clean);
    bench.disk(Mode::Works);
    bench.disk(Mode::Fails);
    let writer = bench.writer(1, MemcgId::ROOT);
    bench.run(secs(5));
    assert_eq!(bench.writers[writer].errors, []);
    assert!(bench.rate(writer, secs(1), secs(5)) > 15_000.0, "a write that fails is over");
}

#[test]
fn spared_access_waits_for_no_limit_once() {
    let mut bench = Bench::with_full_disk();
    let writer = bench.writer(1, MemcgId::ROOT);
    bench.run(secs(4));
    while bench.writers[writer].in_access {
        bench.run(bench.now + MS);
    }
    let Writer { task, object, next, errors, .. } = &bench.writers[writer];
    let (task, object, next) = (*task, *object, *next);
    assert!(!errors.is_empty());
    bench.engine.spare_next_throttle(task);
    let step = bench.engine.start(task, Access::new(object, next, true));
    assert!(matches!(step, Step::Done(Served::Minor(_))), "{step:?}");
    let step = bench.engine.start(task, Access::new(object, next + 1, true));
    let failed = Step::Done(Served::Failed(AccessError::Writeback));
    assert!(step == failed || matches!(step, Step::Wait(Wait::Delay(..))), "{step:?}");
}

#[test]
fn spared_hit_spares_no_later_access() {
    let mut bench = Bench::with_full_disk();
    let writer = bench.writer(1, MemcgId::ROOT);
    bench.run(secs(4));
    while bench.writers[writer].in_access {
        bench.run(bench.now + MS);
    }
    let Writer { task, object, next, .. } = bench.writers[writer];
    bench.engine.spare_next_throttle(task);
    let step = bench.engine.start(task, Access::new(object, next - 1, true));
    assert!(matches!(step, Step::Done(Served::Hit(_))), "a page that is dirty already: {step:?}");
    let step = bench.engine.start(task, Access::new(object, next, true));
    assert!(!matches!(step, Step::Done(Served::Minor(_))), "{step:?}");
}

#[test]
fn device_beyond_the_limit_is_refused() {
    let mut engine = Engine::new(Config::default()).unwrap();
    for at in 0..1024 {
        assert_eq!(engine.bdi_register("disk"), Ok(BdiId(at)));
    }
    let error = engine.bdi_register("disk").unwrap_err().to_string();
    assert!(error.contains("backing devices"), "{error}");
    let spec = FileSpec { name: "data".into(), pages: 1, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    assert!(engine.file_create_on(spec.clone(), BdiId(1024)).is_err());
    assert!(engine.file_create_on(spec, BdiId(1023)).is_ok());
}

#[test]
fn flusher_started_late_writes_what_is_dirty() {
    let mut bench = Bench::new("classic@6.12", FailedWrite::Dirty);
    let bdi = bench.engine.bdi_register("0").unwrap();
    assert_eq!(bdi, BdiId(0));
    bench.disks.push(Disk { mode: Mode::Works, page: Nanos(40_000), free_at: Nanos::ZERO });
    (bench.failures, bench.successes) = (vec![Vec::new()], vec![0]);
    let writer = bench.writer(0, MemcgId::ROOT);
    bench.run(MS);
    bench.stop(writer);
    assert!(bench.dirty() > 0);
    assert_eq!(bench.start_threads(), 1);
    bench.run(secs(40));
    assert_eq!(bench.dirty(), 0);
    assert_eq!(bench.start_threads(), 0);
}
