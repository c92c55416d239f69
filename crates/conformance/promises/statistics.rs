//! How old the numbers are that a reader, and reclaim itself, gets of a group.

use crate::check;

#[test]
fn a_reader_of_memory_stat_flushes_only_above_64_updates_a_cpu() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 1000
        task t in job
        t open data as f
        t read f 0..16
        cat job file              => 0
        t read f 16..100
        cat job file              => 409600
        stat job nr_file_pages    => 100
    ",
    );
}

#[test]
fn more_cpus_make_a_reader_wait_for_more_updates() {
    check(
        "
        config cpus=4 folio_batch=1 charge_stock=1
        group job
        file data 1000
        task t in job
        t open data as f
        t read f 0..100
        cat job file              => 0
        t read f 100..300
        cat job file              => 1228800
    ",
    );
}

#[test]
fn reclaim_reads_what_the_last_flush_left() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 1000
        task t in job
        t open data as f
        t read f 0..100           => 100M
        stat job nr_inactive_file => 0
        flush
        stat job nr_inactive_file => 100
        t read f 100..110         => 10M
        stat job nr_inactive_file => 100
        lists job                 => anon 0+0 file 110+0
    ",
    );
}

/// The active list seems empty until the numbers are flushed, and no refault is near enough for an empty one.
#[test]
fn a_refault_is_judged_by_the_active_size_of_the_last_flush() {
    for (flush, expected) in [("", "1 0"), ("flush", "1 1")] {
        check(&format!(
            "
            config folio_batch=1 reclaim_batch=1 charge_stock=1
            group job
            file data 100
            task t in job
            t open data as f
            t read f 0..4         => 4M
            t read f 0..4         => 4H
            t read f 9            => M
            {flush}
            t sets job reclaim 1  => reclaimed 1
            t read f 9            => M
            vmstat workingset_refault_file workingset_activate_file => {expected}
        "
        ));
    }
}

#[test]
fn a_worker_more_than_two_periods_late_makes_reclaim_flush_for_itself() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 1000
        task t in job
        t open data as f
        t read f 0..100           => 100M
        wait 4
        t sets job reclaim 1
        stat job nr_file_pages    => 0
        wait 1
        t sets job reclaim 1
        stat job nr_file_pages    => 60    # as the second call found it
    ",
    );
}

/// A page read is some six updates, with its charge; reclaim adds some.
#[test]
fn a_pass_of_linux_6_1_flushes_after_two_batches_of_65_updates_where_there_is_one_cpu() {
    for (rule, cpus, pages, expected) in
        [("6.1", 1, 15, 0), ("6.1", 1, 25, 2), ("6.1", 2, 25, 0), ("6.12", 1, 25, 0)]
    {
        check(&format!(
            "
            config cpus={cpus} folio_batch=1 charge_stock=1 reclaim.stat_flush={rule}
            group job
            file data 1000
            task t in job
            t open data as f
            t read f 0..{pages}
            t sets job reclaim 1
            work stat_flushes         => {expected}    # of the group and the root
        "
        ));
    }
}

#[test]
fn a_parents_numbers_hold_its_childrens() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group top
        group top/a
        file data 1000
        task t in top/a
        t open data as f
        t read f 0..10            => 10M
        flush
        stat top nr_file_pages    => 10
        stat top/a nr_file_pages  => 10
    ",
    );
}
