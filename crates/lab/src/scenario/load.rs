//! Loading a scenario: from a file and the options of the command line to a scenario that is ready to be built.

use pageout_sim::scenario::Scenario;

use crate::cli::RunOptions;
use crate::failure::Failure;
use crate::scenario::prepare;
use crate::scenario::source::{Setting, Source};

/// The scenario of a file with all options applied, ready to be built.
pub(crate) fn load(source: &Source, options: &RunOptions, more: &[Setting]) -> Result<Scenario, Failure> {
    let settings: Vec<Setting> = options.all_settings().chain(more).cloned().collect();
    if options.seed.is_some() && settings.iter().any(|setting| setting.key == "seed") {
        return Err(Failure::Input(anyhow::anyhow!("the seed is given twice: by --seed and as a key")));
    }
    let mut scenario = source.scenario(&settings)?;
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    prepare::prepare(&mut scenario, source, &options.output)
        .map_err(|problem| source.locate_with(&settings, problem))?;
    Ok(scenario)
}
