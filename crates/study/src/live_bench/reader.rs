//! A process that reads: it gets its task and commands on standard input, and answers in lines of JSON.
//!
//! ```text
//!   in    a task ─ lists of pages ─ "warm" ─ "round 1" ─ "round 2" ... ─ "time 6" ─ end of input
//!   out   ready    warm             figures of each                      latencies
//! ```

use std::hint::black_box;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use pageout_engine::Nanos;
use pageout_sim::latency::LatencyHistogram;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::baselines::Open;
use super::subject::{PAGE, mark};
use super::ways::{Brought, Mmap, Ours, Plain, Pread, Uring, Way};
use super::{OURS, Round};
use crate::told;
use crate::watch::Watcher;

/// What a process that reads has to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// Which way.
    pub(super) way: String,
    pub(super) path: PathBuf,
    /// Of the file.
    pub(super) pages: u64,
    pub(super) budget: u64,
    pub(super) policy: String,
    pub(super) is_random: bool,
    pub(super) is_buffered: bool,
    pub(super) is_cold: bool,
    pub(super) is_in_place: bool,
    /// True if each page says which one it is.
    pub(super) is_made: bool,
    /// Pages a call.
    pub(super) batch: usize,
    pub(super) threads: usize,
}

/// Does what `input` says, to its end, and answers to `output`. Errors: an answer can't be written.
pub fn serve(
    input: &mut impl BufRead,
    output: &mut impl Write,
    baselines: &[(&str, Open)],
) -> io::Result<()> {
    match obey(input, output, baselines) {
        Err(error) => say(output, &json!({ "error": told(&error) })),
        Ok(()) => Ok(()),
    }
}

fn say(output: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(output, "{value}")?;
    output.flush()
}

fn obey(input: &mut impl BufRead, output: &mut impl Write, baselines: &[(&str, Open)]) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let task: Task = serde_json::from_str(&line)
        .map_err(|error| io::Error::other(format!("only `pageout bench` starts this process: {error}")))?;
    let lists = lists(input)?;
    let bytes = std::fs::metadata(&task.path)?.len();
    if bytes < task.pages * PAGE as u64 {
        return Err(io::Error::other("the file became shorter before the first read"));
    }
    let mut here = Following { input, output, lists: &lists, task: &task, before: anonymous() };
    match task.way.as_str() {
        OURS => here.follow(Ours::new(task.clone())?),
        "buffered" => here.follow(Pread::buffered(&task.path, task.is_random)?),
        "mmap" => here.follow(Mmap::new(&task.path, task.is_random)?),
        "direct" => here.follow(Pread::direct(&task.path)?),
        "io_uring" => here.follow(Uring::new(&task.path)?),
        "memcpy" => here.follow(Plain::new(&task)?),
        _ => here.follow(Brought::new(task.clone(), baselines)?),
    }
}

/// Lists of pages: how many, and each with its length in front.
fn lists(input: &mut impl Read) -> io::Result<Vec<Vec<u32>>> {
    let mut number = || -> io::Result<u32> {
        let mut bytes = [0; 4];
        input.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    };
    let count = number()?;
    (0..count).map(|_| (0..number()?).map(|_| number()).collect()).collect()
}

/// The same, written. Not to the end where a signal asks to end before.
pub(super) fn write_lists(lists: &[Vec<u32>], to: &mut impl Write, watcher: &dyn Watcher) -> io::Result<()> {
    to.write_all(&(lists.len() as u32).to_le_bytes())?;
    for list in lists {
        to.write_all(&(list.len() as u32).to_le_bytes())?;
        for some in list.chunks(1 << 16) {
            some.iter().try_for_each(|page| to.write_all(&page.to_le_bytes()))?;
            if watcher.stop().is_some() {
                return Ok(());
            }
        }
    }
    to.flush()
}

/// One that reads, and who says what.
struct Following<'a, I, O> {
    input: &'a mut I,
    output: &'a mut O,
    lists: &'a [Vec<u32>],
    task: &'a Task,
    /// Anonymous memory that it had before it began.
    before: u64,
}

impl<I: BufRead, O: Write> Following<'_, I, O> {
    fn follow(&mut self, mut way: impl Way) -> io::Result<()> {
        let Following { input, output, lists, task, before } = self;
        say(*output, &json!({ "ready": true }))?;
        for command in input.lines() {
            let command = command?;
            let (what, number) = command.split_once(' ').unwrap_or((&command, "0"));
            let of_round: usize =
                number.parse().map_err(|error| io::Error::other(format!("invalid round number: {error}")))?;
            let lists = &lists[of_round * task.threads..][..task.threads];
            if task.is_cold {
                way.forget()?;
            }
            let answer = match what {
                "warm" if task.is_cold => json!({}),
                "warm" => {
                    warm(&way, lists, task)?;
                    json!({})
                }
                "round" => serde_json::to_value(round(&way, lists, task)?)?,
                "time" => timed(&way, lists, task)?,
                other => return Err(io::Error::other(format!("unknown request `{other}`"))),
            };
            let taken = anonymous().saturating_sub(*before);
            say(*output, &json!({ "answer": answer, "taken_bytes": taken, "own": way.figures() }))?;
        }
        Ok(())
    }
}

