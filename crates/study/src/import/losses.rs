//! Lines by which a tool reports lost events: they do not count as unreadable lines.
//!
//! ```text
//!   CPU:1 [LOST 33 EVENTS]           the kernel           Lost 240000 events                 bpftrace
//!   CPU:1 [33 EVENTS DROPPED]        trace-cmd            Possibly lost 12 samples           bcc
//!   ... PERF_RECORD_LOST lost 12     perf script          LOST 12 events!                    perf trace
//!   Skips: 12 forward (...)          blkparse             You have 33 dropped events         blktrace
//! ```

/// The losses that a tool reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that were counted.
    pub events: u64,
    /// Times that a tool did not say how many.
    pub uncounted: u64,
}

impl Losses {
    /// Adds the losses of a line; `false` if it does not report losses.
    pub(super) fn add(&mut self, line: &str) -> bool {
        match of_line(line) {
            None => return false,
            Some(Some(events)) => self.events = self.events.saturating_add(events),
            Some(None) => self.uncounted += 1,
        }
        true
    }

    /// Returns true if anything was lost.
    pub fn are_there(self) -> bool {
        self != Losses::default()
    }
}

/// Reads a line about lost events: their number, if the line has it. `None`: another line.
fn of_line(line: &str) -> Option<Option<u64>> {
    const LOST: [&str; 4] = ["lost", "dropped", "skips", "overrun"];
    const WHAT: [&str; 10] = [
        "event",
        "events",
        "sample",
        "samples",
        "record",
        "records",
        "chunks",
        "forward",
        "perf_record_lost",
        "perf_record_lost_samples",
    ];
    let lower = line.to_lowercase();
    // Thousands may have commas.
    let without_commas = lower.replace(',', "");
    let words: Vec<&str> = without_commas
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let what = words.iter().rposition(|word| WHAT.contains(word))?;
    // The number of a CPU is not a count.
    let is_cpu = |at: usize| at > 0 && words[at - 1] == "cpu";
    let number = |at: Option<usize>| {
        let at = at.filter(|&at| !is_cpu(at))?;
        words.get(at)?.parse::<u64>().ok()
    };
    let Some(lost) = words.iter().rposition(|word| LOST.contains(word)) else {
        return words[what].starts_with("perf_record_lost").then_some(None);
    };
    // The count is next to one of the two words.
    let places = [Some(lost + 1), lost.checked_sub(1), what.checked_sub(1), Some(what + 1)];
    Some(places.into_iter().find_map(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_each_tool_is_a_loss_of_as_many_events() {
        for (line, events) in [
            ("Lost 240000 events", Some(240_000)),
            ("Possibly lost 12 samples", Some(12)),
            ("CPU:1 [LOST 33 EVENTS]", Some(33)),
            ("CPU:1 [33 EVENTS DROPPED]", Some(33)),
            ("CPU:0 [LOST EVENTS]", None),
            ("CPU 3: 12 events lost", Some(12)),
            ("dd  2001   100.300000: PERF_RECORD_LOST lost 12", Some(12)),
            ("LOST 1,234 events!", Some(1_234)),
            ("You have 33 dropped events", Some(33)),
            ("Skips: 12 forward (1,234 -   0.1%)", Some(12)),
            ("Lost events: 7", Some(7)),
            ("0 events lost", Some(0)),
        ] {
            assert_eq!(of_line(line), Some(events), "{line}");
        }
        for line in ["Attaching 1 probe...", "4411 R 771751 0 4096", "lost+found", "events: 7", ""] {
            assert_eq!(of_line(line), None, "{line}");
        }
    }
}
