//! Operations as data: how they are drawn, how they read as a program, and how one becomes simpler.
//!
//! Every operation means something in every state, so that any of them can be left out: one on a handle that is not open does nothing. A guard or a pending
//! read is a scope, from its operation to its [`Op::End`].

use std::fmt;

use pageout::{Advice, RegionAdvice};

use crate::draw::Draw;
use crate::model::PAGE;

/// Handles that may be open at once.
pub(crate) const SLOTS: usize = 6;
/// Paths of a run.
pub(crate) const PATHS: usize = 3;
/// Regions that may be there at once.
pub(crate) const REGIONS: usize = 2;
/// No region gets longer.
const REGION_LONGEST: u64 = 500 * PAGE;
/// No file gets longer by an operation that the model expects to succeed.
pub(crate) const LONGEST: u64 = 8 << 20;

/// Bytes that a file of a cache can have.
pub(crate) const BYTES_MAX: u64 = PAGE << 30;

/// Bytes of a write that may wait for each of its pages.
const SLOWLY: usize = 8 * PAGE as usize;

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct How {
    pub(crate) writes: bool,
    pub(crate) creates: bool,
    pub(crate) random: bool,
    pub(crate) buffered: bool,
    pub(crate) stable: bool,
    pub(crate) group: Option<usize>,
}

/// A read: from an offset on, and how many bytes.
pub(crate) type Range = (u64, usize);

/// What is written: from an offset on, how many bytes, and which ([`crate::draw::fill`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Data {
    pub(crate) at: u64,
    pub(crate) len: usize,
    pub(crate) fill: u32,
}

/// An operation on a region.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RegionAct {
    /// Takes the place of the region that was there.
    Make {
        bytes: u64,
        group: Option<usize>,
    },
    Drop,
    Read(Range),
    Batch(Vec<Range>),
    Page {
        page: u64,
    },
    Write(Data),
    /// `data.at` is within the page.
    PageMut {
        page: u64,
        data: Data,
    },
    SetLen {
        bytes: u64,
    },
    Advise {
        advice: RegionAdvice,
        start: u64,
        end: u64,
    },
    Prefetch {
        start: u64,
        end: u64,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Op {
    /// In caches with swap.
    Region {
        number: usize,
        act: RegionAct,
    },
    Open {
        slot: usize,
        path: usize,
        how: How,
    },
    Clone {
        slot: usize,
        of: usize,
    },
    Drop {
        slot: usize,
    },
    Read {
        slot: usize,
        range: Range,
    },
    Page {
        slot: usize,
        page: u64,
    },
    WithPage {
        slot: usize,
        page: u64,
    },
    Batch {
        slot: usize,
        ranges: Vec<Range>,
    },
    Write {
        slot: usize,
        data: Data,
    },
    /// `data.at` is within the page.
    PageMut {
        slot: usize,
        page: u64,
        data: Data,
        tries: bool,
    },
    SetLen {
        slot: usize,
        bytes: u64,
    },
    Sync {
        slot: usize,
        all: bool,
    },
    Acknowledge {
        slot: usize,
    },
    Reload {
        slot: usize,
    },
    /// Where it discards, what is not written is lost.
    Forget {
        slot: usize,
        discards: bool,
    },
    Advise {
        slot: usize,
        advice: Advice,
        start: u64,
        end: u64,
    },
    Prefetch {
        slot: usize,
        start: u64,
        end: u64,
    },
    /// Writes a kernel file, of a group or of all.
    Kernel {
        group: Option<usize>,
        file: &'static str,
        value: String,
    },
    /// Writes the file past the cache and sets its length, between a sync and a reload.
    Outside {
        slot: usize,
        data: Data,
        bytes: u64,
    },
    /// Puts another file at the path, past the cache.
    Replace {
        path: usize,
        data: Data,
    },
    /// Devices take nothing from this byte of any file on, or they do again.
    Full {
        bytes: Option<u64>,
    },
    /// Each file that may have something that was not written is acknowledged and synced.
    Heal,
    /// The cache goes, and another one comes.
    Rebuild,
    /// Nothing for some milliseconds, in which the cache's threads act.
    Rest {
        ms: u64,
    },
    /// Guards on so many pages, until [`Op::End`].
    Hold {
        slot: usize,
        page: u64,
        count: u64,
    },
    /// A guard to write, until [`Op::End`].
    HoldMut {
        slot: usize,
        page: u64,
        fill: u32,
    },
    /// Writes through the guard of this scope.
    Scribble {
        fill: u32,
    },
    /// Reads in flight, until [`Op::End`].
    Submit {
        slot: usize,
        ranges: Vec<Range>,
    },
    /// Looks whether the reads of this scope are ready.
    Poll,
    /// Ends the last scope: its reads are waited for, or dropped.
    End {
        drops: bool,
    },
}

impl Op {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Op::Region { act, .. } => match act {
                RegionAct::Make { .. } => "region",
                RegionAct::Drop => "region: drop",
                RegionAct::Read(_) => "region: read_at",
                RegionAct::Batch(_) => "region: read_batch",
                RegionAct::Page { .. } => "region: page",
                RegionAct::Write(_) => "region: write_at",
                RegionAct::PageMut { .. } => "region: page_mut",
                RegionAct::SetLen { .. } => "region: set_len",
                RegionAct::Advise { .. } => "region: advise",
                RegionAct::Prefetch { .. } => "region: prefetch",
            },
            Op::Open { .. } => "open",
            Op::Clone { .. } => "clone",
            Op::Drop { .. } => "drop",
            Op::Read { .. } => "read_at",
            Op::Page { .. } => "page",
            Op::WithPage { .. } => "with_page",
            Op::Batch { .. } => "read_batch",
            Op::Write { .. } => "write_at",
            Op::PageMut { tries: false, .. } => "page_mut",
            Op::PageMut { tries: true, .. } => "try_page_mut",
            Op::SetLen { .. } => "set_len",
            Op::Sync { all: false, .. } => "sync_data",
            Op::Sync { all: true, .. } => "sync_all",
            Op::Acknowledge { .. } => "acknowledge",
            Op::Reload { .. } => "reload",
            Op::Forget { discards: false, .. } => "forget",
            Op::Forget { discards: true, .. } => "forget_and_discard",
            Op::Advise { .. } => "advise",
            Op::Prefetch { .. } => "prefetch",
            Op::Kernel { .. } => "kernel file",
            Op::Outside { .. } => "written by another",
            Op::Replace { .. } => "replaced by another",
            Op::Full { bytes: Some(_) } => "device is full",
            Op::Full { bytes: None } => "device has space",
            Op::Heal => "acknowledge, sync",
            Op::Rebuild => "rebuild",
            Op::Rest { .. } => "rest",
            Op::Hold { .. } => "page, held",
            Op::HoldMut { .. } => "page_mut, held",
            Op::Scribble { .. } => "write through a guard",
            Op::Submit { .. } => "submit",
            Op::Poll => "is_ready",
            Op::End { drops: false } => "wait, or drop a guard",
            Op::End { drops: true } => "drop",
        }
    }

    /// Returns true if a scope begins with it.
    pub(crate) fn begins(&self) -> bool {
        matches!(self, Op::Hold { .. } | Op::HoldMut { .. } | Op::Submit { .. })
    }
}

