//! The compressed pool beside the simulator: the same counters and decisions, where the simulator gets the live cache's answers about contents.
//! [live-3 9]

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::pages::{contents, draws};
use crate::sequence::{FILE, accesses};
use crate::told::{Story, comparable};

use pageout::{Builder, Limits, Memory, Open, RegionOptions, Zswap, ZswapAnswer};
use pageout_engine::{PAGE_SIZE, PROFILES, PageContents, Pfn};
use pageout_sim::{LoneReader, Observer};
use pageout_workload::{Access, AccessStream, InMemory};

const PAGE: usize = PAGE_SIZE as usize;
const FILE_PAGES: u64 = 600;
const REGION_PAGES: u64 = 900;
const LIMIT: u64 = 250 * PAGE_SIZE;
const SWAP: u64 = 16 << 20;
/// With this value all profiles evict pages of regions as well as of files.
const SWAPPINESS: &str = "150";
const ACCESSES: usize = 2500;

fn builder() -> Builder {
    let builder = Memory::builder().budget(16 << 20).files(16 << 20).zswap(Zswap::lz4());
    builder.swap_file(std::env::temp_dir(), SWAP).swap_buffered(true)
}

/// The answers of a live cache, in order.
struct Replayed {
    answers: VecDeque<ZswapAnswer>,
    /// Questions that the live engine has not asked, or asked in another order.
    others: Arc<AtomicU64>,
}

impl PageContents for Replayed {
    fn repeated_word(&mut self, _: Pfn) -> Option<u64> {
        match self.answers.pop_front() {
            Some(ZswapAnswer::Word(word)) => word,
            _ => {
                self.others.fetch_add(1, SeqCst);
                None
            }
        }
    }

    fn compressed_bytes(&mut self, _: Pfn) -> u16 {
        match self.answers.pop_front() {
            Some(ZswapAnswer::Bytes(bytes)) => bytes,
            _ => {
                self.others.fetch_add(1, SeqCst);
                PAGE_SIZE as u16
            }
        }
    }
}

fn counters(mut read: impl FnMut(&str) -> String) -> Vec<String> {
    let group =
        ["memory.stat", "memory.current", "memory.swap.current", "memory.zswap.current", "memory.events"]
            .map(|file| read(&format!("/sys/fs/cgroup/tenant/{file}")))
            .concat();
    let debug = ["stored_pages", "pool_total_size", "same_filled_pages", "reject_compress_poor"]
        .map(|file| format!("{file} {}", read(&format!("/sys/kernel/debug/zswap/{file}"))))
        .concat();
    let vmstat = read("/proc/vmstat");
    let lines = group.lines().chain(debug.lines()).chain(comparable(&vmstat));
    lines.map(str::to_owned).collect()
}

fn followed() -> impl Iterator<Item = u64> {
    (0..8).chain((8..REGION_PAGES).step_by(50))
}

fn live(memory: &Memory, path: &PathBuf, accesses: &[Access]) -> (Vec<String>, Vec<String>) {
    let tenant = memory.group("tenant", Limits { max: Some(LIMIT), ..Limits::NONE }).unwrap();
    let file = memory.open(path, Open::read().random().buffered(true).group(&tenant)).unwrap();
    let region = memory.region(REGION_PAGES * PAGE_SIZE, RegionOptions::new().group(&tenant)).unwrap();
    memory.follow_region(&region, followed()).unwrap();
    let mut buf = vec![0; PAGE];
    let mut versions = vec![0_u64; REGION_PAGES as usize];
    for (at, access) in accesses.iter().enumerate() {
        let (page, version) = (access.page(), &mut versions[access.page() as usize]);
        if access.object() == FILE {
            file.read_at(&mut buf, page * PAGE_SIZE).unwrap();
        } else if access.is_write() {
            // Now and then a page is zeroes again.
            *version = if at % 11 == 0 { 0 } else { 1 + at as u64 };
            region.write_at(&contents(page, *version), page * PAGE_SIZE).unwrap();
        } else if at % 2 == 0 {
            region.read_at(&mut buf, page * PAGE_SIZE).unwrap();
            assert!(buf == contents(page, *version), "page {page}, version {version}");
        } else {
            assert!(*region.page(page).unwrap() == contents(page, *version), "page {page}, {version}");
        }
    }
    let counters = counters(|path| memory.read(path).unwrap());
    let mut story = Story::default();
    memory.take_story().unwrap().iter().for_each(|event| story.story(event));
    (counters, story.0)
}

