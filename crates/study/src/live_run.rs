//! A scenario run by the live machine: its files, regions and swap are real, and its tasks are threads.
//!
//! ```text
//!   Scenario ──▶ plan: what the live machine has of it ──▶ Memory, groups, files, regions
//!                  └─▶ the first key that it does not have        │
//!   accesses of each task, as in the simulator ──────────▶ threads ──▶ kernel files and times ──▶ metrics
//! ```
//! Metrics have the names of the simulator's, so that one relation can be checked on both. Each page has its number in
//! its first bytes, and each access checks it. CPUs, prices and devices of the scenario are not used: they are those of
//! this machine. There are two exceptions. Swap on a device of preset `pmem` is a file in memory. Files on a device with
//! `seek_latency` are on an emulated disk.

mod plan; // what the live machine has of a scenario
mod place; // files and regions, with a number in each page
mod tasks; // threads that make the accesses
mod counters; // kernel files as metrics

use std::path::Path;
use std::time::Duration;

use pageout_live::engine::PAGE_SIZE;
use pageout_live::{Delay, EmulatedDisk, Limits, Memory, Node, Zswap};
use pageout_sim::scenario::Scenario;

use crate::error::{During as _, Error};
use crate::result::metrics::Metric;
use crate::watch::Watcher;
pub(crate) use place::buffered;
use place::{Disk, Place};
use plan::{Head, Plan};

/// Runs a scenario on real memory. Its files and swap are in `folder` while it runs. Nothing if a signal came. Errors: the
/// scenario has a key that the live machine lacks, or an access failed.
pub(crate) fn run(
    scenario: &Scenario,
    folder: &Path,
    watcher: &dyn Watcher,
) -> Result<Option<Vec<Metric>>, Error> {
    let plan = Plan::of(scenario)?;
    let disk = Disk::create(&plan, folder)?;
    let memory = memory(&plan, folder)?;
    let head = plan.disk.map(head);
    let groups = plan.groups.iter().map(|group| {
        let made = memory.group(&group.name, Limits::NONE).during(|| format!("cgroup {}", group.name))?;
        for (file, value) in &group.files {
            made.write(file, value).during(|| format!("{}/{file}", group.name))?;
        }
        Ok(made)
    });
    let groups = groups.collect::<Result<Vec<_>, Error>>()?;
    let place = Place { plan: &plan, memory: &memory, groups: &groups, disk: &disk, watcher, head };
    let Some(done) = tasks::run(&place, watcher)? else { return Ok(None) };
    counters::metrics(&memory, &plan, &done).map(Some)
}

/// The emulated disk of all files.
fn head(head: Head) -> EmulatedDisk {
    let nanos = Duration::from_nanos;
    EmulatedDisk::new(nanos(head.latency_ns), head.bytes_per_second)
        .seek(nanos(head.seek_ns), head.seek_span)
        .follows(nanos(head.follows_ns))
}

/// A file system in memory, for swap on a device of memory.
const IN_MEMORY: &str = "/dev/shm";

/// Corrections of a budget until its frames are as many as a scenario has pages.
const CORRECTIONS_MAX: u32 = 4;

/// The memory that the plan asks for. With cgroups it is the scenario's and some MiB more for the machine's own data, as the cgroups are limited. Otherwise
/// it has as many frames as the scenario has pages.
fn memory(plan: &Plan<'_>, folder: &Path) -> Result<Memory, Error> {
    let pages = plan.pages();
    let mut budget = plan.memory + plan.memory / 16 + pages * 16 + plan.swap / 128 + (16 << 20);
    let mut memory = build(plan, folder, budget)?;
    if !plan.groups.is_empty() {
        return Ok(memory);
    }
    let wanted = plan.memory / PAGE_SIZE;
    // A budget also has records of frames. So a correction by the frames alone leaves 2 % of the difference.
    for _ in 0..CORRECTIONS_MAX {
        let frames = memory.stats().during(|| "stats".to_string())?.frames;
        if frames == wanted {
            break;
        }
        drop(memory);
        budget = (budget + wanted * PAGE_SIZE).saturating_sub(frames * PAGE_SIZE);
        memory = build(plan, folder, budget)?;
    }
    Ok(memory)
}

