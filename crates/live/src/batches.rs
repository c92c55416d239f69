//! Reads past the kernel's page cache by io_uring and nothing else, to compare with: the feature `rivals`.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use io_uring::{IoUring, opcode, types};

const PAGE: usize = 4096;
/// In flight together at most.
const ENTRIES: u32 = 64;

thread_local! {
    /// A thread's ring: the only user of one takes no lock.
    static RING: RefCell<Option<IoUring>> = const { RefCell::new(None) };
}

/// A file that is read in batches, each of which its thread waits for.
pub struct Batches(File);

impl Batches {
    /// Opens a file.
    ///
    /// # Errors
    /// What the system says, where it has no direct reads of the file or no io_uring for this process.
    pub fn open(path: &Path) -> io::Result<Batches> {
        IoUring::new(ENTRIES)?;
        Ok(Batches(File::options().read(true).custom_flags(libc::O_DIRECT).open(path)?))
    }

    /// Reads pages one after the other into a buffer that begins where direct reads ask for it.
    ///
    /// # Errors
    /// The system's error of any of the reads, and `UnexpectedEof` if the file ends before.
    pub fn read(&self, pages: &[u32], to: &mut [u8]) -> io::Result<()> {
        assert_eq!(to.len(), pages.len() * PAGE, "a place for each page");
        RING.with_borrow_mut(|ring| {
            let ring = match ring {
                Some(ring) => ring,
                None => ring.insert(IoUring::new(ENTRIES)?),
            };
            let (count, bytes) = (ENTRIES as usize, ENTRIES as usize * PAGE);
            pages
                .chunks(count)
                .zip(to.chunks_mut(bytes))
                .try_for_each(|(pages, to)| self.read_few(ring, pages, to))
        })
    }

    fn read_few(&self, ring: &mut IoUring, pages: &[u32], to: &mut [u8]) -> io::Result<()> {
        let file = types::Fd(self.0.as_raw_fd());
        for (&page, to) in pages.iter().zip(to.chunks_exact_mut(PAGE)) {
            let read = opcode::Read::new(file, to.as_mut_ptr(), PAGE as u32);
            let read = read.offset(u64::from(page) * PAGE as u64).build();
            // SAFETY: the buffer and the file are borrowed until this returns, which it does when all of these reads have ended.
            unsafe { ring.submission().push(&read) }
                .expect("the ring has room for a batch, and nothing else is in it");
        }
        let (mut ended, mut outcome) = (0, Ok(()));
        while ended < pages.len() {
            match ring.submit_and_wait(pages.len() - ended) {
                Ok(_) => {}
                Err(error)
                    if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(error) => panic!("the kernel does not say which reads have ended: {error}"),
            }
            for answer in ring.completion() {
                ended += 1;
                if answer.result() < 0 {
                    outcome = Err(io::Error::from_raw_os_error(-answer.result()));
                } else if answer.result() < PAGE as i32 {
                    outcome = Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        outcome
    }
}
