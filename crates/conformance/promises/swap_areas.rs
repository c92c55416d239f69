//! Several swap devices, pages of zeroes, and devices that fail.

use crate::check;

#[test]
fn swap_areas_are_filled_by_priority_and_equal_ones_in_turn() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100
        swap 64 priority=5
        swap 64 priority=5
        group job
        task t in job
        t anon 200 as heap
        t write heap 0..200        => 200m
        t sets job reclaim 64      => reclaimed 92
        swaps                      => /dev/swap0 288/400 at -2, /dev/swap1 256/256 at 5, /dev/swap2 256/256 at 5
    ",
    );
}

#[test]
fn pages_of_zeroes_are_neither_written_nor_read() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100
        group job
        task t in job
        t anon 32 as heap
        zeroes t heap 1000
        t write heap 0..32         => 32m
        t sets job reclaim 32      => reclaimed 32
        swapped job                => 32
        vmstat swpout_zero         => 32
        vmstat nr_vmscan_write     => 32
        vmstat pswpout             => 0
        t read heap 0..32          => 32M
        vmstat swpin_zero          => 32
        vmstat pswpin              => 0
        ops                        => 32 free, 64 zero
    ",
    );
}

#[test]
fn a_page_of_zeroes_read_back_and_not_written_is_dropped_again_at_no_cost() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100
        group job
        task t in job
        t anon 32 as heap
        zeroes t heap 1000
        t write heap 0..32         => 32m
        t sets job reclaim 32      => reclaimed 32
        t read heap 0..32          => 32M
        flush
        t sets job reclaim 32      => reclaimed 32
        vmstat swpout_zero         => 32
        t write heap 0..32         => 32M
        swapped job                => 0
    ",
    );
}

#[test]
fn without_the_map_pages_of_zeroes_are_written_like_any_other() {
    check(
        "
        config folio_batch=1 charge_stock=1 swap.zero_map=false
        swap 100
        group job
        task t in job
        t anon 32 as heap
        zeroes t heap 1000
        t write heap 0..32         => 32m
        t sets job reclaim 32      => reclaimed 32
        vmstat swpout_zero         => 0
        vmstat pswpout             => 32
        t read heap 0..32          => 32M
        vmstat pswpin              => 32
    ",
    );
}

#[test]
fn a_page_whose_write_fails_stays_and_is_written_again() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100
        group job
        task t in job
        t anon 32 as heap
        t write heap 0..32         => 32m
        device fails
        t sets job reclaim 32      => reclaimed 0
        usage job                  => 32
        swapped job                => 32
        device answers
        t sets job reclaim 30      => reclaimed 30
        usage job                  => 2
    ",
    );
}
