//! The classic LRU written a second time, for the one case that is simple: a task that reads one file in one group.
//!
//! Written from the rules [reclaim 1.2, 2.1 to 2.8, 2.10, 3.1, 3.2; reclaim-6.12 1.2, 2.3, 2.10, 3.2] with deques and maps, and
//! nothing of the engine's. No swap: only file memory is scanned. Statistics are live. Nothing is mapped: every page that
//! reclaim looks at on the inactive list is clean, unreferenced or referenced once, and goes. Compared access by access.

use crate::reader::{Reader, file_pages, pages, stretch};
use pageout_engine::workingset::RefaultDistances;
use pageout_engine::{Config, Stat, StatFlush};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const FOLIO_BATCH: usize = 31;
const CHARGE_STOCK: u64 = 64;
const RECLAIM_BATCH: usize = 32;

#[derive(Default)]
struct Page {
    on_list: bool,
    referenced: bool,
    active: bool,
    workingset: bool,
}

/// A page's age at its eviction, and whether it was part of the working set then.
struct Shadow {
    age: u64,
    workingset: bool,
}

/// Lists have their head at the front.
#[derive(Default)]
struct Classic {
    limit: u64,
    usage: u64,
    stock: u64,
    resident: BTreeMap<u64, Page>,
    inactive: VecDeque<u64>,
    active: VecDeque<u64>,
    add_batch: Vec<u64>,
    activate_batch: Vec<u64>,
    shadows: BTreeMap<u64, Shadow>,
    age: u64,
    last_read: Option<u64>,
    refault_activations_seen: i64,
    pgactivate: i64,
    pgdeactivate: i64,
    refaults: i64,
    distances: RefaultDistances,
    refault_activations: i64,
    restores: i64,
    scanned: i64,
}

impl Classic {
    /// True if the page wasn't there.
    fn read(&mut self, page: u64) -> bool {
        let missed = !self.resident.contains_key(&page);
        if missed {
            self.charge();
            self.insert(page);
        }
        if self.last_read.replace(page) != Some(page) {
            self.mark_accessed(page);
        }
        missed
    }

    fn charge(&mut self) {
        if self.stock > 0 {
            self.stock -= 1;
        } else if self.usage + CHARGE_STOCK <= self.limit {
            self.usage += CHARGE_STOCK;
            self.stock = CHARGE_STOCK - 1;
        } else {
            while self.usage == self.limit {
                self.reclaim();
            }
            self.usage += 1;
        }
    }

    fn insert(&mut self, page: u64) {
        let mut state = Page::default();
        if let Some(shadow) = self.shadows.remove(&page) {
            self.refaults += 1;
            self.distances.add(self.age - shadow.age, 1);
            if self.age - shadow.age <= self.active.len() as u64 {
                state.active = true;
                self.age += 1;
                self.refault_activations += 1;
                if shadow.workingset {
                    state.workingset = true;
                    self.restores += 1;
                }
            }
        }
        self.resident.insert(page, state);
        self.add_batch.push(page);
        if self.add_batch.len() == FOLIO_BATCH {
            self.drain_add();
        }
    }

    fn mark_accessed(&mut self, page: u64) {
        let state = self.resident.get_mut(&page).expect("resident");
        if !state.referenced {
            state.referenced = true;
        } else if !state.active {
            state.referenced = false;
            self.age += 1;
            if !state.on_list {
                state.active = true;
                return;
            }
            self.activate_batch.push(page);
            if self.activate_batch.len() == FOLIO_BATCH {
                self.drain_activate();
            }
        }
    }

    fn drain_add(&mut self) {
        for page in std::mem::take(&mut self.add_batch) {
            let state = self.resident.get_mut(&page).expect("resident");
            state.on_list = true;
            if state.active { &mut self.active } else { &mut self.inactive }.push_front(page);
        }
    }

    fn drain_activate(&mut self) {
        for page in std::mem::take(&mut self.activate_batch) {
            let state = self.resident.get_mut(&page).expect("resident");
            if !state.active {
                state.active = true;
                self.pgactivate += 1;
                self.inactive.retain(|&other| other != page);
                self.active.push_front(page);
            }
        }
    }

    fn reclaim(&mut self) {
        let (mut reclaimed, mut skipped) = (0, false);
        for force in [false, true] {
            for priority in (0..=12).rev() {
                reclaimed += self.shrink(priority, force, &mut skipped);
                if reclaimed >= RECLAIM_BATCH {
                    break;
                }
            }
            self.refault_activations_seen = self.refault_activations;
            if reclaimed > 0 {
                return;
            }
        }
        assert!(skipped || reclaimed > 0, "a reader's pages can always be reclaimed");
    }

    fn shrink(&mut self, priority: u32, force: bool, skipped: &mut bool) -> usize {
        let may_deactivate = force
            || self.refault_activations != self.refault_activations_seen
            || self.inactive.len() < self.active.len();
        let (mut inactive, mut active) = (self.inactive.len() >> priority, self.active.len() >> priority);
        let mut reclaimed = 0;
        while inactive > 0 || active > 0 {
            let n = inactive.min(RECLAIM_BATCH);
            inactive -= n;
            if n > 0 {
                reclaimed += self.shrink_inactive(n);
            }
            let n = active.min(RECLAIM_BATCH);
            active -= n;
            if n > 0 && may_deactivate {
                self.shrink_active(n);
            } else if n > 0 {
                *skipped = true;
            }
            if reclaimed >= RECLAIM_BATCH {
                break;
            }
        }
        reclaimed
    }

    fn shrink_inactive(&mut self, n: usize) -> usize {
        self.drain_add();
        self.drain_activate();
        let n = n.min(self.inactive.len());
        for _ in 0..n {
            let page = self.inactive.pop_back().expect("as long as that");
            let state = self.resident.remove(&page).expect("resident");
            self.shadows.insert(page, Shadow { age: self.age, workingset: state.workingset });
            self.age += 1;
            self.usage -= 1;
            self.scanned += 1;
        }
        n
    }

    fn shrink_active(&mut self, n: usize) {
        self.drain_add();
        self.drain_activate();
        for _ in 0..n.min(self.active.len()) {
            let page = self.active.pop_back().expect("as long as that");
            let state = self.resident.get_mut(&page).expect("resident");
            state.active = false;
            state.workingset = true;
            self.pgdeactivate += 1;
            self.inactive.push_front(page);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_of_one_file_miss_where_the_rules_say(
        limit in 130..1500u64,
        stretches in prop::collection::vec(stretch(), 1..20),
    ) {
        let config = Config { stat_flush: StatFlush::Live, ..Config::default() };
        let mut reader = Reader::new(config, limit, file_pages(limit));
        let mut model = Classic { limit, ..Classic::default() };
        let accesses = stretches.iter().flat_map(|stretch| pages(stretch, limit));
        for (at, page) in accesses.enumerate() {
            prop_assert_eq!(reader.read(page), model.read(page), "access {}, of page {}", at, page);
        }
        let counters = [
            (Stat::Pgactivate, model.pgactivate),
            (Stat::Pgdeactivate, model.pgdeactivate),
            (Stat::WorkingsetRefaultFile, model.refaults),
            (Stat::WorkingsetActivateFile, model.refault_activations),
            (Stat::WorkingsetRestoreFile, model.restores),
            (Stat::PgscanFile, model.scanned),
            (Stat::NrActiveFile, model.active.len() as i64),
        ];
        for (stat, expected) in counters {
            prop_assert_eq!(reader.engine.figures().vmstat(stat), expected, "{}", stat.name());
        }
        prop_assert_eq!(reader.engine.figures().refault_distances(), model.distances);
    }
}
