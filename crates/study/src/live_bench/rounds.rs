//! The order of reads: the reader processes, and the commands that they get.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Map, Value};

use super::equal::Equal;
use super::load::Load;
use super::reader::{Task, write_lists};
use super::subject::{PAGE, Subject};
use super::wanted::{MEMCPY_MAX, Wanted, check_memory, wanted};
use super::{Answer, Ask, OURS, ReaderFigures, Round, ways};
use crate::watch::{Stage, Watcher};
use crate::{Error, Failed, figures};

/// Between two looks at whether the watcher wants an end.
const LOOK: Duration = Duration::from_millis(50);

/// Measures. Errors: what is asked makes no sense, or can't be measured here; a process that reads has failed. An interruption after
/// the file is made is part of the answer.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let wanted = wanted(ask)?;
    let load = Load::new(ask, watcher)?;
    check_memory(ask, &wanted)?;
    let task = Task {
        way: String::new(),
        path: std::path::PathBuf::new(),
        pages: ask.size.map_or(1, |size| size.pages_floor()),
        budget: ask.budget.0,
        policy: ask.policy.clone(),
        is_random: load.is_random,
        is_buffered: ask.buffered,
        is_cold: ask.cold,
        is_in_place: ask.in_place,
        is_made: false,
        batch: ask.batch.into(),
        threads: ask.threads.into(),
    };
    // Impossible requests are rejected before a file is created.
    ways::memory(&task)?;
    let subject = Subject::new(ask, &load, watcher)?;
    let task = Task { path: subject.path.clone(), pages: subject.pages, is_made: subject.is_made, ..task };
    let lists = load.rounds(ask, subject.pages, u64::from(ask.rounds) + 2, watcher)?;
    if let Some(signal) = watcher.stop() {
        return Ok(Answer::nothing(ask, format!("{signal} before the first round")));
    }
    let (subject, lists) = (&subject, &lists[..]);
    let measuring =
        Measuring { ask, wanted: &wanted, subject, task: &task, lists, watcher, notes: Vec::new() };
    let answer = measuring.measure(&load)?;
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// Nothing was measured, as an interruption came before the first round.
    fn nothing(ask: &Ask, interrupted: String) -> Answer {
        Answer { ask: ask.clone(), interrupted: Some(interrupted), ..Answer::default() }
    }
}

impl ReaderFigures {
    fn new(name: &str) -> ReaderFigures {
        let name = name.to_string();
        ReaderFigures { name, rounds: Vec::new(), latency: None, memory_bytes: None, own: Value::Null }
    }

    /// Adds an answer: `round` 0 warms up, figures of `rounds` count, and the last one is timed. Errors: the text is not an answer.
    fn note(&mut self, round: usize, rounds: usize, mut told: Map<String, Value>) -> Result<(), Error> {
        let answer = told.remove("answer").unwrap_or_default();
        match round {
            0 => {}
            round if round <= rounds => {
                let figures = serde_json::from_value(answer);
                self.rounds.push(figures.map_err(|error| Error::Asked(error.to_string()))?);
            }
            _ => self.latency = Some(answer),
        }
        let taken = told.get("taken_bytes").and_then(Value::as_u64);
        self.memory_bytes = self.memory_bytes.max(taken);
        self.own = told.remove("own").unwrap_or_default();
        Ok(())
    }
}

/// All that is measured, with what.
struct Measuring<'a> {
    ask: &'a Ask,
    wanted: &'a Wanted,
    subject: &'a Subject,
    task: &'a Task,
    lists: &'a [Vec<u32>],
    watcher: &'a dyn Watcher,
    notes: Vec<String>,
}

