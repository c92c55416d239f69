//! Chain: one part after the other, as a program that first fills its memory and then works on it.

use serde::Deserialize;

use super::error::check_object;
use super::{Pattern, PatternError};
use crate::trace::TraceError;
use crate::{Access, AccessStream};

/// One part after the other: `pattern = "chain"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The parts in turn; at least one. Required.
    pub parts: Vec<ChainPart>,
}

/// One part of a [`Chain`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainPart {
    /// The object that the part accesses, below 2^23. Default: the object of the chain.
    pub object: Option<u32>,
    /// The part itself; without a seed of its own it gets one derived from the chain's and its place. Required.
    pub of: Pattern,
}

impl Chain {
    pub(super) fn validate(&self) -> Result<(), PatternError> {
        if self.parts.is_empty() {
            return Err(PatternError::new("chain", "parts", "must name at least one part"));
        }
        for (index, part) in self.parts.iter().enumerate() {
            let name = format!("chain.parts[{index}]");
            check_object(&name, part.object.unwrap_or(0))?;
            part.of.validate().map_err(|error| error.within(&name))?;
        }
        Ok(())
    }
}

/// The parts' streams in turn.
pub(super) struct Concatenation {
    /// In reverse, so that the current one is at the end.
    parts: Vec<Box<dyn AccessStream>>,
    ops: Option<u64>,
}

impl Concatenation {
    pub(super) fn new(mut parts: Vec<Box<dyn AccessStream>>, ops: Option<u64>) -> Concatenation {
        parts.reverse();
        Concatenation { parts, ops }
    }
}

impl AccessStream for Concatenation {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < max {
            let Some(part) = self.parts.last_mut() else { break };
            match part.fill(out, max - filled)? {
                0 => drop(self.parts.pop()),
                count => filled += count,
            }
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        self.ops
    }
}
