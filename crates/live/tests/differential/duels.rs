//! Two to four operations on one small file at the same time. What they come to, and what the file is afterwards, equals what they come to one after the
//! other, in one of their orders.
//!
//! ```text
//!   a file of up to a few pages ─▶ each thread makes one operation, all at the same time ─▶ for each order: results? contents? device?
//! ```
//! Reads and guards are of one page, as a write of several pages is seen page by page. A guard is held until all other operations have ended.

mod acts; // the operations, and their model

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pageout::{Advice, Error, File, Memory, Open, ReadAt};

pub(crate) use acts::orders;
use acts::{Act, Came, Duel, Generator, Model, Start, effects, is_fit};

use crate::draw::{Draw, filled};
use crate::folder::{self, Folder};
use crate::memory::Setup;
use crate::model::{PAGE, compare};
use crate::settings::{self, Avoid, avoids};
use crate::watch::{self, Counts, Watch, Worker};

/// Threads of a duel at most.
const MOST: usize = 4;
/// Duels of one cache.
const ROUNDS: usize = 120;
/// A guard is let go of after that: no other operation of a duel may wait for it.
const HELD: Duration = Duration::from_secs(2);

fn kind_of(error: &Error) -> &'static str {
    match error {
        Error::BeyondEnd { .. } => "BeyondEnd",
        Error::Forgotten { .. } => "Forgotten",
        Error::Pinned { .. } => "Pinned",
        Error::Shortened { .. } => "Shortened",
        Error::CutMeanwhile { .. } => "CutMeanwhile",
        Error::OutOfMemory(_) => "OutOfMemory",
        Error::Poisoned => "Poisoned",
        Error::Io { op: "forgetting", .. } => "Io: forgetting",
        Error::Io { .. } => "Io",
        Error::Sync { .. } => "Sync",
        Error::TooManyFiles { .. } => "TooManyFiles",
        _ => "another error",
    }
}

fn came(result: Result<(), Error>) -> Came {
    result.map_or_else(|error| Came::Refused(kind_of(&error)), |()| Came::Done)
}

fn bytes(result: Result<(), Error>, buf: Vec<u8>) -> Came {
    result.map_or_else(|error| Came::Refused(kind_of(&error)), |()| Came::Bytes(buf))
}

/// The duel under way. A thread without an act waits for the next one.
#[derive(Default)]
struct UnderWay {
    file: Option<File>,
    acts: Vec<Act>,
    /// What they came to, by thread.
    came: BTreeMap<usize, Came>,
}

/// What the threads of a duel share.
struct Ring<'a> {
    memory: &'a Memory,
    path: &'a Path,
    shared: Mutex<UnderWay>,
    begin: Barrier,
    end: Barrier,
    arrived: AtomicUsize,
    acting: AtomicUsize,
    is_over: AtomicBool,
}

