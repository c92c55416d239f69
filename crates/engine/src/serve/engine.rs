//! The facade a machine holds.

use crate::Policy;
use crate::config::{Config, ConfigError, FileSpec, SwapSpec, check_range};
use crate::io::Transfers;
use crate::lru::batch::Batches;
use crate::lru::lruvec::{LruvecId, Lruvecs};
use crate::machine::op::Op;
use crate::machine::work::Work;
use crate::memcg::Memcgs;
use crate::memcg::charge::Stock;
use crate::memory::Memory;
use crate::memory::mm::{Advice, Backing};
use crate::memory::tlb::Tlb;
use crate::page_cache::PageCacheEvent;
use crate::serve::access;
use crate::serve::task::Task;
use crate::stat::{Counters, STATS, Updates};
use crate::story::Story;
use crate::units::{CpuId, FileId, LruType, MemcgId, MmId, Nanos, NodeId, ObjectId, Pfn, SwapId, TaskId};
use crate::workingset::ShadowNodes;

/// What belongs to one CPU.
#[derive(Default)]
pub(crate) struct Cpu {
    pub(crate) batches: Batches,
    pub(crate) stock: Stock,
    pub(crate) updates: Updates,
}

/// The reclaim engine of one machine.
///
/// Build it (memcgs, files, swap, processes, tasks, objects), then run accesses; after every call carry out what
/// [`Engine::take_ops`] hands over before calling again.
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) now: Nanos,
    pub(crate) memory: Memory,
    pub(crate) memcgs: Memcgs,
    pub(crate) lruvecs: Lruvecs,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) io: Transfers,
    pub(crate) shadow_nodes: ShadowNodes,
    /// `/proc/vmstat`, by node.
    pub(crate) vmstat: Vec<Counters>,
    pub(crate) last_root_flush: Nanos,
    /// A page is being added for a fault on a mapping with recency: it is known to be in use.
    pub(crate) in_lru_fault: bool,
    /// `min_ttl_ms`: stored and read back. It acts in kswapd's balance, which comes with whole-machine reclaim.
    pub(crate) min_ttl_ms: u64,
    /// What was last written to `lru_gen/enabled`.
    pub(crate) lru_gen_enabled: Option<u32>,
    /// The task and CPU on whose behalf the present call runs.
    pub(crate) current: TaskId,
    pub(crate) cpu: CpuId,
    pub(crate) work: Work,
    pub(crate) ops: Vec<Op>,
    /// Plugs that were full before their pass was over.
    pub(crate) plugs_filled: u64,
    pub(crate) woken: Vec<TaskId>,
    pub(crate) page_cache_events: Option<Vec<PageCacheEvent>>,
    pub(crate) story: Option<Box<Story>>,
    /// Buffer of the batch in reclaim's hands; kept so that a batch allocates nothing.
    pub(crate) isolated: Vec<Pfn>,
    #[cfg(test)]
    pub(crate) mutant: Option<crate::testing::Mutant>,
}

impl Engine {
    /// A machine without files, swap or processes, and with the root memcg only.
    pub fn new(config: Config) -> Result<Engine, ConfigError> {
        config.check()?;
        let nodes = config.node_pages.len();
        let mut lruvecs = Lruvecs::new(nodes);
        config.policy.check()?;
        lruvecs.add_memcg(MemcgId::ROOT, &config.policy, Nanos::ZERO);
        Ok(Engine {
            now: Nanos::ZERO,
            memory: Memory::new(&config.node_pages),
            memcgs: Memcgs::new(config.policy, nodes, usize::from(config.cpus)),
            lruvecs,
            cpus: (0..config.cpus).map(|_| Cpu::default()).collect(),
            tasks: Vec::new(),
            io: Transfers::default(),
            shadow_nodes: ShadowNodes::default(),
            vmstat: vec![[0; STATS]; nodes],
            last_root_flush: Nanos::ZERO,
            in_lru_fault: false,
            min_ttl_ms: 0,
            lru_gen_enabled: None,
            current: TaskId(0),
            cpu: CpuId(0),
            work: Work::default(),
            ops: Vec::new(),
            plugs_filled: 0,
            woken: Vec::new(),
            page_cache_events: None,
            story: None,
            isolated: Vec::new(),
            #[cfg(test)]
            mutant: None,
            config,
        })
    }

    /// Tells the engine what time it is. Time never goes back.
    pub fn set_now(&mut self, now: Nanos) {
        assert!(now >= self.now, "time goes back from {} to {now}", self.now);
        self.now = now;
    }

