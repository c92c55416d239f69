//! Dirty pages of files: what makes them dirty, who writes them and when, what reclaim does with them, and who waits.

use crate::check;

#[test]
fn a_page_is_counted_dirty_once_however_often_it_is_written() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0..3            => 3m
        t write f 0..3            => 3H
        t write f 1               => H
        vmstat nr_dirty nr_dirtied nr_writeback nr_written => 3 3 0 0
        stat job nr_dirty         => 0     # as of the last flush
        flush
        stat job nr_dirty         => 3
    ",
    );
}

#[test]
fn a_write_of_a_whole_page_reads_nothing_and_a_shorter_one_reads_an_absent_page_first() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0               => m
        ops                       =>
        t writes partial f
        t write f 1               => M
        ops                       => 1 read
        t write f 0..2            => 2H
        vmstat nr_dirty           => 2
    ",
    );
}

#[test]
fn a_write_to_a_page_that_was_read_is_a_hit_and_makes_it_dirty() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0                => M
        t write f 0               => H
        vmstat nr_dirty           => 1
    ",
    );
}

#[test]
fn a_write_through_a_descriptor_is_no_use_to_linux() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0               => m
        t write f 0               => H
        t write f 0               => H
        lists job                 => anon 0+0 file 1+0
        t read f 0                => H
        lists job                 => anon 0+0 file 1+0
        t read f 1                => M
        t read f 0                => H
        lists job                 => anon 0+0 file 1+1
    ",
    );
}

#[test]
fn a_page_that_comes_back_by_a_write_is_no_refault() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group job max=16
        file data 32
        task t in job
        t open data as f
        t read f 0..32            => 32M
        t read f 0                => M
        vmstat workingset_refault_file => 1
        t write f 1               => m
        vmstat workingset_refault_file => 1
    ",
    );
}

#[test]
fn the_first_store_to_a_clean_page_of_a_mapped_file_faults_and_later_ones_do_not() {
    check(
        "
        group job
        file data 8
        task t in job
        threads
        t map data as m
        t read m 0                => M
        t write m 0               => m
        t write m 0               => H
        vmstat nr_dirty           => 1
        t fsyncs m                => synced
        written fsync             => 1
        vmstat nr_dirty           => 0
        t read m 0                => H
        t write m 0               => m     # write-protected when it was written
        vmstat nr_dirty nr_dirtied => 1 2
    ",
    );
}

#[test]
fn a_page_written_again_while_it_is_being_written_stays_dirty() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0               => m
        device holds
        t fsyncs f                => W
        vmstat nr_dirty nr_writeback => 0 1
        task u in job
        u open data as g
        u write g 0               => H
        vmstat nr_dirty nr_writeback nr_dirtied => 1 1 2
        io                        => write, t synced
        vmstat nr_dirty nr_writeback nr_written => 1 0 1
    ",
    );
}

#[test]
fn pages_are_written_half_a_minute_after_they_became_dirty() {
    check(
        "
        config vm.dirty_background_ratio=99 vm.dirty_ratio=100
        group job
        file data 64
        task t in job
        threads
        t open data as f
        t write f 0..4            => 4m
        t fsyncs f                => synced      # so that the device's share is known
        t write f 0..4            => 4H
        wait 29
        written periodic          => 0
        wait 11
        written periodic          => 4
        vmstat nr_dirty nr_written => 0 8
    ",
    );
}

#[test]
fn without_periodic_writeback_pages_stay_dirty() {
    check(
        "
        config vm.dirty_writeback_centisecs=0
        group job
        file data 64
        task t in job
        threads
        t open data as f
        t write f 0..4            => 4m
        wait 1000
        vmstat nr_dirty           => 4
    ",
    );
}

#[test]
fn a_failed_write_leaves_a_clean_page_and_fsync_tells_once() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0               => m
        device fails
        t fsyncs f                => failed
        vmstat nr_dirty nr_writeback nr_written => 0 0 1
        device answers
        t fsyncs f                => synced
        t read f 0                => H
    ",
    );
}