/// What the generator has to know of the run.
pub(crate) trait Known {
    /// Bytes of the file of a slot; none where it is empty.
    fn bytes(&self, slot: usize) -> Option<u64>;
    /// Bytes of a region; none where there is none.
    fn region_bytes(&self, number: usize) -> Option<u64>;
    /// Returns true if the cache has swap, and may have regions.
    fn has_swap(&self) -> bool;
    fn groups(&self) -> usize;
    fn depth(&self) -> usize;
    /// Returns true if no write may leave a hole behind the end.
    fn avoids_holes(&self) -> bool;
    fn is_full(&self) -> bool;
    /// Returns true if a device was full, and something may not have been written since.
    fn may_fail(&self) -> bool;
    /// Returns true if a write is to have few pages, as it may wait for each.
    fn has_slow_writes(&self) -> bool;
}

/// Draws operations.
pub(crate) struct Generator {
    draw: Draw,
    fills: u32,
    /// Files are mostly shorter than this.
    typical: u64,
}

impl Generator {
    pub(crate) fn new(mut draw: Draw) -> Generator {
        let typical = draw.pick(&[6000, 40_000, 300_000, 300_000, 2 << 20, 6 << 20]);
        Generator { draw, fills: 0, typical }
    }

    /// A slot, mostly one that is open.
    fn slot(&mut self, known: &impl Known) -> usize {
        let slot = self.draw.below(SLOTS as u64) as usize;
        if self.draw.once_in(16) {
            return slot;
        }
        (0..SLOTS).map(|more| (slot + more) % SLOTS).find(|&slot| known.bytes(slot).is_some()).unwrap_or(slot)
    }

    /// An offset of a file that has so many bytes.
    fn offset(&mut self, bytes: u64) -> u64 {
        let draw = &mut self.draw;
        let at = match draw.below(20) {
            0 => 0,
            1..=9 => draw.below(bytes + 1),
            10..=13 => draw.below(bytes + 1) / PAGE * PAGE,
            14 => draw.below(bytes + 1) / PAGE * PAGE + PAGE - 1,
            15..=17 => (bytes + draw.below(200)).saturating_sub(100),
            18 => bytes / PAGE * PAGE + draw.below(3 * PAGE),
            _ => bytes,
        };
        if draw.once_in(400) { self.far() } else { at }
    }

