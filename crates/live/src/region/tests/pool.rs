//! Groups whose compressed pool is full.

use super::*;

/// A page of random bytes, which compresses to half.
fn half_random(page: u64) -> Vec<u8> {
    let random = Random::new(page << 20);
    let mut bytes = vec![0; PAGE];
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
    bytes[8..PAGE / 2].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
    bytes
}

/// Results of writes to a group at its limit.
struct Filled {
    memory: Memory,
    region: Region,
    written: u64,
    /// Slots that are used.
    swapped: u64,
    /// The error of the write that was refused.
    refused: Option<String>,
}

/// Writes this many pages of a group at its limit, or until one is refused.
fn fill_group(shrinker: u64, all: u64, faults: Arc<dyn Faults>) -> Filled {
    let builder = builder((Backend::Threads, 2)).swap_faults(faults).zswap(Zswap::lz4());
    let builder = builder.sysctl("zswap.shrinker_enabled", shrinker).sysctl("zswap.max_pool_percent", 50);
    let memory = builder.build().unwrap();
    let group = memory.group("job", Limits { max: Some(100 * PAGE_SIZE), ..Limits::NONE }).unwrap();
    let region = memory.region(1000 * PAGE_SIZE, RegionOptions::new().group(&group)).unwrap();
    let (mut written, mut refused) = (0, None);
    let began = Instant::now();
    while written < all {
        match region.write_at(&half_random(written), written * PAGE_SIZE) {
            Ok(()) => written += 1,
            Err(error) => {
                assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
                refused = Some(error.to_string());
                break;
            }
        }
    }
    assert!(began.elapsed() < Duration::from_secs(60), "{written} pages took {:?}", began.elapsed());
    let swapped = memory.stats().unwrap().swapped;
    Filled { memory, region, written, swapped, refused }
}

/// Checks all pages that were written.
fn check_half_random(region: &Region, pages: u64) {
    let mut buf = vec![7; PAGE];
    for page in 0..pages {
        region.read_at(&mut buf, page * PAGE_SIZE).unwrap();
        assert!(buf == half_random(page), "page {page}: {:?}", &buf[..8]);
    }
}

/// The kernel's default of the shrinker is off. A group whose pool fills its limit then can't even read its pages, although slots are free: a kernel would
/// kill the task. So a cache turns the shrinker on.
#[test]
fn full_pool_of_a_group_is_unreadable_without_the_shrinker() {
    let well = || Failing::new(libc::EIO, is_write);
    // Compressed, all pages are five times the group's limit.
    let Filled { region, written, swapped, .. } = fill_group(1, 1000, well());
    assert!(written == 1000 && swapped > 800, "{written} pages, {swapped} slots");
    check_half_random(&region, written);
    let Filled { memory, region, written, swapped, .. } = fill_group(0, 1000, well());
    assert!(written < 300 && swapped < 300, "{written} pages, {swapped} slots");
    let read = region.read_at(&mut [0; PAGE], 0);
    assert!(matches!(read, Err(Error::OutOfMemory(_))), "{read:?}");
    memory.write("/sys/module/zswap/parameters/shrinker_enabled", "1").unwrap();
    check_half_random(&region, written);
}

/// The shrinker writes few pages of a full pool to a device that fails: otherwise pages would go round between the pool and writes that fail. The access that
/// finds no memory fails, and says why. All pages are there when the device takes writes again.
#[test]
fn full_pool_before_a_failing_swap_file_is_an_error() {
    for shrinker in [0, 1] {
        let failing = Failing::new(libc::ENOSPC, is_write);
        failing.is_on.store(true, SeqCst);
        let Filled { memory, region, written, refused, .. } =
            fill_group(shrinker, 1000, Arc::clone(&failing) as Arc<dyn Faults>);
        assert!((100..300).contains(&written), "shrinker {shrinker}: {written} pages");
        let (refused, failed) = (refused.unwrap(), failing.failed.load(SeqCst));
        // Some are in flight when the first one fails.
        assert!(failed < 500, "shrinker {shrinker}: {failed} writes for {written} pages");
        let says_why = refused.contains("page writes to swap failed, so pages stay in memory: free space");
        assert_eq!(says_why, shrinker == 1, "{refused}");
        failing.is_on.store(false, SeqCst);
        memory.write("/sys/module/zswap/parameters/shrinker_enabled", "1").unwrap();
        check_half_random(&region, written);
    }
}
