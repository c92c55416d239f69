//! A hash table that is larger than memory: `cargo run --release -p pageout --example region [FOLDER]` counts keys in a table of 32 MiB. The table's group
//! has 16 MiB of memory, and a second group reads a file. The rest of the table is in a swap file without a name in the folder. The default folder is the
//! system's for temporary files. The example prints the memory and swap of each group, and checks each count.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "an example that ends on an error")]

use std::path::PathBuf;

use pageout::bytemuck::{Pod, Zeroable};
use pageout::{Error, Group, Limits, Memory, Open, RegionOptions, Typed};

const BUDGET: u64 = 64 << 20;
const TABLE_BYTES: u64 = 32 << 20;
const LIMIT: u64 = 16 << 20;
const FILE_BYTES: u64 = 16 << 20;
const KEYS: u64 = 1 << 16;
/// Keys that are counted often.
const HOT_KEYS: u64 = 1000;
const COUNTED: u64 = 400_000;

/// A place of the table: a key and its count. Memory that was never written is zeroes, so a place with a count of 0 is free.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Bucket {
    key: u64,
    count: u64,
}

/// A table with open addressing.
struct Table(Typed<Bucket>);

impl Table {
    /// The place of a key, or the first free place after its hash.
    fn place(&self, key: u64) -> Result<u64, Error> {
        let places = self.0.len();
        let mut place = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) % places;
        loop {
            // A guard: the page stays in memory during the comparison, and nothing is copied.
            let bucket = self.0.get(place)?;
            if bucket.count == 0 || bucket.key == key {
                return Ok(place);
            }
            place = (place + 1) % places;
        }
    }

    fn count(&self, key: u64) -> Result<(), Error> {
        let mut bucket = self.0.get_mut(self.place(key)?)?;
        (bucket.key, bucket.count) = (key, bucket.count + 1);
        Ok(())
    }

    /// All keys and counts, in the order of the table.
    fn counts(&self) -> impl Iterator<Item = Result<Bucket, Error>> {
        let places = (0..self.0.len()).map(|place| self.0.get(place).map(|bucket| *bucket));
        places.filter(|bucket| !matches!(bucket, Ok(Bucket { count: 0, .. })))
    }
}

/// The key of a step: some keys are frequent, most are rare.
fn key(at: u64) -> u64 {
    let word =
        at.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(23).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20;
    if at.is_multiple_of(8) { word % KEYS } else { word % HOT_KEYS }
}

fn main() -> Result<(), Error> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let build = |is_buffered: bool| {
        let builder = Memory::builder().budget(BUDGET).files(TABLE_BYTES + FILE_BYTES);
        builder.swap_file(&folder, TABLE_BYTES).swap_buffered(is_buffered).build()
    };
    let memory = match build(false) {
        Err(Error::DirectRefused { .. }) => build(true)?,
        built => built?,
    };
    let limits = Limits { max: Some(LIMIT), ..Limits::NONE };
    let (counter, reader) = (memory.group("counter", limits)?, memory.group("reader", Limits::NONE)?);

    let region = memory.region(TABLE_BYTES, RegionOptions::new().group(&counter).name("table"))?;
    let table = Table(region.typed()?);
    let path = folder.join(format!("pageout-region-{}", std::process::id()));
    std::fs::write(&path, vec![7; FILE_BYTES as usize]).unwrap();
    let file = memory.open(&path, Open::read().buffered(true).group(&reader));
    std::fs::remove_file(&path).unwrap();
    let file = file?;

    let mut expected = vec![0; KEYS as usize];
    let mut buf = vec![0; 1 << 16];
    let last = FILE_BYTES - buf.len() as u64;
    for at in 0..COUNTED {
        table.count(key(at))?;
        expected[key(at) as usize] += 1;
        if at % 1000 == 0 {
            file.read_at(&mut buf, at * 4096 % last)?;
        }
    }
    let number = |group: &Group, name: &str| -> Result<u64, Error> {
        Ok(group.read(name)?.trim().parse::<u64>().unwrap() >> 20)
    };
    for (name, group) in [("counter", &counter), ("reader", &reader)] {
        let (current, swapped) = (number(group, "memory.current")?, number(group, "memory.swap.current")?);
        println!("{name:8} {current:3} MiB in memory, {swapped:3} MiB in swap");
    }
    for bucket in table.counts() {
        let Bucket { key, count } = bucket?;
        assert_eq!(std::mem::take(&mut expected[key as usize]), count, "times that {key} was counted");
    }
    assert!(expected.iter().all(|&count| count == 0), "keys are missing");
    println!("{COUNTED} keys counted in a table of {} MiB, and each count is right", TABLE_BYTES >> 20);
    drop((table, region));
    println!("{} MiB in swap after the table was dropped", number(&counter, "memory.swap.current")?);
    Ok(())
}
