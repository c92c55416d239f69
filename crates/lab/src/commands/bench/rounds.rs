//! Who reads when: the processes, and what they are told.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use pageout_study::scenario::nearest::nearest;
use serde_json::{Map, Value};
use signal_hook::consts::{SIGBUS, SIGKILL};

use super::equal::Equal;
use super::load::Load;
use super::reader::{Round, Task, write_lists};
use super::subject::{PAGE, Subject};
use super::told::{Measured, OfWay};
use super::ways::{self, OURS, WAYS};
use crate::api;
use crate::commands::bench::args::BenchArgs;
use crate::failure::{Failure, Outcome};
use crate::print::{figures, output, progress, signals};
use crate::rivals;

/// Between two looks at whether a signal has come.
const LOOK: Duration = Duration::from_millis(50);
/// The kernel's part of plain memory is left alone in what nobody has asked for.
const MEMCPY_MAX: u64 = 1 << 30;

/// Measures, from the options to the table.
pub(super) fn run(args: &BenchArgs) -> Outcome {
    let wanted = wanted(args)?;
    let load = Load::new(args)?;
    check_memory(args, &wanted)?;
    let task = Task {
        way: String::new(),
        path: std::path::PathBuf::new(),
        pages: args.size.map_or(1, |size| size.pages_floor()),
        budget: args.budget.0,
        policy: args.policy.clone(),
        is_random: load.is_random,
        is_buffered: args.buffered,
        is_cold: args.cold,
        is_in_place: args.in_place,
        is_made: false,
        batch: args.batch.into(),
        threads: args.threads.into(),
    };
    // What can't be is said before a file is made.
    ways::memory(&task)?;
    // There is a group to be removed, whatever comes.
    let _listening = signals::listen_until_done();
    let subject = Subject::new(args, &load)?;
    let task = Task { path: subject.path.clone(), pages: subject.pages, is_made: subject.is_made, ..task };
    let lists = load.rounds(args, subject.pages, u64::from(args.rounds) + 2)?;
    if let Some(signal) = signals::to_end() {
        let told = format!("{} before the first round", signals::name(signal));
        return output::no_result(&args.output, Failure::Interrupted(signal, anyhow!(told)), Value::Null);
    }
    let measured = measure(args, &wanted, &load, &subject, &task, &lists)?;
    let ending = measured.interrupted.map(|signal| {
        let told = format!(
            "{} after {} of {}",
            signals::name(signal),
            measured.rounds,
            figures::counted(args.rounds.into(), "round")
        );
        Failure::Interrupted(signal, anyhow!(told))
    });
    match ending {
        Some(failure) if measured.rounds == 0 => output::no_result(&args.output, failure, Value::Null),
        Some(failure) if args.output.is_data() => output::no_result(&args.output, failure, measured.json()),
        Some(failure) => output::print_text(&measured.text()).and(Err(failure)),
        None if args.output.is_data() => output::print_json(&measured.json()),
        None => output::print_text(&measured.text()),
    }
}

/// Who is to read beside ours, and whether that was said.
struct Wanted {
    ways: Vec<String>,
    is_said: bool,
}

fn wanted(args: &BenchArgs) -> anyhow::Result<Wanted> {
    let known: Vec<&str> = WAYS.into_iter().filter(|way| *way != OURS).chain(rivals::names()).collect();
    let is_said = !args.beside.is_empty();
    let mut wanted: Vec<String> = Vec::new();
    for name in &args.beside {
        match name.as_str() {
            "none" => ensure!(args.beside.len() == 1, "--beside none is said alone"),
            "kernel" => wanted.extend(["buffered", "mmap"].map(str::to_string)),
            OURS => bail!("--beside {OURS}: it reads anyway"),
            name if known.contains(&name) => wanted.push(name.to_string()),
            name => {
                let hint =
                    nearest(name, known.iter().copied()).map(|hint| format!("; did you mean `{hint}`?"));
                bail!(
                    "--beside {name}: nobody is called so{} There are {}, kernel (the first two) and none",
                    hint.unwrap_or(".".to_string()),
                    known.join(", ")
                );
            }
        }
    }
    if !is_said {
        wanted.extend(known.iter().map(|name| (*name).to_string()));
    }
    if args.in_place {
        let refused = wanted.iter().find(|way| !ways::has_places(way));
        if let (Some(way), true) = (refused, is_said && !args.beside.contains(&"kernel".to_string())) {
            bail!("--beside {way}: it copies, and has nothing to look at --in-place");
        }
        wanted.retain(|way| ways::has_places(way));
    }
    // In the order of the table, each once.
    let mut ways: Vec<String> = known.into_iter().map(str::to_string).collect();
    ways.retain(|way| wanted.contains(way));
    if let (false, Some(size)) = (is_said, args.size)
        && size.0 > MEMCPY_MAX
    {
        ways.retain(|way| way != "memcpy");
    }
    Ok(Wanted { ways, is_said })
}

