//! Parquet of a result: the rows of its CSV, with a type a column. For the feature `parquet`.
//!
//! The type of a column is integer, number, boolean or text, depending on all of its values. A missing value is null.

use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::csv::{Cells, scalar};

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Whole,
    Number,
    Truth,
    Text,
}

impl Kind {
    /// The kind of these values; a null fits any kind.
    fn of<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> Kind {
        let all = |is: fn(&Value) -> bool| values.clone().all(|value| value.is_null() || is(value));
        match () {
            () if values.clone().all(Value::is_null) => Kind::Text,
            () if all(Value::is_i64) => Kind::Whole,
            () if all(Value::is_number) => Kind::Number,
            () if all(Value::is_boolean) => Kind::Truth,
            () => Kind::Text,
        }
    }

    fn field(self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let physical = match self {
            Kind::Whole => Physical::INT64,
            Kind::Number => Physical::DOUBLE,
            Kind::Truth => Physical::BOOLEAN,
            Kind::Text => Physical::BYTE_ARRAY,
        };
        let converted = if self == Kind::Text { ConvertedType::UTF8 } else { ConvertedType::NONE };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted)
            .build()?;
        Ok(Arc::new(field))
    }

    fn write(self, column: &mut SerializedColumnWriter, values: &[&Value]) -> Result<(), ParquetError> {
        let there = values.iter().copied().filter(|value| !value.is_null());
        let levels: Vec<i16> = values.iter().map(|value| i16::from(!value.is_null())).collect();
        match self {
            Kind::Whole => {
                let values: Vec<i64> = there.filter_map(Value::as_i64).collect();
                column.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
            }
            Kind::Number => {
                let values: Vec<f64> = there.filter_map(Value::as_f64).collect();
                column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            Kind::Truth => {
                let values: Vec<bool> = there.filter_map(Value::as_bool).collect();
                column.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
            }
            Kind::Text => {
                let values: Vec<ByteArray> = there.map(|value| scalar(value).into_bytes().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
            }
        }
        Ok(())
    }
}

/// Rows as a file.
pub(super) fn parquet(cells: &Cells) -> Result<Vec<u8>, ParquetError> {
    let values = |at: usize| cells.rows.iter().map(move |row| &row[at]);
    let kinds: Vec<Kind> = (0..cells.columns.len()).map(|at| Kind::of(values(at))).collect();
    let fields = cells.columns.iter().zip(&kinds).map(|(name, kind)| kind.field(name));
    let schema = Type::group_type_builder("result").with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(WriterProperties::default()))?;
    let mut group = writer.next_row_group()?;
    let mut at = 0;
    while let Some(mut column) = group.next_column()? {
        kinds[at].write(&mut column, &values(at).collect::<Vec<_>>())?;
        column.close()?;
        at += 1;
    }
    group.close()?;
    writer.into_inner()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_come_back_with_their_types_and_nulls() {
        let cells = Cells {
            columns: ["policy", "misses", "miss_ratio", "complete", "error"].map(str::to_string).to_vec(),
            rows: vec![
                vec![json!("lru"), json!(9), json!(0.5), json!(true), Value::Null],
                vec![json!("opt, \"bound\""), Value::Null, json!(1), json!(false), Value::Null],
            ],
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parquet(&cells).unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<Vec<(String, Field)>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| {
                row.unwrap().get_column_iter().map(|(name, value)| (name.clone(), value.clone())).collect()
            })
            .collect();
        let row = |text: &str, misses, ratio, complete| {
            let named = ["policy", "misses", "miss_ratio", "complete", "error"].map(str::to_string);
            let fields =
                [Field::Str(text.into()), misses, Field::Double(ratio), Field::Bool(complete), Field::Null];
            named.into_iter().zip(fields).collect::<Vec<_>>()
        };
        assert_eq!(rows[0], row("lru", Field::Long(9), 0.5, true));
        assert_eq!(rows[1], row("opt, \"bound\"", Field::Null, 1.0, false));
        assert_eq!(rows.len(), 2);
    }
}
