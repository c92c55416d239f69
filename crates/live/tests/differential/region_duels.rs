//! Two to four operations on one small region at the same time, over a swap file, and over zswap: what they come to, and what the region is afterwards,
//! equals what they come to one after the other, in one of their orders.
//!
//! ```text
//!   a region of a few pages, in a group with room for some of them ─▶ each thread makes one operation ─▶ for each order: results? contents?
//!   now and then the swap file takes nothing more ─▶ its pages stay in memory, and an access may find none
//! ```
//! Reads and guards are of one page, as a write of several pages is seen page by page.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use pageout::{Error, Group, Memory, ReadAt, Region, RegionAdvice, RegionOptions};

use crate::draw::{Draw, filled};
use crate::duels::orders;
use crate::full;
use crate::memory::{BUDGET_OF_SWAP, Setup};
use crate::model::{PAGE, compare};
use crate::operations::Data;
use crate::settings;
use crate::watch::{self, Counts, Watch, Worker};

/// Threads of a duel at most.
const MOST: usize = 4;
/// Duels of one cache.
const ROUNDS: usize = 120;
/// A guard is dropped after that: no other operation of a duel may wait for it.
const HELD: Duration = Duration::from_secs(2);
/// Pages of a region at most.
const PAGES_MOST: u64 = 40;
/// Of a few: their words are in several arrays, of which some go when a region gets shorter.
const PAGES_OF_LONG: u64 = 1200;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Act {
    Write(Data),
    /// `at` is within the page.
    PageMut(u64, Data),
    SetLen(u64),
    Read(u64, usize),
    Pending(u64, usize),
    Batch(u64, usize),
    DroppedPending(u64, usize),
    Hold(u64),
    /// Advice on all of it, which changes nothing.
    PageOut,
    Cold,
    Prefetch,
    /// Bytes from a page on, up to another: the contents of the complete pages among them are discarded.
    DontNeed(u64, u64),
    /// The group's limit, in pages.
    Limit(u64),
    /// The budget, in MiB.
    Budget(u64),
}

