//! Files of a crate that import each other in a circle are few: a reader has to know all of a circle to know one of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module's path below its crate.
type Module = Vec<String>;

/// The most files of a circle, by crate. A circle of more than eight is one to break: these numbers only fall.
const LARGEST: &[(&str, usize)] = &[
    ("cache", 0),
    ("conformance", 0),
    ("engine", 19),
    ("kerneltext", 2),
    ("lab", 0),
    ("live", 15),
    ("mm", 7),
    ("policy", 0),
    ("record", 2),
    ("rules", 4),
    ("sim", 4),
    ("study", 5),
    ("truth", 8),
    ("workload", 0),
];

/// Floors of the lab, the lowest first: a file imports from its own floor and from those below.
const FLOORS: &[&[&str]] = &[
    &["signals", "failure", "program"],
    &["print"],
    &["report", "tracing"],
    &["user_policy", "baselines", "cli"],
    &["context"],
    &["context"],
    &["asked"],
    &["commands"],
    &["api"],
];

#[test]
fn no_file_of_the_lab_imports_from_a_floor_above() {
    let floor = |module: &Module| {
        let room = module.first().expect("the root imports, and is not imported from");
        FLOORS
            .iter()
            .position(|rooms| rooms.contains(&room.as_str()))
            .unwrap_or_else(|| panic!("{room} has no floor"))
    };
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for (from, imported) in imports(&modules).into_iter().filter(|(from, _)| !from.is_empty()) {
        for to in imported {
            assert!(floor(to) <= floor(from), "{} imports from {}, above it", from.join("::"), to.join("::"));
        }
    }
}

/// Statics of the lab, by module. The operating system sends a signal to the process, so the thread that receives it has no value to look into.
const STATICS: &[(&str, &str)] = &[("signals", "PENDING")];

#[test]
fn lab_state_of_the_process_is_what_signals_need() {
    let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let mut found = Vec::new();
    for (module, text) in &modules {
        let module = module.join("::");
        assert!(!text.contains("thread_local!"), "{module}: threads of a call share its Context");
        let words: Vec<&str> = text.split_whitespace().collect();
        let statics = words.windows(2).filter(|pair| pair[0] == "static");
        found.extend(statics.map(|pair| (module.clone(), pair[1].trim_end_matches(':').to_string())));
    }
    let allowed = STATICS.iter().map(|(module, name)| (module.to_string(), name.to_string()));
    assert_eq!(found, allowed.collect::<Vec<_>>(), "a command finds its inputs in its Context");
}

#[test]
fn circles_of_imports_do_not_grow() {
    for (name, most) in LARGEST {
        let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"));
        assert!(!modules.is_empty(), "there is no crate {name}");
        let circle = largest_circle(&imports(&modules));
        let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
        assert_eq!(names.len(), *most, "files of {name} that import each other: {}", names.join(", "));
    }
}

/// Texts of a crate's files, without their tests.
fn modules(source: &Path) -> BTreeMap<Module, String> {
    let (mut modules, mut folders) = (BTreeMap::new(), vec![(PathBuf::from(source), Module::new())]);
    while let Some((folder, above)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let module: Module = above.iter().cloned().chain([name.clone()]).collect();
            if path.is_dir() {
                folders.push((path, module));
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                let is_root = above.is_empty() && (name == "lib" || name == "main");
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
                modules.insert(if is_root { Module::new() } else { module }, code.join(" "));
            }
        }
    }
    modules
}

/// Modules that each imports from, but for the crate's root.
fn imports(modules: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<&Module>> {
    let of = |module: &Module, text: &str| -> BTreeSet<&Module> {
        let statements = text.split("use ").skip(1).filter_map(|rest| rest.split_once(';'));
        let paths = statements.flat_map(|(tree, _)| paths(tree.trim()));
        let found = paths.filter_map(|path| {
            let mut absolute = match path.first()?.as_str() {
                "crate" => Module::new(),
                "self" => module.clone(),
                "super" => module[..module.len().saturating_sub(1)].to_vec(),
                _ => return None,
            };
            for step in &path[1..] {
                match step.as_str() {
                    "super" => _ = absolute.pop(),
                    step => absolute.push(step.to_string()),
                }
            }
            // The longest part of the path that is a file.
            while !modules.contains_key(&absolute) {
                absolute.pop()?;
            }
            modules.get_key_value(&absolute).map(|(of, _)| of)
        });
        found.filter(|of| *of != module && !of.is_empty()).collect()
    };
    modules.iter().map(|(module, text)| (module, of(module, text))).collect()
}

/// The paths of a `use`, one for each leaf of its braces.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let Some((before, behind)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap();
        return vec![name.split("::").map(|step| step.trim().to_string()).collect()];
    };
    let inside = behind.rsplit_once('}').map_or(behind, |(inside, _)| inside);
    let (mut leaves, mut depth, mut leaf) = (Vec::new(), 0, String::new());
    for letter in inside.chars() {
        match letter {
            ',' if depth == 0 => leaves.push(std::mem::take(&mut leaf)),
            letter => {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                leaf.push(letter);
            }
        }
    }
    leaves.push(leaf);
    let leaves = leaves.iter().map(|leaf| leaf.trim()).filter(|leaf| !leaf.is_empty());
    leaves.flat_map(|leaf| paths(&format!("{}{leaf}", before.trim()))).collect()
}

/// The modules of the largest circle: those that reach each other.
fn largest_circle<'a>(imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> BTreeSet<&'a Module> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = imports
        .keys()
        .map(|from| {
            let (mut reached, mut next) = (BTreeSet::new(), vec![*from]);
            while let Some(module) = next.pop() {
                next.extend(imports[module].iter().filter(|to| reached.insert(**to)));
            }
            (*from, reached)
        })
        .collect();
    let circle = |of: &&'a Module| -> BTreeSet<&'a Module> {
        imports
            .keys()
            .copied()
            .filter(|other| reached[*of].contains(other) && reached[other].contains(*of))
            .collect()
    };
    imports.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}
