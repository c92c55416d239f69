//! `/proc/meminfo`, `/proc/zoneinfo` and `/proc/buddyinfo`: what memory is used for, the state of each zone, and its free blocks by order.
//!
//! Lines for unmodelled values are left out rather than 0: huge pages of files and tmpfs, CMA, vmalloc, hardware-poisoned pages, slabs that can't be
//! reclaimed, and others.
//!
//! `MemAvailable` is the kernel's estimate of the memory that a new program could have without swapping. No decision reads it. It is the free memory
//! above all reserves, plus the part of the page cache and of reclaimable slabs that could be freed. Half of each must stay, or the sum of all low
//! watermarks if that is less (<https://docs.kernel.org/filesystems/proc.html>, <https://access.redhat.com/solutions/406773>).

use std::fmt::Write;

use crate::access::engine::Engine;
use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::page_alloc::info::{PagesetInfo, ZoneInfo};
use crate::stat::Stat;
use crate::units::{MAX_BLOCK_ORDER, NodeId, PAGE_SIZE, PAGEBLOCK_ORDER};

/// Counters of a node, which stand once in `/proc/zoneinfo`: with its first zone.
const PER_NODE: &[Stat] = &[
    Stat::NrInactiveAnon,
    Stat::NrActiveAnon,
    Stat::NrInactiveFile,
    Stat::NrActiveFile,
    Stat::NrUnevictable,
    Stat::NrSlabReclaimable,
    Stat::NrIsolatedAnon,
    Stat::NrIsolatedFile,
    Stat::WorkingsetNodes,
    Stat::WorkingsetRefaultAnon,
    Stat::WorkingsetRefaultFile,
    Stat::WorkingsetActivateAnon,
    Stat::WorkingsetActivateFile,
    Stat::WorkingsetRestoreAnon,
    Stat::WorkingsetRestoreFile,
    Stat::WorkingsetNodereclaim,
    Stat::NrAnonPages,
    Stat::NrMapped,
    Stat::NrFilePages,
    Stat::NrDirty,
    Stat::NrWriteback,
    Stat::NrShmem,
    Stat::NrAnonThps,
    Stat::NrVmscanWrite,
    Stat::NrVmscanImmediateReclaim,
    Stat::NrDirtied,
    Stat::NrWritten,
    Stat::NrKernelStack,
    Stat::NrPageTablePages,
    Stat::NrSwapcached,
];

pub(super) fn meminfo_show(engine: &mut Engine) -> String {
    let count = |stat: Stat| engine.core.mm.vmstat(stat).max(0) as u64;
    let swap = &engine.core.mm.memory.swap;
    let managed: u64 = engine.figures().zones().map(|zone| zone.managed).sum();
    let [inactive_anon, active_anon] = [Stat::NrInactiveAnon, Stat::NrActiveAnon].map(count);
    let [inactive_file, active_file] = [Stat::NrInactiveFile, Stat::NrActiveFile].map(count);
    let mut text = String::new();
    for (name, pages) in [
        ("MemTotal", managed),
        ("MemFree", count(Stat::NrFreePages)),
        ("MemAvailable", available_pages(engine)),
        ("Buffers", 0),
        ("Cached", count(Stat::NrFilePages).saturating_sub(count(Stat::NrSwapcached))),
        ("SwapCached", count(Stat::NrSwapcached)),
        ("Active", active_anon + active_file),
        ("Inactive", inactive_anon + inactive_file),
        ("Active(anon)", active_anon),
        ("Inactive(anon)", inactive_anon),
        ("Active(file)", active_file),
        ("Inactive(file)", inactive_file),
        ("Unevictable", count(Stat::NrUnevictable)),
        ("Mlocked", count(Stat::NrMlock)),
        ("SwapTotal", swap.total_pages()),
        ("SwapFree", swap.free_pages()),
        ("Zswap", engine.figures().zswap_pool().pages),
        ("Zswapped", engine.figures().zswap_pool().stored),
        ("Dirty", count(Stat::NrDirty)),
        ("Writeback", count(Stat::NrWriteback)),
        ("AnonPages", count(Stat::NrAnonPages)),
        ("Mapped", count(Stat::NrMapped)),
        ("Shmem", count(Stat::NrShmem)),
    ] {
        line(&mut text, name, pages * PAGE_SIZE / 1024);
    }
    // The stack counter is in KiB; that of slab objects is in pages here, as in `/proc/vmstat`.
    line(&mut text, "SReclaimable", count(Stat::NrSlabReclaimable) * PAGE_SIZE / 1024);
    line(&mut text, "KernelStack", count(Stat::NrKernelStack));
    line(&mut text, "PageTables", count(Stat::NrPageTablePages) * PAGE_SIZE / 1024);
    let huge = HUGE_PAGE_PAGES * PAGE_SIZE / 1024;
    line(&mut text, "AnonHugePages", count(Stat::NrAnonThps) * huge);
    let held = engine.core.mm.kmem.huge_pools.len(PAGEBLOCK_ORDER);
    // Blocks of a pool are never mapped here: all of them are free.
    for (name, blocks) in
        [("HugePages_Total", held), ("HugePages_Free", held), ("HugePages_Rsvd", 0), ("HugePages_Surp", 0)]
    {
        writeln!(text, "{:<16}{blocks:>8}", format!("{name}:")).expect("writing to a string can't fail");
    }
    line(&mut text, "Hugepagesize", huge);
    let of_order =
        |order: u8| ((engine.core.mm.kmem.huge_pools.len(order) as u64) << order) * PAGE_SIZE / 1024;
    line(&mut text, "Hugetlb", (1..=MAX_BLOCK_ORDER).map(of_order).sum());
    text
}

