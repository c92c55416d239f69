//! What memory costs: prices per GiB, and the money that slower memory saves.

use serde_json::{Value, json};

use super::{Advice, Ratio};
use crate::error::Error;
use crate::figures;

/// Prices of a GiB, in any one currency.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    fast: f64,
    /// Prices of classes of slow memory, by name.
    slow: Vec<(String, f64)>,
}

impl std::str::FromStr for Prices {
    type Err = String;

    /// `fast=9,cxl-1.1=4`.
    fn from_str(text: &str) -> Result<Prices, String> {
        let mut fast = None;
        let mut slow: Vec<(String, f64)> = Vec::new();
        for part in text.split(',') {
            let pair = part.split_once('=');
            let (name, price) =
                pair.ok_or_else(|| format!("{part}: expected NAME=PRICE, such as fast=9 or cxl-1.1=4"))?;
            let (name, price) = (name.trim(), price.trim());
            let price: f64 = match price.parse() {
                Ok(price) if (0.0..=1e12).contains(&price) => price,
                _ => {
                    return Err(format!("{name}={price}: expected a price per GiB, a number from 0 to 1e12"));
                }
            };
            let is_new = if name == "fast" {
                fast.replace(price).is_none()
            } else {
                let is_new = slow.iter().all(|(known, _)| known != name);
                slow.push((name.to_string(), price));
                is_new
            };
            if !is_new {
                return Err(format!("{name}: found two prices, expected one"));
            }
        }
        let fast = fast.ok_or("fast: missing price, which savings are compared with")?;
        Ok(Prices { fast, slow })
    }
}

impl Prices {
    /// Errors: a price of memory that was not asked about.
    pub(super) fn check(&self, devices: &[String]) -> Result<(), Error> {
        match self.slow.iter().find(|(name, _)| !devices.contains(name)) {
            Some((name, _)) => {
                let asked = devices.join(", ");
                Err(Error::Asked(format!("--price {name}: expected `fast` or a name of --device ({asked})")))
            }
            None => Ok(()),
        }
    }

    fn of(&self, device: &str) -> Option<f64> {
        self.slow.iter().find(|(name, _)| name == device).map(|(_, price)| *price)
    }
}

/// What the memory of a ratio costs, compared with as much fast memory.
pub(super) struct Cost {
    fast_per_gib: f64,
    slow_per_gib: f64,
    all_fast: f64,
    with_slow: f64,
}

impl Cost {
    fn saved(&self) -> f64 {
        self.all_fast - self.with_slow
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "fast_per_gib": self.fast_per_gib,
            "slow_per_gib": self.slow_per_gib,
            "all_fast": self.all_fast,
            "with_slow": self.with_slow,
            "saved": self.saved(),
        })
    }
}

impl Advice {
    /// None without prices of both kinds of memory.
    pub(super) fn cost(&self, ratio: Ratio, device: &str) -> Option<Cost> {
        let prices = self.asked.prices.as_ref()?;
        let (fast_per_gib, slow_per_gib) = (prices.fast, prices.of(device)?);
        let gib = |bytes: u64| {
            bytes as f64 * f64::from(self.scenario.machine.page_stands_for) / (1u64 << 30) as f64
        };
        let (fast, slow) = ratio.of(self.memory);
        Some(Cost {
            fast_per_gib,
            slow_per_gib,
            all_fast: gib(self.memory.0) * fast_per_gib,
            with_slow: gib(fast.0) * fast_per_gib + gib(slow.0) * slow_per_gib,
        })
    }

    /// The money that a ratio saves, in a sentence; nothing if there was no question about it.
    pub(super) fn cost_story(&self, ratio: Ratio, device: &str) -> Option<String> {
        self.asked.prices.as_ref()?;
        let Some(cost) = self.cost(ratio, device) else {
            return Some(format!("{device}: the savings are unknown because --price has no {device}=PRICE."));
        };
        let (saved, is_more) = (cost.saved().abs(), cost.saved() < 0.0);
        let share = match cost.all_fast > 0.0 {
            true => format!(" ({})", figures::percent(saved / cost.all_fast)),
            false => String::new(),
        };
        Some(format!(
            "{device}: at {} per GiB of fast and {} per GiB of slow memory, {ratio} costs {} and fast memory only {}: {}{share} {}.",
            money(cost.fast_per_gib),
            money(cost.slow_per_gib),
            money(cost.with_slow),
            money(cost.all_fast),
            money(saved),
            if is_more { "more" } else { "saved" }
        ))
    }

    /// The money that a ratio saves, for a table.
    pub(super) fn saved_money(&self, ratio: Ratio, device: &str) -> String {
        self.cost(ratio, device).map_or("-".to_string(), |cost| money(cost.saved()))
    }
}

/// An amount with two decimals, or with three significant digits below 0.1.
fn money(amount: f64) -> String {
    match amount.abs() {
        least if least == 0.0 || least >= 0.1 => format!("{amount:.2}"),
        least => format!("{amount:.*}", (2 - least.log10().floor() as i32).clamp(2, 12) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::{Prices, money};

    #[test]
    fn price_list_with_an_error_names_it() {
        let wrong = |text: &str| text.parse::<Prices>().unwrap_err();
        assert!(wrong("9").contains("NAME=PRICE"));
        assert!(wrong("cxl-1.1=4").contains("fast: missing price"));
        assert!(wrong("fast=9,fast=8").contains("two prices"));
        assert!(wrong("fast=9,pmem=1,pmem=2").contains("pmem: found two prices"));
        for price in ["-1", "nan", "inf", "1e13", "cheap"] {
            assert!(wrong(&format!("fast={price}")).contains("a number from 0"), "{price}");
        }
    }

    #[test]
    fn small_amount_keeps_three_digits() {
        assert_eq!(
            [0.0, 12.5, 0.125, 0.012_345, -0.000_123_4].map(money),
            ["0.00", "12.50", "0.12", "0.0123", "-0.000123"]
        );
    }
}
