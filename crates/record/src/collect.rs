//! From events in order to accesses, and to other data for a twin.
//!
//! **Reads.** A read tells its range each time that it looks for pages, and a long one looks several times: `0-9`, then `4-9`. The second
//! event of a task that begins within the range before and ends where it ended is the same read going on.
//! Insertions come before the read that asked for them. Those outside of its range were read ahead. A file with many insertions of which none was
//! read ahead is one that the program reads with `FADV_RANDOM`, or whose device has no readahead.
//!
//! **Pages in memory at the start** of the recording are found by their first event. It is a read without an insertion before it or, after
//! the first page of a read, behind it; or a fault without an insertion after it, because a fault reports its page before it brings the
//! page in.
//!
//! **Mapped pages** have only faults, and the time since when the page was missed: since its eviction. A fault that finds pages nearby in
//! memory, and has no later event, found its own page among them; which page is unknown. **Writes** have their range, but not whether the
//! page was in memory.
//!
//! Other results of events have separate chapters: the [memory of files](room), and the [ends of files](ends).

mod calls; // reads and writes
mod ends; // where files are synced, truncated, deleted
mod file; // what happened to a file
mod room; // how much files had when the group was full

use std::collections::BTreeMap;

use pageout_workload::Access;
use pageout_workload::trace::{FileCall, PlacedCall};

use crate::cut::Cut;
use crate::event::{Event, FileKey, What};
use crate::manifest::{Channel, Sums};
use ends::Going;
pub(crate) use file::FileSums;
use room::Room;

/// Insertions of a task that are kept until its next read says which of them it asked for.
const PENDING_MAX: usize = 4096;

/// The bit of a page fault's error code that says that an instruction was fetched.
const FETCH: u64 = 1 << 4;

/// What is remembered of a task.
#[derive(Clone, Debug, Default)]
struct Task {
    /// The last read: its file, and its range;
    read: Option<(FileKey, u64, u64)>,
    /// its pages from here on have not been given out.
    read_from: u64,
    write: Option<(FileKey, u64, u64)>,
    /// Pages of the last read behind its first, by its file's place: in memory, unless they come in before the next.
    looked_for: Option<(usize, u64, u64)>,
    /// A fault names its page before it brings it in: the page that no event had named before, by its file's place.
    faulted: Option<(usize, u64)>,
    /// Pages that came in since.
    inserted: Vec<(FileKey, u64, u64)>,
    /// A page was missing in its page table, and nothing has yet said that a file has it.
    page_missing: bool,
    /// The last page fault fetched an instruction.
    fetches: bool,
    /// A fault has looked for pages nearby, by its file's place. One of them is its own, unless another event reports its page.
    around: Option<(usize, u64, u64)>,
    /// The page, by its file's place, that the last page fault had brought in: it looks once more then, and finds it.
    brought_in: Option<(usize, u64)>,
    /// Calls of reclaim that it is in.
    reclaims: u32,
    /// A call has ended, and nothing has come in since.
    has_reclaimed: bool,
    /// It reclaims, and is none of what is recorded.
    is_other: bool,
    /// It has used a file.
    has_accessed: bool,
    /// Pages that leave without reclaim.
    going: Option<Going>,
}

/// Takes events in, gives accesses out.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) sums: Sums,
    pub(crate) files: Vec<FileSums>,
    by_key: BTreeMap<FileKey, usize>,
    last_file: usize,
    tasks: Vec<Task>,
    by_pid: BTreeMap<u32, usize>,
    last_task: (u32, usize),
    /// Objects of the trace, by number: which file, and how it is used.
    pub(crate) objects: Vec<(usize, Channel)>,
    /// Accesses are insertions, as there is nothing better.
    insertions_alone: bool,
    /// One page of so many, a power of two.
    sample: u64,
    pub(crate) first_ns: Option<u64>,
    pub(crate) last_ns: u64,
    /// Accesses that no trace can hold: an object or page number beyond its range.
    pub(crate) beyond: u64,
    /// Accesses given out,
    accesses: u64,
    /// and whose the last one was.
    accessed_last: Option<usize>,
    /// What was done with whole files.
    calls: Vec<PlacedCall>,
    /// Pages of mapped files that were evicted and have not come back, with the accesses before.
    evicted: BTreeMap<(usize, u64), u64>,
    /// Faults that found their page evicted: their place among the accesses, and that of the eviction.
    faults: Vec<(u64, u64)>,
    /// How much files have.
    room: Room,
}

