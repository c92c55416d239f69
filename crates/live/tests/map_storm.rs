//! Mapped regions that come and go while others fault, the budget shrinks and grows, groups are limited, and the process forks.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes threads and children")]

mod made;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use made::draws;
use pageout::{Group, Limits, MapOptions, MappedRegion, Memory, RegionAdvice, RegionOptions, Zswap};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
const WORKERS: u64 = 3;
const LEAST: u64 = 14 * MIB;
const MOST: u64 = 40 * MIB;

struct Storm {
    memory: Memory,
    groups: [Group; 2],
    until: Instant,
    has_ended: AtomicBool,
    regions: AtomicU64,
    accesses: AtomicU64,
}

fn word(map: &MappedRegion, page: u64) -> *mut u64 {
    assert!((page + 1) * PAGE <= map.len());
    map.as_mut_ptr().wrapping_add((page * PAGE) as usize).cast()
}

impl Storm {
    fn new(policy: &str, zswap: Option<Zswap>, span: Duration) -> Storm {
        let builder = Memory::builder().budget(MOST).files(256 * MIB).policy(policy);
        let builder = builder.swap_file(std::env::temp_dir(), 128 * MIB).swap_buffered(true);
        let memory = zswap.map_or(builder.clone(), |zswap| builder.zswap(zswap)).build().unwrap();
        let limits = Limits { max: Some(6 * MIB), ..Limits::NONE };
        let groups = ["one", "two"].map(|name| memory.group(name, limits).unwrap());
        let [regions, accesses] = [(); 2].map(|()| AtomicU64::new(0));
        let until = Instant::now() + span;
        Storm { memory, groups, until, has_ended: AtomicBool::new(false), regions, accesses }
    }

    fn is_over(&self) -> bool {
        Instant::now() > self.until || self.has_ended.load(SeqCst)
    }

    /// Makes regions, one after the other, and checks each load.
    fn work(&self, worker: u64) {
        let mut draw = draws(worker);
        while !self.is_over() {
            let options = MapOptions::new().handlers(1 + draw(3) as usize).user_mode_only(draw(2) == 0);
            let options = match draw(3) {
                0 => options,
                group => options.group(&self.groups[group as usize - 1]),
            };
            let map = self.memory.map_region((1 + draw(12)) * MIB, options).unwrap();
            let pages = map.len() / PAGE;
            let mut values = vec![0; pages as usize];
            for at in 1..=draw(4000) {
                let page = draw(if at % 2 == 0 { pages / 4 } else { pages });
                let value = &mut values[page as usize];
                // SAFETY: the word is in the region, which only this thread uses.
                let found = unsafe { word(&map, page).read_volatile() };
                assert_eq!(found, *value, "page {page} of {pages}, access {at} of worker {worker}");
                if draw(2) == 0 {
                    *value = at << 8 | worker;
                    // SAFETY: as above.
                    unsafe { word(&map, page).write_volatile(*value) };
                }
                if draw(200) == 0 {
                    let end = pages.min(page + 1 + draw(64));
                    let bytes = page * PAGE..end * PAGE;
                    match draw(3) {
                        0 => map.advise(RegionAdvice::PageOut, bytes).unwrap(),
                        1 => map.advise(RegionAdvice::Cold, bytes).unwrap(),
                        _ => {
                            map.discard(bytes).unwrap();
                            values[page as usize..end as usize].fill(0);
                        }
                    }
                }
                self.accesses.fetch_add(1, SeqCst);
            }
            self.regions.fetch_add(1, SeqCst);
        }
    }

    /// Changes what can be changed.
    fn disturb(&self) {
        let (mut draw, least) = (draws(99), self.memory.stats().unwrap());
        assert!(least.frames > 0);
        while !self.is_over() {
            match draw(6) {
                0 => self.memory.set_budget(LEAST).unwrap(),
                1 => self.memory.set_budget(LEAST + draw(MOST - LEAST)).unwrap(),
                2 => self.memory.set_budget(MOST).unwrap(),
                3 => {
                    let max = (4 + draw(4)) * MIB;
                    self.groups[draw(2) as usize].write("memory.max", &max.to_string()).unwrap();
                }
                4 => fork(),
                _ => {
                    let region = self.memory.region(4 * MIB, RegionOptions::new()).unwrap();
                    region.write_at(&vec![7; MIB as usize], MIB).unwrap();
                }
            }
            std::thread::sleep(Duration::from_millis(draw(10)));
        }
    }
}

/// Makes a child, which ends.
fn fork() {
    // SAFETY: the child makes one call, which children may make.
    let child = unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            child => child,
        }
    };
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: the call writes to the one place that it is given.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
}

/// Sets the flag when it goes, so that others end when one fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, SeqCst);
        }
    }
}

#[test]
fn mapped_regions_keep_their_contents_in_a_storm() {
    let seconds = std::env::var("PAGEOUT_STORM_SECONDS").map_or(2, |seconds| seconds.parse().unwrap());
    for (policy, zswap) in [
        ("classic@6.12", None),
        ("mglru@6.12", Some(Zswap::lz4())),
        ("classic@6.12", Some(Zswap::zstd(1))),
        ("mglru@7.3", None),
    ] {
        let storm = Storm::new(policy, zswap, Duration::from_secs(seconds));
        std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let storm = &storm;
                scope.spawn(move || {
                    let _ends = Ends(&storm.has_ended);
                    storm.work(worker);
                });
            }
            scope.spawn(|| {
                let _ends = Ends(&storm.has_ended);
                storm.disturb();
            });
        });
        let (regions, accesses) = (storm.regions.load(SeqCst), storm.accesses.load(SeqCst));
        let stats = storm.memory.stats().unwrap();
        println!("{policy}, {zswap:?}: {regions} regions, {accesses} accesses, {} misses", stats.misses);
        assert!(regions > 5 && stats.misses > 1000, "{policy}: {regions} regions, {stats:?}");
        assert_eq!((stats.anon, stats.swapped), (0, 0), "{policy}");
        storm.memory.look_at_engine(|engine| engine.check_invariants()).unwrap();
    }
}
