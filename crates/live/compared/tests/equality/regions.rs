//! One engine, two hosts: one thread reads and writes a region and a file, live and in the simulator, on a device without latency. Both hosts have the same
//! counters, and the same decisions on each page of the region. [live-3 9]
//!
//! The engine does not see hits of a mapped region. The live host records what its engine learns: faults, samples of the used pages, and whether a page that is to
//! leave stays because it is in use. The simulator gets the same faults and answers, and its engine must ask the same questions in the same order.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::made::{Made, draws};
use crate::sequence::{FILE, REGION, accesses};
use crate::told::{Story, comparable};
use pageout::{File, Limits, MapEvent, MapOptions, MappedRegion, Memory, Open, Region, RegionOptions};
use pageout_engine::{AccessedBits, FrameGate, MmId, PROFILES, Pfn};
use pageout_sim::{LoneReader, Observer};
use pageout_workload::{Access, AccessStream, InMemory};

const PAGE: u64 = 4096;
const FILE_PAGES: u64 = 1000;
const REGION_PAGES: u64 = 1500;
const LIMIT: u64 = 300 * PAGE;
/// With this value all profiles evict pages of regions as well as of files.
const SWAPPINESS: &str = "150";
const SWAP: u64 = 16 << 20;
const ACCESSES: usize = 4000;
/// One comparison.
#[derive(Clone, Copy, Debug)]
struct Case {
    profile: &'static str,
    /// Accesses to the file, of ten.
    of_file: u64,
    is_mapped: bool,
}

fn followed() -> impl Iterator<Item = u64> {
    (0..8).chain((8..REGION_PAGES).step_by(60))
}

/// The counters of a host's group, and the decisions on the followed pages.
struct Said {
    counters: String,
    story: Vec<String>,
}

fn told(mut read: impl FnMut(&str) -> String) -> String {
    let group =
        ["memory.stat", "memory.current", "memory.swap.current", "memory.events", "memory.swap.events"]
            .map(|file| read(&format!("/sys/fs/cgroup/tenant/{file}")))
            .concat();
    let vmstat = read("/proc/vmstat");
    let vmstat: Vec<&str> = comparable(&vmstat).collect();
    let generations = read("/sys/kernel/debug/lru_gen");
    let without_ages = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [seq, _, anon, file] => format!("{seq} {anon} {file}"),
        _ => line.trim().to_owned(),
    };
    let generations: Vec<String> = generations.lines().map(without_ages).collect();
    format!("{group}{}\n{}", vmstat.join("\n"), generations.join("\n"))
}

/// What the live engine has learned.
#[derive(Default)]
struct Recorded {
    accesses: Vec<Access>,
    samples: VecDeque<(Range<u64>, Vec<u64>)>,
    closes: VecDeque<bool>,
}

/// Answers of a live host, in order.
struct Replayed<T> {
    answers: VecDeque<T>,
    /// Questions that the live engine has not asked, or asked in another order; and answers that are left.
    others: Arc<AtomicU64>,
}

impl AccessedBits for Replayed<(Range<u64>, Vec<u64>)> {
    fn gather(&mut self, _: MmId, pages: Range<u64>, accessed: &mut Vec<u64>) {
        match self.answers.pop_front() {
            Some((asked, used)) if asked == pages => accessed.extend(used),
            _ => _ = self.others.fetch_add(1, SeqCst),
        }
    }
}

impl FrameGate for Replayed<bool> {
    fn close(&mut self, _: Pfn) -> bool {
        self.answers.pop_front().unwrap_or_else(|| {
            self.others.fetch_add(1, SeqCst);
            true
        })
    }

    fn open(&mut self, _: Pfn) {}
}

impl<T> Drop for Replayed<T> {
    fn drop(&mut self) {
        self.others.fetch_add(self.answers.len() as u64, SeqCst);
    }
}

