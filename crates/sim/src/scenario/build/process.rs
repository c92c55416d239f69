//! The processes of a task: what each has open and mapped, what it accesses, and its threads.

use std::ops::Range;

use pageout_engine::{ConfigError, CpuId, HugeAdvice, MmId, NodeId, ObjectId, Served, Step, TaskId};
use pageout_workload::AccessStream;
use pageout_workload::generator::ZipfTables;
use pageout_workload::rng::SplitMix64;
use pageout_workload::trace::{self, FileCall, file_calls as file_calls_of};

use super::files::{OpenFiles, own_file_name};
use super::{nanos, problem};
use crate::pace::Pace;
use crate::scenario::compressed::Compressed;
use crate::scenario::populate::populate;
use crate::scenario::streams::{self, Origin, OriginKind};
use crate::scenario::visits::Visits;
use crate::scenario::{
    Advice, CallsFile, Channel, Files, FirstThread, Lifetime, Object, OpenedBy, Problem, Scenario, Task,
};
use crate::{Calls, Machine, StreamSource, TaskSpec, cost};

/// One copy of a task, apart from what it has in common with the others.
pub(super) struct Run<'a> {
    pub(super) sizes: &'a Files<'a>,
    /// The seed of the task.
    pub(super) seed: u64,
    pub(super) copy: u32,
    /// The machine's tasks that have to end first.
    pub(super) after: Range<usize>,
    pub(super) visits: Option<Visits>,
    /// Zipf tables that all tasks share.
    pub(super) tables: &'a ZipfTables,
}

impl Scenario {
    /// The accesses of a task: the first loop of its first copy's first thread. If an object is accessed by calls of several pages, each access is a
    /// call, and pages are counted in calls. Errors: a pattern or a trace is invalid.
    pub fn accesses(&self, task: usize) -> Result<Box<dyn AccessStream>, Problem> {
        let sizes = self.files();
        let key = format!("task[{task}]");
        let of = &self.task[task];
        let origins =
            origins(of, &sizes).map_err(|error| Problem { key: format!("{key}.{}", error.key), ..error })?;
        // As of the first copy, in the first loop.
        let seed = SplitMix64::derive_seed(SplitMix64::derive_seed(self.task_seed(task), 0), 0);
        streams::stream(&origins, &write_first(of, &sizes), seed, &ZipfTables::default())
            .map_err(|error| problem(&key, error))
    }

