//! Actions, of which a random run of the byte machine consists, and the strategies that make them.
//!
//! Everything that happens is in the list of actions, down to which transfer ends next and whether it fails. So proptest can
//! shrink a failing run to the few actions that matter. Every sublist of a run is a valid run. Numbers are taken modulo the
//! number of choices, and an action that makes no sense at the moment (advice by a task that is busy) does nothing.

use crate::memory::folio::HUGE_PAGE_PAGES;
use crate::memory::mm::Advice;
use crate::{Bdi, MigrateStep, PROFILES, Policy, SWITCHES, SwapKind, SwapSpec, TransparentHugepage};
use proptest::prelude::*;

/// A machine to build.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Pages of the machine: more than all that is done needs, or fewer, so that kswapd and direct reclaim come in.
    pub(crate) memory: u64,
    /// Half of it is slow, and reclaim demotes.
    pub(crate) demotes: bool,
    /// Further choices for memory with tiers; its slow node has all of `memory`.
    pub(crate) tiers: Option<Tiers>,
    /// Reclaim is asked to spare something: far nodes, who is below its soft limit, a disk; and a task is a real-time task.
    pub(crate) spares: bool,
    /// Heaps begin with a huge page, which fits into the groups and the machine.
    pub(crate) huge: bool,
    /// `memory.max` of the two groups, in pages.
    pub(crate) limits: [u64; 2],
    /// The second group is a child of the first.
    pub(crate) nested: bool,
    pub(crate) swap: Vec<SwapSpec>,
    pub(crate) bdi: Bdi,
    pub(crate) page_cluster: u8,
    /// Swap devices seek, so that their readahead goes by slot.
    pub(crate) seeks: bool,
    /// Pages of memory that each compressed device may take.
    pub(crate) zram_limit: Option<u64>,
    /// Pages in a thousand, of processes and tmpfs, that hold nothing but zeroes.
    pub(crate) zero_filled: u16,
    /// Pages are compressed in front of swap devices.
    pub(crate) zswap: bool,
    pub(crate) cpus: u16,
    pub(crate) folio_batch: usize,
    pub(crate) charge_stock: u64,
    pub(crate) reclaim_batch: u64,
    pub(crate) plug_requests: u32,
    pub(crate) writes_won: u8,
    pub(crate) swappiness: u8,
    pub(crate) live_stats: bool,
    pub(crate) kmem: bool,
    /// If no memory is available, a process is killed, instead of a failing access.
    pub(crate) oom_kill: bool,
    pub(crate) policy: Policy,
    pub(crate) advice: Advice,
}

/// Slow memory next to fast memory, and the sources of promotion besides hint faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiers {
    /// Pages of fast memory.
    pub(crate) fast: u64,
    /// Readers of files do.
    pub(crate) page_cache: bool,
    /// kmigrated does, and hint faults tell it.
    pub(crate) tracking: bool,
    /// A governor watches what has left.
    pub(crate) governed: bool,
}

impl Setup {
    /// The setup with huge heaps, and so much more for the groups, both of which are the first one's where they are nested.
    pub(crate) fn with_huge_pages(self) -> Setup {
        let heaps = if self.nested { 2 } else { 1 };
        Setup { huge: true, limits: self.limits.map(|pages| pages + heaps * HUGE_PAGE_PAGES), ..self }
    }
}

/// A machine of two near nodes that is short of memory, and what an administrator may ask of reclaim there.
pub(crate) fn sparing_setup() -> impl Strategy<Value = Setup> {
    setup().prop_map(|setup| {
        let (limits, memory) = (setup.limits.map(|pages| 6 * pages), 200 + 2 * setup.limits[0]);
        Setup { spares: true, demotes: false, memory, limits, ..setup }
    })
}

