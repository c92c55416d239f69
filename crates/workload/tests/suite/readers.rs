//! Every reader: what goes in comes out, and what is damaged is refused with its place.
#![allow(clippy::unwrap_used)] // a helper of a test fails as a test does

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use pageout_workload::trace::{self, CsvOptions, Format, PageIds, TraceHeader};
use pageout_workload::{Access, AccessStream, ReadOptions, TraceError};

/// (object, page, is_write) of each access.
type Plain = (u32, u64, bool);

fn drain(mut stream: Box<dyn AccessStream>) -> Result<Vec<Plain>, TraceError> {
    let mut out = Vec::new();
    while stream.fill(&mut out, 3)? > 0 {}
    Ok(out.iter().map(|access: &Access| (access.object(), access.page(), access.is_write())).collect())
}

fn read(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Vec<Plain>, TraceError> {
    drain(trace::from_reader(name, Box::new(Cursor::new(bytes.to_vec())), options)?)
}

fn as_format(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), ..ReadOptions::default() }
}

#[track_caller]
fn check(name: &str, bytes: &[u8], options: &ReadOptions, expected: &[Plain]) {
    assert_eq!(read(name, bytes, options).unwrap(), expected);
    let compressed = zstd::encode_all(bytes, 3).unwrap();
    assert_eq!(read(&format!("{name}.zst"), &compressed, options).unwrap(), expected, "compressed");
}

#[track_caller]
fn check_error(name: &str, bytes: &[u8], options: &ReadOptions, expected: &[&str]) -> TraceError {
    let error = read(name, bytes, options).unwrap_err();
    let shown = error.to_string();
    for part in expected {
        assert!(shown.contains(part), "{shown:?} lacks {part:?}");
    }
    error
}

/// Any cut is an error, except where `is_clean` says that the rest reads as whole; then it is a start of the whole.
#[track_caller]
fn check_cuts(name: &str, bytes: &[u8], options: &ReadOptions, is_clean: impl Fn(usize) -> bool) {
    let whole = read(name, bytes, options).unwrap();
    for cut in 0..bytes.len() {
        match read(name, &bytes[..cut], options) {
            Ok(start) => {
                assert!(is_clean(cut), "cut at {cut} of {} is not noticed", bytes.len());
                assert!(whole.starts_with(&start));
            }
            Err(error) => assert!(!is_clean(cut), "cut at {cut}: {error}"),
        }
    }
    let compressed = zstd::encode_all(bytes, 3).unwrap();
    for cut in 1..compressed.len() {
        assert!(read(name, &compressed[..cut], options).is_err(), "compressed, cut at {cut}");
    }
}

fn oracle_record(time: u32, id: u64, size: u32) -> Vec<u8> {
    let mut record = time.to_le_bytes().to_vec();
    record.extend(id.to_le_bytes());
    record.extend(size.to_le_bytes());
    record.extend((-1i64).to_le_bytes());
    record
}

/// Accesses to 100 ids and, every seventh, to one that never comes again, some larger than others. Times are from `start`
/// on, next accesses counted from `from`.
fn oracle_trace(start: u32, from: i64) -> Vec<u8> {
    let id = |record: u64| {
        if record.is_multiple_of(7) { 1000 + record } else { (record * record + record / 7) % 100 }
    };
    let mut bytes = Vec::new();
    for record in 0..1000 {
        let next = (record + 1..1000).find(|&later| id(later) == id(record));
        bytes.extend((start + record as u32 / 3).to_le_bytes());
        bytes.extend((id(record) * 8191).to_le_bytes());
        bytes.extend((512 + 4096 * (id(record) as u32 % 5)).to_le_bytes());
        bytes.extend(next.map_or(-1, |next| next as i64 + from).to_le_bytes());
    }
    bytes
}

#[test]
fn an_oracle_general_out_of_step_is_refused() {
    let default = ReadOptions { ignore_size: true, ..ReadOptions::default() };
    let as_it_is = ReadOptions { implausible_ok: true, ..default.clone() };
    for (start, from) in [(0, 0), (100, 1), (5_633_898, 0), (1_577_808_144, 1)] {
        let whole = oracle_trace(start, from);
        let accesses = read("t.oracleGeneral", &whole, &default).unwrap();
        assert_eq!(accesses.len(), 1000);
        assert_eq!(read("t.oracleGeneral", &whole, &as_it_is).unwrap(), accesses);
        for lost in 1..24 {
            let shifted = &whole[lost..whole.len() - (24 - lost)];
            let error = check_error("t.oracleGeneral", shifted, &default, &["`implausible_ok`"]);
            assert!(error.records_read() < 100, "{lost} bytes lost at {start}: {error}");
            // In the middle of the file as well.
            let torn = [&whole[..24 * 400], &whole[24 * 400 + lost..whole.len() - (24 - lost)]].concat();
            let error = check_error("t.oracleGeneral", &torn, &default, &["`implausible_ok`"]);
            assert!((399..500).contains(&error.records_read()), "{lost} bytes torn out at {start}: {error}");
        }
    }
}

#[test]
fn an_impossible_record_of_an_oracle_general_is_told() {
    let record = |time: u32, next: i64| {
        let mut record = oracle_record(time, 7, 1);
        record[16..].copy_from_slice(&next.to_le_bytes());
        record
    };
    let check_pair = |first: Vec<u8>, second: Vec<u8>, parts: &[&str]| {
        let bytes = [first, second].concat();
        let error = check_error("t.oracleGeneral", &bytes, &ReadOptions::default(), parts);
        assert_eq!((error.records_read(), error.byte_offset()), (1, 24));
        let accepted = ReadOptions { implausible_ok: true, ..ReadOptions::default() };
        assert_eq!(read("t.oracleGeneral", &bytes, &accepted).unwrap().len(), 2);
    };
    check_pair(record(9, -1), record(8, -1), &["record 1 at byte 24", "goes back from 9 s to 8 s"]);
    for next in [1, -256, i64::MIN, 1 << 40, i64::MAX - 1] {
        check_pair(
            record(9, 1),
            record(9, next),
            &["next access", &format!("record {next},"), "expected a later record"],
        );
    }
    for none in [-1, -2, 0, i64::MAX, 2, 3] {
        let bytes = [record(9, -1), record(9, none)].concat();
        assert_eq!(read("t.oracleGeneral", &bytes, &ReadOptions::default()).unwrap().len(), 2);
    }
}

#[test]
fn sizes_that_make_far_too_many_pages_are_refused_before_they_are_read() {
    let count = |name: &str, bytes: &[u8], options: &ReadOptions| -> Result<usize, TraceError> {
        let mut stream = trace::from_reader(name, Box::new(Cursor::new(bytes.to_vec())), options)?;
        let (mut chunk, mut count) = (Vec::new(), 0);
        while stream.fill(&mut chunk, 1 << 16)? > 0 {
            count += chunk.drain(..).len();
        }
        Ok(count)
    };
    // 48 KB that would be 2^31 accesses.
    let bytes: Vec<u8> = (0..2048).flat_map(|id| oracle_record(1, id, u32::MAX)).collect();
    let parts = ["record 1 at byte 24", "`ignore_size`", "`page_size`", "`implausible_ok`"];
    check_error("t.oracleGeneral", &bytes, &ReadOptions::default(), &parts);
    let ignore_size = ReadOptions { ignore_size: true, ..ReadOptions::default() };
    assert_eq!(count("t.oracleGeneral", &bytes, &ignore_size).unwrap(), 2048);
    // One object of 4 GiB is believed, as are all of 4 MiB.
    let large = oracle_record(1, 7, u32::MAX);
    assert_eq!(count("t.oracleGeneral", &large, &ReadOptions::default()).unwrap(), 1 << 20);
    let bytes: Vec<u8> = (0..1500).flat_map(|id| oracle_record(1, id, 4 << 20)).collect();
    assert_eq!(count("t.oracleGeneral", &bytes, &ReadOptions::default()).unwrap(), 1500 << 10);
    let ranges = "offset,size\n0,4294967296\n".to_string() + &"4294967296,4294967296\n".repeat(9);
    check_error("t.csv", ranges.as_bytes(), &ReadOptions::default(), &["line 3", "`implausible_ok`"]);
    let believing = ReadOptions { implausible_ok: true, ..ReadOptions::default() };
    assert_eq!(count("t.csv", ranges.as_bytes(), &believing).unwrap(), 10 << 20);
    let requests = "offset,size\n".to_string() + &"8192,67108864\n".repeat(80);
    assert_eq!(count("t.csv", requests.as_bytes(), &ReadOptions::default()).unwrap(), 80 << 14);
}

