//! [`Engine`], the facade that a machine holds: it is made from a [`Config`], takes accesses, and gives out operations and counters.

use crate::GroupRules;
use crate::config::{Config, ConfigError, FileKind, FileSpec, SwapSpec, check_range};
use crate::core::Core;
use crate::io::Ended;
use crate::lru::GenerationInfo;
use crate::lru::batch::Rotations;
use crate::lru::lruvec::LruList;
use crate::machine::op::{FullPlug, Op};
use crate::machine::step::{Access, AccessError};
use crate::machine::work::{Work, WorkFor};
use crate::memcg::MEMORY_EVENTS;
use crate::memory::errors::IoError;
use crate::memory::file::FileMapping;
use crate::memory::mm::{Backing, Mm};
use crate::memory::nodes::{NodeKind, Nodes};
use crate::memory::room::check_room;
use crate::memory::table::{ReadaheadStats, Table};
use crate::memory::tlb::Tlb;
use crate::page_alloc::info::ZoneInfo;
use crate::page_cache::PageCacheEvent;
use crate::pghot::Source;
use crate::reclaim::{KswapdActivity, Pageouts, ThrottleReason};
use crate::serve::access;
use crate::serve::task::Task;
use crate::stat::{StaleDecision, StaleDecisions, Stat};
use crate::story::{PageName, PageState, StoryEvent, StoryFilter};
use crate::swap::SwapDevice;
use crate::swap::contents::{Compressibility, Contents};
use crate::swap::zram::Zram;
use crate::tiers::MemoryTiers;
use crate::units::{
    BdiId, CpuId, FileId, IoId, LruType, MemcgId, MmId, Nanos, NodeId, ObjectId, Pfn, SwapId, TaskId,
};
use crate::writeback::{BdiLimits, WritebackReason};
use crate::zswap::ZswapPool;

/// The reclaim engine of one machine.
///
/// Build it (memcgs, files, swap, processes, tasks, objects), then run accesses; after every call take what
/// [`Engine::take_ops`] hands over before calling again, and carry it out, at once or by [`crate::OpQueue`].
pub struct Engine {
    pub(crate) core: Core,
    pub(super) tasks: Vec<Task>,
    /// The last run of hits, or the last end of a transfer, was work, or asked for operations.
    pub(super) has_work: bool,
}

