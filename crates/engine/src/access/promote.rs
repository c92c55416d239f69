//! Promotion of page cache by its reader: a task moves the folios that it has isolated for promotion before it returns to user space.
//! [tiering 7]

use crate::access::engine::Engine;
use crate::access::task::{Current, Stage};
use crate::machine::step::{Access, Served, Step};
use crate::memory::folio::FolioFlags;
use crate::promotion::Promoting;
use crate::stat::ISOLATED;
use crate::units::{NodeId, Pfn, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// The folios that a task promotes, and its access, which is complete except for that.
pub(crate) struct PromotionWork {
    access: Access,
    served: Served,
    promoting: Promoting,
}

impl Engine {
    /// The folios that tasks have isolated, to be promoted when their calls are over.
    fn set_aside(&self) -> impl Iterator<Item = Pfn> {
        self.tasks.iter().flat_map(|task| {
            let promoting = match &task.stage {
                Stage::Promote(work) => Some(work.promoting.folios()),
                _ => None,
            };
            task.aside.folios().chain(promoting.into_iter().flatten())
        })
    }

    /// A call continues in another task, which gets the folios that the call has isolated for promotion. For a host that has several tasks
    /// serve the accesses of one call.
    pub fn pass_call(&mut self, from: TaskId, to: TaskId) {
        self.assert_idle(from);
        let aside = std::mem::take(&mut self.tasks[from.index()].aside);
        self.tasks[to.index()].aside.append(aside);
    }

    /// Returns the number of these pages of each node and type. Panics unless the tasks alone hold them.
    pub(crate) fn pages_set_aside(&self) -> BTreeMap<(NodeId, usize), i64> {
        let (mut seen, mut pages) = (BTreeSet::new(), BTreeMap::new());
        for pfn in self.set_aside() {
            let folio = &self.core.mm.memory.folios[pfn];
            assert!(seen.insert(pfn), "{pfn:?} is set aside twice");
            assert!(!folio.has(FolioFlags::LRU), "{pfn:?} is set aside and on a list");
            assert!(folio.refs > 0, "{pfn:?} is set aside, and nobody knows");
            *pages.entry((folio.node, folio.lru_type() as usize)).or_default() += folio.pages() as i64;
        }
        pages
    }

    /// Panics unless the folios that tasks hold for promotion count as isolated.
    pub(super) fn check_set_aside(&self) {
        for ((node, kind), held) in self.pages_set_aside() {
            let (name, counted) = (ISOLATED[kind].name(), self.core.mm.node_stat(node, ISOLATED[kind]));
            assert!(counted >= held, "{name} of {node:?} is {counted}, tasks alone have {held}");
        }
    }
}

impl Current<'_> {
    /// This access ends its call, and the call has isolated pages for promotion.
    #[doc(alias = "task_numa_promotion_work")]
    #[cold]
    pub(super) fn begin_promotion_work(&mut self, access: Access, served: Served) -> Step {
        let aside = std::mem::take(&mut self.task.aside);
        let promoting = self.core.begin_promoting(aside);
        self.promotion_work(Box::new(PromotionWork { access, served, promoting }))
    }

    /// Goes on with it, a batch a step.
    pub(super) fn promotion_work(&mut self, mut work: Box<PromotionWork>) -> Step {
        if self.core.promote_batch(&mut work.promoting) {
            self.task.stage = Stage::Promote(work);
            return Step::Again;
        }
        // The page that was accessed may be among those that have moved.
        let served = self.served_still(work.access, work.served);
        self.pay_what_is_owed(work.access, served)
    }

    /// A page of a lower memory tier was read again: it is isolated if it may be promoted, and reported as used.
    #[cold]
    pub(super) fn read_slow_page(&mut self, pfn: Pfn, is_in_use: bool) {
        self.core.report_read(pfn);
        if self.core.mm.is_governed() {
            self.core.note_read(pfn);
        }
        if is_in_use && self.core.mm.promotes_page_cache() {
            let mm = self.task.mm();
            self.core.promotion_candidate(pfn, mm, &mut self.task.aside);
        }
    }

    /// A task ends in the middle of a call: the folios that it has isolated for promotion go back to their lists.
    pub(super) fn drop_promotion_work(&mut self) {
        let aside = std::mem::take(&mut self.task.aside);
        self.core.put_back_set_aside(aside);
    }
}

#[cfg(any(test, feature = "fault-injection"))]
impl Engine {
    /// Makes migrations fail at a step: of eight in a row those whose bits are set, again and again. The lowest bit is the next one's.
    pub fn refuse_migrations(&mut self, step: crate::migrate::MigrateStep, pattern: u8) {
        self.core.refusals.patterns[step as usize] = pattern;
    }
}
