//! Threads of a process: what they share.

use crate::check;

#[test]
fn a_page_that_one_thread_has_faulted_in_is_mapped_for_all() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        task t in job
        t anon 8 as heap
        t thread u
        t write heap 0..4         => 4m
        u write heap 0..8         => 4H 4m
        usage job                 => 8
        u exits                   => exited
        usage job                 => 8
        t exits                   => exited
        usage job                 => 0
    ",
    );
}

#[test]
fn threads_that_share_an_open_file_share_its_position() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t thread u
        t read f 0                => M
        u read f 0                => H             # the rest of the same read, as far as the file can tell
        t read f 0                => H
        lists job                 => anon 0+0 file 1+0
    ",
    );
}

#[test]
fn a_thread_that_has_opened_the_file_itself_reads_the_page_a_second_time() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t thread u
        u reopens f
        t read f 0                => M
        u read f 0                => H             # a second use
        t read f 0                => H
        lists job                 => anon 0+0 file 0+1
    ",
    );
}

#[test]
fn what_one_thread_unmaps_is_gone_for_all() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        task t in job
        t anon 8 as heap
        t thread u
        u write heap 0..4         => 4m
        t munmap heap
        usage job                 => 0
    ",
    );
}
