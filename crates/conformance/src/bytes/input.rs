//! From bytes to a machine and what happens on it.
//!
//! A setup takes as many bytes as it needs, an action always four. So one byte more or less in the middle of an input
//! shifts complete actions at worst. Mutations of libFuzzer (flip, insert, copy, cross over) are mostly small changes of a
//! run. Numbers are taken modulo the number of choices; an action that makes no sense at the moment does nothing.

use pageout_engine::FileSystem;
use pageout_engine::{
    ADISTANCE_DAX_KMEM, Advice, Bdi, Config, FileKind, Layout, MemoryType, MigrateStep, PROFILES, Parameter,
    PghotPosting, Policy, SWITCHES, SizeEnabled, StatFlush, SwapKind, SwapSpec, TransparentHugepage,
};

/// What an input still has, and zeroes behind that.
pub(super) struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    pub(super) fn new(input: &[u8]) -> Bytes<'_> {
        Bytes(input)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn next(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next())
    }
}

/// Pages of a huge page.
pub(super) const HUGE_PAGE_PAGES: u64 = 512;

/// A machine to build.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) config: Config,
    /// How many of a hundred writes of a full plug end before its batch.
    pub(super) writes_won: u8,
    /// How many of a hundred requests of the engine for a frame without a reader are refused.
    pub(super) refused: u8,
    pub(super) swap: Vec<SwapSpec>,
    pub(super) groups: Vec<Group>,
    /// Kind and pages.
    pub(super) files: Vec<(FileKind, u64)>,
    /// Group of each process, counted from 1; 0 is the root. And its `oom_score_adj`.
    pub(super) processes: Vec<(u8, i16)>,
    /// Process and CPU of each task.
    pub(super) tasks: Vec<(u8, u8)>,
    pub(super) anon_pages: u64,
    pub(super) advice: Advice,
    pub(super) bdi: Bdi,
}

/// A memory group to create.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Counted from 1, among those before it; 0 is the root.
    pub(super) parent: u8,
    pub(super) policy: Policy,
    pub(super) knobs: Vec<(&'static str, Limit)>,
}

/// A value written to a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    Pages(u64),
    Max,
}

impl Limit {
    fn of(byte: u8) -> Limit {
        match byte {
            0 => Limit::Max,
            byte @ 1..=199 => Limit::Pages(u64::from(byte)),
            200 => Limit::Pages(0),
            // What is left of the largest number of bytes that the file takes.
            201 => Limit::Pages(u64::MAX / 4096),
            byte => Limit::Pages(1 << (byte % 52)),
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Limit::Pages(pages) => (pages * 4096).to_string(),
            Limit::Max => "max".to_string(),
        }
    }
}

const KNOBS: [&str; 5] = ["memory.max", "memory.high", "memory.low", "memory.min", "memory.swap.max"];

fn pick<T: Clone>(bytes: &mut Bytes, from: &[T]) -> T {
    from[usize::from(bytes.next()) % from.len()].clone()
}

/// A profile; from half of the bytes one with a switch turned.
fn policy(byte: u8) -> Policy {
    let byte = usize::from(byte);
    let policy = PROFILES[byte % PROFILES.len()].policy();
    if byte < 128 { policy } else { turned(policy, byte / PROFILES.len(), byte) }
}

fn turned(mut policy: Policy, switch: usize, value: usize) -> Policy {
    let switch = &SWITCHES[switch % SWITCHES.len()];
    let values = switch.alternatives(&policy);
    switch.set(&mut policy, &values[value % values.len()]);
    policy
}

