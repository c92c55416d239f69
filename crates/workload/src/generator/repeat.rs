//! Repeat: the same accesses again, from the start, with the same seed.

use serde::Deserialize;

use super::{Pattern, PatternError, ZipfTables};
use crate::trace::TraceError;
use crate::{Access, AccessStream};

/// Another pattern again and again: `pattern = "repeat"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The total number of repetitions; at least 1. Required.
    pub times: u64,
    /// The pattern repeated. Required.
    pub of: Box<Pattern>,
}

impl Repeat {
    pub(super) fn validate(&self) -> Result<(), PatternError> {
        if self.times == 0 {
            return Err(PatternError::new("repeat", "times", "must be at least 1, got 0"));
        }
        self.of.validate().map_err(|error| error.within("repeat"))
    }
}

/// Creates the stream again for each repetition.
pub(super) struct Repeated {
    of: Pattern,
    object: u32,
    seed: u64,
    tables: ZipfTables,
    current: Box<dyn AccessStream>,
    times_left: u64,
    ops: Option<u64>,
}

impl Repeated {
    pub(super) fn new(
        repeat: &Repeat,
        object: u32,
        seed: u64,
        tables: &ZipfTables,
    ) -> Result<Repeated, PatternError> {
        let current = repeat.of.stream_of(object, seed, tables)?;
        let ops = current.len_hint().and_then(|len| len.checked_mul(repeat.times));
        let times_left = repeat.times - 1;
        Ok(Repeated {
            of: (*repeat.of).clone(),
            object,
            seed,
            tables: tables.clone(),
            current,
            times_left,
            ops,
        })
    }
}

impl AccessStream for Repeated {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let mut filled = 0;
        let mut fresh = false;
        while filled < max {
            let count = self.current.fill(out, max - filled)?;
            filled += count;
            if count > 0 {
                fresh = false;
                continue;
            }
            // A pattern without accesses has none however often it is repeated.
            if fresh || self.times_left == 0 {
                break;
            }
            self.times_left -= 1;
            fresh = true;
            self.current = self
                .of
                .stream_of(self.object, self.seed, &self.tables)
                .expect("the first stream was made from the same pattern");
        }
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        self.ops
    }
}
