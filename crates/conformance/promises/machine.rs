//! The machine runs out of memory, without any limit: kswapd, direct reclaim, and those who wait.
//!
//! A machine of 4096 pages: min 128, low 160, high 192. The reader's stack takes 4 of them, the nodes of its file's index 9. Its CPU
//! takes 32 free pages at a time, so that what is free for all falls in steps.

use crate::check;

/// kswapd takes 0, 1, 3, 7, 15 and 30 of the 3914 pages on the list at priorities 12 to 7. While it runs, its CPU keeps but a few free
/// pages for itself, so that the others lift the zone above its high watermark.
#[test]
fn kswapd_is_woken_below_low_and_rests_above_high() {
    check(
        "
        config memory=4096 boost=0
        file data 8000
        task t in /
        t open data as f
        threads                   => kcompactd0 kswapd0
        t read f 0..3913          => 3913M
        free                      => 129
        run kswapd0               => was not woken
        t read f 3913             => M
        vmstat pageoutrun pgscan_kswapd allocstall_movable => 0 0 0
        run kswapd0               => naps
        vmstat pageoutrun pgsteal_kswapd pgsteal_direct allocstall_movable => 1 56 0 0
    ",
    );
}

#[test]
fn a_nap_that_nobody_cuts_short_ends_in_sleep() {
    check(
        "
        config memory=4096 boost=0
        file data 8000
        task t in /
        t open data as f
        threads
        t read f 0..3914          => 3914M
        run kswapd0               => naps
        time out kswapd0          => sleeps
        vmstat kswapd_low_wmark_hit_quickly kswapd_high_wmark_hit_quickly => 0 0
    ",
    );
}

#[test]
fn a_nap_that_is_cut_short_is_counted() {
    check(
        "
        config memory=4096 boost=0
        file data 8000
        task t in /
        t open data as f
        threads
        t read f 0..3914          => 3914M
        run kswapd0               => naps
        t read f 3914..4060       => 146M
        run kswapd0               => naps
        vmstat pageoutrun kswapd_low_wmark_hit_quickly kswapd_high_wmark_hit_quickly => 2 1 0
    ",
    );
}

/// 1+3+7+15+30 pages at priorities 11 to 7, until there are 32.
#[test]
fn below_min_a_task_reclaims_for_itself() {
    check(
        "
        config memory=4096 boost=0
        file data 8000
        task t in /
        t open data as f
        t read f 0..3945          => 3945M
        free                      => 97
        vmstat allocstall_movable pgsteal_direct => 0 0
        t read f 3945             => M
        vmstat allocstall_movable pgscan_direct pgsteal_direct pgsteal_kswapd => 1 56 56 0
    ",
    );
}

/// Anonymous memory without swap leaves nothing to reclaim. 16 runs in vain are enough, and each but the first found the high
/// watermark missed as soon as the one before it was over.
#[test]
fn a_node_without_anything_to_reclaim_is_hopeless() {
    check(
        "
        config memory=4096 boost=0
        task t in /
        t anon 5000 as heap
        threads
        t write heap 0..3900      => 3900m
        run kswapd0               => naps
        vmstat pageoutrun kswapd_high_wmark_hit_quickly => 16 15
        time out kswapd0          => sleeps
        t write heap 3900         => m
        run kswapd0               => was not woken
    ",
    );
}

/// Since 7.0 that is nothing that kswapd could do, as long as the node stays short of pages.
#[test]
fn a_hopeless_node_stays_so_until_enough_is_free_where_the_rule_is_that_of_7_0() {
    check(
        "
        config memory=4096 boost=0 reclaim.kswapd_reset=balanced
        swap 1000 sync
        group top swap.max=0
        task t in top
        t anon 5000 as heap
        threads
        t write heap 0..3900      => 3900m
        run kswapd0               => naps
        time out kswapd0          => sleeps
        t sets top swap.max max => reclaimed 0
        t write heap 3900         => m
        vmstat pageoutrun         => 16
        t sets top reclaim 4
        t write heap 3901..3940
        run kswapd0               => was not woken
        vmstat pageoutrun         => 16
        t sets top reclaim 600    # enough
        t write heap 0..600
        run kswapd0               => naps
        vmstat pageoutrun         => 17
    ",
    );
}

/// A task that reclaims a page of the node shows that it has reclaimable pages after all.
#[test]
fn a_hopeless_node_recovers_when_anyone_reclaims_a_page_of_it() {
    check(
        "
        config memory=4096 boost=0
        swap 1000 sync
        group top swap.max=0
        task t in top
        t anon 5000 as heap
        threads
        t write heap 0..3900      => 3900m
        run kswapd0               => naps
        time out kswapd0          => sleeps
        t sets top swap.max max => reclaimed 0
        t write heap 3900         => m
        run kswapd0               => was not woken
        vmstat pageoutrun         => 16
        t sets top reclaim 4
        t write heap 3901..3940   # below the low mark again
        run kswapd0               => naps
        vmstat pageoutrun         => 17
    ",
    );
}

