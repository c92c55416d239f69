//! [`Figures`]: read-only information about a machine: its hardware, groups and files, sizes, counters, reports.

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::task::Task;
use crate::core::Core;
use crate::lru::GenerationInfo;
use crate::lru::batch::Rotations;
use crate::lru::lruvec::LruList;
use crate::machine::step::{Access, AccessError};
use crate::machine::work::WorkFor;
use crate::memcg::MEMORY_EVENTS;
use crate::memory::file::FileCounts;
use crate::memory::mempolicy::MemPolicy;
use crate::memory::mm::Backing;
use crate::memory::nodes::Nodes;
use crate::memory::table::{Entry, ReadaheadStats, Table};
use crate::mthp::MthpStat;
use crate::page_alloc::info::ZoneInfo;
use crate::reclaim::{KswapdActivity, Pageouts, ThrottleReason};
use crate::stat::{StaleDecision, StaleDecisions, Stat};
use crate::story::{PageName, PageState};
use crate::swap::contents::Contents;
use crate::tiers::MemoryTiers;
use crate::units::{CpuId, FileId, LruType, MemcgId, MmId, NodeId, ObjectId, Pfn, TaskId};
use crate::workingset::RefaultDistances;
use crate::writeback::WritebackReason;
use crate::zswap::ZswapPool;
use pageout_rules::lru::Lru;
use std::ops::Range;

/// Figures of a policy that keeps a group's pages on a node.
#[derive(Clone, PartialEq, Debug)]
pub struct GuestFigures {
    /// The policy.
    pub policy: &'static str,
    /// The path of the group.
    pub memcg: String,
    /// The node.
    pub node: NodeId,
    /// Figures by the policy's names.
    pub figures: Vec<(String, f64)>,
}

/// What the entries of a mapping lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MappedFolio {
    /// Nothing: the page was not accessed, or reclaim took it.
    Nothing,
    /// The page of zeroes.
    Zeroes,
    /// A swap slot.
    Swapped,
    /// A folio of this order, all of which the mapping has.
    Whole(u8),
    /// A page of a folio of this order, of which the mapping has a part.
    Part(u8),
}

/// A view of an engine between two calls.
#[derive(Clone, Copy)]
pub struct Figures<'a> {
    pub(crate) core: &'a Core,
    pub(super) tasks: &'a [Task],
}

impl Engine {
    /// Returns the read-only view of the machine.
    #[inline]
    pub fn figures(&self) -> Figures<'_> {
        Figures { core: &self.core, tasks: &self.tasks }
    }
}

impl<'a> Figures<'a> {
    /// Returns the number of CPUs of the machine.
    #[inline]
    pub fn cpus(self) -> u16 {
        self.core.mm.config.cpus
    }

    /// Returns the node of a CPU.
    #[inline]
    pub fn node_of_cpu(self, cpu: CpuId) -> NodeId {
        self.core.mm.config.layout.node_of_cpu(cpu.0)
    }

