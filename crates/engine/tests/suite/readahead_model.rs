//! Readahead of read(2) written a second time, over a set of pages, and compared with the engine call by call.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::readahead::{Machine, Run};
use pageout_engine::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The rules again, over a set of pages, as plainly as they can be said.
struct Naive {
    file_pages: u64,
    bdi: Bdi,
    cached: BTreeSet<u64>,
    marked: BTreeSet<u64>,
    open: Vec<NaiveFile>,
}

#[derive(Clone, Copy)]
struct NaiveFile {
    start: u64,
    size: u64,
    ahead: u64,
    limit: u64,
    /// End of the last call, in bytes.
    position: Option<u64>,
    random: bool,
}

impl Naive {
    fn read(&mut self, open: usize, from: u64, bytes: u64) -> Vec<Run> {
        let end = (from + bytes).min(self.file_pages * PAGE_SIZE);
        let mut reads = Vec::new();
        for page in from / PAGE_SIZE..end.div_ceil(PAGE_SIZE) {
            let wanted = end.div_ceil(PAGE_SIZE) - page;
            if !self.cached.contains(&page) {
                reads.extend(self.sync(open, page, wanted));
            }
            if !self.cached.contains(&page) {
                reads.extend(self.bring(page, 1, None));
            }
            if self.open[open].limit > 0 && self.marked.remove(&page) {
                reads.extend(self.ahead(open, page, wanted));
            }
        }
        self.open[open].position = Some(end);
        reads
    }

    fn limit(&self, open: usize, wanted: u64) -> u64 {
        let (limit, io) = (self.open[open].limit, u64::from(self.bdi.io_pages));
        if wanted > limit && io > limit { wanted.min(io) } else { limit }
    }

    fn sync(&mut self, open: usize, page: u64, wanted: u64) -> Vec<Run> {
        let state = self.open[open];
        if state.limit == 0 || state.random {
            let wanted = if state.limit == 0 { 1 } else { wanted };
            return self.bring(page, wanted.min(state.limit.max(self.bdi.io_pages.into())), None);
        }
        let limit = self.limit(open, wanted);
        let follows =
            state.position.is_some_and(|end| [end / PAGE_SIZE, end / PAGE_SIZE + 1].contains(&page));
        if page == 0 || wanted > limit || follows {
            let power = wanted.next_power_of_two();
            let size = match power {
                _ if 32 * power <= limit => 4 * power,
                _ if 4 * power <= limit => 2 * power,
                _ => limit,
            };
            let ahead = if size > wanted { size - wanted } else { size / 2 };
            return self.window(open, page, size, ahead);
        }
        let mut past = 0;
        while past < limit && past < page && self.cached.contains(&(page - past - 1)) {
            past += 1;
        }
        let from_the_start = past == page && past < limit;
        past = past.min(limit - 1);
        if past <= wanted {
            return self.bring(page, wanted, None);
        }
        let past = if from_the_start { 2 * past } else { past };
        self.window(open, page, limit.min(past + wanted), 1)
    }

    fn ahead(&mut self, open: usize, page: u64, wanted: u64) -> Vec<Run> {
        let (state, limit) = (self.open[open], self.limit(open, wanted));
        let next = |size: u64| match size {
            _ if size < limit / 16 => 4 * size,
            _ if size <= limit / 2 => 2 * size,
            _ => limit,
        };
        if page + state.ahead == state.start + state.size {
            let size = next(state.size).max(state.size);
            return self.window(open, state.start + state.size, size, size);
        }
        match (1..=limit).map(|far| page + far).find(|other| !self.cached.contains(other)) {
            None => Vec::new(),
            Some(start) => {
                let size = next(start - page + wanted);
                self.window(open, start, size, size)
            }
        }
    }

    fn window(&mut self, open: usize, start: u64, size: u64, ahead: u64) -> Vec<Run> {
        self.open[open] = NaiveFile { start, size, ahead, ..self.open[open] };
        let pages = size.min(self.file_pages.saturating_sub(start));
        self.bring(start, pages, (start + pages).checked_sub(ahead).filter(|&mark| mark >= start))
    }