    /// One copy of a task: its process, which is returned, and the threads of it, one a CPU of `cpus`.
    pub(super) fn add_process(
        &self,
        machine: &mut Machine,
        index: usize,
        run: &Run<'_>,
        cpus: &[CpuId],
        files: &OpenFiles,
    ) -> Result<MmId, Problem> {
        let task = &self.task[index];
        let key = format!("task[{index}]");
        let refuse = |error: ConfigError| problem(&key, error);
        let engine = machine.engine_mut();
        let memcg = engine
            .figures()
            .memcg_by_path(&task.memcg)
            .ok_or_else(|| problem(&key, "its cgroup does not exist"))?;
        let process = engine.process_create(memcg);
        engine.set_oom_score_adj(process, task.oom_score_adj);
        engine.set_io_flusher(process, task.io_flusher);
        engine.set_mempolicy(process, task.mempolicy()).map_err(refuse)?;
        let id = engine.task_create(process, cpus[0]);
        let mut channels = Vec::new();
        for (at, object) in task.object.iter().enumerate() {
            let name = object.file.clone().unwrap_or_else(|| own_file_name(task, at, run.copy));
            let file = files.get(&name).map(|file| file.id);
            let file = file
                .ok_or_else(|| problem(&format!("{key}.object[{at}]"), format!("there is no file `{name}`")));
            let advice = object.advice.of_mapping();
            match object.channel {
                Channel::File | Channel::Tmpfs => engine.open(id, file?),
                Channel::Mapped => engine.map_file(id, file?, advice, object.executable),
                Channel::Anonymous => {
                    let pages = run.sizes.pages_of(task, at);
                    engine.map_anon(id, pages.ok_or_else(|| problem(&key, "a mapping has no size"))?, advice)
                }
            }
            .map_err(refuse)
            .and_then(|id_of| {
                let compressed =
                    Compressed::of_object(object).engine().map_err(|message| problem(&key, message))?;
                compressed.map_or(Ok(()), |compressed| {
                    engine.set_compressibility(id, id_of, compressed).map_err(refuse)
                })?;
                if let Some(hugepage) = object.hugepage {
                    let advice = if hugepage { HugeAdvice::Hugepage } else { HugeAdvice::NoHugepage };
                    engine.madvise_hugepage(id, id_of, advice).map_err(refuse)?;
                }
                if object.locked {
                    engine.mlock(id, id_of).map_err(refuse)?;
                }
                if object.partial_writes {
                    engine.set_partial_writes(id, id_of, true).map_err(refuse)?;
                }
                Ok(())
            })?;
            channels.push(match object.channel {
                Channel::File | Channel::Tmpfs => {
                    cost::Channel::FileCalls { pages: object.request_pages() as u32 }
                }
                Channel::Mapped | Channel::Anonymous => cost::Channel::Mapped,
            });
        }
        self.populate(machine, task, id, &key)?;
        let calls = calls(task, run.sizes);
        let file_calls = file_calls(task, run.sizes)
            .map_err(|error| Problem { key: format!("{key}.{}", error.key), ..error })?;
        let (advice, will_need) = advice(task);
        let origins = origins(task, run.sizes)
            .map_err(|error| Problem { key: format!("{key}.{}", error.key), ..error })?;
        let write_first = write_first(task, run.sizes);
        // From the second loop on, all pages have been accessed, except anonymous memory of a separate process.
        let lives_on =
            |at: usize| task.lifetime != Lifetime::Loop || task.object[at].channel != Channel::Anonymous;
        let write_first_later: Vec<Option<u64>> =
            write_first.iter().enumerate().map(|(at, pages)| pages.filter(|_| !lives_on(at))).collect();
        let pace = match &run.visits {
            Some(visits) => visits.pace.clone(),
            None => pace_of_trace(task, &key)?,
        };
        let seed = SplitMix64::derive_seed(run.seed, run.copy.into());
        let ops = run.visits.as_ref().map(|visits| visits.ops);
        let mut first = None;
        for (thread, &cpu) in (0..).zip(cpus) {
            let seed = match thread {
                0 => seed,
                // Apart from those of the loops, which are derived from the seed itself.
                thread => SplitMix64::derive_seed(SplitMix64::derive_seed(seed, u64::MAX), thread),
            };
            let (origins, write_first) = (origins.clone(), [write_first.clone(), write_first_later.clone()]);
            let tables = run.tables.clone();
            let source: StreamSource = Box::new(move |turn| {
                let write_first = &write_first[usize::from(turn > 0)];
                streams::stream(&origins, write_first, SplitMix64::derive_seed(seed, turn.into()), &tables)
            });
            // The workers of a thread share all that it has.
            let is_process = thread == 0 && task.first_thread == FirstThread::Works;
            let of_thread = if is_process { id } else { self.add_thread(machine, task, id, cpu) };
            for (worker, source) in streams::in_turn(source, task.depth).into_iter().enumerate() {
                let source = streams::calls(source, &calls, ops);
                let id = match worker {
                    0 => of_thread,
                    _ => machine.engine_mut().thread_create(of_thread, cpu),
                };
                let spec = TaskSpec {
                    cpu,
                    migrates: task.migrates,
                    nice: task.nice,
                    rt_priority: task.rt_priority,
                    loops: task.loops,
                    start: nanos(task.start),
                    after: run.after.clone().collect(),
                    pace: pace.clone(),
                    thread_of: first,
                    lifetime: task.lifetime,
                    think_time: nanos(task.think_time),
                    weight: task.stands_for,
                    background: task.background,
                    end_fsync: (0..)
                        .zip(&task.object)
                        .filter(|(_, object)| object.end_fsync)
                        .map(|(at, _)| ObjectId(at))
                        .collect(),
                    fsync_every: (0..)
                        .zip(&task.object)
                        .filter_map(|(at, object)| Some((ObjectId(at), object.fsync_every?)))
                        .collect(),
                    truncate_every: (0..)
                        .zip(&task.object)
                        .filter_map(|(at, object)| Some((ObjectId(at), object.truncate_every?)))
                        .collect(),
                    delete_every: (0..)
                        .zip(&task.object)
                        .filter_map(|(at, object)| Some((ObjectId(at), object.delete_every?)))
                        .collect(),
                    file_calls: file_calls.clone(),
                    calls: calls.clone(),
                    advice: advice.clone(),
                    // Everything that a process needs is read once.
                    will_need: if first.is_none() { will_need.clone() } else { Vec::new() },
                    ..TaskSpec::new(id, &task.copy_name(run.copy), &task.memcg, channels.clone(), source)
                };
                let position = machine.task_add(spec).map_err(|error| problem(&key, error))?;
                first.get_or_insert(position);
            }
        }
        if task.first_thread == FirstThread::Waits {
            // It never runs again, and its address space has others.
            assert_eq!(machine.engine_mut().task_exit(id), Step::Done(Served::Exited));
        }
        Ok(process)
    }

