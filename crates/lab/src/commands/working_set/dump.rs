//! The text of debugfs `lru_gen` and `lru_gen_full`: what it says, as data, and where it is not what it should be.
//!
//! ```text
//!   memcg    29 /web                                    a group, with its path from the root
//!    node     0                                         each of its nodes, and below it every generation, oldest first
//!             5      61240        120       4031        seq, age in ms, anonymous pages, file pages
//!               0       12r       40e        3p ...     lru_gen_full only: four tiers (anonymous, then file) ...
//!                         0t        0y        0f        0a      ... and what the page-table walks saw
//!                         0l  0o  0y  0n  0f  0a                ... which are six figures up to 6.8
//! ```
//! Blanks are read freely, since widths differ between versions and copies lose blanks. The structure is checked: a dump has no end
//! mark, so a dump that broke off shows only by numbers out of order, other nodes than in other groups, or rows that are not
//! whole. One cut goes unnoticed: at the end of a row, behind the second generation of the last node or later.
//!
//! Up to 6.8 a figure that says nothing has no mark behind it; since then it has an `x`.
//!
//! Source: `lru_gen` as Linux 6.12 and 6.16 write it, and `lru_gen_full` as the kernels of Debian 12, of Ubuntu 24.04 and of Android on 6.1
//! and 6.6 do. Uses nothing but the standard library, since the fuzzer compiles it in once more.

mod fields;
mod parse;

use std::fmt;
use std::ops::Range;

pub use parse::parse;

/// Tiers that `lru_gen_full` lists for each generation.
const TIERS: usize = 4;

/// Generations that Linux keeps at most.
pub const GENERATIONS_MAX: usize = 4;

/// More pages than any machine has; sums of fewer never overflow, also as bytes.
pub const PAGES_MAX: u64 = 1 << 46;

/// Which of the two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Anonymous memory, which needs swap to leave.
    Anon,
    /// The page cache.
    File,
}

impl Type {
    /// Both, in the order of the columns.
    pub const ALL: [Type; 2] = [Type::Anon, Type::File];
}

/// One reading of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The groups, parents before children.
    pub memcgs: Vec<Memcg>,
    /// Whether it was `lru_gen_full`.
    pub is_full: bool,
}

/// A memory cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memcg {
    /// The kernel's number of it; 0 without cgroups.
    pub id: u32,
    /// From the root, `/` for the root itself; empty without cgroups.
    pub path: String,
    /// The group's pages by node, in rising order; at least one node.
    pub nodes: Vec<Node>,
}

/// What one group has on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The node's number.
    pub id: u32,
    /// Oldest first, without gaps; at least two, and no more than there can be. A piece of a dump may have one, of its only node.
    pub generations: Vec<Generation>,
}

impl Node {
    /// The youngest generation: its birth is when the pages were last looked at.
    pub fn youngest(&self) -> &Generation {
        self.generations.last().expect("a node has a generation at least")
    }
}

/// A generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The generation's number.
    pub seq: u64,
    /// How long ago it was born.
    pub age_ms: u64,
    /// Pages, by [`Type`].
    pub pages: [u64; 2],
}

/// What is wrong with a text, where in it, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong with the dump.
    pub message: String,
    /// The bytes that are meant.
    pub span: Range<usize>,
    /// What was expected instead.
    pub help: Vec<String>,
}

impl fmt::Display for Dump {
    /// As `lru_gen` writes it.
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
pub(crate) mod tests;