    fn bring(&mut self, start: u64, pages: u64, mark: Option<u64>) -> Vec<Run> {
        let mut reads: Vec<Run> = Vec::new();
        for page in start..(start + pages).min(self.file_pages) {
            if !self.cached.insert(page) {
                continue;
            }
            if mark == Some(page) {
                self.marked.insert(page);
            }
            match reads.last_mut() {
                Some((first, pages)) if *first + *pages == page => *pages += 1,
                _ => reads.push((page, 1)),
            }
        }
        reads
    }
}

/// One thing that readers do.
#[derive(Clone, Copy, Debug)]
enum Transition {
    /// Reads on from where the last call through this open file ended, so many half pages further.
    On {
        open: usize,
        skip: i64,
        halves: u64,
        calls: u64,
    },
    Jump {
        open: usize,
        half: u64,
        halves: u64,
    },
    Advise(usize, Advice),
}

const FILE_PAGES: u64 = 700;

fn transition() -> impl Strategy<Value = Transition> {
    let halves = || prop_oneof![3 => Just(2u64), 3 => 1..20u64, 1 => 1..200u64, 1 => 1..900u64];
    let skip = prop_oneof![5 => Just(0i64), 1 => -40..40i64];
    let advice =
        prop_oneof![3 => Just(Advice::Normal), 1 => Just(Advice::Random), 1 => Just(Advice::Sequential)];
    prop_oneof![
        10 => (0..2usize, skip, halves(), 1..12u64)
            .prop_map(|(open, skip, halves, calls)| Transition::On { open, skip, halves, calls }),
        3 => (0..2usize, 0..2 * FILE_PAGES, halves()).prop_map(|(open, half, halves)| Transition::Jump { open, half, halves }),
        1 => (0..2usize, advice).prop_map(|(open, advice)| Transition::Advise(open, advice)),
    ]
}

fn play(bdi: Bdi, transitions: &[Transition]) {
    let half = PAGE_SIZE / 2;
    let mut machine = Machine::new(FILE_PAGES, bdi);
    let objects = [machine.open(), machine.open()];
    let file =
        NaiveFile { start: 0, size: 0, ahead: 0, limit: bdi.ra_pages.into(), position: None, random: false };
    let mut naive = Naive {
        file_pages: FILE_PAGES,
        bdi,
        cached: BTreeSet::new(),
        marked: BTreeSet::new(),
        open: vec![file; 2],
    };
    let mut positions = [0u64; 2];
    for &transition in transitions {
        let mut read = |open: usize, from: u64, halves: u64| {
            let from = from % (FILE_PAGES * PAGE_SIZE);
            let reads = machine.read_bytes(objects[open], from, halves * half);
            assert_eq!(reads, naive.read(open, from, halves * half), "{transition:?} from byte {from} on");
            naive.open[open].position.expect("a call has ended")
        };
        match transition {
            Transition::On { open, skip, halves, calls } => {
                let mut at = positions[open].saturating_add_signed(skip * half as i64);
                (0..calls).for_each(|_| at = read(open, at, halves));
                positions[open] = at;
            }
            Transition::Jump { open, half: first, halves } => {
                positions[open] = read(open, first * half, halves)
            }
            Transition::Advise(open, advice) => {
                machine.engine.fadvise(machine.task, objects[open], advice).unwrap();
                let limit = u64::from(bdi.ra_pages) * if advice == Advice::Sequential { 2 } else { 1 };
                let state = &mut naive.open[open];
                match advice {
                    Advice::Random => state.random = true,
                    _ => (state.random, state.limit) = (false, limit),
                }
            }
        }
    }
    machine.engine.check_invariants();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_readers_cause_the_reads_that_the_rules_say(
        ra_pages in prop_oneof![Just(32u32), Just(16), Just(128), 0..70u32],
        io_pages in prop_oneof![Just(320u32), Just(0), 1..100u32],
        transitions in prop::collection::vec(transition(), 1..60),
    ) {
        play(Bdi { ra_pages, io_pages, file_system: FileSystem::None }, &transitions);
    }
}
