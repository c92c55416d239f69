//! The text files through which a kernel is watched and steered, under the kernel's names and in its formats, so that
//! existing tools read ours. [reclaim 7]
//!
//! | file | |
//! |---|---|
//! | `/proc/vmstat` | counters of the whole machine, always up to date |
//! | `/proc/meminfo`, `/proc/zoneinfo`, `/proc/buddyinfo` | what memory is used for, where it lies, and in which blocks |
//! | `/proc/swaps` | swap devices, how full they are, and their priorities |
//! | `/proc/sys/vm/swappiness`, `min_free_kbytes`, `watermark_scale_factor`, `compaction_proactiveness`, `dirty_*` | read, write: a number |
//! | `/proc/sys/vm/compact_memory` | write: `1` compacts all zones |
//! | `/proc/sys/vm/drop_caches` | write: `1` drops clean pages of files that nobody uses, `2` slab objects, `3` both |
//! | `/proc/sys/kernel/numa_balancing` | read, write: what has pages near those who use them, in bits |
//! | `/sys/kernel/mm/numa/demotion_enabled` | read, write: whether reclaim moves pages to a slower tier |
//! | `/sys/kernel/mm/numa/pagecache_promotion_enabled` | read, write: whether pages that are read again leave a slower tier |
//! | `/proc/sys/vm/pghot_*`, `/sys/kernel/debug/pghot/*` | knobs of hot-page tracking; of `enabled_sources` each source is a bit |
//! | `/sys/devices/virtual/memory_tiering/memory_tierN/nodelist` | nodes of a tier, of all tiers that there are |
//! | `/sys/devices/system/node/nodeN/{vmstat,numastat}` | counters of a node, and where requests for its memory got some |
//! | `/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages` | read, write: blocks that are held; all orders above 0 |
//! | `/sys/kernel/mm/transparent_hugepage/enabled` | read, write: whose anonymous memory is of huge pages, one of `always madvise [never]` |
//! | `/proc/sys/vm/stat_refresh` | reading it has all CPUs look after the free pages that they hold |
//! | `/sys/fs/cgroup/PATH/memory.current`, `memory.swap.current` | usage in bytes |
//! | `/sys/fs/cgroup/PATH/memory.{min,low,high,max,dirty_min,swap.high,swap.max}` | read, write: bytes, `K`/`M`/`G` suffixes, or `max` |
//! | `/sys/fs/cgroup/PATH/memory.oom.group` | read, write: whether its processes are killed together |
//! | `/sys/fs/cgroup/PATH/memory.{stat,events,events.local}` | reading `memory.stat` flushes the group's statistics if enough is pending |
//! | `/sys/fs/cgroup/PATH/{memory.swap.events,cgroup.stat}` | how often swap limits were met; groups below, and removed ones that are still charged |
//! | `/sys/fs/cgroup/PATH/memory.reclaim` | write: bytes to reclaim, optionally ` swappiness=N`; since 6.15 also `max`, for anonymous memory only; a signal ends it since 7.1 or 7.2 |
//! | `/sys/block/zramN/{mm_stat,io_stat}` | what the compressed pages of a zram device take, and how many found no memory |
//! | `/sys/fs/cgroup/PATH/memory.zswap.{current,max,writeback}` | bytes of compressed pages, their limit, whether they may be written to the device |
//! | `/sys/kernel/debug/zswap/*`, `/sys/module/zswap/parameters/*` | what zswap has stored and rejected; its parameters, read and written |
//! | `/sys/kernel/debug/lru_gen` | read: generations with their ages and pages; write: commands that age and evict |
//! | `/sys/kernel/debug/lru_gen_full` | read: the same with refaults by tier and what walks saw |
//! | `/sys/kernel/mm/lru_gen/enabled` | read, write: `0x0001` generations, `0x0002` page-table walks, `0x0004` upper entries' bits |
//! | `/sys/kernel/mm/lru_gen/min_ttl_ms` | read, write: a number; kswapd rather kills than takes what is younger |

