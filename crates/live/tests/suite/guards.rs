//! Guards and calls that wait for them: a wait that can't end is an error, and the others go on.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that makes files, and looks at the clock"
)]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::made::{Made, PAGE, check};
use pageout::{Advice, Error, File, Memory, Open, ReadAt};

/// A call that has not returned by then hangs, on a machine that is busy with other things, too.
const SOON: Duration = Duration::from_secs(60);

fn cache(name: &str) -> (Made, Memory, File) {
    let made = Made::new(name, 64 * PAGE);
    let memory = Memory::builder().budget(8 << 20).guard_wait(10 * SOON).build().unwrap();
    let file = memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
    (made, memory, file)
}

/// What a call comes to, in a thread of its own.
fn in_time<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        scope.spawn(move || tell.send(call()).unwrap());
        told.recv_timeout(SOON).expect("a call hangs")
    })
}

fn is_held(outcome: &Result<(), Error>, held: u64) -> bool {
    matches!(outcome, Err(Error::Pinned { page: Some(page), .. }) if *page == held)
}

#[test]
fn write_to_own_guarded_page_is_refused() {
    let (_made, _memory, file) = cache("own");
    in_time(|| {
        let read = file.page(3).unwrap();
        let far = 3 * PAGE as u64;
        assert!(is_held(&file.write_at(b"x", far), 3));
        assert!(is_held(&file.write_at(&[1; 3 * PAGE], far - PAGE as u64), 3), "of several pages");
        assert!(is_held(&file.page_mut(3).map(drop), 3));
        drop(read);
        let written = file.page_mut(3).unwrap();
        assert!(is_held(&file.write_at(b"x", far), 3));
        assert!(is_held(&file.page_mut(3).map(drop), 3));
        assert!(is_held(&file.page(3).map(drop), 3));
        assert!(is_held(&file.read_at(&mut [0; 9], far), 3));
        assert!(is_held(&file.sync_data(), 3), "the device can't get the page");
        assert!(is_held(&file.set_len(far), 3));
        assert!(is_held(&file.reload(), 3));
        assert!(is_held(&file.clone().forget(), 3));
        assert!(is_held(&file.clone().forget_and_discard(), 3));
        drop(written);
        file.write_at(b"x", far).unwrap();
        file.sync_data().unwrap();
        file.set_len(far).unwrap();
    });
}

#[test]
fn wait_for_reads_of_own_guarded_page_is_refused() {
    let (_made, _memory, file) = cache("own-reads");
    in_time(|| {
        let written = file.page_mut(3).unwrap();
        let mut bufs = [[0; 9]; 3];
        let reads = (2..).zip(&mut bufs).map(|(page, buf)| ReadAt { buf, offset: page * PAGE as u64 });
        let pending = file.submit(reads.collect()).unwrap();
        assert!(is_held(&pending.wait(), 3));
        drop(written);
    });
}

#[test]
fn wait_for_reads_goes_on_when_another_thread_drops_its_guard() {
    let (_made, _memory, file) = cache("other-reads");
    let (written, held) = (mpsc::channel(), mpsc::channel::<()>());
    std::thread::scope(|scope| {
        let file = &file;
        scope.spawn(move || {
            let guard = file.page_mut(3).unwrap();
            written.0.send(()).unwrap();
            let _ = held.1.recv_timeout(Duration::from_millis(400));
            drop(guard);
        });
        written.1.recv().unwrap();
        let mut buf = [0; 9];
        let pending = file.submit(vec![ReadAt { buf: &mut buf, offset: 3 * PAGE as u64 }]).unwrap();
        in_time(|| pending.wait()).unwrap();
        drop(held.0);
        check(&buf, 3 * PAGE);
    });
}

#[test]
fn more_guards_than_a_line_holds_are_known() {
    let (_made, _memory, file) = cache("many");
    in_time(|| {
        let guards: Vec<_> = (0..40).map(|page| file.page(page).unwrap()).collect();
        for page in [0, 15, 16, 39] {
            assert!(is_held(&file.write_at(b"x", page * PAGE as u64), page), "page {page}");
        }
        drop(guards);
        file.write_at(b"x", 39 * PAGE as u64).unwrap();
    });
}

