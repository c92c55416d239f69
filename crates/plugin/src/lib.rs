//! Policies that are shared libraries: a table of C functions as a [`Policy`], and a last word of a policy that ends the program.
//!
//! ```text
//!   mine.so ──pageout_policy()──► table: version, own size, calls ──► Library::make(seed) ──► Loaded: Policy
//! ```
//! The table is that of `include/pageout_policy.h`. It contains its version, and another version is rejected. It also contains its size, so that
//! calls can be added at its end: calls beyond the end of an older table are missing.
//!
//! A library runs with the rights of the program's user, and nothing here can restrict it: the user is asked before one is loaded.
//!
//! Each unsafe block states its basis: a guarantee of Rust and the system, or an obligation of a library in the header. A library that violates the
//! header has undefined behaviour, as in C. Properties that can be checked are checked.

#![allow(unsafe_code)] // neither can a library of C functions be called otherwise, nor a handler have a stack of its own

#[cfg(unix)]
use std::ffi::c_int;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
#[cfg(unix)]
use std::sync::OnceLock;
#[cfg(unix)]
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

#[cfg(unix)]
use pageout_policy::Call;
use pageout_policy::{Arrival, Cause, End, PageId, Policy, Slot, Uses};

/// The header for those who write such a library.
pub const HEADER: &str = include_str!("../include/pageout_policy.h");

/// The version of the table that is known here.
const VERSION: u32 = 1;
/// So long may a text of a library be.
const TEXT: usize = 512;

/// `struct pageout_arrival`.
#[repr(C)]
struct CArrival {
    page: u64,
    at_ns: u64,
    distance: u64,
    slot: u32,
    cause: u32,
    write: u32,
    unused: u32,
}

type Tell = unsafe extern "C" fn(to: *mut c_void, name: *const c_char, value: f64);

/// `struct pageout_policy`. Calls that have to be there are options as well: a library may have left one out.
#[repr(C)]
#[derive(Clone, Copy)]
struct Table {
    version: u32,
    size: u32,
    uses: u32,
    unused: u32,
    make: Option<unsafe extern "C" fn(u64) -> *mut c_void>,
    drop: Option<unsafe extern "C" fn(*mut c_void)>,
    resized: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    added: Option<unsafe extern "C" fn(*mut c_void, *const CArrival)>,
    used: Option<unsafe extern "C" fn(*mut c_void, *const u32, usize)>,
    nominate: Option<unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> u32>,
    ended: Option<unsafe extern "C" fn(*mut c_void, u32, u64, u32)>,
    cold: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    figures: Option<unsafe extern "C" fn(*const c_void, Tell, *mut c_void)>,
    why: Option<unsafe extern "C" fn(*const c_void, u32, *mut c_char, usize) -> usize>,
    check: Option<unsafe extern "C" fn(*const c_void, *mut c_char, usize) -> usize>,
}

/// The calls that have to be there.
#[derive(Clone, Copy)]
struct Calls {
    make: unsafe extern "C" fn(u64) -> *mut c_void,
    drop: unsafe extern "C" fn(*mut c_void),
    resized: unsafe extern "C" fn(*mut c_void, u32),
    added: unsafe extern "C" fn(*mut c_void, *const CArrival),
    used: unsafe extern "C" fn(*mut c_void, *const u32, usize),
    nominate: unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> u32,
    ended: unsafe extern "C" fn(*mut c_void, u32, u64, u32),
}

