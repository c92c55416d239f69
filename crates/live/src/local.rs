//! What a thread keeps of each cache that it reads: its ring, and the words of files as it has found them.

use std::cell::RefCell;
use std::sync::Arc;

use pageout_engine::WordReader;

use crate::error::Error;
use crate::file::Inner as File;
use crate::machine::Machine;
use crate::ring::{Read, Ring};

/// A thread's part of one cache.
pub(crate) struct Local {
    machine: u64,
    pub(crate) ring: Arc<Ring>,
    /// By number of the handle.
    files: Vec<Option<LocalFile>>,
}

/// A file as this thread reads it.
pub(crate) struct LocalFile {
    /// Which one it is: numbers are used again.
    serial: u64,
    pub(crate) words: WordReader,
    /// The page that was read last, where the engine has not heard of it: nothing had to be noted.
    pub(crate) last: Option<Read>,
}

impl Drop for Local {
    fn drop(&mut self) {
        self.ring.end();
    }
}

thread_local! {
    static LOCALS: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

/// What this thread keeps of a file.
#[inline(always)]
pub(crate) fn with<T>(
    machine: &Machine,
    file: &File,
    use_it: impl FnOnce(&Ring, &mut LocalFile) -> Result<T, Error>,
) -> Result<T, Error> {
    LOCALS.with_borrow_mut(|locals| {
        let at = match locals.iter().position(|local| local.machine == machine.id) {
            Some(at) => at,
            None => join(machine, locals)?,
        };
        let Local { ring, files, .. } = &mut locals[at];
        let number = file.number();
        match files.get_mut(number) {
            Some(Some(of)) if of.serial == file.serial => use_it(ring, of),
            _ => use_it(ring, meet(machine, file, files)?),
        }
    })
}

/// The ring of this thread, if it has read anything.
pub(crate) fn with_ring(machine: &Machine, use_it: impl FnOnce(&Ring)) -> bool {
    let used = LOCALS.try_with(|locals| {
        let locals = locals.borrow();
        locals.iter().find(|local| local.machine == machine.id).map(|local| use_it(&local.ring)).is_some()
    });
    used.unwrap_or(false)
}

/// This thread has not read anything of this cache.
#[cold]
fn join(machine: &Machine, locals: &mut Vec<Local>) -> Result<usize, Error> {
    // Of caches that are gone nobody else has the ring.
    locals.retain(|local| Arc::strong_count(&local.ring) > 1);
    let ring = Arc::<Ring>::default();
    machine.lock()?.rings.push(Arc::clone(&ring));
    locals.push(Local { machine: machine.id, ring, files: Vec::new() });
    Ok(locals.len() - 1)
}

/// It has not read this file.
#[cold]
fn meet<'a>(
    machine: &Machine,
    file: &File,
    files: &'a mut Vec<Option<LocalFile>>,
) -> Result<&'a mut LocalFile, Error> {
    let number = file.number();
    if files.len() <= number {
        files.resize_with(number + 1, || None);
    }
    let mut locked = machine.lock()?;
    if !locked.is_reachable(file) {
        return Err(file.forgotten());
    }
    let owner = locked.owner;
    let words = locked.engine.words_of(owner, file.object);
    Ok(files[number].insert(LocalFile { serial: file.serial, words, last: None }))
}
