//! Errors as C has them: a negative number, and a text that the thread may ask for.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pageout_live::Error;
use pageout_live::engine::{ConfigError, FileError};

/// Why a call has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    errno: c_int,
    text: String,
}

thread_local! {
    /// The last failure of this thread, for `pageout_strerror`.
    static LAST: RefCell<(c_int, CString)> = RefCell::default();
}

impl Failure {
    pub(crate) fn new(errno: c_int, text: impl Into<String>) -> Failure {
        Failure { errno, text: text.into() }
    }

    /// An argument that can't be.
    pub(crate) fn invalid(text: impl Into<String>) -> Failure {
        Failure::new(libc::EINVAL, text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let errno = match &error {
            Error::Io { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
            // A full device is another matter than a broken one: there the caller may make room, and sync again.
            Error::Sync { source, .. } => match source.raw_os_error() {
                Some(full @ (libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) => full,
                _ => libc::EIO,
            },
            Error::ReadOnly { .. } => libc::EBADF,
            Error::DirectRefused { .. } | Error::UringRefused { .. } => libc::EOPNOTSUPP,
            Error::Shortened { .. } | Error::Forgotten { .. } | Error::CutMeanwhile { .. } => libc::ESTALE,
            Error::OutOfMemory(_) | Error::NoSwap { .. } | Error::NoRoomForTables { .. } => libc::ENOMEM,
            Error::FaultsRefused { .. } => libc::EOPNOTSUPP,
            Error::SwapIo { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
            Error::Config(ConfigError::Exists(_)) => libc::EEXIST,
            Error::Pinned { .. } => libc::EBUSY,
            Error::TooLong { .. } => libc::EFBIG,
            Error::Locked { .. } => libc::EAGAIN,
            Error::ChangedOutside { .. } => libc::ESTALE,
            Error::TooManyFiles { .. } | Error::TooManyHandles { .. } => libc::ENFILE,
            Error::File(FileError::NoSuchFile(_) | FileError::NoSuchGroup { .. }) => libc::ENOENT,
            Error::File(FileError::NotPermitted(_)) => libc::EACCES,
            Error::File(FileError::Busy { .. }) => libc::EBUSY,
            Error::Poisoned => libc::ENOTRECOVERABLE,
            Error::BeyondEnd { .. }
            | Error::NoRegularFile { .. }
            | Error::BudgetTooSmall { .. }
            | Error::BudgetTooLarge { .. }
            | Error::BudgetBeyondArena { .. }
            | Error::Zswap(_)
            | Error::Nodes(_)
            | Error::NoSuchNode { .. }
            | Error::Config(_)
            | Error::File(_) => libc::EINVAL,
            _ => libc::EIO,
        };
        Failure { errno, text: error.to_string() }
    }
}

/// Runs a call: what it returns, or the error, negated, whose text the thread may ask for. A panic is an error like others.
pub(crate) fn outcome(act: impl FnOnce() -> Result<i64, Failure>) -> i64 {
    let failure = match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(libc::ENOTRECOVERABLE, "the library has panicked; help: build another cache"),
    };
    let errno = failure.errno;
    // A path may have any byte but this one, and a text of C ends there.
    let text = CString::new(failure.text.replace('\0', "?")).unwrap_or_default();
    // A thread that is ending has no caller left.
    let _ = LAST.try_with(|last| *last.borrow_mut() = (errno, text));
    -i64::from(errno)
}

/// The same where the number is an `int`.
pub(crate) fn outcome_int(act: impl FnOnce() -> Result<i64, Failure>) -> c_int {
    outcome(act) as c_int
}

/// The text of an error that a call has returned.
pub(crate) fn strerror(error: i64) -> *const c_char {
    let errno = error.saturating_neg();
    LAST.try_with(|last| {
        let (known, text) = &*last.borrow();
        (errno != 0 && i64::from(*known) == errno).then(|| text.as_ptr())
    })
    .ok()
    .flatten()
    .unwrap_or_else(|| general(errno).as_ptr())
}

fn general(errno: i64) -> &'static CStr {
    match c_int::try_from(errno).unwrap_or(-1) {
        ..=0 => c"no error",
        libc::EINVAL => c"an argument, setting or name that can't be",
        libc::ENOENT => c"no such file or group",
        libc::EACCES => c"not allowed",
        libc::EEXIST => c"there is a group of this name",
        libc::EOPNOTSUPP => c"no direct I/O on this file system, or no io_uring for this process",
        libc::ENFILE => c"more files are open than the cache was built for",
        libc::EBADF => c"the file is open for reading only",
        libc::EIO => c"the device has failed; dirty pages stay in memory",
        libc::ENOSPC => c"the device is full: make room, and dirty pages are written",
        libc::EDQUOT => c"the disk quota is used up: make room, and dirty pages are written",
        libc::EFBIG => c"longer than the file system, the process's limit or any file allows",
        libc::ENOMEM => c"no memory for a page, and none to be had",
        libc::EBUSY => c"pages are held that have to go: put some back",
        libc::EAGAIN => c"another cache or process has the file open for writing",
        libc::ESTALE => c"the file was forgotten, or another process has changed it: open it again",
        libc::ENOTRECOVERABLE => c"the cache can't be used any more: build another one",
        _ => c"the system has refused something",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(error: i64) -> String {
        // SAFETY: `strerror` returns a text that ends, and lasts until this thread's next failure.
        unsafe { CStr::from_ptr(strerror(error)) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn setting_that_can_not_be_is_einval() {
        let beyond = Error::BudgetBeyondArena { budget: 2, most: 1 };
        for error in [Error::Zswap("there is no compressor"), beyond] {
            assert_eq!(Failure::from(error).errno, libc::EINVAL);
        }
    }

    #[test]
    fn sync_on_a_full_device_keeps_its_errno() {
        let sync = |errno| Error::Sync {
            path: "data".into(),
            failed: 1,
            lost: 0,
            source: std::io::Error::from_raw_os_error(errno),
        };
        for (device, told) in [
            (libc::ENOSPC, libc::ENOSPC),
            (libc::EDQUOT, libc::EDQUOT),
            (libc::EFBIG, libc::EFBIG),
            (libc::EIO, libc::EIO),
            (libc::EINVAL, libc::EIO),
        ] {
            assert_eq!(Failure::from(sync(device)).errno, told);
        }
    }

    #[test]
    fn the_text_of_the_last_failure_of_the_thread_is_its_own_and_that_of_others_is_general() {
        let failed = outcome(|| Err(Failure::new(libc::ENOENT, "no a\0b")));
        assert_eq!(failed, -i64::from(libc::ENOENT));
        assert_eq!(said(failed), "no a?b");
        assert_eq!(said(-i64::from(libc::ESTALE)), general(libc::ESTALE.into()).to_str().expect("UTF-8"));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(said(failed), "no such file or group"));
        });
    }

    #[test]
    fn a_panic_is_an_error_and_no_error_has_a_text_too() {
        let failed = outcome(|| panic!("as a test"));
        assert_eq!(failed, -i64::from(libc::ENOTRECOVERABLE));
        assert!(said(failed).contains("panicked"));
        for any in [0, 7, i64::MIN, i64::MAX] {
            assert!(!said(any).is_empty());
        }
    }
}
