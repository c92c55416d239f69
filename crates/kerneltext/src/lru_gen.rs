//! Dumps of MGLRU: the text of debugfs `lru_gen` and `lru_gen_full` as data, or the place of the first error in it.
//!
//! [`working_set`] estimates from a dump how many pages are in use.
//!
//! ```text
//!   memcg    29 /web                                    a group, with its path from the root
//!    node     0                                         each of its nodes, and below it every generation, oldest first
//!             5      61240        120       4031        seq, age in ms, anonymous pages, file pages
//!               0       12r       40e        3p ...     lru_gen_full only: four tiers (anonymous, then file) ...
//!                         0t        0y        0f        0a      ... and what the page-table walks saw
//!                         0l  0o  0y  0n  0f  0a                ... which are six figures up to 6.8
//! ```
//! Blanks are read freely, since widths differ between versions and copies lose blanks. The structure is checked. A dump has no end
//! mark: only numbers out of order, other nodes than in other groups, or incomplete rows show that it was cut. One cut goes unnoticed: at the end of a row, behind the second generation of the last node or later.
//!
//! A figure without a meaning has no letter behind it up to 6.8, and an `x` since then.
//!
//! Source: `lru_gen` as Linux 6.12 and 6.16 write it, and `lru_gen_full` as the kernels of Debian 12, of Ubuntu 24.04 and of Android on 6.1
//! and 6.6 do.

mod fields; // fields of a line, each with its place
mod parse; // text to a dump
pub mod working_set; // pages in use within a window: at least, at most
#[cfg(test)]
mod properties; // what holds for any dump

use std::fmt;
use std::ops::Range;

pub use parse::parse;

/// Tiers that `lru_gen_full` lists for each generation.
const TIERS: usize = 4;

/// Generations that Linux keeps at most.
pub const GENERATIONS_MAX: usize = 4;

/// Limit of pages in a dump. No machine has as many, and sums of fewer never overflow, also as bytes.
pub const PAGES_MAX: u64 = 1 << 46;

/// Type of page, one column each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageType {
    /// Anonymous memory, which needs swap to leave.
    Anon,
    /// The page cache.
    File,
}

impl PageType {
    /// Both, in the order of the columns.
    pub const ALL: [PageType; 2] = [PageType::Anon, PageType::File];
}

/// One dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The cgroups, parents before children.
    pub memcgs: Vec<Memcg>,
    /// True if it was `lru_gen_full`.
    pub is_full: bool,
}

/// A memory cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memcg {
    /// The kernel's id of it; 0 without cgroups.
    pub id: u32,
    /// From the root, `/` for the root itself; empty without cgroups.
    pub path: String,
    /// The cgroup's pages by node, in rising order; at least one node.
    pub nodes: Vec<Node>,
}

/// Pages of one cgroup on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The node's number.
    pub id: u32,
    /// Oldest first, without gaps; at least two, and at most [`GENERATIONS_MAX`]. An excerpt with a single node may have one.
    pub generations: Vec<Generation>,
}

impl Node {
    /// The youngest generation. It was created when the pages' accessed bits were last looked at.
    pub fn youngest(&self) -> &Generation {
        self.generations.last().expect("a node has a generation at least")
    }
}

/// A generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The generation's number.
    pub seq: u64,
    /// Milliseconds since it was created.
    pub age_ms: u64,
    /// Pages, by [`PageType`].
    pub pages: [u64; 2],
}

/// The first error in a text that is not a whole dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The problem.
    pub message: String,
    /// Its place in the text, in bytes.
    pub span: Range<usize>,
    /// The expected text, and hints; at least one.
    pub help: Vec<String>,
}

impl fmt::Display for Dump {
    /// Writes the dump as `lru_gen` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for memcg in &self.memcgs {
            writeln!(f, "memcg {:5} {}", memcg.id, memcg.path)?;
            for node in &memcg.nodes {
                writeln!(f, " node {:5}", node.id)?;
                for Generation { seq, age_ms, pages: [anon, file] } in &node.generations {
                    writeln!(f, " {seq:10} {age_ms:10} {anon:10}  {file:10} ")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
