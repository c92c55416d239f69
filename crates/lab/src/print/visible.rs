//! Names and paths as text without effect on a terminal: the author of a trace chose its names.

use std::borrow::Cow;

/// Returns true if a terminal obeys the character: control characters, and those that change the direction of writing.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` of several lines, with such characters as `\u{1b}`.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

/// A name or path, which has one line: its ends of lines are escaped, too.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

fn escaped(text: &str, is_one: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_one) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_one(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// JSON, in which only strings can have such characters, with them as `\u009b`.
pub(crate) fn json(text: String) -> String {
    let is_one = |c: char| is_obeyed(c) && c != '\n';
    if !text.contains(is_one) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_one(c) { shown += &format!("\\u{:04x}", u32::from(c)) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_that_a_terminal_obeys_is_escaped() {
        assert_eq!(lines("a\tb\nc"), "a\tb\nc");
        assert_eq!(lines("ev\u{1b}[31mil\u{7}\u{202e}"), "ev\\u{1b}[31mil\\u{7}\\u{202e}");
        assert_eq!(name("a\nb\r"), "a\\nb\\r");
        assert_eq!(json("{\"\u{9b}2J\"\n}".to_string()), "{\"\\u009b2J\"\n}");
    }
}