/// Turns on more of what tracks hot pages and promotes them, by four bits. Zero, which inputs are padded with, turns nothing.
fn tracked(config: &mut Config, bits: u8) {
    let mut set = |settings: &[(&str, &str)]| {
        for (name, value) in settings {
            let parameter = Parameter::by_name(name).expect("a parameter of the engine");
            assert!(parameter.set(config, value), "{name} = {value}");
        }
    };
    match bits & 3 {
        1 => set(&[("pghot.record", "u32")]),
        2 => set(&[("pghot.record", "u64"), ("pghot.window_by_node", "true")]),
        3 => set(&PghotPosting::V3.parameters().copied().collect::<Vec<_>>()),
        _ => {}
    }
    if bits & 4 != 0 {
        set(&[
            ("vm.pghot_record_pgtscans_enable", "1"),
            ("vm.pghot_record_hwhints_enable", "1"),
            ("pghot.coalesce", "true"),
            ("pghot.batch_by_memcg", "true"),
            ("numa.misplaced_huge", "split"),
            ("numa.pagecache_promotion_order", "head"),
        ]);
    }
    if bits & 8 != 0 {
        set(&[
            ("numa.promotion_governor_ms", "1000"),
            ("pghot.refused", "forget"),
            ("numa.pagecache_promotion_when", "access"),
        ]);
        if config.node_pages.len() == 2 {
            config.node_pages.push(70);
        }
    }
}

/// Turns on what takes from one to spare another: a far node, a disk, groups below their soft limits. By six bits.
fn sparing(config: &mut Config, bits: u8) {
    config.zone_reclaim_mode = bits & 7;
    config.min_unmapped_ratio = 0;
    config.laptop_mode = (bits >> 3 & 1).into();
    config.cgroup_version = 2 - (bits >> 4 & 1);
}

