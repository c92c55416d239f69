//! A message about a place in a scenario file: what is wrong, where, and what would be right.
//!
//! ```text
//! error: unknown key `memory.mxa`
//!   --> web.toml:12:1
//!    |
//! 12 | memory.mxa = "256MiB"
//!    | ^^^^^^^^^^
//!    = help: did you mean `memory.max`?
//! ```

use std::fmt;
use std::ops::Range;

/// One message with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// The problem, with key and value.
    pub message: String,
    /// The origin.
    pub origin: Origin,
    /// The help, one hint per line.
    pub help: Vec<String>,
}

/// The origin of a wrong text.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// A place in a file.
    File(Excerpt),
    /// An option of the command line, as it was given.
    Option(String),
    /// The file as a whole.
    Whole(String),
}

/// A line of a file with the part that is meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Excerpt {
    file: String,
    line: usize,
    column: usize,
    /// The line, or of a very long one what is around the part.
    text: String,
    /// Characters of `text` before the part.
    before: usize,
    width: usize,
}

/// Characters of a line that are shown.
const SHOWN: usize = 160;

impl Excerpt {
    /// The line in which `span` begins. Columns and widths are counted in characters.
    pub fn new(file: &str, source: &str, span: Range<usize>) -> Excerpt {
        let start = floor_char(source, span.start.min(source.len()));
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let end = floor_char(source, span.end.clamp(start, line_end));
        let line = source[line_start..line_end].trim_end();
        let before = source[line_start..start].chars().count();
        let is_long = line.chars().count() > SHOWN;
        let skipped = if is_long { before.saturating_sub(SHOWN / 4) } else { 0 };
        let mut text: String = line.chars().skip(skipped).take(SHOWN).collect();
        if is_long && line.chars().count() > skipped + SHOWN {
            text += "...";
        }
        let shown = text.chars().count();
        Excerpt {
            file: file.to_string(),
            line: source[..start].matches('\n').count() + 1,
            column: before + 1,
            text,
            before: before - skipped,
            width: source[start..end]
                .chars()
                .count()
                .clamp(1, (shown + skipped).saturating_sub(before).max(1)),
        }
    }
}

fn floor_char(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A message of another crate may contain its help.
        let mut parts = self.message.split("\nhelp: ");
        f.write_str(parts.next().unwrap_or_default())?;
        let margin = match &self.origin {
            Origin::File(excerpt) => {
                let margin = excerpt.line.to_string().len();
                let (bar, line) = (" ".repeat(margin), excerpt.line);
                let before: String = excerpt.text.chars().take(excerpt.before).map(blank).collect();
                write!(f, "\n{bar}--> {}:{line}:{}", excerpt.file, excerpt.column)?;
                write!(
                    f,
                    "\n{bar} |\n{line} | {}\n{bar} | {before}{}",
                    excerpt.text,
                    "^".repeat(excerpt.width)
                )?;
                margin
            }
            Origin::Option(option) => {
                write!(f, "\n --> {option}")?;
                1
            }
            Origin::Whole(file) => {
                write!(f, "\n --> {file}")?;
                1
            }
        };
        for help in parts.chain(self.help.iter().map(String::as_str)) {
            write!(f, "\n{} = help: {help}", " ".repeat(margin))?;
        }
        Ok(())
    }
}

/// A tab stays a tab, so that the marker is below the marked text.
fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

/// All that is wrong with a scenario, found in one go.
#[derive(Debug)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\nerror: ")?;
            }
            diagnostic.fmt(f)?;
        }
        if self.0.len() > 1 {
            write!(f, "\n\n{} problems; no run was started", self.0.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_stands_below_the_text_it_means() {
        let source = "seed = 1\n[machine]\n\tcpus = 0 # é\n";
        let at = source.find('0').unwrap();
        let diagnostic = Diagnostic {
            message: "0 is too small".into(),
            origin: Origin::File(Excerpt::new("a.toml", source, at..at + 1)),
            help: vec!["allowed: from 1".into()],
        };
        let expected = "0 is too small\n --> a.toml:3:9\n  |\n3 | \tcpus = 0 # é\n  | \t       ^\n  = help: allowed: from 1";
        assert_eq!(diagnostic.to_string(), expected);
    }

    #[test]
    fn a_span_outside_the_text_is_its_end() {
        let excerpt = Excerpt::new("a", "x = 1", 90..95);
        assert_eq!((excerpt.line, excerpt.column), (1, 6));
    }
}
