//! Limit: the first N accesses of another pattern.

use serde::Deserialize;

use super::Pattern;
use crate::trace::TraceError;
use crate::{Access, AccessStream};

/// The first N accesses of another pattern: `pattern = "limit"`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Accesses to keep; all of them where the pattern has fewer. Required.
    pub ops: u64,
    /// The pattern cut short. Required.
    pub of: Box<Pattern>,
}

/// The start of any stream; a replayed trace can be cut short with it too.
pub struct Limited<S> {
    stream: S,
    ops_left: u64,
    len: Option<u64>,
}

impl<S: AccessStream> Limited<S> {
    /// The first `ops` accesses of `stream`.
    pub fn new(stream: S, ops: u64) -> Limited<S> {
        let len = stream.len_hint().map(|len| len.min(ops));
        Limited { stream, ops_left: ops, len }
    }
}

impl<S: AccessStream> AccessStream for Limited<S> {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let max = usize::try_from(self.ops_left).unwrap_or(usize::MAX).min(max);
        let filled = self.stream.fill(out, max)?;
        self.ops_left -= filled as u64;
        Ok(filled)
    }

    fn len_hint(&self) -> Option<u64> {
        self.len
    }
}
