//! A trace's accesses made on real files, or on anonymous memory, by the live page cache, and its counters next to those of a simulated machine.
//!
//! One thread reads, and nothing is read by others, so that the outcome is always the same. The simulated machine is built from the same configuration, its
//! work costs nothing and its device has no latency: what then differs is a fault of one of the two.

mod files; // one for each object
mod machines; // the live one, and the simulated one

use std::path::Path;

use pageout_engine::PAGE_SIZE;
use pageout_sim::scenario::keys::Limit;
use pageout_sim::scenario::{Channel, Device};
use pageout_workload::trace::Loaded;
use serde_json::{Value, json};

use super::ask::Ask;
use super::reading;
use super::setup::{PAGES_MIN, pages};
use crate::bench::Policy;
use crate::check::holds;
use crate::error::Error;
use crate::figures;
use crate::watch::{Stage, Watcher};
use files::Files;
pub use files::OnFile;
use machines::{Counted, Replay};

/// A live replay next to a simulated one.
#[derive(Debug)]
pub struct Live {
    /// The question.
    pub ask: Ask,
    /// The policy, as it was asked for.
    pub policy: String,
    /// Accesses of the trace.
    pub accesses: u64,
    /// The memory, in pages.
    pub pages: u64,
    /// The files, by object.
    pub files: Vec<OnFile>,
    /// Bytes of the region, if the accesses were made on one.
    pub region: Option<u64>,
    /// Time that the live machine took, in nanoseconds.
    pub elapsed_ns: u64,
    /// A limit of the measurement: a file that is not read past the kernel's page cache.
    pub remark: Option<String>,
    /// All counters that one of the two has.
    pub rows: Vec<Row>,
}

/// A counter of both machines.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The counter, behind the kernel file that has it.
    pub name: String,
    /// Its value in the live machine; nothing where it has none.
    pub live: Option<u64>,
    /// Its value in the simulated machine; nothing where it has none.
    pub simulated: Option<u64>,
}

/// Replays on real files. Errors: an option has no meaning there, a file is missing or too short, a signal came.
pub(super) fn live(
    ask: &Ask,
    policies: &[Policy],
    limits: &[Limit],
    watcher: &dyn Watcher,
) -> Result<Live, Error> {
    let [trace] = &ask.traces[..] else {
        return Err(Error::asked(format!("--live: found {} traces, expected one", ask.traces.len())));
    };
    refuse(ask)?;
    let ([Policy::Machine { name, profile }], [limit]) = (policies, limits) else {
        return Err(Error::asked(
            "--live: expected one kernel policy and one size of memory\nhelp: for example --policy mglru@6.12 --memory 64MiB",
        ));
    };
    let options = ask.read_options()?;
    reading::interpreted(trace, &options, watcher)?;
    let loaded = reading::loaded(ask, trace, usize::MAX, &options, watcher)?;
    let accesses = loaded.footprint.accesses;
    if accesses == 0 {
        return Err(Error::asked(format!("{}: the trace has no accesses", trace.display())));
    }
    let limit_pages = pages(*limit, loaded.footprint.distinct_pages(), PAGES_MIN)?;
    let region = ask.region.then(|| region(ask, trace, &loaded)).transpose()?;
    let files = if region.is_some() { Files::none() } else { Files::open(ask, trace, &loaded)? };
    let (options, loaded) = (&options, &loaded);
    let replay =
        Replay { ask, trace, options, loaded, files: &files.all, region, profile, limit_pages, watcher };
    // A signal never ends the program where files that were made would stay.
    watcher.heed_stop();
    let both = both(&replay)?;
    let Some((live, simulated)) = both else {
        let by = watcher.stop().unwrap_or("SIGINT");
        let told = format!("{by} before the end: an incomplete replay has no comparison");
        return Err(Error::Interrupted(told));
    };
    files.keep();
    let answer = Live {
        ask: ask.clone(),
        policy: name.clone(),
        accesses,
        pages: limit_pages,
        files: files.all.clone(),
        region: region.map(|region| region.pages * PAGE_SIZE),
        elapsed_ns: live.elapsed_ns,
        rows: rows(&live, &simulated),
        remark: live.remark,
    };
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

/// The region of a trace, and the folder of its swap file.
#[derive(Clone, Copy, Debug)]
struct OnRegion<'a> {
    pages: u64,
    folder: &'a Path,
}

fn region<'a>(ask: &'a Ask, trace: &Path, loaded: &Loaded) -> Result<OnRegion<'a>, Error> {
    let (objects, folders) = (&loaded.footprint.objects, &ask.live[..]);
    let ([object], [folder]) = (&objects[..], folders) else {
        return Err(Error::asked(format!(
            "--region: found {} in {} and {} with --live, expected one of each\nhelp: --read csv.object=[] joins all objects into one",
            figures::counted(objects.len() as u64, "object"),
            trace.display(),
            figures::counted(folders.len() as u64, "folder"),
        )));
    };
    if !folder.is_dir() {
        return Err(Error::asked(format!(
            "--region: found {} with --live, expected the folder of the swap file",
            folder.display()
        )));
    }
    Ok(OnRegion { pages: object.pages, folder })
}

