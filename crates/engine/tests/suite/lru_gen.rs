//! `lru_gen` and its neighbours as user space sees them: text, commands, errors.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::*;

const LRU_GEN: &str = "/sys/kernel/debug/lru_gen";
const ENABLED: &str = "/sys/kernel/mm/lru_gen/enabled";

/// A group with a file of 1000 pages and a heap of as many, and a shell outside of it that writes kernel files.
struct Machine {
    engine: Engine,
    memcg: MemcgId,
    task: TaskId,
    shell: TaskId,
    file: ObjectId,
    heap: ObjectId,
}

impl Machine {
    fn new(policy: Policy) -> Machine {
        let mut builder = Engine::builder(Config { policy, ..Config::default() }).unwrap();
        builder.swap_on(SwapSpec { pages: 4000, kind: SwapKind::Synchronous }).unwrap();
        let mut engine = builder.build();
        let memcg = engine.memcg_create(MemcgId::ROOT, "job").unwrap();
        let mm = engine.process_create(memcg);
        let task = engine.task_create(mm, CpuId(0));
        let root = engine.process_create(MemcgId::ROOT);
        let shell = engine.task_create(root, CpuId(0));
        let spec = FileSpec {
            name: "data".to_owned(),
            pages: 1000,
            kind: FileKind::Regular,
            bdi: Bdi::NO_READAHEAD,
        };
        let file = engine.file_create(spec).unwrap();
        let file = engine.open(task, file).unwrap();
        let heap = engine.map_anon(task, 1000, Advice::Normal).unwrap();
        Machine { engine, memcg, task, shell, file, heap }
    }

    fn finish(&mut self, task: TaskId, mut step: Step) -> Served {
        loop {
            let mut ops = Vec::new();
            self.engine.take_ops(&mut ops);
            for op in ops {
                if let Op::ReadFile { io, .. } = op {
                    self.engine.io_done(io, CpuId(0), Ok(()));
                }
            }
            self.engine.take_woken(&mut Vec::new());
            match step {
                Step::Done(served) => return served,
                Step::Again | Step::Wait(_) => step = self.engine.resume(task),
            }
        }
    }

    fn access(&mut self, object: ObjectId, pages: std::ops::Range<u64>, write: bool) {
        for page in pages {
            let step = self.engine.start(self.task, Access::new(object, page, write));
            let served = self.finish(self.task, step);
            assert!(!matches!(served, Served::Failed(_)), "{served:?}");
        }
    }

    /// Writes a file: pages reclaimed, or what the shell would say.
    fn write(&mut self, path: &str, value: &str) -> Result<u64, String> {
        let step = self.engine.write_file(self.shell, path, value).map_err(|error| error.to_string())?;
        let served = self.finish(self.shell, step);
        self.engine.check_invariants();
        match served {
            Served::Written { reclaimed: pages } => Ok(pages),
            Served::Refused(error) => Err(error.to_string()),
            served => panic!("{served:?}"),
        }
    }

    /// (seq, anon, file) of the group's generations.
    fn generations(&self) -> Vec<(u64, u64, u64)> {
        let generations = self.engine.figures().lru_gen(self.memcg, NodeId(0));
        generations.into_iter().map(|one| (one.seq, one.anon, one.file)).collect()
    }
}

#[test]
fn lru_gen_has_the_kernels_columns() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    machine.access(machine.file, 0..62, false);
    machine.access(machine.heap, 0..31, true);
    machine.engine.set_now(Nanos(1_234_567_890));
    assert_eq!(
        machine.engine.read_file(LRU_GEN).unwrap(),
        "memcg     1 /\n node     0\n\
         \u{20}         0       1232          0           0 \n\
         \u{20}         1       1232          0           0 \n\
         \u{20}         2       1232          0           0 \n\
         \u{20}         3       1232          0           0 \n\
         memcg     2 /job\n node     0\n\
         \u{20}         0       1232          0           0 \n\
         \u{20}         1       1232          0          62 \n\
         \u{20}         2       1232          0           0 \n\
         \u{20}         3       1232         31           0 \n",
        "ages are whole ticks of 4 ms; files that were read are in the second oldest of a full window"
    );
}

