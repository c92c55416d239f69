//! A variation: a key of a scenario, and the values that it is given one after the other.

use std::fmt;
use std::str::FromStr;

use super::source::Setting;
use crate::error::Error;

/// A key and several values of it; as data, a text `KEY=A,B`.
#[derive(Debug, Clone, PartialEq)]
pub struct Variation {
    /// The key, from the top of the scenario.
    pub key: String,
    /// The values of the key; at least two, no two the same.
    pub values: Vec<String>,
}

crate::json::as_text!(Variation);

impl fmt::Display for Variation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.values.join(","))
    }
}

impl FromStr for Variation {
    type Err = String;

    /// `KEY=A,B`.
    fn from_str(text: &str) -> Result<Variation, String> {
        let setting: Setting = text.parse().map_err(|_| {
            format!("found `{text}`, expected KEY=A,B, for example kernel.profile=classic@6.12,lru")
        })?;
        let values = split_values(&setting.value);
        if values.len() < 2 || values.iter().any(String::is_empty) {
            return Err(format!(
                "found `{text}` with fewer than two values, expected KEY=A,B (--set changes one key everywhere)"
            ));
        }
        if let Some(twice) = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
            return Err(format!("duplicate value `{}` in `{text}`", twice.1));
        }
        Ok(Variation { key: setting.key, values })
    }
}

/// The values between commas; a comma within braces, brackets or quotes is part of its value.
fn split_values(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut depth, mut quote) = (0u32, None);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) => quote = Some(open).filter(|&open| open != c),
            ('"' | '\'', None) => quote = Some(c),
            ('{' | '[', None) => depth += 1,
            ('}' | ']', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        values.last_mut().expect("there is one from the start").push(c);
    }
    values.iter().map(|value| value.trim().to_string()).collect()
}

/// Refuses to vary the seed by an option where it is counted up as well.
pub fn one_way_to_vary_the_seed(option: &str, variations: &[Variation], repeat: u32) -> Result<(), Error> {
    let is_varied = variations.iter().any(|variation| variation.key == "seed");
    match repeat > 1 && is_varied {
        true => Err(Error::asked(format!(
            "{option} seed and --repeat: found both, expected one source of seeds\nhelp: remove one of them"
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variation_has_at_least_two_different_values() {
        let variation: Variation = "memcg./a.memory.max=1MiB, 2MiB".parse().unwrap();
        assert_eq!((variation.key.as_str(), variation.values.len()), ("memcg./a.memory.max", 2));
        let variation: Variation = "a={b = [1, 2], c = 'x,y'}, {b = []}, \",\"".parse().unwrap();
        assert_eq!(variation.values, ["{b = [1, 2], c = 'x,y'}", "{b = []}", "\",\""]);
        for bad in ["a", "a=", "a=1", "a=1,", "a=1,1", "a={b=1,c=2}"] {
            assert!(bad.parse::<Variation>().is_err(), "{bad}");
        }
    }
}
