//! A chapter: a publication's figures, and the runs of pageout that reproduce them. It is a data file next to its scenarios.
//!
//! ```text
//!   chapter ── [[side]]        what is compared: the first is the base, as before the published change
//!         └─── [[experiment]]  a scenario, and smaller ones where its rows scale
//!                └── [[experiment.claim]]    a figure, and what was published of it
//! ```

use std::collections::BTreeMap;

use pageout_sim::scenario::{Knobs, Relation};
use serde::{Deserialize, Serialize};

use crate::check::holds;
use crate::error::Error;
use crate::result::better::Better;
use crate::scenario::nearest::nearest;
use crate::scenario::source::{Setting, written};

/// A published table, as far as it is to be reproduced.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chapter {
    /// The title of the publication.
    pub title: String,
    /// The link to it.
    pub source: String,
    /// A note about the whole table.
    #[serde(default)]
    pub note: String,
    /// The compared sides. The first is the base.
    pub side: Vec<Side>,
    /// The experiments.
    pub experiment: Vec<Experiment>,
}

/// One side of a comparison: a column of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The name.
    pub name: String,
    /// The settings of this side.
    #[serde(default)]
    pub set: Knobs,
    /// An explanation, if the name is not enough.
    #[serde(default)]
    pub note: String,
}

/// A workload of a publication: its scenario, and the rows that it gives.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name for `--experiment`.
    pub name: String,
    /// The title, for people.
    pub title: String,
    /// The scenario at its full size: a path from where the chapter lies.
    pub scenario: String,
    /// Smaller sizes at which the rows are sound as well, by the name that `--scale` takes.
    #[serde(default)]
    pub scaled: BTreeMap<String, String>,
    /// The changes of its scenario before those of a side: for experiments that are points of a sweep.
    #[serde(default)]
    pub set: Knobs,
    /// Further changes at a smaller size, by its name: values that do not scale, such as a number of accesses.
    #[serde(default)]
    pub scaled_set: BTreeMap<String, Knobs>,
    /// A note about its rows.
    #[serde(default)]
    pub note: String,
    /// Its rows.
    pub claim: Vec<Claim>,
}

/// A published figure with pageout's figure: a row of a chapter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim, in a few words.
    pub row: String,
    /// The figures that are it, added up, by the names that `compare --all --json` gives them.
    pub figures: Vec<String>,
    /// The figures of the live machine, where they are others.
    #[serde(default)]
    pub live: Vec<String>,
    /// The base of a share: figures, added up.
    #[serde(default)]
    pub per: Vec<String>,
    /// Without it, and without a relation, the row is only shown.
    pub published: Option<Published>,
    /// The published figures of the sides.
    #[serde(default)]
    pub levels: Levels,
    /// The relation of the sides' figures, as in `[[expect]]`: "nodirect == 0", "nodirect <= 0.27 * traceonly".
    pub holds: Option<Relation>,
    /// The definition of pageout's figure, if it differs from the measured one.
    #[serde(default)]
    pub note: String,
    /// The reason, if the row does not hold.
    #[serde(default)]
    pub because: String,
    /// Commands that show that reason.
    #[serde(default)]
    pub shown_by: Vec<String>,
}

/// The figures that were published of the sides.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "levels are a list, one a side, or a table of them by side: { after = 12.5 }")]
pub enum Levels {
    /// In the order of the sides; of sides after the last nothing was published.
    InOrder(Vec<f64>),
    /// By the names of the sides; of others nothing was published.
    BySide(BTreeMap<String, f64>),
}

impl Default for Levels {
    fn default() -> Levels {
        Levels::InOrder(Vec::new())
    }
}

/// A published figure or direction.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Published {
    /// The change against the base, as a fraction of it: -0.51 is 51 % less.
    Change(f64),
    /// The figure at the base and after the change, which say the change as well.
    Levels {
        /// At the base, more than 0.
        before: f64,
        /// After the change.
        after: f64,
    },
    /// The figure at the base alone.
    Base(f64),
    /// Which way, and no size.
    Direction(Direction),
}

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// It falls.
    Less,
    /// It rises.
    More,
}

impl Published {
    /// The change, as a fraction of the base.
    pub fn change(self) -> Option<f64> {
        match self {
            Published::Change(change) => Some(change),
            Published::Levels { before, after } => Some(after / before - 1.0),
            Published::Base(_) | Published::Direction(_) => None,
        }
    }

