//! Progress on standard error: a bar if the end is known. If standard error is not a terminal, long commands print a line from time to time, with
//! progress and remaining time.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pageout_study::{Estimate, Stage, Watcher};

use super::output::Output;
use super::{figures, visible};
use crate::signals::{self, Listening};

/// When a command that prints lines prints the first one of a stage,
const FIRST_LINE: Duration = Duration::from_secs(2);
/// and how long after a line the next.
const NEXT_LINE: Duration = Duration::from_secs(5);

/// A study that needs this many more seconds announces it in any case.
const ANNOUNCED_S: f64 = 10.0;

/// Returns true if standard error shows a bar.
pub(crate) fn is_seen(output: &Output) -> bool {
    !output.is_quiet && std::io::stderr().is_terminal()
}

/// A bar of `length` steps, named by `what`; without a length it counts.
pub(crate) fn bar(output: &Output, length: Option<u64>, what: &str) -> ProgressBar {
    if !is_seen(output) {
        return ProgressBar::hidden();
    }
    let bar = match length {
        Some(length) => ProgressBar::new(length),
        None => ProgressBar::no_length(),
    };
    let form = match length {
        Some(_) => "{msg} [{bar:30}] {human_pos}/{human_len}  {elapsed}, {eta} left",
        None => "{msg} {spinner} {human_pos}  {elapsed}",
    };
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
    bar.set_style(
        ProgressStyle::with_template(form).expect("the template is a constant").progress_chars("=> "),
    );
    bar.set_message(visible::name(what).into_owned());
    bar
}

/// Reports to a pipe or a log what a bar shows at a terminal.
pub(crate) fn announce(output: &Output, text: &str) {
    if !output.is_quiet && !is_seen(output) {
        output.remark(text);
    }
}

/// The file's name without its directory, for progress.
pub(crate) fn name_of(path: &Path) -> String {
    visible::name(&path.file_name().unwrap_or_default().to_string_lossy()).into_owned()
}

/// Watches a study for a user at a terminal: shows a bar per stage, and ends runs if a signal arrives.
pub(crate) struct Terminal<'a> {
    output: &'a Output,
    stage: Mutex<Option<Shown>>,
    /// Lines are printed where there is no terminal.
    tells: bool,
    /// A signal is meant for the whole study, and not only for its runs.
    listening: Mutex<Option<Listening>>,
}

/// A stage in progress.
struct Shown {
    bar: ProgressBar,
    lines: Option<Lines>,
    /// While scenarios run, and between two runs, a signal ends the runs. While a trace is read, it ends the program immediately.
    _listening: Option<Listening>,
}

impl Terminal<'_> {
    /// Makes a watcher for a command that prints to `output`.
    pub(crate) fn new(output: &Output) -> Terminal<'_> {
        Terminal { output, stage: Mutex::default(), tells: false, listening: Mutex::default() }
    }

    /// Likewise, and where no terminal would show a bar there are lines.
    pub(crate) fn telling(output: &Output) -> Terminal<'_> {
        let tells = !output.is_quiet && !is_seen(output);
        Terminal { tells, ..Terminal::new(output) }
    }

    fn stage(&self) -> MutexGuard<'_, Option<Shown>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Progress in lines.
struct Lines {
    what: String,
    length: Option<u64>,
    done: u64,
    began: Instant,
    /// The time of the next line.
    next: Duration,
}

impl Lines {
    fn new(what: String, length: Option<u64>) -> Lines {
        Lines { what, length, done: 0, began: Instant::now(), next: FIRST_LINE }
    }

    /// Adds steps, and returns a line if one is due.
    fn advance(&mut self, steps: u64, elapsed: Duration) -> Option<String> {
        self.done += steps;
        if elapsed < self.next {
            return None;
        }
        self.next = elapsed + NEXT_LINE;
        let what = &self.what;
        let Some(length) = self.length.filter(|&length| length > 0 && self.done > 0) else {
            return Some(format!("{what}: {} done, {}", figures::count(self.done), seconds(elapsed)));
        };
        let share = (self.done as f64 / length as f64).min(1.0);
        let left = elapsed.mul_f64((1.0 - share) / share);
        let (percent, elapsed) = ((share * 100.0) as u64, seconds(elapsed));
        Some(format!("{what}: {percent}% done, {elapsed}, about {} left", seconds(left)))
    }
}

/// A duration to the second.
fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

impl Watcher for Terminal<'_> {
    fn is_seen(&self) -> bool {
        self.tells || is_seen(self.output)
    }

    fn begin(&self, stage: &Stage) {
        let (length, what, is_running) = match *stage {
            Stage::Reading(path) => (None, format!("reading {}", path.display()), false),
            Stage::Decoding { path, bytes } => (Some(bytes), format!("reading {}", name_of(path)), false),
            Stage::Running { name, runs: 1, accesses } => (accesses, name.to_string(), true),
            Stage::Running { name, runs, accesses } => (accesses, format!("{name}, {runs} runs"), true),
            Stage::Named { what, steps } => (steps, what.to_string(), false),
            Stage::Playing { simulations } => (Some(simulations as u64), "simulating".to_string(), false),
            _ => (None, String::new(), false),
        };
        let bar = bar(self.output, length, &what);
        let lines = (self.tells && !what.is_empty()).then(|| Lines::new(what, length));
        *self.stage() = Some(Shown { bar, lines, _listening: is_running.then(signals::listen) });
    }

    fn advance(&self, accesses: u64) {
        if let Some(stage) = &mut *self.stage() {
            stage.bar.inc(accesses);
            let lines = stage.lines.as_mut();
            if let Some(line) = lines.and_then(|lines| lines.advance(accesses, lines.began.elapsed())) {
                eprintln!("{line}");
            }
        }
    }

    fn remark(&self, text: &str) {
        self.output.remark(text);
    }

    fn heed_stop(&self) {
        *self.listening.lock().unwrap_or_else(PoisonError::into_inner) = Some(signals::listen());
    }

    fn estimate(&self, make: &mut dyn FnMut() -> Option<Estimate>) {
        if !self.output.is_quiet
            && let Some(estimate) = make()
        {
            self.output.remark(&self.output.layout().estimate(&estimate));
        }
    }

    fn announce(&self, text: &str, seconds: f64) {
        if !self.output.is_quiet && (seconds >= ANNOUNCED_S || is_seen(self.output)) {
            eprintln!("{text}");
        }
    }

    fn end(&self) {
        if let Some(stage) = self.stage().take() {
            stage.bar.finish_and_clear();
        }
    }

    fn stop(&self) -> Option<&'static str> {
        match self.output.stop() {
            Some(flag) => flag.load(Ordering::Relaxed).then_some("SIGINT"),
            None => signals::came().map(signals::name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is_and_what_time_is_left() {
        let mut lines = Lines::new("the twin, 22 runs".to_string(), Some(1000));
        assert_eq!(lines.advance(100, Duration::from_secs(1)), None);
        let first = lines.advance(100, Duration::from_secs(20));
        assert_eq!(first.unwrap(), "the twin, 22 runs: 20% done, 20 s, about 1 min 20 s left");
        assert_eq!(lines.advance(100, Duration::from_secs(24)), None);
        let second = lines.advance(700, Duration::from_secs(100));
        assert_eq!(second.unwrap(), "the twin, 22 runs: 100% done, 1 min 40 s, about 0 s left");
        let endless = Lines::new("reading a".to_string(), None).advance(5, Duration::from_secs(3));
        assert_eq!(endless.unwrap(), "reading a: 5 done, 3 s");
    }
}
