//! The form of a result, and the options of the command line that choose it. Every command has the same ones.
//!
//! ```text
//!   the command ─▶ text with tables ─▶ table, plain, markdown  ┐
//!               └▶ JSON ─▶ json, csv and parquet (rows)        ┴▶ standard output, or --out FILE when it is complete
//! ```

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::builder::PossibleValue;

use super::outputs;

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
            Form::Plain => "Text and tables of any width",
            Form::Csv => "One row per cell; column names are stable and contain the unit",
            Form::Markdown => "Text with Markdown tables",
            Form::Json => "The complete result, as --json",
            Form::Parquet => {
                "The rows of the CSV in typed columns; needs --out and a build with the feature `parquet`"
            }
        }
    }

    /// Returns true if it is made of the result as data, not as text.
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

/// The options of a result.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) form: Form,
    pub(super) file: Option<PathBuf>,
    pub(super) figures: Vec<String>,
    pub(super) is_quiet: bool,
}

impl Asked {
    /// Reads the options of a command before it begins. Errors: they name no form, or the result would replace an input.
    pub(super) fn of(matches: &ArgMatches) -> anyhow::Result<Asked> {
        let command = innermost(matches);
        // Commands without a result have none of these.
        let is_given = |name: &str| command.try_contains_id(name).unwrap_or(false);
        if !["format", "out", "json", "figure"].into_iter().any(is_given) {
            return Ok(Asked::default());
        }
        let given = command.try_get_one::<Form>("format").ok().flatten().copied();
        let file = command.try_get_one::<PathBuf>("out").ok().flatten().cloned();
        let form = match (given, &file) {
            (Some(form), _) => form,
            (None, _) if is_set(command, "json") => Form::Json,
            (None, Some(path)) => Form::of_file(path).ok_or_else(|| {
                let is_page = path.extension().is_some_and(|suffix| suffix == "html" || suffix == "svg");
                let page = if is_page { "; --report writes reports and charts" } else { "" };
                anyhow::anyhow!(
                    "--out: unknown suffix: found `{}`, expected .csv, .md, .json, .txt or .parquet\nhelp: select the form with --format{page}",
                    path.display()
                )
            })?,
            (None, None) => Form::default(),
        };
        if form == Form::Parquet {
            anyhow::ensure!(
                cfg!(feature = "parquet"),
                "--format parquet: this build lacks the feature `parquet`\nhelp: cargo build --release --features parquet, or --out FILE.csv"
            );
            anyhow::ensure!(file.is_some(), "--format parquet: no output file\nhelp: add --out FILE.parquet");
        }
        file.as_deref().map_or(Ok(()), check_file)?;
        Ok(Asked { form, file, ..Asked::by_a_caller(matches) })
    }

    /// Reads the options that apply to a call from a program, which always receives JSON and never a file.
    pub(super) fn by_a_caller(matches: &ArgMatches) -> Asked {
        let command = innermost(matches);
        let figures = command.try_get_many::<String>("figure").ok().flatten();
        let figures = figures.map(|all| all.cloned().collect()).unwrap_or_default();
        Asked { form: Form::Json, file: None, figures, is_quiet: is_set(command, "quiet") }
    }
}

/// The options of the innermost subcommand.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, more)| innermost(more))
}

fn is_set(command: &ArgMatches, name: &str) -> bool {
    command.try_get_one::<bool>(name).ok().flatten().copied().unwrap_or(false)
}

/// Rejects a file of --out that the command may read, or that is a directory.
fn check_file(path: &Path) -> anyhow::Result<()> {
    // The command may read each file that is named next to it.
    let inputs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).filter(|input| *input != path).collect();
    outputs::check(&[("--out", path)], &inputs)?;
    anyhow::ensure!(
        !path.is_dir(),
        "--out: found the folder `{}`, expected a file\nhelp: name a file in it",
        path.display()
    );
    Ok(())
}