    /// Returns the direction of the change; `None` for a level alone.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Published::Direction(direction) => Some(direction),
            Published::Base(_) => None,
            Published::Change(_) | Published::Levels { .. } => {
                let change = self.change()?;
                Some(if change < 0.0 { Direction::Less } else { Direction::More })
            }
        }
    }

    fn check(self) -> Result<(), String> {
        let is_change = |change: f64| change.is_finite() && change >= -1.0 && change != 0.0;
        match self {
            Published::Change(change) if !is_change(change) => {
                return Err("invalid change: expected a fraction of the base, -1 or more and not 0 (-0.51 is 51 % less)"
                    .to_string());
            }
            Published::Levels { before, after } => holds!(
                before > 0.0 && after >= 0.0 && is_change(after / before - 1.0),
                "expected `before` above 0, and a different `after` of 0 or more"
            ),
            Published::Base(base) => holds!(base > 0.0 && base.is_finite(), "expected a base above 0"),
            Published::Change(_) | Published::Direction(_) => {}
        }
        Ok(())
    }
}

impl Levels {
    /// That of a side, the `index`-th.
    pub fn of(&self, index: usize, side: &str) -> Option<f64> {
        match self {
            Levels::InOrder(levels) => levels.get(index).copied(),
            Levels::BySide(levels) => levels.get(side).copied(),
        }
    }

    /// The levels by name, of the sides that are `kept`.
    fn by_side(&self, sides: &[Side], kept: &[String]) -> Levels {
        let known = (0..).zip(sides).filter(|(_, side)| kept.contains(&side.name));
        let levels = known.filter_map(|(index, side)| Some((side.name.clone(), self.of(index, &side.name)?)));
        Levels::BySide(levels.collect())
    }

    fn check(&self, sides: &[Side]) -> Result<(), String> {
        match self {
            Levels::InOrder(levels) => {
                let (levels, sides) = (levels.len(), sides.len());
                holds!(levels <= sides, "found {levels} levels, expected at most {sides}, one per side");
            }
            Levels::BySide(levels) => {
                let unknown = levels.keys().find(|name| !sides.iter().any(|side| side.name == **name));
                holds!(unknown.is_none(), "unknown side `{}`", unknown.map_or("", String::as_str));
            }
        }
        Ok(())
    }
}

impl Claim {
    /// The direction in which its figure is better. A sum of figures with different directions has none. A share has none either: for
    /// example, some part always takes the rest of kswapd's time.
    pub fn better(&self) -> Better {
        if !self.per.is_empty() {
            return Better::Neither;
        }
        let mut each = self.figures.iter().map(|name| Better::of(name));
        let first = each.next().unwrap_or(Better::Neither);
        if each.all(|other| other == first) { first } else { Better::Neither }
    }

    /// Returns true if it is about this side: a relation is about those that it names, any other claim about all.
    pub fn speaks_of(&self, side: &str) -> bool {
        self.holds.as_ref().is_none_or(|relation| relation.variants().any(|name| name == side))
    }
}

impl Chapter {
    /// Reads a chapter; `path` is for messages.
    pub fn parse(path: &str, text: &str) -> Result<Chapter, Error> {
        let chapter: Chapter = toml_edit::de::from_str(text).map_err(|error| {
            Error::Asked(format!("{path}: invalid chapter: {}", error.to_string().trim_end()))
        })?;
        chapter.check().map_err(|why| Error::Asked(format!("{path}: {why}")))?;
        Ok(chapter)
    }

