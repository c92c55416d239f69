//! How each reader reads pages: pageout's page cache, the kernel's interfaces, plain memory, and third-party caches.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use pageout_live::{Batches, Mapped, Memory, Open, ReadAt};
use rustix::fs::{Advice, OFlags, fadvise};
use serde_json::{Value, json};

use super::OURS;
use super::baselines::{Baseline, Open as OpenRival};
use super::reader::Task;
use super::subject::PAGE;
use crate::{Error, told};

/// Built-in readers in the order of the table, with their descriptions.
pub(super) const WAYS: [&str; 6] = [OURS, "buffered", "mmap", "direct", "io_uring", "memcpy"];
/// One that reads.
pub(super) trait Way: Sync {
    /// Copies a page.
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()>;

    /// Copies pages to as many places.
    fn copy_all(&self, pages: &[u32], to: &mut [u8]) -> io::Result<()> {
        pages.iter().zip(to.chunks_exact_mut(PAGE)).try_for_each(|(&page, to)| self.copy(page.into(), to))
    }

    /// A byte of a page, where it lies.
    fn byte(&self, page: u64) -> io::Result<u8>;

    /// Has nothing in memory any more.
    fn forget(&mut self) -> io::Result<()>;

    /// Its own counters.
    fn figures(&self) -> Value {
        Value::Null
    }
}

/// Returns true if a way uses the kernel's page cache.
pub(super) fn is_of_kernel(way: &str) -> bool {
    ["buffered", "mmap"].contains(&way)
}

/// Returns true if a way has pages in a place where one can look at them.
pub(super) fn has_places(way: &str) -> bool {
    !["buffered", "direct", "io_uring"].contains(&way)
}

/// This program's page cache.
pub(super) struct Ours {
    task: Task,
    memory: Memory,
    file: pageout_live::File,
}

/// What it is built as.
pub(super) fn memory(task: &Task) -> Result<Memory, Error> {
    // Whole pages are read; a file may have a part of one more at its end.
    let bytes = (task.pages + 1) * PAGE as u64;
    let built = Memory::builder().budget(task.budget).files(bytes).policy(&task.policy).build();
    built.map_err(|error| {
        Error::Asked(match error {
            pageout_live::Error::BudgetTooSmall { .. } => format!("--budget: {error}"),
            pageout_live::Error::Config(_) => {
                format!(
                    "--policy {}: {error}\nhelp: `pageout keys kernel.profile` lists the policies",
                    task.policy
                )
            }
            error => told(&error),
        })
    })
}

impl Ours {
    pub(super) fn new(task: Task) -> io::Result<Ours> {
        let memory = memory(&task).map_err(io::Error::other)?;
        let how = Open::read().buffered(task.is_buffered);
        let opened = memory.open(&task.path, if task.is_random { how.random() } else { how });
        let file = opened.map_err(|error| match error {
            pageout_live::Error::DirectRefused { .. } => io::Error::other(
                "its file system does not support O_DIRECT\nhelp: use --buffered; pages can then be in memory twice",
            ),
            error => io::Error::other(error),
        })?;
        Ok(Ours { task, memory, file })
    }
}

impl Way for Ours {
    #[inline]
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        self.file.read_at(to, page * PAGE as u64).map_err(io::Error::other)
    }

    fn copy_all(&self, pages: &[u32], to: &mut [u8]) -> io::Result<()> {
        let reads = pages.iter().zip(to.chunks_exact_mut(PAGE));
        let mut reads: Vec<ReadAt> =
            reads.map(|(&page, buf)| ReadAt { buf, offset: u64::from(page) * PAGE as u64 }).collect();
        self.file.read_batch(&mut reads).map_err(io::Error::other)
    }

    #[inline]
    fn byte(&self, page: u64) -> io::Result<u8> {
        Ok(self.file.page(page).map_err(io::Error::other)?[0])
    }

    fn forget(&mut self) -> io::Result<()> {
        *self = Ours::new(self.task.clone())?;
        Ok(())
    }

    fn figures(&self) -> Value {
        let Ok(stats) = self.memory.stats() else { return Value::Null };
        let held = |share| stats.lock_held.quantile(share).as_nanos() as u64;
        json!({
            "is": self.memory.describe(),
            "hits": stats.hits,
            "misses": stats.misses,
            "refaults": stats.refaults,
            "lock_times": stats.lock_held.times(),
            "lock_p50_ns": held(0.5),
            "lock_p99_ns": held(0.99),
            "lock_max_ns": held(1.0),
        })
    }
}

/// pread(2), through the kernel's page cache or past it.
pub(super) struct Pread(File);

impl Pread {
    pub(super) fn buffered(path: &Path, is_random: bool) -> io::Result<Pread> {
        let file = File::open(path)?;
        if is_random {
            fadvise(&file, 0, None, Advice::Random)?;
        }
        Ok(Pread(file))
    }

