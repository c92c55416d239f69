//! Why a page is where it is, or why the last evicted pages were evicted.
//!
//! ```text
//!   Page       one run, tracing that page ───────────────────────────────▶ its first and last steps ─▶ Answer
//!   Evictions  one run, keeping the last N evictions ─▶ one, tracing those ─▶ the residency that ended in each
//! ```
//! The second run of a scenario repeats the first one. A question about the end of a run therefore needs no record of all of it. The
//! question, not the length of the run, limits the memory for the answer.

mod names; // FILE:PAGE and TASK/OBJECT:PAGE
mod keep; // first and last steps of a page, and the decisions between them
mod json; // the answer as JSON
mod text; // a story as lines, one per step
mod phrase; // a step in words

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use pageout_engine::{MemcgId, Nanos, PageEvent, PageName, PageState, StoryEvent, StoryFilter};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Ended, Machine, Observer, Progress, RunError};
use serde::{Deserialize, Serialize, Serializer};

use crate::check::holds;
use crate::error::Error;
use crate::result::simulate;
use crate::scenario::diagnostic::Diagnostics;
use crate::scenario::load::{Changes, load};
use crate::scenario::nearest::nearest;
use crate::scenario::source::Source;
use crate::watch::{Stage, Watcher};
use keep::{Following, LastEvictions, Residency};

pub use json::type_name;
pub use keep::{Eviction, PageStory, Since, Step};
pub use names::{Names, Range};
pub use text::stories;

/// The pages to explain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, or `-`, standard input.
    pub scenario: PathBuf,
    /// The changes of the scenario.
    pub changes: Changes,
    /// The page or the evictions. Default: the last eviction.
    pub about: About,
    /// Steps of a page that are kept from its beginning, and as many up to its end. 1 or more; default 12.
    pub steps: u32,
}

/// The page or the evictions that are asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum About {
    /// One page, named FILE:PAGE or TASK/OBJECT:PAGE: where it is at the end.
    Page(String),
    /// The last evictions, each from the last time that its page was filled.
    Evictions {
        /// How many. 1 or more.
        count: u32,
        /// The path of a cgroup: only evictions from it and from those below it.
        #[serde(default)]
        memcg: Option<String>,
    },
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            scenario: PathBuf::new(),
            changes: Changes::default(),
            about: About::Evictions { count: 1, memcg: None },
            steps: 12,
        }
    }
}

/// The stories of the pages that were asked about.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The run, as far as it went.
    pub run: Run,
    /// The page, or the pages of the last evictions, in the order of the evictions.
    pub pages: Vec<PageReport>,
    /// Evictions of the whole run, if the question is about evictions.
    pub evictions: Option<u64>,
    /// The reason why the run ended early, if it did. The stories end there.
    pub failed: Option<RunError>,
}

/// The run, as stories need it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Paths of the cgroups.
    pub groups: BTreeMap<MemcgId, String>,
    /// True if memory is on several nodes.
    pub has_nodes: bool,
    /// Names of the tasks, by their numbers in the engine.
    pub tasks: BTreeMap<u32, String>,
    /// The lists and the kernel version, such as `mglru@6.12`.
    pub policy: String,
    /// Accesses of all tasks.
    pub accesses: u64,
    /// The simulated time at which the run ended.
    pub end: Nanos,
}

/// The story of one page.
#[derive(Debug)]
pub struct PageReport {
    /// The page, named as in the question.
    pub title: String,
    /// The eviction that ended the story, if the question is about evictions.
    pub eviction: Option<Eviction>,
    /// The time when the page was first filled again after that eviction.
    pub back: Option<Nanos>,
    /// Its steps.
    pub story: PageStory,
    /// Decisions on its lists after its last step.
    pub since: Since,
    /// The page's state when the run ended; `None` if it is not in memory.
    pub now: Option<PageState>,
    /// The first page of the huge page that it belonged to at that time.
    pub head: Option<String>,
}

