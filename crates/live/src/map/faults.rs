//! Faults of a mapped region: userfaultfd(2), as the system permits it.
//!
//! ```text
//!   open       /dev/userfaultfd ─▶ userfaultfd(2) ─▶ the same for faults of user code only
//!   register   missing pages, and write protection: both for the memfd's pages
//!   a fault    a thread waits ─▶ next ─▶ fill (a page that was missing), or unprotect (a page that was clean) ─▶ it goes on
//! ```
//! The last form needs no privilege. With it, a system call that is handed memory of the region gets EFAULT if a page of it is missing.
//!
//! Numbers and layouts are those of ioctl_userfaultfd(2).

use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::{fmt, thread};

use pageout_engine::PAGE_SIZE;

const API: u64 = 0xaa;
/// The system tells faults of write protection from others, serves missing pages of memfds, and protects pages of those, be they mapped or not.
const FEATURES: u64 = 1 | 1 << 5 | 1 << 12;
/// A page can be marked as lost (Linux 6.6).
const FEATURE_POISON: u64 = 1 << 14;
const USER_MODE_ONLY: libc::c_int = 1;

const IOCTL_NEW: libc::c_ulong = 0xaa00;
const IOCTL_API: libc::c_ulong = 0xc018_aa3f;
const IOCTL_REGISTER: libc::c_ulong = 0xc020_aa00;
const IOCTL_UNREGISTER: libc::c_ulong = 0x8010_aa01;
const IOCTL_WAKE: libc::c_ulong = 0x8010_aa02;
const IOCTL_COPY: libc::c_ulong = 0xc028_aa03;
const IOCTL_WRITEPROTECT: libc::c_ulong = 0xc018_aa06;
const IOCTL_POISON: libc::c_ulong = 0xc020_aa08;

const MODE_MISSING: u64 = 1;
const MODE_WP: u64 = 2;
const COPY_WP: u64 = 2;
const WRITEPROTECT_WP: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
const FLAG_WRITE: u64 = 1;
const FLAG_PROTECTED: u64 = 1 << 1;

#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Span {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct Register {
    range: Span,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    bytes: u64,
    mode: u64,
    copied: i64,
}

#[repr(C)]
struct WriteProtect {
    range: Span,
    mode: u64,
}

#[repr(C)]
struct Poison {
    range: Span,
    mode: u64,
    updated: i64,
}

#[repr(C)]
struct Message {
    event: u8,
    _reserved: [u8; 7],
    flags: u64,
    address: u64,
    _rest: u64,
}

/// A call that the system refuses, and why.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) call: &'static str,
    pub(crate) error: io::Error,
}

impl Refused {
    pub(crate) fn new(call: &'static str, error: io::Error) -> Refused {
        Refused { call, error }
    }

    pub(crate) fn check<T>(call: &'static str, result: io::Result<T>) -> Result<T, Refused> {
        result.map_err(|error| Refused { call, error })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.error)
    }
}

/// How the system permits faults to be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Device,
    Call,
    UserModeOnly,
}

impl Form {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Form::Device => "faults by /dev/userfaultfd, of system calls too",
            Form::Call => "faults by userfaultfd(2), of system calls too",
            Form::UserModeOnly => {
                "faults by userfaultfd(2) of user code only: a system call that is handed a missing page gets EFAULT"
            }
        }
    }
}

/// A fault that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) address: usize,
    /// The access is a store.
    pub(crate) is_write: bool,
    /// The page did not exist, or was marked as missing. Otherwise it was write-protected.
    pub(crate) is_missing: bool,
}

/// What became of a request for a page of the user's mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    Yes,
    /// There is no such mapping any more.
    Gone,
}

/// A descriptor by which faults are served.
pub(crate) struct Faults {
    fd: OwnedFd,
    form: Form,
}

impl Faults {
    /// Opens one. `user_mode_only`: the form without privileges, although others may be permitted.
    pub(crate) fn open(user_mode_only: bool) -> Result<Faults, Refused> {
        let mut last = None;
        let forms = [Form::Device, Form::Call, Form::UserModeOnly];
        for form in forms.into_iter().filter(|&form| !user_mode_only || form == Form::UserModeOnly) {
            match open(form).and_then(|fd| agree(&fd).map(|()| fd)) {
                Ok(fd) => return Ok(Faults { fd, form }),
                Err(refused) => last = Some(refused),
            }
        }
        Err(last.expect("a form was tried"))
    }

