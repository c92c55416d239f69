//! The memory of a mapped region: one memfd, and two mappings of it.
//!
//! ```text
//!   the user's   its pages are missing until a fault is served, and write-protected while they are clean    never touched here
//!   the alias    the same pages: devices read them from here when they are swapped out
//!   the file     pages are read by pread(2), and leave memory by a hole
//! ```
//! A page that is in the file is mapped by the kernel when the user touches it. So a page is never brought into the file through the alias: the user would
//! see it before it is complete. The alias is only read where a page exists, because an access to a hole would create one. Another call may make such an
//! access, for example mlockall(2). The alias is therefore registered with a descriptor that serves no fault of the kernel: the call fails there.
//!
//! Behind the user's pages is a page without access, so that code which runs over the end gets SIGSEGV. The page of the doorbell is behind that one.
//!
//! A page that can't be read is lost: its entry is marked, and each access to it gets SIGBUS. The mark goes when the page is discarded, or when the user has
//! lost pages read again.
//!
//! A forked child gets neither mapping.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pageout_engine::PAGE_SIZE;

use super::faults::{Done, Faults, Refused};

const PAGE: usize = PAGE_SIZE as usize;
/// Pages behind the user's: one without access, and the doorbell.
const PAGES_BEHIND: usize = 2;
/// MADV_DONTNEED that locked memory permits, too (Linux 5.18): the user may lock a region.
const MADV_DONTNEED_LOCKED: libc::c_int = 24;

