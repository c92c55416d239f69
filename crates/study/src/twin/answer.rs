//! The twin of a recording next to the machine, and answers to questions about other machines.
//!
//! ```text
//!   recording ─▶ twin ─▶ rows that the twin misses ─┬─ none far ─▶ questions, curve ─▶ Answer
//!                                                   └─ one far ──▶ no question is answered
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::against::{self, Against, Kind};
use super::counters::Counted;
use super::limits::limits;
use super::machine::TwinMachine;
use super::play::{Figure, Figures, Interval, Played, Prepared, play};
use super::question::{Carried, Question, answerable};
use super::recording::Recording;
use crate::basis::Verdict;
use crate::check::holds;
use crate::error::{Error, Failed};
use crate::figures;
use crate::result::variants::Extent;
use crate::watch::Watcher;

/// Memory of the curve, in percent of the recorded limit.
const CURVE: [u64; 7] = [40, 55, 70, 85, 100, 130, 170];

/// A twin that is off by more than this share, with all that is not known, answers nothing.
const UNLIKE: f64 = 0.1;

/// The row of time.
const TIME: Figure = Figures::NAMED[Figures::TIME];

/// The recording, and the questions to its twin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The folder of a recording, and those of its repeats. At least one.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub recordings: Vec<PathBuf>,
    /// Questions, such as `memory=-25%` or `policy=mglru@6.12+memory=48MiB`. Default: none.
    #[serde(rename = "ask", deserialize_with = "crate::json::one_or_more")]
    pub questions: Vec<String>,
    /// Folders of other recordings of the same load, each at another limit: what the twin predicts for it is compared. Default: none.
    #[serde(deserialize_with = "crate::json::one_or_more")]
    pub against: Vec<PathBuf>,
    /// Accept recordings that miss events. Default: no.
    pub allow_loss: bool,
    /// Simulate the twin at other memory limits too. Default: no.
    pub curve: bool,
    /// Runs at the same time; 0, the default, is one per CPU.
    pub jobs: usize,
}

/// The recorded and the simulated figures, and the answers.
#[derive(Debug)]
pub struct Answer {
    /// The question.
    pub ask: Ask,
    /// The recording.
    pub recording: Recording,
    /// The figures of its repeats.
    pub repeats: Vec<[Verdict<u64>; 6]>,
    /// Its own figures.
    pub recorded: [Verdict<u64>; 6],
    /// The verdict from its counters, without a simulation.
    pub counted: Verdict<Counted>,
    /// The twin of the recording. A recording without accesses has none.
    pub twin: Option<Played>,
    /// Rows of the recording that its twin misses.
    pub off: Vec<Off>,
    /// Other recordings, each with the prediction for it.
    pub against: Vec<Against>,
    /// The errors of predictions. Empty if fewer than three were compared.
    pub errors: Vec<against::Error>,
    /// Each question with its answer, or why there is none.
    pub asked: Vec<(Question, Result<Played, String>)>,
    /// Limits of the group in bytes, ascending, and the twin at each. Empty unless [`Ask::curve`] is set.
    pub curve: Vec<(u64, Played)>,
    /// The number of runs; `None` if there is no twin.
    pub extent: Option<Extent>,
}

/// A figure that the twin misses: the recorded range and the simulated one don't overlap.
#[derive(Clone, Debug)]
pub struct Off {
    /// The figure.
    pub figure: Figure,
    /// The minimum and the maximum over the recordings.
    pub recorded: (u64, u64),
    /// The simulated range.
    pub twin: Interval,
    /// The distance between the ranges, as a share of what was recorded.
    pub share: f64,
}

