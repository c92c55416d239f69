//! The functions of the header. Arguments of C are checked here. Each `unsafe` relies on the header's obligations of the caller: a pointer is a
//! handle which is not freed yet, or points to the documented object. Properties that can be checked are checked: NULL and UTF-8.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::task::Poll;
use std::time::Duration;

use pageout_live::{Error, File, Open};

use crate::batch::{Batch, Read, buffer_size};
use crate::failure::{self, Failure, outcome, outcome_int};
use crate::held::{Held, How, Owner};
use crate::setup::Cache;

mod groups; // groups that come and go, advice, the version
mod regions; // anonymous memory

const RDWR: c_int = 1;
const BUFFERED: c_int = 2;
const RANDOM: c_int = 4;
const CREATE: c_int = 8;
const STABLE: c_int = 16;
const OWN_LOCKS: c_int = 32;

const SYNC_ALL: c_int = 0;
const SYNC_DATA: c_int = 1;
const SYNC_WRITE: c_int = 2;

/// What a handle is of.
///
/// # Safety
/// NULL, or a handle that is not freed meanwhile.
unsafe fn handle<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// Gives C something, where it says.
///
/// # Safety
/// NULL, or a place for a pointer.
unsafe fn give<T>(
    place: *mut *mut T,
    name: &str,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the caller's word.
    let place = unsafe { place.as_mut() }.ok_or_else(|| null(name))?;
    *place = Box::into_raw(Box::new(make()?));
    Ok(())
}

/// Takes back what C was given.
///
/// # Safety
/// NULL, or a handle that C uses nowhere else.
unsafe fn take<T>(pointer: *mut T) {
    let free = || {
        if !pointer.is_null() {
            // SAFETY: `give` has made it, and the caller guarantees that it is not used any more.
            drop(unsafe { Box::from_raw(pointer) });
        }
        Ok(0)
    };
    outcome(free);
}

/// A text of C.
///
/// # Safety
/// NULL, or a text that ends and lasts.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's word.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|error| Failure::invalid(format!("`{name}` is not UTF-8: {error}")))
}

fn null(name: &str) -> Failure {
    Failure::invalid(format!("`{name}` is NULL"))
}

/// Checks how many bytes C says that a buffer has.
fn check_size(size: usize) -> Result<(), Failure> {
    match buffer_size(size as u64) {
        Some(_) => Ok(()),
        None => Err(Failure::invalid(format!("`size` is {size}, which is larger than any buffer"))),
    }
}

/// The bytes that C writes, and does not change meanwhile.
///
/// # Safety
/// NULL, or `size` bytes that exist and that no code writes to.
unsafe fn bytes_of<'a>(buf: *const c_void, size: usize) -> Result<&'a [u8], Failure> {
    check_size(size)?;
    match size {
        0 => Ok(&[]),
        _ if buf.is_null() => Err(null("buf")),
        // SAFETY: the caller's word; they are no more than a slice may have.
        size => Ok(unsafe { std::slice::from_raw_parts(buf.cast::<u8>(), size) }),
    }
}

/// Checks where a file is to end.
fn check_end(end: Option<u64>) -> Result<(), Failure> {
    match end.map(i64::try_from) {
        Some(Ok(_)) => Ok(()),
        _ => Err(Failure::new(libc::EFBIG, format!("the maximum length of a file is {} bytes", i64::MAX))),
    }
}

