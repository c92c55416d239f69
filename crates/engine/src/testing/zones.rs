//! Promises to who needs a page of a lower zone: zone Movable is no use to the kernel itself.

use crate::lru::lruvec::{LruList, LruvecId};
use crate::memory::folio::FolioFlags;
use crate::page_alloc::request::{Gfp, MigrateType, Request};
use crate::reclaim::{Reclaimer, ScanControl, Why};
use crate::stat::Stat;
use crate::units::ZoneType;
use crate::*;
use pageout_rules::reclaim::ZoneSkip;

/// A machine whose memory is zone DMA32 and, for the most part, zone Movable, and a file in its cache.
struct Bench {
    engine: Engine,
    file: FileId,
}

const NODE: NodeId = NodeId(0);
const MOVABLE: u64 = 49_152;
const DMA32: u64 = 16_384;

impl Bench {
    /// The first `pages` pages of the file are cached: those of zone Movable come first, as that is used first.
    fn new(policy: Policy, pages: u64) -> Bench {
        let config = Config {
            node_pages: vec![MOVABLE + DMA32],
            layout: Layout { movable_pages: vec![MOVABLE], ..Layout::default() },
            policy,
            kmem: false,
            cpus: 1,
            ..Config::default()
        };
        let mut engine = Engine::new(config).unwrap();
        let spec =
            FileSpec { name: "data".to_owned(), pages, kind: FileKind::Regular, bdi: Bdi::NO_READAHEAD };
        let file = engine.file_create(spec).unwrap();
        let mut bench = Bench { engine, file };
        for page in 0..pages {
            let core = &mut bench.engine.core;
            let request = Request::movable(Gfp::KERNEL, NODE);
            let pfn = core.alloc_pages(&request, MemcgId::ROOT).unwrap();
            core.mm.memcgs.charge(MemcgId::ROOT, 1, 1).unwrap();
            core.mm.memory.folios[pfn].set(FolioFlags::CHARGED);
            core.page_cache_add(pfn, file, page, crate::lru::AddedFor::Other);
            core.lru_add(pfn, crate::lru::AddedFor::Other);
        }
        bench.engine.core.lru_add_drain();
        bench.engine.check_invariants();
        bench
    }

    fn lruvec(&self) -> LruvecId {
        self.engine.core.mm.lruvecs.id(MemcgId::ROOT, NODE)
    }

    fn zone_of(&self, pfn: Pfn) -> ZoneType {
        self.engine.core.mm.memory.zones.zone_of(NODE, pfn).kind
    }

    fn pfn(&self, page: u64) -> Pfn {
        self.engine.core.mm.memory.file(self.file).index.word(page).pfn()
    }

    fn stats<const N: usize>(&self, stats: [Stat; N]) -> [i64; N] {
        stats.map(|stat| self.engine.figures().vmstat(stat))
    }

    /// Isolates a batch for a request of this class, and puts it back.
    fn isolate(&mut self, class: ZoneType) -> Vec<Pfn> {
        let lruvec = self.lruvec();
        let by = Reclaimer { class, ..Reclaimer::new(MemcgId::ROOT, Why::Direct, 60) };
        let (mut batch, sc) = (Vec::new(), ScanControl::new(by, 32));
        let list = LruList::InactiveFile as usize;
        self.engine.core.isolate_from(lruvec, list, 32, &mut batch, &sc);
        batch.iter().for_each(|&pfn| self.engine.core.put_back(pfn));
        self.engine.check_invariants();
        batch
    }
}

fn classic(zone_skip: ZoneSkip) -> Policy {
    let mut policy = Policy::of("classic@6.12");
    policy.group.reclaim.zone_skip = zone_skip;
    policy
}

fn mglru() -> Policy {
    Policy::of("mglru@6.12")
}

/// 2,000 pages: the first are in zone Movable until that is down to its low watermark.
#[test]
fn pages_of_zones_that_are_no_use_go_to_the_hot_end_of_their_list() {
    let mut bench = Bench::new(classic(ZoneSkip::Bounded), MOVABLE + 2_000);
    let first_below = (0..).find(|&page| bench.zone_of(bench.pfn(page)) == ZoneType::Dma32).unwrap();
    assert!(first_below < MOVABLE, "it leaves its marks alone");
    // More than a reclaimer passes by.
    let taken = bench.isolate(ZoneType::Normal);
    assert!(taken.iter().all(|&pfn| bench.zone_of(pfn) == ZoneType::Movable), "whatever comes then");
    let [skipped] = bench.stats([Stat::PgskipMovable]);
    assert_eq!(skipped, 32 << 10);
    let taken = bench.isolate(ZoneType::Normal);
    assert_eq!(taken[0], bench.pfn(first_below), "those that were in the way are at the hot end now");
    let rest = first_below as i64 - (32 << 10) - 32;
    assert_eq!(bench.stats([Stat::PgskipMovable, Stat::PgskipDma32]), [(32 << 10) + rest, 0]);
}

