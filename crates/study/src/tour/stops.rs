//! The stops of a tour as data: the chosen rows of chapters, and the introduction before each table.

use std::path::Path;

use serde::Deserialize;

use crate::error::{During as _, Error};
use crate::reproduce::chapter::{Chapter, no_twins};
use crate::reproduce::place::{Place, beside};
use crate::scenario::nearest::nearest;

/// The bundled tour.
const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/chapters/tour.toml"));

/// Stops in order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tour {
    /// Each publication.
    pub stop: Vec<Stop>,
}

/// One publication.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The name for `--only`.
    pub name: String,
    /// The title of the publication.
    pub title: String,
    /// The authors and the date.
    pub author: String,
    /// The claim, in our words.
    pub claim: String,
    /// The machine and the load that the published figures are of.
    pub published_on: String,
    /// Those of our figures.
    pub ours_on: String,
    /// A chapter, as `pageout reproduce` accepts it; a file is next to the tour's file.
    pub chapter: String,
    /// The experiment of the chapter that is run.
    pub experiment: String,
    /// One of the experiment's smaller sizes; the full one if it is left out.
    pub scale: Option<String>,
    /// The sides that are run, the base first; all of the chapter if it is left out.
    #[serde(default)]
    pub sides: Vec<String>,
    /// Runs of each side, 1 to 1000, with seeds counted up from the scenario's.
    pub seeds: u32,
    /// The command that shows more.
    pub more: String,
    /// Rows whose levels are a curve; without it, the chart shows the changes.
    pub picture: Option<Picture>,
}

/// Levels as a curve.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    /// The title.
    pub title: String,
    /// The counted quantity: one row per value, from 1.
    pub x: String,
    /// Names of the rows, in order.
    pub rows: Vec<String>,
}

impl Tour {
    /// The tour in `file`, or the program's.
    pub fn read(file: Option<&Path>) -> Result<Tour, Error> {
        let Some(path) = file else { return Tour::parse("scenarios/chapters/tour.toml", SHIPPED) };
        let text = std::fs::read_to_string(path).during(|| format!("cannot read {}", path.display()))?;
        Tour::parse(&path.to_string_lossy(), &text)
    }

    fn parse(path: &str, text: &str) -> Result<Tour, Error> {
        let tour: Tour = toml_edit::de::from_str(text).map_err(|error| {
            Error::Asked(format!("{path}: invalid tour: {}", error.to_string().trim_end()))
        })?;
        no_twins(tour.stop.iter().map(|stop| &stop.name), "[[stop]]")
            .map_err(|why| Error::Asked(format!("{path}: {why}")))?;
        if let Some(stop) = tour.stop.iter().find(|stop| !(1..=1000).contains(&stop.seeds)) {
            let name = &stop.name;
            return Err(Error::Asked(format!(
                "{path}, stop `{name}`: invalid `seeds`: expected a number from 1 to 1000"
            )));
        }
        Ok(tour)
    }

    /// The stops that were asked for, in the tour's order; all of them if none was.
    /// Errors: there is no stop of a name.
    pub fn choose(&self, names: &[String]) -> Result<Vec<&Stop>, Error> {
        for name in names {
            let known: Vec<&str> = self.stop.iter().map(|stop| stop.name.as_str()).collect();
            if !known.contains(&name.as_str()) {
                let near = nearest(name, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                return Err(Error::Asked(format!(
                    "--only {name}: unknown stop\nhelp: {near}stops are {}",
                    known.join(", ")
                )));
            }
        }
        let is_chosen = |stop: &&Stop| names.is_empty() || names.contains(&stop.name);
        Ok(self.stop.iter().filter(is_chosen).collect())
    }
}

impl Stop {
    /// Returns the place of its chapter, and the chapter with the stop's sides only.
    /// Errors: there is none, or it does not have these sides.
    pub fn chapter(&self, tour: Option<&Path>) -> Result<(Place, Chapter), Error> {
        let at = |why: String| Error::Asked(format!("stop `{}`: {why}", self.name));
        let is_file = Path::new(&self.chapter).extension().is_some();
        let place = match tour {
            Some(tour) if is_file => Ok(Place::File(beside(tour, &self.chapter))),
            _ => Place::find(&self.chapter),
        };
        let place = place.map_err(|error| at(error.to_string()))?;
        let chapter = place.chapter()?;
        let chapter =
            if self.sides.is_empty() { chapter } else { chapter.of_sides(&self.sides).map_err(at)? };
        Ok((place, chapter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tour::lines::name_of;

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
