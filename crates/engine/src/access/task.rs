//! Tasks: the stage that each is in, and how a call from the machine takes it further.

use crate::access::engine::Engine;
use crate::access::exit::Exit;
use crate::access::figures::Figures;
use crate::access::hits::Object;
use crate::access::miss::Attempt;
use crate::access::proc::Opening;
use crate::access::promote::PromotionWork;
use crate::core::{Behalf, Core};
use crate::kernfs::LruGenWrite;
use crate::kmem::{BalloonResize, BalloonStep, PoolResize, PoolResizeStep, Stack};
use crate::kthread::{KernelThread, ThreadInfo, ThreadStep};
use crate::machine::step::{Access, DelayReason, IoWait, Served, Step, Touched, Wait};
use crate::memcg::high::{HighReclaim, HighStep};
use crate::memory::Memory;
use crate::memory::mm::Backing;
use crate::migrate::CompactMemory;
use crate::numa_balancing::ThreadScan;
use crate::page_cache::DropCaches;
use crate::page_cache::Truncation;
use crate::promotion::SetAside;
use crate::reclaim::{Madvise, UserReclaim, UserReclaimStep};
use crate::units::{CpuId, FileId, MemcgId, MmId, NodeId, ObjectId, Pfn, TaskId};
use crate::writeback::{DirtyThrottle, Fsync, SyncCall};

/// A thread of execution.
pub(super) struct Task {
    /// The task's address space; a kernel thread has none.
    pub(crate) mm: Option<MmId>,
    pub(crate) cpu: CpuId,
    pub(crate) objects: Vec<Object>,
    /// Numbers of objects that were closed.
    pub(crate) closed: Vec<ObjectId>,
    /// The object that is another task's.
    pub(crate) lent: Option<ObjectId>,
    /// The task's kernel stack, from when it first needs memory.
    pub(crate) stack: Option<Stack>,
    /// What it holds of the kernel's while it reads a file of `/proc`.
    pub(crate) buffers: Vec<Pfn>,
    /// Pages charged while above `memory.high`, to be reclaimed before returning to user space.
    pub(crate) high_debt: u64,
    /// When NUMA balancing scans for it.
    pub(crate) scan: ThreadScan,
    /// Pages of slow memory that it has read, to be promoted when its call is over.
    pub(crate) aside: SetAside,
    /// Pages of files that it has dirtied lately.
    pub(crate) dirty: DirtyThrottle,
    /// The read it waited for has failed.
    pub(crate) read_failed: bool,
    /// The task was killed, and is to end where it can.
    pub(crate) is_killed: bool,
    pub(super) stage: Stage,
    /// The access in progress, or the last one. It is not part of the stage, so that it need not move. Each miss writes it field by field,
    /// and moving it as a whole soon after would wait for all these stores.
    pub(crate) attempt: Attempt,
}

/// The stage of a task: idle, or the access, call or reclaim that it is in the middle of.
pub(crate) enum Stage {
    Idle,
    Access,
    /// A write to `memory.reclaim`, or a limit lowered below usage.
    UserReclaim(Box<UserReclaim>),
    /// A write to `compact_memory`.
    Compact(Box<CompactMemory>),
    /// A write to `drop_caches`.
    DropCaches(Box<DropCaches>),
    /// A write to `nr_hugepages`.
    ResizePool(Box<PoolResize>),
    /// The host takes frames back, or gives some.
    Balloon(Box<BalloonResize>),
    /// A file of `/proc` is being opened.
    OpenProc(Box<Opening>),
    /// A write to `lru_gen`.
    LruGen(Box<LruGenWrite>),
    /// fsync(2).
    Fsync(Box<Fsync>),
    /// Pages of a file are being taken away.
    Truncate(Box<Truncation>),
    /// sync(2) or syncfs(2).
    Sync(Box<SyncCall>),
    /// process_madvise(2).
    Madvise(Box<Madvise>),
    /// A write to `lru_gen/enabled`: folios are being moved.
    Switch,
    /// An access is complete; the pages that its call has isolated are being promoted.
    Promote(Box<PromotionWork>),
    /// An access is complete; what it owes for `memory.high` is being paid.
    High(Box<HighDebt>),
    /// The address space that it was the last to run in is being taken apart.
    Exit(Box<Exit>),
    Exited,
    /// The task is a kernel thread.
    Thread(Box<dyn KernelThread>),
}

