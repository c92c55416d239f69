//! placeholder
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant { DirtyLostAtUnmap, FrameReusedBeforeWritten, SlotFreedBeforeRead }
