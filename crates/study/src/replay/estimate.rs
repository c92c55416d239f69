//! A first estimate of a long replay: its duration, its memory, and its approximate result.

use pageout_cache::curve::sampling::PAGES_MIN;

use crate::bench::{Cell, NotSampled, Question, Trace};
use crate::error::Error;
use crate::figures;
use crate::watch::{Estimate, name_of};

/// Replays that take longer are estimated first.
const LONG_NS: u64 = 10_000_000_000;
/// The share of pages that is sampled, if that is enough of them.
const RATE: f64 = 0.01;
/// Sampling more is hardly faster than counting.
const RATE_MAX: f64 = 0.2;
/// Sizes that are estimated, spread over all.
const SIZES_MAX: usize = 12;

/// Tells the watcher what is expected of a question that takes long, where so many bytes of a trace are kept. Errors: the trace can't be
/// read again.
pub(super) fn first(trace: &Trace, question: &Question, bytes_max: u64) -> Result<(), Error> {
    let expected = question.expected(trace, bytes_max);
    if expected.ns < LONG_NS {
        return Ok(());
    }
    question.watcher.remark(&format!(
        "note: {}: {} over {} accesses, about {} and {} of memory",
        name_of(&trace.path),
        figures::counted(expected.runs as u64, "simulation"),
        figures::count(trace.accesses),
        figures::time(expected.ns / 1_000_000_000 * 1_000_000_000),
        figures::bytes(expected.bytes)
    ));
    let mut failed = None;
    question.watcher.estimate(&mut || {
        estimated(trace, question).unwrap_or_else(|error| {
            failed = Some(error);
            None
        })
    });
    failed.map_or(Ok(()), Err)
}

/// Estimates some of the sizes. Nothing if too few pages can be sampled, or a signal came.
fn estimated(trace: &Trace, question: &Question) -> Result<Option<Estimate>, Error> {
    let least = 1.1 * f64::from(PAGES_MIN) / f64::from(trace.distinct_pages.max(1));
    let rate = RATE.max(least);
    if rate > RATE_MAX {
        return Ok(None);
    }
    // The smallest memories have no share of a page.
    let sizes = question.sizes.iter().copied().filter(|&size| f64::from(size) * rate >= 1.0);
    let sizes: Vec<u32> = sizes.collect();
    let sizes: Vec<u32> = sizes.iter().copied().step_by(sizes.len().div_ceil(SIZES_MAX).max(1)).collect();
    if sizes.is_empty() {
        return Ok(None);
    }
    let some = Question { sizes: &sizes, name: question.name.clone(), ..*question };
    let (answer, sampled) = match some.sampled(trace, rate) {
        Ok(sampled) => sampled,
        Err(NotSampled::Refused(_) | NotSampled::Stopped) => return Ok(None),
        Err(NotSampled::Trace(error)) => return Err(error.into()),
    };
    if answer.interrupted.is_some() {
        return Ok(None);
    }
    let ratio = |cell: &Cell| match cell {
        Cell::Estimate(of) => Some([of.mean, of.least, of.most]),
        _ => None,
    };
    let miss_ratios = answer.cells.iter().map(|row| row.iter().map(ratio).collect());
    Ok(Some(Estimate {
        policies: question.policies.iter().map(ToString::to_string).collect(),
        miss_ratios: miss_ratios.collect(),
        sizes,
        rate: sampled.rate,
        pages: sampled.pages,
    }))
}
