//! Random runs of the byte machine.
//!
//! A run is made from a seed. A run that fails is cut down to the actions that matter and printed with its seed. `PAGEOUT_RUNS`
//! asks for more runs than a test should take, `PAGEOUT_SEED` for the run of one seed.

use super::actions::{Action, Setup, action, setup};
use super::machine::{Checks, Machine};
use super::mutant::Mutant;
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Most actions of a run.
const ACTIONS: usize = 600;

fn random_run(seed: u64) -> (Setup, Vec<Action>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let inputs = (setup(), vec(action(), 1..ACTIONS));
    inputs.new_tree(&mut runner).expect("nothing is filtered").current()
}

fn run(setup: &Setup, actions: &[Action], mutant: Option<Mutant>, checks: Checks) {
    let mut machine = Machine::new(setup, mutant, checks);
    for &action in actions {
        machine.perform(action);
    }
    machine.finish();
}

/// What a run fails with.
fn failure(setup: &Setup, actions: &[Action], mutant: Option<Mutant>, checks: Checks) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| run(setup, actions, mutant, checks))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default())
}

/// The first seed whose run fails, and what with.
pub(super) fn first_failure(
    mutant: Option<Mutant>,
    checks: Checks,
    seeds: Range<u64>,
) -> Option<(u64, String)> {
    quietly(|| {
        seeds.into_iter().find_map(|seed| {
            let (setup, actions) = random_run(seed);
            Some((seed, failure(&setup, &actions, mutant, checks)?))
        })
    })
}

/// Takes actions away, many at a time and then one by one, as long as the run still fails.
fn shrink(setup: &Setup, mut actions: Vec<Action>) -> Vec<Action> {
    let mut chunk = actions.len().div_ceil(2).max(1);
    loop {
        let before = actions.len();
        let mut at = 0;
        while at < actions.len() {
            let mut fewer = actions.clone();
            fewer.drain(at..(at + chunk).min(actions.len()));
            if failure(setup, &fewer, None, Checks::All).is_none() {
                at += chunk;
            } else {
                actions = fewer;
            }
        }
        if chunk == 1 && actions.len() == before {
            return actions;
        }
        chunk = (chunk / 2).max(1);
    }
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Expected failures of this thread print nothing.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                loud(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = work();
    IS_QUIET.set(false);
    result
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_sequence_of_operations_loses_a_byte() {
    let seeds = match number("PAGEOUT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PAGEOUT_RUNS").unwrap_or(1000),
    };
    let Some((seed, _)) = first_failure(None, Checks::All, seeds) else { return };
    let (setup, actions) = random_run(seed);
    let actions = quietly(|| shrink(&setup, actions));
    eprintln!("PAGEOUT_SEED={seed} fails; shrunk to {setup:#?}");
    for action in &actions {
        eprintln!("    {action:?}");
    }
    run(&setup, &actions, None, Checks::All);
    unreachable!("the shrunk run failed before");
}

/// A run that has found a bug, for as long as actions are drawn as they were then: a slot that is read ahead gets another owner
/// between the allocation of its page and the charge.
#[test]
fn a_page_read_ahead_from_swap_is_paid_for_by_who_is_charged() {
    let (setup, actions) = random_run(4250);
    assert_eq!(failure(&setup, &actions, None, Checks::All), None);
}
