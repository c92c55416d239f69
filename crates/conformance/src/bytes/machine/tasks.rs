//! Tasks: what each is doing, how it goes on, and what its accesses find.

use pageout_engine::*;

use super::ByteMachine;
use crate::bytes::input::HUGE_PAGE_PAGES;

/// How often an access is repeated because its page was gone again.
const REPEATS_MAX: u8 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Object {
    Open(usize),
    Mapped(usize),
    Anon,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    Access(Access, Object),
    Reclaim,
    Exec,
    Fsync,
    Truncate(Truncated),
    /// It was killed while it did nothing.
    Exit,
    /// It is a kernel thread.
    Thread,
}

/// Pages of a file that are being taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Truncated {
    pub(super) object: Object,
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) what: What,
}

/// The effect on the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// It has a hole.
    Hole,
    /// It ends where the pages begin.
    Shorter,
    /// It is deleted. While another task makes it shorter, pages behind its end are deleted with it.
    Deleted,
}

impl Truncated {
    pub(super) fn pages(self) -> std::ops::Range<u64> {
        self.first..self.end
    }

    /// Returns true if the call may meet this page.
    fn reaches(self, page: u64) -> bool {
        self.pages().contains(&page) || self.what == What::Deleted && page >= self.end
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Idle,
    Runnable(Doing),
    Sleeping(Doing),
    Delayed(Doing, Nanos),
    /// Waits for another task's wake, or until a time if there is one.
    Waiting(Doing, Option<Nanos>),
    /// The page was gone again when the access had been made: the access restarts, as a faulting instruction
    /// does.
    Repeat(Doing, u8),
    /// It has ended.
    Gone,
}

pub(super) struct Task {
    pub(super) state: State,
    pub(super) repeats: u8,
    /// It writes a part of the page that it accesses.
    pub(super) writes_part: bool,
    /// A read that it waited for has failed.
    pub(super) must_fail: bool,
    /// It was killed, and is resumed until it is gone.
    pub(super) is_killed: bool,
    pub(super) objects: Vec<(ObjectId, Object)>,
    pub(super) ever_mapped: usize,
    /// The object that belongs to another task, and its owner with the owner's object.
    pub(super) lent: Option<(ObjectId, (usize, ObjectId))>,
}

impl Task {
    pub(super) fn new(state: State) -> Task {
        Task {
            state,
            repeats: 0,
            writes_part: false,
            must_fail: false,
            is_killed: false,
            objects: Vec::new(),
            ever_mapped: 0,
            lent: None,
        }
    }

    pub(super) fn can_go_on(&self) -> bool {
        !matches!(self.state, State::Idle | State::Gone | State::Sleeping(_) | State::Waiting(_, None))
    }

    /// Returns true if nothing is left to do for a user.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Idle | State::Gone | State::Waiting(Doing::Thread, _))
    }
}

impl ByteMachine {
    pub(super) fn create_task(&mut self, mm: MmId, cpu: u8) -> usize {
        let task = self.tasks.len();
        let id = self.engine.task_create(mm, CpuId(u16::from(cpu) % self.cpus));
        assert_eq!(id, TaskId(task as u32));
        self.tasks.push(Task::new(State::Idle));
        self.runs_in.push((task, mm));
        let files = (0..self.files.len()).flat_map(|file| [Object::Open(file), Object::Mapped(file)]);
        for object in files.chain([Object::Anon, Object::Anon]) {
            let made = self.make_object(task, object);
            self.tasks[task].objects.push((made, object));
        }
        task
    }

    pub(super) fn make_object(&mut self, task: usize, object: Object) -> ObjectId {
        self.tasks[task].ever_mapped += 1;
        let (id, advice) = (TaskId(task as u32), self.advice);
        let made = match object {
            Object::Open(file) => self.engine.open(id, self.files[file].0),
            Object::Mapped(file) => self.engine.map_file(id, self.files[file].0, advice, task == 0),
            // This advice is for files only.
            Object::Anon if advice == Advice::NoReuse => {
                self.engine.map_anon(id, self.anon_pages, Advice::Normal)
            }
            Object::Anon => self.engine.map_anon(id, self.anon_pages, advice),
        };
        let made = made.expect("every object is in range");
        if object == Object::Anon && self.anon_pages > HUGE_PAGE_PAGES {
            // Every other one asks for huge pages, which makes a difference where it takes that.
            let advice = if task.is_multiple_of(2) { HugeAdvice::Hugepage } else { HugeAdvice::Normal };
            self.engine.madvise_hugepage(id, made, advice).expect("it is anonymous memory");
        }
        made
    }

