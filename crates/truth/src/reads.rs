//! Recorded events of readahead: pages that came into the page cache, and requests to the disk; and how to compare them.
//!
//! A recorded event is a word: what it is in the top four bits, a page in the others. A request for the disk takes two words.

use anyhow::bail;
use pageout_workload::Access;

use super::answers::REMOVED;

/// What happened in one access.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Reads {
    /// Pages that entered the page cache, in order.
    pub(crate) inserted: Vec<u32>,
    /// Pages that left it, in order.
    pub(crate) removed: Vec<u32>,
    /// Requests: the first page and how many.
    pub(crate) requests: Vec<(u32, u32)>,
}

/// Maximum number of memory segments in a disk request: a larger one may be split if its pages are scattered.
const SEGMENTS: u32 = 254;

const PAGE: u32 = (1 << 28) - 1;

/// Statistics were flushed.
const FLUSH: u32 = 4;

/// Reads the events of a run, by access.
pub(super) fn of_events(words: &[u32]) -> anyhow::Result<Vec<Reads>> {
    let mut accesses: Vec<Reads> = Vec::new();
    let mut words = words.iter().enumerate();
    while let Some((at, &word)) = words.next() {
        let (what, page) = (word >> 28, word & PAGE);
        if what == 1 {
            accesses.push(Reads::default());
            continue;
        }
        let Some(access) = accesses.last_mut() else { continue };
        match what {
            0 => access.inserted.push(page),
            2 => match words.next() {
                Some((_, &length)) if length >> 28 == 3 => access.requests.push((page, length & 0xffff)),
                _ => bail!("word {at} begins a request without a length"),
            },
            8 => access.removed.push(page),
            FLUSH => {}
            _ => bail!("word {at} has an unknown kind ({word:#x})"),
        }
    }
    Ok(accesses)
}

/// How many of them are flushes of statistics. A request's second word is of another kind.
pub(super) fn flushes_of_events(words: &[u32]) -> u64 {
    words.iter().filter(|&word| word >> 28 == FLUSH).count() as u64
}

/// What came and went, by access, of a stream that says it of the whole run. The pages that left before one came in made room for it; and
/// it came in for the next access that is to it.
pub(super) fn of_stream(stream: &[u32], sequence: &[Access]) -> Vec<Reads> {
    let mut accesses = vec![Reads::default(); sequence.len()];
    let (mut from, mut removed) = (0, Vec::new());
    for &entry in stream {
        let page = entry & !REMOVED;
        if entry & REMOVED != 0 {
            removed.push(page);
            continue;
        }
        let is_to_it = |access: &Access| access.page() == u64::from(page);
        let Some(ahead) = sequence[from..].iter().position(is_to_it) else { continue };
        from += ahead;
        accesses[from].removed.append(&mut removed);
        accesses[from].inserted.push(page);
    }
    accesses
}

/// Accesses that brought other pages in, or in another order.
pub(super) fn differing_insertions(simulated: &[Reads], real: &[Reads]) -> usize {
    differing(simulated, real, |simulated, real| simulated.inserted == real.inserted)
}

/// Accesses that caused other requests.
pub(super) fn differing_requests(simulated: &[Reads], real: &[Reads]) -> usize {
    differing(simulated, real, |simulated, real| same_requests(&simulated.requests, &real.requests))
}

fn differing(simulated: &[Reads], real: &[Reads], same: impl Fn(&Reads, &Reads) -> bool) -> usize {
    let of_both = simulated.iter().zip(real).filter(|(simulated, real)| !same(simulated, real)).count();
    of_both + simulated.len().abs_diff(real.len())
}

fn same_requests(simulated: &[(u32, u32)], real: &[(u32, u32)]) -> bool {
    let mut real = real.iter();
    let is_there = |&(first, pages): &(u32, u32)| match real.next() {
        Some(&request) if request == (first, pages) => true,
        Some(&(begin, head)) if pages > SEGMENTS && begin == first && head < pages => {
            real.next() == Some(&(first + head, pages - head))
        }
        _ => false,
    };
    simulated.iter().all(is_there) && real.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_before_a_page_came_in_made_room_for_it_in_the_next_access_to_it() {
        let sequence = [5, 6, 5, 7, 5].map(|page| Access::new(0, page, false));
        let accesses = of_stream(&[5, 6, REMOVED | 5, REMOVED | 6, 7, 5, REMOVED | 7], &sequence);
        let of = |inserted: &[u32], removed: &[u32]| Reads {
            inserted: inserted.into(),
            removed: removed.into(),
            requests: Vec::new(),
        };
        let none = || of(&[], &[]);
        assert_eq!(accesses, [of(&[5], &[]), of(&[6], &[]), none(), of(&[7], &[5, 6]), of(&[5], &[])]);
    }

    #[test]
    fn events_belong_to_the_access_that_began_before_them() {
        let words = [7, 1 << 28, 5, 6, 2 << 28 | 5, 3 << 28 | 1 << 27 | 2, 8 << 28 | 1, 1 << 28];
        let reads = of_events(&words).expect("they are well-formed");
        let first = Reads { inserted: vec![5, 6], removed: vec![1], requests: vec![(5, 2)] };
        assert_eq!(reads, [first, Reads::default()]);
        assert!(of_events(&[1 << 28, 2 << 28]).is_err());
        assert!(of_events(&[1 << 28, 9 << 28]).is_err());
    }

    #[test]
    fn only_a_request_with_more_pages_than_segments_may_be_split() {
        assert!(same_requests(&[(0, 300), (900, 2)], &[(0, 260), (260, 40), (900, 2)]));
        assert!(!same_requests(&[(0, 200)], &[(0, 100), (100, 100)]));
        assert!(!same_requests(&[(0, 300)], &[(0, 260)]));
        assert!(!same_requests(&[(0, 30)], &[(0, 30), (30, 1)]));
    }
}
