//! Timed events: kernel files are read and written, cgroups removed, file systems synced, at given times.
//!
//! Reads take no time, and neither do most writes. A write to `memory.reclaim`, or of a limit below the current use, is a system call that reclaims
//! until it is done. sync(1) waits until devices have all dirty data. Such a call begins immediately, and a control task (`threads`) continues it in
//! steps. That task competes for CPU 0 like any other.
//!
//! **Shells.** Each event is done by its own shell, unless it names one. A shell does one thing after the other. While it is in the middle of a
//! write, its other events wait. One repetition of a repeating event waits, and further ones are left out, as with a timer that has already fired. A
//! loop counts as one thing: other events of its shell wait until it has ended.
//!
//! **Signals.** A write may have a timeout. When that is over, a signal comes for its control task, as from timeout(1). The engine
//! decides what this ends; where it ends nothing, the write goes on, and so does its shell, which waits for it.

use std::collections::{BTreeMap, VecDeque};

use pageout_engine::{
    CpuId, Errno, FileError, FileId, IoError, MemcgId, Nanos, ObjectId, PageAdvice, Stat, Step, TaskId,
};

use super::agenda::Event;
use super::condition::When;
use super::readings::Readings;
use super::threads::{Role, THREAD, Thread};
use super::{BuildError, Machine, RunError};
use crate::account::Account;
use crate::observe::Observer;
use crate::report::{Ended, FileWrite, RemovedGroup, Watched};
use crate::runner::{Runner, State};
use crate::scenario::KernelFile;
use crate::sched::{CpuRow, TaskIndex};

/// An action at a time, once or again and again.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedEvent {
    /// The time of the event, or of the first check of its condition.
    pub at: Nanos,
    /// The condition of the event.
    pub when: Option<When>,
    /// The repetition of the event.
    pub repeat: Repeat,
    /// The shell that does it, which does one thing after the other. Without a name it has one of its own.
    pub shell: Option<String>,
    /// The action of the event.
    pub action: TimedAction,
}

/// The repetition of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// The event is done once.
    Never,
    /// As by a timer, until the run ends.
    Timer {
        /// Again after every such period; more than 0.
        every: Nanos,
        /// The last time that it may come again.
        until: Nanos,
    },
    /// As in a loop of its shell.
    Loop {
        /// Total number of repetitions.
        times: u64,
        /// The shell rests for so long between the end of one and the next; more than 0.
        rest: Nanos,
    },
}

/// The action of a timed event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TimedAction {
    /// Writes a kernel file.
    Write {
        /// The file, such as `/sys/fs/cgroup/web/memory.high`.
        path: String,
        /// What is written.
        value: Value,
        /// Time after which its writer gets a signal, if the write is not done by then.
        timeout: Option<Nanos>,
    },
    /// Removes a cgroup by its directory, as rmdir does.
    Remove {
        /// The directory, such as `/sys/fs/cgroup/web`.
        path: String,
    },
    /// Has all file systems written, and waits for that, as sync(1) does.
    Sync,
    /// Has one file system written, and waits for that, as `sync -f` does.
    Syncfs {
        /// A file on it, which is opened for that.
        file: FileId,
        /// What the report calls it.
        name: String,
    },
    /// Reads a kernel file into the report.
    Read {
        /// The file, such as `/proc/vmstat`.
        path: String,
    },
    /// Advises on mappings of a process, as process_madvise(2) does.
    Madvise {
        /// The name of the task, all copies of which are advised.
        task: String,
        /// One of its objects; without it all that are mapped.
        object: Option<ObjectId>,
        /// The advice.
        advice: PageAdvice,
    },
}

/// The value that a timed event writes to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// This, in the file's own format.
    Text(String),
    /// The number that the file shows, and so much more.
    Sum(u64),
}

