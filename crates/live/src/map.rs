//! [`MappedRegion`]: anonymous memory that may be larger than the budget, by plain pointers. [live-3 2.3]
//!
//! ```text
//!   load, store   the page is in memory: the kernel's and the processor's work alone
//!                 it is missing, or clean and stored to: the thread waits ─▶ a handler of the region asks the engine ─▶ it goes on
//!   aging         the engine asks which pages were used: those that have a page-table entry, and then lose it      sample.rs
//!   eviction      stores become faults ─▶ the page is compressed or written ─▶ it leaves the memfd                   machine/mapped.rs
//! ```
//! Groups, budget, swap file and zswap are those of a [`crate::Region`], and so are the engine's decisions. The engine does not see hits. It learns of uses by
//! samples, page by page, without order and number.
//!
//! Faults are served by threads of the region. The thread that faults can't serve its own, in a SIGBUS handler: the engine takes locks and allocates memory, and
//! the code that was interrupted may hold the same ones.
//!
//! It needs userfaultfd with write protection of memfds, and PAGEMAP_SCAN (Linux 6.7). The system may refuse both, as in most containers. There are no huge
//! pages, and no slow memory.

mod faults; // faults, as the system permits to serve them
mod mapping; // one memfd, mapped twice
mod record; // what the engine learns of a region
mod sample; // which pages were used
mod tokens; // frames that stand for pages

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pageout_engine::{ConfigError, PAGE_SIZE};

use crate::error::Error;
use crate::memory::{Group, Shared};
use crate::region::{Region, RegionAdvice, RegionOptions};

pub(crate) use faults::{Done, Fault, Refused};
pub(crate) use mapping::Mapping;
pub use record::MapEvent;
pub(crate) use sample::Pagemap;
pub(crate) use tokens::{Moved, Place, SPACES_MAX, Tokens};

/// Threads that serve faults, unless set: each waits for one device read at a time.
const HANDLERS: usize = 4;
const HANDLERS_MAX: usize = 64;
/// Deep enough for a step of reclaim; only a small part is ever touched.
const STACK_BYTES: usize = 512 << 10;

/// Options of a mapped region ([`crate::Memory::map_region`]).
#[derive(Clone, Debug)]
#[must_use]
pub struct MapOptions {
    region: RegionOptions,
    name: String,
    handlers: usize,
    user_mode_only: bool,
}

impl Default for MapOptions {
    fn default() -> MapOptions {
        MapOptions {
            region: RegionOptions::new(),
            name: "region".to_owned(),
            handlers: HANDLERS,
            user_mode_only: false,
        }
    }
}

impl MapOptions {
    /// Returns the defaults: pages are charged to the root group, and four threads serve faults.
    pub fn new() -> MapOptions {
        MapOptions::default()
    }

    /// Charges its pages to a group.
    pub fn group(mut self, group: &Group) -> MapOptions {
        self.region = self.region.group(group);
        self
    }

    /// Sets the name of the region in errors. Default: `region`.
    pub fn name(mut self, name: &str) -> MapOptions {
        self.region = self.region.name(name);
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the number of threads that serve faults, 1 to 64. Default: 4. The number of pages that can be read from the swap file at the same time. At least
    /// one is needed: a thread can't serve its own faults.
    pub fn handlers(mut self, handlers: usize) -> MapOptions {
        self.handlers = handlers;
        self
    }

    /// Serves faults of user code only, although the process may serve those of system calls. Default: false. A system call that is handed a missing page
    /// then gets EFAULT.
    pub fn user_mode_only(mut self, user_mode_only: bool) -> MapOptions {
        self.user_mode_only = user_mode_only;
        self
    }
}

/// Anonymous memory that may be larger than the budget, and that any code accesses by plain pointers. When it is dropped, its pages and slots are free.
///
/// A fault that can't be served ends as SIGBUS, as for a file whose device fails. Reasons: a slot can't be read, or there is no memory and swap is full.
/// [`MappedRegion::take_error`] returns the reason. The page stays lost until it is discarded ([`MappedRegion::discard`]), or until
/// [`MappedRegion::retry_lost`] has the next access try again.
pub struct MappedRegion {
    /// The threads, until they are joined.
    handlers: Vec<JoinHandle<()>>,
    state: Arc<State>,
    region: Region,
}

/// What handlers share.
struct State {
    memory: Arc<Shared>,
    mapping: Arc<Mapping>,
    /// The region's number.
    number: usize,
    name: String,
    /// Handlers that have not ended.
    running: AtomicUsize,
    stops: AtomicBool,
    /// Why the last fault could not be served.
    error: Mutex<Option<Error>>,
}

impl MappedRegion {
    pub(crate) fn make(
        memory: &Arc<Shared>,
        bytes: u64,
        options: &MapOptions,
    ) -> Result<MappedRegion, Error> {
        if memory.slow.is_some() {
            return Err(Error::Nodes(
                "a mapped region can't have pages in slow memory; help: use `Memory::region`, or a cache without `Node::slow`",
            ));
        }
        let (handlers, max) = (options.handlers as u64, HANDLERS_MAX as u64);
        if !(1..=max).contains(&handlers) {
            let what = "threads that serve faults";
            return Err(ConfigError::OutOfRange { what, value: handlers, min: 1, max }.into());
        }
        let (pages, most) = (bytes.div_ceil(PAGE_SIZE).max(1), tokens::PAGES_MAX);
        if pages > most {
            return Err(Error::TooLong { path: options.name.clone().into(), bytes, most: most * PAGE_SIZE });
        }
        check_page_size().map_err(refused)?;
        let mapping = Arc::new(Mapping::new(pages, options.user_mode_only).map_err(refused)?);
        let made = MappedRegion::make_over(memory, bytes, options, &mapping);
        if made.is_err() {
            mapping.end();
        }
        made
    }

