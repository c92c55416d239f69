//! The recording program: the loads, stores and system calls that it made for each access of its sequence.
//!
//! It stores to anonymous memory by loading first: it changes a word rather than setting it. So a page in swap comes back by a read
//! fault and keeps its slot. At the end of a recorded run, all but 110 of the 4,042 anonymous pages in memory have a slot, although
//! a third of the accesses are stores. A store alone gives the slot up: then some 1,250 pages would have none. The first touch of a
//! page fills it without looking. It is a store, whatever the sequence says.
//!
//! The program notes first touches in an array of flags, a byte a page, and looks there before each access to anonymous memory.
//! Most of the array is not the group's, because the program went over its buffers before it joined. The array's last page is. In
//! every recorded run of anonymous memory alone, the first touch of page 5,968 of 8,192 is a major fault. The page itself can't
//! cause one. But its flag is the first in the array's last page, and that page had been swapped out by then. No other first
//! touch is a major fault, though page 1,872 crosses into the array's second page. (The recordings' notes have all of the array's
//! pages in the group. With them, the mixed runs of MGLRU differ by 12 to 228 misses; with one page they are exact.)

use std::sync::Arc;

use pageout_workload::{Access, InMemory};

/// Where the array of flags begins in its first page, in bytes.
const FLAGS_START: u64 = 2224;

/// The page of flags that is the group's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    /// Number of the object that stands for it, among the task's.
    pub(super) object: u32,
    /// Pages of the run's anonymous objects, which have a flag each.
    pub(super) pages: u64,
}

impl Flags {
    fn page_of(flag: u64) -> u64 {
        (FLAGS_START + flag) / pageout_engine::PAGE_SIZE
    }

    /// Returns true if a flag lies in the last page.
    fn holds(self, flag: u64) -> bool {
        Flags::page_of(flag) == Flags::page_of(self.pages - 1)
    }
}

/// The accesses in order.
pub(super) struct Script {
    accesses: Arc<[Access]>,
    /// By access of the sequence, the position of the first access that belongs to it; and the end.
    starts: Vec<u64>,
}

impl Script {
    /// `first` is the number of the run's first object among the task's; `flag_of` gives the flag of an anonymous page, from 0.
    pub(super) fn new(
        sequence: &[Access],
        first: u32,
        flags: Option<Flags>,
        flag_of: impl Fn(&Access) -> Option<u64>,
    ) -> Script {
        let mut accesses = Vec::with_capacity(sequence.len());
        let mut starts = Vec::with_capacity(sequence.len() + 1);
        let mut touched = Vec::new();
        for access in sequence {
            starts.push(accesses.len() as u64);
            let access_of = |write| Access::new(access.object() + first, access.page(), write);
            let Some(flag) = flag_of(access) else {
                accesses.push(access_of(access.is_write()));
                continue;
            };
            let is_first = !set(&mut touched, flag as usize);
            let looked_up = flags.filter(|flags| flags.holds(flag));
            accesses.extend(looked_up.map(|flags| Access::new(flags.object, 0, false)));
            if access.is_write() && !is_first {
                accesses.push(access_of(false));
            }
            accesses.push(access_of(access.is_write() || is_first));
            let noted = looked_up.filter(|_| is_first);
            accesses.extend(noted.map(|flags| Access::new(flags.object, 0, true)));
        }
        starts.push(accesses.len() as u64);
        Script { accesses: accesses.into(), starts }
    }

    /// Where in the script an access of the sequence begins.
    pub(super) fn start_of(&self, access: u64) -> u64 {
        self.starts[(access as usize).min(self.starts.len() - 1)]
    }

    /// By access of the sequence, whether one of those that belong to it is marked in `marks`.
    pub(super) fn fold(&self, marks: &[bool]) -> Vec<bool> {
        let spans = self.starts.windows(2);
        spans.map(|span| marks[span[0] as usize..span[1] as usize].contains(&true)).collect()
    }

    /// How many accesses of the sequence are over when the script has come to an access of its own.
    pub(super) fn accesses_done(&self, at: u64) -> usize {
        self.starts.partition_point(|&start| start <= at).saturating_sub(1)
    }

    pub(super) fn len(&self) -> usize {
        self.accesses.len()
    }

    pub(super) fn stream(&self) -> InMemory {
        InMemory::new(self.accesses.clone())
    }
}

/// Sets a flag, and says what it was.
fn set(flags: &mut Vec<bool>, at: usize) -> bool {
    if flags.len() <= at {
        flags.resize(at + 1, false);
    }
    std::mem::replace(&mut flags[at], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_touch_of_anonymous_memory_is_a_store_whatever_the_sequence_says() {
        let sequence = [0, 0, 1].map(|page| Access::new(0, page, false));
        let script = Script::new(&sequence, 3, None, |access| Some(access.page()));
        let own = [(0, true), (0, false), (1, true)].map(|(page, write)| Access::new(3, page, write));
        assert_eq!(*script.accesses, own);
        // A load of a file is one, the first time too.
        let script = Script::new(&sequence, 3, None, |_| None);
        assert!(script.accesses.iter().all(|access| !access.is_write()));
    }

    #[test]
    fn a_store_to_anonymous_memory_loads_first_but_for_the_first_touch() {
        let sequence = [true, false, true].map(|write| Access::new(0, 7, write));
        let flags = Flags { object: 9, pages: 8192 };
        let script = Script::new(&sequence, 3, Some(flags), |access| Some(access.page()));
        let own = [true, false, false, true].map(|write| Access::new(3, 7, write));
        assert_eq!(*script.accesses, own);
        assert_eq!([0, 1, 2, 3].map(|access| script.start_of(access)), [0, 1, 2, 4]);
        // In a file nothing is known of first touches, and a store is one.
        let script = Script::new(&sequence, 3, None, |_| None);
        assert_eq!(script.len(), 3);
    }

    #[test]
    fn the_flags_of_the_last_page_are_looked_up_and_noted_once() {
        let write = |page| Access::new(0, page, true);
        let sequence = [write(5967), write(5968), Access::new(0, 5968, false)];
        let flags = Flags { object: 9, pages: 8192 };
        let script = Script::new(&sequence, 3, Some(flags), |access| Some(access.page()));
        let flag = |is_write| Access::new(9, 0, is_write);
        let own = |page, is_write| Access::new(3, page, is_write);
        let expected =
            [own(5967, true), flag(false), own(5968, true), flag(true), flag(false), own(5968, false)];
        assert_eq!(*script.accesses, expected);
        assert_eq!([0, 1, 2, 3].map(|access| script.start_of(access)), [0, 1, 4, 6]);
        assert_eq!(script.fold(&[false, true, false, false, false, false]), [false, true, false]);
    }
}
