//! Devices that are full: the process's file size limit (RLIMIT_FSIZE). A write or a growth behind the limit fails with EFBIG, and a write across it is short,
//! which the library treats as it treats ENOSPC.
//!
//! The limit holds for all files of the process, also for the one that this program prints to. So output to a regular file goes through a pipe to a process
//! without a limit.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, Once, PoisonError};

/// Sets the limit, or lifts it.
pub(crate) fn limit(bytes: Option<u64>) {
    static ONCE: Once = Once::new();
    if bytes.is_some() {
        ONCE.call_once(prepare);
    }
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the struct, which outlives it.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limits) };
    assert_eq!(got, 0, "getrlimit: {}", io::Error::last_os_error());
    limits.rlim_cur = bytes.map_or(limits.rlim_max, |bytes| bytes.min(limits.rlim_max));
    // SAFETY: the call reads the struct, which outlives it.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limits) };
    assert_eq!(set, 0, "setrlimit: {}", io::Error::last_os_error());
}

/// Lifts the limit when it goes.
pub(crate) struct Lifts;

impl Drop for Lifts {
    fn drop(&mut self) {
        limit(None);
    }
}

fn prepare() {
    // SAFETY: no handler is installed, and the process has none for this signal: it is not to end by it.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let outputs = [(libc::STDOUT_FILENO, io::stdout().as_fd().try_clone_to_owned()), {
        (libc::STDERR_FILENO, io::stderr().as_fd().try_clone_to_owned())
    }];
    for (number, output) in outputs {
        let output = std::fs::File::from(output.unwrap());
        if output.metadata().unwrap().is_file() {
            relay(number, output);
        }
    }
    // SAFETY: the function is there as long as the process.
    assert_eq!(unsafe { libc::atexit(end_relays) }, 0);
}

/// Processes that write what this one prints, and the descriptors that lead there.
static RELAYS: Mutex<Vec<(RawFd, Child)>> = Mutex::new(Vec::new());

fn relay(number: RawFd, output: std::fs::File) {
    let mut cat =
        Command::new("cat").stdin(Stdio::piped()).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    let pipe = cat.stdin.take().unwrap();
    // SAFETY: both are open. What prints to the number goes to the pipe from now on.
    assert_ne!(unsafe { libc::dup2(pipe.as_raw_fd(), number) }, -1);
    RELAYS.lock().unwrap_or_else(PoisonError::into_inner).push((number, cat));
}

/// At the end of the process: all that was printed is in the files.
extern "C" fn end_relays() {
    for (number, mut cat) in RELAYS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // SAFETY: the process is about to end, and prints no more.
        unsafe { libc::close(number) };
        let _ = cat.wait();
    }
}

#[test]
fn write_behind_the_limit_fails_and_before_it_is_short() {
    use std::os::unix::fs::FileExt;

    crate::alone(|| {
        let folder = crate::folder::Folder::new();
        let file = std::fs::File::create(folder.path("file")).unwrap();
        let lifts = Lifts;
        limit(Some(4096));
        assert_eq!(file.write_at(&[1; 8192], 0).unwrap(), 4096);
        let errno = |outcome: io::Result<usize>| outcome.unwrap_err().raw_os_error();
        assert_eq!(errno(file.write_at(&[1; 8192], 4096)), Some(libc::EFBIG));
        assert_eq!(errno(file.set_len(4097).map(|()| 0)), Some(libc::EFBIG));
        drop(lifts);
        assert_eq!(file.write_at(&[1; 8192], 4096).unwrap(), 8192);
    });
}
