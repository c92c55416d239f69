//! Nodes and tiers of memory as files: `cpuset.mems`, those of `/sys/devices/system/node/nodeN`, `/sys/devices/virtual/memory_tiering/memory_tierN/nodelist` and `/sys/kernel/mm/numa/demotion_enabled`.

use super::cgroup::parse_reclaim;
use super::{Errno, WRITTEN, WriteError, invalid, lines};
use crate::access::engine::Engine;
use crate::lru::Refused;
use crate::machine::step::Step;
use crate::memory::mempolicy::{MemPolicy, Placement};
use crate::stat::Stat;
use crate::units::{MemcgId, NodeId, Nodemask, TaskId};

/// The number of the tier in the path of its list of nodes.
pub(super) fn tier_of_path(path: &str) -> Option<u32> {
    let number =
        path.strip_prefix("/sys/devices/virtual/memory_tiering/memory_tier")?.strip_suffix("/nodelist")?;
    // As the kernel writes it: without a sign or zeroes in front.
    number.parse().ok().filter(|tier: &u32| tier.to_string() == number)
}

type NodeStore = fn(&mut Engine, TaskId, NodeId, &str) -> Result<Step, WriteError>;

/// A file of each node.
pub struct NodeFile {
    /// The file's name in the node's directory, `/sys/devices/system/node/nodeN`.
    pub name: &'static str,
    /// Meaning of the file's contents, or effect of a write to it.
    pub doc: &'static str,
    pub(super) show: Option<fn(&Engine, NodeId) -> String>,
    pub(super) store: Option<NodeStore>,
}

/// The files of a node.
#[rustfmt::skip]
pub const NODE_FILES: &[NodeFile] = &[
    NodeFile { name: "memory*/online", doc: "Whether the node's memory is in use. All its memory blocks are written in one step, as a shell does it; 0 moves their pages to other nodes.", show: Some(online_show), store: Some(online_store) },
    NodeFile { name: "vmstat", doc: "Counters of the node: its part of /proc/vmstat.", show: Some(node_vmstat_show), store: None },
    NodeFile { name: "numastat", doc: "Where allocation requests for its memory were served.", show: Some(numastat_show), store: None },
    NodeFile { name: "reclaim", doc: "Bytes to reclaim from the node, of all cgroups, optionally with ` swappiness=N` or ` swappiness=max` (since 6.16). Nothing is reclaimed unless the file pages that vm.zone_reclaim_mode may take exceed vm.min_unmapped_ratio.", show: None, store: Some(reclaim_store) },
];

impl NodeFile {
    /// Returns whether the file can be opened for reading.
    pub fn is_readable(&self) -> bool {
        self.show.is_some()
    }

    /// Returns whether the file can be opened for writing.
    pub fn is_writable(&self) -> bool {
        self.store.is_some()
    }
}

/// The node in a path, and which of its files it is.
pub(super) fn node_of_path(path: &str) -> Option<(NodeId, &'static NodeFile)> {
    let (number, name) = path.strip_prefix("/sys/devices/system/node/node")?.split_once('/')?;
    let node = number.parse().ok().filter(|node: &u8| node.to_string() == number).map(NodeId)?;
    Some((node, NODE_FILES.iter().find(|file| file.name == name)?))
}

/// Lines of `numastat`: all but two have the names that `/proc/vmstat` has for them.
const NUMASTAT: [(&str, Stat); 6] = [
    ("numa_hit", Stat::NumaHit),
    ("numa_miss", Stat::NumaMiss),
    ("numa_foreign", Stat::NumaForeign),
    ("interleave_hit", Stat::NumaInterleave),
    ("local_node", Stat::NumaLocal),
    ("other_node", Stat::NumaOther),
];

/// Returns true if a counter is kept by node, and so one of its `vmstat`.
fn is_of_nodes(stat: Stat) -> bool {
    let is_demotion = matches!(
        stat,
        Stat::PgdemoteKswapd | Stat::PgdemoteDirect | Stat::PgdemoteKhugepaged | Stat::PgdemoteProactive
    );
    stat < Stat::NrDirtyThreshold || is_demotion
}

/// The words in which the kernel takes yes or no: by their first letter, of `on` and `off` by two.
pub fn kernel_bool(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_bytes() {
        [b'y' | b't' | b'1', ..] | [b'o', b'n', ..] => Some(true),
        [b'n' | b'f' | b'0', ..] | [b'o', b'f', ..] => Some(false),
        _ => None,
    }
}

fn online_show(engine: &Engine, node: NodeId) -> String {
    format!("{}\n", u8::from(engine.core.mm.tiers.is_online(node)))
}

