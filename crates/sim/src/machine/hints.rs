//! Hardware hints on their way: from accesses that hardware sees to the engine, which is notified when a ring is read.
//!
//! A machine with uniform memory has none of this, and neither has one in which hints are off.

use pageout_engine::{CpuId, Nanos, NodeId, Pfn};

use super::Machine;
use super::agenda::Event;
use crate::hints::{Counters, HintSpec, Sampler};
use crate::memory::{MemorySpec, Moves};
use crate::observe::Observer;

/// The hardware, and what it has just seen.
pub(super) struct Hints {
    source: Source,
    /// By ring: a read is scheduled.
    is_due: Vec<bool>,
    /// Buffer: frames of the accesses that were sampled in a run of them, and whether each was a store.
    sampled: Vec<(Pfn, bool)>,
}

/// What tells.
enum Source {
    /// Rings are those of CPUs.
    Samples(Sampler),
    /// Rings are those of nodes.
    Counts(Vec<Counters>),
}

impl Hints {
    pub(super) fn new(spec: HintSpec, seed: u64, cpus: usize, nodes: usize) -> Hints {
        let (source, rings) = match spec {
            HintSpec::Samples(spec) => (Source::Samples(Sampler::new(spec, seed, cpus)), cpus),
            HintSpec::Counts(spec) => {
                (Source::Counts((0..nodes).map(|_| Counters::new(spec)).collect()), nodes)
            }
        };
        Hints { source, is_due: vec![false; rings], sampled: Vec::new() }
    }

    /// A CPU accesses a frame, `weight` times.
    #[inline]
    pub(super) fn access(&mut self, at: Nanos, cpu: CpuId, pfn: Pfn, place: Place, weight: u64) {
        match &mut self.source {
            // It is off while a processor is in the kernel, where read(2) and write(2) copy pages.
            Source::Samples(_) if place.is_in_kernel => {}
            Source::Samples(sampler) => {
                if sampler.samples(usize::from(cpu.0), place.is_write, weight) {
                    self.sampled.push((pfn, place.is_write));
                }
            }
            Source::Counts(counters) if !place.is_top_tier => {
                counters[place.node.index()].count(at, pfn, weight as u32);
            }
            Source::Counts(_) => {}
        }
    }
}

/// Where an access goes, and what it is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) node: NodeId,
    pub(super) is_top_tier: bool,
    pub(super) is_write: bool,
    /// A system call makes it.
    pub(super) is_in_kernel: bool,
}

impl Machine {
    /// Some accesses of a CPU have been made: what was seen of them goes into rings. Returns what that took.
    #[inline(never)]
    pub(super) fn keep_hints(&mut self, at: Nanos, cpu: CpuId) -> Nanos {
        let Some(memory) = &mut self.memory else { return Nanos::ZERO };
        let Hints { source, is_due, sampled } = &mut memory.hints;
        match source {
            Source::Samples(sampler) => {
                let from = self.engine.figures().node_of_cpu(cpu);
                let spec = sampler.spec;
                let ring = usize::from(cpu.0);
                let taken = sampled.len() as u64;
                for (pfn, is_write) in sampled.drain(..) {
                    let node = self.engine.node_of(pfn);
                    let longer = memory.load.longer(at, from, node, Moves::Line, is_write);
                    if MemorySpec::DRAM.read_latency + longer < spec.min_latency.0
                        || !self.engine.hardware_sampled(pfn, from)
                    {
                        continue;
                    }
                    let kept = sampler.keep(ring, pfn);
                    self.engine.hardware_kept(from, kept.is_some());
                    if kept == Some(true) && !std::mem::replace(&mut is_due[ring], true) {
                        let due = (at + spec.drain).max(self.agenda.now());
                        self.agenda.push(due, Event::EmptyRing { ring: cpu.0 });
                    }
                }
                Nanos(taken * spec.overhead.0)
            }
            Source::Counts(counters) => {
                for (ring, counters) in counters.iter().enumerate() {
                    if counters.has_hot() && !std::mem::replace(&mut is_due[ring], true) {
                        let due = (at + counters.spec.drain).max(self.agenda.now());
                        self.agenda.push(due, Event::EmptyRing { ring: ring as u16 });
                    }
                }
                Nanos::ZERO
            }
        }
    }

    /// A ring is read: on the CPU that filled it, or on the first for entries that a device has counted.
    #[cold]
    pub(super) fn empty_ring(&mut self, ring: u16, observer: &mut dyn Observer) {
        let memory = self.memory.as_mut().expect("its hardware has filled a ring");
        let hints = &mut memory.hints;
        hints.is_due[usize::from(ring)] = false;
        let cpu = match &mut hints.source {
            Source::Samples(sampler) => {
                let from = self.engine.figures().node_of_cpu(CpuId(ring));
                for pfn in sampler.take(usize::from(ring)) {
                    self.engine.hardware_hinted(pfn, Some(from), 1);
                }
                CpuId(ring)
            }
            Source::Counts(counters) => {
                let (node, counters) = (NodeId(ring as u8), &mut counters[usize::from(ring)]);
                let (hot, lost) = counters.take();
                for unit in hot {
                    self.engine.hardware_kept(node, true);
                    self.engine.hardware_hinted_range(unit.first, counters.spec.unit_pages, unit.accesses);
                }
                (0..lost).for_each(|_| self.engine.hardware_kept(node, false));
                CpuId(0)
            }
        };
        self.after_kernel_work(cpu, observer);
    }
}
