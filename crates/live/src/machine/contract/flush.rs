//! A flush that fails: pages that it may have lost are written again, and each sync reports them until acknowledged.

use super::*;

fn flush_fails(request: Request) -> Fate {
    if request == Request::Flush { Fate::Fails(libc::EIO) } else { Fate::Well }
}

/// What a sync has failed with: pages that are not on the device, and those that may be lost.
fn told(outcome: Result<(), Error>) -> (u64, u64) {
    match outcome {
        Err(Error::Sync { failed, lost, source, .. }) => {
            assert_eq!(source.raw_os_error(), Some(libc::EIO));
            (failed, lost)
        }
        other => panic!("{other:?}"),
    }
}

/// Pages of so many that hold this byte after a loss of power.
fn kept(device: &Device, pages: usize, byte: u8) -> usize {
    let mut image = device.after_power_loss(&mut Draw(3));
    image.resize(pages * PAGE, 0);
    image.chunks(PAGE).filter(|page| page.iter().all(|&found| found == byte)).count()
}

fn flush_that_failed(backend: (Backend, usize), bug: Option<Bug>) {
    const PAGES: usize = 40;
    let (made, device) = (Made::new("flush"), Arc::new(Device::default()));
    let (memory, file) = cache(backend.0, backend.1, &made, &device);
    *memory.0.machine.bug.lock().unwrap() = bug;
    for (byte, is_known_at_once) in [(1, true), (2, false)] {
        file.write_at(&[byte; PAGES * PAGE], 0).unwrap();
        device.set(flush_fails);
        assert_eq!(told(file.sync_data()), (PAGES as u64, 0));
        assert_eq!(
            memory.stats().unwrap().dirty,
            PAGES as u64,
            "pages that the device may have lost are dirty again"
        );
        device.heal();
        if !is_known_at_once {
            // A later try succeeds, and the error is reported to other callers too.
            assert_eq!(told(file.sync_data()), (0, 0));
        }
        file.acknowledge().unwrap();
        file.sync_data().unwrap();
        assert_eq!(kept(&device, PAGES, byte), PAGES, "a sync went well, and the device has lost some of it");
    }
}

#[test]
fn what_a_failed_flush_has_lost_is_written_again_by_the_next_sync_and_told_until_acknowledged() {
    for backend in backends() {
        flush_that_failed(backend, None);
    }
}

#[test]
fn drop_names_dirty_pages_or_the_failed_sync() {
    let (made, device) = (Made::new("unsaved"), Arc::new(Device::default()));
    let (memory, file) = cache(Backend::Threads, 0, &made, &device);
    file.write_at(&[1; 3 * PAGE], 0).unwrap();
    device.set(flush_fails);
    let errno = std::io::Error::from_raw_os_error(libc::EIO);
    assert_eq!(printed_at_the_end(&memory), [format!("3 dirty pages were not written: {errno}")]);
    device.heal();
    let unacknowledged = format!("a sync failed, and the error is not acknowledged: {errno}");
    assert_eq!(printed_at_the_end(&memory), [unacknowledged]);
    file.acknowledge().unwrap();
    assert!(printed_at_the_end(&memory).is_empty());
}

#[test]
fn a_cache_that_leaves_pages_clean_whose_flush_has_failed_is_noticed() {
    assert!(is_noticed(|| flush_that_failed((Backend::Threads, 0), Some(Bug::ForgetsUnkept))));
}

#[test]
fn pages_that_had_left_memory_when_a_flush_failed_are_told() {
    const PAGES: usize = 200;
    for backend in backends() {
        let (made, device) = (Made::new("left"), Arc::new(Device::default()));
        let (_memory, file) = cache(backend.0, backend.1, &made, &device);
        file.write_at(&[1; PAGES * PAGE], 0).unwrap();
        device.set(flush_fails);
        let (failed, lost) = told(file.sync_data());
        assert!(lost > 0 && failed + lost >= PAGES as u64, "{failed} in memory, {lost} not");
        device.heal();
        assert_eq!(told(file.sync_data()), (0, lost));
        file.acknowledge().unwrap();
        file.sync_data().unwrap();
        let kept = kept(&device, PAGES, 1);
        assert!((PAGES - lost as usize..PAGES).contains(&kept), "{kept} are there, where {lost} were lost");
        // The writer writes them again.
        file.write_at(&[1; PAGES * PAGE], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(self::kept(&device, PAGES, 1), PAGES);
    }
}

#[test]
fn a_sync_waits_for_the_flush_of_another_and_fails_with_it() {
    for fails in [false, true] {
        let (made, device) = (Made::new("another"), Arc::new(Device::default()));
        let (_memory, file) = cache(Backend::Threads, 2, &made, &device);
        file.write_at(&[1; PAGE], 0).unwrap();
        let (begun, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        device.set({
            let (begun, may_end) = (Arc::clone(&begun), Arc::clone(&may_end));
            move |request| {
                if request == Request::Flush && !begun.swap(true, Relaxed) {
                    while !may_end.load(Relaxed) {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    return if fails { Fate::Fails(libc::EIO) } else { Fate::Well };
                }
                Fate::Well
            }
        });
        std::thread::scope(|scope| {
            let first = scope.spawn(|| file.sync_data());
            while !begun.load(Relaxed) {
                std::thread::sleep(Duration::from_micros(100));
            }
            let second = scope.spawn(|| file.sync_data());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!second.is_finished(), "a sync has returned before the device had kept anything");
            may_end.store(true, Relaxed);
            for outcome in [first.join().unwrap(), second.join().unwrap()] {
                assert_eq!(outcome.is_err(), fails, "{outcome:?}");
            }
        });
    }
}

#[test]
fn write_back_leaves_the_flush_to_the_next_sync() {
    const PAGES: usize = 20;
    for (backend, threads) in backends() {
        let (made, device) = (Made::new("back"), Arc::new(Device::default()));
        let (memory, file) = cache(backend, threads, &made, &device);
        device.set(flush_fails);
        file.write_at(&[1; PAGES * PAGE], 0).unwrap();
        file.write_back().unwrap();
        let stats = memory.stats().unwrap();
        assert_eq!((stats.dirty, stats.device_bytes_written), (0, (PAGES * PAGE) as u64));
        assert_eq!(told(file.sync_data()), (PAGES as u64, 0));
        device.heal();
        file.acknowledge().unwrap();
        file.sync_data().unwrap();
        assert_eq!(kept(&device, PAGES, 1), PAGES);
    }
}
