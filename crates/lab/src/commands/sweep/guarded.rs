//! Cells of custom policies in separate processes: if such a policy ends its process, the cell is a row, and the sweep continues.
//!
//! ```text
//!   sweep ──keys──▶ sweep --own-cells ──▶ { "begin": key }   the policy runs ...   { "row": { ... } }   { "begin": key } ...
//!     │                                                            └─ a panic, a call without end, too much memory: the process ends, and
//!     └──◀──── rows; of the cell that was under way, one with the last words ◀── says of which call; the other cells go on in a new one
//! ```

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pageout_sim::scenario::{Size, TimeSpan};
use pageout_study::Watcher;
use pageout_study::sweep::{Ask, Cell, Plan, Row, Take, failed};
use serde_json::{Value, json};

use crate::context::Context;
use crate::print::Output;
use crate::user_policy;

/// The interval between two checks for signals and late cells.
const LOOK: Duration = Duration::from_millis(100);

/// The work of the processes.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) cx: &'a Context,
    pub(super) ask: &'a Ask,
    pub(super) plan: &'a Plan,
    pub(super) watcher: &'a dyn Watcher,
}

/// Runs cells of one input in `jobs` separate processes. Errors: rows could not be written.
pub(super) fn cells(work: Work, cells: &[&Cell], jobs: usize, take: Take) -> io::Result<()> {
    let jobs = jobs.clamp(1, cells.len().max(1));
    let (send, rows) = channel();
    let mut written = Ok(());
    thread::scope(|scope| {
        for job in 0..jobs {
            let own: Vec<&Cell> = cells.iter().skip(job).step_by(jobs).copied().collect();
            let send = send.clone();
            scope.spawn(move || all(work, own, &send));
        }
        drop(send);
        for row in rows {
            written = take(vec![row]);
            if written.is_err() {
                break;
            }
        }
    });
    written
}

/// Runs cells in one process, and in another one where that has ended before its time.
fn all(work: Work, mut cells: Vec<&Cell>, send: &Sender<Row>) {
    let Work { plan, watcher, .. } = work;
    while !cells.is_empty() && watcher.stop().is_none() {
        let ended = process(work, &cells, send);
        let (done, under_way, why) = match ended {
            Ok(ended) => (ended.done, ended.under_way, ended.why),
            Err(error) => {
                (BTreeSet::new(), None, Some(format!("cannot start a process for the cell: {error}")))
            }
        };
        cells.retain(|cell| !done.contains(&cell.key));
        let Some(why) = why else { return };
        if watcher.stop().is_some() {
            return;
        }
        // Where it did not come to a cell at all, it would not the next time either.
        let is_at_fault = |cell: &&Cell| under_way.as_ref().is_none_or(|key| *key == cell.key);
        for cell in cells.iter().filter(|cell| is_at_fault(cell)) {
            if send.send(failed(plan, cell, &why)).is_err() {
                return;
            }
        }
        cells.retain(|cell| !is_at_fault(cell));
    }
}

/// How a process has ended.
struct Ended {
    /// Cells that have a row.
    done: BTreeSet<String>,
    /// The cell that it was at.
    under_way: Option<String>,
    /// Why it has ended before all cells had a row.
    why: Option<String>,
}

