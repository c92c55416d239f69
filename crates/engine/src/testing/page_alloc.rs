//! A second, naive implementation of the page allocator's rules, compared with the first step by step. Free blocks are plain lists that
//! are searched, a refill takes block after block, and a CPU's limits are the table of their cases.

use crate::memory::Memory;
use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, MigrateType, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const PAGES: u32 = 5000;
const REST: u32 = PAGES / 1024 * 1024;
const CPUS: usize = 2;

/// A CPU's lists in the model.
#[derive(Default)]
struct Cpu {
    lists: BTreeMap<(u8, usize), VecDeque<u32>>,
    count: u32,
    high: u32,
    factor: u32,
    freed: u32,
}

struct Model {
    lists: BTreeMap<(u8, usize), VecDeque<u32>>,
    types: Vec<usize>,
    untouched: u32,
    is_rest_open: bool,
    movable: BTreeSet<u32>,
    cpus: [Cpu; CPUS],
    boost: u64,
    low_mark: u64,
    high_mark: u64,
    batch: u32,
    high_min: u32,
    high_max: u32,
    is_active: bool,
    is_below_high: bool,
}

const UNMOVABLE: usize = 0;
const MOVABLE: usize = 1;

fn fallbacks(kind: usize) -> [usize; 2] {
    [[2, 1], [2, 0], [0, 1]][kind]
}

impl Model {
    fn new(zone: &ZoneInfo) -> Model {
        let mut lists = BTreeMap::new();
        lists.insert((10, MOVABLE), (0..REST / 1024).map(|block| block * 1024).collect());
        let pageset = zone.pagesets[0];
        Model {
            lists,
            types: vec![MOVABLE; PAGES.div_ceil(512) as usize],
            untouched: REST / 1024,
            is_rest_open: false,
            movable: BTreeSet::new(),
            cpus: Default::default(),
            boost: 0,
            low_mark: zone.low,
            high_mark: zone.high,
            batch: pageset.batch,
            high_min: pageset.high_min,
            high_max: pageset.high_max,
            is_active: false,
            is_below_high: false,
        }
    }

    fn list(&mut self, order: u8, kind: usize) -> &mut VecDeque<u32> {
        self.lists.entry((order, kind)).or_default()
    }

    fn free_pages(&self) -> u64 {
        let listed: u64 = self.lists.iter().map(|(&(order, _), list)| (list.len() as u64) << order).sum();
        listed + if self.is_rest_open { 0 } else { u64::from(PAGES - REST) }
    }

    fn open_rest(&mut self) -> bool {
        if self.untouched > 0 || self.is_rest_open {
            return false;
        }
        self.is_rest_open = true;
        let mut at = REST;
        for order in (0..10).rev().filter(|order| (PAGES - REST) >> order & 1 == 1) {
            self.list(order, MOVABLE).push_back(at);
            at += 1 << order;
        }
        true
    }

    fn pop(&mut self, order: u8, kind: usize) -> Option<u32> {
        let pfn = self.list(order, kind).pop_front()?;
        if order == 10 && kind == MOVABLE && pfn == REST - self.untouched * 1024 {
            self.untouched -= 1;
        }
        Some(pfn)
    }

    fn cut(&mut self, pfn: u32, from: u8, order: u8, kind: usize) -> u32 {
        for half in (order..from).rev() {
            self.list(half, kind).push_front(pfn + (1 << half));
        }
        pfn
    }

    fn smallest(&mut self, order: u8, kind: usize) -> Option<u32> {
        for from in order..=10 {
            if let Some(pfn) = self.pop(from, kind) {
                return Some(self.cut(pfn, from, order, kind));
            }
        }
        if kind == MOVABLE && self.open_rest() { self.smallest(order, kind) } else { None }
    }

