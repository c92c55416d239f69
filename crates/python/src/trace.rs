//! Arrays as traces: `pageout.trace(pages=array)`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pageout_study::bench::{InMemory, forget, keep, kept};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::shared::Pages;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Accesses in an array, as commands take a trace: by a name in place of a file's.
#[pyclass(frozen, module = "pageout")]
pub(crate) struct Trace {
    name: String,
    accesses: usize,
    distinct_pages: u32,
    is_copied: bool,
}

#[pymethods]
impl Trace {
    #[new]
    fn new(py: Python<'_>, pages: &Bound<'_, PyAny>) -> PyResult<Trace> {
        let name = format!("<array {}>", NUMBER.fetch_add(1, Relaxed) + 1);
        let (kept, accesses, is_copied) = if let Ok(array) = pages.extract::<PyReadonlyArray1<'_, u32>>() {
            let accesses = array.len();
            match Pages::of(&array) {
                Some(pages) => {
                    let (kept, is_copied) = py.detach(|| InMemory::of(Arc::new(pages)));
                    (kept, accesses, is_copied)
                }
                None => {
                    let pages: Vec<u32> = array.as_array().iter().copied().collect();
                    (py.detach(|| InMemory::of(Arc::new(pages)).0), accesses, true)
                }
            }
        } else if let Ok(array) = pages.extract::<PyReadonlyArray1<'_, u64>>() {
            let pages: Vec<u64> = array.as_array().iter().copied().collect();
            let accesses = pages.len();
            (py.detach(|| InMemory::numbered(pages.into_iter())), accesses, true)
        } else if let Ok(array) = pages.extract::<PyReadonlyArray1<'_, i64>>() {
            if array.as_array().iter().any(|&page| page < 0) {
                return Err(PyValueError::new_err("pages: a page is a number from 0 on"));
            }
            let pages: Vec<u64> = array.as_array().iter().map(|&page| page as u64).collect();
            let accesses = pages.len();
            (py.detach(|| InMemory::numbered(pages.into_iter())), accesses, true)
        } else {
            return Err(PyTypeError::new_err(
                "pages: an array of numpy of one dimension, of uint32, uint64 or int64",
            ));
        };
        if accesses == 0 {
            return Err(PyValueError::new_err("pages: there is no access"));
        }
        let distinct_pages = kept.distinct_pages;
        keep(PathBuf::from(&name), kept);
        Ok(Trace { name, accesses, distinct_pages, is_copied })
    }

    /// What commands call it.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// How many distinct pages it accesses.
    #[getter]
    fn distinct_pages(&self) -> u32 {
        self.distinct_pages
    }

    /// Returns true if the pages had to be copied: numbers of another type, with gaps, or not one after the other.
    #[getter]
    fn is_copied(&self) -> bool {
        self.is_copied
    }

    /// Writes the pages to a file, a number a line.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let kept =
            kept(&PathBuf::from(&self.name)).ok_or_else(|| PyValueError::new_err("the trace is gone"))?;
        py.detach(|| {
            let mut file = BufWriter::new(File::create(path)?);
            kept.pages().iter().try_for_each(|page| writeln!(file, "{page}"))?;
            file.flush()
        })?;
        Ok(())
    }

    fn __len__(&self) -> usize {
        self.accesses
    }

    fn __repr__(&self) -> String {
        format!("<pageout.Trace: {} accesses to {} pages>", self.accesses, self.distinct_pages)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        forget(&PathBuf::from(&self.name));
    }
}
