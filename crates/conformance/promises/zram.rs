//! Compressed swap in memory: what it takes of the machine, and what happens where there is none left.

use crate::check;

/// 11 objects of up to 2224 bytes lie in 6 pages.
#[test]
fn compressed_pages_take_memory_of_the_machine_until_their_slots_are_free() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100 sync
        zram 2213 2213 0
        group job
        task t in job
        t anon 64 as heap
        t write heap 0..22         => 22m
        t sets job reclaim 22      => reclaimed 22
        vmstat nr_zspages          => 12
        zram-file mm_stat          => 90112 48686 49152 0 49152 0 0 0 0
        t read heap 0..22          => 22M
        vmstat nr_zspages          => 0
        zram-file mm_stat          => 0 0 0 0 49152 0 0 0 0
        usage job                  => 22
    ",
    );
}

/// 15 objects of 2082 bytes lie in 8 pages. Each of four such lots has 7 left.
#[test]
fn compressed_pages_move_together_when_the_machine_is_short_of_memory_but_not_for_a_group() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100 sync
        zram 2082 2082 0
        group job
        group other
        task t in job
        t anon 64 as heap
        t write heap 0..60         => 60m
        t sets job reclaim 60      => reclaimed 60
        vmstat nr_zspages          => 32
        t read heap 0..8           => 8M
        t read heap 15..23         => 8M
        t read heap 30..38         => 8M
        t read heap 45..53         => 8M
        t sets job min 64
        t sets other reclaim 10    => reclaimed 0
        vmstat nr_zspages          => 32
        t sets / reclaim 10        => reclaimed 0
        vmstat nr_zspages          => 16
        t read heap 0..60          => 8H 7M 8H 7M 8H 7M 8H 7M
        vmstat nr_zspages          => 0
    ",
    );
}

#[test]
fn a_page_that_finds_no_memory_stays_and_is_counted() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100 sync
        zram 2213 2213 0
        zram-limit 6
        group job
        task t in job
        t anon 64 as heap
        t write heap 0..22         => 22m
        t sets job reclaim 22      => reclaimed 11
        usage job                  => 11
        vmstat nr_zspages          => 6
        ops                        => 11 free, 11 swap-out now, 22 zero
        t read heap 0..22          => 11M 11m
        vmstat nr_zspages          => 0
    ",
    );
}

#[test]
fn a_group_whose_pages_find_no_memory_is_told_so_when_it_is_killed() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100 sync
        zram 2213 2213 0
        zram-limit 0
        group job max=40
        task t in job
        t anon 64 as heap
        t write heap 0..40         => 40m
        t write heap 40            => O
        vmstat nr_zspages          => 0
    ",
    );
}

#[test]
fn pages_of_one_word_take_nothing_and_pages_that_hardly_shrink_a_page() {
    check(
        "
        config folio_batch=1 charge_stock=1
        swap 100 sync
        group job
        task t in job
        t anon 64 as heap
        t write heap 0..20         => 20m
        lengths t heap 1 1 1000
        t sets job reclaim 20      => reclaimed 20
        zram-file mm_stat          => 81920 0 0 0 0 20 0 0 0
        t write heap 0..20         => 20M
        lengths t heap 4000 4000 0
        t sets job reclaim 20      => reclaimed 20
        zram-file mm_stat          => 81920 81920 81920 0 81920 0 0 20 20
    ",
    );
}

/// A page's length is its own: swapped out again it comes to the same.
#[test]
fn the_same_pages_come_to_the_same_lengths_each_time() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut builder = pageout_engine::Engine::builder(pageout_engine::Config::default()).unwrap();
        let kind = pageout_engine::SwapKind::Synchronous;
        builder.swap_on(pageout_engine::SwapSpec { pages: 300, kind }).unwrap();
        let mut engine = builder.build();
        let job = engine.memcg_create(pageout_engine::MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(job);
        let task = engine.task_create(mm, pageout_engine::CpuId(0));
        let heap = engine.map_anon(task, 256, pageout_engine::Advice::Normal).unwrap();
        for _ in 0..2 {
            for page in 0..256 {
                let step = engine.start(task, pageout_engine::Access::new(heap, page, true));
                assert!(matches!(step, pageout_engine::Step::Done(_)));
            }
            let mut step = engine.write_file(task, "/sys/fs/cgroup/job/memory.reclaim", "4M").unwrap();
            while !matches!(step, pageout_engine::Step::Done(_)) {
                step = engine.resume(task);
            }
            let line = engine.read_file("/sys/block/zram0/mm_stat").unwrap();
            seen.push(line.split(' ').nth(1).unwrap().to_owned());
        }
    }
    let bytes: u64 = seen[0].parse().unwrap();
    assert!((1365 * 200..2048 * 256).contains(&bytes), "{bytes} bytes");
    assert!(seen.iter().all(|bytes| *bytes == seen[0]), "{seen:?}");
}
