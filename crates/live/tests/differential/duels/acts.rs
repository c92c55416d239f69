//! The operations of duels: how they are drawn, and what they come to one after the other.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use super::MOST;
use crate::draw::{Draw, filled};
use crate::model::PAGE;
use crate::operations::Data;
use crate::settings::{Avoid, avoids};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Act {
    Write(Data),
    /// `at` is within the page.
    PageMut(u64, Data),
    SetLen(u64),
    Read(u64, usize),
    Pending(u64, usize),
    DroppedPending(u64, usize),
    Hold(u64),
    Sync,
    Forget,
    Reload,
    /// Opens the file once more, and drops that handle.
    Open,
    DontNeed,
    Prefetch,
    DropCaches,
}

/// What one came to.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Came {
    Done,
    Bytes(Vec<u8>),
    /// A page was written to by a guard of so many bytes.
    Written(u64),
    Refused(&'static str),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Write(data) => write!(f, "write_at({data})"),
            Act::PageMut(page, data) => write!(f, "page_mut({page}), write {data} of the page"),
            Act::SetLen(bytes) => write!(f, "set_len({bytes})"),
            Act::Read(at, len) => write!(f, "read_at({len} at {at})"),
            Act::Pending(at, len) => write!(f, "submit({len} at {at}), wait()"),
            Act::DroppedPending(at, len) => write!(f, "submit({len} at {at}), drop"),
            Act::Hold(page) => write!(f, "hold page({page})"),
            Act::Sync => f.write_str("sync_data()"),
            Act::Forget => f.write_str("forget()"),
            Act::Reload => f.write_str("reload()"),
            Act::Open => f.write_str("open it once more, drop that handle"),
            Act::DontNeed => f.write_str("advise(DontNeed, all)"),
            Act::Prefetch => f.write_str("prefetch(all)"),
            Act::DropCaches => f.write_str("echo 1 > drop_caches"),
        }
    }
}

impl fmt::Display for Came {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Came::Done => f.write_str("Ok"),
            Came::Written(len) => write!(f, "Ok, a guard of {len} bytes"),
            Came::Bytes(bytes) if bytes.is_empty() => f.write_str("no bytes"),
            Came::Bytes(bytes) => {
                let zeroes = bytes.iter().filter(|&&byte| byte == 0).count();
                write!(
                    f,
                    "{} bytes, the first {}, the last {}, {zeroes} of them 0",
                    bytes.len(),
                    bytes[0],
                    bytes[bytes.len() - 1]
                )
            }
            Came::Refused(kind) => f.write_str(kind),
        }
    }
}

impl Act {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Act::Write(_) => "write_at",
            Act::PageMut(..) => "page_mut",
            Act::SetLen(_) => "set_len",
            Act::Read(..) => "read_at",
            Act::Pending(..) => "submit, wait",
            Act::DroppedPending(..) => "submit, drop",
            Act::Hold(_) => "page, held",
            Act::Sync => "sync_data",
            Act::Forget => "forget",
            Act::Reload => "reload",
            Act::Open => "open",
            Act::DontNeed => "advise DontNeed",
            Act::Prefetch => "prefetch",
            Act::DropCaches => "drop_caches",
        }
    }

    /// Pages that it writes to.
    pub(super) fn writes(&self) -> Range<u64> {
        match self {
            Act::Write(data) => data.at / PAGE..(data.at + data.len as u64).div_ceil(PAGE),
            Act::PageMut(page, _) => *page..page + 1,
            _ => 0..0,
        }
    }
}

/// How the file is before a duel.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// Writes and lengths, one after the other.
    pub(super) steps: Vec<Act>,
    /// It is on its device.
    pub(super) is_synced: bool,
    /// Its pages are not in memory.
    pub(super) is_cold: bool,
    pub(super) is_stable: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Duel {
    pub(super) start: Start,
    pub(super) acts: Vec<Act>,
}

impl fmt::Display for Duel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Start { steps, is_synced, is_cold, is_stable } = &self.start;
        writeln!(f, "    an empty file{}", if *is_stable { ", stable_writes" } else { "" })?;
        steps.iter().try_for_each(|step| writeln!(f, "    {step}"))?;
        if *is_synced {
            writeln!(f, "    sync_data()")?;
        }
        if *is_cold {
            writeln!(f, "    advise(DontNeed, all)")?;
        }
        writeln!(f, "  then at the same time:")?;
        self.acts.iter().try_for_each(|act| writeln!(f, "    {act}"))
    }
}

