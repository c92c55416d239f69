//! A recording as its twin needs it: read, checked, with its data about the group's memory.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use pageout_record::{
    ACCESSES, BEFORE, Channel, FILE_CALLS, FileRecord, Manifest, MappedAdvice, ROOM_STEP, ROOMS, Sample,
};
use pageout_workload::ReadOptions;
use pageout_workload::trace::{self, TraceHeader};

use super::beside::Beside;
use super::evidence::Need;
use super::unseen::Unseen;
use crate::Error;
use crate::basis::{Verdict, verdict};

/// Samples count where the group was at least this full.
const FULL: f64 = 0.9;

/// A mapping counts where more than this share of pages was brought in by its faults.
const MATTERS: f64 = 0.02;

/// Pages read ahead, and such as came back, count where they are more than this share of what came in.
const CHANCY: f64 = 0.05;

/// The other memory of the group is replaced by its mean if it varies by at most this share of the files' memory.
const UNSTEADY: f64 = 0.25;

/// The knowledge about accesses, and so the range of memory for which they are true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Every access of files, hits too.
    Reads,
    /// Reads with hits, and of mappings, which matter and are used at random, the faults and since when their pages were missed.
    ReadsAndWaits,
    /// Reads with hits, and of mappings, which matter, the faults.
    ReadsAndFaults,
    /// Only what came in.
    Insertions,
    /// Counters alone.
    None,
}

impl Knowledge {
    /// Maximum share by which the real misses exceed the simulated ones with more memory than recorded. Measured by replaying insertions
    /// and faults of known accesses. At 1.5 and 2 times the memory 1.0 to 3.7 % and 4.0 to 6.4 % of the misses were missing. With hits
    /// estimated from waits, 0.5 to 2.7 % were missing at 1.3 to 3 times the memory. Rounded up.
    pub fn missing_at_more(self) -> f64 {
        match self {
            Knowledge::Reads => 0.0,
            Knowledge::ReadsAndWaits => 0.03,
            Knowledge::Insertions => 0.04,
            Knowledge::ReadsAndFaults => 0.07,
            Knowledge::None => f64::INFINITY,
        }
    }
}

/// Memory of the group other than files, in bytes: mean, minimum and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Held {
    /// On the mean.
    pub mean: u64,
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// The part of the mean that belongs to programs.
    pub programs: u64,
    /// Mean memory of programs in swap, in addition.
    pub swapped: u64,
    /// Samples that this is from.
    pub samples: usize,
    /// True if the group was as full as its limit lets it be.
    pub was_full: bool,
    /// Chance decides much: most of what comes in was read ahead, in windows that begin where a page is missing, and so by what was evicted.
    pub is_chancy: bool,
    /// The memory that the twin reserves from its files all the time: the mean, or the rest of it if a part comes and goes;
    pub constant: u64,
    /// how much less that may be,
    pub less: u64,
    /// how much more,
    pub more: u64,
    /// and what comes and goes, at most: the twin has it do so where it did.
    pub moving: u64,
}

/// A recording.
#[derive(Debug)]
pub struct Recording {
    /// Its folder.
    pub folder: PathBuf,
    /// Its description of itself.
    pub manifest: Manifest,
    /// Samples of the group's memory.
    pub samples: Vec<Sample>,
    /// The header of the accesses. None: the recording has only counters.
    pub header: Option<TraceHeader>,
    /// Pages that were in memory before.
    pub before: u64,
    /// True if it is known where files were synced, truncated and deleted.
    pub has_file_calls: bool,
    /// Faults of mapped files that found their page evicted: their place among the accesses, and that of the eviction.
    pub evictions: Vec<(u64, u64)>,
    /// Pages that files had when the group was full, more than at the begin: from which access on, and how many.
    pub rooms: Vec<(u64, i64)>,
    /// True if that was recorded.
    pub has_rooms: bool,
    unseen: OnceCell<Unseen>,
    beside: OnceCell<Option<Beside>>,
}

