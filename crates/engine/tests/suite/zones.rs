//! Zones and their marks, on machines of ten sizes: computed a second time, zone by zone in plain arithmetic, and compared.

#![allow(clippy::unwrap_used)] // a test: failing is what it is for

use pageout_engine::{Config, Engine, Layout, NodeId, TransparentHugepage, ZoneInfo, ZoneType};

const GIB: u64 = 1 << 18;

struct Machine {
    name: &'static str,
    config: Config,
    /// Its zones: node, zone, present and managed pages, written down by hand.
    zones: Vec<(u8, &'static str, u64, u64)>,
}

fn machine(name: &'static str, config: Config, zones: &[(u8, &'static str, u64, u64)]) -> Machine {
    Machine { name, config, zones: zones.to_vec() }
}

fn of_pages(node_pages: &[u64]) -> Config {
    Config { node_pages: node_pages.to_vec(), ..Config::default() }
}

/// The machine of the recordings without groups: 128 MiB, and marks computed before 505 pages of it were given back.
fn recorded() -> Config {
    let layout = Layout { reserved_pages: vec![32768 - 28005], init_pages: 505, ..Layout::default() };
    Config { layout, cpus: 2, ..of_pages(&[28005]) }
}

fn with_dma(pages: u64) -> Config {
    Config { layout: Layout { zone_dma: true, ..Layout::default() }, ..of_pages(&[pages]) }
}

#[rustfmt::skip]
fn machines() -> Vec<Machine> {
    let huge = |config: Config| Config { transparent_hugepage: TransparentHugepage::Always, ..config };
    let movable = |pages: &[u64], config: Config| {
        Config { layout: Layout { movable_pages: pages.to_vec(), ..Layout::default() }, ..config }
    };
    let reserved = Layout { reserved_pages: vec![GIB / 16], ..Layout::default() };
    vec![
        machine("16 MiB", of_pages(&[4096]), &[(0, "DMA32", 4096, 4096)]),
        machine("recorded", recorded(), &[(0, "DMA32", 32768, 28005)]),
        machine("1 GiB", of_pages(&[GIB]), &[(0, "DMA32", GIB, GIB)]),
        machine("4 GiB with zone DMA", with_dma(4 * GIB), &[(0, "DMA", 4096, 4096), (0, "DMA32", 4 * GIB - 4096, 4 * GIB - 4096)]),
        machine("5 GiB, scale 100", Config { watermark_scale_factor: 100, ..of_pages(&[5 * GIB]) },
            &[(0, "DMA32", 4 * GIB, 4 * GIB), (0, "Normal", GIB, GIB)]),
        machine("8 GiB, 1/129 of it reserved", Config { layout: reserved, ..of_pages(&[8 * GIB]) },
            &[(0, "DMA32", 4 * GIB, 4 * GIB - 8128), (0, "Normal", 4 * GIB + GIB / 16, 4 * GIB + 8128)]),
        machine("16 GiB, huge pages", huge(with_dma(16 * GIB)),
            &[(0, "DMA", 4096, 4096), (0, "DMA32", 4 * GIB - 4096, 4 * GIB - 4096), (0, "Normal", 12 * GIB, 12 * GIB)]),
        machine("two nodes of 32 GiB, the second movable", movable(&[0, 32 * GIB], of_pages(&[32 * GIB, 32 * GIB])),
            &[(0, "DMA32", 4 * GIB, 4 * GIB), (0, "Normal", 28 * GIB, 28 * GIB), (1, "Movable", 32 * GIB, 32 * GIB)]),
        machine("100 GiB, 50 MiB of them movable", movable(&[GIB / 20], huge(of_pages(&[100 * GIB]))),
            &[(0, "DMA32", 4 * GIB, 4 * GIB), (0, "Normal", 96 * GIB - 12288, 96 * GIB - 12288), (0, "Movable", 12288, 12288)]),
        machine("1 TiB, given by the administrator", Config { min_free_kbytes: 1_000_000, ..of_pages(&[1024 * GIB]) },
            &[(0, "DMA32", 4 * GIB, 4 * GIB), (0, "Normal", 1020 * GIB, 1020 * GIB)]),
    ]
}

/// min, low, high and promo of each zone, and its reserves from requests of the classes Normal and Movable.
fn by_hand(machine: &Machine) -> Vec<[u64; 6]> {
    let Config { layout, min_free_kbytes, transparent_hugepage, watermark_scale_factor, .. } =
        &machine.config;
    let mut managed: Vec<f64> = machine.zones.iter().map(|&(.., managed)| managed as f64).collect();
    managed[0] -= layout.init_pages as f64;
    let is_movable = |at: usize| machine.zones[at].1 == "Movable";
    let places = || 0..machine.zones.len();
    let low_memory: f64 = places().filter(|&at| !is_movable(at)).map(|at| managed[at]).sum();
    let mut kbytes = (low_memory * 4.0 * 16.0).sqrt().floor().clamp(128.0, 262_144.0);
    if *transparent_hugepage != TransparentHugepage::Never {
        let zones = places().filter(|&at| !is_movable(at)).count() as f64;
        kbytes = kbytes.max(4.0 * (11.0 * 512.0 * zones).min((low_memory / 20.0).floor()));
    }
    if *min_free_kbytes > 0 {
        kbytes = f64::from(*min_free_kbytes);
    }
    let pages = (kbytes / 4.0).floor();
    let marks = |at: usize| {
        let share = (pages * managed[at] / low_memory).floor();
        let min = if is_movable(at) { (managed[at] / 1024.0).floor().clamp(32.0, 128.0) } else { share };
        let scaled = (managed[at] * f64::from(*watermark_scale_factor) / 10_000.0).floor();
        let gap = (share / 4.0).floor().max(scaled);
        let reserve = |class: &[&str]| {
            let (node, name, ..) = machine.zones[at];
            let ratio = if name.starts_with("DMA") { 256.0 } else { 32.0 };
            let higher = places().filter(|&other| {
                other > at && machine.zones[other].0 == node && class.contains(&machine.zones[other].1)
            });
            (higher.map(|other| managed[other]).sum::<f64>() / ratio).floor()
        };
        let to_normal = reserve(&["DMA32", "Normal"]);
        let to_movable = reserve(&["DMA32", "Normal", "Movable"]);
        [min, min + gap, min + 2.0 * gap, min + 3.0 * gap, to_normal, to_movable].map(|pages| pages as u64)
    };
    places().map(marks).collect()
}

