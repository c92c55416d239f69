//! Devices that are full, and what is left of a write that has failed.
//!
//! ```text
//!   full    each file that the cache knows is suspect: a sync of it may fail, and so may whatever waits for its writes
//!   space   still suspect, as an error is reported until somebody acknowledges it
//!   healed  acknowledged and synced, within a few tries: not suspect, and the file on its device is the model's
//! ```
//! Contents are the model's all the time, and so is the length: nothing that was accepted is lost.

use std::time::Duration;

use pageout::{Error, File, Open};

use super::{Handle, Outcome, Run, kind_of};
use crate::folder;
use crate::full;
use crate::model::{PAGE, compare};

/// The first sync after an error may meet writes that were under way when the device was full.
const TRIES: u32 = 3;

impl Run<'_> {
    /// Devices are full from this byte of each file on, or have space again.
    pub(super) fn set_full(&mut self, bytes: Option<u64>) {
        full::limit(bytes);
        self.full = bytes;
        if bytes.is_some() {
            let known = self.objects.iter_mut().filter(|object| object.direct.is_some());
            known.for_each(|object| object.is_suspect = true);
        }
    }

    /// Acknowledges and syncs each file that is suspect and can be reached. It has to succeed.
    pub(super) fn heal(&mut self) -> Outcome {
        for number in 0..self.objects.len() {
            let object = &self.objects[number];
            let is_held_to_write = object.held.values().any(|&(_, writes)| writes);
            if !object.is_suspect || is_held_to_write {
                continue;
            }
            let Some(file) = self.handle_of(number)? else { continue };
            let mut tries = 0;
            loop {
                let outcome = file.acknowledge().and_then(|()| file.sync_data());
                tries += 1;
                match outcome {
                    Ok(()) => break,
                    Err(Error::Sync { .. }) if tries < TRIES => {}
                    Err(error) => {
                        let text = format!("{tries} tries to sync file {number} that has space: {error}");
                        return Err(self.failure(&format!("heal: {}", kind_of(&error)), text));
                    }
                }
            }
            self.counts.count("acknowledge, sync", true);
            let compared = self.objects[number].compare_synced();
            compared.map_err(|error| {
                self.failure("heal: the device", format!("file {number}, synced, on its device: {error}"))
            })?;
            self.objects[number].sync();
            self.objects[number].is_suspect = false;
        }
        Ok(())
    }

    /// A handle of a file: one that is open, or another one if a path leads to it.
    fn handle_of(&mut self, number: usize) -> Result<Option<File>, super::Failure> {
        let object = &self.objects[number];
        let is_it = |handle: &&Handle| handle.object == number && handle.generation == object.generation;
        if let Some(handle) = self.slots.iter().flatten().find(is_it) {
            return Ok(Some(handle.file.clone()));
        }
        if !self.paths.contains(&Some(number)) {
            return Ok(None);
        }
        let how = Open::read().buffered(!object.direct.unwrap_or(false));
        let memory = self.memory.as_ref().expect("it is there");
        let file = folder::open(memory, &object.path, how);
        file.map(Some).map_err(|error| {
            let text = format!("file {number}, which was not written, is opened: {error}");
            self.failure(&format!("heal: open: {}", kind_of(&error)), text)
        })
    }

    /// Takes what a write has left that has failed: pages from its first one on. `kept`: a page that it can't have come to, as a guard holds it.
    pub(super) fn adopt_prefix(
        &mut self,
        handle: &Handle,
        (at, buf): (u64, &[u8]),
        kept: Option<u64>,
        text: &str,
    ) -> Outcome {
        let file = &handle.file;
        let stop = kept.map_or(u64::MAX, |page| page * PAGE);
        let end = (at + buf.len() as u64).min(file.len()).min(stop);
        let mut from = at;
        while from < end {
            let to = end.min((from / PAGE + 1) * PAGE);
            let mut seen = vec![0xa5; (to - from) as usize];
            self.read_surely(file, &mut seen, from, text)?;
            if seen != buf[(from - at) as usize..(to - at) as usize] {
                break;
            }
            from = to;
        }
        let was = self.objects[handle.object].len();
        self.objects[handle.object].write(at, &buf[..(from - at) as usize]);
        let expected = self.objects[handle.object].len();
        if file.len() != expected {
            let text = format!(
                "{text}: {} bytes were written, and File::len is {}, expected {expected}; it was {was}",
                from - at,
                file.len()
            );
            return Err(self.failure("length after a write that has failed", text));
        }
        if from >= end {
            return Ok(());
        }
        let mut rest = vec![0xa5; (end - from) as usize];
        for (chunk, offset) in rest.chunks_mut(PAGE as usize).zip((from..).step_by(PAGE as usize)) {
            self.read_surely(file, chunk, offset, text)?;
        }
        compare(&rest, &self.objects[handle.object].bytes[from as usize..][..rest.len()], from).map_err(
            |error| {
                let text = format!("{text}: {} bytes were written, and behind them: {error}", from - at);
                self.failure("contents after a write that has failed", text)
            },
        )
    }

    /// Reads what is to be compared. Memory may be short for a moment, of which other operations tell.
    fn read_surely(&self, file: &File, buf: &mut [u8], at: u64, text: &str) -> Outcome {
        const TRIES: u32 = 100;
        let mut tries = 0;
        loop {
            match file.read_at(buf, at) {
                Ok(()) => return Ok(()),
                Err(Error::OutOfMemory(_)) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => {
                    let text = format!("{text}: what it has left is read: {error}");
                    return Err(self.failure("read after a write that has failed", text));
                }
            }
        }
    }
}
