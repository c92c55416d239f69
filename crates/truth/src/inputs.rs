//! What a kernel was given besides accesses, where it was recorded: it is replayed, and then only rules can differ.
//!
//! Each of these inputs can be left out (`--without`), and what the simulator supposes in its place is then what the run's figures
//! show. So an input's worth is a figure.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use pageout_engine::Nanos;
use pageout_sim::BlockCall;
use pageout_workload::Access;

use super::files::{read_lines, read_u32s};
use super::kernel_trace::KernelTrace;
use super::object::Object;
use super::recording::{Flush, Recording, Run};
use super::start_state::StartState;
use crate::input::Input;

/// The recorded inputs of a run, those left out that are to be.
#[derive(Default)]
pub(crate) struct Inputs<'a> {
    /// When statistics were flushed.
    pub(crate) flushes: Option<&'a [Flush]>,
    /// By access, whether each aging in it walked the address space.
    pub(crate) agings: Option<BTreeMap<u64, Vec<bool>>>,
    /// By access, the pages of its mapping that its faults mapped.
    pub(crate) mapped: Option<BTreeMap<u64, Vec<Range<u64>>>>,
    /// When each access began, since the first one did.
    pub(crate) times: Option<Vec<Nanos>>,
    /// The whole machine's allocator and LRU lists before the first access.
    pub(crate) found: Option<StartState>,
    /// How long kswapd took to run, each time that it was woken.
    pub(crate) kswapd_wakes: Vec<Nanos>,
    /// What the kernel took for itself and gave back; only of a machine whose memory was found.
    pub(crate) kernel_blocks: Vec<(Nanos, BlockCall)>,
    /// When the last event of a machine's trace was; the start where it has none.
    pub(crate) trace_end: Option<Nanos>,
    /// How often kswapd woke by such a trace.
    pub(crate) trace_wakes: Option<u64>,
}

impl<'a> Inputs<'a> {
    /// Reads those of a run.
    pub(crate) fn read(
        recording: &'a Recording,
        run: &Run,
        objects: &[Object],
        sequence: &[Access],
    ) -> anyhow::Result<Inputs<'a>> {
        let path = |input, path: &Option<std::path::PathBuf>| {
            path.as_ref().filter(|_| recording.plays(input)).map(|path| recording.dir().join(path))
        };
        let times = path(Input::AccessTimes, &run.access_times);
        let mapped = path(Input::MappedFile, &run.mapped_file);
        let found = path(Input::StartState, &run.start_state).filter(|_| run.is_of_machine());
        let trace = run.trace_file.as_ref().filter(|_| run.is_of_machine());
        let trace = trace.map(|path| KernelTrace::read(&recording.dir().join(path))).transpose()?;
        let plays_trace =
            [Input::KswapdWakes, Input::KernelAllocations].iter().any(|&input| recording.plays(input));
        let trace_end = trace.as_ref().filter(|_| plays_trace).map(|trace| trace.end);
        let trace_wakes = trace.as_ref().filter(|_| plays_trace).map(|trace| trace.wakes);
        let trace = trace.unwrap_or_default();
        let plays_blocks = found.is_some() && recording.plays(Input::KernelAllocations);
        let mut found = found.map(|path| StartState::read(&path)).transpose()?;
        if let Some(found) = &mut found {
            Input::PARTS
                .iter()
                .filter(|&&part| !recording.plays(part))
                .for_each(|&part| found.leave_out(part));
        }
        let agings = run.agings.as_ref().filter(|_| recording.plays(Input::Agings));
        Ok(Inputs {
            flushes: recording.flushes(run).filter(|_| recording.plays(Input::Flushes)),
            agings: agings.map(|agings| by_access(run, agings)).transpose()?,
            mapped: mapped.map(|path| read_mapped(&path, objects, sequence)).transpose()?,
            times: times.map(|path| read_times(&path, sequence.len())).transpose()?,
            found,
            kswapd_wakes: if recording.plays(Input::KswapdWakes) { trace.kswapd_wakes } else { Vec::new() },
            kernel_blocks: if plays_blocks { trace.kernel_blocks } else { Vec::new() },
            trace_end,
            trace_wakes,
        })
    }
}

/// `agings`: the access and how many address spaces were walked, an entry each time the youngest generation was to be aged.
fn by_access(run: &Run, agings: &[(u64, u64)]) -> anyhow::Result<BTreeMap<u64, Vec<bool>>> {
    let mut by_access: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
    for (at, &(access, walked)) in agings.iter().enumerate() {
        ensure!(
            access < run.ops,
            "`agings[{at}]`: found access {access}, expected one of {} from 0",
            run.ops
        );
        ensure!(walked <= 1, "`agings[{at}]`: found {walked} walked address spaces, expected at most 1");
        by_access.entry(access).or_default().push(walked == 1);
    }
    Ok(by_access)
}

/// `mapped_file`: a line for each run of pages that a fault mapped, `ACCESS OBJECT FIRST LAST`.
fn read_mapped(
    path: &Path,
    objects: &[Object],
    sequence: &[Access],
) -> anyhow::Result<BTreeMap<u64, Vec<Range<u64>>>> {
    let text = read_lines(path)?;
    let mut mapped: BTreeMap<u64, Vec<Range<u64>>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let what = || format!("{}:{number}", path.display());
        let words: Option<Vec<u64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let Some([access, object, first, last]) = words.and_then(|words| <[u64; 4]>::try_from(words).ok())
        else {
            bail!("{}: found `{line}`, expected `ACCESS OBJECT FIRST LAST`", what());
        };
        let of =
            sequence.get(access as usize).with_context(|| format!("{}: unknown access {access}", what()))?;
        ensure!(
            u64::from(of.object()) == object,
            "{}: access {access} is to object {}, but maps pages of object {object}",
            what(),
            of.object()
        );
        let pages = objects[of.object() as usize].pages;
        ensure!(
            first <= last && last < pages,
            "{}: pages {first} to {last} are not a range of the object's {pages} pages",
            what()
        );
        mapped.entry(access).or_default().push(first..last + 1);
    }
    Ok(mapped)
}

/// `access_times`: microseconds since the access before began.
fn read_times(path: &Path, accesses: usize) -> anyhow::Result<Vec<Nanos>> {
    let since = read_u32s(path)?;
    ensure!(
        since.len() == accesses,
        "{}: found {} times, expected {accesses}, one per access",
        path.display(),
        since.len()
    );
    let mut now = 0;
    let times = since.into_iter().map(|us| {
        now += u64::from(us) * 1000;
        Nanos(now)
    });
    Ok(times.collect())
}