impl Ring<'_> {
    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn how(&self) -> Open {
        Open::read_write().create(true).buffered(!folder::has_direct())
    }

    /// One thread's part of all duels.
    fn fight(&self, number: usize, mut draw: Draw, worker: &Worker) {
        loop {
            self.begin.wait();
            if self.is_over.load(SeqCst) {
                return;
            }
            let (file, act, count) = {
                let shared = self.under_way();
                (shared.file.clone(), shared.acts.get(number).copied(), shared.acts.len())
            };
            if let (Some(file), Some(act)) = (file, act) {
                // All begin at the same time, or nearly so.
                self.arrived.fetch_add(1, SeqCst);
                while self.arrived.load(SeqCst) < count {
                    std::thread::yield_now();
                }
                let most = draw.pick(&[50, 3000]);
                for _ in 0..draw.below(most) {
                    std::hint::spin_loop();
                }
                worker.begins(act.to_string());
                let came = self.act(file, act);
                worker.ends();
                self.under_way().came.insert(number, came);
            }
            self.end.wait();
        }
    }

    fn act(&self, file: File, act: Act) -> Came {
        let _acting = (!matches!(act, Act::Hold(_))).then(|| Acting(&self.acting));
        match act {
            Act::Write(data) => came(file.write_at(&filled(data.fill, data.at, data.len), data.at)),
            Act::PageMut(page, data) => match file.page_mut(page) {
                Ok(mut guard) => {
                    let at = (data.at as usize).min(guard.len());
                    let len = data.len.min(guard.len() - at);
                    guard[at..at + len].copy_from_slice(&filled(data.fill, page * PAGE + at as u64, len));
                    Came::Written(guard.len() as u64)
                }
                Err(error) => Came::Refused(kind_of(&error)),
            },
            Act::SetLen(bytes) => came(file.set_len(bytes)),
            Act::Read(at, len) => {
                let mut buf = vec![0xa5; len];
                bytes(file.read_at(&mut buf, at), buf)
            }
            Act::Pending(offset, len) => {
                let mut buf = vec![0xa5; len];
                let result =
                    file.submit(vec![ReadAt { buf: &mut buf, offset }]).and_then(|pending| pending.wait());
                bytes(result, buf)
            }
            Act::DroppedPending(offset, len) => {
                came(file.submit(vec![ReadAt { buf: &mut vec![0; len], offset }]).map(drop))
            }
            Act::Hold(page) => match file.page(page) {
                Ok(guard) => {
                    let seen = guard.to_vec();
                    let until = Instant::now() + HELD;
                    while self.acting.load(SeqCst) > 0 && Instant::now() < until {
                        std::thread::yield_now();
                    }
                    if guard.to_vec() != seen {
                        return Came::Refused("bytes that change below the guard");
                    }
                    if self.acting.load(SeqCst) > 0 {
                        return Came::Refused("a guard for which another operation waits");
                    }
                    Came::Bytes(seen)
                }
                Err(error) => Came::Refused(kind_of(&error)),
            },
            Act::Sync => came(file.sync_data()),
            Act::Forget => match file.forget() {
                // All is done by then.
                Err(Error::Io { op: "forgetting", .. }) if avoids(Avoid::ForgetOpen) => Came::Done,
                result => came(result),
            },
            Act::Reload => came(file.reload()),
            Act::Open => match folder::open(self.memory, self.path, self.how()) {
                Ok(other) => {
                    drop(other);
                    Came::Done
                }
                Err(error) => Came::Refused(kind_of(&error)),
            },
            Act::DontNeed => came(file.advise(Advice::DontNeed, 0..file.len())),
            Act::Prefetch => came(file.prefetch(0..file.len())),
            Act::DropCaches => came(self.memory.write("/proc/sys/vm/drop_caches", "1")),
        }
    }

    /// One duel, from its start to its comparison.
    fn duel(&self, duel: &Duel, counts: &mut Counts) -> Result<(), String> {
        let file = folder::open(self.memory, self.path, self.how().stable_writes(duel.start.is_stable));
        let file = file.map_err(|error| format!("open: {error}"))?;
        let told = |what: &'static str| move |error: Error| format!("{what}, with nobody else: {error}");
        file.set_len(0).map_err(told("set_len(0)"))?;
        let mut model = Model::default();
        for step in &duel.start.steps {
            let came = self.act(file.clone(), *step);
            if !model.act(step, &came).contains(&came) {
                return Err(format!("{step}, with nobody else, is {came}"));
            }
        }
        model.lens.clear();
        if duel.start.is_synced {
            file.sync_data().map_err(told("sync_data"))?;
        }
        if duel.start.is_cold {
            file.advise(Advice::DontNeed, 0..file.len()).map_err(told("advise"))?;
        }
        self.arrived.store(0, SeqCst);
        self.acting.store(duel.acts.iter().filter(|act| !matches!(act, Act::Hold(_))).count(), SeqCst);
        let (mine, acts) = (Some(file.clone()), duel.acts.clone());
        *self.under_way() = UnderWay { file: mine, acts, came: BTreeMap::new() };
        self.begin.wait();
        self.end.wait();
        let came: Vec<Came> = std::mem::take(&mut *self.under_way()).came.into_values().collect();
        drop(file);
        if came.contains(&Came::Refused("Poisoned")) {
            return Err(format!("the cache has panicked: {}", watch::panics().join("\n    ")));
        }
        let file =
            folder::open(self.memory, self.path, self.how()).map_err(|error| format!("open: {error}"))?;
        let mut seen = vec![0xa5; file.len() as usize];
        file.read_at(&mut seen, 0).map_err(|error| format!("read_at of all of it afterwards: {error}"))?;
        let mut nearest: Option<(usize, String)> = None;
        let (orders, effects) = (orders(duel.acts.len()), effects(&duel.acts, &came));
        let is_one = effects.iter().flat_map(|acts| orders.iter().map(move |order| (acts, order))).any(
            |(acts, order)| {
                let mut model = model.clone();
                let mut wrong = Vec::new();
                for &at in order {
                    let (act, came) = &acts[at];
                    let may = model.act(act, came);
                    if !may.contains(came) {
                        wrong.push(format!("{act} comes to {}", may[0]));
                    }
                }
                let contents = compare(&seen, &model.bytes, 0);
                wrong.extend(contents.err().map(|error| format!("the contents differ: {error}")));
                if nearest.as_ref().is_none_or(|(count, _)| wrong.len() < *count) {
                    nearest = Some((wrong.len(), format!("in the order {order:?}: {}", wrong.join("; "))));
                }
                wrong.is_empty()
            },
        );
        if !is_one {
            let all: Vec<String> =
                duel.acts.iter().zip(&came).map(|(act, came)| format!("    {act}: {came}")).collect();
            return Err(format!(
                "no order of the operations gives these results, and a file of {} bytes:\n{}\n  the nearest, {}",
                seen.len(),
                all.join("\n"),
                nearest.map_or_else(String::new, |(_, text)| text)
            ));
        }
        for (act, came) in duel.acts.iter().zip(&came) {
            counts.count(act.kind(), !matches!(came, Came::Refused(_)));
        }
        self.compare_device(&file, &seen)
    }

    /// The same bytes are on the device, and come back from there.
    fn compare_device(&self, file: &File, seen: &[u8]) -> Result<(), String> {
        file.sync_data().map_err(|error| format!("sync_data afterwards: {error}"))?;
        let outside = std::fs::File::open(self.path).unwrap();
        let mut device = vec![0; outside.metadata().unwrap().len() as usize];
        outside.read_exact_at(&mut device, 0).unwrap();
        compare(&device, seen, 0).map_err(|error| format!("the file on its device after a sync: {error}"))?;
        file.reload().map_err(|error| format!("reload afterwards: {error}"))?;
        let mut again = vec![0xa5; file.len() as usize];
        file.read_at(&mut again, 0).map_err(|error| format!("read_at after a reload: {error}"))?;
        compare(&again, seen, 0).map_err(|error| format!("after a reload: {error}"))?;
        // What is behind the end is zeroes.
        let longer = (seen.len() as u64).next_multiple_of(PAGE) + PAGE;
        file.set_len(longer).map_err(|error| format!("set_len afterwards: {error}"))?;
        let mut tail = vec![0xa5; (longer - seen.len() as u64) as usize];
        file.read_at(&mut tail, seen.len() as u64)
            .map_err(|error| format!("read_at behind the end: {error}"))?;
        let zeroes = vec![0; tail.len()];
        compare(&tail, &zeroes, seen.len() as u64).map_err(|error| format!("behind the old end: {error}"))
    }
}

