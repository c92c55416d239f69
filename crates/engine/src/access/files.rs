//! Files come, grow, shrink and go.
//!
//! ```text
//!   file_create ─▶ file_grow ◀─▶ file_shrink ─▶ unlink, all objects closed ─▶ file_forget: its number is another's
//! ```
//! A file that shrinks keeps the words of its former pages as address space, which takes no memory once they are empty, and grows into it
//! again.

use crate::access::engine::{Engine, TABLE_PAGES_MAX};
use crate::access::hits::Object;
use crate::access::task::Stage;
use crate::config::{ConfigError, FileKind, FileSpec, FileSystem, check_range};
use crate::machine::step::{DelayReason, Step, Wait};
use crate::memory::mm::Backing;
use crate::memory::nodes::NodeKind;
use crate::memory::room::check_table;
use crate::memory::table_memory::TableMemory;
use crate::page_cache::Truncation;
use crate::units::{BdiId, FileId, Nanos, ObjectId, PAGE_SIZE, TaskId};
use pageout_rules::folio::TmpfsHuge;

impl Engine {
    /// Makes a device known while the machine runs, as [`crate::EngineBuilder::bdi_register`] does before: regular files can be created on it from now on
    /// ([`Engine::file_create_on`]). Its flusher is started by the next [`Engine::start_kernel_threads`]. A device stays until the machine ends.
    ///
    /// # Errors
    ///
    /// There are 1024 devices already.
    pub fn bdi_register(&mut self, name: &str) -> Result<BdiId, ConfigError> {
        self.core.bdi_register_checked(name)
    }

    /// Creates a file. A regular one is on the first device; if there is none yet, that comes with it.
    pub fn file_create(&mut self, spec: FileSpec) -> Result<FileId, ConfigError> {
        if spec.kind == FileKind::Regular && self.core.writeback.bdis() == 0 {
            self.core.bdi_register("0");
        }
        self.file_create_on(spec, BdiId(0))
    }

    /// Creates a file on a device.
    pub fn file_create_on(&mut self, spec: FileSpec, bdi: BdiId) -> Result<FileId, ConfigError> {
        check_file_length(spec.pages, &self.core.mm.memory.tables)?;
        if spec.kind == FileKind::Regular && bdi.index() >= self.core.writeback.bdis() {
            return Err(ConfigError::Unknown(format!("backing device {}", bdi.0)));
        }
        let file = self.core.mm.memory.add_file(spec);
        self.core.mm.memory.file_mut(file).inode.bdi = bdi;
        Ok(file)
    }

    /// Sets which pages of a file of tmpfs may be in large folios, as the mount option `huge=` does for all its files. Default: none.
    pub fn set_tmpfs_huge(&mut self, file: FileId, huge: TmpfsHuge) -> Result<(), ConfigError> {
        match self.core.mm.memory.files.get_mut(file.index()) {
            Some(of) if of.is_tmpfs() && !of.is_forgotten() => {
                of.allow_large(huge);
                Ok(())
            }
            _ => Err(ConfigError::Unknown(format!("file {} of tmpfs", file.0))),
        }
    }

