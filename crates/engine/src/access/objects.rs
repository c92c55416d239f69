//! Objects: the open files and mappings that a task accesses, and how they are made.
//!
//! Each `open` and each `map_file` opens the file again: it has its own position and readahead window. Objects that are made from another
//! one share its open file, like the copies that a program makes of one descriptor.

use crate::access::engine::{Engine, TABLE_PAGES_MAX};
use crate::access::hits::Object;
use crate::config::{ConfigError, check_range};
use crate::memory::file::{File, FileMapping};
use crate::memory::mm::{Advice, Backing, Vma};
use crate::memory::nodes::NodeKind;
use crate::memory::room::check_table;
use crate::memory::table::{LEAF_PAGES, WordReader};
use crate::units::{FileId, ObjectId, OpenFileId, TaskId};

impl Engine {
    /// Opens a file for read(2) and write(2).
    pub fn open(&mut self, task: TaskId, file: FileId) -> Result<ObjectId, ConfigError> {
        let open = self.open_file(file)?;
        Ok(self.add_open(task, open))
    }

    /// Another object of the file that is open behind object `of`, for read(2) through the same descriptor.
    pub fn open_same(&mut self, task: TaskId, of: (TaskId, ObjectId)) -> Result<ObjectId, ConfigError> {
        let open = self.open_file_of(of.0, of.1)?;
        Ok(self.add_open(task, open))
    }

    /// Opens the file of an object again, for this task alone: another thread keeps the position and the readahead window that they
    /// shared.
    ///
    /// # Panics
    /// Panics where the object is not an open file.
    pub fn open_for_itself(&mut self, task: TaskId, object: ObjectId) {
        let object = &mut self.tasks[task.index()].objects[object.index()];
        let Object::File { open, file, .. } = object else { panic!("a mapping has no position") };
        *open = self.core.mm.memory.open_file(*file);
    }

    /// Maps anonymous memory, private to the task's process. [`Advice::NoReuse`] is for files.
    pub fn map_anon(&mut self, task: TaskId, pages: u64, advice: Advice) -> Result<ObjectId, ConfigError> {
        if advice == Advice::NoReuse {
            return Err(ConfigError::Unknown("file behind anonymous memory that isn't reused".to_string()));
        }
        check_range("pages of a mapping", pages, 1, TABLE_PAGES_MAX)?;
        self.map_object(task, pages, None, advice, false)
    }

    /// Maps a complete file, shared. [`Advice::NoReuse`] applies to the open file that it is mapped from.
    pub fn map_file(
        &mut self,
        task: TaskId,
        file: FileId,
        advice: Advice,
        executable: bool,
    ) -> Result<ObjectId, ConfigError> {
        let open = self.open_file(file)?;
        self.map_open(task, open, advice, executable)
    }

    /// Maps the file that is open behind object `of`.
    pub fn map_same(
        &mut self,
        task: TaskId,
        of: (TaskId, ObjectId),
        advice: Advice,
        executable: bool,
    ) -> Result<ObjectId, ConfigError> {
        let open = self.open_file_of(of.0, of.1)?;
        self.map_open(task, open, advice, executable)
    }

    /// The open file behind an object.
    pub(super) fn open_file_of(&self, task: TaskId, object: ObjectId) -> Result<OpenFileId, ConfigError> {
        let open = self.open_object(task, object).and_then(|object| object.open());
        open.ok_or_else(|| {
            ConfigError::Unknown(format!("file behind object {} of task {}", object.0, task.0))
        })
    }

    /// An object of a task that is not closed.
    pub(super) fn open_object(&self, task: TaskId, object: ObjectId) -> Option<Object> {
        let of = self.tasks[task.index()].objects.get(object.index());
        of.copied().filter(|of| !of.is_closed())
    }

    fn open_file(&mut self, file: FileId) -> Result<OpenFileId, ConfigError> {
        if self.core.mm.memory.files.get(file.index()).is_none_or(File::is_forgotten) {
            return Err(ConfigError::Unknown(format!("file {}", file.0)));
        }
        Ok(self.core.mm.memory.open_file(file))
    }

    fn add_open(&mut self, task: TaskId, open: OpenFileId) -> ObjectId {
        let file = self.core.mm.memory.open_files[open.index()].file;
        let opened = self.core.mm.memory.file(file);
        let (pages, is_tmpfs) = (opened.pages(), opened.is_tmpfs());
        self.add_object(task, Object::File { open, file, pages, is_tmpfs, partial_writes: false })
    }

    fn map_open(
        &mut self,
        task: TaskId,
        open: OpenFileId,
        advice: Advice,
        executable: bool,
    ) -> Result<ObjectId, ConfigError> {
        let file = self.core.mm.memory.open_files[open.index()].file;
        let pages = self.core.mm.memory.file(file).pages();
        let advice = match advice {
            Advice::NoReuse => {
                self.core.mm.memory.open_files[open.index()].no_reuse = true;
                Advice::Normal
            }
            of_mapping => of_mapping,
        };
        self.map_object(task, pages, Some(open), advice, executable)
    }

