//! Commits and other calls of a task on complete files: fsync(2), as a database commits; truncation and deletion, as for a log that starts over and
//! for a temporary file. One comes after every N accesses, or at the places of a recording.

use pageout_engine::ObjectId;
use pageout_workload::Access;
use pageout_workload::trace::FileCall;
use std::collections::VecDeque;

/// The calls that are due after some accesses.
#[derive(Clone, Debug)]
pub(crate) struct Commits {
    counted: Vec<Counted>,
    /// Calls at places of their own, in order.
    placed: VecDeque<(u64, ObjectId, FileCall)>,
    /// Accesses made so far, of all objects.
    made: u64,
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
    /// `None` for a task that has none. Calls that are due at the same time are made in the order given here, and `placed` ones before that.
    pub(crate) fn new(
        calls: &[(FileCall, &[(ObjectId, u32)])],
        placed: Vec<(u64, ObjectId, FileCall)>,
    ) -> Option<Box<Commits>> {
        let counted = calls.iter().flat_map(|&(call, of)| {
            of.iter().map(move |&(object, every)| Counted { object, call, every, left: every })
        });
        let counted: Vec<Counted> = counted.collect();
        let mut commits = Commits { counted, placed: placed.into(), made: 0, due: VecDeque::new() };
        let has_any = !commits.counted.is_empty() || !commits.placed.is_empty();
        commits.place();
        has_any.then(|| Box::new(commits))
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
        let placed = self.placed.front().map_or(usize::MAX, |(access, ..)| (access - self.made) as usize);
        let accesses = &accesses[..accesses.len().min(placed)];
        if self.counted.is_empty() {
            return accesses.len();
        }
        let mut counted = self.counted.clone();
        let last = accesses.iter().position(|access| counted.iter_mut().any(|counted| counted.count(access)));
        last.map_or(accesses.len(), |last| last + 1)
    }

    /// Accesses that were made, of which only the last may make a call due.
    pub(crate) fn note(&mut self, accesses: &[Access]) {
        debug_assert!(!self.is_due(), "a call is made before the next access");
        self.made += accesses.len() as u64;
        self.place();
        if !self.counted.is_empty() {
            accesses.iter().for_each(|access| self.count(access));
        }
    }

    /// Calls whose place is here are due.
    fn place(&mut self) {
        while let Some((_, object, call)) = self.placed.pop_front_if(|(access, ..)| *access <= self.made) {
            self.due.push_back((object, call));
        }
    }

    fn count(&mut self, access: &Access) {
        for counted in &mut self.counted {
            if counted.count(access) {
                self.due.push_back((counted.object, counted.call));
            }
        }
    }
}

impl Counted {
    /// Counts an access if it is one of those; whether the call is due. fsync(2) counts writes, the others every access.
    fn count(&mut self, access: &Access) -> bool {
        let counts = self.call != FileCall::Sync || access.is_write();
        if self.object.0 != access.object() || !counts {
            return false;
        }
        self.left -= 1;
        let is_due = self.left == 0;
        if is_due {
            self.left = self.every;
        }
        is_due
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
        let mut commits = Commits::new(&[(FileCall::Sync, &[(ObjectId(1), 2)])], Vec::new()).unwrap();
        let made = accesses(&[(1, true), (1, false), (0, true), (1, true), (1, true)]);
        assert_eq!(commits.until_due(&made), 4, "a read of it and a write of another don't count");
        commits.note(&made[..4]);
        assert_eq!(commits.take_due(), Some((ObjectId(1), FileCall::Sync)));
        assert!(!commits.is_due());
        assert_eq!(commits.until_due(&made[4..]), 1, "it would take another one");
        assert!(Commits::new(&[(FileCall::Sync, &[])], Vec::new()).is_none());
    }

    #[test]
    fn a_file_is_truncated_after_so_many_accesses_and_synced_before_that() {
        let calls: [(FileCall, &[(ObjectId, u32)]); 2] =
            [(FileCall::Sync, &[(ObjectId(1), 1)]), (FileCall::TRUNCATE_ALL, &[(ObjectId(1), 3)])];
        let mut commits = Commits::new(&calls, Vec::new()).unwrap();
        let made = accesses(&[(1, false), (1, false), (1, true)]);
        assert_eq!(commits.until_due(&made), 3);
        commits.note(&made);
        assert_eq!(commits.take_due(), Some((ObjectId(1), FileCall::Sync)));
        assert_eq!(commits.take_due(), Some((ObjectId(1), FileCall::TRUNCATE_ALL)));
        assert_eq!(commits.take_due(), None);
    }

    #[test]
    fn a_placed_call_is_due_before_its_access_and_no_earlier() {
        let (file, made) = (ObjectId(0), accesses(&[(0, false); 5]));
        let placed = vec![(0, file, FileCall::Sync), (2, file, FileCall::Delete), (2, file, FileCall::Sync)];
        let mut commits = Commits::new(&[], placed).unwrap();
        assert_eq!(commits.take_due(), Some((file, FileCall::Sync)), "before the first access");
        assert_eq!(commits.until_due(&made), 2);
        commits.note(&made[..1]);
        assert!(!commits.is_due());
        commits.note(&made[1..2]);
        assert_eq!(commits.take_due(), Some((file, FileCall::Delete)));
        assert_eq!(commits.take_due(), Some((file, FileCall::Sync)));
        assert_eq!(commits.until_due(&made[2..]), 3);
    }
}
