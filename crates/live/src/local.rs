//! What a thread keeps of each cache that it reads: its ring, and the words of files as it has found them.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use pageout_engine::WordReader;

use crate::counts::{Counts, ThreadHits};
use crate::file::Inner as File;
use crate::machine::{LiveMachine, Locked};
use crate::number::thread_number;
use crate::region::Inner as Region;
use crate::ring::{Read, Ring};
use crate::sync::thread_local;

/// A thread's part of one cache.
pub(crate) struct Local {
    machine: u64,
    ring: Rc<OwnRing>,
    /// By number of the handle.
    files: Vec<Option<LocalFile>>,
    /// By number of the region.
    regions: Vec<Option<LocalFile>>,
    /// Number of closed handles whose cached data it has freed.
    closed: u64,
}

/// A file or region that a thread reads without the engine.
pub(crate) trait Readable {
    fn number(&self) -> usize;

    /// Distinguishes it from earlier and later ones with the same number.
    fn serial(&self) -> u64;

    /// The thread's list that keeps it: the list of files, or of regions.
    fn of<T>(files: T, regions: T) -> T;

    /// Its words; `None` if it can't be read.
    fn words(&self, locked: &mut Locked<'_>) -> Option<WordReader>;

    /// Where its accesses are counted.
    fn counts<'a>(&self, locked: &'a mut Locked<'_>) -> Option<&'a mut Counts>;
}

impl Readable for File {
    #[inline(always)]
    fn number(&self) -> usize {
        self.object.0 as usize
    }

    #[inline(always)]
    fn serial(&self) -> u64 {
        self.serial
    }

    #[inline(always)]
    fn of<T>(files: T, _: T) -> T {
        files
    }

    fn words(&self, locked: &mut Locked<'_>) -> Option<WordReader> {
        let owner = locked.files.owner;
        locked.is_reachable(self).then(|| locked.engine.words_of(owner, self.object))
    }

    fn counts<'a>(&self, locked: &'a mut Locked<'_>) -> Option<&'a mut Counts> {
        locked.counts_of_handle(self.id, self.serial)
    }
}

impl Readable for Region {
    #[inline(always)]
    fn number(&self) -> usize {
        self.number
    }

    #[inline(always)]
    fn serial(&self) -> u64 {
        self.serial
    }

    #[inline(always)]
    fn of<T>(_: T, regions: T) -> T {
        regions
    }

    fn words(&self, locked: &mut Locked<'_>) -> Option<WordReader> {
        locked.words_of_region(self.number)
    }

    fn counts<'a>(&self, locked: &'a mut Locked<'_>) -> Option<&'a mut Counts> {
        locked.counts_of_region(self.number)
    }
}

/// This thread's state of a file or a region.
pub(crate) struct LocalFile {
    /// Which one it is: numbers are used again.
    serial: u64,
    pub(crate) words: WordReader,
    /// Its hits in this thread.
    pub(crate) hits: Arc<ThreadHits>,
    /// The page that was read last, if the engine was not notified of it: nothing had to be recorded.
    pub(crate) last: Option<Read>,
    /// In the current call, pages were read of which the engine may promote some at its end.
    pub(crate) is_watched: bool,
}

/// The ring of this thread. It ends with its last user: the thread, or a reader that outlives the thread's other data.
pub(crate) struct OwnRing(Arc<Ring>);

impl std::ops::Deref for OwnRing {
    type Target = Ring;

    #[inline(always)]
    fn deref(&self) -> &Ring {
        &self.0
    }
}

impl Drop for OwnRing {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// All that a thread keeps.
struct Locals {
    caches: Vec<Local>,
    /// Which of them was read last.
    last: usize,
}

thread_local! {
    static LOCALS: RefCell<Locals> = const { RefCell::new(Locals { caches: Vec::new(), last: 0 }) };
}

impl Locals {
    #[inline(always)]
    fn knows<R: Readable>(&self, machine: &LiveMachine, read: &R) -> bool {
        self.caches.get(self.last).is_some_and(|local| {
            let is_known = |of: &Option<LocalFile>| of.as_ref().is_some_and(|of| of.serial == read.serial());
            local.machine == machine.id
                && R::of(&local.files, &local.regions).get(read.number()).is_some_and(is_known)
        })
    }

    /// The thread has read another cache or file before, or not this one yet; nothing where it can't.
    #[cold]
    fn meet<R: Readable>(&mut self, machine: &LiveMachine, read: &R) -> Option<()> {
        self.last = self.find(machine)?;
        if self.knows(machine, read) {
            return Some(());
        }
        let mut locked = machine.lock().ok()?;
        let words = read.words(&mut locked)?;
        let hits = read.counts(&mut locked)?.join();
        let local = &mut self.caches[self.last];
        local.give_back(&locked);
        let (kept, number) = (R::of(&mut local.files, &mut local.regions), read.number());
        if kept.len() <= number {
            kept.resize_with(number + 1, || None);
        }
        kept[number] = Some(LocalFile { serial: read.serial(), words, hits, last: None, is_watched: false });
        Some(())
    }

