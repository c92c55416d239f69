//! Sequences of operations by one thread, each compared with the model as soon as it has returned.

mod expected; // what an operation may come to
mod failed; // devices that are full, and what is left of a write that fails
mod regions; // anonymous memory, in caches with swap
mod steps; // operations that end before the next one begins

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pageout::{Backend, Error, File, Group, Memory, PageMut, Pending, ReadAt};

use expected::again;

use crate::draw::{Draw, filled};
use crate::folder::Folder;
use crate::full;
use crate::memory::Setup;
use crate::model::{Object, PAGE, compare};
use crate::operations::{Generator, Known, Op, PATHS, REGIONS, Range, SLOTS, program};
use crate::settings::{self, Avoid, avoids};
use crate::shrink;
use crate::watch::{self, Counts, Watch, Worker};

/// Guards that may be held before an operation may run out of memory.
const FEW_GUARDS: usize = 16;
/// Of so many operations one may wait for a guard of its own thread.
const OF_OWN_WAIT: usize = 60;
/// A call that a full device refuses, or a guard of the same thread, takes less, also on a busy machine.
const REFUSED_WITHIN: Duration = Duration::from_secs(3);
/// A call for several pages, each of which may have to wait.
const REFUSED_IN_ALL_WITHIN: Duration = Duration::from_secs(12);

/// What went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Failures of one class have one cause, mostly.
    pub(crate) class: String,
    pub(crate) text: String,
}

/// A sequence and its outcome.
pub(crate) struct Report {
    /// The operations that were made, the one that failed last.
    pub(crate) ops: Vec<Op>,
    pub(crate) failure: Option<Failure>,
    pub(crate) counts: Counts,
}

/// Where operations come from.
pub(crate) enum Source {
    Drawn(Box<Generator>, usize),
    Given(VecDeque<Op>),
}

/// Runs sequences for as long as the settings say.
pub(crate) fn run() {
    let until = Instant::now() + settings::duration();
    let mut counts = Counts::default();
    let mut sequences = 0;
    for seed in settings::seeds() {
        let mut draw = Draw::new(seed);
        let mut setup = Setup::draw(&mut draw);
        if draw.once_in(2) {
            setup = Setup::draw_with_swap(&mut draw);
            // Otherwise a pool that is full leaves a group no memory.
            setup.swap.iter_mut().for_each(|swap| swap.shrinker = true);
        }
        let len = draw.pick(&[40, 150, 400]);
        let source = Source::Drawn(Box::new(Generator::new(draw)), len);
        let report = run_sequence(&setup, source, settings::longest());
        counts.add(&report.counts);
        if let Some(failure) = report.failure {
            fail(seed, &setup, report.ops, failure);
        }
        sequences += 1;
        if Instant::now() >= until {
            break;
        }
    }
    counts.print(&format!("one thread, {sequences} sequences"));
}

fn fail(seed: u64, setup: &Setup, ops: Vec<Op>, failure: Failure) -> ! {
    let again = settings::again(seed);
    eprintln!(
        "seed {seed}: {}\nagain: {again}\n{} operations; they are being shrunken",
        failure.text,
        ops.len()
    );
    let (setup, ops, failure, sure) = shrink::shrink(setup.clone(), ops, failure);
    panic!(
        "the cache differs from the model: {}\nsetup: {setup}\n{}the last operation fails{sure}\nagain: {again}",
        failure.text,
        program(&ops)
    );
}

/// Runs one sequence in a thread of its own, which is left behind if it hangs.
pub(crate) fn run_sequence(setup: &Setup, source: Source, longest: Duration) -> Report {
    let watch = Watch::default();
    let worker = watch.worker("the thread");
    let made = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = channel();
    let (setup, made_there) = (setup.clone(), Arc::clone(&made));
    std::thread::spawn(move || {
        let mut counts = Counts::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut run = Run::new(&setup, source, made_there, worker)?;
            let outcome = run.all();
            counts = std::mem::take(&mut run.counts);
            outcome
        }));
        let failure = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(panicked()),
        };
        let _ = sender.send((failure, counts));
    });
    let (failure, counts) = loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(outcome) => break outcome,
            Err(RecvTimeoutError::Disconnected) => break (Some(panicked()), Counts::default()),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(hang) = watch.hangs(longest) {
                    let kind =
                        made.lock().unwrap_or_else(PoisonError::into_inner).last().map_or("?", Op::kind);
                    break (
                        Some(Failure { class: format!("hang in {kind}"), text: hang }),
                        Counts::default(),
                    );
                }
            }
        }
    };
    // A thread that was left behind may have set it.
    full::limit(None);
    let ops = made.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Report { ops, failure, counts }
}