impl Engine {
    /// A machine without files, swap or processes, and with the root memcg only.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        Ok(Engine { core: Core::new(config)?, tasks: Vec::new(), has_work: false })
    }

    /// Tells the engine what time it is. Time never goes back.
    pub fn set_now(&mut self, now: Nanos) {
        assert!(now >= self.core.now, "time goes back from {} to {now}", self.core.now);
        self.core.now = now;
    }

    /// The number of CPUs of the machine.
    pub fn cpus(&self) -> u16 {
        self.core.config.cpus
    }

    /// The node of a CPU.
    pub fn node_of_cpu(&self, cpu: CpuId) -> NodeId {
        self.core.config.layout.node_of_cpu(cpu.0)
    }

    /// The tiers of memory.
    pub fn tiers(&self) -> &MemoryTiers {
        &self.core.tiers
    }

    /// The address space of a task.
    pub fn mm_of_task(&self, task: TaskId) -> MmId {
        self.mm_of(task)
    }

    /// Timer ticks a second.
    pub fn hz(&self) -> u32 {
        self.core.config.hz
    }

    /// Creates a memory group with the default policy.
    pub fn memcg_create(&mut self, parent: MemcgId, name: &str) -> Result<MemcgId, ConfigError> {
        self.memcg_create_with(parent, name, self.core.config.policy.group)
    }

    /// Creates a memory group with a policy of its own.
    pub fn memcg_create_with(
        &mut self,
        parent: MemcgId,
        name: &str,
        policy: GroupRules,
    ) -> Result<MemcgId, ConfigError> {
        if name.is_empty() || name.contains('/') {
            return Err(ConfigError::BadName(name.to_owned()));
        }
        if !self.core.memcgs.contains(parent) || !self.core.memcgs[parent].is_online {
            return Err(ConfigError::Unknown(format!("memcg {}", parent.0)));
        }
        if self.core.memcgs.child(parent, name).is_some() {
            return Err(ConfigError::Exists(format!("memcg {name} in {}", self.core.memcgs.path(parent))));
        }
        check_range("memcgs", self.core.memcgs.len() as u64 + 1, 1, u64::from(u16::MAX))?;
        policy.check()?;
        let id = self.core.memcgs.create(parent, name, policy);
        self.core.lruvecs.add_memcg(id, &policy, self.core.now);
        Ok(id)
    }

    /// The group at a path such as `/web/front`.
    pub fn memcg_by_path(&self, path: &str) -> Option<MemcgId> {
        self.core.memcgs.by_path(path)
    }

    /// The path of a group, as cgroupfs shows it or did before the group was removed.
    pub fn memcg_path(&self, memcg: MemcgId) -> String {
        self.core.memcgs.path(memcg)
    }

    /// All groups with their paths, parents first; those that were removed have none.
    pub fn memcgs(&self) -> impl Iterator<Item = (MemcgId, String)> + '_ {
        let memcgs = self.core.memcgs.subtree(MemcgId::ROOT).into_iter();
        memcgs.filter(|&id| self.core.memcgs[id].is_online).map(|id| (id, self.core.memcgs.path(id)))
    }

    /// Pages charged to a group. Panics where the engine has none of this id, as all that take one do.
    pub fn memcg_usage(&self, memcg: MemcgId) -> u64 {
        self.core.memcgs[memcg].usage
    }

    /// Swap slots charged to a group.
    pub fn memcg_swap_usage(&self, memcg: MemcgId) -> u64 {
        self.core.memcgs[memcg].swap_usage
    }

    /// Counters of `memory.events` of a group and its descendants, in the order of [`crate::MEMORY_EVENTS`].
    pub fn memcg_events(&self, memcg: MemcgId) -> [u64; MEMORY_EVENTS.len()] {
        self.core.memcgs[memcg].events
    }

    /// Pages on a group's lists, live: (inactive, active) of a type.
    pub fn list_sizes(&self, memcg: MemcgId, kind: LruType) -> (u64, u64) {
        let lruvecs = &self.core.lruvecs;
        let size = |list| lruvecs.pools().map(|pool| lruvecs[lruvecs.id(memcg, pool)].size(list)).sum();
        (size(LruList::inactive(kind)), size(LruList::active(kind)))
    }

    /// Makes a device known that regular files live on, with the thread that writes them back. `name` tells the threads apart.
    pub fn bdi_register(&mut self, name: &str) -> Result<BdiId, ConfigError> {
        check_range("backing devices", self.core.writeback.bdis() as u64 + 1, 1, 1024)?;
        Ok(self.core.bdi_register(name))
    }

    /// Sets how much of what may be dirty may be a device's.
    pub fn bdi_set_limits(&mut self, bdi: BdiId, limits: BdiLimits) -> Result<(), ConfigError> {
        if bdi.index() >= self.core.writeback.bdis() {
            return Err(ConfigError::Unknown(format!("backing device {}", bdi.0)));
        }
        check_range("max_ratio", limits.max_ratio.into(), 0, 100)?;
        check_range("min_ratio", limits.min_ratio.into(), 0, limits.max_ratio.into())?;
        self.core.writeback.set_bdi_limits(bdi, limits);
        Ok(())
    }

    /// Creates a file. A regular one is on the first device; if there is none yet, that comes with it.
    pub fn file_create(&mut self, spec: FileSpec) -> Result<FileId, ConfigError> {
        if spec.kind == FileKind::Regular && self.core.writeback.bdis() == 0 {
            self.bdi_register("0")?;
        }
        self.file_create_on(spec, BdiId(0))
    }

    /// Creates a file on a device.
    pub fn file_create_on(&mut self, spec: FileSpec, bdi: BdiId) -> Result<FileId, ConfigError> {
        check_range("pages of a file", spec.pages, 1, TABLE_PAGES_MAX)?;
        let nodes = Nodes::bytes_for(NodeKind::Index, spec.pages);
        check_room("a file", spec.pages, Table::bytes_for(spec.pages) + nodes)?;
        if spec.kind == FileKind::Regular && bdi.index() >= self.core.writeback.bdis() {
            return Err(ConfigError::Unknown(format!("backing device {}", bdi.0)));
        }
        let file = self.core.memory.add_file(spec);
        self.core.memory.file_mut(file).inode.bdi = bdi;
        Ok(file)
    }

    /// Pages of files whose write was begun for this reason.
    pub fn pages_written_by(&self, reason: WritebackReason) -> u64 {
        self.core.writeback.written_by(reason)
    }

    /// Pages that reclaim has begun to write, to files and to swap.
    pub fn pageouts(&self) -> Pageouts {
        self.core.pageouts
    }

    /// How often reclaim has asked the flushers to write.
    pub fn flusher_wakeups(&self) -> u64 {
        self.core.writeback.wakeups()
    }

    /// Requests, wakeups and waking time of the kswapds of all nodes together.
    pub fn kswapd_activity(&self) -> KswapdActivity {
        let now = self.core.now;
        let each = self.core.kswapds.iter().map(|kswapd| kswapd.activity(now));
        each.fold(KswapdActivity::default(), |sum, of| KswapdActivity {
            requests: sum.requests + of.requests,
            wakeups: sum.wakeups + of.wakeups,
            awake: sum.awake + of.awake,
        })
    }

    /// How often a reclaimer has waited for a device's queue, as in 2010.
    pub fn congestion_waits(&self) -> u64 {
        self.core.congestion_waits
    }

    /// How often a reclaimer has waited for this.
    pub fn throttled(&self, reason: ThrottleReason) -> u64 {
        self.core.throttled[reason as usize]
    }

    /// Whether decisions by statistics of the last flush are made a second time by live ones, to be told. It takes some instructions at each
    /// refault. Default: no.
    pub fn compare_with_live(&mut self, compares: bool) {
        self.core.compares_live = compares;
    }

    /// Whether decisions by old statistics are made a second time by live ones: there are such, and someone asked for it.
    pub fn compares_with_live(&self) -> bool {
        self.core.compares_with_live()
    }

    /// How decisions of a kind went that reclaim and writeback make by statistics as of their last flush.
    pub fn stale_decisions(&self, of: StaleDecision) -> StaleDecisions {
        self.core.outdated[of as usize].clone()
    }

    /// Pages of files whose write the device has failed.
    pub fn file_writes_failed(&self) -> u64 {
        self.core.writeback.failed()
    }

    /// Pages of files that were dirty when they were truncated: nobody writes them (`cancelled_write_bytes` of `/proc/PID/io`).
    pub fn file_writes_cancelled(&self) -> u64 {
        self.core.writeback.cancelled()
    }

    /// Has write(2) through an open file write less than a page each time: a page that is not in memory is read first.
    pub fn set_partial_writes(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        match self.tasks[task.index()].objects.get_mut(object.index()) {
            Some(access::Object::File { partial_writes, .. }) => *partial_writes = true,
            _ => return Err(ConfigError::Unknown(format!("open file {} of task {}", object.0, task.0))),
        }
        Ok(())
    }

    /// Enables a swap device below all those that were enabled so before: such devices are used in their order.
    pub fn swap_on(&mut self, spec: SwapSpec) -> Result<SwapId, ConfigError> {
        self.swap_on_at(spec, None)
    }

    /// Enables a swap device of a given priority, from 0 to 32767: the highest is used first, equal ones in turn. `None`: below all
    /// others that were given none, and all that were given one.
    pub fn swap_on_at(&mut self, spec: SwapSpec, priority: Option<u16>) -> Result<SwapId, ConfigError> {
        if let Some(priority) = priority {
            check_range("priority of a swap device", priority.into(), 0, u64::from(SWAP_PRIORITY_MAX))?;
        }
        check_range("pages of a swap device", spec.pages, 1, TABLE_PAGES_MAX)?;
        check_room("a swap device", spec.pages, SwapDevice::bytes_for(spec.pages))?;
        check_range("swap devices", self.core.memory.swap.devices() as u64 + 1, 1, 32)?;
        Ok(self.core.memory.swap.add(spec, priority))
    }

    /// Says that a swap device has to seek: readahead then goes by what lies together there.
    pub fn swap_rotational(&mut self, swap: SwapId) -> Result<(), ConfigError> {
        if swap.index() >= self.core.memory.swap.devices() {
            return Err(ConfigError::Unknown(format!("swap device {}", swap.0)));
        }
        self.core.memory.swap.set_rotational(swap);
        Ok(())
    }

    /// Has the machine asked what becomes of a full plug, which is submitted in the middle of a batch. Without this, no write ends
    /// before its batch: a batch takes microseconds, a device longer.
    pub fn set_full_plug(&mut self, full_plug: FullPlug) {
        self.core.full_plug = Some(full_plug);
    }

    /// Says how well pages compress on the way to a swap device, where their region doesn't say it.
    pub fn swap_compressibility(
        &mut self,
        swap: SwapId,
        compressibility: Compressibility,
    ) -> Result<(), ConfigError> {
        compressibility.check()?;
        let device = self.core.memory.swap.device_mut(swap);
        let device = device.ok_or_else(|| ConfigError::Unknown(format!("swap device {}", swap.0)))?;
        device.compressibility = compressibility;
        Ok(())
    }

    /// Whether a page holds nothing but zeroes, as its region says: a machine that holds bytes writes nothing else to it.
    pub fn is_of_zeroes(&self, page: PageName) -> bool {
        let (is_anon, owner, page) = match page {
            PageName::Anon { mm, page } => (true, mm.0, page),
            PageName::File { file, page } => (false, file.0, page),
        };
        let region = self.core.region_compressibility(is_anon, owner, page);
        region.is_some_and(|region| region.contents_of(is_anon, owner, page as u32) == Contents::Zeroes)
    }

    /// Limits the memory that a synchronous swap device takes, in pages (`mem_limit`); `None` for no limit.
    pub fn zram_limit(&mut self, swap: SwapId, pages: Option<u64>) -> Result<(), ConfigError> {
        self.zram_mut(swap)?.limit = pages;
        Ok(())
    }

    fn zram_mut(&mut self, swap: SwapId) -> Result<&mut Zram, ConfigError> {
        let zram = self.core.memory.swap.zram_mut(swap);
        zram.ok_or_else(|| ConfigError::Unknown(format!("compressed swap device {}", swap.0)))
    }

    /// Says how well the pages of an anonymous mapping or a tmpfs file compress, wherever they are swapped to.
    pub fn set_compressibility(
        &mut self,
        task: TaskId,
        object: ObjectId,
        compressibility: Compressibility,
    ) -> Result<(), ConfigError> {
        compressibility.check()?;
        let backing = match self.tasks[task.index()].objects.get(object.index()) {
            Some(&access::Object::File { file, .. }) => Some(Backing::File(file)),
            Some(&access::Object::Mapping { mm, vma, .. }) => {
                let vma = &mut self.core.memory.mm_mut(mm).vmas[vma];
                vma.compressibility = Some(compressibility);
                Some(vma.backing)
            }
            None => None,
        };
        match backing {
            Some(Backing::Anon) => Ok(()),
            Some(Backing::File(file)) => {
                self.core.memory.file_mut(file).compressibility = Some(compressibility);
                Ok(())
            }
            None => Err(ConfigError::Unknown(format!("object {} of task {}", object.0, task.0))),
        }
    }

    /// Creates a process: an address space whose memory is charged to `memcg`.
    pub fn process_create(&mut self, memcg: MemcgId) -> MmId {
        assert!(self.core.memcgs.contains(memcg), "there is no memcg {}", memcg.0);
        assert!(self.core.memcgs[memcg].is_online, "memcg {} was removed", memcg.0);
        let mm = Mm::new(memcg, self.new_tlb());
        self.add_mm(mm)
    }

    /// Creates a process with the mappings of another, nothing of which is in memory.
    pub(crate) fn process_create_like(&mut self, old: MmId) -> MmId {
        let mm = self.core.memory.mm(old).like(self.new_tlb());
        let files = mm.vmas.iter().enumerate().filter(|(_, vma)| vma.mapped);
        let files: Vec<(usize, u64, FileId)> = files
            .filter_map(|(at, vma)| match vma.backing {
                Backing::File(file) => Some((at, vma.start, file)),
                Backing::Anon => None,
            })
            .collect();
        let id = self.add_mm(mm);
        for (vma, start, file) in files {
            self.core.memory.file_mut(file).mappings.push(FileMapping { mm: id, vma, start });
        }
        id
    }

    fn new_tlb(&self) -> Option<Tlb> {
        (self.core.config.tlb_entries > 0).then(|| Tlb::new(self.core.config.tlb_entries))
    }

    fn add_mm(&mut self, mm: Mm) -> MmId {
        let memcg = mm.memcg;
        let id = self.core.memory.add_mm(mm);
        self.core.memcgs[memcg].mms.push(id);
        id
    }

    /// Creates a task of a process, running on `cpu`.
    pub fn task_create(&mut self, mm: MmId, cpu: CpuId) -> TaskId {
        assert!(cpu.0 < self.core.config.cpus, "there is no CPU {}", cpu.0);
        let users = &mut self.core.memory.mm_mut(mm).users;
        self.tasks.push(Task::new(mm, *users, cpu));
        *users += 1;
        TaskId((self.tasks.len() - 1) as u32)
    }

    /// Creates a thread beside another of its process: in the same address space, and with the same objects under the same
    /// numbers, the positions of open files included. Mappings that the process gets later are those of the thread that makes them.
    pub fn thread_create(&mut self, beside: TaskId, cpu: CpuId) -> TaskId {
        let thread = self.task_create(self.mm_of(beside), cpu);
        self.tasks[thread.index()].objects = self.tasks[beside.index()].objects.clone();
        thread
    }

    /// Hands over the operations to carry out, in order.
    #[inline]
    pub fn take_ops(&mut self, into: &mut Vec<Op>) {
        hand_over(&mut self.core.ops, into);
    }

    /// Hands over the tasks whose wait for I/O has ended: resume them now.
    #[inline]
    pub fn take_woken(&mut self, into: &mut Vec<TaskId>) {
        hand_over(&mut self.core.woken, into);
    }

    /// Whether the last run of hits, or the last end of a transfer, whichever was called last, has done work or asked for
    /// operations: most do neither, and then there is nothing to price and to carry out.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work
    }

    /// All the work so far.
    #[inline]
    pub fn work(&self) -> &Work {
        &self.core.work
    }

    /// Whether units of work that are marked as rare have grown since the last time.
    #[inline]
    pub fn take_rare_work(&mut self) -> bool {
        std::mem::take(&mut self.core.has_rare_work)
    }

    /// Parts of [`Engine::work`] by the kernel function that they were done for.
    pub fn work_for(&self) -> &WorkFor {
        &self.core.work_for
    }

    /// Records, from now on, which pages enter and leave page caches.
    pub fn record_page_cache_events(&mut self) {
        self.core.page_cache_events.get_or_insert_default();
    }

    /// Hands over the recorded page-cache events, in order.
    pub fn take_page_cache_events(&mut self, into: &mut Vec<PageCacheEvent>) {
        if let Some(events) = &mut self.core.page_cache_events {
            into.append(events);
        }
    }

    /// Bytes of metadata: folio records of the sections in use, what generations add to them, and the words of page tables,
    /// page-cache indexes and swap caches with what tells of their nodes.
    pub fn metadata_bytes(&self) -> usize {
        let files = self.core.memory.files.iter().map(|file| &file.index);
        let tables = files
            .chain(self.core.memory.mms.iter().map(|mm| &mm.table))
            .chain(self.core.memory.swap.indexes());
        let frames = self.core.memory.folios.bytes() + self.core.memory.places.bytes();
        let nodes = self.core.memory.files.iter().map(|file| &file.nodes);
        let nodes = nodes.chain(self.core.memory.mms.iter().map(|mm| &mm.nodes)).map(Nodes::bytes);
        frames + tables.map(Table::bytes).sum::<usize>() + nodes.sum::<usize>()
    }

    /// A device has completed a transfer, its interrupt arriving on `cpu`.
    pub fn io_done(&mut self, io: IoId, cpu: CpuId, result: Result<(), IoError>) {
        let first = self.core.woken.len();
        let before = self.core.work;
        let ended = self.core.transfer_done(io, cpu, result);
        self.has_work = ended != Ended::Read || !self.core.ops.is_empty();
        debug_assert!(self.has_work || before == self.core.work, "the end of a read is no work");
        if matches!(ended, Ended::ReadFailed | Ended::ReadaheadFailed) {
            for task in &self.core.woken[first..] {
                let task = &mut self.tasks[task.index()];
                match ended {
                    Ended::ReadFailed => task.read_failed = true,
                    _ => task.attempt.has_read_ahead = true,
                }
            }
        }
        if ended == Ended::ReadaheadFailed {
            for at in first..self.core.woken.len() {
                let task = self.core.woken[at];
                self.current(task).let_go();
            }
        }
    }

    /// The frames that a transfer in flight fills or empties, in the order of what is on the device.
    pub fn frames_of(&self, io: IoId) -> impl Iterator<Item = Pfn> {
        self.core.frames_of(io)
    }

    /// Brings all statistics up to date, as the kernel's periodic worker does: call it every [`Engine::stat_flush_period`].
    pub fn flush_stats(&mut self) {
        self.core.flush_stats();
    }

    /// Whether hot-page tracking listens to hardware hints.
    #[inline]
    pub fn wants_hardware_hints(&self) -> bool {
        Source::Hardware.is_heard(&self.core.config)
    }

    /// Hardware has sampled an access by a CPU of node `from` to a frame; whether it is worth keeping.
    pub fn hardware_sampled(&mut self, pfn: Pfn, from: NodeId) -> bool {
        self.core.hardware_sampled(pfn, from)
    }

    /// A hardware hint that was worth keeping has found room in its ring, or was dropped (`has_room` is false).
    pub fn hardware_kept(&mut self, from: NodeId, has_room: bool) {
        self.core.hardware_kept(from, has_room);
    }

    /// A ring is emptied: a frame was accessed so often, from node `nid` if that is known. Nobody need be there any more.
    pub fn hardware_hinted(&mut self, pfn: Pfn, nid: Option<NodeId>, accesses: u32) {
        self.core.hardware_hinted(pfn, nid, accesses);
    }

    /// A device that counts accesses to units of its memory, and knows neither pages nor who made them, has found one in use: so many pages from
    /// `first` on were accessed so often, all together.
    pub fn hardware_hinted_range(&mut self, first: Pfn, pages: u32, accesses: u32) {
        self.core.hardware_hinted_range(first, pages, accesses);
    }

    /// Bytes that records of hot pages take.
    pub fn hotness_bytes(&self) -> u64 {
        self.core.pghot.records.bytes()
    }

    /// How often the machine has to call [`Engine::flush_stats`]; `None` where nothing waits for it.
    pub fn stat_flush_period(&self) -> Option<Nanos> {
        self.core.stat_flush_period()
    }

    /// A counter of a group and its descendants, as of the last flush.
    pub fn memcg_stat(&self, memcg: MemcgId, stat: Stat) -> i64 {
        self.core.memcg_stat(memcg, stat)
    }

    /// A counter of a group and its descendants as it is now, flushed or not.
    pub fn memcg_stat_now(&self, memcg: MemcgId, stat: Stat) -> i64 {
        self.core.memcg_stat_now(memcg, stat)
    }

    /// A counter of `/proc/vmstat`.
    pub fn vmstat(&self, stat: Stat) -> i64 {
        self.core.vmstat(stat)
    }

    /// A counter of one node's `vmstat`.
    pub fn node_stat(&self, node: NodeId, stat: Stat) -> i64 {
        self.core.node_stat(node, stat)
    }

    /// The zones of all nodes, as `/proc/zoneinfo` tells of them.
    pub fn zones(&self) -> impl Iterator<Item = ZoneInfo> {
        self.core.memory.zones.info()
    }

    /// Pages that reserves and high marks of all zones keep: no page cache may fill them with what is to be written.
    pub fn total_reserve(&self) -> u64 {
        self.core.memory.zones.total_reserve()
    }

    /// Rotations at the end of writeback: how many pages were to go to the cold end of their list, and why some did not.
    pub fn rotations(&self) -> Rotations {
        self.core.rotations
    }

    /// The size and the limit of the zswap pool.
    pub fn zswap_pool(&self) -> ZswapPool {
        self.core.zswap_pool()
    }

    /// How many pages were read ahead, and how many of them are unused, or left memory unused.
    pub fn readahead_stats(&self) -> ReadaheadStats {
        self.core.readahead_stats()
    }

    /// Whether a group's folios are still being moved to the lists of another policy.
    pub fn is_switching(&self, memcg: MemcgId) -> bool {
        self.core.is_switching(memcg)
    }

    /// The generations of a group on a node, oldest first; none where it keeps none.
    pub fn lru_gen(&self, memcg: MemcgId, node: NodeId) -> Vec<GenerationInfo> {
        self.core.lru_gen(memcg, node)
    }

    /// Tells, from now on, what `filter` says; what it said before is forgotten.
    pub fn tell_story(&mut self, filter: StoryFilter) {
        self.core.tell_story(filter);
    }

    /// Tells, from now on, what a kernel's tracepoints tell.
    pub fn tell_tracepoints(&mut self) {
        self.core.tell_tracepoints();
    }

    /// Whether something was told since it was last handed over.
    #[inline]
    pub fn has_story(&self) -> bool {
        self.core.has_story()
    }

    /// Hands over what was told, in order.
    pub fn take_story(&mut self, into: &mut Vec<StoryEvent>) {
        self.core.take_story(into);
    }

    /// The page that a task reaches through one of its objects.
    pub fn page_name(&self, task: TaskId, object: ObjectId, page: u64) -> Result<PageName, AccessError> {
        self.tasks[task.index()].check_access(Access::new(object, page, false))?;
        Ok(self.tasks[task.index()].objects[object.index()].page_name(page, &self.core.memory))
    }

    /// Pages of a task's object.
    pub fn object_pages(&self, task: TaskId, object: ObjectId) -> Option<u64> {
        self.tasks[task.index()].objects.get(object.index()).map(access::Object::pages)
    }

    /// The file of this name.
    pub fn file_by_name(&self, name: &str) -> Option<FileId> {
        self.core.memory.files.iter().position(|file| file.name == name).map(|at| FileId(at as u32))
    }

    /// Pages of a file.
    pub fn file_pages(&self, file: FileId) -> u64 {
        self.core.memory.file(file).index.pages()
    }

    /// The state of a page; `None` while it is not in memory.
    pub fn page_state(&self, page: PageName) -> Option<PageState> {
        self.core.page_state(page)
    }

    /// Panics with what is wrong unless every structure agrees with every other. Walks all memory: not for hot paths.
    pub fn check_invariants(&self) {
        self.core.check_invariants();
        self.check_set_aside();
    }
}

/// The highest priority that a swap device can be given.
const SWAP_PRIORITY_MAX: u16 = 32_767;

/// Pages of a file, an address space or a swap device: 4 TiB. Their tables take memory only where they are used, but address
/// space in full, 8 bytes a page, and a system grants no more of that than it might have.
pub(super) const TABLE_PAGES_MAX: u64 = 1 << 30;

/// Moves everything behind what is in `into`; mostly there is nothing to move, or nothing in `into`.
#[inline]
fn hand_over<T>(from: &mut Vec<T>, into: &mut Vec<T>) {
    if from.is_empty() {
        return;
    }
    if into.is_empty() {
        std::mem::swap(from, into);
    } else {
        append(from, into);
    }
}

#[cold]
fn append<T>(from: &mut Vec<T>, into: &mut Vec<T>) {
    into.append(from);
}
