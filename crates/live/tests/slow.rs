//! Two kinds of memory: pages go to the slow one when they are not wanted, and come back when they are read again and again, and every byte is
//! the file's wherever it is.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that makes files and threads")]

mod made;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use made::{Made, PAGE, check, draws};
use pageout::{Delay, Error, File, Group, Limits, Memory, Node, Open, Stats};

const MIB: u64 = 1 << 20;
const PROMOTION: &str = "/sys/kernel/mm/numa/pagecache_promotion_enabled";

/// 16 MiB of fast memory at least, and 8 MiB of slow memory that is as fast.
fn cache(policy: &str) -> Memory {
    let slow = Node::slow(8 * MIB).emulated(Delay::per_page(Duration::ZERO));
    let memory = Memory::builder().budget(28 * MIB).policy(policy).node(slow).io_threads(0).build().unwrap();
    // However slow the machine of this test is, a page is read again soon enough.
    memory.write("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms", "1000000").unwrap();
    memory
}

/// A group whose pages are brought into slow memory.
fn slow_group(memory: &Memory) -> Group {
    let group = memory.group("slow", Limits::NONE).unwrap();
    group.write("cpuset.mems", "1").unwrap();
    group
}

fn read_all(file: &File, call: usize) {
    let mut buf = vec![0; call * PAGE];
    let end = file.len() as usize / PAGE / call * call;
    for page in (0..end).step_by(call) {
        file.read_at(&mut buf, (page * PAGE) as u64).unwrap();
        check(&buf, page * PAGE);
    }
}

fn difference(before: &Stats, after: &Stats) -> (u64, u64) {
    (after.hits - before.hits, after.slow_hits - before.slow_hits)
}

#[test]
fn pages_that_are_read_again_and_again_leave_slow_memory_whatever_a_call_reads() {
    let made = Made::new("again", 1024 * PAGE);
    for (policy, reads) in [("classic@6.12", 4), ("mglru@6.12", 6)] {
        for call in [1, 7, 256] {
            let memory = cache(policy);
            let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
            let pages = (1024 / call * call) as u64;
            read_all(&file, call);
            let stats = memory.stats().unwrap();
            assert_eq!((stats.slow_resident, stats.resident), (pages, pages), "{policy}");
            for _ in 2..reads {
                read_all(&file, call);
            }
            let before = memory.stats().unwrap();
            assert_eq!(difference(&stats, &before), (pages * (reads - 2), pages * (reads - 2)), "{policy}");
            assert_eq!(before.promoted, 0, "{policy}");
            read_all(&file, call);
            // Whoever reads a kernel file hears of all that was read.
            assert!(memory.read("/proc/vmstat").unwrap().contains(&format!("\npgpromote_success {pages}\n")));
            let stats = memory.stats().unwrap();
            assert_eq!((stats.promoted, stats.slow_resident, stats.resident), (pages, 0, pages), "{policy}");
            read_all(&file, call);
            assert_eq!(difference(&stats, &memory.stats().unwrap()), (pages, 0), "{policy}");
        }
    }
}

#[test]
fn without_promotion_they_stay_and_are_no_more_told_of_than_others() {
    let made = Made::new("stay", 512 * PAGE);
    let memory = cache("classic@6.12");
    memory.write(PROMOTION, "0").unwrap();
    let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
    (0..8).for_each(|_| read_all(&file, 1));
    let before = memory.stats().unwrap();
    read_all(&file, 1);
    let stats = memory.stats().unwrap();
    assert_eq!(difference(&before, &stats), (512, 512));
    assert_eq!((stats.promoted, stats.slow_resident), (0, 512));
    assert!(
        stats.lock_held.times() - before.lock_held.times() < 5,
        "nobody is told of a read with nothing to note"
    );
    memory.write(PROMOTION, "1").unwrap();
    read_all(&file, 1);
    memory.read("/proc/vmstat").unwrap();
    assert_eq!(memory.stats().unwrap().promoted, 512, "threads notice what is written to a kernel file");
}

