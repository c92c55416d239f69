//! `[[task]]` and `[[task.object]]`: who accesses what, through which channel, in which order.
//!
//! ```text
//!   task ──┬── object 0   channel, size or file ──── workload or trace      each object has its own stream;
//!          ├── object 1                                                      the task takes the next access from
//!          └── object 2                                                      one of them, in proportion to `share`
//! ```
//!
//! The channel decides which part of the kernel sees the accesses: `file` is read(2) and write(2), which call
//! mark_accessed and never touch a page table; the other channels are faults and accessed bits that only a scan finds.

use std::path::PathBuf;

use pageout_workload::ReadOptions;
use serde::{Deserialize, Serialize};

use super::{Size, Table, TableError, TimeSpan};

/// One task, or `copies` of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The name the result speaks of.
    pub name: String,
    /// The cgroup it runs in.
    #[serde(default = "root")]
    pub memcg: String,
    /// The CPU it is bound to; without it tasks are dealt out in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// When it starts.
    #[serde(default)]
    pub start: TimeSpan,
    /// Time it computes between two accesses.
    #[serde(default)]
    pub think_time: TimeSpan,
    /// How many such tasks run, each a process with its own mappings, its own random numbers, and the same files.
    #[serde(default = "one")]
    pub copies: u32,
    /// How often it runs through its accesses; random ones differ from loop to loop.
    #[serde(default = "one")]
    pub loops: u32,
    /// Does not keep the run going: it ends when all other tasks have.
    #[serde(default, skip_serializing_if = "is_false")]
    pub background: bool,
    /// What it accesses.
    #[serde(default)]
    pub object: Vec<Object>,
}

impl Task {
    /// What results call one of its copies: `NAME`, or `NAME.COPY` where there are several.
    pub fn copy_name(&self, copy: u32) -> String {
        if self.copies == 1 { self.name.clone() } else { format!("{}.{copy}", self.name) }
    }
}

/// One mapping or open file of a task, and the accesses to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// How it is accessed.
    pub channel: Channel,
    /// The `[[file]]` behind it; not together with `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The size of an anonymous mapping, or of a file of the task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// What the task told the kernel about its accesses.
    #[serde(default)]
    pub advice: Advice,
    /// Locked into memory as far as it was touched (mlock2 with MLOCK_ONFAULT); for mappings.
    #[serde(default, skip_serializing_if = "is_false")]
    pub locked: bool,
    /// A mapping with execute permission, which reclaim treats with more care.
    #[serde(default, skip_serializing_if = "is_false")]
    pub executable: bool,
    /// Its part of the task's accesses, relative to the other objects.
    #[serde(default = "one")]
    pub share: u32,
    /// Accesses that would write are made as reads.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// The first access to each page writes; without it, as the channel has it ([`Object::writes_first`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_first: Option<bool>,
    /// Accesses made by a generator; not together with `trace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Table>,
    /// Accesses read from a recorded trace; relative paths start at the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// How the trace is to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Table>,
}

impl Object {
    /// Whether the first access to each page writes. Programs write their memory before they read it, and reading memory
    /// that was never written takes none: so it does, unless the object is a regular file.
    pub fn writes_first(&self) -> bool {
        self.write_first.unwrap_or(matches!(self.channel, Channel::Anonymous | Channel::Tmpfs))
    }

    /// How its trace is to be read.
    pub fn read_options(&self) -> Result<ReadOptions, TableError> {
        self.read.as_ref().map_or_else(|| Ok(ReadOptions::default()), Table::options)
    }
}

/// How an object is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// read(2) and write(2) of whole pages of a regular file.
    File,
    /// A shared mapping of a regular file.
    Mapped,
    /// A private anonymous mapping.
    Anonymous,
    /// read(2) and write(2) of a tmpfs file.
    Tmpfs,
}

impl Channel {
    /// As it is written in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Channel::File => "file",
            Channel::Mapped => "mapped",
            Channel::Anonymous => "anonymous",
            Channel::Tmpfs => "tmpfs",
        }
    }
}

/// What the kernel was told to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// No locality.
    Random,
    /// In order.
    Sequential,
    /// Each page once.
    NoReuse,
}

fn root() -> String {
    "/".to_string()
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