/// The objects that each task has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    OpenRegular,
    MappedRegular,
    OpenTmpfs,
    MappedTmpfs,
    Anon,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] =
        [Kind::OpenRegular, Kind::MappedRegular, Kind::OpenTmpfs, Kind::MappedTmpfs, Kind::Anon];

    /// Returns true if a write may take its time once the engine has named its frame, which the task holds. A page of a file may be written back in
    /// between, and is clean then.
    pub(crate) fn is_written_later(self) -> bool {
        matches!(self, Kind::OpenTmpfs | Kind::MappedTmpfs | Kind::Anon)
    }

    pub(crate) fn is_mapping(self) -> bool {
        matches!(self, Kind::MappedRegular | Kind::MappedTmpfs | Kind::Anon)
    }
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// An access, as far as it goes without waiting. `patience`: steps for which a task that is busy is first helped on.
    Access {
        task: usize,
        kind: Kind,
        page: u64,
        write: bool,
        /// Pages that the read(2) call wants from this one on.
        wanted: u32,
        patience: usize,
    },
    /// A run of accesses to the same pages of two objects, as long as they are hits.
    Run {
        task: usize,
        kinds: [Kind; 2],
        page: u64,
        count: u64,
        write: bool,
    },
    /// A task that can go on does, for so many steps at most.
    Resume {
        which: usize,
        steps: usize,
    },
    /// A transfer ends. A write has written what the frame held when it started (`early`), or what it holds now.
    Complete {
        which: usize,
        fails: bool,
        early: bool,
    },
    MadviseFree {
        task: usize,
        page: u64,
    },
    /// Discard pages of anonymous memory.
    MadviseDontneed {
        task: usize,
        page: u64,
        count: u64,
    },
    /// Swap them out now.
    MadvisePageout {
        task: usize,
        page: u64,
        count: u64,
    },
    /// Read them in advance.
    MadviseWillneed {
        task: usize,
        page: u64,
        count: u64,
    },
    MadviseCold {
        task: usize,
        kind: Kind,
        page: u64,
    },
    FadviseDontneed {
        task: usize,
        tmpfs: bool,
        page: u64,
    },
    Mlock {
        task: usize,
        kind: Kind,
    },
    Munlock {
        task: usize,
        kind: Kind,
    },
    /// Unmaps, and maps again.
    Munmap {
        task: usize,
        kind: Kind,
    },
    /// Restarts its program, in another address space.
    Exec {
        task: usize,
    },
    /// Writes `memory.reclaim`.
    Reclaim {
        task: usize,
        group: usize,
        pages: u64,
    },
    /// Writes `compact_memory`.
    Compact {
        task: usize,
    },
    /// Writes `nr_hugepages` of an order.
    Hugepages {
        task: usize,
        order: u8,
        blocks: usize,
    },
    /// Writes `transparent_hugepage/enabled`.
    TransparentHugepage {
        task: usize,
        enabled: TransparentHugepage,
    },
    /// Writes `memory.max`.
    SetMax {
        task: usize,
        group: usize,
        pages: u64,
    },
    /// Writes `memory.high`; no pages mean `max`.
    SetHigh {
        task: usize,
        group: usize,
        pages: u64,
    },
    /// Removes a group, if its tasks are idle: they move to the root meanwhile, and then to a new group in its place.
    Replace {
        group: usize,
    },
    Fsync {
        task: usize,
    },
    /// Takes pages out of a file; all of them: deletes it.
    Truncate {
        task: usize,
        tmpfs: bool,
        page: u64,
        count: u64,
    },
    /// sync(2), or syncfs(2) of the file system of regular files.
    Sync {
        task: usize,
        is_told_errors: bool,
    },
    /// A signal comes for a task, whatever it does. None of the actions made here: who wants signals puts them in between.
    Signal {
        task: usize,
    },
    FlushStats,
    /// Time passes, and the timer interrupts a task.
    Tick {
        task: usize,
        ms: u64,
    },
    /// Migrations among the next eight whose bits are set fail at a step.
    Refuse {
        step: MigrateStep,
        pattern: u8,
    },
    /// Writes `lru_gen/enabled`.
    Switch {
        task: usize,
        caps: u8,
    },
    /// Writes a command to `lru_gen`: `+` of the youngest generation, or `-` of one so far from it.
    LruGen {
        task: usize,
        group: usize,
        evicts: Option<u64>,
    },
}

/// Pages of each object.
pub(crate) const PAGES: u64 = 24;
/// Tasks: two threads of one process in the first group, one process in the second.
pub(crate) const TASKS: usize = 3;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        2 => Just(Kind::OpenRegular),
        2 => Just(Kind::MappedRegular),
        3 => Just(Kind::OpenTmpfs),
        3 => Just(Kind::MappedTmpfs),
        5 => Just(Kind::Anon),
    ]
}

/// A profile, or one with some of its switches turned.
pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let turned = prop::collection::vec((0..SWITCHES.len(), any::<prop::sample::Index>()), 0..4);
    let turned = prop_oneof![Just(Vec::new()), turned];
    (prop::sample::select(PROFILES), turned).prop_map(|(profile, turned)| {
        let mut policy = profile.policy();
        for (switch, value) in turned {
            let value = value.get(&SWITCHES[switch].alternatives(&policy)).clone();
            assert!(SWITCHES[switch].set(&mut policy, &value));
        }
        policy
    })
}

