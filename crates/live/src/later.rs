//! Syncs and writes that no caller waits for: they are awaited, by any executor or none.
//!
//! ```text
//!   submit ─▶ a queue ─▶ a thread of the cache: the call that waits ─▶ its outcome is kept ─▶ wakes who awaits it
//!   poll, wait ─▶ the outcome
//! ```
//! A sync waits for devices, and a write for reads, for devices while too much is dirty, and for guards. So each is a thread's call from its beginning to
//! its end. Syncs and writes have threads of their own: a write may wait until a task drops its guard, which may first await a sync. A thread starts when it
//! is needed, and ends with the cache.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::error::Error;
use crate::file::{File, WriteAt};
use crate::memory::Shared;
use crate::pending::Reader;
use crate::region::Region;
use crate::sync::thread;
use crate::sync::{Mutex, MutexGuard};
use crate::works::{Sleeper, Works};

/// The thread that would have woken others may have ended.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Calls that no caller waits for, by kind.
#[derive(Default)]
pub(crate) struct Later {
    syncs: Arc<Works>,
    writes: Arc<Works>,
}

impl Later {
    /// The cache ends. Nothing is left to do: what waits in a queue keeps the cache.
    pub(crate) fn end(&self) {
        self.syncs.end();
        self.writes.end();
    }
}

/// The outcome of a call, for the task that awaits it.
struct Promise<T>(Mutex<Kept<T>>);

struct Kept<T> {
    /// The result of the call, or its panic: buffers are the code of the caller.
    outcome: Option<std::thread::Result<T>>,
    awaits: Option<Sleeper>,
    /// The task does not await it any more.
    is_given_up: bool,
}

impl<T> Promise<T> {
    fn new(outcome: Option<T>) -> Arc<Promise<T>> {
        let outcome = outcome.map(Ok);
        Arc::new(Promise(Mutex::new(Kept { outcome, awaits: None, is_given_up: false })))
    }

    fn kept(&self) -> MutexGuard<'_, Kept<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_given_up(&self) -> bool {
        self.kept().is_given_up
    }

    /// Wakers are called by other threads: they may wait for a call of this thread's kind.
    fn keep(&self, outcome: std::thread::Result<T>, wakers: &Arc<Works>) {
        let mut kept = self.kept();
        kept.outcome = Some(outcome);
        let awaits = kept.awaits.take();
        drop(kept);
        awaits.into_iter().for_each(|sleeper| wakers.wake(sleeper));
    }
}

/// A call in progress.
struct Call<T> {
    memory: Arc<Shared>,
    promise: Arc<Promise<T>>,
}

impl<T: Send + 'static> Call<T> {
    /// Begins a call on a thread of the cache.
    fn begin(
        memory: &Arc<Shared>,
        works: &Arc<Works>,
        name: &str,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Call<T> {
        let promise = Promise::new(None);
        let (kept, wakers) = (Arc::clone(&promise), Arc::clone(&memory.machine.wakers));
        works.begin(
            name,
            Box::new(move || {
                if !kept.is_given_up() {
                    kept.keep(catch_unwind(AssertUnwindSafe(call)), &wakers);
                }
            }),
        );
        Call { memory: Arc::clone(memory), promise }
    }

    /// A call that has ended.
    fn ended(memory: &Arc<Shared>, outcome: T) -> Call<T> {
        Call { memory: Arc::clone(memory), promise: Promise::new(Some(outcome)) }
    }

    fn is_ready(&self) -> bool {
        self.promise.kept().outcome.is_some()
    }

    /// Returns the outcome, if the call has ended. Otherwise the sleeper is woken when it ends.
    fn poll(&self, sleeper: Sleeper) -> Poll<T> {
        let mut kept = self.promise.kept();
        if let Some(outcome) = kept.outcome.take() {
            drop(kept);
            return Poll::Ready(outcome.unwrap_or_else(|payload| resume_unwind(payload)));
        }
        let former = kept.awaits.replace(sleeper);
        drop(kept);
        drop(former);
        Poll::Pending
    }

    fn wait(self) -> T {
        loop {
            match self.poll(Sleeper::Thread(thread::current())) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => thread::park_timeout(LOOK_AGAIN),
            }
        }
    }

    /// In the child of a fork, no thread makes the call.
    fn is_orphan(&self) -> bool {
        !self.memory.machine.arena.is_of_this_process()
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        // In the child of a fork, the thread that would unlock what a thread of the parent had locked may not exist.
        if self.memory.machine.arena.is_of_this_process() {
            let mut kept = self.promise.kept();
            kept.is_given_up = true;
            let dropped = (kept.awaits.take(), kept.outcome.take());
            drop(kept);
            drop(dropped);
        }
    }
}

/// A sync in progress ([`File::submit_sync_data`]). As a future it is ready when the sync has ended; [`PendingSync::wait`] waits for that. If it is dropped
/// before, the sync is made or not.
///
/// Wakers: see [`crate::Pending`].
#[must_use = "a sync that nobody waits for may not be made"]
pub struct PendingSync(Call<Result<(), Error>>);

/// Writes in progress ([`File::submit_writes`]). As a future it is ready when the writes have ended; [`PendingWrites::wait`] waits for that. Its output has
/// the buffers. If it is dropped before, the writes are made or not.
///
/// Wakers: see [`crate::Pending`]. If a buffer panics when it is read, so does the call that waits for the writes.
#[must_use = "writes that nobody waits for may not be made"]
pub struct PendingWrites<B>(Call<(Result<(), Error>, Vec<B>)>);

