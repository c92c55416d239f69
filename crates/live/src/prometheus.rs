//! Figures in the text format of Prometheus.
//!
//! Names follow its conventions: the prefix `pageout_`, base units (bytes), and `_total` for what only grows. Pages are counted, and memory is in bytes.

use std::fmt::{self, Write};

use crate::error::Error;
use crate::machine::{FileRow, bytes};
use crate::memory::Memory;
use crate::stats::{FileStats, GroupStats, Stats};

/// A family of samples with the same name.
struct Family<T: 'static> {
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    /// Labels of each sample in addition to those of its owner, and the value.
    samples: &'static [Sample<T>],
}

/// Further labels, and the value.
type Sample<T> = (&'static str, fn(&T) -> u64);

macro_rules! families {
    ($($kind:ident $name:literal $help:literal [$($labels:literal $value:expr),+ $(,)?])+) => {
        &[$(Family {
            name: $name,
            help: $help,
            is_counter: families!(@ $kind),
            samples: &[$(($labels, $value)),+],
        }),+]
    };
    (@ counter) => { true };
    (@ gauge) => { false };
}

const CACHE: &[Family<Stats>] = families! {
    counter "pageout_hits_total" "Pages read or written without the lock of the engine." ["" |of| of.hits]
    counter "pageout_slow_hits_total" "The part of the hits that was in slow memory." ["" |of| of.slow_hits]
    counter "pageout_misses_total" "Pages read or written under the lock of the engine." ["" |of| of.misses]
    counter "pageout_refaults_total" "Pages that came back soon after their eviction."
        ["type=\"file\"" |of| of.refaults, "type=\"anon\"" |of| of.refaults_anon]
    counter "pageout_device_reads_total" "Requests to devices that read." ["" |of| of.device_reads]
    counter "pageout_device_read_bytes_total" "Bytes read from devices." ["" |of| of.device_bytes]
    counter "pageout_device_writes_total" "Requests to devices that wrote." ["" |of| of.device_writes]
    counter "pageout_device_written_bytes_total" "Bytes written to devices." ["" |of| of.device_bytes_written]
    counter "pageout_promoted_pages_total" "Pages promoted from slow memory." ["" |of| of.promoted]
    counter "pageout_demoted_pages_total" "Pages demoted to slow memory." ["" |of| of.demoted]
    counter "pageout_migration_failures_total" "Pages whose migration failed." ["" |of| of.moves_failed]
    counter "pageout_kept_by_pins_total" "Evictions and migrations that failed because the page was held." ["" |of| of.kept_by_pins]
    counter "pageout_lock_acquisitions_total" "Times that the lock of the engine was taken." ["" |of| of.lock_held.times()]
    gauge "pageout_frames_bytes" "Memory for pages." ["" |of| bytes(of.frames)]
    gauge "pageout_tables_bytes" "Tables of files and regions." ["" |of| of.table_bytes]
    gauge "pageout_resident_bytes" "Pages in memory." ["type=\"file\"" |of| bytes(of.resident), "type=\"anon\"" |of| bytes(of.anon)]
    gauge "pageout_dirty_bytes" "Pages that differ from their devices." ["" |of| bytes(of.dirty)]
    gauge "pageout_writeback_bytes" "Pages under writeback." ["" |of| bytes(of.writeback)]
    gauge "pageout_swapped_bytes" "Slots of the swap file that hold a page." ["" |of| bytes(of.swapped)]
    gauge "pageout_slow_frames_bytes" "Slow memory for pages." ["" |of| bytes(of.slow_frames)]
    gauge "pageout_slow_resident_bytes" "Pages in slow memory." ["" |of| bytes(of.slow_resident)]
    gauge "pageout_pinned_pages" "Pages that guards hold." ["" |of| of.pinned]
};

const GROUP: &[Family<GroupStats>] = families! {
    counter "pageout_group_hits_total" "Pages read or written without the lock of the engine, by the group of the handle." ["" |of| of.hits]
    counter "pageout_group_slow_hits_total" "The part of the hits of a group that was in slow memory." ["" |of| of.slow_hits]
    counter "pageout_group_misses_total" "Pages read or written under the lock of the engine, by the group of the handle." ["" |of| of.misses]
    counter "pageout_group_refaults_total" "Pages that came back soon after their eviction, by the charged group."
        ["type=\"file\"" |of| of.refaults, "type=\"anon\"" |of| of.refaults_anon]
    counter "pageout_group_evictions_total" "Pages that reclaim has evicted, by the charged group." ["" |of| of.evictions]
    gauge "pageout_group_charged_bytes" "Memory that is charged to the group." ["" |of| bytes(of.charged)]
    gauge "pageout_group_resident_bytes" "Pages in memory, by the charged group."
        ["type=\"file\"" |of| bytes(of.resident), "type=\"anon\"" |of| bytes(of.anon)]
    gauge "pageout_group_swapped_bytes" "Slots of the swap file, by the charged group." ["" |of| bytes(of.swapped)]
    gauge "pageout_group_dirty_bytes" "Pages that differ from their devices, by the charged group." ["" |of| bytes(of.dirty)]
};

const FILE: &[Family<FileStats>] = families! {
    counter "pageout_file_hits_total" "Pages of the file read or written without the lock of the engine." ["" |of| of.hits]
    counter "pageout_file_slow_hits_total" "The part of the hits of a file that was in slow memory." ["" |of| of.slow_hits]
    counter "pageout_file_misses_total" "Pages of the file read or written under the lock of the engine." ["" |of| of.misses]
    counter "pageout_file_refaults_total" "Pages of the file that came back soon after their eviction." ["" |of| of.refaults]
    counter "pageout_file_evictions_total" "Pages of the file that reclaim has evicted." ["" |of| of.evictions]
    counter "pageout_file_device_reads_total" "Requests to the device that read the file." ["" |of| of.device_reads]
    counter "pageout_file_device_read_bytes_total" "Bytes of the file read from its device." ["" |of| of.device_bytes]
    counter "pageout_file_device_writes_total" "Requests to the device that wrote the file." ["" |of| of.device_writes]
    counter "pageout_file_device_written_bytes_total" "Bytes of the file written to its device." ["" |of| of.device_bytes_written]
    gauge "pageout_file_resident_bytes" "Pages of the file in memory." ["" |of| bytes(of.resident)]
    gauge "pageout_file_dirty_bytes" "Pages of the file that differ from its device." ["" |of| bytes(of.dirty)]
};

/// The value of a label, escaped.
struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|of| match of {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            of => f.write_char(of),
        })
    }
}