pub(crate) mod error; // why a file could not be read or written
mod files; // which files there are
mod meminfo; // `/proc/meminfo`, `/proc/zoneinfo` and `/proc/buddyinfo`
mod lru_gen; // the text of generations, and commands
mod zswap; // compressed pages in front of a swap device
mod swaps; // `/proc/swaps`
mod zram; // what compressed swap devices take
mod lru_gen_settings; // `enabled` and `min_ttl_ms`
mod numa; // tiers of memory
mod huge_memory; // whose memory is of huge pages
mod pghot; // sources of hot pages by bits
mod oom_log; // what the log says of an OOM kill
mod sysctl; // `/proc/sys`: parameters of a machine that runs

use crate::kmem::PoolResize;
use crate::machine::step::{Served, Step};
use crate::memcg::{MEMORY_EVENTS, Protection, SwapEvent, UNLIMITED};
use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::migrate::CompactMemory;
use crate::page_cache::DropCaches;
use crate::reclaim::{Reclaimer, UserReclaim, Why};
use crate::serve::engine::Engine;
use crate::stat::Stat;
use crate::units::{MemcgId, NodeId, PAGE_SIZE, SwapId, TaskId};
use files::{MachineTarget, MemcgFile};
use lru_gen_settings::{parse_enabled, parse_min_ttl};
use numa::NodeFile;
use pageout_rules::lru::SWAPPINESS_ANON_ONLY;
use pageout_rules::reclaim::AnonOnly;
use std::fmt::{self, Write};
use zram::ZramFile;

pub use error::{Errno, FileError};
pub use files::{CGROUP_FILES, CgroupFile, Holds, MACHINE_FILES, MachineFile};
pub(crate) use lru_gen::LruGenWrite;
pub use numa::{NODE_FILES, kernel_bool};
pub use zram::ZRAM_FILES;

const CGROUP_ROOT: &str = "/sys/fs/cgroup";

enum Target {
    Zram(SwapId, ZramFile),
    MemoryTier(u32),
    Node(NodeId, NodeFile),
    Machine(MachineTarget),
    Memcg(MemcgId, MemcgFile),
}

/// Lines of `memory.stat`: name, counter, and whether it is shown in bytes.
const MEMORY_STAT: &[(&str, Stat, bool)] = &[
    ("anon", Stat::NrAnonPages, true),
    ("file", Stat::NrFilePages, true),
    ("kernel", Stat::Kernel, true),
    ("pagetables", Stat::NrPageTablePages, true),
    ("shmem", Stat::NrShmem, true),
    ("zswap", Stat::Zswap, false),
    ("zswapped", Stat::Zswapped, true),
    ("file_mapped", Stat::NrMapped, true),
    ("file_dirty", Stat::NrDirty, true),
    ("file_writeback", Stat::NrWriteback, true),
    ("swapcached", Stat::NrSwapcached, true),
    ("inactive_anon", Stat::NrInactiveAnon, true),
    ("active_anon", Stat::NrActiveAnon, true),
    ("inactive_file", Stat::NrInactiveFile, true),
    ("active_file", Stat::NrActiveFile, true),
    ("unevictable", Stat::NrUnevictable, true),
    ("slab_reclaimable", Stat::SlabReclaimable, false),
    ("workingset_refault_anon", Stat::WorkingsetRefaultAnon, false),
    ("workingset_refault_file", Stat::WorkingsetRefaultFile, false),
    ("workingset_activate_anon", Stat::WorkingsetActivateAnon, false),
    ("workingset_activate_file", Stat::WorkingsetActivateFile, false),
    ("workingset_restore_anon", Stat::WorkingsetRestoreAnon, false),
    ("workingset_restore_file", Stat::WorkingsetRestoreFile, false),
    ("workingset_nodereclaim", Stat::WorkingsetNodereclaim, false),
    ("pgscan_kswapd", Stat::PgscanKswapd, false),
    ("pgscan_direct", Stat::PgscanDirect, false),
    ("pgscan_khugepaged", Stat::PgscanKhugepaged, false),
    ("pgscan_proactive", Stat::PgscanProactive, false),
    ("pgsteal_kswapd", Stat::PgstealKswapd, false),
    ("pgsteal_direct", Stat::PgstealDirect, false),
    ("pgsteal_khugepaged", Stat::PgstealKhugepaged, false),
    ("pgsteal_proactive", Stat::PgstealProactive, false),
    ("pgdemote_kswapd", Stat::PgdemoteKswapd, false),
    ("pgdemote_direct", Stat::PgdemoteDirect, false),
    ("pgdemote_khugepaged", Stat::PgdemoteKhugepaged, false),
    ("pgdemote_proactive", Stat::PgdemoteProactive, false),
    ("pgfault", Stat::Pgfault, false),
    ("pgmajfault", Stat::Pgmajfault, false),
    ("pgrefill", Stat::Pgrefill, false),
    ("pgactivate", Stat::Pgactivate, false),
    ("pgdeactivate", Stat::Pgdeactivate, false),
    ("pglazyfree", Stat::Pglazyfree, false),
    ("pglazyfreed", Stat::Pglazyfreed, false),
    ("numa_hint_page_cache", Stat::NumaHintPageCache, false),
    ("zswpin", Stat::Zswpin, false),
    ("zswpout", Stat::Zswpout, false),
    ("zswpwb", Stat::Zswpwb, false),
    ("thp_fault_alloc", Stat::ThpFaultAlloc, false),
    ("thp_swpout_fallback", Stat::ThpSwpoutFallback, false),
];