/// On a machine's first shortage kswapd is in the middle of the only large address space when an allocator ages.
#[test]
fn who_finds_every_address_space_taken_opens_a_generation_which_the_walk_under_way_fills_up_to_a_batch() {
    const PAGES: u64 = 645 * 31;
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    let heap = machine.engine.map_anon(machine.task, PAGES, Advice::Normal).unwrap();
    machine.access(heap, 0..PAGES, true);
    let kswapd = machine.engine.process_create(MemcgId::ROOT);
    let kswapd = machine.engine.task_create(kswapd, CpuId(0));
    let walking = machine.engine.write_file(kswapd, LRU_GEN, "+ 2 0 3").unwrap();
    assert_eq!(walking, Step::Again, "it has walked the first tables");
    assert_eq!(machine.generations().last(), Some(&(3, PAGES, 0)));
    machine.write(LRU_GEN, "+ 2 0 3").unwrap();
    assert_eq!(machine.generations()[2..], [(3, PAGES, 0), (4, 0, 0)], "nobody was waited for");
    assert!(matches!(machine.finish(kswapd, walking), Served::Written { .. }));
    assert_eq!(machine.generations()[2..], [(3, PAGES - 4096, 0), (4, 4096, 0)]);
}

#[test]
fn lru_gen_full_has_four_tiers_and_the_walk_of_each_generation() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    machine.access(machine.heap, 0..31, true);
    machine.write(LRU_GEN, "+ 2 0 3").unwrap();
    let text = machine.engine.read_file("/sys/kernel/debug/lru_gen_full").unwrap();
    let job: Vec<&str> = text.lines().skip_while(|line| !line.ends_with("/job")).skip(2).collect();
    assert_eq!(job.len(), 4 * 6);
    assert_eq!(job[0], "          1          0          0           0 ");
    assert_eq!(
        job[1],
        "                     0          0r          0e          0p          0r          0e          0p"
    );
    assert_eq!(
        job[12..18],
        [
            "          3          0         31           0 ",
            "                     0          0r          0e          0p          0r          0e          0p",
            "                     1          0r          0e          0p          0r          0e          0p",
            "                     2          0r          0e          0p          0r          0e          0p",
            "                     3          0r          0e          0p          0r          0e          0p",
            "                              513t         31y          1f          0a",
        ],
        "31 young entries of 512 are too few for the filter"
    );
    assert_eq!(
        job[19..20],
        ["                     0          0R          0T          0x          0R          0T          0x"]
    );
    assert_eq!(job[23], "                                0x          0x          0x          0x");
}

#[test]
fn plus_finds_what_is_in_use_and_minus_evicts_what_is_not() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    machine.access(machine.heap, 0..310, true);
    // The entries are young from the first touch. The first walk finds that, the next ones only what was used since.
    for max_gen in 3..6 {
        assert_eq!(machine.write(LRU_GEN, &format!("+ 2 0 {max_gen}")), Ok(0));
        machine.access(machine.heap, 0..100, true);
    }
    assert_eq!(machine.write(LRU_GEN, "+ 2 0 6"), Ok(0));
    assert_eq!(machine.generations(), [(4, 210, 0), (5, 0, 0), (6, 100, 0), (7, 0, 0)]);
    assert_eq!(machine.write(LRU_GEN, "- 2 0 4 200 64"), Ok(64), "no more than asked for, in a batch of 64");
    assert_eq!(machine.write(LRU_GEN, "- 2 0 5 200"), Ok(146));
    assert_eq!(
        machine.engine.figures().memcg_usage(machine.memcg),
        100 + 64 - 310 % 64,
        "what is left, and the stock"
    );
    assert_eq!(machine.write(LRU_GEN, "- 2 0 5 200"), Ok(0), "nothing is left to take");
}

#[test]
fn commands_are_done_in_order_up_to_the_first_that_is_refused() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    machine.access(machine.file, 0..310, false);
    let error = machine.write(LRU_GEN, ", \n;+ 2 0 3;+2 0 4 , - 2 0 9\n+ 2 0 5").unwrap_err();
    assert_eq!(
        error,
        "/sys/kernel/debug/lru_gen: command 3, `- 2 0 9`, is rejected (EINVAL): expected a min_gen older than the \
         youngest generations, which are never evicted; max_gen is 5"
    );
    assert_eq!(machine.generations().last().unwrap().0, 5, "the first two are done, the fourth is not");
}

