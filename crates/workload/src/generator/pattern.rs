//! A pattern as a scenario file says it: plain data, checked, sized, and made into a stream.
//!
//! ```toml
//! pattern = "chain"
//! parts = [
//!     { of = { pattern = "fill", pages = 8192 } },
//!     { of = { pattern = "zipf", pages = 8192, alpha = 0.9, ops = 200000, write_ratio = 0.3 } },
//! ]
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::chain::Concatenation;
use super::error::check_object;
use super::limit::Limited;
use super::mix::Interleaved;
use super::repeat::Repeated;
use super::*;
use crate::AccessStream;
use crate::rng::SplitMix64;

/// An access stream described as data; the key `pattern` names the kind, the other keys are those of the kind.
/// Unknown keys are refused.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "pattern", rename_all = "snake_case")]
pub enum Pattern {
    /// One pass in ascending order.
    Sequential(Sequential),
    /// Round and round in ascending order.
    #[serde(alias = "loop")]
    Looping(Looping),
    /// Every page with the same probability.
    Uniform(Uniform),
    /// Rank k with probability proportional to k^-alpha, ranks scattered.
    Zipf(Zipf),
    /// A fraction of the pages gets a fraction of the accesses.
    HotSet(HotSet),
    /// Zipf with a periodic scan of cold pages.
    ZipfScan(ZipfScan),
    /// Phases of different sizes.
    PhaseShift(PhaseShift),
    /// Each page once, written.
    Fill(Fill),
    /// Whole files of a tree, by popularity.
    Runs(Runs),
    /// Lookups in a search tree.
    Index(Index),
    /// Parts interleaved by weight.
    #[serde(alias = "interleave")]
    Mix(Mix),
    /// One part after the other.
    Chain(Chain),
    /// One part again and again.
    Repeat(Repeat),
    /// The first N accesses.
    Limit(Limit),
}

impl Pattern {
    /// The accesses of this pattern on `object`. A pattern with a `seed` of its own ignores `seed`.
    pub fn stream(&self, object: u32, seed: u64) -> Result<Box<dyn AccessStream>, PatternError> {
        self.stream_of(object, seed, &ZipfTables::default())
    }

    /// The accesses of this pattern on `object`, with tables that the stream shares with others.
    pub fn stream_of(
        &self,
        object: u32,
        seed: u64,
        tables: &ZipfTables,
    ) -> Result<Box<dyn AccessStream>, PatternError> {
        self.validate()?;
        check_object("pattern", object)?;
        Ok(match self {
            Pattern::Sequential(pattern) => pattern.stream(object, seed),
            Pattern::Looping(pattern) => pattern.stream(object, seed),
            Pattern::Uniform(pattern) => pattern.stream(object, seed),
            Pattern::Zipf(pattern) => pattern.stream(object, seed, tables),
            Pattern::HotSet(pattern) => pattern.stream(object, seed),
            Pattern::ZipfScan(pattern) => pattern.stream(object, seed, tables),
            Pattern::PhaseShift(pattern) => pattern.stream(object, seed),
            Pattern::Fill(pattern) => pattern.stream(object),
            Pattern::Runs(pattern) => pattern.stream(object, seed, tables),
            Pattern::Index(pattern) => pattern.stream(object, seed, tables),
            Pattern::Mix(mix) => {
                let seed = mix.seed.unwrap_or(seed);
                let part = |(index, part): (usize, &MixPart)| {
                    let seed = SplitMix64::derive_seed(seed, index as u64);
                    let stream = part.of.stream_of(part.object.unwrap_or(object), seed, tables)?;
                    Ok((part.weight, stream))
                };
                let streams = mix.parts.iter().enumerate().map(part).collect::<Result<_, PatternError>>()?;
                Box::new(Interleaved::new(streams, mix.end, seed))
            }
            Pattern::Chain(chain) => {
                let part = |(index, part): (usize, &ChainPart)| {
                    let seed = SplitMix64::derive_seed(seed, index as u64);
                    part.of.stream_of(part.object.unwrap_or(object), seed, tables)
                };
                let streams: Vec<_> = chain.parts.iter().enumerate().map(part).collect::<Result<_, _>>()?;
                let ops = streams.iter().map(|stream| stream.len_hint()).sum();
                Box::new(Concatenation::new(streams, ops))
            }
            Pattern::Repeat(repeat) => Box::new(Repeated::new(repeat, object, seed, tables)?),
            Pattern::Limit(limit) => {
                Box::new(Limited::new(limit.of.stream_of(object, seed, tables)?, limit.ops))
            }
        })
    }

    /// Checks whether a stream can be made; the error names the pattern and the key.
    pub fn validate(&self) -> Result<(), PatternError> {
        match self {
            Pattern::Sequential(pattern) => pattern.validate(),
            Pattern::Looping(pattern) => pattern.validate(),
            Pattern::Uniform(pattern) => pattern.validate(),
            Pattern::Zipf(pattern) => pattern.validate(),
            Pattern::HotSet(pattern) => pattern.validate(),
            Pattern::ZipfScan(pattern) => pattern.validate(),
            Pattern::PhaseShift(pattern) => pattern.validate(),
            Pattern::Fill(pattern) => pattern.validate(),
            Pattern::Runs(pattern) => pattern.validate(),
            Pattern::Index(pattern) => pattern.validate(),
            Pattern::Mix(mix) => mix.validate(),
            Pattern::Chain(chain) => chain.validate(),
            Pattern::Repeat(repeat) => repeat.validate(),
            Pattern::Limit(limit) => limit.of.validate().map_err(|error| error.within("limit")),
        }
    }

    /// The objects accessed and one more than the highest page that can be accessed in each, so that a machine can
    /// size them before it starts.
    pub fn object_pages(&self, object: u32) -> BTreeMap<u32, u64> {
        let mut pages = BTreeMap::new();
        self.add_object_pages(object, &mut pages);
        pages
    }

    fn add_object_pages(&self, object: u32, sizes: &mut BTreeMap<u32, u64>) {
        let pages = match self {
            Pattern::Sequential(pattern) => pattern.pages,
            Pattern::Looping(pattern) => pattern.pages,
            Pattern::Uniform(pattern) => pattern.pages,
            Pattern::Zipf(pattern) => pattern.pages,
            Pattern::HotSet(pattern) => pattern.pages,
            Pattern::ZipfScan(pattern) => pattern.pages_end(),
            Pattern::PhaseShift(pattern) => pattern.pages_end(),
            Pattern::Fill(pattern) => pattern.pages,
            Pattern::Runs(pattern) => pattern.pages,
            Pattern::Index(pattern) => pattern.pages,
            Pattern::Mix(mix) => {
                for part in &mix.parts {
                    part.of.add_object_pages(part.object.unwrap_or(object), sizes);
                }
                return;
            }
            Pattern::Chain(chain) => {
                for part in &chain.parts {
                    part.of.add_object_pages(part.object.unwrap_or(object), sizes);
                }
                return;
            }
            Pattern::Repeat(repeat) => return repeat.of.add_object_pages(object, sizes),
            Pattern::Limit(limit) => return limit.of.add_object_pages(object, sizes),
        };
        let size = sizes.entry(object).or_insert(0);
        *size = pages.max(*size);
    }
}
