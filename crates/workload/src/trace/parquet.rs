//! Parquet: its columns as the text of a CSV, so that columns are found, chosen and reported as there.
//!
//! A file has its index at the end, so all of its bytes are in memory while it is read; rows are decoded 4,096 at a time. Columns that are lists or
//! structs have no counterpart in a CSV and are left out. Without the feature `parquet` there is no reader, and the error says that.

use super::error::TraceError;
use super::options::ReadOptions;
use super::replay::TraceReader;
use super::source::Source;

/// The reader of a Parquet file.
#[cfg(not(feature = "parquet"))]
pub(super) fn open(source: Source, _options: &ReadOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    Err(source.error("this build does not read Parquet").help(
        "use a release or the Python package, build with `cargo build --release --features parquet`, or convert the file to CSV",
    ))
}

/// The reader of a Parquet file.
#[cfg(feature = "parquet")]
pub(super) fn open(mut source: Source, options: &ReadOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    use super::options::Delimiter;
    let bytes = source.take_all()?;
    let rows = rows::Rows::new(bytes).map_err(|error| source.error(rows::told(&error)))?;
    let mut text = Source::new(source.file(), Box::new(rows))?;
    text.set_format(super::format::Format::Parquet);
    let mut options = options.clone();
    options.csv.delimiter = Some(Delimiter::Byte(b','));
    options.csv.header = true;
    Ok(Box::new(super::replay::Replay::new(super::csv::Csv::new(text, &options)?, &options)))
}

#[cfg(feature = "parquet")]
mod rows {
    use std::io::{self, Read, Write};

    use parquet::basic::LogicalType;
    use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
    use parquet::data_type::DataType;
    use parquet::errors::ParquetError;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    /// Rows that are decoded at a time.
    const BATCH: usize = 4096;

    /// The rows of a file as lines of text, after a line with the names of its columns.
    pub(super) struct Rows {
        file: SerializedFileReader<bytes::Bytes>,
        /// Columns that a line has, by their numbers in the file, and whether their whole numbers have no sign.
        columns: Vec<(usize, bool)>,
        /// The next group of rows.
        group: usize,
        readers: Vec<ColumnReader>,
        left: usize,
        text: Vec<u8>,
        /// Bytes of `text` that were read.
        read: usize,
    }

    /// What is wrong, with what can be done about it.
    pub(super) fn told(error: &ParquetError) -> String {
        let hint = match error.to_string().contains("Disabled feature at compile time") {
            true => ": write the file with snappy, zstd or no compression",
            false => "",
        };
        format!("cannot read the Parquet file: {error}{hint}")
    }

    impl Rows {
        pub(super) fn new(bytes: Vec<u8>) -> Result<Rows, ParquetError> {
            let file = SerializedFileReader::new(bytes::Bytes::from(bytes))?;
            let schema = file.metadata().file_metadata().schema_descr_ptr();
            let (mut columns, mut text) = (Vec::new(), Vec::new());
            for (at, column) in schema.columns().iter().enumerate() {
                if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
                    continue;
                }
                let is_unsigned =
                    matches!(column.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed);
                field(&mut text, column.name().as_bytes(), columns.is_empty());
                columns.push((at, is_unsigned));
            }
            text.push(b'\n');
            Ok(Rows { file, columns, group: 0, readers: Vec::new(), left: 0, text, read: 0 })
        }

