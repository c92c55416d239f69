//! Whether a page may be written to while its device has it.
//!
//! Who computes a checksum of what is handed over, and sends both, finds them apart where a writer came in between. The system says of a device that it
//! does (`queue/stable_writes`, as iSCSI and NVMe over TCP with digests, RAID 5, zram); of file systems nothing says so but their name. One that lies over
//! another, as overlayfs, shows neither.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// `f_type` of a file system that computes checksums of data: btrfs.
const BTRFS: u32 = 0x9123_683e;

/// Whether a file is of those whose pages are to keep still while they are written with direct I/O. Where that can't be found out, it is taken to be none.
pub(crate) fn wants_stable_pages(file: &File) -> bool {
    let device = file.metadata().map_or(0, |metadata| metadata.dev());
    let (major, minor) = (libc::major(device), libc::minor(device));
    // A partition has the queue of its disk.
    let queue = ["queue", "../queue"]
        .map(|queue| format!("/sys/dev/block/{major}:{minor}/{queue}/stable_writes"))
        .into_iter()
        .find_map(|path| std::fs::read_to_string(path).ok());
    decide(crate::stat::file_system(file), queue.as_deref())
}

fn decide(file_system: Option<u32>, queue: Option<&str>) -> bool {
    file_system == Some(BTRFS) || queue.is_some_and(|says| says.trim() == "1")
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
            assert_eq!(decide(file_system, queue), wants, "{file_system:x?}, {queue:?}");
        }
    }

    #[test]
    fn the_system_says_which_file_system_a_file_is_on() {
        const PROC: u32 = 0x9fa0;
        let file = File::open("/proc/version").unwrap();
        assert_eq!(crate::stat::file_system(&file), Some(PROC));
        assert!(!wants_stable_pages(&file));
    }
}
