//! The fields of a line of an `lru_gen` dump, each with its place.

use std::ops::Range;

use super::ParseError;

/// What lies between blanks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) text: &'a str,
    start: usize,
}

impl Field<'_> {
    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    fn fault(&self, message: String, expected: &str) -> ParseError {
        ParseError { message, span: self.span(), help: vec![format!("expected: {expected}")] }
    }

    /// The number that this is; `expected` says which.
    pub(super) fn number(&self, expected: &str) -> Result<u64, ParseError> {
        if let Some(rest) = self.text.strip_prefix('-')
            && is_number(rest)
        {
            return Err(self.fault(format!("{} is negative", self.text), expected));
        }
        if !is_number(self.text) {
            return Err(self.fault(format!("`{}` is not a number", self.text), expected));
        }
        let number = self.text.parse();
        number.map_err(|_| self.fault(format!("{} is larger than any counter", self.text), expected))
    }

    /// As [`Field::number`], of what the kernel keeps in 32 bits.
    pub(super) fn number_u32(&self, expected: &str) -> Result<u32, ParseError> {
        let too_large = |_| self.fault(format!("{} is too large", self.text), expected);
        self.number(expected)?.try_into().map_err(too_large)
    }

    /// A number with a letter of `marks` at its end, or without one if it `may_lack` it.
    pub(super) fn marked(&self, marks: &str, may_lack: bool, expected: &str) -> Result<u64, ParseError> {
        let digits = self.text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let mark = &self.text[digits.len()..];
        let counter = if digits.is_empty() { *self } else { Field { text: digits, start: self.start } };
        let number = counter.number(expected)?;
        let is_known = if mark.is_empty() { may_lack } else { mark.len() == 1 && marks.contains(mark) };
        if is_known {
            return Ok(number);
        }
        let known: Vec<String> = marks.chars().map(|mark| format!("`{mark}`")).collect();
        let message = match mark {
            "" => format!("{} has no flag letter after it", self.text),
            _ => format!("unknown flag letter `{mark}` after {digits}"),
        };
        let marks = if known.is_empty() { "none".to_string() } else { known.join(" or ") };
        Err(self.fault(message, &format!("{expected}; flag letters of this column: {marks}")))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A line that is not blank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl<'a> Line<'a> {
    pub(super) fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let (text, start) = (self.text, self.start);
        text.split_ascii_whitespace().map(move |field| Field {
            text: field,
            start: start + (field.as_ptr() as usize - text.as_ptr() as usize),
        })
    }

    /// The first field, without which the line would be blank.
    pub(super) fn first(&self) -> &'a str {
        self.text.split_ascii_whitespace().next().unwrap_or_default()
    }

    /// Returns true if it is a row of figures, by its first character.
    pub(super) fn is_row(&self) -> bool {
        self.first().starts_with(|c: char| c.is_ascii_digit() || c == '-')
    }

    /// Exactly `N` fields; `what` and `columns` say of what.
    pub(super) fn exactly<const N: usize>(
        &self,
        what: &str,
        columns: &str,
    ) -> Result<[Field<'a>; N], ParseError> {
        let fields: Vec<Field<'a>> = self.fields().collect();
        let count = fields.len();
        let hint = if count < N {
            "was the dump truncated here?"
        } else {
            "the supported forms are those of Linux 6.1 to 6.16; is the dump from another version?"
        };
        fields.try_into().map_err(|fields: Vec<Field<'a>>| ParseError {
            message: format!("{what} has {N} columns, this one has {count}"),
            // The first that is too many, or the whole of what is too short.
            span: fields.get(N).map_or(self.span(), Field::span),
            help: vec![format!("expected: {columns}"), hint.to_string()],
        })
    }

    /// The line without the blanks around it.
    pub(super) fn span(&self) -> Range<usize> {
        let indent = self.text.len() - self.text.trim_start().len();
        self.start + indent..self.start + self.text.trim_end().len().max(indent)
    }
}