/// `MemAvailable` in pages: the kernel's estimate of what a new program could take without swapping.
fn available_pages(engine: &Engine) -> u64 {
    let count = |stat: Stat| engine.core.mm.vmstat(stat).max(0) as u64;
    let low: u64 = engine.figures().zones().map(|zone| zone.low).sum();
    let given_back = |pages: u64| pages - (pages / 2).min(low);
    let cache = count(Stat::NrActiveFile) + count(Stat::NrInactiveFile);
    let free = count(Stat::NrFreePages) + given_back(cache) + given_back(count(Stat::NrSlabReclaimable));
    free.saturating_sub(engine.figures().total_reserve())
}

pub(super) fn buddyinfo_show(engine: &mut Engine) -> String {
    let mut text = String::new();
    for ZoneInfo { node: NodeId(node), zone, free_blocks, .. } in engine.figures().zones() {
        let blocks: String = free_blocks.iter().map(|blocks| format!("{blocks:>6} ")).collect();
        writeln!(text, "Node {node}, zone {:>8} {blocks}", zone.name())
            .expect("writing to a string can't fail");
    }
    text
}

pub(super) fn zoneinfo_show(engine: &mut Engine) -> String {
    let mut text = String::new();
    let mut node = None;
    for zone in engine.figures().zones() {
        zone_text(engine, &mut text, &zone, node != Some(zone.node)).expect("writing to a string can't fail");
        node = Some(zone.node);
    }
    text
}

fn zone_text(engine: &Engine, text: &mut String, zone: &ZoneInfo, is_first: bool) -> std::fmt::Result {
    let ZoneInfo { node: NodeId(node), free, boost, min, low, high, promo, .. } = *zone;
    writeln!(text, "Node {node}, zone {:>8}", zone.zone.name())?;
    if is_first {
        writeln!(text, "  per-node stats")?;
        for &stat in PER_NODE {
            writeln!(text, "      {:<12} {}", stat.name(), engine.core.mm.node_stat(zone.node, stat).max(0))?;
        }
    }
    writeln!(text, "  pages free     {free}")?;
    for (name, pages) in [
        ("boost", boost),
        ("min", min),
        ("low", low),
        ("high", high),
        ("promo", promo),
        ("spanned", zone.spanned),
        ("present", zone.present),
        ("managed", zone.managed),
    ] {
        writeln!(text, "        {name:<8} {pages}")?;
    }
    let reserve: Vec<String> = zone.lowmem_reserve.iter().map(u64::to_string).collect();
    writeln!(text, "        protection: ({})", reserve.join(", "))?;
    writeln!(text, "      {:<12} {free}", Stat::NrFreePages.name())?;
    writeln!(text, "  pagesets")?;
    for (cpu, PagesetInfo { count, high, batch, high_min, high_max }) in zone.pagesets.iter().enumerate() {
        writeln!(text, "    cpu: {cpu}")?;
        for (name, pages) in [
            ("count:", count),
            ("high:", high),
            ("batch:", batch),
            ("high_min:", high_min),
            ("high_max:", high_max),
        ] {
            writeln!(text, "              {name:<9} {pages}")?;
        }
    }
    let is_unreclaimable = engine.core.kswapds[usize::from(node)].is_hopeless();
    writeln!(text, "  node_unreclaimable:  {}", u8::from(is_unreclaimable))?;
    writeln!(text, "  start_pfn:           {}", zone.start_pfn)
}

fn line(text: &mut String, name: &str, kibibytes: u64) {
    writeln!(text, "{:<16}{kibibytes:>8} kB", format!("{name}:")).expect("writing to a string can't fail");
}

#[cfg(test)]
mod tests {
    use crate::{Config, Engine};