impl Engine {
    /// The names of `memory.stat` with their values, in the kernel's units (bytes for what is a size), as of the last flush.
    fn memory_stat(&self, memcg: MemcgId) -> Vec<(&'static str, u64)> {
        let value = |stat: Stat| self.core.memcg_stat(memcg, stat).max(0) as u64;
        let mut lines = Vec::new();
        for &(name, stat, in_bytes) in MEMORY_STAT {
            if name == "pgscan_kswapd" {
                let sum = |of: [Stat; 3]| of.into_iter().map(value).sum();
                lines.push(("pgscan", sum([Stat::PgscanKswapd, Stat::PgscanDirect, Stat::PgscanProactive])));
                lines.push((
                    "pgsteal",
                    sum([Stat::PgstealKswapd, Stat::PgstealDirect, Stat::PgstealProactive]),
                ));
            }
            if name == "pagetables" {
                lines.push(("kernel_stack", value(Stat::NrKernelStack) * 1024));
            }
            lines.push((name, value(stat) * if in_bytes { PAGE_SIZE } else { 1 }));
            if name == "swapcached" {
                lines.push(("anon_thp", value(Stat::NrAnonThps) * HUGE_PAGE_PAGES * PAGE_SIZE));
            }
            if name == "slab_reclaimable" {
                lines.push(("slab", value(Stat::SlabReclaimable)));
            }
        }
        lines
    }

