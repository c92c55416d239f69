//! The common interface of all answers, for programs that forward any of them.

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;

/// An answer of a study.
pub trait Answered: Serialize {
    /// Rows for a table, where those of the JSON are not what people compare.
    fn rows(&self) -> Option<Vec<Value>> {
        None
    }

    /// Returns true if there is nothing in it: [`Self::failure`] says why.
    fn is_nothing(&self) -> bool {
        false
    }

    /// Why the answer is incomplete: runs failed, or were interrupted.
    fn failure(&mut self) -> Option<Error>;
}

impl Answered for crate::ablate::crossover::Answer {
    fn is_nothing(&self) -> bool {
        crate::ablate::crossover::Answer::is_nothing(self)
    }

    fn failure(&mut self) -> Option<Error> {
        let failures = self.failures();
        match crate::ablate::crossover::Answer::is_nothing(self) {
            true => Some(self.extent.nothing("every combination failed", &failures)),
            false => self.extent.verdict(&failures).err(),
        }
    }
}

impl Answered for crate::explain::Answer {
    fn failure(&mut self) -> Option<Error> {
        self.failed.take().map(Error::Run)
    }
}

impl Answered for crate::replay::Answer {
    fn is_nothing(&self) -> bool {
        crate::replay::Answer::is_nothing(self)
    }

    fn failure(&mut self) -> Option<Error> {
        crate::replay::Answer::failure(self)
    }
}

impl Answered for crate::twin::Answer {
    fn failure(&mut self) -> Option<Error> {
        self.extent.as_ref()?.verdict(&self.failures()).err()
    }
}

impl Answered for crate::run::Answer {
    fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }
}

impl Answered for crate::compare::Answer {
    fn rows(&self) -> Option<Vec<Value>> {
        Some(crate::compare::Answer::rows(self))
    }

    fn is_nothing(&self) -> bool {
        crate::compare::Answer::is_nothing(self)
    }

    fn failure(&mut self) -> Option<Error> {
        let failures = self.failures();
        match crate::compare::Answer::is_nothing(self) {
            true => Some(self.extent.nothing("every variant failed", &failures)),
            false => self.extent.verdict(&failures).err(),
        }
    }
}

impl Answered for crate::sweep::Answer {
    fn failure(&mut self) -> Option<Error> {
        crate::sweep::Answer::failure(self)
    }
}

impl Answered for crate::ablate::Answer {
    fn is_nothing(&self) -> bool {
        crate::ablate::Answer::is_nothing(self)
    }

    fn failure(&mut self) -> Option<Error> {
        if crate::ablate::Answer::is_nothing(self) {
            let failures: Vec<_> = self.points.iter().flat_map(|point| point.base.failures.clone()).collect();
            return Some(self.extent.nothing("the unchanged scenario fails", &failures));
        }
        self.extent.verdict(&self.failures()).err()
    }
}

impl Answered for crate::bisect::Answer {
    fn failure(&mut self) -> Option<Error> {
        self.extent.verdict(&[]).err()
    }
}

impl Answered for crate::advise_tier::Answer {
    fn failure(&mut self) -> Option<Error> {
        self.advice.extent.verdict(&self.advice.failures()).err()
    }
}
