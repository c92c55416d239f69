//! Which tracepoints are known, and what each says.

use crate::error::Error;
use crate::format::{Field, Format};

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Buffered reads.
    pub reads: bool,
    /// Faults.
    pub faults: bool,
    /// Insertions into the page cache, removals from it, and calls of reclaim.
    pub insertions: bool,
    /// Buffered writes, and fsync.
    pub writes: bool,
    /// Every page fault of programs, which tells first touches of anonymous memory apart from other faults.
    pub touches: bool,
}

impl Kinds {
    /// All that a twin needs. Touches are not among them: they cost a load of many short processes 10 % of its CPU time, and only a sentence
    /// about the limits of a twin needs them. The group's `pgfault` counts all faults anyway.
    pub const DEFAULT: Kinds =
        Kinds { reads: true, faults: true, insertions: true, writes: true, touches: false };
    /// Counters alone.
    pub const NONE: Kinds =
        Kinds { reads: false, faults: false, insertions: false, writes: false, touches: false };
}

/// A file, as events name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FileKey {
    /// The kernel's number of the device: 12 bits major, 20 bits minor.
    pub(crate) dev: u32,
    pub(crate) inode: u64,
}

impl FileKey {
    pub(crate) fn major_minor(self) -> (u32, u32) {
        (self.dev >> 20, self.dev & ((1 << 20) - 1))
    }

    /// The device number of stat(2), which has another bit layout.
    pub(crate) fn of_stat(dev: u64, inode: u64) -> FileKey {
        let major = ((dev >> 8) & 0xfff) as u32 | ((dev >> 32) as u32 & !0xfff);
        let minor = (dev & 0xff) as u32 | ((dev >> 12) as u32 & !0xff);
        FileKey { dev: major << 20 | minor, inode }
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// read(2) or its like has found or brought in pages; the range goes to the end of the request.
    Read,
    /// A mapped page was not in the page table nor in memory nearby.
    Fault,
    /// Pages that are in memory were looked for around a mapped address.
    FaultAround,
    /// A folio came into the page cache.
    Insertion { order: u8 },
    /// A folio left it.
    Eviction { order: u8 },
    /// An inode goes; the range's begin is how many names it still has, and with none the file is deleted.
    InodeGone,
    /// write(2) or its like.
    Write,
    /// fsync(2) or fdatasync(2).
    Sync,
    /// Any page fault of a program; the range's begin is its error code, whose lowest bit says that the page was mapped.
    UserFault,
    /// A call of reclaim at a group's limit began,
    ReclaimBegin,
    /// and ended; the range's begin is how many pages it freed.
    ReclaimEnd,
    /// Reclaim as the machine's memory ran short began,
    DirectReclaimBegin,
    /// and ended.
    DirectReclaimEnd,
}

impl What {
    /// Returns true if no file is named.
    pub(crate) fn is_of_no_file(self) -> bool {
        matches!(
            self,
            What::UserFault
                | What::ReclaimBegin
                | What::ReclaimEnd
                | What::DirectReclaimBegin
                | What::DirectReclaimEnd
        )
    }
}

/// An event in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) pid: u32,
    pub(crate) what: What,
    pub(crate) file: FileKey,
    /// Its pages, the last one included.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The first byte of a write, and the byte behind its last one.
    pub(crate) bytes: [u64; 2],
}

/// The form in which an event reports its pages.
#[derive(Clone, Copy, Debug)]
enum Range {
    None,
    /// One page.
    Page(Field),
    /// From one page to another.
    Pages(Field, Field),
    /// From a byte on, and how many.
    Bytes(Field, Field),
    /// A folio of `1 << order` pages.
    Folio(Field, Option<Field>),
    /// An invalid page number.
    Number(Field),
}

/// A tracepoint that is read.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    id: u16,
    what: What,
    pid: Field,
    file: Option<(Field, Field)>,
    range: Range,
}

/// A tracepoint that may be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Its group and name, as below `events/`.
    pub(crate) name: &'static str,
    pub(crate) what: What,
    /// The kind of events that asks for it.
    pub(crate) kind: Kind,
}

