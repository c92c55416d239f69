//! In which order operations may be carried out, by a machine that takes time over them.
//!
//! ```text
//!   take_ops ─► push ─► Zero 7 │ Copy 3 to 9 │ FreeFrame 3 │ ZswapStore 5 │ FreeFrame 5
//!                       ready     ready        after Copy     ready         after the store
//! ```
//! Zeroing, copying and compressing keep a CPU busy, and a live machine must not do them while it keeps others from the engine. So they
//! are operations that complete later. The kernel's own code waits for each where it stands, and so the engine goes on as if
//! they were done: whatever comes next is decided as in the kernel. Two rules make up for that:
//!
//! - Operations that name the same frame, slot or hole of a file are carried out in order, all others in any order. A transfer keeps its place
//!   until it begins; the engine hears of its end.
//! - Who needs a frame waits while the queue names it ([`OpQueue::names`]): the task that zeroes its page, and whoever else finds
//!   that page. A reader may let others run meanwhile; then it holds the frame ([`crate::Engine::hold`]). A writer may not: its page
//!   counts as written from the end of the call.
//!
//! Nothing of this can fail. What does not compress is refused before, and broken memory is not modelled.
//!
//! A machine that carries all out at once, in order, needs no queue: the simulated one, which only prices them.

use crate::machine::op::Op;
use crate::units::{FileId, IoId, Pfn};
use std::ops::Range;

struct Waiting {
    op: Op,
    frames: Vec<Pfn>,
}

impl Waiting {
    fn shares_with(&self, other: &Waiting) -> bool {
        let slot = self.op.slot();
        (slot.is_some() && slot == other.op.slot())
            || self.is_hole_beside(other)
            || other.is_hole_beside(self)
            || self.frames.iter().any(|pfn| other.frames.contains(pfn))
    }

    /// The operation makes a hole where the other reads or writes. Two transfers of a page name its frame as well.
    fn is_hole_beside(&self, other: &Waiting) -> bool {
        let Op::PunchHole { file, page, pages } = self.op else { return false };
        let meets =
            |(of, other): (FileId, Range<u64>)| of == file && other.start < page + pages && page < other.end;
        other.op.blocks().is_some_and(meets)
    }
}

/// Operations that a machine has taken and not yet carried out.
#[derive(Default)]
pub struct OpQueue(Vec<Waiting>);

impl OpQueue {
    /// Puts an operation behind those that were taken before it. `frames_of`: [`crate::Engine::frames_of`], which knows the frames of a
    /// read of a file.
    pub fn push(&mut self, op: Op, frames_of: impl FnOnce(IoId) -> Vec<Pfn>) {
        let frames = match op {
            Op::ReadFile { io, .. } => frames_of(io),
            _ => op.frames().collect(),
        };
        self.0.push(Waiting { op, frames });
    }

    /// Positions of those that may be carried out now.
    pub fn ready(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.0.len()).filter(|&at| !self.0[..at].iter().any(|before| before.shares_with(&self.0[at])))
    }

    /// Takes one out to carry it out, with its frames.
    pub fn take(&mut self, at: usize) -> (Op, Vec<Pfn>) {
        let Waiting { op, frames } = self.0.remove(at);
        (op, frames)
    }

    /// Whether a frame is still to be filled, read or freed.
    pub fn names(&self, pfn: Pfn) -> bool {
        self.0.iter().any(|waiting| waiting.frames.contains(&pfn))
    }

    /// All that waits, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Op, &[Pfn])> {
        self.0.iter().map(|waiting| (&waiting.op, waiting.frames.as_slice()))
    }

    /// The number of operations that wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether all has been carried out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::SwapId;

    fn queue(ops: &[Op]) -> OpQueue {
        let mut queue = OpQueue::default();
        ops.iter().for_each(|&op| queue.push(op, |_| vec![Pfn(20), Pfn(21)]));
        queue
    }

    fn ready(queue: &OpQueue) -> Vec<usize> {
        queue.ready().collect()
    }

    const SWAP: SwapId = SwapId(0);

    #[test]
    fn what_names_the_same_frame_keeps_its_order() {
        let mut queue = queue(&[
            Op::Copy { from: Pfn(3), to: Pfn(9), pages: 2 },
            Op::FreeFrame { pfn: Pfn(4), pages: 1 },
            Op::Zero { pfn: Pfn(10), pages: 1 },
            Op::Zero { pfn: Pfn(7), pages: 1 },
        ]);
        assert_eq!(ready(&queue), [0, 3], "the last page of the folio is read and written by the copy");
        assert!(queue.names(Pfn(10)) && !queue.names(Pfn(11)));
        assert!(matches!(queue.take(0), (Op::Copy { .. }, frames) if frames.len() == 4));
        assert_eq!(ready(&queue), [0, 1, 2]);
    }

    #[test]
    fn what_names_the_same_slot_keeps_its_order_whatever_the_frames() {
        let mut queue = queue(&[
            Op::ZswapStore { swap: SWAP, slot: 5, pfn: Pfn(1) },
            Op::ZswapLoad { swap: SWAP, slot: 5, pfn: Pfn(2) },
            Op::ZswapFree { swap: SWAP, slot: 5 },
            Op::FreeFrame { pfn: Pfn(1), pages: 1 },
            Op::FreeSlot { swap: SWAP, slot: 6 },
        ]);
        assert_eq!(ready(&queue), [0, 4]);
        queue.take(0);
        assert_eq!(ready(&queue), [0, 2, 3], "a frame is free before the page is back in another");
    }

    #[test]
    fn what_reads_or_writes_where_a_hole_is_keeps_its_order() {
        let read = |page| Op::ReadFile { io: IoId(0), file: FileId(0), page, pages: 2, readahead: false };
        let hole = Op::PunchHole { file: FileId(0), page: 4, pages: 4 };
        assert_eq!(ready(&queue(&[hole, read(2)])), [0, 1], "it ends before the hole");
        assert_eq!(ready(&queue(&[hole, read(7)])), [0]);
        assert_eq!(ready(&queue(&[read(3), hole])), [0]);
        let elsewhere =
            Op::WriteFile { io: IoId(0), file: FileId(1), page: 5, pfn: Pfn(1), is_awaited: false };
        assert_eq!(ready(&queue(&[hole, elsewhere])), [0, 1], "another file");
    }

    #[test]
    fn a_read_of_a_file_names_the_frames_that_it_fills() {
        let read = Op::ReadFile { io: IoId(0), file: FileId(0), page: 0, pages: 2, readahead: false };
        let queue = queue(&[Op::FreeFrame { pfn: Pfn(21), pages: 1 }, read]);
        assert_eq!(ready(&queue), [0], "it is freed before it is filled");
        assert_eq!(queue.iter().count(), queue.len());
    }
}
