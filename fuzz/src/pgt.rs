//! `.pgt` files: unchanged, and with their checksums corrected after a mutation.
//!
//! Each part of a `.pgt` is under a checksum, so a fuzzer that changes bytes gets no further than the first of them. So the
//! bytes are read a second time as a description of a file, which is then written with right checksums:
//!
//! ```text
//!   page size  u8     2^(9 + n)
//!   block ...  u8 kind | u8 flags | u16 items | u16 length | payload     flags: 1 length not as the header says
//! ```
//! The file that results is opened through its path too, which reads its tables from the end.

use pageout_workload::{ReadOptions, fuzz_entry, trace};

const END: u8 = 4;

/// Reads bytes as a `.pgt`, and as the description of one.
pub(crate) fn run(bytes: &[u8]) {
    fuzz_entry::read_as(trace::Format::Pgt, bytes);
    let file = file(bytes);
    fuzz_entry::read_as(trace::Format::Pgt, &file);
    from_path(&file);
}

fn file(mut bytes: &[u8]) -> Vec<u8> {
    let mut take = || bytes.split_off_first().copied();
    let page_size = 1u32 << (9 + take().unwrap_or(3) % 22);
    let mut file = b"\x89PGT\r\n\x1a\n".to_vec();
    file.extend(1u16.to_le_bytes());
    file.extend(0u16.to_le_bytes());
    file.extend(page_size.to_le_bytes());
    file.resize(28, 0);
    file.extend(crc32fast::hash(&file).to_le_bytes());
    while let (Some(kind), Some(flags)) = (take(), take()) {
        let mut number = || u16::from_le_bytes([take().unwrap_or(0), take().unwrap_or(0)]);
        let (items, length) = (number(), number());
        let payload: Vec<u8> = std::iter::from_fn(&mut take).take(usize::from(length)).collect();
        append_block(kind % 6, flags, items.into(), &payload, &mut file);
    }
    file
}

fn append_block(kind: u8, flags: u8, items: u32, raw: &[u8], file: &mut Vec<u8>) {
    let stored = if kind == END { raw.to_vec() } else { zstd::bulk::compress(raw, 1).expect("it fits") };
    let mut header = Vec::new();
    for field in [kind.into(), items, raw.len() as u32 + u32::from(flags & 1), stored.len() as u32] {
        header.extend(u32::to_le_bytes(field));
    }
    header.extend(crc32fast::hash(&stored).to_le_bytes());
    header.extend(crc32fast::hash(&header).to_le_bytes());
    file.extend(header);
    file.extend(stored);
}

fn from_path(file: &[u8]) {
    let path = std::env::temp_dir().join(format!("pageout-fuzz-{}.pgt", std::process::id()));
    std::fs::write(&path, file).expect("the temporary directory can be written");
    let options = ReadOptions::default();
    let header = trace::header(&path, &options);
    let ids = trace::original_ids(&path, &options);
    if let (Ok(Some(header)), Ok(Some(ids))) = (header, ids) {
        assert!(ids.is_empty() || ids.len() == header.objects.len(), "ids of {} objects", ids.len());
    }
    let info = trace::info(&path, &options, &mut |_| ());
    if let Ok(info) = info {
        let _ = format!("{info:?}");
    }
    std::fs::remove_file(&path).expect("it was just written");
}