/// One act less is under way, however it ends.
struct Acting<'a>(&'a AtomicUsize);

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        // None was counted where nobody else acts.
        let _ = self.0.fetch_update(SeqCst, SeqCst, |acting| acting.checked_sub(1));
    }
}

/// Makes duels in one cache; the first that fails.
fn of_one_cache(
    seed: u64,
    setup: &Setup,
    mut next: impl FnMut() -> Option<Duel>,
    counts: &mut Counts,
) -> Result<(), (Duel, String)> {
    let folder = Folder::new();
    let path = folder.path("file");
    let memory = setup.build().unwrap_or_else(|error| panic!("{setup}: {error}"));
    let ring = Ring {
        memory: &memory,
        path: &path,
        shared: Mutex::default(),
        begin: Barrier::new(MOST + 1),
        end: Barrier::new(MOST + 1),
        arrived: AtomicUsize::new(0),
        acting: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let watch = Watch::default();
    let workers: Vec<Worker> = (0..MOST).map(|number| watch.worker(format!("thread {number}"))).collect();
    let main = watch.worker("the thread that begins duels and compares");
    std::thread::scope(|scope| {
        for (number, worker) in workers.iter().enumerate() {
            let ring = &ring;
            let draw = Draw::new(seed ^ (number as u64) << 32);
            scope.spawn(move || ring.fight(number, draw, worker));
        }
        let (watch, ring) = (&watch, &ring);
        scope.spawn(move || watch.abort_on_hang(seed, || !ring.is_over.load(SeqCst)));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let Some(duel) = next() else { return Ok(()) };
                main.begins(duel.to_string());
                let outcome = ring.duel(&duel, counts);
                main.ends();
                outcome.map_err(|text| (duel, text))?;
            }
        }));
        ring.is_over.store(true, SeqCst);
        ring.begin.wait();
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs duels for a half of the time that the settings say.
pub(crate) fn run() {
    let until = Instant::now() + settings::duration() / 2;
    let mut counts = Counts::default();
    let mut duels = 0;
    for seed in settings::seeds() {
        let mut draw = Draw::new(seed);
        let setup = Setup::draw(&mut draw);
        let mut generator = Generator { draw, fills: 0 };
        let mut left = ROUNDS;
        let next = || {
            left = left.checked_sub(1)?;
            duels += 1;
            (Instant::now() < until).then(|| generator.next())
        };
        if let Err((duel, text)) = of_one_cache(seed, &setup, next, &mut counts) {
            fail(seed, setup, duel, text);
        }
        if Instant::now() >= until {
            break;
        }
    }
    counts.print(&format!("at the same time, {duels} duels"));
}