/// The file of a duel, as the model has it.
#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) bytes: Vec<u8>,
    pub(super) held: BTreeSet<u64>,
    pub(super) is_forgotten: bool,
    /// Lengths until now: a guard is as long as its page was when it was asked for, also where the file has become longer since.
    pub(super) lens: Vec<u64>,
}

impl Model {
    fn write(&mut self, data: Data) {
        if data.len == 0 {
            return;
        }
        let (at, buf) = (data.at as usize, filled(data.fill, data.at, data.len));
        self.bytes.resize(self.bytes.len().max(at + data.len), 0);
        self.bytes[at..at + data.len].copy_from_slice(&buf);
    }

    /// Bytes that a guard of a page may have.
    fn guards(&self, page: u64) -> Vec<u64> {
        let len = self.bytes.len() as u64;
        let lens =
            self.lens.iter().copied().chain([len]).filter(|&before| before <= len && before > page * PAGE);
        lens.map(|len| (len - page * PAGE).min(PAGE)).collect()
    }

    /// What an act may come to, if it came to this: any of these.
    pub(super) fn act(&mut self, act: &Act, came: &Came) -> Vec<Came> {
        let len = self.bytes.len() as u64;
        let may = self.may(act, came);
        self.lens.push(len);
        may
    }

    fn may(&mut self, act: &Act, came: &Came) -> Vec<Came> {
        let len = self.bytes.len() as u64;
        let refused = |kind| vec![Came::Refused(kind)];
        let done = || vec![Came::Done];
        let is_read = !matches!(act, Act::Write(_) | Act::SetLen(_));
        if is_read && matches!(came, Came::Refused("CutMeanwhile")) {
            // It names the race, and has changed nothing.
            return refused("CutMeanwhile");
        }
        match *act {
            Act::Read(at, bytes) | Act::Pending(at, bytes) if at + bytes as u64 > len => refused("BeyondEnd"),
            Act::DroppedPending(at, bytes) if at + bytes as u64 > len => refused("BeyondEnd"),
            Act::Hold(page) | Act::PageMut(page, _) if page * PAGE >= len => refused("BeyondEnd"),
            // Of all of it: it may have become shorter since its length was looked at.
            Act::DontNeed | Act::Prefetch if self.is_forgotten => {
                vec![Came::Refused("Forgotten"), Came::Refused("BeyondEnd"), Came::Done]
            }
            Act::DontNeed | Act::Prefetch => vec![Came::Done, Came::Refused("BeyondEnd")],
            Act::Open | Act::DropCaches => done(),
            _ if self.is_forgotten => refused("Forgotten"),
            Act::Write(data) => {
                self.write(data);
                done()
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
                if bytes < len && self.held.range(bytes / PAGE..).next().is_some() {
                    return refused("Pinned");
                }
                self.bytes.resize(bytes as usize, 0);
                done()
            }
            Act::Read(at, bytes) | Act::Pending(at, bytes) => {
                vec![Came::Bytes(self.bytes[at as usize..][..bytes].to_vec())]
            }
            Act::DroppedPending(..) | Act::Sync => done(),
            Act::Hold(page) => {
                self.held.insert(page);
                let start = (page * PAGE) as usize;
                let guards = self.guards(page).into_iter();
                guards.map(|there| Came::Bytes(self.bytes[start..start + there as usize].to_vec())).collect()
            }
            Act::Forget if !self.held.is_empty() => refused("Pinned"),
            Act::Forget => {
                self.is_forgotten = true;
                done()
            }
            Act::Reload if !self.held.is_empty() => refused("Pinned"),
            Act::Reload => done(),
        }
    }
}

