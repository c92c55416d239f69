//! The feedback loop of quotas and intervals: a size grows or shrinks with the distance of a score from 10,000. [access-aware 2.4]

/// The score of a goal that is reached.
pub(crate) const REACHED: u64 = 10_000;
/// The smallest size.
pub(crate) const LEAST: u64 = 10_000;

/// The next size after `size` had this score.
pub fn feed(size: u64, score: u64) -> u64 {
    if score == REACHED {
        return size;
    }
    if score >= 2 * REACHED {
        return LEAST;
    }
    let change = u128::from(size) * u128::from(score.abs_diff(REACHED)) / u128::from(REACHED);
    let change = u64::try_from(change).unwrap_or(u64::MAX);
    match score > REACHED {
        true => size.saturating_sub(change).max(LEAST),
        false => size.saturating_add(change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_equals_the_published_vectors() {
        assert_eq!(feed(1_000_000, 15_000), 500_000);
        assert_eq!(feed(1_000_000, 20_000), 10_000);
        assert_eq!(feed(15_000, 19_000), 10_000);
        assert_eq!(feed(123, REACHED), 123);
        assert_eq!(feed(u64::MAX, 0), u64::MAX);
    }
}