fn build(plan: &Plan<'_>, folder: &Path, budget: u64) -> Result<Memory, Error> {
    let pages = plan.pages();
    let mut builder = Memory::builder()
        .budget(budget)
        .files((pages * PAGE_SIZE).max(PAGE_SIZE))
        .policy(&plan.policy)
        .io_threads(2);
    if let Some(slow) = plan.slow {
        let delay = Delay::per_page(Duration::from_nanos(slow.delay_ns));
        builder = builder.node(Node::slow(slow.bytes).emulated(delay));
    }
    if plan.swap > 0 {
        let folder = if plan.swaps_in_memory { Path::new(IN_MEMORY) } else { folder };
        builder = builder.swap_file(folder, plan.swap);
    }
    if plan.zswap {
        builder = builder.zswap(Zswap::lz4());
    }
    for (name, value) in &plan.rules {
        builder = builder.rule(name, value);
    }
    for (name, value) in &plan.sysctls {
        builder = builder.sysctl(name, value);
    }
    let memory = builder.read_ahead(plan.read_ahead).build();
    let memory = memory.during(|| "the scenario's machine on real memory".to_string())?;
    for (path, value) in &plan.kernel_files {
        memory.write(path, value).during(|| path.clone())?;
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::scenario::load::{Changes, load};
    use crate::scenario::source::Source;

    const SCENARIO: &str = r#"
        [machine]
        memory = "32MiB"
        [[memcg]]
        path = "/load"
        memory.max = "4MiB"
        [[swap]]
        size = "16MiB"
        [[task]]
        name = "load"
        memcg = "/load"
        object = [
            { channel = "anonymous", size = "6MiB", workload = { pattern = "zipf", alpha = 0.8, ops = 4_000, write_ratio = 0.5 } },
            { channel = "file", size = "6MiB", advice = "random", workload = { pattern = "zipf", alpha = 0.8, ops = 4_000 } },
        ]
        [[task]]
        name = "after"
        memcg = "/load"
        after = "load"
        loops = 2
        object = [{ channel = "file", size = "1MiB", request_size = "64KiB", workload = { pattern = "sequential" } }]
    "#;

    fn scenario(text: &str) -> Scenario {
        let source = Source::parse(&PathBuf::from("live.toml"), text.to_string()).unwrap();
        load(&source, &Changes::default(), &[], &()).unwrap()
    }

    fn value(metrics: &[Metric], name: &str) -> f64 {
        metrics.iter().find(|metric| metric.full_name() == name).unwrap_or_else(|| panic!("{name}")).value
    }

    #[test]
    fn scenario_on_real_memory_reclaims_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = run(&scenario(SCENARIO), folder.path(), &()).unwrap().unwrap();
        assert_eq!(value(&metrics, "task load: accesses"), 8_000.0);
        assert_eq!(value(&metrics, "task after: accesses"), 512.0);
        for name in ["pgscan", "workingset_refault_anon", "workingset_refault_file"] {
            assert!(value(&metrics, &format!("memcg /load: {name}")) > 0.0, "{name}");
        }
        assert!(value(&metrics, "/proc/vmstat: pswpout") > 0.0);
        assert!(value(&metrics, "memcg /load: anon") > 0.0, "gauges are read before the tasks' memory goes");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn scenario_with_zswap_compresses_on_real_memory() {
        let folder = tempfile::tempdir().unwrap();
        let text = SCENARIO.replacen(
            "[machine]",
            "[kernel]\nzswap.enabled = true\nzswap.shrinker_enabled = true\n[machine]",
            1,
        );
        let contents =
            "size = \"6MiB\", compressed_min = 0.1, compressed_max = 0.9, same_filled = 0.1, workload";
        let text = text.replacen("size = \"6MiB\", workload", contents, 1);
        let metrics = run(&scenario(&text), folder.path(), &()).unwrap().unwrap();
        let [stores, back] =
            ["zswpout", "zswpwb"].map(|name| value(&metrics, &format!("memcg /load: {name}")));
        assert!(stores > 500.0 && back > 0.0, "{stores} stores, {back} written back");
        assert_eq!(value(&metrics, "zswap: stores"), stores);
        assert!(value(&metrics, "writeback: rotations of written pages, queued") > 0.0);
        let off = run(&scenario(SCENARIO), folder.path(), &()).unwrap().unwrap();
        assert_eq!(value(&off, "memcg /load: zswpout"), 0.0);
    }

    const HEAD: &str = r#"
        [machine]
        memory = "8MiB"
        [[device]]
        name = "disk"
        preset = "hdd"
        read_latency = "2ms"
        read_p99 = "2ms"
        write_latency = "2ms"
        write_p99 = "2ms"
        seek_latency = "1ms"
        [[task]]
        name = "load"
        object = [{ channel = "file", size = "4MiB", advice = "random", workload = { pattern = "uniform", ops = 40 } }]
    "#;

    #[test]
    fn files_on_a_disk_with_a_head_take_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let metrics = run(&scenario(HEAD), folder.path(), &()).unwrap().unwrap();
        let times = ["access p50_ns", "access p99_ns", "access longest_ns"]
            .map(|name| value(&metrics, &format!("task load: {name}")));
        assert!(times[0] >= 2e6 && times.is_sorted(), "{times:?}");
        assert!(value(&metrics, "task load: runtime_ns") >= 40.0 * 2e6);
        // Without a cgroup the machine has the scenario's memory.
        let scenario = scenario(HEAD);
        let plan = Plan::of(&scenario).unwrap();
        let frames = memory(&plan, folder.path()).unwrap().stats().unwrap().frames;
        assert!((2047..=2049).contains(&frames), "{frames} frames, expected 2,048");
    }

    #[test]
    fn disk_that_the_live_machine_can_not_emulate_is_refused() {
        let refused = |from: &str, to: &str| {
            let text = HEAD.replacen(from, to, 1);
            assert_ne!(text, HEAD, "{from}");
            let scenario = scenario(&text);
            let refused = Plan::of(&scenario).err().unwrap_or_else(|| panic!("{to}")).to_string();
            assert!(refused.contains("device[0]"), "{refused}");
            refused
        };
        assert!(refused("read_p99 = \"2ms\"", "read_p99 = \"9ms\"").contains("read_p99 = read_latency"));
        assert!(refused("preset = \"hdd\"", "preset = \"hdd\"\nqueue_depth = 4").contains("queue_depth = 1"));
        assert!(refused("preset = \"hdd\"", "preset = \"hdd\"\nscheduler = \"cfq\"").contains("mq-deadline"));
        assert!(
            refused(
                "write_latency = \"2ms\"\n        write_p99 = \"2ms\"",
                "write_latency = \"3ms\"\n        write_p99 = \"3ms\""
            )
            .contains("equal latencies")
        );
    }

    #[test]
    fn page_with_the_number_of_another_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(SCENARIO);
        let plan = Plan::of(&scenario).unwrap();
        let disk = Disk::create(&plan, folder.path()).unwrap();
        let memory = memory(&plan, folder.path()).unwrap();
        let group = memory.group("load", Limits::NONE).unwrap();
        let place =
            Place { plan: &plan, memory: &memory, groups: &[group], disk: &disk, watcher: &(), head: None };
        let mut target = place.target(0, 1, &scenario.task[0].object[1]).unwrap();
        target.access(3, false).unwrap();
        let place::Target::File { file, .. } = &target else { panic!("object 1 is a file") };
        file.write_at(&9_u64.to_le_bytes(), 3 * 4096).unwrap();
        let told = target.access(3, false).unwrap_err().to_string();
        assert!(told.contains("found the number 9 in it, expected 4"), "{told}");
    }

    #[test]
    fn keys_that_the_live_machine_lacks_are_refused() {
        let with = |from: &str, to: &str| {
            let text = SCENARIO.replacen(from, to, 1);
            assert_ne!(text, SCENARIO, "{from}");
            match Plan::of(&scenario(&text)) {
                Ok(_) => panic!("{to}"),
                Err(error) => error.to_string(),
            }
        };
        let zram = "size = \"16MiB\"\nkind = \"zram\"";
        assert!(with("size = \"16MiB\"", zram).contains("swap[0].kind"));
        assert!(with("loops = 2", "loops = 2\nthink_time = \"1us\"").contains("task[1].think_time"));
        assert!(with("loops = 2", "loops = 2\ncopies = 2").contains("task[1].copies"));
        assert!(with("channel = \"anonymous\"", "locked = true, channel = \"anonymous\"").contains("locked"));
        assert!(with("\"4MiB\"", "\"50%\"").contains("expected a size"));
        let machine = "memory = \"32MiB\"";
        assert!(with(machine, "memory = \"32MiB\"\nzone_dma = true").contains("machine.zone_dma"));
        let switch = "[kernel]\nsched.numa_balancing.scan_delay_ms = 5\n[machine]";
        assert!(with("[machine]", switch).contains("kernel.sched.numa_balancing.scan_delay_ms"));
        let random = "pattern = \"uniform\", ops = 9";
        assert!(with("pattern = \"sequential\"", random).contains("task[1].loops"));
    }

    #[test]
    fn scenarios_of_live_chapters_are_accepted_at_each_side() {
        use crate::reproduce::place::{LIVE_CHAPTERS, Place};

        for (name, _) in LIVE_CHAPTERS {
            let place = Place::find_live(name).unwrap();
            let chapter = place.chapter().unwrap();
            for experiment in &chapter.experiment {
                let source = place.scenario(&experiment.scenario).unwrap();
                for side in &chapter.side {
                    let settings = experiment.settings(side, None);
                    let scenario = load(&source, &Changes::default(), &settings, &()).unwrap();
                    let refused = Plan::of(&scenario).err();
                    assert!(refused.is_none(), "{name}, {}: {refused:?}", side.name);
                }
            }
        }
    }
}
