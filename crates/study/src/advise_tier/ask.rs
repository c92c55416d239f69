//! The whole study: what is asked, as texts, and the advice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pageout_sim::memory::MemorySpec;
use pageout_sim::scenario::{Scenario, Size};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::scale::{Half, TIMES_AS_LONG};
use super::sources::SOURCES;
use super::{Advice, Asked, Question, Turned, all_fast, no_base, questions, tried};
use crate::check::holds;
use crate::error::Error;
use crate::figures;
use crate::result::variants::{Made, Plan, Runs};
use crate::scenario::load::{Changes, load};
use crate::scenario::source::{Setting, Source};
use crate::watch::{Watcher, name_of};

/// The workload, and the memory that may be slower.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The scenario file, `-`, standard input, or a trace, which one task reads through an open file.
    pub scenario: PathBuf,
    /// The changes of the scenario.
    pub changes: Changes,
    /// Total memory, fast and slow, such as `64GiB`. Default: the scenario's.
    pub memory: Option<String>,
    /// Classes of slow memory. Default: `cxl-1.1` and `cxl-2.0-switch`.
    #[serde(rename = "device", deserialize_with = "crate::json::words")]
    pub devices: Vec<String>,
    /// Fast to slow memory, such as `1:2`. Default: `2:1`, `1:1`, `1:2` and `1:4`.
    #[serde(rename = "ratio", deserialize_with = "crate::json::words")]
    pub ratios: Vec<String>,
    /// Acceptable slowdown compared with fast memory only, in percent. Default: 5.
    pub loss: f64,
    /// Prices per GiB, such as `fast=9,cxl-1.1=4`. Default: money is not asked about.
    pub price: Option<String>,
    /// The excluded beginning of each run: a time, a share of the accesses, or `none`. Default: `20%`.
    pub warm_up: String,
    /// True if all is asked again at half of the scale. Default: no.
    pub check_scale: bool,
    /// True if the sources are the question: no knob is changed, and the answer compares all sources. Default: no.
    pub every_source: bool,
    /// Runs of each cell, with seeds counted up from the scenario's. 1, the default, or more.
    pub repeat: u32,
    /// Runs at the same time; 0, the default, is one per CPU.
    pub jobs: usize,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            scenario: PathBuf::new(),
            changes: Changes::default(),
            memory: None,
            devices: ["cxl-1.1", "cxl-2.0-switch"].map(str::to_string).to_vec(),
            ratios: ["2:1", "1:1", "1:2", "1:4"].map(str::to_string).to_vec(),
            loss: 5.0,
            price: None,
            warm_up: "20%".to_string(),
            check_scale: false,
            every_source: false,
            repeat: 1,
            jobs: 0,
        }
    }
}

/// The advice, and what it is about.
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The scenario's file.
    pub source: Source,
    /// The advice.
    pub advice: Advice,
}

