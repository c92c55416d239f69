//! A hotness record: how often a page of a lower tier was reported, when last, and by which node. [tiering 3.1, 3.2, 3.6]
//!
//! ```text
//!   1 byte    7 ready | 6..2 time, 128 ms a step | 1..0 freq                         no node: it is chosen when the page moves
//!   4 bytes   31 ready | 27 node is known | 26..13 time, ms | 12..10 freq | 9..0 node
//!   8 bytes   63 ready | 62 node is known | 31..13 time, ms | 12..10 freq | 9..0 node
//!   posted    as 8 bytes, but each mask is as wide as its field's shift: the fields overlap, and there is no node
//! ```
//! Clocks count milliseconds and are short: 4.096 s, 16.384 s, 524 s (the posting's comment says 8.73 s; it means minutes). A page that
//! rests for a whole turn of the clock looks as if it was just used, unless old records are swept (`sections.rs`).
//!
//! A record of zeroes is empty: the page was not reported since it was allocated, or it was isolated for migration.

use crate::units::NodeId;

/// The layout of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One byte.
    Byte,
    /// Four bytes.
    Word,
    /// Eight bytes.
    Long,
    /// The format of the third posting, with its bugs.
    LongAsPosted,
}

/// The place and width of a field in a record.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    mask: u64,
}

impl Field {
    const NONE: Field = Field { shift: 0, mask: 0 };

    const fn bits(first: u32, last: u32) -> Field {
        Field { shift: first, mask: (1 << (last - first + 1)) - 1 }
    }

    fn of(self, raw: u64) -> u64 {
        raw >> self.shift & self.mask
    }

    fn at(self, value: u64) -> u64 {
        (value & self.mask) << self.shift
    }
}

struct Fields {
    nid: Field,
    is_nid_known: Field,
    freq: Field,
    time: Field,
    /// log2 of the milliseconds that one step of the time is.
    step: u32,
    ready: Field,
    freq_max: u64,
}

impl Layout {
    fn fields(self) -> Fields {
        let long = Fields {
            nid: Field::bits(0, 9),
            is_nid_known: Field::bits(62, 62),
            freq: Field::bits(10, 12),
            time: Field::bits(13, 31),
            step: 0,
            ready: Field::bits(63, 63),
            freq_max: 7,
        };
        match self {
            Layout::Byte => Fields {
                nid: Field::NONE,
                is_nid_known: Field::NONE,
                freq: Field::bits(0, 1),
                time: Field::bits(2, 6),
                step: 7,
                ready: Field::bits(7, 7),
                freq_max: 3,
            },
            Layout::Word => Fields {
                is_nid_known: Field::bits(27, 27),
                time: Field::bits(13, 26),
                ready: Field::bits(31, 31),
                ..long
            },
            Layout::Long => long,
            Layout::LongAsPosted => Fields {
                nid: Field::NONE,
                is_nid_known: Field::NONE,
                freq: Field { shift: 10, mask: (1 << 10) - 1 },
                time: Field { shift: 13, mask: (1 << 13) - 1 },
                freq_max: 8,
                ..long
            },
        }
    }

    /// Bytes of a record.
    pub fn bytes(self) -> usize {
        match self {
            Layout::Byte => 1,
            Layout::Word => 4,
            Layout::Long | Layout::LongAsPosted => 8,
        }
    }

    /// The largest count of reports that a record holds.
    pub fn freq_max(self) -> u8 {
        self.fields().freq_max as u8
    }

    /// The longest distinguishable time, in milliseconds.
    pub fn age_max_ms(self) -> u64 {
        let Fields { time, step, .. } = self.fields();
        time.mask << step
    }

    /// Decodes a record.
    pub fn decode(self, raw: u64) -> Record {
        let fields = self.fields();
        let nid = NodeId(fields.nid.of(raw) as u8);
        Record {
            nid: (fields.is_nid_known.of(raw) == 1).then_some(nid),
            freq: fields.freq.of(raw),
            time: fields.time.of(raw),
            ready: fields.ready.of(raw) == 1,
        }
    }

    /// A record as it is stored.
    pub fn encode(self, record: Record) -> u64 {
        let fields = self.fields();
        fields.nid.at(record.nid.map_or(0, |nid| nid.0.into()))
            | fields.is_nid_known.at(record.nid.is_some().into())
            | fields.freq.at(record.freq)
            | fields.time.at(record.time)
            | fields.ready.at(record.ready.into())
    }

    /// A point in time, in the records' format.
    pub fn time(self, now_ms: u64) -> u64 {
        let Fields { time, step, .. } = self.fields();
        now_ms >> step & time.mask
    }

