//! A page that C holds: a guard, together with the file or region that it borrows from.

use std::mem::ManuallyDrop;

use pageout_live::{Error, File, PageMut, PageRef, Region};

use crate::failure::Failure;

/// A guard of a page.
enum Guard<'a> {
    Read(PageRef<'a>),
    Write(PageMut<'a>),
}

/// What a page belongs to.
pub(crate) enum Owner {
    File(File),
    Region(Region),
}

/// How C holds a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    Read,
    Write,
}

/// A guard of a page, and a handle of its file or region.
pub(crate) struct Held {
    /// Borrows from `owner`, which is dropped after it.
    guard: ManuallyDrop<Guard<'static>>,
    owner: ManuallyDrop<Box<Owner>>,
}

// Any thread may put back what another one has got: the header says so.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Held>();
};

impl Owner {
    fn guard(&self, page: u64, how: How) -> Result<Guard<'_>, Error> {
        match (self, how) {
            (Owner::File(file), How::Read) => file.page(page).map(Guard::Read),
            (Owner::File(file), How::Write) => file.page_mut(page).map(Guard::Write),
            (Owner::Region(region), How::Read) => region.page(page).map(Guard::Read),
            (Owner::Region(region), How::Write) => region.page_mut(page).map(Guard::Write),
        }
    }
}

impl Held {
    pub(crate) fn new(owner: Owner, page: u64, how: How) -> Result<Held, Failure> {
        let owner = Box::new(owner);
        let guard = owner.guard(page, how)?;
        // SAFETY: what it borrows is at the end of an address that `owner` keeps, whatever moves, and `drop` ends the borrow before that.
        let guard = unsafe { std::mem::transmute::<Guard<'_>, Guard<'static>>(guard) };
        Ok(Held { guard: ManuallyDrop::new(guard), owner: ManuallyDrop::new(owner) })
    }

    /// Where the page is, and its bytes. C writes there only if the guard is one for writing.
    pub(crate) fn place(&mut self) -> (*mut u8, usize) {
        match &mut *self.guard {
            Guard::Read(page) => (page.as_ptr().cast_mut(), page.len()),
            Guard::Write(page) => (page.as_mut_ptr(), page.len()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: once, here, and in this order: the guard does not outlive its owner.
        unsafe {
            ManuallyDrop::drop(&mut self.guard);
            ManuallyDrop::drop(&mut self.owner);
        }
    }
}
