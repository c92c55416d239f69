//! Events out of a raw page of the kernel's ring buffer, as `per_cpu/cpuN/trace_pipe_raw` gives it.
//!
//! ```text
//!   timestamp | commit: bytes of events, and flags in its highest bits | events ...
//!   event:  type_len, time_delta | array[0] or data ...
//!           1 to 28      so many words of data behind the head
//!           0            array[0] bytes, which count array[0] itself
//!           padding      array[0] bytes to skip; without time the page ends here
//!           time_extend  array[0] are the higher bits of a long time_delta
//!           time_stamp   array[0] and time_delta are the time itself, without its highest bits
//! ```
//! The numbers come from `header_page` and `header_event`. A page that contradicts itself ends with an error: nothing is guessed from it.

use crate::error::Error;
use crate::format::{EventHead, Field, Format};

/// Bits of `commit` that count bytes; those above are flags.
const COMMIT_BYTES: u64 = (1 << 27) - 1;
/// The flag of `commit` that says that events before this page were lost.
const MISSED: u64 = 1 << 31;

/// Layout of the pages of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLayout {
    timestamp: Field,
    commit: Field,
    /// Where events begin.
    data: usize,
    /// Bytes of a whole page.
    pub(crate) size: usize,
    head: EventHead,
}

/// Something that a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a> {
    /// When, by the buffer's clock.
    pub(crate) time_ns: u64,
    /// The fields.
    pub(crate) bytes: &'a [u8],
}

impl PageLayout {
    /// From the texts of `header_page` and `header_event`.
    pub(crate) fn parse(header_page: &str, header_event: &str) -> Result<PageLayout, Error> {
        let page = Format::parse("events/header_page", header_page)?;
        let data = page.need("events/header_page", "data")?;
        Ok(PageLayout {
            timestamp: page.need("events/header_page", "timestamp")?,
            commit: page.need("events/header_page", "commit")?,
            data: data.offset,
            size: data.offset + data.size,
            head: EventHead::parse(header_event)?,
        })
    }

    /// Returns true if the kernel says that it lost events before this page.
    pub(crate) fn has_missed(&self, page: &[u8]) -> bool {
        self.commit.of(page).is_some_and(|commit| commit & MISSED != 0)
    }

