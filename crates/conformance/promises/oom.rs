//! Out of memory: which process is killed, and how the tasks continue that needed a page.
//!
//! A process that has touched one mapping has three page-table pages: its score is its pages, those in swap, and these three.

use crate::check;

#[test]
fn the_process_of_the_group_that_frees_most_is_killed_and_the_charge_goes_on() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group job max=60
        task small in job
        task large in job
        task outside in /
        small anon 100 as heap
        large anon 100 as heap
        outside anon 100 as heap
        outside write heap 0..100 => 100m      # the most of all, but not the group's
        large write heap 0..40    => 40m
        small write heap 0..20    => 20m
        usage job                 => 60
        small write heap 20..22   => m after 4.000 ms m
        kills                     => large 43
        usage job                 => 22
        events job oom            => 1
        events job oom_kill       => 1
        local job oom_kill        => 1
        vmstat oom_kill           => 1
        small read heap 0..22     => 22H
        outside read heap 0..100  => 100H
    ",
    );
}

#[test]
fn a_task_that_is_the_worst_itself_ends_in_the_middle_of_its_access() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group job max=60
        task small in job
        task large in job
        small anon 100 as heap
        large anon 100 as heap
        small write heap 0..20    => 20m
        large write heap 0..40    => 40m
        large write heap 40       => exited
        kills                     => large 43
        usage job                 => 20
        small write heap 20..60   => 40m
    ",
    );
}

#[test]
fn several_are_killed_in_turn_and_the_last_one_is_the_one_who_wants_it() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group job max=60
        task a in job
        task b in job
        task c in job
        a anon 100 as heap
        b anon 100 as heap
        c anon 100 as heap
        a write heap 0..20        => 20m
        b write heap 0..25        => 25m
        c write heap 0..15        => 15m
        c write heap 15           => m after 4.000 ms
        kills                     => b 28
        c write heap 16..40       => 24m
        c write heap 40           => exited
        kills                     => c 43
        a write heap 20..60       => 40m
        a write heap 60           => exited
        events job oom_kill       => 3
    ",
    );
}

/// One point is a thousandth of the 60 pages: 333 points are 19 pages, 350 are 21. Without them the small one has 23, and the
/// large one 43.
#[test]
fn oom_score_adj_is_in_thousandths_of_what_the_group_may_have() {
    for (adj, killed) in [(333, "large 43"), (350, "small 44"), (-1000, "large 43")] {
        check(&format!(
            "
            config oom_kill=true folio_batch=1 charge_stock=1
            group job max=60
            task small in job
            task large in job
            small anon 100 as heap
            large anon 100 as heap
            large write heap 0..40    => 40m
            small write heap 0..20    => 20m
            small adj {adj}
            small write heap 20
            kills                     => {killed}
        "
        ));
    }
}

#[test]
fn swap_entries_count_as_pages_do() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1 reclaim_batch=4
        group job max=60
        swap 40 sync
        task early in job
        task late in job
        early anon 200 as heap
        late anon 200 as heap
        early write heap 0..50
        late write heap 0..49
        swapped job               => 40
        late write heap 49..60
        kills                     => early 53
    ",
    );
}

#[test]
fn a_group_that_is_one_is_killed_as_a_whole_but_for_who_is_exempt() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group top max=60
        group top/job
        group top/job/inner
        group top/other
        oom-group top/job
        task a in top/job
        task b in top/job/inner
        task exempt in top/job
        task other in top/other
        a anon 100 as heap
        b anon 100 as heap
        exempt anon 100 as heap
        other anon 100 as heap
        exempt adj -1000
        a write heap 0..5         => 5m
        exempt write heap 0..8    => 8m
        b write heap 0..30        => 30m
        other write heap 0..17    => 17m
        other write heap 17       => m after 4.000 ms
        kills                     => b 33, a 8
        events top/job oom_group_kill => 1
        events top oom_group_kill => 1
        local top oom_group_kill  => 0
        events top oom_kill       => 2
        local top/job oom_kill    => 1
        exempt read heap 0..8     => 8H
        other read heap 0..18     => 18H
    ",
    );
}

