//! Kdamonds in the summary of a run: how each has sampled, and what its schemes did.

use std::fmt::Write;

use pageout_study::result::damon::{KdamondResult, SchemeResult};

use super::{Layout, figures};

/// A line for each kdamond, and one for each of its schemes.
pub(super) fn lines(kdamonds: &[KdamondResult], layout: Layout) -> String {
    let mut text = String::new();
    for kdamond in kdamonds {
        let _ = writeln!(
            text,
            "\n{}: {} of {}, sampled every {}; {} at the end",
            kdamond.name,
            figures::counted(kdamond.windows, "window"),
            figures::time(kdamond.aggr_us.saturating_mul(1_000)),
            figures::time(kdamond.sample_us.saturating_mul(1_000)),
            figures::counted(kdamond.regions, "region"),
        );
        for (number, scheme) in kdamond.schemes.iter().enumerate() {
            text += &layout.wrap(&scheme_line(number, scheme), "  ");
        }
    }
    text
}

fn scheme_line(number: usize, scheme: &SchemeResult) -> String {
    let quota = match scheme.qt_exceeds {
        0 => String::new(),
        times => format!("; quota used up in {}", figures::counted(times, "interval")),
    };
    format!(
        "scheme {number}, {}: tried on {} ({}), applied to {} ({}){quota}",
        scheme.action,
        figures::counted(scheme.nr_tried, "region"),
        figures::bytes(scheme.sz_tried),
        figures::count(scheme.nr_applied),
        figures::bytes(scheme.sz_applied),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_printed_below_their_kdamond() {
        let scheme = SchemeResult {
            action: "pageout",
            nr_tried: 12,
            sz_tried: 3 << 20,
            nr_applied: 1,
            sz_applied: 4096,
            sz_ops_filter_passed: 0,
            qt_exceeds: 2,
            nr_snapshots: 7,
            effective_bytes: 0,
        };
        let kdamond = KdamondResult {
            name: "kdamond.0".to_string(),
            windows: 7,
            regions: 40,
            sample_us: 5_000,
            aggr_us: 100_000,
            schemes: vec![scheme],
        };
        let text = lines(&[kdamond], Layout::default());
        let expected = [
            "",
            "kdamond.0: 7 windows of 100 ms, sampled every 5.00 ms; 40 regions at the end",
            "  scheme 0, pageout: tried on 12 regions (3 MiB), applied to 1 (4 KiB); quota used up in 2 intervals",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert_eq!(lines(&[], Layout::default()), "");
    }
}
