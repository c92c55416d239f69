//! All policies, by name: a row says what a policy is, where it was published, and what can be chosen about it.

use crate::arc::Arc;
use crate::cacheus::Cacheus;
use crate::clock::Clock;
use crate::clock_pro::ClockPro;
use crate::hyperbolic::Hyperbolic;
use crate::lecar::LeCar;
use crate::lfu::Lfu;
use crate::lfu_da::LfuDa;
use crate::lhd::{self, Lhd};
use crate::lirs::Lirs;
use crate::lru::Lru;
use crate::lru_k::{K_MAX, LruK};
use crate::mq::Mq;
use crate::mru::Mru;
use crate::qd_lp::QdLp;
use crate::random::Random;
use crate::s3_fifo::S3Fifo;
use crate::slru::{SEGMENTS_MAX, Slru};
use crate::two_q::TwoQ;
use crate::w_tinylfu::{Shape, WTinyLfu};
use crate::{Bare, Simulation};

/// A policy with a name.
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description, in a sentence.
    pub doc: &'static str,
    /// The cases in which not to use it.
    pub not_for: &'static str,
    /// The publication.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes one.
    pub make: Make,
}

/// A parameter of a policy.
pub struct Parameter {
    /// Its name after that of the policy.
    pub name: &'static str,
    /// A description, with the unit.
    pub doc: &'static str,
    /// The least value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// True if it is a whole number.
    pub is_whole: bool,
    /// Its value where none is given.
    pub default: f64,
    /// The reason for the default.
    pub reason: &'static str,
}

/// A constructor of a policy.
#[derive(Clone, Copy)]
pub enum Make {
    /// With its capacity in pages, and values of its parameters in their order.
    Simulation(fn(capacity: u32, values: &[f64]) -> Box<dyn Simulation>),
    /// The same for a policy that draws: its only randomness is the seed.
    Drawing(fn(capacity: u32, values: &[f64], seed: u64) -> Box<dyn Simulation>),
    /// It needs the future: [`crate::Opt`] receives all accesses in one call.
    Bound,
}

/// A share of memory, from nothing to all of it.
const fn share(name: &'static str, doc: &'static str, default: f64, reason: &'static str) -> Parameter {
    Parameter { name, doc, min: 0.0, max: 1.0, is_whole: false, default, reason }
}

/// A multiple of memory.
const fn share_up_to(
    max: f64,
    name: &'static str,
    doc: &'static str,
    default: f64,
    reason: &'static str,
) -> Parameter {
    Parameter { name, doc, min: 0.0, max, is_whole: false, default, reason }
}

/// A whole number.
const fn whole(
    name: &'static str,
    doc: &'static str,
    (min, max): (f64, f64),
    default: f64,
    reason: &'static str,
) -> Parameter {
    Parameter { name, doc, min, max, is_whole: true, default, reason }
}

const SEGMENTS: Parameter = whole(
    "segments",
    "lists of the SLRU: one for probation, and those that the protected part is divided into",
    (2.0, SEGMENTS_MAX as f64),
    2.0,
    "the paper's",
);

const HISTORY: Parameter = share_up_to(
    100.0,
    "history",
    "evicted pages whose uses are remembered, as a share of memory",
    1.0,
    "as many names as ARC keeps; the paper's period of 200 seconds is not a number of pages",
);

