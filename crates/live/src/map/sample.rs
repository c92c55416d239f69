//! Samples of a mapped region: which pages were used since the last sample. [live-3 2.3]
//!
//! ```text
//!   used     the kernel maps the touched page: it has a page-table entry, and its neighbours get none
//!   sample   for each 2 MiB: PAGEMAP_SCAN for entries that are present ─▶ these pages were used ─▶ MADV_DONTNEED removes their entries, and keeps the pages
//! ```
//! So an entry exists exactly if its page was used since the last sample. One call covers 2 MiB at most: over longer ranges the system was seen to report
//! pages twice. Another call removes all entries between the first and the last that were reported: one call for each costs most of a sample. A page that
//! is touched for the first time between the two calls is not reported for that use. Its next use is a minor fault, as for the other pages.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use pageout_engine::PAGE_SIZE;

use super::mapping::Mapping;

/// Pages of one call: those of a table.
const PAGES_MAX: u64 = 512;
const IOCTL_PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
const IS_PRESENT: u64 = 1 << 3;

/// The argument of PAGEMAP_SCAN.
#[repr(C)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_len: u64,
    pages_max: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

/// Pages next to each other with the same state.
#[repr(C)]
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
    state: u64,
}

/// The process's page tables.
pub(crate) struct Pagemap(File);

impl Pagemap {
    pub(crate) fn open() -> io::Result<Pagemap> {
        File::open("/proc/self/pagemap").map(Pagemap)
    }

    /// Adds those of these pages to `used` that were used since the last call about them. Later calls do not report them for the same use.
    pub(crate) fn sample(&self, mapping: &Mapping, pages: Range<u64>, used: &mut Vec<u64>) -> io::Result<()> {
        let mut next = pages.start;
        while next < pages.end && !mapping.is_gone() {
            let end = ((next / PAGES_MAX + 1) * PAGES_MAX).min(pages.end);
            self.sample_table(mapping, next..end, used)?;
            next = end;
        }
        Ok(())
    }

    fn sample_table(&self, mapping: &Mapping, pages: Range<u64>, used: &mut Vec<u64>) -> io::Result<()> {
        let mut runs = [Run { start: 0, end: 0, state: 0 }; PAGES_MAX as usize / 2 + 1];
        let start = mapping.user_page(pages.start) as u64;
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            flags: 0,
            start,
            end: start + (pages.end - pages.start) * PAGE_SIZE,
            walk_end: 0,
            regions: runs.as_mut_ptr().expose_provenance() as u64,
            regions_len: runs.len() as u64,
            pages_max: 0,
            inverted: 0,
            all_of: IS_PRESENT,
            any_of: 0,
            returned: IS_PRESENT,
        };
        // SAFETY: the request takes this structure, which is borrowed for the call, and writes at most as many runs as it names to `runs`, whose address
        // is exposed for that. It reads page tables, and changes nothing.
        let found = unsafe { libc::ioctl(self.0.as_raw_fd(), IOCTL_PAGEMAP_SCAN as _, &raw mut scan) };
        let Ok(found) = usize::try_from(found) else { return Err(io::Error::last_os_error()) };
        let pages = |run: &Run| mapping.page_at(run.start as usize)..mapping.page_at(run.end as usize);
        let runs = &runs[..found];
        runs.iter().for_each(|run| used.extend(pages(run)));
        match (runs.first(), runs.last()) {
            (Some(first), Some(last)) => mapping.unmap_entries(pages(first).start..pages(last).end),
            _ => Ok(()),
        }
    }
}