impl Setup {
    pub(super) fn decode(bytes: &mut Bytes) -> Setup {
        let (kernel, writes_won): (u8, u8);
        let config = Config {
            node_pages: pick(
                bytes,
                &[vec![4096], vec![300], vec![64], vec![100, 40], vec![2000, 2000], vec![1, 90]],
            ),
            cpus: pick(bytes, &[1, 2, 3]),
            hz: pick(bytes, &[250, 1000, 100, 1]),
            swappiness: pick(bytes, &[60, 100, 200, 0, 1, 199]),
            folio_batch: pick(bytes, &[1, 2, 4, 15, 31]),
            charge_stock: pick(bytes, &[1, 3, 8, 64]),
            reclaim_batch: pick(bytes, &[1, 4, 7, 32]),
            plug_requests: {
                let requests = pick(bytes, &[32, 1, 2, 5]);
                writes_won = pick(bytes, &[0, 100, 50]);
                requests
            },
            stat_flush: pick(bytes, &[StatFlush::Periodic, StatFlush::Live, StatFlush::Manual]),
            kmem: {
                kernel = bytes.next();
                kernel & 1 != 0
            },
            oom_kill: kernel & 2 != 0,
            tlb_entries: 0,
            interruptions: 0,
            policy: {
                let policy = policy(bytes.next());
                // Zero, which inputs are padded with, turns nothing.
                match bytes.take::<2>() {
                    [0, _] => policy,
                    [switch, value] => turned(policy, switch.into(), value.into()),
                }
            },
            // Zones, marks and the pages that CPUs keep, as they are by default.
            demotion_enabled: kernel & 32 != 0,
            numa_balancing: if kernel & 64 != 0 { 2 } else { 0 },
            pagecache_promotion_enabled: kernel & 64 != 0,
            pghot_record_fma_enable: kernel >> 7,
            pghot_record_hintfaults_enable: kernel >> 7,
            layout: Layout {
                memory_types: vec![
                    MemoryType::Dram,
                    MemoryType::Adistance(ADISTANCE_DAX_KMEM),
                    MemoryType::Adistance(2 * ADISTANCE_DAX_KMEM),
                ],
                ..Layout::default()
            },
            zswap_enabled: kernel & 4 != 0,
            zswap_shrinker_enabled: kernel & 8 != 0,
            zswap_max_pool_percent: if kernel & 16 != 0 { 1 } else { 20 },
            ..Config::default()
        };
        let device = |bytes: &mut Bytes| {
            let kind = pick(bytes, &[SwapKind::Device, SwapKind::Synchronous]);
            SwapSpec { pages: pick(bytes, &[1, 4, 12, 40, 200]), kind }
        };
        let group = |bytes: &mut Bytes, before: usize| {
            let parent = bytes.next() % (before as u8 + 1);
            let policy = policy(bytes.next());
            let mut knobs = Vec::new();
            for knob in KNOBS {
                match bytes.next() {
                    0 => {}
                    byte => knobs.push((knob, Limit::of(byte))),
                }
            }
            Group { parent, policy, knobs }
        };
        let swap = (0..pick(bytes, &[0, 1, 2])).map(|_| device(bytes)).collect();
        let mut groups = (0..pick(bytes, &[1, 2, 3])).map(|before| group(bytes, before)).collect::<Vec<_>>();
        let kinds = [FileKind::Regular, FileKind::Tmpfs, FileKind::Regular];
        let files = pick(bytes, &[1, 2, 3]);
        let files = kinds[..files].iter().map(|&kind| (kind, pick(bytes, &[24, 8, 70, 600])));
        let files = files.collect();
        let groups_and_root = groups.len() as u8 + 1;
        let process = |bytes: &mut Bytes| {
            let byte = bytes.next();
            const ADJ: [i16; 8] = [0, 0, 0, 0, 500, -500, 1000, -1000];
            (byte % groups_and_root, ADJ[usize::from(byte >> 5)])
        };
        let processes = (0..pick(bytes, &[1, 2, 3])).map(|_| process(bytes));
        let processes = processes.collect::<Vec<_>>();
        let task = |bytes: &mut Bytes| (bytes.next() % processes.len() as u8, bytes.next());
        let tasks = (0..pick(bytes, &[2, 1, 3, 4])).map(|_| task(bytes)).collect();
        let mut anon_pages = pick(bytes, &[24, 8, 48]);
        let byte = bytes.next();
        let advice =
            [Advice::Normal, Advice::Random, Advice::Sequential, Advice::NoReuse][usize::from(byte % 4)];
        // A quarter of the setups each, and half have none, those that inputs are padded to among them.
        let transparent_hugepage = match byte >> 6 {
            1 => TransparentHugepage::Always,
            2 => TransparentHugepage::Madvise,
            _ => TransparentHugepage::Never,
        };
        if transparent_hugepage != TransparentHugepage::Never {
            // A huge page, and a rest that is none.
            anon_pages += HUGE_PAGE_PAGES;
        }
        let ra_pages = pick(bytes, &[0, 4, 32, 7, 1]);
        let byte_of_device = bytes.next();
        let bdi = Bdi {
            ra_pages,
            io_pages: [0, 320, 5][usize::from(byte_of_device % 3)],
            file_system: if byte_of_device % 5 == 4 { FileSystem::Xfs } else { FileSystem::None },
        };
        // One byte decides how far both kinds of readahead go.
        let mut config = Config { page_cluster: (bdi.ra_pages % 4) as u8, transparent_hugepage, ..config };
        large_folios(&mut config, byte_of_device >> 5 & 3);
        tracked(&mut config, byte >> 2 & 15);
        // For a quarter of the setups.
        if byte_of_device >= 192 {
            sparing(&mut config, byte_of_device);
        }
        if config.cgroup_version == 1 {
            for (at, Group { knobs, .. }) in groups.iter_mut().enumerate() {
                knobs.push(("memory.soft_limit_in_bytes", Limit::Pages(8 * at as u64)));
            }
        }
        let refused = [0, 0, 10, 40][usize::from(byte_of_device >> 3 & 3)];
        if refused > 0 {
            (config.step_pages, config.step_busy_pages, config.step_moves) = (7, 3, 5);
        }
        Setup { tasks, processes, config, writes_won, refused, swap, groups, files, anon_pages, advice, bdi }
    }
}

