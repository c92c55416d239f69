//! A system that lets the process have no io_uring, as containers' systems do: threads read, and it is told.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files")]

mod made;

use made::{Made, PAGE, check};
use pageout::{Backend, Error, Memory, Open, ReadAt};

/// Refuses a system call to this thread and to all that it starts, with an error.
fn refuse(call: libc::c_long, errno: libc::c_int) {
    let step = |code: u32, jt, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let mut steps = [
        // The call's number; if it is this one, on to the next step, else to the last.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        libc::sock_filter { jf: 1, ..step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, call as u32) },
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the calls read a program that lives until they return, and restrict this thread, which is the test's own.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}

/// Threads read, and it is said why.
fn threads_read(name: &str, why: &str) {
    let made = Made::new(name, 256 * PAGE);
    let demanded = Memory::builder().budget(8 << 20).backend(Backend::Uring).build();
    let Err(error @ Error::UringRefused { .. }) = demanded else { panic!("{demanded:?}") };
    let message = error.to_string();
    assert!(message.contains(why) && message.contains("backend(Backend::Any)"), "{message}");
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    assert_eq!(memory.backend(), Backend::Threads);
    let described = memory.describe();
    assert!(described.ends_with(&format!("by 8 threads (io_uring is not permitted: {why})")), "{described}");
    let file = memory.open(&made.0, Open::read().random()).unwrap();
    let mut buffers = vec![[0; 700]; 64];
    let batch: Vec<ReadAt> =
        (0..).zip(&mut buffers).map(|(at, buf)| ReadAt { buf, offset: at * 16_000 }).collect();
    file.submit(batch).unwrap().wait().unwrap();
    for (at, buffer) in buffers.iter().enumerate() {
        check(buffer, at * 16_000);
    }
}

#[test]
fn a_process_that_may_make_no_ring_reads_by_threads() {
    refuse(libc::SYS_io_uring_setup, libc::EPERM);
    threads_read("setup", "Operation not permitted (os error 1)");
}

#[test]
fn a_ring_that_may_not_be_entered_is_no_ring() {
    refuse(libc::SYS_io_uring_enter, libc::ENOSYS);
    threads_read("enter", "Function not implemented (os error 38)");
}
