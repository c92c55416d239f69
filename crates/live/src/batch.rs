//! Writes in batches: pages that several writes change in part are read together, before the first of them waits for its own.

use crate::error::Error;
use crate::file::{File, Inner, Piece, WriteAt};
use crate::local;
use crate::paged::parts;
use crate::pending::TOGETHER_MAX;
use crate::region::{Inner as RegionInner, Region};

use pageout_engine::PAGE_SIZE;

impl File {
    /// Makes several writes, in their order. Pages that are not in memory and of which a write leaves a part are read together, 32 at most. A write of
    /// complete pages reads nothing.
    ///
    /// # Errors
    /// The same as [`File::write_at`], for the first write that fails. Writes before it are made, and some of its own bytes may be; later writes are not
    /// made. The batch may be repeated.
    pub fn write_batch(&self, writes: &[WriteAt<'_>]) -> Result<(), Error> {
        let file = &*self.0;
        file.writable()?;
        let read =
            |pages: &[u64]| file.memory.guarded(|machine| machine.read_pages_ahead(file, file.group, pages));
        write_all(
            writes,
            |piece| file.must_be_read(piece),
            read,
            |write| self.write_at(write.buf, write.offset),
        )
    }
}

impl Region {
    /// Makes several writes, in their order. Pages that are in swap and of which a write leaves a part are read together, 32 at most.
    ///
    /// # Errors
    /// The same as [`Region::write_at`], for the first write that fails. Writes before it are made, and some of its own bytes may be; later writes are
    /// not made. The batch may be repeated.
    pub fn write_batch(&self, writes: &[WriteAt<'_>]) -> Result<(), Error> {
        let region = &*self.0;
        let read = |pages: &[u64]| {
            let ahead = |&page: &u64| {
                region.memory.guarded(|machine| machine.read_region_ahead(region, page..page + 1))
            };
            pages.iter().try_for_each(ahead)
        };
        let must_be_read = |piece: &Piece| region.must_be_read(piece);
        write_all(writes, must_be_read, read, |write| self.write_at(write.buf, write.offset))
    }
}

/// Makes writes in order, in groups whose pages are read together.
fn write_all<'a>(
    writes: &[WriteAt<'a>],
    must_be_read: impl Fn(&Piece) -> bool,
    read: impl Fn(&[u64]) -> Result<(), Error>,
    write: impl Fn(WriteAt<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut rest = writes;
    while !rest.is_empty() {
        let (mut pages, mut count) = (Vec::new(), 0);
        // Only the first page of a write and its last one can be changed in part.
        while count < rest.len() && pages.len() + 2 <= TOGETHER_MAX {
            let WriteAt { buf, offset } = rest[count];
            count += 1;
            // Its write returns the error.
            if offset.checked_add(buf.len() as u64).is_none() {
                continue;
            }
            for piece in ends(buf.len(), offset).filter(|piece| must_be_read(piece)) {
                if !pages.contains(&piece.want.page) {
                    pages.push(piece.want.page);
                }
            }
        }
        // A single page is read by its write.
        if pages.len() > 1 {
            read(&pages)?;
        }
        rest[..count].iter().try_for_each(|&of| write(of))?;
        rest = &rest[count..];
    }
    Ok(())
}

/// The first page of a write and its last one.
fn ends(len: usize, offset: u64) -> impl Iterator<Item = Piece> {
    let last = (offset + len as u64).saturating_sub(1) / PAGE_SIZE;
    let skip = ((last * PAGE_SIZE).saturating_sub(offset) as usize).min(len);
    let head = parts(len, offset).next();
    let tail = parts(len - skip, offset + skip as u64).next().filter(|_| skip > 0);
    head.into_iter().chain(tail)
}

impl Piece {
    fn is_complete(&self, bytes: u64) -> bool {
        let (start, len) = (self.want.page * PAGE_SIZE, self.to.len() as u64);
        self.skip == 0 && (len == PAGE_SIZE || start + len >= bytes)
    }
}

impl Inner {
    /// Returns true if a write of this part has to read the page first.
    fn must_be_read(&self, piece: &Piece) -> bool {
        let (page, bytes) = (piece.want.page, self.bytes());
        if page * PAGE_SIZE >= bytes || piece.is_complete(bytes) {
            return false;
        }
        let is_in_memory =
            local::with(&self.memory.machine, self, |_, local| Some(local.words.get(page).is_hit()));
        is_in_memory != Some(true)
    }
}

impl RegionInner {
    /// The same of a region.
    fn must_be_read(&self, piece: &Piece) -> bool {
        let (page, bytes) = (piece.want.page, self.bytes());
        if page * PAGE_SIZE >= bytes || piece.is_complete(bytes) {
            return false;
        }
        let is_in_memory = local::with(&self.memory.machine, self, |_, local| {
            let word = local.words.get(page);
            Some(word.is_zero_page() || word.is_mapped_plainly())
        });
        is_in_memory != Some(true)
    }
}
