//! ftruncate(2) and hole punching as a task makes them: the file, and the task's waits. The pages go in `page_cache/truncate.rs`.

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::access::task::{Current, Stage};
use crate::config::{ConfigError, FileSystem};
use crate::machine::step::{AccessError, Served, Step, Wait};
use crate::memory::mm::Backing;
use crate::page_cache::{TruncateStep, Truncation};
use crate::units::{FileId, ObjectId, PAGE_SIZE, TaskId};
use std::ops::Range;

impl Engine {
    /// Takes pages out of an open or mapped file: `fallocate(FALLOC_FL_PUNCH_HOLE)`, or the part of ftruncate(2) behind the new end. The
    /// pages read as zeroes when the call is over, with the result [`Served::Truncated`]. Dirty pages are not written. The task waits for
    /// reads and writes of these pages. If a reader unknown to the engine has one of them in use ([`crate::FrameGate`]), the call ends
    /// with [`AccessError::Held`]. Others may be freed by then, and the caller has to repeat the call.
    ///
    /// The task must not be in the middle of an access.
    pub fn truncate(
        &mut self,
        task: TaskId,
        object: ObjectId,
        pages: Range<u64>,
    ) -> Result<Step, ConfigError> {
        let file = self.file_to_truncate(task, object)?;
        let of = self.core.mm.memory.file(file);
        if pages.is_empty() || pages.end > of.pages() {
            return Err(ConfigError::Unknown(format!("pages {pages:?} in {}", of.name)));
        }
        Ok(self.current(task).truncate_on(Box::new(Truncation::new(file, pages))))
    }

    /// The same of a range of bytes: pages wholly in it go. A page of which it has a part stays, and the caller writes zeroes there: before this call
    /// if the file system is XFS, else after it. Folios are split where the range begins and ends.
    pub fn truncate_bytes(
        &mut self,
        task: TaskId,
        object: ObjectId,
        bytes: Range<u64>,
    ) -> Result<Step, ConfigError> {
        let file = self.file_to_truncate(task, object)?;
        let of = self.core.mm.memory.file(file);
        let mut pages = bytes.start.div_ceil(PAGE_SIZE)..bytes.end / PAGE_SIZE;
        if bytes.is_empty() || pages.end > of.pages() {
            return Err(ConfigError::Unknown(format!("bytes {bytes:?} in {}", of.name)));
        }
        if pages.is_empty() {
            if !of.is_tmpfs() {
                return Ok(Step::Done(Served::Truncated));
            }
            // tmpfs splits folios also where no page goes.
            pages.end = pages.start;
        }
        let is_aligned = [bytes.start, bytes.end].iter().all(|at| at.is_multiple_of(PAGE_SIZE));
        let zeroes_first = of.bdi.file_system == FileSystem::Xfs && !is_aligned;
        let cuts = [bytes.start, bytes.end].map(|at| at / PAGE_SIZE);
        let call = Truncation::new(file, pages).within(cuts, zeroes_first);
        Ok(self.current(task).truncate_on(Box::new(call)))
    }

    /// Deletes a file that a task has open or mapped, as unlink(2) and the last close(2) do. It makes an empty file of the same length in
    /// its place, and all objects of the old file now have the new one. Returns and waits as [`Engine::truncate`].
    pub fn unlink(&mut self, task: TaskId, object: ObjectId) -> Result<Step, ConfigError> {
        let file = self.file_to_truncate(task, object)?;
        let pages = self.core.mm.memory.file(file).index.pages();
        Ok(self.current(task).truncate_on(Box::new(Truncation::of_all(file, pages))))
    }

    pub(super) fn file_to_truncate(&mut self, task: TaskId, object: ObjectId) -> Result<FileId, ConfigError> {
        self.enter(task);
        self.assert_idle(task);
        let file = match self.open_object(task, object) {
            Some(Object::File { file, .. }) => Some(file),
            Some(Object::Mapping { mm, vma, .. }) => match self.core.mm.memory.mm(mm).vmas[vma].backing {
                Backing::File(file) => Some(file),
                Backing::Anon => None,
            },
            None => None,
        };
        file.ok_or_else(|| ConfigError::Unknown(format!("file {} of task {}", object.0, task.0)))
    }
}

impl Current<'_> {
    pub(super) fn truncate_on(&mut self, mut call: Box<Truncation>) -> Step {
        // That a read has failed which it waited for is nothing to it.
        self.task.read_failed = false;
        let step = match self.core.truncate_step(&mut call) {
            TruncateStep::Done => return Step::Done(Served::Truncated),
            TruncateStep::Held(page) => return Step::Done(Served::Failed(AccessError::Held { page })),
            TruncateStep::Again => Step::Again,
            TruncateStep::WaitFor(pfn) => Step::Wait(Wait::Io(self.core.wait_for_folio(pfn, self.id))),
        };
        self.task.stage = Stage::Truncate(call);
        step
    }
}
