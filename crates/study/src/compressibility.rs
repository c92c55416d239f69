//! What pages compress to, as a distribution by region.
//!
//! Each page is compressed alone, as zswap and zram do. A page of zeroes or of one word takes no compressor to be seen, so these are counted
//! apart, and the lengths are those of the others. A length of a page or more is a page that does not shrink.
//!
//! *Why there is no lzo-rle.* Several LZO libraries (two ports, a binding and its wrapper) are under the GPL, and one only decompresses.
//! `lzokay` (MIT) compresses, but searches harder for matches than the kernel, and does not know runs of zeroes. On C source and on the
//! heap of a Python program it is 14 % to 15 % smaller than zram's lzo-rle of Linux 6.18 (mean bytes per page: 1475 and 1023, compared with
//! 1743 and 1193). lz4 is nearer to it (1820 and 1325). zram's own lz4 of the same pages is within 0.4 % of the lengths here.

mod memory; // the pages of a file or a process

use std::path::PathBuf;

use pageout_engine::PAGE_SIZE;
use pageout_sim::scenario::{Deciles, Share};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use self::memory::{Page, Region};
use crate::error::{During, Error};
use crate::watch::{Stage, Watcher};

/// The level of zstd that the kernel compresses pages with unless told otherwise.
const ZSTD_LEVEL: i32 = 3;

/// Whose pages are compressed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// Files, or numbers of processes. One or more.
    pub what: Vec<PathBuf>,
    /// Pages of a region that are compressed at most, evenly spread over it. 1 or more; default 65,536.
    pub sample: u64,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask { what: Vec::new(), sample: 65_536 }
    }
}

/// The result for the pages.
#[derive(Debug)]
pub struct Answer {
    /// Each region.
    pub regions: Vec<Measured>,
}

/// A compressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compressor {
    /// lz4.
    Lz4,
    /// zstd, at the kernel's level.
    Zstd,
}

impl Compressor {
    const ALL: [Compressor; 2] = [Compressor::Lz4, Compressor::Zstd];

    /// Its name in the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Lz4 => "lz4",
            Compressor::Zstd => "zstd",
        }
    }
}

/// Reads the pages and compresses them. Errors: one of the files or processes can't be read, or has no pages.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    let mut regions = Vec::new();
    for path in &ask.what {
        watcher.begin(&Stage::Reading(path));
        let measured = memory::regions(path, ask.sample)
            .and_then(|regions| regions.iter().map(Measured::of).collect::<Result<Vec<Measured>, Error>>());
        watcher.end();
        regions.extend(measured?);
    }
    let answer = Answer { regions };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// Checks that the answer agrees with itself. Errors: the sum that does not.
    pub fn check(&self) -> Result<(), String> {
        for region in &self.regions {
            if region.compressed > region.pages {
                return Err(format!("{}: more pages are compressed than the region has", region.name));
            }
            if region.zero_filled.0 + region.same_filled.0 > 1.001 {
                return Err(format!("{}: shares of pages sum up to more than 1", region.name));
            }
            let rises = |lengths: &Lengths| lengths.deciles.is_none_or(|deciles| deciles.0.is_sorted());
            if !region.lengths.iter().all(rises) {
                return Err(format!("{}: deciles rise", region.name));
            }
        }
        Ok(())
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.regions.iter().map(Measured::json))
    }
}

/// The result for the pages of a region.
#[derive(Debug)]
pub struct Measured {
    /// A kind of mapping, or a file.
    pub name: String,
    /// Number of pages.
    pub pages: u64,
    /// Pages that were compressed.
    pub compressed: u64,
    /// The share of pages of zeroes.
    pub zero_filled: Share,
    /// The share of pages of another word.
    pub same_filled: Share,
    /// Lengths of the other pages, by compressor.
    pub lengths: [Lengths; 2],
}

/// The compressed lengths with one compressor.
#[derive(Debug)]
pub struct Lengths {
    /// The compressor.
    pub compressor: Compressor,
    /// None where all pages are zeroes or one word.
    pub deciles: Option<Deciles>,
    /// Bytes of a page in the mean.
    pub mean: f64,
    /// The share of pages that do not shrink.
    pub incompressible: f64,
}

impl Measured {
    fn of(region: &Region) -> Result<Measured, Error> {
        let (mut zeroes, mut one_word) = (0, 0);
        let mut others: Vec<&Page> = Vec::new();
        for page in &region.sample {
            match repeated(page) {
                Some(0) => zeroes += 1,
                Some(_) => one_word += 1,
                None => others.push(page),
            }
        }
        let count = region.sample.len() as u64;
        let [lz4, zstd] = Compressor::ALL.map(|compressor| Lengths::of(&others, compressor));
        Ok(Measured {
            name: region.name.clone(),
            pages: region.pages,
            compressed: count,
            zero_filled: Share(per_mille(zeroes, count)),
            same_filled: Share(per_mille(one_word, count)),
            lengths: [lz4?, zstd?],
        })
    }

