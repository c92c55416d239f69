//! Drains arbitrary bytes as a trace, which must neither panic nor run away.

use std::io::Cursor;

use crate::trace::{ColumnNames, CsvOptions, Delimiter, Format, PageIds, ReadOptions, Use, from_reader};

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

/// Reads bytes as a trace of this format, in each way that its options allow.
pub fn read_as(format: Format, bytes: &[u8]) {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    drain(bytes, &options);
    if format.uses(Use::PageIds) {
        for page_ids in [PageIds::Dense, PageIds::AsGiven] {
            drain(bytes, &ReadOptions { page_ids, ..options.clone() });
        }
    }
    if format.uses(Use::ImplausibleOk) {
        // Hardly any bytes are plausible.
        drain(bytes, &ReadOptions { implausible_ok: true, ..options.clone() });
    }
    if format.uses(Use::Columns) {
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
            drain(
                bytes,
                &ReadOptions { csv: CsvOptions { delimiter, ..columns.clone() }, ..options.clone() },
            );
        }
    }
}

/// Reads bytes as whatever they announce themselves to be.
pub fn detected(bytes: &[u8]) {
    drain(bytes, &ReadOptions::default());
}
