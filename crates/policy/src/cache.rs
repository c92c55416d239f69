//! A bare host: a memory with a number of pages, and nothing else. For each page number, it reports whether the page was in memory.
//!
//! Some of its pages may be pinned. They are spared when they are nominated, as a machine spares dirty or locked pages.

use crate::{Cause, End, Fault, Newcomer, PageId, Policy, Slot, SlotTable, Uses, Wrong};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The time at which a bare host reports uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Telling {
    /// In batches of this size, or at the next other call.
    Batches(usize),
    /// When the page is nominated, for a policy that allows this ([`Uses::Late`]).
    Late,
    /// Not at all, for a policy that does not need it ([`Uses::Never`]).
    Never,
}

/// A memory of fixed capacity with a policy.
pub struct Cache {
    table: SlotTable,
    telling: Telling,
    slots: BTreeMap<u32, Slot>,
    pinned: BTreeSet<u32>,
    used: BTreeSet<Slot>,
    /// By page that was evicted: the count of evictions at that time.
    shadows: BTreeMap<u32, u64>,
    evictions: u64,
    now_ns: u64,
}

impl Cache {
    /// Creates an empty memory with this capacity, at least one page.
    pub fn new(policy: Box<dyn Policy>, capacity: u32, telling: Telling) -> Cache {
        assert!(capacity > 0, "a memory has room for a page");
        let batch = if let Telling::Batches(batch) = telling { batch } else { 1 };
        let table = SlotTable::new(policy, capacity, batch);
        let can_be_told_so = match telling {
            Telling::Batches(_) => true,
            Telling::Late => table.uses() == Uses::Late,
            Telling::Never => table.uses() == Uses::Never,
        };
        assert!(can_be_told_so, "the policy has to hear of uses in another way");
        Cache {
            table,
            telling,
            slots: BTreeMap::new(),
            pinned: BTreeSet::new(),
            used: BTreeSet::new(),
            shadows: BTreeMap::new(),
            evictions: 0,
            now_ns: 0,
        }
    }

    /// The table of its policy.
    pub fn table(&mut self) -> &mut SlotTable {
        &mut self.table
    }

    /// Returns the number of pages in it.
    pub fn len(&self) -> u32 {
        self.table.len()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Accesses a page, and evicts others for it if it is missing. Returns true for a hit. `want`: how many pages to request if a slot is needed;
    /// nominations beyond the need are evicted when the page is in memory.
    pub fn access(&mut self, page: u32, write: bool, want: u32) -> Result<bool, Fault> {
        self.now_ns += 100;
        if let Some(&slot) = self.slots.get(&page) {
            match self.telling {
                Telling::Batches(_) => self.table.used(slot),
                Telling::Late => drop(self.used.insert(slot)),
                Telling::Never => {}
            }
            return Ok(true);
        }
        let also_nominated = self.shrink_to(self.table.capacity() - 1, want)?;
        let cause = match self.shadows.remove(&page) {
            Some(then) => Cause::Refault { distance: self.evictions - then },
            None => Cause::Demand,
        };
        let newcomer = Newcomer { page: PageId(page.into()), cause, write, at_ns: self.now_ns };
        let slot = self.table.add(page, newcomer);
        self.slots.insert(page, slot);
        also_nominated.into_iter().for_each(|slot| self.end(slot));
        Ok(false)
    }

    /// Sets the capacity, and evicts pages beyond it.
    pub fn resize(&mut self, capacity: u32) -> Result<(), Fault> {
        assert!(capacity > 0, "a memory has room for a page");
        self.table.resize(capacity);
        self.shrink_to(capacity, 1).map(drop)
    }

    /// Removes a page, for example because of a truncation. Nothing is remembered of it.
    pub fn remove(&mut self, page: u32) {
        self.unpin(page);
        self.shadows.remove(&page);
        if let Some(slot) = self.slots.remove(&page) {
            self.used.remove(&slot);
            self.table.end(slot, PageId(page.into()), End::Gone);
        }
    }

    /// Hints that a page may be evicted next, if it is in memory.
    pub fn cold(&mut self, page: u32) {
        if let Some(&slot) = self.slots.get(&page) {
            self.table.cold(slot);
        }
    }

    /// Pins a page in memory, as long as another one can be evicted.
    pub fn pin(&mut self, page: u32) {
        if self.slots.contains_key(&page) && self.pinned.len() + 1 < self.table.len() as usize {
            self.pinned.insert(page);
        }
    }

    /// Unpins it.
    pub fn unpin(&mut self, page: u32) {
        self.pinned.remove(&page);
    }

    /// Returns the pages in memory, in order of their numbers.
    pub fn pages(&self) -> impl Iterator<Item = u32> {
        self.slots.keys().copied()
    }

    /// Evicts down to this number of pages, or until only pinned ones are left. Returns further nominations.
    fn shrink_to(&mut self, pages: u32, want: u32) -> Result<Vec<Slot>, Fault> {
        let mut in_vain = 0;
        let mut nominated = VecDeque::new();
        while self.table.len() > pages && self.pinned.len() < self.slots.len() {
            let want = want.clamp(1, self.table.len());
            let before = self.evictions;
            let mut victims = Vec::new();
            self.table.nominate(want, &mut victims)?;
            nominated.extend(victims);
            while self.table.len() > pages
                && let Some(slot) = nominated.pop_front()
            {
                self.end(slot);
            }
            in_vain = if self.evictions > before { 0 } else { in_vain + 1 };
            if in_vain > 4 * u64::from(self.table.len()) {
                return Err(self.table.fault(Wrong::Stuck(in_vain)));
            }
        }
        Ok(nominated.into())
    }

    /// Evicts a nominated page, or spares it.
    fn end(&mut self, slot: Slot) {
        let page = self.table.holder(slot).expect("what was nominated is there");
        let is_used = self.used.remove(&slot);
        if is_used {
            self.table.used(slot);
        }
        if is_used || self.pinned.contains(&page) {
            self.table.end(slot, PageId(page.into()), End::Spared);
            return;
        }
        self.table.end(slot, PageId(page.into()), End::Evicted);
        self.slots.remove(&page);
        self.shadows.insert(page, self.evictions);
        self.evictions += 1;
    }
}