/// Some pages are hot, so that there are hits, and several tasks need the same page at the same time.
fn page() -> impl Strategy<Value = u64> {
    prop_oneof![1 => 0..PAGES, 1 => 0..PAGES / 4]
}

pub(crate) fn setup() -> impl Strategy<Value = Setup> {
    let slots = prop_oneof![1 => Just(4u64), 1 => Just(12), 2 => Just(40), 4 => Just(200)];
    let kinds = prop_oneof![2 => Just(SwapKind::Device), 1 => Just(SwapKind::Synchronous)];
    let device = (slots, kinds).prop_map(|(pages, kind)| SwapSpec { pages, kind });
    let swap = prop_oneof![1 => Just(0usize), 8 => Just(1), 2 => Just(2)]
        .prop_flat_map(move |devices| prop::collection::vec(device.clone(), devices));
    let sizes = (
        prop_oneof![3 => Just(1usize), 2 => Just(4), 1 => Just(31)],
        prop_oneof![Just(1u64), Just(8), Just(64)],
        prop_oneof![Just(1u64), Just(4), Just(32)],
        prop_oneof![Just(1u32), Just(3), Just(32)],
        prop_oneof![Just(0u8), Just(50), Just(100)],
    );
    let bdi = (prop_oneof![1 => Just(0u32), 2 => 1..8u32, 1 => Just(32)], prop_oneof![Just(0u32), 1..12u32])
        .prop_map(|(ra_pages, io_pages)| Bdi { ra_pages, io_pages, ..Bdi::default() });
    let advice = prop_oneof![4 => Just(Advice::Normal), 1 => Just(Advice::Random)];
    let kmem = prop::bool::weighted(0.3);
    let memory = prop_oneof![3 => Just(4096u64), 1 => 110..180u64];
    let switches = (any::<bool>(), any::<bool>(), kmem, policy(), advice, bdi, memory);
    let swappiness = prop_oneof![5 => Just(60u8), 3 => Just(200), 1 => Just(0)];
    ((8..32u64, 8..32u64), swap, 1..=2u16, sizes, switches, swappiness).prop_map(
        |(limits, swap, cpus, sizes, (nested, live_stats, kmem, policy, advice, bdi, memory), swappiness)| {
            Setup {
                memory,
                // A third of the machines, without a draw of its own.
                demotes: sizes.1 == 64,
                tiers: None,
                spares: false,
                huge: false,
                // Stacks and page tables of three tasks leave some free memory.
                limits: [limits.0, limits.1].map(|pages| pages + if kmem { 24 } else { 0 }),
                nested,
                swap,
                bdi,
                // These two without a draw of their own, too.
                page_cluster: (limits.1 % 4) as u8,
                seeks: limits.0 % 3 == 0,
                cpus,
                folio_batch: sizes.0,
                charge_stock: sizes.1,
                reclaim_batch: sizes.2,
                plug_requests: sizes.3,
                writes_won: sizes.4,
                swappiness,
                live_stats,
                kmem,
                oom_kill: limits.1 % 3 == 1,
                // A third of the machines, without a draw of its own.
                zram_limit: (sizes.1 == 8).then_some(limits.0 % 12),
                zswap: sizes.3 != 1,
                zero_filled: if sizes.2 == 4 { 300 } else { 0 },
                policy,
                advice,
            }
        },
    )
}

