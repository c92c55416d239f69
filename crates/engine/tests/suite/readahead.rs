//! Readahead: the table of cases of its rules.
//!
//! A case is a line: what is read, and which reads of the device that causes. `28+2 -> 28+36` reads pages 28 and 29 in one call, for
//! which 36 pages from 28 on are read. A call that is not listed causes none.

#![allow(clippy::unwrap_used)] // helpers of tests

use pageout_engine::*;
use std::collections::BTreeMap;

/// A request of pages: the first and how many.
pub(crate) type Run = (u64, u64);

pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) task: TaskId,
    file: FileId,
}

impl Machine {
    pub(crate) fn new(pages: u64, bdi: Bdi) -> Machine {
        Machine::with(Config::default(), pages, bdi)
    }

    fn with(config: Config, pages: u64, bdi: Bdi) -> Machine {
        let mut engine = Engine::new(config).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let spec = FileSpec { name: "data".to_owned(), pages, kind: FileKind::Regular, bdi };
        let file = engine.file_create(spec).unwrap();
        Machine { engine, task, file }
    }

    pub(crate) fn open(&mut self) -> ObjectId {
        self.engine.open(self.task, self.file).unwrap()
    }

    /// Makes an access; each read of the device ends before anything else happens.
    fn access(&mut self, access: Access) -> Vec<Run> {
        let step = self.engine.start(self.task, access);
        self.finish(step)
    }

    fn finish(&mut self, mut step: Step) -> Vec<Run> {
        let mut reads = Vec::new();
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, page, pages, .. } = op {
                    assert_eq!(self.engine.frames_of(io).count(), pages as usize);
                    reads.push((page, pages.into()));
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            self.engine.take_woken(&mut Vec::new());
            if let Step::Done(served) = step {
                assert!(!matches!(served, Served::Failed(_)), "{served:?}");
                return reads;
            }
            step = self.engine.resume(self.task);
        }
    }

    /// A read(2) call for so many bytes from a byte on, cut off at the end of the file.
    pub(crate) fn read_bytes(&mut self, object: ObjectId, from: u64, bytes: u64) -> Vec<Run> {
        let end = (from + bytes).min(self.engine.figures().file_pages(self.file) * PAGE_SIZE);
        let pages = from / PAGE_SIZE..end.div_ceil(PAGE_SIZE);
        let access =
            |page| Access { wanted: (end - page * PAGE_SIZE) as u32, ..Access::new(object, page, false) };
        pages.flat_map(|page| self.access(access(page))).collect()
    }

    fn read(&mut self, object: ObjectId, (first, pages): Run) -> Vec<Run> {
        self.read_bytes(object, first * PAGE_SIZE, pages * PAGE_SIZE)
    }

    /// Brings pages into the cache past this test's readers.
    fn cache(&mut self, pages: std::ops::RangeInclusive<u64>) {
        let object = self.open();
        self.engine.fadvise(self.task, object, Advice::Random).unwrap();
        pages.for_each(|page| assert_eq!(self.read(object, (page, 1)), [(page, 1)]));
    }
}

fn runs(text: &str) -> Vec<Run> {
    let run = |text: &str| {
        let (first, pages) = text.split_once('+').unwrap_or((text, "1"));
        (first.trim().parse().unwrap(), pages.trim().parse().unwrap())
    };
    text.split_whitespace().map(run).collect()
}

/// Reads `calls` in order, and compares the device's reads with the lines.
#[track_caller]
fn check_on(machine: &mut Machine, object: ObjectId, calls: impl IntoIterator<Item = Run>, lines: &str) {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut expected: Vec<(Run, Vec<Run>)> = lines
        .map(|line| {
            let (call, reads) = line.split_once("->").unwrap();
            (runs(call)[0], runs(reads))
        })
        .collect();
    expected.reverse();
    for call in calls {
        let reads = machine.read(object, call);
        match expected.last() {
            Some((next, _)) if *next == call => {
                assert_eq!(reads, expected.pop().unwrap().1, "reading {call:?}")
            }
            _ => assert_eq!(reads, [], "reading {call:?}"),
        }
    }
    assert_eq!(expected, [], "was never read");
    machine.engine.check_invariants();
}

#[track_caller]
fn check(calls: impl IntoIterator<Item = Run>, lines: &str) {
    let mut machine = Machine::new(1000, Bdi::default());
    let object = machine.open();
    check_on(&mut machine, object, calls, lines);
}

