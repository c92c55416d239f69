//! Generations written a second time, for the one case that is simple: a task that reads one file in one group.
//!
//! Written from the rules [reclaim-6.12 3.4, 4.1 to 4.4, 4.9] with deques and maps, and nothing of the
//! engine's. No swap: only file memory may be evicted. Nothing is mapped, so that no page is found young, and all that reclaim
//! isolates is clean and goes. Compared access by access, also with the rules of before 6.7, each alone and together.

use crate::reader::{Reader, file_pages, pages, stretch};
use pageout_engine::{Config, Policy, Stat, StatFlush, Switch};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const FOLIO_BATCH: usize = 31;
const CHARGE_STOCK: u64 = 64;
const RECLAIM_BATCH: usize = 32;
const ISOLATED_MAX: usize = 64;
const LOOKED_AT_MAX: usize = 4096;

/// The recorded use of a page: R, W and the counter.
#[derive(Clone, Copy, Default)]
struct Use {
    referenced: bool,
    workingset: bool,
    count: usize,
}

impl Use {
    fn refs(self) -> usize {
        self.count + usize::from(self.workingset)
    }
}

/// 0, 1, 2 and 3 or 4 uses make tiers 0, 1, 2, 2 and 3: the logarithm of one more, rounded up.
fn tier(refs: usize) -> usize {
    (refs + 1).next_power_of_two().trailing_zeros() as usize
}

#[derive(Clone, Copy, Default)]
struct Counts {
    refaulted: u64,
    evicted: u64,
    protected: u64,
}

/// The rules of 6.12 that came with 6.7; where one is false, what was before.
#[derive(Clone, Copy, Default)]
struct Since6_7 {
    /// New pages of a full window go to the second oldest generation; before, to the oldest.
    place: bool,
    /// A full count is spared whatever the controller says.
    full_count: bool,
    /// Three uses are restored, with a full count; before, four, as in use.
    restore: bool,
}

/// Lists have their head at the front.
#[derive(Default)]
struct Model {
    rules: Since6_7,
    limit: u64,
    usage: u64,
    stock: u64,
    resident: BTreeMap<u64, Use>,
    add_batch: Vec<u64>,
    /// By generation modulo 4.
    lists: [VecDeque<u64>; 4],
    min: usize,
    max: usize,
    history: [[Counts; 4]; 4],
    past: [(u64, u64); 4],
    /// The oldest generation at the eviction, and the uses of the page.
    shadows: BTreeMap<u64, (usize, usize)>,
    last_read: Option<u64>,
    refaults: i64,
    recent_refaults: i64,
    restores: i64,
    scanned: i64,
}

impl Model {
    fn new(rules: Since6_7, limit: u64) -> Model {
        Model { rules, limit, max: 3, ..Model::default() }
    }

    fn generations(&self) -> usize {
        self.max - self.min + 1
    }

