//! The zswap pool: entries, found by swap slot, and listed by group and node. An entry has one owner: the slot. [tiering-zswap-6.12 1, 4]

use crate::memory::list::{Links, List, UNLISTED};
use crate::memory::numbered::Numbered;
use crate::memory::table::SwapEntry;
use crate::swap::zspool::{Handle, ZsPool};
use crate::units::{MemcgId, NodeId, SwapId, TaskId};

/// An entry by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryId(pub u32);

/// One compressed page.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The swap slot that it stands for.
    pub slot: SwapEntry,
    /// `None`: one word repeated, which takes nothing.
    pub handle: Option<Handle>,
    /// That word.
    pub word: u64,
    /// The group that paid for the page when it was stored, or the root.
    pub payer: MemcgId,
    /// The node of the page that it was.
    pub node: NodeId,
    /// The entry was stored since the shrinker last came by.
    pub referenced: bool,
    /// Whose page it is: of an address space or of a file, and which page of that.
    pub is_anon: bool,
    /// Number of the address space or file.
    pub owner: u32,
    /// The page's number there.
    pub index: u32,
    /// Its neighbours on the list of its group and node.
    pub links: (u32, u32),
}

impl Entry {
    /// Bytes that it takes.
    pub fn length(&self) -> u64 {
        self.handle.map_or(0, |handle| handle.length.into())
    }
}

/// The size and the limits of the zswap pool. Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZswapPool {
    /// Pages of memory that the pool takes.
    pub pages: u64,
    /// Pages that are stored in it.
    pub stored: u64,
    /// The most pages that the pool may take (`max_pool_percent`).
    pub limit: u64,
    /// A pool that was full stores nothing before it has shrunk to this number of pages (`accept_threshold_percent`).
    pub accept: u64,
}

/// Counters of `/sys/kernel/debug/zswap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZswapStat {
    /// Entries that a newer one of the same slot has replaced.
    pub duplicate_entry: u64,
    /// Stores refused because the pool was full.
    pub pool_limit_hit: u64,
    /// Stores rejected because no memory could be freed.
    pub reject_reclaim_fail: u64,
    /// Stores refused because the pool got no page.
    pub reject_alloc_fail: u64,
    /// Stores refused because the page did not get smaller.
    pub reject_compress_poor: u64,
    /// Entries that were written to their device.
    pub written_back_pages: u64,
    /// Entries as large as a page.
    pub stored_incompressible_pages: u64,
    /// Entries of one word repeated.
    pub same_filled_pages: u64,
}

/// The history of a group's pages in the pool, on a node.
#[derive(Debug, Default)]
pub struct ZswapLru {
    /// Entries, oldest at the head.
    pub list: List,
    /// Work that the shrinker was asked for and has not done.
    pub deferred: u64,
    /// Pages that had to be read from a device since the shrinker last counted: it went too far. (6.12)
    pub disk_swapins: u64,
    /// Entries that the shrinker leaves alone. (6.8)
    pub protected: u64,
}

/// All entries by number, as links of lists.
#[derive(Default)]
pub struct Entries(Numbered<Entry>);

impl Links for Entries {
    fn links(&self, item: u32) -> (u32, u32) {
        self.0.get(item).expect("an entry on a list is there").links
    }

    fn links_mut(&mut self, item: u32) -> &mut (u32, u32) {
        &mut self.0.get_mut(item).expect("an entry on a list is there").links
    }
}

/// Request to the limit worker, and its progress.
#[derive(Default)]
pub struct LimitWorker {
    /// The thread, once the machine has started it.
    pub task: Option<TaskId>,
    /// A store has asked for space.
    pub is_asked: bool,
    /// The group that it was at last.
    pub last: Option<MemcgId>,
}

/// The pool with its index.
#[derive(Default)]
pub struct Zswap {
    /// The pool of compressed pages.
    pub pool: ZsPool,
    /// The entries by number.
    pub entries: Entries,
    /// By device and slot: the number of the entry and 1, or 0.
    index: Vec<Vec<u32>>,
    /// It was enabled at some time since the machine was booted.
    pub was_enabled: bool,
    /// The limit was reached, and the pool has not shrunk enough since.
    pub is_full: bool,
    /// Counters of debugfs.
    pub stat: ZswapStat,
    /// The thread that makes room in a full pool.
    pub worker: LimitWorker,
}