fn in_order(from: u64, pages: u64, up_to: u64) -> impl Iterator<Item = Run> {
    (from..up_to).step_by(pages as usize).map(move |first| (first, pages))
}

#[test]
fn single_pages_in_order_ramp_up_to_the_window() {
    check(
        in_order(0, 1, 100),
        "
        0  -> 0+4
        1  -> 4+8
        4  -> 12+16
        12 -> 28+32
        28 -> 60+32
        60 -> 92+32
        92 -> 124+32
        ",
    );
}

/// A machine of Linux 6.18, which has large folios on ext4.
fn with_6_18(bdi: Bdi) -> Machine {
    let policy = Policy::by_name("classic@6.18").unwrap();
    Machine::with(Config { policy, ..Config::default() }, 30_000, bdi)
}

#[test]
fn any_page_of_a_marked_large_folio_goes_on_and_windows_end_where_folios_do() {
    let bdi = Bdi { ra_pages: 2048, file_system: FileSystem::Ext4, ..Bdi::default() };
    let calls = |pages: &[u64]| pages.iter().map(|&page| (page, 1)).collect::<Vec<_>>();
    let mut machine = with_6_18(bdi);
    let object = machine.open();
    // Page 7 meets the mark of pages 4 to 7. The search for the end of what is cached begins within that folio and comes out behind page 20, which
    // is a miss later: its past ends within a folio, and seems to be three pages shorter. Page 110 meets the mark of pages 104 to 111.
    let large = "0 -> 0+4 \n 1 -> 4+16 \n 600 -> 600 \n 601 -> 601+4 \n 7 -> 21+83 \n 21 -> 104+328 \n 110 -> 432+168 605+483 \n 20 -> 20";
    check_on(&mut machine, object, calls(&[0, 1, 600, 601, 7, 30, 21, 110, 20]), large);
    let mut machine = with_6_18(Bdi { file_system: FileSystem::None, ..bdi });
    let object = machine.open();
    let single = "0 -> 0+4 \n 1 -> 4+16 \n 600 -> 600 \n 601 -> 601+4 \n 4 -> 20+68";
    check_on(&mut machine, object, calls(&[0, 1, 600, 601, 7, 4]), single);
}

#[test]
fn a_use_of_a_page_is_one_of_all_that_came_in_with_it_as_a_large_folio() {
    let active = |file_system| {
        let mut machine = with_6_18(Bdi { ra_pages: 2048, file_system, ..Bdi::default() });
        let object = machine.open();
        // Pages 8 to 11 come in together, where there are large folios. Two of them are used, each once.
        for page in [0, 1, 9, 600, 10] {
            machine.access(Access::new(object, page, false));
        }
        // Whoever truncates has this CPU's batches emptied first.
        let step = machine.engine.truncate(machine.task, object, 20_000..20_001).unwrap();
        machine.finish(step);
        machine.engine.check_invariants();
        machine.engine.figures().memcg_stat_now(MemcgId::ROOT, Stat::NrActiveFile)
    };
    assert_eq!((active(FileSystem::Ext4), active(FileSystem::None)), (4, 0));
}

#[test]
fn reader_in_order_uses_a_large_folio_once() {
    let active = |pages: &[u64]| {
        let bdi = Bdi { ra_pages: 2048, file_system: FileSystem::Ext4, ..Bdi::default() };
        let mut machine = with_6_18(bdi);
        let object = machine.open();
        for &page in pages {
            machine.access(Access::new(object, page, false));
        }
        let step = machine.engine.truncate(machine.task, object, 20_000..20_001).unwrap();
        machine.finish(step);
        machine.engine.figures().memcg_stat_now(MemcgId::ROOT, Stat::NrActiveFile)
    };
    // Pages 4 to 7 come in together, and so do 8 to 11.
    assert_eq!(active(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), 0);
    // Whoever was elsewhere meanwhile uses it a second time.
    assert_eq!(active(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 600, 10, 11]), 4);
}

/// Where a miss and a mark are judged alike, as in 6.1.
fn check_6_1(calls: impl IntoIterator<Item = Run>, lines: &str) {
    let policy = Policy::by_name("classic@6.1").unwrap();
    let mut machine = Machine::with(Config { policy, ..Config::default() }, 1000, Bdi::default());
    let object = machine.open();
    check_on(&mut machine, object, calls, lines);
}

