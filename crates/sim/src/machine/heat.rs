//! The heat map of a run: which pages were accessed when, for a chart.
//!
//! If memory has tiers, hindsight follows pages in any case (`machine.hindsight`), and the map shows what it knows. On other machines pages are
//! followed only if a caller requests it. A hash chooses a sample of many pages, so that a map takes the same memory for any run.

mod damon; // addresses that kdamonds monitor

use std::collections::BTreeMap;

use pageout_engine::{Access, Nanos, ObjectId, Pfn};

use super::Machine;
use crate::calls::decode_call;
use crate::memory::{HeatMap, Hindsight};
use crate::task::decode;

use damon::Counts;

/// Rows of a map.
const ROWS: usize = 48;

/// Pages followed for the map alone.
pub(super) struct Followed {
    pages: Hindsight,
    /// What begins at a page's key.
    names: BTreeMap<u64, String>,
    /// What kdamonds monitor; `None` before the first access, as a module's thread starts with the machine.
    watched: Option<Vec<Counts>>,
}

impl Machine {
    /// Counts accesses by page and time from now on ([`crate::Report::heat`]). It changes nothing in the run.
    pub fn watch_heat(&mut self) {
        let mut names = BTreeMap::new();
        for task in &self.tasks {
            for object in 0..task.objects() {
                let first = Access::new(ObjectId(object as u32), 0, false);
                let key = self.engine.figures().page_key(task.runner.id, first);
                names.entry(key).or_insert_with(|| format!("{}, object {object}", task.name));
            }
        }
        self.engine.keep_damon_windows();
        self.heat = Some(Box::new(Followed { pages: Hindsight::new(), names, watched: None }));
    }

    /// The next accesses of a task were made.
    #[cold]
    #[inline(never)]
    pub(super) fn note_heat(&mut self, index: usize, count: usize, at: Nanos) {
        let Machine { heat: Some(heat), tasks, engine, .. } = self else { return };
        let task = &tasks[index];
        let watched = heat.watched.get_or_insert_with(|| Counts::all(engine));
        for &access in &task.accesses.pending()[..count] {
            let access: Access =
                task.calls.as_deref().map_or_else(|| decode(access), |calls| decode_call(access, calls));
            let key = engine.figures().page_key(task.runner.id, access);
            heat.pages.note(key, Pfn(0), at, true, || false);
            watched.iter_mut().for_each(|counts| counts.note(engine, task.runner.id, access, at));
        }
    }

    /// Accesses by address and time; nothing if no page was followed.
    pub(super) fn heat_map(&self) -> HeatMap {
        let of_tiers = self.memory.as_deref().and_then(|memory| memory.hindsight.as_ref());
        let followed = self.heat.as_deref();
        let Some(pages) = of_tiers.or(followed.map(|heat| &heat.pages)) else { return HeatMap::default() };
        let name = |key: u64| {
            let before = followed.and_then(|heat| heat.names.range(..=key).next_back());
            let begins = before.filter(|(first, _)| Hindsight::is_same_object(**first, key));
            match begins {
                Some((first, name)) => format!("{name}, page {}", key - first),
                None => format!("page {}", Hindsight::page_of(key)),
            }
        };
        pages.heat_map(ROWS, name)
    }
}