    /// Milliseconds since a record's time, in whole steps and modulo a turn of the clock.
    pub fn age_ms(self, now_ms: u64, time: u64) -> u64 {
        let Fields { time: field, step, .. } = self.fields();
        ((now_ms >> step).wrapping_sub(time) & field.mask) << step
    }
}

/// A decoded record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// The node that accessed the page, where that is known and kept.
    pub nid: Option<NodeId>,
    /// Reports in its window. None in a record that is ready: its page was counted as a candidate, and could not go.
    pub freq: u64,
    /// The time of the last report, in steps of its layout's clock.
    pub time: u64,
    /// The page is hot: kmigrated is to take it.
    pub ready: bool,
}

impl Record {
    /// The page has been counted as a candidate since it became hot.
    pub fn was_candidate(&self) -> bool {
        self.ready && self.freq == 0
    }

    /// The record of a page that has now been counted as a candidate.
    pub fn counted(self) -> Record {
        Record { freq: 0, ..self }
    }
}

/// Someone says that a page was accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// From which node, where that is known.
    pub nid: Option<NodeId>,
    /// The number of accesses.
    pub accesses: u32,
    /// Current time. Unit: milliseconds.
    pub now_ms: u64,
    /// However long ago the last report was: hint faults of a page are too far apart for any window.
    pub in_any_window: bool,
}

/// Condition for a hot page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hotness {
    /// The layout of the records.
    pub layout: Layout,
    /// The longest time between two reports of one count. A later report starts a new count.
    pub window_ms: u64,
    /// Number of reports that make a page hot.
    pub reports: u64,
    /// A report from another node starts a new count.
    pub by_node: bool,
}

