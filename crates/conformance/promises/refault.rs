//! Refaults: the effect of a page that comes back.

use crate::check;

/// A page is evicted, and so many others after it, while four pages are active. The list is long enough for one page a call.
#[track_caller]
fn evicted_before(others: usize, expected: &str) {
    let eviction = "t sets job reclaim 1      => reclaimed 1\n";
    check(&format!(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        file data 100
        task t in job
        t open data as f
        t read f 0..4             => 4M
        t read f 0..4             => 4H
        t read f 10..34           => 24M
        lists job                 => anon 0+0 file 24+4
        flush
        {eviction}{}
        lists job                 => anon 0+0 file {}+4
        t read f 10               => M
        vmstat workingset_refault_file workingset_activate_file => {expected}
    ",
        eviction.repeat(others),
        23 - others,
    ));
}

#[test]
fn a_refault_within_the_active_size_is_activated() {
    // The page's own eviction counts as one step.
    evicted_before(3, "1 1");
}

#[test]
fn a_refault_beyond_the_active_size_is_not() {
    evicted_before(4, "1 0");
}

#[test]
fn a_page_that_was_active_before_is_restored_to_the_working_set() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1 stat=live
        group job max=4
        file data 100
        task t in job
        t open data as f
        t read f 0..4             => 4M
        t read f 0..4             => 4H
        lists job                 => anon 0+0 file 0+4
        t read f 4                => M                 # two are deactivated, the colder one is evicted
        vmstat pgdeactivate workingset_activate_file => 2 0
        t read f 0                => M
        vmstat workingset_activate_file workingset_restore_file => 1 1
    ",
    );
}

#[test]
fn the_textbook_lru_counts_refaults_and_does_nothing_about_them() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1 stat=live policy=lru
        group job max=4
        file data 100
        task t in job
        t open data as f
        t read f 0..5             => 5M
        t read f 0                => M
        vmstat workingset_refault_file workingset_activate_file => 1 0
    ",
    );
}

#[test]
fn the_shadow_of_a_swapped_page_dies_with_its_slot() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10
        task t in job
        t anon 2 as heap
        t write heap 0            => m
        t sets job reclaim 1
        t sets job reclaim 1
        swapped job               => 1
        t munmap heap
        swapped job               => 0
        t anon 2 as heap
        t write heap 0            => m
        t sets job reclaim 1
        t sets job reclaim 1
        t read heap 0             => M
        vmstat workingset_refault_anon => 1    # its own, not its predecessor's
    ",
    );
}