/// Sweeps ratio, device and source, and turns knobs at the best. Errors: what is asked or the scenario makes no sense; with all memory fast
/// the workload fails, so that there is nothing to compare with; as of [`Plan::run`]. Other runs that fail are part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let asked = ask.read()?;
    let source = ask.source()?;
    let scenario = load(&source, &ask.changes, &[], watcher)?;
    let ready = Ready::new(asked, &source, &ask.changes.settings, scenario)?;
    let plan = Plan { name: name_of(&ask.scenario), repeat: ask.repeat, jobs: ask.jobs, watcher };
    let began = Instant::now();
    watcher.heed_stop();
    let begun = ready.begin(&plan)?;
    begun.announce(ask, began.elapsed(), watcher);
    let advice = begun.finish(&plan)?;
    let answer = Answer { ask: ask.clone(), source, advice };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Ask {
    /// What is asked, read. Errors: a text makes no sense.
    fn read(&self) -> Result<Asked, Error> {
        for (option, list) in [("--ratio", &self.ratios), ("--device", &self.devices)] {
            if list.is_empty() {
                return Err(Error::asked(format!(
                    "{option}: the list is empty, expected one element or more"
                )));
            }
            if let Some((_, twice)) = list.iter().enumerate().find(|(at, one)| list[..*at].contains(one)) {
                return Err(Error::asked(format!("{option}: found `{twice}` twice, expected it once")));
            }
        }
        let of = |option: &str, why: String| Error::Asked(format!("{option} {why}"));
        let ratio = |text: &String| text.parse().map_err(|why| of("--ratio", why));
        let memory = |text: &String| text.parse().map_err(|why| of("--memory", format!("{text}: {why}")));
        let price = |text: &String| text.parse().map_err(|why| of("--price", why));
        Ok(Asked {
            ratios: self.ratios.iter().map(ratio).collect::<Result<_, _>>()?,
            devices: self.devices.clone(),
            loss: self.loss,
            prices: self.price.as_ref().map(price).transpose()?,
            warm_up: self.warm_up.parse().map_err(|why| of("--warm-up", why))?,
            memory: self.memory.as_ref().map(memory).transpose()?,
            checks_scale: self.check_scale,
            every_source: self.every_source,
        })
    }

    /// The scenario, or one task that replays a trace.
    fn source(&self) -> Result<Source, Error> {
        let path = &self.scenario;
        if path.extension().is_none_or(|extension| extension == "toml") {
            return Source::read(path);
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let wrong = || format!("{}: the name of the trace is not valid UTF-8", path.display());
        let name = name.ok_or_else(|| Error::Asked(wrong()))?;
        let text = format!(
            "[[task]]\nname = \"replay\"\n[[task.object]]\nchannel = \"file\"\ntrace = {}\n",
            Value::from(name)
        );
        Source::parse(path, text)
    }
}

impl Answer {
    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let Advice { asked, scenario, all_fast, cells, warm_up, at, turned, extent, at_half, .. } =
            &self.advice;
        let wanted = asked.devices.len() * asked.ratios.len() * tried(scenario).len();
        let told = cells.len();
        holds!(told == wanted, "found {told} runs of ratios, devices and sources, expected {wanted}");
        let what = |at: usize| (cells[at].ratio, &cells[at].device, cells[at].source);
        let twice = (1..told).find(|&at| (0..at).any(|before| what(before) == what(at)));
        holds!(twice.is_none(), "{} is listed twice", cells[twice.unwrap_or(0)].name());
        let (seeds, left_out) = (all_fast.results.len(), warm_up.len());
        holds!(seeds == left_out, "found {left_out} warm-ups, expected {seeds}, one per seed");
        let mut seeds = all_fast.results.iter().zip(warm_up);
        let longer = seeds.find(|(run, warm_up)| **warm_up > run.accesses);
        holds!(longer.is_none(), "a warm-up is longer than its run");
        let knobs = cells.get(*at).map(|cell| match asked.every_source {
            true => 0,
            false => SOURCES[cell.source].knobs().count(),
        });
        holds!(
            knobs == Some(turned.len()),
            "the best cell has {knobs:?} knobs, but {} were changed",
            turned.len()
        );
        let runs = cells.iter().map(|cell| &cell.runs).chain(turned.iter().map(|turned| &turned.runs));
        let made = std::iter::once(all_fast).chain(runs).map(Runs::count).sum();
        holds!(
            at_half.is_some() || extent.is_of(made),
            "the answer lists {made} runs, but the study made another number"
        );
        Ok(())
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        self.advice.json(&self.ask.scenario.to_string_lossy())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// A study that is about to be made.
struct Ready {
    asked: Asked,
    base: Scenario,
    memory: Size,
    put_aside: BTreeSet<&'static str>,
    questions: Vec<Question>,
    half: Option<Half>,
}

/// A study after its first run, in which all memory is fast.
struct Begun {
    advice: Advice,
    questions: Vec<Question>,
    half: Option<Half>,
}

impl Ready {
    /// Looks whether all that is asked can be, of a scenario that came of `source` with these settings. Errors: it can't.
    fn new(asked: Asked, source: &Source, settings: &[Setting], scenario: Scenario) -> Result<Ready, Error> {
        if let Some(unknown) = asked.devices.iter().find(|name| MemorySpec::preset(name).is_none()) {
            let known = MemorySpec::PRESETS.join(", ");
            return Err(Error::Asked(format!("--device: found `{unknown}`, expected one of {known}")));
        }
        let loss = asked.loss;
        crate::error::ensure!(
            loss.is_finite() && loss >= 0.0,
            "--loss {loss}: expected a percentage of 0 or more"
        );
        if let Some(prices) = &asked.prices {
            prices.check(&asked.devices)?;
        }
        let (base, memory, put_aside) = all_fast(&asked, scenario)?;
        let half =
            asked.checks_scale.then(|| Half::of(&asked, source, settings, &base, memory)).transpose()?;
        let questions = questions(&asked, &base, memory)?;
        Ok(Ready { asked, base, memory, put_aside, questions, half })
    }

    /// Runs the workload with all its memory fast. Errors: nothing can be compared with that, and as of [`Plan::run`].
    fn begin(self, plan: &Plan) -> Result<Begun, Error> {
        let Ready { asked, base, memory, put_aside, questions, half } = self;
        let Made { variants, extent } = plan.run_with_trails(std::slice::from_ref(&base))?;
        let all_fast = variants.into_iter().next().expect("one was asked for");
        if let Some(error) = no_base(&all_fast, &extent) {
            return Err(error);
        }
        let warm_up = asked.warm_up.accesses(&all_fast)?;
        let advice = Advice::begun(asked, base, memory, put_aside, extent, all_fast, warm_up);
        Ok(Begun { advice, questions, half })
    }
}

impl Begun {
    /// Announces the remaining runs: those of ratios, devices and sources, at most how many of knobs, and how many at half the scale
    /// factor. Each of the latter takes [`TIMES_AS_LONG`].
    fn ahead(&self) -> [usize; 3] {
        let repeat = self.advice.extent.repeat as usize;
        let knobs = SOURCES.iter().map(|source| source.knobs().count()).max();
        let knobs = knobs.filter(|_| !self.advice.asked.every_source).unwrap_or(0);
        let half = if self.half.is_some() { self.questions.len() + 1 } else { 0 };
        [self.questions.len(), knobs, half].map(|runs| runs * repeat)
    }

    /// Announces how many runs are still to come and how long they may take, by how long the runs with all memory fast took.
    fn announce(&self, ask: &Ask, took: Duration, watcher: &dyn Watcher) {
        let [runs, knobs, half] = self.ahead();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = if ask.jobs == 0 { cpus } else { ask.jobs };
        // The first runs were as many at a time as there were seeds.
        let each = took.as_secs_f64() * jobs.min(ask.repeat as usize) as f64 / f64::from(ask.repeat);
        let seconds = each * (runs + knobs) as f64 / jobs as f64;
        let check = each * TIMES_AS_LONG * half as f64 / jobs as f64;
        let shown = |seconds: f64| figures::time((seconds.max(1.0) * 1e9) as u64);
        let at_half = match ask.check_scale {
            true => {
                format!("; {half} more at half the scale factor, each twice as long: about {}", shown(check))
            }
            false => String::new(),
        };
        let of_knobs = match knobs {
            0 => String::new(),
            knobs => format!(" and at most {knobs} of knobs"),
        };
        let text = format!(
            "{runs} runs of ratios, devices and sources{of_knobs}: about {}{at_half}",
            shown(seconds)
        );
        watcher.announce(&text, seconds + check);
    }

    /// Sweeps ratio, device and source, turns knobs at the best, and asks the same at half of the scale. Errors: as of [`Plan::run`].
    fn finish(self, plan: &Plan) -> Result<Advice, Error> {
        let Begun { mut advice, questions, half } = self;
        advice.ask(plan, &questions)?;
        advice.at = advice.promoting_beside(advice.chosen());
        if !advice.asked.every_source {
            let Question { scenario: here, source: winner, .. } = &questions[advice.at];
            let knobs = SOURCES[*winner].knobs();
            let turned: Vec<Scenario> = knobs.clone().map(|knob| knob.set_in(here.clone())).collect();
            let made = plan.run_with_trails(&turned)?;
            advice.turned = knobs.zip(made.variants).map(|(knob, runs)| Turned { knob, runs }).collect();
            advice.extent = advice.extent.and(&made.extent);
        }
        if let Some(half) = half {
            let at_half = half.run(plan, &advice)?;
            advice.extent = advice.extent.and(at_half.extent());
            advice.at_half = Some(at_half);
        }
        Ok(advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
        [machine]
        memory = "64MiB"
        [[task]]
        name = "reader"
        object = [{ channel = "file", size = "16MiB", workload = { pattern = "zipf", alpha = 0.9, ops = 2_000 } }]
    "#;

    fn answer() -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("one.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let asked = format!(
            r#"{{ "scenario": {scenario:?}, "device": ["cxl-1.1"], "ratio": ["1:1", "1:2"], "repeat": 2 }}"#
        );
        let asked: Ask = serde_json::from_str(&asked).unwrap();
        assert_eq!(serde_json::from_value::<Ask>(serde_json::to_value(&asked).unwrap()).unwrap(), asked);
        ask(&asked, &()).unwrap()
    }

    #[test]
    fn list_without_or_with_equal_elements_is_refused() {
        let read = |ask: &Ask| ask.read().map(drop).unwrap_err().to_string();
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<String>>();
        for (ratios, devices, told) in [
            (&[][..], &["pmem"][..], "--ratio: the list is empty, expected one element or more"),
            (&["1:1"], &[], "--device: the list is empty, expected one element or more"),
            (&["1:1", "1:2", "1:1"], &["pmem"], "--ratio: found `1:1` twice, expected it once"),
            (&["1:1"], &["pmem", "pmem"], "--device: found `pmem` twice, expected it once"),
        ] {
            let ask = Ask { ratios: texts(ratios), devices: texts(devices), ..Ask::default() };
            assert_eq!(read(&ask), told);
        }
    }

    #[test]
    fn advice_with_a_wrong_sum_is_refused() {
        let whole = answer();
        assert_eq!(whole.check(), Ok(()));
        assert_eq!(serde_json::to_value(&whole).unwrap(), whole.json());
        type Mutant = fn(&mut Advice);
        let mutants: [(Mutant, &str); 7] = [
            (|advice| drop(advice.cells.pop()), "runs of ratios, devices and sources, expected"),
            (|advice| advice.cells[1].source = advice.cells[0].source, "is listed twice"),
            (|advice| advice.warm_up.truncate(1), "found 1 warm-ups, expected 2"),
            (|advice| advice.warm_up[0] = u64::MAX, "a warm-up is longer than its run"),
            (|advice| advice.at = advice.cells.len(), "the best cell has None knobs"),
            (
                |advice| {
                    let knobs = |at: usize| SOURCES[advice.cells[at].source].knobs().count();
                    let other = (0..advice.cells.len()).find(|&at| knobs(at) != advice.turned.len());
                    advice.at = other.unwrap();
                },
                "the best cell has",
            ),
            (|advice| drop(advice.cells[0].runs.results.pop()), "runs, but the study made another number"),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant.advice);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}, expected {told}");
        }
    }

    #[test]
    fn advice_ask_with_a_wrong_text_names_its_option() {
        let wrong = |ask: Ask| ask.read().unwrap_err().to_string();
        assert!(
            wrong(Ask { ratios: vec!["1-2".to_string()], ..Ask::default() }).starts_with("--ratio 1-2: ")
        );
        assert!(
            wrong(Ask { memory: Some("much".to_string()), ..Ask::default() }).starts_with("--memory much: ")
        );
        assert!(wrong(Ask { warm_up: "soon".to_string(), ..Ask::default() }).starts_with("--warm-up "));
        assert!(wrong(Ask { price: Some("x".to_string()), ..Ask::default() }).starts_with("--price "));
    }
}