    /// Reads a file.
    pub fn read_file(&mut self, path: &str) -> Result<String, FileError> {
        let mut text = String::new();
        match self.file_at(path)? {
            Target::Zram(swap, file) => {
                text = self.core.memory.swap.zram(swap).map_or_else(String::new, |zram| file.text(zram));
            }
            Target::MemoryTier(tier) => {
                text = self.nodelist_text(tier).ok_or_else(|| FileError::NoSuchFile(path.to_owned()))?;
            }
            Target::Node(node, file) => {
                text = self.node_text(node, file).ok_or_else(|| FileError::NoSuchFile(path.to_owned()))?;
            }
            Target::Machine(MachineTarget::DemotionEnabled) => {
                text = format!("{}\n", self.core.config.demotion_enabled);
            }
            Target::Machine(MachineTarget::PagecachePromotionEnabled) => {
                text = format!("{}\n", self.core.config.pagecache_promotion_enabled);
            }
            Target::Machine(MachineTarget::TransparentHugepage) => text = self.transparent_hugepage_text(),
            Target::Machine(MachineTarget::Vmstat) => {
                for &stat in Stat::ALL.iter().filter(|stat| stat.is_in_vmstat()) {
                    lines(&mut text, stat.name(), self.core.vmstat(stat));
                }
            }
            Target::Machine(MachineTarget::Sysctl(name)) => text = format!("{}\n", self.sysctl(name)),
            Target::Machine(MachineTarget::Zswap(file)) => text = format!("{}\n", self.zswap_figure(file)),
            Target::Machine(MachineTarget::Module(name)) => {
                text = format!("{}\n", self.module_parameter(name))
            }
            Target::Machine(MachineTarget::PghotSources(switches)) => text = self.sources_text(switches),
            Target::Machine(MachineTarget::Swaps) => text = self.swaps_text(),
            Target::Machine(MachineTarget::Meminfo) => text = self.meminfo_text(),
            Target::Machine(MachineTarget::Zoneinfo) => text = self.zoneinfo_text(),
            Target::Machine(MachineTarget::Buddyinfo) => text = self.buddyinfo_text(),
            Target::Machine(MachineTarget::LruGen) => text = self.lru_gen_text(false),
            Target::Machine(MachineTarget::CompactMemory | MachineTarget::DropCaches) => {
                return Err(FileError::NotPermitted(path.to_owned()));
            }
            Target::Machine(MachineTarget::StatRefresh) => self.core.refresh_all_lists(),
            Target::Machine(MachineTarget::LruGenFull) => text = self.lru_gen_text(true),
            Target::Machine(MachineTarget::Enabled) => text = self.enabled_text(),
            Target::Machine(MachineTarget::NrHugepages(order)) => {
                text = format!("{}\n", self.core.kmem.huge_pools.len(order));
            }
            Target::Machine(MachineTarget::MinTtl) => text = format!("{}\n", self.core.min_ttl_ms),
            Target::Memcg(memcg, file) => {
                let group = &self.core.memcgs[memcg];
                match file {
                    MemcgFile::Current => text = format!("{}\n", group.usage * PAGE_SIZE),
                    MemcgFile::SwapCurrent => text = format!("{}\n", group.swap_usage * PAGE_SIZE),
                    MemcgFile::Min => text = limit_text(group.min),
                    MemcgFile::Low => text = limit_text(group.low),
                    MemcgFile::High => text = limit_text(group.high),
                    MemcgFile::Max => text = limit_text(group.max),
                    MemcgFile::DirtyMin => text = limit_text(group.dirty_min),
                    MemcgFile::SoftLimit => text = limit_text_v1(group.soft_limit),
                    MemcgFile::SwapHigh => text = limit_text(group.swap_high),
                    MemcgFile::SwapMax => text = limit_text(group.swap_max),
                    MemcgFile::OomGroup => text = format!("{}\n", u8::from(group.oom_group)),
                    MemcgFile::CpusetMems => {
                        text = group.mems.map_or(String::new(), |mems| mems.to_string()) + "\n";
                    }
                    MemcgFile::CpusetMemsEffective => text = self.mems_effective_text(memcg),
                    MemcgFile::ZswapMax => text = limit_text(group.zswap_max),
                    MemcgFile::ZswapWriteback => text = format!("{}\n", u8::from(group.zswap_writeback)),
                    MemcgFile::ZswapCurrent => {
                        self.core.flush_for_reader(memcg);
                        text = format!("{}\n", self.core.memcg_stat(memcg, Stat::Zswap).max(0));
                    }
                    MemcgFile::Reclaim => return Err(FileError::NotPermitted(path.to_owned())),
                    MemcgFile::Events => events_text(&mut text, group.events),
                    MemcgFile::EventsLocal => events_text(&mut text, group.events_local),
                    MemcgFile::SwapEvents => {
                        for (name, count) in SwapEvent::NAMES.iter().zip(group.swap_events) {
                            lines(&mut text, name, count);
                        }
                    }
                    MemcgFile::CgroupStat => {
                        self.core.release_empty_memcgs();
                        let (online, dying) = self.core.memcgs.descendants(memcg);
                        lines(&mut text, "nr_descendants", online);
                        lines(&mut text, "nr_dying_descendants", dying);
                    }
                    MemcgFile::Stat => {
                        self.core.flush_for_reader(memcg);
                        for (name, value) in self.memory_stat(memcg) {
                            lines(&mut text, name, value);
                        }
                    }
                }
            }
        }
        Ok(text)
    }

