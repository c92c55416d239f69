//! An estimate of what takes long, told before it is counted: how long that will take, how much memory, and what will come of it, nearly.

use pageout_cache::curve::sampling::PAGES_MIN;
use pageout_study::bench::{NotSampled, Question, Trace};

use super::{Shown, told};
use crate::commands::replay::args::ReplayArgs;
use crate::print::progress::name_of;
use crate::print::{figures, output, table};

/// What takes longer is estimated first.
const LONG_NS: u64 = 10_000_000_000;
/// The share of pages that is looked at, where that is enough of them.
const RATE: f64 = 0.01;
/// Sampling more is hardly faster than counting.
const RATE_MAX: f64 = 0.2;
/// Sizes that are estimated, spread over all.
const SIZES_MAX: usize = 12;

/// Tells what is expected of a question that takes long. Errors: the trace can't be read again.
pub(super) fn first(args: &ReplayArgs, trace: &Trace, question: &Question) -> anyhow::Result<()> {
    let expected = question.expected(trace, args.trace_memory.0);
    if expected.ns < LONG_NS {
        return Ok(());
    }
    output::remark(&format!(
        "note: {}: {} over {} accesses, about {} and {} of memory",
        name_of(&trace.path),
        figures::counted(expected.runs as u64, "simulation"),
        figures::count(trace.accesses),
        figures::time(expected.ns / 1_000_000_000 * 1_000_000_000),
        figures::bytes(expected.bytes)
    ));
    let least = 1.1 * f64::from(PAGES_MIN) / f64::from(trace.distinct_pages.max(1));
    let rate = RATE.max(least);
    if rate > RATE_MAX || args.output.quiet {
        return Ok(());
    }
    // The smallest memories have no share of a page.
    let sizes = question.sizes.iter().copied().filter(|&size| f64::from(size) * rate >= 1.0);
    let sizes: Vec<u32> = sizes.collect();
    let sizes: Vec<u32> = sizes.iter().copied().step_by(sizes.len().div_ceil(SIZES_MAX).max(1)).collect();
    if sizes.is_empty() {
        return Ok(());
    }
    let question = Question { sizes: &sizes, name: question.name.clone(), ..*question };
    let (answer, sampled) = match question.sampled(trace, rate) {
        Ok(sampled) => sampled,
        Err(NotSampled::Refused(_) | NotSampled::Stopped) => return Ok(()),
        Err(NotSampled::Trace(error)) => return Err(error.into()),
    };
    if answer.interrupted.is_some() {
        return Ok(());
    }
    let names = question.policies.iter().map(ToString::to_string);
    let heading = std::iter::once("miss ratio".to_string()).chain(names).collect();
    let row = |(at, size): (usize, &u32)| {
        let cells = answer.cells.iter().map(|row| Shown::of(row[at], trace.accesses).miss_ratio());
        std::iter::once(figures::bytes(u64::from(*size) * 4096)).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> =
        std::iter::once(heading).chain(question.sizes.iter().enumerate().map(row)).collect();
    output::remark(&format!("{}\n\n{}", told(&sampled), table::layout(&rows, 1)));
    Ok(())
}
