//! kmigrated: one thread a node of a lower tier, which promotes pages that have become hot there. [tiering 3.4, 3.6]
//!
//! ```text
//!   every 100 ms: is anything flagged? ─▶ block by block: its flag is cleared ─▶ its frames, in order:
//!     record taken ─▶ where to? ─▶ by the rules of tiers? ─▶ room there, off its list ─▶ batch of 512 ─▶ moved
//!                                      │ too old: forgotten        │ not now
//!                                      └ over the limit: ──────────┴──▶ put back as it was, and flagged again; or forgotten
//! ```
//! A hot page does not wake the thread: it notices flags at its next period. While no source is on it sleeps. A flag stays until its block's
//! turn comes, after any number of steps. Pages that become ready there meanwhile are taken with the rest, and not looked for again. If a step
//! may move fewer pages than a block has (`step_moves`), the next one goes on in the middle of it, and the flag covers the skipped pages.
//!
//! **A full node** (`pghot.target_full`). A page that does not fit stays hot. kswapd of that node, which is woken then, demotes some hundred
//! pages within a millisecond, and ends the nap. As posted the nap goes on. If hot pages are many, the node then has free memory most of the
//! time, but kmigrated does not come to use it.

use crate::config::Config;
use crate::core::Core;
use crate::kthread::{KernelThread, ThreadStep};
use crate::machine::step::{DelayReason, Wait};
use crate::memory::folio::FolioFlags;
use crate::migrate::BATCH_MAX;
use crate::numa_balancing::Asks;
use crate::pghot::record::Record;
use crate::pghot::sections::block_frames;
use crate::state::State;
use crate::story::{MigrateReason, MigrateRefusal, PageEvent};
use crate::units::{Nanos, NodeId, PAGEBLOCK_PAGES, Pfn, SECTION_FRAMES, TaskId};
use pageout_rules::pghot::{DefaultTarget, HotWalk, PghotQuirks, RefusedPage, TargetFull};

/// Pages of a block that is promoted as one, 64 KiB, and how many of them have to be hot.
const COALESCED_PAGES: u32 = 16;
const COALESCED_HOT: u32 = 12;

/// Blocks of a step, unless they fill a batch before: 4,096 records, microseconds. The kernel's walk runs in parallel with kswapd, and one page
/// that does not fit does not predict the next one. Here no time passes within a step. With 64 blocks one full node rejected the hot pages of all
/// of them, which would have fit a moment later. With one block everything takes as long as with eight, but a batch would be a block's.
const STEP_BLOCKS: u32 = 8;

/// The kmigrated thread of a node.
#[doc(alias = "kmigrated")]
pub(crate) struct KmigratedThread {
    node: NodeId,
    task: Option<TaskId>,
    first_wait: Wait,
    /// Blocks still to be walked, by the frames from which on, the last one first. Empty: it rests.
    blocks: Vec<Pfn>,
    /// A node that was found full while they were.
    full: Option<NodeId>,
}

/// Why a hot page does not go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stays {
    /// For good: it is where it should be, or was not used lately.
    Forgotten,
    /// The page may go later.
    Again,
}

impl KmigratedThread {
    pub(crate) fn new(node: NodeId) -> KmigratedThread {
        KmigratedThread { node, task: None, first_wait: Wait::Woken, blocks: Vec::new(), full: None }
    }
}

fn nap(config: &Config) -> Wait {
    match super::Source::any_is_heard(config) {
        true => Wait::WokenOr(Nanos(u64::from(config.kmigrated_sleep_ms) * 1_000_000), DelayReason::Nap),
        false => Wait::Woken,
    }
}

impl KernelThread for KmigratedThread {
    fn name(&self) -> String {
        format!("kmigrated{}", self.node.0)
    }

    fn first_wait(&self) -> Wait {
        self.first_wait
    }

    fn started(&mut self, core: &mut Core, task: TaskId) {
        // Sources may have been turned on before the machine has started.
        self.first_wait = nap(&core.mm.config);
        core.mm.pghot.threads.push(task);
        self.task = Some(task);
    }