/// The shells of events.
#[derive(Debug)]
pub(super) struct Shell {
    name: Option<String>,
    /// In the middle of a write.
    is_busy: bool,
    /// In the middle of a loop: of this event, and so many more times of it.
    in_loop: Option<(usize, u64)>,
    /// Events that are due.
    waiting: VecDeque<usize>,
}

/// What stands for the value where a directory was removed.
const RMDIR: &str = "rmdir";
/// What stands for the path where file systems were synced.
const SYNC: &str = "sync";
/// What stands for the path of advice.
const MADVISE: &str = "process_madvise";

/// What timed events left behind for the report.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) readings: Readings,
    pub(super) writes: Vec<FileWrite>,
    /// Directories of cgroups that were removed, with a slash at the end.
    removed: Vec<String>,
    pub(super) removed_groups: Vec<RemovedGroup>,
    /// By event, what it waited for.
    pub(super) watched: BTreeMap<usize, Watched>,
    /// Times at which an event that repeats was still waiting for its shell, and was left out.
    pub(super) left_out: u64,
    /// Files that control tasks have open to sync the file systems that they are on.
    opened: BTreeMap<(TaskId, FileId), ObjectId>,
    /// Requests for proactive reclaim that have ended: which of the writes, the cgroups, and their refaults until then.
    proactive: Vec<(usize, Vec<MemcgId>, i64)>,
}

impl TimedAction {
    /// What it is about, for messages and the report: the path of a file, or of a directory, or a call.
    fn path(&self) -> String {
        match self {
            TimedAction::Write { path, .. } | TimedAction::Remove { path } | TimedAction::Read { path } => {
                path.clone()
            }
            TimedAction::Sync => SYNC.to_string(),
            TimedAction::Syncfs { name, .. } => format!("syncfs {name}"),
            TimedAction::Madvise { .. } => MADVISE.to_string(),
        }
    }
}

/// Advice by the name that a scenario has for it.
fn advice_name(advice: PageAdvice) -> &'static str {
    match advice {
        PageAdvice::Cold => "cold",
        PageAdvice::Pageout => "pageout",
        PageAdvice::Free => "free",
    }
}

impl TimedEvent {
    /// Returns true if it comes again and again without an end.
    fn is_timer(&self) -> bool {
        matches!(self.repeat, Repeat::Timer { .. })
    }

    /// Returns true if it is among those that were not due yet when the run ends. For a condition the report contains how often it held.
    fn is_counted(&self) -> bool {
        !self.is_timer() && self.when.is_none()
    }
}

impl Machine {
    /// Adds a timed event. Those due at the same time happen in the order they were added, before any task that starts then.
    /// A single event that is due after the last task has ended does not happen, and a loop ends with it; [`crate::Report::timed_left`]
    /// counts those.
    ///
    /// # Panics
    /// When the machine has run.
    pub fn event_add(&mut self, event: TimedEvent) -> Result<(), BuildError> {
        assert_eq!(self.ended, Ended::NotYet, "an event is added to a machine that has run");
        self.event_list(event)
    }

    /// Adds an event to a machine that may have run: at its time, behind what is already due then, or now if that has passed.
    ///
    /// # Panics
    /// When an earlier run returned an error.
    pub fn event_insert(&mut self, event: TimedEvent) -> Result<(), BuildError> {
        assert_ne!(self.ended, Ended::Failed, "a failed run does not go on");
        let at = event.at.max(self.agenda.now());
        self.event_list(event)?;
        if self.ended != Ended::NotYet {
            self.agenda.push(at, Event::Timed(self.timed.len() as u32 - 1));
        }
        Ok(())
    }

