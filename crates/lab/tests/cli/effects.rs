//! Each value that a scenario accepts changes something: the words of a switch or choice differ from each other, and two numbers of a key from
//! its default, in some shipped scenario. A value that changes nothing is one that the result reports as without effect.
//!
//! `KEY=sysctl.vm.page cargo test ... effects -- --ignored` tries the keys whose path contains `sysctl.vm.page`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pageout_sim::scenario::keys::{Accepts, KEYS, Key};
use pageout_study::result::notes;
use serde_json::Value;

use super::{binary, scenarios};

/// The tables that are covered: those of the machine and its kernel. The others describe the load and the study. A key of a task, an object, a file
/// or a workload changes which accesses there are, and keys of variants, expectations and events change what is done with a run.
const TABLES: &[&str] = &["machine.", "device[].", "swap[].", "kernel.", "sysctl.", "memcg[]."];

/// Keys that are names: another name changes nothing but the name.
const NAMES: &[&str] = &["memcg[].path", "device[].name"];

/// Values to try where those that follow from the range do not bind in a machine of some MiB and a run of some seconds.
const VALUES: &[(&str, &[&str])] = &[
    ("device[].min_ratio", &["5", "40"]),
    // Up to 64 the window is that of a device that says nothing.
    ("device[].optimal_io_kb", &["128", "1024"]),
    // Less than the median is refused.
    ("device[].read_p99", &["1ms", "20ms"]),
    ("device[].write_p99", &["1ms", "20ms"]),
    ("machine.hints.counters", &["16", "1024"]),
    ("machine.hints.drain", &["10us", "5ms"]),
    ("machine.hints.epoch", &["0s", "1ms"]),
    // Ordinary memory takes 95 ns.
    ("machine.hints.min_latency", &["100ns", "1us"]),
    ("machine.hints.overhead", &["0ns", "10us"]),
    ("machine.hints.period", &["10", "1000"]),
    ("machine.hints.ring", &["1", "16"]),
    // Of one page by default.
    ("machine.hints.threshold", &["1", "1000"]),
    ("machine.hints.unit", &["16KiB", "64KiB"]),
    ("machine.node[].adistance", &["600", "1000000"]),
    ("machine.node[].cpus", &["2", "3"]),
    // Of two nodes the larger counts, and the others are 20 and 50 away.
    ("machine.node[].distance", &["100", "254"]),
    ("machine.node[].distances", &["[10, 11, 200]", "[10, 200, 11]"]),
    ("machine.node[].interleave_weight", &["2", "50"]),
    ("machine.node[].reserved", &["8MiB", "64MiB"]),
    // 1 ns by default.
    ("machine.price.hotness_walk", &["0ns", "100us"]),
    ("machine.remote_bandwidth", &["1MB/s", "1GB/s"]),
    ("machine.remote_latency", &["0s", "1us"]),
    ("machine.tlb_entries", &["64", "1024"]),
    (
        "swap[].compressed_deciles",
        &[
            "1 100 200 300 400 500 600 700 800 900 1000",
            "1000 2000 3000 3100 3200 3300 3400 3500 3600 3700 4096",
        ],
    ),
    // Up to 12 bits hold the same time.
    ("kernel.last_cpupid_bits", &["14", "21"]),
    ("kernel.memcg.stat_flush_phase", &["500ms", "1s"]),
    ("kernel.numa.pagecache_promote_pages_per_work", &["16", "256"]),
    ("kernel.numa.promotion_governor_ms", &["10", "1000"]),
    // Of the 64 that `mechanisms-tiers.toml` has.
    ("kernel.pghot.kmigrated_batch_nr", &["128", "1024"]),
    ("kernel.pghot.klruscand_interval_ms", &["50", "1000"]),
    ("kernel.sched.numa_balancing.hot_threshold_ms", &["1", "100"]),
    ("kernel.sched.numa_balancing.scan_delay_ms", &["10", "3000"]),
    ("kernel.sched.numa_balancing.scan_period_max_ms", &["1000", "1500"]),
    ("kernel.sched.numa_balancing.scan_size_mb", &["1", "64"]),
    ("memcg[].cpuset.mems", &["0", "1"]),
    // Of the distinct pages that a group touches: within what the machine has.
    ("memcg[].memory.soft_limit_in_bytes", &["5%", "20%"]),
    // The shipped runs promote some MiB/s.
    ("swap[].device", &["disk"]),
    ("swap[].memory_limit", &["1MiB", "4MiB"]),
    ("sysctl.kernel.numa_balancing_promote_rate_limit_MBps", &["1", "4"]),
    ("sysctl.vm.dirty_background_bytes", &["262144", "33554432"]),
    ("sysctl.vm.dirty_bytes", &["1048576", "67108864"]),
    ("sysctl.vm.laptop_mode", &["1", "30"]),
    // 0 is computed.
    ("sysctl.vm.min_free_kbytes", &["2048", "16384"]),
    // Nearly all of the node is such pages.
    ("sysctl.vm.min_unmapped_ratio", &["98", "100"]),
    // By address it counts as 5 at most.
    ("sysctl.vm.page-cluster", &["0", "5"]),
    // Where a zone mixes types once before kswapd comes, each factor but 0 raises the mark by a pageblock.
    ("sysctl.vm.watermark_boost_factor", &["0", "1", "1000000"]),
    // 1 to 7 are refused.
    ("sysctl.vm.percpu_pagelist_high_fraction", &["8", "100"]),
    // What was reported five times has been promoted for less.
    ("sysctl.vm.pghot_freq_threshold", &["1", "3"]),
    // 0 stands for 3000 or 5000.
    ("sysctl.vm.pghot_promote_freq_window_ms", &["100", "1000"]),
    // Nodes 0 and 1 are those with processors.
    ("sysctl.vm.pghot_target_nid", &["1"]),
];

