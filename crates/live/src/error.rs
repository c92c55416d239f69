//! Errors of the cache, and the remedies.

use std::path::PathBuf;
use std::{fmt, io};

use pageout_engine::{ConfigError, FileError, OomReport};

/// The reason why an operation failed. The page cache is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system has rejected a call.
    Io {
        /// The operation.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// The page to read, if it was one.
        page: Option<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// The file system does not support reads that bypass its own cache (`O_DIRECT`).
    DirectRefused {
        /// The file.
        path: PathBuf,
    },
    /// It is a folder, a device, a pipe or a socket: only regular files are cached.
    NoRegularFile {
        /// The path that was opened.
        path: PathBuf,
    },
    /// The system does not permit io_uring, which was required ([`crate::Backend::Uring`]).
    UringRefused {
        /// The system's error.
        source: io::Error,
    },
    /// Some writes to a file are not on its device. They stay in memory, dirty and readable, and are retried; each sync of the file fails until
    /// [`crate::File::acknowledge`].
    Sync {
        /// The file.
        path: PathBuf,
        /// Pages whose last write failed, or that the device has accepted and failed to store. None if a later try succeeded.
        failed: u64,
        /// Pages that the device has accepted and failed to store, and that had left memory by then: only their writer may still have the contents.
        lost: u64,
        /// The system's last error.
        source: io::Error,
    },
    /// The file was opened for reading ([`crate::Open::read`]).
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file has become shorter than it was when it was opened.
    Shortened {
        /// The file.
        path: PathBuf,
        /// The page that is missing.
        page: u64,
    },
    /// A read, or a guard, beyond the end of its file; or a call for bytes behind the end of its region.
    BeyondEnd {
        /// The file, or the name of the region.
        path: PathBuf,
        /// The end of the access.
        end: u64,
        /// Bytes of the file or region.
        bytes: u64,
    },
    /// The regions would be larger than memory, and there is no swap file for the rest ([`crate::Builder::swap_file`]).
    NoSwap {
        /// Total size of all regions in bytes, with the new one.
        bytes: u64,
        /// Limit in bytes: the size of all frames.
        most: u64,
    },
    /// The system does not permit a call that mapped regions need ([`crate::Memory::map_region`]).
    FaultsRefused {
        /// The call.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A page of a region is in swap and can't be read there. Each access to it reads again, and fails unless that read succeeds, until the page is
    /// written completely or discarded.
    SwapIo {
        /// The name of the region.
        region: PathBuf,
        /// The page.
        page: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// No memory for a page, and none can be reclaimed. An access waits first. It waits as long as pages of its group are being read, 66 ms for pages
    /// that others hold, and a tenth of a second for writes that can't begin while a guard holds their page.
    OutOfMemory(Box<OomReport>),
    /// Guards ([`crate::PageRef`], [`crate::PageMut`]) hold a page that a call needs for itself, or too many pages.
    Pinned {
        /// The file, or the name of the region.
        path: PathBuf,
        /// The page that is held; none if guards hold too many pages. A call waits for the guards of other threads, at most for
        /// [`crate::Builder::guard_wait`]. It does not wait for a guard of its own thread, or for a thread that waits for a guard of this one.
        page: Option<u64>,
        /// Guards that hold pages.
        pinned: u64,
        /// Maximum number of guards: a quarter of all frames.
        most: u64,
    },
    /// The file was shortened or reloaded, or the region got another length, during this call. So its results are not of a single point in time. The same call
    /// may be repeated.
    CutMeanwhile {
        /// The file, or the name of the region.
        path: PathBuf,
    },
    /// The length exceeds that of any file or region.
    TooLong {
        /// The file, or the name of the region.
        path: PathBuf,
        /// The requested length, in bytes.
        bytes: u64,
        /// The maximum length, in bytes.
        most: u64,
    },
    /// Another [`crate::Memory`], of this process or another, has the file open for writing: it has an exclusive flock(2).
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Another program has written the file while this cache has dirty pages of it.
    ChangedOutside {
        /// The file.
        path: PathBuf,
    },
    /// The budget is larger than the machine's memory.
    BudgetTooLarge {
        /// The budget, in bytes.
        budget: u64,
        /// Bytes of memory that the machine has.
        memory: u64,
    },
    /// The budget is larger than the memory that was reserved when the cache was built ([`crate::Builder::budget_max`]).
    BudgetBeyondArena {
        /// The budget, in bytes.
        budget: u64,
        /// The largest budget, in bytes.
        most: u64,
    },
    /// The budget is too small for its contents.
    BudgetTooSmall {
        /// The minimum budget, in bytes.
        least: u64,
    },
    /// Memory that is not available as requested ([`crate::Builder::node`]).
    Nodes(&'static str),
    /// Compression that is not available as requested ([`crate::Builder::zswap`]).
    Zswap(&'static str),
    /// The machine has no such node.
    NoSuchNode {
        /// The requested node.
        node: u32,
        /// The nodes that have memory, as the system lists them.
        nodes: String,
    },
    /// More bytes of files and regions are open than announced ([`crate::Builder::files`]).
    TooManyFiles {
        /// Bytes that would be open.
        bytes: u64,
        /// The limit, in bytes.
        most: u64,
    },
    /// The tables of files and regions do not fit in the budget. The file would be too long, or the access would add to the tables. It happens if no size
    /// was declared ([`crate::Builder::files`]).
    NoRoomForTables {
        /// Bytes that the tables would take.
        bytes: u64,
        /// The limit, in bytes.
        most: u64,
    },
    /// No number is left for a further file handle.
    TooManyHandles {
        /// Maximum number of handles.
        most: u32,
    },
    /// An invalid setting, name or number.
    Config(ConfigError),
    /// A kernel file that can't be read or written.
    File(FileError),
    /// The file was forgotten ([`crate::File::forget`]).
    Forgotten {
        /// The file.
        path: PathBuf,
    },
    /// The engine has panicked before, or this is the child of a fork: the cache is unusable.
    Poisoned,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        match self {
            Error::Io { op, path, page: Some(page), source } => {
                write!(f, "{op} of page {page} of {}: {source}", path.display())
            }
            Error::Io { op, path, page: None, source } => write!(f, "{op} of {}: {source}", path.display()),
            Error::DirectRefused { path } => write!(
                f,
                "{}: its file system does not support reads that bypass the page cache (O_DIRECT); help: open it with `buffered(true)`, with which its pages may be in memory twice",
                path.display()
            ),
            Error::NoRegularFile { path } => {
                write!(f, "{} is not a regular file, and only regular files are cached", path.display())
            }
            Error::UringRefused { source } => write!(
                f,
                "this process may not use io_uring ({source}), as in containers or with `kernel.io_uring_disabled`; help: build the cache with `backend(Backend::Any)`, which reads by threads instead"
            ),
            Error::Sync { path, failed, lost, source } => {
                write!(f, "sync of {}: {source}", path.display())?;
                if *failed > 0 {
                    write!(f, "; {failed} pages are not on the device: they stay in memory and are retried")?;
                }
                if *lost > 0 {
                    write!(
                        f,
                        "; {lost} pages had left memory before the device failed to store them, and may be lost: write them again"
                    )?;
                }
                write!(f, "; help: repair the device or make space on it, call `acknowledge`, and sync again")
            }
            Error::ReadOnly { path } => {
                write!(
                    f,
                    "{} was opened for reading; help: open it with `Open::read_write()`",
                    path.display()
                )
            }
            Error::Shortened { path, page } => write!(
                f,
                "{}: another process has shortened the file: page {page} is missing; help: call `reload`",
                path.display()
            ),
            Error::BeyondEnd { path, end, bytes } => {
                write!(f, "byte {end} of {} is beyond its end: the file has {bytes} bytes", path.display())
            }
            Error::OutOfMemory(report) => report.fmt(f),
            Error::NoSwap { bytes, most } => write!(
                f,
                "regions would have {} MiB, and memory has {} MiB; help: give the cache a swap file with `swap_file(folder, bytes)`, or a larger budget",
                mib(*bytes),
                mib(*most)
            ),
            Error::FaultsRefused { call, source } => write!(
                f,
                "the system permits no mapped regions: {call}: {source}; help: use `Memory::region`, or Linux 6.7 with a seccomp profile that permits userfaultfd(2) and `sysctl vm.unprivileged_userfaultfd=1`"
            ),
            Error::SwapIo { region, page, source } => write!(
                f,
                "page {page} of {} can't be read from swap: {source}; help: write all of the page, or discard it with `RegionAdvice::DontNeed`",
                region.display()
            ),
            Error::Pinned { path, page: Some(page), .. } => {
                write!(f, "page {page} of {} is held by a guard; help: drop the guard first", path.display())
            }
            Error::Pinned { page: None, pinned, most, .. } => write!(
                f,
                "{pinned} pages are held by guards (limit {most}); help: drop guards, or use `read_at` and `write_at`, which hold none"
            ),
            Error::CutMeanwhile { path } => write!(
                f,
                "{} got another length, or was reloaded, during the call; help: repeat the call",
                path.display()
            ),
            Error::TooLong { path, bytes, most } => {
                write!(
                    f,
                    "{} would have {bytes} bytes; the maximum length of a file is {most}",
                    path.display()
                )
            }
            Error::Locked { path } => write!(
                f,
                "{} is open for writing in another cache, in this process or another one; help: close or forget it there, or open it with `own_locks(true)` if the callers lock it themselves",
                path.display()
            ),
            Error::ChangedOutside { path } => write!(
                f,
                "{} was written by another program while this cache holds dirty pages of it; help: call `reload` to use the file on disk, or `sync_data` to overwrite it",
                path.display()
            ),
            Error::BudgetTooLarge { budget, memory } => write!(
                f,
                "the budget of {} MiB exceeds the memory of this machine, {} MiB",
                mib(*budget),
                mib(*memory)
            ),
            Error::BudgetBeyondArena { budget, most } => write!(
                f,
                "the budget of {} MiB exceeds the {} MiB that were reserved when the cache was built; help: build it with `budget_max({budget})`",
                mib(*budget),
                mib(*most)
            ),
            Error::BudgetTooSmall { least } => {
                write!(f, "the budget is too small: the minimum is {} MiB", mib(*least))
            }
            Error::Nodes(why) | Error::Zswap(why) => f.write_str(why),
            Error::NoSuchNode { node, nodes } => write!(
                f,
                "this machine has no memory on NUMA node {node}, only on {nodes}; help: name one of these, or use `emulated` slow memory"
            ),
            Error::TooManyFiles { bytes, most } => write!(
                f,
                "{} MiB of files and regions would be open, but the limit is {} MiB; help: call `files({bytes})` when the cache is built, or forget some files",
                mib(*bytes),
                mib(*most)
            ),
            Error::NoRoomForTables { bytes, most } => write!(
                f,
                "tables of files and regions would take {} KiB, but the budget has {} KiB for them; help: enlarge the budget, or forget some files",
                bytes.div_ceil(1024),
                most / 1024
            ),
            Error::TooManyHandles { most } => write!(
                f,
                "{most} file handles are open, which is the limit; help: clone a handle of the same file, or drop some"
            ),
            Error::Config(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
            Error::Forgotten { path } => write!(f, "{} was forgotten: open it again", path.display()),
            Error::Poisoned => write!(
                f,
                "this page cache is unusable: its engine has panicked, or the process is a fork of the one that built it; help: build another cache"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Config(error) => Some(error),
            Error::File(error) => Some(error),
            other => other.io_source().map(|source| source as _),
        }
    }
}

impl Error {
    /// Returns the system's error number (errno), if the error is one that the system has returned.
    ///
    /// ```
    /// let memory = pageout::Memory::builder().budget(8 << 20).build()?;
    /// let error = memory.open("/no/such/file", pageout::Open::read()).expect_err("there is no such file");
    /// assert_eq!(error.raw_os_error(), Some(2)); // ENOENT
    /// # Ok::<(), pageout::Error>(())
    /// ```
    pub fn raw_os_error(&self) -> Option<i32> {
        self.io_source().and_then(io::Error::raw_os_error)
    }

    /// Returns the kind of the error in terms of the standard library. If the system has returned the error, the kind is that of its error number.
    pub fn kind(&self) -> io::ErrorKind {
        use io::ErrorKind;

        match self {
            Error::Io { source, .. }
            | Error::Sync { source, .. }
            | Error::SwapIo { source, .. }
            | Error::FaultsRefused { source, .. }
            | Error::UringRefused { source } => source.kind(),
            Error::DirectRefused { .. } => ErrorKind::Unsupported,
            Error::ReadOnly { .. } | Error::File(FileError::NotPermitted(_)) => ErrorKind::PermissionDenied,
            Error::Shortened { .. } | Error::BeyondEnd { .. } => ErrorKind::UnexpectedEof,
            Error::NoSwap { .. } | Error::OutOfMemory(_) | Error::NoRoomForTables { .. } => {
                ErrorKind::OutOfMemory
            }
            Error::Pinned { .. } | Error::File(FileError::Busy { .. }) => ErrorKind::ResourceBusy,
            // The call may be repeated, which `Read::read_exact` and `Write::write_all` do for this kind.
            Error::CutMeanwhile { .. } => ErrorKind::Interrupted,
            Error::TooLong { .. } => ErrorKind::FileTooLarge,
            Error::Locked { .. } => ErrorKind::WouldBlock,
            Error::ChangedOutside { .. } | Error::Forgotten { .. } => ErrorKind::StaleNetworkFileHandle,
            Error::TooManyFiles { .. } | Error::TooManyHandles { .. } => ErrorKind::QuotaExceeded,
            Error::File(FileError::NoSuchFile(_) | FileError::NoSuchGroup { .. }) => ErrorKind::NotFound,
            Error::Poisoned | Error::File(FileError::Io(_)) => ErrorKind::Other,
            Error::NoRegularFile { .. }
            | Error::BudgetTooLarge { .. }
            | Error::BudgetBeyondArena { .. }
            | Error::BudgetTooSmall { .. }
            | Error::Nodes(_)
            | Error::Zswap(_)
            | Error::NoSuchNode { .. }
            | Error::Config(_)
            | Error::File(_) => ErrorKind::InvalidInput,
        }
    }

    /// The system's error that this error reports.
    fn io_source(&self) -> Option<&io::Error> {
        match self {
            Error::Io { source, .. }
            | Error::Sync { source, .. }
            | Error::SwapIo { source, .. }
            | Error::FaultsRefused { source, .. }
            | Error::UringRefused { source } => Some(source),
            _ => None,
        }
    }
}

/// Keeps the system's error number ([`io::Error::raw_os_error`]) if the system has returned the error. Such an [`io::Error`] does not name the
/// file and the page. Any other error becomes the source of an [`io::Error`] of its kind ([`Error::kind`]), and [`io::Error::downcast`] returns it.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error.raw_os_error() {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::new(error.kind(), error),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Error {
        Error::Config(error)
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Error {
        Error::File(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> io::Error {
        io::Error::from_raw_os_error(libc::ENOSPC)
    }

    #[test]
    fn io_error_of_the_system_keeps_its_errno() {
        let path = || PathBuf::from("data");
        for error in [
            Error::Io { op: "a read", path: path(), page: None, source: full() },
            Error::Sync { path: path(), failed: 1, lost: 0, source: full() },
            Error::SwapIo { region: path(), page: 7, source: full() },
            Error::UringRefused { source: full() },
        ] {
            assert_eq!(error.raw_os_error(), Some(libc::ENOSPC), "{error}");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
            let converted = io::Error::from(error);
            assert_eq!(converted.raw_os_error(), Some(libc::ENOSPC));
            assert_eq!(converted.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn io_error_without_errno_keeps_kind_and_error() {
        let path = || PathBuf::from("data");
        let custom = io::Error::new(io::ErrorKind::InvalidData, "no number");
        for (error, kind) in [
            (
                Error::Io { op: "a read", path: path(), page: None, source: custom },
                io::ErrorKind::InvalidData,
            ),
            (Error::BeyondEnd { path: path(), end: 9, bytes: 8 }, io::ErrorKind::UnexpectedEof),
            (Error::CutMeanwhile { path: path() }, io::ErrorKind::Interrupted),
            (Error::Pinned { path: path(), page: None, pinned: 2, most: 1 }, io::ErrorKind::ResourceBusy),
            (Error::Locked { path: path() }, io::ErrorKind::WouldBlock),
            (Error::ReadOnly { path: path() }, io::ErrorKind::PermissionDenied),
            (Error::Poisoned, io::ErrorKind::Other),
        ] {
            let text = error.to_string();
            let converted = io::Error::from(error);
            assert_eq!((converted.kind(), converted.raw_os_error()), (kind, None), "{text}");
            assert_eq!(converted.to_string(), text);
            let back: Error = converted.downcast().expect("it is the source");
            assert_eq!(back.to_string(), text);
        }
    }
}
