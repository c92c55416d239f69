//! A session: one scenario, its machine as far as it has come, and the requests that it answers.

mod story; // the page that is followed

use std::path::Path;

use pageout_engine::{CGROUP_FILES, MACHINE_FILES, Nanos, PROFILES, PageName, Pfn, Series, Stat};
use pageout_sim::scenario::Scenario;
use pageout_sim::{Ended, Machine};
use pageout_study::explain::Names;
use pageout_study::result::run_result::RunResult;
use pageout_study::scenario::load::{Changes, load};
use pageout_study::scenario::own_variants;
use pageout_study::scenario::source::{Setting, Source};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::frame::{frame, page_of};
use crate::status::status;
use story::Followed;

/// Steps that a search for the next batch of reclaim makes at most, before the page gets to draw again.
const STEPS_MAX: u32 = 20_000;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// The policies and kernel versions that there are.
    About,
    /// Loads a scenario, and builds its machine at time 0.
    Open {
        /// Its file's name, for messages.
        name: String,
        /// Its text.
        text: String,
        /// Settings `KEY=VALUE`, as of `--set`.
        #[serde(default)]
        set: Vec<String>,
        /// One of its variants.
        #[serde(default)]
        variant: Option<String>,
        /// The seed; the scenario's if there is none.
        #[serde(default)]
        seed: Option<u64>,
    },
    /// Runs all steps that are due before `to`, in nanoseconds of virtual time.
    Run {
        /// The time.
        to: u64,
    },
    /// Runs to the end of the next batch of reclaim, or for a bounded number of steps. The answer says which.
    Batch,
    /// All figures.
    Status,
    /// Fills the frame: lists, and with `objects` the pages of each object.
    Frame {
        /// With objects.
        #[serde(default)]
        objects: bool,
    },
    /// The state of a page: by its frame, by its object's position and its number there, or by its name.
    Page(Which),
    /// Tells, from now on, what happens to a page, named as in the option --page of `explain`.
    Follow {
        /// The page.
        page: String,
    },
    /// The story of the followed page so far, in lines of at most `width` characters.
    Story {
        /// The width.
        width: usize,
    },
    /// Reads kernel files. This may flush statistics, as every reader does: the page does it on a copy.
    Read {
        /// Their paths.
        paths: Vec<String>,
    },
    /// The files of a group, and those of the machine that can be written.
    Files {
        /// The group's path.
        group: String,
    },
    /// Writes a kernel file now.
    Write {
        /// Its path.
        path: String,
        /// The value, as in an `[[event]]`.
        value: String,
    },
    /// The result so far, as `run --json` prints it.
    Result,
}

/// A page that is asked about.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Which {
    /// By the first frame of its folio.
    Frame(u32),
    /// By an object's position among the objects of a frame, and a page of it.
    Object(usize, u64),
    /// By its name, as in the option --page of `explain`.
    Name(String),
}

/// The scenario and its machine; nothing before one is opened.
#[derive(Default)]
pub struct Session {
    opened: Option<Opened>,
    frame: Vec<u32>,
}

/// A scenario that is open.
struct Opened {
    source: Source,
    changes: Changes,
    variant: Option<String>,
    scenario: Scenario,
    machine: Machine,
    names: Names,
    followed: Option<Followed>,
    /// The text of the error that ended the run.
    failed: Option<String>,
    /// `[[event]]` tables of the knobs that were written.
    knobs: String,
    written: usize,
}

impl Session {
    /// Answers a request in JSON. An error is an answer: `{"error": TEXT}`.
    pub fn answer(&mut self, request: &[u8]) -> String {
        let answer = serde_json::from_slice(request).map_err(|error| format!("request: {error}"));
        match answer.and_then(|ask| self.ask(ask)) {
            Ok(answer) => answer.to_string(),
            Err(error) => json!({ "error": error }).to_string(),
        }
    }

    /// The words of the last frame.
    pub fn frame(&self) -> &[u32] {
        &self.frame
    }

    /// Answers a request. Errors: a text for people.
    pub fn ask(&mut self, ask: Ask) -> Result<Value, String> {
        match ask {
            Ask::About => Ok(about()),
            Ask::Open { name, text, set, variant, seed } => {
                self.frame.clear();
                self.opened = None;
                let opened = self.opened.insert(Opened::new(&name, text, &set, variant, seed)?);
                Ok(opened.summary())
            }
            Ask::Frame { objects } => {
                let Session { opened, frame: words } = self;
                let opened = opened.as_ref().ok_or_else(nothing_open)?;
                let ranges = objects.then(|| opened.names.ranges());
                Ok(frame(opened.machine.engine().figures(), ranges, words))
            }
            other => self.opened.as_mut().ok_or_else(nothing_open)?.ask(other),
        }
    }
}