/// Keys that decide by how elements of a list differ, so that one of them gets the value, and not all.
const ELEMENTS: &[(&str, &str)] = &[
    ("machine.node[].adistance", "machine.node.1.adistance"),
    ("machine.node[].cpus", "machine.node.1.cpus"),
    ("machine.node[].distance", "machine.node.1.distance"),
    ("machine.node[].distances", "machine.node.0.distances"),
    ("machine.node[].interleave_weight", "machine.node.2.interleave_weight"),
    // A class of memory next to ordinary memory.
    ("machine.node[].preset", "machine.node.1.preset"),
    ("swap[].priority", "swap.1.priority"),
];

/// A run in which a key binds: scenario, variant, and settings.
type Place = (&'static str, Option<&'static str>, &'static [&'static str]);

const TIERS: Place = ("mechanisms-tiers.toml", None, &[]);
const OF_2010: Place = ("writeback-from-reclaim.toml", None, &["kernel.profile=classic@2010"]);
const THIRD_FAULT: &str = "regressions/t5-hot-at-the-third-fault.toml";
/// Processors that sample their accesses, and memory that counts them.
const SAMPLING: Place =
    ("mechanisms-tiers.toml", None, &["sysctl.vm.pghot_record_hwhints_enable=1", "machine.hints.period=100"]);
const COUNTING: Place = (
    "mechanisms-tiers.toml",
    None,
    &["sysctl.vm.pghot_record_hwhints_enable=1", "machine.hints.preset=cxl-hmu"],
);
/// A group of several tasks that runs out of memory.
const OUT_OF_MEMORY: Place =
    ("mechanisms.toml", None, &["memcg./app.memory.max=4MiB", "memcg./app.memory.swap.max=0"]);
const OUT_OF_MEMORY_KILL: Place = (
    "mechanisms.toml",
    None,
    &["machine.oom=kill", "memcg./app.memory.max=4MiB", "memcg./app.memory.swap.max=0"],
);
const COUNTED: Place = ("mechanisms-tiers.toml", Some("counted"), &[]);

