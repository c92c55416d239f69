//! Files of a recording, and how its traces use them: what a task has that says `recorded = "rec/accesses.pgt"`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pageout_record::{ACCESSES, BEFORE, Channel, FILE_CALLS, FileRecord, MappedAdvice};
use pageout_sim::scenario::{CallsFile, File, Object, Problem, Scenario};
use pageout_workload::{ReadOptions, TraceError, trace};
use serde_json::{Value, json};

use super::machine::device_name;
use super::recording::Recording;
use super::woven::woven;
use crate::Error;
use crate::scenario::traces::TRACE_MEMORY;

/// Insertions by reads of a file, which show whether it is read ahead.
const TELLING: u64 = 16;

/// What scenarios take from a recording: read once, however many of them there are.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    files: Vec<File>,
    accesses: Vec<Object>,
    before: Vec<Object>,
}

impl Recorded {
    /// That of a recording, its traces in memory. Errors: they can't be read.
    pub(super) fn of(recording: &Recording, folder: &Path) -> Result<Recorded, Error> {
        let asked = |error: serde_json::Error| Error::Asked(format!("{}: {error}", folder.display()));
        let path = folder.join(ACCESSES);
        let mut accesses = objects(recording, &path).map_err(asked)?;
        weave(recording, &mut accesses, &path)?;
        let before = objects(recording, &folder.join(BEFORE)).map_err(asked)?;
        let mut recorded = Recorded { files: files(recording).map_err(asked)?, accesses, before };
        for object in recorded.accesses.iter_mut().chain(&mut recorded.before) {
            let Some(trace) = object.trace.as_mut().filter(|trace| trace.loaded.is_none()) else { continue };
            let loaded =
                trace::load_within(&trace.path, &ReadOptions::default(), TRACE_MEMORY.0, &mut |_| {});
            trace.loaded = loaded.map_err(|error| Error::Asked(error.to_string()))?.map(Arc::new);
        }
        Ok(recorded)
    }

    /// Gives tasks that name a trace of this recording what they take from it.
    pub(crate) fn give(&self, scenario: &mut Scenario) {
        for task in &mut scenario.task {
            let Some(path) = task.recorded.take() else { continue };
            let is_before = path.file_name().is_some_and(|name| name == BEFORE);
            task.object = if is_before { self.before.clone() } else { self.accesses.clone() };
        }
        scenario.file = self.files.clone();
    }
}

/// Gives each task that names a recorded trace the objects of that trace, and the scenario their files. Paths start in `directory`. A file whose
/// name the scenario has already is that one.
pub(crate) fn expand(scenario: &mut Scenario, directory: &Path) -> Result<(), Problem> {
    let mut known: Option<BTreeSet<String>> = None;
    let mut last: Option<(PathBuf, Recording)> = None;
    for (index, task) in scenario.task.iter_mut().enumerate() {
        let Some(path) = task.recorded.take() else { continue };
        let key = format!("task[{index}].recorded");
        if !task.object.is_empty() {
            let message = "`recorded` sets the objects of the task, but the task has other objects too";
            return Err(Problem::new(key, message).help("remove one of `recorded` and [[task.object]]"));
        }
        if !path.file_name().is_some_and(|name| name == ACCESSES || name == BEFORE) {
            let message = format!("{}: found another name, expected {ACCESSES} or {BEFORE}", path.display());
            return Err(Problem::new(key, message));
        }
        let from = if directory == Path::new(".") { path.clone() } else { directory.join(&path) };
        let refuse = |error: Error| Problem::new(&key, error.to_string());
        let folder = from.parent().unwrap_or(Path::new("."));
        let is_first = last.as_ref().is_none_or(|(of, _)| of != folder);
        if is_first {
            last = Some((folder.to_path_buf(), Recording::read(folder, true).map_err(refuse)?));
        }
        let Some((_, recording)) = &last else { unreachable!("it has just been read") };
        task.object = objects(recording, &path)
            .map_err(|error| Problem::new(&key, format!("{}: {error}", path.display())))?;
        if path.file_name().is_some_and(|name| name == ACCESSES) {
            weave(recording, &mut task.object, &from).map_err(refuse)?;
        }
        if !is_first {
            continue;
        }
        let names = known.get_or_insert_with(|| scenario.file.iter().map(|file| file.name.clone()).collect());
        let files =
            files(recording).map_err(|error| Problem::new(&key, format!("{}: {error}", path.display())))?;
        scenario.file.extend(files.into_iter().filter(|file| names.insert(file.name.clone())));
    }
    Ok(())
}

