//! The model of page contents: a map of what each page must hold, and nothing of how the engine works.
//!
//! A page that was never written reads as zero, a page of a regular file as its known contents, and each as last
//! written. If a write to a file's device has failed, what that left there is right as well, until the page is written again.
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
    /// This, or the garbage that a failed write has left on the device.
    Lost(u64, u64),
}

/// The contents of all pages.
#[derive(Default)]
pub(crate) struct Model {
    pages: BTreeMap<Page, Contents>,
    /// Pages of files that are being removed, and by how many calls. A read of one meanwhile returns its contents in memory or on the
    /// device, or zeroes.
    going: BTreeMap<Page, u32>,
}

/// What a regular file holds at a page; no other page ever holds it.
pub(crate) fn file_contents(file: FileId, page: u64) -> u64 {
    0xf11e << 48 | u64::from(file.0) << 32 | page
}

impl Model {
    pub(crate) fn written(&mut self, page: Page, value: u64) {
        self.pages.insert(page, Contents::Known(value));
    }

    /// Panics unless a read may see this value.
    pub(crate) fn check_read(&mut self, page: Page, seen: u64) {
        if self.going.contains_key(&page) {
            return;
        }
        match self.contents(page) {
            Contents::Known(value) => {
                assert_eq!(seen, value, "{page:?} reads as {seen:#x}, but {value:#x} was written")
            }
            Contents::Lost(value, garbage) => {
                assert!(
                    [value, garbage].contains(&seen),
                    "{page:?} reads as {seen:#x}, but {value:#x} was written"
                )
            }
            Contents::Forgettable(value) if seen == value => {}
            Contents::Forgettable(value) => {
                assert_eq!(seen, 0, "{page:?} reads as {seen:#x}, but only {value:#x} or zero is right");
                // Forgotten contents stay forgotten.
                self.pages.insert(page, Contents::Known(0));
            }
        }
    }

    /// The anonymous memory of a task is gone: new memory is in its place.
    pub(crate) fn forgotten(&mut self, task: TaskId) {
        self.pages.retain(|page, _| !matches!(page, Page::Anon(of, ..) if *of == task));
    }

    fn contents(&self, page: Page) -> Contents {
        let never_written = match page {
            Page::Regular(file, at) => file_contents(file, at),
            Page::Tmpfs(..) | Page::Anon(..) => 0,
        };
        self.pages.get(&page).copied().unwrap_or(Contents::Known(never_written))
    }

    /// A write to the device has ended: with this value, or with an error, which has left `garbage` there. An error does
    /// not lose data yet if the page was written again since that write began; it does as long as that is not on the
    /// device.
    pub(crate) fn reached_device(&mut self, page: Page, value: Option<u64>, garbage: u64) {
        let (Contents::Known(last) | Contents::Lost(last, _)) = self.contents(page) else { return };
        let contents = match value {
            None => Contents::Lost(last, garbage),
            Some(value) if value == last => Contents::Known(last),
            Some(_) => return,
        };
        self.pages.insert(page, contents);
    }

    /// Panics unless the device, after fsync, has what was written last.
    pub(crate) fn check_device(&self, page: Page, found: u64) {
        let Contents::Known(value) = self.contents(page) else { return };
        assert_eq!(found, value, "on its device {page:?} reads as {found:#x}, but {value:#x} was written");
    }

    /// Panics unless the device has what was written last, where that was written with a value under `below`. Zeroes have no date.
    pub(crate) fn check_synced(&self, page: Page, found: u64, below: u64) {
        if let Some(Contents::Known(value)) = self.pages.get(&page)
            && !self.going.contains_key(&page)
            && (1..below).contains(value)
        {
            self.check_device(page, found);
        }
    }

    /// A page of a file is being taken away, and may be written no more, or again.
    pub(crate) fn is_going(&mut self, page: Page) {
        *self.going.entry(page).or_default() += 1;
    }

    /// The page is, and reads as zero.
    pub(crate) fn is_gone(&mut self, page: Page) {
        self.pages.insert(page, Contents::Known(0));
        let by = self.going.get_mut(&page).expect("it was going");
        *by -= 1;
        if *by == 0 {
            self.going.remove(&page);
        }
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