/// Writes families: all samples of one together, as the format wants it.
fn write<T>(text: &mut String, families: &[Family<T>], owners: &[(String, T)]) -> fmt::Result {
    for Family { name, help, is_counter, samples } in families {
        if owners.is_empty() {
            continue;
        }
        let kind = if *is_counter { "counter" } else { "gauge" };
        writeln!(text, "# HELP {name} {help}")?;
        writeln!(text, "# TYPE {name} {kind}")?;
        for (owner, of) in owners {
            for (labels, value) in *samples {
                let comma = if owner.is_empty() || labels.is_empty() { "" } else { "," };
                match (owner.as_str(), *labels) {
                    ("", "") => writeln!(text, "{name} {}", value(of))?,
                    _ => writeln!(text, "{name}{{{owner}{comma}{labels}}} {}", value(of))?,
                }
            }
        }
    }
    Ok(())
}

impl Memory {
    /// Returns the figures of the cache, its groups and its files in the text format of Prometheus, for the body of an answer with the content type
    /// `text/plain; version=0.0.4`. Totals are of [`Memory::stats`], [`crate::Group::stats`] and [`crate::File::stats`].
    ///
    /// A group has the label `group`. A file has the labels `file`, its path when it was first opened, and `inode`, its device and inode: files with the same
    /// path may follow each other. Each file that the cache knows has 11 samples, closed ones included. The lock is released after every 32 files.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn prometheus(&self) -> Result<String, Error> {
        let machine = &self.0.machine;
        let stats = vec![(String::new(), self.stats()?)];
        let (groups, files) =
            self.0.guarded(|_| Ok((machine.all_group_stats()?, machine.all_file_stats()?)))?;
        let groups: Vec<_> =
            groups.into_iter().map(|(name, stats)| (format!("group=\"{}\"", Label(&name)), stats)).collect();
        let labels = |FileRow { path, inode, device, .. }: &FileRow| {
            format!("file=\"{}\",inode=\"{device}:{inode}\"", Label(path))
        };
        let files: Vec<_> = files.into_iter().map(|row| (labels(&row), row.stats)).collect();
        let mut text = String::new();
        let written = write(&mut text, CACHE, &stats)
            .and_then(|()| write(&mut text, GROUP, &groups))
            .and_then(|()| write(&mut text, FILE, &files));
        written.expect("a String accepts any text");
        Ok(text)
    }
}