#[test]
fn fast_memory_is_filled_first_and_then_demotes_what_it_has_no_room_for() {
    for policy in ["classic@6.12", "mglru@6.12"] {
        let memory = cache(policy);
        let stats = memory.stats().unwrap();
        let fast = (stats.frames - stats.slow_frames) as usize;
        // What has no room in fast memory goes to slow memory at once as long as that has some, as on any machine of two nodes.
        let [first, second] =
            [fast + 600, 4000].map(|pages| Made::new(&format!("room-{pages}"), pages * PAGE));
        read_all(&memory.open(&first.0, Open::read().random()).unwrap(), 1);
        let stats = memory.stats().unwrap();
        assert!((500..1000).contains(&stats.slow_resident) && stats.demoted == 0, "{policy}: {stats:?}");
        let file = memory.open(&second.0, Open::read().random()).unwrap();
        let began = Instant::now();
        while memory.stats().unwrap().demoted < 100 && began.elapsed() < Duration::from_secs(20) {
            read_all(&file, 1);
        }
        let stats = memory.stats().unwrap();
        assert!(stats.demoted >= 100, "{policy}: {stats:?}");
        let vmstat = memory.read("/proc/vmstat").unwrap();
        let demoted = vmstat.lines().filter(|line| line.starts_with("pgdemote_"));
        let demoted = demoted.map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap());
        assert!(demoted.sum::<u64>() >= stats.demoted, "{policy}: {vmstat}");
    }
}

#[test]
fn a_page_under_a_guard_is_promoted_when_the_guard_is_gone() {
    let made = Made::new("guard", 64 * PAGE);
    let memory = cache("classic@6.12");
    let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
    read_all(&file, 1);
    let guards = [3, 40].map(|page| file.page(page).unwrap());
    for _ in 0..4 {
        read_all(&file, 1);
    }
    memory.read("/proc/vmstat").unwrap();
    let stats = memory.stats().unwrap();
    assert_eq!((stats.promoted, stats.slow_resident), (62, 2), "{stats:?}");
    assert!(stats.kept_by_pins >= 2 && stats.moves_failed >= 2, "{stats:?}");
    [3, 40].iter().zip(&guards).for_each(|(&page, guard)| check(guard, page * PAGE));
    drop(guards);
    // What could not move is back on its list when as many others are as go there together.
    let other = Made::new("guard-other", 64 * PAGE);
    read_all(&memory.open(&other.0, Open::read().random()).unwrap(), 1);
    read_all(&file, 1);
    memory.read("/proc/vmstat").unwrap();
    assert_eq!(memory.stats().unwrap().promoted, 64);
}

/// Half of the reads are of a few pages, so that they are promoted, and the others push them out again.
fn read_some(file: &File, seed: u64, is_over: &AtomicBool) -> u64 {
    let mut draw = draws(seed);
    let mut buf = vec![0; 3 * PAGE];
    let pages = file.len() / PAGE as u64;
    for reads in 0.. {
        if is_over.load(Relaxed) {
            return reads;
        }
        let page =
            if draw(2) == 0 { draw(pages) } else { draw(pages / 6) + reads / 20_000 * 100 % (pages / 2) };
        match draw(5) {
            0 => check(&file.page(page).unwrap(), page as usize * PAGE),
            1 => file.with_page(page, |bytes| check(bytes, page as usize * PAGE)).unwrap(),
            _ => {
                let offset = page * PAGE as u64 + draw(PAGE as u64);
                let wanted = (draw(buf.len() as u64) + 1).min(file.len() - offset) as usize;
                file.read_at(&mut buf[..wanted], offset).unwrap();
                check(&buf[..wanted], offset as usize);
            }
        }
    }
    0
}

#[test]
fn every_byte_is_the_files_while_pages_move_both_ways_under_many_readers() {
    // More than all memory: pages are promoted, demoted and evicted.
    let made = Made::new("threads", 12_000 * PAGE);
    for policy in ["classic@6.12", "mglru@6.12", "mglru@6.18"] {
        let slow = Node::slow(8 * MIB).emulated(Delay::per_page(Duration::from_nanos(300)));
        let memory = Memory::builder().budget(28 * MIB).policy(policy).node(slow).build().unwrap();
        let file = memory.open(&made.0, Open::read().random()).unwrap();
        let other = memory.open(&made.0, Open::read()).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (seed, file) in (1..).zip([&file, &file, &other, &file]) {
                let is_over = &is_over;
                scope.spawn(move || read_some(file, seed, is_over));
            }
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(20));
                let stats = memory.stats().unwrap();
                if stats.promoted > 200 && stats.demoted > 500 {
                    break;
                }
            }
            is_over.store(true, Relaxed);
        });
        let stats = memory.stats().unwrap();
        assert!(stats.promoted > 200 && stats.demoted > 500, "{policy}: {stats:?}");
        assert_eq!(stats.pinned, 0);
        assert!(stats.resident < stats.frames);
    }
}