    /// Passes the events of a page to `take`, in their order. Errors: the page is invalid, from an invalid event on.
    pub(crate) fn events(&self, page: &[u8], mut take: impl FnMut(Raw<'_>)) -> Result<(), Error> {
        let bad =
            |what: &str, at: usize| Error::Form(format!("page of the ring buffer: {what} at byte {at}"));
        let short = || bad("truncated header", page.len());
        let mut time = self.timestamp.of(page).ok_or_else(short)?;
        let bytes =
            usize::try_from(self.commit.of(page).ok_or_else(short)? & COMMIT_BYTES).map_err(|_| short())?;
        let end = self.data + bytes;
        if end > page.len() {
            return Err(bad("the commit count is larger than the page", page.len()));
        }
        let head = &self.head;
        let mut at = self.data;
        while at < end {
            let word = |at: usize| {
                let bytes = page.get(at..at + 4).filter(|_| at + 4 <= end);
                let bytes = bytes.ok_or_else(|| bad("truncated event", at))?;
                Ok::<u32, Error>(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
            };
            let first = word(at)?;
            let (kind, delta) = if cfg!(target_endian = "big") {
                (first >> head.time_delta_bits, first & ((1 << head.time_delta_bits) - 1))
            } else {
                (first & ((1 << head.type_len_bits) - 1), first >> head.type_len_bits)
            };
            let (delta, shift) = (u64::from(delta), head.time_delta_bits);
            if kind == head.padding {
                if delta == 0 {
                    break;
                }
                time = time.wrapping_add(delta);
                at += 4 + word(at + 4)? as usize;
            } else if kind == head.time_extend {
                time = time.wrapping_add((u64::from(word(at + 4)?) << shift) + delta);
                at += 8;
            } else if kind == head.time_stamp {
                let low = (u64::from(word(at + 4)?) << shift) + delta;
                let low_bits = (1u64 << (shift + 32)) - 1;
                time = (time & !low_bits) | (low & low_bits);
                at += 8;
            } else if kind <= head.data_max {
                let (begin, length) = match kind {
                    0 => (at + 8, (word(at + 4)? as usize).checked_sub(4)),
                    words => (at + 4, Some(words as usize * 4)),
                };
                let length = length.ok_or_else(|| bad("event without a length", at))?;
                time = time.wrapping_add(delta);
                let next = begin.checked_add(length.next_multiple_of(4)).filter(|&next| next <= end);
                let next = next.ok_or_else(|| bad("truncated event", at))?;
                take(Raw { time_ns: time, bytes: &page[begin..begin + length] });
                at = next;
            } else {
                return Err(bad("event of a kind that is not in header_event", at));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::{HEADER_EVENT, HEADER_PAGE};

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER_PAGE, HEADER_EVENT).unwrap()
    }

    /// A page of these words that begins at time 1000.
    fn page(words: &[u32]) -> Vec<u8> {
        let mut page = 1000u64.to_ne_bytes().to_vec();
        page.extend((words.len() as u64 * 4).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page.resize(4096, 0);
        page
    }

    fn head(kind: u32, delta: u32) -> u32 {
        if cfg!(target_endian = "big") { kind << 27 | delta } else { delta << 5 | kind }
    }

    fn told(page: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let mut told = Vec::new();
        let read = layout().events(page, |raw| told.push((raw.time_ns, raw.bytes.to_vec())));
        read.map(|()| told).map_err(|error| error.to_string())
    }

    #[test]
    fn events_have_their_times_and_bytes() {
        let words = [
            head(1, 5),
            7, // a word of data
            head(30, 1),
            2, // time_extend: 1 + 2 << 27
            head(0, 3),
            8,
            9, // data of a length of its own: 8 - 4 bytes
            head(29, 4),
            8,
            0, // padding with time: skipped
            head(31, 6),
            1, // the time itself
            head(2, 1),
            1,
            2,
        ];
        let told = told(&page(&words)).unwrap();
        let extended = 1005 + 1 + (2u64 << 27) + 3;
        let times: Vec<u64> = told.iter().map(|event| event.0).collect();
        assert_eq!(times, [1005, extended, (1 << 27) + 6 + 1]);
        assert_eq!(told[1].1, 9u32.to_ne_bytes());
        assert_eq!(told[2].1.len(), 8);
    }

    #[test]
    fn a_page_ends_where_it_says_so() {
        assert_eq!(told(&page(&[])).unwrap(), []);
        let words = [head(1, 5), 7, head(29, 0), 4];
        assert_eq!(told(&page(&words)).unwrap().len(), 1);
    }

    #[test]
    fn a_damaged_page_is_an_error_and_never_a_panic() {
        assert!(told(&[0; 10]).unwrap_err().contains("header"));
        assert!(told(&page(&[head(20, 1), 7])).unwrap_err().contains("truncated event"));
        assert!(told(&page(&[head(0, 1), 2])).unwrap_err().contains("without a length"));
        assert!(told(&page(&[head(0, 1)])).unwrap_err().contains("truncated event"));
        let mut too_long = page(&[head(1, 5), 7]);
        too_long[8..16].copy_from_slice(&9000u64.to_ne_bytes());
        assert!(told(&too_long).unwrap_err().contains("larger than the page"));
        // Any bytes at all.
        let mut state = 1u32;
        for _ in 0..2000 {
            let words: Vec<u32> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 3
            })
            .take(100)
            .collect();
            let _ = told(&page(&words));
        }
    }

    #[test]
    fn losses_before_a_page_are_told() {
        let mut page = page(&[head(1, 5), 7]);
        assert!(!layout().has_missed(&page));
        page[8..16].copy_from_slice(&0xffff_ffff_c000_0008u64.to_ne_bytes());
        assert!(layout().has_missed(&page));
        assert_eq!(told(&page).unwrap().len(), 1);
    }
}