/// The reason why a library is not a policy.
#[derive(Debug)]
pub struct NotLoaded {
    path: PathBuf,
    why: String,
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for NotLoaded {}

/// A library that is loaded, for the life of the process.
#[derive(Clone, Copy)]
pub struct Library {
    table: Table,
    calls: Calls,
    uses: Uses,
}

impl Library {
    /// Loads a library and reads its table. Code of it runs from here on. Errors: it can't be loaded, or is not a policy of this version.
    pub fn load(path: &Path) -> Result<Library, NotLoaded> {
        let wrong = |why: String| NotLoaded { path: path.to_owned(), why };
        // A name without a folder would be looked for among the system's libraries.
        let whole = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
        // SAFETY: the effects of loading a library can't be known. The caller was warned that it runs with their rights.
        let library = unsafe { libloading::Library::new(&whole) };
        let library = library.map_err(|error| {
            wrong(format!(
                "it can't be loaded: {}\nhelp: `pageout new-policy NAME --c` writes a library that can",
                reason(&error)
            ))
        })?;
        // Never unloaded: its code may be called as long as there is a policy of it.
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        // SAFETY: the header says that what is called so has this type.
        let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const Table>(b"pageout_policy\0") };
        let entry = entry.map_err(|_| wrong("it does not export a function pageout_policy\nhelp: `pageout new-policy NAME --c` writes a library that does".to_owned()))?;
        // SAFETY: it takes nothing and returns a pointer; the header demands no more of it.
        let table = NonNull::new(unsafe { entry() }.cast_mut());
        let table = table.ok_or_else(|| wrong("pageout_policy() returns NULL".to_owned()))?;
        let found = read(table).map_err(wrong)?;
        let missing = |call: &str| wrong(format!("its table lacks the call `{call}`"));
        let calls = Calls {
            make: found.make.ok_or_else(|| missing("make"))?,
            drop: found.drop.ok_or_else(|| missing("drop"))?,
            resized: found.resized.ok_or_else(|| missing("resized"))?,
            added: found.added.ok_or_else(|| missing("added"))?,
            used: found.used.ok_or_else(|| missing("used"))?,
            nominate: found.nominate.ok_or_else(|| missing("nominate"))?,
            ended: found.ended.ok_or_else(|| missing("ended"))?,
        };
        let uses = match found.uses {
            0 => Uses::Each,
            1 => Uses::Late,
            2 => Uses::Never,
            other => return Err(wrong(format!("uses = {other}: expected one of PAGEOUT_USES_..., 0 to 2"))),
        };
        Ok(Library { table: found, calls, uses })
    }

    /// A policy of it.
    pub fn make(&self, seed: u64) -> Box<dyn Policy> {
        // SAFETY: `make` may be called at any time with any seed.
        let of = unsafe { (self.calls.make)(seed) };
        Box::new(Loaded { library: *self, of, victims: Vec::new() })
    }
}

/// Why the system did not load it: the error says that, and its source why.
fn reason(error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// A copy of a library's table, of the size of this version: calls beyond its end are missing.
fn read(table: NonNull<Table>) -> Result<Table, String> {
    let table = table.as_ptr().cast::<u8>().cast_const();
    if !table.cast::<Table>().is_aligned() {
        return Err("the address of its table is invalid".to_owned());
    }
    // SAFETY: every version of the header begins with version and size, four bytes each, and the table stays where it is.
    let [version, size] = unsafe { table.cast::<[u32; 2]>().read() };
    if version != VERSION {
        return Err(format!(
            "its table has version {version}, but this program supports version {VERSION}\nhelp: build it with the pageout_policy.h of this program (`pageout new-policy NAME --c` writes it)"
        ));
    }
    let least = std::mem::offset_of!(Table, cold);
    if (size as usize) < least {
        return Err(format!(
            "its table has {size} bytes by its own field, but version {VERSION} needs at least {least}"
        ));
    }
    let mut whole = std::mem::MaybeUninit::<Table>::zeroed();
    let there = (size as usize).min(size_of::<Table>());
    // SAFETY: the table has this many bytes by its own field, and the copy can hold them; the two are different memory.
    unsafe { std::ptr::copy_nonoverlapping(table, whole.as_mut_ptr().cast::<u8>(), there) };
    // SAFETY: numbers may have any value, and an option of a function is a pointer, where all zeroes are none.
    Ok(unsafe { whole.assume_init() })
}

/// A policy of a library.
struct Loaded {
    library: Library,
    /// The handle for the library's calls, which is passed on and not read here.
    of: *mut c_void,
    /// Room for what it nominates.
    victims: Vec<u32>,
}

// SAFETY: the header says that calls of one policy may come from several threads, one after the other. `&Loaded` is not shared between threads.
unsafe impl Send for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: `of` is what `make` has returned, and no call comes after this one.
        unsafe { (self.library.calls.drop)(self.of) }
    }
}

