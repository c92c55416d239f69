//! Files of a cgroup: a row each, with the functions that read and write it.
//!
//! A row says what kind of thing its file holds, what reads it and what writes it, as the kernel's `cftype` does. Most limits are a field
//! of the group, which is all that their row names; a limit with an effect has a function for its write, below the table. Events and
//! `[[memcg]]` of scenarios, the reference and results take names, kinds and meanings from here.

use super::numa::{mems_effective_show, mems_show, mems_write};
use super::{WRITTEN, WriteError, invalid, lines};
use crate::access::engine::Engine;
use crate::machine::step::Step;
use crate::memcg::{MEMORY_EVENTS, Memcg, Protection, SwapEvent, UNLIMITED};
use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::reclaim::{Reclaimer, UserReclaim, Why};
use crate::stat::Stat;
use crate::units::{MemcgId, PAGE_SIZE, TaskId};
use pageout_rules::lru::SWAPPINESS_ANON_ONLY;
use pageout_rules::reclaim::AnonOnly;

/// The kind of a cgroup file's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// Read: how much is in use.
    Usage,
    /// Read and written: a limit or a protection, and what it is before anyone writes it.
    Limit(&'static str),
    /// Read and written: a list of nodes, as `0-1,3`, or nothing.
    Nodes,
    /// Read and written: 0 or 1, and which of them it is at first.
    Switch(&'static str),
    /// Read: counters, line by line.
    Counters,
    /// Written: an action to be done immediately.
    Request,
}

/// A file that every cgroup has, or every one but the root.
#[doc(alias = "cftype")]
pub struct CgroupFile {
    /// The file's name.
    pub name: &'static str,
    /// The kind of the file's contents.
    pub holds: Holds,
    /// True if the root has it, too. The root has no limits, and so no files for them.
    pub is_in_root: bool,
    /// The version of cgroups that alone has it; `None`: it is there in both.
    pub only_in: Option<u8>,
    /// True if it was posted and is in no released kernel: results mention it if it was set.
    pub is_posted: bool,
    /// Meaning of the file's contents, or effect of a write to it.
    pub doc: &'static str,
    read: Read,
    write: Write,
}

/// What a file shows.
enum Read {
    /// It can't be read.
    Not,
    /// Pages, in bytes.
    Usage(fn(&Memcg) -> u64),
    /// Pages, in bytes or as `max`.
    Limit(fn(&mut Memcg) -> &mut u64),
    /// 0 or 1.
    Switch(fn(&mut Memcg) -> &mut bool),
    /// A text of its own.
    Text(fn(&mut Engine, MemcgId) -> String),
}

/// What a write to a file does.
enum Write {
    /// It can't be written.
    Not,
    /// Bytes or `max`, which are stored.
    Limit(fn(&mut Memcg) -> &mut u64),
    /// The same, given to a function in pages.
    LimitBy(fn(&mut Engine, TaskId, MemcgId, u64) -> Step),
    /// 0 or 1.
    Switch(fn(&mut Memcg) -> &mut bool),
    /// A text of its own.
    Text(fn(&mut Engine, TaskId, MemcgId, &str) -> Result<Step, WriteError>),
}

const fn row(name: &'static str, holds: Holds, read: Read, write: Write, doc: &'static str) -> CgroupFile {
    CgroupFile { name, holds, is_in_root: false, only_in: None, is_posted: false, doc, read, write }
}

const fn usage(name: &'static str, of: fn(&Memcg) -> u64, doc: &'static str) -> CgroupFile {
    row(name, Holds::Usage, Read::Usage(of), Write::Not, doc)
}

const fn limit(
    name: &'static str,
    initial: &'static str,
    field: fn(&mut Memcg) -> &mut u64,
    doc: &'static str,
) -> CgroupFile {
    row(name, Holds::Limit(initial), Read::Limit(field), Write::Limit(field), doc)
}

const fn switch(
    name: &'static str,
    initial: &'static str,
    field: fn(&mut Memcg) -> &mut bool,
    doc: &'static str,
) -> CgroupFile {
    row(name, Holds::Switch(initial), Read::Switch(field), Write::Switch(field), doc)
}

const fn text(
    name: &'static str,
    holds: Holds,
    show: fn(&mut Engine, MemcgId) -> String,
    doc: &'static str,
) -> CgroupFile {
    row(name, holds, Read::Text(show), Write::Not, doc)
}

const fn written_by(write: fn(&mut Engine, TaskId, MemcgId, u64) -> Step, file: CgroupFile) -> CgroupFile {
    CgroupFile { write: Write::LimitBy(write), ..file }
}

const fn also_in_root(file: CgroupFile) -> CgroupFile {
    CgroupFile { is_in_root: true, ..file }
}

const fn only_in(version: u8, file: CgroupFile) -> CgroupFile {
    CgroupFile { only_in: Some(version), ..file }
}

const fn posted(file: CgroupFile) -> CgroupFile {
    CgroupFile { is_posted: true, ..file }
}

/// All files of a cgroup, usage and limits first.
#[rustfmt::skip]
pub const CGROUP_FILES: &[CgroupFile] = &[
    usage("memory.current", |group| group.usage, "Memory in use, in bytes."),
    written_by(memory_max_write, limit("memory.max", "max", |group| &mut group.max, "Hard limit: a task that reaches it reclaims. If that frees too little, the run ends out of memory, or a process of the cgroup is killed: see machine.oom.")),
    written_by(memory_high_write, limit("memory.high", "max", |group| &mut group.high, "Throttling limit: above it, tasks reclaim and are made to sleep, but no allocation fails.")),
    only_in(1, row("memory.soft_limit_in_bytes", Holds::Limit("9223372036854771712"), Read::Text(soft_limit_show), Write::Text(soft_limit_write), "Soft limit, of cgroup v1 only (kernel.memcg.cgroup_version = 1). If the machine is short of memory, a cgroup above it is reclaimed before others. At other times it may use any free memory. Only for the classic LRU; MGLRU uses the age of cgroups instead.")),
    written_by(memory_low_write, limit("memory.low", "0", |group| &mut group.low, "Memory that is spared while other cgroups have reclaimable memory.")),
    written_by(memory_min_write, limit("memory.min", "0", |group| &mut group.min, "Memory that is never reclaimed.")),
    only_in(2, posted(limit("memory.dirty_min", "0", |group| &mut group.dirty_min, "Proposed in May 2026, in no released kernel. A minimum of dirty pages, in bytes, or \"max\". While the cgroup and its descendants have fewer pages dirty and under writeback, its tasks do not sleep because of other cgroups' dirty pages. The limits that follow from its own memory.max still hold. 0 is the same as without the file: a task that dirties pages waits because of all dirty pages. Of cgroup v2 only."))),
    usage("memory.swap.current", |group| group.swap_usage, "Swap in use, in bytes."),
    limit("memory.swap.high", "max", |group| &mut group.swap_high, "Throttling limit of swap: above it, allocating tasks are made to sleep, as above memory.high, but nothing is reclaimed for them."),
    limit("memory.swap.max", "max", |group| &mut group.swap_max, "Maximum swap of the cgroup."),
    switch("memory.oom.group", "0", |group| &mut group.oom_group, "1: the OOM killer ends all processes of the cgroup and its descendants, or none. With machine.oom = \"kill\"."),
    row("cpuset.mems", Holds::Nodes, Read::Text(mems_show), Write::Text(mems_write), "Nodes that pages of its tasks may come from, as \"0-1,3\"; empty: those of its parent. Pages that are already on other nodes stay there. CPUs are bound per task: see task.cpunodebind."),
    text("cpuset.mems.effective", Holds::Counters, mems_effective_show, "The nodes that its pages actually come from."),
    text("memory.zswap.current", Holds::Usage, zswap_current_show, "Compressed pages of zswap, in bytes."),
    limit("memory.zswap.max", "max", |group| &mut group.zswap_max, "Maximum of its memory that compressed pages of zswap may use. Above it, the oldest is written to the device for each new one; 0: none is stored."),
    switch("memory.zswap.writeback", "1", |group| &mut group.zswap_writeback, "0: its pages stay in zswap, and pages that zswap rejects stay in memory."),
    also_in_root(text("memory.stat", Holds::Counters, memory_stat_show, "Sizes and counters. Reading it flushes the statistics of the cgroup if enough is pending.")),
    text("memory.events", Holds::Counters, |engine, memcg| events_text(engine.core.mm.memcgs[memcg].events), "How often limits were reached, here and in descendants."),
    text("memory.events.local", Holds::Counters, |engine, memcg| events_text(engine.core.mm.memcgs[memcg].events_local), "The same without descendants."),
    text("memory.swap.events", Holds::Counters, swap_events_show, "How often limits of swap were reached, and how often a page got no slot."),
    also_in_root(text("cgroup.stat", Holds::Counters, cgroup_stat_show, "Descendant groups: nr_descendants, and, of removed ones that are still charged, nr_dying_descendants.")),
    also_in_root(row("memory.reclaim", Holds::Request, Read::Not, Write::Text(memory_reclaim), "Bytes to reclaim, optionally with ` swappiness=N`, or since 6.15 ` swappiness=max` for anonymous memory only.")),
];

impl CgroupFile {
    /// The file of this name.
    pub fn by_name(name: &str) -> Option<&'static CgroupFile> {
        CGROUP_FILES.iter().find(|file| file.name == name)
    }

    /// Returns true if this is what it says before anyone writes it.
    pub fn is_initially(&self, text: &str) -> bool {
        matches!(self.holds, Holds::Limit(initial) | Holds::Switch(initial) if initial == text)
    }

    /// Returns true if it can be opened for reading.
    pub fn is_readable(&self) -> bool {
        !matches!(self.read, Read::Not)
    }

    /// Returns true if it can be opened for writing.
    pub fn is_writable(&self) -> bool {
        !matches!(self.write, Write::Not)
    }

    /// The file of a group; `None`: it can't be read.
    pub(super) fn show(&self, engine: &mut Engine, memcg: MemcgId) -> Option<String> {
        let group = &mut engine.core.mm.memcgs[memcg];
        Some(match self.read {
            Read::Not => return None,
            Read::Usage(of) => format!("{}\n", of(group) * PAGE_SIZE),
            Read::Limit(field) => limit_text(*field(group)),
            Read::Switch(field) => format!("{}\n", u8::from(*field(group))),
            Read::Text(show) => show(engine, memcg),
        })
    }

    /// Writes to the file of a group.
    pub(super) fn store(
        &self,
        engine: &mut Engine,
        task: TaskId,
        memcg: MemcgId,
        value: &str,
    ) -> Result<Step, WriteError> {
        let group = &mut engine.core.mm.memcgs[memcg];
        match self.write {
            Write::Not => return Err(WriteError::NotPermitted),
            Write::Limit(field) => *field(group) = pages_of(value)?,
            Write::LimitBy(write) => return Ok(write(engine, task, memcg, pages_of(value)?)),
            Write::Switch(field) => {
                *field(group) = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(invalid("0 or 1")),
                };
            }
            Write::Text(write) => return write(engine, task, memcg, value),
        }
        Ok(WRITTEN)
    }
}