/// Simulates the twin and its variants. Errors: a recording can't be read or misses events; a question makes no sense. Runs that fail
/// are part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let (recording, repeats) = read(ask)?;
    let questions: Vec<Question> =
        ask.questions.iter().map(|text| Question::parse(text, &recording)).collect::<Result<_, _>>()?;
    let carried: Vec<Carried> = questions.iter().map(|question| answerable(&recording, question)).collect();
    let mut answer = Answer {
        ask: ask.clone(),
        recorded: Figures::recorded(&recording),
        repeats: repeats.iter().map(Figures::recorded).collect(),
        counted: Counted::of(&recording),
        recording,
        twin: None,
        off: Vec::new(),
        against: Vec::new(),
        errors: Vec::new(),
        asked: Vec::new(),
        curve: Vec::new(),
        extent: None,
    };
    let prepared = answer.play_twin(watcher)?;
    // A twin that does not reproduce its recording gets no question: its figures would be read as an answer.
    let refusal = answer.refusal();
    let curve = if ask.curve { curve(&answer.recording) } else { Vec::new() };
    let checks = read_against(ask, &answer.recording)?;
    let mut played = Vec::new().into_iter();
    if let (Some(prepared), None) = (&prepared, &refusal) {
        let checked = checks.iter().filter_map(|check| {
            let (question, carried) = check.question.as_ref().ok()?;
            Some((question.machine.clone(), carried.missing_percent()?))
        });
        let asked = questions
            .iter()
            .zip(&carried)
            .filter_map(|(question, carried)| Some((question.machine.clone(), carried.missing_percent()?)));
        let machines: Vec<(TwinMachine, u32)> = checked.chain(asked).chain(curve.iter().cloned()).collect();
        if !machines.is_empty() {
            let (of, extent) = play(&answer.recording, prepared, &machines, ask.jobs, watcher)?;
            played = of.into_iter();
            answer.extent = answer.extent.map(|first| first.and(&extent));
        }
    }
    let has_twin = answer.twin.is_some();
    let mut next = |carried: Carried| match (carried, &refusal) {
        (Carried::Not(why), _) => Err(why),
        (_, Some(why)) => Err(why.clone()),
        _ => played.next().ok_or_else(|| match has_twin {
            true => "it did not run".to_string(),
            false => "the recording has no twin".to_string(),
        }),
    };
    for Check { recording, question } in checks {
        let (kind, predicted) = match question {
            Ok((question, carried)) => (Kind::of(&question, &answer.recording), next(carried)),
            Err(why) => (Kind::Other, Err(why)),
        };
        let recorded = Figures::recorded(&recording);
        answer.against.push(Against { recording, recorded, kind, predicted });
    }
    answer.asked =
        questions.into_iter().zip(carried).map(|(question, carried)| (question, next(carried))).collect();
    answer.curve = curve.into_iter().map(|(machine, _)| machine.limit).zip(played).collect();
    answer.apply_errors();
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// A recording that checks a prediction, with the question that it answers.
struct Check {
    recording: Recording,
    question: Result<(Question, Carried), String>,
}

/// Recordings that check predictions. Errors: one can't be read, or is of another load.
fn read_against(ask: &Ask, about: &Recording) -> Result<Vec<Check>, Error> {
    let check = |folder: &PathBuf| {
        let recording = Recording::read(folder, ask.allow_loss)?;
        if let Some(why) = against::unlike(about, &recording) {
            return Err(Error::Asked(format!("--against {}: {why}", folder.display())));
        }
        // If the twin can't have this limit, the row of this recording has the reason.
        let question = Question::parse(&against::question(&recording, about), about)
            .map(|question| {
                let carried = answerable(about, &question);
                (question, carried)
            })
            .map_err(|error| {
                let told = error.to_string();
                told.split_once(": ").map_or(told.clone(), |(_, why)| why.to_string())
            });
        Ok(Check { recording, question })
    };
    ask.against.iter().map(check).collect()
}

/// The recording and its repeats.
fn read(ask: &Ask) -> Result<(Recording, Vec<Recording>), Error> {
    let mut recordings = ask
        .recordings
        .iter()
        .map(|folder| Recording::read(folder, ask.allow_loss))
        .collect::<Result<Vec<_>, _>>()?;
    if recordings.is_empty() {
        return Err(Error::asked("recordings: found none, expected one or more"));
    }
    let repeats = recordings.split_off(1);
    Ok((recordings.remove(0), repeats))
}

