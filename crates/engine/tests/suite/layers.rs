//! State, core, engine: each layer is written without a word of those above it.
//!
//! ```text
//!   engine    tasks, waits, kernel files        may name all
//!   core      every mechanism                   names no task and no engine
//!   state     plain data                        imports state only
//! ```
//! What a file imports through the module of a room (`crate::lru::Place`) counts as that module's own; so a room's `mod.rs` that
//! state imports from is state, and mechanisms are in files beside it.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a test that reads source files

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Layer {
    State,
    Core,
    Engine,
}

/// Rooms and files that are not core: the longest path that matches decides.
const LAYERS: &[(&str, Layer)] = &[
    ("machine/", Layer::State),
    ("memory/", Layer::State),
    ("pghot/hotness.rs", Layer::State),
    ("pghot/mod.rs", Layer::State),
    ("pghot/record.rs", Layer::State),
    ("pghot/sections.rs", Layer::State),
    ("promotion/mod.rs", Layer::State),
    ("page_alloc/", Layer::State),
    ("page_alloc/alloc.rs", Layer::Core),
    ("page_alloc/slow_path.rs", Layer::Core),
    ("tiers/", Layer::State),
    ("swap/mod.rs", Layer::State),
    ("swap/slots.rs", Layer::State),
    ("swap/priority.rs", Layer::State),
    ("swap/contents.rs", Layer::State),
    ("swap/zram.rs", Layer::State),
    ("swap/zspool.rs", Layer::State),
    ("swap/window.rs", Layer::State),
    ("zswap/mod.rs", Layer::State),
    ("memcg/mod.rs", Layer::State),
    ("kmem/mod.rs", Layer::State),
    ("kmem/slab.rs", Layer::State),
    ("stat/mod.rs", Layer::State),
    ("numa_balancing/mod.rs", Layer::State),
    ("numa_balancing/period.rs", Layer::State),
    ("numa_balancing/threshold.rs", Layer::State),
    ("lru/mod.rs", Layer::State),
    ("lru/lruvec.rs", Layer::State),
    ("lru/generations/mod.rs", Layer::State),
    ("lru/generations/lists.rs", Layer::State),
    ("lru/generations/references.rs", Layer::State),
    ("harvest/mod.rs", Layer::State),
    ("harvest/bloom.rs", Layer::State),
    ("harvest/iteration.rs", Layer::State),
    ("balance/mod.rs", Layer::State),
    ("balance/feedback.rs", Layer::State),
    ("workingset/mod.rs", Layer::State),
    ("writeback/votes.rs", Layer::State),
    ("kernfs/error.rs", Layer::State),
    ("kernfs/", Layer::Engine),
    ("serve/", Layer::Engine),
    ("lib.rs", Layer::Engine),
];

fn layer_of(file: &str) -> Layer {
    let matching = LAYERS.iter().filter(|(path, _)| file.starts_with(path));
    matching.max_by_key(|(path, _)| path.len()).map_or(Layer::Core, |&(_, layer)| layer)
}

/// The source files by their paths in `src/`, without comments and without their tests.
fn sources() -> BTreeMap<String, String> {
    fn collect(folder: &Path, root: &Path, into: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, into);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let code: Vec<&str> =
                    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                into.insert(name, code.join("\n"));
            }
        }
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeMap::new();
    collect(&root, &root, &mut files);
    files.retain(|name, _| !name.starts_with("testing/"));
    files
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The file that a path such as `lru::batch::Batch` leads to.
fn file_of<'a>(path: &[&str], files: &'a BTreeMap<String, String>) -> Option<&'a str> {
    (1..=path.len()).rev().find_map(|steps| {
        let path = path[..steps].join("/");
        let candidates = [format!("{path}.rs"), format!("{path}/mod.rs")];
        candidates.iter().find_map(|file| files.get_key_value(file)).map(|(name, _)| name.as_str())
    })
}

#[test]
fn state_names_no_core_and_core_names_no_engine() {
    for (file, code) in &sources() {
        let forbidden: &[&str] = match layer_of(file) {
            Layer::State => &["Core", "Engine", "Task"],
            Layer::Core => &["Engine", "Task"],
            Layer::Engine => &[],
        };
        let named = words(code).find(|word| forbidden.contains(word));
        assert_eq!(named, None, "{file} is {:?}", layer_of(file));
    }
}

#[test]
fn imports_lead_down() {
    let files = sources();
    for (file, code) in &files {
        for import in code.split("crate::").skip(1) {
            let path: Vec<&str> = import
                .split("::")
                .take_while(|step| step.starts_with(|c: char| c.is_lowercase()))
                .map(|step| step.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap())
                .collect();
            let Some(to) = file_of(&path, &files) else { continue };
            assert!(
                layer_of(to) <= layer_of(file),
                "{file} ({:?}) imports from {to} ({:?})",
                layer_of(file),
                layer_of(to)
            );
        }
    }
}

#[test]
fn every_name_in_the_table_of_layers_exists() {
    let files = sources();
    for (path, _) in LAYERS {
        assert!(files.keys().any(|file| file.starts_with(path)), "there is no {path}");
    }
}
