//! Promotion guided by how often a page is used: one count of accesses for each, whichever way they come (MGLRU-FG, posted for the
//! third time in October 2026).
//!
//! ```text
//!                oldest                  between                youngest
//!   read         counts; with the        counts; beyond 7 to    counts to 7
//!                second to the next      the next, count 3
//!   mapped       to the next; with the second, or as a program's code, to the youngest; count 3 at most
//! ```
//! Up to 7.3 the two channels of use differ. A mapped page gets to the youngest generation when it is found used. A page that is read
//! moves up one generation if the controller decides so: even a page that was read a hundred times is never young.
//!
//! Here a page that is read moves up by itself, one generation per fixed number of reads. The same count makes tiers, decides to which
//! generation a refault returns, and defines which pages are active.
//!
//! As before, a page's place on a list follows late: eviction moves the page when it meets it. So an access moves no list. But a read of a
//! page that was read before has to look up its generation, which its word does not hold. [mglru-2026 3]
//!
//! *When it misleads:* reads of parts of a page count one each, so a page that is read through once in small pieces looks hot.

use crate::core::Core;
use crate::lru::CountsUse;
use crate::lru::generations::{ACTIVE_FROM, FREQUENCY_MAX};
use crate::lru::lruvec::{LruList, LruvecId};
use crate::lru::with_frequency;
use crate::memory::folio::UseBits;
use crate::state::State;
use crate::story::PageEvent;
use crate::units::Pfn;
use pageout_rules::lru::References;

/// How a page was accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccessBy {
    /// Through a descriptor, or by an entry that its process has taken away.
    Descriptor,
    /// Through a page-table entry.
    Mapping,
    /// Through a page-table entry that maps a program's code.
    Code,
}

/// What an access makes of a page's count, and the generation that it belongs to then. `seq` is its generation; `window` the oldest
/// of its type and the youngest; `reads_promote`: reads move it.
fn accessed(refs: u8, seq: u64, window: [u64; 2], by: AccessBy, reads_promote: bool) -> (u8, u64) {
    let [oldest, youngest] = window;
    let refs = refs + 1;
    if seq == youngest {
        return (refs.min(FREQUENCY_MAX), seq);
    }
    match by {
        AccessBy::Code => (refs.min(ACTIVE_FROM), youngest),
        AccessBy::Mapping if refs > 1 => (refs.min(ACTIVE_FROM), youngest),
        AccessBy::Mapping => (refs, if seq == oldest { seq + 1 } else { seq }),
        AccessBy::Descriptor if !reads_promote => (refs.min(FREQUENCY_MAX), seq),
        AccessBy::Descriptor if refs > FREQUENCY_MAX => (ACTIVE_FROM, seq + 1),
        AccessBy::Descriptor if seq == oldest && refs >= 2 => (refs.min(ACTIVE_FROM), seq + 1),
        AccessBy::Descriptor => (refs, seq),
    }
}

impl Core {
    /// An access to a folio whose accesses are counted so; true if it belongs to another generation now.
    pub(in crate::lru) fn frequency_accessed(&mut self, pfn: Pfn, by: AccessBy) -> bool {
        let lruvec = self.mm.lruvec_of(pfn);
        let use_bits = self.mm.memory.use_bits(pfn);
        let refs = References::Frequency.refs(use_bits);
        let place = self.mm.memory.places.get(pfn);
        if !place.is_listed() {
            // In someone's hands, or not there yet: who places it will see that it was used.
            let refs = (refs + 1).min(FREQUENCY_MAX);
            self.mm.memory.set_use_bits(pfn, with_frequency(use_bits, refs));
            return false;
        }
        let kind = self.mm.memory.folios[pfn].lru_type();
        let generations = self.mm.generations(lruvec);
        let window = [generations.min_seq[kind as usize], generations.max_seq];
        let (seq, _) = generations.seqs_of(place);
        let reads_promote = self.mm.generation_rules(lruvec).read_promotion;
        let (refs, to) = accessed(refs, seq, window, by, reads_promote);
        self.change_use_bits(lruvec, pfn, with_frequency(use_bits, refs));
        if to == seq {
            return false;
        }
        if to == window[1] {
            self.tell(pfn, |_| PageEvent::MadeYoungest { seq: to });
        } else {
            self.tell(pfn, |_| PageEvent::Promoted { refs, to });
        }
        self.generation_update(lruvec, pfn, self.mm.generations(lruvec).slot(to))
    }