fn simulated(memory: &Memory, case: Case, recorded: Recorded) -> Said {
    let Recorded { accesses, samples, closes } = recorded;
    let others = Arc::new(AtomicU64::new(0));
    let samples = Box::new(Replayed { answers: samples, others: Arc::clone(&others) });
    let closes = Box::new(Replayed { answers: closes, others: Arc::clone(&others) });
    let (config, slots) = (memory.config(), SWAP / PAGE);
    let reader = match case.is_mapped {
        true => LoneReader::with_samples(config, "tenant", slots, (samples, closes)),
        false => LoneReader::with_swap(config, "tenant", slots),
    };
    let mut reader = reader.unwrap();
    reader.write("/sys/fs/cgroup/tenant/memory.max", &LIMIT.to_string()).unwrap();
    reader.write("/proc/sys/vm/swappiness", SWAPPINESS).unwrap();
    reader.open(FILE_PAGES, true).unwrap();
    reader.map(REGION_PAGES, followed()).unwrap();
    let accesses: Arc<[Access]> = accesses.into();
    let source = move |_| Ok(Box::new(InMemory::new(Arc::clone(&accesses))) as Box<dyn AccessStream>);
    let mut story = Story::default();
    let mut machine = reader.run(Box::new(source), &mut story).unwrap();
    let counters = told(|path| machine.engine_mut().read_file(path).unwrap());
    drop(machine);
    let others = others.load(SeqCst);
    Said { counters: format!("{counters}\nother questions {others}"), story: story.0 }
}

/// The live host's file, and the contents of its region.
struct Live {
    file: File,
    buf: Vec<u8>,
    /// The last write of each page of the region, by its number.
    versions: Vec<u64>,
}

impl Live {
    fn read_file(&mut self, page: u64) {
        self.file.read_at(&mut self.buf, page * PAGE).unwrap();
        assert_eq!(self.buf[..8], page.to_le_bytes());
    }

    /// Accesses an explicit region.
    fn access(&mut self, region: &Region, accesses: Vec<Access>) -> Recorded {
        for (at, access) in accesses.iter().enumerate() {
            let page = access.page();
            if access.object() == FILE {
                self.read_file(page);
                continue;
            }
            let (buf, version) = (&mut self.buf, &mut self.versions[page as usize]);
            if access.is_write() {
                *version = 1 + at as u64;
                buf.fill(0);
                buf[..8].copy_from_slice(&version.to_le_bytes());
                region.write_at(buf, page * PAGE).unwrap();
            } else if at % 2 == 0 {
                region.read_at(buf, page * PAGE).unwrap();
                assert_eq!(buf[..8], version.to_le_bytes());
            } else {
                assert_eq!(region.page(page).unwrap()[..8], version.to_le_bytes());
            }
        }
        Recorded { accesses, ..Recorded::default() }
    }

    /// Accesses a mapped region, and records what the engine learns of that.
    fn access_mapped(&mut self, map: &MappedRegion, accesses: &[Access]) -> Recorded {
        map.record();
        let mut recorded = Recorded::default();
        for (at, access) in accesses.iter().enumerate() {
            let page = access.page();
            if access.object() == FILE {
                recorded.accesses.push(*access);
                self.read_file(page);
            } else {
                let version = &mut self.versions[page as usize];
                let next = access.is_write().then_some(1 + at as u64);
                assert_eq!(swap(map, page, next), *version, "page {page}");
                *version = next.unwrap_or(*version);
            }
            for event in map.take_record().unwrap() {
                match event {
                    MapEvent::Access { page, write } => {
                        recorded.accesses.push(Access::new(REGION, page, write));
                    }
                    MapEvent::Sample { pages, used } => recorded.samples.push_back((pages, used)),
                    MapEvent::Close { is_closed } => recorded.closes.push_back(is_closed),
                }
            }
        }
        recorded
    }
}

/// Loads the first word of a page, and then stores another one.
fn swap(map: &MappedRegion, page: u64, next: Option<u64>) -> u64 {
    assert!((page + 1) * PAGE <= map.len());
    let word = map.as_mut_ptr().wrapping_add((page * PAGE) as usize).cast::<u64>();
    // SAFETY: the word is in the region, by the line above, and the region exists. Only this thread uses it.
    unsafe {
        let before = word.read_volatile();
        next.into_iter().for_each(|next| word.write_volatile(next));
        before
    }
}

fn live(memory: &Memory, file: &Path, case: Case, accesses: Vec<Access>) -> (Said, Recorded) {
    let tenant = memory.group("tenant", Limits { max: Some(LIMIT), ..Limits::NONE }).unwrap();
    let file = memory.open(file, Open::read().random().buffered(true).group(&tenant)).unwrap();
    let (buf, versions) = (vec![0; PAGE as usize], vec![0; REGION_PAGES as usize]);
    let mut live = Live { file, buf, versions };
    let said = || {
        let counters = told(|path| memory.read(path).unwrap());
        let mut story = Story::default();
        memory.take_story().unwrap().iter().for_each(|event| story.story(event));
        Said { counters: format!("{counters}\nother questions 0"), story: story.0 }
    };
    if case.is_mapped {
        let options = MapOptions::new().group(&tenant).handlers(1);
        let map = memory.map_region(REGION_PAGES * PAGE, options).unwrap();
        map.follow(followed()).unwrap();
        let recorded = live.access_mapped(&map, &accesses);
        (said(), recorded)
    } else {
        let region = memory.region(REGION_PAGES * PAGE, RegionOptions::new().group(&tenant)).unwrap();
        memory.follow_region(&region, followed()).unwrap();
        let recorded = live.access(&region, accesses);
        (said(), recorded)
    }
}

