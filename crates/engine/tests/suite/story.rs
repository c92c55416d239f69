//! Events: a run is the same with and without them, and the events agree with each other.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use std::collections::{BTreeMap, BTreeSet};

use pageout_engine::*;

const PAGES: u64 = 64;
const ACCESSES: u64 = 30_000;

/// A task with an open and a mapped file, tmpfs, and a heap, in a group with room for half of it all; swap on a device.
fn engine(policy: Policy) -> (Engine, TaskId) {
    let mut builder = Engine::builder(Config { policy, charge_stock: 1, ..Config::default() }).unwrap();
    builder.swap_on(SwapSpec { pages: 1000, kind: SwapKind::Device }).unwrap();
    let mut engine = builder.build();
    let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
    let mm = engine.process_create(memcg);
    let task = engine.task_create(mm, CpuId(0));
    for kind in [FileKind::Regular, FileKind::Tmpfs] {
        let file = engine
            .file_create(FileSpec { name: format!("{kind:?}"), pages: PAGES, kind, bdi: Bdi::NO_READAHEAD })
            .unwrap();
        engine.open(task, file).unwrap();
        engine.map_file(task, file, Advice::Normal, false).unwrap();
    }
    engine.map_anon(task, PAGES, Advice::Normal).unwrap();
    let limit = (2 * PAGES * PAGE_SIZE).to_string();
    let step = engine.write_file(task, "/sys/fs/cgroup/job/memory.max", &limit).unwrap();
    assert_eq!(step, Step::Done(Served::Written { reclaimed: 0 }));
    (engine, task)
}

/// Everything that can be seen of a run from outside, and what was told.
struct Run {
    ops: Vec<Op>,
    vmstat: String,
    stat: String,
    states: Vec<Option<PageState>>,
    told: Vec<StoryEvent>,
}

