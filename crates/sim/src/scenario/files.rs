//! Index of a scenario's files by the names that objects refer to, and the sizes of objects.
//!
//! A scenario may have thousands of both, so files are found by an index that is made once.

use std::collections::BTreeMap;

use pageout_workload::Pattern;

use super::{File, Object, Size, TableError, Task};

/// `[[file]]` by name; of several that share one, which is refused elsewhere, the first.
pub struct Files<'a>(BTreeMap<&'a str, &'a File>);

impl Files<'_> {
    pub(super) fn of(files: &[File]) -> Files<'_> {
        let mut by_name = BTreeMap::new();
        for file in files {
            by_name.entry(file.name.as_str()).or_insert(file);
        }
        Files(by_name)
    }

    /// The file of this name.
    pub(super) fn get(&self, name: &str) -> Option<&File> {
        self.0.get(name).copied()
    }

    /// Pages of an object as far as the scenario says: its own size, or that of its file.
    pub fn object_pages(&self, object: &Object) -> Option<u64> {
        let size = match &object.file {
            Some(name) => self.get(name).map(|file| file.size),
            None => object.size,
        };
        size.map(Size::pages_ceil)
    }

    /// The pattern of an object's workload, whose pages are the requests that the object is accessed by; `None` without one.
    pub fn pattern_of(&self, object: &Object) -> Option<Result<Pattern, TableError>> {
        let requests = self.object_pages(object).map(|pages| pages.div_ceil(object.request_pages()));
        object.workload.as_ref().map(|workload| workload.pattern(requests))
    }

    /// Pages of a task's object: what the scenario says, or the most that the task's patterns reach.
    pub(super) fn pages_of(&self, task: &Task, index: usize) -> Option<u64> {
        self.object_pages(&task.object[index]).or_else(|| self.pages_reached(task, index))
    }

    /// The most pages of a task's object that the task's patterns reach; `None` if none does.
    pub(super) fn pages_reached(&self, task: &Task, index: usize) -> Option<u64> {
        let patterns = task.object.iter().enumerate().filter_map(|(own, object)| {
            let pattern = self.pattern_of(object)?.ok()?;
            pattern.object_pages(own as u32).get(&(index as u32)).copied()
        });
        patterns.max().map(|requests| requests.saturating_mul(task.object[index].request_pages()))
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    /// Each object of one task reads a file of its own by name. Looking through all files for each of these would take a billion
    /// comparisons.
    #[test]
    fn thirty_thousand_shared_files_are_checked_and_built_in_no_time() {
        const FILES: usize = 30_000;
        let files: Vec<String> =
            (0..FILES).map(|file| format!(r#"{{"name": "f{file}", "size": "2 pages"}}"#)).collect();
        let object = |file| {
            format!(
                r#"{{"channel": "file", "file": "f{file}", "workload": {{"pattern": "sequential", "pages": 1}}}}"#
            )
        };
        let objects: Vec<String> = (0..FILES).map(object).collect();
        let text = format!(
            r#"{{"memcg": [{{"path": "/a", "memory.max": "50%"}}], "file": [{}],
                 "task": [{{"name": "t", "memcg": "/a", "object": [{}]}}]}}"#,
            files.join(","),
            objects.join(",")
        );
        let scenario: Scenario = serde_json::from_str(&text).unwrap();
        assert_eq!(scenario.validate(), []);
        assert_eq!(scenario.percentages()[0].distinct_pages, 2 * FILES as u64);
        assert!(scenario.build().is_ok());
    }
}
