//! What a player of recordings tells the engine before an access, and after it. See [`crate::recorded`].

use std::ops::Range;

use crate::access::engine::Engine;
use crate::access::hits::Object;
use crate::core::Core;
use crate::units::{FileId, MmId, ObjectId, TaskId};

impl Engine {
    /// Sets, for the agings of the next access, whether each walks or skips the address space that it visits. The values for an earlier
    /// access are dropped.
    pub fn play_walks(&mut self, walks: impl IntoIterator<Item = bool>) {
        let recorded = &mut self.core.mm.recorded.walks;
        recorded.clear();
        recorded.extend(walks);
    }

    /// Sets when the next access flushes statistics: each time that a given number of file pages have entered or left the page cache in
    /// it. The engine flushes when the next page would enter or leave, or when reclaim uses statistics, whichever is first. A refault is
    /// judged before the flush.
    pub fn play_flushes(&mut self, after: impl IntoIterator<Item = u64>) {
        let recorded = &mut self.core.mm.recorded;
        recorded.changes = 0;
        recorded.flushes.clear();
        recorded.flushes.extend(after);
    }

    /// The access is over: what was to be flushed in it, and for which too few pages came and went, is flushed now.
    pub fn play_flushes_late(&mut self) {
        while self.core.mm.recorded.flushes.pop_front().is_some() {
            self.core.flush_stats();
        }
    }

    /// Faults of the next accesses map these pages of their mapping and no others, except the accessed page.
    pub fn play_mapped(&mut self, pages: impl IntoIterator<Item = Range<u64>>) {
        let mapped = self.core.mm.recorded.mapped.get_or_insert_default();
        mapped.clear();
        mapped.extend(pages);
    }

    /// The access is over: maps those of its pages that no fault could map before, because they were being read, if they are present now.
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

#[cfg(test)]
mod tests {
    use crate::stat::Stat;
    use crate::*;

    /// A group that has read 8 pages of a file ahead at once, and statistics that are flushed after `flushed` of them.
    fn group_with_flushes(flushed: &[u64]) -> (Engine, MemcgId) {
        let config = Config { stat_flush: StatFlush::Manual, ..Config::default() };
        let mut engine = Engine::new(config).unwrap();
        let group = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(group);
        let task = engine.task_create(mm, CpuId(0));
        let bdi = Bdi { ra_pages: 32, ..Bdi::NO_READAHEAD };
        let spec = FileSpec { name: "data".to_owned(), pages: 100, kind: FileKind::Regular, bdi };
        let file = engine.file_create(spec).unwrap();
        let file = engine.open(task, file).unwrap();
        engine.play_flushes(flushed.iter().copied());
        let step = engine.readahead(task, file, 0, 8).unwrap();
        assert!(matches!(step, Step::Done(_)), "{step:?}");
        (engine, group)
    }

    /// Pages of files that a group's statistics know of.
    fn known(engine: &Engine, group: MemcgId) -> u64 {
        engine.core.mm.stale(engine.core.mm.lruvecs.id(group, NodeId(0)), Stat::NrFilePages)
    }

    fn known_after(flushed: &[u64]) -> [u64; 2] {
        let (mut engine, group) = group_with_flushes(flushed);
        let within = known(&engine, group);
        engine.play_flushes_late();
        [within, known(&engine, group)]
    }

    #[test]
    fn a_refault_is_judged_before_a_flush_that_came_once_its_page_had() {
        let (mut engine, group) = group_with_flushes(&[8]);
        engine.core.flush_stats_for_refault(group);
        assert_eq!(known(&engine, group), 0, "the task has not slept since the page came");
        engine.core.flush_stats_ratelimited();
        assert_eq!(known(&engine, group), 8, "reclaim comes later");
    }

    #[test]
    fn a_flush_within_an_access_knows_what_had_come_by_then() {
        assert_eq!(known_after(&[]), [0, 0]);
        assert_eq!(known_after(&[3]), [3, 3]);
        assert_eq!(known_after(&[0, 5]), [5, 5], "each in its place");
        assert_eq!(known_after(&[8]), [0, 8], "behind the last page, when the access is over");
        assert_eq!(known_after(&[100]), [0, 8], "and so is one for which fewer came");
    }
}
