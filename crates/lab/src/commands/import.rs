//! `pageout import`: what other tools wrote, as a trace to replay.

pub(crate) mod args; // what can be asked
mod losses; // what a tool says that it lost
mod sources; // from a line to accesses, one reader a format

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use pageout_workload::trace::PgtWriter;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::print::unfinished::Unfinished;
use crate::print::{figures, output, progress};
use args::{ImportArgs, ImportFormat};
use losses::Losses;
use sources::Source;

/// Reads `args.from` line by line, and writes what it accesses.
pub(crate) fn run(args: &ImportArgs) -> Outcome {
    let to = &args.output_file;
    if to.exists() && !args.force {
        return Err(Failure::Input(anyhow!("{} exists; --force replaces it", to.display())));
    }
    if to.extension().is_none_or(|extension| extension != "pgt") {
        return Err(Failure::Input(anyhow!(
            "{}: what is written is a .pgt, and its name has to say so",
            to.display()
        )));
    }
    let mut source = source(args)?;
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let target = Unfinished::new_in(directory).map_err(Failure::Output)?;
    let mut out = BufWriter::new(target);
    let mut writer = PgtWriter::new(&mut out, 4096, source.tells_writes()).map_err(Failure::Output)?;
    let bar =
        progress::bar(&args.output, std::fs::metadata(&args.from).ok().map(|file| file.len()), "importing");
    let (mut accesses, mut records, mut skipped, mut first_skipped) = (Vec::new(), 0, 0, None);
    let mut losses = Losses::default();
    let mut unwritten = None;
    let read = for_each_line(&args.from, |number, line| {
        let is_read = source.line(line, &mut accesses)?;
        records += u64::from(is_read == Some(true));
        // What a pattern or a format has is no report of a tool, whatever its names are.
        if is_read != Some(true) && losses.add(line) {
            return Ok(());
        }
        if is_read == Some(false) {
            skipped += 1;
            first_skipped.get_or_insert_with(|| (number, line.to_string()));
        }
        bar.inc(line.len() as u64 + 1);
        if accesses.len() >= 1 << 16 {
            if let Err(error) = writer.write(&accesses) {
                unwritten = Some(error);
                bail!("it can't be written");
            }
            accesses.clear();
        }
        Ok(())
    });
    if let Some(error) = unwritten {
        return Err(Failure::Output(error));
    }
    read?;
    bar.finish_and_clear();
    writer.write(&accesses).map_err(Failure::Output)?;
    if records == 0 {
        let hint = match first_skipped {
            Some((number, line)) => {
                format!("; line {number} is `{}`", line.chars().take(80).collect::<String>())
            }
            None => String::new(),
        };
        let other = other_text(&args.from).map_or(String::new(), |other| format!("\n  {other}"));
        let told = format!("{}: {}{hint}{other}", args.from.display(), source.nothing());
        return Err(Failure::Input(anyhow!(told)));
    }
    let header = writer.finish(&source.names(), None, records).map_err(Failure::Output)?;
    let target = out.into_inner().map_err(|error| Failure::Output(error.into_error()))?;
    target.finish(to).map_err(Failure::Output)?;
    let remarks = source.remarks();
    if args.output.is_data() {
        output::print_json(&json!({
            "complete": !losses.are_there(),
            "lost_events": losses.events,
            "uncounted_losses": losses.uncounted,
            "trace": to.to_string_lossy(),
            "records": records,
            "accesses": header.accesses,
            "objects": header.objects.len(),
            "lines_skipped": skipped,
            "remarks": remarks,
        }))?;
        return verdict(args, losses);
    }
    let mut text = format!(
        "{}: {}, {} accesses, {}\n",
        to.display(),
        figures::counted(records, "record"),
        figures::count(header.accesses),
        figures::counted(header.objects.len() as u64, "object")
    );
    if let Some((number, line)) = first_skipped {
        let line: String = line.chars().take(80).collect();
        text += &format!(
            "note: {} could not be read, the first is line {number}: `{line}`\n",
            figures::counted(skipped, "line")
        );
    }
    for remark in remarks {
        text += &format!("note: {remark}\n");
    }
    output::print_text(&text)?;
    verdict(args, losses)
}

/// Whether the trace is all there was. Errors: events were lost, so accesses are missing in it.
fn verdict(args: &ImportArgs, losses: Losses) -> Outcome {
    if !losses.are_there() {
        return Ok(());
    }
    let counted = (losses.events > 0).then(|| figures::counted(losses.events, "event"));
    let uncounted = (losses.uncounted > 0).then(|| {
        format!("events that the tool did not count, {}", figures::counted(losses.uncounted, "time"))
    });
    let lost: Vec<String> = counted.into_iter().chain(uncounted).collect();
    Err(Failure::Input(anyhow!(
        "{}: LOST: {}; {} has what is left, and accesses are missing in it: record with larger buffers, or less at a time",
        args.from.display(),
        lost.join(", and "),
        args.output_file.display()
    )))
}

/// What a file is that is none of another tool's lines, and which command reads it.
fn other_text(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = [0; 16];
    let length = File::open(path).ok()?.read(&mut start).ok()?;
    let path = path.display();
    Some(match &start[..length] {
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => {
            format!("this is a perf.data: `perf script -i {path} > trace.txt` makes text of it")
        }
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => {
            format!("this is a trace.dat: `trace-cmd report -i {path} > trace.txt` makes text of it")
        }
        _ => format!(
            "`pageout replay {path}` reads traces of accesses (.pgt, .csv, .lis, .oracleGeneral and others); `perf script` and `trace-cmd report` \
             make text of what they recorded"
        ),
    })
}

fn source(args: &ImportArgs) -> anyhow::Result<Source> {
    if args.source != ImportFormat::Lines && args.pattern.is_some() {
        bail!("--pattern is for --source lines");
    }
    Ok(match args.source {
        ImportFormat::Events => {
            let mut tells_reads = false;
            for_each_line(&args.from, |_, line| {
                tells_reads |= line.contains("mm_filemap_get_pages");
                Ok(())
            })?;
            Source::events(tells_reads)?
        }
        ImportFormat::Blkparse => Source::blkparse(),
        ImportFormat::Lackey => Source::lackey(),
        ImportFormat::Lines => {
            let pattern = args.pattern.as_deref().context(
                "--source lines needs --pattern, such as --pattern '{op} {file} {offset} {bytes}'",
            )?;
            Source::lines(pattern)?
        }
    })
}

/// Hands each line to `take`, by its number from 1.
fn for_each_line(path: &Path, mut take: impl FnMut(u64, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(!path.is_dir(), "{} is a directory", path.display());
    let (mut input, mut bytes, mut number) = (BufReader::new(file), Vec::new(), 0);
    loop {
        bytes.clear();
        let length =
            input.read_until(b'\n', &mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
        if length == 0 {
            return Ok(());
        }
        number += 1;
        take(number, String::from_utf8_lossy(&bytes).trim_end())?;
    }
}
