//! Devices that fail (`writeback.failed_write=dirty`): which writers their stuck pages throttle, and when a writer gets
//! an error.
//!
//! ```text
//!   a write of a file fails ─► the file is stuck          until a write of it succeeds, or it is truncated clean
//!        │                       └ its pages that are dirty or under writeback are stuck pages
//!        └─► its device is failing since then             until a write to it succeeds, or no file of it is stuck
//!
//!   a writer to a failing device that its limits would slow down:
//!   0 ── naps ── 500 ms ─┬─ the last failure is younger than 200 ms ──────────────────────► error
//!                        └─ older: the writer probes, naps for 300 ms at most ─┬─ a failure, or no answer ─► error
//!                                                                              └─ a success ─► the usual throttle
//! ```
//! A page whose write failed stays dirty (`retry.rs`). While its device is full or away, the page can't become clean, and the usual throttle
//! would make writers wait for that forever. Two rules prevent it:
//!
//! - **Stuck pages count for their own device only.** The limits of a writer to one device leave out the stuck pages of all other devices: they are
//!   neither dirty pages nor memory that could be dirty. So a full disk holds back its own writers alone. The same limits decide whether a flusher
//!   has background work. A group's limits leave out the stuck pages of the group's wbs and of the groups below it.
//! - **A writer that would wait for a failing device gets an error** (`AccessError::Writeback`). The page that it was about to write stays
//!   unchanged. The writer naps first, because a failure may be transient. Then one writer *probes*: it ends the rest of the device's stuck files
//!   and has the flusher write them. Other writers wait for the outcome of that probe. So an error comes within a second of the first failure. A
//!   device that works again is found within half a second, although files rest for up to 30 s.
//!
//! A device that does not answer, and has not failed, is slow: its writers wait as usual.
//!
//! A write of a stuck file tries as many pages as make one plug, unless a task waits for the file. If these writes succeed, the others follow.
//! So a full disk costs little, however much is stuck with it.
//!
//! One file may fail while its device works: its quota is used up, or one of its blocks is broken. So a stuck file counts as failing by itself
//! if its device is not, and only its own writers get errors. The limits of the device's other writers then leave out its stuck pages too, as
//! long as these are less than half of the memory that could be dirty. (Beyond that, each further file could fill what the ones before have
//! left.) Rates are not updated while a device fails, and a failed write does not count as completed: neither shows how fast the device
//! writes.

use crate::core::Core;
use crate::memory::errors::IoError;
use crate::units::{BdiId, FileId, MemcgId, Nanos, WbId};
use crate::writeback::throttle::{DirtyThrottle, ThrottleStep};

/// How long writers nap after the first failure before they do anything else.
const GRACE: Nanos = Nanos(500_000_000);
/// A failure younger than that needs no probe: the device fails still.
const FRESH: Nanos = Nanos(200_000_000);
/// How long a probe may take.
const PROBE: Nanos = Nanos(300_000_000);
/// The maximum time before a writer checks again.
const NAP: Nanos = Nanos(20_000_000);

/// Failures of a device, or of a file, that no success has followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failures {
    since: Nanos,
    last: Nanos,
    /// When the current probe began.
    probe: Option<Nanos>,
}

/// What a writer does about failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Nap(Nanos),
    /// It begins a probe.
    Probe,
    Fail,
}

/// Numbers of stuck pages. A page that is dirty and under writeback counts twice, as it does in all limits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct StuckPages {
    pub(super) dirty: u64,
    pub(super) writeback: u64,
}

/// Stuck pages that the limits of a wb, or of a writer to a file of it, leave out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LeftOut {
    /// The sums for the machine, for the wb's group and those below it, and for the wb itself.
    pub(super) machine: StuckPages,
    pub(super) group: StuckPages,
    pub(super) wb: StuckPages,
}

impl Failures {
    fn new(now: Nanos) -> Failures {
        Failures { since: now, last: now, probe: None }
    }

    /// Another failure. It ends the probe.
    fn note(&mut self, now: Nanos) {
        (self.last, self.probe) = (now, None);
    }

