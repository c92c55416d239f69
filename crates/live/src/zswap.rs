//! [`Zswap`]: the compressor of pages that leave memory. The engine decides which pages are compressed and where their bytes go
//! (`machine/compressed.rs`); here a page becomes bytes, and a page again. [live-3 4]

use std::fmt;
use std::io;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use pageout_engine::{ConfigError, PAGE_SIZE};

use crate::error::Error;

pub(crate) const PAGE: usize = PAGE_SIZE as usize;
/// Levels of zstd, from the fastest.
const LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// Compression of pages of regions in memory, before they go to the swap file: [`crate::Builder::zswap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Zswap(By);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Lz4,
    Zstd(i32),
}

impl Zswap {
    /// Returns compression by lz4: some 10 us per page, and 3 us back.
    pub const fn lz4() -> Zswap {
        Zswap(By::Lz4)
    }

    /// Returns compression by zstd at a level from 1 to 22: smaller than lz4, and slower. Level 1 suits pages: higher levels gain little in 4 KiB.
    pub const fn zstd(level: i32) -> Zswap {
        Zswap(By::Zstd(level))
    }

    /// Checks the level.
    pub(crate) fn check(self) -> Result<(), Error> {
        match self.0 {
            By::Zstd(level) if !LEVELS.contains(&level) => {
                let (what, value) = ("level of zstd", u64::try_from(level).unwrap_or(0));
                let (min, max) = (*LEVELS.start() as u64, *LEVELS.end() as u64);
                Err(ConfigError::OutOfRange { what, value, min, max }.into())
            }
            By::Lz4 | By::Zstd(_) => Ok(()),
        }
    }

    /// Memory of both compressors, and of pages that are compressed and not yet in the pool.
    pub(crate) fn bytes(self) -> u64 {
        match self.0 {
            By::Lz4 => 640 << 10,
            By::Zstd(_) => 2 << 20,
        }
    }
}

impl fmt::Display for Zswap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            By::Lz4 => f.write_str("lz4"),
            By::Zstd(level) => write!(f, "zstd at level {level}"),
        }
    }
}

/// What compresses pages, with its memory.
pub(crate) struct Compressor {
    by: CompressorBy,
    bytes: Box<[u8]>,
}

enum CompressorBy {
    Lz4(Box<CompressTable>),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// # Errors
    /// The library's, if it gets no memory.
    pub(crate) fn new(zswap: Zswap) -> io::Result<Compressor> {
        let by = match zswap.0 {
            By::Lz4 => CompressorBy::Lz4(Box::default()),
            By::Zstd(level) => CompressorBy::Zstd(zstd::bulk::Compressor::new(level)?),
        };
        Ok(Compressor { by, bytes: vec![0; get_maximum_output_size(PAGE)].into() })
    }

    /// Compresses a page; `None` if it does not get smaller.
    pub(crate) fn compress(&mut self, page: &[u8]) -> Option<&[u8]> {
        debug_assert_eq!(page.len(), PAGE);
        // Both fail only if the buffer is too small, which is larger than a page.
        let length = match &mut self.by {
            CompressorBy::Lz4(table) => compress_into_with_table(page, &mut self.bytes, table).ok()?,
            CompressorBy::Zstd(zstd) => zstd.compress_to_buffer(page, &mut self.bytes[..]).ok()?,
        };
        (1..PAGE).contains(&length).then(|| &self.bytes[..length])
    }
}

/// What makes pages of bytes again.
pub(crate) enum Decompressor {
    Lz4,
    Zstd(zstd::bulk::Decompressor<'static>),
}

impl Decompressor {
    /// # Errors
    /// The library's, if it gets no memory.
    pub(crate) fn new(zswap: Zswap) -> io::Result<Decompressor> {
        Ok(match zswap.0 {
            By::Lz4 => Decompressor::Lz4,
            By::Zstd(_) => Decompressor::Zstd(zstd::bulk::Decompressor::new()?),
        })
    }