#[test]
fn a_miss_behind_the_window_gets_the_next_two_in_6_1_and_begins_anew_since_6_12() {
    let skips = [(0, 1), (4, 1), (12, 1)];
    check_6_1(skips, "0 -> 0+4 \n 4 -> 4+24 \n 12 -> 28+32");
    check(skips, "0 -> 0+4 \n 4 -> 4+9 \n 12 -> 13+18");
    // A miss in the middle of nothing is random in both, and reads in order ramp up alike.
    check_6_1([(500, 2), (10, 2), (300, 2)], "500+2 -> 500+2 \n 10+2 -> 10+2 \n 300+2 -> 300+2");
    check_6_1(
        in_order(0, 4, 60),
        "0+4 -> 0+8 \n 4+4 -> 8+16 \n 8+4 -> 24+32 \n 24+4 -> 56+32 \n 56+4 -> 88+32",
    );
    check_6_1(in_order(0, 32, 64), "0+32 -> 0+32 32+32 \n 32+32 -> 64+32");
}

#[test]
fn larger_requests_begin_with_a_larger_window() {
    check(
        in_order(0, 4, 88),
        "
        0+4  -> 0+8
        4+4  -> 8+16
        8+4  -> 24+32
        24+4 -> 56+32
        56+4 -> 88+32
        ",
    );
}

#[test]
fn a_request_of_a_whole_window_reads_the_next_one_in_the_same_call() {
    check(
        in_order(0, 32, 96),
        "
        0+32  -> 0+32 32+32
        32+32 -> 64+32
        64+32 -> 96+32
        ",
    );
}

#[test]
fn a_first_read_in_the_middle_is_random_and_the_next_page_begins_a_ramp() {
    check(
        in_order(100, 1, 106),
        "
        100 -> 100+1
        101 -> 101+4
        102 -> 105+8
        105 -> 113+16
        ",
    );
}

#[test]
fn a_request_beyond_the_window_is_read_in_pieces_as_large_as_the_device_takes() {
    check(
        in_order(0, 256, 512),
        "
        0+256   -> 0+256 256+256
        256+256 -> 512+256
    ",
    );
    let mut machine = Machine::new(1000, Bdi { ra_pages: 32, io_pages: 0, ..Bdi::NO_READAHEAD });
    let object = machine.open();
    check_on(
        &mut machine,
        object,
        in_order(0, 256, 512),
        "
        0+256   -> 0+32 32+32 64+32 96+32 128+32 160+32 192+32 224+32 256+32
        256+256 -> 288+32 320+32 352+32 384+32 416+32 448+32 480+32 512+32
    ",
    );
}

#[test]
fn random_requests_read_what_they_ask_for_even_behind_a_few_cached_pages() {
    check(
        runs("500+2 10+2 300+2 12+2"),
        "
        500+2 -> 500+2
        10+2  -> 10+2
        300+2 -> 300+2
        12+2  -> 12+2
    ",
    );
}

#[test]
fn after_random_advice_a_request_is_read_in_one_piece() {
    let mut machine = Machine::new(1000, Bdi::default());
    let object = machine.open();
    machine.engine.fadvise(machine.task, object, Advice::Random).unwrap();
    check_on(
        &mut machine,
        object,
        runs("0 1 2+40"),
        "
        0    -> 0
        1    -> 1
        2+40 -> 2+40
    ",
    );
}

#[test]
fn without_readahead_each_page_of_a_request_is_a_read() {
    for io_pages in [320, 0] {
        let mut machine = Machine::new(1000, Bdi { ra_pages: 0, io_pages, ..Bdi::NO_READAHEAD });
        let object = machine.open();
        check_on(
            &mut machine,
            object,
            runs("0 1+3"),
            "
            0   -> 0
            1+3 -> 1 2 3
        ",
        );
    }
}

#[test]
fn two_streams_through_one_open_file_find_their_way_by_what_is_cached() {
    let calls = (0..10).flat_map(|at| [(at, 1), (500 + at, 1)]);
    check(
        calls,
        "
        0   -> 0+4
        500 -> 500
        1   -> 4+8
        501 -> 501
        502 -> 502+3
        4   -> 12+18
        504 -> 505+4
        505 -> 509+8
        509 -> 517+16
    ",
    );
}

