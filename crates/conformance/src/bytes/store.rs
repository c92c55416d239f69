//! The bytes of memory and devices: frames, swap slots, and transfers between them.
//!
//! Copies and transfers take time: an operation waits in a queue, and is carried out in any order that this allows. The place of
//! each page is known immediately, when the engine asks for it; the contents follow.
//!
//! The engine names the frame of each access. The store knows it as well: the operation that fills a frame, or its access, names
//! the page, and no page is in two frames. The two must agree, access by access.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageout_engine::{
    Compressed, Engine, FileId, FullPlug, IoError, IoId, Op, OpQueue, PageCacheEvent, Pfn, SwapId,
};

use super::contents::{Page, of_file};
use super::gate::Gate;
use super::pool::Pool;

/// Contents of freed and of never used memory.
const GARBAGE: u64 = 0xdead_beef_dead_beef;

/// Operations that wait at most.
const WAITING_MAX: usize = 24;

/// Where a transfer's data is outside memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    File(FileId, u64),
    Slot(SwapId, u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) io: IoId,
    medium: Medium,
    frames: Vec<Pfn>,
    pub(crate) is_write: bool,
    /// No task's access depends on it.
    pub(crate) is_readahead: bool,
    /// Contents of the frames when a write began.
    at_start: Vec<u64>,
}

/// A device that ends so many of a hundred of a full plug's writes before the batch does, and fails at some of those. Whether any
/// has ended is noted.
pub(crate) fn race(writes_won: u8, ended_early: Arc<AtomicBool>) -> FullPlug {
    let mut seed = 0_u64;
    let mut draw = move |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    Box::new(move |writes| {
        let ended = writes.iter().take_while(|_| draw(100) < writes_won.into()).count();
        ended_early.fetch_or(ended > 0, Relaxed);
        (0..ended).map(|_| if draw(10) == 0 { Err(IoError::Device) } else { Ok(()) }).collect()
    })
}

/// All that holds bytes.
#[derive(Default)]
pub(crate) struct Store {
    frames: BTreeMap<Pfn, u64>,
    slots: BTreeMap<(SwapId, u32), u64>,
    /// What was compressed in place of it.
    compressed: BTreeMap<(SwapId, u32), u64>,
    /// The same by place.
    pool: Pool,
    /// The page that each of them holds, as soon as that is known, when all that waits has been carried out.
    pages: BTreeMap<Pfn, Option<Page>>,
    slot_pages: BTreeMap<(SwapId, u32), Option<Page>>,
    compressed_pages: BTreeMap<(SwapId, u32), Option<Page>>,
    /// The frame that a page is in.
    home: BTreeMap<Page, Pfn>,
    /// Frames that were filled from what was compressed, and since then written to the device.
    uncompressed: BTreeSet<Pfn>,
    written_back: BTreeSet<Pfn>,
    /// Pages of files that are being removed, and by how many calls. One may be in a frame again before its former frame is free.
    going: BTreeMap<Page, u32>,
    /// Those of them whose folio stays, with zeroes in their place.
    cleared: BTreeSet<Page>,
    /// Operations that have yet to be carried out.
    queue: OpQueue,
    /// Which frames hold what they should, and who looks at them.
    pub(crate) gate: Gate,
    /// Pages of files on their device, as far as they were written.
    blocks: BTreeMap<(FileId, u64), u64>,
    /// Pages that it has taken since the last flush began, and pages taken before the current flush.
    unflushed: BTreeSet<(FileId, u64)>,
    flushing: BTreeMap<FileId, BTreeSet<u64>>,
    transfers: Vec<Transfer>,
    /// Pages that the engine's events say are in page caches.
    cached: BTreeSet<(FileId, u64)>,
}