impl Hotness {
    /// Returns a record after a report.
    pub fn reported(&self, old: Record, report: &Report) -> Record {
        let age = self.layout.age_ms(report.now_ms, old.time);
        // Strictly older: a report at the end of the window still is of it.
        let is_late = age > self.window_ms && !report.in_any_window;
        let is_other = self.by_node && report.nid.is_some() && old.nid.is_some() && report.nid != old.nid;
        let before = if is_late || is_other { 0 } else { old.freq };
        // At the top the posting leaves a variable unset; the value read is the one that a compiler happens to use.
        let freq = (before + u64::from(report.accesses)).min(u64::from(self.layout.freq_max()).max(before));
        // It became hot once, and that was counted.
        let freq = if old.was_candidate() { 0 } else { freq };
        Record {
            nid: report.nid.or(old.nid),
            freq,
            time: self.layout.time(report.now_ms),
            ready: old.ready || freq >= self.reports,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 3] = [Layout::Byte, Layout::Word, Layout::Long];

    fn hotness(layout: Layout) -> Hotness {
        Hotness { layout, window_ms: 3000, reports: 2, by_node: false }
    }

    fn report(now_ms: u64) -> Report {
        Report { nid: None, accesses: 1, now_ms, in_any_window: false }
    }

    /// The record after reports at these times.
    fn after(hotness: Hotness, times: &[u64]) -> Record {
        times.iter().fold(Record::default(), |record, &now| {
            let kept = hotness.layout.decode(hotness.layout.encode(record));
            assert_eq!(kept.freq, record.freq, "a record holds what was counted");
            hotness.reported(kept, &report(now))
        })
    }

    #[test]
    fn what_a_layout_can_hold_comes_back_from_its_bits() {
        for layout in LAYOUTS {
            let nid = (layout != Layout::Byte).then_some(NodeId(5));
            for freq in 0..=u64::from(layout.freq_max()) {
                for time in [0, 1, layout.time(u64::MAX)] {
                    for ready in [false, true] {
                        let record = Record { nid, freq, time, ready };
                        assert_eq!(layout.decode(layout.encode(record)), record, "{layout:?}");
                        assert!(u128::from(layout.encode(record)) < 1 << (8 * layout.bytes()));
                    }
                }
            }
            assert_eq!(layout.encode(Record::default()), 0);
        }
    }

    #[test]
    fn the_fields_lie_where_the_postings_have_them() {
        let record = Record { nid: Some(NodeId(3)), freq: 2, time: 9, ready: true };
        assert_eq!(Layout::Byte.encode(Record { nid: None, ..record }), 1 << 7 | 9 << 2 | 2);
        assert_eq!(Layout::Word.encode(record), 1 << 31 | 1 << 27 | 9 << 13 | 2 << 10 | 3);
        assert_eq!(Layout::Long.encode(record), 1 << 63 | 1 << 62 | 9 << 13 | 2 << 10 | 3);
    }

    #[test]
    fn ages_are_right_across_the_wrap_of_the_clock() {
        for layout in LAYOUTS {
            let turn = layout.age_max_ms() + (layout.age_max_ms() / layout.time(u64::MAX));
            for age in [0, 128, 640, layout.age_max_ms()] {
                let then = turn - 128;
                let age = age / 128 * 128;
                assert_eq!(layout.age_ms(then + age, layout.time(then)), age, "{layout:?}");
            }
            assert_eq!(layout.age_ms(turn, layout.time(0)), 0, "a whole turn looks like no time");
        }
        assert_eq!(Layout::Byte.age_max_ms(), 3968);
        assert_eq!(Layout::Word.age_max_ms(), 16_383);
        assert_eq!(Layout::Long.age_max_ms(), (1 << 19) - 1);
    }

    #[test]
    fn a_report_at_the_end_of_the_window_is_of_it_and_one_later_begins_anew() {
        for layout in [Layout::Word, Layout::Long] {
            assert_eq!(after(hotness(layout), &[100, 3100]).freq, 2);
            assert_eq!(after(hotness(layout), &[100, 3101]).freq, 1);
        }
        // Steps of 128 ms: 3000 lies in the 24th, and that of 23 is the last within.
        assert_eq!(after(hotness(Layout::Byte), &[0, 23 * 128]).freq, 2);
        assert_eq!(after(hotness(Layout::Byte), &[0, 24 * 128]).freq, 1);
    }

    #[test]
    fn the_report_that_completes_the_threshold_makes_a_page_ready_and_counts_stop_at_the_top() {
        for layout in LAYOUTS {
            for reports in 1..=u64::from(layout.freq_max()) {
                let hotness = Hotness { reports, ..hotness(layout) };
                let times: Vec<u64> = (0..10).map(|n| 1000 + n).collect();
                for so_many in 1..times.len() {
                    let record = after(hotness, &times[..so_many]);
                    assert_eq!(record.ready, so_many as u64 >= reports, "{layout:?} {so_many} of {reports}");
                    assert_eq!(record.freq, (so_many as u64).min(layout.freq_max().into()));
                }
            }
        }
    }

    #[test]
    fn a_page_that_was_counted_as_a_candidate_stays_hot_and_counted_until_it_is_taken() {
        for layout in LAYOUTS {
            let hot = after(hotness(layout), &[1000, 1001]);
            assert!(hot.ready && !hot.was_candidate(), "{layout:?}");
            let refused = layout.decode(layout.encode(hot.counted()));
            let again = hotness(layout).reported(refused, &report(1130));
            assert!(refused.was_candidate() && again.was_candidate(), "{layout:?}");
            assert_eq!(again.time, layout.time(1130), "it was used meanwhile");
            assert!(!Record::default().was_candidate());
        }
    }

    #[test]
    fn several_accesses_in_one_report_count_as_often() {
        let hotness = hotness(Layout::Byte);
        let report = Report { accesses: 2, ..report(7) };
        assert!(hotness.reported(Record::default(), &report).ready);
        let all = Report { accesses: u32::MAX, ..report };
        assert_eq!(hotness.reported(Record::default(), &all).freq, 3);
    }

    #[test]
    fn a_hint_fault_is_in_any_window() {
        let hotness = hotness(Layout::Word);
        let first = hotness.reported(Record::default(), &report(0));
        let fault = Report { in_any_window: true, ..report(9000) };
        assert_eq!(hotness.reported(first, &fault).freq, 2);
        assert_eq!(hotness.reported(first, &report(9000)).freq, 1);
    }

    #[test]
    fn another_node_begins_anew_only_where_the_rule_says_so() {
        for by_node in [false, true] {
            let hotness = Hotness { by_node, ..hotness(Layout::Long) };
            let from = |node| Report { nid: Some(NodeId(node)), ..report(5) };
            let first = hotness.reported(Record::default(), &from(0));
            let second = hotness.reported(first, &from(1));
            assert_eq!(second.freq, if by_node { 1 } else { 2 });
            assert_eq!(second.nid, Some(NodeId(1)), "the newest overwrites");
            let unknown = hotness.reported(first, &report(6));
            assert_eq!((unknown.freq, unknown.nid), (2, Some(NodeId(0))), "who says nothing changes nothing");
        }
    }

    /// The posted masks let seven bits of the time show in the count, so that nearly every second report makes a page hot that needs three.
    #[test]
    fn as_posted_the_second_report_nearly_always_makes_a_page_ready() {
        let posted = Hotness { layout: Layout::LongAsPosted, window_ms: 5000, reports: 3, by_node: true };
        let is_ready_after_two = |first: u64| {
            let one = Layout::LongAsPosted
                .decode(Layout::LongAsPosted.encode(posted.reported(Record::default(), &report(first))));
            posted.reported(one, &report(first + 1)).ready
        };
        let ready = (0..1280).filter(|&first| is_ready_after_two(first)).count();
        assert_eq!(ready, 1270, "all but one in 128");
        assert_eq!(Layout::LongAsPosted.decode(u64::MAX).nid, None, "and there is no node");
    }
}
