//! The command line of `pageout` and its help.
//!
//! | help | what it has | made by |
//! |---|---|---|
//! | `-h` | one screen: the commands by purpose | `commands_by_purpose` |
//! | `run -h` | one screen: the common options | the definition itself |
//! | `run --help`, `help run` | all options, description and examples | `with_complete_help` |
//! | `help output` | the options that all commands share | `shared_options` |
//!
//! Both kinds of help have one row per option, so that the long one is two screens at most. `crates/lab/tests/examples` checks these limits.

use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser};

use super::{Command, ROWS};
use crate::print::options::OutputOptions;
use crate::user_policy::UserPolicyArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the result is complete
  1  the simulated workload failed: out of memory, an I/O error, a page beyond
     the end of its file
  2  invalid input: command line, scenario, trace, dump, recording, custom policy
  3  the result could not be written: disk full, no permission, no directory
  4  the result differs from the scenario's expectations or the real kernel
  130, 143  interrupted by SIGINT or SIGTERM; the complete part is printed
If several runs fail, an interruption has precedence, then code 2. A reader that
closes the pipe early (`pageout ... | head`) is not an error.

Options of all commands: `pageout help output`
Documentation: docs/reference/commands.md";

const START: &str = "\
Start with:
  # a scenario
  pageout run scenarios/zipf-under-limit.toml
  # five publications, their tables compared with simulated ones
  pageout tour --report tour.html
  # the miss-ratio curve of a trace
  pageout replay mytrace.csv --memory 1%..100%/50log --policy lru,s3-fifo,opt

What each command does: `pageout help`; its options and examples: `pageout help COMMAND`
Options of all commands: `pageout help output`";

/// The version with profile and commit: speed depends on the profile, and a bug report needs the commit.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (profile ",
    env!("PAGEOUT_PROFILE"),
    ", commit ",
    env!("PAGEOUT_COMMIT"),
    ")"
);

/// The layout of complete help: the summary first, then the description.
const LAYOUT: &str = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The layout of the help of `pageout -h`, before the commands. A list with a row per command is longer than a screen.
const ROOT_LAYOUT: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n";

/// The topic of [`shared_options`]: `pageout help output`.
const TOPIC: &str = "output";

/// Simulate Linux page reclaim and memory tiering
///
/// Replays the kernel's reclaim rules (LRU lists, direct reclaim, refaults, cgroup limits, swap) on a simulated machine of any shape. Runs
/// are deterministic and take seconds. Results have the kernel's counter names.
#[derive(Debug, Parser)]
#[command(
    name = "pageout",
    version = VERSION,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(after_help = START, after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) user_policies: UserPolicyArgs,
}

impl Cli {
    /// Parses the words of a command line, of which the first is the program's name.
    pub(crate) fn parse_with_matches(words: &[OsString]) -> clap::error::Result<(Cli, ArgMatches)> {
        let is_named = |name: &str| words.iter().skip(1).any(|word| word == name);
        // Both definitions parse alike.
        let command =
            if is_named("--help") || is_named("help") { with_complete_help() } else { definition() };
        let matches = match words {
            [_, help, topic] if help == "help" && topic == TOPIC => {
                shared_options().try_get_matches_from([TOPIC, "--help"])?
            }
            [program, help, of @ ..] if help == "help" => {
                let of = of.iter().filter(|word| *word != "help").map(OsString::as_os_str);
                let words = [program.as_os_str()].into_iter().chain(of).chain([OsStr::new("--help")]);
                command.try_get_matches_from(words)?
            }
            _ => command.try_get_matches_from(words)?,
        };
        Ok((Cli::from_arg_matches(&matches)?, matches))
    }
}

/// Returns the names of the commands in the words of a command line: `run`, or `trace info`. Empty if no command is known.
pub(crate) fn named(words: &[OsString]) -> String {
    let root = Cli::command();
    let mut names: Vec<&str> = Vec::new();
    let mut command = &root;
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        match command.find_subcommand(word) {
            Some(found) => {
                names.push(word);
                command = found;
            }
            // Options stand before the command, or after it.
            None if names.is_empty() => {}
            None => break,
        }
    }
    names.join(" ")
}

/// The command line, whose options accept numbers below 0: their parsers reject them with the range.
fn parsed() -> clap::Command {
    let is_option = |arg: &Arg| arg.get_long().is_some() && arg.get_action().takes_values();
    each_command(Cli::command(), |command, _, _| {
        command.mut_args(|arg| if is_option(&arg) { arg.allow_negative_numbers(true) } else { arg })
    })
}

/// Returns the definition of the command line. Its help is that of `-h`.
pub(crate) fn definition() -> clap::Command {
    let root = parsed().help_template(format!("{ROOT_LAYOUT}{}{{after-help}}", commands_by_purpose()));
    each_command(root, |command, path, _| {
        let mut end = format!("All options and examples: `pageout help {path}`");
        if has_result(&command) {
            end += &format!("\nOptions of all commands (--json, --out FILE ...): `pageout help {TOPIC}`");
        }
        command.after_help(end)
    })
}

