//! Accesses through descriptors and mappings, what they tell reclaim, and advice.

use crate::check;

#[test]
fn a_second_read_through_a_descriptor_activates() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0..4             => 4M
        lists job                 => anon 0+0 file 4+0
        t read f 1                => H
        lists job                 => anon 0+0 file 3+1
        vmstat pgactivate         => 1
    ",
    );
}

#[test]
fn rereading_the_same_page_in_a_row_does_not_mark_it() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0                => M
        t read f 0                => H
        t read f 0                => H
        lists job                 => anon 0+0 file 1+0
        t read f 1                => M
        t read f 0                => H     # another page came in between
        lists job                 => anon 0+0 file 1+1
    ",
    );
}

#[test]
fn rereading_the_same_page_of_tmpfs_in_a_row_marks_it() {
    check(
        "
        config folio_batch=1
        group job
        tmpfs shm 8
        task t in job
        t open shm as f
        t write f 0               => m     # created referenced
        lists job                 => anon 1+0 file 0+0
        t read f 0                => H
        lists job                 => anon 0+1 file 0+0
    ",
    );
}

#[test]
fn another_descriptor_of_the_same_file_marks_for_itself() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t open data as g
        t read f 0                => M
        t read g 0                => H
        lists job                 => anon 0+0 file 0+1
    ",
    );
}

#[test]
fn a_page_activated_while_it_waits_in_the_add_batch_enters_active_and_is_no_pgactivate() {
    check(
        "
        group job
        file data 64
        task t in job
        t open data as f
        t read f 0..3             => 3M
        t read f 0                => H
        lists job                 => anon 0+0 file 0+0
        t read f 3..31            => 28M   # the 31st fills the batch
        lists job                 => anon 0+0 file 30+1
        vmstat pgactivate         => 0
    ",
    );
}

/// The group's pages are reclaimed as far as possible each time: what is still there had another round.
#[test]
fn a_mapped_page_touched_once_gets_one_more_round() {
    check(
        "
        config folio_batch=1 reclaim_batch=1
        group job
        file data 8
        task t in job
        t map data as m
        t read m 0                => M
        t sets job reclaim 1      => reclaimed 1    # the first look finds the bit, the next, at a lower priority, nothing
        vmstat pgscan_file        => 2
        t read m 0                => M
        vmstat pgactivate         => 0
    ",
    );
}

#[test]
fn a_mapped_page_touched_in_two_rounds_is_activated() {
    check(
        "
        config folio_batch=1 reclaim_batch=1 stat=live
        group job
        file data 8
        task t in job
        t map data as m
        t read m 0                => M
        t map data as n
        t read n 0                => m              # two entries with accessed bits count as two rounds
        t sets job reclaim 1      => reclaimed 0
        vmstat pgactivate         => 1
    ",
    );
}

#[test]
fn an_executable_page_is_activated_when_first_found_used() {
    check(
        "
        config folio_batch=1 reclaim_batch=1
        group job
        file code 8
        task t in job
        t map code as m exec
        t read m 0                => M
        t sets job reclaim 1
        vmstat pgactivate         => 1
    ",
    );
}

#[test]
fn accessed_bits_of_a_mapping_advised_random_do_not_count() {
    check(
        "
        config folio_batch=1 reclaim_batch=1
        group job
        file data 8
        task t in job
        t map data as m random
        t read m 0..2             => 2M
        t sets job reclaim 1      => reclaimed 1
        vmstat pgscan_file        => 1
    ",
    );
}

#[test]
fn accessed_bits_of_what_is_mapped_from_a_file_that_is_not_reused_do_not_count() {
    for said in ["t map data as m noreuse", "t map data as m\n t advises m noreuse"] {
        let scenario = |after: &str| {
            format!(
                "
                config folio_batch=1 reclaim_batch=1
                group job
                file data 8
                task t in job
                {said}
                {after}
                t read m 0..2             => 2M
                t sets job reclaim 1      => reclaimed 1
                "
            )
        };
        check(&format!("{} vmstat pgscan_file => 1", scenario("")));
        check(&format!("{} vmstat pgscan_file => 3", scenario("t advises m normal")));
    }
}

#[test]
fn reading_a_file_that_is_not_reused_marks_its_pages_as_usual() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t open data as f
        t advises f noreuse
        t read f 0                => M
        t read f 1                => M
        t read f 0                => H
        lists job                 => anon 0+0 file 1+1
    ",
    );
}

#[test]
fn a_read_of_anonymous_memory_takes_no_page_and_a_write_does() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        task t in job
        t anon 8 as heap
        t read heap 0..8          => 8m
        usage job                 => 0
        t write heap 0..2         => 2m
        usage job                 => 2
        t read heap 0..3          => 3H
        ops                       => 2 zero
    ",
    );
}

#[test]
fn unmapping_a_used_page_marks_it_accessed() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t map data as m
        t read m 0                => M
        t munmap m                           # young: the first of two accesses
        t open data as f
        t read f 0                => H       # the second
        lists job                 => anon 0+0 file 0+1
    ",
    );
}

