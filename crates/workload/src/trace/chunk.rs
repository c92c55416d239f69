//! Chunks of accesses: a reader makes many accesses at a time, and its caller takes as many at a time as it asks for.

use super::error::TraceError;
use crate::Access;

/// The bytes read last, and how many of them were taken.
#[derive(Default)]
pub(super) struct Chunk {
    accesses: Vec<Access>,
    next: usize,
}

impl Chunk {
    /// Appends up to `max` accesses to `out`, and returns how many. `advance` puts the next ones in place of those that were taken; it
    /// leaves none at the end.
    pub(super) fn take(
        &mut self,
        out: &mut Vec<Access>,
        max: usize,
        mut advance: impl FnMut(&mut Vec<Access>) -> Result<(), TraceError>,
    ) -> Result<usize, TraceError> {
        let mut filled = 0;
        while filled < max {
            if self.next == self.accesses.len() {
                self.accesses.clear();
                self.next = 0;
                if let Err(error) = advance(&mut self.accesses) {
                    // The part that was already read must not be used.
                    self.accesses.clear();
                    return Err(error);
                }
                if self.accesses.is_empty() {
                    break;
                }
            }
            let count = (self.accesses.len() - self.next).min(max - filled);
            out.extend_from_slice(&self.accesses[self.next..self.next + count]);
            self.next += count;
            filled += count;
        }
        Ok(filled)
    }
}
