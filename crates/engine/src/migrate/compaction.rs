//! Compaction: movable pages go from one end of a zone to the other, so that free pages come to lie side by side. [machine 2.11]
//!
//! ```text
//!   zone   ├──▓▓░▓──┼──░▓▓░──┼──────── ... ────────┼──░░▓░──┼──▓░░░──┤
//!          migrate scanner ──▶                          ◀── free scanner
//!          takes movable pages, 32 at a time            takes free pages, a pageblock at a time
//! ```
//! When the two meet, the zone is done. Only pageblocks of movable memory receive pages. An asynchronous run takes pages from such blocks only, too;
//! others try all.
//!
//! Compaction is run by a request that finds no block (`direct.rs`), by a thread for requests to come
//! (`kcompactd.rs`), or by a user.
//!
//! A run that did not help puts off the next ones, twice as many each time; the last try of a request is not put off. Left out: where the
//! scanners were last time, and which pageblocks they may skip; waiting for a page that is being written. Folios of more than a page
//! stay where they are.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::page_alloc::compact::Wanted;
use crate::page_alloc::request::{COSTLY_ORDER, MigrateType};
use crate::page_alloc::zone::Zone;
use crate::stat::Stat;
use crate::state::State;
use crate::story::MigrateReason;
use crate::units::ZoneType;
use crate::units::{NodeId, PAGEBLOCK_PAGES, Pfn};

/// Pages migrated at a time.
const BATCH: usize = 32;
/// How hard a run tries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum CompactMode {
    /// Takes movable pageblocks only, and gives up on a pageblock where a page can't be moved.
    Async,
    /// All pageblocks, unless runs like it have failed lately.
    SyncLight,
    /// All pageblocks, whatever runs before have come to.
    Sync,
}

impl CompactMode {
    /// The next one, if a request of this order may try harder.
    pub(crate) fn harder(self, order: u8) -> Option<CompactMode> {
        match self {
            CompactMode::Async => Some(CompactMode::SyncLight),
            CompactMode::SyncLight if order <= COSTLY_ORDER => Some(CompactMode::Sync),
            CompactMode::SyncLight | CompactMode::Sync => None,
        }
    }
}

/// How a run ended. The greatest of several results is the result of all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Compacted {
    /// There is too little free memory to move anything, or enough of the right size.
    Skipped,
    /// Earlier runs did not help, so this one was not made.
    Deferred,
    /// The scanners have met.
    Complete,
    /// A free block of the requested order exists.
    Success,
}

/// The outcome of one step of a compaction run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompactStep {
    Again,
    Done(Compacted),
}

/// The goal of a compaction run, at which it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// A free block of the wanted order.
    Block(Wanted),
    /// A fragmentation score of the node no higher than this.
    Score(u64),
    /// All possible blocks, for a user's request.
    All,
}

/// A run over one zone.
pub(crate) struct Compaction {
    pub(crate) node: NodeId,
    pub(crate) zone: ZoneType,
    mode: CompactMode,
    goal: Goal,
    /// kcompactd makes it, which counts for itself as well.
    is_daemon: bool,
    /// Next frame of the migrate scanner, and the end of what the free scanner has not seen.
    migrate_at: u32,
    free_end: u32,
    has_begun: bool,
    /// Free frames to move pages to.
    free: Vec<Pfn>,
}

impl Compaction {
    pub(crate) fn new(node: NodeId, zone: ZoneType, mode: CompactMode, goal: Goal) -> Compaction {
        Compaction {
            node,
            zone,
            mode,
            goal,
            is_daemon: false,
            migrate_at: 0,
            free_end: 0,
            has_begun: false,
            free: Vec::new(),
        }
    }

    /// A compaction of kcompactd's.
    pub(crate) fn by_daemon(self) -> Compaction {
        Compaction { is_daemon: true, ..self }
    }
}

/// A user's request to compact all zones (`/proc/sys/vm/compact_memory`).
pub(crate) struct CompactMemory {
    left: Vec<Compaction>,
}