    fn claim(&mut self, order: u8, kind: usize) -> Option<u32> {
        for from in (order..=10).rev() {
            let Some(other) = fallbacks(kind).into_iter().find(|&other| !self.list(from, other).is_empty())
            else {
                continue;
            };
            if from < 4 && kind == MOVABLE {
                return None;
            }
            if from >= 9 {
                let pfn = self.pop(from, other).unwrap();
                self.types[pfn as usize / 512..][..1 << (from - 9)].fill(kind);
                return Some(self.cut(pfn, from, order, kind));
            }
            self.boost = (self.boost + 512).min((self.high_mark * 3 / 2).max(512));
            let first = self.list(from, other)[0] / 512 * 512;
            if first + 512 > PAGES {
                continue;
            }
            let inside = |pfn: u32| (first..first + 512).contains(&pfn);
            let free: u32 = (0..=8)
                .map(|order| {
                    (self.list(order, other).iter().filter(|&&pfn| inside(pfn)).count() as u32) << order
                })
                .sum();
            let movable = self.movable.range(first..first + 512).count() as u32;
            let alike = match (kind, other) {
                (MOVABLE, _) => movable,
                (_, MOVABLE) => 512 - free - movable,
                _ => 0,
            };
            if free + alike >= 256 {
                let mut moved: Vec<(u32, u8)> = Vec::new();
                for order in 0..=8 {
                    let list = self.list(order, other);
                    moved.extend(list.iter().filter(|&&pfn| inside(pfn)).map(|&pfn| (pfn, order)));
                    list.retain(|&pfn| !inside(pfn));
                }
                moved.sort();
                moved.into_iter().for_each(|(pfn, order)| self.list(order, kind).push_back(pfn));
                self.types[first as usize / 512] = kind;
                return self.smallest(order, kind);
            }
        }
        None
    }

    fn steal(&mut self, order: u8, kind: usize) -> Option<u32> {
        for from in order..=10 {
            for other in fallbacks(kind) {
                if let Some(pfn) = self.pop(from, other) {
                    return Some(self.cut(pfn, from, order, other));
                }
            }
        }
        None
    }

    fn take(&mut self, order: u8, kind: usize) -> Option<u32> {
        if let Some(pfn) = self.smallest(order, kind) {
            return Some(pfn);
        }
        self.open_rest();
        self.claim(order, kind).or_else(|| self.steal(order, kind))
    }

    fn join(&mut self, pfn: u32, order: u8) {
        let kind = self.types[pfn as usize / 512];
        let (mut pfn, mut order) = (pfn, order);
        while order < 10 {
            let buddy = pfn ^ (1 << order);
            let found = (0..3).find(|&kind| self.list(order, kind).contains(&buddy));
            let Some(other) = found else { break };
            self.list(order, other).retain(|&free| free != buddy);
            if order == 9 {
                self.types[buddy as usize / 512] = kind;
            }
            pfn = pfn.min(buddy);
            order += 1;
        }
        let next = (pfn & !(1 << order)) ^ (2 << order);
        if order < 9 && (0..3).any(|kind| self.list(order + 1, kind).contains(&next)) {
            self.list(order, kind).push_back(pfn);
        } else {
            self.list(order, kind).push_front(pfn);
        }
    }

    fn leaves(&self, order: u8, mark: u64) -> bool {
        let free = self.free_pages().saturating_sub((1 << order) - 1);
        free > mark + self.boost && (order == 0 || self.has_block(order))
    }