/// The debt for `memory.high`, and the access that is complete except for that.
pub(crate) struct HighDebt {
    access: Access,
    served: Served,
    reclaim: HighReclaim,
}

impl HighDebt {
    /// The task is to die, and pays no more than it must.
    pub(crate) fn cut_short(&mut self) {
        self.reclaim.cut_short();
    }
}

impl Task {
    /// Returns a task that runs in an address space with `others` other tasks.
    pub(crate) fn new(mm: MmId, others: u32, cpu: CpuId) -> Task {
        Task { scan: ThreadScan::beside(others), ..Task::at(Stage::Idle, Some(mm), cpu) }
    }

    /// A kernel thread.
    pub(crate) fn thread(thread: Box<dyn KernelThread>, cpu: CpuId) -> Task {
        Task::at(Stage::Thread(thread), None, cpu)
    }

    fn at(stage: Stage, mm: Option<MmId>, cpu: CpuId) -> Task {
        Task {
            mm,
            cpu,
            objects: Vec::new(),
            closed: Vec::new(),
            lent: None,
            stack: None,
            buffers: Vec::new(),
            high_debt: 0,
            scan: ThreadScan::default(),
            aside: SetAside::default(),
            dirty: DirtyThrottle::default(),
            read_failed: false,
            is_killed: false,
            stage,
            attempt: Attempt::default(),
        }
    }

    /// Returns the object of the access in progress.
    #[inline]
    pub(crate) fn accessed(&self) -> &Object {
        &self.objects[self.attempt.object().index()]
    }

    pub(crate) fn suspend_access(&mut self) {
        self.stage = Stage::Access;
    }

    /// Returns whether an access is in progress that may bring in pages of a file from this one on.
    pub(super) fn may_bring_in_behind(&self, file: FileId, end: u64, memory: &Memory) -> bool {
        matches!(self.stage, Stage::Access)
            && (self.attempt.page >= end || self.attempt.readahead.is_some())
            && match *self.accessed() {
                Object::File { file: of, .. } => of == file,
                Object::Mapping { mm, vma, .. } => memory.mm(mm).vmas[vma].backing == Backing::File(file),
            }
    }

    /// The task's address space; a kernel thread, which has none, accesses nothing.
    #[inline]
    pub(super) fn mm(&self) -> MmId {
        self.mm.expect("a kernel thread accesses nothing")
    }
}

/// The task on whose behalf a call runs, as the kernel's `current`, and what it works on. Most of what serves an access is a method of
/// it, so that the task is looked up once a call.
pub(crate) struct Current<'a> {
    pub(super) core: &'a mut Core,
    pub(super) task: &'a mut Task,
    pub(super) id: TaskId,
}

impl Figures<'_> {
    /// The address space of a task; a kernel thread has none.
    pub(crate) fn mm_if_any(self, task: TaskId) -> Option<MmId> {
        self.tasks[task.index()].mm
    }

    /// The task by which a process is known.
    pub(crate) fn first_task(self, mm: MmId) -> Option<TaskId> {
        self.tasks.iter().position(|task| task.mm == Some(mm)).map(|at| TaskId(at as u32))
    }
}

