//! Regions: anonymous memory that may be larger than the budget.

use std::ffi::{c_char, c_int, c_void};

use pageout_live::{MapOptions, MappedRegion, Region, RegionAdvice, RegionOptions};

use super::groups::{advice, within};
use super::{bytes_of, check_end, check_size, count, give, handle, null, page_get, page_get_mut, take, text};
use crate::failure::{Failure, outcome, outcome_int};
use crate::held::{Held, Owner};
use crate::setup::Cache;

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_new(
    cache: *mut Cache,
    size: u64,
    group: *const c_char,
    region: *mut *mut Region,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, a text or NULL, and a place for a pointer.
        unsafe {
            let cache = handle(cache, "cache")?;
            check_end(Some(size))?;
            let mut options = RegionOptions::new();
            if !group.is_null() {
                options = options.group(&cache.group(text(group, "group")?)?);
            }
            give(region, "region", || Ok(cache.memory.region(size, options)?))?;
        }
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_free(region: *mut Region) {
    // SAFETY: the header: a handle that is not used any more.
    unsafe { take(region) };
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_size(region: *mut Region) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let bytes = unsafe { handle(region, "region") }?.len();
        check_end(Some(bytes))?;
        Ok(bytes as i64)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_resize(region: *mut Region, size: u64) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let region = unsafe { handle(region, "region") }?;
        check_end(Some(size))?;
        region.set_len(size)?;
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_read(
    region: *mut Region,
    buf: *mut c_void,
    size: usize,
    offset: u64,
) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let region = unsafe { handle(region, "region") }?;
        check_size(size)?;
        let buf = match size {
            0 => &mut [],
            _ if buf.is_null() => return Err(null("buf")),
            // SAFETY: the header: `size` bytes exist, no more than a slice may have, and no other code uses them. For bytes that C has not written yet
            // any value is valid.
            size => unsafe { std::slice::from_raw_parts_mut(buf.cast::<u8>(), size) },
        };
        region.read_at(buf, offset)?;
        Ok(count(size))
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_write(
    region: *mut Region,
    buf: *const c_void,
    size: usize,
    offset: u64,
) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let region = unsafe { handle(region, "region") }?;
        // SAFETY: the header: `size` bytes exist, and no code writes to them.
        let buf = unsafe { bytes_of(buf, size) }?;
        region.write_at(buf, offset)?;
        Ok(count(size))
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_advise(
    region: *mut Region,
    advice: c_int,
    offset: u64,
    size: u64,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let region = unsafe { handle(region, "region") }?;
        let advised = |advice| within(|| region.len(), (offset, size), |bytes| region.advise(advice, bytes));
        match advice {
            advice::WILLNEED => within(|| region.len(), (offset, size), |bytes| region.prefetch(bytes)),
            advice::DONTNEED => advised(RegionAdvice::DontNeed),
            advice::COLD => advised(RegionAdvice::Cold),
            advice::PAGEOUT => advised(RegionAdvice::PageOut),
            advice::FREE => advised(RegionAdvice::Free),
            _ => Err(Failure::invalid(format!("unknown advice for a region: {advice}"))),
        }
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_page_get(
    region: *mut Region,
    page: u64,
    data: *mut *const c_void,
    held: *mut *mut Held,
) -> i64 {
    // SAFETY: the header: a handle, and two places for pointers.
    unsafe { page_get(|| Ok(Owner::Region(handle(region, "region")?.clone())), page, data, held) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_region_page_get_mut(
    region: *mut Region,
    page: u64,
    data: *mut *mut c_void,
    held: *mut *mut Held,
) -> i64 {
    // SAFETY: the header: a handle, and two places for pointers.
    unsafe { page_get_mut(|| Ok(Owner::Region(handle(region, "region")?.clone())), page, data, held) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_map_new(
    cache: *mut Cache,
    size: u64,
    group: *const c_char,
    handlers: c_int,
    map: *mut *mut MappedRegion,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle, a text or NULL, and a place for a pointer.
        unsafe {
            let cache = handle(cache, "cache")?;
            check_end(Some(size))?;
            let mut options = MapOptions::new();
            if handlers != 0 {
                options = options.handlers(usize::try_from(handlers).unwrap_or(usize::MAX));
            }
            if !group.is_null() {
                options = options.group(&cache.group(text(group, "group")?)?);
            }
            give(map, "map", || Ok(cache.memory.map_region(size, options)?))?;
        }
        Ok(0)
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_map_address(map: *mut MappedRegion) -> *mut c_void {
    // SAFETY: the header: a handle, or NULL.
    unsafe { map.as_ref() }.map_or(std::ptr::null_mut(), |map| map.as_mut_ptr().cast())
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_map_advise(
    map: *mut MappedRegion,
    advice: c_int,
    offset: u64,
    size: u64,
) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        let map = unsafe { handle(map, "map") }?;
        let advised = |advice| within(|| map.len(), (offset, size), |bytes| map.advise(advice, bytes));
        match advice {
            advice::DONTNEED => advised(RegionAdvice::DontNeed),
            advice::COLD => advised(RegionAdvice::Cold),
            advice::PAGEOUT => advised(RegionAdvice::PageOut),
            advice::FREE => advised(RegionAdvice::Free),
            _ => Err(Failure::invalid(format!("unknown advice for a mapped region: {advice}"))),
        }
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_map_error(map: *mut MappedRegion) -> c_int {
    outcome_int(|| {
        // SAFETY: the header: a handle.
        match unsafe { handle(map, "map") }?.take_error() {
            Some(error) => Err(error.into()),
            None => Ok(0),
        }
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_map_retry_lost(map: *mut MappedRegion) -> i64 {
    outcome(|| {
        // SAFETY: the header: a handle.
        let lost = unsafe { handle(map, "map") }?.retry_lost();
        Ok(i64::try_from(lost).unwrap_or(i64::MAX))
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pageout_map_free(map: *mut MappedRegion) {
    // SAFETY: the header: a handle that is not used any more.
    unsafe { take(map) };
}
