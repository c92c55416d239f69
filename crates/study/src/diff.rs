//! What happened between two snapshots of `/proc/vmstat`, or of a cgroup's `memory.stat`, and what that means.
//!
//! ```text
//!   two files ──file──▶ text ──kerneltext::counters──▶ counters and gauges that changed ──meaning──▶ sentences ──▶ Answer
//! ```
//! A counter only grows: its difference is what happened. A gauge is what there is: its difference may be negative. Which is which, and
//! in what unit, the name tells. A name that is not known is listed, and taken for neither.

pub mod file; // from a file to a snapshot
pub mod meaning; // sentences, with the figures that they rest on
mod json; // the answer as data

use std::path::{Path, PathBuf};

use pageout_kerneltext::counters::{Change, FileKind};
use pageout_sim::scenario::TimeSpan;
use serde::{Deserialize, Serialize};

use self::file::SnapshotFile;
use self::meaning::{Meaning, means};
use crate::error::{During, Error, bail, ensure};
use crate::page_size;
use crate::watch::Watcher;

/// The snapshots to compare.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ask {
    /// The earlier snapshot.
    pub before: PathBuf,
    /// The later one, of the same file. Default none: pressure is compared with the boot.
    pub after: Option<PathBuf>,
    /// The time between the two, such as `60s`; a number alone is seconds. Default not known: there are no rates.
    pub interval: Option<String>,
    /// The time between the two is that between the files' times of modification. Default false.
    pub by_mtime: bool,
    /// The size of the machine's pages: 4KiB, 16KiB or 64KiB. Default `4KiB`.
    pub page_size: String,
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            before: PathBuf::new(),
            after: None,
            interval: None,
            by_mtime: false,
            page_size: "4KiB".to_string(),
        }
    }
}

/// The changes between two snapshots, and their meaning.
#[derive(Debug)]
pub struct Answer {
    /// The earlier snapshot; that of the boot has no name.
    pub before: SnapshotFile,
    /// The later one.
    pub after: SnapshotFile,
    /// The difference of each counter, and both values of each gauge.
    pub change: Change,
    /// The meaning of the figures.
    pub means: Vec<Meaning>,
    /// The time between the two, in seconds, where it is known.
    pub seconds: Option<f64>,
    /// Bytes of a page.
    pub page_size: u64,
}

/// Reads both snapshots, and finds what happened between them. Errors: an invalid option; an unreadable file, or one that is not a
/// snapshot; snapshots of different files; most counters decreased. Single counters that decreased are part of the answer.
pub fn ask(ask: &Ask, _: &dyn Watcher) -> Result<Answer, Error> {
    let page_size = page_size::parse(&ask.page_size)?;
    let (before, after) = snapshots(ask)?;
    let Some(kind) = FileKind::of_both(&before.snapshot, &after.snapshot) else {
        bail!(
            "the files differ in kind: {} is {}, and {} is {}\nhelp: give two snapshots of the same file",
            before.name,
            before.snapshot.kind.name(),
            after.name,
            after.snapshot.kind.name()
        );
    };
    let seconds = seconds(ask)?;
    let answer = Answer::of(kind, before, after, seconds, page_size);
    let change = &answer.change;
    if change.is_restarted() {
        bail!(
            "{} of {} changed counters are lower in {} than in {}, for example {}\nhelp: exchange the files; \
             a restart between them also resets the counters",
            change.fell.len(),
            change.fell.len() + change.counters.iter().filter(|counter| counter.change() > 0).count(),
            answer.after.name,
            answer.before.name,
            change.fell[0].name
        );
    }
    debug_assert_eq!(answer.check(), Ok(()));
    Ok(answer)
}

impl Answer {
    /// What happened between two snapshots of one file.
    fn of(
        kind: FileKind,
        before: SnapshotFile,
        after: SnapshotFile,
        seconds: Option<f64>,
        page_size: u64,
    ) -> Answer {
        let change = Change::of(kind, &before.snapshot, &after.snapshot);
        let means = means(&change, seconds);
        Answer { before, after, change, means, seconds, page_size }
    }

