//! The working sets of machines: how much memory they have in use, from their `lru_gen` dumps, and where a new job would fit.
//!
//! ```text
//!   files ──machine──▶ machines with their dumps ──kerneltext::lru_gen──▶ brackets ──trend──▶ over time ──▶ Answer
//!                                                                         └───────rank───▶ for a job ────┘
//! ```
//! There is no answer unless every file was read to its end: a fleet with a machine missing would be ranked wrongly. With
//! [`Ask::skip_bad`] bad files are left out, and the answer names them.

pub mod machine; // whose dumps, in which order
pub mod rank; // machines for a job
pub mod trend; // several dumps of a machine
mod json; // the answer as data

use std::collections::BTreeMap;
use std::path::PathBuf;

use pageout_kerneltext::lru_gen::working_set::{Window, of_memcg};
use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{Size, TimeSpan};
use serde::{Deserialize, Serialize};

use self::machine::Skipped;
use self::rank::{Job, Landing, Room, rank};
use self::trend::History;
use crate::error::{During, Error, bail, ensure};
use crate::figures;
use crate::page_size;
use crate::scenario::nearest::nearest;
use crate::watch::Watcher;

/// Whose working sets are asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// Dumps of lru_gen, directories of them, or `-` for standard input. One or more.
    pub files: Vec<PathBuf>,
    /// Memory used within this time before the dump counts as in use: a duration of 1 ms or more. Default `2min`.
    pub within: String,
    /// The size of a job that is to be landed on one of the machines. Default none.
    pub job: Option<String>,
    /// The memory of every machine (`16GiB`), or of one (`web1=16GiB`). Default not known.
    pub memory: Vec<String>,
    /// Memory of each machine that a job can't have: a size, or a percentage. Default none.
    pub reserve: Option<String>,
    /// Skip files that are not complete dumps. Default false.
    pub skip_bad: bool,
    /// The machines have no swap. Default false.
    pub no_swap: bool,
    /// The size of the machines' pages: 4KiB, 16KiB or 64KiB. Default `4KiB`.
    pub page_size: String,
    /// Generations that a machine keeps at most. Default 4, as Linux does.
    pub generations: u32,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            files: Vec::new(),
            within: "2min".to_string(),
            job: None,
            memory: Vec::new(),
            reserve: None,
            skip_bad: false,
            no_swap: false,
            page_size: "4KiB".to_string(),
            generations: 4,
        }
    }
}

/// All that was found out.
#[derive(Debug)]
pub struct Answer {
    /// The window as it is shown.
    pub window: String,
    /// The window before the dump that counts as use.
    pub question: Window,
    /// Bytes of a page.
    pub page_size: u64,
    /// The machines, each with its dumps.
    pub histories: Vec<History>,
    /// The memory of each machine, where it was given.
    pub rooms: Vec<Option<Room>>,
    /// Some of the memory is reserved.
    pub is_reserved: bool,
    /// The machine for the job, if there is one.
    pub landings: Option<Landings>,
    /// Files that were bad.
    pub skipped: Vec<Skipped>,
}

/// Machines in the order in which the job should land on them.
#[derive(Debug)]
pub struct Landings {
    /// The job.
    pub job: Job,
    /// The best machine first.
    pub machines: Vec<Landing>,
}

