//! `pageout new-policy`: a project for a policy of the user's own, with a first-in-first-out one to change and a test of the contract.

pub(crate) mod args; // what can be asked
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use args::NewPolicyArgs;

/// A file of a project: its path there, and its text.
type File = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../templates/", $folder, "/", $path, ".txt")))),+]
    };
}

const RUST: &[File] = files!("rust": "Cargo.toml", "README.md", "src/main.rs", "src/policy.rs");
const C: &[File] = files!("c": "Makefile", "README.md", "policy.c");
const PYTHON: &[File] = files!("python": "README.md", "policy.py");

/// Writes the project, and says what to do next.
pub(crate) fn run(args: &NewPolicyArgs, cx: &Context) -> Outcome {
    let name = args.name.as_str();
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_word);
    let is_taken = pageout_cache::POLICIES.iter().any(|row| row.name == name);
    if !is_name || name.len() > 40 {
        return Err(Failure::Input(anyhow::anyhow!(
            "NAME: invalid name: found `{name}`, expected up to 40 of a-z, 0-9, - and _, a letter first\nhelp: for example my-policy"
        )));
    }
    if is_taken || ["test", "pageout", "policy"].contains(&name) {
        return Err(Failure::Input(anyhow::anyhow!(
            "NAME: name is in use: found `{name}`, expected another name\nhelp: `pageout keys policy` lists the names in use"
        )));
    }
    let sources = match args.c || args.python {
        true => None,
        false => sources(args.pageout.as_deref())?,
    };
    let folder = Path::new(name);
    if folder.exists() {
        return Err(Failure::Input(anyhow::anyhow!(
            "{name}: the folder exists\nhelp: choose another name, or remove the folder"
        )));
    }
    let files = if args.c {
        C
    } else if args.python {
        PYTHON
    } else {
        RUST
    };
    let filled = |text: &str| {
        text.replace("{{name}}", name)
            .replace("{{module}}", &name.replace('-', "_"))
            .replace("{{Name}}", &type_name(name))
            .replace("{{lab}}", &dependency(sources.as_deref(), "lab"))
            .replace("{{policy}}", &dependency(sources.as_deref(), "policy"))
            .replace("{{contract}}", &contract(sources.as_deref()))
    };
    let write = |path: &str, text: &str| -> std::io::Result<()> {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
    };
    let cannot = |error: std::io::Error| {
        Failure::Output(std::io::Error::new(error.kind(), format!("{name}: {error}")))
    };
    for (path, text) in files {
        let path =
            if *path == "policy.py" { format!("{}.py", name.replace('-', "_")) } else { path.to_string() };
        write(&path, &filled(text)).map_err(cannot)?;
    }
    if args.c {
        write("pageout_policy.h", pageout_plugin::HEADER).map_err(cannot)?;
    } else if let Some(sources) = &sources
        && let Ok(lock) = fs::read_to_string(sources.join("Cargo.lock"))
    {
        // The versions that pageout was tried with; Cargo leaves out what the project has no use for.
        write("Cargo.lock", &lock).map_err(cannot)?;
    }
    let next = match (args.c, args.python) {
        (true, _) => "make check".to_string(),
        (_, true) => format!("python {}.py", name.replace('-', "_")),
        _ => {
            format!("cargo test --release && cargo run --release -- replay TRACE --policy {name},s3-fifo,opt")
        }
    };
    cx.output.print_text(&format!(
        "{name} is written; its README.md explains the files. Next:\n  cd {name} && {next}\n"
    ))
}

/// The folder of this package. A released program, which has the page of `play` inside, names no folder of the machine that built it.
const BUILT_FROM: Option<&str> = if cfg!(feature = "play") { None } else { Some(env!("CARGO_MANIFEST_DIR")) };

/// The folder of pageout's sources: the one that is asked for, or the checkout that this program was built from. `None`: a program of a release,
/// whose crates come from the registry.
fn sources(asked: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let is_there = |folder: &Path| folder.join("crates/policy/Cargo.toml").is_file();
    let Some(folder) = asked else {
        return Ok(BUILT_FROM
            .and_then(|folder| Path::new(folder).ancestors().nth(2))
            .filter(|folder| is_there(folder))
            .and_then(|folder| fs::canonicalize(folder).ok()));
    };
    let whole = fs::canonicalize(folder).with_context(|| format!("--pageout {}", folder.display()))?;
    anyhow::ensure!(
        is_there(&whole),
        "{}: not a checkout of pageout: crates/policy is missing\nhelp: give a checkout with --pageout DIR",
        folder.display()
    );
    Ok(Some(whole))
}

/// A crate of pageout as a dependency: from these sources, or of this version from the registry.
fn dependency(sources: Option<&Path>, name: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match sources {
        Some(sources) => format!("{{ path = \"{}/crates/{name}\" }}", toml_path(sources)),
        None => format!("\"{version}\""),
    }
}

/// Where the contract of policies stands.
fn contract(sources: Option<&Path>) -> String {
    match sources {
        Some(sources) => format!("`{}/crates/policy/src/contract.rs`", toml_path(sources)),
        None => "the documentation of the crate `pageout-policy`".to_string(),
    }
}

/// A path as a text of TOML has it.
fn toml_path(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/").replace('"', "\\\"")
}

/// `my-policy` as `MyPolicy`.
fn type_name(name: &str) -> String {
    let words = name.split(['-', '_']).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}
