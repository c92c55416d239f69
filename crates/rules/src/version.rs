//! Versions of the kernel, as text and in order.

use std::fmt;

/// A version of Linux: `6.12.117`. A series alone (`6.12`) is its newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    series: Series,
    patch: u16,
}

/// A series of releases: 6.12, or 2.6.35.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Series {
    major: u8,
    /// The second number, or the third of a 2.6 version: 35 in 2.6.35.
    minor: u8,
}

/// The patch of a series' newest version, whichever that is.
const NEWEST: u16 = u16::MAX;

/// The last series of each major number, from the first that is known here. Each begins with 0, except 2.6.
const MAJORS: &[(u8, u8, u8)] = &[(2, 35, 39), (3, 0, 19), (4, 0, 20), (5, 0, 19), (6, 0, 19), (7, 0, 3)];

impl Series {
    /// All series that are known here, in order.
    pub fn all() -> impl Iterator<Item = Series> {
        let of =
            |&(major, first, last): &(u8, u8, u8)| (first..=last).map(move |minor| Series { major, minor });
        MAJORS.iter().flat_map(of)
    }

    /// Returns whether the series is known here.
    pub fn is_known(self) -> bool {
        Series::all().any(|series| series == self)
    }
}

impl Version {
    /// The first version that is known here.
    pub const FIRST: Version = Version::parse_const("2.6.35.0");
    /// The newest version that is known here.
    pub const LAST: Version = Version { series: Series { major: 7, minor: 3 }, patch: NEWEST };
    /// Before all versions.
    pub(crate) const BEFORE_ALL: Version = Version { series: Series { major: 0, minor: 0 }, patch: 0 };
    /// After all versions.
    pub(crate) const AFTER_ALL: Version =
        Version { series: Series { major: u8::MAX, minor: 0 }, patch: NEWEST };

    /// The known versions, in words.
    pub const KNOWN: &str = "known are 2.6.35 to 7.3, as 6.12.117, or as 6.12 for the newest of a series";

    /// The newest version of a series.
    pub fn newest(series: Series) -> Version {
        Version { series, patch: NEWEST }
    }

    /// The version's series.
    pub fn series(self) -> Series {
        self.series
    }

    /// Returns whether it stands for the newest of its series.
    pub fn is_newest(self) -> bool {
        self.patch == NEWEST
    }

    /// The version as the begin of a span: a series stands for its first version.
    pub(crate) fn shown_as_begin(self) -> String {
        if self.patch == 0 { self.series.to_string() } else { self.to_string() }
    }

    /// Returns true if no version lies between this one and the next.
    pub(crate) fn is_right_before(self, next: Version) -> bool {
        match self.is_newest() {
            true => {
                let series = Series::all().find(|series| *series > self.series);
                series == Some(next.series) && next.patch == 0
            }
            false => next.series == self.series && next.patch == self.patch + 1,
        }
    }

    /// Returns true if the version is of the series that brought MGLRU.
    pub(crate) fn begins_with_generations(self) -> bool {
        self.series == crate::era::GENERATIONS_SINCE.series
    }

    /// Parses a version as users write it: `6.12.117`, or `6.12` for the newest of a series. `None`: the text is not a known version.
    pub fn parse(text: &str) -> Option<Version> {
        let numbers: Vec<&str> = text.split('.').collect();
        let is_number = |part: &&str| {
            let has_no_zero_before = part.len() == 1 || !part.starts_with('0');
            (1..=4).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && has_no_zero_before
        };
        let parts = if numbers[0] == "2" { 3..=4 } else { 2..=3 };
        if !numbers.iter().all(is_number) || !parts.clone().contains(&numbers.len()) {
            return None;
        }
        if numbers.iter().take(*parts.start()).any(|part| part.len() > 2)
            || numbers[0] == "2" && numbers[1] != "6"
        {
            return None;
        }
        let version = Version::parse_const(text);
        version.series.is_known().then_some(version)
    }

    /// A version of the tables: a series is its newest.
    pub(crate) const fn parse_const(text: &str) -> Version {
        let mut numbers = [0_u16; 4];
        let (bytes, mut at, mut count) = (text.as_bytes(), 0, 0);
        while at < bytes.len() {
            if bytes[at] == b'.' {
                count += 1;
            } else {
                assert!(bytes[at].is_ascii_digit(), "a version is numbers with points between");
                numbers[count] = numbers[count] * 10 + (bytes[at] - b'0') as u16;
            }
            at += 1;
        }
        let is_old = numbers[0] == 2;
        let (minor, patch, parts) =
            if is_old { (numbers[2], numbers[3], 3) } else { (numbers[1], numbers[2], 2) };
        assert!(count >= parts - 1, "a version has a series");
        let series = Series { major: numbers[0] as u8, minor: minor as u8 };
        Version { series, patch: if count == parts - 1 { NEWEST } else { patch } }
    }

    /// The first version of the series, where the text names no patch.
    pub(crate) const fn parse_begin(text: &str) -> Version {
        let Version { series, patch } = Version::parse_const(text);
        Version { series, patch: if patch == NEWEST { 0 } else { patch } }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.major {
            2 => write!(f, "2.6.{}", self.minor),
            major => write!(f, "{major}.{}", self.minor),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            NEWEST => write!(f, "{}", self.series),
            patch => write!(f, "{}.{patch}", self.series),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_alone_is_its_newest_version() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("6.12.117") < version("6.12") && version("6.12") < version("6.13.0"));
        assert!(version("2.6.35") < version("3.0") && version("4.20") < version("5.0.0"));
        for text in ["6.12", "6.12.0", "6.12.117", "2.6.35", "2.6.35.3", "7.3.4"] {
            assert_eq!(version(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_version_known_here_is_none() {
        for text in [
            "", "6", "6.", ".6", "6.21", "8.0", "7.4", "2.6", "2.6.34", "6.1.2.3", "6.-1", "6.012", "6.1x",
            "6.99999", "600.1",
        ] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