#[test]
fn a_short_stride_decays_into_sequential_readahead() {
    check(
        (0..4).map(|at| (4 * at, 1)),
        "
        0  -> 0+4
        4  -> 4+9
        12 -> 13+18
    ",
    );
}

#[test]
fn cached_pages_before_a_first_read_are_taken_for_its_past() {
    let mut machine = Machine::new(1000, Bdi::default());
    machine.cache(20..=27);
    let object = machine.open();
    check_on(&mut machine, object, runs("28"), "28 -> 28+9");
    let mut machine = Machine::new(1000, Bdi::default());
    machine.cache(0..=7);
    let object = machine.open();
    check_on(&mut machine, object, runs("8"), "8 -> 8+17");
}

#[test]
fn of_a_past_as_long_as_the_window_one_page_less_is_counted_and_nothing_is_doubled() {
    let mut machine = Machine::new(1000, Bdi { ra_pages: 8, io_pages: 320, ..Bdi::NO_READAHEAD });
    machine.cache(0..=7);
    let object = machine.open();
    check_on(&mut machine, object, runs("8+7"), "8+7 -> 8+7");
    let mut machine = Machine::new(1000, Bdi { ra_pages: 8, io_pages: 320, ..Bdi::NO_READAHEAD });
    machine.cache(1..=8);
    let object = machine.open();
    check_on(&mut machine, object, runs("9+6"), "9+6 -> 9+8");
}

#[test]
fn the_window_ends_with_the_file_and_nothing_is_marked_there() {
    let mut machine = Machine::new(10, Bdi::default());
    let object = machine.open();
    check_on(
        &mut machine,
        object,
        in_order(0, 1, 10),
        "
        0 -> 0+4
        1 -> 4+6
    ",
    );
}

#[test]
fn half_pages_read_as_whole_ones_do() {
    let mut machine = Machine::new(1000, Bdi::default());
    let object = machine.open();
    let half = PAGE_SIZE / 2;
    let mut reads = BTreeMap::new();
    for at in 0..60 {
        let caused = machine.read_bytes(object, at * half, half);
        if !caused.is_empty() {
            reads.insert(at, caused);
        }
    }
    let expected = [(0, (0, 4)), (2, (4, 8)), (8, (12, 16)), (24, (28, 32)), (56, (60, 32))];
    assert_eq!(reads, expected.map(|(at, run)| (at, vec![run])).into());
}

#[test]
fn present_pages_split_a_window_into_reads_without_gaps() {
    let mut machine = Machine::new(1000, Bdi::default());
    machine.cache(6..=8);
    let object = machine.open();
    check_on(
        &mut machine,
        object,
        in_order(0, 1, 13),
        "
        0  -> 0+4
        1  -> 4+2 9+3
        4  -> 12+16
        12 -> 28+32
    ",
    );
}

#[test]
fn sequential_advice_doubles_the_window_and_normal_advice_takes_that_back() {
    let mut machine = Machine::new(1000, Bdi::default());
    let object = machine.open();
    machine.engine.fadvise(machine.task, object, Advice::Sequential).unwrap();
    check_on(
        &mut machine,
        object,
        in_order(0, 1, 100),
        "
        0  -> 0+4
        1  -> 4+8
        4  -> 12+16
        12 -> 28+32
        28 -> 60+64
        60 -> 124+64
        ",
    );
    machine.engine.fadvise(machine.task, object, Advice::Normal).unwrap();
    check_on(
        &mut machine,
        object,
        in_order(500, 1, 560),
        "
        500 -> 500
        501 -> 501+4
        502 -> 505+8
        505 -> 513+16
        513 -> 529+32
        529 -> 561+32
        ",
    );
}

#[test]
fn each_open_file_has_a_window_of_its_own() {
    let mut machine = Machine::new(1000, Bdi::default());
    let (one, other) = (machine.open(), machine.open());
    assert_eq!(machine.read(one, (0, 1)), [(0, 4)]);
    assert_eq!(machine.read(other, (500, 1)), [(500, 1)]);
    assert_eq!(machine.read(other, (501, 1)), [(501, 4)]);
    assert_eq!(machine.read(one, (1, 1)), [(4, 8)]);
}

