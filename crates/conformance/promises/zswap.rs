//! Compressed pages in front of a swap device: what is stored, what comes back, and what goes on to the device.

use crate::check;

#[test]
fn a_page_is_stored_once_and_comes_back_dirty_without_its_entry() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true
        swap 100
        zram 2048 2048 0
        group job
        task t in job
        t anon 64 as heap
        t write heap 0..32                 => 32m
        ops
        t sets job reclaim 32              => reclaimed 32
        ops                                => 32 free, 32 zswap-in
        vmstat zswpout nr_vmscan_write pswpout => 32 32 0
        cat job zswapped                   => 131072
        cat job zswap                      => 65536
        t read heap 0..16                  => 16M
        ops                                => 16 zswap-free, 16 zswap-out
        vmstat zswpin pswpin               => 16 0
        cat job zswap                      => 32768
        swapped job                        => 32
        t sets job reclaim 16              => reclaimed 16
        vmstat zswpout                     => 48
    ",
    );
}

#[test]
fn a_page_of_one_word_takes_no_bytes_of_whoever_was_charged_last() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true policy=classic@6.1
        swap 100
        zram 2048 2048 1000
        group job
        group other
        task t in job
        task u in other
        t anon 16 as heap
        t write heap 0..16                 => 16m
        u anon 16 as heap
        u write heap 0..16                 => 16m
        t sets job reclaim 16              => reclaimed 16
        u sets other reclaim 16            => reclaimed 16
        cat job zswapped                   => 65536
        cat job zswap                      => 0
        cat other zswapped                 => 65536
    ",
    );
}

/// 62 pages of half a page each, two that are resident, a stack and three page tables.
#[test]
fn a_group_pays_for_its_compressed_bytes_beyond_its_limit() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true
        swap 200
        zram 2048 2048 0
        group job max=40
        task t in job
        t anon 100 as heap
        t write heap 0..64
        cat job zswap                      => 126976
        usage job                          => 40
    ",
    );
}

/// A hundredth of the memory is ten pages, and the threshold is at eight.
#[test]
fn a_full_pool_takes_pages_again_only_below_its_accept_threshold() {
    check(
        "
        config memory=1000 folio_batch=1 charge_stock=1 zswap.enabled=true zswap.max_pool_percent=1 zswap.accept_threshold_percent=80
        swap 400
        zram 4000 4000 0
        group job
        task t in job
        t anon 100 as heap
        t write heap 0..10                 => 10m
        t sets job reclaim 10              => reclaimed 10
        debug zswap stored_pages           => 10
        t write heap 10                    => m
        t sets job reclaim 16
        vmstat zswpout pswpout             => 10 1
        debug zswap pool_limit_hit         => 1
        t read heap 0                      => M
        t sets job reclaim 16
        vmstat zswpout pswpout             => 10 2
        debug zswap stored_pages           => 9
        t read heap 1                      => M
        t sets job reclaim 16
        vmstat zswpout pswpout             => 11 2
        debug zswap stored_pages           => 9
    ",
    );
}

#[test]
fn what_a_group_may_not_have_compressed_goes_to_the_device() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true
        swap 100
        group job zswap.max=0
        task t in job
        t anon 64 as heap
        t write heap 0..32                 => 32m
        t sets job reclaim 32              => reclaimed 32
        vmstat zswpout pswpout             => 0 32
    ",
    );
}

#[test]
fn what_may_not_leave_zswap_stays_in_memory_where_it_is_not_taken() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true
        swap 100
        zram 4096 4096 0
        group job zswap.writeback=0
        task t in job
        t anon 64 as heap
        t write heap 0..32                 => 32m
        t sets job reclaim 32              => reclaimed 0
        vmstat zswpout pswpout             => 0 0
        debug zswap reject_compress_poor   => 32
    ",
    );
}

/// The pool takes ten pages, and the device none: the only copies of the other ten stay in memory, however often reclaim comes by.
#[test]
fn the_only_copy_of_what_a_full_pool_rejects_stays_in_memory_where_nothing_may_leave_zswap() {
    check(
        "
        config memory=1000 folio_batch=1 charge_stock=1 zswap.enabled=true zswap.max_pool_percent=1 zswap.accept_threshold_percent=80
        swap 400
        zram 4000 4000 0
        group job zswap.writeback=0
        task t in job
        t anon 100 as heap
        t write heap 0..20                 => 20m
        t sets job reclaim 20              => reclaimed 10
        vmstat zswpout pswpout             => 10 0
        t sets job reclaim 20
        t sets job reclaim 20
        vmstat zswpout pswpout             => 10 0
        swapped job                        => 20
        t read heap 10..20                 => 10m
        t read heap 0..10                  => 10M
        vmstat zswpin pswpin               => 10 0
        t sets job reclaim 20              => reclaimed 10
        t read heap 0..20                  => 10M 10H
        vmstat zswpout zswpin pswpout pswpin => 20 20 0 0
    ",
    );
}

#[test]
fn an_incompressible_page_is_stored_as_it_is_where_the_rules_say_so() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true zswap.incompressible=store
        swap 100
        zram 4096 4096 0
        group job
        task t in job
        t anon 64 as heap
        t write heap 0..32                 => 32m
        t sets job reclaim 32              => reclaimed 32
        vmstat zswpout pswpout             => 32 0
        debug zswap stored_incompressible_pages => 32
        t read heap 0..32                  => 32M
        debug zswap stored_incompressible_pages => 0
    ",
    );
}

/// At its `memory.zswap.max` a group's oldest entry is written back for the next. The shrinker has not met it before, so it gets a
/// second chance first, and the new page goes to the device. Five are stored, five find an entry that is spared, five replace one, and
/// the last meets an entry that is as new as those were.
#[test]
fn the_oldest_entry_makes_room_at_the_groups_limit_after_a_second_chance() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true
        swap 100
        zram 4000 4000 0
        group job zswap.max=4
        task t in job
        t anon 64 as heap
        t write heap 0..16                 => 16m
        t sets job reclaim 16
        debug zswap written_back_pages     => 5
        vmstat zswpout zswpwb pswpout      => 10 5 11
    ",
    );
}

#[test]
fn entries_of_a_removed_group_are_its_parents() {
    check(
        "
        config folio_batch=1 charge_stock=1 kmem=on zswap.enabled=true
        swap 100
        zram 2048 2048 0
        group job
        group job/web
        task t in job/web
        t anon 64 as heap
        t write heap 0..32                 => 32m
        t sets job reclaim 32              => reclaimed 32
        t moves job
        rmdir job/web
        flush
        cat job zswap                      => 65536
        t read heap 0..32                  => 32M
        flush
        cat job zswap                      => 0
    ",
    );
}