impl Transfer {
    /// Both are of the same slot, or of the same block while one of them writes it.
    fn overlaps(&self, other: &Transfer) -> bool {
        match (self.medium, other.medium) {
            (Medium::File(file, page), Medium::File(of, at)) if self.is_write || other.is_write => {
                let ends = [page + self.frames.len() as u64, at + other.frames.len() as u64];
                file == of && page < ends[1] && at < ends[0]
            }
            (Medium::Slot(swap, slot), Medium::Slot(of, at)) => {
                let ends = [slot + self.frames.len() as u32, at + other.frames.len() as u32];
                swap == of && slot < ends[1] && at < ends[0]
            }
            _ => false,
        }
    }

    fn slots(&self) -> Option<(SwapId, Range<u32>)> {
        match self.medium {
            Medium::File(..) => None,
            Medium::Slot(swap, slot) => Some((swap, slot..slot + self.frames.len() as u32)),
        }
    }

    /// The pages of a file that it has written.
    pub(crate) fn written_pages(&self) -> impl Iterator<Item = (FileId, u64)> {
        let written = match self.medium {
            Medium::File(file, page) if self.is_write => Some((file, page, self.frames.len() as u64)),
            _ => None,
        };
        written.into_iter().flat_map(|(file, page, pages)| (page..page + pages).map(move |at| (file, at)))
    }
}

impl Store {
    /// An empty store, whose frames have readers through this gate.
    pub(crate) fn behind(gate: Gate) -> Store {
        Store { gate, ..Store::default() }
    }

    /// Frames in use.
    pub(crate) fn frames(&self) -> usize {
        self.pages.len()
    }

    /// Returns true if a page is in a frame.
    pub(crate) fn is_in_use(&self, pfn: Pfn) -> bool {
        self.pages.contains_key(&pfn)
    }

    /// The frame that a page is in.
    pub(crate) fn home(&self, page: Page) -> Option<Pfn> {
        self.home.get(&page).copied()
    }

    /// Transfers in flight.
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// Where a transfer is among those in flight.
    pub(crate) fn transfer_at(&self, io: IoId) -> usize {
        let at = self.transfers.iter().position(|transfer| transfer.io == io);
        at.unwrap_or_else(|| panic!("{io:?} is not in flight"))
    }

