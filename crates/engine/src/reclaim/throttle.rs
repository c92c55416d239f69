//! Throttled reclaimers: when one waits for others (too many isolated pages, no page left for kswapd to work with, no progress), and
//! until when.
//!
//! ```text
//!   too many isolated   more pages are in reclaimers' hands than on the list: what is left would look like the whole, and the
//!                       verdict on it would be that nothing can be reclaimed
//!                                        once, for a fiftieth of a second, or until someone finds that there are not too many
//!                       2010: a tenth of a second, again and again
//!   the gate            less than half of the minimum is free: those who allocate stand back until kswapd has freed some
//!                       pages, or it might find none for its own work                           until it opens
//!                       2010: there was none
//!   no progress         the last priority but one gave nothing, and much is being written
//!                                        a tick, or until someone gets more than an eighth of what he looks at
//! ```
//! [reclaim 2.6, 2.13, 5.4; machine 3.4]

use crate::core::Core;
use crate::machine::step::{DelayReason, Wait};
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::watermark::Watermark;
use crate::reclaim::ScanControl;
use crate::stat::{ByType, ISOLATED, Stat};
use crate::state::State;
use crate::story::{GfpFlags, Tracepoint};
use crate::units::ZoneType;
use crate::units::{LruType, Nanos, NodeId, TaskId};
use pageout_rules::reclaim::Stalls;

/// For what a reclaimer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThrottleReason {
    /// Pages under writeback have to be written.
    Writeback,
    /// Too many pages are in reclaimers' hands.
    Isolated,
    /// The reclaimer has found nothing to free.
    NoProgress,
    /// All dirty pages that it met were met before: devices have too much to do.
    Congested,
}

impl ThrottleReason {
    /// All reasons.
    pub const ALL: [ThrottleReason; 4] = [
        ThrottleReason::Writeback,
        ThrottleReason::Isolated,
        ThrottleReason::NoProgress,
        ThrottleReason::Congested,
    ];

    /// The name of the reason in results.
    pub fn name(self) -> &'static str {
        match self {
            ThrottleReason::Writeback => "writeback",
            ThrottleReason::Isolated => "isolated",
            ThrottleReason::NoProgress => "no_progress",
            ThrottleReason::Congested => "congested",
        }
    }
}

/// Reclaimers of a node that wait for others, by what they wait for. Each is here until it goes on, whatever has ended its wait.
#[derive(Default)]
pub(crate) struct Throttled {
    /// Tasks that wait for kswapd's gate to open (`pfmemalloc_wait`).
    gate: Vec<TaskId>,
    /// Fewer pages to be in others' hands.
    isolated: Vec<TaskId>,
    /// Someone to get anything at all.
    no_progress: Vec<TaskId>,
}

impl Throttled {
    fn remove(&mut self, task: TaskId) {
        for waiting in [&mut self.gate, &mut self.isolated, &mut self.no_progress] {
            waiting.retain(|&other| other != task);
        }
    }
}

impl Core {
    /// Returns true if a reclaimer must not take more of a type now. The first time it is to wait; if there are still too many then, its
    /// batch gives nothing. In 2010 it waited until there were not, and a group's reclaimers took what there was.
    pub(crate) fn too_many_isolated(&mut self, node: NodeId, kind: LruType, sc: &mut ScanControl) -> bool {
        let rules = self.mm.memcgs[sc.by.target].policy.reclaim;
        let is_2010 = rules.stalls == Stalls::CongestionWait;
        if sc.by.is_kswapd() || !rules.isolation_limit || is_2010 && !sc.by.is_for_machine() {
            return false;
        }
        let inactive = [Stat::NrInactiveAnon, Stat::NrInactiveFile];
        // Its own are those of the current round, which a kernel would have put back by now.
        let isolated =
            self.mm.node_stat(node, ISOLATED.of(kind)).max(0) as u64 - sc.hands.isolated[kind as usize];
        let mut allowed = self.mm.node_stat(node, inactive.of(kind)).max(0) as u64;
        if sc.by.may_enter_fs && !is_2010 {
            // Those who can't enter a file system may be waited for by those who can: they may take more.
            allowed >>= 3;
        }
        if isolated <= allowed {
            sc.waits.has_waited = false;
            self.wake_all(node, |throttled| &mut throttled.isolated);
            return false;
        }
        // A task that will be killed has nothing to wait for.
        sc.waits.must_wait = !sc.waits.has_waited || is_2010 && sc.nr_to_reclaim > 0;
        sc.waits.has_waited = true;
        true
    }

