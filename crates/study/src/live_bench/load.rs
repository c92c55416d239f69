//! The pages that are read: random by a law, or from a trace.

use std::path::Path;

use pageout_workload::generator::{Pattern, Uniform, Zipf};
use pageout_workload::{Access, AccessStream, TraceError, trace};

use super::Ask;
use crate::error::{Error, ensure, told};
use crate::figures;
use crate::watch::Watcher;

/// Pages of a file in the order in which they are read.
pub(super) struct Load {
    /// In words.
    pub(super) name: String,
    /// Pages of a file for which this is a load, at least.
    pub(super) least: u64,
    /// True if reads follow no order, so that nothing should be read ahead.
    pub(super) is_random: bool,
    source: Source,
}

enum Source {
    Drawn(Law),
    /// The trace, with the place of each of its objects in the file.
    Trace(Vec<u32>),
}

/// How pages are drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Law {
    Zipf(f64),
    Uniform,
    Sequential,
}

/// Pages of a file at most: a number of one is 32 bits here.
pub(super) const PAGES_MAX: u64 = u32::MAX as u64;

/// The law by which pages are drawn; `None` if it is a trace. Errors: an exponent makes no sense.
pub(super) fn law(load: &str) -> Result<Option<Law>, Error> {
    Ok(match load.split_once(':').unwrap_or((load, "")) {
        ("zipf", alpha) if load == "zipf" || !alpha.is_empty() => {
            let alpha = if alpha.is_empty() { "0.99" } else { alpha };
            let exponent = alpha.parse().ok().filter(|alpha| (0.0..=100.0).contains(alpha));
            let wrong = || {
                Error::asked(format!(
                    "--load {load}: invalid exponent: expected a number from 0 to 100\nhelp: for example --load zipf:1.2"
                ))
            };
            Some(Law::Zipf(exponent.ok_or_else(wrong)?))
        }
        ("uniform", "") => Some(Law::Uniform),
        ("sequential", "") => Some(Law::Sequential),
        _ => None,
    })
}

impl Load {
    /// What is asked for. A trace is read here, no more of it than one round takes.
    pub(super) fn new(ask: &Ask, watcher: &dyn Watcher) -> Result<Load, Error> {
        let drawn =
            |name: String, is_random, law| Load { name, least: 1, is_random, source: Source::Drawn(law) };
        Ok(match law(&ask.load)? {
            Some(Law::Zipf(exponent)) => drawn(format!("Zipf {exponent}"), true, Law::Zipf(exponent)),
            Some(Law::Uniform) => drawn("uniform".to_string(), true, Law::Uniform),
            Some(Law::Sequential) => drawn("sequential".to_string(), false, Law::Sequential),
            None => Load::of_trace(ask, Path::new(&ask.load), watcher)?,
        })
    }

    fn of_trace(ask: &Ask, path: &Path, watcher: &dyn Watcher) -> Result<Load, Error> {
        let name = path.display();
        ensure!(
            path.exists(),
            "--load {name}: expected zipf, zipf:EXPONENT, uniform, sequential or the path of a trace\nhelp: check the name; a relative path starts at the current folder"
        );
        let options = ask.read.options().map_err(|error| Error::Asked(error.message))?;
        let wanted = ask.reads as usize * usize::from(ask.threads);
        let cannot = |error: TraceError| Error::Asked(told(&error));
        let mut stream = trace::open(path, &options).map_err(cannot)?;
        let (mut accesses, mut ends) = (Vec::<Access>::new(), Vec::<u64>::new());
        while accesses.len() < wanted {
            if let Some(signal) = watcher.stop() {
                return Err(Error::Interrupted(format!("{signal} while reading {name}")));
            }
            let had = accesses.len();
            if stream.fill(&mut accesses, (wanted - had).min(1 << 16)).map_err(cannot)? == 0 {
                break;
            }
            for access in &accesses[had..] {
                let object = access.object() as usize;
                ends.resize(ends.len().max(object + 1), 0);
                ends[object] = ends[object].max(access.page() + 1);
            }
        }
        ensure!(!accesses.is_empty(), "{name}: the trace has no accesses");
        // Objects lie in the file one behind the other.
        let begins: Vec<u64> = ends
            .iter()
            .scan(0, |begin, end| {
                *begin += end;
                Some(*begin - end)
            })
            .collect();
        let least: u64 = ends.iter().sum();
        ensure!(
            least <= PAGES_MAX,
            "{name}: the trace needs a file of {}, the limit is {}\nhelp: --read page_ids=dense numbers pages without gaps",
            figures::bytes(least.saturating_mul(4096)),
            figures::bytes(PAGES_MAX * 4096)
        );
        let place = |access: &Access| (begins[access.object() as usize] + access.page()) as u32;
        let pages: Vec<u32> = accesses.iter().map(place).collect();
        let which = if pages.len() < wanted { "all" } else { "the first" };
        let name = format!("{which} {} accesses of {}", figures::count(pages.len() as u64), name);
        Ok(Load { name, least, is_random: false, source: Source::Trace(pages) })
    }

