//! Numbers of `damo`: plain, or as text with commas ("94,827,419,009,024") and units ("143.027 MiB", "5 ms", "30 %").

use serde_json::Value;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// Without a unit.
    Plain,
    /// Bytes.
    Bytes,
    /// Microseconds, as DAMON's intervals.
    Micros,
    /// Nanoseconds, as times of snapshots.
    Nanos,
    /// Hundredths.
    Percent,
}

impl Unit {
    /// What is expected, in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Unit::Plain => "a number",
            Unit::Bytes => "an address or a size, such as 4096 or \"143.027 MiB\"",
            Unit::Micros => "a time in microseconds, or such as \"5 ms\"",
            Unit::Nanos => "a time in nanoseconds, or such as \"1.5 s\"",
            Unit::Percent => "a percentage, such as 30 or \"30 %\"",
        }
    }

    /// How many of it a suffix is.
    fn factor(self, suffix: &str) -> Option<f64> {
        let of_time = |unit_ns: f64| {
            let ns = match suffix {
                "ns" => 1.0,
                "us" => 1e3,
                "ms" => 1e6,
                "s" => 1e9,
                "m" => 60e9,
                "h" => 3600e9,
                "d" => 86_400e9,
                _ => return None,
            };
            Some(ns / unit_ns)
        };
        if suffix.is_empty() {
            return Some(1.0);
        }
        match self {
            Unit::Plain => None,
            Unit::Percent => (suffix == "%").then_some(1.0),
            Unit::Micros => of_time(1e3),
            Unit::Nanos => of_time(1.0),
            Unit::Bytes => {
                let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
                let power = units.iter().position(|unit| *unit == suffix)?;
                Some(1024_f64.powi(power as i32))
            }
        }
    }
}

/// A number that is not negative; `None`: it is none.
pub(super) fn number(value: &Value, unit: Unit) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => of_text(text, unit)?,
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// A whole number, exact to its last digit where it has no unit.
pub(super) fn whole(value: &Value, unit: Unit) -> Option<u64> {
    let exact = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.replace(',', "").trim().parse().ok(),
        _ => None,
    };
    exact
        .or_else(|| number(value, unit).filter(|number| *number < 2_f64.powi(63)).map(|number| number as u64))
}

fn of_text(text: &str, unit: Unit) -> Option<f64> {
    // "1 m 30 s" is a sum.
    let text = text.replace(',', "");
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (mut rest, mut sum) = (text.trim(), None);
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_of_number(letter)).unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end =
            rest.find(|letter: char| is_of_number(letter) || letter.is_whitespace()).unwrap_or(rest.len());
        sum = Some(sum.unwrap_or(0.0) + number * unit.factor(&rest[..end])?);
        rest = rest[end..].trim_start();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_with_commas_and_units_are_read() {
        for (value, unit, expected) in [
            (json!(5000), Unit::Micros, Some(5000.0)),
            (json!("5 ms"), Unit::Micros, Some(5000.0)),
            (json!("1 m 30 s"), Unit::Nanos, Some(90e9)),
            (json!("143.5 MiB"), Unit::Bytes, Some(143.5 * 1_048_576.0)),
            (json!("30 %"), Unit::Percent, Some(30.0)),
            (json!("1,234"), Unit::Plain, Some(1234.0)),
            (json!(-1), Unit::Plain, None),
            (json!(null), Unit::Plain, None),
            (json!(""), Unit::Plain, None),
            (json!("5 ms"), Unit::Plain, None),
            (json!("abc"), Unit::Bytes, None),
            (json!("5 MB"), Unit::Bytes, None),
        ] {
            assert_eq!(number(&value, unit), expected, "{value}");
        }
    }

    #[test]
    fn addresses_are_exact() {
        assert_eq!(whole(&json!("94,827,419,009,024"), Unit::Bytes), Some(94_827_419_009_024));
        assert_eq!(whole(&json!(18_446_744_073_709_551_615_u64), Unit::Bytes), Some(u64::MAX));
        assert_eq!(whole(&json!("2 MiB"), Unit::Bytes), Some(2 << 20));
    }
}
