//! kswapd: one thread per node that reclaims in advance, so that tasks that allocate need not.
//!
//! ```text
//!             woken: no zone passes the low mark           some zone of the class is above its high mark
//!   asleep ──────────────────────────────────▶ balance ──────────────────────────────────▶ nap ──▶ asleep
//!     ▲                                        ▲     │ 12, 11, .. 1: not there yet           │ 100 ms
//!     │                                        │     ▼                                       │
//!     │                                        └── failed 16 times: hopeless                 │
//!     └─ nobody came, still balanced ─────────────── woken, or no longer balanced: again ◀────┘
//! ```
//! A run makes passes over its node, each twice as hard as the one before, until one zone is above its high watermark. Then it naps for a
//! tenth of a second before it sleeps. A node that has just run low mostly does so again soon. A wake out of a nap is cheaper than the
//! stall of a task that was not served in time.
//!
//! A boost is memory requested beyond the high watermark, because kinds of memory were about to mix. If much is free already, a run frees
//! that much more, gently: it neither writes nor swaps. If memory is short, it is an ordinary run to higher watermarks. Either way the
//! boost ends with the run. [machine 3.1 to 3.3; reclaim 2.12; reclaim-6.12 2.12]

use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::watermark::Watermark;
use crate::reclaim::{NodePass, NodeStep, PRIORITY_DEFAULT, Reclaimer, ScanControl, Throttled, Why};
use crate::stat::{PGSCAN, Stat};
use crate::state::State;
use crate::story::{GfpFlags, Tracepoint};
use crate::units::ZoneType;
use crate::units::{MemcgId, Nanos, NodeId, PAGEBLOCK_ORDER, TaskId};
use pageout_rules::lru::Lru;
use pageout_rules::reclaim::AwakeNodes;
use pageout_rules::reclaim::{KswapdReset, ProtectionRule};

/// Runs in a row without a page freed after which a node is hopeless, until someone frees one.
const FAILURES_MAX: u32 = 16;
/// How often reclaim scans the lists of a node without freeing a page before they count as hopeless. 2010.
const UNRECLAIMABLE_SCANS: u64 = 6;
/// The least priority of a run for a boost: beyond it, it would do more harm than the mixing that it is to prevent.
const PRIORITY_OF_BOOST: u8 = PRIORITY_DEFAULT - 2;

/// The request that waits for a node's kswapd, and the tasks that wait for it. Without a task the machine has not started kswapd.
#[derive(Default)]
pub(crate) struct Kswapd {
    pub(crate) task: Option<TaskId>,
    /// The largest block wanted since it last looked, and the highest zone that would have done.
    order: u8,
    class: Option<ZoneType>,
    /// Runs in a row that freed nothing.
    pub(crate) failures: u32,
    /// Tasks that wait for it, or for other reclaimers of the node.
    pub(crate) throttled: Throttled,
    /// The pages scanned on the node since a page was freed there.
    in_vain: LookedAtInVain,
    /// The work that this kswapd has done so far.
    activity: KswapdActivity,
    /// When it was woken from sleep, while it is awake. A nap does not count as sleep.
    awake_since: Option<Nanos>,
    /// True while it is in a run.
    is_balancing: bool,
}

/// Pages scanned on a node since one was last freed there, the criterion of kernels of 2010. Each check updates it.
#[derive(Clone, Copy, Default)]
struct LookedAtInVain {
    /// The pages freed and the pages scanned on the node at that time.
    freed: i64,
    scanned: i64,
}

/// Requests to a node's kswapd, its wakeups, and its waking time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KswapdActivity {
    /// Allocations that found too little free and asked it for more, whether it slept or not.
    pub requests: u64,
    /// Times that it was woken from sleep.
    pub wakeups: u64,
    /// Time that it was awake, at work or in a nap.
    pub awake: Nanos,
}

impl Kswapd {
    /// Nothing that it does frees a page: tasks have to help themselves.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    /// Returns whether it has been woken and has not gone to sleep since. A nap does not count as sleep.
    pub(crate) fn is_awake(&self) -> bool {
        self.awake_since.is_some()
    }

    /// Returns true if it is in a run.
    pub(crate) fn is_balancing(&self) -> bool {
        self.is_balancing
    }

    /// Returns the work that this kswapd has done up to now.
    pub(crate) fn activity(&self, now: Nanos) -> KswapdActivity {
        let since = self.awake_since.map_or(0, |since| now.0.saturating_sub(since.0));
        KswapdActivity { awake: Nanos(self.activity.awake.0 + since), ..self.activity }
    }

