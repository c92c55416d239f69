//! Formats of traces: their names, and how the format of a file is detected.
//!
//! Content decides if possible (`.pgt`, lcs and fio logs have a magic). Otherwise the file name does, and then whether the first line is a single
//! number. A `.zst` suffix has no effect, because compression is detected by its magic. Headerless binary formats can't be detected from content, and
//! a wrong guess would replay garbage. So if neither content nor name decides, or if they disagree, the answer is an error and not a guess.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::error::{Place, TraceError};
use super::formats::for_each_format;
use super::text;

/// A read option that not all formats have a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    IgnoreSize,
    PageIds,
    UnterminatedOk,
    ImplausibleOk,
    /// The table `csv`.
    Columns,
}

/// Attributes of a format, except its name.
struct Row {
    /// File name endings, in lower case, that stand for the format.
    suffixes: &'static [&'static str],
    /// The first bytes of each file of the format; empty where a file does not announce itself.
    magic: &'static [u8],
    /// True if it is lines of text.
    is_text: bool,
    /// True if the reader says by itself what an empty file lacks.
    has_header: bool,
    /// Options that the format has a use for.
    uses: &'static [Use],
}

/// A format without a name's ending, of bytes.
const BYTES: Row =
    Row { suffixes: &[], magic: &[], is_text: false, has_header: false, uses: &[Use::PageIds] };

/// Text of columns that are known. Files of published traces are called `.csv`, which stands for columns that a line names.
const COLUMNS: Row =
    Row { is_text: true, uses: &[Use::PageIds, Use::UnterminatedOk, Use::ImplausibleOk], ..BYTES };

/// The options of text with ids and sizes.
const IDS: &[Use] = &[Use::IgnoreSize, Use::PageIds, Use::UnterminatedOk, Use::ImplausibleOk];

/// Makes the names of the formats, and what is known of each.
macro_rules! names {
    (@list $name:literal $about:literal $($more:literal $more_about:literal)*) => {
        concat!("The trace's format: ", $name, " (", $about, ")", $(", ", $more, " (", $more_about, ")",)* "; each also as .zst.")
    };
    ($($format:ident = $name:literal, $about:literal, $row:expr, $open:expr;)*) => {
        /// A trace format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Format {
            $(#[doc = concat!("`", $name, "`: ", $about, ".")] $format,)*
        }

        impl Format {
            /// Every format, in the order in which errors list them.
            pub const ALL: &[Format] = &[$(Format::$format),*];

            /// The names of [`Format::ALL`].
            pub const NAMES: &[&str] = &[$($name),*];

            /// The sentence that lists all formats, for help and references.
            pub const LIST: &str = names!(@list $($name $about)*);

            /// The name by which an option forces the format.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Format::$format => $name,)*
                }
            }

            const fn row(self) -> Row {
                match self {
                    $(Format::$format => $row,)*
                }
            }
        }
    };
}

for_each_format!(names);

impl Format {
    /// The first bytes of each file of the format; empty where a file does not announce itself.
    pub(super) const fn magic(self) -> &'static [u8] {
        self.row().magic
    }

    /// Returns true if it is lines of text.
    pub(super) fn is_text(self) -> bool {
        self.row().is_text
    }

    /// Returns true if its reader says by itself what an empty file lacks.
    pub(super) fn has_header(self) -> bool {
        self.row().has_header
    }

    /// Returns true if the format has a use for a read option.
    pub(crate) fn uses(self, option: Use) -> bool {
        self.row().uses.contains(&option)
    }

    fn all() -> impl Iterator<Item = Format> {
        Format::ALL.iter().copied()
    }

    /// The format that a file's name stands for.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = plain_name(&path.to_string_lossy());
        Format::all().find(|format| format.row().suffixes.iter().any(|suffix| name.ends_with(suffix)))
    }

    /// Tells the format from the name and the first bytes, as they are after decompression; [`DETECTED_BYTES`](Self::DETECTED_BYTES)
    /// are plenty.
    pub fn detect(path: &Path, first: &[u8]) -> Result<Format, TraceError> {
        let announces = |magic: &[u8]| !magic.is_empty() && first.starts_with(magic);
        if let Some(format) = Format::all().find(|format| announces(format.magic())) {
            return Ok(format);
        }
        let fail = |reason| Err(TraceError::new(&path.to_string_lossy(), None, Place::default(), reason));
        match (Format::of_name(path), TextLine::first_of(first)) {
            (Some(named), Some(TextLine::Number)) if !named.is_text() => fail(format!(
                "its file name suffix means {named}, but its first lines are numbers as text: select the format by name, {} or {named} (--trace-format)",
                Format::PagesText
            )),
            (Some(named), _) => Ok(named),
            (None, Some(TextLine::Number)) => Ok(Format::PagesText),
            (None, _) if first.is_empty() => fail("found an empty file, expected accesses".to_string())
                .map_err(|error| error.help(TraceError::EMPTY)),
            (None, line) => fail(format!(
                "unknown trace format: found {}, expected one of {}\nhelp: to force a format, name it as the read option `format` (--trace-format){}",
                if line.is_some() { "text" } else { "binary data that starts like none of them" },
                known(),
                line.map(TextLine::hint).unwrap_or_default()
            )),
        }
    }

    /// First bytes used to detect a format.
    pub const DETECTED_BYTES: usize = 4096;

    /// Returns true if a file's name stands for words and nothing else, as `.u32` does not.
    pub(super) fn says_words(name: &str) -> bool {
        plain_name(name).ends_with(".words")
    }
}

