//! Removal of groups: what keeps one, what it leaves behind, and when that is gone.

use crate::check;

#[test]
fn a_group_is_removed_when_nobody_runs_in_it_and_no_group_is_below() {
    check(
        "
        group top
        group top/a
        group top/b
        task t in top/a
        rmdir top     => /sys/fs/cgroup/top: can't be removed (EBUSY): remove its child groups first: a, b
        rmdir top/a   => /sys/fs/cgroup/top/a: can't be removed (EBUSY): a process runs in it: let it exit or move it first
        rmdir top/c   => /sys/fs/cgroup/top/c: no such file (ENOENT)
        rmdir top/b   =>
        rmdir top/b   => /sys/fs/cgroup/top/b: no such file (ENOENT)
        t moves /
        rmdir top/a   =>
        rmdir top     =>
        dying /       => 0
    ",
    );
}

#[test]
fn its_pages_stay_charged_above_until_they_are_reclaimed_and_the_group_with_them() {
    check(
        "
        config folio_batch=1 charge_stock=1 stat=live
        group top
        group top/job
        file data 100
        task t in top/job
        task other in top
        t open data as f
        t read f 0..40             => 40M
        t exits
        rmdir top/job              =>
        usage top                  => 40
        dying top                  => 1
        cat top file               => 163840
        other sets top reclaim 100 => reclaimed 40
        usage top                  => 0
        dying top                  => 0
        cat top file               => 0
        cat top pgscan             => 40       # what happened in it stays counted
    ",
    );
}

#[test]
fn its_path_is_free_for_another_group_that_has_nothing_to_do_with_it() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job max=50
        file data 100
        task t in job
        t open data as f
        t read f 0..40             => 40M
        t exits
        rmdir job                  =>
        group job
        usage job                  => 0
        dying /                    => 1
        task u in job
        u open data as f
        u read f 0..40             => 40H      # still in memory, still the old group's
        usage job                  => 0
    ",
    );
}

/// A 4096th of 20 pages is nothing, and so on until the pressure is high. A removed group gives a batch at the first priority.
#[test]
fn what_a_removed_group_has_left_is_taken_at_the_first_priority() {
    let run = |removes: &str, taken: &str| {
        check(&format!(
            "
        config folio_batch=1 charge_stock=1 reclaim_batch=8 stat=live
        group top
        group top/job
        file data 100
        task t in top/job
        task other in top
        t open data as f
        t read f 0..20             => 20M
        t exits
        {removes}
        other sets top reclaim 8   => reclaimed {taken}
    "
        ));
    };
    run("", "13");
    run("rmdir top/job", "8");
}

#[test]
fn a_removed_group_protects_nothing() {
    let run = |removes: &str, left: &str| {
        check(&format!(
            "
        config folio_batch=1 charge_stock=1 stat=live
        group top
        group top/job min=100
        file data 100
        task t in top/job
        task other in top
        t open data as f
        t read f 0..40             => 40M
        t exits
        {removes}
        other sets top reclaim 40
        usage top                  => {left}
    "
        ));
    };
    run("", "40");
    run("rmdir top/job", "0");
}

#[test]
fn kernel_memory_that_outlives_its_group_is_charged_to_the_parent() {
    check(
        "
        config kmem=on folio_batch=1 charge_stock=1 stat=live
        group top
        group top/job
        file data 640
        task t in top/job
        task other in /
        t open data as f
        t read f 0..640            => 640M
        stat top/job kernel        => 6        # 4 of the stack, 11 nodes in 2
        t exits
        stat top/job kernel        => 2
        rmdir top/job              =>
        stat top kernel            => 2
        stat top slab_reclaimable  => 6424
        usage top                  => 642
        other sets top reclaim 1000
        stat top slab_reclaimable  => 0
        stat top kernel            => 1        # in the stock of a CPU
        usage top                  => 2        # and one in its stock of pages
        dying top                  => 0
    ",
    );
}

