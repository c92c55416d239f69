//! Errors of the command line, in the form of all errors: the place, what is wrong, then a line of help.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use pageout_study::scenario::nearest::nearest;

use crate::failure::more;

/// Returns the text of an error of clap. `command` has the names of the recognised commands, such as `trace info`.
pub(crate) fn told(error: &clap::Error, command: &str) -> String {
    let all = |kind| error.get(kind).map(words).unwrap_or_default();
    let first = |kind| all(kind).into_iter().next().unwrap_or_default();
    let argument = first(ContextKind::InvalidArg);
    let option = name(&argument);
    let program = format!("pageout {command}");
    let program = program.trim_end();
    // Clap suggests the least different name, however different it is.
    let near = |given: &str, kind| {
        let suggested = all(kind);
        let near = nearest(given, suggested.iter().map(String::as_str));
        near.map_or_else(|| more(command), |name| format!("did you mean `{name}`?"))
    };
    let (wrong, help) = match error.kind() {
        ErrorKind::InvalidValue => {
            let (value, allowed) = (first(ContextKind::InvalidValue), all(ContextKind::ValidValue));
            match value.as_str() {
                "" => (format!("{option}: missing value: expected {argument}"), more(command)),
                value => (
                    format!(
                        "{option}: invalid value: found `{value}`, expected one of {}",
                        allowed.join(", ")
                    ),
                    // A hint of this program's parser comes before the nearest value.
                    all(ContextKind::Suggested)
                        .into_iter()
                        .next()
                        .unwrap_or_else(|| near(value, ContextKind::SuggestedValue)),
                ),
            }
        }
        ErrorKind::ValueValidation => {
            (invalid(option, &first(ContextKind::InvalidValue), error), more(command))
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => (
            format!("{program}: unknown option: found `{argument}`"),
            near(&argument, ContextKind::SuggestedArg),
        ),
        ErrorKind::UnknownArgument => {
            (format!("{program}: unexpected argument: found `{argument}`"), more(command))
        }
        ErrorKind::InvalidSubcommand => {
            let given = first(ContextKind::InvalidSubcommand);
            let help = near(&given, ContextKind::SuggestedSubcommand);
            (format!("{program}: unknown command: found `{given}`"), help)
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = all(ContextKind::InvalidArg).join(", ");
            let usage = first(ContextKind::Usage);
            let usage = usage.trim_start_matches("Usage:").trim();
            (format!("{program}: missing {missing}"), format!("usage: {usage}"))
        }
        ErrorKind::ArgumentConflict => match name(&first(ContextKind::PriorArg)) {
            "" => (format!("{option}: found with an option that excludes it"), more(command)),
            prior if prior == option => {
                (format!("{option}: found twice, expected once"), "remove one of them".to_string())
            }
            prior => {
                (format!("{option} and {prior}: found both, expected one"), "remove one of them".to_string())
            }
        },
        _ => {
            let text = error.render().to_string();
            let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            (format!("{program}: {text}"), more(command))
        }
    };
    if wrong.contains("help: ") { wrong } else { format!("{wrong}\nhelp: {help}") }
}

/// Returns why a value is invalid: what its parser expects.
fn invalid(option: &str, value: &str, error: &clap::Error) -> String {
    let Some(source) = error.source() else {
        return format!("{option}: invalid value: found `{value}`");
    };
    let reason = source.to_string();
    let is_too_large = |error: &ParseIntError| *error.kind() == IntErrorKind::PosOverflow;
    let expected = match (source.downcast_ref::<ParseIntError>(), source.downcast_ref::<ParseFloatError>()) {
        (Some(error), _) if is_too_large(error) => "a smaller number".to_string(),
        (Some(_), _) => "a whole number from 0".to_string(),
        (None, Some(_)) => "a number".to_string(),
        (None, None) => match reason.strip_prefix(&format!("{value} is not in ")) {
            Some(range) => range_of(range),
            // The parsers of this program quote the value.
            None if reason.contains(&format!("`{value}`")) => return format!("{option}: {reason}"),
            None => return format!("{option}: found `{value}`: {reason}"),
        },
    };
    format!("{option}: invalid value: found `{value}`, expected {expected}")
}

/// Words for a range that clap writes as `1..=1000` or `1..18446744073709551615`.
fn range_of(range: &str) -> String {
    match range.split_once("..") {
        Some((from, to)) if to.trim_start_matches('=') == u64::MAX.to_string() => format!("{from} or more"),
        Some((from, to)) => format!("{from} to {}", to.trim_start_matches('=')),
        None => range.to_string(),
    }
}

/// The name of an argument, without its value: `--seed` of `--seed <N>`, `--timed` of `--timed[=<SPEED>]`.
fn name(argument: &str) -> &str {
    match argument.starts_with('-') {
        true => argument.split([' ', '[', '=']).next().unwrap_or_default(),
        false => argument,
    }
}

/// The texts of a value that clap adds to an error.
fn words(value: &ContextValue) -> Vec<String> {
    match value {
        ContextValue::String(text) => vec![text.clone()],
        ContextValue::Strings(texts) => texts.clone(),
        ContextValue::StyledStr(text) => vec![text.to_string()],
        ContextValue::StyledStrs(texts) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::commands::command_line::{self, Cli};

    fn error_of(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        told(&Cli::parse_with_matches(&words).unwrap_err(), &command_line::named(&words))
    }

    #[test]
    fn wrong_argument_has_place_found_expected_and_help() {
        for (line, expected) in [
            (
                "pageout run a.toml --seed -1",
                "--seed: invalid value: found `-1`, expected a whole number from 0\nhelp: `pageout help run` describes",
            ),
            ("pageout replay a.csv --seed -1", "--seed: invalid value: found `-1`, expected a whole number"),
            (
                "pageout validate d --simulations x",
                "--simulations: invalid value: found `x`, expected a whole number",
            ),
            (
                "pageout run a.toml --seed 99999999999999999999",
                "--seed: invalid value: found `99999999999999999999`, expected a smaller number\n",
            ),
            ("pageout compare a.toml --repeat 0", "--repeat: invalid value: found `0`, expected 1 to 1000\n"),
            (
                "pageout trace compressibility a --sample 0",
                "--sample: invalid value: found `0`, expected 1 or more\nhelp: `pageout help trace compressibility`",
            ),
            ("pageout replay a.csv --sample x", "--sample: invalid value: found `x`, expected a number\n"),
            (
                "pageout replay a.csv --channel fle",
                "--channel: invalid value: found `fle`, expected one of file, mapped, anonymous\nhelp: did you mean `file`?",
            ),
            ("pageout run a.toml --set x", "--set: found `x`, expected KEY=VALUE, for example"),
            ("pageout run a.toml --kernel 9.1", "--kernel: found `9.1`: unknown kernel version"),
            ("pageout run a.toml --figure", "--figure: missing value: expected --figure <NAME,...>\nhelp: "),
            (
                "pageout run a.toml --repport x",
                "pageout run: unknown option: found `--repport`\nhelp: did you mean `--report`?",
            ),
            (
                "pageout run a.toml --wrong",
                "pageout run: unknown option: found `--wrong`\nhelp: `pageout help run`",
            ),
            ("pageout run a.toml b", "pageout run: unexpected argument: found `b`\nhelp: "),
            ("pageout rum", "pageout: unknown command: found `rum`\nhelp: did you mean `run`?"),
            ("pageout xyz", "pageout: unknown command: found `xyz`\nhelp: `pageout -h` lists the commands"),
            ("pageout trace inf", "pageout trace: unknown command: found `inf`\nhelp: did you mean `info`?"),
            ("pageout replay", "pageout replay: missing <TRACE>...\nhelp: usage: pageout replay <TRACE>..."),
            (
                "pageout new-policy x --c --python",
                "--c and --python: found both, expected one\nhelp: remove one of them",
            ),
            (
                "pageout run a.toml --seed 1 --seed 2",
                "--seed: found twice, expected once\nhelp: remove one of them",
            ),
        ] {
            let told = error_of(line);
            assert!(told.starts_with(expected) && told.matches("help: ").count() == 1, "{line}:\n{told}");
        }
    }
}
