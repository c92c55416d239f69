//! [`Engine`], the facade for a machine: it is made from a [`Config`], receives accesses, and returns operations and counters.

use crate::GroupRules;
use crate::access::builder::EngineBuilder;
use crate::access::hits;
use crate::access::task::Task;
use crate::config::{Config, ConfigError, check_range};
use crate::core::Core;
use crate::io::Ended;
use crate::lru::GuestFault;
use crate::machine::op::Op;
use crate::machine::work::Work;
use crate::memory::errors::IoError;
use crate::memory::file::FileMapping;
use crate::memory::mm::{Backing, Mm};
use crate::memory::tlb::Tlb;
use crate::page_cache::PageCacheEvent;
use crate::pghot::Source;
use crate::story::{StoryEvent, StoryFilter};
use crate::swap::contents::Compressibility;
use crate::units::{CpuId, FileId, IoId, MemcgId, MmId, Nanos, NodeId, ObjectId, Pfn, TaskId};

/// The reclaim engine of one machine.
///
/// Build it first: memcgs, files, swap, processes, tasks, objects. Then run accesses. After every call, take the operations of [`Engine::take_ops`]
/// before the next call, and carry them out, immediately or by [`crate::OpQueue`].
pub struct Engine {
    pub(crate) core: Core,
    pub(super) tasks: Vec<Task>,
    /// Numbers of tasks that were forgotten.
    pub(super) free_tasks: Vec<TaskId>,
    /// The last run of hits, or the last end of a transfer, did work or requested operations.
    pub(super) has_work: bool,
}

impl Engine {
    /// Returns a builder, to which devices are added.
    pub fn builder(config: Config) -> Result<EngineBuilder, ConfigError> {
        EngineBuilder::new(config)
    }