/// What `--events` chooses among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reads,
    Faults,
    Insertions,
    Writes,
    Touches,
}

impl Kind {
    pub(crate) fn is_in(self, kinds: Kinds) -> bool {
        match self {
            Kind::Reads => kinds.reads,
            Kind::Faults => kinds.faults,
            Kind::Insertions => kinds.insertions,
            Kind::Writes => kinds.writes,
            Kind::Touches => kinds.touches,
        }
    }
}

macro_rules! known {
    ($($kind:ident $what:expr, $name:literal;)*) => {
        &[$(Known { name: $name, what: $what, kind: Kind::$kind }),*]
    };
}

/// Tracepoints by the kind of events. Each file system has its own write events; a kernel has those of the file systems that it knows.
pub(crate) const KNOWN: &[Known] = known! {
    Reads What::Read, "filemap/mm_filemap_get_pages";
    Faults What::Fault, "filemap/mm_filemap_fault";
    Faults What::FaultAround, "filemap/mm_filemap_map_pages";
    Insertions What::Insertion { order: 0 }, "filemap/mm_filemap_add_to_page_cache";
    Insertions What::Eviction { order: 0 }, "filemap/mm_filemap_delete_from_page_cache";
    Insertions What::ReclaimBegin, "vmscan/mm_vmscan_memcg_reclaim_begin";
    Insertions What::ReclaimEnd, "vmscan/mm_vmscan_memcg_reclaim_end";
    Insertions What::DirectReclaimBegin, "vmscan/mm_vmscan_direct_reclaim_begin";
    Insertions What::DirectReclaimEnd, "vmscan/mm_vmscan_direct_reclaim_end";
    Writes What::Write, "ext4/ext4_da_write_begin";
    Writes What::Write, "ext4/ext4_write_begin";
    Writes What::Write, "xfs/xfs_file_buffered_write";
    Writes What::Write, "f2fs/f2fs_write_begin";
    Writes What::Sync, "ext4/ext4_sync_file_enter";
    Writes What::Sync, "xfs/xfs_file_fsync";
    Writes What::Sync, "f2fs/f2fs_sync_file_enter";
    Writes What::InodeGone, "ext4/ext4_evict_inode";
    Writes What::InodeGone, "f2fs/f2fs_evict_inode";
    Touches What::UserFault, "exceptions/page_fault_user";
};

impl Known {
    /// How it is read on this kernel, by the text of its format file.
    pub(crate) fn reader(&self, text: &str) -> Result<Reader, Error> {
        let name = self.name.replace('/', ":");
        let format = Format::parse(&name, text)?;
        let any = |names: &[&str]| names.iter().find_map(|name| format.field(name));
        let need = |names: &[&str]| match any(names) {
            Some(field) => Ok(field),
            None => format.need(&name, names[0]),
        };
        let file = match self.what {
            what if what.is_of_no_file() => None,
            _ => Some((need(&["s_dev", "dev"])?, need(&["i_ino", "ino"])?)),
        };
        let range = match self.what {
            What::Read | What::FaultAround => Range::Pages(need(&["index"])?, need(&["last_index"])?),
            What::Fault => Range::Page(need(&["index"])?),
            What::Insertion { .. } | What::Eviction { .. } => {
                Range::Folio(need(&["index"])?, any(&["order"]))
            }
            What::Write => Range::Bytes(need(&["pos", "offset"])?, need(&["len", "count"])?),
            What::ReclaimEnd => Range::Number(need(&["nr_reclaimed"])?),
            What::InodeGone => Range::Number(need(&["nlink"])?),
            What::UserFault => Range::Number(need(&["error_code"])?),
            What::Sync | What::ReclaimBegin | What::DirectReclaimBegin | What::DirectReclaimEnd => {
                Range::None
            }
        };
        Ok(Reader { id: format.id, what: self.what, pid: need(&["common_pid"])?, file, range })
    }
}

/// All tracepoints that are read, by the number that pages name them by.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    kind: Field,
    page_shift: u32,
    readers: Vec<Reader>,
}