/// Where the keys that begin so bind, tried before what the reference says of the key and before any other scenario.
const PLACES: &[(&str, &[Place])] = &[
    ("device[].min_ratio", &[("regressions/w1-polite-writer-beside-a-noisy-one.toml", None, &[])]),
    ("machine.hints.unit", &[COUNTING]),
    ("machine.hints.counters", &[COUNTING]),
    ("machine.hints.threshold", &[COUNTING]),
    ("machine.hints.epoch", &[COUNTING]),
    (
        "machine.hints.preset",
        &[("mechanisms-tiers.toml", None, &["sysctl.vm.pghot_record_hwhints_enable=1"])],
    ),
    ("machine.hints.", &[SAMPLING]),
    // Two classes of memory behind the first.
    (
        "machine.node[].adistance",
        &[(
            "demotion.toml",
            None,
            &[
                "machine.node=[{memory=\"32MiB\",cpus=2},{memory=\"32MiB\",preset=\"cxl-1.1\"},{memory=\"32MiB\",preset=\"pmem\"}]",
            ],
        )],
    ),
    ("machine.node[].cpus", &[("mechanisms-tiers.toml", None, &["machine.cpus=4"])]),
    (
        "machine.node[].interleave_weight",
        &[("mechanisms-tiers.toml", None, &["task.server.weighted_interleave=\"0-2\""])],
    ),
    // Nodes of several zones each.
    ("machine.node[].reserved", &[("demotion.toml", None, &["machine.zone_dma=true"])]),
    ("machine.node[].distance", &[TIERS]),
    ("machine.node[].preset", &[("demotion.toml", None, &["kernel.numa.demotion_enabled=false"])]),
    ("machine.oom", &[OUT_OF_MEMORY]),
    (
        "machine.price.migrate_backwards",
        &[("mechanisms-tiers.toml", None, &["kernel.numa.pagecache_promotion_order=head"])],
    ),
    ("machine.price.migrate_huge", &[("demotion.toml", None, &["kernel.transparent_hugepage=always"])]),
    ("machine.price.", &[TIERS, ("mechanisms.toml", None, &[]), ("zswap.toml", None, &[])]),
    ("machine.remote_", &[TIERS]),
    ("machine.tlb_entries", &[("mechanisms.toml", None, &[])]),
    (
        "swap[].priority",
        &[("swap-disk-or-zram.toml", None, &["swap=[{size=\"32MiB\",kind=\"zram\"},{size=\"32MiB\"}]"])],
    ),
    // Pages that are accessed seconds after their mark.
    (
        "kernel.last_cpupid_bits",
        &[(THIRD_FAULT, None, &["task.bench.think_time=1ms", "task.bench.object.0.workload.ops=30000"])],
    ),
    // A posting's own sources: no source is set there.
    ("kernel.pghot.posting", &[(THIRD_FAULT, None, &[]), COUNTED, TIERS]),
    ("kernel.pghot.default_target", &[("two-sockets.toml", None, &["sysctl.vm.pghot_target_nid=1"])]),
    (
        "kernel.pghot.klruscand",
        &[(
            "mechanisms-tiers.toml",
            None,
            &["sysctl.vm.pghot_record_pgtscans_enable=1", "sysctl.vm.pghot_record_hintfaults_enable=0"],
        )],
    ),
    // A whole node is looked at, which is more than a section.
    ("kernel.pghot.walk", &[COUNTED, ("two-sockets.toml", None, &[])]),
    // The slips are those of one posting.
    (
        "kernel.pghot.quirks",
        &[
            ("mechanisms-tiers.toml", Some("posted"), &["kernel.pghot.record=u64"]),
            ("mechanisms-tiers.toml", Some("posted"), &[]),
        ],
    ),
    ("kernel.pghot", &[COUNTED, TIERS]),
    // What only the profiles of 2010 do.
    ("kernel.reclaim.congested_queue", &[OF_2010]),
    ("kernel.reclaim.writepage", &[OF_2010]),
    ("kernel.reclaim.clean_only", &[OF_2010]),
    // Two lists wait after a batch, generations after a pass.
    (
        "kernel.reclaim.v1_throttle",
        &[
            ("regressions/m3-dirty-pages-of-cgroup-v1.toml", None, &[]),
            ("regressions/m3-dirty-pages-of-cgroup-v1.toml", None, &["kernel.profile=classic@6.12"]),
        ],
    ),
    // A disk so slow, and limits so high, that kswapd meets a page again that is still dirty.
    (
        "kernel.reclaim.file_writeback",
        &[
            ("writeback-from-reclaim.toml", None, &[]),
            (
                "regressions/c12-dirty-pages-seen-twice.toml",
                None,
                &[
                    "sysctl.vm.dirty_ratio=100",
                    "sysctl.vm.dirty_background_ratio=99",
                    "device.disk.write_bandwidth=5MB/s",
                    "task.writer.object.0.workload.write_ratio=1",
                ],
            ),
        ],
    ),
    ("kernel.sched.numa_balancing.scan_period_min_ms", &[("regressions/t5-stale-hotness.toml", None, &[])]),
    ("kernel.sched.", &[("two-sockets.toml", None, &["sysctl.vm.pghot_record_hintfaults_enable=0"])]),
    ("kernel.swap.zero_map", &[("swap-disk-or-zram.toml", None, &["swap.*.zero_filled=0.3"])]),
    ("kernel.hugepages_", &[("anonymous-folios.toml", None, &[])]),
    ("kernel.khugepaged.", &[("regressions/f10-underused-huge-pages.toml", None, &[])]),
    ("kernel.shrink_underused", &[("regressions/f10-underused-huge-pages.toml", None, &[])]),
    // The rule by default, and a heap that has asked for huge pages.
    (
        "kernel.transparent_hugepage_defrag",
        &[
            ("regressions/h1-heaps-that-stall-for-huge-pages.toml", None, &[]),
            ("regressions/h1-heaps-that-stall-for-huge-pages.toml", Some("asked-for"), &[]),
        ],
    ),
    ("memcg[].memory.soft_limit_in_bytes", &[("soft-limits.toml", None, &[])]),
    ("memcg[].memory.oom.group", &[OUT_OF_MEMORY_KILL]),
    ("sysctl.kernel.numa_balancing", &[TIERS, ("demotion.toml", None, &[])]),
    ("sysctl.vm.min_unmapped_ratio", &[("node-reclaim.toml", Some("on"), &[])]),
    ("sysctl.vm.page-cluster", &[("swap-disk-or-zram.toml", None, &[]), ("zswap.toml", None, &[])]),
    ("sysctl.vm.pghot_target_nid", &[("two-sockets.toml", Some("knob"), &[])]),
    ("sysctl.vm.pghot", &[COUNTED, TIERS]),
    ("sysctl.vm.watermark_boost_factor", &[("real-time.toml", None, &[])]),
    (
        "sysctl.vm.zone_reclaim_mode",
        &[
            ("regressions/n1-a-node-that-others-keep-short.toml", None, &[]),
            // Dirty pages, which bit 2 lets it write where reclaim writes at all.
            (
                "node-reclaim.toml",
                None,
                &["kernel.reclaim.file_writeback=any", "task.server.object.0.workload.write_ratio=0.5"],
            ),
        ],
    ),
    ("kernel.memcg.kmem_counted", &[("removed-groups.toml", None, &[])]),
];

