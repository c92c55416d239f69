//! S3-FIFO: a small queue that most new pages leave unused, a main one for those that were used again, and a memory of who left the small
//! one.
//!
//! ```text
//!   new ──► small, a tenth ──┬── used twice or more ──► main ──┬── used: once more round, one use less
//!                            └── evicted, remembered           └── not used: evicted
//!   remembered, and back ──────────────────────────────► main
//! ```
//! *What.* A use counts up to three. A page at the small queue's tail that was used more than once moves to the main queue, and its uses are
//! forgotten. Otherwise it is evicted. Its name is kept until as many further names as the main queue has slots have come. A page that returns in
//! time enters the main queue directly. The main queue goes round as long as its tail was used. The small queue is evicted from if it holds a tenth
//! or more of memory; otherwise the main queue is.
//!
//! *Why.* Most pages are used once. They leave by the small queue, and take no memory from others.
//!
//! *When not to use it:* if pages are used a second time after the small queue has turned over, and not again. It then keeps pages that are not
//! needed any more. For mapped memory, where the number of uses is not known.
//!
//! Source: J. Yang and others, *FIFO Queues are All You Need for Cache Eviction*, SOSP 2023, <https://dl.acm.org/doi/10.1145/3600006.3613147>.
//! A page that can't go when its turn comes (it is dirty, pinned or locked) goes to the main queue: it would stand in the small one's way.
//!
//! If pages are dense numbers and none is spared, names need no map: `crates/cache` implements S3-FIFO this way, with its shares as parameters.

use crate::queue::{Links, Queue};
use crate::{Arrival, End, PageId, Policy, Slot};
use std::collections::{BTreeMap, VecDeque};

/// The most uses that are counted.
const USES_MAX: u8 = 3;
/// From so many uses on a page leaves the small queue for the main one.
const PROMOTED_FROM: u8 = 2;
/// The small queue's share of memory: one of so many parts.
const SMALL_PART: u32 = 10;

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum In {
    #[default]
    Small,
    Main,
    /// Nominated, from the small queue.
    LeavingSmall,
    /// Nominated, from the main queue.
    LeavingMain,
}

#[derive(Clone, Copy, Default, Debug)]
struct Page {
    place: In,
    uses: u8,
}

/// Two queues and the names of who left the small one.
#[derive(Default, Debug)]
pub struct S3Fifo {
    links: Links,
    small: Queue,
    main: Queue,
    pages: Vec<Page>,
    capacity: u32,
    ghosts: Ghosts,
}

impl S3Fifo {
    fn page(&mut self, slot: Slot) -> &mut Page {
        &mut self.pages[slot.index()]
    }

    fn push(&mut self, slot: Slot, place: In) {
        let queue = if place == In::Main { &mut self.main } else { &mut self.small };
        queue.push_head(&mut self.links, slot);
        self.page(slot).place = place;
    }

    /// Takes a page out of the queue that it is in, if it is in one.
    fn take(&mut self, slot: Slot) {
        match self.page(slot).place {
            In::Small => self.small.remove(&mut self.links, slot),
            In::Main => self.main.remove(&mut self.links, slot),
            In::LeavingSmall | In::LeavingMain => {}
        }
    }

    /// The next to go, out of its queue.
    fn next(&mut self) -> Option<Slot> {
        loop {
            let is_small_full = self.small.len() >= (self.capacity / SMALL_PART).max(1);
            if let Some(slot) = self.small.tail().filter(|_| is_small_full || self.main.is_empty()) {
                self.small.remove(&mut self.links, slot);
                if self.page(slot).uses < PROMOTED_FROM {
                    self.page(slot).place = In::LeavingSmall;
                    return Some(slot);
                }
                self.page(slot).uses = 0;
                self.push(slot, In::Main);
                continue;
            }
            let slot = self.main.tail()?;
            self.main.remove(&mut self.links, slot);
            if self.page(slot).uses == 0 {
                self.page(slot).place = In::LeavingMain;
                return Some(slot);
            }
            self.page(slot).uses -= 1;
            self.push(slot, In::Main);
        }
    }
}

