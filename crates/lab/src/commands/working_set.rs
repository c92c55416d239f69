//! `pageout working-set`: how much memory machines have in use, from their `lru_gen` dumps, and where a new job would fit.
//!
//! ```text
//!   files ──machine──▶ machines with their dumps ──kerneltext::lru_gen──▶ brackets ──trend──▶ over time ──report──▶ text, JSON
//!                                                                         └───────rank───▶ for a job ────┘
//! ```
//! Nothing is printed unless every file was read to its end: a fleet with a machine missing would be ranked wrongly. With
//! `--skip-bad` bad files are left out, and every form of the result names them.

mod machine; // whose dumps, in which order
mod trend; // several dumps of a machine
mod rank; // machines for a job
mod report; // tables and JSON

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use pageout_kerneltext::lru_gen::working_set::Window;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{Size, TimeSpan};
use pageout_study::scenario::nearest::nearest;

use crate::cli::WorkingSetArgs;
use crate::failure::Outcome;
use crate::print::{figures, output};
use machine::Skipped;
use rank::{Job, Landing, Room, rank};
use report::{Landings, Report};
use trend::History;

/// Reads the dumps and prints the working sets, or the machines in the order in which a job should land on them.
pub(crate) fn run(args: &WorkingSetArgs) -> Outcome {
    let (window, within_ms) = parse_window(&args.within)?;
    let page_size = parse_page_size(&args.page_size)?;
    let job = args.job.as_deref().map(|text| size("--job", text)).transpose()?;
    let reserve = args.reserve.as_deref().map(parse_reserve).transpose()?;
    let sizes = Sizes::parse(&args.memory)?;

    let (machines, skipped) = machine::read(&args.files, args.generations as usize, args.skip_bad)?;
    for Skipped { problem, .. } in &skipped {
        output::remark(&format!("left out: {problem}"));
    }
    let question = Window { within_ms, has_swap: !args.no_swap };
    let histories: Vec<History> = machines.iter().map(|machine| History::of(machine, question)).collect();
    sizes.check(&histories, job.is_some())?;
    let rooms = histories.iter().map(|history| room(history, &sizes, reserve, page_size));
    let rooms = rooms.collect::<anyhow::Result<Vec<Option<Room>>>>()?;
    let landings = job.map(|size| {
        let job = Job { pages: size.0.div_ceil(page_size), has_swap: !args.no_swap };
        let landings = histories.iter().zip(&rooms).map(|(history, room)| {
            let room = room.expect("checked to be known of every machine");
            Landing::of(&history.machine.name, &history.estimate(), room, job)
        });
        let mut machines: Vec<Landing> = landings.collect();
        rank(&mut machines);
        Landings { job, machines }
    });
    let report = Report {
        window: &window,
        question,
        page_size,
        histories: &histories,
        rooms: &rooms,
        is_reserved: reserve.is_some(),
        landings,
        skipped: &skipped,
        all: args.all,
    };
    if args.output.is_data() {
        return output::print_json(&report.to_json());
    }
    output::print_text(&report.to_text())
}

/// The memory of one machine, if it was given.
fn room(
    history: &History,
    sizes: &Sizes,
    reserve: Option<Limit>,
    page_size: u64,
) -> anyhow::Result<Option<Room>> {
    let name = &history.machine.name;
    let Some(size) = sizes.of(name) else { return Ok(None) };
    let memory = size.0 / page_size;
    let listed = history.estimate().total().listed;
    ensure!(
        listed <= memory,
        "machine `{name}` has {} in its generations ({}), more than its memory of {}; is --page-size {} its page size?",
        figures::bytes(listed * page_size),
        history.latest().file,
        figures::bytes(memory * page_size),
        Size(page_size)
    );
    let reserved = match reserve {
        None => 0,
        Some(Limit::Size(size)) => size.0.div_ceil(page_size),
        Some(Limit::Percent(percent)) => (memory as f64 * percent / 100.0).ceil() as u64,
        Some(Limit::Max) => unreachable!("refused when the option was read"),
    };
    ensure!(reserved < memory, "--reserve leaves nothing of the memory of machine `{name}`");
    Ok(Some(Room { memory, reserved }))
}

/// How much memory machines have, by `--memory`.
#[derive(Debug, Default)]
struct Sizes {
    every: Option<Size>,
    by_name: BTreeMap<String, Size>,
}

