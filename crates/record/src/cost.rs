//! What an event costs on this machine: the CPU time of cached reads with the event of reads, less that without.
//!
//! The recorder reads one page of its own program again and again, before and after the event is enabled, and keeps the fastest round of each.
//! That takes some ten milliseconds. The price depends on the machine: 110 ns per event on one, 350 ns on another, busy one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::error::Error;
use crate::tracefs::Instance;

/// Reads of a round, and rounds.
const READS: u32 = 500;
const ROUNDS: u32 = 12;

/// A page that is in memory: of the recorder's own program.
#[derive(Debug)]
pub(crate) struct Probe {
    file: File,
    without: Duration,
}

impl Probe {
    /// Measures reads without the event. None: the program's file can't be read.
    pub(crate) fn new() -> Option<Probe> {
        let file = File::open("/proc/self/exe").ok()?;
        let without = fastest(&file)?;
        Some(Probe { file, without })
    }

    /// Measures reads with the event, and leaves the instance empty, off and without tasks. None: this file system has no such event, or the
    /// difference is lost in noise. Errors: the instance can't be set.
    pub(crate) fn event_ns(&self, instance: &mut Instance) -> Result<Option<u64>, Error> {
        instance.follow(&[std::process::id()])?;
        instance.set("tracing_on", "1")?;
        let with = fastest(&self.file);
        instance.set("tracing_on", "0")?;
        let mut bytes = 0;
        for cpu in 0..instance.cpus() {
            bytes += instance.drain(cpu, |_, _| Ok(()))?;
        }
        instance.set("trace", "")?;
        instance.set("set_event_pid", "")?;
        let difference = with.and_then(|with| with.checked_sub(self.without));
        // A small event alone has 20 bytes.
        let is_traced = bytes > u64::from(READS * ROUNDS) * 20;
        Ok(difference.filter(|_| is_traced).map(|time| time.as_nanos() as u64).filter(|time| *time > 0))
    }
}

/// CPU time of one read in the fastest round.
fn fastest(file: &File) -> Option<Duration> {
    let mut page = [0; 4096];
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        let since = thread_time();
        for _ in 0..READS {
            file.read_at(&mut page, 0).ok()?;
        }
        fastest = fastest.min(thread_time().saturating_sub(since));
    }
    Some(fastest / READS)
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
