//! Reads and writes in flight, what happens to the folio when they end, and who waits for it. [reclaim 1.3]

use crate::core::Core;
use crate::machine::op::{IoError, Op};
use crate::memory::folio::FolioFlags;
use crate::memory::table::{SwapEntry, Word};
use crate::stat::Stat;
use crate::story::PageEvent;
use crate::swap::plug::Plug;
use crate::units::{CpuId, FileId, IoId, PAGE_SIZE, Pfn, TaskId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    Read,
    Write,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    direction: Direction,
    pfn: Pfn,
    /// The task that started it, if it waits.
    starter: Option<TaskId>,
}

/// All transfers in flight.
#[derive(Default)]
pub(crate) struct Transfers {
    slots: Vec<Option<Transfer>>,
    free: Vec<u32>,
    /// Tasks that came for a page while it was being transferred, in order of arrival. They are few at any time, so a
    /// transfer needs no list of its own.
    joined: Vec<(IoId, TaskId)>,
    writes: usize,
    /// Writes that have ended since the beginning.
    writes_ended: u64,
    /// Pages whose write the device has failed since the beginning.
    writes_failed: u64,
    /// Tasks that wait for any write to end.
    write_waiters: Vec<TaskId>,
}

impl Transfers {
    fn start(&mut self, direction: Direction, pfn: Pfn, starter: Option<TaskId>) -> IoId {
        let transfer = Some(Transfer { direction, pfn, starter });
        self.writes += usize::from(direction == Direction::Write);
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = transfer;
                IoId(slot)
            }
            None => {
                self.slots.push(transfer);
                IoId((self.slots.len() - 1) as u32)
            }
        }
    }

    fn end(&mut self, io: IoId) -> Transfer {
        let transfer = self.slots.get_mut(io.index()).and_then(Option::take);
        let transfer = transfer.unwrap_or_else(|| panic!("transfer {} isn't in flight", io.0));
        self.free.push(io.0);
        self.writes -= usize::from(transfer.direction == Direction::Write);
        self.writes_ended += u64::from(transfer.direction == Direction::Write);
        transfer
    }

    /// Puts a task behind those that wait for the transfer of this folio. Rare (two tasks want the same page at once), so
    /// the transfer is searched for rather than remembered.
    fn join(&mut self, pfn: Pfn, task: TaskId) {
        let is_of_folio = |slot: &Option<Transfer>| slot.is_some_and(|transfer| transfer.pfn == pfn);
        let slot = self.slots.iter().position(is_of_folio);
        let slot = slot.expect("a locked folio has a transfer in flight");
        self.joined.push((IoId(slot as u32), task));
    }

    pub(crate) fn writes_ended(&self) -> u64 {
        self.writes_ended
    }

    pub(crate) fn writes_failed(&self) -> u64 {
        self.writes_failed
    }

    pub(crate) fn has_writes(&self) -> bool {
        self.writes > 0
    }

    /// Folios with a transfer in flight, and whether it is a write; for checkers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Pfn, bool)> {
        self.slots.iter().flatten().map(|transfer| (transfer.pfn, transfer.direction == Direction::Write))
    }
}

impl Core {
    /// Starts reading a folio of a file; `task` is woken when it is there.
    pub(crate) fn start_read_file(&mut self, pfn: Pfn, task: TaskId) {
        let io = self.start_read(pfn, task);
        let folio = self.memory.folios[pfn];
        self.ops.push(Op::ReadFile {
            io,
            file: FileId(folio.owner),
            page: folio.index.into(),
            pfn,
            pages: folio.pages() as u32,
        });
    }

    /// Starts reading a swap slot; `task` is woken when it is there.
    pub(crate) fn start_read_swap(&mut self, pfn: Pfn, entry: SwapEntry, task: TaskId) {
        let io = self.start_read(pfn, task);
        self.count_node(self.memory.folios[pfn].node, Stat::Pswpin, 1);
        self.ops.push(Op::ReadSwap { io, swap: entry.swap, slot: entry.slot, pfn });
    }