impl<'a> Measuring<'a> {
    fn measure(mut self, load: &Load) -> Result<Answer, Error> {
        let Measuring { ask, subject, .. } = self;
        // Dropped last: the group can't go before its processes have.
        let group = self.group()?;
        if subject.is_in_memory() {
            self.notes.push(format!(
                "{} is in tmpfs: all of it is in memory, so no reader reads a device, and the kernel's page cache has no limit",
                subject.name
            ));
        }
        let mut readers = match self.start(group.as_ref()) {
            Ok(readers) => readers,
            Err(Ended::Signal(signal)) => return Ok(Answer::nothing(ask, after(signal, 0, ask.rounds))),
            Err(Ended::Why(error)) => return Err(Error::Asked(error)),
        };
        // Their own memory has no page of the file.
        let base = group.as_ref().map(Equal::usage).transpose()?;
        if let Some((group, base)) = group.as_ref().zip(base) {
            group.limit(base + ask.budget.0)?;
        }
        let mut figures: Vec<ReaderFigures> =
            readers.iter().map(|reader| ReaderFigures::new(&reader.way)).collect();
        let steps = (ask.rounds as usize + 2) * readers.len();
        self.watcher.begin(&Stage::Named { what: "measuring", steps: Some(steps as u64) });
        let made = self.rounds(&mut readers, &mut figures);
        self.watcher.end();
        let interrupted = made?;
        if let Some((group, base)) = group.as_ref().zip(base) {
            self.held(group.usage()?.saturating_sub(base), &mut figures);
        }
        drop(readers);
        // A round is dropped unless all readers have made it.
        let done = figures.iter().map(|of| of.rounds.len()).min().unwrap_or(0);
        figures.iter_mut().for_each(|of| of.rounds.truncate(done));
        Ok(Answer {
            ask: ask.clone(),
            load: load.name.clone(),
            file: subject.name.clone(),
            file_bytes: subject.pages * PAGE as u64,
            has_limit: group.is_some(),
            rounds: done,
            reads: figures[0].rounds.first().map_or(0, |round: &Round| round.reads),
            ways: figures,
            notes: self.notes,
            interrupted: interrupted.map(|signal| after(signal, done, ask.rounds)),
        })
    }

    /// A group for readers that use the kernel's page cache, if there are any and it can be made.
    fn group(&mut self) -> Result<Option<Equal>, Error> {
        if !self.ask.buffered && !self.wanted.ways.iter().any(|way| ways::is_of_kernel(way)) {
            return Ok(None);
        }
        Equal::new().map(Some).or_else(|error| {
            let why = format!("cannot create a cgroup with the same memory limit: {error}");
            if self.ask.equal_memory {
                return Err(Error::Asked(format!("--equal-memory: {why}")));
            }
            self.notes.push(format!(
                "{why}. Readers through the kernel's page cache can use all memory of the machine"
            ));
            Ok(None)
        })
    }

    /// Starts one process per reader, pageout first.
    fn start(&mut self, group: Option<&Equal>) -> Result<Vec<Reader<'a>>, Ended> {
        let Measuring { ask, wanted, subject, task, lists, watcher, .. } = *self;
        let mut readers = Vec::new();
        for way in std::iter::once(&OURS.to_string()).chain(&wanted.ways) {
            if way == "memcpy" && !wanted.is_said && subject.pages * PAGE as u64 > MEMCPY_MAX {
                let bytes = figures::bytes(subject.pages * PAGE as u64);
                self.notes.push(format!("memcpy is skipped: it needs {bytes} of memory"));
                continue;
            }
            let of_group = group.filter(|_| ways::is_of_kernel(way));
            let task = Task { way: way.clone(), ..task.clone() };
            match Reader::start(&ask.reader, &task, lists, of_group, watcher) {
                Ok(reader) => readers.push(reader),
                Err(Ended::Signal(signal)) => return Err(Ended::Signal(signal)),
                Err(Ended::Why(error)) => {
                    let error = name_file(&error, subject);
                    if way == OURS || wanted.is_said {
                        return Err(Ended::Why(format!("{way}: {}: {error}", subject.name)));
                    }
                    self.notes.push(format!("{way} is skipped: {error}"));
                }
            }
        }
        Ok(readers)
    }

    /// Has each reader read in each round. Returns the signal that came meanwhile.
    fn rounds(
        &self,
        readers: &mut [Reader<'_>],
        figures: &mut [ReaderFigures],
    ) -> Result<Option<&'static str>, Error> {
        let rounds = self.ask.rounds as usize;
        for round in 0..rounds + 2 {
            for turn in 0..readers.len() {
                // The order of readers rotates.
                let at = (turn + round) % readers.len();
                let command = match round {
                    0 => "warm 0".to_string(),
                    round if round <= rounds => format!("round {round}"),
                    round => format!("time {round}"),
                };
                match readers[at].tell(&command) {
                    Ok(told) => figures[at].note(round, rounds, told)?,
                    Err(Ended::Signal(signal)) => return Ok(Some(signal)),
                    Err(Ended::Why(error)) => {
                        let (way, error) = (&readers[at].way, name_file(&error, self.subject));
                        let message = format!("{way}: {}: {error}", self.subject.name);
                        return Err(Error::Failed(Failed { is_input: false, message }));
                    }
                }
                self.watcher.advance(1);
            }
        }
        Ok(None)
    }

    /// Notes what the group held more in the end than before the first round: pages of the file.
    fn held(&mut self, bytes: u64, figures: &mut [ReaderFigures]) {
        let mut touched: Vec<u32> = self.lists.iter().take(self.task.threads).flatten().copied().collect();
        touched.sort_unstable();
        touched.dedup();
        let touched = (touched.len() * PAGE) as u64;
        if bytes < self.ask.budget.0.min(touched) / 2 && !self.subject.is_in_memory() {
            self.notes.push(format!(
                "the cgroup holds only {}: other cgroups have pages of {} in memory, so readers through the \
                 kernel's page cache have more than the budget",
                figures::bytes(bytes),
                self.subject.name
            ));
        }
        let of_kernel = figures.iter_mut().filter(|of| ways::is_of_kernel(&of.name));
        of_kernel.for_each(|of| of.memory_bytes = Some(bytes));
    }
}

