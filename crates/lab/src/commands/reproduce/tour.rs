//! `pageout tour`: five publications, an experiment of each at a size that fits, and what holds.
//!
//! ```text
//!   stops (data) ─▶ a chapter's experiment at some of its sides ─▶ runs ─▶ claims judged ─▶ lines ─▶ story, JSON, page
//! ```
//! Nothing is run or judged here that `pageout reproduce` does not run or judge: a stop is a choice. What is more is that a row may be too close to its
//! bound for so few seeds ([`mod@lines`]), and that a stop is printed as soon as it is done.

mod lines; // a line a figure, and whether it is decided
mod page; // the tour as a page
mod stops; // what is chosen, as data
mod text; // a stop as a terminal has it

use serde_json::{Value, json};

use crate::cli::TourArgs;
use crate::commands::reproduce::Reproduced;
use crate::commands::reproduce::chapter::Chapter;
use crate::commands::reproduce::judge::CRITERIA;
use crate::failure::{Failure, Outcome};
use crate::print::progress::Terminal;
use crate::print::{output, signals};
use crate::report::{Picture, check_name};
use lines::{Figures, Line, Verdict, lines};
use pageout_sim::scenario::Scenario;
use pageout_study::result::better::Better;
use pageout_study::result::metrics::Unit;
use pageout_study::result::variants::{Extent, Made, Plan, Runs};
use pageout_study::scenario::load::{Changes, load};
use pageout_study::scenario::source::Source;
use pageout_study::{Error, Failed};
use stops::{Stop, Tour};

/// What a verdict that is none means.
const UNDECIDED: &str = "A row is not decided at this size where the 95 % interval over the seeds contains the bound that it is judged by, \
     or where the mean keeps to the bound and some seed does not.";

/// What stands behind a verdict.
const COMPARED: &str = "Behind a verdict is what was compared: \"sign\" is the sign of the change, \"size\" its size or that of a level, and      \"< side\" or \"= number\" is a relation.";

/// A stop that can be run.
struct Ready<'a> {
    stop: &'a Stop,
    chapter: Chapter,
    source: Source,
    /// The scenario's path, for people.
    path: String,
    scenarios: Vec<Scenario>,
}

/// What came of a stop: all that is printed of it.
struct Done<'a> {
    stop: &'a Stop,
    /// The letter, as a link.
    address: String,
    /// Its scenario, for people.
    scenario: String,
    seeds: u32,
    /// Which they are, in words.
    told_seeds: String,
    told: Vec<Told>,
    /// Every row of the experiment, as `reproduce --json` has them.
    rows: Value,
    failures: Vec<Failed>,
}

/// What running a stop came to.
enum Came<'a> {
    Stop(Box<Done<'a>>),
    /// No table: why, or nothing where a signal came first.
    Nothing(Vec<Failed>),
}

/// All that was found out.
#[derive(Default)]
struct Found<'a> {
    stops: Vec<Done<'a>>,
    /// Stops that a signal came before the end of.
    not_run: Vec<&'a str>,
    /// What a reader has to know first of a tour that was interrupted.
    warning: Option<String>,
}

/// A line, owned: chapters are gone when the page is written.
struct Told {
    name: String,
    side: String,
    against: Option<String>,
    published: String,
    ours: String,
    verdict: Verdict,
    is_way_only: bool,
    compared: String,
    figures: Option<Figures>,
    unit: Unit,
    better: Better,
    /// What was asked where rows do not hold, why it is not so where that is known, and the commands that show it.
    asked: Vec<String>,
    because: Vec<String>,
    shown_by: Vec<String>,
}

/// How many lines hold, do not, and are not decided.
#[derive(Clone, Copy, Default)]
struct Tally {
    held: usize,
    not_held: usize,
    not_decided: usize,
}

/// Runs the stops one after the other, and tells of each.
pub(crate) fn tour(args: &TourArgs) -> Outcome {
    if let Some(path) = &args.page.report {
        check_name(path, Picture::Curves)?;
    }
    let tour = Tour::read(args.file.as_deref())?;
    let chosen = tour.choose(&args.only)?;
    let all = chosen.iter().map(|stop| ready(stop, args)).collect::<Result<Vec<Ready>, Failure>>()?;
    let count = all.len();
    let mut found = Found::default();
    let mut failures: Vec<Failed> = Vec::new();
    let mut extent: Option<Extent> = None;
    // Between two stops a signal is meant for the tour as well.
    let listening = signals::listen();
    for (number, ready) in (1..).zip(all) {
        let name = ready.stop.name.as_str();
        let (of, its_extent) = ready.run(&format!("stop {number} of {count}: {name}"), args)?;
        extent = Some(extent.map_or_else(|| its_extent.clone(), |extent| extent.and(&its_extent)));
        match of {
            Came::Stop(of) => {
                if !args.output.is_data() {
                    output::print_text(&text::stop(number, count, &of))?;
                }
                failures.extend(of.failures.iter().cloned());
                found.stops.push(*of);
            }
            Came::Nothing(of) if of.is_empty() => found.not_run.push(name),
            Came::Nothing(of) => failures.extend(of),
        }
    }
    drop(listening);
    let extent = extent.expect("a tour has a stop");
    found.warning = extent.interrupted().map(|told| match found.not_run.is_empty() {
        true => format!("Not complete: {told}."),
        false => format!("Not complete: {told}. Not run: {}.", found.not_run.join(", ")),
    });
    if found.stops.is_empty() {
        let failure = extent.nothing("every run failed", &failures);
        return output::no_result(&args.output, failure.into(), Value::Null);
    }
    match args.output.is_data() {
        true => output::print_json(&found.json(&extent, &failures))?,
        false => output::print_text(&text::end(&found))?,
    }
    if let Some(path) = &args.page.report {
        page::page(&found).write(path)?;
    }
    Ok(extent.verdict(&failures)?)
}