#[test]
fn objects_made_of_one_open_file_share_its_window_its_position_and_its_misses() {
    let mut machine = Machine::new(1000, Bdi::default());
    let one = machine.open();
    let task = machine.task;
    let same = machine.engine.open_same(task, (task, one)).unwrap();
    assert_eq!(machine.read(one, (0, 1)), [(0, 4)]);
    assert_eq!(machine.read(same, (1, 1)), [(4, 8)]);
    let mapping = machine.engine.map_same(task, (task, same), Advice::Normal, false).unwrap();
    assert_eq!(machine.access(Access::new(mapping, 500, false)), [(484, 32)]);
    assert_eq!(machine.read(one, (508, 1)), [(516, 32)], "the mark is where the mapping's fault has put it");
    let anon = machine.engine.map_anon(task, 10, Advice::Normal).unwrap();
    let refused = machine.engine.open_same(task, (task, anon)).unwrap_err().to_string();
    assert_eq!(refused, "there is no file behind object 3 of task 0");
}

#[test]
fn what_will_be_needed_is_read_up_to_a_request_of_the_device() {
    let mut machine = Machine::new(1000, Bdi::default());
    machine.cache(110..=111);
    let object = machine.open();
    let advise = |machine: &mut Machine, page, pages| {
        let step = machine.engine.readahead(machine.task, object, page, pages).unwrap();
        machine.finish(step)
    };
    assert_eq!(advise(&mut machine, 100, 20), [(100, 10), (112, 8)]);
    assert_eq!(advise(&mut machine, 100, 20), []);
    assert_eq!(advise(&mut machine, 200, 500), [(200, 320)]);
    assert_eq!(advise(&mut machine, 990, 500), [(990, 10)]);
    assert_eq!(advise(&mut machine, 5000, 5), []);
    assert_eq!(machine.read(object, (100, 1)), [], "it is there, and no window has been touched");
    machine.engine.check_invariants();
}

#[test]
fn a_reader_waits_for_a_page_that_is_still_being_read_ahead_and_reads_nothing_himself() {
    let mut machine = Machine::new(1000, Bdi::default());
    let object = machine.open();
    machine.read(object, (0, 1));
    let page = |page| Access::new(object, page, false);
    let take = |machine: &mut Machine| {
        let mut ops = Vec::new();
        machine.engine.take_ops(&mut ops);
        ops.iter()
            .filter_map(|op| if let Op::ReadFile { io, .. } = *op { Some(io) } else { None })
            .collect::<Vec<_>>()
    };
    assert!(matches!(machine.engine.start(machine.task, page(1)), Step::Done(Served::Minor(_))));
    let window = take(&mut machine);
    assert_eq!(window.len(), 1, "the mark at page 1 begins the next window");
    for hit in [2, 3] {
        assert_eq!(machine.engine.run_hits(machine.task, &[hit], page), 1);
    }
    assert_eq!(machine.engine.start(machine.task, page(4)), Step::Wait(Wait::Io(IoWait::FileRead)));
    let next = take(&mut machine);
    assert_eq!(next.len(), 1, "page 4 has the mark, seen before it is waited for");
    machine.engine.io_done(window[0], CpuId(0), Ok(()));
    let mut woken = Vec::new();
    machine.engine.take_woken(&mut woken);
    assert_eq!(woken, [machine.task]);
    assert!(matches!(machine.engine.resume(machine.task), Step::Done(Served::Minor(_))));
    assert_eq!(take(&mut machine), []);
}