#[test]
fn a_failed_write_that_is_kept_leaves_a_dirty_page_and_fsync_fails_until_that_is_acknowledged() {
    check(
        "
        config writeback.failed_write=dirty
        group job
        file data 8
        task t in job
        task u in job
        t open data as f
        u open data as g
        t write f 0               => m
        device fails
        t fsyncs f                => failed
        vmstat nr_dirty nr_dirtied nr_writeback nr_written => 1 1 0 1
        t fsyncs f                => failed    # tried again
        vmstat nr_dirty nr_dirtied nr_writeback nr_written => 1 1 0 2
        device answers
        t fsyncs f                => failed    # though it went well now
        u fsyncs g                => failed
        vmstat nr_dirty nr_written => 0 3
        t acknowledges f
        t fsyncs f                => synced
        u fsyncs g                => synced
        t write f 0               => H
        device fails
        u fsyncs g                => failed    # that nobody knows of yet
    ",
    );
}

#[test]
fn what_a_device_fails_to_keep_is_dirty_again_and_fsync_fails_until_that_is_acknowledged() {
    check(
        "
        config writeback.failed_write=dirty
        group job
        file data 8
        task t in job
        task u in job
        t open data as f
        u open data as g
        t write f 0..4            => 4m
        t fsyncs f                => synced
        t keeps f                 => 0 dirty, 0 lost
        t write f 2..6            => 2H 2m
        t fsyncs f                => synced
        vmstat nr_dirty nr_dirtied nr_written => 0 8 8
        t loses f                 => 4 dirty, 0 lost    # since it last kept what it had
        vmstat nr_dirty nr_dirtied nr_written => 4 8 8  # dirtied by nobody
        t fsyncs f                => failed    # though it went well now
        u fsyncs g                => failed
        vmstat nr_dirty nr_written => 0 12
        t acknowledges f
        t fsyncs f                => synced
        u fsyncs g                => synced
        t loses f                 => 4 dirty, 0 lost    # they were written again, and not kept
        t truncates f 0..8        => truncated
        t acknowledges f
        t loses f                 => 0 dirty, 0 lost    # what is gone needs no device
        t fsyncs f                => failed
    ",
    );
}

#[test]
fn what_has_left_memory_before_its_device_kept_it_is_told_and_what_came_back_is_written_again() {
    check(
        "
        config writeback.failed_write=dirty folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0..4            => 4m
        t fsyncs f                => synced
        t dontneed data 0..2
        t read f 0                => M
        t loses f                 => 2 dirty, 2 lost
        vmstat nr_dirty           => 3
    ",
    );
}

#[test]
fn where_a_failed_write_leaves_a_clean_page_a_failed_flush_does_too() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0..4            => 4m
        t fsyncs f                => synced
        t loses f                 => 0 dirty, 0 lost
        vmstat nr_dirty           => 0
        t fsyncs f                => synced    # whoever had it flushed tells of that
    ",
    );
}

#[test]
fn a_file_whose_writes_fail_rests_for_twice_as_long_each_time_and_reclaim_drops_none_of_it() {
    check(
        "
        config writeback.failed_write=dirty vm.dirty_expire_centisecs=1 vm.dirty_writeback_centisecs=100
        group job max=64
        file data 256
        task t in job
        threads
        t open data as f
        t write f 0..8            => 8m
        device fails
        wait 1                    # the flusher looks once a second; a try is one of all of them
        vmstat nr_dirty nr_written => 8 8
        wait 1
        vmstat nr_dirty nr_written => 8 16
        wait 1
        vmstat nr_written         => 16
        wait 1
        vmstat nr_dirty nr_written => 8 24
        wait 3
        vmstat nr_written         => 24
        device answers
        t read f 100..200         => 100M
        vmstat nr_dirty           => 8         # they were met, and are there
        t read f 0..8             => 8H
        wait 1
        vmstat nr_dirty nr_written => 0 32
    ",
    );
}

