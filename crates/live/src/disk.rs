//! [`Disk`]: a file on its device, and in tests what can go wrong there.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
#[cfg(test)]
use std::sync::Arc;

use pageout_engine::Pfn;

use crate::arena::Arena;

/// A file that pages are read from and written to.
pub(crate) struct Disk {
    file: File,
    #[cfg(test)]
    faults: Option<Arc<dyn Faults>>,
}

/// What is asked of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg(test)]
pub(crate) enum Request {
    Read {
        offset: u64,
        bytes: usize,
    },
    Write {
        offset: u64,
        bytes: usize,
    },
    /// All that was written is to survive a loss of power.
    Flush,
    SetLen(u64),
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg(test)]
pub(crate) enum Fate {
    Well,
    /// Nothing of it is done.
    Fails(i32),
    /// So many bytes of it are done, and that is said.
    Short(usize),
    /// So many bytes of it are done, and it fails.
    Torn(usize, i32),
}

/// Who decides what becomes of requests, and hears of what was done.
#[cfg(test)]
pub(crate) trait Faults: Send + Sync + std::fmt::Debug {
    fn fate(&self, request: Request) -> Fate;

    /// So much of a request was done. The file has it.
    fn done(&self, _request: Request, _file: &File) {}
}

impl Disk {
    pub(crate) fn new(file: File) -> Disk {
        Disk {
            file,
            #[cfg(test)]
            faults: None,
        }
    }

    /// The same, with faults.
    #[cfg(test)]
    pub(crate) fn with(self, faults: Arc<dyn Faults>) -> Disk {
        Disk { faults: Some(faults), ..self }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Bytes of the file as others see it.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Reads from an offset into frames, which are closed; returns how many bytes there were.
    pub(crate) fn read(&self, arena: &Arena, frames: &[Pfn], skip: usize, offset: u64) -> io::Result<usize> {
        #[cfg(test)]
        if let Fate::Fails(errno) | Fate::Torn(_, errno) =
            self.fate(Request::Read { offset, bytes: bytes_of(frames) - skip })
        {
            return Err(io::Error::from_raw_os_error(errno));
        }
        arena.read_into(frames, skip, self.fd(), offset)
    }

    /// Writes frames from an offset on; returns how many bytes were taken.
    #[cfg_attr(test, expect(clippy::needless_return, reason = "what follows is there without tests"))]
    pub(crate) fn write(&self, arena: &Arena, frames: &[Pfn], offset: u64) -> io::Result<usize> {
        #[cfg(test)]
        {
            let bytes = bytes_of(frames);
            let (most, errno) = match self.fate(Request::Write { offset, bytes }) {
                Fate::Well => (bytes, None),
                Fate::Fails(errno) => (0, Some(errno)),
                Fate::Short(most) => (most, None),
                Fate::Torn(most, errno) => (most, Some(errno)),
            };
            let written = if most > 0 { arena.write_from(frames, most, self.fd(), offset)? } else { 0 };
            self.done(Request::Write { offset, bytes: written });
            return errno.map_or(Ok(written), |errno| Err(io::Error::from_raw_os_error(errno)));
        }
        #[cfg(not(test))]
        arena.write_from(frames, bytes_of(frames), self.fd(), offset)
    }

    /// What a ring says of a write of so many bytes.
    pub(crate) fn answer_of_write(&self, answer: i32, _offset: u64, _bytes: usize) -> i32 {
        #[cfg(test)]
        if answer > 0 {
            self.done(Request::Write { offset: _offset, bytes: answer as usize });
            return match self.fate(Request::Write { offset: _offset, bytes: _bytes }) {
                Fate::Well => answer,
                Fate::Fails(errno) | Fate::Torn(_, errno) => -errno,
                Fate::Short(most) => (most as i32).min(answer),
            };
        }
        answer
    }

    /// Has all that was written survive a loss of power, and how long the file is; with its times, too, where `is_all`.
    pub(crate) fn flush(&self, is_all: bool) -> io::Result<()> {
        #[cfg(test)]
        if let Fate::Fails(errno) = self.fate(Request::Flush) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if is_all {
            self.file.sync_all()?
        } else {
            self.file.sync_data()?
        }
        #[cfg(test)]
        self.done(Request::Flush);
        Ok(())
    }

    pub(crate) fn set_len(&self, bytes: u64) -> io::Result<()> {
        #[cfg(test)]
        if let Fate::Fails(errno) = self.fate(Request::SetLen(bytes)) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.file.set_len(bytes)?;
        #[cfg(test)]
        self.done(Request::SetLen(bytes));
        Ok(())
    }

    #[cfg(test)]
    fn fate(&self, request: Request) -> Fate {
        self.faults.as_ref().map_or(Fate::Well, |faults| faults.fate(request))
    }

    #[cfg(test)]
    fn done(&self, request: Request) {
        if let Some(faults) = &self.faults {
            faults.done(request, &self.file);
        }
    }
}

fn bytes_of(frames: &[Pfn]) -> usize {
    frames.len() * pageout_engine::PAGE_SIZE as usize
}