    fn judge(&mut self, now: Nanos) -> Answer {
        let nap_until = |at: Nanos| Answer::Nap(Nanos((at.0 - now.0).min(NAP.0)));
        if now < self.since + GRACE {
            return nap_until(self.since + GRACE);
        }
        match self.probe {
            Some(begun) if now < begun + PROBE => nap_until(begun + PROBE),
            // No answer is one, and all who wait get it.
            Some(_) => {
                self.note(now);
                Answer::Fail
            }
            None if now < self.last + FRESH => Answer::Fail,
            None => {
                self.probe = Some(now);
                Answer::Probe
            }
        }
    }

    fn is_probed(&self, now: Nanos) -> bool {
        self.probe.is_some_and(|begun| now < begun + PROBE)
    }
}

impl StuckPages {
    pub(super) fn all(self) -> u64 {
        self.dirty + self.writeback
    }
}

impl std::ops::AddAssign for StuckPages {
    fn add_assign(&mut self, other: StuckPages) {
        self.dirty += other.dirty;
        self.writeback += other.writeback;
    }
}

impl std::ops::AddAssign for LeftOut {
    fn add_assign(&mut self, other: LeftOut) {
        self.machine += other.machine;
        self.group += other.group;
        self.wb += other.wb;
    }
}

impl Core {
    /// A write of a file has ended.
    pub(super) fn note_outcome(&mut self, file: FileId, result: Result<(), IoError>) {
        if !self.keeps_failed_writes() || result.is_ok() && self.writeback.stuck.is_empty() {
            return;
        }
        let (now, bdi) = (self.by.now, self.mm.memory.file(file).inode.bdi);
        let device = &mut self.writeback.bdis[bdi.index()].failing;
        match result {
            Ok(()) => {
                *device = None;
                let inode = &self.mm.memory.file(file).inode;
                let goes_on = self.writeback.stuck.remove(&file).is_some() && !inode.dirty.is_empty();
                if let Some(wb) = inode.wb.filter(|_| goes_on) {
                    self.start_background(wb);
                }
            }
            Err(_) => {
                device.get_or_insert(Failures::new(now)).note(now);
                self.writeback.stuck.entry(file).or_insert(Failures::new(now)).note(now);
            }
        }
    }

    /// Dirty pages of a file have gone with their part of it. A file of which nothing is left to be written is stuck no more, and what comes next is
    /// written as that of any file.
    pub(crate) fn note_pages_gone(&mut self, file: FileId) {
        let inode = &mut self.mm.memory.file_mut(file).inode;
        if self.writeback.stuck.is_empty() || !inode.dirty.is_empty() || !inode.writeback.is_empty() {
            return;
        }
        let bdi = inode.bdi;
        if self.writeback.stuck.remove(&file).is_some() {
            inode.rest = Default::default();
            if self.stuck_of(bdi).next().is_none() {
                self.writeback.bdis[bdi.index()].failing = None;
            }
        }
    }

    /// Returns true if a file is tried with some pages before the others are written.
    pub(super) fn is_stuck(&self, file: FileId) -> bool {
        self.writeback.stuck.contains_key(&file)
    }

    /// Returns true if writes to a wb's device fail.
    pub(super) fn is_failing(&self, wb: WbId) -> bool {
        self.writeback.bdis[self.writeback.wb(wb).bdi.index()].failing.is_some()
    }

    /// What the limits of a wb leave out. `file`: those of a writer to this file of it.
    pub(super) fn left_out(&self, wb: WbId, file: Option<FileId>) -> LeftOut {
        let [mut others, mut own] = [LeftOut::default(); 2];
        if self.writeback.stuck.is_empty() {
            return others;
        }
        let (of, is_failing) = (self.writeback.wb(wb), self.is_failing(wb));
        for &stuck in self.writeback.stuck.keys() {
            let inode = &self.mm.memory.file(stuck).inode;
            let sum = match inode.bdi == of.bdi {
                true if is_failing || file == Some(stuck) => continue,
                true => &mut own,
                false => &mut others,
            };
            let pages = StuckPages { dirty: inode.dirty.count(), writeback: inode.writeback.count() };
            sum.machine += pages;
            let Some(owner) = inode.wb else { continue };
            let memcg = self.writeback.wb(owner).memcg;
            if of.memcg != MemcgId::ROOT && self.mm.memcgs.is_below(memcg, of.memcg) {
                sum.group += pages;
            }
            if owner == wb {
                sum.wb += pages;
            }
        }
        let available = self.mm.dirtyable().saturating_sub(others.machine.all());
        if own.machine.all() <= available / 2 {
            others += own;
        }
        others
    }

