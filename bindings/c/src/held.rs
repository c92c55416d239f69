//! A page that C holds: a guard, together with the file that it borrows from.

use std::mem::ManuallyDrop;

use pageout_live::{File, PageRef};

use crate::failure::Failure;

/// A guard of a page, and a handle of its file.
pub(crate) struct Held {
    /// Borrows from `file`, which is dropped after it.
    guard: ManuallyDrop<PageRef<'static>>,
    file: ManuallyDrop<Box<File>>,
}

// Any thread may put back what another one has got: the header says so.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Held>();
};

impl Held {
    pub(crate) fn new(file: &File, page: u64) -> Result<Held, Failure> {
        let file = Box::new(file.clone());
        let guard = file.page(page)?;
        // SAFETY: what it borrows is at the end of an address that `file` keeps, whatever moves, and `drop` ends the borrow before that.
        let guard = unsafe { std::mem::transmute::<PageRef<'_>, PageRef<'static>>(guard) };
        Ok(Held { guard: ManuallyDrop::new(guard), file: ManuallyDrop::new(file) })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.guard
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: once, here, and in this order: the guard does not outlive its file.
        unsafe {
            ManuallyDrop::drop(&mut self.guard);
            ManuallyDrop::drop(&mut self.file);
        }
    }
}
