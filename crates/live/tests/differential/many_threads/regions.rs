//! Slots of regions, in caches with swap: pages of them are swapped out, compressed and discarded while threads read and write them.

use pageout::{ReadAt, Region, RegionAdvice};

use super::registers::{History, What, parse, slot_bytes};
use super::{Actor, Outcome};
use crate::draw::Draw;
use crate::model::PAGE;

/// A region, and what happened to its slots.
pub(super) struct Space {
    number: usize,
    region: Region,
    slot_bytes: u64,
    slots: Vec<History>,
}

impl Space {
    /// Each thread writes as many of its slots.
    pub(super) fn new(number: usize, region: Region, threads: usize, draw: &mut Draw) -> Space {
        let slot_bytes = draw.pick(&[64, 512, 1024, 4096]);
        let count = (region.len() / slot_bytes) as usize / threads * threads;
        let slots = (0..count).map(|_| History::new()).collect();
        Space { number, region, slot_bytes, slots }
    }

    fn offset(&self, slot: usize) -> u64 {
        slot as u64 * self.slot_bytes
    }

    /// The slots of pages.
    fn slots_of(&self, pages: std::ops::Range<u64>) -> std::ops::Range<usize> {
        let at = |page: u64| ((page * PAGE / self.slot_bytes) as usize).min(self.slots.len());
        at(pages.start)..at(pages.end)
    }

    fn check(&self, slot: usize, bytes: &[u8], begin: u64, end: u64, how: &str) -> Outcome {
        let told = |text: String| {
            let (number, offset) = (self.number, self.offset(slot));
            format!("{how}: slot {slot} of region {number} ({} bytes at {offset}): {text}", self.slot_bytes)
        };
        let seen = parse(self.number, slot, bytes).map_err(told)?;
        self.slots[slot].allows(seen, begin, end).map_err(told)
    }
}