impl Recording {
    /// Reads the recording in `folder`. Errors: there is none or only a part, its form is not known, or events are missing and `allow_loss` is
    /// not said.
    pub fn read(folder: &Path, allow_loss: bool) -> Result<Recording, Error> {
        let asked = |error: pageout_record::Error| Error::Asked(error.to_string());
        let manifest = Manifest::read(folder).map_err(asked)?;
        if manifest.has_losses() && !allow_loss {
            return Err(Error::Asked(format!(
                "{}: the recording lost {} events, so accesses are missing\nhelp: record less at a time, or use --allow-loss",
                folder.display(),
                manifest.source.lost_events
            )));
        }
        if manifest.recording.page_size != 4096 {
            return Err(Error::Asked(format!(
                "{}: found pages of {}, expected 4 KiB",
                folder.display(),
                crate::figures::bytes(manifest.recording.page_size)
            )));
        }
        let samples = Manifest::samples(folder).map_err(asked)?;
        let header = |name: &str| -> Result<TraceHeader, Error> {
            let path = folder.join(name);
            let header = trace::header(&path, &ReadOptions::default())
                .map_err(|error| Error::Asked(format!("{error}; the recording is not complete")))?;
            header.ok_or_else(|| Error::Asked(format!("{}: not a .pgt file", path.display())))
        };
        let (accesses, before) = (header(ACCESSES)?, header(BEFORE)?);
        if accesses.accesses != manifest.recording.accesses {
            return Err(Error::Asked(format!(
                "{}: recording.toml has {} accesses, but {ACCESSES} has {}: they belong to different recordings",
                folder.display(),
                manifest.recording.accesses,
                accesses.accesses
            )));
        }
        let has_accesses = accesses.accesses > 0;
        let calls = folder.join(FILE_CALLS);
        let has_file_calls = calls.exists();
        if has_file_calls {
            let placed = trace::file_calls(&calls).map_err(|error| Error::Asked(error.to_string()))?;
            let objects = accesses.objects.len();
            if let Some(call) = placed.iter().find(|call| call.object as usize >= objects) {
                return Err(Error::Asked(format!(
                    "{}: `{}`: unknown object {}, the trace has {objects}",
                    calls.display(),
                    call.line(),
                    call.object
                )));
            }
        }
        Ok(Recording {
            folder: folder.to_path_buf(),
            manifest,
            samples,
            header: has_accesses.then_some(accesses),
            before: before.accesses,
            has_file_calls,
            evictions: Manifest::evictions(folder).map_err(asked)?,
            rooms: Manifest::rooms(folder).map_err(asked)?,
            has_rooms: folder.join(ROOMS).exists(),
            unseen: OnceCell::new(),
            beside: OnceCell::new(),
        })
    }

    /// Hits on mapped pages that are put in. Errors: the trace can't be read.
    pub(super) fn unseen(&self) -> Result<&Unseen, Error> {
        if self.unseen.get().is_none() {
            let found = Unseen::of(self, &self.folder.join(ACCESSES));
            let _ = self.unseen.set(found.map_err(|error| Error::Asked(error.to_string()))?);
        }
        Ok(self.unseen.get().expect("it has just been set"))
    }

    /// Returns the number of inserted hits on mapped pages, estimated from faults. Errors: the trace cannot be read.
    pub fn estimated_hits(&self) -> Result<u64, Error> {
        Ok(self.unseen()?.count())
    }

    /// Memory of the group other than files over time; none if unknown.
    pub(super) fn beside(&self) -> Option<&Beside> {
        self.beside.get_or_init(|| Beside::of(self)).as_ref()
    }

    /// Pages other than files that the twin adds and removes.
    pub(super) fn moved(&self) -> u64 {
        self.beside().map_or(0, Beside::count)
    }

