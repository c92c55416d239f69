//! Operations of the recording program, one per text: a letter, the descriptor, and arguments in bytes.

use anyhow::{Context, anyhow, bail};

/// Advice on a range of a file or mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hint {
    Normal,
    Random,
    Sequential,
    WillNeed,
    DontNeed,
    HugePage,
    NoHugePage,
    PageOut,
    PopulateRead,
}

impl Hint {
    fn parse(word: &str) -> anyhow::Result<Hint> {
        Ok(match word {
            "normal" => Hint::Normal,
            "random" => Hint::Random,
            "sequential" => Hint::Sequential,
            "willneed" => Hint::WillNeed,
            "dontneed" => Hint::DontNeed,
            "hugepage" => Hint::HugePage,
            "nohugepage" => Hint::NoHugePage,
            "pageout" => Hint::PageOut,
            "populate_read" => Hint::PopulateRead,
            other => bail!("advice `{other}` is not modelled"),
        })
    }
}

/// An access to anonymous memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    /// A load.
    Load,
    /// A store of random words.
    Store,
    /// A store of a zero byte.
    StoreZero,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// pread(2).
    Read { fd: usize, offset: u64, bytes: u64 },
    /// pwrite(2).
    Write { fd: usize, offset: u64, bytes: u64 },
    /// readahead(2).
    Readahead { fd: usize, offset: u64, bytes: u64 },
    /// fallocate(2), to punch a hole.
    Hole { offset: u64, bytes: u64 },
    /// ftruncate(2).
    Truncate { bytes: u64 },
    /// posix_fadvise(2).
    Fadvise { fd: usize, offset: u64, bytes: u64, hint: Hint },
    /// fsync(2).
    Sync { fd: usize },
    /// mmap(2) of the whole file; executable or not.
    Map { fd: usize, is_executable: bool },
    /// munmap(2) of it.
    Unmap,
    /// madvise(2) on the mapping.
    Madvise { offset: u64, bytes: u64, hint: Hint },
    /// A load of a byte, or a store to it.
    Touch { offset: u64, is_store: bool },
    /// mmap(2) of anonymous memory.
    MapAnon { bytes: u64 },
    /// madvise(2) on it.
    MadviseAnon { offset: u64, bytes: u64, hint: Hint },
    /// An access to a page of it.
    TouchAnon { offset: u64, how: Touch },
    /// Sleeps. Transfers of the simulation take no time.
    Sleep,
    /// Reads memory.stat.
    ReadStat,
    /// A load from each page of the mapping.
    Populate,
    /// The program reads the figures that are compared.
    Snapshot,
}

impl Op {
    pub(super) fn parse(text: &str) -> anyhow::Result<Op> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let word =
            |at: usize| words.get(at).copied().ok_or_else(|| anyhow!("operation `{text}` is too short"));
        let number = |at: usize| {
            let word = word(at)?;
            word.parse::<u64>()
                .with_context(|| format!("operation `{text}`: found `{word}`, expected a number"))
        };
        let fd = || Ok::<usize, anyhow::Error>(number(1)? as usize);
        Ok(match word(0)? {
            "r" => Op::Read { fd: fd()?, offset: number(2)?, bytes: number(3)? },
            "w" => Op::Write { fd: fd()?, offset: number(2)?, bytes: number(3)? },
            "R" => Op::Readahead { fd: fd()?, offset: number(2)?, bytes: number(3)? },
            "h" => Op::Hole { offset: number(2)?, bytes: number(3)? },
            "t" => Op::Truncate { bytes: number(2)? },
            "f" => {
                Op::Fadvise { fd: fd()?, offset: number(2)?, bytes: number(3)?, hint: Hint::parse(word(4)?)? }
            }
            "s" => Op::Sync { fd: fd()? },
            "m" => Op::Map { fd: fd()?, is_executable: word(2)?.contains('x') },
            "u" => Op::Unmap,
            "a" => Op::Madvise { offset: number(2)?, bytes: number(3)?, hint: Hint::parse(word(4)?)? },
            "l" => Op::Touch { offset: number(2)?, is_store: false },
            "S" => Op::Touch { offset: number(2)?, is_store: true },
            "M" => Op::MapAnon { bytes: number(2)? },
            "A" => Op::MadviseAnon { offset: number(2)?, bytes: number(3)?, hint: Hint::parse(word(4)?)? },
            "L" => Op::TouchAnon { offset: number(2)?, how: Touch::Load },
            "T" => Op::TouchAnon { offset: number(2)?, how: Touch::Store },
            "Z" => Op::TouchAnon { offset: number(2)?, how: Touch::StoreZero },
            "z" => Op::Sleep,
            "Q" => Op::ReadStat,
            "P" => Op::Populate,
            "G" => Op::Snapshot,
            other => bail!("operation `{other}` is not modelled"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_with_their_arguments() {
        let read = |text| Op::parse(text).expect("it is well formed");
        assert_eq!(read("r 1 20000 131072"), Op::Read { fd: 1, offset: 20_000, bytes: 131_072 });
        let hint = Hint::DontNeed;
        assert_eq!(read("f 0 0 0 dontneed"), Op::Fadvise { fd: 0, offset: 0, bytes: 0, hint });
        assert_eq!(read("m 0 rx"), Op::Map { fd: 0, is_executable: true });
        assert_eq!(read("M 0 16777216"), Op::MapAnon { bytes: 16_777_216 });
        assert_eq!(read("Z 0 4096"), Op::TouchAnon { offset: 4096, how: Touch::StoreZero });
        let hint = Hint::PageOut;
        assert_eq!(read("A 0 0 4096 pageout"), Op::MadviseAnon { offset: 0, bytes: 4096, hint });
        assert_eq!(read("S 0 6643712"), Op::Touch { offset: 6_643_712, is_store: true });
    }

    #[test]
    fn operation_that_is_unknown_or_short_is_an_error() {
        for (text, why) in
            [("k 0 1", "is not modelled"), ("r 0 1", "is too short"), ("t 0 x", "expected a number")]
        {
            let error = Op::parse(text).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
