//! From tasks to pressure stall information: each step tells `psi` what its task does; and the files in which pressure is read.

use pageout_engine::{CGROUP_FILES, CpuId, Engine, FileError, MemcgId, Memstall, Nanos, Step, TaskId};

use super::Machine;
use super::carry::Settled;
use super::threads::THREAD;
use crate::psi::{Doing, Resource};
use crate::report::{Pressure, RemovedGroup, Stall};
use crate::runner::{Next, Runner, State};
use crate::sched::TaskIndex;

/// The directory of the machine's pressure files.
const PROC: &str = "/proc/pressure/";
const CGROUP: &str = "/sys/fs/cgroup";

/// Names of the pressure files of a cgroup, the root included.
pub const PRESSURE_FILES: [&str; 3] = ["memory.pressure", "io.pressure", "cpu.pressure"];

/// Effect of a step on memstall sections: the one before it, the one that it leaves its runner in, whether all of it was stalled, and for how long
/// pages of the working set were decompressed in it.
pub(super) struct Stalled {
    before: Option<Memstall>,
    during: bool,
    after: Option<Memstall>,
    refaults: Nanos,
}

impl Runner {
    /// A step of it has ended. A step that reclaims or compacts is stalled for all of it, and one that decompresses for as long as that takes.
    /// `None`: nothing of it was.
    #[inline]
    pub(super) fn end_step(&mut self, step: &Step, settled: &Settled, engine: &Engine) -> Option<Stalled> {
        let before = self.memstall;
        let after = match step {
            Step::Done(_) if settled.admitted <= self.clock => None,
            // It is done, but its requests wait for a free slot; or it is in the middle of a step.
            Step::Done(_) | Step::Again | Step::Wait(_) => engine.memstall(self.id),
        };
        self.memstall = after;
        let is_reclaim = |section: Option<Memstall>| section == Some(Memstall::Reclaim);
        let relieves = settled.reclaim_calls > 0 || settled.compaction > Nanos::ZERO;
        let during = is_reclaim(before) || relieves || is_reclaim(after);
        let is_any = during || before.is_some() || settled.refaults > Nanos::ZERO;
        is_any.then_some(Stalled { before, during, after, refaults: settled.refaults })
    }

    /// Its activity while it has a CPU, or waits for one.
    #[inline]
    pub(super) fn runs(&self, on_cpu: bool) -> Doing {
        let doing = if on_cpu { Doing::RUNS } else { Doing::QUEUES };
        doing.stalled_if(self.memstall.is_some())
    }

    /// What it does when it has given its CPU up to do what `next` says.
    #[inline]
    pub(super) fn sleeps(&self, next: &Next) -> Doing {
        let iowait = match next {
            // Reclaim waits for a while, even if it is until a device has done something.
            Next::Stop => self.state == State::Asleep && self.memstall != Some(Memstall::Reclaim),
            Next::ComeBack(_) => self.waits_for_device(),
            Next::GoOn | Next::Nap(_) => false,
        };
        let doing = if iowait { Doing::AWAITS_IO } else { Doing::SLEEPS };
        doing.stalled_if(self.memstall.is_some())
    }
}

impl Machine {
    /// Reads a kernel file: one of pressure, or one of the engine's.
    pub fn read_file(&mut self, path: &str) -> Result<String, FileError> {
        let Some((group, resource)) = pressure_file(path) else { return self.engine.read_file(path) };
        let memcg = self.engine.figures().memcg_by_path(group);
        let memcg = memcg.ok_or_else(|| FileError::NoSuchGroup { path: path.into(), group: group.into() })?;
        self.follow_groups();
        self.psi.set_now(self.agenda.now());
        Ok(self.psi.text(memcg, resource).expect("the groups of the engine are known"))
    }

