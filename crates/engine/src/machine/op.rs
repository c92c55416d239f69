//! Operations on pages: the engine's requests to a machine, carried out immediately in order, or later in the order that [`crate::OpQueue`] knows.
//!
//! The engine never learns what a page holds. A machine that holds bytes moves them here; the simulator turns reads and
//! writes into device requests and the rest into CPU time.

use crate::memory::errors::IoError;
use crate::swap::zspool::ObjectPlace;
use crate::units::{FileId, IoId, Pfn, SwapId};
use std::ops::Range;

/// A machine's answer to a full plug, which reclaim submits in the middle of a batch. It contains the results of those writes, from the first, that
/// end before the batch does ([`crate::EngineBuilder::set_full_plug`]).
pub type FullPlug = Box<dyn FnMut(&[Op]) -> Vec<Result<(), IoError>> + Send + Sync>;

/// The form in which zswap keeps a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compressed {
    /// Its bytes, compressed, or unchanged if they are 4096.
    At(ObjectPlace),
    /// The page is this word, repeated.
    Word(u64),
}

/// One operation on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Fill a frame with zeroes: first touch of anonymous or tmpfs memory.
    Zero {
        /// The frame.
        pfn: Pfn,
        /// Frames in the folio.
        pages: u32,
    },
    /// Frames of a folio that stays in memory hold zeroes from now on: a truncation has a part of it. Done when the operation has been carried out.
    Clear {
        /// The first of these frames.
        pfn: Pfn,
        /// Their number.
        pages: u32,
    },
    /// Start reading pages of a file that follow each other, into the frames that [`crate::Engine::frames_of`] names; report with
    /// [`crate::Engine::io_done`]. A machine whose device takes less in one request splits it, and reports once.
    ReadFile {
        /// Names the transfer in the report.
        io: IoId,
        /// The file.
        file: FileId,
        /// First page of the file to read.
        page: u64,
        /// Pages to read.
        pages: u32,
        /// Issued by readahead. If it fails, each task that waits for one of its pages retries once and reads that page by itself.
        readahead: bool,
    },
    /// Start writing a folio's frames to pages of a file; report with [`crate::Engine::io_done`]. A machine whose device takes less in one request
    /// splits it, and reports once.
    WriteFile {
        /// Names the transfer in the report.
        io: IoId,
        /// The file.
        file: FileId,
        /// First page of the file to write.
        page: u64,
        /// The first frame to write.
        pfn: Pfn,
        /// Frames, and pages, in the folio.
        pages: u32,
        /// A task has begun it to have the file on the device, and waits: fsync(2). Disk schedulers prefer such writes.
        is_awaited: bool,
    },
    /// Start reading a swap slot into a frame; report with [`crate::Engine::io_done`].
    ReadSwap {
        /// Names the transfer in the report.
        io: IoId,
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
        /// The frame to fill.
        pfn: Pfn,
    },
    /// Start writing a folio's frames to swap slots in a row; report with [`crate::Engine::io_done`].
    WriteSwap {
        /// Names the transfer in the report.
        io: IoId,
        /// The swap device.
        swap: SwapId,
        /// The first slot on it.
        slot: u32,
        /// The first frame to write.
        pfn: Pfn,
        /// Frames, and slots, of the folio.
        pages: u32,
    },
    /// Read a slot of a synchronous device (zram): done when the operation has been carried out, no report.
    ReadSwapNow {
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
        /// The frame to fill.
        pfn: Pfn,
    },
    /// Write a slot of a synchronous device (zram), or of another if the machine has reported that the write ends before the batch ([`FullPlug`]).
    /// Done when the operation has been carried out, without a report.
    WriteSwapNow {
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
        /// The frame to write.
        pfn: Pfn,
    },
    /// Compress a frame into memory of the kernel, in place of what it would have in a slot (zswap): done when the operation has been
    /// carried out.
    ZswapStore {
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
        /// The frame to compress.
        pfn: Pfn,
        /// Where its bytes go.
        to: Compressed,
    },
    /// Fill a frame from what was compressed for a slot, which stays until it is freed.
    ZswapLoad {
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
        /// The frame to fill.
        pfn: Pfn,
        /// Where its bytes are.
        from: Compressed,
    },
    /// Move the bytes of a compressed page within the pool: the pool is being compacted.
    ZswapMove {
        /// Where the bytes are.
        from: ObjectPlace,
        /// Where they go.
        to: ObjectPlace,
    },
    /// The compressed copy of a slot's page in zswap is dropped. The slot's block on the device is not touched.
    ZswapFree {
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
    },
    /// Copy frames to others: a folio moves.
    Copy {
        /// First frame to read.
        from: Pfn,
        /// First frame to fill.
        to: Pfn,
        /// Frames in the folio.
        pages: u32,
    },
    /// The frames' contents are no longer needed; they may be reused immediately.
    FreeFrame {
        /// First frame of the folio.
        pfn: Pfn,
        /// Frames in the folio.
        pages: u32,
    },
    /// Pages of a file hold zeroes from now on.
    PunchHole {
        /// The file.
        file: FileId,
        /// First page in the file.
        page: u64,
        /// The number of pages.
        pages: u64,
    },
    /// The slot's contents are no longer needed.
    FreeSlot {
        /// The swap device.
        swap: SwapId,
        /// The slot on it.
        slot: u32,
    },
}

