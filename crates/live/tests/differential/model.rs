//! The model: a file is a vector of bytes, and a log of what changed since it was last known to be on its device.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

pub(crate) const PAGE: u64 = 4096;

/// A change of a file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { at: u64, bytes: Vec<u8> },
    SetLen { was: u64, bytes: u64 },
}

/// A file: an inode, whether or not a path leads to it.
pub(crate) struct Object {
    pub(crate) path: PathBuf,
    /// The file as the system has it, past the cache.
    pub(crate) outside: fs::File,
    pub(crate) bytes: Vec<u8>,
    /// Contents when they were last known to be on the device.
    synced: Vec<u8>,
    /// Changes since.
    log: Vec<Change>,
    /// Changes that were dropped from the front of the log.
    dropped: usize,
    /// Place in the log of the last sync.
    synced_at: usize,
    /// Times that it was forgotten. Handles that were opened before are of no use.
    pub(crate) generation: usize,
    /// Length when it was forgotten, by generation.
    ends: Vec<u64>,
    /// The cache knows it, and this is whether with direct I/O.
    pub(crate) direct: Option<bool>,
    /// It was opened for writing since the cache knows it.
    pub(crate) is_written: bool,
    pub(crate) is_stable: bool,
    /// Pages that guards hold: how many guards, and whether to write.
    pub(crate) held: BTreeMap<u64, (usize, bool)>,
    /// Reads in flight.
    pub(crate) pendings: usize,
    /// Some of it may not have been written, as its device was full.
    pub(crate) is_suspect: bool,
}