/// What acts may have done that came to this: mostly themselves. A write of several pages that was cut meanwhile has written its first pages.
pub(super) fn effects(acts: &[Act], came: &[Came]) -> Vec<Vec<(Act, Came)>> {
    let cuts = acts.iter().any(|act| matches!(act, Act::SetLen(_) | Act::Reload));
    let mut all = vec![Vec::new()];
    for (act, came) in acts.iter().zip(came) {
        let may: Vec<(Act, Came)> = match act {
            Act::Write(data) if cuts && *came == Came::Refused("CutMeanwhile") => {
                let pages = act.writes();
                let prefix = |end: u64| Data { len: (end * PAGE - data.at) as usize, ..*data };
                (pages.start + 1..pages.end).map(|end| (Act::Write(prefix(end)), Came::Done)).collect()
            }
            _ => vec![(*act, came.clone())],
        };
        all = all
            .iter()
            .flat_map(|before: &Vec<_>| {
                may.iter().map(|one| [&before[..], std::slice::from_ref(one)].concat())
            })
            .collect();
    }
    all
}

/// All orders of so many.
pub(crate) fn orders(of: usize) -> Vec<Vec<usize>> {
    if of == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(of - 1);
    let longer = shorter.iter().flat_map(|order| {
        (0..of).map(move |at| {
            let mut order = order.clone();
            order.insert(at, of - 1);
            order
        })
    });
    longer.collect()
}

/// Draws duels.
pub(super) struct Generator {
    pub(super) draw: Draw,
    pub(super) fills: u32,
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
        Data { at, len: len as usize, fill: self.fills }
    }

    fn len(&mut self, most: u64) -> u64 {
        let len = self.draw.below(most);
        if self.draw.once_in(3) { len / PAGE * PAGE } else { len }
    }

    /// A range within a page.
    fn range(&mut self, most: u64) -> (u64, usize) {
        let (page, skip) = (self.draw.below(most.div_ceil(PAGE)), self.draw.below(PAGE));
        let skip = if self.draw.once_in(3) { 0 } else { skip };
        let len = if self.draw.once_in(3) { PAGE - skip } else { 1 + self.draw.below(PAGE - skip) };
        (page * PAGE + skip, len as usize)
    }

    fn act(&mut self, most: u64) -> Act {
        match self.draw.below(28) {
            0..=5 => Act::Write(self.data(most)),
            6..=7 => {
                let (page, data) = (self.draw.below(most.div_ceil(PAGE)), self.data(PAGE));
                Act::PageMut(page, data)
            }
            8..=12 => Act::SetLen(self.len(most)),
            13..=15 => {
                let (at, len) = self.range(most);
                Act::Read(at, len)
            }
            16 => {
                let (at, len) = self.range(most);
                Act::Pending(at, len)
            }
            17 => {
                let (at, len) = self.range(most);
                Act::DroppedPending(at, len)
            }
            18..=19 => Act::Hold(self.draw.below(most.div_ceil(PAGE))),
            20..=21 => Act::Sync,
            22..=23 => Act::Forget,
            24 => Act::Open,
            25 => Act::DontNeed,
            26 => self.draw.pick(&[Act::Prefetch, Act::DropCaches]),
            _ => Act::Reload,
        }
    }

    pub(super) fn next(&mut self) -> Duel {
        loop {
            let most = PAGE * self.draw.pick(&[1, 2, 3, 5, 20]);
            let mut steps = Vec::new();
            for _ in 0..self.draw.below(4) {
                steps.push(if self.draw.once_in(4) {
                    Act::SetLen(self.len(most))
                } else {
                    Act::Write(self.data(most))
                });
            }
            let start = Start {
                steps,
                is_synced: self.draw.once_in(2),
                is_cold: self.draw.once_in(3),
                is_stable: self.draw.once_in(8),
            };
            let count = self.draw.pick(&[2, 2, 3, MOST]);
            let acts: Vec<Act> = (0..count).map(|_| self.act(most)).collect();
            if is_fit(&start, &acts) {
                return Duel { start, acts };
            }
        }
    }
}

