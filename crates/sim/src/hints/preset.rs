//! Presets of hardware hints: every figure with its source. `pageout keys machine.hints.preset` prints them.

use super::{CountSpec, HintSpec, SampleSpec};
use pageout_engine::Nanos;

/// A class of hardware.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preset {
    /// The preset's name.
    pub name: &'static str,
    /// The class of hardware that the preset stands for.
    pub class: &'static str,
    /// The parameters of the preset.
    pub spec: HintSpec,
    /// The source of each figure, by its key.
    pub sources: &'static [(&'static str, &'static str)],
}

const ESTIMATED: &str = "estimated: no figure is published";
const UP_TO_IT: &str = "estimated: the standard (CXL 3.2) leaves it to the device";

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "ibs",
        class: "AMD processors that sample operations, configured as in the third posting of pghot",
        spec: HintSpec::Samples(SampleSpec {
            period: 10_000,
            loads_only: false,
            min_latency: Nanos::ZERO,
            overhead: Nanos(1_000),
            ring: 150,
            drain: Nanos(1_000_000),
        }),
        sources: &[
            (
                "period",
                "the posting's driver, in operations; the memory profiler of later processors starts with the same",
            ),
            ("loads_only", "loads and stores; the driver has no filter for them"),
            ("min_latency", "the driver has none; the profiler's filter is off by default"),
            ("overhead", "estimated: an interrupt that reads a few registers"),
            ("ring", "the posting's driver"),
            ("drain", "estimated: a work item on the same CPU, queued from the interrupt"),
        ],
    },
    Preset {
        name: "pebs",
        class: "Intel processors that record loads that miss their caches, read from user space",
        spec: HintSpec::Samples(SampleSpec {
            period: 1_400,
            loads_only: true,
            min_latency: Nanos::ZERO,
            overhead: Nanos(200),
            ring: 1_000,
            drain: Nanos(10_000_000),
        }),
        sources: &[
            (
                "period",
                "between 200 and 10000 in HeMem (SOSP 2021) and MEMTIS (SOSP 2023): their geometric mean",
            ),
            ("loads_only", "the event is one of loads"),
            ("min_latency", "off by default"),
            ("overhead", "estimated: the processor writes the record itself, and a thread reads it"),
            ("ring", "estimated: a buffer of 64 KiB, and records of 64 bytes"),
            ("drain", "estimated: a thread polls"),
        ],
    },
    Preset {
        name: "cxl-hmu",
        class: "memory with a hotness monitoring unit (CXL 3.2)",
        spec: HintSpec::Counts(CountSpec {
            unit_pages: 1,
            counters: 1 << 20,
            threshold: 8,
            epoch: Nanos(100_000_000),
            ring: 65_536,
            drain: Nanos(10_000_000),
        }),
        sources: &[
            ("unit", "usually a page: Cameron, RFC of November 2024"),
            ("counters", UP_TO_IT),
            ("threshold", UP_TO_IT),
            ("epoch", UP_TO_IT),
            ("ring", UP_TO_IT),
            ("drain", ESTIMATED),
        ],
    },
];

/// The names of all presets.
pub(super) const NAMES: &[&str] = &crate::names_of!(PRESETS);
