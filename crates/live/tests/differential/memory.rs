//! The caches to test: budgets, backends, policies, slow memory.

use std::fmt;
use std::time::Duration;

use pageout::{Backend, Delay, Error, Limits, Memory, Node, Zswap};

use crate::draw::Draw;
use crate::settings::longest;

/// Bytes of files that may be open at once.
pub(crate) const FILES_MAX: u64 = 64 << 20;

/// None of 2010: there a task that reclaims sleeps a tenth of a second and more for each page that a full group wants.
const POLICIES: [&str; 9] = [
    "mglru@6.12",
    "mglru@6.12",
    "classic@6.12",
    "classic@6.12",
    "mglru@6.16",
    "lru",
    "fifo",
    "s3-fifo",
    "sieve",
];

/// How a cache is built.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Bytes; none: the least.
    pub(crate) budget: Option<u64>,
    pub(crate) policy: &'static str,
    pub(crate) backend: Backend,
    pub(crate) io_threads: usize,
    pub(crate) writeback_any: bool,
    /// A slow node is emulated.
    pub(crate) slow: bool,
    /// `memory.max` of each group, in pages.
    pub(crate) groups: Vec<Option<u64>>,
    /// A swap file, if there is one.
    pub(crate) swap: Option<Swap>,
}

/// The swap file, and what is in front of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swap {
    pub(crate) bytes: u64,
    pub(crate) zswap: Option<Zswap>,
    pub(crate) max_pool_percent: u64,
    pub(crate) shrinker: bool,
}

/// The largest budget of a cache with swap, which begins with it.
pub(crate) const BUDGET_OF_SWAP: u64 = 12 << 20;

impl Setup {
    pub(crate) fn draw(draw: &mut Draw) -> Setup {
        let groups = (0..draw.below(4)).map(|_| (!draw.once_in(3)).then(|| 64 + draw.below(200))).collect();
        Setup {
            budget: (!draw.once_in(3)).then_some(8 << 20),
            policy: draw.pick(&POLICIES),
            backend: draw.pick(&[Backend::Any, Backend::Any, Backend::Uring, Backend::Threads]),
            io_threads: draw.pick(&[0, 1, 8]),
            writeback_any: draw.once_in(5),
            slow: draw.once_in(6),
            groups,
            swap: None,
        }
    }

    /// The same with a swap file, and mostly with compression in front of it.
    pub(crate) fn draw_with_swap(draw: &mut Draw) -> Setup {
        let setup = Setup::draw(draw);
        let swap = Swap {
            bytes: 32 << 20,
            zswap: draw.pick(&[None, Some(Zswap::lz4()), Some(Zswap::lz4()), Some(Zswap::zstd(1))]),
            max_pool_percent: draw.pick(&[0, 2, 20, 50]),
            shrinker: draw.once_in(2),
        };
        Setup { budget: Some(BUDGET_OF_SWAP), swap: Some(swap), ..setup }
    }

    pub(crate) fn build(&self) -> Result<Memory, Error> {
        let builder = |budget| {
            let mut builder = Memory::builder()
                .budget(budget)
                .files(FILES_MAX)
                .policy(self.policy)
                .backend(self.backend)
                .io_threads(self.io_threads)
                // A thread that holds one may not run for a while, where others want its CPU.
                .guard_wait(longest());
            if self.writeback_any {
                builder = builder.rule("reclaim.file_writeback", "any");
            }
            if let Some(swap) = self.swap {
                builder = builder.swap_file(std::env::temp_dir(), swap.bytes).swap_buffered(true);
                if let Some(zswap) = swap.zswap {
                    builder = builder
                        .zswap(zswap)
                        .sysctl("zswap.max_pool_percent", swap.max_pool_percent)
                        .sysctl("zswap.shrinker_enabled", u8::from(swap.shrinker));
                }
            }
            if self.slow {
                let delay = Delay::per_page(Duration::from_nanos(60));
                builder = builder.node(Node::slow(4 << 20).emulated(delay));
            }
            builder
        };
        let slow = if self.slow { 5 << 20 } else { 0 };
        let memory = match self.budget {
            Some(budget) => builder(budget + slow).build(),
            None => match builder(1 << 20).build() {
                Err(Error::BudgetTooSmall { least }) => builder(least).build(),
                other => other,
            },
        };
        // Containers may have no io_uring.
        match memory {
            Err(Error::UringRefused { .. }) => Setup { backend: Backend::Any, ..self.clone() }.build(),
            other => other,
        }
    }

    /// The groups, by number.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (String, Limits)> + '_ {
        self.groups.iter().enumerate().map(|(at, max)| {
            (format!("group-{at}"), Limits { max: max.map(|pages| pages * 4096), ..Limits::NONE })
        })
    }

    /// Setups that are one step simpler.
    pub(crate) fn simpler(&self) -> Vec<Setup> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Setup)| {
            let mut other = self.clone();
            change(&mut other);
            all.push(other);
        };
        if self.slow {
            add(&|setup| setup.slow = false);
        }
        if self.writeback_any {
            add(&|setup| setup.writeback_any = false);
        }
        if self.backend != Backend::Threads {
            add(&|setup| setup.backend = Backend::Threads);
        }
        if self.io_threads != 0 {
            add(&|setup| setup.io_threads = 0);
        }
        if self.policy != "classic@6.12" {
            add(&|setup| setup.policy = "classic@6.12");
        }
        if self.groups.iter().any(Option::is_some) {
            add(&|setup| setup.groups.iter_mut().for_each(|max| *max = None));
        }
        if self.budget.is_none() {
            add(&|setup| setup.budget = Some(8 << 20));
        }
        all
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { budget, policy, backend, io_threads, writeback_any, slow, groups, swap } = self;
        match budget {
            Some(budget) => write!(f, "budget {} MiB", budget >> 20)?,
            None => write!(f, "the least budget")?,
        }
        write!(f, ", {policy}, {backend:?}, {io_threads} I/O threads")?;
        if *writeback_any {
            write!(f, ", reclaim.file_writeback any")?;
        }
        if *slow {
            write!(f, ", a slow node of 4 MiB")?;
        }
        if let Some(Swap { bytes, zswap, max_pool_percent, shrinker }) = swap {
            write!(f, ", {} MiB of swap", bytes >> 20)?;
            if let Some(zswap) = zswap {
                write!(f, " behind {zswap}, {max_pool_percent} % of pool, shrinker {shrinker}")?;
            }
        }
        for (at, max) in groups.iter().enumerate() {
            match max {
                Some(pages) => write!(f, ", group {at} with memory.max of {pages} pages")?,
                None => write!(f, ", group {at}")?,
            }
        }
        Ok(())
    }
}
