//! Tenants of a memory: what each of them misses in the memory they share, what it would miss in one of its own, and how to split the memory.
//!
//! ```text
//!   accesses  a1 b1 a2 b1 ...  ─all of them─▶ one memory ─▶ misses of a, misses of b
//!                              ├─ those of a ─▶ its own curve ┐
//!                              └─ those of b ─▶ its own curve ┴▶ the split with the fewest misses
//! ```

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pageout_cache::curve::split::{Split, best_split};
use pageout_cache::{Choice, Opt};
use pageout_policy::Fault;
use pageout_workload::trace::{DenseReader, Parted};
use pageout_workload::{ReadOptions, TraceError};

use super::{Cell, Question, Trace};
use crate::{Stage, Watcher};

/// Accesses between two looks at whether the runs are to end.
const BLOCK: usize = 1 << 16;

/// The reason why a shared memory has no figures.
#[derive(Debug, thiserror::Error)]
pub enum NotShared {
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The policy broke the contract.
    #[error("{0}")]
    Broken(Fault),
}

/// A trace by tenant, as textbook policies want it.
pub struct Tenants {
    order: Arc<[u16]>,
    /// All of it.
    all: Trace,
    /// Of each tenant.
    own: Vec<Trace>,
}

/// The result of a memory that tenants share, under a policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Shares {
    /// Misses by tenant in the memory that they share.
    pub shared: Vec<u64>,
    /// Sizes in pages that the memory may be split at, from 0 to all of it.
    pub sizes: Vec<u32>,
    /// By tenant: misses alone in a memory of each of these sizes.
    pub curves: Vec<Vec<u64>>,
}

impl Shares {
    /// The split of the memory with the fewest misses, by the curves.
    pub fn split(&self) -> Split {
        best_split(&self.curves)
    }
}

/// Sizes at which a memory of N pages can be split: equal parts, or single pages if it has fewer pages than parts.
pub fn steps(pages: u32, parts: u32) -> Vec<u32> {
    let parts = parts.min(pages);
    (0..=parts).map(|part| (u64::from(pages) * u64::from(part) / u64::from(parts.max(1))) as u32).collect()
}

impl Tenants {
    /// Numbers the pages of all of it, and of each tenant.
    pub fn of(path: &Path, options: &ReadOptions, parted: &Parted) -> Result<Tenants, TraceError> {
        let numbered = |reader| {
            let trace = super::trace::read(path, options, reader, u64::MAX, &());
            trace.map(|trace| trace.expect("nobody ends it"))
        };
        let own = parted
            .parts
            .iter()
            .map(|part| numbered(DenseReader::of_loaded(path, &part.loaded).expect("a part is kept whole")));
        Ok(Tenants {
            order: Arc::clone(&parted.order),
            own: own.collect::<Result<_, _>>()?,
            all: numbered(DenseReader::of_parted(path, parted))?,
        })
    }

    /// Accesses of each tenant among the first so many of all.
    pub fn of_first(&self, accesses: u64) -> Vec<u64> {
        let mut own = vec![0; self.own.len()];
        let first = usize::try_from(accesses).unwrap_or(usize::MAX).min(self.order.len());
        self.order[..first].iter().for_each(|&tenant| own[usize::from(tenant)] += 1);
        own
    }

