//! Remarks around the figures of a result, in lines: what is missing, what figures do not say, what a run leaves out, at which points it was run.

use pageout_cache::curve::sampling::SALTS;
use pageout_study::Estimate;
use pageout_study::result::notes::Note;
use pageout_study::result::variants::Extent;
use pageout_study::scenario::grid::Point;

use super::figures;
use super::layout::Layout;

impl Layout {
    /// What a reader has to know before the figures of an interrupted command; no line where all was run.
    pub(crate) fn warning(self, extent: &Extent) -> String {
        extent.warning().map_or(String::new(), |says| self.wrap(&says, ""))
    }

    /// Caveats, a paragraph each.
    pub(crate) fn caveats(self, caveats: &[String]) -> String {
        caveats.iter().map(|says| self.wrap(says, "")).collect()
    }

    /// Notes, a paragraph each.
    pub(crate) fn notes(self, notes: &[Note]) -> String {
        notes.iter().map(|note| self.wrap(&format!("Note: {}", note.text), "")).collect()
    }

    /// Estimated miss ratios as a table, policies by sizes.
    pub(crate) fn estimate(self, of: &Estimate) -> String {
        let heading = std::iter::once("miss ratio".to_string()).chain(of.policies.iter().cloned()).collect();
        let row = |(at, size): (usize, &u32)| {
            let cells = of.miss_ratios.iter().map(|row| match row[at] {
                Some([ratio, least, most]) => estimated(ratio, least, most),
                None => "failed".to_string(),
            });
            std::iter::once(figures::bytes(u64::from(*size) * 4096)).chain(cells).collect()
        };
        let rows: Vec<Vec<String>> =
            std::iter::once(heading).chain(of.sizes.iter().enumerate().map(row)).collect();
        format!("{}\n\n{}", sampled(of.rate, of.pages), self.table(&rows, 1))
    }
}

/// The basis of estimates: the rate of the samples, and the pages of the smallest one.
pub(crate) fn sampled(rate: f64, pages: u32) -> String {
    format!(
        "~ estimated from {SALTS} samples of {}% of the pages each, {} at least; ± is half of the spread over them, and no bound",
        (rate * 100_000.0).round() / 1_000.0,
        figures::count(pages.into())
    )
}

/// An estimated miss ratio with half of its spread.
pub(crate) fn estimated(ratio: f64, least: f64, most: f64) -> String {
    format!("~{ratio:.4} ±{:.4}", (most - least) / 2.0)
}

/// Points of a grid by number.
pub(crate) fn points<'a>(points: impl Iterator<Item = &'a Point>) -> String {
    let lines = points.enumerate().map(|(at, point)| {
        let settings: Vec<String> = point.settings.iter().map(ToString::to_string).collect();
        format!("{:>4}  {}\n", at + 1, settings.join("  "))
    });
    lines.collect()
}
