//! One function a reader: drains arbitrary bytes as that format, and must neither panic nor run away.

use std::io::Cursor;

use crate::trace::{ColumnNames, CsvOptions, Delimiter, Format, PageIds, ReadOptions, from_reader};

/// A few bytes can ask for gigabytes of accesses; draining stops here.
const ACCESSES_MAX: usize = 1 << 14;

fn drain(bytes: &[u8], options: &ReadOptions) {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut stream) = from_reader("fuzz", input, options) else { return };
    let mut out = Vec::new();
    let mut total = 0;
    while total < ACCESSES_MAX {
        match stream.fill(&mut out, 4096) {
            Ok(0) | Err(_) => return,
            Ok(count) => total += count,
        }
        out.clear();
    }
}

fn drain_as(format: Format, bytes: &[u8]) {
    for page_ids in [PageIds::Auto, PageIds::Dense, PageIds::AsGiven] {
        drain(bytes, &ReadOptions { format: Some(format), page_ids, ..ReadOptions::default() });
    }
}

/// Reads bytes as `.pgt`.
pub fn pgt(bytes: &[u8]) {
    drain(bytes, &ReadOptions { format: Some(Format::Pgt), ..ReadOptions::default() });
}

/// Reads bytes as oracleGeneral.
pub fn oracle_general(bytes: &[u8]) {
    drain_as(Format::OracleGeneral, bytes);
    // Hardly any bytes are plausible.
    let format = Some(Format::OracleGeneral);
    drain(bytes, &ReadOptions { format, implausible_ok: true, ..ReadOptions::default() });
}

/// Reads bytes as lcs.
pub fn lcs(bytes: &[u8]) {
    drain_as(Format::Lcs, bytes);
}

/// Reads bytes as a vscsi trace.
pub fn vscsi(bytes: &[u8]) {
    drain_as(Format::Vscsi, bytes);
}

/// As CSV: with a header line, with columns by place, and with those of published collections.
pub fn csv(bytes: &[u8]) {
    for format in [Format::Csv, Format::Msr, Format::Alibaba, Format::Tencent, Format::Spc] {
        drain_as(format, bytes);
    }
    let place = |column: &str| Some(column.to_string());
    let columns = CsvOptions {
        header: false,
        object: Some(ColumnNames(vec!["#1".to_string()])),
        offset: place("#2"),
        size: place("#3"),
        op: place("#4"),
        ..CsvOptions::default()
    };
    for delimiter in [None, Some(Delimiter::Blanks)] {
        let csv = CsvOptions { delimiter, ..columns.clone() };
        drain(bytes, &ReadOptions { format: Some(Format::Csv), csv, ..ReadOptions::default() });
    }
}

/// As a fio log, of whichever version it says.
pub fn fio_iolog(bytes: &[u8]) {
    drain_as(Format::FioIolog, bytes);
}

/// As the ground truth's words.
pub fn words(bytes: &[u8]) {
    drain_as(Format::Words, bytes);
}

/// As page numbers in text.
pub fn pages_text(bytes: &[u8]) {
    drain_as(Format::PagesText, bytes);
}

/// As u32 page numbers.
pub fn pages_u32(bytes: &[u8]) {
    drain_as(Format::PagesU32, bytes);
}

/// As u64 page numbers.
pub fn pages_u64(bytes: &[u8]) {
    drain_as(Format::PagesU64, bytes);
}

/// As whatever the bytes announce themselves to be.
pub fn detected(bytes: &[u8]) {
    drain(bytes, &ReadOptions::default());
}
