//! Quantities as people write them: `"256MiB"`, `"4096 pages"`, `"100us"`, `"3.5GB/s"`, `"0.1%"`.
//!
//! Everything is exact: `"1.5GiB"` is computed in integers. A quantity that is not a multiple of its base unit is rejected rather than rounded
//! (`"0.3ns"`; `"0.5 pages"` of bytes is fine). `K`, `M`, `G`, `T` alone are binary, as the kernel's `memparse` reads them; `KB`, `MB`, `GB`, `TB`
//! are decimal, as device data sheets print them. Sizes also accept the rest of the `memparse` format: `k` to `e` in both cases, and hexadecimal.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::compressed::Deciles;

/// Bytes in a page; sizes become page counts by this.
pub const PAGE_SIZE: u64 = 4096;

const SIZE_UNITS: &[(&str, u64)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("pages", PAGE_SIZE),
    ("page", PAGE_SIZE),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("kB", 1_000),
];

/// Suffixes that the kernel's `memparse` accepts after a number. A bandwidth accepts none of them: `m` per second does not mean MiB per second.
const MEMPARSE_UNITS: &[(&str, u64)] = &[
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("P", 1 << 50),
    ("e", 1 << 60),
    ("E", 1 << 60),
];

const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The reason why a text is not a quantity; `Display` is a sentence, and a help with the allowed units and an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityError(String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuantityError {}

/// A size in bytes. Written as a number with a unit (`"256MiB"`, `"4096 pages"`) or a bare integer, which is bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(pub u64);

impl Size {
    /// A size of whole pages.
    pub const fn from_pages(pages: u64) -> Size {
        Size(pages * PAGE_SIZE)
    }

    /// Whole pages inside this size, rounded down as the kernel rounds limits.
    pub const fn pages_floor(self) -> u64 {
        self.0 / PAGE_SIZE
    }

    /// Pages needed to hold this size, rounded up as files and mappings are.
    pub const fn pages_ceil(self) -> u64 {
        self.0.div_ceil(PAGE_SIZE)
    }
}

impl std::str::FromStr for Size {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Size, QuantityError> {
        let units = [SIZE_UNITS, MEMPARSE_UNITS].concat();
        let size = match text.trim().strip_prefix("0x").or(text.trim().strip_prefix("0X")) {
            Some(digits) => parse_hex(digits, &units),
            None => parse(text, &units, Some(1)),
        };
        size.map(Size).map_err(|fault| {
            fault.describe(text, "a size", "a number with B, KiB, MiB, GiB, TiB or pages, such as \"256MiB\"")
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_largest_unit(f, self.0, &SIZE_UNITS[..5])
    }
}

/// A length or a point of simulated time in nanoseconds. Written with a unit, `"100us"` or `"2s"`; only 0 may go without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeSpan(pub u64);

impl std::str::FromStr for TimeSpan {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<TimeSpan, QuantityError> {
        parse(text, TIME_UNITS, None).map(TimeSpan).map_err(|fault| {
            fault.describe(text, "a duration", "a number with ns, us, ms, s, min or h, such as \"100us\"")
        })
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = [TIME_UNITS[6], TIME_UNITS[4], TIME_UNITS[3], TIME_UNITS[1], TIME_UNITS[0]];
        write_in_largest_unit(f, self.0, &shown)
    }
}

/// A bandwidth in bytes per second. Written as a size with `/s`: `"3.5GB/s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(pub u64);

impl std::str::FromStr for Bandwidth {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Bandwidth, QuantityError> {
        const FORM: &str = "a size with /s, such as \"3.5GB/s\"";
        let size = text.trim().strip_suffix("/s").ok_or(Fault::NoUnit);
        size.and_then(|size| parse(size, SIZE_UNITS, None))
            .map(Bandwidth)
            .map_err(|fault| fault.describe(text, "a bandwidth", FORM))
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = [SIZE_UNITS[11], SIZE_UNITS[12], SIZE_UNITS[13], SIZE_UNITS[14], SIZE_UNITS[4]];
        write_in_largest_unit(f, self.0, &decimal)?;
        f.write_str("/s")
    }
}

/// A share between 0 and 1. Written as a number (`0.001`) or in percent (`"0.1%"`).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(pub f64);

impl std::str::FromStr for Share {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Share, QuantityError> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(percent) => (percent.trim(), 100.0),
            None => (text.trim(), 1.0),
        };
        number
            .parse::<f64>()
            .map_err(|_| Fault::NoNumber)
            .and_then(|share| Share::checked(share / scale))
            .map_err(|fault| {
                fault.describe(text, "a share", "a number from 0 to 1 or a percentage, such as \"0.1%\"")
            })
    }
}

impl Share {
    fn checked(share: f64) -> Result<Share, Fault> {
        if (0.0..=1.0).contains(&share) { Ok(Share(share)) } else { Err(Fault::OutOfRange) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

/// What is wrong with a written quantity, before it is put into a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    NoNumber,
    NoUnit,
    UnknownUnit(String),
    NotWhole,
    OutOfRange,
}

impl Fault {
    fn describe(self, text: &str, noun: &str, form: &str) -> QuantityError {
        let reason = match self {
            Fault::NoNumber => "it does not start with a number".to_string(),
            Fault::NoUnit => "the unit is missing".to_string(),
            Fault::UnknownUnit(unit) => format!("unknown unit `{unit}`"),
            Fault::NotWhole => "it is not a multiple of its smallest unit".to_string(),
            Fault::OutOfRange => "it is out of range".to_string(),
        };
        QuantityError(format!("`{text}` is not {noun}: {reason}\nhelp: write {form}"))
    }
}

/// Reads `1.5GiB`: digits with an optional fraction, optional blanks, a unit. `bare` is the unit of a number without one.
fn parse(text: &str, units: &[(&str, u64)], bare: Option<u64>) -> Result<u64, Fault> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = (text[..unit_at].replace('_', ""), text[unit_at..].trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return Err(Fault::NoNumber);
    }
    // 18 digits of fraction would be finer than any unit divided by 2^64: more is a typing error.
    if fraction.len() > 18 {
        return Err(Fault::NotWhole);
    }
    let mantissa: u128 = format!("{whole}{fraction}").parse().map_err(|_| Fault::OutOfRange)?;
    let scale = 10u128.pow(fraction.len() as u32);
    let factor = if unit.is_empty() {
        if mantissa == 0 { 1 } else { bare.ok_or(Fault::NoUnit)? }
    } else {
        let known = units.iter().find(|(name, _)| *name == unit);
        known.ok_or_else(|| Fault::UnknownUnit(unit.to_string()))?.1
    };
    let product = mantissa.checked_mul(u128::from(factor)).ok_or(Fault::OutOfRange)?;
    if !product.is_multiple_of(scale) {
        return Err(Fault::NotWhole);
    }
    u64::try_from(product / scale).map_err(|_| Fault::OutOfRange)
}

/// Reads what stands behind `0x`. `e` is a digit there, as it is to the kernel.
fn parse_hex(text: &str, units: &[(&str, u64)]) -> Result<u64, Fault> {
    let unit_at = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, unit) = (&text[..unit_at], text[unit_at..].trim());
    if digits.is_empty() {
        return Err(Fault::NoNumber);
    }
    let factor = match unit {
        "" => 1,
        unit => units.iter().find(|(name, _)| *name == unit).ok_or(Fault::UnknownUnit(unit.to_string()))?.1,
    };
    let number = u64::from_str_radix(digits, 16).ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or(Fault::OutOfRange)
}

/// The largest of `units` (in falling order, the last one being 1) that divides `value` without a rest.
fn write_in_largest_unit(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let (name, factor) = units
        .iter()
        .find(|(_, factor)| value != 0 && value.is_multiple_of(*factor))
        .unwrap_or(&units[units.len() - 1]);
    f.pad(&format!("{}{name}", value / factor))
}

/// Serde for a quantity: `FromStr` and `Display`; a bare number is read as its decimal text, so one rule decides about units.
macro_rules! quantity_serde {
    ($type:ty, $expecting:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Reader;

                impl de::Visitor<'_> for Reader {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    }
                }

                deserializer.deserialize_any(Reader)
            }
        }
    };
}