    /// Writes a file, as `task`, which must not be in the middle of anything else.
    ///
    /// `memory.reclaim`, `lru_gen`, and a limit set below what is in use, reclaim before they return: the step says whether
    /// the task has to go on.
    pub fn write_file(&mut self, task: TaskId, path: &str, value: &str) -> Result<Step, FileError> {
        let target = self.file_at(path)?;
        let value = value.trim();
        let invalid = |expected: &str| FileError::Invalid {
            path: path.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        self.enter(task);
        let done = Step::Done(Served::Written { reclaimed: 0 });
        match target {
            Target::Zram(..)
            | Target::MemoryTier(_)
            | Target::Node(_, NodeFile::Vmstat | NodeFile::Numastat)
            | Target::Machine(
                MachineTarget::Vmstat
                | MachineTarget::Meminfo
                | MachineTarget::Swaps
                | MachineTarget::Zswap(_)
                | MachineTarget::Zoneinfo
                | MachineTarget::Buddyinfo
                | MachineTarget::StatRefresh
                | MachineTarget::LruGenFull,
            ) => Err(FileError::NotPermitted(path.to_owned())),
            Target::Node(node, NodeFile::Online) => {
                self.set_node_online(path, node, value)?;
                Ok(done)
            }
            Target::Machine(MachineTarget::DemotionEnabled) => {
                self.set_demotion_enabled(value).map_err(|expected| invalid(&expected))?;
                Ok(done)
            }
            Target::Machine(MachineTarget::PagecachePromotionEnabled) => {
                let enabled = kernel_bool(value).ok_or_else(|| invalid("true or false"))?;
                self.core.config.pagecache_promotion_enabled = enabled;
                Ok(done)
            }
            Target::Machine(MachineTarget::TransparentHugepage) => {
                self.set_transparent_hugepage(value).map_err(|expected| invalid(&expected))?;
                Ok(done)
            }
            Target::Machine(MachineTarget::CompactMemory) if value == "1" => {
                let zones = self.core.memory.zones.info().map(|zone| (zone.node, zone.zone));
                let request = Box::new(CompactMemory::new(zones));
                Ok(self.current(task).compact_memory(request))
            }
            Target::Machine(MachineTarget::CompactMemory) => Err(invalid("1")),
            Target::Machine(MachineTarget::DropCaches) => {
                let request = value.parse().ok().and_then(DropCaches::new);
                let request = request.ok_or_else(|| invalid("1 (pages), 2 (slab objects) or 3 (both)"))?;
                Ok(self.current(task).drop_caches(Box::new(request)))
            }
            Target::Machine(MachineTarget::LruGen) => self.lru_gen_write(task, LruGenWrite::new(value)),
            Target::Machine(MachineTarget::Enabled) => {
                let caps = parse_enabled(value).ok_or_else(|| invalid("an integer, `y` or `n`"))?;
                Ok(self.set_enabled(task, caps))
            }
            Target::Machine(MachineTarget::NrHugepages(order)) => {
                let wanted = value.parse().map_err(|_| invalid("a number of blocks"))?;
                Ok(self.current(task).resize_pool(Box::new(PoolResize::new(order, wanted))))
            }
            Target::Machine(MachineTarget::MinTtl) => {
                self.core.min_ttl_ms = parse_min_ttl(value).ok_or_else(|| invalid("milliseconds"))?;
                Ok(done)
            }
            Target::Machine(MachineTarget::Sysctl(name)) => {
                self.set_sysctl(name, value).map_err(|expected| invalid(&expected))?;
                Ok(done)
            }
            Target::Machine(MachineTarget::Module(name)) => {
                self.set_module_parameter(name, value).map_err(|expected| invalid(&expected))?;
                Ok(done)
            }
            Target::Machine(MachineTarget::PghotSources(switches)) => {
                self.set_sources(switches, value).map_err(|expected| invalid(&expected))?;
                Ok(done)
            }
            Target::Memcg(memcg, MemcgFile::ZswapWriteback) => {
                let may_write_back = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(invalid("0 or 1")),
                };
                self.core.memcgs[memcg].zswap_writeback = may_write_back;
                Ok(done)
            }
            Target::Memcg(memcg, MemcgFile::Reclaim) => {
                let knows_max = self.core.memcgs[memcg].policy.reclaim.anon_only != AnonOnly::Absent;
                let (pages, swappiness) = parse_reclaim(value, knows_max).ok_or_else(|| {
                    let max =
                        if knows_max { ", or `128M swappiness=max` for anonymous memory only" } else { "" };
                    invalid(&format!("bytes to reclaim, as `128M` or `128M swappiness=60`{max}"))
                })?;
                Ok(self.reclaim(task, memcg, pages, swappiness))
            }
            Target::Memcg(memcg, MemcgFile::CpusetMems) => {
                self.set_cpuset_mems(memcg, value).map_err(|expected| invalid(&expected))?;
                Ok(done)
            }
            Target::Memcg(memcg, MemcgFile::OomGroup) => {
                self.core.memcgs[memcg].oom_group = match value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(invalid("0 or 1")),
                };
                Ok(done)
            }
            Target::Memcg(memcg, MemcgFile::SoftLimit) => {
                // Version 1 calls no limit so.
                let limit = if value == "-1" { Some(UNLIMITED) } else { parse_limit(value) };
                let limit =
                    limit.ok_or_else(|| invalid("bytes, as `268435456` or `256M`, or `-1` for no limit"))?;
                let limit = if limit < UNLIMITED_V1 { limit } else { UNLIMITED };
                self.core.memcgs[memcg].soft_limit = limit;
                self.core.memcgs.has_soft_limits |= limit != UNLIMITED;
                Ok(done)
            }
            Target::Memcg(memcg, file) => {
                let group = &mut self.core.memcgs[memcg];
                let protection = Protection { min: group.min, low: group.low };
                let pages =
                    || parse_limit(value).ok_or_else(|| invalid("bytes, as `268435456` or `256M`, or `max`"));
                let limit = match file {
                    MemcgFile::Min => {
                        let protection = Protection { min: pages()?, ..protection };
                        self.core.memcgs.set_protection(memcg, protection);
                        return Ok(done);
                    }
                    MemcgFile::Low => {
                        let protection = Protection { low: pages()?, ..protection };
                        self.core.memcgs.set_protection(memcg, protection);
                        return Ok(done);
                    }
                    MemcgFile::SwapHigh => &mut group.swap_high,
                    MemcgFile::SwapMax => &mut group.swap_max,
                    MemcgFile::ZswapMax => &mut group.zswap_max,
                    MemcgFile::High => &mut group.high,
                    MemcgFile::Max => &mut group.max,
                    MemcgFile::DirtyMin => &mut group.dirty_min,
                    MemcgFile::Current
                    | MemcgFile::SoftLimit
                    | MemcgFile::SwapCurrent
                    | MemcgFile::Stat
                    | MemcgFile::Events
                    | MemcgFile::EventsLocal
                    | MemcgFile::SwapEvents
                    | MemcgFile::CgroupStat
                    | MemcgFile::OomGroup
                    | MemcgFile::CpusetMems
                    | MemcgFile::CpusetMemsEffective
                    | MemcgFile::ZswapCurrent
                    | MemcgFile::ZswapWriteback
                    | MemcgFile::Reclaim => return Err(FileError::NotPermitted(path.to_owned())),
                };
                let pages = pages()?;
                *limit = pages;
                let excess = self.core.memcgs[memcg].usage.saturating_sub(pages);
                if excess == 0 || !matches!(file, MemcgFile::High | MemcgFile::Max) {
                    return Ok(done);
                }
                // Unused stocks count against the limit too.
                self.core.stock_drain_below(memcg);
                let request =
                    UserReclaim::new(Reclaimer::new(memcg, Why::Limit, self.core.config.swappiness), excess);
                Ok(self.current(task).user_reclaim(Box::new(request)))
            }
        }
    }

    /// Reclaims so many pages from a group because a user asked for it (`memory.reclaim`).
    pub fn reclaim(&mut self, task: TaskId, memcg: MemcgId, pages: u64, swappiness: Option<u8>) -> Step {
        self.enter(task);
        let swappiness = swappiness.unwrap_or(self.core.config.swappiness);
        self.current(task).user_reclaim(Box::new(UserReclaim::new(
            Reclaimer::new(memcg, Why::Requested, swappiness),
            pages,
        )))
    }

    /// Removes a group by its directory, as rmdir does: one in which nobody runs and below which no group is left. What it is
    /// charged for stays until it is reclaimed.
    pub fn remove_directory(&mut self, path: &str) -> Result<(), FileError> {
        let inside =
            path.strip_prefix(CGROUP_ROOT).filter(|inside| inside.is_empty() || inside.starts_with('/'));
        let memcg = inside.and_then(|inside| self.core.memcgs.by_path(inside));
        let memcg = memcg.ok_or_else(|| FileError::NoSuchFile(path.to_owned()))?;
        let busy = |why: String| Err(FileError::Busy { path: path.to_owned(), why });
        let group = &self.core.memcgs[memcg];
        if memcg == MemcgId::ROOT {
            return busy("it is the root".to_owned());
        }
        let children: Vec<&str> = group.children_names().collect();
        if !children.is_empty() {
            return busy(format!("remove the groups in it first: {}", children.join(", ")));
        }
        match group.mms.len() {
            0 => {}
            1 => return busy("a process runs in it: let it exit or move it first".to_owned()),
            count => return busy(format!("{count} processes run in it: let them exit or move them first")),
        }
        self.core.memcg_offline(memcg);
        Ok(())
    }

    fn file_at(&self, path: &str) -> Result<Target, FileError> {
        if let Some(file) = MACHINE_FILES.iter().find(|file| file.path == path) {
            return Ok(Target::Machine(file.target));
        }
        let no_such_file = || FileError::NoSuchFile(path.to_owned());
        if let Some((number, file)) = ZramFile::of_path(path) {
            let swap = &self.core.memory.swap;
            let kinds = (0..swap.devices()).map(|at| swap.kind(SwapId(at as u8)));
            let device = zram::device(kinds, number).ok_or_else(no_such_file)?;
            return Ok(Target::Zram(device, file));
        }
        if let Some(tier) = numa::tier_of_path(path) {
            return Ok(Target::MemoryTier(tier));
        }
        if let Some((node, file)) = numa::node_of_path(path) {
            return Ok(Target::Node(node, file));
        }
        let inside = path.strip_prefix(CGROUP_ROOT).ok_or_else(no_such_file)?;
        let (group, file) = inside.rsplit_once('/').ok_or_else(no_such_file)?;
        let no_such_group = || FileError::NoSuchGroup { path: path.to_owned(), group: group.to_owned() };
        let memcg = self.core.memcgs.by_path(group).ok_or_else(no_such_group)?;
        let file = CgroupFile::by_name(file).ok_or_else(no_such_file)?;
        if file.file == MemcgFile::SoftLimit && self.core.config.cgroup_version != 1 {
            return Err(no_such_file());
        }
        if memcg == MemcgId::ROOT && !file.is_in_root {
            return Err(no_such_file());
        }
        Ok(Target::Memcg(memcg, file.file))
    }
}