#[test]
fn all_threads_of_the_victim_end() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group job max=60
        task other in job
        task victim in job
        victim anon 100 as heap
        other anon 100 as heap
        victim thread second
        victim write heap 0..20   => 20m
        second write heap 20..40  => 20m
        other write heap 0..20    => 20m
        other write heap 20       => m after 4.000 ms
        kills                     => victim 43
        usage job                 => 21
    ",
    );
}

#[test]
fn a_victim_that_waits_for_a_read_ends_at_once_and_the_page_stays_for_others() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        file data 10
        group job max=60
        task other in job
        task victim in job
        victim anon 100 as heap
        victim open data as f
        other anon 100 as heap
        other open data as f
        victim write heap 0..40   => 40m
        other write heap 0..19    => 19m
        device holds
        victim read f 3           => W
        other write heap 19       => m after 4.000 ms
        kills                     => victim 43
        io                        => read
        device answers
        other read f 3            => H
    ",
    );
}

#[test]
fn pages_of_tmpfs_that_nobody_maps_are_relieved_by_no_kill() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        tmpfs shm 100
        group job max=60
        task a in job
        task b in job
        b anon 100 as heap
        a open shm as f
        b write heap 0            => m
        a write f 0..59           => 59m
        a write f 59              => m after 4.000 ms
        kills                     => b 4
        a write f 60              => exited
        kills                     => a 0
    ",
    );
}

#[test]
fn out_of_memory_that_no_kill_can_relieve_says_so() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group job max=20
        task a in job
        task b in job
        a anon 100 as heap
        b anon 100 as heap
        a adj -1000
        b adj -1000
        b write heap 0            => m
        a write heap 0..19        => 19m
        a write heap 19           => O
        why => out of memory in /job: 20 of 20 pages charged; 16 reclaim attempts freed too little; lists: anon 20 inactive + 0 active, file 0 inactive + 0 active, 0 unevictable; free swap 0 pages; none of the 2 processes in /job may be killed: their oom_score_adj is -1000 (anonymous memory can't be reclaimed without swap: add swap or raise memory.max)
        events job oom            => 1
        events job oom_kill       => 0
        b exits                   => exited
        a write heap 19           => m
        a write heap 20           => O
    ",
    );
}

/// 4096 pages, of which 128 are the minimum; the small one has four pages of stack and as many of tables.
#[test]
fn the_machine_kills_for_its_own_memory_whoever_has_most() {
    check(
        "
        config oom_kill=true memory=4096 boost=0
        group a
        group b max=2000
        task large in a
        task small in b
        large anon 5000 as heap
        small anon 5000 as heap
        small write heap 0..1000  => 1000m
        large write heap 0..2900
        vmstat oom_kill           => 0
        small write heap 1000..1200
        kills                     => large 2908
        vmstat oom_kill           => 1
        events a oom_kill         => 1
        events a oom              => 0
        events b oom              => 0
        small read heap 0..1200   => 1200H
    ",
    );
}

#[test]
fn the_log_has_the_kernels_lines() {
    check(
        "
        config oom_kill=true folio_batch=1 charge_stock=1
        group job max=60
        task small in job
        task large in job
        small anon 100 as heap
        large anon 100 as heap
        large write heap 0..40
        small write heap 0..20
        small write heap 20
        log => small invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0 | memory: usage 240kB, limit 240kB, failcnt 18 | swap: usage 0kB, limit 9007199254740988kB, failcnt 0 | Memory cgroup stats for /job: | inactive_anon 245760 | active_anon 0 | inactive_file 0 | active_file 0 | unevictable 0 | Tasks state (memory values in pages): | [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name | [      1]     0     1      100       20       20        0         0    12288        0             0 small | [      2]     0     2      100       40       40        0         0    12288        0             0 large | oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job,task=large,pid=2,uid=0 | Memory cgroup out of memory: Killed process 2 (large) total-vm:400kB, anon-rss:160kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:12kB oom_score_adj:0
    ",
    );
}

#[test]
fn without_the_killer_the_access_fails_as_ever() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job max=60
        task small in job
        task large in job
        small anon 100 as heap
        large anon 100 as heap
        large write heap 0..40    => 40m
        small write heap 0..21    => 20m O
        kills                     =>
        events job oom_kill       => 1
        large read heap 0..40     => 40H
    ",
    );
}
