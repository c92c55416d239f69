//! Checks of answers: the first sum that is wrong, as a text.

/// Returns the formatted text as an error unless a sum of an answer holds.
macro_rules! holds {
    ($is_so:expr, $($said:tt)*) => {
        if !$is_so {
            return Err(format!($($said)*));
        }
    };
}
pub(crate) use holds;