/// The twin as a scenario that finds the recording in `folder`. Errors: a recording can't be read; it has no accesses.
pub fn scenario(ask: &Ask, folder: &Path) -> Result<String, Error> {
    let (recording, _) = read(ask)?;
    if recording.header.is_none() {
        return Err(Error::asked("a recording of counters only has no accesses to make a scenario of"));
    }
    Ok(TwinMachine::of(&recording).scenario(&recording, folder))
}

/// Machines with other limits that the recording can carry.
fn curve(recording: &Recording) -> Vec<(TwinMachine, u32)> {
    let held = TwinMachine::of(recording).held;
    let machine = |percent: &u64| {
        let question = Question::parse(&format!("memory={percent}%"), recording).ok()?;
        let missing = answerable(recording, &question).missing_percent()?;
        Some((question.machine, missing))
    };
    CURVE.iter().filter_map(machine).filter(|(machine, _)| machine.limit > held).collect()
}

impl Answer {
    /// Runs the twin of the recording, if it can have one. Returns its traces in memory.
    fn play_twin(&mut self, watcher: &dyn Watcher) -> Result<Option<Prepared>, Error> {
        let recording = &self.recording;
        if recording.header.is_none() || recording.is_unsteady() {
            return Ok(None);
        }
        let prepared = Prepared::of(recording)?;
        let machine = TwinMachine::of(recording);
        let (played, extent) = play(recording, &prepared, &[(machine, 0)], self.ask.jobs, watcher)?;
        self.twin = played.into_iter().next();
        self.extent = Some(extent);
        self.off = self.missed();
        Ok(Some(prepared))
    }

    /// States the errors of predictions, and widens answers about changes of a kind that was checked.
    fn apply_errors(&mut self) {
        self.errors = against::errors(&self.pairs(), self.compared());
        let (recording, errors) = (&self.recording, &self.errors);
        for (question, played) in &mut self.asked {
            if let Ok(played) = played {
                played.checked = against::checked(&played.figures, Kind::of(question, recording), errors);
            }
        }
        let here = TwinMachine::of(recording).limit;
        for (limit, played) in &mut self.curve {
            let kind = match (*limit).cmp(&here) {
                std::cmp::Ordering::Less => Kind::LessMemory,
                std::cmp::Ordering::Equal => Kind::AsRecorded,
                std::cmp::Ordering::Greater => Kind::MoreMemory,
            };
            played.checked = against::checked(&played.figures, kind, errors);
        }
    }

    /// Recordings that were compared: this one, and those with a prediction.
    pub fn compared(&self) -> usize {
        let own = usize::from(self.played().is_some());
        own + self.against.iter().filter(|against| against.played().is_some()).count()
    }

    /// How many recordings are missing for an error to be stated.
    pub fn missing(&self) -> usize {
        against::missing(self.compared())
    }

    /// Predicted and recorded figures.
    fn pairs(&self) -> Vec<against::Pair> {
        let has_time = self.time_refusal().is_none();
        let mut pairs = Vec::new();
        for (at, figure) in
            Figures::NAMED.iter().enumerate().filter(|(at, _)| has_time || *at != Figures::TIME)
        {
            if let (Some(twin), Ok(recorded)) = (self.played(), &self.recorded[at]) {
                pairs.push((Kind::AsRecorded, at, (figure.of)(&twin.figures), *recorded));
            }
            pairs.extend(self.against.iter().filter_map(|against| {
                let (predicted, recorded) = against.pair(at)?;
                Some((against.kind, at, predicted.value, recorded))
            }));
        }
        pairs
    }

    /// The failures of all runs but those of the curve, saying whose they are.
    pub fn failures(&self) -> Vec<Failed> {
        let asked = self
            .asked
            .iter()
            .filter_map(|(question, played)| Some((question.text.as_str(), played.as_ref().ok()?)));
        let against = self.against.iter();
        let against: Vec<(String, &Played)> = against
            .filter_map(|of| Some((of.recording.folder.display().to_string(), of.predicted.as_ref().ok()?)))
            .collect();
        let checks = against.iter().map(|(name, played)| (name.as_str(), *played));
        let all = self.twin.iter().map(|played| ("the twin", played)).chain(checks).chain(asked);
        all.filter_map(|(name, played)| {
            let message = format!("{name}: {}", played.failed.as_ref()?);
            Some(Failed { is_input: false, message })
        })
        .collect()
    }

