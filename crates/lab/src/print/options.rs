//! The options of all commands that print results: form and target. `pageout help output` describes them once for all commands.

use std::path::PathBuf;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, ValueEnum, ValueHint};
use pageout_workload::trace;

use super::form::Form;

/// The options of all commands that print results.
#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print the complete result as JSON
    ///
    /// If the workload fails, `complete` is false and `error` has the reason.
    #[arg(long, conflicts_with = "format", hide_short_help = true, hide_long_help = true)]
    json: bool,

    /// Form of the result; the default is the suffix of --out, or else `table`
    #[arg(long, value_name = "FORM", value_parser = FormParser, hide_short_help = true, hide_long_help = true)]
    pub(crate) format: Option<Form>,

    /// Write the result to FILE (created only when complete)
    ///
    /// The suffix selects the form: .csv, .md, .json, .txt or .parquet. With --format any name is accepted. An existing file is replaced.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, hide_long_help = true)]
    pub(crate) out: Option<PathBuf>,

    /// Print only these figures, in this order, one column each
    ///
    /// The names are those of --format csv in every form: --figure policy,memory_bytes,miss_ratio. A table has one line per row of the CSV.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        hide_short_help = true,
        hide_long_help = true
    )]
    pub(crate) figure: Vec<String>,

    /// The former name of --figure
    #[arg(long, hide = true, value_parser = refuse_columns)]
    columns: Option<String>,

    /// Show no progress; it is shown only if standard error is a terminal
    #[arg(long, short, hide_short_help = true, hide_long_help = true)]
    pub(crate) quiet: bool,
}

/// Parses a form. If the value is a format of traces, the error suggests `--trace-format`.
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
                let hint = format!("this is a trace format: use --trace-format {name}");
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
    Err(format!("the option is renamed: use `--figure {names}`"))
}
