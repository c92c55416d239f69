//! The trend of a machine's working set, from several dumps of it: does it grow?
//!
//! The dumps have no times, so a trend is from the first to the latest dump and not per hour. It is a difference of two brackets. If they
//! overlap, the direction is unknown.

use std::collections::BTreeMap;

use pageout_kerneltext::lru_gen::Dump;
use pageout_kerneltext::lru_gen::working_set::{Bracket, Estimate, Window, of_dump};

use super::machine::{DumpedMachine, Reading};

/// A machine's estimates, one a dump, and where its history begins.
#[derive(Debug)]
pub struct History {
    /// The machine, with its dumps.
    pub machine: DumpedMachine,
    /// The estimate of each dump.
    pub estimates: Vec<Estimate>,
    /// The first dump that the latest can be compared with.
    pub since: usize,
}

/// The change of the working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// Number of pages more.
    Up(Bracket),
    /// Number of pages fewer.
    Down(Bracket),
    /// The brackets overlap.
    Unclear,
}

impl History {
    /// Estimates all dumps of `machine`.
    pub fn of(machine: DumpedMachine, question: Window) -> History {
        let estimates = machine.dumps.iter().map(|reading| of_dump(&reading.dump, question)).collect();
        let goes_back = |pair: &[Reading]| goes_back(&pair[0].dump, &pair[1].dump);
        let since = machine.dumps.windows(2).rposition(goes_back).map_or(0, |at| at + 1);
        History { machine, estimates, since }
    }

    /// The latest dump.
    pub fn latest(&self) -> &Reading {
        self.machine.dumps.last().expect("a machine has a dump at least")
    }

    /// The estimate of the latest dump.
    pub fn estimate(&self) -> Estimate {
        *self.estimates.last().expect("there is one for each dump")
    }

    /// Returns true if the latest dump has the root group: without it, it is only a part of the machine.
    pub fn has_root(&self) -> bool {
        self.latest().dump.memcgs.iter().any(|memcg| ["", "/"].contains(&memcg.path.as_str()))
    }

    /// From the first comparable dump to the latest; `None` of a single one.
    pub fn trend(&self) -> Option<Trend> {
        let used = |at: usize| self.estimates[at].total().used;
        let latest = self.estimates.len() - 1;
        (self.since < latest).then(|| Trend::between(used(self.since), used(latest)))
    }
}

impl Trend {
    fn between(first: Bracket, last: Bracket) -> Trend {
        let rise = |low: Bracket, high: Bracket| Bracket {
            at_least: high.at_least - low.at_most,
            at_most: high.at_most - low.at_least,
        };
        if last.at_least > first.at_most {
            Trend::Up(rise(first, last))
        } else if first.at_least > last.at_most {
            Trend::Down(rise(last, first))
        } else {
            Trend::Unclear
        }
    }
}

/// Returns true if the youngest generation of any group has a smaller number than before: a machine never does that until it is
/// started again.
fn goes_back(before: &Dump, after: &Dump) -> bool {
    let youngest: BTreeMap<(u32, &str, u32), u64> = nodes(before).collect();
    nodes(after).any(|(key, seq)| youngest.get(&key).is_some_and(|&before| seq < before))
}

/// The youngest generation of each node of each group.
fn nodes(dump: &Dump) -> impl Iterator<Item = ((u32, &str, u32), u64)> {
    dump.memcgs.iter().flat_map(|memcg| {
        memcg.nodes.iter().map(|node| ((memcg.id, memcg.path.as_str(), node.id), node.youngest().seq))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pageout_kerneltext::lru_gen::{GENERATIONS_MAX, parse};

    /// A machine whose dumps have this youngest generation and so many pages in use at least and at most.
    fn machine(dumps: &[(u64, u64, u64)]) -> DumpedMachine {
        let reading = |&(seq, at_least, at_most): &(u64, u64, u64)| {
            let (oldest, older, between) = (seq - 2, seq - 1, at_most - at_least);
            let text = format!(
                "memcg 1 /\n node 0\n {oldest} 90000 0 1\n {older} 9000 0 {between}\n {seq} 10 0 {at_least}\n"
            );
            Reading { file: "a".into(), dump: parse(&text, GENERATIONS_MAX).unwrap() }
        };
        DumpedMachine { name: "m".into(), dumps: dumps.iter().map(reading).collect() }
    }

    fn check(dumps: &[(u64, u64, u64)], since: usize, expected: Option<Trend>) {
        let machine = machine(dumps);
        let history = History::of(machine, Window { within_ms: 1000, has_swap: true });
        assert_eq!((history.since, history.trend()), (since, expected), "{dumps:?}");
    }

    #[test]
    fn brackets_that_overlap_have_no_direction() {
        let bracket = |at_least, at_most| Bracket { at_least, at_most };
        check(&[(5, 100, 120)], 0, None);
        check(&[(5, 100, 120), (6, 0, 900), (7, 130, 200)], 0, Some(Trend::Up(bracket(10, 100))));
        check(&[(5, 130, 200), (7, 100, 120)], 0, Some(Trend::Down(bracket(10, 100))));
        check(&[(5, 100, 120), (7, 120, 200)], 0, Some(Trend::Unclear));
        check(&[(5, 100, 100), (7, 100, 100)], 0, Some(Trend::Unclear));
    }

    #[test]
    fn a_machine_started_anew_has_no_history() {
        check(&[(50, 900, 900), (7, 100, 100)], 1, None);
        let up = Trend::Up(Bracket { at_least: 5, at_most: 5 });
        check(&[(50, 900, 900), (7, 100, 100), (8, 105, 105)], 1, Some(up));
    }
}
