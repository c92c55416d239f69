//! `.pgt`: what is written is read, and no damage goes unnoticed.
#![allow(clippy::unwrap_used)] // a helper of a test fails as a test does

use std::collections::BTreeSet;
use std::io::Cursor;

use pageout_workload::trace::{self, Format};
use pageout_workload::{Access, AccessStream, Pattern, ReadOptions, TraceError};
use proptest::prelude::*;

use crate::readers::Scratch;

fn options() -> ReadOptions {
    ReadOptions { format: Some(Format::Pgt), ..ReadOptions::default() }
}

fn read(bytes: &[u8]) -> Result<Vec<Access>, TraceError> {
    let mut stream = trace::from_reader("t.pgt", Box::new(Cursor::new(bytes.to_vec())), &options())?;
    let mut out = Vec::new();
    while stream.fill(&mut out, 1000)? > 0 {}
    Ok(out)
}

/// A stream of given accesses.
struct Given(Vec<Access>, usize);

impl AccessStream for Given {
    fn fill(&mut self, out: &mut Vec<Access>, max: usize) -> Result<usize, TraceError> {
        let rest = &self.0[self.1..];
        let now = &rest[..rest.len().min(max)];
        out.extend_from_slice(now);
        self.1 += now.len();
        Ok(now.len())
    }