/// Kind of a text's first line, not counting comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextLine {
    /// One number.
    Number,
    /// Fields, the first of which is a number.
    Numbers,
    /// Other fields.
    Words,
}

impl TextLine {
    /// Returns the kind of a text that begins with `bytes`; `None` if they are not text.
    fn first_of(bytes: &[u8]) -> Option<TextLine> {
        let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..);
        let text = Some(bytes).filter(|bytes| bytes.iter().all(is_text))?;
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let line =
            text.split(|&byte| byte == b'\n').map(text::without_comment).find(|line| !line.is_empty())?;
        if text::page_number(line).is_some() {
            return Some(TextLine::Number);
        }
        let first = line.split(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
        Some(if text::page_number(first).is_some() { TextLine::Numbers } else { TextLine::Words })
    }

    /// How a text that nothing announces can be read.
    fn hint(self) -> &'static str {
        match self {
            TextLine::Number => "",
            TextLine::Numbers => {
                "\nhelp: if it is text with columns and no header line: --trace-format csv --read csv.header=false, and select columns by position: one of csv.id, csv.page and csv.offset, and, if present, csv.size, csv.op, csv.time (a time is not a page)\nhelp: for lines of a first block and a number of blocks: --trace-format lis"
            }
            TextLine::Words => {
                "\nhelp: if it is text with a header line: --trace-format csv\nhelp: `pageout import` converts text of ftrace, `perf script`, blkparse, bpftrace and lackey to a trace, and `pageout vmscan-report` reads text of reclaim events"
            }
        }
    }
}

/// A file's name, in lower case, as it would be without compression.
pub(super) fn plain_name(name: &str) -> String {
    let name = name.to_lowercase();
    name.strip_suffix(".zst").map(str::to_string).unwrap_or(name)
}

fn known() -> String {
    Format::NAMES.join(", ")
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl<'de> serde::Deserialize<'de> for Format {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An unknown format name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The name that was given.
    pub given: String,
    /// The format whose name is most like it, if any is like it at all.
    pub nearest: Option<Format>,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown trace format `{}`", self.given)?;
        if let Some(nearest) = self.nearest {
            write!(f, ", did you mean `{nearest}`?")?;
        }
        write!(f, "; expected one of {}", known())
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    /// By name, in any case, `_` as good as `-`.
    fn from_str(given: &str) -> Result<Format, UnknownFormat> {
        let plain = |name: &str| name.to_lowercase().replace(['-', '_'], "");
        let wanted = plain(given);
        if let Some(format) = Format::all().find(|format| plain(format.name()) == wanted) {
            return Ok(format);
        }
        let likeness = |format: &Format| strsim::jaro_winkler(&plain(format.name()), &wanted);
        let nearest = Format::all()
            .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
            .filter(|format| likeness(format) > 0.7);
        Err(UnknownFormat { given: given.to_string(), nearest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::all() {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(format.name().to_uppercase().replace('-', "_").parse(), Ok(format));
        }
    }

    #[test]
    fn a_misspelt_format_is_suggested() {
        let error = "orcale-general".parse::<Format>().unwrap_err();
        assert_eq!(error.nearest, Some(Format::OracleGeneral));
        assert!(error.to_string().contains("did you mean `oracle-general`?"), "{error}");
        assert_eq!("zzzz".parse::<Format>().unwrap_err().nearest, None);
    }

    #[test]
    fn content_speaks_before_the_name() {
        let detect = |name: &str, first: &[u8]| Format::detect(Path::new(name), first);
        assert_eq!(detect("a.csv", b"fio version 2 iolog\n").unwrap(), Format::FioIolog);
        assert_eq!(detect("w92.oracleGeneral.zst", b"").unwrap(), Format::OracleGeneral);
        assert_eq!(detect("w92.oracleGeneral.bin", b"").unwrap(), Format::OracleGeneral);
        let error = detect("trace.bin", b"????").unwrap_err().to_string();
        assert!(error.contains("oracle-general") && error.contains("`format`"), "{error}");
    }
}