/// Reads the dumps, and ranks the machines if there is a job. Errors: an invalid option; an unreadable file, or one that is not a dump; a
/// machine with an unknown memory size, or with one smaller than its dump.
pub fn ask(ask: &Ask, watcher: &dyn Watcher) -> Result<Answer, Error> {
    if ask.files.is_empty() {
        return Err(Error::asked("files: the list is empty, expected one element or more"));
    }
    let (window, within_ms) = parse_window(&ask.within)?;
    let page_size = page_size::parse(&ask.page_size)?;
    let job = ask.job.as_deref().map(|text| size("--job", text)).transpose()?;
    let reserve = ask.reserve.as_deref().map(parse_reserve).transpose()?;
    let sizes = Sizes::parse(&ask.memory)?;

    let (machines, skipped) = machine::read(&ask.files, ask.generations as usize, ask.skip_bad)?;
    for Skipped { problem, .. } in &skipped {
        watcher.remark(&format!("left out: {problem}"));
    }
    let question = Window { within_ms, has_swap: !ask.no_swap };
    let histories: Vec<History> =
        machines.into_iter().map(|machine| History::of(machine, question)).collect();
    sizes.check(&histories, job.is_some())?;
    let rooms = histories.iter().map(|history| room(history, &sizes, reserve, page_size));
    let rooms = rooms.collect::<Result<Vec<Option<Room>>, Error>>()?;
    let landings = job.map(|size| {
        let job = Job { pages: size.0.div_ceil(page_size), has_swap: !ask.no_swap };
        let landings = histories.iter().zip(&rooms).map(|(history, room)| {
            let room = room.expect("checked to be known of every machine");
            Landing::of(&history.machine.name, &history.estimate(), room, job)
        });
        let mut machines: Vec<Landing> = landings.collect();
        rank(&mut machines);
        Landings { job, machines }
    });
    let is_reserved = reserve.is_some();
    let answer = Answer { window, question, page_size, histories, rooms, is_reserved, landings, skipped };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// Checks that the answer agrees with itself. Errors: the sum that does not.
    pub fn check(&self) -> Result<(), String> {
        let is = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_string()) };
        is(self.rooms.len() == self.histories.len(), "a machine has no entry for its memory")?;
        for history in &self.histories {
            let total = history.estimate().total();
            let memcgs = history.latest().dump.memcgs.iter();
            let listed: u64 = memcgs.map(|memcg| of_memcg(memcg, self.question).total().listed).sum();
            is(listed == total.listed, "the pages of a machine differ from the sum over its cgroups")?;
            is(total.used.at_least <= total.used.at_most, "a minimum is larger than its maximum")?;
            is(total.used.at_most <= total.listed, "more pages are in use than listed")?;
        }
        let Some(landings) = &self.landings else { return Ok(()) };
        is(
            landings.machines.len() == self.histories.len(),
            "a machine is missing in the ranking or ranked twice",
        )?;
        for landing in &landings.machines {
            let is_free = landing.free.saturating_add(landing.evicted) >= landings.job.pages;
            is(
                is_free || !landing.fits(),
                "the job fits on a machine without enough free or evictable memory",
            )?;
        }
        Ok(())
    }
}

