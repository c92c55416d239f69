//! The end of a run: everything comes to rest, every page is read back, and nothing unused is left.

use pageout_engine::*;

use super::ByteMachine;
use super::tasks::{Doing, Object, State, Task, Truncated, What};
use crate::bytes::contents::Page;
use crate::bytes::input::Limit;

/// The most folios in any batch of any setup.
const BATCH_MAX: u64 = 31;
/// The maximum number of steps until all tasks rest, when transfers end well and limits are off. A request of `memory.reclaim` that takes a page a
/// step scans 4,096 pages at thirteen priorities, sixteen times, before it gives up: 850 thousand.
const SETTLING_STEPS_MAX: u32 = 4_000_000;

impl ByteMachine {
    /// Ends a run: lets everything in progress end well, reads back all written pages, and frees everything.
    pub(crate) fn finish(mut self) {
        // Limits go first, or a task above one may lose its page again each time before it gets to use it.
        let mm = self.engine.process_create(MemcgId::ROOT);
        self.engine.set_oom_score_adj(mm, -1000);
        let shells: Vec<usize> = (0..self.cpus).map(|cpu| self.create_task(mm, cpu as u8)).collect();
        for group in 1..self.groups.len() {
            for knob in ["memory.high", "memory.max"] {
                self.write_limit(shells[0], group, knob, Limit::Max);
            }
        }
        self.store.gate.all_look_away();
        self.settle();
        self.resize_balloon(shells[0], 0);
        self.settle();
        assert!(self.engine.balloon_frames().is_empty(), "the host does not have all frames back");
        self.read_back(shells[0]);
        self.check_devices(shells[0]);
        self.engine.check_invariants();
        for task in
            (0..self.tasks.len()).filter(|&task| self.tasks[task].state != State::Gone).collect::<Vec<_>>()
        {
            for (id, object) in self.tasks[task].objects.clone() {
                self.munmap(task, id, object);
            }
        }
        // A thread that has begun a program of its own has left its memory behind in the address space of the others.
        for task in (0..self.tasks.len()).filter(|task| !shells.contains(task)) {
            if self.tasks[task].state != State::Idle {
                continue;
            }
            let task = TaskId(task as u32);
            let mut step = self.engine.task_exit(task);
            while step == Step::Again {
                step = self.engine.resume(task);
            }
            assert_eq!(step, Step::Done(Served::Exited));
            self.take_ops();
        }
        let drained = shells.iter().all(|&shell| self.drain_batches(shell));
        self.engine.check_invariants();
        self.check_nothing_isolated();
        for page in self.store.pages() {
            let is_left = drained && matches!(page, Page::Anon(..));
            assert!(!is_left, "{page:?} is kept though it was unmapped");
        }
        self.forget_all(shells[0]);
        if self.show {
            eprintln!("all is well");
        }
    }

    /// Empties the batches of a task's CPU, which may be the last to hold a page. New pages push others out of the add
    /// batch, and reclaim that finds pages to scan empties the rest. False if memory is too full for that.
    fn drain_batches(&mut self, shell: usize) -> bool {
        let (id, name) = (TaskId(shell as u32), format!("filler{shell}"));
        let file = self.engine.file_create(FileSpec {
            name,
            pages: BATCH_MAX,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        });
        let file = file.expect("it is in range");
        let object = self.engine.open(id, file).expect("it was just created");
        self.files.push((file, FileKind::Regular, BATCH_MAX));
        self.longest.push(BATCH_MAX);
        let kind = Object::Open(self.files.len() - 1);
        let mut is_full = false;
        for page in 0..BATCH_MAX {
            if page == 0 || is_full {
                let step = self.engine.reclaim(id, MemcgId::ROOT, u64::MAX, Some(0));
                self.advanced(shell, Doing::Reclaim, step, false);
                self.settle();
            }
            self.is_out_of_memory = false;
            self.start(shell, Access::new(object, page, false), kind);
            self.settle();
            is_full = self.is_out_of_memory;
        }
        let step = self.engine.reclaim(id, MemcgId::ROOT, u64::MAX, Some(0));
        self.advanced(shell, Doing::Reclaim, step, false);
        self.settle();
        !is_full
    }

