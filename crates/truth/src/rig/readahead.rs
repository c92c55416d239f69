//! A run with readahead, replayed call by call: the next begins when the reads of the one before are over, at its recorded time.
//!
//! If rules alone do not determine what the kernel did, the engine gets it before each call: the agings that walk page tables, and the
//! pages that a fault maps. Reads take no time here, so a fault can find a page too early. Such pages are mapped at the end of the call.

use anyhow::anyhow;
use pageout_engine::{Access, FileId, Nanos, NodeId, ObjectId, Op};

use super::super::answers::REMOVED;
use super::super::object::{Kind, Object};
use super::super::reads::Reads;
use super::super::recording::Flush;
use super::access::serve_step;
use super::snapshot::Snapshot;
use super::stage::Stage;
use super::{Playable, Played, Told, Unplayable, Unrecorded};

/// If the blocks of a file are in two pieces, the first page of the second piece: no request crosses it.
const BREAK: (&str, u64) = ("/mnt/f", 26_303);

impl Stage {
    pub(super) fn perform_calls(
        mut self,
        playable: &Playable,
        unrecorded: Unrecorded,
        mut told: Option<&mut Told>,
    ) -> Result<Played, Unplayable> {
        let Playable { run, objects, inputs, .. } = playable;
        let sequence = &Told::accesses(told.as_deref_mut(), &playable.sequence);
        if let Some(told) = &told {
            self.engine.tell_story(told.filter());
        }
        let mut heard = Vec::new();
        let mut flushes = self.flushes(playable, unrecorded);
        let times = evenly(playable.clock());
        self.engine.record_page_cache_events();
        self.engine.take_page_cache_events(&mut Vec::new());
        let before = Snapshot::take(&self.engine, self.group);
        let (mut reads, mut missed, mut stream) = (Vec::new(), Vec::new(), Vec::new());
        let mut events = Vec::new();
        for ((number, access), now) in (0..).zip(sequence.iter()).zip(times) {
            self.engine.set_now(now);
            while flushes.is_due(number, now) {
                self.engine.flush_stats();
            }
            let id = ObjectId(self.first + access.object());
            self.engine.play_flushes(flushes.within(number, stream.len() as u64));
            if let Some(agings) = &inputs.agings {
                self.engine.play_walks(agings.get(&number).into_iter().flatten().copied());
            }
            if let Some(mapped) = &inputs.mapped {
                self.engine.play_mapped(mapped.get(&number).into_iter().flatten().cloned());
            }
            let requests = self.call(&objects[access.object() as usize], id, access.page())?;
            if inputs.mapped.is_some() {
                self.engine.play_mapped_late(self.task, id);
            }
            self.engine.play_flushes_late();
            if let Some(told) = &mut told {
                self.engine.take_story(&mut heard);
                told.events.append(&mut heard);
                if number == told.until {
                    told.end(&self.engine, &run.policy, now);
                }
            }
            events.clear();
            self.engine.take_page_cache_events(&mut events);
            events.retain(|event| self.shared.iter().any(|&(_, file)| file == event.file));
            let pages = |removed| {
                let events = events.iter().filter(move |event| event.removed == removed);
                events.map(|event| event.page as u32).collect()
            };
            reads.push(Reads { inserted: pages(false), removed: pages(true), requests });
            missed.push(reads.last().is_some_and(|reads| !reads.requests.is_empty()));
            stream.extend(
                events.iter().map(|event| event.page as u32 | if event.removed { REMOVED } else { 0 }),
            );
        }
        let after = Snapshot::take(&self.engine, self.group);
        Ok(Played {
            vmstat: before.to(&after, |snapshot| &snapshot.vmstat),
            memcg: before.to(&after, |snapshot| &snapshot.memcg),
            missed,
            stream,
            reads,
            generations: self.engine.figures().lru_gen(self.group, NodeId(0)),
            sequence: sequence.clone(),
            hole: None,
            whole_writes: playable.whole_writes(),
            machine: None,
            moved_to_fast_node: None,
        })
    }

