//! `pageout explain`: why a page is where it is, or why the last pages evicted were taken.
//!
//! ```text
//!   --page       run, following that page ───────────────────────────────▶ its first and last steps ─▶ text, JSON
//!   --evictions  run, keeping the last N evictions ─▶ run, following those ─▶ the residency that ended in each
//! ```
//! The second run of the same scenario does what the first did, so a question about its end needs no record of the whole.
//! Memory is bounded by what is asked for, not by the length of the run.

mod names; // FILE:PAGE and TASK/OBJECT:PAGE
mod keep; // first and last steps of a page, and what its lists went through meanwhile
mod text; // a story as lines, one a step
mod phrase; // a step in words
mod json; // the same as data

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::anyhow;
use indicatif::ProgressBar;
use pageout_engine::{MemcgId, Nanos, PageState, StoryFilter};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Machine, Observer, Progress, RunError};
use pageout_study::Error;
use pageout_study::result::simulate;
use pageout_study::scenario::diagnostic::Diagnostics;
use pageout_study::scenario::nearest::nearest;
use pageout_study::scenario::source::Source;
use pageout_truth::story::Story;
use serde_json::Value;

use crate::cli::ExplainArgs;
use crate::cli::load;
use crate::failure::{Failure, Outcome};
use crate::print::{output, progress};
use keep::{Eviction, Following, LastEvictions, PageStory, Residency, Since};
use names::Names;

/// Runs the scenario as often as it takes and prints the story.
pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let question = Question::new(args)?;
    match &args.page {
        Some(page) => question.page(page),
        None => question.evictions(args.evictions.expect("one of the two is required") as usize),
    }
}

/// What the user wants to know of, and where.
struct Question<'a> {
    args: &'a ExplainArgs,
    source: Source,
    scenario: Scenario,
    names: Names,
    /// What the names are of: it runs first.
    machine: Option<Machine>,
}

impl Question<'_> {
    fn new(args: &ExplainArgs) -> Result<Question<'_>, Failure> {
        let source = Source::read(&args.scenario)?;
        let scenario = load(&source, &args.options, &[])?;
        let machine = build(&source, &scenario)?;
        let names = Names::of(&scenario, &machine);
        Ok(Question { args, source, scenario, names, machine: Some(machine) })
    }

    /// Why a page is where it is at the end.
    fn page(mut self, page: &str) -> Outcome {
        let page = self.names.parse(page)?;
        let mut following = Following::new(self.args.steps, None);
        let played = self.play(StoryFilter::Pages([page].into()), &mut following, "following")?;
        let (story, since) = following.into_page(page);
        let now = played.machine.engine().figures().page_state(page);
        let title = self.names.notation(page);
        let head = now.and_then(|now| self.names.head(page, now.huge?));
        let report = PageReport { title, eviction: None, back: None, story, since, now, head };
        self.answer(played, &[report], None)
    }

    /// Why the last pages that were evicted, so many of them, were.
    fn evictions(mut self, count: usize) -> Outcome {
        let of = self.args.memcg.as_deref().map(|path| self.group(path)).transpose()?;
        let mut last = LastEvictions::new(count);
        let played = self.play(StoryFilter::Evictions(of), &mut last, "looking for evictions")?;
        if last.total() == 0 {
            // Why there were none is a better answer than that there were none.
            if let Some(error) = played.failed {
                return output::no_result(&self.args.options.output, Error::Run(error).into(), Value::Null);
            }
            let place = self.args.memcg.as_ref().map_or_else(String::new, |path| format!(" from {path}"));
            return Err(Failure::Input(anyhow!(
                "no page was evicted{place} in the whole run; --page tells of a page in memory"
            )));
        }
        let pages = last.iter().map(|eviction| eviction.page).collect();
        let mut following = Following::new(self.args.steps, Some(&last));
        let played = self.play(StoryFilter::Pages(pages), &mut following, "following")?;
        let report = |Residency { eviction, story, back }| PageReport {
            title: self.names.notation(eviction.page),
            now: played.machine.engine().figures().page_state(eviction.page),
            eviction: Some(eviction),
            back,
            story,
            since: Since::default(),
            head: None,
        };
        let reports: Vec<PageReport> = following.into_evictions().into_iter().map(report).collect();
        self.answer(played, &reports, Some(last.total()))
    }

    /// Prints the reports, of all evictions if it is of those.
    fn answer(self, played: Played, reports: &[PageReport], evictions: Option<u64>) -> Outcome {
        let report = played.machine.report();
        let telling = Telling {
            groups: played.machine.engine().figures().memcgs().collect(),
            has_nodes: self.scenario.machine.node.len() > 1,
            tasks: task_names(&played.machine, &self.scenario),
            policy: self.scenario.kernel.name(),
            accesses: report.accesses,
            end: report.end,
        };
        let text = || text::stories(&telling, reports, evictions, output::width());
        let value = || json::stories(&telling, reports, evictions);
        match played.failed {
            None if self.args.options.output.is_data() => output::print_json(&value()),
            None => output::print_text(&text()),
            Some(error) => {
                output::remark(&format!("The run is not complete. Up to where it failed:\n{}", text()));
                output::no_result(&self.args.options.output, Error::Run(error).into(), value())
            }
        }
    }

    fn group(&self, path: &str) -> Result<MemcgId, Failure> {
        let machine = self.machine.as_ref().expect("groups are named before anything runs");
        let groups: Vec<(MemcgId, String)> = machine.engine().figures().memcgs().collect();
        if let Some((id, _)) = groups.iter().find(|(_, known)| known == path) {
            return Ok(*id);
        }
        let hint = nearest(path, groups.iter().map(|(_, known)| known.as_str()))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        Err(Failure::Input(anyhow!("--memcg {path}: there is no such cgroup{hint}")))
    }

    /// Plays the scenario once. A failing run is a result too: what led to its end is just what may be asked for.
    fn play(
        &mut self,
        filter: StoryFilter,
        listener: &mut dyn Listener,
        what: &str,
    ) -> Result<Played, Failure> {
        let Question { args, source, scenario, machine, .. } = self;
        let length = progress::is_seen(&args.options.output).then(|| simulate::accesses(scenario)).flatten();
        let bar = progress::bar(&args.options.output, length, what);
        let mut machine = machine.take().map_or_else(|| build(source, scenario), Ok)?;
        machine.tell_story(filter);
        let mut watch = Watch { listener, bar: &bar, seen: 0 };
        let ended = match scenario.until {
            Some(until) => machine.run_until(Nanos(until.0), &mut watch),
            None => machine.run(&mut watch),
        };
        bar.finish_and_clear();
        Ok(Played { machine, failed: ended.err() })
    }
}