#[test]
fn without_a_bound_all_of_them_are_passed_by() {
    let mut bench = Bench::new(classic(ZoneSkip::Unbounded), MOVABLE + 2_000);
    let taken = bench.isolate(ZoneType::Normal);
    assert!(taken.iter().all(|&pfn| bench.zone_of(pfn) == ZoneType::Dma32));
    let [skipped] = bench.stats([Stat::PgskipMovable]);
    assert!(skipped > 32 << 10, "{skipped}");
    assert_eq!(bench.isolate(ZoneType::Movable).len(), 32, "to others all is of use");
    assert_eq!(bench.stats([Stat::PgskipMovable]), [skipped]);
}

/// What is no use does not make a pass longer, nor a request hope for more.
#[test]
fn only_what_is_of_use_counts_where_it_is_decided_how_much_to_scan() {
    let bench = Bench::new(classic(ZoneSkip::Bounded), MOVABLE + 2_000);
    let core = &bench.engine.core;
    let zones = core.mm.memory.zones.of_node(NODE);
    assert_eq!(zones.iter().map(|zone| zone.kind).collect::<Vec<_>>(), [ZoneType::Movable, ZoneType::Dma32]);
    let of_lists = |rank| core.mm.lruvecs[bench.lruvec()].size_from(LruList::InactiveFile, rank);
    assert_eq!(of_lists(0), MOVABLE + 2_000);
    assert_eq!(of_lists(1), core.mm.zone_reclaimable_pages(&zones[1]));
    assert_eq!(of_lists(0) - of_lists(1), core.mm.zone_reclaimable_pages(&zones[0]));
}

/// MGLRU has a list for each zone. A task that needs a page of a lower zone finds it immediately, and the rest is
/// deferred.
#[test]
fn generations_give_the_zone_that_is_wanted_first_and_put_others_off() {
    let mut bench = Bench::new(mglru(), 2_000);
    let in_movable = |bench: &Bench| {
        (0..2_000).filter(|&page| bench.zone_of(bench.pfn(page)) == ZoneType::Movable).count()
    };
    assert_eq!(in_movable(&bench), 2_000);
    let by = Reclaimer { class: ZoneType::Normal, ..Reclaimer::new(MemcgId::ROOT, Why::Direct, 60) };
    let mut sc = ScanControl::new(by, 32);
    let lruvec = bench.lruvec();
    bench.engine.core.evict(lruvec, 60, 4096, &mut sc);
    assert_eq!((sc.nr_reclaimed, in_movable(&bench)), (0, 2_000), "nothing is of use");
    bench.engine.check_invariants();
    let movable = Reclaimer::new(MemcgId::ROOT, Why::Direct, 60);
    let mut sc = ScanControl::new(movable, 32);
    while sc.nr_reclaimed < 64 {
        bench.engine.core.evict(lruvec, 60, 4096, &mut sc);
    }
    bench.engine.check_invariants();
}

/// As on any machine of more than four gigabytes: what lies higher goes first, whichever is older.
#[test]
fn generations_take_from_the_highest_zone_first() {
    let mut bench = Bench::new(mglru(), MOVABLE + 2_000);
    let lruvec = bench.lruvec();
    let last = bench.pfn(MOVABLE + 1_999);
    assert_eq!(bench.zone_of(last), ZoneType::Dma32);
    let below = |bench: &Bench| bench.engine.core.mm.lruvecs[lruvec].size_from(LruList::InactiveFile, 1);
    let reclaim = |bench: &mut Bench, class: ZoneType| {
        let by = Reclaimer { class, ..Reclaimer::new(MemcgId::ROOT, Why::Direct, 60) };
        let (before, mut sc) = (below(bench), ScanControl::new(by, 32));
        while sc.nr_reclaimed == 0 {
            bench.engine.core.evict(lruvec, 60, 4096, &mut sc);
        }
        bench.engine.check_invariants();
        (sc.nr_reclaimed, before - below(bench))
    };
    assert_eq!(reclaim(&mut bench, ZoneType::Movable), (64, 0));
    assert_eq!(reclaim(&mut bench, ZoneType::Normal), (64, 64), "the kernel itself needs the other zone");
    let request = Request::kernel(MigrateType::Unmovable, Gfp::KERNEL, NODE);
    assert_eq!(request.class, ZoneType::Normal);
}
