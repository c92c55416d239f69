//! When a page is hot, as configured. [tiering 3.3]

use crate::config::Config;
use crate::pghot::record::{Hotness, Layout};
use pageout_rules::pghot::{PghotQuirks, RecordSize, ThresholdRule};

/// The layout of a record of this size.
fn layout_of(size: RecordSize, quirks: PghotQuirks) -> Layout {
    match (size, quirks) {
        (RecordSize::U8, _) => Layout::Byte,
        (RecordSize::U32, _) => Layout::Word,
        (RecordSize::U64, PghotQuirks::None) => Layout::Long,
        (RecordSize::U64, PghotQuirks::V3) => Layout::LongAsPosted,
    }
}

impl Hotness {
    /// Returns the configured condition for a hot page. A value beyond the range of a record becomes the maximum of its range.
    pub fn of(config: &Config) -> Hotness {
        let layout = layout_of(config.pghot_record, config.pghot_quirks);
        let more = u64::from(config.pghot_threshold == ThresholdRule::Exceeded);
        let reports = u64::from(config.pghot_freq_threshold) + more;
        Hotness {
            layout,
            window_ms: config.pghot_window_ms(),
            reports: reports.min(layout.freq_max().into()),
            by_node: config.pghot_window_by_node,
        }
    }
}
