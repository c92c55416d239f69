//! How a pass over generations is made: what it scans at each priority, when it ages, when it is enough.

use crate::check;

/// A group of `pages` pages, all read once and so in the oldest generation, is one page over its limit. Batches and stocks of one
/// page, so that all of them are on lists.
fn one_page_too_many(settings: &str, pages: u64, expected: &str) {
    check(&format!(
        "
        config policy=mglru@2026 folio_batch=1 charge_stock=1 memory=1000000 {settings}
        group job max={pages}
        file data {}
        task t in job
        t open data as f
        t read f 0..{pages}
        flush
        t read f {pages}                => M
        vmstat pgscan_file pgsteal_file => {expected} {expected}
    ",
        pages + 1
    ));
}

/// The number of scanned pages doubles with each priority, as a share of the remaining pages. It is 1, 2, 4, 8, 16 and 32 of 1056
/// pages from priority 10 on, and of four times as many from 12 on.
#[test]
fn a_pass_of_7_2_looks_at_its_share_and_no_more() {
    one_page_too_many("", 1056, "63");
    one_page_too_many("", 4160, "63");
    // 1, 3, 6, 13 and 26 at priorities 12 to 8.
    one_page_too_many("", 6700, "49");
    // 16 and 32.
    one_page_too_many("", 65_600, "48");
}

/// Isolated are 64 a round however little the priority asks for: a 4096th of 6700 pages is 1.
#[test]
fn a_pass_of_6_16_takes_64_pages_where_it_is_to_take_one() {
    one_page_too_many("lru.round=4096_pages", 6700, "64");
}

/// The machine's totals hold what groups give to their own limits, too.
#[test]
fn what_is_scanned_for_a_group_counts_for_the_machine_since_7_3() {
    for (counts, expected) in [("true", "63 63"), ("false", "0 0")] {
        check(&format!(
            "
            config policy=mglru@2026 folio_batch=1 charge_stock=1 reclaim.machine_counts={counts}
            group job max=1056
            file data 1057
            task t in job
            t open data as f
            t read f 0..1057
            vmstat pgscan_file pgsteal_file     => 63 63
            vmstat pgscan_direct pgsteal_direct => {expected}
        "
        ));
    }
}

/// A page that a fault brings in counts as accessed once, and so goes to the second oldest generation. From there it is evicted unless
/// it was used since. Up to 7.1 it went to the second youngest, which eviction reaches last. Files that are read come after.
#[test]
fn a_fault_brings_a_page_to_the_second_oldest_generation_since_7_2() {
    for (rule, file_active) in
        [("reference", "anon 0+0 file 32+0"), ("second_youngest", "anon 0+0 file 0+32")]
    {
        check(&format!(
            "
            config policy=mglru@2026 folio_batch=1 lru.fault_in={rule} fault_around_bytes=4096
            group job
            file data 32
            task t in job
            t map data as m
            t read m 0..32                  => 32M
            lists job                       => {file_active}
        "
        ));
    }
}

/// A 4096th of 401,408 pages is 98, which are two rounds of up to 64.
#[test]
fn reclaim_for_a_group_stops_at_its_target_since_7_1_and_went_on_to_the_end_of_its_count_before() {
    one_page_too_many("", 401_408, "64");
    one_page_too_many("lru.abort_scope=root", 401_408, "98");
}

/// Up to 7.3 pages that are read never count as active by themselves; with frequency guided promotion they do from the third read on.
/// So many reads move them out of the oldest generation, without the controller.
#[test]
fn pages_that_are_read_three_times_are_active_by_fg() {
    for (policy, lists) in [("mglru@2026", "anon 0+0 file 32+0"), ("mglru-fg", "anon 0+0 file 0+32")] {
        check(&format!(
            "
            config policy={policy} folio_batch=1
            group job
            file data 32
            task t in job
            t open data as f
            t read f 0..32                  => 32M
            t read f 0..32
            lists job                       => anon 0+0 file 32+0
            t read f 0..32
            lists job                       => {lists}
        "
        ));
    }
}

/// A page that is read twice moves to the second oldest generation, so that one read once goes before it. Without the promotion, and with
/// a controller that has seen no refault, age alone decides.
#[test]
fn a_page_read_twice_outlives_one_read_once_by_fg() {
    for (promotion, first) in [("true", "32H"), ("false", "32M")] {
        check(&format!(
            "
            config policy=mglru-fg folio_batch=1 charge_stock=1 lru.read_promotion={promotion} memory=1000000
            group job max=1056
            file data 1100
            task t in job
            t open data as f
            t read f 0..32                  => 32M
            t read f 0..32                  => 32H
            t read f 32..1056
            flush
            t read f 1056                   => M
            t read f 0..32                  => {first}
        "
        ));
    }
}

/// A fault restores the use that the shadow remembers: a page accessed before it was evicted enters among the young.
#[test]
fn a_page_that_a_fault_brings_back_is_active_by_fg_if_it_was_accessed_before() {
    for (policy, restored) in [("mglru-fg", "32"), ("mglru@2026", "0")] {
        check(&format!(
            "
            config policy={policy} folio_batch=1 charge_stock=1 memory=1000000 fault_around_bytes=4096
            group job max=1056
            file data 1100
            task t in job
            t open data as f
            t map data as m
            t read f 0..32                  => 32M
            t read f 0..32                  => 32H
            t read f 32..1056
            t sets job reclaim 1056
            t read m 0..32                  => 32M
            flush
            stat job workingset_activate_file => {restored}
        "
        ));
    }
}
