//! Which pages of a file the system's page cache has.
//!
//! The kernel reports them to the owner of a file and to users who may write it. For others it reports every page, so they get an error here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr;

/// Reads whether each page of a file is in the system's page cache, in the order of its pages. Nothing is read from the file, and no page counts as
/// used.
///
/// # Errors
///
/// `PermissionDenied`: the user neither owns the file nor may write it. Others: the file can't be mapped.
pub fn resident(file: &File) -> io::Result<Vec<bool>> {
    let stat = file.metadata()?;
    may_know(file, stat.uid())?;
    // SAFETY: the call only reads a setting.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let pages = stat.len().div_ceil(page) as usize;
    if pages == 0 {
        return Ok(Vec::new());
    }
    let length = pages * page as usize;
    // SAFETY: the kernel chooses a place that nothing else uses. The mapping allows no access, and its address stays in this function.
    let place = unsafe {
        libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if place == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut there = vec![0_u8; pages];
    // SAFETY: the range is the mapping, and the kernel writes one byte for each of its pages, as many as `there` has.
    let result = unsafe { libc::mincore(place, length, there.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: it is the mapping of above, whose address stays in this function.
    unsafe { libc::munmap(place, length) };
    if result != 0 {
        return Err(error);
    }
    Ok(there.into_iter().map(|byte| byte & 1 != 0).collect())
}

/// Fails if the kernel hides the truth about the file from this user.
fn may_know(file: &File, owner: u32) -> io::Result<()> {
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == owner {
        return Ok(());
    }
    let path = std::ffi::CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .expect("digits have no zero byte");
    // SAFETY: the path is a C string that lives until the call returns.
    let result = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) };
    if result == 0 { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn resident_pages_are_those_that_were_read() {
        // Next to the test, and not below /tmp, which may have no disk.
        let test = std::env::current_exe().unwrap();
        let path = test.with_file_name(format!("resident-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![7; 300 * 4096 + 1]).unwrap();
        file.sync_all().unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: the calls get an open file and numbers.
        let advise = |advice| unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
        assert_eq!(advise(libc::POSIX_FADV_DONTNEED), 0);
        assert_eq!(advise(libc::POSIX_FADV_RANDOM), 0);
        let before = resident(&file).unwrap();
        assert_eq!(before.len(), 301);
        (&file).read_exact(&mut [0; 4096]).unwrap();
        let after = resident(&file).unwrap();
        assert!(after[0] && !before[0], "the first page has come in");
        assert!(after.iter().filter(|is_there| **is_there).count() < 300, "the others have not");
    }

    #[test]
    fn resident_pages_of_an_empty_file_are_none() {
        let test = std::env::current_exe().unwrap();
        let path = test.with_file_name(format!("resident-empty-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(resident(&file).unwrap(), Vec::<bool>::new());
    }
}