#[test]
fn unmapping_a_mapping_advised_random_marks_nothing() {
    check(
        "
        config folio_batch=1
        group job
        file data 8
        task t in job
        t map data as m random
        t read m 0                => M
        t munmap m
        t open data as f
        t read f 0                => H
        lists job                 => anon 0+0 file 1+0
    ",
    );
}

#[test]
fn two_tasks_that_miss_on_the_same_page_read_it_once() {
    check(
        "
        group job
        file data 8
        task a in job
        task b in job
        a open data as f
        b map data as m
        device holds
        a read f 3                => W
        b read m 3                => W
        ops                       => 1 read
        io                        => read, a M, b m
        ops                       =>
        vmstat pgmajfault         => 0     # the fault read nothing: it came upon a read under way
    ",
    );
}

#[test]
fn a_major_fault_is_one_that_reads_not_one_that_waits() {
    check(
        "
        group job
        file data 8
        task a in job
        task b in job
        a map data as m
        b map data as m
        device holds
        a read m 3                => W
        b read m 3                => W
        io                        => read, a M, b m
        vmstat pgmajfault         => 1
        vmstat pgfault            => 2
    ",
    );
}

#[test]
fn a_read_that_fails_twice_fails_all_who_waited_and_the_next_one_reads_again() {
    check(
        "
        config charge_stock=1
        group job
        file data 8
        task a in job
        task b in job
        a open data as f
        b open data as f
        device holds
        a read f 3                => W
        b read f 3                => W
        io fails                  => read, a W, b W   # what readahead could not read is read by itself
        io fails                  => read, a E, b E
        why                       => the device failed to read the page (EIO)
        a read f 3                => W
        io                        => read, a M
        b read f 3                => H
        usage job                 => 3     # what could not be read, twice, waits in its batch
    ",
    );
}

#[test]
fn pages_locked_into_memory_are_never_scanned() {
    check(
        "
        config folio_batch=1
        group job max=64
        file data 100
        task t in job
        t map data as m
        t read m 0..20            => 20M
        t mlock m
        vmstat nr_mlock nr_unevictable => 20 20
        lists job                 => anon 0+0 file 0+0
        t open data as f
        t read f 20..100          => 80M
        t sets job reclaim 64     => reclaimed 36
        vmstat pgscan_file pgsteal_file => 80 80
        t read m 0..20            => 20H
        t munlock m
        lists job                 => anon 0+0 file 20+0
    ",
    );
}

#[test]
fn fadvise_drops_an_unused_page_at_once_and_leaves_no_shadow() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0..2             => 2M
        t dontneed data 0
        usage job                 => 1
        t read f 0                => M
        vmstat workingset_refault_file => 0
    ",
    );
}

#[test]
fn fadvise_drops_pages_that_wait_in_batches_of_any_cpu() {
    check(
        "
        config cpus=2 charge_stock=1
        group job
        file data 8
        task a in job cpu=0
        task b in job cpu=1
        a open data as f
        a read f 0..4             => 4M
        a dontneed data 0..2                 # in a batch of its own CPU
        usage job                 => 2
        b dontneed data 2..4                 # in one of another CPU
        usage job                 => 0
    ",
    );
}

#[test]
fn fadvise_sends_a_page_in_use_to_the_cold_end() {
    check(
        "
        config charge_stock=1
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0..2             => 2M
        t write f 1               => H
        t dontneed data 0..2                 # page 1 is dirty
        usage job                 => 1
    ",
    );
}

#[test]
fn fadvise_drops_shadows() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0..4             => 4M
        t sets job reclaim 4      => reclaimed 4
        t dontneed data 0..2
        t read f 0..4             => 4M
        vmstat workingset_refault_file => 2
    ",
    );
}

#[test]
fn a_page_in_a_batch_of_another_cpu_can_not_be_freed() {
    check(
        "
        config cpus=2 charge_stock=1
        group job
        file data 8
        task a in job cpu=0
        task b in job cpu=1
        a open data as f
        a read f 0..4             => 4M
        b sets job reclaim 4      => reclaimed 0
        a sets job reclaim 4      => reclaimed 0     # nothing is on a list, so that reclaim doesn't even drain its own
        usage job                 => 4
    ",
    );
}

#[test]
fn a_pinned_page_is_activated_at_each_look() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 8
        task t in job
        t open data as f
        t read f 0..2             => 2M
        pin data 0
        t sets job reclaim 1      => reclaimed 1
        usage job                 => 1
        lists job                 => anon 0+0 file 0+1
    ",
    );
}

#[test]
fn memory_said_to_be_free_is_dropped_without_a_write_unless_it_was_written_again() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        swap 100
        task t in job
        t anon 8 as heap
        t write heap 0..4         => 4m
        t free heap 0..4
        lists job                 => anon 0+0 file 4+0
        t write heap 3            => H
        t sets job reclaim 3      => reclaimed 3
        ops                       => 3 free, 4 zero
        lists job                 => anon 0+0 file 1+0    # used: one more round
        t sets job reclaim 1      => reclaimed 0
        lists job                 => anon 0+1 file 0+0
        t read heap 0..4          => 3m H
        usage job                 => 1
    ",
    );
}
