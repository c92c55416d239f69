//! One engine, two machines: what one thread reads and writes here and in the simulator, on a device without latency, leaves the same counters, and each
//! page has the same story where files are read.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::made::Made;
use pageout::{Delay, Limits, Memory, Node, Open};
use pageout_engine::{Nanos, PROFILES, StoryEvent};
use pageout_sim::{LoneReader, Observer};
use pageout_workload::{Access, AccessStream, InMemory};

const PAGE: u64 = 4096;
const PAGES: u64 = 2000;
const LIMIT: u64 = 600 * PAGE;
const ACCESSES: usize = 2500;
/// As the simulated device has it.
const READ_AHEAD: u64 = 128 << 10;

/// What is compared.
#[derive(Clone, Copy, Debug)]
struct Case {
    profile: &'static str,
    is_random: bool,
    /// There is slow memory, and whether pages that are read again are promoted from it.
    promotes: Option<bool>,
    /// Some accesses write, and whether they write parts of their pages.
    writes: Option<bool>,
}

/// So many writes are followed by a sync.
const SYNC_EVERY: u32 = 20;

/// Returns true if an access writes.
fn is_write(case: Case, at: usize) -> bool {
    case.writes.is_some() && at * 7 % 10 < 3
}

/// What is written to files of the kernel before anything is read: with promotion, all pages come into slow memory at first.
fn settings(case: Case) -> Vec<(&'static str, String)> {
    let mut settings = vec![("/sys/fs/cgroup/tenant/memory.max", LIMIT.to_string())];
    if let Some(promotes) = case.promotes {
        settings.push(("/sys/kernel/mm/numa/pagecache_promotion_enabled", u8::from(promotes).to_string()));
        // How soon a page must be read again goes by the clock, which stands still in the simulator.
        settings.push(("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms", "1000000".to_owned()));
        settings.push(("/sys/fs/cgroup/tenant/cpuset.mems", if promotes { "1" } else { "0-1" }.to_owned()));
    }
    settings
}

/// Pages that are read: some hot ones over and over, single ones from anywhere, and runs from front to back.
fn pages(seed: u64, hot: u64) -> Vec<u64> {
    let mut state = seed;
    let mut draw = |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let mut pages = Vec::new();
    while pages.len() < ACCESSES {
        match draw(8) {
            0 => {
                let first = draw(PAGES - 100);
                pages.extend(first..first + draw(60) + 1);
            }
            1..3 => pages.push(draw(PAGES)),
            _ => pages.extend([draw(hot); 2]),
        }
    }
    pages
}

/// Pages whose stories are compared: of the hot ones, and of all.
fn followed() -> impl Iterator<Item = u64> {
    (0..8).chain((8..PAGES).step_by(60))
}

/// What was decided on them.
#[derive(Default)]
struct Story(Vec<StoryEvent>);

impl Story {
    /// Returns true if it is compared. With promotion it says how long ago pages were read, which stands still in the simulator; and writes of a
    /// sync, of which several are under way, end in whatever order the device likes. Of both counters alone are compared.
    fn is_compared(case: Case) -> bool {
        case.promotes != Some(true) && case.writes.is_none()
    }

    /// Without the time at which it was, and without the number of the task: here one of several, there one that is alone.
    fn told(case: Case, events: Vec<StoryEvent>) -> Vec<String> {
        let tell = |event| {
            let told = format!("{:?}", StoryEvent { at: Nanos::ZERO, ..event });
            let parts = told.split("TaskId(").map(|part| part.trim_start_matches(char::is_numeric));
            parts.collect::<Vec<_>>().join("TaskId(")
        };
        if Story::is_compared(case) { events.into_iter().map(tell).collect() } else { Vec::new() }
    }
}

impl Observer for Story {
    fn story(&mut self, event: &StoryEvent) {
        self.0.push(event.clone());
    }
}

/// What a machine's group has to say when all was read, and the story of the pages that are followed.
#[derive(PartialEq)]
struct Said {
    counters: String,
    story: Vec<String>,
}

