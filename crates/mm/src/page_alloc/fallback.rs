//! Fallback of migrate types: a type without a free block takes another type's. [machine 2.4, 2.8]
//!
//! Kernel memory can't be moved, so one page of it in the middle of movable ones spoils a pageblock permanently. A type that runs out therefore
//! claims the largest block of the others, and with it the pageblock, so that it need not come again soon. If it can't claim one, it steals the
//! smallest. A claim of less than a pageblock mixes types. That raises the watermarks of the zone for a while (boost), and kswapd frees memory in
//! advance.

use crate::memory::folio::{FolioFlags, FolioTable};
use crate::memory::list::List;
use crate::page_alloc::buddy::Buddy;
use crate::page_alloc::request::{MigrateType, Rights};
use crate::units::{MAX_BLOCK_ORDER, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

/// Whose blocks a type takes, first choice first.
fn fallbacks(kind: MigrateType) -> [MigrateType; 2] {
    match kind {
        MigrateType::Unmovable => [MigrateType::Reclaimable, MigrateType::Movable],
        MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
        MigrateType::Movable | MigrateType::HighAtomic => [MigrateType::Reclaimable, MigrateType::Unmovable],
    }
}

/// Least order of a block that movable memory claims: it does no lasting harm where it is.
const CLAIM_ORDER: u8 = PAGEBLOCK_ORDER / 2;
/// Pageblocks whose types an assertion counts, at most: of 8 GiB.
const PAGEBLOCKS_COUNTED: usize = 4096;

/// A request to a zone: order, migrate type and rights.
#[derive(Clone, Copy)]
pub(super) struct Want {
    pub(super) order: u8,
    pub(super) kind: MigrateType,
    pub(super) rights: Rights,
}

/// Least order of a block that is claimed with its pageblock.
#[inline]
fn least_claimed(Want { order, rights, .. }: Want) -> u8 {
    if rights.contains(Rights::NOFRAGMENT) { order.max(PAGEBLOCK_ORDER) } else { order }
}

impl Buddy {
    /// A block for a request, of its own type or another's.
    pub(super) fn take(&mut self, folios: &mut FolioTable, want: Want) -> Option<u32> {
        let Want { order, kind, rights } = want;
        if rights.contains(Rights::HIGHATOMIC)
            && let Some(pfn) = self.take_smallest(folios, order, MigrateType::HighAtomic)
        {
            return Some(pfn);
        }
        if let Some(pfn) = self.take_smallest(folios, order, kind) {
            return Some(pfn);
        }
        self.open_rest(folios);
        let others = self.claim(folios, want).or_else(|| self.steal(folios, want));
        others.or_else(|| self.take_reserved(folios, want))
    }

    /// A block of those that are kept for requests that can't wait.
    #[inline]
    pub(super) fn take_reserved(&mut self, folios: &mut FolioTable, want: Want) -> Option<u32> {
        let may = want.rights.intersects(Rights::HIGHATOMIC | Rights::OOM | Rights::NON_BLOCK);
        if may { self.take_smallest(folios, want.order, MigrateType::HighAtomic) } else { None }
    }

    /// So many blocks of one order for a CPU's list, at its tail; as many as there are. Returns how many.
    pub(super) fn take_bulk(
        &mut self,
        folios: &mut FolioTable,
        want: Want,
        number: u32,
        into: &mut List,
    ) -> u32 {
        let mut taken = 0;
        // Once a block had to be stolen, the rest is too: nothing is freed meanwhile.
        let mut steals = false;
        while taken < number {
            if !steals {
                taken += self.take_smallest_of(folios, want.order, want.kind, number - taken, into);
                if taken == number {
                    break;
                }
                self.open_rest(folios);
                if let Some(pfn) = self.claim(folios, want) {
                    into.push_tail(folios, pfn);
                    taken += 1;
                    continue;
                }
            }
            let Some(pfn) = self.steal(folios, want) else { break };
            steals = true;
            into.push_tail(folios, pfn);
            taken += 1;
        }
        debug_assert!(taken <= number, "{taken} blocks are fetched of {number} that were wanted");
        taken
    }

    /// Returns true if a type has a block of at least this order, or another has one that it may claim.
    pub(super) fn gives(&self, order: u8, kind: MigrateType) -> bool {
        let claims = if kind == MigrateType::Movable { order.max(CLAIM_ORDER) } else { order };
        (order..=MAX_BLOCK_ORDER).any(|from| {
            self.has(from, kind)
                || from >= claims && fallbacks(kind).into_iter().any(|other| self.has(from, other))
        })
    }

    /// Returns true if a request that leaves other types' pageblocks alone finds nothing. If a zone has only parts of such pageblocks left, each request
    /// visits it on its way to the next zone.
    #[inline]
    pub(super) fn keeps_nothing_for(&self, want: Want) -> bool {
        let Want { order, kind, rights } = want;
        let others = || fallbacks(kind).into_iter().fold(0, |orders, other| orders | self.orders_of(other));
        rights.contains(Rights::NOFRAGMENT)
            && self.orders_of(kind) >> order == 0
            && others() >> least_claimed(want) == 0
            && !self.has_rest()
    }

    /// The largest block of another type, and its pageblock with it.
    #[doc(alias = "__rmqueue_claim")]
    fn claim(&mut self, folios: &mut FolioTable, want: Want) -> Option<u32> {
        let Want { order, kind, .. } = want;
        let least = least_claimed(want);
        for from in (least..=MAX_BLOCK_ORDER).rev() {
            let Some(other) = fallbacks(kind).into_iter().find(|&other| self.has(from, other)) else {
                continue;
            };
            if from < CLAIM_ORDER && kind == MigrateType::Movable {
                break;
            }
            if from >= PAGEBLOCK_ORDER {
                let pfn = self.pop(folios, from, other)?;
                for at in (0..1 << from).step_by(PAGEBLOCK_PAGES as usize) {
                    self.set_type(pfn + at, kind);
                }
                self.expand(folios, pfn, from, order, kind);
                return Some(pfn);
            }
            self.is_mixing = true;
            let pfn = self.first(from, other)?;
            let Some(first) = self.whole_pageblock(pfn) else { continue };
            if self.pages_alike(folios, first, kind, other) >= PAGEBLOCK_PAGES / 2 {
                self.convert(folios, first, kind);
                return self.take_smallest(folios, order, kind);
            }
        }
        None
    }

    /// The smallest block of another type, which stays in that type's pageblock.
    #[doc(alias = "__rmqueue_steal")]
    fn steal(&mut self, folios: &mut FolioTable, want: Want) -> Option<u32> {
        let Want { order, kind, rights } = want;
        if rights.contains(Rights::NOFRAGMENT) {
            return None;
        }
        debug_assert!(!self.has(order, kind), "a block is stolen though {kind:?} has one");
        for from in order..=MAX_BLOCK_ORDER {
            if let Some(other) = fallbacks(kind).into_iter().find(|&other| self.has(from, other)) {
                let pfn = self.pop(folios, from, other)?;
                self.expand(folios, pfn, from, order, other);
                return Some(pfn);
            }
        }
        None
    }

    /// Pages of a pageblock that are free or would suit the type that claims it.
    fn pages_alike(&self, folios: &FolioTable, first: u32, kind: MigrateType, other: MigrateType) -> u64 {
        let (mut free, mut movable) = (0, 0);
        let mut pfn = first;
        while pfn < first + PAGEBLOCK_PAGES as u32 {
            if let Some(order) = folios.free_order(Pfn(pfn)) {
                free += 1 << order;
                pfn += 1 << order;
                continue;
            }
            let folio = &folios[Pfn(pfn)];
            let pages = if folio.has(FolioFlags::LRU) { folio.pages() } else { 0 };
            movable += pages;
            pfn += pages.max(1) as u32;
        }
        // Other pages are neither free nor movable: a CPU holds them, or they are kernel memory of any type. The claimer hopes that they have its own
        // type.
        free + match (kind, other) {
            (MigrateType::Movable, _) => movable,
            (_, MigrateType::Movable) => (PAGEBLOCK_PAGES - free).saturating_sub(movable),
            _ => 0,
        }
    }

    /// Keeps the pageblock of a block for requests that can't wait: at most a hundredth of the zone.
    pub(super) fn reserve_highatomic(&mut self, folios: &mut FolioTable, pfn: u32, managed: u64) {
        let most = managed / 100 / PAGEBLOCK_PAGES;
        if self.highatomic_blocks < most
            && self.type_of(pfn) != MigrateType::HighAtomic
            && let Some(first) = self.whole_pageblock(pfn)
        {
            self.convert(folios, first, MigrateType::HighAtomic);
            self.highatomic_blocks += 1;
            assert!(self.highatomic_blocks <= most, "more pageblocks are kept than a hundredth of the zone");
            self.assert_highatomic_counted();
        }
    }

    /// Gives one such pageblock that has a free page to who needs memory; all but one, unless the last is asked for, too.
    pub(super) fn release_highatomic(
        &mut self,
        folios: &mut FolioTable,
        kind: MigrateType,
        even_last: bool,
    ) -> bool {
        if self.highatomic_blocks <= u64::from(!even_last) {
            return false;
        }
        let Some(pfn) = (0..=MAX_BLOCK_ORDER).find_map(|order| self.first(order, MigrateType::HighAtomic))
        else {
            return false;
        };
        let first = self.whole_pageblock(pfn).expect("only whole pageblocks are kept");
        assert_eq!(self.type_of(first), MigrateType::HighAtomic, "a pageblock is given up that is not kept");
        assert_ne!(kind, MigrateType::HighAtomic, "a pageblock that is kept is given to who keeps it");
        self.convert(folios, first, kind);
        self.highatomic_blocks -= 1;
        self.assert_highatomic_counted();
        true
    }

    /// A pageblock is kept from now on, or given up: as many are counted as have the type.
    #[inline]
    fn assert_highatomic_counted(&self) {
        if cfg!(debug_assertions) && self.types.len() <= PAGEBLOCKS_COUNTED {
            let kept = self.types.iter().filter(|&&kind| kind == MigrateType::HighAtomic).count();
            assert_eq!(
                self.highatomic_blocks, kept as u64,
                "pageblocks that are kept, and those of the type"
            );
        }
    }
}
