//! `balance_dirty_pages` of 2010: a task that dirties too many pages writes some itself, and sleeps only where it finds too few to write.
//!
//! ```text
//!   1024 pages dirtied on a CPU (by its size; 8 while the device has too much) ─► look
//!     the device has no more than its share ─────────────────────────────► go on
//!     all devices have less than half way between the two thresholds ────► go on
//!     else: write half as much again as was dirtied, oldest files first ─► enough: go on
//!                                             │ not enough: others write
//!                                             └─► sleep a tick, two, four, up to a tenth of a second, and look again
//! ```
//! So as many tasks write as dirty, each its own part of the files, and the disk seeks between them. That is why writing was left to
//! the flusher, and who dirties only sleeps since 3.1 (`throttle.rs`). Limits were looser then: anonymous memory that could be swapped
//! counts as memory that could be dirty, and a ratio below 5 % as 5 %.
//!
//! Reclaim waits where more than 110 % of the threshold is being written (`reclaim/tally.rs`: `is_too_much_written`). [machine 9.3]

use crate::core::Core;
use crate::state::State;
use crate::units::{FileId, MemcgId, Nanos, WbId};
use crate::writeback::failing::LeftOut;
use crate::writeback::limits::Limits;
use crate::writeback::throttle::{DirtyThrottle, ThrottleStep};

/// Least part of memory that may be dirty, in percent.
pub(super) const RATIO_MIN: u8 = 5;
/// Pages between two looks at a CPU: by the size of memory, within these.
const LOOK: std::ops::RangeInclusive<u64> = 16..=1024;
/// Pages between two looks at a CPU where a device has too much.
const LOOK_WHEN_EXCEEDED: u64 = 8;
/// Pages that a task writes at least.
const CHUNK_MIN: u64 = 1536;

/// A task on its way through a look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Writer {
    /// Pages that it has written, of so many.
    written: u64,
    chunk: u64,
    /// The sleep before, in ticks.
    pause: u64,
}

impl Core {
    /// One round of looking at a task that dirties pages of a wb.
    #[doc(alias = "balance_dirty_pages")]
    pub(super) fn writer_step(
        &mut self,
        throttle: &mut DirtyThrottle,
        wb: WbId,
        file: FileId,
    ) -> ThrottleStep {
        let look = self.mm.writer_look(false);
        let writer = throttle.writer.get_or_insert_with(|| {
            let dirtied = throttle.nr_dirtied.max(look);
            Writer { chunk: (dirtied + dirtied / 2).max(CHUNK_MIN), ..Writer::default() }
        });
        let mut step = *writer;
        let of_task = throttle.is_real_time;
        if self.has_too_much(wb, file, of_task) {
            let left_out = self.left_out(wb, Some(file));
            let share = self.share_of_2010(wb, &self.limits_of_2010(of_task, left_out), left_out);
            if self.writeback.wb(wb).nr_dirty - left_out.wb.dirty > share {
                step.written += self.write_as_writer(wb, step.chunk - step.written);
            }
            if self.has_too_much(wb, file, of_task) && step.written < step.chunk {
                self.writeback.wb_mut(wb).dirty_exceeded = true;
                if let Some(step) = self.failing_step(throttle, file) {
                    throttle.writer = None;
                    return step;
                }
                let longest = u64::from(self.mm.config.hz / 10).max(1);
                step.pause = (2 * step.pause).clamp(1, longest);
                throttle.writer = Some(step);
                return ThrottleStep::Sleep(Nanos::from_ticks(step.pause, self.mm.config.hz));
            }
        }
        let exceeded = self.has_too_much(wb, file, of_task);
        self.writeback.wb_mut(wb).dirty_exceeded = exceeded;
        let limits = self.limits_of_2010(of_task, self.left_out(wb, Some(file)));
        self.trace_global_dirty_state(&limits);
        // In laptop mode only if the disk is awake because of the writer.
        let wakes = match self.mm.is_laptop_mode() {
            true => step.written > 0,
            false => limits.nr_dirty > limits.background,
        };
        if wakes {
            self.start_background(wb);
        }
        throttle.writer = None;
        throttle.nr_dirtied = 0;
        ThrottleStep::Leave
    }

    fn limits_of_2010(&self, is_real_time: bool, left_out: LeftOut) -> Limits {
        let limits = self.mm.global_limits_without(left_out.machine);
        if is_real_time { self.for_real_time(limits) } else { limits }
    }