#[test]
fn a_machine_that_nothing_can_relieve_says_what_it_is_short_of() {
    check(
        "
        config memory=4096 boost=0
        task t in /
        t anon 5000 as heap
        t write heap 0..3929      => 3929m
        t write heap 3929         => O
        why => out of memory: the machine has no free page above its reserve; 1 reclaim attempts freed too little; lists: anon 3906 inactive + 0 active, file 0 inactive + 0 active, 0 unevictable; free swap 0 pages (anonymous memory can't be reclaimed without swap: add swap or give the machine more memory)
    ",
    );
}

/// Its statistics are as old as its start, and count no anonymous page yet. The node's own counters are live.
#[test]
fn without_files_anonymous_pages_are_taken_at_swappiness_0_before_any_statistics_are_flushed() {
    check(
        "
        config memory=4096 boost=0 swappiness=0
        swap 4000 sync
        zram 100 100 0
        task t in /
        t anon 5000 as heap
        threads
        t write heap 0..3900      => 3900m
        run kswapd0               => naps
        t write heap 3900..4900   => 1000m
    ",
    );
}

/// kswapd makes passes at priorities 12, 11 and so on, of which each takes its part of every list, until there is enough. With a soft limit
/// the first pass has it all from the group above that. Generations know none: there the youngest groups come last.
#[test]
fn a_group_above_its_soft_limit_gives_what_kswapd_wants_and_others_give_nothing() {
    let with = |settings: &str, soft_limit: &str, taken: &str| {
        check(&format!(
            "
            config memory=4096 boost=0 charge_stock=1 memcg.cgroup_version=1 {settings}
            group small
            group large {soft_limit}
            file data 2000
            file others 8000
            task s in small
            task l in large
            s open data as f
            l open others as f
            threads
            s read f 0..1000          => 1000M
            l read f 0..2904          => 2904M
            run kswapd0               => naps
            flush
            stat small pgsteal_kswapd => {taken}
        "
        ));
    };
    with("", "", "4");
    with("", "soft_limit_in_bytes=2000", "0");
    for soft_limit in ["", "soft_limit_in_bytes=2000"] {
        with("policy=mglru@6.12", soft_limit, "64");
    }
}

/// The two are 240 and 200 pages above their soft limits. Each call takes 32 pages from the group that is
/// farther above.
#[test]
fn of_groups_above_their_soft_limits_who_is_farthest_above_gives_first_and_none_gives_more_than_that() {
    check(
        "
        config memory=4096 boost=0 charge_stock=1 memcg.cgroup_version=1
        group a soft_limit_in_bytes=760
        group b soft_limit_in_bytes=800
        group c
        file fa 1000
        file fb 1000
        file fc 8000
        task ta in a
        task tb in b
        task tc in c
        ta open fa as f
        tb open fb as f
        tc open fc as f
        threads
        ta read f 0..1000         => 1000M
        tb read f 0..1000         => 1000M
        tc read f 0..1900         => 1900M
        usage a                   => 1000
        run kswapd0               => naps
        flush
        stat a pgsteal_kswapd     => 128
        stat b pgsteal_kswapd     => 64
        stat c pgsteal_kswapd     => 0
    ",
    );
}

#[test]
fn a_soft_limit_is_a_file_of_cgroup_v1_that_is_pushed_back_to_only_where_the_machine_is_short() {
    check(
        "
        config memory=4096 boost=0 charge_stock=1 memcg.cgroup_version=1
        group job soft_limit_in_bytes=16
        file data 1000
        task t in job
        t open data as f
        threads
        t read f 0..1000          => 1000M
        usage job                 => 1000
        vmstat pgscan_kswapd pgscan_direct => 0 0
    ",
    );
}

/// Two nodes of 4096 pages with a CPU each.
fn check_on_two_nodes(settings: &str, commands: &str) {
    check(&format!(
        "
        config memory=4096+4096 cpus=2 cpu_nodes=0+1 boost=0 {settings}
        file data 8000
        file others 8000
        task t in / cpu=0
        t open data as f
        {commands}
    "
    ));
}

#[test]
fn another_nodes_memory_is_used_before_anything_is_reclaimed() {
    check_on_two_nodes(
        "",
        "
        t read f 0..5000          => 5000M
        vmstat zone_reclaim_success zone_reclaim_failed pgscan_direct numa_foreign => 0 0 0 1058
    ",
    );
}

/// All pages but the 20 nodes of the index, which nothing is reclaimed for.
#[test]
fn with_zone_reclaim_mode_a_tasks_own_node_is_reclaimed_first_and_anothers_memory_stays_unused() {
    check_on_two_nodes(
        "vm.zone_reclaim_mode=1",
        "
        t read f 0..5000          => 5000M
        vmstat zone_reclaim_success zone_reclaim_failed allocstall_movable numa_foreign => 33 0 0 22
    ",
    );
}

/// A mapped page is one that someone works with.
#[test]
fn node_reclaim_leaves_mapped_pages_alone_unless_the_mode_has_bit_4() {
    for (mode, expected) in [("1", "0 0 1092"), ("5", "35 0 23")] {
        check_on_two_nodes(
            &format!("vm.zone_reclaim_mode={mode} fault_around_bytes=4096"),
            &format!(
                "
                t map data as m random
                t read m 0..5000          => 5000M
                vmstat zone_reclaim_success zone_reclaim_failed numa_foreign => {expected}
            "
            ),
        );
    }
}

/// Anonymous memory and a few pages of a file: less than 1 % of the node may go.
#[test]
fn a_node_with_too_little_that_may_go_is_not_reclaimed_for_it() {
    for (ratio, expected) in [("1", "0 0"), ("0", "1 0")] {
        check_on_two_nodes(
            &format!("vm.zone_reclaim_mode=1 vm.min_unmapped_ratio={ratio}"),
            &format!(
                "
                t anon 6000 as heap
                t read f 0..30            => 30M
                t write heap 0..5000      => 5000m
                vmstat zone_reclaim_success zone_reclaim_failed => {expected}
            "
            ),
        );
    }
}

#[test]
fn generations_give_nothing_to_node_reclaim_that_may_not_write_and_unmap() {
    for (mode, expected) in [("1", "0 1058"), ("7", "18 0")] {
        check_on_two_nodes(
            &format!("vm.zone_reclaim_mode={mode} policy=mglru@6.12"),
            &format!(
                "
                t read f 0..5000          => 5000M
                vmstat zone_reclaim_success zone_reclaim_failed => {expected}
            "
            ),
        );
    }
}