    pub(super) fn idle(&self, task: u8) -> Option<usize> {
        let task = usize::from(task) % self.tasks.len();
        (self.tasks[task].state == State::Idle).then_some(task)
    }

    pub(super) fn idle_object(&self, task: u8, object: u8) -> Option<(usize, (ObjectId, Object))> {
        let task = self.idle(task)?;
        let objects = &self.tasks[task].objects;
        Some((task, objects[usize::from(object) % objects.len()]))
    }

    pub(super) fn start(&mut self, task: usize, access: Access, object: Object) {
        let step = self.engine.start(TaskId(task as u32), access);
        self.advanced(task, Doing::Access(access, object), step, false);
    }

    pub(super) fn run_hits(&mut self, task: usize, accesses: &[Access], object: Object) -> usize {
        let hits = self.engine.run_hits(TaskId(task as u32), accesses, |access| access);
        self.take_ops();
        for &access in &accesses[..hits] {
            let at = self.engine.touched(TaskId(task as u32), access);
            self.touch(task, access, object, at);
        }
        hits
    }

    pub(super) fn resume(&mut self, task: usize) {
        match self.tasks[task].state {
            State::Repeat(Doing::Access(access, object), repeats) => {
                self.tasks[task].repeats = repeats;
                self.start(task, access, object);
            }
            State::Repeat(Doing::Truncate(gone), _) => {
                // The page's contents may be in flight still, so that its frame is not open yet.
                self.store.carry_out_any(0);
                // The file may have got shorter meanwhile.
                let is_shorter = gone.what == What::Shorter;
                let end = if is_shorter { gone.end } else { gone.end.min(self.pages_of(gone.object)) };
                // A file that has another length by now is deleted, or is not, as the engine is called.
                let what = if is_shorter { gone.what } else { self.what(gone.object, gone.first..end) };
                let step = match gone.first < end {
                    true => {
                        let now = Truncated { end, what, ..gone };
                        self.begin_truncation(task, now).expect("it had begun before")
                    }
                    false => Step::Done(Served::Truncated),
                };
                self.advanced(task, Doing::Truncate(Truncated { what, ..gone }), step, false);
            }
            State::Runnable(doing) => {
                let step = self.engine.resume(TaskId(task as u32));
                self.advanced(task, doing, step, true);
            }
            State::Delayed(doing, until) | State::Waiting(doing, Some(until)) => {
                self.pass(until);
                let step = self.engine.resume(TaskId(task as u32));
                self.advanced(task, doing, step, true);
            }
            state => unreachable!("task {task} can't go on: {state:?}"),
        }
    }