    pub(super) fn direct(path: &Path) -> io::Result<Pread> {
        let flags = OFlags::DIRECT.bits() as i32;
        let opened = File::options().read(true).custom_flags(flags).open(path);
        let what = "its file system does not support O_DIRECT";
        Ok(Pread(opened.map_err(|error| io::Error::other(format!("{what}: {error}")))?))
    }
}

impl Way for Pread {
    #[inline]
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(to, page * PAGE as u64).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                io::Error::other(format!("the file became shorter: page {page} is missing"))
            }
            _ => error,
        })
    }

    fn byte(&self, _: u64) -> io::Result<u8> {
        Err(io::Error::other("pread(2) copies, so it has no pages to read in place"))
    }

    fn forget(&mut self) -> io::Result<()> {
        Ok(fadvise(&self.0, 0, None, Advice::DontNeed)?)
    }
}

/// Reads past the kernel's page cache by io_uring, those of a call in flight together.
pub(super) struct Uring(Batches);

impl Uring {
    pub(super) fn new(path: &Path) -> io::Result<Uring> {
        let opened = Batches::open(path);
        Ok(Uring(
            opened.map_err(|error| {
                io::Error::other(format!("no direct reads by io_uring: {}", told(&error)))
            })?,
        ))
    }
}

impl Way for Uring {
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        self.copy_all(&[page as u32], to)
    }

    fn copy_all(&self, pages: &[u32], to: &mut [u8]) -> io::Result<()> {
        self.0.read(pages, to).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("the file became shorter"),
            _ => error,
        })
    }

    fn byte(&self, _: u64) -> io::Result<u8> {
        Err(io::Error::other("io_uring copies, so it has no pages to read in place"))
    }

    fn forget(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A mapping of the file.
pub(super) struct Mmap {
    file: File,
    path: std::path::PathBuf,
    is_random: bool,
    mapped: Option<Mapped>,
}

impl Mmap {
    pub(super) fn new(path: &Path, is_random: bool) -> io::Result<Mmap> {
        let mapped = Some(Mapped::open(path, is_random)?);
        Ok(Mmap { file: File::open(path)?, path: path.to_path_buf(), is_random, mapped })
    }

    #[inline]
    fn mapped(&self) -> &Mapped {
        self.mapped.as_ref().expect("it is mapped again where it was forgotten")
    }
}

impl Way for Mmap {
    #[inline]
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        self.mapped().copy(page as usize * PAGE, to);
        Ok(())
    }

    #[inline]
    fn byte(&self, page: u64) -> io::Result<u8> {
        Ok(self.mapped().byte(page as usize * PAGE))
    }

    fn forget(&mut self) -> io::Result<()> {
        // fadvise(2) does not drop mapped pages.
        self.mapped = None;
        fadvise(&self.file, 0, None, Advice::DontNeed)?;
        self.mapped = Some(Mapped::open(&self.path, self.is_random)?);
        Ok(())
    }
}

/// The whole file in plain memory.
pub(super) struct Plain(Vec<u8>);

impl Plain {
    pub(super) fn new(task: &Task) -> io::Result<Plain> {
        let mut bytes = vec![0; task.pages as usize * PAGE];
        let file = File::open(&task.path)?;
        for (at, chunk) in bytes.chunks_mut(1 << 20).enumerate() {
            file.read_exact_at(chunk, (at as u64) << 20)?;
        }
        // The kernel's copy would be there for others.
        fadvise(&file, 0, None, Advice::DontNeed)?;
        Ok(Plain(bytes))
    }
}

impl Way for Plain {
    #[inline]
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        to.copy_from_slice(std::hint::black_box(&self.0[page as usize * PAGE..][..PAGE]));
        Ok(())
    }

    #[inline]
    fn byte(&self, page: u64) -> io::Result<u8> {
        Ok(std::hint::black_box(&self.0)[page as usize * PAGE])
    }

    fn forget(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A cache that the program was built with.
pub(super) struct Brought {
    open: OpenRival,
    task: Task,
    cache: Box<dyn Baseline>,
}

impl Brought {
    pub(super) fn new(task: Task, baselines: &[(&str, OpenRival)]) -> io::Result<Brought> {
        let found = baselines.iter().find(|(name, _)| *name == task.way).map(|(_, open)| *open);
        let open = found.ok_or_else(|| io::Error::other(format!("unknown reader `{}`", task.way)))?;
        let cache = open(&task.path, task.budget)?;
        Ok(Brought { open, task, cache })
    }
}

impl Way for Brought {
    #[inline]
    fn copy(&self, page: u64, to: &mut [u8]) -> io::Result<()> {
        self.cache.copy(page, to)
    }

    #[inline]
    fn byte(&self, page: u64) -> io::Result<u8> {
        self.cache.byte(page)
    }

    fn forget(&mut self) -> io::Result<()> {
        self.cache = (self.open)(&self.task.path, self.task.budget)?;
        Ok(())
    }
}
