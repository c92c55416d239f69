//! Memory of tables: from a host that counts it and has a use for what tables no longer need, or else from the allocator.
//!
//! ```text
//!   words        ┃used ┃zeroes ...          ┃used ┃zeroes ...     addresses for all pages, memory where words are          WordArray
//!   other data   trees whose parts come and go with what is in them (`sparse.rs`)                                         counted
//! ```
//! A simulator has no host. Its tables are flat arrays from the allocator, and nothing is counted.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Words in memory of a host.
pub trait WordArray: Send + Sync {
    /// Returns the words. They begin as zeroes, and take memory when they are first written.
    fn words(&self) -> &[AtomicU64];

    /// Gives the memory of these words to the system. All of them are zero, and are zero when they are read next. Others may read them meanwhile, and
    /// none writes them.
    fn give_back(&self, words: Range<usize>);
}

/// A host that has a budget for tables.
pub trait TableHost: Send + Sync {
    /// Returns this many words; `None` if the system has no addresses for them.
    fn reserve(&self, words: usize) -> Option<Arc<dyn WordArray>>;

    /// Notes that words of its own take this many bytes more, or fewer.
    fn count_words(&self, bytes: i64);

    /// Notes that other data about pages takes this many bytes more, or fewer, of the allocator. It may keep what it gets back.
    fn count_allocated(&self, bytes: i64);
}

/// The host of a machine's tables, if there is one.
#[derive(Clone, Default)]
pub struct TableMemory(Option<Arc<dyn TableHost>>);

impl TableMemory {
    /// Memory of this host.
    pub fn of(host: Arc<dyn TableHost>) -> TableMemory {
        TableMemory(Some(host))
    }

    /// Returns whether a host counts the memory.
    pub fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether the host has addresses for this many words.
    pub(super) fn grants(&self, words: u64) -> bool {
        self.0.as_ref().is_none_or(|host| host.reserve(words as usize).is_some())
    }

    pub(super) fn reserve(&self, words: usize) -> Option<Arc<dyn WordArray>> {
        self.0.as_ref()?.reserve(words)
    }
}

impl fmt::Debug for TableMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_counted() { "TableMemory(host)" } else { "TableMemory(allocator)" })
    }
}

/// Bytes of one table, which its host counts as long as the table exists.
#[derive(Debug)]
pub(super) struct Counted {
    memory: TableMemory,
    bytes: u64,
    are_words: bool,
}

impl Counted {
    /// Words in memory of the host.
    pub(super) fn words(memory: &TableMemory) -> Counted {
        Counted { memory: memory.clone(), bytes: 0, are_words: true }
    }

    /// Anything in memory of the allocator.
    pub(super) fn allocated(memory: &TableMemory, bytes: u64) -> Counted {
        let mut counted = Counted { memory: memory.clone(), bytes: 0, are_words: false };
        counted.set(bytes);
        counted
    }

    pub(super) fn memory(&self) -> &TableMemory {
        &self.memory
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn set(&mut self, bytes: u64) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if let Some(host) = &self.memory.0
            && bytes != before
        {
            let more = bytes as i64 - before as i64;
            if self.are_words { host.count_words(more) } else { host.count_allocated(more) }
        }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.set(self.bytes + bytes as u64);
    }

    pub(super) fn sub(&mut self, bytes: usize) {
        debug_assert!(self.bytes >= bytes as u64, "a table gives back more than it has");
        self.set(self.bytes - bytes as u64);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}
