//! Files and regions that the tasks of a scenario access. Each page has its number in its first bytes.

use std::fs::File as SystemFile;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pageout_live::engine::{Compressibility, Contents};
use pageout_live::{EmulatedDisk, File, Group, Memory, Open, Region, RegionOptions};
use pageout_sim::scenario::{Advice, Channel, Object};
use pageout_workload::rng::SplitMix64;

use super::plan::Plan;
use crate::error::{During as _, Error};
use crate::watch::Watcher;

const PAGE: usize = 4096;

/// The plan's files on disk. They go when this does.
pub(super) struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    pub(super) fn create(plan: &Plan<'_>, folder: &Path) -> Result<Disk, Error> {
        let made = tempfile::Builder::new().prefix("pageout-").tempdir_in(folder);
        let disk =
            Disk { folder: made.during(|| format!("cannot create a folder in {}", folder.display()))? };
        for file in &plan.scenario.file {
            disk.fill(&disk.shared(&file.name), file.size.pages_ceil())?;
        }
        for (task_at, task) in plan.scenario.task.iter().enumerate() {
            for (at, object) in task.object.iter().enumerate() {
                if let (Channel::File, None, Some(size)) = (object.channel, &object.file, object.size) {
                    disk.fill(&disk.own(task_at, at), size.pages_ceil())?;
                }
            }
        }
        Ok(disk)
    }

    fn shared(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("file-{name}"))
    }

    fn own(&self, task: usize, object: usize) -> PathBuf {
        self.folder.path().join(format!("task-{task}-{object}"))
    }

    fn fill(&self, path: &Path, pages: u64) -> Result<(), Error> {
        let fill = || {
            let mut file = SystemFile::create_new(path)?;
            let mut run = vec![0x5a; 256 * PAGE];
            for first in (0..pages).step_by(256) {
                let here = (pages - first).min(256);
                for (page, bytes) in (first..first + here).zip(run.chunks_exact_mut(PAGE)) {
                    stamp(bytes, page);
                }
                file.write_all(&run[..here as usize * PAGE])?;
            }
            // Otherwise the kernel's writeback would run during the measurement.
            file.sync_all()
        };
        fill().during(|| format!("cannot write {}", path.display()))
    }
}

/// Writes the number of a page into it.
pub(super) fn stamp(bytes: &mut [u8], page: u64) {
    bytes[..8].copy_from_slice(&(page + 1).to_le_bytes());
}

/// Contents of the pages of a region.
#[derive(Clone, Copy)]
pub(super) struct Filler {
    /// A number that no other region of the run has.
    region: u32,
    compressibility: Option<Compressibility>,
}

impl Filler {
    /// Fills a page that was never written: its number, and bytes that compress as the scenario says. A page of zeroes has no number.
    fn fill(self, bytes: &mut [u8], page: u64) {
        /// What lz4 adds to bytes that do not compress: headers, and one byte per 255.
        const OVERHEAD: usize = 40;
        let Some(compressibility) = self.compressibility else { return stamp(bytes, page) };
        match compressibility.contents_of(true, self.region, page as u32) {
            Contents::Zeroes => {}
            Contents::OneWord => bytes.chunks_exact_mut(8).for_each(|word| stamp(word, page)),
            Contents::Bytes(length) => {
                stamp(bytes, page);
                let random = usize::from(length).saturating_sub(OVERHEAD + 8).min(PAGE - 8);
                let mut draw = SplitMix64::new(SplitMix64::derive_seed(self.region.into(), page));
                for word in bytes[8..8 + random].chunks_mut(8) {
                    word.copy_from_slice(&draw.next_u64().to_le_bytes()[..word.len()]);
                }
            }
        }
    }
}

/// The memory in which the tasks run, and what they access.
pub(super) struct Place<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) memory: &'a Memory,
    pub(super) groups: &'a [Group],
    pub(super) disk: &'a Disk,
    pub(super) watcher: &'a dyn Watcher,
    /// The disk that has all files, if it is emulated.
    pub(super) head: Option<EmulatedDisk>,
}

/// Nodes of a machine with slow memory.
pub(super) const ALL_NODES: &str = "0-1";

/// Lets new pages of a group come from these nodes only.
pub(super) fn on_node(group: &Group, nodes: &str) -> Result<(), Error> {
    group.write("cpuset.mems", nodes).during(|| "cpuset.mems".to_string())
}

/// What a task accesses.
pub(super) enum Target {
    File { file: File, call_pages: u64, buf: Vec<u8> },
    Region(Region, Filler),
}

