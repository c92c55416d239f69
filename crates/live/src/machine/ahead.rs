//! Pages that several writes need, requested together.

use pageout_engine::PAGE_SIZE;

use super::{Accessed, LiveMachine, Want};
use crate::error::Error;
use crate::file::Inner as File;

impl LiveMachine {
    /// Requests reads of pages of a file, as far as memory is free, and waits for none of them. They begin together.
    pub(crate) fn read_pages_ahead(&self, file: &File, group: usize, pages: &[u64]) -> Result<(), Error> {
        let mut locked = self.drain(self.lock()?)?;
        for &page in pages {
            locked = self.await_change(locked, file)?;
            // It may have been made shorter meanwhile.
            if page >= file.bytes().div_ceil(PAGE_SIZE) {
                continue;
            }
            let miss = locked.begin(Accessed::File(file, group), Want { page, bytes: PAGE_SIZE })?;
            let (task, access) = (miss.hired.task, miss.access);
            let begun = locked.engine.readahead(task, access.object, page, 1);
            let refused = match begun {
                Ok(step) => {
                    (locked, _) = self.see_through(locked, task, step)?;
                    let step = locked.engine.pay(task, access);
                    (locked, _) = self.see_through(locked, task, step)?;
                    None
                }
                Err(error) => Some(error),
            };
            locked.ended(&miss);
            if let Some(error) = refused {
                drop(self.read(locked, 0)?);
                return Err(error.into());
            }
        }
        drop(self.read(locked, 0)?);
        Ok(())
    }
}
