//! Memory on a node of the machine, by mbind(2).

use std::io;
use std::ops::Range;

/// Has the pages of a range of addresses come from a node of the machine, and from nowhere else. Those that are there already stay.
///
/// # Errors
/// `EINVAL` where there is no such node, or it has no memory; what else the system says, as `EPERM` where a container forbids the call.
pub(crate) fn bind(addresses: Range<usize>, node: u32) -> io::Result<()> {
    /// More nodes than any Linux knows.
    const NODES_MAX: usize = 1024;
    let bits = libc::c_ulong::BITS as usize;
    let mut mask = [0 as libc::c_ulong; NODES_MAX / libc::c_ulong::BITS as usize];
    let word =
        mask.get_mut(node as usize / bits).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    *word = 1 << (node as usize % bits);
    // The kernel uses one bit less than the given number.
    let bits_told = NODES_MAX + 1;
    // SAFETY: with no flags the call sets where pages of a range will come from, and changes nothing that exists, whatever the range is. It reads the
    // mask, which lives until it returns and has the given number of bits, as the last one does not count.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            addresses.start,
            addresses.len(),
            libc::MPOL_BIND,
            mask.as_ptr(),
            bits_told,
            0,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The nodes that have memory, as the system lists them.
pub(crate) fn nodes() -> String {
    let listed = std::fs::read_to_string("/sys/devices/system/node/has_memory");
    listed.map_or_else(|_| "0".to_owned(), |nodes| nodes.trim().to_owned())
}
