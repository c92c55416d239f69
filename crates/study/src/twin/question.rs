//! What is asked of a twin, and whether its recording can say.

use pageout_sim::scenario::Size;
use pageout_sim::scenario::keys::Limit;

use super::machine::TwinMachine;
use super::recording::{Knowledge, Recording};
use crate::Error;
use crate::scenario::nearest::nearest;

const KEYS: [&str; 8] =
    ["memory", "memory.high", "policy", "device", "readahead", "readers", "zswap", "swap"];

/// One question: one or several changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// As it was asked.
    pub text: String,
    /// The machine that it is about.
    pub machine: TwinMachine,
    /// The memory for files compared with the recorded one: less, equal or more.
    pub memory: std::cmp::Ordering,
    /// The unknown data that the answer depends on.
    on_unknown: Option<&'static str>,
}

/// The answer that a recording can carry, or the reason why it carries none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// It does.
    Whole,
    /// With this share more misses at most, as accesses are missing.
    UpTo(u32),
    /// It can't; why, and what to do.
    Not(String),
}

impl Carried {
    /// The share of misses that may be missing, in percent; `None` if there is no answer.
    pub fn missing_percent(&self) -> Option<u32> {
        match self {
            Carried::Whole => Some(0),
            Carried::UpTo(percent) => Some(*percent),
            Carried::Not(_) => None,
        }
    }
}

impl Question {
    /// Reads `memory=-25%` or `policy=mglru@6.12+memory=48MiB`, about the machine of a recording. Errors: it makes no sense.
    pub fn parse(text: &str, recording: &Recording) -> Result<Question, Error> {
        let base = TwinMachine::of(recording);
        let mut machine = base.clone();
        let (mut on_unknown, mut has_swap) = (None, recording.has_swap());
        for part in parts(text) {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                Error::Asked(format!("--ask {part}: expected KEY=VALUE; keys are {}", KEYS.join(", ")))
            })?;
            let bad = |why: &str| Error::Asked(format!("--ask {part}: {why}"));
            match key {
                "memory" => machine.limit = size(value, base.limit).map_err(|why| bad(&why))?,
                "memory.high" if value == "max" => machine.high = None,
                "memory.high" => machine.high = Some(size(value, base.limit).map_err(|why| bad(&why))?),
                "policy" => machine.profile = value.to_string(),
                "device" => machine.device = Some(value.to_string()),
                "readahead" => {
                    let bytes = match value.parse::<u64>() {
                        Ok(kib) => kib << 10,
                        Err(_) => value.parse::<Size>().map_err(|why| bad(&why.to_string()))?.0,
                    };
                    machine.read_ahead_kb = Some(bytes >> 10);
                }
                "readers" => {
                    let number = value.parse::<u32>().ok().filter(|number| (1..=1000).contains(number));
                    machine.readers = number.ok_or_else(|| bad("a number from 1 to 1000"))?;
                    // Each has memory of its own.
                    machine.held += recording.constant_programs() * u64::from(machine.readers - 1);
                }
                "zswap" if matches!(value, "on" | "off") => on_unknown = zswap(recording),
                "swap" if value == "on" => has_swap = true,
                "swap" if value == "off" => {
                    has_swap = false;
                    // All that was there has to be in memory.
                    machine.held += recording.held().swapped;
                }
                "zswap" | "swap" => return Err(bad("on or off")),
                other => {
                    let hint = nearest(other, KEYS)
                        .map_or_else(String::new, |near| format!("\nhelp: did you mean `{near}`?"));
                    return Err(bad(&format!("unknown key; known: {}{hint}", KEYS.join(", "))));
                }
            }
        }
        let held_most = machine.held + machine.moving * u64::from(machine.readers);
        if machine.limit <= held_most && has_swap {
            on_unknown = Some(
                "programs and the kernel hold more than this memory. The rest for files depends on swap, and \
                 on anonymous accesses, which are not recorded",
            );
        } else if machine.limit <= held_most {
            return Err(Error::Asked(format!(
                "--ask {text}: {} is less than the {} of the group's programs and the kernel: the OOM killer would end it",
                crate::figures::bytes(machine.limit),
                crate::figures::bytes(held_most)
            )));
        }
        let effective =
            |machine: &TwinMachine| machine.high.map_or(machine.limit, |high| high.min(machine.limit));
        let memory = effective(&machine).cmp(&effective(&base));
        // At the memory and swap that there were it is known how much stayed.
        if has_swap && (memory.is_ne() || !recording.has_swap() || machine.readers > 1) {
            machine.swappable = recording.held().programs * u64::from(machine.readers);
        }
        Ok(Question { text: text.to_string(), machine, memory, on_unknown })
    }
}