/// Returns the text for a signal after N rounds.
fn after(signal: &str, done: usize, rounds: u32) -> String {
    format!("{signal} after {done} of {}", figures::counted(rounds.into(), "round"))
}

/// Returns an error in the user's terms: the user does not know the number of the file without a name.
fn name_file(error: &str, subject: &Subject) -> String {
    let path = subject.path.display().to_string();
    error.replace(&format!("{path}: "), "").replace(&path, "the file")
}

/// Why a reader has no answer.
enum Ended {
    Signal(&'static str),
    Why(String),
}

/// The process of one that reads. It ends with this.
struct Reader<'a> {
    watcher: &'a dyn Watcher,
    way: String,
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    last_words: Receiver<String>,
}

impl<'a> Reader<'a> {
    fn start(
        program: &[OsString],
        task: &Task,
        lists: &[Vec<u32>],
        group: Option<&Equal>,
        watcher: &'a dyn Watcher,
    ) -> Result<Reader<'a>, Ended> {
        let started = || -> Result<Reader<'a>, String> {
            let (first, words) = program.split_first().ok_or("cannot find this program")?;
            let mut command = Command::new(first);
            command.args(words);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let spawned = command.spawn();
            let mut child = spawned.map_err(|error| format!("cannot start a process: {error}"))?;
            let input = child.stdin.take();
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let (tell, answers) = channel();
            thread::spawn(move || {
                let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
                lines.map_while(Result::ok).map_while(|line| tell.send(line).ok()).for_each(drop);
            });
            let (tell, last_words) = channel();
            thread::spawn(move || {
                let text = stderr.and_then(|stderr| std::io::read_to_string(stderr).ok());
                let _ = tell.send(text.unwrap_or_default());
            });
            Ok(Reader { watcher, way: task.way.clone(), child, input, answers, last_words })
        };
        let mut reader = started().map_err(Ended::Why)?;
        // Before it has anything, so that all that it has is the group's.
        if let Some(group) = group {
            group.enter(reader.child.id()).map_err(|error| Ended::Why(error.to_string()))?;
        }
        let written = reader.input.as_mut().map(|input| {
            let mut input = std::io::BufWriter::new(input);
            writeln!(input, "{}", serde_json::to_string(task).expect("a task is JSON"))?;
            write_lists(lists, &mut input, watcher)
        });
        // A process that ended immediately has printed a reason.
        let _ = written;
        reader.answer().map(|_| reader)
    }

    fn tell(&mut self, command: &str) -> Result<Map<String, Value>, Ended> {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{command}").and_then(|()| input.flush());
        }
        self.answer()
    }

    /// Waits for its next line.
    fn answer(&mut self) -> Result<Map<String, Value>, Ended> {
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Value::Object(mut told)) => match told.remove("error") {
                        Some(Value::String(why)) => return Err(Ended::Why(why)),
                        _ => return Ok(told),
                    },
                    _ => return Err(Ended::Why(format!("unexpected line from its process: `{line}`"))),
                },
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(signal) = self.watcher.stop() {
                        return Err(Ended::Signal(signal));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.end()),
            }
        }
    }

    /// Why it has ended, without an answer.
    fn end(&mut self) -> Ended {
        let status = self.child.wait();
        // A signal from the terminal goes to all of its processes; this one can get it later.
        thread::sleep(2 * LOOK);
        if let Some(signal) = self.watcher.stop() {
            return Ended::Signal(signal);
        }
        let said = self.last_words.recv_timeout(LOOK).unwrap_or_default();
        let said = said.trim().trim_start_matches("error: ");
        Ended::Why(match status {
            Ok(status) => {
                let why = match status.signal() {
                    Some(signal) if signal == Signal::BUS.as_raw() => {
                        ": the file became shorter, or a page cannot be read"
                    }
                    Some(signal) if signal == Signal::KILL.as_raw() => ": perhaps by the OOM killer",
                    _ if said.is_empty() => "",
                    _ => ": ",
                };
                format!("its process has ended ({status}){why}{said}")
            }
            Err(error) => format!("cannot wait for its process: {error}"),
        })
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