    fn len_hint(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

fn written(accesses: &[Access]) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace::record(&mut Given(accesses.to_vec(), 0), &["a file".to_string()], 4096, &mut bytes).unwrap();
    bytes
}

fn small() -> Vec<Access> {
    (0..40u64).map(|i| Access::new((i % 3) as u32, i * i * 977 % 5000, i % 5 == 0)).collect()
}

#[test]
fn a_generated_stream_comes_back_over_many_blocks() {
    let pattern = "pattern = 'zipf'\npages = 100000\nops = 300000\nwrite_ratio = 0.2";
    let pattern: Pattern = toml::from_str(pattern).unwrap();
    let mut direct = Vec::new();
    pattern.stream(2, 5).unwrap().fill(&mut direct, usize::MAX).unwrap();
    let mut bytes = Vec::new();
    let header = trace::record(&mut *pattern.stream(2, 5).unwrap(), &[], 4096, &mut bytes).unwrap();
    assert!(read(&bytes).unwrap() == direct);
    assert_eq!(header.accesses, 300_000);
    assert_eq!(header.objects.len(), 3);
    assert_eq!(header.objects[2].name, "object-2");
    assert_eq!((header.objects[0].pages, header.objects[1].pages), (0, 0));
    assert!(bytes.len() < 3 * 300_000, "{} bytes", bytes.len());
}

#[test]
fn an_empty_trace_is_whole() {
    assert!(read(&written(&[])).unwrap().is_empty());
}

#[test]
fn every_cut_is_noticed() {
    let bytes = written(&small());
    assert_eq!(read(&bytes).unwrap(), small());
    for cut in 0..bytes.len() {
        assert!(read(&bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(read(&longer).unwrap_err().reason().contains("after the end block"));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = written(&small());
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert!(read(&flipped).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn corruption_is_located_to_its_block() {
    let accesses: Vec<Access> = (0..200_000).map(|i| Access::new(0, i * 7919 % 65_537, false)).collect();
    let mut bytes = written(&accesses);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let error = read(&bytes).unwrap_err();
    assert!(error.reason().contains("checksum"), "{error}");
    assert!(error.records_read() > 0 && error.records_read().is_multiple_of(65_536), "{error}");
    let distance = middle as u64 - error.byte_offset();
    assert!(distance < 300_000, "{error}");
}

#[test]
fn a_newer_version_is_refused_as_such() {
    for version in [0, 4, u16::MAX] {
        let mut bytes = written(&small());
        bytes[8..10].copy_from_slice(&version.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
        let reason = read(&bytes).unwrap_err().reason().to_string();
        let told = format!("unsupported format version: found {version}, expected 1 to 3");
        assert!(reason.starts_with(&told), "{reason}");
    }
    // A flag that nobody knows may mean anything.
    let mut bytes = written(&small());
    bytes[10] = 4;
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    assert!(read(&bytes).unwrap_err().reason().contains("does not know"));
}

/// A file of version 1, which did not say how many distinct pages there are: 40 accesses to one object.
#[rustfmt::skip]
const VERSION_1: [u8; 266] = [
    0x89, 0x50, 0x47, 0x54, 0x0D, 0x0A, 0x1A, 0x0A, 0x01, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x7F, 0x58, 0x0B, 0xA7, 0x01, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00, 0x5D, 0x00, 0x00, 0x00, 0x66, 0x00, 0x00, 0x00,
    0x64, 0x5C, 0x7A, 0xF2, 0xEB, 0x03, 0x4F, 0xED, 0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x5D, 0xE9, 0x02, 0x00, 0x01, 0x88, 0x3D, 0x98, 0xB7, 0x01, 0x94,
    0x07, 0xC4, 0xC5, 0x01, 0x89, 0xED, 0x01, 0xE4, 0x89, 0x02, 0xE8, 0xA8, 0x01, 0xC4, 0x15, 0xC8, 0x64, 0xE5, 0x59, 0xA8, 0x20, 0x84, 0x9E, 0x01,
    0xF4, 0x23, 0x98, 0x56, 0xA9, 0xD0, 0x01, 0xC4, 0xA6, 0x02, 0x88, 0x8C, 0x01, 0xA4, 0x32, 0xE8, 0x47, 0xC5, 0x76, 0xC8, 0x03, 0xD8, 0x7D, 0xD4,
    0x40, 0xB8, 0x39, 0xF5, 0x84, 0x01, 0xE4, 0x0A, 0xA8, 0x6F, 0x84, 0x4F, 0x88, 0x2B, 0x99, 0xA5, 0x01, 0x94, 0x19, 0xC4, 0xD7, 0x01, 0x88, 0xDB,
    0x01, 0xD8, 0x1C, 0xD5, 0xA1, 0x01, 0xC4, 0x27, 0xC8, 0x52, 0xE4, 0x6B, 0xA8, 0x0E, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x0B, 0x00,
    0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0xBE, 0xCE, 0x4B, 0x8A, 0x5C, 0x99, 0x6C, 0x9A, 0x28, 0xB5, 0x2F, 0xFD, 0x20, 0x0B, 0x59, 0x00, 0x00, 0x08,
    0x6F, 0x62, 0x6A, 0x65, 0x63, 0x74, 0x2D, 0x30, 0xDA, 0x25, 0x04, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00, 0x28, 0x00,
    0x00, 0x00, 0x91, 0x97, 0xA9, 0xC3, 0xBE, 0x89, 0xF6, 0x5B, 0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9E, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00,
];

#[test]
fn a_file_of_the_first_version_is_read_as_ever() {
    let accesses: Vec<Access> = (0..40).map(|i| Access::new(0, i * i * 977 % 5000, i % 5 == 0)).collect();
    assert_eq!(read(&VERSION_1).unwrap(), accesses);
    let file = Scratch::new("version-1.pgt", &VERSION_1);
    let header = trace::header(&file.0, &ReadOptions::default()).unwrap().unwrap();
    assert_eq!((header.accesses, header.objects[0].pages, header.footprint), (40, 4826, None));
    let loaded = trace::load(&file.0, &ReadOptions::default(), u64::MAX, &mut |_| {}).unwrap();
    assert_eq!(loaded.footprint.distinct_pages(), distinct(&accesses));
}

#[test]
fn the_end_says_what_the_accesses_touch() {
    let file = Scratch::new("touched.pgt", &written(&small()));
    let header = trace::header(&file.0, &ReadOptions::default()).unwrap().unwrap();
    let footprint = header.footprint.unwrap();
    assert_eq!(footprint.distinct_pages(), distinct(&small()));
    assert_eq!((footprint.accesses, footprint.writes(), footprint.objects.len()), (40, 8, 3));
    let loaded = trace::load(&file.0, &ReadOptions::default(), u64::MAX, &mut |_| {}).unwrap();
    assert_eq!(loaded.footprint, footprint);
}

fn distinct(accesses: &[Access]) -> u64 {
    accesses.iter().map(|access| (access.object(), access.page())).collect::<BTreeSet<_>>().len() as u64
}

#[test]
fn two_traces_joined_are_refused() {
    let twice = [written(&small()), written(&small())].concat();
    assert!(read(&twice).is_err());
}

fn any_access() -> impl Strategy<Value = Access> {
    let page = prop_oneof![0..100u64, 0..Access::PAGES_MAX];
    (0..2000u32, page, any::<bool>()).prop_map(|(object, page, write)| Access::new(object, page, write))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_accesses_come_back(accesses in proptest::collection::vec(any_access(), 0..2000)) {
        prop_assert_eq!(read(&written(&accesses)).unwrap(), accesses);
    }

    #[test]
    fn damage_anywhere_is_noticed(at: prop::sample::Index, byte in 1..=255u8) {
        let mut bytes = written(&small());
        let at = at.index(bytes.len());
        bytes[at] ^= byte;
        prop_assert!(read(&bytes).is_err());
    }
}