    /// Returns true if a wb has more than its share, and the machine more than it may run free with, to a writer to this file.
    fn has_too_much(&self, wb: WbId, file: FileId, is_real_time: bool) -> bool {
        let left_out = self.left_out(wb, Some(file));
        let limits = self.limits_of_2010(is_real_time, left_out);
        let dirty = self.writeback.wb(wb).dirty() - left_out.wb.all();
        dirty > self.share_of_2010(wb, &limits, left_out) && limits.dirty >= limits.freerun()
    }

    /// A wb's share of the threshold, and no more than others have left of it.
    fn share_of_2010(&self, wb: WbId, limits: &Limits, left_out: LeftOut) -> u64 {
        let dirty = self.writeback.wb(wb).dirty() - left_out.wb.all();
        let left = limits.thresh.saturating_sub(limits.dirty) + dirty;
        self.wb_share(wb, MemcgId::ROOT, limits.thresh).min(left)
    }
}

impl State {
    /// The number of pages dirtied on a CPU after which the writer is checked.
    pub(super) fn writer_look(&self, exceeded: bool) -> u64 {
        if exceeded {
            return LOOK_WHEN_EXCEEDED;
        }
        let pages: u64 = self.config.node_pages.iter().sum();
        (pages / (32 * u64::from(self.config.cpus))).clamp(*LOOK.start(), *LOOK.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;

    /// A machine of 4096 pages of 2010, with a file of as many, and how often its writer had to sleep for dirty pages while it wrote them
    /// all. The device has written what was begun whenever so many pages have been dirtied.
    fn write_all(device_every: u64) -> (Engine, u32, u64) {
        let policy = Policy::of("classic@2010");
        let mut engine = Engine::new(Config { node_pages: vec![4096], policy, ..Config::default() }).unwrap();
        let (kind, bdi) = (FileKind::Regular, Bdi::NO_READAHEAD);
        let file = engine.file_create(FileSpec { name: "data".to_owned(), pages: 3000, kind, bdi }).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.open(task, file).unwrap();
        let (mut ops, mut writes, mut sleeps, mut most) = (Vec::new(), Vec::new(), 0, 0);
        for page in 0..3000 {
            let mut step = engine.start(task, Access::new(object, page, true));
            loop {
                engine.take_ops(&mut ops);
                writes.extend(ops.drain(..).filter_map(|op| match op {
                    Op::WriteFile { io, .. } => Some(io),
                    _ => None,
                }));
                let is_asleep = matches!(step, Step::Wait(Wait::Delay(_, DelayReason::DirtyPages)));
                sleeps += u32::from(is_asleep);
                if is_asleep || page % device_every == 0 {
                    for io in writes.drain(..) {
                        engine.io_done(io, CpuId(0), Ok(()));
                    }
                }
                match step {
                    Step::Done(_) => break,
                    _ => step = engine.resume(task),
                }
            }
            most = most.max(engine.figures().vmstat(Stat::NrDirty) as u64);
        }
        engine.check_invariants();
        (engine, sleeps, most)
    }

    #[test]
    fn who_dirties_too_much_writes_it_itself() {
        let (engine, sleeps, most) = write_all(1);
        let written = engine.figures().pages_written_by(WritebackReason::Writer);
        assert!(written > 1000, "{written} pages");
        assert!(sleeps < 10, "{sleeps} sleeps, where less was dirty than it was to write");
        // A fifth of free and page cache, and what is dirtied between two looks.
        assert!(most <= 4096 / 5 + 128, "{most} dirty pages");
    }

    #[test]
    fn it_sleeps_where_all_that_is_too_much_is_being_written_already() {
        let (engine, sleeps, _) = write_all(u64::MAX);
        assert!(sleeps > 0);
        assert!(engine.figures().pages_written_by(WritebackReason::Writer) > 1000);
    }

    #[test]
    fn looks_come_by_the_size_of_memory_and_often_where_a_device_has_too_much() {
        let look = |pages: u64, cpus: u16, exceeded: bool| {
            let config = Config { node_pages: vec![pages], cpus, ..Config::default() };
            Engine::new(config).unwrap().core.mm.writer_look(exceeded)
        };
        assert_eq!([look(524_288, 4, false), look(4096, 4, false), look(4096, 16, false)], [1024, 32, 16]);
        assert_eq!(look(524_288, 4, true), 8);
    }
}
