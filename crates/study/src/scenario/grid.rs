//! Grids: keys with several values each, and all combinations of them, which are the columns of `--vary` and the points of `--over`.

use pageout_sim::scenario::Scenario;
use serde_json::{Map, Value, json};

use super::load::{Changes, load};
use super::source::{Setting, Source};
use super::variation::Variation;
use crate::Watcher;
use crate::error::Error;
use crate::json::merged;

/// One combination: the scenario with a value of each key.
#[derive(Debug)]
pub struct Point {
    /// The values, a key each.
    pub settings: Vec<Setting>,
    /// The scenario with them.
    pub scenario: Scenario,
}

/// The scenario at every combination of the values, which came by `option`; as it is if there are none. Errors: as of [`load`].
pub fn points(
    source: &Source,
    changes: &Changes,
    variations: &[Variation],
    option: &'static str,
    watcher: &dyn Watcher,
) -> Result<Vec<Point>, Error> {
    if let Some(empty) = variations.iter().find(|variation| variation.values.is_empty()) {
        return Err(Error::asked(format!("{option} {}: found no value, expected one or more", empty.key)));
    }
    let points = combinations(variations, option).into_iter().map(|settings| {
        let scenario = load(source, changes, &settings, watcher)?;
        Ok(Point { settings, scenario })
    });
    points.collect()
}

/// Every combination of the values, the last key running fastest.
fn combinations(variations: &[Variation], option: &'static str) -> Vec<Vec<Setting>> {
    variations.iter().fold(vec![Vec::new()], |combinations, variation| {
        combinations
            .iter()
            .flat_map(|before| {
                variation.values.iter().map(move |value| {
                    let (key, value) = (variation.key.clone(), value.clone());
                    let setting = Setting { key, value, option, written_at: None };
                    before.iter().cloned().chain([setting]).collect()
                })
            })
            .collect()
    })
}

/// Returns the label of a combination: the values without their keys.
pub fn label(settings: &[Setting]) -> String {
    settings.iter().map(|setting| setting.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// The settings as JSON, by key.
pub fn settings_json(settings: &[Setting]) -> Map<String, Value> {
    settings.iter().map(|setting| (setting.key.clone(), setting.value.clone().into())).collect()
}

/// Returns the result at each point as JSON, between the question and the agreement of the points.
pub fn points_json<'a>(
    head: Value,
    points: impl Iterator<Item = (&'a Point, bool, Value)>,
    signs: Value,
) -> Value {
    let mut is_complete = true;
    let points: Vec<Value> = points
        .map(|(point, is_whole, found)| {
            is_complete &= is_whole;
            merged(json!({ "settings": settings_json(&point.settings) }), found)
        })
        .collect();
    merged(head, json!({ "complete": is_complete, "points": points, "signs": signs }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::source::VARY;

    #[test]
    fn key_without_values_is_refused() {
        let source = Source::parse(std::path::Path::new("a.toml"), String::new()).unwrap();
        let none = [Variation { key: "seed".to_string(), values: Vec::new() }];
        let error = points(&source, &Changes::default(), &none, VARY, &()).unwrap_err().to_string();
        assert_eq!(error, "--vary seed: found no value, expected one or more");
    }

    #[test]
    fn variations_combine_with_the_last_one_fastest() {
        let vary = |key: &str, values: &[&str]| Variation {
            key: key.to_string(),
            values: values.iter().map(|value| value.to_string()).collect(),
        };
        let labels: Vec<String> = combinations(&[vary("a", &["1", "2"]), vary("b", &["x", "y"])], VARY)
            .iter()
            .map(|settings| label(settings))
            .collect();
        assert_eq!(labels, ["1, x", "1, y", "2, x", "2, y"]);
    }
}