#[test]
fn marks_of_ten_machines_equal_the_formula_written_a_second_time() {
    let machines = machines();
    assert_eq!(machines.len(), 10);
    for machine in machines {
        let engine = Engine::new(machine.config.clone()).unwrap();
        let zones: Vec<ZoneInfo> = engine.figures().zones().collect();
        let found: Vec<_> =
            zones.iter().map(|zone| (zone.node.0, zone.zone.name(), zone.present, zone.managed)).collect();
        assert_eq!(found, machine.zones, "zones of {}", machine.name);
        let found: Vec<[u64; 6]> = zones
            .iter()
            .map(|zone| {
                let reserve = |class: ZoneType| zone.lowmem_reserve[class as usize];
                let (normal, movable) = (reserve(ZoneType::Normal), reserve(ZoneType::Movable));
                [zone.min, zone.low, zone.high, zone.promo, normal, movable]
            })
            .collect();
        assert_eq!(found, by_hand(&machine), "marks of {}", machine.name);
    }
}

#[test]
fn marks_are_the_recorded_ones() {
    let engine = Engine::new(recorded()).unwrap();
    let zone = engine.figures().zones().next().unwrap();
    assert_eq!([zone.min, zone.low, zone.high], [331, 413, 495]);
    assert_eq!((zone.node, zone.zone, zone.managed, zone.free), (NodeId(0), ZoneType::Dma32, 28005, 28005));
    // The range of sizes from which they can have been computed.
    for managed in [27_391, 27_555] {
        let zone = Engine::new(of_pages(&[managed])).unwrap().figures().zones().next().unwrap();
        assert_eq!([zone.min, zone.low, zone.high], [331, 413, 495], "{managed} pages");
    }
}

#[test]
fn most_production_machines_keep_67584_kb_free() {
    let mut engine =
        Engine::new(Config { transparent_hugepage: TransparentHugepage::Always, ..with_dma(16 * GIB) })
            .unwrap();
    assert_eq!(engine.read_file("/proc/sys/vm/min_free_kbytes").unwrap(), "67584\n");
}

#[test]
fn a_layout_that_can_not_be_is_refused() {
    let refused =
        |layout: Layout| Engine::new(Config { layout, ..of_pages(&[100, 200]) }).err().unwrap().to_string();
    let movable = Layout { movable_pages: vec![0, 201], ..Layout::default() };
    assert_eq!(refused(movable), "movable pages of a node: 201 is not in the range 0 to 200");
    let init = Layout { init_pages: 100, ..Layout::default() };
    assert_eq!(refused(init), "pages of initialisation: 100 is not in the range 0 to 99");
}

#[test]
fn a_scattered_page_of_the_kernel_keeps_a_pageblock_from_being_whole_and_leaves_the_rest_free() {
    let pageblocks = |engine: &Engine| -> u64 {
        engine.figures().zones().map(|zone| zone.free_blocks[9] + 2 * zone.free_blocks[10]).sum()
    };
    let free = |engine: &Engine| -> u64 { engine.figures().zones().map(|zone| zone.free).sum() };
    for (pages, blocks) in [(GIB, 0), (GIB, 1), (GIB, 97), (GIB, 512), (5 * GIB, 300), (4096 + 512, 2)] {
        let layout = Layout { unmovable_blocks: vec![blocks], ..Layout::default() };
        let engine = Engine::new(Config { layout, ..of_pages(&[pages]) }).unwrap();
        engine.check_invariants();
        assert_eq!(free(&engine), pages - blocks, "of {pages} pages");
        assert_eq!(pageblocks(&engine), pages / 512 - blocks, "of {pages} pages");
    }
    let layout =
        |blocks| Layout { unmovable_blocks: vec![blocks], movable_pages: vec![GIB / 2], ..Layout::default() };
    let engine = |blocks| Engine::new(Config { layout: layout(blocks), ..of_pages(&[GIB]) });
    assert_eq!(pageblocks(&engine(256).unwrap()), 256, "zone Movable has none");
    let refusal = engine(257).map(|_| ()).unwrap_err().to_string();
    assert!(
        refusal.contains("unmovable pageblocks of a node: 257 is not in the range 0 to 256"),
        "{refusal}"
    );
}
