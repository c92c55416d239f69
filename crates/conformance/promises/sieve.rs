//! SIEVE: what it makes of a use through each channel, and of pages that can't go.

use crate::check;

#[test]
fn sieve_spares_what_was_read_again_and_takes_what_was_read_once() {
    check(
        "
        config policy=sieve folio_batch=1 charge_stock=1 reclaim_batch=1
        group job max=4
        file data 100
        task t in job
        t open data as f
        t read f 0..4             => 4M
        t read f 0                => H
        t read f 4                => M     # the hand spares page 0 and takes page 1
        t read f 5                => M     # goes on from there: takes page 2
        t read f 0                => H
        t read f 3                => H
        t read f 6                => M     # spares page 3, takes page 4
        t read f 1                => M     # takes page 5, although page 0 is older
        t read f 0                => H
        t read f 3                => H
        vmstat pgactivate workingset_activate_file => 0 0
        lists job                 => anon 0+0 file 4+0
    ",
    );
}

#[test]
fn rereading_counts_for_sieve() {
    check(
        "
        config policy=sieve folio_batch=1 charge_stock=1 reclaim_batch=1
        group job max=2
        file data 100
        task t in job
        t open data as f
        t read f 0                => M
        t read f 0                => H
        t read f 1..3             => 2M
        t read f 0                => H
    ",
    );
}

#[test]
fn an_accessed_bit_found_by_reclaim_counts_as_a_use_for_sieve() {
    check(
        "
        config policy=sieve folio_batch=1 charge_stock=1 reclaim_batch=1 fault_around_bytes=4096
        group job max=4
        file data 100
        task t in job
        t open data as f
        t map data as m
        t read f 0..4             => 4M
        t read m 0                => m
        t read f 4..7             => 3M    # pages 1, 2 and 3 go
        t read m 0                => H
        t read f 1                => M     # page 4
        t read m 0                => H
    ",
    );
}

#[test]
fn sieve_spares_a_page_that_cannot_go() {
    check(
        "
        config policy=sieve folio_batch=1 charge_stock=1 reclaim_batch=1
        group job max=4
        file data 100
        task t in job
        t open data as f
        t read f 0..4             => 4M
        pin data 0
        t read f 4..20            => 16M
        t read f 0                => H
    ",
    );
}

#[test]
fn a_hit_moves_nothing_under_sieve() {
    check(
        "
        config policy=sieve
        group job
        file data 64
        tmpfs shared 64
        task t in job
        t open data as f
        t open shared as s
        t read f 0..64            => 64M
        t write s 0..64           => 64m
        work list_moves
        t read f 0..64            => 64H
        t read s 0..64            => 64H
        t write s 0..64           => 64H
        work list_moves           => 0
    ",
    );
}
