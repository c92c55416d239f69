//! Readers of text that the Linux kernel prints about memory: from text to events, values and sums.
//!
//! | module | text | results |
//! |---|---|---|
//! | [`ftrace`] | `/sys/kernel/tracing/trace`, `trace-cmd report`, `perf script` | reclaim events in order of time |
//! | [`vmscan`] | those events | sums by task: calls, durations, pages scanned, freed, written |
//! | [`lru_gen`] | debugfs `lru_gen`, `lru_gen_full` | generations by cgroup and node, pages in use |
//! | [`counters`] | `/proc/vmstat`, `memory.stat`, `/proc/pressure/*` | counters and gauges that changed between two snapshots |
//!
//! No simulator and no engine is below this crate, and it opens no files: callers pass bytes, text or a reader.
#![forbid(unsafe_code)]

pub mod ftrace; // trace text to events
pub mod vmscan; // reclaim events to sums by task
pub mod lru_gen; // dumps of MGLRU
pub mod counters; // snapshots of vmstat, memory.stat, pressure

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
