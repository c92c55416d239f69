//! Storage of hotness records: an array for each section of a lower tier in which a page was reported. [tiering 3.5, 3.6, 9.3]
//!
//! ```text
//!   section of 128 MiB ─▶ hot? | 64 blocks of 2 MiB: hot? | 32768 records | by block: who reported last
//! ```
//! kmigrated uses the flags: a section without one costs one check of its flag, however large the node is. The kernel has arrays for all sections of
//! a lower tier from the start, and so takes one record per page; here a section takes nothing before its first report.

use crate::pghot::record::{Layout, Record};
use crate::units::{NodeId, PAGEBLOCK_PAGES, Pfn, SECTION_FRAMES};
use std::ops::Range;

/// Blocks of a section.
const BLOCKS: usize = SECTION_FRAMES as usize / PAGEBLOCK_PAGES as usize;
/// No page of a block was reported.
const NOBODY: u8 = u8::MAX;

/// The records of a section, as wide as their layout.
enum Raw {
    Bytes(Box<[u8]>),
    Words(Box<[u32]>),
    Longs(Box<[u64]>),
}

struct Section {
    raw: Raw,
    /// By block: a record of it has become ready since it was last walked.
    hot_blocks: u64,
    /// By block: the node of its last reporter.
    reporters: Box<[u8; BLOCKS]>,
}

/// A record was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The frame of the record.
    pub pfn: Pfn,
    /// The record as it was stored before.
    pub before: u64,
    /// The record as it is stored now.
    pub after: u64,
}

/// The records of all frames of lower tiers.
pub struct Records {
    layout: Layout,
    sections: Vec<Option<Box<Section>>>,
    /// Changes since the last check; nothing if they are not checked.
    changes: Option<Vec<Change>>,
}

impl Raw {
    fn at(&self, at: usize) -> u64 {
        match self {
            Raw::Bytes(raw) => raw[at].into(),
            Raw::Words(raw) => raw[at].into(),
            Raw::Longs(raw) => raw[at],
        }
    }
}

impl Records {
    /// Nothing was reported yet.
    pub fn new(layout: Layout) -> Records {
        Records { layout, sections: Vec::new(), changes: None }
    }

    /// From now on it is noted what changes, for a check.
    pub fn watch(&mut self) {
        self.changes = Some(Vec::new());
    }

    /// Changes since the last check.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that a record is about to change.
    #[inline]
    fn note(&mut self, pfn: Pfn, after: u64) {
        if self.changes.is_none() {
            return;
        }
        let before = self.raw(pfn);
        if let Some(changes) = &mut self.changes
            && before != after
        {
            changes.push(Change { pfn, before, after });
        }
    }

    /// A frame's record as it lies there.
    fn raw(&self, pfn: Pfn) -> u64 {
        self.section(pfn).map_or(0, |section| section.raw.at(offset_of(pfn)))
    }

