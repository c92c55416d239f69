//! Regions, whose model is a vector of bytes each. They are in caches with swap only, so that none of their operations runs out of memory.

use pageout::{Region, RegionAdvice, RegionOptions};

use super::{FEW_GUARDS, Outcome, Run, reads};
use crate::draw::filled;
use crate::model::PAGE;
use crate::operations::{Data, Known, Op, Range, RegionAct};

/// A region and its contents.
pub(super) struct Space {
    region: Region,
    bytes: Vec<u8>,
}

impl Space {
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl Run<'_> {
    pub(super) fn step_of_region(&mut self, number: usize, act: &RegionAct, op: &Op) -> Outcome {
        let (text, kind) = (op.to_string(), op.kind());
        if self.setup.swap.is_none() {
            return Ok(());
        }
        if let RegionAct::Make { bytes, group } = act {
            let mut options = RegionOptions::new();
            if let Some(group) = group.and_then(|group| self.groups.get(group)) {
                options = options.group(group);
            }
            let result = self.memory.as_ref().expect("it is there").region(*bytes, options);
            if let Some(region) = self.check(&text, kind, result, &["ok"])? {
                self.regions[number] = Some(Space { region, bytes: vec![0; *bytes as usize] });
            }
            return Ok(());
        }
        let Some(Space { region, bytes }) = &self.regions[number] else { return Ok(()) };
        let (region, end) = (region.clone(), bytes.len() as u64);
        match act {
            RegionAct::Make { .. } => unreachable!("it is made"),
            RegionAct::Drop => {
                self.counts.count(kind, true);
                self.regions[number] = None;
                Ok(())
            }
            RegionAct::Read(range) => {
                let mut buf = vec![0xa5; range.1];
                let result = region.read_at(&mut buf, range.0);
                if self.check(&text, kind, result, within(end, &[*range]))?.is_some() {
                    self.compare_region(number, &text, kind, &buf, range.0)?;
                }
                Ok(())
            }
            RegionAct::Batch(ranges) => {
                let mut bufs: Vec<Vec<u8>> = ranges.iter().map(|&(_, len)| vec![0xa5; len]).collect();
                let result = region.read_batch(&mut reads(&mut bufs, ranges));
                if self.check(&text, kind, result, within(end, ranges))?.is_some() {
                    for (buf, &(at, _)) in bufs.iter().zip(ranges) {
                        self.compare_region(number, &text, kind, buf, at)?;
                    }
                }
                Ok(())
            }
            RegionAct::Page { page } => {
                let at = page.saturating_mul(PAGE);
                let result = region.page(*page).map(|guard| guard.to_vec());
                if let Some(seen) = self.check(&text, kind, result, within(end, &[(at, 1)]))? {
                    let there = seen.len().min((end - at) as usize);
                    self.compare_region(number, &text, kind, &seen[..there], at)?;
                }
                Ok(())
            }
            RegionAct::Write(data) => self.write_region(number, &region, *data, &text, kind),
            RegionAct::PageMut { page, data } => {
                let at = page.saturating_mul(PAGE);
                let result = region.page_mut(*page);
                let Some(mut guard) = self.check(&text, kind, result, within(end, &[(at, 1)]))? else {
                    return Ok(());
                };
                let there = guard.len().min((end - at) as usize);
                self.compare_region(number, &text, kind, &guard[..there], at)?;
                let skip = (data.at as usize).min(there);
                let buf = filled(data.fill, at + skip as u64, data.len.min(there - skip));
                guard[skip..skip + buf.len()].copy_from_slice(&buf);
                drop(guard);
                self.change_region(number, at + skip as u64, &buf);
                Ok(())
            }
            RegionAct::SetLen { bytes } => {
                // It writes zeroes to the rest of its last page.
                if self.is_sure() {
                    let result = region.set_len(*bytes);
                    if self.check(&text, kind, result, &["ok"])?.is_some() {
                        self.regions[number].as_mut().expect("it is there").bytes.resize(*bytes as usize, 0);
                    }
                }
                Ok(())
            }
            RegionAct::Advise { advice, start, end: to } => {
                let result = region.advise(*advice, *start..*to);
                let allowed = within(end, &[(*start, to.saturating_sub(*start) as usize)]);
                if self.check(&text, kind, result, allowed)?.is_some() && *advice == RegionAdvice::DontNeed {
                    // The last page is complete even if the region ends within it.
                    let to = if *to == end { end } else { to / PAGE * PAGE };
                    let from = start.div_ceil(PAGE) * PAGE;
                    if from < to {
                        self.change_region(number, from, &vec![0; (to - from) as usize]);
                    }
                }
                Ok(())
            }
            RegionAct::Prefetch { start, end: to } => {
                let allowed = within(end, &[(*start, to.saturating_sub(*start) as usize)]);
                self.check(&text, kind, region.prefetch(*start..*to), allowed).map(drop)
            }
        }
    }

    /// Returns true if no write to a region can run out of memory in the middle.
    fn is_sure(&self) -> bool {
        let has_written = self.objects.iter().any(|object| object.held.values().any(|(_, writes)| *writes));
        !self.may_fail() && self.guards < FEW_GUARDS && !has_written
    }

    fn write_region(
        &mut self,
        number: usize,
        region: &Region,
        data: Data,
        text: &str,
        kind: &'static str,
    ) -> Outcome {
        if !self.is_sure() {
            return Ok(());
        }
        let end = self.regions[number].as_ref().map_or(0, Space::len);
        let buf = filled(data.fill, data.at, data.len);
        let result = region.write_at(&buf, data.at);
        if self.check(text, kind, result, within(end, &[(data.at, data.len)]))?.is_some() {
            self.change_region(number, data.at, &buf);
        }
        Ok(())
    }

    fn change_region(&mut self, number: usize, at: u64, bytes: &[u8]) {
        let space = self.regions[number].as_mut().expect("it is there");
        space.bytes[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn compare_region(&self, number: usize, text: &str, kind: &str, seen: &[u8], at: u64) -> Outcome {
        if seen.is_empty() {
            return Ok(());
        }
        let space = self.regions[number].as_ref().expect("it is there");
        self.check_bytes(text, kind, seen, &space.bytes[at as usize..][..seen.len()], at)
    }

    /// Reads all regions, and compares them.
    pub(super) fn compare_regions(&mut self) -> Outcome {
        for number in 0..self.regions.len() {
            let Some(Space { region, bytes }) = &self.regions[number] else { continue };
            let (region, mut seen) = (region.clone(), vec![0xa5; bytes.len()]);
            let result = region.read_at(&mut seen, 0);
            let text = format!("a read of all of region {number}, at the end");
            if self.check(&text, "region: read_at", result, &["ok"])?.is_some() {
                self.compare_region(number, &text, "region: read_at", &seen, 0)?;
            }
        }
        Ok(())
    }
}

/// What an operation on ranges of a region of so many bytes comes to.
fn within(end: u64, ranges: &[Range]) -> &'static [&'static str] {
    let is_beyond = |&(at, len): &Range| at.checked_add(len as u64).is_none_or(|to| to > end);
    if ranges.iter().any(is_beyond) { &["BeyondEnd"] } else { &["ok"] }
}