/// The library has panicked, or this test has.
fn panicked() -> Failure {
    let panics = watch::take_panics();
    let first = panics.first().map_or("a panic of which nothing is known", String::as_str);
    let class = first.lines().next().unwrap_or_default();
    Failure { class: format!("panic: {class}"), text: format!("a panic: {}", panics.join("\n    ")) }
}

/// A handle.
struct Handle {
    file: File,
    object: usize,
    generation: usize,
    writes: bool,
    group: Option<usize>,
}

impl Handle {
    fn share(&self) -> Handle {
        Handle { file: self.file.clone(), ..*self }
    }
}

/// What a scope holds.
enum Scope<'s, 'g> {
    Nothing,
    Written { guard: &'s mut PageMut<'g>, object: usize, page: u64 },
    Pending(&'s mut Pending<'g>),
}

/// One sequence under way.
struct Run<'a> {
    setup: &'a Setup,
    /// Before the cache, which writes what it has left.
    _lifts: full::Lifts,
    /// Devices take nothing from this byte of a file on.
    full: Option<u64>,
    /// Before the folder: its threads write to files.
    slots: [Option<Handle>; SLOTS],
    regions: [Option<regions::Space>; REGIONS],
    groups: Vec<Group>,
    memory: Option<Memory>,
    pins_max: usize,
    has_uring: bool,
    objects: Vec<Object>,
    paths: [Option<usize>; PATHS],
    source: Source,
    made: Arc<Mutex<Vec<Op>>>,
    worker: Worker,
    counts: Counts,
    depth: usize,
    /// Guards of all scopes.
    guards: usize,
    /// As many as there were at the same time in this sequence.
    most_guards: usize,
    /// Of the last write.
    pages_written: u64,
    /// Operations that may still wait for a guard of their own thread, in which each takes a tenth of a second.
    own_waits: Cell<u32>,
    began: Option<(&'static str, Instant)>,
    folder: Folder,
}

type Outcome = Result<(), Failure>;

/// The name of an error's kind.
fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::Io { source, .. } if source.raw_os_error() == Some(libc::EFBIG) => "Io: EFBIG",
        Error::Sync { source, lost: 0, .. } if source.raw_os_error() == Some(libc::EFBIG) => "Sync: EFBIG",
        Error::Io { .. } => "Io",
        Error::DirectRefused { .. } => "DirectRefused",
        Error::NoRegularFile { .. } => "NoRegularFile",
        Error::Sync { .. } => "Sync",
        Error::ReadOnly { .. } => "ReadOnly",
        Error::Shortened { .. } => "Shortened",
        Error::BeyondEnd { .. } => "BeyondEnd",
        Error::OutOfMemory(_) => "OutOfMemory",
        Error::Pinned { .. } => "Pinned",
        Error::TooManyFiles { .. } => "TooManyFiles",
        Error::TooLong { .. } => "TooLong",
        Error::Config(_) => "Config",
        Error::File(_) => "File",
        Error::Forgotten { .. } => "Forgotten",
        Error::Poisoned => "Poisoned",
        _ => "another error",
    }
}

impl Known for Run<'_> {
    fn bytes(&self, slot: usize) -> Option<u64> {
        let handle = self.slots[slot].as_ref()?;
        Some(self.objects[handle.object].len_of(handle.generation))
    }

    fn region_bytes(&self, number: usize) -> Option<u64> {
        self.regions[number].as_ref().map(regions::Space::len)
    }

    fn has_swap(&self) -> bool {
        self.setup.swap.is_some()
    }

    fn groups(&self) -> usize {
        self.groups.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn avoids_holes(&self) -> bool {
        self.has_uring && avoids(Avoid::Holes)
    }

    fn is_full(&self) -> bool {
        self.full.is_some()
    }

    fn may_fail(&self) -> bool {
        self.full.is_some() || self.objects.iter().any(|object| object.is_suspect)
    }

    fn has_slow_writes(&self) -> bool {
        self.may_fail() && self.full != Some(0) && avoids(Avoid::PartlyFull)
    }
}

