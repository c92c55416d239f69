//! A result in columns: the rows that `--format csv` prints, with types.

use std::sync::Arc;

use numpy::{PyArray1, ToPyArray};
use pageout_lab::Rows;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use serde_json::Value;

use crate::shared;

/// Values of a column, one after the other as Arrow has them.
pub(crate) enum Values {
    Whole(Vec<i64>),
    Number(Vec<f64>),
    /// A bit each, and how many.
    Flag(Vec<u8>, usize),
    /// Where each text begins, and where the last one ends.
    Text(Vec<i32>, Vec<u8>),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Flag(_, length) => *length,
            Values::Text(offsets, _) => offsets.len() - 1,
        }
    }

    /// What Arrow calls its type.
    pub(crate) fn format(&self) -> &'static str {
        match self {
            Values::Whole(_) => "l",
            Values::Number(_) => "g",
            Values::Flag(..) => "b",
            Values::Text(..) => "u",
        }
    }
}

/// A column.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) values: Values,
    /// How many have no value, and a bit each that is 1 for those that have; nothing where all have.
    pub(crate) validity: Option<(usize, Vec<u8>)>,
}

/// A bit each.
fn bits(of: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let mut bits = vec![0_u8; of.len().div_ceil(8)];
    of.enumerate().for_each(|(at, is_set)| bits[at / 8] |= u8::from(is_set) << (at % 8));
    bits
}

impl Column {
    fn of(name: String, cells: &[&Value]) -> PyResult<Column> {
        let there = || cells.iter().filter(|cell| !cell.is_null());
        let values = if there().next().is_some() && there().all(|cell| cell.is_boolean()) {
            Values::Flag(bits(cells.iter().map(|cell| cell.as_bool() == Some(true))), cells.len())
        } else if there().next().is_some() && there().all(|cell| cell.as_i64().is_some()) {
            Values::Whole(cells.iter().map(|cell| cell.as_i64().unwrap_or(0)).collect())
        } else if there().next().is_some() && there().all(|cell| cell.is_number()) {
            Values::Number(cells.iter().map(|cell| cell.as_f64().unwrap_or(f64::NAN)).collect())
        } else {
            let (mut offsets, mut bytes) = (vec![0_i32], Vec::new());
            for cell in cells {
                match cell {
                    Value::Null => {}
                    Value::String(text) => bytes.extend_from_slice(text.as_bytes()),
                    other => bytes.extend_from_slice(other.to_string().as_bytes()),
                }
                let end = i32::try_from(bytes.len())
                    .map_err(|_| PyValueError::new_err("a column of texts is longer than 2 GiB"))?;
                offsets.push(end);
            }
            Values::Text(offsets, bytes)
        };
        let nulls = cells.iter().filter(|cell| cell.is_null()).count();
        let validity = (nulls > 0).then(|| (nulls, bits(cells.iter().map(|cell| !cell.is_null()))));
        Ok(Column { name, values, validity })
    }

    fn is_there(&self, at: usize) -> bool {
        self.validity.as_ref().is_none_or(|(_, bits)| bits[at / 8] >> (at % 8) & 1 == 1)
    }

    /// As an array of numpy: numbers with `nan` where there is none, texts as objects.
    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.values {
            Values::Whole(values) if self.validity.is_none() => Ok(values.to_pyarray(py).into_any()),
            Values::Whole(values) => {
                let value =
                    |(at, value): (usize, &i64)| if self.is_there(at) { *value as f64 } else { f64::NAN };
                let values = values.iter().enumerate().map(value).collect();
                Ok(PyArray1::from_vec(py, values).into_any())
            }
            Values::Number(values) => Ok(values.to_pyarray(py).into_any()),
            Values::Flag(bits, length) if self.validity.is_none() => {
                let flags = (0..*length).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect();
                Ok(PyArray1::from_vec(py, flags).into_any())
            }
            _ => {
                let numpy = py.import("numpy")?;
                numpy.call_method1("array", (self.list(py)?, "object"))
            }
        }
    }

    /// As a list of Python's own values.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for at in 0..self.values.len() {
            if !self.is_there(at) {
                list.append(py.None())?;
                continue;
            }
            match &self.values {
                Values::Whole(values) => list.append(values[at])?,
                Values::Number(values) => list.append(values[at])?,
                Values::Flag(bits, _) => list.append(bits[at / 8] >> (at % 8) & 1 == 1)?,
                Values::Text(offsets, bytes) => {
                    let text = &bytes[offsets[at] as usize..offsets[at + 1] as usize];
                    list.append(String::from_utf8_lossy(text))?;
                }
            }
        }
        Ok(list)
    }
}

/// A result in rows and columns. polars, pandas, pyarrow and DuckDB accept it unchanged.
#[pyclass(frozen, module = "pageout")]
pub(crate) struct Table {
    columns: Arc<Vec<Column>>,
}

impl Table {
    /// Columns of these names, made of rows.
    pub(crate) fn of((names, rows): Rows) -> PyResult<Table> {
        let column = |(at, name): (usize, String)| {
            let cells: Vec<&Value> = rows.iter().map(|row| &row[at]).collect();
            Column::of(name, &cells)
        };
        let columns = names.into_iter().enumerate().map(column).collect::<PyResult<_>>()?;
        Ok(Table { columns: Arc::new(columns) })
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.columns.iter().find(|column| column.name == name);
        column.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.array(py)
    }

    /// A column as a list.
    fn list<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.columns.iter().find(|column| column.name == name);
        column.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.list(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Arrow lets a producer give what it has.
        let _ = requested_schema;
        shared::stream(py, &self.columns)
    }
}
