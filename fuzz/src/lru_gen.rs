//! Dumps of `lru_gen`: a dump is printed and read again, and an error has its place in the text.

use pageout_kerneltext::lru_gen::{Dump, GENERATIONS_MAX, PAGES_MAX, parse};

/// Reads bytes as a dump.
pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text, GENERATIONS_MAX) {
        Ok(dump) => {
            let pages = dump.memcgs.iter().flat_map(|memcg| &memcg.nodes).flat_map(|node| &node.generations);
            assert!(pages.flat_map(|generation| generation.pages).sum::<u64>() <= PAGES_MAX);
            let read = parse(&dump.to_string(), GENERATIONS_MAX).expect("what is printed is a dump");
            assert_eq!(read, Dump { is_full: false, ..dump });
        }
        Err(fault) => assert!(text.get(fault.span).is_some() && !fault.help.is_empty()),
    }
}
