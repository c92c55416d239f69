//! Mix: parts interleaved at random by weight, as programs that run side by side.
//!
//! For each access one draw of `below(sum of weights)` names the part; the parts' own draws are independent of it.

use serde::Deserialize;

use super::error::check_object;
use super::{Pattern, PatternError};
use crate::rng::SplitMix64;
use crate::trace::TraceError;
use crate::{Access, AccessStream};

/// `pattern = "mix"` (or `"interleave"`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The parts; at least one. Required.
    pub parts: Vec<MixPart>,
    /// The end of the mix. Default `first`.
    #[serde(default)]
    pub end: MixEnd,
    /// Seed of the choice of parts. Default: the seed handed to the stream.
    pub seed: Option<u64>,
}

/// One part of a [`Mix`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixPart {
    /// Share of the accesses, relative to the other parts' weights; 1 to 2^32 - 1. Default 1.
    #[serde(default = "one")]
    pub weight: u32,
    /// The object that the part accesses, below 2^23. Default: the object of the mix.
    pub object: Option<u32>,
    /// The part itself; without a seed of its own it gets one derived from the mix's and its place. Required.
    pub of: Pattern,
}

/// The end of a [`Mix`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixEnd {
    /// As soon as one part has ended: the proportions hold to the end.
    #[default]
    First,
    /// When all parts have ended; those left share what an ended one would have got.
    Last,
}

fn one() -> u32 {
    1
}

impl Mix {
    pub(super) fn validate(&self) -> Result<(), PatternError> {
        if self.parts.is_empty() {
            return Err(PatternError::new("mix", "parts", "must name at least one part"));
        }
        for (index, part) in self.parts.iter().enumerate() {
            let name = format!("mix.parts[{index}]");
            if part.weight == 0 {
                return Err(PatternError::new(&name, "weight", "must be at least 1, got 0"));
            }
            check_object(&name, part.object.unwrap_or(0))?;
            part.of.validate().map_err(|error| error.within(&name))?;
        }
        Ok(())
    }
}

/// A part's stream with a buffered chunk, so that taking one access is cheap.
struct Buffered {
    stream: Box<dyn AccessStream>,
    weight: u64,
    chunk: Vec<Access>,
    next: usize,
}

const CHUNK: usize = 1024;

impl Buffered {
    /// True if there is an access at `next`, after reading on if necessary.
    fn has_next(&mut self) -> Result<bool, TraceError> {
        if self.next == self.chunk.len() {
            self.chunk.clear();
            self.next = 0;
            self.stream.fill(&mut self.chunk, CHUNK)?;
        }
        Ok(self.next < self.chunk.len())
    }
}

/// The parts' streams interleaved.
pub(super) struct Interleaved {
    rng: SplitMix64,
    end: MixEnd,
    parts: Vec<Buffered>,
    weight_sum: u64,
    has_ended: bool,
}

impl Interleaved {
    /// At least one part, each with a weight: the pattern checks both.
    pub(super) fn new(streams: Vec<(u32, Box<dyn AccessStream>)>, end: MixEnd, seed: u64) -> Interleaved {
        let parts: Vec<Buffered> = streams
            .into_iter()
            .map(|(weight, stream)| Buffered { stream, weight: weight.into(), chunk: Vec::new(), next: 0 })
            .collect();
        let weight_sum = parts.iter().map(|part| part.weight).sum();
        Interleaved { rng: SplitMix64::new(seed), end, parts, weight_sum, has_ended: false }
    }

    /// Drops the parts that have ended, and notices when that ends the mix.
    fn drop_ended(&mut self) -> Result<(), TraceError> {
        let mut index = 0;
        while index < self.parts.len() {
            if self.parts[index].has_next()? {
                index += 1;
                continue;
            }
            self.weight_sum -= self.parts.remove(index).weight;
            if self.end == MixEnd::First {
                self.parts.clear();
            }
        }
        self.has_ended = self.parts.is_empty();
        Ok(())
    }
}

impl AccessStream for Interleaved {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        if max == 0 || self.has_ended {
            return Ok(0);
        }
        let mut filled = 0;
        // Which part is empty can only change by drawing from it, so only the start and an exhausted chunk look.
        self.drop_ended()?;
        while filled < max && !self.has_ended {
            let mut draw = self.rng.below(self.weight_sum);
            let mut index = 0;
            while draw >= self.parts[index].weight {
                draw -= self.parts[index].weight;
                index += 1;
            }
            let part = &mut self.parts[index];
            out.push(part.chunk[part.next]);
            part.next += 1;
            filled += 1;
            if part.next == part.chunk.len() {
                self.drop_ended()?;
            }
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        match self.end {
            // Which part ends first is not known before it has.
            MixEnd::First => None,
            MixEnd::Last => self.parts.iter().map(|part| part.stream.len_hint()).sum(),
        }
    }
}