    fn check(&self) -> Result<(), String> {
        holds!(self.side.len() > 1, "found fewer than two [[side]], expected a base and at least one more");
        no_twins(self.side.iter().map(|side| &side.name), "[[side]]")?;
        no_twins(self.experiment.iter().map(|experiment| &experiment.name), "[[experiment]]")?;
        for experiment in &self.experiment {
            if let Some(scale) =
                experiment.scaled_set.keys().find(|scale| !experiment.scaled.contains_key(*scale))
            {
                return Err(format!(
                    "experiment `{}`: `scaled_set` has `{scale}`, but `scaled` does not",
                    experiment.name
                ));
            }
            for claim in &experiment.claim {
                let at = || format!("experiment `{}`, row `{}`", experiment.name, claim.row);
                let said = |why: String| format!("{}: {why}", at());
                holds!(!claim.figures.is_empty(), "{}: no figures", at());
                claim.published.map_or(Ok(()), Published::check).map_err(said)?;
                claim.levels.check(&self.side).map_err(said)?;
                holds!(
                    claim.published.is_none() || claim.holds.is_none(),
                    "{}: a published change excludes `holds`",
                    at()
                );
                for name in claim.holds.iter().flat_map(Relation::variants) {
                    let known: Vec<&str> = self.side.iter().map(|side| side.name.as_str()).collect();
                    holds!(
                        known.contains(&name),
                        "{}: unknown side `{name}`; known: {}",
                        at(),
                        known.join(", ")
                    );
                }
            }
        }
        Ok(())
    }

    /// This chapter with some of its sides alone, the first of them the base, and with the claims that speak of nothing else.
    /// Errors: there is no such side, or what is left compares nothing.
    pub fn of_sides(mut self, names: &[String]) -> Result<Chapter, String> {
        let find = |name: &String| {
            let found = self.side.iter().find(|side| side.name == *name);
            found.cloned().ok_or_else(|| {
                let known: Vec<&str> = self.side.iter().map(|side| side.name.as_str()).collect();
                format!("unknown side `{name}`; known: {}", known.join(", "))
            })
        };
        let sides = names.iter().map(find).collect::<Result<Vec<Side>, String>>()?;
        for experiment in &mut self.experiment {
            for claim in &mut experiment.claim {
                claim.levels = claim.levels.by_side(&self.side, names);
            }
            let is_known = |name: &str| names.iter().any(|known| known == name);
            experiment.claim.retain(|claim| claim.holds.iter().flat_map(Relation::variants).all(is_known));
        }
        self.side = sides;
        self.check()?;
        Ok(self)
    }

    /// The experiments that were asked for, all of them if none was.
    /// Errors: the chapter has no experiment of a name.
    pub fn choose(&self, names: &[String]) -> Result<Vec<&Experiment>, Error> {
        if names.is_empty() {
            return Ok(self.experiment.iter().collect());
        }
        let find = |name: &String| {
            let found = self.experiment.iter().find(|experiment| experiment.name == *name);
            found.ok_or_else(|| {
                let known: Vec<&str> = self.experiment.iter().map(|known| known.name.as_str()).collect();
                let hint = nearest(name, known.iter().copied())
                    .map_or(format!("\nhelp: known: {}", known.join(", ")), |near| {
                        format!("\nhelp: did you mean `{near}`?")
                    });
                Error::Asked(format!("the chapter has no experiment `{name}`{hint}"))
            })
        };
        names.iter().map(find).collect()
    }
}

impl Experiment {
    /// Returns the changes of this experiment's scenario at this size, those of the side last.
    pub fn settings(&self, side: &Side, scale: Option<&str>) -> Vec<Setting> {
        let mut all = settings(&self.set, "[[experiment]] set");
        if let Some(scaled) = scale.and_then(|scale| self.scaled_set.get(scale)) {
            all.extend(settings(scaled, "[[experiment]] scaled_set"));
        }
        all.extend(side.settings());
        all
    }

    /// The sizes it has: the full one, which has no name, and smaller ones.
    pub fn scales(&self) -> impl Iterator<Item = Option<&str>> {
        std::iter::once(None).chain(self.scaled.keys().map(|scale| Some(scale.as_str())))
    }

    /// The path of its scenario at this size.
    /// Errors: it has no such size.
    pub fn scenario_at(&self, scale: Option<&str>) -> Result<&str, Error> {
        let Some(scale) = scale else { return Ok(&self.scenario) };
        self.scaled.get(scale).map(String::as_str).ok_or_else(|| {
            let known: Vec<&str> = self.scaled.keys().map(String::as_str).collect();
            Error::Asked(match known.is_empty() {
                true => format!("--scale {scale}: experiment `{}` has no other valid size", self.name),
                false => format!("--scale {scale}: experiment `{}` has {}", self.name, known.join(", ")),
            })
        })
    }
}

impl Side {
    /// Returns its changes of a scenario, as for `--set`.
    pub fn settings(&self) -> Vec<Setting> {
        settings(&self.set, "[[side]] set")
    }
}

