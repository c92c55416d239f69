//! The queue of a file's device, as the system reports it: whether a page may be written to while the device has it, and the readahead window.
//!
//! A device or file system that computes a checksum of the data, and sends both, finds them different if a writer came in between. The system reports
//! this property of a device (`queue/stable_writes`, as iSCSI and NVMe over TCP with digests, RAID 5, zram); for a file system only its name shows
//! it. A stacked file system such as overlayfs shows neither.
//!
//! The system's own page cache reads `queue/read_ahead_kb` of a device ahead at a time. Each request costs the CPU about as much whatever its size, so a cache
//! that reads less ahead than the system does on the same device is slower.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use pageout_engine::{Bdi, PAGE_SIZE};

/// `f_type` of a file system that computes checksums of data: btrfs.
const BTRFS: u32 = 0x9123_683e;

/// Returns true if pages of a file must not change while they are written with direct I/O. If this is unknown, it is assumed to be false.
pub(crate) fn wants_stable_pages(file: &File) -> bool {
    let device = file.metadata().map_or(0, |metadata| metadata.dev());
    stable_pages(crate::stat::file_system(file), attribute(device, "stable_writes").as_deref())
}

/// Readahead window of files on a device, in pages, and at most `most`. If the system does not report it, the kernel's default for a new device.
pub(crate) fn ra_pages(device: u64, most: u32) -> u32 {
    ra_pages_of(attribute(device, "read_ahead_kb").as_deref()).min(most)
}

/// What an attribute of a device's queue says.
fn attribute(device: u64, name: &str) -> Option<String> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    // A partition has the queue of its disk.
    ["queue", "../queue"].into_iter().find_map(|queue| {
        std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{queue}/{name}")).ok()
    })
}

fn stable_pages(file_system: Option<u32>, queue: Option<&str>) -> bool {
    file_system == Some(BTRFS) || queue.is_some_and(|says| says.trim() == "1")
}

fn ra_pages_of(queue: Option<&str>) -> u32 {
    let kib: Option<u64> = queue.and_then(|says| says.trim().parse().ok());
    let pages = kib.map(|kib| (kib.saturating_mul(1024) / PAGE_SIZE).try_into().unwrap_or(u32::MAX));
    pages.unwrap_or(Bdi::default().ra_pages)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests, which open files")]

    use super::*;

    #[test]
    fn pages_keep_still_on_btrfs_and_on_devices_that_say_so() {
        const EXT4: u32 = 0xef53;
        for (file_system, queue, wants) in [
            (Some(BTRFS), None, true),
            (Some(BTRFS), Some("0\n"), true),
            (Some(EXT4), Some("1\n"), true),
            (Some(EXT4), Some("0\n"), false),
            (Some(EXT4), None, false),
            (None, None, false),
        ] {
            assert_eq!(stable_pages(file_system, queue), wants, "{file_system:x?}, {queue:?}");
        }
    }

    #[test]
    fn window_is_what_the_device_says_or_the_default() {
        for (queue, pages) in [
            (Some("8192\n"), 2048),
            (Some("128\n"), 32),
            (Some("3\n"), 0),
            (Some("0\n"), 0),
            (Some("no number\n"), 32),
            (None, 32),
        ] {
            assert_eq!(ra_pages_of(queue), pages, "{queue:?}");
        }
        assert_eq!(ra_pages(0, 16), 16, "no device has this number");
    }

    #[test]
    fn the_system_says_which_file_system_a_file_is_on() {
        const PROC: u32 = 0x9fa0;
        let file = File::open("/proc/version").unwrap();
        assert_eq!(crate::stat::file_system(&file), Some(PROC));
        assert!(!wants_stable_pages(&file));
    }
}