    fn alloc(&mut self, cpu: usize, order: u8, kind: usize, heeds_marks: bool) -> Option<u32> {
        if heeds_marks {
            self.is_below_high |= !self.leaves(order, self.high_mark);
            if self.is_below_high && !self.leaves(order, self.low_mark) {
                return None;
            }
        }
        if order > 3 && order != 9 {
            return self.take(order, kind);
        }
        self.cpus[cpu].freed /= 2;
        let key = key(order, kind);
        if self.cpus[cpu].lists.entry(key).or_default().is_empty() {
            let mut wanted = self.refill(cpu, order);
            let mut has_stolen = false;
            while wanted > 0 {
                let mut pfn = None;
                if !has_stolen {
                    pfn = self.smallest(order, kind);
                    if pfn.is_none() {
                        self.open_rest();
                        pfn = self.claim(order, kind);
                    }
                }
                if pfn.is_none() {
                    has_stolen = true;
                    pfn = self.steal(order, kind);
                }
                let Some(pfn) = pfn else { break };
                self.cpus[cpu].lists.get_mut(&key).unwrap().push_back(pfn);
                self.cpus[cpu].count += 1 << order;
                wanted -= 1;
            }
        }
        let pfn = self.cpus[cpu].lists.get_mut(&key).unwrap().pop_front();
        if pfn.is_some() {
            self.cpus[cpu].count -= 1 << order;
            return pfn;
        }
        self.take(order, kind)
    }

    fn has_block(&self, order: u8) -> bool {
        let is_listed = self.lists.iter().any(|(&(of, _), list)| of >= order && !list.is_empty());
        is_listed || !self.is_rest_open && (PAGES - REST) >> order > 0
    }

    fn refill(&mut self, cpu: usize, order: u8) -> u32 {
        let Model { batch, high_min, high_max, is_below_high, .. } = *self;
        let cpu = &mut self.cpus[cpu];
        cpu.high = cpu.high.max(high_min).min(high_max);
        let wish = batch << cpu.factor;
        if high_min != high_max && !is_below_high {
            cpu.high = (cpu.high + wish).min(high_max);
        }
        if order > 0 {
            return (batch >> order).max(if batch > 1 { 2 } else { 1 });
        }
        let room = (i64::from(cpu.high) - i64::from(cpu.count) - i64::from(batch)).max(batch.into()) as u32;
        if wish <= room {
            cpu.factor = (cpu.factor + 1).min(5);
        }
        let taken = wish.min(room);
        if wish > 1 { taken.max(2) } else { taken }
    }

    fn free(&mut self, cpu: usize, pfn: u32, order: u8) {
        self.movable.remove(&pfn);
        if order > 3 && order != 9 {
            return self.join(pfn, order);
        }
        let kind = self.types[pfn as usize / 512];
        let key = key(order, kind);
        let Model { batch, high_min, high_max, is_below_high, is_active, .. } = *self;
        let of = &mut self.cpus[cpu];
        of.factor /= 2;
        of.lists.entry(key).or_default().push_front(pfn);
        of.count += 1 << order;
        if of.freed < batch * 32 {
            of.freed += 1 << order;
        }
        of.high = of.high.max(high_min).min(high_max);
        let lower = (i64::from(of.high) - i64::from(of.freed.max(batch))).max(high_min.into()) as u32;
        let limit = if is_active {
            of.high = lower;
            lower.min(4 * batch)
        } else if high_min == high_max {
            of.high
        } else if is_below_high {
            of.high = lower;
            of.count.max(high_min)
        } else {
            let before = of.high;
            if of.count >= before && before < of.freed + batch {
                of.high = (of.freed + batch).max(high_min).min(high_max);
            }
            before
        };
        if of.count >= limit {
            let excess = of.freed.min(limit - batch).max(batch);
            self.drain(cpu, excess, key);
            if self.free_pages() > self.high_mark + self.boost {
                self.is_below_high = false;
            }
        }
    }

    fn drain(&mut self, cpu: usize, pages: u32, from: (u8, usize)) {
        let mut keys: Vec<(u8, usize)> =
            (0..4).flat_map(|order| (0..3).map(move |kind| (order, kind))).collect();
        keys.extend([(9, UNMOVABLE), (9, MOVABLE)]);
        let start = keys.iter().position(|&key| key == from).unwrap();
        keys.rotate_left(start);
        let mut left = i64::from(pages);
        for key in keys {
            while left > 0
                && let Some(pfn) = self.cpus[cpu].lists.entry(key).or_default().pop_back()
            {
                self.cpus[cpu].count -= 1 << key.0;
                left -= 1 << key.0;
                self.join(pfn, key.0);
            }
        }
    }