    /// An offset that no file reaches: near one at which an addition or a comparison may go wrong.
    fn far(&mut self) -> u64 {
        let near = self.draw.pick(&[u64::MAX, u64::MAX, u64::MAX, i64::MAX as u64, 1 << 62, BYTES_MAX]);
        near - self.draw.below(9000)
    }

    fn len(&mut self) -> usize {
        let draw = &mut self.draw;
        let page = PAGE as usize;
        let below = |draw: &mut Draw, most: usize| draw.below(most as u64) as usize;
        match draw.below(24) {
            0 => 0,
            1 => 1,
            2..=8 => below(draw, 200),
            9..=14 => below(draw, page + 1),
            15..=17 => page,
            18..=20 => below(draw, 4 * page),
            21 => page * (1 + below(draw, 16)),
            22 => below(draw, 32 * page),
            _ => below(draw, 100 * page),
        }
    }

    fn range(&mut self, bytes: u64) -> Range {
        let at = self.offset(bytes);
        let len = self.len();
        // Mostly one that is there.
        let most = bytes.saturating_sub(at).min(1 << 24) as usize;
        (at, if self.draw.once_in(12) { len } else { len.min(most) })
    }

    fn ranges(&mut self, bytes: u64) -> Vec<Range> {
        let count = self.draw.pick(&[1, 1, 2, 3, 8, 40, 70]);
        // Few of many reads are behind the end: else nearly all batches would be refused.
        let strict = !self.draw.once_in(10);
        let all = (0..count).map(|_| {
            let (at, len) = self.range(bytes);
            if !strict {
                return (at, len);
            }
            let at = at.min(bytes);
            (at, len.min((bytes - at) as usize).min(20_000))
        });
        all.collect()
    }

    fn page(&mut self, bytes: u64) -> u64 {
        let pages = bytes.div_ceil(PAGE);
        match self.draw.below(40) {
            0 => pages + self.draw.below(3),
            1 if self.draw.once_in(8) => u64::MAX / self.draw.pick(&[1, PAGE, PAGE / 2]) - self.draw.below(3),
            2..=6 => pages.saturating_sub(1),
            _ => self.draw.below(pages.max(1)),
        }
    }

    fn data(&mut self, at: u64, len: usize) -> Data {
        self.fills += 1;
        Data { at, len, fill: self.fills }
    }

    fn write(&mut self, bytes: u64) -> Data {
        let at = self.offset(bytes);
        let at = match self.draw.below(30) {
            0 => bytes + self.draw.below(40 * PAGE),
            1..=5 if bytes < self.typical => bytes,
            6..=7 if bytes < self.typical => self.draw.below(self.typical),
            _ => at,
        };
        let len = self.len();
        let at = if at <= BYTES_MAX / 2 { at.min(LONGEST - len as u64) } else { at };
        if self.draw.once_in(300) {
            return self.data(crate::memory::FILES_MAX + at % PAGE, len.max(1));
        }
        self.data(at, len)
    }

    fn new_len(&mut self, bytes: u64) -> u64 {
        let draw = &mut self.draw;
        match draw.below(20) {
            0 => 0,
            1..=2 => bytes,
            3..=6 => (bytes + draw.below(9000)).saturating_sub(4500),
            7..=9 => draw.below(self.typical),
            10..=12 => draw.below(self.typical) / PAGE * PAGE,
            13..=15 => draw.below(bytes + 1),
            16..=17 => draw.below(bytes + 1) / PAGE * PAGE,
            18 if draw.once_in(6) => draw.pick(&[
                crate::memory::FILES_MAX + 1,
                BYTES_MAX,
                BYTES_MAX + 1,
                1 << 62,
                i64::MAX as u64,
                u64::MAX - 5000,
                u64::MAX,
            ]),
            _ => bytes / PAGE * PAGE + draw.below(2 * PAGE),
        }
        .min(if bytes > LONGEST { bytes } else { u64::MAX })
    }