    /// Checks that the answer agrees with itself. Errors: the sum that does not.
    pub fn check(&self) -> Result<(), String> {
        let change = &self.change;
        if let Some(back) = change.counters.iter().find(|counter| counter.after < counter.before) {
            return Err(format!("{} decreased, but it is listed with the counters that grew", back.name));
        }
        for meaning in &self.means {
            for (name, grown) in &meaning.rests_on {
                let counter = change.counters.iter().find(|counter| counter.name == *name);
                if counter.is_none_or(|counter| counter.change() != i128::from(*grown)) {
                    return Err(format!(
                        "{} uses {grown} as the change of {name}, which changed by another amount",
                        meaning.topic
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Both snapshots; of pressure one is enough.
fn snapshots(ask: &Ask) -> Result<(SnapshotFile, SnapshotFile), Error> {
    let before = SnapshotFile::open(&ask.before)?;
    let Some(after) = &ask.after else {
        ensure!(
            before.snapshot.kind == FileKind::Pressure,
            "{}: found one snapshot of {}, expected two\nhelp: append the later snapshot to the command",
            before.name,
            before.snapshot.kind.name()
        );
        return Ok((before.origin(), before));
    };
    Ok((before, SnapshotFile::open(after)?))
}

/// The time between the two, if it is known.
fn seconds(ask: &Ask) -> Result<Option<f64>, Error> {
    if let Some(text) = &ask.interval {
        let seconds = match text.trim().parse::<f64>() {
            Ok(seconds) => seconds,
            Err(_) => {
                let span: TimeSpan = text.trim().parse().during(|| format!("--interval {text}"))?;
                span.0 as f64 / 1e9
            }
        };
        ensure!(
            seconds.is_finite() && seconds > 0.0,
            "--interval {text}: expected a time above 0\nhelp: for example --interval 60s"
        );
        return Ok(Some(seconds));
    }
    if !ask.by_mtime {
        return Ok(None);
    }
    let modified = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        modified.during(|| format!("cannot read the modification time of {}", path.display()))
    };
    let Some(after) = &ask.after else {
        bail!("--by-mtime: found one file, expected two\nhelp: add the later snapshot, or give --interval")
    };
    match modified(after)?.duration_since(modified(&ask.before)?) {
        Ok(between) if between.as_secs_f64() > 0.0 => Ok(Some(between.as_secs_f64())),
        _ => bail!(
            "--by-mtime: {} was not modified later than {}\nhelp: give the time between them by --interval",
            after.display(),
            ask.before.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use pageout_kerneltext::counters::Snapshot;
    use proptest::prelude::*;

    use super::*;

    /// The sum that is broken, and what breaks it.
    type Mutant = (&'static str, fn(&mut Answer));

    fn snapshot_of(text: &str) -> Option<SnapshotFile> {
        let snapshot = Snapshot::parse(text).ok()?;
        Some(SnapshotFile { name: "a".to_string(), snapshot })
    }

    fn answer(before: &str, after: &str, seconds: Option<f64>) -> Option<Answer> {
        let (before, after) = (snapshot_of(before)?, snapshot_of(after)?);
        let kind = FileKind::of_both(&before.snapshot, &after.snapshot)?;
        Some(Answer::of(kind, before, after, seconds, 4096))
    }

    #[test]
    fn answer_that_disagrees_with_itself_is_noticed() {
        let counters =
            |steal: u64| format!("pgfault 1\npgscan_kswapd 200\npgsteal_kswapd {steal}\noom_kill {steal}\n");
        let answer = || answer(&counters(10), &counters(90), None).unwrap();
        assert_eq!(answer().check(), Ok(()));
        assert!(answer().means.iter().any(|meaning| !meaning.rests_on.is_empty()));
        let mutants: [Mutant; 2] = [
            ("decreased", |answer| answer.change.counters.iter_mut().for_each(|counter| counter.after = 0)),
            ("changed by another amount", |answer| {
                answer
                    .means
                    .iter_mut()
                    .flat_map(|meaning| &mut meaning.rests_on)
                    .for_each(|(_, grown)| *grown += 1);
            }),
        ];
        for (sum, mutate) in mutants {
            let mut answer = answer();
            mutate(&mut answer);
            let wrong = answer.check().unwrap_err();
            assert!(wrong.contains(sum), "{sum}: {wrong}");
        }
    }

    /// A few names, a few values, those at the end of the range among them.
    fn snapshot() -> impl Strategy<Value = String> {
        const NAMES: &[&str] = &[
            "nr_free_pages",
            "pgscan_kswapd",
            "pgscan_direct",
            "pgsteal_kswapd",
            "pgsteal_direct",
            "pgsteal_file",
            "workingset_refault_file",
            "workingset_activate_file",
            "pswpin",
            "pswpout",
            "zswpin",
            "zswpout",
            "nr_vmscan_write",
            "thp_fault_alloc",
            "thp_fault_fallback",
            "compact_stall",
            "pgdemote_kswapd",
            "pgdemote_direct",
            "pgpromote_success",
            "of_tomorrow",
        ];
        let values = prop_oneof![Just(0), 0..1000u64, Just(u64::MAX), any::<u64>()];
        proptest::collection::btree_map(proptest::sample::select(NAMES), values, 0..NAMES.len()).prop_map(
            |values| {
                let lines = values.iter().map(|(name, value)| format!("{name} {value}\n"));
                format!("pgfault 1\n{}", lines.collect::<String>())
            },
        )
    }

    proptest! {
        #[test]
        fn any_two_snapshots_are_compared(before in snapshot(), after in snapshot(), seconds in proptest::option::of(1e-9..1e9)) {
            let Some(answer) = answer(&before, &after, seconds) else { return Ok(()) };
            prop_assert_eq!(answer.check(), Ok(()));
            prop_assert!(serde_json::to_value(&answer).unwrap()["counters"].is_object());
        }
    }
}