    /// The pages that frames and slots hold.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Page> {
        self.pages.values().chain(self.slot_pages.values()).copied().flatten()
    }

    /// Returns the contents of a frame, which must be the page that the store knows. The access waits until no operation in the queue
    /// uses the frame.
    pub(crate) fn value_mut(&mut self, pfn: Pfn, page: Page) -> &mut u64 {
        while self.queue.names(pfn) {
            self.carry_out_youngest();
        }
        if self.page_in(pfn).is_none() {
            self.pages.insert(pfn, Some(page));
            self.settle_in(page, pfn);
        }
        assert_eq!(
            self.home.get(&page),
            Some(&pfn),
            "the frame that {page:?} is accessed in, and the one it is in"
        );
        assert!(self.gate.is_open(pfn), "{page:?} is accessed in {pfn:?}, which is closed");
        self.frames.get_mut(&pfn).expect("a home is a frame")
    }

    /// The same for a write, which may be the first use of a page that the store sees: a complete overwrite reads
    /// nothing.
    pub(crate) fn written_mut(&mut self, pfn: Pfn, page: Page) -> &mut u64 {
        if matches!(page, Page::Regular(..)) && !self.home.contains_key(&page) {
            while self.queue.names(pfn) {
                self.carry_out_youngest();
            }
            self.name(pfn, Some(page));
            self.fill(pfn, GARBAGE);
            self.gate.filled(pfn);
        }
        self.value_mut(pfn, page)
    }

    /// Contents of a file's page on its device.
    pub(crate) fn block(&self, file: FileId, page: u64) -> u64 {
        self.blocks.get(&(file, page)).copied().unwrap_or_else(|| of_file(file, page))
    }

    /// A flush of a file's device begins, or the current one ends, and the pages that it should save are
    /// returned.
    pub(crate) fn flush(&mut self, file: FileId) -> Option<BTreeSet<u64>> {
        let ended = self.flushing.remove(&file);
        if ended.is_none() {
            let taken = self.unflushed.extract_if(.., |&(of, _)| of == file);
            let taken = taken.map(|(_, page)| page).collect();
            self.flushing.insert(file, taken);
        }
        ended
    }

    /// The device has lost a page that it had taken; false: it has taken a later write of it, which is safe.
    pub(crate) fn lose(&mut self, file: FileId, page: u64) -> bool {
        let is_lost = !self.unflushed.contains(&(file, page));
        if is_lost {
            self.blocks.insert((file, page), GARBAGE);
        }
        is_lost
    }

    pub(crate) fn is_going(&mut self, page: Page) {
        *self.going.entry(page).or_default() += 1;
    }

    /// A page of a file is gone. Frames that had it stay in use for a while.
    pub(crate) fn is_gone(&mut self, page: Page) {
        if !self.cleared.remove(&page) {
            self.home.remove(&page);
        }
        let by = self.going.get_mut(&page).expect("it was going");
        *by -= 1;
        if *by == 0 {
            self.going.remove(&page);
        }
    }

    pub(crate) fn note_page_cache(&mut self, event: PageCacheEvent) {
        let PageCacheEvent { page: first, order, .. } = event;
        (first..first + (1 << order))
            .for_each(|page| self.note_cached_page(PageCacheEvent { page, ..event }));
    }

    fn note_cached_page(&mut self, event: PageCacheEvent) {
        let PageCacheEvent { file, page, removed, .. } = event;
        let changed =
            if removed { self.cached.remove(&(file, page)) } else { self.cached.insert((file, page)) };
        assert!(changed, "{file:?} page {page} enters or leaves the page cache twice");
        for page in [Page::Regular(file, page), Page::Tmpfs(file, page)] {
            if removed && self.going.contains_key(&page) {
                self.home.remove(&page);
            }
        }
    }

    /// Takes note of an operation, which is carried out later: from now on the engine assumes its result.
    pub(crate) fn submit(&mut self, engine: &Engine, op: Op) {
        self.queue.push(op, |io| engine.frames_of(io).collect());
        self.check_transfers(op);
        match op {
            // Whose it is shows when it is accessed.
            Op::Zero { pfn, pages } => {
                (0..pages).for_each(|at| self.name(Pfn(pfn.0 + at), None));
            }
            Op::ReadFile { io, file, page, pages, .. } => {
                let frames: Vec<Pfn> = engine.frames_of(io).collect();
                assert_eq!(frames.len(), pages as usize, "a frame for each page");
                for (at, &pfn) in (0..).zip(&frames) {
                    self.name(pfn, Some(Page::Regular(file, page + at)));
                }
            }
            Op::WriteFile { file, page, pfn, pages, .. } => {
                for at in 0..pages {
                    let pfn = Pfn(pfn.0 + at);
                    let (is, to) = (self.page_in(pfn), Page::Regular(file, page + u64::from(at)));
                    assert_eq!(is, Some(to), "{pfn:?} is written to another page");
                }
            }
            // What is gone of a folio that stays is in its frames still, as zeroes.
            Op::Clear { pfn, pages } => {
                let pages = (0..pages).filter_map(|at| self.page_in(Pfn(pfn.0 + at)));
                let pages: Vec<Page> = pages.collect();
                self.cleared.extend(pages);
            }
            Op::ReadSwap { swap, slot, pfn, .. } | Op::ReadSwapNow { swap, slot, pfn } => {
                let page = self.slot_pages.get(&(swap, slot)).copied();
                self.name(pfn, page.unwrap_or_else(|| panic!("slot {slot} is read but was not written")));
            }
            Op::WriteSwap { swap, slot, pfn, pages, .. } => {
                (0..pages).for_each(|at| self.note_slot(swap, slot + at, Pfn(pfn.0 + at)));
            }
            Op::WriteSwapNow { swap, slot, pfn } => self.note_slot(swap, slot, pfn),
            Op::ZswapStore { swap, slot, pfn, .. } => {
                self.compressed_pages.insert((swap, slot), self.page_in(pfn));
            }
            Op::ZswapMove { .. } => {}
            Op::ZswapLoad { swap, slot, pfn, .. } => {
                self.uncompressed.insert(pfn);
                let page = self.compressed_pages.get(&(swap, slot)).copied();
                self.name(
                    pfn,
                    page.unwrap_or_else(|| panic!("slot {slot} has no entry to fill {pfn:?} from")),
                );
            }
            Op::ZswapFree { swap, slot } => {
                let was = self.compressed_pages.remove(&(swap, slot));
                assert!(was.is_some(), "slot {slot} has no entry to free");
            }
            Op::Copy { from, to, pages } => {
                for (from, to) in (0..pages).map(|at| (Pfn(from.0 + at), Pfn(to.0 + at))) {
                    let page = self.page_in(from);
                    let before = self.pages.insert(to, page);
                    assert!(before.is_none(), "{to:?} is filled while it holds {before:?}");
                    // A page that could not be read is at home nowhere.
                    if let Some(home) =
                        page.and_then(|page| self.home.get_mut(&page)).filter(|home| **home == from)
                    {
                        *home = to;
                    }
                }
            }
            Op::FreeFrame { pfn, pages } => {
                for pfn in (0..pages).map(|at| Pfn(pfn.0 + at)) {
                    self.gate.emptied(pfn);
                    let page = self.pages.remove(&pfn);
                    self.uncompressed.remove(&pfn);
                    self.written_back.remove(&pfn);
                    let page = page.unwrap_or_else(|| panic!("{pfn:?} is freed but not in use"));
                    if let Some(page) = page.filter(|page| self.home.get(page) == Some(&pfn)) {
                        self.home.remove(&page);
                    }
                }
            }
            Op::PunchHole { file, page, pages } => {
                let in_hole = |(of, at): (FileId, u64)| of == file && (page..page + pages).contains(&at);
                let late = self.transfers.iter().find(|transfer| transfer.written_pages().any(in_hole));
                assert!(late.is_none(), "{op:?} while {late:?} is in flight");
                self.unflushed.retain(|&of| !in_hole(of));
                if let Some(taken) = self.flushing.get_mut(&file) {
                    taken.retain(|&at| !in_hole((file, at)));
                }
            }
            Op::FreeSlot { swap, slot } => {
                self.slot_pages.remove(&(swap, slot));
            }
        }
    }

    /// For any request of the engine: no unfinished transfer may use the same frame or the same slot of a device, as the two
    /// might end in either order.
    fn check_transfers(&self, op: Op) {
        let mut waiting: Vec<(&Op, &[Pfn])> = self.queue.iter().collect();
        let (_, frames) = waiting.pop().expect("it was just put there");
        // Pages compressed for a slot have nothing to do with its device.
        let in_memory = matches!(
            op,
            Op::ZswapStore { .. } | Op::ZswapLoad { .. } | Op::ZswapMove { .. } | Op::ZswapFree { .. }
        );
        let slots = op.slots().filter(|_| !in_memory);
        let races = |other: Option<(SwapId, Range<u32>)>, of: &[Pfn]| {
            let meet = slots.as_ref().zip(other).is_some_and(|((swap, ours), (of, theirs))| {
                *swap == of && ours.start < theirs.end && theirs.start < ours.end
            });
            meet || of.iter().any(|pfn| frames.contains(pfn))
        };
        let begun = self.transfers.iter().find(|transfer| races(transfer.slots(), &transfer.frames));
        assert!(begun.is_none(), "{op:?} races with {begun:?}");
        let queued = waiting.iter().find(|(other, of)| other.is_transfer() && races(other.slots(), of));
        assert!(queued.is_none(), "{op:?} races with {queued:?}");
    }

    /// Carries out what was asked for last, of all that may be.
    pub(crate) fn carry_out_youngest(&mut self) {
        let youngest = self.queue.ready().next_back();
        self.carry_out_at(youngest.expect("the first is always ready"));
    }

    /// Carries out operations until so many wait that it is worth their while.
    pub(crate) fn keep_up(&mut self) {
        while self.queue.len() > WAITING_MAX {
            self.carry_out_youngest();
        }
    }

    /// Returns true if any operation waits.
    pub(crate) fn has_operations(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Carries out one of those that may be, if there are any.
    pub(crate) fn carry_out_any(&mut self, which: usize) {
        let ready: Vec<u64> = self.queue.ready().collect();
        if !ready.is_empty() {
            self.carry_out_at(ready[which % ready.len()]);
        }
    }

    fn carry_out_at(&mut self, at: u64) {
        let (op, frames) = self.queue.take(at);
        match op {
            Op::Zero { .. } => frames.iter().for_each(|&pfn| self.fill_and_open(pfn, 0)),
            Op::Clear { .. } => frames.iter().for_each(|&pfn| _ = self.frames.insert(pfn, 0)),
            Op::ReadFile { io, file, page, readahead: is_readahead, .. } => {
                frames.iter().for_each(|&pfn| self.fill(pfn, GARBAGE));
                let medium = Medium::File(file, page);
                let at_start = Vec::new();
                self.begin(Transfer { io, medium, frames, is_write: false, is_readahead, at_start });
            }
            Op::WriteFile { io, file, page, .. } => {
                let medium = Medium::File(file, page);
                let at_start = frames.iter().map(|&pfn| self.frame(pfn)).collect();
                self.begin(Transfer { io, medium, frames, is_write: true, is_readahead: false, at_start });
            }
            Op::ReadSwap { io, swap, slot, pfn } => {
                self.fill(pfn, GARBAGE);
                let (medium, at_start) = (Medium::Slot(swap, slot), Vec::new());
                self.begin(Transfer { io, medium, frames, is_write: false, is_readahead: false, at_start });
            }
            Op::WriteSwap { io, swap, slot, pages, .. } => {
                let medium = Medium::Slot(swap, slot);
                let at_start = frames.iter().map(|&pfn| self.frame(pfn)).collect();
                self.begin(Transfer { io, medium, frames, is_write: true, is_readahead: false, at_start });
                self.slots.extend((slot..slot + pages).map(|slot| ((swap, slot), GARBAGE)));
            }
            Op::ReadSwapNow { swap, slot, pfn } => self.fill_and_open(pfn, self.slot(swap, slot)),
            Op::WriteSwapNow { swap, slot, pfn } => {
                self.slots.insert((swap, slot), self.frame(pfn));
            }
            Op::ZswapStore { swap, slot, pfn, to } => {
                let value = self.frame(pfn);
                self.compressed.insert((swap, slot), value);
                if let Compressed::At(place) = to {
                    self.pool.put(place, value);
                }
            }
            Op::ZswapMove { from, to } => self.pool.copy(from, to),
            Op::ZswapLoad { swap, slot, pfn, from } => {
                let value = self.compressed[&(swap, slot)];
                if let Compressed::At(place) = from {
                    let found = self.pool.get(place);
                    assert_eq!(found, Some(value), "what {place:?} of the pool has for slot {slot}");
                }
                self.fill_and_open(pfn, value);
            }
            Op::ZswapFree { swap, slot } => {
                self.compressed.remove(&(swap, slot));
            }
            Op::Copy { from, to, pages } => {
                (0..pages).for_each(|at| self.fill_and_open(Pfn(to.0 + at), self.frame(Pfn(from.0 + at))));
            }
            Op::FreeFrame { .. } => frames.iter().for_each(|pfn| {
                self.gate.emptied(*pfn);
                self.frames.remove(pfn);
            }),
            Op::PunchHole { file, page, pages } => (page..page + pages).for_each(|page| {
                self.blocks.insert((file, page), 0);
            }),
            Op::FreeSlot { swap, slot } => {
                self.slots.remove(&(swap, slot));
            }
        }
    }

    /// A slot will hold the page of a frame.
    fn note_slot(&mut self, swap: SwapId, slot: u32, pfn: Pfn) {
        if self.uncompressed.remove(&pfn) {
            self.written_back.insert(pfn);
        }
        self.slot_pages.insert((swap, slot), self.page_in(pfn));
    }

    /// A frame will hold a page, or zeroes of one that isn't known yet.
    fn name(&mut self, pfn: Pfn, page: Option<Page>) {
        let before = self.pages.insert(pfn, page);
        assert!(before.is_none(), "{pfn:?} is filled while it holds {before:?}");
        if let Some(page) = page {
            self.settle_in(page, pfn);
        }
    }

    fn settle_in(&mut self, page: Page, pfn: Pfn) {
        let other = self.home.insert(page, pfn);
        // A page that zswap has written back may be dropped while a batch still holds its frame.
        let is_left = other.is_none_or(|other| self.written_back.contains(&other));
        assert!(
            is_left || self.going.contains_key(&page),
            "{page:?} goes to {pfn:?} though it is in {other:?}"
        );
    }

    fn page_in(&self, pfn: Pfn) -> Option<Page> {
        *self.pages.get(&pfn).unwrap_or_else(|| panic!("{pfn:?} is read but not in use"))
    }

    fn fill(&mut self, pfn: Pfn, value: u64) {
        let before = self.frames.insert(pfn, value);
        assert!(before.is_none(), "{pfn:?} is filled while it holds {before:?}");
    }

    fn fill_and_open(&mut self, pfn: Pfn, value: u64) {
        self.fill(pfn, value);
        self.gate.filled(pfn);
    }

    fn begin(&mut self, transfer: Transfer) {
        // Two transfers of the same frame, slot or block might end in either order.
        let races = |other: &&Transfer| {
            other.frames.iter().any(|pfn| transfer.frames.contains(pfn)) || other.overlaps(&transfer)
        };
        let other = self.transfers.iter().find(races);
        assert!(other.is_none(), "{transfer:?} races with {other:?}");
        self.transfers.push(transfer);
    }

    fn frame(&self, pfn: Pfn) -> u64 {
        *self.frames.get(&pfn).unwrap_or_else(|| panic!("{pfn:?} is read but not in use"))
    }

    fn slot(&self, swap: SwapId, slot: u32) -> u64 {
        *self.slots.get(&(swap, slot)).unwrap_or_else(|| panic!("slot {slot} is read but was not written"))
    }

    /// Ends a transfer: moves its data, or leaves garbage if it fails. `early`: a write takes what the frame held when it began.
    pub(crate) fn end(&mut self, at: usize, fails: bool, early: bool) -> Transfer {
        let transfer = self.transfers.swap_remove(at);
        for (at, &pfn) in (0..).zip(&transfer.frames) {
            let data = match transfer.medium {
                _ if fails => GARBAGE,
                _ if transfer.is_write && early => transfer.at_start[at as usize],
                _ if transfer.is_write => self.frame(pfn),
                Medium::Slot(swap, slot) => self.slot(swap, slot + at as u32),
                Medium::File(file, page) => self.block(file, page + at),
            };
            match transfer.medium {
                Medium::File(file, page) if transfer.is_write => {
                    self.blocks.insert((file, page + at), data);
                    if !fails {
                        self.unflushed.insert((file, page + at));
                    }
                }
                Medium::Slot(swap, slot) if transfer.is_write => {
                    let value = self.slots.get_mut(&(swap, slot + at as u32));
                    *value.expect("a slot that is written stays taken") = data;
                }
                _ => {
                    let value = self.frames.get_mut(&pfn);
                    *value.expect("a frame that is read into stays in use") = data;
                    if !fails {
                        self.gate.filled(pfn);
                    }
                    if let Some(page) = self.page_in(pfn).filter(|_| fails) {
                        // A task that waited for it may hold the frame until it learns of the failure; to others the
                        // page is absent.
                        self.home.remove(&page);
                    }
                }
            }
        }
        transfer
    }
}
