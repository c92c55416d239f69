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
//! - Operations that name the same frame, slot or hole of a file are carried out in order, all others in any order. A transfer keeps its place until
//!   it begins; the engine is notified of its end.
//! - A task that needs a frame waits while the queue names it ([`OpQueue::names`]): the task that zeroes its page, and any other task that finds that
//!   page. A reader may let others run meanwhile; then it holds the frame ([`crate::Engine::hold`]). A writer may not: its page counts as written
//!   from the end of the call.
//!
//! None of this can fail. Incompressible pages are rejected before, and broken memory is not modelled.
//!
//! A machine that carries all out immediately, in order, needs no queue: the simulated one, which only charges costs for them.

use crate::machine::op::Op;
use crate::units::{FileId, IoId, Pfn, SwapId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What operations keep their order for. A hole of a file is none: which pages it has in common with another operation is looked up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Frame(Pfn),
    Slot(SwapId, u32),
}

struct Waiting {
    op: Op,
    frames: Vec<Pfn>,
    /// How many operations must be carried out before it, and which ones wait for it among others.
    before: u32,
    after: Vec<u64>,
}

impl Waiting {
    fn places(&self) -> impl Iterator<Item = Place> {
        let slots = self
            .op
            .slots()
            .into_iter()
            .flat_map(|(swap, slots)| slots.map(move |slot| Place::Slot(swap, slot)));
        self.frames.iter().map(|&pfn| Place::Frame(pfn)).chain(slots)
    }

    /// One of the two makes a hole where the other reads or writes. Two transfers of a page name its frame as well.
    fn meets_hole(&self, other: &Waiting) -> bool {
        let meets = |(file, pages): (FileId, Range<u64>), (of, others): (FileId, Range<u64>)| {
            file == of && pages.start < others.end && others.start < pages.end
        };
        let is_hole = matches!(self.op, Op::PunchHole { .. }) || matches!(other.op, Op::PunchHole { .. });
        is_hole && self.op.blocks().zip(other.op.blocks()).is_some_and(|(ours, others)| meets(ours, others))
    }
}

/// Operations that a machine has taken and not yet carried out, each by a number that shows its age.
///
/// The most frequent queries cost one index lookup: whether an operation may be carried out, and whether a frame is named.
#[derive(Default)]
pub struct OpQueue {
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    /// Those that nothing must come before.
    ready: BTreeSet<u64>,
    /// The last one of each place: the others of that place are before it, one after the other.
    last: BTreeMap<Place, u64>,
    /// Those that make a hole: mostly there is none.
    holes: BTreeSet<u64>,
}

impl OpQueue {
    /// Puts an operation behind those that were taken before it. `frames_of`: [`crate::Engine::frames_of`], which knows the frames of a
    /// read of a file.
    pub fn push(&mut self, op: Op, frames_of: impl FnOnce(IoId) -> Vec<Pfn>) {
        let frames = match op {
            Op::ReadFile { io, .. } => frames_of(io),
            _ => op.frames().collect(),
        };
        let at = self.next;
        self.next += 1;
        let mut waiting = Waiting { op, frames, before: 0, after: Vec::new() };
        let mut before = BTreeSet::new();
        for place in waiting.places() {
            before.extend(self.last.insert(place, at));
        }
        // It may name a frame twice.
        before.remove(&at);
        if matches!(op, Op::PunchHole { .. }) {
            before.extend(
                self.waiting.iter().filter(|(_, other)| other.meets_hole(&waiting)).map(|(&at, _)| at),
            );
            self.holes.insert(at);
        } else {
            before.extend(self.holes.iter().filter(|hole| self.waiting[hole].meets_hole(&waiting)));
        }
        waiting.before = before.len() as u32;
        for earlier in &before {
            self.waiting.get_mut(earlier).expect("the last one of a place waits").after.push(at);
        }
        if before.is_empty() {
            self.ready.insert(at);
        }
        self.waiting.insert(at, waiting);
    }

    /// Those that may be carried out now, the oldest first.
    pub fn ready(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.ready.iter().copied()
    }

    /// Takes one that is ready out to carry it out, with its frames.
    ///
    /// # Panics
    /// Panics where it has to wait for another one.
    pub fn take(&mut self, at: u64) -> (Op, Vec<Pfn>) {
        assert!(self.ready.remove(&at), "operation {at} is not ready");
        let waiting = self.waiting.remove(&at).expect("what is ready waits");
        for place in waiting.places() {
            if self.last.get(&place) == Some(&at) {
                self.last.remove(&place);
            }
        }
        self.holes.remove(&at);
        for after in waiting.after {
            let later = self.waiting.get_mut(&after).expect("it waits for this one");
            later.before -= 1;
            if later.before == 0 {
                self.ready.insert(after);
            }
        }
        (waiting.op, waiting.frames)
    }

    /// Returns true if a frame is still to be filled, read or freed.
    pub fn names(&self, pfn: Pfn) -> bool {
        self.last.contains_key(&Place::Frame(pfn))
    }

