//! Memory that Rust and Python share: arrays of numpy that are read and written while Python's lock is not held, and results as Arrow's C stream.
//!
//! All unsafe code of this crate is here; each block says what it relies on.

#![allow(unsafe_code)] // the other side of these interfaces is C

use std::ffi::{CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::table::{Column, Values};

/// An array of numpy that is read while Python's lock is not held.
pub(crate) struct Pages {
    /// Keeps the memory where it is: numpy can't resize an array that others refer to.
    _array: Py<PyArray1<u32>>,
    start: *const u32,
    length: usize,
}

// SAFETY: the memory belongs to the array, which lives as long as this does, and whichever thread drops it takes Python's lock for that.
unsafe impl Send for Pages {}
// SAFETY: it is only read here. `pageout.trace` requires that no other thread writes to it meanwhile.
unsafe impl Sync for Pages {}

impl Pages {
    /// The array's own memory, if its values are one after the other; nothing is copied.
    pub(crate) fn of(array: &PyReadonlyArray1<'_, u32>) -> Option<Pages> {
        let slice = array.as_slice().ok()?;
        Some(Pages { start: slice.as_ptr(), length: slice.len(), _array: Bound::clone(array).unbind() })
    }
}

impl AsRef<[u32]> for Pages {
    fn as_ref(&self) -> &[u32] {
        // SAFETY: start and length were those of a slice of the array, which is alive and is not resized.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// A byte a slot, 1 where its page was used: written here while Python's lock is not held, read and cleared by an object of Python through the array.
pub(crate) struct UseBits {
    array: Py<PyArray1<u8>>,
    start: *mut u8,
    length: usize,
}

// SAFETY: as of `Pages`; and each byte is read and written as an atomic.
unsafe impl Send for UseBits {}

impl UseBits {
    pub(crate) fn new(py: Python<'_>, length: usize) -> UseBits {
        let array = PyArray1::<u8>::zeros(py, length, false);
        UseBits { start: array.data(), length, array: array.unbind() }
    }

    /// Extends the capacity to this number of slots, in another array.
    pub(crate) fn grow(&mut self, py: Python<'_>, length: usize) {
        let larger = UseBits::new(py, length);
        (0..self.length.min(length)).for_each(|at| larger.set(at, self.get(at)));
        *self = larger;
    }

    pub(crate) fn array<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.array.bind(py).clone()
    }

    fn at(&self, at: usize) -> &AtomicU8 {
        assert!(at < self.length, "there is a byte for each slot");
        // SAFETY: it is within the array's memory, which lives as long as the array that is kept here. Python reads and writes it only in a call of the
        // object, which is made by the thread that is here.
        unsafe { AtomicU8::from_ptr(self.start.add(at)) }
    }

    #[inline]
    pub(crate) fn set(&self, at: usize, is_used: bool) {
        self.at(at).store(is_used.into(), Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> bool {
        self.at(at).load(Relaxed) != 0
    }
}

/// A state of this thread that Python keeps between two calls: to make one costs microseconds.
struct ThreadState {
    lock: ffi::PyGILState_STATE,
    state: *mut ffi::PyThreadState,
}

impl ThreadState {
    /// Nothing in a thread of Python's own, which has one until Python ends.
    fn new() -> Option<ThreadState> {
        // SAFETY: Python is running, as one of its objects is about to be called; this only looks.
        let is_pythons = unsafe { !ffi::PyGILState_GetThisThreadState().is_null() };
        // SAFETY: Python is running. The lock that is taken here is released immediately, by the call that returns the state.
        let new =
            || unsafe { ThreadState { lock: ffi::PyGILState_Ensure(), state: ffi::PyEval_SaveThread() } };
        (!is_pythons).then(new)
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        // SAFETY: it belongs to this thread, which ends. No call has taken it meanwhile without returning it: Python's own calls come in pairs.
        unsafe {
            ffi::PyEval_RestoreThread(self.state);
            ffi::PyGILState_Release(self.lock);
        }
    }
}

thread_local! {
    static STATE: Option<ThreadState> = ThreadState::new();
}

/// Has Python keep the state of this thread until the thread ends.
pub(crate) fn keep_thread_state() {
    STATE.with(|_| ());
}

/// Python's lock, taken by this thread for several calls: taking it for each costs more than a short call.
pub(crate) struct Lock(ffi::PyGILState_STATE, PhantomData<*const ()>);

impl Lock {
    pub(crate) fn take() -> Lock {
        keep_thread_state();
        // SAFETY: Python is running, as there is an object to be called. The lock is released when this is dropped, in this thread: it can't be sent.
        Lock(unsafe { ffi::PyGILState_Ensure() }, PhantomData)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: it was taken in this thread, and whatever took it since has given it back.
        unsafe { ffi::PyGILState_Release(self.0) }
    }
}

/// `struct ArrowSchema` (<https://arrow.apache.org/docs/format/CDataInterface.html>).
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream` (<https://arrow.apache.org/docs/format/CStreamInterface.html>).
#[repr(C)]
struct Stream {
    get_schema: unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int,
    get_next: unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut Stream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// What a stream gives: all columns as one batch, once.
struct Source {
    columns: Arc<Vec<Column>>,
    is_given: bool,
}

/// What a schema points into.
struct SchemaParts {
    _format: CString,
    _name: CString,
    children: Vec<*mut Schema>,
}

/// What an array points into.
struct ArrayParts {
    _columns: Arc<Vec<Column>>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

fn schema(format: &str, name: &str, children: Vec<*mut Schema>) -> Schema {
    let text = |text: &str| CString::new(text.replace('\0', "")).unwrap_or_default();
    let mut parts = Box::new(SchemaParts { _format: text(format), _name: text(name), children });
    Schema {
        format: parts._format.as_ptr(),
        name: parts._name.as_ptr(),
        metadata: ptr::null(),
        flags: 2, // any value may be null
        n_children: parts.children.len() as i64,
        children: parts.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(parts).cast(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: Arrow has a consumer call this once, with a schema of this module that it has not freed.
    let schema = unsafe { &mut *schema };
    // SAFETY: this is where `schema` has put them.
    let parts = unsafe { Box::from_raw(schema.private_data.cast::<SchemaParts>()) };
    for &child in &parts.children {
        // SAFETY: each child was boxed by `get_schema`; one that a consumer has moved away has no `release` any more.
        let mut child = unsafe { Box::from_raw(child) };
        if let Some(release) = child.release {
            // SAFETY: this module created it, and it is not released.
            unsafe { release(&raw mut *child) };
        }
    }
    schema.release = None;
}

fn array(
    columns: &Arc<Vec<Column>>,
    length: usize,
    nulls: usize,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
) -> Array {
    let mut parts = Box::new(ArrayParts { _columns: Arc::clone(columns), buffers, children });
    Array {
        length: length as i64,
        null_count: nulls as i64,
        offset: 0,
        n_buffers: parts.buffers.len() as i64,
        n_children: parts.children.len() as i64,
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as of a schema.
    let array = unsafe { &mut *array };
    // SAFETY: this is where `array` has put them.
    let parts = unsafe { Box::from_raw(array.private_data.cast::<ArrayParts>()) };
    for &child in &parts.children {
        // SAFETY: each child was boxed by `get_next`; one that a consumer has moved away has no `release` any more.
        let mut child = unsafe { Box::from_raw(child) };
        if let Some(release) = child.release {
            // SAFETY: this module created it, and it is not released.
            unsafe { release(&raw mut *child) };
        }
    }
    array.release = None;
}

/// The source of a stream.
///
/// # Safety
/// The stream is one of `stream`, not released, and no other thread uses it meanwhile.
unsafe fn source<'a>(stream: *mut Stream) -> &'a mut Source {
    // SAFETY: the caller's; this is where `stream` has put it.
    unsafe { &mut *(*stream).private_data.cast::<Source>() }
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: Arrow has a consumer call this with a stream of this module, one call at a time.
    let columns = &unsafe { source(stream) }.columns;
    let child =
        |column: &Column| Box::into_raw(Box::new(schema(column.values.format(), &column.name, Vec::new())));
    let whole = schema("+s", "", columns.iter().map(child).collect());
    // SAFETY: the consumer passes memory for a schema, of which nothing is read.
    unsafe { out.write(whole) };
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as above.
    let source = unsafe { source(stream) };
    if std::mem::replace(&mut source.is_given, true) {
        // SAFETY: the consumer passes memory for an array. One that is released says that there are no more; all zeroes are a value of each of its fields.
        unsafe { out.write(std::mem::zeroed()) };
        return 0;
    }
    let columns = &source.columns;
    let rows = columns.first().map_or(0, |column| column.values.len());
    let child = |column: &Column| {
        let (nulls, validity) = match &column.validity {
            Some((nulls, bits)) => (*nulls, bits.as_ptr().cast::<c_void>()),
            None => (0, ptr::null()),
        };
        let buffers: Vec<*const c_void> = match &column.values {
            Values::Whole(values) => vec![validity, values.as_ptr().cast()],
            Values::Number(values) => vec![validity, values.as_ptr().cast()],
            Values::Flag(bits, _) => vec![validity, bits.as_ptr().cast()],
            Values::Text(offsets, bytes) => vec![validity, offsets.as_ptr().cast(), bytes.as_ptr().cast()],
        };
        Box::into_raw(Box::new(array(columns, rows, nulls, buffers, Vec::new())))
    };
    let children = columns.iter().map(child).collect();
    let whole = array(columns, rows, 0, vec![ptr::null()], children);
    // SAFETY: the consumer passes memory for an array, of which nothing is read.
    unsafe { out.write(whole) };
    0
}

unsafe extern "C" fn get_last_error(_stream: *mut Stream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: as of a schema.
    let stream = unsafe { &mut *stream };
    // SAFETY: this is where `stream` has put it.
    drop(unsafe { Box::from_raw(stream.private_data.cast::<Source>()) });
    stream.release = None;
}

/// A stream that has not been handed out yet. The consumer that takes it moves its contents away and leaves it released.
#[repr(transparent)] // a pointer to it is one to the stream
struct Unused(Stream);

// SAFETY: what a stream points to is its own, and plain data.
unsafe impl Send for Unused {}

impl Drop for Unused {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: no consumer has taken it, and it ends here.
            unsafe { release(&raw mut self.0) }
        }
    }
}

/// The columns as a capsule that data frames take (`__arrow_c_stream__`).
pub(crate) fn stream<'py>(py: Python<'py>, columns: &Arc<Vec<Column>>) -> PyResult<Bound<'py, PyCapsule>> {
    let source = Box::new(Source { columns: Arc::clone(columns), is_given: false });
    let stream = Stream {
        get_schema,
        get_next,
        get_last_error,
        release: Some(release_stream),
        private_data: Box::into_raw(source).cast(),
    };
    PyCapsule::new_with_value(py, Unused(stream), c"arrow_array_stream")
}