fn settings(knobs: &Knobs, option: &'static str) -> Vec<Setting> {
    let setting = |(key, value): (&str, &pageout_sim::scenario::Scalar)| Setting {
        key: key.to_string(),
        value: written(value),
        option,
        written_at: None,
    };
    knobs.iter().map(setting).collect()
}

pub(crate) fn no_twins<'a>(names: impl Iterator<Item = &'a String>, what: &str) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        holds!(seen.insert(name), "duplicate {what} `{name}`");
    }
    holds!(!seen.is_empty(), "no {what}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
title = "t"
source = "s"
[[side]]
name = "before"
[[side]]
name = "after"
set = { kernel.profile = "lru" }
[[experiment]]
name = "one"
title = "o"
scenario = "one.toml"
scaled = { small = "one-small.toml" }
scaled_set = { small = { seed = 7 } }
[[experiment.claim]]
row = "misses"
figures = ["task reader: misses"]
published = { change = -0.5 }
"#;

    #[test]
    fn a_chapter_reads_back_what_it_says() {
        let chapter = Chapter::parse("a.toml", GOOD).unwrap();
        let one = &chapter.choose(&[]).unwrap()[0];
        assert_eq!(one.scenario_at(None).unwrap(), "one.toml");
        assert_eq!(one.scenario_at(Some("small")).unwrap(), "one-small.toml");
        assert_eq!(one.claim[0].published, Some(Published::Change(-0.5)));
        assert_eq!(chapter.side[1].settings()[0].to_string(), "kernel.profile=lru");
        let told = |scale| -> Vec<String> {
            one.settings(&chapter.side[1], scale).iter().map(ToString::to_string).collect()
        };
        assert_eq!(told(None), ["kernel.profile=lru"]);
        assert_eq!(told(Some("small")), ["seed=7", "kernel.profile=lru"]);
    }

    #[test]
    fn what_is_wrong_with_a_chapter_is_said_with_its_place() {
        for (from, to, parts) in [
            (
                "scaled_set = { small",
                "scaled_set = { tiny",
                &["experiment `one`", "`scaled_set` has `tiny`"][..],
            ),
            ("figures", "figure", &["line 17", "unknown field `figure`", "figures"]),
            ("change = -0.5", "chagne = -0.5", &["line 18", "unknown variant `chagne`"]),
            ("change = -0.5", "change = -1.5", &["experiment `one`, row `misses`", "-1 or more"]),
            (
                "change = -0.5",
                "levels = { before = 0, after = 1 }",
                &["row `misses`", "expected `before` above 0"],
            ),
            ("name = \"after\"", "name = \"before\"", &["duplicate [[side]] `before`"]),
            ("[\"task reader: misses\"]", "[]", &["row `misses`", "no figures"]),
            (
                "published = { change = -0.5 }",
                "levels = [1, 2, 3]",
                &["row `misses`", "found 3 levels", "expected at most 2"],
            ),
            (
                "published = { change = -0.5 }",
                "levels = { afer = 1 }",
                &["row `misses`", "unknown side `afer`"],
            ),
            ("published = { change = -0.5 }", "levels = 1", &["a list, one a side"]),
            (
                "published = { change = -0.5 }",
                "holds = \"afer == 0\"",
                &["unknown side `afer`", "before, after"],
            ),
            (
                "change = -0.5 }",
                "change = -0.5 }\nholds = \"after == 0\"",
                &["row `misses`", "a published change excludes `holds`"],
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Chapter::parse("a.toml", &GOOD.replacen(from, to, 1)).unwrap_err();
            let told = error.to_string();
            for part in parts.iter().chain(&["a.toml"]) {
                assert!(told.contains(part), "{to}: expected {part:?} in {told}");
            }
        }
    }

    #[test]
    fn an_experiment_or_size_that_is_not_there_is_an_error_that_names_those_that_are() {
        let chapter = Chapter::parse("a.toml", GOOD).unwrap();
        let error = chapter.choose(&["on".to_string()]).unwrap_err();
        assert!(error.to_string().contains("did you mean `one`?"));
        let error = chapter.experiment[0].scenario_at(Some("smaller")).unwrap_err();
        assert!(error.to_string().contains("has small"));
    }
}