/// Words of a key that no shipped run tells from each other, and why.
const ALIKE: &[(&str, &[&str], &str)] = &[
    (
        "kernel.pghot.posting",
        &["v5", "v6", "v7"],
        "v6 and v7 differ in sources, which a scenario sets. In v5 a window never ends, and reports of a shipped run come within one",
    ),
    (
        "kernel.reclaim.anon_only",
        &["absent", "or_file"],
        "with absent a request for anonymous memory alone is refused before the run",
    ),
    ("kernel.reclaim.anon_only", &["absent", "strict"], "likewise"),
    (
        "kernel.reclaim.protection",
        &["top_down", "kswapd_only"],
        "they differ while what a group uses or may keep has changed since kswapd came by, and no shipped run shows it",
    ),
];

/// Keys that bind in larger runs than any shipped one, and why.
const TOO_SMALL: &[(&str, &str)] = &[(
    "kernel.pghot.klruscand_buffer",
    "a scan finds fewer than 32768 pages in memory of less than 128 MiB that is used at once",
)];

/// Short scenarios that show much, tried last.
const OTHERS: &[&str] = &[
    "whole-machine.toml",
    "scan-and-hot-set.toml",
    "writeback-from-reclaim.toml",
    "zswap.toml",
    "demotion.toml",
    "mechanisms.toml",
    "swappiness.toml",
    "laptop-mode.toml",
    "groups-by-age.toml",
    "mixed-swappiness-mglru.toml",
    "proactive-reclaim.toml",
    "huge-pages-under-load.toml",
    "huge-pages-anonymous.toml",
    "stat-freshness.toml",
    "slow-disk.toml",
    "failing-file-disk.toml",
];

