//! Carries out a run's actions on the machine, one after the other.

use pageout_engine::*;

use super::ByteMachine;
use super::tasks::{Doing, Object, State, Truncated};
use crate::bytes::contents::{Heap, Page};
use crate::bytes::files::{FILES, LRU_GEN_FILES, ODDITIES, lru_gen_text};
use crate::bytes::input::Action;

/// Mappings of a task, former ones included: each takes a table of its own.
pub(super) const OBJECTS_MAX: usize = 24;
const GROUPS_MAX: usize = 6;
const TASKS_MAX: usize = 8;

impl ByteMachine {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Access { task, object, page, write, part, wanted } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                // One page beyond the end, now and then.
                let page = self.page_at(object, page, 1);
                let access = Access { wanted: wanted * PAGE_SIZE as u32, ..Access::new(id, page, write) };
                let is_open = matches!(object, Object::Open(_));
                self.tasks[task].writes_part = part && is_open;
                if is_open {
                    self.engine.set_partial_writes(TaskId(task as u32), id, part).expect("it is open");
                }
                self.start(task, access, object);
            }
            Action::Run { task, object, page, count, write } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let first = self.page_at(object, page, 0);
                let pages = first..(first + u64::from(count) + 1).min(self.pages_of(object) + 1);
                let accesses: Vec<Access> = pages.map(|page| Access::new(id, page, write)).collect();
                self.tasks[task].writes_part = false;
                self.run_hits(task, &accesses, object);
            }
            Action::Resume { which } => {
                let tasks: Vec<usize> =
                    (0..self.tasks.len()).filter(|&at| self.tasks[at].can_go_on()).collect();
                if !tasks.is_empty() {
                    self.resume(tasks[usize::from(which) % tasks.len()]);
                }
            }
            Action::Complete { which, fails, early, cpu } => {
                self.store.carry_out_any(which.into());
                if self.store.transfers() > 0 {
                    self.complete(usize::from(which) % self.store.transfers(), fails, early, cpu);
                }
            }
            Action::MadviseFree { task, object, page } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let page = self.page_at(object, page, 1);
                let result = self.engine.madvise_free(TaskId(task as u32), id, page);
                self.check_advice(object, page, result);
                if object == Object::Anon {
                    self.contents
                        .may_be_forgotten(Page::Anon(Heap::of_object(TaskId(task as u32), id), page));
                }
            }
            Action::MadviseCold { task, object, page } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let page = self.page_at(object, page, 1);
                let result = self.engine.madvise_cold(TaskId(task as u32), id, page);
                self.check_advice(object, page, result);
            }
            Action::FadviseDontneed { task, file, page } => {
                let Some(task) = self.idle(task) else { return };
                let file = usize::from(file) % self.files.len();
                let page = self.page_at(Object::Open(file), page, 1);
                let result =
                    self.engine.fadvise_dontneed(TaskId(task as u32), self.files[file].0, page..page + 1);
                assert!(result.is_ok(), "{result:?}");
            }
            Action::Truncate { task, file, page } => {
                let Some((task, (id, object))) = self.idle_object(task, file) else { return };
                if matches!(object, Object::Mapped(_)) && self.object_pages(task, id) != self.pages_of(object)
                {
                    return;
                }
                let (first, pages) = (self.page_at(object, page, 1), self.pages_of(object));
                // Up to the end, or a few.
                let end = if page & 1 == 0 { pages } else { (first + u64::from(page >> 4)).min(pages) };
                let gone = Truncated { object, first, end, what: self.what(object, first..end) };
                let result = self.begin_truncation(task, gone);
                let fits = object != Object::Anon && first < end;
                assert_eq!(result.is_ok(), fits, "{object:?} {id:?} pages {first}..{end}: {result:?}");
                if let Ok(step) = result {
                    gone.pages().for_each(|page| self.is_going(task, object, page));
                    self.advanced(task, Doing::Truncate(gone), step, false);
                }
            }
            Action::Mlock { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let result = self.engine.mlock(TaskId(task as u32), id);
                assert_eq!(result.is_ok(), !matches!(object, Object::Open(_)), "{result:?}");
            }
            Action::Munlock { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let result = self.engine.munlock(TaskId(task as u32), id);
                assert_eq!(result.is_ok(), !matches!(object, Object::Open(_)), "{result:?}");
            }
            Action::Munmap { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                if self.tasks[task].ever_mapped < OBJECTS_MAX {
                    self.munmap(task, id, object);
                    let made = self.make_object(task, object);
                    let slot = self.tasks[task].objects.iter_mut().find(|(known, _)| *known == id);
                    slot.expect("it was just unmapped").0 = made;
                }
            }
            Action::Signal { task } => {
                let task = usize::from(task) % self.tasks.len();
                self.engine.signal(TaskId(task as u32));
            }
            Action::Exec { task } => {
                let Some(task) = self.idle(task) else { return };
                let id = TaskId(task as u32);
                let mm = self.engine.mm_of(id);
                // What it wrote stays with those that it leaves behind, under the names that its own pages will have.
                if self.runs_in.iter().filter(|&&(_, other)| other == mm).count() > 1 {
                    return;
                }
                self.contents.forgotten(id);
                let step = self.engine.task_exec(id);
                let new = self.engine.mm_of(id);
                self.processes.iter_mut().filter(|(old, _)| *old == mm).for_each(|process| process.0 = new);
                self.runs_in.iter_mut().filter(|(_, old)| *old == mm).for_each(|runs| runs.1 = new);
                self.advanced(task, Doing::Exec, step, false);
            }
            Action::Pin { file, page } => {
                let file = usize::from(file) % self.files.len();
                let page = self.page_at(Object::Open(file), page, 0);
                self.engine.pin(self.files[file].0, page);
            }
            Action::Look { file, page } => {
                let file = usize::from(file) % self.files.len();
                let page = self.page_at(Object::Open(file), page, 0);
                let of = self.page(0, Access::new(ObjectId(0), page, false), Object::Open(file));
                let task = (0..self.tasks.len()).find_map(|task| Some((task, self.open_object(task, file)?)));
                if let Some((task, id)) = task
                    && let Touched::Frame(pfn) =
                        self.engine.touched(TaskId(task as u32), Access::new(id, page, false))
                    && self.store.gate.is_open(pfn)
                    && self.store.home(of) == Some(pfn)
                {
                    self.store.gate.look(pfn, of);
                }
            }
            Action::LookAway { which } => self.store.gate.look_away(which.into()),
            Action::Reopen { task, object } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                self.reopen(task, id, object);
            }
            Action::Lend { task, object, to } => {
                let Some((task, (id, object))) = self.idle_object(task, object) else { return };
                let Some(to) = self.idle(to) else { return };
                self.lend(task, id, object, to);
            }
            Action::Resize { task, file, pages, grows } => {
                let Some(task) = self.idle(task) else { return };
                self.resize(task, usize::from(file) % self.files.len(), pages, grows);
            }
            Action::Flush { task, file, fails } => {
                let Some(task) = self.idle(task) else { return };
                self.flush(task, usize::from(file) % self.files.len(), fails);
            }
            Action::Reclaim { task, group, pages, swappiness } => {
                let Some(task) = self.idle(task) else { return };
                let group = usize::from(group) % self.groups.len();
                let step = match swappiness {
                    Some(swappiness) if pages & 1 == 0 => {
                        let value = format!("{} swappiness={swappiness}", u64::from(pages) * PAGE_SIZE);
                        self.write(task, group, "memory.reclaim", &value).expect("the request is well-formed")
                    }
                    _ => self.engine.reclaim(
                        TaskId(task as u32),
                        self.groups[group].0,
                        pages.into(),
                        swappiness,
                    ),
                };
                self.advanced(task, Doing::Reclaim, step, false);
            }
            Action::Write { task, group, knob, limit } => {
                let Some(task) = self.idle(task) else { return };
                self.write_limit(task, usize::from(group) % self.groups.len(), knob, limit);
            }
            Action::Swappiness { task, value } => {
                let Some(task) = self.idle(task) else { return };
                let step = self.engine.write_file(
                    TaskId(task as u32),
                    "/proc/sys/vm/swappiness",
                    &value.to_string(),
                );
                self.advanced(task, Doing::Reclaim, step.expect("it is in range"), false);
                assert_eq!(self.engine.read_file("/proc/sys/vm/swappiness"), Ok(format!("{value}\n")));
            }
            Action::WriteOddity { task, group, file, text } => {
                let Some(task) = self.idle(task) else { return };
                let group = usize::from(group) % self.groups.len();
                let file = FILES[usize::from(file) % FILES.len()];
                self.high_used |= file == "memory.high";
                let result = self.write(task, group, file, ODDITIES[usize::from(text) % ODDITIES.len()]);
                if let Ok(step) = result {
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::LruGen { task, group, file, text } => {
                let Some(task) = self.idle(task) else { return };
                let group = usize::from(group) % self.groups.len();
                let memcg = self.groups[group].0;
                let path = LRU_GEN_FILES[usize::from(file) % LRU_GEN_FILES.len()];
                let generations = self.engine.figures().lru_gen(memcg, NodeId(0));
                let youngest = generations.last().map_or(0, |generation| generation.seq);
                let value = lru_gen_text(memcg, youngest, file, text);
                let result = self.engine.write_file(TaskId(task as u32), path, &value);
                if let Ok(step) = result {
                    self.advanced(task, Doing::Reclaim, step, false);
                }
            }
            Action::Read { group } => {
                let path = self.groups[usize::from(group) % self.groups.len()].1.clone();
                for file in FILES {
                    let _ = self.engine.read_file(&format!("/sys/fs/cgroup{path}/{file}"));
                }
                for file in LRU_GEN_FILES {
                    assert!(self.engine.read_file(file).is_ok(), "{file}");
                }
                let vmstat = self.engine.read_file("/proc/vmstat").expect("it exists");
                for line in vmstat.lines() {
                    let (name, value) = line.split_once(' ').expect("a name and a number");
                    assert!(value.parse::<u64>().is_ok(), "{name} is {value}");
                }
            }
            Action::Replace { group } => self.replace_group(usize::from(group) % self.groups.len()),
            Action::FlushStats => self.engine.flush_stats(),
            Action::Refuse { step, pattern } => self.refuse(step, pattern),
            Action::Compact { task } => {
                let Some(task) = self.idle(task) else { return };
                let step = self.engine.write_file(TaskId(task as u32), "/proc/sys/vm/compact_memory", "1");
                self.advanced(task, Doing::Reclaim, step.expect("it takes 1"), false);
            }
            Action::Hugepages { task, order, blocks } => {
                let Some(task) = self.idle(task) else { return };
                let path = format!("/sys/kernel/mm/hugepages/hugepages-{}kB/nr_hugepages", 4u32 << order);
                let step = self.engine.write_file(TaskId(task as u32), &path, &blocks.to_string());
                self.advanced(task, Doing::Reclaim, step.expect("it takes a number"), false);
            }
            Action::TransparentHugepage { task, enabled } => {
                let Some(task) = self.idle(task) else { return };
                let path = "/sys/kernel/mm/transparent_hugepage/enabled";
                let step = self.engine.write_file(TaskId(task as u32), path, enabled);
                self.advanced(task, Doing::Reclaim, step.expect("it takes its words"), false);
            }
            Action::Balloon { task, share } => {
                let Some(task) = self.idle(task) else { return };
                self.resize_balloon(task, self.fast_pages * u64::from(share) / 512);
            }
            Action::Tick { nanos } => {
                self.pass(Nanos(self.now.0 + nanos));
                // An idle task has run all the time, and returns to user space now.
                for &(task, _) in &self.runs_in {
                    if self.tasks[task].state == State::Idle {
                        self.engine.scan_tick(TaskId(task as u32), self.now);
                    }
                }
            }
            Action::Spawn { parent, policy, cpu } => {
                if self.groups.len() < GROUPS_MAX && self.tasks.len() < TASKS_MAX {
                    let memcg = self.create_group(parent, policy);
                    let group = self.groups.iter().position(|&(id, _)| id == memcg);
                    let mm = self.create_process(group.expect("it was just created"));
                    self.create_task(mm, cpu);
                }
            }
        }
    }

    #[cfg(feature = "fault-injection")]
    fn refuse(&mut self, step: MigrateStep, pattern: u8) {
        self.engine.refuse_migrations(step, pattern);
    }

    /// No migration fails of itself.
    #[cfg(not(feature = "fault-injection"))]
    fn refuse(&mut self, _: MigrateStep, _: u8) {}

    /// Resizes the balloon, unless another task does.
    pub(super) fn resize_balloon(&mut self, task: usize, pages: u64) {
        if self.balloons.is_some_and(|other| !self.tasks[other].is_at_rest()) {
            return;
        }
        self.check_balloon();
        self.balloons = Some(task);
        let step = self.engine.balloon_resize(TaskId(task as u32), pages);
        self.advanced(task, Doing::Reclaim, step, false);
    }

    /// No page is in a frame that the host has back.
    pub(super) fn check_balloon(&mut self) {
        while self.store.has_operations() {
            self.store.carry_out_youngest();
        }
        for &pfn in self.engine.balloon_frames() {
            assert!(!self.store.is_in_use(pfn), "{pfn:?} is in the balloon, and a page is in it");
        }
    }

    pub(super) fn pass(&mut self, until: Nanos) {
        self.now = self.now.max(until);
        self.engine.set_now(self.now);
    }

    pub(super) fn pages_of(&self, object: Object) -> u64 {
        match object {
            Object::Open(file) | Object::Mapped(file) => self.files[file].2,
            Object::Anon => self.anon_pages,
        }
    }

    /// A page out of those of an object and so many beyond. The low half of all numbers means the first pages, so that
    /// some are hot.
    fn page_at(&self, object: Object, number: u8, beyond: u64) -> u64 {
        let pages = self.pages_of(object);
        let number = u64::from(number);
        if number < 128 {
            number % pages.min(8)
        } else {
            (number - 128) * (pages / 128 + 1) % (pages + beyond)
        }
    }

    pub(super) fn page(&self, task: usize, access: Access, object: Object) -> Page {
        match object {
            Object::Open(file) | Object::Mapped(file) => match self.files[file] {
                (id, FileKind::Regular, _) => Page::Regular(id, access.page),
                (id, FileKind::Tmpfs, _) => Page::Tmpfs(id, access.page),
            },
            Object::Anon => Page::Anon(Heap::of_object(TaskId(task as u32), access.object), access.page),
        }
    }

    fn check_advice(&self, object: Object, page: u64, result: Result<(), ConfigError>) {
        // A mapping is as long as its file was when it was mapped.
        if matches!(object, Object::Mapped(file) if self.resized.contains(&file)) {
            return;
        }
        let fits = !matches!(object, Object::Open(_)) && page < self.pages_of(object);
        assert_eq!(result.is_ok(), fits, "{object:?} page {page}: {result:?}");
    }

    pub(super) fn munmap(&mut self, task: usize, id: ObjectId, object: Object) {
        let result = self.engine.munmap(TaskId(task as u32), id);
        assert_eq!(result.is_ok(), !matches!(object, Object::Open(_)), "{result:?}");
        self.take_ops();
        if result.is_ok() {
            let step = self.engine.start(TaskId(task as u32), Access::new(id, 0, false));
            let gone = AccessError::BeyondObject { page: 0, pages: 0 };
            assert_eq!(step, Step::Done(Served::Failed(gone)), "an access to what is unmapped");
            self.contents.unmapped(Heap::of_object(TaskId(task as u32), id));
        }
    }
}
