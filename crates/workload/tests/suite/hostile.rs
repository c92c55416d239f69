//! Arbitrary bytes never make a reader panic, run away or allocate on a file's word.

use pageout_workload::fuzz_entry;
use pageout_workload::trace::Format;
use proptest::prelude::*;

/// Reads bytes as each format, and as what they announce.
fn read_all(bytes: &[u8]) {
    Format::ALL.iter().for_each(|&format| fuzz_entry::read_as(format, bytes));
    fuzz_entry::detected(bytes);
}

fn read_text_as(format: Format, text: &str) {
    fuzz_entry::read_as(format, text.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_bytes_are_drained(bytes in proptest::collection::vec(any::<u8>(), 0..23)) {
        read_all(&bytes);
    }

    #[test]
    fn any_text_is_drained(text in "(page|offset|id|op|size|lba|time|0x|#|[0-9]{1,20}|[,;|\"\t\n\r ]|r|w|2a){0,40}") {
        read_all(text.as_bytes());
        read_text_as(Format::Csv, &format!("op,page,size\n{text}"));
        read_text_as(Format::FioIolog, &format!("fio version 2 iolog\n{text}"));
    }

    #[test]
    fn any_fio_lines_are_drained(
        lines in proptest::collection::vec("[0-9]{0,20} ?/[ab] (read|write|add|wait) [0-9]{1,20} [0-9]{1,7}", 0..9),
    ) {
        for version in [2, 3] {
            read_text_as(Format::FioIolog, &format!("fio version {version} iolog\n{}\n", lines.join("\n")));
        }
    }
}

#[test]
fn compressed_rubbish_is_drained() {
    for rubbish in [&b""[..], b"\x28\xB5\x2F\xFD", b"\x28\xB5\x2F\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"] {
        read_all(rubbish);
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
    fuzz_entry::read_as(Format::Pgt, &bytes);
}