/// Several changes in one question: `policy=mglru@6.12+memory=48MiB`. In `memory=+50%` the sign belongs to the size.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for (at, _) in text.match_indices('+') {
        if text[at + 1..].starts_with(|next: char| next.is_ascii_alphabetic()) {
            parts.push(text[from..at].trim());
            from = at + 1;
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// A size, or a share of `base` more or less: `-25%`, `48MiB`, `150%`.
fn size(text: &str, base: u64) -> Result<u64, String> {
    if let Some(less) = text.strip_prefix('-') {
        let percent: f64 = less
            .strip_suffix('%')
            .and_then(|number| number.parse().ok())
            .ok_or("expected a share such as -25%")?;
        if !(0.0..100.0).contains(&percent) {
            return Err("expected a reduction below 100 %".to_string());
        }
        return Ok((base as f64 * (1.0 - percent / 100.0)) as u64 / 4096 * 4096);
    }
    if let Some(more) = text.strip_prefix('+') {
        let percent: f64 = more
            .strip_suffix('%')
            .and_then(|number| number.parse().ok())
            .ok_or("expected a share such as +50%")?;
        if !(0.0..=10_000.0).contains(&percent) {
            return Err("expected an increase of at most 10,000 %".to_string());
        }
        return Ok((base as f64 * (1.0 + percent / 100.0)) as u64 / 4096 * 4096);
    }
    match text.parse::<Limit>().map_err(|error| error.to_string())? {
        Limit::Size(size) => Ok(size.0),
        Limit::Percent(percent) => Ok((base as f64 * percent / 100.0) as u64 / 4096 * 4096),
        Limit::Max => Err("expected a size, or a share such as -25%, +50% or 150%".to_string()),
    }
}

/// Why zswap can't be answered for; or why it changes nothing.
fn zswap(recording: &Recording) -> Option<&'static str> {
    let holds_swap = recording.samples.iter().any(|sample| sample.swap_bytes > 0);
    Some(match (recording.swap_ins().unwrap_or(0) > 0 || holds_swap, recording.has_swap()) {
        (true, _) => {
            "it depends on anonymous accesses, of which only first touches and swap-ins are recorded"
        }
        (false, true) => "no page of the group was swapped, so zswap has no effect at this memory",
        (false, false) => {
            "without swap zswap has no pages; with swap it depends on anonymous accesses, which are not recorded"
        }
    })
}

/// The answer that the recording can carry.
pub fn answerable(recording: &Recording, question: &Question) -> Carried {
    use std::cmp::Ordering::{Equal, Greater, Less};
    if let Some(why) = question.on_unknown {
        return Carried::Not(why.to_string());
    }
    if recording.is_unsteady() {
        return Carried::Not("the memory of programs changed at unknown times".to_string());
    }
    if question.memory == Less && recording.is_unsteady_below(question.machine.limit) {
        return Carried::Not(
            "the group was never short of memory, and its programs' memory varied: how much of it a lower limit \
             leaves to files is not known. Record at a lower limit"
                .to_string(),
        );
    }
    if recording.manifest.recording.sample > 1
        && (question.machine.read_ahead_kb.is_some() || question.machine.readers > 1)
    {
        return Carried::Not("a sample of pages lacks neighbours to read ahead and pages that readers share: record without --sample".to_string());
    }
    let knowledge = recording.knowledge();
    let less = |what: &str, more: &str| {
        Carried::Not(format!(
            "only {what} are recorded, and hits at the recorded memory, which may be misses with less, are missing: {more}"
        ))
    };
    let is_other_memory = question.memory == Greater || question.machine.readers > 1;
    match (knowledge, question.memory) {
        (Knowledge::None, _) => Carried::Not("a recording of counters only does not cover other machines: record accesses".to_string()),
        (Knowledge::Reads, _) => Carried::Whole,
        (Knowledge::Insertions, Less) => less("insertions", "record on Linux 6.12 or later, or with less memory"),
        (Knowledge::ReadsAndWaits | Knowledge::ReadsAndFaults, Less) => {
            less("faults of mapped files", "record with less memory")
        }
        (_, Equal) if !is_other_memory && question.machine.profile == TwinMachine::of(recording).profile => Carried::Whole,
        (_, Equal) if !is_other_memory => Carried::Not(
            "another policy keeps other pages, and hits on the kept pages are not recorded: record reads, or replay an access trace of the program".to_string(),
        ),
        (knowledge, _) => Carried::UpTo((knowledge.missing_at_more() * 100.0).round() as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shares_or_bytes() {
        assert_eq!(size("-25%", 400 << 12), Ok(300 << 12));
        assert_eq!(size("150%", 400 << 12), Ok(600 << 12));
        assert_eq!(size("+50%", 400 << 12), Ok(600 << 12));
        assert_eq!(parts("memory=+50%+policy=mglru@6.12"), ["memory=+50%", "policy=mglru@6.12"]);
        assert_eq!(size("48MiB", 1), Ok(48 << 20));
        assert!(size("-100%", 1).is_err() && size("-x", 1).is_err() && size("max", 1).is_err());
    }
}