        /// Decodes the next rows; returns whether there are any.
        fn fill(&mut self) -> Result<bool, ParquetError> {
            self.text.clear();
            self.read = 0;
            while self.left == 0 {
                if self.group == self.file.num_row_groups() {
                    return Ok(false);
                }
                let group = self.file.get_row_group(self.group)?;
                let reader = |&(at, _): &(usize, bool)| group.get_column_reader(at);
                self.readers = self.columns.iter().map(reader).collect::<Result<_, _>>()?;
                self.left = group.metadata().num_rows() as usize;
                self.group += 1;
            }
            let rows = self.left.min(BATCH);
            let columns = self.readers.iter_mut().zip(&self.columns);
            let decoded = columns.map(|(reader, &(_, is_unsigned))| decode(reader, is_unsigned, rows));
            let decoded: Vec<Vec<Vec<u8>>> = decoded.collect::<Result<_, _>>()?;
            for row in 0..rows {
                for (at, column) in decoded.iter().enumerate() {
                    field(&mut self.text, &column[row], at == 0);
                }
                self.text.push(b'\n');
            }
            self.left -= rows;
            Ok(true)
        }
    }

    impl Read for Rows {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.read == self.text.len() && !self.fill().map_err(|error| io::Error::other(told(&error)))? {
                return Ok(0);
            }
            let count = buffer.len().min(self.text.len() - self.read);
            buffer[..count].copy_from_slice(&self.text[self.read..self.read + count]);
            self.read += count;
            Ok(count)
        }
    }

    /// Appends a field. Quotes keep delimiters and comments from being read as such.
    fn field(text: &mut Vec<u8>, value: &[u8], is_first: bool) {
        if !is_first {
            text.push(b',');
        }
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".:/_-+".contains(byte);
        if !value.is_empty() && value.iter().all(is_plain) {
            return text.extend(value);
        }
        text.push(b'"');
        for &byte in value {
            match byte {
                b'"' => text.extend(b"\"\""),
                // A line ends a record.
                b'\n' | b'\r' => text.push(b' '),
                byte => text.push(byte),
            }
        }
        text.push(b'"');
    }

    /// The next values of a column as text, empty where there is none.
    fn decode(
        reader: &mut ColumnReader,
        is_unsigned: bool,
        rows: usize,
    ) -> Result<Vec<Vec<u8>>, ParquetError> {
        fn shown(value: impl std::fmt::Display) -> Vec<u8> {
            let mut text = Vec::new();
            write!(text, "{value}").expect("memory takes it");
            text
        }
        match reader {
            ColumnReader::BoolColumnReader(of) => values(of, rows, |value| shown(u8::from(*value))),
            ColumnReader::Int32ColumnReader(of) if is_unsigned => {
                values(of, rows, |value| shown(*value as u32))
            }
            ColumnReader::Int32ColumnReader(of) => values(of, rows, |value| shown(value)),
            ColumnReader::Int64ColumnReader(of) if is_unsigned => {
                values(of, rows, |value| shown(*value as u64))
            }
            ColumnReader::Int64ColumnReader(of) => values(of, rows, |value| shown(value)),
            ColumnReader::Int96ColumnReader(of) => values(of, rows, |value| shown(value.to_nanos())),
            ColumnReader::FloatColumnReader(of) => values(of, rows, |value| shown(value)),
            ColumnReader::DoubleColumnReader(of) => values(of, rows, |value| shown(value)),
            ColumnReader::ByteArrayColumnReader(of) => values(of, rows, |value| value.data().to_vec()),
            ColumnReader::FixedLenByteArrayColumnReader(of) => values(of, rows, |value| {
                let hex = value.data().iter().map(|byte| format!("{byte:02x}"));
                hex.collect::<String>().into_bytes()
            }),
        }
    }

    fn values<T: DataType>(
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        shown: impl Fn(&T::T) -> Vec<u8>,
    ) -> Result<Vec<Vec<u8>>, ParquetError> {
        let (mut levels, mut values, mut read) = (Vec::new(), Vec::new(), 0);
        while read < rows {
            let (records, ..) = reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General(format!("a column has {read} rows, expected {rows}")));
            }
            read += records;
        }
        // A column that may not be empty has no levels.
        if levels.is_empty() {
            return Ok(values.iter().map(shown).collect());
        }
        let mut values = values.iter();
        let value = |level: i16| if level > 0 { values.next().map(&shown) } else { None };
        Ok(levels.into_iter().map(value).map(Option::unwrap_or_default).collect())
    }
}