#[test]
fn malformed_commands_name_their_errno() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    for (command, errno) in [
        ("+", "EINVAL"),
        ("+ 2 0", "EINVAL"),
        ("? 2 0 3", "EINVAL"),
        ("é", "EINVAL"),
        ("+ 2 0 3 60 1 1", "EINVAL"),
        ("+ 2 0 x", "EINVAL"),
        ("+ 2 0 -3", "EINVAL"),
        ("+ 0 0 3", "EINVAL"),
        ("+ 9 0 3", "EINVAL"),
        ("+ 2 1 3", "EINVAL"),
        ("+ 2 0 4", "EINVAL"),
        ("+ 2 0 3 201", "EINVAL"),
        ("+ 2 0 3 max", "EINVAL"),
        ("+ 2 0 3 60 0", "ERANGE"),
        ("+ 2 0 99999999999999999999", "ERANGE"),
        ("+ 4294967296 0 3", "ERANGE"),
        ("- 2 0 2", "EINVAL"),
        ("- 2 0 18446744073709551615", "EINVAL"),
    ] {
        let error = machine.write(LRU_GEN, command).unwrap_err();
        assert!(error.contains(&format!("({errno})")) && error.contains("expected"), "{command}: {error}");
    }
    assert_eq!(machine.generations().len(), 4, "none of them did anything");
    assert_eq!(machine.write(LRU_GEN, " ;\n,"), Ok(0), "empty commands are skipped");
}

#[test]
fn plus_of_a_generation_that_is_there_already_does_nothing_in_6_12_and_opens_the_next_in_6_16() {
    for (policy, youngest) in [(Policy::of("mglru@6.12"), 4), (Policy::of("mglru@6.16"), 5)] {
        let mut machine = Machine::new(policy);
        machine.access(machine.heap, 0..310, true);
        assert_eq!(machine.write(LRU_GEN, "+ 2 0 3"), Ok(0));
        assert_eq!(machine.write(LRU_GEN, "+ 2 0 3"), Ok(0));
        assert_eq!(machine.generations().last().unwrap().0, youngest);
    }
}

#[test]
fn a_generation_that_someone_else_opened_meanwhile_is_an_error_in_6_16_only() {
    for (policy, expected) in [(Policy::of("mglru@6.12"), None), (Policy::of("mglru@6.16"), Some("EEXIST"))] {
        let mut machine = Machine::new(policy);
        machine.access(machine.heap, 0..310, true);
        let first = machine.engine.write_file(machine.shell, LRU_GEN, "+ 2 0 3").unwrap();
        assert_eq!(first, Step::Again, "it has only begun to walk");
        let memcg = machine.memcg;
        let other = machine.engine.lru_gen_age(machine.task, memcg, NodeId(0), 3, None, true).unwrap();
        let other = machine.finish(machine.task, other);
        let first = machine.finish(machine.shell, first);
        let errors = [first, other].map(|served| match served {
            Served::Refused(error) => Some(error.to_string()),
            _ => None,
        });
        let refused: Vec<String> = errors.into_iter().flatten().collect();
        assert_eq!(refused.len(), usize::from(expected.is_some()), "{refused:?}");
        assert!(refused.iter().all(|error| error.contains(expected.unwrap())), "{refused:?}");
        assert_eq!(machine.generations().last().unwrap().0, 4, "one generation was opened");
    }
}

#[test]
fn swappiness_max_evicts_anonymous_memory_alone() {
    let mut machine = Machine::new(Policy::of("mglru@6.16"));
    machine.access(machine.file, 0..310, false);
    machine.access(machine.heap, 0..310, true);
    // Both are young as their entries are, and file pages have no entries.
    for _ in 0..3 {
        machine.write(LRU_GEN, "+ 2 0 3").unwrap();
    }
    let file = |machine: &Machine| machine.generations().iter().map(|one| one.2).sum::<u64>();
    let before = file(&machine);
    assert!(machine.write(LRU_GEN, "- 2 0 4 max").unwrap() > 200);
    assert_eq!(file(&machine), before);
    assert!(machine.write(LRU_GEN, "- 2 0 4 0x0").unwrap() > 200, "0 means file memory alone");
}

#[test]
fn an_eviction_that_user_space_asks_for_is_direct_reclaim_to_the_counters() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    machine.access(machine.file, 0..310, false);
    let memcg = machine.memcg;
    let step = machine.engine.lru_gen_evict(machine.shell, memcg, NodeId(0), 1, None, Some(100)).unwrap();
    let Served::Written { reclaimed: pages } = machine.finish(machine.shell, step) else {
        panic!("it is no access")
    };
    assert!((100..164).contains(&pages), "{pages}");
    assert_eq!(machine.engine.figures().memcg_stat_now(memcg, Stat::PgstealDirect), pages as i64);
}