    /// Takes note of how far a call has got.
    pub(super) fn advanced(&mut self, task: usize, doing: Doing, step: Step, resumed: bool) {
        if self.show {
            eprintln!("    task {task}: {step:?}");
        }
        let woken = self.hand_over();
        // A flusher that finds nothing to write lets those look for themselves who hoped for a write to end.
        // It serves several groups of files in turn: one may rest while it still writes another.
        let may_rest = doing == Doing::Thread;
        assert!(woken == 0 || may_rest, "tasks are woken though no transfer has ended");
        let must_fail = std::mem::take(&mut self.tasks[task].must_fail);
        let has_failed = step == Step::Done(Served::Failed(AccessError::Io));
        let is_killed = self.tasks[task].is_killed;
        assert!(
            has_failed == must_fail || is_killed,
            "task {task}: a failed read, and the access that waited for it"
        );
        if step == Step::Done(Served::Exited) && self.engine.has_exited(TaskId(task as u32)) {
            assert!(is_killed, "task {task} has ended, and nobody has asked for that");
            self.buried(task);
            return self.release_killed();
        }
        let repeats = std::mem::take(&mut self.tasks[task].repeats);
        self.tasks[task].state = match step {
            Step::Again => State::Runnable(doing),
            Step::Wait(Wait::Io(_)) => State::Sleeping(doing),
            Step::Wait(Wait::Delay(span, _)) => State::Delayed(doing, self.now + span),
            Step::Wait(Wait::Woken) => State::Waiting(doing, None),
            Step::Wait(Wait::WokenOr(span, _)) => State::Waiting(doing, Some(self.now + span)),
            Step::Done(served) => match doing {
                Doing::Thread => panic!("a kernel thread has ended: {served:?}"),
                Doing::Exit => panic!("a killed task goes on: {served:?}"),
                Doing::Reclaim => {
                    assert!(
                        matches!(
                            served,
                            Served::Written { .. } | Served::Interrupted { .. } | Served::Refused(_)
                        ),
                        "{served:?}"
                    );
                    State::Idle
                }
                Doing::Exec => {
                    assert_eq!(served, Served::Exited);
                    State::Idle
                }
                Doing::Fsync => {
                    assert!(matches!(served, Served::Synced(_)), "{served:?}");
                    State::Idle
                }
                Doing::Truncate(gone) => match served {
                    Served::Truncated => {
                        gone.pages().for_each(|page| self.is_gone(task, gone.object, page));
                        State::Idle
                    }
                    // The page's reader leaves, and the truncation then continues.
                    Served::Failed(AccessError::Held { page }) => {
                        assert!(gone.reaches(page), "{gone:?} meets page {page}");
                        let access = Access::new(ObjectId(0), page, false);
                        self.store.gate.look_away_from(self.page(task, access, gone.object));
                        State::Repeat(doing, 0)
                    }
                    served => panic!("a truncation ended as {served:?}"),
                },
                Doing::Access(access, object) => match served {
                    Served::Failed(error) => {
                        self.check_failure(access, object, &error);
                        State::Idle
                    }
                    Served::Written { .. }
                    | Served::Interrupted { .. }
                    | Served::Refused(_)
                    | Served::Synced(_)
                    | Served::Truncated
                    | Served::Opened
                    | Served::Advised
                    | Served::Exited => {
                        panic!("an access ended as {served:?}")
                    }
                    // What memory.high did on the way back has cost the page. So the instruction runs again.
                    Served::Hit(Touched::Gone)
                    | Served::Minor(Touched::Gone)
                    | Served::Major(Touched::Gone) => {
                        assert!(resumed && self.high_used, "{access:?} is done, but its page is gone");
                        if repeats < REPEATS_MAX && self.run_hits(task, &[access], object) == 0 {
                            State::Repeat(doing, repeats + 1)
                        } else {
                            State::Idle
                        }
                    }
                    Served::Hit(at) | Served::Minor(at) | Served::Major(at) => {
                        self.touch(task, access, object, at);
                        State::Idle
                    }
                },
            },
        };
        if is_killed && matches!(self.tasks[task].state, State::Idle | State::Repeat(..)) {
            self.tasks[task].state = State::Runnable(Doing::Exit);
        }
        self.release_killed();
    }

    /// Notes who was killed.
    pub(super) fn note_kills(&mut self) {
        let mut kills = Vec::new();
        self.engine.take_oom_kills(&mut kills);
        for kill in kills {
            let log = self.engine.figures().oom_log(&kill, |task| format!("task{}", task.0));
            if self.show {
                eprintln!("    {log}");
            }
            for id in kill.tasks {
                self.tasks[id.0 as usize].is_killed = true;
                self.killed.push(id.0 as usize);
            }
        }
    }