/// The story of a page of a recorded run in words.
pub(crate) fn in_words(told: &Story) -> String {
    let mut following = Following::new(STEPS, None);
    told.events.iter().for_each(|event| following.hear(event));
    let (story, since) = following.into_page(told.page);
    let (title, now) = (told.title.clone(), told.now);
    let report = PageReport { title, eviction: None, back: None, story, since, now, head: None };
    let telling = Telling {
        groups: told.groups.clone(),
        has_nodes: false,
        tasks: BTreeMap::new(),
        policy: told.policy.clone(),
        accesses: told.accesses,
        end: told.end,
    };
    text::stories(&telling, &[report], None, output::width())
}

/// Steps of such a page that are told at each end.
const STEPS: u32 = 8;

/// What is needed to put a story into words.
struct Telling {
    groups: BTreeMap<MemcgId, String>,
    /// Memory is on several nodes.
    has_nodes: bool,
    tasks: BTreeMap<u32, String>,
    policy: String,
    accesses: u64,
    end: Nanos,
}

/// What is told of a page: its story, with its end.
struct PageReport {
    title: String,
    eviction: Option<Eviction>,
    /// When it was first needed again after that.
    back: Option<Nanos>,
    story: PageStory,
    /// What its lists went through after its last step.
    since: Since,
    /// The page's state when the run ended; `None` if it is not in memory.
    now: Option<PageState>,
    /// The first page of the huge page that it is part of then.
    head: Option<String>,
}

/// A run that was played, complete or not.
struct Played {
    machine: Machine,
    failed: Option<RunError>,
}

fn build(source: &Source, scenario: &Scenario) -> Result<Machine, Failure> {
    scenario.build().map_err(|problem| Failure::Input(Diagnostics(vec![source.locate(problem)]).into()))
}

/// Hears what is told.
trait Listener {
    fn hear(&mut self, event: &pageout_engine::StoryEvent);
}

struct Watch<'a> {
    listener: &'a mut dyn Listener,
    bar: &'a ProgressBar,
    seen: u64,
}

impl Observer for Watch<'_> {
    fn story(&mut self, event: &pageout_engine::StoryEvent) {
        self.listener.hear(event);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.bar.inc(progress.accesses - self.seen);
        self.seen = progress.accesses;
        ControlFlow::Continue(())
    }
}

fn task_names(machine: &Machine, scenario: &Scenario) -> BTreeMap<u32, String> {
    names::tasks(scenario).filter_map(|(name, _)| Some((machine.task_by_name(&name)?.0, name))).collect()
}