    /// Fills a page from its compressed bytes. Returns false if these are not the bytes of a page.
    pub(crate) fn decompress(&mut self, bytes: &[u8], page: &mut [u8]) -> bool {
        debug_assert_eq!(page.len(), PAGE);
        let length = match self {
            Decompressor::Lz4 => decompress_into(bytes, page).ok(),
            Decompressor::Zstd(zstd) => zstd.decompress_to_buffer(bytes, page).ok(),
        };
        length == Some(PAGE)
    }
}

/// The word that a page repeats, if it has no other content.
pub(crate) fn repeated_word(page: &[u8]) -> Option<u64> {
    let (words, rest) = page.as_chunks::<8>();
    debug_assert!(rest.is_empty());
    let first = words.first()?;
    // Most pages differ early. Others differ at the end only.
    let is_one = words.last() == Some(first) && words.iter().all(|word| word == first);
    is_one.then(|| u64::from_ne_bytes(*first))
}

/// An answer to the engine about a page, for a simulated machine that gets the same ones.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZswapAnswer {
    /// The word that the page repeats, if it repeats one.
    Word(Option<u64>),
    /// Its bytes when it is compressed.
    Bytes(u16),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const ALL: [Zswap; 4] = [Zswap::lz4(), Zswap::zstd(1), Zswap::zstd(3), Zswap::zstd(22)];

    /// Bytes that do not compress up to a place, and text behind it.
    fn page(random: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let byte = |at: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if at < random { (state >> 56) as u8 } else { b"pages of regions "[at % 17] }
        };
        (0..PAGE).map(byte).collect()
    }

    #[test]
    fn page_is_the_same_after_compression() {
        for zswap in ALL {
            let (mut compressor, mut back) =
                (Compressor::new(zswap).unwrap(), Decompressor::new(zswap).unwrap());
            let mut lengths = Vec::new();
            for (seed, random) in (1..).zip([0, 1, 40, 1000, 2000, 3000]) {
                let page = page(random, seed);
                let bytes = compressor.compress(&page).unwrap().to_vec();
                let mut found = vec![7; PAGE];
                assert!(back.decompress(&bytes, &mut found), "{zswap}, {random}");
                assert!(found == page, "{zswap}, {random}");
                lengths.push(bytes.len());
            }
            assert!(lengths.is_sorted() && lengths[0] < 100, "{zswap}: {lengths:?}");
            assert_eq!(compressor.compress(&page(PAGE, 77)), None, "{zswap}: random bytes");
        }
    }

    #[test]
    fn bytes_that_are_no_page_are_rejected() {
        for zswap in ALL {
            let (mut compressor, mut back) =
                (Compressor::new(zswap).unwrap(), Decompressor::new(zswap).unwrap());
            let bytes = compressor.compress(&page(1000, 3)).unwrap().to_vec();
            let mut found = vec![7; PAGE];
            for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                assert!(!back.decompress(&bytes[..cut], &mut found), "{zswap}, {cut}");
            }
            assert!(back.decompress(&bytes, &mut found), "{zswap}: it works after that");
        }
    }

    #[test]
    fn repeated_word_is_found_where_there_is_no_other() {
        let mut page = vec![0; PAGE];
        assert_eq!(repeated_word(&page), Some(0));
        for at in [0, 9, PAGE / 2, PAGE - 1] {
            page[at] = 1;
            assert_eq!(repeated_word(&page), None, "{at}");
            page[at] = 0;
        }
        let word = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(repeated_word(&word.to_ne_bytes().repeat(PAGE / 8)), Some(word));
    }

    #[test]
    fn level_out_of_range_is_an_error() {
        for level in [-1, 0, 23] {
            let error = Zswap::zstd(level).check().unwrap_err().to_string();
            assert!(error.starts_with("level of zstd"), "{error}");
        }
        ALL.into_iter().for_each(|zswap| zswap.check().unwrap());
    }
}