#[test]
fn a_text_without_a_record_is_refused_as_an_empty_file_is() {
    for (name, text) in
        [("t.csv", "offset,size\n"), ("t.csv", "offset,size\n\n \n"), ("t.log", "fio version 2 iolog\n")]
    {
        check_error(name, text.as_bytes(), &ReadOptions::default(), &["ends before its first record"]);
    }
}

#[test]
fn a_column_name_that_two_columns_have_is_refused_where_it_is_used() {
    let text = b"offset,size,offset,note,note\n0,4096,8192,a,b\n";
    let parts = ["two columns are called `offset`", "`#1` or `#3`"];
    check_error("t.csv", text, &ReadOptions::default(), &parts);
    check_error("t.csv", text, &csv("offset = 'offset'"), &parts);
    assert_eq!(read("t.csv", text, &csv("offset = '#3'\nsize = 'size'")).unwrap(), [(0, 2, false)]);
}

/// Of one block, nothing comes out before all of it is there.
#[test]
fn a_cut_in_the_only_compressed_block_is_told_with_its_place() {
    let bytes: Vec<u8> = (0..100).flat_map(|id| oracle_record(1, id, 512)).collect();
    let compressed = zstd::encode_all(&bytes[..], 3).unwrap();
    let cut = &compressed[..compressed.len() - 5];
    let parts = [
        "(oracle-general): record 0 at byte 0 of the decompressed data",
        "truncated",
        "; 0 bytes were decompressed",
    ];
    let error = check_error("t.oracleGeneral.zst", cut, &ReadOptions::default(), &parts);
    assert!(std::error::Error::source(&error).is_some());
    check_error("t.zst", cut, &as_format(Format::OracleGeneral), &parts);
    // With several blocks, what came before is told.
    let bytes: Vec<u8> = (0..20_000).flat_map(|id| oracle_record(1, id * id, 512)).collect();
    let compressed = zstd::encode_all(&bytes[..], 3).unwrap();
    let cut = &compressed[..compressed.len() - 5];
    let error =
        check_error("t.oracleGeneral.zst", cut, &ReadOptions::default(), &["of the decompressed data"]);
    assert!(error.records_read() > 1000 && error.byte_offset() == error.records_read() * 24, "{error}");
}

#[test]
fn oracle_general_gives_each_id_pages_of_its_own() {
    let bytes = [
        oracle_record(1, 900, 8193),
        oracle_record(2, 901, 512),
        oracle_record(3, 900, 4096),
        oracle_record(9, 5, 0),
    ]
    .concat();
    let reads = |pages: &[u64]| pages.iter().map(|&page| (0, page, false)).collect::<Vec<Plain>>();
    check("t.oracleGeneral", &bytes, &ReadOptions::default(), &reads(&[0, 1, 2, 3, 0, 4]));
    let ignore_size = ReadOptions { ignore_size: true, ..ReadOptions::default() };
    check("t.oracleGeneral", &bytes, &ignore_size, &reads(&[0, 1, 0, 2]));
    let as_given = ReadOptions { page_ids: PageIds::AsGiven, ..ReadOptions::default() };
    check("t.oracleGeneral", &bytes, &as_given, &reads(&[900, 901, 902, 901, 900, 5]));
    let large_pages = ReadOptions { page_size: Some(16384), ..ReadOptions::default() };
    check("t.oracleGeneral", &bytes, &large_pages, &reads(&[0, 1, 0, 2]));
    check_cuts("t.oracleGeneral", &bytes, &ReadOptions::default(), |cut| cut > 0 && cut % 24 == 0);
}