/// What the simulator's has to say, and how often reclaim has woken the flusher.
fn simulated(memory: &Memory, pages: &[u64], case: Case) -> (Said, u64) {
    let mut reader = LoneReader::new(memory.config(), "tenant").unwrap();
    settings(case).into_iter().for_each(|(path, value)| reader.write(path, &value).unwrap());
    reader.open(PAGES, case.is_random).unwrap();
    reader.follow(followed());
    if let Some(are_partial) = case.writes {
        reader.sync_every(SYNC_EVERY, are_partial).unwrap();
    }
    let access = |(at, &page)| Access::new(0, page, is_write(case, at));
    let accesses: Arc<[Access]> = pages.iter().enumerate().map(access).collect();
    let source = move |_| Ok(Box::new(InMemory::new(Arc::clone(&accesses))) as Box<dyn AccessStream>);
    let mut story = Story::default();
    let mut machine = reader.run(Box::new(source), &mut story).unwrap();
    let counters = told(case, |path| machine.engine_mut().read_file(path).unwrap());
    let said = Said { counters, story: Story::told(case, story.0) };
    (said, machine.engine().figures().flusher_wakeups())
}

/// Counters of the group, of the machine and of its nodes, and the generations, without what is told in milliseconds.
fn told(case: Case, mut read: impl FnMut(&str) -> String) -> String {
    let stat = read("/sys/fs/cgroup/tenant/memory.stat");
    let current = read("/sys/fs/cgroup/tenant/memory.current");
    let vmstat = read("/proc/vmstat");
    let of_files = |line: &&str| {
        [
            "pgscan",
            "pgsteal",
            "workingset",
            "pgactivate",
            "pgdeactivate",
            "pgrefill",
            "nr_inactive",
            "nr_active",
            "nr_file_pages",
            "allocstall",
            "pgpromote",
            "pgdemote",
            "pgmigrate",
            "numa_",
            "nr_dirtied",
            "nr_written",
            "nr_vmscan",
            "pgpgin",
            "pgpgout",
        ]
        .iter()
        .any(|name| line.starts_with(name))
    };
    let vmstat: Vec<&str> = vmstat.lines().filter(of_files).collect();
    let generations = read("/sys/kernel/debug/lru_gen");
    let without_ages = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [seq, _, anon, file] => format!("{seq} {anon} {file}"),
            _ => line.trim().to_owned(),
        }
    };
    let generations: Vec<String> = generations.lines().map(without_ages).collect();
    let nodes = match case.promotes {
        Some(_) => {
            let both =
                [0, 1].map(|node| read(&format!("/sys/devices/system/node/node{node}/vmstat"))).concat();
            // What a CPU keeps of free pages goes by the clock.
            both.lines()
                .filter(|line| !line.starts_with("nr_free_pages"))
                .fold(String::new(), |all, line| all + line + "\n")
        }
        None => String::new(),
    };
    format!("{stat}{current}{}\n{}\nnodes\n{nodes}", vmstat.join("\n"), generations.join("\n"))
}

/// The same of real memory and a real file.
fn live(memory: &Memory, file: &Path, pages: &[u64], case: Case) -> Said {
    let tenant = memory.group("tenant", Limits::NONE).unwrap();
    settings(case).into_iter().for_each(|(path, value)| memory.write(path, &value).unwrap());
    let how = if case.writes.is_some() { Open::read_write() } else { Open::read() };
    let how = how.buffered(true).group(&tenant);
    let file = memory.open(file, if case.is_random { how.random() } else { how }).unwrap();
    memory.follow(&file, followed()).unwrap();
    let mut buf = vec![0; PAGE as usize];
    let mut unsynced = 0;
    for (at, &page) in pages.iter().enumerate() {
        if unsynced == SYNC_EVERY {
            file.sync_data().unwrap();
            unsynced = 0;
        }
        if is_write(case, at) {
            buf[..8].copy_from_slice(&page.to_le_bytes());
            let bytes = if case.writes == Some(true) { &buf[..100] } else { &buf[..] };
            file.write_at(bytes, page * PAGE).unwrap();
            unsynced += 1;
        } else {
            file.read_at(&mut buf, page * PAGE).unwrap();
            assert_eq!(buf[..8], page.to_le_bytes());
        }
    }
    let counters = told(case, |path| memory.read(path).unwrap());
    Said { counters, story: Story::told(case, memory.take_story().unwrap()) }
}

/// How a case ended.
#[derive(PartialEq)]
enum Outcome {
    Same,
    /// Reclaim has woken the flusher, which writes beside whoever goes on reading: when, and so what reclaim finds dirty, is left to chance.
    Raced,
    Differs(String),
}

