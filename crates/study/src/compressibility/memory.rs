//! Page contents to compress: those of a file, or of the memory of a process that could be swapped out.
//!
//! ```text
//!   FILE ─▶ its pages, the last one filled up with zeroes as in the page cache
//!   PID  ─▶ /proc/PID/maps      mappings, and what they are
//!           /proc/PID/pagemap   which of their pages are there, and which are a file's own
//!           /proc/PID/mem       what these hold
//! ```
//! Pages that a process never touched are skipped: reading them would only find zeroes. Clean and shared pages of files are not swapped
//! out, so they are skipped too. Shared memory can be swapped out, and is included.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use pageout_engine::PAGE_SIZE;

use crate::error::{During, Error, bail, ensure};

/// A page.
pub(super) type Page = [u8; PAGE_SIZE as usize];

/// Pages of one kind.
pub(super) struct Region {
    /// What they are: a kind of mapping, or a file.
    pub(super) name: String,
    /// The number of pages of the region.
    pub(super) pages: u64,
    /// Pages of the region that were read, evenly spread.
    pub(super) sample: Vec<Page>,
}

/// What is to be read: a file, or the memory of a process if it is a number.
pub(super) fn regions(what: &Path, sample: u64) -> Result<Vec<Region>, Error> {
    match what.to_str().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(pid) => process(pid, sample),
        None => Ok(vec![file(what, sample)?]),
    }
}

fn file(path: &Path, sample: u64) -> Result<Region, Error> {
    let name = path.display().to_string();
    let metadata = std::fs::metadata(path).during(|| format!("cannot read {name}"))?;
    ensure!(
        metadata.is_file(),
        "{name}: found a folder or a device, expected a file\nhelp: name a file, or a process by its number"
    );
    ensure!(
        metadata.len() > 0,
        "{name}: found an empty file, expected pages of memory\nhelp: name a file, or a process by its number"
    );
    let mut file = File::open(path).during(|| format!("cannot read {name}"))?;
    let pages = metadata.len().div_ceil(PAGE_SIZE);
    let mut read = Vec::new();
    for page in spread(pages, sample) {
        let mut bytes: Page = [0; PAGE_SIZE as usize];
        file.seek(SeekFrom::Start(page * PAGE_SIZE)).during(|| format!("cannot read {name}"))?;
        read_up_to(&mut file, &mut bytes).during(|| format!("cannot read {name}"))?;
        read.push(bytes);
    }
    Ok(Region { name, pages, sample: read })
}

/// So many of the numbers below `pages` at most, evenly spread.
fn spread(pages: u64, most: u64) -> impl Iterator<Item = u64> {
    let count = pages.min(most);
    (0..count).map(move |index| (u128::from(index) * u128::from(pages) / u128::from(count)) as u64)
}

fn read_up_to(file: &mut File, mut bytes: &mut [u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match file.read(bytes) {
            Ok(0) => break,
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A bit of an entry of pagemap: the page is in memory, in swap, of a file or shared.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const SHARED_OR_FILE: u64 = 1 << 61;

fn process(pid: &str, sample: u64) -> Result<Vec<Region>, Error> {
    ensure!(
        Path::new("/proc/self/maps").exists(),
        "cannot read the memory of a process: /proc exists on Linux only"
    );
    let open = |name: &str| -> Result<File, Error> {
        let path = format!("/proc/{pid}/{name}");
        File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::Asked(format!("no process {pid}\nhelp: write ./{pid} for a file of that name")),
            ErrorKind::PermissionDenied => Error::asked(format!(
                "not permitted to read the memory of process {pid} ({path})\nhelp: run as its owner or as root; a process can also forbid tracing"
            )),
            _ => Error::Asked(format!("cannot read {path}: {error}")),
        })
    };
    let mut maps = String::new();
    // The right to read them is checked when they are read, too.
    if let Err(error) = open("maps")?.read_to_string(&mut maps) {
        match error.kind() {
            ErrorKind::PermissionDenied => bail!(
                "not permitted to read the memory of process {pid} (/proc/{pid}/maps)\nhelp: run as its \
                 owner or as root; a process can also forbid tracing"
            ),
            _ => bail!("cannot read /proc/{pid}/maps: {error}"),
        }
    }
    ensure!(
        !maps.is_empty(),
        "process {pid} has no user memory: it is a kernel thread or has ended\nhelp: name a process of a program"
    );
    let (mut pagemap, mut memory) = (open("pagemap")?, open("mem")?);
    let mut found: BTreeMap<(usize, String), Vec<u64>> = BTreeMap::new();
    for line in maps.lines() {
        let mapping =
            Mapping::parse(line).during(|| format!("/proc/{pid}/maps: cannot read the line `{line}`"))?;
        let Some((order, kind)) = mapping.kind() else { continue };
        let addresses = found.entry((order, kind)).or_default();
        addresses
            .extend(mapping.swappable(&mut pagemap).during(|| format!("cannot read /proc/{pid}/pagemap"))?);
    }
    let mut regions = Vec::new();
    for ((_, name), addresses) in found {
        let mut read = Vec::new();
        for index in spread(addresses.len() as u64, sample) {
            let mut bytes: Page = [0; PAGE_SIZE as usize];
            let at = memory.seek(SeekFrom::Start(addresses[index as usize]));
            // Pages that it has freed meanwhile are missing.
            if at.and_then(|_| memory.read_exact(&mut bytes)).is_ok() {
                read.push(bytes);
            }
        }
        if !read.is_empty() {
            regions.push(Region {
                name: format!("{name} of {pid}"),
                pages: addresses.len() as u64,
                sample: read,
            });
        }
    }
    ensure!(
        !regions.is_empty(),
        "process {pid} has no swappable page in memory or has ended\nhelp: name a process with anonymous memory"
    );
    Ok(regions)
}

/// A line of maps.
#[derive(Debug, PartialEq)]
struct Mapping<'a> {
    from: u64,
    to: u64,
    is_writable: bool,
    is_shared: bool,
    path: &'a str,
}