    /// Returns the knowledge about accesses.
    pub fn knowledge(&self) -> Knowledge {
        let Some(_) = self.header else { return Knowledge::None };
        if self.manifest.source.accesses == "insertions" {
            return Knowledge::Insertions;
        }
        let by_faults = |is: fn(&FileRecord) -> bool| {
            let files = self.files().filter(|file| file.faults > 0 && is(file));
            let inserted = files.map(|file| file.insertions - file.read_insertions.min(file.insertions));
            inserted.sum::<u64>().min(self.manifest.sums.faults) as f64
        };
        let matters = |faults: f64| faults > MATTERS * self.manifest.sums.insertions.max(1) as f64;
        let is_used_in_order = |file: &FileRecord| file.mapped_advice != Some(MappedAdvice::Random);
        match (matters(by_faults(|_| true)), matters(by_faults(is_used_in_order))) {
            (false, _) => Knowledge::Reads,
            (true, false) if !self.evictions.is_empty() => Knowledge::ReadsAndWaits,
            _ => Knowledge::ReadsAndFaults,
        }
    }

    /// The limit that the group had, in bytes; that of the machine's memory if it had none.
    pub fn limit(&self) -> u64 {
        self.manifest
            .group
            .limit_bytes
            .unwrap_or(self.manifest.kernel.memory_bytes)
            .min(self.manifest.kernel.memory_bytes.max(1))
    }

    /// Returns the memory of the group besides files, while it was full, or else at any time.
    pub fn held(&self) -> Held {
        let full = self.limit() as f64 * FULL;
        let is_full = |sample: &&Sample| sample.usage_bytes as f64 >= full;
        let was_full = self.samples.iter().any(|sample| is_full(&sample));
        // The first and the last sample are outside of the recording.
        let within = match self.samples.len() {
            0..=2 => &self.samples[..],
            all => &self.samples[1..all - 1],
        };
        let of = |bytes: fn(&Sample) -> u64| -> Vec<u64> {
            within.iter().filter(|sample| !was_full || is_full(sample)).map(bytes).collect()
        };
        let mean = |all: &[u64]| all.iter().sum::<u64>().checked_div(all.len() as u64).unwrap_or(0);
        let chosen = of(|sample| sample.anon_bytes + sample.kernel_bytes);
        let (mean_of_all, least, most) = (
            mean(&chosen),
            chosen.iter().copied().min().unwrap_or(0),
            chosen.iter().copied().max().unwrap_or(0),
        );
        let (constant, less, more, moving) = match self.beside() {
            Some(beside) => {
                let constant = self.limit().saturating_sub(beside.files_most * 4096);
                (constant, ROOM_STEP * 4096, ROOM_STEP * 4096, beside.moving() * 4096)
            }
            None => (mean_of_all, mean_of_all - least, most - mean_of_all, 0),
        };
        Held {
            constant,
            less,
            more,
            moving,
            mean: mean_of_all,
            programs: mean(&of(|sample| sample.anon_bytes)),
            swapped: mean(&of(|sample| sample.swap_bytes)),
            least,
            most,
            samples: chosen.len(),
            was_full,
            is_chancy: self.is_chancy(),
        }
    }

    /// Returns true if insertions depend on a few pages more or less: readahead is a relevant part of them, and evicted pages returned.
    fn is_chancy(&self) -> bool {
        let sums = &self.manifest.sums;
        let matters = |pages: u64| pages as f64 > CHANCY * sums.insertions as f64;
        matters(sums.read_ahead) && matters(sums.insertions.saturating_sub(sums.insertions_first))
    }

    /// The constant part of the mean memory of programs.
    pub(super) fn constant_programs(&self) -> u64 {
        let accesses = self.manifest.recording.accesses;
        let moving = self.beside().map_or(0, |beside| beside.mean(accesses) * 4096);
        self.held().programs.saturating_sub(moving)
    }

    /// Returns true if the other memory of the group varied so much at unknown times that its mean does not show the memory of files.
    pub fn is_unsteady(&self) -> bool {
        let held = self.held();
        // Without reclaim this does not matter, if events show that nothing was reclaimed.
        let tells = |event: &str| self.manifest.source.events.iter().any(|name| name.ends_with(event));
        if self.manifest.sums.reclaim_calls == 0 && tells("mm_vmscan_memcg_reclaim_begin") {
            return false;
        }
        held.was_full
            && self.beside().is_none()
            && (held.most - held.least) as f64 > UNSTEADY * self.limit().saturating_sub(held.mean) as f64
    }