/// Addresses of a mapping, which end with it.
struct Addresses {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is the only owner of what it has mapped, which any thread may use or unmap.
unsafe impl Send for Addresses {}
// SAFETY: by a shared reference one can only ask where it is.
unsafe impl Sync for Addresses {}

impl Addresses {
    fn of(file: &File, bytes: usize) -> io::Result<Addresses> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
        // SAFETY: a new mapping at an address that the system chooses: nothing that was there before changes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let addresses =
            Addresses { at: NonNull::new(at.cast()).expect("the system maps nothing at zero"), bytes };
        for advice in [libc::MADV_DONTFORK, libc::MADV_NOHUGEPAGE] {
            // SAFETY: the range is this new mapping. The advice changes what a child sees, and the size of pages.
            let told = unsafe { libc::madvise(at, bytes, advice) };
            // A system without huge pages rejects the second one, and has none.
            if told != 0 && advice == libc::MADV_DONTFORK {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(addresses)
    }

    /// The address of a page.
    fn page(&self, page: u64) -> *mut u8 {
        let at = page as usize * PAGE;
        assert!(at < self.bytes, "page {page} is beyond a mapping of {} bytes", self.bytes);
        // SAFETY: the page begins within the mapping, by the line above.
        unsafe { self.at.as_ptr().add(at) }
    }

    /// Prohibits all accesses to a page.
    fn forbid(&self, page: u64) -> io::Result<()> {
        // SAFETY: the page is of this mapping, and no other code uses it yet.
        let told = unsafe { libc::mprotect(self.page(page).cast(), PAGE, libc::PROT_NONE) };
        if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn unmap(&self) {
        // SAFETY: it was mapped with this length. It is called once: by `Drop` for the alias, by `Mapping::end` for the user's.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

/// The memory of a mapped region.
pub(crate) struct Mapping {
    file: File,
    user: Addresses,
    alias: Addresses,
    pub(crate) faults: Faults,
    /// The user's pages.
    pages: u64,
    /// Pages that are marked as lost.
    lost: Mutex<BTreeSet<u64>>,
    has_lost: AtomicBool,
    /// The user's mapping does not exist any more: it is ended, or the user has unmapped it.
    is_gone: AtomicBool,
    /// The user's mapping was ended here.
    is_ended: AtomicBool,
    /// A bug that a test must notice: pages are evicted without write protection.
    #[cfg(test)]
    pub(crate) forgets_protection: AtomicBool,
}

impl Mapping {
    /// A mapping of this many pages, none of which exists.
    ///
    /// # Errors
    /// The call that the system has refused.
    pub(crate) fn new(pages: u64, user_mode_only: bool) -> Result<Mapping, Refused> {
        let faults = Faults::open(user_mode_only)?;
        let file = Refused::check("memfd_create(2)", memfd())?;
        let bytes = (pages as usize + PAGES_BEHIND) * PAGE;
        Refused::check("ftruncate(2) of a memfd", file.set_len(bytes as u64))?;
        check_not_locked(&file)?;
        let user = Refused::check("mmap(2) of a memfd", Addresses::of(&file, bytes))?;
        let alias = match user.forbid(pages).and_then(|()| Addresses::of(&file, bytes)) {
            Ok(alias) => alias,
            Err(error) => {
                user.unmap();
                return Err(Refused::new("mmap(2) of a memfd", error));
            }
        };
        let [is_gone, is_ended, has_lost] = [(); 3].map(|()| AtomicBool::new(false));
        let mapping = Mapping {
            file,
            user,
            alias,
            faults,
            pages,
            lost: Mutex::default(),
            has_lost,
            is_gone,
            is_ended,
            #[cfg(test)]
            forgets_protection: AtomicBool::new(false),
        };
        let registered = mapping.faults.register(mapping.user.at, bytes);
        if let Err(refused) = registered {
            mapping.end();
            return Err(refused);
        }
        Ok(mapping)
    }

    /// Has the kernel fail accesses to holes of the alias, by a descriptor for faults of user code only.
    pub(crate) fn guard_alias(&self, faults: &Faults) -> Result<(), Refused> {
        faults.register(self.alias.at, self.alias.bytes)
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The address of the user's first page.
    pub(crate) fn user(&self) -> NonNull<u8> {
        self.user.at
    }

    /// The user's address of a page.
    pub(crate) fn user_page(&self, page: u64) -> usize {
        self.user.page(page).addr()
    }

    /// The page at one of the user's addresses.
    pub(crate) fn page_at(&self, address: usize) -> u64 {
        ((address - self.user.at.as_ptr().addr()) / PAGE) as u64
    }

    /// The page whose fault ends a thread that serves faults.
    pub(crate) fn doorbell(&self) -> u64 {
        self.pages + 1
    }

    /// Touches that page.
    pub(crate) fn ring(&self) {
        // Another code may have run far over the end before.
        self.find_again(self.doorbell()..self.doorbell() + 1);
        // SAFETY: the page is part of the user's mapping, which exists until `end`, and no other code uses it. The load waits until its fault is served.
        unsafe { self.user.page(self.doorbell()).read_volatile() };
    }

    /// Where a device reads a page that exists.
    pub(crate) fn alias(&self, page: u64) -> *mut u8 {
        self.alias.page(page)
    }

    /// Pages that exist, mapped or not.
    #[cfg(test)]
    pub(crate) fn existing(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().expect("a memfd has an inode").blocks() * 512 / PAGE_SIZE
    }

    /// Copies a page. A page that does not exist is zeroes.
    pub(crate) fn read_page(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(to, page * PAGE_SIZE)
    }

    /// Frees pages. The user finds them missing.
    pub(crate) fn punch(&self, pages: Range<u64>) -> io::Result<()> {
        let (at, bytes) = (pages.start * PAGE_SIZE, (pages.end - pages.start) * PAGE_SIZE);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the call takes numbers. Its range is of a memfd that only this value has. Pages that leave it are on swap or discarded, and no reference
        // of this crate leads to one.
        let told =
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at as libc::off_t, bytes as libc::off_t) };
        if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Makes the next store to a page that exists a fault.
    ///
    /// # Panics
    /// If the system refuses what it has permitted before: a store would be lost.
    pub(crate) fn protect(&self, page: u64) {
        #[cfg(test)]
        if self.forgets_protection.load(Ordering::Relaxed) {
            return;
        }
        match self.faults.protect(self.user_page(page)) {
            Ok(Done::Yes) => {}
            // No thread can store to a page that is not mapped.
            Ok(Done::Gone) => self.note_gone(),
            Err(error) => panic!("page {page} of a mapped region can't be write-protected: {error}"),
        }
    }

    fn lost(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a page that does not exist as lost: each access to it gets SIGBUS.
    pub(crate) fn lose(&self, page: u64) {
        let at = self.user_page(page);
        let mut lost = self.lost();
        lost.insert(page);
        self.has_lost.store(true, Ordering::Release);
        // An entry that is write-protected can't be marked. Threads that wait fault again, and find the mark.
        let _ = self.faults.unprotect(at);
        let _ = self.faults.poison(at);
        let _ = self.faults.wake(at);
    }

    /// Removes the marks of lost pages: the next access to each is a fault again. Returns how many there were.
    pub(crate) fn find_again(&self, pages: Range<u64>) -> u64 {
        if !self.has_lost.load(Ordering::Acquire) {
            return 0;
        }
        let mut lost = self.lost();
        let found: Vec<_> = lost.range(pages).copied().collect();
        for &page in &found {
            // If the system refuses it, accesses still get SIGBUS.
            if self.forget_entries(&self.user, page..page + 1).is_ok() {
                lost.remove(&page);
            }
        }
        self.has_lost.store(!lost.is_empty(), Ordering::Release);
        found.len() as u64
    }

    /// Makes a page zeroes that does not exist, although it was given to the user: the user has removed it by a call of the system. Returns false if it
    /// exists.
    pub(crate) fn restore(&self, page: u64, may_write: bool) -> io::Result<bool> {
        match self.faults.fill(self.user_page(page), crate::guard::ZEROES.page(), !may_write) {
            Ok(Done::Yes) => Ok(true),
            Ok(Done::Gone) => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Wakes threads that wait for a page, which then fault again.
    pub(crate) fn retry(&self, page: u64) {
        let _ = self.faults.wake(self.user_page(page));
    }

    /// Removes page-table entries of the user's mapping. The pages stay in the file, and the next access to each maps it again.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn unmap_entries(&self, pages: Range<u64>) -> io::Result<()> {
        self.forget_entries(&self.user, pages)
    }

    /// The same of the alias, which devices have used.
    pub(crate) fn unmap_alias(&self, pages: Range<u64>) -> io::Result<()> {
        self.forget_entries(&self.alias, pages)
    }

    fn forget_entries(&self, of: &Addresses, pages: Range<u64>) -> io::Result<()> {
        if self.is_gone() {
            return Ok(());
        }
        let bytes = (pages.end - pages.start) as usize * PAGE;
        // SAFETY: the range is of a mapping of this value that still exists (`MappedRegion::as_mut_ptr` forbids its user to unmap it). The mapping is
        // shared: its contents are the file's, and do not change.
        let told = unsafe { libc::madvise(of.page(pages.start).cast(), bytes, MADV_DONTNEED_LOCKED) };
        if told == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns true if the user's mapping does not exist any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// The system has found no mapping at one of the user's addresses.
    pub(crate) fn note_gone(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Ends the user's mapping. A task that waits for a fault goes on, and finds no memory.
    pub(crate) fn end(&self) {
        if self.is_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let was_there = !self.is_gone.swap(true, Ordering::Relaxed);
        self.faults.unregister(self.user.at, self.user.bytes);
        // Other memory may be at the addresses of a mapping that its user has unmapped.
        if was_there {
            self.user.unmap();
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.alias.unmap();
    }
}

/// Refuses memory that is locked as soon as it is mapped: the system would fill all of a region with zeroes.
fn check_not_locked(file: &File) -> Result<(), Refused> {
    let page = Refused::check("mmap(2) of a memfd", Addresses::of(file, PAGE))?;
    // SAFETY: the page is of a mapping that no other code knows.
    let told = unsafe { libc::madvise(page.at.as_ptr().cast(), PAGE, libc::MADV_DONTNEED) };
    let error = io::Error::last_os_error();
    page.unmap();
    match told {
        0 => Ok(()),
        _ => Err(Refused::new("MADV_DONTNEED of a memfd, which is not permitted for locked memory", error)),
    }
}

fn memfd() -> io::Result<File> {
    // glibc has this function from 2.27 on, and released libraries run with 2.17.
    // SAFETY: the call reads the name, which ends with a zero.
    let file =
        unsafe { libc::syscall(libc::SYS_memfd_create, c"pageout-region".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    let file = i32::try_from(file).expect("a descriptor is an int");
    // SAFETY: a new descriptor, which has no other owner.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(file) }))
}
