//! The ground truth's words: u32 little-endian, bit 31 write, bits 30..28 object, bits 27..0 page.
//!
//! A file called `.u32` may also be a plain list of page numbers. Below 2^28 both read the same. From there on one is garbage in the other format,
//! and no word shows which one it is. So if only the name suggests words, words with upper bits set are reported. Two cases are rejected, because no
//! recording has them and page numbers beyond 2^28 soon have both: an object whose predecessors are never accessed, and a page beyond half of the
//! range of a word.

use super::error::TraceError;
use super::format::Format;
use super::options::ReadOptions;
use super::record::{Record, RecordReader, Target};
use super::source::Source;

/// Upper pages of a word's range, where no recorded object reached: 512 GiB of 4 KiB pages.
const PAGES_PLAUSIBLE: u32 = 1 << 27;

pub(super) struct Words {
    source: Source,
    /// What was seen of them, while they may be page numbers.
    doubt: Option<Doubt>,
}

#[derive(Default)]
struct Doubt {
    /// A bit for each object accessed.
    objects: u8,
    /// A word had bits above the page.
    has_upper: bool,
    highest_page: u32,
}

impl Words {
    pub(super) fn new(source: Source, options: &ReadOptions) -> Words {
        let is_named = options.format == Some(Format::Words) || Format::says_words(source.file());
        Words { source, doubt: (!is_named).then(Doubt::default) }
    }
}

impl Doubt {
    /// Takes a word in; an error explains why it is not one.
    fn add(&mut self, word: u32) -> Result<(), String> {
        let (object, page) = (word >> 28 & 7, word & ((1 << 28) - 1));
        self.objects |= 1 << object;
        self.has_upper |= word >> 28 != 0;
        self.highest_page = self.highest_page.max(page);
        if self.has_upper && self.highest_page >= PAGES_PLAUSIBLE {
            return Err(format!(
                "some words have object or write bits, and one has page {}, as page numbers of at least 2^28 do; {}",
                self.highest_page,
                Doubt::ADVICE
            ));
        }
        Ok(())
    }

    /// Checks all of them; an error explains why they are not words.
    fn end(&self) -> Result<(), String> {
        let highest = self.objects.checked_ilog2().unwrap_or(0);
        if self.objects.count_ones() == highest + 1 {
            return Ok(());
        }
        let missing = self.objects.trailing_ones();
        Err(format!(
            "as words, they access object {highest} and never object {missing}, as page numbers of at least 2^28 do; {}",
            Doubt::ADVICE
        ))
    }

    const ADVICE: &str =
        "select the format by name: `pages-u32` if they are page numbers, `words` if they are not";
}

impl RecordReader for Words {
    fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let mut bytes = [0; 4];
        if !self.source.read_record(&mut bytes)? {
            let end = self.doubt.as_ref().map_or(Ok(()), Doubt::end);
            return end.map(|()| None).map_err(|reason| self.source.error(reason));
        }
        let word = u32::from_le_bytes(bytes);
        if let Some(doubt) = &mut self.doubt {
            doubt.add(word).map_err(|reason| self.source.error(reason))?;
        }
        self.source.count_records(1);
        Ok(Some(Record {
            object: (word >> 28) & 7,
            target: Target::Place((word & ((1 << 28) - 1)).into()),
            pages: 1,
            is_write: word >> 31 != 0,
            time: None,
            bytes: 0,
            removes: 0,
        }))
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn object_titles(&self) -> &'static [&'static str] {
        &["object"]
    }

    fn doubts(&self) -> Vec<String> {
        let told = "some numbers are 2^28 or larger, and are read as words: bit 31 is a write, bits 30 to 28 are the object";
        let has_upper = self.doubt.as_ref().is_some_and(|doubt| doubt.has_upper);
        if has_upper { vec![format!("{told}; {}", Doubt::ADVICE)] } else { Vec::new() }
    }

    fn is_ambiguous(&self) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| !doubt.has_upper)
    }
}