/// Refuses what would take more memory than there is.
fn check_memory(args: &BenchArgs, wanted: &Wanted) -> anyhow::Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let Some(available) = kib.map(|kib| kib << 10) else { return Ok(()) };
    // Ours, the group's, and that of each cache that was brought along.
    let is_of_kernel = wanted.ways.iter().any(|way| ways::is_of_kernel(way));
    let others = wanted.ways.iter().filter(|way| !WAYS.contains(&way.as_str())).count() as u64;
    let budgets = 1 + u64::from(is_of_kernel) + others;
    let needed = args.budget.0.saturating_mul(budgets);
    ensure!(
        needed <= available,
        "--budget {}: {budgets} of it are {}, and the machine has {} available",
        args.budget,
        figures::bytes(needed),
        figures::bytes(available)
    );
    Ok(())
}

fn measure(
    args: &BenchArgs,
    wanted: &Wanted,
    load: &Load,
    subject: &Subject,
    task: &Task,
    lists: &[Vec<u32>],
) -> Result<Measured, Failure> {
    let mut notes = Vec::new();
    let names: Vec<&String> = wanted.ways.iter().collect();
    let is_limited = names.iter().any(|way| ways::is_of_kernel(way)) || args.buffered;
    // Dropped last: the group can't go before its processes have.
    let group = match is_limited.then(Equal::new).transpose() {
        Ok(group) => group,
        Err(error) => {
            let why = format!("no cgroup with as little memory can be made: {error:#}");
            if args.equal_memory {
                return Err(Failure::Input(anyhow!("--equal-memory: {why}")));
            }
            notes.push(format!("{why}. What uses the kernel's page cache has all of the machine's memory"));
            None
        }
    };
    if subject.is_in_memory() {
        notes.push(format!(
            "{} is in tmpfs: in memory as a whole, so that nobody reads a device and the kernel's page cache has no limit",
            subject.name
        ));
    }
    let mut readers = Vec::new();
    for way in std::iter::once(&OURS.to_string()).chain(names) {
        if way == "memcpy" && !wanted.is_said && subject.pages * PAGE as u64 > MEMCPY_MAX {
            notes.push(format!(
                "memcpy is left out: it would hold all {}",
                figures::bytes(subject.pages * PAGE as u64)
            ));
            continue;
        }
        let of_group = group.as_ref().filter(|_| ways::is_of_kernel(way));
        match Reader::start(&Task { way: way.clone(), ..task.clone() }, lists, of_group) {
            Ok(reader) => readers.push(reader),
            Err(Ended::Signal(signal)) => return Ok(Measured::interrupted(signal)),
            Err(Ended::Why(error)) if way == OURS || wanted.is_said => {
                return Err(Failure::Input(anyhow!(
                    "{way}: {}: {}",
                    subject.name,
                    name_file(&error, subject)
                )));
            }
            Err(Ended::Why(error)) => {
                notes.push(format!("{way} is left out: {}", name_file(&error, subject)));
            }
        }
    }
    let mut limit = None;
    if let Some(group) = &group {
        // What they hold by themselves is no page of the file.
        let usage = group.usage()?;
        let bytes = usage + args.budget.0;
        group.limit(bytes)?;
        limit = Some((usage, bytes));
    }
    let rounds = args.rounds as usize;
    let bar = progress::bar(&args.output, Some(((rounds + 2) * readers.len()) as u64), "measuring");
    let mut figures: Vec<OfWay> = readers.iter().map(|reader| OfWay::new(&reader.way)).collect();
    let mut done = 0;
    let mut interrupted = None;
    'all: for round in 0..rounds + 2 {
        for turn in 0..readers.len() {
            // Who reads after whom turns.
            let at = (turn + round) % readers.len();
            let command = match round {
                0 => "warm 0".to_string(),
                round if round <= rounds => format!("round {round}"),
                round => format!("time {round}"),
            };
            let told = match readers[at].tell(&command) {
                Ok(told) => told,
                Err(Ended::Signal(signal)) => {
                    interrupted = Some(signal);
                    break 'all;
                }
                Err(Ended::Why(error)) => {
                    bar.finish_and_clear();
                    let (way, error) = (&readers[at].way, name_file(&error, subject));
                    return Err(Failure::Workload(anyhow!("{way}: {}: {error}", subject.name)));
                }
            };
            figures[at].note(round, rounds, told)?;
            bar.inc(1);
        }
        if (1..=rounds).contains(&round) {
            done = round;
        }
    }
    bar.finish_and_clear();
    if let (Some(group), Some((base, _))) = (&group, limit) {
        let held = group.usage()?.saturating_sub(base);
        let mut touched: Vec<u32> = lists.iter().take(task.threads).flatten().copied().collect();
        touched.sort_unstable();
        touched.dedup();
        if held < args.budget.0.min((touched.len() * PAGE) as u64) / 2 && !subject.is_in_memory() {
            notes.push(format!(
                "the group holds {} only: others have {} in memory, and what reads it through the kernel's page cache has more than the budget",
                figures::bytes(held),
                subject.name
            ));
        }
        figures
            .iter_mut()
            .filter(|of| ways::is_of_kernel(&of.name))
            .for_each(|of| of.memory_bytes = Some(held));
    }
    drop(readers);
    // A round that not all have made is nobody's.
    figures.iter_mut().for_each(|of| of.rounds.truncate(done));
    Ok(Measured {
        load: load.name.clone(),
        file: subject.name.clone(),
        file_bytes: subject.pages * PAGE as u64,
        budget: args.budget.0,
        policy: args.policy.clone(),
        threads: args.threads.into(),
        batch: args.batch.into(),
        is_in_place: args.in_place,
        is_cold: args.cold,
        is_buffered: args.buffered,
        has_limit: limit.is_some(),
        rounds: done,
        reads: figures[0].rounds.first().map_or(0, |round: &Round| round.reads),
        ways: figures,
        notes,
        interrupted,
    })
}

