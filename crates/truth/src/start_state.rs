//! A machine as a snapshot of its page allocator and LRU lists found it, just before the first access (`start_state`): a text, a line a list.
//!
//! Frames are numbered as on the recorded machine, except that fully reserved blocks of the largest order are left out. The frames beyond
//! them move down, so each block keeps its buddies.

mod parts; // what can be left out of it

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, anyhow, bail, ensure};
use pageout_engine::{
    FreeBlocks, FreeMemory, FreeOfCpu, MigrateType, Nanos, Pfn, StartFolio, StartGenerations, StartList,
    StartLruvec,
};

use super::files::read_lines;

/// Pages of a block of the largest order, by whose numbers frames are moved.
const BLOCK_PAGES: u64 = 1 << 10;
/// Types that a CPU has lists for: list `order * 3 + type`.
const TYPES_OF_CPU: [MigrateType; 3] =
    [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable];
/// Maximum number of frames in a snapshot: 256 GiB.
const FRAMES_MAX: u64 = 1 << 26;
/// Generations that a kernel keeps at most: `gen index=` is one of so many slots.
const SLOTS: u64 = 4;

/// A machine before the first access.
#[derive(Debug)]
pub(crate) struct StartState {
    /// Frames that the simulated zone has, reserved ones among them.
    pub(crate) frames: u64,
    /// The lowest mark, without a boost.
    pub(crate) min: u64,
    pub(crate) free: FreeMemory,
    /// In use by the kernel.
    pub(crate) kernel: Vec<Pfn>,
    /// Never given to the allocator.
    pub(crate) reserved: Vec<Pfn>,
    /// What is on LRU lists, and what waits in the add batches of CPUs.
    pub(crate) lists: Vec<List>,
    /// True if folios are put on these lists, or stay where their first touch brings them.
    pub(crate) is_placed: bool,
    /// Data of the lists, except their pages.
    pub(crate) lruvec: StartLruvec,
    /// When the worker runs that flushes statistics.
    pub(crate) flush_due: Option<Nanos>,
    /// Parts of the snapshot that cannot be complete.
    pub(crate) doubts: Vec<String>,
}

/// Folios that wait in one place, the oldest first.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) place: Place,
    pub(crate) folios: Vec<(StartFolio, Holds)>,
}

/// Where folios wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On the active or inactive list of their type.
    TwoLists,
    /// In the generation of a slot.
    Generation(u64),
    /// In the add batch of a CPU.
    AddBatch(u16),
}

/// What a folio holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Holds {
    Anon,
    /// A page of a file on a disk.
    File(Reached),
    /// A page of a file in memory only.
    Shmem(Reached),
}

/// How a page of a file was reached last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reached {
    /// It is mapped.
    Mapped,
    /// By read(2) or write(2).
    Read,
}

/// Lines of a snapshot, each with its number.
struct Lines<'a> {
    path: &'a Path,
    lines: Vec<(usize, &'a str)>,
}

/// A line: words, `name=value` among them, and after a colon a list.
struct Line<'a> {
    what: String,
    head: &'a str,
    fields: BTreeMap<&'a str, &'a str>,
    list: &'a str,
}

impl Line<'_> {
    fn field<T: FromStr>(&self, name: &str) -> anyhow::Result<T> {
        let text = self.fields.get(name).with_context(|| format!("{}: missing `{name}=`", self.what))?;
        text.parse().map_err(|_| anyhow!("{}: invalid number `{name}={text}`", self.what))
    }
}

