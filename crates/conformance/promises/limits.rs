//! Limits: when a charge reclaims, what is protected, and when there is nothing left.

use pageout_engine::{
    Access, Bdi, Config, CpuId, Engine, FileKind, FileSpec, IoId, MemcgId, Policy, Served, Step, Wait,
};

use crate::check;

#[test]
fn a_cpu_charges_64_pages_ahead() {
    check(
        "
        group job
        file data 100
        task t in job
        t open data as f
        t read f 0                => M
        usage job                 => 64
        t read f 1..64            => 63M
        usage job                 => 64
        t read f 64               => M
        usage job                 => 128
    ",
    );
}

/// 100 = one stock of 64, then 36 singles, because a second stock doesn't fit. The list of 93 (7 more come from the batch) is
/// scanned by 1+3+6+11+19 pages at priorities 6 to 2 before 32 are reclaimed.
#[test]
fn near_the_limit_pages_are_charged_one_by_one_and_the_first_beyond_it_reclaims() {
    check(
        "
        group job max=100
        file data 200
        task t in job
        t open data as f
        t read f 0..64            => 64M
        usage job                 => 64
        t read f 64..100          => 36M
        usage job                 => 100
        vmstat pgscan_file        => 0
        events job max            => 0
        t read f 100              => M
        events job max            => 1
        vmstat pgscan_file pgsteal_file => 40 40
        usage job                 => 61
    ",
    );
}

#[test]
fn the_unused_stock_of_another_cpu_is_taken_back_before_a_charge_fails() {
    check(
        "
        config cpus=2
        group job max=66
        task a in job cpu=0
        task b in job cpu=1
        a anon 8 as heap
        b anon 8 as heap
        a write heap 0            => m     # 64 charged, 1 used
        b write heap 0..2         => 2m
        usage job                 => 66
        b write heap 2            => m
        usage job                 => 4
    ",
    );
}

#[test]
fn a_limit_of_an_ancestor_reclaims_from_the_whole_subtree() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group top max=20
        group top/a
        group top/b
        file data 100
        task a in top/a
        task b in top/b
        a open data as f
        b open data as f
        a read f 0..10            => 10M
        b read f 10..20           => 10M
        b read f 20               => M
        usage top                 => 17
        events top max            => 1
        events top/b max          => 0
    ",
    );
}

/// Two siblings below a limit: what a setting of the first one saves of its 40 pages while the second one reads on.
fn protected(setting: &str, rest: &str) {
    check(&format!(
        "
        config folio_batch=1 charge_stock=1 stat=live
        group top max=100
        group top/a {setting}
        group top/b
        file data 1000
        task a in top/a
        task b in top/b
        a open data as f
        b open data as f
        a read f 0..40            => 40M
        {rest}
    "
    ));
}

#[test]
fn without_protection_the_older_pages_go() {
    // All but the last three, which are fewer than any priority but the last asks for.
    protected(
        "",
        "b read f 100..600         => 500M
         usage top/a               => 3",
    );
}

#[test]
fn memory_min_protects_fully() {
    protected(
        "min=40",
        "b read f 100..600         => 500M
         usage top/a               => 40
         events top/a low          => 0",
    );
}

#[test]
fn memory_low_protects_as_long_as_others_have_something_to_give() {
    protected(
        "low=40",
        "b read f 100..600         => 500M
         usage top/a               => 40
         events top/a low          => 0",
    );
}

/// The event counts visits: one call, at all 13 priorities.
#[test]
fn memory_low_gives_way_when_nobody_else_has_anything_and_says_so() {
    protected(
        "low=40",
        "b anon 100 as heap
         b write heap 0..100       => 100m
         usage top/a               => 0
         events top/a low          => 13",
    );
}

#[test]
fn memory_min_does_not_give_way() {
    protected(
        "min=40",
        "b anon 100 as heap
         b write heap 0..62        => 60m 2O
         usage top/a               => 40",
    );
}

#[test]
fn a_group_above_memory_high_reclaims_and_stays_near_it() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job high=64
        file data 1000
        task t in job
        t open data as f
        t read f 0..500           => 500M
        usage job                 => 50     # at 65 the call frees 1+2+3+7+13+19 pages of 65, 64, ... 39
        events job high           => 10     # and so at every 45th page
        events job max            => 0
    ",
    );
}

#[test]
fn a_group_that_can_not_get_below_memory_high_is_delayed() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job high=100
        task t in job
        t anon 1000 as heap
        t write heap 0..100       => 100m
        t write heap 100..200
        usage job                 => 200
        t write heap 200          => m after 1.020 s    # 101 % above: 1.01^2 * 64 * 250 ticks / 64
    ",
    );
}