#[test]
fn one_of_two_threads_that_wait_for_each_other_is_refused() {
    let (_made, _memory, file) = cache("circle");
    for kind in 0..3 {
        let meet = std::sync::Barrier::new(2);
        let outcomes = std::thread::scope(|scope| {
            let turn = |own: u64, other: u64| {
                let (file, meet) = (&file, &meet);
                scope.spawn(move || {
                    let (read, written) = match kind {
                        0 => (Some(file.page(own).unwrap()), None),
                        _ => (None, Some(file.page_mut(own).unwrap())),
                    };
                    meet.wait();
                    let outcome = match kind {
                        2 => file.read_at(&mut [0; 9], other * PAGE as u64),
                        _ => file.write_at(b"x", other * PAGE as u64),
                    };
                    drop((read, written));
                    outcome
                })
            };
            let began = Instant::now();
            let outcomes = [turn(1, 2), turn(2, 1)].map(|thread| thread.join().unwrap());
            assert!(began.elapsed() < SOON, "kind {kind}");
            outcomes
        });
        assert_eq!(outcomes.iter().filter(|of| of.is_ok()).count(), 1, "kind {kind}: {outcomes:?}");
        let refused = outcomes.iter().filter_map(|of| of.as_ref().err());
        assert!(refused.into_iter().all(|error| matches!(error, Error::Pinned { page: Some(1 | 2), .. })));
    }
}

#[test]
fn guard_that_is_leaked_holds_a_writer_up_for_guard_wait() {
    let made = Made::new("leaked", 4 * PAGE);
    let memory = Memory::builder().budget(8 << 20).guard_wait(Duration::from_millis(300)).build().unwrap();
    let file = memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| std::mem::forget(file.page(2).unwrap()));
    });
    let began = Instant::now();
    let outcome = in_time(|| file.write_at(b"x", 2 * PAGE as u64));
    assert!(is_held(&outcome, 2) && began.elapsed() >= Duration::from_millis(300), "{outcome:?}");
    file.write_at(b"x", 3 * PAGE as u64).unwrap();
}

#[test]
fn writer_waits_for_guard_of_another_thread() {
    let (_made, _memory, file) = cache("waits");
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        scope.spawn({
            let file = &file;
            move || {
                let guard = file.page(1).unwrap();
                tell.send(()).unwrap();
                std::thread::sleep(Duration::from_millis(400));
                drop(guard);
            }
        });
        told.recv().unwrap();
        let began = Instant::now();
        file.write_at(b"x", PAGE as u64).unwrap();
        assert!(began.elapsed() > Duration::from_millis(200));
    });
}

#[test]
fn reads_that_nobody_polls_hold_no_writer_up() {
    let made = Made::new("unpolled", 64 * PAGE);
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    let reader = memory.open(&made.0, Open::read().random().buffered(true)).unwrap();
    let mut bufs = [[0; PAGE]; 4];
    let reads = (0..).zip(&mut bufs).map(|(page, buf)| pageout::ReadAt { buf, offset: page * PAGE as u64 });
    let pending = reader.submit(reads.collect()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let writer = memory.open(&made.0, Open::read_write().buffered(true)).unwrap();
    in_time(|| writer.write_at(&[9; 4 * PAGE], 0)).unwrap();
    in_time(|| writer.set_len(0)).unwrap();
    drop(pending);
}

#[test]
fn numbers_that_no_file_has_are_refused() {
    let (_made, _memory, file) = cache("numbers");
    let most = u64::MAX;
    for at in [most, most - 1, most - 4095, most / 2, 1 << 62, 1 << 42] {
        let outcome = file.write_at(b"ab", at);
        assert!(matches!(outcome, Err(Error::TooLong { .. })), "{at}: {outcome:?}");
        let outcome = file.set_len(at + u64::from(at == 1 << 42));
        assert!(matches!(outcome, Err(Error::TooLong { .. })), "{at}: {outcome:?}");
        assert!(matches!(file.read_at(&mut [0; 2], at), Err(Error::BeyondEnd { .. })));
        assert!(matches!(file.page(at).map(drop), Err(Error::BeyondEnd { .. })));
        assert!(matches!(file.page_mut(at).map(drop), Err(Error::BeyondEnd { .. })));
        assert!(matches!(file.prefetch(0..at), Err(Error::BeyondEnd { .. })));
    }
    let reversed = std::ops::Range { start: 90_000, end: 10 };
    for advice in [Advice::WillNeed, Advice::DontNeed, Advice::Normal] {
        assert!(matches!(file.advise(advice, reversed.clone()), Err(Error::Config(_))));
    }
    assert!(matches!(file.prefetch(reversed), Err(Error::Config(_))));
    assert_eq!(file.len(), 64 * PAGE as u64);
    file.sync_data().unwrap();
}
