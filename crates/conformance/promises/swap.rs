//! Swap: slots and the swap cache, and devices that fail.

use crate::check;

/// A task with a heap of one page, which has been swapped out.
const SWAPPED_OUT: &str = "
    config folio_batch=1 reclaim_batch=1 charge_stock=1
    group job
    task t in job
    t anon 8 as heap
    swap 10
    t write heap 0            => m
    t sets job reclaim 1                 # its accessed bit earned it a round
    t sets job reclaim 1
    usage job                 => 0
    swapped job               => 1
    ops
";

#[track_caller]
fn check_swapped_out(scenario: &str) {
    check(&format!("{SWAPPED_OUT}{scenario}"));
}

#[test]
fn a_page_read_back_and_not_written_is_dropped_without_a_second_write() {
    check_swapped_out(
        "
        t read heap 0             => M
        swapped job               => 1
        t sets job reclaim 1
        t sets job reclaim 1
        usage job                 => 0
        ops                       => 1 free, 1 swap-in
        t read heap 0             => M
    ",
    );
}

#[test]
fn a_page_read_back_and_then_written_is_written_again() {
    check_swapped_out(
        "
        t read heap 0             => M
        t write heap 0            => H
        t sets job reclaim 1
        t sets job reclaim 1
        ops                       => 1 free, 1 swap-in, 1 swap-out
    ",
    );
}

#[test]
fn a_write_fault_gives_the_slot_up() {
    check_swapped_out(
        "
        t write heap 0            => M
        swapped job               => 0
        ops                       => 1 free slot, 1 swap-in
    ",
    );
}

#[test]
fn a_slot_is_given_up_at_a_read_when_swap_is_more_than_half_full() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 4
        task t in job
        t anon 8 as heap
        t write heap 0..3         => 3m
        t sets job reclaim 3
        t sets job reclaim 3
        swapped job               => 3
        t read heap 0             => M     # 3 of 4 are in use
        swapped job               => 2
        t read heap 1             => M     # 2 of 4 are not more than half
        swapped job               => 2
    ",
    );
}

#[test]
fn munmap_of_swapped_pages_frees_their_slots() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10
        task t in job
        t anon 8 as heap
        t write heap 0..4         => 4m
        t sets job reclaim 4
        t sets job reclaim 4
        t sets job reclaim 4
        swapped job               => 4
        t read heap 1             => M     # one of them in the swap cache
        t munmap heap
        swapped job               => 0
        usage job                 => 0
    ",
    );
}

#[test]
fn a_page_unmapped_while_it_waits_in_a_batch_is_freed_when_the_batch_drains() {
    check(
        "
        config folio_batch=2 reclaim_batch=1 charge_stock=1
        group job
        swap 10
        task t in job
        t anon 8 as heap
        t write heap 0..2         => 2m
        t free heap 0                       # waits in the lazyfree batch
        t munmap heap
        t anon 8 as other
        t write other 0..2        => 2m
        t free other 0                      # fills it
        usage job                 => 2
    ",
    );
}

#[test]
fn a_synchronous_device_skips_the_swap_cache_and_frees_the_slot_at_once() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10 sync
        task t in job
        t anon 8 as heap
        t write heap 0            => m
        t sets job reclaim 1      => reclaimed 1    # written and freed in one pass
        swapped job               => 1
        ops
        t read heap 0             => M
        swapped job               => 0
        ops                       => 1 free slot, 1 swap-in now
        t sets job reclaim 1      => reclaimed 1
        ops                       => 1 free, 1 swap-out now
    ",
    );
}

#[test]
fn a_fault_on_a_page_still_being_written_waits_for_nothing() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10
        task t in job
        task r in job
        t anon 8 as heap
        t write heap 0            => m
        device holds
        r sets job reclaim 1      => W
        ops                       => 1 swap-out, 1 zero
        t read heap 0             => m
        vmstat workingset_refault_anon => 0
    ",
    );
}

#[test]
fn a_page_that_could_not_be_written_stays_and_is_written_again() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1 stat=live
        group job
        swap 10
        task t in job
        task r in job
        t anon 8 as heap
        t write heap 0            => m
        device holds
        r sets job reclaim 1      => W
        io fails                  => swap-out, r W
        ops                       => 2 swap-out, 1 zero
        io                        => swap-out, r reclaimed 1
    ",
    );
}

/// The slot may get the contents from before the second write, so that dropping the page would bring those back.
#[test]
fn a_page_said_to_be_free_while_an_older_form_of_it_is_being_written_is_not_dropped_for_it() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1 stat=live
        group job
        swap 10
        task t in job
        task r in job
        t anon 8 as heap
        t write heap 0            => m
        device holds
        r sets job reclaim 1      => W
        ops                       => 1 swap-out, 1 zero
        t write heap 0            => m
        t free heap 0
        io                        => swap-out, r W
        ops                       => 1 swap-out
    ",
    );
}

