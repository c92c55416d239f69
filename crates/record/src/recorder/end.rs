//! The end of a recording: why it ends, the files that it names, and its manifest.

use super::*;

/// The results of a recording that are not sums of events.
pub(super) struct Outcome {
    pub(super) began_s: u64,
    pub(super) duration_ns: u64,
    pub(super) ended: String,
    pub(super) command_code: u8,
    pub(super) accesses: u64,
    pub(super) stat_end: BTreeMap<String, u64>,
    pub(super) processes: Option<ProcessRecord>,
    pub(super) files: Vec<FileRecord>,
}

impl Recorder<'_> {
    /// Why it is time to end, if it is.
    pub(super) fn ending(
        &mut self,
        elapsed: Duration,
        bytes: u64,
        stop: &dyn Fn() -> Option<&'static str>,
    ) -> Option<String> {
        let is_over = |child: &mut Started| match self.watch {
            // The kernel counts its reads until it is reaped.
            Some(_) => processes::state(child.pid()) == Some('Z'),
            None => child.ended().is_some(),
        };
        if self.child.as_mut().is_some_and(is_over) {
            return Some(COMMAND_ENDED.to_string());
        }
        if let Some(signal) = stop() {
            return Some(signal.to_string());
        }
        if self.options.duration.is_some_and(|duration| elapsed >= duration) {
            return Some("the requested time is over".to_string());
        }
        if self.options.max_size.is_some_and(|size| bytes >= size) {
            return Some("the requested size is reached".to_string());
        }
        None
    }

    /// Has the command end, if it has not yet.
    pub(super) fn end_child(&mut self) -> Result<Option<String>, Error> {
        let Some(child) = &mut self.child else { return Ok(None) };
        if child.ended().is_some() {
            return Ok(None);
        }
        child.terminate()?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if child.ended().is_some() {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
        child.leave();
        Ok(Some(format!(
            "the command did not end within {} s after SIGTERM; it continues",
            PATIENCE.as_secs()
        )))
    }

    /// Names the files and tells the collector their ends. Returns the pages of each object that a read can't have passed.
    pub(super) fn settle_files(&mut self, collector: &mut Collector, page_size: u64) -> Vec<Option<u64>> {
        let options = self.options;
        let wanted = collector.files.iter().map(|file| file.key).collect();
        self.names.search(&wanted, &self.near);
        for file in 0..collector.files.len() {
            let key = collector.files[file].key;
            let known = self.names.of(key);
            // Also of a mapping that was not inspected before: advice is rare.
            let advice = known.and_then(|known| known.advice);
            let is_read_around = advice.is_none_or(|advice| advice == MappedAdvice::Normal);
            if let Some(window) = host::read_ahead_kb(&options.root, key).filter(|_| is_read_around) {
                collector.read_around(file, window * 1024 / page_size);
            }
            // For a file that was not inspected, pages are known up to the last used one.
            let bytes = known.and_then(|known| known.bytes);
            let pages = bytes.map_or(collector.files[file].page_last + 1, |bytes| bytes.div_ceil(page_size));
            collector.end_of_file(file, pages);
        }
        collector
            .objects
            .iter()
            .map(|&(at, channel)| {
                let file = &collector.files[at];
                let keeps_its_end = file.writes == 0 && file.deletions == 0 && file.truncations == 0;
                let bytes = self.names.of(file.key).and_then(|known| known.bytes);
                let is_read = keeps_its_end && channel == Channel::File;
                bytes.filter(|&bytes| is_read && bytes > 0).map(|bytes| bytes.div_ceil(page_size))
            })
            .collect()
    }

    pub(super) fn file_records(&self, collector: &Collector) -> Vec<FileRecord> {
        let anonymous = self.options.anonymize;
        let record = |(at, file): (usize, &crate::collect::FileSums)| {
            let known = self.names.of(file.key);
            let (major, minor) = file.key.major_minor();
            let name = match known {
                _ if anonymous => format!("file-{}", at + 1),
                Some(known) => known.name.clone(),
                None => format!("inode {}", file.key.inode),
            };
            FileRecord {
                name,
                device: format!("{major}:{minor}"),
                inode: if anonymous { 0 } else { file.key.inode },
                bytes: known.and_then(|known| known.bytes),
                deleted: known.is_some_and(|known| known.deleted),
                also: known.and_then(|known| known.also.clone()).filter(|_| !anonymous),
                object: file.objects[0],
                mapped_object: file.objects[1],
                pages_read: file.reads,
                pages_written: file.writes,
                faults: file.faults,
                syncs: file.syncs,
                deletions: file.deletions,
                truncations: file.truncations,
                insertions: file.insertions,
                read_insertions: file.read_insertions,
                read_ahead: file.read_ahead,
                resident_at_start: file.resident(),
                request_pages: file.request_pages(),
                mapped_advice: known.and_then(|known| known.advice),
                executable: file.is_executable(),
            }
        };
        collector.files.iter().enumerate().map(record).collect()
    }

    /// Adds the reads of the command, which the kernel reports to its parent even if this user could not read them before.
    pub(super) fn add_children(&self, processes: &mut ProcessRecord) {
        let end = self.child.as_ref().and_then(|_| usage::of_children(&Root::machine()));
        let Some((begin, end)) = self.children_begin.zip(end) else { return };
        let of = |at: usize| end[at].saturating_sub(begin[at]);
        processes.rchar = processes.rchar.max(of(0));
        processes.wchar = processes.wchar.max(of(1));
        processes.read_bytes = processes.read_bytes.max(of(2));
        processes.write_bytes = processes.write_bytes.max(of(3));
    }

    /// What is written last: a recording without it is none.
    pub(super) fn manifest(&self, collector: &Collector, outcome: Outcome) -> Manifest {
        let options = self.options;
        let after = host::disk_counts(&options.root);
        let devices: BTreeSet<String> = outcome.files.iter().map(|file| file.device.clone()).collect();
        let limits_end = self.group.limits();
        let mut events = self.group.events();
        events.iter_mut().for_each(|(name, count)| {
            *count -= self.events_begin.get(name).copied().unwrap_or(0).min(*count)
        });
        let changed = self.limits.iter().filter(|(name, value)| limits_end.get(*name) != Some(*value));
        Manifest {
            format_version: FORMAT_VERSION,
            pageout: env!("CARGO_PKG_VERSION").to_string(),
            recording: Recorded {
                target: self.target(),
                command: self.command(),
                began_s: outcome.began_s,
                duration_ns: outcome.duration_ns,
                ended: outcome.ended,
                command_code: outcome.command_code,
                accesses: outcome.accesses,
                accesses_beyond: collector.beyond,
                page_size: rustix::param::page_size() as u64,
                sample: options.sample,
                is_anonymous: options.anonymize,
            },
            sums: collector.sums,
            kernel: host::kernel(&options.root),
            cost: Some(CostRecord {
                events: self.events + self.source.lost_events,
                event_ns: self.event_ns,
                recorder_ns: cpu_time().saturating_sub(self.cpu_begin).as_nanos() as u64,
            }),
            processes: outcome.processes,
            group: GroupRecord {
                version: self.group.version,
                path: if options.anonymize { String::new() } else { self.group.path.clone() },
                limit_bytes: self.group.limit(),
                limits_changed: changed
                    .map(|(name, value)| {
                        format!(
                            "{name} was {value} at the start and {} at the end",
                            limits_end.get(name).map_or("gone", String::as_str)
                        )
                    })
                    .collect(),
                limits: self.limits.clone(),
                stat_every_ns: options.stat_every.as_nanos() as u64,
                machine_stalled_us: host::stalled_us(&options.root)
                    .zip(self.stalled_begin)
                    .map(|(end, begin)| end.saturating_sub(begin)),
                events: bounded(&events),
                stat_begin: bounded(&self.stat_begin),
                stat_end: bounded(&outcome.stat_end),
            },
            sysctl: host::sysctls(&options.root),
            device: devices
                .iter()
                .map(|number| host::device(&options.root, number, &self.disks, &after))
                .collect(),
            file: outcome.files,
            source: self.source.clone(),
        }
    }

    fn target(&self) -> String {
        let anonymous = self.options.anonymize;
        match &self.options.target {
            Target::Machine => "the whole machine".to_string(),
            Target::Cgroup(_) if anonymous => "a cgroup".to_string(),
            Target::Cgroup(path) => format!("cgroup {path}"),
            Target::Pids(_) if anonymous => "processes".to_string(),
            Target::Pids(pids) => {
                format!("processes {}", pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
            Target::Command { .. } => "a command".to_string(),
        }
    }

    fn command(&self) -> String {
        match &self.options.target {
            Target::Command { argv, .. } if !self.options.anonymize => argv.join(" "),
            _ => String::new(),
        }
    }
}

/// CPU time of this process so far.
pub(super) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}

/// Counters that TOML can hold.
fn bounded(stat: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    stat.iter().map(|(name, value)| (name.clone(), (*value).min(i64::MAX as u64))).collect()
}
