//! Loading a scenario: from a file and what is changed in it to a scenario that is ready to be built.

use pageout_sim::scenario::{SEED_MAX, Scenario};
use serde::{Deserialize, Serialize};

use super::prepare;
use super::source::{Setting, Source};
use crate::Watcher;
use crate::error::Error;

/// The changes of a scenario before it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    /// Keys that are set, in this order.
    pub settings: Vec<Setting>,
    /// The seed of every random choice, instead of the scenario's.
    pub seed: Option<u64>,
}

/// The scenario of a file with all changes made, ready to be built. Traces that say how large its objects are have been read. Errors: a
/// change or the scenario makes no sense, a trace can't be read.
pub fn load(
    source: &Source,
    changes: &Changes,
    more: &[Setting],
    watcher: &dyn Watcher,
) -> Result<Scenario, Error> {
    let settings: Vec<Setting> = changes.settings.iter().chain(more).cloned().collect();
    if changes.seed.is_some() && settings.iter().any(|setting| setting.key == "seed") {
        return Err(Error::asked("found two seeds, by --seed and as a key, expected one"));
    }
    if let Some(seed) = changes.seed.filter(|&seed| seed > SEED_MAX) {
        return Err(Error::asked(format!("seed: found {seed}, expected a number from 0 to {SEED_MAX}")));
    }
    let mut scenario = source.scenario(&settings)?;
    scenario.seed = changes.seed.unwrap_or(scenario.seed);
    prepare::prepare(&mut scenario, source, watcher)
        .map_err(|problem| source.locate_with(&settings, vec![problem]))?;
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn seed_that_no_scenario_can_have_is_refused() {
        let file = "[[task]]\nname = \"a\"\nobject = [{ channel = \"file\", size = \"1MiB\", workload = { pattern = \"sequential\" } }]\n";
        let source = Source::parse(Path::new("a.toml"), file.to_string()).unwrap();
        let with_seed = |seed| load(&source, &Changes { seed: Some(seed), ..Changes::default() }, &[], &());
        assert_eq!(with_seed(SEED_MAX).unwrap().seed, SEED_MAX);
        for seed in [SEED_MAX + 1, u64::MAX] {
            let error = with_seed(seed).unwrap_err().to_string();
            assert!(error.starts_with(&format!("seed: found {seed}, expected")), "{error}");
        }
    }
}
