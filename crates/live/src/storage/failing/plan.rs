//! Faults by a seed, and the environment variable `PAGEOUT_FAILING` that describes them.
//!
//! The variable is only read by a library that was built with the feature `failing`. It is a list of clauses between semicolons, each of which is a list of
//! `key=value` words between spaces:
//!
//! ```text
//!   PAGEOUT_FAILING='write=ENOSPC after=4M until-file=/tmp/healed; read=EIO every=20; seed=7 short=30 torn=10 delay_ms=5 match=data.db'
//! ```
//! A clause that begins with a kind of request, `read`, `write`, `flush`, `set_len` or `len`, makes requests of this kind fail:
//!
//! ```text
//!   KIND=ERROR        a name (EIO, ENOSPC, EDQUOT, EFBIG, EROFS, EINTR, ...) or a number
//!   after=N           the first N bytes of reads or writes, or the first N other requests, pass (default: 0). K, M and G are powers of 1024
//!   every=N           of the requests behind them every Nth fails (default: 1, each)
//!   until-file=PATH   the fault ends when this file exists
//! ```
//! Any other clause is about all requests:
//!
//! ```text
//!   match=SUBSTRING   only files whose path contains it fail (default: all files)
//!   seed=N            of the random choices (default: 1)
//!   short=PERCENT     of reads and writes are short, by whole sectors
//!   torn=PERCENT      of writes are done in part, by whole sectors, and fail with EIO
//!   delay_ms=N        each request is late, by up to N milliseconds
//!   reorder=PERCENT   of requests wait until one that came later has ended
//!   until-file=PATH   these four end when this file exists
//! ```
//! Requests are counted for each file on its own, and from the time it was opened. A value that is malformed is an error of every `open`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, io};

use super::{Fate, Faults, Request, When};
use crate::error::Error;

/// The variable.
const NAME: &str = "PAGEOUT_FAILING";
/// Devices write whole sectors.
const SECTOR: usize = 512;
const MILLISECOND_NS: u64 = 1_000_000;

/// How long a request waits to be overtaken: there may be no later one.
const OVERTAKEN_MAX: Duration = Duration::from_millis(5);

/// Faults of a file by a seed.
#[derive(Debug)]
pub(crate) struct Plan {
    errors: Vec<Errors>,
    seed: u64,
    short_percent: u64,
    torn_percent: u64,
    delay_ms: u64,
    reorder_percent: u64,
    until_file: Option<PathBuf>,
    arrived: AtomicU64,
    begun: AtomicU64,
}

/// An error of requests of one kind.
#[derive(Debug)]
struct Errors {
    kind: Kind,
    errno: i32,
    after: u64,
    every: u64,
    until_file: Option<PathBuf>,
    /// Bytes of reads or writes, or other requests, that have passed before it began.
    passed: AtomicU64,
    /// Requests since.
    since: AtomicU64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Read,
    Write,
    Flush,
    SetLen,
    Len,
}

impl Kind {
    const ALL: [(&str, Kind); 5] = [
        ("read", Kind::Read),
        ("write", Kind::Write),
        ("flush", Kind::Flush),
        ("set_len", Kind::SetLen),
        ("len", Kind::Len),
    ];

    fn of(request: Request) -> Kind {
        match request {
            Request::Read { .. } => Kind::Read,
            Request::Write { .. } => Kind::Write,
            Request::Flush => Kind::Flush,
            Request::SetLen(_) => Kind::SetLen,
            Request::Len => Kind::Len,
        }
    }
}

/// The plan of a file with this path, if the environment has one.
///
/// # Errors
/// The variable is malformed.
pub(crate) fn plan_from_environment(path: &Path) -> Result<Option<Plan>, Error> {
    let Some(value) = env::var_os(NAME).filter(|value| !value.is_empty()) else { return Ok(None) };
    let plan =
        value.to_str().ok_or_else(|| "it is not UTF-8".to_owned()).and_then(|text| Plan::parse(text, path));
    plan.map_err(|wrong| Error::Io {
        op: "reading PAGEOUT_FAILING for the opening",
        path: path.to_owned(),
        page: None,
        source: io::Error::new(io::ErrorKind::InvalidInput, wrong),
    })
}

