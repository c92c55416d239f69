//! The C ABI of the module.
//!
//! The caller writes a request into [`play_request`]'s buffer, calls [`play_ask`], and reads the answer at [`play_answer`]. The buffers belong to
//! this module, so that no pointer of the caller's is ever read. A panic ends the call in a trap; its message is in [`play_answer`] then, and the
//! page goes back to an earlier copy of the memory.

use std::cell::RefCell;

use crate::session::Session;

thread_local! {
    static CALLS: RefCell<Calls> = RefCell::default();
    /// Apart from the rest, which is borrowed when a call panics.
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The session and the buffers.
#[derive(Default)]
struct Calls {
    session: Session,
    request: Vec<u8>,
}

/// Returns a buffer for a request of so many bytes. It is valid until the next call.
#[allow(
    unsafe_code,
    reason = "the attribute exports the function; no other function of the module has its name"
)]
#[unsafe(no_mangle)]
pub extern "C" fn play_request(length: usize) -> *mut u8 {
    CALLS.with_borrow_mut(|calls| {
        calls.request.clear();
        calls.request.resize(length, 0);
        calls.request.as_mut_ptr()
    })
}

/// Does what the request asks for. Returns the length of the answer in bytes.
#[allow(
    unsafe_code,
    reason = "the attribute exports the function; no other function of the module has its name"
)]
#[unsafe(no_mangle)]
pub extern "C" fn play_ask() -> usize {
    std::panic::set_hook(Box::new(|panic| ANSWER.set(panic.to_string())));
    // A trap without a panic, such as a failed allocation, must not have the answer of the call before it.
    ANSWER.set(String::new());
    let answer = CALLS.with_borrow_mut(|calls| {
        let Calls { session, request } = calls;
        session.answer(request)
    });
    let length = answer.len();
    ANSWER.set(answer);
    length
}

/// The last answer: JSON, or the message of the panic that ended the call.
#[allow(
    unsafe_code,
    reason = "the attribute exports the function; no other function of the module has its name"
)]
#[unsafe(no_mangle)]
pub extern "C" fn play_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// The length of the last answer in bytes.
#[allow(
    unsafe_code,
    reason = "the attribute exports the function; no other function of the module has its name"
)]
#[unsafe(no_mangle)]
pub extern "C" fn play_answer_length() -> usize {
    ANSWER.with_borrow(String::len)
}

/// The words of the last frame. They are valid until the next call.
#[allow(
    unsafe_code,
    reason = "the attribute exports the function; no other function of the module has its name"
)]
#[unsafe(no_mangle)]
pub extern "C" fn play_frame() -> *const u32 {
    CALLS.with_borrow(|calls| calls.session.frame().as_ptr())
}

/// The number of words of the last frame.
#[allow(
    unsafe_code,
    reason = "the attribute exports the function; no other function of the module has its name"
)]
#[unsafe(no_mangle)]
pub extern "C" fn play_frame_length() -> usize {
    CALLS.with_borrow(|calls| calls.session.frame().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_that_is_not_json_is_answered_with_an_error() {
        let buffer = play_request(5);
        assert!(!buffer.is_null());
        // Zeroes, as nobody has written there.
        let length = play_ask();
        assert_eq!(length, play_answer_length());
        let answer = ANSWER.with_borrow(String::clone);
        assert!(answer.starts_with("{\"error\":\"request: "), "{answer}");
        assert_eq!(play_frame_length(), 0);
    }
}
