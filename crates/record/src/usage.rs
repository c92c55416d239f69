//! How much processes read, and what they hold: `/proc/PID/io` and `/proc/PID/smaps_rollup`. They exist without tracefs and cgroups.
//!
//! `rchar` counts what calls asked for, `read_bytes` what came from disks: hits are the difference, as far as calls read files. Faults of mapped
//! files count in `read_bytes` alone. When a parent waits for a child that has ended, the kernel adds the child's bytes to the parent's, so the sum
//! over all living processes only grows. See [proc](https://docs.kernel.org/filesystems/proc.html).

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::manifest::{ProcessRecord, Sample};
use crate::root::Root;

/// Rows of `/proc/PID/io`, in the order of [`COLUMNS`].
const IO: [&str; 4] = ["rchar", "wchar", "read_bytes", "write_bytes"];
/// Rows of `smaps_rollup`, in KiB there.
const MEMORY: [&str; 7] =
    ["Rss", "Pss_Anon", "Pss_File", "Pss_Shmem", "Private_Dirty", "Referenced", "SwapPss"];

/// The columns of `processes.csv`. Values that may not be read are empty.
pub(crate) const COLUMNS: &str = "time_ns,pid,rchar,wchar,read_bytes,write_bytes,rss_bytes,pss_anon_bytes,pss_file_bytes,pss_shmem_bytes,private_dirty_bytes,referenced_bytes,swap_bytes";

/// Figures of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) io: Option<[u64; IO.len()]>,
    pub(crate) memory: Option<[u64; MEMORY.len()]>,
}

impl Usage {
    /// That of a process. Reading its memory walks its page tables, so it can be left out.
    pub(crate) fn of(root: &Root, pid: u32, with_memory: bool) -> Usage {
        let io = root.text(format!("/proc/{pid}/io")).and_then(|text| rows(&text, IO, 1));
        let memory =
            || root.text(format!("/proc/{pid}/smaps_rollup")).and_then(|text| rows(&text, MEMORY, 1024));
        Usage { io, memory: if with_memory { memory() } else { None } }
    }

    /// Its line in `processes.csv`.
    pub(crate) fn line(&self, time_ns: u64, pid: u32) -> String {
        let mut line = format!("{time_ns},{pid}");
        let mut add = |known: Option<&[u64]>, count: usize| {
            for at in 0..count {
                line.push(',');
                if let Some(known) = known {
                    let _ = write!(line, "{}", known[at]);
                }
            }
        };
        add(self.io.as_ref().map(<[u64; 4]>::as_slice), IO.len());
        add(self.memory.as_ref().map(<[u64; 7]>::as_slice), MEMORY.len());
        line.push('\n');
        line
    }
}

/// The numbers of these rows, times `unit`. None: the text has none of them, as that of a process that has ended.
fn rows<const COUNT: usize>(text: &str, names: [&str; COUNT], unit: u64) -> Option<[u64; COUNT]> {
    let number = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let found = names.map(number);
    // Kernels before 5.15 don't split the proportional set size.
    found.iter().any(Option::is_some).then(|| found.map(|number| number.unwrap_or(0) * unit))
}

/// The sums of recorded processes over time.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    begin: Option<[u64; IO.len()]>,
    end: [u64; IO.len()],
    most: usize,
    /// Processes, and whether their figures could ever be read.
    readable: BTreeMap<u32, bool>,
}

impl Totals {
    /// Adds the figures of all processes at one time. A process without a waiting parent takes its bytes with it, so a lower sum is ignored.
    pub(crate) fn take(&mut self, of: &BTreeMap<u32, Usage>) {
        self.most = self.most.max(of.len());
        for (pid, usage) in of {
            *self.readable.entry(*pid).or_default() |= usage.io.is_some();
        }
        let mut sum = [0; IO.len()];
        for io in of.values().filter_map(|usage| usage.io) {
            sum.iter_mut().zip(io).for_each(|(sum, bytes)| *sum += bytes);
        }
        self.begin.get_or_insert(sum);
        self.end.iter_mut().zip(sum).for_each(|(end, sum)| *end = (*end).max(sum));
    }

    /// What they did since the first look.
    pub(crate) fn record(&self) -> ProcessRecord {
        let begin = self.begin.unwrap_or_default();
        let of = |at: usize| self.end[at].saturating_sub(begin[at]);
        ProcessRecord {
            most: self.most as u64,
            unreadable: self.readable.values().filter(|is_readable| !**is_readable).count() as u64,
            rchar: of(0),
            wchar: of(1),
            read_bytes: of(2),
            write_bytes: of(3),
        }
    }
}

