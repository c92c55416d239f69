//! Random runs of the byte machine.
//!
//! A run is made from a seed. A run that fails is cut down to the actions that matter and printed with its seed. `PAGEOUT_RUNS`
//! asks for more runs than a test should take (`ci/slow/long.sh` does), `PAGEOUT_SEED` for the run of one seed.

use super::actions::{
    Action, Setup, TASKS, action, huge_action, setup, sparing_setup, tiered_action, tiered_setup,
};
use super::machine::{ByteMachine, Checks};
use super::mutant::Mutant;
use crate::{MigrateStep, Stat, StoryEvent, Told, Tracepoint};
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
    draw(seed, (setup(), vec(action(), 1..ACTIONS)))
}

/// A random run on a machine with tiers of memory, on which migrations fail.
fn tiered_run(seed: u64) -> (Setup, Vec<Action>) {
    draw(seed, (tiered_setup(), vec(tiered_action(), 1..ACTIONS)))
}

/// A random run on a machine on which reclaim is asked to spare something.
fn sparing_run(seed: u64) -> (Setup, Vec<Action>) {
    draw(seed, (sparing_setup(), vec(action(), 1..ACTIONS)))
}

fn draw<T>(seed: u64, inputs: impl Strategy<Value = T>) -> T {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    inputs.new_tree(&mut runner).expect("nothing is filtered").current()
}

/// A random run on a machine whose heaps begin with a huge page, and on which who gets more changes.
fn random_run_huge(seed: u64) -> (Setup, Vec<Action>) {
    let (setup, actions) = draw(seed, (setup(), vec(huge_action(), 1..ACTIONS)));
    (setup.with_huge_pages(), actions)
}

/// A random run with a signal for each task in turn, one after each action.
fn signalled_run(seed: u64) -> (Setup, Vec<Action>) {
    let (setup, actions) = random_run(seed);
    let signals = (0..TASKS).cycle().map(|task| Action::Signal { task });
    (setup, actions.into_iter().zip(signals).flat_map(|(action, signal)| [action, signal]).collect())
}

fn run(setup: &Setup, actions: &[Action], mutant: Option<Mutant>, checks: Checks) {
    let mut machine = ByteMachine::new(setup, mutant, checks);
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
    seeds: impl IntoIterator<Item = u64>,
) -> Option<(u64, String)> {
    first_failure_of(random_run, mutant, checks, seeds)
}

/// The first seed whose run with huge pages fails, and what with.
pub(super) fn first_failure_huge(mutant: Mutant, seeds: Range<u64>) -> Option<(u64, String)> {
    first_failure_of(random_run_huge, Some(mutant), Checks::Contents, seeds)
}