#[test]
fn swapped_pages_keep_their_group_until_their_slots_are_free() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100 sync
        group top
        group top/job
        group top/heir
        task t in top/job
        t anon 20 as heap
        t write heap 0..20         => 20m
        t sets top/job reclaim 20  => reclaimed 20
        t moves top/heir
        rmdir top/job              =>
        dying top                  => 1
        swapped top                => 20
        t read heap 0..19          => 19M
        dying top                  => 1
        usage top/heir             => 19
        t read heap 19             => M
        dying top                  => 0
        swapped top                => 0
    ",
    );
}

/// The clock of a removed group gives no distance: the page is counted as refaulted and starts like a new one. Its
/// parent's clock still does.
#[test]
fn a_shadow_that_a_removed_group_has_left_has_no_consequence() {
    let run = |limited: &str, activated: &str| {
        check(&format!(
            "
        config folio_batch=1 charge_stock=1 reclaim_batch=1 stat=live
        group top
        group top/job
        file data 100
        task t in top/job
        task other in top
        t open data as f
        other open data as f
        t read f 0..30             => 30M
        t read f 20..30            => 10H      # active
        t sets {limited} reclaim 3
        t exits
        rmdir top/job
        flush
        other read f 0             => M
        stat top workingset_refault_file   => 1
        stat top workingset_activate_file  => {activated}
    "
        ));
    };
    run("top/job", "0");
    run("top", "1");
}

/// Since 7.1 nothing but swap keeps a removed group. Invariants, checked after each line, count the lists and the charges.
#[test]
fn pages_of_a_removed_group_are_its_parents_at_once() {
    for policy in ["classic@6.12", "mglru@6.12", "mglru-fg", "lru", "sieve"] {
        check(&format!(
            "
        config policy={policy} reclaim.offline=reparent folio_batch=4 charge_stock=1 stat=live
        group top
        group top/job
        file data 100
        file locked 5
        swap 100
        task t in top/job
        task other in top
        t open data as f
        t read f 0..40             => 40M
        t write f 3
        t read f 0..10             => 10H
        t open locked as l
        t read l 0..5              => 5M
        other map locked as m      # what is locked is on no list
        other mlock m
        other anon 9 as heap
        other write heap 0..9
        t exits
        rmdir top/job              =>
        dying top                  => 0
        usage top                  => 54
        stat top nr_dirty          => 1
        other open data as f
        other read f 0..40         => 40H
        other sets top reclaim 20
        group top/job
        usage top/job              => 0
    "
        ));
    }
}

/// Pages that the removed group used last go before those that its parent used long ago.
#[test]
fn pages_of_a_removed_group_go_before_its_parents() {
    for policy in ["classic@6.12", "mglru@6.12"] {
        check(&format!(
            "
        config policy={policy} reclaim.offline=reparent folio_batch=1 charge_stock=1 reclaim_batch=4 stat=live
        group top
        group top/job
        file data 100
        file more 200
        task t in top/job
        task other in top
        other open more as g
        other read g 0..200        => 200M
        t open data as f
        t read f 0..64             => 64M
        t exits
        rmdir top/job
        other sets top reclaim 4
        other read g 0..200        => 200H
        other open data as f
        other read f 0..4          => 4M
    "
        ));
    }
}

/// Swap and the group that pays for it stay until a task reads it back.
#[test]
fn what_a_removed_group_has_in_swap_keeps_it() {
    check(
        "
        config reclaim.offline=reparent folio_batch=1 charge_stock=1 reclaim_batch=8 stat=live
        group top
        group top/job
        tmpfs shared 20
        swap 100
        task t in top/job
        task other in top
        t open shared as f
        t write f 0..20
        t sets top/job reclaim 8
        swapped top                => 20
        t exits
        rmdir top/job              =>
        dying top                  => 1
        other open shared as f
        other read f 0..20
        swapped top                => 0
        dying top                  => 0
    ",
    );
}