/// Reads of children of this process that have ended: those of the process, without those of its own threads.
pub(crate) fn of_children(root: &Root) -> Option<[u64; IO.len()]> {
    let mut sum = root.text("/proc/self/io").and_then(|text| rows(&text, IO, 1))?;
    for entry in std::fs::read_dir(root.path("/proc/self/task")).ok()?.flatten() {
        let name = format!("/proc/self/task/{}/io", entry.file_name().to_string_lossy());
        let own = root.text(name).and_then(|text| rows(&text, IO, 1)).unwrap_or_default();
        sum.iter_mut().zip(own).for_each(|(sum, own)| *sum = sum.saturating_sub(own));
    }
    Some(sum)
}

/// The memory of these processes as a sample of a group that no controller counts: parts that are shared count once.
pub(crate) fn sample(of: &BTreeMap<u32, Usage>, time_ns: u64) -> Sample {
    let sum = |at: usize| of.values().filter_map(|usage| usage.memory).map(|memory| memory[at]).sum::<u64>();
    let (anon, file, shmem) = (sum(1), sum(2), sum(3));
    Sample {
        time_ns,
        usage_bytes: anon + file + shmem,
        file_bytes: file,
        anon_bytes: anon + shmem,
        swap_bytes: sum(6),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("proc/7");
        std::fs::create_dir_all(&process).unwrap();
        let io = "rchar: 4096\nwchar: 5\nsyscr: 1\nsyscw: 2\nread_bytes: 8192\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
        std::fs::write(process.join("io"), io).unwrap();
        let rollup = "7f00-7f10 ---p 00000000 00:00 0   [rollup]\nRss:  12 kB\nPss:  10 kB\nPss_Anon: 4 kB\nPss_File: 5 kB\nPss_Shmem: 1 kB\nPrivate_Dirty: 4 kB\nReferenced: 8 kB\nSwap: 6 kB\nSwapPss: 2 kB\n";
        std::fs::write(process.join("smaps_rollup"), rollup).unwrap();
        let root = Root::below(folder.path());
        (folder, root)
    }

    #[test]
    fn process_figures_are_bytes_of_its_files() {
        let (_folder, root) = fake();
        let usage = Usage::of(&root, 7, true);
        assert_eq!(usage.line(3, 7), "3,7,4096,5,8192,0,12288,4096,5120,1024,4096,8192,2048\n");
        assert_eq!(usage.line(3, 7).matches(',').count(), COLUMNS.matches(',').count());
        let memory = sample(&BTreeMap::from([(7, usage)]), 3);
        assert_eq!((memory.usage_bytes, memory.file_bytes, memory.anon_bytes), (10_240, 5120, 5120));
        assert_eq!(memory.swap_bytes, 2048);
    }

    #[test]
    fn unreadable_process_has_empty_columns_and_is_counted() {
        let (_folder, root) = fake();
        let gone = Usage::of(&root, 8, true);
        assert_eq!(gone.line(3, 8), "3,8,,,,,,,,,,,\n");
        let mut totals = Totals::default();
        totals.take(&BTreeMap::from([(7, Usage::of(&root, 7, false)), (8, gone)]));
        assert_eq!((totals.record().most, totals.record().unreadable), (2, 1));
    }

    #[test]
    fn reads_of_children_are_those_of_no_own_thread() {
        let (folder, root) = fake();
        let task = folder.path().join("proc/self/task/9");
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(folder.path().join("proc/self/io"), "rchar: 5000\nread_bytes: 4096\n").unwrap();
        std::fs::write(task.join("io"), "rchar: 1000\nread_bytes: 0\n").unwrap();
        assert_eq!(of_children(&root), Some([4000, 0, 4096, 0]));
    }

    #[test]
    fn process_totals_count_from_the_first_look() {
        let of = |bytes| BTreeMap::from([(1, Usage { io: Some([bytes, 0, bytes / 2, 0]), memory: None })]);
        let mut totals = Totals::default();
        for bytes in [100, 300, 260] {
            totals.take(&of(bytes));
        }
        let record = totals.record();
        assert_eq!(
            (record.rchar, record.read_bytes),
            (200, 100),
            "a process that went took its bytes with it"
        );
    }
}