    fn event_list(&mut self, event: TimedEvent) -> Result<(), BuildError> {
        if let Repeat::Timer { every: Nanos::ZERO, .. } | Repeat::Loop { rest: Nanos::ZERO, .. } =
            event.repeat
        {
            return Err(BuildError::ZeroPeriod { path: event.action.path() });
        }
        if let Some(when @ When { condition, path, .. }) = &event.when {
            self.compared(when)?;
            let watched = Watched { condition: condition.to_string(), path: path.clone(), looks: 0, held: 0 };
            self.outcome.watched.insert(self.timed.len(), watched);
        }
        self.timed_left += usize::from(event.is_counted());
        let named = |shell: &Shell| shell.name.is_some() && shell.name == event.shell;
        let shell = self.shells.iter().position(named).unwrap_or_else(|| {
            let name = event.shell.clone();
            self.shells.push(Shell { name, is_busy: false, in_loop: None, waiting: VecDeque::new() });
            self.shells.len() - 1
        });
        self.timed.push((event, shell));
        Ok(())
    }

    /// An event is due: it happens, unless its shell is busy.
    #[cold]
    pub(super) fn timed_event(
        &mut self,
        index: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), Box<RunError>> {
        let at = self.agenda.now();
        let (event, shell) = &self.timed[index];
        let shell = *shell;
        if let Some(path) = self.removed_file(&event.action) {
            // A repeating event finds the directory gone, and stops.
            return if event.is_timer() { Ok(()) } else { Err(RunError::Removed { at, path }.into()) };
        }
        if let Repeat::Timer { every, until } = event.repeat
            && at.0.saturating_add(every.0) <= until.0
        {
            self.agenda.push(at + every, Event::Timed(index as u32));
        }
        if let Some(When { look, .. }) = event.when {
            let is_timer = event.is_timer();
            // A shell in the middle of something looks at no file.
            let is_free = !self.shells[shell].is_busy && self.shells[shell].in_loop.is_none();
            let holds = is_free && self.holds(index).map_err(|source| RunError::File { at, source })?;
            if !holds {
                if !is_timer {
                    self.agenda.push(at + look, Event::Timed(index as u32));
                }
                return Ok(());
            }
        }
        match &mut self.shells[shell] {
            Shell { is_busy: false, in_loop: None, .. } => self.begin_event(index, observer),
            Shell { is_busy: false, in_loop: Some((looping, _)), .. } if *looping == index => {
                self.happen(index, observer)
            }
            Shell { waiting, .. } if !waiting.contains(&index) => {
                waiting.push_back(index);
                return Ok(());
            }
            Shell { .. } => {
                self.outcome.left_out += 1;
                return Ok(());
            }
        }?;
        self.shell_goes_on(shell, observer)
    }

    /// A write that kept a shell busy is over.
    pub(super) fn write_is_over(
        &mut self,
        shell: usize,
        observer: &mut dyn Observer,
    ) -> Result<(), Box<RunError>> {
        self.shells[shell].is_busy = false;
        self.shell_goes_on(shell, observer)
    }

    /// A shell goes on with its loop, or does what has waited for it, unless it is busy.
    fn shell_goes_on(&mut self, shell: usize, observer: &mut dyn Observer) -> Result<(), Box<RunError>> {
        while !self.shells[shell].is_busy {
            if let Some((index, left)) = &mut self.shells[shell].in_loop {
                if *left > 0
                    && let Repeat::Loop { rest, .. } = self.timed[*index].0.repeat
                {
                    *left -= 1;
                    self.agenda.push(self.agenda.now() + rest, Event::Timed(*index as u32));
                    return Ok(());
                }
                self.shells[shell].in_loop = None;
                self.timed_left -= 1;
            }
            let Some(index) = self.shells[shell].waiting.pop_front() else { break };
            self.begin_event(index, observer)?;
        }
        Ok(())
    }

    /// A shell begins with an event.
    fn begin_event(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), Box<RunError>> {
        let (event, shell) = &self.timed[index];
        match event.repeat {
            Repeat::Never => self.timed_left -= usize::from(event.is_counted()),
            Repeat::Timer { .. } => {}
            Repeat::Loop { times, .. } => {
                self.shells[*shell].in_loop = Some((index, times.saturating_sub(1)));
            }
        }
        self.happen(index, observer)
    }

