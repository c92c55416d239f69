//! How well pages compress, in the keys of `[[swap]]` and of objects.

use pageout_engine::{Compressibility, PAGE_SIZE};

use super::{Object, Share, Swap};

/// The three keys, as they are given.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compressed {
    min: Option<Share>,
    max: Option<Share>,
    same_filled: Option<Share>,
}

impl Compressed {
    pub(super) fn of_swap(swap: &Swap) -> Compressed {
        let Swap { compressed_min: min, compressed_max: max, same_filled, .. } = *swap;
        Compressed { min, max, same_filled }
    }

    pub(super) fn of_object(object: &Object) -> Compressed {
        let Object { compressed_min: min, compressed_max: max, same_filled, .. } = *object;
        Compressed { min, max, same_filled }
    }

    /// The first of the keys that is given.
    pub(super) fn given(self) -> Option<&'static str> {
        let keys =
            [("compressed_min", self.min), ("compressed_max", self.max), ("same_filled", self.same_filled)];
        keys.into_iter().find(|(_, share)| share.is_some()).map(|(key, _)| key)
    }

    /// What they come to; `None` where none is given. An error says what doesn't go together.
    pub(super) fn engine(self) -> Result<Option<Compressibility>, String> {
        if self.given().is_none() {
            return Ok(None);
        }
        let usual = Compressibility::default();
        // A length of nothing is what a page of one word has.
        let bytes = |share: Share| ((share.0 * PAGE_SIZE as f64).round() as u16).max(1);
        // One of them alone takes the other along where that would be on its wrong side.
        let least =
            self.min.map(bytes).unwrap_or_else(|| usual.least.min(self.max.map_or(usual.least, bytes)));
        let most = self.max.map(bytes).unwrap_or_else(|| usual.most.max(least));
        if least > most {
            let percent = |bytes: u16| (100 * u64::from(bytes) + PAGE_SIZE / 2) / PAGE_SIZE;
            return Err(format!(
                "pages compress to {}% at best and {}% at worst: `compressed_min` is above `compressed_max`",
                percent(least),
                percent(most)
            ));
        }
        let same_filled = self.same_filled.map_or(0, |share| (share.0 * 1000.0).round() as u16);
        Ok(Some(Compressibility { same_filled, least, most }))
    }
}