    /// Creates a memory group with the default policy.
    pub fn memcg_create(&mut self, parent: MemcgId, name: &str) -> Result<MemcgId, ConfigError> {
        self.memcg_create_with(parent, name, self.config.policy)
    }

    /// Creates a memory group with a policy of its own.
    pub fn memcg_create_with(
        &mut self,
        parent: MemcgId,
        name: &str,
        policy: Policy,
    ) -> Result<MemcgId, ConfigError> {
        if name.is_empty() || name.contains('/') {
            return Err(ConfigError::BadName(name.to_owned()));
        }
        if !self.memcgs.contains(parent) {
            return Err(ConfigError::Unknown(format!("memcg {}", parent.0)));
        }
        let exists = self.memcgs[parent].children.iter().any(|&child| self.memcgs[child].name == name);
        if exists {
            return Err(ConfigError::Exists(format!("memcg {name} in {}", self.memcgs.path(parent))));
        }
        check_range("memcgs", self.memcgs.len() as u64 + 1, 1, u64::from(u16::MAX))?;
        policy.check()?;
        let id = self.memcgs.create(parent, name, policy);
        self.lruvecs.add_memcg(id, &policy, self.now);
        Ok(id)
    }

    /// The group at a path such as `/web/front`.
    pub fn memcg_by_path(&self, path: &str) -> Option<MemcgId> {
        self.memcgs.by_path(path)
    }