    /// A reclaimer waits who has found too many pages of a node in others' hands.
    pub(crate) fn isolated_wait(&mut self, node: NodeId, sc: &mut ScanControl) -> Wait {
        if self.mm.memcgs[sc.by.target].policy.reclaim.stalls == Stalls::CongestionWait {
            sc.waits.has_stalled = true;
            return self.congestion_wait();
        }
        let task = self.by.task;
        self.kswapds[node.index()].throttled.isolated.push(task);
        let ticks = u64::from(self.mm.config.hz / 50).max(1);
        self.throttle(node, sc, ticks, ThrottleReason::Isolated)
    }

    /// A reclaimer waits with others of a node.
    #[doc(alias = "reclaim_throttle")]
    pub(crate) fn throttle(
        &mut self,
        node: NodeId,
        sc: &mut ScanControl,
        ticks: u64,
        reason: ThrottleReason,
    ) -> Wait {
        self.throttled[reason as usize] += 1;
        sc.waits.throttled_on = Some(node);
        sc.waits.throttled = Some((self.by.now, Nanos::from_ticks(ticks, self.mm.config.hz), reason));
        self.mm.ticks_at_most(ticks)
    }

    /// A reclaimer continues: it need not be woken any more.
    pub(crate) fn leave_throttle(&mut self, sc: &mut ScanControl) {
        if let Some(node) = sc.waits.throttled_on.take() {
            let task = self.by.task;
            self.kswapds[node.index()].throttled.remove(task);
            if let Some((since, timeout, reason)) = sc.waits.throttled.take() {
                let delayed = Nanos(self.by.now.0 - since.0);
                self.trace(node, |_| Tracepoint::Throttled { timeout, delayed, reason });
            }
        }
    }

    fn wake_all(&mut self, node: NodeId, of: impl Fn(&mut Throttled) -> &mut Vec<TaskId>) {
        for task in std::mem::take(of(&mut self.kswapds[node.index()].throttled)) {
            self.wake(task);
        }
    }

    /// What a task that needs a page for itself waits for before it may reclaim: kswapd, until it has freed some. `None` if it may.
    pub(crate) fn throttle_direct_reclaim(&mut self, request: &Request) -> Option<Wait> {
        let node = self.mm.gate_of(request)?;
        if !self.mm.config.policy.machine.gate || self.is_gate_open(node) {
            return None;
        }
        self.mm.count_node(node, Stat::PgscanDirectThrottle, 1);
        self.wake_kswapd(node, 0, request.class.min(ZoneType::Normal), GfpFlags::of(request));
        let task = self.by.task;
        self.kswapds[node.index()].throttled.gate.push(task);
        Some(match request.gfp.contains(Gfp::FS) {
            true => Wait::Woken,
            // Its file system may be what kswapd waits for.
            false => self.mm.ticks_at_most(self.mm.config.hz.into()),
        })
    }

    /// A task has waited at the gate: by a wake, or for as long as it may.
    pub(crate) fn leave_gate(&mut self, request: &Request) {
        let task = self.by.task;
        if let Some(node) = self.mm.gate_of(request) {
            self.kswapds[node.index()].throttled.remove(task);
        }
    }

    /// Returns true if enough is free for kswapd to work with, or there is no kswapd to wait for.
    pub(crate) fn is_gate_open(&self, node: NodeId) -> bool {
        if self.kswapds[node.index()].task.is_none() || self.kswapds[node.index()].is_hopeless() {
            return true;
        }
        let zones = self.mm.memory.zones.of_node(node).iter().filter(|zone| zone.kind <= ZoneType::Normal);
        let sums = zones
            .filter(|zone| self.mm.zone_reclaimable_pages(zone) > 0)
            .map(|zone| (zone.mark(Watermark::Min), zone.free_pages()));
        let (reserve, free) = sums.fold((0, 0), |sum, zone| (sum.0 + zone.0, sum.1 + zone.1));
        reserve == 0 || free > reserve / 2
    }

    /// Lets those go on who wait at a node's gate.
    pub(crate) fn open_gate(&mut self, node: NodeId) {
        self.wake_all(node, |throttled| &mut throttled.gate);
    }

