//! Progress on standard error: a bar for what has a known end, nothing at all where nobody would see it.

use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::OutputOptions;

/// Whether anybody would see a bar.
pub(crate) fn is_seen(options: &OutputOptions) -> bool {
    !options.quiet && std::io::stderr().is_terminal()
}

/// A bar of `length` steps, named by `what`; without a length it counts.
pub(crate) fn bar(options: &OutputOptions, length: Option<u64>, what: &str) -> ProgressBar {
    if !is_seen(options) {
        return ProgressBar::hidden();
    }
    let bar = match length {
        Some(length) => ProgressBar::new(length),
        None => ProgressBar::no_length(),
    };
    let form = match length {
        Some(_) => "{msg} [{bar:30}] {human_pos}/{human_len}  {elapsed}, {eta} left",
        None => "{msg} {spinner} {human_pos}  {elapsed}",
    };
    bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
    bar.set_style(
        ProgressStyle::with_template(form).expect("the template is a constant").progress_chars("=> "),
    );
    bar.set_message(what.to_string());
    bar
}

/// The file's name without its directory, for progress.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
