//! What each page must hold: a map, and nothing of how the engine works.
//!
//! A page that was never written reads as zero, a page of a regular file as its known contents, any other as last written.
//! After `madvise(MADV_FREE)` the old contents and zero are both right, until a read has seen zero or the page is written.

use crate::units::{FileId, ObjectId, TaskId};
use std::collections::BTreeMap;

/// A page, by what it is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Page {
    Regular(FileId, u64),
    Tmpfs(FileId, u64),
    /// Private to the task whose mapping it is.
    Anon(TaskId, ObjectId, u64),
}

#[derive(Clone, Copy, Debug)]
enum Contents {
    Known(u64),
    /// This, or zero from some moment on.
    Forgettable(u64),
}

/// The contents of all pages.
#[derive(Default)]
pub(crate) struct Model {
    pages: BTreeMap<Page, Contents>,
}

/// What a regular file holds at a page; no other page ever holds it.
pub(crate) fn file_contents(file: FileId, page: u64) -> u64 {
    0xf11e << 48 | u64::from(file.0) << 32 | page
}

impl Model {
    pub(crate) fn written(&mut self, page: Page, value: u64) {
        assert!(!matches!(page, Page::Regular(..)), "{page:?} can't be written");
        self.pages.insert(page, Contents::Known(value));
    }

    /// Panics unless a read may see this value.
    pub(crate) fn check_read(&mut self, page: Page, seen: u64) {
        if let Page::Regular(file, at) = page {
            assert_eq!(seen, file_contents(file, at), "{page:?} reads as {seen:#x}");
            return;
        }
        match self.pages.get(&page).copied().unwrap_or(Contents::Known(0)) {
            Contents::Known(value) => {
                assert_eq!(seen, value, "{page:?} reads as {seen:#x}, but {value:#x} was written")
            }
            Contents::Forgettable(value) if seen == value => {}
            Contents::Forgettable(value) => {
                assert_eq!(seen, 0, "{page:?} reads as {seen:#x}, but only {value:#x} or zero is right");
                // What is forgotten stays forgotten.
                self.pages.insert(page, Contents::Known(0));
            }
        }
    }

    /// The anonymous memory of a task is gone: new memory is in its place.
    pub(crate) fn forgotten(&mut self, task: TaskId) {
        self.pages.retain(|page, _| !matches!(page, Page::Anon(of, ..) if *of == task));
    }

    /// `MADV_FREE`.
    pub(crate) fn may_be_forgotten(&mut self, page: Page) {
        if let Some(contents) = self.pages.get_mut(&page)
            && let Contents::Known(value) = *contents
        {
            *contents = Contents::Forgettable(value);
        }
    }
}
