//! Invariants of a hotness record's changes, which no look at the record alone can check. [tiering 0, I7]
//!
//! ```text
//!   not ready ─▶ ready    its count is at the threshold, or it was taken by the same thread just before and is put back as it was
//!   ready ─▶ not ready    it is all zero: whoever gets the frame next earns it all again
//! ```
//! A record that is ready may count fewer reports than the threshold later on: a window has ended since, or its page was a candidate. So
//! every change is noted where it is made, bit by bit, and looked at here by another reading of the bits than the one that made it.

use std::collections::BTreeMap;

use crate::pghot::record::Layout;
use crate::pghot::sections::Change;
use crate::state::State;
use crate::units::Pfn;

/// The ready bit of a layout, and where its count is.
fn ready_and_count(layout: Layout) -> (u64, u64) {
    match layout {
        Layout::Byte => (1 << 7, 0b11),
        Layout::Word => (1 << 31, 0b111 << 10),
        Layout::Long => (1 << 63, 0b111 << 10),
        Layout::LongAsPosted => (1 << 63, 0x3ff << 10),
    }
}

/// Panics unless all changes are such as there may be where `reports` make a page hot.
fn check(layout: Layout, reports: u64, changes: &[Change]) {
    let (ready, count) = ready_and_count(layout);
    let mut taken: BTreeMap<Pfn, u64> = BTreeMap::new();
    for &Change { pfn, before, after } in changes {
        let says =
            || format!("{pfn:?}: record {before:#x} became {after:#x}, where {reports} reports are hot");
        match (before & ready != 0, after & ready != 0) {
            (false, true) => {
                let is_hot = (after & count) >> count.trailing_zeros() >= reports;
                let is_put_back = taken.remove(&pfn).is_some_and(|taken| taken | count == after | count);
                assert!(is_hot || is_put_back, "ready too early: {}", says());
            }
            (true, false) => {
                assert!(after == 0, "something is left: {}", says());
                taken.insert(pfn, before);
            }
            _ => {}
        }
    }
}

impl State {
    /// Looks at all changes since it last did. At the end of whatever makes records ready.
    pub(crate) fn check_record_changes(&mut self) {
        let changes = self.pghot.records.take_changes();
        check(self.pghot.records.layout(), super::Hotness::of(&self.config).reports, &changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pghot::record::Record;
    use crate::pghot::sections::Records;

    const READY: Record = Record { nid: None, freq: 2, time: 9, ready: true };

    /// Changes of one frame's record, one after the other, where two reports are hot; `None`: it is taken.
    fn check_records(records: &[Option<Record>]) {
        for layout in [Layout::Byte, Layout::Word, Layout::Long, Layout::LongAsPosted] {
            let mut of_frames = Records::new(layout);
            of_frames.watch();
            for record in records {
                match *record {
                    Some(record) => of_frames.set(Pfn(7), record),
                    None => assert!(of_frames.take(Pfn(7)).is_some()),
                }
            }
            check(layout, 2, &of_frames.take_changes());
        }
    }

    #[test]
    fn what_is_reported_taken_and_put_back_is_no_break_of_a_rule() {
        let once = Record { freq: 1, ready: false, ..READY };
        let late = Record { freq: 1, time: 30, ..READY };
        check_records(&[Some(once), Some(READY), Some(late), None, Some(late), None, Some(late.counted())]);
        check_records(&[Some(READY), None, Some(once), Some(READY)]);
    }

    #[test]
    #[should_panic(expected = "ready too early")]
    fn a_record_that_is_ready_before_its_page_is_hot_is_noticed() {
        check_records(&[Some(Record { freq: 1, time: 0, ..READY })]);
    }

    #[test]
    #[should_panic(expected = "ready too early")]
    fn another_record_than_was_taken_is_not_put_back() {
        check_records(&[Some(READY), None, Some(Record { freq: 0, time: 10, ..READY })]);
    }

    #[test]
    #[should_panic(expected = "something is left")]
    fn a_record_that_is_taken_and_leaves_its_count_is_noticed() {
        check_records(&[Some(READY), Some(Record { ready: false, ..READY })]);
    }
}
