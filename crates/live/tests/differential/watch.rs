//! Who does what at the moment, which operations were made, and where the library panics.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// Operations of a thread that are printed when one fails.
const LAST: usize = 12;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one thread does.
#[derive(Default)]
struct Doing {
    name: String,
    since: Option<Instant>,
    last: Vec<String>,
    done: u64,
}

/// What each of several threads does.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Mutex<Vec<Arc<Mutex<Doing>>>>>);

/// One thread's part of it.
#[derive(Clone)]
pub(crate) struct Worker(Arc<Mutex<Doing>>);

impl Watch {
    pub(crate) fn worker(&self, name: impl Into<String>) -> Worker {
        let doing = Arc::new(Mutex::new(Doing { name: name.into(), ..Doing::default() }));
        lock(&self.0).push(Arc::clone(&doing));
        Worker(doing)
    }

    /// The operation that takes longer than this, if there is one: of which thread, and which.
    pub(crate) fn hangs(&self, longest: Duration) -> Option<String> {
        lock(&self.0).iter().find_map(|doing| {
            let doing = lock(doing);
            let since = doing.since.filter(|since| since.elapsed() > longest)?;
            let what = doing.last.last().map_or("", String::as_str);
            Some(format!("{} hangs for {:?} in {what}", doing.name, since.elapsed()))
        })
    }

    /// The last operations of each thread.
    pub(crate) fn last(&self) -> String {
        let mut text = String::new();
        for doing in lock(&self.0).iter() {
            let doing = lock(doing);
            text += &format!("{} ({} operations), the last of them:\n", doing.name, doing.done);
            for (at, one) in doing.last.iter().enumerate() {
                let is_now = doing.since.is_some() && at + 1 == doing.last.len();
                text += &format!("    {one}{}\n", if is_now { "   <- at the moment" } else { "" });
            }
        }
        text
    }

    /// Ends the process with a message if an operation takes too long. Runs as long as `goes_on` says so.
    pub(crate) fn abort_on_hang(&self, seed: u64, goes_on: impl Fn() -> bool) {
        while goes_on() {
            std::thread::sleep(Duration::from_millis(5));
            if let Some(hang) = self.hangs(crate::settings::longest()) {
                let (last, panics, again) = (self.last(), take_panics(), crate::settings::again(seed));
                // Not by `eprintln`: what a test prints is lost when the process ends.
                let _ = writeln!(std::io::stderr(), "{hang}\n{last}panics: {panics:#?}\nagain: {again}");
                std::process::abort();
            }
        }
    }
}

impl Worker {
    /// Begins something that is watched.
    pub(crate) fn begins(&self, what: String) {
        let mut doing = lock(&self.0);
        if doing.last.len() == LAST {
            doing.last.remove(0);
        }
        doing.last.push(what);
        doing.since = Some(Instant::now());
        doing.done += 1;
    }

    /// It has ended.
    pub(crate) fn ends(&self) {
        lock(&self.0).since = None;
    }
}

/// Operations of a kind.
#[derive(Clone, Copy, Default)]
struct OfKind {
    ok: u64,
    refused: u64,
    /// Of these, how many because a device was full.
    full: u64,
    time: Duration,
    longest: Duration,
}

/// How many operations were made and compared, by kind, and how long they took.
#[derive(Clone, Default)]
pub(crate) struct Counts(BTreeMap<&'static str, OfKind>);

impl Counts {
    /// Counts an operation that went well, or that gave an error that the model expects.
    pub(crate) fn count(&mut self, kind: &'static str, is_ok: bool) {
        let of = self.0.entry(kind).or_default();
        *(if is_ok { &mut of.ok } else { &mut of.refused }) += 1;
    }

    /// Counts an operation that was refused because its device was full, or had been.
    pub(crate) fn count_full(&mut self, kind: &'static str) {
        self.count(kind, false);
        self.0.entry(kind).or_default().full += 1;
    }

    /// How long one took, with what the test has to do for it.
    pub(crate) fn time(&mut self, kind: &'static str, time: Duration) {
        let of = self.0.entry(kind).or_default();
        of.time += time;
        of.longest = of.longest.max(time);
    }

    pub(crate) fn add(&mut self, others: &Counts) {
        for (kind, other) in &others.0 {
            let of = self.0.entry(kind).or_default();
            of.ok += other.ok;
            of.refused += other.refused;
            of.full += other.full;
            of.time += other.time;
            of.longest = of.longest.max(other.longest);
        }
    }

    pub(crate) fn print(&self, title: &str) {
        let sum: u64 = self.0.values().map(|of| of.ok + of.refused).sum();
        println!("{title}: {sum} operations equal the model's");
        for (kind, OfKind { ok, refused, full, time, longest }) in &self.0 {
            println!(
                "    {kind:<24} {ok:>9} ok {refused:>8} expected errors, {full:>6} of a full device {:>9.1} ms, longest {:>7.1} ms",
                time.as_secs_f64() * 1e3,
                longest.as_secs_f64() * 1e3
            );
        }
    }
}

/// The panics so far, for any thread to tell of.
pub(crate) fn panics() -> Vec<String> {
    lock(&PANICS).clone()
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The panics since this was last called, of any thread. They are not printed but kept: the library takes those of its own, and a failure tells of them.
pub(crate) fn take_panics() -> Vec<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let of_test = info.location().is_some_and(|location| location.file().contains("differential"));
            if of_test {
                before(info);
            }
            let mut text = info.to_string().replacen("panicked at ", "", 1);
            if !of_test {
                let trace = std::backtrace::Backtrace::force_capture().to_string();
                let ours = trace
                    .lines()
                    .map(str::trim)
                    .filter(|line| line.contains("pageout") && !line.contains("closure"));
                ours.take(14).for_each(|line| text += &format!("\n        {line}"));
            }
            lock(&PANICS).push(text);
        }));
    });
    std::mem::take(&mut *lock(&PANICS))
}