/// Switches of the sizes of anonymous folios: for three setups of four some of them.
fn large_folios(config: &mut Config, choice: u8) {
    let enabled = match choice {
        1 => [SizeEnabled::Always, SizeEnabled::Never],
        2 => [SizeEnabled::Madvise, SizeEnabled::Inherit],
        3 => [SizeEnabled::Always, SizeEnabled::Always],
        _ => return,
    };
    for order in 2..=8 {
        *config.size_enabled(order).expect("it is an order with a switch") = enabled[usize::from(order % 2)];
    }
}

/// One thing that happens. Tasks, objects, files and groups by number, modulo how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// An access, as far as it goes without waiting.
    Access {
        task: u8,
        object: u8,
        page: u8,
        write: bool,
        /// It writes a part of the page, if it is one of an open file.
        part: bool,
        /// Pages that the read(2) call wants from this one on.
        wanted: u32,
    },
    /// Accesses to consecutive pages, as long as they are hits.
    Run {
        task: u8,
        object: u8,
        page: u8,
        count: u8,
        write: bool,
    },
    /// A task that can go on does.
    Resume {
        which: u8,
    },
    /// A transfer ends. A write has written what the frame held when it began (`early`), or what it holds now.
    Complete {
        which: u8,
        fails: bool,
        early: bool,
        cpu: u8,
    },
    MadviseFree {
        task: u8,
        object: u8,
        page: u8,
    },
    MadviseCold {
        task: u8,
        object: u8,
        page: u8,
    },
    FadviseDontneed {
        task: u8,
        file: u8,
        page: u8,
    },
    Mlock {
        task: u8,
        object: u8,
    },
    Munlock {
        task: u8,
        object: u8,
    },
    /// Unmaps, and maps again.
    Munmap {
        task: u8,
        object: u8,
    },
    /// Restarts its program, in another address space.
    Exec {
        task: u8,
    },
    Pin {
        file: u8,
        page: u8,
    },
    /// Takes pages out of a file.
    Truncate {
        task: u8,
        file: u8,
        page: u8,
    },
    /// Writes `memory.reclaim`.
    Reclaim {
        task: u8,
        group: u8,
        pages: u8,
        swappiness: Option<u8>,
    },
    /// Writes a limit.
    Write {
        task: u8,
        group: u8,
        knob: &'static str,
        limit: Limit,
    },
    Swappiness {
        task: u8,
        value: u8,
    },
    /// Writes something to some file, with any result.
    WriteOddity {
        task: u8,
        group: u8,
        file: u8,
        text: u8,
    },
    /// Writes commands to `lru_gen`, or something else to one of the files next to it.
    LruGen {
        task: u8,
        group: u8,
        file: u8,
        text: u8,
    },
    /// Reads all files of a group, and `/proc/vmstat`.
    Read {
        group: u8,
    },
    FlushStats,
    /// Which of eight migrations in a row fail at a step: those whose bits are set.
    Refuse {
        step: MigrateStep,
        pattern: u8,
    },
    /// Writes `compact_memory`.
    Compact {
        task: u8,
    },
    /// Writes `nr_hugepages` of an order.
    Hugepages {
        task: u8,
        order: u8,
        blocks: u8,
    },
    /// Writes `transparent_hugepage/enabled`.
    TransparentHugepage {
        task: u8,
        enabled: &'static str,
    },
    /// Time passes.
    Tick {
        nanos: u64,
    },
    /// A signal comes for a task, whatever it does.
    Signal {
        task: u8,
    },
    /// Removes a group, and makes another in its place, to which its processes move.
    Replace {
        group: u8,
    },
    /// A reader outside the engine begins to read a page of a file, or ends.
    Look {
        file: u8,
        page: u8,
    },
    LookAway {
        which: u8,
    },
    /// Closes an object, and makes one of its kind in its place.
    Reopen {
        task: u8,
        object: u8,
    },
    /// Has a task access an open file of another one.
    Lend {
        task: u8,
        object: u8,
        to: u8,
    },
    /// Resizes the balloon: the host has this many 512ths of the fast node.
    Balloon {
        task: u8,
        share: u8,
    },
    /// A flush of a file's device begins, or the current one ends.
    Flush {
        task: u8,
        file: u8,
        fails: bool,
    },
    /// Makes a file longer, or shorter.
    Resize {
        task: u8,
        file: u8,
        pages: u8,
        grows: bool,
    },
    /// A new group with a process and a task in it.
    Spawn {
        parent: u8,
        policy: Policy,
        cpu: u8,
    },
}

