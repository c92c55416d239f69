//! What percentages of a limit are percentages of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::{Channel, Scenario, Task};

/// The tasks of a scenario by cgroup, for what they can touch.
pub(super) struct Touchable<'a> {
    scenario: &'a Scenario,
    by_memcg: BTreeMap<&'a str, Vec<&'a Task>>,
}

impl Touchable<'_> {
    pub(super) fn of(scenario: &Scenario) -> Touchable<'_> {
        let mut by_memcg: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
        for task in &scenario.task {
            by_memcg.entry(&task.memcg).or_default().push(task);
        }
        Touchable { scenario, by_memcg }
    }

    /// Pages that the tasks in the cgroup `path` and below can touch: each file once, anonymous memory once a copy. What
    /// percentages in its limits are percentages of.
    pub(super) fn pages(&self, path: &str) -> u64 {
        let parent = if path == "/" { "" } else { path };
        // Names below the group begin with a slash behind its own, and all of them stand together.
        let (below, beyond) = (format!("{parent}/"), format!("{parent}0"));
        let own = self.by_memcg.get(path).filter(|_| path != "/");
        let below = (Bound::Included(below.as_str()), Bound::Excluded(beyond.as_str()));
        let inside = own.into_iter().chain(self.by_memcg.range::<str, _>(below).map(|(_, tasks)| tasks));
        let mut files: BTreeSet<&str> = BTreeSet::new();
        let mut pages = 0;
        for task in inside.flatten() {
            for (at, object) in task.object.iter().enumerate() {
                let times = match (&object.file, object.channel) {
                    (Some(name), _) => u64::from(files.insert(name)),
                    (None, Channel::Anonymous) => u64::from(task.copies),
                    (None, _) => 1,
                };
                pages += times * self.scenario.pages_of(task, at).unwrap_or(0);
            }
        }
        pages
    }
}