    fn step(&mut self, core: &mut Core, _: bool) -> ThreadStep {
        if self.blocks.is_empty() {
            core.mm.pghot.waiting_for_room.retain(|&(_, task)| Some(task) != self.task);
            self.full = None;
            self.blocks = core.hot_blocks(self.node);
        }
        let mut batch = Batch::default();
        for _ in 0..STEP_BLOCKS {
            let Some(from) = self.blocks.pop() else { break };
            match core.promote_hot_block(self.node, from, &mut batch) {
                Walked::Whole => {}
                Walked::Filled => break,
                Walked::Until(rest) => {
                    self.blocks.push(rest);
                    break;
                }
            }
        }
        core.promote_hot(&mut batch);
        #[cfg(any(test, feature = "fault-injection"))]
        core.mm.check_record_changes();
        self.full = batch.full.or(self.full);
        if !self.blocks.is_empty() {
            return ThreadStep::Again;
        }
        if let (Some(full), Some(task)) = (self.full, self.task) {
            core.mm.pghot.waiting_for_room.push((full, task));
        }
        ThreadStep::Wait(nap(&core.mm.config))
    }
}

/// How far a block was walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Walked {
    /// All of it.
    Whole,
    /// All of it, and what was found was a batch's worth or more.
    Filled,
    /// No step moves more: the next one goes on at this frame.
    Until(Pfn),
}

/// Hot pages on their way, all to one node.
#[derive(Default)]
pub(crate) struct Batch {
    folios: Vec<Pfn>,
    /// Folios of batches before it in the same step.
    moved: u64,
    /// The record of each.
    records: Vec<Record>,
    pages: u64,
    to: NodeId,
    /// A node without free memory.
    full: Option<NodeId>,
}

impl Core {
    /// What kmigrated of a node looks at now: blocks by their first frames, the last one first.
    fn hot_blocks(&mut self, node: NodeId) -> Vec<Pfn> {
        let frames: Vec<_> =
            self.mm.memory.zones.of_node(node).iter().map(|zone| (zone.start, zone.present)).collect();
        let walk = self.mm.config.pghot_walk;
        let mut blocks = Vec::new();
        let (mut is_any_hot, mut passed) = (false, 0);
        for &(start, present) in &frames {
            let end = start + present as u32;
            for section in start / SECTION_FRAMES..end.div_ceil(SECTION_FRAMES) {
                let first = Pfn(section * SECTION_FRAMES);
                let hot = self.mm.pghot.records.hot_blocks(first);
                is_any_hot |= hot != 0;
                if hot == 0 && walk != HotWalk::All {
                    continue;
                }
                let of_section =
                    (0..u64::BITS).map(|block| (block, first.0 + block * PAGEBLOCK_PAGES as u32));
                match walk {
                    HotWalk::Blocks => blocks.extend(
                        of_section.filter(|(block, _)| hot >> block & 1 == 1).map(|(_, pfn)| Pfn(pfn)),
                    ),
                    // Where nothing was ever reported there is nothing to find: it only takes time.
                    HotWalk::All if !self.mm.pghot.records.has_section(first) => {
                        passed += u64::from(SECTION_FRAMES)
                    }
                    HotWalk::Sections | HotWalk::All => blocks.extend(of_section.map(|(_, pfn)| Pfn(pfn))),
                }
            }
        }
        if !is_any_hot {
            blocks.clear();
        } else {
            self.out.count.hotness_walked(passed);
        }
        blocks.sort_unstable();
        blocks.dedup();
        blocks.reverse();
        blocks
    }

