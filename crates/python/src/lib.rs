//! The Python module: studies as functions, policies in Python, results as data frames take them.
//!
//! Each function is a study: its `Ask` goes in as JSON, and its answer comes out as the program prints it. So both say the same.

// It is the place of files and threads, as the program is.
#![allow(clippy::disallowed_methods)]

use pyo3::prelude::*;

mod ask; // a question under way, and Ctrl-C
mod policy; // classes of Python as policies
mod shared; // memory that Rust and Python share: all unsafe code
mod table; // results in columns
mod trace; // arrays as traces

/// The native half of the package `pageout`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<trace::Trace>()?;
    module.add_function(wrap_pyfunction!(ask::ask, module)?)?;
    module.add_function(wrap_pyfunction!(ask::main, module)?)?;
    module.add_function(wrap_pyfunction!(ask::wait_for_left, module)?)?;
    module.add_function(wrap_pyfunction!(policy::is_in_policy, module)?)?;
    module.add_function(wrap_pyfunction!(policy::bring, module)?)
}