/// How often a duel is tried again in search of the same failure.
const TRIES: usize = 3000;

fn fail(seed: u64, mut setup: Setup, mut duel: Duel, mut text: String) -> ! {
    let again = settings::again(seed);
    eprintln!("seed {seed}, setup: {setup}\n{duel}{text}\nagain: {again}\nit is being shrunken");
    let until = Instant::now() + Duration::from_secs(60);
    // The same failure, and not any.
    let class_of = |text: &str| text.split([':', ',']).next().unwrap_or_default().to_owned();
    let class = class_of(&text);
    let fails = |setup: &Setup, duel: &Duel| {
        let mut left = TRIES;
        let span = (Instant::now() + Duration::from_secs(4)).min(until);
        let next = || {
            left = left.checked_sub(1)?;
            (Instant::now() < span).then(|| duel.clone())
        };
        let failure = of_one_cache(seed, setup, next, &mut Counts::default()).err();
        failure.map(|(_, text)| text).filter(|text| class_of(text) == class)
    };
    loop {
        let mut others: Vec<(Setup, Duel)> = Vec::new();
        for at in 0..duel.acts.len() {
            let mut fewer = duel.clone();
            fewer.acts.remove(at);
            if is_fit(&fewer.start, &fewer.acts) && !fewer.acts.is_empty() {
                others.push((setup.clone(), fewer));
            }
        }
        for at in 0..duel.start.steps.len() {
            let mut fewer = duel.clone();
            fewer.start.steps.remove(at);
            others.push((setup.clone(), fewer));
        }
        for start in [
            Start { is_stable: false, ..duel.start.clone() },
            Start { is_cold: false, ..duel.start.clone() },
            Start { is_synced: false, ..duel.start.clone() },
        ] {
            let is_other = (start.is_stable, start.is_cold, start.is_synced)
                != (duel.start.is_stable, duel.start.is_cold, duel.start.is_synced);
            if is_other && is_fit(&start, &duel.acts) {
                others.push((setup.clone(), Duel { start, ..duel.clone() }));
            }
        }
        others.extend(setup.simpler().into_iter().map(|simpler| (simpler, duel.clone())));
        let found =
            others.into_iter().find_map(|(setup, duel)| fails(&setup, &duel).map(|text| (setup, duel, text)));
        match found {
            Some(found) if Instant::now() < until => (setup, duel, text) = found,
            _ => break,
        }
    }
    panic!("operations at the same time: {text}\nsetup: {setup}\n{duel}again: {again}");
}