    fn json(&self) -> Value {
        let lengths = self.lengths.iter().map(|lengths| {
            json!({
                "compressor": lengths.compressor.name(),
                "mean_bytes": lengths.mean,
                "deciles_bytes": lengths.deciles.map(|deciles| deciles.0),
                "incompressible": lengths.incompressible,
            })
        });
        json!({
            "region": self.name,
            "pages": self.pages,
            "pages_compressed": self.compressed,
            "zero_filled": self.zero_filled.0,
            "same_filled": self.same_filled.0,
            "lengths": lengths.collect::<Vec<_>>(),
        })
    }
}

/// As a scenario takes it: of a thousand.
fn per_mille(part: u64, whole: u64) -> f64 {
    (part as f64 * 1000.0 / whole as f64).round() / 1000.0
}

/// The word that fills a page, if one does.
fn repeated(page: &Page) -> Option<u64> {
    let first = &page[..8];
    let is_one = page.chunks_exact(8).all(|word| word == first);
    is_one.then(|| u64::from_ne_bytes(first.try_into().expect("a word of eight bytes")))
}

impl Lengths {
    fn of(pages: &[&Page], compressor: Compressor) -> Result<Lengths, Error> {
        let mut space = vec![0; 2 * PAGE_SIZE as usize];
        let mut zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).during(|| "cannot start zstd".to_string())?;
        let mut lengths = Vec::with_capacity(pages.len());
        for page in pages {
            let length = match compressor {
                Compressor::Lz4 => lz4_flex::block::compress_into(*page, &mut space)
                    .during(|| "lz4 cannot compress a page".to_string())?,
                Compressor::Zstd => zstd
                    .compress_to_buffer(page.as_slice(), &mut space)
                    .during(|| "zstd cannot compress a page".to_string())?,
            };
            lengths.push(length.min(PAGE_SIZE as usize) as u16);
        }
        lengths.sort_unstable();
        let count = lengths.len();
        let decile = |tenths: usize| lengths[(count - 1) * tenths / 10];
        let whole = lengths.iter().filter(|&&length| u64::from(length) == PAGE_SIZE).count();
        let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        let of_all = |sum: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        Ok(Lengths {
            compressor,
            deciles: (count > 0).then(|| Deciles(std::array::from_fn(decile))),
            mean: of_all(sum),
            incompressible: of_all(whole as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that is broken, and what breaks it.
    type Mutant = (&'static str, fn(&mut Measured));

    #[test]
    fn pages_of_one_word_are_told_from_others() {
        let mut page: Page = [0; PAGE_SIZE as usize];
        assert_eq!(repeated(&page), Some(0));
        page.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&7_u64.to_ne_bytes()));
        assert_eq!(repeated(&page), Some(7));
        page[4095] ^= 1;
        assert_eq!(repeated(&page), None);
    }

    #[test]
    fn both_compressors_shrink_text_and_neither_shrinks_noise() {
        let mut text: Page = [b' '; PAGE_SIZE as usize];
        text.iter_mut().step_by(7).for_each(|byte| *byte = b'x');
        let mut state = 1_u64;
        let noise: Page = std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        for compressor in Compressor::ALL {
            let deciles = |page: &Page| Lengths::of(&[page], compressor).unwrap().deciles.unwrap().0;
            assert!(deciles(&text)[10] < 200, "{compressor:?}");
            assert_eq!(deciles(&noise), [4096; 11], "{compressor:?}");
        }
    }

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pages");
        let bytes: Vec<u8> = (0..3 * PAGE_SIZE).map(|at| (at / 7 % 251) as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        let answer = || ask(&Ask { what: vec![path.clone()], ..Ask::default() }, &()).unwrap();
        assert_eq!(answer().check(), Ok(()));
        let mutants: [Mutant; 3] = [
            ("more pages are compressed than the region has", |region| region.compressed = 4),
            ("sum up to more than 1", |region| {
                (region.zero_filled, region.same_filled) = (Share(0.6), Share(0.6))
            }),
            ("deciles rise", |region| region.lengths[0].deciles.as_mut().unwrap().0[0] = 4096),
        ];
        for (sum, mutate) in mutants {
            let mut answer = answer();
            mutate(&mut answer.regions[0]);
            let wrong = answer.check().unwrap_err();
            assert!(wrong.contains(sum), "{sum}: {wrong}");
        }
    }
}
