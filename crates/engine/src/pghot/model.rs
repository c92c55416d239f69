//! A naive second model of hot-page records: it keeps all reports of a page, in order, and says what the record must be.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::pghot::record::{Hotness, Layout, Report};
use crate::pghot::sections::Records;
use crate::units::{NodeId, Pfn};

/// All reports of a page since it was allocated, or taken.
#[derive(Default)]
struct History(Vec<Report>);

impl History {
    /// Returns true if a report begins a window, given the one before it.
    fn begins(hotness: &Hotness, before: &Report, report: &Report, known: Option<NodeId>) -> bool {
        let layout = hotness.layout;
        // Two points in time, each in steps of its clock, folded to what the clock can tell.
        let step = if layout == Layout::Byte { 128 } else { 1 };
        let turn = layout.age_max_ms() / step + 1;
        let age = (report.now_ms / step - before.now_ms / step) % turn * step;
        let is_late = age > hotness.window_ms && !report.in_any_window;
        let is_other = hotness.by_node && report.nid.is_some() && known.is_some() && report.nid != known;
        is_late || is_other
    }

    /// Accesses of the last window, and whether any window ever had enough.
    fn count(&self, hotness: &Hotness) -> (u64, bool) {
        let (mut count, mut was_hot, mut known) = (0, false, None);
        for (at, report) in self.0.iter().enumerate() {
            if at > 0 && History::begins(hotness, &self.0[at - 1], report, known) {
                count = 0;
            }
            count = (count + u64::from(report.accesses)).min(hotness.layout.freq_max().into());
            was_hot |= count >= hotness.reports;
            if hotness.layout != Layout::Byte {
                known = report.nid.or(known);
            }
        }
        (count, was_hot)
    }
}

#[derive(Clone, Debug)]
enum Event {
    Report(u32, Report),
    Take(u32),
    Free(u32),
    /// So many milliseconds pass.
    Pass(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    // Frames of two sections, and two of one block.
    let frame = prop::sample::select(vec![0u32, 1, 600, 40_000]);
    let report = (frame.clone(), prop::option::of(0u8..3), 1u32..4, any::<bool>()).prop_map(
        |(frame, nid, accesses, in_any_window)| {
            let nid = nid.map(NodeId);
            Event::Report(frame, Report { nid, accesses, now_ms: 0, in_any_window })
        },
    );
    let pass = prop_oneof![1u64..300, 2900u64..3100, 1u64..20_000].prop_map(Event::Pass);
    let event = prop_oneof![
        4 => report,
        2 => pass,
        1 => frame.clone().prop_map(Event::Take),
        1 => frame.prop_map(Event::Free),
    ];
    prop::collection::vec(event, 1..60)
}

fn hotness() -> impl Strategy<Value = Hotness> {
    let layout = prop::sample::select(vec![Layout::Byte, Layout::Word, Layout::Long]);
    (layout, 0u64..6000, 1u64..5, any::<bool>()).prop_map(|(layout, window_ms, reports, by_node)| Hotness {
        layout,
        window_ms,
        reports: reports.min(layout.freq_max().into()),
        by_node,
    })
}

proptest! {
    #[test]
    fn records_say_what_a_history_of_all_reports_says(hotness in hotness(), events in events()) {
        let mut records = Records::new(hotness.layout);
        let mut model: BTreeMap<u32, History> = BTreeMap::new();
        let mut now_ms = 0;
        for event in events {
            match event {
                Event::Report(frame, report) => {
                    let report = Report { now_ms, ..report };
                    let record = hotness.reported(records.get(Pfn(frame)), &report);
                    records.set(Pfn(frame), record);
                    model.entry(frame).or_default().0.push(report);
                }
                Event::Take(frame) => {
                    let is_ready = model.get(&frame).is_some_and(|history| history.count(&hotness).1);
                    prop_assert_eq!(records.take(Pfn(frame)).is_some(), is_ready);
                    if is_ready {
                        model.remove(&frame);
                    }
                }
                Event::Free(frame) => {
                    records.clear(Pfn(frame));
                    model.remove(&frame);
                }
                Event::Pass(ms) => now_ms += ms,
            }
            for (&frame, history) in &model {
                let record = records.get(Pfn(frame));
                prop_assert_eq!((record.freq, record.ready), history.count(&hotness), "frame {}", frame);
                let last = history.0.last().map(|report| hotness.layout.time(report.now_ms));
                prop_assert_eq!(Some(record.time), last);
            }
        }
        records.check_invariants();
        let said = records.iter().count();
        prop_assert!(said <= model.len(), "{} records, {} pages", said, model.len());
    }
}