/// The memory of one machine, if it was given.
fn room(
    history: &History,
    sizes: &Sizes,
    reserve: Option<Limit>,
    page_size: u64,
) -> Result<Option<Room>, Error> {
    let name = &history.machine.name;
    let Some(size) = sizes.of(name) else { return Ok(None) };
    let memory = size.0 / page_size;
    let listed = history.estimate().total().listed;
    ensure!(
        listed <= memory,
        "machine `{name}` has {} in its generations ({}), more than its memory of {}\nhelp: check --page-size {}",
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
    fn parse(options: &[String]) -> Result<Sizes, Error> {
        let mut sizes = Sizes::default();
        for option in options {
            let before = match option.rsplit_once('=') {
                None => sizes.every.replace(size("--memory", option)?),
                Some((name, text)) => sizes.by_name.insert(name.trim().to_string(), size("--memory", text)?),
            };
            let whose = option.rsplit_once('=').map_or("every machine", |(name, _)| name);
            ensure!(before.is_none(), "--memory {option}: duplicate size for {whose}");
        }
        Ok(sizes)
    }

    fn of(&self, machine: &str) -> Option<Size> {
        self.by_name.get(machine).copied().or(self.every)
    }

    /// Every size has a machine, and if there is a job, every machine a size.
    fn check(&self, histories: &[History], is_job: bool) -> Result<(), Error> {
        let names: Vec<&str> = histories.iter().map(|history| history.machine.name.as_str()).collect();
        if let Some(stranger) = self.by_name.keys().find(|name| !names.contains(&name.as_str())) {
            let hint = nearest(stranger, names.iter().copied())
                .map(|name| format!("\nhelp: did you mean `{name}`?"))
                .unwrap_or_default();
            bail!("--memory {stranger}=...: no dump of a machine `{stranger}`{hint}");
        }
        let unknown: Vec<&str> = names.into_iter().filter(|name| self.of(name).is_none()).collect();
        ensure!(
            unknown.is_empty() || !is_job,
            "--job needs the memory size of each machine, which dumps do not contain\nhelp: add --memory 16GiB for all, or --memory {}",
            unknown.iter().map(|name| format!("{name}=16GiB")).collect::<Vec<_>>().join(",")
        );
        Ok(())
    }
}

fn size(option: &str, text: &str) -> Result<Size, Error> {
    let size: Size = text.trim().parse().during(|| format!("{option} {text}"))?;
    ensure!(size.0 > 0, "{option} {text}: expected a size above 0");
    Ok(size)
}

fn parse_reserve(text: &str) -> Result<Limit, Error> {
    match text.parse() {
        Ok(Limit::Max) => bail!(
            "--reserve max: expected a size or a percentage\nhelp: for example --reserve 1GiB or --reserve 5%"
        ),
        Ok(limit) => Ok(limit),
        Err(message) => bail!("--reserve {text}: {message}, or a percentage such as 5%"),
    }
}

/// The window as it is shown, and in milliseconds. `m` alone is minutes here, since no window is measured in metres.
fn parse_window(text: &str) -> Result<(String, u64), Error> {
    let text = text.trim();
    let shown = match text.strip_suffix('m') {
        Some(number) if number.ends_with(|c: char| c.is_ascii_digit() || c == ' ') => format!("{number}min"),
        _ => text.to_string(),
    };
    let span: TimeSpan = shown.parse().during(|| format!("--within {text}"))?;
    let within_ms = span.0 / 1_000_000;
    ensure!(within_ms > 0, "--within {text}: expected 1ms or more");
    Ok((shown, within_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_without_files_is_refused() {
        let error = ask(&Ask::default(), &()).unwrap_err().to_string();
        assert_eq!(error, "files: the list is empty, expected one element or more");
    }

    /// The sum that is broken, and what breaks it.
    type Mutant = (&'static str, fn(&mut Answer));

    fn answer() -> Answer {
        let text = "memcg 1 /\n node 0\n 3 90000 0 50\n 4 9000 0 20\n 5 10 0 30\n";
        let dump = pageout_kerneltext::lru_gen::parse(text, 4).unwrap();
        let dumps = vec![machine::Reading { file: "a".to_string(), dump }];
        let question = Window { within_ms: 1000, has_swap: true };
        let history = History::of(machine::DumpedMachine { name: "m".to_string(), dumps }, question);
        let (room, job) = (Room { memory: 120, reserved: 0 }, Job { pages: 30, has_swap: true });
        let landing = Landing::of("m", &history.estimate(), room, job);
        Answer {
            window: "1s".to_string(),
            question,
            page_size: 4096,
            histories: vec![history],
            rooms: vec![Some(room)],
            is_reserved: false,
            landings: Some(Landings { job, machines: vec![landing] }),
            skipped: Vec::new(),
        }
    }

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        assert_eq!(answer().check(), Ok(()));
        let mutants: [Mutant; 5] = [
            ("no entry for its memory", |answer| answer.rooms.clear()),
            ("the sum over its cgroups", |answer| answer.histories[0].estimates[0].file.listed += 1),
            ("more pages are in use than listed", |answer| {
                answer.histories[0].estimates[0].file.used.at_most = 101
            }),
            ("missing in the ranking", |answer| answer.landings.as_mut().unwrap().machines.clear()),
            ("without enough free or evictable memory", |answer| {
                answer.landings.as_mut().unwrap().machines[0].free = 0
            }),
        ];
        for (sum, mutate) in mutants {
            let mut answer = answer();
            mutate(&mut answer);
            let wrong = answer.check().unwrap_err();
            assert!(wrong.contains(sum), "{sum}: {wrong}");
        }
    }

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
