//! Files that end, calls on whole files, and pages that others take.
//!
//! A page that leaves while its task is in no reclaim call was truncated. If the inode is deleted with its last name, the file is deleted.
//! A later file with the same inode number is another file: to the page cache it is an empty file in the same place.

use pageout_workload::trace::{FileCall, PlacedCall};

use super::Collector;
use crate::event::{Event, FileKey};

/// Pages of a file that leave, one event each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Going {
    file: usize,
    first: u64,
    last: u64,
    /// Accesses that were made before.
    access: u64,
    /// The removal of the file has been reported.
    is_deleted: bool,
}

impl Collector {
    /// The inode of a file goes, and with it the file.
    pub(super) fn deletion(&mut self, task: usize, key: FileKey) {
        let Some(&file) = self.by_key.get(&key) else { return };
        self.files[file].deletions += 1;
        self.files[file].inserted_end = 0;
        self.call(file, self.accesses, FileCall::Delete);
        let access = self.accesses;
        self.tasks[task].going = Some(Going { file, first: 0, last: 0, access, is_deleted: true });
    }

    /// Memory takes an inode back whose file stays. The kernel remembers nothing of its pages from here on.
    pub(super) fn inode_reclaim(&mut self, key: FileKey) {
        if let Some(&file) = self.by_key.get(&key) {
            self.call(file, self.accesses, FileCall::Forget);
        }
    }

    /// A folio leaves as its file ends before it.
    pub(super) fn truncation(&mut self, task: usize, event: &Event) {
        let file = self.file(event.file);
        self.sums.truncated += event.last - event.first + 1;
        match &mut self.tasks[task].going {
            Some(going) if going.file == file => {
                going.first = going.first.min(event.first);
                going.last = going.last.max(event.last);
            }
            _ => {
                self.end_going(task);
                let (first, last, access) = (event.first, event.last, self.accesses);
                self.tasks[task].going = Some(Going { file, first, last, access, is_deleted: false });
            }
        }
    }

    /// All pages have gone that were to. If the last one is the last that was used, the file ends where they began, and what was evicted of it
    /// before is no more, either.
    pub(super) fn end_going(&mut self, task: usize) {
        let Some(going) = self.tasks[task].going.take() else { return };
        if going.is_deleted {
            return;
        }
        let file = &mut self.files[going.file];
        file.truncations += 1;
        let end = if going.last >= file.page_last { u64::MAX } else { going.last + 1 };
        self.call(going.file, going.access, FileCall::Truncate { first: going.first, end });
    }

    /// A task that is not followed reclaims for the complete machine. Pages of the followed tasks that it takes are reported. Pages charged
    /// to other groups come and leave without the group.
    pub(super) fn taken(&mut self, event: &Event) {
        let Some(&file) = self.by_key.get(&event.file) else { return };
        for page in event.first..=event.last {
            if !self.files[file].brought_in.remove(page) {
                continue;
            }
            self.eviction(&Event { first: page, last: page, ..*event });
            self.sums.taken += 1;
            self.room.left(1);
            let object = self.files[file].objects.iter().flatten().next();
            match self.calls.last_mut() {
                Some(PlacedCall { access, object: of, call: FileCall::Evict { end, .. } })
                    if *access == self.accesses && Some(&*of) == object && *end == page =>
                {
                    *end += 1;
                }
                _ => self.call(file, self.accesses, FileCall::Evict { first: page, end: page + 1 }),
            }
        }
    }

    /// A call on a file that is one of the trace's.
    pub(super) fn call(&mut self, file: usize, access: u64, call: FileCall) {
        if let Some(&object) = self.files[file].objects.iter().flatten().next() {
            self.calls.push(PlacedCall { access, object, call });
        }
    }
}