    /// Changes the use bits of a folio in a generation, and with them the gauge that counts it.
    pub(super) fn change_use_bits(&mut self, lruvec: LruvecId, pfn: Pfn, use_bits: UseBits) {
        self.mm.memory.set_use_bits(pfn, use_bits);
        let (was_active, is_active) =
            (self.mm.memory.places[pfn].is_counted_active(), self.mm.is_used_enough(pfn));
        if was_active != is_active && self.mm.generation_rules(lruvec).gauges_count() {
            self.mm.memory.places[pfn].set_counted_active(is_active);
            let folio = self.mm.memory.folios[pfn];
            let (kind, pages) = (folio.lru_type(), folio.pages() as i64);
            self.update_size(lruvec, LruList::new(kind, was_active), -pages);
            self.update_size(lruvec, LruList::new(kind, is_active), pages);
        }
    }
}

impl State {
    pub(super) fn is_used_enough(&self, pfn: Pfn) -> bool {
        References::Frequency.refs(self.memory.use_bits(pfn)) >= ACTIVE_FROM
    }

    /// Returns true if the gauges count a folio of this generation as active.
    pub(crate) fn counts_as_active(&self, lruvec: LruvecId, pfn: Pfn, slot: usize) -> bool {
        if self.generation_rules(lruvec).gauges_count() {
            self.memory.places[pfn].is_counted_active()
        } else {
            self.generations(lruvec).is_active(slot)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many accesses of a page that begins in the oldest of four generations with a count of 0.
    fn climb(by: AccessBy, accesses: usize) -> Vec<(u8, u64)> {
        let next = |&(refs, seq): &(u8, u64)| Some(accessed(refs, seq, [0, 3], by, true));
        std::iter::successors(Some((0, 0)), next).skip(1).take(accesses).collect()
    }

    #[test]
    fn a_page_that_is_read_moves_up_with_its_second_read_and_then_with_each_five() {
        let expected = [(1, 0), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (3, 2), (4, 2), (5, 2)];
        assert_eq!(climb(AccessBy::Descriptor, 10), expected);
        assert_eq!(
            climb(AccessBy::Descriptor, 19)[10..],
            [(6, 2), (7, 2), (3, 3), (4, 3), (5, 3), (6, 3), (7, 3), (7, 3), (7, 3)]
        );
    }

    #[test]
    fn a_page_that_is_mapped_is_youngest_when_it_is_found_used_twice() {
        let expected = [(1, 1), (2, 3), (3, 3), (4, 3), (5, 3), (6, 3), (7, 3), (7, 3)];
        assert_eq!(climb(AccessBy::Mapping, 8), expected);
        assert_eq!(climb(AccessBy::Code, 3), [(1, 3), (2, 3), (3, 3)], "code when it is found used once");
    }

    #[test]
    fn without_their_promotion_reads_only_count() {
        let next = |&(refs, seq): &(u8, u64)| Some(accessed(refs, seq, [0, 3], AccessBy::Descriptor, false));
        let last = std::iter::successors(Some((0, 0)), next).nth(20);
        assert_eq!(last, Some((7, 0)));
    }

    #[test]
    fn the_generations_between_take_a_mapped_page_no_further_at_first() {
        assert_eq!(accessed(0, 1, [0, 3], AccessBy::Mapping, true), (1, 1));
        assert_eq!(accessed(6, 2, [0, 3], AccessBy::Mapping, true), (3, 3), "what it takes along is limited");
    }
}