#[test]
fn a_group_of_two_lists_has_generations_without_pages_and_takes_no_commands() {
    let mut machine = Machine::new(Policy::of("classic@6.12"));
    machine.access(machine.file, 0..310, false);
    assert_eq!(machine.generations(), [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)]);
    let error = machine.write(LRU_GEN, "+ 2 0 3").unwrap_err();
    assert!(error.contains("EINVAL") && error.contains("a group under MGLRU"), "{error}");
}

#[test]
fn the_settings_are_read_back_as_the_kernel_prints_them() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    assert_eq!(machine.engine.read_file(ENABLED).unwrap(), "0x0007\n");
    for (value, text) in
        [("5", "0x0005\n"), ("0x3\n", "0x0003\n"), ("07", "0x0007\n"), ("1", "0x0001\n"), ("Y", "0x0007\n")]
    {
        machine.write(ENABLED, value).unwrap();
        assert_eq!(machine.engine.read_file(ENABLED).unwrap(), text, "{value}");
    }
    for value in ["", "on", "08", "0x", "-1", "4294967296"] {
        assert!(machine.write(ENABLED, value).unwrap_err().contains("EINVAL"), "{value}");
    }
    let min_ttl = "/sys/kernel/mm/lru_gen/min_ttl_ms";
    assert_eq!(machine.engine.read_file(min_ttl).unwrap(), "0\n");
    machine.write(min_ttl, "1000").unwrap();
    assert_eq!(machine.engine.read_file(min_ttl).unwrap(), "1000\n");
    assert!(machine.write(min_ttl, "1s").is_err());
}

#[test]
fn switched_pages_go_where_their_state_puts_them_and_back() {
    let mut machine = Machine::new(Policy::of("classic@6.12"));
    assert_eq!(machine.engine.read_file(ENABLED).unwrap(), "0x0000\n");
    machine.access(machine.file, 0..310, false);
    machine.access(machine.file, 0..155, false);
    machine.access(machine.heap, 0..155, true);
    let classic =
        [LruType::Anon, LruType::File].map(|kind| machine.engine.figures().list_sizes(machine.memcg, kind));
    assert_eq!(classic, [(155, 0), (155, 155)]);
    assert_eq!(machine.write(ENABLED, "7"), Ok(0));
    assert_eq!(machine.engine.read_file(ENABLED).unwrap(), "0x0007\n");
    assert_eq!(machine.generations(), [(0, 0, 0), (1, 0, 155), (2, 155, 0), (3, 0, 155)]);
    machine.write(LRU_GEN, "+ 2 0 3 0").unwrap();
    assert_eq!(machine.write(ENABLED, "n"), Ok(0));
    let classic =
        [LruType::Anon, LruType::File].map(|kind| machine.engine.figures().list_sizes(machine.memcg, kind));
    assert_eq!(classic, [(155, 0), (155, 155)], "what was in the two youngest generations is active");
    machine.write(ENABLED, "1").unwrap();
    assert_eq!(machine.generations().last().unwrap().0, 4, "sequence numbers go on from where they were");
    assert_eq!(
        machine.engine.read_file(ENABLED).unwrap(),
        "0x0001\n",
        "walks stay off if they are switched off"
    );
}

#[test]
fn a_policy_switched_off_and_on_is_the_one_it_was() {
    let mut policy = Policy::of("mglru@6.16");
    assert!(Switch::by_name("balance.controller").unwrap().set(&mut policy, "false"));
    let mut machine = Machine::new(policy);
    machine.write(ENABLED, "0").unwrap();
    machine.write(ENABLED, "7").unwrap();
    // 6.16's interface is the era's, which the classic lists in between don't know.
    machine.access(machine.heap, 0..310, true);
    assert_eq!(machine.write(LRU_GEN, "+ 2 0 3; + 2 0 3"), Ok(0));
    assert_eq!(machine.generations().last().unwrap().0, 5);
}