    fn start_read(&mut self, pfn: Pfn, task: TaskId) -> IoId {
        let io = self.io.start(Direction::Read, pfn, Some(task));
        let folio = self.memory.folios[pfn];
        debug_assert!(folio.has(FolioFlags::LOCKED), "a folio being read is locked");
        self.count_node(folio.node, Stat::Pgpgin, (folio.pages() * PAGE_SIZE / 1024) as i64);
        io
    }

    /// Starts writing to a swap slot, as soon as the plug is submitted.
    pub(crate) fn start_write(&mut self, pfn: Pfn, entry: SwapEntry, plug: &mut Plug) {
        let io = self.io.start(Direction::Write, pfn, None);
        self.plug(plug, io, pfn, entry);
    }

    /// Puts a task to sleep until the transfer of this folio ends.
    pub(crate) fn wait_for_folio(&mut self, pfn: Pfn, task: TaskId) {
        self.io.join(pfn, task);
    }

    /// Puts a task to sleep until any write has ended.
    pub(crate) fn wait_for_any_write(&mut self, task: TaskId) {
        self.io.write_waiters.push(task);
    }

    /// A device has completed a transfer, its interrupt arriving on `cpu`. Returns whether its waiters wanted to read.
    #[inline(always)]
    pub(crate) fn transfer_done(&mut self, io: IoId, cpu: CpuId, result: Result<(), IoError>) -> bool {
        self.cpu = cpu;
        let transfer = self.io.end(io);
        match transfer.direction {
            Direction::Read => self.read_done(transfer.pfn, result),
            Direction::Write => self.write_done(transfer.pfn, result),
        }
        self.woken.extend(transfer.starter);
        if !self.io.joined.is_empty() {
            self.woken.extend(self.io.joined.extract_if(.., |&mut (of, _)| of == io).map(|(_, task)| task));
        }
        if transfer.direction == Direction::Write {
            self.woken.append(&mut self.io.write_waiters);
        }
        transfer.direction == Direction::Read
    }

    fn read_done(&mut self, pfn: Pfn, result: Result<(), IoError>) {
        self.tell(pfn, |_| PageEvent::Read { ok: result.is_ok() });
        let folio = &mut self.memory.folios[pfn];
        folio.clear(FolioFlags::LOCKED);
        let folio = *folio;
        if folio.has(FolioFlags::INDEXED) {
            let index = &mut self.memory.file_mut(FileId(folio.owner)).index;
            index.update(folio.index.into(), |word| word.set_busy(false));
        }
        if result.is_err() {
            // Nobody may find a page without contents. The readers are told and let go of it. A swap slot stays: the
            // data may be readable another time.
            if folio.has(FolioFlags::INDEXED) {
                self.page_cache_remove(pfn, Word::EMPTY);
            } else if folio.has(FolioFlags::SWAPCACHE) {
                self.swap_cache_remove(pfn, None);
            }
        }
        self.release_if_unused(pfn);
    }

    fn write_done(&mut self, pfn: Pfn, result: Result<(), IoError>) {
        #[cfg(test)]
        if self.mutant == Some(crate::testing::Mutant::FrameReusedBeforeWritten) {
            return;
        }
        self.tell(pfn, |_| PageEvent::Written { ok: result.is_ok() });
        let (lruvec, folio) = (self.lruvec_of(pfn), self.memory.folios[pfn]);
        self.memory.folios[pfn].clear(FolioFlags::RECLAIM);
        match result {
            // RECLAIM goes even where the rotation finds the folio in other hands and does nothing: then it will be met
            // at the wrong end of its list. [reclaim 6.7]
            Ok(()) if folio.has(FolioFlags::RECLAIM) => self.lru_rotate(pfn),
            Ok(()) => {}
            // The only copy is in memory again.
            Err(_) => {
                self.memory.folios[pfn].set(FolioFlags::DIRTY);
                self.io.writes_failed += folio.pages();
            }
        }
        self.memory.folios[pfn].clear(FolioFlags::WRITEBACK);
        self.count(lruvec, Stat::NrWriteback, -(folio.pages() as i64));
        self.count_node(folio.node, Stat::NrWritten, folio.pages() as i64);
        self.release_if_unused(pfn);
    }
}