    /// A writer to a file would be slowed down. What it does instead if the file's device fails, or the file does; nothing if they don't.
    pub(super) fn failing_step(
        &mut self,
        throttle: &mut DirtyThrottle,
        file: FileId,
    ) -> Option<ThrottleStep> {
        if self.writeback.stuck.is_empty() {
            return None;
        }
        let (now, bdi) = (self.by.now, self.mm.memory.file(file).inode.bdi);
        let failures = match &mut self.writeback.bdis[bdi.index()].failing {
            Some(failures) => failures,
            None => self.writeback.stuck.get_mut(&file)?,
        };
        Some(match failures.judge(now) {
            Answer::Nap(span) => {
                self.try_stuck(bdi);
                ThrottleStep::Sleep(span)
            }
            Answer::Probe => {
                self.end_rests(bdi, file);
                self.try_stuck(bdi);
                ThrottleStep::Sleep(NAP)
            }
            Answer::Fail => throttle.refuse(),
        })
    }

    /// Flushers may try the stuck files of a failing device again; if only a file fails, that one.
    fn end_rests(&mut self, bdi: BdiId, file: FileId) {
        let is_device = self.writeback.bdis[bdi.index()].failing.is_some();
        let probed: Vec<FileId> = self.stuck_of(bdi).filter(|&stuck| is_device || stuck == file).collect();
        for file in probed {
            self.mm.memory.file_mut(file).inode.rest.failed_at = None;
        }
    }

    /// Wakes the flusher for the wbs that have stuck files which are probed and not written yet. One that was in the middle of other work when the
    /// probe began may have passed them by.
    fn try_stuck(&mut self, bdi: BdiId) {
        let wbs = self.writeback.bdis[bdi.index()].wbs.clone();
        for wb in wbs {
            if self.has_probed_files(wb) {
                self.start_background(wb);
            }
        }
    }

    /// Returns true if a wb has files to be written for a probe.
    pub(super) fn has_probed_files(&self, wb: WbId) -> bool {
        if self.writeback.stuck.is_empty() {
            return false;
        }
        let now = self.by.now;
        let of_device = self.writeback.bdis[self.writeback.wb(wb).bdi.index()].failing;
        self.writeback.stuck.iter().any(|(&file, failures)| {
            let inode = &self.mm.memory.file(file).inode;
            inode.wb == Some(wb)
                && of_device.as_ref().unwrap_or(failures).is_probed(now)
                && !inode.dirty.is_empty()
                && !inode.rest.is_on(now)
        })
    }

    /// Pages of all stuck files that are under writeback.
    pub(super) fn stuck_under_writeback(&self) -> u64 {
        let files = self.writeback.stuck.keys();
        files.map(|&file| self.mm.memory.file(file).inode.writeback.count()).sum()
    }

    fn stuck_of(&self, bdi: BdiId) -> impl Iterator<Item = FileId> {
        self.writeback.stuck.keys().copied().filter(move |&file| self.mm.memory.file(file).inode.bdi == bdi)
    }