#[test]
fn sync_tries_a_resting_file_once_and_does_not_wait_until_its_device_is_well() {
    check(
        "
        config writeback.failed_write=dirty
        group job
        file data 8
        task t in job
        threads
        t open data as f
        t write f 0..4            => 4m
        device fails
        t syncs                   => synced    # it tells of no errors
        vmstat nr_dirty nr_written => 4 4
        t syncs                   => synced
        vmstat nr_dirty nr_written => 4 8
        t syncfs f                => failed
        vmstat nr_dirty nr_written => 4 12
        device answers
        t syncs                   => synced
        vmstat nr_dirty nr_written => 0 16
        t fsyncs f                => failed
    ",
    );
}

#[test]
fn writer_of_failing_device_gets_error_until_it_works() {
    check(
        "
        config writeback.failed_write=dirty memory=4096 folio_batch=1 stat=live vm.dirty_ratio=10 vm.dirty_background_ratio=5
        group job
        file data 2048
        task t in job
        threads
        t open data as f
        device fails
        t write f 0..200          => 200m      # below the free run
        t write f 200..400        => 96m F after 520.000 ms 103F
        why                       => the device fails to write dirty pages (ENOSPC, EIO): nothing was changed
        device answers
        t write f 400             => F         # the last failure is young
        wait 1
        t write f 400..410        => m after 20.000 ms 9m      # found by a probe, though the file rests
        t write f 0..10           => 10H
    ",
    );
}

#[test]
fn group_full_of_pages_that_cant_be_written_has_no_memory() {
    check(
        "
        config writeback.failed_write=dirty oom_kill=false folio_batch=1 charge_stock=1 stat=live vm.dirty_ratio=100 vm.dirty_background_ratio=99
        group job max=64
        file data 128
        task t in job
        threads
        t open data as f
        t write f 0..64           => 64m
        device fails
        t syncs                   => synced    # it tells of no errors, and the file rests
        vmstat nr_dirty           => 64
        t read f 100              => O
        device answers
        wait 30
        t read f 100              => M
    ",
    );
}

#[test]
fn truncated_file_holds_its_device_up_no_more() {
    check(
        "
        config writeback.failed_write=dirty memory=4096 folio_batch=1 stat=live vm.dirty_ratio=10 vm.dirty_background_ratio=5
        group job
        file data 2048
        file log 2048
        task t in job
        threads
        t open data as f
        t open log as g
        device fails
        t write f 0..297          => 296m F after 520.000 ms
        t write g 0               => F         # of the same device
        t truncates f 0..2048     => truncated
        vmstat nr_dirty           => 0
        t write g 0..100          => 100m
    ",
    );
}

#[test]
fn reclaim_passes_dirty_pages_by_and_the_end_of_their_write_brings_them_to_the_tail() {
    check(
        "
        config folio_batch=1 charge_stock=1 stat=live vm.dirty_ratio=100 vm.dirty_background_ratio=99
        group job max=40
        file data 128
        task t in job
        threads
        t open data as f
        t write f 0..40           => 40m
        vmstat nr_dirty nr_written => 40 0
        t read f 100              => M
        vmstat nr_vmscan_immediate_reclaim nr_vmscan_write => 1 0
        written vmscan            => 40
        vmstat nr_dirty nr_written pgrotated => 0 40 1
    ",
    );
}

#[test]
fn so_it_is_among_generations() {
    check(
        "
        config folio_batch=1 charge_stock=1 stat=live vm.dirty_ratio=100 vm.dirty_background_ratio=99 policy=mglru@6.12
        group job max=40
        file data 128
        task t in job
        threads
        t open data as f
        t write f 0..40           => 40m
        vmstat nr_dirty nr_written => 40 0
        t read f 100              => M
        vmstat nr_vmscan_immediate_reclaim nr_vmscan_write => 40 0
        written vmscan            => 40
        vmstat nr_dirty nr_written pgrotated => 0 40 40
    ",
    );
}

