//! A run's tracepoints as a file that the tools for real traces read, for `run --trace FILE`.
//!
//! ```text
//!   machine ─▶ records in the order of time ─filter─▶ ftrace.rs: text as /sys/kernel/tracing/trace_pipe has it, in one of two dialects
//!                                                 └─▶ perfetto.rs: JSON for ui.perfetto.dev, with counters from samples of the run
//! ```
//! Written records are freed, so memory does not grow with the run. The suffix selects the form: `.json` is for Perfetto, anything else is text; a
//! further `.zst` compresses it.

mod fields; // what each tracepoint tells, by name
mod ftrace; // a line a tracepoint
mod perfetto; // spans, instants and counters on one axis of time
mod text; // words and numbers, put together fast

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use pageout_engine::{Nanos, TaskId, Tracepoint};
use pageout_sim::{Machine, Observer, TraceRecord};
use pageout_study::scenario::nearest::nearest;
use zstd::stream::write::Encoder;

use crate::failure::{Failure, Outcome};
use crate::print::streamed::Streamed;
pub(crate) use ftrace::Dialect;
use ftrace::Ftrace;
use perfetto::Perfetto;

/// Bytes of lines that are written together.
const LINES: usize = 1 << 16;

/// A zstd level that is cheap compared with the text.
const LEVEL: i32 = 1;

/// A file of tracepoints, growing.
pub(crate) struct Tracing {
    out: Out,
    form: Form,
    wanted: Wanted,
    tasks: Tasks,
    /// Lines that are written together.
    lines: Vec<u8>,
    /// The first write that failed; none is tried after it.
    failed: Option<io::Error>,
}

enum Out {
    Plain(Streamed),
    Zstd(Box<Encoder<'static, Streamed>>),
}

enum Form {
    Ftrace(Ftrace),
    Perfetto(Box<Perfetto>),
}

/// The tracepoints that are written.
struct Wanted(Option<Vec<glob::Pattern>>);

/// Names and ids of tasks, as the kernel has them.
#[derive(Default)]
pub(crate) struct Tasks(Vec<Option<Task>>);

/// One of them.
pub(crate) struct Task {
    pub(crate) comm: String,
    pub(crate) pid: u32,
}

/// The number of the first task: lower ones are of those who were there when the machine started.
const FIRST_PID: u32 = 1000;
/// Bytes of a name that a kernel keeps.
const COMM_MAX: usize = 15;

impl Wanted {
    /// `names` are names of tracepoints or patterns of them, `mm_vmscan_*`; all of them where there are none.
    fn new(names: &[String]) -> anyhow::Result<Wanted> {
        if names.is_empty() {
            return Ok(Wanted(None));
        }
        let patterns = names.iter().map(|name| {
            let pattern = glob::Pattern::new(name).with_context(|| format!("--trace-events {name}"))?;
            if !Tracepoint::names().any(|known| pattern.matches(known)) {
                let near = nearest(name, Tracepoint::names());
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                bail!(
                    "--trace-events: unknown tracepoint `{name}`{near}\nhelp: the tracepoints are {}",
                    Tracepoint::names().collect::<Vec<_>>().join(", ")
                );
            }
            Ok(pattern)
        });
        Ok(Wanted(Some(patterns.collect::<anyhow::Result<_>>()?)))
    }

    fn has(&self, event: &Tracepoint) -> bool {
        match &self.0 {
            None => true,
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(event.name())),
        }
    }
}

impl Tasks {
    /// The running task; `None` is the idle task of a CPU.
    pub(crate) fn get(&mut self, task: Option<TaskId>, machine: &Machine) -> &Task {
        // The first entry is the idle task.
        let place = task.map_or(0, |task| task.index() + 1);
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].get_or_insert_with(|| match task {
            None => Task { comm: "<idle>".to_string(), pid: 0 },
            Some(task) => {
                let name = machine.comm(task).unwrap_or("?");
                let end = (0..=COMM_MAX.min(name.len())).rev().find(|&end| name.is_char_boundary(end));
                let comm = name[..end.unwrap_or(0)].replace(char::is_control, "?");
                Task { comm, pid: FIRST_PID + task.0 }
            }
        })
    }
}

