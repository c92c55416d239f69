//! `/proc/meminfo` and `/proc/zoneinfo`: what the memory is used for, and where it lies.
//!
//! Lines that would stand for something that is not modelled (huge pages of files and tmpfs, CMA, vmalloc, hardware-poisoned pages, ...) are left out
//! rather than 0. `MemAvailable` is left out, too: it is an estimate by rules of its own, which no decision reads.

use std::fmt::Write;

use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::page_alloc::info::{PagesetInfo, ZoneInfo};
use crate::serve::engine::Engine;
use crate::stat::Stat;
use crate::units::{NodeId, PAGE_SIZE};

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

impl Engine {
    pub(super) fn meminfo_text(&self) -> String {
        let count = |stat: Stat| self.core.vmstat(stat).max(0) as u64;
        let swap = &self.core.memory.swap;
        let managed: u64 = self.zones().map(|zone| zone.managed).sum();
        let [inactive_anon, active_anon] = [Stat::NrInactiveAnon, Stat::NrActiveAnon].map(count);
        let [inactive_file, active_file] = [Stat::NrInactiveFile, Stat::NrActiveFile].map(count);
        let mut text = String::new();
        for (name, pages) in [
            ("MemTotal", managed),
            ("MemFree", count(Stat::NrFreePages)),
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
        line(&mut text, "AnonHugePages", count(Stat::NrAnonThps) * HUGE_PAGE_PAGES * PAGE_SIZE / 1024);
        text
    }

    pub(super) fn zoneinfo_text(&self) -> String {
        let mut text = String::new();
        let mut node = None;
        for zone in self.zones() {
            self.zone_text(&mut text, &zone, node != Some(zone.node))
                .expect("writing to a string can't fail");
            node = Some(zone.node);
        }
        text
    }

    fn zone_text(&self, text: &mut String, zone: &ZoneInfo, is_first: bool) -> std::fmt::Result {
        let ZoneInfo { node: NodeId(node), free, boost, min, low, high, promo, .. } = *zone;
        writeln!(text, "Node {node}, zone {:>8}", zone.zone.name())?;
        if is_first {
            writeln!(text, "  per-node stats")?;
            for &stat in PER_NODE {
                writeln!(text, "      {:<12} {}", stat.name(), self.core.node_stat(zone.node, stat).max(0))?;
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
        for (cpu, PagesetInfo { count, high, batch, high_min, high_max }) in zone.pagesets.iter().enumerate()
        {
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
        writeln!(text, "  start_pfn:           {}", zone.start_pfn)
    }
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
        assert!(
            text.lines().all(|line| line.is_char_boundary(24) && line[24..].starts_with(" kB")),
            "{text}"
        );
        assert!(text.starts_with("MemTotal:       "), "{text}");
        let managed: u64 = engine.zones().map(|zone| zone.managed).sum();
        assert_eq!(figure(&text, "MemTotal:"), managed * 4);
        assert_eq!(figure(&text, "MemFree:"), engine.vmstat(crate::Stat::NrFreePages) as u64 * 4);
        assert_eq!((figure(&text, "SwapTotal:"), figure(&text, "Active(file):")), (0, 0));
    }

    #[test]
    fn zoneinfo_names_each_zone_with_its_marks_and_the_nodes_counters_once() {
        let mut engine =
            Engine::new(Config { node_pages: vec![1 << 16, 1 << 16], cpus: 2, ..Config::default() })
                .expect("it is good");
        let text = engine.read_file("/proc/zoneinfo").expect("it is readable");
        let zones: Vec<_> = engine.zones().collect();
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
        }
    }
}