#[test]
fn a_record_cut_short_is_located() {
    let bytes = [oracle_record(1, 900, 1), oracle_record(2, 901, 1)[..10].to_vec()].concat();
    let error = check_error(
        "t.oracleGeneral",
        &bytes,
        &ReadOptions::default(),
        &[
            "t.oracleGeneral (oracle-general): record 1 at byte 24",
            "found 10 bytes, expected 24",
            "1 records were read",
        ],
    );
    assert_eq!((error.records_read(), error.byte_offset(), error.line()), (1, 24, None));
    assert_eq!((error.file(), error.format()), ("t.oracleGeneral", Some(Format::OracleGeneral)));
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn words_carry_object_and_write() {
    let bytes = words(&[5, 1 << 31 | 6, 3 << 28 | 7, (1 << 28) - 1]);
    let expected = [(0, 5, false), (0, 6, true), (3, 7, false), (0, (1 << 28) - 1, false)];
    check("t.words", &bytes, &ReadOptions::default(), &expected);
    check("t.u32", &bytes, &as_format(Format::Words), &expected);
    check_cuts("t.words", &bytes, &ReadOptions::default(), |cut| cut > 0 && cut % 4 == 0);
    let dense = ReadOptions { page_ids: PageIds::Dense, ..ReadOptions::default() };
    check("t.words", &bytes, &dense, &[(0, 0, false), (0, 1, true), (3, 0, false), (0, 2, false)]);
    let bytes = words(&[1 << 31 | 6, 1 << 28 | 7, 5]);
    check("t.u32", &bytes, &ReadOptions::default(), &[(0, 6, true), (1, 7, false), (0, 5, false)]);
    check_cuts("t.u32", &bytes, &ReadOptions::default(), |cut| cut > 0 && cut % 4 == 0);
}

#[test]
fn a_u32_whose_numbers_can_be_pages_or_words_is_told() {
    let doubts = |name: &str, numbers: &[u32], options: &ReadOptions| {
        let file = Scratch::new(name, &words(numbers));
        let doubts = trace::interpretation(&file.0, options).unwrap().doubts;
        let info = trace::info(&file.0, options, &mut |_| {}).unwrap();
        assert_eq!(info.interpretation.doubts, doubts);
        doubts
    };
    let default = ReadOptions::default();
    // However late the first such word comes.
    let late: Vec<u32> = (0..200_000).chain([1 << 31 | 7]).collect();
    for numbers in [&[0, 1 << 28][..], &[1 << 31], &late] {
        let told = doubts("told.u32", numbers, &default);
        assert!(
            told.len() == 1 && told[0].contains("`pages-u32`") && told[0].contains("`words`"),
            "{told:?}"
        );
        assert_eq!(doubts("named.words", numbers, &default), [""; 0]);
        assert_eq!(doubts("named.u32", numbers, &as_format(Format::Words)), [""; 0]);
    }
    assert_eq!(doubts("low.u32", &[0, (1 << 28) - 1], &default), [""; 0]);
}

#[test]
fn a_u32_of_numbers_that_are_hardly_words_is_refused() {
    let default = ReadOptions::default();
    let advice = ["`pages-u32` if they are page numbers", "`words` if they are not"];
    let refused = |numbers: &[u32], reason: &str| {
        let bytes = words(numbers);
        check_error("t.u32", &bytes, &default, &[reason, advice[0], advice[1]]);
        let pages: Vec<Plain> = numbers.iter().map(|&page| (0, page.into(), false)).collect();
        check("t.u32", &bytes, &as_format(Format::PagesU32), &pages);
        check("t.pages32", &bytes, &default, &pages);
        assert_eq!(read("t.u32", &bytes, &as_format(Format::Words)).unwrap().len(), numbers.len());
    };
    // Objects that nothing comes before.
    refused(&[3 << 28 | 5], "access object 3 and never object 0");
    refused(&[1, 2 << 28, 2], "access object 2 and never object 1");
    // Numbers that run on through 2^28, in either order.
    refused(&[(1 << 28) - 1, 1 << 28], "one has page 268435455");
    refused(&[1 << 31, 200_000_000], "one has page 200000000");
}

#[test]
fn page_lists_of_both_widths() {
    let bytes: Vec<u8> = [7u32, u32::MAX].iter().flat_map(|page| page.to_le_bytes()).collect();
    check("t", &bytes, &as_format(Format::PagesU32), &[(0, 7, false), (0, u32::MAX.into(), false)]);
    check_cuts("t", &bytes, &as_format(Format::PagesU32), |cut| cut > 0 && cut % 4 == 0);
    let bytes: Vec<u8> = [7u64, u64::MAX].iter().flat_map(|page| page.to_le_bytes()).collect();
    check_error("t", &bytes, &as_format(Format::PagesU64), &["record 1 at byte 8", "2^40", "dense"]);
    let dense = ReadOptions { page_ids: PageIds::Dense, ..as_format(Format::PagesU64) };
    check("t", &bytes, &dense, &[(0, 0, false), (0, 1, false)]);
    check_cuts("t", &bytes, &dense, |cut| cut > 0 && cut % 8 == 0);
}

const FIO_V2: &str = "fio version 2 iolog\n/a add\n/b add\n/a open\n/b open\n/b write 4096 8192\n/a read 0 1\n\
                      /a wait 100 0\n/a sync\n/a trim 0 1099511627776\n/a read 4095 2\n/c read 0 0\n/a close\n";

#[test]
fn fio_logs_of_both_versions() {
    let expected = [(1, 1, true), (1, 2, true), (0, 0, false), (0, 0, false), (0, 1, false)];
    check("t.log", FIO_V2.as_bytes(), &ReadOptions::default(), &expected);
    let v3 =
        "fio version 3 iolog\n0 /a add\n0 /b add\n12 /b write 4096 8192\n13 /a read 0 1\n15 /a read 4095 2\n";
    check("t.log", v3.as_bytes(), &ReadOptions::default(), &expected);
    // The version line alone is no log.
    let is_line_end = |cut: usize| cut > 20 && FIO_V2.as_bytes()[cut - 1] == b'\n';
    check_cuts("t.log", FIO_V2.as_bytes(), &as_format(Format::FioIolog), is_line_end);
}

#[test]
fn a_fault_in_a_fio_log_is_told_with_its_line() {
    let log = |line: &str| format!("fio version 2 iolog\n/a add\n{line}\n").into_bytes();
    let check = |line: &str, expected: &[&str]| {
        let error = check_error("t.log", &log(line), &ReadOptions::default(), expected);
        assert_eq!((error.line(), error.records_read(), error.byte_offset()), (Some(3), 1, 27));
    };
    check("/a read 0", &["line 3", "an offset and a length"]);
    check("/a read x 1", &["offset is not a number: `x`"]);
    check("/a raed 0 1", &["unknown action `raed`"]);
    check("/a", &["a file and an action"]);
    check("/a read 18446744073709551615 2", &["exceed the number range"]);
    check("/a read 0 18446744073709551615", &["4 GiB"]);
    check("/a read 4611686018427387904 1", &["2^40"]);
    check_error("t.log", b"fio version 4 iolog\n", &ReadOptions::default(), &["`fio version 4 iolog`"]);
}

#[test]
fn times_of_a_fio_log_are_microseconds() {
    let span = |name: &str, text: &str| {
        let file = Scratch::new(name, text.as_bytes());
        let info = trace::info(&file.0, &ReadOptions::default(), &mut |_| {}).unwrap();
        info.time_span.map(|span| (span.first, span.last, span.unit))
    };
    let v3 = "fio version 3 iolog\n0 /a add\n1500 /a read 0 1\n2000000 /a read 4096 1\n";
    assert_eq!(span("v3.iolog", v3), Some((0.0, 2_000_000.0, "us")));
    // Version 2 has no times but what it waits, which adds up.
    let v2 =
        "fio version 2 iolog\n/a add\n/a read 0 1\n/a wait 1500\n/a read 0 1\n/a wait 500 0\n/a read 0 1\n";
    assert_eq!(span("v2.iolog", v2), Some((0.0, 2000.0, "us")));
    assert_eq!(span("untimed.iolog", "fio version 2 iolog\n/a add\n/a read 0 1\n"), None);
    let endless = format!("fio version 2 iolog\n/a wait {}\n/a wait 1\n", u64::MAX);
    check_error("t.log", endless.as_bytes(), &ReadOptions::default(), &["line 3", "the sum of the waits"]);
    check_error(
        "t.log",
        b"fio version 2 iolog\n/a wait\n",
        &ReadOptions::default(),
        &["wait is not a number"],
    );
}

fn csv(toml: &str) -> ReadOptions {
    let csv: CsvOptions = toml::from_str(toml).unwrap();
    ReadOptions { format: Some(Format::Csv), csv, ..ReadOptions::default() }
}

#[test]
fn csv_columns_are_found_by_their_usual_names() {
    let text = "Timestamp,op,offset,size\n1.5,R,4095,2\n\n2,write,0,4096\n3,trim,0,4096\n";
    check("t.csv", text.as_bytes(), &ReadOptions::default(), &[(0, 0, false), (0, 1, false), (0, 0, true)]);
    // The header alone is no trace.
    let is_line_end = |cut: usize| cut > 25 && text.as_bytes()[cut - 1] == b'\n';
    check_cuts("t.csv", text.as_bytes(), &ReadOptions::default(), is_line_end);
}

#[test]
fn what_is_not_chosen_is_found_by_its_usual_name_all_the_same() {
    // 64 KiB from sectors 1000 and 2000 on.
    let text = "version,time,op,size,lbn\n1,10,28,65536,1000\n1,11,2a,65536,2000\n";
    let pages = |first: u64, is_write| {
        (first..first + 16).chain([first + 16]).take(16).map(move |page| (0, page, is_write))
    };
    let expected: Vec<Plain> = pages(125, false).chain(pages(250, true)).collect();
    for chosen in [
        "offset = 'lbn'\noffset_unit = 512",
        "offset = 'lbn'",
        "offset = '#5'",
        "",
        "size = 'size'",
        "op = 'op'",
    ] {
        check("t.csv", text.as_bytes(), &csv(chosen), &expected);
    }
    // Who wants none says so.
    let without_size = [(0, 125, false), (0, 250, true)];
    check("t.csv", text.as_bytes(), &csv("offset = 'lbn'\nsize = ''"), &without_size);
    check("t.csv", text.as_bytes(), &csv("op = ''\nsize = ''"), &[(0, 125, false), (0, 250, false)]);
    check(
        "t.csv",
        text.as_bytes(),
        &csv("offset = 'lbn'\noffset_unit = 1\nsize = ''"),
        &[(0, 0, false), (0, 0, true)],
    );
    check_error(
        "t.csv",
        b"lba,op\n1,x\n",
        &csv("offset = 'lba'"),
        &["unknown operation `x`", "column 2", "csv.op"],
    );
}

#[test]
fn columns_of_sectors_are_known_by_name_and_told_as_a_guess() {
    for name in ["lba", "LBN", "sector", "blkno", "start_sector", "BlkNo"] {
        let text = format!("{name},size\n16,8192\n");
        check("t.csv", text.as_bytes(), &ReadOptions::default(), &[(0, 2, false), (0, 3, false)]);
        let (columns, doubts) = understood("sectors.csv", &text, &ReadOptions::default());
        assert_eq!(columns, format!("{name}:offset*512 size:size*1"));
        assert!(
            doubts.len() == 1
                && doubts[0].contains("512 bytes per sector")
                && doubts[0].contains("csv.offset_unit"),
            "{doubts:?}"
        );
        let (_, doubts) = understood("told.csv", &text, &csv("offset_unit = 512"));
        assert_eq!(doubts, [""; 0]);
    }
    let (columns, doubts) =
        understood("both.csv", "dev,blkno,bcount,flags\n0,16,16,0\n", &ReadOptions::default());
    assert_eq!(columns, "dev:object blkno:offset*512 bcount:size*512 flags:ignored");
    assert_eq!(doubts.len(), 2, "{doubts:?}");
    check("t.csv", b"dev,blkno,bcount\n0,16,16\n", &ReadOptions::default(), &[(0, 2, false), (0, 3, false)]);
    // Eight bytes are no size of a disk's request.
    let (_, doubts) = understood("odd.csv", "lba,size\n16,8\n", &ReadOptions::default());
    assert!(
        doubts[1].contains("not a multiple of 512, such as 8") && doubts[1].contains("csv.size_unit"),
        "{doubts:?}"
    );
    check_error("t.csv", b"offset,lba\n0,0\n", &ReadOptions::default(), &["got 2: `offset`, `lba`"]);
}

#[test]
fn what_is_between_columns_is_found_and_told() {
    let expected = [(0, 1, true), (0, 2, true), (0, 0, false)];
    for (between, name) in
        [("\t", "`tab`"), (";", "`;`"), ("|", "`|`"), (" ", "`blank`"), ("   ", "`blank`"), (" \t ", "")]
    {
        let text = ["time", "offset", "size", "op"].join(between)
            + "\n"
            + &["1", "4096", "8192", "w"].join(between)
            + "\n"
            + &["2", "0", "1", "r"].join(between)
            + "\n";
        if name.is_empty() {
            check("t", text.as_bytes(), &csv("delimiter = ' '"), &expected);
            continue;
        }
        check("t", text.as_bytes(), &as_format(Format::Csv), &expected);
        let (_, doubts) = understood("between.csv", &text, &ReadOptions::default());
        assert!(
            doubts.iter().any(|doubt| doubt.contains(name) && doubt.contains("csv.delimiter")),
            "{doubts:?}"
        );
    }
    // DiskSim's form: time, device, block, blocks, flags; runs of blanks, also in front.
    let disksim = "  10   1  5000 16  0\n  20   1  5016 16 0\n";
    let columns =
        "header = false\nobject = '#2'\noffset = '#3'\noffset_unit = 512\nsize = '#4'\nsize_unit = 512\n";
    let expected = [(0, 625, false), (0, 626, false), (0, 627, false), (0, 628, false)];
    for delimiter in ["' '", "'blank'", "'space'"] {
        check("t", disksim.as_bytes(), &csv(&format!("{columns}delimiter = {delimiter}")), &expected);
    }
    check("t", disksim.as_bytes(), &csv(columns), &expected);
    check("t", b"a\tb c\n1\t2\n", &csv("delimiter = 'tab'\npage = 'b c'"), &[(0, 2, false)]);
    check("t", b"a\tb c\n1\t2\n", &csv("delimiter = '\\t'\npage = 'b c'"), &[(0, 2, false)]);
    check("t", b"file page\n\"a b\"  7\n", &csv("delimiter = ' '"), &[(0, 7, false)]);
    for bad in ["''", "'ab'", "'7'", "'\\u00e9'", "'\"'"] {
        let text = format!("delimiter = {bad}");
        let refused =
            toml::from_str::<CsvOptions>(&text.replace("'\\u00e9'", "'é'")).unwrap_err().to_string();
        assert!(refused.contains("use one ASCII character") && refused.contains("`blank`"), "{refused}");
    }
}

#[test]
fn what_only_the_first_line_of_data_shows_is_told() {
    let doubts = |text: &str| understood("data.csv", text, &ReadOptions::default()).1.join("\n");
    assert!(doubts("page,op\n1,0\n").contains("0 is interpreted as a read and 1 as a write"));
    assert!(doubts("page,op\n1,2a\n").contains("SCSI codes"));
    assert_eq!(doubts("page,op\n1,r\n"), "");
    let dated = "time,page\n2024-02-03 10:00:00,7\n2024-02-03 10:00:01,8\n";
    check("t.csv", dated.as_bytes(), &ReadOptions::default(), &[(0, 7, false), (0, 8, false)]);
    assert!(doubts(dated).contains("times in column `time` are not numbers and are ignored"));
    check_error("t.csv", dated.as_bytes(), &csv("time = 'time'"), &["time is not a number"]);
    check("t.csv", b"offset\n0x2000\n", &ReadOptions::default(), &[(0, 2, false)]);
}

#[test]
fn page_numbers_are_read_as_text_one_a_line() {
    let text = "100\n0x65\n\n  100  # again\n#7\r\n";
    let expected = [(0, 100, false), (0, 101, false), (0, 100, false)];
    for name in ["pages.txt", "t", "t.dat", "t.pages"] {
        check(name, text.as_bytes(), &ReadOptions::default(), &expected);
    }
    check("t.csv", text.as_bytes(), &as_format(Format::PagesText), &expected);
    check("t", "\u{feff}# page numbers\n\n5\n".as_bytes(), &ReadOptions::default(), &[(0, 5, false)]);
    let is_line_end = |cut: usize| cut >= 4 && text.as_bytes()[cut - 1] == b'\n';
    check_cuts("t", text.as_bytes(), &as_format(Format::PagesText), is_line_end);
    let default = ReadOptions::default();
    check_error("t", b"1\n2 3\n", &default, &["line 2", "`2 3`", "csv.header=false"]);
    check_error("t", b"1\nff\n", &default, &["line 2", "begins with 0x"]);
    check_error("t", b"1\n-2\n", &default, &["line 2", "`-2`"]);
    check_error("t", b"1\nx\n", &default, &["line 2", "`x` is not a page number"]);
    check_error("t", b"1\n99999999999999999999\n", &default, &["line 2", "not a page number"]);
    check_error("t", b"1\n2000000000000\n", &default, &["line 2", "2^40"]);
    check_error("t", b"# nothing\n", &as_format(Format::PagesText), &["before its first record"]);
    // Of a name that stands for binary numbers nobody knows which of the two is meant.
    for name in ["t.u32", "t.u64", "t.words", "t.oracleGeneral"] {
        check_error(name, b"100\n101\n100\n", &default, &["as text", "pages-text"]);
        check(name, b"100\n", &as_format(Format::PagesText), &[(0, 100, false)]);
    }
    check_error("t.csv", b"100\n101\n", &default, &["csv.header = false", "pages-text"]);
    check_error("t.txt", b"100 1\n101 2\n", &default, &["unknown trace format", "csv.header=false"]);
    check_error("t.txt", b"time,page\n1,2\n", &default, &["unknown trace format", "--trace-format csv"]);
}

#[test]
fn page_numbers_that_may_be_addresses_are_told() {
    let doubts = |text: &str| understood("numbers.txt", text, &ReadOptions::default()).1;
    assert!(doubts("4096\n8192\n0x3000\n")[0].contains("multiples of 4096"));
    assert_eq!(doubts("4096\n8192\n3\n"), [""; 0]);
    assert_eq!(doubts("0\n0\n"), [""; 0]);
}

#[test]
fn whether_anything_writes_is_unknown_where_no_trace_says_it() {
    for (name, text, writes) in [
        ("none.csv", "page\n1\n", None),
        ("op.csv", "page,op\n1,w\n", Some(1)),
        ("read.csv", "page,op\n1,r\n", Some(0)),
        ("text.txt", "1\n", None),
        ("list.u64", "\u{1}\0\0\0\0\0\0\0", None),
        ("words.words", "\u{1}\0\0\0", Some(0)),
        ("all.oracleGeneral", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", None),
        ("fio.iolog", "fio version 2 iolog\n/a add\n/a write 0 1\n", Some(1)),
    ] {
        let file = Scratch::new(name, text.as_bytes());
        let info = trace::info(&file.0, &ReadOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(info.writes, writes, "{name}");
        // A conversion makes nothing known that was not.
        let mut pgt = Vec::new();
        let header = trace::convert(&file.0, &ReadOptions::default(), &mut pgt, &mut |_| {}).unwrap();
        assert_eq!(header.tells_writes, writes.is_some(), "{name}");
        let converted = Scratch::new(&format!("{name}.pgt"), &pgt);
        let info = trace::info(&converted.0, &ReadOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(info.writes, writes, "{name} converted");
    }
}

#[test]
fn csv_columns_can_be_chosen() {
    let text = "a;\"b;c\";d\r\n7;\"x \"\"y\"\"\";8\r\n07;z;1\r\n7;z;1\r\n";
    let options = csv("delimiter = ';'\nid = 'A'\nobject = 'b;c'\nsize = 'd'\nsize_unit = 512");
    check("t", text.as_bytes(), &options, &[(0, 0, false), (1, 0, false), (1, 1, false)]);
    let options = csv("delimiter = ';'\npage = '#3'");
    check("t", text.as_bytes(), &options, &[(0, 8, false), (0, 1, false), (0, 1, false)]);
    let options = csv("header = false\noffset = '#1'\noffset_unit = 512");
    check("t", b"8\n15\n16\n", &options, &[(0, 1, false), (0, 1, false), (0, 2, false)]);
    check("t.tsv", b"time\tpage\n1\t5\n", &ReadOptions::default(), &[(0, 5, false)]);
}

/// The accesses as (name of the object, page).
fn objects_of(name: &str, text: &str, options: &ReadOptions) -> Vec<(String, u64)> {
    let file = Scratch::new(name, text.as_bytes());
    let mut pgt = Vec::new();
    let header = trace::convert(&file.0, options, &mut pgt, &mut |_| {}).unwrap();
    let accesses = read("t.pgt", &pgt, &ReadOptions::default()).unwrap();
    let named = |(object, page, _): Plain| (header.objects[object as usize].name.clone(), page);
    accesses.into_iter().map(named).collect()
}

#[test]
fn pages_of_different_volumes_are_different_pages() {
    for column in [
        "DiskNumber",
        "dev",
        "vol",
        "lun",
        "LUN",
        "asu",
        "volume_id",
        "disk_id",
        "Hostname",
        "path",
        "device_id",
    ] {
        let text = format!("offset,size,{column}\n0,512,a\n0,512,b\n4096,512,a\n");
        let expected = [(0, 0, false), (1, 0, false), (0, 1, false)];
        check("t.csv", text.as_bytes(), &ReadOptions::default(), &expected);
        // Where the place is from makes no difference.
        check("t.csv", text.as_bytes(), &csv("offset = '#1'"), &expected);
        let ids = text.replace("offset", "key");
        check(
            "t.csv",
            ids.as_bytes(),
            &ReadOptions::default(),
            &[(0, 0, false), (1, 0, false), (0, 1, false)],
        );
        // Who wants one object of them says so.
        let merged = csv("offset = 'offset'\nobject = []");
        check("t.csv", text.as_bytes(), &merged, &[(0, 0, false), (0, 0, false), (0, 1, false)]);
    }
}

#[test]
fn several_columns_are_one_object_together() {
    let text = "Hostname,DiskNumber,Offset\nusr,0,0\nusr,1,0\nsrc,0,0\nusr,0,4096\na/b,0,0\n";
    let object = |name: &str, page| (name.to_string(), page);
    let both = [
        object("usr/0", 0),
        object("usr/1", 0),
        object("src/0", 0),
        object("usr/0", 1),
        object("a\\/b/0", 0),
    ];
    assert_eq!(objects_of("both.csv", text, &ReadOptions::default()), both);
    let chosen = csv("offset = 'offset'\nobject = ['#1', 'disknumber']");
    assert_eq!(objects_of("chosen.csv", text, &chosen), both);
    let hosts = csv("offset = 'offset'\nobject = 'Hostname'");
    assert_eq!(objects_of("hosts.csv", text, &hosts)[1], object("usr", 0));
    // A device that is two numbers is known by both; one alone says nothing.
    let numbers = "major,minor,offset\n8,0,0\n8,16,0\n";
    assert_eq!(
        objects_of("numbers.csv", numbers, &ReadOptions::default()),
        [object("8/0", 0), object("8/16", 0)]
    );
    check("t.csv", b"minor,offset\n0,0\n16,0\n", &ReadOptions::default(), &[(0, 0, false), (0, 0, false)]);
}

/// What each column was taken for, and the doubts.
fn understood(name: &str, text: &str, options: &ReadOptions) -> (String, Vec<String>) {
    let file = Scratch::new(name, text.as_bytes());
    let interpretation = trace::interpretation(&file.0, options).unwrap();
    let told = |column: &trace::Column| {
        let unit = column.holds.unit().map_or(String::new(), |unit| format!("*{unit}"));
        format!("{}:{}{unit}", column.name, column.holds.name())
    };
    (interpretation.columns.iter().map(told).collect::<Vec<_>>().join(" "), interpretation.doubts)
}

#[test]
fn it_is_told_what_each_column_was_taken_for() {
    let default = ReadOptions::default();
    let (columns, doubts) =
        understood("told.csv", "Timestamp,LUN,IOType,Offset,Size,Response\n1,a,R,0,512,3\n", &default);
    assert_eq!(columns, "Timestamp:time LUN:object IOType:op Offset:offset*1 Size:size*1 Response:ignored");
    assert_eq!(doubts, [""; 0]);
    let (columns, _) =
        understood("unnamed.csv", "a,8,b\n", &csv("header = false\noffset = '#2'\noffset_unit = 512"));
    assert_eq!(columns, ":ignored :offset*512 :ignored");
    let (columns, _) = understood("marked.csv", "\u{feff}# ts,offset\n1,0\n", &default);
    assert_eq!(columns, "ts:time offset:offset*1");
    let (columns, _) = understood("none.u32", "\0\0\0\0", &default);
    assert_eq!(columns, "");
}

#[test]
fn a_column_left_out_that_is_called_like_an_id_is_doubted() {
    let text = "offset,shard_id,latency_ns,pid\n0,1,2,3\n";
    let (columns, doubts) = understood("doubt.csv", text, &ReadOptions::default());
    assert_eq!(columns, "offset:offset*1 shard_id:ignored latency_ns:ignored pid:ignored");
    assert!(
        doubts.len() == 1 && doubts[0].contains("`shard_id` is ignored") && doubts[0].contains("csv.object")
    );
    // Who has said what the object is needs no advice.
    let (_, doubts) = understood("sure.csv", text, &csv("offset = 'offset'\nobject = 'pid'"));
    assert_eq!(doubts, [""; 0]);
}

#[test]
fn published_collections_are_read_by_their_names() {
    let msr = "128166372003061629,usr,0,Read,7014608896,24576,41286\n128166372016382155,src1,0,Write,0,512,9\n\
               128166372026382155,usr,1,Read,7014608896,4096,1\n";
    let msr_pages = |object| (0..6).map(move |page| (object, 7_014_608_896 / 4096 + page, false));
    let expected: Vec<Plain> = msr_pages(0).chain([(1, 0, true), (2, 7_014_608_896 / 4096, false)]).collect();
    check("t.csv", msr.as_bytes(), &as_format(Format::Msr), &expected);
    let alibaba = "3,R,4096,8192,1577808144000123\n4,W,4096,512,1577808144000200\n";
    check(
        "t.csv",
        alibaba.as_bytes(),
        &as_format(Format::Alibaba),
        &[(0, 1, false), (0, 2, false), (1, 1, true)],
    );
    // Sectors: the sixteenth is the third page.
    let tencent = "1538323200,16,8,0,1283\n1538323200,15,2,1,1283\n1538323201,16,8,0,1360\n";
    let expected = [(0, 2, false), (0, 1, true), (0, 2, true), (1, 2, false)];
    check("t.csv", tencent.as_bytes(), &as_format(Format::Tencent), &expected);
    // Sectors, and sizes in bytes.
    let spc = "0,8,4096,r,0.1\n1,16,8192,W,0.2\n";
    check("t.spc", spc.as_bytes(), &ReadOptions::default(), &[(0, 1, false), (1, 2, true), (1, 3, true)]);
    for (format, text, header) in [
        (Format::Msr, msr, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"),
        (Format::Alibaba, alibaba, "device_id,opcode,offset,length,timestamp"),
        (Format::Tencent, tencent, "Timestamp,Offset,Size,IOType,VolumeID"),
        (Format::Spc, spc, "ASU,LBA,Size,Opcode,Timestamp"),
    ] {
        let plain = read("t.csv", text.as_bytes(), &as_format(format)).unwrap();
        let headed = read("t.csv", format!("{header}\n{text}").as_bytes(), &as_format(format)).unwrap();
        assert_eq!(plain, headed, "{format}");
        check_error("t.csv", b"1,2,3\n", &as_format(format), &["found 3 fields, expected"]);
        check_error("t.csv", b"", &as_format(format), &["empty"]);
        let is_line_end = |cut: usize| cut > 0 && text.as_bytes()[cut - 1] == b'\n';
        check_cuts("t.csv", text.as_bytes(), &as_format(format), is_line_end);
        let options = ReadOptions { format: Some(format), ..csv("offset = '#1'") };
        check_error("t.csv", text.as_bytes(), &options, &["`csv.offset` is for csv"]);
    }
}

#[test]
fn cache_traces_of_the_web_are_read_by_their_names() {
    // A key of 17 bytes and a value of 4,080: two pages. A page of each id is next to no other's.
    let twitter = "0,q:8WTf,17,213,4,get,0\n1,q:i_zz,17,4080,4,set,3600\n1,q:8WTf,17,0,9,delete,0\n";
    let expected = [(0, 0, false), (0, 1, true), (0, 2, true)];
    check("t.csv", twitter.as_bytes(), &as_format(Format::Twitter), &expected);
    let one_page = ReadOptions { ignore_size: true, ..as_format(Format::Twitter) };
    check("t.csv", twitter.as_bytes(), &one_page, &[(0, 0, false), (0, 1, true)]);
    let uploads = "0\t833946053\tjpeg\t9665\t0.0013\n0\t-1679404160\tpng\t17635\t0.0001\n1\t833946053\tjpeg\t9665\t0.2\n";
    let one_page = |format| ReadOptions { ignore_size: true, ..as_format(format) };
    let expected = [(0, 0, false), (0, 1, false), (0, 0, false)];
    check("t.tsv", uploads.as_bytes(), &one_page(Format::Wikipedia), &expected);
    let of_three: Vec<Plain> = (0..3).map(|page| (0, page, false)).collect();
    let texts = "0\t833946053\t9665\t0.0013\n";
    check("t", texts.as_bytes(), &as_format(Format::Wikipedia), &of_three);
    // Later columns of LRB's traces are features.
    check("t.tr", b"0 7 100 3 4\n5 9 100 3 4\n9 7 4097 1 2\n", &one_page(Format::Lrb), &expected);
    for (format, text, header) in [
        (Format::Twitter, twitter, "timestamp,anonymized key,key size,value size,client id,operation,TTL"),
        (
            Format::Wikipedia,
            uploads,
            "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte",
        ),
        (Format::Wikipedia, texts, "relative_unix\thashed_host_path_query\tresponse_size\ttime_firstbyte"),
        (Format::Lrb, "0 7 100\n", "time id size"),
    ] {
        let plain = read("t", text.as_bytes(), &as_format(format)).unwrap();
        let headed = read("t", format!("{header}\n{text}").as_bytes(), &as_format(format)).unwrap();
        assert_eq!(plain, headed, "{format}");
        check_error("t", b"1\n", &as_format(format), &["found 1 fields, expected"]);
        let options = ReadOptions { format: Some(format), ..csv("offset = '#1'") };
        check_error("t", text.as_bytes(), &options, &["`csv.offset` is for csv"]);
    }
    check_error("t.csv", twitter.as_bytes(), &ReadOptions::default(), &["looks like one of", "`twitter`"]);
}

#[test]
fn a_csv_without_a_header_that_looks_like_a_published_one_is_told_its_name() {
    let default = ReadOptions::default();
    for (line, name) in [
        ("128166372003061629,usr,0,Read,7014608896,24576,41286", "`msr`"),
        ("3,R,4096,8192,1577808144000123", "`alibaba`"),
        ("1538323200,16,8,0,1283", "`tencent`"),
        ("0,8,4096,r,0.1", "`spc`"),
    ] {
        let text = format!("{line}\n{line}\n");
        check_error("t.csv", text.as_bytes(), &default, &["looks like one of", name]);
        check_error("t.csv", text.as_bytes(), &csv("header = false"), &["looks like one of", name]);
        // The first line is never lost to whoever chooses columns and forgets that none is named.
        check_error("t.csv", text.as_bytes(), &csv("offset = '#3'"), &["looks like one of", name]);
    }
    let numbers = ["numbers instead of names", "`csv.header = false`"];
    check_error("t.csv", b"7,8\n7,9\n", &default, &numbers);
    check_error("t.csv", b"7,8\n7,9\n", &csv("offset = '#2'"), &numbers);
    check("t.csv", b"7,offset\n7,4096\n", &default, &[(0, 1, false)]);
    // Whose columns are called as those of a collection that counts sectors must not have them read as bytes.
    let tencent = "timestamp,offset,size,iotype,volumeid\n1,16,8,0,7\n";
    check_error(
        "t.csv",
        tencent.as_bytes(),
        &default,
        &["Tencent's CBS traces", "`tencent`", "`csv.offset_unit`"],
    );
    let units = csv("offset = 'offset'\noffset_unit = 512\nsize = 'size'\nsize_unit = 512");
    check("t.csv", tencent.as_bytes(), &units, &[(0, 2, false)]);
    check("t.csv", tencent.as_bytes(), &csv("offset = 'offset'"), &[(0, 0, false)]);
}

#[test]
fn a_fault_in_a_csv_is_told_with_its_line() {
    let default = ReadOptions::default();
    check_error("t.csv", b"page,op\n1,r\n2,x\n", &default, &["line 3", "byte 12", "unknown operation `x`"]);
    check_error("t.csv", b"page,op\n1\n", &default, &["line 2", "found 1 fields, expected 2"]);
    check_error("t.csv", b"page\nabc\n", &default, &["not an integer: `abc`"]);
    check_error("t.csv", b"page\n\"1\n2\"\n", &default, &["line 2", "quoted field"]);
    check_error("t.csv", b"x,y\na,b\n", &default, &["line 1", "exactly one column", "`csv.offset`", "x, y"]);
    check_error("t.csv", b"id,page\n1,2\n", &default, &["exactly one column", "got 2: `id`, `page`"]);
    check_error("t.csv", b"page,file\n1,a,b\n", &default, &["line 2", "3 fields", "names 2", "quotes"]);
    check("t.csv", b"page,file\n1,a,\n", &default, &[(0, 1, false)]);
    check_error("t.csv", b"a\n1\n", &csv("page = 'b'"), &["no column `b`", "names a"]);
    check_error("t.csv", b"1\n", &csv("header = false\npage = 'b'"), &["no header", "#1"]);
    check_error("t.csv", b"page,size\n1,99999999999\n", &default, &["4 GiB"]);
    let keep_ids = ReadOptions { keep_ids: true, ..ReadOptions::default() };
    check_error("t.csv", b"id\n7\nx\n", &keep_ids, &["line 3, record 1", "`keep_ids`"]);
    let as_given = ReadOptions { page_ids: PageIds::AsGiven, ..ReadOptions::default() };
    check_error("t.csv", b"id\n7\nx\n", &as_given, &["line 3, record 1", "text"]);
    check_error("t.csv", b"page\n1", &default, &["line 2", "unterminated_ok"]);
    let lenient = ReadOptions { unterminated_ok: true, ..default };
    check("t.csv", b"page\n1", &lenient, &[(0, 1, false)]);
}

#[test]
fn a_file_of_no_known_format_is_an_error_that_says_how_to_force_one() {
    check_error("t.bin", b"\0\0\0\0", &ReadOptions::default(), &["oracle-general", "pages-u64", "`format`"]);
    let options: Result<ReadOptions, _> = toml::from_str("format = 'orcale-general'");
    assert!(options.unwrap_err().to_string().contains("did you mean `oracle-general`?"));
    let bad = ReadOptions { page_size: Some(5000), ..ReadOptions::default() };
    check_error("t.u32", b"", &bad, &["power of two", "5000"]);
}

#[test]
fn an_option_that_the_trace_has_no_use_for_is_refused() {
    let ignore_size = ReadOptions { ignore_size: true, ..ReadOptions::default() };
    let dense = ReadOptions { page_ids: PageIds::Dense, ..ReadOptions::default() };
    let unterminated_ok = ReadOptions { unterminated_ok: true, ..ReadOptions::default() };
    let implausible_ok = ReadOptions { implausible_ok: true, ..ReadOptions::default() };
    let told = |toml: &str| ReadOptions { format: None, ..csv(toml) };
    for (name, bytes, options, option) in [
        ("t.u32", &[0; 4][..], &ignore_size, "`ignore_size`"),
        ("t.pages64", &[0; 8], &unterminated_ok, "`unterminated_ok`"),
        ("t.pgt", &[0; 32], &dense, "`page_ids`"),
        ("t.u32", &[0; 4], &implausible_ok, "`implausible_ok`"),
        ("t.oracleGeneral", &[0; 24], &told("delimiter = ';'"), "`csv.delimiter`"),
        ("t.u32", &[0; 4], &told("header = false"), "`csv.header`"),
        ("t.u32", &[0; 4], &told("size_unit = 512"), "`csv.size_unit`"),
        ("t.csv", b"page,size\n1,4096\n", &ignore_size, "`ignore_size`"),
        ("t.csv", b"page\n1\n", &told("offset_unit = 512"), "`csv.offset_unit`"),
        ("t.csv", b"page,size\n1,8\n", &told("page = 'page'\nsize = ''\nsize_unit = 512"), "`csv.size_unit`"),
    ] {
        check_error(name, bytes, options, &[option]);
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = trace::open(Path::new("/nowhere/t.csv"), &ReadOptions::default()).err().unwrap();
    assert!(error.to_string().starts_with("/nowhere/t.csv: "), "{error}");
}

#[test]
fn what_can_be_read_only_once_is_refused() {
    for path in ["/dev/null", "/dev/zero"] {
        let error = trace::open(Path::new(path), &ReadOptions::default()).err().unwrap();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}

/// A file that is gone when the test is.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str, bytes: &[u8]) -> Scratch {
        let path = std::env::temp_dir().join(format!("pageout-{}-{name}", std::process::id()));
        #[allow(clippy::disallowed_methods)] // a test of reading files needs one
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(bytes).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn info_counts_what_the_trace_holds() {
    let text = "time,op,page\n10,r,1\n11,w,2\n12,r,1\n20,r,1\n";
    let file = Scratch::new("info.csv", text.as_bytes());
    let mut progress = 0;
    let info = trace::info(&file.0, &ReadOptions::default(), &mut |bytes| progress = bytes).unwrap();
    assert_eq!(progress, text.len() as u64);
    assert_eq!((info.interpretation.format, info.records, info.accesses), (Format::Csv, 4, 4));
    assert_eq!((info.objects, info.distinct_pages, info.pages_accessed_once), (1, 2, 1));
    assert_eq!((info.writes, info.file_bytes), (Some(1), text.len() as u64));
    let span = info.time_span.unwrap();
    assert_eq!((span.first, span.last), (10.0, 20.0));
    // One of the two pages is the top tenth, rounded up.
    assert_eq!((info.share_of_top_1_percent, info.share_of_top_10_percent), (0.75, 0.75));
    assert_eq!(info.reuse_gaps_log2, [1, 1]);
}

#[test]
fn conversion_keeps_the_accesses_and_names_the_objects() {
    let file = Scratch::new("convert.iolog", FIO_V2.as_bytes());
    let mut pgt = Vec::new();
    let header = trace::convert(&file.0, &ReadOptions::default(), &mut pgt, &mut |_| {}).unwrap();
    let direct = drain(trace::open(&file.0, &ReadOptions::default()).unwrap()).unwrap();
    assert_eq!(read("t", &pgt, &ReadOptions::default()).unwrap(), direct);
    let objects: Vec<(&str, u64)> =
        header.objects.iter().map(|object| (object.name.as_str(), object.pages)).collect();
    assert_eq!(objects, [("/a", 2), ("/b", 3), ("/c", 0)]);
    assert_eq!((header.accesses, header.records, header.page_size), (5, 12, 4096));

    let converted = Scratch::new("convert.pgt", &pgt);
    assert_eq!(
        trace::header(&converted.0, &ReadOptions::default()).unwrap(),
        Some(TraceHeader { requests: None, ..header })
    );
    assert_eq!(trace::header(&file.0, &ReadOptions::default()).unwrap(), None);
    let stream = trace::open(&converted.0, &ReadOptions::default()).unwrap();
    assert_eq!(stream.len_hint(), Some(5));
    assert_eq!(drain(stream).unwrap(), direct);
    let info = trace::info(&converted.0, &ReadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!((info.interpretation.format, info.records, info.accesses), (Format::Pgt, 12, 5));
}

#[test]
fn original_ids_are_kept_on_request() {
    let bytes =
        [oracle_record(1, u64::MAX, 8192), oracle_record(2, 3, 1), oracle_record(3, u64::MAX, 1)].concat();
    let file = Scratch::new("ids.oracleGeneral", &bytes);
    let options = ReadOptions { keep_ids: true, ..ReadOptions::default() };
    let mut pgt = Vec::new();
    trace::convert(&file.0, &options, &mut pgt, &mut |_| {}).unwrap();
    let converted = Scratch::new("ids.pgt", &pgt);
    let ids = trace::original_ids(&converted.0, &ReadOptions::default()).unwrap().unwrap();
    let plain: Vec<(u64, u64)> = ids[0].iter().map(|original| (original.id, original.index)).collect();
    assert_eq!(plain, [(u64::MAX, 0), (u64::MAX, 1), (3, 0)]);
}

#[test]
fn the_shared_trace_has_the_records_and_ids_it_is_known_for() {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("PAGEOUT_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("traces/cloudphysics-w92.oracleGeneral.zst");
    if !path.exists() {
        eprintln!("skipped: {} is not there (set PAGEOUT_SHARED)", path.display());
        return;
    }
    let ignore_size = ReadOptions { ignore_size: true, ..ReadOptions::default() };
    let info = trace::info(&path, &ignore_size, &mut |_| {}).unwrap();
    assert_eq!((info.records, info.accesses, info.distinct_pages), (113_872, 113_872, 48_974));
    #[allow(clippy::disallowed_methods)] // a test of reading files needs one
    let bytes = zstd::decode_all(&*std::fs::read(&path).unwrap()).unwrap();
    for lost in 1..24 {
        let error =
            check_error("w92.oracleGeneral", &bytes[lost..bytes.len() - (24 - lost)], &ignore_size, &[]);
        assert!(error.records_read() < 100, "{lost} bytes lost: {error}");
    }

    let mut pgt = Vec::new();
    let header = trace::convert(&path, &ReadOptions::default(), &mut pgt, &mut |_| {}).unwrap();
    assert!(header.accesses > 113_872 && header.records == 113_872);
    let direct = drain(trace::open(&path, &ReadOptions::default()).unwrap()).unwrap();
    assert!(read("w92.pgt", &pgt, &ReadOptions::default()).unwrap() == direct);
    let distinct = direct.iter().map(|access| access.1).max().unwrap() + 1;
    assert_eq!(header.objects[0].pages, distinct);
}

#[test]
fn a_pgt_converted_again_stays_what_it_was() {
    let bytes = [oracle_record(1, 900, 50_000), oracle_record(2, 3, 1)].concat();
    let file = Scratch::new("again.oracleGeneral", &bytes);
    let options = ReadOptions { keep_ids: true, page_size: Some(16384), ..ReadOptions::default() };
    let mut once = Vec::new();
    trace::convert(&file.0, &options, &mut once, &mut |_| {}).unwrap();
    for (name, stored) in
        [("again.pgt", once.clone()), ("again.pgt.zst", zstd::encode_all(&once[..], 3).unwrap())]
    {
        let converted = Scratch::new(name, &stored);
        let mut twice = Vec::new();
        trace::convert(&converted.0, &ReadOptions::default(), &mut twice, &mut |_| {}).unwrap();
        assert!(once == twice, "{name}");
    }
}

#[test]
fn a_pgt_cut_short_is_refused_when_it_is_opened() {
    let bytes = [oracle_record(1, 900, 50_000), oracle_record(2, 3, 1)].concat();
    let file = Scratch::new("cut.oracleGeneral", &bytes);
    let mut whole = Vec::new();
    trace::convert(&file.0, &ReadOptions::default(), &mut whole, &mut |_| {}).unwrap();
    for cut in 32..whole.len() {
        let cut = Scratch::new("cut.pgt", &whole[..cut]);
        let error = trace::open(&cut.0, &ReadOptions::default()).err().unwrap();
        assert!(error.to_string().contains("truncated"), "{error}");
    }
}

/// Eight requests as libCacheSim 0.3.5 wrote them, by version. Every third one writes, which the first version does not tell.
#[test]
fn an_lcs_is_read_as_its_version_has_it() {
    let written = [
        (1, &include_bytes!("lcs/version-1.lcs.zst")[..]),
        (2, include_bytes!("lcs/version-2.lcs.zst")),
        (3, include_bytes!("lcs/version-3.lcs.zst")),
        (8, include_bytes!("lcs/version-8.lcs.zst")),
    ];
    for (version, bytes) in written {
        let bytes = zstd::decode_all(bytes).unwrap();
        let told = |record: usize| version > 1 && record.is_multiple_of(3);
        // Ids in order: 7, 8, 7, 9 of two pages, 8, 7, another one of three pages, 7.
        let pages = [(0, 0), (1, 1), (0, 2), (2, 3), (3, 3), (1, 4), (0, 5), (4, 6), (5, 6), (6, 6), (0, 7)];
        let expected: Vec<Plain> = pages.iter().map(|&(page, record)| (0, page, told(record))).collect();
        for name in ["t.lcs", "anything"] {
            check(name, &bytes, &ReadOptions::default(), &expected);
        }
        let one_each = ReadOptions { ignore_size: true, ..ReadOptions::default() };
        assert_eq!(read("t.lcs", &bytes, &one_each).unwrap().len(), 8);
        check_error("t.lcs", &bytes[..bytes.len() - 1], &ReadOptions::default(), &["truncated"]);
        let record = (bytes.len() - 8192) / 8;
        let parts = ["counts 8 records, found 7"];
        check_error("t.lcs", &bytes[..bytes.len() - record], &ReadOptions::default(), &parts);
        let mut other = bytes.clone();
        other[8] = 9;
        check_error("t.lcs", &other, &ReadOptions::default(), &["found 9"]);
        other[8191] = 0;
        check_error("t.lcs", &other, &as_format(Format::Lcs), &["not an lcs file"]);
    }
}

/// A request of a vscsi trace in the form of either version: command, bytes, sector.
fn vscsi(version: u16, (command, bytes, sector): (u16, u32, u64)) -> Vec<u8> {
    let (command, tag) = (command.to_le_bytes(), (version << 8 | 3).to_le_bytes());
    let [serial, segments] = [71u32, 1].map(u32::to_le_bytes);
    let (bytes, sector, time) =
        (bytes.to_le_bytes(), sector.to_le_bytes(), 5_633_898_368_802u64.to_le_bytes());
    match version {
        1 => [&serial[..], &bytes, &segments, &command, &tag, &sector, &time].concat(),
        _ => [&command[..], &tag, &serial, &bytes, &segments, &sector, &time, &500u64.to_le_bytes()].concat(),
    }
}

#[test]
fn both_versions_of_a_vscsi_trace_say_the_same() {
    // read(10), write(10) across a border of pages, test unit ready, write(16).
    let requests =
        [(0x28, 8192, 1000), (0x2a, 512, 1007), (0x2a, 4096, 1007), (0, 0, 0), (0x8a, 512, 42_932_745)];
    let expected = [
        (0, 125, false),
        (0, 126, false),
        (0, 125, true),
        (0, 125, true),
        (0, 126, true),
        (0, 5_366_593, true),
    ];
    for version in [1, 2] {
        let bytes: Vec<u8> = requests.into_iter().flat_map(|request| vscsi(version, request)).collect();
        check("t.vscsi", &bytes, &ReadOptions::default(), &expected);
        let record = bytes.len() / requests.len();
        check_cuts("t.vscsi", &bytes, &ReadOptions::default(), |cut| cut > 0 && cut.is_multiple_of(record));
        check_error("t.vscsi", &bytes[1..], &ReadOptions::default(), &["neither version"]);
        let torn = [&bytes[..record], &bytes[record + 1..]].concat();
        check_error("t.vscsi", &torn, &ReadOptions::default(), &["another version", "lost or gained"]);
        let far = vscsi(version, (0x28, 4096, u64::MAX / 2));
        check_error("t.vscsi", &far, &ReadOptions::default(), &["exceeds the number range"]);
    }
}