    /// Takes what is ready in a block from a frame on, and adds to a batch what may go.
    fn promote_hot_block(&mut self, node: NodeId, from: Pfn, batch: &mut Batch) -> Walked {
        let now_ms = self.by.now.0 / 1_000_000;
        if block_frames(from).start == from.0 {
            self.begin_hot_block(from, now_ms);
        }
        let most = self.mm.config.kmigrated_batch_nr as usize + usize::from(self.mm.config.pghot_batch_over);
        let mut has_filled = false;
        for pfn in (from.0..block_frames(from).end).map(Pfn) {
            if batch.moved + batch.folios.len() as u64 >= self.mm.config.step_moves {
                self.mm.pghot.records.set_hot(pfn);
                return Walked::Until(pfn);
            }
            let Some(mut record) = self.mm.pghot.records.take(pfn) else { continue };
            match self.promote_target(node, pfn, &mut record, now_ms, batch) {
                Ok(to) => {
                    if to != batch.to || batch.folios.len() >= most || self.mm.is_of_another_memcg(batch, pfn)
                    {
                        has_filled |= batch.folios.len() >= most;
                        self.promote_hot(batch);
                    }
                    batch.to = to;
                    batch.pages += self.mm.memory.folios[pfn].pages();
                    batch.folios.push(pfn);
                    batch.records.push(record);
                }
                Err(Stays::Again) if self.mm.config.pghot_refused == RefusedPage::Requeue => {
                    self.mm.pghot.records.set(pfn, record);
                }
                Err(_) => {}
            }
        }
        if has_filled || batch.folios.len() >= most { Walked::Filled } else { Walked::Whole }
    }

    /// The turn of a block has come.
    fn begin_hot_block(&mut self, block: Pfn, now_ms: u64) {
        self.out.count.hotness_walked(PAGEBLOCK_PAGES);
        self.mm.pghot.records.clear_hot(block);
        if self.mm.config.pghot_age_sweep {
            self.mm.pghot.records.sweep(block, now_ms);
        }
        if self.mm.config.pghot_coalesce {
            self.mm.coalesce_hot(block, now_ms);
        }
    }

    /// Returns the node to which a hot page moves, which is off its list then. A page that asks the rate limit is a candidate from
    /// then on, however often it asks.
    fn promote_target(
        &mut self,
        node: NodeId,
        pfn: Pfn,
        record: &mut Record,
        now_ms: u64,
        batch: &mut Batch,
    ) -> Result<NodeId, Stays> {
        let folio = self.mm.memory.folios[pfn];
        if folio.node != node || !folio.has(FolioFlags::CHARGED) {
            return Err(Stays::Forgotten);
        }
        let to = record.nid.unwrap_or_else(|| self.mm.default_target(node, pfn));
        if to == node || !self.mm.tiers.is_promotion_target(to) {
            return Err(Stays::Forgotten);
        }
        let layout = self.mm.pghot.records.layout();
        let age = match self.mm.config.pghot_quirks {
            PghotQuirks::None => layout.age_ms(now_ms, record.time),
            // A truncated time, into which bits of the count show, is subtracted from a whole one. It may lie ahead. Until the clock has
            // run for as long as these bits can tell, 8 seconds from boot, the difference can be right.
            PghotQuirks::V3 => now_ms.wrapping_sub(record.time),
        };
        let window = self.mm.config.pghot_window_ms();
        if !self.is_recent_enough(pfn, to, age, window) {
            return Err(Stays::Forgotten);
        }
        if self.mm.config.pghot_target_full == TargetFull::Room
            && !self.has_room_beside(batch, to, folio.pages())
        {
            self.tell(pfn, |_| PageEvent::NotMigrated { to, why: MigrateRefusal::NoRoom });
            return Err(Stays::Again);
        }
        let asks = if record.was_candidate() { Asks::Again } else { Asks::First };
        *record = record.counted();
        if self.is_over_promotion_limit(pfn, to, asks) || self.migrate_prepare(pfn, None, to).is_err() {
            return Err(Stays::Again);
        }
        Ok(to)
    }

    /// Returns true if a node can take this number of pages besides those that are on their way there. kswapd is woken for it
    /// once a batch.
    fn has_room_beside(&mut self, batch: &mut Batch, to: NodeId, pages: u64) -> bool {
        if batch.full == Some(to) {
            return false;
        }
        let on_the_way = if batch.to == to { batch.pages } else { 0 };
        let has_room = self.mm.has_room_for(to, on_the_way + pages);
        if !has_room {
            self.wake_for_room(to);
            // A huge page may not fit although single pages do.
            batch.full = Some(to).filter(|_| pages == 1);
        }
        has_room
    }