#[derive(Clone, PartialEq, Debug)]
enum Came {
    Done,
    Bytes(Vec<u8>),
    /// A page was written to by a guard of this many bytes.
    Written(u64),
    Refused(&'static str),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Write(data) => write!(f, "write_at({data})"),
            Act::PageMut(page, data) => write!(f, "page_mut({page}), write {data} of the page"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for Came {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Came::Bytes(bytes) => {
                let zeroes = bytes.iter().filter(|&&byte| byte == 0).count();
                write!(f, "{} bytes, {zeroes} of them 0: {:?}", bytes.len(), &bytes[..bytes.len().min(8)])
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl Act {
    fn kind(&self) -> &'static str {
        match self {
            Act::Write(_) => "region write_at",
            Act::PageMut(..) => "region page_mut",
            Act::SetLen(_) => "region set_len",
            Act::Read(..) => "region read_at",
            Act::Pending(..) => "region submit, wait",
            Act::Batch(..) => "region read_batch",
            Act::DroppedPending(..) => "region submit, drop",
            Act::Hold(_) => "region page, held",
            Act::PageOut => "region PageOut",
            Act::Cold => "region Cold",
            Act::Prefetch => "region prefetch",
            Act::DontNeed(..) => "region DontNeed",
            Act::Limit(_) => "region memory.max",
            Act::Budget(_) => "region set_budget",
        }
    }

    /// Pages that it writes to or discards.
    fn changes(&self) -> std::ops::Range<u64> {
        match *self {
            Act::Write(data) => data.at / PAGE..(data.at + data.len as u64).div_ceil(PAGE),
            Act::PageMut(page, _) => page..page + 1,
            Act::DontNeed(first, end) => first..end.div_ceil(PAGE),
            Act::SetLen(bytes) => bytes / PAGE..u64::MAX,
            _ => 0..0,
        }
    }
}

fn refused(error: &Error) -> Came {
    Came::Refused(match error {
        Error::BeyondEnd { .. } => "BeyondEnd",
        Error::CutMeanwhile { .. } => "CutMeanwhile",
        Error::OutOfMemory(_) => "OutOfMemory",
        Error::Pinned { .. } => "Pinned",
        Error::SwapIo { .. } => "SwapIo",
        Error::BudgetTooSmall { .. } => "BudgetTooSmall",
        Error::Poisoned => "Poisoned",
        _ => "another error",
    })
}

fn came(result: Result<(), Error>) -> Came {
    result.map_or_else(|error| refused(&error), |()| Came::Done)
}

fn bytes(result: Result<(), Error>, buf: Vec<u8>) -> Came {
    result.map_or_else(|error| refused(&error), |()| Came::Bytes(buf))
}

/// A region as a vector of bytes.
#[derive(Clone, Default)]
struct Model {
    bytes: Vec<u8>,
    held: BTreeSet<u64>,
    /// Lengths until now: a guard is as long as its page was when it was requested.
    lens: Vec<u64>,
}

impl Model {
    fn write(&mut self, data: Data) {
        let at = data.at as usize;
        self.bytes[at..at + data.len].copy_from_slice(&filled(data.fill, data.at, data.len));
    }

    fn guards(&self, page: u64) -> Vec<u64> {
        let len = self.bytes.len() as u64;
        let lens =
            self.lens.iter().copied().chain([len]).filter(|&before| before <= len && before > page * PAGE);
        lens.map(|len| (len - page * PAGE).min(PAGE)).collect()
    }

    /// What an act may come to, if it came to this.
    fn act(&mut self, act: &Act, came: &Came) -> Vec<Came> {
        let len = self.bytes.len() as u64;
        let may = self.may(act, came);
        self.lens.push(len);
        may
    }

    fn may(&mut self, act: &Act, came: &Came) -> Vec<Came> {
        let len = self.bytes.len() as u64;
        let beyond = || vec![Came::Refused("BeyondEnd")];
        let is_short = matches!(came, Came::Refused("OutOfMemory" | "CutMeanwhile"));
        if is_short && !matches!(act, Act::SetLen(_)) {
            // It names the shortage or the race, and has changed nothing.
            return vec![came.clone()];
        }
        match *act {
            Act::Read(at, bytes) | Act::Pending(at, bytes) | Act::Batch(at, bytes)
                if at + bytes as u64 > len =>
            {
                beyond()
            }
            Act::DroppedPending(at, bytes) if at + bytes as u64 > len => beyond(),
            Act::Hold(page) | Act::PageMut(page, _) if page * PAGE >= len => beyond(),
            Act::Write(data) if data.at + data.len as u64 > len => beyond(),
            Act::DontNeed(_, end) if end > len => beyond(),
            // Of all of it: it may have become shorter since its length was looked at.
            Act::PageOut | Act::Cold | Act::Prefetch => vec![Came::Done, Came::Refused("BeyondEnd")],
            Act::Limit(_) => vec![Came::Done],
            Act::Budget(_) => vec![Came::Done, Came::Refused("BudgetTooSmall"), Came::Refused("OutOfMemory")],
            Act::Read(at, bytes) | Act::Pending(at, bytes) | Act::Batch(at, bytes) => {
                vec![Came::Bytes(self.bytes[at as usize..][..bytes].to_vec())]
            }
            Act::DroppedPending(..) => vec![Came::Done],
            Act::Hold(page) => {
                self.held.insert(page);
                let start = (page * PAGE) as usize;
                let guards = self.guards(page).into_iter();
                guards.map(|there| Came::Bytes(self.bytes[start..start + there as usize].to_vec())).collect()
            }
            // The rest of its last page can't be written.
            Act::SetLen(_) if is_short => vec![came.clone()],
            Act::Write(data) => {
                self.write(data);
                vec![Came::Done]
            }
            Act::PageMut(page, data) => {
                let guards = self.guards(page);
                let there = match came {
                    Came::Written(there) if guards.contains(there) => *there,
                    _ => (len - page * PAGE).min(PAGE),
                };
                let at = data.at.min(there);
                self.write(Data { at: page * PAGE + at, len: data.len.min((there - at) as usize), ..data });
                guards.into_iter().map(Came::Written).collect()
            }
            Act::SetLen(bytes) => {
                self.bytes.resize(bytes as usize, 0);
                vec![Came::Done]
            }
            Act::DontNeed(first, end) => {
                // The last page is complete even if the region ends within it.
                let end = if end == len { end } else { end / PAGE * PAGE };
                self.bytes[(first * PAGE).min(end) as usize..end as usize].fill(0);
                vec![Came::Done]
            }
        }
    }
}

struct Duel {
    /// Writes and lengths, one after the other.
    start: Vec<Act>,
    /// All of it is evicted first.
    is_cold: bool,
    acts: Vec<Act>,
}

impl fmt::Display for Duel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    an empty region")?;
        self.start.iter().try_for_each(|step| writeln!(f, "    {step}"))?;
        if self.is_cold {
            writeln!(f, "    advise(PageOut, all)")?;
        }
        writeln!(f, "  then at the same time:")?;
        self.acts.iter().try_for_each(|act| writeln!(f, "    {act}"))
    }
}

/// Draws duels.
struct Generator {
    draw: Draw,
    fills: u32,
}

impl Generator {
    fn data(&mut self, most: u64) -> Data {
        self.fills += 1;
        let at = self.draw.below(most);
        let at = if self.draw.once_in(3) { at / PAGE * PAGE } else { at };
        let len = match self.draw.below(4) {
            0 => self.draw.below(100) + 1,
            1 => PAGE,
            2 => self.draw.below(PAGE) + 1,
            _ => self.draw.below(3 * PAGE) + 1,
        };
        Data { at, len: len.min(most - at).max(1) as usize, fill: self.fills }
    }

    /// A range within a page.
    fn range(&mut self, most: u64) -> (u64, usize) {
        let (page, skip) = (self.draw.below(most.div_ceil(PAGE)), self.draw.below(PAGE));
        let skip = if self.draw.once_in(3) { 0 } else { skip };
        let len = if self.draw.once_in(3) { PAGE - skip } else { 1 + self.draw.below(PAGE - skip) };
        (page * PAGE + skip, len as usize)
    }

    /// `len` is the length of the region before the acts.
    fn act(&mut self, most: u64, len: u64) -> Act {
        let pages = most.div_ceil(PAGE);
        match self.draw.below(28) {
            0..=5 => Act::Write(self.data(most)),
            6..=8 => {
                let (page, data) = (self.draw.below(pages), self.data(PAGE));
                Act::PageMut(page, data)
            }
            9..=11 => Act::SetLen(self.draw.below(most)),
            12..=14 => {
                let (at, len) = self.range(most);
                Act::Read(at, len)
            }
            15..=18 => {
                let (at, len) = self.range(most);
                self.draw.pick(&[Act::Pending(at, len), Act::Batch(at, len), Act::DroppedPending(at, len)])
            }
            19..=20 => Act::Hold(self.draw.below(pages)),
            21..=23 => self.draw.pick(&[Act::PageOut, Act::PageOut, Act::Cold, Act::Prefetch]),
            24..=25 => {
                let first = self.draw.below(pages);
                // The region may be, or become, as long as that.
                let within = len.max(first * PAGE);
                let whole = PAGE * (first + 1 + self.draw.below(pages - first));
                Act::DontNeed(first, self.draw.pick(&[within, whole]))
            }
            26 => Act::Limit(64 + self.draw.below(100)),
            _ => Act::Budget((BUDGET_OF_SWAP >> 20) - self.draw.below(4)),
        }
    }

    fn next(&mut self) -> Duel {
        loop {
            let pages = self.draw.pick(&[1, 2, 3, 20, PAGES_MOST]);
            let most = PAGE * if self.draw.once_in(20) { PAGES_OF_LONG } else { pages };
            let mut start = vec![Act::SetLen(most)];
            for _ in 0..self.draw.below(5) {
                start.push(Act::Write(self.data(most)));
            }
            let len = if self.draw.once_in(4) { self.draw.below(most) } else { most };
            if len < most {
                start.push(Act::SetLen(len));
            }
            let count = self.draw.pick(&[2, 2, 3, MOST]);
            let acts: Vec<Act> = (0..count).map(|_| self.act(most, len)).collect();
            if is_fit(&acts) {
                return Duel { start, is_cold: self.draw.once_in(2), acts };
            }
        }
    }
}

/// Returns true if a duel has a model.
fn is_fit(acts: &[Act]) -> bool {
    // A thread that changes a page that another one holds waits for that one, which waits for all others.
    let held: Vec<u64> =
        acts.iter().filter_map(|act| if let Act::Hold(page) = act { Some(*page) } else { None }).collect();
    if acts.iter().any(|act| held.iter().any(|page| act.changes().contains(page))) {
        return false;
    }
    // A smaller budget may have to move the page.
    if !held.is_empty() && acts.iter().any(|act| matches!(act, Act::Budget(_))) {
        return false;
    }
    // A change of several pages is seen page by page.
    let is_of_several = |act: &Act| {
        matches!(act, Act::Write(_) | Act::DontNeed(..)) && act.changes().end - act.changes().start > 1
    };
    let others =
        |at: usize| acts.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, act)| act);
    acts.iter().enumerate().filter(|(_, act)| is_of_several(act)).all(|(at, act)| {
        let span = act.changes();
        others(at).all(|other| {
            let other = other.changes();
            other.start >= span.end || span.start >= other.end
        })
    })
}

