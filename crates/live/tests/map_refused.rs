//! Mapped regions where the system refuses a call: a filter of seccomp(2) in a thread of its own.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that installs filters in threads")]

use pageout::{Error, MapOptions, Memory, RegionOptions};

const MIB: u64 = 1 << 20;
const PAGEMAP_SCAN: u32 = 0xc060_6610;
const NEW_BY_DEVICE: u32 = 0xaa00;
const WRITEPROTECT: u32 = 0xc018_aa06;
const REGISTER: u32 = 0xc020_aa00;

fn step(code: u32, k: u32, if_true: u8, if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_true, jf: if_false, k }
}

/// Refuses userfaultfd(2) if asked, and these requests of ioctl(2), for this thread and those that it starts.
fn refuse(userfaultfd: bool, requests: &[u32], errno: i32) {
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let answer = |answer| step(libc::BPF_RET | libc::BPF_K, answer, 0, 0);
    let equal = |value, if_false| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, 0, if_false);
    let refused = libc::SECCOMP_RET_ERRNO | errno as u32;
    let mut filter = Vec::new();
    if userfaultfd {
        filter.extend([load(0), equal(libc::SYS_userfaultfd as u32, 1), answer(refused)]);
    }
    for &request in requests {
        // The number of the call, and the lower half of its second argument.
        let number = equal(libc::SYS_ioctl as u32, 3);
        filter.extend([load(0), number, load(24), equal(request, 1), answer(refused)]);
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the first call takes numbers. The second one reads the filter, which exists until it returns.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

fn refused(userfaultfd: bool, requests: &'static [u32], errno: i32) -> Error {
    let memory = Memory::builder().budget(16 * MIB).build().unwrap();
    std::thread::spawn(move || {
        refuse(userfaultfd, requests, errno);
        let error = memory.map_region(MIB, MapOptions::new()).unwrap_err();
        // What needs none of these calls works.
        let region = memory.region(MIB, RegionOptions::new()).unwrap();
        region.write_at(b"bytes", 4096).unwrap();
        error
    })
    .join()
    .unwrap()
}

#[test]
fn refused_call_is_named_with_its_errno() {
    for (userfaultfd, requests, errno, call) in [
        (true, &[NEW_BY_DEVICE][..], libc::EPERM, "userfaultfd(2) for user code only"),
        (true, &[NEW_BY_DEVICE], libc::ENOSYS, "userfaultfd(2) for user code only"),
        (false, &[REGISTER], libc::EINVAL, "UFFDIO_REGISTER"),
        (false, &[PAGEMAP_SCAN], libc::ENOTTY, "PAGEMAP_SCAN (Linux 6.7)"),
        (false, &[WRITEPROTECT], libc::EPERM, "UFFDIO_WRITEPROTECT"),
    ] {
        let error = refused(userfaultfd, requests, errno);
        let text = error.to_string();
        assert!(text.contains(call) && text.contains("help: use `Memory::region`"), "{text}");
        assert_eq!(error.raw_os_error(), Some(errno), "{text}");
        assert!(matches!(error, Error::FaultsRefused { .. }), "{text}");
    }
}

#[test]
fn form_without_privileges_follows_the_others() {
    let memory = Memory::builder().budget(16 * MIB).build().unwrap();
    std::thread::spawn(move || {
        refuse(false, &[NEW_BY_DEVICE], libc::EPERM);
        let map = memory.map_region(MIB, MapOptions::new()).unwrap();
        assert!(map.describe().starts_with("faults by userfaultfd(2)"), "{}", map.describe());
        let map = memory.map_region(MIB, MapOptions::new().user_mode_only(true)).unwrap();
        assert!(map.describe().contains("EFAULT"), "{}", map.describe());
    })
    .join()
    .unwrap();
}
