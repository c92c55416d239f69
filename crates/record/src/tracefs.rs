//! A private instance of tracefs, with its own buffers, filters and events. Dropping it removes the instance.
//!
//! An instance is a folder below `instances/`, so removing the folder undoes everything in it. No setting outside of it is touched.
//! A recorder that is killed can't remove its own; the next one removes those of processes that are no more.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, read_at_once, read_if_there};
use crate::processes;
use crate::ring::PageLayout;
use crate::root::Root;
use crate::ways::NEXT;

/// Places where tracefs is mounted.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// First part of an instance's name; the process's number follows.
const PREFIX: &str = "pageout-record-";

/// Buffer of each CPU. At a million events of 44 bytes a second it holds a third of a second.
const BUFFER_KIB: u64 = 16 << 10;

/// The mount point of tracefs, if it is mounted and accessible.
pub(crate) fn mount(root: &Root) -> Option<PathBuf> {
    PLACES.iter().map(|place| root.path(place)).find(|place| place.join("events").is_dir())
}

/// Where tracefs is, or what to do.
pub(crate) fn need_mount(root: &Root) -> Result<PathBuf, Error> {
    mount(root).ok_or_else(|| {
        let mounted = root.has(PLACES[0]);
        Error::Asked(match mounted {
            true => format!(
                "tracefs is not mounted, or this user has no access\nhelp: run as root: mount -t tracefs nodev {} (in a container: `pageout record --check` prints the lines), or {NEXT}",
                PLACES[0]
            ),
            false => format!("this kernel has no tracefs (CONFIG_FTRACE), or /sys is not mounted: no event can be recorded\nhelp: {NEXT}"),
        })
    })
}

/// An instance; dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    buffers: Vec<File>,
    pub(crate) layout: PageLayout,
    page: Vec<u8>,
}

impl Instance {
    /// Makes one, switched off, with buffers and clock as a recording needs them.
    pub(crate) fn new(machine: &Root) -> Result<Instance, Error> {
        let root = need_mount(machine)?;
        let instances = root.join("instances");
        remove_orphans(&instances);
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|source| Error::setting(&path, source))?;
        let layout = PageLayout::parse(
            &read_at_once(&root.join("events/header_page"))?,
            &read_at_once(&root.join("events/header_event"))?,
        );
        let instance = layout.map(|layout| Instance {
            path: path.clone(),
            buffers: Vec::new(),
            layout,
            page: Vec::new(),
        });
        let mut instance = instance.inspect_err(|_| {
            let _ = std::fs::remove_dir(&path);
        })?;
        instance.set("tracing_on", "0")?;
        // One clock for all CPUs, or their events could not be put in order.
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        // If the buffer is full, the newest events are lost and counted: the recorded ones have no gap before the first loss.
        instance.set("options/overwrite", "0")?;
        let cpus = instance.path.join("per_cpu");
        let mut names: Vec<PathBuf> = std::fs::read_dir(&cpus)
            .map_err(|source| Error::reading(&cpus, source))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        names.sort();
        for name in names {
            let path = name.join("trace_pipe_raw");
            let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
            let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
            instance.buffers.push(file.map_err(|source| Error::reading(&path, source))?);
        }
        // Sub-buffers can be larger than a page; this instance keeps its default.
        let sub = read_if_there(instance.path.join("buffer_subbuf_size_kb"))
            .and_then(|kib| kib.parse::<usize>().ok());
        instance.page = vec![0; sub.map_or(0, |kib| kib << 10).max(instance.layout.size)];
        Ok(instance)
    }

    /// CPUs that have a buffer.
    pub(crate) fn cpus(&self) -> usize {
        self.buffers.len()
    }

    /// Writes one of its files.
    pub(crate) fn set(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = self.path.join(file);
        std::fs::write(&path, value).map_err(|source| Error::setting(&path, source))
    }

    /// The format of a tracepoint, if the kernel has it.
    pub(crate) fn format(&self, event: &str) -> Result<Option<String>, Error> {
        let path = self.path.join("events").join(event).join("format");
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::reading(&path, error)),
        }
    }

    /// Switches a tracepoint on, behind a filter if there is one.
    pub(crate) fn enable(&self, event: &str, filter: &str) -> Result<(), Error> {
        if !filter.is_empty() {
            let file = format!("events/{event}/filter");
            self.set(&file, filter).map_err(|error| match error {
                Error::File { what, path, source, .. } if source.kind() == ErrorKind::InvalidInput => {
                    Error::Asked(format!(
                        "{what} {path}: the kernel rejects the filter `{filter}` ({source})"
                    ))
                }
                error => error,
            })?;
        }
        self.set(&format!("events/{event}/enable"), "1")
    }

    /// Only events of these tasks, and of those they make, from now on. Tasks that have ended are left out.
    pub(crate) fn follow(&self, pids: &[u32]) -> Result<(), Error> {
        let path = self.path.join("set_event_pid");
        let file = OpenOptions::new().append(true).open(&path);
        let mut file = file.map_err(|source| Error::setting(&path, source))?;
        for pid in pids {
            file.write_all(format!("{pid}\n").as_bytes()).map_err(|source| Error::setting(&path, source))?;
        }
        self.set("options/event-fork", "1")
    }

    /// Takes what the buffer of a CPU holds, page by page. Returns the bytes of events.
    pub(crate) fn drain(
        &mut self,
        cpu: usize,
        mut take: impl FnMut(&PageLayout, &[u8]) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mut bytes = 0;
        loop {
            match self.buffers[cpu].read(&mut self.page) {
                Ok(0) => return Ok(bytes),
                Ok(length) => {
                    bytes += length as u64;
                    take(&self.layout, &self.page[..length])?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(bytes),
                Err(error) => return Err(Error::reading(&self.path.join("per_cpu"), error)),
            }
        }
    }

    /// Events that buffers could not hold, over all CPUs.
    pub(crate) fn lost_events(&self) -> u64 {
        let lost = (0..self.cpus()).filter_map(|cpu| {
            let text = read_if_there(self.path.join(format!("per_cpu/cpu{cpu}/stats")))?;
            Some(lost_of(&text))
        });
        lost.sum()
    }
}

/// Losses according to the text of `stats`.
fn lost_of(stats: &str) -> u64 {
    let lost = stats.lines().filter_map(|line| {
        let (name, number) = line.split_once(':')?;
        matches!(name.trim(), "overrun" | "commit overrun" | "dropped events").then_some(())?;
        number.trim().parse::<u64>().ok()
    });
    lost.sum()
}

impl Drop for Instance {
    fn drop(&mut self) {
        // As long as a buffer is open, the instance is in use.
        self.buffers.clear();
        let _ = self.set("tracing_on", "0");
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// Removes instances whose recorder was killed.
fn remove_orphans(instances: &Path) {
    let entries = std::fs::read_dir(instances).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        // One that has ended and whose parent does not care is there for long.
        let has_ended = |pid| matches!(processes::state(pid), None | Some('Z' | 'X'));
        if pid.is_some_and(has_ended) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_lose_an_event_counts() {
        let stats = "entries: 252\noverrun: 1748\ncommit overrun: 2\nbytes: 11152\ndropped events: 5\nread events: 0\n";
        assert_eq!(lost_of(stats), 1755);
    }
}
