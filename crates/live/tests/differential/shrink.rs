//! A failing sequence becomes a short one: chunks go first, then single operations, then numbers get simpler (delta debugging).

use std::time::{Duration, Instant};

use crate::memory::Setup;
use crate::one_thread::{Failure, Source, run_sequence};
use crate::operations::Op;

/// Shrinking ends after that at the latest.
const LONGEST: Duration = Duration::from_secs(120);
/// An operation that takes longer hangs.
const HANGS: Duration = Duration::from_millis(2500);

/// What is left of a sequence that fails, which are the operations up to the one that does, and how it fails.
type Left = (Vec<Op>, Failure);

/// A sequence that fails, and how to find out whether another one does.
struct Shrinker<F> {
    setup: Setup,
    ops: Vec<Op>,
    failure: Failure,
    until: Instant,
    fails: F,
}

/// A sequence as short as can be found that fails in the same way, and how sure it does.
pub(crate) fn shrink(setup: Setup, ops: Vec<Op>, failure: Failure) -> (Setup, Vec<Op>, Failure, String) {
    let class = failure.class.clone();
    let once = |setup: &Setup, ops: &[Op]| -> Option<Left> {
        let report = run_sequence(setup, Source::Given(ops.iter().cloned().collect()), HANGS);
        let failure = report.failure.filter(|failure| failure.class == class)?;
        Some((report.ops, failure))
    };
    let again = (0..10).filter(|_| once(&setup, &ops).is_some()).count();
    if again == 0 {
        return (setup, ops, failure, ", once of eleven times".to_owned());
    }
    // It may depend on what the cache's threads do.
    let tries = (20 / again).max(2);
    let until = Instant::now() + LONGEST;
    let fails = |setup: &Setup, ops: &[Op]| {
        (0..tries).take_while(|_| Instant::now() < until).find_map(|_| once(setup, ops))
    };
    let mut shrinker = Shrinker { setup, ops, failure, until, fails };
    shrinker.shrink();
    let Shrinker { setup, ops, failure, .. } = shrinker;
    let until = Instant::now() + LONGEST / 3;
    let tried: Vec<bool> =
        (0..20).take_while(|_| Instant::now() < until).map(|_| once(&setup, &ops).is_some()).collect();
    let sure = tried.iter().filter(|&&fails| fails).count();
    (setup, ops, failure, format!(", {sure} of {} times", tried.len()))
}

impl<F: Fn(&Setup, &[Op]) -> Option<Left>> Shrinker<F> {
    fn shrink(&mut self) {
        let mut is_smaller = true;
        while is_smaller && Instant::now() < self.until {
            is_smaller = self.drop_chunks();
            is_smaller |= self.simplify_setup();
            is_smaller |= self.simplify();
        }
    }

    /// Takes these operations instead, if they fail as well.
    fn take(&mut self, ops: &[Op]) -> bool {
        let Some((left, why)) = (self.fails)(&self.setup, ops) else { return false };
        (self.ops, self.failure) = (left, why);
        true
    }

    fn drop_chunks(&mut self) -> bool {
        let (before, mut chunk) = (self.ops.len(), self.ops.len().div_ceil(2));
        while chunk > 0 {
            // From behind: nothing depends on what comes last but the failure.
            let mut end = self.ops.len();
            while end > 0 {
                let start = end.saturating_sub(chunk);
                let fewer = [&self.ops[..start], &self.ops[end..]].concat();
                if !fewer.is_empty() {
                    self.take(&fewer);
                }
                end = start.min(self.ops.len());
            }
            chunk /= 2;
        }
        self.ops.len() < before
    }

    fn simplify_setup(&mut self) -> bool {
        let mut is_simpler = false;
        loop {
            let simpler = self.setup.simpler().into_iter();
            let found =
                simpler.filter_map(|setup| (self.fails)(&setup, &self.ops).map(|left| (setup, left))).next();
            let Some((setup, (left, why))) = found else { return is_simpler };
            (self.setup, self.ops, self.failure, is_simpler) = (setup, left, why, true);
        }
    }

    fn simplify(&mut self) -> bool {
        let (mut is_simpler, mut at) = (false, 0);
        while at < self.ops.len() && Instant::now() < self.until {
            let found = self.ops[at].simpler().into_iter().any(|simpler| {
                let mut other = self.ops.clone();
                other[at] = simpler;
                self.take(&other)
            });
            is_simpler |= found;
            at += usize::from(!found);
        }
        is_simpler
    }
}

#[test]
fn sequence_that_fails_becomes_its_shortest_part() {
    use crate::draw::Draw;
    use crate::operations::{Data, program};

    let write = |at, fill| Op::Write { slot: 0, data: Data { at, len: 3000, fill } };
    let mut ops: Vec<Op> = (0..300).map(|at| write(at * 70, at as u32)).collect();
    ops[40] = Op::Sync { slot: 1, all: true };
    ops[250] = Op::SetLen { slot: 2, bytes: 77_777 };
    // It fails where a file gets longer than a page after a sync.
    let fails = |_: &Setup, ops: &[Op]| {
        let sync = ops.iter().position(|op| matches!(op, Op::Sync { .. }))?;
        let is_long = |op: &Op| matches!(op, Op::SetLen { bytes, .. } if *bytes > 4096);
        let at = ops.iter().skip(sync).position(is_long)? + sync;
        Some((ops[..=at].to_vec(), Failure { class: String::new(), text: String::new() }))
    };
    let setup = Setup { slow: true, ..Setup::draw(&mut Draw::new(1)) };
    let failure = Failure { class: String::new(), text: String::new() };
    let mut shrinker = Shrinker { setup, ops, failure, until: Instant::now() + LONGEST, fails };
    shrinker.shrink();
    assert_eq!(program(&shrinker.ops), "    h1.sync_data()\n    h2.set_len(4097)\n");
    assert!(!shrinker.setup.slow);
}