#[test]
fn anonymous_memory_without_swap_beyond_the_limit_is_out_of_memory_and_says_why() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job max=20
        task t in job
        t anon 100 as heap
        t write heap 0..21        => 20m O
        why => out of memory in /job: 20 of 20 pages charged; 16 reclaim attempts freed too little; lists: anon 20 \
inactive + 0 active, file 0 inactive + 0 active, 0 unevictable; free swap 0 pages (anonymous memory can't be reclaimed \
without swap: add swap or raise memory.max)
        events job oom            => 1
        t read heap 0..20         => 20H    # nothing was lost
    ",
    );
}

#[test]
fn out_of_memory_at_a_swap_limit_names_the_limit_and_whose_it_is() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group top swap.max=6
        group top/job max=20
        swap 100
        task t in top/job
        t anon 100 as heap
        t write heap 0..26        => 25m O
        why => out of memory in /top/job: 20 of 20 pages charged; 16 reclaim attempts freed too little; lists: anon 6 \
inactive + 14 active, file 0 inactive + 0 active, 0 unevictable; free swap 0 pages (/top uses all 6 pages of its \
memory.swap.max: raise it, or raise memory.max)
    ",
    );
}

/// Leaves a group at its limit with 32 active pages and eight new ones in its CPU's batch, on no list. The last flush was
/// when all pages were inactive.
fn with_active_pages_behind_old_statistics(switches: &str, rest: &str) {
    check(&format!(
        "
        config charge_stock=1 reclaim_batch=4 {switches}
        group job max=40
        swap 1000 sync
        task t in job
        t anon 100 as a
        t write a 0..40           => 40m
        flush
        t write a 0..40           => 40H
        t sets job reclaim 4
        t write a 0..40
        t sets job reclaim 4      # what was used twice is active
        t write a 0..40
        t sets job reclaim 4
        t sets job reclaim 4
        t write a 40..48          => 8m
        {rest}
    "
    ));
}

#[test]
fn active_anonymous_pages_that_statistics_do_not_show_yet_are_out_of_reach() {
    with_active_pages_behind_old_statistics(
        "",
        "
        lists job                 => anon 0+32 file 0+0
        usage job                 => 40
        work scanned
        t write a 48              => O
        work scanned              => 0
        events job oom_kill       => 1
        why => out of memory in /job: 40 of 40 pages charged; 16 reclaim attempts freed too little; lists: anon 0 \
            inactive + 32 active, file 0 inactive + 0 active, 0 unevictable, 8 on no list (in a CPU's batch, or isolated by \
            a reclaimer); free swap 992 pages (all anonymous pages are active, but reclaim's statistics are 0 ns old and \
            do not show it: Linux 6.12 also kills here; kernel.reclaim.stat_flush = \"6.1\" avoids it)
        flush
        t write a 48              => m
        ",
    );
}

#[test]
fn fresh_statistics_after_a_call_that_reclaimed_nothing_serve_the_next() {
    for (after_failure, expected) in [(false, "0"), (true, "20")] {
        check(&format!(
            "
            config charge_stock=1 folio_batch=1 reclaim.flush_after_failure={after_failure}
            group job
            task t in job
            t anon 100 as a           # there is no swap
            t write a 0..20
            t sets job reclaim 4      => reclaimed 0
            stat job nr_anon_pages    => {expected}
            "
        ));
    }
}

#[test]
fn each_last_resort_alone_reaches_active_anonymous_pages_behind_old_statistics() {
    for remedy in ["reclaim.drain_before_giving_up=true", "reclaim.force_active_anon=true"] {
        with_active_pages_behind_old_statistics(remedy, "t write a 48 => m");
    }
}

#[test]
fn out_of_memory_under_protection_names_the_protection() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group top max=40
        group top/job min=100
        file data 100
        task t in top/job
        t open data as f
        t read f 0..40            => 40M
        t read f 40               => O
        why => out of memory in /top: 40 of 40 pages charged; 16 reclaim attempts freed too little; lists: anon 0 \
inactive + 0 active, file 40 inactive + 0 active, 0 unevictable; free swap 0 pages (memory.min of groups below /top \
protects 40 pages: lower it or raise memory.max)
    ",
    );
}

#[test]
fn out_of_memory_after_failed_writes_says_that_they_failed() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group job max=4
        swap 100
        task t in job
        t anon 100 as heap
        device fails
        t write heap 0..5         => 4m O
        why => out of memory in /job: 4 of 4 pages charged; 16 reclaim attempts freed too little; lists: anon 0 \
inactive + 4 active, file 0 inactive + 0 active, 0 unevictable; free swap 96 pages; 4 page writes failed (pages \
whose write to swap failed stay in memory)
    ",
    );
}