    fn kernel(&mut self, groups: usize) -> Op {
        let draw = &mut self.draw;
        let pages = |draw: &mut Draw, from: u64, to: u64| (PAGE * (from + draw.below(to - from))).to_string();
        if groups > 0 && !draw.once_in(3) {
            let group = Some(draw.below(groups as u64) as usize);
            let (file, value) = match draw.below(12) {
                0..=2 => ("memory.max", pages(draw, 64, 400)),
                3 => ("memory.max", "max".to_owned()),
                // A reader above it because of dirty pages sleeps up to two seconds per page.
                4..=5 => ("memory.high", pages(draw, 200, 600)),
                6 => ("memory.high", "max".to_owned()),
                7 => ("memory.low", pages(draw, 0, 200)),
                8 => ("memory.min", pages(draw, 0, 100)),
                _ => ("memory.reclaim", pages(draw, 1, 100)),
            };
            return Op::Kernel { group, file, value };
        }
        let (file, value) = match draw.below(16) {
            0..=4 => ("/proc/sys/vm/drop_caches", draw.pick(&[1, 1, 2, 3]).to_string()),
            5..=6 => ("/proc/sys/vm/dirty_ratio", draw.pick(&[1, 5, 20, 40, 100]).to_string()),
            7..=8 => ("/proc/sys/vm/dirty_background_ratio", draw.pick(&[0, 1, 10, 50]).to_string()),
            9 => ("/proc/sys/vm/dirty_bytes", pages(draw, 2, 300)),
            10 => ("/proc/sys/vm/dirty_writeback_centisecs", draw.pick(&[0, 1, 500]).to_string()),
            11 => ("/proc/sys/vm/dirty_expire_centisecs", draw.pick(&[0, 1, 3000]).to_string()),
            // With 0, regions could not leave memory.
            12 => ("/proc/sys/vm/swappiness", (1 + draw.below(200)).to_string()),
            13 => ("/sys/kernel/mm/lru_gen/enabled", draw.pick(&["0", "1", "7", "y", "n"]).to_owned()),
            14 => ("/proc/sys/vm/min_free_kbytes", (64 + draw.below(600)).to_string()),
            _ => ("/proc/sys/vm/no_such_file", "1".to_owned()),
        };
        Op::Kernel { group: None, file, value }
    }

    fn span(&mut self, bytes: u64) -> (u64, u64) {
        let (start, end) = (self.offset(bytes), self.offset(bytes));
        match self.draw.below(12) {
            // As it comes: reversed, or behind the end.
            0..=1 => (start, end),
            2 => (start, u64::MAX - self.draw.below(PAGE)),
            3 => (0, bytes),
            _ => (start.min(end).min(bytes), start.max(end).min(bytes)),
        }
    }

    fn how(&mut self, groups: usize) -> How {
        let draw = &mut self.draw;
        How {
            writes: !draw.once_in(4),
            creates: draw.once_in(2),
            random: draw.once_in(3),
            buffered: draw.once_in(4),
            stable: draw.once_in(6),
            group: (groups > 0 && !draw.once_in(3)).then(|| draw.below(groups as u64) as usize),
        }
    }

    /// What a full device may refuse, or what loses something if the cache does not keep what was refused.
    fn of_full_device(&mut self, known: &impl Known) -> Op {
        let slot = self.slot(known);
        let bytes = known.bytes(slot).unwrap_or(5000);
        match self.draw.below(16) {
            0..=4 => {
                let len = self.draw.below(100 * PAGE) as usize;
                let len = if known.has_slow_writes() { len.min(SLOWLY) } else { len };
                let at = self.draw.below(bytes.min(self.typical) + 1);
                Op::Write { slot, data: self.data(at.min(LONGEST - len as u64), len) }
            }
            5..=6 => Op::SetLen { slot, bytes: self.new_len(bytes) },
            7..=9 => Op::Sync { slot, all: self.draw.once_in(3) },
            10..=11 => Op::Forget { slot, discards: self.draw.once_in(3) },
            12 => Op::Drop { slot },
            13 => {
                Op::Open { slot, path: self.draw.below(PATHS as u64) as usize, how: self.how(known.groups()) }
            }
            14 => Op::Acknowledge { slot },
            _ => {
                let pages = self.draw.below(100) + 2;
                let (file, value) = self.draw.pick(&[
                    ("/proc/sys/vm/dirty_bytes", pages * PAGE),
                    ("/proc/sys/vm/dirty_background_ratio", 0),
                    ("/proc/sys/vm/dirty_writeback_centisecs", 1),
                    ("/proc/sys/vm/drop_caches", 1),
                ]);
                Op::Kernel { group: None, file, value: value.to_string() }
            }
        }
    }

    fn region(&mut self, known: &impl Known) -> Op {
        let number = self.draw.below(REGIONS as u64) as usize;
        let groups = known.groups() as u64;
        let Some(bytes) = known.region_bytes(number) else {
            let group = (groups > 0 && !self.draw.once_in(3)).then(|| self.draw.below(groups) as usize);
            let bytes = self.draw.below(REGION_LONGEST);
            return Op::Region { number, act: RegionAct::Make { bytes, group } };
        };
        let near = |range: Range| if range.0 > bytes { (range.0, range.1.min(9000)) } else { range };
        let act = match self.draw.below(40) {
            0..=9 => {
                let (at, len) = self.range(bytes);
                RegionAct::Write(self.data(at, near((at, len)).1))
            }
            10..=11 => RegionAct::Write(self.data(0, bytes as usize)),
            12..=20 => RegionAct::Read(self.range(bytes)),
            21..=22 => RegionAct::Batch(self.ranges(bytes)),
            23..=25 => RegionAct::Page { page: self.page(bytes) },
            26..=29 => {
                let (page, at, len) =
                    (self.page(bytes), self.draw.below(PAGE), self.draw.below(PAGE) as usize);
                RegionAct::PageMut { page, data: self.data(at, len) }
            }
            30..=31 => {
                let bytes = match self.draw.once_in(2) {
                    true => self.draw.below(REGION_LONGEST),
                    false => self.draw.below(bytes + 1) / PAGE * PAGE,
                };
                RegionAct::SetLen { bytes }
            }
            32..=36 => {
                let advice = self.draw.pick(&[
                    RegionAdvice::PageOut,
                    RegionAdvice::PageOut,
                    RegionAdvice::DontNeed,
                    RegionAdvice::Cold,
                ]);
                let (start, end) = (self.draw.below(bytes + 1), self.draw.below(bytes + 1));
                let end = if self.draw.once_in(4) { bytes } else { start.max(end) };
                RegionAct::Advise { advice, start: start.min(end), end }
            }
            37..=38 => {
                let (start, end) = (self.draw.below(bytes + 1), self.draw.below(bytes + 1));
                RegionAct::Prefetch { start: start.min(end), end: start.max(end) }
            }
            _ => RegionAct::Drop,
        };
        Op::Region { number, act }
    }