/// What acts may have done that came to this. A write of several pages that was refused for lack of memory has written its first pages, or none.
fn effects(acts: &[Act], came: &[Came]) -> Vec<Vec<(Act, Came)>> {
    let mut all = vec![Vec::new()];
    for (act, came) in acts.iter().zip(came) {
        let mut may = vec![(*act, came.clone())];
        if let (Act::Write(data), Came::Refused("OutOfMemory")) = (act, came) {
            let pages = act.changes();
            let first = |end: u64| Data { len: (end * PAGE - data.at) as usize, ..*data };
            may.extend((pages.start + 1..pages.end).map(|end| (Act::Write(first(end)), Came::Done)));
        }
        all = all
            .iter()
            .flat_map(|before: &Vec<_>| {
                may.iter().map(|one| [&before[..], std::slice::from_ref(one)].concat())
            })
            .collect();
    }
    all
}

/// What the threads of a duel share.
struct Ring<'a> {
    memory: &'a Memory,
    group: &'a Group,
    acting: AtomicUsize,
}

impl Ring<'_> {
    fn act(&self, region: &Region, act: Act) -> Came {
        let all = || 0..region.len();
        let read = |at, len| (vec![0xa5; len], at);
        let came = match act {
            Act::Write(data) => came(region.write_at(&filled(data.fill, data.at, data.len), data.at)),
            Act::PageMut(page, data) => match region.page_mut(page) {
                Ok(mut guard) => {
                    let at = (data.at as usize).min(guard.len());
                    let len = data.len.min(guard.len() - at);
                    guard[at..at + len].copy_from_slice(&filled(data.fill, page * PAGE + at as u64, len));
                    Came::Written(guard.len() as u64)
                }
                Err(error) => refused(&error),
            },
            Act::SetLen(bytes) => came(region.set_len(bytes)),
            Act::Read(at, len) => {
                let (mut buf, at) = read(at, len);
                bytes(region.read_at(&mut buf, at), buf)
            }
            Act::Pending(offset, len) => {
                let (mut buf, offset) = read(offset, len);
                let result =
                    region.submit(vec![ReadAt { buf: &mut buf, offset }]).and_then(|pending| pending.wait());
                bytes(result, buf)
            }
            Act::Batch(offset, len) => {
                let (mut buf, offset) = read(offset, len);
                let result = region.read_batch(&mut [ReadAt { buf: &mut buf, offset }]);
                bytes(result, buf)
            }
            Act::DroppedPending(offset, len) => {
                came(region.submit(vec![ReadAt { buf: &mut vec![0; len], offset }]).map(drop))
            }
            Act::Hold(page) => return self.hold(region, page),
            Act::PageOut => came(region.advise(RegionAdvice::PageOut, all())),
            Act::Cold => came(region.advise(RegionAdvice::Cold, all())),
            Act::Prefetch => came(region.prefetch(all())),
            Act::DontNeed(first, end) => came(region.advise(RegionAdvice::DontNeed, first * PAGE..end)),
            Act::Limit(pages) => came(self.group.write("memory.max", &(pages * PAGE).to_string())),
            Act::Budget(mib) => came(self.memory.set_budget(mib << 20)),
        };
        let _ = self.acting.fetch_update(SeqCst, SeqCst, |acting| acting.checked_sub(1));
        came
    }

    fn hold(&self, region: &Region, page: u64) -> Came {
        let guard = match region.page(page) {
            Ok(guard) => guard,
            Err(error) => return refused(&error),
        };
        let (seen, until) = (guard.to_vec(), Instant::now() + HELD);
        while self.acting.load(SeqCst) > 0 && Instant::now() < until {
            std::thread::yield_now();
        }
        match (guard.to_vec() == seen, self.acting.load(SeqCst)) {
            (false, _) => Came::Refused("bytes that change below the guard"),
            (true, 0) => Came::Bytes(seen),
            (true, _) => Came::Refused("a guard for which another operation waits"),
        }
    }

    /// One duel, from its start to its comparison.
    fn duel(
        &self,
        duel: &Duel,
        draw: &mut Draw,
        workers: &[Worker],
        counts: &mut Counts,
    ) -> Result<(), String> {
        // From some slot on, the swap file takes nothing.
        let full_from = draw.once_in(4).then(|| draw.below(64) * PAGE);
        let options = RegionOptions::new().group(self.group);
        let region = self.memory.region(0, options).map_err(|error| format!("region: {error}"))?;
        let mut model = Model::default();
        for step in &duel.start {
            let came = self.act(&region, *step);
            if !model.act(step, &came).contains(&came) {
                return Err(format!("{step}, alone, comes to {came}"));
            }
        }
        model.lens.clear();
        if duel.is_cold {
            region
                .advise(RegionAdvice::PageOut, 0..region.len())
                .map_err(|error| format!("advise: {error}"))?;
        }
        self.acting.store(duel.acts.iter().filter(|act| !matches!(act, Act::Hold(_))).count(), SeqCst);
        let arrived = AtomicUsize::new(0);
        let spins: Vec<u64> = duel
            .acts
            .iter()
            .map(|_| {
                let most = draw.pick(&[50, 3000]);
                draw.below(most)
            })
            .collect();
        full::limit(full_from);
        let came: Vec<Came> = std::thread::scope(|scope| {
            let begin = |((act, worker), spins): ((&Act, &Worker), u64)| {
                let (act, region, arrived, worker) = (*act, &region, &arrived, worker.clone());
                scope.spawn(move || {
                    // All begin at the same time, or nearly so.
                    arrived.fetch_add(1, SeqCst);
                    while arrived.load(SeqCst) < duel.acts.len() {
                        std::thread::yield_now();
                    }
                    (0..spins).for_each(|_| std::hint::spin_loop());
                    worker.begins(act.to_string());
                    let came = self.act(region, act);
                    worker.ends();
                    came
                })
            };
            let threads: Vec<_> = duel.acts.iter().zip(workers).zip(spins).map(begin).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(Came::Refused("a panic"))).collect()
        });
        full::limit(None);
        if came.contains(&Came::Refused("Poisoned")) {
            return Err(format!("the cache has panicked: {}", watch::panics().join("\n    ")));
        }
        // What was refused for lack of memory may be read once the others have ended.
        let mut seen = vec![0xa5; region.len() as usize];
        region.read_at(&mut seen, 0).map_err(|error| format!("read_at of all of it afterwards: {error}"))?;
        let mut nearest: Option<(usize, String)> = None;
        let (orders, effects) = (orders(duel.acts.len()), effects(&duel.acts, &came));
        let all = effects.iter().flat_map(|effects| orders.iter().map(move |order| (effects, order)));
        let is_one = all.into_iter().any(|(effects, order)| {
            let (mut model, mut wrong) = (model.clone(), Vec::new());
            for &at in order {
                let (act, came) = &effects[at];
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
        });
        if !is_one {
            let all: Vec<String> =
                duel.acts.iter().zip(&came).map(|(act, came)| format!("    {act}: {came}")).collect();
            return Err(format!(
                "no order of the operations gives these results, and a region of {} bytes:\n{}\n  the nearest, {}",
                seen.len(),
                all.join("\n"),
                nearest.map_or_else(String::new, |(_, text)| text)
            ));
        }
        for (act, came) in duel.acts.iter().zip(&came) {
            counts.count(act.kind(), !matches!(came, Came::Refused(_)));
        }
        self.compare_swapped(&region, &seen)
    }

    /// The same bytes come back from the pool and from the swap file.
    fn compare_swapped(&self, region: &Region, seen: &[u8]) -> Result<(), String> {
        let told = |what: &'static str| move |error: Error| format!("{what} afterwards: {error}");
        region.advise(RegionAdvice::PageOut, 0..region.len()).map_err(told("advise"))?;
        let mut again = vec![0xa5; seen.len()];
        region.read_at(&mut again, 0).map_err(told("read_at"))?;
        compare(&again, seen, 0).map_err(|error| format!("after an eviction: {error}"))?;
        let longer = (seen.len() as u64).next_multiple_of(PAGE) + PAGE;
        region.set_len(longer).map_err(told("set_len"))?;
        let mut tail = vec![0xa5; (longer - seen.len() as u64) as usize];
        region.read_at(&mut tail, seen.len() as u64).map_err(told("read_at of new bytes"))?;
        compare(&tail, &vec![0; tail.len()], seen.len() as u64).map_err(|error| format!("new bytes: {error}"))
    }
}

