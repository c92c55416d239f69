//! Calls of a recorded task on complete files between its accesses, and evictions by others: a text next to its trace.
//!
//! ```text
//!   access,object,call,first,end
//!   1200,3,fsync                      before the access of number 1200, from 0, is made
//!   1201,4,truncate,16                from page 16 to the file's end
//!   1201,4,truncate,16,32             from page 16 to page 31: a hole
//!   1202,5,delete                     the file, and an empty one takes its place
//!   1203,3,evict,7,8                  others reclaim page 7
//!   1204,3,forget                     memory takes the inode back, which has no pages: with it goes what is known of evicted ones
//!   1205,3,read,16,32                 the next accesses from page 16 to page 31 are those of one read(2)
//!   1221,3,write,8192,90000           the next accesses are those of one write(2) of these bytes
//! ```
//!
//! Objects are those of the trace. Lines are in the order in which the calls were made.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::error::{Place, TraceError};
use super::file::open_file;
use crate::Access;

/// The first line.
pub const COLUMNS: &str = "access,object,call,first,end";

/// A call on a whole file, or on a range of its pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileCall {
    /// fsync(2).
    Sync,
    /// ftruncate(2), or a hole: these pages go.
    Truncate {
        /// The first page that goes.
        first: u64,
        /// The page behind the last one; `u64::MAX` if all behind go as well.
        end: u64,
    },
    /// unlink(2) and the last close(2): all pages go, and the file.
    Delete,
    /// Not a call of the task: reclaim of the whole machine takes these pages out of memory.
    Evict {
        /// The first page.
        first: u64,
        /// The page behind the last one.
        end: u64,
    },
    /// No call of the task: reclaim takes the inode of a file that has no pages in memory.
    Forget,
    /// The accesses that follow to these pages are one read(2). Without it, each access is a call.
    Read {
        /// The first page.
        first: u64,
        /// The page behind the last one, which may lie behind the end of the file.
        end: u64,
    },
    /// The accesses that follow to these bytes are one write(2), likewise.
    Write {
        /// The first byte.
        from: u64,
        /// The byte behind the last one.
        to: u64,
    },
}

impl FileCall {
    /// All of a file is truncated.
    pub const TRUNCATE_ALL: FileCall = FileCall::Truncate { first: 0, end: u64::MAX };

    /// Returns whether it says what the next accesses are, and does nothing itself.
    pub fn is_of_accesses(self) -> bool {
        matches!(self, FileCall::Read { .. } | FileCall::Write { .. })
    }
}

/// A call, with its place among the accesses of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedCall {
    /// Accesses that were made before it.
    pub access: u64,
    /// The object of the trace.
    pub object: u32,
    /// The call.
    pub call: FileCall,
}

impl PlacedCall {
    /// Its line, without the end of one.
    pub fn line(&self) -> String {
        let (access, object) = (self.access, self.object);
        match self.call {
            FileCall::Sync => format!("{access},{object},fsync"),
            FileCall::Truncate { first, end: u64::MAX } => format!("{access},{object},truncate,{first}"),
            FileCall::Truncate { first, end } => format!("{access},{object},truncate,{first},{end}"),
            FileCall::Delete => format!("{access},{object},delete"),
            FileCall::Forget => format!("{access},{object},forget"),
            FileCall::Evict { first, end } => format!("{access},{object},evict,{first},{end}"),
            FileCall::Read { first, end } => format!("{access},{object},read,{first},{end}"),
            FileCall::Write { from, to } => format!("{access},{object},write,{from},{to}"),
        }
    }

    fn parse(line: &str) -> Result<PlacedCall, &'static str> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |text: &str| text.parse::<u64>().ok();
        let [access, object, call, range @ ..] = &fields[..] else {
            return Err("expected `access,object,call`");
        };
        let access = number(access).ok_or("the access is not a number from 0")?;
        let object = number(object).and_then(|object| u32::try_from(object).ok());
        let object = object.filter(|&object| object < Access::OBJECTS_MAX);
        let object = object.ok_or("the object is not a number of the trace, from 0")?;
        let call = match (*call, range) {
            ("fsync", []) => FileCall::Sync,
            ("delete", []) => FileCall::Delete,
            ("forget", []) => FileCall::Forget,
            ("truncate", [first]) => {
                FileCall::Truncate { first: number(first).ok_or("a page is a number")?, end: u64::MAX }
            }
            ("truncate" | "evict" | "read" | "write", [first, end]) => {
                let pages = number(first).zip(number(end)).filter(|(first, end)| first < end);
                let (first, end) = pages.ok_or("a range must be `first,end`, with first below end")?;
                match *call {
                    "evict" => FileCall::Evict { first, end },
                    "read" => FileCall::Read { first, end },
                    "write" => FileCall::Write { from: first, to: end },
                    _ => FileCall::Truncate { first, end },
                }
            }
            _ => {
                return Err(
                    "unknown call: expected `fsync`, `delete`, `forget`, `truncate,FIRST`, `truncate,FIRST,END`, `evict,FIRST,END`, `read,FIRST,END` or `write,BYTE,END`",
                );
            }
        };
        Ok(PlacedCall { access, object, call })
    }
}

/// Reads a list of calls. Errors: it can't be read, a line is none, or is before the one above it.
pub fn file_calls(path: &Path) -> Result<Vec<PlacedCall>, TraceError> {
    let name = path.to_string_lossy();
    let mut calls: Vec<PlacedCall> = Vec::new();
    for (at, line) in BufReader::new(open_file(path)?).lines().enumerate() {
        let place = Place { line: Some(at as u64 + 1), ..Place::default() };
        let line = line.map_err(|error| TraceError::io(&name, None, place, error))?;
        if (at == 0 && line.trim() == COLUMNS) || line.trim().is_empty() {
            continue;
        }
        let fail = |why: &str| TraceError::new(&name, None, place, format!("`{line}`: {why}"));
        let call = PlacedCall::parse(&line).map_err(fail)?;
        if calls.last().is_some_and(|last| last.access > call.access) {
            return Err(fail("its access number is lower than on the line above"));
        }
        calls.push(call);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_survives_its_line() {
        for call in [
            FileCall::Sync,
            FileCall::Delete,
            FileCall::Forget,
            FileCall::TRUNCATE_ALL,
            FileCall::Truncate { first: 4, end: 9 },
            FileCall::Evict { first: 4, end: 9 },
            FileCall::Read { first: 4, end: 9 },
            FileCall::Write { from: 4096, to: 9000 },
        ] {
            let placed = PlacedCall { access: 7, object: 3, call };
            assert_eq!(PlacedCall::parse(&placed.line()), Ok(placed));
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for line in [
            "",
            "1,2",
            "x,2,fsync",
            "1,x,fsync",
            "1,2,sync",
            "1,2,fsync,3",
            "1,2,truncate",
            "1,2,truncate,5,5",
            "1,2,evict,5",
            "1,8388608,delete",
        ] {
            assert!(PlacedCall::parse(line).is_err(), "{line}");
        }
    }
}