    fn ask(&mut self, order: u8, class: ZoneType) {
        self.order = self.order.max(order);
        self.class = self.class.max(Some(class));
    }
}

/// The kswapd thread of a node.
#[doc(alias = "kswapd")]
pub(crate) struct KswapdThread {
    node: NodeId,
    /// The block that the present or the last run is for.
    order: u8,
    class: ZoneType,
    /// The order that the last run has made room for.
    reached: u8,
    doing: Doing,
}

enum Doing {
    Asleep,
    Napping,
    Balancing(Box<Balance>),
}

/// A run in progress.
struct Balance {
    sc: ScanControl,
    pass: Option<NodePass>,
    /// The boosts that this run answers, by zone.
    boosts: Vec<(ZoneType, u64)>,
    /// Pages that a run for a boost still has to free.
    boost_left: u64,
    reclaimed: u64,
    /// Some pass took only file pages, of which there seemed to be enough.
    has_trimmed: bool,
}

/// The outcome of one step of a balance run.
enum Balanced {
    Again,
    /// Pages have to be written first.
    Wait(Wait),
    /// The run has made room for this order.
    Over(u8),
}

/// What became of a run's last pass.
enum Passed {
    Again,
    Over,
}

impl KswapdThread {
    pub(crate) fn new(node: NodeId) -> KswapdThread {
        KswapdThread { node, order: 0, class: ZoneType::Dma, reached: 0, doing: Doing::Asleep }
    }

    /// Naps if the node is balanced, and otherwise begins the next run immediately.
    fn look_around(&mut self, core: &mut Core) -> Option<Wait> {
        if core.may_kswapd_sleep(self.node, self.reached, self.class) {
            // It has freed what a block needs. That the pages lie apart is compaction's business.
            core.wake_kcompactd(self.node, self.order, self.class);
            self.doing = Doing::Napping;
            core.kswapds[self.node.index()].is_balancing = false;
            return Some(Wait::WokenOr(core.mm.kswapd_nap(), DelayReason::Nap));
        }
        core.mm.count_node(self.node, Stat::KswapdHighWmarkHitQuickly, 1);
        self.begin_run(core);
        None
    }

    /// Goes on after a nap: to work if kswapd was woken or the node is short, else to sleep.
    #[doc(alias = "kswapd_try_to_sleep")]
    fn wake_from_nap(&mut self, core: &mut Core, woken: bool) -> Option<Wait> {
        if woken {
            // The request from before the nap may not be served yet.
            core.kswapds[self.node.index()].ask(self.reached, self.class);
            core.mm.count_node(self.node, Stat::KswapdLowWmarkHitQuickly, 1);
        } else if core.may_kswapd_sleep(self.node, self.reached, self.class) {
            self.doing = Doing::Asleep;
            let now = core.by.now;
            let kswapd = &mut core.kswapds[self.node.index()];
            kswapd.activity.awake = kswapd.activity(now).awake;
            kswapd.awake_since = None;
            core.mm.memory.zones.pass_by(self.node, false);
            core.trace(self.node, |_| Tracepoint::KswapdSleep);
            return Some(Wait::Woken);
        } else {
            core.mm.count_node(self.node, Stat::KswapdHighWmarkHitQuickly, 1);
        }
        self.begin_run(core);
        None
    }

    fn begin_run(&mut self, core: &mut Core) {
        let asked = &mut core.kswapds[self.node.index()];
        asked.is_balancing = true;
        self.order = std::mem::take(&mut asked.order);
        self.class = asked.class.take().unwrap_or(self.class);
        let order = self.order;
        core.trace(self.node, |_| Tracepoint::KswapdWake { order });
        core.kcompactd_look_around(self.node);
        self.doing = Doing::Balancing(Box::new(core.mm.balance_begin(self.node, self.order, self.class)));
    }

    /// The run is over. One that has given up on a large block looks again at what it can rest on; any other looks at what it was
    /// asked for meanwhile.
    fn end_run(&mut self, core: &mut Core, reached: u8) {
        self.reached = reached;
        if reached >= self.order {
            let asked = &core.kswapds[self.node.index()];
            (self.order, self.class) = (asked.order, asked.class.unwrap_or(self.class));
            self.reached = self.order;
        }
    }
}

impl KernelThread for KswapdThread {
    fn name(&self) -> String {
        format!("kswapd{}", self.node.0)
    }

