//! The balloon: frames that the host takes back while the machine runs, to give their memory to others.
//!
//! ```text
//!   frame numbers   0 ─────────────── zones of a node, the highest first, each from its end down ───────────────▶
//!                   │   in use   │ free │ in use │  free   │ balloon ............................. │
//!                                               ◀── block after block of 4 MiB:
//!     what is free there is taken ─▶ what is in use moves to a frame elsewhere, for which reclaim makes room ─▶ what is free now is taken
//! ```
//! The machine shrinks from its end, as if it had booted with less memory: zones manage fewer frames, and their watermarks and reserves are those of
//! such a machine. So the frames of the balloon lie side by side, and a host can give them back in a few calls. If the
//! allocator gives out a frame of a block that was searched, the balloon keeps it, and another one is allocated.
//!
//! A page that can't move now is passed by: it is held by the host, in transfer, or the kernel's. A frame of a lower block is taken instead. A huge
//! page stays where it is.
//!
//! *Where it differs:* drivers of balloons take any free page, and those of memory devices take complete blocks or nothing. The first leave no frames side by
//! side, and the second fail for a single page that a host holds.

use std::ops::Range;

use crate::core::Core;
use crate::machine::step::Wait;
use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, Request};
use crate::page_alloc::slow_path::{Allocated, Allocation};
use crate::story::MigrateReason;
use crate::units::{CpuId, MAX_BLOCK_PAGES, MemcgId, NodeId, Nodemask, Pfn};

/// Frames that one step takes, moves or gives back: as many as a batch of reclaim scans.
const STEP_FRAMES: u32 = 32;

/// A change of the balloon's size in progress.
pub(crate) struct BalloonResize {
    node: NodeId,
    wanted: usize,
    /// First frames of the blocks that the balloon is to have, the next one last. Free frames there go to the balloon first, so that no page moves there.
    free: Vec<u32>,
    /// Blocks that were not searched, the next one last, and the end of the zone of each.
    blocks: Vec<(Range<u32>, u32)>,
    current: Option<Search>,
    allocation: Option<Box<Allocation>>,
}

/// A block that is being searched.
struct Search {
    block: Range<u32>,
    /// First frame beyond its zone.
    zone_end: u32,
    /// First frame of the zone: those of higher zones, which were searched, have lower numbers.
    zone_start: u32,
    /// Frames from here on were searched.
    from: u32,
}

impl Search {
    /// Returns true if a frame is of this block or of one that was searched before.
    fn has_passed(&self, pfn: Pfn) -> bool {
        pfn.0 < self.zone_start || (self.block.start..self.zone_end).contains(&pfn.0)
    }
}

/// The outcome of one step of resizing the balloon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BalloonStep {
    Again,
    Wait(Wait),
    WaitForWriteback,
    /// The balloon is as large as was asked for, or as it can be.
    Done,
}

impl BalloonResize {
    /// Returns true if it is inside a reclaim call.
    pub(crate) fn in_reclaim(&self) -> bool {
        self.allocation.as_ref().is_some_and(|allocation| allocation.in_reclaim())
    }

    /// Returns true if it makes room for a page that moves.
    pub(crate) fn is_stalled(&self) -> bool {
        self.allocation.is_some()
    }
}

impl Core {
    /// A change of the balloon to this many frames of a node.
    pub(crate) fn balloon_resize(&mut self, node: NodeId, wanted: usize) -> BalloonResize {
        let (mut blocks, mut free) = (Vec::new(), Vec::new());
        if wanted > self.mm.kmem.balloon.frames().len() {
            self.mm.memory.list_fresh(node);
            for zone in self.mm.memory.zones.of_node(node) {
                let starts = (zone.start..zone.end()).step_by(MAX_BLOCK_PAGES as usize).rev();
                blocks.extend(
                    starts.map(|start| (start..(start + MAX_BLOCK_PAGES).min(zone.end()), zone.end())),
                );
            }
            let mut missing = wanted - self.mm.kmem.balloon.frames().len();
            for (block, _) in &blocks {
                let taken = missing.min(block.len());
                missing -= taken;
                if taken > 0 {
                    free.push(block.end - taken as u32);
                }
            }
            blocks.reverse();
            free.reverse();
        }
        BalloonResize { node, wanted, free, blocks, current: None, allocation: None }
    }

    /// Takes a change of the balloon one batch further.
    pub(crate) fn balloon_step(&mut self, resize: &mut BalloonResize) -> BalloonStep {
        if resize.allocation.is_none() {
            for _ in 0..STEP_FRAMES {
                if self.mm.kmem.balloon.frames().len() <= resize.wanted {
                    break;
                }
                self.balloon_deflate(resize.node);
            }
            if self.mm.kmem.balloon.frames().len() > resize.wanted {
                return BalloonStep::Again;
            }
        }
        let mut target = None;
        let step = self.balloon_inflate(resize, &mut target);
        if let Some(pfn) = target {
            self.free_folio(pfn);
        }
        if step == BalloonStep::Done {
            self.mm.memory.zones.managed_changed(&self.mm.config);
        }
        step
    }