#[test]
fn a_write_error_is_told_to_each_open_file_once() {
    check(
        "
        group job
        file data 8
        task t in job
        task u in job
        t open data as f
        u open data as g
        t write f 0               => m
        device fails
        t fsyncs f                => failed
        device answers
        u fsyncs g                => failed
        t fsyncs f                => synced
        u fsyncs g                => synced
    ",
    );
}

#[test]
fn sync_has_one_file_after_the_other_written_and_waits_until_the_device_has_it() {
    check(
        "
        group job
        file data 8
        file more 8
        task t in job
        threads
        t open data as f
        t open more as g
        t write f 0               => m
        t write g 0               => m
        device holds
        t syncs                   => T
        written sync              => 1
        io                        => write
        written sync              => 2
        io                        => write, t synced
        vmstat nr_dirty nr_writeback => 0 0
    ",
    );
}

#[test]
fn sync_has_files_of_all_groups_written() {
    check(
        "
        group job
        group other
        file data 8
        file more 8
        task t in job
        task u in other
        task v in other
        threads
        t open data as f
        u open more as g
        t write f 0..3            => 3m
        u write g 0..3            => 3m
        v syncs                   => synced
        written sync              => 6
        vmstat nr_dirty nr_writeback => 0 0
        v syncs                   => synced
        written sync              => 6
    ",
    );
}

#[test]
fn sync_waits_for_what_others_have_begun_to_write() {
    check(
        "
        group job
        file data 8
        task t in job
        task u in job
        threads
        t open data as f
        t write f 0               => m
        device holds
        t fsyncs f                => W
        u syncs                   => T
        written sync              => 0
        io                        => write, t synced, u synced
    ",
    );
}

#[test]
fn sync_writes_a_page_again_that_was_changed_while_it_was_being_written() {
    check(
        "
        group job
        file data 8
        task t in job
        task u in job
        threads
        t open data as f
        u open data as g
        t write f 0               => m
        device holds
        t fsyncs f                => W
        u write g 0               => H
        u syncs                   => T
        written sync              => 0
        io                        => write, t W     # it is being written again
        written sync              => 1
        io                        => write, t synced, u synced
        vmstat nr_dirty nr_writeback nr_written => 0 0 2
    ",
    );
}

#[test]
fn what_becomes_dirty_while_a_file_system_is_synced_is_left_to_others() {
    check(
        "
        group job
        file data 8
        task t in job
        task u in job
        threads
        t open data as f
        u open data as g
        t write f 0..2            => 2m
        device holds
        t syncfs f                => T
        wait 1
        u write g 0..3            => 2H m
        io                        => write
        io                        => write, t synced
        vmstat nr_dirty nr_writeback => 3 0
    ",
    );
}

#[test]
fn syncfs_tells_each_open_file_once_of_a_write_that_failed_and_sync_tells_nobody() {
    check(
        "
        group job
        file data 8
        file more 8
        task t in job
        task u in job
        threads
        t open data as f
        u open more as g
        t write f 0               => m
        device fails
        t syncs                   => synced
        device answers
        u syncfs g                => failed    # of another file
        u syncfs g                => synced
        t syncfs f                => failed
        t syncfs f                => synced
        t fsyncs f                => failed    # that is of the file
    ",
    );
}

#[test]
fn without_flushers_who_syncs_writes() {
    check(
        "
        group job
        file data 8
        task t in job
        t open data as f
        t write f 0..4            => 4m
        t syncs                   => synced
        written sync              => 4
        vmstat nr_dirty nr_writeback => 0 0
    ",
    );
}

#[test]
fn a_device_with_a_strict_limit_holds_its_writers_up_where_the_machine_has_room() {
    let scenario = |limits: &str, served: &str, dirty: &str| {
        format!(
            "
        config memory=65536
        group job
        file data 2000
        task t in job
        threads
        {limits}
        t open data as f
        t write f 0..600          => {served}
        vmstat nr_dirty           => {dirty}
    "
        )
    };
    check(&scenario("", "600m", "600"));
    check(&scenario("device has 0 to 1", "600m", "600"));
    check(&scenario("device has 0 to 1 strictly", "32m m after 8.000 ms 567m", "67"));
}