/// Makes duels in one cache; the first that fails.
fn of_one_cache(seed: u64, setup: &Setup, until: Instant, counts: &mut Counts) -> Result<u64, String> {
    let memory = setup.build().unwrap_or_else(|error| panic!("{setup}: {error}"));
    let limits = pageout::Limits { max: Some(100 * PAGE), ..pageout::Limits::NONE };
    let group = memory.group("duel", limits).unwrap();
    let ring = Ring { memory: &memory, group: &group, acting: AtomicUsize::new(0) };
    let watch = Watch::default();
    let workers: Vec<Worker> = (0..MOST).map(|number| watch.worker(format!("thread {number}"))).collect();
    let main = watch.worker("the thread that begins duels and compares");
    let mut generator = Generator { draw: Draw::new(seed ^ 0x5eed), fills: 0 };
    let mut draw = Draw::new(seed ^ 0xd4a3);
    let is_over = AtomicBool::new(false);
    let _lifts = full::Lifts;
    std::thread::scope(|scope| {
        let (watch, over) = (&watch, &is_over);
        scope.spawn(move || watch.abort_on_hang(seed, || !over.load(SeqCst)));
        let mut duels = 0;
        let outcome = (0..ROUNDS).take_while(|_| Instant::now() < until).try_for_each(|_| {
            let duel = generator.next();
            main.begins(duel.to_string());
            let outcome = ring.duel(&duel, &mut draw, &workers, counts);
            main.ends();
            duels += 1;
            outcome.map_err(|text| format!("{duel}{text}\nsetup: {setup}\nagain: {}", settings::again(seed)))
        });
        is_over.store(true, SeqCst);
        outcome.map(|()| duels)
    })
}

