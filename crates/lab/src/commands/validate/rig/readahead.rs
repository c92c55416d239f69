//! A run with readahead, played call by call: the next begins when the reads of the one before are over. Time stands still, as the
//! statistics flushes are the recorded ones.

use anyhow::anyhow;
use pageout_engine::{Access, FileId, NodeId, ObjectId, Op};

use super::super::answers::REMOVED;
use super::super::object::{Kind, Object};
use super::super::reads::Reads;
use super::serve::serve_step;
use super::snapshot::Snapshot;
use super::stage::Stage;
use super::{Playable, Played, Unplayable};

/// Where the blocks of a file are in two pieces, the first page of the second one: no request goes across.
const BREAK: (&str, u64) = ("/mnt/f", 26_303);

impl Stage {
    pub(super) fn perform_calls(mut self, playable: &Playable) -> Result<Played, Unplayable> {
        let Playable { objects, sequence, flushes, .. } = playable;
        self.engine.record_page_cache_events();
        self.engine.take_page_cache_events(&mut Vec::new());
        let before = Snapshot::take(&self.engine, self.group);
        let mut flushes = flushes.unwrap_or_default().iter().copied().peekable();
        let (mut reads, mut missed, mut stream) = (Vec::new(), Vec::new(), Vec::new());
        let mut events = Vec::new();
        for (number, access) in (0..).zip(sequence.iter()) {
            while flushes.next_if(|&before| before <= number).is_some() {
                self.engine.flush_stats();
            }
            let object = &objects[access.object() as usize];
            let requests = self.call(object, ObjectId(self.first + access.object()), access.page())?;
            events.clear();
            self.engine.take_page_cache_events(&mut events);
            events.retain(|event| self.shared.iter().any(|&(_, file)| file == event.file));
            let inserted = events.iter().filter(|event| !event.removed).map(|event| event.page as u32);
            reads.push(Reads { inserted: inserted.collect(), requests });
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

/// The requests that a read of a file becomes.
fn pieces(op: &Op, shared: &[(String, FileId)]) -> Vec<(u32, u32)> {
    let Op::ReadFile { file, page, pages, .. } = *op else { return Vec::new() };
    let Some((path, _)) = shared.iter().find(|&&(_, known)| known == file) else { return Vec::new() };
    let end = page + u64::from(pages);
    let cut = if path == BREAK.0 { BREAK.1.clamp(page, end) } else { end };
    let pieces = [(page, cut), (cut, end)].into_iter().filter(|(first, end)| first < end);
    pieces.map(|(first, end)| (first as u32, (end - first) as u32)).collect()
}