#[test]
fn a_group_whose_pages_are_all_being_written_waits_and_is_not_out_of_memory() {
    check(
        "
        config folio_batch=1 charge_stock=1 reclaim_batch=4
        group job max=4
        swap 10
        task t in job
        t anon 8 as heap
        t write heap 0..4         => 4m
        device holds
        t write heap 4            => W
        ops                       => 4 swap-out, 4 zero
        io                        => swap-out, t m
        events job oom            => 0
    ",
    );
}

/// However long the device takes, and so wherever in its attempts the charge is when the writes end.
#[test]
fn a_group_whose_pages_have_just_been_written_is_not_out_of_memory() {
    for steps in 0..200 {
        check(&format!(
            "
            config folio_batch=1 charge_stock=1 reclaim_batch=4 stat=live
            group job max=4
            swap 100
            task t in job
            t anon 8 as heap
            device answers {steps}
            t write heap 0..8     => 8m
        "
        ));
    }
}

#[test]
fn a_limit_set_below_usage_reclaims_down_to_it() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group job
        file data 100
        task t in job
        t open data as f
        t read f 0..100           => 100M
        t sets job max 50         => reclaimed 81    # in two parts of 32 or more
        usage job                 => 19
    ",
    );
}

/// A descendant may have lists that the group on whose behalf reclaim runs knows nothing of.
#[test]
fn reclaim_for_a_group_of_one_policy_ends_in_descendants_of_another() {
    let config = Config { folio_batch: 1, policy: Policy::of("lru"), ..Config::default() };
    let mut engine = Engine::new(config).unwrap();
    let group = engine.memcg_create_with(MemcgId::ROOT, "job", Policy::of("classic@6.12").group).unwrap();
    let process = engine.process_create(group);
    let task = engine.task_create(process, CpuId(0));
    let spec =
        FileSpec { name: "data".to_string(), pages: 1, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let file = engine.file_create(spec).unwrap();
    // A page that is active and stays: the only hope is to age it.
    for _ in 0..2 {
        let object = engine.open(task, file).unwrap();
        if matches!(engine.start(task, Access::new(object, 0, false)), Step::Wait(Wait::Io(_))) {
            engine.io_done(IoId(0), CpuId(0), Ok(()));
            let _ = engine.resume(task);
        }
    }
    engine.pin(file, 0);
    let mut step = engine.reclaim(task, MemcgId::ROOT, 1 << 40, None);
    for _ in 0..1000 {
        match step {
            Step::Done(served) => {
                assert_eq!(served, Served::Written { reclaimed: 0 });
                return;
            }
            _ => step = engine.resume(task),
        }
    }
    panic!("reclaim doesn't end");
}

#[test]
fn events_are_counted_where_they_happen_and_in_the_ancestors() {
    check(
        "
        config folio_batch=1 charge_stock=1
        group top max=8
        group top/job
        file data 20
        task t in top/job
        t open data as data
        t read data 0..20         => 20M
        local top max             => 2
        local top/job max         => 0
        events top max            => 2
        events top/job max        => 0
    ",
    );
}

/// Twice as much swap in use as its soft limit is far above the cap of the delay. Memory is below its own limit, so nothing is
/// reclaimed. The charge stock of 64 pages decides when the task has to wait.
#[test]
fn above_memory_swap_high_a_task_that_allocates_waits_and_nothing_is_reclaimed_for_it() {
    check(
        "
        config charge_stock=64 stat=live folio_batch=1
        swap 1000 sync
        group job swap.high=80
        task t in job
        t anon 400 as heap
        t write heap 0..128        => 128m
        t sets job reclaim 40
        swapped job                => 69
        t write heap 128..192      => 64m
        swap-events job high       => 0
        t sets job reclaim 60
        swapped job                => 168
        vmstat pgscan_anon         => 360
        t write heap 192           => m after 2.000 s
        swap-events job high       => 17
        t write heap 193..256      => 63m
        events job high            => 0
        vmstat pgscan_anon         => 360
    ",
    );
}

#[test]
fn swap_is_half_full_by_its_soft_limit_too() {
    let run = |high: &str, cached: &str| {
        check(&format!(
            "
        config folio_batch=1 charge_stock=1
        swap 1000
        group job swap.high={high}
        task t in job
        t anon 100 as heap
        t write heap 0..100        => 100m
        t sets job reclaim 200
        t sets job reclaim 200
        lists job                  => anon 0+0 file 0+0
        t read heap 0              => M
        vmstat nr_swapcached       => {cached}
    "
        ));
    };
    run("300", "1");
    // The slot is worth more than a copy that needs no write.
    run("200", "0");
}

#[test]
fn a_page_that_gets_no_slot_is_counted_where_the_limit_is_and_where_it_failed() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 1000 sync
        group top swap.max=10
        group top/job
        task t in top/job
        t anon 100 as heap
        t write heap 0..100        => 100m
        t sets top/job reclaim 50
        swapped top                => 10
        swap-events top max        => 8
        swap-events top/job fail   => 8
        swap-events top fail       => 8
        swap-events top/job max    => 0
    ",
    );
}