/// A count that C can have.
fn count(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("no memory has so many bytes")
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_new(json: *const c_char, cache: *mut *mut Cache) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a text or NULL, and a place for a pointer.
        unsafe {
            let json = if json.is_null() { "{}" } else { text(json, "json")? };
            give(cache, "cache", || Cache::new(json))?;
        }
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_free(cache: *mut Cache) {
    // SAFETY: the header: a handle that is not used any more.
    unsafe { take(cache) };
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_set_budget(cache: *mut Cache, bytes: u64) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        unsafe { handle(cache, "cache") }?.memory.set_budget(bytes)?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_budget(cache: *mut Cache) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let bytes = unsafe { handle(cache, "cache") }?.memory.budget();
        Ok(i64::try_from(bytes).expect("no machine has so much memory"))
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_text(
    cache: *mut Cache,
    path: *const c_char,
    to: *mut c_char,
    size: usize,
) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle, and a text.
        let (cache, path) = unsafe { (handle(cache, "cache")?, text(path, "path")?) };
        check_size(size)?;
        if size > 0 && to.is_null() {
            return Err(null("text"));
        }
        let whole = cache.text(path)?;
        if size > 0 {
            let part = whole.len().min(size - 1);
            // SAFETY: the header: `size` bytes exist, these are no more, and no other code uses them.
            unsafe {
                to.cast::<u8>().copy_from_nonoverlapping(whole.as_ptr(), part);
                to.add(part).write(0);
            }
        }
        Ok(count(whole.len()))
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_text_write(
    cache: *mut Cache,
    path: *const c_char,
    value: *const c_char,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, and two texts.
        let (cache, path, value) =
            unsafe { (handle(cache, "cache")?, text(path, "path")?, text(value, "value")?) };
        cache.memory.write(path, value)?;
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn pageout_strerror(error: i64) -> *const c_char {
    failure::strerror(error)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_open(
    cache: *mut Cache,
    path: *const c_char,
    flags: c_int,
    group: *const c_char,
    file: *mut *mut File,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, a text, a text or NULL, and a place for a pointer.
        unsafe {
            let cache = handle(cache, "cache")?;
            if path.is_null() {
                return Err(null("path"));
            }
            // A path need not be UTF-8.
            let path = OsStr::from_bytes(CStr::from_ptr(path).to_bytes());
            let mut how = open_as(flags)?;
            if !group.is_null() {
                how = how.group(&cache.group(text(group, "group")?)?);
            }
            give(file, "file", || Ok(cache.memory.open(path, how)?))?;
        }
        Ok(0)
    })
}

fn open_as(flags: c_int) -> Result<Open, Failure> {
    const KNOWN: c_int = RDWR | BUFFERED | RANDOM | CREATE | STABLE | OWN_LOCKS;
    let unknown = flags & !KNOWN;
    if unknown != 0 {
        let told =
            format!("unknown flags {unknown:#x} in {flags:#x} of pageout_open; known flags are {KNOWN:#x}");
        return Err(Failure::invalid(told));
    }
    let has = |flag| flags & flag != 0;
    if has(CREATE | STABLE | OWN_LOCKS) && !has(RDWR) {
        let flags = "PAGEOUT_CREATE, PAGEOUT_STABLE and PAGEOUT_OWN_LOCKS need PAGEOUT_RDWR";
        return Err(Failure::invalid(flags));
    }
    let how = match has(RDWR) {
        true if has(STABLE) => Open::read_write().create(has(CREATE)).stable_writes(true),
        true => Open::read_write().create(has(CREATE)),
        false => Open::read(),
    };
    let how = how.buffered(has(BUFFERED)).own_locks(has(OWN_LOCKS));
    Ok(if has(RANDOM) { how.random() } else { how })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_close(file: *mut File) {
    // SAFETY: the header: a handle that is not used any more.
    unsafe { take(file) };
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_forget(file: *mut File) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        unsafe { handle(file, "file") }?.clone().forget()?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_forget_and_discard(file: *mut File) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        unsafe { handle(file, "file") }?.clone().forget_and_discard()?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_size(file: *mut File) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let bytes = unsafe { handle(file, "file") }?.len();
        check_end(Some(bytes))?;
        Ok(bytes as i64)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_pread(file: *mut File, buf: *mut c_void, size: usize, offset: u64) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let file = unsafe { handle(file, "file") }?;
        check_size(size)?;
        if size > 0 && buf.is_null() {
            return Err(null("buf"));
        }
        loop {
            let len = (size as u64).min(file.len().saturating_sub(offset)) as usize;
            if len == 0 {
                return Ok(0);
            }
            // SAFETY: the header: `size` bytes exist, these are no more, and no other code uses them. For bytes that C has not written yet any value
            // is valid.
            let buf = unsafe { std::slice::from_raw_parts_mut(buf.cast::<u8>(), len) };
            match file.read_at(buf, offset) {
                // It was made shorter meanwhile.
                Err(Error::BeyondEnd { .. }) if file.len() < offset + len as u64 => {}
                outcome => {
                    outcome?;
                    return Ok(count(len));
                }
            }
        }
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_pwrite(file: *mut File, buf: *const c_void, size: usize, offset: u64) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let file = unsafe { handle(file, "file") }?;
        // SAFETY: the header: `size` bytes exist, and no code writes to them.
        let buf = unsafe { bytes_of(buf, size) }?;
        if size > 0 {
            check_end(offset.checked_add(size as u64))?;
        }
        file.write_at(buf, offset)?;
        Ok(count(size))
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_sync(file: *mut File, how: c_int) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let file = unsafe { handle(file, "file") }?;
        match how {
            SYNC_ALL => file.sync_all()?,
            SYNC_DATA => file.sync_data()?,
            SYNC_WRITE => file.write_back()?,
            _ => return Err(Failure::invalid(format!("unknown kind of sync: {how}"))),
        }
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_acknowledge(file: *mut File) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        unsafe { handle(file, "file") }?.acknowledge()?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_truncate(file: *mut File, size: u64) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let file = unsafe { handle(file, "file") }?;
        check_end(Some(size))?;
        file.set_len(size)?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_reload(file: *mut File) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        unsafe { handle(file, "file") }?.reload()?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_page_get(
    file: *mut File,
    page: u64,
    data: *mut *const c_void,
    held: *mut *mut Held,
) -> i64 {
    // SAFETY: the header: a handle, and two places for pointers.
    unsafe { page_get(|| Ok(Owner::File(handle(file, "file")?.clone())), page, data, held) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_page_get_mut(
    file: *mut File,
    page: u64,
    data: *mut *mut c_void,
    held: *mut *mut Held,
) -> i64 {
    // SAFETY: the header: a handle, and two places for pointers.
    unsafe { page_get_mut(|| Ok(Owner::File(handle(file, "file")?.clone())), page, data, held) }
}

/// Holds a page of a file or a region to read it.
///
/// # Safety
/// A pointer to such a handle or NULL, and NULL or places for pointers.
unsafe fn page_get(
    owner: impl FnOnce() -> Result<Owner, Failure>,
    page: u64,
    data: *mut *const c_void,
    held: *mut *mut Held,
) -> i64 {
    // SAFETY: the caller's word.
    outcome(|| unsafe { hold(owner, page, How::Read, data.cast::<*mut c_void>(), held) })
}

/// The same to read and write it.
///
/// # Safety
/// As [`page_get`].
unsafe fn page_get_mut(
    owner: impl FnOnce() -> Result<Owner, Failure>,
    page: u64,
    data: *mut *mut c_void,
    held: *mut *mut Held,
) -> i64 {
    // SAFETY: the caller's word.
    outcome(|| unsafe { hold(owner, page, How::Write, data, held) })
}

/// Holds a page for C. Returns its bytes.
///
/// # Safety
/// NULL, or places for pointers.
unsafe fn hold(
    owner: impl FnOnce() -> Result<Owner, Failure>,
    page: u64,
    how: How,
    data: *mut *mut c_void,
    held: *mut *mut Held,
) -> Result<i64, Failure> {
    let owner = owner()?;
    // SAFETY: the caller's word.
    let data = unsafe { data.as_mut() }.ok_or_else(|| null("data"))?;
    let mut bytes = 0;
    let make = || {
        let mut held = Held::new(owner, page, how)?;
        let place = held.place();
        (*data, bytes) = (place.0.cast(), place.1);
        Ok(held)
    };
    // SAFETY: the caller's word.
    unsafe { give(held, "held", make) }?;
    Ok(count(bytes))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_page_put(held: *mut Held) {
    // SAFETY: the header: a handle that is not used any more.
    unsafe { take(held) };
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_submit(
    file: *mut File,
    reads: *mut Read,
    n: usize,
    batch: *mut *mut Batch,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, so many reads whose buffers are the batch's, and a place for a pointer.
        unsafe {
            let file = handle(file, "file")?;
            let reads = match n {
                0 => &mut [],
                _ if reads.is_null() => return Err(null("reads")),
                n if n > isize::MAX as usize / size_of::<Read>() => {
                    return Err(Failure::invalid(format!("`n` is {n}, more reads than memory can hold")));
                }
                n => std::slice::from_raw_parts_mut(reads, n),
            };
            give(batch, "batch", || Batch::submit(file, reads))?;
        }
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_poll(batch: *mut Batch, timeout_ms: c_int) -> c_int {
    let mut is_over = false;
    let said = outcome_int(|| {
        // SAFETY: the header: a handle that one thread uses.
        let of = unsafe { batch.as_mut() }.ok_or_else(|| null("batch"))?;
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        match of.poll(timeout) {
            Poll::Pending => Ok(0),
            Poll::Ready(outcome) => {
                is_over = true;
                outcome.map(|()| 1)
            }
        }
    });
    if is_over {
        // SAFETY: it is over, and the header says that it is freed by that.
        unsafe { take(batch) };
    }
    said
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_cancel(batch: *mut Batch) {
    // SAFETY: the header: a handle that is not used any more.
    unsafe { take(batch) };
}
