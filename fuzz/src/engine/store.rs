//! Where the bytes are: frames, swap slots, and transfers between them and the devices.
//!
//! The engine names the frame of each access. The store knows it as well: the operation that fills a frame, or its access, names
//! the page, and no page is in two frames. The two must agree, access by access.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageout_engine::{Engine, FileId, FullPlug, IoError, IoId, Op, PageCacheEvent, Pfn, SwapId};

use super::contents::{Page, of_file};

/// What freed and never used memory holds.
const GARBAGE: u64 = 0xdead_beef_dead_beef;

/// Where a transfer's data is outside memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    File(FileId, u64),
    Slot(SwapId, u32),
}

#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub(super) io: IoId,
    medium: Medium,
    frames: Vec<Pfn>,
    pub(super) is_write: bool,
    /// Nobody's access depends on it.
    pub(super) is_readahead: bool,
    /// What the frame held when a write began.
    at_start: u64,
}

/// Contents, and the page that they belong to.
#[derive(Clone, Copy, Debug)]
struct Held {
    page: Page,
    value: u64,
}

/// A device that ends so many of a hundred of a full plug's writes before the batch does, and fails at some of those. Whether any
/// has ended is noted.
pub(super) fn race(writes_won: u8, ended_early: Arc<AtomicBool>) -> FullPlug {
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
pub(super) struct Store {
    frames: BTreeMap<Pfn, Held>,
    /// The frame that a page is in.
    home: BTreeMap<Page, Pfn>,
    slots: BTreeMap<(SwapId, u32), Held>,
    /// What was compressed in place of it.
    compressed: BTreeMap<(SwapId, u32), Held>,
    /// Pages of files on their device, as far as they were written.
    blocks: BTreeMap<(FileId, u64), u64>,
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
            (Medium::Slot(..), Medium::Slot(..)) => self.medium == other.medium,
            _ => false,
        }
    }

    /// The page of a file that it has written.
    pub(super) fn written_page(&self) -> Option<(FileId, u64)> {
        match self.medium {
            Medium::File(file, page) if self.is_write => Some((file, page)),
            _ => None,
        }
    }
}

impl Store {
    /// Frames in use.
    pub(super) fn frames(&self) -> usize {
        self.frames.len()
    }

    /// Transfers in flight.
    pub(super) fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// The pages that frames and slots hold.
    pub(super) fn pages(&self) -> impl Iterator<Item = Page> {
        self.frames.values().chain(self.slots.values()).map(|held| held.page)
    }

    /// What a frame holds, which must be what the store knows of the page.
    pub(super) fn value_mut(&mut self, pfn: Pfn, page: Page) -> &mut u64 {
        assert_eq!(
            self.home.get(&page),
            Some(&pfn),
            "the frame that {page:?} is accessed in, and the one it is in"
        );
        &mut self.frames.get_mut(&pfn).expect("a home is a frame").value
    }

    /// The same for a write, which may be the first that the store hears of a page: whoever overwrites one reads nothing.
    pub(super) fn written_mut(&mut self, pfn: Pfn, page: Page) -> &mut u64 {
        if matches!(page, Page::Regular(..)) && !self.home.contains_key(&page) {
            self.fill(pfn, page, GARBAGE);
        }
        self.value_mut(pfn, page)
    }

    /// What a file's device has at a page.
    pub(super) fn block(&self, file: FileId, page: u64) -> u64 {
        self.blocks.get(&(file, page)).copied().unwrap_or_else(|| of_file(file, page))
    }

    pub(super) fn note_page_cache(&mut self, event: PageCacheEvent) {
        let PageCacheEvent { file, page, removed } = event;
        let changed =
            if removed { self.cached.remove(&(file, page)) } else { self.cached.insert((file, page)) };
        assert!(changed, "{file:?} page {page} enters or leaves the page cache twice");
    }