    /// The minimum and the maximum over the recordings, of a figure by its place. `None` if fewer than two recordings have it.
    pub fn span(&self, at: usize) -> Option<(u64, u64)> {
        let all = std::iter::once(&self.recorded).chain(&self.repeats);
        let all: Vec<u64> = all.filter_map(|figures| figures[at].as_ref().ok().copied()).collect();
        all.iter().min().copied().zip(all.iter().max().copied()).filter(|_| all.len() > 1)
    }

    /// The twin, if it ran to its end.
    pub fn played(&self) -> Option<&Played> {
        self.twin.as_ref().filter(|twin| twin.failed.is_none())
    }

    /// Rows of the recording that the twin misses.
    fn missed(&self) -> Vec<Off> {
        let Some(twin) = self.played() else { return Vec::new() };
        let off = Figures::NAMED.iter().enumerate().filter_map(|(at, figure)| {
            let one = *self.recorded[at].as_ref().ok()?;
            let recorded = self.span(at).unwrap_or((one, one));
            let twin = twin.interval(figure.of);
            Some(Off { figure: *figure, recorded, twin, share: twin.off(recorded)? })
        });
        off.collect()
    }

    /// Why the twin answers no question: a row other than time is off too far.
    fn refusal(&self) -> Option<String> {
        let far = self.off.iter().filter(|off| off.is_far() && off.figure.key != TIME.key);
        let far: Vec<String> = far.map(Off::told).collect();
        (!far.is_empty())
            .then(|| format!("the twin does not reproduce its recording at this memory: {}", far.join("; ")))
    }

