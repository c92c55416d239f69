//! `pageout trace compressibility`: what pages compress to, as a distribution by region, and as keys of a scenario.
//!
//! Each page is compressed alone, as zswap and zram do. A page of zeroes or of one word takes no compressor to be seen, so these are counted
//! apart, and the lengths are those of the others. A length of a page or more is a page that does not shrink.
//!
//! *Why there is no lzo-rle.* Of the libraries of LZO two ports, a binding and its wrapper are under the GPL, and one only decompresses.
//! `lzokay` (MIT) compresses, but looks harder for matches than the kernel does, and knows no runs of zeroes: on C source and on the heap of a
//! Python program it comes to 14 % to 15 % less than zram's lzo-rle of Linux 6.18 (1475 and 1023 bytes a page in the mean, for 1743 and 1193).
//! lz4 is nearer to it (1820 and 1325), and what zram makes of the same pages by its own lz4 is within 0.4 % of what is made of them
//! here.

use std::path::PathBuf;

use anyhow::Context;
use pageout_engine::PAGE_SIZE;
use pageout_sim::scenario::{Deciles, Share};
use serde_json::{Value, json};

use super::memory::{self, Page, Region};
use crate::cli::OutputOptions;
use crate::commands::trace::args::Compressor;
use crate::failure::Outcome;
use crate::print::{figures, output, progress, table};

/// The level of zstd that the kernel compresses pages with unless told otherwise.
const ZSTD_LEVEL: i32 = 3;

/// Reads the pages, compresses them and prints what they came to. Nothing is printed if one of the files or processes can't be read.
pub(crate) fn compressibility(
    what: &[PathBuf],
    compressor: Compressor,
    sample: u64,
    options: &OutputOptions,
) -> Outcome {
    let mut all = Vec::new();
    for path in what {
        let bar = progress::bar(options, None, &path.to_string_lossy());
        let regions = memory::regions(path, sample)?;
        let measured: anyhow::Result<Vec<Measured>> = regions.iter().map(Measured::of).collect();
        bar.finish_and_clear();
        all.extend(measured?);
    }
    match options.is_data() {
        true => output::print_json(&all.iter().map(Measured::json).collect::<Vec<Value>>()),
        false => output::print_text(&to_text(&all, compressor)),
    }
}

/// What the pages of a region came to.
struct Measured {
    name: String,
    pages: u64,
    compressed: u64,
    zero_filled: Share,
    same_filled: Share,
    /// Lengths of the other pages, by compressor.
    lengths: [Lengths; 2],
}

/// What pages came to with one compressor.
struct Lengths {
    compressor: Compressor,
    /// None where all pages are zeroes or one word.
    deciles: Option<Deciles>,
    /// Bytes of a page in the mean.
    mean: f64,
    /// The share of pages that do not shrink.
    incompressible: f64,
}

impl Compressor {
    const ALL: [Compressor; 2] = [Compressor::Lz4, Compressor::Zstd];

    fn name(self) -> &'static str {
        match self {
            Compressor::Lz4 => "lz4",
            Compressor::Zstd => "zstd",
        }
    }
}

impl Measured {
    fn of(region: &Region) -> anyhow::Result<Measured> {
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

    /// The keys of a scenario that say the same.
    fn keys(&self, compressor: Compressor) -> String {
        let mut text =
            format!("# {}, {} pages, {}\n", self.name, figures::count(self.compressed), compressor.name());
        let of = self.lengths.iter().find(|lengths| lengths.compressor == compressor);
        let shares = [("zero_filled", self.zero_filled), ("same_filled", self.same_filled)];
        for (key, share) in shares.into_iter().filter(|(_, share)| share.0 > 0.0) {
            text += &format!("{key} = {}\n", share.0);
        }
        if let Some(deciles) = of.and_then(|lengths| lengths.deciles) {
            text += &format!("compressed_deciles = \"{deciles}\"\n");
        }
        text
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
    fn of(pages: &[&Page], compressor: Compressor) -> anyhow::Result<Lengths> {
        let mut space = vec![0; 2 * PAGE_SIZE as usize];
        let mut zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).context("zstd does not start")?;
        let mut lengths = Vec::with_capacity(pages.len());
        for page in pages {
            let length = match compressor {
                Compressor::Lz4 => lz4_flex::block::compress_into(*page, &mut space)
                    .context("lz4 does not compress a page")?,
                Compressor::Zstd => zstd
                    .compress_to_buffer(page.as_slice(), &mut space)
                    .context("zstd does not compress a page")?,
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

fn to_text(all: &[Measured], compressor: Compressor) -> String {
    let heading = [
        "region",
        "by",
        "pages",
        "zeroes",
        "one word",
        "mean",
        "least",
        "10%",
        "50%",
        "90%",
        "most",
        "do not shrink",
    ];
    let mut rows = vec![heading.map(str::to_string).to_vec()];
    for measured in all {
        for (index, lengths) in measured.lengths.iter().enumerate() {
            let once = |text: String| if index == 0 { text } else { String::new() };
            let length = |tenths: usize| {
                lengths.deciles.map_or("-".to_string(), |deciles| deciles.0[tenths].to_string())
            };
            rows.push(vec![
                once(measured.name.clone()),
                lengths.compressor.name().to_string(),
                once(figures::count(measured.pages)),
                once(figures::percent(measured.zero_filled.0)),
                once(figures::percent(measured.same_filled.0)),
                if lengths.deciles.is_some() { format!("{:.0}", lengths.mean) } else { "-".to_string() },
                length(0),
                length(1),
                length(5),
                length(9),
                length(10),
                figures::percent(lengths.incompressible),
            ]);
        }
    }
    let mut text = table::layout(&rows, 2);
    text += "Bytes of a page of 4096, of the pages that are neither zeroes nor one word.\n";
    for measured in all {
        text += &format!("\n{}", measured.keys(compressor));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