    /// Returns the layout of the records.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns whether nothing was ever reported.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    fn section(&self, pfn: Pfn) -> Option<&Section> {
        self.sections.get(section_of(pfn))?.as_deref()
    }

    /// A frame's record: an empty one if nothing was reported.
    pub fn get(&self, pfn: Pfn) -> Record {
        self.layout.decode(self.raw(pfn))
    }

    /// Writes a frame's record. One that has just become ready makes its block hot.
    pub fn set(&mut self, pfn: Pfn, record: Record) {
        let becomes_ready = record.ready && !self.get(pfn).ready;
        let (raw, at) = (self.layout.encode(record), offset_of(pfn));
        self.note(pfn, raw);
        let section = self.make_section(pfn);
        match &mut section.raw {
            Raw::Bytes(records) => records[at] = raw as u8,
            Raw::Words(records) => records[at] = raw as u32,
            Raw::Longs(records) => records[at] = raw,
        }
        if becomes_ready {
            section.hot_blocks |= 1 << block_of(pfn);
        }
    }

    fn make_section(&mut self, pfn: Pfn) -> &mut Section {
        let (number, layout) = (section_of(pfn), self.layout);
        if number >= self.sections.len() {
            self.sections.resize_with(number + 1, || None);
        }
        self.sections[number].get_or_insert_with(|| {
            let frames = SECTION_FRAMES as usize;
            let raw = match layout.bytes() {
                1 => Raw::Bytes(vec![0; frames].into()),
                4 => Raw::Words(vec![0; frames].into()),
                _ => Raw::Longs(vec![0; frames].into()),
            };
            Box::new(Section { raw, hot_blocks: 0, reporters: Box::new([NOBODY; BLOCKS]) })
        })
    }

    /// Forgets what was reported of a frame: its page has gone.
    #[inline]
    pub fn clear(&mut self, pfn: Pfn) {
        let at = offset_of(pfn);
        self.note(pfn, 0);
        if let Some(Some(section)) = self.sections.get_mut(section_of(pfn)) {
            match &mut section.raw {
                Raw::Bytes(raw) => raw[at] = 0,
                Raw::Words(raw) => raw[at] = 0,
                Raw::Longs(raw) => raw[at] = 0,
            }
        }
    }

    /// Takes a frame's record if it is ready, and leaves an empty one.
    pub fn take(&mut self, pfn: Pfn) -> Option<Record> {
        let record = self.get(pfn);
        if record.ready {
            self.clear(pfn);
        }
        record.ready.then_some(record)
    }

    /// Notes from which node a frame's block was reported last.
    pub fn set_reporter(&mut self, pfn: Pfn, nid: NodeId) {
        self.make_section(pfn).reporters[block_of(pfn)] = nid.0;
    }

    /// From which node a frame's block was reported last.
    pub fn reporter(&self, pfn: Pfn) -> Option<NodeId> {
        let nid = self.section(pfn)?.reporters[block_of(pfn)];
        (nid != NOBODY).then_some(NodeId(nid))
    }

    /// The flags of the section that holds a frame: a bit a block.
    pub fn hot_blocks(&self, pfn: Pfn) -> u64 {
        self.section(pfn).map_or(0, |section| section.hot_blocks)
    }

    /// Clears the flag of the block that holds a frame: the caller takes the ready records there.
    pub fn clear_hot(&mut self, pfn: Pfn) {
        if let Some(Some(section)) = self.sections.get_mut(section_of(pfn)) {
            section.hot_blocks &= !(1 << block_of(pfn));
        }
    }

    /// There may be more in the block: its walk goes on another time.
    pub fn set_hot(&mut self, pfn: Pfn) {
        if let Some(Some(section)) = self.sections.get_mut(section_of(pfn)) {
            section.hot_blocks |= 1 << block_of(pfn);
        }
    }

    /// Returns whether anything was ever reported in the section that holds a frame.
    pub fn has_section(&self, pfn: Pfn) -> bool {
        self.section(pfn).is_some()
    }

    /// Forgets records of the block that holds a frame which are older than half a turn of the clock, and not ready: before long they
    /// would look new.
    pub fn sweep(&mut self, pfn: Pfn, now_ms: u64) {
        let (layout, block) = (self.layout, block_frames(pfn));
        for pfn in block.map(Pfn) {
            let record = self.get(pfn);
            if !record.ready && layout.age_ms(now_ms, record.time) > layout.age_max_ms() / 2 {
                self.clear(pfn);
            }
        }
    }

    /// Bytes allocated for records.
    pub fn bytes(&self) -> u64 {
        let sections = self.sections.iter().flatten().count() as u64;
        let a_section = SECTION_FRAMES as usize * self.layout.bytes() + size_of::<Section>() + BLOCKS;
        (self.sections.len() * size_of::<Option<Box<Section>>>()) as u64 + sections * a_section as u64
    }

    /// All records that say something.
    pub fn iter(&self) -> impl Iterator<Item = (Pfn, Record)> + '_ {
        let sections = (0..).zip(&self.sections).filter(|(_, section)| section.is_some());
        let frames = sections
            .flat_map(|(number, _): (u32, _)| number * SECTION_FRAMES..(number + 1) * SECTION_FRAMES)
            .map(Pfn);
        frames.map(|pfn| (pfn, self.get(pfn))).filter(|(_, record)| *record != Record::default())
    }

    /// Panics unless every record that is ready is found by the flags.
    pub fn check_invariants(&self) {
        for (pfn, record) in self.iter().filter(|(_, record)| record.ready) {
            assert!(
                self.hot_blocks(pfn) >> block_of(pfn) & 1 == 1,
                "{pfn:?} is ready, its block is not hot: {record:?}"
            );
        }
    }
}

