//! Watermarks: a scheme is active while a metric is within a range. [access-aware 2.6]

/// What watermarks are about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WatermarkMetric {
    /// Nothing: the scheme is always active.
    #[default]
    None,
    /// Free pages over all pages, in 1/1,000.
    FreeMemRate,
}

/// When a scheme is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// What they are about.
    pub metric: WatermarkMetric,
    /// Microseconds between two checks while no scheme is active.
    pub interval_us: u64,
    /// Above it the scheme is inactive.
    pub high: u64,
    /// Below it an inactive scheme becomes active.
    pub mid: u64,
    /// Below it the scheme is inactive.
    pub low: u64,
}

impl Watermarks {
    /// Returns true if a scheme is active at this rate of free memory, in 1/1,000.
    pub(crate) fn is_active(&self, was_active: bool, free_mem_rate: impl FnOnce() -> u64) -> bool {
        if self.metric == WatermarkMetric::None {
            return true;
        }
        let value = free_mem_rate();
        if value > self.high || value < self.low {
            return false;
        }
        was_active || value < self.mid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_between_mid_and_high_keeps_its_state() {
        let marks = Watermarks {
            metric: WatermarkMetric::FreeMemRate,
            interval_us: 5,
            high: 500,
            mid: 400,
            low: 200,
        };
        let active = |was, value| marks.is_active(was, || value);
        assert_eq!([active(true, 501), active(true, 500), active(false, 500)], [false, true, false]);
        assert_eq!([active(false, 399), active(false, 200), active(true, 199)], [true, true, false]);
        assert!(Watermarks::default().is_active(false, || 0), "no metric");
    }
}