impl Engine {
    /// A task, for what it does.
    #[inline]
    pub(crate) fn current(&mut self, task: TaskId) -> Current<'_> {
        Current { core: &mut self.core, task: &mut self.tasks[task.index()], id: task }
    }

    /// The calls below act as this task, on its CPU.
    #[inline]
    pub(crate) fn enter(&mut self, task: TaskId) -> Current<'_> {
        let current = self.current(task);
        current.core.by = Behalf {
            task,
            cpu: current.task.cpu,
            now: current.core.by.now,
            is_real_time: current.task.dirty.is_real_time,
        };
        current
    }

    /// Sets whether a task is scheduled in real time: it may use half of the reserve of free memory, and dirty more pages than others
    /// before it is throttled. The host decides that it runs before others.
    #[doc(alias = "rt_task")]
    pub fn set_real_time(&mut self, task: TaskId, is_real_time: bool) {
        self.tasks[task.index()].dirty.is_real_time = is_real_time;
    }

    /// Begins an access.
    ///
    /// The task must not be in the middle of another one.
    pub fn start(&mut self, task: TaskId, access: Access) -> Step {
        let current = self.enter(task);
        current.assert_idle();
        let is_spared = std::mem::take(&mut current.task.dirty.is_spared);
        if let Err(error) = current.task.check_access(access) {
            return Step::Done(Served::Failed(error));
        }
        // A hit that the fast path could have served is a hit here too.
        match self.hit(task, access) {
            Some(step) => step,
            None => self.current(task).begin(access, is_spared),
        }
    }

    /// Begins an access that a thread has made already, reading without the engine: the access before which [`Engine::run_hits`] has
    /// stopped. At its end the task may have work to do. Returns `None` if it is not a hit any more: the page has gone meanwhile.
    pub fn start_hit(&mut self, task: TaskId, access: Access) -> Option<Step> {
        let current = self.enter(task);
        current.assert_idle();
        current.task.check_access(access).ok()?;
        self.hit(task, access)
    }

    /// Pays what a task owes for `memory.high`, where that is the machine's to ask for ([`crate::Config::pays_on_request`]). At its end it says where the page is
    /// now that the task has accessed last, or was refused.
    pub fn pay(&mut self, task: TaskId, accessed: Access) -> Step {
        let mut current = self.enter(task);
        current.assert_idle();
        let served = current.served_still(accessed, Served::Hit(Touched::Gone));
        current.pay(accessed, served)
    }

    #[inline(always)]
    fn hit(&mut self, task: TaskId, access: Access) -> Option<Step> {
        let mut current = self.current(task);
        current.use_mm();
        if current.is_sure_to_miss(access) || self.hits(task, &[()], |()| access, false) == 0 {
            return None;
        }
        let touched = self.touched(task, access);
        Some(self.current(task).return_to_user(access, Served::Hit(touched)))
    }

    pub(super) fn assert_idle(&mut self, task: TaskId) {
        self.current(task).assert_idle();
    }

    /// Goes on with what a task is in the middle of: after [`Step::Again`], or when its wait is over.
    pub fn resume(&mut self, task: TaskId) -> Step {
        let mut current = self.enter(task);
        let woken = !current.core.sleepers.remove(task);
        if current.task.is_killed
            && let Some(step) = current.die_where_it_can()
        {
            return step;
        }
        match std::mem::replace(&mut current.task.stage, Stage::Idle) {
            Stage::Idle | Stage::Exited => panic!("task {} is in the middle of nothing", task.0),
            Stage::Access => {
                current.task.attempt.progress.submits_refault = false;
                current.attempt()
            }
            Stage::UserReclaim(request) => current.user_reclaim(request),
            Stage::Compact(request) => current.compact_memory(request),
            Stage::DropCaches(request) => current.drop_caches(request),
            Stage::ResizePool(resize) => current.resize_pool(resize),
            Stage::Balloon(resize) => current.balloon(resize),
            Stage::OpenProc(opening) => current.open_proc_file_step(opening),
            Stage::LruGen(write) => match self.lru_gen_write(task, write) {
                Ok(step) => step,
                Err(error) => Step::Done(Served::Refused(Box::new(error))),
            },
            Stage::Fsync(call) => current.fsync_on(call),
            Stage::Truncate(call) => self.shrink_on(task, call),
            Stage::Sync(call) => current.sync_on(call),
            Stage::Madvise(call) => current.madvise(call),
            Stage::Switch if current.core.switch_step() => current.suspend_switch(),
            Stage::Switch => Step::Done(Served::Written { reclaimed: 0 }),
            Stage::Promote(work) => current.promotion_work(work),
            Stage::High(debt) => current.pay_high(debt),
            Stage::Exit(exit) => current.exit_step(exit),
            Stage::Thread(thread) => current.thread_step(thread, woken),
        }
    }

    /// Returns whether a task serves a request to reclaim this node alone.
    pub(crate) fn is_node_reclaimed(&self, node: NodeId) -> bool {
        let reclaims =
            |task: &Task| matches!(&task.stage, Stage::UserReclaim(request) if request.node() == Some(node));
        self.tasks.iter().any(reclaims)
    }

    /// A signal comes for a task that writes a kernel file, and is not fatal before the write has returned. A request to
    /// `memory.reclaim` ends by it where its policy says so (`reclaim.on_signal`): the task is resumed as before, and soon is
    /// served with [`Served::Interrupted`]. Nothing else notices.
    pub fn signal(&mut self, task: TaskId) {
        if let Stage::UserReclaim(request) = &mut self.tasks[task.index()].stage {
            self.core.mm.user_reclaim_signal(request);
        }
    }

    /// Starts the kernel threads. They wait from the start, and are resumed as all tasks are: when they are named by
    /// [`Engine::take_woken`], and when a wait has an end of its own. Without this call the machine has none. A later call starts those that have come since:
    /// the flusher of a device that was registered while the machine ran ([`Engine::bdi_register`]), say.
    pub fn start_kernel_threads(&mut self) -> Vec<ThreadInfo> {
        std::mem::take(&mut self.core.threads_to_start)
            .into_iter()
            .map(|thread| self.start_thread(thread))
            .collect()
    }

    fn start_thread(&mut self, mut thread: Box<dyn KernelThread>) -> ThreadInfo {
        let task = TaskId(self.tasks.len() as u32);
        let cpus = self.core.mm.config.cpus_of(thread.node());
        thread.started(&mut self.core, task);
        let (name, wait) = (thread.name(), thread.first_wait());
        self.tasks.push(Task::thread(thread, cpus.start));
        let _ = self.current(task).wait(wait);
        ThreadInfo { task, name, cpus, wait }
    }

    /// Moves a task to another CPU.
    pub fn set_cpu(&mut self, task: TaskId, cpu: CpuId) {
        assert!(cpu.0 < self.core.mm.config.cpus, "there is no CPU {}", cpu.0);
        let task = &mut self.tasks[task.index()];
        if let Some(mm) = task.mm {
            self.core.thread_moves(mm, &mut task.scan, task.cpu, cpu);
        }
        task.cpu = cpu;
    }

    /// Returns true if a task is inside a reclaim call.
    pub fn in_reclaim(&self, task: TaskId) -> bool {
        match &self.tasks[task.index()].stage {
            Stage::Idle
            | Stage::Fsync(_)
            | Stage::Truncate(_)
            | Stage::Sync(_)
            | Stage::Madvise(_)
            | Stage::Switch
            | Stage::Compact(_)
            | Stage::DropCaches(_)
            | Stage::Exit(_)
            | Stage::Promote(_)
            | Stage::Exited => false,
            Stage::Access => self.tasks[task.index()].attempt.in_reclaim(),
            Stage::UserReclaim(_) | Stage::LruGen(_) => true,
            Stage::OpenProc(opening) => opening.in_reclaim(),
            Stage::High(debt) => debt.reclaim.in_reclaim(),
            Stage::ResizePool(resize) => resize.in_reclaim(),
            Stage::Balloon(resize) => resize.in_reclaim(),
            Stage::Thread(thread) => thread.in_reclaim(),
        }
    }

    /// A task's address space: another one after each [`Engine::task_exec`].
    ///
    /// # Panics
    /// When it is a kernel thread, which has none.
    pub fn mm_of(&self, task: TaskId) -> MmId {
        self.tasks[task.index()].mm()
    }
}

