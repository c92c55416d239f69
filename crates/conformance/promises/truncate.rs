//! Truncation: what a file no longer has is nowhere, and is written nowhere.

use crate::check;

#[test]
fn what_was_dirty_in_a_truncated_file_is_never_written() {
    check(
        "
        config charge_stock=1 vm.dirty_background_ratio=99 vm.dirty_ratio=100
        group job
        file data 8
        task t in job
        threads
        t open data as f
        t write f 0                          => m
        t fsyncs f                           => synced     # so that the device's share is known
        ops                                  => 1 write
        t write f 0..6                       => H 5m
        vmstat nr_dirty                      => 6
        t truncates f 2..8                   => truncated
        cancelled                            => 4
        ops                                  => 4 free, 1 hole
        vmstat nr_dirty nr_file_pages        => 2 2
        usage job                            => 2
        wait 60
        written periodic                     => 2
    ",
    );
}

#[test]
fn truncation_waits_for_the_write_of_a_page_and_takes_the_others_first() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0..2                       => 2m
        device holds
        t fsyncs f                           => W
        task u in job
        u open data as g
        u write g 2..4                       => 2m
        u truncates g 0..8                   => W
        vmstat nr_file_pages nr_writeback nr_dirty => 2 2 0
        io                                   => write, t W, u W
        io                                   => write, t synced, u truncated
        vmstat nr_file_pages nr_writeback    => 0 0
    ",
    );
}

#[test]
fn a_page_that_another_brings_in_again_meanwhile_goes_as_well() {
    check(
        "
        group job
        file data 8
        task t in job
        task u in job
        t open data as f
        u open data as g
        t write f 7                          => m
        u read g 0                           => M
        device holds
        t fsyncs f                           => W
        task v in job
        v open data as h
        v truncates h 0..8                   => W
        vmstat nr_file_pages                 => 1      # the page under writeback
        u write g 0                          => m
        vmstat nr_file_pages nr_dirty        => 2 1
        io                                   => write, t synced, v truncated
        vmstat nr_file_pages nr_dirty        => 0 0
    ",
    );
}

#[test]
fn a_mapped_page_is_taken_from_all_who_map_it_and_read_anew() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        task u in job
        t map data as m
        u map data as n
        t write m 0                          => M
        u read n 0                           => m
        t mlock m
        vmstat nr_unevictable                => 1
        u truncates n 0..1                   => truncated
        vmstat nr_mapped nr_dirty nr_unevictable => 0 0 0
        t read m 0                           => M
    ",
    );
}

#[test]
fn a_shadow_goes_with_its_page_of_the_file() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group job max=16
        file data 32
        task t in job
        t open data as f
        t read f 0..32                       => 32M
        t truncates f 0..32                  => truncated
        vmstat nr_file_pages workingset_nodes => 0 0
        t read f 0                           => M
        vmstat workingset_refault_file       => 0
    ",
    );
}

#[test]
fn the_slots_of_a_truncated_tmpfs_file_are_free() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group job max=16
        tmpfs shm 32
        swap 64
        task t in job
        t open shm as f
        t write f 0..32                      => 32m
        swapped job                          => 28
        t truncates f 0..32                  => truncated
        swapped job                          => 0
        usage job                            => 0
        t read f 5                           => m
    ",
    );
}

#[test]
fn a_truncated_file_keeps_its_age_and_one_that_is_made_anew_does_not() {
    let written_after = |goes: &str, seconds: u64| {
        format!(
            "
        config charge_stock=1 vm.dirty_background_ratio=99 vm.dirty_ratio=100
        group job
        file data 8
        task t in job
        threads
        t open data as f
        t write f 0                          => m
        t fsyncs f                           => synced     # so that the device's share is known
        t write f 0..6                       => H 5m
        wait 20
        t {goes}                             => truncated
        t write f 0..6                       => 6m
        wait {seconds}
        written periodic                     => "
        )
    };
    check(&(written_after("truncates f 0..8", 16) + "6"));
    check(&(written_after("deletes f", 16) + "0"));
    check(&(written_after("deletes f", 36) + "6"));
}