    /// Moves a batch, and empties it. A page that could not move after all keeps its record, unless it is forgotten as
    /// posted.
    fn promote_hot(&mut self, batch: &mut Batch) {
        let keeps = self.mm.config.pghot_target_full == TargetFull::Room
            && self.mm.config.pghot_refused == RefusedPage::Requeue;
        batch.pages = 0;
        let folios = std::mem::take(&mut batch.folios);
        batch.moved += folios.len() as u64;
        for folios in folios.chunks(BATCH_MAX) {
            self.promote_prepared(folios, batch.to, MigrateReason::Kmigrated);
        }
        for (pfn, record) in folios.into_iter().zip(batch.records.drain(..)) {
            // If the page has moved, the old frame is free.
            if keeps && self.mm.memory.folios[pfn].has(FolioFlags::CHARGED) {
                self.mm.pghot.records.set(pfn, record);
            }
        }
    }

    /// kswapd of a node has done what it could: threads that wait for free memory there are woken, if there
    /// is any.
    pub(crate) fn wake_kmigrated_for_room(&mut self, node: NodeId) {
        if self.mm.pghot.waiting_for_room.is_empty() || !self.mm.has_room_for(node, 1) {
            return;
        }
        let waiting = std::mem::take(&mut self.mm.pghot.waiting_for_room);
        let (woken, waiting) = waiting.into_iter().partition(|&(full, _)| full == node);
        self.mm.pghot.waiting_for_room = waiting;
        let woken: Vec<(NodeId, TaskId)> = woken;
        for (_, task) in woken {
            self.wake(task);
        }
    }

    /// A source was turned on or off.
    pub(crate) fn pghot_sources_changed(&mut self) {
        for task in self.mm.pghot.threads.clone() {
            self.wake(task);
        }
    }
}

impl State {
    /// Returns true if a page is of another cgroup than those of a batch, where that matters.
    fn is_of_another_memcg(&self, batch: &Batch, pfn: Pfn) -> bool {
        let memcg = |pfn: Pfn| self.memory.folios[pfn].memcg;
        self.config.pghot_batch_by_memcg && batch.folios.last().is_some_and(|&last| memcg(last) != memcg(pfn))
    }

    /// Where a page goes if its user is not known.
    fn default_target(&self, node: NodeId, pfn: Pfn) -> NodeId {
        let nearest = || self.nearest_top_tier(node);
        match self.config.pghot_default_target {
            DefaultTarget::Knob => NodeId(self.config.pghot_target_nid),
            DefaultTarget::Nearest => nearest(),
            DefaultTarget::Block => self.pghot.records.reporter(pfn).unwrap_or_else(nearest),
        }
    }

    /// The top-tier node nearest to one.
    fn nearest_top_tier(&self, node: NodeId) -> NodeId {
        let top = self.memory.nodes().filter(|&other| self.tiers.is_promotion_target(other));
        let distances = &self.config.layout.distances;
        top.min_by_key(|&other| crate::page_alloc::zonelist::distance(distances, node, other))
            .expect("someone's CPUs are in the top tier")
    }

    /// If three quarters of an aligned block are ready, the rest is, too.
    fn coalesce_hot(&mut self, block: Pfn, now_ms: u64) {
        let frames = block_frames(block);
        for start in frames.step_by(COALESCED_PAGES as usize) {
            let pages = (start..start + COALESCED_PAGES).map(Pfn);
            let ready = pages.clone().filter(|&pfn| self.pghot.records.get(pfn).ready);
            let ready: Vec<Pfn> = ready.collect();
            if (COALESCED_HOT..COALESCED_PAGES).contains(&(ready.len() as u32)) {
                let nid = self.pghot.records.get(ready[0]).nid;
                let time = self.pghot.records.layout().time(now_ms);
                let freq = super::Hotness::of(&self.config).reports;
                for pfn in pages.filter(|pfn| !ready.contains(pfn)) {
                    let record = self.pghot.records.get(pfn);
                    self.pghot.records.set(pfn, Record { nid: record.nid.or(nid), freq, time, ready: true });
                }
            }
        }
    }
}