impl Loaded {
    /// A text that a call of the library writes.
    fn text(call: impl FnOnce(*mut c_char, usize) -> usize) -> Option<String> {
        let mut text = [0_u8; TEXT];
        let length = call(text.as_mut_ptr().cast(), TEXT).min(TEXT);
        (length > 0).then(|| String::from_utf8_lossy(&text[..length]).into_owned())
    }
}

impl Policy for Loaded {
    fn uses(&self) -> Uses {
        self.library.uses
    }

    fn resized(&mut self, capacity: u32) {
        // SAFETY: `of` is what `make` has returned, as in all calls below.
        unsafe { (self.library.calls.resized)(self.of, capacity) }
    }

    fn added(&mut self, arrival: &Arrival) {
        let (cause, distance) = match arrival.cause {
            Cause::Demand => (0, 0),
            Cause::Readahead => (1, 0),
            Cause::Refault { distance } => (2, distance),
        };
        let told = CArrival {
            page: arrival.page.0,
            at_ns: arrival.at_ns,
            distance,
            slot: arrival.slot.0,
            cause,
            write: u32::from(arrival.write),
            unused: 0,
        };
        // SAFETY: the arrival is there during the call, and the header gives it to read only.
        unsafe { (self.library.calls.added)(self.of, &raw const told) }
    }

    fn used(&mut self, slots: &[Slot]) {
        // SAFETY: a slot is a number and nothing else (`repr(transparent)`), and there are so many of them during the call.
        unsafe { (self.library.calls.used)(self.of, slots.as_ptr().cast(), slots.len()) }
    }

    fn nominate(&mut self, want: u32, victims: &mut Vec<Slot>) {
        self.victims.clear();
        self.victims.resize(want as usize, u32::MAX);
        // SAFETY: the buffer holds `want` numbers, and the header says that it writes no more.
        let count = unsafe { (self.library.calls.nominate)(self.of, want, self.victims.as_mut_ptr()) };
        let written = self.victims.iter().take(count as usize);
        victims.extend(written.map(|&slot| Slot(slot)));
        // A count beyond the buffer is as wrong as such names, and is reported the same way.
        if count > want {
            victims.push(Slot(u32::MAX));
        }
    }

    fn ended(&mut self, slot: Slot, page: PageId, end: End) {
        let end = match end {
            End::Evicted => 0,
            End::Gone => 1,
            End::Spared => 2,
        };
        // SAFETY: as above.
        unsafe { (self.library.calls.ended)(self.of, slot.0, page.0, end) }
    }

    fn cold(&mut self, slot: Slot) {
        if let Some(cold) = self.library.table.cold {
            // SAFETY: as above.
            unsafe { cold(self.of, slot.0) }
        }
    }

    fn figures(&self, tell: &mut dyn FnMut(&str, f64)) {
        let Some(figures) = self.library.table.figures else { return };
        let mut tell = tell;
        // SAFETY: `to` is what it is to be handed back with, during this call; `told` takes it as what it is.
        unsafe { figures(self.of, told, (&raw mut tell).cast()) }
    }

    fn why(&self, slot: Slot) -> Option<String> {
        let why = self.library.table.why?;
        // SAFETY: the buffer has this size, and the header says that it writes no more.
        Loaded::text(|text, room| unsafe { why(self.of, slot.0, text, room) })
    }

    fn check(&self) -> Result<(), String> {
        let Some(check) = self.library.table.check else { return Ok(()) };
        // SAFETY: the buffer has this size, and the header says that it writes no more.
        Loaded::text(|text, room| unsafe { check(self.of, text, room) }).map_or(Ok(()), Err)
    }
}