    /// Opens one that serves no fault: the kernel fails its own accesses to missing pages.
    pub(crate) fn open_for_none() -> Result<Faults, Refused> {
        let fd = open_by(Form::UserModeOnly, 0).or_else(|refused| {
            // The call may be refused, and the device not.
            open_by(Form::Device, USER_MODE_ONLY).map_err(|_| refused)
        })?;
        agree(&fd)?;
        Ok(Faults { fd, form: Form::UserModeOnly })
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn register(&self, at: NonNull<u8>, bytes: usize) -> Result<(), Refused> {
        let range = Span { start: at.as_ptr().addr() as u64, bytes: bytes as u64 };
        let mut register = Register { range, mode: MODE_MISSING | MODE_WP, ioctls: 0 };
        Refused::check(
            "UFFDIO_REGISTER of a memfd, with write protection",
            self.call(IOCTL_REGISTER, &mut register),
        )
    }

    /// Ends the service of a range. A thread that waits for a fault in it continues.
    pub(crate) fn unregister(&self, at: NonNull<u8>, bytes: usize) {
        let mut range = Span { start: at.as_ptr().addr() as u64, bytes: bytes as u64 };
        // It fails where the user has unmapped the range: then no fault waits in it.
        let _ = self.call(IOCTL_UNREGISTER, &mut range);
    }

    /// Waits for a fault.
    pub(crate) fn next(&self) -> io::Result<Fault> {
        loop {
            let mut message = MaybeUninit::<Message>::zeroed();
            // SAFETY: the call writes at most as many bytes as the message has, to memory that is borrowed for that.
            let read =
                unsafe { libc::read(self.fd.as_raw_fd(), message.as_mut_ptr().cast(), size_of::<Message>()) };
            if read < 0 {
                let error = io::Error::last_os_error();
                if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) {
                    continue;
                }
                return Err(error);
            }
            // SAFETY: a message consists of integers, for which any bytes are valid, and was zeroes before the call.
            let message = unsafe { message.assume_init() };
            if message.event == EVENT_PAGEFAULT {
                return Ok(Fault {
                    address: message.address as usize,
                    is_write: message.flags & FLAG_WRITE != 0,
                    is_missing: message.flags & FLAG_PROTECTED == 0,
                });
            }
        }
    }

    /// Gives a missing page its contents, and wakes who waits for it. `protects`: the first store to it is a fault.
    pub(crate) fn fill(
        &self,
        page: usize,
        from: &[u8; PAGE_SIZE as usize],
        protects: bool,
    ) -> io::Result<Done> {
        let mut copy = Copy {
            to: page as u64,
            from: from.as_ptr().expose_provenance() as u64,
            bytes: PAGE_SIZE,
            mode: if protects { COPY_WP } else { 0 },
            copied: 0,
        };
        self.repeat(|faults| faults.call(IOCTL_COPY, &mut copy))
    }

    /// Makes the next store to a page a fault.
    pub(crate) fn protect(&self, page: usize) -> io::Result<Done> {
        self.write_protect(page, WRITEPROTECT_WP)
    }

    /// Permits stores to a page, and wakes who waits for that.
    pub(crate) fn unprotect(&self, page: usize) -> io::Result<Done> {
        self.write_protect(page, 0)
    }

    fn write_protect(&self, page: usize, mode: u64) -> io::Result<Done> {
        let range = || Span { start: page as u64, bytes: PAGE_SIZE };
        self.repeat(|faults| faults.call(IOCTL_WRITEPROTECT, &mut WriteProtect { range: range(), mode }))
    }

    /// Wakes the threads that wait for a page, which is now present.
    pub(crate) fn wake(&self, page: usize) -> io::Result<Done> {
        self.repeat(|faults| faults.call(IOCTL_WAKE, &mut Span { start: page as u64, bytes: PAGE_SIZE }))
    }

    /// Marks a missing page as lost: each access to it gets SIGBUS.
    pub(crate) fn poison(&self, page: usize) -> io::Result<Done> {
        let range = || Span { start: page as u64, bytes: PAGE_SIZE };
        self.repeat(|faults| faults.call(IOCTL_POISON, &mut Poison { range: range(), mode: 0, updated: 0 }))
    }

    /// Makes a call until the system has tried it.
    fn repeat(&self, mut call: impl FnMut(&Faults) -> io::Result<()>) -> io::Result<Done> {
        loop {
            match call(self) {
                Ok(()) => return Ok(Done::Yes),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => thread::yield_now(),
                    Some(libc::ENOENT | libc::ESRCH) => return Ok(Done::Gone),
                    _ => return Err(error),
                },
            }
        }
    }

    fn call<T>(&self, request: libc::c_ulong, argument: &mut T) -> io::Result<()> {
        ioctl(&self.fd, request, argument)
    }
}

fn ioctl<T>(fd: &OwnedFd, request: libc::c_ulong, argument: &mut T) -> io::Result<()> {
    // SAFETY: each request above is made with the structure that its number stands for, which is borrowed for the call. The memory that the kernel changes through addresses in it is memory of a mapped region, to which no reference of this crate leads.
    let told = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, std::ptr::from_mut(argument)) };
    if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn open(form: Form) -> Result<OwnedFd, Refused> {
    open_by(form, 0)
}

fn open_by(form: Form, flags: libc::c_int) -> Result<OwnedFd, Refused> {
    let (call, fd) = match form {
        Form::Device => {
            const CALL: &str = "open(2) of /dev/userfaultfd";
            let device = OpenOptions::new().read(true).write(true).open("/dev/userfaultfd");
            let device = Refused::check(CALL, device)?;
            // SAFETY: this request takes the flags of a new descriptor instead of an address.
            (CALL, unsafe { libc::ioctl(device.as_raw_fd(), IOCTL_NEW as _, libc::O_CLOEXEC | flags) })
        }
        Form::Call => ("userfaultfd(2)", userfaultfd(flags)),
        Form::UserModeOnly => ("userfaultfd(2) for user code only", userfaultfd(USER_MODE_ONLY)),
    };
    if fd < 0 {
        return Err(Refused::new(call, io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn userfaultfd(flags: libc::c_int) -> libc::c_int {
    // SAFETY: the call takes a number, and returns a descriptor.
    unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | flags) as libc::c_int }
}

/// Agrees with the system on what is needed.
fn agree(fd: &OwnedFd) -> Result<(), Refused> {
    let mut api = Api { api: API, features: FEATURES | FEATURE_POISON, ioctls: 0 };
    Refused::check("UFFDIO_API with write protection of memfds (Linux 6.6)", ioctl(fd, IOCTL_API, &mut api))
}
