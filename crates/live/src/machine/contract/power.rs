//! Power is lost while several threads write, at any moment, including that of a sync. For each file, synced data is present, and data that was cut
//! off before a sync is not.
//!
//! A device keeps of what was not flushed any sectors of any writes and lengths. That is as if it had made them in another order: an older write that goes
//! over a newer one is a newer one that was lost. Each word names its file and sector, and the write that put it there.

use super::*;

const FILES: u64 = 3;
const SECTORS: usize = 600;

/// Possible contents of each sector of a file, recorded after a sync.
struct Told {
    /// A write that is present, or a later one. Zero: none need be present.
    least: [u64; SECTORS],
    /// The last write of the part that was cut off: it is missing, and so is any earlier one.
    gone: [u64; SECTORS],
}

/// A file, written by one thread.
struct Written {
    number: u64,
    told: Mutex<Told>,
    last: AtomicU64,
    device: Arc<Device>,
}

impl Written {
    fn word(&self, sector: usize, write: u64) -> u64 {
        (self.number + 1) << 56 | (sector as u64) << 40 | write
    }

    /// Writes runs of sectors, cuts the file now and then, and syncs, until all is over.
    fn write(&self, file: &File, is_over: &AtomicBool) {
        let mut draw = Draw(self.number + 77);
        let (mut least, mut gone) = ([0; SECTORS], [0; SECTORS]);
        for write in 1.. {
            if is_over.load(Relaxed) {
                return;
            }
            let first = draw.below(SECTORS as u64) as usize;
            let end = SECTORS.min(first + 1 + draw.below(20) as usize);
            match draw.below(60) {
                0 => {
                    // From now on it may be gone.
                    self.told.lock().unwrap().least[first..].fill(0);
                    file.set_len((first * SECTOR) as u64).unwrap();
                    least[first..].fill(0);
                    gone[first..].fill(write - 1);
                }
                1 | 2 => {
                    file.sync_data().unwrap();
                    *self.told.lock().unwrap() = Told { least, gone };
                }
                _ => {
                    self.last.store(write, Relaxed);
                    let words = (first..end).flat_map(|sector| [self.word(sector, write); SECTOR / 8]);
                    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
                    file.write_at(&bytes, (first * SECTOR) as u64).unwrap();
                    least[first..end].fill(write);
                }
            }
        }
    }

    /// Loses power, and compares what is left. Returns how many sectors had to be there.
    fn lose_power(&self, draw: &mut Draw) -> usize {
        // Not after the device: data that is written while it fails is not on it.
        let (least, gone) = {
            let told = self.told.lock().unwrap();
            (told.least, told.gone)
        };
        let mut image = self.device.after_power_loss(draw);
        let last = self.last.load(Relaxed);
        image.resize(image.len().max(SECTORS * SECTOR), 0);
        for (sector, bytes) in image.chunks(SECTOR).enumerate() {
            for word in bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())) {
                let write = word & ((1 << 40) - 1);
                let (least, gone) = (least.get(sector).unwrap_or(&0), gone.get(sector).unwrap_or(&0));
                assert!(
                    word == 0 && *least == 0
                        || word == self.word(sector, write)
                            && (*least..=last).contains(&write)
                            && write > *gone,
                    "file {}, sector {sector}: {word:x}, where {least} was synced and {gone} cut off",
                    self.number
                );
            }
        }
        least.iter().filter(|&&least| least > 0).count()
    }
}

/// Several write their files through one cache, and power is lost so often meanwhile. Returns how many sectors had to be there, over all.
fn lose_power_beside_writers(backend: (Backend, usize), cuts: u64, bug: Option<Bug>) -> usize {
    let memory = Memory::builder().budget(8 << 20).backend(backend.0).io_threads(backend.1).build().unwrap();
    *memory.0.machine.bug.lock().unwrap() = bug;
    flush_soon(&memory);
    // A quarter of all files.
    let max = FILES * (SECTORS * SECTOR) as u64 / 4;
    let group = memory.group("tenant", Limits { max: Some(max), ..Limits::NONE }).unwrap();
    let made: Vec<Made> = (0..FILES).map(|_| Made::new("beside")).collect();
    let written: Vec<Written> = (0..FILES)
        .map(|number| Written {
            number,
            told: Mutex::new(Told { least: [0; SECTORS], gone: [0; SECTORS] }),
            last: AtomicU64::new(0),
            device: Arc::default(),
        })
        .collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (written, made) in written.iter().zip(&made) {
            let how = Open::read_write().create(true).buffered(true).group(&group);
            let device = Arc::clone(&written.device) as Arc<dyn Faults>;
            let file = memory.open(&made.0, how.faults(device)).unwrap();
            let is_over = &is_over;
            scope.spawn(move || written.write(&file, is_over));
        }
        let mut draw = Draw(cuts);
        let compared = catch_unwind(AssertUnwindSafe(|| {
            let mut compared = 0;
            // Not before something was synced, which takes long on a machine that has other work.
            let is_synced =
                |written: &Written| written.told.lock().unwrap().least.iter().any(|&least| least > 0);
            let waits = (0..30_000).take_while(|_| !written.iter().any(is_synced));
            waits.for_each(|_| std::thread::sleep(Duration::from_millis(1)));
            for _ in 0..cuts {
                std::thread::sleep(Duration::from_micros(draw.below(6000)));
                compared += written.iter().map(|written| written.lose_power(&mut draw)).sum::<usize>();
            }
            compared
        }));
        is_over.store(true, Relaxed);
        compared.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn power_that_is_lost_while_several_write_takes_nothing_that_was_synced() {
    for backend in backends() {
        let compared = lose_power_beside_writers(backend, 50, None);
        println!("{backend:?}: {compared} sectors, synced, over 50 losses of power");
        assert!(compared > 0, "{backend:?}: nothing was synced");
    }
}

#[test]
fn a_sync_without_a_flush_is_noticed_whoever_writes() {
    for backend in backends() {
        let act = || _ = lose_power_beside_writers(backend, 50, Some(Bug::DoesNotFlush));
        assert!(is_noticed(act), "{backend:?}");
    }
}