impl Collector {
    pub(crate) fn new(insertions_alone: bool, sample: u64) -> Collector {
        Collector {
            sums: Sums::default(),
            files: Vec::new(),
            by_key: BTreeMap::new(),
            last_file: 0,
            tasks: Vec::new(),
            by_pid: BTreeMap::new(),
            last_task: (u32::MAX, 0),
            objects: Vec::new(),
            insertions_alone,
            sample,
            first_ns: None,
            last_ns: 0,
            beyond: 0,
            accesses: 0,
            accessed_last: None,
            calls: Vec::new(),
            evicted: BTreeMap::new(),
            faults: Vec::new(),
            room: Room::default(),
        }
    }

    /// Kernel threads that reclaim for all groups and report no begin of reclaim: pages that they take are never truncated. `others` do not
    /// belong to the recorded group, so its twin needs a list of the pages that they take.
    pub(crate) fn reclaim_always(&mut self, own: &[u32], others: &[u32]) {
        for &pid in own.iter().chain(others) {
            let task = self.task(pid);
            self.tasks[task].reclaims = 1;
            self.tasks[task].is_other = others.contains(&pid);
        }
    }

    fn file(&mut self, key: FileKey) -> usize {
        if self.files.get(self.last_file).is_some_and(|file| file.key == key) {
            return self.last_file;
        }
        let files = &mut self.files;
        self.last_file = *self.by_key.entry(key).or_insert_with(|| {
            files.push(FileSums::new(key));
            files.len() - 1
        });
        self.last_file
    }

    fn task(&mut self, pid: u32) -> usize {
        if self.last_task.0 == pid && !self.tasks.is_empty() {
            return self.last_task.1;
        }
        let tasks = &mut self.tasks;
        let at = *self.by_pid.entry(pid).or_insert_with(|| {
            tasks.push(Task::default());
            tasks.len() - 1
        });
        self.last_task = (pid, at);
        at
    }

    /// Takes an event in; appends what it accesses to `out`.
    pub(crate) fn take(&mut self, event: &Event, out: &mut Vec<Access>) {
        self.first_ns.get_or_insert(event.time_ns);
        self.last_ns = self.last_ns.max(event.time_ns);
        let task = self.task(event.pid);
        if self.tasks[task].is_other {
            if matches!(event.what, What::Eviction { .. }) {
                self.taken(event);
            }
            return;
        }
        let accesses = self.accesses;
        if matches!(event.what, What::Read | What::Write | What::Fault | What::UserFault) {
            self.end_fault(task);
            self.end_around(task, event, out);
        }
        if matches!(event.what, What::Write | What::Fault | What::UserFault) {
            self.end_read(task);
        }
        if !matches!(event.what, What::Eviction { .. }) {
            self.end_going(task);
        }
        match event.what {
            What::Read => self.read(task, event, out),
            What::Write => self.write(task, event, out),
            What::Fault => {
                let file = self.file(event.file);
                self.tasks[task].inserted.clear();
                self.tasks[task].page_missing = false;
                self.sums.faults += 1;
                self.files[file].faults += 1;
                self.note_mapped(task, file);
                self.tasks[task].brought_in = Some((file, event.first));
                if self.files[file].seen.insert(event.first) {
                    self.tasks[task].faulted = Some((file, event.first));
                }
                if let Some(evicted) = self.evicted.remove(&(file, event.first)) {
                    self.faults.push((self.accesses, evicted));
                }
                self.access(file, Channel::Mapped, event.first, false, out);
            }
            What::FaultAround => {
                let file = self.file(event.file);
                let task = &mut self.tasks[task];
                task.page_missing = false;
                let is_again = task
                    .brought_in
                    .is_some_and(|(of, page)| of == file && (event.first..=event.last).contains(&page));
                if !is_again {
                    task.around = Some((file, event.first, event.last));
                }
                self.sums.faults_around += 1;
            }
            What::UserFault => {
                self.sums.user_faults += 1;
                self.sums.memory_faults += u64::from(self.tasks[task].page_missing);
                self.tasks[task].page_missing = event.first & 1 == 0;
                self.tasks[task].fetches = event.first & FETCH != 0;
                self.tasks[task].brought_in = None;
            }
            What::Insertion { order } => self.insertion(task, event, order, out),
            // Shared memory and tmpfs report removals, but no insertions: they are on no device, and no other event names them.
            What::Eviction { .. }
                if event.file.major_minor().0 == 0 && !self.by_key.contains_key(&event.file) => {}
            What::Eviction { order } => {
                self.sums.evictions += 1 << order;
                self.room.left(1 << order);
                let file = self.file(event.file);
                (event.first..=event.last).for_each(|page| _ = self.files[file].brought_in.remove(page));
                if self.tasks[task].reclaims == 0 {
                    self.truncation(task, event);
                } else {
                    self.eviction(event);
                }
            }
            What::InodeGone if event.first == 0 => self.deletion(task, event.file),
            What::InodeGone => self.inode_reclaim(event.file),
            What::Sync => {
                let file = self.file(event.file);
                self.files[file].syncs += 1;
                self.sums.syncs += 1;
                self.call(file, self.accesses, FileCall::Sync);
            }
            What::ReclaimBegin => {
                self.sums.reclaim_calls += 1;
                self.tasks[task].reclaims += 1;
                self.room.is_full(self.accesses);
            }
            What::ReclaimEnd => {
                self.sums.reclaimed += event.first;
                self.tasks[task].has_reclaimed = true;
                self.end_reclaim(task);
            }
            What::DirectReclaimBegin => self.tasks[task].reclaims += 1,
            What::DirectReclaimEnd => self.end_reclaim(task),
        }
        if self.accesses > accesses && self.accessed_last != Some(task) {
            self.accessed_last = Some(task);
            self.sums.turns += 1;
            self.sums.tasks += u64::from(!std::mem::replace(&mut self.tasks[task].has_accessed, true));
        }
    }