impl Current<'_> {
    pub(super) fn assert_idle(&self) {
        let stage = &self.task.stage;
        assert!(!matches!(stage, Stage::Exited), "task {} has exited", self.id.0);
        assert!(matches!(stage, Stage::Idle), "task {} is in the middle of something", self.id.0);
    }

    /// Begins an access that is not a hit.
    #[inline]
    fn begin(&mut self, access: Access, is_spared: bool) -> Step {
        self.task.attempt.begin(access);
        // The processor has marked the way to the entry before the kernel is notified of a fault.
        if let &Object::Mapping { mm, start, .. } = self.task.accessed() {
            self.core.mm.memory.mm_mut(mm).table.pass_through(start + access.page);
        }
        if access.write {
            self.begin_write(is_spared);
        }
        if self.core.mm.numa_balancing.has_marked() {
            self.take_hint_fault();
        }
        self.attempt()
    }

    fn thread_step(&mut self, mut thread: Box<dyn KernelThread>, woken: bool) -> Step {
        let step = thread.step(self.core, woken);
        self.task.stage = Stage::Thread(thread);
        match step {
            ThreadStep::Again => Step::Again,
            ThreadStep::Wait(wait) => self.wait(wait),
        }
    }

    /// A task waits. A task or device that may wake it finds it among the sleepers.
    pub(crate) fn wait(&mut self, wait: Wait) -> Step {
        if wait.is_for_wake() {
            self.core.sleepers.add(self.id);
        }
        Step::Wait(wait)
    }

    /// Goes on with dropping what a user said should be dropped.
    pub(crate) fn drop_caches(&mut self, mut request: Box<DropCaches>) -> Step {
        if !self.core.drop_caches_step(&mut request) {
            return Step::Done(Served::Written { reclaimed: 0 });
        }
        self.task.stage = Stage::DropCaches(request);
        Step::Again
    }

    /// Goes on with compaction that a user asked for.
    pub(crate) fn compact_memory(&mut self, mut request: Box<CompactMemory>) -> Step {
        if !self.core.compact_memory_step(&mut request) {
            return Step::Done(Served::Written { reclaimed: 0 });
        }
        self.task.stage = Stage::Compact(request);
        Step::Again
    }

    /// Goes on with advice on pages.
    pub(crate) fn madvise(&mut self, mut call: Box<Madvise>) -> Step {
        if self.core.madvise_step(&mut call) {
            return Step::Done(Served::Written { reclaimed: call.reclaimed() });
        }
        self.task.stage = Stage::Madvise(call);
        Step::Again
    }

    /// Goes on with a change of a pool of huge pages.
    pub(crate) fn resize_pool(&mut self, mut resize: Box<PoolResize>) -> Step {
        let step = match self.core.pool_resize_step(&mut resize) {
            PoolResizeStep::Again => Step::Again,
            PoolResizeStep::Wait(wait) => self.wait(wait),
            PoolResizeStep::WaitForWriteback => {
                self.core.wait_for_any_write(self.id);
                Step::Wait(Wait::Io(IoWait::Writeback))
            }
            PoolResizeStep::Done => return Step::Done(Served::Written { reclaimed: 0 }),
        };
        self.task.stage = Stage::ResizePool(resize);
        step
    }

    /// Goes on with a change of the balloon.
    pub(crate) fn balloon(&mut self, mut resize: Box<BalloonResize>) -> Step {
        let step = match self.core.balloon_step(&mut resize) {
            BalloonStep::Again => Step::Again,
            BalloonStep::Wait(wait) => self.wait(wait),
            BalloonStep::WaitForWriteback => {
                self.core.wait_for_any_write(self.id);
                Step::Wait(Wait::Io(IoWait::Writeback))
            }
            BalloonStep::Done => return Step::Done(Served::Written { reclaimed: 0 }),
        };
        self.task.stage = Stage::Balloon(resize);
        step
    }

    /// Goes on with reclaim that a user asked for.
    pub(crate) fn user_reclaim(&mut self, mut request: Box<UserReclaim>) -> Step {
        match self.core.user_reclaim_step(&mut request) {
            UserReclaimStep::Again => {
                self.task.stage = Stage::UserReclaim(request);
                Step::Again
            }
            UserReclaimStep::Wait(wait) => {
                self.task.stage = Stage::UserReclaim(request);
                self.wait(wait)
            }
            UserReclaimStep::WaitForWriteback => {
                self.core.wait_for_any_write(self.id);
                self.task.stage = Stage::UserReclaim(request);
                Step::Wait(Wait::Io(IoWait::Writeback))
            }
            UserReclaimStep::Done(reclaimed) => Step::Done(Served::Written { reclaimed }),
            UserReclaimStep::Interrupted(reclaimed) => Step::Done(Served::Interrupted { reclaimed }),
        }
    }

    /// The last step before an access is complete: promotes the pages that its call has isolated, if the call is over, and pays the debt
    /// for `memory.high`.
    ///
    /// Always inlined: `served` comes in and mostly goes straight out again. A call would pass it through memory, which costs
    /// more than all else that is done here.
    #[inline(always)]
    pub(crate) fn return_to_user(&mut self, access: Access, served: Served) -> Step {
        let Task { aside, high_debt, .. } = &*self.task;
        if aside.is_empty() && *high_debt == 0 {
            return Step::Done(served);
        }
        self.do_what_is_left(access, served)
    }

    #[inline(never)]
    fn do_what_is_left(&mut self, access: Access, served: Served) -> Step {
        if !self.task.aside.is_empty() && access.ends_call() {
            return self.begin_promotion_work(access, served);
        }
        self.pay_what_is_owed(access, served)
    }

    pub(super) fn pay_what_is_owed(&mut self, access: Access, served: Served) -> Step {
        if self.core.mm.config.pays_on_request {
            return Step::Done(served);
        }
        self.pay(access, served)
    }

    fn pay(&mut self, access: Access, served: Served) -> Step {
        match std::mem::take(&mut self.task.high_debt) {
            0 => Step::Done(served),
            debt => self.pay_high(Box::new(HighDebt { access, served, reclaim: HighReclaim::new(debt) })),
        }
    }

    #[inline(never)]
    fn pay_high(&mut self, mut debt: Box<HighDebt>) -> Step {
        let memcg = self.memcg();
        let step = match self.core.high_step(memcg, &mut debt.reclaim) {
            HighStep::Done => return Step::Done(self.served_still(debt.access, debt.served)),
            HighStep::Again => Step::Again,
            HighStep::Wait(wait) => self.wait(wait),
            HighStep::Sleep(delay) => Step::Wait(Wait::Delay(delay, DelayReason::MemoryHigh)),
        };
        self.task.stage = Stage::High(debt);
        step
    }

    /// How the access was served, unless paying has cost the page that was accessed, or its object has got shorter.
    pub(super) fn served_still(&self, access: Access, served: Served) -> Served {
        let is_there = self.task.check_access(access).is_ok();
        let touched = || if is_there { self.task.touched(self.core, access) } else { Touched::Gone };
        match served {
            Served::Hit(_) => Served::Hit(touched()),
            Served::Minor(_) => Served::Minor(touched()),
            Served::Major(_) => Served::Major(touched()),
            other => other,
        }
    }

    /// The group that a task's memory is charged to.
    pub(super) fn memcg(&self) -> MemcgId {
        self.core.mm.memory.mm(self.task.mm()).memcg
    }

    pub(crate) fn suspend_switch(&mut self) -> Step {
        self.task.stage = Stage::Switch;
        Step::Again
    }

    pub(crate) fn suspend_lru_gen(&mut self, write: Box<LruGenWrite>) {
        self.task.stage = Stage::LruGen(write);
    }
}