/// Returns true if a duel has a model, and no defect that is to be stepped around.
pub(super) fn is_fit(start: &Start, acts: &[Act]) -> bool {
    let count = |is: fn(&Act) -> bool| acts.iter().filter(|act| is(act)).count();
    let forgets = count(|act| matches!(act, Act::Forget));
    let writes = count(|act| matches!(act, Act::Write(_) | Act::PageMut(..)));
    let lens = count(|act| matches!(act, Act::SetLen(_)));
    let extends = count(|act| matches!(act, Act::Write(_) | Act::SetLen(_)));
    let dropped = count(|act| matches!(act, Act::DroppedPending(..)));
    let pendings = dropped + count(|act| matches!(act, Act::Pending(..)));
    let reads = count(|act| matches!(act, Act::Read(..) | Act::PageMut(..) | Act::Write(_)));
    let asks = pendings + count(|act| matches!(act, Act::DontNeed | Act::Prefetch));
    let opens = count(|act| matches!(act, Act::Open));
    let reloads = count(|act| matches!(act, Act::Reload));
    // A thread that writes to a page that another holds waits for that one, which waits for all others.
    let held: Vec<u64> =
        acts.iter().filter_map(|act| if let Act::Hold(page) = act { Some(*page) } else { None }).collect();
    if acts.iter().any(|act| held.iter().any(|page| act.writes().contains(page))) {
        return false;
    }
    // Two writes of the same pages are seen page by page.
    let spans: Vec<_> = acts.iter().map(Act::writes).filter(|span| span.end - span.start > 1).collect();
    let overlaps = |span: &Range<u64>| {
        acts.iter().filter(|act| act.writes().start < span.end && span.start < act.writes().end).count() > 1
    };
    if spans.iter().any(overlaps) {
        return false;
    }
    // Of one that is refused some pages may be written.
    if forgets > 0 && !spans.is_empty() {
        return false;
    }
    // A reload loses what was not synced.
    if reloads > 0 && (writes + lens > 0 || !start.is_synced) {
        return false;
    }
    !(start.is_stable && avoids(Avoid::StablePinned)
        || lens > 0 && acts.len() > 1 && avoids(Avoid::SetLenRaces)
        || forgets > 1 && avoids(Avoid::Forgets)
        || reloads > 0 && !held.is_empty() && avoids(Avoid::ReloadHeld)
        || forgets > 0 && !held.is_empty() && asks > 0 && avoids(Avoid::ForgetGoing)
        || forgets > 0 && reads > 0 && avoids(Avoid::ForgetReads)
        || forgets > 0 && opens + pendings > 0 && avoids(Avoid::ForgetOpen)
        || pendings > 0 && (extends > 0 || !start.is_synced) && avoids(Avoid::Holes)
        || dropped > 0 && avoids(Avoid::PendingDrop)
        || extends > 0 && forgets > 0 && avoids(Avoid::ForgetOpen))
}

#[test]
fn model_of_each_order_refuses_what_no_order_gives() {
    assert_eq!(orders(4).len(), 24);
    let (write, cut) = (Act::Write(Data { at: 0, len: 6000, fill: 1 }), Act::SetLen(4096));
    let lens = |acts: [Act; 2]| {
        let mut model = Model::default();
        acts.iter().for_each(|act| assert_eq!(model.act(act, &Came::Done), [Came::Done]));
        model.bytes.len()
    };
    assert_eq!((lens([write, cut]), lens([cut, write])), (4096, 6000));
    let mut model = Model { bytes: vec![7; 6000], ..Model::default() };
    let guard = model.act(&Act::Hold(1), &Came::Done);
    assert_eq!(guard, [Came::Bytes(vec![7; 1904])]);
    assert_eq!(model.act(&cut, &Came::Done), [Came::Refused("Pinned")]);
    assert_eq!(model.act(&Act::SetLen(8192), &Came::Done), [Came::Done]);
    assert_eq!(model.act(&Act::Forget, &Came::Done), [Came::Refused("Pinned")]);
    // A guard that was asked for before the file got longer is shorter.
    let page = Act::PageMut(1, Data { at: 0, len: 4096, fill: 2 });
    assert!(model.clone().act(&page, &Came::Written(1904)).contains(&Came::Written(1904)));
    assert!(!model.act(&page, &Came::Written(1903)).contains(&Came::Written(1903)));
}

#[test]
fn write_that_was_cut_may_have_written_its_first_pages() {
    let write = Act::Write(Data { at: 100, len: 3 * PAGE as usize, fill: 1 });
    let cut = Came::Refused("CutMeanwhile");
    assert_eq!(effects(&[write], std::slice::from_ref(&cut)), [[(write, cut.clone())]], "nobody has cut it");
    let lens: Vec<usize> = effects(&[write, Act::SetLen(0)], &[cut, Came::Done])
        .iter()
        .map(|acts| match acts[0] {
            (Act::Write(data), Came::Done) => data.len,
            _ => panic!("{acts:?}"),
        })
        .collect();
    assert_eq!(lens, [1, 2, 3].map(|pages| pages * PAGE as usize - 100));
}
