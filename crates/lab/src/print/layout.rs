//! The layout of texts: the form of tables, and the width of lines.

use super::form::Form;
pub(crate) use pageout_study::figures::wrap;

/// Characters a line of words has at most: longer ones are hard to read.
const LINE: usize = 100;

/// Characters a line of words has at least, however narrow the terminal says it is.
const LINE_MIN: usize = 40;

/// The form and the width of a text. The default is plain tables of any width.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    pub(crate) form: Form,
    /// Columns of the terminal; none if lines may have any length.
    pub(crate) columns: Option<usize>,
}

impl Layout {
    /// Characters a line of words may have: as many as the terminal has columns, at most 100.
    pub(crate) fn width(self) -> usize {
        self.columns.map_or(LINE, |columns| columns.clamp(LINE_MIN, LINE))
    }

    /// `text` in lines of words, each behind `indent`.
    pub(crate) fn wrap(self, text: &str, indent: &str) -> String {
        wrap(text, self.width(), indent)
    }

    /// The first line of each failure under a heading; nothing where there are none.
    pub(crate) fn failed(self, failures: impl Iterator<Item = String>) -> String {
        let lines: String =
            failures.map(|failure| self.wrap(failure.lines().next().unwrap_or_default(), "  ")).collect();
        if lines.is_empty() { lines } else { format!("\nFailed\n{lines}") }
    }

    /// `text` with its lines broken at blanks where they are longer than the terminal is wide.
    pub(super) fn fitted(self, text: &str) -> String {
        self.columns.map_or(text.to_string(), |columns| fitted(text, columns.max(LINE_MIN)))
    }
}

/// `text` with its lines broken at blanks where they are longer than `width`.
fn fitted(text: &str, width: usize) -> String {
    let lines = text.lines().map(|line| match line.chars().count() > width {
        true => {
            let indent: String = line.chars().take_while(|c| *c == ' ').take(width / 2).collect();
            wrap(line, width, &indent)
        }
        false => format!("{line}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_goes_on_below_as_far_to_the_right() {
        let text = "short\n\n  pgscan  1,000    pgsteal  900 and some more words\n";
        let fitted = fitted(text, 40);
        assert_eq!(fitted, "short\n\n  pgscan 1,000 pgsteal 900 and some more\n  words\n");
        assert_eq!(super::fitted(text, 80), text);
    }
}