    /// The next operation of a run.
    pub(crate) fn next(&mut self, known: &impl Known) -> Op {
        if known.has_swap() && self.draw.once_in(3) {
            return self.region(known);
        }
        if known.is_full() {
            // Soon: a write may take a second.
            if self.draw.once_in(10) {
                return Op::Full { bytes: None };
            }
            if self.draw.once_in(2) {
                return self.of_full_device(known);
            }
        } else if known.may_fail() {
            if self.draw.once_in(8) {
                return Op::Heal;
            }
        } else if self.draw.once_in(150) {
            let slot = self.slot(known);
            let within = self.draw.pick(&[0, known.bytes(slot).unwrap_or(0), self.typical, self.typical]);
            return Op::Full { bytes: Some(self.draw.below(within + 1) / PAGE * PAGE) };
        }
        let none_open = (0..SLOTS).all(|slot| known.bytes(slot).is_none());
        if none_open || self.draw.once_in(24) {
            let slot = self.draw.below(SLOTS as u64) as usize;
            let how = self.how(known.groups());
            return Op::Open { slot, path: self.draw.below(PATHS as u64) as usize, how };
        }
        if known.depth() > 0 && self.draw.once_in(5) {
            return match self.draw.below(8) {
                0..=1 => Op::Poll,
                2..=3 => {
                    self.fills += 1;
                    Op::Scribble { fill: self.fills }
                }
                4 => Op::End { drops: true },
                _ => Op::End { drops: false },
            };
        }
        let slot = self.slot(known);
        let bytes = known.bytes(slot).unwrap_or(5000);
        match self.draw.below(100) {
            0..=21 => {
                let mut data = self.write(bytes);
                if known.avoids_holes() && data.at <= LONGEST {
                    data.at = data.at.min(bytes.next_multiple_of(PAGE));
                }
                if known.has_slow_writes() {
                    data.len = data.len.min(SLOWLY);
                }
                Op::Write { slot, data }
            }
            22..=41 => Op::Read { slot, range: self.range(bytes) },
            42..=45 => Op::Page { slot, page: self.page(bytes) },
            46 => Op::WithPage { slot, page: self.page(bytes) },
            47..=50 => Op::Batch { slot, ranges: self.ranges(bytes) },
            51..=55 => {
                let page = self.page(bytes);
                let (at, len) = (self.draw.below(PAGE), self.draw.below(PAGE) as usize);
                let tries = self.draw.once_in(3);
                Op::PageMut { slot, page, data: self.data(at, len), tries }
            }
            56..=61 => Op::SetLen { slot, bytes: self.new_len(bytes) },
            62..=65 => Op::Sync { slot, all: self.draw.once_in(3) },
            66 => Op::Acknowledge { slot },
            67..=68 => Op::Reload { slot },
            69..=70 => Op::Forget { slot, discards: self.draw.once_in(4) },
            71..=75 => {
                let advice = self.draw.pick(&[
                    Advice::Normal,
                    Advice::Sequential,
                    Advice::Random,
                    Advice::NoReuse,
                    Advice::WillNeed,
                    Advice::DontNeed,
                    Advice::DontNeed,
                    Advice::DontNeed,
                ]);
                let (start, end) = self.span(bytes);
                Op::Advise { slot, advice, start, end }
            }
            76..=77 => {
                let (start, end) = self.span(bytes);
                Op::Prefetch { slot, start, end }
            }
            78..=82 => self.kernel(known.groups()),
            83 => {
                let len = self.len();
                let (at, bytes) = (self.draw.below(bytes + 1), self.draw.below(bytes + 9000));
                Op::Outside {
                    slot,
                    data: self.data(at.min(LONGEST - len as u64), len),
                    bytes: bytes.min(LONGEST),
                }
            }
            84 => {
                let len = self.draw.below(self.typical) as usize;
                Op::Replace { path: self.draw.below(PATHS as u64) as usize, data: self.data(0, len) }
            }
            85 if self.draw.once_in(2) && known.depth() == 0 => Op::Rebuild,
            86 => Op::Rest { ms: self.draw.pick(&[0, 1, 3, 10]) },
            87..=88 => Op::Clone { slot: self.draw.below(SLOTS as u64) as usize, of: slot },
            89..=91 => Op::Drop { slot },
            92..=93 if known.depth() < 6 => {
                let count = self.draw.pick(&[1, 1, 1, 2, 5, 17, 400]);
                let page = if count > 10 { 0 } else { self.page(bytes) };
                Op::Hold { slot, page, count }
            }
            94..=95 if known.depth() < 6 => {
                self.fills += 1;
                Op::HoldMut { slot, page: self.page(bytes), fill: self.fills }
            }
            _ if known.depth() < 6 => Op::Submit { slot, ranges: self.ranges(bytes) },
            _ => Op::Read { slot, range: self.range(bytes) },
        }
    }
}