impl Compressed {
    /// The place of its bytes, if it has any.
    fn place(self) -> Option<ObjectPlace> {
        match self {
            Compressed::At(place) => Some(place),
            Compressed::Word(_) => None,
        }
    }
}

impl Op {
    /// The frames that it fills, reads or frees, those of the pool included; of a read of a file, the engine knows them ([`crate::Engine::frames_of`]).
    pub(crate) fn frames(&self) -> impl Iterator<Item = Pfn> {
        let (first, second, pages) = match *self {
            Op::Zero { pfn, pages } | Op::Clear { pfn, pages } | Op::FreeFrame { pfn, pages } => {
                (Some(pfn), None, pages)
            }
            Op::Copy { from, to, pages } => (Some(from), Some(to), pages),
            Op::WriteFile { pfn, pages, .. } | Op::WriteSwap { pfn, pages, .. } => (Some(pfn), None, pages),
            Op::ReadSwap { pfn, .. }
            | Op::ReadSwapNow { pfn, .. }
            | Op::WriteSwapNow { pfn, .. }
            | Op::ZswapStore { pfn, .. }
            | Op::ZswapLoad { pfn, .. } => (Some(pfn), None, 1),
            Op::ReadFile { .. }
            | Op::ZswapMove { .. }
            | Op::ZswapFree { .. }
            | Op::PunchHole { .. }
            | Op::FreeSlot { .. } => (None, None, 0),
        };
        let folios = first.into_iter().chain(second);
        let objects = match *self {
            Op::ZswapStore { to: object, .. } | Op::ZswapLoad { from: object, .. } => [object.place(), None],
            Op::ZswapMove { from, to } => [Some(from), Some(to)],
            _ => [None; 2],
        };
        let of_pool = objects.into_iter().flatten().flat_map(|place| place.frames);
        folios.flat_map(move |pfn| (pfn.0..pfn.0 + pages).map(Pfn)).chain(of_pool)
    }

    /// Returns the swap slots that the operation fills, reads or frees, on their device or compressed.
    pub fn slots(&self) -> Option<(SwapId, Range<u32>)> {
        match *self {
            Op::WriteSwap { swap, slot, pages, .. } => Some((swap, slot..slot + pages)),
            Op::ReadSwap { swap, slot, .. }
            | Op::ReadSwapNow { swap, slot, .. }
            | Op::WriteSwapNow { swap, slot, .. }
            | Op::ZswapStore { swap, slot, .. }
            | Op::ZswapLoad { swap, slot, .. }
            | Op::ZswapFree { swap, slot }
            | Op::FreeSlot { swap, slot } => Some((swap, slot..slot + 1)),
            Op::Zero { .. }
            | Op::Clear { .. }
            | Op::ReadFile { .. }
            | Op::WriteFile { .. }
            | Op::Copy { .. }
            | Op::ZswapMove { .. }
            | Op::PunchHole { .. }
            | Op::FreeFrame { .. } => None,
        }
    }

    /// The pages of a file that it reads or writes on the device.
    pub fn blocks(&self) -> Option<(FileId, Range<u64>)> {
        match *self {
            Op::ReadFile { file, page, pages, .. } => Some((file, page..page + u64::from(pages))),
            Op::PunchHole { file, page, pages } => Some((file, page..page + pages)),
            Op::WriteFile { file, page, pages, .. } => Some((file, page..page + u64::from(pages))),
            _ => None,
        }
    }

    /// Returns true if the operation only says that something is no longer needed.
    pub fn gives_up(&self) -> bool {
        matches!(
            self,
            Op::FreeFrame { .. } | Op::FreeSlot { .. } | Op::ZswapFree { .. } | Op::PunchHole { .. }
        )
    }

    /// Returns true if the operation begins a transfer, whose end the machine reports.
    pub fn is_transfer(&self) -> bool {
        matches!(
            self,
            Op::ReadFile { .. } | Op::WriteFile { .. } | Op::ReadSwap { .. } | Op::WriteSwap { .. }
        )
    }
}
