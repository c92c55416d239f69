//! Any policy at any size, estimated from a few of the pages: a small trace in a small memory.
//!
//! *How.* A page is kept if the hash of its number is below the rate, and then all its accesses are. A memory is simulated by one of the rate's share
//! of its pages. Misses are divided by the number of accesses that *should* be in the sample, not by the actual number. A very hot page in the sample
//! changes the number of hits a lot, but hardly that of misses.
//!
//! *Limits.* Samples of few pages are meaningless: fewer than [`PAGES_MIN`] are rejected. So are memories whose share is not one page. The spread
//! over [`SALTS`] samples of other pages is printed with an estimate; it does not bound the error.
//!
//! *When not to use it:* for traces with few pages, and where a policy is asked about a few pages that are special.
//!
//! Source: C. A. Waldspurger and others, *Efficient MRC Construction with SHARDS*, FAST 2015,
//! <https://www.usenix.org/conference/fast15/technical-sessions/presentation/waldspurger>; other policies: C. A. Waldspurger and others,
//! *Cache Modeling and Optimization using Miniature Simulations*, USENIX ATC 2017,
//! <https://www.usenix.org/conference/atc17/technical-sessions/presentation/waldspurger>.

use pageout_policy::check::Random;
use std::fmt;

/// Samples of other pages, for the spread.
pub const SALTS: usize = 5;
/// The fewest pages that a sample may have.
pub const PAGES_MIN: u32 = 1_000;

/// A sample of a trace: all accesses to some of its pages.
pub struct Sample {
    /// The accesses, to dense numbers of its own.
    pub accesses: Vec<u32>,
    /// Its pages.
    pub pages: u32,
    /// Number of accesses before the first that counts.
    pub warm_up: usize,
}

/// Samples of one trace at one rate.
pub struct Samples {
    rate: f64,
    /// How many accesses that count should be in a sample.
    expected: f64,
    samples: Vec<Sample>,
}

/// A share of accesses, from several samples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean of the samples.
    pub mean: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub most: f64,
}

/// The reason why there is no estimate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Refused {
    /// The rate is not a share above 0.
    Rate(f64),
    /// A sample has so few pages, and would need such a rate to have enough; above 1 if the trace has too few.
    Pages {
        /// The pages of the smallest sample.
        pages: u32,
        /// The rate at which there should be enough.
        rate: f64,
    },
    /// The sample's memory would have less than one page.
    Size {
        /// The size asked for, in pages.
        size: u32,
        /// The least size at this rate.
        least: u32,
    },
}

/// Takes [`SALTS`] samples of accesses as they come, in one pass.
pub struct Sampler {
    rate: f64,
    /// So many accesses of all come before those that count.
    warm_up: u64,
    seen: u64,
    /// By page: a bit for each sample that it is in.
    is_in: Vec<u8>,
    samples: Vec<Sample>,
    /// By sample.
    numbers: Vec<Numbers>,
}

/// Numbers of the pages of a sample: how many of the pages before are in it.
#[derive(Default)]
struct Numbers {
    /// By 64 pages: which are in it, and how many of those before.
    words: Vec<(u64, u32)>,
}

impl Numbers {
    fn of(&self, page: u32) -> u32 {
        let (bits, before) = self.words[page as usize / 64];
        before + (bits & ((1 << (page % 64)) - 1)).count_ones()
    }

    /// Takes in the next page; returns how many are in it now.
    fn push(&mut self, page: usize, is_in: bool) -> u32 {
        if page.is_multiple_of(64) {
            let before = self.words.last().map_or(0, |(bits, before)| before + bits.count_ones());
            self.words.push((0, before));
        }
        let (bits, before) = self.words.last_mut().expect("there is one for the page");
        *bits |= u64::from(is_in) << (page % 64);
        *before + bits.count_ones()
    }
}

