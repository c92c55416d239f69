//! Handling of SIGINT and SIGTERM: the program stops its runs and prints their results, or removes unfinished files, before it ends.
//!
//! ```text
//!   the first SIGINT or SIGTERM, while runs listen ─▶ each ends when it looks next, and what it has so far is printed
//!   any other, SIGHUP, or the second ───────────────▶ unfinished files are removed, and the signal does what it would have done
//! ```
//! timeout(1) sends its signal to the program and then to its group, so to the program twice. What comes that soon after the first one is
//! not the second.
//!
//! One thread waits for signals. It starts with the first request and runs to the end of the program, because nothing else handles a requested
//! signal. A signal that the parent process ignores, as nohup does, stays ignored.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempPath;

/// A second signal within this time is a repetition of the first one.
const SAME: Duration = Duration::from_millis(100);

/// The work to do before a signal ends the program.
struct Pending {
    /// This program handles the signals of the process. If another program calls commands, that program handles them.
    are_ours: bool,
    is_waited_for: bool,
    /// Files that are not finished.
    files: Vec<Arc<Mutex<Option<TempPath>>>>,
    /// The number of runs that end by themselves after a signal.
    listening: usize,
    /// The number of these that must finish: no signal ends the program before.
    undisturbed: usize,
    /// The signal that has asked them to, and when it came.
    came: Option<(i32, Instant)>,
}

/// Static because the operating system sends a signal to the process: the thread that receives it needs all runs and unfinished files.
static PENDING: Mutex<Pending> = Mutex::new(Pending {
    are_ours: false,
    is_waited_for: false,
    files: Vec::new(),
    listening: 0,
    undisturbed: 0,
    came: None,
});

fn pending() -> MutexGuard<'static, Pending> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets this program handle the signals of the process, from the first run or unfinished file on.
pub(crate) fn take_over() {
    pending().are_ours = true;
}

/// A run that checks [`came`] from time to time.
pub(crate) struct Listening {
    is_undisturbed: bool,
}

/// Counts a run as listening until the value is dropped. If signals can't be waited for, they end the run as they would without this.
pub(crate) fn listen() -> Listening {
    begin(false, wait_for_signals)
}

/// As [`listen`], but the run must clean up, and ends soon after the first signal: further signals, and SIGHUP, do not end the program before.
pub(crate) fn listen_until_done() -> Listening {
    begin(true, wait_for_signals)
}

/// The run is counted before there is a handler: a signal that the handler catches always finds the run that asked for it.
fn begin(is_undisturbed: bool, wait: impl FnOnce() -> io::Result<()>) -> Listening {
    let listening = Listening::counted(is_undisturbed);
    let _ = wait();
    listening
}

impl Listening {
    fn counted(is_undisturbed: bool) -> Listening {
        let mut pending = pending();
        pending.listening += 1;
        pending.undisturbed += usize::from(is_undisturbed);
        Listening { is_undisturbed }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut pending = pending();
        pending.listening -= 1;
        pending.undisturbed -= usize::from(self.is_undisturbed);
    }
}

/// The signal that has asked runs to end, if one has.
pub(crate) fn came() -> Option<i32> {
    pending().came.map(|(signal, _)| signal)
}

/// What a signal is called.
#[cfg(unix)]
pub(crate) fn name(signal: i32) -> &'static str {
    signal_hook::low_level::signal_name(signal).unwrap_or("a signal")
}

#[cfg(not(unix))]
pub(crate) fn name(_: i32) -> &'static str {
    "a signal"
}

/// Has a file removed when a signal ends the program, unless its name has been taken out by then.
pub(crate) fn remove_if_one_comes(file: Arc<Mutex<Option<TempPath>>>) -> io::Result<()> {
    wait_for_signals()?;
    let mut pending = pending();
    // Others that have their name by now need nothing any more.
    pending.files.retain(|file| Arc::strong_count(file) > 1);
    pending.files.push(file);
    Ok(())
}

/// Removes files that are not finished, as the program ends in the middle.
pub(crate) fn remove_unfinished() {
    for file in &pending().files {
        file.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(unix)]
fn wait_for_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut state = pending();
    if state.is_waited_for || !state.are_ours {
        return Ok(());
    }
    let ignored = ignored_signals();
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = signal_hook::iterator::Signals::new(wanted)?;
    state.is_waited_for = true;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let mut pending = pending();
            match pending.came {
                None if pending.undisturbed > 0 => {
                    pending.came = Some((signal, Instant::now()));
                    continue;
                }
                _ if pending.undisturbed > 0 => continue,
                None if pending.listening > 0 && signal != SIGHUP => {
                    pending.came = Some((signal, Instant::now()));
                    let told =
                        "\ninterrupted: printing the complete part; interrupt again to end immediately";
                    let _ = writeln!(io::stderr().lock(), "{told}");
                    continue;
                }
                Some((first, at)) if first == signal && at.elapsed() < SAME => continue,
                _ => {}
            }
            for file in &pending.files {
                file.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn wait_for_signals() -> io::Result<()> {
    Ok(())
}

/// The signals that the parent process ignores, as nohup does, one bit each from the first. Returns 0 if they cannot be read.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{begin, pending};

    #[test]
    fn run_is_counted_before_signals_are_caught() {
        for is_undisturbed in [false, true] {
            let mut counted = None;
            let listening = begin(is_undisturbed, || {
                let pending = pending();
                counted = Some((pending.listening > 0, pending.undisturbed > 0));
                Ok(())
            });
            assert_eq!(counted, Some((true, is_undisturbed)));
            drop(listening);
        }
    }
}