impl Plan {
    /// The plan of a file with this path; none if the text is about other files.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Option<Plan>, String> {
        let mut plan = Plan {
            errors: Vec::new(),
            seed: 1,
            short_percent: 0,
            torn_percent: 0,
            delay_ms: 0,
            reorder_percent: 0,
            until_file: None,
            arrived: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        };
        let mut is_matched = true;
        for clause in text.split(';').map(str::trim).filter(|clause| !clause.is_empty()) {
            let words: Vec<(&str, &str)> = clause.split_whitespace().map(word).collect::<Result<_, _>>()?;
            let kind = Kind::ALL.iter().find(|(name, _)| *name == words[0].0);
            if let Some(&(_, kind)) = kind {
                plan.errors.push(Errors::parse(kind, &words)?);
                continue;
            }
            for (key, value) in words {
                match key {
                    "match" => is_matched &= path.to_string_lossy().contains(value),
                    "seed" => plan.seed = number(key, value)?,
                    "short" => plan.short_percent = percent(key, value)?,
                    "torn" => plan.torn_percent = percent(key, value)?,
                    "reorder" => plan.reorder_percent = percent(key, value)?,
                    "delay_ms" => plan.delay_ms = number(key, value)?,
                    "until-file" => plan.until_file = Some(value.into()),
                    _ => return Err(format!("unknown word `{key}={value}` in clause `{clause}`")),
                }
            }
        }
        Ok(is_matched.then_some(plan))
    }

    /// A random number of a request, of which each use has its own.
    fn draw(&self, request: u64, of: u64) -> u64 {
        mix(mix(self.seed ^ of << 56).wrapping_add(request))
    }

    fn is_over(&self) -> bool {
        exists(self.until_file.as_deref())
    }
}

impl Errors {
    fn parse(kind: Kind, words: &[(&str, &str)]) -> Result<Errors, String> {
        let (name, errno) = words[0];
        let errno = errno_of(errno).ok_or_else(|| format!("unknown error `{errno}` in `{name}={errno}`"))?;
        let mut errors = Errors {
            kind,
            errno,
            after: 0,
            every: 1,
            until_file: None,
            passed: AtomicU64::new(0),
            since: AtomicU64::new(0),
        };
        for &(key, value) in &words[1..] {
            match key {
                "after" => errors.after = number(key, value)?,
                "every" => errors.every = number(key, value)?,
                "until-file" => errors.until_file = Some(value.into()),
                _ => return Err(format!("unknown word `{key}={value}` after `{name}={}`", words[0].1)),
            }
        }
        if errors.every == 0 {
            return Err("`every=0`, expected 1 or more".to_owned());
        }
        Ok(errors)
    }

    /// Returns true if a request fails by this.
    fn fails(&self, request: Request) -> bool {
        if Kind::of(request) != self.kind || exists(self.until_file.as_deref()) {
            return false;
        }
        let amount = request.bytes().map_or(1, |bytes| bytes as u64);
        if self.passed.fetch_add(amount, Relaxed).saturating_add(amount) <= self.after {
            return false;
        }
        (self.since.fetch_add(1, Relaxed) + 1).is_multiple_of(self.every)
    }
}

impl Faults for Plan {
    fn fate(&self, request: Request) -> Fate {
        let number = self.begun.fetch_add(1, Relaxed);
        // Each counts the request.
        let failed = self.errors.iter().filter(|errors| errors.fails(request)).map(|errors| errors.errno);
        if let Some(errno) = failed.collect::<Vec<_>>().first() {
            return Fate::Fails(*errno);
        }
        let Some(bytes) = request.bytes().filter(|_| !self.is_over()) else { return Fate::Well };
        // Something of a short one is done: nothing at all means that the file has ended.
        let part = (self.draw(number, 1) % bytes as u64) as usize / SECTOR * SECTOR;
        let is_torn =
            matches!(request, Request::Write { .. }) && self.draw(number, 2) % 100 < self.torn_percent;
        if is_torn {
            Fate::Torn(part, libc::EIO)
        } else if self.draw(number, 3) % 100 < self.short_percent {
            Fate::Short(part.max(SECTOR))
        } else {
            Fate::Well
        }
    }

    fn when(&self, _: Request) -> When {
        let number = self.arrived.fetch_add(1, Relaxed);
        if self.is_over() {
            When::Now
        } else if self.draw(number, 4) % 100 < self.reorder_percent {
            When::Overtaken(OVERTAKEN_MAX)
        } else if self.delay_ms > 0 {
            When::After(Duration::from_nanos(
                self.draw(number, 5) % self.delay_ms.saturating_mul(MILLISECOND_NS),
            ))
        } else {
            When::Now
        }
    }
}

fn exists(file: Option<&Path>) -> bool {
    file.is_some_and(Path::exists)
}

/// Mixes the bits of a number (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

fn word(word: &str) -> Result<(&str, &str), String> {
    let pair = word.split_once('=').filter(|(_, value)| !value.is_empty());
    pair.ok_or_else(|| format!("word `{word}`, expected `key=value`"))
}

