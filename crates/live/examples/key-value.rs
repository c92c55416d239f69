//! A toy key-value store in a file that is written through the cache, and a crash test of it: the store's process is killed, again and again.
//! `cargo run --release -p pageout --example key-value [FOLDER] [KILLS]`.
//!
//! ```text
//!   put       a record behind the others ─▶ dirty pages          it may be lost
//!   commit    sync_data                  ─▶ the device           it is there from now on
//!   recover   records from the front, up to the first that is not whole: the store is what they say, and the file ends there
//!
//!   a record: checksum of the rest │ its number │ length of the key │ length of the value │ key │ value
//! ```
//! Pages go to the device in any order, so after a record that was lost there may be one that was not. It is cut off, or it would come back when the
//! file has grown up to it again. A record contains its number, so a record of an earlier life is not mistaken for one of this life. The log is never
//! compacted: that is what makes it a toy.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use pageout::{Error, File, Memory, Open};

const HEADER: usize = 24;

/// A log, and where in it the last value of each key is.
pub struct Store {
    file: File,
    values: BTreeMap<Vec<u8>, (u64, usize)>,
    end: u64,
    /// Records there are: the number of the next one.
    pub puts: u64,
}

impl Store {
    /// Opens a store, or makes an empty one. Committed records are present.
    pub fn recover(memory: &Memory, path: &Path) -> Result<Store, Error> {
        let file = match memory.open(path, Open::read_write().create(true)) {
            Err(Error::DirectRefused { .. }) => {
                memory.open(path, Open::read_write().create(true).buffered(true))?
            }
            opened => opened?,
        };
        let mut store = Store { file, values: BTreeMap::new(), end: 0, puts: 0 };
        while let Some(record) = store.record_at_end()? {
            store.has(&record);
        }
        store.file.set_len(store.end)?;
        Ok(store)
    }

    /// The value of a key is this one from now on, and after a crash if [`Store::commit`] came before.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut record = vec![0; 8];
        record.extend(self.puts.to_le_bytes());
        record.extend([key.len(), value.len()].map(|bytes| bytes as u32).map(u32::to_le_bytes).concat());
        record.extend([key, value].concat());
        let sum = checksum(&record[8..]).to_le_bytes();
        record[..8].copy_from_slice(&sum);
        self.file.write_at(&record, self.end)?;
        self.has(&record);
        Ok(())
    }

    /// What was put last of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some(&(at, bytes)) = self.values.get(key) else { return Ok(None) };
        let mut value = vec![0; bytes];
        self.file.read_at(&mut value, at)?;
        Ok(Some(value))
    }

    /// After Ok, all that was put before survives.
    pub fn commit(&self) -> Result<(), Error> {
        self.file.sync_data()
    }

    /// The next record, if there is a whole one.
    fn record_at_end(&self) -> Result<Option<Vec<u8>>, Error> {
        let left = self.file.len() - self.end;
        let mut header = [0; HEADER];
        if left < HEADER as u64 {
            return Ok(None);
        }
        self.file.read_at(&mut header, self.end)?;
        let (key, value) = lengths(&header);
        if left < (HEADER + key + value) as u64 {
            return Ok(None);
        }
        let mut record = vec![0; HEADER + key + value];
        self.file.read_at(&mut record, self.end)?;
        let is_whole = number(&record) == checksum(&record[8..]) && number(&record[8..]) == self.puts;
        Ok(is_whole.then_some(record))
    }

    /// A record is the last one of the log.
    fn has(&mut self, record: &[u8]) {
        let (key, value) = lengths(record);
        let start = HEADER + key;
        self.values.insert(record[HEADER..start].to_vec(), (self.end + start as u64, value));
        self.end += record.len() as u64;
        self.puts += 1;
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

fn lengths(header: &[u8]) -> (usize, usize) {
    let lengths = number(&header[16..]);
    (lengths as u32 as usize, (lengths >> 32) as usize)
}

/// No bytes have the sum of zeroes, which is what a record that was lost is.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(1 + bytes.len() as u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (sum.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517c_c1b7_2722_0a95)
    })
}

/// Numbers that look drawn.
pub struct Draw(pub u64);

impl Draw {
    /// One of so many.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

const KEYS: u64 = 500;
/// Bytes of a log after which another one is begun.
const LOG_MAX: u64 = 32 << 20;

/// The key and the value of a put.
fn pair(put: u64) -> (Vec<u8>, Vec<u8>) {
    let bytes = 10 + Draw(put).below(3000) as usize;
    (format!("key {}", put % KEYS).into_bytes(), put.to_le_bytes().repeat(bytes / 8 + 1)[..bytes].to_vec())
}

/// Puts, gets and commits until it is killed; says how many puts are committed, each time after they are.
pub fn write_until_killed(memory: &Memory, path: &Path) {
    let mut store = Store::recover(memory, path).unwrap();
    let mut draw = Draw(store.puts);
    store.commit().unwrap();
    println!("\nready\ncommitted {}", store.puts);
    loop {
        let (key, value) = pair(store.puts);
        store.put(&key, &value).unwrap();
        let (key, value) = pair(store.puts - 1 - draw.below(KEYS.min(store.puts)));
        assert!(store.get(&key).unwrap() == Some(value));
        if draw.below(8) == 0 {
            store.commit().unwrap();
            println!("committed {}", store.puts);
        }
    }
}

/// Makes a process write a store, kills it (SIGKILL), and compares: how many puts it had reported as committed, and how many are in the store.
pub fn kill_once(mut child: Command, after: Duration, memory: &Memory, path: &Path) -> (u64, u64) {
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "ready"), "the store's process did not come up");
    std::thread::sleep(after);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended before it was killed");
    let committed = said.filter_map(|line| line.strip_prefix("committed ")?.parse().ok()).max().unwrap();
    let store = Store::recover(memory, path).unwrap();
    assert!(store.puts >= committed, "{} puts of {committed} that were committed", store.puts);
    for put in store.puts.saturating_sub(KEYS)..store.puts {
        let (key, value) = pair(put);
        assert!(store.get(&key).unwrap() == Some(value), "put {put} of {}", store.puts);
    }
    store.file.forget().unwrap();
    (committed, store.puts)
}

#[allow(dead_code, reason = "the test has a main of its own")]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let memory = Memory::builder().budget(8 << 20).build().unwrap();
    if args.get(2).is_some_and(|mode| mode == "write") {
        return write_until_killed(&memory, Path::new(&args[1]));
    }
    let folder = args.get(1).map_or_else(std::env::temp_dir, Into::into);
    let kills = args.get(2).map_or(20, |kills| kills.parse().expect("KILLS is a number"));
    let path = folder.join(format!("pageout-key-value-{}", std::process::id()));
    let (mut draw, mut puts, mut before, mut beyond) = (Draw(1), 0, 0, 0);
    for _ in 0..kills {
        // A log is never made shorter, and files may have 16 budgets.
        if std::fs::metadata(&path).is_ok_and(|log| log.len() > LOG_MAX) {
            std::fs::remove_file(&path).unwrap();
            before += std::mem::take(&mut puts);
        }
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.arg(&path).arg("write");
        let committed;
        (committed, puts) = kill_once(child, Duration::from_micros(draw.below(150_000)), &memory, &path);
        beyond += puts - committed;
    }
    println!("{kills} kills: {} puts are present, all that were committed and {beyond} more", before + puts);
    std::fs::remove_file(&path).unwrap();
}
