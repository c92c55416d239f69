//! Checks of the parameters of DAMON's modules.

use super::{Config, ConfigError, check_range};

impl Config {
    /// Checks what the modules of DAMON are given: one module, whose limits are in order.
    ///
    /// # Errors
    /// What is wrong. Limits of modules that are off are not checked, and neither are those that DAMON_STAT does not have.
    pub fn check_damon(&self) -> Result<(), ConfigError> {
        let modules = [self.damon_reclaim, self.damon_lru_sort, self.damon_stat];
        let enabled = modules.into_iter().filter(|&is_enabled| is_enabled).count();
        check_range("modules of DAMON that are enabled", enabled as u64, 0, 1)?;
        let of_both = [
            ("damon.aggr_interval", self.damon_aggr_interval),
            ("damon.sample_interval", self.damon_sample_interval),
            ("damon.max_nr_regions", self.damon_max_nr_regions),
            ("damon.min_nr_regions", self.damon_min_nr_regions),
        ];
        let of_reclaim = [
            ("damon_reclaim.wmarks_high", self.damon_reclaim_wmarks_high),
            ("damon_reclaim.wmarks_mid", self.damon_reclaim_wmarks_mid),
            ("damon_reclaim.wmarks_low", self.damon_reclaim_wmarks_low),
        ];
        let of_lru_sort = [
            ("damon_lru_sort.wmarks_high", self.damon_lru_sort_wmarks_high),
            ("damon_lru_sort.wmarks_mid", self.damon_lru_sort_wmarks_mid),
            ("damon_lru_sort.wmarks_low", self.damon_lru_sort_wmarks_low),
        ];
        let at_least = |pairs: &[(&'static str, u32)]| match pairs {
            &[(what, value), (of, least)] if value < least => {
                Err(ConfigError::Below { what, value: value.into(), of, least: least.into() })
            }
            _ => Ok(()),
        };
        if self.damon_reclaim || self.damon_lru_sort {
            of_both.chunks(2).try_for_each(at_least)?;
        }
        if self.damon_reclaim {
            of_reclaim.windows(2).try_for_each(at_least)?;
        }
        if self.damon_lru_sort {
            of_lru_sort.windows(2).try_for_each(at_least)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damon_limits_out_of_order_are_refused_where_a_module_has_them() {
        let base = Config { damon_reclaim: true, ..Config::default() };
        for (config, says) in [
            (
                Config { damon_max_nr_regions: 5, ..base.clone() },
                "damon.max_nr_regions: found 5, expected at least 10, which is damon.min_nr_regions",
            ),
            (
                Config { damon_aggr_interval: 4_999, ..base.clone() },
                "damon.aggr_interval: found 4999, expected at least 5000, which is damon.sample_interval",
            ),
            (
                Config { damon_reclaim_wmarks_high: 300, ..base.clone() },
                "damon_reclaim.wmarks_high: found 300, expected at least 400, which is damon_reclaim.wmarks_mid",
            ),
            (
                Config { damon_reclaim_wmarks_low: 401, ..base.clone() },
                "damon_reclaim.wmarks_mid: found 400, expected at least 401, which is damon_reclaim.wmarks_low",
            ),
        ] {
            assert_eq!(config.check().unwrap_err().to_string(), says);
            assert_eq!(Config { damon_reclaim: false, ..config }.check(), Ok(()), "{says}");
        }
        let sorts = Config { damon_lru_sort: true, damon_lru_sort_wmarks_mid: 201, ..Config::default() };
        assert!(sorts.check().unwrap_err().to_string().starts_with("damon_lru_sort.wmarks_high: found 200"));
        assert_eq!(Config { damon_stat: true, damon_max_nr_regions: 5, ..Config::default() }.check(), Ok(()));
    }
}
