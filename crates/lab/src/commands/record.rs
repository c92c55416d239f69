//! `pageout record`: options, progress and the printed result. `pageout-record` makes the recording.

pub(crate) mod args; // what can be asked
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use args::RecordArgs;

/// Records, or says what could be.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &RecordArgs, cx: &Context) -> Outcome {
    linux::record(args, cx)
}

/// There is nothing to record where there is no Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &RecordArgs, _: &Context) -> Outcome {
    let message = "recording needs Linux; recordings can be read on any system";
    Err(Failure::Input(anyhow::anyhow!(message)))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use anyhow::{Context as _, anyhow, bail, ensure};
    use pageout_record::{Error, Kinds, Manifest, Options, Progress, Target};
    use pageout_sim::scenario::{Size, TimeSpan};
    use serde_json::json;

    use super::*;
    use crate::print::{Layout, figures, progress};
    use crate::signals;

    pub(super) fn record(args: &RecordArgs, cx: &Context) -> Outcome {
        if args.check {
            return check(cx);
        }
        let options = options(args)?;
        if let Some(signal) = cx.output.to_end() {
            return Err(Failure::Interrupted(signal, anyhow!("interrupted before the recording began")));
        }
        let listening = signals::listen_until_done();
        let bar = progress::bar(&cx.output, None, "recording");
        bar.set_style(indicatif::ProgressStyle::with_template("{msg}").expect("the template is a constant"));
        let mut last = Progress::default();
        let made = pageout_record::record(&options, &|| cx.output.to_end().map(signals::name), &mut |now| {
            bar.set_message(line(&now, &last, &options));
            last = now;
        });
        bar.finish_and_clear();
        drop(listening);
        let manifest = made.map_err(|error| match error {
            Error::Write { source, path, dir } => Failure::Output(std::io::Error::new(
                source.kind(),
                format!("{path}: {source}; there is no recording in {dir}"),
            )),
            error => Failure::Input(error.into()),
        })?;
        if cx.output.is_data() {
            return cx.output.print_json(&manifest);
        }
        cx.output.print_text(&told(&manifest, &options, cx.layout()))
    }

    /// How far it is: rate, size, and the time or size that is left.
    fn line(now: &Progress, last: &Progress, options: &Options) -> String {
        let since = (now.elapsed.saturating_sub(last.elapsed)).as_secs_f64().max(1e-3);
        let rate = (now.accesses - last.accesses) as f64 / since;
        let left = match (options.duration, options.max_size) {
            (Some(duration), _) => {
                format!(", {} left", figures::time(duration.saturating_sub(now.elapsed).as_nanos() as u64))
            }
            (None, Some(size)) => format!(" of at most {}", figures::bytes(size)),
            _ => String::new(),
        };
        let lost = match now.lost {
            0 => String::new(),
            lost => format!(", {} LOST", figures::counted(lost, "event")),
        };
        format!(
            "recording {}: {} accesses, {}, {}{left}{lost}; Ctrl-C ends it",
            figures::time(now.elapsed.as_nanos() as u64),
            figures::count(now.accesses),
            figures::rate(rate),
            figures::bytes(now.bytes)
        )
    }

    fn options(args: &RecordArgs) -> anyhow::Result<Options> {
        let span = |option: &str, text: &str| -> anyhow::Result<Duration> {
            let span: TimeSpan = text.parse().map_err(|error| anyhow!("{option} {text}: {error}"))?;
            Ok(Duration::from_nanos(span.0))
        };
        let target = match (args.command.is_empty(), &args.cgroup, args.pid.is_empty()) {
            (false, cgroup, _) => Target::Command { argv: args.command.clone(), cgroup: cgroup.clone() },
            (true, Some(cgroup), _) => Target::Cgroup(cgroup.clone()),
            (true, None, false) => Target::Pids(args.pid.clone()),
            (true, None, true) => Target::Machine,
        };
        let duration = args.duration.as_deref().map(|text| span("--for", text)).transpose()?;
        ensure!(duration != Some(Duration::ZERO), "--for: found 0, expected a time above 0");
        let max: Size =
            args.max_size.parse().map_err(|error| anyhow!("--max-size {}: {error}", args.max_size))?;
        let stat_every = span("--stat-every", &args.stat_every)?;
        ensure!(
            stat_every >= Duration::from_millis(10),
            "--stat-every: too short: found `{}`, expected at least 10ms",
            args.stat_every
        );
        let sample = args.sample.strip_prefix("1/").and_then(|number| number.parse::<u64>().ok());
        let sample = sample.filter(|number| number.is_power_of_two() && *number <= 1 << 20);
        let sample = sample.with_context(|| {
            format!(
                "--sample: invalid share: found `{}`, expected 1/N with a power of two, for example 1/8",
                args.sample
            )
        })?;
        Ok(Options {
            into: args.into.clone().expect("needed unless --check"),
            target,
            kinds: kinds(&args.events)?,
            files: args.file.clone(),
            sample,
            duration,
            max_size: Some(max.0),
            stat_every,
            anonymize: args.anonymize,
        })
    }

    fn kinds(names: &[String]) -> anyhow::Result<Kinds> {
        if names == ["none"] {
            return Ok(Kinds::NONE);
        }
        let mut kinds = Kinds::NONE;
        for name in names {
            match name.as_str() {
                "reads" => kinds.reads = true,
                "faults" => kinds.faults = true,
                "insertions" => kinds.insertions = true,
                "writes" => kinds.writes = true,
                other => {
                    bail!(
                        "--events: unknown kind: found `{other}`, expected reads, faults, insertions, writes, or none alone"
                    )
                }
            }
        }
        Ok(kinds)
    }

    /// The result, and its limits for later use.
    fn told(manifest: &Manifest, options: &Options, layout: Layout) -> String {
        let sums = &manifest.sums;
        let mut text = format!(
            "{}: {} accesses in {} ({})\n",
            options.into.display(),
            figures::count(manifest.recording.accesses),
            figures::time(manifest.recording.duration_ns),
            manifest.recording.ended
        );
        let delta = |name: &str| {
            let get = |stat: &std::collections::BTreeMap<String, u64>| stat.get(name).copied().unwrap_or(0);
            get(&manifest.group.stat_end).saturating_sub(get(&manifest.group.stat_begin))
        };
        let refaults = delta("workingset_refault_file");
        let count = |name: &str, number: u64| vec![name.to_string(), figures::count(number)];
        let mut rows = vec![
            count("pages read", sums.pages_read),
            count("pages written", sums.pages_written),
            count("faults of mapped files", sums.faults),
            count("pages brought in", sums.insertions),
            count("of these read ahead", sums.read_ahead),
            count("refaults (memory.stat)", refaults),
            count("calls of reclaim", sums.reclaim_calls),
            count("in memory at the start", sums.resident_at_start),
        ];
        rows.retain(|row| row[1] != "0");
        text += &layout.table(&rows, 1);
        for remark in remarks(manifest) {
            text += &format!("note: {remark}\n");
        }
        text + &format!("next: pageout twin {}\n", options.into.display())
    }

    /// What is missing, and what follows from it.
    fn remarks(manifest: &Manifest) -> Vec<String> {
        let source = &manifest.source;
        let mut remarks = source.remarks.clone();
        if manifest.has_losses() {
            remarks.push(format!(
                "{} lost because the buffers were full: record less (--events, --file, --sample); `twin` needs --allow-loss",
                figures::counted(source.lost_events, "event")
            ));
        }
        match source.accesses.as_str() {
            "insertions" => remarks.push(
                "this kernel does not report reads (6.12 and later do): accesses are insertions, so less memory cannot be simulated".to_string(),
            ),
            "none" => remarks.push("counters only: no access is recorded".to_string()),
            _ => {}
        }
        if !source.missing.is_empty() {
            remarks.push(format!("this kernel lacks {}", source.missing.join(", ")));
        }
        if manifest.recording.sample > 1 {
            remarks.push(format!(
                "one page of {} was recorded; the figures are of these pages",
                manifest.recording.sample
            ));
        }
        if manifest.group.limit_bytes.is_none() {
            remarks.push("the group has no limit: its twin has the machine's memory".to_string());
        }
        if source.clock_went_back > 0 {
            remarks.push(format!(
                "the clock of a CPU went back {}: events are in order per CPU only",
                figures::counted(source.clock_went_back, "time")
            ));
        }
        let unnamed = manifest.file.iter().filter(|file| file.name.starts_with("inode ")).count() as u64;
        if unnamed > 0 {
            remarks.push(format!(
                "{} without a name: open for a short time, or on a file system with other inode numbers",
                figures::counted(unnamed, "file")
            ));
        }
        remarks
    }

    fn check(cx: &Context) -> Outcome {
        let found = pageout_record::check();
        if cx.output.is_data() {
            let sources = found.iter().map(|source| {
                json!({ "source": source.source, "tells": source.tells, "is_there": source.is_there, "remark": source.remark })
            });
            return cx.output.print_json(&json!({ "sources": sources.collect::<Vec<_>>() }));
        }
        let mut rows = vec![["source", "", "tells", "remark"].map(str::to_string).to_vec()];
        rows.extend(found.into_iter().map(|source| {
            let there = if source.is_there { "yes" } else { "no" };
            vec![source.source, there.to_string(), source.tells.to_string(), source.remark]
        }));
        let notes = "\n\nNot recorded: hits on mapped pages, anonymous accesses, reads with O_DIRECT.\n";
        cx.output.print_text(&(cx.layout().table(&rows, 4).trim_end().to_string() + notes))
    }
}
