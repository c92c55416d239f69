//! How this program is started, for what runs in processes of its own.

use std::ffi::OsString;
use std::sync::OnceLock;

/// How it is started, where it is not this process that is the program.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says how the program is started, for what runs in processes of its own.
pub fn set_program(words: Vec<OsString>) {
    let _ = PROGRAM.set(words);
}

/// How the program is started.
pub(crate) fn program() -> std::io::Result<Vec<OsString>> {
    match PROGRAM.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![std::env::current_exe()?.into()]),
    }
}