    fn map_object(
        &mut self,
        task: TaskId,
        pages: u64,
        open: Option<OpenFileId>,
        advice: Advice,
        executable: bool,
    ) -> Result<ObjectId, ConfigError> {
        let file = open.map(|open| self.core.mm.memory.open_files[open.index()].file);
        let mm_id = self.mm_of(task);
        let sum = self.core.mm.memory.mm(mm_id).table.pages() + pages;
        check_range("pages of an address space", sum, 1, TABLE_PAGES_MAX)?;
        let memory = &self.core.mm.memory.tables;
        check_table("an address space", NodeKind::PageTable, sum + LEAF_PAGES, memory)?;
        let mm = self.core.mm.memory.mm_mut(mm_id);
        let vma = mm.map(pages, file.map_or(Backing::Anon, Backing::File), advice, executable);
        mm.vmas[vma].open = open;
        let start = mm.vmas[vma].start;
        let mut is_regular_file = false;
        if let Some(file) = file {
            let file = self.core.mm.memory.file_mut(file);
            file.mappings.push(FileMapping { mm: mm_id, vma, start });
            is_regular_file = !file.is_tmpfs();
        }
        Ok(self.add_object(task, Object::Mapping { open, mm: mm_id, vma, start, pages, is_regular_file }))
    }

    /// The words of an object's pages, for a thread that reads them while the engine runs: the frame of a page, and whether a hit has to record
    /// anything there.
    ///
    /// # Panics
    /// Panics where the task has no such object.
    pub fn words_of(&mut self, task: TaskId, object: ObjectId) -> WordReader {
        let memory = &mut self.core.mm.memory;
        match self.tasks[task.index()].objects[object.index()] {
            Object::File { file, .. } => memory.file_mut(file).index.reader(0),
            Object::Mapping { mm, start, .. } => memory.mm_mut(mm).table.entry_reader(start),
        }
    }

    /// Ends an object: an open file is closed, a mapping unmapped. The task's next object has its number. The position and the readahead window of an
    /// open file are dropped with the last object that shares them. No access to it may be in progress; a task that was lent it does not have it any
    /// more.
    pub fn close(&mut self, task: TaskId, object: ObjectId) -> Result<(), ConfigError> {
        self.assert_idle(task);
        let of = match self.tasks[task.index()].objects.get(object.index()) {
            Some(&of) if !self.tasks[task.index()].closed.contains(&object) => of,
            _ => return Err(ConfigError::Unknown(format!("object {} of task {}", object.0, task.0))),
        };
        if self.mapping(task, object).is_ok() {
            self.munmap(task, object)?;
        }
        let open = match of {
            Object::File { open, .. } => Some(open),
            Object::Mapping { open, .. } => open,
        };
        for at in (0..self.tasks.len()).map(|at| TaskId(at as u32)) {
            let other = &self.tasks[at.index()];
            if let Some(lent) = other.lent
                && other.objects[lent.index()].is_same(&of)
            {
                self.assert_idle(at);
                self.tasks[at.index()].objects[lent.index()].vacate();
            }
        }
        let task = &mut self.tasks[task.index()];
        task.objects[object.index()].vacate();
        task.closed.push(object);
        task.lent = task.lent.filter(|&lent| lent != object);
        if let Some(open) = open {
            self.close_if_unused(open);
        }
        Ok(())
    }

    /// Has a task access another one's open file or mapping, by the number that is returned, until it is lent another. Its position and
    /// readahead window are those of the owner; what is brought in is charged to the task that accesses it. A mapping can only be lent to a task
    /// of the same process. So any task of a pool serves any file, and none needs a table of them.
    pub fn lend(&mut self, of: (TaskId, ObjectId), to: TaskId) -> Result<ObjectId, ConfigError> {
        self.assert_idle(to);
        let (owner, object) = of;
        let unknown = || ConfigError::Unknown(format!("object {} of task {}", object.0, owner.0));
        let owned = self.open_object(owner, object).ok_or_else(unknown)?;
        if matches!(owned, Object::Mapping { mm, .. } if self.tasks[to.index()].mm != Some(mm)) {
            return Err(unknown());
        }
        if let Some(lent) = self.tasks[to.index()].lent {
            self.tasks[to.index()].objects[lent.index()] = owned;
            return Ok(lent);
        }
        let lent = self.add_object(to, owned);
        self.tasks[to.index()].lent = Some(lent);
        Ok(lent)
    }

    /// A task has no longer what it was lent ([`Engine::lend`]): the owner may close that while the task does something else.
    pub fn take_back(&mut self, from: TaskId) {
        self.assert_idle(from);
        let task = &mut self.tasks[from.index()];
        if let Some(lent) = task.lent {
            task.objects[lent.index()].vacate();
        }
    }

    /// Closes an open file that no object shares any more.
    pub(super) fn close_if_unused(&mut self, open: OpenFileId) {
        let is_used =
            self.tasks.iter().flat_map(|task| &task.objects).any(|object| object.open() == Some(open));
        let is_mapped = |vma: &Vma| vma.mapped && vma.open == Some(open);
        if !is_used && !self.core.mm.memory.mms.iter().flat_map(|mm| &mm.vmas).any(is_mapped) {
            self.core.mm.memory.close_file(open);
        }
    }

    fn add_object(&mut self, task: TaskId, object: Object) -> ObjectId {
        let task = &mut self.tasks[task.index()];
        if let Some(free) = task.closed.pop() {
            task.objects[free.index()] = object;
            return free;
        }
        task.objects.push(object);
        ObjectId((task.objects.len() - 1) as u32)
    }
}
