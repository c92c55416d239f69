//! Dense page numbers: 0 for the first page that a trace touches, 1 for the second one that is another, and so on, over all objects.
//!
//! Cache simulators keep their data of a page in an array at its number. Readers that intern ids already give such numbers, and then nothing is
//! looked up here. Pages that are places are numbered by a table of pieces; a piece is found without hashing as long as no other of the recent ones
//! has its place.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::ahead::Ahead;
use super::error::TraceError;
use super::file::require_regular;
use super::file_calls::{FileCall, PlacedCall};
use super::load::Loaded;
use super::open::open_reader;
use super::options::ReadOptions;
use super::parted::Parted;
use super::requests::Requests;
use crate::{Access, AccessStream};

/// Accesses that are read at a time.
const CHUNK: usize = 1 << 16;
/// Pages that share a piece of the table: few, as traces name pages anywhere in a disk of terabytes.
const PIECE_PAGES: u64 = 64;
const RECENT: usize = 1 << 14;
/// No number: a page that was not touched yet.
const NONE: u32 = u32::MAX;

/// Numbers pages in order of their first access.
pub struct Numbering {
    /// Pages so far.
    pages: u32,
    /// All so far were of the first object, and each new one had the next number as its page: nothing is in the table.
    is_in_order: bool,
    /// Pieces of the table, one after the other.
    numbers: Vec<u32>,
    places: HashMap<u64, usize, FixedState>,
    recent: Box<[(u64, usize)]>,
}

impl Default for Numbering {
    fn default() -> Numbering {
        Numbering {
            pages: 0,
            is_in_order: true,
            numbers: Vec::new(),
            places: HashMap::with_hasher(FixedState::default()),
            // No piece is called this: object and page number take 57 bits together.
            recent: vec![(u64::MAX, 0); RECENT].into(),
        }
    }
}

impl Numbering {
    /// Distinct pages so far.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The numbers of those of some pages of an object that have one.
    fn known(&self, object: u32, first: u64, end: u64) -> Vec<u32> {
        if self.is_in_order {
            let end = if object == 0 { end.min(self.pages.into()) } else { 0 };
            return (first..end).map(|page| page as u32).collect();
        }
        let mut numbers = Vec::new();
        let mut at = first;
        while at < end {
            let behind = (at / PIECE_PAGES + 1) * PIECE_PAGES;
            let name = (u64::from(object) << 34) | (at / PIECE_PAGES);
            if let Some(&piece) = self.places.get(&name) {
                let within = at % PIECE_PAGES..behind.min(end) - at + at % PIECE_PAGES;
                let of = within.map(|page| self.numbers[piece + page as usize]);
                numbers.extend(of.filter(|&number| number != NONE));
            }
            at = behind;
        }
        numbers
    }

    /// Appends the numbers of these accesses' pages; `None` if there are more pages than have a number (2^32 - 1).
    pub fn number(&mut self, accesses: &[Access], numbers: &mut Vec<u32>) -> Option<()> {
        let mut rest = accesses;
        if self.is_in_order {
            let in_order = accesses.iter().take_while(|access| {
                let is_next = access.page() == u64::from(self.pages) && self.pages < NONE;
                let is_known = access.page() < u64::from(self.pages) || is_next;
                let goes_on = access.object() == 0 && is_known;
                self.pages += u32::from(goes_on && is_next);
                goes_on
            });
            let before = numbers.len();
            numbers.extend(in_order.map(|access| access.page() as u32));
            rest = &accesses[numbers.len() - before..];
            if rest.is_empty() {
                return Some(());
            }
            self.put_in_table();
        }
        for access in rest {
            let place = self.place(access.object(), access.page());
            if self.numbers[place] == NONE {
                if self.pages == NONE {
                    return None;
                }
                self.numbers[place] = self.pages;
                self.pages += 1;
            }
            numbers.push(self.numbers[place]);
        }
        Some(())
    }

    /// From now on pages are looked up.
    fn put_in_table(&mut self) {
        self.is_in_order = false;
        for page in 0..self.pages {
            let place = self.place(0, page.into());
            self.numbers[place] = page;
        }
    }

    /// Where the table has a page.
    #[inline]
    fn place(&mut self, object: u32, page: u64) -> usize {
        let name = (u64::from(object) << 34) | (page / PIECE_PAGES);
        let slot = (name ^ (name >> 34)) as usize % RECENT;
        let (known, mut piece) = self.recent[slot];
        if known != name {
            piece = self.find(name);
            self.recent[slot] = (name, piece);
        }
        piece + (page % PIECE_PAGES) as usize
    }

    #[cold]
    fn find(&mut self, name: u64) -> usize {
        *self.places.entry(name).or_insert_with(|| {
            let piece = self.numbers.len();
            self.numbers.resize(piece + PIECE_PAGES as usize, NONE);
            piece
        })
    }
}

/// A trace as dense page numbers, read ahead by a thread of its own.
pub struct DenseReader {
    path: String,
    stream: Box<dyn AccessStream>,
    bytes_read: Arc<AtomicU64>,
    numbering: Numbering,
    chunk: Vec<Access>,
    writes: u64,
    accesses: u64,
    has_neighbours: bool,
    /// Calls that end pages, read and not yet due.
    removals: VecDeque<PlacedCall>,
}

/// A page that a delete ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Removal {
    /// Accesses that are made before it.
    pub access: u64,
    /// The page's number.
    pub page: u32,
}

