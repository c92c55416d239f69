//! From a checked scenario to one that can be built: what only looking into other files can tell.

use std::path::Path;

use pageout_sim::scenario::{Channel, Footprint, Scenario, Size};

use crate::cli::OutputOptions;
use crate::progress;

/// Makes the paths of traces absolute from `directory`, and sizes the objects whose trace is to say how large they are.
pub(crate) fn prepare(
    scenario: &mut Scenario,
    directory: &Path,
    options: &OutputOptions,
) -> anyhow::Result<()> {
    for index in 0..scenario.task.len() {
        for at in 0..scenario.task[index].object.len() {
            if let Some(trace) = &mut scenario.task[index].object[at].trace {
                // Without the "./" of a scenario in the current directory, which nobody wrote.
                *trace = if directory == Path::new(".") { trace.clone() } else { directory.join(&*trace) };
            }
            size_by_trace(scenario, index, at, options)?;
        }
    }
    Ok(())
}

/// A trace of several objects sizes the objects behind the one it stands at as well.
fn size_by_trace(
    scenario: &mut Scenario,
    task: usize,
    at: usize,
    options: &OutputOptions,
) -> anyhow::Result<()> {
    let object = &scenario.task[task].object[at];
    let Some(trace) = object.trace.clone() else { return Ok(()) };
    let read = object.read_options().map_err(|error| anyhow::anyhow!("{error}"))?;
    let needs_size = |object: &pageout_sim::scenario::Object| object.size.is_none() && object.file.is_none();
    if !scenario.task[task].object[at..].iter().any(needs_size) {
        return Ok(());
    }
    let bar = progress::bar(options, None, &format!("sizing by {}", trace.display()));
    let footprint = Footprint::of_trace(&trace, &read, &mut |accesses| bar.set_position(accesses));
    bar.finish_and_clear();
    let footprint = footprint.map_err(|error| anyhow::anyhow!("{error}"))?;
    let task = &mut scenario.task[task];
    let objects = footprint.object_pages.len();
    anyhow::ensure!(
        at + objects <= task.object.len(),
        "task `{}`: the trace {} accesses {objects} objects, but from object {at} on the task has {}; add a [[task.object]] for each",
        task.name,
        trace.display(),
        task.object.len() - at
    );
    for (object, &pages) in task.object[at..].iter_mut().zip(&footprint.object_pages) {
        if needs_size(object) {
            object.size = Some(Size::from_pages(pages.max(1)));
        }
        let writes = footprint.writes > 0 && matches!(object.channel, Channel::File | Channel::Mapped);
        anyhow::ensure!(
            !writes || object.read_only,
            "task `{}`: the trace {} writes, and writes to a regular file are not modelled yet; set read_only = true, or use \
             channel \"anonymous\" or \"tmpfs\"",
            task.name,
            trace.display()
        );
    }
    Ok(())
}
