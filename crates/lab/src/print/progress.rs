//! Progress on standard error: a bar for what has a known end, nothing at all where nobody would see it.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pageout_study::{Stage, Watcher};

use super::signals::{self, Listening};
use super::visible;
use crate::api;
use crate::cli::OutputOptions;

/// Whether anybody would see a bar.
pub(crate) fn is_seen(options: &OutputOptions) -> bool {
    !options.quiet && std::io::stderr().is_terminal()
}

/// A bar of `length` steps, named by `what`; without a length it counts.
pub(crate) fn bar(options: &OutputOptions, length: Option<u64>, what: &str) -> ProgressBar {
    if !is_seen(options) {
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
    bar.set_message(what.to_string());
    bar
}

/// The file's name without its directory, for progress.
pub(crate) fn name_of(path: &Path) -> String {
    visible::name(&path.file_name().unwrap_or_default().to_string_lossy()).into_owned()
}

/// Watches a study for whoever sits before the terminal: shows a bar for each stage, and has runs end when a signal comes.
pub(crate) struct Terminal<'a> {
    options: &'a OutputOptions,
    stage: Mutex<Option<Shown>>,
    /// What ends the runs of a program's call.
    flag: Option<Arc<AtomicBool>>,
}

/// A stage under way.
struct Shown {
    bar: ProgressBar,
    /// While scenarios run, and between two runs, a signal is meant for them. Reading, it ends at once.
    _listening: Option<Listening>,
}

impl Terminal<'_> {
    /// Whoever these options are of.
    pub(crate) fn new(options: &OutputOptions) -> Terminal<'_> {
        Terminal { options, stage: Mutex::default(), flag: api::stop() }
    }

    fn stage(&self) -> MutexGuard<'_, Option<Shown>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Terminal<'_> {
    fn is_seen(&self) -> bool {
        is_seen(self.options)
    }

    fn begin(&self, stage: &Stage) {
        let (length, what, is_running) = match *stage {
            Stage::Reading(path) => (None, format!("reading {}", path.display()), false),
            Stage::Decoding { path, bytes } => (Some(bytes), format!("reading {}", name_of(path)), false),
            Stage::Running { name, runs: 1, accesses } => (accesses, name.to_string(), true),
            Stage::Running { name, runs, accesses } => (accesses, format!("{name}, {runs} runs"), true),
            _ => (None, String::new(), false),
        };
        let bar = bar(self.options, length, &what);
        *self.stage() = Some(Shown { bar, _listening: is_running.then(signals::listen) });
    }

    fn advance(&self, accesses: u64) {
        if let Some(stage) = &*self.stage() {
            stage.bar.inc(accesses);
        }
    }

    fn end(&self) {
        if let Some(stage) = self.stage().take() {
            stage.bar.finish_and_clear();
        }
    }

    fn stop(&self) -> Option<&'static str> {
        match &self.flag {
            Some(flag) => flag.load(Ordering::Relaxed).then_some("SIGINT"),
            None => signals::came().map(signals::name),
        }
    }
}
