//! Compressed lengths of pages: a distribution by region, and the length that each page draws from it.
//!
//! The engine never learns a page's contents. A host that has the pages answers questions about them ([`PageContents`]). For others, the distribution of
//! contents is given in advance. It has the share of pages that are all zeroes, the share of
//! one repeated word, and the lengths of the others. Each page has its own contents, derived from its identity (which address space or file, and
//! which page of it). The same page has the same length each time, in every run and under every seed. [tiering-zswap-6.12 1.1]

use crate::config::{ConfigError, check_range};
use crate::units::{PAGE_SIZE, Pfn};

/// A host's answers about pages that leave memory. The engine asks while the page is unmapped and its frame gate is closed, so that nothing changes the page
/// until the operations of the call are carried out. It may ask about a page several times.
pub trait PageContents: Send + Sync {
    /// Returns the word of 64 bits that the page repeats; `None` if it has another content.
    fn repeated_word(&mut self, pfn: Pfn) -> Option<u64>;

    /// Returns the number of bytes that the page is compressed to, from 1 to 4096. 4096: the page does not shrink.
    fn compressed_bytes(&mut self, pfn: Pfn) -> u16;
}

/// The compressibility of pages: a random length for each, by its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressibility {
    /// Pages in a thousand that are all zeroes.
    pub zero_filled: u16,
    /// Pages in a thousand that are another word repeated.
    pub same_filled: u16,
    /// Compressed lengths of all other pages.
    pub lengths: Lengths,
}

/// The distribution of the lengths of compressed pages, in bytes from 1 to 4096; 4096 is a page that does not shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lengths {
    /// All from the least to the most are equally frequent.
    Even {
        /// Bytes at least.
        least: u16,
        /// Bytes at most.
        most: u16,
    },
    /// The shortest, the lengths below which a tenth, two tenths, ... of the pages stay, and the longest. Between two of them all
    /// lengths are equally frequent.
    Deciles([u16; 11]),
}

/// A page's contents, as far as swap has to know them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// All bytes are zero.
    Zeroes,
    /// Another word, repeated.
    OneWord,
    /// Anything else, which is compressed to this many bytes.
    Bytes(u16),
}

impl Default for Compressibility {
    /// A half to a third of a page, as lzo-rle does in the kernel.
    fn default() -> Compressibility {
        Compressibility {
            zero_filled: 0,
            same_filled: 0,
            lengths: Lengths::Even { least: 4096 / 3, most: 4096 / 2 },
        }
    }
}

impl Compressibility {
    /// Refuses lengths that no page compresses to.
    pub fn check(self) -> Result<(), ConfigError> {
        let (zeroes, same) = (u64::from(self.zero_filled), u64::from(self.same_filled));
        check_range("pages of zeroes, of a thousand", zeroes, 0, 1000)?;
        check_range("pages of one word, of a thousand without those of zeroes", same, 0, 1000 - zeroes)?;
        match self.lengths {
            Lengths::Even { least, most } => {
                check_range("least bytes of a compressed page", least.into(), 1, PAGE_SIZE)?;
                check_range("most bytes of a compressed page", most.into(), least.into(), PAGE_SIZE)
            }
            Lengths::Deciles(deciles) => {
                check_range("bytes of the shortest compressed page", deciles[0].into(), 1, PAGE_SIZE)?;
                deciles.windows(2).try_for_each(|pair| {
                    check_range("deciles of compressed bytes", pair[1].into(), pair[0].into(), PAGE_SIZE)
                })
            }
        }
    }

    /// Returns the contents of a page.
    pub fn contents_of(self, is_anon: bool, owner: u32, index: u32) -> Contents {
        let drawn = mix(u64::from(owner) << 33 | u64::from(index) << 1 | u64::from(is_anon));
        let share = drawn % 1000;
        if share < u64::from(self.zero_filled) {
            Contents::Zeroes
        } else if share < u64::from(self.zero_filled + self.same_filled) {
            Contents::OneWord
        } else {
            Contents::Bytes(self.lengths.draw((drawn >> 32) as u16))
        }
    }
}

