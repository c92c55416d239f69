//! Why there is no result, or another one than was expected.

use std::io;

/// The reason why there is no result, or not the expected one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A recording, a scenario or a question makes no sense, or a simulation failed.
    #[error(transparent)]
    Study(#[from] pageout_study::Error),
    /// Files for checking a prediction can't be written.
    #[error("{0}")]
    Write(io::Error),
    /// The result is not what the real kernel did, or not what the caller expected of it.
    #[error("{0}")]
    Unexpected(String),
}

impl Error {
    /// What was asked for makes no sense.
    pub(crate) fn asked(why: impl Into<String>) -> Error {
        Error::Study(pageout_study::Error::Asked(why.into()))
    }
}

impl From<anyhow::Error> for Error {
    /// All errors with context are errors of reading a recording: their causes are printed once each.
    fn from(error: anyhow::Error) -> Error {
        Error::asked(pageout_study::told(error.as_ref()))
    }
}
