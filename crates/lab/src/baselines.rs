//! Third-party caches that `pageout bench` measures next to this one: a program brings them along ([`crate::bench_with`]), so that no normal
//! build compiles them.

pub use pageout_study::live_bench::baselines::{Baseline, Open};