/// Scenarios that are tried for a key in all, and of those, how many because they name it.
const MOST: usize = 14;
const MOST_NAMING: usize = 8;

/// A run that takes longer is ended and shows nothing. Each takes a few seconds of CPU time; the rest is for a machine that is busy with other work.
const LONGEST: Duration = Duration::from_secs(600);

/// What is to be shown of a key.
#[derive(Clone, Copy, PartialEq)]
enum Differ {
    /// Each value differs from each other one.
    FromEachOther,
    /// Each value differs from the scenario's own, by default the key's.
    FromNone,
}

/// The values to try: all words, or one number well below the default and one well above.
fn values_of(key: &Key) -> (Vec<String>, Differ) {
    let strings = |values: &[&str]| values.iter().map(|value| (*value).to_string()).collect::<Vec<_>>();
    if let Some((_, values)) = VALUES.iter().find(|(path, _)| key.path == *path) {
        return (strings(values), Differ::FromNone);
    }
    let default = key.default.trim_matches('"');
    let numbers = match key.accepts {
        Accepts::Bool | Accepts::Choice(_) => return (key.accepts.words(), Differ::FromEachOther),
        Accepts::Policy => {
            return (strings(&["classic@6.12", "mglru@6.12", "fifo", "classic@2010"]), Differ::FromEachOther);
        }
        Accepts::Version => return (strings(&["6.1", "7.3"]), Differ::FromEachOther),
        Accepts::Integer(least, most) if most - least <= 8 => {
            return ((least..=most).map(|value| value.to_string()).collect(), Differ::FromEachOther);
        }
        Accepts::Integer(least, most) => match default.parse::<i64>() {
            Ok(default) if default > least => [least.max(default / 8), most.min(default.saturating_mul(8))]
                .map(|of| of.to_string())
                .to_vec(),
            _ => vec![(least + 1).to_string(), (least + 100.min((most - least) / 2)).to_string()],
        },
        Accepts::Number(least, most) => {
            let default = default.parse().unwrap_or(least);
            [f64::midpoint(least, default), f64::midpoint(default, most)].map(|of| of.to_string()).to_vec()
        }
        Accepts::Size(..) => strings(&["16MiB", "64MiB"]),
        Accepts::Limit => strings(&["20%", "60%"]),
        Accepts::Time(..) if key.path.starts_with("machine.price.") => strings(&["1ns", "100us"]),
        Accepts::Time(..) => strings(&["20us", "5ms"]),
        Accepts::Bandwidth => strings(&["20MB/s", "2GB/s"]),
        Accepts::Share => strings(&["5%", "70%"]),
        Accepts::Range(_)
        | Accepts::Text
        | Accepts::NameOf(_)
        | Accepts::KernelFile
        | Accepts::Condition
        | Accepts::HostPath
        | Accepts::Texts
        | Accepts::Numbers
        | Accepts::Deciles
        | Accepts::Table(_)
        | Accepts::Scalar => Vec::new(),
    };
    (numbers.into_iter().filter(|value| value != default).collect(), Differ::FromNone)
}

/// A run to try a key in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    scenario: String,
    variant: Option<String>,
    settings: Vec<String>,
}

impl Run {
    fn of((scenario, variant, settings): Place) -> Run {
        let settings = settings.iter().map(|setting| (*setting).to_string()).collect();
        Run { scenario: scenario.to_string(), variant: variant.map(str::to_string), settings }
    }