    /// A fault of the task is over. What it did not bring in was in memory.
    fn end_fault(&mut self, task: usize) {
        if let Some((file, page)) = self.tasks[task].faulted.take() {
            self.files[file].resident.insert(page);
            self.sums.resident_at_start += 1;
        }
    }

    /// A fault of the task that looked for pages nearby has ended. Unless it now reports a missing page, one of them was its own: the first
    /// without a known removal.
    fn end_around(&mut self, task: usize, event: &Event, out: &mut Vec<Access>) {
        let Some((file, first, last)) = self.tasks[task].around.take() else { return };
        let is_lacked = event.what == What::Fault
            && self.files[file].key == event.file
            && (first..=last).contains(&event.first);
        if is_lacked {
            return;
        }
        self.note_mapped(task, file);
        if self.files[file].deletions == 0 {
            (first..=last).for_each(|page| _ = self.files[file].nearby.insert(page));
        }
        let found = (first..=last).find(|&page| !self.evicted.contains_key(&(file, page)));
        self.access(file, Channel::Mapped, found.unwrap_or(first), false, out);
    }

    /// A fault of the task has a page of the file mapped.
    fn note_mapped(&mut self, task: usize, file: usize) {
        self.files[file].mapped += 1;
        self.files[file].fetches += u64::from(self.tasks[task].fetches);
    }

    /// No event follows.
    pub(crate) fn finish(&mut self) {
        for task in 0..self.tasks.len() {
            self.end_fault(task);
            self.end_read(task);
            self.end_going(task);
            self.sums.memory_faults += u64::from(std::mem::take(&mut self.tasks[task].page_missing));
        }
        self.room.finish();
        // A truncation is reported at its end, with the place where it began.
        self.calls.sort_by_key(|call| call.access);
    }

    /// A fault that reads, reads N pages around its own, as far as they are missing.
    pub(crate) fn read_around(&mut self, file: usize, window: u64) {
        self.sums.resident_at_start += self.files[file].read_around(window);
    }

    /// A file has so many pages: reads that asked for more found none behind.
    pub(crate) fn end_of_file(&mut self, file: usize, pages: u64) {
        self.sums.resident_at_start -= self.files[file].end_at(pages);
    }

    /// Accesses beyond the ends of files have been removed from the trace: the numbers of requested pages decrease, and places move.
    pub(crate) fn cut(&mut self, cut: &Cut) {
        for (&(file, _), &pages) in self.objects.iter().zip(&cut.by_object) {
            self.sums.pages_read -= pages;
            self.files[file].reads -= pages;
        }
        self.accesses -= cut.count();
        self.calls.iter_mut().for_each(|call| call.access = cut.place(call.access));
        for (fault, evicted) in &mut self.faults {
            (*fault, *evicted) = (cut.place(*fault), cut.place(*evicted));
        }
        self.room.move_places(|access| cut.place(access));
    }

