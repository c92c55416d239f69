//! Third-party caches that `pageout bench` measures next to this one: a program brings them along ([`crate::bench_with`]), so that no normal
//! build compiles them.

use std::sync::OnceLock;

pub use pageout_study::live_bench::baselines::{Baseline, Open};

static BROUGHT: OnceLock<Vec<(&'static str, Open)>> = OnceLock::new();

/// Makes caches known by their names.
pub(crate) fn bring(caches: &[(&'static str, Open)]) {
    let _ = BROUGHT.set(caches.to_vec());
}

/// All of them, by their names.
#[cfg(target_os = "linux")]
pub(crate) fn all() -> &'static [(&'static str, Open)] {
    BROUGHT.get().map_or(&[], Vec::as_slice)
}
