//! Backing of pages: the files and swap devices that pages are read from and written to.

use crate::choice::choice;

/// Where the pages of a file live: on a device, or in memory and swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// On a block device: read on a miss, dropped when clean.
    Regular,
    /// In memory only: anonymous type, always dirty, leaves memory by way of swap.
    Tmpfs,
}

/// A file to create.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// The file's name, for messages.
    pub name: String,
    /// The file's length in pages.
    pub pages: u64,
    /// A regular file, or one on tmpfs.
    pub kind: FileKind,
    /// The device it is on, as far as readahead goes; tmpfs has none.
    pub bdi: Bdi,
}

choice! {
    /// The file system on a device, as far as it decides in which folios its files are kept. [folios 1.1]
    FileSystem {
        /// One that has single pages in every version. It is the default, because large folios need a file system that has them.
        None = "none",
        /// ext4: regular files, without data=journal, fs-verity and encryption.
        Ext4 = "ext4",
        /// XFS, with blocks of a page.
        Xfs = "xfs",
        /// btrfs, without CONFIG_BTRFS_EXPERIMENTAL.
        Btrfs = "btrfs",
    }
}

/// Backing device info (bdi), as far as readahead reads it. Unit: pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bdi {
    /// Largest readahead window (`read_ahead_kb`); 0 turns readahead off. A file takes it over when it is opened.
    pub ra_pages: u32,
    /// Largest request (`max_sectors_kb`). A read(2) call of more than the window is read in pieces of this size.
    pub io_pages: u32,
    /// The file system of its files.
    pub file_system: FileSystem,
}

impl Bdi {
    /// Pages of the largest window that can be set: 4 GiB.
    pub const PAGES_MAX: u32 = 1 << 20;
    /// No readahead; requests as large as by default.
    pub const NO_READAHEAD: Bdi = Bdi { ra_pages: 0, io_pages: 320, file_system: FileSystem::None };
}

impl Default for Bdi {
    /// 128 KiB ahead, and requests of 1,280 KiB (BLK_DEF_MAX_SECTORS_CAP), as Linux sets up any disk.
    fn default() -> Bdi {
        Bdi { ra_pages: 32, ..Bdi::NO_READAHEAD }
    }
}

/// The way in which a swap device completes its transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapKind {
    /// An ordinary block device: asynchronous, through the swap cache.
    Device,
    /// zram-like: done when the call returns; a swap-in skips the swap cache and frees the slot.
    Synchronous,
    /// A file on a block device: like [`SwapKind::Device`], but no large folio has its slots in a row. [folios 3.5]
    File,
}

/// A swap device to enable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwapSpec {
    /// The device's size in pages.
    pub pages: u64,
    /// The kind of the device, which decides how transfers complete.
    pub kind: SwapKind,
}