    /// Returns the reason why times of answers are not shown.
    pub fn time_refusal(&self) -> Option<String> {
        self.off.iter().find(|off| off.is_far() && off.figure.key == TIME.key).map(Off::told)
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let asked = self.asked.iter().map(|(question, _)| &question.text);
        let (told, questions) = (asked.clone().count(), self.ask.questions.len());
        holds!(asked.eq(&self.ask.questions), "found {told} questions, expected these {questions}");
        let (repeats, folders) = (self.repeats.len(), self.ask.recordings.len());
        holds!(repeats + 1 == folders, "found {folders} recordings, but {repeats} repeats");
        let [listed, missed] =
            [&self.off, &self.missed()].map(|off| off.iter().map(|off| off.figure.key).collect::<Vec<_>>());
        holds!(listed == missed, "the twin misses {missed:?}, but the answer lists {listed:?}");
        let (checks, others) = (self.against.len(), self.ask.against.len());
        holds!(checks == others, "found {others} recordings to compare, but {checks} comparisons");
        let is_wide = |played: &Played| {
            let covers = |figure: &Figure| {
                let Interval { value, least, most } = played.interval(figure.of);
                least <= value && value <= most
            };
            played.failed.is_some() || Figures::NAMED.iter().all(covers)
        };
        let predicted = || self.against.iter().filter_map(|against| against.predicted.as_ref().ok());
        let answered =
            || self.asked.iter().filter_map(|(question, played)| Some((question, played.as_ref().ok()?)));
        holds!(answered().all(|(_, played)| is_wide(played)), "an answer is outside of its interval");
        let is_answered =
            answered().next().is_some() || predicted().next().is_some() || !self.curve.is_empty();
        holds!(!is_answered || self.twin.is_some(), "the answer has questions but no twin");
        holds!(
            !is_answered || self.refusal().is_none(),
            "a twin that does not reproduce its recording answers questions"
        );
        if let Ok(counted) = &self.counted {
            let Counted { insertions, again, .. } = counted;
            holds!(again <= insertions, "found {again} repeated insertions, expected at most {insertions}");
        }
        let limits = || self.curve.iter().map(|(limit, _)| limit);
        holds!(limits().is_sorted_by(|one, next| one < next), "limits of the curve are not ascending");
        let curve = self.curve.iter().map(|(_, played)| ("curve", played));
        let twin = self.twin.iter().map(|played| ("twin", played));
        let asked = answered().map(|(question, played)| (question.text.as_str(), played));
        for (name, played) in twin.chain(asked).chain(curve) {
            let is_of_runs = played.failed.is_some() || played.runs.contains(&played.figures);
            holds!(is_of_runs, "{name}: the figures belong to none of its runs");
        }
        Ok(())
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let figures = |played: &Played| {
            let mut json = json!({ "error": played.failed });
            for figure in Figures::NAMED {
                json[figure.key] = of_interval(played.interval(figure.of));
                if let Some(in_swap) = &played.in_swap {
                    json[figure.key]["none_in_swap"] = (figure.of)(&played.figures).into();
                    json[figure.key]["all_in_swap"] = (figure.of)(in_swap).into();
                }
            }
            json
        };
        let unknown = Figures::NAMED.iter().zip(&self.recorded);
        let unknown = unknown
            .filter_map(|(figure, of)| Some((figure.key.to_string(), json!(of.as_ref().err()?.lacking()))));
        let has_time = self.time_refusal();
        let asked = self.asked.iter().map(|(question, answer)| match answer {
            Ok(played) => {
                let mut answer = figures(played);
                if let Some(why) = &has_time {
                    answer[TIME.key] = json!({ "not_answered": why });
                }
                json!({ "ask": question.text, "answer": answer, "marked": !self.off.is_empty() })
            }
            Err(why) => json!({ "ask": question.text, "not_answered": why }),
        });
        let off = self.off.iter().map(|off| {
            json!({
                "row": off.figure.name,
                "recorded": { "least": off.recorded.0, "most": off.recorded.1 },
                "twin": of_interval(off.twin),
                "off_percent": off.share.is_finite().then_some(off.share * 100.0),
            })
        });
        let counted = self.counted.as_ref().ok();
        let against = self.against.iter().map(|against| {
            json!({
                "recording": against.recording.folder.to_string_lossy(),
                "limit_bytes": against.recording.limit(),
                "kind": against.kind.name(),
                "recorded": of_recording(&against.recorded),
                "predicted": against.predicted.as_ref().ok().map(figures),
                "not_answered": against.predicted.as_ref().err(),
            })
        });
        let errors = self.errors.iter().map(|error| {
            json!({
                "row": error.figure.name,
                "kind": error.kind.name(),
                "comparisons": error.count,
                "median_percent": error.median * 100.0,
                "worst_percent": error.worst * 100.0,
            })
        });
        json!({
            "recording": self.recording.folder.to_string_lossy(),
            "recorded": of_recording(&self.recorded),
            "unknown": Value::Object(unknown.collect()),
            "repeats": self.repeats.iter().map(of_recording).collect::<Vec<_>>(),
            "twin": self.twin.as_ref().map(figures),
            "off": off.collect::<Vec<_>>(),
            "distinct_pages": counted.filter(|counted| counted.is_floor()).map(|counted| counted.distinct()),
            "distinct_pages_at_most": counted.map(|counted| counted.distinct()),
            "against": against.collect::<Vec<_>>(),
            "errors": errors.collect::<Vec<_>>(),
            "asked": asked.collect::<Vec<_>>(),
            "limits": limits(&self.recording),
        })
    }
}

fn of_interval(Interval { value, least, most }: Interval) -> Value {
    json!({ "value": value, "least": least, "most": most })
}