/// A reader of pages 0 to 4 finds page 2 cached, so that pages 0 and 1 are read while it still reclaims for page 4, for which its
/// group has no room. Meanwhile that read fails.
#[test]
fn a_reader_that_runs_out_of_memory_lets_go_of_the_page_that_readahead_could_not_read() {
    let config = Config { charge_stock: 1, folio_batch: 1, kmem: false, ..Config::default() };
    let mut machine = Machine::with(config, 1000, Bdi::default());
    machine.cache(2..=2);
    let job = machine.engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = machine.engine.process_create(job);
    let task = machine.engine.task_create(mm, CpuId(0));
    let object = machine.engine.open(task, machine.file).unwrap();
    machine.engine.fadvise(task, object, Advice::Random).unwrap();
    let limit = (3 * PAGE_SIZE).to_string();
    assert!(machine.engine.write_file(machine.task, "/sys/fs/cgroup/job/memory.max", &limit).is_ok());

    let access = Access { wanted: 5 * PAGE_SIZE as u32, ..Access::new(object, 0, false) };
    let mut step = machine.engine.start(task, access);
    let mut in_flight = Vec::new();
    while step == Step::Again {
        let mut ops = Vec::new();
        machine.engine.take_ops(&mut ops);
        for op in ops {
            match op {
                Op::ReadFile { io, page: 0, pages: 2, .. } => {
                    machine.engine.io_done(io, CpuId(0), Err(IoError::Device));
                }
                Op::ReadFile { io, .. } => in_flight.push(io),
                _ => {}
            }
        }
        step = machine.engine.resume(task);
    }
    assert!(matches!(step, Step::Done(Served::Failed(AccessError::Oom(_)))), "{step:?}");
    let mut ops = Vec::new();
    machine.engine.take_ops(&mut ops);
    in_flight
        .extend(ops.iter().filter_map(|op| if let Op::ReadFile { io, .. } = *op { Some(io) } else { None }));
    let reading: usize = in_flight.iter().map(|&io| machine.engine.frames_of(io).count()).sum();
    assert_eq!(
        machine.engine.figures().memcg_usage(job),
        reading as u64,
        "the pages still being read are all it has"
    );
}

#[test]
fn pages_that_nobody_has_used_are_counted_until_someone_does_or_they_go() {
    let mut machine = Machine::new(1000, Bdi::default());
    let object = machine.open();
    machine.read(object, (0, 1));
    let stats = |machine: &Machine| machine.engine.figures().readahead_stats();
    assert_eq!(stats(&machine), ReadaheadStats { pages: 3, unused: 3, dropped: 0 });
    machine.read(object, (1, 1));
    assert_eq!(stats(&machine), ReadaheadStats { pages: 11, unused: 10, dropped: 0 });
    assert_eq!(machine.engine.run_hits(machine.task, &[2, 3], |page| Access::new(object, page, false)), 2);
    assert_eq!(stats(&machine), ReadaheadStats { pages: 11, unused: 8, dropped: 0 });
    let (task, file) = (machine.task, machine.file);
    machine.engine.fadvise_dontneed(task, file, 8..9).unwrap();
    assert_eq!(stats(&machine), ReadaheadStats { pages: 11, unused: 7, dropped: 1 });
    machine.engine.check_invariants();
}

#[test]
fn pinned_page_whose_read_fails_is_freed() {
    let mut machine = Machine::new(1000, Bdi::NO_READAHEAD);
    let (task, file, object) = (machine.task, machine.file, machine.open());
    let mut step = machine.engine.start(task, Access::new(object, 0, false));
    // What readahead could not read, the task reads again by itself.
    while matches!(step, Step::Wait(Wait::Io(_))) {
        assert!(machine.engine.pin(file, 0));
        let mut ops = Vec::new();
        machine.engine.take_ops(&mut ops);
        for op in ops {
            if let Op::ReadFile { io, .. } = op {
                machine.engine.io_done(io, CpuId(0), Err(IoError::Device));
            }
        }
        step = machine.engine.resume(task);
    }
    assert_eq!(step, Step::Done(Served::Failed(AccessError::Io)));
    // The batch, which may be the last to hold it, is drained.
    machine.engine.fadvise_dontneed(task, file, 0..1000).unwrap();
    machine.engine.check_invariants();
    assert_eq!(machine.engine.figures().vmstat(Stat::NrFilePages), 0);
    assert!(!machine.read(object, (0, 1)).is_empty(), "it is read again");
    machine.engine.fadvise_dontneed(task, file, 0..1).unwrap();
    assert!(!machine.read(object, (0, 1)).is_empty(), "no pin is left that keeps it");
}

/// Loads from a mapping of a file of 1000 pages, each with the reads of the device that it causes.
struct Mapping {
    machine: Machine,
    object: ObjectId,
}

impl Mapping {
    fn new(fault_around_bytes: u32, advice: Advice) -> Mapping {
        let config = Config { fault_around_bytes, ..Config::default() };
        let mut machine = Machine::with(config, 1000, Bdi::default());
        let object = machine.engine.map_file(machine.task, machine.file, advice, false).unwrap();
        Mapping { machine, object }
    }