    /// Pages that a process has in memory before it begins.
    fn populate(&self, machine: &mut Machine, task: &Task, id: TaskId, key: &str) -> Result<(), Problem> {
        for (at, object) in (0..).zip(&task.object) {
            let Some(node) = object.populate_node else { continue };
            let is_anonymous = object.channel == Channel::Anonymous;
            populate(machine.engine_mut(), id, ObjectId(at), is_anonymous, NodeId(node as u8))
                .map_err(|error| problem(&format!("{key}.object[{at}].populate_node"), error))?;
            machine.forgive_work();
        }
        Ok(())
    }

    /// A further thread of a process, with the files that it opens for itself.
    fn add_thread(&self, machine: &mut Machine, task: &Task, first: TaskId, cpu: CpuId) -> TaskId {
        let engine = machine.engine_mut();
        let thread = engine.thread_create(first, cpu);
        for (at, object) in (0..).zip(&task.object) {
            if object.opened_by == OpenedBy::Thread {
                engine.open_for_itself(thread, ObjectId(at));
            }
        }
        thread
    }
}

/// Calls of a recorded task on complete files, by the machine's objects. Ranges beyond the end of a file have no effect.
fn file_calls(task: &Task, sizes: &Files<'_>) -> Result<Vec<(u64, ObjectId, FileCall)>, Problem> {
    let listed = |(at, object): (usize, &'_ Object)| Some((at, object.file_calls.clone()?));
    let Some((at, CallsFile { path, loaded })) = (0..).zip(&task.object).find_map(listed) else {
        return Ok(deletes(task, sizes));
    };
    let key = format!("object[{at}].file_calls");
    let listed = match loaded {
        Some(loaded) => loaded,
        None => file_calls_of(&path).map_err(|error| Problem::new(&key, error.to_string()))?.into(),
    };
    let mut calls = Vec::new();
    for placed in listed.iter() {
        let object = (at + placed.object as usize, task.object.get(at + placed.object as usize));
        let (index, Some(of)) = object else {
            let message = format!("{}: there is no object {} of the trace", path.display(), placed.object);
            return Err(Problem::new(&key, message).help("add a [[task.object]] for each"));
        };
        let fits = match placed.call {
            FileCall::Sync | FileCall::Evict { .. } | FileCall::Forget => {
                matches!(of.channel, Channel::File | Channel::Mapped)
            }
            FileCall::Read { .. } | FileCall::Write { .. } => {
                matches!(of.channel, Channel::File | Channel::Tmpfs)
            }
            FileCall::Truncate { .. } | FileCall::Delete => of.channel != Channel::Anonymous,
        };
        if !fits {
            let message = format!(
                "{}: `{}`: channel \"{}\" has no file for it",
                path.display(),
                placed.line(),
                of.channel.name()
            );
            return Err(Problem::new(&key, message));
        }
        let pages = sizes.pages_of(task, index).unwrap_or(0);
        let is_behind = matches!(placed.call, FileCall::Truncate { first, .. } | FileCall::Evict { first, .. } if first >= pages);
        if !is_behind {
            calls.push((placed.access, ObjectId(index as u32), placed.call));
        }
    }
    Ok(calls)
}

/// What the deletes of a task's trace take out of its files. Anonymous memory stays.
fn deletes(task: &Task, sizes: &Files<'_>) -> Vec<(u64, ObjectId, FileCall)> {
    let Some((at, removals)) = task.removals() else { return Vec::new() };
    let mut calls = Vec::new();
    for placed in removals {
        let index = at + placed.object as usize;
        let is_file = |of: &Object| of.channel != Channel::Anonymous;
        if !task.object.get(index).is_some_and(is_file) {
            continue;
        }
        let pages = sizes.pages_of(task, index).unwrap_or(0);
        let FileCall::Truncate { first, end } = placed.call else { continue };
        if first < pages {
            let end = end.min(pages);
            calls.push((placed.access, ObjectId(index as u32), FileCall::Truncate { first, end }));
        }
    }
    calls
}

impl Advice {
    /// Hints about a mapping; the others are about a file.
    fn of_mapping(self) -> pageout_engine::Advice {
        match self {
            Advice::Normal | Advice::WillNeed | Advice::NoReuse => pageout_engine::Advice::Normal,
            Advice::Random => pageout_engine::Advice::Random,
            Advice::Sequential => pageout_engine::Advice::Sequential,
        }
    }

    /// Hints about an open file.
    fn of_file(self, channel: Channel) -> Option<pageout_engine::Advice> {
        match self {
            Advice::NoReuse => Some(pageout_engine::Advice::NoReuse),
            Advice::Random | Advice::Sequential if channel != Channel::Mapped => Some(self.of_mapping()),
            _ => None,
        }
    }
}

/// What a task says of its open files before its first access, and which of them it has read ahead.
fn advice(task: &Task) -> (Vec<(ObjectId, pageout_engine::Advice)>, Vec<ObjectId>) {
    let objects =
        (0..).map(ObjectId).zip(&task.object).filter(|(_, object)| object.channel != Channel::Anonymous);
    let said = |(at, object): (ObjectId, &Object)| Some((at, object.advice.of_file(object.channel)?));
    let will_need = objects.clone().filter(|(_, object)| object.advice == Advice::WillNeed);
    (objects.filter_map(said).collect(), will_need.map(|(at, _)| at).collect())
}

/// By how large calls a task accesses its objects.
fn calls(task: &Task, sizes: &Files<'_>) -> Vec<Calls> {
    let calls = |(at, object): (usize, &Object)| {
        Calls::of(object.request_pages() as u32, sizes.pages_of(task, at).unwrap_or(u64::MAX))
    };
    task.object.iter().enumerate().map(calls).collect()
}

/// When the accesses of a task's trace start.
fn pace_of_trace(task: &Task, key: &str) -> Result<Pace, Problem> {
    for (at, object) in task.object.iter().enumerate() {
        let Some(trace) = &object.trace else { continue };
        if let Some(pace) = &trace.pace {
            return Ok(pace.clone());
        }
        if task.timed > 0.0 {
            let options = object
                .read_options()
                .map_err(|error| Problem::in_table(&format!("{key}.object[{at}].read"), error))?;
            let parted = trace::load_parted(&trace.path, &options, None, true, u64::MAX, &mut |_| true);
            let parted = parted.map_err(|error| problem(&format!("{key}.timed"), error))?;
            let times = parted.and_then(|parted| parted.parts.first()?.times.clone()).unwrap_or_default();
            return Ok(Pace::arrivals(&times, task.timed));
        }
    }
    Ok(Pace::Costed)
}

/// By object, its size in calls, if the first access to each is made a write.
fn write_first(task: &Task, sizes: &Files<'_>) -> Vec<Option<u64>> {
    let of = |(at, object): (usize, &Object)| {
        let pages = sizes.pages_of(task, at).filter(|_| object.writes_first());
        pages.map(|pages| pages.div_ceil(object.request_pages()))
    };
    task.object.iter().enumerate().map(of).collect()
}

fn origins(task: &Task, sizes: &Files<'_>) -> Result<Vec<Origin>, Problem> {
    let mut origins = Vec::new();
    for (index, object) in task.object.iter().enumerate() {
        let Some(kind) = origin_kind(index, object, sizes)? else { continue };
        origins.push(Origin { object: index as u32, share: object.share, read_only: object.read_only, kind });
    }
    Ok(origins)
}

fn origin_kind(index: usize, object: &Object, sizes: &Files<'_>) -> Result<Option<OriginKind>, Problem> {
    if let Some(pattern) = sizes.pattern_of(object) {
        return match pattern {
            Ok(pattern) => Ok(Some(OriginKind::Pattern(pattern))),
            Err(error) => Err(Problem::in_table(&format!("object[{index}].workload"), error)),
        };
    }
    let Some(trace) = &object.trace else { return Ok(None) };
    let options =
        object.read_options().map_err(|error| Problem::in_table(&format!("object[{index}].read"), error))?;
    let kept = trace.loaded.as_ref().and_then(|loaded| loaded.accesses.clone());
    Ok(Some(
        kept.map_or_else(|| OriginKind::Trace(trace.path.clone(), Box::new(options)), OriginKind::InMemory),
    ))
}
