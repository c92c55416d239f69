//! Memory hotplug: a node's memory goes offline and comes back while the machine runs, as memory behind CXL does.
//!
//! ```text
//!   nobody allocates there any more ─▶ what CPUs hold goes back ─▶ each folio to the nearest node with room ─▶ no tier has the node
//!                                                                   │ kernel memory, held, or no room
//!                                                                   └ it stays in use, with what has not moved
//! ```
//! A huge page goes as a whole where a block is free, and as single pages where not.
//!
//! Kernel memory can't move, so a node that holds any stays; zone Movable holds none. A kernel reclaims to free memory and tries for as long as it
//! takes. Here the caller gets an error, and may try again.

use crate::core::Core;
use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, Request};
use crate::state::State;
use crate::story::MigrateReason;
use crate::units::{CpuId, NodeId, Nodemask, Pfn};
use std::fmt;

/// Why a node's memory stays in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotOffline {
    /// The node has CPUs, which would be far from all memory.
    HasCpus,
    /// This many pages of the node are kernel memory, which can't move.
    Kernel(u64),
    /// This many pages of the node are isolated or pinned, or found no free memory elsewhere.
    Busy(u64),
}

impl fmt::Display for NotOffline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOffline::HasCpus => write!(f, "a node without CPUs"),
            NotOffline::Kernel(pages) => {
                write!(
                    f,
                    "a node without kernel memory: it has {pages} pages of kernel memory (zone Movable has none)"
                )
            }
            NotOffline::Busy(pages) => {
                write!(
                    f,
                    "{pages} more free pages on other nodes, or that no task holds the remaining pages; try again"
                )
            }
        }
    }
}

impl Core {
    /// Takes a node's memory out of use.
    #[doc(alias = "offline_pages")]
    pub(crate) fn offline_node(&mut self, node: NodeId) -> Result<(), NotOffline> {
        if !self.mm.tiers.is_online(node) {
            return Ok(());
        }
        if (0..self.mm.config.cpus).any(|cpu| self.mm.config.layout.node_of_cpu(cpu) == node) {
            return Err(NotOffline::HasCpus);
        }
        (0..self.mm.config.cpus).for_each(|cpu| self.lru_add_drain_cpu(CpuId(cpu)));
        self.mm.memory.drain_all_pages();
        self.mm.memory.zones.set_online(node, false, &self.mm.config);
        let left = self.evacuate(node);
        if left.is_err() {
            self.mm.memory.zones.set_online(node, true, &self.mm.config);
            return left;
        }
        let in_use = self.mm.folios_in_use(node).len();
        assert_eq!(in_use, 0, "{node:?} leaves, and {in_use} folios are on it");
        self.mm.tiers.set_online(node, false);
        Ok(())
    }

    /// Moves all that can move off a node.
    fn evacuate(&mut self, node: NodeId) -> Result<(), NotOffline> {
        let folios = self.mm.folios_in_use(node);
        let kernel = folios.iter().map(|&pfn| self.mm.memory.folios[pfn]);
        let kernel: u64 =
            kernel.filter(|folio| folio.has(FolioFlags::KERNEL)).map(|folio| folio.pages()).sum();
        if kernel > 0 {
            return Err(NotOffline::Kernel(kernel));
        }
        let nearest = self.mm.memory.zones.nearest(node, Nodemask::ALL);
        let mut left = 0;
        for pfn in folios {
            let folio = self.mm.memory.folios[pfn];
            if self.is_held(&folio) || !self.migrate_isolate(pfn) {
                left += folio.pages();
                continue;
            }
            // A huge page for which no block is free goes page by page.
            let mut pages = vec![pfn];
            let mut target = self.room_elsewhere(nearest, pfn);
            if target.is_none() && folio.is_large_anon() && self.split_large_anon(pfn, &mut pages) {
                self.mm.count_migration_split(&folio);
            }
            for page in pages {
                let target = target.take().or_else(|| self.room_elsewhere(nearest, page));
                left += self.move_away(page, target);
            }
        }
        if left > 0 { Err(NotOffline::Busy(left)) } else { Ok(()) }
    }

    fn room_elsewhere(&mut self, nearest: Option<NodeId>, pfn: Pfn) -> Option<Pfn> {
        let folio = self.mm.memory.folios[pfn];
        let gfp = Gfp::NORETRY | Gfp::NOWARN | Gfp::NOMEMALLOC;
        let request = |to| Request { order: folio.order, ..Request::movable(gfp, to) };
        nearest.and_then(|to| self.alloc_pages(&request(to), folio.memcg))
    }

    /// Moves an isolated folio, if there is free memory for it; returns how many pages stay.
    fn move_away(&mut self, pfn: Pfn, target: Option<Pfn>) -> u64 {
        let folio = self.mm.memory.folios[pfn];
        let (node, pages) = (folio.node, folio.pages());
        let is_left = target.is_none_or(|target| self.mm.memory.folios[target].node != node);
        assert!(is_left, "a page that is to leave {node:?} gets a frame of it");
        match target {
            Some(target) if self.migrate_folio_or_free(pfn, target, MigrateReason::Offline) => 0,
            Some(_) => pages,
            None => {
                self.migrate_put_back(pfn);
                pages
            }
        }
    }
}

impl State {
    /// Takes it into use again, empty.
    pub(crate) fn online_node(&mut self, node: NodeId) {
        self.memory.zones.set_online(node, true, &self.config);
        self.tiers.set_online(node, true);
    }
}