    fn make_over(
        memory: &Arc<Shared>,
        bytes: u64,
        options: &MapOptions,
        mapping: &Arc<Mapping>,
    ) -> Result<MappedRegion, Error> {
        let arena = &memory.machine.arena;
        arena.enable_tokens().map_err(refused)?;
        mapping.guard_alias(arena.tokens.alias_guard()).map_err(refused)?;
        let mut used = Vec::new();
        let sampled = arena.tokens.pagemap().sample(mapping, 0..1, &mut used);
        Refused::check("PAGEMAP_SCAN (Linux 6.7)", sampled).map_err(refused)?;
        let unmapped = mapping.unmap_entries(0..1);
        Refused::check("MADV_DONTNEED_LOCKED of a memfd", unmapped).map_err(refused)?;
        let protected = mapping.faults.protect(mapping.user_page(0));
        Refused::check("UFFDIO_WRITEPROTECT of a memfd", protected).map_err(refused)?;
        let region = Region::make(memory, bytes, &options.region)?;
        let number = region.number();
        memory.guarded(|machine| machine.map_pages(number, mapping))?;
        let state = State {
            memory: Arc::clone(memory),
            mapping: Arc::clone(mapping),
            number,
            name: options.name.clone(),
            running: AtomicUsize::new(0),
            stops: AtomicBool::new(false),
            error: Mutex::default(),
        };
        let mut map = MappedRegion { handlers: Vec::new(), state: Arc::new(state), region };
        for _ in 0..options.handlers {
            map.start_handler()?;
        }
        Ok(map)
    }

