//! Operations that end before the next one begins.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use pageout::{Error, Open};

use super::expected::again;
use super::{Handle, Outcome, Run, reads};
use crate::draw::filled;
use crate::folder;
use crate::memory::FILES_MAX;
use crate::model::PAGE;
use crate::operations::{BYTES_MAX, Data, How, Known, LONGEST, Op};
use crate::settings::{Avoid, avoids};

impl Run<'_> {
    pub(super) fn step(&mut self, op: &Op) -> Outcome {
        let (text, kind) = (op.to_string(), op.kind());
        match op {
            Op::Region { number, act } => self.step_of_region(*number, act, op),
            Op::Open { slot, path, how } => self.open(*slot, *path, *how),
            Op::Clone { slot, of } => {
                if let Some(handle) = self.handle(*of) {
                    self.counts.count(kind, true);
                    self.slots[*slot] = Some(handle);
                }
                Ok(())
            }
            Op::Drop { slot } => {
                if self.slots[*slot].take().is_some() {
                    self.counts.count(kind, true);
                }
                Ok(())
            }
            Op::Kernel { group, file, value } => {
                let result = match group {
                    Some(group) => match self.groups.get(*group) {
                        Some(group) => group.write(file, value),
                        None => return Ok(()),
                    },
                    None => self.memory.as_ref().expect("it is there").write(file, value),
                };
                self.check(&text, kind, result, &["ok", "File"]).map(drop)
            }
            Op::Rest { ms } => {
                std::thread::sleep(Duration::from_millis(*ms));
                Ok(())
            }
            Op::Full { bytes } => {
                self.set_full(*bytes);
                self.counts.count(kind, true);
                Ok(())
            }
            Op::Heal if self.full.is_some() => Ok(()),
            Op::Heal => self.heal(),
            Op::Rebuild => {
                if self.depth > 0 {
                    return Ok(());
                }
                self.end()?;
                self.counts.count(kind, true);
                self.build()
            }
            Op::Replace { path, data } => {
                self.make(*path, filled(data.fill, 0, data.len));
                self.counts.count(kind, true);
                Ok(())
            }
            Op::Read { slot, .. }
            | Op::Page { slot, .. }
            | Op::WithPage { slot, .. }
            | Op::Batch { slot, .. }
            | Op::Write { slot, .. }
            | Op::PageMut { slot, .. }
            | Op::SetLen { slot, .. }
            | Op::Sync { slot, .. }
            | Op::Acknowledge { slot }
            | Op::Reload { slot }
            | Op::Forget { slot, .. }
            | Op::Advise { slot, .. }
            | Op::Prefetch { slot, .. }
            | Op::Outside { slot, .. } => match self.handle(*slot) {
                Some(handle) => self.step_of(op, *slot, handle, &text),
                None => Ok(()),
            },
            Op::Hold { .. }
            | Op::HoldMut { .. }
            | Op::Scribble { .. }
            | Op::Submit { .. }
            | Op::Poll
            | Op::End { .. } => Ok(()),
        }
    }

    /// A step of a handle.
    fn step_of(&mut self, op: &Op, slot: usize, handle: Handle, text: &str) -> Outcome {
        let kind = op.kind();
        let number = handle.object;
        match op {
            Op::Read { range: (at, len), .. } => {
                let Some(allowed) = self.of_reads(&handle, &[(*at, *len)]) else { return Ok(()) };
                let mut buf = vec![0xa5; *len];
                let result = again(|| handle.file.read_at(&mut buf, *at));
                if self.check(text, kind, result, &allowed)?.is_some() && *len > 0 {
                    let expected = &self.objects[number].bytes[*at as usize..][..*len];
                    self.check_bytes(text, kind, &buf, expected, *at)?;
                }
                Ok(())
            }
            Op::Page { page, .. } | Op::WithPage { page, .. } => {
                let Some(allowed) = self.of_guard(&handle, *page) else { return Ok(()) };
                let result = match op {
                    Op::Page { .. } => again(|| handle.file.page(*page).map(|guard| guard.to_vec())),
                    _ => again(|| handle.file.with_page(*page, <[u8]>::to_vec)),
                };
                match self.check(text, kind, result, &allowed)? {
                    Some(seen) => {
                        self.check_bytes(text, kind, &seen, self.objects[number].page(*page), page * PAGE)
                    }
                    None => Ok(()),
                }
            }
            Op::Batch { ranges, .. } => {
                let Some(allowed) = self.of_reads(&handle, ranges) else { return Ok(()) };
                let mut bufs: Vec<Vec<u8>> = ranges.iter().map(|&(_, len)| vec![0xa5; len]).collect();
                let result = again(|| handle.file.read_batch(&mut reads(&mut bufs, ranges)));
                if self.check(text, kind, result, &allowed)?.is_some() {
                    for (buf, (at, _)) in bufs.iter().zip(ranges).filter(|(buf, _)| !buf.is_empty()) {
                        let expected = &self.objects[number].bytes[*at as usize..][..buf.len()];
                        self.check_bytes(text, kind, buf, expected, *at)?;
                    }
                }
                Ok(())
            }
            Op::Write { data, .. } => self.write(&handle, *data, text),
            Op::PageMut { page, data, tries, .. } => self.page_mut(&handle, *page, *data, *tries, text),
            Op::SetLen { bytes, .. } => self.set_len(&handle, *bytes, text),
            Op::Sync { all, .. } => {
                let Some(allowed) = self.of_sync(&handle) else { return Ok(()) };
                let result = if *all { handle.file.sync_all() } else { handle.file.sync_data() };
                if self.check(text, kind, result, &allowed)?.is_some() {
                    self.compare_synced(number, text, kind)?;
                    self.objects[number].is_suspect = self.full.is_some();
                }
                Ok(())
            }
            Op::Acknowledge { .. } => {
                let allowed = if self.is_forgotten(&handle) { ["Forgotten"] } else { ["ok"] };
                let result = handle.file.acknowledge();
                self.check(text, kind, result, &allowed).map(drop)
            }
            Op::Reload { .. } => {
                let object = &self.objects[number];
                if object.pendings > 0 && !object.is_written && avoids(Avoid::PendingPins) {
                    return Ok(());
                }
                let allowed = self.of_taking(&handle);
                let result = handle.file.reload();
                if self.check(text, kind, result, &allowed)?.is_none() {
                    return Ok(());
                }
                // What was not synced may be there or not.
                let device = self.objects[number].compare_unsynced();
                let device =
                    device.map_err(|error| self.failure("reload: the device", format!("{text}: {error}")))?;
                self.objects[number].replace(device);
                Ok(())
            }
            Op::Forget { discards, .. } => {
                let is_going = !self.is_forgotten(&handle);
                if is_going && self.has_mut(&handle) && !self.may_wait_for_own() {
                    return Ok(());
                }
                if is_going && self.objects[number].pendings > 0 && avoids(Avoid::ForgetOpen) {
                    return Ok(());
                }
                let mut allowed = self.of_taking(&handle);
                if is_going && self.objects[number].is_suspect && !discards {
                    allowed.push("Sync: EFBIG");
                }
                self.slots[slot] = None;
                let mut result =
                    if *discards { handle.file.forget_and_discard() } else { handle.file.forget() };
                if matches!(result, Err(Error::Io { op: "forgetting", .. })) && avoids(Avoid::ForgetOpen) {
                    // All is done by then.
                    result = Ok(());
                }
                if self.check(text, kind, result, &allowed)?.is_none() {
                    return Ok(());
                }
                if !discards {
                    self.compare_synced(number, text, kind)?;
                    self.objects[number].forget();
                    return Ok(());
                }
                // What was not synced may be there or not.
                let device = self.objects[number].compare_unsynced();
                let device = device.map_err(|error| {
                    self.failure(&format!("{kind}: the device"), format!("{text}: {error}"))
                })?;
                self.objects[number].forget();
                self.objects[number].replace(device);
                Ok(())
            }
            Op::Advise { advice, start, end, .. } => {
                let result = || handle.file.advise(*advice, *start..*end);
                self.advise(&handle, *start..*end, text, kind, &result)
            }
            Op::Prefetch { start, end, .. } => {
                let result = || handle.file.prefetch(*start..*end);
                self.advise(&handle, *start..*end, text, kind, &result)
            }
            Op::Outside { data, bytes, .. } => self.outside(&handle, *data, *bytes, text),
            _ => unreachable!("it is of no handle"),
        }
    }

    fn compare_synced(&mut self, number: usize, text: &str, kind: &'static str) -> Outcome {
        let compared = self.objects[number].compare_synced();
        compared.map_err(|error| {
            self.failure(
                &format!("{kind}: the device"),
                format!("after {text} the file on its device: {error}"),
            )
        })?;
        self.objects[number].sync();
        Ok(())
    }

    fn open(&mut self, slot: usize, path: usize, mut how: How) -> Outcome {
        let kind = "open";
        how.buffered |= !folder::has_direct();
        let known = self.paths[path].and_then(|object| self.objects[object].direct);
        if let Some(is_direct) = known
            && avoids(Avoid::Mixed)
        {
            how.buffered = !is_direct;
        }
        let of = self.paths[path].map(|object| &self.objects[object]);
        if of.is_some_and(|of| of.pendings > 0 && !of.is_written) && avoids(Avoid::PendingPins) {
            how.writes = false;
        }
        let is_there = self.paths[path].is_some();
        let allowed = if is_there || how.writes && how.creates { ["ok"] } else { ["Io"] };
        let mut open = if how.writes { Open::read_write().create(how.creates) } else { Open::read() };
        if how.random {
            open = open.random();
        }
        if how.stable {
            open = open.stable_writes(true);
        }
        let group = how.group.filter(|&group| group < self.groups.len());
        if let Some(group) = group {
            open = open.group(&self.groups[group]);
        }
        let name = self.folder.path(&format!("file-{path}"));
        let result =
            folder::open(self.memory.as_ref().expect("it is there"), &name, open.buffered(how.buffered));
        let Some(file) = self.check(&format!("open(file {path}: {how})"), kind, result, &allowed)? else {
            return Ok(());
        };
        if !is_there {
            self.adopt(path, Vec::new());
        }
        let number = self.paths[path].expect("it is there now");
        let object = &mut self.objects[number];
        object.direct = Some(object.direct.unwrap_or(!how.buffered));
        object.is_written |= how.writes;
        object.is_stable |= how.writes && how.stable;
        object.is_suspect |= self.full.is_some();
        let generation = object.generation;
        self.slots[slot] = Some(Handle { file, object: number, generation, writes: how.writes, group });
        Ok(())
    }

    fn write(&mut self, handle: &Handle, data: Data, text: &str) -> Outcome {
        self.pages_written = (data.len as u64).div_ceil(PAGE) + u64::from(!data.at.is_multiple_of(PAGE));
        let bytes = self.objects[handle.object].len_of(handle.generation);
        if self.avoids_holes() && data.at <= LONGEST && data.at > bytes.next_multiple_of(PAGE) {
            return Ok(());
        }
        let end = data.at.checked_add(data.len as u64);
        let is_far = end.is_none_or(|end| end > LONGEST);
        if is_far && avoids(Avoid::NearMax) && end.is_none_or(|end| end > 1 << 60) {
            return Ok(());
        }
        let allowed = match end {
            _ if !handle.writes => vec!["ReadOnly"],
            Some(_) if data.len == 0 => vec!["ok"],
            None => vec!["TooLong"],
            Some(end) if end > BYTES_MAX => vec!["TooLong"],
            Some(_) if self.is_forgotten(handle) => vec!["Forgotten"],
            // The cache forgets files without handles first.
            Some(end) if end > FILES_MAX && avoids(Avoid::ForgetOpen) => return Ok(()),
            Some(end) if end > FILES_MAX => vec!["TooManyFiles"],
            Some(end) if end > LONGEST => return Ok(()),
            Some(end) => match self.of_writes(handle, data.at / PAGE, end.div_ceil(PAGE)) {
                Some(allowed) => allowed,
                None => return Ok(()),
            },
        };
        let buf = filled(data.fill, data.at, data.len);
        let result = again(|| handle.file.write_at(&buf, data.at));
        let is_pinned = matches!(result, Err(Error::Pinned { .. }));
        if self.check(text, "write_at", result, &allowed)?.is_some() {
            self.objects[handle.object].write(data.at, &buf);
            return Ok(());
        }
        let Some(end) = end.filter(|&end| end <= LONGEST && handle.writes && !self.is_forgotten(handle))
        else {
            return Ok(());
        };
        let pages = data.at / PAGE..end.div_ceil(PAGE);
        let kept = self.objects[handle.object].held.range(pages).next().map(|(&page, _)| page);
        let before = self.objects[handle.object].mark();
        self.adopt_prefix(handle, (data.at, &buf), kept, text)?;
        let written = self.objects[handle.object].written_since(before);
        let reached = kept.map_or(end, |page| (page * PAGE).max(data.at)) - data.at;
        if is_pinned && written != reached {
            let text =
                format!("{text}: {written} bytes were written, expected {reached}, up to the held page");
            return Err(self.failure("write up to a held page", text));
        }
        Ok(())
    }

    fn page_mut(&mut self, handle: &Handle, page: u64, data: Data, tries: bool, text: &str) -> Outcome {
        let kind = if tries { "try_page_mut" } else { "page_mut" };
        let bytes = self.objects[handle.object].len_of(handle.generation);
        let is_held = self.objects[handle.object].held.contains_key(&page);
        let mut allowed = if !handle.writes {
            vec!["ReadOnly"]
        } else if page >= bytes.div_ceil(PAGE) {
            vec!["BeyondEnd"]
        } else if tries && is_held && !self.is_forgotten(handle) {
            vec!["ok", "Pinned", if self.may_fail() { "Io: EFBIG" } else { "ok" }]
        } else {
            match self.of_writes(handle, page, page + 1) {
                Some(allowed) => allowed,
                None => return Ok(()),
            }
        };
        if allowed.contains(&"ok") && self.are_many(self.guards) {
            allowed.push("Pinned");
        }
        let result =
            again(
                || if tries { handle.file.try_page_mut(page) } else { handle.file.page_mut(page).map(Some) },
            );
        let Some(guard) = self.check(text, kind, result, &allowed)? else { return Ok(()) };
        let object = &self.objects[handle.object];
        let Some(mut guard) = guard else {
            return if is_held || object.pendings > 0 || object.is_stable {
                Ok(())
            } else {
                Err(self.failure("try_page_mut: None", format!("{text} is None, and nobody holds the page")))
            };
        };
        if is_held {
            return Err(self.failure(
                &format!("{kind}: a held page"),
                format!("{text} is Ok, and this thread holds the page"),
            ));
        }
        self.check_bytes(text, kind, &guard, object.page(page), page * PAGE)?;
        let skip = (data.at as usize).min(guard.len());
        let len = data.len.min(guard.len() - skip);
        let at = page * PAGE + skip as u64;
        let buf = filled(data.fill, at, len);
        guard[skip..skip + len].copy_from_slice(&buf);
        drop(guard);
        self.objects[handle.object].write(at, &buf);
        Ok(())
    }

    fn set_len(&mut self, handle: &Handle, bytes: u64, text: &str) -> Outcome {
        let object = &self.objects[handle.object];
        let is_cut = bytes < object.len();
        if bytes > 1 << 60 && avoids(Avoid::NearMax) {
            return Ok(());
        }
        if is_cut && self.has_mut(handle) && avoids(Avoid::HeldNeighbours) {
            return Ok(());
        }
        let mut allowed = if !handle.writes {
            vec!["ReadOnly"]
        } else if bytes > BYTES_MAX {
            vec!["TooLong"]
        } else if self.is_forgotten(handle) {
            vec!["Forgotten"]
        } else if bytes > FILES_MAX && avoids(Avoid::ForgetOpen) {
            // The cache forgets files without handles first.
            return Ok(());
        } else if bytes > FILES_MAX {
            vec!["TooManyFiles"]
        } else if bytes > LONGEST {
            return Ok(());
        } else if is_cut && object.held.range(bytes / PAGE..).next().is_some() {
            vec!["Pinned"]
        } else if is_cut && (object.pendings > 0 || self.may_be_pinned(handle)) {
            vec!["ok", "Pinned"]
        } else {
            vec!["ok"]
        };
        if allowed.contains(&"ok") && self.full.is_some_and(|limit| bytes > limit) {
            allowed.push("Io: EFBIG");
        }
        let result = again(|| handle.file.set_len(bytes));
        let is_full = matches!(result, Err(Error::Io { .. }));
        let is_done = self.check(text, "set_len", result, &allowed)?.is_some();
        // A file that gets shorter is so before its device has its length.
        if is_done || is_full && is_cut {
            self.objects[handle.object].set_len(bytes);
        }
        Ok(())
    }

    fn advise(
        &mut self,
        handle: &Handle,
        range: std::ops::Range<u64>,
        text: &str,
        kind: &'static str,
        act: &dyn Fn() -> Result<(), Error>,
    ) -> Outcome {
        let (start, end) = (range.start, range.end);
        let bytes = self.objects[handle.object].len_of(handle.generation);
        let is_reversed = start > end;
        if is_reversed && avoids(Avoid::Reversed) {
            return Ok(());
        }
        let allowed: &[&str] = if end > bytes {
            &["BeyondEnd"]
        } else if is_reversed {
            &["Config"]
        } else if self.is_forgotten(handle) {
            if start / PAGE == end.div_ceil(PAGE) { &["Forgotten", "ok"] } else { &["Forgotten"] }
        } else {
            &["ok"]
        };
        self.check(text, kind, act(), allowed).map(drop)
    }

    /// Writes the file past the cache, between a sync and a reload.
    fn outside(&mut self, handle: &Handle, data: Data, bytes: u64, text: &str) -> Outcome {
        let kind = "written by another";
        let object = &self.objects[handle.object];
        if !object.is_written && avoids(Avoid::ReloadIdentity) {
            return Ok(());
        }
        if self.may_be_pinned(handle) || self.may_fail() {
            return Ok(());
        }
        let is_in_use = self.is_forgotten(handle) || !object.held.is_empty() || object.pendings > 0;
        if is_in_use || bytes > LONGEST || data.at.saturating_add(data.len as u64) > LONGEST {
            return Ok(());
        }
        let result = handle.file.sync_data();
        self.check(text, kind, result, &["ok"])?;
        self.compare_synced(handle.object, text, kind)?;
        let object = &mut self.objects[handle.object];
        object.outside.write_all_at(&filled(data.fill, data.at, data.len), data.at).unwrap();
        object.outside.set_len(bytes).unwrap();
        object.outside.sync_all().unwrap();
        let device = object.on_device();
        let result = handle.file.reload();
        self.check(text, kind, result, &["ok"])?;
        self.objects[handle.object].replace(device);
        Ok(())
    }
}
