//! Grids: keys with several values each, and all combinations of them, which are the columns of `--vary` and the points of `--over`.

use pageout_sim::scenario::Scenario;
use serde_json::{Map, Value, json};

use crate::cli::{RunOptions, Variation};
use crate::failure::Failure;
use crate::print::output;
use crate::scenario::load::load;
use crate::scenario::source::{Setting, Source};

/// One combination: the scenario with a value of each key.
pub(crate) struct Point {
    pub(crate) settings: Vec<Setting>,
    pub(crate) scenario: Scenario,
}

/// The scenario at every combination of the values that `option` gives its keys; as it is if it gives none.
pub(crate) fn points(
    source: &Source,
    options: &RunOptions,
    variations: &[Variation],
    option: &'static str,
    repeat: u32,
) -> Result<Vec<Point>, Failure> {
    if repeat > 1 && variations.iter().any(|variation| variation.key == "seed") {
        let message = format!("{option} seed and --repeat both vary the seed: give one of them");
        return Err(Failure::Input(anyhow::anyhow!(message)));
    }
    let points = combinations(variations, option).into_iter().map(|settings| {
        let scenario = load(source, options, &settings)?;
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

/// What a combination is called: the values; what they are values of stands elsewhere.
pub(crate) fn label(settings: &[Setting]) -> String {
    settings.iter().map(|setting| setting.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// The points by number.
pub(crate) fn list<'a>(points: impl Iterator<Item = &'a Point>) -> String {
    let lines = points.enumerate().map(|(at, point)| {
        let settings: Vec<String> = point.settings.iter().map(ToString::to_string).collect();
        format!("{:>4}  {}\n", at + 1, settings.join("  "))
    });
    lines.collect()
}

/// The settings as JSON, by key.
pub(crate) fn settings_json(settings: &[Setting]) -> Map<String, Value> {
    settings.iter().map(|setting| (setting.key.clone(), setting.value.clone().into())).collect()
}

/// What was found out, and whether wholly, at each of several points, between what was asked and how they agree.
pub(crate) fn points_json<'a>(
    head: Value,
    points: impl Iterator<Item = (&'a Point, bool, Value)>,
    signs: Value,
) -> Value {
    let mut is_complete = true;
    let points: Vec<Value> = points
        .map(|(point, is_whole, found)| {
            is_complete &= is_whole;
            output::merged(json!({ "settings": settings_json(&point.settings) }), found)
        })
        .collect();
    output::merged(head, json!({ "complete": is_complete, "points": points, "signs": signs }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::source::VARY;

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