fn number(key: &str, value: &str) -> Result<u64, String> {
    let (digits, shift) = match value.as_bytes().last() {
        Some(b'K') => (&value[..value.len() - 1], 10),
        Some(b'M') => (&value[..value.len() - 1], 20),
        Some(b'G') => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| format!("`{key}={value}`, expected a number such as 20 or 4M"))
}

fn percent(key: &str, value: &str) -> Result<u64, String> {
    let percent = number(key, value).ok().filter(|&percent| percent <= 100);
    percent.ok_or_else(|| format!("`{key}={value}`, expected 0 to 100"))
}

fn errno_of(name: &str) -> Option<i32> {
    const NAMES: [(&str, i32); 10] = [
        ("EIO", libc::EIO),
        ("ENOSPC", libc::ENOSPC),
        ("EDQUOT", libc::EDQUOT),
        ("EFBIG", libc::EFBIG),
        ("EROFS", libc::EROFS),
        ("EPERM", libc::EPERM),
        ("EINVAL", libc::EINVAL),
        ("ENODEV", libc::ENODEV),
        ("EINTR", libc::EINTR),
        ("EAGAIN", libc::EAGAIN),
    ];
    let named = NAMES.iter().find(|(of, _)| *of == name).map(|&(_, errno)| errno);
    named.or_else(|| name.parse().ok().filter(|errno| (1..4096).contains(errno)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn plan(text: &str) -> Plan {
        Plan::parse(text, Path::new("/dir/data.db")).unwrap().unwrap()
    }

    fn write(bytes: usize) -> Request {
        Request::Write { offset: 0, bytes }
    }

    #[test]
    fn write_error_after_bytes_passes_those_bytes() {
        let plan = plan("write=ENOSPC after=8K");
        let fates = [write(4096), write(4096), write(4096), Request::Flush].map(|request| plan.fate(request));
        assert_eq!(fates, [Fate::Well, Fate::Well, Fate::Fails(libc::ENOSPC), Fate::Well]);
    }

    #[test]
    fn read_error_every_third_fails_each_third() {
        let plan = plan("read=EIO every=3; flush=5");
        let read = Request::Read { offset: 0, bytes: 4096 };
        let failed = (1..=9).filter(|_| plan.fate(read) == Fate::Fails(libc::EIO)).count();
        assert_eq!((failed, plan.fate(Request::Flush)), (3, Fate::Fails(5)));
    }

    #[test]
    fn error_until_file_ends_when_the_file_exists() {
        let file = env::temp_dir().join(format!("pageout-plan-{}", std::process::id()));
        let plan = plan(&format!("set_len=EFBIG until-file={}", file.display()));
        assert_eq!(plan.fate(Request::SetLen(1)), Fate::Fails(libc::EFBIG));
        std::fs::write(&file, "").unwrap();
        assert_eq!(plan.fate(Request::SetLen(1)), Fate::Well);
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn plan_of_one_seed_is_the_same_twice() {
        let fates = |seed: u64| {
            let plan = plan(&format!("seed={seed} short=30 torn=10"));
            (0..200).map(|_| plan.fate(write(65536))).collect::<Vec<_>>()
        };
        let count = |of: fn(&Fate) -> bool| fates(7).iter().filter(|fate| of(fate)).count();
        assert!((30..90).contains(&count(|fate| matches!(fate, Fate::Short(512..)))));
        assert!((5..45).contains(&count(|fate| matches!(fate, Fate::Torn(_, libc::EIO)))));
        assert!(fates(7) == fates(7) && fates(7) != fates(8));
    }

    #[test]
    fn file_that_does_not_match_has_no_plan() {
        let of = |path: &str| Plan::parse("read=EIO; match=data", Path::new(path)).unwrap().is_some();
        assert!(of("/dir/data.db") && !of("/dir/other.db"));
    }

    #[test]
    fn malformed_text_is_an_error_that_names_the_word() {
        for (text, named) in [
            ("write", "`write`"),
            ("write=", "`write=`"),
            ("write=ENOSUCH", "`ENOSUCH`"),
            ("write=EIO after=4X", "`after=4X`"),
            ("write=EIO every=0", "`every=0`"),
            ("write=EIO seed=3", "`seed=3`"),
            ("seed=1 shrt=3", "`shrt=3`"),
            ("torn=101", "`torn=101`"),
            ("seed=99999999999G", "`seed=99999999999G`"),
        ] {
            let wrong = Plan::parse(text, Path::new("file")).unwrap_err();
            assert!(wrong.contains(named), "{text}: {wrong}");
        }
    }
}