impl Sizes {
    fn parse(options: &[String]) -> anyhow::Result<Sizes> {
        let mut sizes = Sizes::default();
        for option in options {
            let before = match option.rsplit_once('=') {
                None => sizes.every.replace(size("--memory", option)?),
                Some((name, text)) => sizes.by_name.insert(name.trim().to_string(), size("--memory", text)?),
            };
            let whose = option.rsplit_once('=').map_or("every machine", |(name, _)| name);
            ensure!(before.is_none(), "--memory {option}: the memory of {whose} is given twice");
        }
        Ok(sizes)
    }

    fn of(&self, machine: &str) -> Option<Size> {
        self.by_name.get(machine).copied().or(self.every)
    }

    /// Every size has a machine, and if there is a job, every machine a size.
    fn check(&self, histories: &[History], is_job: bool) -> anyhow::Result<()> {
        let names: Vec<&str> = histories.iter().map(|history| history.machine.name.as_str()).collect();
        if let Some(stranger) = self.by_name.keys().find(|name| !names.contains(&name.as_str())) {
            let hint = nearest(stranger, names.iter().copied())
                .map(|name| format!("; did you mean `{name}`?"))
                .unwrap_or_default();
            bail!("--memory {stranger}=...: there is no dump of a machine `{stranger}`{hint}");
        }
        let unknown: Vec<&str> = names.into_iter().filter(|name| self.of(name).is_none()).collect();
        ensure!(
            unknown.is_empty() || !is_job,
            "--job needs the memory of each machine, which dumps don't tell; write --memory 16GiB for all, or --memory {}",
            unknown.iter().map(|name| format!("{name}=16GiB")).collect::<Vec<_>>().join(",")
        );
        Ok(())
    }
}

fn size(option: &str, text: &str) -> anyhow::Result<Size> {
    let size: Size = text.trim().parse().with_context(|| format!("{option} {text}"))?;
    ensure!(size.0 > 0, "{option} {text}: write a size above 0");
    Ok(size)
}

fn parse_reserve(text: &str) -> anyhow::Result<Limit> {
    match text.parse() {
        Ok(Limit::Max) => bail!("--reserve max: write a size such as 1GiB or a percentage such as 5%"),
        Ok(limit) => Ok(limit),
        Err(message) => bail!("--reserve {text}: {message}, or a percentage such as 5%"),
    }
}

/// The window as it is shown, and in milliseconds. `m` alone is minutes here, since no window is measured in metres.
fn parse_window(text: &str) -> anyhow::Result<(String, u64)> {
    let text = text.trim();
    let shown = match text.strip_suffix('m') {
        Some(number) if number.ends_with(|c: char| c.is_ascii_digit() || c == ' ') => format!("{number}min"),
        _ => text.to_string(),
    };
    let span: TimeSpan = shown.parse().with_context(|| format!("--within {text}"))?;
    let within_ms = span.0 / 1_000_000;
    ensure!(within_ms > 0, "--within {text}: generations are dated in milliseconds; write 1ms or more");
    Ok((shown, within_ms))
}

fn parse_page_size(text: &str) -> anyhow::Result<u64> {
    let bytes = size("--page-size", text)?.0;
    ensure!(
        bytes.is_power_of_two() && (4096..=65536).contains(&bytes),
        "--page-size {text}: Linux has pages of 4KiB, 16KiB or 64KiB"
    );
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_duration_of_a_millisecond_or_more() {
        for (text, shown, within_ms) in [
            ("2m", "2min", 120_000),
            ("90 s", "90 s", 90_000),
            ("1.5h", "1.5h", 5_400_000),
            ("7ms", "7ms", 7),
        ] {
            assert_eq!(parse_window(text).unwrap(), (shown.to_string(), within_ms));
        }
        for bad in ["2", "soon", "0s", "10us", "-1s", "m", ""] {
            assert!(parse_window(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_size_is_of_every_machine_or_of_one() {
        let sizes =
            |options: &[&str]| Sizes::parse(&options.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        let both = sizes(&["web1=32GiB", "16GiB"]).unwrap();
        assert_eq!((both.of("web1"), both.of("web2")), (Some(Size(32 << 30)), Some(Size(16 << 30))));
        for bad in [&["1GiB", "2GiB"][..], &["a=1GiB", "a=1GiB"], &["a=lots"], &["a=0"], &["a="]] {
            assert!(sizes(bad).is_err(), "{bad:?}");
        }
    }
}
