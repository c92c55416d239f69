//! A copy out of a frame that others may be filling meanwhile.
//!
//! Such a copy is discarded ([`crate::gate`]), but it must not be undefined behaviour. Two threads race for the bytes, and of its own loads Rust
//! allows that only for atomic ones. So the compiler does not see the loads at all. It treats `rep movsb` as one instruction that may read anything,
//! and the instruction is as fast as `memcpy` for a page. Elsewhere, and under Miri, a loop of relaxed atomic loads does the same at half the speed.

/// Copies `to.len()` bytes from memory that others may write.
///
/// # Safety
/// From `from` on there must be this many bytes of memory that stays mapped, and that is disjoint from `to`. The pointer must permit writes to the
/// memory, as atomic loads require that.
#[inline(always)]
pub(crate) unsafe fn copy_out(from: *const u8, to: &mut [u8]) {
    #[cfg(feature = "shuttle")]
    let (from, to) = {
        let (first, rest) = to.split_at_mut(to.len() / 2);
        // SAFETY: passed on, for a part.
        unsafe { copy_at_once(from, first) };
        crate::sync::another_may_go_on();
        // SAFETY: so many bytes there are from `from` on, and more.
        (unsafe { from.add(first.len()) }, rest)
    };
    // SAFETY: passed on.
    unsafe { copy_at_once(from, to) };
}

/// The same, in one piece where shuttle lets another thread go on in the middle.
///
/// # Safety
/// As for [`copy_out`].
#[inline(always)]
unsafe fn copy_at_once(from: *const u8, to: &mut [u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction reads `to.len()` bytes from `from` on, which the caller vouches for, and writes as many to `to`, which is
    // borrowed for that alone. The direction flag is clear wherever Rust code runs. It changes no other register and no flag.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") to.len() => _,
            inout("rsi") from => _,
            inout("rdi") to.as_mut_ptr() => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    // SAFETY: passed on.
    unsafe {
        copy_by_loads(from, to);
    }
}

/// Has the processor fetch what is at an address, if anything.
#[inline(always)]
pub(crate) fn fetch(from: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction changes nothing but caches, and does nothing where no memory is.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(from.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = from;
}

/// The same by relaxed loads.
///
/// # Safety
/// As for [`copy_out`].
#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
unsafe fn copy_by_loads(from: *const u8, to: &mut [u8]) {
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

    let (head, rest) = to.split_at_mut(from.align_offset(8).min(to.len()));
    let byte = |at: usize| {
        // SAFETY: `at` is below the length that the caller vouches for, and a byte is aligned anywhere. Atomic loads race with nothing.
        unsafe { (*from.add(at).cast::<AtomicU8>()).load(Relaxed) }
    };
    head.iter_mut().enumerate().for_each(|(at, to)| *to = byte(at));
    let done = head.len();
    let (words, tail) = rest.as_chunks_mut::<8>();
    for (at, to) in words.iter_mut().enumerate() {
        // SAFETY: `from` plus `done` is a multiple of eight by `align_offset`, and eight bytes from there on are within the length.
        let word = unsafe { (*from.add(done + 8 * at).cast::<AtomicU64>()).load(Relaxed) };
        *to = word.to_ne_bytes();
    }
    let done = done + 8 * words.len();
    tail.iter_mut().enumerate().for_each(|(at, to)| *to = byte(done + at));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_byte_for_byte_wherever_it_begins_and_ends() {
        let mut from: Vec<u8> = (0..=255).cycle().take(600).collect();
        for (start, len) in [(0, 0), (0, 1), (0, 512), (1, 7), (3, 16), (5, 513), (8, 8), (7, 1)] {
            for copy in [copy_out, copy_by_loads] as [unsafe fn(*const u8, &mut [u8]); 2] {
                let mut to = vec![0; len];
                // SAFETY: the vector has 600 bytes, which nobody else has, and the other one is another.
                unsafe { copy(from[start..].as_mut_ptr(), &mut to) };
                assert_eq!(to, from[start..start + len]);
            }
        }
    }

    #[test]
    fn a_copy_beside_one_who_fills_the_frame_anew_is_of_one_page_or_counts_for_nothing() {
        use crate::atomic::{AtomicU64, Ordering::Relaxed, fence};
        use crate::gate::Gate;

        const TIMES: u64 = if cfg!(miri) { 60 } else { 20_000 };
        let words = [const { AtomicU64::new(0) }; 8];
        let (gate, page) = (Gate(AtomicU64::new(0)), AtomicU64::new(0));
        gate.open();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for next in 1..=TIMES {
                    while !gate.close() {
                        std::thread::yield_now();
                    }
                    page.store(next, Relaxed);
                    fence(crate::atomic::Ordering::SeqCst);
                    words.iter().for_each(|word| word.store(next, Relaxed));
                    gate.open();
                }
            });
            let mut to = [0; 64];
            let is_of = |bytes: &[u8], page: u64| bytes.chunks(8).all(|word| word == page.to_ne_bytes());
            let mut wanted = 0;
            while wanted < TIMES {
                wanted = page.load(Relaxed);
                if let Some(seen) = gate.begin() {
                    // SAFETY: there are 64 bytes of atomic words, for as long as this borrows them, and the array is another.
                    unsafe { copy_out(words.as_ptr().cast(), &mut to) };
                    if page.load(Relaxed) == wanted && gate.is_still(seen) {
                        assert!(is_of(&to, wanted), "{to:?} is not page {wanted}");
                    }
                }
                if gate.pin().is_ok() {
                    if page.load(Relaxed) == wanted {
                        assert!(words.iter().all(|word| word.load(Relaxed) == wanted));
                    }
                    gate.unpin();
                }
            }
        });
    }
}
