//! The readers to compare with the live page cache, and whether there is memory for all of them.

use std::path::Path;

use super::load;
use super::ways::{self, WAYS};
use super::{Ask, OURS};
use crate::error::{Error, ensure};
use crate::figures;
use crate::scenario::nearest::nearest;

/// The share of memory that is left to the kernel if readers are chosen by default.
pub(super) const MEMCPY_MAX: u64 = 1 << 30;

impl Ask {
    /// Checks who is asked for. Errors: a name is not known, or makes no sense here.
    pub fn check_readers(&self) -> Result<(), Error> {
        wanted(self).map(drop)
    }

    /// The file of the trace, if the pages are one's. Errors: the load makes no sense.
    pub fn trace(&self) -> Result<Option<&Path>, Error> {
        Ok(load::law(&self.load)?.is_none().then(|| Path::new(&self.load)))
    }
}

/// The readers to compare with pageout.
pub(super) struct Wanted {
    /// In the order of the table.
    pub(super) ways: Vec<String>,
    /// True if the user named them, rather than the default of all readers.
    pub(super) is_said: bool,
}

/// Returns the requested readers. Errors: an unknown name, or one that is invalid here.
pub(super) fn wanted(ask: &Ask) -> Result<Wanted, Error> {
    let baselines = ask.baselines.iter().map(|(name, _)| *name);
    let known: Vec<&str> = WAYS.into_iter().filter(|way| *way != OURS).chain(baselines).collect();
    let is_said = !ask.beside.is_empty();
    let mut wanted: Vec<String> = Vec::new();
    for name in &ask.beside {
        match name.as_str() {
            "none" => ensure!(ask.beside.len() == 1, "--beside: `none` excludes other names"),
            "kernel" => wanted.extend(["buffered", "mmap"].map(str::to_string)),
            OURS => return Err(Error::asked(format!("--beside: `{OURS}` always runs, remove it"))),
            name if known.contains(&name) => wanted.push(name.to_string()),
            name => {
                let hint = nearest(name, known.iter().copied())
                    .map(|hint| format!("\nhelp: did you mean `{hint}`?"));
                return Err(Error::asked(format!(
                    "--beside {name}: unknown reader{}\nhelp: known: {}, kernel (the first two) and none",
                    hint.unwrap_or_default(),
                    known.join(", ")
                )));
            }
        }
    }
    if !is_said {
        wanted.extend(known.iter().map(|name| (*name).to_string()));
    }
    if ask.in_place {
        let refused = wanted.iter().find(|way| !ways::has_places(way));
        if let (Some(way), true) = (refused, is_said && !ask.beside.contains(&"kernel".to_string())) {
            let why = format!("--beside {way}: this reader copies, so it cannot read --in-place");
            return Err(Error::Asked(why));
        }
        wanted.retain(|way| ways::has_places(way));
    }
    // In the order of the table, each once.
    let mut ways: Vec<String> = known.into_iter().map(str::to_string).collect();
    ways.retain(|way| wanted.contains(way));
    if let (false, Some(size)) = (is_said, ask.size)
        && size.0 > MEMCPY_MAX
    {
        ways.retain(|way| way != "memcpy");
    }
    Ok(Wanted { ways, is_said })
}

/// Refuses what would take more memory than there is.
pub(super) fn check_memory(ask: &Ask, wanted: &Wanted) -> Result<(), Error> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let Some(available) = kib.map(|kib| kib << 10) else { return Ok(()) };
    // The budgets of pageout, of the group, and of each third-party cache.
    let is_of_kernel = wanted.ways.iter().any(|way| ways::is_of_kernel(way));
    let others = wanted.ways.iter().filter(|way| !WAYS.contains(&way.as_str())).count() as u64;
    let budgets = 1 + u64::from(is_of_kernel) + others;
    let needed = ask.budget.0.saturating_mul(budgets);
    ensure!(
        needed <= available,
        "--budget {}: {budgets} budgets need {}, but the machine has {} available",
        ask.budget,
        figures::bytes(needed),
        figures::bytes(available)
    );
    Ok(())
}