    /// Returns the pages of each round, one list per thread. Random pages continue from round to round; a trace restarts.
    /// Returns fewer if a signal asks to end meanwhile.
    pub(super) fn rounds(
        &self,
        ask: &Ask,
        file_pages: u64,
        rounds: u64,
        watcher: &dyn Watcher,
    ) -> Result<Vec<Vec<u32>>, Error> {
        /// A list uses four bytes per read, here and in each process.
        const READS_MAX: u64 = 1 << 28;
        let (threads, reads) = (u64::from(ask.threads), ask.reads);
        let pattern = match &self.source {
            Source::Trace(pages) => {
                let of_thread = |thread: usize| {
                    let end = |thread: usize| pages.len() * thread / threads as usize;
                    pages[end(thread)..end(thread + 1)].to_vec()
                };
                return Ok((0..rounds).flat_map(|_| (0..threads as usize).map(of_thread)).collect());
            }
            Source::Drawn(law) => {
                let ops = reads.saturating_mul(threads).saturating_mul(rounds);
                ensure!(
                    ops <= READS_MAX,
                    "--reads {reads}: {} and {} need {}, including two uncounted rounds; the limit is {}",
                    figures::counted(threads, "thread"),
                    figures::counted(ask.rounds.into(), "round"),
                    figures::counted(ops, "read"),
                    figures::count(READS_MAX)
                );
                let (pages, write_ratio, seed) = (file_pages, 0.0, None);
                match *law {
                    Law::Zipf(alpha) => Pattern::Zipf(Zipf { pages, ops, alpha, write_ratio, seed }),
                    Law::Uniform => Pattern::Uniform(Uniform { pages, ops, write_ratio, seed }),
                    Law::Sequential => {
                        // Each thread goes on where it is in the file, and they begin at equal distances.
                        let page = |thread, at| ((file_pages * thread / threads + at) % file_pages) as u32;
                        let of_round = |round: u64| {
                            (0..threads).map(move |thread| {
                                (round * reads..(round + 1) * reads).map(|at| page(thread, at)).collect()
                            })
                        };
                        return Ok((0..rounds).flat_map(of_round).collect());
                    }
                }
            }
        };
        let mut stream = pattern.stream(0, ask.seed).map_err(|error| Error::Asked(told(&error)))?;
        let mut lists = Vec::new();
        for _ in 0..rounds * threads {
            let (mut list, mut chunk) = (Vec::with_capacity(reads as usize), Vec::new());
            while (list.len() as u64) < reads {
                let left = reads as usize - list.len();
                let filled = stream.fill(&mut chunk, left.min(1 << 16));
                let filled = filled.map_err(|error| Error::Asked(told(&error)))?;
                ensure!(filled > 0, "a load ended early");
                list.extend(chunk.drain(..).map(|access| access.page() as u32));
                if watcher.stop().is_some() {
                    return Ok(lists);
                }
            }
            lists.push(list);
        }
        Ok(lists)
    }
}