fn of_recording(of: &[Verdict<u64>; 6]) -> Value {
    let figures = Figures::NAMED.iter().zip(of);
    Value::Object(figures.map(|(figure, of)| (figure.key.to_string(), json!(of.as_ref().ok()))).collect())
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl Off {
    /// Returns true if it is too far for any answer.
    fn is_far(&self) -> bool {
        let (least, most) = self.recorded;
        let far = least.saturating_sub(self.twin.most).max(self.twin.least.saturating_sub(most));
        self.share > UNLIKE && far > self.figure.few
    }

    /// `refaults: the twin has 153,919, recorded 67,694, off by 122 %`.
    fn told(&self) -> String {
        let is_time = self.figure.key == TIME.key;
        let (least, most) = self.recorded;
        let recorded = match least == most {
            true => value(least, is_time),
            false => format!("{} to {}", value(least, is_time), value(most, is_time)),
        };
        format!(
            "{}: twin {}, recorded {recorded}, off by {} (limit {})",
            self.figure.name,
            self.twin.shown(is_time),
            figures::percent(self.share),
            figures::percent(UNLIKE),
        )
    }
}

/// A value as people read it.
pub fn value(value: u64, is_time: bool) -> String {
    if is_time { figures::time(value) } else { figures::count(value) }
}

impl Interval {
    /// The value as people read it, with its range if it has one.
    pub fn shown(self, is_time: bool) -> String {
        let show = |of: u64| value(of, is_time);
        match self.least == self.most {
            true => show(self.value),
            false => format!("{} ({} to {})", show(self.value), show(self.least), show(self.most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording of reads, and one that stands for its repeat.
    fn asked(questions: &[&str]) -> Ask {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/tests/fixtures/twin/reads");
        Ask {
            recordings: vec![folder.clone(), folder],
            questions: questions.iter().map(ToString::to_string).collect(),
            ..Ask::default()
        }
    }

    fn copy(of: &Answer) -> Answer {
        Answer {
            ask: of.ask.clone(),
            recording: read(&of.ask).unwrap().0,
            repeats: of.repeats.clone(),
            recorded: of.recorded.clone(),
            counted: of.counted.clone(),
            twin: of.twin.clone(),
            off: of.off.clone(),
            against: Vec::new(),
            errors: of.errors.clone(),
            asked: of.asked.clone(),
            curve: of.curve.clone(),
            extent: of.extent.clone(),
        }
    }

    #[test]
    fn twin_answer_with_a_wrong_sum_is_refused() {
        let whole = ask(&asked(&["memory=-10%", "zswap=on"]), &()).unwrap();
        assert!(whole.asked[0].1.is_ok() && whole.asked[1].1.is_err());
        assert_eq!(serde_json::to_value(&whole).unwrap(), whole.json());
        type Mutant = fn(&mut Answer);
        let mutants: [(Mutant, &str); 10] = [
            (
                |answer| answer.ask.against.push(PathBuf::new()),
                "found 1 recordings to compare, but 0 comparisons",
            ),
            (
                |answer| {
                    let played = answer.asked[0].1.as_mut().unwrap();
                    played.figures.insertions = 1;
                },
                "an answer is outside of its interval",
            ),
            (|answer| drop(answer.asked.pop()), "found 1 questions, expected these 2"),
            (|answer| answer.repeats.clear(), "found 2 recordings, but 0 repeats"),
            (|answer| answer.off.truncate(1), "but the answer lists [\"insertions\"]"),
            (
                |answer| {
                    answer.twin = None;
                    answer.off.clear();
                },
                "but no twin",
            ),
            (
                |answer| {
                    answer.recorded[2] = Ok(1);
                    answer.repeats = vec![answer.recorded.clone()];
                    answer.off = answer.missed();
                },
                "a twin that does not reproduce its recording",
            ),
            (|answer| answer.counted.as_mut().unwrap().again = u64::MAX, "repeated insertions"),
            (
                |answer| {
                    let twin = answer.twin.clone().unwrap();
                    answer.curve = vec![(1, twin.clone()), (1, twin)];
                },
                "not ascending",
            ),
            (
                |answer| {
                    // Within its interval, and of no run.
                    let played = answer.asked[0].1.as_mut().unwrap();
                    let wide = Figures { runtime_ns: u64::MAX, ..played.figures };
                    played.checked = Some((Figures::default(), wide));
                    played.figures.runtime_ns += 1;
                },
                "memory=-10%: the figures belong to none of its runs",
            ),
        ];
        for (mutate, told) in mutants {
            let mut mutant = copy(&whole);
            assert_eq!(mutant.check(), Ok(()));
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}, expected {told}");
        }
    }

    #[test]
    fn twin_ask_without_a_recording_is_refused() {
        let error = ask(&Ask::default(), &()).unwrap_err();
        assert_eq!(error.to_string(), "recordings: found none, expected one or more");
    }
}
