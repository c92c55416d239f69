//! What the environment sets: seeds, durations, and known defects to step around.

use std::time::Duration;

/// A defect that the tester steps around, so that it can find the next one. [`AVOIDED`] has those that are there at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Avoid {
    /// A pending read is dropped before it has ended, and the last handle of its file afterwards.
    PendingDrop,
    /// Two threads forget a file at the same time.
    Forgets,
    /// Holes of a file that was extended and not written back are read with io_uring.
    Holes,
    /// `set_len` runs next to writes, guards and reads of the same file.
    SetLenRaces,
    /// Offsets near 2^64.
    NearMax,
    /// Ranges that end before they begin.
    Reversed,
    /// A file is forgotten while others open it or have reads in flight.
    ForgetOpen,
    /// A file is open with direct I/O and buffered at the same time.
    Mixed,
    /// Reads in flight of a file that is only read hold pages, also once the file is opened for writing.
    PendingPins,
    /// A read-only file is written by another process, reloaded, and opened again: the second handle has another file.
    ReloadIdentity,
    /// A thread holds a page to write it, and waits for writes of neighbouring pages that belong to the same request.
    HeldNeighbours,
    /// A file is forgotten while other threads read it: each holds a page while it copies, and the forget fails.
    ForgetReads,
    /// `submit`, `advise` and `acknowledge` fail with `Error::Forgotten` while a forget is under way that then fails.
    ForgetGoing,
    /// A read in flight fails with `Error::Shortened` if `set_len` cuts its file, and with it the next access to the page.
    Shortened,
    /// `set_len` and `reload` fail with `Error::Pinned` while the device has a page of a file with stable writes.
    StablePinned,
    /// A file is reloaded while another thread takes a guard: the reload can wait for the guard instead of failing.
    ReloadHeld,
    /// A thread that holds a guard accesses the same page in a way that waits for the guard, for a tenth of a second.
    OwnGuard,
    /// A device takes some pages of a file and fails for others: a write of many pages waits half a second for every few of them.
    PartlyFull,
}

const ALL: [(&str, Avoid); 18] = [
    ("pending_drop", Avoid::PendingDrop),
    ("forgets", Avoid::Forgets),
    ("holes", Avoid::Holes),
    ("set_len_races", Avoid::SetLenRaces),
    ("near_max", Avoid::NearMax),
    ("reversed", Avoid::Reversed),
    ("forget_open", Avoid::ForgetOpen),
    ("mixed", Avoid::Mixed),
    ("pending_pins", Avoid::PendingPins),
    ("reload_identity", Avoid::ReloadIdentity),
    ("held_neighbours", Avoid::HeldNeighbours),
    ("forget_reads", Avoid::ForgetReads),
    ("shortened", Avoid::Shortened),
    ("stable_pinned", Avoid::StablePinned),
    ("forget_going", Avoid::ForgetGoing),
    ("reload_held", Avoid::ReloadHeld),
    ("own_guard", Avoid::OwnGuard),
    ("partly_full", Avoid::PartlyFull),
];

/// The known defects, as in `PAGEOUT_AVOID`. A fix removes its defect here.
const AVOIDED: &str = "partly_full";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns true if the tester steps around a defect.
pub(crate) fn avoids(defect: Avoid) -> bool {
    let avoided = std::env::var("PAGEOUT_AVOID").unwrap_or_else(|_| AVOIDED.to_owned());
    if avoided == "all" {
        return true;
    }
    avoided.split(',').filter(|name| !["none", ""].contains(name)).any(|name| {
        let known = ALL.iter().find(|(known, _)| *known == name);
        known.unwrap_or_else(|| panic!("PAGEOUT_AVOID: unknown defect `{name}`")).1 == defect
    })
}

/// What `PAGEOUT_AVOID` is, for who runs a seed again.
pub(crate) fn avoided() -> String {
    ALL.iter().filter(|(_, defect)| avoids(*defect)).map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}

/// The seeds to run: one again and again, or others in each run.
pub(crate) fn seeds() -> impl Iterator<Item = u64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let first = since.map_or(0, |since| since.as_micros() as u64) % 1_000_000_000;
    let one = variable("PAGEOUT_SEED").map(|seed| {
        seed.parse().unwrap_or_else(|_| panic!("PAGEOUT_SEED: found `{seed}`, expected a number"))
    });
    (0..).map(move |more| one.unwrap_or(first + more))
}

/// How long each of the two parts runs: one thread, and many.
pub(crate) fn duration() -> Duration {
    let seconds = variable("PAGEOUT_DIFFERENTIAL_SECONDS");
    let seconds = seconds.map(|text| {
        text.parse::<f64>()
            .unwrap_or_else(|_| panic!("PAGEOUT_DIFFERENTIAL_SECONDS: found `{text}`, expected seconds"))
    });
    Duration::from_secs_f64(seconds.unwrap_or(5.0))
}

/// No operation may take longer.
pub(crate) fn longest() -> Duration {
    let seconds = variable("PAGEOUT_DIFFERENTIAL_LONGEST").and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(120))
}

/// Where files are made, if not in the temporary folder.
pub(crate) fn folder() -> Option<std::path::PathBuf> {
    variable("PAGEOUT_DIFFERENTIAL_FOLDER").map(Into::into)
}

/// How to run a failure again.
pub(crate) fn again(seed: u64) -> String {
    format!(
        "PAGEOUT_SEED={seed} PAGEOUT_AVOID={} cargo test -p pageout --test differential -- --nocapture",
        avoided()
    )
}
