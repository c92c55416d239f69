//! The atomics of gates and rings: here those of std. `compared/tests/gate/` replaces them by those of loom, which tries all orders of the threads' actions.
//! Under shuttle, another thread may run before each of them.

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(feature = "shuttle")]
pub(crate) use watched::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// Between two accesses that are in the one order of all `SeqCst` accesses: nothing here. To loom such accesses are in no such order, and fences are.
#[inline(always)]
pub(crate) fn between_two() {}

#[cfg(feature = "shuttle")]
mod watched {
    pub(crate) use std::sync::atomic::{Ordering, fence};

    use crate::sync::another_may_go_on;

    /// One of std's, as large and with the same bits, that lets another thread go on first.
    macro_rules! watched {
        ($name:ident, $value:ty) => {
            #[derive(Default)]
            #[repr(transparent)]
            pub(crate) struct $name(std::sync::atomic::$name);

            impl $name {
                #[allow(dead_code, reason = "of tests")]
                pub(crate) const fn new(value: $value) -> $name {
                    $name(std::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    another_may_go_on();
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    another_may_go_on();
                    self.0.store(value, order);
                }

                #[allow(dead_code, reason = "of one of them")]
                pub(crate) fn compare_exchange(
                    &self,
                    from: $value,
                    to: $value,
                    done: Ordering,
                    not_done: Ordering,
                ) -> Result<$value, $value> {
                    another_may_go_on();
                    self.0.compare_exchange(from, to, done, not_done)
                }

                #[allow(dead_code, reason = "of one of them")]
                pub(crate) fn compare_exchange_weak(
                    &self,
                    from: $value,
                    to: $value,
                    done: Ordering,
                    not_done: Ordering,
                ) -> Result<$value, $value> {
                    self.compare_exchange(from, to, done, not_done)
                }

                #[allow(dead_code, reason = "of one of them")]
                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    another_may_go_on();
                    self.0.swap(value, order)
                }

                #[allow(dead_code, reason = "of some of them")]
                pub(crate) fn fetch_add(&self, more: $value, order: Ordering) -> $value {
                    another_may_go_on();
                    self.0.fetch_add(more, order)
                }

                #[allow(dead_code, reason = "of some of them")]
                pub(crate) fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                    another_may_go_on();
                    self.0.fetch_max(value, order)
                }

                #[allow(dead_code, reason = "of some of them")]
                pub(crate) fn fetch_sub(&self, less: $value, order: Ordering) -> $value {
                    another_may_go_on();
                    self.0.fetch_sub(less, order)
                }
            }
        };
    }

    watched!(AtomicU32, u32);
    watched!(AtomicU64, u64);
    watched!(AtomicUsize, usize);
}