    fn start_handler(&mut self) -> Result<(), Error> {
        let state = Arc::clone(&self.state);
        state.running.fetch_add(1, Ordering::Relaxed);
        let thread = std::thread::Builder::new().name("pageout-fault".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn(move || state.serve()) {
            Ok(handler) => {
                self.handlers.push(handler);
                Ok(())
            }
            Err(source) => {
                self.state.running.fetch_sub(1, Ordering::Relaxed);
                Err(Error::Io { op: "starting a thread", path: "pageout-fault".into(), page: None, source })
            }
        }
    }

    /// Returns the address of the first byte. The memory has [`MappedRegion::len`] bytes, reads as zeroes until it is written, and is valid as long as this
    /// value.
    ///
    /// Pointers from it must not be used in the child of a fork, and the range must not be unmapped, remapped or advised by the system's own calls. An access
    /// may take as long as a device needs, and may end as SIGBUS.
    ///
    /// The range must not be the target of direct I/O, nor a buffer that is registered with io_uring or another driver. The system holds such a page while a
    /// device writes to it, and the region can't see that. If the page is evicted meanwhile, the bytes of the device are lost without an error. Other reads and
    /// writes of the system are safe.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.state.mapping.user().as_ptr()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.region.len()
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// States the expected use of bytes of the region, like madvise(2): see [`Region::advise`].
    ///
    /// # Errors
    /// [`Error::BeyondEnd`], [`Error::Poisoned`].
    pub fn advise(&self, advice: RegionAdvice, bytes: Range<u64>) -> Result<(), Error> {
        self.region.advise(advice, bytes)
    }

    /// Discards the pages that are completely in a range: their memory and slots are free when the call returns, and they read as zeroes. The same as
    /// [`RegionAdvice::DontNeed`].
    ///
    /// # Errors
    /// As [`MappedRegion::advise`].
    pub fn discard(&self, bytes: Range<u64>) -> Result<(), Error> {
        self.advise(RegionAdvice::DontNeed, bytes)
    }

    /// Has the next access to each lost page try again, for example after its device has recovered. Returns how many pages were lost.
    pub fn retry_lost(&self) -> u64 {
        self.state.mapping.find_again(0..self.state.mapping.pages())
    }

    /// Returns why the last fault that ended as SIGBUS could not be served, once.
    pub fn take_error(&self) -> Option<Error> {
        self.state.error().take()
    }

    /// Describes how faults are served and uses are seen, in one line.
    pub fn describe(&self) -> String {
        let form = self.state.mapping.faults.form().describe();
        let handlers = self.handlers.len();
        format!(
            "{form}; {handlers} threads; uses by PAGEMAP_SCAN, when the engine asks for a page; pages of {PAGE_SIZE} bytes, no huge pages"
        )
    }

    /// Starts a record of all that the engine learns of the mapped regions of this cache.
    #[doc(hidden)]
    pub fn record(&self) {
        self.tokens().record.begin();
    }

    /// Returns what was recorded since the last call, in the order of the engine's calls. Faults in progress end first, and uses of pages on their way out are
    /// reported to the engine.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; those of a read of a page.
    #[doc(hidden)]
    pub fn take_record(&self) -> Result<Vec<MapEvent>, Error> {
        self.tokens().record.await_faults();
        self.state.memory.guarded(|machine| machine.report_touched())?;
        Ok(self.tokens().record.take())
    }

    fn tokens(&self) -> &Tokens {
        &self.state.memory.machine.arena.tokens
    }

    /// The same as [`crate::Memory::follow_region`].
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    #[doc(hidden)]
    pub fn follow(&self, pages: impl IntoIterator<Item = u64>) -> Result<(), Error> {
        crate::Memory(Arc::clone(&self.state.memory)).follow_region(&self.region, pages)
    }

    #[cfg(test)]
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.state.mapping
    }
}

impl std::fmt::Debug for MappedRegion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MappedRegion")
            .field("name", &self.state.name)
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        if !self.state.memory.machine.arena.is_of_this_process() {
            // The mapping and its handlers are the parent's.
            return;
        }
        self.state.stops.store(true, Ordering::Release);
        if self.state.running.load(Ordering::Acquire) > 0 {
            self.state.mapping.ring();
        }
        self.handlers.drain(..).for_each(|handler| _ = handler.join());
        // A thread that still waits for a fault goes on, and is killed: its pointer has outlived the region.
        self.state.mapping.end();
    }
}

impl State {
    fn error(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves faults until the region is dropped.
    fn serve(&self) {
        let machine = &self.memory.machine;
        loop {
            let fault = match self.mapping.faults.next() {
                Ok(fault) => fault,
                Err(source) => {
                    // Others may go on. If none can, threads wait as for a device that does not answer.
                    let (op, path) = ("reading faults", self.name.clone().into());
                    *self.error() = Some(Error::Io { op, path, page: None, source });
                    break;
                }
            };
            let page = self.mapping.page_at(fault.address);
            if page == self.mapping.doorbell() {
                if self.stops.load(Ordering::Acquire) {
                    return self.pass_doorbell_on(page);
                }
                // Code has run far over the end of the region.
                self.mapping.lose(page);
                continue;
            }
            if let Err(error) = self.serve_fault(fault) {
                *self.error() = Some(error);
                machine.lose_page(self.number, &self.mapping, page);
            }
        }
        self.running.fetch_sub(1, Ordering::AcqRel);
    }

    fn serve_fault(&self, fault: Fault) -> Result<(), Error> {
        let machine = &self.memory.machine;
        let of = (self.number, self.name.as_ref());
        let serve = AssertUnwindSafe(|| machine.serve_fault(of, &self.mapping, fault));
        machine.arena.tokens.record.during(|| catch_unwind(serve)).unwrap_or_else(|_| {
            machine.poison();
            Err(Error::Poisoned)
        })
    }

    /// This handler ends. The next one has the same fault, and the last one serves it.
    fn pass_doorbell_on(&self, page: u64) {
        let at = self.mapping.user_page(page);
        let is_last = self.running.fetch_sub(1, Ordering::AcqRel) == 1;
        let _ = match is_last {
            true => self.mapping.faults.fill(at, crate::guard::ZEROES.page(), false),
            false => self.mapping.faults.wake(at),
        };
    }
}

fn refused(Refused { call, error }: Refused) -> Error {
    Error::FaultsRefused { call, source: error }
}

/// Frames, slots and faults are of 4 KiB each.
fn check_page_size() -> Result<(), Refused> {
    // SAFETY: the call takes a number and returns one.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if u64::try_from(bytes) == Ok(PAGE_SIZE) {
        return Ok(());
    }
    let error =
        std::io::Error::new(std::io::ErrorKind::Unsupported, format!("{bytes} bytes, expected {PAGE_SIZE}"));
    Err(Refused::new("pages of the system", error))
}

#[cfg(test)]
mod tests; // samples, and what the system refuses