impl DenseReader {
    /// Opens a trace, a regular file.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<DenseReader, TraceError> {
        require_regular(path)?;
        let (reader, bytes_read) = open_reader(path, options)?;
        let has_neighbours = reader.has_neighbours();
        let dense = DenseReader::new(path, Box::new(Ahead::new(reader)), bytes_read);
        Ok(DenseReader { has_neighbours, ..dense })
    }

    /// The same of accesses that are in memory already.
    pub fn of(path: &Path, stream: impl AccessStream + 'static) -> DenseReader {
        DenseReader::new(path, Box::new(stream), Arc::default())
    }

    /// The same of a loaded trace; nothing if its accesses are not in memory.
    pub fn of_loaded(path: &Path, loaded: &Loaded) -> Option<DenseReader> {
        let packed = loaded.accesses.as_ref()?;
        let removals = loaded.removals.iter().copied().collect();
        let has_neighbours = loaded.has_neighbours;
        Some(DenseReader { removals, has_neighbours, ..DenseReader::of(path, packed.stream()) })
    }

    /// The same of all tenants of a trace.
    pub fn of_parted(path: &Path, parted: &Parted) -> DenseReader {
        let removals = parted.removals.iter().copied().collect();
        DenseReader { removals, ..DenseReader::of(path, parted.stream()) }
    }

    fn new(path: &Path, stream: Box<dyn AccessStream>, bytes_read: Arc<AtomicU64>) -> DenseReader {
        let path = path.to_string_lossy().into_owned();
        DenseReader {
            path,
            stream,
            bytes_read,
            numbering: Numbering::default(),
            chunk: Vec::with_capacity(CHUNK),
            writes: 0,
            accesses: 0,
            has_neighbours: true,
            removals: VecDeque::new(),
        }
    }

    /// Appends the page numbers of the next accesses; false at the end. Deletes are left out.
    pub fn read(&mut self, pages: &mut Vec<u32>) -> Result<bool, TraceError> {
        self.read_with(pages, &mut Vec::new())
    }

    /// Appends the page numbers of the next accesses, and what deletes end before one of them, in order; false at the end.
    pub fn read_with(
        &mut self,
        pages: &mut Vec<u32>,
        removals: &mut Vec<Removal>,
    ) -> Result<bool, TraceError> {
        self.chunk.clear();
        let filled = self.stream.fill(&mut self.chunk, CHUNK)?;
        self.writes += self.chunk.iter().map(|access| u64::from(access.is_write())).sum::<u64>();
        self.removals.extend(self.stream.take_removals());
        // A page is known by its number from its first access on, and one that is not known ends nothing.
        let (mut at, begins, ends) = (0, self.accesses, self.accesses + filled as u64);
        self.accesses = ends;
        let mut numbered = Some(());
        while let Some(&PlacedCall { access, object, call }) = self.removals.front() {
            if access >= ends {
                break;
            }
            self.removals.pop_front();
            let until = access.saturating_sub(begins) as usize;
            numbered = numbered.and_then(|()| self.numbering.number(&self.chunk[at..until], pages));
            at = until;
            if let FileCall::Truncate { first, end } = call {
                let known = self.numbering.known(object, first, end);
                removals.extend(known.into_iter().map(|page| Removal { access, page }));
            }
        }
        numbered = numbered.and_then(|()| self.numbering.number(&self.chunk[at..], pages));
        match numbered {
            Some(()) => Ok(filled > 0),
            None => Err(TraceError::new(
                &self.path,
                None,
                super::Place::default(),
                format!("more than {NONE} distinct pages are not supported here: use a part of the trace"),
            )),
        }
    }

    /// Distinct pages so far.
    pub fn distinct_pages(&self) -> u32 {
        self.numbering.pages()
    }

    /// Accesses so far that write.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Returns whether the numbers of the trace's pages are places, so that adjacent numbers are neighbours.
    pub fn has_neighbours(&self) -> bool {
        self.has_neighbours
    }

    /// Returns the counts of records that are not accesses, so far.
    pub fn requests(&self) -> Option<Requests> {
        self.stream.requests()
    }

    /// Bytes of the file that were read, as it is stored; 0 of accesses in memory.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The first pages in order, as readers number them; then some of them again, and any.
        #[test]
        fn pages_have_the_numbers_of_their_first_accesses(
            numbered in 0..300u64,
            accesses in proptest::collection::vec((0..3u32, prop_oneof![0..9000u64, 0..Access::PAGES_MAX]), 0..500),
            chunk in 1..200usize,
        ) {
            let in_order = (0..numbered).flat_map(|page| [(0, page), (0, page / 2)]);
            let accesses: Vec<Access> =
                in_order.chain(accesses).map(|(object, page)| Access::new(object, page, false)).collect();
            let (mut numbering, mut numbers) = (Numbering::default(), Vec::new());
            accesses.chunks(chunk).for_each(|chunk| numbering.number(chunk, &mut numbers).unwrap());
            let mut known = BTreeMap::new();
            let expected: Vec<u32> = accesses.iter().map(|access| {
                let next = known.len() as u32;
                *known.entry((access.object(), access.page())).or_insert(next)
            }).collect();
            prop_assert_eq!(numbers, expected);
            prop_assert_eq!(numbering.pages() as usize, known.len());
        }
    }
}