    #[track_caller]
    fn check(&mut self, pages: impl IntoIterator<Item = u64>, lines: &str) {
        let mut expected: BTreeMap<u64, Vec<Run>> = lines
            .lines()
            .filter_map(|line| line.split_once("->"))
            .map(|(page, reads)| (page.trim().parse().unwrap(), runs(reads)))
            .collect();
        for page in pages {
            let reads = self.machine.access(Access::new(self.object, page, false));
            assert_eq!(reads, expected.remove(&page).unwrap_or_default(), "loading from page {page}");
        }
        assert_eq!(expected, BTreeMap::new(), "was never loaded from");
        self.machine.engine.check_invariants();
    }

    fn is_mapped(&mut self, page: u64) -> bool {
        let access = |page| Access::new(self.object, page, false);
        self.machine.engine.run_hits(self.machine.task, &[page], access) == 1
    }
}

#[test]
fn a_fault_reads_around_its_page_and_the_marked_page_goes_on() {
    let mut mapping = Mapping::new(65_536, Advice::Normal);
    mapping.check(
        100..110,
        "
        100 -> 84+32
        108 -> 116+32
    ",
    );
    let mut mapping = Mapping::new(4096, Advice::Normal);
    mapping.check(
        100..110,
        "
        100 -> 84+32
        108 -> 116+32
    ",
    );
}

#[test]
fn a_fault_at_the_beginning_reads_from_there_on() {
    Mapping::new(65_536, Advice::Normal).check(
        [5, 24],
        "
        5  -> 0+32
        24 -> 32+32
    ",
    );
}

#[test]
fn fault_around_maps_what_is_cached_in_its_block_but_for_the_marked_page() {
    let mut mapping = Mapping::new(65_536, Advice::Normal);
    mapping.check([100], "100 -> 84+32");
    for page in 84..116 {
        assert_eq!(mapping.is_mapped(page), (96..112).contains(&page) && page != 108, "page {page}");
    }
    let mut mapping = Mapping::new(4096, Advice::Normal);
    mapping.check([100], "100 -> 84+32");
    assert!(mapping.is_mapped(100) && !mapping.is_mapped(101));
}

#[test]
fn a_mapping_that_misses_more_than_it_finds_stops_reading_around() {
    let read_around = |fault_around_bytes| {
        let config = Config { fault_around_bytes, ..Config::default() };
        let mut machine = Machine::with(config, 100_000, Bdi::default());
        let object = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
        let reads = (1..=150).map(|at| machine.access(Access::new(object, 500 * at, false)));
        reads.filter(|reads| reads[0].1 == 32).count()
    };
    assert_eq!(read_around(4096), 100);
    assert_eq!(read_around(65_536), 150, "the neighbours that are mapped with each page tell for it");
}

#[test]
fn advice_to_a_mapping_decides_what_a_fault_reads() {
    Mapping::new(65_536, Advice::Random).check(
        [100, 101, 500],
        "
        100 -> 100
        101 -> 101
        500 -> 500
    ",
    );
    let mut mapping = Mapping::new(65_536, Advice::Sequential);
    mapping.check([0], "0 -> 0+32");
    let mut machine = Machine::new(1000, Bdi::NO_READAHEAD);
    let object = machine.engine.map_file(machine.task, machine.file, Advice::Normal, false).unwrap();
    assert_eq!(machine.access(Access::new(object, 100, false)), [(100, 1)]);
}

#[test]
fn fault_behind_a_new_end_of_file_maps_nothing_around() {
    for page in [20, 3] {
        let Mapping { mut machine, object } = Mapping::new(65_536, Advice::Random);
        machine.cache(0..=1);
        let mm = machine.engine.mm_of(machine.task);
        let other = machine.engine.task_create(mm, CpuId(0));
        let open = machine.engine.open(other, machine.file).unwrap();
        let fault = machine.engine.start(machine.task, Access::new(object, page, false));
        assert!(matches!(fault, Step::Wait(Wait::Io(_))), "{fault:?}");
        let shrink = machine.engine.file_shrink(other, open, 2).unwrap();
        assert!(matches!(shrink, Step::Wait(Wait::Delay(..))), "it waits for the fault: {shrink:?}");
        assert_eq!(machine.finish(fault), [(page, 1)]);
        let mut step = machine.engine.resume(other);
        while step != Step::Done(Served::Truncated) {
            step = machine.engine.resume(other);
        }
        assert_eq!(machine.engine.figures().vmstat(Stat::NrFilePages), 2);
        machine.engine.check_invariants();
    }
}
