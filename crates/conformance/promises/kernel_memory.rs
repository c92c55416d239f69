//! Kernel memory: what the kernel takes for itself, which group pays for it, and when it is given back.

use crate::check;

/// 256 leaves of 64 pages, 4 nodes above them, one on top: 261 of 584 bytes. That is 37.2 pages, so 38 are charged, and 4 for the
/// stack. Seven nodes share a page of the machine: 38 of those, too.
#[test]
fn a_dense_file_costs_its_group_the_nodes_of_its_index() {
    check(
        "
        config kmem=on stat=live charge_stock=1
        group job
        file data 16384
        task t in job
        t open data as f
        t read f 0..16384          => 16384M
        stat job slab_reclaimable  => 152424
        stat job kernel            => 42
        usage job                  => 16426
        vmstat nr_slab_reclaimable nr_kernel_stack nr_page_table_pages => 38 16 0
        cat job kernel             => 172032
        cat job kernel_stack       => 16384
        cat job slab               => 152424
    ",
    );
}

#[test]
fn a_page_alone_among_64_costs_a_node_of_its_own() {
    check(
        "
        config kmem=on stat=live charge_stock=1 folio_batch=1
        group job
        file data 640
        task t in job
        t open data as f
        t read f 0                 => M    # the head of the index holds it
        stat job slab_reclaimable  => 0
        t read f 63                => M
        stat job slab_reclaimable  => 584
        t read f 64                => M    # a leaf, and a node above both
        stat job slab_reclaimable  => 1752
        t read f 600               => M
        stat job slab_reclaimable  => 2336
        stat job kernel            => 5
        t dontneed data 600
        stat job slab_reclaimable  => 1752
    ",
    );
}

/// A table for 2 MiB each, and the two above them.
#[test]
fn page_tables_are_charged_at_the_first_touch_below_them_and_go_with_the_mapping() {
    check(
        "
        config kmem=on stat=live charge_stock=1
        group job
        task t in job
        t anon 8192 as heap
        t write heap 0             => m
        vmstat nr_page_table_pages => 3
        usage job                  => 8      # with a stack
        t write heap 1..512        => 511m
        vmstat nr_page_table_pages => 3
        t write heap 512..8192     => 7680m
        vmstat nr_page_table_pages => 18
        cat job pagetables         => 73728
        stat job kernel            => 22
        t munmap heap
        vmstat nr_page_table_pages => 0
        t exits
        vmstat nr_kernel_stack     => 0
        stat job kernel            => 0
    ",
    );
}

#[test]
fn page_tables_stay_when_their_pages_are_reclaimed() {
    check(
        "
        config kmem=on stat=live charge_stock=1 folio_batch=1
        group job
        swap 2048 sync
        task t in job
        t anon 1024 as heap
        t write heap 0..1024       => 1024m
        t sets job reclaim 2000
        lists job                  => anon 0+0 file 0+0
        cat job pagetables         => 16384
    ",
    );
}

/// 20 pages: 4 of the stack, then a page of data and 584 bytes at each step. Without kernel memory the tenth would be far from
/// the limit.
#[test]
fn kernel_memory_reclaims_at_the_limit_like_any_other() {
    check(
        "
        config kmem=on charge_stock=1 folio_batch=1 reclaim_batch=1
        group job max=20
        file data 6400
        task t in job
        t open data as f
        t read f 0                 => M
        t read f 64                => M
        t read f 128               => M
        t read f 192               => M
        t read f 256               => M
        t read f 320               => M
        usage job                  => 11     # 4, 6 and 4088 bytes
        t read f 384               => M
        t read f 448..461          => 13M
        usage job                  => 20
        events job max             => 6     # nodes of shadows stay: they are too few to be freed
    ",
    );
}

#[test]
fn kernel_memory_alone_can_use_up_a_limit() {
    check(
        "
        config kmem=on charge_stock=1
        group job max=6
        task t in job
        t anon 512 as heap
        t write heap 0             => O
        usage job                  => 4
        vmstat nr_page_table_pages => 0
    ",
    );
}

#[test]
fn without_accounting_it_takes_memory_of_the_machine_and_no_group_pays() {
    check(
        "
        config stat=live charge_stock=1
        group job
        file data 640
        task t in job
        t open data as f
        t anon 600 as heap
        t read f 0..640            => 640M
        t write heap 0..600        => 600m
        usage job                  => 1240
        stat job kernel            => 0
        stat job slab_reclaimable  => 0
        vmstat nr_slab_reclaimable nr_kernel_stack nr_page_table_pages => 2 16 4
        vmstat nr_free_pages       => 260191  # 262144 - 1240 - 2 - 4 - 4, and 703 that the CPU keeps
    ",
    );
}

#[test]
fn the_root_pays_for_nothing() {
    check(
        "
        config kmem=on stat=live
        group job
        file data 640
        task t in /
        t open data as f
        t read f 0..640            => 640M
        vmstat nr_slab_reclaimable => 2
        cat / kernel               => 0
    ",
    );
}

/// As a shell does that starts a job: the process ran before in another group.
#[test]
fn what_a_process_was_charged_for_stays_where_it_was_when_it_moves() {
    check(
        "
        config kmem=on stat=live charge_stock=1 folio_batch=1
        group a
        group b
        task t in a
        t anon 1024 as heap
        t write heap 0             => m
        usage a                    => 8
        t moves b
        t write heap 512           => m      # a page and a page table
        usage a                    => 8
        usage b                    => 2
        t munmap heap
        usage a                    => 4      # the stack
        usage b                    => 0
    ",
    );
}

/// Nodes of shadows stay charged until reclaim takes them; beyond an eighth of the group's pages it does.
#[test]
fn a_node_of_shadows_is_paid_for_until_it_is_reclaimed() {
    check(
        "
        config kmem=on stat=live charge_stock=1 folio_batch=1
        group job
        file data 640
        task t in job
        t open data as f
        t read f 0..640            => 640M
        stat job slab_reclaimable  => 6424   # 10 leaves and one above
        t sets job reclaim 1000
        stat job workingset_nodereclaim => 10
        stat job slab_reclaimable  => 0
        stat job kernel            => 5
        vmstat nr_slab_reclaimable => 0
    ",
    );
}