fn online_store(engine: &mut Engine, _: TaskId, node: NodeId, value: &str) -> Result<Step, WriteError> {
    let refused = |errno, expected: String| WriteError::Refused(Refused { errno, expected });
    match value {
        "1" => engine.core.mm.online_node(node),
        "0" => engine.core.offline_node(node).map_err(|why| refused(Errno::Ebusy, why.to_string()))?,
        _ => return Err(refused(Errno::Einval, "0 or 1".to_owned())),
    }
    Ok(WRITTEN)
}

/// Proactive reclaim of a node. [access-aware 5.3]
#[doc(alias = "user_proactive_reclaim")]
fn reclaim_store(engine: &mut Engine, task: TaskId, node: NodeId, value: &str) -> Result<Step, WriteError> {
    let (pages, swappiness) = parse_reclaim(value, true).ok_or_else(|| {
        invalid("bytes to reclaim, such as `128M`, `128M swappiness=60`, or `128M swappiness=max`")
    })?;
    if engine.is_node_reclaimed(node) {
        let expected = "a node that no other request reclaims".to_owned();
        return Err(WriteError::Refused(Refused { errno: Errno::Ebusy, expected }));
    }
    Ok(engine.reclaim_node(task, node, pages, swappiness))
}

fn node_vmstat_show(engine: &Engine, node: NodeId) -> String {
    let stats = Stat::ALL.iter().filter(|&&stat| is_of_nodes(stat));
    lines(stats.map(|&stat| (stat.name(), engine.core.mm.node_stat(node, stat))))
}

fn numastat_show(engine: &Engine, node: NodeId) -> String {
    lines(NUMASTAT.map(|(name, stat)| (name, engine.core.mm.node_stat(node, stat))))
}

pub(super) fn demotion_enabled_store(
    engine: &mut Engine,
    _: TaskId,
    value: &str,
) -> Result<Step, WriteError> {
    engine.core.mm.config.demotion_enabled = kernel_bool(value).ok_or_else(|| invalid("true or false"))?;
    Ok(WRITTEN)
}

pub(super) fn pagecache_promotion_enabled_store(
    engine: &mut Engine,
    _: TaskId,
    value: &str,
) -> Result<Step, WriteError> {
    engine.core.mm.config.pagecache_promotion_enabled =
        kernel_bool(value).ok_or_else(|| invalid("true or false"))?;
    Ok(WRITTEN)
}

pub(super) fn mems_show(engine: &mut Engine, memcg: MemcgId) -> String {
    engine.core.mm.memcgs[memcg].mems.map_or(String::new(), |mems| mems.to_string()) + "\n"
}

pub(super) fn mems_effective_show(engine: &mut Engine, memcg: MemcgId) -> String {
    format!("{}\n", engine.core.mm.memcgs.mems_allowed(memcg) & engine.online_nodes())
}

/// Pages that are elsewhere already stay where they are.
pub(super) fn mems_write(
    engine: &mut Engine,
    _: TaskId,
    memcg: MemcgId,
    value: &str,
) -> Result<Step, WriteError> {
    let online = engine.online_nodes();
    let mems = match value {
        "" => None,
        list => {
            let mems =
                Nodemask::parse(list).ok_or_else(|| invalid("a list of nodes, such as `0-1,3`, or empty"))?;
            if mems & online != mems {
                return Err(invalid(format!("online nodes, which are {online}")));
            }
            Some(mems)
        }
    };
    engine.core.mm.memcgs[memcg].mems = mems;
    for group in engine.core.mm.memcgs.subtree(memcg) {
        let mems = engine.core.mm.memcgs.mems_allowed(group);
        for mm in engine.core.mm.memcgs[group].mms.clone() {
            let mm = engine.core.mm.memory.mm_mut(mm);
            let policy = mm.placement.as_ref().map_or(MemPolicy::Default, |placement| placement.policy);
            mm.placement = Placement::new(policy, mems);
        }
    }
    Ok(WRITTEN)
}

impl Engine {
    /// The nodes of a tier that there is.
    pub(super) fn nodelist_text(&self, tier: u32) -> String {
        let nodes =
            self.core.mm.tiers.iter().filter(|known| known.id == tier).flat_map(|tier| tier.nodes.iter());
        format!("{}\n", Nodemask::of(nodes.copied()))
    }

    fn online_nodes(&self) -> Nodemask {
        Nodemask::of(self.core.mm.memory.nodes().filter(|&node| self.core.mm.tiers.is_online(node)))
    }
}

#[cfg(test)]
mod tests {
    use crate::page_alloc::request::{Gfp, Request};
    use crate::*;