impl<'a> Lines<'a> {
    /// Lines that begin with a word.
    fn of(&self, word: &'a str) -> impl Iterator<Item = Line<'a>> {
        let begins = move |line: &str| line.split([' ', ':']).next() == Some(word);
        self.lines.iter().filter(move |(_, line)| begins(line)).map(|&(number, line)| {
            let (head, list) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            Line {
                what: format!("{}:{number}", self.path.display()),
                head,
                fields: head.split(' ').filter_map(|word| word.split_once('=')).collect(),
                list,
            }
        })
    }

    fn one(&self, word: &'a str) -> anyhow::Result<Line<'a>> {
        let mut lines = self.of(word);
        let line = lines.next().with_context(|| format!("{}: missing line `{word}`", self.path.display()))?;
        match lines.next() {
            Some(second) => bail!("{}: duplicate line `{word}`", second.what),
            None => Ok(line),
        }
    }
}

/// How recorded frames are numbered here.
struct Frames {
    /// By block of the recorded machine.
    blocks: Vec<Option<u32>>,
    count: u64,
}

impl Frames {
    /// Those that some block is in use of, or free.
    fn of(pages: &[(char, u64)]) -> Frames {
        let mut blocks = Vec::new();
        let mut pfn = 0;
        for &(letter, run) in pages {
            let last = (pfn + run).div_ceil(BLOCK_PAGES) as usize;
            blocks.resize(last.max(blocks.len()), false);
            if letter != RESERVED {
                blocks[(pfn / BLOCK_PAGES) as usize..last].fill(true);
            }
            pfn += run;
        }
        let mut next = 0;
        let number = |is_used: bool| {
            is_used.then(|| {
                next += 1;
                next - 1
            })
        };
        let blocks: Vec<Option<u32>> = blocks.into_iter().map(number).collect();
        let count = blocks.iter().flatten().count() as u64 * BLOCK_PAGES;
        Frames { blocks, count }
    }

    fn get(&self, pfn: u64) -> Option<Pfn> {
        let block = (*self.blocks.get((pfn / BLOCK_PAGES) as usize)?)?;
        Some(Pfn(block * BLOCK_PAGES as u32 + (pfn % BLOCK_PAGES) as u32))
    }

    fn parse(&self, text: &str) -> anyhow::Result<Pfn> {
        let pfn = text.parse().ok().and_then(|pfn| self.get(pfn));
        pfn.with_context(|| format!("unknown frame `{text}`"))
    }
}

/// What a letter of `pages` says of frames.
const RESERVED: char = 'X';
const KERNEL: [char; 4] = ['S', 'T', 'K', 'Z'];
const ON_LISTS: [char; 3] = ['A', 'F', 'H'];
const FREE: char = '.';

impl StartState {
    pub(crate) fn read(path: &Path) -> anyhow::Result<StartState> {
        let text = read_lines(path)?;
        StartState::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> anyhow::Result<StartState> {
        let lines = Lines { path, lines: (1..).zip(text.lines()).collect() };
        ensure!(
            text.trim_end().ends_with("\nend"),
            "{}: missing last line `end`: part of the file is missing",
            path.display()
        );
        let zone = lines.one("zone")?;
        let pages = lines.one("pages")?;
        let mut runs = runs(pages.list).with_context(|| pages.what.clone())?;
        // The runs begin with the zone's first page.
        runs.insert(0, (RESERVED, zone.field("start")?));
        let frames = Frames::of(&runs);
        let boost: u64 = zone.field("boost")?;
        let managed: u64 = zone.field("managed")?;
        ensure!(
            managed <= frames.count,
            "{}: found {managed} managed frames, but `pages` has only {} frames that are not reserved",
            zone.what,
            frames.count
        );
        let free = FreeMemory {
            reserved: frames.count - managed,
            boost,
            pageblocks: pageblocks(&lines, &frames)?,
            blocks: lines
                .of("free")
                .map(|line| free_blocks(&line, &frames))
                .collect::<anyhow::Result<_>>()?,
            cpus: cpus(&lines, &frames)?,
        };
        let mut found = StartState {
            frames: frames.count,
            min: zone.field::<u64>("min")?.saturating_sub(boost),
            free,
            kernel: Vec::new(),
            reserved: Vec::new(),
            lists: lists(&lines, &frames)?,
            is_placed: true,
            lruvec: lruvec(&lines)?,
            flush_due: flush_due(&lines)?,
            doubts: Vec::new(),
        };
        let (mut pfn, mut in_use, mut free) = (0, 0, 0);
        for (letter, run) in runs {
            in_use += if ON_LISTS.contains(&letter) { run } else { 0 };
            free += if letter == FREE { run } else { 0 };
            let played = (pfn..pfn + run).filter_map(|pfn| frames.get(pfn));
            match letter {
                RESERVED => found.reserved.extend(played),
                letter if KERNEL.contains(&letter) => found.kernel.extend(played),
                _ => {}
            }
            pfn += run;
        }
        let listed = found.folios().count() as u64;
        let sums = [
            (
                in_use,
                listed,
                "anonymous pages and pages of files",
                "lists and batches",
                "the simulator counts the rest as kernel memory",
            ),
            (
                free,
                found.free_pages(),
                "free pages",
                "`free` lines",
                "the simulator counts the rest as in use",
            ),
        ];
        for (by_runs, by_lists, what, lines, so) in sums {
            if by_runs > by_lists {
                let doubt =
                    format!("has {by_runs} {what} in `pages`, but only {by_lists} in its {lines}: {so}");
                found.doubts.push(doubt);
            }
        }
        Ok(found)
    }

    /// Pages in free blocks.
    fn free_pages(&self) -> u64 {
        let pages = |blocks: &FreeBlocks| (blocks.first.len() as u64) << blocks.order.min(10);
        self.free.blocks.iter().map(pages).sum()
    }

    /// Folios on lists, and in batches.
    pub(crate) fn folios(&self) -> impl Iterator<Item = (StartFolio, Holds)> {
        self.lists.iter().flat_map(|list| list.folios.iter().copied())
    }

    /// Files are cached, so there are nodes of their indexes; but none lies among what can be freed.
    pub(crate) fn has_tiny_slabs(&self) -> bool {
        !self.free.pageblocks.contains(&MigrateType::Reclaimable)
    }

    /// The lruvec with what is on its lists.
    pub(crate) fn lruvec(&self) -> StartLruvec {
        let max_seq = self.lruvec.generations.as_ref().map_or(0, |generations| generations.max_seq);
        // The youngest generations whose slots these are.
        let seq_of = |slot: u64| max_seq - (max_seq + SLOTS - slot % SLOTS) % SLOTS;
        let seq = |place| match place {
            Place::TwoLists => Some(None),
            Place::Generation(slot) => Some(Some(seq_of(slot))),
            Place::AddBatch(_) => None,
        };
        let lists = self.lists.iter().filter_map(|list| {
            let folios = list.folios.iter().map(|&(folio, _)| folio).collect();
            Some(StartList { seq: seq(list.place)?, folios })
        });
        StartLruvec { lists: lists.collect(), ..self.lruvec.clone() }
    }
}

/// `X255 T64 S4 ...`: letters, and for how many frames each holds.
fn runs(list: &str) -> anyhow::Result<Vec<(char, u64)>> {
    let mut sum: u64 = 0;
    let mut runs = Vec::new();
    for word in list.split_whitespace() {
        let letter = word.chars().next().expect("words have letters");
        let count = &word[letter.len_utf8()..];
        let count: u64 = match count {
            "" => 1,
            count => count
                .parse()
                .map_err(|_| anyhow!("found `{word}`, expected a letter and a number of frames"))?,
        };
        sum = sum.saturating_add(count);
        ensure!(sum <= FRAMES_MAX, "found more than {FRAMES_MAX} frames");
        runs.push((letter, count));
    }
    Ok(runs)
}

fn kind_of(letter: &str) -> anyhow::Result<MigrateType> {
    Ok(match letter {
        "U" => MigrateType::Unmovable,
        "M" => MigrateType::Movable,
        "R" => MigrateType::Reclaimable,
        "H" => MigrateType::HighAtomic,
        other => bail!("found pageblock type `{other}`, expected U, M, R or H"),
    })
}

/// The types of the pageblocks that are left.
fn pageblocks(lines: &Lines, frames: &Frames) -> anyhow::Result<Vec<MigrateType>> {
    let line = lines.one("blocks")?;
    // `blocks order=9:LETTERS`, without a blank.
    let what = line.what.clone();
    let (order, letters) =
        line.fields.get("order").and_then(|text| text.split_once(':')).with_context(|| {
            format!("{what}: invalid `blocks`: expected `order=9:` and one letter per pageblock")
        })?;
    ensure!(order == "9", "{what}: found pageblocks of order {order}, expected order 9");
    let mut kinds = vec![MigrateType::Movable; (frames.count >> 9) as usize];
    for (at, letter) in letters.char_indices() {
        let kind = kind_of(&letter.to_string()).with_context(|| what.clone())?;
        if let Some(first) = frames.get((at as u64) << 9) {
            kinds[(first.0 >> 9) as usize] = kind;
        }
    }
    Ok(kinds)
}

fn frames_of(line: &Line, frames: &Frames) -> anyhow::Result<Vec<Pfn>> {
    let pfns = line.list.split_whitespace().map(|word| frames.parse(word));
    pfns.collect::<anyhow::Result<_>>().with_context(|| line.what.clone())
}

/// `free order=0 type=U: 9789 9939`.
fn free_blocks(line: &Line, frames: &Frames) -> anyhow::Result<FreeBlocks> {
    let kind: String = line.field("type")?;
    Ok(FreeBlocks {
        order: line.field("order")?,
        kind: kind_of(&kind).with_context(|| line.what.clone())?,
        first: frames_of(line, frames)?,
    })
}

/// `pcp cpu=0 high=1062 ...` and its lists, `pcplist cpu=0 index=1: 75464 75465`.
fn cpus(lines: &Lines, frames: &Frames) -> anyhow::Result<Vec<FreeOfCpu>> {
    let mut cpus: Vec<FreeOfCpu> = Vec::new();
    for line in lines.of("pcp") {
        let cpu: usize = line.field("cpu")?;
        ensure!(cpu == cpus.len(), "{}: found CPU {cpu} after CPU {}", line.what, cpus.len().max(1) - 1);
        cpus.push(FreeOfCpu {
            high: line.field("high")?,
            alloc_factor: line.field("alloc_factor")?,
            free_count: line.field("free_count")?,
            blocks: Vec::new(),
        });
    }
    for line in lines.of("pcplist") {
        let (cpu, index): (usize, usize) = (line.field("cpu")?, line.field("index")?);
        let of = cpus.get_mut(cpu).with_context(|| format!("{}: unknown CPU {cpu}", line.what))?;
        // Lists beyond those of order 3 are of huge pages, movable ones last.
        let (order, kind) = match index {
            0..12 => (index / 3, TYPES_OF_CPU[index % 3]),
            12 => (9, MigrateType::Unmovable),
            13 => (9, MigrateType::Movable),
            _ => bail!("{}: unknown list {index} of a CPU", line.what),
        };
        of.blocks.push(FreeBlocks { order: order as u8, kind, first: frames_of(&line, frames)? });
    }
    Ok(cpus)
}

/// Lists are noted from the newest folio on.
fn lists(lines: &Lines, frames: &Frames) -> anyhow::Result<Vec<List>> {
    let mut lists = Vec::new();
    for name in ["inactive_anon", "active_anon", "inactive_file", "active_file"] {
        for line in lines.of(name) {
            lists.push(List { place: Place::TwoLists, folios: folios(&line, frames)? });
        }
    }
    for line in lines.of("gen") {
        let place = Place::Generation(line.field("index")?);
        lists.push(List { place, folios: folios(&line, frames)? });
    }
    let is_of_adds = |line: &Line| line.head.split(' ').any(|word| word == "lru_add");
    for line in lines.of("batch").filter(is_of_adds) {
        let place = Place::AddBatch(line.field("cpu")?);
        lists.push(List { place, folios: folios(&line, frames)? });
    }
    Ok(lists)
}

/// `10306fM:10078472:177`: frame, type, flags, and the file that it is of.
fn folios(line: &Line, frames: &Frames) -> anyhow::Result<Vec<(StartFolio, Holds)>> {
    let folio = |word: &str| {
        let at = word.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(word.len());
        let pfn = frames.parse(&word[..at])?;
        // Only capitals before the file are flags.
        let flags = word[at..].split([':', '@']).next().unwrap_or_default();
        let has = |flag| flags.contains(flag);
        let reached = if has('M') { Reached::Mapped } else { Reached::Read };
        let holds = match flags.chars().next() {
            Some('a') => Holds::Anon,
            Some('f') => Holds::File(reached),
            Some('s') => Holds::Shmem(reached),
            _ => bail!("found folio `{word}`, expected a frame, one of `a`, `f` and `s`, and flags"),
        };
        let (is_active, is_referenced, is_workingset) = (has('A'), has('R'), has('W'));
        Ok((StartFolio { pfn, is_active, is_referenced, is_workingset }, holds))
    };
    let folios = line.list.split_whitespace().rev().map(folio);
    folios.collect::<anyhow::Result<_>>().with_context(|| line.what.clone())
}

/// `lruvec ... anon_cost=0 file_cost=0`, `lrugen ... max_seq=3 min_seq=0,0`, and `tiers type=0: 59/921/0/0 ...`.
fn lruvec(lines: &Lines) -> anyhow::Result<StartLruvec> {
    let line = lines.one("lruvec")?;
    let mut lruvec = StartLruvec {
        lists: Vec::new(),
        cost: [line.field("anon_cost")?, line.field("file_cost")?],
        nonresident_age: line.field("nonresident_age")?,
        counted: counted(&line)?,
        refaulted: [false, has_refaulted(lines, &line)?],
        generations: None,
    };
    let Some(window) = lines.of("lrugen").next() else { return Ok(lruvec) };
    if window.field::<u8>("enabled")? == 0 {
        return Ok(lruvec);
    }
    let min: String = window.field("min_seq")?;
    let min_seq = numbers(&min, ',').with_context(|| format!("{}: `min_seq={min}`", window.what))?;
    let mut generations = StartGenerations {
        max_seq: window.field("max_seq")?,
        min_seq,
        averages: Default::default(),
        present: Default::default(),
    };
    for line in lines.of("tiers") {
        let kind: usize = line.field("type")?;
        ensure!(kind < 2, "{}: unknown type {kind}", line.what);
        for (tier, text) in line.list.split_whitespace().enumerate() {
            let [back, total, refaulted, evicted] =
                numbers(text, '/').with_context(|| format!("{}: `{text}`", line.what))?;
            ensure!(tier < generations.averages[kind].len(), "{}: unknown tier {tier}", line.what);
            generations.averages[kind][tier] = (back, total);
            generations.present[kind][tier] = (refaulted, evicted);
        }
    }
    lruvec.generations = Some(generations);
    Ok(lruvec)
}

/// `lruvec ... inactive_anon=0 active_anon=521 ...`: list sizes as of the last flush of statistics, if all four are recorded.
fn counted(line: &Line) -> anyhow::Result<Option<[u64; 4]>> {
    const SIZES: [&str; 4] = ["inactive_anon", "active_anon", "inactive_file", "active_file"];
    if !SIZES.iter().all(|name| line.fields.contains_key(name)) {
        return Ok(None);
    }
    let mut counted = [0; 4];
    for (count, name) in counted.iter_mut().zip(SIZES) {
        *count = line.field(name)?;
    }
    Ok(Some(counted))
}

/// `lruvec ... refaults=0,3525` is the number of activating refaults by type at the end of the last reclaim call. `memcg ...
/// refault_file=5888/4100` is the number of refaults of file pages until now, and of their activations. Those of anonymous pages are not
/// recorded.
fn has_refaulted(lines: &Lines, line: &Line) -> anyhow::Result<bool> {
    let now = lines.of("memcg").next().filter(|memcg| memcg.fields.contains_key("refault_file"));
    let (Some(now), true) = (now, line.fields.contains_key("refaults")) else { return Ok(false) };
    let (then, count): (String, String) = (line.field("refaults")?, now.field("refault_file")?);
    let [_, then] = numbers(&then, ',').with_context(|| format!("{}: `refaults={then}`", line.what))?;
    let [_, count] = numbers(&count, '/').with_context(|| format!("{}: `refault_file={count}`", now.what))?;
    Ok(then != count)
}

/// Parses N numbers separated by a character.
fn numbers<const N: usize>(text: &str, between: char) -> anyhow::Result<[u64; N]> {
    let numbers: Option<Vec<u64>> = text.split(between).map(|number| number.parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.with_context(|| format!("expected {N} numbers separated by `{between}`"))
}

/// The worker's timer, from the snapshot on.
fn flush_due(lines: &Lines) -> anyhow::Result<Option<Nanos>> {
    let Some(flush) = lines.of("flush").next() else { return Ok(None) };
    let rig = lines.one("rig")?;
    let (now, hz): (u64, u64) = (rig.field("jiffies")?, rig.field("hz")?);
    ensure!((1..=1000).contains(&hz), "{}: found hz={hz}, expected 1 to 1000", rig.what);
    let due: u64 = flush.field("worker_expires")?;
    Ok(due.checked_sub(now).map(|ticks| Nanos(ticks.saturating_mul(1_000_000_000 / hz))))
}