fn nothing_open() -> String {
    "request: found no open scenario, expected `open` first".to_string()
}

/// The choices that a user has.
fn about() -> Value {
    let profiles = PROFILES.iter().map(|profile| json!({ "name": profile.name, "doc": profile.doc }));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "profiles": profiles.collect::<Vec<_>>(),
        "series": Series::all().map(|series| series.to_string()).collect::<Vec<_>>(),
    })
}

impl Opened {
    fn new(
        name: &str,
        text: String,
        set: &[String],
        variant: Option<String>,
        seed: Option<u64>,
    ) -> Result<Opened, String> {
        let told = |error: pageout_study::Error| error.to_string();
        let source = Source::parse(Path::new(name), text).map_err(told)?;
        let settings = set.iter().map(|text| text.parse::<Setting>()).collect::<Result<Vec<_>, _>>()?;
        let changes = Changes { settings, seed };
        let scenario = scenario(&source, &changes, variant.as_deref())?;
        let machine = scenario.build().map_err(|problem| source.locate(problem).to_string())?;
        let names = Names::of(&scenario, &machine);
        Ok(Opened {
            source,
            changes,
            variant,
            scenario,
            machine,
            names,
            followed: None,
            failed: None,
            knobs: String::new(),
            written: 0,
        })
    }

    fn summary(&self) -> Value {
        let figures = self.machine.engine().figures();
        let tiers = figures.tiers();
        let nodes: std::collections::BTreeSet<_> = figures.zones().map(|zone| zone.node).collect();
        json!({
            "question": self.scenario.question,
            "look_at": self.scenario.look_at,
            "policy": self.scenario.kernel.name(),
            "seed": self.scenario.seed,
            "until_ns": self.scenario.until.map(|until| until.0),
            "groups": figures.memcgs().map(|(_, path)| path).collect::<Vec<_>>(),
            "limits": self.scenario.memcg.iter().filter_map(|memcg| {
                Some(json!({ "path": memcg.path, "max": memcg.files.get("memory.max")?.to_string() }))
            }).collect::<Vec<_>>(),
            "nodes": nodes.iter().map(|&node| json!({ "node": node.0, "fast": tiers.node_is_top_tier(node) })).collect::<Vec<_>>(),
            "objects": self.names.ranges().iter().map(|range| json!({ "name": range.name, "pages": range.pages })).collect::<Vec<_>>(),
            "tasks": self.scenario.task.iter().map(|task| task.name.clone()).collect::<Vec<_>>(),
            "variants": self.scenario.variant.iter().map(|variant| variant.name.clone()).collect::<Vec<_>>(),
            "has_swap": !self.scenario.swap.is_empty(),
            "status": status(&self.machine),
        })
    }

    fn ask(&mut self, ask: Ask) -> Result<Value, String> {
        match ask {
            Ask::Run { to } => self.run(to),
            Ask::Batch => self.batch(),
            Ask::Status => Ok(self.status()),
            Ask::Page(which) => self.page(&which),
            Ask::Follow { page } => {
                let page = self.named(&page)?;
                self.followed = Some(Followed::new(page, &mut self.machine));
                Ok(json!({}))
            }
            Ask::Story { width } => {
                let followed = self.followed.as_ref();
                let followed =
                    followed.ok_or("story: found no followed page, expected `follow` before the run")?;
                Ok(followed.told(&self.scenario, &self.machine, &self.names, width))
            }
            Ask::Read { paths } => {
                let read = |path: &String| match self.machine.read_file(path) {
                    Ok(text) => json!({ "path": path, "text": text }),
                    Err(error) => json!({ "path": path, "error": error.to_string() }),
                };
                Ok(paths.iter().map(read).collect())
            }
            Ask::Files { group } => Ok(files(&group)),
            Ask::Write { path, value } => {
                self.write(&path, &value).map_err(|error| format!("{path}: {error}"))
            }
            Ask::Result => {
                let result = RunResult::of(&self.scenario, &mut self.machine);
                serde_json::to_value(result).map_err(|error| format!("result: {error}"))
            }
            Ask::About | Ask::Open { .. } | Ask::Frame { .. } => unreachable!("the session answers these"),
        }
    }

    fn status(&self) -> Value {
        let mut status = status(&self.machine);
        if let Some(failed) = &self.failed {
            status["failed"] = failed.as_str().into();
        }
        status["written"] = self.knobs.as_str().into();
        status
    }

    /// Runs up to a pause. Returns whether there is more to run.
    fn run_to(&mut self, to: u64) -> bool {
        if self.failed.is_some() {
            return false;
        }
        let until = self.scenario.until.map_or(Nanos(u64::MAX), |until| Nanos(until.0));
        self.machine.pause_at(Nanos(to));
        let mut unheard = ();
        let ended = match &mut self.followed {
            Some(followed) => self.machine.run_until(until, followed),
            None => self.machine.run_until(until, &mut unheard),
        };
        match ended {
            Ok(ended) => ended == Ended::Interrupted,
            Err(error) => {
                self.failed = Some(pageout_study::Error::Run(error).to_string());
                false
            }
        }
    }