    /// All groups with their paths, parents first.
    pub fn memcgs(&self) -> impl Iterator<Item = (MemcgId, String)> + '_ {
        self.memcgs.subtree(MemcgId::ROOT).into_iter().map(|id| (id, self.memcgs.path(id)))
    }

    /// Pages charged to a group. Panics where the engine has none of this id, as all that take one do.
    pub fn memcg_usage(&self, memcg: MemcgId) -> u64 {
        self.memcgs[memcg].usage
    }

    /// Pages on a group's lists, live: (inactive, active) of a type.
    pub fn list_sizes(&self, memcg: MemcgId, kind: LruType) -> (u64, u64) {
        let base = 2 * kind as usize;
        let sizes = self.memory.nodes().map(|node| self.lruvecs[self.lruvecs.id(memcg, node)].sizes);
        sizes.fold((0, 0), |sum, sizes| (sum.0 + sizes[base], sum.1 + sizes[base + 1]))
    }

    /// Creates a file.
    pub fn file_create(&mut self, spec: FileSpec) -> Result<FileId, ConfigError> {
        check_range("pages of a file", spec.pages, 1, TABLE_PAGES_MAX)?;
        Ok(self.memory.add_file(spec))
    }

    /// Enables a swap device. Devices are used in the order in which they were enabled.
    pub fn swap_on(&mut self, spec: SwapSpec) -> Result<SwapId, ConfigError> {
        check_range("pages of a swap device", spec.pages, 1, TABLE_PAGES_MAX)?;
        check_range("swap devices", self.memory.swap.devices() as u64 + 1, 1, 32)?;
        Ok(self.memory.swap.add(spec))
    }

    /// Creates a process: an address space whose memory is charged to `memcg`.
    pub fn process_create(&mut self, memcg: MemcgId) -> MmId {
        assert!(self.memcgs.contains(memcg), "there is no memcg {}", memcg.0);
        let tlb = (self.config.tlb_entries > 0).then(|| Tlb::new(self.config.tlb_entries));
        let mm = self.memory.add_mm(memcg, tlb);
        self.memcgs[memcg].mms.push(mm);
        mm
    }

    /// Creates a task of a process, running on `cpu`.
    pub fn task_create(&mut self, mm: MmId, cpu: CpuId) -> TaskId {
        assert!(cpu.0 < self.config.cpus, "there is no CPU {}", cpu.0);
        self.tasks.push(Task::new(mm, cpu));
        TaskId((self.tasks.len() - 1) as u32)
    }

    /// Opens a file for read(2) and, for tmpfs, write(2), of one page at a time.
    pub fn open(&mut self, task: TaskId, file: FileId) -> Result<ObjectId, ConfigError> {
        let opened = self.memory.files.get(file.index());
        let opened = opened.ok_or_else(|| ConfigError::Unknown(format!("file {}", file.0)))?;
        let (pages, is_tmpfs) = (opened.index.pages(), opened.is_tmpfs());
        Ok(self.add_object(task, access::Object::File { file, pages, is_tmpfs, last_page: access::NO_PAGE }))
    }

    /// Maps anonymous memory, private to the task's process.
    pub fn map_anon(&mut self, task: TaskId, pages: u64, advice: Advice) -> Result<ObjectId, ConfigError> {
        check_range("pages of a mapping", pages, 1, TABLE_PAGES_MAX)?;
        self.map_object(task, pages, Backing::Anon, advice, false)
    }

    /// Maps a whole file, shared.
    pub fn map_file(
        &mut self,
        task: TaskId,
        file: FileId,
        advice: Advice,
        executable: bool,
    ) -> Result<ObjectId, ConfigError> {
        let mapped = self.memory.files.get(file.index());
        let pages = mapped.ok_or_else(|| ConfigError::Unknown(format!("file {}", file.0)))?.index.pages();
        self.map_object(task, pages, Backing::File(file), advice, executable)
    }

    fn map_object(
        &mut self,
        task: TaskId,
        pages: u64,
        backing: Backing,
        advice: Advice,
        executable: bool,
    ) -> Result<ObjectId, ConfigError> {
        let mm_id = self.tasks[task.index()].mm;
        let mm = self.memory.mm_mut(mm_id);
        check_range("pages of an address space", mm.table.pages() + pages, 1, TABLE_PAGES_MAX)?;
        let vma = mm.map(pages, backing, advice, executable);
        let start = mm.vmas[vma].start;
        let mut is_regular_file = false;
        if let Backing::File(file) = backing {
            let file = self.memory.file_mut(file);
            file.mappings.push((mm_id, vma));
            is_regular_file = !file.is_tmpfs();
        }
        Ok(self.add_object(task, access::Object::Mapping { mm: mm_id, vma, start, pages, is_regular_file }))
    }

    fn add_object(&mut self, task: TaskId, object: access::Object) -> ObjectId {
        let objects = &mut self.tasks[task.index()].objects;
        objects.push(object);
        ObjectId((objects.len() - 1) as u32)
    }

    /// Hands over the operations to carry out, in order.
    #[inline]
    pub fn take_ops(&mut self, into: &mut Vec<Op>) {
        hand_over(&mut self.ops, into);
    }

    /// Hands over the tasks whose wait for I/O has ended: resume them now.
    #[inline]
    pub fn take_woken(&mut self, into: &mut Vec<TaskId>) {
        hand_over(&mut self.woken, into);
    }

    /// Hands over the work done since the last call.
    #[inline]
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// Records, from now on, which pages enter and leave page caches.
    pub fn record_page_cache_events(&mut self) {
        self.page_cache_events.get_or_insert_default();
    }

    /// Hands over the recorded page-cache events, in order.
    pub fn take_page_cache_events(&mut self, into: &mut Vec<PageCacheEvent>) {
        if let Some(events) = &mut self.page_cache_events {
            into.append(events);
        }
    }

    /// Bytes of metadata: folio records of the sections in use, what generations add to them, and the words of page tables,
    /// page-cache indexes and swap caches.
    pub fn metadata_bytes(&self) -> usize {
        let files = self.memory.files.iter().map(|file| &file.index);
        let tables =
            files.chain(self.memory.mms.iter().map(|mm| &mm.table)).chain(self.memory.swap.indexes());
        let frames = self.memory.folios.bytes() + self.memory.places.bytes();
        frames + tables.map(crate::memory::table::Table::bytes).sum::<usize>()
    }

    pub(crate) fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        let folio = &self.memory.folios[pfn];
        self.lruvecs.id(folio.memcg, folio.node)
    }

    /// The node on which events of the current task are counted: the first, as tasks are not bound to nodes yet.
    pub(crate) fn current_node(&self) -> NodeId {
        NodeId(0)
    }
}

/// Pages of a file, an address space or a swap device: 4 TiB. Their tables take memory only where they are used, but address
/// space in full, 8 bytes a page, and a system grants no more of that than it might have.
const TABLE_PAGES_MAX: u64 = 1 << 30;

/// Moves everything behind what is in `into`; mostly there is nothing to move, or nothing in `into`.
#[inline]
fn hand_over<T>(from: &mut Vec<T>, into: &mut Vec<T>) {
    if from.is_empty() {
        return;
    }
    if into.is_empty() {
        std::mem::swap(from, into);
    } else {
        into.append(from);
    }
}