    /// What comes of it with one more setting, as JSON; nothing where it is refused, or takes too long.
    fn result(&self, setting: Option<&str>) -> Option<Value> {
        let out = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new(binary());
        command.current_dir(scenarios()).args(["run", &self.scenario, "--json", "--quiet"]);
        if let Some(variant) = &self.variant {
            command.args(["--variant", variant]);
        }
        for setting in self.settings.iter().map(String::as_str).chain(setting) {
            command.args(["--set", setting]);
        }
        command.stdout(out.reopen().unwrap()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LONGEST {
                child.kill().unwrap();
                child.wait().unwrap();
                eprintln!("{} {setting:?} took longer than {LONGEST:?}", self.scenario);
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // 1 is a workload that failed: out of memory is a result, too.
        let is_result = matches!(status.code(), Some(0 | 1));
        is_result.then(|| serde_json::from_reader(File::open(out.path()).unwrap()).ok()).flatten()
    }
}

/// The figures of a result: what it says, except what repeats the settings.
fn figures(mut result: Value, key: &Key) -> String {
    let error = result["error"].take();
    if result["so_far"].is_object() {
        result = result["so_far"].take();
    }
    let members = result.as_object_mut().unwrap();
    for settings in ["notes", "percentages", "profile", "question", "look_at", "seed", "writes"] {
        members.remove(settings);
    }
    if let Some(readahead) = members.get_mut("readahead").and_then(Value::as_object_mut) {
        readahead.remove("read_ahead_kb");
    }
    let file = key.path.rsplit("[].").next().unwrap();
    for memcg in members.get_mut("memcgs").and_then(Value::as_array_mut).into_iter().flatten() {
        let memcg = memcg.as_object_mut().unwrap();
        memcg.remove("policy");
        if let Some(files) = memcg.get_mut("files").and_then(Value::as_object_mut) {
            files.remove(file);
        }
    }
    if let Some(reads) = members.get_mut("reads").and_then(Value::as_array_mut) {
        reads.retain(|read| {
            let path = read["path"].as_str().unwrap();
            !path.starts_with("/proc/sys/") && !path.ends_with(file)
        });
    }
    format!("{error} {result}")
}

/// Shipped scenarios that take seconds at most, the shorter text first.
fn shipped() -> Vec<(String, String)> {
    const SLOW: &[&str] = &[
        "app-switching",
        "c14-",
        "c2-",
        "c6-",
        "database",
        "hot-beyond-fast-memory",
        "hot-set-on-slow-memory",
        "kernel-build",
        "mechanisms-2026",
        "mglru-2026",
        "page-cache-promotion",
        "protection-low",
        "skewed-beyond-fast-memory",
        "slowly-shifting-hot-set",
        "soft-limits",
        "two-sockets",
    ];
    let mut shipped = Vec::new();
    for folder in ["", "regressions/"] {
        for entry in std::fs::read_dir(scenarios().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".toml") && !SLOW.iter().any(|slow| name.starts_with(slow)) {
                let path = format!("{folder}{name}");
                let text = std::fs::read_to_string(scenarios().join(&path)).unwrap();
                shipped.push((path, text));
            }
        }
    }
    shipped.sort_by_cached_key(|(path, text)| (text.len(), path.clone()));
    shipped
}

/// Where to try a key, the likeliest first.
fn runs_for(key: &Key, shipped: &[(String, String)]) -> Vec<Run> {
    let places = PLACES.iter().filter(|(of, _)| key.path.starts_with(of)).flat_map(|(_, places)| *places);
    let mut runs: Vec<Run> = places.map(|place| Run::of(*place)).collect();
    // `Shown by pageout run scenarios/FILE --variant NAME --set KEY=VALUE` of the reference.
    if let Some((_, shown)) = key.meaning.split_once("pageout run scenarios/") {
        let mut words = shown.split(' ');
        let scenario = words.next().unwrap().to_string();
        let variant = (words.next() == Some("--variant")).then(|| words.next().unwrap().to_string());
        runs.push(Run { scenario, variant, settings: Vec::new() });
    }
    let name = key
        .path
        .split_once("[].")
        .map_or_else(|| key.path.split_once('.').unwrap().1, |(_, name)| name.rsplit('.').next().unwrap());
    let naming = shipped.iter().filter(|(_, text)| text.contains(name)).map(|(path, _)| path.as_str());
    for scenario in naming.take(MOST_NAMING).chain(OTHERS.iter().copied()) {
        runs.push(Run { scenario: scenario.to_string(), variant: None, settings: Vec::new() });
    }
    let mut seen = BTreeSet::new();
    runs.retain(|run| seen.insert(run.clone()));
    runs
}

/// Figures of a run without a setting of the key's, which several keys share.
type Unchanged = Mutex<BTreeMap<Run, Option<Value>>>;

/// The values of a key that no run tells from another value, or from none.
fn idle_values(key: &Key, shipped: &[(String, String)], unchanged: &Unchanged) -> Vec<String> {
    let (values, differ) = values_of(key);
    assert!(!values.is_empty(), "{} ({}): give it values to try", key.path, key.accepts);
    let mut pairs: Vec<(usize, Option<usize>)> = match differ {
        Differ::FromNone => (0..values.len()).map(|value| (value, None)).collect(),
        Differ::FromEachOther => {
            (0..values.len()).flat_map(|one| (0..one).map(move |other| (one, Some(other)))).collect()
        }
    };
    // A value that the result reports is told from none.
    let is_reported = |value: usize| notes::is_without_effect(&key.path, &values[value]);
    pairs.retain(|&(one, other)| !is_reported(one) && !other.is_some_and(is_reported));
    for (_, words, _) in ALIKE.iter().filter(|(path, ..)| key.path == *path) {
        let is_alike = |value: usize| words.contains(&values[value].as_str());
        pairs.retain(|&(one, other)| !is_alike(one) || !other.is_some_and(is_alike));
    }
    // What the reference says of a rule that only decides where no shipped scenario goes, the result says, too.
    if notes::is_unseen(&key.path) {
        return Vec::new();
    }
    let element = ELEMENTS.iter().find(|(path, _)| key.path == *path);
    let path = element.map_or_else(|| key.path.replace("[]", ".*"), |(_, element)| (*element).to_string());
    let mut tried = 0;
    for mut run in runs_for(key, shipped) {
        if pairs.is_empty() || tried >= MOST {
            break;
        }
        if key.path != "machine.hindsight" {
            // A run that knows the future takes longer.
            run.settings.push("machine.hindsight=false".to_string());
        }
        let results: Vec<Option<String>> = (0..values.len())
            .map(|value| {
                let is_needed = pairs.iter().any(|&(one, other)| one == value || other == Some(value));
                let result =
                    is_needed.then(|| run.result(Some(&format!("{path}={}", values[value])))).flatten();
                result.map(|result| figures(result, key))
            })
            .collect();
        if results.iter().all(Option::is_none) {
            continue;
        }
        tried += 1;
        let base = (differ == Differ::FromNone).then(|| {
            let cached = unchanged.lock().unwrap().get(&run).cloned();
            let result = cached.unwrap_or_else(|| {
                let result = run.result(None);
                unchanged.lock().unwrap().insert(run.clone(), result.clone());
                result
            });
            result.map(|result| figures(result, key))
        });
        let base = base.flatten();
        pairs.retain(|&(one, other)| {
            let other = other.map_or(&base, |other| &results[other]);
            results[one].is_none() || other.is_none() || results[one] == *other
        });
    }
    let told = pairs.iter().map(|&(one, other)| match other {
        None => format!("{} = {}", key.path, values[one]),
        Some(other) => format!("{} = {} or {}", key.path, values[one], values[other]),
    });
    told.collect()
}

#[test]
#[ignore = "slow: ci/slow/tests.sh runs it with a release"]
fn each_value_of_a_key_changes_a_result_or_is_reported() {
    let only = std::env::var("KEY").unwrap_or_default();
    let is_covered = |key: &&Key| {
        TABLES.iter().any(|table| key.path.starts_with(table))
            && !NAMES.contains(&key.path.as_str())
            && !TOO_SMALL.iter().any(|(path, _)| key.path == *path)
    };
    let keys: Vec<&Key> = KEYS.iter().filter(is_covered).filter(|key| key.path.contains(&only)).collect();
    assert!(!keys.is_empty(), "no key that is covered contains {only}");
    let shipped = shipped();
    let (unchanged, next, idle) = (Mutex::default(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(key) = keys.get(next.fetch_add(1, Relaxed)) {
                    let of_key = idle_values(key, &shipped, &unchanged);
                    of_key.iter().for_each(|value| eprintln!("idle: {value}"));
                    idle.lock().unwrap().extend(of_key);
                }
            });
        }
    });
    let idle = idle.into_inner().unwrap();
    assert!(idle.is_empty(), "these change nothing in any scenario that was tried:\n{}", idle.join("\n"));
}