    fn run(&mut self, to: u64) -> Result<Value, String> {
        let goes_on = self.run_to(to);
        Ok(json!({ "goes_on": goes_on, "next_ns": self.position(goes_on), "failed": self.failed }))
    }

    fn next(&self) -> Option<u64> {
        self.machine.next_at().map(|at| at.0)
    }

    /// Where the run is: when its next step is due, or right after its end.
    fn position(&self, goes_on: bool) -> Option<u64> {
        if goes_on { self.next() } else { Some(self.machine.report().end.0.saturating_add(1)) }
    }

    fn scanned(&self) -> i64 {
        let figures = self.machine.engine().figures();
        figures.vmstat(Stat::PgscanAnon) + figures.vmstat(Stat::PgscanFile)
    }

    fn batch(&mut self) -> Result<Value, String> {
        let before = self.scanned();
        let mut goes_on = true;
        for _ in 0..STEPS_MAX {
            goes_on = self.run_to(self.next().map_or(1, |next| next.saturating_add(1)));
            if !goes_on || self.scanned() != before {
                break;
            }
        }
        let scanned = self.scanned() - before;
        Ok(
            json!({ "goes_on": goes_on, "next_ns": self.position(goes_on), "scanned": scanned, "failed": self.failed }),
        )
    }

    fn named(&self, name: &str) -> Result<PageName, String> {
        self.names.parse(name).map_err(|error| error.to_string())
    }

    fn page(&self, which: &Which) -> Result<Value, String> {
        let figures = self.machine.engine().figures();
        let page: PageName = match *which {
            Which::Name(ref name) => self.named(name)?,
            Which::Frame(pfn) => figures.folio(Pfn(pfn)).page,
            Which::Object(object, page) => {
                let range = self.names.ranges().get(object).filter(|range| page < range.pages);
                page_of(range.ok_or("page: found no such page of an object")?, page)
            }
        };
        let place = story::place(figures, page);
        Ok(json!({ "page": self.names.notation(page), "place": place }))
    }

    /// Writes a kernel file as an event of the scenario that is due now. Errors: those of such an event.
    fn write(&mut self, path: &str, value: &str) -> Result<Value, String> {
        if let Some(failed) = &self.failed {
            return Err(format!("write: the run has failed: {failed}"));
        }
        let at = self.next().map_or(0, |next| next.saturating_sub(1));
        let quoted = |text: &str| Value::from(text).to_string();
        // Digits are a number, as a kernel's files have them; anything else is a text.
        let scalar = if value.parse::<i64>().is_ok() { value.to_string() } else { quoted(value) };
        let event = format!("\n[[event]]\nat = \"{at}ns\"\nwrite = {}\nvalue = {scalar}\n", quoted(path));
        let text = format!("{}\n{event}", self.source.text());
        let extended = Source::parse(Path::new("scenario with this write"), text);
        let extended = extended.map_err(|error| error.to_string())?;
        let with = scenario(&extended, &self.changes, self.variant.as_deref())?;
        let problem = |problem| extended.locate(problem).to_string();
        with.insert_event(with.event.len() - 1, &mut self.machine).map_err(problem)?;
        self.knobs += &event;
        self.written += 1;
        Ok(json!({ "at_ns": at, "toml": self.knobs }))
    }
}

/// The scenario of a text with all changes.
fn scenario(source: &Source, changes: &Changes, variant: Option<&str>) -> Result<Scenario, String> {
    let told = |error: pageout_study::Error| error.to_string();
    let scenario = load(source, changes, &[], &()).map_err(told)?;
    match variant {
        None => Ok(scenario),
        Some(name) => own_variants::one(source, changes, &scenario, name, &[], &()).map_err(told),
    }
}

/// Kernel files by path: of a group, and of the machine.
fn files(group: &str) -> Value {
    let directory = if group == "/" { "" } else { group };
    let of_group = CGROUP_FILES
        .iter()
        .filter(|file| (group != "/" || file.is_in_root) && file.only_in != Some(1))
        .map(|file| {
            json!({
                "path": format!("/sys/fs/cgroup{directory}/{}", file.name),
                "read": file.is_readable(), "write": file.is_writable(), "doc": file.doc,
            })
        });
    let of_machine = MACHINE_FILES.iter().map(|file| {
        json!({ "path": file.path, "read": file.is_readable(), "write": file.is_writable(), "doc": file.doc() })
    });
    json!({ "group": of_group.collect::<Vec<_>>(), "machine": of_machine.collect::<Vec<_>>() })
}