fn first_failure_of(
    run: fn(u64) -> (Setup, Vec<Action>),
    mutant: Option<Mutant>,
    checks: Checks,
    seeds: impl IntoIterator<Item = u64>,
) -> Option<(u64, String)> {
    quietly(|| {
        seeds.into_iter().find_map(|seed| {
            let (setup, actions) = run(seed);
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
    check(random_run, 75);
}

#[test]
fn no_sequence_of_operations_loses_a_byte_of_a_huge_page() {
    check(random_run_huge, 30);
}

#[test]
fn requests_that_signals_end_lose_no_byte() {
    check(signalled_run, 50);
}

#[test]
fn migrations_that_fail_at_any_step_leave_everything_as_it_was() {
    check(tiered_run, 40);
}

#[test]
fn reclaim_that_spares_far_nodes_groups_and_disks_loses_no_byte() {
    check(sparing_run, 30);
}

/// So that the test above is about something.
#[test]
fn in_random_runs_near_nodes_are_reclaimed_with_and_without_success_and_soft_limits_are_pushed_back_to() {
    let [mut success, mut failed, mut soft] = [0; 3];
    for seed in 0..60 {
        let (setup, actions) = sparing_run(seed);
        let mut machine = ByteMachine::new(&setup, None, Checks::Contents);
        machine.engine.tell_tracepoints();
        let mut told = Vec::new();
        for action in actions {
            machine.perform(action);
            machine.engine.take_story(&mut told);
            let of_soft_limit = |event: &StoryEvent| {
                matches!(event.told, Told::Tracepoint(Tracepoint::SoftLimitReclaimEnd { .. }))
            };
            soft += told.drain(..).filter(of_soft_limit).count() as i64;
        }
        success += machine.engine.figures().vmstat(Stat::ZoneReclaimSuccess);
        failed += machine.engine.figures().vmstat(Stat::ZoneReclaimFailed);
    }
    assert!(success > 50 && failed > 100 && soft > 1000, "{success}, {failed}, {soft}");
}

/// The events that the runs above test do happen in them.
#[test]
fn in_random_runs_with_tiers_every_step_fails_and_pages_move_both_ways() {
    let mut failed = [0; MigrateStep::ALL.len()];
    let [mut promoted, mut demoted] = [0; 2];
    for seed in 0..60 {
        let (setup, actions) = tiered_run(seed);
        let mut machine = ByteMachine::new(&setup, None, Checks::Contents);
        actions.into_iter().for_each(|action| machine.perform(action));
        for (sum, of_run) in failed.iter_mut().zip(machine.engine.core.refusals.failed) {
            *sum += of_run;
        }
        promoted += machine.engine.figures().vmstat(Stat::PgpromoteSuccess);
        demoted += machine.engine.figures().vmstat(Stat::PgdemoteKswapd)
            + machine.engine.figures().vmstat(Stat::PgdemoteProactive);
    }
    assert!(failed.iter().all(|&failed| failed > 20), "{failed:?}, in the order of {:?}", MigrateStep::ALL);
    assert!(promoted > 15 && demoted > 200, "{promoted} promoted, {demoted} demoted");
}

/// What each node counts after each action, and what is known of hot pages. `gives_back`: whatever is known of free blocks is given back
/// after each action, too.
fn counted(seed: u64, gives_back: bool) -> (Vec<Vec<i64>>, usize) {
    let (setup, actions) = tiered_run(seed);
    let mut machine = ByteMachine::new(&setup, None, Checks::Contents);
    let mut records = 0;
    let mut after = |machine: &mut ByteMachine, action| {
        machine.perform(action);
        if gives_back {
            machine.engine.core.mm.give_back_records_now();
        }
        let engine = &machine.engine;
        let nodes = engine.core.mm.memory.nodes();
        let counters =
            nodes.flat_map(|node| Stat::ALL.iter().map(move |&stat| engine.figures().node_stat(node, stat)));
        let hot = engine.core.mm.pghot.records.iter();
        let hot: Vec<[i64; 3]> =
            hot.map(|(pfn, record)| [pfn.0, record.freq as u32, record.time as u32].map(i64::from)).collect();
        records += hot.len();
        counters.chain(hot.into_iter().flatten()).collect()
    };
    let counted = actions.into_iter().map(|action| after(&mut machine, action)).collect();
    (counted, records)
}

#[test]
fn the_same_run_counts_the_same_twice_action_by_action() {
    let mut records = 0;
    for seed in 0..10 {
        let (first, second) = (counted(seed, false), counted(seed, false));
        assert!(first == second, "PAGEOUT_SEED={seed} counts something else the second time");
        records += first.1;
    }
    assert!(records > 0, "hot pages are among what is compared");
}

#[test]
fn whether_what_is_known_of_free_blocks_is_given_back_makes_no_difference() {
    for seed in 0..8 {
        let (kept, given_back) = (counted(seed, false), counted(seed, true));
        assert!(kept == given_back, "PAGEOUT_SEED={seed} counts something else");
    }
}

fn check(random: fn(u64) -> (Setup, Vec<Action>), runs: u64) {
    let seeds = match number("PAGEOUT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PAGEOUT_RUNS").unwrap_or(runs),
    };
    let Some((seed, _)) = first_failure_of(random, None, Checks::All, seeds) else { return };
    let (setup, actions) = random(seed);
    let actions = quietly(|| shrink(&setup, actions));
    eprintln!("PAGEOUT_SEED={seed} fails; shrunk to {setup:#?}");
    for action in &actions {
        eprintln!("    {action:?}");
    }
    run(&setup, &actions, None, Checks::All);
    unreachable!("the shrunk run failed before");
}

/// A run that has found a bug, as long as actions are generated in the same way. A slot that is read ahead gets another owner
/// between the allocation of its page and the charge.
#[test]
fn a_page_read_ahead_from_swap_is_paid_for_by_who_is_charged() {
    let (setup, actions) = random_run(4250);
    assert_eq!(failure(&setup, &actions, None, Checks::All), None);
}
