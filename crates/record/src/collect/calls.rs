//! Calls of read(2) and write(2): each tells its pages when it looks for them, and a long one looks several times.

use pageout_workload::Access;
use pageout_workload::trace::{FileCall, PlacedCall};

use super::Collector;
use crate::event::Event;
use crate::manifest::Channel;

impl Collector {
    pub(super) fn read(&mut self, task: usize, event: &Event, out: &mut Vec<Access>) {
        let (key, first) = (event.file, event.first);
        let last = if self.sample > 1 { first } else { event.last.max(first) };
        self.sums.sampled_long += u64::from(self.sample > 1 && event.last > first);
        let state = &mut self.tasks[task];
        let goes_on = matches!(state.read, Some((of, from, to)) if of == key && to == last && from < first && first <= to);
        state.read = Some((key, first, last));
        // What this look-up brought in: asked for, or read ahead.
        let (mut asked, mut ahead) = (0, 0);
        for (of, from, to) in state.inserted.drain(..) {
            if of == key {
                let within = (to.min(last) + 1).saturating_sub(from.max(first));
                asked += within;
                ahead += to - from + 1 - within;
            }
        }
        let file = self.file(key);
        self.files[file].read_insertions += asked + ahead;
        self.files[file].read_ahead += ahead;
        self.sums.read_misses += asked;
        self.sums.read_ahead += ahead;
        if goes_on {
            self.sums.continued += 1;
            self.read_up_to(task, file, last, out);
            return;
        }
        self.end_read(task);
        self.sums.requests += 1;
        self.sums.pages_read += last - first + 1;
        self.files[file].reads += last - first + 1;
        let requests = &mut self.files[file].requests;
        if requests.len() < 256 || requests.contains_key(&(last - first + 1)) {
            *requests.entry(last - first + 1).or_default() += 1;
        }
        self.note_first(file, first, true);
        // At the first lookup only the pages up to the first missing one are in memory.
        self.tasks[task].looked_for = (last > first).then_some((file, first + 1, last));
        self.tasks[task].read_from = first;
        self.call_of(file, first..last + 1, FileCall::Read { first, end: last + 1 });
        self.read_up_to(task, file, last, out);
    }

    /// Distributes the pages of a read, up to the end of the file. For a file that replaces a deleted one all pages are inserted before
    /// they are found: those of a long read at its later lookups, and those beyond its end never.
    fn read_up_to(&mut self, task: usize, file: usize, last: u64, out: &mut Vec<Access>) {
        let of = &self.files[file];
        // Without insertions this is unknown.
        let is_known = of.deletions > 0 && self.sums.insertions > 0;
        let end = if is_known { of.inserted_end.min(last + 1) } else { last + 1 };
        let from = self.tasks[task].read_from;
        for page in from..end {
            self.access(file, Channel::File, page, false, out);
        }
        self.tasks[task].read_from = end.max(from);
    }

    pub(super) fn write(&mut self, task: usize, event: &Event, out: &mut Vec<Access>) {
        let (key, first, last) = (event.file, event.first, event.last.max(event.first));
        let state = &mut self.tasks[task];
        state.inserted.clear();
        let goes_on = matches!(state.write, Some((of, from, to)) if of == key && to == last && from < first && first <= to);
        state.write = Some((key, first, last));
        if goes_on {
            self.sums.continued += 1;
            return;
        }
        let file = self.file(key);
        self.sums.pages_written += last - first + 1;
        self.files[file].writes += last - first + 1;
        let [from, to] = event.bytes;
        self.call_of(file, first..last + 1, FileCall::Write { from, to });
        for page in first..=last {
            self.note_first(file, page, false);
            self.access(file, Channel::File, page, true, out);
        }
    }

    /// The next accesses are those of a call for these pages. A call for a single page has a line only if its page was one of the last longer call.
    fn call_of(&mut self, file: usize, pages: std::ops::Range<u64>, call: FileCall) {
        let is_long = pages.end - pages.start > 1;
        let Some(object) = self.object(file, Channel::File) else { return };
        let last_call = &mut self.files[file].last_call;
        if is_long || last_call.contains(&pages.start) {
            *last_call = if is_long { pages } else { 0..0 };
            self.calls.push(PlacedCall { access: self.accesses, object, call });
        }
    }

    /// A read of the task is over. What it did not bring in was in memory.
    pub(super) fn end_read(&mut self, task: usize) {
        let Some((file, first, last)) = self.tasks[task].looked_for.take() else { return };
        for page in first..=last {
            self.note_first(file, page, true);
        }
    }
}
