//! Promises of the textbook policies and their curves.

mod choices; // policies as text
mod curves; // curves beside single runs
mod field; // naive models of the policies that the field compares with
mod models; // each policy beside a naive model of it
mod recorded; // misses that are known of the recorded sequences

use pageout_policy::check::Random;

/// The pages of a recorded sequence, by dense numbers.
#[allow(clippy::disallowed_methods)] // recorded sequences are files
fn recorded(name: &str) -> Vec<u32> {
    let path = format!("{}/../../ground-truth/sequences/{name}.u32.zst", env!("CARGO_MANIFEST_DIR"));
    let packed = std::fs::read(&path).expect("the sequence is shipped");
    let bytes = zstd::decode_all(&packed[..]).expect("it is whole");
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    // Bit 31 says that it is a write, bits 30 to 28 which object it is.
    dense(words.map(|word| word & 0x7fff_ffff))
}

/// Numbers by first appearance.
fn dense(pages: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers = std::collections::BTreeMap::new();
    let number = |page| {
        let next = numbers.len() as u32;
        *numbers.entry(page).or_insert(next)
    };
    pages.map(number).collect()
}

/// Random accesses to so many pages, some much more often than others, whose favourites change once, with a scan and a loop between.
fn random(seed: u64, pages: u32, len: usize) -> Vec<u32> {
    let mut draws = Random::new(seed);
    let mut accesses = Vec::with_capacity(len);
    while accesses.len() < len {
        let from = draws.below(pages.into()) as u32;
        let turns = if accesses.len() < len / 2 { 0 } else { pages / 2 };
        match draws.below(40) {
            0 => accesses.extend((0..pages / 3).map(|at| (from + at) % pages)),
            1 => accesses.extend((0..pages).map(|at| (from + at % (pages / 4 + 1)) % pages)),
            _ => {
                let below = 1 + draws.below(pages.into());
                accesses.push((draws.below(below) as u32 + turns) % pages);
            }
        }
    }
    accesses.truncate(len);
    accesses
}
