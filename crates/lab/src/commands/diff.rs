//! `pageout diff`: what happened between two snapshots of `/proc/vmstat`, or of a cgroup's `memory.stat`, and what that means.
//!
//! ```text
//!   two files ──file──▶ text ──kerneltext::counters──▶ counters and gauges that changed ──meaning──▶ sentences
//!                                                                             └──────────report──▶ text, JSON
//! ```
//! A counter only grows: its difference is what happened. A gauge is what there is: its difference may be negative. Which is which, and
//! in what unit, the name tells. A name that is not known is listed, and taken for neither.

mod file; // from a file to a snapshot
mod meaning; // sentences, with the figures that they rest on
mod report; // text and JSON

use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use pageout_kerneltext::counters::{Change, FileKind};
use pageout_sim::scenario::{Size, TimeSpan};

use crate::cli::DiffArgs;
use crate::failure::{Failure, Outcome};
use crate::print::output;
use file::SnapshotFile;
use report::Report;

/// Reads both snapshots and prints what happened between them.
pub(crate) fn run(args: &DiffArgs) -> Outcome {
    let page_size = page_size(&args.page_size)?;
    let (before, after) = snapshots(args)?;
    let Some(kind) = FileKind::of_both(&before.snapshot, &after.snapshot) else {
        return Err(Failure::Input(anyhow!(
            "{} is {}, and {} is {}: two snapshots of one file are compared",
            before.name,
            before.snapshot.kind.name(),
            after.name,
            after.snapshot.kind.name()
        )));
    };
    let seconds = seconds(args)?;
    let change = Change::of(kind, &before.snapshot, &after.snapshot);
    if change.is_restarted() {
        return Err(Failure::Input(anyhow!(
            "{} of {} counters that differ are lower in {} than in {}, such as {}: the files are in the wrong order, or what they are of \
             was started anew in between, and counts from 0",
            change.fell.len(),
            change.fell.len() + change.counters.iter().filter(|counter| counter.change() > 0).count(),
            after.name,
            before.name,
            change.fell[0].name
        )));
    }
    let means = meaning::means(&change, seconds);
    let report = Report {
        before: &before,
        after: &after,
        change: &change,
        means: &means,
        seconds,
        page_size,
        all: args.all,
    };
    match args.output.is_data() {
        true => output::print_json_or_rows(&report.to_json(), || report.to_rows())?,
        false => output::print(&report.to_text())?,
    }
    if change.fell.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = change.fell.iter().map(|counter| counter.name.as_str()).collect();
    Err(Failure::Input(anyhow!(
        "counters that only grow are lower in {} than in {}, and what they counted is not known: {}",
        after.name,
        before.name,
        names.join(", ")
    )))
}

/// Both snapshots; of pressure one is enough.
fn snapshots(args: &DiffArgs) -> anyhow::Result<(SnapshotFile, SnapshotFile)> {
    let before = SnapshotFile::open(&args.before)?;
    let Some(after) = &args.after else {
        ensure!(
            before.snapshot.kind == FileKind::Pressure,
            "{}: found one snapshot of {}, expected two; write the later one behind it",
            before.name,
            before.snapshot.kind.name()
        );
        return Ok((before.origin(), before));
    };
    Ok((before, SnapshotFile::open(after)?))
}

fn page_size(text: &str) -> anyhow::Result<u64> {
    let size: Size = text.parse().with_context(|| format!("--page-size {text}"))?;
    ensure!(
        size.0.is_power_of_two() && (4096..=65536).contains(&size.0),
        "--page-size {text}: Linux has pages of 4KiB, 16KiB or 64KiB"
    );
    Ok(size.0)
}

/// The time between the two, if it is known.
fn seconds(args: &DiffArgs) -> anyhow::Result<Option<f64>> {
    if let Some(text) = &args.interval {
        let seconds = match text.trim().parse::<f64>() {
            Ok(seconds) => seconds,
            Err(_) => {
                let span: TimeSpan = text.trim().parse().with_context(|| format!("--interval {text}"))?;
                span.0 as f64 / 1e9
            }
        };
        ensure!(seconds.is_finite() && seconds > 0.0, "--interval {text}: write a time above 0, such as 60s");
        return Ok(Some(seconds));
    }
    if !args.by_mtime {
        return Ok(None);
    }
    let modified = |path: &Path| {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        modified.with_context(|| format!("the time of modification of {}", path.display()))
    };
    let Some(after) = &args.after else { bail!("--by-mtime: found one file, expected two") };
    match modified(after)?.duration_since(modified(&args.before)?) {
        Ok(between) if between.as_secs_f64() > 0.0 => Ok(Some(between.as_secs_f64())),
        _ => bail!(
            "--by-mtime: {} was not modified later than {}; say --interval",
            after.display(),
            args.before.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use pageout_kerneltext::counters::Snapshot;
    use proptest::prelude::*;

    use super::*;

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
            let parse = |text: &str| Snapshot::parse(text).map(|snapshot| SnapshotFile { name: "a".to_string(), snapshot });
            let (Ok(before), Ok(after)) = (parse(&before), parse(&after)) else { return Ok(()) };
            let Some(kind) = FileKind::of_both(&before.snapshot, &after.snapshot) else { return Ok(()) };
            let change = Change::of(kind, &before.snapshot, &after.snapshot);
            let means = meaning::means(&change, seconds);
            let report = Report {
                before: &before,
                after: &after,
                change: &change,
                means: &means,
                seconds,
                page_size: 4096,
                all: true,
            };
            prop_assert!(report.to_text().ends_with('\n'));
            prop_assert!(report.to_json()["counters"].is_object());
        }
    }
}