/// Takes a figure from a library.
unsafe extern "C" fn told(to: *mut c_void, name: *const c_char, value: f64) {
    if name.is_null() {
        return;
    }
    // SAFETY: `to` is the argument of `figures`: it exists during that call, and no other code uses it meanwhile.
    let tell = unsafe { &mut *to.cast::<&mut dyn FnMut(&str, f64)>() };
    // SAFETY: the header has it be a text that ends with a zero, and stay during the call.
    let name = unsafe { CStr::from_ptr(name) };
    tell(&name.to_string_lossy(), value);
}

/// Signals by which a policy ends the program.
#[cfg(unix)]
const ENDS: [(c_int, &str); 5] = [
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGSEGV, "SIGSEGV"),
];

/// The exit code of a program that a policy has ended.
#[cfg(unix)]
static CODE: AtomicI32 = AtomicI32::new(0);
/// What was done at each of the signals before.
#[cfg(unix)]
static BEFORE: OnceLock<[libc::sigaction; ENDS.len()]> = OnceLock::new();

/// Reports a policy that ends the program, with its current call, before the end: by abort(3) or exit(3), by an access to memory that is not its own,
/// or by a stack overflow. The program then ends with `code`.
#[cfg(unix)]
pub fn name_who_ends_the_program(code: i32) {
    CODE.store(code, Relaxed);
    // SAFETY: all zeroes are a value of it: no handler, no flags, no signals masked.
    let none: libc::sigaction = unsafe { std::mem::zeroed() };
    let before = ENDS.map(|(signal, _)| {
        let mut before = none;
        // SAFETY: the result has a place, and nothing is changed.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut before) };
        before
    });
    if BEFORE.set(before).is_err() {
        return;
    }
    let mut action = none;
    action.sa_sigaction = last_word as extern "C" fn(c_int) as usize;
    // A stack that has overflowed can't run a handler: Rust's threads have another stack for that.
    action.sa_flags = libc::SA_ONSTACK;
    for (signal, _) in ENDS {
        // SAFETY: the action exists during the call, and its handler does only what a handler may. It reads atomics and a plain variable of its
        // thread, writes into its own stack, and calls sigaction(2), write(2) and _exit(2). It neither locks nor allocates, and can't panic.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
    // SAFETY: the function is there as long as the program.
    unsafe { libc::atexit(last_word_at_exit) };
}

/// When it returns, the failing instruction is repeated, or abort(3) continues, with the earlier handler.
#[cfg(unix)]
extern "C" fn last_word(signal: c_int) {
    let at = ENDS.iter().position(|(number, _)| *number == signal).unwrap_or(0);
    name_who_ends(format_args!("ended by {}", ENDS[at].1));
    if let Some(before) = BEFORE.get() {
        // SAFETY: what was there before may be there again.
        unsafe { libc::sigaction(signal, &raw const before[at], std::ptr::null_mut()) };
    }
}

#[cfg(unix)]
extern "C" fn last_word_at_exit() {
    // A library that is unloaded has not asked for it.
    if pageout_policy::doing_here().is_some_and(|doing| doing.call == Call::Unload) {
        return;
    }
    name_who_ends(format_args!("has called exit"));
}

/// Ends the program with a report if this thread is in a call of a policy.
#[cfg(unix)]
fn name_who_ends(how: fmt::Arguments) {
    let Some(doing) = pageout_policy::doing_here() else { return };
    let mut line = Line { text: [0; 256], length: 0 };
    let _ = fmt::Write::write_fmt(&mut line, format_args!("error: {doing}: {how}\n"));
    // SAFETY: this many bytes exist, and both calls may be made at any time; the second does not return.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.text.as_ptr().cast(), line.length);
        libc::_exit(CODE.load(Relaxed))
    }
}

/// Ends the program immediately, without any exit handlers.
pub fn end_at_once(code: i32) -> ! {
    #[cfg(unix)]
    // SAFETY: it may be called at any time, and does not return.
    unsafe {
        libc::_exit(code)
    }
    #[cfg(not(unix))]
    std::process::exit(code)
}

/// A text on the stack; what does not fit is left out.
#[cfg(unix)]
struct Line {
    text: [u8; 256],
    length: usize,
}

#[cfg(unix)]
impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.text[self.length..];
        let fits = text.len().min(room.len());
        room[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}