    /// The number behind a name, wherever it stands.
    fn figure(text: &str, name: &str) -> u64 {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect("the line is there");
        line.trim_start()[name.len()..]
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a number")
    }

    #[test]
    fn meminfo_has_the_kernels_columns_and_adds_up() {
        let mut engine = Engine::new(Config::default()).expect("the default is good");
        let text = engine.read_file("/proc/meminfo").expect("it is readable");
        let has_unit = |line: &str| line.is_char_boundary(24) && line[24..].starts_with(" kB");
        assert!(text.lines().all(|line| has_unit(line) || line.starts_with("HugePages_")), "{text}");
        assert!(text.starts_with("MemTotal:       "), "{text}");
        let managed: u64 = engine.figures().zones().map(|zone| zone.managed).sum();
        assert_eq!(figure(&text, "MemTotal:"), managed * 4);
        assert_eq!(figure(&text, "MemFree:"), engine.figures().vmstat(crate::Stat::NrFreePages) as u64 * 4);
        assert_eq!((figure(&text, "SwapTotal:"), figure(&text, "Active(file):")), (0, 0));
    }

    /// Nothing is cached: what is available is free, but for reserves and high marks. A block of a pool is not.
    #[test]
    fn available_memory_is_what_no_reserve_keeps_and_pools_of_huge_pages_are_told_in_blocks() {
        let config = Config { node_pages: vec![1 << 16], cpus: 1, ..Config::default() };
        let mut engine = Engine::new(config).expect("it is good");
        let mm = engine.process_create(crate::MemcgId::ROOT);
        let task = engine.task_create(mm, crate::CpuId(0));
        let text = engine.read_file("/proc/meminfo").expect("it is readable");
        let available = figure(&text, "MemAvailable:");
        assert_eq!(available, figure(&text, "MemFree:") - 4 * engine.figures().total_reserve());
        let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
        let mut step = engine.write_file(task, path, "3").expect("it takes a number");
        while step == crate::Step::Again {
            step = engine.resume(task);
        }
        let text = engine.read_file("/proc/meminfo").expect("it is readable");
        let pool = ["HugePages_Total:", "HugePages_Free:", "Hugepagesize:", "Hugetlb:"];
        assert_eq!(pool.map(|name| figure(&text, name)), [3, 3, 2048, 6144]);
        assert!(figure(&text, "MemAvailable:") <= available - 6144);
    }

    #[test]
    fn buddyinfo_has_the_free_blocks_of_each_order_zone_by_zone() {
        let mut engine = Engine::new(Config { node_pages: vec![1 << 16, 1 << 16], ..Config::default() })
            .expect("it is good");
        let text = engine.read_file("/proc/buddyinfo").expect("it is readable");
        let zones: Vec<_> = engine.figures().zones().collect();
        assert_eq!(text.lines().count(), zones.len());
        for (line, zone) in text.lines().zip(&zones) {
            let head = format!("Node {}, zone {:>8} ", zone.node.0, zone.zone.name());
            let blocks = line.strip_prefix(&head).expect("its head");
            let blocks: Vec<u64> =
                blocks.split_whitespace().map(|word| word.parse().expect("a number")).collect();
            assert_eq!(blocks, zone.free_blocks);
            let free: u64 = (0..).zip(&blocks).map(|(order, count)| count << order).sum();
            assert_eq!(free, zone.free);
        }
    }

    #[test]
    fn zoneinfo_names_each_zone_with_its_marks_and_the_nodes_counters_once() {
        let mut engine =
            Engine::new(Config { node_pages: vec![1 << 16, 1 << 16], cpus: 2, ..Config::default() })
                .expect("it is good");
        let text = engine.read_file("/proc/zoneinfo").expect("it is readable");
        let zones: Vec<_> = engine.figures().zones().collect();
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("Node ")).collect();
        let expected: Vec<String> =
            zones.iter().map(|zone| format!("Node {}, zone {:>8}", zone.node.0, zone.zone.name())).collect();
        assert_eq!(heads, expected);
        assert_eq!(text.matches("  per-node stats\n").count(), 2);
        assert_eq!(text.matches("    cpu: 1\n").count(), zones.len());
        for (part, zone) in text.split("Node ").skip(1).zip(&zones) {
            let marks =
                ["pages free", "min", "low", "high", "managed", "start_pfn:"].map(|name| figure(part, name));
            assert_eq!(
                marks,
                [zone.free, zone.min, zone.low, zone.high, zone.managed, zone.start_pfn],
                "{part}"
            );
            assert!(part.contains(&format!("        protection: ({}, ", zone.lowmem_reserve[0])), "{part}");
            assert!(part.contains("  node_unreclaimable:  0\n"), "kswapd has not given up: {part}");
        }
    }
}
