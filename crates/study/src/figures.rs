//! Formatting of figures: thousands grouped, times and sizes in a unit that fits, percentages with a sign.

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `n` of something, with an s if there are several.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n), if n == 1 { "" } else { "s" })
}

/// Nanoseconds with three significant digits: `812 ns`, `35.2 us`, `1.25 s`.
pub fn time(nanoseconds: u64) -> String {
    let (unit, factor) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds} ns"),
        1_000..1_000_000 => ("us", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", significant(nanoseconds as f64 / factor))
}

/// Bytes in binary units with three significant digits: `4 KiB`, `1.5 GiB`.
pub fn bytes(bytes: u64) -> String {
    let (unit, factor) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..1_048_576 => ("KiB", 1u64 << 10),
        1_048_576..1_073_741_824 => ("MiB", 1 << 20),
        1_073_741_824..1_099_511_627_776 => ("GiB", 1 << 30),
        _ => ("TiB", 1 << 40),
    };
    let text = significant(bytes as f64 / factor as f64);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// A rate with three significant digits and a decimal prefix: `1.16 M/s`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 1e9 => format!("{} G/s", significant(rate / 1e9)),
        rate if rate >= 1e6 => format!("{} M/s", significant(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} k/s", significant(rate / 1e3)),
        rate => format!("{} /s", significant(rate)),
    }
}

/// So many bytes in so many nanoseconds, with a decimal prefix: `51.2 MB/s`.
pub fn bandwidth(bytes: u64, nanoseconds: u64) -> String {
    let per_second = bytes as f64 / (nanoseconds.max(1) as f64 / 1e9);
    match per_second {
        rate if rate >= 1e9 => format!("{} GB/s", significant(rate / 1e9)),
        rate => format!("{} MB/s", significant(rate / 1e6)),
    }
}

/// A share as a percentage with two decimals.
pub fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// Part of whole; 0 when there is no whole.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Three significant digits, but never fewer than the digits before the point.
fn significant(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else if value >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A percentage with what it is of and what it comes to.
pub fn share_of_pages(percent: f64, distinct_pages: u64, pages: u64) -> String {
    format!("{percent}% of {} distinct pages = {} pages", count(distinct_pages), count(pages))
}

/// `text` in lines of at most `width` characters, each behind `indent`.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let room = width.saturating_sub(indent.chars().count()).max(20);
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.iter().map(|line| format!("{indent}{line}").trim_end().to_string() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_keep_three_digits() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!([time(7), time(35_240), time(1_250_000_000)], ["7 ns", "35.2 us", "1.25 s"]);
        assert_eq!([bytes(512), bytes(4096), bytes(3 << 29)], ["512 B", "4 KiB", "1.5 GiB"]);
        assert_eq!([rate(1_160_000.0), rate(12.0)], ["1.16 M/s", "12.0 /s"]);
        assert_eq!(percent(0.31426), "31.43%");
        assert_eq!(
            [bandwidth(4096, 80_000), bandwidth(7 << 30, 2_000_000_000)],
            ["51.2 MB/s".to_string(), "3.76 GB/s".to_string()]
        );
    }

    #[test]
    fn wrapped_text_keeps_its_words_and_the_width() {
        let text = wrap("one two three four five six seven eight nine ten", 24, "  ");
        assert!(text.lines().all(|line| line.chars().count() <= 24 && line.starts_with("  ")));
        assert_eq!(text.split_whitespace().count(), 10);
    }
}
