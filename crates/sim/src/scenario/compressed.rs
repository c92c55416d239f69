//! How well pages compress, in the keys of `[[swap]]` and of objects.

use pageout_engine::{Compressibility, Lengths, PAGE_SIZE};

use super::{Object, Share, Swap};

/// The keys, as they are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compressed {
    min: Option<Share>,
    max: Option<Share>,
    same_filled: Option<Share>,
    zero_filled: Option<Share>,
}

impl Compressed {
    pub(super) fn of_swap(swap: &Swap) -> Compressed {
        let Swap { compressed_min: min, compressed_max: max, same_filled, zero_filled, .. } = *swap;
        Compressed { min, max, same_filled, zero_filled }
    }

    pub(super) fn of_object(object: &Object) -> Compressed {
        let Object { compressed_min: min, compressed_max: max, same_filled, zero_filled, .. } = *object;
        Compressed { min, max, same_filled, zero_filled }
    }

    /// The first of the keys that is given.
    pub(super) fn given(self) -> Option<&'static str> {
        self.of_compression().or(self.zero_filled.map(|_| "zero_filled"))
    }

    /// The first of those that say how pages compress: pages of zeroes need no compression.
    pub(super) fn of_compression(self) -> Option<&'static str> {
        let keys =
            [("compressed_min", self.min), ("compressed_max", self.max), ("same_filled", self.same_filled)];
        keys.into_iter().find(|(_, share)| share.is_some()).map(|(key, _)| key)
    }

    /// What they come to; `None` where none is given. An error says what doesn't go together.
    pub(super) fn engine(self) -> Result<Option<Compressibility>, String> {
        if self.given().is_none() {
            return Ok(None);
        }
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
                "pages compress to {}% at best and {}% at worst: `compressed_min` is above `compressed_max`",
                percent(least),
                percent(most)
            ));
        }
        let per_mille = |share: Option<Share>| share.map_or(0, |share| (share.0 * 1000.0).round() as u16);
        let (zero_filled, same_filled) = (per_mille(self.zero_filled), per_mille(self.same_filled));
        if zero_filled + same_filled > 1000 {
            return Err("`zero_filled` and `same_filled` are more than all pages together".to_string());
        }
        Ok(Some(Compressibility { zero_filled, same_filled, lengths: Lengths::Even { least, most } }))
    }
}