/// Numbers that are simpler than one.
fn simpler_number(number: u64) -> Vec<u64> {
    let all = [
        0,
        1,
        PAGE,
        number / PAGE * PAGE,
        number / 2,
        number / 2 / PAGE * PAGE,
        number.saturating_sub(PAGE),
        number.saturating_sub(1),
    ];
    let mut some: Vec<u64> = Vec::new();
    for other in all {
        if other < number && !some.contains(&other) {
            some.push(other);
        }
    }
    some
}

fn simpler_range(range: Range) -> Vec<Range> {
    let offsets = simpler_number(range.0).into_iter().map(|at| (at, range.1));
    offsets.chain(simpler_number(range.1 as u64).into_iter().map(|len| (range.0, len as usize))).collect()
}

fn simpler_data(data: Data) -> Vec<Data> {
    simpler_range((data.at, data.len)).into_iter().map(|(at, len)| Data { at, len, ..data }).collect()
}

fn simpler_ranges(ranges: &[Range]) -> Vec<Vec<Range>> {
    let mut all = Vec::new();
    let half = ranges.len() / 2;
    if half > 0 {
        all.extend([ranges[..half].to_vec(), ranges[half..].to_vec()]);
    }
    if ranges.len() > 1 && ranges.len() <= 10 {
        all.extend((0..ranges.len()).map(|at| [&ranges[..at], &ranges[at + 1..]].concat()));
    }
    if ranges.len() <= 4 {
        for at in 0..ranges.len() {
            all.extend(simpler_range(ranges[at]).into_iter().map(|simpler| {
                let mut other = ranges.to_vec();
                other[at] = simpler;
                other
            }));
        }
    }
    all
}