fn events_text(text: &mut String, events: [u64; 6]) {
    for (name, count) in MEMORY_EVENTS.iter().zip(events) {
        lines(text, name, count);
    }
}

fn lines(text: &mut String, name: &str, value: impl fmt::Display) {
    writeln!(text, "{name} {value}").expect("writing to a string can't fail");
}

fn limit_text(pages: u64) -> String {
    match pages {
        UNLIMITED => "max\n".to_owned(),
        pages => format!("{}\n", pages * PAGE_SIZE),
    }
}

/// No limit, as version 1 has it: the largest number of whole pages that a signed number of bytes holds.
const UNLIMITED_V1: u64 = i64::MAX as u64 / PAGE_SIZE;

fn limit_text_v1(pages: u64) -> String {
    format!("{}\n", pages.min(UNLIMITED_V1) * PAGE_SIZE)
}

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

/// Pages, and the swappiness if one is given. `knows_max`: it may be `max`.
fn parse_reclaim(text: &str, knows_max: bool) -> Option<(u64, Option<u8>)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Policy};

    fn engine() -> (Engine, TaskId) {
        let mut engine =
            Engine::new(Config { policy: Policy::of("classic@6.12"), ..Config::default() }).unwrap();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, crate::CpuId(0));
        (engine, task)
    }

    #[test]
    fn limits_are_written_and_read_in_bytes() {
        let (mut engine, task) = engine();
        let path = "/sys/fs/cgroup/job/memory.max";
        assert_eq!(engine.read_file(path).unwrap(), "max\n");
        let _ = engine.write_file(task, path, "64M\n").unwrap();
        assert_eq!(engine.read_file(path).unwrap(), "67108864\n");
    }

    #[test]
    fn a_malformed_value_is_refused_with_what_would_be_right() {
        let (mut engine, task) = engine();
        let error = engine.write_file(task, "/sys/fs/cgroup/job/memory.high", "64Q").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/sys/fs/cgroup/job/memory.high: invalid value `64Q` (EINVAL): expected bytes, as `268435456` or `256M`, or `max`"
        );
        assert!(engine.write_file(task, "/proc/sys/vm/swappiness", "201").is_err());
        assert!(engine.write_file(task, "/sys/fs/cgroup/job/memory.reclaim", "1M swappiness=900").is_err());
    }

    #[test]
    fn every_file_opens_as_its_row_says() {
        let (mut engine, task) = engine();
        engine.core.config.cgroup_version = 1;
        let of_group = CGROUP_FILES
            .iter()
            .map(|file| (file.name, file.is_readable(), file.is_writable(), file.is_in_root));
        for (name, is_readable, is_writable, is_in_root) in of_group {
            let path = format!("/sys/fs/cgroup/job/{name}");
            let refused = Err(FileError::NotPermitted(path.clone()));
            assert_eq!(engine.read_file(&path).is_ok(), is_readable, "{path}");
            assert_eq!(engine.write_file(task, &path, "4096") != refused, is_writable, "{path}");
            let in_root = format!("/sys/fs/cgroup/{name}");
            let is_there = engine.read_file(&in_root) != Err(FileError::NoSuchFile(in_root.clone()));
            assert_eq!(is_there, is_in_root, "{in_root}");
        }
        for file in MACHINE_FILES {
            assert_eq!(engine.read_file(file.path).is_ok(), file.is_readable(), "{}", file.path);
            let refused = Err(FileError::NotPermitted(file.path.to_owned()));
            let mut written = engine.write_file(task, file.path, "1");
            assert_eq!(written != refused, file.is_writable, "{}", file.path);
            while written == Ok(Step::Again) {
                written = Ok(engine.resume(task));
            }
        }
    }

    #[test]
    fn a_limit_is_at_first_what_its_row_says() {
        let (mut engine, _) = engine();
        engine.core.config.cgroup_version = 1;
        for file in CGROUP_FILES {
            if let Holds::Limit(initial) = file.holds {
                let text = engine.read_file(&format!("/sys/fs/cgroup/job/{}", file.name)).unwrap();
                assert_eq!(text.trim(), initial, "{}", file.name);
            }
        }
    }

    #[test]
    fn unknown_files_and_groups_do_not_exist() {
        let (mut engine, _) = engine();
        for path in ["/proc/vmstats", "/sys/fs/cgroup/job/memory.maximum", ""] {
            assert_eq!(engine.read_file(path), Err(FileError::NoSuchFile(path.to_owned())));
        }
        let path = "/sys/fs/cgroup/jab/memory.max".to_owned();
        let of_none = FileError::NoSuchGroup { path: path.clone(), group: "/jab".to_owned() };
        assert_eq!(engine.read_file(&path), Err(of_none));
    }

    #[test]
    fn vmstat_has_one_line_a_counter() {
        let (mut engine, _) = engine();
        let text = engine.read_file("/proc/vmstat").unwrap();
        assert_eq!(text.lines().count(), Stat::ALL.iter().filter(|stat| stat.is_in_vmstat()).count());
        assert!(text.starts_with("nr_free_pages 262144\n"));
    }
}
