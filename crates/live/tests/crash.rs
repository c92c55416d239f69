//! Processes that are killed while they write through a cache: what a sync has returned Ok for is there, and nothing of another file.
//!
//! The test starts itself as the process that is killed (`child`, `child_store`). That writes slots of three sectors to four files, which have a quarter of their size in
//! memory, and tells what is synced after it is. Each word of a slot says whose it is and which write it is of, and which slot a write goes to is drawn from
//! its number: so of any word that is found it is known whether somebody wrote it there. What is found after one kill must be there after the next.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests that make files")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pageout::{Backend, Error, File, Group, Limits, Memory, Open};

#[path = "../examples/key-value.rs"]
#[allow(unreachable_pub, reason = "an example")]
mod key_value;

use key_value::Draw;

const FILES: u64 = 4;
const SLOTS: u64 = 700;
/// Three sectors: every other slot is of two pages.
const SLOT: usize = 1536;
/// A quarter of all files.
const IN_MEMORY: u64 = FILES * SLOTS * SLOT as u64 / 4;

/// A folder, which goes with this value.
struct Made(PathBuf);

impl Made {
    fn new(name: &str) -> Made {
        let name = format!("crash-{name}-{}", std::process::id());
        let made = Made(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        std::fs::create_dir(&made.0).unwrap();
        made
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The slot that a write of a file goes to.
fn slot_of(file: u64, write: u64) -> u64 {
    Draw((write << 8 | file).wrapping_mul(0x9e37_79b9_7f4a_7c15)).below(SLOTS)
}

/// What a write of a file has in each word. No word is zero.
fn word_of(file: u64, write: u64) -> u64 {
    (file + 1) << 56 | slot_of(file, write) << 40 | write
}

/// The write that a word is of, if it is one of this slot of this file.
fn write_of(word: u64, file: u64, slot: u64) -> Option<u64> {
    let write = word & ((1 << 40) - 1);
    (word_of(file, write) == word && slot_of(file, write) == slot).then_some(write)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()))
}

fn memory(backend: Backend) -> Result<Memory, Error> {
    Memory::builder().budget(8 << 20).backend(backend).io_threads(3).build()
}

fn open(memory: &Memory, group: &Group, path: &Path) -> File {
    let how = || Open::read_write().create(true).group(group);
    match memory.open(path, how()) {
        Err(Error::DirectRefused { .. }) => memory.open(path, how().buffered(true)).unwrap(),
        opened => opened.unwrap(),
    }
}

fn path_of(folder: &Path, file: u64) -> PathBuf {
    folder.join(format!("{file}"))
}

/// Writes a file, from a write on, until it is killed; reads what it has written before, and syncs now and then.
fn write_file(number: u64, file: &File, first: u64, tells_before: bool) {
    let (mut draw, mut buf) = (Draw(first << 8 | number), vec![0; SLOT]);
    for write in first.. {
        let word = word_of(number, write);
        file.write_at(&[word; SLOT / 8].map(u64::to_le_bytes).concat(), slot_of(number, write) * SLOT as u64)
            .unwrap();
        let slot = draw.below(file.len() / SLOT as u64);
        file.read_at(&mut buf, slot * SLOT as u64).unwrap();
        let is_own = |word| word == 0 || write_of(word, number, slot).is_some_and(|found| found <= write);
        assert!(words(&buf).all(is_own), "slot {slot} of file {number} is read as another's");
        if draw.below(24) == 0 {
            if tells_before {
                println!("synced {number} {write}");
            }
            if draw.below(4) == 0 { file.sync_all() } else { file.sync_data() }.unwrap();
            println!("synced {number} {write}");
        }
    }
}

fn env(name: &str) -> Option<String> {
    std::env::var(format!("PAGEOUT_CRASH_{name}")).ok()
}

#[test]
#[ignore = "it is the process that the others kill"]
fn child() {
    let Some(folder) = env("FOLDER") else { return };
    let backend = if env("BACKEND").unwrap() == "uring" { Backend::Uring } else { Backend::Threads };
    let memory = memory(backend).unwrap();
    // What is dirty for longer is written without a sync.
    memory.write("/proc/sys/vm/dirty_writeback_centisecs", "1").unwrap();
    memory.write("/proc/sys/vm/dirty_expire_centisecs", "5").unwrap();
    let group = memory.group("writers", Limits { max: Some(IN_MEMORY), ..Limits::NONE }).unwrap();
    let files: Vec<File> =
        (0..FILES).map(|file| open(&memory, &group, &path_of(Path::new(&folder), file))).collect();
    let first = env("FIRST").unwrap().parse().unwrap();
    println!("\nready");
    std::thread::scope(|scope| {
        for (number, file) in (0..).zip(&files) {
            scope.spawn(move || write_file(number, file, first, env("BUG").is_some()));
        }
    });
}

#[test]
#[ignore = "it is the process that the others kill"]
fn child_store() {
    let Some(path) = env("STORE") else { return };
    key_value::write_until_killed(&memory(Backend::Any).unwrap(), Path::new(&path));
}

/// This program, as one of the above.
fn program(child: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

/// What was found after all kills.
#[derive(Default, Debug)]
struct Found {
    kills: u64,
    syncs: u64,
    slots: u64,
    /// Slots in which there was more than was synced.
    beyond: u64,
    /// Slots, not synced, in which there was a part of a write.
    torn: u64,
}

/// Writes from the beginning, and is killed so often, and goes on each time. An error says what is not as it was told.
fn kill(backend: Backend, seed: u64, kills: u64, has_bug: bool, found: &mut Found) -> Result<(), String> {
    let made = Made::new(&format!("{backend:?}-{seed}-{has_bug}"));
    let mut draw = Draw(seed);
    // The write that a slot has at least. Zero: none.
    let mut least = vec![vec![0; SLOTS as usize]; FILES as usize];
    let mut first = 1;
    for _ in 0..kills {
        let mut command = program("child");
        let backend = if backend == Backend::Uring { "uring" } else { "threads" };
        command.env("PAGEOUT_CRASH_FOLDER", &made.0).env("PAGEOUT_CRASH_BACKEND", backend);
        command.env("PAGEOUT_CRASH_FIRST", first.to_string());
        if has_bug {
            command.env("PAGEOUT_CRASH_BUG", "tells before it syncs");
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "ready"), "the process did not come up");
        std::thread::sleep(Duration::from_micros(draw.below(120_000)));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None, "it ended before it was killed");
        found.kills += 1;
        let mut synced = [first - 1; FILES as usize];
        for line in said {
            if let Some((file, write)) = line.strip_prefix("synced ").and_then(|told| told.split_once(' ')) {
                let synced = &mut synced[file.parse::<usize>().unwrap()];
                *synced = (*synced).max(write.parse().unwrap());
                found.syncs += 1;
            }
        }
        let mut last = first;
        for (file, least) in (0..).zip(&mut least) {
            for write in first..=synced[file as usize] {
                least[slot_of(file, write) as usize] = write;
            }
            last = last.max(check(&path_of(&made.0, file), file, least, found)?).max(synced[file as usize]);
        }
        first = last + 1;
    }
    Ok(())
}