/// Half of a group is file memory, half anonymous memory, and a request is for the latter alone: what it gets from each.
#[test]
fn a_request_for_anonymous_memory_only_takes_no_files_since_7_2() {
    for (policy, rule, swap, expected, anon, file) in [
        ("classic@6.12", "absent", 64, "Invalid", 64, 64),
        ("classic@6.12", "or_file", 0, "reclaimed 44", 64, 20),
        ("classic@6.12", "strict", 0, "reclaimed 0", 64, 64),
        ("classic@6.12", "strict", 256, "reclaimed 63", 1, 64),
        ("mglru@6.16", "or_file", 0, "reclaimed 64", 64, 0),
        ("mglru@6.16", "strict", 0, "reclaimed 0", 64, 64),
        ("mglru@2026", "strict", 0, "reclaimed 0", 64, 64),
        ("mglru@2026", "strict", 256, "reclaimed 62", 2, 64),
    ] {
        let swap_on = if swap > 0 { format!("swap {swap} sync") } else { String::new() };
        check(&format!(
            "
            config policy={policy} reclaim.anon_only={rule} folio_batch=1 charge_stock=1
            {swap_on}
            group job
            file data 64
            task t in job
            t open data as f
            t anon 64 as a
            t read f 0..64
            t write a 0..64
            flush
            t sets job reclaim 32 swappiness=max => {expected}
            flush
            cat job anon                         => {}
            cat job file                         => {}
        ",
            anon * 4096,
            file * 4096
        ));
    }
}

/// A task that may start no I/O swaps nothing out for its own page, and drops clean pages: here a file's pages.
#[test]
fn who_flushes_io_frees_what_needs_none() {
    for (flushes, swapped) in [("t flushes io", "0"), ("", "1")] {
        check(&format!(
            "
            config policy=classic@6.12 swappiness=200 folio_batch=1 charge_stock=1 memory=1000000
            swap 1000
            group job max=128
            file data 128
            task t in job
            {flushes}
            t anon 96 as heap
            t write heap 0..96
            t open data as f
            t read f 0..32                  => 32M
            flush
            t read f 32..64                 => 32M
            swapped job                     => {swapped}
        "
        ));
    }
}

/// Pages given up with MADV_FREE need no I/O. Up to 7.1 MGLRU skipped them with all other anonymous pages when the reclaimer may start
/// none.
#[test]
fn who_flushes_io_finds_what_may_be_forgotten_since_7_2() {
    for (check_io, forgotten) in [("false", "64"), ("true", "0")] {
        check(&format!(
            "
            config policy=mglru@2026 folio_batch=1 charge_stock=1 memory=1000000 lru.isolate_io_check={check_io}
            swap 1000
            group job max=1056
            file data 1092
            task t in job
            t flushes io
            t anon 64 as heap
            t write heap 0..64
            t free heap 0..64
            t open data as f
            t read f 0..992
            flush
            t read f 992..1092              => 100M
            flush
            stat job pglazyfreed            => {forgotten}
        "
        ));
    }
}

/// A request for 400 of 600 pages, with a signal after its first step.
fn signalled(policy: &str, rest: &str) {
    check(&format!(
        "
        config policy={policy} folio_batch=1 charge_stock=1
        group job
        file data 600
        task t in job
        task manager in job
        t open data as f
        t read f 0..600           => 600M
        manager is signalled
        {rest}
    "
    ));
}

/// The first pass of the classic LRU, and of MGLRU since 7.2, scans one page of 600.
#[test]
fn a_signal_ends_a_request_after_its_batch_and_what_is_reclaimed_stays_so() {
    for (policy, batch) in [("mglru@2026", 1), ("classic@2026", 1)] {
        let left = 600 - batch;
        signalled(
            policy,
            &format!(
                "manager sets job reclaim 400 => interrupted, reclaimed {batch}
                 usage job                    => {left}"
            ),
        );
    }
}

#[test]
fn a_request_after_one_that_a_signal_has_ended_gets_what_it_wants() {
    signalled(
        "mglru@2026",
        "manager sets job reclaim 400 => interrupted, reclaimed 1
         manager sets job reclaim 400 => reclaimed 425",
    );
}

/// A call is for a quarter of 400, and more than that, as its last round takes a batch.
#[test]
fn from_5_19_to_7_1_a_signal_ends_a_request_after_the_call_that_is_under_way() {
    signalled("classic@6.12", "manager sets job reclaim 400 => interrupted, reclaimed 135");
}

#[test]
fn a_signal_does_not_end_the_reclaim_of_a_limit_below_usage() {
    signalled(
        "mglru@2026",
        "manager sets job max 200     => reclaimed 425
         usage job                    => 175",
    );
}