impl CompactMemory {
    pub(crate) fn new(zones: impl Iterator<Item = (NodeId, ZoneType)>) -> CompactMemory {
        let mut left: Vec<Compaction> =
            zones.map(|(node, zone)| Compaction::new(node, zone, CompactMode::Sync, Goal::All)).collect();
        left.reverse();
        CompactMemory { left }
    }
}

impl Core {
    /// Takes a user's request one batch further; false when all zones are done.
    pub(crate) fn compact_memory_step(&mut self, request: &mut CompactMemory) -> bool {
        let Some(mut run) = request.left.pop() else { return false };
        if self.compact_step(&mut run) == CompactStep::Again {
            request.left.push(run);
        }
        !request.left.is_empty()
    }

    /// Takes a run one batch further.
    #[doc(alias = "compact_zone")]
    pub(crate) fn compact_step(&mut self, run: &mut Compaction) -> CompactStep {
        if !run.has_begun {
            if let Some(ended) = self.compact_begin(run) {
                return CompactStep::Done(ended);
            }
            run.has_begun = true;
        }
        let block_end = (run.migrate_at + 1).next_multiple_of(PAGEBLOCK_PAGES as u32);
        self.compact_batch(run, block_end);
        if run.migrate_at < block_end && run.migrate_at < run.free_end {
            return CompactStep::Again;
        }
        // Frames just freed are with this CPU, where they join no block.
        let (cpu, memory) = (self.by.cpu, &mut self.mm.memory);
        memory.zones.zone_mut(run.node, run.zone).drain(&mut memory.folios, Some(cpu));
        let has_met = run.migrate_at >= run.free_end;
        let is_reached = self.mm.is_goal_reached(run);
        if !has_met && !is_reached {
            return CompactStep::Again;
        }
        self.mm.compact_end(run);
        CompactStep::Done(if is_reached { Compacted::Success } else { Compacted::Complete })
    }

    /// Begins a run, or returns why it is not to be made.
    fn compact_begin(&mut self, run: &mut Compaction) -> Option<Compacted> {
        let zone = self.mm.memory.zones.zone_mut(run.node, run.zone);
        if let Goal::Block(wanted) = &run.goal {
            if run.mode < CompactMode::Sync && zone.compact_deferral.puts_off(wanted.order) {
                return Some(Compacted::Deferred);
            }
            if zone.gives(wanted) || !zone.is_suitable(wanted) {
                return Some(Compacted::Skipped);
            }
        }
        // Memory that was never used is one block already.
        let used = zone.used_so_far();
        (run.migrate_at, run.free_end) = (used.start, used.end);
        // A page in a CPU's batch can't be taken.
        self.lru_add_drain();
        (run.migrate_at >= run.free_end).then_some(Compacted::Complete)
    }