impl Decoder {
    /// Fields of these events; `format` is that of any event, because all begin alike.
    pub(crate) fn new(format: &str, readers: Vec<Reader>, page_size: u64) -> Result<Decoder, Error> {
        let kind = Format::parse("an event", format)?.need("an event", "common_type")?;
        Ok(Decoder { kind, page_shift: page_size.trailing_zeros(), readers })
    }

    /// What these bytes say; `None` for an event that was not asked for or is shorter than its format.
    pub(crate) fn event(&self, time_ns: u64, bytes: &[u8]) -> Option<Event> {
        let id = self.kind.of(bytes)?;
        let reader = self.readers.iter().find(|reader| u64::from(reader.id) == id)?;
        let file = match reader.file {
            Some((dev, inode)) => {
                let dev = u32::try_from(dev.of(bytes)?).ok()?;
                FileKey { dev, inode: inode.of(bytes)? }
            }
            None => FileKey::default(),
        };
        let (mut what, mut written) = (reader.what, [0; 2]);
        let (first, last) = match reader.range {
            Range::None => (0, 0),
            Range::Page(page) => (page.of(bytes)?, page.of(bytes)?),
            Range::Pages(first, last) => (first.of(bytes)?, last.of(bytes)?),
            Range::Bytes(from, bytes_of) => {
                let from = from.of(bytes)?;
                let to = from.checked_add(bytes_of.of(bytes)?.max(1))?;
                written = [from, to];
                (from >> self.page_shift, (to - 1) >> self.page_shift)
            }
            Range::Folio(index, order) => {
                let first = index.of(bytes)?;
                let told = order.and_then(|order| order.of(bytes)).unwrap_or(0).min(30) as u8;
                match &mut what {
                    What::Insertion { order } | What::Eviction { order } => *order = told,
                    _ => {}
                }
                (first, first.saturating_add((1 << told) - 1))
            }
            Range::Number(number) => (number.of(bytes)?, 0),
        };
        let pid = reader.pid.of(bytes)? as u32;
        Some(Event { time_ns, pid, what, file, first, last, bytes: written })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_the_same_in_events_and_in_stat() {
        assert_eq!(FileKey::of_stat(254 << 8, 7), FileKey { dev: 254 << 20, inode: 7 });
        // 259:300, whose minor number does not fit a byte.
        let stat = 259 << 8 | (300 & 0xff) | (300 & !0xff) << 12;
        assert_eq!(FileKey::of_stat(stat, 7).major_minor(), (259, 300));
    }

    #[test]
    fn a_tracepoint_is_read_by_the_names_of_its_fields() {
        let text = "ID: 9\n field:unsigned short common_type;\toffset:0;\tsize:2;\n field:int common_pid;\toffset:4;\tsize:4;\n\
                    field:dev_t dev;\toffset:8;\tsize:4;\n field:ino_t ino;\toffset:16;\tsize:8;\n\
                    field:loff_t pos;\toffset:24;\tsize:8;\n field:unsigned int len;\toffset:32;\tsize:4;\n";
        let known = KNOWN.iter().find(|known| known.name == "ext4/ext4_da_write_begin").unwrap();
        let decoder = Decoder::new(text, vec![known.reader(text).unwrap()], 4096).unwrap();
        let mut bytes = vec![0; 36];
        bytes[0..2].copy_from_slice(&9u16.to_ne_bytes());
        bytes[4..8].copy_from_slice(&77u32.to_ne_bytes());
        bytes[16..24].copy_from_slice(&5u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&4095u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&2u32.to_ne_bytes());
        let event = decoder.event(1, &bytes).unwrap();
        assert_eq!((event.pid, event.file.inode, event.first, event.last), (77, 5, 0, 1));
        // Another event, and one that is cut.
        bytes[0] ^= 1;
        assert_eq!(decoder.event(1, &bytes), None);
        bytes[0] ^= 1;
        assert_eq!(decoder.event(1, &bytes[..35]), None);
    }
}