/// Adds hits on mapped pages and the other memory of the group to the accesses, and removes accesses beyond the end of a file. Changed
/// accesses are kept in memory.
fn weave(recording: &Recording, objects: &mut Vec<Object>, accesses: &Path) -> Result<(), Error> {
    let unseen = recording.unseen()?;
    let beside = recording.beside().filter(|beside| beside.moving() > 0);
    let header = recording.header.as_ref().map_or(&[][..], |header| &header.objects);
    let ends: Vec<Option<u64>> =
        recording.objects().iter().map(|&(file, _)| known_pages(&recording.manifest.file[file])).collect();
    let is_behind = ends.iter().zip(header).any(|(end, of)| end.is_some_and(|end| end < of.pages));
    let is_changed = is_behind || unseen.count() > 0 || beside.is_some();
    let object = objects.len() as u32;
    let Some(first) = objects.first_mut().filter(|_| is_changed) else { return Ok(()) };
    let asked = |error: TraceError| Error::Asked(error.to_string());
    let path = accesses.with_file_name(FILE_CALLS);
    let mut calls = match first.file_calls {
        Some(_) => trace::file_calls(&path).map_err(asked)?,
        None => Vec::new(),
    };
    let mut more = Vec::new();
    if let Some(beside) = beside {
        more = beside.writes(object);
        calls.extend(beside.truncations(object));
        calls.sort_by_key(|call| call.access);
    }
    more.extend(unseen.accesses());
    more.sort_by_key(|(place, _)| *place);
    let (loaded, moved) = woven(accesses, &more, &ends, &calls).map_err(asked)?;
    if let Some(trace) = &mut first.trace {
        // A caller that inspects a loaded trace uses its path unchanged.
        trace.path = accesses.to_path_buf();
        trace.loaded = Some(Arc::new(loaded));
    }
    if !moved.is_empty() || first.file_calls.is_some() {
        first.file_calls = Some(CallsFile { path, loaded: Some(moved.into()) });
    }
    if let Some(beside) = beside {
        let table = json!({ "channel": "tmpfs", "size": beside.moving() * 4096, "per_copy": true });
        objects.push(serde_json::from_value(table).map_err(|error| Error::Asked(error.to_string()))?);
    }
    Ok(())
}

/// The files of a recording.
fn files(recording: &Recording) -> serde_json::Result<Vec<File>> {
    let has_devices = recording.manifest.device.len() > 1;
    let file = |(file, name): (&FileRecord, String)| {
        let mut table = json!({ "name": name, "size": pages_of(recording, file) * 4096 });
        if has_devices {
            table["device"] = device_name(&file.device).into();
        }
        serde_json::from_value(table)
    };
    recording.files().zip(names(recording)).map(file).collect()
}

/// The objects of a trace of a recording, in order.
fn objects(recording: &Recording, trace: &Path) -> serde_json::Result<Vec<Object>> {
    let is_before = trace.file_name().is_some_and(|name| name == BEFORE);
    let names = names(recording);
    let object = |(at, (index, channel)): (usize, (usize, Channel))| {
        let file = &recording.manifest.file[index];
        let mut table = json!({ "channel": "file", "file": names[index] });
        let mut advise = |advice: &str| table["advice"] = advice.into();
        match (is_before, channel, file.mapped_advice) {
            // The first task brings in only the pages that were in memory at the start, without readahead.
            (true, ..) => advise("random"),
            (_, Channel::File, _) if is_random(file) => advise("random"),
            (_, Channel::Mapped, Some(MappedAdvice::Random)) => advise("random"),
            (_, Channel::Mapped, Some(MappedAdvice::Sequential)) => advise("sequential"),
            _ => {}
        }
        if !is_before && channel == Channel::Mapped {
            table["channel"] = "mapped".into();
            if file.executable {
                table["executable"] = true.into();
            }
        }
        let is_counted = !is_before && channel == Channel::File && !recording.has_file_calls;
        if let Some(every) = file.pages_written.checked_div(file.syncs).filter(|_| is_counted) {
            table["fsync_every"] = every.max(1).into();
        }
        if at == 0 {
            table["trace"] = Value::String(trace.to_string_lossy().into_owned());
            if !is_before && recording.has_file_calls {
                let calls = trace.with_file_name(FILE_CALLS);
                table["file_calls"] = Value::String(calls.to_string_lossy().into_owned());
            }
        }
        serde_json::from_value(table)
    };
    recording.objects().into_iter().enumerate().map(object).collect()
}

/// Returns true if the program reads the file without readahead.
fn is_random(file: &FileRecord) -> bool {
    file.read_insertions >= TELLING && file.read_ahead == 0
}

/// Pages of a file: its recorded size, or the number of accessed pages if the size is unknown or the file has grown since.
fn pages_of(recording: &Recording, file: &FileRecord) -> u64 {
    let objects = recording.header.as_ref().map_or(&[][..], |header| &header.objects);
    let accessed = [file.object, file.mapped_object].into_iter().flatten();
    let accessed =
        accessed.filter_map(|object| objects.get(object as usize)).map(|object| object.pages).max();
    known_pages(file).or(accessed).unwrap_or(1).max(1)
}

/// Pages of a file whose size is known for all of the recording.
fn known_pages(file: &FileRecord) -> Option<u64> {
    let is_constant = file.pages_written == 0 && file.deletions == 0 && file.truncations == 0;
    file.bytes.filter(|&bytes| is_constant && bytes > 0).map(|bytes| bytes.div_ceil(4096))
}

/// The names of all files; one that another has already gets a number.
fn names(recording: &Recording) -> Vec<String> {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut names = Vec::new();
    for file in recording.files() {
        let count = seen.entry(&file.name).or_default();
        *count += 1;
        names.push(if *count == 1 { file.name.clone() } else { format!("{} #{count}", file.name) });
    }
    names
}