#[test]
fn a_file_is_forgotten_while_its_pages_move() {
    let made = Made::new("forgotten", 1024 * PAGE);
    for round in 0..12 {
        let memory = cache("classic@6.12");
        let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let file = file.clone();
                scope.spawn(move || {
                    // A call of many pages sets them all aside before any of them moves.
                    let mut buf = vec![0; 200 * PAGE];
                    for page in (0..5).cycle().map(|call| call * 200) {
                        match file.read_at(&mut buf, (page * PAGE) as u64) {
                            Ok(()) => check(&buf, page * PAGE),
                            Err(Error::Forgotten { .. }) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(2 + 3 * round));
            loop {
                match file.clone().forget() {
                    Ok(()) => return,
                    // Who copies out of a page that was just brought in holds it for that, and so does who is about to move it.
                    Err(Error::Pinned { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let stats = memory.stats().unwrap();
        assert_eq!((stats.resident, stats.slow_resident), (0, 0), "round {round}");
    }
}

#[test]
fn hot_pages_that_are_tracked_are_promoted_by_a_thread_of_the_engines() {
    let made = Made::new("tracked", 1024 * PAGE);
    let memory = cache("classic@6.12");
    memory.write(PROMOTION, "0").unwrap();
    memory.write("/proc/sys/vm/pghot_record_fma_enable", "1").unwrap();
    let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
    let began = Instant::now();
    // Who is copied as the thread comes to it stays where it is.
    let tried = |stats: &Stats| stats.promoted + stats.moves_failed;
    while tried(&memory.stats().unwrap()) < 1024 && began.elapsed() < Duration::from_secs(20) {
        read_all(&file, 1);
    }
    let stats = memory.stats().unwrap();
    assert!(tried(&stats) >= 1024 && stats.promoted >= 1000, "{stats:?}");
    assert_eq!(stats.promoted + stats.slow_resident, 1024, "{stats:?}");
}

#[test]
fn memory_that_can_not_be_had_so_is_told_with_what_to_do() {
    let build = |nodes: &[Node]| {
        let builder = Memory::builder().budget(64 * MIB);
        nodes.iter().fold(builder, |builder, &node| builder.node(node)).build()
    };
    let delay = Delay::per_page(Duration::from_nanos(60));
    let error = build(&[Node::slow(8 * MIB).on_numa_node(1000)]).unwrap_err();
    assert!(matches!(error, Error::NoSuchNode { node: 1000, .. }), "{error}");
    assert!(error.to_string().contains("NUMA node 1000, only on "), "{error}");
    assert!(matches!(build(&[Node::slow(8 * MIB).on_numa_node(5000)]), Err(Error::NoSuchNode { .. })));
    assert!(matches!(build(&[Node::bound_to(1000)]), Err(Error::NoSuchNode { node: 1000, .. })));
    let error = build(&[Node::slow(8 * MIB)]).unwrap_err().to_string();
    assert!(error.contains("`on_numa_node`") && error.contains("`emulated`"), "{error}");
    let error = build(&[Node::slow(MIB).emulated(delay)]).unwrap_err().to_string();
    assert_eq!(error, "the minimum of slow memory is 4 MiB");
    let least = match build(&[Node::slow(60 * MIB).emulated(delay)]) {
        Err(Error::BudgetTooSmall { least }) => least,
        other => panic!("{other:?}"),
    };
    let slow = Node::slow(60 * MIB).emulated(delay);
    let memory = Memory::builder().budget(least).node(slow).build().unwrap();
    let stats = memory.stats().unwrap();
    assert_eq!(stats.slow_frames, 60 * 256);
    let described = memory.describe();
    assert!(described.contains("15360 of them slow, emulated: 60ns more per page"), "{described}");
}

#[test]
fn memory_is_on_the_nodes_that_it_is_bound_to() {
    let made = Made::new("bound", 256 * PAGE);
    let nodes = [Node::bound_to(0), Node::slow(8 * MIB).on_numa_node(0)];
    let builder = Memory::builder().budget(28 * MIB);
    let memory = match nodes.iter().fold(builder, |builder, &node| builder.node(node)).build() {
        Ok(memory) => memory,
        // A container may forbid it: then this is what it says.
        Err(Error::Io { op: "binding memory", .. }) => return,
        Err(error) => panic!("{error}"),
    };
    assert!(memory.describe().contains("slow, on NUMA node 0"), "{}", memory.describe());
    let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
    read_all(&file, 1);
    let maps = std::fs::read_to_string("/proc/self/numa_maps").unwrap_or_default();
    assert!(maps.is_empty() || maps.contains("bind:0"), "{maps}");
}

/// Pages of mappings that are bound to a node, on each of two nodes: from `bind:1 ... N0=3 N1=512`.
fn pages_bound_to(node: u64) -> [u64; 2] {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").unwrap();
    let bound = format!("bind:{node}");
    let words: Vec<&str> = maps
        .lines()
        .filter(|line| line.split(' ').nth(1) == Some(&bound))
        .flat_map(|line| line.split(' '))
        .collect();
    ["N0=", "N1="].map(|of| {
        let counts = words.iter().filter_map(|word| word.strip_prefix(of));
        counts.map(|count| count.parse::<u64>().unwrap()).sum()
    })
}

#[test]
#[ignore = "takes a machine of two NUMA nodes, as ci/slow/two-nodes.sh has one"]
fn pages_are_on_the_node_of_slow_memory_until_they_are_promoted_to_the_other() {
    let made = Made::new("two-nodes", 1024 * PAGE);
    let nodes = [Node::bound_to(0), Node::slow(8 * MIB).on_numa_node(1)];
    for (policy, reads) in [("classic@6.12", 5), ("mglru@6.12", 7)] {
        let builder = Memory::builder().budget(28 * MIB).policy(policy).io_threads(0);
        let memory = nodes.iter().fold(builder, |builder, &node| builder.node(node)).build().unwrap();
        memory.write("/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms", "1000000").unwrap();
        let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
        read_all(&file, 1);
        let (fast, slow) = (pages_bound_to(0), pages_bound_to(1));
        println!("{}: before {fast:?} {slow:?}", memory.describe());
        assert_eq!((fast[1], slow[0]), (0, 0), "memory is where it is bound to");
        assert!(slow[1] >= 1024, "all pages of the file are in slow memory: {slow:?}");
        assert_eq!(memory.stats().unwrap().slow_resident, 1024);
        (1..reads).for_each(|_| read_all(&file, 1));
        // Whoever reads a kernel file hears of all that was read.
        memory.read("/proc/vmstat").unwrap();
        let (fast, slow) = (pages_bound_to(0), pages_bound_to(1));
        println!("after {reads} reads {fast:?} {slow:?}");
        assert_eq!((fast[1], slow[0]), (0, 0));
        assert!(fast[0] >= 1024, "and in fast memory after {reads} reads: {fast:?}");
        let stats = memory.stats().unwrap();
        assert_eq!((stats.promoted, stats.slow_resident), (1024, 0), "{stats:?}");
    }
}

#[test]
fn the_child_of_a_fork_is_told_that_it_has_no_slow_memory_either() {
    let made = Made::new("fork", 64 * PAGE);
    let memory = cache("classic@6.12");
    let file = memory.open(&made.0, Open::read().random().group(&slow_group(&memory))).unwrap();
    read_all(&file, 1);
    // SAFETY: the child uses nothing but the cache and its own stack, starts no thread, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_told = (0..4).cycle().take(100).all(|page| {
            matches!(file.read_at(&mut [0; 9], page * PAGE as u64), Err(Error::Poisoned))
                && matches!(file.page(page).map(drop), Err(Error::Poisoned))
        });
        // SAFETY: it ends the child and nothing else.
        unsafe { libc::_exit(i32::from(!is_told)) };
    }
    let mut status = -1;
    // SAFETY: the child is this process's, and the status a place of its own.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    (0..5).for_each(|_| read_all(&file, 1));
    memory.read("/proc/vmstat").unwrap();
    assert_eq!(memory.stats().unwrap().promoted, 64);
}