/// The differences between the hosts, if there are any.
fn compared(path: &PathBuf, profile: &str, of_file: u64) -> Option<String> {
    // By the rules of 2010 a reclaimer sometimes sleeps for a tenth of a second, which is real time in the live host.
    let count = if profile.contains("2010") { ACCESSES * 3 / 5 } else { ACCESSES };
    let accesses = accesses(draws(7 + of_file), of_file, [FILE_PAGES, REGION_PAGES], count);
    let memory = builder()
        .record_zswap_answers()
        .policy(profile)
        .io_threads(0)
        .sysctl("vm.swappiness", SWAPPINESS)
        .build()
        .unwrap();
    let (live, live_story) = live(&memory, path, &accesses);
    let answers = memory.zswap_answers();
    let others = Arc::new(AtomicU64::new(0));
    let replayed = Replayed { answers: answers.into(), others: Arc::clone(&others) };
    let config = memory.config();
    let mut reader =
        LoneReader::with_contents(config, "tenant", SWAP / PAGE_SIZE, Some(Box::new(replayed))).unwrap();
    reader.write("/sys/fs/cgroup/tenant/memory.max", &LIMIT.to_string()).unwrap();
    reader.write("/proc/sys/vm/swappiness", SWAPPINESS).unwrap();
    reader.open(FILE_PAGES, true).unwrap();
    reader.map(REGION_PAGES, followed()).unwrap();
    let accesses: Arc<[Access]> = accesses.into();
    let source = move |_| Ok(Box::new(InMemory::new(Arc::clone(&accesses))) as Box<dyn AccessStream>);
    let mut story = Story::default();
    let mut machine = reader.run(Box::new(source), &mut story).unwrap();
    let simulated = counters(|path| machine.engine_mut().read_file(path).unwrap());
    let is_tried = |zero: &str| !simulated.iter().any(|line| line == zero);
    assert!(is_tried("zswpin 0") && is_tried("zswpout 0") && is_tried("swpout_zero 0"), "{simulated:#?}");
    let pairs = live.iter().zip(&simulated).filter(|(live, simulated)| live != simulated);
    let mut lines: Vec<_> = pairs.map(|(live, simulated)| format!("{live} | {simulated}")).collect();
    if live.len() != simulated.len() {
        lines.push(format!("{} lines | {}", live.len(), simulated.len()));
    }
    if others.load(SeqCst) > 0 {
        lines.push(format!("{} questions differ", others.load(SeqCst)));
    }
    // Only the first different decision is shown: the later ones follow from it.
    match live_story.iter().zip(&story.0).find(|(live, simulated)| live != simulated) {
        Some((live, simulated)) => lines.push(format!("{live} | {simulated}")),
        None if live_story.len() != story.0.len() => {
            lines.push(format!("{} events | {}", live_story.len(), story.0.len()));
        }
        None => {}
    }
    (!lines.is_empty()).then(|| format!("{profile}, {of_file} of ten accesses to a file: {lines:#?}"))
}

#[test]
fn compressed_pages_leave_the_same_counters_live_and_simulated() {
    let path = std::env::temp_dir().join(format!("pageout-compressed-{}", std::process::id()));
    std::fs::write(&path, vec![7; (FILE_PAGES * PAGE_SIZE) as usize]).unwrap();
    let cases: Vec<_> =
        PROFILES.iter().flat_map(|profile| [0, 4].map(|of_file| (profile.name, of_file))).collect();
    let differ: Vec<_> = std::thread::scope(|scope| {
        let path = &path;
        let compared =
            |case: (&'static str, u64)| (case, scope.spawn(move || compared(path, case.0, case.1).is_some()));
        let all: Vec<_> = cases.iter().copied().map(compared).collect();
        all.into_iter().filter_map(|(case, one)| one.join().unwrap().then_some(case)).collect()
    });
    // Periodic work follows the real clock in the live host only. On a busy machine it falls into a run, so such a case is compared again, alone.
    let differ: Vec<String> =
        differ.into_iter().filter_map(|(profile, of_file)| compared(&path, profile, of_file)).collect();
    std::fs::remove_file(&path).unwrap();
    assert!(differ.is_empty(), "{}: live | simulated\n{}", differ.len(), differ.join("\n"));
}
