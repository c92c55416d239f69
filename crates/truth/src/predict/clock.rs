//! What time it is: a prediction says when it was made.

use std::time::SystemTime;

/// Now, as `2026-11-27 17:44:03 UTC`.
pub(super) fn now_utc() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    utc(since.map_or(0, |since| since.as_secs()))
}

/// Seconds since 1970 as a date and a time.
fn utc(seconds: u64) -> String {
    const OF_400_YEARS: u64 = 146_097;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Counted from 1 March of the year 0, so that the day which not every year has is a year's last.
    let days = days + 719_468;
    let (era, day) = (days / OF_400_YEARS, days % OF_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn seconds_since_1970_are_a_date_in_leap_years_too() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_801_443), "2026-11-27 17:44:03 UTC");
        assert_eq!(utc(4_102_444_800), "2100-01-01 00:00:00 UTC");
    }
}
