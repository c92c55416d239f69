//! How fast streams are made and replayed: `cargo bench -p pageout-workload`. Medians of five, each of one stream.

use std::hint::black_box;
use std::io::Cursor;
use std::time::Instant;

use pageout_workload::{Access, AccessStream, Pattern, ReadOptions, trace};

#[allow(clippy::disallowed_methods)] // measuring time is what a benchmark is for
fn now() -> Instant {
    Instant::now()
}

/// Millions of accesses a second, setting the stream up not counted.
fn rate(make: &dyn Fn() -> Box<dyn AccessStream>) -> f64 {
    let mut rates = [0.0; 5];
    for rate in &mut rates {
        let mut stream = make();
        let mut chunk: Vec<Access> = Vec::with_capacity(4096);
        let start = now();
        let mut total = 0;
        while stream.fill(&mut chunk, 4096).expect("the benchmark's streams are well-formed") > 0 {
            total += black_box(&chunk).len();
            chunk.clear();
        }
        *rate = total as f64 / start.elapsed().as_secs_f64() / 1e6;
    }
    rates.sort_by(f64::total_cmp);
    rates[2]
}

fn main() {
    let patterns = [
        "pattern = 'sequential'\npages = 20000000",
        "pattern = 'uniform'\npages = 1000000\nops = 20000000",
        "pattern = 'zipf'\npages = 16384\nops = 20000000",
        "pattern = 'zipf'\npages = 1000000\nops = 20000000",
        "pattern = 'zipf'\npages = 1000000\nops = 20000000\nwrite_ratio = 0.3",
        "pattern = 'zipf'\npages = 16777216\nops = 20000000",
        "pattern = 'zipf'\npages = 33554432\nops = 2000000",
        "pattern = 'hot_set'\npages = 1000000\nops = 20000000",
        "pattern = 'mix'\nparts = [{ of = { pattern = 'uniform', pages = 1000, ops = 9000000 } },
                                   { of = { pattern = 'uniform', pages = 1000, ops = 9000000 } }]",
    ];
    for text in patterns {
        let pattern: Pattern = toml::from_str(text).expect("the benchmark's patterns are well-formed");
        let start = now();
        drop(pattern.stream(0, 1).expect("the benchmark's patterns are well-formed"));
        let setup_ms = start.elapsed().as_secs_f64() * 1e3;
        let rate = rate(&|| pattern.stream(0, 1).expect("the benchmark's patterns are well-formed"));
        println!(
            "{rate:8.1} M/s, set up in {setup_ms:6.1} ms   {}",
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }

    let zipf: Pattern =
        toml::from_str("pattern = 'zipf'\npages = 1000000\nops = 10000000\nwrite_ratio = 0.3")
            .expect("well-formed");
    let mut stream = zipf.stream(0, 1).expect("well-formed");
    let mut pgt = Vec::new();
    let start = now();
    trace::record(&mut *stream, &[], 4096, &mut pgt).expect("writing to memory does not fail");
    let write_rate = 10.0 / start.elapsed().as_secs_f64();
    println!("{write_rate:8.1} M/s  write .pgt, {:.2} bytes an access", pgt.len() as f64 / 1e7);
    let replay = |name: &'static str, bytes: &[u8]| {
        let input = || Box::new(Cursor::new(bytes.to_vec()));
        let options = ReadOptions::default();
        let rate = rate(&|| trace::from_reader(name, input(), &options).expect("well-formed"));
        println!("{rate:8.1} M/s  replay {name}");
    };
    replay("zipf.pgt", &pgt);

    let mut words = Vec::new();
    let mut oracle = Vec::new();
    let mut csv = b"time,page,op\n".to_vec();
    let mut accesses = Vec::new();
    zipf.stream(0, 1).expect("well-formed").fill(&mut accesses, 5_000_000).expect("generators don't fail");
    for access in &accesses {
        words.extend((access.page() as u32).to_le_bytes());
        oracle.extend([0; 4]);
        oracle.extend(access.page().to_le_bytes());
        oracle.extend([0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        csv.extend(format!("1,{},r\n", access.page()).bytes());
    }
    replay("zipf.u32", &words);
    replay("zipf.oracleGeneral", &oracle);
    replay("zipf.csv", &csv);
}
