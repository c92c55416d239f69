//! Stores of several threads while pages are evicted: none is lost.

use super::*;

/// Threads store to their own words of shared pages, while pages are evicted, discarded, sampled, and their group is limited.
struct Stress {
    memory: Memory,
    map: MappedRegion,
    stops: AtomicBool,
    lost: AtomicU64,
}

const THREADS: usize = 4;
/// The first pages of the region are discarded at times: only their owner uses them.
const DISCARDED: u64 = 256;

impl Stress {
    fn new(builder: Builder, options: MapOptions) -> Stress {
        let memory = builder.build().unwrap();
        let group = memory.group("stress", Limits { max: Some(12 * MIB), ..Limits::NONE }).unwrap();
        let map = memory.map_region(48 * MIB, options.group(&group)).unwrap();
        Stress { memory, map, stops: AtomicBool::new(false), lost: AtomicU64::new(0) }
    }

    fn evicted(&self) -> u64 {
        let stats = self.memory.stats().unwrap();
        stats.device_bytes_written / PAGE_SIZE + stats.zswap_stores
    }

    /// One thread's loads and stores.
    fn access(&self, thread: usize, accesses: u64) {
        let pages = pages_of(&self.map);
        let (mut random, mut values) = (Random(thread as u64), vec![0; pages as usize]);
        for at in 1..=accesses {
            // Half of the accesses go to an eighth of the pages.
            let page = DISCARDED + random.below((pages - DISCARDED) >> if at % 2 == 0 { 3 } else { 0 });
            let value = &mut values[page as usize];
            if load_at(&self.map, page, thread) != *value {
                self.lost.fetch_add(1, SeqCst);
            }
            if random.below(2) == 0 {
                *value = at;
                store_at(&self.map, page, thread, at);
            }
        }
        for page in DISCARDED..pages {
            if load_at(&self.map, page, thread) != values[page as usize] {
                self.lost.fetch_add(1, SeqCst);
            }
        }
    }

    /// Another thread changes what it can.
    fn disturb(&self) {
        let mut random = Random(99);
        let pagemap = self.memory.0.machine.arena.tokens.pagemap();
        while !self.stops.load(SeqCst) {
            let (page, count) = (random.below(pages_of(&self.map) - 64), 1 + random.below(64));
            let bytes = page * PAGE_SIZE..(page + count) * PAGE_SIZE;
            match random.below(6) {
                0 => {
                    (0..DISCARDED).for_each(|page| store(&self.map, page, page + 1));
                    self.map.discard(0..DISCARDED / 2 * PAGE_SIZE).unwrap();
                    for page in 0..DISCARDED {
                        let wanted = if page < DISCARDED / 2 { 0 } else { page + 1 };
                        if load(&self.map, page) != wanted {
                            self.lost.fetch_add(1, SeqCst);
                        }
                    }
                }
                1 => pagemap.sample(self.map.mapping(), page..page + count, &mut Vec::new()).unwrap(),
                2 => {
                    let max = 8 + random.below(5);
                    let path = "/sys/fs/cgroup/stress/memory.max";
                    self.memory.write(path, &(max * MIB).to_string()).unwrap();
                }
                3 => self.map.advise(RegionAdvice::Cold, bytes).unwrap(),
                _ => self.map.advise(RegionAdvice::PageOut, bytes).unwrap(),
            }
        }
    }

    /// Lost stores, and evictions.
    fn run(&self, accesses: u64) -> (u64, u64) {
        thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|at| scope.spawn(move || self.access(at, accesses))).collect();
            let disturber = scope.spawn(|| self.disturb());
            let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
            self.stops.store(true, SeqCst);
            disturber.join().unwrap();
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        (self.lost.load(SeqCst), self.evicted())
    }
}

