//! Options of everything that prints results: their form, and where they go.

use std::path::PathBuf;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, ValueEnum, ValueHint};
use pageout_workload::trace;

use super::form::Form;

/// Options of everything that prints results.
#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print the result as JSON, with everything in it; if the workload fails, with `complete` false and the `error`
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// The form of the result; --out FILE tells it by the file's name
    #[arg(long, value_name = "FORM", value_parser = FormParser)]
    pub(crate) format: Option<Form>,

    /// Write the result to this file instead, when it is whole: .csv, .md, .json, .txt, or any with --format. A file of that name is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Only these figures, in this order, a column each: --figure policy,memory_bytes,miss_ratio
    ///
    /// They have the names of --format csv, in every form. A table of them has a line a row of the CSV.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) figure: Vec<String>,

    /// What --figure was called before
    #[arg(long, hide = true, value_parser = refuse_columns)]
    columns: Option<String>,

    /// Show no progress; without a terminal on stderr none is shown anyway
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Reads a form, and tells who names a format of traces what that option is called.
#[derive(Clone)]
struct FormParser;

impl TypedValueParser for FormParser {
    type Value = Form;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Form, clap::Error> {
        let parsed = EnumValueParser::<Form>::new().parse_ref(command, argument, value);
        let is_of_trace = value.to_str().is_some_and(|name| name.parse::<trace::Format>().is_ok());
        parsed.map_err(|mut error| {
            if is_of_trace {
                let name = value.to_string_lossy();
                let hint = format!("it is a format of traces, which is said by '--trace-format {name}'");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Form::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

fn refuse_columns(names: &str) -> Result<String, String> {
    Err(format!("this option is called --figure: --figure {names}"))
}