    /// What an event says happens now.
    fn happen(&mut self, index: usize, observer: &mut dyn Observer) -> Result<(), Box<RunError>> {
        let at = self.agenda.now();
        let (TimedEvent { action, .. }, shell) = &self.timed[index];
        let (action, shell) = (action.clone(), *shell);
        if let Some(path) = self.removed_file(&action) {
            return Err(RunError::Removed { at, path }.into());
        }
        match action {
            TimedAction::Read { path } => {
                let text = self.read_file(&path).map_err(|source| RunError::File { at, source })?;
                self.outcome.readings.add(index, path, at, text);
                self.after_kernel_work(CpuId(0), observer);
                Ok(())
            }
            TimedAction::Remove { path } => {
                let group = self.group_as_it_is(&path);
                let error = self.engine.remove_directory(&path).err();
                if error.is_none() {
                    self.outcome.removed.push(format!("{path}/"));
                    self.outcome.removed_groups.extend(group);
                }
                let done = error.is_none().then_some((at, 0));
                let removed = FileWrite { done, error, ..FileWrite::new(at, path, RMDIR.to_string()) };
                self.outcome.writes.push(removed);
                self.after_kernel_work(CpuId(0), observer);
                Ok(())
            }
            TimedAction::Madvise { task, object, advice } => {
                self.advise(shell, (&task, object), advice, observer)
            }
            TimedAction::Sync => {
                let before = self.account();
                let (index, task) = self.begin_call(shell, action.path());
                let step = self.engine.sync(task);
                self.call_has_begun(shell, index, before, step, observer)
            }
            TimedAction::Syncfs { file, .. } => {
                let before = self.account();
                let (index, task) = self.begin_call(shell, action.path());
                let object = self.open_to_sync(task, file);
                let step = self.engine.syncfs(task, object).expect("it is open");
                self.call_has_begun(shell, index, before, step, observer)
            }
            TimedAction::Write { path, value, timeout } => {
                let before = self.account();
                let value = self.value(&path, value).map_err(|source| RunError::File { at, source })?;
                let written =
                    self.write(shell, path, value).map_err(|source| RunError::File { at, source })?;
                let Some((index, step)) = written else {
                    self.after_kernel_work(CpuId(0), observer);
                    return Ok(());
                };
                if let Some(timeout) = timeout {
                    let entry = self.outcome.writes.len() as u32 - 1;
                    self.agenda.push(at + timeout, Event::Timeout { entry });
                }
                // An enabled feature may create a thread.
                self.start_kernel_threads();
                self.follow_scans();
                self.call_has_begun(shell, index, before, step, observer)
            }
        }
    }

    /// A shell advises on the mappings of a task. If its processes have ended, the call fails.
    fn advise(
        &mut self,
        shell: usize,
        (task, object): (&str, Option<ObjectId>),
        advice: PageAdvice,
        observer: &mut dyn Observer,
    ) -> Result<(), Box<RunError>> {
        let at = self.agenda.now();
        let mappings = self.mappings(task, object);
        let value = format!("{} {task}", advice_name(advice));
        let before = self.account();
        let begun = match mappings.is_empty() {
            true => Err((Errno::Esrch, "a process that has mappings".to_string())),
            false => {
                let entry = self.outcome.writes.len();
                let index = self.control_task(at, Role::Control { entry, shell });
                let runner = &mut self.threads[(index - THREAD) as usize].runner;
                let step = self.engine.process_madvise(runner.id, &mappings, advice);
                if step.is_err() {
                    runner.state = State::Ended;
                }
                step.map(|step| (index, step)).map_err(|error| (Errno::Einval, error.to_string()))
            }
        };
        let mut call = FileWrite::new(at, MADVISE.to_string(), value);
        match begun {
            Ok((index, step)) => {
                self.outcome.writes.push(call);
                self.call_has_begun(shell, index, before, step, observer)
            }
            Err((errno, expected)) => {
                let (path, command) = (call.path.clone(), call.value.clone());
                call.error = Some(FileError::Refused { path, number: 1, command, errno, expected });
                self.outcome.writes.push(call);
                Ok(())
            }
        }
    }