#[test]
fn who_is_over_the_limits_has_files_of_other_groups_written() {
    let scenario = |rules: &str, served: &str, by_foreign: &str, dirty: &str| {
        format!(
            "
        config memory=65536 stat=live vm.dirty_writeback_centisecs=0 {rules}
        group owner
        group job max=400
        file data 400
        task s in owner
        task t in job
        threads
        s open data as o
        t open data as f
        s write o 0               => m
        t write f 1..150          => {served}
        written foreign_flush     => {by_foreign}
        vmstat nr_dirty           => {dirty}
    "
        )
    };
    check(&scenario("", "149m", "114", "36"));
    check(&scenario("writeback.foreign_flush=false", "84m 65m after 8.000 ms", "0", "150"));
}

#[test]
fn a_file_that_another_group_writes_becomes_that_groups() {
    let scenario = |rules: &str, rounds: usize, foreign: &str| {
        let round = "
        wait 40
        t write f 1..4            => 3H";
        format!(
            "
        config memory=65536 stat=live vm.dirty_background_ratio=5 vm.dirty_ratio=10 {rules}
        group owner
        group job max=800
        file data 400
        task s in owner
        task t in job
        threads
        s open data as o
        t open data as f
        s write o 0               => m
        t write f 1..4            => 3m{}
        t write f 4..150          => 146m
        written foreign_flush     => {foreign}
    ",
            round.repeat(rounds)
        )
    };
    check(&scenario("", 12, "0"));
    check(&scenario("", 0, "122"));
    check(&scenario("writeback.inode_switching=false", 12, "121"));
}

/// Without laptop mode they would be written when they are half a minute old.
#[test]
fn in_laptop_mode_a_read_has_all_dirty_pages_of_its_device_written_some_seconds_later() {
    check(
        "
        config vm.laptop_mode=5
        group job
        file data 64
        task t in job
        threads
        t open data as f
        t write f 16              => m
        t fsyncs f                => synced     # a device that has written nothing has no share of the threshold
        t write f 0..8            => 8m
        wait 6
        vmstat nr_dirty           => 8
        t read f 32               => M
        wait 3
        t read f 48               => M
        wait 3
        vmstat nr_dirty           => 8     # put off by the second read
        wait 3
        vmstat nr_dirty           => 0
        written laptop_timer      => 8
        written periodic          => 0
    ",
    );
}

/// A fifth of 4096 pages may be dirty, and from a tenth on the flusher writes by itself; writers are held up half way.
#[test]
fn in_laptop_mode_the_flusher_begins_by_itself_only_when_a_writer_is_held_up() {
    for (mode, expected) in [(0, 393), (5, 0)] {
        check(&format!(
            "
            config memory=4096 boost=0 vm.laptop_mode={mode}
            group job
            file data 2000
            task t in job
            threads
            t open data as f
            t write f 0..500          => 500m
            written background        => {expected}
        "
        ));
    }
}

/// Nothing but anonymous memory. Pages scanned above priority 9 are kept, and scanned in vain.
#[test]
fn in_laptop_mode_reclaim_writes_nothing_above_priority_9_or_in_2010_before_it_has_looked_in_vain_and_by_7_3_does_not_know_it()
 {
    for (settings, scanned) in [
        ("", "40609"),
        ("vm.laptop_mode=5", "40759"),
        ("vm.laptop_mode=5 reclaim.laptop_mode=ignored", "40609"),
        ("vm.laptop_mode=5 reclaim.laptop_mode=scanned", "41453"),
    ] {
        check(&format!(
            "
            config charge_stock=1 {settings}
            swap 40000 sync
            group job max=40000
            task t in job
            t anon 41000 as heap
            t write heap 0..40001     => 40001m
            wait 3
            t write heap 40001..40601 => 600m
            flush
            stat job pgscan_direct    => {scanned}
        "
        ));
    }
}