impl Lengths {
    /// The length of one page, by a number of which all values are equally frequent.
    fn draw(self, drawn: u16) -> u16 {
        match self {
            Lengths::Even { least, most } => least + drawn % (most - least + 1),
            Lengths::Deciles(deciles) => {
                // In tenths of a 65536th: which decile, and how far into it.
                let place = u64::from(drawn) * 10;
                let (decile, within) = ((place >> 16) as usize, place & 0xffff);
                let [below, above] = [deciles[decile], deciles[decile + 1]];
                below + ((u64::from(above - below) * within) >> 16) as u16
            }
        }
    }
}

/// Spreads numbers evenly (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut drawn = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    drawn ^ drawn >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(compressibility: Compressibility, is_anon: bool) -> Vec<Contents> {
        (0..10_000).map(|page| compressibility.contents_of(is_anon, 3, page)).collect()
    }

    fn lengths(contents: &[Contents]) -> Vec<u16> {
        let length = |&contents: &Contents| match contents {
            Contents::Bytes(length) => Some(length),
            _ => None,
        };
        contents.iter().filter_map(length).collect()
    }

    #[test]
    fn contents_are_a_pages_own_and_spread_as_the_region_says() {
        let even = Lengths::Even { least: 1000, most: 1999 };
        let compressibility = Compressibility { zero_filled: 200, same_filled: 100, lengths: even };
        let contents = drawn(compressibility, true);
        assert_eq!(contents, drawn(compressibility, true));
        let count = |which: Contents| contents.iter().filter(|&&page| page == which).count();
        assert!((1900..2100).contains(&count(Contents::Zeroes)), "{} zeroes", count(Contents::Zeroes));
        assert!((900..1100).contains(&count(Contents::OneWord)), "{} of one word", count(Contents::OneWord));
        let others = lengths(&contents);
        assert!(others.iter().all(|length| (1000..=1999).contains(length)));
        let mean = others.iter().map(|&length| f64::from(length)).sum::<f64>() / others.len() as f64;
        assert!((1480.0..1520.0).contains(&mean), "{mean}");
        assert_ne!(contents[..50], drawn(compressibility, false)[..50]);
    }

    #[test]
    fn a_tenth_of_the_pages_lies_between_two_deciles() {
        let deciles = [100, 300, 301, 302, 800, 900, 1000, 2000, 3000, 4096, 4096];
        let lengths = Lengths::Deciles(deciles);
        let contents = drawn(Compressibility { zero_filled: 0, same_filled: 0, lengths }, true);
        let lengths = self::lengths(&contents);
        for (below, above) in [(100, 300), (302, 800), (2000, 3000)] {
            let between = lengths.iter().filter(|&&length| (below..above).contains(&length)).count();
            assert!((900..1100).contains(&between), "{between} from {below} to {above}");
        }
        let whole = lengths.iter().filter(|&&length| length == 4096).count();
        assert!((900..1100).contains(&whole), "{whole} do not shrink");
    }

    #[test]
    fn what_makes_no_distribution_is_refused_by_name() {
        let refused = |compressibility: Compressibility| compressibility.check().unwrap_err().to_string();
        let usual = Compressibility::default();
        let shares = Compressibility { zero_filled: 600, same_filled: 500, ..usual };
        assert_eq!(
            refused(shares),
            "pages of one word, of a thousand without those of zeroes: 500 is not in the range 0 to 400"
        );
        let falling = Lengths::Deciles([9, 9, 9, 9, 8, 9, 9, 9, 9, 9, 9]);
        let falling = Compressibility { lengths: falling, ..usual };
        assert_eq!(refused(falling), "deciles of compressed bytes: 8 is not in the range 9 to 4096");
    }
}
