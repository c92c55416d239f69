//! Errors of a pattern: which pattern, which key, and why. Also the checks that several patterns share.

use std::fmt;

use crate::Access;

/// A parameter that no stream can be made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The pattern at fault: its kind, and within wrappers the path to it (`mix.parts[1].zipf`).
    pub pattern: String,
    /// The offending key, as a scenario file spells it.
    pub key: &'static str,
    /// The required value of the key, and the found one.
    pub reason: String,
}

impl PatternError {
    /// Creates an error about one key of a pattern.
    pub fn new(pattern: &str, key: &'static str, reason: impl Into<String>) -> PatternError {
        PatternError { pattern: pattern.to_string(), key, reason: reason.into() }
    }

    /// This error as the wrapper around the pattern tells it.
    pub(crate) fn within(mut self, outer: &str) -> PatternError {
        self.pattern = format!("{outer}.{}", self.pattern);
        self
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}` {}", self.pattern, self.key, self.reason)
    }
}

impl std::error::Error for PatternError {}

/// `pages` has to be at least 1 and, from `offset` on, fit an access.
pub(super) fn check_pages(
    pattern: &str,
    key: &'static str,
    offset: u64,
    pages: u64,
) -> Result<(), PatternError> {
    if pages == 0 {
        return Err(PatternError::new(pattern, key, "must be at least 1, got 0"));
    }
    match offset.checked_add(pages) {
        Some(end) if end <= Access::PAGES_MAX => Ok(()),
        _ => {
            let reason = format!(
                "pages reach beyond the largest page number, 2^40 - 1 (from page {offset}, {pages} pages)"
            );
            Err(PatternError::new(pattern, key, reason))
        }
    }
}

/// A fraction has to be a number in `0..=1`.
pub(super) fn check_ratio(pattern: &str, key: &'static str, ratio: f64) -> Result<(), PatternError> {
    if (0.0..=1.0).contains(&ratio) {
        return Ok(());
    }
    Err(PatternError::new(pattern, key, format!("must be in 0..=1, got {ratio}")))
}

/// A Zipf exponent has to be finite and not negative; above 100 every access would be of one page.
pub(super) fn check_alpha(pattern: &str, alpha: f64) -> Result<(), PatternError> {
    if (0.0..=100.0).contains(&alpha) {
        return Ok(());
    }
    Err(PatternError::new(pattern, "alpha", format!("must be a number in 0..=100, got {alpha}")))
}

/// An object number has to fit an access.
pub(super) fn check_object(pattern: &str, object: u32) -> Result<(), PatternError> {
    if object < Access::OBJECTS_MAX {
        return Ok(());
    }
    Err(PatternError::new(pattern, "object", format!("must be below 2^23, got {object}")))
}