fn memory_min_write(engine: &mut Engine, _: TaskId, memcg: MemcgId, min: u64) -> Step {
    let low = engine.core.mm.memcgs[memcg].low;
    engine.core.mm.memcgs.set_protection(memcg, Protection { min, low });
    WRITTEN
}

fn memory_low_write(engine: &mut Engine, _: TaskId, memcg: MemcgId, low: u64) -> Step {
    let min = engine.core.mm.memcgs[memcg].min;
    engine.core.mm.memcgs.set_protection(memcg, Protection { min, low });
    WRITTEN
}

fn memory_high_write(engine: &mut Engine, task: TaskId, memcg: MemcgId, pages: u64) -> Step {
    engine.core.mm.memcgs[memcg].high = pages;
    engine.core.mm.resize_guests(memcg);
    reclaim_above(engine, task, memcg, pages)
}

fn memory_max_write(engine: &mut Engine, task: TaskId, memcg: MemcgId, pages: u64) -> Step {
    engine.core.mm.memcgs[memcg].max = pages;
    engine.core.mm.resize_guests(memcg);
    reclaim_above(engine, task, memcg, pages)
}

/// A task that lowers a limit below the current use reclaims the rest.
fn reclaim_above(engine: &mut Engine, task: TaskId, memcg: MemcgId, pages: u64) -> Step {
    let excess = engine.core.mm.memcgs[memcg].usage.saturating_sub(pages);
    if excess == 0 {
        return WRITTEN;
    }
    // Unused stocks count against the limit too.
    engine.core.stock_drain_below(memcg);
    let reclaimer = Reclaimer::new(memcg, Why::Limit, engine.core.mm.config.swappiness);
    let is_v1 = engine.core.mm.config.cgroup_version == 1;
    let excess = if is_v1 { engine.core.mm.memcgs[memcg].usage.saturating_sub(pages) } else { excess };
    let request = match is_v1 {
        true => UserReclaim::down_to(reclaimer, pages, excess),
        false => UserReclaim::new(reclaimer, excess),
    };
    engine.current(task).user_reclaim(Box::new(request))
}

