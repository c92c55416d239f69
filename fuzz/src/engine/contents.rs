//! What each page must hold: a map, and nothing of how the engine works.
//!
//! A page that was never written reads as zero, a regular file's as contents that no other page has, any other as what was
//! written last. After `madvise(MADV_FREE)` the old contents and zero are both right, until zero was seen once or the page is
//! written.

use std::collections::BTreeMap;

use pageout_engine::{FileId, ObjectId, TaskId};

/// A page, by what it is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Page {
    Regular(FileId, u64),
    Tmpfs(FileId, u64),
    /// Private to the task whose mapping it is.
    Anon(TaskId, ObjectId, u64),
}

#[derive(Clone, Copy, Debug)]
enum Written {
    Known(u64),
    /// This, or zero from some moment on.
    Forgettable(u64),
}

/// The contents of all pages.
#[derive(Default)]
pub(super) struct Contents {
    written: BTreeMap<Page, Written>,
    last_value: u64,
}

/// What a regular file holds at a page.
pub(super) fn of_file(file: FileId, page: u64) -> u64 {
    0xf11e << 48 | u64::from(file.0) << 32 | page
}

impl Contents {
    /// A write to the page, of a value that was never written before.
    pub(super) fn write(&mut self, page: Page) -> u64 {
        assert!(!matches!(page, Page::Regular(..)), "a write to {page:?} was let through");
        self.last_value += 1;
        self.written.insert(page, Written::Known(self.last_value));
        self.last_value
    }

    /// Panics unless a read may see this value.
    pub(super) fn check_read(&mut self, page: Page, seen: u64) {
        if let Page::Regular(file, at) = page {
            assert_eq!(seen, of_file(file, at), "{page:?} reads as {seen:#x}");
            return;
        }
        match self.written.get(&page).copied().unwrap_or(Written::Known(0)) {
            Written::Known(value) => assert_eq!(seen, value, "{page:?} reads as {seen:#x}"),
            Written::Forgettable(value) if seen == value => {}
            Written::Forgettable(value) => {
                assert_eq!(seen, 0, "{page:?} reads as neither {value:#x} nor zero");
                // What is forgotten stays forgotten.
                self.written.insert(page, Written::Known(0));
            }
        }
    }

    /// `MADV_FREE`.
    pub(super) fn may_be_forgotten(&mut self, page: Page) {
        if let Some(written) = self.written.get_mut(&page)
            && let Written::Known(value) = *written
        {
            *written = Written::Forgettable(value);
        }
    }

    /// The mapping is gone, and what was in it.
    pub(super) fn unmapped(&mut self, task: TaskId, object: ObjectId) {
        self.written.retain(|page, _| !matches!(page, Page::Anon(t, o, _) if (*t, *o) == (task, object)));
    }

    /// The anonymous memory of a task is gone: new memory is in its place.
    pub(super) fn forgotten(&mut self, task: TaskId) {
        self.written.retain(|page, _| !matches!(page, Page::Anon(of, ..) if *of == task));
    }

    /// Pages that were written.
    pub(super) fn pages(&self) -> Vec<Page> {
        self.written.keys().copied().collect()
    }
}
