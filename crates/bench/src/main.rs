//! `pageout bench` with third-party caches next to its own: `cargo run --release -p pageout-bench -- [OPTIONS]`.
//!
//! They hold copies of pages, and read missing pages by direct I/O, as pageout does. Their budget includes the pages and the memory of their entries.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "it reads files")]

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pageout_lab::baselines::Baseline;
use quick_cache::sync::Cache;

const PAGE: usize = 4096;
/// Memory of an entry without its page: key, place, reference count, and the overhead of the allocator. Unit: bytes.
const ENTRY: u64 = 96;

fn main() -> ExitCode {
    pageout_lab::bench_with(&[("quick_cache", |path, budget| Ok(Box::new(QuickCache::new(path, budget)?)))])
}

/// A file that is read past the kernel's page cache, page by page.
struct Direct(File);

thread_local! {
    /// Room for a page, in which one can begin where direct I/O asks for.
    static ROOM: RefCell<Vec<u8>> = RefCell::new(vec![0; 2 * PAGE]);
}

impl Direct {
    fn open(path: &Path) -> io::Result<Direct> {
        Ok(Direct(File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?))
    }

    fn read(&self, page: u64) -> io::Result<Arc<[u8]>> {
        ROOM.with_borrow_mut(|room| {
            let at = room.as_ptr().align_offset(PAGE);
            let room = &mut room[at..at + PAGE];
            self.0.read_exact_at(room, page * PAGE as u64)?;
            Ok(Arc::from(&*room))
        })
    }
}

struct QuickCache {
    file: Direct,
    pages: Cache<u64, Arc<[u8]>>,
}

impl QuickCache {
    fn new(path: &Path, budget: u64) -> io::Result<QuickCache> {
        let pages = (budget / (PAGE as u64 + ENTRY)) as usize;
        Ok(QuickCache { file: Direct::open(path)?, pages: Cache::new(pages) })
    }

    #[inline]
    fn get(&self, page: u64) -> io::Result<Arc<[u8]>> {
        match self.pages.get(&page) {
            Some(bytes) => Ok(bytes),
            None => self.pages.get_or_insert_with(&page, || self.file.read(page)),
        }
    }
}

impl Baseline for QuickCache {
    #[inline]
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        to.copy_from_slice(&self.get(page)?);
        Ok(())
    }

    #[inline]
    fn byte(&self, page: u64) -> io::Result<u8> {
        Ok(self.get(page)?[0])
    }
}
