//! Presets of compressibility, as `pageout trace compressibility` has measured pages of real programs and files: one file, and one process of a kind
//! each. Another compiler or program holds something else; the command measures it.

use super::Deciles;

/// The compressibility of one kind of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The name of the contents in a scenario: what they are, and by which compressor.
    pub name: &'static str,
    /// A description of the contents.
    pub what: &'static str,
    /// The file or process that was measured, and how.
    pub source: &'static str,
    /// Pages in a thousand that are all zeroes.
    pub zero_filled: u16,
    /// Pages in a thousand that are another word repeated.
    pub same_filled: u16,
    /// Compressed lengths of the other pages.
    pub deciles: Deciles,
}

/// The names, as a scenario may give them.
pub(in crate::scenario) const CONTENTS_NAMES: &[&str] = &[
    "c-source@lz4",
    "c-source@zstd",
    "compiler-heap@lz4",
    "compiler-heap@zstd",
    "python-heap@lz4",
    "python-heap@zstd",
];

/// All that was measured.
pub const CONTENTS: &[Contents] = &[
    Contents {
        name: "c-source@lz4",
        what: "C source: headers",
        source: "measured: 1,832 pages, November 2026: `cat /usr/include/linux/*.h /usr/include/*.h` of Debian 12 (linux-libc-dev 6.1.192, glibc 2.36 headers); lz4_flex 0.14",
        zero_filled: 0,
        same_filled: 0,
        deciles: Deciles([492, 1409, 1682, 1876, 2024, 2134, 2226, 2313, 2420, 2529, 2901]),
    },
    Contents {
        name: "c-source@zstd",
        what: "C source: headers",
        source: "measured: 1,832 pages, November 2026: `cat /usr/include/linux/*.h /usr/include/*.h` of Debian 12 (linux-libc-dev 6.1.192, glibc 2.36 headers); zstd 1.5.7 at level 3",
        zero_filled: 0,
        same_filled: 0,
        deciles: Deciles([385, 967, 1177, 1322, 1429, 1511, 1574, 1632, 1697, 1779, 2081]),
    },
    Contents {
        name: "compiler-heap@lz4",
        what: "memory of a running C++ compiler",
        source: "measured: 44,417 pages of anonymous memory, November 2026: cc1plus of GCC 12.2 with -O2 in the middle of a file that includes bits/stdc++.h, 200 MB resident; lz4_flex 0.14",
        zero_filled: 11,
        same_filled: 0,
        deciles: Deciles([32, 622, 762, 849, 925, 1007, 1102, 1239, 1476, 1954, 2951]),
    },
    Contents {
        name: "compiler-heap@zstd",
        what: "memory of a running C++ compiler",
        source: "measured: 44,417 pages of anonymous memory, November 2026: cc1plus of GCC 12.2 with -O2 in the middle of a file that includes bits/stdc++.h, 200 MB resident; zstd 1.5.7 at level 3",
        zero_filled: 11,
        same_filled: 0,
        deciles: Deciles([24, 379, 465, 528, 577, 623, 679, 754, 907, 1232, 2199]),
    },
    Contents {
        name: "python-heap@lz4",
        what: "memory of a Python program that holds records",
        source: "measured: 44,886 pages of anonymous memory, November 2026: CPython 3.11 with 100,000 records of six fields, made and read back from JSON, 190 MB resident; lz4_flex 0.14",
        zero_filled: 0,
        same_filled: 0,
        deciles: Deciles([32, 468, 792, 869, 904, 928, 950, 988, 1271, 1580, 3067]),
    },
    Contents {
        name: "python-heap@zstd",
        what: "memory of a Python program that holds records",
        source: "measured: 44,886 pages of anonymous memory, November 2026: CPython 3.11 with 100,000 records of six fields, made and read back from JSON, 190 MB resident; zstd 1.5.7 at level 3",
        zero_filled: 0,
        same_filled: 0,
        deciles: Deciles([24, 232, 328, 345, 520, 532, 544, 572, 642, 847, 2466]),
    },
];
