//! Commits and other calls of a task on whole files, one after every so many accesses: fsync(2), as a database commits; truncation and
//! deletion, as of a log that begins again and of a temporary file.

use pageout_engine::ObjectId;
use pageout_workload::Access;
use std::collections::VecDeque;

/// A call on a whole file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileCall {
    /// fsync(2), which counts writes.
    Sync,
    /// All of the file is truncated, which counts every access.
    Truncate,
    /// The file is deleted, likewise.
    Unlink,
}

/// The objects whose accesses a task counts.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    counted: Vec<Counted>,
    /// What is to be done before the next access, in this order.
    due: VecDeque<(ObjectId, FileCall)>,
}

/// A file whose commits are counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    object: ObjectId,
    call: FileCall,
    every: u32,
    /// Accesses until the next time.
    left: u32,
}

impl Commits {
    /// `None` for a task that has nothing to count. What is due at once is done in the order given here.
    pub(crate) fn new(calls: &[(FileCall, &[(ObjectId, u32)])]) -> Option<Box<Commits>> {
        let counted = calls.iter().flat_map(|&(call, of)| {
            of.iter().map(move |&(object, every)| Counted { object, call, every, left: every })
        });
        let commits = Commits { counted: counted.collect(), due: VecDeque::new() };
        (!commits.counted.is_empty()).then(|| Box::new(commits))
    }

    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// What to do now.
    pub(crate) fn take_due(&mut self) -> Option<(ObjectId, FileCall)> {
        self.due.pop_front()
    }

    /// How many accesses can be made until a call is due, or all of them.
    pub(crate) fn until_due(&self, accesses: &[Access]) -> usize {
        let mut ahead = self.clone();
        let last = accesses.iter().position(|access| {
            ahead.count(access);
            ahead.is_due()
        });
        last.map_or(accesses.len(), |last| last + 1)
    }

    /// Accesses that were made, of which only the last may make a call due.
    pub(crate) fn note(&mut self, accesses: &[Access]) {
        for access in accesses {
            debug_assert!(!self.is_due(), "a call is made before the next access");
            self.count(access);
        }
    }

    fn count(&mut self, access: &Access) {
        for counted in &mut self.counted {
            let counts = counted.call != FileCall::Sync || access.is_write();
            if counted.object.0 == access.object() && counts {
                counted.left -= 1;
                if counted.left == 0 {
                    counted.left = counted.every;
                    self.due.push_back((counted.object, counted.call));
                }
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
    fn a_file_is_to_be_synced_after_so_many_writes_of_its_own() {
        let mut commits = Commits::new(&[(FileCall::Sync, &[(ObjectId(1), 2)])]).unwrap();
        let made = accesses(&[(1, true), (1, false), (0, true), (1, true), (1, true)]);
        assert_eq!(commits.until_due(&made), 4, "a read of it and a write of another don't count");
        commits.note(&made[..4]);
        assert_eq!(commits.take_due(), Some((ObjectId(1), FileCall::Sync)));
        assert!(!commits.is_due());
        assert_eq!(commits.until_due(&made[4..]), 1, "it would take another one");
        assert!(Commits::new(&[(FileCall::Sync, &[])]).is_none());
    }

    #[test]
    fn a_file_is_truncated_after_so_many_accesses_and_synced_before_that() {
        let calls: [(FileCall, &[(ObjectId, u32)]); 2] =
            [(FileCall::Sync, &[(ObjectId(1), 1)]), (FileCall::Truncate, &[(ObjectId(1), 3)])];
        let mut commits = Commits::new(&calls).unwrap();
        let made = accesses(&[(1, false), (1, false), (1, true)]);
        assert_eq!(commits.until_due(&made), 3);
        commits.note(&made);
        assert_eq!(commits.take_due(), Some((ObjectId(1), FileCall::Sync)));
        assert_eq!(commits.take_due(), Some((ObjectId(1), FileCall::Truncate)));
        assert_eq!(commits.take_due(), None);
    }
}
