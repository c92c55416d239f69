//! What a task does for tiers of memory before it returns to user space: it promotes what it has set aside.

use crate::machine::step::{Access, Served, Step};
use crate::promotion::Promoting;
use crate::serve::engine::Engine;
use crate::serve::task::Stage;
use crate::units::{Pfn, TaskId};

/// What is promoted, and the access that is complete but for that.
pub(crate) struct PromotionWork {
    access: Access,
    served: Served,
    promoting: Promoting,
}

impl Engine {
    /// This access ends its call, and pages were set aside in the call.
    #[cold]
    pub(super) fn begin_promotion_work(&mut self, task: TaskId, access: Access, served: Served) -> Step {
        let aside = std::mem::take(&mut self.tasks[task.index()].aside);
        let promoting = self.core.begin_promoting(aside);
        self.promotion_work(task, Box::new(PromotionWork { access, served, promoting }))
    }

    /// Goes on with it, a batch a step.
    pub(super) fn promotion_work(&mut self, task: TaskId, mut work: Box<PromotionWork>) -> Step {
        if self.core.promote_batch(&mut work.promoting) {
            self.tasks[task.index()].stage = Stage::Promote(work);
            return Step::Again;
        }
        // The page that was accessed may be among those that have moved.
        let served = self.served_still(task, work.access, work.served);
        self.pay_what_is_owed(task, work.access, served)
    }

    /// A page of a lower tier was read again: it is set aside if it may be promoted, and reported as used.
    #[cold]
    pub(super) fn read_slow_page(&mut self, task: TaskId, pfn: Pfn, is_in_use: bool) {
        self.core.report_read(pfn);
        if is_in_use && self.core.promotes_page_cache() {
            let mut aside = std::mem::take(&mut self.tasks[task.index()].aside);
            self.core.promotion_candidate(pfn, &mut aside);
            self.tasks[task.index()].aside = aside;
        }
    }

    /// A task ends in the middle of a call: what it has set aside stays where it is.
    pub(super) fn drop_promotion_work(&mut self, task: TaskId) {
        let aside = std::mem::take(&mut self.tasks[task.index()].aside);
        self.core.put_back_set_aside(aside);
    }
}
