//! [`TestMachine`], what a promise text asks of a machine: make these files, make this access, write this kernel file, read that counter.
//!
//! Nothing here specifies where pages are, how time passes, or who carries out the engine's requests. So a machine may hold numbers in
//! a map or real files, and do one thing after the other or many in parallel. [`Stepped`] has the actions that only the former can do.

use pageout_engine::{
    Access, ConfigError, Engine, EngineBuilder, FileId, FileSpec, IoError, Nanos, ObjectId, OomKill, Served,
    Step, TaskId,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The progress of a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Came {
    /// It is done, after it has been made to sleep for so long.
    Done(Served, Nanos),
    /// It waits for a transfer that does not end by itself.
    WaitsForDevice,
    /// It waits for a thread that does not run by itself.
    WaitsForWake,
}

/// A machine that an engine decides for.
pub trait TestMachine: Sized {
    /// The machine with this hardware, and nothing in it.
    fn new(hardware: EngineBuilder) -> Self;

    /// Calls the engine while no other caller does. The next of the calls below carries out the requests of the
    /// engine.
    fn with<T>(&mut self, call: impl FnOnce(&mut Engine) -> T) -> T;

    /// The name of a task in the kernel's log.
    fn name_task(&mut self, task: TaskId, name: &str);

    /// Creates a file on the first device.
    fn create_file(&mut self, spec: FileSpec) -> Result<FileId, ConfigError>;

    /// Makes an access, and sees it through. The machine checks the contents that the access reads or writes.
    fn access(&mut self, task: TaskId, access: Access) -> Came;

    /// Sees through what a call of the engine has begun on behalf of a task.
    fn go_on(&mut self, task: TaskId, step: Step) -> Came;

    /// Carries out what calls have asked for, and checks the engine as a whole.
    fn settle(&mut self);

    /// Takes pages out of an open file, or deletes it (`None`), and sees it through.
    fn truncate(&mut self, task: TaskId, object: ObjectId, pages: Option<Range<u64>>) -> Came;

    /// Says that anonymous pages need not be kept (`MADV_FREE`).
    fn madvise_free(&mut self, task: TaskId, object: ObjectId, pages: Range<u64>);

    /// Time passes, and all goes on that waits for it.
    fn pass(&mut self, span: Nanos);

    /// Processes that were killed since this was last asked, each with the lines of the kernel's log about it. All have ended.
    fn take_kills(&mut self) -> Vec<(OomKill, String)>;

    /// The machine as one that runs step by step; `None` if it runs by itself.
    fn stepped(&mut self) -> Option<&mut dyn Stepped> {
        None
    }
}

/// The completion mode of transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    /// At a command of the text.
    Holds,
    /// When tasks have gone on so many times since.
    Answers {
        /// How often.
        after: u64,
    },
    /// Immediately, with an error.
    Fails,
}

/// A machine that does one thing after the other, at the text's commands.
pub trait Stepped {
    /// From now on the device is like this.
    fn set_device(&mut self, device: Device);

    /// The oldest transfer ends: what it was, and how far the tasks have come that it woke. Panics where none is in flight.
    fn end_transfer(&mut self, result: Result<(), IoError>) -> (&'static str, Vec<(TaskId, Came)>);

    /// Starts the kernel's threads, which then wait for commands; flushers go on by themselves. Returns the names of the
    /// others.
    fn start_threads(&mut self) -> Vec<String>;

    /// A thread that was woken goes on until it waits; `None`: it was not woken.
    fn run_thread(&mut self, name: &str) -> Option<Rested>;

    /// The nap of a thread is over, and it goes on until it waits. Panics where its wait has no end.
    fn end_nap(&mut self, name: &str) -> Rested;

    /// A signal comes for a task after the first step of what it does next, if that takes several.
    fn signal_later(&mut self, task: TaskId);

    /// Operations by kind since this was last asked.
    fn take_ops(&mut self) -> BTreeMap<&'static str, u64>;
}

/// A thread that has gone on until it waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rested {
    /// It waits for so long at most; else until it is woken.
    pub naps: bool,
    /// The tasks that it has woken, and how far they have come.
    pub woken: Vec<(TaskId, Came)>,
}