fn ready<'a>(stop: &'a Stop, args: &TourArgs) -> Result<Ready<'a>, Failure> {
    let (place, chapter) = stop.chapter(args.file.as_deref())?;
    let scale = stop.scale.as_deref();
    let experiment = chapter.choose(std::slice::from_ref(&stop.experiment))?[0];
    let scenario = experiment.scenario_at(scale)?;
    let source = place.scenario(scenario)?;
    let terminal = Terminal::new(&args.output);
    let scenarios = chapter
        .side
        .iter()
        .map(|side| load(&source, &Changes::default(), &experiment.settings(side, scale), &terminal));
    let scenarios = scenarios.collect::<Result<Vec<Scenario>, Error>>()?;
    let path = place.path_of(scenario).display().to_string();
    Ok(Ready { stop, chapter, source, path, scenarios })
}

impl<'a> Ready<'a> {
    fn run(self, name: &str, args: &TourArgs) -> Result<(Came<'a>, Extent), Failure> {
        let Ready { stop, chapter, source, path, scenarios } = self;
        let terminal = Terminal::telling(&args.output);
        let plan =
            Plan { name: name.to_string(), repeat: stop.seeds, jobs: args.parallel.jobs, watcher: &terminal };
        let Made { variants, extent } = plan.run(&scenarios)?;
        let failures = variants.iter().zip(&chapter.side);
        let failures: Vec<Failed> = failures
            .flat_map(|(runs, side)| runs.failures_of(&format!("{}, {}", stop.name, side.name)))
            .collect();
        // A table needs all of its sides.
        let is_told = variants.iter().all(Runs::was_made) && variants.iter().any(Runs::is_whole);
        if !is_told {
            return Ok((Came::Nothing(failures), extent));
        }
        let experiment = chapter.choose(std::slice::from_ref(&stop.experiment))?[0];
        let reproduced = Reproduced { experiment, source, sides: variants };
        let names: Vec<&str> = chapter.side.iter().map(|side| side.name.as_str()).collect();
        let measured = reproduced.measured(&names, extent.seeds as usize)?;
        let done = Done {
            stop,
            address: chapter.source.clone(),
            scenario: path,
            seeds: extent.seeds,
            told_seeds: extent.seeds_from(scenarios[0].seed),
            told: lines(&names, &measured).into_iter().map(Told::of).collect(),
            rows: measured.iter().map(|row| row.json(&names)).collect(),
            failures,
        };
        Ok((Came::Stop(Box::new(done)), extent))
    }
}

impl Told {
    fn of(line: Line) -> Told {
        let not_held = || line.rows.iter().filter(|(_, of)| *of == Verdict::NotHeld).map(|(claim, _)| *claim);
        let asked = not_held().filter_map(|claim| {
            let note = if claim.note.is_empty() { String::new() } else { format!(" ({})", claim.note) };
            claim.holds.as_ref().map(|relation| format!("{relation}{note}"))
        });
        let because = || not_held().filter(|claim| !claim.because.is_empty());
        Told {
            asked: asked.collect(),
            because: because().map(|claim| claim.because.clone()).collect(),
            shown_by: because().flat_map(|claim| claim.shown_by.clone()).collect(),
            better: line.rows.first().map_or(Better::Neither, |(claim, _)| claim.better()),
            name: line.name,
            side: line.side.to_string(),
            against: line.against.map(str::to_string),
            published: line.published,
            ours: line.ours,
            verdict: line.verdict,
            is_way_only: line.is_way_only,
            compared: line.compared,
            figures: line.figures,
            unit: line.unit,
        }
    }

    /// As tables have it.
    fn cells(&self) -> [String; 4] {
        let verdict = format!("{}: {}", self.verdict.told(), self.compared);
        [self.name.clone(), self.published.clone(), self.ours.clone(), verdict]
    }