/// Runs both machines. Nothing if a signal came.
fn both(replay: &Replay) -> Result<Option<(Counted, Counted)>, Error> {
    let accesses = Some(replay.loaded.footprint.accesses);
    replay.watcher.begin(&Stage::Running { name: "live", runs: 1, accesses });
    let live = replay.live();
    replay.watcher.end();
    let Some((memory, live)) = live? else { return Ok(None) };
    replay.watcher.begin(&Stage::Running { name: "simulated", runs: 1, accesses });
    let simulated = replay.simulated(&memory);
    replay.watcher.end();
    Ok(simulated?.map(|simulated| (live, simulated)))
}

/// What a file that is only read has no use for.
fn refuse(ask: &Ask) -> Result<(), Error> {
    let given = [
        (
            "--channel",
            ask.channel != Channel::File,
            "it only reads files; --region accesses anonymous memory",
        ),
        (
            "--writes",
            ask.writes && !ask.region,
            "it only reads files; without this option writes are replayed as reads",
        ),
        ("--by", ask.by.is_some(), "one group reads"),
        ("--timed", ask.timed.is_some(), "accesses follow each other"),
        ("--warm-up", ask.warm_up.is_some(), "the counters begin with the first access"),
        ("--sample", ask.sample.is_some(), "every access is made"),
        ("--device", ask.device != "nvme", "it uses the device of the file"),
        ("--swap", ask.swap.is_some(), "pages of files are not swapped, and a region has a swap file"),
        ("--think-time", ask.think_time != "0s", "accesses follow each other"),
        (
            "--print-scenario",
            ask.print_scenario,
            "the simulated machine is built from the live one's configuration",
        ),
    ];
    if let Some((option, _, why)) = given.into_iter().find(|(_, is_given, _)| *is_given) {
        return Err(Error::asked(format!("{option} does not work with --live: {why}")));
    }
    let window_kb = ask.window_kb(true);
    if [0, Device::READ_AHEAD_KB].contains(&window_kb) {
        return Ok(());
    }
    Err(Error::asked(format!(
        "--read-ahead-kb {window_kb} does not work with --live: expected {} (the kernel's default) or 0",
        Device::READ_AHEAD_KB
    )))
}

/// All counters that one of the two has.
fn rows(live: &Counted, simulated: &Counted) -> Vec<Row> {
    let of = |counted: &Counted, name: &str| {
        counted.counters.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    };
    let names = live.counters.iter().chain(&simulated.counters).map(|(name, _)| name);
    let mut rows: Vec<Row> = vec![Row {
        name: "pages read from the device".to_string(),
        live: Some(live.pages_read),
        simulated: Some(simulated.pages_read),
    }];
    for name in names {
        if rows.iter().all(|row| row.name != *name) {
            let (live, simulated) = (of(live, name), of(simulated, name));
            rows.push(Row { name: name.clone(), live, simulated });
        }
    }
    rows
}

impl Row {
    /// Returns true if both machines have the same value.
    pub fn is_equal(&self) -> bool {
        self.live == self.simulated
    }
}

impl Live {
    /// The trace.
    pub fn trace(&self) -> &Path {
        &self.ask.traces[0]
    }

    /// Returns the number of counters that differ.
    pub fn differing(&self) -> usize {
        self.rows.iter().filter(|row| !row.is_equal()).count()
    }

    /// Checks the sums that an answer satisfies. Errors: the first one that is wrong.
    pub fn check(&self) -> Result<(), String> {
        let asked = if self.region.is_some() { 0 } else { self.ask.live.len() };
        let files = self.files.len();
        holds!(files == asked, "found {files} files, expected {asked}");
        for (at, row) in self.rows.iter().enumerate() {
            let name = &row.name;
            holds!(row.live.is_some() || row.simulated.is_some(), "`{name}` has no value in both runs");
            holds!(self.rows[..at].iter().all(|other| other.name != *name), "`{name}` is listed twice");
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "trace": self.trace().display().to_string(),
            "files": self.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>(),
            "region_bytes": self.region,
            "accesses": self.accesses,
            "policy": self.policy,
            "memory_bytes": self.pages * PAGE_SIZE,
            "equal": self.differing() == 0,
            "live_ns": self.elapsed_ns,
            "remark": self.remark,
            "counters": self.rows.iter().map(|row| json!({
                "name": row.name, "live": row.live, "simulated": row.simulated, "equal": row.is_equal(),
            })).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Answer, ask};

    /// The answer of a trace on a file that is made for it.
    fn answer() -> Live {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.u32");
        let pages = (0..3_000_u32).map(|at| at * at % 397);
        std::fs::write(&trace, pages.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        let live = vec![folder.path().join("data.bin")];
        let memory = vec!["50%".into()];
        let asked = Ask { traces: vec![trace], live, memory, make: true, ..Ask::default() };
        match ask(&asked, &()).unwrap() {
            Answer::Live(answer) => answer,
            _ => panic!("a real file was asked for"),
        }
    }

    #[test]
    fn answer_with_a_wrong_list_is_refused() {
        let whole = answer();
        assert_eq!((whole.check(), whole.differing()), (Ok(()), 0));
        type Mutant = fn(&mut Live);
        let mutants: [(Mutant, &str); 3] = [
            (|answer| drop(answer.files.pop()), "found 0 files, expected 1"),
            (
                |answer| (answer.rows[3].live, answer.rows[3].simulated) = (None, None),
                "has no value in both runs",
            ),
            (|answer| answer.rows[3].name = answer.rows[2].name.clone(), "is listed twice"),
        ];
        for (mutate, told) in mutants {
            let mut mutant = answer();
            mutate(&mut mutant);
            let error = mutant.check().unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
