//! Writeback errors (`errseq_t`): each open file reports a failed write once.
//!
//! A write fails long after the call that dirtied its page, and belongs to no task. So the error is kept with the file, and with the file system that
//! the file lives on. fsync of the file, or syncfs of the file system, returns it. A file that is opened later returns an error that was not reported
//! yet, and no other.

use crate::units::Nanos;

/// The reason why a device transfer failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoError {
    /// The device reported an error (EIO).
    Device,
}

/// Failed writes of a file, or of a file system.
#[derive(Clone, Copy, Default, Debug)]
pub struct WriteErrors {
    count: u64,
    /// Errors that were reported.
    told: u64,
    /// Errors that someone has said to know of.
    acknowledged: u64,
}

/// The pause of a file whose writes have failed (`writeback.failed_write=dirty`).
#[derive(Clone, Copy, Default, Debug)]
pub struct Rest {
    /// Time of its last failed write.
    pub failed_at: Option<Nanos>,
    /// Time without a new try of its own after a failure.
    pub span: Nanos,
}

impl Rest {
    /// Returns whether it goes on.
    pub fn is_on(self, now: Nanos) -> bool {
        self.failed_at.is_some_and(|at| at + self.span > now)
    }
}

impl WriteErrors {
    /// Another write has failed.
    pub fn note(&mut self) {
        self.count += 1;
    }

    /// Returns the errors that count as reported to a file that is being opened.
    pub fn sample(self) -> u64 {
        self.told
    }

    /// Tells who knows of `known` of them.
    pub fn tell(&mut self, known: &mut u64) -> Result<(), IoError> {
        if std::mem::replace(known, self.count) == self.count {
            return Ok(());
        }
        self.told = self.count;
        Err(IoError::Device)
    }

    /// Returns how many there have been.
    pub fn count(self) -> u64 {
        self.count
    }

    /// For a call that began when there were `before`: an error that is not acknowledged, or that came since. The second one is reported to this
    /// call, whether or not it was reported elsewhere.
    pub fn outstanding(self, before: u64) -> Result<(), IoError> {
        if self.acknowledged.min(before) == self.count { Ok(()) } else { Err(IoError::Device) }
    }

    /// All failures until now are acknowledged.
    pub fn acknowledge(&mut self) {
        self.acknowledged = self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_who_had_it_open_is_told_once_and_who_opens_it_later_only_if_nobody_was() {
        let mut errors = WriteErrors::default();
        let [mut first, mut second] = [errors.sample(); 2];
        assert_eq!(errors.tell(&mut first), Ok(()));
        errors.note();
        let mut third = errors.sample();
        assert_eq!(errors.tell(&mut first), Err(IoError::Device));
        assert_eq!(errors.tell(&mut first), Ok(()));
        let mut fourth = errors.sample();
        assert_eq!(errors.tell(&mut second), Err(IoError::Device));
        assert_eq!(errors.tell(&mut third), Err(IoError::Device));
        assert_eq!(errors.tell(&mut fourth), Ok(()));
    }

    #[test]
    fn an_error_is_outstanding_until_it_is_acknowledged_whoever_was_told() {
        let mut errors = WriteErrors::default();
        assert_eq!(errors.outstanding(0), Ok(()));
        errors.note();
        errors.tell(&mut 0).unwrap_err();
        assert_eq!(errors.outstanding(1), Err(IoError::Device));
        errors.acknowledge();
        assert_eq!(errors.outstanding(1), Ok(()));
        assert_eq!(errors.outstanding(0), Err(IoError::Device), "of a call during which a write failed");
        errors.note();
        assert_eq!(errors.outstanding(2), Err(IoError::Device));
    }
}