/// Returns the same definition with the help of `--help`.
pub(crate) fn with_complete_help() -> clap::Command {
    let root = each_command(parsed(), |command, _, chapter| {
        let mut end = command.get_after_long_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
        if has_result(&command) {
            end += &format!("Options of all commands (--json, --out FILE ...): `pageout help {TOPIC}`\n");
        }
        end += &format!("Documentation: docs/reference/commands.md#{}", anchor(chapter));
        complete(command).after_help(end)
    });
    complete(root).after_help(EXIT_CODES)
}

/// Returns the names of the commands, with a line per purpose.
fn commands_by_purpose() -> String {
    let root = Cli::command();
    let is_listed = |name: &str| root.find_subcommand(name).is_some_and(|command| !command.is_hide_set());
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for row in ROWS {
        let name = row.module.replace('_', "-");
        if !is_listed(&name) {
            continue;
        }
        match lines.last_mut() {
            Some((purpose, names)) if *purpose == row.purpose => names.push(name),
            _ => lines.push((row.purpose, vec![name])),
        }
    }
    let width = lines.iter().map(|(purpose, _)| purpose.len()).max().unwrap_or_default();
    let lines = lines.iter().map(|(purpose, names)| format!("  {purpose:width$}  {}\n", names.join(", ")));
    std::iter::once("Commands:\n".to_string()).chain(lines).collect()
}

/// Returns the options that all commands share, as a command of its own whose `--help` describes them.
pub(crate) fn shared_options() -> clap::Command {
    let command = clap::Command::new("pageout help output");
    UserPolicyArgs::augment_args(OutputOptions::augment_args(command))
        .about("Options of all commands")
        .long_about(Resettable::Reset)
        .override_usage("pageout COMMAND [OPTIONS]")
        .max_term_width(100)
        .disable_help_flag(true)
        .arg(Arg::new("help").long("help").action(ArgAction::HelpLong).hide(true))
        .mut_args(|arg| arg.hide_short_help(false).hide_long_help(false))
}

/// Returns true if `pageout help output` describes this option.
pub(crate) fn is_shared(arg: &Arg) -> bool {
    arg.is_hide_long_help_set()
}

/// Returns true if a command prints a result, in any form.
fn has_result(command: &clap::Command) -> bool {
    command.get_arguments().any(|arg| arg.get_id() == "out")
}

/// Changes each command, given its path (`trace info`) and the heading of its chapter.
fn each_command(
    mut root: clap::Command,
    change: impl Fn(clap::Command, &str, &str) -> clap::Command,
) -> clap::Command {
    for row in ROWS {
        let name = row.module.replace('_', "-");
        root = root.mut_subcommand(&name, |mut command| {
            let below: Vec<String> = command.get_subcommands().map(|of| of.get_name().to_string()).collect();
            for of in below {
                command = command
                    .mut_subcommand(&of, |command| change(command, &format!("{name} {of}"), row.chapter));
            }
            change(command, &name, row.chapter)
        });
    }
    root
}

/// Shows all options and the description of a command in its help, with one row per option: clap's own long help takes at least three lines for each.
fn complete(command: clap::Command) -> clap::Command {
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let description = long.split_once("\n\n").map(|(_, description)| description.to_string());
    command
        .mut_args(|arg| {
            // A summary has no period.
            let help =
                arg.get_long_help().or(arg.get_help()).map(|help| help.to_string().replace("\n\n", ". "));
            let is_hidden = is_shared(&arg);
            arg.help(help.unwrap_or_default()).long_help(Resettable::Reset).hide_short_help(is_hidden)
        })
        .long_about(Resettable::Reset)
        .after_long_help(Resettable::Reset)
        .before_help(description.map_or(Resettable::Reset, |text| Resettable::Value(text.into())))
        .help_template(LAYOUT)
        .disable_help_flag(true)
        .arg(Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help"))
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    heading.replace(' ', "-").replace(',', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_pass_the_checks_of_clap() {
        definition().debug_assert();
        with_complete_help().debug_assert();
        shared_options().debug_assert();
    }

    #[test]
    fn help_of_a_command_equals_its_long_option() {
        let help = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            Cli::parse_with_matches(&words).expect_err("help ends the parser").to_string()
        };
        assert_eq!(
            help(&["pageout", "help", "trace", "info"]),
            help(&["pageout", "trace", "info", "--help"])
        );
        assert_eq!(help(&["pageout", "help"]), help(&["pageout", "--help"]));
        assert!(
            help(&["pageout", "run", "-h"]).lines().count()
                < help(&["pageout", "run", "--help"]).lines().count()
        );
    }

    #[test]
    fn help_output_describes_each_shared_option() {
        let words: Vec<OsString> = ["pageout", "help", TOPIC].iter().map(OsString::from).collect();
        let help = Cli::parse_with_matches(&words).expect_err("help ends the parser").to_string();
        let command = definition();
        let run = command.find_subcommand("run").expect("it is a row");
        let shared: Vec<&str> =
            run.get_arguments().filter(|arg| is_shared(arg)).filter_map(|arg| arg.get_long()).collect();
        assert!(shared.contains(&"json") && shared.contains(&"out"), "{shared:?}");
        for option in shared {
            assert!(help.contains(&format!("--{option}")), "--{option} is missing in:\n{help}");
        }
    }
}
