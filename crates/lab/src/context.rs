//! What a command is run with, beside its arguments. The program makes one value of it, and so does each call of another program: no command looks into state of
//! the process.

use std::sync::Arc;

use crate::print::layout::Layout;
use crate::print::output::Output;

/// What a command is run with.
pub(crate) struct Context {
    /// Where its result and remarks go, and in which form.
    pub(crate) output: Arc<Output>,
}

impl Context {
    /// How its text is laid out.
    pub(crate) fn layout(&self) -> Layout {
        self.output.layout()
    }
}
