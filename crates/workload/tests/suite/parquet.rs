//! Traces as Parquet: in a build with the feature, and what a build without it reports.

use std::io::Cursor;

use pageout_workload::{AccessStream, ReadOptions, trace};

fn read(bytes: Vec<u8>, options: &ReadOptions) -> Result<Box<dyn AccessStream>, String> {
    trace::from_reader("t.parquet", Box::new(Cursor::new(bytes)), options).map_err(|error| error.to_string())
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_without_the_feature_names_it() {
    let error = read(b"PAR1....".to_vec(), &ReadOptions::default()).err().unwrap();
    assert!(error.contains("this build does not read Parquet"), "{error}");
    assert!(error.contains("--features parquet"), "{error}");
}

#[cfg(feature = "parquet")]
mod with_it {
    use std::sync::Arc;

    use parquet::basic::{Compression, Repetition, Type as Physical};
    use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;

    use super::*;

    /// Groups of rows of three columns: an id that may be missing, a size, an operation.
    fn file(compression: Compression, groups: &[Vec<(Option<i64>, i32, &str)>]) -> Vec<u8> {
        let field = |name: &str, physical, repetition| {
            Arc::new(
                Type::primitive_type_builder(name, physical).with_repetition(repetition).build().unwrap(),
            )
        };
        let fields = vec![
            field("obj_id", Physical::INT64, Repetition::OPTIONAL),
            field("size", Physical::INT32, Repetition::REQUIRED),
            field("op", Physical::BYTE_ARRAY, Repetition::REQUIRED),
        ];
        let schema = Arc::new(Type::group_type_builder("t").with_fields(fields).build().unwrap());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
        for rows in groups {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let ids: Vec<i64> = rows.iter().filter_map(|row| row.0).collect();
            let levels: Vec<i16> = rows.iter().map(|row| row.0.is_some().into()).collect();
            column.typed::<Int64Type>().write_batch(&ids, Some(&levels), None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let sizes: Vec<i32> = rows.iter().map(|row| row.1).collect();
            column.typed::<Int32Type>().write_batch(&sizes, None, None).unwrap();
            column.close().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let ops: Vec<ByteArray> = rows.iter().map(|row| row.2.into()).collect();
            column.typed::<ByteArrayType>().write_batch(&ops, None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
        bytes
    }

    fn pages(bytes: Vec<u8>) -> Result<Vec<(u64, bool)>, String> {
        let options = ReadOptions { ignore_size: true, ..ReadOptions::default() };
        let mut stream = read(bytes, &options)?;
        let mut out = Vec::new();
        while stream.fill(&mut out, 1000).map_err(|error| error.to_string())? > 0 {}
        Ok(out.iter().map(|access| (access.page(), access.is_write())).collect())
    }

    #[test]
    fn parquet_is_read_like_a_csv_of_its_columns() {
        let long: Vec<_> = (0..10_000).map(|at| (Some(at % 5_000), 100, "get")).collect();
        let groups = [vec![(Some(-7), 100, "get"), (Some(9), 5, "set")], long];
        for compression in
            [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())]
        {
            let pages = pages(file(compression, &groups)).unwrap();
            assert_eq!(pages.len(), 10_002);
            assert_eq!(pages[..3], [(0, false), (1, true), (2, false)]);
            // The id 9 is known; every id of the second half is.
            assert_eq!(pages[11], (1, false));
            assert_eq!(pages[2..5_002], pages[5_002..]);
        }
    }

    #[test]
    fn damaged_parquet_is_an_error_with_its_place() {
        let whole = file(Compression::SNAPPY, &[vec![(Some(1), 1, "get")]]);
        for cut in [5, whole.len() / 2, whole.len() - 1] {
            let error = pages(whole[..cut].to_vec()).unwrap_err();
            assert!(error.contains("t.parquet") && error.contains("Parquet"), "{error}");
        }
        let error = pages(file(Compression::SNAPPY, &[vec![(Some(1), 1, "frobnicate")]])).unwrap_err();
        assert!(error.contains("unknown operation `frobnicate`"), "{error}");
    }
}