/// Reads the pages that will stay: the complete file if it fits, otherwise the pages that are read anyway.
fn warm(way: &impl Way, lists: &[Vec<u32>], task: &Task) -> io::Result<()> {
    if task.pages * PAGE as u64 <= task.budget {
        let all: Vec<u32> = (0..task.pages as u32).collect();
        // A page that is read twice is kept.
        for _ in 0..2 {
            read::<false>(way, &all, task, &mut Spans::default())?;
        }
    }
    each::<false>(way, lists, task).map(drop)
}

/// How long reads took.
struct Spans {
    histogram: LatencyHistogram,
    /// By the power of two that is the greatest below.
    powers: [u64; 64],
}

impl Default for Spans {
    fn default() -> Spans {
        Spans { histogram: LatencyHistogram::default(), powers: [0; 64] }
    }
}

impl Spans {
    fn add(&mut self, span: u64) {
        self.histogram.record(Nanos(span));
        self.powers[span.max(1).ilog2() as usize] += 1;
    }
}

/// A round of which the figures count.
fn round(way: &impl Way, lists: &[Vec<u32>], task: &Task) -> io::Result<Round> {
    let (device, cpu, began) = (device_bytes(), cpu_ns(), Instant::now());
    each::<false>(way, lists, task)?;
    let (wall_ns, cpu_ns) = (began.elapsed().as_nanos() as u64, cpu_ns() - cpu);
    let device_bytes = device_bytes().zip(device).map(|(after, before)| after - before);
    let reads = lists.iter().map(|list| list.len() as u64).sum();
    Ok(Round { reads, wall_ns, cpu_ns, device_bytes })
}

/// A round in which each call is timed.
fn timed(way: &impl Way, lists: &[Vec<u32>], task: &Task) -> io::Result<Value> {
    let mut all = Spans::default();
    for spans in each::<true>(way, lists, task)? {
        all.histogram += &spans.histogram;
        all.powers.iter_mut().zip(spans.powers).for_each(|(all, one)| *all += one);
    }
    let of = |share| all.histogram.quantile(share).0;
    let powers = all.powers.iter().enumerate().filter(|(_, count)| **count > 0);
    Ok(json!({
        "calls": all.histogram.count(),
        "p50_ns": of(0.5),
        "p90_ns": of(0.9),
        "p99_ns": of(0.99),
        "p999_ns": of(0.999),
        "max_ns": all.histogram.summary().max.0,
        "histogram": powers.map(|(power, count)| json!({ "from_ns": 1_u64 << power, "calls": count })).collect::<Vec<_>>(),
    }))
}

/// Has each thread read its list.
fn each<const IS_TIMED: bool>(way: &impl Way, lists: &[Vec<u32>], task: &Task) -> io::Result<Vec<Spans>> {
    let one = |list: &Vec<u32>| {
        let mut spans = Spans::default();
        read::<IS_TIMED>(way, list, task, &mut spans).map(|()| spans)
    };
    if let [list] = lists {
        return Ok(vec![one(list)?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = lists.iter().map(|list| scope.spawn(|| one(list))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a panic ends the program")).collect()
    })
}

/// Reads a list of pages.
fn read<const IS_TIMED: bool>(
    way: &impl Way,
    list: &[u32],
    task: &Task,
    spans: &mut Spans,
) -> io::Result<()> {
    // One that begins at a page, as direct I/O asks for, for all of them.
    let mut room = vec![0_u8; (task.batch + 1) * PAGE];
    let aligned = room.as_ptr().align_offset(PAGE);
    let to = &mut room[aligned..][..task.batch * PAGE];
    for pages in list.chunks(task.batch) {
        let began = IS_TIMED.then(Instant::now);
        match pages {
            [page] if task.is_in_place => {
                let byte = black_box(way.byte((*page).into())?);
                as_made(*page, !task.is_made || byte == mark((*page).into())[0])?;
            }
            [page] => way.copy((*page).into(), to)?,
            pages => way.copy_all(pages, &mut to[..pages.len() * PAGE])?,
        }
        if let Some(began) = began {
            spans.add(began.elapsed().as_nanos() as u64);
        }
        if task.is_made && !task.is_in_place {
            for (&page, bytes) in pages.iter().zip(to.chunks_exact(PAGE)) {
                as_made(page, bytes[..8] == mark(page.into()))?;
            }
        }
        black_box(&mut *to);
    }
    Ok(())
}

/// Errors: a page is not the one that was asked for.
#[inline]
fn as_made(page: u32, is_it: bool) -> io::Result<()> {
    if is_it { Ok(()) } else { Err(io::Error::other(format!("wrong content in page {page}"))) }
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Bytes that this process has read from devices.
fn device_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

/// Anonymous memory of this process, in bytes: what it has of files, its own code among them, is not counted.
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
