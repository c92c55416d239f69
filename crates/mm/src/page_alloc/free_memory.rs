//! Free memory as it was found on a machine: which blocks are free, in the order of their lists, the types of pageblocks, and what CPUs hold.
//!
//! A zone that starts out empty hands out its memory from one end. One that has run for a while does not: kernel memory is scattered among pageblocks
//! without a rule. This decides which allocations have to mix types, and so when the watermarks are raised. The known distribution is given here.
//! [machine 2.8]

use std::fmt::Write;

use crate::memory::folio::{Folio, FolioTable};
use crate::page_alloc::buddy::Buddy;
use crate::page_alloc::pcp::{self, Pcp, PcpSizes};
use crate::page_alloc::request::MigrateType;
use crate::page_alloc::zone::Zone;
use crate::units::{MAX_BLOCK_ORDER, PAGEBLOCK_PAGES, Pfn};

/// A list of free blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeBlocks {
    /// Each has 2^order pages.
    pub order: u8,
    /// The users that they are for.
    pub kind: MigrateType,
    /// First frames, that of the block to be taken next first.
    pub first: Vec<Pfn>,
}

/// Free pages of a zone that a CPU holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FreeOfCpu {
    /// Pages that it may hold before it gives some back.
    pub high: u32,
    /// The next refill takes 2^this batches.
    pub alloc_factor: u32,
    /// Pages freed lately.
    pub free_count: u32,
    /// Its lists.
    pub blocks: Vec<FreeBlocks>,
}

/// The free memory of a zone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FreeMemory {
    /// Frames that the allocator was never given.
    pub reserved: u64,
    /// Pages that fallbacks have put on top of the marks.
    pub boost: u64,
    /// The types of its pageblocks, from the first on; those beyond are movable.
    pub pageblocks: Vec<MigrateType>,
    /// Its lists.
    pub blocks: Vec<FreeBlocks>,
    /// Free pages that each CPU holds.
    pub cpus: Vec<FreeOfCpu>,
}

impl FreeMemory {
    /// All lists.
    fn lists(&self) -> impl Iterator<Item = &FreeBlocks> {
        self.blocks.iter().chain(self.cpus.iter().flat_map(|cpu| &cpu.blocks))
    }
}

/// Frames of a zone that are free, and on no list.
struct Loose {
    start: u32,
    is_free: Vec<bool>,
}

impl Loose {
    /// A block that goes to a list; an error where it is not free.
    fn take(&mut self, pfn: Pfn, order: u8) -> Result<(), String> {
        let what =
            |is: &str| Err(format!("the block of order {order} that begins with frame {} {is}", pfn.0));
        let size = 1_u64 << order;
        let first = u64::from(pfn.0).checked_sub(self.start.into());
        let frames = first.and_then(|first| self.is_free.get_mut(first as usize..(first + size) as usize));
        match frames {
            None => what("is not of the zone"),
            Some(_) if !u64::from(pfn.0).is_multiple_of(size) => {
                what("begins with a frame that no such block does")
            }
            Some(frames) if frames.contains(&false) => what("is in use, or on two lists"),
            Some(frames) => {
                frames.fill(false);
                Ok(())
            }
        }
    }
}

impl Zone {
    /// Makes this its free memory. Everything on these lists must be free; what is free and on none of them is handed back to the caller,
    /// whose it is from now on. After an error the zone is good for nothing.
    pub(super) fn set_free(
        &mut self,
        folios: &mut FolioTable,
        free: &FreeMemory,
    ) -> Result<Vec<Pfn>, String> {
        self.check_free(free)?;
        self.drain(folios, None);
        let mut loose = self.buddy.take_all(folios);
        self.buddy.set_types(&free.pageblocks);
        for list in &free.blocks {
            for &pfn in &list.first {
                loose.take(pfn, list.order)?;
                self.buddy.put_last(folios, pfn, list.order, list.kind)?;
            }
        }
        let sizes = self.pcp_sizes;
        for (pcp, found) in self.pcps.iter_mut().zip(&free.cpus) {
            let pcp = pcp.get_or_insert_default();
            for list in &found.blocks {
                list.first.iter().try_for_each(|&pfn| loose.take(pfn, list.order))?;
            }
            pcp.set(folios, found, &sizes);
        }
        self.boost = free.boost;
        self.below_high = false;
        let left = (loose.start..).zip(&loose.is_free).filter(|(_, is_free)| **is_free);
        let left: Vec<Pfn> = left.map(|(pfn, _)| Pfn(pfn)).collect();
        for &pfn in &left {
            folios[pfn] = Folio::new(self.node, 0);
        }
        Ok(left)
    }

    /// What no zone can hold.
    fn check_free(&self, free: &FreeMemory) -> Result<(), String> {
        let frames = u64::from(self.end() - self.start);
        let blocks = frames.div_ceil(PAGEBLOCK_PAGES);
        let mut wrong = String::new();
        let mut say = |is_wrong: bool, what: std::fmt::Arguments| {
            if is_wrong && wrong.is_empty() {
                write!(wrong, "{what}").expect("a string takes text");
            }
        };
        let (reserved, types, cpus) = (free.reserved, free.pageblocks.len() as u64, free.cpus.len());
        say(reserved >= frames, format_args!("{reserved} frames are reserved in a zone of {frames}"));
        say(types > blocks, format_args!("{types} pageblocks have a type in a zone of {blocks}"));
        say(
            cpus > self.pcps.len(),
            format_args!("{cpus} CPUs hold pages, and the machine has {}", self.pcps.len()),
        );
        for list in free.lists() {
            say(list.order > MAX_BLOCK_ORDER, format_args!("there are no blocks of order {}", list.order));
        }
        for list in free.cpus.iter().flat_map(|cpu| &cpu.blocks) {
            let is_known = pcp::is_listed(list.order) && list.kind != MigrateType::HighAtomic;
            say(
                !is_known,
                format_args!("a CPU has no list of {:?} blocks of order {}", list.kind, list.order),
            );
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

impl Buddy {
    /// Takes everything that is free off the lists.
    fn take_all(&mut self, folios: &mut FolioTable) -> Loose {
        let mut loose =
            Loose { start: self.start(), is_free: vec![false; (self.end() - self.start()) as usize] };
        let mut take = |pfn: u32, order: u8| {
            let first = (pfn - loose.start) as usize;
            loose.is_free[first..first + (1 << order)].fill(true);
        };
        // Frames that were never used have no records yet.
        while let Some(pfn) = self.take_smallest(folios, MAX_BLOCK_ORDER, MigrateType::Movable) {
            take(pfn, MAX_BLOCK_ORDER);
        }
        self.open_rest(folios);
        let listed: Vec<(u32, u8)> = self.iter(folios).map(|(pfn, order, _)| (pfn, order)).collect();
        for (pfn, order) in listed {
            self.isolate(folios, Pfn(pfn));
            take(pfn, order);
        }
        assert_eq!(self.free_pages, 0, "pages are free after all have been taken");
        loose
    }
}

impl Pcp {
    /// Holds what was found, and nothing else.
    fn set(&mut self, folios: &mut FolioTable, found: &FreeOfCpu, sizes: &PcpSizes) {
        assert_eq!(self.count, 0, "a CPU that holds pages is given others");
        for list in &found.blocks {
            for &pfn in &list.first {
                self.put_last(folios, pfn, list.order, list.kind);
            }
        }
        self.set_limits(found.high, found.alloc_factor, found.free_count, sizes);
    }
}
