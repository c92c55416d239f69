//! Users that do more with a mapped region than to load and store: they lock it, run over its end, have it removed, and repair it.

use super::*;

/// Has a thread load a page that can't be read, and waits for the signal that it gets.
fn lose(map: &Arc<MappedRegion>, page: u64) {
    let (other, before) = (Arc::clone(map), SIGNALS.load(SeqCst));
    thread::spawn(move || load(&other, page));
    await_that("the access gets no signal", || SIGNALS.load(SeqCst) > before);
    let error = map.take_error();
    assert!(matches!(error, Some(Error::SwapIo { page: of, .. }) if of == page), "{error:?}");
}

#[test]
fn lost_page_is_read_again_or_discarded() {
    if !is_child() {
        let status = run_in_child("uses::lost_page_is_read_again_or_discarded");
        assert!(status.success(), "{status}");
        return;
    }
    sleep_at(libc::SIGBUS);
    let (memory, device) = with_device(builder(SMALL));
    let map = Arc::new(memory.map_region(24 * MIB, MapOptions::new()).unwrap());
    let pages = pages_of(&map);
    (0..pages).for_each(|page| store(&map, page, page + 1));
    device.fails_reads.store(true, SeqCst);
    (0..4).for_each(|page| lose(&map, page));
    device.fails_reads.store(false, SeqCst);
    // The device works again, and the page is lost still.
    let other = Arc::clone(&map);
    thread::spawn(move || load(&other, 0));
    await_that("the access gets no signal", || SIGNALS.load(SeqCst) == 5);
    // No other page is.
    (4..pages).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page}"));
    // One page is discarded. A part of another one is not enough.
    map.discard(0..PAGE_SIZE + 9).unwrap();
    assert_eq!(load(&map, 0), 0);
    store(&map, 0, 77);
    // The rest is there, and comes back when it is asked for.
    assert_eq!(map.retry_lost(), 3);
    assert_eq!(map.retry_lost(), 0);
    (1..pages).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page}"));
    (0..pages).for_each(|page| store_at(&map, page, 1, page + 2));
    (1..pages).for_each(|page| assert_eq!((load(&map, page), load_at(&map, page, 1)), (page + 1, page + 2)));
    assert_eq!(load(&map, 0), 77);
    check(&memory);
    std::process::exit(0);
}

/// If the system filled holes of the alias, the user would find zeroes instead of what is in swap.
#[test]
fn locked_alias_creates_no_pages() {
    let memory = builder(SMALL).build().unwrap();
    let map = memory.map_region(24 * MIB, MapOptions::new()).unwrap();
    let pages = pages_of(&map);
    (0..pages).for_each(|page| store(&map, page, page + 1));
    let alias = map.mapping().alias(0);
    // SAFETY: the range is of the alias, which exists as long as the region. The calls change no contents.
    unsafe {
        libc::mlock(alias.cast(), (pages * PAGE_SIZE) as usize);
        (0..pages).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page}"));
        libc::munlock(alias.cast(), (pages * PAGE_SIZE) as usize);
    }
    // The resident set does not have those that are not mapped.
    let (existing, frames) = (map.mapping().existing(), memory.stats().unwrap().frames);
    assert!((frames / 2..=frames).contains(&existing), "{existing} pages of {pages}, and {frames} frames");
    (0..pages).for_each(|page| store(&map, page, page + 2));
    (0..pages).for_each(|page| assert_eq!(load(&map, page), page + 2, "page {page}"));
    check(&memory);
}

#[test]
fn process_that_locks_its_memory_keeps_its_regions() {
    if !is_child() {
        let status = run_in_child("uses::process_that_locks_its_memory_keeps_its_regions");
        assert!(status.success(), "{status}");
        return;
    }
    for user_mode_only in [true, false] {
        let memory = builder(SMALL).build().unwrap();
        let options = || MapOptions::new().user_mode_only(user_mode_only);
        let map = memory.map_region(12 * MIB, options()).unwrap();
        let pages = pages_of(&map);
        (0..pages).for_each(|page| store(&map, page, page + 1));
        // SAFETY: the calls change no contents. Users without privileges may lock little, and then the first one changes nothing.
        let is_locked = unsafe { libc::mlockall(libc::MCL_CURRENT) } == 0;
        for round in 1..3 {
            for page in 0..pages {
                assert_eq!(load(&map, page), page + round, "page {page} in round {round}");
                store(&map, page, page + round + 1);
            }
        }
        let (existing, frames) = (map.mapping().existing(), memory.stats().unwrap().frames);
        assert!(existing <= frames, "{existing} pages of {pages}, and {frames} frames");
        check(&memory);
        // SAFETY: as above.
        if is_locked && unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } == 0 {
            // All of a new region would be filled at once.
            let error = memory.map_region(MIB, options()).unwrap_err().to_string();
            assert!(error.contains("locked memory"), "{error}");
        }
        // SAFETY: as above.
        unsafe { libc::munlockall() };
        (0..pages).for_each(|page| assert_eq!(load(&map, page), page + 3, "page {page}"));
    }
    std::process::exit(0);
}