    fn node(&self) -> Option<NodeId> {
        Some(self.node)
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        core.kswapds[self.node.index()].task = Some(task);
    }

    fn step(&mut self, core: &mut Core, woken: bool) -> ThreadStep {
        loop {
            let wait = match &mut self.doing {
                Doing::Asleep => {
                    let kswapd = &mut core.kswapds[self.node.index()];
                    kswapd.activity.wakeups += 1;
                    kswapd.awake_since = Some(core.by.now);
                    // The machine's rule is that of the root group's policy.
                    let rule = core.mm.config.policy.machine.awake_nodes;
                    core.mm.memory.zones.pass_by(self.node, rule == AwakeNodes::PassedBy);
                    self.begin_run(core);
                    None
                }
                Doing::Napping => self.wake_from_nap(core, woken),
                Doing::Balancing(run) => match core.balance_step(run, self.class) {
                    Balanced::Again => return ThreadStep::Again,
                    Balanced::Wait(wait) => Some(wait),
                    Balanced::Over(reached) => {
                        self.end_run(core, reached);
                        core.wake_kmigrated_for_room(self.node);
                        self.look_around(core)
                    }
                },
            };
            if let Some(wait) = wait {
                return ThreadStep::Wait(wait);
            }
        }
    }

    fn in_reclaim(&self) -> bool {
        matches!(self.doing, Doing::Balancing(_))
    }
}

impl Core {
    /// No zone that a request may use passes the low watermark: asks the kswapds of all their nodes for more.
    pub(crate) fn wake_kswapds(&mut self, request: &Request) {
        let (mut zone, mut last) = (0, None);
        loop {
            let zones = &self.mm.memory.zones;
            let next = zones.zonelist(request.node, request.class, request.allowed).nth(zone);
            let Some(node) = next.map(|zone| zone.node) else { return };
            zone += 1;
            if last.replace(node) == Some(node) {
                continue;
            }
            let has_work = self.wake_kswapd(node, request.order, request.class, GfpFlags::of(request));
            if !has_work && !request.gfp.contains(Gfp::DIRECT_RECLAIM) {
                // Nor will the request compact for itself.
                self.wake_kcompactd(node, request.order, request.class);
            }
        }
    }

    /// Asks a node's kswapd for a block, and wakes it if it rests. False where there is nothing that it could do.
    #[doc(alias = "wakeup_kswapd")]
    pub(crate) fn wake_kswapd(&mut self, node: NodeId, order: u8, class: ZoneType, gfp: GfpFlags) -> bool {
        let kswapd = &mut self.kswapds[node.index()];
        let Some(task) = kswapd.task else { return false };
        kswapd.activity.requests += 1;
        kswapd.ask(order, class);
        if kswapd.is_hopeless() {
            return false;
        }
        let zones = self.mm.memory.zones.of_node(node);
        let is_boosted = zones.iter().any(|zone| zone.kind <= class && zone.boost > 0);
        // It waits for pages to be written: what it is asked for is written down.
        let is_stalled =
            self.writes_of[node.index()].holds(task) || self.io.congestion_waiters.contains(&task);
        let has_work = is_boosted || !self.mm.memory.zones.is_balanced(node, order, class);
        if !is_stalled && has_work && self.wake(task) {
            self.trace(node, |_| Tracepoint::WakeupKswapd { order, zone: class, gfp });
        }
        has_work
    }

    /// Returns whether nothing can be reclaimed on a node: too many pages were scanned without freeing one. [reclaim 5.5; machine 9.3]
    pub(crate) fn is_unreclaimable(&mut self, node: NodeId) -> bool {
        let freed = self.mm.node_stat(node, Stat::Pgfree);
        let scanned = self.mm.looked_at_on(node);
        let reclaimable = self.mm.node_reclaimable(node);
        let in_vain = &mut self.kswapds[node.index()].in_vain;
        if in_vain.freed != freed {
            *in_vain = LookedAtInVain { freed, scanned };
        }
        (scanned - in_vain.scanned) as u64 >= UNRECLAIMABLE_SCANS * reclaimable
    }

    /// Returns whether kswapd may rest. It serves no waiting task from now on, so this wakes the waiting tasks.
    fn may_kswapd_sleep(&mut self, node: NodeId, order: u8, class: ZoneType) -> bool {
        self.open_gate(node);
        let may_sleep =
            self.kswapds[node.index()].is_hopeless() || self.mm.memory.zones.is_balanced(node, order, class);
        if may_sleep {
            self.forget_writes(node, self.mm.lruvecs.id(MemcgId::ROOT, node));
        }
        may_sleep
    }