impl Object {
    pub(crate) fn new(path: PathBuf, outside: fs::File, bytes: Vec<u8>) -> Object {
        Object {
            path,
            outside,
            synced: bytes.clone(),
            bytes,
            log: Vec::new(),
            dropped: 0,
            synced_at: 0,
            generation: 0,
            ends: Vec::new(),
            direct: None,
            is_written: false,
            is_stable: false,
            held: BTreeMap::new(),
            pendings: 0,
            is_suspect: false,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Length as a handle of this generation sees it.
    pub(crate) fn len_of(&self, generation: usize) -> u64 {
        self.ends.get(generation).copied().unwrap_or(self.len())
    }

    /// Bytes of a page, without those behind the end.
    pub(crate) fn page(&self, page: u64) -> &[u8] {
        let start = (page * PAGE).min(self.len());
        &self.bytes[start as usize..(start + PAGE).min(self.len()) as usize]
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        if bytes.is_empty() {
            return;
        }
        if end > self.len() {
            self.log.push(Change::SetLen { was: self.len(), bytes: end });
            self.bytes.resize(end as usize, 0);
        }
        self.bytes[at as usize..end as usize].copy_from_slice(bytes);
        self.log.push(Change::Write { at, bytes: bytes.to_vec() });
    }

    pub(crate) fn set_len(&mut self, bytes: u64) {
        self.log.push(Change::SetLen { was: self.len(), bytes });
        self.bytes.resize(bytes as usize, 0);
    }

    /// All of it is on the device.
    pub(crate) fn sync(&mut self) {
        self.synced_at = self.mark();
        self.synced.clone_from(&self.bytes);
        if self.pendings == 0 {
            self.dropped = self.synced_at;
            self.log.clear();
        }
    }

    /// The cache does not know it any more.
    pub(crate) fn forget(&mut self) {
        self.ends.push(self.len());
        self.generation += 1;
        (self.direct, self.is_written, self.is_stable) = (None, false, false);
        self.is_suspect = false;
    }

    /// The file was written past the cache, and reloaded.
    pub(crate) fn replace(&mut self, bytes: Vec<u8>) {
        let was = self.len();
        self.log.push(Change::SetLen { was, bytes: 0 });
        self.log.push(Change::Write { at: 0, bytes: bytes.clone() });
        self.bytes = bytes;
        self.sync();
    }

    /// A place in the log.
    pub(crate) fn mark(&self) -> usize {
        self.dropped + self.log.len()
    }

    /// Returns true if it was made shorter since.
    pub(crate) fn was_cut_since(&self, mark: usize) -> bool {
        self.changes_since(mark)
            .iter()
            .any(|change| matches!(change, Change::SetLen { was, bytes } if bytes < was))
    }

    /// Bytes that writes have written since.
    pub(crate) fn written_since(&self, mark: usize) -> u64 {
        let changes = self.changes_since(mark).iter();
        changes
            .map(|change| if let Change::Write { bytes, .. } = change { bytes.len() as u64 } else { 0 })
            .sum()
    }

    fn changes_since(&self, mark: usize) -> &[Change] {
        &self.log[mark.saturating_sub(self.dropped).min(self.log.len())..]
    }

    /// The first byte from an offset on that is none of those that were there since a place in the log, when it was `base`.
    pub(crate) fn never_was(&self, seen: &[u8], at: u64, base: &[u8], mark: usize) -> Option<usize> {
        let base_at = |index: usize| base.get(index).copied().unwrap_or(0);
        let mut fits: Vec<bool> =
            seen.iter().enumerate().map(|(index, &byte)| byte == base_at(index)).collect();
        if fits.iter().all(|&fits| fits) {
            return None;
        }
        for change in self.changes_since(mark) {
            match change {
                Change::Write { at: start, bytes } => {
                    let from = (*start).max(at);
                    let to = (start + bytes.len() as u64).min(at + seen.len() as u64);
                    for offset in from..to.max(from) {
                        let index = (offset - at) as usize;
                        fits[index] |= seen[index] == bytes[(offset - start) as usize];
                    }
                }
                Change::SetLen { was, bytes } => {
                    let from = (*was).min(*bytes).max(at);
                    for offset in from..(at + seen.len() as u64).max(from) {
                        let index = (offset - at) as usize;
                        fits[index] |= seen[index] == 0;
                    }
                }
            }
        }
        fits.iter().position(|&fits| !fits)
    }

    /// The file as the system has it.
    pub(crate) fn on_device(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.outside.metadata().unwrap().size() as usize];
        self.outside.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// What is wrong with the file as the system has it after a sync.
    pub(crate) fn compare_synced(&self) -> Result<(), String> {
        compare(&self.on_device(), &self.bytes, 0)
    }

    /// What is wrong with the file as the system has it, where some of what was written since the last sync may be there.
    pub(crate) fn compare_unsynced(&self) -> Result<Vec<u8>, String> {
        let device = self.on_device();
        let len = device.len() as u64;
        let lens = self.changes_since(self.synced_at).iter().filter_map(|change| match change {
            Change::SetLen { bytes, .. } => Some(*bytes),
            Change::Write { .. } => None,
        });
        let lens: Vec<u64> = lens.chain([self.synced.len() as u64]).collect();
        let most = lens.iter().max().unwrap().next_multiple_of(PAGE);
        if !(lens.contains(&len) || len.is_multiple_of(PAGE) && len <= most) {
            return Err(format!(
                "the file has {len} bytes on its device, expected one of {lens:?}, or whole pages"
            ));
        }
        match self.never_was(&device, 0, &self.synced, self.synced_at) {
            Some(at) => Err(format!("byte {at} on the device is {}, which it never was", device[at])),
            None => Ok(device),
        }
    }
}

/// The first difference of what is there and what should be, from an offset of the file on.
pub(crate) fn compare(seen: &[u8], expected: &[u8], offset: u64) -> Result<(), String> {
    if seen.len() != expected.len() {
        return Err(format!("found {} bytes, expected {}", seen.len(), expected.len()));
    }
    if seen == expected {
        return Ok(());
    }
    let differs = |at: &usize| seen[*at] != expected[*at];
    let first = (0..seen.len()).find(differs).expect("they differ");
    let last = (0..seen.len()).rfind(differs).expect("they differ");
    let count = (0..seen.len()).filter(differs).count();
    let zeroes = (first..=last).filter(differs).all(|at| seen[at] == 0);
    let at = offset + first as u64;
    Err(format!(
        "{count} bytes differ, from byte {at} (page {} + {}) to byte {}: found {:?}{}, expected {:?}",
        at / PAGE,
        at % PAGE,
        offset + last as u64,
        &seen[first..(first + 8).min(seen.len())],
        if zeroes { " (all zeroes)" } else { "" },
        &expected[first..(first + 8).min(seen.len())]
    ))
}

#[test]
fn byte_that_was_never_there_is_found() {
    let path = std::env::temp_dir();
    let outside = fs::File::open(&path).unwrap();
    let mut object = Object::new(path, outside, vec![1; 100]);
    let mark = object.mark();
    object.write(50, &[2; 10]);
    object.set_len(55);
    object.write(60, &[3; 10]);
    let before = [1; 100];
    let seen = |changes: &[(usize, u8)]| {
        let mut seen = object.bytes.clone();
        changes.iter().for_each(|&(at, byte)| seen[at] = byte);
        object.never_was(&seen, 0, &before, mark)
    };
    assert_eq!(seen(&[]), None);
    // Old, new, or cut.
    assert_eq!(seen(&[(52, 1), (53, 2), (56, 0), (57, 2), (62, 1), (63, 0)]), None);
    assert_eq!(seen(&[(49, 2)]), Some(49));
    assert_eq!(seen(&[(52, 0)]), Some(52));
    assert_eq!(seen(&[(65, 2)]), Some(65));
    assert!(object.was_cut_since(mark) && !object.was_cut_since(object.mark()));
}

#[test]
fn difference_names_page_and_bytes() {
    let text = compare(&[7, 0, 7], &[7, 9, 7], 4095).unwrap_err();
    assert_eq!(
        text,
        "1 bytes differ, from byte 4096 (page 1 + 0) to byte 4096: found [0, 7] (all zeroes), expected [9, 7]"
    );
    assert!(compare(&[7], &[7, 7], 0).is_err());
}