#[test]
fn load_behind_the_end_is_sigsegv() {
    if !is_child() {
        let status = run_in_child("uses::load_behind_the_end_is_sigsegv");
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
        return;
    }
    // SAFETY: the call changes what a signal does, to what it does in a process without Rust.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
    let memory = builder(16 * MIB).build().unwrap();
    let map = memory.map_region(16 * PAGE_SIZE, MapOptions::new()).unwrap();
    store(&map, 15, 1);
    // SAFETY: the load is out of bounds, and ends the child: that is what is tested.
    unsafe { map.as_mut_ptr().wrapping_add(16 * PAGE_SIZE as usize).read_volatile() };
    std::process::exit(0);
}

/// A thread that runs far over the end must not stop those that serve faults.
#[test]
fn load_far_behind_the_end_stops_no_handler() {
    if !is_child() {
        let status = run_in_child("uses::load_far_behind_the_end_stops_no_handler");
        assert!(status.success(), "{status}");
        return;
    }
    sleep_at(libc::SIGBUS);
    let memory = builder(16 * MIB).build().unwrap();
    let map = Arc::new(memory.map_region(48 * MIB, MapOptions::new().handlers(2)).unwrap());
    let behind = map.mapping().user_page(map.mapping().doorbell());
    for count in 1..=3 {
        // SAFETY: the load gets SIGBUS: that is what is tested.
        thread::spawn(move || unsafe { std::ptr::with_exposed_provenance::<u8>(behind).read_volatile() });
        await_that("the access gets no signal", || SIGNALS.load(SeqCst) == count);
    }
    (0..pages_of(&map)).for_each(|page| store(&map, page, page + 1));
    (0..pages_of(&map)).for_each(|page| assert_eq!(load(&map, page), page + 1));
    drop(Arc::into_inner(map).unwrap());
    assert_eq!(memory.stats().unwrap().anon, 0);
    std::process::exit(0);
}

/// The call is what the documentation forbids: the pages are gone, and no thread waits forever.
#[test]
fn pages_that_the_system_was_told_to_remove_are_zeroes() {
    let memory = builder(24 * MIB).build().unwrap();
    let map = memory.map_region(8 * MIB, MapOptions::new()).unwrap();
    let pages = pages_of(&map);
    for writes in [false, true] {
        (0..pages).for_each(|page| store(&map, page, page + 1));
        let half = (pages / 2 * PAGE_SIZE) as usize;
        // SAFETY: the range is of the region, to which no reference leads.
        assert_eq!(unsafe { libc::madvise(map.as_mut_ptr().cast(), half, libc::MADV_REMOVE) }, 0);
        if writes {
            (0..pages).for_each(|page| store_at(&map, page, 1, 7));
        }
        for page in 0..pages {
            let first = if page < pages / 2 { 0 } else { page + 1 };
            assert_eq!(load(&map, page), first, "page {page}");
        }
    }
    map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
    (0..pages).for_each(|page| assert_eq!(load_at(&map, page, 1), 7));
    check(&memory);
}

/// The engine takes its own entry of a page away before it asks if a handler has the page. The user has it then, and does not fault again.
#[test]
fn page_that_was_served_during_an_eviction_is_evicted_later() {
    let memory = builder(24 * MIB).zswap(Zswap::lz4()).build().unwrap();
    let map = memory.map_region(MIB, MapOptions::new()).unwrap();
    store(&map, 5, 6);
    let page_out = || map.advise(RegionAdvice::PageOut, 5 * PAGE_SIZE..6 * PAGE_SIZE).unwrap();
    let machine = &memory.0.machine;
    let pfn = machine.frame_of_page(map.state.number, 5).unwrap();
    // The handler that served the store may not have ended.
    let mut served = None;
    await_that("the page stays with a handler", || {
        served = machine.arena.begin_write(pfn).ok();
        served.is_some()
    });
    page_out();
    drop(served);
    let misses = memory.stats().unwrap().misses;
    assert_eq!((load(&map, 5), memory.stats().unwrap().misses), (6, misses), "it is in memory");
    await_that("the page is not evicted", || {
        page_out();
        machine.frame_of_page(map.state.number, 5).is_none()
    });
    assert_eq!((load(&map, 5), memory.stats().unwrap().misses), (6, misses + 1));
    check(&memory);
}