    fn engine() -> Engine {
        let slow = MemoryType::Adistance(ADISTANCE_DAX_KMEM);
        let layout = Layout { memory_types: vec![MemoryType::Dram, slow, slow, slow], ..Layout::default() };
        Engine::new(Config { node_pages: vec![1 << 14; 4], layout, ..Config::default() }).unwrap()
    }

    #[test]
    fn each_tier_lists_its_nodes_and_others_do_not_exist() {
        let mut engine = engine();
        let mut read = |tier: &str| {
            engine.read_file(&format!("/sys/devices/virtual/memory_tiering/memory_tier{tier}/nodelist"))
        };
        assert_eq!(read("4").unwrap(), "0\n");
        assert_eq!(read("22").unwrap(), "1-3\n");
        assert!(matches!(read("5"), Err(FileError::NoSuchFile(_))));
        assert!(matches!(read("04"), Err(FileError::NoSuchFile(_))));
    }

    /// The number behind a name.
    fn figure(text: &str, name: &str) -> i64 {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.split_once(' ')).and_then(|(_, number)| number.parse().ok()).expect(name)
    }

    #[test]
    fn what_vmstat_has_of_nodes_adds_up_over_the_files_of_all_nodes() {
        let mut engine = engine();
        let request = Request::movable(Gfp::KERNEL, NodeId(1));
        for _ in 0..100 {
            engine.core.alloc_pages(&request, MemcgId::ROOT).expect("there is enough");
        }
        let of_node = |engine: &mut Engine, node: u8, file: &str| {
            engine.read_file(&format!("/sys/devices/system/node/node{node}/{file}"))
        };
        let whole = engine.read_file("/proc/vmstat").unwrap();
        let nodes: Vec<String> = (0..4).map(|node| of_node(&mut engine, node, "vmstat").unwrap()).collect();
        for name in nodes[0].lines().map(|line| line.split(' ').next().unwrap()) {
            let sum: i64 = nodes.iter().map(|text| figure(text, name)).sum();
            assert_eq!(sum, figure(&whole, name), "{name}");
        }
        assert!(nodes[0].starts_with("nr_free_pages ") && nodes[0].contains("\npgdemote_kswapd 0\n"));
        assert!(!nodes[0].contains("pswpin") && !nodes[0].contains("nr_dirty_threshold"));
        // Asked for by node 0's CPU, and wanted of node 1.
        assert_eq!(
            of_node(&mut engine, 1, "numastat").unwrap(),
            "numa_hit 100\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 100\n"
        );
        for (node, file) in [(4, "vmstat"), (1, "meminfos"), (1, "")] {
            assert!(
                matches!(of_node(&mut engine, node, file), Err(FileError::NoSuchFile(_))),
                "{node} {file}"
            );
        }
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let written = engine.write_file(task, "/sys/devices/system/node/node1/vmstat", "1");
        assert!(matches!(written, Err(FileError::NotPermitted(_))));
    }

    #[test]
    fn a_list_of_nodes_reads_as_it_is_written() {
        let nodes = Nodemask::of([0, 1, 3, 5, 6, 7].map(NodeId));
        assert_eq!(nodes.to_string(), "0-1,3,5-7");
        assert_eq!(Nodemask::parse("0-1,3,5-7\n"), Some(nodes));
        assert_eq!(Nodemask::parse("7,6,5,0-1,3"), Some(nodes));
        for wrong in ["", "1-0", "64", "0-64", "a", "1,", "-1", "+1", "1 2"] {
            assert_eq!(Nodemask::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn demotion_is_off_until_someone_turns_it_on() {
        let mut engine = engine();
        let path = "/sys/kernel/mm/numa/demotion_enabled";
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        assert_eq!(engine.read_file(path).unwrap(), "false\n");
        let _ = engine.write_file(task, path, "1").unwrap();
        assert_eq!(engine.read_file(path).unwrap(), "true\n");
        let error = engine.write_file(task, path, "2").unwrap_err();
        assert!(error.to_string().ends_with("expected true or false"), "{error}");
        let tier = "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist";
        assert!(matches!(engine.write_file(task, tier, "1"), Err(FileError::NotPermitted(_))));
    }

    #[test]
    fn switches_of_tiers_take_all_words_that_the_kernel_has_for_yes_and_no() {
        let mut engine = engine();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        for file in ["demotion_enabled", "pagecache_promotion_enabled"] {
            let path = format!("/sys/kernel/mm/numa/{file}");
            for (words, shown) in [
                (["1", "y", "Y", "t", "T", "true", "on", "ON", "yes"], "true\n"),
                (["0", "n", "N", "f", "F", "false", "off", "OFF", "no"], "false\n"),
            ] {
                for word in words {
                    let other = if shown == "true\n" { "0" } else { "1" };
                    let _ = engine.write_file(task, &path, other).unwrap();
                    let _ = engine.write_file(task, &path, word).unwrap();
                    assert_eq!(engine.read_file(&path).unwrap(), shown, "{file} = {word}");
                }
            }
            for wrong in ["2", "o", "maybe", ""] {
                assert!(engine.write_file(task, &path, wrong).is_err(), "{file} = {wrong:?}");
            }
        }
    }

    /// Blocks that are too large for a CPU's own list, and less than half of the distance of two marks.
    #[test]
    fn with_tiers_kswapd_rests_at_the_promo_mark() {
        for (numa_balancing, rests_between) in [(0, true), (1, true), (2, false), (3, false)] {
            let mut engine = Engine::new(Config { numa_balancing, ..Config::default() }).unwrap();
            let rests =
                |engine: &Engine| engine.core.mm.memory.zones.is_balanced(NodeId(0), 0, ZoneType::Movable);
            assert!(rests(&engine));
            let request = Request { order: 5, ..Request::movable(Gfp::KERNEL, NodeId(0)) };
            let zone = engine.figures().zones().next().unwrap();
            while engine.figures().zones().next().unwrap().free > (zone.high + zone.promo) / 2 {
                engine.core.alloc_pages(&request, MemcgId::ROOT).expect("there is enough");
            }
            assert_eq!(rests(&engine), rests_between, "numa_balancing {numa_balancing}");
        }
    }
}

#[cfg(test)]
mod requests {
    use crate::*;

    const NODE: &str = "/sys/devices/system/node/node0/reclaim";

    /// A machine of one node with pages of a file and of a heap, as many as given.
    fn machine(file_pages: u64, heap_pages: u64) -> (Engine, TaskId) {
        let config = Config { node_pages: vec![8192], folio_batch: 1, kmem: false, ..Config::default() };
        let mut builder = Engine::builder(config).unwrap();
        builder.swap_on(SwapSpec { pages: 8192, kind: SwapKind::Device }).unwrap();
        let mut engine = builder.build();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let spec = FileSpec { name: "f".into(), pages: 4096, kind: FileKind::Regular, bdi: Bdi::default() };
        let file = engine.file_create(spec).unwrap();
        let file = engine.open(task, file).unwrap();
        let heap = engine.map_anon(task, 4096, Advice::Normal).unwrap();
        for (object, pages) in [(file, file_pages), (heap, heap_pages)] {
            for page in 0..pages {
                let step = engine.start(task, Access::new(object, page, object == heap));
                finish(&mut engine, task, step);
            }
        }
        (engine, task)
    }

    fn finish(engine: &mut Engine, task: TaskId, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, .. } | Op::WriteSwap { io, .. } = op {
                    engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            match step {
                Step::Done(served) => return served,
                Step::Again | Step::Wait(_) => step = engine.resume(task),
            }
        }
    }

    #[test]
    fn node_reclaim_request_frees_pages_of_the_node() {
        let (mut engine, task) = machine(2048, 0);
        let step = engine.write_file(task, NODE, "2M").unwrap();
        let Served::Written { reclaimed } = finish(&mut engine, task, step) else { panic!("it writes") };
        assert!(reclaimed >= 512, "{reclaimed}");
        assert!(matches!(engine.read_file(NODE), Err(FileError::NotPermitted(_))));
        let error = engine.write_file(task, NODE, "much").unwrap_err().to_string();
        assert!(error.contains("bytes to reclaim"), "{error}");
    }

    #[test]
    fn node_full_of_anonymous_memory_is_not_reclaimed() {
        let (mut engine, task) = machine(0, 2048);
        assert_eq!(
            engine.write_file(task, NODE, "2M"),
            Ok(Step::Done(Served::Written { reclaimed: 0 })),
            "no file pages: the gate of node reclaim is closed"
        );
        let (mut engine, task) = machine(16, 2048);
        let _ = engine.write_file(task, "/proc/sys/vm/min_unmapped_ratio", "0").unwrap();
        let step = engine.write_file(task, NODE, "2M swappiness=max").unwrap();
        let Served::Written { reclaimed } = finish(&mut engine, task, step) else { panic!("it writes") };
        assert!(reclaimed > 0);
    }

    #[test]
    fn second_request_for_a_node_is_busy() {
        let (mut engine, task) = machine(2048, 0);
        let mm = engine.process_create(MemcgId::ROOT);
        let other = engine.task_create(mm, CpuId(0));
        let step = engine.write_file(task, NODE, "4M").unwrap();
        assert!(!matches!(step, Step::Done(_)), "a request of several batches is not over immediately");
        let error = engine.write_file(other, NODE, "1M").unwrap_err();
        assert!(error.to_string().contains("EBUSY"), "{error}");
        finish(&mut engine, task, step);
    }
}