    /// Takes a run up to the end of a round that did something.
    #[doc(alias = "balance_pgdat")]
    fn balance_step(&mut self, run: &mut Balance, class: ZoneType) -> Balanced {
        let node = run.sc.by.node.expect("kswapd has a node");
        self.mm.release_isolated(&mut run.sc);
        self.leave_throttle(&mut run.sc);
        self.leave_stall(&mut run.sc);
        loop {
            let Some(pass) = &mut run.pass else {
                if !self.balance_pass_begin(run, node, class) {
                    return Balanced::Over(self.balance_end(run, node));
                }
                continue;
            };
            match self.node_step(pass, &mut run.sc) {
                NodeStep::Again => return Balanced::Again,
                NodeStep::Wait(wait) => return Balanced::Wait(wait),
                NodeStep::Over => {
                    run.pass = None;
                    if let Passed::Over = self.balance_pass_end(run, node) {
                        return Balanced::Over(self.balance_end(run, node));
                    }
                    if let Some(wait) = self.balance_stall(run, node) {
                        return Balanced::Wait(wait);
                    }
                }
            }
        }
    }

    /// Begins a pass unless enough is free.
    fn balance_pass_begin(&mut self, run: &mut Balance, node: NodeId, class: ZoneType) -> bool {
        let order = run.sc.by.order;
        if order > 0 && self.mm.makes_blocks_by_reclaim() && self.mm.has_plenty(node, order, class) {
            run.sc.by.order = 0;
        }
        let is_balanced = self.mm.memory.zones.is_balanced(node, run.sc.by.order, class);
        if is_balanced && run.boost_left == 0 {
            return false;
        }
        if !is_balanced && run.boost_left > 0 {
            // Memory is short: an ordinary run, to watermarks that include the boost.
            run.boost_left = 0;
            run.sc.priority = PRIORITY_DEFAULT;
        }
        let is_ordinary = run.boost_left == 0;
        (run.sc.means.may_swap, run.sc.means.may_write) = (is_ordinary, is_ordinary);
        if self.mm.memcgs[MemcgId::ROOT].policy.lru != Lru::Generations {
            self.age_active_anon(node, &mut run.sc);
        }
        let zones = self.mm.memory.zones.of_node(node).iter().filter(|zone| zone.kind <= class);
        let batch = self.mm.config.reclaim_batch;
        run.sc.nr_to_reclaim = zones.map(|zone| zone.mark(Watermark::High).max(batch)).sum();
        (run.sc.nr_scanned, run.sc.scanned_before, run.sc.nr_reclaimed) = (0, 0, 0);
        if self.mm.config.policy.machine.protection == ProtectionRule::KswapdOnly {
            for memcg in self.mm.memcgs.subtree(MemcgId::ROOT) {
                self.mm.memcgs.visit_protection(memcg);
            }
        }
        // Before the pass chooses a priority of its own: at the gentlest, a group with less than 16 MiB to take counts as too small.
        self.keep_working_set(node, run.sc.priority);
        run.pass = Some(self.node_pass(node, &mut run.sc));
        run.has_trimmed |= run.sc.plan.cache_trim_mode;
        true
    }

    /// 2010: kswapd waits for a device between two passes in earnest, unless a zone is so short that others might not get on.
    fn balance_stall(&mut self, run: &mut Balance, node: NodeId) -> Option<Wait> {
        let zones = self.mm.memory.zones.of_node(node);
        let is_under_min = zones.iter().any(|zone| zone.free_pages() < zone.mark(Watermark::Min));
        if is_under_min { None } else { self.stall_of_2010(&mut run.sc) }
    }