    fn refresh(&mut self, cpu: usize) {
        let of = &mut self.cpus[cpu];
        if of.high <= self.high_min {
            return;
        }
        let burst = i64::from(of.count) - i64::from(self.batch * 32);
        of.high = burst.max((of.high - of.high / 8).into()).max(self.high_min.into()) as u32;
        let excess = of.count.saturating_sub(of.high);
        self.drain(cpu, excess, (0, UNMOVABLE));
    }
}

fn key(order: u8, kind: usize) -> (u8, usize) {
    (order, if order == 9 && kind != MOVABLE { UNMOVABLE } else { kind })
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Alloc { cpu: usize, order: u8, kind: usize, heeds_marks: bool, times: usize },
    Free { cpu: usize, which: usize, times: usize },
    Refresh { cpu: usize },
    ReclaimActive(bool),
    DrainAll,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let order = prop_oneof![12 => Just(0u8), 3 => 1..4u8, 2 => 4..10u8, 1 => Just(10u8)];
    let alloc = (
        0..CPUS,
        order,
        prop_oneof![3 => Just(1usize), 1 => Just(0), 1 => Just(2)],
        prop::bool::weighted(0.7),
        1..300usize,
    )
        .prop_map(|(cpu, order, kind, heeds_marks, times)| Action::Alloc {
            cpu,
            order,
            kind,
            heeds_marks,
            times,
        });
    let free = (0..CPUS, any::<usize>(), 1..300usize).prop_map(|(cpu, which, times)| Action::Free {
        cpu,
        which,
        times,
    });
    let action = prop_oneof![
        8 => alloc,
        7 => free,
        1 => (0..CPUS).prop_map(|cpu| Action::Refresh { cpu }),
        1 => any::<bool>().prop_map(Action::ReclaimActive),
        1 => Just(Action::DrainAll),
    ];
    prop::collection::vec(action, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_path_hands_out_what_a_walk_over_the_zones_would(actions in actions()) {
        // A small zone above one of 4 GiB: it is soon left with bits of pageblocks of other types.
        let config = Config { node_pages: vec![(1 << 20) + 2560], cpus: CPUS as u16, ..Config::default() };
        let (mut fast, mut walked) = (Memory::new(&config), Memory::new(&config));
        let mut held: Vec<Pfn> = Vec::new();
        for action in actions {
            match action {
                Action::Alloc { cpu, order, kind, times, .. } => for _ in 0..times {
                    let migrate_type = MigrateType::ALL[kind];
                    let request = Request { order, migrate_type, ..Request::movable(Gfp::KERNEL, NodeId(0)) };
                    let (cpu, rights) = (CpuId(cpu as u16), walked.zones.first_rights(&request));
                    let walk = |memory: &mut Memory| memory.alloc(cpu, &request, Watermark::Low, rights, MemcgId::ROOT);
                    let expected = walk(&mut walked);
                    let taken = fast.alloc_listed(cpu, &request, MemcgId::ROOT).or_else(|| walk(&mut fast));
                    prop_assert_eq!(taken, expected, "{:?}", action);
                    held.extend(taken.map(|(_, pfn)| pfn));
                },
                Action::Free { cpu, which, times } => for at in 0..times.min(held.len()) {
                    let which = if times % 2 == 0 { which % held.len() } else { (which ^ (at * 7919)) % held.len() };
                    let pfn = held.swap_remove(which.min(held.len() - 1));
                    for memory in [&mut fast, &mut walked] {
                        memory.free(CpuId(cpu as u16), pfn);
                    }
                },
                Action::Refresh { cpu } => {
                    for memory in [&mut fast, &mut walked] {
                        memory.refresh_lists(CpuId(cpu as u16));
                    }
                    // Whether records of free blocks are there makes no difference.
                    fast.give_back();
                }
                Action::ReclaimActive(is_active) => for memory in [&mut fast, &mut walked] {
                    memory.zones.set_reclaim_active(NodeId(0), ZoneType::Movable, is_active);
                },
                Action::DrainAll => for memory in [&mut fast, &mut walked] {
                    memory.drain_all_pages();
                },
            }
            for (zone, expected) in fast.zones.info().zip(walked.zones.info()) {
                prop_assert_eq!(format!("{:?}", zone), format!("{:?}", expected), "{:?}", action);
            }
            fast.zones.check_invariants(&fast.folios);
        }
    }

    #[test]
    fn the_allocator_hands_out_the_pages_that_its_rules_say(actions in actions(), fraction in prop_oneof![4 => Just(0u32), 1 => Just(8)]) {
        let config = Config {
            node_pages: vec![PAGES.into()],
            cpus: CPUS as u16,
            percpu_pagelist_high_fraction: fraction,
            ..Config::default()
        };
        let mut memory = Memory::new(&config);
        let mut model = Model::new(&memory.zones.info().next().unwrap());
        let mut held: Vec<(Pfn, u8)> = Vec::new();
        for action in actions {
            match action {
                Action::Alloc { cpu, order, kind, heeds_marks, times } => for _ in 0..times {
                    let migrate_type = MigrateType::ALL[kind];
                    let request = Request { order, migrate_type, ..Request::movable(Gfp::KERNEL, NodeId(0)) };
                    let rights = if heeds_marks { Rights::KSWAPD } else { Rights::NO_WATERMARKS };
                    let taken = memory.alloc(CpuId(cpu as u16), &request, Watermark::Low, rights, MemcgId::ROOT);
                    let taken = taken.map(|(_, pfn)| pfn);
                    prop_assert_eq!(taken, model.alloc(cpu, order, kind, heeds_marks).map(Pfn), "{:?}", action);
                    let Some(pfn) = taken else { break };
                    // A page on an LRU list is movable, whatever its block.
                    if kind == MOVABLE && order == 0 {
                        memory.folios[pfn].set(FolioFlags::CHARGED);
                        memory.folios[pfn].set(FolioFlags::LRU);
                        model.movable.insert(pfn.0);
                    }
                    held.push((pfn, order));
                },
                Action::Free { cpu, which, times } => for at in 0..times.min(held.len()) {
                    // Some of one age, some from all over.
                    let which = if times % 2 == 0 { which % held.len() } else { (which ^ (at * 7919)) % held.len() };
                    let (pfn, order) = held.swap_remove(which.min(held.len() - 1));
                    memory.folios[pfn].clear(FolioFlags::LRU);
                    memory.free(CpuId(cpu as u16), pfn);
                    model.free(cpu, pfn.0, order);
                },
                Action::Refresh { cpu } => {
                    memory.refresh_lists(CpuId(cpu as u16));
                    memory.give_back();
                    model.refresh(cpu);
                }
                Action::ReclaimActive(is_active) => {
                    memory.zones.set_reclaim_active(NodeId(0), ZoneType::Movable, is_active);
                    model.is_active = is_active;
                }
                Action::DrainAll => {
                    memory.drain_all_pages();
                    (0..CPUS).for_each(|cpu| model.drain(cpu, u32::MAX, (0, UNMOVABLE)));
                }
            }
            let zone = memory.zones.info().next().unwrap();
            prop_assert_eq!((zone.free, zone.boost), (model.free_pages(), model.boost), "{:?}", action);
            for (pageset, cpu) in zone.pagesets.iter().zip(&model.cpus) {
                prop_assert_eq!((pageset.count, pageset.high.max(model.high_min)), (cpu.count, cpu.high.max(model.high_min)), "{:?}", action);
            }
            memory.zones.check_invariants(&memory.folios);
            let in_use: u64 = held.iter().map(|(_, order)| 1 << order).sum();
            let on_lists: u64 = zone.pagesets.iter().map(|pageset| u64::from(pageset.count)).sum();
            prop_assert_eq!(in_use + on_lists + zone.free, u64::from(PAGES));
        }
    }
}
