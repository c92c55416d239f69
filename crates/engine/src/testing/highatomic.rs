//! A second implementation of pageblocks kept for requests that can't wait, and of fragmentation. A pageblock is a row of frames that
//! are free or not, and all questions are answered by scanning the rows.

use crate::memory::Memory;
use crate::page_alloc::request::{Gfp, MigrateType, Request, Rights};
use crate::page_alloc::watermark::Watermark;
use crate::units::MAX_BLOCK_ORDER;
use crate::*;
use proptest::prelude::*;

/// Three times the hundredth that holds one pageblock.
const PAGES: u32 = 3 * 51_200;
const BLOCK: usize = 512;
const NODE: NodeId = NodeId(0);
const CPU: CpuId = CpuId(0);

struct Block {
    is_free: [bool; BLOCK],
    is_reserved: bool,
    /// Order of the largest run of free frames that begins at a multiple of its size.
    largest: Option<u8>,
}

impl Block {
    fn free(&self) -> u64 {
        self.is_free.iter().filter(|&&is_free| is_free).count() as u64
    }

    fn set(&mut self, frames: std::ops::Range<usize>, is_free: bool) {
        self.is_free[frames].fill(is_free);
        let has = |order: &u8| self.is_free.chunks(1 << order).any(|run| run.iter().all(|&free| free));
        self.largest = (0..=9).rev().find(has);
    }
}

struct Model(Vec<Block>);

impl Model {
    fn new() -> Model {
        let block = || Block { is_free: [true; BLOCK], is_reserved: false, largest: Some(9) };
        Model((0..PAGES as usize / BLOCK).map(|_| block()).collect())
    }

    fn block_of(&mut self, pfn: Pfn) -> &mut Block {
        &mut self.0[pfn.0 as usize / BLOCK]
    }

    fn set(&mut self, pfn: Pfn, order: u8, is_free: bool) {
        let at = pfn.0 as usize % BLOCK;
        self.block_of(pfn).set(at..at + (1 << order), is_free);
    }

    fn reserved(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(|&block| self.0[block].is_reserved)
    }

    fn free_reserved(&self) -> u64 {
        self.reserved().map(|block| self.0[block].free()).sum()
    }

    /// Returns true if a request is served at the min watermark; a request that can't wait may go down to three eighths
    /// of it.
    fn serves(&self, order: u8, is_atomic: bool, min: u64) -> bool {
        let free: u64 = self.0.iter().map(Block::free).sum();
        let (usable, mark) = match is_atomic {
            true => (free, min - min / 2 - (min - min / 2) / 4),
            false => (free - self.free_reserved(), min),
        };
        let may_use = |block: &&Block| is_atomic || !block.is_reserved;
        let has_block = self.0.iter().filter(may_use).any(|block| block.largest >= Some(order));
        usable.saturating_sub((1 << order) - 1) > mark && has_block
    }
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Alloc { order: u8, is_atomic: bool, times: usize },
    Free { which: usize, times: usize },
    Release { even_last: bool },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let order = || prop_oneof![1 => Just(0u8), 2 => 1..4u8, 4 => 4..10u8];
    // The most memory goes to others, so that what is kept comes to matter.
    let fill =
        (7..10u8, 1..200usize).prop_map(|(order, times)| Action::Alloc { order, is_atomic: false, times });
    let alloc = (order(), any::<bool>(), 1..30usize).prop_map(|(order, is_atomic, times)| Action::Alloc {
        order,
        is_atomic,
        times,
    });
    let free = (any::<usize>(), 1..60usize).prop_map(|(which, times)| Action::Free { which, times });
    let release = any::<bool>().prop_map(|even_last| Action::Release { even_last });
    prop::collection::vec(prop_oneof![3 => fill, 4 => alloc, 4 => free, 1 => release], 1..40)
}