/// Runs the scenario once for a page and twice for evictions. A run that fails is part of the answer. Errors: the scenario makes
/// no sense; there is no such page or cgroup; no page was evicted; the watcher stopped a run.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let (what, number) = match ask.about {
        About::Evictions { count: 0, .. } => ("evictions", 0),
        _ => ("steps", ask.steps),
    };
    if number == 0 {
        return Err(Error::asked(format!("number of {what}: found 0, expected 1 or more")));
    }
    let mut runs = Runs::new(ask, watcher)?;
    let answer = match &ask.about {
        About::Page(page) => runs.page(page),
        About::Evictions { count, memcg } => runs.evictions(*count as usize, memcg.as_deref()),
    }?;
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// Keeps the story of one page: `steps` steps at either end, and the decisions on its lists after its last step.
pub fn page_story(page: PageName, events: &[StoryEvent], steps: u32) -> (PageStory, Since) {
    let mut following = Following::new(steps, None);
    events.iter().for_each(|event| following.hear(event));
    following.into_page(page)
}

/// The scenario, to be run as often as the question needs.
struct Runs<'a> {
    ask: &'a Ask,
    watcher: &'a dyn Watcher,
    source: Source,
    scenario: Scenario,
    names: Names,
    /// The machine that gave the names: it runs first.
    machine: Option<Machine>,
}

impl<'a> Runs<'a> {
    fn new(ask: &'a Ask, watcher: &'a dyn Watcher) -> Result<Runs<'a>, Error> {
        let source = Source::read(&ask.scenario)?;
        let scenario = load(&source, &ask.changes, &[], watcher)?;
        let machine = build(&source, &scenario)?;
        let names = Names::of(&scenario, &machine);
        Ok(Runs { ask, watcher, source, scenario, names, machine: Some(machine) })
    }

    /// Why a page is where it is at the end.
    fn page(&mut self, page: &str) -> Result<Answer, Error> {
        let page = self.names.parse(page)?;
        let mut following = Following::new(self.ask.steps, None);
        let played =
            self.play(StoryFilter::Pages([page].into()), &mut |event| following.hear(event), "following")?;
        let (story, since) = following.into_page(page);
        let now = played.machine.engine().figures().page_state(page);
        let title = self.names.notation(page);
        let head = now.and_then(|now| self.names.head(page, now.huge?));
        let report = PageReport { title, eviction: None, back: None, story, since, now, head };
        Ok(self.answer(played, vec![report], None))
    }

    /// Why the last `count` pages that were evicted were.
    fn evictions(&mut self, count: usize, memcg: Option<&str>) -> Result<Answer, Error> {
        let of = memcg.map(|path| self.group(path)).transpose()?;
        let mut last = LastEvictions::new(count);
        let filter = StoryFilter::Evictions(of);
        let played = self.play(filter, &mut |event| last.hear(event), "looking for evictions")?;
        if last.total() == 0 {
            // Why there were none is a better answer than that there were none.
            if let Some(error) = played.failed {
                return Err(Error::Run(error));
            }
            let place = memcg.map_or_else(String::new, |path| format!(" from {path}"));
            return Err(Error::asked(format!(
                "no page was evicted{place} during the run\nhelp: --page explains a page in memory"
            )));
        }
        let pages = last.iter().map(|eviction| eviction.page).collect();
        let mut following = Following::new(self.ask.steps, Some(&last));
        let played = self.play(StoryFilter::Pages(pages), &mut |event| following.hear(event), "following")?;
        let report = |Residency { eviction, story, back }| PageReport {
            title: self.names.notation(eviction.page),
            now: played.machine.engine().figures().page_state(eviction.page),
            eviction: Some(eviction),
            back,
            story,
            since: Since::default(),
            head: None,
        };
        let reports = following.into_evictions().into_iter().map(report).collect();
        Ok(self.answer(played, reports, Some(last.total())))
    }

    fn answer(&self, played: Played, pages: Vec<PageReport>, evictions: Option<u64>) -> Answer {
        let Played { machine, failed } = played;
        let run = Run::of(&self.scenario, &machine);
        Answer { ask: self.ask.clone(), run, pages, evictions, failed }
    }

    fn group(&self, path: &str) -> Result<MemcgId, Error> {
        let machine = self.machine.as_ref().expect("groups are named before anything runs");
        let groups: Vec<(MemcgId, String)> = machine.engine().figures().memcgs().collect();
        if let Some((id, _)) = groups.iter().find(|(_, known)| known == path) {
            return Ok(*id);
        }
        let known: Vec<&str> = groups.iter().map(|(_, known)| known.as_str()).collect();
        let help = nearest(path, known.iter().copied()).map_or_else(
            || format!("the cgroups are {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        Err(Error::asked(format!("--memcg {path}: no such cgroup\nhelp: {help}")))
    }

    /// Runs the scenario once. A run that fails is a result too: the question may be about what led to its end.
    fn play(
        &mut self,
        filter: StoryFilter,
        hear: &mut dyn FnMut(&StoryEvent),
        what: &str,
    ) -> Result<Played, Error> {
        let steps = self.watcher.is_seen().then(|| simulate::accesses(&self.scenario)).flatten();
        let machine = self.machine.take().map_or_else(|| build(&self.source, &self.scenario), Ok);
        let mut machine = machine?;
        machine.tell_story(filter);
        self.watcher.begin(&Stage::Named { what, steps });
        let mut listening = Listening { hear, watcher: self.watcher, seen: 0 };
        let until = self.scenario.until.map_or(Nanos(u64::MAX), |until| Nanos(until.0));
        let ended = machine.run_until(until, &mut listening);
        self.watcher.end();
        match (&ended, self.watcher.stop()) {
            (Ok(Ended::Interrupted), Some(by)) => Err(Error::Interrupted(format!("interrupted by {by}"))),
            _ => Ok(Played { machine, failed: ended.err() }),
        }
    }
}

impl Run {
    /// A run of a scenario as far as its machine has come.
    pub fn of(scenario: &Scenario, machine: &Machine) -> Run {
        let report = machine.report();
        let task = |(name, _): (String, _)| Some((machine.task_by_name(&name)?.0, name));
        Run {
            groups: machine.engine().figures().memcgs().collect(),
            has_nodes: scenario.machine.node.len() > 1,
            tasks: names::tasks(scenario).filter_map(task).collect(),
            policy: scenario.kernel.name(),
            accesses: report.accesses,
            end: report.end,
        }
    }
}

/// A run, complete or not.
struct Played {
    machine: Machine,
    failed: Option<RunError>,
}

fn build(source: &Source, scenario: &Scenario) -> Result<Machine, Error> {
    scenario.build().map_err(|problem| Diagnostics(vec![source.locate(problem)]).into())
}

struct Listening<'a> {
    hear: &'a mut dyn FnMut(&StoryEvent),
    watcher: &'a dyn Watcher,
    seen: u64,
}

