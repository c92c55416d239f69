//! A task that reads and writes files and anonymous memory, alone on a machine on which nothing takes time: only the engine's decisions are left.
//!
//! A live page cache is compared with it, access by access: if one thread reads, both must leave the same counters. Work costs nothing and the device
//! answers immediately, as prices and latencies are the simulator's own; so the clock does not move.

use std::collections::BTreeSet;

use pageout_engine::{
    AccessedBits, Advice, Bdi, Config, ConfigError, CpuId, Engine, EngineBuilder, FileError, FileId,
    FileKind, FileSpec, FrameGate, MemcgId, Nanos, ObjectId, PageContents, PageName, Step, StoryFilter,
    SwapId, SwapKind, SwapSpec, TaskId,
};

use crate::cost::{Channel, Costs};
use crate::device::{DeviceSpec, Latency};
use crate::machine::{BuildError, Machine, MachineSpec, RunError};
use crate::observe::Observer;
use crate::task::{StreamSource, TaskSpec};

/// A task in its own group, with its open files and its mapped memory.
pub struct LoneReader {
    engine: Engine,
    task: TaskId,
    group: String,
    swap: Option<SwapId>,
    files: Vec<FileId>,
    /// How each object is accessed.
    channels: Vec<Channel>,
    fsync_every: Vec<(ObjectId, u32)>,
    follows: BTreeSet<PageName>,
}