impl Zswap {
    /// An empty pool.
    pub fn new(is_enabled: bool) -> Zswap {
        Zswap { was_enabled: is_enabled, ..Zswap::default() }
    }

    /// Pages that are stored.
    pub fn stored(&self) -> u64 {
        self.entries.0.len() as u64
    }

    /// The entry of a slot.
    pub fn find(&self, slot: SwapEntry) -> Option<EntryId> {
        let number = *self.index.get(slot.swap.index())?.get(slot.slot as usize)?;
        number.checked_sub(1).map(EntryId)
    }

    /// An existing entry.
    pub fn entry(&self, id: EntryId) -> &Entry {
        self.entries.0.get(id.0).expect("an entry is freed once")
    }

    /// An existing entry, for a change.
    pub fn entry_mut(&mut self, id: EntryId) -> &mut Entry {
        self.entries.0.get_mut(id.0).expect("an entry is freed once")
    }

    /// Adds an entry for a slot of a device of so many, which has none.
    pub fn insert(&mut self, entry: Entry, slots: u64) -> EntryId {
        let SwapEntry { swap: SwapId(swap), slot } = entry.slot;
        if self.index.len() <= usize::from(swap) {
            self.index.resize_with(usize::from(swap) + 1, Vec::new);
        }
        let of_device = &mut self.index[usize::from(swap)];
        if of_device.is_empty() {
            // Zeroes of the allocator, which take memory when they are written.
            *of_device = vec![0; slots as usize];
        }
        let number = self.entries.0.insert(entry);
        let before = std::mem::replace(&mut of_device[slot as usize], number + 1);
        assert_eq!(before, 0, "slot {slot} has an entry");
        EntryId(number)
    }

    /// Takes an entry out of the index; its bytes stay in the pool.
    pub fn remove(&mut self, id: EntryId) -> Entry {
        let found = self.find(self.entry(id).slot);
        let entry = self.entries.0.remove(id.0).expect("an entry is freed once");
        assert_eq!(
            found,
            Some(id),
            "slot {} leads to another entry than the one that is freed",
            entry.slot.slot
        );
        debug_assert_eq!(entry.links, UNLISTED, "an entry is freed while it is on a list");
        self.index[entry.slot.swap.index()][entry.slot.slot as usize] = 0;
        entry
    }

    /// An entry has come or gone together with what counts it: pages with one word repeated are those without an object in the pool.
    #[inline]
    pub fn assert_counted(&self) {
        if cfg!(debug_assertions) {
            let without = self.stored() - self.pool.objects();
            assert_eq!(
                self.stat.same_filled_pages, without,
                "pages with one word repeated, and entries without an object"
            );
        }
    }

    /// All entries, for checkers.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.0.iter().map(|(_, entry)| entry)
    }

    /// The entries of a list, oldest first.
    pub fn listed(&self, lru: &ZswapLru) -> Vec<EntryId> {
        let mut numbers: Vec<u32> = lru.list.iter_from_tail(&self.entries).collect();
        numbers.reverse();
        numbers.into_iter().map(EntryId).collect()
    }

    /// Panics unless index, entries and pool are of the same pages.
    pub fn check_invariants(&self) {
        self.pool.check_invariants(self.entries().filter_map(|entry| entry.handle));
        for (number, entry) in self.entries.0.iter() {
            assert_eq!(
                self.find(entry.slot),
                Some(EntryId(number)),
                "slot {} and its entry",
                entry.slot.slot
            );
        }
        let indexed = self.index.iter().flatten().filter(|&&number| number > 0).count() as u64;
        assert_eq!(indexed, self.stored(), "slots with an entry");
        let same = self.entries().filter(|entry| entry.handle.is_none()).count() as u64;
        assert_eq!(self.stat.same_filled_pages, same, "pages with one word repeated");
    }
}