impl Mapping<'_> {
    fn parse(line: &str) -> Result<Mapping<'_>, Error> {
        let mut words = line.splitn(6, ' ');
        let mut word = |what: &str| words.next().during(|| format!("missing {what}"));
        let (range, permissions) = (word("range of addresses")?, word("permissions")?);
        for what in ["offset", "device", "inode"] {
            word(what)?;
        }
        let (from, to) =
            range.split_once('-').during(|| "the first word is not an address range".to_string())?;
        let address =
            |text: &str| u64::from_str_radix(text, 16).during(|| format!("`{text}` is not an address"));
        Ok(Mapping {
            from: address(from)?,
            to: address(to)?,
            is_writable: permissions.contains('w'),
            is_shared: permissions.contains('s'),
            path: words.next().unwrap_or("").trim(),
        })
    }

    /// What it is and the place of that among the others; `None` for what is never swapped out.
    fn kind(&self) -> Option<(usize, String)> {
        let is_memory =
            ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"].iter().any(|start| self.path.starts_with(start));
        let (order, kind) = match self.path {
            "[heap]" => (0, "heap"),
            "[stack]" => (1, "stack"),
            _ if self.is_shared && is_memory => (4, "shared memory"),
            path if path.is_empty() || path.starts_with("[anon:") || is_memory => (2, "anonymous memory"),
            path if path.starts_with('/') && !self.is_shared && self.is_writable => {
                (3, "private pages of files")
            }
            _ => return None,
        };
        Some((order, kind.to_string()))
    }

    /// Where its pages are that could be swapped out.
    fn swappable(&self, pagemap: &mut File) -> std::io::Result<Vec<u64>> {
        /// Entries that are read at a time.
        const CHUNK: u64 = 4096;
        let (first, last) = (self.from / PAGE_SIZE, self.to / PAGE_SIZE);
        let mut addresses = Vec::new();
        for from in (first..last).step_by(CHUNK as usize) {
            let mut entries = vec![0; (CHUNK.min(last - from) * 8) as usize];
            pagemap.seek(SeekFrom::Start(from * 8))?;
            read_up_to(pagemap, &mut entries)?;
            for (page, entry) in (from..).zip(entries.chunks_exact(8)) {
                let entry = u64::from_le_bytes(entry.try_into().expect("chunks of eight bytes"));
                let is_there = entry & (PRESENT | SWAPPED) != 0;
                if is_there && (self.is_shared || entry & SHARED_OR_FILE == 0) {
                    addresses.push(page * PAGE_SIZE);
                }
            }
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_told_apart_by_what_becomes_of_their_pages() {
        for (line, kind) in [
            ("55d0-55d1 rw-p 00000000 00:00 0                  [heap]", Some("heap")),
            ("7ffc-7ffd rw-p 00000000 00:00 0                  [stack]", Some("stack")),
            ("7f00-7f01 rw-p 00000000 00:00 0 ", Some("anonymous memory")),
            ("7f00-7f01 rw-p 00000000 00:00 0                  [anon:arena]", Some("anonymous memory")),
            (
                "7f00-7f01 rw-p 00002000 08:01 99                 /usr/lib/lib c.so",
                Some("private pages of files"),
            ),
            ("7f00-7f01 r-xp 00002000 08:01 99                 /usr/lib/libc.so", None),
            ("7f00-7f01 rw-s 00000000 00:05 7                  /dev/shm/ring", Some("shared memory")),
            ("7f00-7f01 rw-s 00000000 08:01 7                  /var/lib/data", None),
            ("7ffe-7fff r-xp 00000000 00:00 0                  [vdso]", None),
        ] {
            let mapping = Mapping::parse(line).unwrap();
            assert_eq!(mapping.kind().map(|(_, kind)| kind).as_deref(), kind, "{line}");
        }
        assert_eq!(Mapping::parse("55d0-55d1 rw-p 0 0 0 x y").unwrap().path, "x y");
        for line in ["", "55d0", "55d0 rw-p 0 0 0", "xy-zz rw-p 0 0 0", "55d0-55d1 rw-p"] {
            assert!(Mapping::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_sample_is_spread_over_all_pages() {
        assert_eq!(spread(4, 9).collect::<Vec<u64>>(), [0, 1, 2, 3]);
        assert_eq!(spread(10, 5).collect::<Vec<u64>>(), [0, 2, 4, 6, 8]);
        assert_eq!(spread(0, 5).count(), 0);
    }
}
