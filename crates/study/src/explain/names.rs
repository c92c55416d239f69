//! Names of pages on the command line and in stories: those by which the scenario's author knows a page.
//!
//! `FILE:PAGE` is a page of a `[[file]]`, `TASK/OBJECT:PAGE` a page of a task's object. Objects are counted from 0 in the order
//! of the scenario. Copies of a task are `TASK.0`, `TASK.1` and so on, as in the result of a run.

use pageout_engine::{ObjectId, PageName};
use pageout_sim::Machine;
use pageout_sim::scenario::{Scenario, Task};

use crate::Error;
use crate::figures;
use crate::scenario::nearest::nearest;

/// Everything with pages, by its name.
#[derive(Debug)]
pub struct Names {
    ranges: Vec<Range>,
}

/// Pages that follow one another: those of a file or of a task's object.
#[derive(Debug)]
pub struct Range {
    /// `FILE` or `TASK/OBJECT`.
    pub name: String,
    /// The first page.
    pub first: PageName,
    /// The number of pages.
    pub pages: u64,
}

/// The tasks of a scenario by their names in results, copies one by one.
pub(super) fn tasks(scenario: &Scenario) -> impl Iterator<Item = (String, &Task)> {
    scenario.task.iter().flat_map(|task| (0..task.copies).map(move |copy| (task.copy_name(copy), task)))
}

impl Names {
    /// The names of a scenario's pages, in a machine that was built from it.
    pub fn of(scenario: &Scenario, machine: &Machine) -> Names {
        let engine = machine.engine();
        let mut ranges = Vec::new();
        for file in &scenario.file {
            let Some(id) = engine.figures().file_by_name(&file.name) else { continue };
            let first = PageName::File { file: id, page: 0 };
            ranges.push(Range { name: file.name.clone(), first, pages: engine.figures().file_pages(id) });
        }
        for (name, task) in tasks(scenario) {
            let Some(id) = machine.task_by_name(&name) else { continue };
            for at in 0..task.object.len() as u32 {
                let object = ObjectId(at);
                let (Ok(first), Some(pages)) =
                    (engine.figures().page_name(id, object, 0), engine.figures().object_pages(id, object))
                else {
                    continue;
                };
                ranges.push(Range { name: format!("{name}/{at}"), first, pages });
            }
        }
        Names { ranges }
    }

    /// All files and objects, in the order of the scenario. Objects of a `[[file]]` have its pages once more.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The page that `text` names. Errors: it names none.
    pub fn parse(&self, text: &str) -> Result<PageName, Error> {
        let wrong = |why: String| Error::asked(format!("--page {text}: {why}"));
        let (name, page) = text.rsplit_once(':').ok_or_else(|| {
            wrong(format!(
                "found no `:`, expected FILE:PAGE or TASK/OBJECT:PAGE\nhelp: for example --page {}",
                self.example()
            ))
        })?;
        let page: u64 = page.trim().parse().map_err(|_| {
            wrong(format!(
                "found page `{page}`, expected a number from 0\nhelp: for example --page {}",
                self.example()
            ))
        })?;
        let range = self.ranges.iter().find(|range| range.name == name);
        let range = range.ok_or_else(|| wrong(self.unknown(name)))?;
        if page >= range.pages {
            let (pages, last) = (figures::count(range.pages), range.pages - 1);
            return Err(wrong(format!("`{name}` has {pages} pages; the last page is {name}:{last}")));
        }
        Ok(match range.first {
            PageName::File { file, .. } => PageName::File { file, page },
            PageName::Anon { mm, page: first } => PageName::Anon { mm, page: first + page },
        })
    }

    /// A page as it is asked for.
    pub fn notation(&self, page: PageName) -> String {
        let within = self.ranges.iter().find_map(|range| match (range.first, page) {
            (PageName::File { file, .. }, PageName::File { file: other, page }) if file == other => {
                Some((range, page))
            }
            (PageName::Anon { mm, page: first }, PageName::Anon { mm: other, page })
                if mm == other && (first..first + range.pages).contains(&page) =>
            {
                Some((range, page - first))
            }
            _ => None,
        });
        within.map_or_else(|| format!("{page:?}"), |(range, page)| format!("{}:{page}", range.name))
    }

    /// The first page of a huge page, by one that is so many behind it.
    pub fn head(&self, page: PageName, behind: u16) -> Option<String> {
        match page {
            PageName::Anon { mm, page } => {
                Some(self.notation(PageName::Anon { mm, page: page - u64::from(behind) }))
            }
            PageName::File { .. } => None,
        }
    }

    fn example(&self) -> String {
        self.ranges.first().map_or_else(|| "server/0:17".to_string(), |range| format!("{}:17", range.name))
    }

    /// Returns the message about an unknown name.
    fn unknown(&self, name: &str) -> String {
        let all = || self.ranges.iter().map(|range| range.name.as_str());
        let within = |task: &str| {
            let prefix = format!("{task}/");
            all().filter(|known| known.starts_with(&prefix)).collect::<Vec<&str>>()
        };
        // A task without an object, or with one that it doesn't have.
        let task = name.rsplit_once('/').map_or(name, |(task, _)| task);
        let objects = within(task);
        if !objects.is_empty() {
            return format!(
                "unknown object `{name}` of task `{task}`\nhelp: it has {}",
                objects.iter().map(|object| format!("`{object}`")).collect::<Vec<_>>().join(", ")
            );
        }
        match nearest(name, all()) {
            Some(near) => format!("unknown file or object `{name}`\nhelp: did you mean `{near}`?"),
            None => format!(
                "unknown file or object `{name}`\nhelp: use one of {}",
                listed(&all().collect::<Vec<&str>>())
            ),
        }
    }
}

/// The first of some names.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let mut text = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    text
}