fn compared(path: &Path, pages: &[u64], case: Case) -> Outcome {
    let mut builder =
        Memory::builder().budget(12 << 20).policy(case.profile).io_threads(0).read_ahead(READ_AHEAD);
    if case.promotes.is_some() {
        let slow = Node::slow(4 << 20).emulated(Delay::per_page(Duration::ZERO));
        builder = builder.budget(16 << 20).node(slow);
    }
    let memory = builder.build().unwrap();
    let own = case.writes.map(|are_partial| {
        let own =
            Made::empty(&format!("{}-{}-{are_partial}", case.profile.replace('@', "-"), case.is_random));
        std::fs::copy(path, &own.0).unwrap();
        own
    });
    let path = own.as_ref().map_or(path, |own| &own.0);
    let live = live(&memory, path, pages, case);
    let (simulated, flusher_wakeups) = simulated(&memory, pages, case);
    let mut not_tried = vec!["pgscan 0\n"];
    not_tried.push(match case.promotes {
        // A reader of 2010 is told of fewer accesses, and some of these are writes.
        None if case.writes.is_some() && case.profile.contains("2010") => "",
        None => "workingset_refault_file 0\n",
        // Lists of a textbook don't tell which pages are in use.
        Some(true) if !case.profile.contains("lru@") && !case.profile.contains("classic@") => "",
        Some(true) => "pgpromote_success 0\n",
        Some(false) => "pgdemote_direct 0\n",
    });
    let is_told = !Story::is_compared(case) || simulated.story.len() > followed().count();
    assert!(is_told, "{case:?}: {:?}", simulated.story);
    let (of_all, _) = simulated.counters.split_once("\nnodes\n").expect("they come last");
    not_tried.retain(|zero| !zero.is_empty() && of_all.contains(zero));
    assert!(not_tried.is_empty(), "{case:?}: {not_tried:?}\n{}", simulated.counters);
    let counters = live.counters.lines().zip(simulated.counters.lines());
    let lines = counters.filter(|(live, simulated)| live != simulated);
    let mut lines: Vec<_> = lines.map(|(live, simulated)| format!("{live} | {simulated}")).collect();
    // Where stories part, nothing that follows says more.
    let stories = live.story.iter().zip(&simulated.story);
    if let Some((at, (live, simulated))) =
        stories.enumerate().find(|(_, (live, simulated))| live != simulated)
    {
        lines.push(format!("event {at}: {live} | {simulated}"));
    } else if live.story.len() != simulated.story.len() {
        lines.push(format!("{} events | {}", live.story.len(), simulated.story.len()));
    }
    match live == simulated {
        _ if flusher_wakeups > 0 => Outcome::Raced,
        true => Outcome::Same,
        false => Outcome::Differs(format!("{case:?}: {lines:#?}")),
    }
}

#[test]
fn every_profile_leaves_the_same_counters_and_stories_live_and_simulated() {
    let made = Made::empty("all");
    let mut bytes = vec![0; (PAGES * PAGE) as usize];
    for (page, bytes) in (0_u64..).zip(bytes.chunks_mut(PAGE as usize)) {
        bytes[..8].copy_from_slice(&page.to_le_bytes());
    }
    std::fs::write(&made.0, bytes).unwrap();
    let (of_one_node, of_two) = (pages(7, 400), pages(7, 16));
    let outcomes = std::thread::scope(|scope| {
        let compare = |case: Case| {
            // The rules of 2010 have a reclaimer sleep for a tenth of a second now and then, here for real.
            let share = if case.profile.contains("2010") { 3 + 2 * usize::from(!case.is_random) } else { 1 };
            let pages = if case.promotes.is_some() { &of_two } else { &of_one_node };
            let (path, pages) = (&made.0, &pages[..pages.len() / share]);
            move || (case, compared(path, pages, case))
        };
        let cases =
            [(true, None), (false, None), (false, Some(false)), (false, Some(true)), (true, Some(true))];
        let reads = cases.map(|(is_random, promotes)| (is_random, promotes, None));
        let writes = [(true, None, Some(true)), (false, None, Some(false))];
        let each = PROFILES.iter().flat_map(|profile| {
            let case =
                |(is_random, promotes, writes)| Case { profile: profile.name, is_random, promotes, writes };
            reads.into_iter().chain(writes).map(case)
        });
        let all: Vec<_> = each.map(|case| scope.spawn(compare(case))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    let told = |(_, outcome): &(Case, Outcome)| match outcome {
        Outcome::Differs(told) => Some(told.clone()),
        _ => None,
    };
    let differ: Vec<String> = outcomes.iter().filter_map(told).collect();
    assert!(differ.is_empty(), "live | simulated\n{}", differ.join("\n"));
    // Reads wake no flusher, and few profiles have reclaim do it before a sync has written what is dirty.
    let raced: Vec<Case> =
        outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Raced).map(|&(case, _)| case).collect();
    println!("left to chance: {raced:?}");
    assert!(raced.iter().all(|case| case.writes.is_some()) && raced.len() <= PROFILES.len() / 2, "{raced:?}");
}