pub(crate) fn action() -> impl Strategy<Value = Action> {
    let task = || 0..TASKS;
    let patience = prop_oneof![1 => Just(0usize), 2 => Just(100)];
    prop_oneof![
        40 => (task(), kind(), page(), any::<bool>(), 1..6u32, patience).prop_map(
            |(task, kind, page, write, wanted, patience)| {
                Action::Access { task, kind, page, write, wanted, patience }
            },
        ),
        6 => (task(), [kind(), kind()], page(), 1..6u64, any::<bool>())
            .prop_map(|(task, kinds, page, count, write)| Action::Run { task, kinds, page, count, write }),
        15 => (0..TASKS, 1..30usize).prop_map(|(which, steps)| Action::Resume { which, steps }),
        15 => (0..8usize, prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(which, fails, early)| Action::Complete { which, fails, early }),
        3 => (task(), page()).prop_map(|(task, page)| Action::MadviseFree { task, page }),
        2 => (task(), kind(), page()).prop_map(|(task, kind, page)| Action::MadviseCold { task, kind, page }),
        2 => (task(), page(), 1..20u64).prop_map(|(task, page, count)| Action::MadviseDontneed { task, page, count }),
        2 => (task(), page(), 1..20u64).prop_map(|(task, page, count)| Action::MadvisePageout { task, page, count }),
        2 => (task(), page(), 1..20u64).prop_map(|(task, page, count)| Action::MadviseWillneed { task, page, count }),
        2 => (task(), any::<bool>(), page())
            .prop_map(|(task, tmpfs, page)| Action::FadviseDontneed { task, tmpfs, page }),
        1 => (task(), kind()).prop_map(|(task, kind)| Action::Mlock { task, kind }),
        3 => (task(), kind()).prop_map(|(task, kind)| Action::Munlock { task, kind }),
        1 => (task(), kind()).prop_map(|(task, kind)| Action::Munmap { task, kind }),
        1 => task().prop_map(|task| Action::Exec { task }),
        2 => (task(), 0..2usize, 1..20u64).prop_map(|(task, group, pages)| Action::Reclaim { task, group, pages }),
        2 => task().prop_map(|task| Action::Compact { task }),
        3 => (task(), 1..6u8, 0..5usize).prop_map(|(task, order, blocks)| Action::Hugepages { task, order, blocks }),
        1 => (task(), 0..2usize, 8..32u64).prop_map(|(task, group, pages)| Action::SetMax { task, group, pages }),
        1 => (task(), 0..2usize, 0..40u64).prop_map(|(task, group, pages)| Action::SetHigh { task, group, pages }),
        1 => task().prop_map(|task| Action::Fsync { task }),
        2 => (task(), any::<bool>(), prop_oneof![3 => (page(), 1..PAGES), 1 => Just((0, PAGES))]).prop_map(
            |(task, tmpfs, (page, count))| Action::Truncate { task, tmpfs, page, count },
        ),
        1 => (task(), any::<bool>()).prop_map(|(task, is_told_errors)| Action::Sync { task, is_told_errors }),
        1 => Just(Action::FlushStats),
        1 => (0..2usize).prop_map(|group| Action::Replace { group }),
        2 => (task(), 0..8u8).prop_map(|(task, caps)| Action::Switch { task, caps }),
        2 => (task(), 0..2usize, prop_oneof![Just(None), (2..4u64).prop_map(Some)])
            .prop_map(|(task, group, evicts)| Action::LruGen { task, group, evicts }),
    ]
}

/// What happens where heaps have huge pages: who gets new ones changes.
pub(crate) fn huge_action() -> impl Strategy<Value = Action> {
    let enabled = prop::sample::select(vec![
        TransparentHugepage::Always,
        TransparentHugepage::Madvise,
        TransparentHugepage::Never,
    ]);
    prop_oneof![
        30 => action(),
        1 => (0..TASKS, enabled).prop_map(|(task, enabled)| Action::TransparentHugepage { task, enabled }),
    ]
}

/// A machine with fast and slow memory, on which what is used goes up and what is not goes down.
pub(crate) fn tiered_setup() -> impl Strategy<Value = Setup> {
    let tiers = (60..120u64, any::<[bool; 3]>()).prop_map(|(fast, [page_cache, tracking, governed])| Tiers {
        fast,
        page_cache,
        tracking,
        governed,
    });
    (setup(), tiers).prop_map(|(setup, tiers)| {
        let tiers = Some(tiers);
        // Limits that let both groups fill fast memory.
        let limits = setup.limits.map(|pages| 4 * pages);
        Setup { demotes: true, memory: 4096, limits, tiers, ..setup }
    })
}

/// What happens there: time passes, and migrations fail, now at one step and now at another.
pub(crate) fn tiered_action() -> impl Strategy<Value = Action> {
    // Mostly none of them, or one in eight: where all fail, nothing else happens any more.
    let one = (0..8u32).prop_map(|bit| 1 << bit);
    let pattern = prop_oneof![6 => Just(0u8), 6 => one, 2 => any::<u8>(), 1 => Just(u8::MAX)];
    let hot = (0..TASKS, kind(), 0..4u64).prop_map(|(task, kind, page)| Action::Access {
        task,
        kind,
        page,
        write: false,
        wanted: 1,
        patience: 100,
    });
    prop_oneof![
        16 => action(),
        20 => hot,
        4 => (0..TASKS, 1..1500u64).prop_map(|(task, ms)| Action::Tick { task, ms }),
        2 => (prop::sample::select(&MigrateStep::ALL[..]), pattern)
            .prop_map(|(step, pattern)| Action::Refuse { step, pattern }),
    ]
}
