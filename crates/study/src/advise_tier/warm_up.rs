//! The part of each run that is left out of what is compared: until memory is filled and pages have come to their places, a run says what
//! beginning costs.
//!
//! The warm-up is an amount of *work*: at every ratio the number of accesses that the run with fast memory only made by the end of the
//! warm-up, seed by seed. A slower machine takes longer for them. Excluding the same time everywhere would include more of the expensive
//! beginning of a slower machine.
//!
//! ```text
//!   all fast   |— warm-up —|——— A accesses, time t ———|
//!   1:1        |—— warm-up ——|——— B accesses, time u ————|      loss = (u / B) / (t / A) - 1
//! ```
//! A workload of a fixed amount of work has A = B, and the loss is time. One that runs `until` some time makes fewer accesses, and the loss is those.

use crate::result::run_result::RunResult;
use crate::result::trail::Trail;
use crate::result::variants::Runs;
use pageout_sim::scenario::{Share, TimeSpan};

use crate::error::Error;
use crate::figures;

/// What is left out: nothing, a part of the work, or what is done in some time.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct WarmUp {
    text: String,
    of: Of,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Of {
    Nothing,
    /// A part of the accesses that a run with all memory fast makes.
    Share(Share),
    /// What such a run does in so much time.
    Time(TimeSpan),
}

impl std::fmt::Display for WarmUp {
    /// As it was written.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for WarmUp {
    type Err = String;

    /// `none`, `20%` or `10s`.
    fn from_str(text: &str) -> Result<WarmUp, String> {
        let share = |text: &str| text.parse().ok().filter(|share: &Share| share.0 < 1.0).map(Of::Share);
        let of = match text {
            "none" => Some(Of::Nothing),
            _ if text.ends_with('%') => share(text),
            _ => text.parse().ok().map(Of::Time),
        };
        of.map(|of| WarmUp { text: text.to_string(), of }).ok_or_else(|| {
            format!(
                "{text}: expected a time such as 10s, a share of the work below 100% such as 20%, or `none`"
            )
        })
    }
}

impl WarmUp {
    /// How many accesses are left out, of each seed. Errors: nothing would be left.
    pub(super) fn accesses(&self, all_fast: &Runs) -> Result<Vec<u64>, Error> {
        all_fast.results.iter().map(|run| self.accesses_of(run)).collect()
    }

    fn accesses_of(&self, run: &RunResult) -> Result<u64, Error> {
        match self.of {
            Of::Nothing => Ok(0),
            Of::Share(share) => Ok((run.accesses as f64 * share.0) as u64),
            Of::Time(time) => {
                let accesses = trail(run).accesses_by(time.0);
                if time.0 < run.end_ns && accesses < run.accesses {
                    return Ok(accesses);
                }
                let end = figures::time(run.end_ns);
                Err(Error::Asked(format!(
                    "--warm-up {time}: no work is left to compare: with fast memory only the workload ends \
                     after {end}\nhelp: use a shorter warm-up, a share such as 20%, or `none`"
                )))
            }
        }
    }
}

/// How far a run had come by when.
fn trail(run: &RunResult) -> &Trail {
    run.trail.as_ref().expect("runs here keep it")
}

/// The time after N accesses of a run.
pub(super) fn over_at(run: &RunResult, accesses: u64) -> u64 {
    if accesses == 0 { 0 } else { trail(run).time_of(accesses) }
}

/// Accesses a nanosecond from one access to another; nothing where the run made none between them, or ended before.
pub(super) fn rate(run: &RunResult, from: u64, to: u64) -> Option<f64> {
    let to = to.min(run.accesses);
    let until = if to == run.accesses { run.end_ns } else { over_at(run, to) };
    let (work, time) = (to.checked_sub(from)?, until.checked_sub(over_at(run, from))?);
    (work > 0 && time > 0).then(|| work as f64 / time as f64)
}
