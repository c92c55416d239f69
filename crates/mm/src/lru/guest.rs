//! A guest of an lruvec: a policy that keeps its pages instead of lists, with what the engine remembers for it.

use crate::units::Pfn;
use pageout_policy::{Listed, PageId, Slot, SlotTable};

/// Uses that are reported to a guest together, unless another call comes before.
const USES_TOLD: usize = 256;
/// Refaults that are remembered: more than wait in the batches of CPUs at a time. One whose page never came to the lists is forgotten so.
const REFAULTS: usize = 256;

/// A policy in its slots, and buffers of the batch that it has nominated.
pub struct Guest {
    /// The policy, and which frame is in which slot.
    pub slots: SlotTable,
    /// Slots that it has nominated.
    pub nominated: Vec<Slot>,
    /// The names of the nominated pages.
    pub names: Vec<PageId>,
    /// The nominated file pages, empty between batches.
    pub files: Vec<Pfn>,
    /// Pages that have come back and are on their way to the lists, and evictions since theirs.
    refaults: Vec<(PageId, u64)>,
    /// Pages of its node.
    pages: u64,
    /// The page that was used last.
    last_used: Option<Slot>,
}

impl Guest {
    /// A policy that keeps nothing yet, on a node of this size.
    pub fn new(listed: &Listed, seed: u64, pages: u64) -> Guest {
        let capacity = u32::try_from(pages).unwrap_or(u32::MAX);
        Guest {
            slots: SlotTable::new((listed.make)(seed), capacity, USES_TOLD),
            nominated: Vec::new(),
            names: Vec::new(),
            files: Vec::new(),
            refaults: Vec::new(),
            pages,
            last_used: None,
        }
    }

    /// Sets the capacity in pages, as far as the node has them.
    pub fn resize(&mut self, limit: u64) {
        let room = limit.min(self.pages).max(1);
        self.slots.resize(u32::try_from(room).unwrap_or(u32::MAX));
    }

    /// A page was used; whether it is another one than last time.
    #[inline]
    pub fn used(&mut self, slot: Slot) -> bool {
        self.slots.used(slot);
        self.last_used.replace(slot) != Some(slot)
    }

    /// A page has come back that was evicted, so many evictions ago.
    pub fn note_refault(&mut self, page: PageId, distance: u64) {
        if self.refaults.len() == REFAULTS {
            self.refaults.remove(0);
        }
        self.refaults.push((page, distance));
    }

    /// Evictions since that of a page that has come back and is now on the lists.
    pub fn take_refault(&mut self, page: PageId) -> Option<u64> {
        let at = self.refaults.iter().position(|&(of, _)| of == page)?;
        Some(self.refaults.remove(at).1)
    }
}