fn run(policy: Policy, filter: Option<StoryFilter>) -> Run {
    let (mut engine, task) = engine(policy);
    if let Some(filter) = filter {
        engine.tell_story(filter);
    }
    let (mut all, mut told, mut seed) = (Vec::new(), Vec::new(), 1u64);
    for at in 0..ACCESSES {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let object = (seed >> 60) as u32 % 5;
        // The lower of two: some pages are more popular than others.
        let page = ((seed >> 20) % PAGES).min((seed >> 40) % PAGES);
        let write = object >= 2 && seed >> 33 & 3 == 0 || object == 4;
        engine.set_now(Nanos(at * 100_000));
        let mut step = engine.start(task, Access::new(ObjectId(object), page, write));
        loop {
            let mut ops = Vec::new();
            engine.take_ops(&mut ops);
            all.extend(ops.iter().cloned());
            for op in ops {
                if let Op::ReadFile { io, .. } | Op::ReadSwap { io, .. } | Op::WriteSwap { io, .. } = op {
                    engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            engine.take_story(&mut told);
            match step {
                Step::Done(Served::Failed(error)) => panic!("access {at}: {error}"),
                Step::Done(_) => break,
                Step::Again | Step::Wait(_) => step = engine.resume(task),
            }
        }
    }
    engine.check_invariants();
    let mut read = |path: &str| engine.read_file(path).unwrap();
    let (vmstat, stat) = (read("/proc/vmstat"), read("/sys/fs/cgroup/job/memory.stat"));
    let states = every_page().iter().map(|&page| engine.figures().page_state(page)).collect();
    Run { ops: all, vmstat, stat, states, told }
}

fn every_page() -> BTreeSet<PageName> {
    let files =
        (0..2).flat_map(|file| (0..PAGES).map(move |page| PageName::File { file: FileId(file), page }));
    // Mappings begin at 2 MiB boundaries; the heap is the third.
    let heap = (0..PAGES).map(|page| PageName::Anon { mm: MmId(0), page: 2 * 512 + page });
    files.chain(heap).collect()
}

fn steps(run: &Run) -> BTreeMap<PageName, Vec<(PageState, PageEvent)>> {
    let mut steps: BTreeMap<PageName, Vec<(PageState, PageEvent)>> = BTreeMap::new();
    for event in &run.told {
        if let Told::Page { page, state, event } = &event.told {
            steps.entry(*page).or_default().push((*state, event.clone()));
        }
    }
    steps
}

#[test]
fn telling_changes_no_decision_and_no_counter() {
    for profile in PROFILES {
        let silent = run(profile.policy(), None);
        assert!(silent.told.is_empty());
        for filter in [StoryFilter::Pages(every_page()), StoryFilter::Evictions(None)] {
            let telling = run(profile.policy(), Some(filter));
            assert!(!telling.told.is_empty(), "{}", profile.name);
            assert_eq!(telling.vmstat, silent.vmstat, "{}", profile.name);
            assert_eq!(telling.stat, silent.stat, "{}", profile.name);
            assert_eq!(telling.states, silent.states, "{}", profile.name);
            assert!(telling.ops == silent.ops, "{}", profile.name);
        }
    }
}

#[test]
fn a_page_is_read_before_it_is_isolated_and_isolated_before_it_is_evicted() {
    for profile in PROFILES {
        let run = run(profile.policy(), Some(StoryFilter::Pages(every_page())));
        let mut evictions = 0;
        for (page, steps) in steps(&run) {
            let (mut in_memory, mut isolated) = (false, false);
            for (_, event) in steps {
                match event {
                    PageEvent::Filled { .. } => {
                        assert!(!in_memory, "{}: {page:?} is read while it is in memory", profile.name);
                        in_memory = true;
                    }
                    PageEvent::Isolated => isolated = true,
                    PageEvent::Placed { .. } => isolated = false,
                    PageEvent::Evicted { .. } => {
                        assert!(in_memory && isolated, "{}: {page:?}", profile.name);
                        (in_memory, isolated) = (false, false);
                        evictions += 1;
                    }
                    _ => {}
                }
            }
        }
        assert!(evictions > 1000, "{}: {evictions}", profile.name);
    }
}

#[test]
fn evictions_told_alone_are_those_told_among_everything() {
    for profile in PROFILES {
        let of = |filter| -> Vec<(Nanos, PageName)> {
            let run = run(profile.policy(), Some(filter));
            let evicted = run.told.iter().filter_map(|event| match event.told {
                Told::Page { page, event: PageEvent::Evicted { .. }, .. } => Some((event.at, page)),
                _ => None,
            });
            evicted.collect()
        };
        assert_eq!(of(StoryFilter::Evictions(None)), of(StoryFilter::Pages(every_page())));
    }
}

#[test]
fn a_refault_says_which_numbers_made_it_recent() {
    for profile in PROFILES {
        let run = run(profile.policy(), Some(StoryFilter::Pages(every_page())));
        let refaults: Vec<(RefaultRule, bool)> = steps(&run)
            .into_values()
            .flatten()
            .filter_map(|(_, event)| match event {
                PageEvent::Refaulted { rule, recent, .. } => Some((rule, recent)),
                _ => None,
            })
            .collect();
        assert!(refaults.len() > 1000, "{}", profile.name);
        for (rule, recent) in refaults {
            let expected = match rule {
                RefaultRule::Distance { distance, room } => distance <= room,
                RefaultRule::OldestGeneration { evicted_from, oldest, .. } => evicted_from == oldest,
                RefaultRule::AnyGeneration { evicted_from, youngest, count } => {
                    youngest - evicted_from < count
                }
                RefaultRule::NoGenerations
                | RefaultRule::CountOnly
                | RefaultRule::OtherGroup
                | RefaultRule::RemovedGroup => false,
            };
            assert_eq!(recent, expected, "{}: {rule:?}", profile.name);
        }
    }
}

#[test]
fn a_page_is_protected_only_where_the_numbers_told_say_so() {
    let run = run(Policy::of("mglru@6.12"), Some(StoryFilter::Pages(every_page())));
    let mut protected = 0;
    for (state, event) in steps(&run).into_values().flatten() {
        let PageEvent::Protected { tier, limit, spared, at_top, .. } = event else { continue };
        protected += 1;
        assert_eq!(state.tier, Some(tier));
        assert!(usize::from(tier) > limit.highest || at_top);
        if let (Some(reference), false) = (limit.reference, at_top) {
            let dearer = spared.refaulted * (reference.total + 64) * reference.gain
                > (reference.refaulted + 1) * spared.total * spared.gain;
            assert!(dearer && spared.refaulted >= 64, "{spared:?} against {reference:?}");
        }
    }
    assert!(protected > 0);
}

#[test]
fn only_6_12_takes_a_referenced_page_for_one_that_a_neighbour_led_to() {
    let looked_at = |policy: Policy| {
        let run = run(policy, Some(StoryFilter::Pages(every_page())));
        let is_looked_at = |told: &&StoryEvent| {
            let Told::Page { event, .. } = &told.told else { return false };
            matches!(event, PageEvent::Judged { because: Because::NeighbourLooked, .. })
        };
        run.told.iter().filter(is_looked_at).count()
    };
    let alone = |mut policy: Policy| {
        policy.group.harvest.look_around = false;
        policy
    };
    assert!(looked_at(Policy::of("mglru@6.12")) > 0);
    assert_eq!(looked_at(alone(Policy::of("mglru@6.12"))), 0, "where nothing looks around");
    // There isolation leaves REFERENCED, which then says nothing of neighbours.
    assert_eq!(looked_at(alone(Policy::of("mglru@6.16"))), 0);
    assert_eq!(looked_at(Policy::of("mglru@6.16")), 0);
}

#[test]
fn who_asks_for_evictions_is_told_of_nothing_else() {
    for profile in PROFILES {
        let run = run(profile.policy(), Some(StoryFilter::Evictions(None)));
        for event in &run.told {
            let is_eviction = matches!(&event.told, Told::Page { event: PageEvent::Evicted { .. }, .. });
            assert!(is_eviction, "{}: {event:?}", profile.name);
        }
    }
}
