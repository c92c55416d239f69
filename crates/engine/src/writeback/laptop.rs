//! Laptop mode (`vm.laptop_mode`): a disk that is awake anyway writes all dirty pages, so that it need not be woken for them.
//!
//! ```text
//!   a read has ended ─► the device's timer is set, anew with each read ─► it goes off: all that is dirty on the device is written
//!   a writer         ─► the flusher begins in the background only when someone is held up, not at the background threshold
//!   reclaim          ─► writes nothing as long as it gets on without
//! ```
//! To wake a disk costs more than a transfer. So writes are deferred until a read wakes the disk, and are done then. Periodic writes after
//! half a minute are unchanged: a user who needs longer sleep of the disk raises `vm.dirty_expire_centisecs`, too, and takes the risk.
//!
//! Reclaim: up to 7.x a call may write below priority 10; in 2010 when it has scanned one and a half times the pages that it
//! needs. By now there is no laptop mode in it at all (`reclaim.laptop_mode`). The kernel's documentation of laptop mode says
//! when a disk is written. [reclaim 2.1; machine 5.7, 9.3; mglru-2026 2.15]
//!
//! The sources leave open what follows. Reads of swap set no timer, as no file system is on its device. Each device has its own timer, as only
//! that device is awake. The flusher's later start is that of 2010, where the task that has just written itself wakes it. Since writers sleep
//! instead, the first of them that has to sleep wakes it.

use crate::core::Core;
use crate::memory::file::Inode;
use crate::state::State;
use crate::units::{FileId, Nanos};
use crate::writeback::WritebackReason;

impl Core {
    /// A read of a file has ended: its disk is awake.
    #[doc(alias = "laptop_io_completion")]
    #[cold]
    pub(crate) fn laptop_read_done(&mut self, file: FileId) {
        let Inode { bdi, .. } = self.mm.memory.file(file).inode;
        let at = self.by.now + Nanos(u64::from(self.mm.config.laptop_mode) * Nanos::SECOND.0);
        let of = &mut self.writeback.bdis[bdi.index()];
        let is_first = of.laptop_timer.replace(at).is_none();
        // One that sleeps for an earlier time finds the later one when it is over.
        if is_first && let Some(flusher) = of.flusher {
            self.wake(flusher);
        }
    }

    /// The flusher of a device looks at its timer: asks for all that is dirty if it has gone off.
    #[doc(alias = "laptop_mode_timer_fn")]
    pub(super) fn laptop_timer(&mut self, bdi: usize) {
        let of = &mut self.writeback.bdis[bdi];
        if of.laptop_timer.is_none_or(|at| at > self.by.now) {
            return;
        }
        of.laptop_timer = None;
        for wb in of.wbs.clone() {
            self.request_writeback(wb, WritebackReason::LaptopTimer, u64::MAX);
        }
    }
}

impl State {
    pub(crate) fn is_laptop_mode(&self) -> bool {
        self.config.laptop_mode > 0
    }
}