impl Op {
    /// Operations that are one step simpler, and may take its place.
    pub(crate) fn simpler(&self) -> Vec<Op> {
        match self.clone() {
            Op::Region { number, act } => {
                let simpler = match act {
                    RegionAct::Make { bytes, group } => {
                        let bytes = simpler_number(bytes).into_iter();
                        bytes.map(|bytes| RegionAct::Make { bytes, group }).collect()
                    }
                    RegionAct::Read(range) => simpler_range(range).into_iter().map(RegionAct::Read).collect(),
                    RegionAct::Batch(ranges) => {
                        let reads = ranges.iter().take(4).map(|&range| RegionAct::Read(range));
                        let fewer = simpler_ranges(&ranges).into_iter().map(RegionAct::Batch);
                        reads.chain(fewer).collect()
                    }
                    RegionAct::Page { page } => vec![RegionAct::Read((page.saturating_mul(PAGE), 1))],
                    RegionAct::Write(data) => simpler_data(data).into_iter().map(RegionAct::Write).collect(),
                    RegionAct::PageMut { page, data } => {
                        let datas = simpler_data(data).into_iter();
                        datas.map(|data| RegionAct::PageMut { page, data }).collect()
                    }
                    RegionAct::SetLen { bytes } => {
                        let bytes = simpler_number(bytes).into_iter();
                        bytes.map(|bytes| RegionAct::SetLen { bytes }).collect()
                    }
                    RegionAct::Advise { .. } | RegionAct::Prefetch { .. } | RegionAct::Drop => Vec::new(),
                };
                simpler.into_iter().map(|act| Op::Region { number, act }).collect()
            }
            Op::Open { slot, path, how } => {
                let others = [
                    How { group: None, ..how },
                    How { stable: false, ..how },
                    How { random: false, ..how },
                    How { buffered: false, ..how },
                    How { creates: false, ..how },
                ];
                let others = others.into_iter().filter(|&other| other != how);
                others.map(|how| Op::Open { slot, path, how }).collect()
            }
            Op::Read { slot, range } => {
                simpler_range(range).into_iter().map(|range| Op::Read { slot, range }).collect()
            }
            Op::Page { slot, page } => {
                let read = Op::Read { slot, range: (page.saturating_mul(PAGE), 1) };
                let pages = simpler_number(page).into_iter().map(|page| Op::Page { slot, page });
                pages.chain([read]).collect()
            }
            Op::WithPage { slot, page } => vec![Op::Page { slot, page }],
            Op::Batch { slot, ranges } => {
                let reads = ranges.iter().take(4).map(|&range| Op::Read { slot, range });
                let fewer = simpler_ranges(&ranges).into_iter().map(|ranges| Op::Batch { slot, ranges });
                reads.chain(fewer).collect()
            }
            Op::Write { slot, data } => {
                simpler_data(data).into_iter().map(|data| Op::Write { slot, data }).collect()
            }
            Op::PageMut { slot, page, data, tries } => {
                let write = (!tries).then(|| Op::Write {
                    slot,
                    data: Data { at: page.saturating_mul(PAGE).saturating_add(data.at), ..data },
                });
                let pages =
                    simpler_number(page).into_iter().map(|page| Op::PageMut { slot, page, data, tries });
                let datas =
                    simpler_data(data).into_iter().map(|data| Op::PageMut { slot, page, data, tries });
                write.into_iter().chain(pages).chain(datas).collect()
            }
            Op::SetLen { slot, bytes } => {
                simpler_number(bytes).into_iter().map(|bytes| Op::SetLen { slot, bytes }).collect()
            }
            Op::Sync { slot, all: true } => vec![Op::Sync { slot, all: false }],
            Op::Full { bytes: Some(bytes) } => {
                let pages = simpler_number(bytes).into_iter().filter(|bytes| bytes.is_multiple_of(PAGE));
                pages.map(|bytes| Op::Full { bytes: Some(bytes) }).collect()
            }
            Op::Advise { slot, advice, start, end } => {
                let starts =
                    simpler_number(start).into_iter().map(|start| Op::Advise { slot, advice, start, end });
                let ends = simpler_number(end).into_iter().map(|end| Op::Advise { slot, advice, start, end });
                starts.chain(ends).collect()
            }
            Op::Prefetch { slot, start, end } => {
                let starts = simpler_number(start).into_iter().map(|start| Op::Prefetch { slot, start, end });
                let ends = simpler_number(end).into_iter().map(|end| Op::Prefetch { slot, start, end });
                starts.chain(ends).collect()
            }
            Op::Outside { slot, data, bytes } => {
                let datas = simpler_data(data).into_iter().map(|data| Op::Outside { slot, data, bytes });
                let lens = simpler_number(bytes).into_iter().map(|bytes| Op::Outside { slot, data, bytes });
                datas.chain(lens).collect()
            }
            Op::Replace { path, data } => {
                simpler_data(data).into_iter().map(|data| Op::Replace { path, data }).collect()
            }
            Op::Hold { slot, page, count } => {
                let counts = simpler_number(count).into_iter().map(|count| Op::Hold { slot, page, count });
                let pages = simpler_number(page).into_iter().map(|page| Op::Hold { slot, page, count });
                counts.chain(pages).collect()
            }
            Op::HoldMut { slot, page, fill } => {
                simpler_number(page).into_iter().map(|page| Op::HoldMut { slot, page, fill }).collect()
            }
            Op::Submit { slot, ranges } => {
                let reads = (ranges.len() == 1).then(|| Op::Read { slot, range: ranges[0] });
                let fewer = simpler_ranges(&ranges).into_iter().map(|ranges| Op::Submit { slot, ranges });
                reads.into_iter().chain(fewer).collect()
            }
            _ => Vec::new(),
        }
    }
}

struct Number(u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            far @ 0x8000_0000_0000_0000.. if u64::MAX - far < 100_000 => {
                write!(f, "u64::MAX - {}", u64::MAX - far)
            }
            near => write!(f, "{near}"),
        }
    }
}

struct Ranges<'a>(&'a [Range]);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (offset, len)) in self.0.iter().enumerate() {
            write!(f, "{}{len} at {}", if at > 0 { ", " } else { "" }, Number(*offset))?;
        }
        Ok(())
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {}, data {}", self.len, Number(self.at), self.fill)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.writes { "read_write" } else { "read" })?;
        let flags = [
            (self.creates, ", create"),
            (self.random, ", random"),
            (self.buffered, ", buffered"),
            (self.stable, ", stable_writes"),
        ];
        flags.iter().filter(|(is_set, _)| *is_set).try_for_each(|(_, name)| f.write_str(name))?;
        self.group.map_or(Ok(()), |group| write!(f, ", group {group}"))
    }
}