impl Actor<'_> {
    /// One operation on a region.
    pub(super) fn act_on_region(&mut self, of: &Space) -> Outcome {
        match self.draw.below(20) {
            0..=6 => self.write_to_region(of),
            7..=8 => self.write_to_region_in_place(of),
            9..=13 => self.read_region(of),
            14..=15 => self.look_at_region(of),
            16 => self.batch_of_region(of),
            17 => self.discard(of),
            _ => self.page_out(of),
        }
    }

    fn slot_of_region(&mut self, of: &Space) -> usize {
        let count = of.slots.len() as u64;
        let most = if self.draw.once_in(2) { count.min(8 * self.threads as u64) } else { count };
        self.draw.below(most) as usize
    }

    fn own_slot_of_region(&mut self, of: &Space) -> usize {
        self.slot_of_region(of) / self.threads * self.threads + self.number
    }

    fn write_to_region(&mut self, of: &Space) -> Outcome {
        let slot = self.own_slot_of_region(of);
        self.versions += 1;
        let buf = slot_bytes(of.number, slot, self.versions, self.number as u64, of.slot_bytes as usize);
        self.worker.begins(format!("write_at of region {}, slot {slot}", of.number));
        let begin = self.now();
        of.slots[slot].begins(What::Write(self.versions), begin);
        match of.region.write_at(&buf, of.offset(slot)) {
            Ok(()) => {
                of.slots[slot].ends(begin, self.now());
                self.counts.count("region: write_at", true);
                Ok(())
            }
            Err(error) => {
                of.slots[slot].fails(begin, self.now());
                self.passes("region: write_at", error)
            }
        }
    }

    fn write_to_region_in_place(&mut self, of: &Space) -> Outcome {
        let slot = self.own_slot_of_region(of);
        self.versions += 1;
        let page = of.offset(slot) / PAGE;
        self.worker.begins(format!("page_mut({page}) of region {}, slot {slot}", of.number));
        let begin = self.now();
        let mut guard = match of.region.page_mut(page) {
            Ok(guard) => guard,
            Err(error) => return self.passes("region: page_mut", error),
        };
        self.check_page_of_region(of, page, &guard, begin, "region: page_mut")?;
        let (skip, len) = ((of.offset(slot) % PAGE) as usize, of.slot_bytes as usize);
        let write = self.now();
        of.slots[slot].begins(What::Write(self.versions), write);
        let buf = slot_bytes(of.number, slot, self.versions, self.number as u64, len);
        let half = self.draw.below(len as u64) as usize;
        guard[skip..skip + half].copy_from_slice(&buf[..half]);
        if self.draw.once_in(3) {
            std::thread::yield_now();
        }
        guard[skip + half..skip + len].copy_from_slice(&buf[half..]);
        drop(guard);
        of.slots[slot].ends(write, self.now());
        self.counts.count("region: page_mut", true);
        Ok(())
    }

    fn read_region(&mut self, of: &Space) -> Outcome {
        let slot = self.slot_of_region(of);
        self.worker.begins(format!("read_at of region {}, slot {slot}", of.number));
        let mut buf = vec![0xa5; of.slot_bytes as usize];
        let begin = self.now();
        match of.region.read_at(&mut buf, of.offset(slot)) {
            Ok(()) => {
                let end = self.now();
                self.counts.count("region: read_at", true);
                of.check(slot, &buf, begin, end, "read_at")
            }
            Err(error) => self.passes("region: read_at", error),
        }
    }

    fn look_at_region(&mut self, of: &Space) -> Outcome {
        let slot = self.slot_of_region(of);
        let page = of.offset(slot) / PAGE;
        self.worker.begins(format!("page({page}) of region {}", of.number));
        let begin = self.now();
        match of.region.page(page) {
            Ok(guard) => {
                self.check_page_of_region(of, page, &guard, begin, "region: page")?;
                if self.draw.once_in(4) {
                    std::thread::yield_now();
                }
                self.check_page_of_region(of, page, &guard, begin, "region: page, later")?;
                self.counts.count("region: page", true);
                Ok(())
            }
            Err(error) => self.passes("region: page", error),
        }
    }

    fn check_page_of_region(&self, of: &Space, page: u64, bytes: &[u8], begin: u64, how: &str) -> Outcome {
        let (end, len) = (self.now(), of.slot_bytes as usize);
        of.slots_of(page..page + 1)
            .zip(bytes.chunks_exact(len))
            .try_for_each(|(slot, bytes)| of.check(slot, bytes, begin, end, how))
    }

    fn batch_of_region(&mut self, of: &Space) -> Outcome {
        let count = self.draw.pick(&[2, 5, 12, 40]);
        let slots: Vec<usize> = (0..count).map(|_| self.slot_of_region(of)).collect();
        let mut bufs: Vec<Vec<u8>> = slots.iter().map(|_| vec![0xa5; of.slot_bytes as usize]).collect();
        self.worker.begins(format!("reads of region {}, slots {slots:?}", of.number));
        let reads = bufs.iter_mut().zip(&slots).map(|(buf, &slot)| ReadAt { buf, offset: of.offset(slot) });
        let mut reads: Vec<_> = reads.collect();
        let begin = self.now();
        let (kind, result) = match self.draw.once_in(2) {
            true => ("region: read_batch", of.region.read_batch(&mut reads)),
            false => ("region: submit", of.region.submit(reads).and_then(pageout::Pending::wait)),
        };
        let end = self.now();
        match result {
            Ok(()) => {
                self.counts.count(kind, true);
                slots.iter().zip(&bufs).try_for_each(|(&slot, buf)| of.check(slot, buf, begin, end, kind))
            }
            Err(error) => self.passes(kind, error),
        }
    }

    fn pages(&mut self, of: &Space) -> std::ops::Range<u64> {
        let pages = of.region.len() / PAGE;
        let first = self.draw.below(pages);
        first..(first + 1 + self.draw.below(16)).min(pages)
    }

    /// The contents of pages go: each of their slots is cut.
    fn discard(&mut self, of: &Space) -> Outcome {
        let pages = self.pages(of);
        self.worker.begins(format!("DontNeed of region {}, pages {pages:?}", of.number));
        let slots = of.slots_of(pages.clone());
        let begins: Vec<u64> = slots.clone().map(|_| self.now()).collect();
        for (slot, &begin) in slots.clone().zip(&begins) {
            of.slots[slot].begins(What::Cut, begin);
        }
        let result = of.region.advise(RegionAdvice::DontNeed, pages.start * PAGE..pages.end * PAGE);
        let end = self.now();
        for (slot, &begin) in slots.zip(&begins) {
            match result {
                Ok(()) => of.slots[slot].ends(begin, end),
                Err(_) => of.slots[slot].fails(begin, end),
            }
        }
        match result {
            Ok(()) => {
                self.counts.count("region: DontNeed", true);
                Ok(())
            }
            Err(error) => self.passes("region: DontNeed", error),
        }
    }

    fn page_out(&mut self, of: &Space) -> Outcome {
        let pages = self.pages(of);
        let bytes = pages.start * PAGE..pages.end * PAGE;
        let kind = self.draw.pick(&["PageOut", "PageOut", "Cold", "prefetch"]);
        self.worker.begins(format!("{kind} of region {}, pages {pages:?}", of.number));
        let result = match kind {
            "PageOut" => of.region.advise(RegionAdvice::PageOut, bytes),
            "Cold" => of.region.advise(RegionAdvice::Cold, bytes),
            _ => of.region.prefetch(bytes),
        };
        match result {
            Ok(()) => {
                self.counts.count("region: advise, prefetch", true);
                Ok(())
            }
            Err(error) => self.passes("region: advise, prefetch", error),
        }
    }

    /// Compares all slots of a region when all threads have stopped.
    pub(super) fn compare_region(&mut self, of: &Space) -> Outcome {
        self.worker.begins(format!("all threads have stopped: region {} is compared", of.number));
        let mut bytes = vec![0xa5; of.region.len() as usize];
        let begin = self.now();
        of.region.read_at(&mut bytes, 0).map_err(|error| self.wrong("read_at of a region", &error))?;
        let end = self.now();
        for (slot, bytes) in (0..of.slots.len()).zip(bytes.chunks_exact(of.slot_bytes as usize)) {
            of.check(slot, bytes, begin, end, "after all threads have stopped")?;
        }
        Ok(())
    }
}
