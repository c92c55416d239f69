//! Open files: what the objects that were made from one of them share, wherever it is read or mapped.
//!
//! The position and the window are the kernel's `file_ra_state`. They belong to the open file and not to the file. Two readers with an open file each
//! do not disturb each other's windows; two readers that share one do. [machine 1.1]

use crate::units::{FileId, PAGE_SIZE};

/// No page has been read yet.
pub const NO_PAGE: u64 = u64::MAX;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub struct OpenFile {
    /// The file.
    pub file: FileId,
    /// Page read or written last.
    pub last_page: u64,
    /// Byte behind the last one that the last call has read. A call in progress has not moved it.
    pub prev_pos: u64,
    /// The window that was issued last: its first page, its size, and how many pages before its end the mark stands.
    pub start: u64,
    /// Pages of the window.
    pub size: u64,
    /// Pages of the window behind the mark of readahead.
    pub async_size: u64,
    /// Folios of the window have at most 2 to the power of this many pages.
    pub order: u8,
    /// Largest window; 0 for no readahead.
    pub ra_pages: u64,
    /// Mapped pages that were missed, less those that were found.
    pub mmap_miss: u32,
    /// Reads come in no order (FMODE_RANDOM).
    pub random: bool,
    /// Failed writes of the file, and of all on its file system, that it knows of.
    pub errors_known: u64,
    /// Failed writes of the file system that it knows of.
    pub fs_errors_known: u64,
    /// The reader does not use its pages again (FMODE_NOREUSE).
    pub no_reuse: bool,
}

impl OpenFile {
    /// A file just opened, with a device's limit of readahead.
    pub fn new(file: FileId, ra_pages: u32) -> OpenFile {
        OpenFile {
            file,
            last_page: NO_PAGE,
            prev_pos: u64::MAX,
            start: 0,
            size: 0,
            async_size: 0,
            order: 0,
            ra_pages: ra_pages.into(),
            mmap_miss: 0,
            random: false,
            no_reuse: false,
            errors_known: 0,
            fs_errors_known: 0,
        }
    }

    /// Returns whether the call that accessed the last page goes on behind it.
    pub fn is_in_call(&self) -> bool {
        self.last_page != NO_PAGE && self.prev_pos.div_ceil(PAGE_SIZE) != self.last_page + 1
    }

    /// The page in which the last call ended; no page where there was none.
    pub fn prev_page(&self) -> u64 {
        self.prev_pos / PAGE_SIZE
    }
}