/// The reason why a lone reader cannot be made, or does not reach its end.
#[derive(Debug, thiserror::Error)]
pub enum LoneReaderError {
    /// The engine, its group or a file of it makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A kernel file rejects a value.
    #[error(transparent)]
    File(#[from] FileError),
    /// A write to a kernel file has to wait, as pages have to be reclaimed first.
    #[error("{path}: what is written there has to be waited for: write it before anything is in memory")]
    Waits {
        /// The file's path.
        path: String,
    },
    /// The machine around it can't be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// An access has failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl LoneReader {
    /// A task on CPU 0 in a new group below the root.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`].
    pub fn new(config: &Config, group: &str) -> Result<LoneReader, LoneReaderError> {
        LoneReader::with_swap(config, group, 0)
    }

    /// The same on a machine with this many pages of swap.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`].
    pub fn with_swap(config: &Config, group: &str, pages: u64) -> Result<LoneReader, LoneReaderError> {
        LoneReader::with_contents(config, group, pages, None)
    }

    /// The same where a host knows the contents of the pages that go to swap.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`].
    pub fn with_contents(
        config: &Config,
        group: &str,
        pages: u64,
        contents: Option<Box<dyn PageContents>>,
    ) -> Result<LoneReader, LoneReaderError> {
        let mut builder = Engine::builder(config.clone())?;
        contents.into_iter().for_each(|contents| builder.set_page_contents(contents));
        LoneReader::of(builder, group, pages)
    }

    /// The same where a host knows which pages of anonymous memory were used, and which frames are in use. The accesses are those that the engine is notified of.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`].
    pub fn with_samples(
        config: &Config,
        group: &str,
        pages: u64,
        (bits, gate): (Box<dyn AccessedBits>, Box<dyn FrameGate>),
    ) -> Result<LoneReader, LoneReaderError> {
        let mut builder = Engine::builder(config.clone())?;
        builder.set_accessed_bits(bits);
        builder.set_frame_gate(gate);
        let mut reader = LoneReader::of(builder, group, pages)?;
        let mm = reader.engine.mm_of(reader.task);
        reader.engine.sample_accessed_bits(mm, true);
        Ok(reader)
    }

    fn of(mut builder: EngineBuilder, group: &str, pages: u64) -> Result<LoneReader, LoneReaderError> {
        let swap = match pages {
            0 => None,
            _ => Some(builder.swap_on(SwapSpec { pages, kind: SwapKind::Device })?),
        };
        let mut engine = builder.build();
        let memcg = engine.memcg_create(MemcgId::ROOT, group)?;
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        Ok(LoneReader {
            engine,
            task,
            group: group.to_owned(),
            swap,
            files: Vec::new(),
            channels: Vec::new(),
            fsync_every: Vec::new(),
            follows: BTreeSet::new(),
        })
    }

    /// Writes a kernel file before anything is read.
    ///
    /// # Errors
    /// [`LoneReaderError::File`], [`LoneReaderError::Waits`].
    pub fn write(&mut self, path: &str, value: &str) -> Result<(), LoneReaderError> {
        match self.engine.write_file(self.task, path, value)? {
            Step::Done(_) => Ok(()),
            _ => Err(LoneReaderError::Waits { path: path.to_owned() }),
        }
    }

    /// Opens a file of this many pages, the next object of the accesses. `is_random`: it has no readahead.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`].
    pub fn open(&mut self, pages: u64, is_random: bool) -> Result<(), LoneReaderError> {
        let name = format!("object-{}", self.files.len());
        let spec = FileSpec { name, pages, kind: FileKind::Regular, bdi: Bdi::default() };
        let file = self.engine.file_create(spec)?;
        let object = self.engine.open(self.task, file)?;
        if is_random {
            self.engine.fadvise(self.task, object, Advice::Random)?;
        }
        self.files.push(file);
        self.channels.push(Channel::File);
        Ok(())
    }

    /// Makes every Nth write of the file that was opened last be followed by a sync, before the next access. `are_partial`: each write is of a part
    /// of its page.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`] where none was opened.
    pub fn sync_every(&mut self, writes: u32, are_partial: bool) -> Result<(), LoneReaderError> {
        let last = self.channels.iter().rposition(|&channel| channel == Channel::File);
        let object = ObjectId(last.map_or(u32::MAX, |last| last as u32));
        self.engine.set_partial_writes(self.task, object, are_partial)?;
        self.fsync_every.push((object, writes));
        Ok(())
    }

    /// Has each decision on some pages of the file that was opened last told to the observer.
    pub fn follow(&mut self, pages: impl IntoIterator<Item = u64>) {
        if let Some(&file) = self.files.last() {
            self.follows.extend(pages.into_iter().map(|page| PageName::File { file, page }));
        }
    }

    /// Maps anonymous memory of this many pages as the next object of the accesses, and sends each decision on some of them to the observer.
    ///
    /// # Errors
    /// [`LoneReaderError::Config`].
    pub fn map(&mut self, pages: u64, follows: impl IntoIterator<Item = u64>) -> Result<(), LoneReaderError> {
        self.engine.map_anon(self.task, pages, Advice::Normal)?;
        self.channels.push(Channel::Mapped);
        // The mapping is the first of its address space, so pages are numbered from 0.
        let mm = self.engine.mm_of(self.task);
        self.follows.extend(follows.into_iter().map(|page| PageName::Anon { mm, page }));
        Ok(())
    }

    /// Makes the accesses; the machine as it is then has the counters.
    ///
    /// # Errors
    /// [`LoneReaderError::Run`].
    pub fn run(
        self,
        accesses: StreamSource,
        observer: &mut dyn Observer,
    ) -> Result<Machine, LoneReaderError> {
        let device = DeviceSpec {
            read: Latency::Constant(Nanos::ZERO),
            tail: None,
            sequential: None,
            seek: None,
            iops_max: None,
            read_bandwidth: u64::MAX,
            write: Latency::Constant(Nanos::ZERO),
            write_bandwidth: u64::MAX,
            ..DeviceSpec::preset("nvme").expect("it is a preset")
        };
        let spec = MachineSpec {
            costs: Costs::free(),
            devices: vec![device],
            files: self.files.iter().map(|&file| (file, 0)).collect(),
            swaps: self.swap.iter().map(|&swap| (swap, 0)).collect(),
            ..MachineSpec::default()
        };
        let mut machine = Machine::new(self.engine, spec)?;
        let memcg = format!("/{}", self.group);
        let task = TaskSpec::new(self.task, &self.group, &memcg, self.channels, accesses);
        machine.task_add(TaskSpec { fsync_every: self.fsync_every, ..task })?;
        if !self.follows.is_empty() {
            machine.tell_story(StoryFilter::Pages(self.follows));
        }
        machine.run(observer)?;
        Ok(machine)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use std::sync::Arc;

    use pageout_workload::{Access, AccessStream, InMemory};

    use super::*;

    fn of(accesses: Vec<Access>) -> StreamSource {
        let accesses: Arc<[Access]> = accesses.into();
        Box::new(move |_| Ok(Box::new(InMemory::new(Arc::clone(&accesses))) as Box<dyn AccessStream>))
    }

    #[test]
    fn reads_of_a_lone_reader_are_counted_and_take_no_time() {
        let mut reader = LoneReader::new(&Config::default(), "reader").unwrap();
        reader.write("/sys/fs/cgroup/reader/memory.max", &(100 * 4096).to_string()).unwrap();
        reader.open(300, true).unwrap();
        reader.open(50, false).unwrap();
        let random = (0..300).map(|page| Access::new(0, page, false));
        let in_order = (0..40).map(|page| Access::new(1, page, false));
        let machine = reader.run(of(random.chain(in_order).collect()), &mut ()).unwrap();
        let report = machine.report();
        assert_eq!((report.accesses, report.end), (340, Nanos::ZERO));
        let [device] = &report.devices[..] else { panic!("there is one device") };
        assert!(device.pages_read > 340, "what is read in order is read ahead");
        assert!(device.read.count < 320, "and a request is of many pages then");
    }

    #[test]
    fn memory_of_a_lone_reader_goes_to_swap_and_comes_back() {
        let mut reader = LoneReader::with_swap(&Config::default(), "reader", 1000).unwrap();
        reader.write("/sys/fs/cgroup/reader/memory.max", &(100 * 4096).to_string()).unwrap();
        reader.open(50, true).unwrap();
        reader.map(300, []).unwrap();
        let accesses = (0..300).map(|page| Access::new(1, page, true));
        let again = (0..300).map(|page| Access::new(1, page, false));
        let file = (0..50).map(|page| Access::new(0, page, false));
        let machine = reader.run(of(accesses.chain(file).chain(again).collect()), &mut ()).unwrap();
        let report = machine.report();
        assert_eq!((report.accesses, report.end), (650, Nanos::ZERO));
        let [device] = &report.devices[..] else { panic!("there is one device") };
        assert!(device.pages_read > 200 && device.pages_written > 200);
    }

    #[test]
    fn what_a_lone_reader_may_not_write_is_said() {
        let mut reader = LoneReader::new(&Config::default(), "reader").unwrap();
        assert!(matches!(reader.write("/proc/none", "1"), Err(LoneReaderError::File(_))));
        reader.open(9, true).unwrap();
        let beyond = reader.run(of(vec![Access::new(0, 9, false)]), &mut ());
        assert!(matches!(beyond, Err(LoneReaderError::Run(_))));
    }
}
