//! `pageout import`: what other tools wrote, as a trace to replay ([`pageout_study::import`]).

pub(crate) mod args; // what can be asked

use std::io::BufWriter;
use std::path::Path;

use anyhow::anyhow;
use pageout_sim::scenario::TimeSpan;
use pageout_study::import::{self, Ask, Format, Losses};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::print::unfinished::Unfinished;
use crate::print::{Terminal, figures};
use args::{ImportArgs, ImportFormat};

/// Reads the file line by line, and writes what it accesses.
pub(crate) fn run(args: &ImportArgs, cx: &Context) -> Outcome {
    let to = &args.output_file;
    if to.exists() && !args.force {
        return Err(Failure::Input(anyhow!(
            "{}: the file exists\nhelp: replace it with --force",
            to.display()
        )));
    }
    if to.extension().is_none_or(|extension| extension != "pgt") {
        return Err(Failure::Input(anyhow!("{}: wrong suffix: expected .pgt", to.display())));
    }
    let format = match args.source {
        ImportFormat::Events => Format::Events,
        ImportFormat::Blkparse => Format::Blkparse,
        ImportFormat::Lackey => Format::Lackey,
        ImportFormat::Lines => Format::Lines,
        ImportFormat::Damo => Format::Damo,
    };
    let sample_us = args.sample_interval.as_deref().map(microseconds).transpose().map_err(Failure::Input)?;
    let ask = Ask { from: args.from.clone(), format, pattern: args.pattern.clone(), sample_us };
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let target = Unfinished::new_in(directory).map_err(Failure::Output)?;
    let mut out = BufWriter::new(target);
    let answer = import::ask(&ask, &mut out, &Terminal::new(&cx.output))?;
    let target = out.into_inner().map_err(|error| Failure::Output(error.into_error()))?;
    target.finish(to).map_err(Failure::Output)?;
    if cx.output.is_data() {
        let mut json = serde_json::to_value(&answer).expect("results hold nothing that JSON can't");
        let members = json.as_object_mut().expect("it is one");
        members.shift_insert(3, "trace".to_string(), json!(to.to_string_lossy()));
        cx.output.print_json(&json)?;
        return verdict(args, &answer.losses);
    }
    let mut text = format!(
        "{}: {}, {} accesses, {}\n",
        to.display(),
        figures::counted(answer.records, "record"),
        figures::count(answer.accesses),
        figures::counted(answer.objects as u64, "object")
    );
    if let Some((number, line)) = &answer.skipped.first {
        let line: String = line.chars().take(80).collect();
        text += &format!(
            "note: {} could not be read, the first is line {number}: `{line}`\n",
            figures::counted(answer.skipped.lines, "line")
        );
    }
    for remark in &answer.remarks {
        text += &format!("note: {remark}\n");
    }
    cx.output.print_text(&text)?;
    verdict(args, &answer.losses)
}

/// A sample interval.
fn microseconds(text: &str) -> anyhow::Result<u64> {
    let span: TimeSpan = text.parse().map_err(|error| anyhow!("--sample-interval {text}: {error}"))?;
    match span.0 / 1_000 {
        0 => Err(anyhow!("--sample-interval: found {text}, expected at least 1us")),
        us => Ok(us),
    }
}

/// Fails if events were lost, so that accesses are missing in the trace.
fn verdict(args: &ImportArgs, losses: &Losses) -> Outcome {
    if !losses.are_there() {
        return Ok(());
    }
    let counted = (losses.events > 0).then(|| figures::counted(losses.events, "event"));
    let uncounted = (losses.uncounted > 0).then(|| {
        format!("events that the tool did not count, {}", figures::counted(losses.uncounted, "time"))
    });
    let lost: Vec<String> = counted.into_iter().chain(uncounted).collect();
    Err(Failure::Input(anyhow!(
        "{}: LOST: {}; accesses are missing in {}\nhelp: record with larger buffers, or less at a time",
        args.from.display(),
        lost.join(", and "),
        args.output_file.display()
    )))
}