/// Compares a file with what each slot has at least, which is what was found from then on. Returns the last write found.
fn check(path: &Path, file: u64, least: &mut [u64], found: &mut Found) -> Result<u64, String> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.resize(SLOTS as usize * SLOT, 0);
    let mut last = 0;
    for (slot, (bytes, least)) in (0..).zip(bytes.chunks(SLOT).zip(least)) {
        let writes = words(bytes).map(|word| if word == 0 { Some(0) } else { write_of(word, file, slot) });
        let (mut min, mut max) = (u64::MAX, 0);
        for write in writes {
            let write = write.ok_or_else(|| format!("slot {slot} of file {file} has another's bytes"))?;
            (min, max) = (min.min(write), max.max(write));
        }
        if min < *least {
            return Err(format!("slot {slot} of file {file}: write {min} is there, and {least} was synced"));
        }
        found.slots += u64::from(*least > 0);
        found.beyond += u64::from(max > *least);
        found.torn += u64::from(max > min);
        (*least, last) = (min, last.max(max));
    }
    Ok(last)
}

fn backends() -> Vec<Backend> {
    let mut backends = vec![Backend::Threads];
    match memory(Backend::Uring) {
        Ok(_) => backends.push(Backend::Uring),
        Err(error) => eprintln!("LEFT OUT: {error}"),
    }
    backends
}

#[test]
fn what_was_synced_is_there_after_a_kill_and_nothing_of_another_file() {
    for (seed, backend) in (1..).zip(backends()) {
        let mut found = Found::default();
        // On a busy machine four processes may all be killed before their first sync.
        for again in 0..25 {
            kill(backend, seed + 100 * again, 4, false, &mut found).unwrap();
            if found.syncs > 0 {
                break;
            }
        }
        assert!(found.syncs > 0, "{found:?}");
    }
}

#[test]
fn who_tells_before_it_syncs_is_noticed() {
    let mut found = Found::default();
    assert!((0..50).any(|seed| kill(Backend::Threads, seed, 4, true, &mut found).is_err()), "{found:?}");
}

#[test]
fn a_store_has_all_that_was_committed_after_a_kill() {
    let made = Made::new("store");
    let (path, memory) = (made.0.join("log"), memory(Backend::Any).unwrap());
    let mut draw = Draw(3);
    for _ in 0..4 {
        let mut child = program("child_store");
        child.env("PAGEOUT_CRASH_STORE", &path);
        key_value::kill_once(child, Duration::from_micros(draw.below(80_000)), &memory, &path);
    }
}

#[test]
#[ignore = "200 kills of each backend: ci/slow/crash.sh"]
fn killed_at_two_hundred_points() {
    for backend in backends() {
        let (mut found, began) = (Found::default(), Instant::now());
        for seed in 0..20 {
            kill(backend, seed, 10, false, &mut found).unwrap();
        }
        println!("{backend:?}: {found:?} in {} s", began.elapsed().as_secs());
    }
}