fn soft_limit_show(engine: &mut Engine, memcg: MemcgId) -> String {
    format!("{}\n", engine.core.mm.memcgs[memcg].soft_limit.min(UNLIMITED_V1) * PAGE_SIZE)
}

fn soft_limit_write(engine: &mut Engine, _: TaskId, memcg: MemcgId, value: &str) -> Result<Step, WriteError> {
    // Version 1 calls no limit so.
    let limit = if value == "-1" { Some(UNLIMITED) } else { parse_limit(value) };
    let limit = limit.ok_or_else(|| invalid("bytes, such as `268435456` or `256M`, or `-1` for no limit"))?;
    let limit = if limit < UNLIMITED_V1 { limit } else { UNLIMITED };
    engine.core.mm.memcgs[memcg].soft_limit = limit;
    engine.core.mm.memcgs.has_soft_limits |= limit != UNLIMITED;
    Ok(WRITTEN)
}

fn memory_reclaim(
    engine: &mut Engine,
    task: TaskId,
    memcg: MemcgId,
    value: &str,
) -> Result<Step, WriteError> {
    let knows_max = engine.core.mm.memcgs[memcg].policy.reclaim.anon_only != AnonOnly::Absent;
    let (pages, swappiness) = parse_reclaim(value, knows_max).ok_or_else(|| {
        let max = if knows_max { ", or `128M swappiness=max` for anonymous memory only" } else { "" };
        invalid(format!("bytes to reclaim, such as `128M` or `128M swappiness=60`{max}"))
    })?;
    Ok(engine.reclaim(task, memcg, pages, swappiness))
}