    /// Panics unless each stuck file has something to be written, and each failing device a stuck file.
    pub(super) fn check_stuck(&self) {
        let now = self.by.now;
        let check = |failures: &Failures, name: &str| {
            let Failures { since, last, probe } = *failures;
            assert!(since <= last && last <= now, "{name} fails since {since}, and last did at {last}");
            assert!(
                probe.is_none_or(|begun| last <= begun && begun <= now),
                "a probe of {name} began at {probe:?}, and it failed at {last}"
            );
        };
        assert!(
            self.keeps_failed_writes() || self.writeback.stuck.is_empty(),
            "files are stuck whose pages are clean after a failed write"
        );
        for (&file, failures) in &self.writeback.stuck {
            let of = self.mm.memory.file(file);
            check(failures, &of.name);
            let pages = of.inode.dirty.count() + of.inode.writeback.count();
            assert!(
                pages > 0 && of.inode.wb.is_some(),
                "{} is stuck, and has nothing to be written",
                of.name
            );
        }
        for (at, device) in self.writeback.bdis.iter().enumerate() {
            let Some(failures) = &device.failing else { continue };
            check(failures, &format!("device {at}"));
            let mut stuck = self.stuck_of(BdiId(at as u16)).peekable();
            assert!(stuck.peek().is_some(), "device {at} is failing, and no file of it is stuck");
            let last = stuck.map(|file| self.writeback.stuck[&file].last).max();
            assert!(
                last <= Some(failures.last),
                "a file of device {at} failed at {last:?}, it at {}",
                failures.last
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos(ms * 1_000_000)
    }

    #[test]
    fn failing_device_says_nothing_of_its_rate() {
        let mut policy = Policy::of("classic@6.12");
        policy.machine.writeback.failed_write = FailedWrite::Dirty;
        let mut engine = Engine::new(Config { policy, ..Config::default() }).unwrap();
        let (kind, bdi) = (FileKind::Regular, Bdi::NO_READAHEAD);
        let file = engine.file_create(FileSpec { name: "data".to_owned(), pages: 8, kind, bdi }).unwrap();
        let mm = engine.process_create(MemcgId::ROOT);
        let task = engine.task_create(mm, CpuId(0));
        let object = engine.open(task, file).unwrap();
        assert!(matches!(engine.start(task, Access::new(object, 0, true)), Step::Done(_)));
        let wb = engine.core.wb_for(BdiId(0), MemcgId::ROOT);
        // Whether it counts as written, and the rate is another after a second.
        let mut sync = |result| {
            let mut step = engine.fsync(task, object).unwrap();
            let mut ops = Vec::new();
            while !matches!(step, Step::Done(_)) {
                engine.take_ops(&mut ops);
                for op in ops.drain(..) {
                    if let Op::WriteFile { io, .. } = op {
                        engine.io_done(io, CpuId(0), result);
                    }
                }
                step = engine.resume(task);
            }
            let now = engine.core.by.now + Nanos::SECOND;
            engine.set_now(now);
            let before = engine.core.writeback.wb(wb).rates.average;
            engine.core.update_bandwidth(wb, [None, None]);
            let of = engine.core.writeback.wb(wb);
            let written = (of.rates.written, of.completions.at(now) > 0);
            (written, of.rates.average != before)
        };
        for _ in 0..3 {
            assert_eq!(sync(Err(IoError::Device)), ((0, false), false));
        }
        assert_eq!(sync(Ok(())), ((1, true), false), "what it wrote follows only later");
        assert_eq!(sync(Ok(())), ((1, true), true));
    }

    #[test]
    fn writer_naps_then_probes_then_fails() {
        let mut failures = Failures::new(ms(1000));
        assert_eq!(failures.judge(ms(1000)), Answer::Nap(ms(20)));
        assert_eq!(failures.judge(ms(1495)), Answer::Nap(ms(5)));
        assert_eq!(failures.judge(ms(1500)), Answer::Probe);
        assert_eq!(failures.judge(ms(1501)), Answer::Nap(ms(20)), "another one waits for the outcome");
        failures.note(ms(1510));
        assert_eq!(failures.judge(ms(1520)), Answer::Fail);
        assert_eq!(failures.judge(ms(1709)), Answer::Fail);
        assert_eq!(failures.judge(ms(1710)), Answer::Probe);
    }

    #[test]
    fn probe_without_answer_fails_for_all_who_wait() {
        let mut failures = Failures::new(ms(0));
        assert_eq!(failures.judge(ms(600)), Answer::Probe);
        assert_eq!(failures.judge(ms(899)), Answer::Nap(ms(1)));
        assert!(failures.is_probed(ms(899)) && !failures.is_probed(ms(900)));
        assert_eq!([900, 905, 1099].map(|at| failures.judge(ms(at))), [Answer::Fail; 3]);
        assert_eq!(failures.judge(ms(1100)), Answer::Probe);
    }

    #[test]
    fn failure_that_is_news_to_nobody_needs_no_probe() {
        let mut failures = Failures::new(ms(0));
        failures.note(ms(400));
        assert_eq!(failures.judge(ms(500)), Answer::Fail);
    }
}
