//! Outdated statistics in a result: decisions by memcg statistics of the last flush that live ones would have turned.

use std::collections::BTreeMap;

use pageout_engine::{Engine, StaleDecision, StaleDecisions, StaleNumber, Turned};
use serde::Serialize;

use crate::figures;

/// The outcomes of decisions of one kind that were repeated with live statistics.
#[derive(Debug, Clone, Serialize)]
pub struct OutdatedResult {
    #[serde(skip)]
    decision: StaleDecision,
    /// Decisions that were repeated with live numbers.
    pub compared: u64,
    /// By live statistics they would have been no.
    pub yes_for_no: TurnedResult,
    /// By live statistics they would have been yes.
    pub no_for_yes: TurnedResult,
    /// For how long writers slept that would not have slept.
    pub slept_ns: u64,
}

/// Decisions that live statistics turn, and the number that was furthest from what it seemed to be.
#[derive(Debug, Clone, Serialize)]
pub struct TurnedResult {
    /// Decisions that live numbers would have changed.
    pub count: u64,
    /// The age of the oldest statistics among them.
    pub oldest_ns: u64,
    /// The number that was furthest from what it seemed to be.
    pub furthest: Option<NumberResult>,
}

/// A counter that a decision went by, in pages or events.
#[derive(Debug, Clone, Serialize)]
pub struct NumberResult {
    /// The time of the reading.
    pub at_ns: u64,
    /// The cgroup that it is of.
    pub memcg: String,
    /// Its name in `memory.stat`, or the kernel's for it.
    pub counter: &'static str,
    /// The value by the statistics.
    pub stale: u64,
    /// The live value.
    pub live: u64,
    /// The age of the statistics.
    pub age_ns: u64,
}

/// The summary is silent where fewer decisions of a kind were turned one way than this share.
const TOLD_FROM: f64 = 0.01;

/// All kinds of which there was any, by name.
pub fn of(engine: &Engine) -> BTreeMap<&'static str, OutdatedResult> {
    let of_kind = |decision: StaleDecision| {
        let StaleDecisions { compared, yes_for_no, no_for_yes, slept } =
            engine.figures().stale_decisions(decision);
        let [yes_for_no, no_for_yes] =
            [yes_for_no, no_for_yes].map(|turned| TurnedResult::of(turned, engine));
        let result = OutdatedResult { decision, compared, yes_for_no, no_for_yes, slept_ns: slept.0 };
        (compared > 0).then_some((decision.name(), result))
    };
    StaleDecision::ALL.into_iter().filter_map(of_kind).collect()
}

/// Returns true if a result has all outdated decisions: decisions were compared, or no statistics are ever old.
pub fn is_told(engine: &Engine) -> bool {
    engine.figures().compares_with_live() || engine.stat_flush_period().is_none()
}

/// JSON tells it where it is not so.
pub fn is_compared(compared: &bool) -> bool {
    *compared
}

impl TurnedResult {
    fn of(turned: Turned, engine: &Engine) -> TurnedResult {
        let number = |StaleNumber { at, memcg, stat, stale, live, age }| NumberResult {
            at_ns: at.0,
            memcg: engine.figures().memcg_path(memcg),
            counter: stat.name(),
            stale,
            live,
            age_ns: age.0,
        };
        TurnedResult {
            count: turned.count,
            oldest_ns: turned.oldest.0,
            furthest: turned.furthest.map(number),
        }
    }
}

impl OutdatedResult {
    /// Decisions that live statistics turn.
    pub fn turned(&self) -> u64 {
        self.yes_for_no.count + self.no_for_yes.count
    }

    /// In sentences; nothing where it hardly ever mattered.
    pub fn told(&self) -> Option<String> {
        let compared = figures::count(self.compared);
        let slept = figures::time(self.slept_ns);
        let (of, yes, no) = match self.decision {
            StaleDecision::DirtyThrottle => (
                format!("{compared} throttle checks of cgroup writers"),
                format!("throttled a writer below its limit, for {slept} in total"),
                "did not throttle a writer at its limit",
            ),
            StaleDecision::Aging => (
                format!("{compared} checks of active lists"),
                "aged a list that needed no aging".to_string(),
                "did not age a list that needed it",
            ),
            StaleDecision::CacheTrim => (
                format!("{compared} passes of reclaim"),
                "did not scan anonymous memory".to_string(),
                "scanned anonymous memory although enough page cache was idle",
            ),
            StaleDecision::Refault => (
                format!("{compared} refaults"),
                "activated a page whose refault distance was too long".to_string(),
                "did not activate a page whose refault distance was short enough",
            ),
        };
        let turned = [(&self.yes_for_no, yes.as_str()), (&self.no_for_yes, no)];
        let told =
            turned.iter().filter(|(turned, _)| figures::share(turned.count, self.compared) >= TOLD_FROM);
        let told: Vec<String> = told.map(|(turned, what)| turned.told(self.compared, what)).collect();
        (!told.is_empty()).then(|| format!("{of}: {}", told.join("; ")))
    }
}

impl TurnedResult {
    fn told(&self, compared: u64, what: &str) -> String {
        let share = figures::percent(figures::share(self.count, compared));
        let mut text = format!("{} ({share}) {what}", figures::count(self.count));
        if let Some(NumberResult { at_ns, memcg, counter, stale, live, age_ns }) = &self.furthest {
            text += &format!(
                " because of statistics up to {} old (at {} {counter} of {memcg} was {} pages, but the statistics had {}, the value of {} before)",
                figures::time(self.oldest_ns),
                figures::time(*at_ns),
                figures::count(*live),
                figures::count(*stale),
                figures::time(*age_ns),
            );
        }
        text
    }
}