    /// Takes frames until there are enough, a batch is done, or something has to be waited for. `target`: a frame for a page that moves, which the
    /// caller frees if it stays.
    fn balloon_inflate(&mut self, resize: &mut BalloonResize, target: &mut Option<Pfn>) -> BalloonStep {
        let mut done = 0;
        loop {
            if self.mm.kmem.balloon.frames().len() >= resize.wanted && resize.allocation.is_none() {
                return BalloonStep::Done;
            }
            if done >= STEP_FRAMES {
                return BalloonStep::Again;
            }
            if let Some(from) = resize.free.pop() {
                self.balloon_take_free(resize.node, from, resize.wanted);
                done += STEP_FRAMES / 2;
                continue;
            }
            let Some(search) = &mut resize.current else {
                let Some((block, zone_end)) = resize.blocks.pop() else { return BalloonStep::Done };
                let start = self.balloon_reach(&block, resize.wanted);
                if start > block.start {
                    // More of it only if pages of the rest can't move.
                    resize.blocks.push((block.start..start, zone_end));
                }
                let block = start..block.end;
                (0..self.mm.config.cpus).for_each(|cpu| self.lru_add_drain_cpu(CpuId(cpu)));
                self.balloon_take_free(resize.node, block.start, resize.wanted);
                let zone_start = self.mm.memory.zones.zone_of(resize.node, Pfn(block.start)).start;
                let from = block.end;
                resize.current = Some(Search { block, zone_end, zone_start, from });
                done += STEP_FRAMES / 2;
                continue;
            };
            if let Some(pfn) = target.take_if(|pfn| search.has_passed(*pfn)) {
                self.balloon_take(resize.node, pfn);
                done += 1;
                continue;
            }
            if search.from == search.block.start && resize.allocation.is_none() {
                // Frames whose pages have moved or were evicted since are free.
                let start = search.block.start;
                resize.current = None;
                self.balloon_take_free(resize.node, start, resize.wanted);
                done += STEP_FRAMES / 2;
                continue;
            }
            let pfn = Pfn(search.from - 1);
            if resize.allocation.is_none() && !self.balloon_may_move(pfn) {
                search.from -= 1;
                continue;
            }
            let Some(to) = target.take() else {
                match self.balloon_target(resize.node, &mut resize.allocation) {
                    Allocated::Page(pfn) => *target = Some(pfn),
                    Allocated::Again => return BalloonStep::Again,
                    Allocated::Wait(wait) => return BalloonStep::Wait(wait),
                    Allocated::WaitForWriteback => return BalloonStep::WaitForWriteback,
                    Allocated::Nothing => return BalloonStep::Done,
                    Allocated::Dying => unreachable!("it is no process's"),
                    Allocated::Oom(report) => unreachable!("nobody is killed for a balloon: {report}"),
                }
                continue;
            };
            // Reclaim for the target may have evicted it.
            if !self.balloon_may_move(pfn) {
                *target = Some(to);
                continue;
            }
            search.from -= 1;
            done += 1;
            if self.migrate_isolate(pfn) {
                self.migrate_folio_or_free(pfn, to, MigrateReason::ContigRange);
            } else {
                *target = Some(to);
            }
        }
    }

    /// The first frame of a block that is to be taken, if all of the block that is not the balloon's can be.
    fn balloon_reach(&self, block: &Range<u32>, wanted: usize) -> u32 {
        let is_taken = |&pfn: &u32| self.mm.memory.folios[Pfn(pfn)].has(FolioFlags::KERNEL);
        let missing = wanted - self.mm.kmem.balloon.frames().len();
        let others = block.clone().rev().filter(|pfn| !is_taken(pfn));
        others.take(missing).last().unwrap_or(block.start)
    }

    /// Returns true if a frame has a page that can move now.
    fn balloon_may_move(&self, pfn: Pfn) -> bool {
        let folio = &self.mm.memory.folios[pfn];
        folio.has(FolioFlags::LRU) && folio.order == 0 && !self.is_held(folio)
    }

    /// A frame of the node for a page that moves.
    fn balloon_target(&mut self, node: NodeId, allocation: &mut Option<Box<Allocation>>) -> Allocated {
        let gfp = Gfp::KERNEL | Gfp::NOWARN | Gfp::RETRY_MAYFAIL;
        let request = Request { allowed: Nodemask::of([node]), ..Request::movable(gfp, node) };
        let allocated = match allocation {
            Some(allocation) => self.allocation_step(allocation),
            None => match self.alloc_pages(&request, MemcgId::ROOT) {
                Some(pfn) => return Allocated::Page(pfn),
                None => {
                    let begun = Box::new(self.allocation(request, MemcgId::ROOT, None));
                    self.allocation_step(allocation.insert(begun))
                }
            },
        };
        if matches!(allocated, Allocated::Page(_) | Allocated::Nothing) {
            *allocation = None;
        }
        allocated
    }

    /// Takes free frames from one on, up to the end of its block, the last ones first.
    fn balloon_take_free(&mut self, node: NodeId, from: u32, wanted: usize) {
        self.mm.memory.drain_all_pages();
        let start = from - from % MAX_BLOCK_PAGES;
        let end = (start + MAX_BLOCK_PAGES).min(self.mm.memory.zones.zone_of(node, Pfn(from)).end());
        let mut free = self.mm.memory.isolate_free(node, start..end);
        while let Some(pfn) = free.pop() {
            if pfn.0 >= from && self.mm.kmem.balloon.frames().len() < wanted {
                self.balloon_take(node, pfn);
            } else {
                self.mm.memory.folios[pfn].refs = 0;
                self.mm.memory.free(self.by.cpu, pfn);
            }
        }
    }

    /// Takes a frame that is in no list.
    fn balloon_take(&mut self, node: NodeId, pfn: Pfn) {
        self.mm.kernel_page_new(pfn, MemcgId::ROOT);
        self.mm.kmem.balloon.push(pfn);
        self.mm.memory.zones.adjust_managed(node, pfn, -1);
    }

    /// Gives the frame back that was taken last.
    fn balloon_deflate(&mut self, node: NodeId) {
        let pfn = self.mm.kmem.balloon.pop().expect("the balloon is larger than is wanted");
        self.mm.memory.zones.adjust_managed(node, pfn, 1);
        self.kernel_page_free(pfn);
    }
}