impl Place<'_> {
    pub(super) fn group(&self, path: &str) -> Option<&Group> {
        let name = path.trim_start_matches('/');
        let at = self.plan.groups.iter().position(|group| group.name == name)?;
        Some(&self.groups[at])
    }

    /// The target of a task's object.
    pub(super) fn target(&self, task: usize, at: usize, object: &Object) -> Result<Target, Error> {
        let path = &self.plan.scenario.task[task].memcg;
        let group = self.group(path);
        if object.channel == Channel::Anonymous {
            let bytes = object.size.map_or(0, |size| size.pages_ceil() * PAGE as u64);
            let options = RegionOptions::new().name(&format!("task {task}, object {at}"));
            let options = group.iter().fold(options, |options, group| options.group(group));
            let region = self.memory.region(bytes, options);
            let region = region.during(|| "anonymous memory".to_string())?;
            let filler =
                Filler { region: (task << 8 | at) as u32, compressibility: object.compressibility() };
            if let (Some(node), Some(group)) = (object.populate_node, group) {
                on_node(group, &node.to_string())?;
                for page in 0..bytes / PAGE as u64 {
                    filler.fill(&mut region.page_mut(page).during(|| format!("page {page}"))?, page);
                }
                on_node(group, ALL_NODES)?;
            }
            return Ok(Target::Region(region, filler));
        }
        let path =
            object.file.as_deref().map_or_else(|| self.disk.own(task, at), |name| self.disk.shared(name));
        let is_random = object.advice == Advice::Random || object.read_ahead == Some(false);
        let open = |is_buffered| {
            let how = group.iter().fold(Open::read_write(), |how, group| how.group(group));
            let how = if is_random { how.random() } else { how };
            let how = self.head.iter().fold(how, |how, disk| how.on_disk(disk));
            self.memory.open(&path, how.buffered(is_buffered))
        };
        let opened = match open(false) {
            Err(pageout_live::Error::DirectRefused { .. }) => {
                self.watcher.remark(&buffered(&path));
                open(true)
            }
            opened => opened,
        };
        let call_pages = object.request_size.map_or(1, |size| size.pages_ceil());
        let file = opened.during(|| path.display().to_string())?;
        Ok(Target::File { file, call_pages, buf: vec![0; call_pages as usize * PAGE] })
    }
}

/// What a reader has to know of figures of such a file.
pub(crate) fn buffered(path: &Path) -> String {
    format!(
        "{} is read through the kernel's page cache because its file system does not support O_DIRECT",
        path.display()
    )
}

impl Target {
    /// Makes an access; `page` counts calls where a call has several pages. Errors: it failed, or the page is another's.
    pub(super) fn access(&mut self, page: u64, is_write: bool) -> Result<(), Error> {
        let other = |page: u64, found: u64| {
            Error::Asked(format!("page {page}: found the number {found} in it, expected {}", page + 1))
        };
        match self {
            Target::File { file, call_pages, buf } => {
                let first = page * *call_pages;
                let whole = (file.len() / PAGE as u64).saturating_sub(first).min(*call_pages) as usize;
                let buf = &mut buf[..whole * PAGE];
                let offset = first * PAGE as u64;
                if is_write {
                    for (page, bytes) in (first..).zip(buf.chunks_exact_mut(PAGE)) {
                        stamp(bytes, page);
                    }
                    return file.write_at(buf, offset).during(|| format!("page {first}"));
                }
                file.read_at(buf, offset).during(|| format!("page {first}"))?;
                for (page, bytes) in (first..).zip(buf.chunks_exact(PAGE)) {
                    let found = number(bytes);
                    if found != page + 1 {
                        return Err(other(page, found));
                    }
                }
                Ok(())
            }
            Target::Region(region, filler) if is_write => {
                let mut held = region.page_mut(page).during(|| format!("page {page}"))?;
                match number(&held) {
                    0 => filler.fill(&mut held, page),
                    found if found == page + 1 => stamp(&mut held, page),
                    found => return Err(other(page, found)),
                }
                Ok(())
            }
            Target::Region(region, _) => {
                let found = number(&region.page(page).during(|| format!("page {page}"))?);
                // A page that was never written reads as zeroes.
                if found == 0 || found == page + 1 { Ok(()) } else { Err(other(page, found)) }
            }
        }
    }

    /// Pages of one access.
    pub(super) fn call_pages(&self) -> u64 {
        match self {
            Target::File { call_pages, .. } => *call_pages,
            Target::Region(..) => 1,
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))
}
