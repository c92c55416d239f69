//! The keys of `[[swap]]` and of objects that say how well pages compress.

mod preset; // what was measured of real pages

use std::fmt;

use pageout_engine::{Compressibility, Lengths, PAGE_SIZE};

use super::{Object, Share, Swap};
pub(super) use preset::CONTENTS_NAMES;
pub use preset::{CONTENTS, Contents};

/// The keys, as they are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compressed {
    contents: Option<&'static Contents>,
    deciles: Option<Deciles>,
    min: Option<Share>,
    max: Option<Share>,
    same_filled: Option<Share>,
    zero_filled: Option<Share>,
}

impl Compressed {
    pub(super) fn of_swap(swap: &Swap) -> Compressed {
        let &Swap { compressed_deciles: deciles, same_filled, zero_filled, .. } = swap;
        let (min, max) = (swap.compressed_min, swap.compressed_max);
        Compressed { contents: find(swap.contents.as_ref()), deciles, min, max, same_filled, zero_filled }
    }

    pub(super) fn of_object(object: &Object) -> Compressed {
        let &Object { compressed_deciles: deciles, same_filled, zero_filled, .. } = object;
        let (min, max) = (object.compressed_min, object.compressed_max);
        Compressed { contents: find(object.contents.as_ref()), deciles, min, max, same_filled, zero_filled }
    }

    /// The first of the keys that is given.
    pub(super) fn given(self) -> Option<&'static str> {
        self.of_compression().or(self.zero_filled.map(|_| "zero_filled"))
    }

    /// The first of those that say how pages compress: pages of zeroes need no compression.
    pub(super) fn of_compression(self) -> Option<&'static str> {
        let keys = [
            ("contents", self.contents.is_some()),
            ("compressed_deciles", self.deciles.is_some()),
            ("compressed_min", self.min.is_some()),
            ("compressed_max", self.max.is_some()),
            ("same_filled", self.same_filled.is_some()),
        ];
        keys.into_iter().find(|&(_, is_given)| is_given).map(|(key, _)| key)
    }

    /// What they come to; `None` where none is given. An error says what doesn't go together.
    pub(super) fn engine(self) -> Result<Option<Compressibility>, String> {
        if self.given().is_none() {
            return Ok(None);
        }
        let ways = [
            ("contents", self.contents.is_some()),
            ("compressed_deciles", self.deciles.is_some()),
            ("compressed_min", self.min.is_some()),
            ("compressed_max", self.max.is_some()),
        ];
        // A least and a most go together, the others stand alone.
        let mut given = ways.into_iter().filter(|&(_, is_given)| is_given).map(|(key, _)| key);
        if let (Some(one), Some(other)) = (given.next(), given.next())
            && one != "compressed_min"
        {
            return Err(format!(
                "both `{one}` and `{other}` define the compressed sizes: keep one of the two"
            ));
        }
        let per_mille =
            |share: Option<Share>, usual| share.map_or(usual, |share| (share.0 * 1000.0).round() as u16);
        let usual = self.contents.map_or((0, 0), |contents| (contents.zero_filled, contents.same_filled));
        let zero_filled = per_mille(self.zero_filled, usual.0);
        let same_filled = per_mille(self.same_filled, usual.1);
        if zero_filled + same_filled > 1000 {
            return Err("the sum of `zero_filled` and `same_filled` is above 1".to_string());
        }
        let deciles = self.deciles.or(self.contents.map(|contents| contents.deciles));
        let lengths =
            deciles.map_or_else(|| self.even(), |Deciles(deciles)| Ok(Lengths::Deciles(deciles)))?;
        Ok(Some(Compressibility { zero_filled, same_filled, lengths }))
    }

    /// Lengths that are equally frequent between two shares of a page.
    fn even(self) -> Result<Lengths, String> {
        let Lengths::Even { least: usual_least, most: usual_most } = Compressibility::default().lengths
        else {
            unreachable!("pages that say nothing compress evenly")
        };
        // A length of nothing is what a page of one word has.
        let bytes = |share: Share| ((share.0 * PAGE_SIZE as f64).round() as u16).max(1);
        // One of them alone takes the other along where that would be on its wrong side.
        let least =
            self.min.map(bytes).unwrap_or_else(|| usual_least.min(self.max.map_or(usual_least, bytes)));
        let most = self.max.map(bytes).unwrap_or_else(|| usual_most.max(least));
        if least > most {
            let percent = |bytes: u16| (100 * u64::from(bytes) + PAGE_SIZE / 2) / PAGE_SIZE;
            return Err(format!(
                "compressed sizes range from {}% to {}%: `compressed_min` is above `compressed_max`",
                percent(least),
                percent(most)
            ));
        }
        Ok(Lengths::Even { least, most })
    }
}