    /// Creates a machine without swap, and with the root memcg only.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        Ok(Engine::builder(config)?.build())
    }

    pub(super) fn of(core: Core) -> Engine {
        Engine { core, tasks: Vec::new(), free_tasks: Vec::new(), has_work: false }
    }

    /// Sets the current time. Time never goes back.
    pub fn set_now(&mut self, now: Nanos) {
        assert!(now >= self.core.by.now, "time goes back from {} to {now}", self.core.by.now);
        self.core.by.now = now;
    }

    /// Sets whether the host is asked for the accessed bits of an address space ([`crate::AccessedBits`]).
    pub fn sample_accessed_bits(&mut self, mm: MmId, is_sampled: bool) {
        self.core.mm.memory.mm_mut(mm).is_sampled = is_sampled;
    }

    /// Creates a memory group with the default policy.
    pub fn memcg_create(&mut self, parent: MemcgId, name: &str) -> Result<MemcgId, ConfigError> {
        self.memcg_create_with(parent, name, self.core.mm.config.policy.group)
    }

    /// Creates a memory group with its own policy.
    pub fn memcg_create_with(
        &mut self,
        parent: MemcgId,
        name: &str,
        policy: GroupRules,
    ) -> Result<MemcgId, ConfigError> {
        // The group's name would hide a file of that name, or be hidden by it.
        let is_of_a_file = ["memory.", "cgroup.", "cpuset."].iter().any(|of| name.starts_with(of));
        if ["", ".", ".."].contains(&name) || name.contains('/') || is_of_a_file {
            return Err(ConfigError::BadName(name.to_owned()));
        }
        if !self.core.mm.memcgs.contains(parent) || !self.core.mm.memcgs[parent].is_online {
            return Err(ConfigError::Unknown(format!("memcg {}", parent.0)));
        }
        if self.core.mm.memcgs.child(parent, name).is_some() {
            return Err(ConfigError::Exists(format!("memcg {name} in {}", self.core.mm.memcgs.path(parent))));
        }
        if !self.core.mm.memcgs.has_forgotten(&policy) {
            check_range("memcgs", self.core.mm.memcgs.count() as u64 + 1, 1, u64::from(u16::MAX))?;
        }
        policy.check()?;
        let id = self.core.mm.memcgs.create(parent, name, policy);
        self.core.mm.lruvecs.add_memcg(id, &policy, self.core.by.now);
        self.core.mm.resize_guests(id);
        Ok(id)
    }

    /// Forgets a group that was removed ([`Engine::remove_directory`]), once nothing is charged to it any more: a later group of the same policy gets its
    /// number. Returns whether it is forgotten. The caller must not use the number any more, and no task may be in a call that reclaims from the group
    /// alone. A shadow that names it is judged by the later group's clock, as in Linux, where identifiers of groups are reused.
    ///
    /// With [`Config::kmem`] no group is forgotten: objects of kernel memory outlive their group, and name it.
    pub fn memcg_forget(&mut self, memcg: MemcgId) -> bool {
        self.core.release_empty_memcgs();
        let mm = &mut self.core.mm;
        let is_named = || mm.zswap.entries().any(|entry| entry.payer == memcg);
        !mm.config.kmem && mm.memcgs.contains(memcg) && !is_named() && mm.memcgs.forget(memcg)
    }

    /// Returns the first error of a guest policy, if any: results after it are meaningless.
    #[inline]
    pub fn guest_fault(&self) -> Option<&GuestFault> {
        self.core.guest_fault.as_deref()
    }

    /// Sets whether decisions based on statistics of the last flush are repeated with live statistics, for tracing. It costs some instructions at
    /// each refault. Default: no.
    pub fn compare_with_live(&mut self, compares: bool) {
        self.core.compares_live = compares;
    }

    /// Makes write(2) through an open file write less than a page each time, or complete pages again. With less, a missing page is read first. It may
    /// be changed in the middle of an access, before each call that continues it.
    pub fn set_partial_writes(
        &mut self,
        task: TaskId,
        object: ObjectId,
        are_partial: bool,
    ) -> Result<(), ConfigError> {
        match self.tasks[task.index()].objects.get_mut(object.index()) {
            Some(hits::Object::File { pages: 1.., partial_writes, .. }) => *partial_writes = are_partial,
            _ => return Err(ConfigError::Unknown(format!("open file {} of task {}", object.0, task.0))),
        }
        Ok(())
    }

    /// Sets how well the pages of an anonymous mapping or a tmpfs file compress, wherever they are swapped to.
    pub fn set_compressibility(
        &mut self,
        task: TaskId,
        object: ObjectId,
        compressibility: Compressibility,
    ) -> Result<(), ConfigError> {
        compressibility.check()?;
        let backing = match self.open_object(task, object) {
            Some(hits::Object::File { file, .. }) => Some(Backing::File(file)),
            Some(hits::Object::Mapping { mm, vma, .. }) => {
                let vma = &mut self.core.mm.memory.mm_mut(mm).vmas[vma];
                vma.compressibility = Some(compressibility);
                Some(vma.backing)
            }
            None => None,
        };
        match backing {
            Some(Backing::Anon) => Ok(()),
            Some(Backing::File(file)) => {
                self.core.mm.memory.file_mut(file).compressibility = Some(compressibility);
                Ok(())
            }
            None => Err(ConfigError::Unknown(format!("object {} of task {}", object.0, task.0))),
        }
    }

    /// Creates a process: an address space whose memory is charged to `memcg`.
    pub fn process_create(&mut self, memcg: MemcgId) -> MmId {
        assert!(self.core.mm.memcgs.contains(memcg), "there is no memcg {}", memcg.0);
        assert!(self.core.mm.memcgs[memcg].is_online, "memcg {} was removed", memcg.0);
        let mm = Mm::new_in(memcg, self.new_tlb(), &self.core.mm.memory.tables);
        self.add_mm(mm)
    }

    /// Creates a process with the mappings of another, nothing of which is in memory.
    pub(crate) fn process_create_like(&mut self, old: MmId) -> MmId {
        let mm = self.core.mm.memory.mm(old).like(self.new_tlb());
        let files = mm.vmas.iter().enumerate().filter(|(_, vma)| vma.mapped);
        let files: Vec<(usize, u64, FileId)> = files
            .filter_map(|(at, vma)| match vma.backing {
                Backing::File(file) => Some((at, vma.start, file)),
                Backing::Anon => None,
            })
            .collect();
        let id = self.add_mm(mm);
        for (vma, start, file) in files {
            self.core.mm.memory.file_mut(file).mappings.push(FileMapping { mm: id, vma, start });
        }
        id
    }

    fn new_tlb(&self) -> Option<Tlb> {
        (self.core.mm.config.tlb_entries > 0).then(|| Tlb::new(self.core.mm.config.tlb_entries))
    }

    fn add_mm(&mut self, mm: Mm) -> MmId {
        let memcg = mm.memcg;
        let id = self.core.mm.memory.add_mm(mm);
        self.core.mm.memcgs[memcg].mms.push(id);
        id
    }

    /// Creates a task of a process, running on `cpu`.
    pub fn task_create(&mut self, mm: MmId, cpu: CpuId) -> TaskId {
        assert!(cpu.0 < self.core.mm.config.cpus, "there is no CPU {}", cpu.0);
        let users = &mut self.core.mm.memory.mm_mut(mm).users;
        let task = Task::new(mm, *users, cpu);
        *users += 1;
        match self.free_tasks.pop() {
            Some(id) => {
                self.tasks[id.index()] = task;
                id
            }
            None => {
                self.tasks.push(task);
                TaskId((self.tasks.len() - 1) as u32)
            }
        }
    }

    /// Creates a further thread of a process: in the same address space, and with the same objects under the same numbers, including the positions of
    /// open files. Mappings that the process gets later belong to the thread that makes them.
    pub fn thread_create(&mut self, beside: TaskId, cpu: CpuId) -> TaskId {
        let thread = self.task_create(self.mm_of(beside), cpu);
        self.tasks[thread.index()].objects = self.tasks[beside.index()].objects.clone();
        thread
    }

    /// Returns the operations to carry out, in order.
    #[inline]
    pub fn take_ops(&mut self, into: &mut Vec<Op>) {
        hand_over(&mut self.core.out.ops, into);
    }

    /// Returns the tasks whose wait for I/O has ended: resume them now.
    #[inline]
    pub fn take_woken(&mut self, into: &mut Vec<TaskId>) {
        hand_over(&mut self.core.out.woken, into);
    }

    /// Returns whether the last run of hits or the last end of a transfer, whichever was called last, has done work or requested operations. Most do neither,
    /// and then there is nothing to charge for or to carry out.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work
    }

    /// Returns all the work so far.
    #[inline]
    pub fn work(&self) -> &Work {
        self.core.out.work()
    }

    /// Returns whether units of work that are marked as rare have grown since the last call.
    #[inline]
    pub fn take_rare_work(&mut self) -> bool {
        self.core.out.take_rare_work()
    }

    /// Starts recording which pages enter and leave page caches.
    pub fn record_page_cache_events(&mut self) {
        self.core.out.page_cache_events.get_or_insert_default();
    }

    /// Returns the recorded page-cache events, in order.
    pub fn take_page_cache_events(&mut self, into: &mut Vec<PageCacheEvent>) {
        if let Some(events) = &mut self.core.out.page_cache_events {
            into.append(events);
        }
    }

    /// Completes a transfer of a device, whose interrupt arrives on `cpu`.
    pub fn io_done(&mut self, io: IoId, cpu: CpuId, result: Result<(), IoError>) {
        let first = self.core.out.woken.len();
        let before = *self.core.out.work();
        // An interrupt: its work is on its CPU, but not charged to a task.
        self.core.by.cpu = cpu;
        let ended = self.core.transfer_done(io, result);
        self.has_work = ended != Ended::Read || !self.core.out.ops.is_empty();
        debug_assert!(self.has_work || before == *self.core.out.work(), "the end of a read is no work");
        if matches!(ended, Ended::ReadFailed | Ended::ReadaheadFailed) {
            for task in &self.core.out.woken[first..] {
                let task = &mut self.tasks[task.index()];
                match ended {
                    Ended::ReadFailed => task.read_failed = true,
                    _ => task.attempt.progress.has_read_ahead = true,
                }
            }
        }
        if ended == Ended::ReadaheadFailed {
            for at in first..self.core.out.woken.len() {
                let task = self.core.out.woken[at];
                self.current(task).let_go();
            }
        }
    }

    /// Returns the frames that a transfer in flight fills or empties, in the order on the device.
    pub fn frames_of(&self, io: IoId) -> impl Iterator<Item = Pfn> {
        self.core.frames_of(io)
    }

    /// Drains the folio batches of all CPUs, and returns whether there were any folios in them. Pages whose owner is gone are freed: in a batch they
    /// keep their frames and slots until others fill it.
    #[doc(alias = "lru_add_drain_all")]
    pub fn drain_batches(&mut self) -> bool {
        let cpus = self.core.mm.config.cpus;
        let had_any = (0..cpus).any(|cpu| self.core.has_batched(CpuId(cpu)));
        (0..cpus).for_each(|cpu| self.core.lru_add_drain_cpu(CpuId(cpu)));
        had_any
    }

    /// From now on, a page in swap can be read although swap is full and memory has no page that could be evicted without it. The page may exceed
    /// each limit by 8 pages, or takes a frame of the reserve. Its own slot is free as soon as it is mapped, so reclaim can then evict another page.
    /// Reclaim also takes anonymous pages that still have a slot, and MGLRU does so with any free slot, and not only with a batch of them. Linux has no such
    /// exchange: it kills a process.
    /// Default: no.
    pub fn exchange_full_swap(&mut self) {
        self.core.mm.exchanges_full_swap = true;
    }

    /// Brings all statistics up to date, as the kernel's periodic worker does: call it every [`Engine::stat_flush_period`].
    pub fn flush_stats(&mut self) {
        self.core.flush_stats();
    }

    /// Returns whether hot-page tracking uses hardware hints.
    #[inline]
    pub fn wants_hardware_hints(&self) -> bool {
        Source::Hardware.is_heard(&self.core.mm.config)
    }

    /// Reports that hardware has sampled an access by a CPU of node `from` to a frame. Returns whether the sample is worth keeping.
    pub fn hardware_sampled(&mut self, pfn: Pfn, from: NodeId) -> bool {
        self.core.mm.hardware_sampled(pfn, from)
    }

    /// Reports that a hardware hint was stored in its ring, or dropped (`has_room` is false).
    pub fn hardware_kept(&mut self, from: NodeId, has_room: bool) {
        self.core.mm.hardware_kept(from, has_room);
    }

    /// Reports an entry of a ring: a frame was accessed this often, from node `nid` if that is known. The frame may be free by now.
    pub fn hardware_hinted(&mut self, pfn: Pfn, nid: Option<NodeId>, accesses: u32) {
        self.core.hardware_hinted(pfn, nid, accesses);
    }

    /// Reports an entry of a device that counts accesses to units of its memory, and knows neither pages nor their users. The pages of the unit, from
    /// `first` on, were accessed this often together.
    pub fn hardware_hinted_range(&mut self, first: Pfn, pages: u32, accesses: u32) {
        self.core.hardware_hinted_range(first, pages, accesses);
    }

    /// Returns how often the machine has to call [`Engine::flush_stats`]; `None` if nothing depends on it.
    pub fn stat_flush_period(&self) -> Option<Nanos> {
        self.core.mm.stat_flush_period()
    }

    /// Starts tracing the events of `filter`; the previous filter is replaced.
    pub fn tell_story(&mut self, filter: StoryFilter) {
        self.core.tell_story(filter);
    }

    /// Starts tracing the events of a kernel's tracepoints.
    pub fn tell_tracepoints(&mut self) {
        self.core.tell_tracepoints();
    }

    /// Returns whether an event was traced since the last [`Engine::take_story`].
    #[inline]
    pub fn has_story(&self) -> bool {
        self.core.has_story()
    }

    /// Returns the traced events, in order.
    pub fn take_story(&mut self, into: &mut Vec<StoryEvent>) {
        self.core.take_story(into);
    }

    /// Panics with a description of the error unless all structures agree. Walks all memory: not for hot paths.
    pub fn check_invariants(&self) {
        self.core.check_invariants();
        self.check_set_aside();
    }
}

/// Maximum pages of a file, an address space or a swap device: 4 TiB. Their tables use memory only for used parts. But each uses the full address
/// space, 8 bytes per page, and a system grants no more of that than it might have.
pub(super) const TABLE_PAGES_MAX: u64 = 1 << 30;

/// Moves everything to the end of `into`; mostly there is nothing to move, or `into` is empty.
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