/// An error as it concerns the user, to whom the file without a name has none by number.
fn name_file(error: &str, subject: &Subject) -> String {
    error.replace(&subject.path.display().to_string(), "it")
}

/// Why a reader has no answer.
enum Ended {
    Signal(i32),
    Why(String),
}

/// The process of one that reads. It ends with this.
struct Reader {
    way: String,
    child: Child,
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    last_words: Receiver<String>,
}

impl Reader {
    fn start(task: &Task, lists: &[Vec<u32>], group: Option<&Equal>) -> Result<Reader, Ended> {
        let started = || -> anyhow::Result<Reader> {
            let program = api::program().context("this program can't be found")?;
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]).args(["bench", "--reader"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().context("no process can be started")?;
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
            Ok(Reader { way: task.way.clone(), child, input, answers, last_words })
        };
        let mut reader = started().map_err(|error| Ended::Why(format!("{error:#}")))?;
        // Before it has anything, so that all that it has is the group's.
        if let Some(group) = group {
            group.enter(reader.child.id()).map_err(|error| Ended::Why(format!("{error:#}")))?;
        }
        let written = reader.input.as_mut().map(|input| {
            let mut input = std::io::BufWriter::new(input);
            writeln!(input, "{}", serde_json::to_string(task).expect("a task is JSON"))?;
            write_lists(lists, &mut input)
        });
        // One that has ended at once has told why.
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
                    _ => return Err(Ended::Why(format!("its process says `{line}`"))),
                },
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(signal) = signals::to_end() {
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
        // A signal from the terminal is for all processes of it; this one may have heard of it later.
        thread::sleep(2 * LOOK);
        if let Some(signal) = signals::to_end() {
            return Ended::Signal(signal);
        }
        let said = self.last_words.recv_timeout(LOOK).unwrap_or_default();
        let said = said.trim().trim_start_matches("error: ");
        Ended::Why(match status {
            Ok(status) => {
                let why = match status.signal() {
                    Some(SIGBUS) => ": the file has become shorter, or can't be read there",
                    Some(SIGKILL) => ": out of memory, perhaps",
                    _ if said.is_empty() => "",
                    _ => ": ",
                };
                format!("its process has ended ({status}){why}{said}")
            }
            Err(error) => format!("its process is gone: {error}"),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
