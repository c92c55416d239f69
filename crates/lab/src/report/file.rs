//! The file of a page, HTML or SVG. It gets its name when it is complete, as all results do.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::Page;
use super::svg::svg;
use crate::failure::{Failure, Outcome, unwritten};
use crate::print::Output;
use crate::print::unfinished::Unfinished;

/// The charts of a page that can be written as SVG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    Curves,
    None,
}

/// Rejects names that may be mistakes before the run: the file is overwritten, and a trace or scenario must not be.
pub(crate) fn check_name(path: &Path, picture: Picture) -> anyhow::Result<()> {
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    let is_html = extension.is_some_and(|extension| extension == "html" || extension == "htm");
    if is_special(path) {
        return Ok(());
    }
    if is_svg(path) && picture == Picture::None {
        bail!(
            "--report: no charts to write: found `{}`, expected a name that ends in .html\nhelp: `pageout replay` with many sizes has charts for a .svg",
            path.display()
        );
    }
    let names = if picture == Picture::None { ".html" } else { ".html (report) or .svg (charts)" };
    ensure!(
        is_html || is_svg(path),
        "--report: unknown suffix: found `{}`, expected {names}\nhelp: for example --report report.html; --out writes the result in other forms",
        path.display()
    );
    let directory = directory(path);
    if !directory.is_dir() {
        let missing = std::io::Error::new(
            std::io::ErrorKind::NotFound,
            format!("--report {}: no such directory: `{}`", path.display(), directory.display()),
        );
        return Err(unwritten(missing));
    }
    // Test now whether a file can be created there, not after an hour of simulation.
    Unfinished::new_in(directory)
        .map_err(unwritten)
        .with_context(|| format!("--report {}", path.display()))?;
    Ok(())
}

impl Page {
    /// Writes the page, or its charts as SVG. An existing file is replaced.
    pub(crate) fn write(&self, path: &Path, output: &Output) -> Outcome {
        let text = if is_svg(path) { svg(self) } else { self.to_html() };
        let written = if is_special(path) {
            File::options().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()))
        } else {
            Unfinished::new_in(directory(path)).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.finish(path)
            })
        };
        let named = |error: std::io::Error| {
            std::io::Error::new(error.kind(), format!("--report {}: {error}", path.display()))
        };
        written.map_err(named).map_err(Failure::Output)?;
        let what = if is_svg(path) { "chart" } else { "report" };
        output.remark(&format!("{what} written to {}", path.display()));
        Ok(())
    }
}

fn is_svg(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
}

/// Returns true if a path is a device or a pipe, which cannot be replaced.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