impl Action {
    pub(super) fn decode(bytes: &mut Bytes) -> Action {
        let [code, a, b, c] = bytes.take::<4>();
        // Two numbers in one byte: a task below 8, and an object.
        let (task, object) = (a & 7, a >> 3);
        match code {
            146 => Action::Signal { task },
            147 => Action::Exec { task },
            148 => Action::Replace { group: a },
            95 | 149 | 255 => Action::LruGen { task, group: object, file: b, text: c },
            0..80 => {
                let wanted = u32::from(c >> 4) + 1;
                Action::Access { task, object, page: b, write: c & 1 != 0, part: c & 2 != 0, wanted }
            }
            80..96 => Action::Run { task, object, page: b, count: c >> 1 & 15, write: c & 1 != 0 },
            96..150 => Action::Resume { which: a },
            150..190 => Action::Complete { which: a, fails: b < 24, early: b & 1 != 0, cpu: c },
            190..198 => Action::MadviseFree { task, object, page: b },
            198..203 => Action::MadviseCold { task, object, page: b },
            203..206 => Action::FadviseDontneed { task, file: c, page: b },
            206..208 => Action::Truncate { task, file: c, page: b },
            208..211 => Action::Mlock { task, object },
            211..216 => Action::Munlock { task, object },
            216..220 => Action::Munmap { task, object },
            220 if c >= 128 => Action::Reopen { task, object },
            220 => Action::Pin { file: a, page: b },
            221..229 => {
                let swappiness = (c & 3 == 0).then_some(b % 201);
                Action::Reclaim { task, group: object, pages: b, swappiness }
            }
            229..240 => Action::Write {
                task,
                group: object,
                knob: KNOBS[usize::from(b) % KNOBS.len()],
                limit: Limit::of(c),
            },
            240..242 => Action::Swappiness { task, value: b % 201 },
            242 => Action::WriteOddity { task, group: object, file: b, text: c },
            // A quarter of what would only read, without a code of its own.
            243 | 244 if b >= 128 => Action::Look { file: a, page: c },
            245 if b >= 192 => Action::LookAway { which: a },
            245 if b >= 128 => Action::Lend { task, object, to: c },
            243..246 => Action::Read { group: a },
            246 if b >= 128 => Action::Resize { task, file: object, pages: c, grows: b & 1 != 0 },
            246 if b >= 64 => Action::Flush { task, file: object, fails: c & 1 != 0 },
            246 => Action::FlushStats,
            247 => {
                let step = MigrateStep::ALL[usize::from(a) % MigrateStep::ALL.len()];
                Action::Refuse { step, pattern: b }
            }
            248 if object == 0 => Action::Compact { task },
            248 if object == 1 => {
                let enabled = ["always", "madvise", "never"][usize::from(b % 3)];
                Action::TransparentHugepage { task, enabled }
            }
            248 if object == 2 => Action::Balloon { task, share: if c & 3 == 0 { 0 } else { b } },
            248 => Action::Hugepages { task, order: b % 10 + 1, blocks: c & 7 },
            249..253 => Action::Tick { nanos: (u64::from(b) + 1) << (c % 36) },
            253.. => Action::Spawn { parent: a, policy: policy(b), cpu: c },
        }
    }
}
