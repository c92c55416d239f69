//! Writes a Zipf sequence as libCacheSim's oracleGeneral records to standard output, so that a peer can run the very
//! accesses that our benchmarks run: `zipf_oracle_general PAGES ACCESSES ALPHA SEED > zipf.oracleGeneral`.
#![allow(clippy::unwrap_used, reason = "an example ends where it can't go on")]

use std::io::{BufWriter, Write};

use pageout_workload::Pattern;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [pages, ops, alpha, seed] = &args[..] else {
        panic!("usage: zipf_oracle_general PAGES ACCESSES ALPHA SEED")
    };
    let pattern: Pattern =
        toml::from_str(&format!("pattern = \"zipf\"\npages = {pages}\nops = {ops}\nalpha = {alpha}\n"))
            .unwrap();
    let mut stream = pattern.stream(0, seed.parse().unwrap()).unwrap();
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut chunk = Vec::new();
    let mut time = 0u32;
    while stream.fill(&mut chunk, 1 << 16).unwrap() > 0 {
        for access in chunk.drain(..) {
            out.write_all(&time.to_le_bytes()).unwrap();
            out.write_all(&access.page().to_le_bytes()).unwrap();
            out.write_all(&4096u32.to_le_bytes()).unwrap();
            out.write_all(&(-1i64).to_le_bytes()).unwrap();
            time += 1;
        }
    }
    out.flush().unwrap();
}