fn zswap_current_show(engine: &mut Engine, memcg: MemcgId) -> String {
    engine.core.flush_for_reader(memcg);
    format!("{}\n", engine.core.mm.memcg_stat(memcg, Stat::Zswap).max(0))
}

fn swap_events_show(engine: &mut Engine, memcg: MemcgId) -> String {
    lines(SwapEvent::NAMES.into_iter().zip(engine.core.mm.memcgs[memcg].swap_events))
}

fn cgroup_stat_show(engine: &mut Engine, memcg: MemcgId) -> String {
    engine.core.release_empty_memcgs();
    let (online, dying) = engine.core.mm.memcgs.descendants(memcg);
    lines([("nr_descendants", online), ("nr_dying_descendants", dying)])
}

fn events_text(events: [u64; MEMORY_EVENTS.len()]) -> String {
    lines(MEMORY_EVENTS.into_iter().zip(events))
}

/// In the kernel's units, bytes for what is a size, and as of the last flush, which is now if enough is pending.
fn memory_stat_show(engine: &mut Engine, memcg: MemcgId) -> String {
    engine.core.flush_for_reader(memcg);
    let value = |stat: &Stat| engine.core.mm.memcg_stat(memcg, *stat).max(0) as u64;
    lines(MEMORY_STAT.iter().map(|(name, unit, stats)| (*name, stats.iter().map(value).sum::<u64>() * unit)))
}

/// Bytes of a page, of a huge page and of a counter in KiB, and the unit of values that are not sizes, or are already in bytes.
const PAGES: u64 = PAGE_SIZE;
const HUGE_PAGES: u64 = HUGE_PAGE_PAGES * PAGE_SIZE;
const KIB: u64 = 1024;
const ONE: u64 = 1;

