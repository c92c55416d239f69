//! Files that tests make: what is in them says where it is from.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const PAGE: usize = 4096;

/// A file of a name of its own, which goes with this value.
pub(crate) struct Made(pub(crate) PathBuf);

impl Made {
    pub(crate) fn new(name: &str, bytes: usize) -> Made {
        let made = Made::empty(name);
        made.fill(bytes);
        made
    }

    /// One that is not there yet.
    pub(crate) fn empty(name: &str) -> Made {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{name}-{}-{number}", env!("CARGO_CRATE_NAME"), std::process::id());
        Made(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    /// Writes all of it.
    pub(crate) fn fill(&self, bytes: usize) {
        std::fs::write(&self.0, (0..bytes).map(byte).collect::<Vec<u8>>()).unwrap();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What a file has at a place: another thing on each page.
pub(crate) fn byte(at: usize) -> u8 {
    let page = (at / PAGE) as u64;
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * (at % 7))) as u8 ^ (at % 251) as u8
}

/// Bytes of a file from a place on.
#[track_caller]
pub(crate) fn check(bytes: &[u8], from: usize) {
    let wrong = bytes.iter().enumerate().find(|&(at, &is)| is != byte(from + at));
    assert_eq!(wrong, None, "a byte of page {}", from / PAGE);
}

/// Numbers that look like chance.
pub(crate) fn draws(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |sides| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    }
}