    /// Decides how hard the next pass is to be, if there is to be one.
    fn balance_pass_end(&mut self, run: &mut Balance, node: NodeId) -> Passed {
        self.mm.stop_sparing_disk(&mut run.sc);
        let waits = self.note_progress(node, &mut run.sc);
        debug_assert_eq!(waits, None, "kswapd waits for nobody's progress");
        let gap = self.mm.compact_gap(run.sc.by.order);
        let makes_blocks = run.sc.by.order > 0 && self.mm.makes_blocks_by_reclaim();
        let sc = &mut run.sc;
        run.reclaimed += sc.nr_reclaimed;
        if makes_blocks && sc.nr_reclaimed >= self.mm.config.reclaim_batch {
            // Passes reclaim a batch or more, so kswapd restarts at the default priority.
            run.sc.priority = PRIORITY_DEFAULT;
            return Passed::Again;
        }
        if sc.by.order > 0 && !makes_blocks && sc.nr_reclaimed >= gap {
            // Enough pages for any block are free; that they lie apart is compaction's business.
            sc.by.order = 0;
        }
        let has_scanned_enough = sc.nr_scanned.max(sc.nr_reclaimed) >= sc.nr_to_reclaim;
        let may_press_harder = run.boost_left == 0 || sc.priority > PRIORITY_OF_BOOST;
        if run.boost_left > 0 {
            run.boost_left = run.boost_left.saturating_sub(sc.nr_reclaimed);
            if sc.nr_reclaimed == 0 {
                return self.balance_has_failed(run, node);
            }
        }
        if !has_scanned_enough && may_press_harder || run.sc.nr_reclaimed == 0 {
            run.sc.priority -= 1;
        }
        if self.is_gate_open(node) {
            self.open_gate(node);
        }
        if run.sc.priority >= 1 {
            return Passed::Again;
        }
        if makes_blocks {
            // No more for the block; single pages are enough.
            run.sc.by.order = 0;
            run.sc.priority = PRIORITY_DEFAULT;
            return Passed::Again;
        }
        let may_retry = self.mm.config.policy.machine.trim_retry;
        if may_retry && run.reclaimed == 0 && run.has_trimmed && !run.sc.effort.no_cache_trim_mode {
            // There was nothing to trim after all.
            run.sc.effort.no_cache_trim_mode = true;
            run.sc.priority = PRIORITY_DEFAULT;
            return Passed::Again;
        }
        self.balance_has_failed(run, node)
    }

    /// All was tried, or no more may be.
    fn balance_has_failed(&mut self, run: &Balance, node: NodeId) -> Passed {
        let is_boosted = run.boosts.iter().any(|&(_, boost)| boost > 0);
        let rule = self.mm.config.policy.machine.kswapd_reset;
        if run.reclaimed == 0 && !(is_boosted && rule == KswapdReset::Balanced) {
            self.kswapds[node.index()].failures += 1;
        }
        Passed::Over
    }

    fn balance_end(&mut self, run: &mut Balance, node: NodeId) -> u8 {
        self.mm.release_isolated(&mut run.sc);
        for &(zone, boost) in &run.boosts {
            self.mm.memory.zones.lower_boost(node, zone, boost);
        }
        if run.boosts.iter().any(|&(_, boost)| boost > 0) {
            // Kinds of memory were about to mix because there was no free pageblock.
            self.wake_kcompactd(node, PAGEBLOCK_ORDER, run.sc.by.class);
        }
        self.mm.memory.zones.set_reclaim_active(node, run.sc.by.class, false);
        self.workingset_end_cycle(self.mm.lruvecs.id(MemcgId::ROOT, node));
        run.sc.by.order
    }
}

impl State {
    /// Pages of a node that reclaim has looked at so far.
    pub(crate) fn looked_at_on(&self, node: NodeId) -> i64 {
        PGSCAN.iter().map(|&stat| self.node_stat(node, stat)).sum()
    }

    fn kswapd_nap(&self) -> Nanos {
        Nanos::from_ticks(u64::from(self.config.hz / 10).max(1), self.config.hz)
    }

    fn balance_begin(&mut self, node: NodeId, order: u8, class: ZoneType) -> Balance {
        self.count_node(node, Stat::Pageoutrun, 1);
        self.memory.zones.set_reclaim_active(node, class, true);
        let zones = self.memory.zones.of_node(node).iter().filter(|zone| zone.kind <= class);
        let boosts: Vec<(ZoneType, u64)> = zones.map(|zone| (zone.kind, zone.boost)).collect();
        let by = Reclaimer {
            node: Some(node),
            order,
            class,
            ..Reclaimer::new(MemcgId::ROOT, Why::Kswapd, self.config.swappiness)
        };
        let mut sc = ScanControl::new(by, 0);
        sc.effort.all_groups = true;
        self.spare_disk(&mut sc);
        let boost_left = boosts.iter().map(|(_, boost)| boost).sum();
        Balance { sc, pass: None, boosts, boost_left, reclaimed: 0, has_trimmed: false }
    }
}
