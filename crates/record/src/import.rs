//! Events that another tool wrote as text: the same accesses come of them as of a recording.

use pageout_workload::Access;

use crate::collect::Collector;
use crate::event::{Event, FileKey, KNOWN, What};
use crate::manifest::{Channel, Sums};

/// Bytes of the pages that offsets are turned into.
const PAGE: u64 = 4096;

/// Takes events as text in, gives accesses out.
#[derive(Debug)]
pub struct Importer {
    collector: Collector,
    /// Events of the page cache whose fields could not be read.
    pub unread: u64,
}

impl Importer {
    /// A reader that interprets insertions as accesses if `insertions_alone`: then no better data are available.
    pub fn new(insertions_alone: bool) -> Importer {
        Importer { collector: Collector::new(insertions_alone, 1), unread: 0 }
    }

    /// Takes an event in, if it is one of the page cache; appends what it accesses to `out`.
    pub fn take(&mut self, time_ns: u64, pid: u32, name: &str, fields: &str, out: &mut Vec<Access>) {
        let known = KNOWN.iter().find(|known| known.name.rsplit('/').next() == Some(name));
        let Some(what) = known.map(|known| known.what) else { return };
        match event(time_ns, pid, name, what, fields) {
            Some(event) => self.collector.take(&event, out),
            None => self.unread += 1,
        }
    }

    /// Returns the sums of all events.
    pub fn sums(&self) -> Sums {
        self.collector.sums
    }

    /// Names of the objects so far: device and inode, as the text has no names.
    pub fn names(&self) -> Vec<String> {
        let name = |&(file, channel): &(usize, Channel)| {
            let key = self.collector.files[file].key;
            let (major, minor) = key.major_minor();
            let mapped = if channel == Channel::Mapped { " (mapped)" } else { "" };
            format!("{major}:{minor} inode {}{mapped}", key.inode)
        };
        self.collector.objects.iter().map(name).collect()
    }
}

fn event(time_ns: u64, pid: u32, name: &str, mut what: What, fields: &str) -> Option<Event> {
    let number = |key: &str| value(fields, key)?.parse::<u64>().ok();
    let file = match what {
        what if what.is_of_no_file() => FileKey::default(),
        _ => {
            let (major, minor) = value(fields, "dev")?.split_once([':', ','])?;
            let inode = value(fields, "ino")?;
            // Events of the page cache tell it in hexadecimal, file systems in decimal.
            let inode = match name.starts_with("mm_filemap") {
                true => u64::from_str_radix(inode.trim_start_matches("0x"), 16).ok()?,
                false => inode.parse().ok()?,
            };
            FileKey { dev: major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?, inode }
        }
    };
    let mut bytes = [0; 2];
    let (first, last) = match &mut what {
        What::Read | What::FaultAround => {
            let (from, to) = value(fields, "ofs")?.split_once('-')?;
            (from.parse::<u64>().ok()? / PAGE, to.parse::<u64>().ok()? / PAGE)
        }
        What::Fault => (number("ofs")? / PAGE, number("ofs")? / PAGE),
        What::Insertion { order } | What::Eviction { order } => {
            *order = number("order").unwrap_or(0).min(30) as u8;
            let first = number("ofs")? / PAGE;
            (first, first.checked_add((1 << *order) - 1)?)
        }
        What::Write => {
            let from = number("pos")?;
            let to = from.checked_add(number("len")?.max(1))?;
            bytes = [from, to];
            (from / PAGE, (to - 1) / PAGE)
        }
        What::ReclaimEnd => (number("nr_reclaimed")?, 0),
        What::InodeGone => (number("nlink")?, 0),
        What::UserFault => {
            (u64::from_str_radix(value(fields, "error_code")?.strip_prefix("0x")?, 16).ok()?, 0)
        }
        What::Sync | What::ReclaimBegin | What::DirectReclaimBegin | What::DirectReclaimEnd => (0, 0),
    };
    Some(Event { time_ns, pid, what, file, first, last: last.max(first), bytes })
}

/// The word behind `key=` or `key `.
fn value<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    let mut words = fields.split_whitespace();
    while let Some(word) = words.next() {
        if word == key {
            return words.next();
        }
        if let Some(value) = word.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_tells_what_the_event_told() {
        let (mut importer, mut out) = (Importer::new(false), Vec::new());
        importer.take(
            1,
            7,
            "mm_filemap_add_to_page_cache",
            "dev 254:0 ino 1f pfn=0x51 ofs=4096 order=0",
            &mut out,
        );
        importer.take(2, 7, "mm_filemap_get_pages", "dev=254:0 ino=1f ofs=4096-12287", &mut out);
        importer.take(3, 7, "ext4_da_write_begin", "dev 254,0 ino 31 pos 4095 len 2", &mut out);
        importer.take(4, 7, "mm_filemap_get_pages", "dev=254:0 ino=zz", &mut out);
        importer.take(5, 7, "sched_switch", "anything", &mut out);
        let pages: Vec<(u64, bool)> = out.iter().map(|access| (access.page(), access.is_write())).collect();
        assert_eq!(pages, [(1, false), (2, false), (0, true), (1, true)]);
        assert_eq!((importer.sums().read_misses, importer.unread), (1, 1));
        assert_eq!(importer.names(), ["254:0 inode 31"]);
    }
}
