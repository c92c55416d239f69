//! The bytes of compressed pages, in frames of the pool: an object is complete where the engine says that it is, or not at all.

use pageout_engine::{ObjectPlace, Pfn};
use std::collections::BTreeMap;

/// Places of objects are multiples of this many bytes.
const GRAIN: usize = 16;

/// The contents of the pool, by frame and grain: the value of the page that was stored there, and which part of the object it is.
#[derive(Default)]
pub(super) struct Pool(BTreeMap<(Pfn, usize), (u64, usize)>);

fn grains(place: ObjectPlace) -> impl Iterator<Item = (Pfn, usize)> {
    place.parts().flat_map(|(pfn, bytes)| {
        (bytes.start / GRAIN..bytes.end.div_ceil(GRAIN)).map(move |grain| (pfn, grain))
    })
}

impl Pool {
    /// Writes an object over the former contents.
    pub(super) fn put(&mut self, place: ObjectPlace, value: u64) {
        self.0.extend(grains(place).enumerate().map(|(part, grain)| (grain, (value, part))));
    }

    /// The value of an object, if it is complete.
    pub(super) fn get(&self, place: ObjectPlace) -> Option<u64> {
        let (value, _) = *self.0.get(&grains(place).next()?)?;
        let is_whole = grains(place).enumerate().all(|(part, at)| self.0.get(&at) == Some(&(value, part)));
        is_whole.then_some(value)
    }

    /// Copies bytes to another place.
    pub(super) fn copy(&mut self, from: ObjectPlace, to: ObjectPlace) {
        let copied: Vec<_> = grains(from).map(|grain| self.0.get(&grain).copied()).collect();
        for (grain, copied) in grains(to).zip(copied) {
            match copied {
                Some(part) => self.0.insert(grain, part),
                None => self.0.remove(&grain),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_written_over_or_moved_is_found_whole_or_not() {
        let across = ObjectPlace { frames: [Pfn(1), Pfn(2)], offset: 4064, length: 90 };
        let beside = ObjectPlace { frames: [Pfn(2); 2], offset: 48, length: 20 };
        let elsewhere = ObjectPlace { frames: [Pfn(9); 2], offset: 0, length: 90 };
        let mut pool = Pool::default();
        pool.put(across, 7);
        assert_eq!((pool.get(across), pool.get(elsewhere)), (Some(7), None));
        pool.copy(across, elsewhere);
        pool.put(beside, 8);
        assert_eq!((pool.get(across), pool.get(beside), pool.get(elsewhere)), (None, Some(8), Some(7)));
    }
}