    /// When statistics are flushed: as recorded, or by the worker's timer and at the end of each window, where the program reads them.
    fn flushes(&self, playable: &Playable, unrecorded: Unrecorded) -> Flushes {
        match playable.inputs.flushes {
            Some(flushes) => Flushes { to_come: flushes.iter().rev().copied().collect(), worker: None },
            None => Flushes {
                to_come: playable
                    .run
                    .windows
                    .iter()
                    .rev()
                    .map(|window| Flush { before: window.op, entries: None })
                    .collect(),
                worker: self
                    .engine
                    .stat_flush_period()
                    .map(|period| (unrecorded.flush_phase(period), period)),
            },
        }
    }

    /// One word of a sequence: a call of some pages, a load, or advice. Returns the requests that it caused.
    fn call(&mut self, object: &Object, id: ObjectId, at: u64) -> Result<Vec<(u32, u32)>, Unplayable> {
        let (size, unit) = (pageout_engine::PAGE_SIZE, object.unit());
        let mut requests = Vec::new();
        if object.kind == Kind::WillNeed {
            let step = self.engine.readahead(self.task, id, at, object.request)?;
            serve_step(&mut self.engine, self.task, step, |op| requests.extend(pieces(op, &self.shared)))?;
            return Ok(requests);
        }
        let end = (at + object.request).min(object.units()) * unit;
        for page in at * unit / size..end.div_ceil(size) {
            let wanted = u32::try_from(end - page * size).map_err(|_| anyhow!("a call for {end} bytes"))?;
            let access = Access { wanted, ..Access::new(id, page, false) };
            let step = self.engine.start(self.task, access);
            serve_step(&mut self.engine, self.task, step, |op| requests.extend(pieces(op, &self.shared)))?;
        }
        Ok(requests)
    }
}

/// Flushes of statistics that are yet to come.
struct Flushes {
    /// The next one last.
    to_come: Vec<Flush>,
    /// When the worker runs next, and how long after that again.
    worker: Option<(Nanos, Nanos)>,
}

impl Flushes {
    /// Returns true if one comes before an access, at its time; it is taken.
    fn is_due(&mut self, access: u64, now: Nanos) -> bool {
        if let Some((next, period)) = &mut self.worker
            && *next <= now
        {
            *next = Nanos(next.0 + period.0);
            return true;
        }
        self.to_come.pop_if(|flush| flush.before <= access).is_some()
    }

    /// Removes the flushes within an access that begins after N pages have entered and left the page cache. Returns, for each flush, the
    /// number of pages that enter and leave in the access before it.
    fn within(&mut self, access: u64, entries: u64) -> Vec<u64> {
        let is_within = |flush: &mut Flush| flush.before == access + 1 && flush.entries.is_some();
        let taken = std::iter::from_fn(|| self.to_come.pop_if(is_within));
        taken.filter_map(|flush| Some(flush.entries?.saturating_sub(entries))).collect()
    }
}

/// The time of each access, spread evenly between those that are known; none passes after the last.
fn evenly(points: Vec<(u64, Nanos)>) -> impl Iterator<Item = Nanos> {
    let ends: Vec<(u64, Nanos)> = points.get(1..).unwrap_or_default().to_vec();
    let last = points.last().map_or(Nanos::ZERO, |&(_, at)| at);
    let known = points.into_iter().zip(ends).flat_map(|((first, from), (end, to))| {
        let share =
            move |access: u64| (to.0 - from.0) as u128 * u128::from(access - first) / u128::from(end - first);
        (first..end).map(move |access| Nanos(from.0 + share(access) as u64))
    });
    known.chain(std::iter::repeat(last))
}

/// The requests that a read of a file becomes.
fn pieces(op: &Op, shared: &[(String, FileId)]) -> Vec<(u32, u32)> {
    let Op::ReadFile { file, page, pages, .. } = *op else { return Vec::new() };
    let Some((path, _)) = shared.iter().find(|&&(_, known)| known == file) else { return Vec::new() };
    let end = page + u64::from(pages);
    let cut = if path == BREAK.0 { BREAK.1.clamp(page, end) } else { end };
    let pieces = [(page, cut), (cut, end)].into_iter().filter(|(first, end)| first < end);
    pieces.map(|(first, end)| (first as u32, (end - first) as u32)).collect()
}