    /// Moves up to a batch of pages out of the present pageblock.
    fn compact_batch(&mut self, run: &mut Compaction, block_end: u32) {
        let end = block_end.min(run.free_end);
        let kind = self.mm.compact_zone(run).type_of(Pfn(run.migrate_at));
        if run.mode == CompactMode::Async && kind != MigrateType::Movable {
            run.migrate_at = block_end;
            return;
        }
        let (first, mut taken) = (run.migrate_at, Vec::new());
        while run.migrate_at < end && taken.len() < BATCH {
            let pfn = Pfn(run.migrate_at);
            if let Some(order) = self.mm.memory.folios.free_order(pfn) {
                run.migrate_at += 1 << order;
                continue;
            }
            let folio = &self.mm.memory.folios[pfn];
            let pages = if folio.has(FolioFlags::LRU) { folio.pages() as u32 } else { 1 };
            run.migrate_at += pages;
            if pages == 1 && self.migrate_isolate(pfn) {
                self.mm.assert_isolated(pfn);
                taken.push(pfn);
            }
        }
        debug_assert!(run.migrate_at > first, "a batch of compaction looks at nothing");
        debug_assert!(taken.len() <= BATCH, "{} pages are taken for a batch of {BATCH}", taken.len());
        let scanned = i64::from(run.migrate_at - first);
        self.count_compaction(run, Stat::CompactMigrateScanned, Stat::CompactDaemonMigrateScanned, scanned);
        self.mm.count_node(run.node, Stat::CompactIsolated, taken.len() as i64);
        let mut has_failed = false;
        for pfn in taken {
            if run.free.is_empty() {
                self.compact_find_free(run);
            }
            // A page that was allocated meanwhile at the other end can't be a destination.
            let places = run.free.len();
            match run.free.pop() {
                Some(to) => {
                    assert!(to.0 >= run.free_end, "{to:?} is free, and the free scanner has not come by it");
                    assert_eq!(
                        self.mm.memory.folios[to].refs, 1,
                        "{to:?} is a place to move to, and is not isolated"
                    );
                    let is_moved = self.migrate_folio(pfn, to, MigrateReason::Compaction);
                    if !is_moved {
                        run.free.push(to);
                        has_failed = true;
                    }
                    assert_eq!(
                        run.free.len() + usize::from(is_moved),
                        places,
                        "{to:?} is neither taken nor still a place to move to"
                    );
                }
                None => self.migrate_put_back(pfn),
            }
        }
        if has_failed && run.mode == CompactMode::Async {
            // The pageblock does not become free as a whole, so the rest of it need not move.
            run.migrate_at = block_end;
        }
    }

    /// Takes free pages from the last pageblock that has some.
    fn compact_find_free(&mut self, run: &mut Compaction) {
        let memory = &mut self.mm.memory;
        let zone = memory.zones.zone_mut(run.node, run.zone);
        let mut scanned = 0;
        while run.free.is_empty() && run.free_end > run.migrate_at {
            let block = (run.free_end - 1) & !(PAGEBLOCK_PAGES as u32 - 1);
            if block < run.migrate_at {
                run.free_end = run.migrate_at;
                break;
            }
            scanned += i64::from(run.free_end - block);
            if zone.type_of(Pfn(block)) == MigrateType::Movable {
                zone.isolate_free(&mut memory.folios, block..run.free_end, &mut run.free);
            }
            run.free_end = block;
        }
        assert!(run.free_end >= run.migrate_at, "the scanners of compaction have passed each other");
        let found = run.free.len() as i64;
        self.count_compaction(run, Stat::CompactFreeScanned, Stat::CompactDaemonFreeScanned, scanned);
        self.mm.count_node(run.node, Stat::CompactIsolated, found);
    }

    fn count_compaction(&mut self, run: &Compaction, all: Stat, of_daemon: Stat, frames: i64) {
        self.out.count.compact_scanned(frames as u64);
        self.mm.count_node(run.node, all, frames);
        if run.is_daemon {
            self.mm.count_node(run.node, of_daemon, frames);
        }
    }
}

impl State {
    fn compact_zone(&self, run: &Compaction) -> &Zone {
        self.memory.zones.zone(run.node, run.zone)
    }

    fn is_goal_reached(&self, run: &Compaction) -> bool {
        match run.goal {
            Goal::Block(wanted) => self.compact_zone(run).gives(&wanted),
            Goal::Score(score) => self.memory.zones.fragmentation_score(run.node) <= score,
            Goal::All => false,
        }
    }

    /// Gives back what was not needed, and takes note of how it went.
    fn compact_end(&mut self, run: &mut Compaction) {
        let memory = &mut self.memory;
        let zone = memory.zones.zone_mut(run.node, run.zone);
        zone.release_free(&mut memory.folios, &mut run.free);
        assert!(run.free.is_empty(), "a run of compaction ends with free pages in hand");
        let Goal::Block(wanted) = &run.goal else { return };
        if zone.gives(wanted) {
            zone.compact_deferral.succeeded(wanted.order);
        } else if run.mode > CompactMode::Async {
            zone.compact_deferral.failed(wanted.order);
        }
    }
}
