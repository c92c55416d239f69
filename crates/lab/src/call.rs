//! Results, remarks and the end of a command that another program calls: they are that program's, and not this process's.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a command has handed back.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// What it would print with `--json`.
    pub(crate) result: Option<String>,
    /// What it would remark on standard error.
    pub(crate) remarks: Vec<String>,
}

/// A call under way.
struct UnderWay {
    kept: Kept,
    stop: Arc<AtomicBool>,
}

thread_local! {
    /// The call that this thread is in.
    static HERE: RefCell<Option<UnderWay>> = const { RefCell::new(None) };
}

/// Does what a call asks for, which ends soon once `stop` is set.
pub(crate) fn during<T>(stop: &Arc<AtomicBool>, does: impl FnOnce() -> T) -> (T, Kept) {
    HERE.set(Some(UnderWay { kept: Kept::default(), stop: Arc::clone(stop) }));
    let done = does();
    let under_way = HERE.take().expect("only this function takes it");
    (done, under_way.kept)
}

/// Keeps a result for whoever has called, if this is a call.
pub(crate) fn keep(text: &str) -> bool {
    with(|call| call.kept.result = Some(text.to_string())).is_some()
}

/// Keeps a remark likewise.
pub(crate) fn keep_remark(text: &str) -> bool {
    with(|call| call.kept.remarks.push(text.trim().to_string())).is_some()
}

/// Whether this thread is in a call.
pub(crate) fn is_call() -> bool {
    with(|_| ()).is_some()
}

/// The flag that ends the call that this thread is in.
pub(crate) fn stop() -> Option<Arc<AtomicBool>> {
    with(|call| Arc::clone(&call.stop))
}

/// Whether the call that this thread is in is to end.
pub(crate) fn is_to_stop() -> bool {
    with(|call| call.stop.load(Relaxed)).unwrap_or(false)
}

fn with<T>(of: impl FnOnce(&mut UnderWay) -> T) -> Option<T> {
    HERE.with_borrow_mut(|here| here.as_mut().map(of))
}
