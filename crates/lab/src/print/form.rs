//! The form that a result is printed in, and where it goes: asked for once, on the command line, by whatever command.
//!
//! ```text
//!   the command ─▶ text with tables ─▶ table, plain, markdown  ┐
//!               └▶ JSON ─▶ json, csv and parquet (rows)        ┴▶ standard output, or --out FILE when it is whole
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use clap::ArgMatches;
use clap::builder::PossibleValue;

use super::outputs;
use super::unfinished::Unfinished;
use crate::call;
use crate::failure::{Failure, Outcome};

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    #[default]
    Table,
    Plain,
    Csv,
    Markdown,
    Json,
    Parquet,
}

impl Form {
    const ALL: [Form; 6] = [Form::Table, Form::Plain, Form::Csv, Form::Markdown, Form::Json, Form::Parquet];

    fn name(self) -> &'static str {
        match self {
            Form::Table => "table",
            Form::Plain => "plain",
            Form::Csv => "csv",
            Form::Markdown => "markdown",
            Form::Json => "json",
            Form::Parquet => "parquet",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Form::Table => "Text and tables that fit the terminal",
            Form::Plain => "The same, as wide as it is",
            Form::Csv => "A row a cell, with stable names of columns that have their units",
            Form::Markdown => "Text, and tables as Markdown has them",
            Form::Json => "Everything, as --json",
            Form::Parquet => {
                "The rows of the CSV in a file of typed columns, with --out; in a build with the feature `parquet`"
            }
        }
    }

    /// Whether it is made of the result as data, not as text.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Form::Csv | Form::Json | Form::Parquet)
    }

    /// The form that a file's name asks for.
    fn of_file(path: &Path) -> Option<Form> {
        match path.extension()?.to_str()? {
            "csv" => Some(Form::Csv),
            "md" => Some(Form::Markdown),
            "json" => Some(Form::Json),
            "txt" => Some(Form::Plain),
            "parquet" => Some(Form::Parquet),
            _ => None,
        }
    }
}

impl clap::ValueEnum for Form {
    fn value_variants<'a>() -> &'a [Form] {
        &Form::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.doc()))
    }
}

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    form: Form,
    file: Option<PathBuf>,
    figures: Vec<String>,
}

static ASKED: OnceLock<Asked> = OnceLock::new();
/// What is to be in the file.
static RESULT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The form of this command's result.
pub(crate) fn form() -> Form {
    if call::is_call() {
        return Form::Json;
    }
    ASKED.get().map_or(Form::default(), |asked| asked.form)
}

/// The figures that are asked for, by name; all if there are none.
pub(super) fn figures() -> &'static [String] {
    ASKED.get().map_or(&[], |asked| &asked.figures)
}

/// Whether the result is printed in rows, and not as the JSON that it is: as a CSV or Parquet, or with chosen figures in any form.
pub(super) fn has_rows() -> bool {
    matches!(form(), Form::Csv | Form::Parquet) || !figures().is_empty()
}

/// Takes the form, and the file, from the options of whatever command there is, before it begins.
pub(crate) fn ask(matches: &ArgMatches) -> anyhow::Result<()> {
    let mut command = matches;
    while let Some((_, more)) = command.subcommand() {
        command = more;
    }
    // Commands that print no result have none of these.
    let is_given = |name: &str| command.try_contains_id(name).unwrap_or(false);
    if !["format", "out", "json", "figure"].into_iter().any(is_given) {
        return Ok(());
    }
    let flag = |name: &str| command.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false);
    let given = command.try_get_one::<Form>("format").ok().flatten().copied();
    let file = command.try_get_one::<PathBuf>("out").ok().flatten().cloned();
    let figures = command.try_get_many::<String>("figure").ok().flatten().map(|all| all.cloned().collect());
    let figures: Vec<String> = figures.unwrap_or_default();
    let form = match (given, &file) {
        (Some(form), _) => form,
        (None, _) if flag("json") => Form::Json,
        (None, Some(path)) => Form::of_file(path).ok_or_else(|| {
            let is_page = path.extension().is_some_and(|suffix| suffix == "html" || suffix == "svg");
            let page = if is_page { "; a page with pictures, and a picture, is --report" } else { "" };
            anyhow::anyhow!(
                "--out {}: its name is none of .csv, .md, .json, .txt, .parquet, so --format has to say what it is to be{page}",
                path.display()
            )
        })?,
        (None, None) => Form::default(),
    };
    if form == Form::Parquet {
        anyhow::ensure!(
            cfg!(feature = "parquet"),
            "Parquet is a feature of the program that this build is without: cargo build --release --features parquet, or --out FILE.csv"
        );
        anyhow::ensure!(file.is_some(), "--format parquet makes a file: give --out FILE.parquet");
    }
    if let Some(path) = &file {
        // Whatever is named beside it may be read.
        let inputs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
        let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).filter(|input| *input != path).collect();
        outputs::check(&[("--out", path)], &inputs)?;
        anyhow::ensure!(!path.is_dir(), "--out {}: this is a directory: name a file in it", path.display());
    }
    let _ = ASKED.set(Asked { form, file, figures });
    Ok(())
}

/// Keeps `bytes` for the file, if there is to be one; says whether.
pub(super) fn keep(bytes: &[u8]) -> bool {
    let has_file = ASKED.get().is_some_and(|asked| asked.file.is_some());
    if has_file {
        RESULT.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }
    has_file
}

/// Whether a result goes to a file, where no terminal says how wide it may be.
pub(super) fn is_free() -> bool {
    form() != Form::Table || ASKED.get().is_some_and(|asked| asked.file.is_some())
}

/// Writes the file, if there is to be one and there is a result; a file of that name is replaced.
pub(crate) fn finish() -> Outcome {
    let Some(path) = ASKED.get().and_then(|asked| asked.file.as_ref()) else { return Ok(()) };
    let bytes = std::mem::take(&mut *RESULT.lock().unwrap_or_else(PoisonError::into_inner));
    if bytes.is_empty() {
        return Ok(());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_special = path.metadata().is_ok_and(|metadata| !metadata.is_file());
    let written = if is_special {
        std::fs::File::options().write(true).open(path).and_then(|mut file| file.write_all(&bytes))
    } else {
        Unfinished::new_in(directory).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.finish(path)
        })
    };
    let named = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("--out {}: {error}", path.display()))
    };
    written.map_err(named).map_err(Failure::Output)?;
    super::output::remark(&format!("the result is in {}", path.display()));
    Ok(())
}
