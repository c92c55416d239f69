//! Files that a task has on their device every so many of its writes: fsync(2), as a database commits.

use pageout_engine::ObjectId;
use pageout_workload::Access;

/// The objects whose writes a task counts.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    objects: Vec<Committed>,
    /// The one whose file is to be synced before the next access.
    due: Option<ObjectId>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Committed {
    object: ObjectId,
    every: u32,
    /// Writes until the next time.
    left: u32,
}

impl Commits {
    /// `None` for a task that has nothing to count.
    pub(crate) fn new(every: Vec<(ObjectId, u32)>) -> Option<Box<Commits>> {
        let objects = every.into_iter().map(|(object, every)| Committed { object, every, left: every });
        let commits = Commits { objects: objects.collect(), due: None };
        (!commits.objects.is_empty()).then(|| Box::new(commits))
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The file to sync now.
    pub(crate) fn take_due(&mut self) -> Option<ObjectId> {
        self.due.take()
    }

    /// How many accesses can be made until a file is to be synced, or all of them.
    pub(crate) fn until_due(&self, accesses: &[Access]) -> usize {
        let mut ahead = self.clone();
        let last = accesses.iter().position(|access| {
            ahead.count(access);
            ahead.is_due()
        });
        last.map_or(accesses.len(), |last| last + 1)
    }

    /// Accesses that were made, of which only the last may make a file due.
    pub(crate) fn note(&mut self, accesses: &[Access]) {
        for access in accesses {
            debug_assert!(!self.is_due(), "a file is synced before the next access");
            self.count(access);
        }
    }

    fn count(&mut self, access: &Access) {
        let of = |commit: &&mut Committed| commit.object.0 == access.object();
        if access.is_write()
            && let Some(commit) = self.objects.iter_mut().find(of)
        {
            commit.left -= 1;
            if commit.left == 0 {
                commit.left = commit.every;
                self.due = Some(commit.object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(of: &[(u32, bool)]) -> Vec<Access> {
        of.iter().map(|&(object, is_write)| Access::new(object, 0, is_write)).collect()
    }

    #[test]
    fn a_file_is_due_after_so_many_writes_of_its_own() {
        let mut commits = Commits::new(vec![(ObjectId(1), 2)]).unwrap();
        let made = accesses(&[(1, true), (1, false), (0, true), (1, true), (1, true)]);
        assert_eq!(commits.until_due(&made), 4, "a read of it and a write of another don't count");
        commits.note(&made[..4]);
        assert_eq!((commits.take_due(), commits.is_due()), (Some(ObjectId(1)), false));
        assert_eq!(commits.until_due(&made[4..]), 1, "it would take another one");
        assert!(Commits::new(Vec::new()).is_none());
    }
}