    /// A task whose call had begun before the recording is in none.
    fn end_reclaim(&mut self, task: usize) {
        let reclaims = &mut self.tasks[task].reclaims;
        *reclaims = reclaims.saturating_sub(1);
    }

    /// A folio is evicted. For a mapped file the next fault shows how long it was missed.
    fn eviction(&mut self, event: &Event) {
        let file = self.file(event.file);
        if self.files[file].object_of(Channel::Mapped).is_some() {
            self.evicted.extend((event.first..=event.last).map(|page| ((file, page), self.accesses)));
        }
    }

    /// Faults that found their page evicted, in order: their place among the accesses, and that of the eviction.
    pub(crate) fn faults(&self) -> &[(u64, u64)] {
        &self.faults
    }

    /// Pages that files had when the group was full, less those at the begin: from which access on, and how many.
    pub(crate) fn rooms(&self) -> &[(u64, i64)] {
        self.room.told()
    }

    /// What was done with whole files, in order.
    pub(crate) fn calls(&self) -> &[PlacedCall] {
        &self.calls
    }

    fn insertion(&mut self, task: usize, event: &Event, order: u8, out: &mut Vec<Access>) {
        let file = self.file(event.file);
        let pages = event.last - event.first + 1;
        self.sums.insertions += pages;
        self.sums.insertions_large += if order > 0 { pages } else { 0 };
        let of = &mut self.files[file];
        of.insertions += pages;
        of.inserted_end = of.inserted_end.max(event.last + 1);
        self.room.came(pages, self.accesses);
        for page in event.first..=event.last {
            self.sums.insertions_first += u64::from(self.files[file].seen.insert(page));
            self.files[file].brought_in.insert(page);
            if self.insertions_alone {
                self.access(file, Channel::File, page, false, out);
            }
        }
        let state = &mut self.tasks[task];
        if std::mem::take(&mut state.has_reclaimed) {
            self.sums.charged_largest = self.sums.charged_largest.max(pages);
        }
        let fault =
            state.faulted.filter(|&(of, page)| of == file && (event.first..=event.last).contains(&page));
        if let Some((file, page)) = fault {
            state.faulted = None;
            self.sums.insertions_first += 1;
            self.files[file].faulted_in.push(page);
        }
        let inserted = &mut state.inserted;
        if inserted.len() == PENDING_MAX {
            inserted.clear();
        }
        inserted.push((event.file, event.first, event.last));
    }

    /// An event names a page. If it is the page's first, and `was_there`, the page was in memory before all events.
    fn note_first(&mut self, file: usize, page: u64, was_there: bool) {
        let file = &mut self.files[file];
        if file.seen.insert(page) && was_there && file.deletions == 0 {
            file.resident.insert(page);
            self.sums.resident_at_start += 1;
        }
    }

    fn access(&mut self, file: usize, channel: Channel, page: u64, write: bool, out: &mut Vec<Access>) {
        if page >= Access::PAGES_MAX {
            self.beyond += 1;
            return;
        }
        let of = &mut self.files[file];
        of.page_last = of.page_last.max(page);
        let Some(object) = self.object(file, channel) else {
            self.beyond += 1;
            return;
        };
        self.accesses += 1;
        out.push(Access::new(object, page, write));
    }

    /// The number of a file's object; none if a trace can't have more.
    fn object(&mut self, file: usize, channel: Channel) -> Option<u32> {
        let slot = &mut self.files[file].objects[usize::from(channel == Channel::Mapped)];
        if slot.is_none() && (self.objects.len() as u64) < u64::from(Access::OBJECTS_MAX) {
            *slot = Some(self.objects.len() as u32);
            self.objects.push((file, channel));
        }
        *slot
    }