impl fmt::Display for RegionAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionAct::Make { bytes, group: None } => write!(f, " = region({bytes})"),
            RegionAct::Make { bytes, group: Some(group) } => write!(f, " = region({bytes}, group {group})"),
            RegionAct::Drop => write!(f, ": drop"),
            RegionAct::Read(range) => write!(f, ".read_at({})", Ranges(&[*range])),
            RegionAct::Batch(ranges) => write!(f, ".read_batch({})", Ranges(ranges)),
            RegionAct::Page { page } => write!(f, ".page({})", Number(*page)),
            RegionAct::Write(data) => write!(f, ".write_at({data})"),
            RegionAct::PageMut { page, data } => {
                write!(f, ".page_mut({}), write {data} of the page", Number(*page))
            }
            RegionAct::SetLen { bytes } => write!(f, ".set_len({bytes})"),
            RegionAct::Advise { advice, start, end } => write!(f, ".advise({advice:?}, {start}..{end})"),
            RegionAct::Prefetch { start, end } => write!(f, ".prefetch({start}..{end})"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Region { number, act } => write!(f, "r{number}{act}"),
            Op::Open { slot, path, how } => write!(f, "h{slot} = open(file {path}: {how})"),
            Op::Clone { slot, of } => write!(f, "h{slot} = h{of}.clone()"),
            Op::Drop { slot } => write!(f, "drop(h{slot})"),
            Op::Read { slot, range } => write!(f, "h{slot}.read_at({})", Ranges(&[*range])),
            Op::Page { slot, page } => write!(f, "h{slot}.page({})", Number(*page)),
            Op::WithPage { slot, page } => write!(f, "h{slot}.with_page({})", Number(*page)),
            Op::Batch { slot, ranges } => write!(f, "h{slot}.read_batch({})", Ranges(ranges)),
            Op::Write { slot, data } => write!(f, "h{slot}.write_at({data})"),
            Op::PageMut { slot, page, data, tries } => {
                let name = if *tries { "try_page_mut" } else { "page_mut" };
                write!(f, "h{slot}.{name}({}), write {data} of the page", Number(*page))
            }
            Op::SetLen { slot, bytes } => write!(f, "h{slot}.set_len({})", Number(*bytes)),
            Op::Sync { slot, all } => write!(f, "h{slot}.sync_{}()", if *all { "all" } else { "data" }),
            Op::Acknowledge { slot } => write!(f, "h{slot}.acknowledge()"),
            Op::Reload { slot } => write!(f, "h{slot}.reload()"),
            Op::Forget { slot, discards: false } => write!(f, "h{slot}.forget()"),
            Op::Forget { slot, discards: true } => write!(f, "h{slot}.forget_and_discard()"),
            Op::Advise { slot, advice, start, end } => {
                write!(f, "h{slot}.advise({advice:?}, {}..{})", Number(*start), Number(*end))
            }
            Op::Prefetch { slot, start, end } => {
                write!(f, "h{slot}.prefetch({}..{})", Number(*start), Number(*end))
            }
            Op::Kernel { group, file, value } => match group {
                Some(group) => write!(f, "group {group}: echo {value} > {file}"),
                None => write!(f, "echo {value} > {file}"),
            },
            Op::Outside { slot, data, bytes } => {
                write!(
                    f,
                    "h{slot}.sync_data(); another writes {data}, and sets the length to {bytes}; h{slot}.reload()"
                )
            }
            Op::Replace { path, data } => write!(f, "another replaces file {path}: {data}"),
            Op::Full { bytes: Some(bytes) } => {
                write!(f, "the device is full from byte {bytes} of each file on")
            }
            Op::Full { bytes: None } => write!(f, "the device has space again"),
            Op::Heal => write!(f, "acknowledge and sync each file that may not be written"),
            Op::Rebuild => write!(f, "drop all handles and the cache, and build another"),
            Op::Rest { ms } => write!(f, "sleep {ms} ms"),
            Op::Hold { slot, page, count: 1 } => write!(f, "hold h{slot}.page({}) {{", Number(*page)),
            Op::Hold { slot, page, count } => {
                write!(f, "hold h{slot}.page(..) of {count} pages from {} {{", Number(*page))
            }
            Op::HoldMut { slot, page, fill } => {
                write!(f, "hold h{slot}.page_mut({}), write data {fill} to all of it {{", Number(*page))
            }
            Op::Scribble { fill } => write!(f, "write data {fill} through the guard"),
            Op::Submit { slot, ranges } => write!(f, "h{slot}.submit({}) {{", Ranges(ranges)),
            Op::Poll => write!(f, "is_ready()"),
            Op::End { drops: true } => write!(f, "}} drop"),
            Op::End { drops: false } => write!(f, "}} wait"),
        }
    }
}

/// A sequence as a program.
pub(crate) fn program(ops: &[Op]) -> String {
    let (mut text, mut depth) = (String::new(), 1_usize);
    for op in ops {
        if matches!(op, Op::End { .. }) {
            depth = depth.saturating_sub(1).max(1);
        }
        text += &format!("{}{op}\n", "    ".repeat(depth));
        depth += usize::from(op.begins());
    }
    text
}