    fn json(&self) -> Value {
        let figures = match self.figures {
            Some(Figures::Changes(published, ours)) => json!({
                "published_change_percent": published * 100.0,
                "change_percent": ours.percent(ours.difference),
                "change_half_width_percent": ours.half_width.and_then(|half| ours.percent(half)),
            }),
            Some(Figures::Levels(published, ours)) => json!({ "published_level": published, "level": ours }),
            None => json!({}),
        };
        let line = json!({
            "row": self.name,
            "side": self.side,
            "against": self.against,
            "published": self.published,
            "ours": self.ours,
            "verdict": match self.verdict {
                Verdict::Held => "held",
                Verdict::NotHeld => "not_held",
                Verdict::NotDecided => "not_decided",
            },
            "which_way_alone": self.is_way_only,
            "compared": self.compared,
            "asked": self.asked,
            "because": self.because,
            "shown_by": self.shown_by,
        });
        output::merged(line, figures)
    }
}

impl Done<'_> {
    /// What our figures are of.
    fn ours_on(&self) -> String {
        let of = if self.seeds == 1 { "Of" } else { "Means of" };
        format!("{} {of} {}.", self.stop.ours_on, self.told_seeds)
    }

    fn tally(&self) -> Tally {
        let of = |verdict| self.told.iter().filter(|line| line.verdict == verdict).count();
        Tally {
            held: of(Verdict::Held),
            not_held: of(Verdict::NotHeld),
            not_decided: of(Verdict::NotDecided),
        }
    }

    /// What is to be said of lines that do not hold: what was asked; and why not, where that is known, once for all lines of which it is true.
    fn reasons(&self) -> Vec<String> {
        let not_held = || self.told.iter().filter(|line| line.verdict == Verdict::NotHeld);
        let mut reasons: Vec<String> = not_held()
            .flat_map(|line| {
                line.asked.iter().map(|asked| format!("Not held, {}: asked is {asked}.", line.name))
            })
            .collect();
        let mut known: Vec<&String> = Vec::new();
        for line in not_held() {
            for because in &line.because {
                if known.contains(&because) {
                    continue;
                }
                known.push(because);
                let of = not_held().filter(|line| line.because.contains(because));
                let names: Vec<&str> = of.map(|line| line.name.as_str()).collect();
                reasons.push(format!("Why, {}: {because}", names.join("; ")));
                reasons.extend(line.shown_by.iter().map(|command| format!("  {command}")));
            }
        }
        reasons
    }

    fn json(&self) -> Value {
        let stop = self.stop;
        let json = json!({
            "name": stop.name,
            "title": stop.title,
            "author": stop.author,
            "source": self.address,
            "claim": stop.claim,
            "machine": { "published": stop.published_on, "ours": stop.ours_on },
            "chapter": stop.chapter,
            "experiment": stop.experiment,
            "scale": stop.scale.as_deref().unwrap_or("full"),
            "scenario": self.scenario,
            "seeds": self.seeds,
            "failures": self.failures,
            "lines": self.told.iter().map(Told::json).collect::<Vec<_>>(),
            "rows": self.rows,
            "more": stop.more,
        });
        output::merged(json, self.tally().json())
    }
}

impl Tally {
    fn of_all(done: &[Done]) -> Tally {
        done.iter().map(Done::tally).fold(Tally::default(), |sum, of| Tally {
            held: sum.held + of.held,
            not_held: sum.not_held + of.not_held,
            not_decided: sum.not_decided + of.not_decided,
        })
    }

    /// `22 of 27 hold, 4 do not, 1 is not decided at this size`.
    fn says(self) -> String {
        let Tally { held, not_held, not_decided } = self;
        let verb = |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
        let mut says = format!("{held} of {} {}", held + not_held + not_decided, verb(held, "holds", "hold"));
        if not_held > 0 {
            says += &format!(", {not_held} {}", verb(not_held, "does not", "do not"));
        }
        if not_decided > 0 {
            says += &format!(", {not_decided} {} not decided at this size", verb(not_decided, "is", "are"));
        }
        says
    }

    fn json(self) -> Value {
        json!({ "held": self.held, "not_held": self.not_held, "not_decided": self.not_decided })
    }
}

impl Found<'_> {
    fn tally(&self) -> Tally {
        Tally::of_all(&self.stops)
    }

    fn json(&self, extent: &Extent, failures: &[Failed]) -> Value {
        let mut json = json!({
            "complete": !extent.is_interrupted() && failures.is_empty(),
            "stops": self.stops.iter().map(Done::json).collect::<Vec<_>>(),
            "not_run": self.not_run,
            "failures": failures,
            "criteria": format!("{CRITERIA} {UNDECIDED}"),
        });
        if let Some(warning) = &self.warning {
            json["warning"] = json!(warning);
        }
        output::merged(json, self.tally().json())
    }
}