    /// Returns true if a lower limit leaves files an unknown amount of memory. The group was never short of memory, so no reclaim call shows the memory
    /// of its programs at that time, and their memory varied.
    pub fn is_unsteady_below(&self, limit: u64) -> bool {
        let held = self.held();
        let was_short = held.was_full && self.manifest.sums.reclaim_calls > 0;
        let varied = (held.most - held.least) as f64;
        !was_short && self.beside().is_none() && varied > UNSTEADY * limit.saturating_sub(held.mean) as f64
    }

    /// Returns true if memory of programs could go to swap.
    pub fn has_swap(&self) -> bool {
        let allowed = self.manifest.group.limits.get("memory.swap.max").is_none_or(|max| max.trim() != "0");
        !self.manifest.kernel.swap.is_empty() && allowed
    }

    /// Pages of programs that came back from swap. Errors: no counter tells it, and there was swap.
    pub fn swap_ins(&self) -> Verdict<u64> {
        let counters = ["pswpin", "workingset_refault_anon"];
        let of = |name| verdict(self, [Need::Counter(name)], |[count]| count);
        let known = counters.into_iter().filter_map(|name| of(name).ok()).max();
        known.map_or_else(|| verdict(self, [Need::NoSwap], |_| 0).or_else(|_| of(counters[1])), Ok)
    }

    /// Returns the increase of a counter of `memory.stat`; `None` if the kernel lacks it.
    pub fn rose(&self, counter: &str) -> Option<u64> {
        let group = &self.manifest.group;
        Some(group.stat_end.get(counter)?.saturating_sub(*group.stat_begin.get(counter)?))
    }

    /// All files. Most of them are objects of the trace.
    pub(super) fn files(&self) -> impl Iterator<Item = &FileRecord> {
        self.manifest.file.iter()
    }

    /// Objects of the trace in order, each with the place of its file.
    pub(super) fn objects(&self) -> Vec<(usize, Channel)> {
        let mut objects: Vec<(u32, usize, Channel)> = Vec::new();
        for (at, file) in self.files().enumerate() {
            objects.extend(file.object.map(|object| (object, at, Channel::File)));
            objects.extend(file.mapped_object.map(|object| (object, at, Channel::Mapped)));
        }
        objects.sort_by_key(|(object, ..)| *object);
        objects.into_iter().map(|(_, at, channel)| (at, channel)).collect()
    }

    /// Returns true if another group was charged for pages that were in memory before, for example shared libraries.
    pub(super) fn before_is_elsewhere(&self) -> bool {
        let held = self.samples.first().map_or(0, |sample| sample.file_bytes);
        held < self.before * self.manifest.recording.page_size / 2
    }

    /// Pages of files that left the group's memory without an event, or a negative number if others brought in pages that the group is
    /// charged for. None if insertions or removals are unknown.
    pub fn vanished(&self) -> Option<i64> {
        let sums = &self.manifest.sums;
        let source = &self.manifest.source;
        let has = |event: &str| source.events.iter().any(|name| name.ends_with(event));
        let tells = has("mm_filemap_add_to_page_cache") && has("mm_filemap_delete_from_page_cache");
        let is_whole = tells && source.only_files.is_empty() && self.manifest.recording.sample <= 1;
        let page = self.manifest.recording.page_size.max(1) as i64;
        is_whole.then(|| {
            sums.insertions as i64 - (sums.evictions + sums.taken) as i64 - self.file_growth() / page
        })
    }

    /// Inserted pages of files, by counters: they have been evicted or are still in memory.
    pub(super) fn came_by_counters(&self) -> u64 {
        let of = |name: &str| self.rose(name).unwrap_or(0);
        let evicted = self.rose("pgsteal").unwrap_or_else(|| of("pgsteal_kswapd") + of("pgsteal_direct"));
        let page = self.manifest.recording.page_size.max(1) as i64;
        (evicted as i64 + self.file_growth() / page).max(0) as u64
    }

    /// Bytes of files that the group held when the recording ended, beyond what it held at the begin.
    pub(super) fn file_growth(&self) -> i64 {
        let bytes = |sample: Option<&Sample>| sample.map_or(0, |sample| sample.file_bytes as i64);
        bytes(self.samples.last()) - bytes(self.samples.first())
    }
}