#[test]
fn a_page_that_could_not_be_read_keeps_its_slot_and_is_read_again() {
    check_swapped_out(
        "
        device holds
        t read heap 0             => W
        io fails                  => swap-in, t E
        swapped job               => 1
        usage job                 => 0
        t read heap 0             => W
        io                        => swap-in, t M
    ",
    );
}

#[test]
fn a_page_that_nobody_wants_any_more_and_that_could_not_be_read_gives_its_slot_back() {
    check_swapped_out(
        "
        t thread u
        device holds
        u read heap 0             => W
        t munmap heap
        swapped job               => 1
        io fails                  => swap-in, u E
        swapped job               => 0
    ",
    );
}

#[test]
fn tmpfs_leaves_memory_by_way_of_swap_and_comes_back_to_its_file() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 charge_stock=1
        group job
        swap 10
        tmpfs shm 8
        task a in job
        task b in job
        a open shm as f
        b map shm as m
        a read f 0                => m          # a hole reads as zeroes and takes no page
        usage job                 => 0
        a write f 0               => m
        a sets job reclaim 1
        a sets job reclaim 1
        usage job                 => 0
        swapped job               => 1
        b read m 0                => M
        swapped job               => 0          # nothing but the file has it now
        a read f 0                => H
    ",
    );
}

#[test]
fn tmpfs_written_through_a_descriptor_is_swapped_out_at_the_limit() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job max=64
        swap 1000
        tmpfs shm 200
        task t in job
        t open shm as f
        t write f 0..200          => 200m
    ",
    );
}

#[test]
fn a_file_read_makes_room_by_swapping_tmpfs_out_if_there_is_nothing_else() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job max=64
        swap 1000
        tmpfs shm 64
        file data 8
        task t in job
        t open shm as f
        t write f 0..64           => 64m
        t open data as g
        t read g 0                => M
    ",
    );
}

/// Eight pages of a heap have been swapped out to slots side by side; every other one was read back and then written.
const SCATTERED: &str = "
    group job
    task t in job
    t anon 8 as heap
    swap 100
    t write heap 0..8         => 8m
    t sets job reclaim 8
    t sets job reclaim 8
    t sets job reclaim 8
    usage job                 => 0
    ops
    t read heap 0             => M
    t read heap 2             => M
    t read heap 4             => M
    t read heap 6             => M
    t write heap 0            => H
    t write heap 2            => H
    t write heap 4            => H
    t write heap 6            => H
    ops
    vmstat pgrotated          => 8
";

#[track_caller]
fn check_scattered(policy: &str, then: &str) {
    check(&format!("config folio_batch=1 charge_stock=1 plug_requests=3 policy={policy}{SCATTERED}{then}"));
}

#[test]
fn what_the_device_has_written_within_the_batch_is_freed_in_it() {
    check_scattered(
        "mglru@6.12",
        "
        device outruns batches
        t sets job reclaim 4
        ops                       => 4 free, 1 swap-out, 3 swap-out now
        vmstat pgrotated          => 9
    ",
    );
}

#[test]
fn what_the_device_fails_to_write_within_the_batch_stays_and_is_dirty() {
    check_scattered(
        "mglru@6.12",
        "
        device fails within batches
        t sets job reclaim 4
        vmstat pswpout            => 15     # three of four twice
        ops                       => 4 free, 4 swap-out
        vmstat pgrotated          => 12
    ",
    );
}

#[test]
fn a_full_plug_that_the_device_has_not_written_yet_is_rotated_like_any_other() {
    check_scattered(
        "mglru@6.12",
        "
        t sets job reclaim 4
        ops                       => 4 free, 4 swap-out
        vmstat pgrotated          => 12
    ",
    );
}

#[test]
fn neighbouring_slots_are_one_request_of_the_plug() {
    check(
        "
        config folio_batch=1 charge_stock=1 plug_requests=1
        group job
        task t in job
        t anon 40 as heap
        swap 100
        device outruns batches
        t write heap 0..40        => 40m
        t sets job reclaim 40
        t sets job reclaim 40
        ops                       => 40 free, 40 swap-out, 40 zero
    ",
    );
}

#[test]
fn index_nodes_of_64_slots_that_hold_only_shadows_are_counted() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        task t in job
        t anon 128 as heap
        swap 1000
        t write heap 0..128       => 128m
        t sets job reclaim 128
        t sets job reclaim 128
        t sets job reclaim 128
        usage job                 => 0
        vmstat workingset_nodes   => 2
        t read heap 0             => M
        vmstat workingset_nodes   => 1
        vmstat workingset_refault_anon => 1
    ",
    );
}

#[test]
fn who_asks_for_reclaim_waits_for_writes_where_there_is_nothing_else_to_free() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        task t in job
        t anon 8 as heap
        swap 100
        t write heap 0..8         => 8m
        device holds
        t sets job reclaim 2      => W
        ops                       => 8 swap-out, 8 zero
        io                        => swap-out, t W
        io                        => swap-out, t reclaimed 2
        usage job                 => 6
    ",
    );
}
