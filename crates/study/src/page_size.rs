//! The size of a real machine's pages, which its kernel's text does not tell.

use pageout_sim::scenario::Size;

use crate::error::{During, Error, ensure};

/// Returns the bytes of a page. Errors: `text` is not a page size of Linux.
pub(crate) fn parse(text: &str) -> Result<u64, Error> {
    let size: Size = text.trim().parse().during(|| format!("--page-size {text}"))?;
    ensure!(
        size.0.is_power_of_two() && (4096..=65536).contains(&size.0),
        "--page-size {text}: expected 4KiB, 16KiB or 64KiB"
    );
    Ok(size.0)
}