impl<'a> Run<'a> {
    fn new(
        setup: &'a Setup,
        source: Source,
        made: Arc<Mutex<Vec<Op>>>,
        worker: Worker,
    ) -> Result<Run<'a>, Failure> {
        let mut run = Run {
            setup,
            _lifts: full::Lifts,
            full: None,
            slots: Default::default(),
            regions: Default::default(),
            groups: Vec::new(),
            memory: None,
            pins_max: 0,
            has_uring: false,
            objects: Vec::new(),
            paths: [None; PATHS],
            source,
            made,
            worker,
            counts: Counts::default(),
            depth: 0,
            guards: 0,
            most_guards: 0,
            pages_written: 0,
            own_waits: Cell::new(0),
            began: None,
            folder: Folder::new(),
        };
        // The last path leads nowhere at first.
        for path in 0..PATHS - 1 {
            let len = [10_000, 50 * PAGE as usize][path];
            run.make(path, filled(u32::MAX - path as u32, 0, len));
        }
        run.build()?;
        Ok(run)
    }

    fn build(&mut self) -> Outcome {
        let memory = self.setup.build().map_err(|error| self.failure("build", error.to_string()))?;
        self.groups = self
            .setup
            .limits()
            .map(|(name, limits)| memory.group(&name, limits))
            .collect::<Result<_, _>>()
            .map_err(|error| self.failure("group", error.to_string()))?;
        let stats = memory.stats().map_err(|error| self.failure("stats", error.to_string()))?;
        self.pins_max = (stats.frames / 4) as usize;
        self.has_uring = memory.backend() == Backend::Uring;
        self.memory = Some(memory);
        Ok(())
    }

    /// Makes a file at a path, past the cache.
    fn make(&mut self, path: usize, bytes: Vec<u8>) {
        let name = self.folder.path(&format!("file-{path}"));
        let _ = fs::remove_file(&name);
        full::limit(None);
        fs::write(&name, &bytes).unwrap();
        full::limit(self.full);
        self.adopt(path, bytes);
    }

    /// The file that is at a path now.
    fn adopt(&mut self, path: usize, bytes: Vec<u8>) {
        let name = self.folder.path(&format!("file-{path}"));
        let outside = fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
        self.objects.push(Object::new(name, outside, bytes));
        self.paths[path] = Some(self.objects.len() - 1);
    }

    fn failure(&self, class: &str, text: impl Into<String>) -> Failure {
        Failure { class: class.to_owned(), text: format!("{class}: {}", text.into()) }
    }

    fn next(&mut self) -> Option<Op> {
        let op = match &mut self.source {
            Source::Given(ops) => ops.pop_front()?,
            Source::Drawn(_, 0) => return None,
            Source::Drawn(_, left) => {
                *left -= 1;
                let source = std::mem::replace(&mut self.source, Source::Given(VecDeque::new()));
                let Source::Drawn(mut generator, left) = source else { unreachable!("it was") };
                let op = generator.next(self);
                self.source = Source::Drawn(generator, left);
                op
            }
        };
        self.time();
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).len();
        if made.is_multiple_of(OF_OWN_WAIT) {
            self.own_waits.set(1);
        }
        self.worker.begins(op.to_string());
        self.began = Some((op.kind(), Instant::now()));
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(op.clone());
        Some(op)
    }

    /// The operation under way has ended.
    fn time(&mut self) {
        if let Some((kind, began)) = self.began.take() {
            self.counts.time(kind, began.elapsed());
        }
    }

    fn all(&mut self) -> Outcome {
        self.scope(&mut Scope::Nothing)?;
        self.time();
        self.worker.begins("the end: all handles and the cache are dropped".to_owned());
        self.began = Some(("the end", Instant::now()));
        let outcome = self.end();
        self.time();
        self.worker.ends();
        outcome
    }

    /// Drops everything, and compares all files.
    fn end(&mut self) -> Outcome {
        self.set_full(None);
        self.heal()?;
        self.compare_regions()?;
        self.regions = Default::default();
        self.slots.iter_mut().for_each(|slot| *slot = None);
        self.groups.clear();
        self.memory = None;
        for object in &mut self.objects {
            if let Err(text) = object.compare_synced() {
                let path = object.path.display();
                return Err(Failure {
                    class: "the end: a file on its device".to_owned(),
                    text: format!("after all was dropped, {path} on its device: {text}"),
                });
            }
            object.sync();
            object.is_suspect = false;
            if object.direct.is_some() {
                object.forget();
            }
        }
        let panics = watch::take_panics();
        if panics.is_empty() {
            Ok(())
        } else {
            Err(Failure {
                class: format!("panic: {}", panics[0].lines().next().unwrap_or_default()),
                text: panics.join("\n"),
            })
        }
    }

    /// Runs until the scope ends; whether what it holds is to be dropped.
    fn scope(&mut self, scope: &mut Scope<'_, '_>) -> Result<bool, Failure> {
        loop {
            let Some(op) = self.next() else { return Ok(false) };
            match &op {
                Op::End { drops } if self.depth > 0 => return Ok(*drops),
                Op::Hold { slot, page, count } => self.hold(*slot, *page, *count)?,
                Op::HoldMut { slot, page, fill } => self.hold_mut(*slot, *page, *fill)?,
                Op::Submit { slot, ranges } => self.submit(*slot, ranges)?,
                Op::Poll => {
                    if let Scope::Pending(pending) = scope {
                        pending.is_ready();
                        self.counts.count("is_ready", true);
                    }
                }
                Op::Scribble { fill } => {
                    if let Scope::Written { guard, object, page } = scope {
                        self.scribble(guard, *object, *page, *fill)?;
                    }
                }
                _ => self.step(&op)?,
            }
            self.check_lengths(&op)?;
        }
    }

    /// All handles say how long their files are.
    fn check_lengths(&self, op: &Op) -> Outcome {
        for handle in self.slots.iter().flatten() {
            let expected = self.objects[handle.object].len_of(handle.generation);
            if handle.file.len() != expected {
                let text = format!("File::len is {}, expected {expected}", handle.file.len());
                return Err(self.failure(&format!("length after {}", op.kind()), text));
            }
        }
        Ok(())
    }

    /// Checks that a result is one of those allowed. Returns its value, or nothing if it is an error.
    fn check<T>(
        &mut self,
        op: &str,
        kind: &'static str,
        result: Result<T, Error>,
        allowed: &[&str],
    ) -> Result<Option<T>, Failure> {
        // A page that is held to be written keeps others from being written, which are then all that a group has.
        let is_written = |object: &Object| object.held.values().any(|(_, writes)| *writes);
        let is_many =
            self.guards >= FEW_GUARDS || avoids(Avoid::HeldNeighbours) && self.objects.iter().any(is_written);
        let took = self.began.map_or(Duration::ZERO, |(_, began)| began.elapsed());
        let is_of_one_page = match kind {
            "write_at" => self.pages_written <= 1,
            _ => !["read_batch", "wait"].contains(&kind),
        };
        let refused_within = if is_of_one_page { REFUSED_WITHIN } else { REFUSED_IN_ALL_WITHIN };
        match result {
            Ok(value) if allowed.contains(&"ok") => {
                self.counts.count(kind, true);
                Ok(Some(value))
            }
            Ok(_) => Err(self
                .failure(&format!("{kind}: ok"), format!("{op} is Ok, expected {}", allowed.join(" or ")))),
            Err(Error::Poisoned) => Err(panicked()),
            Err(error) if ["Io: EFBIG", "Pinned"].contains(&kind_of(&error)) && took > refused_within => {
                Err(self.failure(&format!("{kind}: late"), format!("{op} takes {took:?}: {error}")))
            }
            Err(error) if allowed.contains(&kind_of(&error)) && kind_of(&error).ends_with("EFBIG") => {
                self.counts.count_full(kind);
                Ok(None)
            }
            // Pages that can't be written may be all that a group has.
            Err(Error::OutOfMemory(_)) if self.may_fail() => {
                self.counts.count_full(kind);
                Ok(None)
            }
            Err(error)
                if allowed.contains(&kind_of(&error))
                    || is_many && matches!(error, Error::OutOfMemory(_)) =>
            {
                self.counts.count(kind, false);
                Ok(None)
            }
            Err(error) => Err(self.failure(
                &format!("{kind}: {}", kind_of(&error)),
                format!("{op} is {}, expected {} ({error})", kind_of(&error), allowed.join(" or ")),
            )),
        }
    }

    /// Contents that a read has given.
    fn check_bytes(&self, op: &str, kind: &str, seen: &[u8], expected: &[u8], at: u64) -> Outcome {
        compare(seen, expected, at)
            .map_err(|text| self.failure(&format!("{kind}: contents"), format!("{op}: {text}")))
    }

    /// A handle to work with, which is a clone.
    fn handle(&self, slot: usize) -> Option<Handle> {
        self.slots[slot].as_ref().map(Handle::share)
    }

    /// Guards on some pages while other operations run.
    fn hold(&mut self, slot: usize, page: u64, count: u64) -> Outcome {
        let (kind, handle) = ("page, held", self.handle(slot));
        let Some(handle) = handle else { return self.empty_scope() };
        let mut guards = Vec::new();
        // A group whose pages are all held can't reclaim: it runs out of memory, or sleeps for each access.
        let count = if handle.group.is_some() { count.min(FEW_GUARDS as u64) } else { count };
        for page in page..page.saturating_add(count) {
            let text = format!("h{slot}.page({page})");
            let Some(allowed) = self.of_guard(&handle, page) else { break };
            let result = again(|| handle.file.page(page));
            let Some(guard) = self.check(&text, kind, result, &allowed)? else { break };
            self.check_bytes(&text, kind, &guard, self.objects[handle.object].page(page), page * PAGE)?;
            let seen = guard.to_vec();
            guards.push((page, guard, seen));
            self.objects[handle.object].held.entry(page).or_insert((0, false)).0 += 1;
            self.guards += 1;
            self.most_guards = self.most_guards.max(self.guards);
        }
        if self.guards > self.pins_max + 2 * FEW_GUARDS {
            let text = format!("{} guards are held, and {} may be", self.guards, self.pins_max);
            return Err(self.failure("too many guards", text));
        }
        self.check_pinned()?;
        self.enter(&mut Scope::Nothing)?;
        for (page, guard, seen) in guards {
            let text = format!("the guard of h{slot}.page({page}), at the end of its scope");
            self.check_bytes(&text, "page, held", &guard, &seen, page * PAGE)?;
            drop(guard);
            self.let_go(handle.object, page);
        }
        self.check_pinned()
    }

    /// One guard less.
    fn let_go(&mut self, object: usize, page: u64) {
        let held = &mut self.objects[object].held;
        let of = held.get_mut(&page).expect("it was held");
        of.0 -= 1;
        if of.0 == 0 {
            held.remove(&page);
        }
        self.guards -= 1;
    }

    /// The cache counts as many guards as there are.
    fn check_pinned(&self) -> Outcome {
        if self.objects.iter().any(|object| object.pendings > 0) {
            return Ok(());
        }
        let stats = self.memory.as_ref().expect("it is there").stats();
        let pinned = stats.map_err(|error| self.failure("stats", error.to_string()))?.pinned;
        if pinned != self.guards as u64 {
            let text = format!("Stats::pinned is {pinned}, expected {}", self.guards);
            return Err(self.failure("Stats::pinned", text));
        }
        Ok(())
    }

    fn enter(&mut self, scope: &mut Scope<'_, '_>) -> Result<bool, Failure> {
        self.depth += 1;
        let drops = self.scope(scope);
        self.depth -= 1;
        drops
    }

    /// A scope that holds nothing, as its operation was refused: its end is still to come.
    fn empty_scope(&mut self) -> Outcome {
        self.enter(&mut Scope::Nothing).map(drop)
    }

    fn hold_mut(&mut self, slot: usize, page: u64, fill: u32) -> Outcome {
        let kind = "page_mut, held";
        let Some(handle) = self.handle(slot) else { return self.empty_scope() };
        let bytes = self.objects[handle.object].len_of(handle.generation);
        let allowed = match () {
            () if handle.writes && page >= bytes.div_ceil(PAGE) => vec!["BeyondEnd"],
            () => match self.of_writes(&handle, page, page.saturating_add(1)) {
                Some(allowed) => allowed,
                None => return self.empty_scope(),
            },
        };
        let mut allowed = allowed;
        if allowed.contains(&"ok") && self.are_many(self.guards) {
            allowed.push("Pinned");
        }
        let text = format!("h{slot}.page_mut({page})");
        let result = again(|| handle.file.page_mut(page));
        let Some(mut guard) = self.check(&text, kind, result, &allowed)? else { return self.empty_scope() };
        self.check_bytes(&text, kind, &guard, self.objects[handle.object].page(page), page * PAGE)?;
        self.objects[handle.object].held.insert(page, (1, true));
        self.guards += 1;
        self.scribble(&mut guard, handle.object, page, fill)?;
        self.check_pinned()?;
        self.enter(&mut Scope::Written { guard: &mut guard, object: handle.object, page })?;
        self.scribble(&mut guard, handle.object, page, fill ^ 0x8000_0000)?;
        drop(guard);
        self.let_go(handle.object, page);
        self.check_pinned()
    }

    /// Writes all of a page through its guard.
    fn scribble(&mut self, guard: &mut PageMut<'_>, object: usize, page: u64, fill: u32) -> Outcome {
        let (kind, start) = ("write through a guard", (page * PAGE) as usize);
        let expected = self.objects[object].bytes[start..][..guard.len()].to_vec();
        self.check_bytes(&format!("the guard of page {page}"), kind, guard, &expected, page * PAGE)?;
        let buf = filled(fill, page * PAGE, guard.len());
        guard.copy_from_slice(&buf);
        self.objects[object].write(page * PAGE, &buf);
        self.counts.count(kind, true);
        Ok(())
    }

    /// Reads in flight while other operations run.
    fn submit(&mut self, slot: usize, ranges: &[Range]) -> Outcome {
        let Some(handle) = self.handle(slot) else { return self.empty_scope() };
        // Who waits for them may wait for a guard of its own, and not who submits them.
        let meets_own = !self.is_forgotten(&handle) && self.meets_own(handle.object, ranges);
        let Some(mut allowed) = self.of_reads(&handle, ranges) else { return self.empty_scope() };
        if allowed == ["Pinned"] {
            allowed = vec!["ok"];
        }
        let text = format!("h{slot}.submit() of {} reads", ranges.len());
        let mut bufs: Vec<Vec<u8>> = ranges.iter().map(|&(_, len)| vec![0xa5; len]).collect();
        let result = handle.file.submit(reads(&mut bufs, ranges));
        let number = handle.object;
        // The pending read has a handle of its own.
        let generation = handle.generation;
        drop(handle);
        let Some(mut pending) = self.check(&text, "submit", result, &allowed)? else {
            return self.empty_scope();
        };
        let object = &mut self.objects[number];
        object.pendings += 1;
        let mark = object.mark();
        let before: Vec<Vec<u8>> = ranges
            .iter()
            .map(|&(at, len)| if len == 0 { Vec::new() } else { object.bytes[at as usize..][..len].to_vec() })
            .collect();
        let drops = self.enter(&mut Scope::Pending(&mut pending))?;
        if drops {
            if avoids(Avoid::PendingDrop) {
                while !pending.is_ready() {
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
            drop(pending);
            self.objects[number].pendings -= 1;
            self.counts.count("drop of reads in flight", true);
            return Ok(());
        }
        let was_cut = self.objects[number].was_cut_since(mark);
        let is_forgotten = self.objects[number].generation != generation;
        let mut allowed = vec![if meets_own { "Pinned" } else { "ok" }];
        if was_cut {
            allowed.push("BeyondEnd");
            if avoids(Avoid::Shortened) {
                allowed.push("Shortened");
            }
        }
        if is_forgotten {
            allowed.push("Forgotten");
        }
        if self.are_many(self.most_guards) {
            // It may have been looked at when too many were held.
            allowed.push("Pinned");
        }
        let text = format!("wait() of {text}");
        let result = pending.wait();
        let is_ok = self.check(&text, "wait", result, &allowed)?.is_some();
        let object = &mut self.objects[number];
        object.pendings -= 1;
        if !is_ok {
            return Ok(());
        }
        for ((buf, before), &(at, _)) in bufs.iter().zip(&before).zip(ranges) {
            if let Some(wrong) = self.objects[number].never_was(buf, at, before, mark) {
                let text = format!(
                    "{text}: byte {} is {}, which it never was: {}",
                    at + wrong as u64,
                    buf[wrong],
                    compare(buf, before, at).err().unwrap_or_default()
                );
                return Err(self.failure("wait: contents", text));
            }
        }
        Ok(())
    }
}

fn reads<'b>(bufs: &'b mut [Vec<u8>], ranges: &[Range]) -> Vec<ReadAt<'b>> {
    bufs.iter_mut().zip(ranges).map(|(buf, &(offset, _))| ReadAt { buf, offset }).collect()
}
