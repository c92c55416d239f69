//! The bundled chapters, with the scenarios that they run; or those of a file.

use std::path::{Component, Path, PathBuf};

use super::chapter::Chapter;
use crate::error::{During as _, Error};
use crate::scenario::nearest::nearest;
use crate::scenario::source::Source;
use crate::shipped::shipped;

/// Names and files of the chapters.
pub const CHAPTERS: &[(&str, &str)] = &[
    ("damon-dama", "chapters/damon-dama.toml"),
    ("damon-fft", "chapters/damon-fft.toml"),
    ("damon-taobench", "chapters/damon-taobench.toml"),
    ("mglru", "chapters/mglru.toml"),
    ("no-writeback", "chapters/no-writeback.toml"),
    ("page-cache-promotion", "chapters/page-cache-promotion.toml"),
    ("page-cache-promotion-fio", "chapters/page-cache-promotion-fio.toml"),
    ("pghot", "chapters/pghot.toml"),
    ("pghot-fitted", "chapters/pghot-fitted.toml"),
    ("pghot-graph500", "chapters/pghot-graph500.toml"),
    ("zswap-lru", "chapters/zswap-lru.toml"),
];

/// Names and files of the chapters for real memory ([`super::live`]): each has a scenario that both machines can run.
pub const LIVE_CHAPTERS: &[(&str, &str)] = &[
    ("mglru", "chapters/live/mglru.toml"),
    ("page-cache-promotion", "chapters/live/page-cache-promotion.toml"),
    ("pghot", "chapters/live/pghot.toml"),
    ("zswap-lru", "chapters/live/zswap-lru.toml"),
    ("no-writeback", "chapters/live/no-writeback.toml"),
];

/// The place of a chapter, and so of the scenarios that it names.
#[derive(Debug)]
pub enum Place {
    /// In the program, at this path below `scenarios/`.
    Program(&'static str),
    /// In a file.
    File(PathBuf),
}

impl Place {
    /// Returns the place of the chapter of this name: one of the program's, or a file.
    pub fn find(name: &str) -> Result<Place, Error> {
        Place::among(CHAPTERS, name)
    }

    /// Returns the place of the live chapter of this name.
    pub fn find_live(name: &str) -> Result<Place, Error> {
        Place::among(LIVE_CHAPTERS, name)
    }

    fn among(chapters: &'static [(&'static str, &'static str)], name: &str) -> Result<Place, Error> {
        if let Some((_, path)) = chapters.iter().find(|(known, _)| *known == name) {
            return Ok(Place::Program(path));
        }
        if Path::new(name).extension().is_some_and(|suffix| suffix == "toml") {
            return Ok(Place::File(PathBuf::from(name)));
        }
        let names: Vec<&str> = chapters.iter().map(|(name, _)| *name).collect();
        let near = nearest(name, names.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("\nhelp: did you mean `{near}`?"));
        Err(Error::Asked(format!(
            "unknown chapter: found `{name}`, expected one of {}, or a FILE.toml with a custom one{hint}\nhelp: `pageout reproduce --list` describes the chapters",
            names.join(", ")
        )))
    }

    /// The chapter. Errors: it can't be read, or is wrong.
    pub fn chapter(&self) -> Result<Chapter, Error> {
        match self {
            Place::Program(path) => {
                let text = shipped(path).expect("the names of chapters are names of files, says a test");
                Chapter::parse(&format!("scenarios/{path}"), text)
            }
            Place::File(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.during(|| format!("cannot read chapter {}", path.display()))?;
                Chapter::parse(&path.to_string_lossy(), &text)
            }
        }
    }

    /// The path of a scenario that the chapter names: for people.
    pub fn path_of(&self, scenario: &str) -> PathBuf {
        match self {
            Place::Program(path) => Path::new("scenarios").join(beside(Path::new(path), scenario)),
            Place::File(path) => beside(path, scenario),
        }
    }

    /// A scenario that the chapter names.
    pub fn scenario(&self, scenario: &str) -> Result<Source, Error> {
        let path = self.path_of(scenario);
        match self {
            Place::Program(chapter) => {
                let name = beside(Path::new(chapter), scenario);
                let text = shipped(&name.to_string_lossy())
                    .ok_or_else(|| Error::Asked(format!("{} is not part of this program", path.display())))?;
                Source::parse(&path, text.to_string())
            }
            Place::File(_) => Source::read(&path),
        }
    }
}

/// A path that is written in the file `of`, without the steps up that it takes.
pub(crate) fn beside(of: &Path, path: &str) -> PathBuf {
    let mut whole = of.parent().map(Path::to_path_buf).unwrap_or_default();
    for step in Path::new(path).components() {
        let is_named = matches!(whole.components().next_back(), Some(Component::Normal(_)));
        match step {
            Component::ParentDir if is_named => _ = whole.pop(),
            Component::CurDir => {}
            step => whole.push(step),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_chapter_is_whole_and_its_scenarios_take_what_its_sides_set() {
        let all = CHAPTERS.iter().chain(LIVE_CHAPTERS);
        for (name, path) in all {
            let place = Place::Program(path);
            let chapter = place.chapter().unwrap();
            for experiment in &chapter.experiment {
                for scale in experiment.scales() {
                    let path = experiment.scenario_at(scale).unwrap();
                    let source = place.scenario(path).unwrap();
                    for side in &chapter.side {
                        let scenario = source.scenario(&experiment.settings(side, scale));
                        scenario.unwrap_or_else(|error| panic!("{name}, {path}, {}: {error}", side.name));
                    }
                }
            }
        }
    }

    #[test]
    fn a_scenario_is_found_from_where_its_chapter_lies() {
        assert_eq!(beside(Path::new("chapters/mglru.toml"), "a.toml"), Path::new("chapters/a.toml"));
        assert_eq!(beside(Path::new("chapters/mglru.toml"), "../a.toml"), Path::new("a.toml"));
        assert_eq!(beside(Path::new("../c/chapter.toml"), "../../a.toml"), Path::new("../../a.toml"));
        assert_eq!(beside(Path::new("chapter.toml"), "./a.toml"), Path::new("a.toml"));
    }
}
