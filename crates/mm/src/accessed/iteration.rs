//! The iteration of an lruvec's walks over address spaces: its place, its Bloom filters, and statistics of what walks have seen.
//! [reclaim 4.5, 4.7]

use super::bloom::BloomFilters;

/// Results of the walks of one generation, for `lru_gen_full`.
#[derive(Clone, Copy, Debug, Default)]
pub struct WalkStats {
    /// Entries looked at; a table that isn't there counts as one.
    pub leaf_total: u64,
    /// Page-table entries that were found young.
    pub leaf_young: u64,
    /// Tables that the Bloom filter let through.
    pub nonleaf_found: u64,
    /// Tables put into the next filter.
    pub nonleaf_added: u64,
}

/// The walks of one lruvec.
pub struct TableWalkState {
    /// The walk completed last.
    pub seq: u64,
    /// Page tables that are worth a walk.
    pub filters: BloomFilters,
    /// The next address space to take, in the order in which they joined the group.
    pub next: usize,
    /// True if the present iteration has emptied its filter.
    pub has_filter: bool,
    /// The number of address spaces that had not run since their last walk.
    pub unused: u64,
    /// Address spaces that took part in the last iteration. Those that came since are checked whatever the filters say.
    pub known: usize,
    /// Pages scanned since the last walk, where the lists have no generations to mark the time.
    pub scanned_since: u64,
    /// By slot of the generation.
    pub stats: Vec<WalkStats>,
}

impl TableWalkState {
    /// As if a walk had been completed before the generation `max_seq` was opened.
    pub fn new(slots: usize, max_seq: u64) -> TableWalkState {
        TableWalkState {
            seq: max_seq - 1,
            filters: BloomFilters::default(),
            next: 0,
            has_filter: false,
            unused: 0,
            known: 0,
            scanned_since: 0,
            stats: vec![WalkStats::default(); slots],
        }
    }

    /// The address space at this position has left the group.
    pub fn forget_mm(&mut self, position: usize) {
        self.next -= usize::from(position < self.next);
        self.known -= usize::from(position < self.known);
    }

    /// The slot of a generation.
    pub fn slot(&self, seq: u64) -> usize {
        (seq % self.stats.len() as u64) as usize
    }

    /// Results of walks while `seq` was the youngest.
    pub fn seen(&self, seq: u64) -> WalkStats {
        self.stats[self.slot(seq)]
    }

    /// A generation begins: no walk has seen anything while it is the youngest.
    pub fn forget(&mut self, seq: u64) {
        let slot = self.slot(seq);
        self.stats[slot] = WalkStats::default();
    }
}