    /// Simulates a memory of N pages under a policy, shared, and alone at each of `sizes`, without the warm-up. Returns `None` if it must
    /// end early.
    pub fn shares(
        &self,
        policy: &Choice,
        sizes: &[u32],
        warm_up: u64,
        question: &Question,
    ) -> Result<Option<Shares>, NotShared> {
        let size = *sizes.last().expect("a memory has sizes to split it at");
        let Some(shared) = self.shared(policy, size, warm_up, question)? else { return Ok(None) };
        let before = self.of_first(warm_up);
        let mut curves = Vec::new();
        for (trace, before) in self.own.iter().zip(before) {
            // What is larger than all of its pages holds them all.
            let held = |&size: &u32| size.min(trace.distinct_pages);
            let mut rising: Vec<u32> = sizes.iter().map(held).filter(|size| *size > 0).collect();
            rising.dedup();
            let of_tenant = Question {
                name: question.name.clone(),
                policies: std::slice::from_ref(policy),
                sizes: &rising,
                warm_up: before,
                ..*question
            };
            let mut answer = of_tenant.exactly(trace)?;
            if let Some(broken) = answer.broken.pop() {
                return Err(NotShared::Broken(broken.fault));
            }
            let misses = |size: &u32| match rising.binary_search(&held(size)) {
                Ok(at) => match answer.cells[0][at] {
                    Cell::Misses(misses) => Some(misses),
                    _ => None,
                },
                // With no memory each access is a miss.
                Err(_) => Some(trace.accesses - before),
            };
            match sizes.iter().map(misses).collect::<Option<Vec<u64>>>() {
                Some(curve) => curves.push(curve),
                None => return Ok(None),
            }
        }
        Ok(Some(Shares { shared, sizes: sizes.to_vec(), curves }))
    }

    /// Misses of each tenant in a memory that all of them share.
    fn shared(
        &self,
        policy: &Choice,
        size: u32,
        warm_up: u64,
        question: &Question,
    ) -> Result<Option<Vec<u64>>, NotShared> {
        let pages = self.all.pages.as_ref().expect("a trace by tenant is in memory");
        let size = size.min(self.all.distinct_pages);
        let watcher: &dyn Watcher = question.watcher;
        watcher.begin(&Stage::Running { name: &question.name, runs: 1, accesses: Some(pages.len() as u64) });
        let (future, renamed) = (OnceLock::new(), OnceLock::new());
        let mut simulation = policy.simulation(size, question.seed);
        let mut bound = match &mut simulation {
            Some(simulation) => {
                simulation.reserve(self.all.distinct_pages);
                None
            }
            None => {
                let has_removals = !self.all.removals.is_empty();
                let renamed: &Option<Vec<u32>> =
                    renamed.get_or_init(|| has_removals.then(|| self.all.renamed()).flatten());
                Some(future.get_or_init(|| Opt::new(renamed.as_deref().unwrap_or(pages))).memory(size))
            }
        };
        let mut removals = self.all.removals.iter().peekable();
        let mut misses = vec![0; self.own.len()];
        let mut at = 0;
        for (pages, tenants) in pages.chunks(BLOCK).zip(self.order.chunks(BLOCK)) {
            if watcher.stop().is_some() {
                break;
            }
            for (&page, &tenant) in pages.iter().zip(tenants) {
                while let Some(removal) = removals.next_if(|removal| removal.access <= at) {
                    if let Some(simulation) = &mut simulation {
                        simulation.remove(removal.page);
                    }
                }
                let is_hit = match (&mut simulation, &mut bound) {
                    (Some(simulation), _) => simulation.access(page),
                    (None, Some(bound)) => bound.run(1) == 0,
                    (None, None) => unreachable!("one of the two is there"),
                };
                misses[usize::from(tenant)] += u64::from(!is_hit && at >= warm_up);
                at += 1;
            }
            if let Some(fault) = simulation.as_ref().and_then(|simulation| simulation.fault()) {
                watcher.end();
                return Err(NotShared::Broken(fault.clone()));
            }
            watcher.advance(pages.len() as u64);
        }
        watcher.end();
        Ok((at == pages.len() as u64).then_some(misses))
    }

    /// All of it.
    pub fn all(&self) -> &Trace {
        &self.all
    }

    /// Returns the trace of each tenant.
    pub fn own(&self) -> &[Trace] {
        &self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_split_at_equal_parts_and_at_pages_where_it_has_fewer() {
        assert_eq!(steps(1_000, 4), [0, 250, 500, 750, 1_000]);
        assert_eq!(steps(3, 100), [0, 1, 2, 3]);
        assert_eq!(steps(10, 4), [0, 2, 5, 7, 10]);
    }
}
