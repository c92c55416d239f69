//! The expected contents of each page: a map that knows nothing of how the engine works.
//!
//! A page that was never written reads as zero, or, in a regular file, as contents that no other page has. Each other page reads as the last write,
//! in both of its halves: a partial write is one of the lower half, and the upper one stays. After a failed write to a file's device, the garbage
//! that it left there is right as well, until the page is written again. After `madvise(MADV_FREE)` the old contents and zero are both right, until
//! zero was seen once or the page is written.

use std::collections::BTreeMap;

use pageout_engine::{FileId, MmId, ObjectId, TaskId};

/// A page, by what it is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Page {
    Regular(FileId, u64),
    Tmpfs(FileId, u64),
    /// Anonymous.
    Anon(Heap, u64),
}

/// Anonymous memory, by a number that its machine gives it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Heap(u64);

impl Heap {
    /// A mapping that is private to a task.
    pub(super) fn of_object(task: TaskId, object: ObjectId) -> Heap {
        Heap(u64::from(task.0) << 32 | u64::from(object.0))
    }

    /// The task and its mapping.
    pub(super) fn object(self) -> (TaskId, ObjectId) {
        (TaskId((self.0 >> 32) as u32), ObjectId(self.0 as u32))
    }

    /// All of an address space.
    pub(crate) fn of_process(mm: MmId) -> Heap {
        Heap(mm.0.into())
    }
}

#[derive(Clone, Copy, Debug)]
enum Written {
    Known(u64),
    /// This, or zero from some moment on.
    Forgettable(u64),
    /// This, or what a failed write has left on the device.
    Lost(u64, u64),
}

/// The contents of all pages.
#[derive(Default)]
pub(crate) struct Contents {
    written: BTreeMap<Page, Written>,
    /// Pages of files that are being removed, and by how many calls: the result of a read of them is not
    /// known.
    going: BTreeMap<Page, u32>,
    last_value: u64,
}

/// Contents of a page of a regular file that was never written.
pub(crate) fn of_file(file: FileId, page: u64) -> u64 {
    0xf11e << 48 | u64::from(file.0) << 32 | page
}

impl Contents {
    /// A write to the page, of a value that was never written before.
    pub(crate) fn write(&mut self, page: Page) -> u64 {
        self.last_value += 1;
        self.put(page, self.last_value << 32 | self.last_value)
    }

    /// The same of the lower half of a page that has held this.
    pub(crate) fn write_part(&mut self, page: Page, held: u64) -> u64 {
        self.check_read(page, held);
        self.last_value += 1;
        self.put(page, held >> 32 << 32 | self.last_value)
    }

    fn put(&mut self, page: Page, value: u64) -> u64 {
        self.written.insert(page, Written::Known(value));
        value
    }

    /// A write of nothing but zeroes.
    pub(crate) fn write_zeroes(&mut self, page: Page) -> u64 {
        self.put(page, 0)
    }

    /// Panics unless a read may see this value.
    pub(crate) fn check_read(&mut self, page: Page, seen: u64) {
        if self.going.contains_key(&page) {
            return;
        }
        match self.of(page) {
            Written::Known(value) => assert_eq!(seen, value, "{page:?} reads as {seen:#x}"),
            Written::Lost(value, left) => {
                assert!(
                    [value, left].contains(&seen),
                    "{page:?} reads as {seen:#x}, neither {value:#x} nor what a failed write left"
                )
            }
            Written::Forgettable(value) if seen == value => {}
            Written::Forgettable(value) => {
                assert_eq!(seen, 0, "{page:?} reads as neither {value:#x} nor zero");
                // Forgotten contents stay forgotten.
                self.written.insert(page, Written::Known(0));
            }
        }
    }

    fn of(&self, page: Page) -> Written {
        let never_written = if let Page::Regular(file, at) = page { of_file(file, at) } else { 0 };
        self.written.get(&page).copied().unwrap_or(Written::Known(never_written))
    }

    /// A write to a file's device has ended; `on_device` is what is there now.
    pub(crate) fn reached_device(&mut self, page: Page, failed: bool, on_device: u64) {
        let (Written::Known(last) | Written::Lost(last, _)) = self.of(page) else { return };
        if failed {
            self.written.insert(page, Written::Lost(last, on_device));
        } else if on_device == last {
            self.written.insert(page, Written::Known(last));
        }
    }

    /// Panics unless the device, after fsync, has what was written last.
    pub(crate) fn check_device(&self, page: Page, found: u64) {
        if self.going.contains_key(&page) {
            return;
        }
        if let Written::Known(value) = self.of(page) {
            assert_eq!(found, value, "on its device {page:?} reads as {found:#x}");
        }
    }

    pub(crate) fn is_going(&mut self, page: Page) {
        *self.going.entry(page).or_default() += 1;
    }

    /// A page of a file is gone, and reads as zero.
    pub(crate) fn is_gone(&mut self, page: Page) {
        self.written.insert(page, Written::Known(0));
        let by = self.going.get_mut(&page).expect("it was going");
        *by -= 1;
        if *by == 0 {
            self.going.remove(&page);
        }
    }

    /// `MADV_FREE`.
    pub(crate) fn may_be_forgotten(&mut self, page: Page) {
        if let Some(written) = self.written.get_mut(&page)
            && let Written::Known(value) = *written
        {
            *written = Written::Forgettable(value);
        }
    }

    /// The mapping is gone, and what was in it.
    pub(crate) fn unmapped(&mut self, heap: Heap) {
        self.written.retain(|page, _| !matches!(page, Page::Anon(of, _) if *of == heap));
    }

    /// The anonymous memory of a task is gone: new memory is in its place.
    pub(crate) fn forgotten(&mut self, task: TaskId) {
        self.written.retain(|page, _| !matches!(page, Page::Anon(heap, _) if heap.object().0 == task));
    }

    /// Pages that were written.
    pub(crate) fn pages(&self) -> Vec<Page> {
        self.written.keys().copied().collect()
    }
}