    /// Lets them go on to their ends, as soon as it is known what the task of the present step does.
    pub(super) fn release_killed(&mut self) {
        for task in std::mem::take(&mut self.killed) {
            let task = &mut self.tasks[task];
            task.state = match task.state {
                State::Idle | State::Repeat(..) => State::Runnable(Doing::Exit),
                State::Sleeping(doing) | State::Waiting(doing, _) | State::Delayed(doing, _) => {
                    State::Runnable(doing)
                }
                state @ (State::Runnable(_) | State::Gone) => state,
            };
        }
    }

    /// A killed task has ended; the last one of its process takes what that had.
    fn buried(&mut self, task: usize) {
        self.tasks[task].state = State::Gone;
        self.contents.forgotten(TaskId(task as u32));
        let Some(&(_, mm)) = self.runs_in.iter().find(|(of, _)| *of == task) else { return };
        self.runs_in.retain(|&(of, _)| of != task);
        if !self.runs_in.iter().any(|&(_, other)| other == mm) {
            self.processes.retain(|&(other, _)| other != mm);
        }
    }

    /// Makes an access that the engine says is done, where it says.
    fn touch(&mut self, task: usize, access: Access, object: Object, at: Touched) {
        let page = self.page(task, access, object);
        match at {
            Touched::Frame(pfn) => {
                if access.write && self.tasks[task].writes_part {
                    let held = self.store.value_mut(pfn, page);
                    *held = self.contents.write_part(page, *held);
                } else if access.write {
                    *self.store.written_mut(pfn, page) = self.contents.write(page);
                } else {
                    self.contents.check_read(page, *self.store.value_mut(pfn, page));
                }
                self.sample(pfn);
            }
            Touched::Zeroes => {
                assert!(!access.write, "{page:?} was written, but is in no frame");
                self.contents.check_read(page, 0);
            }
            Touched::Gone => panic!("{access:?} is done, but its page is nowhere"),
        }
    }

    /// A page of a file is being taken away.
    pub(super) fn is_going(&mut self, task: usize, object: Object, page: u64) {
        let page = self.page(task, Access::new(ObjectId(0), page, false), object);
        self.contents.is_going(page);
        self.store.is_going(page);
    }

    /// It is gone.
    fn is_gone(&mut self, task: usize, object: Object, page: u64) {
        let page = self.page(task, Access::new(ObjectId(0), page, false), object);
        self.contents.is_gone(page);
        self.store.is_gone(page);
    }

    fn check_failure(&mut self, access: Access, object: Object, error: &AccessError) {
        let file_pages = self.pages_of(object);
        match error {
            AccessError::Io => {}
            AccessError::Writeback => {
                assert!(access.write && self.keeps_failed_writes, "{access:?} of {object:?}: {error}");
            }
            AccessError::Held { .. } => panic!("{access:?} of {object:?}: {error}"),
            AccessError::Oom(_) => self.is_out_of_memory = true,
            // A mapping stays as short as it was when its file grows, or once was.
            AccessError::BeyondObject { pages, .. } => {
                let is_short = matches!(object, Object::Mapped(_)) && *pages <= file_pages;
                assert!(access.page >= *pages, "{access:?} of {object:?}: {error}");
                assert!(is_short || *pages == file_pages, "{object:?} has {file_pages} pages: {error}");
            }
            AccessError::NoObject { .. } => panic!("{access:?} of {object:?}: {error}"),
        }
        // A message that can't be printed is a panic too.
        let _ = error.to_string();
    }

    /// Makes those go on whose wait is over, and returns how many waited for a transfer; `must_fail`: they find that it failed.
    pub(super) fn wake(&mut self, must_fail: bool) -> usize {
        let mut woken = Vec::new();
        self.engine.take_woken(&mut woken);
        let mut by_transfers = 0;
        for id in woken {
            let task = &mut self.tasks[id.0 as usize];
            let doing = match task.state {
                State::Sleeping(doing) => {
                    // A task that removes a page has no use for the data read.
                    task.must_fail = must_fail && matches!(doing, Doing::Access(..));
                    by_transfers += 1;
                    doing
                }
                State::Waiting(doing, _) => doing,
                state => panic!("{id:?} is woken but doesn't sleep: {state:?}"),
            };
            task.state = State::Runnable(doing);
        }
        by_transfers
    }
}
