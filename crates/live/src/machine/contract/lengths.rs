//! Lengths on the device: written pages make a file longer than it is, and a sync or a reload cuts it, while other calls go on.

use std::sync::Barrier;

use super::*;

/// Bytes of the file of each test: its last page has a part.
const BYTES: u64 = 2 * PAGE_SIZE + 100;

/// A device that has made the first cut, and answers when the test has been at the barrier twice.
#[derive(Debug)]
struct AnswersLate {
    barrier: Barrier,
    is_armed: AtomicBool,
}

impl Faults for AnswersLate {
    fn fate(&self, _: Request) -> Fate {
        Fate::Well
    }

    fn done(&self, request: Request, _: &std::fs::File) {
        if matches!(request, Request::SetLen(_)) && self.is_armed.swap(false, Relaxed) {
            self.barrier.wait();
            self.barrier.wait();
        }
    }
}

#[test]
fn page_that_a_sync_is_cutting_can_be_read_in_a_file_that_grows() {
    for (backend, io_threads) in backends() {
        let (made, memory) = (Made::new("cutting"), Memory::builder().budget(8 << 20));
        let memory = memory.backend(backend).io_threads(io_threads).build().unwrap();
        let device = Arc::new(AnswersLate { barrier: Barrier::new(2), is_armed: AtomicBool::new(true) });
        let how = Open::read_write().create(true).buffered(true).random();
        let file = memory.open(&made.0, how.faults(Arc::clone(&device) as Arc<dyn Faults>)).unwrap();
        file.write_at(&[1; BYTES as usize], 0).unwrap();
        std::thread::scope(|scope| {
            let syncs = scope.spawn(|| file.sync_data());
            device.barrier.wait();
            memory.write("/proc/sys/vm/drop_caches", "1").unwrap();
            file.write_at(&[2; PAGE], 3 * PAGE_SIZE).unwrap();
            let mut page = [7; PAGE];
            let read = file.read_at(&mut page, 2 * PAGE_SIZE);
            device.barrier.wait();
            read.unwrap();
            assert!(page[..100] == [1; 100] && page[100..].iter().all(|&byte| byte == 0), "{backend:?}");
            syncs.join().unwrap().unwrap();
        });
        file.sync_data().unwrap();
        let bytes = made.bytes();
        assert_eq!((bytes.len(), &bytes[..BYTES as usize]), (4 * PAGE, &[1; BYTES as usize][..]));
        assert!(bytes[BYTES as usize..3 * PAGE].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[3 * PAGE..], [2; PAGE]);
    }
}

/// A device whose length is asked for when the flusher has written all it will.
#[derive(Debug)]
struct TellsLengthLate(PathBuf);

impl Faults for TellsLengthLate {
    fn fate(&self, request: Request) -> Fate {
        if request == Request::Len {
            for _ in 0..25 {
                if std::fs::metadata(&self.0).is_ok_and(|file| file.len() > BYTES) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Fate::Well
    }
}

#[test]
fn reload_next_to_the_flusher_does_not_take_whole_pages_for_the_length() {
    for (backend, io_threads) in backends() {
        let (made, memory) = (Made::new("reload"), Memory::builder().budget(8 << 20));
        let memory = memory.backend(backend).io_threads(io_threads).build().unwrap();
        flush_soon(&memory);
        let how = Open::read_write().create(true).buffered(true);
        let faults = Arc::new(TellsLengthLate(made.0.clone()));
        let file = memory.open(&made.0, how.faults(faults)).unwrap();
        for round in 1..=5 {
            file.write_at(&[round; BYTES as usize], 0).unwrap();
            // Of unsynced data, what the flusher has not written is lost.
            file.reload().unwrap();
            assert!(file.len() <= BYTES, "{backend:?}: {} bytes after a reload", file.len());
            file.set_len(0).unwrap();
        }
    }
}
