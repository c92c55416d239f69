//! `pageout bench`: the live page cache next to other readers of files ([`pageout_study::live_bench`]), as a table and JSON.

pub(crate) mod args; // what can be asked
#[cfg(target_os = "linux")]
mod text; // the result as a table

use crate::context::Context;
use crate::failure::Outcome;
use args::BenchArgs;

/// Measures.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &BenchArgs, cx: &Context) -> Outcome {
    if args.reader { linux::read(cx) } else { linux::measure(args, cx) }
}

/// There is nothing to measure where there is no Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &BenchArgs, _: &Context) -> Outcome {
    Err(crate::failure::Failure::Input(anyhow::anyhow!("the live page cache needs Linux")))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use anyhow::Context as _;
    use pageout_study::Error;
    use pageout_study::live_bench::{self, Ask};
    use pageout_study::scenario::interpretation;
    use serde_json::Value;

    use super::args::BenchArgs;
    use super::text;
    use crate::commands::trace::{read_options, read_table};
    use crate::context::Context;
    use crate::failure::Outcome;
    use crate::print::Terminal;
    use crate::signals;

    /// Measures, from the options to the table.
    pub(super) fn measure(args: &BenchArgs, cx: &Context) -> Outcome {
        let mut ask = asked(args, cx)?;
        ask.check_readers()?;
        if let Some(trace) = ask.trace()?.filter(|path| path.exists()) {
            let options = read_options(&args.reading)?;
            interpretation::remark(trace, &options, &*cx.output)
                .map_err(|error| anyhow::anyhow!("{error}"))?;
            ask.read = read_table(&args.reading)?;
        }
        // There is a group to be removed, whatever comes.
        let _listening = signals::listen_until_done();
        let mut answer = live_bench::ask(&ask, &Terminal::new(&cx.output))?;
        let ended = answer.interrupted.take().map(|why| Error::Interrupted(why).into());
        match ended {
            Some(failure) if answer.rounds == 0 => cx.output.no_result(failure, Value::Null),
            Some(failure) if cx.output.is_data() => cx.output.no_result(failure, answer.json()),
            Some(failure) => cx.output.print_text(&text::text(&answer, cx.layout())).and(Err(failure)),
            None if cx.output.is_data() => cx.output.print_json(&answer),
            None => cx.output.print_text(&text::text(&answer, cx.layout())),
        }
    }

    fn asked(args: &BenchArgs, cx: &Context) -> anyhow::Result<Ask> {
        let mut reader = cx.program.words().context("cannot find the executable of this program")?;
        reader.extend(["bench", "--reader"].map(Into::into));
        Ok(Ask {
            file: args.file.clone(),
            load: args.load.clone(),
            budget: args.budget,
            size: args.size,
            folder: args.folder.clone(),
            policy: args.policy.clone(),
            beside: args.beside.clone(),
            reads: args.reads,
            rounds: args.rounds,
            threads: args.threads,
            batch: args.batch,
            in_place: args.in_place,
            cold: args.cold,
            buffered: args.buffered,
            equal_memory: args.equal_memory,
            seed: args.seed,
            baselines: cx.baselines.clone(),
            reader,
            ..Ask::default()
        })
    }

    /// Is the process of one that reads.
    pub(super) fn read(cx: &Context) -> Outcome {
        // The parent process may be killed.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
        let served = live_bench::serve(&mut input, &mut output, &cx.baselines);
        Ok(served.map_err(anyhow::Error::from)?)
    }
}
