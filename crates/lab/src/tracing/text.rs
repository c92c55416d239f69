//! Fast formatting of trace lines from words and numbers.
//!
//! A line of a trace has a dozen numbers. `core::fmt` would need more time per line than the simulation of its event.
//! Here a number is a few copied digits, mostly one or two from a table. The common start of consecutive lines is formatted once. Rare parts
//! use `core::fmt`.

/// Something that a line has.
pub(super) trait Part {
    fn put(self, out: &mut Vec<u8>);
}

/// Adds to a line: what stands before each part, and the part.
macro_rules! text {
    ($out:expr, $($before:literal => $part:expr),* $(; $last:literal)?) => {{
        $(
            $out.extend_from_slice($before.as_bytes());
            $crate::tracing::text::Part::put($part, $out);
        )*
        $($out.extend_from_slice($last.as_bytes());)?
    }};
}
pub(super) use text;

impl Part for &str {
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

/// The numbers up to 99, with two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Part for $number {
            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                match self {
                    0..10 => out.push(b'0' + self as u8),
                    10..100 => out.extend_from_slice(&PAIRS[self as usize]),
                    _ => out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes()),
                }
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 usize i64 }

/// The common part of consecutive lines.
pub(super) struct Lasting<K> {
    of: Option<K>,
    words: Vec<u8>,
}

impl<K> Default for Lasting<K> {
    fn default() -> Lasting<K> {
        Lasting { of: None, words: Vec::new() }
    }
}

impl<K: PartialEq> Lasting<K> {
    /// Adds the words for `of`. `tell` puts them together when it has changed.
    #[inline]
    pub(super) fn put(&mut self, of: K, out: &mut Vec<u8>, tell: impl FnOnce(&mut Vec<u8>)) {
        if self.of.as_ref() != Some(&of) {
            self.words.clear();
            tell(&mut self.words);
            self.of = Some(of);
        }
        out.extend_from_slice(&self.words);
    }
}

/// A part at the right of so many columns, or the whole of it where it is wider.
pub(super) struct Right<T>(pub(super) T, pub(super) usize);
/// A part at their left.
pub(super) struct Left<T>(pub(super) T, pub(super) usize);
/// A number of at least so many digits.
pub(super) struct Zeros(pub(super) u64, pub(super) usize);
/// A number of at least so many hexadecimal digits.
pub(super) struct Hex(pub(super) u64, pub(super) usize);

impl Part for Right<&String> {
    fn put(self, out: &mut Vec<u8>) {
        fill(out, b' ', self.1, self.0.chars().count());
        self.0.as_str().put(out);
    }
}

impl Part for Right<u64> {
    fn put(self, out: &mut Vec<u8>) {
        digits(out, b' ', self.1, self.0);
    }
}

impl Part for Left<u32> {
    fn put(self, out: &mut Vec<u8>) {
        let begin = out.len();
        self.0.put(out);
        let wide = out.len() - begin;
        fill(out, b' ', self.1, wide);
    }
}

impl Part for Zeros {
    fn put(self, out: &mut Vec<u8>) {
        digits(out, b'0', self.1, self.0);
    }
}

impl Part for Hex {
    fn put(self, out: &mut Vec<u8>) {
        let wide = (u64::BITS - self.0.leading_zeros()).div_ceil(4) as usize;
        for place in (0..wide.max(self.1)).rev() {
            let digit = self.0.checked_shr(4 * place as u32).unwrap_or(0) & 15;
            out.push(b"0123456789abcdef"[digit as usize]);
        }
    }
}

fn digits(out: &mut Vec<u8>, filler: u8, columns: usize, number: u64) {
    let mut buffer = itoa::Buffer::new();
    let number = buffer.format(number).as_bytes();
    fill(out, filler, columns, number.len());
    out.extend_from_slice(number);
}

fn fill(out: &mut Vec<u8>, filler: u8, columns: usize, wide: usize) {
    out.resize(out.len() + columns.saturating_sub(wide), filler);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_those_that_formatting_gives(number: u64, small in 0u64..1_000) {
            for number in [number, small] {
                let mut out = Vec::new();
                text!(&mut out, "" => number, " " => number as u8, " " => number as i64, " " => -(small as i64));
                let expected = format!("{number} {} {} {}", number as u8, number as i64, -(small as i64));
                prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }

        #[test]
        fn lines_are_those_that_formatting_gives(number: u64, small in 0u64..100_000, pid: u32, comm in "\\PC{0,18}") {
            let mut out = Vec::new();
            text!(
                &mut out, "" => Right(&comm, 16), "-" => Left(pid, 7), " [" => Zeros(small, 3), "] " => Right(small, 5),
                "." => Zeros(number, 9), ": " => Hex(number, 16), " pfn=0x" => Hex(small, 1), " nid=" => pid as u8,
                " think=" => number as i64; " end"
            );
            let expected = format!(
                "{comm:>16}-{pid:<7} [{small:03}] {small:>5}.{number:09}: {number:016x} pfn={small:#x} nid={} think={} end",
                pid as u8, number as i64
            );
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
