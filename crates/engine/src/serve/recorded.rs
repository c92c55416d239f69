//! What a player of recordings tells the engine before an access, and after it. See [`crate::recorded`].

use std::ops::Range;

use crate::core::Core;
use crate::serve::access::Object;
use crate::serve::engine::Engine;
use crate::units::{FileId, MmId, ObjectId, TaskId};

impl Engine {
    /// The agings of the next access walk the address space that they come to, or pass by it. What was said of an access before is
    /// forgotten.
    pub fn play_walks(&mut self, walks: impl IntoIterator<Item = bool>) {
        let recorded = &mut self.core.mm.recorded.walks;
        recorded.clear();
        recorded.extend(walks);
    }

    /// Faults of the next accesses map these pages of their mapping and no others, but for the accessed page.
    pub fn play_mapped(&mut self, pages: impl IntoIterator<Item = Range<u64>>) {
        let mapped = self.core.mm.recorded.mapped.get_or_insert_default();
        mapped.clear();
        mapped.extend(pages);
    }

    /// The access is over: what of its pages no fault could map yet, as it was being read, is mapped now if it is there.
    pub fn play_mapped_late(&mut self, task: TaskId, object: ObjectId) {
        let Object::Mapping { open: Some(open), mm, start, .. } =
            self.tasks[task.index()].objects[object.index()]
        else {
            return;
        };
        let file = self.core.mm.memory.open_files[open.index()].file;
        let mapped = self.core.mm.recorded.mapped.take();
        for pages in mapped.iter().flatten() {
            self.core.map_cached(mm, start, file, pages.clone());
        }
        self.core.mm.recorded.mapped = mapped;
    }
}

impl Core {
    fn map_cached(&mut self, mm: MmId, start: u64, file: FileId, pages: Range<u64>) {
        for page in pages {
            if let Some(pfn) = self.mm.unmapped(mm, start, file, page) {
                self.map_entry(mm, start + page, pfn, false);
            }
        }
    }
}
