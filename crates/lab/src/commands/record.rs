//! `pageout record`: options, progress and the printed result. `pageout-record` makes the recording.

pub(crate) mod args; // what can be asked
#[cfg(target_os = "linux")]
mod check; // ways that are open here
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
    use std::path::Path;
    use std::time::Duration;

    use anyhow::{Context as _, anyhow, bail, ensure};
    use pageout_record::{
        CostRecord, Error, Kinds, Limited, Manifest, Options, ProcessRecord, Progress, Root, Target,
    };
    use pageout_sim::scenario::{Size, TimeSpan};

    use super::*;
    use crate::print::{Layout, figures, progress};
    use crate::signals;

    pub(super) fn record(args: &RecordArgs, cx: &Context) -> Outcome {
        let root = args.root.as_deref().map_or_else(Root::machine, Root::below);
        if args.check {
            return check::check(&root, cx);
        }
        let options = options(args, root, cx)?;
        if !args.limits.is_empty() {
            return at_limits(args, &options, cx);
        }
        pageout_record::forget(&args.cold).map_err(anyhow::Error::new)?;
        let manifest = one(&options, cx)?;
        if cx.output.is_data() {
            cx.output.print_json(&manifest)?;
        } else {
            let text = told(&manifest, &options, cx.layout());
            cx.output.print_text(&format!("{text}next: pageout twin {}\n", options.into.display()))?;
        }
        passed_on(std::slice::from_ref(&manifest))
    }

    /// Passes the exit code of the recorded command on, as `strace` and `perf stat` do: of several runs the first that is not 0.
    fn passed_on(made: &[Manifest]) -> Outcome {
        let failed = made.iter().find(|manifest| manifest.recording.command_code > 0);
        failed.map_or(Ok(()), |Manifest { recording, .. }| {
            let error = anyhow!("{}; the recording is complete", recording.ended);
            Err(Failure::Recorded(recording.command_code, error))
        })
    }

    /// Records the command at each limit, into a folder of that name.
    fn at_limits(args: &RecordArgs, options: &Options, cx: &Context) -> Outcome {
        let mut limits: Vec<(String, u64)> = Vec::new();
        for text in &args.limits {
            let size: Size = text.parse().map_err(|error| anyhow!("--limits {text}: {error}"))?;
            let name: String = text.split_whitespace().collect();
            if size.0 == 0 || limits.iter().any(|(other, bytes)| *other == name || *bytes == size.0) {
                return Err(anyhow!("--limits {text}: expected sizes above 0, each once").into());
            }
            limits.push((name, size.0));
        }
        let Target::Command { argv, cgroup } = &options.target else {
            return Err(anyhow!("--limits: expected a command after `--`").into());
        };
        let group = Limited::new(&options.root, cgroup.as_deref()).map_err(anyhow::Error::new)?;
        let mut found = Vec::new();
        for (name, bytes) in &limits {
            pageout_record::forget(&args.cold).map_err(anyhow::Error::new)?;
            group.set(*bytes).map_err(anyhow::Error::new)?;
            let cgroup = Some(group.folder().display().to_string());
            let target = Target::Command { argv: argv.clone(), cgroup };
            let options = Options { into: options.into.join(name), target, ..options.clone() };
            let manifest = one(&options, cx)?;
            if !cx.output.is_data() {
                cx.output.print_text(&told(&manifest, &options, cx.layout()))?;
            }
            found.push(manifest);
            if let Some(signal) = cx.output.to_end() {
                let (made, all) = (found.len(), limits.len());
                return Err(Failure::Interrupted(
                    signal,
                    anyhow!("interrupted after {made} of {all} limits"),
                ));
            }
        }
        if cx.output.is_data() {
            cx.output.print_json(&found)?;
            return passed_on(&found);
        }
        limits.sort_by_key(|(_, bytes)| *bytes);
        let (middle, _) = limits.remove(limits.len() / 2);
        let folder = |name: &str| options.into.join(name).display().to_string();
        let others: Vec<String> = limits.iter().map(|(name, _)| folder(name)).collect();
        let against =
            if others.is_empty() { String::new() } else { format!(" --against {}", others.join(",")) };
        let recordings = folder(&middle) + &against;
        cx.output.print_text(&format!("next: pageout twin {recordings}\n"))?;
        passed_on(&found)
    }

    /// Makes one recording.
    fn one(options: &Options, cx: &Context) -> Result<Manifest, Failure> {
        if let Some(signal) = cx.output.to_end() {
            return Err(Failure::Interrupted(signal, anyhow!("interrupted before the recording began")));
        }
        let listening = signals::listen_until_done();
        let bar = progress::bar(&cx.output, None, "recording");
        bar.set_style(indicatif::ProgressStyle::with_template("{msg}").expect("the template is a constant"));
        let mut last = Progress::default();
        let is_endless = !matches!(options.target, Target::Command { .. });
        let mut begins = is_endless.then(|| starts(&options.into, options.max_size, options.duration));
        let made = pageout_record::record(options, &|| cx.output.to_end().map(signals::name), &mut |now| {
            if let Some(text) = begins.take() {
                progress::announce(&cx.output, &text);
            }
            bar.set_message(line(&now, &last, options));
            last = now;
        });
        bar.finish_and_clear();
        drop(listening);
        made.map_err(|error| match error {
            Error::Write { source, path, dir } => Failure::Output(std::io::Error::new(
                source.kind(),
                format!("{path}: {source}; there is no recording in {dir}"),
            )),
            error => Failure::Input(error.into()),
        })
    }

    /// What ends a recording that does not end with a command.
    pub(super) fn starts(into: &Path, max_size: Option<u64>, duration: Option<Duration>) -> String {
        let mut ends = vec!["SIGINT (Ctrl-C)".to_string()];
        ends.extend(max_size.map(|size| format!("{} of accesses", figures::bytes(size))));
        ends.extend(duration.map(|time| figures::time(time.as_nanos() as u64)));
        let help = if duration.is_none() { "; --for DURATION limits the time" } else { "" };
        format!("recording into {} until {}{help}", into.display(), ends.join(" or "))
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

    fn options(args: &RecordArgs, root: Root, cx: &Context) -> anyhow::Result<Options> {
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
        ensure!(
            duration != Some(Duration::ZERO),
            "--for: found 0, expected a time above 0\nhelp: for example --for 10s"
        );
        let max: Size =
            args.max_size.parse().map_err(|error| anyhow!("--max-size {}: {error}", args.max_size))?;
        let stat_every = span("--stat-every", &args.stat_every)?;
        ensure!(
            stat_every >= Duration::from_millis(10),
            "--stat-every: too short: found `{}`, expected at least 10ms\nhelp: for example --stat-every 1s",
            args.stat_every
        );
        let sample = args.sample.strip_prefix("1/").and_then(|number| number.parse::<u64>().ok());
        let sample = sample.filter(|number| number.is_power_of_two() && *number <= 1 << 20);
        let sample = sample.with_context(|| {
            format!(
                "--sample: invalid share: found `{}`, expected 1/N with a power of two\nhelp: for example --sample 1/8",
                args.sample
            )
        })?;
        let (kinds, remarks) = kinds(&args.events, &root, cx)?;
        Ok(Options {
            into: args.into.clone().expect("needed unless --check"),
            target,
            kinds,
            regions: args.events.iter().any(|name| name == "regions"),
            resident: Some(pageout_live::resident),
            remarks,
            root,
            files: args.file.clone(),
            sample,
            duration,
            max_size: Some(max.0),
            stat_every,
            anonymize: args.anonymize,
        })
    }

    /// The kinds of events. If none are named, it is all, or none on a machine that has no events, with a remark.
    fn kinds(names: &[String], root: &Root, cx: &Context) -> anyhow::Result<(Kinds, Vec<String>)> {
        if names.is_empty() {
            return Ok(match pageout_record::events(root) {
                Ok(()) => (Kinds::DEFAULT, Vec::new()),
                Err(error) => {
                    let why = error.to_string();
                    let why = why.split("\nhelp: ").next().unwrap_or_default();
                    cx.output.remark(&format!(
                        "warning: no events are recorded, only counters: {why}\nhelp: `pageout record --check` prints how to open events"
                    ));
                    (Kinds::NONE, vec![format!("no events: {why}")])
                }
            });
        }
        if names == ["none"] || names == ["regions"] {
            return Ok((Kinds::NONE, Vec::new()));
        }
        let mut kinds = Kinds::NONE;
        for name in names {
            match name.as_str() {
                "reads" => kinds.reads = true,
                "faults" => kinds.faults = true,
                "insertions" => kinds.insertions = true,
                "writes" => kinds.writes = true,
                "touches" => kinds.touches = true,
                other => {
                    bail!(
                        "--events: unknown kind: found `{other}`, expected reads, faults, insertions, writes, touches, or alone none or regions"
                    )
                }
            }
        }
        Ok((kinds, Vec::new()))
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
        let is_known = |of: &&ProcessRecord| of.rchar > 0 || of.unreadable < of.most;
        if let Some(processes) = manifest.processes.as_ref().filter(is_known) {
            rows.push(vec!["read by calls".to_string(), figures::bytes(processes.rchar)]);
            rows.push(vec!["read from disks".to_string(), figures::bytes(processes.read_bytes)]);
        }
        rows.retain(|row| row[1] != "0");
        text += &layout.table(&rows, 1);
        if let Some(cost) = manifest.cost {
            text += &format!("cost: {}\n", cost_of(cost, manifest.recording.duration_ns));
        }
        let kept = sums.resident_at_start;
        if kept * 10 > sums.pages_read.max(sums.faults) && manifest.group.limit_bytes.is_some() {
            text += &format!(
                "note: {} in memory at the start: hits at any limit, if other groups are charged for them; --cold drops files before the run\n",
                figures::counted(kept, "page")
            );
        }
        for remark in remarks(manifest) {
            text += &format!("note: {remark}\n");
        }
        text
    }

    /// The estimated cost of a recording.
    fn cost_of(cost: CostRecord, duration_ns: u64) -> String {
        let all = cost.events_ns() + cost.recorder_ns;
        let share = figures::percent(figures::share(all, duration_ns.max(1)));
        let events = match cost.events {
            0 => String::new(),
            events => format!(
                "about {} of CPU time in the recorded programs ({}, {} ns each{}), ",
                figures::time(cost.events_ns()),
                figures::counted(events, "event"),
                cost.one_event_ns(),
                if cost.event_ns > 0 { " on this machine" } else { ", not measured here" }
            ),
        };
        format!("{events}{} in the recorder: {share} of one CPU", figures::time(cost.recorder_ns))
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
        let killed = manifest.group.events.get("oom_kill").copied().unwrap_or(0);
        if killed > 0 {
            remarks.push(format!(
                "the limit killed {}: the recording ends early; record with a larger limit",
                figures::counted(killed, "task")
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
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::linux::starts;

    #[test]
    fn recording_without_command_announces_its_end() {
        assert_eq!(
            starts(Path::new("rec"), Some(4 << 30), None),
            "recording into rec until SIGINT (Ctrl-C) or 4 GiB of accesses; --for DURATION limits the time"
        );
        assert_eq!(
            starts(Path::new("rec"), Some(4 << 30), Some(Duration::from_secs(10))),
            "recording into rec until SIGINT (Ctrl-C) or 4 GiB of accesses or 10.0 s"
        );
    }
}