/// All policies, the plain ones first.
pub static POLICIES: &[Row] = &[
    Row {
        name: "fifo",
        doc: "in order of arrival, used or not",
        not_for: "any purpose except comparison",
        source: "Belady, IBM Systems Journal 5(2), 1966, https://doi.org/10.1147/sj.52.0078",
        parameters: &[],
        make: Make::Simulation(|capacity, _| {
            Box::new(Bare::new(Box::new(pageout_policy::Fifo::default()), capacity))
        }),
    },
    Row {
        name: "lru",
        doc: "the least recently used page is evicted first",
        not_for: "loops larger than memory, scans",
        source: "Mattson and others, IBM Systems Journal 9(2), 1970, https://doi.org/10.1147/sj.92.0078",
        parameters: &[],
        make: Make::Simulation(|capacity, _| Box::new(Lru::new(capacity))),
    },
    Row {
        name: "mru",
        doc: "the most recently used page is evicted first",
        not_for: "anything but loops",
        source: "Chou and DeWitt, VLDB 1985, https://www.vldb.org/conf/1985/P127.PDF",
        parameters: &[],
        make: Make::Simulation(|capacity, _| Box::new(Mru::new(capacity))),
    },
    Row {
        name: "clock",
        doc: "in order of arrival, but a used page gets another round",
        not_for: "scans of new pages: they stay for a round",
        source: "Corbato, MIT Project MAC, 1968, https://apps.dtic.mil/sti/citations/AD0687552",
        parameters: &[whole(
            "bits",
            "bits of the use count; each use is worth a round",
            (1.0, 7.0),
            1.0,
            "the one accessed bit of a processor",
        )],
        make: Make::Simulation(|capacity, values| Box::new(Clock::new(capacity, values[0] as u32))),
    },
    Row {
        name: "sieve",
        doc: "in order of arrival, with a hand that evicts pages not used since its last visit",
        not_for: "mapped memory, loops larger than memory",
        source: "Zhang and others, NSDI 2024, https://www.usenix.org/conference/nsdi24/presentation/zhang-yazhuo",
        parameters: &[],
        make: Make::Simulation(|capacity, _| {
            Box::new(Bare::new(Box::new(pageout_policy::Sieve::default()), capacity))
        }),
    },
    Row {
        name: "slru",
        doc: "LRU in two lists: pages used once, and pages used again, which are protected",
        not_for: "second uses after more pages than the first list holds",
        source: "Karedla and others, IEEE Computer 27(3), 1994, https://doi.org/10.1109/2.268884",
        parameters: &[
            share(
                "protected",
                "maximum share of memory that is protected",
                0.8,
                "the share of the protected part in the paper of W-TinyLFU",
            ),
            SEGMENTS,
            whole(
                "fill",
                "1: until memory is full, new pages enter the lowest list with free space",
                (0.0, 1.0),
                0.0,
                "the paper's: new pages enter probation; libCacheSim lets them fill its four lists, which is segments=4,protected=0.75,fill=1",
            ),
        ],
        make: Make::Simulation(|capacity, values| {
            let slru = Slru::new(capacity, values[0], values[1] as u32);
            Box::new(if values[2] == 1.0 { slru.filling() } else { slru })
        }),
    },
    Row {
        name: "lfu",
        doc: "the page with the fewest uses is evicted first; among equals, the least recently used one",
        not_for: "popularity that moves",
        source: "Aho, Denning and Ullman, J. ACM 18(1), 1971, https://doi.org/10.1145/321623.321632",
        parameters: &[],
        make: Make::Simulation(|capacity, _| Box::new(Lfu::new(capacity))),
    },
    Row {
        name: "lfu-da",
        doc: "LFU with dynamic aging: uses plus the priority of the page that was evicted last",
        not_for: "scans of new pages: each one raises the age",
        source: "Arlitt and others, Performance Evaluation Review 27(4), 2000, https://doi.org/10.1145/346000.346003",
        parameters: &[],
        make: Make::Simulation(|capacity, _| Box::new(LfuDa::new(capacity))),
    },
    Row {
        name: "lru-2",
        doc: "the page with the oldest second-last use is evicted first",
        not_for: "uses in bursts",
        source: "O'Neil and others, SIGMOD 1993, https://doi.org/10.1145/170035.170081",
        parameters: &[HISTORY],
        make: Make::Simulation(|capacity, values| Box::new(LruK::new(capacity, 2, values[0]))),
    },
    Row {
        name: "lru-k",
        doc: "the page with the oldest K-th last use is evicted first",
        not_for: "uses in bursts",
        source: "O'Neil and others, SIGMOD 1993, https://doi.org/10.1145/170035.170081",
        parameters: &[
            whole(
                "k",
                "number of uses back that decides",
                (1.0, K_MAX as f64),
                3.0,
                "the paper's other example; 2 is lru-2",
            ),
            HISTORY,
        ],
        make: Make::Simulation(|capacity, values| Box::new(LruK::new(capacity, values[0] as u32, values[1]))),
    },
    Row {
        name: "mq",
        doc: "LRU lists by the logarithm of the number of uses; a page that is not used for a lifetime moves one list down",
        not_for: "popularity that moves within a lifetime",
        source: "Zhou and others, USENIX ATC 2001, and IEEE TPDS 15(6), 2004, https://doi.org/10.1109/TPDS.2004.13",
        parameters: &[
            whole("lists", "number of LRU lists", (1.0, 8.0), 8.0, "the paper's"),
            share_up_to(
                1000.0,
                "life",
                "accesses after which a page moves one list down, per page of memory",
                4.0,
                "the number of names: a page moves down when its name would be forgotten; the paper estimates it from the trace",
            ),
            share_up_to(
                100.0,
                "ghost",
                "names of evicted pages, as a share of the pages in memory",
                4.0,
                "the paper's",
            ),
        ],
        make: Make::Simulation(|capacity, values| {
            Box::new(Mq::new(capacity, values[0] as u32, values[1], values[2]))
        }),
    },
    Row {
        name: "2q",
        doc: "a queue for new pages, and an LRU for pages that return after they left it",
        not_for: "expensive misses: a page is read twice before it stays",
        source: "Johnson and Shasha, VLDB 1994, https://www.vldb.org/conf/1994/P439.PDF",
        parameters: &[
            share("in", "the queue of new pages, as a share of memory", 0.25, "the paper's Kin"),
            share(
                "out",
                "names of pages that left it, as a share of the pages in memory",
                0.5,
                "the paper's Kout",
            ),
        ],
        make: Make::Simulation(|capacity, values| Box::new(TwoQ::new(capacity, values[0], values[1]))),
    },
    Row {
        name: "arc",
        doc: "pages used once and pages used more often; memory is divided by the refaults of each",
        not_for: "loops larger than memory",
        source: "Megiddo and Modha, FAST 2003, \
                 https://www.usenix.org/conference/fast-03/arc-self-tuning-low-overhead-replacement-cache",
        parameters: &[],
        make: Make::Simulation(|capacity, _| Box::new(Arc::new(capacity))),
    },
    Row {
        name: "lirs",
        doc: "keeps pages by the number of other pages between their last two uses",
        not_for: "hot sets that move",
        source: "Jiang and Zhang, SIGMETRICS 2002, https://doi.org/10.1145/511334.511340",
        parameters: &[
            share("hir", "memory for pages that are not used often, as a share", 0.01, "the paper's 1 %"),
            share_up_to(
                1000.0,
                "ghost",
                "evicted pages that are still in the stack, as a share of the pages in memory",
                1.0,
                "as many names as pages; with it the recorded sequences agree with libCacheSim to 0.03 %",
            ),
        ],
        make: Make::Simulation(|capacity, values| Box::new(Lirs::new(capacity, values[0], values[1]))),
    },
    Row {
        name: "clock-pro",
        doc: "LIRS by accessed bits: hot and cold pages in one ring with three hands; the share of cold pages is learned",
        not_for: "hot sets that move",
        source: "Jiang, Chen and Zhang, USENIX ATC 2005, \
                 https://www.usenix.org/conference/2005-usenix-annual-technical-conference/clock-pro-effective-improvement-clock-replacement",
        parameters: &[
            share(
                "cold",
                "memory for cold pages at the start, as a share",
                0.01,
                "the share of LIRS; the policy then changes it",
            ),
            share_up_to(
                1000.0,
                "ghost",
                "evicted pages that are still on trial, as a share of the pages in memory",
                1.0,
                "the paper's",
            ),
        ],
        make: Make::Simulation(|capacity, values| Box::new(ClockPro::new(capacity, values[0], values[1]))),
    },
    Row {
        name: "qd-lp",
        doc: "QD-LP-FIFO: a small queue that most new pages leave unused, and a CLOCK for the others",
        not_for: "second uses after the small queue has turned over",
        source: "Yang and others, HotOS 2023, https://doi.org/10.1145/3593856.3595887",
        parameters: &[
            share("probation", "the small queue, as a share of memory", 0.1, "the paper's 10 %"),
            share_up_to(
                100.0,
                "ghost",
                "names of pages that left it, as a share of the pages in memory",
                0.9,
                "the paper's: the number of pages of the main part",
            ),
            whole("bits", "bits of the use count of the CLOCK", (1.0, 7.0), 2.0, "the paper's"),
        ],
        make: Make::Simulation(|capacity, values| {
            Box::new(QdLp::new(capacity, values[0], values[1], values[2] as u32))
        }),
    },
    Row {
        name: "s3-fifo",
        doc: "a small queue that most new pages leave unused, a main queue, and names of pages that left the small one",
        not_for: "second uses after the small queue has turned over",
        source: "Yang and others, SOSP 2023, https://dl.acm.org/doi/10.1145/3600006.3613147",
        parameters: &[
            share("small", "the small queue, as a share of memory", 0.1, "the paper's 10 %"),
            share(
                "ghost",
                "names of pages that left it, as a share of the pages in memory",
                0.9,
                "the number of pages of the main queue",
            ),
            whole(
                "promote",
                "uses in the small queue after which a page moves to the main queue",
                (1.0, 3.0),
                2.0,
                "the paper's: more than one",
            ),
            whole(
                "fill",
                "1: until memory is full, pages that do not fit in the small queue enter the main one",
                (0.0, 1.0),
                0.0,
                "the paper's: new pages enter the small queue; with 1 the recorded sequences agree with libCacheSim to 0.02 %",
            ),
        ],
        make: Make::Simulation(|capacity, values| {
            Box::new(S3Fifo::new(capacity, values[0], values[1], values[2] as u32, values[3] == 1.0))
        }),
    },
    Row {
        name: "w-tinylfu",
        doc: "a window for new pages, then an SLRU that admits a page only if it is used more often than the page that it would evict",
        not_for: "bursts longer than the window",
        source: "Einziger and others, ACM Transactions on Storage 13(4), 2017, https://doi.org/10.1145/3149371",
        parameters: &[
            share("window", "the window, as a share of memory", 0.01, "the paper's 1 %"),
            share("protected", "maximum share of the rest that is protected", 0.8, "the paper's 80 %"),
            SEGMENTS,
            whole(
                "sample",
                "accesses after which counts are halved, in sizes of memory",
                (1.0, 1000.0),
                10.0,
                "the paper's sample of ten times the memory",
            ),
            whole(
                "count",
                "maximum count of uses per page",
                (1.0, 65535.0),
                15.0,
                "four bits per page, as in the paper",
            ),
            whole(
                "ties",
                "1: a new page with as many uses as the older one stays",
                (0.0, 1.0),
                0.0,
                "the paper's: it must have more uses",
            ),
        ],
        make: Make::Simulation(|capacity, values| {
            Box::new(WTinyLfu::new(
                capacity,
                &Shape {
                    window: values[0],
                    protected: values[1],
                    segments: values[2] as u32,
                    sample: values[3] as u32,
                    count: values[4] as u32,
                    newer_wins_ties: values[5] == 1.0,
                },
            ))
        }),
    },
    Row {
        name: "hyperbolic",
        doc: "the page with the fewest uses per time in memory is evicted first, of a random sample",
        not_for: "popularity that moves",
        source: "Blankstein and others, USENIX ATC 2017, https://www.usenix.org/conference/atc17/technical-sessions/presentation/blankstein",
        parameters: &[whole("sample", "pages drawn per eviction", (1.0, 4096.0), 64.0, "the paper's")],
        make: Make::Drawing(|capacity, values, seed| {
            Box::new(Hyperbolic::new(capacity, values[0] as u32, seed))
        }),
    },
    Row {
        name: "lhd",
        doc: "the page with the fewest expected hits per time in memory is evicted first, of a random sample",
        not_for: "traces of few accesses per page of memory: it has to learn",
        source: "Beckmann and others, NSDI 2018, https://www.usenix.org/conference/nsdi18/presentation/beckmann",
        parameters: &[
            whole(
                "sample",
                "pages drawn per eviction",
                (1.0, 4096.0),
                32.0,
                "chosen here: a larger sample follows the estimates more closely, and their errors as well",
            ),
            whole(
                "period",
                "accesses from one update of the densities to the next; at least one per page of memory",
                (1.0, 1e9),
                16_384.0,
                "an update then costs less than one step per access; the paper has a fixed number too",
            ),
            share(
                "explore",
                "arrivals that stay up to their next use, as a share",
                0.01,
                "chosen here; the paper has them, too",
            ),
        ],
        make: Make::Drawing(|capacity, values, seed| {
            let shape = lhd::Shape { sample: values[0] as u32, period: values[1] as u64, explore: values[2] };
            Box::new(Lhd::new(capacity, &shape, seed))
        }),
    },
    Row {
        name: "lecar",
        doc: "LRU or LFU decides, drawn by weights that their mistakes change",
        not_for: "loops and scans",
        source: "Vietri and others, HotStorage 2018, https://www.usenix.org/conference/hotstorage18/presentation/vietri",
        parameters: &[
            share("rate", "learning rate", 0.45, "the paper's"),
            Parameter {
                name: "discount",
                doc: "weight of a mistake as old as memory has pages, in accesses",
                min: 1e-6,
                max: 1.0,
                is_whole: false,
                default: 0.005,
                reason: "the paper's",
            },
        ],
        make: Make::Drawing(|capacity, values, seed| {
            Box::new(LeCar::new(capacity, values[0], values[1], seed))
        }),
    },
    Row {
        name: "cacheus",
        doc: "a scan-resistant LRU or a churn-resistant LFU decides, drawn by weights; the learning rate adapts",
        not_for: "results that must not depend on a seed",
        source: "Rodriguez and others, FAST 2021, https://www.usenix.org/conference/fast21/presentation/rodriguez",
        parameters: &[],
        make: Make::Drawing(|capacity, _, seed| Box::new(Cacheus::new(capacity, seed))),
    },
    Row {
        name: "random",
        doc: "any page may be evicted, chosen by the seed",
        not_for: "pages that differ in how often they are used",
        source: "Belady, IBM Systems Journal 5(2), 1966, https://doi.org/10.1147/sj.52.0078",
        parameters: &[],
        make: Make::Drawing(|capacity, _, seed| Box::new(Random::new(capacity, seed))),
    },
    Row {
        name: "opt",
        doc: "the page whose next use is furthest away is evicted first: a bound, which needs the future",
        not_for: "bounds of time or of writes: it counts misses only",
        source: "Belady, IBM Systems Journal 5(2), 1966, https://doi.org/10.1147/sj.52.0078",
        parameters: &[],
        make: Make::Bound,
    },
];

impl Row {
    /// The policy of this name.
    pub fn by_name(name: &str) -> Option<&'static Row> {
        POLICIES.iter().find(|row| row.name == name)
    }
}