impl Observer for Listening<'_> {
    fn story(&mut self, event: &StoryEvent) {
        (self.hear)(event);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.watcher.advance(progress.accesses - self.seen);
        self.seen = progress.accesses;
        match self.watcher.stop() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

impl Answer {
    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let told = self.pages.len() as u64;
        let asked = match (&self.ask.about, self.evictions) {
            (About::Page(_), None) => 1,
            (About::Evictions { count, .. }, Some(total)) => total.min(u64::from(*count)),
            _ => {
                return Err(
                    "the number of evictions is missing, or the question is not about evictions".to_string()
                );
            }
        };
        holds!(told == asked, "found {told} pages, expected {asked}");
        let times = self.pages.iter().filter_map(|page| page.eviction).map(|eviction| eviction.at);
        holds!(times.is_sorted(), "evictions are not sorted by time");
        self.pages.iter().try_for_each(|page| {
            let checked = page.check(self.ask.steps as usize, self.run.end);
            checked.map_err(|why| format!("{}: {why}", page.title))
        })
    }
}

impl PageReport {
    fn check(&self, most: usize, end: Nanos) -> Result<(), String> {
        let PageStory { first, last, left_out, .. } = &self.story;
        let kept = [first.len(), last.len()];
        holds!(
            kept.iter().all(|&kept| kept <= most),
            "found {kept:?} steps at its ends, expected at most {most}"
        );
        holds!(
            *left_out == 0 || kept == [most; 2],
            "{left_out} steps are left out, but its ends have only {kept:?}"
        );
        let times = self.story.steps().flat_map(|step| [step.at, step.until]);
        holds!(times.is_sorted(), "steps are not sorted by time");
        let is_counted = self.story.steps().all(|step| step.times > 0);
        holds!(is_counted, "a step has a count of 0");
        let last = self.story.last_step();
        holds!(last.is_none_or(|step| step.until <= end), "a step is later than the end of the run");
        let Some(Eviction { at, .. }) = self.eviction else { return Ok(()) };
        let is_its_end =
            last.is_some_and(|step| step.until == at && matches!(step.event, PageEvent::Evicted { .. }));
        holds!(is_its_end, "the last step is not the eviction");
        holds!(self.back.is_none_or(|back| back >= at), "the page returned before its eviction");
        Ok(())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        [machine]
        memory = "64MiB"
        [[memcg]]
        path = "/web"
        memory.max = "1MiB"
        [[task]]
        name = "reader"
        memcg = "/web"
        object = [{ channel = "file", size = "4MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 2_000 } }]
    "#;

    fn answer(about: About, steps: u32) -> Result<Answer, Error> {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("one.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        ask(&Ask { scenario, about, steps, ..Ask::default() }, &())
    }

    fn evictions() -> Answer {
        answer(About::Evictions { count: 200, memcg: None }, 1).unwrap()
    }

    #[test]
    fn explain_answer_with_a_wrong_sum_is_refused() {
        let whole = evictions();
        assert_eq!((whole.check(), whole.pages.len()), (Ok(()), 200));
        assert!(whole.pages[0].story.left_out > 0 && whole.pages.iter().any(|page| page.back.is_some()));
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 11] = [
            (|answer| drop(answer.pages.pop()), "found 199 pages, expected 200"),
            (|answer| answer.evictions = None, "the number of evictions is missing"),
            (|answer| answer.evictions = Some(199), "found 200 pages, expected 199"),
            (|answer| answer.pages.reverse(), "evictions are not sorted by time"),
            (|answer| answer.ask.steps = 0, "expected at most 0"),
            (|answer| answer.pages[0].story.first.clear(), "are left out, but its ends have only [0, 1]"),
            (|answer| answer.pages[0].story.first[0].until = answer.run.end, "steps are not sorted by time"),
            (|answer| answer.pages[0].story.first[0].times = 0, "a step has a count of 0"),
            (|answer| answer.run.end = Nanos(0), "later than the end of the run"),
            (
                |answer| answer.pages[0].eviction.as_mut().unwrap().at = Nanos(0),
                "the last step is not the eviction",
            ),
            (|answer| answer.pages[0].back = Some(Nanos(0)), "the page returned before its eviction"),
        ];
        for (mutate, told) in mutants {
            let mut mutant = evictions();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}, expected {told}");
        }
        let page = answer(About::Page("reader/0:1".to_string()), 12).unwrap();
        assert_eq!((page.pages.len(), page.evictions), (1, None));
        assert_eq!(serde_json::to_value(&page).unwrap(), page.json());
    }

    #[test]
    fn explain_ask_with_zero_steps_or_evictions_is_refused() {
        let none = About::Evictions { count: 0, memcg: None };
        assert_eq!(
            answer(none, 1).unwrap_err().to_string(),
            "number of evictions: found 0, expected 1 or more"
        );
        let page = About::Page("reader/0:1".to_string());
        assert_eq!(answer(page, 0).unwrap_err().to_string(), "number of steps: found 0, expected 1 or more");
    }

    #[test]
    fn explain_ask_as_json_is_read_as_it_was_written() {
        let text = r#"{ "scenario": "web.toml", "about": { "page": "server/0:17" },
            "changes": { "settings": ["kernel.profile=mglru@6.12"], "seed": 3 } }"#;
        let ask: Ask = serde_json::from_str(text).unwrap();
        assert_eq!((ask.steps, ask.changes.settings.len(), ask.changes.seed), (12, 1, Some(3)));
        assert_eq!(serde_json::from_value::<Ask>(serde_json::to_value(&ask).unwrap()).unwrap(), ask);
        let unknown = serde_json::from_str::<Ask>(r#"{ "step": 3 }"#).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `step`"), "{unknown}");
        let wrong = serde_json::from_str::<Ask>(r#"{ "changes": { "settings": ["a"] } }"#);
        assert!(wrong.unwrap_err().to_string().contains("found `a`, expected KEY=VALUE"));
    }
}