    /// A reclaimer has visited its nodes at a priority, from `node` on. Progress releases those who had made none. A task that has found nothing for
    /// the machine lets time pass itself before its last priority, if most pages that it scans are being written.
    pub(crate) fn note_progress(&mut self, node: NodeId, sc: &mut ScanControl) -> Option<Wait> {
        let scanned = sc.nr_scanned - std::mem::replace(&mut sc.scanned_before, sc.nr_scanned);
        if sc.nr_reclaimed > scanned / 8 || sc.is_satisfied() {
            self.wake_all(node, |throttled| &mut throttled.no_progress);
            return None;
        }
        let is_for_itself = sc.by.is_for_machine() && !sc.by.is_kswapd();
        if !is_for_itself || sc.priority != 1 || sc.nr_reclaimed > 0 || !self.is_much_pending(node) {
            return None;
        }
        let task = self.by.task;
        self.kswapds[node.index()].throttled.no_progress.push(task);
        Some(self.throttle(node, sc, 1, ThrottleReason::NoProgress))
    }

    /// Returns true if so much of a node is dirty or being written that a reclaimer who waits may find more afterwards.
    pub(crate) fn is_much_pending(&self, node: NodeId) -> bool {
        let pending =
            [Stat::NrDirty, Stat::NrWriteback].map(|stat| self.mm.node_stat(node, stat).max(0) as u64);
        2 * pending.iter().sum::<u64>() > self.mm.node_reclaimable(node)
            && !self.kswapds[node.index()].is_hopeless()
            && !self.io.are_held_up
    }
}

impl State {
    /// A batch is isolated for as long as its step takes, which is over when the reclaimer continues.
    ///
    /// By then its pages are on lists again, where other reclaimers find them. Many reclaimers that are between two steps, such as 1,600
    /// tasks of one CPU, would count the same pages. A page is isolated only once, so this counts no more pages than the node has.
    pub(crate) fn note_isolated(&mut self, node: NodeId, kind: LruType, pages: u64, sc: &mut ScanControl) {
        let managed: u64 = self.memory.zones.of_node(node).iter().map(|zone| zone.managed).sum();
        let isolated: i64 = ISOLATED.iter().map(|&stat| self.node_stat(node, stat)).sum();
        let pages = pages.min(managed.saturating_sub(isolated.max(0) as u64));
        debug_assert!(
            sc.hands.isolated == [0; 2] || sc.hands.isolated_on == node,
            "a step stays on its node"
        );
        sc.hands.isolated_on = node;
        sc.hands.isolated[kind as usize] += pages;
        let before = self.isolated_on(node);
        self.count_node(node, ISOLATED.of(kind), pages as i64);
        debug_assert_eq!(
            self.isolated_on(node)[kind as usize],
            before[kind as usize] + pages as i64,
            "isolated pages of {kind:?} on {node:?}"
        );
    }

    /// Isolated pages of a node, by type; for assertions.
    #[inline(always)]
    pub(crate) fn isolated_on(&self, node: NodeId) -> [i64; 2] {
        if cfg!(debug_assertions) { ISOLATED.map(|stat| self.node_stat(node, stat)) } else { [0; 2] }
    }

    /// Pages of a node that are in others' hands than this call's, by type; for assertions.
    #[inline(always)]
    pub(super) fn isolated_by_others(&self, node: NodeId, sc: &ScanControl) -> [i64; 2] {
        let (all, own) = (self.isolated_on(node), sc.hands.isolated);
        if cfg!(debug_assertions) { [all[0] - own[0] as i64, all[1] - own[1] as i64] } else { [0; 2] }
    }

    /// The reclaimer goes on: what its last batch had is freed or on lists again.
    pub(crate) fn release_isolated(&mut self, sc: &mut ScanControl) {
        let (node, in_hand) = (sc.hands.isolated_on, sc.hands.isolated.map(|pages| pages as i64));
        let before = self.isolated_on(node);
        for kind in LruType::BOTH {
            match std::mem::take(&mut sc.hands.isolated[kind as usize]) {
                0 => {}
                pages => self.count_node(sc.hands.isolated_on, ISOLATED.of(kind), -(pages as i64)),
            }
            assert_eq!(sc.hands.isolated[kind as usize], 0, "a reclaimer goes on with pages in hand");
        }
        debug_assert_eq!(
            self.isolated_on(node),
            [before[0] - in_hand[0], before[1] - in_hand[1]],
            "isolated pages on {node:?} after a reclaimer has put back {in_hand:?}"
        );
    }