    /// Deletes all files that the shells have open, and forgets them and the tasks that have ended: their numbers are used again.
    fn forget_all(&mut self, shell: usize) {
        let files: Vec<usize> =
            (0..self.files.len()).filter(|&file| self.open_object(shell, file).is_some()).collect();
        for &file in &files {
            let (object, end) = (Object::Open(file), self.files[file].2);
            let gone = Truncated { object, first: 0, end, what: What::Deleted };
            gone.pages().for_each(|page| self.is_going(shell, gone.object, page));
            let step = self.begin_truncation(shell, gone).expect("it is open");
            self.advanced(shell, Doing::Truncate(gone), step, false);
            self.settle();
            assert!(self.engine.file_forget(self.files[file].0).is_err(), "a file is forgotten that is open");
        }
        for task in
            (0..self.tasks.len()).filter(|&task| self.tasks[task].state == State::Idle).collect::<Vec<_>>()
        {
            for (id, _) in std::mem::take(&mut self.tasks[task].objects) {
                if !self.engine.has_exited(TaskId(task as u32)) {
                    self.engine.close(TaskId(task as u32), id).expect("the task has this object");
                }
            }
        }
        for &file in &files {
            self.engine.file_forget(self.files[file].0).expect("nothing is left of it");
        }
        let mm = self.engine.mm_of(TaskId(shell as u32));
        let ended: Vec<TaskId> =
            (0..self.tasks.len() as u32).map(TaskId).filter(|&task| self.engine.has_exited(task)).collect();
        ended.iter().for_each(|&task| self.engine.task_forget(task));
        self.engine.check_invariants();
        for _ in &ended {
            assert!(ended.contains(&self.engine.task_create(mm, CpuId(0))), "a task has a number of its own");
        }
        let spec = FileSpec { name: "again".to_owned(), pages: 1, kind: FileKind::Regular, bdi: self.bdi };
        let again = self.engine.file_create(spec).expect("it is in range");
        assert!(files.iter().any(|&file| self.files[file].0 == again), "a file has a number of its own");
        self.engine.check_invariants();
    }

    /// Reads every page that was written, as the device can't fail any more.
    fn read_back(&mut self, shell: usize) {
        for page in self.contents.pages() {
            let (task, object) = match page {
                Page::Anon(heap, _) => {
                    let (task, object) = heap.object();
                    (task.0 as usize, (object, Object::Anon))
                }
                Page::Tmpfs(file, _) | Page::Regular(file, _) => {
                    let is_it =
                        |object: Object| matches!(object, Object::Open(at) if self.files[at].0 == file);
                    let found = self.tasks[shell].objects.iter().find(|(_, object)| is_it(*object));
                    (shell, *found.expect("each task has each file open"))
                }
            };
            let (Page::Anon(_, at) | Page::Tmpfs(_, at) | Page::Regular(_, at)) = page;
            // Some of them are killed for what others have read back.
            if self.tasks[task].state == State::Idle {
                self.start(task, Access::new(object.0, at, false), object.1);
                self.settle();
            }
        }
    }

    /// Has every file written that can be, and looks at what the devices have then.
    fn check_devices(&mut self, shell: usize) {
        for (id, object) in self.tasks[shell].objects.clone() {
            if matches!(object, Object::Open(_)) {
                let step = self.engine.fsync(TaskId(shell as u32), id).expect("the object exists");
                self.advanced(shell, Doing::Fsync, step, false);
                self.settle();
            }
        }
        for page in self.contents.pages() {
            if let Page::Regular(file, at) = page {
                self.contents.check_device(page, self.store.block(file, at));
            }
        }
    }

    /// Lets transfers end and tasks go on until all are idle.
    fn settle(&mut self) {
        let mut last = 0;
        for _ in 0..SETTLING_STEPS_MAX {
            self.store.keep_up();
            let is_runnable = |task: &Task| matches!(task.state, State::Runnable(_) | State::Repeat(..));
            // In turn, as one of them may go on until another has got on.
            let mut in_turn = (last + 1..self.tasks.len()).chain(0..self.tasks.len());
            if let Some(task) = in_turn.find(|&task| is_runnable(&self.tasks[task])) {
                last = task;
                self.resume(task);
            } else if self.store.has_operations() {
                self.store.carry_out_youngest();
            } else if self.store.transfers() > 0 {
                self.complete(0, false, false, 0);
            } else {
                let Some(sleeper) = self.tasks.iter().position(|task| !task.is_at_rest()) else { return };
                // A kernel thread may be about to end its nap and wake it.
                let ends = |task: &Task| match task.state {
                    State::Delayed(_, until) | State::Waiting(_, Some(until)) => Some(until),
                    _ => None,
                };
                let napping = (0..self.tasks.len()).filter(|&task| ends(&self.tasks[task]).is_some());
                let Some(napping) = napping.min_by_key(|&task| ends(&self.tasks[task])) else {
                    panic!("task {sleeper} sleeps, but nothing is under way that could wake it")
                };
                self.resume(napping);
            }
        }
        let states: Vec<State> = self.tasks.iter().map(|task| task.state).collect();
        panic!("tasks go on for ever: {states:?}");
    }
}