impl Policy for S3Fifo {
    fn resized(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.ghosts.resize(capacity - capacity / SMALL_PART);
    }

    fn added(&mut self, arrival: &Arrival) {
        let slot = arrival.slot;
        if slot.index() >= self.pages.len() {
            self.pages.resize(slot.index() + 1, Page::default());
        }
        self.page(slot).uses = 0;
        let place = if self.ghosts.remove(arrival.page) { In::Main } else { In::Small };
        self.push(slot, place);
    }

    fn used(&mut self, slots: &[Slot]) {
        for slot in slots {
            let uses = &mut self.pages[slot.index()].uses;
            *uses = (*uses + 1).min(USES_MAX);
        }
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        while victims.len() < want as usize
            && let Some(slot) = self.next()
        {
            victims.push(slot);
        }
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        let place = self.page(slot).place;
        self.take(slot);
        match end {
            End::Spared => self.push(slot, In::Main),
            End::Evicted if place == In::LeavingSmall => self.ghosts.add(page),
            End::Evicted | End::Gone => {}
        }
    }

    /// It goes to the tail of its queue, and its uses are forgotten.
    fn cold(&mut self, slot: Slot) {
        self.take(slot);
        self.page(slot).uses = 0;
        let queue = if self.page(slot).place == In::Main { &mut self.main } else { &mut self.small };
        queue.push_tail(&mut self.links, slot);
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        tell("small_pages", self.small.len().into());
        tell("main_pages", self.main.len().into());
    }

    fn why(&self, slot: Slot) -> Option<String> {
        let page = self.pages.get(slot.index())?;
        let queue = match page.place {
            In::Small | In::LeavingSmall => "small",
            In::Main | In::LeavingMain => "main",
        };
        Some(format!("in the {queue} queue, {} uses", page.uses))
    }

    fn check(&self) -> Result<(), String> {
        for (queue, place) in [(&self.small, In::Small), (&self.main, In::Main)] {
            queue.check(&self.links)?;
            let mut slots = queue.iter_from_tail(&self.links);
            if let Some(slot) = slots.find(|slot| self.pages[slot.index()].place != place) {
                return Err(format!("slot {} is in another queue than the one that it records", slot.0));
            }
        }
        self.ghosts.check()
    }
}

/// Names of pages that have left, the last ones.
#[derive(Default, Debug)]
struct Ghosts {
    capacity: u32,
    /// By name: the number of its entry in `order`.
    numbers: BTreeMap<PageId, u64>,
    /// Names as they came, with their numbers; those that came back are no longer among `numbers`.
    order: VecDeque<(PageId, u64)>,
    next: u64,
}

impl Ghosts {
    fn resize(&mut self, capacity: u32) {
        self.capacity = capacity;
        self.forget();
    }

    fn add(&mut self, page: PageId) {
        self.numbers.insert(page, self.next);
        self.order.push_back((page, self.next));
        self.next += 1;
        self.forget();
    }

    /// Forgets a name; false where it was not known.
    fn remove(&mut self, page: PageId) -> bool {
        self.numbers.remove(&page).is_some()
    }

    /// Forgets the oldest names, as far as there are too many.
    fn forget(&mut self) {
        while let Some(&(page, number)) = self.order.front() {
            let is_known = self.numbers.get(&page) == Some(&number);
            if is_known && self.numbers.len() <= self.capacity as usize {
                break;
            }
            self.order.pop_front();
            if is_known {
                self.numbers.remove(&page);
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.numbers.len() > self.capacity as usize {
            return Err(format!(
                "{} names are remembered, but the limit is {}",
                self.numbers.len(),
                self.capacity
            ));
        }
        Ok(())
    }
}
