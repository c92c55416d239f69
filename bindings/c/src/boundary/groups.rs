//! Groups that come and go, advice, and the version.

use std::ffi::{CStr, c_char, c_int};

use pageout_live::{Advice, Error, File};

use super::{handle, text};
use crate::failure::{Failure, outcome_int};
use crate::setup::Cache;

/// `PAGEOUT_ADVICE_...`
pub(super) mod advice {
    use std::ffi::c_int;

    pub(in crate::boundary) const NORMAL: c_int = 0;
    pub(in crate::boundary) const SEQUENTIAL: c_int = 1;
    pub(in crate::boundary) const RANDOM: c_int = 2;
    pub(in crate::boundary) const NOREUSE: c_int = 3;
    pub(in crate::boundary) const WILLNEED: c_int = 4;
    pub(in crate::boundary) const DONTNEED: c_int = 5;
    pub(in crate::boundary) const COLD: c_int = 6;
    pub(in crate::boundary) const PAGEOUT: c_int = 7;
    pub(in crate::boundary) const FREE: c_int = 8;
}

/// The version of the library, as `PAGEOUT_VERSION` is that of the header.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

#[unsafe(no_mangle)]
extern "C" fn pageout_version() -> *const c_char {
    VERSION.as_ptr()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_group_new(
    cache: *mut Cache,
    name: *const c_char,
    limits: *const c_char,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, a text, and a text or NULL.
        unsafe {
            let (cache, name) = (handle(cache, "cache")?, text(name, "name")?);
            let limits = if limits.is_null() { "{}" } else { text(limits, "limits")? };
            cache.add_group(name, limits)?;
        }
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_group_remove(cache: *mut Cache, name: *const c_char) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, and a text.
        let (cache, name) = unsafe { (handle(cache, "cache")?, text(name, "name")?) };
        cache.remove_group(name)?;
        Ok(0)
    })
}

/// Makes a call for the part of a range that is within something of this length, which may change meanwhile. `size` 0: up to the end.
pub(super) fn within(
    len: impl Fn() -> u64,
    (offset, size): (u64, u64),
    call: impl Fn(std::ops::Range<u64>) -> Result<(), Error>,
) -> Result<i64, Failure> {
    loop {
        let seen = len();
        let end = if size == 0 { seen } else { offset.saturating_add(size).min(seen) };
        if offset >= end {
            return Ok(0);
        }
        match call(offset..end) {
            Err(Error::BeyondEnd { .. }) if len() < seen => {}
            outcome => return Ok(outcome.map(|()| 0)?),
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_advise(file: *mut File, advice: c_int, offset: u64, size: u64) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let file = unsafe { handle(file, "file") }?;
        let of_handle = |advice| -> Result<i64, Failure> {
            file.advise(advice, 0..0)?;
            Ok(0)
        };
        match advice {
            advice::NORMAL => of_handle(Advice::Normal),
            advice::SEQUENTIAL => of_handle(Advice::Sequential),
            advice::RANDOM => of_handle(Advice::Random),
            advice::NOREUSE => of_handle(Advice::NoReuse),
            advice::WILLNEED => {
                within(|| file.len(), (offset, size), |bytes| file.advise(Advice::WillNeed, bytes))
            }
            advice::DONTNEED => {
                within(|| file.len(), (offset, size), |bytes| file.advise(Advice::DontNeed, bytes))
            }
            _ => Err(Failure::invalid(format!("unknown advice for a file: {advice}"))),
        }
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_prefetch(file: *mut File, offset: u64, size: u64) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let file = unsafe { handle(file, "file") }?;
        within(|| file.len(), (offset, size), |bytes| file.prefetch(bytes))
    })
}

#[cfg(test)]
mod tests {

    #[test]
    fn header_has_the_version_of_the_library() {
        let header = include_str!("../../include/pageout.h");
        let value = |name: &str| {
            let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
            line.unwrap_or_else(|| panic!("{name} is not defined")).trim().trim_matches('"')
        };
        assert_eq!(value("PAGEOUT_VERSION"), env!("CARGO_PKG_VERSION"));
        for (name, part) in [
            ("PAGEOUT_VERSION_MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
            ("PAGEOUT_VERSION_MINOR", env!("CARGO_PKG_VERSION_MINOR")),
            ("PAGEOUT_VERSION_PATCH", env!("CARGO_PKG_VERSION_PATCH")),
        ] {
            assert_eq!(value(name), part);
        }
    }
}
