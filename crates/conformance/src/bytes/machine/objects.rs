//! Objects and files that come, go, and change: closed and opened again, lent, grown and shrunk.

use std::collections::BTreeSet;
use std::ops::Range;

use pageout_engine::*;

use super::ByteMachine;
use super::act::OBJECTS_MAX;
use super::tasks::{Doing, Object, State, Truncated, What};
use crate::bytes::contents::{Heap, Page};

/// The maximum size of a file.
const PAGES_MAX: u64 = 700;

impl ByteMachine {
    /// The number by which a task has a file open.
    pub(super) fn open_object(&self, task: usize, file: usize) -> Option<ObjectId> {
        let of = &self.tasks[task];
        let found = of.objects.iter().find(|(_, object)| *object == Object::Open(file));
        found.filter(|_| !of.is_killed && of.state != State::Gone).map(|&(id, _)| id)
    }

    /// Pages that a task reaches through one of its objects.
    pub(super) fn object_pages(&self, task: usize, id: ObjectId) -> u64 {
        self.engine.figures().object_pages(TaskId(task as u32), id).expect("the task has this object")
    }

    /// Closes an object, and makes one of its kind, which has its number.
    pub(super) fn reopen(&mut self, task: usize, id: ObjectId, object: Object) {
        let is_lent = self.tasks[task].lent.is_some_and(|(lent, _)| lent == id);
        let borrowers = || {
            (0..self.tasks.len()).filter(|&at| self.tasks[at].lent.is_some_and(|(_, of)| of == (task, id)))
        };
        let is_used = borrowers().any(|at| self.tasks[at].state != State::Idle);
        if is_lent || is_used || self.tasks[task].ever_mapped >= OBJECTS_MAX {
            return;
        }
        for at in borrowers().collect::<Vec<_>>() {
            let (lent, _) = self.tasks[at].lent.take().expect("it was lent one");
            self.tasks[at].objects.retain(|&(id, _)| id != lent);
        }
        self.engine.close(TaskId(task as u32), id).expect("the task has this object");
        self.take_ops();
        assert!(self.engine.close(TaskId(task as u32), id).is_err(), "an object is closed twice");
        if object == Object::Anon {
            self.contents.unmapped(Heap::of_object(TaskId(task as u32), id));
        }
        assert_eq!(self.make_object(task, object), id, "the number of what was closed is used again");
    }

    /// Has a task access what another one has open.
    pub(super) fn lend(&mut self, task: usize, id: ObjectId, object: Object, to: usize) {
        let is_lent = self.tasks[task].lent.is_some_and(|(lent, _)| lent == id);
        if task == to || is_lent || !matches!(object, Object::Open(_)) {
            return;
        }
        let lent = self.engine.lend((TaskId(task as u32), id), TaskId(to as u32)).expect("it is open");
        let borrower = &mut self.tasks[to];
        if let Some((before, _)) = borrower.lent.replace((lent, (task, id))) {
            assert_eq!(before, lent, "a task is lent two objects");
        }
        borrower.objects.retain(|&(id, _)| id != lent);
        borrower.objects.push((lent, object));
    }

    /// Makes a file longer or shorter.
    pub(super) fn resize(&mut self, task: usize, file: usize, pages: u8, grows: bool) {
        let (id, _, before) = self.files[file];
        self.resized.insert(file);
        if grows {
            let pages = (before + u64::from(pages)).min(PAGES_MAX).max(before);
            self.engine.file_grow(id, pages).expect("it is in range");
            self.files[file].2 = pages;
            self.longest[file] = self.longest[file].max(pages);
            return;
        }
        if self.open_object(task, file).is_none() {
            return;
        }
        let pages = before.saturating_sub(u64::from(pages)).max(1);
        let (object, end) = (Object::Open(file), self.longest[file]);
        let gone = Truncated { object, first: pages, end, what: What::Shorter };
        self.files[file].2 = pages;
        gone.pages().for_each(|page| self.is_going(task, gone.object, page));
        let step = self.begin_truncation(task, gone).expect("it is in range");
        self.advanced(task, Doing::Truncate(gone), step, false);
    }

    /// A flush of a file's device begins, or the current one ends. If it fails, the device has lost the pages that it should save.
    pub(super) fn flush(&mut self, task: usize, file: usize, fails: bool) {
        let (FileKind::Regular, Some(object)) = (self.files[file].1, self.open_object(task, file)) else {
            return;
        };
        let (task, id) = (TaskId(task as u32), self.files[file].0);
        let Some(taken) = self.store.flush(id) else {
            return self.engine.flush_begins(task, object).expect("it is open");
        };
        let result = if fails { Err(IoError::Device) } else { Ok(()) };
        let Unkept { dirty, lost } = self.engine.flush_ended(task, object, result).expect("it is open");
        if !(fails && self.keeps_failed_writes) {
            assert!(
                dirty.is_empty() && lost.is_empty(),
                "{dirty:?}, {lost:?} of a flush that is not reported"
            );
            return;
        }
        let told: BTreeSet<u64> = dirty.iter().chain(&lost).copied().collect();
        assert_eq!(told, taken, "pages that the device had taken, and those that it may have lost");
        for page in taken {
            if self.store.lose(id, page) && lost.contains(&page) {
                self.contents.reached_device(Page::Regular(id, page), true, self.store.block(id, page));
            }
        }
    }

    /// The effect on a file that loses these pages: it is deleted if these are all of its pages.
    pub(super) fn what(&self, object: Object, pages: Range<u64>) -> What {
        if pages == (0..self.pages_of(object)) { What::Deleted } else { What::Hole }
    }

    /// Has the engine take pages of a file away.
    pub(super) fn begin_truncation(&mut self, task: usize, gone: Truncated) -> Result<Step, ConfigError> {
        let Truncated { object, first, end, what } = gone;
        let found = self.tasks[task].objects.iter().find(|&&(_, of)| of == object);
        let (id, task) = (found.expect("the task has it").0, TaskId(task as u32));
        match what {
            What::Shorter => self.engine.file_shrink(task, id, first),
            What::Deleted => self.engine.unlink(task, id),
            What::Hole => self.engine.truncate(task, id, first..end),
        }
    }
}