    /// For how long tasks were stalled up to `now`: those of the machine, then those of each cgroup.
    pub(super) fn pressure(&self, now: Nanos) -> Vec<Pressure> {
        let mut psi = self.psi.clone();
        psi.set_now(now);
        let of_group = |(memcg, group): (MemcgId, String)| {
            let totals = psi.totals(memcg).unwrap_or_default();
            let [memory, io, cpu] = totals.map(|[some, full]| Stall { some, full });
            Pressure { group, memory, io, cpu }
        };
        self.engine.figures().memcgs().map(of_group).collect()
    }

    /// What the files of the group of this directory say; `None` if there is no such group.
    pub(super) fn group_as_it_is(&mut self, directory: &str) -> Option<RemovedGroup> {
        let at = self.agenda.now();
        let path = directory.strip_prefix(CGROUP)?;
        let pressure = self.pressure(at).into_iter().find(|pressure| pressure.group == path)?;
        let texts = CGROUP_FILES.iter().filter_map(|file| {
            let text = self.read_file(&format!("{directory}/{}", file.name)).ok()?;
            Some((file.name, text))
        });
        Some(RemovedGroup { at, files: texts.collect(), pressure })
    }

    /// Makes groups known that came into being since the last time.
    pub(super) fn follow_groups(&mut self) {
        let groups: Vec<(MemcgId, String)> = self.engine.figures().memcgs().collect();
        for (memcg, path) in groups {
            if !self.psi.has_group(memcg) {
                let (parent, _) = path.rsplit_once('/').expect("a path begins at the root");
                let parent = self.engine.figures().memcg_by_path(parent).expect("parents come first");
                self.psi.group_add(memcg, Some(parent));
            }
        }
    }

    /// A runner has a CPU from `at` on, or waits for it.
    pub(super) fn runs(&mut self, index: TaskIndex, cpu: CpuId, on_cpu: bool, at: Nanos) {
        let runner = self.runner_mut(index);
        let (id, doing) = (runner.id, runner.runs(on_cpu));
        self.tell(at, id, cpu, doing);
    }

    /// A step of a runner, which began so, has been part of a memstall section, or has ended one.
    #[cold]
    pub(super) fn tell_memstall(&mut self, index: TaskIndex, began: Nanos, stalled: &Stalled) {
        let Stalled { before, during, after, refaults } = *stalled;
        let Runner { id, cpu, clock, .. } = *self.runner_mut(index);
        let running = |is_stalled| Doing::RUNS.stalled_if(is_stalled);
        if before.is_some() != during {
            self.tell(began, id, cpu, running(during));
        }
        // The kernel's threads read nothing back for themselves; zswap's reads what it writes to the device.
        let reads = !during && refaults > Nanos::ZERO && index < THREAD;
        if reads {
            // Where in the step does not matter.
            self.tell(Nanos(clock.0 - refaults.0), id, cpu, running(true));
        }
        if (during || reads) && after.is_none() {
            self.tell(clock, id, cpu, running(false));
        }
    }

    /// A runner goes on in user space, whatever it has waited for.
    #[cold]
    pub(super) fn end_memstall(&mut self, index: TaskIndex) {
        let runner = self.runner_mut(index);
        runner.memstall = None;
        let Runner { id, cpu, clock, .. } = *runner;
        self.tell(clock, id, cpu, Doing::RUNS);
    }

    #[inline(never)]
    fn tell(&mut self, at: Nanos, task: TaskId, cpu: CpuId, doing: Doing) {
        self.psi.tell(self.agenda.now(), at, task, cpu, doing);
    }
}

/// The group and the resource that a file is about, if it is one of pressure.
fn pressure_file(path: &str) -> Option<(&str, Resource)> {
    let of_name = |name: &str| Resource::ALL.into_iter().find(|resource| resource.name() == name);
    if let Some(name) = path.strip_prefix(PROC) {
        return Some(("/", of_name(name)?));
    }
    let (group, file) = path.strip_prefix(CGROUP)?.rsplit_once('/')?;
    let resource = of_name(file.strip_suffix(".pressure")?)?;
    Some((if group.is_empty() { "/" } else { group }, resource))
}