    fn ticks_at_most(&self, ticks: u64) -> Wait {
        Wait::WokenOr(Nanos::from_ticks(ticks, self.config.hz), DelayReason::Reclaim)
    }

    /// The node at whose gate a request waits: the first that it may be served from, as a request of ordinary memory.
    fn gate_of(&self, request: &Request) -> Option<NodeId> {
        let class = request.class.min(ZoneType::Normal);
        let mut zonelist = self.memory.zones.zonelist(request.node, class, request.allowed);
        zonelist.next().map(|zone| zone.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_alloc::request::{MigrateType, Rights};
    use crate::reclaim::tally::{Stall, Tally};
    use crate::reclaim::{Reclaimer, Why};
    use crate::units::CpuId;
    use crate::units::MemcgId;
    use crate::{Access, Bdi, Config, Engine, FileKind, FileSpec, IoWait, Served, Step};

    const NODE: NodeId = NodeId(0);

    /// A machine of 4096 pages with its kernel threads: min 128, low 160, high 192.
    fn machine() -> Engine {
        let mut engine = Engine::new(Config {
            node_pages: vec![4096],
            cpus: 1,
            watermark_boost_factor: 0,
            ..Config::default()
        })
        .unwrap();
        engine.start_kernel_threads();
        engine
    }

    /// Takes free pages, whatever the marks say, until so many are left.
    fn leave_free(engine: &mut Engine, pages: u64) {
        let request = Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, NODE);
        while engine.core.mm.memory.zones.free_pages(NODE) > pages {
            let rights = Rights::NO_WATERMARKS;
            let taken = engine.core.try_alloc(&request, Watermark::Min, rights, MemcgId::ROOT);
            taken.expect("nothing keeps it back");
            engine.core.mm.memory.drain_all_pages();
        }
        assert_eq!(engine.core.mm.memory.zones.free_pages(NODE), pages);
    }

    fn woken(engine: &mut Engine) -> Vec<TaskId> {
        let mut woken = Vec::new();
        engine.take_woken(&mut woken);
        woken
    }

    fn request(gfp: Gfp) -> Request {
        Request::movable(gfp, NODE)
    }

    fn direct() -> ScanControl {
        let by = Reclaimer { from: Some(NODE), ..Reclaimer::new(MemcgId::ROOT, Why::Direct, 60) };
        ScanControl::new(by, 32)
    }

    /// As a task does that a step of reclaim makes wait.
    fn sleep(engine: &mut Engine, task: TaskId, wait: Wait) {
        assert_eq!(engine.current(task).wait(wait), Step::Wait(wait));
    }

    #[test]
    fn the_gate_is_shut_from_half_of_the_minimum_down() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 1);
        leave_free(&mut engine, 65);
        assert!(engine.core.is_gate_open(NODE), "128 / 2 = 64");
        leave_free(&mut engine, 64);
        assert!(!engine.core.is_gate_open(NODE));
    }

    #[test]
    fn pages_that_are_written_while_a_reclaimer_waits_for_that_are_counted() {
        let mut engine = machine();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        engine.enter(task);
        engine.core.note_written(NODE, 3);
        assert_eq!(engine.figures().vmstat(Stat::NrThrottledWritten), 0, "nobody waits");
        let mut sc = direct();
        sc.waits.stall = Some(Stall::Writeback(NODE));
        engine.core.take_stall(&mut sc).expect("it waits");
        // The last of these lets it go on.
        for _ in 0..=32 {
            engine.core.note_written(NODE, 1);
        }
        engine.core.note_written(NODE, 1);
        assert_eq!(engine.figures().vmstat(Stat::NrThrottledWritten), 33);
        assert_eq!(engine.figures().throttled(ThrottleReason::Writeback), 1);
    }

    #[test]
    fn what_generations_meet_that_is_dirty_counts_by_a_switch() {
        let mut engine = machine();
        let lruvec = engine.core.mm.lruvecs.id(MemcgId::ROOT, NODE);
        let met = Tally { taken: 4, file_taken: 4, dirty: 3, congested: 3, ..Tally::default() };
        let mut counted = |batch_tallies| {
            let policy = &mut engine.core.mm.memcgs[MemcgId::ROOT].policy;
            *policy = crate::Policy::of("mglru@2026").group;
            policy.reclaim.batch_tallies = batch_tallies;
            let mut sc = direct();
            engine.core.note_batch(crate::Lru::Generations, lruvec, met, &mut sc);
            sc.tally
        };
        assert_eq!(counted(true), met);
        assert_eq!(counted(false), Tally { file_taken: 4, ..Tally::default() });
    }

    #[test]
    fn in_2010_there_was_no_gate() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 1);
        leave_free(&mut engine, 64);
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        engine.enter(task);
        engine.core.set_policy(crate::Policy::of("classic@2010"));
        assert_eq!(engine.core.throttle_direct_reclaim(&request(Gfp::KERNEL)), None);
        engine.core.set_policy(crate::Policy::of("classic@6.12"));
        assert!(engine.core.throttle_direct_reclaim(&request(Gfp::KERNEL)).is_some());
    }

    /// The example of [machine 3.4]: a minimum of 331, raised by 512.
    #[test]
    fn a_boost_shuts_the_gate_earlier() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 1);
        let zone = engine.core.mm.memory.zones.zone_mut(NODE, ZoneType::Dma32);
        (zone.marks.min, zone.boost) = (331, 512);
        leave_free(&mut engine, 422);
        assert!(engine.core.is_gate_open(NODE));
        leave_free(&mut engine, 421);
        assert!(!engine.core.is_gate_open(NODE));
    }

    #[test]
    fn the_gate_stands_open_where_kswapd_could_do_nothing() {
        let mut engine = machine();
        leave_free(&mut engine, 10);
        assert!(engine.core.is_gate_open(NODE), "nothing is reclaimable");
        engine.core.mm.count_node(NODE, Stat::NrActiveAnon, 100);
        assert!(engine.core.is_gate_open(NODE), "there is no swap");
        engine.core.mm.count_node(NODE, Stat::NrActiveFile, 1);
        assert!(!engine.core.is_gate_open(NODE));
        engine.core.kswapds[0].failures = 15;
        assert!(!engine.core.is_gate_open(NODE));
        engine.core.kswapds[0].failures = 16;
        assert!(engine.core.is_gate_open(NODE), "it has failed 16 times");
    }

    #[test]
    fn who_may_not_enter_a_file_system_waits_at_the_gate_for_a_second_at_most() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 1);
        leave_free(&mut engine, 10);
        let second = Wait::WokenOr(Nanos::SECOND, DelayReason::Reclaim);
        assert_eq!(engine.core.throttle_direct_reclaim(&request(Gfp::NOFS)), Some(second));
        assert_eq!(engine.core.throttle_direct_reclaim(&request(Gfp::KERNEL)), Some(Wait::Woken));
        assert_eq!(engine.figures().vmstat(Stat::PgscanDirectThrottle), 2);
    }

    #[test]
    fn who_finds_the_gate_shut_is_counted_once_and_goes_on_when_kswapd_has_freed_some() {
        let mut engine = machine();
        // kcompactd would be named beside those who wait.
        engine.core.mm.config.compaction_proactiveness = 0;
        let file = FileSpec {
            name: "data".to_owned(),
            pages: 5000,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        };
        let file = engine.file_create(file).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.open(task, file).unwrap();
        let kswapd = engine.core.kswapds[0].task.unwrap();
        let mut ops = Vec::new();
        for page in 0..3000 {
            let step = engine.start(task, Access::new(object, page, false));
            assert_eq!(step, Step::Wait(Wait::Io(IoWait::FileRead)));
            engine.take_ops(&mut ops);
            let Some(crate::Op::ReadFile { io, .. }) = ops.pop() else { panic!("it is read") };
            engine.io_done(io, CpuId(0), Ok(()));
            assert_eq!(woken(&mut engine), [task]);
            assert!(matches!(engine.resume(task), Step::Done(Served::Major(_))));
        }
        leave_free(&mut engine, 64);
        // The read is inside a file system.
        let second = Wait::WokenOr(Nanos::SECOND, DelayReason::Reclaim);
        assert_eq!(engine.start(task, Access::new(object, 3000, false)), Step::Wait(second));
        assert_eq!(woken(&mut engine), [kswapd]);
        let mut steps = 0;
        let named = loop {
            let step = engine.resume(kswapd);
            let named = woken(&mut engine);
            steps += 1;
            if step != Step::Again || !named.is_empty() {
                break named;
            }
        };
        assert!(steps > 1 && engine.core.is_gate_open(NODE));
        assert_eq!(named, [task], "after a pass that has freed enough");
        while engine.resume(task) == Step::Again {}
        assert_eq!(engine.figures().vmstat(Stat::PgscanDirectThrottle), 1);
        assert!(engine.figures().vmstat(Stat::AllocstallMovable) > 0, "it reclaims all the same");
    }

    /// 2 * 51 > 101, and at 250 Hz a tick is 4 ms.
    #[test]
    fn no_progress_where_most_is_being_written_is_worth_a_tick() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 101);
        engine.core.mm.count_node(NODE, Stat::NrDirty, 30);
        engine.core.mm.count_node(NODE, Stat::NrWriteback, 20);
        let at = |engine: &mut Engine, priority, reclaimed, sc: ScanControl| {
            let mut sc = ScanControl { priority, nr_reclaimed: reclaimed, nr_scanned: 80, ..sc };
            engine.core.note_progress(NODE, &mut sc)
        };
        assert_eq!(at(&mut engine, 1, 0, direct()), None, "2 * 50 is less than 101");
        engine.core.mm.count_node(NODE, Stat::NrWriteback, 1);
        let tick = Wait::WokenOr(Nanos(4_000_000), DelayReason::Reclaim);
        assert_eq!(at(&mut engine, 1, 0, direct()), Some(tick));
        assert_eq!(at(&mut engine, 2, 0, direct()), None, "only before the last priority");
        assert_eq!(at(&mut engine, 1, 1, direct()), None, "it has something");
        let group = ScanControl::new(Reclaimer::new(MemcgId::ROOT, Why::Limit, 60), 32);
        assert_eq!(at(&mut engine, 1, 0, group), None, "only for the machine");
        engine.core.kswapds[0].failures = 16;
        assert_eq!(at(&mut engine, 1, 0, direct()), None, "the node is hopeless");
    }

    #[test]
    fn more_than_an_eighth_of_what_someone_looks_at_ends_the_waits_of_those_without_progress() {
        let mut engine = machine();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        engine.core.mm.count_node(NODE, Stat::NrDirty, 100);
        engine.enter(task);
        let mut sc = ScanControl { priority: 1, ..direct() };
        let wait = engine.core.note_progress(NODE, &mut sc).unwrap();
        sleep(&mut engine, task, wait);
        let mut other = ScanControl { nr_scanned: 1000, scanned_before: 920, nr_reclaimed: 10, ..direct() };
        assert_eq!(engine.core.note_progress(NODE, &mut other), None);
        assert_eq!(woken(&mut engine), [], "10 of 80 are an eighth");
        other = ScanControl { nr_scanned: 1000, scanned_before: 920, nr_reclaimed: 11, ..direct() };
        assert_eq!(engine.core.note_progress(NODE, &mut other), None);
        assert_eq!(woken(&mut engine), [task]);
        engine.core.leave_throttle(&mut sc);
        assert_eq!(sc.waits.throttled_on, None);
    }

    #[test]
    fn who_has_waited_for_progress_as_long_as_it_may_is_woken_by_nobody_later() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrDirty, 100);
        let mut sc = ScanControl { priority: 1, ..direct() };
        assert!(engine.core.note_progress(NODE, &mut sc).is_some());
        engine.core.leave_throttle(&mut sc);
        assert!(engine.core.kswapds[0].throttled.no_progress.is_empty());
    }

    /// An eighth of 80, and all of them for who may not enter a file system. At 250 Hz a fiftieth of a second is five ticks.
    #[test]
    fn too_many_isolated_are_more_than_an_eighth_of_the_inactive_list() {
        let mut engine = machine();
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 80);
        engine.core.mm.count_node(NODE, Stat::NrIsolatedFile, 10);
        let too_many = |engine: &mut Engine, sc: &mut ScanControl| {
            engine.core.too_many_isolated(NODE, LruType::File, sc)
        };
        let mut sc = direct();
        assert!(!too_many(&mut engine, &mut sc));
        engine.core.mm.count_node(NODE, Stat::NrIsolatedFile, 1);
        assert!(too_many(&mut engine, &mut sc) && sc.waits.must_wait);
        let wait = engine.core.isolated_wait(NODE, &mut sc);
        assert_eq!(wait, Wait::WokenOr(Nanos(20_000_000), DelayReason::Reclaim));
        assert!(
            too_many(&mut engine, &mut sc) && !sc.waits.must_wait,
            "it waits once, and gets nothing then"
        );

        let mut without_fs = direct();
        without_fs.by.may_enter_fs = false;
        assert!(!too_many(&mut engine, &mut without_fs));
        let by = Reclaimer { node: Some(NODE), ..Reclaimer::new(MemcgId::ROOT, Why::Kswapd, 60) };
        assert!(!too_many(&mut engine, &mut ScanControl::new(by, 32)), "kswapd is never held up");
    }

    /// 200 batches of 32 are 6,400 pages: those of them that are on lists again are taken, and counted, by others.
    #[test]
    fn reclaimers_between_two_steps_have_no_more_pages_in_hand_than_the_node_has() {
        let mut engine = machine();
        let mm = &mut engine.core.mm;
        let managed: u64 = mm.memory.zones.of_node(NODE).iter().map(|zone| zone.managed).sum();
        let mut reclaimers: Vec<ScanControl> = (0..200).map(|_| direct()).collect();
        for (at, sc) in (1..).zip(&mut reclaimers) {
            mm.note_isolated(NODE, LruType::File, 32, sc);
            assert_eq!(mm.node_stat(NODE, Stat::NrIsolatedFile) as u64, managed.min(32 * at));
        }
        mm.note_isolated(NODE, LruType::Anon, 32, &mut direct());
        assert_eq!(mm.node_stat(NODE, Stat::NrIsolatedAnon), 0, "of both kinds together");
        reclaimers.iter_mut().for_each(|sc| mm.release_isolated(sc));
        assert_eq!(mm.node_stat(NODE, Stat::NrIsolatedFile), 0, "all go on");
    }

    /// As of 2010: all of the 80, and no other end to the wait than that there are fewer.
    #[test]
    fn in_2010_too_many_isolated_are_more_than_the_inactive_list_and_waited_for_to_the_end() {
        let mut engine = machine();
        engine.core.set_policy(crate::Policy::of("classic@2010"));
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 80);
        engine.core.mm.count_node(NODE, Stat::NrIsolatedFile, 80);
        let mut sc = direct();
        assert!(!engine.core.too_many_isolated(NODE, LruType::File, &mut sc));
        engine.core.mm.count_node(NODE, Stat::NrIsolatedFile, 1);
        for _ in 0..3 {
            assert!(engine.core.too_many_isolated(NODE, LruType::File, &mut sc) && sc.waits.must_wait);
            let wait = engine.core.isolated_wait(NODE, &mut sc);
            assert_eq!(wait, Wait::WokenOr(Nanos(100_000_000), DelayReason::Reclaim));
            engine.core.leave_stall(&mut sc);
        }
        sc.nr_to_reclaim = 0;
        assert!(
            engine.core.too_many_isolated(NODE, LruType::File, &mut sc) && !sc.waits.must_wait,
            "it is to die"
        );
        let mut of_group = ScanControl::new(Reclaimer::new(MemcgId::ROOT, Why::Limit, 60), 32);
        assert!(!engine.core.too_many_isolated(NODE, LruType::File, &mut of_group));
    }

    #[test]
    fn whoever_finds_not_too_many_isolated_ends_the_waits_for_that() {
        let mut engine = machine();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        engine.core.mm.count_node(NODE, Stat::NrInactiveFile, 80);
        engine.core.mm.count_node(NODE, Stat::NrIsolatedFile, 11);
        engine.enter(task);
        let (mut sc, mut other) = (direct(), direct());
        assert!(engine.core.too_many_isolated(NODE, LruType::File, &mut sc));
        let wait = engine.core.isolated_wait(NODE, &mut sc);
        sleep(&mut engine, task, wait);
        assert!(engine.core.too_many_isolated(NODE, LruType::File, &mut other));
        assert_eq!(woken(&mut engine), []);
        engine.core.mm.count_node(NODE, Stat::NrIsolatedFile, -1);
        assert!(!engine.core.too_many_isolated(NODE, LruType::File, &mut other));
        assert_eq!(woken(&mut engine), [task]);
    }
}
