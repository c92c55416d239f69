//! Sampling processors: each counts its accesses down, and samples the one with which it comes to zero. [tiering 5.1, 5.3, 5.6]

use pageout_engine::Pfn;
use pageout_workload::rng::SplitMix64;

use super::SampleSpec;

/// The part of a sampling period that varies: one in so many.
const JITTER: u64 = 16;

/// The samplers of all CPUs.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) spec: SampleSpec,
    seed: u64,
    cpus: Vec<Cpu>,
}

#[derive(Clone, Default, Debug)]
struct Cpu {
    /// Accesses to the next sample. 0: it has not begun.
    left: u64,
    periods: u64,
    ring: Vec<Pfn>,
}

impl Sampler {
    pub(crate) fn new(spec: SampleSpec, seed: u64, cpus: usize) -> Sampler {
        Sampler { spec, seed, cpus: vec![Cpu::default(); cpus] }
    }

    /// A CPU makes `weight` accesses like this one; whether one of them is sampled.
    #[inline]
    pub(crate) fn samples(&mut self, cpu: usize, is_write: bool, weight: u64) -> bool {
        if is_write && self.spec.loads_only {
            return false;
        }
        let left = &mut self.cpus[cpu].left;
        if *left > weight {
            *left -= weight;
            return false;
        }
        self.turn(cpu, weight)
    }

    /// A period is over, if one had begun.
    #[cold]
    fn turn(&mut self, cpu: usize, weight: u64) -> bool {
        let had_begun = self.cpus[cpu].periods > 0;
        if !had_begun {
            self.cpus[cpu].left = self.period(cpu);
            return false;
        }
        // An access that stands for more than a period is one page all the same.
        let over = weight - self.cpus[cpu].left;
        let period = self.period(cpu);
        self.cpus[cpu].left = period.saturating_sub(over).max(1);
        true
    }

    fn period(&mut self, cpu: usize) -> u64 {
        let state = &mut self.cpus[cpu];
        state.periods += 1;
        let period = u64::from(self.spec.period);
        let spread = period / JITTER;
        let of_cpu = SplitMix64::derive_seed(self.seed, cpu as u64);
        period - spread / 2 + SplitMix64::derive_seed(of_cpu, state.periods) % (spread + 1)
    }

    /// Keeps a sample; `None` where the ring is full, else whether it is the first in it.
    pub(crate) fn keep(&mut self, cpu: usize, pfn: Pfn) -> Option<bool> {
        let ring = &mut self.cpus[cpu].ring;
        let has_room = ring.len() < self.spec.ring as usize;
        has_room.then(|| {
            ring.push(pfn);
            ring.len() == 1
        })
    }

    /// Takes what a CPU has kept.
    pub(crate) fn take(&mut self, cpu: usize) -> Vec<Pfn> {
        std::mem::take(&mut self.cpus[cpu].ring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::HintSpec;

    fn sampler(change: impl FnOnce(&mut SampleSpec)) -> Sampler {
        let Some(HintSpec::Samples(mut spec)) = HintSpec::preset("ibs") else { panic!("it samples") };
        change(&mut spec);
        Sampler::new(spec, 1, 2)
    }

    fn taken(sampler: &mut Sampler, accesses: u64, weight: u64) -> Vec<u64> {
        (0..accesses / weight).filter(|_| sampler.samples(0, false, weight)).collect()
    }

    #[test]
    fn one_access_in_a_period_is_sampled_and_periods_differ_by_a_sixteenth() {
        let mut sampler = sampler(|_| {});
        let at = taken(&mut sampler, 10_000_000, 1);
        assert!((990..=1000).contains(&at.len()), "{}", at.len());
        let periods: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(periods.iter().all(|period| (9_687..=10_313).contains(period)), "{periods:?}");
        assert!(periods.iter().any(|period| *period != periods[0]));
    }

    #[test]
    fn accesses_that_stand_for_others_are_sampled_as_often_as_those() {
        let alone = taken(&mut sampler(|_| {}), 10_000_000, 1).len();
        for weight in [16, 64, 1000] {
            let together = taken(&mut sampler(|_| {}), 10_000_000, weight).len();
            assert!(alone.abs_diff(together) <= 2, "{weight}: {together} of {alone}");
        }
    }

    #[test]
    fn two_machines_with_one_seed_sample_alike_and_two_cpus_do_not() {
        let all = |cpu| {
            let mut sampler = sampler(|_| {});
            (0..100_000).filter(|_| sampler.samples(cpu, false, 1)).collect::<Vec<_>>()
        };
        assert_eq!(all(0), all(0));
        assert_ne!(all(0), all(1));
    }

    #[test]
    fn stores_are_not_counted_where_only_loads_are_sampled() {
        let mut sampler = sampler(|spec| spec.loads_only = true);
        assert!((0..100_000).all(|_| !sampler.samples(0, true, 1)));
        assert!((0..100_000).any(|_| sampler.samples(0, false, 1)));
    }

    #[test]
    fn a_full_ring_takes_no_more_until_somebody_has_come_for_it() {
        let mut sampler = sampler(|spec| spec.ring = 2);
        let kept = |sampler: &mut Sampler| [1, 2, 3].map(|pfn| sampler.keep(0, Pfn(pfn)));
        assert_eq!(kept(&mut sampler), [Some(true), Some(false), None]);
        assert_eq!(sampler.keep(1, Pfn(4)), Some(true), "another CPU has another");
        assert_eq!(sampler.take(0), [Pfn(1), Pfn(2)]);
        assert_eq!(kept(&mut sampler), [Some(true), Some(false), None]);
    }
}