    /// Grows a file to this many pages, as a write beyond its end or ftruncate(2) does; open files reach the new pages from now on. New pages are not
    /// cached. Mappings keep their length, as in mmap(2). An error if the file would get shorter: that is [`Engine::file_shrink`].
    pub fn file_grow(&mut self, file: FileId, pages: u64) -> Result<(), ConfigError> {
        let Some(of) = self.core.mm.memory.files.get_mut(file.index()).filter(|of| !of.is_forgotten()) else {
            return Err(ConfigError::Unknown(format!("file {}", file.0)));
        };
        check_range("pages of a file that grows", pages, of.pages(), TABLE_PAGES_MAX)?;
        check_file_length(pages, &self.core.mm.memory.tables)?;
        of.grow(pages);
        for object in self.tasks.iter_mut().flat_map(|task| &mut task.objects) {
            match object {
                // A closed object stays closed.
                Object::File { file: of, pages: reachable, .. } if *of == file && *reachable > 0 => {
                    *reachable = pages;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Shrinks an open or mapped file to this many pages. The others become unreachable, and are removed as with [`Engine::truncate`], whose answers
    /// it gives. It waits until accesses to them in progress have ended.
    pub fn file_shrink(&mut self, task: TaskId, object: ObjectId, pages: u64) -> Result<Step, ConfigError> {
        let file = self.file_to_truncate(task, object)?;
        let most = self.core.mm.memory.file(file).pages();
        check_range("pages of a file that shrinks", pages, 1, most)?;
        self.file_shrink_to(task, object, pages * PAGE_SIZE)
    }

    /// The same, to this many bytes. A part of the last page may stay. Then the caller writes zeroes to its rest, before this call if the file system
    /// is XFS, else after it. A folio with that page is split there.
    pub fn file_shrink_to(
        &mut self,
        task: TaskId,
        object: ObjectId,
        bytes: u64,
    ) -> Result<Step, ConfigError> {
        let pages = bytes.div_ceil(PAGE_SIZE);
        let file = self.file_to_truncate(task, object)?;
        let of = self.core.mm.memory.file_mut(file);
        check_range("pages of a file that shrinks", pages, 1, of.pages())?;
        of.shrink(pages);
        let behind = pages..of.index.pages();
        let zeroes_first = of.bdi.file_system == FileSystem::Xfs && !bytes.is_multiple_of(PAGE_SIZE);
        let cuts = [bytes / PAGE_SIZE, behind.end];
        let memory = &self.core.mm.memory;
        for object in self.tasks.iter_mut().flat_map(|task| &mut task.objects) {
            let is_it = match *object {
                Object::File { file: of, .. } => of == file,
                Object::Mapping { mm, vma, .. } => {
                    memory.mm(mm).vmas.get(vma).is_some_and(|vma| vma.backing == Backing::File(file))
                }
            };
            let (Object::File { pages: reachable, .. } | Object::Mapping { pages: reachable, .. }) = object;
            if is_it {
                *reachable = pages.min(*reachable);
            }
        }
        Ok(self.shrink_on(task, Box::new(Truncation::behind(file, behind).within(cuts, zeroes_first))))
    }

    /// Continues a truncation, if no task is in the middle of an access to the removed pages of a file that shrinks: it may bring one in.
    pub(super) fn shrink_on(&mut self, task: TaskId, call: Box<Truncation>) -> Step {
        if let Some((file, end)) = call.new_end()
            && self.tasks.iter().any(|task| task.may_bring_in_behind(file, end, &self.core.mm.memory))
        {
            let mut current = self.current(task);
            current.task.stage = Stage::Truncate(call);
            return current
                .wait(Wait::Delay(Nanos::from_ticks(1, current.core.mm.config.hz), DelayReason::Nap));
        }
        self.current(task).truncate_on(call)
    }

    /// Forgets a file that was unlinked ([`Engine::unlink`]) and that no task has open or mapped any more: its number is given to the next one
    /// that is created. An error where something of it is left.
    pub fn file_forget(&mut self, file: FileId) -> Result<(), ConfigError> {
        let Some(of) = self.core.mm.memory.files.get(file.index()).filter(|of| !of.is_forgotten()) else {
            return Err(ConfigError::Unknown(format!("file {}", file.0)));
        };
        let name = &of.name;
        let is_open = |object: &Object| {
            !object.is_closed() && matches!(object, Object::File { file: of, .. } if *of == file)
        };
        let why = if of.index.iter().next().is_some() {
            Some("has pages or shadows: unlink it first")
        } else if !of.mappings.is_empty() {
            Some("is mapped")
        } else if self.tasks.iter().flat_map(|task| &task.objects).any(is_open) {
            Some("is open: close it first")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(ConfigError::InUse(format!("file {name} {why}")));
        }
        self.core.evict_inode(file);
        self.core.mm.memory.forget_file(file);
        Ok(())
    }
}

fn check_file_length(pages: u64, memory: &TableMemory) -> Result<(), ConfigError> {
    check_range("pages of a file", pages, 1, TABLE_PAGES_MAX)?;
    check_table("a file", NodeKind::Index, pages, memory)
}