    /// The thread's part of a cache.
    fn find(&mut self, machine: &LiveMachine) -> Option<usize> {
        let known = self.caches.iter().position(|local| local.machine == machine.id);
        known.or_else(|| self.join(machine))
    }

    /// This thread has not read anything of this cache.
    fn join(&mut self, machine: &LiveMachine) -> Option<usize> {
        // The rings of dropped caches have no other owner.
        self.caches.retain(|local| Arc::strong_count(&local.ring.0) > 1);
        let mut locked = machine.lock().ok()?;
        let ring = Arc::new(Ring::new(machine.arena.holds.take_line(thread_number())));
        locked.hits.rings.push(Arc::clone(&ring));
        let (files, regions, closed) = (Vec::new(), Vec::new(), locked.files.closed);
        let ring = Rc::new(OwnRing(ring));
        self.caches.push(Local { machine: machine.id, ring, files, regions, closed });
        Some(self.caches.len() - 1)
    }
}

impl Local {
    /// Gives the words of files back whose handles are gone: no other has their lines.
    fn give_back(&mut self, locked: &Locked<'_>) {
        if std::mem::replace(&mut self.closed, locked.files.closed) != locked.files.closed {
            let kept = self.files.iter_mut().chain(&mut self.regions);
            kept.for_each(|of| _ = of.take_if(|of| Arc::strong_count(&of.hits) == 1));
        }
    }
}

/// Data that this thread keeps of a file. Nothing if the file can't be read: the next call of the engine returns the reason.
#[inline(always)]
pub(crate) fn with<T, R: Readable>(
    machine: &LiveMachine,
    read: &R,
    use_it: impl FnOnce(&Ring, &mut LocalFile) -> Option<T>,
) -> Option<T> {
    let used = LOCALS.try_with(|locals| {
        let locals = &mut *locals.borrow_mut();
        if !locals.knows(machine, read) {
            locals.meet(machine, read)?;
        }
        let local = &mut locals.caches[locals.last];
        let Local { ring, files, regions, .. } = local;
        use_it(ring, R::of(files, regions)[read.number()].as_mut()?)
    });
    used.ok().flatten()
}

/// The data of a reader of this thread: the thread's ring, and words of its own. `None` if the file can't be read: the next call of the engine returns
/// the reason.
pub(crate) fn of_reader<R: Readable>(machine: &LiveMachine, read: &R) -> Option<(Rc<OwnRing>, LocalFile)> {
    let ring = LOCALS.try_with(|locals| {
        let locals = &mut *locals.borrow_mut();
        let at = locals.find(machine)?;
        Some(Rc::clone(&locals.caches[at].ring))
    });
    let ring = ring.ok().flatten()?;
    let mut locked = machine.lock().ok()?;
    let (words, hits) = (read.words(&mut locked)?, read.counts(&mut locked)?.join());
    Some((ring, LocalFile { serial: read.serial(), words, hits, last: None, is_watched: false }))
}

/// Counts pins that this thread has taken, or given back if less than none. Returns how many it has; nothing where it has no ring: it has read
/// nothing itself, or is about to end.
#[inline(always)]
pub(crate) fn count_pins(machine: &LiveMachine, more: i64) -> Option<i64> {
    let counted = LOCALS.try_with(|locals| {
        let locals = locals.borrow();
        let last = locals.caches.get(locals.last).filter(|local| local.machine == machine.id);
        let local = last.or_else(|| locals.caches.iter().find(|local| local.machine == machine.id));
        local.map(|local| local.ring.count_pins(more))
    });
    counted.ok().flatten()
}

/// A handle is closed, or a page has to be brought in: frees this thread's data of files that can't be read any more.
pub(crate) fn give_back(machine: &LiveMachine, locked: &Locked<'_>) {
    let _ = LOCALS.try_with(|locals| {
        let mut locals = locals.borrow_mut();
        let local = locals.caches.iter_mut().find(|local| local.machine == machine.id);
        local.into_iter().for_each(|local| local.give_back(locked));
    });
}

/// Files of a cache of which this thread keeps the words.
#[cfg(test)]
pub(crate) fn kept(machine: &LiveMachine) -> usize {
    LOCALS.with(|locals| {
        let locals = locals.borrow();
        let of_it = locals.caches.iter().filter(|local| local.machine == machine.id);
        of_it.flat_map(|local| local.files.iter().chain(&local.regions)).flatten().count()
    })
}
