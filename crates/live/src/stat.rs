//! The file system's data about a file: its identity, whether another program has written it, and its place.
//!
//! Any change of a file changes the time of its inode (ctime), which no program can set. So a file is known to be unchanged by that time and the
//! others, as far as clocks distinguish them: two changes within one tick of the kernel's clock (1 to 10 ms; a few nanoseconds since Linux 6.13 on
//! most file systems) look like one. This cache changes files as well, so it checks after each of its own writes. A write of another program between
//! a write of this cache and that check is hidden.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Those of file systems that are in the system's memory.
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;

/// Attributes of a file by which the cache knows that it is the same, and was not written meanwhile by another program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, u32),
    /// The time of the inode. It detects a program that writes a file and resets the file's time.
    changed: (i64, u32),
    /// Other changes of the inode, which leave the contents alone.
    links: u32,
    owner: (u32, u32, u32),
}

impl Identity {
    /// Returns true if it is the same file, perhaps written meanwhile.
    pub(crate) fn is_same_file(self, other: Identity) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// The numbers of its device and its inode.
    pub(crate) fn numbers(self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// The number of the device that it is on.
    pub(crate) fn device(self) -> u64 {
        self.device
    }

    /// Returns true if no name leads to it any more.
    pub(crate) fn is_deleted(self) -> bool {
        self.links == 0
    }

    /// Bytes that it has on its device.
    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns true if all changes since may be names, owner or mode: the contents are unchanged, unless the change was hidden.
    pub(crate) fn has_its_contents(self, since: Identity, is_renamed: bool) -> bool {
        let contents = |of: Identity| (of.bytes, of.modified);
        let is_explained = is_renamed || (self.links, self.owner) != (since.links, since.owner);
        contents(self) == contents(since) && (self.changed == since.changed || is_explained)
    }

    /// The current attributes, with a request to a server if needed.
    pub(crate) fn of(file: &File) -> io::Result<Identity> {
        Identity::by(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
    }

    /// The attributes that this machine knows, without a request to a server.
    pub(crate) fn known(file: &File) -> io::Result<Identity> {
        Identity::by(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC)
    }

    /// Attributes of the file that a path leads to.
    pub(crate) fn of_path(path: &Path) -> io::Result<Identity> {
        Identity::by(libc::AT_FDCWD, &CString::new(path.as_os_str().as_bytes())?, 0)
    }

    fn by(descriptor: RawFd, path: &CStr, flags: libc::c_int) -> io::Result<Identity> {
        let mut stat = MaybeUninit::<libc::statx>::uninit();
        let (path, mask) = (path.as_ptr(), libc::STATX_BASIC_STATS);
        // glibc has this function from 2.28 on, and released libraries run with 2.17.
        // SAFETY: the path is a text that ends, and the call writes to the one place that it is given, which lives until it returns.
        let result =
            unsafe { libc::syscall(libc::SYS_statx, descriptor, path, flags, mask, stat.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, and has filled it.
        let stat = unsafe { stat.assume_init() };
        let time = |of: libc::statx_timestamp| (of.tv_sec, of.tv_nsec);
        Ok(Identity {
            device: libc::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            bytes: stat.stx_size,
            modified: time(stat.stx_mtime),
            changed: time(stat.stx_ctime),
            links: stat.stx_nlink,
            owner: (stat.stx_uid, stat.stx_gid, stat.stx_mode.into()),
        })
    }
}

/// Returns true if a file is of a file system that is in memory: it takes direct I/O, and its pages are in memory twice.
pub(crate) fn is_in_memory(file: &File) -> bool {
    file_system(file).is_some_and(|of| [TMPFS, RAMFS].contains(&of))
}

/// Which file system a file is on.
pub(crate) fn file_system(file: &File) -> Option<u32> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is that of an open file, and the call writes to the one place that it is given, which lives until it returns.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), stat.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: the call succeeded, and has filled it.
    let stat = unsafe { stat.assume_init() };
    // A number of 32 bits, whatever the width of the field.
    Some(stat.f_type as u32)
}
