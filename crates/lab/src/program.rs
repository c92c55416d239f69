//! Starts this program again, for runs in separate processes.

use std::ffi::OsString;

/// The command that starts this program: by default, the executable of this process.
#[derive(Debug, Clone, Default)]
pub struct Program(Option<Vec<OsString>>);

impl Program {
    /// A program that these words start. For a process that runs another executable, such as Python.
    pub fn started_by(words: Vec<OsString>) -> Program {
        Program(Some(words))
    }

    pub(crate) fn words(&self) -> std::io::Result<Vec<OsString>> {
        match &self.0 {
            Some(words) => Ok(words.clone()),
            None => Ok(vec![std::env::current_exe()?.into()]),
        }
    }
}