    /// Accesses to the pages that were in memory when the recording began, file by file. In which order they were used is not known.
    pub(crate) fn before(&self) -> impl Iterator<Item = Access> {
        self.files.iter().flat_map(|file| {
            let object = file.objects.iter().flatten().next().copied();
            let pages = file.resident.pages().filter(|&page| page < Access::PAGES_MAX);
            pages.filter_map(move |page| Some(Access::new(object?, page, false)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileKey = FileKey { dev: 254 << 20, inode: 7 };

    fn event(what: What, first: u64, last: u64) -> Event {
        let bytes = [first * 4096, (last + 1) * 4096];
        Event { time_ns: 1, pid: 9, what, file: FILE, first, last, bytes }
    }

    fn pages(events: &[Event]) -> (Vec<u64>, Collector) {
        let (mut collector, mut out) = (Collector::new(false, 1), Vec::new());
        events.iter().for_each(|event| collector.take(event, &mut out));
        collector.finish();
        (out.iter().map(|access| access.page()).collect(), collector)
    }

    #[test]
    fn calls_of_several_pages_are_told_before_their_accesses() {
        let (pages, collector) = pages(&[
            event(What::Read, 0, 3),
            event(What::Read, 1, 1),
            event(What::Read, 9, 9),
            event(What::Write, 5, 6),
        ]);
        assert_eq!(pages, [0, 1, 2, 3, 1, 9, 5, 6]);
        let told: Vec<String> = collector.calls().iter().map(PlacedCall::line).collect();
        // A page by itself is a call without a line, unless it was one of the last longer call.
        assert_eq!(told, ["0,0,read,0,4", "4,0,read,1,2", "6,0,write,20480,28672"]);
    }

    #[test]
    fn the_folio_that_reclaim_made_space_for_shows_how_full_the_group_was() {
        let (_, collector) = pages(&[
            event(What::Insertion { order: 5 }, 32, 63),
            event(What::ReclaimBegin, 0, 0),
            event(What::ReclaimEnd, 40, 0),
            event(What::Insertion { order: 3 }, 8, 15),
        ]);
        assert_eq!(collector.sums.charged_largest, 8);
    }

    #[test]
    fn a_read_that_goes_on_is_one_read() {
        let (told, collector) = pages(&[event(What::Read, 0, 9), event(What::Read, 4, 9)]);
        assert_eq!(told, (0..10).collect::<Vec<_>>());
        assert_eq!((collector.sums.requests, collector.sums.continued), (1, 1));
        // The same page twice is two reads.
        let (told, _) = pages(&[event(What::Read, 4, 4), event(What::Read, 4, 4)]);
        assert_eq!(told, [4, 4]);
        // Of another task, as well.
        let other = Event { pid: 10, ..event(What::Read, 4, 9) };
        let (told, collector) = pages(&[event(What::Read, 0, 9), other, other, event(What::Read, 0, 0)]);
        assert_eq!(told.len(), 23);
        assert_eq!((collector.sums.tasks, collector.sums.turns), (2, 3));
    }

    #[test]
    fn a_file_in_a_deleted_ones_place_is_read_as_far_as_it_goes() {
        let insertion = |first, last| event(What::Insertion { order: 0 }, first, last);
        let (told, _) = pages(&[
            event(What::Write, 0, 7),
            event(What::InodeGone, 0, 0),
            insertion(0, 1),
            event(What::Read, 0, 9),
            insertion(2, 3),
            event(What::Read, 2, 9),
            event(What::Read, 3, 5),
        ]);
        assert_eq!(told, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn insertions_are_asked_for_or_read_ahead() {
        let insertion = |page| event(What::Insertion { order: 0 }, page, page);
        let (_, collector) = pages(&[insertion(0), insertion(1), insertion(2), event(What::Read, 0, 0)]);
        assert_eq!((collector.sums.read_misses, collector.sums.read_ahead), (1, 2));
        assert_eq!(collector.sums.insertions_first, 3);
        assert_eq!(collector.sums.resident_at_start, 0);
        let (_, collector) = pages(&[event(What::Insertion { order: 2 }, 4, 7), event(What::Read, 5, 5)]);
        assert_eq!((collector.sums.insertions, collector.sums.insertions_large), (4, 4));
    }

    #[test]
    fn a_page_that_nothing_brought_in_was_there_before() {
        let insertion = event(What::Insertion { order: 0 }, 1, 1);
        let events = [event(What::Read, 0, 0), insertion, event(What::Read, 1, 1), event(What::Fault, 3, 3)];
        let (_, collector) = pages(&events);
        let before: Vec<u64> = collector.before().map(|access| access.page()).collect();
        assert_eq!(before, [0, 3]);
    }

    #[test]
    fn a_long_read_tells_that_its_pages_were_there_unless_it_brings_them_in() {
        let insertion = |page| event(What::Insertion { order: 0 }, page, page);
        let events = [
            event(What::Read, 0, 3),
            insertion(2),
            insertion(3),
            event(What::Read, 2, 3),
            event(What::Read, 8, 9),
        ];
        let (_, collector) = pages(&events);
        let before: Vec<u64> = collector.before().map(|access| access.page()).collect();
        assert_eq!(before, [0, 1, 8, 9]);
    }

    #[test]
    fn a_fault_that_brings_its_page_in_was_none_of_a_page_in_memory() {
        let reclaim = event(What::ReclaimBegin, 0, 0);
        let insertion = event(What::Insertion { order: 0 }, 3, 3);
        let (told, collector) =
            pages(&[event(What::Fault, 3, 3), reclaim, insertion, event(What::Fault, 4, 4)]);
        assert_eq!(told, [3, 4]);
        let before: Vec<u64> = collector.before().map(|access| access.page()).collect();
        assert_eq!(before, [4]);
    }

    #[test]
    fn what_a_fault_did_not_read_around_itself_was_there() {
        let insertion = |page| event(What::Insertion { order: 0 }, page, page);
        let events = [event(What::Fault, 6, 6), insertion(6), insertion(7), event(What::Fault, 6, 6)];
        let (_, mut collector) = pages(&events);
        collector.read_around(0, 8);
        collector.end_of_file(0, 9);
        let before: Vec<u64> = collector.before().map(|access| access.page()).collect();
        assert_eq!(before, [2, 3, 4, 5, 8]);
        assert_eq!(collector.sums.resident_at_start, 5);
    }

    #[test]
    fn reads_and_mappings_of_a_file_are_two_objects() {
        let (_, collector) =
            pages(&[event(What::Read, 0, 0), event(What::Fault, 3, 3), event(What::Write, 5, 6)]);
        assert_eq!(collector.objects, [(0, Channel::File), (0, Channel::Mapped)]);
        assert_eq!(collector.sums.pages_written, 2);
    }

    #[test]
    fn a_fault_that_no_file_serves_is_one_of_memory() {
        let fault = |code| event(What::UserFault, code, 0);
        // Of memory; of a file, nearby and not; a write to a page that is shared; of memory again.
        let events = [
            fault(6),
            fault(4),
            event(What::FaultAround, 0, 15),
            fault(4),
            event(What::Fault, 3, 3),
            fault(7),
            fault(6),
        ];
        let (_, collector) = pages(&events);
        assert_eq!((collector.sums.user_faults, collector.sums.memory_faults), (5, 2));
    }

    #[test]
    fn a_fault_tells_since_when_its_page_was_missed() {
        let fault = |page| event(What::Fault, page, page);
        let insertion = |page| event(What::Insertion { order: 0 }, page, page);
        let begin = event(What::ReclaimBegin, 0, 0);
        let gone = event(What::Eviction { order: 0 }, 3, 3);
        let end = event(What::ReclaimEnd, 1, 0);
        let events = [
            fault(3),
            insertion(3),
            begin,
            gone,
            end,
            fault(4),
            insertion(4),
            fault(3),
            insertion(3),
            fault(4),
        ];
        let (_, collector) = pages(&events);
        assert_eq!(collector.faults(), [(2, 1)]);
        assert_eq!((collector.sums.insertions, collector.sums.insertions_first), (3, 2));
    }

    #[test]
    fn a_fault_that_looks_nearby_and_tells_no_other_page_has_found_its_own() {
        let fetch = event(What::UserFault, 0x14, 0);
        let around = event(What::FaultAround, 16, 31);
        // The first finds its page among those nearby; the second does not, and brings it in.
        let events = [
            fetch,
            around,
            fetch,
            event(What::FaultAround, 32, 47),
            event(What::Fault, 40, 40),
            event(What::Insertion { order: 0 }, 40, 40),
            // It looks again, and finds it.
            event(What::FaultAround, 32, 47),
            event(What::UserFault, 6, 0),
        ];
        let (told, mut collector) = pages(&events);
        collector.read_around(0, 1);
        assert_eq!(told, [16, 40]);
        assert!(collector.files[0].is_executable());
        let before: Vec<u64> = collector.before().map(|access| access.page()).collect();
        assert_eq!(before, (16..32).collect::<Vec<_>>());
    }

    #[test]
    fn files_have_room_for_what_is_there_when_reclaim_begins_or_comes_before_the_next() {
        let insertion = |first, last| event(What::Insertion { order: 0 }, first, last);
        let (begin, end) = (event(What::ReclaimBegin, 0, 0), event(What::ReclaimEnd, 1, 0));
        let gone = event(What::Eviction { order: 5 }, 0, 31);
        let read = |page| event(What::Read, page, page);
        let events = [
            insertion(0, 99),
            read(0),
            // Full: 100 pages, of which 64 go, and it is full again.
            begin,
            gone,
            gone,
            end,
            read(1),
            begin,
            end,
            // Programs have ended, before files grew.
            read(2),
            insertion(100, 119),
            read(3),
            insertion(120, 159),
            read(4),
            begin,
            end,
        ];
        let (_, collector) = pages(&events);
        assert_eq!(collector.rooms(), [(1, 100), (2, 36), (3, 96), (5, 96)]);
    }

    #[test]
    fn shared_memory_that_goes_is_no_file_that_goes() {
        let gone =
            |dev| Event { file: FileKey { dev, inode: 9 }, ..event(What::Eviction { order: 0 }, 5, 5) };
        let (_, collector) = pages(&[gone(1), gone(254 << 20)]);
        assert_eq!((collector.sums.evictions, collector.files.len()), (1, 1));
    }

    #[test]
    fn a_file_that_is_deleted_ends_before_what_uses_its_inode_next() {
        let gone = event(What::Eviction { order: 0 }, 5, 5);
        let (_, collector) = pages(&[
            event(What::Write, 5, 5),
            event(What::Sync, 0, 0),
            event(What::InodeGone, 0, 0),
            gone,
            event(What::Write, 5, 5),
        ]);
        let told: Vec<String> = collector.calls().iter().map(PlacedCall::line).collect();
        assert_eq!(told, ["1,0,fsync", "1,0,delete"]);
        // An inode that keeps a name leaves memory, and no file ends.
        let (_, collector) = pages(&[event(What::Write, 5, 5), event(What::InodeGone, 1, 0)]);
        let told: Vec<String> = collector.calls().iter().map(PlacedCall::line).collect();
        assert_eq!(told, ["1,0,forget"]);
    }

    #[test]
    fn what_kernel_threads_reclaim_from_everybody_is_not_truncated() {
        let gone = |pid, page| Event { pid, ..event(What::Eviction { order: 0 }, page, page) };
        let elsewhere = Event { file: FileKey { inode: 9, ..FILE }, ..gone(78, 4) };
        let mut collector = Collector::new(false, 1);
        collector.reclaim_always(&[77], &[78]);
        let insertion = event(What::Insertion { order: 0 }, 0, 6);
        let events = [insertion, event(What::Read, 0, 9), gone(77, 4), gone(78, 5), gone(78, 6), elsewhere];
        for event in events.into_iter().chain([gone(78, 8), gone(78, 4)]) {
            collector.take(&event, &mut Vec::new());
        }
        collector.finish();
        let sums = collector.sums;
        // Page 8 others had brought in, page 4 was gone, and the other file is nobody's here.
        assert_eq!((sums.evictions, sums.taken, sums.truncated), (1, 2, 0));
        let told: Vec<String> = collector.calls().iter().map(PlacedCall::line).collect();
        assert_eq!(told, ["0,0,read,0,10", "10,0,evict,5,7"]);
    }

    #[test]
    fn pages_that_leave_outside_of_reclaim_are_truncated() {
        let gone = |page| event(What::Eviction { order: 0 }, page, page);
        let (begin, end) = (event(What::ReclaimBegin, 0, 0), event(What::ReclaimEnd, 1, 0));
        let read = event(What::Read, 0, 9);
        let (_, collector) = pages(&[read, begin, gone(1), end, gone(4), gone(5), read, gone(8), gone(9)]);
        let told: Vec<String> = collector.calls().iter().map(PlacedCall::line).collect();
        assert_eq!(told, ["0,0,read,0,10", "10,0,truncate,4,6", "10,0,read,0,10", "20,0,truncate,8"]);
        assert_eq!((collector.sums.evictions, collector.sums.truncated), (5, 4));
    }
}
