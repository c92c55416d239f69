//! The stops of a tour as data: what is chosen from which chapter, and what a reader is told before the table.

use std::path::Path;

use anyhow::{Context, ensure};
use pageout_study::scenario::nearest::nearest;
use serde::Deserialize;

use crate::commands::reproduce::chapter::{Chapter, no_twins};
use crate::commands::reproduce::shipped::{Place, beside};

/// The tour that the program brings along.
const SHIPPED: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/chapters/tour.toml"));

/// Stops in order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tour {
    pub(super) stop: Vec<Stop>,
}

/// One publication.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    /// What `--only` takes.
    pub(super) name: String,
    /// What was published.
    pub(super) title: String,
    /// By whom, and when.
    pub(super) author: String,
    /// What it claims, in our words.
    pub(super) claim: String,
    /// The machine and the load that the published figures are of.
    pub(super) published_on: String,
    /// Those of our figures.
    pub(super) ours_on: String,
    /// A chapter, as `pageout reproduce` takes it; a file lies beside the tour's.
    pub(super) chapter: String,
    pub(super) experiment: String,
    /// One of the experiment's smaller sizes; the full one if it is left out.
    pub(super) scale: Option<String>,
    /// The sides that are run, the base first; all of the chapter if it is left out.
    #[serde(default)]
    pub(super) sides: Vec<String>,
    pub(super) seeds: u32,
    /// The command that shows more.
    pub(super) more: String,
    /// Rows whose levels are a curve; without it, the picture is of the changes.
    pub(super) picture: Option<Picture>,
}

/// Levels as a curve.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Picture {
    pub(super) title: String,
    /// What is counted from 1 on, a row each.
    pub(super) x: String,
    pub(super) rows: Vec<String>,
}

impl Tour {
    /// The tour in `file`, or the program's.
    pub(super) fn read(file: Option<&Path>) -> anyhow::Result<Tour> {
        let Some(path) = file else { return Tour::parse("scenarios/chapters/tour.toml", SHIPPED) };
        let text = std::fs::read_to_string(path);
        Tour::parse(
            &path.to_string_lossy(),
            &text.with_context(|| format!("cannot read {}", path.display()))?,
        )
    }

    fn parse(path: &str, text: &str) -> anyhow::Result<Tour> {
        let tour: Tour = toml_edit::de::from_str(text)
            .map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end()))
            .with_context(|| format!("{path} is no tour"))?;
        no_twins(tour.stop.iter().map(|stop| &stop.name), "[[stop]]").with_context(|| path.to_string())?;
        for stop in &tour.stop {
            ensure!(
                (1..=1000).contains(&stop.seeds),
                "{path}, stop `{}`: seeds is a number from 1 to 1000",
                stop.name
            );
        }
        Ok(tour)
    }

    /// The stops that were asked for, in the tour's order; all of them if none was.
    pub(super) fn choose(&self, names: &[String]) -> anyhow::Result<Vec<&Stop>> {
        for name in names {
            let known: Vec<&str> = self.stop.iter().map(|stop| stop.name.as_str()).collect();
            if !known.contains(&name.as_str()) {
                let near = nearest(name, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                anyhow::bail!("--only {name}: {near}The stops are {}", known.join(", "));
            }
        }
        let is_chosen = |stop: &&Stop| names.is_empty() || names.contains(&stop.name);
        Ok(self.stop.iter().filter(is_chosen).collect())
    }
}

impl Stop {
    /// Where its chapter is, and the chapter with the stop's sides alone.
    pub(super) fn chapter(&self, tour: Option<&Path>) -> anyhow::Result<(Place, Chapter)> {
        let at = || format!("stop `{}`", self.name);
        let is_file = Path::new(&self.chapter).extension().is_some();
        let place = match tour {
            Some(tour) if is_file => Ok(Place::File(beside(tour, &self.chapter))),
            _ => Place::find(&self.chapter),
        };
        let place = place.with_context(at)?;
        let chapter = place.chapter()?;
        let chapter =
            if self.sides.is_empty() { chapter } else { chapter.of_sides(&self.sides).with_context(at)? };
        Ok((place, chapter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::reproduce::tour::lines::name_of;

    #[test]
    fn every_shipped_stop_chooses_what_its_chapter_has() {
        let tour = Tour::read(None).unwrap();
        for stop in &tour.stop {
            let (place, chapter) = stop.chapter(None).unwrap();
            let experiments = chapter.choose(std::slice::from_ref(&stop.experiment)).unwrap();
            let experiment = experiments[0];
            place.scenario(experiment.scenario_at(stop.scale.as_deref()).unwrap()).unwrap();
            assert!(chapter.source.starts_with("https://"), "{}", stop.name);
            let is_row = |name: &String| experiment.claim.iter().any(|claim| name_of(&claim.row) == name);
            assert!(stop.picture.iter().flat_map(|picture| &picture.rows).all(is_row), "{}", stop.name);
        }
    }
}