    /// The mappings of all living copies of a task: one object, or all of them. Threads have those of their process.
    fn mappings(&self, name: &str, object: Option<ObjectId>) -> Vec<(TaskId, ObjectId)> {
        let is_copy = |of: &str| {
            let copy = of.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
            of == name || copy.is_some_and(|copy| copy.parse::<u32>().is_ok())
        };
        let processes = self.tasks.iter().filter(|task| task.thread_of.is_none() && is_copy(&task.name));
        let mapped = processes.filter(|task| task.runner.state != State::Ended).flat_map(|task| {
            let of = self.engine.mappings_of(task.runner.id);
            of.into_iter().map(move |object| (task.runner.id, object))
        });
        mapped.filter(|(_, mapped)| object.is_none_or(|object| object == *mapped)).collect()
    }

    /// A shell begins a call that takes time, in a control task.
    fn begin_call(&mut self, shell: usize, path: String) -> (TaskIndex, TaskId) {
        let (at, entry) = (self.agenda.now(), self.outcome.writes.len());
        let index = self.control_task(at, Role::Control { entry, shell });
        self.outcome.writes.push(FileWrite::new(at, path, String::new()));
        (index, self.threads[(index - THREAD) as usize].runner.id)
    }

    /// A control task has made the first step of a call.
    fn call_has_begun(
        &mut self,
        shell: usize,
        index: TaskIndex,
        before: Account,
        step: Step,
        observer: &mut dyn Observer,
    ) -> Result<(), Box<RunError>> {
        self.shells[shell].is_busy = true;
        let next = self.finish_thread_step(index, before, step, observer)?;
        self.come_back(index, &next);
        Ok(())
    }

    /// A file as a control task has it open: one that has had it before keeps it.
    fn open_to_sync(&mut self, task: TaskId, file: FileId) -> ObjectId {
        let engine = &mut self.engine;
        let open = || engine.open(task, file).expect("there is such a file");
        *self.outcome.opened.entry((task, file)).or_insert_with(open)
    }

    /// The file of an action, if it was that of a cgroup that was removed.
    fn removed_file(&self, action: &TimedAction) -> Option<String> {
        let (TimedAction::Write { path, .. } | TimedAction::Read { path }) = action else { return None };
        let is_gone = self.outcome.removed.iter().any(|directory| path.starts_with(directory.as_str()));
        is_gone.then(|| path.clone())
    }

    /// What is written, in the file's own format.
    fn value(&mut self, path: &str, value: Value) -> Result<String, FileError> {
        match value {
            Value::Text(text) => Ok(text),
            Value::Sum(more) => {
                let text = self.read_file(path)?;
                let not_a_number = |_| FileError::Invalid {
                    path: path.to_string(),
                    value: format!("{} and {more} more", text.trim()),
                    expected: "a file with a single number".to_string(),
                };
                let number = text.trim().parse::<u64>().map_err(not_a_number)?;
                Ok(number.saturating_add(more).to_string())
            }
        }
    }