impl Object {
    /// How its pages compress, if it has a key that says so.
    pub fn compressibility(&self) -> Option<Compressibility> {
        // The check of the scenario has seen that its keys go together.
        Compressed::of_object(self).engine().ok().flatten()
    }
}

/// What is measured under this name; the check of the keys has seen that there is one.
fn find(name: Option<&String>) -> Option<&'static Contents> {
    CONTENTS.iter().find(|contents| Some(contents.name) == name.map(String::as_str))
}

/// The lengths of compressed pages in bytes: the shortest, the nine below which a tenth, two tenths, ... of the pages stay, and the longest.
/// Written as eleven numbers with blanks between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deciles(pub [u16; 11]);

impl std::str::FromStr for Deciles {
    type Err = String;

    fn from_str(text: &str) -> Result<Deciles, String> {
        let form = "write eleven numbers separated by blanks, the shortest length first; `pageout trace compressibility` prints them";
        let numbers: Result<Vec<u16>, _> = text.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|_| format!("`{text}` is not a list of lengths in bytes: {form}"))?;
        let count = numbers.len();
        let deciles: [u16; 11] =
            numbers.try_into().map_err(|_| format!("`{text}` has {count} lengths: {form}"))?;
        let most = PAGE_SIZE as u16;
        if let Some(length) = deciles.into_iter().find(|length| !(1..=most).contains(length)) {
            return Err(format!("found a compressed page of {length} bytes, expected 1 to {most}"));
        }
        match deciles.windows(2).find(|pair| pair[1] < pair[0]) {
            Some(pair) => Err(format!(
                "the lengths decrease from {} to {}, expected the shortest first",
                pair[0], pair[1]
            )),
            None => Ok(Deciles(deciles)),
        }
    }
}

impl fmt::Display for Deciles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lengths.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deciles_read_back_as_they_are_written_and_say_what_is_wrong_with_them() {
        let deciles = Deciles([1, 2, 3, 4, 5, 6, 7, 8, 9, 4096, 4096]);
        assert_eq!(deciles.to_string().parse(), Ok(deciles));
        for (text, part) in [
            ("1 2 3", "has 3 lengths"),
            ("1 2 3 4 5 x 7 8 9 10 11", "not a list of lengths"),
            ("0 2 3 4 5 6 7 8 9 10 11", "found a compressed page of 0 bytes"),
            ("1 2 3 4 5 6 7 8 9 10 4097", "found a compressed page of 4097 bytes"),
            ("1 2 3 4 5 6 9 8 9 10 11", "decrease from 9 to 8"),
        ] {
            let error = text.parse::<Deciles>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn contents_that_were_measured_are_distributions_with_a_source() {
        for (contents, name) in CONTENTS.iter().zip(CONTENTS_NAMES) {
            assert_eq!(contents.name, *name);
            assert_eq!(contents.deciles.to_string().parse(), Ok(contents.deciles), "{name}");
            assert!(contents.zero_filled + contents.same_filled <= 1000, "{name}");
            assert!(!contents.source.is_empty(), "{name}");
        }
        assert_eq!(CONTENTS.len(), CONTENTS_NAMES.len());
    }
}