    /// All that waits, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Op, &[Pfn])> {
        self.waiting.values().map(|waiting| (&waiting.op, waiting.frames.as_slice()))
    }

    /// The number of operations that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if all has been carried out.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::op::Compressed;
    use crate::swap::zspool::ObjectPlace;

    fn queue(ops: &[Op]) -> OpQueue {
        let mut queue = OpQueue::default();
        ops.iter().for_each(|&op| queue.push(op, |_| vec![Pfn(20), Pfn(21)]));
        queue
    }

    fn ready(queue: &OpQueue) -> Vec<u64> {
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
        assert_eq!(ready(&queue), [1, 2, 3]);
    }

    #[test]
    fn what_names_the_same_slot_keeps_its_order_whatever_the_frames() {
        let mut queue = queue(&[
            Op::ZswapStore { swap: SWAP, slot: 5, pfn: Pfn(1), to: Compressed::Word(7) },
            Op::ZswapLoad { swap: SWAP, slot: 5, pfn: Pfn(2), from: Compressed::Word(7) },
            Op::ZswapFree { swap: SWAP, slot: 5 },
            Op::FreeFrame { pfn: Pfn(1), pages: 1 },
            Op::FreeSlot { swap: SWAP, slot: 6 },
        ]);
        assert_eq!(ready(&queue), [0, 4]);
        queue.take(0);
        assert_eq!(ready(&queue), [1, 3, 4], "a frame is free before the page is back in another");
    }

    #[test]
    fn operations_on_a_frame_of_the_pool_keep_their_order() {
        let place = |pfn: u32, offset| ObjectPlace { frames: [Pfn(pfn); 2], offset, length: 90 };
        let across = ObjectPlace { frames: [Pfn(30), Pfn(31)], offset: 4050, length: 90 };
        let queue = queue(&[
            Op::ZswapStore { swap: SWAP, slot: 5, pfn: Pfn(1), to: Compressed::At(across) },
            Op::ZswapMove { from: place(31, 100), to: place(32, 0) },
            Op::ZswapLoad { swap: SWAP, slot: 6, pfn: Pfn(2), from: Compressed::At(place(32, 0)) },
            Op::ZswapLoad { swap: SWAP, slot: 7, pfn: Pfn(3), from: Compressed::At(place(33, 0)) },
            Op::Zero { pfn: Pfn(30), pages: 1 },
        ]);
        assert_eq!(ready(&queue), [0, 3]);
    }

    #[test]
    fn what_reads_or_writes_where_a_hole_is_keeps_its_order() {
        let read = |page| Op::ReadFile { io: IoId(0), file: FileId(0), page, pages: 2, readahead: false };
        let hole = Op::PunchHole { file: FileId(0), page: 4, pages: 4 };
        assert_eq!(ready(&queue(&[hole, read(2)])), [0, 1], "it ends before the hole");
        assert_eq!(ready(&queue(&[hole, read(7)])), [0]);
        assert_eq!(ready(&queue(&[read(3), hole])), [0]);
        let elsewhere =
            Op::WriteFile { io: IoId(0), file: FileId(1), page: 5, pfn: Pfn(1), pages: 1, is_awaited: false };
        assert_eq!(ready(&queue(&[hole, elsewhere])), [0, 1], "another file");
    }

    #[test]
    fn a_read_of_a_file_names_the_frames_that_it_fills() {
        let read = Op::ReadFile { io: IoId(0), file: FileId(0), page: 0, pages: 2, readahead: false };
        let queue = queue(&[Op::FreeFrame { pfn: Pfn(21), pages: 1 }, read]);
        assert_eq!(ready(&queue), [0], "it is freed before it is filled");
        assert_eq!(queue.iter().count(), queue.len());
    }

    /// The rule as the module says it, looked up by walking all that waits.
    fn shares(one: &(Op, Vec<Pfn>), other: &(Op, Vec<Pfn>)) -> bool {
        let is_hole = |op: &Op| matches!(op, Op::PunchHole { .. });
        let overlaps = one.0.blocks().zip(other.0.blocks()).is_some_and(|((file, pages), (of, others))| {
            file == of && pages.start < others.end && others.start < pages.end
        });
        (one.0.slots().is_some() && one.0.slots() == other.0.slots())
            || ((is_hole(&one.0) || is_hole(&other.0)) && overlaps)
            || one.1.iter().any(|pfn| other.1.contains(pfn))
    }

    #[test]
    fn whatever_is_pushed_and_taken_the_index_says_what_a_walk_over_all_that_waits_would() {
        let mut seed = 1_u64;
        let mut draw = |sides: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % sides
        };
        let (mut queue, mut waiting) = (OpQueue::default(), BTreeMap::new());
        for at in 0..4000 {
            let (pfn, to, slot) = (Pfn(draw(6) as u32), Pfn(draw(6) as u32), draw(3) as u32);
            let (file, page, pages) = (FileId(draw(2) as u32), draw(8), draw(3) + 1);
            let op = match draw(7) {
                0 => Op::Zero { pfn, pages: 1 },
                1 => Op::Copy { from: pfn, to, pages: 1 },
                2 => Op::ReadFile { io: IoId(0), file, page, pages: 2, readahead: false },
                3 => Op::WriteFile { io: IoId(0), file, page, pfn, pages: 1, is_awaited: false },
                4 => Op::PunchHole { file, page, pages },
                5 => Op::WriteSwap { io: IoId(0), swap: SWAP, slot, pfn, pages: 1 },
                _ => Op::FreeSlot { swap: SWAP, slot },
            };
            let frames = match op {
                Op::ReadFile { .. } => vec![pfn, to],
                _ => op.frames().collect(),
            };
            queue.push(op, |_| frames.clone());
            waiting.insert(at, (op, frames));
            while queue.len() > 8 || (!queue.is_empty() && draw(3) == 0) {
                let is_ready =
                    |&at: &u64| !waiting.range(..at).any(|(_, other)| shares(other, &waiting[&at]));
                let expected: Vec<u64> = waiting.keys().copied().filter(is_ready).collect();
                assert_eq!(ready(&queue), expected);
                for pfn in (0..6).map(Pfn) {
                    assert_eq!(queue.names(pfn), waiting.values().any(|(_, frames)| frames.contains(&pfn)));
                }
                let at = expected[draw(expected.len() as u64) as usize];
                assert_eq!(Some(queue.take(at)), waiting.remove(&at));
            }
        }
    }
}
