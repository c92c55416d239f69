//! Arbitrary bytes never make a reader panic, run away or allocate on a file's word.

use pageout_workload::fuzz_entry;
use proptest::prelude::*;

const READERS: [fn(&[u8]); 11] = [
    fuzz_entry::pgt,
    fuzz_entry::oracle_general,
    fuzz_entry::lcs,
    fuzz_entry::vscsi,
    fuzz_entry::csv,
    fuzz_entry::fio_iolog,
    fuzz_entry::words,
    fuzz_entry::pages_text,
    fuzz_entry::pages_u32,
    fuzz_entry::pages_u64,
    fuzz_entry::detected,
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_bytes_are_drained(bytes in proptest::collection::vec(any::<u8>(), 0..23)) {
        READERS.iter().for_each(|reader| reader(&bytes));
    }

    #[test]
    fn any_text_is_drained(text in "(page|offset|id|op|size|lba|time|0x|#|[0-9]{1,20}|[,;|\"\t\n\r ]|r|w|2a){0,40}") {
        fuzz_entry::csv(text.as_bytes());
        fuzz_entry::pages_text(text.as_bytes());
        fuzz_entry::detected(text.as_bytes());
        fuzz_entry::csv(format!("op,page,size\n{text}").as_bytes());
        fuzz_entry::fio_iolog(format!("fio version 2 iolog\n{text}").as_bytes());
    }

    #[test]
    fn any_fio_lines_are_drained(
        lines in proptest::collection::vec("[0-9]{0,20} ?/[ab] (read|write|add|wait) [0-9]{1,20} [0-9]{1,7}", 0..9),
    ) {
        for version in [2, 3] {
            fuzz_entry::fio_iolog(format!("fio version {version} iolog\n{}\n", lines.join("\n")).as_bytes());
        }
    }
}

#[test]
fn compressed_rubbish_is_drained() {
    for rubbish in [&b""[..], b"\x28\xB5\x2F\xFD", b"\x28\xB5\x2F\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"] {
        READERS.iter().for_each(|reader| reader(rubbish));
    }
}

#[test]
fn a_pgt_that_claims_too_much_is_refused_before_it_is_believed() {
    // A well-checksummed header, then a block that says 4 GiB.
    let mut bytes = b"\x89PGT\r\n\x1a\n".to_vec();
    bytes.extend([1, 0, 0, 0, 0, 16, 0, 0]);
    bytes.extend([0; 12]);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    let mut block = Vec::new();
    for field in [1u32, u32::MAX, u32::MAX, u32::MAX, 0] {
        block.extend(field.to_le_bytes());
    }
    block.extend(crc32fast::hash(&block).to_le_bytes());
    bytes.extend(block);
    fuzz_entry::pgt(&bytes);
}