    /// Returns the tiers of memory.
    pub fn tiers(self) -> &'a MemoryTiers {
        &self.core.mm.tiers
    }

    /// Returns the timer ticks per second.
    #[inline]
    pub fn hz(self) -> u32 {
        self.core.mm.config.hz
    }

    /// Returns the group at a path such as `/web/front`.
    pub fn memcg_by_path(self, path: &str) -> Option<MemcgId> {
        self.core.mm.memcgs.by_path(path)
    }

    /// Returns the path of a group, as cgroupfs shows it or did before the group was removed.
    pub fn memcg_path(self, memcg: MemcgId) -> String {
        self.core.mm.memcgs.path(memcg)
    }

    /// Returns all groups with their paths, parents first; removed ones have none.
    pub fn memcgs(self) -> impl Iterator<Item = (MemcgId, String)> {
        let memcgs = self.core.mm.memcgs.subtree(MemcgId::ROOT).into_iter();
        memcgs.filter(|&id| self.core.mm.memcgs[id].is_online).map(|id| (id, self.core.mm.memcgs.path(id)))
    }

    /// Returns the pages charged to a group. Panics if the engine has no such id, as do all methods with an id.
    pub fn memcg_usage(self, memcg: MemcgId) -> u64 {
        self.core.mm.memcgs[memcg].usage
    }

    /// Returns the swap slots charged to a group.
    pub fn memcg_swap_usage(self, memcg: MemcgId) -> u64 {
        self.core.mm.memcgs[memcg].swap_usage
    }

    /// Returns counters of `memory.events` of a group and its descendants, in the order of [`crate::MEMORY_EVENTS`].
    pub fn memcg_events(self, memcg: MemcgId) -> [u64; MEMORY_EVENTS.len()] {
        self.core.mm.memcgs[memcg].events
    }

    /// Returns the pages on a group's lists, live: (inactive, active) of a type.
    pub fn list_sizes(self, memcg: MemcgId, kind: LruType) -> (u64, u64) {
        let lruvecs = &self.core.mm.lruvecs;
        let size = |list| lruvecs.nodes().map(|node| lruvecs[lruvecs.id(memcg, node)].size(list)).sum();
        (size(LruList::inactive(kind)), size(LruList::active(kind)))
    }

    /// Returns the file pages whose write was started for this reason.
    pub fn pages_written_by(self, reason: WritebackReason) -> u64 {
        self.core.writeback.written_by(reason)
    }

    /// Returns the pages that reclaim has started to write, to files and to swap.
    pub fn pageouts(self) -> Pageouts {
        self.core.pageouts
    }

    /// Returns how often this has happened to folios of an order, as `hugepages-<N>kB/stats/` says.
    pub fn mthp(self, order: u8, stat: MthpStat) -> u64 {
        self.core.mm.mthp.get(order, stat)
    }

    /// Returns what the entries of a mapping lead to, in the order of its pages, as a reader of `/proc/PID/pagemap` and `/proc/kpageflags` sees it.
    /// Equal neighbours are counted together: whole folios, or pages. The list is empty if the object is not a mapping of the task.
    pub fn mapped_folios(self, task: TaskId, object: ObjectId) -> Vec<(MappedFolio, u64)> {
        let objects = &self.tasks[task.index()].objects;
        let Some(&Object::Mapping { mm, vma, .. }) = objects.get(object.index()) else { return Vec::new() };
        let space = self.core.mm.memory.mm(mm);
        let range = space.vmas[vma].range();
        let mut all: Vec<(MappedFolio, u64)> = Vec::new();
        let mut page = range.start;
        while page < range.end {
            let word = space.table.word(page);
            let of_folio = 1 << word.order();
            let is_whole = |head: Pfn| {
                page.is_multiple_of(of_folio)
                    && page + of_folio <= range.end
                    && (page..page + of_folio).all(|at| {
                        let word = space.table.word(at);
                        word.is_present() && word.pfn() == head
                    })
            };
            let (what, pages) = match word.decode() {
                _ if word.is_zero_page() => (MappedFolio::Zeroes, 1),
                Entry::Present(head) if is_whole(head) => (MappedFolio::Whole(word.order()), of_folio),
                Entry::Present(_) => (MappedFolio::Part(word.order()), 1),
                Entry::Swap(_) => (MappedFolio::Swapped, 1),
                Entry::Empty | Entry::Shadow(_) => (MappedFolio::Nothing, 1),
            };
            match all.last_mut() {
                Some((last, count)) if *last == what => *count += 1,
                _ => all.push((what, 1)),
            }
            page += pages;
        }
        all
    }

    /// Returns how often reclaim has asked the flushers to write.
    pub fn flusher_wakeups(self) -> u64 {
        self.core.writeback.wakeups()
    }

    /// Returns requests, wakeups and waking time of the kswapds of all nodes together.
    pub fn kswapd_activity(self) -> KswapdActivity {
        let now = self.core.by.now;
        let each = self.core.kswapds.iter().map(|kswapd| kswapd.activity(now));
        each.fold(KswapdActivity::default(), |sum, of| KswapdActivity {
            requests: sum.requests + of.requests,
            wakeups: sum.wakeups + of.wakeups,
            awake: sum.awake + of.awake,
        })
    }

    /// Returns how often a reclaimer has waited for a device's queue, as in 2010.
    pub fn congestion_waits(self) -> u64 {
        self.core.congestion_waits
    }

    /// Returns how often a reclaimer has waited for this reason.
    pub fn throttled(self, reason: ThrottleReason) -> u64 {
        self.core.throttled[reason as usize]
    }

    /// Returns whether decisions based on old statistics are repeated with live ones: such decisions exist, and tracing was requested.
    pub fn compares_with_live(self) -> bool {
        self.core.compares_with_live()
    }

    /// Returns the outcomes of a kind of decision that reclaim and writeback base on statistics of the last flush.
    pub fn stale_decisions(self, of: StaleDecision) -> StaleDecisions {
        self.core.outdated[of as usize].clone()
    }

    /// Returns the distribution of refault distances: evictions and activations between the eviction of a page and its refault, on the clock of the group
    /// whose limit evicted it. Policies that compare generations have none.
    pub fn refault_distances(self) -> RefaultDistances {
        self.core.refault_distances
    }

    /// Returns the file pages whose write the device has failed.
    pub fn file_writes_failed(self) -> u64 {
        self.core.writeback.failed()
    }

    /// Returns the file pages that were dirty when they were truncated, and were therefore never written (`cancelled_write_bytes` of `/proc/PID/io`).
    pub fn file_writes_cancelled(self) -> u64 {
        self.core.writeback.cancelled()
    }

    /// Returns the parts of [`Engine::work`] by the kernel function that they were done for.
    pub fn work_for(self) -> &'a WorkFor {
        self.core.out.work_for()
    }

    /// Returns the bytes of metadata: the folio records of the sections in use and MGLRU's additions to them. The words of page tables,
    /// page-cache indexes and swap caches are included, with the data of their nodes.
    pub fn metadata_bytes(self) -> usize {
        let files = self.core.mm.memory.files.iter().map(|file| &file.index);
        let tables = files
            .chain(self.core.mm.memory.mms.iter().map(|mm| &mm.table))
            .chain(self.core.mm.memory.swap.indexes());
        let frames = self.core.mm.memory.folios.bytes() + self.core.mm.memory.places.bytes();
        let nodes = self.core.mm.memory.files.iter().map(|file| &file.nodes);
        let nodes = nodes.chain(self.core.mm.memory.mms.iter().map(|mm| &mm.nodes)).map(Nodes::bytes);
        frames + tables.map(Table::bytes).sum::<usize>() + nodes.sum::<usize>()
    }

    /// Returns the bytes of records of hot pages.
    pub fn hotness_bytes(self) -> u64 {
        self.core.mm.pghot.records.bytes()
    }

    /// Returns a counter of a group and its descendants, as of the last flush.
    pub fn memcg_stat(self, memcg: MemcgId, stat: Stat) -> i64 {
        self.core.mm.memcg_stat(memcg, stat)
    }

    /// Returns the current counter of a group and its descendants, flushed or not.
    pub fn memcg_stat_now(self, memcg: MemcgId, stat: Stat) -> i64 {
        self.core.mm.memcg_stat_now(memcg, stat)
    }

    /// Returns a counter of `/proc/vmstat`.
    pub fn vmstat(self, stat: Stat) -> i64 {
        self.core.mm.vmstat(stat)
    }

    /// Returns a counter of one node's `vmstat`.
    pub fn node_stat(self, node: NodeId, stat: Stat) -> i64 {
        self.core.mm.node_stat(node, stat)
    }

    /// Returns the physical addresses of a node, from its first page to its last one. A gap between its zones is included.
    pub fn addresses_of_node(self, node: NodeId) -> std::ops::Range<u64> {
        self.core.mm.addresses_of(node)
    }

    /// Returns the zones of all nodes, as in `/proc/zoneinfo`.
    pub fn zones(self) -> impl Iterator<Item = ZoneInfo> {
        self.core.mm.memory.zones.info()
    }

    /// Returns the pages that reserves and high watermarks of all zones keep: page cache that will be written may not fill them.
    pub fn total_reserve(self) -> u64 {
        self.core.mm.memory.zones.total_reserve()
    }

    /// Returns rotations at the end of writeback: how many pages should have moved to the cold end of their list, and why some did not.
    pub fn rotations(self) -> Rotations {
        self.core.out.rotations()
    }

    /// Returns the size and the limit of the zswap pool.
    pub fn zswap_pool(self) -> ZswapPool {
        self.core.mm.zswap_pool()
    }

    /// Returns how many pages were read ahead, and how many of them are unused, or left memory unused.
    pub fn readahead_stats(self) -> ReadaheadStats {
        self.core.mm.memory.readahead_stats()
    }

    /// Returns whether a group's folios are still being moved to the lists of another policy.
    pub fn is_switching(self, memcg: MemcgId) -> bool {
        self.core.mm.lruvecs.is_switching(memcg)
    }

    /// Returns figures of the policies that keep groups' pages, of each that has had a page, including removed groups.
    pub fn guests(self) -> impl Iterator<Item = GuestFigures> {
        self.core.mm.lruvecs.iter().filter_map(|lruvec| {
            let guest = lruvec.guest.as_ref().filter(|guest| guest.slots.had_pages())?;
            let mut figures = Vec::new();
            guest.slots.policy().figures(&mut |name, value| figures.push((name.to_owned(), value)));
            let Lru::Guest(listed) = self.core.mm.memcgs[lruvec.memcg].policy.lru else { return None };
            let memcg = self.core.mm.memcgs.path(lruvec.memcg);
            Some(GuestFigures { policy: listed.name, memcg, node: lruvec.node, figures })
        })
    }

    /// Returns the generations of a group on a node, oldest first; none if it does not use MGLRU.
    pub fn lru_gen(self, memcg: MemcgId, node: NodeId) -> Vec<GenerationInfo> {
        self.core.lru_gen(memcg, node)
    }

    /// Returns the file of this name.
    pub fn file_by_name(self, name: &str) -> Option<FileId> {
        self.core.mm.memory.files.iter().position(|file| file.name == name).map(|at| FileId(at as u32))
    }

    /// Returns the pages of a file.
    pub fn file_pages(self, file: FileId) -> u64 {
        self.core.mm.memory.file(file).pages()
    }

    /// Returns the counts of a file's pages, since it was created.
    pub fn file_counts(self, file: FileId) -> FileCounts {
        self.core.mm.memory.file(file).counts
    }

    /// Returns the number of slots of all swap devices that hold a page.
    pub fn swap_used(self) -> u64 {
        let swap = &self.core.mm.memory.swap;
        swap.total_pages() - swap.free_pages()
    }

    /// Returns the pages of a file that differ from its device: dirty ones, and ones under writeback. A page may be both.
    pub fn file_dirty(self, file: FileId) -> (u64, u64) {
        let inode = &self.core.mm.memory.file(file).inode;
        (inode.dirty.count(), inode.writeback.count())
    }

    /// Returns the pages of a file that are in memory, in order, with their frames; none for an unknown file.
    pub fn cached_pages(self, file: FileId, pages: Range<u64>) -> impl Iterator<Item = (u64, Pfn)> + use<'a> {
        let mm = &self.core.mm;
        let known = mm.memory.files.get(file.index()).map_or(0, |file| file.index.pages());
        let mut rest = pages.start..pages.end.min(known);
        std::iter::from_fn(move || {
            loop {
                let page = mm.next_in_index(file, rest.clone())?;
                rest.start = page + 1;
                if let Entry::Present(pfn) = mm.memory.file(file).index.word(page).decode() {
                    return Some((page, pfn));
                }
            }
        })
    }

    /// Returns the pages of a task's object.
    pub fn object_pages(self, task: TaskId, object: ObjectId) -> Option<u64> {
        self.tasks[task.index()].objects.get(object.index()).map(Object::pages)
    }

    /// Returns the state of a page; `None` while it is not in memory.
    pub fn page_state(self, page: PageName) -> Option<PageState> {
        self.core.mm.page_state(page)
    }

    /// Returns whether a page holds only zeroes, by its region: a machine with real contents writes nothing else to it.
    pub fn is_of_zeroes(self, page: PageName) -> bool {
        let (is_anon, owner, page) = match page {
            PageName::Anon { mm, page } => (true, mm.0, page),
            PageName::File { file, page } => (false, file.0, page),
        };
        let region = self.core.mm.region_compressibility(is_anon, owner, page);
        region.is_some_and(|region| region.contents_of(is_anon, owner, page as u32) == Contents::Zeroes)
    }

    /// Returns the memory policy of a process.
    pub fn mempolicy(self, mm: MmId) -> MemPolicy {
        self.core.mm.memory.mm(mm).placement.as_ref().map_or(MemPolicy::Default, |placement| placement.policy)
    }

    /// Returns the page that a task reaches through one of its objects.
    pub fn page_name(self, task: TaskId, object: ObjectId, page: u64) -> Result<PageName, AccessError> {
        self.tasks[task.index()].check_access(Access::new(object, page, false))?;
        Ok(self.tasks[task.index()].objects[object.index()].page_name(page, &self.core.mm.memory))
    }

    /// Returns a number that identifies the page of an access, resident or not, as long as its file or its address space exists.
    pub fn page_key(self, task: TaskId, access: Access) -> u64 {
        const FILES: u64 = 1 << 63;
        const SPACE_SHIFT: u32 = 36;
        let of_file = |file: FileId, page: u64| FILES | u64::from(file.0) << SPACE_SHIFT | page;
        match self.tasks[task.index()].objects[access.object.index()] {
            Object::File { file, .. } => of_file(file, access.page),
            Object::Mapping { mm, vma, start, .. } => match self.core.mm.memory.mm(mm).vmas[vma].backing {
                Backing::File(file) => of_file(file, access.page),
                Backing::Anon => u64::from(mm.0) << SPACE_SHIFT | (start + access.page),
            },
        }
    }

    /// The page of an address space that an access of a task goes to; `None`: it goes to an open file.
    pub fn mapped_page(self, task: TaskId, access: Access) -> Option<(MmId, u64)> {
        match self.tasks[task.index()].objects[access.object.index()] {
            Object::File { .. } => None,
            Object::Mapping { mm, start, .. } => Some((mm, start + access.page)),
        }
    }
}