/// Runs duels for a half of the time that the settings say.
pub(crate) fn run() {
    let until = Instant::now() + settings::duration() / 2;
    let mut counts = Counts::default();
    let mut duels = 0;
    for seed in settings::seeds() {
        let setup = Setup::draw_with_swap(&mut Draw::new(seed));
        match of_one_cache(seed, &setup, until, &mut counts) {
            Ok(more) => duels += more,
            Err(text) => panic!("{text}"),
        }
        if Instant::now() >= until {
            break;
        }
    }
    counts.print(&format!("operations on a region at the same time, {duels} duels"));
}

#[test]
fn region_model_refuses_what_no_order_gives() {
    let data = Data { at: 4000, len: 200, fill: 1 };
    let mut model = Model { bytes: vec![7; 8192], ..Model::default() };
    assert_eq!(model.act(&Act::Write(data), &Came::Done), [Came::Done]);
    assert_eq!(model.bytes[4000..4200], filled(1, 4000, 200)[..]);
    assert_eq!(model.act(&Act::DontNeed(1, 2 * PAGE), &Came::Done), [Came::Done]);
    assert_eq!(model.bytes[4090..4100], [&filled(1, 4090, 6)[..], &[0; 4]].concat()[..]);
    assert_eq!(model.act(&Act::DontNeed(1, 3 * PAGE), &Came::Done), [Came::Refused("BeyondEnd")]);
    assert_eq!(model.act(&Act::SetLen(4000), &Came::Done), [Came::Done]);
    assert_eq!(model.act(&Act::Write(data), &Came::Done), [Came::Refused("BeyondEnd")]);
    assert_eq!(model.act(&Act::Read(3999, 1), &Came::Done), [Came::Bytes(vec![7])]);
    let short = Came::Refused("OutOfMemory");
    assert_eq!(model.act(&Act::Read(0, 1), &short), [short]);
    assert!(!is_fit(&[Act::Hold(0), Act::SetLen(100)]), "the one waits for the other");
    assert!(is_fit(&[Act::Hold(0), Act::DontNeed(1, 2)]));
}
