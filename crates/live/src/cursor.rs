//! [`Cursor`]: a file or a region with a position, for code that uses the traits of [`std::io`].
//!
//! The position is the cursor's own. So two cursors of one file are independent, and one cursor needs `&mut`, as [`std::io::Cursor`] does.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::error::Error;
use crate::file::File;
use crate::region::Region;

/// A file or a region.
trait Positioned {
    fn bytes(&self) -> u64;
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error>;
}

impl Positioned for File {
    fn bytes(&self) -> u64 {
        self.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        File::read_at(self, buf, offset)
    }
}

impl Positioned for Region {
    fn bytes(&self) -> u64 {
        self.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<(), Error> {
        Region::read_at(self, buf, offset)
    }
}

/// A file or a region with a position: [`Read`], [`Write`] and [`Seek`].
///
/// A read returns as many bytes as the buffer has, or as are left. A write to a file extends it; a write to a region ends at its end, where it returns 0.
/// [`Write::flush`] does nothing, as for [`std::fs::File`]: [`File::sync_data`] stores the bytes on the device. Each call costs as much as
/// [`File::read_at`] and [`File::write_at`], so small ones need no [`std::io::BufReader`] unless they are of a few bytes.
///
/// ```no_run
/// use pageout::{Memory, Open};
/// use std::io::{Read, Seek, SeekFrom, Write};
///
/// let memory = Memory::builder().build()?;
/// let mut log = memory.open("log", Open::read_write().create(true))?.cursor();
/// log.seek(SeekFrom::End(0))?;
/// writeln!(log, "started")?;
/// log.get_ref().sync_data()?;
/// let mut text = String::new();
/// log.rewind()?;
/// log.read_to_string(&mut text)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<T> {
    of: T,
    position: u64,
}

impl<T> Cursor<T> {
    /// Returns the file or region.
    pub fn get_ref(&self) -> &T {
        &self.of
    }

    /// Returns the file or region, without the position.
    pub fn into_inner(self) -> T {
        self.of
    }

    /// Returns the position, in bytes.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Sets the position, in bytes. It may be behind the end.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }
}

impl File {
    /// Returns a cursor at the start of the file, for [`std::io`]'s traits. It keeps the file open.
    pub fn cursor(&self) -> Cursor<File> {
        Cursor { of: self.clone(), position: 0 }
    }
}

impl Region {
    /// Returns a cursor at the start of the region, for [`std::io`]'s traits. It keeps the region.
    pub fn cursor(&self) -> Cursor<Region> {
        Cursor { of: self.clone(), position: 0 }
    }
}

fn read<T: Positioned>(cursor: &mut Cursor<T>, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        let left = cursor.of.bytes().saturating_sub(cursor.position);
        let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(0);
        }
        match cursor.of.read_at(&mut buf[..len], cursor.position) {
            Ok(()) => {
                cursor.position += len as u64;
                return Ok(len);
            }
            // It was made shorter meanwhile: fewer bytes are left.
            Err(Error::BeyondEnd { .. })
                if cursor.of.bytes().saturating_sub(cursor.position) < len as u64 => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn seek<T: Positioned>(cursor: &mut Cursor<T>, to: SeekFrom) -> io::Result<u64> {
    let position = match to {
        SeekFrom::Start(position) => Some(position),
        SeekFrom::End(offset) => cursor.of.bytes().checked_add_signed(offset),
        SeekFrom::Current(offset) => cursor.position.checked_add_signed(offset),
    };
    let before_start =
        || io::Error::new(io::ErrorKind::InvalidInput, "seek to a position before byte 0 or beyond 2^64");
    cursor.position = position.ok_or_else(before_start)?;
    Ok(cursor.position)
}

impl Read for Cursor<File> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read(self, buf)
    }
}

impl Read for Cursor<Region> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        read(self, buf)
    }
}

impl Write for Cursor<File> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.of.write_at(buf, self.position)?;
        self.position += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Cursor<Region> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let left = self.of.len().saturating_sub(self.position);
        let len = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if len > 0 {
            self.of.write_at(&buf[..len], self.position)?;
            self.position += len as u64;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Cursor<File> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        seek(self, to)
    }
}

impl Seek for Cursor<Region> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        seek(self, to)
    }
}