/// A device that is full, until it is not.
#[test]
fn store_while_swap_can_not_be_written_is_sigbus_and_loses_nothing() {
    if !is_child() {
        let status = run_in_child("uses::store_while_swap_can_not_be_written_is_sigbus_and_loses_nothing");
        assert!(status.success(), "{status}");
        return;
    }
    sleep_at(libc::SIGBUS);
    let (memory, device) = with_device(builder(12 * MIB).backend(Backend::Threads).io_threads(2));
    let map = Arc::new(memory.map_region(48 * MIB, MapOptions::new()).unwrap());
    device.fails_writes.store(true, SeqCst);
    let stored = store_until_refused(&map);
    assert!((1000..12 * MIB / PAGE_SIZE).contains(&stored), "{stored}");
    (0..stored).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page}"));
    device.fails_writes.store(false, SeqCst);
    assert_eq!(map.retry_lost(), 1);
    for page in stored..pages_of(&map) {
        assert_eq!(load(&map, page), 0);
        store(&map, page, page + 1);
    }
    (0..pages_of(&map)).for_each(|page| assert_eq!(load(&map, page), page + 1, "page {page}"));
    check(&memory);
    std::process::exit(0);
}

/// A user protects its pages by the system's call, for example to find who stores to them.
#[test]
fn region_that_its_user_protects_is_read_and_stored_to_later() {
    for zswap in [None, Some(Zswap::lz4())] {
        let builder = builder(11 * MIB);
        let memory = zswap.map_or(builder.clone(), |zswap| builder.zswap(zswap)).build().unwrap();
        let map = memory.map_region(24 * MIB, MapOptions::new()).unwrap();
        let pages = pages_of(&map);
        let allow = |pages: Range<u64>, access| {
            let (at, bytes) = (word(&map, pages.start, 0), (pages.end - pages.start) * PAGE_SIZE);
            // SAFETY: the range is of the region, to which no reference leads. No thread makes a forbidden access.
            assert_eq!(unsafe { libc::mprotect(at.cast(), bytes as usize, access) }, 0);
        };
        for round in 0..2 {
            (0..pages).for_each(|page| store(&map, page, page + round));
            allow(0..pages, libc::PROT_READ);
            (0..pages).for_each(|page| assert_eq!(load(&map, page), page + round, "page {page}"));
            map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
            allow(pages / 4..pages / 2, libc::PROT_NONE);
            (pages / 2..pages).for_each(|page| assert_eq!(load(&map, page), page + round, "page {page}"));
            map.discard(pages / 4 * PAGE_SIZE..pages / 2 * PAGE_SIZE).unwrap();
            allow(0..pages, libc::PROT_READ | libc::PROT_WRITE);
            for page in 0..pages {
                let value = if (pages / 4..pages / 2).contains(&page) { 0 } else { page + round };
                assert_eq!(load(&map, page), value, "page {page}");
            }
        }
        assert_eq!(map.take_error().map(|error| error.to_string()), None);
        check(&memory);
    }
}

/// Descriptors run short, and then there are enough again.
#[test]
fn regions_without_descriptors_are_refused_and_harm_no_other() {
    if !is_child() {
        let status = run_in_child("uses::regions_without_descriptors_are_refused_and_harm_no_other");
        assert!(status.success(), "{status}");
        return;
    }
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: the call reads the limit, which exists until it returns.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let memory = builder(24 * MIB).build().unwrap();
    for _ in 0..3 {
        let mut maps = Vec::new();
        let error = loop {
            match memory.map_region(MIB, MapOptions::new().handlers(1)) {
                Ok(map) => maps.push(map),
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
        assert!(maps.len() > 10, "{} regions: {error}", maps.len());
        for (number, map) in (1..).zip(&maps) {
            (0..pages_of(map)).for_each(|page| store(map, page, number));
        }
        for (number, map) in (1..).zip(&maps) {
            (0..pages_of(map)).for_each(|page| assert_eq!(load(map, page), number));
        }
    }
    check(&memory);
    std::process::exit(0);
}