impl Tracing {
    /// The file that is asked for; nothing is written yet.
    pub(crate) fn new(
        path: &Path,
        events: &[String],
        dialect: Dialect,
        nanoseconds: bool,
        cpus: u16,
    ) -> anyhow::Result<Tracing> {
        let wanted = Wanted::new(events)?;
        let is_compressed = path.extension().is_some_and(|suffix| suffix == "zst");
        let inner = if is_compressed { path.with_extension("") } else { path.to_path_buf() };
        let streamed = Streamed::new(path, "--trace")?;
        let form = if inner.extension().is_some_and(|suffix| suffix == "json") {
            Form::Perfetto(Box::default())
        } else {
            let (who, when) = Default::default();
            Form::Ftrace(Ftrace {
                dialect,
                nanoseconds,
                counts: !is_compressed && streamed.can_go_back(),
                entries: 0,
                cpus,
                who,
                when,
            })
        };
        let out = if is_compressed {
            let cannot = || format!("--trace {}", path.display());
            Out::Zstd(Box::new(Encoder::new(streamed, LEVEL).with_context(cannot)?))
        } else {
            Out::Plain(streamed)
        };
        let lines = Vec::with_capacity(2 * LINES);
        Ok(Tracing { out, form, wanted, tasks: Tasks::default(), lines, failed: None })
    }

    /// What stands before everything else.
    pub(crate) fn begin(&mut self) {
        match &mut self.form {
            Form::Ftrace(ftrace) => ftrace.begin(&mut self.lines),
            Form::Perfetto(perfetto) => perfetto.begin(&mut self.lines),
        }
    }

    /// Returns true if its form contains samples of the machine.
    pub(crate) fn wants_samples(&self) -> bool {
        matches!(self.form, Form::Perfetto(_))
    }

    /// Writes what there is once it is enough.
    #[inline]
    fn write_many(&mut self) {
        if self.lines.len() >= LINES {
            self.write_all();
        }
    }

    #[inline(never)]
    fn write_all(&mut self) {
        let written = match &mut self.out {
            Out::Plain(out) => out.write_all(&self.lines),
            Out::Zstd(out) => out.write_all(&self.lines),
        };
        self.lines.clear();
        self.failed = written.err();
    }

    /// The last tracepoint is written: the file has its name from now on.
    pub(crate) fn finish(mut self) -> Outcome {
        if let Form::Perfetto(perfetto) = &mut self.form
            && self.failed.is_none()
        {
            perfetto.end(&mut self.lines);
        }
        if self.failed.is_none() {
            self.write_all();
        }
        self.failed.take().map_or(Ok(()), Err).map_err(Failure::writing)?;
        match self.out {
            Out::Plain(mut out) => {
                if let Form::Ftrace(ftrace) = &self.form
                    && let Some((at, head)) = ftrace.at_end()
                {
                    out.write_over(at, &head).map_err(Failure::writing)?;
                }
                out.finish()
            }
            Out::Zstd(out) => out.finish().map_err(Failure::writing)?.finish(),
        }
    }
}

impl Observer for Tracing {
    /// Adds a tracepoint.
    fn tracepoint(&mut self, record: &TraceRecord, machine: &Machine) {
        if self.failed.is_some() || !self.wanted.has(&record.event) {
            return;
        }
        let task = self.tasks.get(record.task, machine);
        match &mut self.form {
            Form::Ftrace(ftrace) => ftrace.add(record, task, &mut self.lines),
            Form::Perfetto(perfetto) => perfetto.add(record, task, &mut self.lines),
        }
        self.write_many();
    }

    /// Adds a sample of the machine, if the form contains samples.
    fn sample(&mut self, at: Nanos, machine: &Machine) {
        if let Form::Perfetto(perfetto) = &mut self.form
            && self.failed.is_none()
        {
            perfetto.sample(at, machine, &mut self.lines);
            self.write_many();
        }
    }
}
