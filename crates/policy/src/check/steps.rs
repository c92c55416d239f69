//! Random steps of a host: what it does to its memory, for a policy to be checked by.

/// Random numbers from a seed (SplitMix64, G. L. Steele and others, OOPSLA 2014, <https://doi.org/10.1145/2660193.2660195>).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }
}

/// One step of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A page is accessed. If a slot is needed, this number of pages is requested.
    Access {
        /// The page.
        page: u32,
        /// It is written to.
        write: bool,
        /// Number of pages to nominate in one call.
        want: u32,
    },
    /// A page is gone.
    Remove(u32),
    /// Capacity changes to this number of pages.
    Resize(u32),
    /// A page can't be evicted.
    Pin(u32),
    /// It can be evicted again.
    Unpin(u32),
    /// A page may go next.
    Cold(u32),
}

impl Step {
    /// The page that is accessed, if one is.
    pub fn accessed(&self) -> Option<u32> {
        match *self {
            Step::Access { page, .. } => Some(page),
            _ => None,
        }
    }
}

/// Steps that a number makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The number of pages.
    pub pages: u32,
    /// There are accesses alone, and each asks for one page.
    pub is_plain: bool,
    /// Steps of the host.
    pub steps: Vec<Step>,
}

impl Trace {
    /// The steps of a number. Every third has accesses alone; those of larger numbers are longer.
    pub fn new(number: u64) -> Trace {
        let mut random = Random::new(number);
        let is_plain = number.is_multiple_of(3);
        let pages = 4 + random.below(40) as u32;
        let length = 40 + 40 * number;
        let mut accesses = Accesses::new(pages);
        let steps = (0..length).map(|_| match random.below(if is_plain { 1 } else { 24 }) {
            20 => Step::Remove(random.below(pages.into()) as u32),
            21 => Step::Pin(random.below(pages.into()) as u32),
            22 => Step::Unpin(random.below(pages.into()) as u32),
            23 if random.below(4) == 0 => Step::Resize(1 + random.below(pages.into()) as u32),
            23 => Step::Cold(random.below(pages.into()) as u32),
            _ => {
                let want = if is_plain { 1 } else { 1 + random.below(6) as u32 / 3 * random.below(9) as u32 };
                Step::Access { page: accesses.next(&mut random), write: random.below(4) == 0, want }
            }
        });
        let steps = steps.collect();
        Trace { pages, is_plain, steps }
    }
}

/// Accesses in stretches: round and round, to a few pages, or anywhere.
struct Accesses {
    pages: u32,
    left: u64,
    pattern: u64,
    first: u32,
    at: u32,
}

impl Accesses {
    fn new(pages: u32) -> Accesses {
        Accesses { pages, left: 0, pattern: 0, first: 0, at: 0 }
    }

    fn next(&mut self, random: &mut Random) -> u32 {
        if self.left == 0 {
            self.left = 1 + random.below(60);
            self.pattern = random.below(3);
            self.first = random.below(self.pages.into()) as u32;
        }
        self.left -= 1;
        self.at += 1;
        let page = match self.pattern {
            0 => self.first + self.at,
            1 => self.first + random.below(3) as u32,
            _ => random.below(self.pages.into()) as u32,
        };
        page % self.pages
    }
}