impl Sampler {
    /// For samples at a rate. The first `warm_up` of the accesses don't count.
    pub fn new(rate: f64, warm_up: u64) -> Result<Sampler, Refused> {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(Refused::Rate(rate));
        }
        let none = |_| Sample { accesses: Vec::new(), pages: 0, warm_up: 0 };
        let samples = (0..SALTS).map(none).collect();
        let numbers = (0..SALTS).map(|_| Numbers::default()).collect();
        Ok(Sampler { rate, warm_up, seen: 0, is_in: Vec::new(), samples, numbers })
    }

    /// The next accesses, to dense page numbers.
    pub fn add(&mut self, accesses: &[u32]) {
        let all = accesses.iter().max().map_or(0, |&most| most as usize + 1);
        for page in self.is_in.len()..all {
            let mut is_in = 0;
            for (salt, (numbers, sample)) in self.numbers.iter_mut().zip(&mut self.samples).enumerate() {
                let hash = Random::new(((salt as u64 + 1) << 32) + page as u64).draw();
                // The upper 53 bits, as a share of 1.
                let share = (hash >> 11) as f64 / (1_u64 << 53) as f64;
                is_in |= u8::from(share < self.rate) << salt;
                sample.pages = numbers.push(page, share < self.rate);
            }
            self.is_in.push(is_in);
        }
        for &page in accesses {
            let mut left = self.is_in[page as usize];
            while left > 0 {
                let salt = left.trailing_zeros() as usize;
                left &= left - 1;
                let sample = &mut self.samples[salt];
                sample.accesses.push(self.numbers[salt].of(page));
                sample.warm_up += usize::from(self.seen < self.warm_up);
            }
            self.seen += 1;
        }
    }

    /// The samples, if they have pages enough.
    pub fn finish(self) -> Result<Samples, Refused> {
        let pages = self.samples.iter().map(|sample| sample.pages).min().unwrap_or(0);
        if pages < PAGES_MIN {
            let distinct = f64::from(pages.max(1)) / self.rate;
            return Err(Refused::Pages { pages, rate: 1.1 * f64::from(PAGES_MIN) / distinct });
        }
        let counted = self.seen.saturating_sub(self.warm_up);
        Ok(Samples { rate: self.rate, expected: self.rate * counted as f64, samples: self.samples })
    }
}

impl Samples {
    /// Samples of accesses to dense page numbers. The first `warm_up` of them don't count.
    pub fn new(accesses: &[u32], rate: f64, warm_up: u64) -> Result<Samples, Refused> {
        let mut sampler = Sampler::new(rate, warm_up)?;
        sampler.add(accesses);
        sampler.finish()
    }

    /// The samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Returns the memory size of the sample for a memory of this size.
    pub fn size(&self, size: u32) -> Result<u32, Refused> {
        let scaled = (f64::from(size) * self.rate).round() as u32;
        if scaled == 0 {
            return Err(Refused::Size { size, least: (0.5 / self.rate).ceil() as u32 });
        }
        Ok(scaled)
    }

    /// The share of misses, by each sample's number of them, after its warm-up.
    pub fn estimate(&self, misses: impl IntoIterator<Item = u64>) -> Estimate {
        let shares = misses.into_iter().map(|misses| (misses as f64 / self.expected).min(1.0));
        let zero = Estimate { mean: 0.0, least: f64::INFINITY, most: 0.0 };
        shares.fold(zero, |so_far, share| Estimate {
            mean: so_far.mean + share / SALTS as f64,
            least: so_far.least.min(share),
            most: so_far.most.max(share),
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Rate(rate) => write!(f, "a rate of {rate}: expected a share above 0, up to 1"),
            Refused::Pages { pages, rate } if *rate <= 1.0 => {
                write!(f, "a sample of {pages} pages is too small (minimum {PAGES_MIN}): sample {rate:.2}")
            }
            Refused::Pages { pages, .. } => {
                write!(f, "a sample of {pages} pages is too small (minimum {PAGES_MIN}): use all of them")
            }
            Refused::Size { size, least } => {
                write!(
                    f,
                    "{size} pages are less than one page of the sample: use at least {least}, or a higher rate"
                )
            }
        }
    }
}

impl std::error::Error for Refused {}