    /// True if the page wasn't there.
    fn read(&mut self, page: u64) -> bool {
        let missed = !self.resident.contains_key(&page);
        if missed {
            self.charge();
            self.insert(page);
        }
        if self.last_read.replace(page) != Some(page) {
            let used = self.resident.get_mut(&page).expect("resident");
            if !used.referenced {
                used.referenced = true;
            } else if !used.workingset {
                used.workingset = true;
            } else {
                used.count = (used.count + 1).min(3);
            }
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
        let mut used = Use::default();
        if let Some((generation, refs)) = self.shadows.remove(&page) {
            self.refaults += 1;
            if generation == self.min {
                self.recent_refaults += 1;
                self.history[self.min % 4][tier(refs)].refaulted += 1;
                let (least, count) = if self.rules.restore { (3, 3) } else { (4, 0) };
                if refs >= least {
                    used = Use { referenced: false, workingset: true, count };
                    self.restores += 1;
                }
            }
        }
        self.resident.insert(page, used);
        self.add_batch.push(page);
        if self.add_batch.len() == FOLIO_BATCH {
            self.drain();
        }
    }

    fn drain(&mut self) {
        for page in std::mem::take(&mut self.add_batch) {
            let is_spaced = self.rules.place && self.generations() == 4;
            let generation = if is_spaced { self.min + 1 } else { self.min };
            self.lists[generation % 4].push_front(page);
        }
    }

    fn reclaim(&mut self) {
        let mut reclaimed = 0;
        for priority in (0..=12).rev() {
            self.drain();
            let mut looked_at = 0;
            while let Some(budget) = self.budget(priority) {
                let (looked, freed) = if budget > 0 { self.evict() } else { (0, 0) };
                reclaimed += freed;
                looked_at += looked;
                if looked == 0 || looked_at >= budget {
                    break;
                }
            }
            if reclaimed >= RECLAIM_BATCH {
                return;
            }
        }
    }

    /// Pages to look at; none if a generation was opened instead.
    fn budget(&mut self, priority: u32) -> Option<usize> {
        let all: usize = self.lists.iter().map(VecDeque::len).sum();
        let (young, next) = (self.lists[self.max % 4].len(), self.lists[(self.max - 2) % 4].len());
        let (total, ages) = match self.generations() {
            2 => (0, true),
            3 => (all, 2 * young > all || 4 * next < all),
            _ => (all, false),
        };
        if ages && priority < 12 {
            self.age();
            return None;
        }
        Some(total >> priority)
    }

    fn age(&mut self) {
        if self.generations() == 4 {
            while let Some(page) = self.lists[self.min % 4].pop_back() {
                self.resident.insert(page, Use::default());
                self.lists[(self.min + 1) % 4].push_back(page);
            }
            self.carry_over();
            self.min += 1;
        }
        self.max += 1;
        self.history[self.max % 4] = Default::default();
    }

    fn carry_over(&mut self) {
        for (past, now) in self.past.iter_mut().zip(self.history[self.min % 4]) {
            *past = ((past.0 + now.refaulted) / 2, (past.1 + now.evicted + now.protected) / 2);
        }
    }

    /// Refaulted and all.
    fn position(&self, tier: usize) -> (u64, u64) {
        let now = self.history[self.min % 4][tier];
        (self.past[tier].0 + now.refaulted, self.past[tier].1 + now.evicted + now.protected)
    }

    /// Tiers from here on are spared.
    fn first_spared_tier(&self) -> usize {
        let (first_refaulted, first_all) = self.position(0);
        let is_spared = |&tier: &usize| {
            let (refaulted, all) = self.position(tier);
            refaulted >= 64 && refaulted * (first_all + 64) > (first_refaulted + 1) * all * 2
        };
        (1..4).find(is_spared).unwrap_or(4)
    }

    /// Pages looked at, or none if there is nothing to gain from more; and pages freed.
    fn evict(&mut self) -> (usize, usize) {
        let (mut looked_at, mut isolated) = (0, Vec::new());
        if self.generations() > 2 {
            let spared = self.first_spared_tier();
            while looked_at < LOOKED_AT_MAX && isolated.len() < ISOLATED_MAX {
                let Some(page) = self.lists[self.min % 4].pop_back() else { break };
                looked_at += 1;
                let used = self.resident.get_mut(&page).expect("resident");
                let refs = used.refs();
                if tier(refs) >= spared || self.rules.full_count && refs == 4 {
                    self.history[self.min % 4][tier(refs)].protected += 1;
                    *used = Use::default();
                    self.lists[(self.min + 1) % 4].push_back(page);
                } else {
                    if !used.referenced {
                        *used = Use::default();
                    }
                    isolated.push(page);
                }
            }
        }
        if isolated.is_empty() && looked_at < LOOKED_AT_MAX {
            looked_at = 0;
        }
        let oldest = self.min;
        while self.min + 2 <= self.max && self.lists[self.min % 4].is_empty() {
            self.min += 1;
        }
        if self.min > oldest {
            let newest = std::mem::replace(&mut self.min, oldest);
            self.carry_over();
            self.min = newest;
            looked_at += 1;
        }
        if self.generations() == 2 {
            looked_at = 0;
        }
        let freed = isolated.len();
        self.scanned += freed as i64;
        self.usage -= freed as u64;
        for page in isolated {
            let refs = self.resident.remove(&page).expect("resident").refs();
            self.history[self.min % 4][tier(refs)].evicted += 1;
            self.shadows.insert(page, (self.min, refs));
        }
        (looked_at, freed)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_of_one_file_miss_where_the_rules_say(
        limit in 130..1500u64,
        stretches in prop::collection::vec(stretch(), 1..20),
        [place, full_count, restore] in any::<[bool; 3]>(),
    ) {
        let mut policy = Policy::of("mglru@6.12");
        for (is_new, switch, old) in [
            (place, "lru.new_file", "oldest"),
            (full_count, "lru.full_count", "false"),
            (restore, "workingset.restore", "full"),
        ] {
            let switch = Switch::by_name(switch).expect("a switch of the engine");
            prop_assert!(is_new || switch.set(&mut policy, old));
        }
        let config = Config { stat_flush: StatFlush::Live, policy, ..Config::default() };
        let mut reader = Reader::new(config, limit, file_pages(limit));
        let mut model = Model::new(Since6_7 { place, full_count, restore }, limit);
        let accesses = stretches.iter().flat_map(|stretch| pages(stretch, limit));
        for (at, page) in accesses.enumerate() {
            prop_assert_eq!(reader.read(page), model.read(page), "access {}, of page {}", at, page);
        }
        let counters = [
            (Stat::WorkingsetRefaultFile, model.refaults),
            (Stat::WorkingsetActivateFile, model.recent_refaults),
            (Stat::WorkingsetRestoreFile, model.restores),
            (Stat::PgscanFile, model.scanned),
        ];
        for (stat, expected) in counters {
            prop_assert_eq!(reader.engine.figures().vmstat(stat), expected, "{}", stat.name());
        }
    }
}
