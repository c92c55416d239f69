//! Slots as registers: what their bytes say, and what a read may see of them.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::lock;
use crate::draw::{fill, mix};
use crate::model::compare;

/// Bytes of a slot that say what it is.
const HEADER: usize = 40;
/// Events of a slot that are kept, without those that have failed in between.
const EVENTS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Write(u64),
    /// It was taken away, or never written.
    Cut,
}

/// A write or a cut, which has not ended where `end` is the last time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    what: What,
    begin: u64,
    end: u64,
    id: u64,
    /// It has failed, and may be there or not.
    has_failed: bool,
}

/// What happened to a slot.
pub(super) struct History(Mutex<VecDeque<Event>>);

/// A slot's contents.
pub(super) fn slot_bytes(file: usize, slot: usize, version: u64, writer: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let key = (file as u64) << 48 ^ (slot as u64) << 20 ^ version;
    fill(&mut bytes[HEADER..], mix(key) as u32, 0);
    let header = [0x7061_6765_6f75_7421, (file as u64) << 32 | slot as u64, version, writer];
    for (at, word) in header.iter().enumerate() {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
    }
    let sum = checksum(&bytes);
    bytes[32..40].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let all = bytes[..32].chunks(8).chain(bytes[HEADER..].chunks(8));
    all.fold(1, |sum, chunk| mix(sum ^ word(chunk)))
}

/// What a slot's bytes are.
pub(super) fn parse(file: usize, slot: usize, bytes: &[u8]) -> Result<What, String> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Ok(What::Cut);
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
    if word(0) != 0x7061_6765_6f75_7421 {
        let zeroes = bytes.iter().take_while(|&&byte| byte == 0).count();
        return Err(format!(
            "is torn: it begins with {zeroes} zeroes, then {:?}",
            &bytes[zeroes..(zeroes + 8).min(bytes.len())]
        ));
    }
    let (of, version) = (word(1), word(2));
    if of != (file as u64) << 32 | slot as u64 {
        return Err(format!("is slot {} of file {}, version {version}", of as u32, of >> 32));
    }
    if word(4) != checksum(bytes) {
        let expected = slot_bytes(file, slot, version, word(3), bytes.len());
        let differs = compare(bytes, &expected, 0).err().unwrap_or_default();
        return Err(format!("is torn: its header says version {version}, and {differs}"));
    }
    Ok(What::Write(version))
}

impl History {
    /// A slot that was never written: the only event is a cut at time 0.
    pub(super) fn new() -> History {
        History(Mutex::new([Event { what: What::Cut, begin: 0, end: 0, id: 0, has_failed: false }].into()))
    }

    pub(super) fn begins(&self, what: What, now: u64) {
        let mut events = lock(&self.0);
        let is_sure = |event: &Event| !event.has_failed;
        if events.iter().filter(|event| is_sure(event)).count() >= EVENTS {
            let oldest = events.iter().position(is_sure).expect("there are some");
            events.remove(oldest);
            let first = events.iter().find(|event| is_sure(event)).map_or(0, |event| event.begin);
            events.retain(|event| is_sure(event) || event.end >= first);
        }
        events.push_back(Event { what, begin: now, end: u64::MAX, id: now, has_failed: false });
    }

    pub(super) fn ends(&self, id: u64, now: u64) {
        if let Some(event) = lock(&self.0).iter_mut().rfind(|event| event.id == id) {
            event.end = now;
        }
    }

    /// It has failed, and may have come to something by now.
    pub(super) fn fails(&self, id: u64, now: u64) {
        if let Some(event) = lock(&self.0).iter_mut().rfind(|event| event.id == id) {
            (event.end, event.has_failed) = (now, true);
        }
    }

    /// It came to nothing.
    pub(super) fn is_void(&self, id: u64) {
        lock(&self.0).retain(|event| event.id != id);
    }

    /// Checks that a read in this time may see this. Errors: what it may see.
    pub(super) fn allows(&self, seen: What, begin: u64, end: u64) -> Result<(), String> {
        let events = lock(&self.0);
        let may = |event: &&Event| {
            let is_over = |other: &Event| !other.has_failed && other.begin > event.end && other.end < begin;
            event.begin < end && !events.iter().any(is_over)
        };
        let allowed: Vec<&Event> = events.iter().filter(may).collect();
        if allowed.iter().any(|event| event.what == seen) {
            return Ok(());
        }
        Err(format!(
            "{seen:?} in a read from {begin} to {end}; allowed: {allowed:?}; last events: {:?}",
            events.iter().rev().take(6).collect::<Vec<_>>()
        ))
    }
}

#[test]
fn read_sees_what_it_may_and_nothing_older() {
    let history = History::new();
    let write = |version, begin, end| {
        history.begins(What::Write(version), begin);
        history.ends(begin, end);
    };
    write(1, 10, 12);
    write(2, 20, 25);
    let sees = |what, begin, end| history.allows(what, begin, end).is_ok();
    // Before, beside and after the second write.
    assert!(sees(What::Cut, 5, 11) && sees(What::Write(1), 5, 11));
    assert!(sees(What::Write(1), 22, 23) && sees(What::Write(2), 22, 23));
    assert!(sees(What::Write(2), 30, 31));
    assert!(!sees(What::Write(1), 30, 31), "older than one that had ended");
    assert!(!sees(What::Write(2), 15, 19), "not begun yet");
    assert!(!sees(What::Cut, 15, 19), "nobody has cut it");
    history.begins(What::Cut, 40);
    assert!(sees(What::Cut, 41, 42) && sees(What::Write(2), 41, 42));
    history.ends(40, 45);
    assert!(!sees(What::Write(2), 50, 51) && sees(What::Cut, 50, 51));
    history.is_void(40);
    assert!(sees(What::Write(2), 50, 51) && !sees(What::Cut, 50, 51));
    history.begins(What::Write(3), 60);
    history.fails(60, 65);
    assert!(sees(What::Write(2), 70, 71) && sees(What::Write(3), 70, 71), "it may be there or not");
    for at in 0..2 * EVENTS as u64 {
        history.begins(What::Cut, 70 + at);
        history.fails(70 + at, 70 + at);
    }
    assert!(sees(What::Write(2), 270, 271), "calls that have failed take nothing away");
    write(4, 280, 285);
    for at in 0..EVENTS as u64 {
        write(5 + at, 300 + 2 * at, 301 + 2 * at);
    }
    assert_eq!(lock(&history.0).len(), EVENTS, "those that have failed go with the ones before them");
    assert!(!sees(What::Write(2), 290, 291) && !sees(What::Write(3), 290, 291));
}

#[test]
fn slot_that_is_torn_or_of_another_place_is_found() {
    let (one, other) = (slot_bytes(1, 2, 3, 0, 512), slot_bytes(1, 2, 4, 0, 512));
    assert_eq!(parse(1, 2, &one), Ok(What::Write(3)));
    assert_eq!(parse(1, 2, &[0; 512]), Ok(What::Cut));
    for at in [17, 64, 511] {
        let torn = [&one[..at], &other[at..]].concat();
        assert!(parse(1, 2, &torn).is_err_and(|text| text.contains("torn")), "at {at}");
    }
    assert!(parse(1, 3, &one).is_err());
}
