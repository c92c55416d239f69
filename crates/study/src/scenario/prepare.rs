//! Preparing a checked scenario: the checks and sizes that need other files, such as traces.

use std::path::Path;

use pageout_sim::scenario::{Channel, Object, Problem, Scalar, Scenario, Size, Task, TraceFile};
use pageout_workload::trace::Footprint;
use pageout_workload::{ReadOptions, TraceError, trace};

use super::source::Source;
use crate::Watcher;

/// Makes the paths of traces start where the scenario's file is, and looks whether each is a trace. Reads those that are to say
/// how large objects are, or what percentages are of.
pub(super) fn prepare(
    scenario: &mut Scenario,
    source: &Source,
    watcher: &dyn Watcher,
) -> Result<(), Problem> {
    let directory = source.directory();
    let has_percentages = scenario.has_percentages();
    for (index, task) in scenario.task.iter_mut().enumerate() {
        for at in 0..task.object.len() {
            // Loaded traces were checked before.
            let Some(trace) = task.object[at].trace.as_ref().filter(|trace| trace.loaded.is_none()) else {
                continue;
            };
            let key = format!("task[{index}].object[{at}].trace");
            // Without the "./" of a scenario in the current directory, which the user did not write.
            let path = &trace.path;
            let trace = if directory == Path::new(".") { path.clone() } else { directory.join(path) };
            let read = task.object[at]
                .read_options()
                .map_err(|error| Problem::in_table(&key.replace(".trace", ".read"), error))?;
            task.object[at].trace = Some(trace.clone().into());
            if let Some(calls) = &mut task.object[at].file_calls {
                if directory != Path::new(".") {
                    calls.path = directory.join(&calls.path);
                }
                let key = key.replace(".trace", ".file_calls");
                trace::file_calls(&calls.path).map_err(|error| Problem::new(&key, error.to_string()))?;
            }
            let is_to_size = task.object[at..].iter().any(needs_size);
            if is_to_size || has_percentages {
                let loaded = source.traces().load(&trace, &read, watcher);
                let loaded = loaded.map_err(|error| Problem::new(&key, error.to_string()))?;
                if is_to_size {
                    size_by_trace(task, at, &loaded.footprint, &key)?;
                }
                let file = TraceFile::from(trace);
                task.object[at].trace =
                    Some(TraceFile { is_of_ids: !loaded.has_neighbours, loaded: Some(loaded), ..file });
            } else {
                let fail = |error: TraceError| Problem::new(&key, error.to_string());
                read_head(&trace, &read).map_err(fail)?;
                let has_neighbours = trace::has_neighbours(&trace, &read).map_err(fail)?;
                if let Some(file) = &mut task.object[at].trace {
                    file.is_of_ids = !has_neighbours;
                }
            }
        }
    }
    page_by_page(scenario);
    Ok(())
}

/// Swap of ids is read page by page, as their files are, where the scenario doesn't say and has no other anonymous memory.
fn page_by_page(scenario: &mut Scenario) {
    const PAGE_CLUSTER: &str = "vm.page-cluster";
    let read_ahead = scenario.files_read_ahead();
    let objects = scenario.task.iter().enumerate().flat_map(|(index, task)| {
        task.object.iter().enumerate().map(move |(at, object)| (index, at, object.channel))
    });
    let mut anonymous = objects.filter(|(.., channel)| *channel == Channel::Anonymous).peekable();
    let are_ids = anonymous.peek().is_some() && anonymous.all(|(task, at, _)| !read_ahead.object(task, at));
    if are_ids && scenario.sysctl.get(PAGE_CLUSTER).is_none() {
        scenario.sysctl.0.push((PAGE_CLUSTER.to_string(), Scalar::Integer(0)));
    }
}

fn needs_size(object: &Object) -> bool {
    object.size.is_none() && object.file.is_none()
}

/// Without this check only the run would find a file that is not a trace, and `--check` would never find it.
fn read_head(path: &Path, read: &ReadOptions) -> Result<(), TraceError> {
    trace::open(path, read)?.fill(&mut Vec::new(), 1)?;
    Ok(())
}

/// A trace of several objects sizes the objects behind the one it stands at as well.
fn size_by_trace(task: &mut Task, at: usize, footprint: &Footprint, key: &str) -> Result<(), Problem> {
    let (objects, there) = (footprint.objects.len(), task.object.len() - at);
    if objects > there {
        let message =
            format!("the trace has {objects} objects, but from object {at} on the task has {there}");
        return Err(Problem::new(key, message).help("add a [[task.object]] for each"));
    }
    for (object, of) in task.object[at..].iter_mut().zip(&footprint.objects) {
        if needs_size(object) {
            object.size = Some(Size::from_pages(of.pages.max(1)));
        }
    }
    Ok(())
}
