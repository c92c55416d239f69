//! `pageout explain`: why a page is where it is, or why the last pages evicted were taken.
//!
//! ```text
//!   --page       run, following that page ───────────────────────────────▶ its first and last steps ─▶ text, JSON
//!   --evictions  run, keeping the last N evictions ─▶ run, following those ─▶ the residency that ended in each
//! ```
//! The second run of the same scenario does what the first did, so a question about its end needs no record of the whole.
//! What is kept is bounded by what is asked for, not by the length of the run.

mod names; // FILE:PAGE and TASK/OBJECT:PAGE
mod keep; // first and last steps of a page, and what its lists went through meanwhile
mod text; // steps and rules in words
mod json; // the same as data

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use anyhow::{bail, ensure};
use indicatif::ProgressBar;
use pageout_engine::{MemcgId, Nanos, PageState, StoryFilter};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Machine, Observer, Progress, RunError};
use serde_json::Value;

use crate::cli::ExplainArgs;
use crate::diagnostic::Diagnostics;
use crate::failure::{Failure, Outcome};
use crate::nearest::nearest;
use crate::run::load;
use crate::source::Source;
use crate::{figures, output, progress, simulate};
use keep::{Eviction, Following, LastEvictions, PageStory, Residency, Since};
use names::Names;

/// Runs the scenario as often as it takes and prints the story.
pub(crate) fn run(args: &ExplainArgs) -> Outcome {
    let source = Source::read(&args.scenario)?;
    let scenario = load(&source, &args.options, &[])?;
    let (mut asked, names) = ask(args, &source, &scenario)?;
    let evictions = match &asked {
        Asked::Page(_) => None,
        Asked::Evictions { of, count } => {
            let mut last = LastEvictions::new(*count);
            let filter = StoryFilter::Evictions(*of);
            let played = play(&source, &scenario, args, filter, &mut last, "looking for evictions")?;
            match played.failed {
                // Why there were none is a better answer than that there were none.
                Some(error) if last.total() == 0 => {
                    return output::no_result(&args.options.output, error.into(), Value::Null);
                }
                _ => Some(last),
            }
        }
    };
    if let (Some(last), Asked::Evictions { of, .. }) = (&evictions, &mut asked) {
        ensure_evictions(last, *of, args)?;
    }
    let pages = match (&asked, &evictions) {
        (Asked::Page(page), _) => BTreeSet::from([*page]),
        (_, Some(last)) => last.iter().map(|eviction| eviction.page).collect(),
        (_, None) => BTreeSet::new(),
    };
    let mut following = Following::new(args.steps, evictions.as_ref());
    let filter = StoryFilter::Pages(pages);
    let ended = play(&source, &scenario, args, filter, &mut following, "following")?;
    let telling = Telling {
        names,
        groups: ended.machine.engine().memcgs().collect(),
        tasks: task_names(&ended.machine, &scenario),
        policy: scenario.kernel.profile.clone(),
        accesses: ended.machine.report().accesses,
        end: ended.machine.report().end,
    };
    let stories = match asked {
        Asked::Page(page) => {
            let (story, since) = following.into_page(page);
            let now = ended.machine.engine().page_state(page);
            vec![Told { title: telling.names.notation(page), eviction: None, back: None, story, since, now }]
        }
        Asked::Evictions { .. } => following
            .into_evictions()
            .into_iter()
            .map(|Residency { eviction, story, back }| Told {
                title: telling.names.notation(eviction.page),
                now: ended.machine.engine().page_state(eviction.page),
                eviction: Some(eviction),
                back,
                story,
                since: Since::default(),
            })
            .collect(),
    };
    let total = evictions.map(|last| last.total());
    let text = || text::stories(&telling, &stories, total, output::width());
    let value = || json::stories(&telling, &stories, total);
    match ended.failed {
        None if args.options.output.json => output::print_json(&value()),
        None => output::print(&text()),
        Some(error) => {
            output::remark(&format!("The run is not complete. Up to where it failed:\n{}", text()));
            output::no_result(&args.options.output, error.into(), value())
        }
    }
}

/// What the user wants to know of.
enum Asked {
    Page(pageout_engine::PageName),
    Evictions { of: Option<MemcgId>, count: usize },
}

/// What is needed to put a story into words.
struct Telling {
    names: Names,
    groups: BTreeMap<MemcgId, String>,
    tasks: BTreeMap<u32, String>,
    policy: String,
    accesses: u64,
    end: Nanos,
}

/// A story with its end.
struct Told {
    title: String,
    eviction: Option<Eviction>,
    /// When it was first needed again after that.
    back: Option<Nanos>,
    story: PageStory,
    /// What its lists went through after its last step.
    since: Since,
    /// Its state when the run ended; `None` if it is not in memory.
    now: Option<PageState>,
}

/// A run that was played, complete or not.
struct Played {
    machine: Machine,
    failed: Option<RunError>,
}

/// Understands the question, by the names of a machine that is built for it.
fn ask(args: &ExplainArgs, source: &Source, scenario: &Scenario) -> Result<(Asked, Names), Failure> {
    let machine = build(source, scenario)?;
    let names = Names::of(scenario, &machine);
    if let Some(page) = &args.page {
        return Ok((Asked::Page(names.parse(page)?), names));
    }
    let of = match &args.memcg {
        None => None,
        Some(path) => Some(group(&machine, path)?),
    };
    let count = args.evictions.expect("one of the two is required") as usize;
    Ok((Asked::Evictions { of, count }, names))
}

fn group(machine: &Machine, path: &str) -> anyhow::Result<MemcgId> {
    let groups: Vec<(MemcgId, String)> = machine.engine().memcgs().collect();
    if let Some((id, _)) = groups.iter().find(|(_, known)| known == path) {
        return Ok(*id);
    }
    let hint = nearest(path, groups.iter().map(|(_, known)| known.as_str()))
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    bail!("--memcg {path}: there is no such cgroup{hint}")
}

fn ensure_evictions(last: &LastEvictions, of: Option<MemcgId>, args: &ExplainArgs) -> anyhow::Result<()> {
    let place = match (&args.memcg, of) {
        (Some(path), Some(_)) => format!(" from {path}"),
        _ => String::new(),
    };
    ensure!(
        last.total() > 0,
        "no page was evicted{place} in the whole run; --page tells of a page in memory"
    );
    Ok(())
}

fn build(source: &Source, scenario: &Scenario) -> Result<Machine, Failure> {
    scenario.build().map_err(|problem| Failure::Input(Diagnostics(vec![source.locate(problem)]).into()))
}

/// Plays the scenario once. A failing run is a result too: what led to its end is just what may be asked for.
fn play(
    source: &Source,
    scenario: &Scenario,
    args: &ExplainArgs,
    filter: StoryFilter,
    listener: &mut dyn Listener,
    what: &str,
) -> Result<Played, Failure> {
    let length = progress::is_seen(&args.options.output).then(|| simulate::accesses(scenario)).flatten();
    let bar = progress::bar(&args.options.output, length, what);
    let mut machine = build(source, scenario)?;
    machine.tell_story(filter);
    let mut watch = Watch { listener, bar: &bar, seen: 0 };
    let ended = match scenario.until {
        Some(until) => machine.run_until(Nanos(until.0), &mut watch),
        None => machine.run(&mut watch),
    };
    bar.finish_and_clear();
    Ok(Played { machine, failed: ended.err() })
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

/// `n` of something, with an s if there are several.
fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", figures::count(n), if n == 1 { "" } else { "s" })
}