impl File {
    /// Begins a sync of all earlier writes ([`File::sync_data`]), and does not wait for it. It needs no executor: a thread of the cache makes it.
    ///
    /// ```no_run
    /// # async fn commit() -> Result<(), pageout::Error> {
    /// # let memory = pageout::Memory::builder().build()?;
    /// let file = memory.open("table.db", pageout::Open::read_write())?;
    /// file.write_at(b"a row", 8192)?;
    /// file.submit_sync_data().await?; // other tasks run meanwhile
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit_sync_data(&self) -> PendingSync {
        self.submit_sync(File::sync_data)
    }

    /// The same with the file's times ([`File::sync_all`]).
    pub fn submit_sync_all(&self) -> PendingSync {
        self.submit_sync(File::sync_all)
    }

    fn submit_sync(&self, sync: fn(&File) -> Result<(), Error>) -> PendingSync {
        let memory = &self.0.memory;
        if !memory.machine.arena.is_of_this_process() {
            return PendingSync(Call::ended(memory, Err(Error::Poisoned)));
        }
        let file = self.clone();
        PendingSync(Call::begin(memory, &memory.later.syncs, "pageout-sync", move || sync(&file)))
    }

    /// Begins several writes in their order, as [`File::write_batch`], and waits for none of them. Each buffer comes with its offset, and is returned by
    /// the future. A write to pages that are in memory and dirty is made immediately. For the others a thread of the cache waits: for reads, for the device
    /// if too much is dirty, and for guards. Two submissions are in no order.
    ///
    /// ```no_run
    /// # async fn store() -> Result<(), pageout::Error> {
    /// # let memory = pageout::Memory::builder().build()?;
    /// let file = memory.open("table.db", pageout::Open::read_write())?;
    /// let rows = vec![(vec![1; 100], 8192), (vec![2; 100], 1 << 20)];
    /// let (outcome, buffers) = file.submit_writes(rows).await;
    /// outcome?;
    /// # let _: Vec<Vec<u8>> = buffers;
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit_writes<B: AsRef<[u8]> + Send + 'static>(&self, writes: Vec<(B, u64)>) -> PendingWrites<B> {
        submit_writes(Reader::File(self.clone()), writes)
    }
}

impl Region {
    /// Begins several writes in their order, as [`Region::write_batch`], and waits for none of them: see [`File::submit_writes`].
    pub fn submit_writes<B: AsRef<[u8]> + Send + 'static>(&self, writes: Vec<(B, u64)>) -> PendingWrites<B> {
        submit_writes(Reader::Region(self.clone()), writes)
    }
}

fn submit_writes<B: AsRef<[u8]> + Send + 'static>(of: Reader, writes: Vec<(B, u64)>) -> PendingWrites<B> {
    let memory = Arc::clone(of.memory());
    let buffers = |writes: Vec<(B, u64)>| writes.into_iter().map(|(buf, _)| buf).collect();
    if !memory.machine.arena.is_of_this_process() {
        return PendingWrites(Call::ended(&memory, (Err(Error::Poisoned), buffers(writes))));
    }
    let is_made = |(buf, offset): &(B, u64)| match &of {
        Reader::File(file) => file.0.try_write(buf.as_ref(), *offset),
        Reader::Region(region) => region.0.try_write(buf.as_ref(), *offset),
    };
    let made = writes.iter().take_while(|write| is_made(write)).count();
    if made == writes.len() {
        return PendingWrites(Call::ended(&memory, (Ok(()), buffers(writes))));
    }
    let call = move || {
        let left: Vec<_> = writes[made..]
            .iter()
            .map(|(buf, offset)| WriteAt { buf: buf.as_ref(), offset: *offset })
            .collect();
        let outcome = match &of {
            Reader::File(file) => file.write_batch(&left),
            Reader::Region(region) => region.write_batch(&left),
        };
        drop(left);
        (outcome, buffers(writes))
    };
    PendingWrites(Call::begin(&memory, &memory.later.writes, "pageout-write", call))
}

impl PendingSync {
    /// Returns true if the sync has ended, so that [`PendingSync::wait`] does not wait.
    pub fn is_ready(&self) -> bool {
        self.0.is_orphan() || self.0.is_ready()
    }

    /// Waits for the end of the sync.
    ///
    /// # Errors
    /// The same as [`File::sync_data`].
    pub fn wait(self) -> Result<(), Error> {
        if self.0.is_orphan() { Err(Error::Poisoned) } else { self.0.wait() }
    }
}

impl Future for PendingSync {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.0.is_orphan() { Poll::Ready(Err(Error::Poisoned)) } else { self.0.poll(Sleeper::of(context)) }
    }
}

impl<B: Send + 'static> PendingWrites<B> {
    /// Returns true if the writes have ended, so that [`PendingWrites::wait`] does not wait.
    pub fn is_ready(&self) -> bool {
        self.0.is_orphan() || self.0.is_ready()
    }

    /// Waits for the end of the writes. Returns their outcome, which has the errors of [`File::write_batch`], and the buffers.
    pub fn wait(self) -> (Result<(), Error>, Vec<B>) {
        if self.0.is_orphan() { (Err(Error::Poisoned), Vec::new()) } else { self.0.wait() }
    }
}

impl<B: Send + 'static> Future for PendingWrites<B> {
    type Output = (Result<(), Error>, Vec<B>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.0.is_orphan() {
            return Poll::Ready((Err(Error::Poisoned), Vec::new()));
        }
        self.0.poll(Sleeper::of(context))
    }
}

impl std::fmt::Debug for PendingSync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingSync").finish_non_exhaustive()
    }
}

impl<B> std::fmt::Debug for PendingWrites<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingWrites").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests; // on devices that answer late, or fail