fn process(work: Work, cells: &[&Cell], send: &Sender<Row>) -> io::Result<Ended> {
    let Work { cx, ask, watcher, .. } = work;
    let program = cx.program.words()?;
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).arg("sweep").arg(&ask.plan).args(["--own-cells", "--quiet", "--jobs", "1"]);
    command.args(["--policy-time", &ask.policy_time.to_string()]);
    command.args(["--policy-memory", &ask.policy_memory.to_string()]);
    command.args(cx.user_policies.arguments());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(command.spawn()?);
    let mut keys = child.0.stdin.take().expect("it is piped");
    let stdout = child.0.stdout.take().expect("it is piped");
    let mut stderr = child.0.stderr.take().expect("it is piped");
    let text: String = cells.iter().map(|cell| format!("{}\n", cell.key)).collect();
    // The last output may be larger than the buffer of a pipe.
    let last_words = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let (told, lines) = channel();
    let reader = thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.map_while(|line| told.send(line).ok()).for_each(drop);
    });
    // A process that ends immediately has printed the reason.
    let _ = keys.write_all(text.as_bytes());
    drop(keys);
    let mut ended = Ended { done: BTreeSet::new(), under_way: None, why: None };
    let limit = Duration::from_nanos(ask.policy_time.0) + 10 * LOOK + Duration::from_secs(5);
    let mut since = Instant::now();
    let mut is_late = false;
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                since = Instant::now();
                match serde_json::from_str(&line) {
                    Ok(Value::Object(mut told)) => {
                        if let Some(Value::String(key)) = told.remove("begin") {
                            ended.under_way = Some(key);
                        }
                        if let Some(Value::Object(row)) = told.remove("row") {
                            ended.done.extend(row.get("key").and_then(Value::as_str).map(str::to_string));
                            ended.under_way = None;
                            if send.send(row).is_err() {
                                break;
                            }
                        }
                    }
                    // Output of the policy itself is not a row.
                    _ => watcher.remark(&format!("note: output of a custom policy: {line}")),
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                // It looks at its time itself, and says in which call it is: as long as it can.
                let has_all = cells.iter().all(|cell| ended.done.contains(&cell.key));
                is_late = (ended.under_way.is_some() || has_all) && since.elapsed() > limit;
                if is_late || watcher.stop().is_some() {
                    let _ = child.0.kill();
                }
            }
        }
    }
    let status = child.0.wait()?;
    let _ = reader.join();
    let last_words = last_words.join().unwrap_or_default();
    if !status.success() || cells.iter().any(|cell| !ended.done.contains(&cell.key)) {
        let said = last_words.lines().filter_map(|line| match line.strip_prefix("error: ") {
            Some(error) => Some(error),
            None => line.starts_with("memory allocation").then_some(line),
        });
        let said: Vec<&str> = said.collect();
        let mut why = match said.is_empty() {
            true => match last_words.lines().last() {
                Some(last) => format!("the process of the cell ended ({status}): {last}"),
                None => format!("the process of the cell ended without a message ({status})"),
            },
            false => said.join("; "),
        };
        if is_late {
            why = format!("the cell took longer than {} (--policy-time); {why}", ask.policy_time);
        }
        if why.contains("memory allocation") {
            why += &format!(" (--policy-memory {})", ask.policy_memory);
        }
        ended.why = Some(why);
    }
    Ok(ended)
}

/// A process that is killed when the value is dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The start of the running cell, in the process that runs it.
#[derive(Default)]
pub(super) struct AtWork(Mutex<Option<Instant>>);

/// Starts the process that runs cells, with limits of memory and of time per cell. Returns the keys of the cells.
pub(super) fn keys(
    time: TimeSpan,
    memory: Size,
    at_work: &Arc<AtWork>,
    output: &Arc<Output>,
) -> anyhow::Result<BTreeSet<String>> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let limit = Some(memory.0);
        setrlimit(Resource::As, Rlimit { current: limit, maximum: limit })?;
    }
    let (at_work, output) = (Arc::clone(at_work), Arc::clone(output));
    thread::spawn(move || {
        user_policy::stay_awake();
        loop {
            thread::sleep(LOOK);
            at_work.end_if_late(time, &output);
        }
    });
    Ok(io::stdin().lines().collect::<Result<_, _>>()?)
}

impl AtWork {
    fn began(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells that a cell begins.
    pub(super) fn begin(&self, cell: &Cell) {
        *self.began() = Some(Instant::now());
        tell(&json!({ "begin": cell.key }));
    }

    /// Prints rows of cells.
    pub(super) fn rows(&self, rows: Vec<Row>) -> io::Result<()> {
        *self.began() = None;
        rows.into_iter().for_each(|row| tell(&json!({ "row": row })));
        Ok(())
    }

    fn end_if_late(&self, limit: TimeSpan, output: &Output) {
        let began = *self.began();
        if began.is_some_and(|began| began.elapsed() > Duration::from_nanos(limit.0)) {
            let doing = pageout_policy::doing().first().map(|doing| format!("{doing}: "));
            let whose = doing.unwrap_or_default();
            output.remark(&format!("error: {whose}the cell took longer than {limit} (--policy-time)"));
            // A call that does not return may block exit handlers.
            pageout_plugin::end_at_once(user_policy::EXIT_CODE.into());
        }
    }
}

fn tell(value: &Value) {
    let mut stdout = io::stdout().lock();
    // The reader may be gone; then this process is killed soon.
    let _ = writeln!(stdout, "{value}").and_then(|()| stdout.flush());
}
