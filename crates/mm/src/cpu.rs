//! What belongs to one CPU: folios that wait for their lists, charges made ahead, updates of statistics that were not passed on.

use crate::memcg::stock::{ByteStock, Stock};
use crate::stat::Updates;
use crate::units::{Nanos, Pfn};

/// The batches of one CPU.
#[derive(Default)]
pub struct Batches {
    /// Folios by what is to become of them.
    pub batches: [Vec<Pfn>; 6],
}

impl Batches {
    /// All folios that wait.
    pub fn iter(&self) -> impl Iterator<Item = Pfn> {
        self.batches.iter().flatten().copied()
    }
}

/// State of one CPU.
#[derive(Default)]
pub struct Cpu {
    /// Folios that wait to be put on lists.
    pub batches: Batches,
    /// Pages charged ahead.
    pub stock: Stock,
    /// Bytes of kernel memory charged ahead.
    pub bytes: ByteStock,
    /// Updates of statistics that it has not passed on.
    pub updates: Updates,
    /// Time of its next check of the free pages that it holds.
    pub refresh_at: Nanos,
}