/// The differences between both hosts, if there are any.
fn compared(path: &Path, case: Case) -> Option<String> {
    // By the rules of 2010 a reclaimer sometimes sleeps for a tenth of a second, which is real time in the live host.
    let count = if case.profile.contains("2010") { ACCESSES / 2 } else { ACCESSES };
    let accesses = accesses(draws(7), case.of_file, [FILE_PAGES, REGION_PAGES], count);
    let builder = Memory::builder().budget(16 << 20).files(16 << 20).policy(case.profile).io_threads(0);
    let builder = builder.sysctl("vm.swappiness", SWAPPINESS);
    let builder = builder.swap_file(std::env::temp_dir(), SWAP).swap_buffered(true);
    let memory = builder.build().unwrap();
    let (live, recorded) = live(&memory, path, case, accesses);
    let (faults, samples) = (recorded.accesses.len(), recorded.samples.len());
    let simulated = simulated(&memory, case, recorded);
    let is_kernel = ["classic", "mglru"].iter().any(|lists| case.profile.starts_with(lists));
    assert!(!(case.is_mapped && is_kernel) || samples > 50, "{case:?}: {faults} faults, {samples} samples");
    let is_tried = |zero: &str| !simulated.counters.contains(zero);
    assert!(is_tried("pswpin 0\n") && is_tried("pswpout 0\n"), "{case:?}: {}", simulated.counters);
    assert!(simulated.story.len() > 3 * followed().count(), "{case:?}: {:#?}", simulated.story);
    let pairs = live.counters.lines().zip(simulated.counters.lines());
    let mut lines: Vec<_> = pairs
        .filter(|(live, simulated)| live != simulated)
        .map(|(live, simulated)| format!("{live} | {simulated}"))
        .collect();
    if live.counters.lines().count() != simulated.counters.lines().count() {
        lines.push(format!("{} | {}", live.counters, simulated.counters));
    }
    let stories = live.story.iter().zip(&simulated.story);
    // Only the first different decision is shown: the later ones follow from it.
    match stories.enumerate().find(|(_, (live, simulated))| live != simulated) {
        Some((at, (live, simulated))) => lines.push(format!("event {at}: {live} | {simulated}")),
        None if live.story.len() != simulated.story.len() => {
            lines.push(format!("{} events | {}", live.story.len(), simulated.story.len()));
        }
        None => {}
    }
    (!lines.is_empty()).then(|| format!("{case:?}: {lines:#?}"))
}

/// Compares both hosts with all profiles.
fn compare_all(is_mapped: bool) {
    let made = Made::empty(if is_mapped { "mapped" } else { "regions" });
    let mut bytes = vec![0; (FILE_PAGES * PAGE) as usize];
    for (page, bytes) in (0_u64..).zip(bytes.chunks_mut(PAGE as usize)) {
        bytes[..8].copy_from_slice(&page.to_le_bytes());
    }
    std::fs::write(&made.0, bytes).unwrap();
    let cases: Vec<Case> = PROFILES
        .iter()
        .flat_map(|profile| [0, 4].map(|of_file| Case { profile: profile.name, of_file, is_mapped }))
        .collect();
    let differ: Vec<Case> = std::thread::scope(|scope| {
        let made = &made;
        let all: Vec<_> =
            cases.iter().map(|&case| (case, scope.spawn(move || compared(&made.0, case)))).collect();
        all.into_iter().filter_map(|(case, one)| one.join().unwrap().map(|_| case)).collect()
    });
    // Periodic work follows the real clock in the live host only. On a busy machine it falls into a run, so such a case is compared again, alone.
    let differ: Vec<String> = differ.into_iter().filter_map(|case| compared(&made.0, case)).collect();
    assert!(
        differ.is_empty(),
        "{} of {}: live | simulated\n{}",
        differ.len(),
        cases.len(),
        differ.join("\n")
    );
}

#[test]
fn regions_and_files_leave_the_same_counters_and_stories_live_and_simulated() {
    compare_all(false);
}

#[test]
fn mapped_regions_and_files_leave_the_same_counters_and_stories_live_and_simulated() {
    compare_all(true);
}