/// The fragmentation index by its definition, from the free blocks one by one. [machine 2.11]
fn fragmentation_index(order: u8, free_orders: &[u8]) -> i64 {
    if free_orders.iter().any(|&free| free >= order) {
        return -1000;
    }
    let pages: i64 = free_orders.iter().map(|&free| 1 << free).sum();
    match free_orders.len() as i64 {
        0 => 0,
        blocks => 1000 - (1000 + pages * 1000 / (1 << order)) / blocks,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pageblocks_are_kept_for_who_cannot_wait_as_the_rules_say(actions in actions()) {
        let config = Config { node_pages: vec![PAGES.into()], watermark_boost_factor: 0, ..Config::default() };
        let mut memory = Memory::new(&config);
        let mut model = Model::new();
        let mut held: Vec<(Pfn, u8)> = Vec::new();
        let kind = memory.zones.info().next().unwrap().zone;
        let request = |order, gfp| Request { order, ..Request::kernel(MigrateType::Unmovable, gfp, NODE) };
        for action in actions {
            match action {
                Action::Alloc { order, is_atomic, times } => for _ in 0..times {
                    let mut rights = Rights::KSWAPD;
                    if is_atomic {
                        rights |= Rights::MIN_RESERVE | Rights::NON_BLOCK;
                        rights.set(Rights::HIGHATOMIC, order > 0);
                    }
                    let serves = model.serves(order, is_atomic, memory.zones.zone(NODE, kind).mark(Watermark::Min));
                    let request = request(order, if is_atomic { Gfp::ATOMIC } else { Gfp::KERNEL });
                    let taken = memory.alloc(CPU, &request, Watermark::Min, rights, MemcgId::ROOT);
                    let taken = taken.map(|(_, pfn)| pfn);
                    prop_assert_eq!(taken.is_some(), serves, "{:?}", action);
                    let Some(pfn) = taken else { break };
                    memory.drain_all_pages();
                    let reserved = model.reserved().count() as u32;
                    let most = PAGES / 100 / BLOCK as u32;
                    let prefers = model.reserved().any(|block| model.0[block].largest >= Some(order));
                    let block = model.block_of(pfn);
                    prop_assert!(is_atomic || !block.is_reserved, "{:?} got {:?} of those kept", action, pfn);
                    // Up to order 3, and of a whole pageblock, CPUs hold some of the others.
                    if is_atomic && (4..9).contains(&order) {
                        prop_assert_eq!(block.is_reserved, prefers, "{:?} got {:?}", action, pfn);
                    }
                    block.is_reserved |= is_atomic && order > 0 && reserved < most;
                    model.set(pfn, order, false);
                    held.push((pfn, order));
                },
                Action::Free { which, times } => for at in 0..times.min(held.len()) {
                    let (pfn, order) = held.swap_remove((which ^ (at * 7919)) % held.len());
                    memory.free(CPU, pfn);
                    memory.drain_all_pages();
                    model.set(pfn, order, true);
                },
                Action::Release { even_last } => {
                    let before: Vec<usize> = model.reserved().collect();
                    let gives = before.len() > usize::from(!even_last) && model.free_reserved() > 0;
                    prop_assert_eq!(memory.release_highatomic(&request(0, Gfp::KERNEL), even_last), gives);
                    let zone = memory.zones.zone(NODE, kind);
                    let is_kept = |block: usize| zone.type_of(Pfn((block * BLOCK) as u32)) == MigrateType::HighAtomic;
                    let given: Vec<usize> = before.into_iter().filter(|&block| !is_kept(block)).collect();
                    prop_assert_eq!(given.len(), usize::from(gives), "one at a time");
                    for block in given {
                        prop_assert!(model.0[block].free() > 0, "it would help nobody");
                        model.0[block].is_reserved = false;
                    }
                }
            }
            let zone = memory.zones.zone(NODE, kind);
            prop_assert_eq!(zone.highatomic_free_pages(), model.free_reserved(), "{:?}", action);
            let is_kept = |block: usize| zone.type_of(Pfn((block * BLOCK) as u32)) == MigrateType::HighAtomic;
            prop_assert!((0..model.0.len()).all(|block| is_kept(block) == model.0[block].is_reserved), "{:?}", action);
            let free_orders: Vec<u8> = memory.zones.free_blocks(&memory.folios, NODE).map(|(_, order)| order).collect();
            let unused = u64::from(PAGES) - u64::from(zone.used_so_far().end);
            let unused = std::iter::repeat_n(10, unused as usize >> 10);
            let free_orders: Vec<u8> = free_orders.into_iter().chain(unused).collect();
            for order in 0..=MAX_BLOCK_ORDER {
                prop_assert_eq!(zone.fragmentation_index(order), fragmentation_index(order, &free_orders), "order {}", order);
            }
            memory.zones.check_invariants(&memory.folios);
        }
    }
}

#[test]
fn free_memory_that_lies_in_single_pages_is_all_fragmentation() {
    let singles = [0; 4000];
    assert_eq!(fragmentation_index(9, &singles), 1000 - (1000 + 4000 * 1000 / 512) / 4000);
    assert_eq!(fragmentation_index(9, &[8]), 1000 - (1000 + 500), "one half of what is wanted, in one piece");
}