#[test]
fn no_store_is_lost_by_evictions() {
    for (zswap, policy, user_mode_only) in [
        (None, "mglru@6.12", true),
        (Some(Zswap::lz4()), "mglru@6.12", false),
        (None, "classic@6.12", false),
        (Some(Zswap::lz4()), "classic@6.12", true),
    ] {
        let builder = builder(24 * MIB).policy(policy);
        let builder = zswap.map_or(builder.clone(), |zswap| builder.zswap(zswap));
        let stress = Stress::new(builder, MapOptions::new().user_mode_only(user_mode_only));
        let (lost, evicted) = stress.run(6_000);
        println!("{policy}, {zswap:?}: {lost} stores lost in {evicted} evictions");
        assert_eq!(lost, 0, "{policy}, {zswap:?}: stores lost in {evicted} evictions");
        assert!(evicted > 3_000, "{policy}, {zswap:?}: {evicted} evictions");
        assert_eq!(stress.map.take_error().map(|error| error.to_string()), None);
        check(&stress.memory);
    }
}

/// Until then an eviction has to succeed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A page is stored to all the time while another thread has it evicted: the number of stores that were lost until the first or the last round.
fn lost_stores(forgets_protection: bool, rounds: u64, longest: Duration) -> u64 {
    let memory = builder(24 * MIB).zswap(Zswap::zstd(6)).build().unwrap();
    let map = memory.map_region(MIB, MapOptions::new()).unwrap();
    map.mapping().forgets_protection.store(forgets_protection, SeqCst);
    // The page takes some time to be compressed.
    let mut random = Random(5);
    (64..512).for_each(|number| store_at(&map, 0, number, random.below(1 << 40)));
    let (stops, lost) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut value = 0;
            while !stops.load(SeqCst) {
                value += 1;
                store(&map, 0, value);
                for _ in 0..20 {
                    if load(&map, 0) != value {
                        lost.fetch_add(1, SeqCst);
                        value = load(&map, 0);
                    }
                }
            }
        });
        let began = Instant::now();
        for round in 0.. {
            // A page that is loaded from on its way out stays: on a busy machine that can happen many times in a row.
            let is_evicted = || memory.stats().unwrap().zswap_stores > 0;
            if round >= rounds && began.elapsed() >= longest && (is_evicted() || began.elapsed() >= PATIENCE)
            {
                break;
            }
            map.advise(RegionAdvice::PageOut, 0..PAGE_SIZE).unwrap();
            // The other thread brings the page back, and stores to it.
            thread::yield_now();
            if lost.load(SeqCst) > 0 {
                break;
            }
        }
        stops.store(true, SeqCst);
    });
    assert!(memory.stats().unwrap().zswap_stores > 0, "the page was never evicted");
    lost.load(SeqCst)
}

#[test]
fn store_during_an_eviction_is_lost_only_without_protection() {
    assert_eq!(lost_stores(false, 3_000, Duration::ZERO), 0);
    assert!(lost_stores(true, 3_000, Duration::from_secs(60)) > 0, "the test does not notice a lost store");
}

#[test]
fn reads_of_a_region_into_another_do_not_begin_while_its_length_changes() {
    const PAGE: usize = PAGE_SIZE as usize;
    let memory = builder(16 * MIB).build().unwrap();
    let region = memory.region(1200 * PAGE_SIZE, RegionOptions::new()).unwrap();
    let map = memory.map_region(64 * PAGE_SIZE, MapOptions::new()).unwrap();
    let stops = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stops.load(SeqCst) {
                map.advise(RegionAdvice::PageOut, 0..map.len()).unwrap();
                // SAFETY: nobody else uses the memory, which exists until the end of the scope.
                let buf = unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr(), 32 * PAGE) };
                for (at, four) in (0..).zip(buf.chunks_mut(4 * PAGE)) {
                    let reads = (600 + 4 * at..).zip(four.chunks_mut(PAGE));
                    let mut reads: Vec<_> =
                        reads.map(|(page, buf)| crate::ReadAt { buf, offset: page * PAGE_SIZE }).collect();
                    match region.read_batch(&mut reads) {
                        Ok(()) | Err(Error::BeyondEnd { .. } | Error::CutMeanwhile { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
        for round in 0..200 {
            (600..632).for_each(|page| region.write_at(&[7; PAGE], page * PAGE_SIZE).unwrap());
            region.advise(RegionAdvice::PageOut, 0..region.len()).unwrap();
            thread::sleep(Duration::from_micros(round * 37 % 3000));
            region.set_len(5 * PAGE_SIZE).unwrap();
            region.set_len(1200 * PAGE_SIZE).unwrap();
        }
        stops.store(true, SeqCst);
    });
    check(&memory);
}