    /// Begins a write, as an idle control task. `None` if a command was rejected: a script would see the error, and continue.
    fn write(
        &mut self,
        shell: usize,
        path: String,
        value: String,
    ) -> Result<Option<(TaskIndex, Step)>, FileError> {
        let at = self.agenda.now();
        let entry = self.outcome.writes.len();
        let index = self.control_task(at, Role::Control { entry, shell });
        let Thread { runner, .. } = &mut self.threads[(index - THREAD) as usize];
        match self.engine.write_file(runner.id, &path, &value) {
            Ok(step) => {
                self.outcome.writes.push(FileWrite::new(at, path, value));
                Ok(Some((index, step)))
            }
            Err(error @ FileError::Refused { .. }) => {
                runner.state = State::Ended;
                let refused = FileWrite { error: Some(error), ..FileWrite::new(at, path, value) };
                self.outcome.writes.push(refused);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A control task that is at rest, or a new one.
    fn control_task(&mut self, at: Nanos, role: Role) -> TaskIndex {
        let is_at_rest = |Thread { runner, role, .. }: &Thread| {
            runner.state == State::Ended && matches!(role, Role::Control { .. })
        };
        if let Some(idle) = self.threads.iter().position(is_at_rest) {
            let thread = &mut self.threads[idle];
            thread.runner.clock = at;
            thread.role = role;
            return THREAD + idle as TaskIndex;
        }
        let mm = self.engine.process_create(MemcgId::ROOT);
        let id = self.engine.task_create(mm, CpuId(0));
        self.thread_add(Runner::new(id, CpuId(0), at), role, CpuRow::single(CpuId(0)))
    }

    /// A write has taken its maximum time. If it is still in progress, a signal is sent to its control task, which notices when it continues.
    pub(super) fn write_times_out(&mut self, entry: usize) {
        let writes_it = |thread: &&Thread| {
            thread.runner.state != State::Ended
                && matches!(thread.role, Role::Control { entry: other, .. } if other == entry)
        };
        if let Some(thread) = self.threads.iter().find(writes_it) {
            self.engine.signal(thread.runner.id);
        }
    }

    /// A write is over.
    pub(super) fn write_done(&mut self, entry: usize, at: Nanos, reclaimed: u64, is_interrupted: bool) {
        self.outcome.writes[entry].done = Some((at, reclaimed));
        self.outcome.writes[entry].is_interrupted = is_interrupted;
        let memcgs = self.reclaims_from(&self.outcome.writes[entry]);
        if !memcgs.is_empty() {
            let before = self.refaults(&memcgs);
            self.outcome.proactive.push((entry, memcgs, before));
        }
    }

    /// Files are on their devices, as far as a sync has asked for that.
    pub(super) fn sync_done(&mut self, entry: usize, at: Nanos, result: Result<(), IoError>) {
        let write = &mut self.outcome.writes[entry];
        write.done = Some((at, 0));
        write.error = result.err().map(|_| FileError::Io(write.path.clone()));
    }

    /// Writes so far, with what has come back since of what they reclaimed.
    pub(super) fn timed_writes(&self) -> Vec<FileWrite> {
        let mut writes = self.outcome.writes.clone();
        for (entry, memcgs, before) in &self.outcome.proactive {
            writes[*entry].refaulted_since = u64::try_from(self.refaults(memcgs) - before).ok();
        }
        writes
    }

    fn refaults(&self, memcgs: &[MemcgId]) -> i64 {
        let of = |&memcg: &MemcgId| {
            self.engine.figures().memcg_stat_now(memcg, Stat::WorkingsetRefaultAnon)
                + self.engine.figures().memcg_stat_now(memcg, Stat::WorkingsetRefaultFile)
        };
        memcgs.iter().map(of).sum()
    }

    /// The cgroups from which a write requests reclaim although no memory is needed.
    fn reclaims_from(&self, write: &FileWrite) -> Vec<MemcgId> {
        let mut memcgs: Vec<MemcgId> = match KernelFile::parse(&write.path) {
            Some(KernelFile::Memcg { path, file }) if file == "memory.reclaim" => {
                self.engine.figures().memcg_by_path(&path).into_iter().collect()
            }
            Some(KernelFile::LruGen(name)) if name == "lru_gen" => {
                let commands = write.value.split([',', ';', '\n']);
                let evictions = commands.filter_map(|command| command.trim().strip_prefix('-'));
                let numbers =
                    evictions.filter_map(|fields| fields.split_whitespace().next()?.parse::<u16>().ok());
                numbers.filter_map(|number| number.checked_sub(1)).map(MemcgId).collect()
            }
            _ => Vec::new(),
        };
        memcgs.sort_unstable();
        memcgs.dedup();
        memcgs
    }
}