#[test]
fn a_textbook_policy_is_not_switched() {
    let mut machine = Machine::new(Policy::of("lru"));
    machine.access(machine.file, 0..310, false);
    machine.write(ENABLED, "7").unwrap();
    assert_eq!(machine.engine.read_file(ENABLED).unwrap(), "0x0000\n");
    assert!(machine.generations().is_empty());
}

#[test]
fn the_walk_bits_are_nothing_to_two_lists_and_are_read_back_as_written() {
    let mut machine = Machine::new(Policy::of("classic@6.12"));
    machine.access(machine.heap, 0..31, true);
    machine.write(ENABLED, "6").unwrap();
    assert_eq!(machine.engine.read_file(ENABLED).unwrap(), "0x0006\n");
    machine.write("/sys/fs/cgroup/job/memory.reclaim", &(16 * PAGE_SIZE).to_string()).unwrap();
    assert_eq!(machine.engine.work().ptes_walked, 0, "the classic LRU walks no page tables");
    machine.write(ENABLED, "7").unwrap();
    let youngest = machine.generations().last().unwrap().0;
    machine.write(LRU_GEN, &format!("+ 2 0 {youngest}")).unwrap();
    assert!(machine.engine.work().ptes_walked > 0);
}

#[test]
fn a_call_for_a_group_or_node_that_is_not_there_is_refused() {
    let mut machine = Machine::new(Policy::of("mglru@6.12"));
    let (task, there) = (machine.task, machine.memcg);
    for (memcg, node) in [(there, NodeId(1)), (MemcgId(99), NodeId(0))] {
        assert!(machine.engine.figures().lru_gen(memcg, node).is_empty());
        let aged = machine.engine.lru_gen_age(task, memcg, node, 3, None, false);
        let evicted = machine.engine.lru_gen_evict(task, memcg, node, 0, None, None);
        for refused in [aged, evicted] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("a group and a node of this machine"), "{message}");
        }
    }
}

/// Switches a group that is at its limit, full of file pages read once, while its heap, which can't be swapped, grows; the first
/// thing that goes wrong.
fn switch_at_the_limit(from: Policy, to: &str, switching: &str) -> Option<AccessError> {
    const PAGES: u64 = 12_000;
    let mut policy = from;
    assert!(Switch::by_name("lru.switching").unwrap().set(&mut policy, switching));
    let mut machine = Machine::new(policy);
    let spec =
        FileSpec { name: "large".to_owned(), pages: PAGES, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
    let large = machine.engine.file_create(spec).unwrap();
    let large = machine.engine.open(machine.task, large).unwrap();
    machine.write("/sys/fs/cgroup/job/memory.max", &(PAGES * PAGE_SIZE).to_string()).unwrap();
    machine.write("/sys/fs/cgroup/job/memory.swap.max", "0").unwrap();
    machine.access(large, 0..PAGES, false);
    let mut step = machine.engine.write_file(machine.shell, ENABLED, to).unwrap();
    let (mut steps, mut page) = (0, 0);
    while step == Step::Again {
        machine.engine.check_invariants();
        for _ in 0..150 {
            let access = Access::new(machine.heap, page, true);
            let write = machine.engine.start(machine.task, access);
            if let Served::Failed(error) = machine.finish(machine.task, write) {
                return Some(error);
            }
            page += 1;
        }
        step = machine.engine.resume(machine.shell);
        steps += 1;
    }
    assert!(steps >= 3, "{steps} steps for {PAGES} pages");
    machine.engine.check_invariants();
    assert!(!machine.engine.figures().is_switching(machine.memcg));
    None
}

#[test]
fn a_group_at_its_limit_can_be_switched_while_it_reclaims() {
    assert_eq!(switch_at_the_limit(Policy::of("classic@6.12"), "y", "both"), None);
    assert_eq!(switch_at_the_limit(Policy::of("mglru@6.12"), "n", "both"), None);
    assert_eq!(switch_at_the_limit(Policy::of("mglru@6.16"), "n", "both"), None);
}

#[test]
fn with_reclaim_looking_at_the_new_lists_only_a_switch_at_the_limit_is_a_false_oom() {
    for (policy, to) in [(Policy::of("classic@6.12"), "y"), (Policy::of("mglru@6.12"), "n")] {
        let error = switch_at_the_limit(policy, to, "new_only");
        let Some(AccessError::Oom(report)) = error else { panic!("{error:?}") };
        assert!(
            report.lists[2] + report.lists[3] > 10_000,
            "full of file pages that were read once: {report}"
        );
    }
}