    /// Carries an operation out. `page`: what the task of the present call accesses.
    pub(super) fn carry_out(&mut self, engine: &Engine, op: Op, page: Option<Page>) {
        match op {
            Op::Zero { pfn, pages } => {
                assert_eq!(pages, 1);
                self.fill(pfn, page.expect("memory is zeroed for an access"), 0);
            }
            Op::ReadFile { io, file, page, pages, readahead: is_readahead } => {
                let frames: Vec<Pfn> = engine.frames_of(io).collect();
                assert_eq!(frames.len(), pages as usize, "a frame for each page");
                for (at, &pfn) in (0..).zip(&frames) {
                    self.fill(pfn, Page::Regular(file, page + at), GARBAGE);
                }
                let medium = Medium::File(file, page);
                self.begin(Transfer { io, medium, frames, is_write: false, is_readahead, at_start: 0 });
            }
            Op::WriteFile { io, file, page, pfn } => {
                let held = self.frame(pfn);
                assert_eq!(held.page, Page::Regular(file, page), "{pfn:?} is written to another page");
                let medium = Medium::File(file, page);
                let (frames, at_start) = (vec![pfn], held.value);
                self.begin(Transfer { io, medium, frames, is_write: true, is_readahead: false, at_start });
            }
            Op::ReadSwap { io, swap, slot, pfn } => {
                self.fill(pfn, self.slot(swap, slot).page, GARBAGE);
                let medium = Medium::Slot(swap, slot);
                let (frames, is_readahead) = (vec![pfn], false);
                self.begin(Transfer { io, medium, frames, is_write: false, is_readahead, at_start: 0 });
            }
            Op::WriteSwap { io, swap, slot, pfn } => {
                let held = self.frame(pfn);
                self.begin(Transfer {
                    io,
                    medium: Medium::Slot(swap, slot),
                    frames: vec![pfn],
                    is_write: true,
                    is_readahead: false,
                    at_start: held.value,
                });
                let garbage = Held { value: GARBAGE, ..held };
                self.slots.insert((swap, slot), garbage);
            }
            Op::ReadSwapNow { swap, slot, pfn } => {
                let held = self.slot(swap, slot);
                self.fill(pfn, held.page, held.value);
            }
            Op::WriteSwapNow { swap, slot, pfn } => {
                let held = self.frame(pfn);
                self.slots.insert((swap, slot), held);
            }
            Op::ZswapStore { swap, slot, pfn } => {
                let held = self.frame(pfn);
                self.compressed.insert((swap, slot), held);
            }
            Op::ZswapLoad { swap, slot, pfn } => {
                let held = self.compressed.get(&(swap, slot)).copied();
                let held = held.unwrap_or_else(|| panic!("slot {slot} has no entry to fill {pfn:?} from"));
                self.fill(pfn, held.page, held.value);
            }
            Op::ZswapFree { swap, slot } => {
                let was = self.compressed.remove(&(swap, slot));
                assert!(was.is_some(), "slot {slot} has no entry to free");
            }
            Op::Copy { from, to, pages } => {
                for at in 0..pages {
                    let (from, to) = (Pfn(from.0 + at), Pfn(to.0 + at));
                    let busy = self.transfers.iter().find(|transfer| transfer.frames.contains(&from));
                    assert!(busy.is_none(), "{from:?} is moved under {busy:?}");
                    let held = self.frame(from);
                    let before = self.frames.insert(to, held);
                    assert!(before.is_none(), "{to:?} is filled while it holds {before:?}");
                    // A page that could not be read is at home nowhere.
                    if let Some(home) = self.home.get_mut(&held.page).filter(|home| **home == from) {
                        *home = to;
                    }
                }
            }
            Op::FreeFrame { pfn, pages } => {
                for pfn in (0..pages).map(|at| Pfn(pfn.0 + at)) {
                    let busy = self.transfers.iter().find(|transfer| transfer.frames.contains(&pfn));
                    assert!(busy.is_none(), "{pfn:?} is freed under {busy:?}");
                    let held =
                        self.frames.remove(&pfn).unwrap_or_else(|| panic!("{pfn:?} is freed but not in use"));
                    if self.home.get(&held.page) == Some(&pfn) {
                        self.home.remove(&held.page);
                    }
                }
            }
            Op::FreeSlot { swap, slot } => {
                let medium = Medium::Slot(swap, slot);
                let busy = self.transfers.iter().find(|transfer| transfer.medium == medium);
                assert!(busy.is_none(), "slot {slot} is freed under {busy:?}");
                self.slots.remove(&(swap, slot));
            }
        }
    }

    fn fill(&mut self, pfn: Pfn, page: Page, value: u64) {
        let before = self.frames.insert(pfn, Held { page, value });
        assert!(before.is_none(), "{pfn:?} is filled while it holds {before:?}");
        let other = self.home.insert(page, pfn);
        assert!(other.is_none(), "{page:?} goes to {pfn:?} though it is in {other:?}");
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

    fn frame(&self, pfn: Pfn) -> Held {
        *self.frames.get(&pfn).unwrap_or_else(|| panic!("{pfn:?} is read but not in use"))
    }

    fn slot(&self, swap: SwapId, slot: u32) -> Held {
        *self.slots.get(&(swap, slot)).unwrap_or_else(|| panic!("slot {slot} is read but was not written"))
    }

    /// Ends a transfer: moves its data, or leaves garbage if it fails. `early`: a write takes what the frame held when it began.
    pub(super) fn end(&mut self, at: usize, fails: bool, early: bool) -> Transfer {
        let transfer = self.transfers.swap_remove(at);
        for (at, &pfn) in (0..).zip(&transfer.frames) {
            let data = match transfer.medium {
                _ if fails => GARBAGE,
                _ if transfer.is_write && early => transfer.at_start,
                _ if transfer.is_write => self.frame(pfn).value,
                Medium::Slot(swap, slot) => self.slot(swap, slot).value,
                Medium::File(file, page) => self.block(file, page + at),
            };
            match transfer.medium {
                Medium::File(file, page) if transfer.is_write => {
                    self.blocks.insert((file, page), data);
                }
                Medium::Slot(swap, slot) if transfer.is_write => {
                    let held = self.slots.get_mut(&(swap, slot));
                    held.expect("a slot that is written stays taken").value = data;
                }
                _ => {
                    let held = self.frames.get_mut(&pfn).expect("a frame that is read into stays in use");
                    held.value = data;
                    if fails {
                        // Whoever waited for it may hold on to the frame until it is told; to others the page is absent.
                        self.home.remove(&held.page);
                    }
                }
            }
        }
        transfer
    }
}