/// Lines of `memory.stat`: name, unit, and the counters whose sum it is.
const MEMORY_STAT: &[(&str, u64, &[Stat])] = &[
    ("anon", PAGES, &[Stat::NrAnonPages]),
    ("file", PAGES, &[Stat::NrFilePages]),
    ("kernel", PAGES, &[Stat::Kernel]),
    ("kernel_stack", KIB, &[Stat::NrKernelStack]),
    ("pagetables", PAGES, &[Stat::NrPageTablePages]),
    ("shmem", PAGES, &[Stat::NrShmem]),
    ("zswap", ONE, &[Stat::Zswap]),
    ("zswapped", PAGES, &[Stat::Zswapped]),
    ("file_mapped", PAGES, &[Stat::NrMapped]),
    ("file_dirty", PAGES, &[Stat::NrDirty]),
    ("file_writeback", PAGES, &[Stat::NrWriteback]),
    ("swapcached", PAGES, &[Stat::NrSwapcached]),
    ("anon_thp", HUGE_PAGES, &[Stat::NrAnonThps]),
    ("inactive_anon", PAGES, &[Stat::NrInactiveAnon]),
    ("active_anon", PAGES, &[Stat::NrActiveAnon]),
    ("inactive_file", PAGES, &[Stat::NrInactiveFile]),
    ("active_file", PAGES, &[Stat::NrActiveFile]),
    ("unevictable", PAGES, &[Stat::NrUnevictable]),
    ("slab_reclaimable", ONE, &[Stat::SlabReclaimable]),
    ("slab", ONE, &[Stat::SlabReclaimable]),
    ("workingset_refault_anon", ONE, &[Stat::WorkingsetRefaultAnon]),
    ("workingset_refault_file", ONE, &[Stat::WorkingsetRefaultFile]),
    ("workingset_activate_anon", ONE, &[Stat::WorkingsetActivateAnon]),
    ("workingset_activate_file", ONE, &[Stat::WorkingsetActivateFile]),
    ("workingset_restore_anon", ONE, &[Stat::WorkingsetRestoreAnon]),
    ("workingset_restore_file", ONE, &[Stat::WorkingsetRestoreFile]),
    ("workingset_nodereclaim", ONE, &[Stat::WorkingsetNodereclaim]),
    ("pgscan", ONE, &[Stat::PgscanKswapd, Stat::PgscanDirect, Stat::PgscanProactive]),
    ("pgsteal", ONE, &[Stat::PgstealKswapd, Stat::PgstealDirect, Stat::PgstealProactive]),
    ("pgscan_kswapd", ONE, &[Stat::PgscanKswapd]),
    ("pgscan_direct", ONE, &[Stat::PgscanDirect]),
    ("pgscan_khugepaged", ONE, &[Stat::PgscanKhugepaged]),
    ("pgscan_proactive", ONE, &[Stat::PgscanProactive]),
    ("pgsteal_kswapd", ONE, &[Stat::PgstealKswapd]),
    ("pgsteal_direct", ONE, &[Stat::PgstealDirect]),
    ("pgsteal_khugepaged", ONE, &[Stat::PgstealKhugepaged]),
    ("pgsteal_proactive", ONE, &[Stat::PgstealProactive]),
    ("pgdemote_kswapd", ONE, &[Stat::PgdemoteKswapd]),
    ("pgdemote_direct", ONE, &[Stat::PgdemoteDirect]),
    ("pgdemote_khugepaged", ONE, &[Stat::PgdemoteKhugepaged]),
    ("pgdemote_proactive", ONE, &[Stat::PgdemoteProactive]),
    ("pgfault", ONE, &[Stat::Pgfault]),
    ("pgmajfault", ONE, &[Stat::Pgmajfault]),
    ("pgrefill", ONE, &[Stat::Pgrefill]),
    ("pgactivate", ONE, &[Stat::Pgactivate]),
    ("pgdeactivate", ONE, &[Stat::Pgdeactivate]),
    ("pglazyfree", ONE, &[Stat::Pglazyfree]),
    ("pglazyfreed", ONE, &[Stat::Pglazyfreed]),
    ("numa_hint_page_cache", ONE, &[Stat::NumaHintPageCache]),
    ("zswpin", ONE, &[Stat::Zswpin]),
    ("zswpout", ONE, &[Stat::Zswpout]),
    ("zswpwb", ONE, &[Stat::Zswpwb]),
    ("thp_fault_alloc", ONE, &[Stat::ThpFaultAlloc]),
    ("thp_swpout_fallback", ONE, &[Stat::ThpSwpoutFallback]),
];

fn limit_text(pages: u64) -> String {
    match pages {
        UNLIMITED => "max\n".to_owned(),
        pages => format!("{}\n", pages * PAGE_SIZE),
    }
}

/// No limit, as version 1 has it: the largest number of whole pages that a signed number of bytes holds.
const UNLIMITED_V1: u64 = i64::MAX as u64 / PAGE_SIZE;

/// Bytes with an optional suffix, in whole pages, rounded down.
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        (at, 't' | 'T') => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    Some(digits.parse::<u64>().ok()?.checked_mul(unit)? / PAGE_SIZE)
}

fn parse_limit(text: &str) -> Option<u64> {
    if text == "max" { Some(UNLIMITED) } else { parse_bytes(text) }
}

fn pages_of(limit: &str) -> Result<u64, WriteError> {
    parse_limit(limit).ok_or_else(|| invalid("bytes, such as `268435456` or `256M`, or `max`"))
}

/// Pages, and the swappiness if one is given. `knows_max`: it may be `max`.
pub(super) fn parse_reclaim(text: &str, knows_max: bool) -> Option<(u64, Option<u8>)> {
    let mut words = text.split_whitespace();
    let pages = parse_bytes(words.next()?)?;
    let mut swappiness = None;
    for word in words {
        swappiness = Some(match word.strip_prefix("swappiness=")? {
            "max" if knows_max => SWAPPINESS_ANON_ONLY,
            number => number.parse().ok().filter(|&given: &u8| given <= 200)?,
        });
    }
    Some((pages, swappiness))
}
