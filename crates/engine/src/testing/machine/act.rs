//! Actions of a run, carried out on the byte machine one after the other.

use super::tasks::{Doing, State};
use super::{ByteMachine, Checks};
use crate::testing::actions::{Action, Kind, PAGES, TASKS};
use crate::testing::model::Page;
use crate::*;

impl ByteMachine {
    /// Lets an action happen.
    pub(crate) fn perform(&mut self, action: Action) {
        match action {
            Action::Access { task, kind, page, write, wanted, patience } => {
                self.help(TaskId(task as u32), patience);
                if let Some(task) = self.idle(task) {
                    let access = Access::new(self.object(task, kind), page, write);
                    let access = Access { wanted: wanted * PAGE_SIZE as u32, ..access };
                    self.start(task, Doing::Access(kind, access));
                }
            }
            Action::Run { task, kinds, page, count, write } => {
                if let Some(task) = self.idle(task) {
                    self.run(task, kinds, page..(page + count).min(PAGES), write);
                }
            }
            Action::Resume { which, steps } => {
                let runnable: Vec<usize> =
                    (0..self.tasks.len()).filter(|&task| self.can_go_on(task)).collect();
                if let Some(&task) = runnable.get(which % runnable.len().max(1)) {
                    for _ in 0..steps {
                        if self.can_go_on(task) {
                            self.resume(TaskId(task as u32));
                        }
                    }
                }
            }
            Action::Complete { which, fails, early } => {
                let ready: Vec<u64> = self.queue.ready().collect();
                if !ready.is_empty() {
                    self.carry_out_at(ready[which % ready.len()]);
                }
                if !self.transfers.is_empty() {
                    self.complete(which % self.transfers.len(), fails, early);
                }
            }
            Action::MadviseFree { task, page } => {
                if let Some(task) = self.idle(task) {
                    let object = self.object(task, Kind::Anon);
                    self.engine.madvise_free(task, object, page).unwrap();
                    self.model.may_be_forgotten(Page::Anon(task, object, page));
                }
            }
            Action::MadviseDontneed { task, page, count } => {
                if let Some(task) = self.idle(task) {
                    let object = self.object(task, Kind::Anon);
                    let pages = page..(page + count).min(PAGES);
                    let held = self.engine.madvise_dontneed(task, object, pages.clone()).unwrap();
                    for page in pages.start..held.unwrap_or(pages.end) {
                        self.model.written(Page::Anon(task, object, page), 0);
                    }
                }
            }
            Action::MadvisePageout { task, page, count } => {
                if let Some(task) = self.idle(task) {
                    let object = self.object(task, Kind::Anon);
                    self.engine.madvise_pageout(task, object, page..(page + count).min(PAGES)).unwrap();
                }
            }
            Action::MadviseWillneed { task, page, count } => {
                if let Some(task) = self.idle(task) {
                    let object = self.object(task, Kind::Anon);
                    let pages = page..(page + count).min(PAGES);
                    let step = self.engine.madvise_willneed(task, object, pages).unwrap();
                    self.advanced(task, Doing::Advice, step, false);
                }
            }
            Action::MadviseCold { task, kind, page } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.engine.madvise_cold(task, self.object(task, kind), page).unwrap();
                }
            }
            Action::FadviseDontneed { task, tmpfs, page } => {
                if let Some(task) = self.idle(task) {
                    let file = if tmpfs { self.tmpfs } else { self.regular };
                    self.engine.fadvise_dontneed(task, file, page..page + 1).unwrap();
                }
            }
            Action::Mlock { task, kind } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.engine.mlock(task, self.object(task, kind)).unwrap();
                }
            }
            Action::Munlock { task, kind } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.engine.munlock(task, self.object(task, kind)).unwrap();
                }
            }
            Action::Munmap { task, kind } => {
                if let Some(task) = self.idle(task).filter(|_| kind.is_mapping()) {
                    self.munmap(task, kind);
                }
            }
            Action::Exec { task } => {
                if let Some(task) = self.idle(task) {
                    self.model.forgotten(task);
                    let step = self.engine.task_exec(task);
                    self.advanced(task, Doing::Exec, step, false);
                }
            }
            Action::Reclaim { task, group, pages } => {
                if let Some(task) = self.idle(task) {
                    self.write(task, group, "memory.reclaim", pages);
                }
            }
            Action::Compact { task } => {
                if let Some(task) = self.idle(task) {
                    let step = self.engine.write_file(task, "/proc/sys/vm/compact_memory", "1").unwrap();
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::Hugepages { task, order, blocks } => {
                if let Some(task) = self.idle(task) {
                    let path = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", 4u32 << order);
                    let step = self.engine.write_file(task, &path, &blocks.to_string()).unwrap();
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::TransparentHugepage { task, enabled } => {
                if let Some(task) = self.idle(task) {
                    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
                    let step = self.engine.write_file(task, path, enabled.name()).unwrap();
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::SetMax { task, group, pages } => {
                if let Some(task) = self.idle(task) {
                    self.write(task, group, "memory.max", pages);
                }
            }
            Action::SetHigh { task, group, pages } => {
                if let Some(task) = self.idle(task) {
                    self.high_used = true;
                    self.write(task, group, "memory.high", if pages == 0 { u64::MAX } else { pages });
                }
            }
            Action::Replace { group } => self.replace(group),
            Action::Fsync { task } => {
                if let Some(task) = self.idle(task) {
                    self.fsync(task);
                }
            }
            Action::Truncate { task, tmpfs, page, count } => {
                if let Some(task) = self.idle(task) {
                    self.truncate(task, tmpfs, page..(page + count).min(PAGES));
                }
            }
            Action::Sync { task, is_told_errors } => {
                if let Some(task) = self.idle(task) {
                    self.sync(task, is_told_errors);
                }
            }
            Action::Signal { task } => self.engine.signal(TaskId(task as u32)),
            Action::FlushStats => self.engine.flush_stats(),
            Action::Tick { task, ms } => self.tick(TaskId(task as u32), ms),
            Action::Refuse { step, pattern } => self.engine.refuse_migrations(step, pattern),
            Action::Switch { task, caps } => {
                if let Some(task) = self.idle(task) {
                    let path = "/sys/kernel/mm/lru_gen/enabled";
                    let step = self.engine.write_file(task, path, &format!("{caps:#x}")).unwrap();
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::LruGen { task, group, evicts } => {
                if let Some(task) = self.idle(task) {
                    self.lru_gen(task, MemcgId(group as u16 + 1), evicts);
                }
            }
        }
        self.take_ops();
        self.keep_up();
        self.release_killed();
        if self.checks == Checks::All {
            self.engine.check_invariants();
            self.check_counters();
        }
    }

    /// Time passes, and a task has run in all of it.
    fn tick(&mut self, task: TaskId, ms: u64) {
        self.now += Nanos(1_000_000 * ms);
        self.engine.set_now(self.now);
        if self.idle(task.index()).is_some() {
            self.engine.scan_tick(task, self.now);
        }
    }

    /// Writes a number of pages to a file of a group; `u64::MAX` is `max`.
    pub(super) fn write(&mut self, task: TaskId, group: usize, file: &str, pages: u64) {
        let value = if pages == u64::MAX { "max".to_owned() } else { (pages * PAGE_SIZE).to_string() };
        let path = format!("{}/{file}", self.groups[group]);
        let step = self.engine.write_file(task, &path, &value).unwrap();
        self.advanced(task, Doing::Reclaim, step, false);
    }

    /// Removes a group and makes another in its place, to which its processes move. Their pages in memory stay with the
    /// removed one.
    fn replace(&mut self, group: usize) {
        let directory = self.groups[group].clone();
        let path = directory.strip_prefix("/sys/fs/cgroup").unwrap();
        let memcg = self.engine.figures().memcg_by_path(path).unwrap();
        let mms = self.engine.core.mm.memcgs[memcg].mms.clone();
        let is_busy = (0..TASKS).any(|task| {
            self.tasks[task].state != State::Idle
                && self.engine.figures().mm_if_any(TaskId(task as u32)).is_some_and(|mm| mms.contains(&mm))
        });
        if is_busy {
            return;
        }
        mms.iter().for_each(|&mm| self.engine.process_move(mm, MemcgId::ROOT));
        // A group of cgroup v1 has no protection.
        let settings = ["memory.min", "memory.low", "memory.max"]
            .map(|file| (file, self.engine.read_file(&format!("{directory}/{file}"))));
        let heir = match self.engine.remove_directory(&directory) {
            Ok(()) => {
                let (parent, name) = path.rsplit_once('/').unwrap();
                let parent = self.engine.figures().memcg_by_path(parent).unwrap();
                self.engine.memcg_create(parent, name).unwrap()
            }
            Err(error) => {
                let is_parent = self.groups[1].starts_with(&format!("{directory}/"));
                assert!(is_parent, "{error}");
                memcg
            }
        };
        mms.iter().for_each(|&mm| self.engine.process_move(mm, heir));
        let done = Ok(Step::Done(Served::Written { reclaimed: 0 }));
        if heir != memcg {
            for (file, value) in settings {
                let Ok(value) = value else { continue };
                let path = format!("{directory}/{file}");
                assert_eq!(self.engine.write_file(self.administrator, &path, &value), done);
            }
        }
    }

    fn lru_gen(&mut self, task: TaskId, memcg: MemcgId, evicts: Option<u64>) {
        let generations = self.engine.figures().lru_gen(memcg, NodeId(0));
        let Some(youngest) = generations.last().map(|one| one.seq) else { return };
        let id = memcg.0 + 1;
        let command = match evicts {
            None => format!("+ {id} 0 {youngest}"),
            Some(back) => format!("- {id} 0 {} 200", youngest.saturating_sub(back)),
        };
        if let Ok(step) = self.engine.write_file(task, "/sys/kernel/debug/lru_gen", &command) {
            self.advanced(task, Doing::Reclaim, step, false);
        }
    }

    pub(super) fn munmap(&mut self, task: TaskId, kind: Kind) {
        let object = self.object(task, kind);
        self.engine.munmap(task, object).unwrap();
        self.take_ops();
        let access = Access::new(object, 0, false);
        let gone = AccessError::BeyondObject { page: 0, pages: 0 };
        assert_eq!(self.engine.start(task, access), Step::Done(Served::Failed(gone)));
        self.make_object(task, kind);
    }

    fn truncate(&mut self, task: TaskId, is_tmpfs: bool, pages: std::ops::Range<u64>) {
        let kind = if is_tmpfs { Kind::OpenTmpfs } else { Kind::OpenRegular };
        let of = pages.clone().map(|page| self.page(task, kind, page));
        of.collect::<Vec<_>>().into_iter().for_each(|page| self.model.is_going(page));
        let object = self.object(task, kind);
        let step = match pages.end - pages.start {
            PAGES => self.engine.unlink(task, object),
            _ => self.engine.truncate(task, object, pages.clone()),
        };
        let step = step.unwrap();
        self.advanced(task, Doing::Truncate(kind, pages.start, pages.end), step, false);
    }

    pub(super) fn fsync(&mut self, task: TaskId) {
        self.synced_below.insert(task, self.next_value + 1);
        let step = self.engine.fsync(task, self.object(task, Kind::OpenRegular)).unwrap();
        self.advanced(task, Doing::Fsync, step, false);
    }
    fn sync(&mut self, task: TaskId, is_told_errors: bool) {
        self.synced_below.insert(task, self.next_value + 1);
        let step = match is_told_errors {
            true => self.engine.syncfs(task, self.object(task, Kind::OpenRegular)).unwrap(),
            false => self.engine.sync(task),
        };
        self.advanced(task, if is_told_errors { Doing::Syncfs } else { Doing::Sync }, step, false);
    }
}
