//! One engine, two machines: what one thread reads here and in the simulator, on a device without latency, leaves the same counters.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

use std::path::Path;
use std::sync::Arc;

use pageout::{Limits, Memory, Open};
use pageout_engine::{Advice, Bdi, CpuId, Engine, FileKind, FileSpec, MemcgId, Nanos, PROFILES, Step};
use pageout_sim::cost::{Channel, Costs};
use pageout_sim::device::{DeviceSpec, Latency};
use pageout_sim::{Machine, MachineSpec, TaskSpec};
use pageout_workload::{Access, AccessStream, InMemory};

const PAGE: u64 = 4096;
const PAGES: u64 = 2000;
const LIMIT: u64 = 600 * PAGE;
const ACCESSES: usize = 2500;

/// Pages that are read: some hot ones over and over, single ones from anywhere, and runs from front to back.
fn pages(seed: u64) -> Vec<u64> {
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
            _ => pages.extend([draw(400); 2]),
        }
    }
    pages
}

/// What the simulator's group has to say when all was read.
fn simulated(memory: &Memory, pages: &[u64], is_random: bool) -> String {
    let mut engine = Engine::new(memory.config().clone()).unwrap();
    let group = engine.memcg_create(MemcgId::ROOT, "tenant").unwrap();
    let mm = engine.process_create(group);
    let task = engine.task_create(mm, CpuId(0));
    let path = "/sys/fs/cgroup/tenant/memory.max";
    assert!(matches!(engine.write_file(task, path, &LIMIT.to_string()), Ok(Step::Done(_))));
    let spec =
        FileSpec { name: "data".to_owned(), pages: PAGES, kind: FileKind::Regular, bdi: Bdi::default() };
    let file = engine.file_create(spec).unwrap();
    let object = engine.open(task, file).unwrap();
    if is_random {
        engine.fadvise(task, object, Advice::Random).unwrap();
    }
    let device = DeviceSpec {
        read: Latency::Constant(Nanos::ZERO),
        tail: None,
        sequential: None,
        iops_max: None,
        read_bandwidth: u64::MAX,
        ..DeviceSpec::preset("nvme").expect("it is a preset")
    };
    let spec = MachineSpec {
        costs: Costs::free(),
        devices: vec![device],
        files: vec![(file, 0)],
        ..MachineSpec::default()
    };
    let mut machine = Machine::new(engine, spec).unwrap();
    let accesses: Arc<[Access]> = pages.iter().map(|&page| Access::new(0, page, false)).collect();
    let source =
        Box::new(move |_| Ok(Box::new(InMemory::new(Arc::clone(&accesses))) as Box<dyn AccessStream>));
    machine.task_add(TaskSpec::new(task, "reader", "/tenant", vec![Channel::File], source)).unwrap();
    machine.run(&mut ()).unwrap();
    told(|path| machine.engine_mut().read_file(path).unwrap())
}

/// Counters of the group and of the machine, and the generations, without what is told in milliseconds.
fn told(mut read: impl FnMut(&str) -> String) -> String {
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
    format!("{stat}{current}{}\n{}\n", vmstat.join("\n"), generations.join("\n"))
}

/// The same of real memory and a real file.
fn live(memory: &Memory, file: &Path, pages: &[u64], is_random: bool) -> String {
    let tenant = memory.group("tenant", Limits { max: Some(LIMIT), ..Limits::NONE }).unwrap();
    let how = Open::read().buffered(true).group(&tenant);
    let file = memory.open(file, if is_random { how.random() } else { how }).unwrap();
    let mut buf = vec![0; PAGE as usize];
    for &page in pages {
        file.read_at(&mut buf, page * PAGE).unwrap();
        assert_eq!(buf[..8], page.to_le_bytes());
    }
    told(|path| memory.read(path).unwrap())
}

/// What is not the same under a profile, if anything.
fn difference(profile: &str, path: &Path, pages: &[u64], is_random: bool) -> Option<String> {
    let memory = Memory::builder().budget(12 << 20).policy(profile).io_threads(0).build().unwrap();
    let (live, simulated) = (live(&memory, path, pages, is_random), simulated(&memory, pages, is_random));
    let is_tried = ["workingset_refault_file 0\n", "pgscan 0\n"].iter().all(|zero| !simulated.contains(zero));
    assert!(is_tried, "{profile}: nothing was evicted and read again\n{simulated}");
    let lines = live.lines().zip(simulated.lines()).filter(|(live, simulated)| live != simulated);
    let lines: Vec<_> = lines.map(|(live, simulated)| format!("{live} | {simulated}")).collect();
    (live != simulated).then(|| format!("{profile}, random: {is_random}: {lines:#?}"))
}

#[test]
fn every_profile_leaves_the_same_counters_live_and_simulated() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("equality-{}", std::process::id()));
    let mut bytes = vec![0; (PAGES * PAGE) as usize];
    for (page, bytes) in (0_u64..).zip(bytes.chunks_mut(PAGE as usize)) {
        bytes[..8].copy_from_slice(&page.to_le_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let pages = pages(7);
    let compared = std::thread::scope(|scope| {
        let compare = |profile: &'static str, is_random: bool| {
            // The rules of 2010 have a reclaimer sleep for a tenth of a second now and then, here for real.
            let share = if profile.contains("2010") { 3 + 2 * usize::from(!is_random) } else { 1 };
            let (path, pages) = (&path, &pages[..pages.len() / share]);
            move || difference(profile, path, pages, is_random)
        };
        let each =
            PROFILES.iter().flat_map(|profile| [true, false].map(|is_random| (profile.name, is_random)));
        let all: Vec<_> = each.map(|(profile, is_random)| scope.spawn(compare(profile, is_random))).collect();
        all.into_iter().filter_map(|one| one.join().unwrap()).collect::<Vec<String>>()
    });
    std::fs::remove_file(&path).unwrap();
    assert!(compared.is_empty(), "live | simulated\n{}", compared.join("\n"));
}
