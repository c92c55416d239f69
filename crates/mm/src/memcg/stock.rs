//! What a CPU has charged ahead to a group, so that most charges touch no group.

use crate::units::MemcgId;

/// Pages charged ahead by a CPU, for one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stock {
    /// The group that has paid.
    pub memcg: MemcgId,
    /// Paid pages that are not in use.
    pub pages: u64,
}

impl Default for Stock {
    fn default() -> Stock {
        Stock { memcg: MemcgId::ROOT, pages: 0 }
    }
}

/// Bytes charged ahead by a CPU, for one group; the root's are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteStock {
    /// The group that has paid.
    pub memcg: MemcgId,
    /// Paid bytes that are not in use.
    pub bytes: u64,
}

impl Default for ByteStock {
    fn default() -> ByteStock {
        ByteStock { memcg: MemcgId::ROOT, bytes: 0 }
    }
}