quantity_serde!(Size, "a size such as \"256MiB\"");
quantity_serde!(TimeSpan, "a duration such as \"100us\"");
quantity_serde!(Bandwidth, "a bandwidth such as \"3.5GB/s\"");
quantity_serde!(Deciles, "eleven lengths such as \"97 410 655 860 1052 1290 1544 1797 2190 2702 4096\"");
quantity_serde!(Share, "a share from 0 to 1, or a percentage such as \"0.1%\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_exactly_in_every_unit() {
        for (text, bytes) in [
            ("256MiB", 256 << 20),
            ("1.5GiB", 3 << 29),
            ("4096 pages", 16 << 20),
            ("64M", 64 << 20),
            ("100MB", 100_000_000),
            ("1_000_000", 1_000_000),
            (" 4 KiB ", 4096),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_the_kernel_reads_them() {
        for (text, bytes) in [
            ("20m", 20 << 20),
            ("20g", 20 << 30),
            ("4k", 4096),
            ("1t", 1 << 40),
            ("1P", 1 << 50),
            ("15e", 15 << 60),
            ("0x1400000", 20 << 20),
            ("0X10k", 16 << 10),
            ("0xe", 14),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for (text, reason) in [
            ("16E", "out of range"),
            ("0x", "start with a number"),
            ("0x1y", "unit `y`"),
            ("0x1.5m", "unit `.5m`"),
        ] {
            assert!(text.parse::<Size>().unwrap_err().to_string().contains(reason), "{text}");
        }
        assert!("3m/s".parse::<Bandwidth>().is_err());
    }

    #[test]
    fn a_bad_quantity_names_itself_the_reason_and_an_example() {
        let fault = |text: &str| text.parse::<Size>().unwrap_err().to_string();
        assert_eq!(
            fault("12 MX"),
            "`12 MX` is not a size: unknown unit `MX`\nhelp: write a number with B, KiB, MiB, GiB, TiB or pages, such as \"256MiB\""
        );
        assert!(fault("lots").contains("does not start with a number"));
        assert!(fault("-1MiB").contains("does not start with a number"));
        assert!(fault("0.3B").contains("not a multiple"));
        assert!(fault("99999999999999999999TiB").contains("out of range"));
        assert!("5".parse::<TimeSpan>().unwrap_err().to_string().contains("the unit is missing"));
        assert!("3GB".parse::<Bandwidth>().unwrap_err().to_string().contains("the unit is missing"));
        assert!("130%".parse::<Share>().unwrap_err().to_string().contains("out of range"));
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for bytes in [0, 1, 4096, 1 << 20, 3 << 29, 12345] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
            assert_eq!(TimeSpan(bytes).to_string().parse(), Ok(TimeSpan(bytes)));
            assert_eq!(Bandwidth(bytes).to_string().parse(), Ok(Bandwidth(bytes)));
        }
        assert_eq!(Size(256 << 20).to_string(), "256MiB");
        assert_eq!(TimeSpan(1_500_000).to_string(), "1500us");
        assert_eq!(TimeSpan(7_200_000_000_000).to_string(), "2h");
        assert_eq!(Bandwidth(3_500_000_000).to_string(), "3500MB/s");
    }
}