fn section_of(pfn: Pfn) -> usize {
    (pfn.0 / SECTION_FRAMES) as usize
}

fn offset_of(pfn: Pfn) -> usize {
    (pfn.0 % SECTION_FRAMES) as usize
}

fn block_of(pfn: Pfn) -> usize {
    offset_of(pfn) / PAGEBLOCK_PAGES as usize
}

/// The frames of the block that holds this one.
pub fn block_frames(pfn: Pfn) -> Range<u32> {
    let pages = PAGEBLOCK_PAGES as u32;
    let start = pfn.0 / pages * pages;
    start..start + pages
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 4] = [Layout::Byte, Layout::Word, Layout::Long, Layout::LongAsPosted];

    #[test]
    fn a_record_taken_leaves_nothing_and_one_not_ready_stays() {
        for layout in LAYOUTS {
            let mut records = Records::new(layout);
            assert_eq!(records.take(Pfn(40_000)), None);
            let record = Record { freq: 1, ..Record::default() };
            records.set(Pfn(40_000), record);
            assert_eq!(records.take(Pfn(40_000)), None);
            assert_eq!(records.get(Pfn(40_000)), record);
            records.set(Pfn(40_000), Record { ready: true, ..record });
            assert_eq!(records.take(Pfn(40_000)), Some(Record { ready: true, ..record }));
            assert_eq!(records.iter().count(), 0);
        }
    }

    #[test]
    fn a_section_takes_a_record_a_page_and_only_where_something_was_reported() {
        for (layout, bytes) in [(Layout::Byte, 32_768), (Layout::Word, 131_072), (Layout::Long, 262_144)] {
            let mut records = Records::new(layout);
            assert!(records.is_empty() && records.bytes() == 0);
            records.set(Pfn(9 * SECTION_FRAMES), Record { freq: 1, ..Record::default() });
            assert!((bytes..bytes + 512).contains(&records.bytes()), "{layout:?}: {}", records.bytes());
        }
    }

    #[test]
    fn flags_name_the_blocks_in_which_something_became_ready() {
        let mut records = Records::new(Layout::Byte);
        let ready = Record { freq: 2, ready: true, ..Record::default() };
        records.set(Pfn(SECTION_FRAMES), ready);
        records.set(Pfn(SECTION_FRAMES + 512 * 3 + 7), ready);
        records.set(Pfn(SECTION_FRAMES + 512 * 5), Record { freq: 1, ..Record::default() });
        records.check_invariants();
        assert_eq!(records.hot_blocks(Pfn(0)), 0);
        assert_eq!(records.hot_blocks(Pfn(SECTION_FRAMES + 99)), 0b1001);
        records.clear_hot(Pfn(SECTION_FRAMES + 512 * 3 + 9));
        assert_eq!(records.hot_blocks(Pfn(SECTION_FRAMES)), 0b0001);
    }

    #[test]
    fn a_block_remembers_who_reported_last() {
        let mut records = Records::new(Layout::Byte);
        assert_eq!(records.reporter(Pfn(3)), None);
        records.set_reporter(Pfn(3), NodeId(1));
        assert_eq!(records.reporter(Pfn(500)), Some(NodeId(1)));
        assert_eq!(records.reporter(Pfn(512)), None);
    }

    #[test]
    fn a_sweep_forgets_what_would_look_new_before_long() {
        let mut records = Records::new(Layout::Byte);
        let at = |ms| Record { freq: 1, time: Layout::Byte.time(ms), ..Record::default() };
        records.set(Pfn(1), at(0));
        records.set(Pfn(2), at(2000));
        records.set(Pfn(3), Record { ready: true, ..at(0) });
        records.set(Pfn(512), at(0));
        records.sweep(Pfn(0), 2100);
        let left: Vec<u32> = records.iter().map(|(pfn, _)| pfn.0).collect();
        assert_eq!(left, [2, 3, 512]);
    }
}
